"""The path of a joint through the clip, with a dot for each key, in one browser's scene."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from synovia.model.geometry import Array
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.scene.canvas import Canvas
from synovia.viewer.scene.lines import add_lines

_MOST: Final = 240  # largest number of points of a path
_COLOUR: Final = (214, 110, 46)
_DOT: Final = 0.012  # size of the dot of a key, fraction of the body's size


class ClipPath:
    """Shows the path of the selected joint while the clip plays.

    Args:
        canvas: The browser, and the scale and colours of its scene.
        animation: The clip.
    """

    def __init__(self, canvas: Canvas, animation: Animation) -> None:
        """Make the nodes, which are hidden at first."""
        self.shown = False
        self._animation, self._scale = animation, canvas.scale
        self._drawn: tuple[Any, ...] | None = None  # what the nodes currently show
        nothing: Array = np.zeros((1, 3))
        self._line = add_lines(canvas.client, "/path", _COLOUR, 2.0)
        self._dots = canvas.client.scene.add_point_cloud(
            "/path/keys", nothing, _COLOUR, point_size=_DOT * canvas.size, point_shape="circle"
        )

    def show(self, joint: int | None) -> None:
        """Show the path of a joint, a row of the given skeleton; send it only if it has changed."""
        with self._animation.lock:
            play, row = self._animation.play, joint if self.shown else None
            state = (
                row,
                play.motion,
                play.edited,
                play.keys,
                play.weight,
                play.first,
                play.end,
                self._animation.rooted,
            )
            if row is None or play.motion is None:
                self._line.visible = False
                self._drawn = None
                return
            if state == self._drawn:
                return
            first, last = play.span
            keyed = [key.frame / play.motion.fps for key in play.keys if key.frame is not None]
        times = np.linspace(first, last, min(play.end - play.first + 1, _MOST)).tolist()
        line, dots = self._places(row, times), self._places(row, keyed)
        self._drawn = state
        self._line.points = np.stack([line[:-1], line[1:]], axis=1).astype(np.float32)
        self._dots.points = dots.astype(np.float32)
        self._dots.visible = len(dots) > 0
        self._line.visible = True

    def _places(self, row: int, times: list[float]) -> Array:
        """Return the positions of a joint at some times of the clip, (n, 3), scene units."""
        animation = self._animation
        places = [animation.start(time).positions[row + animation.rooted.added] for time in times]
        return np.reshape(places, (-1, 3)) * self._scale
