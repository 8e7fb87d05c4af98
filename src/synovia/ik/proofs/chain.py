"""The chain that carries a goal, as proofs see it: hinges and slides within limits, from the world to the tip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from synovia.kernels.layout import (
    COLUMN,
    FIRST_Q,
    FRAME_WIDTH,
    GOAL_ROW,
    KIND,
    LOWER,
    OFFSET,
    PARENT,
    RATIO,
    TRANSLATION_COLUMN,
    UPPER,
    VARIABLE,
)
from synovia.model import Kind
from synovia.model.geometry import Array, Bools, align_z, frames_to_transforms, rigid
from synovia.problem import Reduced
from synovia.text import first_few

_QUARTER = rigid((0.0, 0.0, 0.0), np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]))  # z to y
_BALL = (-math.pi, math.pi), (0.0, math.pi), (-math.pi, math.pi)  # ranges of the three hinges of a ball: z, y, z
PARALLEL = 1e-6  # square of the sine of the angle between two axes that count as parallel
_EXACT = 2e-13  # rounding error of a sum of lengths, relative
_KEPT = 64  # number of chains for which what depends on the chain alone is kept
_SAME = 1e-12  # radians or length units: an interval below this width is one value


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Joints from the world to the tip of a goal. Each turns about, or slides along, its own z axis.

    Args:
        fixed: (n + 1, 3, 4) transforms: before each joint, and from the last joint to the tip.
        slides: (n,) whether each joint slides.
        low: (n,) lower limits, radians or length units.
        high: (n,) upper limits; a hinge has at most one turn.
        names: Names of the joints; a ball is three hinges with the ball's name.
        places: Index of each joint's value in the joint values of the body; -1 for balls and mimic joints.
        held: Names of the joints of the chain that stay at their values.
        keys: A key of each joint, unique in all chains of the body, parents first. Joints that model the freedom of a
            goal, such as bounds, have no name and no place.
    """

    fixed: Array
    slides: Bools
    low: Array
    high: Array
    names: tuple[str, ...]
    places: tuple[int, ...]
    held: tuple[str, ...] = ()
    keys: tuple[tuple[int, int], ...] = ()

    @property
    def kinds(self) -> Array:
        """How each joint moves the tip, (n,), see ``kernels.proofs.boxes``."""
        return self.slides.astype(np.float64)

    @property
    def scale(self) -> float:
        """Sum of the absolute coordinates of all offsets, length units: the scale of rounding errors."""
        return _scale(self)

    def freed(self) -> Chain:
        """Return the chain without limits of its hinges."""
        return _freed(self)

    def to(self, point: Array) -> Chain:
        """Return the chain to another point (3,), given in the frame of the last joint."""
        fixed = self.fixed.copy()
        fixed[-1, :, 3] = point
        return replace(self, fixed=fixed).trimmed()

    def trimmed(self) -> Chain:
        """Return the chain without its last hinges, as long as their axes pass through the tip."""
        return _trimmed(self)

    def wrist(self) -> Array | None:
        """Return the point of the last axis nearest to the one before, in the last joint's frame; None if undefined."""
        if len(self.slides) < 2 or self.slides[-1] or self.slides[-2]:
            return None
        back = self.fixed[-2, :, :3].T
        o, d = -back @ self.fixed[-2, :, 3], back[:, 2]
        across = float(d[0] * d[0] + d[1] * d[1])
        if across < PARALLEL:
            return None
        return np.array([0.0, 0.0, o[2] - d[2] * (o[0] * d[0] + o[1] * d[1]) / across])

    def gap(self, target: Array) -> float:
        """Return the distance of a target (3,) from a ball that contains the tip in all poses, length units.

        Each joint carries a ball of all points that the joints after it reach, see ``kernels.proofs.boxes``.
        """
        p, r = _ball(self)
        return math.dist(p, target.tolist()) - r

    def length_gap(self, target: Array) -> float:
        """Return how far a target (3,) is outside what the lengths of the links reach, length units.

        It is the bound of ``kernels.goals.reach``: each joint may turn in any direction, and a slide has a range of
        lengths. A negative gap proves nothing.
        """
        first, total, hole = _lengths(self)
        away = math.dist(first, target.tolist())
        return max(away - total, hole - total - away)

    def length_rounding(self, target: Array) -> float:
        """Return more than the rounding error of ``length_gap``, length units."""
        return _EXACT * (_longest(self) + math.hypot(*target.tolist()))


