"""Wishes in Python: the null space's terms and a gradient of the user's, beside goals of any kind.

The formulas are those of ``kernels.jacobian.null_space``. Of H only the gradient is known here: along the turn s from
one pose to another H falls by -(∇H + ∇H') · s / 2, up to the third power of s.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from synovia.ik.columns import column_units, column_velocities
from synovia.ik.interrupts import is_over
from synovia.kernels.layout import MAX_STEPS
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, as_numbers, rotation_between
from synovia.problem import Reduced
from synovia.solver import NullSpace

_WIDEST, _STILL = 0.3, 1e-6  # radians or reaches of one slide, as in ``kernels.jacobian.null_space``
_GROW, _SHRINK = 1.5, 0.5
_AT_ONCE: Final = 1.0  # the first gain where only the user's own terms could tell


class Row(Protocol):
    """What is used here of a row of the answer while it is solved, ``custom.Row``."""

    packed: tuple[NDArray[np.int32], Array]
    q: Array
    kept: Array
    scratch: Array
    J: Array

    def assess(self) -> tuple[float, float]:
        """Write residual, Jacobian and errors at q; return (squared residual, largest error in tolerances)."""
        ...

    def back_onto_goals(self) -> tuple[int, bool]:
        """Step back onto the goals after a slide; return (steps, whether they hold)."""
        ...


class Wish(NamedTuple):
    """∇H by column (radians, reaches), and the gain to begin a slide with."""

    gradient: Array
    gain: float


class Wishes:
    """The function H of a pose that a body would like to be small beside its goals; see ``NullSpace``.

    Args:
        skeleton: The skeleton.
        reduced: The problem.
        terms: The null space, None for rest goals alone.
    """

    def __init__(self, skeleton: Skeleton, reduced: Reduced, terms: NullSpace | None) -> None:
        """Find what the columns are."""
        self._skeleton, self._reduced = skeleton, reduced
        self._function = None if terms is None else terms.gradient
        self._velocities, self._units = column_velocities(skeleton, reduced), column_units(reduced)

    def at(self, row: Row) -> Wish:
        """Return the wish at a row's pose."""
        from synovia.kernels.search.custom import wish_at

        gradient = np.empty(self._reduced.columns)
        gain = wish_at(*row.packed, row.q, row.kept, row.scratch, gradient)
        if self._function is not None:
            gradient += self._checked(self._function(Pose.trusted(self._skeleton, row.q.copy()))) @ self._velocities
            gain = min(gain, _AT_ONCE)
        return Wish(gradient, gain)

    def slide(self, row: Row) -> int:
        """Move a row, which meets the goals, along the poses that meet them until H is lowest; return the steps.

        Only poses that meet the goals and lower H are kept; the length of a slide follows from that.
        """
        from synovia.kernels.search.custom import slip

        most = int(row.packed[0][MAX_STEPS])
        best, here = row.q.copy(), self.at(row)
        gain, k = here.gain, 0
        row.assess()
        jacobian = row.J.copy()
        while k < most and not is_over(row.scratch):
            size = slip(*row.packed, row.q, row.scratch, jacobian, here.gradient, gain, _WIDEST)
            if size < _STILL:
                break
            gain *= min(1.0, _WIDEST / size)
            taken, holds = row.back_onto_goals()
            k += 1 + taken
            there = self.at(row) if holds else here
            if holds and (here.gradient + there.gradient) @ self._between(best, row.q) < 0.0:
                best, here, jacobian = row.q.copy(), there, row.J.copy()
                gain *= _GROW
            else:
                row.q[:] = best
                gain *= _SHRINK
        row.q[:] = best
        return k

    def _between(self, a: Array, b: Array) -> Array:
        """Return the way from one pose to another by column, (columns,)."""
        out = np.empty(self._reduced.columns)
        for block, at, column in self._reduced.variables.tolist():
            if block:
                out[column : column + 3] = rotation_between(a[at : at + 4], b[at : at + 4])
            else:
                out[column] = (b[at] - a[at]) / self._units[column]
        return out

    def _checked(self, value: Any) -> Array:
        """Return what the user's function gave as (nv,) finite numbers.

        Raises:
            InputError: If it is nothing of the kind.
        """
        return as_numbers(value, (self._skeleton.nv,), "gradient of NullSpace")
