"""The floor under a skeleton: background, grid lines that fade with distance, and a soft shadow."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.draw.bodies import Bodies
from synovia.draw.camera import Camera
from synovia.draw.scene import Scene
from synovia.draw.surfaces import Shadow
from synovia.draw.theme import Colour, Theme
from synovia.model.geometry import Array

_Float = NDArray[np.floating[Any]]
_COARSE: Final = 3  # pixels per shadow sample; enough because shadows have soft edges
_WIDTH: Final = 1.15  # width of grid lines, pixels
_BLUR: Final = 0.55  # width of the penumbra, as a fraction of the height above the floor


def background(size: tuple[int, int], theme: Theme) -> _Float:
    """Return the background (h, w, 3), 0 to 255: brighter at the top."""
    width, height = size
    mix = np.linspace(0.0, 1.0, height, dtype=np.float32)[:, None, None] ** 1.4
    above, below = np.array(theme.above, np.float32), np.array(theme.below, np.float32)
    return np.repeat(above + mix * (below - above), width, axis=1)


class _Plane(NamedTuple):
    """The floor.

    Args:
        origin: A point of the floor, at the crossing of two grid lines.
        east: Unit vector in the floor.
        north: Unit vector in the floor, perpendicular to ``east``.
        up: Unit vector that points up.
        extent: Size of the content, length units.
    """

    origin: Array
    east: Array
    north: Array
    up: Array
    extent: float


class _Samples(NamedTuple):
    """Floor coordinates of samples of an image, and the opacity of the floor there, 0 to 1."""

    u: _Float
    v: _Float
    fade: _Float


def draw_floor(
    picture: _Float, camera: Camera, scene: Scene, theme: Theme, light: Array, shadow: Shadow | None = None
) -> None:
    """Draw grid and shadow onto the image, in place.

    Args:
        picture: The image, (h, w, 3), 0 to 255.
        camera: The camera.
        scene: The scene; its main pose casts the shadow.
        theme: Colours.
        light: Unit vector towards the light.
        shadow: Shadow map of a surface; None for the shadow of balls and rods.
    """
    up, extent, bodies = scene.up, scene.spread or scene.extent, scene.solid
    east = np.roll(up, 1)
    north = np.cross(up, east)
    middle = (bodies.start.min(0) + bodies.start.max(0)) / 2.0 if len(bodies) else np.zeros(3)
    step = grid_step(extent)
    u0, v0 = (step * round(float(middle @ axis) / step) for axis in (east, north))
    origin = u0 * east + v0 * north + scene.ground * up
    forth = camera.plane_to_pixel(origin, extent * east, extent * north)  # u and v in multiples of the extent
    scale = np.abs(forth).max()
    if not scale > 0.0 or (camera.perspective and float((camera.position - origin) @ up) < 1e-3 * extent):
        return  # a camera at or below the floor does not show the floor
    if abs(np.linalg.det(forth / scale)) < 1e-12 or float(camera.axes[2] @ up) <= 1e-3:
        return
    back = np.diag([extent, extent, 1.0]) @ np.asarray(np.linalg.inv(forth), np.float64)
    radius = 1.45 * extent
    rows, columns = picture.shape[:2]
    u, v, fade = _ground(back, columns, rows, 1, radius)
    cover = np.maximum(_lines(u, step), _lines(v, step)) * fade
    _blend(picture, theme.grid, 0.42 * cover)
    if len(bodies):
        coarse = _ground(back, math.ceil(columns / _COARSE) + 1, math.ceil(rows / _COARSE) + 1, _COARSE, radius)
        if shadow is None:
            dark = _shadow(coarse, _Plane(origin, east, north, up, extent), bodies, light)
        else:
            u, v, fade = coarse
            dark, inside = np.zeros_like(u), fade > 0.0
            places = origin + u[inside][:, None] * east + v[inside][:, None] * north
            found = shadow.on_floor(places, _BLUR, 0.012 * extent, 0.16 * extent)
            dark[inside] = found * fade[inside]
        _blend(picture, theme.shadow, theme.strength * _enlarge(dark, rows, columns))


def grid_step(extent: float) -> float:
    """Return a round distance (1, 2 or 5 times a power of ten) that divides the content into about seven parts."""
    wanted = extent / 7.0
    power = 10.0 ** math.floor(math.log10(wanted))
    return power * min((1.0, 2.0, 5.0, 10.0), key=lambda k: abs(math.log(k * power / wanted)))


def _ground(back: Array, columns: int, rows: int, stride: int, radius: float) -> _Samples:
    """Return the floor coordinates and the floor's opacity at each sample of an image."""
    x = ((np.arange(columns) + 0.5) * stride)[None, :]
    y = ((np.arange(rows) + 0.5) * stride)[:, None]
    # A sample sees the floor where the third homogeneous coordinate, 1 / depth, is positive.
    w = back[2, 0] * x + back[2, 1] * y + back[2, 2]
    seen = w > 1e-9 * np.abs(w).max()
    safe = np.where(seen, w, 1.0)
    u = (back[0, 0] * x + back[0, 1] * y + back[0, 2]) / safe
    v = (back[1, 0] * x + back[1, 1] * y + back[1, 2]) / safe
    away = np.sqrt(u * u + v * v) / radius
    fade = np.where(seen, np.clip((1.0 - away) / 0.75, 0.0, 1.0), 0.0)
    fade = fade * fade * (3.0 - 2.0 * fade)
    far = 4.0 * radius
    u, v = np.clip(u, -far, far), np.clip(v, -far, far)
    return _Samples(u.astype(np.float32), v.astype(np.float32), fade.astype(np.float32))


