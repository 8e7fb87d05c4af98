"""Reduce a skeleton to the joints between root and goals, with fixed joints merged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.goals import ClearanceGoal, Goal
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_Q,
    COLUMN,
    FIRST_Q,
    FRAME_WIDTH,
    GOAL,
    GOAL_ROW,
    IS_LIMITED,
    KIND,
    LOWER,
    MASS_WIDTH,
    ORIGIN,
    OTHER_ROW,
    PARENT,
    PARTS,
    POSITION,
    PREFERENCE_WIDTH,
    PREFERRED,
    RATIO,
    ROW_WIDTH,
    SCALAR,
    STIFFNESS,
    TRANSLATION_COLUMN,
    UPPER,
    VARIABLE,
    VARIABLE_WIDTH,
)
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, frames_to_transforms, rigid
from synovia.model.loops.loop import Tie
from synovia.model.loops.tables import LoopTables, joints_of, loop_tables, moved_by
from synovia.model.tables import Ints
from synovia.model.tree import ancestors
from synovia.problem.clearance import ClearanceTables, clearance_tables, links_of
from synovia.problem.goals import GoalTables, goal_tables, masses_of, posture_of

SHORTEST = 1e-15  # length units; squares and cubes of smaller values would nearly underflow


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """The part of a skeleton that its goals need. Joint values q still include all joints of the skeleton.

    Args:
        rows: (n, 6) integers of each row; ``kernels.layout`` names the columns of all tables here.
        fixed: (n, 12) fixed transforms, including those of merged fixed joints.
        couple: (n, 2) ratio and offset of each hinge or slide, relative to the variable that drives it.
        variables: (k, 3) joint variables.
        limits: (k, 11) limits of each variable.
        preferences: (k, 2) preferred value and stiffness of each variable. The preferred value of a rotation is its
            rest rotation, stored as 0.
        owner: (k,) joint of each variable.
        goals: Tables of the goals.
        posture: (k, 5) weight and reference value of each variable in rest goals.
        path: (T, nq) reference of rest goals at each frame of a track; None for a constant reference.
        masses: (n + 1, 4) masses of the rows; (0, 4) without a goal for the centre of mass.
        reach: Length scale of solvers and tolerances, length units (see ``reach_of``).
        joints: (n,) joint of each row.
        clearance: Tables of clearance goals; None without such goals.
        loops: Tables of the loops that the joints open or close; None without loops.
    """

    rows: Ints
    fixed: Array
    couple: Array
    variables: Ints
    limits: Array
    preferences: Array
    owner: Ints
    goals: GoalTables
    posture: Array
    masses: Array
    reach: float
    joints: Ints
    path: Array | None = None
    clearance: ClearanceTables | None = None
    loops: LoopTables | None = None

    @property
    def pose_only(self) -> bool:
        """Whether all goals are positions and rotations in the world, and the joints open no loop."""
        return len(self.goals.general_ints) == 0 and self.clearance is None and self.loops is None

    @property
    def limbs(self) -> list[tuple[int, int]]:
        """(goal, row of the limb's root) for each goal that rotates a limb; row -1 is the world."""
        terms = self.goals.general_ints[list(self.goals.turning)]
        return [(g, root) for g, root in terms[:, [GOAL, OTHER_ROW]].tolist()]

    @property
    def moving(self) -> frozenset[int]:
        """Rows, in the skeleton, of the joints that may move."""
        return frozenset(self.joints[(self.rows[:, [COLUMN, TRANSLATION_COLUMN]] >= 0).any(axis=1)].tolist())

    @property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Indices of the variables in joint values: hinges and slides (a,), rotations (b, 4)."""
        scalar, at = self.variables[:, BLOCK] == SCALAR, self.variables[:, BLOCK_Q].astype(np.int64)
        return at[scalar], at[~scalar, None] + np.arange(4)

    @property
    def translating(self) -> frozenset[int]:
        """Rows, in the skeleton, of the joints that may translate."""
        return frozenset(self.joints[self.rows[:, TRANSLATION_COLUMN] >= 0].tolist())

    def row_of_goal(self, i: int) -> int:
        """Return the reduced row with which the frame of goal i moves."""
        return int(self.goals.table[i, GOAL_ROW])

    @property
    def residuals(self) -> int:
        """Number of residual rows."""
        return int(self.goals.levels[-1])

    @property
    def columns(self) -> int:
        """Number of Jacobian columns."""
        return int(sum(3 if block else 1 for block in self.variables[:, BLOCK]))

    @property
    def coupled(self) -> bool:
        """Whether a variable moves several joints, or moves one with a ratio or an offset."""
        moving = self.rows[self.rows[:, VARIABLE] >= 0, VARIABLE]
        return len(set(moving.tolist())) < len(moving) or bool((self.couple != (1.0, 0.0)).any())

    @property
    def _chain(self) -> bool:
        """Whether this is one chain of joints with one goal in the world, at its end."""
        n = len(self.rows)
        ends = self.goals.table[:, GOAL_ROW].tolist()
        return self.pose_only and n > 0 and ends == [n - 1] and self.rows[:, PARENT].tolist() == list(range(-1, n - 1))

    @property
    def ball_chain(self) -> bool:
        """Whether this is one chain of balls without limits, with one position goal."""
        return (
            self._chain
            and self.goals.table[0, PARTS] == POSITION
            and bool((self.rows[:, KIND] == Kind.BALL).all())
            and bool((self.rows[:, VARIABLE] >= 0).all())
            and not self.limits[:, IS_LIMITED].any()
        )

    @property
    def serial(self) -> bool:
        """Whether this is an arm: a chain of hinges and slides, each with its own variable, with one goal."""
        return (
            self._chain
            and len(self.variables) == len(self.rows)
            and bool(np.isin(self.rows[:, KIND], (Kind.HINGE, Kind.SLIDE)).all())
            and bool((self.rows[:, FIRST_Q] == self.variables[:, BLOCK_Q]).all())
            and bool((self.couple == (1.0, 0.0)).all())
        )


def reduce(
    skeleton: Skeleton,
    goals: Sequence[Goal],
    goal_joints: Sequence[Sequence[int]],
    *,
    free_root: bool = False,
    translate: bool = False,
    before: int = 0,
) -> Reduced:
    """Reduce a skeleton to the part that moves its goals.

    By default, a free joint only rotates, and a free root is fixed. A free joint that a loop ties moves freely.

    Args:
        skeleton: The skeleton.
        goals: The goals, resolved.
        goal_joints: Rows of each goal's joints.
        free_root: Whether a free root moves.
        translate: Whether free joints below the root translate too.
        before: Number of rows added in front of the skeleton. A free joint whose only ancestors are such rows is a
            root, too.
    """
    posture = posture_of(skeleton, goals)
    balanced = any(goal.moves_mass for goal in goals)
    ends = [row for rows in goal_joints for row in rows]
    ends += np.flatnonzero(posture.shares > 0.0).tolist()
    ends += [row for row, joint in enumerate(skeleton.joints) if balanced and joint.mass > 0.0]
    if any(goal.in_python for goal in goals):
        ends += range(len(skeleton))  # a Python function may depend on any joint
    links = links_of(goals, before)
    on_path = _above(skeleton, [*ends, *links])
    moving = _moving(skeleton, goals, goal_joints, _above(skeleton, ends) if ends else on_path)
    ties = _opened(skeleton, moving)
    on_path |= _above(skeleton, [row for tie in ties for row in (*joints_of(skeleton, tie), *moved_by(skeleton, tie))])
    t = skeleton.tables
    reduced_row = np.full(len(skeleton), -1)  # row of the result with which each joint moves
    # transform from each joint's frame in z-form (see ``kernels.tree.forward``) to the frame of its row
    to_row: list[Array] = [np.eye(4)] * len(skeleton)
    rows: list[list[int]] = []
    fixed: list[Array] = []
    joints: list[int] = []
    ints, frames = t.ints.tolist(), frames_to_transforms(t.fixed)
    for i in np.flatnonzero(on_path).tolist():
        parent = skeleton.parents[i]
        carrier, frame = (reduced_row[parent], to_row[parent]) if parent >= 0 else (-1, np.eye(4))
        frame = frame @ frames[i]
        if ints[i][KIND] == Kind.FIXED:
            reduced_row[i], to_row[i] = carrier, frame
            continue
        reduced_row[i], to_row[i] = len(rows), np.eye(4)
        row = [-1] * ROW_WIDTH
        row[KIND], row[PARENT], row[FIRST_Q] = ints[i][KIND], int(carrier), ints[i][FIRST_Q]
        rows.append(row)
        fixed.append(np.concatenate([frame[:3, :3].ravel(), frame[:3, 3]]))
        joints.append(i)

    couple = np.tile((1.0, 0.0), (len(rows), 1))
    shifted = np.zeros(len(skeleton), bool)
    shifted[[row for tie in ties for row in moved_by(skeleton, tie)]] = True
    variables, limits, preferences, owner = _variables(
        skeleton, rows, couple, joints, moving, free_root, translate | shifted, before
    )
    table = np.array(rows, np.int32).reshape(-1, ROW_WIDTH)
    fixed_table = np.array(fixed).reshape(-1, FRAME_WIDTH)

    def on_row(joint: int, frame: Array) -> Array:
        """Return a frame on a joint as twelve values, converted to the frame of the joint's reduced row."""
        whole = to_row[joint] @ rigid((0.0, 0.0, 0.0), t.unfold[joint].reshape(3, 3)) @ frame
        return np.append(whole[:3, :3].ravel(), whole[:3, 3])

    loops = loop_tables(skeleton, ties, lambda joint: int(reduced_row[joint]), on_row) if ties else None
    tied = 0 if loops is None else loops.rows
    tables = goal_tables(skeleton, goals, goal_joints, reduced_row, to_row, tied)
    clearance = clearance_tables(skeleton, goals, tables, before, reduced_row, to_row) if links else None
    return Reduced(
        table, fixed_table, couple, variables, limits, preferences, owner, tables,
        posture.rows(variables, owner),
        masses_of(skeleton, reduced_row, to_row) if balanced else np.zeros((0, MASS_WIDTH)),
        reach_of(skeleton, table, fixed_table, couple, tables), np.array(joints, np.int32), posture.path, clearance,
        loops,
    )  # fmt: skip


def _opened(skeleton: Skeleton, moving: NDArray[np.bool_]) -> list[Tie]:
    """Return the loops that moving joints open. Mark all joints of these loops in ``moving``."""
    found: list[Tie] = []
    left = [(tie, sorted(moved_by(skeleton, tie))) for tie in skeleton.loops]
    while opened := [pair for pair in left if moving[pair[1]].any()]:
        for tie, rows in opened:
            moving[rows] = True
            found.append(tie)
        left = [pair for pair in left if pair not in opened]
    return [tie for tie in skeleton.loops if tie in found]


def _above(skeleton: Skeleton, ends: Sequence[int]) -> NDArray[np.bool_]:
    """Return a mask of the joints ``ends`` and their ancestors."""
    found = np.zeros(len(skeleton), bool)
    for row in ends:
        while row >= 0 and not found[row]:
            found[row] = True
            row = skeleton.parents[row]
    return found


def _moving(
    skeleton: Skeleton, goals: Sequence[Goal], goal_joints: Sequence[Sequence[int]], on_path: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return a mask of joints that may move: all ancestors of each goal, or as many as the goal allows.

    Raises:
        InputError: If a joint has fewer ancestors than a goal asks for.
    """
    if all(goal.ancestors is None for goal in goals):
        return on_path
    moving = np.zeros(len(skeleton), bool)
    for goal, ends in zip(goals, goal_joints, strict=True):
        if isinstance(goal, ClearanceGoal):
            continue  # clearance goals do not make joints move
        if not ends:
            return on_path  # the goal is one of the whole body
        for end in ends:
            above = ancestors(skeleton.parents, end)
            wanted = len(above) - 1 if goal.ancestors is None else goal.ancestors
            if wanted >= len(above):
                raise InputError(
                    f"joint {skeleton.joint_names[end]!r} has {len(above) - 1} ancestors",
                    where=f"goal {goal.label!r}",
                    value=wanted,
                    expected=f"ancestors from 0 to {len(above) - 1}",
                )
            moving[above[: wanted + 1]] = True
    return moving


def _variables(
    skeleton: Skeleton,
    rows: list[list[int]],
    couple: Array,
    joints: list[int],
    moving: NDArray[np.bool_],
    free_root: bool,
    translate: NDArray[np.bool_],
    before: int,
) -> tuple[Ints, Array, Array, Ints]:
    """Choose the variables, assign their columns, and write columns and couplings into the rows.

    ``translate`` marks free joints that may translate, at any place in the tree.
    """
    t = skeleton.tables
    leader_of = {int(f): (int(a), *t.coupling[k]) for k, (f, a) in enumerate(t.followers)}
    by_element = {int(at): k for k, at in enumerate(t.variables[:, BLOCK_Q])}
    column: dict[int, int] = {}
    chosen: list[tuple[int, int, int]] = []
    order: list[int] = []

    def column_of(element: int) -> int:
        """Return the column of the variable at an element of q; add the variable if it is new."""
        if element not in column:
            k = by_element[element]
            column[element] = sum(3 if block else 1 for block, _, _ in chosen)
            chosen.append((int(t.variables[k, BLOCK]), element, column[element]))
            order.append(k)
        return column[element]

    leaders = {leader_of.get(row[FIRST_Q], (row[FIRST_Q],))[0] for n, row in enumerate(rows) if moving[joints[n]]}
    for n, row in enumerate(rows):
        kind, at = row[KIND], row[FIRST_Q]
        is_root = row[PARENT] < 0 or joints[row[PARENT]] < before
        if kind in (Kind.HINGE, Kind.SLIDE):
            leader, ratio, offset = leader_of.get(at, (at, 1.0, 0.0))
            row[FIRST_Q] = leader
            couple[n] = ratio, offset
            if leader in leaders:
                row[COLUMN] = column_of(leader)
        elif not moving[joints[n]]:
            continue
        elif kind == Kind.BALL:
            row[COLUMN] = column_of(at)
        elif translate[joints[n]] or (is_root and free_root):
            row[TRANSLATION_COLUMN] = column_of(at)
            column_of(at + 1)
            column_of(at + 2)
            row[COLUMN] = column_of(at + 3)
        elif not is_root:
            row[COLUMN] = column_of(at + 3)
    variable_of = {first: k for k, (_, _, first) in enumerate(chosen)}
    for row in rows:
        row[VARIABLE] = variable_of.get(row[COLUMN], -1)
    preferences = np.zeros((len(order), PREFERENCE_WIDTH))
    rest = skeleton.rest_pose().q
    for n, k in enumerate(order):
        joint = skeleton.joints[int(t.owner[k])]
        preferences[n, STIFFNESS] = joint.stiffness
        if t.variables[k, BLOCK] == SCALAR:
            at_rest = float(rest[t.variables[k, BLOCK_Q]])
            preferences[n, PREFERRED] = at_rest if joint.preferred is None else joint.preferred
    return np.array(chosen, np.int32).reshape(-1, VARIABLE_WIDTH), t.limits[order], preferences, t.owner[order]


def reach_of(skeleton: Skeleton, rows: Ints, fixed: Array, couple: Array, goals: GoalTables) -> float:
    """Return the length scale: the longest path from a moving joint to a goal, else the size of the skeleton.

    The length of a path is the sum of its links and of the ranges of its slides. Each range is clamped to the sum of
    the links, because tolerances of an arm should not depend on the long rail below it. Without links, use the shortest
    range.

    Raises:
        InputError: If the length scale is too small to be squared.
    """
    t = skeleton.tables
    variable_at = {at: k for k, at in enumerate(t.variables[:, BLOCK_Q].tolist())}
    joints = rows.tolist()  # indexing a list costs less than indexing an array
    longest = 0.0
    for row, offset in zip(goals.table[:, GOAL_ROW].tolist(), goals.offsets, strict=True):
        if row < 0:
            continue
        links = 0.0
        # length of the last links; added only if a joint above them moves
        pending = math.hypot(*offset[ORIGIN:].tolist())
        ranges: list[float] = []
        while row >= 0:
            joint = joints[row]
            if joint[COLUMN] >= 0 or joint[TRANSLATION_COLUMN] >= 0:
                links, pending = links + pending, 0.0
            if joint[KIND] == Kind.SLIDE and joint[COLUMN] >= 0:
                limits = t.limits[variable_at[joint[FIRST_Q]]]
                ranges.append(abs(float(couple[row, RATIO])) * float(limits[UPPER] - limits[LOWER]))
            pending += math.hypot(*fixed[row, ORIGIN:].tolist())
            row = joint[PARENT]
        most = links or min((width for width in ranges if 0.0 < width < np.inf), default=0.0)
        longest = max(longest, links + sum(min(width, most) for width in ranges))
    reach = longest or skeleton.size or 1.0
    if reach < SHORTEST:
        raise InputError("the joints are too close together", value=reach, expected=f"a reach of at least {SHORTEST:g}")
    return reach
