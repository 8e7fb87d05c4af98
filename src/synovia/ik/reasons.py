"""Why a goal is missed, found by trying: what it would do without another goal or a limit, and where it would be met.

Each answer is a solve of its own from the pose of the miss: without a rival, without one joint's limit, and with the
goal below all others. So every reason is one that holds when it is acted upon. Where no goal alone can move for all to
hold, those that are missed do so together, each to where the best pose has it.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from synovia.geometry import Array
from synovia.goals import CenterOfMassGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.solution import GoalError, Solution, length_text, rows_of
from synovia.skeleton import Pose, Skeleton

if TYPE_CHECKING:
    from synovia.goals import Goal
    from synovia.ik.ik import IK

_GAIN = 0.01  # part of a miss that must go away for something to be its reason
_ATTEMPTS = 40  # for the nearest place that a goal can have: of all poses, not only those near the present one
_MOST_LIMITS = 24


class Relief(NamedTuple):
    """What is left of a miss without one thing: a goal's label or a joint's name, and the error then."""

    name: str
    error: GoalError


class Reason(NamedTuple):
    """Why one goal is missed.

    Args:
        goal: Its place among the goals.
        rivals: Goals of the same or a higher priority without which it would come nearer, the best first.
        limits: Joints without whose limit it would come nearer, the best first.
        move: World vector (3,), length units, by which its target would have to move for all goals to hold, the others
            where they are; None where nothing of the sort was found, or where it has no target in the world.
        turn: Rotation vector (3,), radians, by which it would have to turn.
        along: Labels of goals whose targets would have to move at the same time, each as its own reason says.
    """

    goal: int
    rivals: tuple[Relief, ...]
    limits: tuple[Relief, ...]
    move: Array | None
    turn: Array | None
    along: tuple[str, ...] = ()


Way = tuple[Array | None, Array | None]  # how a target would have to move and turn
_NOWHERE: Way = None, None


def reasons(solution: Solution) -> tuple[Reason, ...]:
    """Return a reason for each missed goal; some milliseconds each."""
    missed = solution.missed
    ways = {i: _nearest(solution, i) for i in missed}
    together = len(missed) > 1 and all(way is _NOWHERE for way in ways.values())
    if together:
        ways = _together(solution)
    goals = _of(solution).goals
    found: list[Reason] = []
    for i in missed:
        along = tuple(goals[j].label for j in ways if together and i in ways and j != i)
        found.append(_reason(solution, i, ways.get(i, _NOWHERE), along))
    return tuple(found)


def _reason(solution: Solution, i: int, way: Way, along: tuple[str, ...]) -> Reason:
    """Return why goal i is missed."""
    ik = _of(solution)
    rivals: list[Relief] = []
    for j, other in enumerate(ik.goals):
        if j != i and other.rows and other.priority <= ik.goals[i].priority:
            rest = [k for k in range(len(ik.goals)) if k != j]
            tried = _solve(solution, _given(ik), [ik.goals[k] for k in rest], rest, attempts=1)
            rivals.append(Relief(other.label, tried.errors[rest.index(i)]))
    limits: list[Relief] = []
    every = list(range(len(ik.goals)))
    for name in _limits_that_count(solution, i)[:_MOST_LIMITS]:
        tried = _solve(solution, _without_limit(_given(ik), name), ik.goals, every, attempts=1)
        limits.append(Relief(name, tried.errors[i]))
    now = _size(ik, solution.errors[i])
    return Reason(i, _reliefs(ik, rivals, now), _reliefs(ik, limits, now), *way, along)


def _limits_that_count(solution: Solution, i: int) -> list[str]:
    """Return the joints at a limit on which goal i hangs, then those that hold goals of no lower priority."""
    ik = _of(solution)
    goals = [i] + [k for k, goal in enumerate(ik.goals) if goal.rows and goal.priority <= ik.goals[i].priority]
    at_limit = ik.at_limits(solution.pose)
    names: dict[str, None] = {}
    for goal in goals:
        for row in ik.hangs[goal]:
            while row >= 0:
                names[ik.skeleton.joint_names[row]] = None
                row = ik.skeleton.parents[row]
        if not ik.hangs[goal]:  # the whole body
            names |= dict.fromkeys(at_limit)
    return [name for name in names if name in at_limit]


def _of(solution: Solution) -> IK:
    """Return what a solution is the answer of."""
    return solution._ik


def _given(ik: IK) -> Skeleton:
    """Return the skeleton without what a moving root put before it."""
    return ik._given


def _size(ik: IK, error: GoalError) -> float:
    """Return an error as the solvers count it: reaches and radians."""
    return math.hypot(error.position / ik.reach, error.angle)


def _reliefs(ik: IK, found: list[Relief], now: float) -> tuple[Relief, ...]:
    """Return those that lower the error, the best first."""
    useful = [relief for relief in found if _size(ik, relief.error) < (1.0 - _GAIN) * now]
    return tuple(sorted(useful, key=lambda relief: _size(ik, relief.error)))


def _without_limit(skeleton: Skeleton, name: str) -> Skeleton:
    """Return the skeleton with one joint unlimited."""
    row = skeleton.index(name)
    joints = [
        dataclasses.replace(joint, parent=int(parent) if parent >= 0 else None, limit=None if i == row else joint.limit)
        for i, (joint, parent) in enumerate(zip(skeleton.joints, skeleton.parents, strict=True))
    ]
    return Skeleton(
        joints,
        name=skeleton.name,
        meters_per_unit=skeleton.meters_per_unit,
        up=skeleton.up,
        forward=skeleton.forward,
    )


def _solve(
    solution: Solution, skeleton: Skeleton, goals: Sequence[Goal], places: Sequence[int], attempts: int
) -> Solution:
    """Return the answer for some of the goals, with the targets that they had, from the pose of the miss.

    Args:
        solution: The miss.
        skeleton: The skeleton that was given, perhaps with another limit.
        goals: The goals.
        places: Where each stands among those of the miss.
        attempts: Attempts.
    """
    from synovia.ik.ik import IK

    ik = _of(solution)
    settings = ik.solver.unhindered().replace(attempts=attempts)
    again = IK(skeleton, goals, settings, tolerance=ik.tolerance, root=ik.root)
    table = np.zeros((len(goals), 17))
    table[:, :16] = solution.targets[list(places)].reshape(-1, 16)
    table[:, 16] = [goal.takes for goal in again.goals]
    return _answer(again, table, solution.pose.q)


def _answer(ik: IK, table: Array, q: Array) -> Solution:
    """Return the answer to targets (goals, 17) as the kernels take them, from joint values (nq,)."""
    row, scratch = rows_of(ik, 1), np.empty(ik._scratch_size)
    start = Pose(ik.skeleton, q)
    code = ik._kernel(ik._ints, ik._floats, table[None], start.inside, row, scratch, False, 0)
    if code & 1:
        ik._conclude(row, scratch)
    return Solution(ik, row, start)


def _nearest(solution: Solution, i: int) -> Way:
    """Return how far goal i's target would have to move and turn to hold together with all others."""
    ik = _of(solution)
    if not _can_move(ik, i):
        return _NOWHERE
    lowest = 1 + max(other.priority for other in ik.goals)
    goals = [other.at_priority(lowest) if k == i else other for k, other in enumerate(ik.goals) if other.rows]
    places = [k for k, other in enumerate(ik.goals) if other.rows]
    at = places.index(i)
    tried = _solve(solution, _given(ik), goals, places, attempts=_ATTEMPTS)
    return _NOWHERE if any(k != at for k in tried.missed) else _way(tried, at)


