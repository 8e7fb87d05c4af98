"""The start and end of edits by hand."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager

from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.editing.history import History


class Hand:
    """Edits by hand, such as drags. Each edit starts an undo step, and with auto-key it ends with a key.

    Args:
        history: The history of the page.
        animation: The clip of the page.
    """

    def __init__(self, history: History, animation: Animation) -> None:
        """Store history and clip."""
        self._history, self._animation = history, animation

    def begin(self, what: Hashable = None) -> None:
        """Begin an edit; edits of the same thing (``what``) in quick succession are one step of undo."""
        self._history.remember(what)

    def one_step(self) -> AbstractContextManager[None]:
        """Return a context in which all changes are one step of undo."""
        return self._history.one_step()

    def end(self) -> None:
        """End an edit; with auto-key, the pose becomes a key."""
        self._animation.finish_edit()
