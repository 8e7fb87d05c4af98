"""Tells when kernels are compiled, which takes seconds: records at level INFO of the logger ``synovia.kernels``.

Each has an attribute ``compiling``: True before, False after; ``solver``, what the kernel is for; and ``seconds``:
about what it will take (None where nobody knows), or what it took.

Nobody who has not set up logging reads those. So what takes more than two seconds is told on stderr too, in one line,
where a person looks at it: at a terminal or in a notebook. Whoever listens to the logger, or sets its level above INFO,
is not told a second time.
"""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from synovia.kernels.compiler.entries import told

logger = logging.getLogger("synovia.kernels")
PATIENCE = 2.0  # seconds of compiling before a person is told


def _nothing() -> None:
    """Listen to nothing: a numba without events."""


listen: Callable[[], None] = _nothing

try:
    from numba.core import event as events

    class _Teller(events.Listener):
        """Hears of every compilation, also of helpers inside that of an entry point and of users' own functions."""

        def __init__(self) -> None:
            self._inside: list[tuple[Any, float]] = []
            self._timer: threading.Timer | None = None

        def on_start(self, event: Any) -> None:
            """Tell of the outermost one, if it is ours."""
            function = event.data["dispatcher"].py_func
            self._inside.append((function, time.perf_counter()))
            if len(self._inside) == 1 and _is_ours(function):
                words, seconds = purpose(function)
                more: dict[str, Any] = {"compiling": True, "solver": words, "seconds": seconds}
                logger.info("compiling %s%s, once for this version", words, about(seconds), extra=more)
                if _unheard():
                    self._timer = threading.Timer(PATIENCE, notice, (words, seconds))
                    self._timer.daemon = True
                    self._timer.start()

        def on_end(self, event: Any) -> None:
            """Tell how long it took."""
            del event
            function, begun = self._inside.pop()
            if self._inside or not _is_ours(function):
                return
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            seconds = time.perf_counter() - begun
            more: dict[str, Any] = {"compiling": False, "solver": purpose(function)[0], "seconds": seconds}
            logger.info("compiled %s in %.1f s", more["solver"], seconds, extra=more)

    def _listen() -> None:
        """Hear of compilations from now on."""
        events.register("numba:compile", _Teller())

    listen = _listen
except (ImportError, AttributeError):  # pragma: no cover - a numba without such events, or none
    pass


def purpose(function: Any) -> tuple[str, float | None]:
    """Return what one of our kernels is for, and about how many seconds it takes to compile."""
    entry = told(function)
    return (function.__name__, None) if entry is None else (entry.words, entry.seconds)


def about(seconds: float | None) -> str:
    """Return how long it will take, for a sentence."""
    return "" if seconds is None else f" (about {seconds:.0f} s)"


def notice(words: str, seconds: float | None) -> None:
    """Tell a person who waits in Python."""
    if not _watched():
        return
    with contextlib.suppress(OSError, ValueError):  # closed meanwhile
        sys.stderr.write(f"synovia: compiling {words}{about(seconds)}, once for this version\n")
        sys.stderr.flush()


def _unheard() -> bool:
    """Return whether nobody listens to the logger, and nobody has silenced it."""
    return logger.level <= logging.INFO and not (logger.isEnabledFor(logging.INFO) and logger.hasHandlers())


def _watched() -> bool:
    """Return whether a person reads stderr: at a terminal or in a notebook."""
    try:
        return sys.stderr.isatty() or "ipykernel" in sys.modules
    except (AttributeError, ValueError):  # none, or closed
        return False


def _is_ours(function: Any) -> bool:
    """Return whether a function is one of our kernels."""
    return (function.__module__ or "").startswith("synovia.kernels.")  # one made by exec may have none
