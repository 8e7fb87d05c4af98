"""How fast what goes ahead of a body goes: more slowly while the body is behind, or where it soon would be."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from synovia.kernels.layout import TOP_ACCELERATION, TOP_SPEED
from synovia.model.geometry import Array

_BEHIND: Final = 1.0  # ticks at top speed that the body is behind when its leader goes at half its pace
_SLOWEST: Final = 0.02  # pace
_SLEW: Final = 0.2  # part of the acceleration that a change of the pace takes
_SPEED: Final = 0.9  # part of the speeds of joints at which what goes ahead leads them
_BENDS: Final = 0.6  # part of their acceleration for bends of the way
_BRAKES: Final = 0.3  # part of it for slowing down before these
_FALL: Final = 0.3  # largest fall of the pace in a tick
_PATIENCE: Final = 0.5  # pace at which bends are passed as they come: a corner has one at each pace
_TINY: Final = 1e-12  # instead of none


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
        self._slope = np.zeros(len(table))

    def adapt(self, behind: Array, h: float, most: float = np.inf, led: Array | None = None) -> None:
        """Slow down if the body falls behind, and speed up again.

        Args:
            behind: How far each axis is from where it is led, radians or length units.
            h: Time of a tick, seconds.
            most: How much faster what goes ahead may be than in the last tick.
            led: How far each axis was led in this tick; then the pace also keeps the limits on such a way.
        """
        speed, acceleration = self._table[:, TOP_SPEED], self._table[:, TOP_ACCELERATION]
        ticks = float((np.abs(behind) / (speed * h)).max(initial=0.0))
        wanted = min(1.0 / (1.0 + (ticks / _BEHIND) ** 2), most * self.share)
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
