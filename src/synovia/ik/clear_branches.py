"""Closed forms with clearance goals: the nearest branch that meets every clearance goal.

The closed form lists the branches of the other goals; forward kinematics then measures the distances of each branch. If
no branch meets the goals, the solver by levels continues from the branch with the smallest violation, with the same
joints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.goals import Goal
from synovia.ik.interrupts import has_ended, new_scratch
from synovia.kernels.layout import (
    ATTEMPTS,
    COLD,
    GIVEN,
    LIST,
    MAX_STEPS,
    MISSED,
    OUT_HEAD,
    PATIENCE,
    POSITION,
    REACHED,
    REFUSED,
    ROTATION,
    ROWS_AT,
    STATUS,
    STEPS,
    TRANSFORM_WIDTH,
)
from synovia.model.geometry import Array
from synovia.solver.base import Kernel


class Listed(NamedTuple):
    """A problem without clearance goals, whose branches a closed form lists.

    Args:
        kernel: Lists the branches.
        ints: Integers of the packed problem.
        floats: Floats of the packed problem.
        shape: Shape of the table that the kernel fills.
        scratch_size: Scratch memory of the kernel, in float64.
        proves: Returns whether the list in scratch memory is complete, provided that no branch is singular.
        clamp: Clamps the joint values of rows of results to their limits.
        has_all: Returns whether the list for a table of targets and a start has all branches.
    """

    kernel: Kernel
    ints: NDArray[np.int32]
    floats: Array
    shape: tuple[int, int]
    scratch_size: int
    proves: Callable[[Array], bool]
    clamp: Callable[[Array], Array]
    has_all: Callable[[Array, Array], bool]


class _One(NamedTuple):
    """Arguments of a kernel for one problem: packed data, targets (1, goals, 17), start (1, nq) and scratch memory."""

    ints: NDArray[np.int32]
    floats: Array
    targets: Array
    start: Array
    scratch: Array


class ClearBranches:
    """Combines a closed form with clearance goals; its kernels have the arguments of ``kernels.search.multistart``.

    Args:
        listed: The problem of the other goals.
        goals: All goals.
        kernel: Solves the whole problem by levels.
        nq: Number of joint values of the body.
    """

    def __init__(self, listed: Listed, goals: Sequence[Goal], kernel: Kernel, nq: int) -> None:
        """Find the indices of clearance goals and of other goals."""
        self._listed, self._kernel, self._count = listed, kernel, len(goals)
        self._others = [g for g, goal in enumerate(goals) if goal.needs != "clearance"]
        self._clear = [g for g, goal in enumerate(goals) if goal.needs == "clearance"]
        self._takes = np.array([goal.takes for goal in goals])
        self._q = slice(OUT_HEAD, OUT_HEAD + nq)

    def solve(self, *call: Any) -> int:
        """Solve a batch of problems."""
        ints, floats, targets, starts, out, scratch, warm, first = call
        missed = 0
        for b in range(first, len(out)):
            start, part = starts[min(b, len(starts) - 1)][None], targets[b : b + 1]
            continues = bool(warm) and b > 0
            if continues:  # a goal without a target keeps its target of the previous frame
                start, part = out[b - 1 : b, self._q].copy(), self._completed(part, out[b - 1 : b])
            follows = continues or ints[ATTEMPTS] == 1
            code = self._solve_one(_One(ints, floats, part, start, scratch), out[b : b + 1], follows=follows)
            if code < 0:
                return code - self._count * b
            if code & MISSED:
                missed = MISSED
                if warm and not has_ended(scratch):
                    return (b + 1) << ROWS_AT | MISSED
        return len(out) << ROWS_AT | missed

    def branches(self, *call: Any) -> int:
        """Write a row of results for each branch that meets all clearance goals; return the number of rows.

        The first value of the table's last row is 1 if the list is complete, provided that no branch is singular.
        """
        ints, floats, targets, start, out, scratch, *_ = call
        memory = new_scratch(self._listed.scratch_size)
        rows = self._measured(_One(ints, floats, targets, start, scratch), memory)
        if isinstance(rows, int):
            return rows
        clear = rows[rows[:, STATUS] == REACHED]
        out[: len(clear)] = clear
        out[-1, 0] = self._listed.proves(memory)
        return len(clear)

    def has_all(self, table: Array, start: Array) -> bool:
        """Return whether the closed form lists all branches for a table of targets and a start."""
        return self._listed.has_all(np.ascontiguousarray(table[:, self._others]), start)

    def _solve_one(self, one: _One, out: Array, *, follows: bool) -> int:
        """Solve one problem, write its row of results into ``out``, (1, ...), and return the kernel's code.

        For the code, see ``MISSED`` in ``kernels.layout``.

        With ``follows`` (in a track, or with one attempt), first solve by levels from the start, which evades
        obstacles. If the pose then misses a goal, use another branch.
        """
        rows = self._measured(one)
        if isinstance(rows, int):
            return rows
        reached = rows[:, STATUS] == REACHED
        if follows and len(rows) and not reached[0]:
            single = one.ints.copy()
            single[ATTEMPTS] = 1
            code = self._stepped(one._replace(ints=single), out)
            if not code & MISSED:
                return code
        if reached.any():
            out[0] = rows[np.argmax(reached)]
            return 1 << ROWS_AT
        if len(rows):
            errors = rows[:, self._q.stop : self._q.stop + 2 * self._count : 2]
            best = int(np.argmin(errors[:, self._clear].max(axis=1)))
            nearest = rows[best : best + 1]
            one = one._replace(start=nearest[:, self._q].copy(), targets=self._completed(one.targets, nearest))
        return self._stepped(one, out)

    def _stepped(self, one: _One, out: Array) -> int:
        """Solve by priority levels, write the results into ``out``, and return the kernel's code, see ``MISSED``."""
        return self._kernel(one.ints, one.floats, one.targets, one.start, out, one.scratch, COLD, 0)

    def _measured(self, one: _One, memory: Array | None = None) -> Array | int:
        """Return a row of results for each branch of one problem; the branch nearest to the start is first.

        The rows have the errors of all goals, including clearance goals. If a target is rejected, return the error
        code. ``memory`` is scratch memory of the closed form.
        """
        listed, found = self._listed, np.empty(self._listed.shape)
        own = np.ascontiguousarray(one.targets[:, self._others])
        memory = new_scratch(listed.scratch_size) if memory is None else memory
        count = listed.kernel(listed.ints, listed.floats, own, one.start, found, memory, COLD, LIST)
        if count < 0:
            return REFUSED - self._others[REFUSED - count]
        listed.clamp(found[:count])
        rows = np.empty((count, self._q.stop + (2 + TRANSFORM_WIDTH) * self._count))
        if count == 0:
            return rows
        whole = np.repeat(one.targets, count, axis=0)
        given = found[:count, self._q.stop + 2 * len(self._others) :].reshape(count, -1, TRANSFORM_WIDTH)
        whole[:, self._others, :TRANSFORM_WIDTH] = given
        whole[:, self._others, GIVEN] = self._takes[self._others]
        still = one.ints.copy()
        still[[MAX_STEPS, ATTEMPTS, PATIENCE]] = 0, 1, 1
        poses = np.ascontiguousarray(found[:count, self._q])
        self._stepped(one._replace(ints=still, targets=whole, start=poses), rows)
        rows[:, STEPS] = 1
        return rows

    def _completed(self, part: Array, row: Array) -> Array:
        """Return the targets of one problem, (1, goals, 17); missing parts are copied from a row of results."""
        out = part.copy()
        known = row[0, self._q.stop + 2 * self._count :].reshape(self._count, 4, 4)
        transforms = out[0, :, :TRANSFORM_WIDTH].reshape(self._count, 4, 4)
        lacking = self._takes & ~part[0, :, GIVEN].astype(int)
        point, turn = (lacking & POSITION) > 0, (lacking & ROTATION) > 0
        transforms[point, :3, 3] = known[point, :3, 3]
        transforms[turn, :3, :3] = known[turn, :3, :3]
        transforms[lacking > 0, 3] = known[lacking > 0, 3]
        out[0, :, :TRANSFORM_WIDTH] = transforms.reshape(self._count, TRANSFORM_WIDTH)
        out[0, :, GIVEN] = self._takes
        return out
