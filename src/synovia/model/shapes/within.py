"""Find the pairs of links of a body whose distance is nearly always smaller than a given one."""

from __future__ import annotations

from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from synovia.kernels import layout
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.pose import random_values, world_frames
from synovia.model.shapes.body import BodyShapes, packed_shapes
from synovia.model.shapes.distances import contact_rows
from synovia.model.shapes.pairs import NEARLY, LinkPair, self_pairs
from synovia.model.skeleton import Skeleton

Bools = NDArray[np.bool_]

SAMPLES: Final = 200  # number of random poses; determines a share of 95 % to within 1.5 %
_AT_ONCE: Final = 20  # number of poses after which pairs are pruned

_known: WeakKeyDictionary[Skeleton, dict[float, Bools]] = WeakKeyDictionary()


class ClosePairs(NamedTuple):
    """Pairs of links that cannot keep a distance; clearance only keeps them from touching.

    Args:
        distance: The distance, length units.
        pairs: The pairs, named as in ``SelfPairs.pairs``.
    """

    distance: float
    pairs: tuple[LinkPair, ...]


def close_pairs(skeleton: Skeleton, distance: float) -> ClosePairs:
    """Return the pairs that ``pairs_within`` finds, by name."""
    near = pairs_within(skeleton, distance).tolist()
    return ClosePairs(
        distance, tuple(pair for pair, is_near in zip(self_pairs(skeleton).pairs, near, strict=True) if is_near)
    )


def pairs_within(skeleton: Skeleton, distance: float) -> Bools:
    """Return a mask of ``self_pairs`` that are nearer than a distance in at least 95 % of 200 random poses, (n,).

    The result is cached for each body and distance. The poses are uniform within the limits, and always the same.

    Args:
        skeleton: The body.
        distance: Distance between the shapes of both links, length units; the result is empty for 0 or less.
    """
    if distance <= 0.0:
        return np.zeros(len(self_pairs(skeleton).rows), np.bool_)
    known = _known.setdefault(skeleton, {})
    if distance not in known:
        known[distance] = _find(skeleton, distance)
    return known[distance]


def _find(skeleton: Skeleton, distance: float) -> Bools:
    """Find the pairs of ``pairs_within``, without the cache."""
    rows = self_pairs(skeleton).rows
    body = packed_shapes(skeleton)
    q = random_values(skeleton, SAMPLES, 0)
    farther = np.zeros(len(rows), np.int64)  # number of poses in which each pair keeps the distance
    most = int((1.0 - NEARLY) * SAMPLES + 0.5)
    left = np.arange(len(rows))
    for at in range(0, SAMPLES, _AT_ONCE):
        frames = frames_to_transforms(world_frames(skeleton, q[at : at + _AT_ONCE]))
        near = _covers_within(body, rows[left], frames, distance)
        farther[left] += (~near).sum(axis=0)
        near = near[:, farther[left] <= most]
        left = left[farther[left] <= most]
        if not len(left):
            break
        shapes = [body.shape_pairs(row[None]) for row in rows[left]]
        sizes = np.array([len(pairs) for pairs in shapes])
        firsts, together = np.cumsum(sizes) - sizes, np.concatenate(shapes)
        for frame, ones in zip(frames, near, strict=True):
            gaps = np.full(len(together), np.inf)
            asked = np.repeat(ones, sizes)
            placed = body.packed.in_frames(frame[body.owners])
            gaps[asked] = contact_rows(placed, together[asked])[:, layout.GAP_SIZE]
            farther[left] += ones & (np.minimum.reduceat(gaps, firsts) >= distance)
        left = left[farther[left] <= most]
    found = np.zeros(len(rows), np.bool_)
    found[left] = True
    found.setflags(write=False)
    return found


def _covers_within(body: BodyShapes, rows: NDArray[np.int32], frames: Array, distance: float) -> Bools:
    """Return a mask (poses, n) of pairs of links whose bounding spheres are within a distance."""
    place = {int(row): k for k, row in enumerate(body.links[:, layout.LINK_ROW])}
    a, b = (np.array([place[int(row)] for row in side], np.intp) for side in rows.T)
    carried = frames[:, body.links[:, layout.LINK_ROW]]
    centers = np.einsum("pnij,nj->pni", carried[..., :3, :3], body.covers[:, :3]) + carried[..., :3, 3]
    radii = body.covers[:, layout.BALL_RADIUS]
    return np.linalg.norm(centers[:, a] - centers[:, b], axis=-1) - radii[a] - radii[b] < distance
