"""Solve variations of a missed problem: fewer goals, other goals, targets or limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.goals import Goal
from synovia.ik.compiled import CompiledProblem
from synovia.ik.frame import FrameSolver
from synovia.ik.interrupts import Watch
from synovia.ik.solution import GoalError, Solution
from synovia.ik.targets import transforms
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.pose import inside_limits
from synovia.solver import FullBody

_POLISHED: Final = 3  # number of best attempts that are polished


@dataclass(frozen=True, slots=True, eq=False)
class Variation:
    """Differences between a trial and the missed problem.

    Args:
        places: Indices of the goals that remain.
        goals: Goals that replace the remaining goals; None for no replacement.
        skeleton: Skeleton to use instead, without the joints that ``root`` adds.
        targets: Targets of all goals of the miss to use instead, (goals, 4, 4); None for no change.
        all_move: Whether all joints may move, regardless of ``moving``.
    """

    places: Sequence[int]
    goals: Sequence[Goal] | None = None
    skeleton: Skeleton | None = None
    targets: Array | None = None
    all_move: bool = False


def solve_variation(solution: Solution, variation: Variation, watch: Watch, *, attempts: int = 1) -> Solution:
    """Return the best solution of a variation of a miss, from its pose and from random poses.

    One attempt starts from the pose of the miss, the others from random poses. Each attempt is a separate solve,
    because a solver makes no further attempts after proving that a target is out of reach.

    Args:
        solution: The miss.
        variation: Differences from the missed problem.
        watch: Stops the solves.
        attempts: Number of attempts.
    """
    miss, places = solution.ik, variation.places
    goals = variation.goals or [miss.goals[k] for k in places]
    levels = any(goal.rank > 0 for goal in goals) and not miss.method.supports_priorities
    ik = CompiledProblem(
        variation.skeleton or miss.given,
        goals,
        FullBody(attempts=1) if levels or (variation.all_move and miss.solver.closed) else miss.method.for_diagnosis(),
        tolerance=miss.tolerance,
        root=miss.root,
        moving=None if variation.all_move else miss.allowed,
    )
    frame = FrameSolver(ik)
    table = frame.table(attempts)
    transforms(table)[:] = (solution.targets if variation.targets is None else variation.targets)[list(places)]
    # unlike np.tile, whose view of an empty array is read-only
    starts = np.repeat(solution.pose.q[None], attempts, axis=0)
    for k in range(1, attempts):
        other = ik.skeleton.random_pose(k).q
        for row, joint in enumerate(ik.skeleton.joints):
            if joint.kind is not Kind.FREE:
                starts[k, ik.skeleton.q_slice(row)] = other[ik.skeleton.q_slice(row)]
    inside = inside_limits(ik.skeleton, starts)
    with frame.until(watch):
        rows = frame.each(table, inside)
        found = [Solution(ik, rows, Pose(ik.skeleton, start), b) for b, start in enumerate(inside)]
        best = sorted(range(attempts), key=lambda b: levels_of(found[b]))[:_POLISHED]
        for b in best:
            frame.improve(inside[b : b + 1], rows[b : b + 1], search=True)
    return min((found[b] for b in best), key=levels_of)


def levels_of(solution: Solution) -> tuple[float, ...]:
    """Return the squared error of each priority level, the highest priority first; goals that are met add 0."""
    ik = solution.ik
    out = dict.fromkeys(sorted({goal.rank for goal in ik.goals}), 0.0)
    errors = solution.errors
    for i in solution.missed:
        goal = ik.goals[i]
        out[goal.rank] += goal.weight * size_of(ik, errors[i]) ** 2
    return tuple(round(square, 12) for square in out.values())


def size_of(ik: CompiledProblem, error: GoalError) -> float:
    """Return the norm of an error in the solvers' units: length scales and radians."""
    return math.hypot(error.position / ik.reach, error.angle)
