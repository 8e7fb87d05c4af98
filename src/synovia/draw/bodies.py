"""Shaded balls and tapered rods, drawn with a depth buffer, exact normals and several samples per pixel.

A rod is the part of a cone between two balls. In the image, its axis is a line with a straight outline on each side.
So the position of a pixel along the axis (t) and across it (s, -1 to 1) gives surface normal and depth without a mesh.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.draw.camera import Camera
from synovia.draw.theme import Colour
from synovia.model.geometry import Array

SAMPLES: Final = 3  # samples per pixel in each direction
_SLAB: Final = 48  # rows of samples drawn at a time; few, because a slanted rod leaves most of a large box empty
_SMALLEST: Final = 0.6  # smallest radius, pixels; thinner objects would fall between the samples

Pixels = NDArray[np.uint8]
Layer = tuple[tuple[int, int], Pixels]  # left and top pixel of a part of an image, and the part
_Float = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Bodies:
    """Balls and rods. A ball is a rod of length 0.

    Args:
        start: Start points of the rods, (m, 3), length units.
        end: End points, (m, 3), length units.
        radii: Radii at both ends, (m, 2), length units.
        colours: Red, green and blue, 0 to 1, (m, 3).
    """

    start: Array
    end: Array
    radii: Array
    colours: Array

    def __len__(self) -> int:
        """Return the number of bodies."""
        return len(self.start)


@dataclass(frozen=True, slots=True, eq=False)
class Light:
    """The light of a scene.

    Args:
        direction: Unit vector towards the light, world coordinates.
        up: Unit vector towards the sky, world coordinates.
        haze: Haze colour, into which distant objects fade.
        depth: Fraction of the haze colour in the farthest object, 0 to 1.
        extent: Size of the body and its surroundings, length units; it limits the radius of ambient occlusion on larger
            surfaces, such as a floor.
    """

    direction: Array
    up: Array
    haze: Colour
    depth: float = 0.22
    extent: float = math.inf


class _Buffer:
    """Depth, normal and body index of every sample in a part of the image."""

    def __init__(self, left: int, top: int, width: int, height: int) -> None:
        self.left, self.top = left, top
        self.depth: _Float = np.full((height, width), np.inf, np.float32)
        self.normal: _Float = np.zeros((height, width, 2), np.float32)
        self.owner: NDArray[np.int32] = np.full((height, width), -1, np.int32)

    def grid(self, box: tuple[int, int, int, int]) -> tuple[_Float, _Float]:
        """Return the sample columns, (1, w), and rows, (h, 1), of a box of the buffer, in image coordinates."""
        x0, y0, x1, y1 = box
        x = np.arange(x0, x1, dtype=np.float32)[None, :] + np.float32(self.left + 0.5)
        y = np.arange(y0, y1, dtype=np.float32)[:, None] + np.float32(self.top + 0.5)
        return x, y

    def put(
        self,
        box: tuple[int, int, int, int],
        inside: NDArray[np.bool_],
        depth: _Float,
        nx: _Float,
        ny: _Float,
        owner: int,
    ) -> None:
        """Write the samples that are nearer than the samples in the buffer."""
        x0, y0, x1, y1 = box
        place = (slice(y0, y1), slice(x0, x1))
        won = inside & (depth < self.depth[place])
        self.depth[place][won] = depth[won]
        self.owner[place][won] = owner
        self.normal[place][won, 0] = nx[won]
        self.normal[place][won, 1] = ny[won]


def shade(bodies: Bodies, camera: Camera, size: tuple[int, int], light: Light) -> Layer | None:
    """Draw bodies on a transparent background.

    Args:
        bodies: The bodies.
        camera: The camera.
        size: Width and height of the image, pixels.
        light: The light.

    Returns:
        The left and top pixel of the part of the image that the bodies cover, and that part as red, green, blue and
        coverage (h, w, 4); None if no body is visible.
    """
    if not len(bodies):
        return None
    eye = camera.scaled(SAMPLES)
    a, da, sa = eye.project(bodies.start)
    b, db, sb = eye.project(bodies.end)
    ra = np.maximum(bodies.radii[:, 0] * sa, _SMALLEST * SAMPLES)
    rb = np.maximum(bodies.radii[:, 1] * sb, _SMALLEST * SAMPLES)
    seen = (da > eye.nearest) & (db > eye.nearest)
    if not seen.any():
        return None
    low = np.minimum(a - ra[:, None], b - rb[:, None])[seen].min(0) / SAMPLES
    high = np.maximum(a + ra[:, None], b + rb[:, None])[seen].max(0) / SAMPLES
    left, top = (max(math.floor(float(v)) - 1, 0) for v in low)
    right, bottom = (min(math.ceil(float(v)) + 1, n) for v, n in zip(high, size, strict=True))
    if right <= left or bottom <= top:
        return None
    buffer = _Buffer(left * SAMPLES, top * SAMPLES, (right - left) * SAMPLES, (bottom - top) * SAMPLES)
    local = (bodies.end - bodies.start) @ camera.axes.T
    for i in np.flatnonzero(seen).tolist():
        if not local[i].any():
            _ball(buffer, a[i], float(da[i]), float(ra[i]), float(ra[i] / sa[i]), i)
        else:
            ends = ((a[i], float(da[i]), float(ra[i]), float(sa[i])), (b[i], float(db[i]), float(rb[i]), float(sb[i])))
            _rod(buffer, *ends, local[i], i)
    return (left, top), _light(buffer, bodies, camera, light)


def _ball(buffer: _Buffer, centre: Array, depth: float, radius: float, thick: float, owner: int) -> None:
    """Draw a ball; ``radius`` is in samples, ``thick`` is the radius in length units."""
    for box in _boxes(buffer, centre, centre, radius):
        x, y = buffer.grid(box)
        nx = (x - np.float32(centre[0])) / np.float32(radius)
        ny = (np.float32(centre[1]) - y) / np.float32(radius)
        flat = nx * nx + ny * ny
        nz = np.sqrt(np.maximum(1.0 - flat, 0.0))
        depths = depth - np.float32(thick) * nz
        buffer.put(box, flat < 1.0, depths, np.broadcast_to(nx, flat.shape), np.broadcast_to(ny, flat.shape), owner)


def _rod(
    buffer: _Buffer,
    start: tuple[Array, float, float, float],
    end: tuple[Array, float, float, float],
    along: Array,
    owner: int,
) -> None:
    """Draw the cone between two balls, each given by centre (samples), depth, radius (samples) and scale."""
    (a, da, ra, sa), (b, db, rb, sb) = start, end
    line = b - a
    length = float(np.hypot(*line))
    if length < 1e-3:
        return  # if the rod points at the camera, the balls at its ends hide it
    ex, ey = (np.float32(v / length) for v in line)
    axis = along / np.linalg.norm(along)
    tilt = math.sqrt(max(1.0 - float(axis[2]) ** 2, 0.0))  # sine of the angle between the rod and the view
    front = (np.array([0.0, 0.0, 1.0]) - axis[2] * axis) / max(tilt, 1e-6)
    lean = np.float32(float(front[0] * ex - front[1] * ey))  # shift of the rod's near side along the line, in radii
    for box in _boxes(buffer, a, b, max(ra, rb)):
        x, y = buffer.grid(box)
        px, py = x - np.float32(a[0]), y - np.float32(a[1])
        t = (px * ex + py * ey) / np.float32(length)
        wide = np.float32(ra) + np.float32(rb - ra) * np.clip(t, 0.0, 1.0)
        s = (py * ex - px * ey) / wide
        c = np.sqrt(np.maximum(1.0 - s * s, 0.0))
        t = t - wide * c * lean / np.float32(length)
        inside = (t >= 0.0) & (t <= 1.0) & (np.abs(s) < 1.0)
        if not inside.any():
            continue
        # Linear depth along the line: under perspective, the error is much smaller than the thickness of a bone.
        thick = np.float32(ra / sa) + np.float32(rb / sb - ra / sa) * t
        depth = np.float32(da) + np.float32(db - da) * t - thick * np.float32(tilt) * c
        nx = -ey * s + np.float32(front[0]) * c
        ny = -ex * s + np.float32(front[1]) * c
        buffer.put(box, inside, depth, nx, ny, owner)


def _boxes(buffer: _Buffer, a: Array, b: Array, radius: float) -> Iterator[tuple[int, int, int, int]]:
    """Yield boxes (left, top, right, bottom) of the buffer that cover a thick line, in slabs of rows."""
    height, width = buffer.depth.shape
    ax, ay, bx, by = a[0] - buffer.left, a[1] - buffer.top, b[0] - buffer.left, b[1] - buffer.top
    first = max(math.floor(min(ay, by) - radius), 0)
    last = min(math.ceil(max(ay, by) + radius) + 1, height)
    for y0 in range(first, last, _SLAB):
        y1 = min(y0 + _SLAB, last)
        ends = np.array([0.0, 1.0])
        if abs(by - ay) > 1e-9:
            cut = np.sort((np.array([y0 - radius, y1 + radius]) - ay) / (by - ay))
            ends = np.clip(cut, 0.0, 1.0)
        reach = ax + ends * (bx - ax)
        x0 = max(math.floor(float(reach.min()) - radius), 0)
        x1 = min(math.ceil(float(reach.max()) + radius) + 1, width)
        if x1 > x0:
            yield x0, y0, x1, y1


def _light(buffer: _Buffer, bodies: Bodies, camera: Camera, light: Light) -> Pixels:
    """Shade the samples with a soft key light, sky, gloss and haze by depth; return them averaged to pixels."""
    rows, columns = (n // SAMPLES for n in buffer.owner.shape)
    seen = np.flatnonzero(buffer.owner >= 0)
    nx, ny = (np.take(buffer.normal[..., k], seen) for k in (0, 1))
    nz = np.sqrt(np.maximum(1.0 - nx * nx - ny * ny, 0.0))
    towards = (camera.axes @ light.direction).astype(np.float32)
    sky = (camera.axes @ light.up).astype(np.float32)
    half = towards + np.array([0.0, 0.0, 1.0], np.float32)
    half /= np.float32(max(float(np.linalg.norm(half)), 1e-6))
    key = 0.5 + 0.5 * (nx * towards[0] + ny * towards[1] + nz * towards[2])
    ambient = 0.5 + 0.5 * (nx * sky[0] + ny * sky[1] + nz * sky[2])
    gloss = np.maximum(nx * half[0] + ny * half[1] + nz * half[2], 0.0)
    for _ in range(3):
        gloss *= gloss
    gloss = gloss * gloss * gloss  # gloss to the power of 24: three squares and a cube
    edge = 1.0 - nz
    level = (0.30 + 0.24 * ambient + 0.58 * key * key) * (1.0 - 0.35 * edge * edge * edge)
    depth = np.take(buffer.depth, seen)
    near, far = (float(depth.min()), float(depth.max())) if depth.size else (0.0, 0.0)
    fade = light.depth * (depth - near) / max(far - near, 1e-12)
    owner = np.take(buffer.owner, seen)
    shaded: list[_Float] = []
    for k in range(3):
        colour = bodies.colours[:, k].astype(np.float32)[owner] * level + 0.16 * gloss
        shaded.append(colour + fade * (light.haze[k] / 255.0 - colour))
    return averaged(np.clip(shaded, 0.0, 1.0), pixels_of(seen, columns, SAMPLES), (columns, rows), SAMPLES)


def pixels_of(at: NDArray[np.intp], columns: int, samples: int) -> NDArray[np.intp]:
    """Convert indices of samples to indices of pixels, both row by row, in an image with ``columns`` pixels per row."""
    row, column = np.divmod(at, columns * samples)
    return row // samples * columns + column // samples


def averaged(colours: _Float, pixel: NDArray[np.intp], size: tuple[int, int], samples: int) -> Pixels:
    """Return the mean colour and the coverage of pixels, (h, w, 4).

    Args:
        colours: Red, green and blue of the covered samples, 0 to 1, (3, n).
        pixel: Indices of their pixels, (n,).
        size: Width and height, pixels.
        samples: Samples per pixel in each direction.
    """
    columns, rows = size
    count = np.bincount(pixel, minlength=rows * columns)
    sums = [np.bincount(pixel, part, rows * columns) / np.maximum(count, 1) for part in colours]
    image = np.stack([*sums, count / samples**2], axis=1, dtype=np.float64).reshape(rows, columns, 4)
    return np.rint(np.clip(image, 0.0, 1.0) * 255.0).astype(np.uint8)