def _together(solution: Solution) -> dict[int, Way]:
    """Return how far the targets of all goals that the best pose misses would have to move and turn; {} if one cannot.

    Of many attempts, or the one that is asked about where none is better.
    """
    ik = _of(solution)
    best = _solve(solution, _given(ik), ik.goals, range(len(ik.goals)), attempts=_ATTEMPTS)
    if not set(best.missed) <= set(solution.missed):
        best = solution
    if not all(_can_move(ik, i) for i in best.missed):
        return {}
    return {i: _way(best, i) for i in best.missed}


def _can_move(ik: IK, i: int) -> bool:
    """Return whether goal i has a target in the world that a person could move."""
    goal = ik.goals[i]
    return goal.place > 0 or (isinstance(goal, CenterOfMassGoal) and goal.takes > 0)


def _way(tried: Solution, i: int) -> Way:
    """Return how a goal's target would have to move and turn to be where a pose has the goal."""
    from scipy.spatial.transform import Rotation

    goal, at, target = tried.goals[i], tried.frames[i], tried.targets[i]
    move = at[:3, 3] - target[:3, 3] if goal.takes & POSITION else None
    if not goal.takes & ROTATION:
        return move, None
    if goal.place & ROTATION:
        return move, Rotation.from_matrix(at[:3, :3] @ target[:3, :3].T).as_rotvec()
    normal, _ = Rotation.align_vectors(at[None, :3, 2], target[None, :3, 2])  # of the sole: the smallest turn
    return move, normal.as_rotvec()


