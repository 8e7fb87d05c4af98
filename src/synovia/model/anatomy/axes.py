"""The anatomy of a body at rest: its axes (left, up, forward), and the hinges of its joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from synovia.errors import InputError
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, axis_vector

_NO_WIDTH: Final = 1e-6  # fraction of the skeleton's size: smaller distances count as 0
# cosine between the direction from feet to hips and an axis of the file, above which this axis is up
_NEARLY: Final = float(np.cos(np.radians(30.0)))
_FOLDED: Final = 0.5  # cosine between a leg and the trunk, above which the leg is folded up along the trunk
_PARALLEL: Final = 0.95  # cosine between the axes of two hinges, above which they count as parallel
_ASIDE: Final = 0.02  # fraction of the skeleton's size: hinges whose axes are farther apart are at different places
_PAIRS: Final = ("upper_leg", "upper_arm", "shoulder"), ("lower_leg", "foot", "lower_arm", "hand")


def body_axes(
    places: Mapping[str, Array], size: float, up: str | Array | None, name: str, ahead: Array | None = None
) -> Array:
    """Return the rotation (3, 3) from the axes of a body (x left, y up, z forward) to the world.

    Args:
        places: Rest positions, (3,), by role.
        size: Size of the skeleton, length units.
        up: Upward axis of the file, such as ``"z"``, or a unit vector (3,); None if unknown.
        name: Name of the skeleton, for error messages.
        ahead: Forward direction of a body without pairs of limbs, such as a single arm, (3,); None to require a pair.

    Raises:
        InputError: If left and right cannot be distinguished.
    """
    above = _above(places)
    axis = int(np.argmax(np.abs(above)))
    if up is not None:
        above = axis_vector(up) if isinstance(up, str) else up
    elif abs(above[axis]) > _NEARLY:  # files rarely state their up axis, but bodies stand along it
        above = np.sign(above[axis]) * np.eye(3)[axis]
    left = np.zeros(3)
    for parts in _PAIRS:
        pairs = [(f"left_{part}", f"right_{part}") for part in parts]
        both = [places[a] - places[b] for a, b in pairs if a in places and b in places]
        left = np.sum(both, axis=0) if both else left
        left = left - np.dot(left, above) * above
        if np.linalg.norm(left) > _NO_WIDTH * size:
            break  # limbs that begin at one point end at different points
    else:
        if ahead is None:
            raise InputError(f"left and right limbs of {name} coincide", expected="limbs that are apart at rest")
        left = np.cross(above, ahead)
    left = left / np.linalg.norm(left)
    return np.array([left, above, np.cross(left, above)], np.float64).T.copy()


def is_folded(places: Mapping[str, Array]) -> bool:
    """Return whether a leg of a body points up along the trunk, as in zero poses with all bones in line.

    In such a pose, the forward direction is unknown.

    Args:
        places: Rest positions (3,) by role.
    """
    trunk = _trunk(places)
    legs = [begin - end for begin, end in _legs(places)]
    return any(
        float(leg @ trunk) < -_FOLDED * float(np.linalg.norm(leg)) * float(np.linalg.norm(trunk)) for leg in legs
    )


def _above(places: Mapping[str, Array]) -> Array:
    """Return the direction from feet to hips of a body at rest, (3,); for a body without legs, along its trunk."""
    legs = [begin - end for begin, end in _legs(places)]
    way = np.mean(legs, axis=0) if len(legs) == 2 else np.zeros(3)
    if not way.any():
        way = _trunk(places)
    length = float(np.linalg.norm(way))
    return way / length if length > 0.0 else np.array([0.0, 1.0, 0.0])


def _legs(places: Mapping[str, Array]) -> list[tuple[Array, Array]]:
    """Return the beginning and end, (3,) each, of each leg that has both; the end is the ankle, or else the knee."""
    out: list[tuple[Array, Array]] = []
    for side in SIDES:
        end = next((places[role] for part in ("foot", "lower_leg") if (role := f"{side}_{part}") in places), None)
        if end is not None and f"{side}_upper_leg" in places:
            out.append((places[f"{side}_upper_leg"], end))
    return out


def _trunk(places: Mapping[str, Array]) -> Array:
    """Return the vector from the lowest to the highest joint of the trunk, (3,); 0 without a trunk."""
    line = [places[role] for role in ("hips", "spine", "chest", "neck", "head") if role in places]
    return line[-1] - line[0] if line else np.zeros(3)


def faced_axis(places: Mapping[str, Array], up: Array | None) -> str | None:
    """Return the axis that a body faces at rest, such as ``"-z"``; None if hips and shoulders do not determine it.

    They determine it if all known legs point down, and the direction to the left is horizontal and along an axis.

    Args:
        places: Rest positions (3,) by role.
        up: Upward unit vector, (3,); None for the axis that is nearest to the direction from feet to hips.
    """
    if up is None:
        above = _above(places)
        nearest = int(np.argmax(np.abs(above)))
        upward = np.eye(3)[nearest] * (-1.0 if above[nearest] < 0.0 else 1.0)
    else:
        upward = up
    for side in SIDES:
        ends = [places.get(f"{side}_{part}") for part in ("upper_leg", "lower_leg", "foot")]
        begin, *below = [end for end in ends if end is not None] or [np.zeros(3)]
        if below and float((begin - below[-1]) @ upward) < _NEARLY * float(np.linalg.norm(begin - below[-1])):
            return None
    for part in ("upper_leg", "upper_arm", "shoulder"):
        left, right = (places.get(f"{side}_{part}") for side in SIDES)
        if left is None or right is None:
            continue
        ahead = np.cross(left - right, upward)
        axis = int(np.argmax(np.abs(ahead)))
        if abs(ahead[axis]) > _NEARLY * float(np.linalg.norm(left - right)):
            return f"{'-' if ahead[axis] < 0.0 else ''}{'xyz'[axis]}"
    return None


def of_joint(frames: Array, axes: Array, size: float) -> int:
    """Return the index of the first hinge of a group that belongs to a joint; hinges before it move the whole joint.

    The axis of a hinge that moves the whole joint, such as a collar bone's, is parallel to the axis of a later hinge,
    but at another place.

    Args:
        frames: World frames of the hinges at rest, (n, 12), from base to tip.
        axes: Axes of the hinges, each in its own frame, (n, 3).
        size: Size of the skeleton, length units.
    """
    turns = np.einsum("kij,kj->ki", frames[:, :9].reshape(-1, 3, 3), axes)
    for k in range(len(frames) - 2):
        along = turns[k + 1 :] @ turns[k]
        ways = frames[k + 1 :, 9:] - frames[k, 9:]
        apart = np.linalg.norm(ways - (ways @ turns[k])[:, None] * turns[k], axis=1)
        if not bool(((np.abs(along) > _PARALLEL) & (apart > _ASIDE * size)).any()):
            return k
    return max(len(frames) - 2, 0)
