"""Time scaling of the look-ahead that leads a body: slower while the body is behind, or soon would be."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.kernels.layout import TOP_ACCELERATION, TOP_JERK, TOP_SPEED
from synovia.model.geometry import Array

_BEHIND: Final = 1.0  # ticks at top speed: with this lag of the body, the look-ahead runs at half pace
_SLOWEST: Final = 0.02  # least pace
_SLEW: Final = 0.2  # fraction of the joint acceleration limits for a change of the pace


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

    def adapt(self, behind: Array, h: float) -> None:
        """Slow down if the body falls behind, and speed up again.

        Args:
            behind: Distance of each axis from the look-ahead, radians or length units.
            h: Time of a tick, seconds.
        """
        speed, acceleration = self._table[:, TOP_SPEED], self._table[:, TOP_ACCELERATION]
        jerk, allowed = self._table[:, TOP_JERK], _BEHIND * h
        if self._lag and np.isfinite(jerk).all():
            allowed = max(allowed, self._lag * float((acceleration / jerk + speed / acceleration).max(initial=0.0)))
        late = float((np.abs(behind) / speed).max(initial=0.0))
        slew = _SLEW * h * float((acceleration / speed).min(initial=np.inf))
        low, high = max(self.share - slew, _SLOWEST), min(self.share + slew, 1.0)
        self.share = min(max(1.0 / (1.0 + (late / allowed) ** 2), low), high)
