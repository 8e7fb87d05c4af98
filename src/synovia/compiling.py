"""Messages about compilations, and a process that compiles.

The logger ``synovia.kernels`` gets the messages. Each record has the attributes ``compiling`` (True before a
compilation, False after it), ``solver`` (what the kernel is for) and ``seconds`` (an estimate before, None if unknown;
the time taken after).
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Self

from synovia.errors import SynoviaError


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


class CompilerProcess:
    """A process that compiles entry points and stores them in the cache on disk, one after the other.

    It is in a session of its own, so that Ctrl-C does not reach it: the compiler would ignore it.
    """

    def __init__(self) -> None:
        """Begin without a process; the first entry point starts it."""
        self._lock = threading.Lock()  # held while it compiles
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def compile(self, name: str) -> float:
        """Compile an entry point, unless it is stored already; return the seconds that it took.

        Args:
            name: Module and function of the entry point, see ``kernels.compiler.entries``.

        Raises:
            SynoviaError: If the process has ended.
        """
        with self._lock:
            if self._stopped:
                raise SynoviaError("a solver cannot be compiled", where=name, value="its process was stopped")
            if self._process is None:
                self._process = _started()
            process = self._process
            if self._stopped:  # meanwhile
                process.kill()
            answer = ""
            if process.stdin is None or process.stdout is None or process.stderr is None:
                raise TypeError("expected pipes")
            try:
                process.stdin.write(name + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
            except (OSError, ValueError):  # it was killed
                pass
            if not answer:
                told = "" if self._stopped else process.stderr.read()
                last = told.strip().rpartition("\n")[2].strip() or "its process ended"
                raise SynoviaError("a solver cannot be compiled", where=name, value=last)
            return float(json.loads(answer)["seconds"])

    def stop(self) -> None:
        """Kill the process, also while it compiles."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()
        with self._lock:
            if self._process is not None:
                with self._process as process:  # closes its pipes
                    process.kill()
                    process.wait()


def _started() -> subprocess.Popen[str]:
    """Start a process that compiles the entry points whose names it reads."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "synovia.kernels.compiler.entries"],  # no modules of the current folder
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
