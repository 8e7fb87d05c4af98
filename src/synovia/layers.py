"""Layers of an edit: changes of a clip in a range of frames.

A layer refers to joints by name, so that it applies to any clip of a body and can be saved in a file. ``clips.edit``
applies layers to a clip; the live page creates layers from its keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import ChecksArguments, as_call, checked_joints
from synovia.errors import InputError, restated
from synovia.goals import Goal, PoseGoal, PositionGoal, RotationGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.model import Pose
from synovia.model.geometry import (
    EXACT,
    Array,
    as_matrix,
    as_numbers,
    dimensions,
    is_number,
    nearest_rotations,
    quaternion_hint,
)
from synovia.model.motion import Motion

_KINDS: Final = {POSITION: PositionGoal, ROTATION: RotationGoal, POSITION | ROTATION: PoseGoal}
_LARGEST: Final = 10_000_000  # largest frame number
_JOINTS: Final = "names of joints, such as ['left_hand']"
_FORMS: Final = "positions (3,), Rotations, pairs of both or 4x4 transforms, for all frames or for each frame"
_POSES: Final = "a Pose, values by joint, a Motion with a pose for each frame, or any of these by frame: {30: pose}"

Name: TypeAlias = str | int


@dataclass(frozen=True, slots=True, eq=False)
class LayerTarget:
    """Target positions and rotations of a joint in the frames of a layer.

    Args:
        position: (1, 3) for all frames, or (n, 3) with one for each frame; None to leave positions free.
        rotation: (1, 3, 3) for all frames, or (n, 3, 3); None to leave rotations free.
    """

    position: Array | None = None
    rotation: Array | None = None

    @property
    def parts(self) -> int:
        """Parts of the target that are given: POSITION, ROTATION or both."""
        return POSITION * (self.position is not None) | ROTATION * (self.rotation is not None)

    @property
    def parts_of(self) -> tuple[Array | None, Array | None]:
        """The positions and the rotations of the targets; None for a part that is not given."""
        return self.position, self.rotation

    def at(self, frames: NDArray[np.int64], first: int, last: int) -> Array:
        """Return the targets, (n, 4, 4), at given frames of a clip.

        Args:
            frames: The frames, (n,). Frames before and after the layer get its first and last target, unless there is
                a target for each frame of the clip.
            first: First frame of the layer.
            last: Last frame of the layer.
        """
        out = np.tile(np.eye(4), (len(frames), 1, 1))
        for part, values in ((np.s_[:, :3, 3], self.position), (np.s_[:, :3, :3], self.rotation)):
            if values is not None:
                start = first if len(values) == last - first + 1 else 0
                out[part] = values[np.clip(frames - start, 0, len(values) - 1)]
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """Values of joints at one frame of a clip.

    Args:
        frame: The frame; None for all frames of the layer.
        values: Values by joint: (1,) for a hinge or slide, (4,) xyzw for a ball or only the rotation of a free joint,
            (7,) for a free joint. In a relative layer, the change from the clip: a difference, or a rotation c, by
            which q becomes q · c.
    """

    frame: int | None
    values: Mapping[Name, Array]


class Layer(ChecksArguments):
    """A change of a part of a clip: goals that apply in a range of frames, with a fade before and after.

    In the frames of the layer, the goals apply. In ``blend`` frames before and after, the targets move smoothly between
    the clip's values and the layer's targets. In all other frames, the layer has no effect.

    Targets are positions, rotations or poses in the world. A target is a single value for all frames, or an array with
    a value for each frame of the layer or of the whole clip, such as from another body (``targets_from``). A goal
    without a target keeps its joint as in the first frame of the layer.

    Args:
        targets: Targets by joint or goal name: a position (3,), a ``Rotation``, a pair of both or a 4x4 transform, or
            an array with one for each frame.
        goals: Additional goals, or goals for the targets: look-at, poles, contacts, planes, a position relative to
            another joint. A clearance goal applies in every frame that the layer changes, including fades.
        pose: Target joint values: a ``Pose``, values by joint, a ``Motion`` with one pose for each frame of the layer,
            or keys by frame such as ``{30: pose, 45: pose}``. Between keys, the change from the clip is interpolated
            smoothly.
        joints: Joints of ``pose`` to use; None for all.
        frames: First and last frame, both included; None for the whole clip, or from the first to the last key.
        blend: Number of frames before and after ``frames`` in which the layer fades in and out.
        relative: Whether targets and poses are changes of the clip: positions are added along the world axes, rotations
            are applied about the world axes, and joint values are added to the clip's values.
        weight: Weight of the layer: 0 for the clip, 1 for the targets.
        name: Name of the layer in reports.
        muted: Whether the layer has no effect.
        moving: The joints that goals may move, as in ``IK``; None for all. All others keep the values of the clip or
            of the layer's keys. The root of the clip only moves if it is named.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> raised = sy.Layer({"left_hand": (0.0, 0.1, 0.0)}, frames=(30, 60), blend=10, relative=True)
        >>> looks = sy.Layer(goals=[sy.AimGoal("head", (0.0, 1.5, 2.0))], frames=(30, 60), blend=10)
        >>> raised.span(100), looks.span(65)
        ((21, 69), (21, 64))
    """

    def __init__(
        self,
        targets: Mapping[Any, Any] | None = None,
        goals: Goal | Iterable[Goal] | None = None,
        *,
        pose: Any = None,
        joints: Iterable[Name] | None = None,
        frames: tuple[int, int] | None = None,
        blend: int = 0,
        relative: bool = False,
        weight: float = 1.0,
        name: str | None = None,
        muted: bool = False,
        moving: Iterable[Name] | None = None,
    ) -> None:
        """Check the values, and convert targets and keys to a common form."""
        if name is not None and not isinstance(name, str):
            raise InputError("name", value=name, expected="text, or None")
        self.name = name
        self.frames = None if frames is None else _as_frames(frames)
        self.blend = _as_count(blend, "blend")
        for given, what in ((relative, "relative"), (muted, "muted")):
            if not isinstance(given, bool | np.bool_):
                raise InputError(what, value=given, expected="True or False")
        self.relative, self.muted = bool(relative), bool(muted)
        if not is_number(weight) or not 0.0 <= weight <= 1.0:
            raise InputError("weight", value=weight, expected="a number from 0 to 1")
        self.weight = float(weight)
        self.moving = None if moving is None else checked_joints(moving)
        self.goals = _as_goals(goals)
        self.targets = self._as_targets(targets)
        self.keys = self._as_keys(pose, joints)

    def replace(self, **changes: Any) -> Layer:
        """Return a copy of the layer with other values, such as ``layer.replace(muted=True)``."""
        values: dict[str, Any] = {
            "targets": self.targets, "goals": self.goals, "pose": self.keys or None, "frames": self.frames,
            "blend": self.blend, "relative": self.relative, "weight": self.weight, "name": self.name,
            "muted": self.muted, "moving": self.moving,
        }  # fmt: skip
        return type(self)(**{**values, **changes})

    def bounds(self, count: int) -> tuple[int, int]:
        """Return the first and the last frame of the layer in a clip with ``count`` frames."""
        keyed = [key.frame for key in self.keys if key.frame is not None]
        if self.frames is None and keyed and not (self.goals or self.targets):
            return keyed[0], keyed[-1]
        return self.frames or (0, max(count - 1, 0))

    def span(self, count: int) -> tuple[int, int]:
        """Return the first and the last frame that the layer changes, fades included, in a clip of ``count`` frames."""
        first, last = self.bounds(count)
        fade = max(self.blend - 1, 0)  # without the outermost frame, whose weight is 0
        return max(first - fade, 0), min(last + fade, count - 1)

    @property
    def empty(self) -> bool:
        """Whether the layer changes nothing in any clip."""
        return self.muted or self.weight == 0.0 or not (self.goals or self.targets or self.keys)

    @property
    def label(self) -> str:
        """Name of the layer, or else the names of its joints and goals."""
        if self.name is not None:
            return self.name
        named = [goal.label for goal in self.goals if goal.label not in self.targets]
        keyed = [str(joint) for key in self.keys[:1] for joint in key.values]
        found = list(dict.fromkeys([*map(str, self.targets), *named, *keyed]))
        return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "") or "empty layer"

    def all_goals(self) -> tuple[tuple[Goal, LayerTarget | None], ...]:
        """Return all goals with their targets: the given goals, and a new goal for each target without a goal."""
        left = dict(self.targets)
        pairs: list[tuple[Goal, LayerTarget | None]] = []
        for goal in self.goals:
            key = goal.label if goal.label in left else goal.joint
            pairs.append((goal, left.pop(key, None) if key is not None else None))
        pairs += [(_KINDS[target.parts](joint), target) for joint, target in left.items()]
        return tuple(pairs)

    def _as_targets(self, targets: Any) -> dict[Name, LayerTarget]:
        """Convert targets to a common form.

        Raises:
            InputError: If a target cannot be used.
        """
        if targets is None:
            return {}
        if not isinstance(targets, Mapping):
            raise InputError("targets", value=targets, expected="a dict from joints or goals to their targets")
        out: dict[Name, LayerTarget] = {}
        count = None if self.frames is None else self.frames[1] - self.frames[0] + 1
        for key, value in cast("Mapping[Any, Any]", targets).items():
            out[_as_name(key, "key of a target")] = _as_target(value, f"target of {key!r}", count)
        return out

    def _as_keys(self, pose: Any, joints: Any) -> tuple[Key, ...]:
        """Return the keys, sorted by frame.

        Raises:
            InputError: If a key cannot be used.
        """
        if pose is None:
            if joints is not None:
                raise InputError("joints", value=joints, expected="pose= too", hint="joints= chooses joints of a pose")
            return ()
        chosen = None
        if joints is not None:
            given: Any = joints
            chosen = set[Name]() if isinstance(joints, str) or not isinstance(joints, Iterable) else set[Name](given)
            if not chosen:
                raise InputError("joints", value=given, expected=_JOINTS)
        keys = self._keys_of(pose)
        if chosen is not None:
            keys = [Key(key.frame, _only(key.values, chosen, pose)) for key in keys]
        if any(not key.values for key in keys) or not keys:
            raise InputError("pose", value=pose, expected="the value of at least one joint")
        keys.sort(key=lambda key: -1 if key.frame is None else key.frame)
        if self.frames is not None:
            for key in keys:
                if key.frame is not None and not self.frames[0] <= key.frame <= self.frames[1]:
                    expected = f"{self.frames[0]} to {self.frames[1]}, the frames of the layer"
                    raise InputError("frame of a key", value=key.frame, expected=expected)
        return tuple(keys)

    def _keys_of(self, pose: Any) -> list[Key]:
        """Return the keys of a pose, of poses by frame, or of a motion."""
        if isinstance(pose, Motion):
            return self._keys_of_motion(pose)
        if isinstance(pose, tuple) and all(isinstance(key, Key) for key in cast("tuple[Any, ...]", pose)):
            given = cast("tuple[Key, ...]", pose)
            return [Key(key.frame, _values_of(key.values)) for key in given]
        by_frame = cast("Mapping[Any, Any]", pose) if isinstance(pose, Mapping) else None
        if by_frame and all(isinstance(value, Pose | Mapping) for value in by_frame.values()):
            return [Key(_as_count(frame, "frame of a key"), _values_of(one)) for frame, one in by_frame.items()]
        return [Key(None, _values_of(pose))]

    def _keys_of_motion(self, motion: Motion) -> list[Key]:
        """Return a key for each frame of the layer."""
        if self.frames is None:
            raise InputError("frames", expected="the first and last frame of the layer with pose=motion")
        first, count = self.frames[0], self.frames[1] - self.frames[0] + 1
        if len(motion) != count:
            raise InputError("frames of pose", value=len(motion), expected=f"{count}, one for each frame of the layer")
        return [Key(first + k, _values_of(motion.pose(k))) for k in range(count)]

    def __repr__(self) -> str:
        """Return the constructor call without default values."""
        values: dict[str, Any] = {name: getattr(self, name) for name in ("frames", "blend", "relative", "weight")}
        values |= {
            "name": self.name,
            "muted": self.muted,
            "moving": self.moving,
            "goals": self.goals or None,
            "pose": self.keys or None,
        }
        values["targets"] = dict.fromkeys(self.targets, "...") or None
        return as_call(self, values)


def is_movable(layer: Layer) -> bool:
    """Return whether the targets of a layer can be relative to the clip or absolute, see ``moved_along``."""
    pairs = () if layer.keys else layer.all_goals()
    return bool(pairs) and all(
        type(goal) in _KINDS.values()
        and np.array_equal(goal.frame, np.eye(4))
        and all(part is None or len(part) == 1 for part in (target or LayerTarget()).parts_of)
        for goal, target in pairs
    )


def moved_along(layer: Layer, pose: Pose, relative: bool) -> Layer:
    """Convert the targets of a layer to changes of the clip, or to absolute targets; both agree at a given pose.

    Args:
        layer: The layer, for which ``is_movable`` is True.
        pose: The pose of the clip for which both forms give the same targets.
        relative: Whether the new targets are changes of the clip.

    Raises:
        InputError: If the layer has other targets or keys.
    """
    if not is_movable(layer):
        raise InputError("relative", value=layer, expected="a layer with one place or rotation for each joint")
    if layer.relative == relative:
        return layer
    targets: dict[Name, LayerTarget] = {}
    for goal, target in layer.all_goals():
        joint = cast("Name", goal.joint)
        own = pose.transform(joint)
        parts = goal.constrained_parts if target is None else target.parts
        wanted = own if goal.target is None else goal.target
        if target is not None:
            wanted = target.at(np.zeros(1, np.int64), 0, 0)[0]
        place, turn = wanted[:3, 3], wanted[:3, :3]
        if relative:
            place, turn = place - own[:3, 3], turn @ own[:3, :3].T
        else:
            place, turn = own[:3, 3] + place, turn @ own[:3, :3]
        targets[joint] = LayerTarget(
            place[None] if parts & POSITION else None, turn[None] if parts & ROTATION else None
        )
    return layer.replace(targets=targets, goals=None, relative=relative)


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
    by = first - start if last - first == end - start else 0
    keys: dict[int | None, Key] = {}
    for key in layer.keys:
        at = None if key.frame is None else min(max(key.frame + by, first), last)
        keys.setdefault(at, Key(at, key.values))
    return layer.replace(frames=frames, pose=tuple(keys.values()) or None)


def _any(value: Any) -> Any:
    """Return a value as ``Any``, for values whose type the checker has narrowed to partially unknown."""
    return value


def _as_name(value: Any, what: str) -> Name:
    """Return the name or the row of a joint.

    Raises:
        InputError: If the value is neither.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(what, value=value, expected="a joint's or goal's name")
    return int(_any(value))


