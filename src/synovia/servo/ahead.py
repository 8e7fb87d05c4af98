"""What lies ahead on a path: joint values at its places, and how fast the body can pass these.

The places are evenly spaced. A tick solves a few more of them, and goes on as if the path ended at the last one: so it
can always stop before what it does not know yet. The speed at a place is limited by the speeds of joints and by the
bends of the path there. Backwards from the end, the acceleration of each place limits what the speed can be before.

References:
    Pham & Pham (2018), *A new approach to time-optimal path parameterization based on reachability analysis*: limits of
    the speed by a backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from synovia.kernels.layout import TOP_ACCELERATION, TOP_JERK, TOP_SPEED
from synovia.model.geometry import Array

SPACE: Final = 0.004  # reaches and radians between two places
_NEW: Final = 8  # places that a tick solves
_MOST: Final = 400  # places ahead
_SHARE: Final = 0.85  # part of the speeds of joints that is used
ALONG: Final = 0.4  # part of their acceleration for gaining speed, and another one for bends of the path
JERK: Final = 0.25  # part of their jerk for each of its three causes
_TINY: Final = 1e-12  # instead of a derivative of zero
_FASTEST: Final = 1e6  # limit of the place on a path that moves no joint


class Ahead:
    """Joint values at the places ahead.

    Args:
        joints: The axes of the body, see ``kernels.layout``.
        way: Returns how far each axis goes from one pose to another.
        solve: Returns joint values (nq,) at a place of the path, from a start.
    """

    def __init__(
        self, joints: Array, way: Callable[[Array, Array], Array], solve: Callable[[float, Array], Array]
    ) -> None:
        """Begin at the start of a path."""
        self._joints, self._way, self._solve = joints, way, solve
        self.reset(0.0, np.zeros(0))

    def reset(self, s: float, q: Array) -> None:
        """Begin anew at a place with joint values (nq,)."""
        self._first = s
        self._poses, self._ways = [q], list[Array]()
        self._end: tuple[float, Array, Array] | None = None  # the last place of the path, its pose, the way to it

    def cut(self, s: float) -> None:
        """Forget places beyond s."""
        kept = max(int((s - self._first) / SPACE), 0)
        del self._poses[kept + 1 :], self._ways[kept:]
        self._end = None

    def pass_by(self, s: float) -> None:
        """Forget places before the one before s."""
        passed = min(max(int((s - self._first) / SPACE) - 1, 0), len(self._ways))
        del self._poses[:passed], self._ways[:passed]
        self._first += passed * SPACE

    def look(self, until: float, end: float) -> None:
        """Solve the next places until s, at most a few of them, on a path that ends at ``end``."""
        if self._end is not None and self._end[0] != end:
            self._end = None
        for _ in range(_NEW):
            last = self._first + len(self._ways) * SPACE
            if self._end is not None or last >= until or len(self._ways) >= _MOST:
                return
            if last + SPACE >= end:
                q = self._solve(end, self._poses[-1])
                self._end = end, q, self._way(self._poses[-1], q)
                return
            q = self._solve(last + SPACE, self._poses[-1])
            self._ways.append(self._way(self._poses[-1], q))
            self._poses.append(q)

    def limits(self, s: float, behind: float, cruise: Any) -> tuple[float, float]:
        """Return limits of the speed and of the acceleration of what goes ahead on the path.

        Args:
            s: Where it is.
            behind: How far the body is behind it: what goes ahead keeps the limits of that part, too.
            cruise: Returns the highest speed on poses (T, nq) that are a step apart; None for no limit.
        """
        ways, poses, last = list(self._ways), list(self._poses), self._first + len(self._ways) * SPACE
        if self._end is not None:
            end, q, way = self._end
            left = end - last
            if left > 0.25 * SPACE or not ways:
                ways.append(way * (SPACE / max(left, _TINY)))
                poses.append(q)
            last = end
        if not ways:
            return _FASTEST, _FASTEST
        slopes = np.abs(np.array(ways)) / SPACE
        bends = np.abs(np.diff(np.array(ways), axis=0)) / SPACE**2
        turns = np.abs(np.diff(np.array(ways), n=2, axis=0)) / SPACE**3
        n, k = len(ways), len(self._joints)
        first, second, third = (np.full((n + 1, k), _TINY) for _ in range(3))
        np.maximum(first[:-1], slopes, out=first[:-1])
        np.maximum(first[1:], slopes, out=first[1:])
        for derivative, values in ((second, bends), (third, turns)):
            for offset in range(derivative.shape[0] - values.shape[0] + 1):
                part = derivative[offset : offset + len(values)]
                np.maximum(part, values, out=part)
        V, A, J = self._joints[:, TOP_SPEED], self._joints[:, TOP_ACCELERATION], self._joints[:, TOP_JERK]
        speed = np.minimum((_SHARE * V / first).min(1), np.sqrt(ALONG * A / second).min(1))
        speed = np.minimum(np.minimum(speed, np.cbrt(JERK * J / third).min(1)), _FASTEST)
        if cruise is not None:
            speed = np.minimum(speed, cruise(SPACE, np.array(poses)))
        gain = np.minimum((ALONG * A / first).min(1), (JERK * J / (3.0 * second * speed[:, None])).min(1))
        gain = np.minimum(gain, _FASTEST)
        nodes = math.ceil(behind / SPACE)
        gain, squares = _least_before(gain, nodes), _least_before(speed**2, nodes)
        squares[-1] = 0.0
        rises = 2.0 * np.minimum(gain[:-1], gain[1:])
        lengths = np.full(n, SPACE)
        lengths[-1] = max(last - self._first - (n - 1) * SPACE, _TINY)
        for row in range(n - 1, -1, -1):
            squares[row] = min(squares[row], squares[row + 1] + rises[row] * lengths[row])
        places = self._first + np.concatenate([[0.0], np.cumsum(lengths)])
        here = min(max(int(np.searchsorted(places, s, side="right")) - 1, 0), n - 1)
        most = float(np.interp(s, places, squares))
        return math.sqrt(max(most, 0.0)), float(min(gain[here], gain[here + 1]))


def _least_before(values: Array, n: int) -> Array:
    """Return the least of each value and of the n before it."""
    out, width = values.copy(), 1
    while width <= min(n, len(values) - 1):
        shift = min(width, n + 1 - width, len(values) - 1)
        out[shift:] = np.minimum(out[shift:], out[:-shift].copy())
        width += shift
    return out
