"""A body as the page draws it: tapered bones and round joints; arrays only, no browser."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.draw.camera import direction
from synovia.draw.scene import bones_of, drawn_joints, hue_of, is_crown, radii_of, up_of
from synovia.draw.theme import Theme
from synovia.model import Skeleton
from synovia.model.geometry import Array

_SIDES: Final = 12
_Mesh = tuple[NDArray[np.float32], NDArray[np.uint32]]


def rod(taper: float = 0.62) -> _Mesh:
    """Return a rod of length 1 along z with a radius that falls from 1 to ``taper``, closed: vertices and faces."""
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
    """The bones and joints of a skeleton that are drawn, with radii and colours.

    Args:
        bones: Rows whose bone (from the parent) is drawn.
        parents: Their parents.
        joints: Rows that are drawn as joints.
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
        """Return place (b, 3), turn (b, 4; wxyz) and scale (b, 3) of the bones' rods for joint positions (n, 3)."""
        start = positions[self.parents]
        along = positions[self.bones] - start
        length = np.linalg.norm(along, axis=1)
        scale = np.stack([self.thick, self.thick, np.maximum(length, 1e-6)], axis=1)
        return start, from_z(along), scale


def from_z(along: Array) -> Array:
    """Return the shortest rotations (n, 4; wxyz) from z to directions (n, 3); identity for those of length 0."""
    length = np.linalg.norm(along, axis=1, keepdims=True)
    unit = np.where(length > 0.0, along / np.where(length > 0.0, length, 1.0), (0.0, 0.0, 1.0))
    out = np.stack([1.0 + unit[:, 2], -unit[:, 1], unit[:, 0], np.zeros(len(unit))], axis=1)
    down = out[:, 0] < 1e-9  # half a turn: about any axis across z
    out[down] = (0.0, 1.0, 0.0, 0.0)
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def build(skeleton: Skeleton, theme: Theme, scale: float, added: int = 0) -> Build:
    """Return what is drawn of a skeleton.

    Args:
        skeleton: The skeleton that is solved.
        theme: Colours.
        scale: Scene units per length unit.
        added: Rows at the front that only move the root and are not drawn.
    """
    bones = [row for row in bones_of(skeleton) if row > added and skeleton.lengths[row] > 1e-6 * skeleton.size]
    radius = radii_of(skeleton, bones_of(skeleton)) * scale
    if not radius.any():
        radius[:] = 0.03
    shown = drawn_joints(skeleton)
    joints = [row for row in np.flatnonzero(shown).tolist() if row >= added]
    hues = np.array([hue_of(skeleton, row, theme) for row in range(len(skeleton))], float)
    parents = [skeleton.parents[row] for row in bones]
    thick = [0.8 * min(radius[parent], 2.0 * radius[row]) for row, parent in zip(bones, parents, strict=True)]
    rounds = [(0.5 if is_crown(skeleton, row) else 0.92) * radius[row] for row in joints]
    return Build(
        np.array(bones, np.int64),
        np.array(parents, np.int64),
        np.array(joints, np.int64),
        np.array(thick, float),
        np.array(rounds, float),
        hues[parents].astype(np.uint8).reshape(-1, 3),
        (theme.joint * hues[joints]).astype(np.uint8).reshape(-1, 3),
    )


def ahead_of(skeleton: Skeleton) -> Array:
    """Return the unit vector, (3,), to the side from which a body is looked at: its front, if its file names one."""
    return direction(skeleton.forward, "x" if up_of(skeleton)[-1] == "z" else "z")