@lru_cache(_KEPT)
def _scale(chain: Chain) -> float:
    """Return the sum of the absolute coordinates of all offsets."""
    return float(np.abs(chain.fixed[:, :, 3]).sum())


@lru_cache(_KEPT)
def _longest(chain: Chain) -> float:
    """Return the scale of a chain plus the largest motions of its slides."""
    return _scale(chain) + float(np.maximum(abs(chain.low), abs(chain.high))[chain.slides].sum())


@lru_cache(_KEPT)
def _freed(chain: Chain) -> Chain:
    """Return the chain without limits of its hinges."""
    low, high = np.where(chain.slides, chain.low, -math.pi), np.where(chain.slides, chain.high, math.pi)
    return replace(chain, low=low, high=high)


@lru_cache(_KEPT)
def _trimmed(chain: Chain) -> Chain:
    """Return a chain without its last hinges, as long as their axes pass through the tip."""
    n = len(chain.slides)
    whole = chain.fixed[n]
    while n > 1 and not chain.slides[n - 1] and math.hypot(*whole[:2, 3]) <= _SAME * chain.scale:
        n -= 1
        turn = chain.fixed[n, :, :3]
        whole = np.column_stack([turn @ whole[:, :3], turn @ whole[:, 3] + chain.fixed[n, :, 3]])
    fixed = np.concatenate([chain.fixed[:n], whole[None]])
    return replace(
        chain, fixed=fixed, slides=chain.slides[:n], low=chain.low[:n], high=chain.high[:n], names=chain.names[:n],
        places=chain.places[:n], keys=chain.keys[:n],
    )  # fmt: skip


@lru_cache(_KEPT)
def _ball(chain: Chain) -> tuple[list[float], float]:
    """Return centre and radius of a ball that contains the tip in all poses."""
    middle, half = (chain.low + chain.high) / 2.0, (chain.high - chain.low) / 2.0
    p, r = chain.fixed[-1, :, 3], 0.0
    for frame, slides, m, w in zip(chain.fixed[-2::-1], chain.slides[::-1], middle[::-1], half[::-1], strict=True):
        if slides:
            p, r = p + np.array([0.0, 0.0, m]), r + w
        else:
            distance, w = math.hypot(p[0], p[1]), min(w, math.pi / 2.0)
            r += distance * math.sin(w)
            p = _motion(False, m)[:3, :3] @ p * (math.cos(w), math.cos(w), 1.0)
        p = frame[:, :3] @ p + frame[:, 3]
    return p.tolist(), float(r)


@lru_cache(_KEPT)
def _lengths(chain: Chain) -> tuple[list[float], float, float]:
    """Return the origin of the first joint, the largest distance from it by lengths, and what gives the hole there."""
    links, axes = chain.fixed[:, :, 3].copy(), chain.fixed[:, :, 2]
    links[0] = 0.0
    low, high = (np.append(np.where(chain.slides, limit, 0.0), 0.0) for limit in (chain.low, chain.high))
    nearest = np.clip(-np.sum(links * axes, axis=1), low, high)
    least, *ends = (np.linalg.norm(links + value[:, None] * axes, axis=1) for value in (nearest, low, high))
    most = np.maximum(*ends)
    return chain.fixed[0, :, 3].tolist(), float(most.sum()), float((least + most).max())


def inwards(chain: Chain, axis: int) -> Chain:
    """Return the chain from joint ``axis`` to the world: the joints before it, reversed."""
    fixed = [np.column_stack([one[:, :3].T, -one[:, :3].T @ one[:, 3]]) for one in chain.fixed[axis::-1]]
    before = slice(axis - 1, None, -1) if axis else slice(0, 0)
    return Chain(
        np.array(fixed), chain.slides[before], -chain.high[before], -chain.low[before], chain.names[before],
        chain.places[before],
    )  # fmt: skip


