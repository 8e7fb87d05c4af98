"""Where a pose flips in a track though its targets have moved little: an elbow that a pole passes, a wrist that turns.

A point that moves by δ at a distance d from a joint turns the joint by about δ / d, near a straight limb by a few times
that. A joint that turns by much more than any target explains has gone to another side, however its solver got there.
Fast motion is no flip: there the targets move as fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.goals.base import POSITION, ROTATION
from synovia.ik.rows import kept_targets
from synovia.model import Pose
from synovia.model.geometry import Array, rotation_between
from synovia.model.limits.base import MARK

if TYPE_CHECKING:
    from synovia.facade import IK

_LARGE: Final = 0.7  # radians that one joint turns in a frame; below, nothing flips
_SEEN: Final = 0.15  # change of one number below which no joint turns so far: of a quaternion it is at least 0.17
_MORE: Final = 10.0  # times what targets explain: a limb that leaves its straight pose turns four times as much


def flips(ik: IK, rows: Array) -> NDArray[np.bool_]:
    """Return in which frames of a track a joint turns by far more than its targets explain.

    Args:
        ik: The problem.
        rows: The answers.
    """
    out = np.zeros(len(rows), bool)
    q = rows[:, ik.places]
    tables, targets = ik.skeleton.tables, kept_targets(ik, rows)
    joints = [
        (slice(at, at + 4) if block else slice(at, at + 1), owner)
        for (block, at, _), angle, owner in zip(
            tables.variables.tolist(), (tables.limits[:, MARK] != 0.0).tolist(), tables.owner.tolist(), strict=True
        )
        if block or angle
    ]
    if not joints:
        return out
    numbers = q[:, [at for place, _ in joints for at in range(place.start, place.stop)]]
    suspects = np.flatnonzero(np.abs(np.diff(numbers, axis=0)).max(axis=1) > _SEEN) + 1
    if not len(suspects):
        return out
    a, b = q[suspects - 1], q[suspects]
    for place, owner in joints:
        one, other = a[:, place], b[:, place]
        turned = rotation_between(one, other) if one.shape[1] > 1 else other - one
        turned = np.linalg.norm(turned, axis=1)
        for i in np.flatnonzero(turned > _LARGE).tolist():
            t = int(suspects[i])
            if not out[t]:
                joint = Pose.trusted(ik.skeleton, q[t - 1].copy()).position(owner)
                out[t] = turned[i] > _MORE * _explained(ik.goals, joint, targets[t - 1], targets[t])
    return out


def _explained(goals: Any, joint: Array, before: Array, after: Array) -> float:
    """Return the largest turn (radians) of a joint at a place, (3,), that the motion of one target explains.

    Args:
        goals: The goals.
        joint: Where the joint is.
        before: Targets of the frame before, (goals, 16).
        after: Targets of the frame, (goals, 16).
    """
    most = 0.0
    for goal, one, other in zip(goals, before, after, strict=True):
        A, B = one.reshape(4, 4), other.reshape(4, 4)
        turn = 0.0
        if goal.takes & ROTATION:
            turn += float(np.arccos(np.clip(0.5 * (np.sum(A[:3, :3] * B[:3, :3]) - 1.0), -1.0, 1.0)))
        if goal.takes & POSITION and (moved := float(np.linalg.norm(B[:3, 3] - A[:3, 3]))) > 0.0:
            lever = min(float(np.linalg.norm(T[:3, 3] - joint)) for T in (A, B))
            turn += moved / lever if lever > 0.0 else np.inf
        most = max(most, turn)
    return most