def sentences(solution: Solution, found: Sequence[Reason]) -> list[str]:
    """Return the reasons as people read them."""
    ik = _of(solution)
    unit = ik.skeleton.meters_per_unit
    lines: list[str] = []
    for reason in found:
        goal = ik.goals[reason.goal]
        for rival in reason.rivals[:2]:
            other = next(g for g in ik.goals if g.label == rival.name)
            above = "a higher priority" if other.priority < goal.priority else "the same priority"
            lines.append(f"{goal.label!r} lost to {rival.name!r}, of {above}: without it {_left(ik, goal, rival)}.")
        if reason.limits:
            best = reason.limits[0]
            without = _left(ik, goal, best)
            lines.append(f"Of the active limits that of {best.name!r} costs {goal.label!r} most: without it {without}.")
        parts: list[str] = []
        if _met(ik, reason):
            lines.append(f"{goal.label!r} can be met with the others, from another start or with more attempts.")
            continue
        if reason.move is not None:
            toward = ", ".join(f"{x:.4g}" for x in reason.move)
            parts.append(f"move by {length_text(float(np.linalg.norm(reason.move)), unit)} ({toward})")
        if reason.turn is not None and (reason.move is None or float(np.linalg.norm(reason.turn)) > ik.tolerance[1]):
            parts.append(f"turn by {math.degrees(float(np.linalg.norm(reason.turn))):.3g} deg")
        if parts:
            along = f", together with {', '.join(map(repr, reason.along))}" if reason.along else ""
            how = " and ".join(parts)
            lines.append(f"The target of {goal.label!r} would have to {how} for all goals to hold{along}.")
    return lines


def _met(ik: IK, reason: Reason) -> bool:
    """Return whether a target would hold where it is."""
    ways = zip((reason.move, reason.turn), ik.tolerance, strict=True)
    known = [(way, most) for way, most in ways if way is not None]
    return bool(known) and not reason.along and all(float(np.linalg.norm(way)) <= most for way, most in known)


def _left(ik: IK, goal: Goal, relief: Relief) -> str:
    """Return what would be left of a miss, as people read it."""
    error, unit = relief.error, ik.skeleton.meters_per_unit
    if error.position <= ik.tolerance[0] and error.angle <= ik.tolerance[1]:
        return "it would hold"
    parts = [length_text(error.position, unit)] if goal.measures & 1 else []
    parts += [f"{math.degrees(error.angle):.3g} deg"] if goal.measures & 2 else []
    return f"{' and '.join(parts)} would be left"


def as_json(solution: Solution, found: Sequence[Reason]) -> list[dict[str, object]]:
    """Return the reasons as plain values: labels, joint names, length units and radians."""
    goals = _of(solution).goals

    def plain(reliefs: Sequence[Relief]) -> list[dict[str, object]]:
        return [{"name": r.name, "position_error": r.error.position, "angle_error": r.error.angle} for r in reliefs]

    return [
        {
            "goal": goals[reason.goal].label,
            "lost_to": plain(reason.rivals),
            "limits": plain(reason.limits),
            "move": None if reason.move is None else reason.move.tolist(),
            "turn": None if reason.turn is None else reason.turn.tolist(),
            "along": list(reason.along),
        }
        for reason in found
    ]
