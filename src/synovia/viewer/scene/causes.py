"""Lines and labels in one browser's scene that show why goals are missed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from synovia.draw.causes import Cause
from synovia.model.geometry import Array
from synovia.viewer.scene.canvas import Canvas
from synovia.viewer.scene.lines import add_lines

_MOST: Final = 8  # largest number of labels
# Colours that differ from those of goals, by kind.
_COLOURS: Final = {
    "reach": (66, 99, 235), "proof": (112, 72, 232), "limit": (224, 49, 49), "goal": (217, 115, 13),
    "move": (9, 146, 104),
}  # fmt: skip


class Causes:
    """The lines and labels of causes; without causes they are hidden.

    Args:
        canvas: The browser, and the scale and colours of its scene.
    """

    def __init__(self, canvas: Canvas) -> None:
        """Make the lines, which are hidden at first."""
        self._scene, self._scale = canvas.client.scene, canvas.scale
        self._lines = {
            kind: add_lines(canvas.client, f"/causes/{kind}", colour, 2.5) for kind, colour in _COLOURS.items()
        }
        self._labels: list[Any] = []
        self._shown: Sequence[Cause] = ()

    def show(self, causes: Sequence[Cause]) -> None:
        """Show causes, and remove the previous ones."""
        if not (causes or self._shown):
            return
        self._shown = causes
        for kind, handle in self._lines.items():
            paths: list[Array] = [path for cause in causes if cause.kind == kind for path in cause.paths]
            if paths:
                parts = [np.stack([path[:-1], path[1:]], axis=1) for path in paths]
                handle.points = (self._scale * np.concatenate(parts)).astype(np.float32)
            handle.visible = bool(paths)
        labelled = causes[:_MOST]
        while len(self._labels) < len(labelled):
            name = f"/causes/label/{len(self._labels)}"
            self._labels.append(self._scene.add_label(name, "", anchor="bottom-left", font_screen_scale=0.8))
        for k, label in enumerate(self._labels):
            label.visible = k < len(labelled)
            if label.visible:
                label.text, label.position = labelled[k].text, tuple(self._scale * labelled[k].at)
