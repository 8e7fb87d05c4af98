"""The nearest pairs of shapes that clearance goals keep apart, at a pose."""

from __future__ import annotations

from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from synovia.goals import ClearanceGoal
from synovia.goals.clearance import Apart
from synovia.ik.compiled import CompiledProblem
from synovia.kernels import layout
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.shapes.body import packed_shapes
from synovia.model.shapes.distances import Contact, PackedShapes, contact_of, contact_rows, join_shapes
from synovia.model.shapes.world import World

MOST: Final = 20  # largest number of contacts: pairs of two links, or of a link and an obstacle
_AT_ONCE: Final = 1000  # number of pairs in the first block; later blocks skip pairs that are too far apart
_Pairs = NDArray[np.int32]
_NONE: Final = Apart(np.zeros((0, 2), np.int64), np.zeros(0, np.int64), np.zeros((0, 2), np.int64), 0)


def nearest_contacts(ik: CompiledProblem, pose: Pose) -> tuple[Contact, ...]:
    """Return the contacts of the nearest pairs of links and obstacles that clearance goals keep apart.

    Args:
        ik: The problem.
        pose: The pose, of ``ik.skeleton``.

    Returns:
        At most ``MOST`` contacts, one for each pair, the nearest first; empty without clearance goals. Pairs for which
        only contact is excluded are included if they overlap.
    """
    found: dict[tuple[str | int, str | int], Contact] = {}
    for pairs in watched_pairs(ik):
        for contact in pairs.at(pose):
            pair = contact.pair
            if pairs.close and contact.distance >= pairs.distance:
                break
            if pair is not None and (pair not in found or contact.distance < found[pair].distance):
                found[pair] = contact
    return tuple(sorted(found.values(), key=lambda contact: contact.distance)[:MOST])


def watched_pairs(ik: CompiledProblem) -> list[WatchedPairs]:
    """Return the watched pairs of each clearance goal.

    Only links that the problem moves are paired with obstacles. If a goal has pairs for which only contact is excluded,
    they are a second item, with distance 0.
    """
    tables = ik.reduced.clearance
    if tables is None:
        return []
    joints = packed_shapes(ik.skeleton).links[:, layout.LINK_ROW]
    moving = joints[tables.links[: len(joints), layout.LINK_ROW] >= 0]
    before = len(ik.skeleton) - len(ik.given)
    goals = [goal for goal in ik.goals if isinstance(goal, ClearanceGoal)]
    return [pairs for goal in goals for pairs in WatchedPairs.of_goal(ik.skeleton, goal, moving, before)]


