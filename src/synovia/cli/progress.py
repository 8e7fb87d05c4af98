"""Progress on stderr: a bar with rate and time left for long work at a terminal, and a line where code is compiled."""

from __future__ import annotations

import logging
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final

from synovia.cli.output import talk

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE: Final = 1.0  # seconds; what is done by then needs no bar
_COMPILING: Final = 2.0  # seconds of compiling before a message
_BRIEF: Final = 0.5  # seconds of compiling that need no line of their own after the first
_TICK: Final = 0.2  # seconds between two updates of the line


class Bar:
    """A bar that appears after a second, at a terminal only. Call it with how much of the work is done.

    Args:
        text: What is being done.
        unit: What the work is counted in, for the rate.
        count: How many of them the whole work has; 0 if only shares are known.
    """

    shown: ClassVar[int] = 0  # how many there are at the terminal now

    def __init__(self, text: str, unit: str = "frames", count: int = 0) -> None:
        """Note the time."""
        self._text = text
        self._unit = unit
        self._count = count
        self._begun = time.monotonic()
        self._shown: Progress | None = None
        self._task: TaskID | None = None
        self._wanted = at_terminal()

    def __enter__(self) -> Bar:
        """Return the bar."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the bar, also after an error."""
        if self._shown is not None:
            self._shown.stop()
            Bar.shown -= 1

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
            speed = f"{rate:,.0f} {self._unit}/s" if rate >= 10.0 else f"{rate:.1f} {self._unit}/s" if rate else ""
            self._shown.update(self._task, completed=share, description=self._text, rate=speed)

    def _started(self) -> Progress:
        """Create and show the bar."""
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
        self._task = shown.add_task(self._text, total=1.0, rate="")
        return shown


class CompileNotice(logging.Handler):
    """Reports which solver is being compiled, and for how long, after two seconds.

    At a terminal a line counts the seconds and goes when the compiler is done; elsewhere one line says it, once.
    """

    def __init__(self) -> None:
        """Create the handler; entering the context attaches it."""
        super().__init__(logging.INFO)
        self._logger = logging.getLogger("synovia.kernels")
        self._level = self._logger.level
        self._going: threading.Event | None = None  # set when what is compiled now is done
        self._shows: threading.Thread | None = None
        self._left = _COMPILING
        self._begun = 0.0
        self._told = False

    def __enter__(self) -> CompileNotice:
        """Attach the handler to the logger of kernels."""
        self._level = self._logger.level
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Detach the handler."""
        self._logger.setLevel(self._level)
        self._logger.removeHandler(self)
        self._stop()

    def emit(self, record: logging.LogRecord) -> None:
        """Start the clock when a kernel is compiled, and stop it when that is done; print warnings."""
        self._stop()
        if record.levelno >= logging.WARNING:
            talk(record.getMessage())
        if getattr(record, "compiling", False):
            self._begun = time.monotonic()
            self._going = threading.Event()
            arguments = (self._going, getattr(record, "solver", "a solver"), getattr(record, "seconds", None))
            self._shows = threading.Thread(target=self._show, args=arguments, daemon=True)
            self._shows.start()

    def _stop(self) -> None:
        """Stop the clock; its time counts for the next kernel."""
        if self._going is not None and self._shows is not None:
            self._going.set()
            self._shows.join()
            self._going = self._shows = None
            self._left = max(self._left - (time.monotonic() - self._begun), 0.0)

    def _show(self, done: threading.Event, solver: str, seconds: float | None) -> None:
        """Show what is being compiled, from the moment that it has taken long enough."""
        terminal = at_terminal() and not Bar.shown  # which draws its own lines
        if done.wait(max(self._left, _BRIEF if terminal else 0.0)):
            return
        if not self._told:
            self._told = True
            talk(compiling_text(solver, seconds))
        if not terminal:
            return
        about = "" if seconds is None else f", about {seconds:.0f} s"
        with suppress(OSError, ValueError):  # closed meanwhile
            while not done.wait(_TICK):
                spent = time.monotonic() - self._begun
                sys.stderr.write(f"\r\x1b[2Kcompiling {solver} ({spent:.0f} s so far{about})")
                sys.stderr.flush()
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def compiling_text(solver: str, seconds: float | None) -> str:
    """Return the message about a solver that is being compiled, with a hint how to avoid the wait."""
    about = "" if seconds is None else f" (about {seconds:.0f} s)"
    return f"Compiling {solver}{about}: once, then it is kept. 'synovia doctor --warm' compiles all ahead."


def at_terminal() -> bool:
    """Return whether stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()  # pyright: ignore[reportUnnecessaryComparison]
