"""The shapes of bodies and the obstacles of a world as triangles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import SynoviaError
from synovia.io.meshes import Faces
from synovia.model import Skeleton
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.shapes.solids import Box, Capsule, ConvexHull, Cylinder, HalfSpace, PointCloud, Shape, Solid, Sphere
from synovia.model.shapes.world import World
from synovia.surface.base import PLAIN, Colour, Part, Surface, limited, rigid_part
from synovia.surface.shapes import ball, box, capsule, cylinder
from synovia.text import listed

MOST_SPHERES: Final = 50_000  # of a point cloud; of more, evenly chosen ones are shown
_ROUND: Final = 200  # spheres of a cloud that are round; those of larger clouds are icosahedra
_FLAT: Final = 1e-9  # part of its size by which a flat hull may be thick
_GOLDEN: Final = (1.0 + 5.0**0.5) / 2.0
_ICOSAHEDRON: Final = np.array(
    [np.roll((0.0, u, v * _GOLDEN), k) for k in range(3) for u in (-1.0, 1.0) for v in (-1.0, 1.0)]
) / np.hypot(1.0, _GOLDEN)


def body_surface(skeleton: Skeleton, colour: Colour = PLAIN) -> Surface:
    """Return the shapes of a body; notes name the links whose shapes cannot be read.

    Args:
        skeleton: The body.
        colour: Colour of all shapes.
    """
    rest = frames_to_transforms(skeleton.rest_pose().frames)
    parts: list[Part] = []
    lost: dict[str, list[str]] = {}
    for row, joint in enumerate(skeleton.joints):
        for shape in joint.shapes:
            try:
                parts += [
                    rigid_part(vertices, faces, row, rest[row], colour, flat=flat)
                    for vertices, faces, flat in triangles_of(shape)
                ]
            except SynoviaError as error:
                lost.setdefault(error.what, []).append(str(skeleton.link_key(row)))
    notes = tuple(f"shapes cannot be shown ({why}) of {listed([*dict.fromkeys(some)])}" for why, some in lost.items())
    return Surface(limited(parts), notes, partial=bool(lost))


def world_surface(world: World, colours: Iterable[Colour] = (PLAIN,)) -> Surface:
    """Return the obstacles of a world without half-spaces; the rows of the parts are those of the obstacles.

    Args:
        world: The world; ``world.transforms`` are the frames of the rows.
        colours: Colours that obstacles have in turn.
    """
    tones = tuple(colours)
    parts = [
        rigid_part(vertices, faces, row, np.eye(4), tones[row % len(tones)], flat=flat)
        for row, obstacle in enumerate(world)
        for shape in obstacle.shapes
        for vertices, faces, flat in triangles_of(shape)
    ]
    return Surface(limited(parts))


def triangles_of(shape: Shape) -> Iterator[tuple[Array, Faces, bool]]:
    """Yield vertices (v, 3), triangles (f, 3) and whether these are flat, of the parts of a shape in its frame.

    A half-space has none.

    Raises:
        SynoviaError: If the mesh of a hull cannot be read.
    """
    if isinstance(shape, PointCloud):
        yield _spheres(shape.points, shape.radius)
    elif isinstance(shape, Solid) and not isinstance(shape, HalfSpace):
        place = shape.place()
        for vertices, faces, flat in _own(shape):
            yield vertices @ place[:3, :3].T + place[:3, 3], faces, flat


def _own(shape: Solid) -> Iterator[tuple[Array, Faces, bool]]:
    """Yield the parts of a solid in its own frame."""
    if isinstance(shape, Sphere):
        yield *ball(np.full(3, shape.radius)), False
    elif isinstance(shape, Capsule):
        yield *capsule(shape.radius, 2.0 * shape.sizes()[2]), False
    elif isinstance(shape, Box):
        yield *box(shape.size), True
    elif isinstance(shape, Cylinder):
        vertices, faces = cylinder(shape.radius, shape.length)
        ends = (faces >= len(vertices) - 2).any(axis=1)  # triangles at the middle of an end
        yield vertices, faces[~ends], False
        yield vertices, faces[ends], True
    elif isinstance(shape, ConvexHull):
        points = shape.corners()
        faces = hull_faces(points)
        if len(faces):
            yield points, faces, True


def hull_faces(points: Array) -> Faces:
    """Return the triangles of the hull of points, (f, 3); those of a flat hull cover it once, a line has none."""
    from scipy.spatial import ConvexHull as Hull
    from scipy.spatial import QhullError

    size = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    axes: Array
    _, spread, axes = np.linalg.svd(points - points.mean(0), full_matrices=False)
    if len(points) < 3 or spread[1] <= _FLAT * size:
        return np.empty((0, 3), np.int64)
    if len(points) > 3 and spread[2] > _FLAT * size:
        try:
            return np.array(Hull(points).simplices, np.int64)
        except (QhullError, ValueError):
            pass  # nearly flat
    around: NDArray[np.int64] = np.array(Hull(points @ axes[:2].T).vertices, np.int64)
    middle, last = around[1:-1], around[2:]
    return np.stack([np.full(len(middle), around[0]), middle, last], axis=1)


def _spheres(points: Array, radius: float) -> tuple[Array, Faces, bool]:
    """Return the triangles of equal spheres."""
    points = points[:: -(-len(points) // MOST_SPHERES)]
    if len(points) <= _ROUND:
        vertices, faces = ball(np.full(3, radius))
    else:
        vertices, faces = radius * _ICOSAHEDRON, hull_faces(_ICOSAHEDRON)
    starts = len(vertices) * np.arange(len(points))
    return (points[:, None] + vertices).reshape(-1, 3), (starts[:, None, None] + faces).reshape(-1, 3), False
