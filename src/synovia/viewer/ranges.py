"""Ranges of joints in a browser's scene: arcs that say whether their goals hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.draw.arcs import range_lines, value_of
from synovia.draw.scene import bones_of, radii_of
from synovia.draw.theme import Theme
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.viewer.engine import Frame
from synovia.viewer.wish import bounds_of

if TYPE_CHECKING:
    from viser import ClientHandle

_RADIUS: Final = 0.1  # of the body's size: outside the arcs of limits
_BESIDE: Final = 1.1  # of the joint's radius: an arc in the middle of a thick bone would be out of sight
_STATES: Final = ("reached", "missed", "quiet")  # colours of a theme


class Ranges:
    """The arcs of ranges in one browser's scene, in the colours of targets: met, missed, or off.

    Args:
        client: The browser.
        skeleton: The skeleton that was given.
        theme: Colours.
        scale: Scene units per length unit.
        size: Size of the body, scene units.
    """

    def __init__(self, client: ClientHandle, skeleton: Skeleton, theme: Theme, *, scale: float, size: float) -> None:
        """Make what stays."""
        self._skeleton, self._scale, self._radius = skeleton, scale, _RADIUS * size / scale
        self._beside = _BESIDE * radii_of(skeleton, bones_of(skeleton))
        self._sent: dict[str, NDArray[np.float32]] = {}
        self._lines: dict[str, Any] = {
            state: client.scene.add_line_segments(
                f"/ranges/{state}",
                np.zeros((1, 2, 3), np.float32),
                getattr(theme, state),
                thickness=4.0,
                thickness_units="screen",
                visible=False,
            )
            for state in _STATES
        }

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        for state, handle in self._lines.items():
            handle.colors = np.array(getattr(theme, state), np.uint8)

    def show(self, frame: Frame, added: int) -> None:
        """Show the ranges of a frame; ``added``: rows of its pose before those of the skeleton that was given."""
        parts: dict[str, list[Array]] = {state: [] for state in _STATES}
        for wish in frame.wishes:
            if (bounds := bounds_of(wish)) is not None and wish.row is not None:
                solved = wish.enabled and wish.key in frame.errors
                state = "missed" if wish.key in frame.missed else "reached" if solved else "quiet"
                parts[state] += self._segments(frame, wish.row, bounds, added)
        for state, handle in self._lines.items():
            if parts[state]:
                points = np.concatenate(parts[state]).astype(np.float32)
                if state not in self._sent or not np.array_equal(points, self._sent[state]):
                    handle.points = self._sent[state] = points
            if handle.visible != bool(parts[state]):
                handle.visible = bool(parts[state])

    def _segments(self, frame: Frame, row: int, bounds: tuple[float, float], added: int) -> list[Array]:
        """Return the line segments of one range, each (s, 2, 3), scene units."""
        skeleton, world = self._skeleton, frame.pose.frames[added:]
        above = skeleton.parents[row]
        turn = world[above, :9].reshape(3, 3) if above >= 0 else np.eye(3)
        lines = range_lines(skeleton, row, bounds, value_of(frame.pose, row + added), self._radius, self._beside[row])
        placed = [(line @ turn.T + world[row, 9:]) * self._scale for line in lines]
        return [np.stack([line[:-1], line[1:]], axis=1) for line in placed]