class WatchedPairs:
    """The pairs of shapes that a clearance goal keeps apart; computes their contacts in a pose.

    Args:
        skeleton: The body.
        goal: The goal, resolved.
        moving: Rows of the joints whose links must avoid all obstacles; None for all links that a joint moves.
        before: Number of joints that ``skeleton`` has in front of the joints to which the goal refers.
        close: Whether to watch the goal's close pairs, for which only contact is excluded; else its other pairs.

    Attributes:
        distance: Required distance of the pairs, length units.
        world: The obstacles; None without any.
        close: Whether only contact is excluded for these pairs; ``distance`` is then 0.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        goal: ClearanceGoal,
        moving: NDArray[np.integer] | None = None,
        before: int = 0,
        *,
        close: bool = False,
    ) -> None:
        """Collect the pairs."""
        self.distance, self.world, self.close = 0.0 if close else goal.distance, goal.world, close
        apart = goal.apart or _NONE
        if close:
            apart = _NONE._replace(links=apart.close)
        body = packed_shapes(skeleton)
        self._body, self._placed = body, None if goal.world is None else goal.world.packed.in_world()
        rows_of_shapes = cast("list[int]", body.owners.tolist())
        self._owners: list[str | int] = [skeleton.link_key(row) for row in rows_of_shapes]
        pairs = [body.shape_pairs((apart.links + before).astype(np.int32))]
        if goal.world is not None:
            owners, first = goal.world.packed.owners, len(self._owners)
            self._owners += [goal.world.names[k] for k in owners.tolist()]
            avoiding = np.isin(body.owners, _moving(skeleton) if moving is None else moving) & bool(len(apart.avoiding))
            pairs.append(_product(np.flatnonzero(avoiding), first + np.arange(len(owners))))
            for link, obstacle in apart.single.tolist():
                mine = first + np.flatnonzero(owners == obstacle)
                pairs.append(_product(np.flatnonzero(body.owners == link + before), mine))
        self._pairs = np.concatenate(pairs)
        number = {owner: k for k, owner in enumerate(dict.fromkeys(self._owners))}
        numbers = np.array([number[owner] for owner in self._owners], np.int64)[self._pairs]
        self._groups = np.unique(numbers[:, 0] * len(number) + numbers[:, 1], return_inverse=True)[1]

    @staticmethod
    def of_goal(
        skeleton: Skeleton, goal: ClearanceGoal, moving: NDArray[np.integer] | None = None, before: int = 0
    ) -> list[WatchedPairs]:
        """Return the pairs of a clearance goal; pairs for which only contact is excluded are a second item."""
        kinds = (False, True) if goal.apart is not None and len(goal.apart.close) else (False,)
        return [WatchedPairs(skeleton, goal, moving, before, close=close) for close in kinds]

    @classmethod
    def of(
        cls, skeleton: Skeleton, world: World | None = None, distance: float = 0.0, pairs: str | None = None
    ) -> list[WatchedPairs]:
        """Return the pairs of links of a body that can collide, and the pairs of its moving links with obstacles.

        Args:
            skeleton: The body.
            world: The obstacles; None without any.
            distance: Required distance of the pairs, length units.
            pairs: ``"self"`` for links of the body, ``"world"`` for obstacles, None for both.

        Raises:
            InputError: If the body has no shapes.
        """
        goal = ClearanceGoal(distance, world=world, pairs=pairs)
        return cls.of_goal(skeleton, cast("ClearanceGoal", goal.resolved(skeleton)))

    def at(self, pose: Pose, most: int = MOST) -> list[Contact]:
        """Return the contacts of the nearest pairs of links and obstacles at a pose, the nearest first.

        Args:
            pose: The pose.
            most: Largest number of contacts.
        """
        if not len(self._pairs):
            return []
        shapes = [self._body.packed.in_frames(frames_to_transforms(pose.frames[self._body.owners]))]
        whole = join_shapes(shapes if self._placed is None else [*shapes, self._placed])
        return [
            contact_of(row, (self._owners[int(self._pairs[k, 0])], self._owners[int(self._pairs[k, 1])]))
            for k, row in _nearest(whole, self._pairs, self._groups)[:most]
        ]


def _moving(skeleton: Skeleton) -> list[int]:
    """Return the rows of links that a joint moves."""
    moved: list[bool] = []
    for row, parent in enumerate(skeleton.parents):
        moved.append(skeleton.joints[row].kind is not Kind.FIXED or (parent >= 0 and moved[parent]))
    return [row for row, moves in enumerate(moved) if moves]


def _product(a: NDArray[np.intp], b: NDArray[np.intp]) -> _Pairs:
    """Return all pairs of an element of a with an element of b, (n, 2)."""
    return np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.int32)


def _nearest(shapes: PackedShapes, pairs: _Pairs, groups: NDArray[np.intp]) -> list[tuple[int, Array]]:
    """Return (index of the nearest pair, its contact row) of at most ``MOST`` groups of pairs, the nearest group first.

    Pairs are measured in the order of the gaps of their bounding spheres. Pairs that can no longer be among the nearest
    are skipped.

    Args:
        shapes: All shapes.
        pairs: Rows of both shapes of each pair, (n, 2).
        groups: Index of the group of each pair, (n,).
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
    """Return lower bounds of the distances of pairs, from their bounding spheres."""
    table = shapes.shapes
    middle, radius = table[:, layout.ORIGIN : layout.HALF_SIZES], table[:, layout.EXTENT]
    a, b = pairs.T
    gap = np.linalg.norm(middle[a] - middle[b], axis=1) - radius[a] - radius[b]
    endless = table[b, layout.SHAPE_KIND] == layout.HALF_SPACE
    if endless.any():
        gap[endless] = _heights(table, a[endless], b[endless]) - radius[a[endless]]
    return gap


def _heights(table: Array, a: NDArray[np.int32], b: NDArray[np.int32]) -> Array:
    """Return the heights of the centres of shapes a above half-spaces b."""
    normals = table[b, layout.ORIENTATION : layout.ORIGIN].reshape(-1, 3, 3)[:, :, 2]
    origin = slice(layout.ORIGIN, layout.HALF_SIZES)
    return np.sum(normals * (table[a, origin] - table[b, origin]), axis=1)
