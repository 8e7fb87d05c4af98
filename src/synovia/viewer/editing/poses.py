"""The poses of a page: copy, paste and mirror poses, and the pose library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from synovia.draw.rods import axes_of
from synovia.errors import InputError, unknown_name
from synovia.model import Pose
from synovia.model.clip_tools.mirror import Mirror
from synovia.model.clip_tools.mirror_pose import mirrored
from synovia.model.geometry import Array
from synovia.model.rooted import without_root_values
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.editing.history import History
from synovia.viewer.editing.state import State

_MOST: Final = 1000  # largest number of poses in the library
_LONGEST_NAME: Final = 60  # largest number of characters of a name


class Poses:
    """Whole poses: the copied pose, mirror images, and the library. On a clip, a pose that is set becomes a key.

    Args:
        state: The state of the page.
        history: The history of the page.
        animation: The clip of the page.
    """

    def __init__(self, state: State, history: History, animation: Animation) -> None:
        """Start with no copied pose."""
        self._state, self._history, self._animation = state, history, animation
        self.given = state.given
        self._copied: tuple[str, Array] | None = None  # root mode and joint values, (nq,), of the copied pose

    @property
    def library(self) -> Mapping[str, Pose]:
        """Poses of the given skeleton by name."""
        return self._state.library

    def mirror(self) -> None:
        """Mirror the pose; goals of the left and right side exchange their states, and targets move to the body.

        On a clip, the mirrored pose becomes a key.
        """
        with self._state.lock:
            if self._animation.play.motion is not None:
                self._animation.key(mirror_image(self._state.pose))
                return
            self._history.remember()
            pairs = Mirror.across(self.given, axes_of(self.given)[:, 0]).pairs  # negative for no counterpart
            states = {(editor.row, editor.kind): (editor.enabled, editor.idle) for editor in self._state.editors}
            self._state.put(mirror_image(self._state.pose))
            for editor in self._state.editors:
                if editor.row is not None:
                    pair = pairs[editor.row]
                    other = (editor.row if pair < 0 else pair, editor.kind)
                    editor.enabled, editor.idle = states.get(other, (editor.enabled, editor.idle))
                if editor.has_target:
                    self._state.to_current(editor)
            self._state.touch(structure=True)

    def copy(self) -> None:
        """Copy the current pose for ``paste``."""
        with self._state.lock:
            self._copied = self._state.mode, self._state.pose.q.copy()

    def paste(self, *, mirror: bool = False) -> None:
        """Set the copied pose, and move every target to the body; on a clip, the pose becomes a key.

        The root is restored, too, unless the root mode has changed.

        Args:
            mirror: Whether to paste the mirror image.

        Raises:
            InputError: If no pose was copied.
        """
        with self._state.lock:
            if self._copied is None:
                raise InputError("no pose was copied", hint="press C to copy the current pose")
            mode, copied = self._copied
            own = without_root_values(copied, self.given)
            self._apply(copied if mode == self._state.mode else self._with_present_root(own), mirror=mirror)

    def _with_present_root(self, own: Array) -> Array:
        """Return joint values of the given skeleton, (nq,), with the current values of the added root in front."""
        return np.concatenate([self._state.pose.q[: -self.given.nq or None], own])

    def _apply(self, q: Array, *, mirror: bool) -> None:
        """Set a pose or its mirror image, and move every target to the body; on a clip, the pose becomes a key."""
        if mirror:
            q = mirror_image(Pose(self._state.skeleton, q))
        if self._animation.play.motion is not None:
            self._animation.key(q)
            return
        self._history.remember()
        self._state.put(q)
        for editor in self._state.editors:
            self._state.to_current(editor)
        self._state.touch(structure=True)

    def keep(self, name: str) -> None:
        """Store the current pose in the library, and replace a pose with the same name.

        Raises:
            InputError: If the name is empty or too long, or the library is full.
        """
        with self._state.lock:
            own = Pose(self.given, without_root_values(self._state.pose.q, self.given))
            self.add({name.strip(): own})

    def add(self, poses: Mapping[str, Pose]) -> None:
        """Add poses of the given skeleton to the library.

        Raises:
            InputError: If a name is empty or too long, or the library is full.
        """
        with self._state.lock:
            for name in poses:
                if not 0 < len(name) <= _LONGEST_NAME:
                    raise InputError("name of a pose", value=name, expected=f"1 to {_LONGEST_NAME} characters")
            library = {**self.library, **poses}
            if len(library) > _MOST:
                raise InputError("too many poses", value=len(library), expected=f"at most {_MOST}")
            self._history.remember()
            self._state.library = library
            self._state.touch()

    def apply(self, name: str, *, mirror: bool = False) -> None:
        """Set a pose of the library, and move every target to the body; on a clip, the pose becomes a key.

        A root that the page has added keeps its values.

        Args:
            name: Name of the pose.
            mirror: Whether to set its mirror image.

        Raises:
            UnknownNameError: If the library has no such pose.
        """
        with self._state.lock:
            if name not in self.library:
                raise unknown_name("pose", name, self.library)
            self._apply(self._with_present_root(self.library[name].q), mirror=mirror)

    def drop(self, name: str) -> None:
        """Remove a pose from the library."""
        with self._state.lock:
            self._history.remember()
            self._state.library = {other: pose for other, pose in self.library.items() if other != name}
            self._state.touch()


def mirror_image(pose: Pose) -> Array:
    """Return the joint values, (nq,), of a pose's mirror image."""
    return mirrored(pose, axes_of(pose.skeleton)[:, 0])
