"""Reports of ``inspect`` on a model: as a tree of joints, and as a JSON object."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from click import style
from numpy.typing import NDArray

from synovia.clips import find_ends
from synovia.ik.compiled import checked_tolerance, reach_of_tips
from synovia.io.load import Clips
from synovia.jobs.words import number
from synovia.model import Joint, Kind, Skeleton
from synovia.model.anatomy.hands.find import hands_of
from synovia.model.anatomy.up import SHOWN, find_up
from synovia.model.limits import Interval, SwingTwist
from synovia.model.loops.loop import Coupling, Tie
from synovia.model.loops.tables import moved_by
from synovia.text import Report, counted, listed, printable, unit_name

if TYPE_CHECKING:
    from synovia.covers import ShapeFit
    from synovia.model.anatomy.hands.hand import Hand
    from synovia.model.shapes.pairs import SelfPairs
    from synovia.model.shapes.within import ClosePairs


SCHEMA: Final = "synovia.inspect/1"


def _degrees_of_freedom(skeleton: Skeleton) -> int:
    """Return the number of degrees of freedom without mimic joints."""
    return sum(joint.kind.v_size for joint in skeleton.joints if joint.mimic is None)


def model_report(
    skeleton: Skeleton,
    clips: Clips,
    fit: ShapeFit | None = None,
    pairs: SelfPairs | None = None,
    close: ClosePairs | None = None,
) -> Report:
    """Return the report on a model: heading, facts, tree, optional shape fit and pairs of links, and clips.

    Args:
        skeleton: The model.
        clips: Clips of the model.
        fit: Measured fit of its shapes; None if not measured.
        pairs: The pairs of links that can collide; None to leave them out.
        close: The pairs that are nearer than a clearance in most poses; None to leave them out.
    """
    given = skeleton, clips, fit, pairs, close
    return Report(_lines(*given), _facts(*given))


def _facts(
    skeleton: Skeleton,
    clips: Clips,
    fit: ShapeFit | None,
    pairs: SelfPairs | None,
    close: ClosePairs | None,
) -> dict[str, Any]:
    """Return the model as plain values: radians and length units of the file, None for missing values."""
    return {
        "schema": SCHEMA,
        "model": skeleton.name,
        "unit": unit_name(skeleton.meters_per_unit),
        "meters_per_unit": skeleton.meters_per_unit,
        "up": skeleton.up,
        "forward": skeleton.forward,
        "size": skeleton.size,
        "reach": reach_of_tips(skeleton),
        "mass": float(sum(joint.mass for joint in skeleton.joints)),
        "nq": skeleton.nq,
        "nv": skeleton.nv,
        "degrees_of_freedom": _degrees_of_freedom(skeleton),
        "loops": loops_object(skeleton),
        "mobility": mobility_object(skeleton),
        "tips": list(skeleton.tips),
        "roles": dict(skeleton.roles),
        "hands": [_hand_object(hand) for hand in hands_of(skeleton)],
        "sites": [
            {"name": site.name, "joint": joint.name, "joint_row": row, "rest": site.rest.tolist()}
            for row, joint in enumerate(skeleton.joints)
            for site in joint.sites
        ],
        "shapes": {"count": sum(_shape_counts(skeleton).values()), "kinds": _shape_counts(skeleton)},
        "shape_fit": None if fit is None else fit.report().to_object(),
        "excluded_pairs": [list(pair) for pair in skeleton.excluded_pairs],
        "self_pairs": None if pairs is None else _pairs_object(pairs, close),
        "notes": list(skeleton.notes),
        "joints": [_joint_object(skeleton, row) for row in range(len(skeleton))],
        "clips": [
            {
                "name": motion.name,
                "frames": len(motion),
                "fps": motion.fps,
                "duration": motion.duration,
                "default": number == (clips.shown or 0),
                "calibration": list(find_ends(motion).notes),
                "notes": list(motion.notes),
            }
            for number, motion in enumerate(clips.motions)
        ],
    }


def _hand_object(hand: Hand) -> dict[str, Any]:
    """Return a hand as plain values; joints are given by name, or by row if a name is not unique."""
    return {
        "side": hand.side,
        "palm": hand.palm,
        "fingers": [
            {"name": finger.name, "joints": list(finger.joints), "tip": finger.tip, "estimated": finger.estimated}
            for finger in hand.fingers
        ],
        "notes": list(hand.notes),
    }


def _hand_text(hand: Hand) -> str:
    """Return a hand and its fingers as one line, followed by its doubtful notes."""
    fingers = ", ".join(f"{finger.name} {len(finger.joints)}" for finger in hand.fingers)
    line = f"{hand.side or 'hand'} at {printable(str(hand.palm))}: {fingers}"
    doubts = [note for note in hand.notes if "is an estimate" not in note]
    return line + "".join("\n" + style(f"  {printable(note)}", fg="yellow") for note in doubts)


def _pairs_object(pairs: SelfPairs, close: ClosePairs | None) -> dict[str, Any]:
    """Return the pairs of links that can collide, the excluded pairs and the close pairs as plain values."""
    return {
        **pairs.report().facts,
        "clearance": None if close is None else close.distance,
        "close": None if close is None else [list(pair) for pair in close.pairs],
    }


def _joint_object(skeleton: Skeleton, row: int) -> dict[str, Any]:
    """Return one joint as plain values."""
    joint, parent = skeleton.joints[row], skeleton.parents[row]
    limit: dict[str, Any] | None = None
    if isinstance(joint.limit, Interval):
        limit = {"lower": _finite(joint.limit.lower), "upper": _finite(joint.limit.upper)}
    elif isinstance(joint.limit, SwingTwist):
        swing = joint.limit
        limit = {"x": swing.x, "y": swing.y, "twist": swing.twist, "frame": swing.frame}
    role = next((role for role, at in skeleton.role_rows.items() if at == row), joint.role)
    moves_along = joint.kind in (Kind.HINGE, Kind.SLIDE)
    return {
        "row": row,
        "name": joint.name,
        "parent": skeleton.joint_names[parent] if parent >= 0 else None,
        "parent_row": parent if parent >= 0 else None,
        "kind": joint.kind.name,
        "body": joint.body,
        "role": role,
        "tip": joint.tip,
        "axis": joint.axis.tolist() if moves_along else None,
        "limit": limit,
        "mimic": _mimic_object(skeleton, row),
        "mass": joint.mass,
        "rest": joint.rest.tolist(),
    }


def _mimic_object(skeleton: Skeleton, row: int) -> dict[str, Any] | None:
    """Return how a mimic joint follows its leader, its range, and whether the range exceeds the joint's limits."""
    mimic = skeleton.joints[row].mimic
    if mimic is None:
        return None
    lower, upper = skeleton.value_range(row)
    return {
        "leader": mimic.leader,
        "ratio": mimic.ratio,
        "offset": mimic.offset,
        "binds": mimic.binds,
        "lower": _finite(lower),
        "upper": _finite(upper),
        "beyond_limits": _is_taken_beyond(skeleton, row),
    }


