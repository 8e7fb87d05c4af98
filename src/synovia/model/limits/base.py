"""The base class of limits."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import ChecksArguments

FARTHEST = 1e15  # radians or length units; larger than all joint values, so larger bounds have no effect


class Limit(ChecksArguments, ABC):
    """A hard bound on the value of one joint.

    Example:
        >>> import synovia as sy
        >>> elbow = sy.Interval(-2.4, 0.0)
        >>> isinstance(elbow, sy.skeletons.Limit)
        True
    """

    @abstractmethod
    def row(self) -> NDArray[np.float64]:
        """Return the limit in the form that kernels read, (11,).

        The columns are those of ``kernels.layout``. The bounds are in radians or length units.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return the limit as text, for tables and messages."""
