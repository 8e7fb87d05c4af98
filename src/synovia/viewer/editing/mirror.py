"""The mirror image of a pose: left and right are exchanged, and the body keeps its position and heading."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.model import Kind, Pose, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.clip_tools.mirror import Mirror
from synovia.model.geometry import Array
from synovia.viewer.scene.bodies import ahead_of

_STEEP: Final = 1e-6  # horizontal part of the unit vector to the left; if it is shorter, the body lies on its side


def counterparts(skeleton: Skeleton) -> list[int]:
    """Return the row of each joint's counterpart on the other side of the body; the joint's own row without one."""
    pairs = Mirror.across(skeleton, _across(skeleton)).pairs
    return [row if pair < 0 else pair for row, pair in enumerate(pairs)]


def mirrored(pose: Pose) -> Array:
    """Return the joint values of a pose's mirror image, (nq,), not clamped to limits.

    The mirror is the upright plane that divides the body into left and right, so a walking body keeps its direction. If
    the root is a free joint and the body has two feet, the plane goes through the midpoint between the feet; otherwise
    it goes through the root.
    """
    skeleton, side = pose.skeleton, _across(pose.skeleton)
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


def _across(skeleton: Skeleton) -> Array:
    """Return the unit vector, (3,), from the right to the left of a body at rest."""
    side = np.cross(find_up(skeleton).vector, ahead_of(skeleton))
    return side / np.linalg.norm(side)
