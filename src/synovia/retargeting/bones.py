"""Bones of a body over time: where each begins and ends, its direction, and the sagittal axes of the body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from synovia.model.geometry import Array, quat_to_matrix
from synovia.model.names import SIDES
from synovia.retargeting.body import Body

# The part at the other end of each part
NEXT: Final[Mapping[str, str]] = {
    "upper_leg": "lower_leg", "lower_leg": "foot", "foot": "toes", "upper_arm": "lower_arm", "lower_arm": "hand",
}  # fmt: skip
LEG_BONES: Final = tuple(f"{side}_{part}" for side in SIDES for part in ("upper_leg", "lower_leg"))
_TOP: Final = (("neck",), ("left_upper_arm", "right_upper_arm"), ("head",), ("chest",), ("spine",))
_POINT: Final = 0.01  # a shorter bone has no direction; as a part of the skeleton's size


def end_rows(body: Body, role: str) -> tuple[int, ...]:
    """Return the rows at the end of a bone; empty if nothing is there.

    This is the next part of the limb. A limb without that part ends at the nearest points below: fingers, or a tip.
    """
    side, _, part = role.partition("_")
    after = f"{side}_{NEXT.get(part, '')}"
    if after in body.roles:
        return (body.roles[after],)
    skeleton = body.skeleton
    places = body.rest[:, 9:]
    least = _POINT * skeleton.size
    rows = list(skeleton.children[body.roles[role]])
    while rows:
        apart = [row for row in rows if np.linalg.norm(places[row] - body.rest_position(role)) > least]
        if apart:
            return tuple(apart)
        rows = [child for row in rows for child in skeleton.children[row]]
    return ()


def bone(body: Body, role: str, frames: Array) -> Array | None:
    """Return the directions (..., 3) of a bone for world frames (..., n, 12); None if it has no length.

    A bone goes from the centre of its joint to that of the next one.
    """
    ends = end_rows(body, role)
    if not ends:
        return None
    after = next((other for other, row in body.roles.items() if (row,) == ends), None)
    end = frames[..., list(ends), 9:].mean(-2) if after is None else body.position(after, frames)
    way = end - body.position(role, frames)
    length = np.linalg.norm(way, axis=-1, keepdims=True)
    return way / length if float(length.min()) > 1e-9 * body.skeleton.size else None


def middle(body: Body, roles: Sequence[str], frames: Array) -> Array:
    """Return the mean position (..., 3) of some parts for world frames (..., n, 12)."""
    return np.mean([body.position(role, frames) for role in roles], axis=0)


def hip_middle(body: Body, frames: Array) -> Array:
    """Return the midpoint (..., 3) of the hip joints."""
    return middle(body, [f"{side}_upper_leg" for side in SIDES], frames)


def lowest_parts(body: Body, frames: Array) -> Array:
    """Return the midpoint (..., 3) of the ankles, or of the knees if there are no feet."""
    feet = [role if (role := f"{side}_foot") in body.roles else f"{side}_lower_leg" for side in SIDES]
    return middle(body, feet, frames)


def trunk(body: Body, frames: Array) -> Array | None:
    """Return the directions (..., 3) from the hips to the neck, or to the part that the body has instead."""
    for roles in _TOP:
        if all(role in body.roles for role in roles):
            way = middle(body, roles, frames) - frames[..., body.roles["hips"], 9:]
            length = np.linalg.norm(way, axis=-1, keepdims=True)
            if float(length.min()) > _POINT * body.skeleton.size:
                return way / length
    return None


def leftward(body: Body, frames: Array, up: Array, parts: Sequence[str]) -> Array:
    """Return the horizontal vectors (..., 3) from the right to the left parts; 0 if the body has none.

    Args:
        body: The body.
        frames: World frames, (..., n, 12).
        up: Unit vector, (3,).
        parts: Names of parts without side.
    """
    way = np.zeros((*frames.shape[:-2], 3))
    for part in parts:
        left, right = (f"{side}_{part}" for side in SIDES)
        if left in body.roles and right in body.roles:
            way = way + body.position(left, frames) - body.position(right, frames)
    return way - (way @ up)[..., None] * up


def angle(a: Array, b: Array) -> Array:
    """Return the angles (...) between unit vectors (..., 3), degrees."""
    return np.degrees(np.arccos(np.clip(np.sum(a * b, axis=-1), -1.0, 1.0)))


def unit(v: Array) -> Array:
    """Return v / |v| along the last axis; vectors of length 0 stay 0."""
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    return v / np.where(length > 0.0, length, 1.0)


def rotation_between(a: Array, b: Array) -> Array:
    """Return the smallest rotation (3, 3) from unit vector a to unit vector b.

    Its quaternion is in the direction of (a × b, 1 + a · b).
    """
    quat = np.append(np.cross(a, b), 1.0 + np.dot(a, b))
    if np.linalg.norm(quat) < 1e-6:  # opposite directions: any normal axis
        quat = np.append(np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))]), 0.0)
    return quat_to_matrix(quat / np.linalg.norm(quat))


def triad(first: Array, second: Array) -> Array:
    """Return the rotation whose columns are two unit vectors at right angles, and the third of the right-handed set."""
    return np.array([first, second, np.cross(first, second)]).T
