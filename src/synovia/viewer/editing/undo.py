"""The states that undo and redo restore."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, MutableSequence
from typing import Final, Generic, TypeVar

_MOST: Final = 100  # steps that can be undone
_PAUSE: Final = 1.0  # seconds; quicker edits of the same thing are one step

State = TypeVar("State")


class Undo(Generic[State]):
    """States before the last edits, states that undo left, and the first state, for reset.

    Args:
        now: Clock that returns seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Start with no state."""
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
        """Push the state before an edit of ``what``, unless the same thing was edited a moment ago."""
        now = self._now()
        again = what is not None and what == self._what and now - self._when < _PAUSE and len(self._past) > 0
        self._what, self._when = what, now
        self._undone.clear()
        if not again:
            self._past.append(state)

    def begin(self, state: State) -> None:
        """Forget all states and set the first one."""
        self.first, self._what = state, None
        self._past.clear()
        self._undone.clear()

    def undo(self, present: State) -> State | None:
        """Return the state before the last edit, None if there is none; keep the present one for ``redo``."""
        return self._step(present, self._past, self._undone)

    def redo(self, present: State) -> State | None:
        """Return the state that the last undo left, None if there is none or an edit came after it."""
        return self._step(present, self._undone, self._past)

    def _step(self, present: State, source: MutableSequence[State], other: MutableSequence[State]) -> State | None:
        """Take the last state of ``source``, if it has one; then put the present one on the other side."""
        self._what = None
        if not source:
            return None
        other.append(present)
        return source.pop()
