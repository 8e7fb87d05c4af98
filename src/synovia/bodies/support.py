"""What a body stands on: its feet by role, what points up, and the corners of its soles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from synovia.errors import InputError
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, align_z, axis_vector
from synovia.model.names import SIDES

_FOUR: Final = tuple(f"{side}_{end}" for end in ("fore", "hind") for side in SIDES)
_HEEL: Final = -0.35  # end of the sole behind the ankle, in lengths from the ankle to the toes
_HALF_WIDTH: Final = 0.25  # of a sole, in the same lengths
_SHORT: Final = 0.02  # of the body's size: a foot that reaches less far from its ankle has no toes
_UPRIGHT: Final = 0.5  # cosine between the upward direction and the way from the feet to the body
_ROLES: Final = "skeleton.with_roles({'left_foot': JOINT, 'right_foot': JOINT}) says which joints they are"


def feet_of(skeleton: Skeleton) -> list[int]:
    """Return the rows of the feet, or of the last known part of a leg without one: two, or four.

    Raises:
        InputError: If the file has several people, or a leg is not known.
    """
    found = skeleton.role_rows
    if len(skeleton.people) > 1:
        raise InputError(
            "a body that stands", where=skeleton.name, value=f"{len(skeleton.people)} people", expected="one person"
        )
    four = any(role.startswith(_FOUR) for role in found)
    legs, parts = (_FOUR, ("paw", "pastern", "lower_leg")) if four else (SIDES, ("foot", "lower_leg"))
    feet = [next((found[f"{leg}_{part}"] for part in parts if f"{leg}_{part}" in found), None) for leg in legs]
    missing = [f"{leg}_{parts[0]}" for leg, row in zip(legs, feet, strict=True) if row is None]
    if missing:
        what = "a body that stands"
        value = f"no joint for {', '.join(missing)}"
        raise InputError(what, where=skeleton.name, value=value, expected="a joint for each foot", hint=_ROLES)
    return [row for row in feet if row is not None]


def up_of(skeleton: Skeleton, feet: Sequence[int], pose: Pose | None = None) -> Array:
    """Return the direction that points up, (3,): that of the file, else the axis nearest to the way up from the feet.

    Args:
        skeleton: The skeleton.
        feet: Rows of its feet.
        pose: The pose in which it stands; the rest pose by default.

    Raises:
        InputError: If the body lies, or hangs upside down.
    """
    places = (pose or skeleton.rest_pose()).positions
    others = [row for row in range(len(places)) if row not in feet and skeleton.parents[row] >= 0]
    way = places[others or list(range(len(places)))].mean(axis=0) - places[list(feet)].mean(axis=0)
    axis = int(np.argmax(np.abs(way)))
    up = (
        axis_vector(skeleton.up)
        if skeleton.up is not None
        else np.copysign(np.eye(3)[axis], way[axis]) * np.eye(3)[axis]
    )
    if way @ up < _UPRIGHT * np.linalg.norm(way):
        raise InputError(
            "pose of a body that stands", where=skeleton.name, value=f"a body that is not above its feet along {up}",
            expected="a pose on the feet", hint="give the pose in which it stands: standing_goals(skeleton, pose=...)",
        )  # fmt: skip
    return up


def soles(skeleton: Skeleton, feet: Sequence[int], up: Array, pose: Pose | None = None) -> Array:
    """Return corners of the soles, as wide as human feet: points (n, 3).

    Args:
        skeleton: The skeleton.
        feet: Rows of the ankles.
        up: Upward direction, (3,).
        pose: The pose in which the body stands; the rest pose by default.
    """
    places = (pose or skeleton.rest_pose()).positions
    corners: list[Array] = []
    for foot in feet:
        below = [foot]
        for row in below:
            below += skeleton.children[row]
        ankle = places[foot]
        flat = places[below] - ankle
        flat = flat - np.outer(flat @ up, up)
        toe = flat[np.argmax(np.linalg.norm(flat, axis=1))]
        if np.linalg.norm(toe) < _SHORT * skeleton.size:  # a robot whose foot is one link
            across, ahead = _SHORT * skeleton.size * align_z(up).T[:2]
            corners += [ankle + side for side in (across, ahead, -across, -ahead)]
            continue
        half = _HALF_WIDTH * np.cross(up, toe)
        corners += [ankle + end * toe + sign * half for end in (_HEEL, 1.0) for sign in (1.0, -1.0)]
    return np.array(corners)
