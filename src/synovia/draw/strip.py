"""The strip below a film: how far goals were missed, frame by frame, and where the film is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from synovia.draw.raster import Canvas
from synovia.draw.theme import Theme
from synovia.model.geometry import Array

if TYPE_CHECKING:
    from PIL import Image

_DECADES: Final = (-2.0, 3.0)  # of the tolerance: what the strip shows, on a logarithmic scale


class Strip:
    """Errors of a clip, drawn once; the cursor comes with each frame.

    Args:
        errors: (T,) largest error of each frame, in tolerances: up to 1 is reached.
        size: Width and height, pixels.
        theme: Colours.
    """

    def __init__(self, errors: Array, size: tuple[int, int], theme: Theme) -> None:
        """Draw the curve."""
        self._size, self._theme = size, theme
        width, height = size
        self._left, self._right = 0.03 * width, 0.97 * width
        self._top, self._bottom = 0.26 * height, 0.86 * height
        paper = np.full((height, width, 3), theme.paper, np.float32)
        canvas = Canvas(paper)
        thin = max(height / 60.0, 1.0)
        limit = self._height(1.0)
        canvas.line((self._left, limit), (self._right, limit), thin, theme.grid)
        x = np.linspace(self._left, self._right, len(errors))
        y = [self._height(float(error)) for error in errors]
        for k in range(1, len(errors)):
            colour = theme.missed if max(errors[k - 1], errors[k]) > 1.0 else theme.reached
            canvas.line((float(x[k - 1]), y[k - 1]), (float(x[k]), y[k]), 2.0 * thin, colour)
        missed = int((errors > 1.0).sum())
        text = "error by frame; line: tolerance" + (f"; {missed} of {len(errors)} frames missed" if missed else "")
        canvas.text((self._left, 0.14 * height), text, 0.17 * height, theme.quiet)
        self._image, self._x = canvas.image, x

    def _height(self, error: float) -> float:
        """Return where an error stands, pixels from the top."""
        low, high = _DECADES
        share = (np.clip(np.log10(max(error, 1e-12)), low, high) - low) / (high - low)
        return float(self._bottom - share * (self._bottom - self._top))

    def at(self, frame: int) -> Image.Image:
        """Return the strip with its cursor at a frame."""
        from PIL import ImageDraw

        image = self._image.copy()
        x, thick = float(self._x[frame]), max(self._size[1] / 40.0, 1.0)
        ImageDraw.Draw(image).rectangle(
            (x - thick / 2.0, self._top, x + thick / 2.0, self._bottom + 0.05 * self._size[1]), fill=self._theme.ink
        )
        return image
