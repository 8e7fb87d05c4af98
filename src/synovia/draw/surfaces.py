"""Shaded surfaces: the skin of a character or the shapes of a robot, with soft shadows.

Colours are mixed in linear light. A key light casts shadows; sky and floor give ambient light. Ambient occlusion is
estimated from the depths of neighbouring pixels (Luft et al.).

References:
    T. Luft, C. Colditz, O. Deussen, "Image enhancement by unsharp masking the depth buffer", ACM SIGGRAPH 2006.
    R. Fernando, "Percentage-closer soft shadows", ACM SIGGRAPH 2005 sketches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.draw.bodies import Bodies, Layer, Light, averaged, pixels_of
from synovia.draw.camera import Camera
from synovia.draw.triangles import Hits, depths_of, hits_of
from synovia.model.geometry import Array, align_z, frames_to_transforms, unit
from synovia.model.shapes.triangles import ball
from synovia.surface.base import Part, Surface

_Float = NDArray[np.floating[Any]]
_GAMMA: Final = 2.2  # approximate exponent between linear light and the colours of files and images
_MAP: Final = 400  # largest number of shadow map samples in each direction
# offsets of the samples of the shadow map that make a soft edge, in samples
_TAPS: Final = tuple((x, y) for x in (-1.5, 0.0, 1.5) for y in (-1.5, 0.0, 1.5))
_SAMPLES: Final = 24_000_000  # largest number of samples of an image; larger images have fewer samples per pixel
_SKY: Final = (0.50, 0.53, 0.58)  # colour of the light from the sky
_BOUNCE: Final = (0.27, 0.25, 0.235)  # colour of the light from the floor
_KEY: Final = (0.98, 0.94, 0.88)  # colour of the key light
_SHOULDER: Final = 0.4  # fraction of the brightness range in which colours approach white slowly
_EDGE: Final = 0.15  # cosine (normal, light) below which light fades; at its negative, the surface is dark
_GLOSS: Final = 0.07  # strength of the highlight
_RIM: Final = 0.16  # strength of the light along the outline
_HIDDEN: Final = ((0.012, 0.55), (0.04, 0.45))  # occlusion: radius (fraction of the content's size) and strength
# multiple of the occlusion radius: objects that are farther apart in depth do not darken each other
_APART: Final = 2.0
# 98 directions to points on the surface of a cube, with equal sets in all octants
_DIRECTIONS: Final = np.array([d for d in np.ndindex(5, 5, 5) if max(d) == 4 or min(d) == 0], float) - 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """Triangles in the world.

    Args:
        vertices: Positions, (v, 3), length units.
        normals: Unit normals, (v, 3).
        faces: Vertices of the triangles, (f, 3).
        colours: Colours of the vertices in linear light, 0 to 1, (v, 3).
        corners: Texture coordinates of the triangles' corners, (f, 3, 2); None without textures.
        images: Index of each triangle's texture, (f,); -1 for no texture.
        textures: Textures in linear light, each (h, w, 3).
        behind: Another mesh, which hides parts of this mesh that are farther away.
    """

    vertices: Array
    normals: _Float
    faces: NDArray[np.intp]
    colours: _Float
    corners: _Float | None = None
    images: NDArray[np.intp] | None = None
    textures: Sequence[_Float] = ()
    behind: Mesh | None = None

    @property
    def hull(self) -> Array:
        """The vertices that are extreme in any of 98 directions, (n, 3)."""
        return self.vertices[np.unique(np.argmax(_DIRECTIONS @ self.vertices.T, axis=1))]

    @classmethod
    def of_bodies(cls, bodies: Bodies) -> Mesh:
        """Return balls and rods as a mesh."""
        sphere, triangles = ball(np.ones(3))
        along = bodies.end - bodies.start
        length = np.linalg.norm(along, axis=1)
        frames = np.stack([align_z(a / n) if n > 0.0 else np.eye(3) for a, n in zip(along, length, strict=True)])
        normals = np.einsum("bij,nj->bni", frames, sphere)
        upper = (sphere[:, 2] > 0.0)[None, :]
        radii = np.where(upper, bodies.radii[:, 1:], bodies.radii[:, :1])
        ends = np.where(upper[..., None], bodies.end[:, None], bodies.start[:, None])
        count = len(sphere)
        return cls(
            vertices=(ends + radii[..., None] * normals).reshape(-1, 3),
            normals=normals.reshape(-1, 3).astype(np.float32),
            faces=(triangles[None] + (count * np.arange(len(bodies)))[:, None, None]).reshape(-1, 3),
            colours=np.repeat(_linear(bodies.colours), count, axis=0),
        )

    def joined(self, other: Mesh) -> Mesh:
        """Return the union of this mesh and another mesh, which has no textures."""
        plain = np.zeros((len(other.faces), 3, 2), np.float32)
        none = np.full(len(other.faces), -1, np.intp)
        return replace(
            self,
            vertices=np.concatenate([self.vertices, other.vertices]),
            normals=np.concatenate([self.normals, other.normals]),
            faces=np.concatenate([self.faces, other.faces + len(self.vertices)]),
            colours=np.concatenate([self.colours, other.colours]),
            corners=None if self.corners is None else np.concatenate([self.corners, plain]),
            images=None if self.images is None else np.concatenate([self.images, none]),
        )

    def painted(self, colour: Sequence[float]) -> Mesh:
        """Return the mesh tinted with a colour (red, green and blue from 0 to 255), without textures."""
        new = _linear(np.array(colour) / 255.0)
        return replace(self, colours=np.float32(0.25) * self.colours + np.float32(0.75) * new, corners=None)


def _linear(colours: _Float) -> _Float:
    """Convert colours of files and images, 0 to 1, to linear light."""
    return colours.astype(np.float32) ** np.float32(_GAMMA)


class Skin:
    """A surface that joints move, prepared for drawing.

    Args:
        surface: The surface, with at least one part.
        whole: Whether the surface covers the whole body, so that no bones are drawn.
    """

    def __init__(self, surface: Surface, *, whole: bool = True) -> None:
        """Join the parts into arrays."""
        self.whole = whole
        self._parts = [_split(part) if part.flat else part for part in surface.parts]
        self._normals = [normals_of(part.vertices, part.faces) for part in self._parts]
        self._textures: list[_Float] = []
        known: dict[int, int] = {}  # index of each texture, by the identity of its image
        colours: list[_Float] = []
        faces: list[NDArray[np.intp]] = []
        corners: list[_Float] = []
        images: list[NDArray[np.intp]] = []
        start = 0
        for part in self._parts:
            number, own, colour = -1, np.zeros((len(part.faces), 3, 2)), part.colours
            if part.texture is not None and part.corners is not None:
                if id(part.texture) not in known:
                    known[id(part.texture)] = len(self._textures)
                    self._textures.append(_linear(part.texture.astype(np.float32) / np.float32(255.0)))
                number, own, colour = known[id(part.texture)], part.corners, np.array(part.tint)
            elif colour is None:
                colour = np.array(part.colour) / 255.0
            colours.append(np.broadcast_to(_linear(colour), part.vertices.shape))
            faces.append(part.faces.astype(np.intp) + start)
            corners.append(own)
            images.append(np.full(len(part.faces), number, np.intp))
            start += len(part.vertices)
        self._colours, self._faces = np.concatenate(colours), np.concatenate(faces)
        self._corners = np.concatenate(corners).astype(np.float32) if self._textures else None
        self._images = np.concatenate(images) if self._textures else None

    def at(self, frames: Array) -> Mesh:
        """Return the surface for the world frames of the joints, (n, 12)."""
        world = frames_to_transforms(frames)
        vertices: list[Array] = []
        normals: list[Array] = []
        for part, normal in zip(self._parts, self._normals, strict=True):
            moves = world[part.rows] @ np.linalg.inv(part.bind)
            if len(moves) == 1:
                vertices.append(part.vertices @ moves[0, :3, :3].T + moves[0, :3, 3])
                normals.append(normal @ moves[0, :3, :3].T)
                continue
            mixed = np.einsum("vb,vbi->vi", part.weights, moves[:, :3].reshape(-1, 12)[part.bones]).reshape(-1, 3, 4)
            vertices.append(np.einsum("vij,vj->vi", mixed[:, :, :3], part.vertices) + mixed[:, :, 3])
            turned = np.einsum("vij,vj->vi", mixed[:, :, :3], normal)
            normals.append(unit(turned))
        return Mesh(
            np.concatenate(vertices), np.concatenate(normals).astype(np.float32), self._faces, self._colours,
            self._corners, self._images, self._textures,
        )  # fmt: skip


def normals_of(vertices: Array, faces: NDArray[np.integer[Any]]) -> Array:
    """Return the unit normal of each vertex, (v, 3): the area-weighted mean of the normals of its triangles."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    flat = np.cross(b - a, c - a)
    weights = np.repeat(flat, 3, axis=0).T
    sums = [np.bincount(faces.reshape(-1), weight, len(vertices)) for weight in weights]
    out = unit(np.stack(sums, axis=1, dtype=np.float64))
    out[~out.any(axis=1)] = (0.0, 0.0, 1.0)
    return out


