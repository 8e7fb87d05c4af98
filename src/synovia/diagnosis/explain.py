"""Explain a solution in sentences: how it ended, the size of each miss, and its causes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from synovia.bodies.standing import lean_of
from synovia.diagnosis.allowed import allowed_sentences, rows_at_limits
from synovia.diagnosis.loops import loop_sentences, loops_of_misses, rows_in_loops
from synovia.diagnosis.units import unit_hint
from synovia.goals import ClearanceGoal, Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import CompiledProblem
from synovia.ik.solution import Reason, Relief, Solution, gap_text, length_text
from synovia.ik.status import REACHED_ONLY, Status
from synovia.model import Kind, Pose
from synovia.model.geometry import Array
from synovia.model.limits import Interval
from synovia.model.shapes.distances import Contact
from synovia.model.tree import ancestors
from synovia.problem.structure import above as moving_above
from synovia.problem.structure import freedoms
from synovia.text import counted, first_few

_MOST_JOINTS = 6  # largest number of joint names in a sentence
_LEANS = math.radians(25.0)  # smallest lean of the trunk that is reported, radians
_PRESSED = 3.0  # tolerances: a pair counts as in contact if its gap exceeds the required distance by less
_POSITION_ROWS = 3  # number of residual rows of a position
_STALLED = "Stalled: no small step lowers the error."
_SPENT = "Out of steps: the error was still decreasing. To continue, solve again from this pose."
_LATE = "Out of time: the deadline stopped the solve. Allow more time, or solve again from this pose."
_CUT = "Limited: joint limits changed the closed-form answer. Another pose within the limits may be nearer."
_UNREACHABLE = "Unreachable: it is proved that no pose within the joint limits meets the goals{0}."
_BY_FORM = "The closed form of {0!r} proves it."
_CLOSED = "Stalled: the settings of the solver limit its closed-form answer; the target may be within reach."
_HELD = {
    "smoothness": "Smoothed: the goals were met before smoothness= was applied. Lower it, or slow the targets down.",
    "velocity": "Too fast: the goals were met before velocity= was applied. Raise it, or slow the targets down.",
}


def explain(solution: Solution) -> list[str]:
    """Return the sentences of ``Solution.explain``.

    They describe how the solve ended, missed goals and their causes, active limits, limbs that bent to an undefined
    side, and changes of the start.
    """
    if solution.refusal is not None:
        return [solution.status.meaning, str(solution.refusal)]
    ik = solution.ik
    say = partial(length_text, meters_per_unit=ik.skeleton.meters_per_unit)
    misses: list[str] = []
    for i in solution.missed:
        goal = solution.goals[i]
        most = (goal.own_tolerance or ik.tolerance[0], ik.tolerance[1])
        length, angle = (error if error > bound else 0.0 for error, bound in zip(solution.errors[i], most, strict=True))
        misses.append(f"Goal {goal.label!r} {goal.describe_miss(length, angle, say)}.")
    if solution.frame is not None and solution.frame.held is not None:
        return [_HELD[solution.frame.held], *misses]
    causes = [] if solution.reached else _causes(solution)
    conflict = solution.known_conflict
    reasons = solution.reasons if solution.missed and ik.has_reasons and conflict is None else ()
    at_limits, locked = limits_in_the_way(solution, reasons)
    lines = [*_ending(solution, causes, at_limits, locked), *misses]
    if hint := unit_hint(solution):
        lines.append(hint)
    if at_limits and solution.status is not Status.LIMITED:
        lines.append(f"At a limit: {_listed(at_limits)}.")
    if locked:
        lines.append(f"Locked by limits that leave one value: {_listed(locked)}.")
    lines += allowed_sentences(solution)
    lines += causes
    lines += _reason_sentences(solution, reasons)
    if conflict is not None:
        levels = len({goal.rank for goal in ik.goals if goal.rows})
        known = solution.known_proof
        stated = conflict.proof is not None and known is not None and conflict.proof.claim == known.claim
        lines += conflict.sentences(ik.skeleton.meters_per_unit, levels, stated)
    lines += _undecided(solution)
    lines += contact_sentences(solution)
    lines += loop_sentences(solution)
    lines += solution.notes
    lines += _leaning(solution)
    if clamped := solution.start_clamped:
        lines.append(f"The start was outside the limits of {_listed(clamped)}; it was moved to the limits first.")
    if not solution.reached and solution.attempts > 1:
        proved = solution.status is Status.UNREACHABLE and solution.attempts < ik.solver.search.attempts
        why = " No more were made, because the goals are proved to be unreachable." if proved else ""
        lines.append(f"The best of {solution.attempts} attempts was attempt {solution.attempt}.{why}")
    taken = solution.finish_steps
    if taken and ik.solver.finish:
        lines.append(f"The method finish={ik.solver.finish!r} took the last {taken} steps.")
    elif taken and ik.solver.follow_finish:
        lines.append(f"Newton's method took the last {taken} steps, so that the pose stays close to the previous one.")
    return lines


def _undecided(solution: Solution) -> list[str]:
    """Return a sentence for each missed position if a search found neither a pose nor a proof."""
    conflict = solution.known_conflict
    proved = conflict is not None and conflict.proof is not None
    if not solution.proof_tried or proved or solution.status is Status.UNREACHABLE:
        return []
    lines: list[str] = []
    unit = solution.ik.skeleton.meters_per_unit
    for i in solution.missed:
        error, goal = solution.errors[i].position, solution.goals[i]
        if goal.constrained_parts & POSITION and error > (goal.own_tolerance or solution.ik.tolerance[0]):
            gap = length_text(error, unit)
            lines.append(f"Not decided for {goal.label!r}: the smallest miss is between 0 and {gap}.")
    return lines


def _leaning(solution: Solution) -> list[str]:
    """Return a list with a sentence if the goals make the trunk of a standing body lean far; else an empty list."""
    for goal in solution.goals:
        if not getattr(goal, "root", 0.0) > 0.0:
            continue
        given = getattr(goal, "pose", None)
        reference = given if isinstance(given, Pose) else solution.ik.skeleton.rest_pose()
        lean = lean_of(solution.pose, reference)
        if lean is not None and lean >= _LEANS:
            return [f"The trunk leans by {math.degrees(lean):.0f} deg from its posture, because of the other goals."]
    return []


def _ending(solution: Solution, causes: Sequence[str], at_limits: Sequence[str], locked: Sequence[str]) -> list[str]:
    """Return sentences about how a solve ended: its status and main cause, with figures.

    Args:
        solution: The solution.
        causes: Causes that more attempts cannot remove.
        at_limits: Joints of the missed goals that are at a limit.
        locked: Joints of the missed goals whose limits allow only one value.
    """
    status, closed = solution.status, solution.ik.method.closed
    if status is Status.UNREACHABLE:
        known = solution.known_proof
        claim = [] if known is None else [known.claim]
        proved = [f"Unreachable: {line}" for line in _reach_sentences(solution)]
        if not proved:
            proved = [_UNREACHABLE.format(_in_place(solution, solution.missed))]
            proved += [_BY_FORM.format(solution.ik.solver.name)] if closed and not claim else []
        return [*proved, *claim]
    if status is Status.STALLED and (causes or closed or _is_pinned(solution)):
        return [_CLOSED if closed else _STALLED]
    if solution.interrupted and not solution.reached:
        return [_LATE]
    if status is Status.MAX_STEPS:
        steps = counted(solution.steps, "step")
        return [_SPENT if solution.ik.solver.bounds_motion else f"{status.meaning} It took {steps}."]
    if status is Status.LIMITED and closed:
        return [_CUT]
    if status is Status.LIMITED:
        tied = [tie.label for tie, rows in loops_of_misses(solution) if rows]
        closed_too = f" that keeps {'loop' if len(tied) == 1 else 'loops'} {_listed(tied)} closed" if tied else ""
        if at_limits or locked or tied:
            held = f"{_listed(at_limits)} at a limit. No" if at_limits else "no"
            return [f"Limited: {held} small step within the limits{closed_too} lowers the error."]
    if status is Status.CONFLICT and solution.missed:
        names = _listed([solution.goals[i].label for i in solution.missed])
        others = " together with the other goals" if len(solution.missed) == 1 else " together"
        if solution.known_conflict is not None:
            return [f"Conflict: {names} {'is' if len(solution.missed) == 1 else 'are'} missed, because goals conflict."]
        other = "Try other goals" if _is_pinned(solution) else "Try more attempts or other goals"
        return [f"Conflict: {names} cannot be met{others} near this pose. {other}."]
    if status is Status.REACHED and any(goal.needs == "clearance" for goal in solution.goals):
        return [REACHED_ONLY]
    return [status.meaning]


def _is_pinned(solution: Solution) -> bool:
    """Return whether limits fix all joints that move a goal, so that all attempts give the same pose."""
    reduced = solution.ik.reduced
    return not any(freedoms(reduced, row) for row in range(len(reduced.rows)))


def _causes(solution: Solution) -> list[str]:
    """Return those causes of a miss that need no search: too few joints, settings, limited rotation towards a pole."""
    ik = solution.ik
    missed = [solution.goals[i] for i in solution.missed]
    lines = [*_too_few(solution), *ik.solver.reasons(missed)]
    poles = any(goal.turns_limb for goal in missed)
    if solution.frame is not None and solution.frame.follows and poles and (pace := ik.solver.pole_pace):
        lines.append(f"In a track, the plane of a limb turns towards its pole by at most {pace}.")
    return lines


def _listed(names: Sequence[str]) -> str:
    """Return a text with the first few names and the number of further names."""
    shown = ", ".join(repr(name) for name in names[:_MOST_JOINTS])
    return shown + (f" and {len(names) - _MOST_JOINTS} more" if len(names) > _MOST_JOINTS else "")


def _chain(ik: CompiledProblem, i: int, row: int) -> list[int]:
    """Return the rows of joints from a joint of goal i up to the topmost moving joint that the goal may use."""
    rows = ancestors(ik.skeleton.parents, row) if row >= 0 else []
    if (most := ik.goals[i].ancestors) is not None:
        rows = rows[: most + 1]
    while len(rows) > 1 and rows[-1] not in ik.moving:
        rows.pop()
    return rows


def _in_place(solution: Solution, goals: Sequence[int]) -> str:
    """Return the text " while free joints stay in place" if such joints could move the goals; else ""."""
    ik = solution.ik
    if ik.allowed is not None:
        return " while the joints that may not move stay as they are"
    joints, reduced = ik.skeleton.joints, ik.reduced
    chains = [ancestors(ik.skeleton.parents, end) for i in goals for end in ik.goal_joints[i] if end >= 0]
    rows = {row for chain in chains for row in chain if joints[row].kind is Kind.FREE}
    rows -= reduced.translating
    if not rows:
        return ""
    names = _listed([joints[row].name for row in sorted(rows)])
    first = min(rows)
    is_root = all(joints[row].kind is Kind.FIXED for row in ancestors(ik.skeleton.parents, first)[1:])
    hint = f"; root='free' (--root free) moves {joints[first].name!r}" if is_root and ik.root == "fixed" else ""
    return f" while free joints stay in place ({names}){hint}"


def limits_in_the_way(solution: Solution, reasons: Sequence[Reason]) -> tuple[list[str], list[str]]:
    """Return names of joints at a limit, and of locked joints, that move a missed goal or are named in a reason."""
    ik = solution.ik
    rows = {row for i in solution.missed for end in ik.goal_joints[i] for row in _chain(ik, i, end)}
    rows |= rows_in_loops(solution)
    named = {limit.name for reason in reasons for limit in reason.limits}
    whole = any(not ik.goal_joints[i] for i in solution.missed)  # whether a goal of the whole body is missed
    found: tuple[list[str], list[str]] = ([], [])
    for row in () if solution.reached else rows_at_limits(solution):
        name, limit = ik.skeleton.joint_names[row], ik.skeleton.joints[row].limit
        if whole or row in rows or name in named:
            found[isinstance(limit, Interval) and limit.locked].append(name)
    return found


def _too_few(solution: Solution) -> list[str]:
    """Return a sentence for each missed position or rotation with fewer moving joint values than residual rows."""
    ik = solution.ik
    lines: list[str] = []
    for i in solution.missed:
        goal = solution.goals[i]
        count, rows = freedoms(ik.reduced, ik.reduced.row_of_goal(i)), 3 * goal.constrained_parts.bit_count()
        if 0 < count < rows:
            what = {POSITION: "position", ROTATION: "rotation"}.get(goal.constrained_parts, "pose")
            moves = "joint value moves" if count == 1 else "joint values move"
            lines.append(
                f"Only {count} {moves} {goal.label!r}, but a {what} needs {rows}: "
                "most targets within reach cannot be met exactly."
            )
            if goal.constrained_parts == POSITION | ROTATION and count >= _POSITION_ROWS:
                lines[-1] += f" A PositionGoal needs only {_POSITION_ROWS}; an AimGoal can be added to it."
    return lines


def _origin(solution: Solution, row: int) -> Array:
    """Return the position of a joint's origin before its own motion, (3,)."""
    skeleton = solution.pose.skeleton
    above, rest = int(skeleton.parents[row]), skeleton.joints[row].rest
    return rest[:3, 3] if above < 0 else (solution.pose.transform(above) @ rest)[:3, 3]


