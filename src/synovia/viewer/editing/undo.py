"""The states that undo and redo restore."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, MutableSequence
from typing import Final, Generic, TypeVar

_MOST: Final = 100  # largest number of steps that can be undone
_PAUSE: Final = 1.0  # seconds; edits of the same thing with shorter pauses are one step

State = TypeVar("State")


class Undo(Generic[State]):
    """The states before the last edits, the states that undo has left, and the first state for reset.

    Args:
        now: Clock that returns seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Start without states."""
        self.first: State | None = None
        self._past: deque[State] = deque(maxlen=_MOST)
        self._undone: list[State] = []
        self._now = now
        self._what: Hashable = None
        self._when = 0.0

    @property
    def empty(self) -> bool:
        """Whether there is no edit to undo."""
        return not self._past

    def keep(self, state: State, what: Hashable = None) -> None:
        """Keep the state before an edit of ``what``, unless the same thing was edited a moment ago."""
        now = self._now()
        again = what is not None and what == self._what and now - self._when < _PAUSE and len(self._past) > 0
        self._what, self._when = what, now
        self._undone.clear()
        if not again:
            self._past.append(state)

    def begin(self, state: State) -> None:
        """Discard all states and set the first state."""
        self.first, self._what = state, None
        self._past.clear()
        self._undone.clear()

    def undo(self, present: State) -> State | None:
        """Return the state before the last edit, and store the current state for ``redo``; None if there is no edit."""
        return self._step(present, self._past, self._undone)

    def redo(self, present: State) -> State | None:
        """Return the state that the last undo left; None if there is none, or if an edit came after the undo."""
        return self._step(present, self._undone, self._past)

    def _step(self, present: State, source: MutableSequence[State], other: MutableSequence[State]) -> State | None:
        """Return the last state of ``source`` and add the current state to ``other``; None if ``source`` is empty."""
        self._what = None
        if not source:
            return None
        other.append(present)
        return source.pop()
