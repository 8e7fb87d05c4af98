"""Map the velocities of all joints to the Jacobian columns of a problem.

Users give derivatives with respect to the velocities of all joints. Solvers have columns only for joints that may move,
in radians and length scales. This module also takes small steps along each column, for finite differences.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.kernels.layout import BLOCK, BLOCK_COLUMN, BLOCK_Q, IS_ANGLE, SCALAR, TURN
from synovia.model import Skeleton
from synovia.model.geometry import Array, times_exp
from synovia.problem import Reduced

NUDGE: Final = 1e-6  # step of finite differences, radians or length scales
_PLACES: Final = [BLOCK, BLOCK_Q, BLOCK_COLUMN]


def column_velocities(skeleton: Skeleton, reduced: Reduced) -> Array:
    """Return the velocities of all joints, including mimic joints, for one unit of each column, (nv, columns)."""
    first = np.cumsum([0, *(joint.kind.v_size for joint in skeleton.joints)]).tolist()
    unit = column_units(reduced)
    out = np.zeros((skeleton.nv, reduced.columns))
    for (block, at, column), joint in zip(reduced.variables[:, _PLACES].tolist(), reduced.owner.tolist(), strict=True):
        # offset in the joint, the same in q and in velocities: a free joint has its translation first
        inside = at - skeleton.q_slice(joint).start
        for c in range(3 if block == TURN else 1):
            out[first[joint] + inside + c, column + c] = unit[column]
    for own, (leader, ratio) in zip(first, skeleton.dof_columns, strict=False):
        if leader != own:
            out[own] = ratio * out[leader]
    return out


def column_units(reduced: Reduced) -> Array:
    """Return the size of one unit of each column, (columns,): 1 radian, or one length scale in length units."""
    unit = np.ones(reduced.columns)
    for (block, _, column), limit in zip(reduced.variables[:, _PLACES].tolist(), reduced.limits, strict=True):
        if block == SCALAR and limit[IS_ANGLE] == 0.0:
            unit[column] = reduced.reach
    return unit


def nudged(q: Array, variables: NDArray[np.int32], unit: Array, size: float) -> Array:
    """Return joint values (columns, nq): row k is q after a step of ``size`` units along column k, see ``moved``."""
    out = np.repeat(q[None], len(unit), axis=0)
    turns, scalars = variables[variables[:, BLOCK] == TURN], variables[variables[:, BLOCK] == SCALAR]
    at, column = turns[:, BLOCK_Q, None] + np.arange(4), turns[:, BLOCK_COLUMN, None] + np.arange(3)
    out[column[:, :, None], at[:, None, :]] = times_exp(q[at][:, None, :], size * np.eye(3))
    out[scalars[:, BLOCK_COLUMN], scalars[:, BLOCK_Q]] += size * unit[scalars[:, BLOCK_COLUMN]]
    return out


def moved(q: Array, variables: NDArray[np.int32], unit: Array, step: Array) -> Array:
    """Return the joint values after a step, (columns,) in the unit of each column; mimic joints do not move."""
    out = q.copy()
    parts = step.tolist()
    for block, at, column in variables[:, _PLACES].tolist():
        if not any(parts[column : column + (3 if block == TURN else 1)]):
            continue  # most elements are 0, because finite differences step along one column at a time
        if block == TURN:
            out[at : at + 4] = times_exp(q[at : at + 4], step[column : column + 3])
        else:
            out[at] += step[column] * unit[column]
    return out
