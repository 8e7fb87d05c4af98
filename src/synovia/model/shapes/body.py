"""The shapes of a body as kernels read them, each on the joint that carries it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from synovia.kernels import layout
from synovia.model.geometry import Array
from synovia.model.shapes.distances import PackedShapes, pack_shapes
from synovia.model.shapes.solids import Capsule, ConvexHull, Solid, Sphere
from synovia.model.skeleton import Skeleton

Ints = NDArray[np.int32]
_WIDTH: Final = 4  # of a bounding sphere: centre and radius


class BodyShapes(NamedTuple):
    """The n shapes of a body, in the order of the joints; k links have shapes. The arrays are read-only.

    Args:
        packed: The shapes, each in the frame of its joint.
        owners: Row of the joint that carries each shape, (n,).
        spheres: Bounding sphere of each shape in the frame of its joint: centre and radius, (n, 4).
        links: Joint, first shape and number of shapes of each link, (k, 3); the columns are those of
            ``kernels.layout``.
        covers: Bounding sphere of all shapes of each link in the frame of its joint, (k, 4).
    """

    packed: PackedShapes
    owners: Ints
    spheres: Array
    links: Ints
    covers: Array

    def shape_pairs(self, pairs: Ints) -> Ints:
        """Return the rows of both shapes of each pair of shapes of some pairs of links, (m, 2).

        Args:
            pairs: Rows of the joints that carry both links of each pair, (p, 2).
        """
        place = {int(row): k for k, row in enumerate(self.links[:, layout.LINK_ROW])}
        found = [np.empty((0, 2), np.int32)]
        for a, b in pairs:
            first, second = self._shapes_of(place[int(a)]), self._shapes_of(place[int(b)])
            found.append(np.stack([np.repeat(first, len(second)), np.tile(second, len(first))], axis=1))
        return np.concatenate(found)

    def _shapes_of(self, link: int) -> Ints:
        """Return the rows of the shapes of a link."""
        at, count = self.links[link, layout.FIRST_OF_LINK], self.links[link, layout.SHAPES_OF_LINK]
        return np.arange(at, at + count, dtype=np.int32)


_known: WeakKeyDictionary[Skeleton, BodyShapes] = WeakKeyDictionary()


def packed_shapes(skeleton: Skeleton) -> BodyShapes:
    """Return the shapes of a body as kernels read them. They are packed once.

    Raises:
        SynoviaError: If the mesh of a hull cannot be read.
    """
    found = _known.get(skeleton)
    if found is None:
        found = _known[skeleton] = _pack(skeleton)
    return found


def _pack(skeleton: Skeleton) -> BodyShapes:
    """Pack the shapes of a body."""
    rows = [row for row, joint in enumerate(skeleton.joints) if joint.shapes]
    carried = [skeleton.joints[row].shapes for row in rows]
    solids = [shape for shapes in carried for shape in shapes]
    sizes = np.array([len(shapes) for shapes in carried], np.int32)
    firsts = (np.cumsum(sizes) - sizes).astype(np.int32)
    spheres = np.array([_sphere_around(shape) for shape in solids], np.float64).reshape(-1, _WIDTH)
    covers = [_cover(spheres[at : at + size]) for at, size in zip(firsts, sizes, strict=True)]
    found = BodyShapes(
        pack_shapes(solids),
        np.repeat(np.array(rows, np.int32), sizes),
        spheres,
        np.stack([np.array(rows, np.int32), firsts, sizes], axis=1),
        np.array(covers, np.float64).reshape(-1, _WIDTH),
    )
    for array in (*found.packed, *found[1:]):
        array.setflags(write=False)
    return found


def _sphere_around(shape: Solid) -> list[float]:
    """Return centre and radius of a sphere around a shape."""
    center = shape.place()[:3, 3]
    if isinstance(shape, ConvexHull):
        return [*center, float(np.linalg.norm(shape.points - center, axis=1).max())]
    x, y, z, radius = shape.sizes()
    if isinstance(shape, Sphere | Capsule):
        return [*center, z + radius]
    return [*center, float(np.linalg.norm((x, y, z, radius)))]  # a box has no radius, a cylinder no x and y


def _cover(spheres: Array) -> Sequence[float]:
    """Return centre and radius of a sphere around spheres, about the middle of the box around them."""
    if len(spheres) == 1:
        return spheres[0].tolist()
    centers, radii = spheres[:, :3], spheres[:, 3]
    center = 0.5 * ((centers - radii[:, None]).min(0) + (centers + radii[:, None]).max(0))
    return [*center, float((np.linalg.norm(centers - center, axis=1) + radii).max())]