def _split(part: Part) -> Part:
    """Return a part with duplicated vertices, so that triangles share none and each triangle has one normal."""
    order = part.faces.reshape(-1)
    return replace(
        part,
        vertices=part.vertices[order],
        faces=np.arange(len(order)).reshape(-1, 3),
        bones=part.bones[order],
        weights=part.weights[order],
        colours=None if part.colours is None else part.colours[order],
    )


class Shadow:
    """Shadow map of the key light: lit points of a surface, and the shadow on the floor.

    Args:
        mesh: The surface that casts the shadow.
        light: Unit vector towards the light, (3,).
        up: Unit vector of the world that points up, (3,).
        size: Width and height of the picture, pixels; a small picture needs few samples.
    """

    def __init__(self, mesh: Mesh, light: Array, up: Array, size: tuple[int, int]) -> None:
        """Aim a camera from the light."""
        across = np.cross(up, light)
        length = float(np.linalg.norm(across))
        across = across / length if length > 1e-6 else np.roll(up, 1)
        axes = np.stack([across, np.cross(light, across), light])
        local = mesh.vertices @ axes.T
        low, high = local.min(axis=0), local.max(axis=0)
        extent = max(float((high - low).max()), 1e-12)
        self._bias = 0.02 * extent
        middle = (low + high) / 2.0
        position = axes.T @ np.array([middle[0], middle[1], high[2] + extent])
        self._samples = n = min(2 * max(size), _MAP)
        focal = n / (1.4 * extent)  # 1.4 leaves a margin for soft edges
        self.camera = Camera(position, axes, focal, (n / 2.0, n / 2.0), perspective=False, nearest=1e-9 * extent)
        self._mesh = mesh

    @cached_property
    def _nearest(self) -> _Float:
        """Depths of the triangles that are nearest to the light."""
        return depths_of(self._mesh.vertices, self._mesh.faces, self.camera, (self._samples, self._samples))

    @cached_property
    def _farthest(self) -> _Float:
        """Depths of the triangles that are farthest from the light, so nearest to the floor."""
        size = self._samples, self._samples
        return depths_of(self._mesh.vertices, self._mesh.faces, self.camera, size, farthest=True)

    def lit(self, points: Array) -> _Float:
        """Return the fraction of the key light that reaches points, 0 to 1, (n,)."""
        pixels, depth, _ = self.camera.project(points)
        limit = (depth - self._bias).astype(np.float32)
        out = np.zeros(len(points), np.float32)
        for dx, dy in _TAPS:
            x = np.clip(pixels[:, 0] + dx, 0.0, self._samples - 1.0).astype(np.intp)
            y = np.clip(pixels[:, 1] + dy, 0.0, self._samples - 1.0).astype(np.intp)
            out += self._nearest[y, x] > limit
        return out / np.float32(len(_TAPS))

    def on_floor(self, points: Array, soft: float, least: float, reach: float) -> _Float:
        """Return the darkness of points on the floor, 0 to 1, (n,): sharp below low parts, soft below high ones.

        Args:
            points: The points, (n, 3).
            soft: Width of a shadow's edge, as a fraction of the distance to the part that casts the shadow.
            least: Width of the sharpest edge, length units.
            reach: Width of the softest edge, length units.
        """
        from scipy.ndimage import map_coordinates

        shown = np.isfinite(self._farthest)
        covered = shown.astype(np.float32)
        depth = np.where(shown, self._farthest, np.float32(0.0))
        scale = self.camera.focal
        widths = np.array([least, 0.35 * reach, reach])
        layers = [_blurred(covered, 0.5 * width * scale) for width in widths]
        near = 0.2 * reach * scale
        some, there = _blurred(depth, near), _blurred(covered, near)
        # far from the body, use the mean over a wide neighbourhood
        some += 0.02 * _blurred(depth, 0.5 * reach * scale)
        mean = some / np.maximum(there + 0.02 * layers[2], 1e-5)
        pixels, away, _ = self.camera.project(points)
        at = pixels.T[::-1] - 0.5
        width = soft * np.maximum(away - map_coordinates(mean, at, order=1), 0.0)
        share = np.interp(width, widths, np.arange(3.0))
        return np.clip(map_coordinates(np.stack(layers), [share, *at], order=1), 0.0, 1.0)


