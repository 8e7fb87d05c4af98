"""The stand-in for a solver that is being compiled: limbs follow by cyclic coordinate descent, all else is held.

The limb of a target is the chain from its joint up to the next joint that branches. Each joint of the chain in turn,
from the tip upwards, takes the rotation that brings the tip nearest to the target, within its limits. The root and all
other joints stay where they are, so the feet stand. It is written in NumPy, because a kernel would be compiled first.

References:
    L. Wang, C. Chen, "A combined optimization method for solving the inverse kinematics problem of mechanical
    manipulators", IEEE Transactions on Robotics and Automation, 1991.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.pose import inside_limits
from synovia.viewer.editing.editor import GoalEditor
from synovia.viewer.editing.editor_values import tip_of

_SWEEPS: Final = 4  # in a frame; the next one goes on
_NEAR: Final = 1e-4  # body sizes: nearer tips need no sweep


def follow(pose: Pose, editors: Iterable[GoalEditor], added: int) -> Pose:
    """Return a pose whose limbs reach for the targets of the enabled goals, as far as their limits let them.

    Args:
        pose: The present pose.
        editors: The goals; those without a position in the scene are ignored.
        added: Number of root rows in front of the rows of the given skeleton.
    """
    skeleton = pose.skeleton
    for editor in editors:
        if not (editor.enabled and editor.has_position) or editor.row is None:
            continue
        limb = limb_of(skeleton, editor.row + added)
        for _ in range(_SWEEPS):
            if np.linalg.norm(tip_of(pose, editor, added)[0] - editor.eased_position) < _NEAR * skeleton.size:
                break
            for row in limb:
                pose = _turned(pose, row, tip_of(pose, editor, added)[0], editor.eased_position)
        if editor.has_rotation and skeleton.joints[editor.row + added].kind is Kind.BALL:
            pose = _with(pose, editor.row + added, editor.eased_rotation @ tip_of(pose, editor, added)[1].T)
    return pose


def limb_of(skeleton: Skeleton, row: int) -> list[int]:
    """Return the hinges and balls of the limb above a joint, from the tip upwards."""
    moves = [joint.kind is not Kind.FIXED for joint in skeleton.joints]  # whether anything at or below a joint moves
    for child, above in reversed(list(enumerate(skeleton.parents))):
        if moves[child] and above >= 0:
            moves[above] = True
    out: list[int] = []
    below, row = row, skeleton.parents[row]
    while row >= 0 and sum(moves[child] for child in skeleton.children[row]) <= 1:
        if skeleton.joints[row].kind in (Kind.HINGE, Kind.BALL) and skeleton.lengths[below] > 0.0:
            out.append(row)
        below, row = row, skeleton.parents[row]
    return out


def _turned(pose: Pose, row: int, tip: Array, target: Array) -> Pose:
    """Return a pose in which a joint has turned so that the tip is as near to the target as it can bring it."""
    frame = pose.frames[row]
    turn, center = frame[:9].reshape(3, 3), frame[9:]
    now, wanted = tip - center, target - center
    joint = pose.skeleton.joints[row]
    if joint.kind is Kind.HINGE:
        axis = turn @ np.asarray(joint.axis)
        now, wanted = now - (now @ axis) * axis, wanted - (wanted @ axis) * axis
        angle = float(np.arctan2(np.cross(now, wanted) @ axis, now @ wanted))
        return _valued(pose, row, pose.q[pose.skeleton.q_slice(row)] + angle)
    from scipy.spatial.transform import Rotation

    across = np.cross(now, wanted)
    length = float(np.linalg.norm(across))
    if length <= 1e-12 * float(now @ now):
        return pose
    angle = float(np.arctan2(length, now @ wanted))
    return _with(pose, row, Rotation.from_rotvec(angle / length * across).as_matrix())


def _with(pose: Pose, row: int, turn: Array) -> Pose:
    """Return a pose in which a ball has turned by a rotation of the world, (3, 3)."""
    from scipy.spatial.transform import Rotation

    world = pose.frames[row, :9].reshape(3, 3)
    own = Rotation.from_quat(pose.q[pose.skeleton.q_slice(row)]) * Rotation.from_matrix(world.T @ turn @ world)
    return _valued(pose, row, own.as_quat())


def _valued(pose: Pose, row: int, values: Array) -> Pose:
    """Return a pose with other values of a joint, within its limits."""
    q = np.array(pose.q)
    q[pose.skeleton.q_slice(row)] = values
    return Pose.trusted(pose.skeleton, inside_limits(pose.skeleton, pose.skeleton.follow(q)[None])[0])
