"""Line segments in a browser's scene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.draw.theme import Theme
from synovia.model.geometry import Array

if TYPE_CHECKING:
    from viser import ClientHandle

STATES: Final = ("reached", "missed", "quiet")  # states of goals, which are also names of colours of a theme


def add_lines(client: ClientHandle, name: str, colour: tuple[int, int, int], width: float) -> Any:
    """Add hidden line segments that are ``width`` pixels wide; the caller sets their points later."""
    nothing = np.zeros((1, 2, 3), np.float32)
    return client.scene.add_line_segments(
        name, nothing, colour, thickness=width, thickness_units="screen", visible=False
    )


class StateLines:
    """Lines in the colours of the states of goals.

    Args:
        client: The browser.
        name: Name of the lines in the scene.
        theme: Colours.
        width: Width of the lines, pixels.
    """

    def __init__(self, client: ClientHandle, name: str, theme: Theme, width: float) -> None:
        """Make the nodes, which are never removed."""
        self._sent: dict[str, NDArray[np.float32]] = {}
        self._lines: dict[str, Any] = {
            state: add_lines(client, f"{name}/{state}", getattr(theme, state), width) for state in STATES
        }

    def set_theme(self, theme: Theme) -> None:
        """Change the colours."""
        for state, handle in self._lines.items():
            handle.colors = np.array(getattr(theme, state), np.uint8)

    def show(self, paths: Mapping[str, Sequence[Array]]) -> None:
        """Show the lines of each state, given as points (n, 3) in scene units; send only lines that have changed."""
        for state, handle in self._lines.items():
            drawn = [np.stack([path[:-1], path[1:]], axis=1) for path in paths[state] if len(path) > 1]
            if drawn:
                points = np.concatenate(drawn).astype(np.float32)
                if state not in self._sent or not np.array_equal(points, self._sent[state]):
                    handle.points = self._sent[state] = points
            handle.visible = bool(drawn)
