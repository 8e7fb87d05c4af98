"""Listen to the messages about compilations, which the logger ``synovia.kernels`` gets.

Each record has the attributes ``compiling`` (True before a compilation, False after it), ``solver`` (what the kernel is
for) and ``seconds`` (an estimate before, None if unknown; the time taken after).
"""

from __future__ import annotations

import logging
import time
from types import TracebackType
from typing import Self


class CompileListener(logging.Handler):
    """A log handler that hears of compilations while it is open; a context manager."""

    def __init__(self) -> None:
        """Create the handler; the context manager attaches it."""
        super().__init__(logging.INFO)
        self._logger = logging.getLogger("synovia.kernels")
        self._level = self._logger.level

    def __enter__(self) -> Self:
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


class Compiling(CompileListener):
    """What is being compiled at the moment.

    Attributes:
        words: What the solver that is being compiled is for, empty if none is.
        seconds: How long that usually takes, 0 if unknown.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.words, self.seconds = "", 0.0
        self._begun = time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds since the compilation began."""
        return time.monotonic() - self._begun

    def emit(self, record: logging.LogRecord) -> None:
        """Note the start or the end of a compilation."""
        began = bool(getattr(record, "compiling", False))
        self.words = str(getattr(record, "solver", "")) if began else ""
        self.seconds = float(getattr(record, "seconds", None) or 0.0) if began else 0.0
        self._begun = time.monotonic()
