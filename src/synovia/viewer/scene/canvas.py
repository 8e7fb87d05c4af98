"""The data that all parts of one browser's scene need for drawing."""

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
    """One browser, and how lengths, directions and colours of the model are shown in its scene.

    Args:
        client: The browser.
        theme: Initial colours.
        scale: Scene units per length unit.
        size: Size of the body, scene units.
        up: Upward direction, (3,).
        redraw: Shows the scene again after a change that is not an edit.
    """

    client: ClientHandle
    theme: Theme
    scale: float
    size: float
    up: Array
    redraw: Callable[[], None]
