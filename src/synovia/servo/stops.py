"""The stops of the axes of a body after a tick, and ticks that lead to other stops."""

from __future__ import annotations

from functools import partial

import numpy as np

from synovia.model.geometry import Array
from synovia.model.tables import writable
from synovia.servo.limits import Axes


class Stops:
    """The stops of all axes after a tick that was proposed.

    Args:
        axes: The axes of the body.
    """

    def __init__(self, axes: Axes) -> None:
        """Load the kernels."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.servo.tick import servo_choose, servo_stops

        t, none, q = axes.skeleton.tables, axes.table[:0], np.zeros(0)
        tables = writable(t.variables, t.followers, t.coupling)
        choose = ready(servo_choose, *(one[:0] for one in tables), none, q, q, q, 1.0)
        self._choose = partial(choose, *tables, axes.table)
        self._ways = np.zeros((3, len(axes.table)))
        self._write = partial(ready(servo_stops, none, none, 1.0), axes.table, self._ways)

    def ways(self, h: float) -> Array:
        """Return the displacement of each axis to its stop after a tick of time h, relative to its target, (3, n).

        The first row is for the proposed velocity, the others for the lowest and the highest velocity that limits
        allow.
        """
        self._write(h)
        return self._ways

    def lead(self, q: Array, place: Array, out: Array, h: float) -> None:
        """Propose a tick that leads to other stops.

        Args:
            q: Joint values now, (nq,).
            place: Joint values to stop at, (nq,), as far as limits allow.
            out: Joint values after the tick, (nq,); written.
            h: Seconds.
        """
        self._choose(q, place, out, h)
