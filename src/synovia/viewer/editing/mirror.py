"""The mirror image of a pose: left and right change places, and the body keeps its place and heading."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.draw.camera import direction
from synovia.draw.scene import up_of
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, matrix_to_quat, quat_to_matrix
from synovia.viewer.scene.bodies import ahead_of

_NEAR: Final = 0.05  # of the body's size: a joint this near to another's mirror image may be its counterpart
_SIDES: Final = (("left_", "right_"), ("right_", "left_"))


def counterparts(skeleton: Skeleton) -> list[int]:
    """Return the row of each joint's counterpart on the other side of the body, its own row for a joint in the middle.

    Joints with a role are paired by role, others by their rest position among the children of their parent's
    counterpart.
    """
    rest = skeleton.rest_pose().positions
    side = _across(skeleton)
    out = list(range(len(skeleton)))
    by_role: dict[int, int] = {}
    roles = skeleton.role_rows
    for role, row in roles.items():
        for mine, other in _SIDES:
            if role.startswith(mine) and (name := other + role.removeprefix(mine)) in roles:
                pair = roles[name]
                if skeleton.joints[row].kind is skeleton.joints[pair].kind:
                    by_role[row] = pair
    taken: set[int] = set()
    for row, above in enumerate(skeleton.parents):
        if above < 0:
            continue
        if row in by_role:
            out[row] = by_role[row]
        elif (pair := out[above]) != above or len(skeleton.children[above]) > 1:
            step = rest[row] - rest[above]
            image = step - 2.0 * (step @ side) * side
            open_rows = [child for child in skeleton.children[pair] if child not in taken and child not in by_role]
            away = {child: float(np.linalg.norm(rest[child] - rest[pair] - image)) for child in open_rows}
            best = min(away, key=away.__getitem__, default=row)
            if skeleton.joints[best].kind is skeleton.joints[row].kind and away.get(best, 0.0) < _NEAR * skeleton.size:
                out[row] = best
        taken.add(out[row])
    return [to if out[to] == row else row for row, to in enumerate(out)]  # both ways, or not at all


def mirrored(pose: Pose) -> Array:
    """Return the joint values of a pose's mirror image, (nq,), not clamped to limits.

    The mirror is the upright plane that divides the body into left and right, so a body that walks goes on in its
    direction. It goes through the middle between the feet if the root may go there, else through the root.
    """
    skeleton, q = pose.skeleton, pose.q.copy()
    pairs = counterparts(skeleton)
    rest = skeleton.rest_pose().frames[:, :9].reshape(-1, 3, 3)
    moved = pose.frames[:, :9].reshape(-1, 3, 3) @ rest.transpose(0, 2, 1)  # from rest to the pose, world axes
    root = next((row for row, below in enumerate(skeleton.children) if len(below) > 1), 0)
    up, side = direction(up_of(skeleton), "y"), _across(skeleton)
    now = moved[root] @ side
    now = now - (now @ up) * up
    if np.linalg.norm(now) < 1e-6:  # lies on its side
        now = side
    now = now / np.linalg.norm(now)
    world, body = _reflection(now), _reflection(side)
    bases, turns = np.empty_like(rest), np.empty_like(rest)  # world rotations before and after each joint
    for row, joint in enumerate(skeleton.joints):
        above = skeleton.parents[row]
        bases[row] = base = (turns[above] if above >= 0 else np.eye(3)) @ joint.rest[:3, :3]
        part, other = skeleton.q_slice(row), skeleton.q_slice(pairs[row])
        local = base.T @ world @ moved[pairs[row]] @ body @ rest[row]
        if joint.kind in (Kind.BALL, Kind.FREE):
            q[part.stop - 4 : part.stop] = matrix_to_quat(local)
            local = quat_to_matrix(q[part.stop - 4 : part.stop])
        elif joint.kind is Kind.HINGE:
            x, y, z, w = matrix_to_quat(local)
            angle = 2.0 * np.arctan2(joint.axis @ (x, y, z), w)
            q[part] = (angle + np.pi) % (2.0 * np.pi) - np.pi
            local = _about(joint.axis, float(q[part][0]))
        else:
            if joint.kind is Kind.SLIDE:
                q[part] = pose.q[other]
            local = np.eye(3)
        turns[row] = base @ local
    feet = [skeleton.role_rows[role] for role in ("left_foot", "right_foot") if role in skeleton.role_rows]
    first = next((row for row, joint in enumerate(skeleton.joints) if joint.kind is not Kind.FIXED), 0)
    if len(feet) == 2 and skeleton.joints[first].kind is Kind.FREE:
        away = (pose.positions[feet] - Pose(skeleton, q).positions[feet]).mean(axis=0) @ now * now
        q[skeleton.q_slice(first)][:3] += bases[first].T @ away
    return skeleton.follow(q)


def _across(skeleton: Skeleton) -> Array:
    """Return the unit vector, (3,), from the right to the left of a body at rest."""
    side = np.cross(direction(up_of(skeleton), "y"), ahead_of(skeleton))
    return side / np.linalg.norm(side)


def _reflection(normal: Array) -> Array:
    """Return the reflection, (3, 3), in the plane with a unit normal."""
    return np.eye(3) - 2.0 * np.outer(normal, normal)


def _about(axis: Array, angle: float) -> Array:
    """Return the rotation, (3, 3), about a unit axis by an angle."""
    return quat_to_matrix(np.array([*(np.sin(0.5 * angle) * axis), np.cos(0.5 * angle)]))
