"""What every part of one browser's scene draws with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synovia.draw.theme import Theme
from synovia.model.geometry import Array

if TYPE_CHECKING:
    from viser import ClientHandle


@dataclass(frozen=True, slots=True, eq=False)
class Canvas:
    """One browser, and how the model's lengths, directions and colours look in its scene.

    Args:
        client: The browser.
        theme: Colours at first.
        scale: Scene units per length unit.
        size: Size of the body, scene units.
        up: Upward direction, (3,).
        redraw: Function that has the scene shown again, after a change that is no edit.
    """

    client: ClientHandle
    theme: Theme
    scale: float
    size: float
    up: Array
    redraw: Callable[[], None]
