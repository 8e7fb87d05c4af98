"""A rest pose that the user adjusts, by angles of joints in the axes of the body."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, frames_to_transforms

Angles = tuple[float, ...]  # degrees; forward, outward and twist of a ball, or the angle of a hinge


def adjusted(base: Pose, basis: Array, angles: Mapping[int, Angles], right: set[int]) -> Pose:
    """Return a pose in which some joints are rotated, parents first; each rotation moves everything below its joint.

    Args:
        base: The pose.
        basis: Rotation from the axes of the body (x left, y up, z forward) to the world, (3, 3).
        angles: Angles of joints, by row: a ball swings forward, then outward, and twists about its own bone; a hinge
            turns about its axis, within its limits.
        right: Rows of the joints of the right side, for which outward and twist are mirrored.
    """
    from scipy.spatial.transform import Rotation

    skeleton, q = base.skeleton, np.array(base.q)
    for row in sorted(angles):
        joint, at, values = skeleton.joints[row], skeleton.q_slice(row), np.radians(angles[row])
        if joint.kind is Kind.HINGE:
            low, high = skeleton.value_range(row)
            q[at] = np.clip(q[at] + values[0], low, high)
        elif joint.kind in (Kind.BALL, Kind.FREE):
            forward, outward, twist = values * (1.0, -1.0, -1.0) if row in right else values
            pose = Pose(skeleton, q)
            bone = basis.T @ _bone(pose, row)
            swing = Rotation.from_rotvec([-forward, 0.0, 0.0]) * Rotation.from_rotvec([0.0, 0.0, outward])
            turn = basis @ (swing * Rotation.from_rotvec(twist * bone)).as_matrix() @ basis.T
            world = pose.transform(row)[:3, :3]
            own = Rotation.from_quat(q[at.stop - 4 : at.stop]) * Rotation.from_matrix(world.T @ turn @ world)
            q[at.stop - 4 : at.stop] = own.as_quat()
    return Pose(skeleton, skeleton.follow(q))


def _bone(pose: Pose, row: int) -> Array:
    """Return the direction, (3,), from a joint to the mean of its children; without children, the joint's y axis."""
    children = pose.skeleton.children[row]
    along = pose.positions[list(children)].mean(axis=0) - pose.positions[row] if children else np.zeros(3)
    length = float(np.linalg.norm(along))
    return along / length if length > 0.0 else pose.transform(row)[:3, 1]


def pose_of(skeleton: Skeleton, frames: Array) -> Pose:
    """Return the pose in which each joint has the orientation relative to its parent that given frames have.

    A hinge takes only the rotation about its axis, within its limits.

    Args:
        skeleton: The skeleton.
        frames: World frames of the joints, (n, 12).
    """
    from scipy.spatial.transform import Rotation

    q, world = np.array(skeleton.rest_q), frames_to_transforms(frames)
    for row, joint in enumerate(skeleton.joints):
        above = skeleton.parents[row]
        local = np.linalg.inv((world[above] if above >= 0 else np.eye(4)) @ joint.rest) @ world[row]
        at, turn = skeleton.q_slice(row), Rotation.from_matrix(local[:3, :3]).as_quat()
        if joint.kind is Kind.HINGE:
            low, high = skeleton.value_range(row)
            angle = 2.0 * np.arctan2(turn[:3] @ joint.axis, turn[3])
            turns = (angle + np.pi) % (2.0 * np.pi) - np.pi + 2.0 * np.pi * np.array([0.0, -1.0, 1.0])
            inside = np.clip(turns, low, high)
            q[at] = inside[np.argmin(np.abs(inside - turns))]
        elif joint.kind is Kind.SLIDE:
            q[at] = local[:3, 3] @ joint.axis
        elif joint.kind in (Kind.BALL, Kind.FREE):
            q[at.stop - 4 : at.stop] = turn
            if joint.kind is Kind.FREE:
                q[at.start : at.start + 3] = local[:3, 3]
    return Pose(skeleton, skeleton.follow(q))
