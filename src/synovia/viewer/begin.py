"""How a goal editor gets its values: those that its kind begins with, of the present pose, of an edit, or of a goal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import numpy as np

from synovia.draw.camera import direction
from synovia.draw.scene import up_of
from synovia.errors import InputError
from synovia.goals import Goal, RangeGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.model import Pose, Skeleton
from synovia.model.derived import up_vector
from synovia.model.geometry import Array, align_z, as_direction, frames_to_transforms, rigid
from synovia.viewer.editor import JOINTS, GoalEditor, address, kind_of, value_ends

_FRAMES: Final = ("keep", "parts", "other")  # the frame of a goal's target depends on these
_BEFORE: Final = 0.3  # of the body's size: how far before a joint the point is that it looks at


def begin_values(editor: GoalEditor, skeleton: Skeleton) -> None:
    """Set the directions, numbers and second joint of an editor to the defaults of its kind."""
    kind = kind_of(editor.kind)
    values: dict[str, Any] = {}
    if "axis" in kind.vectors:
        values["axis"] = (0.0, 0.0, 1.0)
    if "normal" in kind.vectors:
        values["normal"] = tuple(direction(up_of(skeleton), "y").tolist())
    if "minimum" in kind.numbers:
        values["minimum"] = 0.0
    if "maximum" in kind.numbers:
        values["maximum"] = 0.1 * (skeleton.size or 1.0)
    if kind.other and editor.row is not None:
        values["other"] = _beside(editor.row, skeleton)
        values["parts"] = "pose"
    if "keep" in kind.further:
        values["keep"] = "pose"
    if kind.goal is RangeGoal and editor.row is not None:
        values["lower"], values["upper"] = value_ends(skeleton, editor.row)
    editor.values = values
    fit_frame(editor, skeleton)


def _beside(row: int, skeleton: Skeleton) -> int:
    """Return the default second joint of a goal: the parent, else a child.

    Raises:
        InputError: If it is the only joint.
    """
    near = (skeleton.parents[row], *skeleton.children[row], *range(len(skeleton)))
    other = next((other for other in near if other >= 0 and other != row), None)
    if other is None:
        raise InputError("there is no other joint to measure against", where=skeleton.name)
    return other


def fit_frame(editor: GoalEditor, skeleton: Skeleton) -> None:
    """Set the rotation of an editor's offset as its kind needs it: the z axis along the normal of a sole, else none.

    Raises:
        InputError: If the upward direction is unknown.
    """
    turn = editor.offset[:3, :3]
    if "keep" in kind_of(editor.kind).further and editor.row is not None:
        if editor.values["keep"] == "normal":
            axis = editor.values.get("axis")
            if axis is None:
                axis = skeleton.rest_pose().matrix(editor.row).T @ up_vector(skeleton, "axis=")
            turn = align_z(as_direction(axis, "axis"))
        elif editor.values.pop("axis", None) is not None or editor.values["keep"] == "point":
            turn = np.eye(3)
    elif not kind_of(editor.kind).frames:
        turn = np.eye(3)
    editor.offset = rigid(editor.offset[:3, 3], turn)


def edited(
    editor: GoalEditor, values: dict[str, Any], skeleton: Skeleton, to_current: Callable[[GoalEditor], None]
) -> GoalEditor:
    """Return a copy of an editor with other values of some fields, and the target adapted to them.

    Args:
        editor: The editor.
        values: The other values, by the name of the field.
        skeleton: The skeleton that was given.
        to_current: Puts an editor's target where its joint is now.

    Raises:
        InputError: If a value cannot be used.
    """
    tried = editor.copy()
    for name, value in values.items():
        setattr(tried, name, value)
    if tried.kind != editor.kind:
        if kind_of(tried.kind).whole != kind_of(editor.kind).whole:
            raise InputError("a goal on a joint cannot become one of the whole body, nor back", value=tried.kind)
        begin_values(tried, skeleton)
        to_current(tried)
    elif any(tried.values.get(name) != editor.values.get(name) for name in _FRAMES):
        fit_frame(tried, skeleton)
        to_current(tried)
        tried.position = tried.eased_position = editor.position
    goal = tried.goal(partial(address, skeleton))  # its constructor refuses what cannot be used
    if isinstance(goal, RangeGoal):
        goal.resolved(skeleton)  # which its joint's limits may rule out
    return tried


def free_label(label: str, taken: Iterable[str]) -> str:
    """Return a label that is not taken: the given one, with a number if needed."""
    out, number, others = label, 2, set(taken)
    while out in others:
        out, number = f"{label} {number}", number + 1
    return out


def tip_of(pose: Pose, editor: GoalEditor, added: int) -> tuple[Array, Array]:
    """Return the world position (3,) and rotation (3, 3) of the frame that should meet an editor's target."""
    if editor.row is None:
        return balance_of(pose), np.eye(3)
    row = pose.frames[editor.row + added]
    turn = row[:9].reshape(3, 3)
    return row[9:] + turn @ editor.offset[:3, 3], turn @ editor.offset[:3, :3]


