"""Tables of clearance goals: links, pairs of links, shapes, and trees of obstacles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from synovia.goals import ClearanceGoal, Goal
from synovia.kernels import layout
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.shapes.body import link_cover, packed_shapes
from synovia.model.shapes.distances import PackedShapes, join_shapes
from synovia.model.tables import Ints
from synovia.problem.goals import GoalTables

# number of cells along each axis; centres of obstacles are rounded to cells to sort them for a tree
_CELLS: Final = 1024


class Packed(NamedTuple):
    """A contiguous block of obstacle shapes in the tables.

    Args:
        goal: Index of the goal.
        first: Row of the first shape in the table of shapes.
        shapes: Rows of the shapes in the packed world of the goal, in the order of the block.
        top: First row of the block's tree in the table of nodes.
        leaves: Number of leaves of that tree; 0 without a tree.
        link: Row of the link that the shapes form; -1 if they form none.
    """

    goal: int
    first: int
    shapes: NDArray[np.intp]
    top: int = 0
    leaves: int = 0
    link: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class ClearanceTables:
    """Clearance goals in the form that kernels read (see ``kernels.layout``).

    Args:
        ints: (c, 13) integers of each goal.
        data: (c, 2) floats of each goal.
        links: (l, 3) links of the body, then obstacles named in pairs, which are fixed links.
        balls: (l, 4) bounding spheres of the links.
        pairs: (p, 2) pairs of links.
        shapes: All shapes.
        nodes: (k, 6) nodes of all trees of obstacles.
        obstacles: Blocks of obstacle shapes in these tables.
    """

    ints: Ints
    data: Array
    links: Ints
    balls: Array
    pairs: Ints
    shapes: PackedShapes
    nodes: Array
    obstacles: tuple[Packed, ...]

    @property
    def slots(self) -> NDArray[np.int32]:
        """Largest number of simultaneous contacts of each goal, (c,)."""
        return self.ints[:, layout.SLOTS]


def links_of(goals: Sequence[Goal], before: int) -> list[int]:
    """Return the joint rows of the links of clearance goals.

    Args:
        goals: The goals, resolved.
        before: Number of joints that ``skeleton`` has in front of the joints to which the goals refer.
    """
    found: set[int] = set()
    for goal in goals:
        if isinstance(goal, ClearanceGoal) and goal.apart is not None:
            found.update(goal.apart.links.ravel().tolist(), goal.apart.close.ravel().tolist())
            found.update(goal.apart.avoiding.tolist())
            found.update(goal.apart.single[:, 0].tolist())
    return sorted(row + before for row in found)


def clearance_tables(
    skeleton: Skeleton,
    goals: Sequence[Goal],
    tables: GoalTables,
    before: int,
    reduced_row: NDArray[np.intp],
    to_row: Sequence[Array],
) -> ClearanceTables:
    """Return the tables of clearance goals.

    Args:
        skeleton: The skeleton.
        goals: The goals, resolved.
        tables: Tables of all goals.
        before: Number of joints that ``skeleton`` has in front of the joints to which the goals refer.
        reduced_row: Reduced row with which each joint moves; -1 for the world.
        to_row: Transform from each joint's frame in z-form (see ``kernels.tree.forward``) to the frame of that row.
    """
    body = packed_shapes(skeleton)
    joints = body.links[:, layout.LINK_ROW].tolist()
    places = np.tile(np.eye(4), (len(skeleton), 1, 1))
    for joint in joints:
        places[joint, :3, :3] = skeleton.tables.unfold[joint].reshape(3, 3)
        places[joint] = to_row[joint] @ places[joint]
    links = body.links.copy()
    links[:, layout.LINK_ROW] = reduced_row[joints]
    balls = body.covers.copy()
    middles = balls[:, : layout.BALL_RADIUS]
    middles[:] = np.einsum("nij,nj->ni", places[joints, :3, :3], middles) + places[joints, :3, 3]
    made = _Maker(dict(zip(joints, range(len(joints)), strict=True)), [body.packed.in_frames(places[body.owners])])
    made.links, made.balls = [*links], [*balls]
    for g, goal in enumerate(goals):
        if isinstance(goal, ClearanceGoal):
            made.add(g, goal, int(tables.table[g, layout.FIRST_RESIDUAL]), float(tables.roots[g]), before)
    return ClearanceTables(
        np.array(made.ints, np.int32).reshape(-1, layout.CLEAR_WIDTH),
        np.array(made.data).reshape(-1, layout.CLEAR_DATA_WIDTH),
        np.array(made.links, np.int32).reshape(-1, layout.LINK_WIDTH),
        np.array(made.balls).reshape(-1, layout.BALL_WIDTH),
        np.array(made.pairs, np.int32).reshape(-1, layout.PAIR_WIDTH),
        join_shapes(made.shapes),
        np.concatenate([np.empty((0, layout.NODE_WIDTH)), *made.nodes]),
        tuple(made.obstacles),
    )


class _Maker:
    """Collects the tables of clearance goals, one goal after the other.

    Attributes:
        link_of: Row in the table of links, by the joint of the link.
        shapes: Shapes added so far.
        ints: Integers of the goals.
        data: Floats of the goals.
        links: Links.
        balls: Bounding spheres of the links.
        pairs: Pairs of links.
        nodes: Trees of obstacles.
        obstacles: Blocks of obstacle shapes.
    """

    def __init__(self, link_of: dict[int, int], shapes: list[PackedShapes]) -> None:
        """Start with the shapes of the body."""
        self.link_of = link_of
        self.shapes = shapes
        self.ints: list[Ints] = []
        self.data: list[tuple[float, float]] = []
        self.links: list[Ints] = []
        self.balls: list[Array] = []
        self.pairs: list[tuple[int, int]] = []
        self.nodes: list[Array] = []
        self.obstacles: list[Packed] = []

    def add(self, g: int, goal: ClearanceGoal, residual: int, root: float, before: int) -> None:
        """Add goal g; ``residual`` is its first residual row, and ``root`` the square root of its weight."""
        apart = goal.apart
        if apart is None:
            return
        row = np.zeros(layout.CLEAR_WIDTH, np.int32)
        row[layout.CLEAR_GOAL], row[layout.CLEAR_ROW] = g, residual
        row[layout.FIRST_SLOT] = sum(int(one[layout.SLOTS]) for one in self.ints)
        row[layout.SLOTS] = apart.slots
        row[layout.FIRST_LINK_PAIR] = len(self.pairs)
        self.pairs += [(self.link_of[a + before], self.link_of[b + before]) for a, b in apart.links.tolist()]
        if goal.world is not None:
            world, owners = goal.world.packed.in_world(), goal.world.packed.owners
            for link, obstacle in cast("list[tuple[int, int]]", apart.single.tolist()):
                mine = np.flatnonzero(owners == obstacle)
                self.pairs.append((self.link_of[link + before], self._link(g, world, mine)))
            if len(apart.avoiding):
                self._avoid(g, row, world)
        row[layout.LINK_PAIRS] = len(self.pairs) - row[layout.FIRST_LINK_PAIR]
        row[layout.AVOIDING] = len(self.link_of) if len(apart.avoiding) else 0
        self.ints.append(row)
        self.data.append((root, goal.distance))
        if apart.close_slots:
            other = np.zeros(layout.CLEAR_WIDTH, np.int32)
            other[layout.CLEAR_GOAL], other[layout.CLEAR_ROW] = g, residual + apart.slots
            other[layout.FIRST_SLOT], other[layout.SLOTS] = row[layout.FIRST_SLOT] + apart.slots, apart.close_slots
            other[layout.FIRST_LINK_PAIR], other[layout.LINK_PAIRS] = len(self.pairs), len(apart.close)
            self.pairs += [(self.link_of[a + before], self.link_of[b + before]) for a, b in apart.close.tolist()]
            self.ints.append(other)
            self.data.append((root, 0.0))

    def _put(self, shapes: PackedShapes) -> int:
        """Append shapes to the table; return the row of the first of them."""
        first = sum(len(part.shapes) for part in self.shapes)
        self.shapes.append(shapes)
        return first

    def _link(self, g: int, world: PackedShapes, mine: NDArray[np.intp]) -> int:
        """Add one obstacle of goal g (rows ``mine`` of its world) as a fixed link; return the row of the link."""
        shapes = world._replace(shapes=world.shapes[mine])
        first = self._put(shapes)
        self.obstacles.append(Packed(g, first, mine, link=len(self.links)))
        self.links.append(np.array([-1, first, len(shapes.shapes)], np.int32))
        self.balls.append(np.array(link_cover(shapes.shapes)))
        return len(self.links) - 1

    def _avoid(self, g: int, row: Ints, world: PackedShapes) -> None:
        """Add all obstacles of the world of goal g, and the tree of its bounded obstacles."""
        boundless = world.shapes[:, layout.SHAPE_KIND] == layout.HALF_SPACE
        planes, solids = np.flatnonzero(boundless), np.flatnonzero(~boundless)
        row[layout.BOUNDLESS], row[layout.OBSTACLES] = len(planes), len(solids)
        row[layout.FIRST_BOUNDLESS] = self._put(world._replace(shapes=world.shapes[planes], points=world.points[:0]))
        lower, upper = _boxes(world.shapes[solids])
        order = _nearby_order(0.5 * (lower + upper))
        shapes = world._replace(shapes=world.shapes[solids[order]])
        row[layout.FIRST_OBSTACLE] = self._put(shapes)
        self.obstacles.append(Packed(g, int(row[layout.FIRST_BOUNDLESS]), planes))
        if len(solids):
            row[layout.FIRST_NODE] = top = sum(map(len, self.nodes))
            row[layout.LEAVES] = leaves = 1 << (len(solids) - 1).bit_length()
            self.nodes.append(_tree(lower[order], upper[order], leaves))
            self.obstacles.append(Packed(g, int(row[layout.FIRST_OBSTACLE]), solids[order], top, leaves))


def _boxes(shapes: Array) -> tuple[Array, Array]:
    """Return the least and largest coordinates, (n, 3) each, of the bounding boxes of shapes."""
    turns = np.abs(shapes[:, layout.ORIENTATION : layout.ORIGIN].reshape(-1, 3, 3))
    sizes = shapes[:, layout.HALF_SIZES : layout.RADIUS]
    half = np.einsum("nij,nj->ni", turns, sizes) + shapes[:, layout.RADIUS, None]
    middle = shapes[:, layout.ORIGIN : layout.HALF_SIZES]
    return middle - half, middle + half


def _nearby_order(points: Array) -> NDArray[np.intp]:
    """Return the order of points along a Morton curve, on which near points follow each other."""
    if not len(points):
        return np.zeros(0, np.intp)
    low, high = points.min(axis=0), points.max(axis=0)
    cells = ((points - low) / np.maximum(high - low, 1e-300) * (_CELLS - 1)).astype(np.int64)
    code = np.zeros(len(points), np.int64)
    for bit in range(_CELLS.bit_length() - 1):
        for axis in range(3):
            code |= ((cells[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")


def _tree(lower: Array, upper: Array, leaves: int) -> Array:
    """Return the nodes (2 leaves, 6) of a heap of boxes. Node 0 is unused, and empty leaves have infinite distance."""
    nodes = np.empty((2 * leaves, layout.NODE_WIDTH))
    low, high = nodes[:, layout.NODE_LOWER : layout.NODE_UPPER], nodes[:, layout.NODE_UPPER :]
    low[:], high[:] = np.inf, -np.inf
    low[leaves : leaves + len(lower)], high[leaves : leaves + len(upper)] = lower, upper
    level = leaves // 2
    while level:
        children = slice(2 * level, 4 * level)
        low[level : 2 * level] = low[children].reshape(-1, 2, 3).min(axis=1)
        high[level : 2 * level] = high[children].reshape(-1, 2, 3).max(axis=1)
        level //= 2
    return nodes
