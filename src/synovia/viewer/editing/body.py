"""The body of a page: the pose of its joints, and its root."""

from __future__ import annotations

from typing import Any

import numpy as np

from synovia.errors import UnsupportedError
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, as_numbers
from synovia.model.loops.closing import closed_near
from synovia.model.pose import clamped
from synovia.model.rooted import Rooted, changed_root, rooted
from synovia.model.tree import ancestors
from synovia.viewer.editing.clip.drag import drag_joint
from synovia.viewer.editing.editor_values import holds, place_at_current, with_reference
from synovia.viewer.editing.history import History
from synovia.viewer.editing.state import State


class Body:
    """The pose of a body by joint, and its root mode.

    Args:
        state: The state of the page.
        history: The history of the page.
    """

    def __init__(self, state: State, history: History) -> None:
        """Store state and history."""
        self._state, self._history = state, history
        self.lock = state.lock  # held to read and set several values consistently
        self.given = state.given
        self.size = state.size  # length units

    @property
    def rooted(self) -> Rooted:
        """The skeleton with its root mode."""
        return self._state.rooted

    @property
    def skeleton(self) -> Skeleton:
        """The solved skeleton: the joints of a moving root, then the given skeleton."""
        return self._state.skeleton

    @property
    def mode(self) -> str:
        """How the root moves, see ``rooted``."""
        return self._state.mode

    @property
    def pose(self) -> Pose:
        """Current pose of the solved skeleton."""
        return self._state.pose

    def put(self, q: Array) -> None:
        """Set the pose to joint values of the solved skeleton, (nq,), clamped to the limits of the joints."""
        self._state.put(q)

    def joint_values(self) -> dict[str | int, Any]:
        """Return the values of all joints that move, except free joints, by the key of the joint."""
        rows = [row for row, joint in enumerate(self.given.joints) if joint.kind.q_size and joint.kind is not Kind.FREE]
        return {self.given.address(row): self.pose[row + self.rooted.added] for row in rows}

    def set_joint(self, row: int, values: Any, *, step: bool = True) -> None:
        """Set a joint's value, clamped to its limits; the targets of goals below the joint move with it.

        On a clip, a layer at the current frame holds the value. Otherwise rest goals use it as their reference.

        Args:
            row: Row of the solved skeleton.
            values: As in ``Pose.with_values``.
            step: Whether the change is an undo step; quick changes of one joint are one step.
        """
        state = self._state
        with state.lock:
            place = self.skeleton.q_slice(row)
            value = as_numbers(values, (place.stop - place.start,), f"value of {self.skeleton.joint_names[row]!r}")
            if step:
                self._history.remember(("joint", row))
            if state.play.motion is not None:
                state.play.time = state.play.frame / state.play.motion.fps
            to = _with_value(self.skeleton, state.start().q, row, value)
            if state.play.motion is not None:
                drag_joint(state, row, to)
                state.pose = state.start()
                return
            state.put(to)
            self._let_goals_keep(row)

    def clear_joint(self, row: int) -> None:
        """Set a joint of the given skeleton to its rest value."""
        self.set_joint(row + self.rooted.added, self.given.rest_q[self.given.q_slice(row)])

    def _let_goals_keep(self, row: int) -> None:
        """Adapt goals to the value of a joint: targets below the joint move with it, rest goals use it as reference.

        Args:
            row: Row of the solved skeleton.
        """
        state, structure, added = self._state, False, self.rooted.added
        for editor in (one for one in state.editors if one.enabled):
            if editor.row is not None:
                moves = row in ancestors(self.skeleton.parents, editor.row + added)
                if moves and editor.has_target:
                    place_at_current(editor, state.pose, added, self.size)
            elif row >= added and holds(editor, self.given, row - added):
                structure = True
                editor.values["pose"] = with_reference(editor, self.given, row - added, state.pose[row])
        state.touch(structure=structure)

    def set_root(self, mode: str) -> None:
        """Change the root mode; the body keeps its pose."""
        state = self._state
        with state.lock:
            if state.play.keys:
                raise UnsupportedError(
                    "the root mode cannot change while the clip has keys", hint="delete the keys first"
                )
            to, q = changed_root(state.pose.q, state.rooted, self.given, mode)
            self._history.remember()
            state.set_root(to, q)

    def rest(self) -> None:
        """Set the rest pose, with the root as in the file, and move every target to the body."""
        state = self._state
        with state.lock:
            self._history.remember()
            to = rooted(self.given, state.mode)
            state.set_root(to, to.skeleton.rest_q)
            for editor in state.editors:
                state.to_current(editor)


def _with_value(skeleton: Skeleton, q: Array, row: int, value: Array) -> Array:
    """Return joint values, (nq,), with new values of one joint; limits are applied and loops are closed."""
    out, place = np.array(q), skeleton.q_slice(row)
    out[place] = value
    out[place] = clamped(skeleton, out[None])[0][place]
    out = skeleton.follow(out)
    return out if skeleton.mechanism is None else closed_near(skeleton, out, q, [row])
