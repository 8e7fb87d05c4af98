"""Where a closed form switches branches in a track, with a large step of the joints.

A closed form takes the branch nearest to the frame before. Where that branch ends, at a limit or a singular pose, the
next one may be far away, though nothing was restarted. To tell such a switch from quick motion, a frame with a large
step is solved again with its targets moving there little by little: a step that belongs to the motion then falls into
small ones, a switch stays one large step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array, matrix_to_quat, quat_to_matrix, rotation_between, times_exp
from synovia.model.limits.base import MARK

if TYPE_CHECKING:
    from synovia.facade import IK

Bools = NDArray[np.bool_]
Follow = Callable[["IK", Array, Array, Callable[..., None]], Array]
"""Solves frames in turn, given the problem, the targets, the first start and what to call with the progress."""
_LARGE: Final = 0.2  # root of the summed squares of all joints' steps, radians and reaches; below, nothing jumps
_PARTS: Final = (4, 32)  # into how many a step is cut: most that are no switch show it in four
_WHOLE: Final = 0.5  # share of the large step above which a single part of it counts as a switch
_SAME: Final = 0.25  # share of the large step within which two poses count as one


def changes(ik: IK, a: Array, b: Array) -> Array:
    """Return the squared change of all joints, radians and reaches, between rows of joint values."""
    variables = ik.skeleton.tables.variables
    angles = ik.skeleton.tables.limits[:, MARK] != 0.0
    total = np.zeros(len(a))
    for (block, at, _), angle in zip(variables.tolist(), angles.tolist(), strict=True):
        if block == 0:
            total += ((b[:, at] - a[:, at]) / (1.0 if angle else ik.reach)) ** 2
        else:
            total += np.sum(rotation_between(a[:, at : at + 4], b[:, at : at + 4]) ** 2, axis=1)
    return total


def branch_switches(ik: IK, table: Array, start: Array, rows: Array, follow: Follow) -> Bools:
    """Return in which frames of a track a closed form switches branches.

    Args:
        ik: The problem.
        table: Targets, (T, goals, 17), complete.
        start: The first start, (1, nq).
        rows: The answers.
        follow: What has solved the track.
    """
    values = rows[:, ik.places]
    large = np.flatnonzero(np.sqrt(changes(ik, values[:-1], values[1:])) > _LARGE) + 1
    if len(large) and getattr(ik.solver, "weight", 1.0) < 1.0:  # the answer switches before it is blended
        ik = _unblended(ik)
        values = follow(ik, table, start, _ignore)[:, ik.places]
    out = np.zeros(len(rows), bool)
    for t in large.tolist():
        out[t] = all(
            _is_switch(ik, between(table[t - 1], table[t], parts), values[t - 1 : t + 1], follow) for parts in _PARTS
        )
    return out


def _unblended(ik: IK) -> IK:
    """Return the same problem with answers that go the whole way from the start to the solution."""
    build, (given, goals, solver, tolerance, root) = ik.__reduce__()
    return build(given, goals, solver.replace(weight=1.0), tolerance, root)


def _is_switch(ik: IK, table: Array, ends: Array, follow: Follow) -> bool:
    """Return whether a large step stays large when the targets move little by little, as in the table.

    It is a switch as well if the little steps, from the same pose, end on another branch than the large one.
    """
    step = float(np.sqrt(changes(ik, ends[:1], ends[1:])[0]))
    if step <= _LARGE:
        return False
    path = follow(ik, table, ends[:1].copy(), _ignore)[:, ik.places]
    if np.sqrt(changes(ik, path[:-1], path[1:]).max()) > _WHOLE * step:
        return True
    first, last = np.sqrt(changes(ik, path[[0, -1]], ends))
    return bool(first < _SAME * step and last > _WHOLE * step)


def between(a: Array, b: Array, parts: int) -> Array:
    """Return targets (parts + 1, goals, 17) on the way from those of one frame to those of the next, evenly."""
    share = np.linspace(0.0, 1.0, parts + 1)
    out = np.repeat(b[None], parts + 1, axis=0)
    for g in range(len(a)):
        A, B = (row[g, :16].reshape(4, 4) for row in (a, b))
        p, q = matrix_to_quat(A[:3, :3]), matrix_to_quat(B[:3, :3])
        frames = out[:, g, :16].reshape(-1, 4, 4)
        frames[:, :3, :3] = quat_to_matrix(times_exp(p[None], share[:, None] * rotation_between(p, q)))
        frames[:, :3, 3] = A[:3, 3] + share[:, None] * (B[:3, 3] - A[:3, 3])
    return out


def _ignore(*_: Any) -> None:
    """Report no progress: a few frames are quick."""
