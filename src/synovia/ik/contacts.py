"""The nearest pairs of shapes that clearance goals keep apart, at a pose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from synovia.goals import ClearanceGoal
from synovia.ik.compiled import CompiledProblem
from synovia.kernels import layout
from synovia.model import Pose
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.shapes.body import packed_shapes
from synovia.model.shapes.distances import Contact, PackedShapes, contact_of, contact_rows, join_shapes

MOST: Final = 20  # pairs of links and obstacles that are listed
_AT_ONCE: Final = 1000  # pairs of shapes that are measured before others are left out
_Pairs = NDArray[np.int32]


def nearest_contacts(ik: CompiledProblem, pose: Pose) -> tuple[Contact, ...]:
    """Return the contacts of the nearest pairs of links and obstacles that clearance goals keep apart.

    Args:
        ik: The problem.
        pose: The pose, of ``ik.skeleton``.

    Returns:
        At most ``MOST`` of them, one for each pair, the nearest first; none without clearance goals.
    """
    found: dict[tuple[str | int, str | int], Contact] = {}
    for goal in ik.goals:
        if isinstance(goal, ClearanceGoal) and goal.apart is not None:
            for contact in _contacts(ik, goal, pose):
                pair = contact.pair
                if pair is not None and (pair not in found or contact.distance < found[pair].distance):
                    found[pair] = contact
    return tuple(sorted(found.values(), key=lambda contact: contact.distance)[:MOST])


def _contacts(ik: CompiledProblem, goal: ClearanceGoal, pose: Pose) -> Iterator[Contact]:
    """Yield the nearest contact of each of the nearest pairs of one goal."""
    skeleton, before = ik.skeleton, len(ik.skeleton) - len(ik.given)
    body = packed_shapes(skeleton)
    shapes = [body.packed.in_frames(frames_to_transforms(pose.frames[body.owners]))]
    rows_of_shapes = cast("list[int]", body.owners.tolist())
    owners: list[str | int] = [skeleton.link_key(row) for row in rows_of_shapes]
    pairs = [_own_pairs(ik, goal, before)]
    if goal.world is not None:
        packed = goal.world.packed
        shapes.append(packed.in_world())
        pairs += _pairs_with_world(ik, goal, before, packed.owners, len(owners))
        owners += [goal.world.names[k] for k in packed.owners.tolist()]
    every = np.concatenate(pairs)
    if not len(every) or goal.apart is None:
        return
    number = {owner: k for k, owner in enumerate(dict.fromkeys(owners))}
    numbers = np.array([number[owner] for owner in owners])[every]
    groups = np.unique(numbers[:, 0] * len(number) + numbers[:, 1], return_inverse=True)[1]
    whole = join_shapes(shapes)
    for k, row in _nearest(whole, every, groups):
        yield contact_of(row, (owners[int(every[k, 0])], owners[int(every[k, 1])]))


def _own_pairs(ik: CompiledProblem, goal: ClearanceGoal, before: int) -> _Pairs:
    """Return the pairs of shapes of the body that a goal keeps apart, (n, 2)."""
    links = np.zeros((0, 2), int) if goal.apart is None else goal.apart.links
    return packed_shapes(ik.skeleton).shape_pairs((links + before).astype(np.int32))


def _pairs_with_world(
    ik: CompiledProblem, goal: ClearanceGoal, before: int, owners: NDArray[np.int32], first: int
) -> list[_Pairs]:
    """Return the pairs of shapes of the body and of obstacles, whose rows begin at ``first``; each (n, 2)."""
    body, tables, apart = packed_shapes(ik.skeleton), ik.reduced.clearance, goal.apart
    if apart is None or tables is None:
        return []
    joints = body.links[:, layout.LINK_ROW]
    moves = tables.links[: len(joints), layout.LINK_ROW] >= 0
    avoiding = np.flatnonzero(np.isin(body.owners, joints[moves])) if len(apart.avoiding) else np.zeros(0, int)
    whole = _product(avoiding, first + np.arange(len(owners)))
    single = [
        _product(np.flatnonzero(body.owners == link + before), first + np.flatnonzero(owners == obstacle))
        for link, obstacle in apart.single.tolist()
    ]
    return [whole, *single]


def _product(a: NDArray[np.intp], b: NDArray[np.intp]) -> _Pairs:
    """Return all pairs of two lists of rows, (n, 2)."""
    return np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.int32)


def _nearest(shapes: PackedShapes, pairs: _Pairs, groups: NDArray[np.intp]) -> list[tuple[int, Array]]:
    """Return the nearest pair of each of the nearest groups, and its contact, the nearest first.

    The pairs that may be nearest by their bounding spheres are measured first, and those that cannot be among the
    nearest any more are not measured at all.

    Args:
        shapes: All shapes.
        pairs: Pairs of them, (n, 2).
        groups: Number of the group of each pair, (n,).
    """
    least = _least_gaps(shapes, pairs)
    left, most = np.argsort(least, kind="stable"), _AT_ONCE
    best: dict[int, tuple[int, Array]] = {}
    gaps = np.full(int(groups.max()) + 1, np.inf)
    while len(left):
        measured, left = left[:most], left[most:]
        rows = contact_rows(shapes, pairs[measured])
        for k, row in zip(measured.tolist(), rows, strict=True):
            if row[layout.GAP_SIZE] < gaps[groups[k]]:
                gaps[groups[k]] = row[layout.GAP_SIZE]
                best[int(groups[k])] = k, row
        limit = np.partition(gaps, MOST - 1)[MOST - 1] if len(gaps) >= MOST else np.inf
        left = left[least[left] < np.minimum(gaps[groups[left]], limit)]
        most *= 2
    return sorted(best.values(), key=lambda one: one[1][layout.GAP_SIZE])[:MOST]


def _least_gaps(shapes: PackedShapes, pairs: _Pairs) -> Array:
    """Return the least distance that pairs may have, by their bounding spheres."""
    table = shapes.shapes
    middle, radius = table[:, layout.ORIGIN : layout.HALF_SIZES], table[:, layout.EXTENT]
    a, b = pairs.T
    gap = np.linalg.norm(middle[a] - middle[b], axis=1) - radius[a] - radius[b]
    endless = table[b, layout.SHAPE_KIND] == layout.HALF_SPACE
    if endless.any():
        gap[endless] = _heights(table, a[endless], b[endless]) - radius[a[endless]]
    return gap


def _heights(table: Array, a: NDArray[np.int32], b: NDArray[np.int32]) -> Array:
    """Return the heights of the middles of shapes a over half-spaces b."""
    normals = table[b, layout.ORIENTATION : layout.ORIGIN].reshape(-1, 3, 3)[:, :, 2]
    origin = slice(layout.ORIGIN, layout.HALF_SIZES)
    return np.sum(normals * (table[a, origin] - table[b, origin]), axis=1)
