"""The history of a page: undo, redo and reset."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import contextmanager
from dataclasses import replace

from synovia.viewer.editing.state import Snapshot, State
from synovia.viewer.editing.undo import Undo


class History:
    """The states of a page before its last changes.

    Args:
        state: The state that the history keeps and restores.
    """

    def __init__(self, state: State) -> None:
        """Start without changes."""
        self._state = state
        self._undo = Undo[Snapshot]()
        self._within = False  # whether the code runs inside ``one_step``

    def remember(self, what: Hashable = None) -> None:
        """Keep the current state for undo; edits of the same thing (``what``) in quick succession are one step."""
        with self._state.lock:
            if not self._within:
                self._undo.keep(self._state.snapshot(), what)

    @contextmanager
    def one_step(self) -> Generator[None]:
        """Make all changes in the context one step of undo."""
        with self._state.lock:
            self.remember()
            self._within = True
            try:
                yield
            finally:
                self._within = False

    def mark_first(self) -> None:
        """Keep the current state for ``reset``."""
        with self._state.lock:
            self._undo.begin(self._state.snapshot())

    @property
    def edited(self) -> bool:
        """Whether there is a change to undo."""
        return not self._undo.empty

    def undo(self) -> bool:
        """Restore the state before the last change; return whether there was a change to undo."""
        with self._state.lock:
            return self._restore(self._undo.undo(self._state.snapshot()))

    def redo(self) -> bool:
        """Restore the state that the last undo left; return whether there was such a state."""
        with self._state.lock:
            return self._restore(self._undo.redo(self._state.snapshot()))

    def reset(self) -> None:
        """Restore the first state, except for the library of poses."""
        state = self._state
        with state.lock:
            if (first := self._undo.first) is not None:
                self.remember()
                state.play = replace(first.play)
                self._restore(replace(first, library=state.library))

    def _restore(self, snapshot: Snapshot | None) -> bool:
        """Restore a snapshot; return False for None."""
        if snapshot is not None:
            self._state.restore(snapshot)
        return snapshot is not None