def _as_count(value: Any, what: str) -> int:
    """Check that a value is a number of frames from 0, and return it.

    Raises:
        InputError: If the value is no whole number in the range.
    """
    if not is_number(value) or value != value or int(value) != value or not 0 <= value <= _LARGEST:
        raise InputError(what, value=value, expected="a whole number of frames from 0")
    return int(value)


def _as_frames(value: Any) -> tuple[int, int]:
    """Return the first and the last frame.

    Raises:
        InputError: If they cannot be used.
    """
    expected = "the first and the last frame, both included, such as (30, 60)"
    ends: list[Any] = [] if isinstance(value, str) or dimensions(value) != 1 else [*_any(value)]
    if len(ends) != 2:
        raise InputError("frames", value=value, expected=expected)
    first, last = (_as_count(frame, "frames") for frame in ends)
    if first > last:
        raise InputError("frames", value=value, expected=expected)
    return first, last


def _as_goals(goals: Any) -> tuple[Goal, ...]:
    """Return goals as a tuple.

    Raises:
        InputError: If an item is no goal, or is a rest goal.
    """
    if goals is None:
        return ()
    if isinstance(goals, Goal):
        goals = (goals,)
    if not isinstance(goals, Iterable) or isinstance(goals, str):
        raise InputError("goals", value=_any(goals), expected="goals, such as [AimGoal('head', point)]")
    out = tuple(cast("Iterable[Any]", goals))
    for i, goal in enumerate(out):
        if not isinstance(goal, Goal):
            raise InputError("", where=f"goals[{i}]", value=goal, expected="a goal, such as AimGoal('head', point)")
        if goal.needs == "rest":
            hint = "an edit stays near the clip by itself; pose= sets values of joints"
            raise InputError("", where=f"goals[{i}]", value=goal, expected="a goal other than a rest goal", hint=hint)
    return out


