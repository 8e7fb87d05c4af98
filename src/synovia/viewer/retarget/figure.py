"""A body on the retarget page, placed next to another body and aligned by its own axes, with coloured bones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.draw.rods import build
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.viewer.scene.bodies import BodyMeshes
from synovia.viewer.scene.skin import Look, Skin

if TYPE_CHECKING:
    from viser import ClientHandle

_CHOSEN: Final = (255, 196, 0)  # colour of the joints of the chosen part


class Figure:
    """A body in one browser's scene.

    Args:
        client: The browser.
        name: Name of the body in the scene.
        skeleton: Skeleton of the body.
        look: Appearance of the body.
        scale: Scene units per length unit.
        pick: Called with the row of the joint that the user clicks.
    """

    def __init__(
        self,
        client: ClientHandle,
        name: str,
        skeleton: Skeleton,
        look: Look,
        scale: float,
        pick: Callable[[int], None],
    ) -> None:
        """Add bones, joints and surface."""
        self.skeleton, self._theme, self.scale = skeleton, look.theme, scale
        self._build, self._pick = build(skeleton, look.theme, scale), pick
        self._rows = {int(row): k for k, row in enumerate(self._build.bones)}
        frames = np.array(skeleton.rest_pose().frames)
        self._meshes = BodyMeshes(client.scene, name, self._build, frames[:, 9:] * scale, shadows=look.shadows)
        self._bones, self._joints = self._meshes.bones, self._meshes.joints
        self._joints.on_click(self._clicked)
        self._skin = Skin(client, look, scale, frames, name=name)
        self._colours = self._build.bone_colours
        self._chosen: set[int] = set()

    async def _clicked(self, event: Any) -> None:
        """Pass the row of the clicked joint to ``pick``."""
        index = event.instance_index
        if isinstance(index, int) and 0 <= index < len(self._build.joints):
            self._pick(int(self._build.joints[index]))

    def look(self, shown: str) -> None:
        """Show the surface, the bones or both; ``shown`` is one of ``skin.SHOWN``."""
        self._skin.choose(shown)
        self._bones.visible = self._joints.visible = shown != "surface"

    def show(self, frames: Array, basis: Array, foot: Array, aside: float) -> None:
        """Show a pose.

        Args:
            frames: World frames of the joints, (n, 12).
            basis: Rotation from the axes of the body to the world, (3, 3).
            foot: World point, (3,), that is placed on the floor at ``aside``.
            aside: Distance to the left of the middle, scene units.
        """
        out = np.empty_like(frames)
        out[:, :9] = (basis.T @ frames[:, :9].reshape(-1, 3, 3)).reshape(-1, 9)
        out[:, 9:] = (frames[:, 9:] - foot) @ basis + (aside / self.scale, 0.0, 0.0)
        self._meshes.move(out[:, 9:] * self.scale)
        self._skin.show(out)

    def colour(self, shares: Mapping[int, float], chosen: set[int]) -> None:
        """Colour the bones and mark the chosen joints.

        Args:
            shares: Amount of red by the row at the end of a bone, from 0 (the bone's own colour) to 1 (red).
            chosen: Rows of the chosen joints.
        """
        colours: NDArray[np.float64] = self._build.bone_colours.astype(float)
        for row, share in shares.items():
            if (k := self._rows.get(row)) is not None:
                colours[k] += share * (np.array(self._theme.missed) - colours[k])
        out = colours.astype(np.uint8)
        if (out != self._colours).any():
            self._colours = self._bones.batched_colors = out
        if chosen != self._chosen:
            self._chosen = chosen
            marked = self._build.joint_colours.copy()
            marked[[int(row) in chosen for row in self._build.joints]] = _CHOSEN
            self._joints.batched_colors = marked
