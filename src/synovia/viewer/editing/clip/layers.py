"""The layers of a page: changes of a part of the clip, below the keys. ``sy.edit`` applies them to the clip."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import numpy as np

from synovia.clips.editing import Edited, edit
from synovia.errors import InputError, UnsupportedError
from synovia.layers import Key, Layer, moved_along
from synovia.model.change import no_change
from synovia.model.finding import Finding
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.editing.clip.play import FADE, NAME
from synovia.viewer.editing.editor_values import free_label
from synovia.viewer.editing.goals import Goals
from synovia.viewer.editing.history import History
from synovia.viewer.editing.state import State

_NOTHING: Final = 1e-6  # radians or length units; smaller changes of a joint are not stored in a layer
_MOST: Final = 64  # largest number of layers
Progress = Callable[[int, int], object]


class ClipLayers:
    """The layers on the clip of a page.

    Args:
        state: The state of the page.
        history: The history of the page.
        animation: The clip, and the keys on top.
        goals: The goals, whose targets become layers.

    Attributes:
        progress: Called with the frames done and all frames while layers are solved; None for no reports.
    """

    def __init__(self, state: State, history: History, animation: Animation, goals: Goals) -> None:
        """Store the arguments."""
        self._state, self._history, self._animation, self._goals = state, history, animation, goals
        self.progress: Progress | None = None

    @property
    def all(self) -> tuple[Layer, ...]:
        """The layers, in order."""
        return self._state.play.layers

    @property
    def edited(self) -> Edited | None:
        """The clip with its layers; None if no layer has an effect."""
        return self._state.play.edited

    def findings(self, number: int) -> tuple[Finding, ...]:
        """Return the findings about a layer."""
        edited, label = self.edited, self.all[number].label
        return () if edited is None else tuple(one for one in edited.findings if one.layer == label)

    def add_key(self, part: frozenset[int] | None = None) -> Layer:
        """Make a layer from the key at the current frame, or from the pose if there is no key; fades are like a key's.

        Args:
            part: Part of the body that moves to the layer, see ``Goals.part_of``; None for the whole body.

        Raises:
            InputError: If no clip is chosen, or the pose equals the clip's pose.
            UnsupportedError: If the pose moves a root that the clip does not have.
        """
        with self._state.lock:
            play, motion = self._animation.required()
            frame = play.frame
            key = play.key_at(frame)
            present = self._animation.key_of(self._state.pose.q) if key is None else key
            moved = {
                joint: value
                for joint, value in self._animation.values_of(present, part).items()
                if np.abs(value - self._still(joint)).max(initial=0.0) > _NOTHING
            }
            if not moved:
                hint = "drag a target, or turn a joint"
                raise InputError("the pose is the same as in the clip", value=f"frame {frame}", hint=hint)
            layer = Layer(
                pose=(Key(frame, self.own_values(moved)),),
                relative=True,
                frames=(frame, frame),
                blend=max(round(FADE * motion.fps), 1),
                name=self._free(f"pose at {frame}"),
            )
            top = play.layer if key is None else play.layer.replace(pose=self._animation.keys_without(key, part))
        self._put((*self.all, layer), top)
        return layer

    def add_target(self, number: int | None) -> Layer:
        """Make a layer at the current frame from a goal and its current target, and return the layer.

        Args:
            number: Key of the goal's editor.

        Raises:
            InputError: If no clip is chosen, or there is no such goal.
        """
        with self._state.lock:
            play, motion = self._animation.required()
            editor = self._goals.editor(number)
            goal = editor.goal(self._state.given.address, kept=True).at_priority(0)
            layer = Layer(
                goals=[goal],
                frames=(play.frame, play.frame),
                blend=max(round(FADE * motion.fps), 1),
                name=self._free(editor.label),
            )
        self._put((*self.all, layer))
        return layer

    def change(
        self,
        number: int,
        *,
        frames: tuple[int, int] | None = None,
        blend: int | None = None,
        muted: bool | None = None,
    ) -> None:
        """Change the frames, the fades or the muting of a layer.

        Args:
            number: Index of the layer.
            frames: First and last frame, both included. Keys move with the layer, and targets with one per frame.
            blend: Number of frames of each fade.
            muted: Whether the layer has no effect.

        Raises:
            InputError: If a value does not fit.
        """
        layer = self._layer(number)
        made = layer if frames is None else with_frames(layer, frames, self._count())
        if blend is not None:
            made = made.replace(blend=blend)
        if muted is not None:
            made = made.replace(muted=muted)
        self._put((*self.all[:number], made, *self.all[number + 1 :]))

    def move_along(self, number: int, relative: bool) -> None:
        """Make the targets of a layer relative to the clip or fixed in the world, unchanged at the current frame.

        Args:
            number: Index of the layer.
            relative: Whether the targets are relative to the clip.

        Raises:
            InputError: If the layer has other targets or keys.
        """
        layer = self._layer(number)
        with self._state.lock:
            play, motion = self._animation.required()
            first, last = layer.bounds(len(motion))
            frame = min(max(play.frame, first), last)
        below = self._solved(motion, self.all[:number])
        pose = (motion if below is None else below.motion).pose(frame)
        made = moved_along(layer, pose, relative)
        self._put((*self.all[:number], made, *self.all[number + 1 :]))

    def remove(self, number: int) -> None:
        """Remove a layer."""
        self._layer(number)
        self._put((*self.all[:number], *self.all[number + 1 :]))

    def open(self, layers: Sequence[Layer]) -> None:
        """Replace the layers of the clip by the layers of a file.

        The last layer becomes the keys on top if it has the form of keys, and has their name or is the only layer.

        Raises:
            InputError: If no clip is chosen, or a layer does not fit it.
            UnknownNameError: If the body lacks a joint.
        """
        *below, last = layers or (Layer(),)
        top = is_keys(last) and (last.name == NAME or not below)
        with self._state.lock:
            empty = self._animation.empty_keys()
        self._put(tuple(below) if top else tuple(layers), last if top else empty)

    def own_values(self, values: Mapping[str | int, Array]) -> dict[str | int, Array]:
        """Return values of joints without those of a root that the page has added.

        Raises:
            UnsupportedError: If the values move this root.
        """
        skeleton, added = self._state.skeleton, range(self._state.rooted.added)
        return without_root(values, {skeleton.address(row) for row in added})

    def _put(self, layers: tuple[Layer, ...], top: Layer | None = None) -> None:
        """Solve layers on the clip and show the result, without blocking other threads.

        Args:
            layers: The layers.
            top: The layer of the keys on top; None for the existing layer.

        Raises:
            InputError: If a layer does not fit the clip, or the layers were changed in the meantime.
        """
        if len(layers) > _MOST:
            raise InputError("too many layers", value=len(layers), expected=f"at most {_MOST}")
        with self._state.lock:
            play, motion = self._animation.required()
            before = play.layers
            if top is not None:
                self._animation.check_keys(top)
        edited = self._solved(motion, layers)
        with self._state.lock:
            play = self._state.play
            if play.motion is not motion or play.layers is not before:
                raise InputError("the layers have changed in the meantime", hint="try again")
            self._history.remember()
            self._state.key_due = False
            play.layers, play.edited = layers, edited
            play.layer = play.layer if top is None else top
            self._animation.let_go()

    def _solved(self, motion: Motion, layers: tuple[Layer, ...]) -> Edited | None:
        """Apply layers to a clip; return None if no layer has an effect."""
        if all(layer.empty for layer in layers):
            for layer in layers:
                if layer.bounds(len(motion))[1] >= len(motion):
                    raise InputError("frames", value=layer.frames, expected=f"frames of 0 to {len(motion) - 1}")
            return None
        return edit(motion, layers, progress=self.progress)

    def _layer(self, number: int) -> Layer:
        """Return the layer with an index.

        Raises:
            InputError: If there is no layer with this index.
        """
        if not 0 <= number < len(self.all):
            raise InputError("there is no such layer", value=number, expected=f"one of {len(self.all)}")
        return self.all[number]

    def _count(self) -> int:
        """Return the number of frames of the clip."""
        return len(self._animation.required()[1])

    def _still(self, joint: str | int) -> Array:
        """Return the values that mean no change for a joint."""
        skeleton = self._state.skeleton
        return no_change(skeleton)[skeleton.q_slice(joint)]

    def _free(self, name: str) -> str:
        """Return an unused name for a layer."""
        return free_label(name, [layer.label for layer in self.all])


def is_keys(layer: Layer) -> bool:
    """Return whether a layer has the form of the keys on top: only changes of joint values."""
    return bool(layer.keys) and layer.relative and not (layer.goals or layer.targets or layer.muted)


def with_frames(layer: Layer, frames: tuple[int, int], count: int) -> Layer:
    """Return a layer with other frames; keys move with a layer of equal length, else they are clamped to the frames.

    Args:
        layer: The layer.
        frames: First and last frame, both included.
        count: Number of frames of the clip.

    Raises:
        InputError: If the clip has no such frames.
    """
    first, last = frames
    if not 0 <= first <= last < count:
        raise InputError("frames of the layer", value=frames, expected=f"two frames of 0 to {count - 1}, in order")
    start, end = layer.bounds(count)
    way = first - start if last - first == end - start else 0
    keys: dict[int | None, Key] = {}
    for key in layer.keys:
        at = None if key.frame is None else min(max(key.frame + way, first), last)
        keys.setdefault(at, Key(at, key.values))
    return layer.replace(frames=frames, pose=tuple(keys.values()) or None)


def without_root(values: Mapping[str | int, Array], added: Collection[str | int]) -> dict[str | int, Array]:
    """Return values by joint, without the values of added joints.

    Args:
        values: Changes by joint.
        added: Names of the joints of a root that the page has added.

    Raises:
        UnsupportedError: If these joints move.
    """
    for joint, value in values.items():
        moved = value if len(value) == 1 else value[:-1]  # w of a quaternion is not 0 for no change
        if joint in added and np.abs(moved).max(initial=0.0) > 0.0:
            raise UnsupportedError("keys move a root that the clip does not have", hint="save the motion instead")
    return {joint: value for joint, value in values.items() if joint not in added}
