"""Drags on a clip: each drag makes or changes a layer at the current frame; ``sy.edit`` would give the same pose."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.clips.editing.reach import moving_of
from synovia.errors import InputError, SynoviaError, UnsupportedError
from synovia.goals import Goal
from synovia.layers import Key, Layer, is_movable, moved_along
from synovia.model import Pose, Skeleton
from synovia.model.change import change_between, no_change
from synovia.model.geometry import Array
from synovia.model.rooted import without_root_values
from synovia.viewer.editing.clip.play import FADE, LayerDrag, Play
from synovia.viewer.editing.editor import GoalEditor
from synovia.viewer.editing.editor_values import free_label
from synovia.viewer.editing.state import State

AWAY: Final = 0.05  # fraction of the body's size: if the body goes farther during a layer, targets go along with it


def drag_goal(state: State, editor: GoalEditor, *, along: bool = True) -> None:
    """Let a layer at the current frame hold the target of a goal; the caller holds the lock of the state.

    Args:
        state: The state.
        editor: The goal.
        along: Whether the target of a new layer moves along with the clip if the body travels during the layer.

    Raises:
        InputError: If the clip is blended with another pose.
    """
    play, given = _ready(state, editor.key), state.given
    goal = editor.goal(given.address, kept=True).at_priority(0)
    if play.drag is None:
        number = _layer_of_goal(play, goal, given)
        layer = play.all[number] if number is not None else _new_layer(play, editor.label)
        if number is None:
            moving = moving_of(play.solver().body, given, editor.row, state.reach)
            goes = along and distance_in(play, layer.span(len(play.motion or ()))) > AWAY * state.size
            layer = layer.replace(goals=[goal], moving=moving, relative=goes)
        play.drag = LayerDrag(play, layer, number, state.added, editor.key)
    old = play.drag.layer
    made = old.replace(goals=[goal], targets=None, relative=False)
    if old.relative and is_movable(made):
        made = moved_along(made, Pose(given, play.drag.below), True)
    play.drag.layer = made
    editor.follows = False
    state.touch()


def drag_joint(state: State, row: int, q: Array) -> None:
    """Let a layer at the current frame give a joint its value; the caller holds the lock of the state.

    Args:
        state: The state.
        row: Row of the solved skeleton.
        q: Joint values of the solved skeleton, (nq,), with the joint's value.

    Raises:
        InputError: If the clip is blended with another pose.
        UnsupportedError: If the page has added the joint.
    """
    if row < state.rooted.added:
        hint = "choose the root mode fixed"
        raise _refused(state, UnsupportedError("the clip does not have this root joint", hint=hint))
    play, given, own = _ready(state, None), state.given, without_root_values(q, state.given)
    name = given.address(row - state.rooted.added)
    if play.drag is None:
        number = next(
            (k for k, one in reversed([*enumerate(play.all)]) if _holds_pose(one, play.frame) and not one.muted), None
        )
        layer = _new_layer(play, f"pose at {play.frame}") if number is None else play.all[number]
        if number is None:
            layer = layer.replace(pose=(Key(play.frame, {name: no_change(given)[given.q_slice(name)]}),), relative=True)
        play.drag = LayerDrag(play, layer, number, state.added)
    change = change_between(given, play.drag.below, own)
    values = {**play.drag.layer.keys[0].values, name: change[given.q_slice(name)].copy()}
    if given.mechanism is not None:  # the other joints of the loop move too
        slices = ((given.address(k), given.q_slice(k)) for k in range(len(given)))
        values = {joint: change[at].copy() for joint, at in slices if at.stop > at.start}
    play.drag.layer = play.drag.layer.replace(pose=(Key(play.frame, values),))
    state.touch()


def _ready(state: State, editor: int | None) -> Play:
    """Pause the clip at a whole frame, end the drag of another goal, joint or frame, and return the clip."""
    play = state.play
    if play.motion is None:
        raise InputError("no clip is chosen")
    if play.weight != 1.0:
        hint = "set the weight to 1 to edit the clip"
        raise _refused(state, InputError("the clip is blended with another pose", value=play.weight, hint=hint))
    if play.drag is not None and (play.drag.editor, play.drag.frame) != (editor, play.frame):
        state.finish()
    play.playing, play.time = False, play.frame / play.motion.fps
    if play.drag is not None:
        play.drag.ended = False
    return play


def _refused(state: State, error: SynoviaError) -> SynoviaError:
    """Let the page show an error, because drags raise errors where nobody sees them; return the error."""
    state.refused = str(error)
    state.touch()
    return error


def _new_layer(play: Play, name: str) -> Layer:
    """Return a layer at the current frame that has no effect yet, with the usual fades."""
    fps = 1.0 if play.motion is None else play.motion.fps
    label = free_label(name, [layer.label for layer in play.all])
    return Layer(frames=(play.frame, play.frame), blend=max(round(FADE * fps), 1), name=label)


def distance_in(play: Play, frames: tuple[int, int]) -> float:
    """Return the distance that the body of the clip goes between two frames, length units."""
    if play.motion is None:
        return 0.0
    first, last = (play.motion.pose(at).positions.mean(axis=0) for at in frames)
    return float(np.linalg.norm(last - first))


def _layer_of_goal(play: Play, goal: Goal, skeleton: Skeleton) -> int | None:
    """Return the index of the last layer with a goal of this class and joint at the current frame; None if none."""
    row = None if goal.joint is None else skeleton.locate(goal.joint)[0]
    for number, layer in reversed([*enumerate(play.all)]):
        pairs, (first, last) = layer.all_goals(), layer.bounds(0 if play.motion is None else len(play.motion))
        if layer.empty or layer.keys or len(pairs) != 1 or not first <= play.frame <= last:
            continue
        other, target = pairs[0]
        if type(other) is type(goal) and (None if other.joint is None else skeleton.locate(other.joint)[0]) == row:
            return number if target is None or is_movable(layer) else None
    return None


def _holds_pose(layer: Layer, frame: int) -> bool:
    """Return whether a layer changes only joint values, and only at ``frame``."""
    return layer.relative and layer.frames == (frame, frame) and len(layer.keys) == 1 and not layer.all_goals()