def _near_parts(depth: _Float, reach: np.float32, radius: float) -> _Float:
    """Replace depths far in front of their neighbours by the depths of the neighbours.

    Args:
        depth: The depths, (h, w).
        reach: Radius of the ambient occlusion, length units; unit of the threshold ``_APART``.
        radius: Distance to the neighbours, pixels.
    """
    from scipy.ndimage import maximum_filter1d

    behind: _Float = depth
    for axis in (0, 1):
        behind = maximum_filter1d(behind, 2 * max(round(radius), 1) + 1, axis=axis, mode="nearest")
    share = np.clip((behind - depth) / reach - np.float32(_APART), 0.0, 1.0)
    return depth + share * (behind - depth)


def _blurred(image: _Float, radius: float) -> _Float:
    """Return an image blurred with two box filters in each direction, nearly a Gaussian."""
    from scipy.ndimage import uniform_filter1d

    span = 2 * max(round(radius / 1.4), 1) + 1
    out: _Float = np.asarray(image, np.float32)
    for axis in (0, 0, 1, 1):
        out = uniform_filter1d(out, span, axis=axis, mode="nearest")
    return out


def shade_mesh(
    mesh: Mesh, camera: Camera, size: tuple[int, int], light: Light, shadow: Shadow | None, samples: int = 3
) -> Layer | None:
    """Draw a surface on a transparent background.

    Args:
        mesh: The surface.
        camera: The camera.
        size: Width and height of the image, pixels.
        light: The light.
        shadow: Shadow map of the light; None for no shadows on the surface.
        samples: Samples per pixel in each direction; fewer in very large images.

    Returns:
        The left and top pixel of the part of the image that the surface covers, and that part as red, green, blue and
        coverage (h, w, 4); None if nothing is visible.
    """
    if not len(mesh.faces):
        return None
    pixels, depth, _ = camera.project(mesh.vertices)
    seen = depth > camera.nearest
    if not seen.any():
        return None
    low, high = pixels[seen].min(axis=0), pixels[seen].max(axis=0)
    left, top = (max(int(v) - 1, 0) for v in np.clip(low, 0.0, 1e6))
    right, bottom = (min(int(v) + 2, n) for v, n in zip(np.clip(high, -2.0, 1e6), size, strict=True))
    if right <= left or bottom <= top:
        return None
    columns, rows = right - left, bottom - top
    samples = min(samples, max(int(math.sqrt(_SAMPLES / (columns * rows))), 1))
    eye = camera.shifted(left, top).scaled(samples)
    hits = _hits(mesh, eye, (columns * samples, rows * samples))
    if not len(hits.at):
        return None
    pixel = pixels_of(hits.at, columns, samples)
    extent = min(float(np.linalg.norm(np.ptp(mesh.vertices, axis=0))), light.extent)
    level = _places(
        _Part(camera.shifted(left, top), (columns, rows), extent, math.isfinite(light.extent)), hits, pixel, shadow
    )
    colour = _lit(mesh, eye, hits, light, *(part[pixel] for part in level))
    return (left, top), averaged(colour.T, pixel, (columns, rows), samples)


