"""Progress of an edit whose layers may solve their frames several times."""

from __future__ import annotations

from typing import Final

from synovia.arguments import Progress

_SHARE: Final = 0.7  # fraction of a layer's remaining progress for the next pass; usually the first pass is the last


class Meter:
    """Reports the progress of an edit, which never decreases.

    Args:
        progress: Called with (frames done, number of frames); None for no reports.
        frames: Number of frames in each layer.
    """

    def __init__(self, progress: Progress | None, frames: list[int]) -> None:
        """Begin with no frame done."""
        self._progress, self._left, self._all = progress, frames[::-1], sum(frames)
        self._before, self._own, self._done, self._step = 0, 0, 0.0, 0.0

    def begin_layer(self) -> None:
        """Mark all frames of the previous layer as done, and start the next layer."""
        self._before, self._own, self._done = self._before + self._own, self._left.pop(), 0.0
        self._report()

    def begin_pass(self, count: int) -> None:
        """Start one more pass over ``count`` frames of this layer."""
        self._step = _SHARE * (self._own - self._done) / max(count, 1)

    def frames(self, count: int) -> None:
        """Mark ``count`` more frames of this pass as done."""
        self._done += count * self._step
        self._report()

    def end(self) -> None:
        """Report that all frames are done."""
        self._before, self._own, self._done = self._all, 0, 0.0
        self._report()

    def _report(self) -> None:
        """Report the progress."""
        if self._progress is not None:
            self._progress(min(self._before + round(self._done), self._all), self._all)
