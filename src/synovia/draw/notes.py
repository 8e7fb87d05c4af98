"""What is written on a picture: rings at targets, ways that are left, axes, names and the title."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from synovia.draw.camera import Camera
from synovia.draw.labels import Box, Placer
from synovia.draw.raster import Canvas, Point
from synovia.draw.scene import Mark, Scene
from synovia.draw.theme import Colour, Theme
from synovia.model.geometry import Array

_AXES: Final[tuple[Colour, ...]] = (
    (222, 68, 68),
    (58, 166, 82),
    (64, 116, 226),
)  # x red, y green, z blue, as everywhere
_AXIS: Final = 0.075  # length of a drawn axis, as a part of the content


class Notes:
    """Writes on a picture.

    Args:
        canvas: The picture.
        camera: That it was taken with.
        placer: Finds room for texts.
        theme: Colours.
        scale: Size of texts and lines; 1 for a picture of 900 pixels.
    """

    def __init__(self, canvas: Canvas, camera: Camera, placer: Placer, theme: Theme, scale: float) -> None:
        """Keep what all parts need."""
        self._canvas, self._camera, self._placer, self._theme = canvas, camera, placer, theme
        self._scale = scale

    def write(self, scene: Scene, title: str | None) -> None:
        """Draw everything flat: lines first, so that no text is crossed out."""
        if title:
            self._title(title)
        rings = [
            (mark, *self._ring_of(scene, mark)) for mark in scene.marks if self._in_front(mark.position, mark.place)
        ]
        for mark, place, radius in rings:
            self._placer.take((place[0] - radius, place[1] - radius, place[0] + radius, place[1] + radius))
            self._lines(scene, mark, place, radius)
        texts: list[tuple[str, Point, float, Colour]] = []
        for mark, place, radius in rings:
            colour = self._theme.reached if mark.reached else self._theme.missed
            if mark.label:
                texts.append((mark.label, place, radius + 7.0 * self._scale, colour))
            if not mark.reached and (mark.note or mark.target is not None):
                said = mark.note or scene.distance_text(mark.miss)
                texts.append((said, self._middle(mark), 9.0 * self._scale, colour))
        for text, place, gap, colour in texts:
            self._label(text, place, gap, colour)
        for place, name in scene.names:
            if self._in_front(place):
                self._name(name, self._point(place)[0])

    def _point(self, place: Array) -> tuple[Point, float]:
        """Return a place's pixel and the scale there."""
        pixels, _, scales = self._camera.project(place[None, :])
        return (float(pixels[0, 0]), float(pixels[0, 1])), float(scales[0])

    def _in_front(self, *places: Array) -> bool:
        """Return whether all places are in front of the camera."""
        _, depths, _ = self._camera.project(np.stack(places))
        return bool((depths > self._camera.nearest).all())

    def _middle(self, mark: Mark) -> Point:
        """Return the pixel halfway between joint and target."""
        return self._point((mark.position + mark.place) / 2.0)[0]

    def _ring_of(self, scene: Scene, mark: Mark) -> tuple[Point, float]:
        """Return pixel and radius of a mark's ring: wide enough to go round the joint."""
        place, scale = self._point(mark.place)
        nearest = int(np.argmin(np.linalg.norm(scene.solid.start - mark.position, axis=1)))
        joint = float(scene.solid.radii[nearest, 0]) * scale if mark.on_joint else 0.0
        return place, max(13.0 * self._scale, 1.45 * joint + 4.0 * self._scale)

    def _lines(self, scene: Scene, mark: Mark, place: Point, radius: float) -> None:
        """Draw a mark's ring, its axes, and the way that is left where it was missed."""
        s, theme = self._scale, self._theme
        colour = theme.reached if mark.reached else theme.missed
        canvas = self._canvas
        for path in mark.paths:
            self._path(path, colour)
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
        else:  # a cross as well: its meaning must not hang on the colour alone
            arm = 0.36 * radius
            for k in (1.0, -1.0):
                ends = ((place[0] - arm, place[1] - k * arm), (place[0] + arm, place[1] + k * arm))
                canvas.line(*ends, 2.6 * s, colour)
        if mark.target_rotation is not None:
            self._triad(mark.place, mark.target_rotation, _AXIS * scene.extent, 3.4 * s)
        if mark.rotation is not None:
            self._triad(mark.position, mark.rotation, 0.75 * _AXIS * scene.extent, 1.8 * s)

    def _path(self, path: Array, colour: Colour) -> None:
        """Draw thin dashes through the points of a path, where they are in front of the camera."""
        if self._in_front(*path):
            points = [self._point(place)[0] for place in path]
            for start, end in pairwise(points):
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

    def _title(self, title: str) -> None:
        """Write the title at the left top, smaller where it would not fit."""
        width, _ = self._canvas.image.size
        left, height = 30.0 * self._scale, 27.0 * self._scale
        long, _ = self._canvas.text_size(title, height)
        height = max(min(height, height * (width - 2.0 * left) / max(long, 1.0)), 9.0 * self._scale)
        long, _ = self._canvas.text_size(title, height)
        middle = 42.0 * self._scale
        self._canvas.text((left, middle), title, height, self._theme.ink)
        self._placer.take((left, middle - height, left + long, middle + height))

    def _label(self, text: str, place: Point, gap: float, colour: Colour) -> None:
        """Write a label in a pill of its own near a point, with a line to it where it is far."""
        height = 17.0 * self._scale
        long, _ = self._canvas.text_size(text, height)
        pad = 0.62 * height
        box = self._placer.place(place, (long + 2.0 * pad, 1.7 * height), gap, needed=True)
        if box is None:
            return
        self._leader(box, place, gap, colour)
        self._canvas.pill(box, self._theme.paper, colour, 0.9)
        self._canvas.text((box[0] + pad, (box[1] + box[3]) / 2.0), text, height, self._theme.ink)

    def _leader(self, box: Box, place: Point, gap: float, colour: Colour) -> None:
        """Draw the line from a label to what it names, unless it is right beside it."""
        x, y = min(max(place[0], box[0]), box[2]), min(max(place[1], box[1]), box[3])
        away = float(np.hypot(x - place[0], y - place[1]))
        if away <= 1.6 * gap:
            return
        start = (place[0] + (x - place[0]) * gap / away, place[1] + (y - place[1]) * gap / away)
        self._canvas.line(start, (x, y), 1.4 * self._scale, colour, 0.8)

    def _name(self, name: str, place: Point) -> None:
        """Write a joint's name, if there is room."""
        height = 12.5 * self._scale
        long, _ = self._canvas.text_size(name, height)
        pad = 0.45 * height
        box = self._placer.place(place, (long + 2.0 * pad, 1.45 * height), 7.0 * self._scale, needed=False)
        if box is None:
            return
        self._leader(box, place, 5.0 * self._scale, self._theme.quiet)
        self._canvas.pill(box, self._theme.paper, None, 0.78)
        self._canvas.text((box[0] + pad, (box[1] + box[3]) / 2.0), name, height, self._theme.quiet)