class Span(NamedTuple):
    """First moving joint of a chain, its position (3,), and the least and largest distance from it to the tip."""

    first: int
    origin: Array
    nearest: float
    farthest: float


def span_of(solution: Solution, i: int) -> Span | None:
    """Return the distances that the chain of goal i can reach if other joints stay in place; None if its root moves.

    This is the bound of ``kernels.goals.reach``, which proves misses from the distances between moving joints.
    """
    ik, pose, reduced = solution.ik, solution.pose, solution.ik.reduced
    chain: list[int] = reduced.joints[moving_above(reduced, reduced.row_of_goal(i))].tolist()
    if not reduced.translating.isdisjoint(chain):
        return None
    near = far = np.linalg.norm((pose.transform(ik.rows[i]) @ solution.goals[i].frame)[:3, 3] - pose.position(chain[0]))
    spans = [(float(near), float(far))]
    origin = pose.position(chain[0])
    for joint, above in zip(chain, [*chain[1:], None], strict=True):
        is_slide = ik.skeleton.joints[joint].kind is Kind.SLIDE
        origin = _origin(solution, joint) if is_slide else pose.position(joint)
        to_joint = np.zeros(3) if above is None else origin - pose.position(above)
        ends = [to_joint]
        if is_slide:
            axis = pose.transform(joint)[:3, :3] @ ik.skeleton.joints[joint].axis
            low, high = ik.skeleton.value_range(joint)
            nearest = min(max(-float(axis @ to_joint), low), high)
            ends = [to_joint + value * axis for value in (nearest, low, high)]
        lengths = [float(np.linalg.norm(end)) for end in ends]
        spans.append((lengths[0], max(lengths)))
    farthest = sum(far for _, far in spans)
    nearest = max(near + far for near, far in spans) - farthest
    return Span(chain[-1], origin, nearest, farthest)


