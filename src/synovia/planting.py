"""Planted feet after an edit: the package gives this module the function that holds them.

Tools of ``Motion`` offer to hold planted feet. The foot lock solves whole clips by least squares, so it is in a layer
above, and ``synovia`` registers it here when it is imported, as it registers how notebooks draw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_M = TypeVar("_M")
_plant: list[Callable[[Any, Callable[[int, int], object] | None], Any]] = []  # at most one


def plant_with(plant: Callable[[Any, Callable[[int, int], object] | None], Any]) -> None:
    """Register the function that holds the planted feet of a clip.

    Args:
        plant: Returns the clip with planted feet, or raises an error if it knows no feet. Its second argument is called
            with (steps done, all).
    """
    _plant[:] = [plant]


def with_planted_feet(motion: _M, progress: Callable[[int, int], object] | None = None) -> _M:
    """Return a clip whose planted feet do not slide.

    Args:
        motion: The clip.
        progress: Called with (steps done, all).

    Raises:
        UnsupportedError: If no joint is recognised as a foot, or the clip is too short.
    """
    for plant in _plant:
        motion = plant(motion, progress)
    return motion