def between(first: Chain, second: Chain) -> Chain:
    """Return the chain from the tip of one chain of a body to the tip of another: the joints that only one has."""
    common = sum(a == b for a, b in zip(first.keys, second.keys, strict=False))  # keys of joints of two limbs differ
    ends = [
        replace(
            one, fixed=one.fixed[common:], slides=one.slides[common:], low=one.low[common:], high=one.high[common:],
            names=one.names[common:], places=one.places[common:],
        )
        for one in (first, second)
    ]  # fmt: skip
    back, out = inwards(ends[0], len(ends[0].slides)), ends[1]
    link = np.column_stack(
        [back.fixed[-1, :, :3] @ out.fixed[0, :, :3], back.fixed[-1] @ np.append(out.fixed[0, :, 3], 1.0)]
    )
    return Chain(
        np.concatenate([back.fixed[:-1], link[None], out.fixed[1:]]), np.append(back.slides, out.slides),
        np.append(back.low, out.low), np.append(back.high, out.high), back.names + out.names,
        (-1,) * (len(back.names) + len(out.names)), tuple(dict.fromkeys((*first.held, *second.held))),
    )  # fmt: skip


def held_text(held: Sequence[str]) -> str:
    """Return the text " while these joints stay in place"; "" without any."""
    if not held:
        return ""
    return f" while {first_few([repr(name) for name in held])} {'stays' if len(held) == 1 else 'stay'} in place"


def chain_of(
    reduced: Reduced,
    names: tuple[str, ...],
    q: Array,
    g: int,
    *,
    root: Array | None = None,
    along: bool = True,
) -> Chain | None:
    """Return the chain of goal g, without joints if none moves; None if proofs do not support its joints.

    Limits are relaxed where needed, so that the chain reaches at least what the body reaches: a ball turns freely, and
    mimic joints move independently within their ranges. Joints that may not move stay at their values in q.

    Args:
        reduced: The part of the body that may move.
        names: Names of the joints of the body.
        q: Joint values (nq,) of the pose.
        g: Index of the goal.
        root: Position (3,) of a free root that has a target; None without one.
        along: Whether the last axis of a ball lies along its link, which shortens proofs. Chains that share a ball need
            the same axes.
    """
    rows = _rows_above(reduced, g)
    if root is None and (reduced.rows[rows, COLUMN] >= 0).all():
        return _moving_chain(reduced, names, g, along)
    return _chain(reduced, names, g, _Frames(reduced, q), root, along=along)


def _rows_above(reduced: Reduced, g: int) -> list[int]:
    """Return the rows from the joint of a goal up to the root."""
    row, rows = int(reduced.goals.table[g, GOAL_ROW]), list[int]()
    while row >= 0:
        rows.append(row)
        row = int(reduced.rows[row, PARENT])
    return rows


@lru_cache(_KEPT)
def _moving_chain(reduced: Reduced, names: tuple[str, ...], g: int, along: bool) -> Chain | None:
    """Return a chain whose joints all move, so that it is the same in every pose."""
    return _chain(reduced, names, g, None, None, along=along)


def _chain(
    reduced: Reduced,
    names: tuple[str, ...],
    g: int,
    frames: _Frames | None,
    root: Array | None,
    *,
    along: bool,
) -> Chain | None:
    """Return the chain of a goal, from the tip to the root; see ``chain_of``."""
    joints: list[int] = reduced.joints.tolist()
    links = _Links(along=along)
    for row in reversed(_rows_above(reduced, g)):
        kind, moves = int(reduced.rows[row, KIND]), reduced.rows[row, COLUMN] >= 0
        name = names[joints[row]]
        if reduced.rows[row, TRANSLATION_COLUMN] >= 0 or (moves and kind == Kind.FREE):
            if root is None or reduced.rows[row, PARENT] >= 0 or not moves:
                return None
            links.add(rigid((float(root[0]), float(root[1]), float(root[2]))))
            links.ball(name, row)
            continue
        if not moves:
            if frames is not None:
                links.add(frames.step(row))
            links.held.append(name)
            continue
        links.add(frames_to_transforms(reduced.fixed[row]))
        if kind == Kind.BALL:
            links.ball(name, row)
            continue
        bounds, (ratio, offset) = reduced.limits[reduced.rows[row, VARIABLE]], reduced.couple[row, [RATIO, OFFSET]]
        ends = bounds[[LOWER, UPPER]] if ratio else np.zeros(2)
        first, last = sorted((ratio * ends + offset).tolist())
        if kind == Kind.SLIDE and not last - first < math.inf:
            return None
        if kind == Kind.HINGE and not last - first < 2 * math.pi:
            first, last = -math.pi, math.pi
        if last - first < _SAME:
            links.add(_motion(kind == Kind.SLIDE, 0.5 * (first + last)))
            continue
        place = int(reduced.rows[row, FIRST_Q]) if (ratio, offset) == (1.0, 0.0) else -1
        links.joint(name, (row, 0), (first, last), place, slides=kind == Kind.SLIDE)
    links.add(frames_to_transforms(reduced.goals.offsets[g]))
    return links.chain()


