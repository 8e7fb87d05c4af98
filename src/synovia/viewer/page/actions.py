"""Actions that the user can start with a key or with a button."""

from __future__ import annotations

from synovia.errors import InputError
from synovia.viewer.editing.body import Body
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.editing.history import History
from synovia.viewer.editing.poses import Poses
from synovia.viewer.page.tab import Desk


class Actions:
    """The actions that have both a key and a button; each shows a message about what it did.

    Args:
        page: The page.
        history: Undo and redo.
        body: The body.
        animation: The clip.
        poses: Whole poses.
    """

    def __init__(self, page: Desk, history: History, body: Body, animation: Animation, poses: Poses) -> None:
        """Store the arguments."""
        self._page, self._history, self._body, self._animation, self._poses = page, history, body, animation, poses
        self.transport = animation.transport

    def undo(self) -> None:
        """Undo the last change."""
        if not self._history.undo():
            self._page.notify("No change to undo.")
        self._page.refresh()

    def redo(self) -> None:
        """Redo the change that was undone last."""
        if not self._history.redo():
            self._page.notify("No change to redo.")
        self._page.refresh()

    def reset(self) -> None:
        """Restore the first state."""
        self._history.reset()
        self._page.refresh()

    def key(self) -> None:
        """Key the current pose at the current frame of the clip."""
        made = self._animation.key()
        self._page.notify(f"Keyed frame {made.frame}. The targets follow the clip again.")

    def switch_auto_key(self) -> None:
        """Switch auto-key: while it is on, each edit ends with a key; otherwise keys are made only on request."""
        self._animation.auto_key = not self._animation.auto_key
        each = "Each edit of a clip becomes a key."
        self._page.notify(each if self._animation.auto_key else "Press Enter to key an edit of a clip.")

    def clear_joint(self) -> None:
        """Set the selected joint to its rest value.

        Raises:
            InputError: If no joint is selected.
        """
        if self._page.joint is None:
            raise InputError("no joint is selected", hint="click a joint to select it")
        self._body.clear_joint(self._page.joint)
        self._animation.finish_edit()

    def mirror(self) -> None:
        """Replace the pose by its mirror image."""
        self._poses.mirror()
        self._page.refresh()

    def copy_pose(self) -> None:
        """Copy the current pose, for ``paste_pose``."""
        self._poses.copy()
        self._page.notify("Copied the pose.")

    def paste_pose(self, *, mirror: bool = False) -> None:
        """Set the pose that was copied last, or its mirror image; with a clip, also key it."""
        self._poses.paste(mirror=mirror)
        self._page.refresh()
        if self._animation.play.motion is not None:
            self._page.notify(f"Keyed the copied pose at frame {self._animation.play.frame}.")
