"""Loops of a body on the page: bars, rods that keep a distance, and the points that are tied together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from synovia.draw.loops import points_of
from synovia.draw.rods import colours_of_loops, from_z, rod, sizes_of_loops
from synovia.draw.theme import Theme
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.shapes.triangles import ball

if TYPE_CHECKING:
    from viser import SceneApi


class LoopMeshes:
    """The loops in the scene of a browser, as two instanced meshes.

    Args:
        scene: The scene.
        skeleton: The skeleton; it must have loops with positions.
        theme: Colours.
        scale: Scene units per length unit.
        frames: World frames of the joints, (n, 12), length units.
    """

    def __init__(self, scene: SceneApi, skeleton: Skeleton, theme: Theme, scale: float, frames: Array) -> None:
        """Add the meshes."""
        self._skeleton, self._scale = skeleton, scale
        self._thick, round_ = sizes_of_loops(skeleton)
        self._thick, round_ = self._thick * scale, round_ * scale
        place, turn, size, knots = self._placed(frames)
        colours = colours_of_loops(skeleton, theme)
        options: Any = {"material": "standard", "lod": "off"}
        self._bars = scene.add_batched_meshes_simple(
            "/loops/bars", *rod(taper=1.0), batched_wxyzs=turn, batched_positions=place, batched_scales=size,
            batched_colors=colours[0], **options,
        )  # fmt: skip
        self._knots = scene.add_batched_meshes_simple(
            "/loops/knots", *ball(np.ones(3)), batched_wxyzs=np.tile((1.0, 0.0, 0.0, 0.0), (len(knots), 1)),
            batched_positions=knots, batched_scales=round_.astype(np.float32), batched_colors=colours[1], **options,
        )  # fmt: skip

    def move(self, frames: Array) -> None:
        """Move the loops to the given world frames of the joints, (n, 12), length units."""
        place, turn, size, knots = self._placed(frames)
        self._bars.batched_positions, self._bars.batched_wxyzs = place, turn
        self._bars.batched_scales = size
        self._knots.batched_positions = knots

    def set_theme(self, theme: Theme) -> None:
        """Change the colours."""
        self._bars.batched_colors, self._knots.batched_colors = colours_of_loops(self._skeleton, theme)

    def show(self, on: bool) -> None:
        """Show or hide the loops."""
        self._bars.visible = self._knots.visible = on

    def _placed(self, frames: Array) -> tuple[Any, Any, Any, Any]:
        """Return positions, rotations and scales of the bars, and positions of the knots, in scene units."""
        ends, knots = points_of(self._skeleton, frames)
        along = (ends[:, 1] - ends[:, 0]) * self._scale
        length = np.maximum(np.linalg.norm(along, axis=1), 1e-6)
        size = np.stack([self._thick, self._thick, length], axis=1)
        place = ends[:, 0] * self._scale
        place, turn, size, knots = (
            part.astype(np.float32) for part in (place, from_z(along), size, knots * self._scale)
        )
        return place, turn, size, knots