def _is_taken_beyond(skeleton: Skeleton, row: int) -> bool:
    """Return whether a leader moves its mimic joint beyond the joint's own limits by more than rounding."""
    limit = skeleton.joints[row].limit
    if not isinstance(limit, Interval):
        return False
    (lower, upper), slack = skeleton.value_range(row), 1e-3 * min(limit.upper - limit.lower, 1.0)
    return lower < limit.lower - slack or upper > limit.upper + slack


def _is_restricted(skeleton: Skeleton, row: int) -> bool:
    """Return whether mimic joints restrict a leader to less than its own limits."""
    joint = skeleton.joints[row]
    if joint.kind not in (Kind.HINGE, Kind.SLIDE) or joint.mimic is not None:
        return False
    limit = joint.limit if isinstance(joint.limit, Interval) else Interval()
    lower, upper = skeleton.value_range(row)
    return lower > limit.lower or upper < limit.upper


def _finite(value: float) -> float | None:
    """Return a limit; None for an infinite limit."""
    return value if math.isfinite(value) else None


def _lines(
    skeleton: Skeleton,
    clips: Clips,
    fit: ShapeFit | None,
    pairs: SelfPairs | None,
    close: ClosePairs | None,
) -> list[str]:
    """Return the lines to print: heading, facts, tree, optional shape fit and pairs of links, and clips."""
    unit = unit_name(skeleton.meters_per_unit)
    known = unit if skeleton.meters_per_unit is not None else "unknown"
    tolerance, _ = checked_tolerance(None, reach_of_tips(skeleton))
    limits = [joint.limit for joint in skeleton.joints if isinstance(joint.limit, Interval) and joint.mimic is None]
    locked = sum(limit.locked for limit in limits)
    freedom = f"degrees of freedom {_degrees_of_freedom(skeleton)}" + (f" ({locked} locked)" if locked else "")
    facts = [
        f"joints {len(skeleton)}, {freedom}, tips {len(skeleton.tips)}",
        f"unit {known}, up {_up_text(skeleton, clips)}, forward {skeleton.forward or 'unknown'}",
        f"longest chain {number(skeleton.size)} {unit}, tolerance of goals {number(tolerance)} {unit}",
    ]
    if skeleton.loops:
        facts.append(mobility_text(skeleton, _degrees_of_freedom(skeleton)))
    facts.append(f"roles {len(skeleton.roles)}" + ("" if skeleton.roles else ": no body parts recognised"))
    mass = sum(joint.mass for joint in skeleton.joints)
    if mass > 0.0:
        facts[2] += f", mass {mass:.4g} kg"
    if skeleton.shapes:
        facts.append(_shapes_text(skeleton))
    lines = [style(printable(skeleton.name), bold=True), *facts]
    lines += [*(style(printable(note), fg="yellow") for note in skeleton.notes), "", *_tree(skeleton, unit)]
    if hands := hands_of(skeleton):
        lines += ["", style("hands, with the number of joints of each finger", dim=True), *map(_hand_text, hands)]
    if skeleton.loops:
        lines += ["", style("loops", dim=True), *loops_text(skeleton)]
    if fit is not None:
        lines += ["", style("shapes", dim=True), *map(printable, fit.report().splitlines())]
    if pairs is not None:
        lines += ["", style("pairs of links", dim=True), *map(printable, pairs.report().splitlines())]
    if close is not None:
        lines += map(printable, _close_text(close, skeleton))
    if clips.motions:
        lines += ["", style("clips", dim=True)]
    for place, motion in enumerate(clips.motions):
        frames = counted(len(motion), "frame")
        line = f"{printable(motion.name)}: {frames} at {motion.fps:.4g} fps, {motion.duration:.4g} s"
        if place == clips.shown and len(clips.motions) > 1:
            line += style("  the default", dim=True)
        lines.append(line + "".join(style(f"  {note}", fg="yellow") for note in find_ends(motion).notes))
        own = [note for note in motion.notes if note not in skeleton.notes]
        lines += [style(f"  {printable(note)}", fg="yellow") for note in own]
    return lines


