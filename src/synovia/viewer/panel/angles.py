"""Rotations as three angles that people type: about the fixed axes x, y and z, in this order, degrees."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from synovia.model.geometry import Array, as_numbers, fixed_xyz


def turn_of(angles: Sequence[float]) -> Array:
    """Return the rotation matrix of angles about the fixed axes x, y and z, in this order, degrees.

    Raises:
        InputError: If one is not finite.
    """
    return fixed_xyz(*np.radians(as_numbers(angles, (3,), "turn")).tolist())


def angles_of(turn: Array) -> list[float]:
    """Return the angles of a rotation matrix as ``turn_of`` takes them; the third is 0 where only their sum counts."""
    cosine = math.hypot(turn[0, 0], turn[1, 0])
    b = math.atan2(-turn[2, 0], cosine)
    if cosine > 1e-6:
        a, c = math.atan2(turn[2, 1], turn[2, 2]), math.atan2(turn[1, 0], turn[0, 0])
    else:
        a, c = math.atan2(-turn[1, 2], turn[1, 1]), 0.0
    return [math.degrees(angle) for angle in (a, b, c)]
