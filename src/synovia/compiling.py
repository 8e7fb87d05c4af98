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
from contextlib import suppress
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Final, Self

from synovia.errors import SynoviaError

_TRIES: Final = 2  # a process may be killed for lack of memory
_KILLED: Final = -9  # code of a process that was killed
_PATIENCE: Final = 5.0  # seconds for a process to end by itself after it closed its pipe


class CompileListener(logging.Handler):
    """A log handler that hears of compilations while it is open; a context manager."""

    def __init__(self) -> None:
        """Create the handler; the context manager attaches it."""
        super().__init__(logging.INFO)
        self._logger = logging.getLogger("synovia.kernels")

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

    It is in a session of its own, so that Ctrl-C does not reach it. It ends when this process does.
    """

    def __init__(self) -> None:
        """Begin without a process; the first entry point starts it."""
        self._lock = threading.Lock()  # held while it compiles
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None
        self._stopped = False

    def compile(self, name: str) -> float:
        """Compile an entry point, unless it is stored already; return the seconds that it took.

        Args:
            name: Module and function of the entry point, see ``kernels.compiler.entries``.

        Raises:
            SynoviaError: If the process has failed, was killed twice, or was stopped, or the code cannot be stored.
        """
        with self._lock:
            problem = ""
            for _ in range(_TRIES):
                try:
                    seconds = None if self._stopped else self._ask(name)
                except OSError as error:  # no process can be started
                    problem = str(error)
                    self._ended()
                    break
                if seconds is not None:
                    return seconds
                problem, killed = self._ended()
                if not killed:
                    break
            if self._stopped:
                problem = "its process was stopped"
            raise SynoviaError(f"the compiler of {_purpose(name)} has failed: {problem}")

    def stop(self) -> None:
        """Kill the process, also while it compiles."""
        self._stopped = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._ended()

    def _ask(self, name: str) -> float | None:
        """Have the process, started if need be, compile an entry point; return the seconds, None if it has failed."""
        if self._process is None:
            self._errors = TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - ``_ended`` closes it
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "synovia.kernels.compiler.entries"],  # no modules of the current folder
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
            if self._stopped:  # meanwhile
                self._process.kill()
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise TypeError("expected pipes")
        with suppress(OSError, ValueError):  # it was killed
            process.stdin.write(name + "\n")
            process.stdin.flush()
            for line in process.stdout:
                try:
                    answer = json.loads(line)
                    seconds, warnings = float(answer["seconds"]), answer["warnings"]
                except (ValueError, TypeError, KeyError):  # another line, for example of a ``sitecustomize``
                    continue
                if warnings:
                    raise SynoviaError(str(warnings[0]))
                return seconds
        return None

    def _ended(self) -> tuple[str, bool]:
        """Kill the process, if there is one; return why it has ended, and whether it was killed."""
        process, errors = self._process, self._errors
        self._process = self._errors = None
        if errors is not None and process is None:  # it could not be started
            errors.close()
        if process is None or errors is None:
            return "", False
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError, ValueError):  # what could not be written
                if pipe is not None:
                    pipe.close()
        with errors:
            errors.seek(0)
            told = errors.read().strip().rpartition("\n")[2].strip()
        if process.returncode < 0:
            why = ", perhaps for lack of memory" if process.returncode == _KILLED else ""
            return f"its process was killed by signal {-process.returncode}{why}", True
        return told or f"its process ended with code {process.returncode}", not told


def _purpose(name: str) -> str:
    """Return what an entry point is for."""
    from synovia.kernels.compiler.entries import ENTRIES

    return ENTRIES[name].words if name in ENTRIES else name
