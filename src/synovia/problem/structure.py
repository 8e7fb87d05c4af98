"""Analyse the joints above a goal for closed forms: rows that move, their axes, and limbs.

``hold_all_but`` reduces a problem of the whole body to some of these rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from synovia.errors import InputError, UnsupportedError
from synovia.goals import Goal
from synovia.goals.base import ROTATION
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    COLUMN,
    KIND,
    LOWER,
    PARENT,
    SCALAR,
    TRANSLATION_COLUMN,
    UPPER,
    VARIABLE,
)
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.loops.tables import moved_by
from synovia.model.tables import Ints
from synovia.problem.reduced import Reduced, reach_of

TURNING: Final = (Kind.BALL, Kind.FREE)  # a free joint below the root only rotates
ALIKE: Final = 1e-9  # sine, or fraction of the length scale: tolerance for parallel axes and for axes that intersect


def above(reduced: Reduced, row: int) -> list[int]:
    """Return the moving rows from a row up to the root."""
    rows: list[int] = []
    while row >= 0:
        if (reduced.rows[row, [COLUMN, TRANSLATION_COLUMN]] >= 0).any():
            rows.append(row)
        row = int(reduced.rows[row, PARENT])
    return rows


def freedoms(reduced: Reduced, row: int) -> int:
    """Return the number of degrees of freedom that move a row: non-zero Jacobian columns, without locked joints."""
    columns: set[int] = set()
    for r in above(reduced, row):
        turn, shift, variable = reduced.rows[r, [COLUMN, TRANSLATION_COLUMN, VARIABLE]].tolist()
        if turn >= 0 and not is_locked(reduced, variable):
            columns.update(range(turn, turn + (3 if variable >= 0 and reduced.variables[variable, BLOCK] else 1)))
        if shift >= 0:
            columns.update(range(shift, shift + 3))
    return len(columns)


def is_locked(reduced: Reduced, variable: int) -> bool:
    """Return whether the limits of a hinge or slide allow only one value; False for variable -1."""
    if variable < 0 or reduced.variables[variable, BLOCK] != SCALAR:
        return False
    return bool(reduced.limits[variable, LOWER] == reduced.limits[variable, UPPER])


def kinds(reduced: Reduced, rows: Sequence[int]) -> list[Kind]:
    """Return the kinds of the joints in ``rows``."""
    return [Kind(int(reduced.rows[row, KIND])) for row in rows]


def named(skeleton: Skeleton, reduced: Reduced, rows: Sequence[int]) -> str:
    """Return the names and kinds of the joints in ``rows`` as text for a message, from the root on."""
    parts = [
        f"{skeleton.joint_names[int(reduced.joints[row])]!r} ({Kind(int(reduced.rows[row, KIND])).name.lower()})"
        for row in reversed(rows)
    ]
    return ", ".join(parts) if parts else "no moving joint"


def own_variables(reduced: Reduced, rows: Sequence[int]) -> bool:
    """Return whether each row has its own variable, with ratio 1 and offset 0."""
    wanted = [int(reduced.rows[row, VARIABLE]) for row in rows]
    users = [int(k) for k in reduced.rows[:, VARIABLE] if k >= 0]
    return all(users.count(k) == 1 for k in wanted) and bool((reduced.couple[list(rows)] == (1.0, 0.0)).all())


def limb_rows(reduced: Reduced, goal: Goal, row: int, end: int) -> list[int]:
    """Return the rows of the limb that ends in a goal, nearest to the goal first; empty if there is no such limb.

    For a goal with a rotation, the first row controls the rotation. Otherwise the goal's own joint, which cannot move
    its own position, is omitted if two other rows are above it.

    Args:
        reduced: The problem.
        goal: The goal.
        row: Reduced row of the goal's joint.
        end: The goal's joint, a row of the skeleton.
    """
    turns = bool(goal.constrained_parts & ROTATION)
    rows = above(reduced, row)
    if not turns and len(rows) > 2 and int(reduced.joints[rows[0]]) == end:
        rows = rows[1:]
    limb = rows[: 3 if turns else 2]
    form = kinds(reduced, limb)
    fits = len(limb) == (3 if turns else 2) and form[-1] in TURNING and form[-2] in (Kind.HINGE, *TURNING)
    return limb if fits and (not turns or form[0] in TURNING) else []


def axes(reduced: Reduced, rows: Sequence[int]) -> tuple[Array, Array]:
    """Return directions and points of hinge axes at zero joint values, (n, 3) each, in the first row's parent frame.

    Args:
        reduced: The problem.
        rows: A chain; each row is the parent of the next.
    """
    frame = np.eye(4)
    z, o = np.zeros((len(rows), 3)), np.zeros((len(rows), 3))
    for i, row in enumerate(rows):
        frame = frame @ frames_to_transforms(reduced.fixed[row])
        z[i], o[i] = frame[:3, 2], frame[:3, 3]
    return z, o


def parallel(u: Array, v: Array) -> bool:
    """Return whether two unit vectors are parallel."""
    return float(np.linalg.norm(np.cross(u, v))) < ALIKE


def meet(u: Array, p: Array, v: Array, o: Array, reach: float) -> Array | None:
    """Return the intersection of the axes u through p and v through o; None for parallel or skew axes."""
    if parallel(u, v):
        return None
    n = np.cross(u, v)  # at small angles, |n| is more accurate than 1 - (u·v)²
    point = p + float(np.cross(o - p, v) @ n) / float(n @ n) * u
    return point if float(np.linalg.norm(np.cross(v, point - o))) < ALIKE * reach else None


def with_columns_in_turn(variables: Ints) -> Ints:
    """Return variables (k, 3) with their columns renumbered to be contiguous."""
    out = variables.copy()
    out[:, BLOCK_COLUMN] = np.cumsum([0, *np.where(out[:, BLOCK] == SCALAR, 1, 3)])[:-1]
    return out


def with_followers(skeleton: Skeleton, rows: Iterable[int]) -> set[int]:
    """Return the rows of given joints, their leaders, and all mimic joints of these leaders."""
    leaders = {
        row: skeleton.value_index(joint.mimic.leader)
        for row, joint in enumerate(skeleton.joints) if joint.mimic is not None
    }  # fmt: skip

    def leader(row: int) -> int:
        while row in leaders:
            row = leaders[row]
        return row

    wanted = {leader(row) for row in rows}
    return wanted | {row for row in leaders if leader(row) in wanted}


def with_tied(skeleton: Skeleton, rows: Iterable[int]) -> frozenset[int]:
    """Return the rows of given joints and of all joints in the loops that these joints open."""
    out, left = set(rows), [moved_by(skeleton, tie) for tie in skeleton.loops]
    while opened := [joints for joints in left if not out.isdisjoint(joints)]:
        out.update(*opened)
        left = [joints for joints in left if joints not in opened]
    return frozenset(out)


def allowed_rows(skeleton: Skeleton, given: Skeleton, moving: Iterable[str | int]) -> frozenset[int]:
    """Return the rows of the joints that ``moving`` names, with all joints that follow them.

    Args:
        skeleton: The solved skeleton.
        given: The skeleton without the joints that ``root`` adds in front; ``moving`` has its rows and names.
        moving: The joints; joints that ``root`` adds are allowed by name.

    Raises:
        InputError: If none of the joints can move.
        UnknownNameError: If a joint does not exist.
        UnsupportedError: If some joints of a loop may move and others may not.
    """
    before = len(skeleton) - len(given)
    added = set(skeleton.joint_names[:before])
    rows = with_followers(
        skeleton,
        [skeleton.value_index(one) if one in added else given.value_index(one) + before for one in moving],
    )
    if not any(skeleton.joints[row].kind.v_size for row in rows):
        raise InputError("moving", value=list(moving), expected="at least one joint that can move")
    if others := sorted(with_tied(skeleton, rows) - rows):
        names = ", ".join(repr(skeleton.joint_names[row]) for row in others)
        raise UnsupportedError(
            "the joints of a loop move together", where="moving", value=list(moving),
            expected="all joints of a loop, or none", hint=f"add {names}",
        )  # fmt: skip
    return frozenset(rows)


def hold_all_but(skeleton: Skeleton, reduced: Reduced, moving: Collection[int]) -> Reduced:
    """Return the reduced skeleton in which only the rows ``moving`` move; the others keep their start values.

    The length scale is computed from the moving rows, so that tolerances suit a limb, not the whole body. A free root
    among the moving rows may still translate.

    Args:
        skeleton: The skeleton.
        reduced: Reduced part of the skeleton.
        moving: Rows of ``reduced`` that may move.
    """
    kept_set = {int(reduced.rows[row, VARIABLE]) for row in moving if reduced.rows[row, VARIABLE] >= 0}
    shifted = [row for row in moving if reduced.rows[row, TRANSLATION_COLUMN] >= 0]
    for row in shifted:
        first = int(np.flatnonzero(reduced.variables[:, BLOCK_COLUMN] == reduced.rows[row, TRANSLATION_COLUMN])[0])
        kept_set |= {first, first + 1, first + 2}
    kept = sorted(kept_set)
    variables = with_columns_in_turn(reduced.variables[kept])
    new_index = {k: new for new, k in enumerate(kept)}
    rows = reduced.rows.copy()
    rows[:, [COLUMN, TRANSLATION_COLUMN, VARIABLE]] = -1
    for row in moving:
        if reduced.rows[row, VARIABLE] < 0:
            continue
        new = new_index[int(reduced.rows[row, VARIABLE])]
        rows[row, COLUMN], rows[row, VARIABLE] = variables[new, BLOCK_COLUMN], new
    for row in shifted:
        first = int(np.flatnonzero(reduced.variables[:, BLOCK_COLUMN] == reduced.rows[row, TRANSLATION_COLUMN])[0])
        rows[row, TRANSLATION_COLUMN] = variables[new_index[first], BLOCK_COLUMN]
    return replace(
        reduced,
        rows=rows,
        variables=variables,
        limits=reduced.limits[kept].copy(),
        preferences=reduced.preferences[kept].copy(),
        owner=reduced.owner[kept].copy(),
        posture=reduced.posture[kept].copy(),
        reach=reach_of(skeleton, rows, reduced.fixed, reduced.couple, reduced.goals),
    )