def _close_text(close: ClosePairs, skeleton: Skeleton) -> list[str]:
    """Return lines with the number of close pairs and their names."""
    from synovia.model.shapes.pairs import NEARLY
    from synovia.model.shapes.within import SAMPLES

    far = f"{close.distance:g} {unit_name(skeleton.meters_per_unit)}"
    share = f"at least {100.0 * NEARLY:.0f} % of {SAMPLES} random poses"
    first = f"nearer than {far} in {share}, so a goal only keeps them from touching: {len(close.pairs)}"
    return [first, *(f"  {a} and {b}" for a, b in close.pairs)]


def _up_text(skeleton: Skeleton, clips: Clips) -> str:
    """Return the axis that points up: from the file, or detected from the model and its first clip."""
    found = find_up(skeleton, clips.motions[0].q if clips.motions else None)
    if found.certainty < SHOWN:
        return "unknown"
    return found.nearest if found.source == "file" else f"{found.nearest} (by the {found.source})"


def _shape_counts(skeleton: Skeleton) -> dict[str, int]:
    """Return the number of shapes of each kind, the most frequent kind first."""
    return dict(Counter(shape.word for shapes in skeleton.shapes.values() for shape in shapes).most_common())


def _shapes_text(skeleton: Skeleton) -> str:
    """Return text with the number of shapes, also by kind, and of excluded pairs of links."""
    kinds = _shape_counts(skeleton)
    each = ", ".join(counted(n, word) for word, n in kinds.items())
    pairs = len(skeleton.excluded_pairs)
    excluded = f", {counted(pairs, 'excluded pair')}" if pairs else ""
    links = counted(len(skeleton.shapes), "link")
    return f"shapes {sum(kinds.values())} on {links}: {each}{excluded}"


