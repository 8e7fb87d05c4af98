"""From skeleton, goals and settings to the two flat arrays that a kernel reads.

Only the joints between the root and the goals go in; fixed joints are merged into their neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synovia.geometry import Array
from synovia.goals.base import POSITION, Goal
from synovia.limits.base import MARK
from synovia.skeleton import Kind, Skeleton

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """The part of a skeleton that its goals need, with q whole.

    Args:
        rows: (n, 6) kind, parent, first element in q, two Jacobian columns and variable (see ``kernels.problem``).
        fixed: (n, 12) fixed transforms, merged fixed joints included.
        couple: (n, 2) ratio and offset of each hinge or slide to the variable that drives it.
        variables: (k, 3) what may move.
        limits: (k, 11) its limits.
        likes: (k, 2) its preferred value (0 for a rotation, which prefers its rest) and its stiffness.
        owner: (k,) joint of each variable.
        goals: (g, 4) what, row, first residual row, 0.
        offsets: (g, 12) frame of each goal on its row.
        reach: Longest sum of segments from the root to a goal, length units.
        joints: (n,) joint of each row.
    """

    rows: Ints
    fixed: Array
    couple: Array
    variables: Ints
    limits: Array
    likes: Array
    owner: Ints
    goals: Ints
    offsets: Array
    reach: float
    joints: Ints

    @property
    def residuals(self) -> int:
        """Number of residual rows."""
        return int(sum(3 * (int(what & 1) + int(what >> 1 & 1)) for what in self.goals[:, 0]))

    @property
    def columns(self) -> int:
        """Number of Jacobian columns."""
        return int(sum(3 if block else 1 for block in self.variables[:, 0]))

    @property
    def coupled(self) -> bool:
        """Whether a variable moves more than one row, or a row by another amount than its own."""
        moving = self.rows[self.rows[:, 5] >= 0, 5]
        return len(set(moving.tolist())) < len(moving) or bool((self.couple != (1.0, 0.0)).any())

    @property
    def ball_chain(self) -> bool:
        """Whether this is one chain of unlimited balls to one position goal."""
        n = len(self.rows)
        return (
            len(self.goals) == 1
            and n > 0
            and self.goals[0].tolist()[:2] == [POSITION, n - 1]
            and bool((self.rows[:, 0] == Kind.BALL).all())
            and bool((self.rows[:, 1] == np.arange(-1, n - 1)).all())
            and not self.limits[:, MARK].any()
        )

    @property
    def serial(self) -> bool:
        """Whether this is an arm: one goal on a chain of hinges and slides, each with a variable of its own."""
        n = len(self.rows)
        return (
            len(self.goals) == 1
            and n > 0
            and len(self.variables) == n
            and bool(np.isin(self.rows[:, 0], (Kind.HINGE, Kind.SLIDE)).all())
            and bool((self.rows[:, 1] == np.arange(-1, n - 1)).all())
            and bool((self.rows[:, 2] == self.variables[:, 1]).all())
            and bool((self.couple == (1.0, 0.0)).all())
            and int(self.goals[0, 1]) == n - 1
        )


def reduce(skeleton: Skeleton, goals: Sequence[Goal], ends: Sequence[int], *, free_root: bool = False) -> Reduced:
    """Return the part of a skeleton that moves its goals.

    A free joint keeps its translation, and at the root its rotation too, unless ``free_root``.

    Args:
        skeleton: The skeleton.
        goals: The goals.
        ends: Row of each goal's joint.
        free_root: Whether a free root moves.
    """
    on_path = np.zeros(len(skeleton), bool)
    for row in ends:
        while row >= 0 and not on_path[row]:
            on_path[row] = True
            row = skeleton.parents[row]
    t = skeleton.tables
    place = np.full(len(skeleton), -1)  # reduced row that carries a joint
    since: list[Array] = [np.eye(4)] * len(skeleton)  # from a joint's z-form frame to that row's frame
    rows: list[list[int]] = []
    fixed: list[Array] = []
    joints: list[int] = []
    for i in np.flatnonzero(on_path):
        parent = skeleton.parents[i]
        carrier, frame = (place[parent], since[parent]) if parent >= 0 else (-1, np.eye(4))
        frame = frame @ _as_4x4(t.fixed[i])
        if t.ints[i, 0] == Kind.FIXED:
            place[i], since[i] = carrier, frame
            continue
        place[i], since[i] = len(rows), np.eye(4)
        rows.append([int(t.ints[i, 0]), int(carrier), int(t.ints[i, 2]), -1, -1, -1])
        fixed.append(np.concatenate([frame[:3, :3].ravel(), frame[:3, 3]]))
        joints.append(int(i))

    couple = np.tile((1.0, 0.0), (len(rows), 1))
    variables, limits, likes, owner = _variables(skeleton, rows, couple, joints, free_root)
    packed, offsets = _goals(skeleton, goals, ends, place, since)
    table = np.array(rows, np.int32).reshape(-1, 6)
    fixed_table = np.array(fixed).reshape(-1, 12)
    return Reduced(
        table, fixed_table, couple, variables, limits, likes, owner, packed, offsets,
        _reach(skeleton, table, fixed_table, packed, offsets), np.array(joints, np.int32),
    )  # fmt: skip


def _as_4x4(frame: Array) -> Array:
    """Return a row of twelve as a 4x4 transform."""
    out = np.eye(4)
    out[:3, :3] = frame[:9].reshape(3, 3)
    out[:3, 3] = frame[9:]
    return out


def _variables(
    skeleton: Skeleton, rows: list[list[int]], couple: Array, joints: list[int], free_root: bool
) -> tuple[Ints, Array, Array, Ints]:
    """Choose the variables, give them columns, and write columns and couplings into the rows."""
    t = skeleton.tables
    leader_of = {int(f): (int(a), *t.coupling[k]) for k, (f, a) in enumerate(t.followers)}
    by_element = {int(at): k for k, at in enumerate(t.variables[:, 1])}
    column: dict[int, int] = {}
    chosen: list[tuple[int, int, int]] = []
    order: list[int] = []

    def take(element: int) -> int:
        """Return the column of the variable at an element of q, adding it when it is new."""
        if element not in column:
            k = by_element[element]
            column[element] = sum(3 if block else 1 for block, _, _ in chosen)
            chosen.append((int(t.variables[k, 0]), element, column[element]))
            order.append(k)
        return column[element]

    for n, row in enumerate(rows):
        kind, at = row[0], row[2]
        is_root = row[1] < 0
        if kind in (Kind.HINGE, Kind.SLIDE):
            leader, ratio, offset = leader_of.get(at, (at, 1.0, 0.0))
            row[2] = leader
            couple[n] = ratio, offset
            row[3] = take(leader)
        elif kind == Kind.BALL:
            row[3] = take(at)
        elif free_root and is_root:
            row[4] = take(at)
            take(at + 1)
            take(at + 2)
            row[3] = take(at + 3)
        elif not is_root:
            row[3] = take(at + 3)
    place = {first: k for k, (_, _, first) in enumerate(chosen)}
    for row in rows:
        row[5] = place.get(row[3], -1)
    likes = np.zeros((len(order), 2))
    rest = skeleton.rest_pose().q
    for n, k in enumerate(order):
        joint = skeleton.joints[int(t.owner[k])]
        likes[n, 1] = joint.stiffness
        if t.variables[k, 0] == 0:
            at_rest = float(rest[t.variables[k, 1]])
            likes[n, 0] = at_rest if joint.preferred is None else joint.preferred
    return np.array(chosen, np.int32).reshape(-1, 3), t.limits[order], likes, t.owner[order]


def _goals(
    skeleton: Skeleton, goals: Sequence[Goal], ends: Sequence[int], place: NDArray[np.intp], since: list[Array]
) -> tuple[Ints, Array]:
    """Return each goal's integers and its frame on the reduced row that carries it."""
    packed = np.zeros((len(goals), 4), np.int32)
    offsets = np.zeros((len(goals), 12))
    first = 0
    for g, (goal, joint) in enumerate(zip(goals, ends, strict=True)):
        back = np.eye(4)
        back[:3, :3] = skeleton.tables.unfold[joint].reshape(3, 3)
        frame = since[joint] @ back @ goal.offset
        packed[g] = goal.what, place[joint], first, 0
        offsets[g] = np.concatenate([frame[:3, :3].ravel(), frame[:3, 3]])
        first += goal.rows
    return packed, offsets


