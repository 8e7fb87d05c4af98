"""The clip of a page: the choice of the clip, its range, and the keys on top of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from synovia.clips.editing.keys import KeyCurves
from synovia.clips.editing.reach import REACHES
from synovia.errors import InputError
from synovia.io.load import clip_number
from synovia.layers import Key, Layer
from synovia.model import Pose
from synovia.model.change import change_between, no_change
from synovia.model.geometry import Array
from synovia.model.loops.closing import closed_near
from synovia.model.motion import Motion
from synovia.model.rooted import Rooted, rooted, without_root_values
from synovia.viewer.editing.clip.curves import Curves, curves_of
from synovia.viewer.editing.clip.play import Play, layer_of, sample, still_clip
from synovia.viewer.editing.clip.transport import Transport
from synovia.viewer.editing.editor_values import free_label
from synovia.viewer.editing.history import History
from synovia.viewer.editing.state import State

_ROUNDING = 1e-12  # radians or length units: keys omit smaller changes, because they clamp joints that they move


class Animation:
    """The clip that plays under the goals, and the keys on top of it.

    Args:
        state: The state of the page.
        history: The history of the page.

    Attributes:
        auto_key: Whether an edit by hand becomes a key.
        transport: Playback.
    """

    def __init__(self, state: State, history: History) -> None:
        """Store state and history."""
        self._state, self._history = state, history
        self.lock = state.lock  # held to read several values consistently
        self.given = state.given
        self.auto_key = False
        self.transport = Transport(self.required, self.set_play, self.set_span)

    @property
    def clips(self) -> Sequence[Motion]:
        """Clips to choose from."""
        return self._state.clips

    @property
    def play(self) -> Play:
        """The playback state: clip, time and keys."""
        return self._state.play

    @property
    def rooted(self) -> Rooted:
        """The skeleton with its root mode."""
        return self._state.rooted

    def start(self, seconds: float | None = None) -> Pose:
        """Return the pose that the solver starts from, see ``State.start``."""
        return self._state.start(seconds)

    @property
    def reach(self) -> str:
        """The joints that a drag may move: "limb", "upper body" or "whole body"."""
        return self._state.reach

    def set_reach(self, reach: str) -> None:
        """Change the joints that the layers of later drags may move.

        Raises:
            InputError: If there is no such reach.
        """
        if reach not in REACHES:
            raise InputError("reach of drags", value=reach, expected=" or ".join(REACHES))
        with self._state.lock:
            self._state.reach = reach
            self._state.touch()

    def curves(self, row: int) -> Curves | None:
        """Return the curves of a joint, a row of the given skeleton, see ``curves_of``."""
        with self._state.lock:
            return curves_of(self._state, row)

    def original(self) -> Pose | None:
        """Return the pose of the clip at the current time, without layers and keys, on the given skeleton."""
        with self._state.lock:
            motion = self.play.motion
            return None if motion is None else Pose.trusted(self.given, sample(motion, self.play.time))

    def set_clip(self, number: int | None) -> None:
        """Play another clip, or no clip.

        Existing goals do not hold the clip in place: their targets follow the clip until they are moved. Goals of the
        whole body are disabled while a clip is chosen.
        """
        with self._state.lock:
            motion = None if number is None else self.clips[clip_number(self.clips, number, self.given.name)]
            if motion is not None and not len(motion):
                raise InputError("the clip has no frames", where=motion.name, expected="at least one")
            self._history.remember()
            if motion is not None and self._state.rooted.base is not None:
                to = rooted(self.given, self._state.mode)
                self._state.set_root(to, to.skeleton.rest_q)
            paused = self.play.paused
            for editor in self._state.editors:
                if editor.has_target:
                    if editor.follows and motion is None:
                        self._state.to_current(editor)
                    editor.follows = editor.enabled and motion is not None
                elif motion is not None and editor.enabled:
                    editor.enabled, paused = False, paused | {editor.key}
                elif motion is None and editor.key in paused:
                    editor.enabled = True
            self._state.play = Play(motion, paused=frozenset() if motion is None else paused)
            if motion is not None:
                self._state.play.layer = layer_of(motion)
            self._state.touch(structure=True)

    def new_clip(self, seconds: float) -> None:
        """Create a clip from the current pose, which becomes the first key; the user adds motion with more keys.

        Args:
            seconds: Length of the clip.

        Raises:
            InputError: If the length cannot be used.
        """
        with self._state.lock:
            q = self._state.pose.q.copy()
            names = [motion.name for motion in self.clips]
            clip = still_clip(self.given, without_root_values(q, self.given), seconds, names)
            self._state.clips = [*self.clips, clip]
            with self._history.one_step():
                self.set_clip(len(self.clips) - 1)
                self.play.layer = layer_of(clip, holds=True)
                self.key(q)

    def add_clip(self, motion: Motion) -> None:
        """Add a clip that was made from the present one, and play it.

        Args:
            motion: A motion of the given skeleton; root joints that the page has added in front of it are left out.
        """
        with self._state.lock:
            q = without_root_values(motion.q, self.given)
            name = free_label(motion.name, [clip.name for clip in self.clips])
            self._state.clips = [*self.clips, Motion(self.given, q, motion.fps, name=name, notes=motion.notes)]
            self.set_clip(len(self.clips) - 1)

    def set_span(self, first: int | None = None, last: int | None = None) -> None:
        """Set the first or the last frame of the clip that plays.

        Raises:
            InputError: If the clip has no such frames.
        """
        with self._state.lock:
            play, motion = self.required()
            first, last = play.first if first is None else first, play.end if last is None else last
            if not 0 <= first < last < len(motion):
                expected = f"two frames of 0 to {len(motion) - 1}"
                raise InputError("frames that play", value=(first, last), expected=expected)
            self._history.remember("span")
            play.first, play.last = first, last
            play.time = float(np.clip(play.time, *play.span))
            self._state.touch()

    def finish_edit(self) -> None:
        """End a manual edit, such as a drag; with ``auto_key``, the pose becomes a key in the same undo step."""
        with self._state.lock:
            if self.play.motion is not None and self.auto_key:
                self.key(step=False)
            elif self.play.drag is not None:
                self.play.drag.ended = True
                self._state.touch()

    def key(self, q: Array | None = None, *, step: bool = True) -> Key:
        """Store a pose at the current frame as a key of the clip. It replaces layers that affect only this frame.

        Args:
            q: Joint values of the pose, (nq,) of the solved skeleton, clamped to their limits; None: the current pose.
            step: Whether the key is a separate undo step.

        Raises:
            InputError: If no clip is chosen.
        """
        with self._state.lock:
            play, motion = self.required()
            if step:
                self._history.remember()
            self._state.finish()
            play.playing = False
            play.time = play.frame / motion.fps
            to: Array = self._state.start().q
            if q is not None:
                to = closed_near(self._state.skeleton, q, to)
            held = [layer for layer in play.all if _holds_only(layer, play.frame, len(motion))]
            if held:
                layers, above = (
                    tuple(layer for layer in some if layer not in held) for some in (play.layers, play.above)
                )
                play.become(replace(play, layers=layers, above=above).solved(self._state.added))
            key = self.key_of(to)
            self._put_keys(play.frame, key)
            self.let_go()
            return key

    def let_go(self) -> None:
        """Let the goals follow the clip again."""
        with self._state.lock:
            for editor in self._state.editors:
                editor.follows = editor.enabled and editor.has_target
            self._state.touch()

    def move_key(
        self, frame: int, to: int | None = None, *, copy: bool = False, part: frozenset[int] | None = None
    ) -> None:
        """Move or copy a key to another frame, and replace the values that are keyed there.

        Args:
            frame: Frame of the key.
            to: The other frame; None for the current frame.
            copy: Whether to keep the key at its frame, too.
            part: Part of the body to move, see ``part_of``; None for the whole body.

        Raises:
            InputError: If there is no such key or no such frame.
        """
        with self._state.lock:
            play, motion = self.required()
            to = play.frame if to is None else to
            key = self._key_at(frame, part)
            if not 0 <= to < len(motion):
                raise InputError("frame of the key", value=to, expected=f"0 to {len(motion) - 1}")
            if to == frame:
                raise InputError(
                    "the key is already at this frame", value=to, hint="go to the frame to which to move it"
                )
            self._history.remember()
            moved, there = self.values_of(key, part), play.key_at(to)
            self._put_keys(to, Key(to, moved if there is None else {**there.values, **moved}))
            if not copy:
                self._put_keys(frame, self._without(key, part))

    def unkey(self, frame: int, part: frozenset[int] | None = None) -> None:
        """Remove the key at a frame, or only its values for one part of the body (see ``part_of``)."""
        with self._state.lock:
            key = self._key_at(frame, part)
            self._history.remember()
            self._put_keys(frame, self._without(key, part))

    def _key_at(self, frame: int, part: frozenset[int] | None) -> Key:
        """Return the key of a part of the body at a frame.

        Raises:
            InputError: If there is no key.
        """
        key = self.play.key_at(frame)
        if key is None or not self.keyed(key, part):
            raise InputError("there is no key", value=frame, expected="the frame of a key")
        return key

    def keyed(self, key: Key, part: frozenset[int] | None) -> bool:
        """Return whether a key has values for a part of the body (see ``part_of``; None for the whole body)."""
        return bool(self.values_of(key, part))

    def values_of(self, key: Key, part: frozenset[int] | None) -> Mapping[str | int, Array]:
        """Return the values of a key for a part of the body."""
        if part is None:
            return key.values
        names = set(map(self._state.skeleton.address, part))
        return {joint: value for joint, value in key.values.items() if joint in names}

    def _without(self, key: Key, part: frozenset[int] | None) -> Key | None:
        """Return a key without a part of the body; None if no values are left."""
        own = self.values_of(key, part)
        left = {joint: value for joint, value in key.values.items() if joint not in own}
        return Key(key.frame, left) if left else None

    def key_of(self, q: Array) -> Key:
        """Return a key of the whole body at the current frame, which gives the clip there the pose ``q``, (nq,)."""
        skeleton = self._state.skeleton
        change, still = change_between(skeleton, self._state.clip_values(self.play.time), q), no_change(skeleton)
        change = np.where(np.abs(change - still) < _ROUNDING, still, change)
        slices = [(row, skeleton.q_slice(row)) for row in range(len(skeleton))]
        return Key(
            self.play.frame, {skeleton.address(row): change[at].copy() for row, at in slices if at.stop > at.start}
        )

    def check_keys(self, layer: Layer) -> None:
        """Check that a layer of keys fits the clip.

        Raises:
            InputError: If no clip is chosen, or the layer has a key after the end of the clip.
            UnknownNameError: If the body lacks a joint.
        """
        with self._state.lock:
            _, motion = self.required()
            still = np.broadcast_to(no_change(self._state.skeleton), (len(motion), self._state.skeleton.nq))
            KeyCurves(self._state.skeleton, layer, still)

    def keys_without(self, key: Key, part: frozenset[int] | None) -> tuple[Key, ...] | None:
        """Return all keys without one of them, or without its values for a part of the body; None if none are left."""
        left = self._without(key, part)
        others = (other for other in self.play.keys if other is not key)
        return (*others, *(() if left is None else (left,))) or None

    def empty_keys(self) -> Layer:
        """Return the layer of the keys, without any key."""
        return self.play.layer.replace(pose=None)

    def _put_keys(self, frame: int, key: Key | None) -> None:
        """Replace the key at a frame; with None, remove the key."""
        keys = [other for other in self.play.keys if other.frame != frame]
        if key is not None:
            keys.append(key)
        self._state.finish()
        new = replace(self.play, layer=self.play.layer.replace(pose=tuple(keys) or None))
        self.play.become(new.solved(self._state.added) if new.above else new)
        self._state.touch()

    def required(self) -> tuple[Play, Motion]:
        """Return the playback state and the clip.

        Raises:
            InputError: If no clip is chosen.
        """
        if self.play.motion is None:
            raise InputError("no clip is chosen", hint="choose or begin one in the tab Animation")
        return self.play, self.play.motion

    def set_play(self, **values: Any) -> None:
        """Change ``time``, ``playing``, ``loop``, ``shuttle``, ``speed`` or ``weight`` of the clip."""
        with self._state.lock:
            for name, value in values.items():
                if name != "playing" and not math.isfinite(value):
                    raise InputError(f"{name} is not finite", value=value)
            if "time" in values or values.get("playing"):
                self._state.finish()  # before the time changes
            if {"speed", "weight"} & set(values):
                self._history.remember(("clip", *values))
            for name, value in values.items():
                setattr(self.play, name, value)
            if values.get("playing"):
                self.play.rewind()
            self.play.playing = self.play.playing and self.play.motion is not None
            self._state.touch()


def _holds_only(layer: Layer, frame: int, count: int) -> bool:
    """Return whether a layer affects ``frame`` and no other frame of a clip with ``count`` frames."""
    return count > 1 and not layer.empty and layer.bounds(count) == (frame, frame)
