"""Tables of goals: target parts, residual rows, weights and terms, and the posture of rest goals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.goals import Goal
from synovia.kernels import layout
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.tables import Ints


@dataclass(frozen=True, slots=True, eq=False)
class GoalTables:
    """Goals in the form that kernels read (see ``kernels.layout``).

    Args:
        table: (g, 5) integers of each goal.
        offsets: (g, 12) frame of each goal on its row.
        roots: (g,) square root of each weight, relative to the largest weight of its level.
        levels: (l + 1,) first residual row of each level, and the number of rows.
        kinds: (h,) kinds of the terms of general goals.
        turning: Terms whose goals rotate a limb; their ``OTHER_ROW`` is its root.
        general_ints: (h, 10) integers of the terms; ``pack`` writes the index of the kind.
        general_data: (h, 24) floats of the terms.
        vertices: (v, 3) corners of support polygons.
    """

    table: Ints
    offsets: Array
    roots: Array
    levels: Ints
    kinds: tuple[str, ...]
    turning: tuple[int, ...]
    general_ints: Ints
    general_data: Array
    vertices: Array


def goal_tables(
    skeleton: Skeleton,
    goals: Sequence[Goal],
    goal_joints: Sequence[Sequence[int]],
    reduced_row: NDArray[np.intp],
    to_row: Sequence[Array],
    tied: int = 0,
) -> GoalTables:
    """Return the tables of goals. The residual rows of a level are contiguous, in the order of its goals.

    Args:
        skeleton: The skeleton.
        goals: The goals, resolved.
        goal_joints: Rows of each goal's joints.
        reduced_row: Reduced row with which each joint moves; -1 for the world.
        to_row: Transform from each joint's frame in z-form (see ``kernels.tree.forward``) to the frame of that row.
        tied: Number of residual rows of loops, which form a level above all goals.
    """

    def on_row(joint: int, frame: Array) -> Array:
        """Return a frame on a joint as twelve values, converted to the frame of the joint's reduced row."""
        back = np.eye(4)
        back[:3, :3] = skeleton.tables.unfold[joint].reshape(3, 3)
        whole = to_row[joint] @ back @ frame
        return np.concatenate([whole[:3, :3].ravel(), whole[:3, 3]])

    count = len(goals)
    table = np.zeros((count, layout.GOAL_WIDTH), np.int32)
    offsets = np.tile(np.append(np.eye(3).ravel(), np.zeros(3)), (count, 1))
    kinds: list[str] = []
    turning: list[int] = []
    ints: list[Ints] = []
    data: list[Array] = []
    points: list[Array] = []
    rows = [goal.rows for goal in goals]
    levels, first, roots = _level_rows(goals, rows, tied)
    for g, (goal, joints) in enumerate(zip(goals, goal_joints, strict=True)):
        row = int(reduced_row[joints[0]]) if joints else -1
        at = first[g] + rows[g]
        table[g, layout.PARTS] = goal.constrained_parts
        table[g, layout.GOAL_ROW], table[g, layout.LEVEL] = row, levels[g]
        table[g, layout.FIRST_RESIDUAL], table[g, layout.RESIDUALS] = first[g], rows[g]
        if joints:
            offsets[g] = on_row(joints[0], goal.frame)
        for term in reversed(goal.terms):
            at -= term.lengths + term.angles
            numbers = np.zeros(layout.GENERAL_DATA_WIDTH)
            numbers[layout.WEIGHT] = roots[g]
            others = [-1, -1]
            for k, (joint, frame) in enumerate(zip(joints[1:], term.frames, strict=True)):
                others[k] = int(reduced_row[joint])
                whole = on_row(joint, goal.place(k + 1) @ frame if goal.places else frame)
                if k == 0:
                    numbers[layout.OTHER_ORIENTATION : layout.OTHER_ORIENTATION + layout.FRAME_WIDTH] = whole
                else:
                    numbers[layout.TIP_POINT : layout.TIP_POINT + 3] = whole[layout.ORIGIN :]
            numbers[layout.NUMBERS : layout.NUMBERS + len(term.numbers)] = term.numbers
            integers = np.zeros(layout.GENERAL_WIDTH, np.int32)
            integers[layout.GOAL], integers[layout.FIRST] = g, at
            integers[layout.LENGTHS], integers[layout.ANGLES] = term.lengths, term.angles
            integers[layout.TARGET_PARTS] = term.takes
            integers[layout.OTHER_ROW], integers[layout.TIP_ROW] = others
            integers[layout.VERTEX], integers[layout.VERTICES] = sum(len(part) for part in points), len(term.points)
            if goal.turns_limb:
                turning.append(len(kinds))
            kinds.append(term.kind)
            ints.append(integers)
            data.append(numbers)
            points.append(term.points)
    bounds = sorted({(level, row) for level, row, own in zip(levels, first, rows, strict=True) if own})
    starts = [next(row for at, row in bounds if at == level) for level in sorted({level for level, _ in bounds})]
    starts = [0, *starts] if tied else starts
    total = tied + sum(rows)
    return GoalTables(
        table, offsets, roots, np.array([*starts, total], np.int32), tuple(kinds), tuple(turning),
        np.array(ints, np.int32).reshape(-1, layout.GENERAL_WIDTH),
        np.array(data).reshape(-1, layout.GENERAL_DATA_WIDTH),
        np.concatenate(points) if points else np.zeros((0, 3)),
    )  # fmt: skip


