"""Progress on stderr: a bar for long work, and a notice while a solver is compiled."""

from __future__ import annotations

import logging
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final

from synovia.cli.output import talk
from synovia.compiling import CompileListener

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE: Final = 1.0  # seconds of work before a bar appears
_COMPILING: Final = 2.0  # seconds of compiling before the first notice, and before a notice for each further kernel
_BRIEF: Final = 0.5  # seconds of compiling one kernel before a counter appears
_TICK: Final = 0.2  # seconds between two updates of the counter


class Bar:
    """A progress bar; it appears after a second, and only at a terminal. Call the object to report progress.

    Args:
        text: Description of the work.
        unit: Unit of the work, for the rate; "" to show no rate.
        count: Total number of units; 0 if unknown.
    """

    shown: ClassVar[int] = 0  # number of bars that are on the terminal now

    def __init__(self, text: str, unit: str = "frames", count: int = 0) -> None:
        """Store the arguments and the start time."""
        self._text = text
        self._unit = unit
        self._count = count
        self._begun = time.monotonic()
        self._shown: Progress | None = None
        self._wanted = at_terminal()

    def __enter__(self) -> Bar:
        """Return the bar."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the bar."""
        if self._shown is not None:
            self._shown.stop()
            Bar.shown -= 1

    def __call__(self, done: float, of: float = 1.0, *, text: str | None = None) -> None:
        """Show that ``done`` units out of ``of`` are done; ``text`` replaces the description."""
        self._text = text or self._text
        if not self._wanted or (self._shown is None and time.monotonic() - self._begun < _PATIENCE):
            return
        if self._shown is None:
            self._shown = self._started()
        share = done / of if of else 1.0
        units = share * (self._count or (of if of > 1.0 else 0.0))
        rate = units / max(time.monotonic() - self._begun, 1e-9)
        speed = f"{rate:,.0f} {self._unit}/s" if rate >= 10.0 else f"{rate:.1f} {self._unit}/s" if rate else ""
        speed = speed if self._unit else ""
        self._shown.update(self._shown.task_ids[0], completed=share, description=self._text, rate=speed)

    def _started(self) -> Progress:
        """Create, show and return the bar."""
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
        Bar.shown += 1
        shown.add_task(self._text, total=1.0, rate="")
        return shown


class CompileNotice(CompileListener):
    """A log handler that reports when compiling solvers takes more than two seconds.

    The handler writes a notice to stderr, and another for each further kernel that takes as long. At a terminal, it
    writes only the first notice, and counts the seconds on a line that is removed at the end.
    """

    def __init__(self) -> None:
        """Create the handler; the context manager attaches it."""
        super().__init__()
        self._done: threading.Event | None = None  # event of the present compilation, set when it ends
        self._thread: threading.Thread | None = None
        self._left = _COMPILING
        self._begun = 0.0
        self._announced = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Detach the handler and stop the timer."""
        super().__exit__(kind, error, trace)
        self._stop()

    def emit(self, record: logging.LogRecord) -> None:
        """Start the timer when a compilation starts, stop it when it ends, and print warnings."""
        self._stop()
        if record.levelno >= logging.WARNING:
            talk(record.getMessage())
        if getattr(record, "compiling", False):
            self._begun = time.monotonic()
            self._done = threading.Event()
            arguments = (self._done, getattr(record, "solver", "a solver"), getattr(record, "seconds", None))
            self._thread = threading.Thread(target=self._show, args=arguments, daemon=True)
            self._thread.start()

    def _stop(self) -> None:
        """Stop the timer; the compile time counts toward the first notice of the next kernel."""
        if self._done is not None and self._thread is not None:
            self._done.set()
            self._thread.join()
            self._done = self._thread = None
            self._left = max(self._left - (time.monotonic() - self._begun), 0.0)

    def _show(self, done: threading.Event, solver: str, seconds: float | None) -> None:
        """Show the notice and the counter once compiling has taken long enough."""
        terminal = at_terminal() and not Bar.shown  # a bar already draws on the terminal
        if done.wait(max(self._left, _BRIEF if terminal else _COMPILING if self._announced else 0.0)):
            return
        if not self._announced or not terminal:
            talk(compiling_text(solver, seconds, again=self._announced))
            self._announced = True
        if not terminal:
            return
        about = "" if seconds is None else f", about {seconds:.0f} s"
        with suppress(OSError, ValueError):  # stderr was closed
            while not done.wait(_TICK):
                spent = time.monotonic() - self._begun
                sys.stderr.write(f"\r\x1b[2Kcompiling {solver} ({spent:.0f} s so far{about})")
                sys.stderr.flush()
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def compiling_text(solver: str, seconds: float | None, *, again: bool = False) -> str:
    """Return the notice that a kernel is being compiled.

    Args:
        solver: The solver that needs the kernel.
        seconds: Expected compile time; None if unknown.
        again: Whether this is not the first notice.
    """
    from synovia.kernels.compiler import cache, mode

    about = "" if seconds is None else f" (about {seconds:.0f} s)"
    if again or (mode == "jit" and not cache.WRITABLE):
        return f"Compiling {solver}{about}."
    return f"Compiling {solver}{about}. This happens once. 'synovia doctor --warm' compiles all solvers now."


def at_terminal() -> bool:
    """Return whether stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()  # pyright: ignore[reportUnnecessaryComparison]