def _as_target(value: Any, what: str, count: int | None) -> LayerTarget:
    """Convert a target to a common form.

    Args:
        value: The target as given by the user.
        what: Name of the target for messages.
        count: Number of frames of the layer; None if the layer has all frames of the clip.

    Raises:
        InputError: If the target cannot be used.
    """
    if isinstance(value, LayerTarget):
        place, turn = value.position, value.rotation
        return LayerTarget(
            None if place is None else _as_positions(place, what), None if turn is None else _as_rotations(turn, what)
        )
    if hasattr(value, "as_matrix"):
        return LayerTarget(None, _as_rotations(value, what))
    given: Any = value
    shape: tuple[int, ...] = np.shape(value) if dimensions(value) > 0 else ()
    if isinstance(value, tuple | list) and len(shape) < 3 and len(pair := _any(value)) == 2 and _is_turn(pair[1]):
        target = LayerTarget(_as_positions(pair[0], what), _as_rotations(pair[1], what))
        lengths = {len(part) for part in (target.position, target.rotation) if part is not None} - {1}
        if len(lengths) > 1:
            raise InputError(f"lengths of {what}", value=sorted(lengths), expected="the same for both parts")
        return target
    if shape[-2:] == (4, 4) and len(shape) in (2, 3):
        frames = as_numbers(given, shape, what).reshape(-1, 4, 4)
        if np.abs(frames[:, 3] - (0.0, 0.0, 0.0, 1.0)).max(initial=0.0) > 1e-3:
            raise InputError(f"last row of {what}", value=frames[0, 3].tolist(), expected="0 0 0 1")
        return LayerTarget(frames[:, :3, 3].copy(), _as_rotations(frames[:, :3, :3], what))
    if shape == (3, 3):  # (3, 3) may be three positions or one rotation
        square = as_numbers(given, shape, what)
        turns = float(np.abs(square @ square.T - np.eye(3)).max()) < 1e-3
        if turns and count == 3:
            hint = "pass sy.Rotation.from_matrix(...) for a rotation, or transforms (3, 4, 4)"
            raise InputError(what, value=square.tolist(), expected="one rotation or three positions", hint=hint)
        return LayerTarget(None, _as_rotations(value, what)) if turns else LayerTarget(_as_positions(value, what))
    if shape[-2:] == (3, 3) and len(shape) == 3:
        return LayerTarget(None, _as_rotations(value, what))
    if shape[-1:] == (3,) and len(shape) in (1, 2):
        return LayerTarget(_as_positions(value, what))
    raise InputError(what, value=given, expected=_FORMS, hint=quaternion_hint(given))


