"""Distances between links of a body that are near to each other, over many poses at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from synovia.kernels import layout
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.shapes.body import BodyShapes, Ints, packed_shapes
from synovia.model.shapes.distances import PackedShapes, contact_rows
from synovia.model.skeleton import Skeleton
from synovia.model.tables import writable
from synovia.text import length_text

_AT_ONCE: Final = 50_000  # largest number of frames of shapes that are in memory at once


@dataclass(frozen=True, slots=True)
class TooNear:
    """Two links, or a link and an obstacle, that are nearer than asked in some frames of a clip.

    Args:
        pair: Names of the two; a link without a name has its row instead.
        distance: Smallest distance over the frames, length units; negative for an overlap.
        wanted: The required distance, length units.
        frame: The frame with the smallest distance.
        frames: All frames in which the two are too near.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> still = sy.Motion(body, [body.rest_q] * 30, 30.0)
        >>> sy.retarget(still, sy.bundled("humanoid")).too_near
        ()
    """

    pair: tuple[str | int, str | int]
    distance: float
    wanted: float
    frame: int
    frames: tuple[int, ...]

    @classmethod
    def of(
        cls, pair: tuple[str | int, str | int], wanted: float, distances: Iterable[float], frames: Iterable[int]
    ) -> Self:
        """Return a pair from distances and the frames in which they were measured; a frame may occur repeatedly."""
        found = list(zip(distances, frames, strict=True))
        distance, frame = min(found)
        return cls(pair, distance, wanted, frame, tuple(sorted({frame for _, frame in found})))

    def text(self, meters_per_unit: float | None) -> str:
        """Return a sentence about the pair with its distances and frames.

        Args:
            meters_per_unit: Metres per length unit of the body.
        """
        first, second = self.pair
        distance, wanted = (length_text(abs(one), meters_per_unit) for one in (self.distance, self.wanted))
        how = f"overlap by {distance}" if self.distance < 0.0 else f"are {distance} apart"
        more = f", and should be {wanted} apart" if self.wanted > 0.0 else ""
        return f"{first} and {second} {how} in frame {self.frame}{more}"


class NearShapes(NamedTuple):
    """Contacts of pairs of shapes that are nearer than a given distance, in all poses.

    Args:
        poses: Index of the pose of each contact, (m,).
        pairs: Index of the pair of links of each contact, (m,).
        contacts: The contacts, (m, 10); the columns are those of ``kernels.layout``.
    """

    poses: NDArray[np.intp]
    pairs: NDArray[np.intp]
    contacts: Array

    @property
    def gaps(self) -> Array:
        """Distance of the shapes of each contact, (m,); negative for an overlap."""
        return self.contacts[:, layout.GAP_SIZE]

    @property
    def normals(self) -> Array:
        """Normal of each contact, (m, 3)."""
        return self.contacts[:, layout.CONTACT_NORMAL : layout.CONTACT_NORMAL + 3]

    def depths(self, count: int, pairs: int) -> Array:
        """Return the penetration depth of each pair of links in each pose, (count, pairs), length units."""
        out = np.zeros((count, pairs))
        np.maximum.at(out, (self.poses, self.pairs), -self.gaps)
        return out


def near_shapes(skeleton: Skeleton, frames: Array, pairs: Ints, within: float = 0.0) -> NearShapes:
    """Return the contacts of all shapes of pairs of links whose distance is below ``within``.

    Bounding spheres of links, then of shapes, are compared first, so that distant pairs cost little.

    Args:
        skeleton: The body.
        frames: World frames of its joints in each pose, (T, n, 12).
        pairs: Joint rows of both links of each pair, (p, 2).
        within: The distance, length units.
    """
    found = [_none()]
    if len(pairs):
        found += _by_chunk(skeleton, frames, np.asarray(pairs, np.int32), within)
    return NearShapes(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def are_near(skeleton: Skeleton, frames: Array, pairs: Ints, distance: float) -> NDArray[np.bool_]:
    """Return a mask of poses in which the links of any pair are nearer than a distance, (T,).

    For distance 0, this takes a fraction of the time of ``near_shapes``, because no depth is computed.

    Args:
        skeleton: The body.
        frames: World frames of its joints in each pose, (T, n, 12).
        pairs: Joint rows of both links of each pair, (p, 2).
        distance: The distance, length units.
    """
    if distance != 0.0:
        out = np.zeros(len(frames), np.bool_)
        out[near_shapes(skeleton, frames, pairs, distance).poses] = True
        return out
    body = packed_shapes(skeleton)
    return touches(body, _numbers(body, pairs), frames)[1] > 0


def touches(body: BodyShapes, pairs: Ints, frames: Array) -> tuple[Ints, Ints]:
    """Return the number of poses in which the links of each pair touch, (p,), and of touching pairs in each pose, (T,).

    Args:
        body: The shapes of the body.
        pairs: Indices of both links of each pair among those of the body, (p, 2).
        frames: World frames of the joints in the poses, (T, n, 12).
    """
    from synovia.kernels.collision.touching import touching

    count = len(body.owners)
    shapes = np.zeros((count + len(body.links), layout.SHAPE_WIDTH))  # bounding spheres of links follow the shapes
    shapes[:count] = body.packed.shapes
    shapes[count:, layout.ORIGIN : layout.HALF_SIZES] = body.covers[:, : layout.BALL_RADIUS]
    shapes[count:, layout.EXTENT] = body.covers[:, layout.BALL_RADIUS]
    points, links = writable(body.packed.points, body.links)
    counted, poses = np.zeros((len(pairs), layout.COUNTED_WIDTH), np.int32), np.zeros(len(frames), np.int32)
    counted[:, : layout.TOUCHES] = pairs
    corners = np.empty((layout.MOST_CORNERS, layout.CORNER_WIDTH))
    touching(shapes, points, links, frames, counted, poses, shapes.copy(), corners)
    return counted[:, layout.TOUCHES], poses


def _numbers(body: BodyShapes, pairs: Ints) -> Ints:
    """Convert pairs of joint rows, (p, 2), to pairs of link indices of a body, (p, 2)."""
    place = {int(row): k for k, row in enumerate(body.links[:, layout.LINK_ROW])}
    return np.array([[place[int(a)], place[int(b)]] for a, b in pairs], np.int32).reshape(-1, 2)


def _none() -> NearShapes:
    """Return an empty set of contacts."""
    return NearShapes(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros((0, layout.CONTACT_WIDTH)))


class _Pairs(NamedTuple):
    """The shapes of pairs of links.

    Args:
        rows: Joint rows of the links, (l,).
        covers: Bounding spheres of the links, (l, 4).
        ends: Indices of both links of each pair, (p, 2).
        first: For each pair of links, index of its first pair of shapes, (p + 1,).
        shapes: Indices of both shapes of each pair of shapes, (k, 2).
        own: The shapes.
        owners: Joint rows of the shapes.
    """

    rows: Ints
    covers: Array
    ends: NDArray[np.intp]
    first: NDArray[np.intp]
    shapes: NDArray[np.intp]
    own: PackedShapes
    owners: Ints


@lru_cache(maxsize=16)
def _pairs_of(skeleton: Skeleton, pairs: bytes) -> _Pairs:
    """Return the shapes of pairs of links, which are given by joint rows, (p, 2) int32; the last results are cached."""
    listed, body = np.frombuffer(pairs, np.int32).reshape(-1, 2), packed_shapes(skeleton)
    links, ends = np.unique(_numbers(body, listed), return_inverse=True)
    both = [body.shape_pairs(pair[None]) for pair in listed]
    used, shapes = np.unique(np.concatenate(both), return_inverse=True)
    own = body.packed._replace(shapes=body.packed.shapes[used])
    rows, first = body.links[links, layout.LINK_ROW], np.cumsum([0, *map(len, both)])
    return _Pairs(rows, body.covers[links], ends.reshape(-1, 2), first, shapes.reshape(-1, 2), own, body.owners[used])


def _by_chunk(skeleton: Skeleton, frames: Array, pairs: Ints, within: float) -> Iterator[NearShapes]:
    """Yield the contacts of consecutive chunks of poses."""
    rows, covers, ends, first, shapes, own, owners = _pairs_of(skeleton, pairs.tobytes())
    count = len(owners)
    size = max(_AT_ONCE // max(count, 1), 1)
    for start in range(0, len(frames), size):
        part = frames[start : start + size]
        carried = part[:, rows]
        turns = carried[..., :9].reshape(*carried.shape[:2], 3, 3)
        centers = carried[..., 9:] + (turns @ covers[:, :3, None])[..., 0]
        ways = centers[:, ends[:, 0]] - centers[:, ends[:, 1]]
        gaps = np.sqrt(np.einsum("tpi,tpi->tp", ways, ways)) - (covers[ends[:, 0], 3] + covers[ends[:, 1], 3])
        at, which = np.nonzero(gaps < within)
        if not len(at):
            continue
        seen, at = np.unique(at, return_inverse=True)  # only poses with near links are needed
        many = first[which + 1] - first[which]
        poses, numbers = np.repeat(at, many), np.repeat(which, many)
        one = np.arange(len(poses)) - np.repeat(np.cumsum(many) - many, many) + first[numbers]
        placed = frames_to_transforms(part[seen][:, owners]).reshape(-1, 4, 4)
        whole = PackedShapes(np.tile(own.shapes, (len(seen), 1)), own.points).in_frames(placed)
        two = shapes[one] + (poses * count)[:, None]
        middles, extents = whole.shapes[:, layout.ORIGIN : layout.HALF_SIZES], whole.shapes[:, layout.EXTENT]
        apart = np.linalg.norm(middles[two[:, 0]] - middles[two[:, 1]], axis=1) - extents[two].sum(axis=1)
        near = apart < within
        contacts = contact_rows(whole, two[near].astype(np.int32))
        close = contacts[:, layout.GAP_SIZE] < within
        yield NearShapes(start + seen[poses[near][close]], numbers[near][close], contacts[close])
