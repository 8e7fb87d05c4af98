"""The goals of a page: add, change, move and remove goals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from synovia.errors import InputError
from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.model import Kind, Skeleton
from synovia.model.geometry import as_numbers
from synovia.model.tree import ancestors
from synovia.text import short_names
from synovia.viewer.editing.clip.drag import drag_goal
from synovia.viewer.editing.editor import GoalEditor, kind_of
from synovia.viewer.editing.editor_values import edited, editor_from, free_label, set_defaults
from synovia.viewer.editing.history import History
from synovia.viewer.editing.state import DRAGGED, State

_MOST: Final = 64
_FAR: Final = 1e4  # largest distance of a target, body sizes


class Goals:
    """The goal editors of a page.

    Args:
        state: The state of the page.
        history: The history of the page.
    """

    def __init__(self, state: State, history: History) -> None:
        """Store state and history."""
        self._state, self._history = state, history
        self.given = state.given
        self._short = short_names(state.given.joint_names)
        self._next_key = 1

    @property
    def editors(self) -> Sequence[GoalEditor]:
        """All editors, in the order in which they were added."""
        return self._state.editors

    @property
    def version(self) -> int:
        """Number that changes when goals change, but not when only targets move."""
        return self._state.version

    @property
    def levels(self) -> bool:
        """Whether the solver supports priorities."""
        return self._state.solver.supports_priorities

    def find(self, key: int | None) -> GoalEditor | None:
        """Return the editor with a key; None if there is none."""
        return next((editor for editor in self.editors if editor.key == key), None)

    def editor(self, key: int | None) -> GoalEditor:
        """Return the editor with a key.

        Raises:
            InputError: If the goal was removed.
        """
        if (editor := self.find(key)) is None:
            raise InputError("the goal was removed, or none is selected", value=key)
        return editor

    def add(self, kind: str, joint: str | int | None, *, label: str | None = None) -> GoalEditor:
        """Add an editor whose target is the current pose of the joint, and return the editor.

        Raises:
            UnknownNameError: If the joint or the kind is unknown.
            InputError: If the page has too many goals.
        """
        state = self._state
        with state.lock:
            goal, row = kind_of(kind).goal, None
            if goal.on_joint:
                named = 0 if joint is None else joint
                row = self.given.value_index(named) if goal.bounds_value else self.given.locate(named)[0]
            called = label or (kind if row is None else self._short[row])
            if len(state.editors) >= _MOST:
                raise InputError("too many goals", value=len(state.editors) + 1, expected=f"at most {_MOST}")
            editor = GoalEditor(self._next_key, kind, row, free_label(called, (one.label for one in state.editors)))
            set_defaults(editor, self.given, state.world)
            state.to_current(editor)
            self._history.remember()
            if state.play.motion is not None:  # on a clip, layers hold goals
                editor.enabled = editor.follows = editor.has_target
            self._next_key += 1
            self._fit_solver(goal)
            state.editors.append(editor)
            state.touch(structure=True)
            return editor

    def _fit_solver(self, goal: type[Goal]) -> None:
        """Use the solver for drags if a goal avoids obstacles: it limits moves, so drags cannot jump through these."""
        if goal.takes_world and not self._state.solver.supports_priorities:
            self._state.solver = DRAGGED

    def adopt(self, goal: Goal) -> GoalEditor:
        """Add an editor for a goal, and return it; a goal without a target gets the current pose of its joint.

        Raises:
            UnknownNameError: If the joint does not exist, or the page does not support the kind of goal.
        """
        with self._state.lock:
            editor = self.add(goal.kind.replace("_", " "), goal.joint, label=goal.name)
            editor_from(editor, goal, self.given, self._state.to_current)
            if self._state.play.motion is not None and editor.has_target and goal.target is not None:
                drag_goal(self._state, editor)
            self._state.touch(structure=True)
            return editor

    def remove(self, key: int | None) -> None:
        """Remove the editor with a key."""
        with self._state.lock:
            editor = self.editor(key)
            self._history.remember()
            self._state.editors.remove(editor)
            self._state.touch(structure=True)

    def change(self, key: int | None, **values: Any) -> None:
        """Change ``enabled``, ``weight``, ``priority``, ``kind`` or ``values`` of an editor.

        Raises:
            InputError: If a value cannot be used.
        """
        with self._state.lock:
            editor = self.editor(key)
            if values.get("enabled") and self._state.play.motion is not None and not editor.has_target:
                hint = "Layer of this goal makes one"
                raise InputError("on a clip, only layers hold goals without a target", value=editor.label, hint=hint)
            tried = edited(editor, values, self.given, self._state.to_current, self._state.world)
            self._history.remember((key, *values) if set(values) <= {"weight", "values"} else None)
            editor.become(tried)
            self._fit_solver(kind_of(editor.kind).goal)
            self._state.touch(structure=True)

    def move(self, key: int | None, place: Any = None, turn: Any = None) -> None:
        """Move an editor's target; the eased target follows. On a clip, a layer at the current frame holds the target.

        Args:
            key: Key of the editor.
            place: World position, (3,), length units.
            turn: World rotation, (3, 3).

        Raises:
            InputError: If a value is not finite or the target is too far away.
        """
        state = self._state
        with state.lock:
            editor = self.editor(key)
            if place is not None:
                place = as_numbers(place, (3,), "target")
                if np.abs(place - state.pose.frames[0, 9:]).max() > _FAR * state.size:
                    raise InputError(
                        "target is too far away", value=place.tolist(), expected=f"at most {_FAR:g} body sizes"
                    )
                editor.position, editor.given = place, editor.given | POSITION
            if turn is not None:
                editor.rotation, editor.given = as_numbers(turn, (3, 3), "rotation"), editor.given | ROTATION
            clip = state.play.motion is not None
            state.touch(structure=editor.free and not clip)
            editor.enabled, editor.idle, editor.follows = editor.enabled or editor.idle or clip, False, False
            if clip:
                drag_goal(state, editor)

    def to_current(self, key: int | None) -> None:
        """Set an editor's target to the current pose of its joint."""
        with self._state.lock:
            editor = self.editor(key)
            self._history.remember()
            self._state.to_current(editor)

    def pin(self, key: int | None) -> bool:
        """Pin the joint of a goal at its current pose, or release a pinned joint; return whether it is pinned now.

        For a goal without a target (such as a range), an additional position goal is added. On a clip, a layer pins the
        joint at the current frame.
        """
        with self._state.lock:
            editor = self.editor(key)
            if not editor.has_target:
                if editor.row is None:
                    raise InputError("a goal of the whole body has no joint to pin", value=editor.label)
                self.add("position", editor.row)
                return True
            self._history.remember()
            self._state.to_current(editor)
            if self._state.play.motion is not None:
                drag_goal(self._state, editor, along=False)
                self._state.finish()
                return True
            held = not editor.enabled or editor.follows
            editor.enabled, editor.idle, editor.follows = held, not held, False
            self._state.touch(structure=True)
            return held

    def part_of(self, key: int | None) -> frozenset[int]:
        """Return the part of the body that belongs to a goal: its limb, and all joints below its joint.

        The part is a set of rows of the solved skeleton.

        Raises:
            InputError: If the goal was removed, or has no joint.
        """
        editor, skeleton = self.editor(key), self._state.skeleton
        if editor.row is None:
            raise InputError("a goal of the whole body has no joint", value=editor.label)
        at, parents = editor.row + self._state.rooted.added, skeleton.parents
        below = (row for row in range(at, len(parents)) if at in ancestors(parents, row))
        return frozenset((*limb_of(skeleton, at), *below))


def limb_of(skeleton: Skeleton, row: int) -> list[int]:
    """Return the hinge and ball joints of the limb that ends at a joint, from the tip upwards."""
    moves = [joint.kind is not Kind.FIXED for joint in skeleton.joints]  # whether a joint or any below it moves
    for child, above in reversed(list(enumerate(skeleton.parents))):
        if moves[child] and above >= 0:
            moves[above] = True
    out: list[int] = []
    below, row = row, skeleton.parents[row]
    while row >= 0 and sum(moves[child] for child in skeleton.children[row]) <= 1:
        if skeleton.joints[row].kind in (Kind.HINGE, Kind.BALL) and skeleton.lengths[below] > 0.0:
            out.append(row)
        below, row = row, skeleton.parents[row]
    return out
