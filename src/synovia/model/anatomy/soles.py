"""Find the soles of a body: the lowest surface that each foot carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.anatomy.feet import Foot
from synovia.model.geometry import Array, align_z, rigid

_NEAR_FLOOR: Final = 0.03  # of the body's size: a foot at rest this near to height 0 stands on a floor there


@dataclass(frozen=True, slots=True)
class Sole:
    """The sole of a foot at rest.

    Args:
        height: Height of its lowest point, length units.
        source: What shows it: ``"shapes"`` (contact and collision shapes), ``"floor"`` (the body stands on a floor at
            height 0 at rest), or ``"points"`` (joints and tips).
    """

    height: float
    source: str


def sole_of(skeleton: Skeleton, foot: Foot, up: Array, frames: Array | None = None) -> Sole:
    """Return the sole of a foot.

    Joints of robots, and tips of toes, are above the surface on which a body stands. A rest pose whose feet are nearly
    at height 0 stands on a floor there. Shapes that reach below it are too large, such as capsules around bones.

    Args:
        skeleton: The skeleton.
        foot: The foot.
        up: Upward direction, (3,).
        frames: World frames (n, 12) of another pose that counts as rest, at any height; None for that of the file.
    """
    pose = np.array(skeleton.rest_pose().frames) if frames is None else frames
    points = float((pose[list(foot.points), 9:] @ up).min())
    turn, lowest = align_z(up).T, points
    for row in foot.points:
        place = rigid(turn @ pose[row, 9:], turn @ pose[row, :9].reshape(3, 3))
        lowest = min([lowest, *(float(shape.moved(place).bounds[0, 2]) for shape in skeleton.joints[row].shapes)])
    floor = 0.0 <= points < _NEAR_FLOOR * skeleton.size if frames is None else False
    if floor and not (0.0 <= lowest < points):
        return Sole(0.0, "floor")
    return Sole(lowest, "shapes") if -np.inf < lowest < points else Sole(points, "points")
