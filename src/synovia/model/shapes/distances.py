"""Signed distances between shapes, with the nearest points and the normal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synovia.arguments import check_kind
from synovia.errors import InputError
from synovia.kernels import layout
from synovia.model.geometry import Array
from synovia.model.shapes.solids import Solid


@dataclass(frozen=True, eq=False)
class Contact:
    """The contact of two shapes, which may be apart: signed distance, nearest points and normal.

    Args:
        distance: Signed distance, length units; for overlapping shapes, minus the shortest displacement that separates
            them.
        points: Nearest point of the first shape, then of the second shape, (2, 3). For overlapping shapes, separating
            them along the normal makes these points coincide. Parallel edges and faces have many such points.
        normal: Unit vector (3,) from the second shape to the first: moving the first shape by t along it adds t to the
            distance.
        pair: Names of the links or obstacles of the shapes; None if unknown.

    Example:
        >>> import synovia as sy
        >>> contact = sy.shapes.distance(sy.Sphere(radius=1), sy.HalfSpace(point=(0, 0, -3), normal=(0, 0, 1)))
        >>> isinstance(contact, sy.shapes.Contact), contact.distance
        (True, 2.0)
    """

    distance: float
    points: Array
    normal: Array
    pair: tuple[str | int, str | int] | None = None

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        self.points.setflags(write=False)
        self.normal.setflags(write=False)


class PackedShapes(NamedTuple):
    """Shapes in the form that kernels read; ``kernels.layout`` has the columns.

    Args:
        shapes: Frame, sizes and kind of each shape, (n, 20).
        points: Points of all hulls, each in the frame of its shape, (m, 3).
    """

    shapes: Array
    points: Array

    def in_frames(self, frames: Array) -> PackedShapes:
        """Return the shapes in the world.

        Args:
            frames: World transform of the frame of each shape's values, (n, 4, 4).
        """
        turn, place = slice(layout.ORIENTATION, layout.ORIGIN), slice(layout.ORIGIN, layout.HALF_SIZES)
        shapes = self.shapes.copy()
        shapes[:, turn] = (frames[:, :3, :3] @ shapes[:, turn].reshape(-1, 3, 3)).reshape(-1, 9)
        shapes[:, place] = np.einsum("nij,nj->ni", frames[:, :3, :3], shapes[:, place]) + frames[:, :3, 3]
        return self._replace(shapes=shapes)

    def counts(self, owners: NDArray[np.integer[Any]], count: int) -> NDArray[np.int64]:
        """Return, (count, 2), how many shapes each owner has, and how many of them are not spheres.

        Args:
            owners: Index of the owner of each shape, (n,).
            count: Number of owners.
        """
        flat = owners[self.shapes[:, layout.SHAPE_KIND] != layout.SPHERE]
        return np.stack([np.bincount(rows, minlength=count) for rows in (owners, flat)], axis=1)


def pack_shapes(shapes: Sequence[Solid]) -> PackedShapes:
    """Pack shapes for kernels, each in the frame of its values."""
    table = np.zeros((len(shapes), layout.SHAPE_WIDTH))
    corners = [shape.corners() for shape in shapes]
    count = np.array([len(points) for points in corners], np.int64)
    table[:, layout.SHAPE_KIND] = [shape.code for shape in shapes]
    table[:, layout.FIRST_POINT] = np.cumsum(count) - count
    table[:, layout.POINTS] = count
    for row, shape in zip(table, shapes, strict=True):
        place = shape.place()
        row[layout.ORIENTATION : layout.ORIGIN] = place[:3, :3].ravel()
        row[layout.ORIGIN : layout.HALF_SIZES] = place[:3, 3]
        row[layout.HALF_SIZES : layout.RADIUS + 1] = shape.sizes()
        row[layout.EXTENT] = shape.extent()
    return PackedShapes(table, np.concatenate([np.empty((0, 3)), *corners]))


def pack_cloud(points: Array, radius: float) -> PackedShapes:
    """Pack spheres of equal radius about points (n, 3) for kernels."""
    count = len(points)
    table = np.zeros((count, layout.SHAPE_WIDTH))
    table[:, layout.SHAPE_KIND] = layout.SPHERE
    table[:, layout.ORIENTATION : layout.ORIGIN] = np.eye(3).ravel()
    table[:, layout.ORIGIN : layout.HALF_SIZES] = points
    table[:, layout.RADIUS] = table[:, layout.EXTENT] = radius
    return PackedShapes(table, np.empty((0, 3)))


def join_shapes(parts: Sequence[PackedShapes]) -> PackedShapes:
    """Concatenate packed shapes."""
    shapes = np.concatenate([np.empty((0, layout.SHAPE_WIDTH)), *(part.shapes for part in parts)])
    first = np.cumsum([0, *(len(part.points) for part in parts)])[:-1]
    shapes[:, layout.FIRST_POINT] += np.repeat(first, [len(part.shapes) for part in parts])
    return PackedShapes(shapes, np.concatenate([np.empty((0, 3)), *(part.points for part in parts)]))


def contact_rows(packed: PackedShapes, pairs: NDArray[np.int32]) -> Array:
    """Return the contact of each pair of packed shapes, (n, 10); the columns are those of ``kernels.layout``.

    Args:
        packed: The shapes, in one frame.
        pairs: Rows of both shapes of each pair, (n, 2); at most one of them is a half-space.
    """
    from synovia.kernels.collision.distance import distances

    contacts = np.empty((len(pairs), layout.CONTACT_WIDTH))
    corners = np.empty((layout.MOST_CORNERS, layout.CORNER_WIDTH))
    faces = np.empty((layout.MOST_FACES, layout.FACE_WIDTH))
    edges = np.empty((layout.MOST_EDGES, layout.EDGE_WIDTH))
    distances(*packed, np.ascontiguousarray(pairs, np.int32), contacts, corners, faces, edges)
    return contacts


def from_points(shape: Solid, points: Array) -> tuple[Array, Array]:
    """Return the signed distances of points (n, 3) from a shape in the same frame, and the normals, (n, 3)."""
    both = join_shapes([pack_shapes([shape]), pack_cloud(points, 0.0)])
    rows = np.arange(1, len(points) + 1, dtype=np.int32)
    found = contact_rows(both, np.stack([rows, np.zeros_like(rows)], axis=1))
    return found[:, layout.GAP_SIZE], found[:, layout.CONTACT_NORMAL : layout.CONTACT_NORMAL + 3]


def distance(
    a: Solid, b: Solid, *, transform_a: ArrayLike | None = None, transform_b: ArrayLike | None = None
) -> Contact:
    """Return the signed distance between two shapes, their nearest points and the normal.

    Pairs of spheres, capsules and half-spaces, and spheres with boxes and cylinders, have closed forms. Other pairs use
    the algorithm of Gilbert, Johnson and Keerthi and, for overlapping shapes, the expanding polytope algorithm.

    Args:
        a: The first shape.
        b: The second shape; at most one of both is a half-space.
        transform_a: 4x4 transform from the frame of the first shape to the world; None if the shape is given in the
            world.
        transform_b: The same for the second shape.

    Raises:
        InputError: If an argument is not a shape or transform, or both are half-spaces.

    Example:
        >>> import synovia as sy
        >>> contact = sy.shapes.distance(sy.Sphere(center=(0, 0, 3), radius=1), sy.Box(size=(2, 2, 2)))
        >>> contact.distance
        1.0
        >>> contact.normal
        array([0., 0., 1.])
    """
    moved: list[Solid] = []
    for name, shape, transform in (("a", a, transform_a), ("b", b, transform_b)):
        check_kind(name, shape, Solid, "such as Sphere(radius=0.1)")
        moved.append(shape if transform is None else shape.moved(transform))
    if all(shape.endless for shape in moved):
        raise InputError("b", value=type(b), expected="a bounded shape, because the first is a half-space")
    return contact_of(contact_rows(pack_shapes(moved), np.array([[0, 1]], np.int32))[0])


def contact_of(row: Array, pair: tuple[str | int, str | int] | None = None) -> Contact:
    """Convert a row of ``contact_rows`` to a contact, with the names of the pair if they are known."""
    first, second = layout.FIRST_WITNESS, layout.SECOND_WITNESS
    points = np.stack([row[first : first + 3], row[second : second + 3]])
    normal = row[layout.CONTACT_NORMAL : layout.CONTACT_NORMAL + 3].copy()
    return Contact(float(row[layout.GAP_SIZE]), points, normal, pair)
