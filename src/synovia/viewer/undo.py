"""Undo: a bounded stack of states, in which successive edits of the same thing are one step."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from synovia.model.geometry import Array
from synovia.solver import Solver
from synovia.viewer.clip import Play
from synovia.viewer.root import Rooted
from synovia.viewer.wish import Wish

_MOST: Final = 100
_ONE: Final = 1.0  # seconds: edits of the same thing that follow each other more quickly are one step


@dataclass(frozen=True, slots=True)
class Memory:
    """What undo brings back."""

    wishes: tuple[Wish, ...]
    root: Rooted
    q: Array
    base: Array  # joint values underneath the clip
    solver: Solver
    play: Play


class Undo:
    """Memories in order, and the one to return to.

    Args:
        now: Clock that returns seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Remember nothing."""
        self.first: Memory | None = None
        self._memories: deque[Memory] = deque(maxlen=_MOST)
        self._now = now
        self._what: Hashable = None
        self._when = 0.0

    def keep(self, memory: Memory, what: Hashable = None) -> None:
        """Push a state before an edit of ``what``, unless the last edit was of the same thing a moment ago."""
        now = self._now()
        again = what is not None and what == self._what and now - self._when < _ONE and len(self._memories) > 0
        self._what, self._when = what, now
        if not again:
            self._memories.append(memory)

    def begin(self, memory: Memory) -> None:
        """Begin anew from a memory."""
        self.first, self._what = memory, None
        self._memories.clear()

    def take(self) -> Memory | None:
        """Return the last memory and forget it, None without any."""
        self._what = None
        return self._memories.pop() if self._memories else None
