"""The surface of a body in a browser's scene: it follows the joints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.geometry import Array, matrix_to_quat
from synovia.viewer.surface import Surface
from synovia.viewer.surface.base import as_matrices

if TYPE_CHECKING:
    from viser import ClientHandle

SHOWN: Final = ("both", "surface", "bones")
_THROUGH: Final = 0.45  # opacity where the bones are to be seen through it
_STILL: Final = 1e-5  # of a scene unit, and of a quaternion: below, a bone is not sent again


class Skin:
    """A surface in one browser's scene.

    Args:
        client: The browser.
        surface: What the body looks like.
        scale: Scene units per length unit.
        world: Frames of the joints now, (n, 12), length units.
        shadows: Whether it throws a shadow.
    """

    def __init__(self, client: ClientHandle, surface: Surface, *, scale: float, world: Array, shadows: bool) -> None:
        """Make the meshes."""
        self._scale = scale
        self._parts: list[tuple[Any, Any, Array, Array]] = []
        for number, part in enumerate(surface.parts):
            weights = np.zeros((len(part.vertices), len(part.rows)), np.float32)
            for k in range(part.bones.shape[1]):
                np.add.at(weights, (np.arange(len(weights)), part.bones[:, k]), part.weights[:, k])
            places, turns = part.bind[:, :3, 3] * scale, _wxyz(part.bind[:, :3, :3])
            handle = client.scene.add_mesh_skinned(
                f"/body/surface/{number}",
                (part.vertices * scale).astype(np.float32),
                part.faces.astype(np.uint32),
                bone_wxyzs=turns,
                bone_positions=places,
                skin_weights=weights,
                color=part.colour,
                flat_shading=part.flat,
                side="double",
                opacity=_THROUGH,
                cast_shadow=shadows,
                receive_shadow=False,
            )
            self._parts.append((part, handle, places, turns))
        self.show(world)

    def choose(self, shown: str) -> None:
        """Show the surface over the bones, alone, or not at all; ``shown`` is one of ``SHOWN``."""
        for _, handle, _, _ in self._parts:
            handle.visible = shown != "bones"
            handle.opacity = _THROUGH if shown == "both" else None

    def show(self, world: Array) -> None:
        """Let the surface follow the joints' frames, (n, 12), length units; bones that stand still are not sent."""
        frames = as_matrices(world)
        for part, handle, places, turns in self._parts:
            now = frames[part.rows]
            place, turn = now[:, :3, 3] * self._scale, _wxyz(now[:, :3, :3])
            for bone in np.flatnonzero(np.abs(place - places).max(axis=1) > _STILL).tolist():
                handle.bones[bone].position = place[bone]
                places[bone] = place[bone]
            for bone in np.flatnonzero(np.abs(turn - turns).max(axis=1) > _STILL).tolist():
                handle.bones[bone].wxyz = turn[bone]
                turns[bone] = turn[bone]


def _wxyz(matrices: Array) -> Array:
    """Return rotation matrices (b, 3, 3) as viser takes them, (b, 4)."""
    return np.roll(matrix_to_quat(matrices), 1, axis=1)
