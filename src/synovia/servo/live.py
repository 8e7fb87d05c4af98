"""Present targets of all goals: which goals have a target, and when it came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.kernels.layout import GIVEN, TRANSFORM_WIDTH
from synovia.model.geometry import Array, Bools

_TURNED: Final = np.pad(np.ones((3, 3), bool), ((0, 1), (0, 1)))  # entries of a transform: rotation
_MOVED: Final = np.outer((True, True, True, False), (False, False, False, True))  # entries: position
# The entries of a transform that a target sets, for each combination of parts.
_COLUMNS: Final = np.array(
    [_MOVED * bool(k & POSITION) | _TURNED * bool(k & ROTATION) for k in range(POSITION + ROTATION + 1)]
).reshape(-1, TRANSFORM_WIDTH)
_NEVER: Final = -np.inf  # time of the last target of a goal that never had one


class LiveTargets:
    """The present targets of all goals.

    Args:
        ik: The problem.

    Attributes:
        table: The targets, (1, goals, 17); a new array whenever they change.
        seen: Time of the last target of each goal, -inf for goals that never had one.
    """

    def __init__(self, ik: CompiledProblem) -> None:
        """Begin with the goals' own targets."""
        self._ik = ik
        self._takes = np.array([goal.takes for goal in ik.goals], np.int64)
        self.takes: Bools = self._takes > 0  # goals that take a target
        self._columns: Bools = _COLUMNS[self._takes]
        self._own = ik.writer.own
        self._own_given = self._own[0, :, GIVEN].astype(np.int64)
        self._workspace = ik.writer.workspace(new_scratch(0x20))
        self.anchored: Bools = (self._takes & ~self._own_given) > 0  # goals that keep their place, or a part of it
        self.own: Bools = self.takes & ~self.anchored  # goals that have a whole target of their own
        self.table = self._own.copy()
        self.seen = np.full(len(ik.goals), _NEVER)
        self._ends = [[0.0, 0.0, 0.0, 1.0]] * len(ik.goals)  # last rows of transforms
        self._given: Any = {}  # the targets that were read last

    def reset(self, places: Array) -> None:
        """Discard all targets; goals without their own target keep these places, (goals, 16)."""
        self.table = self._own.copy()
        self.seen[:] = _NEVER
        self.keep(self.anchored, places)

    def take_over(self, other: LiveTargets, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy the targets of goals that existed before, unless their own target has changed.

        Args:
            other: The targets before.
            pairs: Indices of these goals now and before.
        """
        table = self.table.copy()
        for new, old in pairs:
            own = self._own[0, new]
            if not own[GIVEN] or np.array_equal(own, other._own[0, old]):
                table[0, new], self.seen[new] = other.table[0, old], other.seen[old]
        self.table = table

    def keep(self, goals: Bools, places: Array) -> None:
        """Set the targets of some goals to these places, (goals, 16)."""
        self.table = self.placed(goals, places)

    def placed(self, goals: Bools, places: Array) -> Array:
        """Return the table in which some goals have these places, (goals, 16), as targets."""
        table = self.table.copy()
        table[0, goals, :TRANSFORM_WIDTH] = places[goals]
        table[0, goals, GIVEN] = self._takes[goals]
        return table

    def unanchored(self, goals: Bools) -> Array:
        """Return the table in which these goals have no target, so that a solver keeps their places."""
        table = self.table.copy()
        table[0, goals, GIVEN] = 0.0
        return table

    def read(self, targets: Any) -> tuple[Array, Bools]:
        """Return the table with new targets, and which goals have a new target.

        Args:
            targets: As in ``IK.solve``.

        Raises:
            InputError: If a target cannot be used.
            UnknownNameError: If it belongs to no goal.
        """
        workspace, self._given = self._workspace, targets
        self._ik.writer.fill(targets, workspace)
        new, table = workspace.table[0], self.table.copy()
        if new[:, TRANSFORM_WIDTH - 4 : TRANSFORM_WIDTH].tolist() != self._ends:
            self.refuse()
        if workspace.all_given:
            np.copyto(table[0, :, :TRANSFORM_WIDTH], new[:, :TRANSFORM_WIDTH], where=self._columns)
            table[0, :, GIVEN] = self._takes
            return table, self.takes
        given = (new[:, GIVEN] != self._own_given) | (
            new[:, :TRANSFORM_WIDTH] != self._own[0, :, :TRANSFORM_WIDTH]
        ).any(1)
        self.merge(table[0], new, given)
        return table, given

    def refuse(self) -> None:
        """Check the targets that were read last again, to raise an error that names the invalid target.

        Raises:
            InputError: If a target cannot be used.
        """
        self._ik.writer.orthonormalize_or_refuse(self._workspace.table, self._given)

    def read_many(self, targets: Any) -> tuple[Array, Bools]:
        """Return the tables (K, goals, 17) with a sequence of targets, and which goals have new targets.

        Raises:
            InputError: If a target cannot be used.
            UnknownNameError: If it belongs to no goal.
        """
        writer = self._ik.writer
        many = writer.table_of_many(targets)
        writer.orthonormalize_or_refuse(many, targets, many=True)
        given = ((many != self._own).any(2)).any(0)
        out = np.repeat(self.table, len(many), axis=0)
        for table, new in zip(out, many, strict=True):
            self.merge(table, new, given)
        return out, given

    @staticmethod
    def merge(table: Array, new: Array, given: Bools) -> None:
        """Write the given parts of new targets of some goals into a table, both (goals, 17)."""
        parts = new[:, GIVEN].astype(np.int64) * given
        np.copyto(table[:, :TRANSFORM_WIDTH], new[:, :TRANSFORM_WIDTH], where=_COLUMNS[parts])
        table[:, GIVEN] = table[:, GIVEN].astype(np.int64) | parts
