"""Set the values of a goal editor from the defaults of its kind, the current pose, an edit, or a given goal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import numpy as np

from synovia.errors import InputError
from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.goals.describe import Place
from synovia.model import Kind, Pose, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import Array, align_z, as_direction, frames_to_transforms, rigid
from synovia.model.shapes.world import World
from synovia.viewer.editing.editor import GoalEditor, kind_of

_FRAMES: Final = ("keep", "parts", "other")  # arguments that change the frame of the target


def set_defaults(editor: GoalEditor, skeleton: Skeleton, world: World | None = None) -> None:
    """Set the directions, numbers, second joint and world of an editor to the defaults of its kind."""
    row, goal = 0 if editor.row is None else editor.row, kind_of(editor.kind).goal
    editor.values = goal.first_values(skeleton, row, find_up(skeleton).vector)
    if goal.takes_world:
        editor.values["world"] = world
    if goal.is_constraint or editor.priority is None:
        editor.priority = None if goal.is_constraint else 0
    fit_frame(editor, skeleton)


def fit_frame(editor: GoalEditor, skeleton: Skeleton) -> None:
    """Set the rotation of an editor's offset: with a normal, the z axis along the normal, else the identity.

    Raises:
        InputError: If the upward direction is unknown.
    """
    turn = editor.offset[:3, :3]
    if "keep" in kind_of(editor.kind).further and editor.row is not None:
        if editor.values["keep"] == "normal":
            axis = editor.values.get("axis")
            if axis is None:
                axis = skeleton.rest_pose().matrix(editor.row).T @ skeleton.up_vector("axis=")
            turn = align_z(as_direction(axis, "axis"))
        elif editor.values.pop("axis", None) is not None or editor.values["keep"] == "point":
            turn = np.eye(3)
    elif not kind_of(editor.kind).frames:
        turn = np.eye(3)
    editor.offset = rigid(editor.offset[:3, 3], turn)


def edited(
    editor: GoalEditor,
    values: dict[str, Any],
    skeleton: Skeleton,
    to_current: Callable[[GoalEditor], None],
    world: World | None = None,
) -> GoalEditor:
    """Return a copy of an editor with new values of some fields, and with a target that fits these values.

    Args:
        editor: The editor.
        values: The new values, by field name.
        skeleton: The given skeleton.
        to_current: Moves an editor's target to its joint.
        world: The obstacles; None without any.

    Raises:
        InputError: If a value cannot be used.
    """
    tried = editor.copy()
    for name, value in values.items():
        setattr(tried, name, value)
    if tried.kind != editor.kind:
        if kind_of(tried.kind).goal.on_joint != kind_of(editor.kind).goal.on_joint:
            raise InputError("a joint goal cannot become a goal of the whole body, or the reverse", value=tried.kind)
        set_defaults(tried, skeleton, world)
        to_current(tried)
    elif any(tried.values.get(name) != editor.values.get(name) for name in _FRAMES):
        fit_frame(tried, skeleton)
        to_current(tried)
        tried.position = tried.eased_position = editor.position
    goal = tried.goal(skeleton.address)  # raises InputError for a bad value
    if goal.bounds_value:
        goal.resolved(skeleton)  # raises InputError if the bounds and the joint's limits have no value in common
    return tried


def free_label(label: str, taken: Iterable[str]) -> str:
    """Return a label; append a number if another goal has the label."""
    out, number, others = label, 2, set(taken)
    while out in others:
        out, number = f"{label} {number}", number + 1
    return out


def tip_of(pose: Pose, editor: GoalEditor, added: int) -> tuple[Array, Array]:
    """Return the world position (3,) and rotation (3, 3) of the frame that the goal moves to the target."""
    if editor.row is None:
        return body_center(pose), np.eye(3)
    row = pose.frames[editor.row + added]
    turn = row[:9].reshape(3, 3)
    return row[9:] + turn @ editor.offset[:3, 3], turn @ editor.offset[:3, :3]


def body_center(pose: Pose) -> Array:
    """Return the centre of mass, (3,), length units; for a body without masses, the mean joint position."""
    if any(joint.mass for joint in pose.skeleton.joints):
        return pose.center_of_mass()
    return pose.positions.mean(axis=0)


def place_at_current(editor: GoalEditor, pose: Pose, added: int, size: float) -> None:
    """Set an editor's target so that the current pose satisfies the goal.

    Args:
        editor: The editor.
        pose: The pose.
        added: Number of root rows in front of the rows of the given skeleton.
        size: Size of the body, length units.
    """
    if editor.row is None:
        editor.position = body_center(pose)
        editor.snap()
        return
    place = Place(
        at=frames_to_transforms(pose.frames[editor.row + added]) @ editor.offset,
        frames=lambda row: frames_to_transforms(pose.frames[row + added]),
        parents=[max(parent - added, -1) for parent in pose.skeleton.parents[added:]],
        row=editor.row,
        size=size,
    )
    target = kind_of(editor.kind).goal.first_target(place, editor.values)
    editor.position, editor.rotation = target[:3, 3], target[:3, :3]
    editor.snap()


def holds(editor: GoalEditor, skeleton: Skeleton, row: int) -> bool:
    """Return whether a goal keeps a joint of the given skeleton near a reference value."""
    if "pose" not in kind_of(editor.kind).further:
        return False
    parts = editor.values.get("joints")
    if parts is None:
        return skeleton.joints[row].kind is not Kind.FREE
    return row in {skeleton.value_index(joint) for joint in parts}


def with_reference(editor: GoalEditor, skeleton: Skeleton, row: int, value: float | Array) -> Any:
    """Return the reference values of a goal that keeps joints near values, with a new value for one joint.

    Args:
        editor: The editor of such a goal, see ``holds``.
        skeleton: The given skeleton.
        row: The joint.
        value: The new value of the joint.
    """
    reference = editor.values.get("pose")
    if reference is None or isinstance(reference, Mapping):
        joints = cast("Mapping[str | int, Any]", reference or {})
        others = {joint: old for joint, old in joints.items() if skeleton.value_index(joint) != row}
        return {**others, skeleton.address(row): value}
    q = np.array(reference.q if isinstance(reference, Pose) else reference, float)
    q[skeleton.q_slice(row)] = value
    return q


def editor_from(editor: GoalEditor, goal: Goal, skeleton: Skeleton, to_current: Callable[[GoalEditor], None]) -> None:
    """Copy all values of a goal to an editor.

    Args:
        editor: An editor of the goal's kind, on its joint.
        goal: The goal.
        skeleton: The given skeleton.
        to_current: Moves an editor's target to its joint; used for parts of the target that the goal leaves open.

    Raises:
        UnknownNameError: If a joint does not exist.
    """
    kind = kind_of(editor.kind)
    editor.weight, editor.priority, editor.name = goal.weight, goal.priority, goal.name
    placed, turned = goal.given & POSITION > 0, goal.given & ROTATION > 0
    frame = np.eye(4) if goal.target is None else goal.target
    taken = ((field.argument or field.name, (field.held or field.take)(goal)) for field in kind.goal.fields)
    around = getattr(goal, "world", None)
    around = editor.values.get("world") if around is None else around
    editor.values = {name: value for name, value in taken if name in kind.further and value is not None}
    if kind.goal.takes_world:
        editor.values["world"] = around
    for name in kind.joints:
        if name in editor.values:
            row, place = skeleton.locate(editor.values[name])
            if place is not None and "other_offset" in kind.further:
                editor.values["other_offset"] = place @ cast("Any", goal).other_offset
            elif place is not None:
                row = skeleton.index(editor.values[name])  # raises an error for the name of a site
            editor.values[name] = row
    directions = [field.name for field in kind.controls if field.form == "direction"]
    if left_out := [name for name in directions if name not in editor.values]:
        shown = kind.goal.first_values(skeleton, editor.row or 0, find_up(skeleton).vector)
        editor.values |= {name: np.array(shown[name]) for name in left_out}
    editor.values |= {name: tuple(editor.values[name].tolist()) for name in directions}
    editor.offset = np.array(goal.located(skeleton)[0].frame)
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
