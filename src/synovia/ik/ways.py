"""Paths between poses that keep the distances of clearance goals, see ``kernels.goals.ways``."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

from synovia.goals import ClearanceGoal
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.ik.obstacles import Places
from synovia.kernels import layout
from synovia.kernels.layout import BLOCK, BLOCK_Q, SCALAR
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, Bools
from synovia.model.shapes.body import BodyShapes, packed_shapes
from synovia.model.tables import Ints, writable
from synovia.model.tree import ancestors
from synovia.problem import table_of
from synovia.solver import FullBody

_SEEN: Final = 0.1  # length scales beyond the required distance; larger gaps are clamped to this value
_LONG: Final = 4.0  # length scales; if levers are longer because of long slides, they are computed for each path
_LENGTHS: Final = {Kind.SLIDE: 1, Kind.FREE: 3}  # number of length-valued joint values of a joint
# length scales; shorter paths are not subdivided, so contacts with thin obstacles may be missed
_SHORTEST: Final = 0.005


class ClearWays:
    """Measures the remaining clearance of a problem's constraints along paths of its body.

    Args:
        ik: The problem, with at least one clearance goal that is a constraint.
        slack: Length by which a path may violate the distance, length units.

    Attributes:
        bounded: Whether the same levers apply to all poses, because no slide or free joint has a long range.
        packed: Arguments of the kernels: integers and floats of the problem that measures distances, scratch memory,
            the variables of the skeleton and their limits, and the tables of paths.
        tables: The tables of paths by name, see ``kernels.layout.WAYS``.
    """

    def __init__(self, ik: CompiledProblem, slack: float) -> None:
        """Pack the clearance goals, without other goals. Compute the lever of each axis for each pair."""
        kept = {g: goal for g, goal in enumerate(ik.goals) if isinstance(goal, ClearanceGoal) and goal.rank < 0}
        goals = [ClearanceGoal(goal.distance, world=goal.world, pairs=goal.pairs) for goal in kept.values()]
        alone = ik.with_parts(goals, FullBody(attempts=1), tolerance=ik.tolerance)
        self._obstacles, self._goals = alone.obstacles, [*kept]
        ints = alone.ints.copy()
        clear = table_of(ints, alone.floats, "clear.ints")
        clear[:, layout.SLOTS] = 1  # one slot: the distance of the nearest pair bounds the other measurements
        skeleton = self._skeleton = ik.skeleton
        self._sides = _sides(clear, table_of(ints, alone.floats, "clear.pairs"), packed_shapes(skeleton))
        self._limit = np.maximum(*np.abs(skeleton.limits))  # largest absolute value that the limits of each joint allow
        levers = _levers(skeleton, self._sides, self._limit)
        self.bounded = bool((levers <= _LONG * ik.reach).all())
        sizes = dict(zip(("pairs", "axes"), levers.shape, strict=True)) | {"nq": skeleton.nq}
        memory = np.zeros(layout.size_of_all(layout.WAYS, sizes))
        self.tables = _cut(memory, sizes)
        self.tables["levers"][:] = levers
        numbers = self.tables["numbers"]
        numbers[layout.SEEN], numbers[layout.SHORTEST] = _SEEN * ik.reach, _SHORTEST * ik.reach
        numbers[layout.SLACK] = slack
        variables = writable(skeleton.tables.variables)
        limits = writable(skeleton.tables.limits)
        self.packed = ints, alone.floats, new_scratch(alone.scratch_size), *variables, *limits, memory
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.goals.ways import clear_ways

        none = np.zeros((0, skeleton.nq)), np.zeros((0, len(levers) + 1))
        self._measure = partial(ready(clear_ways, *self.packed, *none), *self.packed)

    def left(self, q: Array) -> Array:
        """Return the gap of each pair minus its required distance at joint values (nq,), length units.

        Values above a tenth of the length scale are clamped; a negative value means that the pair is too near.
        """
        return self._along(q[None])[0, :-1]

    def along(self, q: Array) -> tuple[Array, Bools]:
        """Return ``left`` for each frame of q, (T, pairs), and ``blocked`` for these frames, (T,); q is (T, nq)."""
        found = self._along(q)
        return found[:, :-1], found[:, -1] > 0.0

    def blocked(self, q: Array, places: Places | None = None) -> Bools:
        """Return whether the path from the frame before to each frame of q is blocked, (T,); all joints move together.

        A pair that is too near at one end of a path may be as near anywhere on this path.

        Args:
            q: Joint values, (T, nq).
            places: Obstacle places in each frame, interpolated with straight motion and shortest rotations; None if no
                obstacle moves.
        """
        if places is None or self._obstacles is None:
            return self._along(q)[:, -1] > 0.0
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.goals.moving_ways import moving_way

        mine, tables = places.of(self._obstacles, self._goals), self.tables
        most = np.abs(q).max(axis=0, initial=0.0)
        self.reach_to(most)
        farthest = _farthest(self._skeleton, self._sides, np.minimum(self._limit, most))
        far = np.linalg.norm(mine.moved[..., layout.ORIGIN : layout.FRAME_WIDTH], axis=-1).max(initial=0.0)
        moved = mine.moved.copy()
        moved[..., layout.MOVED_RADIUS] = self._obstacles.radii(farthest + float(far))[mine.rows]
        measure = ready(moving_way, *self.packed, np.zeros((2, 0, layout.MOVED_WIDTH)), self._obstacles.pieces)
        out = np.zeros(len(q), bool)
        tables["left"][:] = 0.0
        for t in range(len(q)):
            before = max(t - 1, 0)
            tables["begin"][:], tables["end"][:] = q[before], q[t]
            way = np.ascontiguousarray(moved[[before, t]])
            out[t] = bool(measure(*self.packed, way, self._obstacles.pieces)) and t > 0
        return out

    def put(self, places: Places) -> None:
        """Move obstacles of the problem to the first of these places."""
        if self._obstacles is not None:
            places.of(self._obstacles, self._goals).put(self.packed[1])

    def _along(self, q: Array) -> Array:
        """Return ``left`` of all frames, with a last column that is positive for a blocked path, (T, pairs + 1)."""
        out = np.empty((len(q), len(self._sides) + 1))
        self.reach_to(np.abs(q).max(axis=0, initial=0.0))
        self._measure(np.ascontiguousarray(q), out)
        return out

    def reach_to(self, most: Array) -> None:
        """Compute the levers for paths on which absolute joint values stay within ``most``, (nq,)."""
        if not self.bounded:
            self.tables["levers"][:] = _levers(self._skeleton, self._sides, np.minimum(self._limit, most))


def _cut(memory: Array, sizes: dict[str, int]) -> dict[str, Array]:
    """Return the tables of paths, by name, as views of ``memory``."""
    out, start = dict[str, Array](), 0
    for table in layout.WAYS:
        shape = [sizes[size] if isinstance(size, str) else size for size in table.shape]
        out[table.name] = memory[start : start + math.prod(shape)].reshape(shape)
        start += math.prod(shape)
    return out


def _sides(clear: Ints, links: Ints, body: BodyShapes) -> list[tuple[int, ...]]:
    """Return the joint rows of the links of each pair, in the order of the kernels; obstacles are left out.

    Args:
        clear: The table of clearance goals.
        links: The table of pairs of links.
        body: The shapes.
    """
    joints, out = body.links[:, layout.LINK_ROW].tolist(), list[tuple[int, ...]]()
    for row in clear:
        first = int(row[layout.FIRST_LINK_PAIR])
        for pair in links[first : first + row[layout.LINK_PAIRS]].tolist():
            out.append(tuple(joints[link] for link in pair if link < len(joints)))
        out += [(joints[link],) for link in range(row[layout.AVOIDING])]
    return out


def _levers(skeleton: Skeleton, sides: list[tuple[int, ...]], farthest: Array) -> Array:
    """Return the levers: the largest approach of each pair per unit of each axis, (pairs, axes).

    Args:
        skeleton: The body.
        sides: Joints of the links of each pair, see ``_sides``.
        farthest: Largest absolute value of each joint value, (nq,); infinite without a limit.
    """
    t, body = skeleton.tables, packed_shapes(skeleton)
    own = {row: _levers_of(skeleton, body, row, farthest) for row in {row for pair in sides for row in pair}}
    out = np.zeros((len(sides), skeleton.nq))
    for values, pair in zip(out, sides, strict=True):
        found = [own[row] for row in pair]
        for side, other in zip(found, found[::-1], strict=True):
            for row, (part, levers) in side.items():
                # a joint above both links moves them together and does not change their distance
                if len(found) == 1 or row not in other:
                    values[part] = levers
    for (follower, leader), ratio in zip(t.followers.tolist(), t.coupling[:, 0].tolist(), strict=True):
        out[:, leader] += abs(ratio) * out[:, follower]
    at = t.variables[:, BLOCK_Q]
    return np.repeat(out[:, at], np.where(t.variables[:, BLOCK] == SCALAR, 1, 3), axis=1)


def _levers_of(skeleton: Skeleton, body: BodyShapes, link: int, farthest: Array) -> dict[int, tuple[slice, Array]]:
    """Return the largest displacement of a link's points per unit of each joint value above the link, by joint row."""
    cover = body.covers[body.links[:, layout.LINK_ROW] == link][0]
    # largest distance of the link's points from the origin of the joint, length units
    far = float(np.linalg.norm(cover[:3]) + cover[3])
    found: dict[int, tuple[slice, Array]] = {}
    for row in ancestors(skeleton.parents, link):
        joint, part = skeleton.joints[row], skeleton.q_slice(row)
        lengths = _LENGTHS.get(joint.kind, 0)
        if part.stop > part.start:
            levers = np.full(part.stop - part.start, far)
            levers[:lengths] = 1.0
            found[row] = part, levers
        far += _longest(skeleton, row, farthest)
    return found


def _longest(skeleton: Skeleton, row: int, farthest: Array) -> float:
    """Return the largest distance between the origins of a joint and its parent."""
    start = skeleton.q_slice(row).start
    moved = farthest[start : start + _LENGTHS.get(skeleton.joints[row].kind, 0)]
    return float(np.linalg.norm(skeleton.joints[row].rest[:3, 3]) + np.linalg.norm(moved))


def _farthest(skeleton: Skeleton, sides: list[tuple[int, ...]], farthest: Array) -> float:
    """Return the largest distance of any point of the links in ``sides`` from the world origin; see ``_levers``."""
    body, most = packed_shapes(skeleton), 0.0
    for link in {row for pair in sides for row in pair}:
        cover = body.covers[body.links[:, layout.LINK_ROW] == link][0]
        far = float(np.linalg.norm(cover[:3]) + cover[3])
        most = max(most, far + sum(_longest(skeleton, row, farthest) for row in ancestors(skeleton.parents, link)))
    return most
