"""What a body stands on: its feet by role, what points up, and the corners of its soles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from synovia.errors import InputError
from synovia.model import Pose, Skeleton
from synovia.model.anatomy.feet import ankles_of, feet_of, way_up
from synovia.model.geometry import Array, align_z, axis_vector

_HEEL: Final = -0.35  # end of the sole behind the ankle, in lengths from the ankle to the toes
_HALF_WIDTH: Final = 0.25  # of a sole, in the same lengths
_SHORT: Final = 0.02  # of the body's size: a foot that reaches less far from its ankle has no toes
_FLAT: Final = 1e-6  # of the body's size: a body that is no higher above its feet has no direction up
_UPRIGHT: Final = 0.5  # cosine between the upward direction and the way from the feet to the body
_ROLES: Final = (
    "skeleton.with_roles({'left_foot': JOINT, 'right_foot': JOINT}) or a file for --roles says which joints they are"
)


def standing_feet(skeleton: Skeleton) -> list[int]:
    """Return the rows of the feet, or of the last known part of a leg without one: two, or four.

    Raises:
        InputError: If the file has several people, or a leg is not known.
    """
    if len(skeleton.people) > 1:
        raise InputError(
            "a body that stands", where=skeleton.name, value=f"{len(skeleton.people)} people", expected="one person"
        )
    feet = ankles_of(skeleton)
    if missing := [role for role, row in feet.items() if row is None]:
        what = "a body that stands"
        value = f"no joint for {', '.join(missing)}"
        raise InputError(what, where=skeleton.name, value=value, expected="a joint for each foot", hint=_ROLES)
    return [row for row in feet.values() if row is not None]


def up_of(skeleton: Skeleton, feet: Sequence[int], pose: Pose | None = None) -> Array:
    """Return the direction that points up, (3,): that of the file, else the axis nearest to the way up from the feet.

    Args:
        skeleton: The skeleton.
        feet: Rows of its feet.
        pose: The pose in which it stands; the rest pose by default.

    Raises:
        InputError: If the body lies, or hangs upside down.
    """
    way = way_up((pose or skeleton.rest_pose()).positions[None], feet_of(skeleton, feet))
    axis = int(np.argmax(np.abs(way)))
    up = np.copysign(np.eye(3)[axis], way[axis]) * np.eye(3)[axis]
    up = axis_vector(skeleton.up) if skeleton.up is not None else up
    if not way @ up >= max(_UPRIGHT * float(np.linalg.norm(way)), _FLAT * skeleton.size):
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
    for foot in feet_of(skeleton, feet):
        ankle = places[foot.points[0]]
        flat = places[list(foot.points)] - ankle
        flat = flat - np.outer(flat @ up, up)
        toe = flat[np.argmax(np.linalg.norm(flat, axis=1))]
        if np.linalg.norm(toe) < _SHORT * skeleton.size:  # a robot whose foot is one link
            across, ahead = _SHORT * skeleton.size * align_z(up).T[:2]
            corners += [ankle + side for side in (across, ahead, -across, -ahead)]
            continue
        half = _HALF_WIDTH * np.cross(up, toe)
        corners += [ankle + end * toe + sign * half for end in (_HEEL, 1.0) for sign in (1.0, -1.0)]
    return np.array(corners)
