"""How many rows a block of work should have: as many as take a tenth of a second, learned from the blocks before."""

from __future__ import annotations

from typing import Final

_SECONDS: Final = 0.1  # of one block: after Ctrl-C those at work are ended, and progress is told between blocks
_GROWS: Final = 4  # times, from one block to the next


class Pace:
    """Gives out blocks of rows one after the other."""

    def __init__(self, count: int, begin: int, least: int, most: int) -> None:
        """Prepare to give out all rows.

        Args:
            count: All rows.
            begin: Rows of the first blocks, while nothing is known.
            least: Rows of the smallest block, however long they take.
            most: Rows of the largest block.
        """
        self._count, self._size, self._least, self._most = count, min(begin, most), least, most
        self._given = 0

    def next(self) -> tuple[int, int] | None:
        """Return the first row of the next block and the one after its last, None once all are given out."""
        first = self._given
        if first >= self._count:
            return None
        self._given = min(first + self._size, self._count)
        return first, self._given

    def learn(self, rows: int, seconds: float) -> None:
        """Take in how long a block of so many rows took."""
        fitting = int(_SECONDS * rows / max(seconds, 1e-9))
        self._size = min(max(fitting, self._least), _GROWS * rows, self._most)

    def stop(self) -> None:
        """Give out no more."""
        self._given = self._count
