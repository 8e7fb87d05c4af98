"""Look-ahead on a path: joint values at sample points, and the highest speed of the body there.

The points are evenly spaced. A tick solves a few more points, and moves as if the path ended at the last one: so the
body can always stop within the known part. The speed at a point is limited by the speeds of joints and by the curvature
of the path there. In a backward pass from the end, the acceleration at each point limits the speed at the point before.

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

SPACE: Final = 0.004  # length scales and radians between two points
_NEW: Final = 8  # largest number of points solved in a tick
_MOST: Final = 400  # largest number of points ahead
_SHARE: Final = 0.85  # fraction of the joint velocity limits
ALONG: Final = 0.4  # fraction of the joint acceleration limits for gaining speed, and the same again for curvature
JERK: Final = 0.25  # fraction of the joint jerk limits for each of three contributions
_TINY: Final = 1e-12  # replaces a derivative of zero
_FASTEST: Final = 1e6  # limit of the path parameter where no joint moves


class Ahead:
    """Joint values at the points ahead.

    Args:
        joints: The axes of the body, see ``kernels.layout``.
        way: Returns the displacement of each axis from one pose to another.
        solve: Returns joint values (nq,) at a path parameter, from a start.
    """

    def __init__(
        self, joints: Array, way: Callable[[Array, Array], Array], solve: Callable[[float, Array], Array]
    ) -> None:
        """Begin at the start of a path."""
        self._joints, self._way, self._solve = joints, way, solve
        self.reset(0.0, np.zeros(0))

    def reset(self, s: float, q: Array) -> None:
        """Restart at path parameter s with joint values (nq,)."""
        self._first = s
        self._poses, self._ways = [q], list[Array]()
        self._end: tuple[float, Array, Array] | None = None  # end of the path: parameter, pose, displacement to it

    def cut(self, s: float) -> None:
        """Discard points beyond s."""
        kept = max(int((s - self._first) / SPACE), 0)
        del self._poses[kept + 1 :], self._ways[kept:]
        self._end = None

    def pass_by(self, s: float) -> None:
        """Discard points that s has passed, except the last two."""
        passed = min(max(int((s - self._first) / SPACE) - 1, 0), len(self._ways))
        del self._poses[:passed], self._ways[:passed]
        self._first += passed * SPACE

    def look(self, until: float, end: float) -> None:
        """Solve the next few points up to path parameter ``until``, on a path that ends at ``end``."""
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
        """Return limits of the speed and of the acceleration of the path parameter.

        Args:
            s: Path parameter.
            behind: Distance of the body behind s: the limits of that part of the path also apply.
            cruise: Returns the highest speed for poses (T, nq) at a given spacing; None for no limit.
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
    """Return the minimum of each value and the n values before it."""
    out, width = values.copy(), 1
    while width <= min(n, len(values) - 1):
        shift = min(width, n + 1 - width, len(values) - 1)
        out[shift:] = np.minimum(out[shift:], out[:-shift].copy())
        width += shift
    return out
