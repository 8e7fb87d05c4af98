"""Compute joint values within limits that give the segments of fingers given directions in the frame of the palm.

A ball joint first rotates from rest by flexion about its own axis, then sideways about an axis that flexion has
rotated. So the direction is exact wherever limits allow it, and a knuckle in a fist does not twist. The base of a thumb
rotates by the smallest rotation instead. The base of a thumb and, slightly, a knuckle also rotate about their bones, so
that the next segment bends about its own axis. Hinges follow the directions of all their segments together, by least
squares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from synovia.clips.hands.bones import FingerBones, HandBones
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, cross, matrix_to_quat, quat_to_matrix, unit
from synovia.model.limits import SwingTwist
from synovia.model.pose import clamped
from synovia.tracking.chains import Chain, Direction, is_hinge

# weight of squared steps of hinges from frame to frame, at 30 frames per second; directions have weight 1
SMOOTHNESS: Final = 1e-3
_NO_BOUND: Final = 100.0  # radians per step; larger than any step of a hinge
# Bounds for the base of a thumb and for a knuckle. Sines of the next segment's bend: below the first, the plane of the
# bend is unknown; above the second, it is clear. Radians of roll into this plane: up to the third, the roll is fully
# used; from the fourth on, it is ignored.
_THUMB: Final = (0.12, 0.35, 0.7, 1.05)
_KNUCKLE: Final = (0.2, 0.6, 0.3, 0.5)


def can_turn(skeleton: Skeleton, finger: FingerBones) -> bool:
    """Return whether ball joints move the first segments, and independent hinges (not mimic joints) all others."""
    kinds = [_kind(skeleton, group) for group in finger.groups]
    return all(kinds) and "hinges" not in kinds[: kinds.count("ball")]


def _kind(skeleton: Skeleton, group: tuple[int, ...]) -> str:
    """Return the kind of the joints that move a segment: "ball", "hinges", or "" for kinds that are not supported."""
    joints = [skeleton.joints[row] for row in group]
    if len(joints) == 1 and joints[0].kind is Kind.BALL:
        return "ball"
    return "hinges" if all(is_hinge(joint) for joint in joints) else ""


def turn_fingers(skeleton: Skeleton, hand: HandBones, wanted: Mapping[str, Array], q: Array, fps: float) -> None:
    """Rotate fingers so that their segments have given directions in the frame of the palm; change q (T, nq) in place.

    Args:
        skeleton: The body.
        hand: The hand of the body.
        wanted: Directions of the segments of each finger to rotate, (T, n, 3), by name; see ``can_turn``.
        q: Joint values, (T, nq); those of the fingers change, and the solve of hinges starts from them.
        fps: Frames per second.
    """
    rest = np.array(skeleton.rest_pose().frames)[:, :9].reshape(-1, 3, 3)
    for name, ways in wanted.items():
        finger = hand.fingers[name]
        world = ways @ hand.rest.T
        balls = sum(_kind(skeleton, group) == "ball" for group in finger.groups)
        # orientation of the joint ``at`` if the palm is at rest
        turn = np.broadcast_to(rest[hand.palm], (len(q), 3, 3))
        at = hand.palm
        for k in range(balls):
            row = finger.rows[k]
            where = skeleton.q_slice(row)
            begin = quat_to_matrix(skeleton.rest_q[where])
            frame = rest[row].T @ hand.rest @ finger.bases[k]  # axes of the segment in its joint's frame
            zero = turn @ (rest[at].T @ rest[row])
            seen = np.einsum("tji,tj->ti", zero @ frame, world[:, k])
            thumb = name == "thumb"
            motion = _swing(seen) if thumb and k == 0 else _bent(seen)
            if k == 0 and len(finger.rows) > 1:
                after = frame.T @ rest[row].T @ hand.rest @ finger.bases[1]
                bounds = _THUMB if thumb else _KNUCKLE
                motion = motion @ _about_y(_roll(zero @ frame @ motion @ after, world[:, 1], bounds))
            q[:, where] = matrix_to_quat(begin @ frame @ motion @ frame.T)
            if isinstance(skeleton.joints[row].limit, SwingTwist):
                q[:, where] = clamped(skeleton, q)[:, where]
            turn, at = zero @ begin.T @ quat_to_matrix(q[:, where]), row
        if balls < len(finger.rows):
            _turn_hinges(skeleton, finger, world, q, (turn @ rest[at].T, rest), fps)


def _turn_hinges(
    skeleton: Skeleton, finger: FingerBones, world: Array, q: Array, above: tuple[Array, Array], fps: float
) -> None:
    """Rotate the hinges that move the last segments of a finger; change q (T, nq) in place.

    Args:
        skeleton: The body.
        finger: The finger.
        world: Directions of all segments, (T, n, 3), in the world frame, with the palm at rest.
        q: Joint values, (T, nq).
        above: Rotation from rest of the joint above the hinges, (T, 3, 3), and the rest orientations of all joints.
        fps: Frames per second.
    """
    first = [_kind(skeleton, group) for group in finger.groups].index("hinges")
    rows, top = [finger.end], finger.groups[first][0]
    while rows[-1] != top:
        rows.append(skeleton.parents[rows[-1]])
    chain = Chain(skeleton, rows[::-1])
    number = {row: k for k, row in enumerate(chain.rows)}
    ends = [(number[row], np.zeros(3)) for row in finger.rows[1:]] + [(number[finger.end], finger.offset)]
    terms = [
        Direction(number[finger.rows[k]], ends[k][0], ends[k][1], world[:, k], 1.0)
        for k in range(first, len(finger.rows))
    ]
    turned, rest = above
    base = np.concatenate([(turned @ rest[chain.base]).reshape(-1, 9), np.zeros((len(q), 3))], axis=1)
    bounds = np.full((len(q) - 1, len(chain)), _NO_BOUND)
    x, _ = chain.follow(base, q[:, chain.at], terms, bounds=bounds, smoothness=SMOOTHNESS * (fps / 30.0) ** 2)
    q[:, chain.at] = x


def _bent(ways: Array) -> Array:
    """Return rotations (T, 3, 3) from y to directions (T, 3): first about x, then sideways about the rotated z."""
    beta, theta = -np.arcsin(np.clip(ways[:, 0], -1.0, 1.0)), np.arctan2(ways[:, 2], ways[:, 1])
    cb, sb, ct, st = np.cos(beta), np.sin(beta), np.cos(theta), np.sin(theta)
    zero = np.zeros(len(ways))
    rows = [[cb, -sb, zero], [ct * sb, ct * cb, -st], [st * sb, st * cb, ct]]
    return np.moveaxis(np.array(rows), 2, 0)


def _swing(ways: Array) -> Array:
    """Return the smallest rotations (T, 3, 3) from y to directions (T, 3)."""
    y = np.broadcast_to((0.0, 1.0, 0.0), ways.shape)
    quats = np.concatenate([cross(y, ways), 1.0 + ways[:, 1:2]], axis=1)
    # opposite directions: rotate by 180° about a perpendicular axis
    quats[np.linalg.norm(quats, axis=1) < 1e-9] = (1.0, 0.0, 0.0, 0.0)
    return quat_to_matrix(unit(quats))


def _about_y(angles: Array) -> Array:
    """Return rotations about y by angles (T,), as matrices (T, 3, 3)."""
    quats = np.zeros((len(angles), 4))
    quats[:, 1], quats[:, 3] = np.sin(0.5 * angles), np.cos(0.5 * angles)
    return quat_to_matrix(quats)


def _roll(frames: Array, ways: Array, bounds: tuple[float, float, float, float]) -> Array:
    """Return the roll angles (T,) of a segment about its bone that let the next segment bend about its own axis.

    The angle fades to 0 where the next segment hardly bends, or where the angle is large.

    Args:
        frames: Frames of the next segment before the roll, (T, 3, 3).
        ways: Target directions of the next segment, (T, 3).
        bounds: ``_THUMB`` or ``_KNUCKLE``.
    """
    low, high, most, never = bounds
    seen = np.einsum("tji,tj->ti", frames, ways)
    bend = np.hypot(seen[:, 0], seen[:, 2])
    angle = np.arctan2(seen[:, 0] * np.sign(seen[:, 2]), np.abs(seen[:, 2]))
    shown = np.clip((bend - low) / (high - low), 0.0, 1.0)
    meant = np.clip((never - np.abs(angle)) / (never - most), 0.0, 1.0)
    return shown * meant * angle