_DEEPEST: Final = 200  # largest number of levels of a drawn tree; a deeper tree fits no screen


def _tree(skeleton: Skeleton, unit: str) -> list[str]:
    """Return the lines of the tree of joints, or of a plain list if the tree is too deep."""
    depth: list[int] = []
    for parent in skeleton.parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    if max(depth) > _DEEPEST:
        names = skeleton.joint_names
        above = [f"  under {printable(names[parent])}" if parent >= 0 else "" for parent in skeleton.parents]
        return [_line(skeleton, row, unit) + style(above[row], dim=True) for row in range(len(skeleton))]
    lines: list[str] = []
    waiting = [(row, "", "") for row, parent in reversed([*enumerate(skeleton.parents)]) if parent < 0]
    while waiting:  # depth first; each entry has the guide lines of the joint and of its children
        row, own, below = waiting.pop()
        lines.append(style(own, dim=True) + _line(skeleton, row, unit))
        for k, child in enumerate(reversed(skeleton.children[row])):
            waiting.append((child, below + ("├── " if k else "└── "), below + ("│   " if k else "    ")))
    return lines


def _line(skeleton: Skeleton, row: int, unit: str) -> str:
    """Return name, kind, limits and notes of a joint as one line."""
    joint = skeleton.joints[row]
    kind = f"  {joint.kind.name.lower()}"
    line = printable(joint.name) + (style(kind, dim=True) if joint.kind is Kind.FIXED else style(kind, fg="cyan"))
    if joint.limit is not None:
        line += f"  {_limit_text(joint, unit)}"
    elif joint.kind not in (Kind.FIXED, Kind.FREE):
        line += style("  no limits", dim=True)
    notes: list[str] = []
    if joint.mimic is not None:
        notes.append(f"follows {joint.mimic.leader}")
        if _is_taken_beyond(skeleton, row):
            notes[-1] += f", beyond its own limits: {_ends(skeleton.value_range(row), joint.kind, unit)}"
    elif _is_restricted(skeleton, row):
        notes.append(f"restricted by mimic joints: {_ends(skeleton.value_range(row), joint.kind, unit)}")
    if joint.body and joint.body != joint.name:
        notes.append(f"carries {joint.body}")
    if joint.sites:
        notes.append("sites " + listed([site.name for site in joint.sites]))
    roles = [role for role, at in skeleton.role_rows.items() if at == row] or [joint.role or joint.name]
    if roles != [joint.name]:
        notes.append(f"is {' and '.join(roles)}")
    if joint.tip:
        notes.append("tip")
    return line + "".join(style(f"  {printable(note)}", dim=True) for note in notes)


def _limit_text(joint: Joint, unit: str) -> str:
    """Return a limit in degrees, or in length units for a slide."""
    if not isinstance(joint.limit, Interval):
        return cast(SwingTwist, joint.limit).describe()
    if joint.limit.locked:
        return f"locked at {_number(joint.limit.lower, joint.kind)} {_unit(joint.kind, unit)}"
    return _ends((joint.limit.lower, joint.limit.upper), joint.kind, unit)


def _ends(interval: tuple[float, float], kind: Kind, unit: str) -> str:
    """Return an interval as text, in degrees or in length units for a slide."""
    lower, upper = (_number(end, kind) for end in interval)
    return f"{lower} to {upper} {_unit(kind, unit)}"


def _number(value: float, kind: Kind) -> str:
    """Return the end of an interval as a number, in degrees or in length units for a slide."""
    if not math.isfinite(value):
        return "unlimited"
    return number(round(math.degrees(value), 2) if kind is Kind.HINGE else value)


def _unit(kind: Kind, unit: str) -> str:
    """Return the unit of a joint value: degrees for a hinge, else the length unit."""
    return "deg" if kind is Kind.HINGE else unit


