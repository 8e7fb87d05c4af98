"""The tables of goals: what each asks for, in which rows, with which weight, and how joints should rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.goals import Goal, RestGoal
from synovia.kernels.layout import (
    ANGLES,
    FIRST,
    FIRST_RESIDUAL,
    FRAME_WIDTH,
    GENERAL_DATA_WIDTH,
    GENERAL_WIDTH,
    GOAL,
    GOAL_ROW,
    GOAL_WIDTH,
    LENGTHS,
    LEVEL,
    MASS,
    MASS_WIDTH,
    MOMENT,
    NUMBERS,
    ORIGIN,
    PARTS,
    RESIDUALS,
    REST_Q,
    REST_WEIGHT,
    REST_WIDTH,
    SECOND,
    SECOND_ORIENTATION,
    TARGET_PARTS,
    THIRD,
    THIRD_POINT,
    VERTEX,
    VERTICES,
    WEIGHT,
)
from synovia.model import Skeleton
from synovia.model.geometry import Array

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class GoalTables:
    """Goals as the kernels read them (see ``kernels.layout``).

    Args:
        table: (g, 5) what each goal asks for.
        offsets: (g, 12) frame of each goal on its row.
        roots: (g,) square root of each weight, relative to the largest of its level.
        levels: (l + 1,) first residual row of each level, and the number of rows.
        kinds: (h,) names of the terms beyond poses in the world.
        general_ints: (h, 10) their integers; the number of the kind is for the packing to write.
        general_data: (h, 24) numbers of that.
        vertices: (v, 3) corners of support polygons.
    """

    table: Ints
    offsets: Array
    roots: Array
    levels: Ints
    kinds: tuple[str, ...]
    general_ints: Ints
    general_data: Array
    vertices: Array


def goal_tables(
    skeleton: Skeleton,
    goals: Sequence[Goal],
    goal_joints: Sequence[Sequence[int]],
    place: NDArray[np.intp],
    since: Sequence[Array],
) -> GoalTables:
    """Return the tables of goals; the residual rows of a level stand together, in the order of its goals.

    Args:
        skeleton: The skeleton.
        goals: The goals, resolved.
        goal_joints: Rows of each goal's joints.
        place: Reduced row that carries each joint.
        since: From each joint's z-form frame to that row's frame.
    """

    def on_row(joint: int, frame: Array) -> Array:
        """Return a frame on a joint as twelve numbers in the frame of the row that carries it."""
        back = np.eye(4)
        back[:3, :3] = skeleton.tables.unfold[joint].reshape(3, 3)
        whole = since[joint] @ back @ frame
        return np.concatenate([whole[:3, :3].ravel(), whole[:3, 3]])

    count = len(goals)
    table = np.zeros((count, GOAL_WIDTH), np.int32)
    offsets = np.tile(np.append(np.eye(3).ravel(), np.zeros(3)), (count, 1))
    kinds: list[str] = []
    ints: list[Ints] = []
    data: list[Array] = []
    points: list[Array] = []
    levels, first, roots = _level_rows(goals)
    for g, (goal, joints) in enumerate(zip(goals, goal_joints, strict=True)):
        row = int(place[joints[0]]) if joints else -1
        at = first[g] + goal.rows
        table[g, PARTS], table[g, GOAL_ROW], table[g, LEVEL] = goal.place, row, levels[g]
        table[g, FIRST_RESIDUAL], table[g, RESIDUALS] = first[g], goal.rows
        if joints:
            offsets[g] = on_row(joints[0], goal.offset)
        for term in reversed(goal.terms):
            at -= term.lengths + term.angles
            numbers = np.zeros(GENERAL_DATA_WIDTH)
            numbers[WEIGHT] = roots[g]
            others = [-1, -1]
            for k, (joint, frame) in enumerate(zip(joints[1:], term.frames, strict=True)):
                others[k] = int(place[joint])
                whole = on_row(joint, frame)
                if k == 0:
                    numbers[SECOND_ORIENTATION : SECOND_ORIENTATION + FRAME_WIDTH] = whole
                else:
                    numbers[THIRD_POINT : THIRD_POINT + 3] = whole[ORIGIN:]
            numbers[NUMBERS : NUMBERS + len(term.numbers)] = term.numbers
            integers = np.zeros(GENERAL_WIDTH, np.int32)
            integers[GOAL], integers[FIRST] = g, at
            integers[LENGTHS], integers[ANGLES], integers[TARGET_PARTS] = term.lengths, term.angles, term.takes
            integers[SECOND], integers[THIRD] = others
            integers[VERTEX], integers[VERTICES] = sum(len(part) for part in points), len(term.points)
            kinds.append(term.kind)
            ints.append(integers)
            data.append(numbers)
            points.append(term.points)
    bounds = sorted({(level, row) for level, row, goal in zip(levels, first, goals, strict=True) if goal.rows})
    starts = [next(row for at, row in bounds if at == level) for level in sorted({level for level, _ in bounds})]
    total = sum(goal.rows for goal in goals)
    return GoalTables(
        table, offsets, roots, np.array([*starts, total], np.int32), tuple(kinds),
        np.array(ints, np.int32).reshape(-1, GENERAL_WIDTH), np.array(data).reshape(-1, GENERAL_DATA_WIDTH),
        np.concatenate(points) if points else np.zeros((0, 3)),
    )  # fmt: skip


def _level_rows(goals: Sequence[Goal]) -> tuple[list[int], list[int], Array]:
    """Return level, first residual row and root of the relative weight of each goal."""
    order = sorted({goal.priority for goal in goals if goal.rows})
    levels = [order.index(goal.priority) if goal.rows else 0 for goal in goals]
    first = [0] * len(goals)
    at = 0
    for level in range(len(order)):
        for g, goal in enumerate(goals):
            if goal.rows and levels[g] == level:
                first[g] = at
                at += goal.rows
    # Only ratios of weights mean anything; the largest is 1, so that damping and pivots keep their meaning.
    heaviest = [0.0] * len(order)
    for level, goal in zip(levels, goals, strict=True):
        if goal.rows:
            heaviest[level] = max(heaviest[level], goal.weight)
    relative = [goal.weight / heaviest[level] if goal.rows else 0.0 for level, goal in zip(levels, goals, strict=True)]
    return levels, first, np.sqrt(relative)


@dataclass(frozen=True, slots=True, eq=False)
class Posture:
    """What rest goals ask.

    Args:
        shares: (n,) weight of each joint, 0 for none.
        q: (nq,) values to be near.
    """

    shares: Array
    q: Array

    def rows(self, variables: Ints, owner: Ints) -> Array:
        """Return the table (k, 5) of variables: weight, then the number or the quaternion to be near."""
        out = np.zeros((len(variables), REST_WIDTH))
        for row, (block, at, _), joint in zip(out, variables.tolist(), owner.tolist(), strict=True):
            size = 4 if block else 1
            row[REST_WEIGHT] = self.shares[joint]
            row[REST_Q : REST_Q + size] = self.q[at : at + size]
        return out


def posture_of(skeleton: Skeleton, goals: Sequence[RestGoal]) -> Posture:
    """Return what rest goals ask together; a free joint that was put before their skeleton is asked nothing.

    Raises:
        InputError: If two of them concern one joint.
    """
    shares, q = np.zeros(len(skeleton)), skeleton.rest_q.copy()
    for goal in goals:
        if goal.shares is None or goal.reference is None:
            continue
        before, first = len(skeleton) - len(goal.shares), skeleton.nq - len(goal.reference)
        for row in np.flatnonzero(goal.shares > 0.0).tolist():
            if shares[row + before] > 0.0:
                raise InputError(
                    f"two rest goals concern joint {skeleton.joint_names[row + before]!r}",
                    expected="different joints",
                    hint="use one goal, with joints={...} for their parts",
                )
            shares[row + before] = goal.shares[row]
            at = skeleton.q_slice(row + before)
            q[at] = goal.reference[at.start - first : at.stop - first]
    return Posture(shares, q)


def masses_of(skeleton: Skeleton, place: NDArray[np.intp], since: Sequence[Array]) -> Array:
    """Return, for each reduced row, the mass that it carries rigidly and its first moment in its frame (n + 1, 4).

    Parts of the whole mass; the last row is what nothing moves, in the world.
    """
    out = np.zeros((int(place.max()) + 2, MASS_WIDTH))
    for i, joint in enumerate(skeleton.joints):
        if joint.mass > 0.0:
            com = skeleton.tables.unfold[i].reshape(3, 3) @ joint.com
            out[place[i], MASS] += joint.mass
            out[place[i], MOMENT:] += joint.mass * (since[i][:3, :3] @ com + since[i][:3, 3])
    return out / out[:, MASS].sum()
