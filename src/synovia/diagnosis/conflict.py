"""Find a smallest set of goals and limits that cannot hold together, and the changes that resolve it.

Goals are left out one after the other: a goal stays in the set if a pose meets all others without it. Limits are then
left out by QuickXplain (Junker 2004): a limit stays if a pose outside of it meets the goals. So each goal and limit of
the set is needed, as a pose shows. If ``ik.proofs`` supports the goals, it proves that the whole set cannot hold;
otherwise no attempt found a pose. With a deadline, each proof takes at most half of the time that is left, and what is
not tried in time is left out.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

from synovia.diagnosis.allowed import rows_at_limits
from synovia.diagnosis.reasons import nearest, without_limits
from synovia.diagnosis.trials import Variation, solve_variation
from synovia.goals import ClearanceGoal
from synovia.ik.conflicts import Conflict, Relaxation, norm
from synovia.ik.interrupts import Watch
from synovia.ik.proofs.decide import decide, exclude_all, exclude_apart
from synovia.ik.proofs.proof import Proof
from synovia.ik.proofs.together import SharedProof, aims_of, exclude_together
from synovia.ik.solution import Solution
from synovia.model import Kind, Pose, Skeleton
from synovia.model.limits import Interval
from synovia.model.tree import ancestors
from synovia.problem.structure import with_followers

_FEW: Final = 4  # number of attempts of a first try to meet goals; a second try has _ATTEMPTS
_ATTEMPTS: Final = 40
_HALVINGS: Final = 7  # halvings of the excess over a limit: an accuracy of one per cent
_ROUNDING: Final = 1.01  # factor by which changes are enlarged, so that they are still enough after rounding


def find_conflict(solution: Solution, watch: Watch) -> Conflict | None:
    """Return a smallest set of goals and limits that cannot hold together; None if all goals can be met after all.

    Args:
        solution: The miss.
        watch: The deadline.
    """
    ik = solution.ik
    every = [i for i, goal in enumerate(ik.goals) if goal.rows or isinstance(goal, ClearanceGoal)]
    places = list[int]()
    ranks = sorted({ik.goals[i].rank for i in every})
    for rank in ranks:  # the first level that fails
        places = [i for i in every if ik.goals[i].rank <= rank]
        if _met(solution, places, watch) is None and (rank == ranks[-1] or not watch.passed):
            break
    else:
        return None
    priority = max(ik.goals[i].rank for i in places)
    poses: dict[str, Pose] = {}
    for i in sorted(places, key=lambda i: i in solution.missed):  # first those that are met
        rest = [k for k in places if k != i]
        if not rest or watch.passed:
            break
        pose = _met(solution, rest, watch)
        if pose is not None:
            poses[ik.goals[i].label] = pose
        elif not watch.passed:
            places = rest
    proof = _proof(solution, places, ik.given, watch)
    limits = _Limits(solution, places, watch)
    rows = limits.smallest()
    outside = {row: limits.met([k for k in rows if k != row]) for row in rows}
    fewer = proof and _proof(solution, places, limits.only(rows), watch)
    names = ik.given.joint_names
    changes = [] if watch.passed else [*_targets(solution, places, watch), *_tolerance(solution, places, watch)]
    return Conflict(
        tuple(ik.goals[i].label for i in places), poses, proof, tuple(names[row] for row in rows),
        {names[row]: pose for row, pose in outside.items() if pose is not None}, fewer, priority,
        (*changes, *limits.widened(rows)),
    )  # fmt: skip


def _met(solution: Solution, places: Sequence[int], watch: Watch, skeleton: Skeleton | None = None) -> Pose | None:
    """Return a pose that meets some of the goals, within the limits of a skeleton; None if no attempt found one."""
    for attempts in (_FEW, _ATTEMPTS):
        if watch.passed:
            return None
        found = solve_variation(solution, Variation(places, skeleton=skeleton), watch, attempts=attempts)
        if found.reached:
            return found.pose
    return None


def _proof(solution: Solution, places: Sequence[int], skeleton: Skeleton, watch: Watch) -> Proof | SharedProof | None:
    """Return a proof that some goals cannot be met together within the limits of a skeleton; None without one."""
    if watch.passed:
        return None
    tried, watch = solve_variation(solution, Variation(places, skeleton=skeleton), watch, attempts=_FEW), watch.half()
    if len(places) == 1:
        return decide(tried, watch).proof
    together = exclude_apart(tried, watch) or exclude_together(aims_of(tried, range(len(places))), watch)
    return together or exclude_all(tried, watch)


class _Limits:
    """The limits of the joints that move some goals."""

    def __init__(self, solution: Solution, places: Sequence[int], watch: Watch) -> None:
        """Collect the rows of limited joints in the given skeleton, those at a limit first."""
        ik = self._ik = solution.ik
        self._solution, self._places, self._watch = solution, places, watch
        added = len(ik.skeleton) - len(ik.given)
        chains = [ancestors(ik.skeleton.parents, end) for i in places for end in ik.goal_joints[i] if end >= 0]
        whole = any(not ik.goal_joints[i] for i in places)
        moving = with_followers(ik.skeleton, ik.moving)
        if not whole:
            moving = moving.intersection(row for chain in chains for row in chain)
        at_limit = rows_at_limits(solution)
        rows = [row - added for row in sorted(moving, key=lambda row: (row not in at_limit, row)) if row >= added]
        joints = ik.given.joints
        self._all = [row for row in rows if joints[row].limit is not None and joints[row].mimic is None]

    def only(self, rows: Sequence[int]) -> Skeleton:
        """Return the skeleton with only the limits of joints ``rows`` and of joints that move no goal."""
        return without_limits(self._ik.given, [row for row in self._all if row not in rows])

    def met(self, rows: Sequence[int]) -> Pose | None:
        """Return a pose that meets the goals within the limits of some of the joints; None if none was found."""
        return _met(self._solution, self._places, self._watch, self.only(rows))

    def smallest(self) -> list[int]:
        """Return a smallest set of rows whose limits make it impossible to meet the goals."""
        if not self._all or self._watch.passed or self.met(()) is None:
            return []
        return sorted(self._needed([], False, self._all))

    def _needed(self, kept: list[int], grown: bool, rows: list[int]) -> list[int]:
        """Return a smallest part of ``rows`` whose limits, with those of ``kept``, make the goals impossible."""
        if grown and self.met(kept) is None:
            return []
        if len(rows) == 1 or self._watch.passed:
            return rows
        first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        late = self._needed([*kept, *first], True, second)
        return self._needed([*kept, *late], bool(late), first) + late

    def widened(self, rows: Sequence[int]) -> list[Relaxation]:
        """Return how far some joints must each exceed their limits to meet the goals while all other limits hold."""
        found: list[Relaxation] = []
        for row in rows:
            limit = self._ik.given.joints[row].limit
            if isinstance(limit, Interval):
                free = without_limits(self._ik.given, [row])
                pose = _met(self._solution, self._places, self._watch, free)
                found += [] if pose is None else [self._least(row, limit, pose)]
        return found

    def _least(self, row: int, limit: Interval, pose: Pose) -> Relaxation:
        """Return the smallest excess of one joint that is enough, by bisection from its excess in ``pose``."""
        given = self._ik.given
        turns = given.joints[row].kind is Kind.HINGE
        tried = self._excess(row, limit, pose)
        low, high = 0.0, tried
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            joints = [*without_limits(given, [row]).joints]
            ends = (limit.lower + min(middle, 0.0), limit.upper + max(middle, 0.0))
            joints[row] = dataclasses.replace(joints[row], limit=Interval(*ends))
            other = _met(self._solution, self._places, self._watch, given.with_joints(joints))
            if other is None:
                low = middle
                continue
            excess = self._excess(row, limit, other)
            high, pose = (excess, other) if abs(excess) < abs(high) else (middle, other)
            if abs(high) <= abs(low):
                break
        name, high = given.joint_names[row], _ROUNDING * high
        return Relaxation("limit", name, 0.0 if turns else high, high if turns else 0.0, pose)

    def _excess(self, row: int, limit: Interval, pose: Pose) -> float:
        """Return by how much a pose is above (positive) or below the limits of a joint, after the best whole turns."""
        at = row + len(self._ik.skeleton) - len(self._ik.given)
        value = float(pose.q[self._ik.skeleton.q_slice(at)][0])
        turn = 2.0 * math.pi if self._ik.given.joints[row].kind is Kind.HINGE else 0.0
        values = [value + turn * k for k in ((-2, -1, 0, 1, 2) if turn else (0,))]
        over = [max(x - limit.upper, 0.0) or min(x - limit.lower, 0.0) for x in values]
        return min(over, key=abs)


def _targets(solution: Solution, places: Sequence[int], watch: Watch) -> list[Relaxation]:
    """Return for each goal how its target must move so that all goals of the set are met."""
    found: list[Relaxation] = []
    for i in places:
        way = nearest(solution, i, watch, places)
        if way.pose is not None:
            label = solution.ik.goals[i].label
            found.append(Relaxation("target", label, norm(way.move), norm(way.turn), way.pose, way.move, way.turn))
    return sorted(found, key=lambda change: change.length / solution.ik.reach + change.angle)


def _tolerance(solution: Solution, places: Sequence[int], watch: Watch) -> list[Relaxation]:
    """Return the common tolerance with which the best pose of many attempts meets the goals of the set."""
    ik = solution.ik
    goals = [ik.goals[i] for i in places]
    if any(goal.own_tolerance is not None for goal in goals):
        return []
    same = [goal.at_priority(0) for goal in goals]
    best = solve_variation(solution, Variation(places, same), watch, attempts=_ATTEMPTS)
    length, angle = (max(errors) for errors in zip(*best.errors, strict=True))
    length, angle = (_ROUNDING * x if x > most else 0.0 for x, most in zip((length, angle), ik.tolerance, strict=True))
    return [Relaxation("tolerance", "", length, angle, best.pose)]
