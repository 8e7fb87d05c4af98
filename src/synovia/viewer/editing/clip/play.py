"""The clip that plays under the goals: its state, its pose at a time, and its layers and keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.clips.editing import Edited
from synovia.clips.editing.keys import KeyCurves, changed_rows, with_changes
from synovia.errors import InputError
from synovia.layers import Key, Layer
from synovia.model import Skeleton
from synovia.model.change import blend, no_change
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.viewer.editing.editor_values import free_label

_FPS: Final = 30.0  # frames per second of a new clip
_LONGEST: Final = 600.0  # seconds; longest new clip
NAME: Final = "keys"  # name of the layer of keys in files
_NO_KEYS: Final = Layer(relative=True)
FADE: Final = 0.5  # seconds over which a layer fades in before its first key and out after its last key


@dataclass(slots=True)
class Play:
    """State of the clip that plays under the goals.

    Args:
        motion: The clip; None without a clip.
        time: Seconds from the first frame.
        playing: Whether the clip runs.
        speed: Factor of the recorded speed; negative values play backwards.
        weight: Weight of the clip in the blend with the pose without the clip, 0 to 1.
        first: First frame that plays.
        last: Last frame that plays; None for the last frame of the clip.
        layers: Layers on the clip, in order, below the keys.
        edited: The clip with these layers; None if no layer has an effect.
        layer: The top layer: keys of joints of the solved skeleton, each a change of the clip with its layers.
        loose: Manual change on top of all layers that is not keyed yet; None for no change.
        paused: Keys of the goals that are disabled because a clip plays.
    """

    motion: Motion | None = None
    time: float = 0.0
    playing: bool = False
    speed: float = 1.0
    weight: float = 1.0
    first: int = 0
    last: int | None = None
    layers: tuple[Layer, ...] = ()
    edited: Edited | None = None
    layer: Layer = _NO_KEYS
    loose: Array | None = None
    paused: frozenset[int] = frozenset()
    _curves: tuple[Layer, Skeleton, tuple[KeyCurves, tuple[int, ...]]] | None = (
        None  # cache for the last evaluated layer
    )

    @property
    def keys(self) -> tuple[Key, ...]:
        """Keys of the layer, by frame."""
        return self.layer.keys

    @property
    def below(self) -> Motion | None:
        """The clip with its layers, below the keys; None without a clip."""
        return self.motion if self.edited is None else self.edited.motion

    @property
    def span(self) -> tuple[float, float]:
        """First and last time that play, seconds."""
        if self.motion is None:
            return 0.0, 0.0
        return self.first / self.motion.fps, self.end / self.motion.fps

    @property
    def end(self) -> int:
        """Last frame that plays."""
        if self.motion is None:
            return 0
        return len(self.motion) - 1 if self.last is None else self.last

    @property
    def frame(self) -> int:
        """The frame nearest to the current time."""
        return 0 if self.motion is None else round(self.time * self.motion.fps)

    def key_at(self, frame: int) -> Key | None:
        """Return the key at a frame; None if there is none."""
        return next((key for key in self.keys if key.frame == frame), None)

    def advance(self, seconds: float) -> None:
        """Advance the time by some seconds; the clip loops between the first and the last frame that play."""
        first, last = self.span
        if self.playing and last > first:
            self.time = first + (self.time + seconds * self.speed - first) % (last - first)

    def keyed(self, skeleton: Skeleton, frames: Array, below: Array) -> Array:
        """Return joint values with the changes of the keys, (n, nq), clamped to limits as in ``sy.edit``.

        Args:
            skeleton: The solved skeleton.
            frames: Frames of the clip, (n,), also fractional.
            below: Joint values without keys at these frames, (n, nq).
        """
        found = self._found(skeleton)
        if found is None:
            return below
        return with_changes(skeleton, below, found[0].at(frames, below), found[1])[0]

    def _found(self, skeleton: Skeleton) -> tuple[KeyCurves, tuple[int, ...]] | None:
        """Return the curves of the keys, and the rows of the joints that the keys move; None without keys."""
        if not self.keys or self.motion is None:
            return None
        if self._curves is None or self._curves[0] is not self.layer or self._curves[1] is not skeleton:
            still = np.broadcast_to(no_change(skeleton), (len(self.motion), skeleton.nq))  # the keys are changes
            curves = KeyCurves(skeleton, self.layer, still)
            moved = changed_rows(skeleton, curves.at(np.arange(len(self.motion), dtype=np.float64), still))
            self._curves = self.layer, skeleton, (curves, moved)
        return self._curves[2]


def layer_of(motion: Motion, *, holds: bool = False) -> Layer:
    """Return a layer without keys for a clip.

    Args:
        motion: The clip.
        holds: Whether the first and the last key extend to the ends of the clip, as in a new clip; otherwise the layer
            fades within ``FADE`` seconds before its first key and after its last key.
    """
    if holds:
        return Layer(relative=True, frames=(0, len(motion) - 1), name=NAME)
    return Layer(relative=True, blend=max(round(FADE * motion.fps), 1), name=NAME)


def still_clip(skeleton: Skeleton, q: Array, seconds: float, taken: Sequence[str]) -> Motion:
    """Return a clip of one pose, for keys on top of it.

    Args:
        skeleton: The skeleton.
        q: Joint values of the pose, (nq,).
        seconds: Length of the clip.
        taken: Names of the other clips.

    Raises:
        InputError: If the length cannot be used.
    """
    if not 0.1 <= seconds <= _LONGEST:
        raise InputError("length of the clip", value=seconds, expected=f"0.1 to {_LONGEST:g} seconds")
    frames = round(seconds * _FPS) + 1
    return Motion(skeleton, np.tile(q, (frames, 1)), _FPS, name=free_label("new clip", taken))


def together(skeleton: Skeleton, clips: Sequence[Motion]) -> tuple[Skeleton, list[Motion]]:
    """Return a skeleton with the moving root that the clips need, and the clips on this skeleton.

    Raises:
        InputError: If a clip belongs to another skeleton.
    """
    for motion in clips:
        skeleton = motion.on(skeleton).skeleton
    return skeleton, [motion.on(skeleton) for motion in clips]


def sample(motion: Motion, seconds: float) -> Array:
    """Return joint values at a time, (nq,), interpolated between frames and constant outside the clip."""
    place = float(np.clip(seconds * motion.fps, 0.0, len(motion) - 1))
    first = int(place)
    second = min(first + 1, len(motion) - 1)
    return blend(motion.skeleton, motion.q[first], motion.q[second], place - first)
