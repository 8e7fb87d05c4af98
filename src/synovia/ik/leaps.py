"""Where the answers of a closed form leap: steps of the joints that do not shrink with those of the targets.

A closed form takes the branch nearest to the frame before. Where that branch ends, at a limit or a singular pose, the
next one may be far, though nothing was restarted. A frame with a large step is therefore solved once more with its
targets moving there little by little: a step that belongs to the motion falls to pieces, a leap stays one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.geometry import Array, matrix_to_quat, quat_to_matrix, rotation_between, times_exp
from synovia.ik.solution import HEAD

if TYPE_CHECKING:
    from synovia.ik.ik import IK

Bools = NDArray[np.bool_]
Follow = Callable[["IK", Array, Array, Callable[..., None]], Array]
"""Solves frames in turn: from targets, the first start, and what is told of the progress."""
_LARGE: Final = 0.2  # root of the summed squares of all joints' steps, radians and reaches
_PARTS: Final = (4, 32)  # of a step: a few suffice to acquit most of them
_WHOLE: Final = 0.5  # of a step that one part may make
_SAME: Final = 0.25  # of it: as near is the pose that it began with


def changes(ik: IK, a: Array, b: Array) -> Array:
    """Return the squared change of all joints, radians and reaches, between rows of joint values."""
    variables = ik.skeleton.tables.variables
    angles = ik.skeleton.tables.limits[:, 10] != 0.0
    total = np.zeros(len(a))
    for (block, at, _), angle in zip(variables.tolist(), angles.tolist(), strict=True):
        if block == 0:
            total += ((b[:, at] - a[:, at]) / (1.0 if angle else ik.reach)) ** 2
        else:
            total += np.sum(rotation_between(a[:, at : at + 4], b[:, at : at + 4]) ** 2, axis=1)
    return total


def leaps(ik: IK, table: Array, start: Array, rows: Array, follow: Follow) -> Bools:
    """Return which frames of a track leap.

    Args:
        ik: The problem.
        table: Targets, (T, goals, 17), complete.
        start: The first start, (1, nq).
        rows: The answers.
        follow: What has solved them.
    """
    values = _values(ik, rows)
    large = np.flatnonzero(np.sqrt(changes(ik, values[:-1], values[1:])) > _LARGE) + 1
    if len(large) and getattr(ik.solver, "weight", 1.0) < 1.0:  # what leaps is the answer before it is blended
        ik = _whole(ik)
        values = _values(ik, follow(ik, table, start, _untold))
    out = np.zeros(len(rows), bool)
    for t in large.tolist():
        out[t] = all(
            _leaps(ik, between(table[t - 1], table[t], parts), values[t - 1 : t + 1], follow) for parts in _PARTS
        )
    return out


def _values(ik: IK, rows: Array) -> Array:
    """Return the joint values of rows of answers."""
    return rows[:, HEAD : HEAD + ik.skeleton.nq]


def _whole(ik: IK) -> IK:
    """Return the same problem with the whole way to its solution."""
    build, (given, goals, solver, tolerance, root) = ik.__reduce__()
    return build(given, goals, solver.replace(weight=1.0), tolerance, root)


def _leaps(ik: IK, table: Array, ends: Array, follow: Follow) -> bool:
    """Return whether a large step stays one where the targets move from frame to frame as in the table.

    It may also have gone to another branch than the little steps do, from the same pose.
    """
    step = float(np.sqrt(changes(ik, ends[:1], ends[1:])[0]))
    if step <= _LARGE:
        return False
    path = _values(ik, follow(ik, table, ends[:1].copy(), _untold))
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


def _untold(*_: Any) -> None:
    """Hear of the progress of a few frames."""