def _level_rows(goals: Sequence[Goal], rows: Sequence[int], tied: int) -> tuple[list[int], list[int], Array]:
    """Return the level, the first residual row and the square root of the relative weight of each goal.

    ``rows`` has the number of residual rows of each goal. ``tied`` rows of loops come first, as a separate level.
    """
    order = sorted({goal.rank for goal, own in zip(goals, rows, strict=True) if own})
    levels = [order.index(goal.rank) if own else 0 for goal, own in zip(goals, rows, strict=True)]
    first = [0] * len(goals)
    at = tied
    for g in sorted(range(len(goals)), key=levels.__getitem__):  # a stable sort keeps the order of goals within a level
        if rows[g]:
            first[g] = at
            at += rows[g]
    # Only ratios of weights matter. The largest weight is scaled to 1, so that damping and pivots keep their scale.
    weights = [goal.weight if own else 0.0 for goal, own in zip(goals, rows, strict=True)]
    heaviest = [0.0] * max(len(order), 1)
    for level, weight in zip(levels, weights, strict=True):
        heaviest[level] = max(heaviest[level], weight)
    relative = [weight / heaviest[level] if weight else 0.0 for level, weight in zip(levels, weights, strict=True)]
    return [level + (tied > 0) for level in levels], first, np.sqrt(relative)


@dataclass(frozen=True, slots=True, eq=False)
class Posture:
    """The reference posture of all rest goals.

    Args:
        shares: (n,) weight of each joint; 0 for joints without a rest goal.
        q: (nq,) reference values.
        path: (T, nq) reference values of each frame of a track; None for a constant reference.
    """

    shares: Array
    q: Array
    path: Array | None = None

    def rows(self, variables: Ints, owner: Ints) -> Array:
        """Return the table (k, 5) of variables: weight, then the reference value or quaternion."""
        out = np.zeros((len(variables), layout.REST_WIDTH))
        for row, (block, at, _), joint in zip(out, variables.tolist(), owner.tolist(), strict=True):
            size = 4 if block else 1
            row[layout.REST_WEIGHT] = self.shares[joint]
            row[layout.REST_Q : layout.REST_Q + size] = self.q[at : at + size]
        return out


def posture_of(skeleton: Skeleton, goals: Sequence[Goal]) -> Posture:
    """Return the reference posture of all rest goals. Joints that a root adds use their rest values.

    Raises:
        InputError: If two rest goals have a joint in common.
    """
    shares, q = np.zeros(len(skeleton)), skeleton.rest_q[None].copy()
    preferences = [goal.preference for goal in goals if goal.preference is not None]
    lengths = {len(values) for _, values, _ in preferences if values.ndim == 2}
    if len(lengths) > 1:
        raise InputError("frames of the motions of rest goals", value=sorted(lengths), expected="the same for all")
    q = np.repeat(q, max(lengths, default=1), axis=0)
    for goal in goals:
        if goal.preference is None:
            continue
        weights, values, root = goal.preference
        before, first = len(skeleton) - len(weights), skeleton.nq - values.shape[-1]
        shares[:before] = np.maximum(shares[:before], root)
        for row in np.flatnonzero(weights > 0.0).tolist():
            if shares[row + before] > 0.0:
                raise InputError(
                    f"two rest goals concern joint {skeleton.joint_names[row + before]!r}",
                    expected="different joints",
                    hint="use one goal, with joints={...} for their parts",
                )
            shares[row + before] = weights[row]
            at = skeleton.q_slice(row + before)
            q[:, at] = values[..., at.start - first : at.stop - first]
    return Posture(shares, q[0] if len(q) else skeleton.rest_q, q if lengths else None)


def masses_of(skeleton: Skeleton, reduced_row: NDArray[np.intp], to_row: Sequence[Array]) -> Array:
    """Return mass and first moment, in the row's frame, of the bodies attached to each reduced row, (n + 1, 4).

    Masses are fractions of the total. The last row has the masses that no joint moves, in the world frame.
    """
    out = np.zeros((int(reduced_row.max()) + 2, layout.MASS_WIDTH))
    for i, joint in enumerate(skeleton.joints):
        if joint.mass > 0.0:
            com = skeleton.tables.unfold[i].reshape(3, 3) @ joint.com
            out[reduced_row[i], layout.MASS] += joint.mass
            out[reduced_row[i], layout.MOMENT :] += joint.mass * (to_row[i][:3, :3] @ com + to_row[i][:3, 3])
    return out / out[:, layout.MASS].sum()
