"""Time scaling of the look-ahead that leads a body: slower while the body is behind, or soon would be."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from synovia.kernels.layout import TOP_ACCELERATION, TOP_JERK, TOP_SPEED
from synovia.model.geometry import Array

_BEHIND: Final = 1.0  # ticks at top speed: with this lag of the body, the look-ahead runs at half pace
_SLOWEST: Final = 0.02  # least pace
_SLEW: Final = 0.2  # fraction of the joint acceleration limits for a change of the pace
_SPEED: Final = 0.9  # fraction of the joint velocity limits for the look-ahead
_BENDS: Final = 0.6  # fraction of the joint acceleration limits for changes of velocity along the path
_BRAKES: Final = 0.3  # fraction of the joint acceleration limits for slowing down before these
_FALL: Final = 0.3  # largest fall of the pace in a tick
_PATIENCE: Final = 0.5  # least pace that curvature asks for: a corner would ask for less at every pace
_TINY: Final = 1e-12  # avoids division by zero


class Pace:
    """Time scaling of the look-ahead that leads a body.

    Args:
        table: The axes of the body, see ``kernels.layout``.
        lag: With a limit of the jerk, part of the time from rest to top speed by which a body that follows may be late.
            If the pace reacted sooner, the body and its look-ahead would oscillate.

    Attributes:
        share: The pace: seconds of the look-ahead per second, at most 1.
    """

    def __init__(self, table: Array, lag: float = 0.0) -> None:
        """Begin at full pace."""
        self._table, self._lag = table, lag
        self.share = 1.0
        self._slope = np.zeros(len(table))

    def adapt(self, behind: Array, h: float, most: float = np.inf, led: Array | None = None) -> None:
        """Slow down if the body falls behind, and speed up again.

        Args:
            behind: Distance of each axis from the look-ahead, radians or length units.
            h: Time of a tick, seconds.
            most: Largest ratio of the look-ahead's speed to its speed in the last tick.
            led: Displacement of each axis of the look-ahead in this tick; then the pace also keeps the limits on its
                path.
        """
        speed, acceleration = self._table[:, TOP_SPEED], self._table[:, TOP_ACCELERATION]
        jerk, allowed = self._table[:, TOP_JERK], _BEHIND * h
        if self._lag and np.isfinite(jerk).all():
            allowed = max(allowed, self._lag * float((acceleration / jerk + speed / acceleration).max(initial=0.0)))
        late = float((np.abs(behind) / speed).max(initial=0.0))
        wanted = min(1.0 / (1.0 + (late / allowed) ** 2), most * self.share)
        slew = fall = _SLEW * h * float((acceleration / speed).min(initial=np.inf))
        if led is not None:
            slope = led / (h * self.share)
            bend = np.abs(slope - self._slope) / (h * self.share)
            self._slope = slope
            even = float((_SPEED * speed / np.maximum(np.abs(slope), _TINY)).min(initial=np.inf))
            bent = math.sqrt(float((_BENDS * acceleration / np.maximum(bend, _TINY)).min(initial=np.inf)))
            wanted = min(wanted, max(min(even, bent), _PATIENCE))
            brakes = float((acceleration / np.maximum(np.abs(slope), _TINY)).min(initial=np.inf))
            fall = max(slew, min(_BRAKES * h * brakes, _FALL))
        low, high = max(self.share - fall, _SLOWEST), min(self.share + slew, 1.0)
        self.share = min(max(wanted, low), high)