def loops_object(skeleton: Skeleton) -> list[dict[str, Any]]:
    """Return the loops and couplings as plain values, radians and length units of the file."""
    locked = _locked(skeleton)
    out: list[dict[str, Any]] = []
    for tie in skeleton.loops:
        own: dict[str, Any] = {"name": tie.label, "conditions": tie.rows, "locked": tie in locked}
        if isinstance(tie, Coupling):
            terms = {joint: list(factors) for joint, factors in tie.terms.items()}
            own |= {"kind": "coupling", "terms": terms, "equals": tie.equals}
        else:
            own |= {
                "kind": tie.kind,
                "first": tie.first,
                "second": tie.second,
                "offset": tie.offset.tolist(),
                "other_offset": tie.other_offset.tolist(),
                "distance": tie.distance,
            }
        out.append(own)
    return out


def mobility_object(skeleton: Skeleton) -> dict[str, Any] | None:
    """Return the mobility of a model with loops as plain values; None without loops."""
    if skeleton.mechanism is None:
        return None
    found = skeleton.mechanism.mobility
    return {
        "freedom": found.freedom,
        "redundant": found.redundant,
        "singular": found.singular,
        "following": _names(skeleton, found.dependent),
        "locked": _names(skeleton, found.still),
    }


def mobility_text(skeleton: Skeleton, freedom: int) -> str:
    """Return the mobility of a model with loops as one line.

    Args:
        skeleton: The model, which has loops.
        freedom: Degrees of freedom of the model without the loops.
    """
    mechanism = skeleton.mechanism
    if mechanism is None:
        return ""
    found = mechanism.mobility
    couplings = sum(isinstance(tie, Coupling) for tie in skeleton.loops)
    loops = len(skeleton.loops) - couplings
    kinds = " and ".join(counted(n, word) for n, word in ((loops, "loop"), (couplings, "coupling")) if n)
    line = f"{kinds}: {found.freedom} of {counted(freedom, 'degree')} of freedom left"
    if found.redundant:
        line += f"; {counted(found.redundant, 'condition', verb=('is', 'are'))} redundant"
    if found.singular:
        line += "; the rest pose is singular"
    return line


def loops_text(skeleton: Skeleton) -> list[str]:
    """Return a line for each loop: name, kind, its two frames or its equation, and whether it locks its joints."""
    locked, lines = _locked(skeleton), list[str]()
    for tie in skeleton.loops:
        kind = "coupling" if isinstance(tie, Coupling) else tie.kind
        line = printable(tie.label) + style(f"  {kind}", fg="cyan")
        if isinstance(tie, Coupling):
            line += f"  {printable(_equation(tie))}"
        elif tie.name is not None:
            line += f"  {printable(tie.first)} - {printable(tie.second or 'world')}"
        if not isinstance(tie, Coupling) and tie.distance is not None:
            line += f"  {tie.distance:.6g} apart"
        if tie in locked:
            moved = listed([skeleton.joint_keys[row] for row in sorted(moved_by(skeleton, tie))])
            line += style(f"  locks {printable(moved)}", fg="yellow")
        lines.append(line)
    return lines


def _equation(tie: Coupling) -> str:
    """Return the equation of a coupling as text."""
    terms = [
        (factor, joint + ("" if power == 1 else f"^{power}"))
        for joint, factors in tie.terms.items()
        for power, factor in enumerate(factors, 1)
        if factor != 0.0
    ]
    text = ""
    for factor, name in terms:
        sign = "-" if factor < 0.0 else "+"
        size = "" if abs(factor) == 1.0 else f"{abs(factor):.4g} "
        text += (f" {sign} " if text else sign.replace("+", "")) + size + name
    return f"{text} = {tie.equals:.4g}"


def _locked(skeleton: Skeleton) -> list[Tie]:
    """Return the loops that lock all of their joints."""
    if skeleton.mechanism is None:
        return []
    owner, still = skeleton.tables.owner, skeleton.mechanism.mobility.still
    moving = {int(row) for row in owner[~still]}
    return [tie for tie in skeleton.loops if not moving & moved_by(skeleton, tie)]


def _names(skeleton: Skeleton, which: NDArray[np.bool_]) -> list[str]:
    """Return the names of the joints of some velocity variables, each once."""
    rows = {int(row): None for row in skeleton.tables.owner[which]}
    return [str(skeleton.joint_keys[row]) for row in rows]
