"""Limits of hinges (radians) and slides (length units of the file)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.kernels.layout import LIMIT_WIDTH, LOWER, UPPER
from synovia.model.geometry import as_numbers
from synovia.model.limits.base import FARTHEST, Limit


@dataclass(frozen=True, slots=True)
class Interval(Limit):
    """Allowed values of a hinge or a slide: ``lower <= value <= upper``.

    Args:
        lower: Smallest value, radians or length units; ``-inf`` for no bound.
        upper: Largest value; ``inf`` for no bound.

    Raises:
        InputError: If an end is NaN or the ends are reversed.

    Example:
        >>> Interval(-0.5, 2.0).contains(2.5)
        False
    """

    lower: float = -math.inf
    upper: float = math.inf

    def __post_init__(self) -> None:
        """Raise an error for an empty interval."""
        lower, upper = as_numbers((self.lower, self.upper), (2,), "limits", finite=False).tolist()
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        if not lower <= upper or lower == math.inf or upper == -math.inf:
            raise InputError("limits", value=(lower, upper), expected="lower <= upper, with a finite number between")

    @property
    def locked(self) -> bool:
        """Whether the interval has only one value, so that the joint cannot move."""
        return self.lower == self.upper

    def contains(self, value: float, slack: float = 1e-9) -> bool:
        """Return whether a value is inside, up to the tolerance of all results."""
        return self.lower - slack <= value <= self.upper + slack

    def row(self) -> NDArray[np.float64]:
        """Return (lower, upper, 0, ...); infinite ends are replaced by values beyond all joint values."""
        row = np.zeros(LIMIT_WIDTH)
        row[LOWER] = self.lower if self.lower >= -FARTHEST else -math.inf
        row[UPPER] = self.upper if self.upper <= FARTHEST else math.inf
        return row

    def describe(self) -> str:
        """Return both ends as text, radians or length units."""
        return f"{self.lower:g} to {self.upper:g}"