def _is_turn(value: Any) -> bool:
    """Return whether the second part of a pair is a rotation."""
    return hasattr(value, "as_matrix") or dimensions(value) >= 2


def _as_positions(value: Any, what: str) -> Array:
    """Return positions (n, 3)."""
    out = as_numbers(value, (3,) if dimensions(value) == 1 else (-1, 3), what).reshape(-1, 3)
    if not len(out):
        raise InputError(what, value=out.shape, expected=_FORMS)
    return out


def _as_rotations(value: Any, what: str) -> Array:
    """Return rotation matrices (n, 3, 3)."""
    numbers = value.as_matrix() if hasattr(value, "as_matrix") else value
    if dimensions(numbers) == 2:
        return as_matrix(numbers, what)[None]
    out = as_numbers(numbers, (-1, 3, 3), what)
    error = np.abs(np.swapaxes(out, 1, 2) @ out - np.eye(3)).max((1, 2), initial=0.0)
    wrong = ~((error < 1e-3) & (np.linalg.det(out) > 0.0))
    if wrong.any() or not len(out):
        as_matrix(out[int(np.argmax(wrong))] if len(out) else out, what)  # raises an error with the reason
        raise InputError(what, expected="rotation matrices")
    rounded = error > EXACT
    out[rounded] = nearest_rotations(out[rounded])
    return out


