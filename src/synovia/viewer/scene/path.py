"""The path of a joint through the clip, with a dot for each key, and the contacts of feet, in one browser's scene."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from synovia.model.geometry import Array
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.scene.canvas import Canvas
from synovia.viewer.scene.lines import add_lines

_MOST: Final = 240  # largest number of points of a path
_COLOUR: Final = (214, 110, 46)
_STANDS: Final = (9, 146, 104)
_DOT: Final = 0.012  # size of the dot of a key or of a contact, fraction of the body's size


class ClipPath:
    """Shows the path of the selected joint, and where feet stand.

    Args:
        canvas: The browser, and the scale and colours of its scene.
        animation: The clip.

    Attributes:
        shown: Whether the path is shown.
        contacts: Whether the contacts of feet are shown.
    """

    def __init__(self, canvas: Canvas, animation: Animation) -> None:
        """Make the nodes, which are hidden at first."""
        self.shown = self.contacts = False
        self._animation, self._scale = animation, canvas.scale
        self._drawn: tuple[Any, ...] | None = None  # what the nodes currently show
        self._line = add_lines(canvas.client, "/path", _COLOUR, 2.0)
        self._dots, self._stands = (
            canvas.client.scene.add_point_cloud(
                name, np.zeros((1, 3)), colour, point_size=_DOT * canvas.size, point_shape="circle", visible=False
            )
            for name, colour in (("/path/keys", _COLOUR), ("/contacts", _STANDS))
        )

    def show(self, joint: int | None) -> None:
        """Show the path of a joint, a row of the given skeleton; send it only if it has changed."""
        with self._animation.lock:
            play, row = self._animation.play, joint if self.shown else None
            state = (
                row, self.contacts, play.motion, play.edited, play.keys, play.weight, play.first, play.end,
                self._animation.rooted,
            )  # fmt: skip
            if state == self._drawn:
                return
            first, last = play.span
            keyed, feet = list[float](), list[tuple[int, list[float]]]()
            if play.motion is not None:
                keyed = [key.frame / play.motion.fps for key in play.keys if key.frame is not None]
                for foot in play.solver().body.feet if self.contacts else ():
                    frames = np.flatnonzero(foot.stands)
                    times = frames[:: 1 + len(frames) // _MOST] / play.motion.fps
                    feet.append((foot.head, times.tolist()))
        line = dots = np.zeros((0, 3))
        if row is not None and play.motion is not None:
            times = np.linspace(first, last, min(play.end - play.first + 1, _MOST)).tolist()
            line, dots = self._places(row, times), self._places(row, keyed)
        stands = np.concatenate([np.zeros((0, 3)), *(self._places(head, times) for head, times in feet)])
        self._drawn = state
        if len(line) > 1:
            self._line.points = np.stack([line[:-1], line[1:]], axis=1).astype(np.float32)
        self._line.visible = len(line) > 1
        for cloud, places in ((self._dots, dots), (self._stands, stands)):
            if len(places):
                cloud.points = places.astype(np.float32)
            cloud.visible = len(places) > 0

    def _places(self, row: int, times: list[float]) -> Array:
        """Return the positions of a joint at some times of the clip, (n, 3), scene units."""
        animation = self._animation
        places = [animation.start(time).positions[row + animation.rooted.added] for time in times]
        return np.reshape(places, (-1, 3)) * self._scale