class _Links:
    """Collects the joints of a chain and the fixed transforms between them.

    Attributes:
        held: Names of joints that stay in place.
    """

    def __init__(self, *, along: bool) -> None:
        """Begin at the world."""
        self.held: list[str] = []
        self._fixed: list[Array] = []
        self._slides: list[bool] = []
        self._limits: list[tuple[float, float]] = []
        self._names: list[str] = []
        self._places: list[int] = []
        self._keys: list[tuple[int, int]] = []
        self._along, self._turns_freely = along, False
        self._open = np.eye(4)

    def add(self, part: Array) -> None:
        """Append a transform to the current one."""
        self._open = self._open @ part

    def joint(self, name: str, key: tuple[int, int], limits: tuple[float, float], place: int, *, slides: bool) -> None:
        """Append a joint."""
        self._end()
        self._names.append(name)
        self._keys.append(key)
        self._limits.append(limits)
        self._places.append(place)
        self._slides.append(slides)

    def ball(self, name: str, row: int) -> None:
        """Append the three hinges of a ball without limits."""
        for k, (limits, part) in enumerate(zip(_BALL, (np.eye(4), _QUARTER, _QUARTER.T), strict=True)):
            self.add(part)
            self.joint(name, (row, k), limits, -1, slides=False)
        self._turns_freely = self._along

    def chain(self) -> Chain:
        """Return the chain."""
        self._end()
        low, high = np.array(self._limits).reshape(-1, 2).T
        return Chain(
            np.array(self._fixed), np.array(self._slides, np.bool_), low.copy(), high.copy(), tuple(self._names),
            tuple(self._places), tuple(self.held), tuple(self._keys),
        )  # fmt: skip

    def _end(self) -> None:
        """End the current transform; after a ball, turn it so that the link lies along the last axis of the ball."""
        whole, length = self._open, float(np.linalg.norm(self._open[:3, 3]))
        if self._turns_freely and length > 0.0:
            along = whole[:3, 3] / length
            whole = rigid((0.0, 0.0, 0.0), align_z(along).T) @ whole
        self._fixed.append(whole[:3])
        self._open, self._turns_freely = np.eye(4), False


def _motion(slides: bool, value: float) -> Array:
    """Return the transform of a joint at a value."""
    if slides:
        return rigid((0.0, 0.0, value))
    c, s = math.cos(value), math.sin(value)
    return rigid((0.0, 0.0, 0.0), np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]))


class _Frames:
    """World transforms of the rows of a reduced body, for the joints that stay in place."""

    def __init__(self, reduced: Reduced, q: Array) -> None:
        """Compute the transforms at joint values q (nq,)."""
        from synovia.kernels.tree.forward import forward_many

        out = np.empty((1, len(reduced.rows), FRAME_WIDTH))
        ints = np.ascontiguousarray(reduced.rows[:, :VARIABLE], np.int32)
        turns = np.tile(np.eye(3).ravel(), (len(reduced.rows), 1))
        forward_many(ints, reduced.fixed, reduced.couple, turns, np.ascontiguousarray(q[None]), out)
        self._world = np.asarray(frames_to_transforms(out[0]), np.float64)
        self._rows = reduced.rows

    def step(self, row: int) -> Array:
        """Return the transform (4, 4) from the parent of a row to the row."""
        parent = int(self._rows[row, PARENT])
        world = self._world[row]
        return world if parent < 0 else np.asarray(np.linalg.solve(self._world[parent], world), np.float64)
