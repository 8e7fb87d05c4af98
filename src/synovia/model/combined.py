"""Combine several bodies in one skeleton, so that goals, clearance and limits apply to all in one problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import InputError, unknown_name
from synovia.model.address import BETWEEN, kind_and_name
from synovia.model.anatomy.up import SHOWN, find_up
from synovia.model.geometry import Array, axis_turn, rigid
from synovia.model.joint import Joint, Kind, Mimic, Site
from synovia.model.limits import Interval
from synovia.model.loops.loop import Coupling, Loop, Tie
from synovia.model.motion import Motion
from synovia.model.shapes.world import as_place
from synovia.model.skeleton import Pose, Skeleton
from synovia.text import counted

_What = TypeVar("_What", Pose, Motion)


def combine(
    bodies: Mapping[str, Skeleton],
    *,
    at: Mapping[str, Any] | None = None,
    on: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Skeleton:
    """Return several bodies as one skeleton, such as two arms at one table, or an arm on a cart.

    Joint ``shoulder`` of body ``left`` becomes ``left/shoulder``; links, sites and loops likewise. Goals between bodies
    (``RelativeGoal``, ``DistanceGoal``) and a ``ClearanceGoal`` then work as within one body. Joint values of the
    bodies are concatenated; ``separate`` splits them again.

    Lengths are converted to the unit of the first body whose unit is known, and bodies with another axis that points up
    are turned upright. If a file does not name this axis, the rest pose shows it. An unknown unit or axis is assumed to
    equal that of the other bodies, and a note reports it. Pictures show the bones of the bodies, and with
    ``shapes=True`` their shapes. Add a moving base to a body before combining it: ``cart.with_root("x,y,yaw")``.

    Args:
        bodies: The bodies by name. One body may be used several times.
        at: Place of each body: a position, a 4x4 transform, or a pair of a position and a rotation, in the unit and the
            axes of the result; in the world, or in the frame on which the body is mounted. None for its own place.
        on: The parent frame of bodies that are mounted on another body: ``{"arm": "cart/plate"}``.
        name: Name of the result; None for the names of the bodies.

    Raises:
        InputError: If there is no body, a name has a slash or a colon, or bodies are mounted on each other in a cycle.
        UnknownNameError: If ``at`` or ``on`` names no body, or a frame does not exist.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> cell = sy.combine({"left": arm, "right": arm}, at={"left": (0, 0.4, 0), "right": (0, -0.4, 0)})
        >>> cell
        Skeleton('left + right', 22 joints, 14 degrees of freedom)
        >>> place = sy.PositionGoal("left/tool", (0.4, 0.1, 0.5))
        >>> grip = sy.RelativeGoal("right/tool", "left/tool", (0.1, 0, 0))
        >>> sy.solve(cell, [place, grip]).status.name
        'REACHED'
    """
    _check_bodies(bodies)
    at, on = dict(at or {}), dict(on or {})
    for what, given in (("at", at), ("on", on)):
        for body in given:
            if body not in bodies:
                raise unknown_name("body", body, bodies, where=f"{what}=")
    unit = next((body.meters_per_unit for body in bodies.values() if body.meters_per_unit is not None), None)
    ups = {body: _up_of(own) for body, own in bodies.items()}
    up = next((axis for axis in (*(body.up for body in bodies.values()), *ups.values()) if axis is not None), None)
    joints: list[Joint] = []
    first: dict[str, int] = {}  # row of the first joint of each body
    pairs: list[tuple[str, str]] = []
    ties: list[Tie] = []
    notes: list[str] = []
    for body in _carriers_first(bodies, on):
        own = bodies[body]
        called, factor = partial(_called, body), _factor(own, unit)
        carrier, ground, place = None, None, rigid()
        if body in on:
            below, frame = _split(on[body], bodies)
            row, offset = bodies[below].locate(frame)
            carrier, ground = first[below] + row, _called(below, _address(bodies[below], row))
            if offset is not None:
                place = _stretched(offset, _factor(bodies[below], unit))
        if body in at:
            place = place @ as_place(at[body], f"at[{body!r}]")
        axis = ups[body]
        if up is not None and axis is not None:
            place = place @ rigid(rotation=axis_turn(axis, up))
        first[body] = len(joints)
        for joint, parent in zip(own.joints, own.parents, strict=True):
            new = _scaled(joint, factor, own)
            rest = new.rest if parent >= 0 else place @ new.rest
            above = carrier if parent < 0 else first[body] + parent
            joints.append(_renamed(replace(new, parent=above, rest=rest), called))
        pairs += [(called(_address(own, a)), called(_address(own, b))) for a, b in own.excluded_pairs]
        ties += [_renamed_tie(tie, own, factor, called, (ground, place)) for tie in own.loops]
        notes += [f"{body}: {note}" for note in (*own.notes, *_assumed(own, unit, axis, up))]
    return Skeleton(
        joints,
        name=name or " + ".join(bodies),
        meters_per_unit=unit,
        up=up,
        notes=notes,
        excluded_pairs=pairs,
        loops=ties,
    )


def separate(what: _What, bodies: Mapping[str, Skeleton]) -> dict[str, _What]:
    """Return the poses, or motions, of the bodies of a combined skeleton.

    Args:
        what: A pose or motion of a skeleton created by ``combine``.
        bodies: All or some of the bodies by name, as passed to ``combine``.

    Raises:
        InputError: If the skeleton does not have these joints.

    Example:
        >>> import synovia as sy
        >>> bodies = {"left": sy.bundled("arm7"), "right": sy.bundled("arm7")}
        >>> cell = sy.combine(bodies, at={"right": (0, -1, 0)})
        >>> sy.skeletons.separate(cell.rest_pose(), bodies)["right"].skeleton.name
        'arm7'
    """
    if not isinstance(what, Pose | Motion):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("pose or motion", value=type(what), expected="a Pose or a Motion")
    _check_bodies(bodies)
    return {name: _part(what, name, body) for name, body in bodies.items()}


def _part(what: _What, name: str, body: Skeleton) -> _What:
    """Return the pose or motion of one body."""
    whole = what.skeleton
    rows = [row for row, joint in enumerate(whole.joint_names) if joint.startswith(name + BETWEEN)]
    found = tuple(whole.joint_names[row].removeprefix(name + BETWEEN) for row in rows)
    kinds = [whole.joints[row].kind for row in rows]
    if found != body.joint_names or kinds != [joint.kind for joint in body.joints]:
        has = counted(len(rows), "joint")
        expected = f"the {counted(len(body), 'joint')} of {body.name!r}, as sy.combine names them"
        raise InputError(f"body {name!r}", where=whole.name, value=has, expected=expected)
    begin = whole.q_slice(rows[0]).start
    q = what.q[..., begin : begin + body.nq] / _lengths(body, _factor(body, whole.meters_per_unit))
    if isinstance(what, Pose):
        return cast("_What", Pose(body, q))
    stretch = None if what.stretch is None else what.stretch[:, rows]
    return cast("_What", Motion(body, q, what.fps, name=what.name, stretch=stretch, notes=what.notes))


def _check_bodies(bodies: Any) -> None:
    """Raise an error for anything except a mapping from names to bodies."""
    if not isinstance(bodies, Mapping) or not bodies:
        kind = type(cast("object", bodies))
        raise InputError("bodies", value=kind, expected="skeletons by name, such as {'left': arm, 'right': arm}")
    for name, body in cast("Mapping[Any, Any]", bodies).items():
        if not isinstance(name, str) or not name or set(name) & {BETWEEN, ":"}:
            raise InputError("name of a body", value=name, expected="text without '/' and ':'")
        check_kind(f"body {name!r}", body, Skeleton, "sy.load_skeleton(path) reads one")


def _split(frame: Any, bodies: Mapping[str, Skeleton]) -> tuple[str, str]:
    """Split names such as ``"cart/plate"`` and ``"link:cart/plate"`` into a body and its frame."""
    kind, named = kind_and_name(frame) if isinstance(frame, str) else (None, "")
    body, _, inner = named.partition(BETWEEN)
    if not inner:
        raise InputError("on=", value=frame, expected="a body and its frame, such as 'cart/plate'")
    if body not in bodies:
        raise unknown_name("body", body, bodies, where="on=")
    return body, inner if kind is None else f"{kind}:{inner}"


def _carriers_first(bodies: Mapping[str, Skeleton], on: Mapping[str, str]) -> list[str]:
    """Return the bodies in their order, but each after the body on which it is mounted."""
    order: list[str] = []
    for body in bodies:
        line = [body]
        while line[-1] in on:
            below = _split(on[line[-1]], bodies)[0]
            if below in line:
                circle = " on ".join(repr(name) for name in [*line, below])
                raise InputError("on=", value=circle, expected="bodies that are not mounted on each other in a cycle")
            line.append(below)
        order += [name for name in reversed(line) if name not in order]
    return order


def _up_of(body: Skeleton) -> str | None:
    """Return the axis of a body that points up: from its file, else from its rest pose if it stands, else None."""
    found = find_up(body)
    return found.nearest if found.certainty >= SHOWN else None


def _assumed(body: Skeleton, unit: float | None, own: str | None, up: str | None) -> list[str]:
    """Return sentences about unknown units or axes of bodies, which are assumed to equal those of the other bodies.

    Args:
        body: The body.
        unit: The unit of the result.
        own: The axis of the body that points up, if it is known.
        up: The axis of the result that points up.
    """
    notes: list[str] = []
    if body.meters_per_unit is None and unit is not None:
        notes.append(f"Its length unit is unknown, and assumed to be {unit:g} m, as in the other bodies.")
    if own is None and up is not None:
        notes.append(f"Its axis that points up is unknown, and assumed to be {up}, as in the other bodies.")
    return notes


def _factor(body: Skeleton, unit: float | None) -> float:
    """Return the factor from the unit of a body to the unit of the combined skeleton; 1 if a unit is unknown."""
    return 1.0 if body.meters_per_unit is None or unit is None else body.meters_per_unit / unit


def _lengths(body: Skeleton, factor: float) -> Array:
    """Return the factor of each joint value of a body, (nq,): ``factor`` for lengths, 1 for other values."""
    out = np.ones(body.nq)
    for row, joint in enumerate(body.joints):
        at = body.q_slice(row)
        if joint.kind is Kind.SLIDE:
            out[at] = factor
        elif joint.kind is Kind.FREE:
            out[at.start : at.start + 3] = factor
    return out


def _stretched(transform: Array, factor: float) -> Array:
    """Return a transform (4, 4) with its position multiplied by a factor."""
    out = transform.copy()
    out[:3, 3] *= factor
    return out


def _scaled(joint: Joint, factor: float, own: Skeleton) -> Joint:
    """Return a joint with all lengths multiplied by a factor."""
    if factor == 1.0:
        return joint
    slides = factor if joint.kind is Kind.SLIDE else 1.0
    limit, mimic = joint.limit, joint.mimic
    if isinstance(limit, Interval):
        limit = Interval(limit.lower * slides, limit.upper * slides)
    if mimic is not None:
        leads = factor if own.joint(mimic.leader).kind is Kind.SLIDE else 1.0
        mimic = replace(mimic, ratio=mimic.ratio * slides / leads, offset=mimic.offset * slides)
    return replace(
        joint,
        rest=_stretched(joint.rest, factor),
        limit=limit,
        mimic=mimic,
        com=joint.com * factor,
        preferred=None if joint.preferred is None else joint.preferred * slides,
        velocity=None if joint.velocity is None else joint.velocity * slides,
        sites=tuple(Site(site.name, _stretched(site.rest, factor)) for site in joint.sites),
        shapes=tuple(shape.scaled(factor) for shape in joint.shapes),
    )


def _called(body: str, name: str) -> str:
    """Return the name of a joint, link or site of a body in the combined skeleton."""
    kind, bare = kind_and_name(name)
    return f"{body}{BETWEEN}{bare}" if kind is None else f"{kind}:{body}{BETWEEN}{bare}"


def _address(body: Skeleton, frame: str | int) -> str:
    """Return a name of a joint's frame that is not a role.

    Raises:
        InputError: If several joints have this name, so that only the row is unique.
    """
    row = body.index(frame)
    found = body.address(row)
    if isinstance(found, int):
        name = body.joint_names[row]
        raise InputError(
            f"joint {name!r}", where=body.name, expected="a name that no other joint has", hint="rename the joint"
        )
    return found


def _renamed_tie(tie: Tie, own: Skeleton, factor: float, called: partial[str], ground: tuple[str | None, Array]) -> Tie:
    """Convert a loop or coupling of a body to the combined skeleton.

    Args:
        tie: The loop or coupling.
        own: The body.
        factor: Factor of the body's lengths.
        called: Returns the name of a joint in the combined skeleton.
        ground: (joint on which the body is mounted, or None for the world; frame (4, 4) of the body on it).
    """
    if isinstance(tie, Coupling):
        terms: dict[str, tuple[float, ...]] = {}
        for row, factors in zip(tie.joint_rows(own), tie.terms.values(), strict=True):
            unit = factor if own.joints[row].kind is Kind.SLIDE else 1.0
            joint = _address(own, row)
            terms[called(joint)] = tuple(each / unit**power for power, each in enumerate(factors, start=1))
        return Coupling(terms, tie.equals, name=called(tie.label))
    (row, offset), (other, other_offset) = tie.ends(own)
    second = ground[0] if other < 0 else called(_address(own, other))
    far = _stretched(other_offset, factor)
    return Loop(
        called(_address(own, row)),
        second,
        tie.kind,
        offset=_stretched(offset, factor),
        other_offset=ground[1] @ far if other < 0 else far,
        distance=None if tie.distance is None else tie.distance * factor,
        name=called(tie.label),
    )


def _renamed(joint: Joint, called: partial[str]) -> Joint:
    """Return a joint with its names in the combined skeleton."""
    mimic = joint.mimic
    return replace(
        joint,
        name=called(joint.name),
        body=None if joint.body is None else called(joint.body),
        mimic=None if mimic is None else Mimic(called(mimic.leader), mimic.ratio, mimic.offset, mimic.binds),
        sites=tuple(Site(called(site.name), site.rest) for site in joint.sites),
    )