def _hits(mesh: Mesh, camera: Camera, size: tuple[int, int]) -> Hits:
    """Return the samples in which a mesh is visible, not hidden by the mesh ``behind``."""
    if mesh.behind is None:
        return hits_of(mesh.vertices, mesh.faces, camera, size)
    other = mesh.behind
    vertices = np.concatenate([mesh.vertices, other.vertices])
    hits = hits_of(vertices, np.concatenate([mesh.faces, other.faces + len(mesh.vertices)]), camera, size)
    own = hits.faces < len(mesh.faces)
    return Hits(hits.at[own], hits.faces[own], hits.shares[own], hits.depth[own])


class _Part(NamedTuple):
    """A part of the image.

    Args:
        camera: Camera of the part.
        size: Width and height of the part, pixels.
        extent: Size of its content, length units.
        apart: Whether the part shows several objects, so that an object must not darken objects far behind it.
    """

    camera: Camera
    size: tuple[int, int]
    extent: float
    apart: bool


def _places(part: _Part, hits: Hits, pixel: NDArray[np.intp], shadow: Shadow | None) -> tuple[_Float, _Float]:
    """Return the fractions of key light and of sky light of each pixel in a part of the image, 0 to 1, (pixels,)."""
    camera, (columns, rows), extent = part.camera, part.size, part.extent
    near = np.full(rows * columns, np.inf)
    np.minimum.at(near, pixel, hits.depth)
    shown = np.isfinite(near)
    lit = np.ones(rows * columns, np.float32)
    at = np.flatnonzero(shown)
    if shadow is not None:
        lit[at] = shadow.lit(camera.points_at(at % columns + 0.5, at // columns + 0.5, near[at]))
        lit = _blurred((lit * shown).reshape(rows, columns), 1.6) / np.maximum(
            _blurred(shown.astype(np.float32).reshape(rows, columns), 1.6), 1e-4
        )
    deep = float(near[at].max()) + 0.15 * extent
    depth = np.where(shown, near, deep).astype(np.float32).reshape(rows, columns)
    scale = camera.focal / float(np.median(near[at])) if camera.perspective else camera.focal
    sky = np.ones((rows, columns), np.float32)
    for radius, strength in _HIDDEN:
        reach = np.float32(radius * extent)
        around = depth if not part.apart else _near_parts(depth, reach, radius * extent * scale)
        gap = (depth - _blurred(around, radius * extent * scale)) / reach
        sky *= 1.0 - np.float32(strength) * np.clip(gap, 0.0, 1.0)
    return lit.reshape(-1), sky.reshape(-1)


def _lit(mesh: Mesh, camera: Camera, hits: Hits, light: Light, lit: _Float, sky: _Float) -> _Float:
    """Return the colours of samples, 0 to 1, (n, 3)."""
    corners = mesh.faces[hits.faces]
    shares = hits.shares.astype(np.float32)
    axes = camera.axes.astype(np.float32)
    own = mesh.normals @ axes.T  # components of normals to the right, upwards, and towards the viewer
    normal = _mixed(own, corners, shares)
    normal /= np.maximum(np.sqrt(np.einsum("ni,ni->n", normal, normal)), np.float32(1e-6))[:, None]
    normal *= _facing(mesh, camera)[hits.faces][:, None]
    np.maximum(normal[:, 2], 0.0, out=normal[:, 2])  # interpolated normals may point away near an outline
    colour = _mixed(mesh.colours, corners, shares)
    _texture(mesh, hits, shares, colour)
    towards, up = (axes @ v.astype(np.float32) for v in (light.direction, light.up))
    half = towards + np.array([0.0, 0.0, 1.0], np.float32)
    half /= np.float32(max(float(np.linalg.norm(half)), 1e-6))
    # key light wraps a little around the body, so that the edge of the light is soft
    slope = normal @ towards
    lit = lit * np.clip((slope + _EDGE) / (2.0 * _EDGE), 0.0, 1.0)  # surfaces facing away are dark
    key = np.clip((slope + 0.25) / 1.25, 0.0, 1.0)
    key = key * (0.25 + 0.75 * lit) * (0.6 + 0.4 * sky)
    rise = 0.5 + 0.5 * (normal @ up)
    edge = 1.0 - normal[:, 2]
    edge = edge * edge * edge
    gloss = np.clip(normal @ half, 0.0, 1.0)
    for _ in range(4):
        gloss *= gloss
    gloss = np.float32(_GLOSS) * gloss * lit
    rim = np.float32(_RIM) * edge * np.clip(0.35 + rise, 0.0, 1.0) * sky
    out = np.empty_like(colour)
    for k in range(3):
        around = np.float32(_BOUNCE[k]) + np.float32(_SKY[k] - _BOUNCE[k]) * rise
        out[:, k] = colour[:, k] * (around * sky + np.float32(_KEY[k]) * key) + gloss + rim * (0.3 + 0.7 * colour[:, k])
    # bright colours approach white slowly, so that a white body keeps its shape
    over = np.float32(_SHOULDER) - np.float32(_SHOULDER) * np.exp((1.0 - _SHOULDER - out) / np.float32(_SHOULDER))
    out = np.where(out > 1.0 - _SHOULDER, np.float32(1.0 - _SHOULDER) + over, np.maximum(out, 0.0))
    return out ** np.float32(1.0 / _GAMMA)


def _facing(mesh: Mesh, camera: Camera) -> _Float:
    """Return 1 for triangles whose front faces the camera, and -1 for other triangles, (f,)."""
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    towards = camera.position - a if camera.perspective else camera.axes[2]
    return np.where(
        np.einsum("fi,fi->f", np.cross(b - a, c - a), np.broadcast_to(towards, a.shape)) < 0.0, -1, 1
    ).astype(np.float32)


def _mixed(values: _Float, corners: NDArray[np.intp], shares: _Float) -> _Float:
    """Return values of vertices, (v, k), interpolated at samples, (n, k)."""
    out = values[corners[:, 0]] * shares[:, :1]
    out += values[corners[:, 1]] * shares[:, 1:2]
    out += values[corners[:, 2]] * shares[:, 2:]
    return out


def _texture(mesh: Mesh, hits: Hits, shares: _Float, colour: _Float) -> None:
    """Multiply the colours of samples by their textures, in place."""
    if mesh.corners is None or mesh.images is None:
        return
    number = mesh.images[hits.faces]
    for k, texture in enumerate(mesh.textures):
        on = np.flatnonzero(number == k)
        if not len(on):
            continue
        uv = np.einsum("nci,nc->ni", mesh.corners[hits.faces[on]], shares[on])
        rows, columns = texture.shape[:2]
        x, y = (uv[:, 0] % 1.0) * columns - 0.5, (uv[:, 1] % 1.0) * rows - 0.5
        j, i = np.floor(x).astype(np.intp), np.floor(y).astype(np.intp)
        fx, fy = (x - j)[:, None], (y - i)[:, None]
        j0, j1, i0, i1 = j % columns, (j + 1) % columns, i % rows, (i + 1) % rows
        upper = texture[i0, j0] * (1.0 - fx) + texture[i0, j1] * fx
        lower = texture[i1, j0] * (1.0 - fx) + texture[i1, j1] * fx
        colour[on] *= upper * (1.0 - fy) + lower * fy
