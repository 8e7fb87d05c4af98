"""The clip that plays under the goals: its state, its pose at a time, and its layers and keys."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from synovia.arguments import Progress
from synovia.clips.editing import Edited, EditStack
from synovia.clips.editing.keys import KeyCurves, changed_rows, with_changes
from synovia.clips.editing.layered import PoseOnClip
from synovia.errors import InputError, SynoviaError, UnsupportedError
from synovia.ik import Solution
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

_Found = tuple[KeyCurves, tuple[int, ...], Skeleton]  # curves of keys, rows of joints that they move, body with limits


@dataclass(slots=True)
class Play:
    """State of the clip that plays under the goals.

    Args:
        motion: The clip; None without a clip.
        time: Seconds from the first frame.
        playing: Whether the clip runs.
        speed: Factor of the recorded speed, also of the saved clip; negative values play backwards.
        shuttle: Factor of the speed that only concerns playback on the page; negative values play backwards.
        loop: Whether the clip begins again after its end.
        weight: Weight of the clip in the blend with the pose without the clip, 0 to 1.
        first: First frame that plays.
        last: Last frame that plays; None for the last frame of the clip.
        layers: Layers on the clip, in order, below the keys.
        above: Layers on top of the keys, in order.
        edited: The clip with all layers, and with the keys if there are layers on top of them; None if no layer has an
            effect.
        lower: The clip with the layers below the keys; None if ``edited`` contains no more than these.
        layer: The keys: for joints of the solved skeleton, changes of the clip with the layers below the keys.
        drag: The layer that is being dragged, which ``edited`` does not have yet; None without a drag.
        stack: Solves the layers; it keeps the results of layers that stay the same.
        paused: Keys of the goals that are disabled because a clip plays.
    """

    motion: Motion | None = None
    time: float = 0.0
    playing: bool = False
    speed: float = 1.0
    shuttle: float = 1.0
    loop: bool = True
    weight: float = 1.0
    first: int = 0
    last: int | None = None
    layers: tuple[Layer, ...] = ()
    above: tuple[Layer, ...] = ()
    edited: Edited | None = None
    lower: Motion | None = None
    layer: Layer = _NO_KEYS
    drag: LayerDrag | None = None
    stack: EditStack | None = None
    paused: frozenset[int] = frozenset()
    # cache: the layer of keys, and the same without the values of a root that the page has added
    _plain: tuple[Layer, Layer] | None = None
    _curves: tuple[Layer, Skeleton, _Found] | None = None  # cache for the last evaluated layer

    @property
    def keys(self) -> tuple[Key, ...]:
        """Keys of the layer, by frame."""
        return self.layer.keys

    @property
    def below(self) -> Motion | None:
        """The clip with its layers below the keys; None without a clip."""
        return self.lower or self.top

    @property
    def top(self) -> Motion | None:
        """The clip with all layers; without the keys, unless a layer is on top of them; None without a clip."""
        return self.motion if self.edited is None else self.edited.motion

    @property
    def all(self) -> tuple[Layer, ...]:
        """All layers except the keys, in order, with the layer that is being dragged."""
        return (*self.layers, *self.above) if self.drag is None else self.drag.layers

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
        """Advance the time by some seconds, from the first to the last frame that play; then loop or stop."""
        first, last = self.span
        if not self.playing or last <= first:
            return
        by = seconds * self.speed * self.shuttle
        if self.loop:
            self.time = first + (self.time + by - first) % (last - first)
        else:
            self.time = min(max(self.time + by, first), last)
            self.playing = self.time < last if by > 0.0 else self.time > first

    def rewind(self) -> None:
        """Go to the other end of the frames that play, if the clip does not loop and is at its end."""
        first, last = self.span
        ahead = self.speed * self.shuttle > 0.0
        if not self.loop and self.time == (last if ahead else first):
            self.time = first if ahead else last

    def solver(self) -> EditStack:
        """Return the stack of edits that solves the layers of the clip."""
        if self.stack is None:
            if self.motion is None:
                raise InputError("no clip is chosen")
            self.stack = EditStack(self.motion)
        return self.stack

    def ordered(self, added: Collection[str | int]) -> list[Layer]:
        """Return all layers in order, the keys among them if there are any.

        Args:
            added: Joints of a root that the page has added.

        Raises:
            UnsupportedError: If the keys move these joints.
        """
        if not self.keys:
            return [*self.layers, *self.above]
        if self._plain is None or self._plain[0] is not self.layer:
            keys = tuple(Key(key.frame, without_root(key.values, added)) for key in self.keys)
            self._plain = self.layer, self.layer.replace(pose=keys) if added else self.layer
        return [*self.layers, self._plain[1], *self.above]

    def solved(self, added: Collection[str | int], progress: Progress | None = None) -> Play:
        """Return this state with its layers solved.

        Args:
            added: As in ``ordered``.
            progress: As in ``sy.edit``.
        """
        layers = self.ordered(added) if self.above else [*self.layers]
        if self.motion is None or all(layer.empty for layer in layers):
            return replace(self, edited=None, lower=None, drag=None)
        lower: Motion | None = None
        if self.above:
            lower = Motion(self.motion.skeleton, self.solver().values(self.layers), self.motion.fps)
        return replace(self, edited=self.solver().edited(layers, progress=progress), lower=lower, drag=None)

    def become(self, other: Play) -> None:
        """Take the layers and keys of another state."""
        self.layers, self.above, self.layer = other.layers, other.above, other.layer
        self.edited, self.lower, self.drag, self._plain = other.edited, other.lower, other.drag, other._plain

    def keyed(self, skeleton: Skeleton, frames: Array, below: Array) -> Array:
        """Return joint values with the changes of the keys, (n, nq), clamped to limits as in ``sy.edit``.

        Args:
            skeleton: The solved skeleton.
            frames: Frames of the clip, (n,), also fractional.
            below: Joint values at these frames, (n, nq): before the keys, or after them if layers lie above.
        """
        found = self._found(skeleton)
        if found is None or self.above:
            return below
        curves, moved, limited = found
        return with_changes(limited, below, curves.at(frames, below), moved)[0]

    def _found(self, skeleton: Skeleton) -> _Found | None:
        """Return the curves of the keys, the joints that they move, and a body with limits; None without keys."""
        if not self.keys or self.motion is None:
            return None
        if self._curves is None or self._curves[0] is not self.layer or self._curves[1] is not skeleton:
            still = np.broadcast_to(no_change(skeleton), (len(self.motion), skeleton.nq))  # the keys are changes
            curves = KeyCurves(skeleton, self.layer, still)
            moved = changed_rows(skeleton, curves.at(np.arange(len(self.motion), dtype=np.float64), still))
            self._curves = self.layer, skeleton, (curves, moved, self._limited(skeleton))
        return self._curves[2]

    def _limited(self, skeleton: Skeleton) -> Skeleton:
        """Return the skeleton with the limits that ``sy.edit`` uses: wide enough for the clip."""
        own = self.solver().body.skeleton
        if self.motion is None or own is self.motion.skeleton:
            return skeleton
        added = len(skeleton) - len(own)
        pairs = zip(skeleton.joints[added:], own.joints, strict=True)
        return skeleton.with_joints([*skeleton.joints[:added], *(replace(a, limit=b.limit) for a, b in pairs)])


class LayerDrag:
    """A layer of one frame while it is dragged. All other frames show it after the drag has ended.

    Args:
        play: The clip with its layers before the drag.
        layer: The layer, which replaces another one or is on top.
        number: Index of the layer that is replaced, in ``play.all``; None for a new layer on top.
        added: Joints of a root that the page has added.
        editor: Key of the dragged goal; None if a joint is turned.

    Attributes:
        layer: The layer as dragged so far.
        frame: The frame.
        trouble: Reason why the layer cannot be solved; empty if it can.
        ended: Whether the drag has ended, so that the other frames may be solved.
    """

    def __init__(
        self, play: Play, layer: Layer, number: int | None, added: Collection[str | int], editor: int | None = None
    ) -> None:
        """Find the layers below and above."""
        self.layer, self.frame, self.editor, self.trouble, self.ended = layer, play.frame, editor, "", False
        self._given, self._number, self._tops = (play.layers, play.above), number, bool(play.keys or play.above)
        self._stack: EditStack = play.solver()
        every, below = play.ordered(added), len(play.layers)
        at = len(every) if number is None else number + (number >= below and bool(play.keys))
        self._below, self._above = every[:at], every[at + (number is not None) :]
        count = 0 if play.motion is None else len(play.motion)
        spans = [one.span(count) for one in self._above if not one.empty]
        self._alone = not any(first <= self.frame <= last for first, last in spans)
        self._solver = self._stack.on_top(self._below, layer)
        self._solved: tuple[Layer, PoseOnClip] | None = None
        self._lock = threading.Lock()

    @property
    def values(self) -> Array:
        """Joint values of the clip below the layer, (T, nq)."""
        return self._stack.values(self._below)

    @property
    def below(self) -> Array:
        """Joint values of the frame below the layer, (nq,)."""
        return self.values[self.frame]

    @property
    def placed(self) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
        """The layers below and above the keys, with this one."""
        layers, above = self._given
        if self._number is None:
            return (layers, (*above, self.layer)) if self._tops else ((*layers, self.layer), above)
        every = [*layers, *above]
        every[self._number] = self.layer
        return tuple(every[: len(layers)]), tuple(every[len(layers) :])

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All layers except the keys, with this one."""
        layers, above = self.placed
        return (*layers, *above)

    def pose(self) -> PoseOnClip:
        """Return the pose of the frame; after an error, the last pose before the error."""
        with self._lock:
            layer = self.layer
            if self._solved is None or self._solved[0] is not layer:
                try:
                    self._solved, self.trouble = (layer, self._pose(layer)), ""
                except SynoviaError as error:
                    last = PoseOnClip(self.below, True, np.zeros((0, 2))) if self._solved is None else self._solved[1]
                    self._solved, self.trouble = (layer, last), str(error)
            return self._solved[1]

    def solution(self) -> Solution | None:
        """Return the solution of the layer in the frame, which says why goals are missed; None without goals."""
        return self._stack.on_top(self._below, self.layer).solution(self.frame)

    def _pose(self, layer: Layer) -> PoseOnClip:
        """Solve only this frame if other frames do not affect it, else all frames of this layer and of those above."""
        if self._alone and self._solver.single and layer.frames == (self.frame, self.frame):
            if layer.keys:
                self._solver = self._stack.on_top(self._below, layer)
            return self._solver.pose(layer)
        edited = self._stack.edited([*self._below, layer, *self._above])
        missed = any(
            one.cause == "missed" and one.layer == layer.label and self.frame in one.frames for one in edited.findings
        )
        return PoseOnClip(edited.motion.q[self.frame], missed, np.zeros((0, 2)))


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
