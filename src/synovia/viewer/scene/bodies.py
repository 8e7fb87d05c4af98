"""Meshes of a body's bones and joints on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.draw.rods import Build, rod
from synovia.model.geometry import Array, matrix_to_quat
from synovia.model.shapes.triangles import ball

if TYPE_CHECKING:
    from viser import SceneApi

_SAME: Final = 1e-5  # largest change of a bone's length that is invisible, as a fraction of the longest bone


def wxyz(matrices: Array) -> Array:
    """Return rotation matrices (..., 3, 3) as quaternions in the order of viser, (..., 4)."""
    return matrix_to_quat(matrices)[..., [3, 0, 1, 2]]


class BodyMeshes:
    """Bones and joints in the scene of a browser, each as one mesh with many instances.

    Args:
        scene: The scene.
        name: Name of the body in the scene.
        drawn: The drawn bones and joints.
        positions: World positions of the joints, (n, 3), scene units.
        shadows: Whether the meshes cast a shadow.
    """

    def __init__(self, scene: SceneApi, name: str, drawn: Build, positions: Array, *, shadows: bool = True) -> None:
        """Add the meshes."""
        self._drawn = drawn
        place, turn, self._scales = drawn.bone_frames(positions)
        options: Any = {"material": "standard", "lod": "off", "cast_shadow": shadows}
        self.bones = scene.add_batched_meshes_simple(
            f"{name}/bones", *rod(), batched_wxyzs=turn, batched_positions=place, batched_scales=self._scales,
            batched_colors=drawn.bone_colours, **options,
        )  # fmt: skip
        self.joints = scene.add_batched_meshes_simple(
            f"{name}/joints", *ball(np.ones(3)), batched_wxyzs=np.tile((1.0, 0.0, 0.0, 0.0), (len(drawn.joints), 1)),
            batched_positions=positions[drawn.joints], batched_scales=drawn.round.astype(np.float32),
            batched_colors=drawn.joint_colours, **options,
        )  # fmt: skip

    def move(self, positions: Array) -> None:
        """Move the joints to world positions, (n, 3), scene units; lengths of bones are sent only if they change."""
        place, turn, scales = self._drawn.bone_frames(positions)
        self.bones.batched_positions = place.astype(np.float32)
        self.bones.batched_wxyzs = turn.astype(np.float32)
        if np.abs(scales - self._scales).max(initial=0.0) > _SAME * self._scales.max(initial=0.0):
            self._scales = scales
            self.bones.batched_scales = scales.astype(np.float32)
        self.joints.batched_positions = positions[self._drawn.joints].astype(np.float32)
