"""Find the support of a body: its feet by role, its upward direction, and the corners of its soles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from synovia.bodies.footing import Foothold, Sole, foothold
from synovia.bodies.soles import sole_of
from synovia.errors import InputError
from synovia.model import Pose, Skeleton
from synovia.model.anatomy.feet import ankles_of, feet_of
from synovia.model.anatomy.up import Lines, find_up
from synovia.model.geometry import Array, align_z, axis_vector
from synovia.model.shapes.world import World

_SHORT: Final = 0.02  # fraction of the body's size: a shorter foot, measured from the ankle, has no toes
_LEVEL: Final = 0.01  # fraction of the body's size: points of a sole this close above the lowest one touch the ground
STEP: Final = 0.25  # fraction of the body's size: a surface that is higher above a sole does not count as a step
_FLAT: Final = 1e-6  # fraction of the body's size: smallest height above the feet that defines the upward direction
_UPRIGHT: Final = 0.5  # smallest cosine between the upward direction and the vector from the feet to the body
_ROLES: Final = "skeleton.with_roles({'left_foot': JOINT, 'right_foot': JOINT}) or a file for --roles assigns them"


def standing_feet(skeleton: Skeleton) -> list[int]:
    """Return the rows of the two or four feet; for a leg without a foot, the row of its last known part.

    Raises:
        InputError: If the file has several people, or a leg is unknown.
    """
    if len(skeleton.people) > 1:
        raise InputError(
            "a body that stands", where=skeleton.name, value=f"{len(skeleton.people)} people", expected="one person"
        )
    feet = ankles_of(skeleton)
    if missing := [role for role, row in feet.items() if row is None]:
        what = "a body that stands"
        raise InputError(what, where=skeleton.name, expected=f"joints for {', '.join(missing)}", hint=_ROLES)
    return [row for row in feet.values() if row is not None]


def up_of(skeleton: Skeleton, pose: Pose | None = None) -> Array:
    """Return the upward direction of a standing body, (3,).

    Args:
        skeleton: The skeleton.
        pose: The pose in which the body stands; the rest pose by default.

    Raises:
        InputError: If the body lies or is upside down.
    """
    stance = pose or skeleton.rest_pose()
    up = axis_vector(find_up(skeleton, stance.q[None]).nearest)
    way = Lines.of(skeleton).legs(stance.positions)
    if not way @ up >= max(_UPRIGHT * float(np.linalg.norm(way)), _FLAT * skeleton.size):
        raise InputError(
            "pose of a body that stands", where=skeleton.name, expected=f"a body above its feet, along {up}",
            hint="give the pose in which it stands: standing_goals(skeleton, pose=...)",
        )  # fmt: skip
    return up


def footholds(skeleton: Skeleton, feet: Sequence[int], up: Array, pose: Pose, world: World) -> list[Foothold]:
    """Find the foothold of each foot on a world, near its position in a pose; a foot with nothing below stays there.

    Args:
        skeleton: The skeleton.
        feet: Rows of the ankles.
        up: Upward direction, (3,).
        pose: The pose.
        world: The world, with the length unit and the upward axis of the skeleton.
    """
    out: list[Foothold] = []
    for foot in feet_of(skeleton, feet):
        places = pose.positions[list(foot.points)]
        lowest = float(sole_of(skeleton, foot, up).lowest(np.array(pose.frames), up))
        toe = places[np.argmax(np.linalg.norm(places - places[0], axis=1))]
        sole = Sole.below(places[0], toe, lowest, up, 2.0 * _SHORT * skeleton.size)
        out.append(foothold(world, sole, lowest, lowest, STEP * skeleton.size))
    return out


def soles(
    skeleton: Skeleton, feet: Sequence[int], up: Array, pose: Pose | None = None, holds: Sequence[Foothold] = ()
) -> Array:
    """Return the points on which the soles stand, (n, 3); see ``sole_of``.

    Args:
        skeleton: The skeleton.
        feet: Rows of the ankles.
        up: Upward direction, (3,).
        pose: The pose in which the body stands; the rest pose by default.
        holds: Footholds of the feet on a world; empty to use the feet as in the pose.
    """
    stance, least = pose or skeleton.rest_pose(), _SHORT * skeleton.size
    corners: list[Array] = []
    moves = [hold.motion for hold in holds] or [np.eye(4)] * len(feet)
    for foot, move in zip(feet_of(skeleton, feet), moves, strict=True):
        places = sole_of(skeleton, foot, up).places(np.array(stance.frames))
        heights = places @ up
        places = places[heights <= heights.min() + _LEVEL * skeleton.size]
        if np.linalg.norm(np.ptp(places, axis=0)) < least:  # nothing shows how large the foot is
            across, ahead = least * align_z(up).T[:2]
            places = stance.position(foot.points[0]) + np.array([across, ahead, -across, -ahead])
        corners.append(places @ move[:3, :3].T + move[:3, 3])
    return np.concatenate(corners)