def balance_of(pose: Pose) -> Array:
    """Return the centre of mass, (3,), length units, or the mean joint position of a body without masses."""
    if any(joint.mass for joint in pose.skeleton.joints):
        return pose.center_of_mass()
    return pose.positions.mean(axis=0)


def place_at_current(editor: GoalEditor, pose: Pose, added: int, reach: float) -> None:
    """Put an editor's target where its joint is now, or where it already looks or bends.

    Args:
        editor: The editor.
        pose: The body.
        added: Rows that the pose has before those of the skeleton that was given.
        reach: Size of the body, length units.
    """
    if editor.row is None:
        editor.position = balance_of(pose)
        editor.snap()
        return
    frame = pose.frames[editor.row + added]
    turn = frame[:9].reshape(3, 3)
    editor.position = frame[9:] + turn @ editor.offset[:3, 3]
    editor.rotation = turn @ editor.offset[:3, :3]
    if editor.kind == "aim":
        axis = np.asarray(editor.values["axis"], float)
        editor.position = editor.position + _BEFORE * reach * (turn @ axis) / (np.linalg.norm(axis) or 1.0)
    elif editor.kind == "relative":
        other = pose.frames[editor.values["other"] + added]
        frame_of_other = frames_to_transforms(other) @ as_frame(editor.values.get("other_offset"))
        held = np.linalg.inv(frame_of_other) @ rigid(editor.position, editor.rotation)
        parts = editor.values["parts"]
        editor.values["position"] = None if parts == "rotation" else held[:3, 3]
        editor.values["rotation"] = None if parts == "position" else held[:3, :3]
    elif editor.kind == "pole":
        row = editor.row + added
        near = (pose.skeleton.parents[row], *pose.skeleton.children[row][:1])
        named = [editor.values.get(name) for name in ("root", "tip")]
        ends = [
            pose.positions[beside if own is None else own + added]
            for own, beside in zip(named, (*near, -1), strict=False)
            if own is not None or beside >= 0
        ]
        bend = frame[9:] - np.mean(ends, axis=0) if ends else turn[:, 2]
        length = float(np.linalg.norm(bend))
        editor.position = editor.position + _BEFORE * reach * (bend / length if length > 1e-3 * reach else turn[:, 2])
    editor.snap()


def editor_from(editor: GoalEditor, goal: Goal, skeleton: Skeleton, to_current: Callable[[GoalEditor], None]) -> None:
    """Set an editor to all values of a goal.

    Args:
        editor: An editor of the goal's kind, on its joint.
        goal: The goal.
        skeleton: The skeleton that was given.
        to_current: Puts an editor's target where its joint is now: what the goal leaves as it is.

    Raises:
        UnknownNameError: If a joint does not exist.
    """
    kind = kind_of(editor.kind)
    editor.weight, editor.priority, editor.name = goal.weight, goal.priority, goal.name
    placed, turned = goal.given & POSITION > 0, goal.given & ROTATION > 0
    frame = np.eye(4) if goal.target is None else goal.target
    own = {
        "axis": lambda: goal.offset[:3, 2] if kind.vectors else getattr(goal, "axis", None),
        "normal": lambda: frame[:3, 2] if turned and kind.vectors else None,
        "position": lambda: frame[:3, 3] if placed else None,
        "rotation": lambda: frame[:3, :3] if turned else None,
        "joints": lambda: getattr(goal, "parts", None),
        "maximum": lambda: getattr(goal, "maximum", math.inf) if math.isfinite(getattr(goal, "maximum", 0)) else None,
        "other_offset": lambda: _plain(np.array(getattr(goal, "other_offset", np.eye(4))), frame=kind.frames),
    }
    editor.values = {name: own[name]() if name in own else getattr(goal, name, None) for name in kind.further}
    editor.values = {name: value for name, value in editor.values.items() if value is not None}
    editor.values |= {name: skeleton.index(editor.values[name]) for name in JOINTS if name in editor.values}
    editor.values |= {name: tuple(editor.values[name].tolist()) for name in kind.vectors if name in editor.values}
    editor.offset = np.array(goal.offset)
    fit_frame(editor, skeleton)
    held = {name: editor.values[name] for name in ("position", "rotation") if name in editor.values}
    to_current(editor)
    editor.given = goal.given
    editor.values |= held
    if placed:
        editor.position = np.array(frame[:3, 3])
    if turned and kind.rotation:
        editor.rotation = np.array(frame[:3, :3])
    editor.snap()


def as_frame(offset: Any) -> Array:
    """Return an offset (a point (3,), a frame (4, 4) or None) as a frame."""
    if offset is None:
        return rigid()
    return rigid(offset) if np.ndim(offset) == 1 else np.asarray(offset)


def _plain(offset: Array, *, frame: bool) -> Array | None:
    """Return an offset in the form of a goal's argument, None for the joint's own frame."""
    if np.array_equal(offset, np.eye(4)):
        return None
    return offset if frame else offset[:3, 3]
