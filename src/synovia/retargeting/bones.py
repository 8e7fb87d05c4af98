"""Bones of a body over time: where each begins and ends, and its direction; and the axes of the body."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.roles import meeting
from synovia.model.geometry import Array, cross, unit
from synovia.model.tree import ancestors
from synovia.retargeting.body import Body

LEG_BONES: Final = tuple(f"{side}_{part}" for side in SIDES for part in ("upper_leg", "lower_leg"))
_TOP: Final = (("neck",), ("left_upper_arm", "right_upper_arm"), ("head",), ("chest",), ("spine",))
_CROWN: Final = 0.3  # leg lengths: a joint without a role that is nearer to the hips does not show the trunk
_MIDDLE: Final = 0.1  # sine of the angle from the middle plane of the body: joints with a smaller one are in the middle
_ACROSS: Final = np.cos(np.radians(60.0))  # cosine: a thigh at a larger angle to the trunk only joins hip and leg
_OPPOSITE: Final = 1e-6  # two unit vectors are opposite if (a × b, 1 + a · b) is shorter than this
_POINT: Final = 0.01  # fraction of the skeleton's size: a shorter trunk has no direction


@lru_cache(maxsize=64)
def _joins_leg(body: Body, side: str) -> bool:
    """Return whether a thigh lies across the trunk at rest, and nothing is below its shin."""
    roles, rest = body.roles, body.rest[:, 9:]
    shin, row = roles[f"{side}_lower_leg"], _crown(body)
    if f"{side}_foot" in roles or body.skeleton.children[shin] or row is None:
        return False
    thigh = unit(rest[shin] - rest[roles[f"{side}_upper_leg"]])
    return abs(float(thigh @ unit(rest[row] - hip_middle(body, body.rest)))) < _ACROSS


def bone(body: Body, role: str, frames: Array) -> Array | None:
    """Return the directions (..., 3) of a bone, for world frames (..., n, 12); None if the bone has no length.

    A bone begins at the centre of its joint and ends at the centre of the next one. In bodies whose legs are single
    bones, a bone in the place of the thigh only joins the leg to the hips; it has no direction.
    """
    side, _, part = role.partition("_")
    if part == "upper_leg" and body.whole and _joins_leg(body, side):
        return None
    end = body.end(role, frames)
    if end is None:
        return None
    way = end - body.position(role, frames)
    length = np.linalg.norm(way, axis=-1, keepdims=True)
    return way / length if float(length.min()) > 1e-9 * body.skeleton.size else None


def middle(body: Body, roles: Sequence[str], frames: Array) -> Array:
    """Return the mean position (..., 3) of several parts, for world frames (..., n, 12)."""
    return np.mean([body.position(role, frames) for role in roles], axis=0)


def hip_middle(body: Body, frames: Array) -> Array:
    """Return the midpoint (..., 3) of the hip joints."""
    return middle(body, [f"{side}_upper_leg" for side in SIDES], frames)


def trunk(body: Body, frames: Array) -> Array | None:
    """Return the directions (..., 3) from the hips to the neck, or to the next available part of the upper body.

    Without such parts, the end is the joint between the limbs that is farthest from the hips, if it is far enough. A
    body without hips has no trunk direction.
    """
    if "hips" not in body.roles:
        return None
    for roles in _TOP:
        if all(role in body.roles for role in roles):
            way = middle(body, roles, frames) - frames[..., body.roles["hips"], 9:]
            length = np.linalg.norm(way, axis=-1, keepdims=True)
            if float(length.min()) > _POINT * body.skeleton.size:
                return way / length
    row = _crown(body) if body.whole else None
    if row is None:
        return None
    way = frames[..., row, 9:] - hip_middle(body, frames)
    length = np.linalg.norm(way, axis=-1, keepdims=True)
    return way / length if float(length.min()) > _POINT * body.skeleton.size else None


@lru_cache(maxsize=64)
def _crown(body: Body) -> int | None:
    """Return the joint in the body's middle that is farthest from the hip joints at rest; None if it is too near."""
    parents, limbs = body.skeleton.parents, {row for role, row in body.roles.items() if role.startswith(SIDES)}
    hips, start = body.roles["hips"], hip_middle(body, body.rest)
    left = unit(body.rest_position("left_lower_leg") - body.rest_position("right_lower_leg"))
    best, far = None, _CROWN * body.leg
    for row in range(hips + 1, len(parents)):
        line = ancestors(parents, row)
        way = body.rest[row, 9:] - start
        away = float(np.linalg.norm(way))
        middle = abs(float(way @ left)) < _MIDDLE * away
        if hips in line and middle and not limbs & set(line) and away > far:
            best, far = row, away
    return best


