"""Branches: all poses that meet the goals, as a solver lists them, with whole turns of joints if asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Final

import numpy as np

from synovia.errors import InputError
from synovia.ik.compiled import CompiledProblem, Start
from synovia.ik.redundancy import value_of
from synovia.ik.solution import Solutions
from synovia.ik.targets import Targets
from synovia.kernels.layout import BLOCK, BLOCK_Q, COST, KIND, LOWER, OUT_HEAD, RATIO, SCALAR, UPPER, VARIABLE
from synovia.model import Kind, Pose
from synovia.model.geometry import Array

_MOST: Final = 1_000_000  # largest number of poses, including whole turns
_WHOLE: Final = 2.0 * math.pi
_ROUNDING: Final = 1e-9  # radians: excess over a limit that counts as rounding


class Branches(Solutions):
    """All branches of a target within the limits, the nearest to the start first.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> arm = arm.with_limits({"joint5": (0.3, 0.3)})
        >>> branches = sy.IK(arm, sy.PoseGoal("tool")).branches(arm.random_pose(0).transform("tool"))
        >>> len(branches), branches.complete
        (2, True)
    """

    def __init__(self, ik: CompiledProblem, rows: Array, start: Pose, asked: tuple[Array, Array] | None) -> None:
        """Store the rows of results; ``asked``: table of targets and start for which to test completeness, or None."""
        super().__init__(ik, rows, start)
        self._asked = asked

    @cached_property
    def complete(self) -> bool:
        """Whether it is proved that there are no other branches, apart from whole turns.

        False near singular poses, where branches meet (also outside the limits), if joints can move while all goals
        stay met, and for arms that are singular in every pose. A joint up to 1e-9 beyond a limit counts as within, and
        is clamped.
        """
        return self._asked is not None and self.ik.has_all_branches(*self._asked)


def branches_of(
    problem: CompiledProblem,
    targets: Targets | None,
    start: Start | None,
    *,
    turns: bool = False,
    redundancy: float | Mapping[str | int, float] | None = None,
) -> Branches:
    """Return the branches of a problem; see ``IK.branches``."""
    held, value = (None, 0.0) if redundancy is None else value_of(problem, redundancy)
    lister = problem.lister if held is None else held.lister
    lister, targets = lister.read_obstacles(targets)
    given = lister.default_start if start is None else lister.as_start(start)
    first = given.inside if given.ready is None else given.ready
    if held is not None:
        first = held.start(first, value)
        given = Pose(lister.skeleton, first[0])
    rows, table = lister.listed(targets, first)
    asked = None if table is None else (table, first.copy())
    return Branches(lister, with_turns(lister, rows, first[0]) if turns else rows, given, asked)


def with_turns(problem: CompiledProblem, rows: Array, start: Array) -> Array:
    """Return results with one row for each whole turn of the hinges within the limits, the nearest to the start first.

    Args:
        problem: The problem.
        rows: Results, one row for each branch.
        start: Joint values of the start.

    Raises:
        InputError: If there are too many.
    """
    reduced = problem.reduced
    for k in range(len(reduced.variables)):
        users = np.flatnonzero(reduced.rows[:, VARIABLE] == k)
        if len(users) != 1 or Kind(int(reduced.rows[users[0], KIND])) is not Kind.HINGE:
            continue
        low, high = (float(x) for x in reduced.limits[k, [LOWER, UPPER]])
        if not math.isfinite(high - low):
            continue
        period, at = _WHOLE / abs(float(reduced.couple[users[0], RATIO])), OUT_HEAD + int(reduced.variables[k, BLOCK_Q])
        first = np.ceil((low - _ROUNDING - rows[:, at]) / period).astype(int)
        counts = np.floor((high + _ROUNDING - rows[:, at]) / period).astype(int) - first + 1
        if counts.sum() > _MOST:
            raise InputError("turns", value=True, expected=f"at most {_MOST} poses", hint="narrow the limits of hinges")
        before = np.cumsum(counts) - counts  # rows before those of each branch
        whole = np.arange(int(counts.sum())) - np.repeat(before - first, counts)
        rows = np.repeat(rows, counts, axis=0)
        rows[:, at] = np.clip(rows[:, at] + period * whole, low, high)
    q = rows[:, problem.places]
    q[...] = problem.skeleton.follow(q.copy())
    scalar, _ = reduced.places
    away = np.linalg.norm((q - start)[:, scalar] / _units(problem), axis=1)
    rows[:, COST] = away
    return rows[np.argsort(away, kind="stable")]


def _units(problem: CompiledProblem) -> Array:
    """Return the unit of each hinge and slide: 1 radian, or the length scale."""
    reduced = problem.reduced
    slides = [Kind(int(kind)) is Kind.SLIDE for kind in reduced.rows[:, KIND]]
    return np.array(
        [
            problem.reach if any(slides[row] for row in np.flatnonzero(reduced.rows[:, VARIABLE] == k)) else 1.0
            for k, block in enumerate(reduced.variables[:, BLOCK])
            if block == SCALAR
        ]
    )