def _reach_sentences(solution: Solution) -> list[str]:
    """Return a clause for each position goal whose target is too far or too near, with its distance and the limit.

    Distances are from the first moving joint of the chain. The chain reaches at most the sum of its lengths. A bone
    longer than all others together leaves an unreachable ball around that joint.
    """
    ik = solution.ik
    names, unit = ik.skeleton.joint_names, ik.skeleton.meters_per_unit
    lines: list[str] = []
    for i in solution.missed:
        goal = solution.goals[i]
        parts = goal.pose_parts or goal.constrained_parts
        if not parts:
            continue
        rows = _chain(ik, i, ik.rows[i])
        if ik.moving.isdisjoint(rows):
            root = ik.root == "fixed" and goal.ancestors is None and ik.allowed is None
            free = "; it is part of the fixed root. Use root='free' (--root free) to move it" if root else ""
            which = "joint" if ik.allowed is None else "joint that may move"
            lines.append(f"no {which} moves {goal.label!r}{free}.")
            continue
        span = span_of(solution, i) if parts & POSITION else None
        if span is None:
            continue
        near, far = goal.distances(solution.targets[i], span.origin)
        bound = f"reaches {length_text(span.farthest, unit)} at most" if near > span.farthest else ""
        if far < span.nearest:
            bound = f"comes no nearer than {length_text(span.nearest, unit)}"
        if bound:
            beyond = near > span.farthest
            what = "target" if near == far else f"{'nearest' if beyond else 'farthest'} place within the bounds"
            away = length_text(near if beyond else far, unit)
            if beyond and bound == f"reaches {away} at most":  # distance and bound round to the same number
                bound = f"ends {length_text(near - span.farthest, unit)} before it"
            lines.append(
                f"the {what} of {goal.label!r} is {away} from {names[span.first]!r}, the first "
                f"joint that moves; the chain from there {bound}{_in_place(solution, [i])}.{_held(ik, i, span.first)}"
            )
    return lines