def _lines(coordinate: _Float, step: float) -> _Float:
    """Return the fraction of each pixel that the lines at multiples of ``step`` cover."""
    slope = np.hypot(np.gradient(coordinate, axis=0), np.gradient(coordinate, axis=1))
    slope = np.maximum(slope, 1e-12)
    away = np.abs(coordinate - step * np.rint(coordinate / step)) / slope
    crowd = np.clip(1.5 - 4.0 * slope / step, 0.0, 1.0)  # lines fade where they are only a few pixels apart
    return np.clip(0.5 * _WIDTH + 0.5 - away, 0.0, 1.0) * crowd


def _shadow(samples: _Samples, plane: _Plane, bodies: Bodies, light: Array) -> _Float:
    """Return the darkness of each floor sample, 0 to 1: sharp under bodies on the floor, soft under higher ones."""
    (u, v, fade), (origin, east, north, up, extent) = samples, plane
    ends: list[Array] = []
    for points in (bodies.start, bodies.end):
        h = np.maximum((points - origin) @ up, 0.0)
        ground = points - h[:, None] * (light / max(float(light @ up), 0.2)) - origin
        ends.append(np.stack([ground @ east, ground @ north, h], axis=1))
    dark = np.zeros_like(u)
    inside = fade > 0.0
    pu, pv = u[inside], v[inside]
    out = np.zeros_like(pu)
    for (au, av, ah), (bu, bv, bh), (ra, rb) in zip(ends[0], ends[1], bodies.radii, strict=True):
        blur = 0.02 * extent + _BLUR * max(ah, bh)
        reach = max(ra, rb) + blur
        near = (
            (pu > min(au, bu) - reach)
            & (pu < max(au, bu) + reach)
            & (pv > min(av, bv) - reach)
            & (pv < max(av, bv) + reach)
        )
        if not near.any():
            continue
        x, y = pu[near] - np.float32(au), pv[near] - np.float32(av)
        lu, lv = np.float32(bu - au), np.float32(bv - av)
        t = np.clip((x * lu + y * lv) / np.float32(max(lu * lu + lv * lv, 1e-12 * extent * extent)), 0.0, 1.0)
        distance = np.hypot(x - t * lu, y - t * lv)
        radius = np.float32(ra) + np.float32(rb - ra) * t
        h = np.float32(ah) + np.float32(bh - ah) * t
        soft = np.float32(0.012 * extent) + np.float32(_BLUR) * h
        edge = np.clip(0.5 - (distance - radius) / soft, 0.0, 1.0)
        weight = np.minimum(1.0, 1.6 * radius / (radius + 0.22 * h))
        out[near] = np.maximum(out[near], edge * edge * (3.0 - 2.0 * edge) * weight)
    dark[inside] = out * fade[inside]
    return dark


def _enlarge(coarse: _Float, rows: int, columns: int) -> _Float:
    """Return coarse samples interpolated linearly at every pixel."""
    from PIL import Image

    box = (0.0, 0.0, columns / _COARSE, rows / _COARSE)
    image = Image.fromarray(coarse.astype(np.float32))
    return np.asarray(image.resize((columns, rows), Image.Resampling.BILINEAR, box=box))


def _blend(picture: _Float, colour: Colour, cover: _Float) -> None:
    """Blend a colour into the image, in place."""
    picture += cover[..., None] * (np.array(colour, np.float32) - picture)
