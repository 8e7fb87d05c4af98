"""Pack the shapes of a body for kernels, each in the frame of its joint; find links without shapes."""

from __future__ import annotations

from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from synovia.kernels import layout
from synovia.model.geometry import Array
from synovia.model.joint import Kind
from synovia.model.shapes.distances import PackedShapes, pack_shapes
from synovia.model.skeleton import Skeleton

Ints = NDArray[np.int32]


class BodyShapes(NamedTuple):
    """The n shapes of a body, in the order of the joints; k links have shapes. The arrays are read-only.

    Args:
        packed: The shapes in the form that kernels read, each in the frame of its joint.
        owners: Row of the joint that carries each shape, (n,).
        links: Joint, first shape and number of shapes of each link, (k, 3); the columns are those of
            ``kernels.layout``.
        covers: Bounding sphere of all shapes of each link in the frame of its joint: centre and radius, (k, 4).
    """

    packed: PackedShapes
    owners: Ints
    links: Ints
    covers: Array

    def shape_pairs(self, pairs: Ints) -> Ints:
        """Return all pairs of shapes for some pairs of links: the rows of both shapes, (m, 2).

        Args:
            pairs: Joint rows of both links of each pair, (p, 2).
        """
        place = {int(row): k for k, row in enumerate(self.links[:, layout.LINK_ROW])}
        found = [np.empty((0, 2), np.int32)]
        for a, b in pairs:
            first, second = self._shapes_of(place[int(a)]), self._shapes_of(place[int(b)])
            found.append(np.stack([np.repeat(first, len(second)), np.tile(second, len(first))], axis=1))
        return np.concatenate(found)

    def _shapes_of(self, link: int) -> Ints:
        """Return the rows of the shapes of the link with this index."""
        at, count = self.links[link, layout.FIRST_OF_LINK], self.links[link, layout.SHAPES_OF_LINK]
        return np.arange(at, at + count, dtype=np.int32)


_SHORT: Final = 1e-3  # fraction of the body's size: shorter bones have no extent


def unchecked_links(skeleton: Skeleton) -> list[str]:
    """Return the names of the links that clearance checks only partly or not at all.

    Such links have unreadable shapes, or have no shapes but an extent: a mass or a bone. A fixed link without a mass is
    only a frame, without an extent.
    """
    long = {
        parent
        for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True)
        if np.linalg.norm(joint.rest[:3, 3]) > _SHORT * skeleton.size
    }
    return [
        str(skeleton.link_key(row))
        for row, joint in enumerate(skeleton.joints)
        if joint.shapes_lost
        or (not joint.shapes and (joint.mass > 0.0 or (joint.kind not in (Kind.FIXED, Kind.FREE) and row in long)))
    ]


_known: WeakKeyDictionary[Skeleton, BodyShapes] = WeakKeyDictionary()


def packed_shapes(skeleton: Skeleton) -> BodyShapes:
    """Return the shapes of a body in the form that kernels read, cached for each skeleton.

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
    packed = pack_shapes(solids)
    covers = [link_cover(packed.shapes[at : at + size]) for at, size in zip(firsts, sizes, strict=True)]
    found = BodyShapes(
        packed,
        np.repeat(np.array(rows, np.int32), sizes),
        np.stack([np.array(rows, np.int32), firsts, sizes], axis=1),
        np.array(covers, np.float64).reshape(-1, layout.BALL_WIDTH),
    )
    for array in (*found.packed, *found[1:]):
        array.setflags(write=False)
    return found


def link_cover(shapes: Array) -> list[float]:
    """Return centre and radius of a bounding sphere of packed shapes (n, 20), about the centre of their bounding box.

    The radius is infinite if a shape is unbounded.
    """
    centers, radii = shapes[:, layout.ORIGIN : layout.HALF_SIZES], shapes[:, layout.EXTENT]
    if len(shapes) == 1 or not np.isfinite(radii).all():
        return [*centers[0].tolist(), float(radii.max())]
    center = 0.5 * ((centers - radii[:, None]).min(0) + (centers + radii[:, None]).max(0))
    return [*center.tolist(), float((np.linalg.norm(centers - center, axis=1) + radii).max())]
