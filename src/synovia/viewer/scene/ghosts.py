"""Translucent bodies in one browser's scene: results of other solvers, and the poses of a clip before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.draw.rods import Build, rod
from synovia.model.geometry import Array
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.scene.canvas import Canvas

if TYPE_CHECKING:
    from viser import ClientHandle

_Floats = NDArray[np.float32]
_THIN: Final = 0.6  # thickness of a ghost's bones, as a fraction of the body's bones
ONION: Final = ("off", "frames", "keys")  # modes of the onion skin: poses around the current pose
_SIDES: Final = {"before": (214, 110, 46), "after": (46, 120, 214)}  # colours of earlier and later poses
_ORIGINAL: Final = (96, 96, 120), 0.5  # colour and opacity of the ghost of the clip itself
_APART: Final = 1e-3  # scene units; the ghost of the clip is only shown if joints differ by more
_OPACITIES: Final = (0.4, 0.2)  # opacities of the nearest ghost on each side, and of the next ghost


class Ghost:
    """The bones of a translucent body.

    Args:
        client: The browser.
        name: Name of the body in the scene.
        build: The drawn bones.
        positions: World positions of the joints, (n, 3), scene units.
        colour: Red, green and blue, 0 to 255.
        opacity: Opacity.
    """

    def __init__(
        self,
        client: ClientHandle,
        name: str,
        build: Build,
        positions: Array,
        colour: tuple[int, ...],
        opacity: float,
    ) -> None:
        """Add the mesh."""
        self._build = build
        vertices, faces = rod()
        place, turn, scale = self._frames(positions)
        self._mesh: Any = client.scene.add_batched_meshes_simple(
            name,
            vertices,
            faces,
            batched_wxyzs=turn,
            batched_positions=place,
            batched_scales=scale,
            batched_colors=np.array(colour, np.uint8),
            opacity=opacity,
            lod="off",
            cast_shadow=False,
        )

    def _frames(self, positions: Array) -> tuple[_Floats, _Floats, _Floats]:
        """Return positions, rotations and scales of the bones."""
        place, turn, scale = self._build.bone_frames(positions)
        scale[:, :2] *= _THIN
        return place.astype(np.float32), turn.astype(np.float32), scale.astype(np.float32)

    def move(self, positions: Array) -> None:
        """Move the joints to world positions, (n, 3), scene units, and show the body."""
        mesh = self._mesh
        mesh.batched_positions, mesh.batched_wxyzs, mesh.batched_scales = self._frames(positions)
        mesh.visible = True

    def hide(self) -> None:
        """Hide the body."""
        self._mesh.visible = False

    def remove(self) -> None:
        """Remove the mesh."""
        self._mesh.remove()


class Original:
    """The ghost of the clip without layers and keys, shown if the body differs from it.

    Args:
        canvas: The browser, and the scale and colours of its scene.
        animation: The clip.
        build: The drawn bones.

    Attributes:
        shown: Whether the ghost is enabled.
    """

    def __init__(self, canvas: Canvas, animation: Animation, build: Build) -> None:
        """Start without a ghost."""
        self.shown = False
        self._client, self._scale, self._animation, self._build = canvas.client, canvas.scale, animation, build
        self._ghost: Ghost | None = None
        self._seen = False

    def show(self, joints: Array) -> None:
        """Show the ghost if it differs from the joints of the body, (n, 3), scene units."""
        pose = self._animation.original() if self.shown else None
        places = None if pose is None else pose.positions * self._scale
        if places is None or float(np.abs(places - joints).max(initial=0.0)) < _APART:
            if self._ghost is not None and self._seen:
                self._ghost.hide()
            self._seen = False
            return
        self._seen = True
        if self._ghost is None:
            self._ghost = Ghost(self._client, "/original", self._build, places, *_ORIGINAL)
        else:
            self._ghost.move(places)


class Onion:
    """The onion skin: two poses of the clip before the current pose and two after it, while the clip is paused.

    Args:
        canvas: The browser, and the scale and colours of its scene.
        animation: The clip.
        build: The drawn bones.

    Attributes:
        mode: One of ``ONION``: no poses, poses at regular frames, or poses of the nearest keys.
        every: Number of frames between poses.
    """

    def __init__(self, canvas: Canvas, animation: Animation, build: Build) -> None:
        """Start without ghosts."""
        self.mode, self.every = ONION[0], 5
        self._client, self._scale, self._animation, self._build = canvas.client, canvas.scale, animation, build
        self._ghosts: dict[tuple[str, int], Ghost] = {}
        self._drawn: tuple[Any, ...] | None = None

    def show(self) -> None:
        """Show the poses around the current pose; send them only if they have changed."""
        animation = self._animation
        with animation.lock:
            play = animation.play
            state = (
                self.mode,
                self.every,
                play.time,
                play.playing,
                play.motion,
                play.edited,
                play.keys,
                play.weight,
            )
            if state == self._drawn:
                return
            self._drawn = state
            frames = self.frames()
            fps = 1.0 if play.motion is None else play.motion.fps
            poses = {which: animation.start(frame / fps) for which, frame in frames.items()}
        for which in [which for which in self._ghosts if which not in poses]:
            self._ghosts[which].hide()
        for which, pose in poses.items():
            positions = pose.positions[animation.rooted.added :] * self._scale
            if which in self._ghosts:
                self._ghosts[which].move(positions)
            else:
                side, number = which
                self._ghosts[which] = Ghost(
                    self._client, f"/onion/{side}{number}", self._build, positions, _SIDES[side], _OPACITIES[number]
                )

    def frames(self) -> dict[tuple[str, int], int]:
        """Return the frame of each ghost, by its side and its number from the current pose."""
        play = self._animation.play
        if play.motion is None or play.playing or self.mode == ONION[0]:
            return {}
        now, last = play.frame, len(play.motion) - 1
        if self.mode == ONION[1]:
            away = [self.every * (number + 1) for number in range(len(_OPACITIES))]
            before, after = [now - step for step in away], [now + step for step in away]
        else:
            keyed = [key.frame for key in play.keys if key.frame is not None]
            before, after = [at for at in keyed[::-1] if at < now], [at for at in keyed if at > now]
        return {
            (side, number): frame
            for side, frames in zip(_SIDES, (before, after), strict=True)
            for number, frame in enumerate(frames[: len(_OPACITIES)])
            if 0 <= frame <= last
        }
