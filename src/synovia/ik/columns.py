"""Map the velocities of all joints to the Jacobian columns of a problem.

Users write derivatives by the velocities of all joints. Solvers have columns only for joints that may move, in radians
and reaches. This module also takes small steps along each column, for finite differences.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.kernels.layout import IS_ANGLE
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.problem import Reduced

NUDGE: Final = 1e-6  # radians or reaches, for differences


def column_velocities(skeleton: Skeleton, reduced: Reduced) -> Array:
    """Return the velocities of all joints, mimic joints included, for one unit of each column, (nv, columns)."""
    first = np.concatenate([[0], np.cumsum([joint.kind.v_size for joint in skeleton.joints])])
    unit = column_units(reduced)
    out = np.zeros((skeleton.nv, reduced.columns))
    for (block, at, column), joint in zip(reduced.variables.tolist(), reduced.owner.tolist(), strict=True):
        inside = at - skeleton.q_slice(joint).start  # in a free joint translation comes first, in q as in velocities
        for c in range(3 if block else 1):
            out[first[joint] + inside + c, column + c] = unit[column]
        for (follower, leader), (ratio, _) in zip(
            skeleton.tables.followers.tolist(), skeleton.tables.coupling.tolist(), strict=True
        ):
            if leader == at:
                row = next(i for i in range(len(skeleton)) if skeleton.q_slice(i).start == follower)
                out[first[row], column] = ratio * unit[column]
    return out


def column_units(reduced: Reduced) -> Array:
    """Return one unit of each column in radians or length units: 1, or the reach."""
    unit = np.ones(reduced.columns)
    for (block, _, column), limit in zip(reduced.variables.tolist(), reduced.limits, strict=True):
        if not block and limit[IS_ANGLE] == 0.0:
            unit[column] = reduced.reach
    return unit


def moved(q: Array, variables: NDArray[np.int32], unit: Array, step: Array) -> Array:
    """Return the joint values after a step, given by column; mimic joints stay as they are."""
    out = q.copy()
    parts = step.tolist()
    for block, at, column in variables.tolist():
        if not any(parts[column : column + (3 if block else 1)]):
            continue  # differences take steps along one column at a time
        if not block:
            out[at] += step[column] * unit[column]
            continue
        half = 0.5 * step[column : column + 3]
        size = float(np.linalg.norm(half))
        turn, c = np.sinc(size / np.pi) * half, np.cos(size)
        v, w = q[at : at + 3], q[at + 3]
        out[at : at + 3] = c * v + w * turn + np.cross(v, turn)
        out[at + 3] = c * w - v @ turn
        out[at : at + 4] /= np.linalg.norm(out[at : at + 4])
    return out
