"""How a wish gets its values: those that its kind begins with, those of the present pose, of an edit, or of a goal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.draw.camera import direction
from synovia.draw.scene import up_of
from synovia.errors import InputError
from synovia.goals import Goal, RangeGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, align_z, as_direction, frames_to_transforms, rigid
from synovia.viewer.wish import JOINTS, Wish, address, kind_of, value_ends

if TYPE_CHECKING:
    from synovia.viewer.session import Session

_FRAMES: Final = ("keep", "parts", "other")  # what a goal's target is told in depends on these
_BEFORE: Final = 0.3  # of the body's size: how far before a joint the point is that it looks at


def begin_values(wish: Wish, skeleton: Skeleton) -> None:
    """Give a wish the directions, numbers and second joint that its kind begins with."""
    kind = kind_of(wish.kind)
    values: dict[str, Any] = {}
    if "axis" in kind.vectors:
        values["axis"] = (0.0, 0.0, 1.0)
    if "normal" in kind.vectors:
        values["normal"] = tuple(direction(up_of(skeleton), "y").tolist())
    if "minimum" in kind.numbers:
        values["minimum"] = 0.0
    if "maximum" in kind.numbers:
        values["maximum"] = 0.1 * (skeleton.size or 1.0)
    if kind.other and wish.row is not None:
        values["other"] = _beside(wish.row, skeleton)
        values["parts"] = "pose"
    if "keep" in kind.further:
        values["keep"] = "pose"
    if kind.goal is RangeGoal and wish.row is not None:
        values["lower"], values["upper"] = value_ends(skeleton, wish.row)
    wish.values = values
    fit_frame(wish, skeleton)


def _beside(row: int, skeleton: Skeleton) -> int:
    """Return the joint that a joint is measured against at first: the one above it, else one below it.

    Raises:
        InputError: If it is the only joint.
    """
    near = (skeleton.parents[row], *skeleton.children[row], *range(len(skeleton)))
    other = next((other for other in near if other >= 0 and other != row), None)
    if other is None:
        raise InputError("there is no other joint to measure against", where=skeleton.name)
    return other


def fit_frame(wish: Wish, skeleton: Skeleton) -> None:
    """Turn the frame on a wish's joint as its kind wants it: as a sole, whose normal is the z axis, or not at all.

    Raises:
        InputError: If nobody says which way is up.
    """
    turn = wish.offset[:3, :3]
    if "keep" in kind_of(wish.kind).further and wish.row is not None:
        if wish.values["keep"] == "normal":
            axis = wish.values.get("axis")
            if axis is None:
                axis = skeleton.rest_pose().matrix(wish.row).T @ skeleton.up_vector("axis=")
            turn = align_z(as_direction(axis, "axis"))
        elif wish.values.pop("axis", None) is not None or wish.values["keep"] == "point":
            turn = np.eye(3)
    elif not kind_of(wish.kind).frames:
        turn = np.eye(3)
    wish.offset = rigid(wish.offset[:3, 3], turn)


def edited(wish: Wish, values: dict[str, Any], session: Session) -> Wish:
    """Return a wish with some of its fields at other values; the target follows where it must.

    Raises:
        InputError: If a value cannot be used.
    """
    tried = wish.copy()
    for name, value in values.items():
        setattr(tried, name, value)
    if tried.kind != wish.kind:
        if kind_of(tried.kind).whole != kind_of(wish.kind).whole:
            raise InputError("a goal on a joint cannot become one of the whole body, nor back", value=tried.kind)
        begin_values(tried, session.given)
        session.to_current(tried)
    elif any(tried.values.get(name) != wish.values.get(name) for name in _FRAMES):
        fit_frame(tried, session.given)
        session.to_current(tried)
        tried.place = tried.at_place = wish.place
    goal = tried.goal(partial(address, session.given))  # its constructor refuses what cannot be used
    if isinstance(goal, RangeGoal):
        goal.resolved(session.given)  # which its joint's limits may rule out
    return tried


def free_label(label: str, taken: Iterable[str]) -> str:
    """Return the label, with a number where it is taken."""
    out, number, others = label, 2, set(taken)
    while out in others:
        out, number = f"{label} {number}", number + 1
    return out


def place_at_current(wish: Wish, pose: Pose, added: int, reach: float) -> None:
    """Put a wish's target where its joint is now, or where it already looks or bends.

    Args:
        wish: The wish.
        pose: The body.
        added: Rows that the pose has before those of the skeleton that was given.
        reach: Size of the body, length units.
    """
    if wish.row is None:
        from synovia.viewer.engine import balance_of

        wish.place = balance_of(pose)
        wish.settle()
        return
    frame = pose.frames[wish.row + added]
    turn = frame[:9].reshape(3, 3)
    wish.place = frame[9:] + turn @ wish.offset[:3, 3]
    wish.turn = turn @ wish.offset[:3, :3]
    if wish.kind == "aim":
        axis = np.asarray(wish.values["axis"], float)
        wish.place = wish.place + _BEFORE * reach * (turn @ axis) / (np.linalg.norm(axis) or 1.0)
    elif wish.kind == "relative":
        other = pose.frames[wish.values["other"] + added]
        frame_of_other = frames_to_transforms(other) @ as_frame(wish.values.get("other_offset"))
        held = np.linalg.inv(frame_of_other) @ rigid(wish.place, wish.turn)
        parts = wish.values["parts"]
        wish.values["position"] = None if parts == "rotation" else held[:3, 3]
        wish.values["rotation"] = None if parts == "position" else held[:3, :3]
    elif wish.kind == "pole":
        row = wish.row + added
        near = (pose.skeleton.parents[row], *pose.skeleton.children[row][:1])
        named = [wish.values.get(name) for name in ("root", "tip")]
        ends = [
            pose.positions[beside if own is None else own + added]
            for own, beside in zip(named, (*near, -1), strict=False)
            if own is not None or beside >= 0
        ]
        bend = frame[9:] - np.mean(ends, axis=0) if ends else turn[:, 2]
        length = float(np.linalg.norm(bend))
        wish.place = wish.place + _BEFORE * reach * (bend / length if length > 1e-3 * reach else turn[:, 2])
    wish.settle()


def wish_from(wish: Wish, goal: Goal, session: Session) -> None:
    """Let a wish ask for what a goal asks for, with all that the goal has.

    Args:
        wish: A wish of the goal's kind, on its joint.
        goal: The goal.
        session: The session, whose body is where the goal leaves something as it is.

    Raises:
        UnknownNameError: If a joint does not exist.
    """
    kind = kind_of(wish.kind)
    wish.weight, wish.priority, wish.name = goal.weight, goal.priority, goal.name
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
    wish.values = {name: own[name]() if name in own else getattr(goal, name, None) for name in kind.further}
    wish.values = {name: value for name, value in wish.values.items() if value is not None}
    wish.values |= {name: session.given.index(wish.values[name]) for name in JOINTS if name in wish.values}
    wish.values |= {name: tuple(wish.values[name].tolist()) for name in kind.vectors if name in wish.values}
    wish.offset = np.array(goal.offset)
    fit_frame(wish, session.given)
    held = {name: wish.values[name] for name in ("position", "rotation") if name in wish.values}
    session.to_current(wish)
    wish.told = goal.given
    wish.values |= held
    if placed:
        wish.place = np.array(frame[:3, 3])
    if turned and kind.turn:
        wish.turn = np.array(frame[:3, :3])
    wish.settle()


def as_frame(offset: Any) -> Array:
    """Return an offset, a point (3,) or a frame (4, 4) or nothing, as a frame."""
    if offset is None:
        return rigid()
    return rigid(offset) if np.ndim(offset) == 1 else np.asarray(offset)


def _plain(offset: Array, *, frame: bool) -> Array | None:
    """Return a frame on a joint as its goal takes it; None where it is the joint's own."""
    if np.array_equal(offset, np.eye(4)):
        return None
    return offset if frame else offset[:3, 3]


def values_now(session: Session) -> dict[str | int, Any]:
    """Return the values of all joints that move but free ones, by what a goal calls them."""
    given, added = session.given, session.rooted.added
    rows = [row for row, joint in enumerate(given.joints) if joint.kind.q_size and joint.kind is not Kind.FREE]
    return {address(given, row): session.pose[row + added] for row in rows}
