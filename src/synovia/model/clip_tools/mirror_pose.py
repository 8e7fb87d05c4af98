"""The mirror image of a pose: left and right are exchanged, and the body keeps its position and heading."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.model.anatomy.up import find_up
from synovia.model.clip_tools.mirror import Mirror
from synovia.model.geometry import Array
from synovia.model.joint import Kind
from synovia.model.skeleton import Pose

_STEEP: Final = 1e-6  # horizontal part of the unit vector to the left; if it is shorter, the body lies on its side


def mirrored(pose: Pose, side: Array) -> Array:
    """Return the joint values of a pose's mirror image, (nq,), not clamped to limits.

    The mirror is the upright plane that divides the body into left and right, so a walking body keeps its direction. If
    the root is a free joint and the body has two feet, the plane goes through the midpoint between the feet; otherwise
    it goes through the root.

    Args:
        pose: The pose.
        side: Unit vector, (3,), from the right to the left of the body at rest.
    """
    skeleton = pose.skeleton
    up = find_up(skeleton).vector
    root = next((row for row, below in enumerate(skeleton.children) if len(below) > 1), 0)
    now = pose.matrix(root) @ skeleton.rest_pose().matrix(root).T @ side
    now = now - (now @ up) * up
    if np.linalg.norm(now) < _STEEP:
        now = side
    now = now / np.linalg.norm(now)
    q = Mirror.across(skeleton, side, now, pose.q[None]).applied(pose.q[None])[0]
    first = next((row for row, joint in enumerate(skeleton.joints) if joint.kind is not Kind.FIXED), 0)
    if skeleton.joints[first].kind is Kind.FREE:
        feet = [skeleton.role_rows[role] for role in ("left_foot", "right_foot") if role in skeleton.role_rows]
        rows = feet if len(feet) == 2 else [first]
        away = (pose.positions[rows] - Pose(skeleton, q).positions[rows]).mean(axis=0) @ now * now
        above = skeleton.parents[first]
        base = (np.eye(3) if above < 0 else pose.matrix(above)) @ skeleton.joints[first].rest[:3, :3]
        q[skeleton.q_slice(first)][:3] += base.T @ away
    return skeleton.follow(q)
