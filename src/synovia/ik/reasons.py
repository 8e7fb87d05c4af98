"""Why a goal is missed, found by solving variations of the problem from the pose of the miss.

- Without another goal of the same or a higher priority: does it come nearer? Then that goal is a rival.
- Without the limit of one joint: does it come nearer? Then that limit is in its way.
- With the goal below all others: where it ends then is the nearest place to which its target could move.

So every reason holds when somebody acts on it. Where no target alone can move so that all goals hold, those of all
missed goals move together, each to where the best pose has its goal.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from synovia.batch import Watch, new_scratch
from synovia.goals import CenterOfMassGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.solution import GoalError, Solution, rows_of
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.pose import inside_limits
from synovia.model.tree import ancestors

if TYPE_CHECKING:
    from synovia.goals import Goal
    from synovia.ik.ik import IK

_GAIN = 0.01  # share of a miss that must go away for something to count as its reason
_ATTEMPTS = 40  # in search of the nearest place: among all poses, not only near the present one
_SETTLED = 3  # of these attempts, the best, are settled
_MOST_LIMITS = 24  # that are tried; each is a solve


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
        pose: A pose in which all goals hold after that: the one to start from, since a solver may need many attempts to
            find it.
    """

    goal: int
    rivals: tuple[Relief, ...]
    limits: tuple[Relief, ...]
    move: Array | None
    turn: Array | None
    along: tuple[str, ...] = ()
    pose: Pose | None = None


class Way(NamedTuple):
    """How a target would have to move and turn, and the pose in which all goals hold then."""

    move: Array | None = None
    turn: Array | None = None
    pose: Pose | None = None


_NOWHERE = Way()


def reasons(solution: Solution) -> tuple[Reason, ...]:
    """Return a reason for each missed goal: some tenths of a second for a character, seconds for many limits.

    Everything is tried at once, on all cores: the trials know nothing of each other.
    """
    missed = solution.missed
    goals = _of(solution).goals
    found: list[Reason] = []
    watch = Watch()
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        nearest = pool.map(partial(_nearest, solution, watch=watch), missed)
        ways = dict(zip(missed, nearest, strict=True))
        together = len(missed) > 1 and all(way is _NOWHERE for way in ways.values())
        if together:
            ways = _together(solution, watch)
        for i in missed:
            along = tuple(goals[j].label for j in ways if together and i in ways and j != i)
            found.append(_reason(solution, i, ways.get(i, _NOWHERE), along, pool, watch))
    except BaseException:
        watch.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return tuple(found)


def _reason(
    solution: Solution, i: int, way: Way, along: tuple[str, ...], pool: ThreadPoolExecutor, watch: Watch
) -> Reason:
    """Return why goal i is missed."""
    ik = _of(solution)

    def without_goal(j: int) -> Relief:
        rest = [k for k in range(len(ik.goals)) if k != j]
        tried = _solve(solution, _given(ik), [ik.goals[k] for k in rest], rest, watch, attempts=1)
        return Relief(ik.goals[j].label, tried.errors[rest.index(i)])

    def without_limit(name: str) -> Relief:
        every = range(len(ik.goals))
        tried = _solve(solution, _without_limit(_given(ik), name), ik.goals, every, watch, attempts=1)
        return Relief(name, tried.errors[i])

    others = [j for j, other in enumerate(ik.goals) if j != i and other.rows and other.priority <= ik.goals[i].priority]
    rivals = list(pool.map(without_goal, others))
    limits = list(pool.map(without_limit, _limits_that_count(solution, i)[:_MOST_LIMITS]))
    now = _size(ik, solution.errors[i])
    return Reason(i, _reliefs(ik, rivals, now), _reliefs(ik, limits, now), way.move, way.turn, along, way.pose)


def _limits_that_count(solution: Solution, i: int) -> list[str]:
    """Return the joints at a limit on which goal i hangs, then those that hold goals of no lower priority."""
    ik = _of(solution)
    goals = [i] + [k for k, goal in enumerate(ik.goals) if goal.rows and goal.priority <= ik.goals[i].priority]
    at_limit = ik.at_limits(solution.pose)
    names: dict[str, None] = {}
    for goal in goals:
        for row in ik.hangs[goal]:
            names |= dict.fromkeys(ik.skeleton.joint_names[above] for above in ancestors(ik.skeleton.parents, row))
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
    """Return the skeleton with one joint unlimited, also by those that follow it."""
    row = skeleton.index(name)
    joints = [*skeleton.joints]
    joints[row] = dataclasses.replace(joints[row], limit=None)
    tables = skeleton.tables
    elements = tables.followers[tables.followers[:, 1] == tables.ints[row, 2], 0]
    for other, joint in enumerate(joints):
        if joint.mimic is not None and joint.mimic.binds and tables.ints[other, 2] in elements:
            joints[other] = dataclasses.replace(joint, mimic=dataclasses.replace(joint.mimic, binds=False))
    return skeleton.with_joints(joints)