def _values_of(pose: Any) -> dict[Name, Array]:
    """Return the values of joints by name.

    Raises:
        InputError: If they cannot be used.
    """
    if isinstance(pose, Pose):
        skeleton = pose.skeleton
        slices = [(row, skeleton.q_slice(row)) for row in range(len(skeleton))]
        return {skeleton.address(row): pose.q[at].copy() for row, at in slices if at.stop > at.start}
    if not isinstance(pose, Mapping):
        raise InputError("pose", value=pose, expected=_POSES)
    out: dict[Name, Array] = {}
    for joint, value in cast("Mapping[Any, Any]", pose).items():
        numbers = value.as_quat() if hasattr(value, "as_quat") else value
        try:
            array = as_numbers([numbers] if dimensions(numbers) == 0 else numbers, (-1,), f"value of joint {joint!r}")
        except InputError as error:
            raise restated(error, InputError, error.where or "pose") from error
        if len(array) not in (1, 4, 7):
            expected = "1 number for a hinge or slide, 4 (xyzw) for a ball, 7 for a free joint"
            raise InputError(f"value of joint {joint!r}", value=array.tolist(), expected=expected)
        out[_as_name(joint, "joint of a pose")] = array
    return out


def _only(values: Mapping[Name, Array], chosen: set[Name], pose: Any) -> dict[Name, Array]:
    """Return the values of the chosen joints; these may be given by any name that the pose's skeleton knows."""
    if missing := [joint for joint in chosen if joint not in values]:
        skeleton = pose.skeleton if isinstance(pose, Pose | Motion) else None
        if skeleton is None:
            raise InputError("joints", value=missing[0], expected="joints of the pose")
        chosen = (chosen - set(missing)) | {skeleton.address(skeleton.value_index(joint)) for joint in missing}
    return {joint: value for joint, value in values.items() if joint in chosen}
