"""What each Jacobian column of a problem stands for.

Users write derivatives by the velocities of all joints, or leave them out. The solvers have a column only for what may
move, in radians and reaches. Here is the map from one to the other, and small steps along each column for differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from synovia.kernels.layout import IS_ANGLE
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.problem import Reduced

NUDGE: Final = 1e-6  # radians or reaches, for differences


def column_velocities(skeleton: Skeleton, reduced: Reduced) -> Array:
    """Return the velocities of all joints, followers included, for one unit of each column, (nv, columns)."""
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


def nudged(skeleton: Skeleton, reduced: Reduced, q: Array) -> Sequence[tuple[Array, Array]]:
    """Return, for every column, the joint values a small step ahead along it and a small step behind."""
    unit = column_units(reduced)
    pairs: list[tuple[Array, Array]] = []
    for block, at, column in reduced.variables.tolist():
        for c in range(3 if block else 1):
            both: list[Array] = []
            for size in (NUDGE, -NUDGE):
                there = q.copy()
                if block:
                    x, y, z, w = q[at : at + 4]
                    half = np.zeros(3)
                    half[c] = 0.5 * size
                    v = np.array((x, y, z))
                    there[at : at + 3] = v + w * half + np.cross(v, half)
                    there[at + 3] = w - v @ half
                    there[at : at + 4] /= np.linalg.norm(there[at : at + 4])
                else:
                    there[at] += size * unit[column]
                both.append(skeleton.follow(there))
            pairs.append((both[0], both[1]))
    return pairs