def _solve(
    solution: Solution,
    skeleton: Skeleton,
    goals: Sequence[Goal],
    places: Sequence[int],
    watch: Watch,
    attempts: int,
) -> Solution:
    """Return the answer for some of the goals, with the targets that they had, from the pose of the miss.

    Args:
        solution: The miss.
        skeleton: The skeleton that was given, perhaps with another limit.
        goals: The goals.
        places: Where each stands among those of the miss.
        watch: When to stop.
        attempts: Starts, random ones after the first.
    """
    from synovia.ik.ik import IK

    ik = _of(solution)
    settings = ik.solver.unhindered().replace(attempts=1)
    again = IK(skeleton, goals, settings, tolerance=ik.tolerance, root=ik.root)
    table = np.zeros((len(goals), 17))
    table[:, :16] = solution.targets[list(places)].reshape(-1, 16)
    table[:, 16] = [goal.takes for goal in again.goals]
    return _answer(again, table, solution.pose.q, watch, attempts)


def _answer(ik: IK, table: Array, q: Array, watch: Watch, attempts: int) -> Solution:
    """Return the best answer to targets (goals, 17) as the kernels take them, from joint values and from random ones.

    One by one, since a solver gives up at once what it proves to be out of reach.

    Args:
        ik: The problem, for one attempt.
        table: The targets.
        q: Joint values (nq,).
        watch: When to stop.
        attempts: Starts.
    """
    starts = np.repeat(q[None], attempts, axis=0)  # np.tile gives a view, which cannot be written, of no numbers
    for k in range(1, attempts):
        other = ik.skeleton.random_pose(k).q
        for row, joint in enumerate(ik.skeleton.joints):
            if joint.kind is not Kind.FREE:
                starts[k, ik.skeleton.q_slice(row)] = other[ik.skeleton.q_slice(row)]
    inside = inside_limits(ik.skeleton, starts)
    rows, scratch = rows_of(ik, attempts), new_scratch(ik._scratch_size)
    with watch.over(scratch):
        ik._kernel(ik._ints, ik._floats, np.tile(table, (attempts, 1, 1)), inside, rows, scratch, False, 0)
        found = [Solution(ik, rows, Pose(ik.skeleton, inside[b]), b=b) for b in range(attempts)]
        found = sorted(found, key=_levels)[:_SETTLED]
        for one in found:
            ik._conclude(inside[one._b : one._b + 1], rows[one._b : one._b + 1], scratch)
    return min(found, key=_levels)


def _levels(solution: Solution) -> tuple[float, ...]:
    """Return the squared error of each level, the highest first; nothing where it holds."""
    ik = _of(solution)
    out = dict.fromkeys(sorted({goal.priority for goal in ik.goals}), 0.0)
    errors = solution.errors
    for i in solution.missed:
        goal = ik.goals[i]
        out[goal.priority] += goal.weight * _size(ik, errors[i]) ** 2
    return tuple(round(square, 12) for square in out.values())


def _nearest(solution: Solution, i: int, watch: Watch) -> Way:
    """Return how far goal i's target would have to move and turn to hold together with all others."""
    ik = _of(solution)
    if not _can_move(ik, i):
        return _NOWHERE
    lowest = 1 + max(other.priority for other in ik.goals)
    goals = [other.at_priority(lowest) if k == i else other for k, other in enumerate(ik.goals) if other.rows]
    places = [k for k, other in enumerate(ik.goals) if other.rows]
    at = places.index(i)
    tried = _solve(solution, _given(ik), goals, places, watch, attempts=_ATTEMPTS)
    return _NOWHERE if any(k != at for k in tried.missed) else _way(tried, at)


def _together(solution: Solution, watch: Watch) -> dict[int, Way]:
    """Return how far the targets of all goals that the best pose misses would have to move and turn; {} if one cannot.

    Of many attempts, or the one that is asked about where none is better.
    """
    ik = _of(solution)
    best = _solve(solution, _given(ik), ik.goals, range(len(ik.goals)), watch, attempts=_ATTEMPTS)
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
        return Way(move, None, tried.pose)
    if goal.place & ROTATION:
        return Way(move, Rotation.from_matrix(at[:3, :3] @ target[:3, :3].T).as_rotvec(), tried.pose)
    normal, _ = Rotation.align_vectors(at[None, :3, 2], target[None, :3, 2])  # of the sole: the smallest turn
    return Way(move, normal.as_rotvec(), tried.pose)
