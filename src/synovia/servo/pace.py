"""How fast what goes ahead of a body goes: more slowly while the body is behind."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.kernels.layout import TOP_ACCELERATION, TOP_SPEED
from synovia.model.geometry import Array

_BEHIND: Final = 1.0  # ticks at top speed that the body is behind when its leader goes at half its pace
_SLOWEST: Final = 0.02  # pace
_SLEW: Final = 0.2  # part of the acceleration that a change of the pace takes


class Pace:
    """Part of the time that passes for what leads a body.

    Args:
        table: The axes of the body, see ``kernels.layout``.

    Attributes:
        share: The part, up to 1.
    """

    def __init__(self, table: Array) -> None:
        """Begin at full pace."""
        self._table = table
        self.share = 1.0

    def adapt(self, behind: Array, h: float, most: float = np.inf) -> None:
        """Slow down if the body falls behind, and speed up again.

        Args:
            behind: How far each axis is from where it is led, radians or length units.
            h: Time of a tick, seconds.
            most: How much faster what goes ahead may be than in the last tick.
        """
        speed = self._table[:, TOP_SPEED]
        ticks = float((np.abs(behind) / (speed * h)).max(initial=0.0))
        wanted = min(1.0 / (1.0 + (ticks / _BEHIND) ** 2), most * self.share)
        slew = _SLEW * h * float((self._table[:, TOP_ACCELERATION] / speed).min(initial=np.inf))
        low, high = max(self.share - slew, _SLOWEST), min(self.share + slew, 1.0)
        self.share = min(max(wanted, low), high)