def _held(ik: CompiledProblem, i: int, row: int) -> str:
    """Return a sentence if the closed form of goal i fixes joints above a row that other solvers move; else ""."""
    above = ancestors(ik.skeleton.parents, row)[1:]
    held = any(ik.skeleton.joints[k].kind not in (Kind.FIXED, Kind.FREE) for k in above)
    if not (held and ik.solver.closed and ik.goals[i].ancestors is None):
        return ""
    return f" The joints above it stay as they are with {ik.solver.name!r}; the solver 'lm' moves them too."


def _reason_sentences(solution: Solution, found: Sequence[Reason]) -> list[str]:
    """Return sentences about the reasons of missed goals."""
    ik = solution.ik
    unit = ik.skeleton.meters_per_unit
    lines: list[str] = []
    for reason in found:
        goal = ik.goals[reason.goal]
        for rival in reason.rivals[:2]:
            other = next(g for g in ik.goals if g.label == rival.name)
            above = "a higher priority" if other.rank < goal.rank else "the same priority"
            lines.append(f"{rival.name!r}, of {above}, prevents {goal.label!r}: without it, {_left(ik, goal, rival)}.")
        if reason.limits:
            best = reason.limits[0]
            without = _left(ik, goal, best)
            lines.append(f"The limit of {best.name!r} hinders {goal.label!r} most: without it, {without}.")
        parts: list[str] = []
        if _met(ik, reason):
            lines.append(f"{goal.label!r} can be met together with the others. Try another start or more attempts.")
            continue
        if reason.move is not None:
            toward = ", ".join(f"{x:.4g}" for x in reason.move)
            parts.append(f"move by {length_text(float(np.linalg.norm(reason.move)), unit)} ({toward})")
        if reason.turn is not None and (reason.move is None or float(np.linalg.norm(reason.turn)) > ik.tolerance[1]):
            parts.append(f"turn by {math.degrees(float(np.linalg.norm(reason.turn))):.3g} deg")
        if parts:
            along = f", together with {', '.join(map(repr, reason.along))}" if reason.along else ""
            how = " and ".join(parts)
            lines.append(f"The target of {goal.label!r} would have to {how} to meet all goals{along}.")
    return lines