def leftward(body: Body, frames: Array, up: Array, parts: Sequence[str]) -> Array:
    """Return the horizontal vectors (..., 3) from right to left parts, added; 0 if the body has no such pair.

    Args:
        body: The body.
        frames: World frames, (..., n, 12).
        up: Upward unit vector, (3,).
        parts: Names of parts, without the side.
    """
    way = np.zeros((*frames.shape[:-2], 3))
    for part in parts:
        left, right = (f"{side}_{part}" for side in SIDES)
        if left in body.roles and right in body.roles:
            way = way + body.position(left, frames) - body.position(right, frames)
    return way - (way @ up)[..., None] * up


def angle(a: Array, b: Array) -> Array:
    """Return the angles (...), degrees, between unit vectors (..., 3)."""
    return np.degrees(np.arccos(np.clip(np.sum(a * b, axis=-1), -1.0, 1.0)))


def smallest_rotation(a: Array, b: Array) -> Array:
    """Return the smallest rotation (3, 3) from unit vector a to unit vector b.

    Its quaternion is parallel to (a × b, 1 + a · b).
    """
    (ax, ay, az), (bx, by, bz) = a.tolist(), b.tolist()
    quat = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx, 1.0 + ax * bx + ay * by + az * bz
    if math.hypot(*quat) < _OPPOSITE:  # any perpendicular axis
        quat = (*cross(a, np.eye(3)[int(np.argmin(np.abs(a)))]).tolist(), 0.0)
    length = math.hypot(*quat)
    x, y, z, w = (v / length for v in quat)
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def triad(first: Array, second: Array) -> Array:
    """Return the rotation (3, 3) whose columns are two perpendicular unit vectors and their cross product."""
    return np.array([first, second, cross(first, second)]).T


def carrier_of(skeleton: Skeleton, rows: Mapping[str, int], roles: Collection[str]) -> int:
    """Return the lowest joint above all given parts that is not a collar bone; -1 for the world.

    Args:
        skeleton: The skeleton.
        rows: Row of each part, by role.
        roles: Roles of the parts that the joint carries.
    """
    own = {rows[role] for role in roles}
    firsts = [row for row in own if own.isdisjoint(ancestors(skeleton.parents, row)[1:])]
    above = [skeleton.parents[row] for row in firsts]
    row = None if min(above, default=-1) < 0 else meeting(skeleton, above)
    collars = {rows[role] for side in SIDES if (role := f"{side}_shoulder") in rows}
    while row is not None and row in collars:
        row = skeleton.parents[row]
    return -1 if row is None else row


def steadied(frames: Array, row: int, rest: Array) -> Array:
    """Return world frames (T, n, 12), moved rigidly so that one joint keeps its rest pose.

    Args:
        frames: World frames over time, (T, n, 12).
        row: Row of this joint; -1 for the world, which never moves.
        rest: World frames at rest, (n, 12).
    """
    if row < 0:
        return frames
    turn = rest[row, :9].reshape(3, 3) @ np.swapaxes(frames[:, row, :9].reshape(-1, 3, 3), 1, 2)
    out = np.empty_like(frames)
    out[..., :9] = (turn[:, None] @ frames[..., :9].reshape(*frames.shape[:2], 3, 3)).reshape(*frames.shape[:2], 9)
    out[..., 9:] = (frames[..., 9:] - frames[:, row, None, 9:]) @ np.swapaxes(turn, 1, 2) + rest[row, 9:]
    return out
