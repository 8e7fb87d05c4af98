"""The bones of a body as tapered rods and its joints as balls, for scenes in a browser; and the axes of the body."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.draw.camera import direction
from synovia.draw.loops import BAR, KNOT, ROD, bars_of
from synovia.draw.scene import bones_of, drawn_joints, hue_of, is_crown, thickness
from synovia.draw.theme import Theme
from synovia.model import Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import Array

_SIDES: Final = 12
_TAPER: Final = 0.62  # radius of a rod at its end, as a fraction of the radius at its start
_HEAD: Final = (0.34, 0.21)  # radii of a head at its joint and at its tip, as fractions of its length
_Mesh = tuple[NDArray[np.float32], NDArray[np.uint32]]


def rod(taper: float = _TAPER) -> _Mesh:
    """Return vertices and faces of a closed rod of length 1 along z, with end radii 1 (start) and ``taper`` (end)."""
    around = np.linspace(0.0, 2.0 * math.pi, _SIDES, endpoint=False)
    ring = np.stack([np.cos(around), np.sin(around), np.zeros(_SIDES)], axis=1)
    far = ring * (taper, taper, 0.0) + (0.0, 0.0, 1.0)
    vertices = np.concatenate([ring, far, [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]])
    faces: list[tuple[int, int, int]] = []
    for i in range(_SIDES):
        j = (i + 1) % _SIDES
        faces += [(i, j, _SIDES + i), (j, _SIDES + j, _SIDES + i)]
        faces += [(2 * _SIDES, j, i), (2 * _SIDES + 1, _SIDES + i, _SIDES + j)]
    return vertices.astype(np.float32), np.array(faces, np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class Build:
    """The drawn bones and joints of a skeleton, with radii and colours.

    Args:
        bones: Rows of the bones; each runs from its parent to its row.
        parents: Parents of ``bones``.
        joints: Rows of the joints.
        thick: Radius of each bone at its parent, scene units.
        round: Radius of each drawn joint, scene units.
        bone_colours: (bones, 3), 0 to 255.
        joint_colours: (joints, 3), 0 to 255.
    """

    bones: NDArray[np.int64]
    parents: NDArray[np.int64]
    joints: NDArray[np.int64]
    thick: Array
    round: Array
    bone_colours: NDArray[np.uint8]
    joint_colours: NDArray[np.uint8]

    def bone_frames(self, positions: Array) -> tuple[Array, Array, Array]:
        """Return positions (b, 3), rotations (b, 4; wxyz) and scales (b, 3) of the rods for joint positions (n, 3)."""
        start = positions[self.parents]
        along = positions[self.bones] - start
        length = np.linalg.norm(along, axis=1)
        scale = np.stack([self.thick, self.thick, np.maximum(length, 1e-6)], axis=1)
        return start, from_z(along), scale


def from_z(along: Array) -> Array:
    """Return the shortest rotations (n, 4; wxyz) from z to directions (n, 3); identity for directions of length 0."""
    length = np.linalg.norm(along, axis=1, keepdims=True)
    unit = np.where(length > 0.0, along / np.where(length > 0.0, length, 1.0), (0.0, 0.0, 1.0))
    out = np.stack([1.0 + unit[:, 2], -unit[:, 1], unit[:, 0], np.zeros(len(unit))], axis=1)
    down = out[:, 0] < 1e-9  # rotation by half a turn; any axis perpendicular to z will do
    out[down] = (0.0, 1.0, 0.0, 0.0)
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def build(skeleton: Skeleton, theme: Theme, scale: float) -> Build:
    """Return the drawn bones and joints of a skeleton.

    Args:
        skeleton: The skeleton.
        theme: Colours.
        scale: Scene units per length unit.
    """
    bones = [row for row in bones_of(skeleton) if skeleton.lengths[row] > 1e-6 * skeleton.size]
    radius = thickness(skeleton) * scale
    if not radius.any():
        radius[:] = 0.03
    joints = np.flatnonzero(drawn_joints(skeleton)).tolist()
    hues = np.array([hue_of(skeleton, row, theme) for row in range(len(skeleton))], float)
    parents = [skeleton.parents[row] for row in bones]
    thick = [0.8 * min(radius[parent], 2.0 * radius[row]) for row, parent in zip(bones, parents, strict=True)]
    rounds = {row: 0.92 * radius[row] for row in joints}
    for k, row in enumerate(bones):
        if is_crown(skeleton, row):  # draw a head as a rod between two balls
            length = float(skeleton.lengths[row]) * scale
            thick[k] = _HEAD[0] * length
            rounds |= {parents[k]: _HEAD[0] * length, row: _HEAD[1] * length}
    return Build(
        np.array(bones, np.int64),
        np.array(parents, np.int64),
        np.array(joints, np.int64),
        np.array(thick, float),
        np.array([rounds[row] for row in joints], float),
        hues[parents].astype(np.uint8).reshape(-1, 3),
        (theme.joint * hues[joints]).astype(np.uint8).reshape(-1, 3),
    )


def ahead_of(skeleton: Skeleton) -> Array:
    """Return the unit vector, (3,), that a body faces: the forward axis of its file, else a default axis."""
    return direction(skeleton.forward, "x" if find_up(skeleton).name[-1] == "z" else "z")


def axes_of(skeleton: Skeleton) -> Array:
    """Return the rotation (3, 3) from body axes (x left, y up, z ahead) to the world, using the file's axes."""
    up, ahead = find_up(skeleton).vector, ahead_of(skeleton)
    left = np.cross(up, ahead)
    return np.stack([left, up, np.cross(left, up)], axis=1)


def extent(skeleton: Skeleton) -> float:
    """Return the largest extent of a body at rest, length units."""
    return float(np.ptp(skeleton.rest_pose().positions, axis=0).max()) or 1.0


def sizes_of_loops(skeleton: Skeleton) -> tuple[Array, Array]:
    """Return the radii of the bars, (b,), and of the knots, (k,), length units."""
    radius = thickness(skeleton)
    bars, knots = bars_of(skeleton)
    thick = np.array([(ROD if bar.rod else BAR) * radius[bar.row] for bar in bars])
    return thick, np.array([KNOT * radius[knot.row] for knot in knots])


def colours_of_loops(skeleton: Skeleton, theme: Theme) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the colours of the bars, (b, 3), and of the knots, (k, 3), 0 to 255."""
    bars, knots = bars_of(skeleton)
    hues = [theme.loop if bar.rod else hue_of(skeleton, bar.row, theme) for bar in bars]
    return np.array(hues, np.uint8).reshape(-1, 3), np.array([theme.loop] * len(knots), np.uint8).reshape(-1, 3)
