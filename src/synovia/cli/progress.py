"""Progress on stderr: a bar with rate and time left for long work at a terminal, and a line where code is compiled."""

from __future__ import annotations

import logging
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final

from synovia.cli.output import talk

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE: Final = 1.0  # seconds; what is done by then needs no bar
_COMPILING: Final = 2.0  # seconds of compiling before it is told
COMPILING: Final = "Compiling a solver: once for each, then it is kept. 'synovia doctor --warm' compiles all ahead."


class Bar:
    """A bar that appears after a second, at a terminal only. Call it with how much of the work is done.

    Args:
        text: What is being done.
        unit: What the work is counted in, for the rate.
        count: How many of them the whole work has; 0 where only shares are told.
    """

    def __init__(self, text: str, unit: str = "frames", count: int = 0) -> None:
        """Note the time."""
        self._text = text
        self._unit = unit
        self._count = count
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

    def __call__(self, done: float, of: float = 1.0, *, text: str | None = None) -> None:
        """Show that so much is done, of so much; and, with ``text``, what is done now."""
        self._text = text or self._text
        if not self._wanted or (self._shown is None and time.monotonic() - self._begun < _PATIENCE):
            return
        if self._shown is None:
            self._shown = self._started()
        if self._task is not None:
            share = done / of if of else 1.0
            many = share * (self._count or (of if of > 1.0 else 0.0))
            rate = many / max(time.monotonic() - self._begun, 1e-9)
            told = f"{rate:,.0f} {self._unit}/s" if rate >= 10.0 else f"{rate:.1f} {self._unit}/s" if rate else ""
            self._shown.update(self._task, completed=share, description=self._text, rate=told)

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
        self._task = shown.add_task(self._text, total=1.0, rate="")
        return shown


class Patience(logging.Handler):
    """Says, once, why it takes long, when kernels have been compiled for two seconds; at a terminal or not."""

    def __init__(self) -> None:
        """Prepare to listen."""
        super().__init__(logging.INFO)
        self._logger = logging.getLogger("synovia.kernels")
        self._level = self._logger.level
        self._timer: threading.Timer | None = None
        self._left = _COMPILING
        self._begun = 0.0

    def __enter__(self) -> Patience:
        """Listen."""
        self._level = self._logger.level
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listen no longer."""
        self._logger.setLevel(self._level)
        self._logger.removeHandler(self)
        self._stop()

    def emit(self, record: logging.LogRecord) -> None:
        """Start the clock when a kernel is compiled, and stop it when that is done; pass on what is worth a warning."""
        self._stop()
        if record.levelno >= logging.WARNING:
            talk(record.getMessage())
        if getattr(record, "compiling", False) and self._left > 0.0:
            self._begun = time.monotonic()
            self._timer = threading.Timer(self._left, self._tell)
            self._timer.daemon = True
            self._timer.start()

    def _stop(self) -> None:
        """Stop the clock; what it has run counts for the next time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left -= time.monotonic() - self._begun

    def _tell(self) -> None:
        """Say it."""
        self._left = 0.0
        talk(COMPILING)
