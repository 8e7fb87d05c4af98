"""The clip that plays under the goals: its state, its pose at a time, the keys on top of it, and blends of poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.change import blend, no_change, smooth
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.viewer.editing.editor_values import free_label

_FPS: Final = 30.0  # frames per second of a clip that begins empty
_LONGEST: Final = 600.0  # seconds of such a clip
FADE: Final = 0.5  # seconds over which the layer begins before its first key and ends after its last one


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """What is keyed at one frame of a clip: the way from the clip's pose to the keyed one.

    Args:
        frame: Number of the frame.
        change: Difference of the joint values, (nq,); of rotations the quaternion from the clip's to the keyed one.
        joints: Rows of the solved skeleton that are keyed; None for the whole body.
    """

    frame: int
    change: Array
    joints: frozenset[int] | None = None

    def of(self, part: frozenset[int] | None) -> frozenset[int] | None:
        """Return the joints that are keyed among those of a part of the body, None for the whole body."""
        if part is None or self.joints is None:
            return self.joints if part is None else part
        return self.joints & part


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
        keys: Keys of the layer on top of the clip, by frame.
        holds: Whether the first and the last key hold to the ends of the clip, as in one that begins empty; else the
            layer fades within ``FADE`` seconds.
        loose: What a person has changed on top of clip and layer and not keyed yet, as in ``Key``; None for nothing.
        paused: Keys of the goals that are off because a clip plays.
    """

    motion: Motion | None = None
    time: float = 0.0
    playing: bool = False
    speed: float = 1.0
    weight: float = 1.0
    first: int = 0
    last: int | None = None
    keys: tuple[Key, ...] = ()
    holds: bool = False
    loose: Array | None = None
    paused: frozenset[int] = frozenset()

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

    def layer(self, skeleton: Skeleton, seconds: float) -> Array | None:
        """Return what the keys change at a time, (nq,) of the solved skeleton, as in ``Key``; None for nothing.

        Between two keys the change goes smoothly from one to the other. It begins before the first key and ends after
        the last one within ``FADE`` seconds, unless these hold.
        """
        if all(key.joints is None for key in self.keys):
            return self._layer_of(self.keys, skeleton, seconds)
        groups: dict[tuple[Key, ...], list[int]] = {}  # joints by the keys that they have
        for row, joint in enumerate(skeleton.joints):
            if joint.kind.q_size:
                own = tuple(key for key in self.keys if key.joints is None or row in key.joints)
                groups.setdefault(own, []).append(row)
        out = no_change(skeleton)
        for keys, rows in groups.items():
            if (part := self._layer_of(keys, skeleton, seconds)) is not None:
                for place in map(skeleton.q_slice, rows):
                    out[place] = part[place]
        return out

    def _layer_of(self, keys: Sequence[Key], skeleton: Skeleton, seconds: float) -> Array | None:
        """Return what some keys change at a time, as in ``layer``."""
        if not keys or self.motion is None:
            return None
        times = [key.frame / self.motion.fps for key in keys]
        at = sum(time <= seconds for time in times)
        if 0 < at < len(times):
            before, after = keys[at - 1].change, keys[at].change
            part = (seconds - times[at - 1]) / (times[at] - times[at - 1])
            return blend(skeleton, before, after, smooth(part), follow=False)
        near = keys[0] if at == 0 else keys[-1]
        away = times[0] - seconds if at == 0 else seconds - times[-1]
        if self.holds:
            return near.change.copy()
        if away >= FADE:
            return None
        return blend(skeleton, near.change, no_change(skeleton), smooth(away / FADE), follow=False)


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
