"""Smooth lines, rings, labels and layers, drawn with Pillow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.draw.bodies import Pixels
from synovia.draw.theme import Colour
from synovia.io.base import optional_package

if TYPE_CHECKING:
    from PIL import ImageFont

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom, pixels
_DASHES: Final = 1000  # largest number of dashes in a line, enough for any image
_SAMPLES: Final = 4  # samples per pixel in each direction, because Pillow draws lines and rings with hard edges


def require_pillow() -> None:
    """Check that Pillow is installed.

    Raises:
        MissingExtraError: If it is not installed.
    """
    optional_package("PIL.Image", "pictures need Pillow", "render")


class _Patch:
    """A mask for a part of an image, with several samples per pixel.

    Args:
        box: Left, top, right and bottom of the part, pixels.
    """

    def __init__(self, box: tuple[int, int, int, int]) -> None:
        """Create an empty mask."""
        from PIL import Image, ImageDraw

        self.box = box
        self.mask = Image.new("L", ((box[2] - box[0]) * _SAMPLES, (box[3] - box[1]) * _SAMPLES), 0)
        self.pen = ImageDraw.Draw(self.mask)

    def move(self, point: Point) -> Point:
        """Convert pixels to samples of the mask."""
        return (point[0] - self.box[0]) * _SAMPLES, (point[1] - self.box[1]) * _SAMPLES

    def disc(self, centre: Point, radius: float, fill: int) -> None:
        """Fill a disc, centre and radius in pixels."""
        (x, y), r = self.move(centre), radius * _SAMPLES
        if r > 0.0:
            self.pen.ellipse((x - r, y - r, x + r, y + r), fill=fill)


class Canvas:
    """An image to draw on.

    Args:
        pixels: The background, (h, w, 3), 0 to 255.
    """

    def __init__(self, pixels: NDArray[np.floating[Any]]) -> None:
        """Convert the pixels to an image."""
        from PIL import Image

        self.image = Image.fromarray(np.rint(np.clip(pixels, 0.0, 255.0)).astype(np.uint8))
        self._fonts: dict[int, ImageFont.FreeTypeFont | ImageFont.ImageFont] = {}

    def lay(self, at: tuple[int, int], pixels: Pixels, opacity: float = 1.0) -> None:
        """Paste red, green, blue and coverage (h, w, 4) with the top left corner at a pixel."""
        from PIL import Image

        cover = pixels[..., 3] if opacity >= 1.0 else np.rint(pixels[..., 3] * opacity).astype(np.uint8)
        colour = Image.fromarray(np.ascontiguousarray(pixels[..., :3]))
        self.image.paste(colour, at, Image.fromarray(np.ascontiguousarray(cover)))

    def line(self, start: Point, end: Point, width: float, colour: Colour, opacity: float = 1.0) -> None:
        """Draw a line with round ends."""
        patch = self._patch((start, end), width)
        if patch is not None:
            patch.pen.line([patch.move(start), patch.move(end)], fill=255, width=max(round(width * _SAMPLES), 1))
            for point in (start, end):
                patch.disc(point, width / 2.0, 255)
            self._stamp(patch, colour, opacity)

    def dashes(self, start: Point, end: Point, width: float, dash: float, colour: Colour) -> None:
        """Draw a dashed line that begins and ends with a dash."""
        length = math.dist(start, end)
        count = min(max(round((length / dash + 0.8) / 1.8), 1), _DASHES)
        period = length / max(count - 0.45, 0.55)
        for k in range(count):
            ends = (k * period / length, min((k + 0.55) * period / length, 1.0)) if length > 0.0 else (0.0, 0.0)
            a, b = ((start[0] + t * (end[0] - start[0]), start[1] + t * (end[1] - start[1])) for t in ends)
            self.line(a, b, width, colour)

    def ring(self, centre: Point, radius: float, width: float, colour: Colour, opacity: float = 1.0) -> None:
        """Draw a circle with a given line width; a disc if the width is at least the radius."""
        patch = self._patch((centre,), 2.0 * radius + width)
        if patch is not None:
            patch.disc(centre, radius + width / 2.0, 255)
            if width < radius:
                patch.disc(centre, radius - width / 2.0, 0)
            self._stamp(patch, colour, opacity)

    def pill(self, box: Box, paper: Colour, border: Colour | None) -> None:
        """Draw the background of a label: opaque with a border, or translucent without one."""
        edge = max(0.075 * (box[3] - box[1]), 1.0)
        if border is not None:
            self._round(box, border, 1.0)
            box = (box[0] + edge, box[1] + edge, box[2] - edge, box[3] - edge)
        self._round(box, paper, 1.0 if border else 0.78)

    def _round(self, box: Box, colour: Colour, opacity: float) -> None:
        """Fill a box that has half circles as ends."""
        patch = self._patch((box[:2], box[2:]), 2.0)
        if patch is not None:
            corners = (*patch.move(box[:2]), *patch.move(box[2:]))
            patch.pen.rounded_rectangle(corners, radius=(box[3] - box[1]) / 2.0 * _SAMPLES, fill=255)
            self._stamp(patch, colour, opacity)

    def text_width(self, text: str, height: float) -> float:
        """Return the width, in pixels, of a text written at a given height."""
        return float(self._font(height).getlength(text))

    def text(self, middle_left: Point, text: str, height: float, colour: Colour) -> None:
        """Write a text that begins at a point, vertically centred on it."""
        from PIL import ImageDraw

        ImageDraw.Draw(self.image).text(middle_left, text, font=self._font(height), fill=colour, anchor="lm")

    def _font(self, height: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
        """Return the built-in font of Pillow at a size, so that no font has to be installed."""
        from PIL import ImageFont

        size = max(round(height), 6)
        if size not in self._fonts:
            self._fonts[size] = ImageFont.load_default(size=size)
        return self._fonts[size]

    def _patch(self, points: Sequence[Point], width: float) -> _Patch | None:
        """Return a mask around points with a margin of half of ``width``; None if it is outside the image."""
        more = width / 2.0 + 2.0
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        right, bottom = self.image.size
        left, top = max(math.floor(min(xs) - more), 0), max(math.floor(min(ys) - more), 0)
        right, bottom = min(math.ceil(max(xs) + more), right), min(math.ceil(max(ys) + more), bottom)
        return _Patch((left, top, right, bottom)) if right > left and bottom > top else None

    def _stamp(self, patch: _Patch, colour: Colour, opacity: float) -> None:
        """Paint a colour on the image through a mask."""
        small = patch.mask.reduce(_SAMPLES)
        if opacity < 1.0:
            small = small.point([round(opacity * v) for v in range(256)])
        self.image.paste(colour, patch.box, small)