def _reach(skeleton: Skeleton, rows: Ints, fixed: Array, goals: Ints, offsets: Array) -> float:
    """Return the longest way from a moving joint to a goal; the skeleton's size where nothing moves."""
    t = skeleton.tables
    span = {int(at): t.limits[k, :2] for k, at in enumerate(t.variables[:, 1]) if t.variables[k, 0] == 0}
    longest = 0.0
    for (_, row, _, _), offset in zip(goals, offsets, strict=True):
        total = float(np.linalg.norm(offset[9:]))
        while row >= 0:
            ends = span.get(int(rows[row, 2]), np.zeros(2)) if rows[row, 0] == Kind.SLIDE else np.zeros(2)
            total += float(np.abs(ends[np.isfinite(ends)]).max(initial=0.0))
            above = rows[row, 1]
            if above >= 0 and (rows[above, 3:5] >= 0).any():
                total += float(np.linalg.norm(fixed[row, 9:]))
            row = above
        longest = max(longest, total)
    if longest > 0.0:
        return longest
    return skeleton.size if skeleton.size > 0.0 else 1.0


def pack(
    skeleton: Skeleton,
    reduced: Reduced,
    weights: Sequence[float],
    *,
    tolerance: tuple[float, float],
    max_steps: int,
    attempts: int,
    seed: int,
    patience: int,
    own: Sequence[float],
) -> tuple[Ints, Array]:
    """Return the problem as the two arrays of ``kernels.problem``.

    Args:
        skeleton: The whole skeleton.
        reduced: What its goals need.
        weights: Weight of each goal.
        tolerance: Position (length units) and angle (radians).
        max_steps: Steps of one attempt.
        attempts: Attempts, the first one included.
        seed: Seed of the restarts.
        patience: Steps in which the error must have fallen.
        own: The solver's own settings, at most sixteen.
    """
    from synovia.kernels import problem as k

    t = skeleton.tables
    head = np.zeros(k.INT_HEAD, np.int32)
    head[:] = (
        len(reduced.rows), len(reduced.variables), len(reduced.goals), reduced.residuals, reduced.columns,
        skeleton.nq, len(t.followers), max_steps, attempts, seed, patience, int(reduced.coupled),
    )  # fmt: skip
    floats = np.zeros(k.FLOAT_HEAD)
    floats[:3] = *tolerance, reduced.reach
    floats[k.OWN : k.OWN + len(own)] = own
    # Only ratios of weights mean anything; the largest is 1, so that damping and pivots keep their meaning.
    roots = np.sqrt(np.asarray(weights, np.float64) / max(weights))
    goal_data = np.column_stack(
        [roots * (reduced.goals[:, 0] & POSITION > 0), roots * (reduced.goals[:, 0] & 2 > 0), reduced.offsets]
    )
    ints = [head, reduced.rows, reduced.variables, reduced.goals, t.followers]
    reals = [floats, reduced.fixed, reduced.couple, reduced.limits, goal_data, t.coupling, reduced.likes]
    return (
        np.ascontiguousarray(np.concatenate([part.ravel() for part in ints]), np.int32),
        np.ascontiguousarray(np.concatenate([part.ravel() for part in reals]), np.float64),
    )
