"""Planted feet after an edit: registration of the function that locks them.

Tools of ``Motion`` have an option to lock planted feet. The foot lock solves whole clips by least squares, so it is in
a layer above. ``synovia`` registers it here on import, as it registers the drawing function for notebooks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_M = TypeVar("_M")
_plant: list[Callable[[Any, Callable[[int, int], object] | None], Any]] = []  # the registered function; at most one


def plant_with(plant: Callable[[Any, Callable[[int, int], object] | None], Any]) -> None:
    """Register the function that locks the planted feet of a clip.

    Args:
        plant: Returns the clip with locked feet, or raises an error if it recognizes no feet. Its second argument is
            called with the work done and the total.
    """
    _plant[:] = [plant]


def with_planted_feet(motion: _M, progress: Callable[[int, int], object] | None = None) -> _M:
    """Return a clip whose planted feet do not slide.

    Args:
        motion: The clip.
        progress: Called with the work done and the total.

    Raises:
        UnsupportedError: If no joint is recognised as a foot, or the clip is too short.
    """
    for plant in _plant:
        motion = plant(motion, progress)
    return motion
