"""The clip that plays under the goals: its state, its pose at a time, the keys on top of it, and blends of poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.clips.editing.keys import KeyCurves
from synovia.errors import InputError
from synovia.layers import Key, Layer
from synovia.model import Skeleton
from synovia.model.change import blend, no_change
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.viewer.editing.editor_values import free_label

_FPS: Final = 30.0  # frames per second of a clip that begins empty
_LONGEST: Final = 600.0  # seconds of such a clip
_NAME: Final = "keys"  # of the layer in files
_NO_KEYS: Final = Layer(relative=True)
FADE: Final = 0.5  # seconds over which the layer begins before its first key and ends after its last one


@dataclass(slots=True)
class Play:
    """State of the clip that plays under the goals.

    Args:
        motion: The clip, None for none.
        time: Seconds from the first frame.
        playing: Whether the clip runs.
        speed: Factor of the recorded speed; negative values play backwards.
        weight: Share of the clip in the blend with the pose without it, 0 to 1.
        first: First frame that plays.
        last: Last frame that plays; None for the last one of the clip.
        layer: The layer on top of the clip: keys of joints of the solved skeleton, each a change of the clip.
        loose: What a person has changed on top of clip and layer and not keyed yet, as a change; None for nothing.
        paused: Keys of the goals that are off because a clip plays.
    """

    motion: Motion | None = None
    time: float = 0.0
    playing: bool = False
    speed: float = 1.0
    weight: float = 1.0
    first: int = 0
    last: int | None = None
    layer: Layer = _NO_KEYS
    loose: Array | None = None
    paused: frozenset[int] = frozenset()
    _curves: tuple[Layer, Skeleton, KeyCurves] | None = None  # of the layer that was evaluated last

    @property
    def keys(self) -> tuple[Key, ...]:
        """Keys of the layer, by frame."""
        return self.layer.keys

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
        """The frame nearest to the present time."""
        return 0 if self.motion is None else round(self.time * self.motion.fps)

    def key_at(self, frame: int) -> Key | None:
        """Return the key at a frame, None if there is none."""
        return next((key for key in self.keys if key.frame == frame), None)

    def advance(self, seconds: float) -> None:
        """Advance the time by some seconds; the clip loops between the first and the last frame that play."""
        first, last = self.span
        if self.playing and last > first:
            self.time = first + (self.time + seconds * self.speed - first) % (last - first)

    def change(self, skeleton: Skeleton, seconds: float) -> Array | None:
        """Return what the keys change at a time, (nq,) of the solved skeleton; None for nothing.

        Between two keys the change goes smoothly from one to the other.
        """
        if not self.keys or self.motion is None:
            return None
        if self._curves is None or self._curves[0] is not self.layer or self._curves[1] is not skeleton:
            still = np.broadcast_to(no_change(skeleton), (len(self.motion), skeleton.nq))  # its keys are changes
            self._curves = self.layer, skeleton, KeyCurves(skeleton, self.layer, still)
        frame = np.array([seconds * self.motion.fps])
        out: Array = self._curves[2].at(frame, no_change(skeleton)[None])[0]
        return out if (out != no_change(skeleton)).any() else None


def layer_of(motion: Motion, *, holds: bool = False) -> Layer:
    """Return a layer without keys for a clip.

    Args:
        motion: The clip.
        holds: Whether the first and the last key hold to the ends of the clip, as in one that begins empty; otherwise
            the layer fades within ``FADE`` seconds before its first key and after its last one.
    """
    if holds:
        return Layer(relative=True, frames=(0, len(motion) - 1), name=_NAME)
    return Layer(relative=True, blend=max(round(FADE * motion.fps), 1), name=_NAME)


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
    """Return a skeleton with the moving root that the clips need, and the clips on it.

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
