"""The layers of a page, below and above the keys: changes that ``sy.edit`` applies to frames of the clip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from synovia.clips.editing import Edited
from synovia.clips.editing.reach import moving_of, reach_of
from synovia.errors import InputError
from synovia.ik import Solution
from synovia.layers import Key, Layer, is_keys, moved_along, with_frames
from synovia.model import Pose
from synovia.model.change import no_change
from synovia.model.finding import Finding
from synovia.model.geometry import Array
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.editing.clip.play import FADE, NAME, LayerDrag, Play, without_root
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
        progress: Called with the number of solved frames and of all frames; None for no reports.
        chosen: Index of the selected layer.
    """

    def __init__(self, state: State, history: History, animation: Animation, goals: Goals) -> None:
        """Store the arguments."""
        self._state, self._history, self._animation, self._goals = state, history, animation, goals
        self.progress: Progress | None = None
        self.chosen = 0
        self._muted: dict[str, bool] = {}  # whether layers were muted before ``solo``, by name

    @property
    def all(self) -> tuple[Layer, ...]:
        """The layers without the keys, in order."""
        return self._state.play.all

    @property
    def edited(self) -> Edited | None:
        """The clip with its layers; None if no layer has an effect."""
        return self._state.play.edited

    def findings(self, number: int) -> tuple[Finding, ...]:
        """Return the findings about a layer."""
        edited, label = self.edited, self.all[number].label
        return () if edited is None else tuple(one for one in edited.findings if one.layer == label)

    def missed(self) -> int | None:
        """Return the index of the first layer that misses a goal at the current frame; None if there is none."""
        play, edited = self._state.play, self.edited
        found = () if edited is None or play.drag is not None else edited.findings
        names = [one.layer for one in found if one.cause == "missed" and play.frame in one.frames]
        return next((number for number, layer in enumerate(self.all) if layer.label in names), None)

    def solution(self, number: int) -> Solution | None:
        """Return the solution of a layer at the current frame, which says why goals are missed; None without goals."""
        with self._state.lock:
            drag = LayerDrag(replace(self._state.play, drag=None), self._layer(number), number, self._state.added)
        return drag.solution()

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
            self._state.finish()
            frame = play.frame
            key = play.key_at(frame)
            present = self._animation.key_of(self._state.start().q) if key is None else key
            moved = {
                joint: value
                for joint, value in self._animation.values_of(present, part).items()
                if np.abs(value - self._still(joint)).max(initial=0.0) > _NOTHING
            }
            if not moved:
                hint = "drag a target, or turn a joint"
                raise InputError("the pose is the same as in the clip", value=f"frame {frame}", hint=hint)
            layer = Layer(
                pose=(Key(frame, without_root(moved, self._state.added)),),
                relative=True,
                frames=(frame, frame),
                blend=max(round(FADE * motion.fps), 1),
                name=self._free(f"pose at {frame}"),
            )
            top = play.layer if key is None else play.layer.replace(pose=self._animation.keys_without(key, part))
        self._put((*play.layers, layer), play.above, top)
        return layer

    def add_goal(self, number: int | None) -> Layer:
        """Make a layer at the current frame from a goal and its current target, and return the layer.

        Args:
            number: Key of the goal's editor.

        Raises:
            InputError: If no clip is chosen, or there is no such goal.
        """
        with self._state.lock:
            play, motion = self._animation.required()
            self._state.finish()
            editor = self._goals.editor(number)
            goal = editor.goal(self._state.given.address, kept=True).at_priority(0)
            layer = Layer(
                goals=[goal],
                frames=(play.frame, play.frame),
                blend=max(round(FADE * motion.fps), 1),
                name=self._free(editor.label),
            )
        on_keys = bool(play.keys or play.above)
        self._put(*((play.layers, (*play.above, layer)) if on_keys else ((*play.layers, layer), ())))
        return layer

    def change(
        self,
        number: int,
        *,
        frames: tuple[int, int] | None = None,
        blend: int | None = None,
        muted: bool | None = None,
        reach: str | None = None,
    ) -> None:
        """Change the frames, the fades, the muting or the reach of a layer.

        Args:
            number: Index of the layer.
            frames: First and last frame, both included. Keys, and targets given frame by frame, move with the layer.
            blend: Number of frames of each fade.
            muted: Whether the layer has no effect.
            reach: The joints that the goals of the layer may move, one of ``REACHES``.

        Raises:
            InputError: If a value does not fit.
        """
        layer = self._layer(number)
        made = layer if frames is None else with_frames(layer, frames, self._count())
        if blend is not None:
            made = made.replace(blend=blend)
        if muted is not None:
            made = made.replace(muted=muted)
        if reach is not None:
            made = made.replace(moving=self._moving(made, reach))
        self._replace(number, made)

    def trim(self, number: int, part: str, by: int) -> None:
        """Move a part of a layer by some frames, as far as the clip allows.

        Args:
            number: Index of the layer.
            part: ``"first"`` or ``"last"`` frame, ``"in"`` for the begin of the fade in and ``"out"`` for the end of
                the fade out, which have the same length, or ``"move"`` for the whole layer.
            by: Number of frames; negative for earlier frames.

        Raises:
            InputError: If there is no such layer or part.
        """
        layer, end, by = self._layer(number), self._count() - 1, int(by)
        (first, last), blend = layer.bounds(end + 1), layer.blend
        match part:
            case "first":
                first = min(max(first + by, 0), last)
            case "last":
                last = min(max(last + by, first), end)
            case "in" | "out":
                blend = min(max(blend + (by if part == "out" else -by), 0), end)
            case "move":
                by = min(max(by, -first), end - last)
                first, last = first + by, last + by
            case _:
                raise InputError("part of the layer", value=part, expected="first, last, in, out or move")
        self.change(number, frames=(first, last), blend=blend)

    def reach(self, number: int) -> str:
        """Return the joints that the goals of a layer may move, one of ``REACHES``; empty for another choice."""
        return reach_of(self._state.play.solver().body, self._state.given, self._layer(number))

    def _moving(self, layer: Layer, reach: str) -> list[str | int] | None:
        """Return the joints that a reach lets the goals of a layer move; None for the whole body."""
        given, out = self._state.given, list[str | int]()
        for goal, _ in layer.all_goals():
            row = None if goal.joint is None else given.locate(goal.joint)[0]
            names = moving_of(self._state.play.solver().body, given, row, reach)
            if names is None:
                return None
            out += [name for name in names if name not in out]
        return out or None

    def move_along(self, number: int, relative: bool) -> None:
        """Make the targets of a layer relative to the clip or fixed in the world, unchanged at the current frame.

        Args:
            number: Index of the layer.
            relative: Whether the targets are relative to the clip.

        Raises:
            InputError: If the layer has keys, or other targets than one position or rotation for each joint.
        """
        layer = self._layer(number)
        with self._state.lock:
            play, motion = self._animation.required()
            first, last = layer.bounds(len(motion))
            frame = min(max(play.frame, first), last)
            drag = LayerDrag(replace(play, drag=None), layer, number, self._state.added)
        q = drag.values[frame]
        self._replace(number, moved_along(layer, Pose(motion.skeleton, q), relative))

    def remove(self, number: int) -> None:
        """Remove a layer."""
        self._replace(number)

    def mute(self, number: int) -> None:
        """Mute a layer, or let it have an effect again."""
        self.change(number, muted=not self._layer(number).muted)

    def rename(self, number: int, name: str) -> None:
        """Give a layer another name; a name that is taken gets a number.

        Raises:
            InputError: If the name is empty.
        """
        if not name.strip():
            raise InputError("name of the layer", value=name, expected="a name")
        layer = self._layer(number)
        others = [one.label for one in self.all if one is not layer]
        self._replace(number, layer.replace(name=free_label(name.strip(), others)))

    @property
    def soloed(self) -> int | None:
        """Index of the soloed layer, see ``solo``; None if there is none."""
        heard = [number for number, layer in enumerate(self.all) if not layer.muted]
        return heard[0] if self._muted and len(heard) == 1 else None

    def solo(self, number: int) -> None:
        """Mute all layers except one; if it is soloed already, restore what was muted before."""
        self._layer(number)
        with self._state.lock:
            self._state.finish()
            play, back = self._state.play, self.soloed == number
            if self.soloed is None:
                self._muted = {layer.label: layer.muted for layer in self.all}
            chosen, before = self.all[number], self._muted

            def made(layers: Sequence[Layer]) -> tuple[Layer, ...]:
                return tuple(
                    one.replace(muted=before.get(one.label, False) if back else one is not chosen) for one in layers
                )

            layers, above = made(play.layers), made(play.above)
        self._put(layers, above)
        self._muted = {} if back else before

    def move(self, number: int, to: int) -> None:
        """Move a layer to another place in the order of layers; the keys, if any, take one place.

        Args:
            number: Index of the layer.
            to: Index of its new place; 0 is the lowest.

        Raises:
            InputError: If there is no such layer or place.
        """
        self._layer(number)
        places = len(self.all) + bool(self._state.play.keys)
        if not 0 <= to < places:
            raise InputError("there is no such place", value=to, expected=f"one of {places}")
        with self._state.lock:
            self._state.finish()
            play, count = self._state.play, len(self._state.play.layers)
            marks: list[Layer | None] = [*play.layers, *([None] if play.keys else []), *play.above]
            marks.insert(int(to), marks.pop(number + (number >= count and bool(play.keys))))
            count = marks.index(None) if play.keys else count
            layers = [one for one in marks if one is not None]
        self._put(tuple(layers[:count]), tuple(layers[count:]))

    def open(self, layers: Sequence[Layer]) -> None:
        """Replace the layers of the clip by the layers of a file.

        The last layer with the form (see ``is_keys``) and the name of keys becomes the keys. A single layer in a file
        needs only the form.

        Raises:
            InputError: If no clip is chosen, or a layer does not fit it.
            UnknownNameError: If the body lacks a joint.
        """
        named = [number for number, one in enumerate(layers) if is_keys(one) and one.name == NAME]
        if not named and len(layers) == 1 and is_keys(layers[0]):
            named = [0]
        with self._state.lock:
            empty = self._animation.empty_keys()
            self._state.finish()
        if named:
            self._put(tuple(layers[: named[-1]]), tuple(layers[named[-1] + 1 :]), layers[named[-1]])
        else:
            self._put(tuple(layers), (), empty)

    def _replace(self, number: int, *made: Layer) -> None:
        """Replace a layer by another one, or remove it."""
        with self._state.lock:
            self._layer(number)
            self._state.finish()
            play = self._state.play
            count, every = len(play.layers), [*play.layers, *play.above]
            every[number : number + 1] = made
            count += (len(made) - 1) * (number < count)
        self._put(tuple(every[:count]), tuple(every[count:]))

    def _put(self, layers: tuple[Layer, ...], above: tuple[Layer, ...], top: Layer | None = None) -> None:
        """Solve layers on the clip and show the result, without blocking other threads.

        Args:
            layers: The layers below the keys.
            above: The layers above the keys.
            top: The layer of the keys; None for the existing layer.

        Raises:
            InputError: If a layer does not fit the clip, or the layers were changed in the meantime.
        """
        every = (*layers, *above)
        if len(every) > _MOST:
            raise InputError("too many layers", value=len(every), expected=f"at most {_MOST}")
        with self._state.lock:
            play, motion = self._animation.required()
            for layer in every:
                if layer.bounds(len(motion))[1] >= len(motion):
                    raise InputError("frames", value=layer.frames, expected=f"frames of 0 to {len(motion) - 1}")
            if top is not None:
                self._animation.check_keys(top)
            before = _parts(play)
            new = replace(play, layers=layers, above=above, layer=play.layer if top is None else top)
        new = new.solved(self._state.added, self.progress)
        with self._state.lock:
            play = self._state.play
            if play.motion is not motion or any(a is not b for a, b in zip(_parts(play), before, strict=True)):
                raise InputError("the layers have changed in the meantime", hint="try again")
            self._history.remember()
            play.become(new)
            self._animation.let_go()

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


def _parts(play: Play) -> tuple[object, ...]:
    """Return the parts of a clip that layers depend on, to detect changes."""
    return play.layers, play.above, play.layer, play.drag
