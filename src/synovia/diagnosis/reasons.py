"""Find the reasons of missed goals by solving variations of the problem from the pose of the miss.

- Solve without another goal of the same or a higher priority. If the error falls, that goal is a rival.
- Solve without the limit of one joint. If the error falls, that limit hinders the goal.
- Solve with the goal's priority below all others. Its pose is then the nearest pose to which its target could move.

So each suggestion was tried, and works when you follow it. If moving one target is not enough, the targets of all
missed goals move together, each to the pose of its goal in the best solution.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from synovia.diagnosis.allowed import rows_at_limits
from synovia.diagnosis.trials import Variation, size_of, solve_variation
from synovia.files.poses import values_of
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import Watch
from synovia.ik.solution import Reason, Relief, Solution
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.tree import ancestors
from synovia.problem.structure import with_followers

_GAIN = 0.01  # relative decrease of the error: a reason names a goal or limit if its removal gains more
_ATTEMPTS = 40  # number of attempts for the nearest target, so that the search is not only near the current pose
_MOST_LIMITS = 24  # largest number of limits that are tried, with one solve each


class _Way(NamedTuple):
    """A displacement and a rotation of a target, with the pose that then meets all goals."""

    move: Array | None = None
    turn: Array | None = None
    pose: Pose | None = None


_NOWHERE = _Way()


def find_reasons(solution: Solution) -> tuple[Reason, ...]:
    """Return the reason of each missed goal.

    The trials are independent and run on all cores. They take some tenths of a second for a character, and seconds for
    many limits.
    """
    missed = solution.missed
    goals = solution.ik.goals
    found: list[Reason] = []
    watch = Watch()
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        found_ways = pool.map(partial(nearest, solution, watch=watch), missed)
        ways = dict(zip(missed, found_ways, strict=True))
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
    solution: Solution, i: int, way: _Way, along: tuple[str, ...], pool: ThreadPoolExecutor, watch: Watch
) -> Reason:
    """Return the reason of goal i."""
    ik = solution.ik

    def without_goal(j: int) -> Relief:
        rest = [k for k in range(len(ik.goals)) if k != j]
        tried = solve_variation(solution, Variation(rest), watch)
        return Relief(ik.goals[j].label, tried.errors[rest.index(i)])

    def without_limit(row: int) -> Relief:
        own = row - (len(ik.skeleton) - len(ik.given))
        variation = Variation(range(len(ik.goals)), skeleton=without_limits(ik.given, [own]))
        tried = solve_variation(solution, variation, watch)
        return Relief(ik.skeleton.joint_names[row], tried.errors[i])

    others = [j for j, other in enumerate(ik.goals) if j != i and other.rows and other.rank <= ik.goals[i].rank]
    rivals = list(pool.map(without_goal, others))
    limits = list(pool.map(without_limit, _limits_that_count(solution, i)[:_MOST_LIMITS]))
    now = size_of(ik, solution.errors[i])
    return Reason(i, _reliefs(ik, rivals, now), _reliefs(ik, limits, now), way.move, way.turn, along, way.pose)


def _limits_that_count(solution: Solution, i: int) -> list[int]:
    """Return the rows of joints at a limit: first those that move goal i, then those that move goals with precedence.

    The rows are those of the solved skeleton. Goals with precedence have the same or a higher priority.
    """
    ik = solution.ik
    goals = [i] + [k for k, goal in enumerate(ik.goals) if goal.rows and goal.rank <= ik.goals[i].rank]
    at_limit = rows_at_limits(solution)
    rows: dict[int, None] = {}
    for goal in goals:
        for row in ik.goal_joints[goal]:
            rows |= dict.fromkeys(ancestors(ik.skeleton.parents, row))
        if not ik.goal_joints[goal]:  # a goal of the whole body
            rows |= dict.fromkeys(at_limit)
    return [row for row in rows if row in at_limit]


def _reliefs(ik: CompiledProblem, found: list[Relief], now: float) -> tuple[Relief, ...]:
    """Return those removals of a goal or a limit that clearly lower the error, the best first."""
    useful = [relief for relief in found if size_of(ik, relief.error) < (1.0 - _GAIN) * now]
    return tuple(sorted(useful, key=lambda relief: size_of(ik, relief.error)))


def without_limits(skeleton: Skeleton, rows: Sequence[int]) -> Skeleton:
    """Return the skeleton without the limits of some joints. Their mimic joints no longer restrict them either."""
    joints = [*skeleton.joints]
    for row in rows:
        joints[row] = dataclasses.replace(joints[row], limit=None)
        for other in () if joints[row].mimic is not None else with_followers(skeleton, [row]):
            joint = joints[other]
            if joint.mimic is not None and joint.mimic.binds:
                joints[other] = dataclasses.replace(joint, mimic=dataclasses.replace(joint.mimic, binds=False))
    return skeleton.with_joints(joints) if rows else skeleton


def nearest(solution: Solution, i: int, watch: Watch, places: Sequence[int] | None = None) -> _Way:
    """Return how the target of goal i must move and rotate so that all goals, or only the goals ``places``, are met."""
    ik = solution.ik
    if not ik.goals[i].can_move:
        return _NOWHERE
    lowest = 1 + max(other.rank for other in ik.goals)
    places = [k for k in (range(len(ik.goals)) if places is None else places) if ik.goals[k].rows]
    goals = [ik.goals[k].at_priority(lowest) if k == i else ik.goals[k] for k in places]
    at = places.index(i)
    tried = solve_variation(solution, Variation(places, goals), watch, attempts=_ATTEMPTS)
    return _NOWHERE if any(k != at for k in tried.missed) else _way(tried, at)


def _together(solution: Solution, watch: Watch) -> dict[int, _Way]:
    """Return how the targets of all goals that the best pose misses must move and rotate together.

    The best pose is the best of many attempts, or that of the solution. Return an empty dict if a target cannot move.
    """
    ik = solution.ik
    best = solve_variation(solution, Variation(range(len(ik.goals))), watch, attempts=_ATTEMPTS)
    if not set(best.missed) <= set(solution.missed):
        best = solution
    if not all(ik.goals[i].can_move for i in best.missed):
        return {}
    return {i: _way(best, i) for i in best.missed}


def _way(tried: Solution, i: int) -> _Way:
    """Return how the target of goal i must move and rotate so that the pose of a tried solution meets the goal."""
    from scipy.spatial.transform import Rotation

    goal, at, target = tried.goals[i], tried.frames[i], tried.targets[i]
    move = at[:3, 3] - target[:3, 3] if goal.takes & POSITION else None
    if not goal.takes & ROTATION:
        return _Way(move, None, tried.pose)
    if goal.constrained_parts & ROTATION:
        return _Way(move, Rotation.from_matrix(at[:3, :3] @ target[:3, :3].T).as_rotvec(), tried.pose)
    # smallest rotation that aligns the z axes, such as normals of a sole
    normal, _ = Rotation.align_vectors(at[None, :3, 2], target[None, :3, 2])
    return _Way(move, normal.as_rotvec(), tried.pose)


def reasons_as_json(solution: Solution, found: Sequence[Reason]) -> list[dict[str, object]]:
    """Return the reasons as plain values: labels, names, length units, radians, and joint values as in pose files."""
    goals = solution.ik.goals

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
            "q": None if reason.pose is None else values_of(reason.pose),
        }
        for reason in found
    ]
