"""Substitute for a solver that is still being compiled: limbs follow their targets by cyclic coordinate descent.

The limb of a target is the chain from its joint up to the next joint that branches. From the tip upwards, each joint of
the chain takes the rotation, within its limits, that brings the tip nearest to the target. The root and all other
joints keep their values, so the feet stay on the ground. The code uses NumPy only, because a kernel would itself have
to be compiled first.

References:
    L. Wang, C. Chen, "A combined optimization method for solving the inverse kinematics problem of mechanical
    manipulators", IEEE Transactions on Robotics and Automation, 1991.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, matrix_to_quat, quat_product, times_exp
from synovia.model.loops.closing import closed_near
from synovia.viewer.editing.editor import GoalEditor
from synovia.viewer.editing.editor_values import tip_of

_SWEEPS: Final = 4  # largest number of sweeps per frame; the next frame continues from its result
_NEAR: Final = 1e-4  # fraction of the body's size; a tip nearer than this to its target needs no sweep


def follow(pose: Pose, editors: Iterable[GoalEditor], added: int) -> Pose:
    """Return a pose whose limbs reach for the targets of the enabled goals, as far as the joint limits allow.

    Args:
        pose: The current pose.
        editors: The goals; goals without a position in the scene are ignored.
        added: Number of root joints in front of the joints of the given skeleton.
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
        tip = editor.row + added
        if editor.has_rotation and skeleton.joints[tip].kind is Kind.BALL:
            turn, world = editor.eased_rotation @ tip_of(pose, editor, added)[1].T, pose.frames[tip, :9].reshape(3, 3)
            quat = quat_product(pose.q[skeleton.q_slice(tip)], matrix_to_quat(world.T @ turn @ world))
            pose = _valued(pose, tip, quat)
    return pose


def limb_of(skeleton: Skeleton, row: int) -> list[int]:
    """Return the hinge and ball joints of the limb that ends at a joint, from the tip upwards."""
    moves = [joint.kind is not Kind.FIXED for joint in skeleton.joints]  # whether a joint or any below it moves
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
    """Return a pose in which one joint rotates the tip as near to the target as the joint allows."""
    frame = pose.frames[row]
    turn, center = frame[:9].reshape(3, 3), frame[9:]
    now, wanted = tip - center, target - center
    joint, values = pose.skeleton.joints[row], pose.q[pose.skeleton.q_slice(row)]
    if joint.kind is Kind.HINGE:
        axis = turn @ np.asarray(joint.axis)
        now, wanted = now - (now @ axis) * axis, wanted - (wanted @ axis) * axis
        angle = float(np.arctan2(np.cross(now, wanted) @ axis, now @ wanted))
        return _valued(pose, row, values + angle)
    across = np.cross(now, wanted)
    length = float(np.linalg.norm(across))
    if length <= 1e-12 * float(now @ now):
        return pose
    angle = float(np.arctan2(length, now @ wanted))
    return _valued(pose, row, times_exp(values, turn.T @ (angle / length * across)))


def _valued(pose: Pose, row: int, values: Array) -> Pose:
    """Return a pose with new values of one joint, clamped to its limits."""
    q = np.array(pose.q)
    q[pose.skeleton.q_slice(row)] = values
    return Pose.trusted(pose.skeleton, closed_near(pose.skeleton, pose.skeleton.follow(q), pose.q, [row]))
