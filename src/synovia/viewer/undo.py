"""What was before: a stack that forgets the oldest."""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, TypeVar

_T = TypeVar("_T")
_MOST: Final = 100


class Undo(Generic[_T]):
    """Memories in order, and the one to return to."""

    def __init__(self) -> None:
        """Remember nothing."""
        self.first: _T | None = None
        self._memories: deque[_T] = deque(maxlen=_MOST)

    def keep(self, memory: _T) -> None:
        """Remember."""
        self._memories.append(memory)

    def begin(self, memory: _T) -> None:
        """Begin anew from a memory."""
        self.first = memory
        self._memories.clear()

    def take(self) -> _T | None:
        """Return the last memory and forget it, None without any."""
        return self._memories.pop() if self._memories else None