def contact_sentences(solution: Solution) -> list[str]:
    """Return sentences about pairs that are too near, and pairs in contact that may block missed goals."""
    goals = [goal for goal in solution.goals if isinstance(goal, ClearanceGoal)]
    if not goals or not solution.missed:
        return []
    unit = solution.ik.skeleton.meters_per_unit
    least, slack = max(goal.distance for goal in goals), solution.ik.tolerance[0]
    near = [contact for contact in solution.contacts if contact.distance < least + _PRESSED * slack]
    too_near = [f"{_pair(one)} ({gap_text(one.distance, unit)})" for one in near if one.distance < least]
    lines = [f"Too near: {first_few(too_near)}."] if too_near else []
    if any(not isinstance(solution.goals[i], ClearanceGoal) for i in solution.missed):
        pressed = [_pair(one) for one in near if one.distance >= least]
        lines += [f"In contact: {first_few(pressed)}."] if pressed else []
    return lines


def _pair(contact: Contact) -> str:
    """Return the names of the two shapes of a contact as text."""
    first, second = contact.pair or ("", "")
    return f"{first!r} against {second!r}"


def _met(ik: CompiledProblem, reason: Reason) -> bool:
    """Return whether a goal can be met without moving any target, according to its reason."""
    ways = zip((reason.move, reason.turn), ik.tolerance, strict=True)
    known = [(way, most) for way, most in ways if way is not None]
    return bool(known) and not reason.along and all(float(np.linalg.norm(way)) <= most for way, most in known)


def _left(ik: CompiledProblem, goal: Goal, relief: Relief) -> str:
    """Return a text with the error of a goal that remains after the removal of a rival or limit."""
    error, unit = relief.error, ik.skeleton.meters_per_unit
    if error.position <= ik.tolerance[0] and error.angle <= ik.tolerance[1]:
        return "the goal would be met"
    parts = [length_text(error.position, unit)] if goal.measures & POSITION else []
    parts += [f"{math.degrees(error.angle):.3g} deg"] if goal.measures & ROTATION else []
    return f"{' and '.join(parts)} would remain"
