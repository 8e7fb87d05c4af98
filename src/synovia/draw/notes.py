"""Annotations of an image: rings at targets, remaining distances, axes, names, the title; and the layout of texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.draw.camera import Camera
from synovia.draw.gaps import Gap
from synovia.draw.raster import Box, Canvas, Point
from synovia.draw.scene import Mark, Scene
from synovia.draw.theme import Colour, Theme
from synovia.model.geometry import Array

# colours of the axes: x red, y green, z blue
_AXES: Final[tuple[Colour, ...]] = ((222, 68, 68), (58, 166, 82), (64, 116, 226))
_NUMBER: Final = re.compile(r"-?\d+\.\d")
_AXIS: Final = 0.075  # length of a drawn axis, as a fraction of the content's size

# Directions of a label from its point, degrees. Right, left, above and below are preferred: people look there first.
_ANGLES: Final = (0, 180, 90, -90, 30, -30, 150, -150, 60, -60, 120, -120)
_STEPS: Final = (0.0, 0.8, 1.8, 3.0, 4.6, 6.5)  # distances of a label from its point, in text heights
_LEGIBLE: Final = 0.75  # smallest scale at which the short lines between pairs are visible
_HIDES: Final = 7.0  # cost of a label that covers only bones; a distance of one text height costs 1


class Texts(NamedTuple):
    """Texts at the edges of an image.

    Args:
        title: Line of text at the top.
        caption: Line of small text at the bottom.
        table: Names and values in the upper right corner.
    """

    title: str | None = None
    caption: str = ""
    table: Sequence[tuple[str, str]] = ()


class Notes:
    """Draw the annotations of an image.

    Args:
        canvas: The image.
        camera: Camera of the image.
        placer: Finds free places for texts.
        theme: Colours.
        scale: Size of texts and lines; 1 for an image of 900 pixels.
    """

    def __init__(self, canvas: Canvas, camera: Camera, placer: Placer, theme: Theme, scale: float) -> None:
        """Store the arguments."""
        self._canvas, self._camera, self._placer, self._theme = canvas, camera, placer, theme
        self._scale = scale

    def write(self, scene: Scene, texts: Texts) -> None:
        """Draw all annotations; lines first, so that they do not cross texts."""
        if texts.title:
            self._title(texts.title)
        if texts.caption:
            self._caption(texts.caption)
        if texts.table:
            self._table(texts.table)
        seen = [mark for mark in scene.marks if self._in_front(np.stack([mark.position, mark.place]))]
        rings = [(mark, *self._ring_of(scene, mark)) for mark in seen]
        for mark, place, radius in rings:
            self._placer.take((place[0] - radius, place[1] - radius, place[0] + radius, place[1] + radius))
            self._lines(scene, mark, place, radius)
        labels: list[tuple[str, Point, float, Colour]] = []
        for gap in scene.gaps:
            if self._in_front(gap.points):
                labels += self._gap(gap, scene)
        for mark, place, radius in rings:
            colour = self._theme.reached if mark.reached else self._theme.missed
            if mark.label:
                labels.append((mark.label, place, radius + 7.0 * self._scale, colour))
            if not mark.reached and (mark.note or mark.target is not None):
                note = mark.note or scene.distance_text(mark.miss)
                labels.append((note, self._point((mark.position + mark.place) / 2.0)[0], 9.0 * self._scale, colour))
        for text, place, gap, colour in labels:
            self._label(text, place, gap, colour)
        for place, name in scene.names:
            if self._in_front(place[None]):
                self._label(name, self._point(place)[0], 7.0 * self._scale, None)

    def _point(self, place: Array) -> tuple[Point, float]:
        """Return the pixel of a point, and the scale at the point, pixels per length unit."""
        pixels, _, scales = self._camera.project(place[None, :])
        return (float(pixels[0, 0]), float(pixels[0, 1])), float(scales[0])

    def _in_front(self, places: Array) -> bool:
        """Return whether all points, (n, 3), are in front of the camera."""
        _, depths, _ = self._camera.project(places)
        return bool((depths > self._camera.nearest).all())

    def _ring_of(self, scene: Scene, mark: Mark) -> tuple[Point, float]:
        """Return the centre and the radius (pixels) of a mark's ring, which surrounds the joint."""
        place, scale = self._point(mark.place)
        nearest = int(np.argmin(np.linalg.norm(scene.solid.start - mark.position, axis=1)))
        joint = float(scene.solid.radii[nearest, 0]) * scale if mark.on_joint else 0.0
        radius = max(13.0 * self._scale, 1.45 * joint + 4.0 * self._scale)
        return place, radius if scene.skins[-1] is None else min(radius, 23.0 * self._scale)  # keeps a face visible

    def _lines(self, scene: Scene, mark: Mark, place: Point, radius: float) -> None:
        """Draw the ring and the axes of a mark, and a line to the target if it was missed."""
        s, theme = self._scale, self._theme
        colour = theme.reached if mark.reached else theme.missed
        canvas = self._canvas
        for path in mark.paths:
            self._path(path, colour)
        if scene.skins[-1] is None:  # because a disc would hide a face
            canvas.ring(place, radius / 2.0, radius, colour, 0.16)
        if not mark.reached and mark.target is not None and not mark.note:
            start = self._point(mark.position)[0]
            canvas.line(start, place, 5.0 * s, theme.paper, 0.55)
            canvas.dashes(start, place, 2.4 * s, 8.0 * s, colour)
        canvas.ring(place, radius, 6.0 * s, theme.paper, 0.8)
        canvas.ring(place, radius, 3.2 * s, colour)
        if mark.reached:
            canvas.ring(place, 1.75 * s, 3.5 * s, theme.paper)
            canvas.ring(place, 1.25 * s, 2.5 * s, colour)
        else:  # add a cross, so that the meaning does not depend on colour only
            arm = 0.36 * radius
            for k in (1.0, -1.0):
                ends = ((place[0] - arm, place[1] - k * arm), (place[0] + arm, place[1] + k * arm))
                canvas.line(*ends, 2.6 * s, colour)
        if mark.target_rotation is not None:
            self._triad(mark.place, mark.target_rotation, _AXIS * scene.extent, 3.4 * s)
        if mark.rotation is not None:
            self._triad(mark.position, mark.rotation, 0.75 * _AXIS * scene.extent, 1.8 * s)

    def _gap(self, gap: Gap, scene: Scene) -> list[tuple[str, Point, float, Colour]]:
        """Draw the line between the nearest points of a pair; return its label in a list, empty without a label."""
        s, theme = max(self._scale, _LEGIBLE), self._theme
        colour = theme.missed if gap.is_near else theme.reached
        start, end = (self._point(place)[0] for place in gap.points)
        dot = 3.4 * s if gap.is_near else 2.6 * s  # radius of the dots, pixels
        self._canvas.line(start, end, dot + 2.4 * s, theme.paper, 0.7)
        for place in (start, end):
            self._canvas.ring(place, (dot + 1.2 * s) / 2.0, dot + 1.2 * s, theme.paper, 0.7)
        self._canvas.line(start, end, dot, colour)
        for place in (start, end):
            self._canvas.ring(place, dot / 2.0, dot, colour)
        if not gap.labelled:
            return []
        middle = (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1]))
        return [(gap.text(scene.distance_text), middle, 9.0 * s, colour)]

    def _path(self, path: Array, colour: Colour) -> None:
        """Draw thin dashes through the points of a path, if all are in front of the camera."""
        if self._in_front(path):
            for start, end in pairwise([self._point(place)[0] for place in path]):
                self._canvas.dashes(start, end, 1.7 * self._scale, 7.0 * self._scale, colour)

    def _triad(self, place: Array, rotation: Array, length: float, width: float) -> None:
        """Draw the three axes of a rotation, the farthest first."""
        start = self._point(place)[0]
        ends = place + length * rotation.T
        _, depths, _ = self._camera.project(ends)
        for axis in sorted(range(3), key=lambda k: -float(depths[k])):
            end = self._point(ends[axis])[0]
            self._canvas.line(start, end, width + 1.6 * self._scale, self._theme.paper, 0.6)
            self._canvas.line(start, end, width, _AXES[axis])

    def _height(self, height: float, *, least: float) -> float:
        """Return the height of a text in pixels, with a lower bound so that texts are legible in small films.

        Args:
            height: Height in an image of 900 pixels.
            least: The lower bound, pixels; never more than 1/25 of the image.
        """
        return max(height * self._scale, min(least, 36.0 * self._scale))

    def _title(self, title: str) -> None:
        """Write the title at the top left, in a smaller size if it would not fit."""
        width, _ = self._canvas.image.size
        left, height = 30.0 * self._scale, self._height(27.0, least=14.0)
        long = self._canvas.text_width(title, height)
        height = max(min(height, height * (width - 2.0 * left) / max(long, 1.0)), 9.0 * self._scale)
        long = self._canvas.text_width(title, height)
        middle = 42.0 * self._scale
        self._canvas.text((left, middle), title, height, self._theme.ink)
        self._placer.take((left, middle - height, left + long, middle + height))

    def _caption(self, text: str) -> None:
        """Write a line at the bottom left."""
        left, height = 30.0 * self._scale, self._height(19.0, least=12.0)
        middle = self._canvas.image.size[1] - 34.0 * self._scale
        self._canvas.text((left, middle), text, height, self._theme.quiet)
        self._placer.take((left, middle - height, left + self._canvas.text_width(text, height), middle + height))

    def _table(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write names and values in the upper right corner, the values in a column."""
        width, tall = self._canvas.image.size
        height = max(min(self._height(18.0, least=11.0), 0.8 * tall / (1.6 * len(rows))), 7.0)
        names = max(self._canvas.text_width(name, height) for name, _ in rows)
        # text of the widest value, so that the table does not move during a film
        widest = [_NUMBER.sub("-000.0", value) for _, value in rows]
        values = max(self._canvas.text_width(value, height) for value in widest)
        gap, step = 0.9 * height, 1.6 * height
        right, top = width - 28.0 * self._scale, 30.0 * self._scale
        left = right - values - gap - names
        for k, (name, value) in enumerate(rows):
            middle = top + (k + 0.5) * step
            self._canvas.text((left, middle), name, height, self._theme.quiet)
            self._canvas.text((left + names + gap, middle), value, height, self._theme.ink)
        self._placer.take((left, top, right, top + len(rows) * step))

    def _label(self, text: str, place: Point, gap: float, colour: Colour | None) -> None:
        """Write a text in a rounded box near a point, with a line to the point if it is far.

        Args:
            text: The text.
            place: The point, pixels.
            gap: Distance from the point to leave free, pixels.
            colour: Colour of border and line; None for a small label, which is omitted if there is no free space.
        """
        height = self._height(12.5, least=9.0) if colour is None else self._height(17.0, least=11.0)
        pad, tall = (0.45 * height, 1.45 * height) if colour is None else (0.62 * height, 1.7 * height)
        size = self._canvas.text_width(text, height) + 2.0 * pad, tall
        box = self._placer.place(place, size, gap, needed=colour is not None)
        if box is None:
            return
        self._leader(box, place, gap, colour or self._theme.quiet)
        self._canvas.pill(box, self._theme.paper, colour)
        ink = self._theme.quiet if colour is None else self._theme.ink
        self._canvas.text((box[0] + pad, (box[1] + box[3]) / 2.0), text, height, ink)

    def _leader(self, box: Box, place: Point, gap: float, colour: Colour) -> None:
        """Draw the line from a label to its point, unless the label is close to the point."""
        x, y = min(max(place[0], box[0]), box[2]), min(max(place[1], box[1]), box[3])
        away = float(np.hypot(x - place[0], y - place[1]))
        if away <= 1.6 * gap:
            return
        start = (place[0] + (x - place[0]) * gap / away, place[1] + (y - place[1]) * gap / away)
        self._canvas.line(start, (x, y), 1.4 * self._scale, colour, 0.8)


class Placer:
    """Finds free positions for texts, one after the other.

    Args:
        size: Width and height of the image, pixels.
        covered: Fraction of each pixel that bodies cover, 0 to 1, (h, w).
        margin: Smallest distance from the edge of the image, pixels.
    """

    def __init__(self, size: tuple[int, int], covered: NDArray[np.float32], margin: float) -> None:
        """Compute cumulative sums of the coverage, so that the mean over any box takes constant time."""
        self._size, self._margin = size, margin
        self._taken: list[Box] = []
        self._sums = np.pad(covered.cumsum(0, dtype=np.float64).cumsum(1), ((1, 0), (1, 0)))

    def take(self, box: Box) -> None:
        """Keep texts out of a box."""
        self._taken.append(box)

    def place(self, anchor: Point, size: tuple[float, float], gap: float, *, needed: bool) -> Box | None:
        """Return the best box for a text near a point, and reserve it.

        Args:
            anchor: The point of the text, pixels.
            size: Width and height of the text, pixels.
            gap: Distance from the point to leave free, pixels.
            needed: Whether to return the best box even if no box is free; if False, return None in this case.
        """
        boxes = self._inside(_around(anchor, size, gap))
        taken = np.reshape(self._taken, (-1, 1, 4))
        common = np.minimum(boxes[:, 2:], taken[..., 2:]) - np.maximum(boxes[:, :2], taken[..., :2])
        overlap = np.maximum(common, 0.0).prod(axis=-1).sum(axis=0)
        moved = np.hypot(*np.maximum(np.maximum(boxes[:, :2] - anchor, anchor - boxes[:, 2:]), 0.0).T)
        cost = 100.0 * overlap / (size[0] * size[1]) + 20.0 * (overlap > 0.0) + _HIDES * self._cover(boxes)
        cost += np.maximum(moved - gap, 0.0) / size[1] + 0.01 * np.arange(len(boxes))
        if not needed:
            cost[overlap > 0.0] = np.inf
        best = int(np.argmin(cost))
        if not needed and cost[best] >= _HIDES + _STEPS[-1]:
            return None
        left, top, right, bottom = boxes[best].tolist()
        self.take((left, top, right, bottom))
        return left, top, right, bottom

    def _inside(self, boxes: Array) -> Array:
        """Return boxes of equal size, (n, 4), moved into the image."""
        size = boxes[0, 2:] - boxes[0, :2]
        most = np.maximum(np.array(self._size) - self._margin - size, 0.0)
        corner = np.minimum(np.maximum(boxes[:, :2], self._margin), most)
        return np.concatenate([corner, corner + size], axis=1)

    def _cover(self, boxes: Array) -> Array:
        """Return the fraction of each of the boxes (n, 4) that bodies cover, (n,), from 0 to 1."""
        x0, y0, x1, y1 = np.clip(boxes.astype(np.intp), 0, np.tile(self._sums.shape[::-1], 2) - 1).T
        s = self._sums
        return (s[y1, x1] - s[y0, x1] - s[y1, x0] + s[y0, x0]) / np.maximum((x1 - x0) * (y1 - y0), 1)


def _around(anchor: Point, size: tuple[float, float], gap: float) -> Array:
    """Return candidate boxes of a text in all directions and at all distances from a point, (n, 4), near boxes first.

    The distance from the point to a box is about ``gap`` plus a multiple of the text's height.
    """
    step, angle = (values.ravel() for values in np.meshgrid(_STEPS, np.radians(_ANGLES), indexing="ij"))
    way = np.stack([np.cos(angle), -np.sin(angle)], axis=1)
    half = np.array(size) / 2.0
    middle = anchor + way * (gap + step * size[1])[:, None]
    middle += np.copysign(half, way) * np.minimum(1.0, 1.5 * np.abs(way))
    return np.concatenate([middle - half, middle + half], axis=1)
