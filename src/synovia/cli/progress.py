"""Progress on stderr: a bar with rate and time left, for work that takes longer than a second at a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE: Final = 1.0  # seconds; what is done by then needs no bar


class Bar:
    """A bar that appears after a second, at a terminal only. Call it with the share of the work that is done.

    Args:
        text: What is being done.
        frames: Frames that the whole work has, for the rate.
    """

    def __init__(self, text: str, frames: int) -> None:
        """Note the time."""
        self._text = text
        self._frames = frames
        self._begun = time.monotonic()
        self._shown: Progress | None = None
        self._task: TaskID | None = None
        self._wanted = sys.stderr is not None and sys.stderr.isatty()  # pyright: ignore[reportUnnecessaryComparison]

    def __enter__(self) -> Bar:
        """Return the bar."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away, however the work ended."""
        if self._shown is not None:
            self._shown.stop()

    def __call__(self, done: float) -> None:
        """Show that a share of the work is done."""
        if not self._wanted or (self._shown is None and time.monotonic() - self._begun < _PATIENCE):
            return
        if self._shown is None:
            self._shown = self._started()
        if self._task is not None:
            frames = done * self._frames
            rate = frames / max(time.monotonic() - self._begun, 1e-9)
            self._shown.update(self._task, completed=frames, rate=f"{rate:,.0f} frames/s")

    def _started(self) -> Progress:
        """Return the bar, shown."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        shown = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            transient=True,
        )
        shown.start()
        self._task = shown.add_task(self._text, total=self._frames, rate="")
        return shown
