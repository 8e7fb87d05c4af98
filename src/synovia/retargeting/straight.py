"""Rest poses without a clip: the T-pose of a body, and a rest pose that the user adjusts by angles of joints.

For the T-pose, each bone rotates to its direction by the smallest rotation. The bones show where trunk, arms and legs
point, and pairs of hips and shoulders show left and right. The rotation of a limb about its own bone is a guess: the
file's zero pose, bent only at hips and shoulders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from synovia.model import Kind, Pose, Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, frames_to_transforms, unit
from synovia.model.tree import ancestors
from synovia.retargeting.body import Body
from synovia.retargeting.bones import smallest_rotation, triad

_LEFT: Final = np.array([1.0, 0.0, 0.0])
_UP: Final = np.array([0.0, 1.0, 0.0])
_AHEAD: Final = np.array([0.0, 0.0, 1.0])
_FOOT: Final = unit(_AHEAD - 0.4 * _UP)  # from the ankle to the ball of a planted foot, in the axes of the body
_OPPOSITE: Final = -0.9  # cosine: directions with a smaller one count as opposite, without the smallest rotation
_NEAR: Final = 0.01  # fraction of the skeleton's size: joints that are nearer coincide
Angles = tuple[float, ...]  # degrees; forward, outward and twist of a ball, or the angle of a hinge


def straightened(body: Body, up: Array, forward: Array) -> Array:
    """Return the T-pose that is computed from the bones, as world frames of all joints, (n, 12).

    Args:
        body: The body, with the rest pose of the file.
        up: Upward direction, (3,).
        forward: Direction that the body faces in the T-pose, (3,), normal to ``up``.
    """
    skeleton = body.skeleton
    stored = body.rest[:, :9].reshape(-1, 3, 3)
    places = body.rest[:, 9:]
    ways = _directions(body)
    crossed = {body.roles[role]: pair for role, pair in _trunk_pairs(body).items()}
    R = np.empty((len(skeleton), 3, 3))
    out = np.zeros((len(skeleton), 12))
    world = np.array([np.cross(up, forward), up, forward]).T
    # a trunk that carries the hips keeps its pose in the file, because no bone shows where it points
    start = body.basis.T if _hang_below_the_trunk(body) else np.eye(3)
    for row, parent in enumerate(skeleton.parents):
        R[row] = R[parent] @ stored[parent].T @ stored[row] if parent >= 0 else start @ stored[row]
        if row in crossed:
            left, top = (stored[row].T @ way for way in crossed[row])
            top = top - (top @ left) * left
            R[row] = triad(_LEFT, _UP) @ triad(left, unit(top)).T
        elif row in ways:
            ends, way = ways[row]
            line = unit(R[row] @ stored[row].T @ (places[list(ends)].mean(0) - places[row]))
            R[row] = _turn(line, way) @ R[row]
        out[row, :9] = (world @ R[row]).ravel()
        if parent >= 0:
            offset = stored[parent].T @ (places[row] - places[parent])
            out[row, 9:] = out[parent, 9:] + world @ R[parent] @ offset
    return out


def _hang_below_the_trunk(body: Body) -> bool:
    """Return whether the hips are carried by the trunk, as in robots whose root is the torso."""
    arm = body.roles.get("left_upper_arm", body.roles.get("right_upper_arm"))
    return arm is not None and "hips" in body.roles and body.roles["hips"] not in ancestors(body.skeleton.parents, arm)


def _turn(line: Array, way: Array) -> Array:
    """Return the smallest rotation between directions; opposite ones first rotate by 180° about the forward axis."""
    if line @ way > _OPPOSITE:
        return smallest_rotation(line, way)
    half = 2.0 * np.outer(_AHEAD, _AHEAD) - np.eye(3)
    return smallest_rotation(half @ line, way) @ half


def _directions(body: Body) -> dict[int, tuple[tuple[int, ...], Array]]:
    """Return, by row, the end rows of each bone and its direction in a T-pose, in the axes of the body."""
    out: dict[int, tuple[tuple[int, ...], Array]] = {}

    def add(role: str, way: Array) -> None:
        if role in body.roles and (ends := body.end_rows(role)):
            out[body.roles[role]] = ends, way

    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
        for part in ("upper_leg", "lower_leg"):
            add(f"{side}_{part}", -_UP)
        add(f"{side}_foot", _FOOT)
        add(f"{side}_toes", _AHEAD)
        for part in ("shoulder", "upper_arm", "lower_arm", "hand"):
            add(f"{side}_{part}", sign * _LEFT)
    for role in ("spine", "neck", "head"):
        if role in body.roles and (end := _above(body, body.roles[role])) is not None:
            out[body.roles[role]] = (end,), _UP
    return out


def _trunk_pairs(body: Body) -> dict[str, tuple[Array, Array]]:
    """Return the directions at rest to the left and to the top of hips and chest, (3,) each, by role."""
    out: dict[str, tuple[Array, Array]] = {}
    for role, parts in (("hips", ("upper_leg",)), ("chest", ("shoulder", "upper_arm"))):
        pairs = [(f"left_{part}", f"right_{part}") for part in parts]
        pair = next((pair for pair in pairs if all(name in body.roles for name in pair)), None)
        if role not in body.roles or pair is None:
            continue
        row = body.roles[role]
        left = body.rest_position(pair[0]) - body.rest_position(pair[1])
        end = _above(body, row)
        if np.linalg.norm(left) > _NEAR * body.skeleton.size and end is not None:
            left = unit(left)
            top = body.rest[end, 9:] - body.rest[row, 9:]
            top = top - (top @ left) * left
            if np.linalg.norm(top) > _NEAR * body.skeleton.size:
                out[role] = left, top
    return out


def _above(body: Body, row: int) -> int | None:
    """Return the next trunk joint towards the head that does not coincide with a joint; None if there is none."""
    parents = body.skeleton.parents
    top = next((body.roles[role] for role in ("head", "neck", "chest") if role in body.roles), None)
    if top == row:
        tips = [at for at in range(len(parents)) if row in ancestors(parents, at)[1:]]
        path = ancestors(parents, tips[-1])[::-1] if tips else []
    else:
        path = ancestors(parents, top)[::-1] if top is not None else []
    below = path[path.index(row) + 1 :] if row in path else []
    places = body.rest[:, 9:]
    least = _NEAR * body.skeleton.size
    return next((at for at in below if np.linalg.norm(places[at] - places[row]) > least), None)


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
