"""Messages about compilations, and processes that compile.

The logger ``synovia.kernels`` gets the messages. Each record has the attributes ``compiling`` (True before a
compilation, False after it), ``solver`` (the purpose of the kernel) and ``seconds`` (before a compilation the estimated
time, None if unknown; afterwards the time taken).
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Any, Final, Self

from synovia.errors import SynoviaError

_TRIES: Final = 2  # largest number of attempts, because a process may be killed for lack of memory
_KILLED: Final = -9  # exit code of a process killed by SIGKILL
_PATIENCE: Final = 5.0  # seconds to wait for a process to end after it closed its pipe


class CompileListener(logging.Handler):
    """A log handler that receives messages about compilations; a context manager that attaches and detaches it."""

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
    """The current compilation.

    Attributes:
        words: Description of the solver that is being compiled; empty if there is no compilation.
        seconds: Estimated duration; 0 if unknown.
    """

    def __init__(self) -> None:
        """Begin without a compilation."""
        super().__init__()
        self.words, self.seconds = "", 0.0
        self._begun = time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds since the compilation began."""
        return time.monotonic() - self._begun

    def emit(self, record: logging.LogRecord) -> None:
        """Record the start or the end of a compilation."""
        began = bool(getattr(record, "compiling", False))
        self.words = str(getattr(record, "solver", "")) if began else ""
        self.seconds = float(getattr(record, "seconds", None) or 0.0) if began else 0.0
        self._begun = time.monotonic()


class CompilerProcess:
    """A process that compiles entry points one after the other and stores them in the cache on disk.

    The process runs in its own session, so that Ctrl-C does not reach it. It ends when this process ends.
    """

    def __init__(self) -> None:
        """Begin without a process; the first call of ``compile`` starts it."""
        self._lock = threading.Lock()  # held while the process compiles
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None
        self._stopped = False

    def compile(self, name: str, *, wait: bool = True) -> float:
        """Compile an entry point, unless it is already stored; return the time in seconds.

        Args:
            name: Module and function of the entry point, see ``kernels.compiler.entries``.
            wait: Whether to wait while another process compiles the same entry point; otherwise return at once.

        Raises:
            SynoviaError: If the process failed, was killed twice or was stopped, or the code cannot be stored.
        """
        with self._lock:
            problem = ""
            for _ in range(_TRIES):
                try:
                    seconds = None if self._stopped else self._ask(name, wait)
                except OSError as error:  # if no process can be started
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
        """Kill the process, even while it compiles."""
        self._stopped = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._ended()

    def _ask(self, name: str, wait: bool) -> float | None:
        """Compile an entry point in the process, which is started if needed; return the seconds, None on failure."""
        if self._process is None:
            self._errors = TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - ``_ended`` closes it
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "synovia.kernels.compiler.ahead"],  # -P: ignore the current folder
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
            if self._stopped:  # ``stop`` was called in the meantime
                self._process.kill()
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise TypeError("expected pipes")
        with suppress(OSError, ValueError):  # if the process was killed
            process.stdin.write(json.dumps({"entry": name, "wait": wait}) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                try:
                    answer = json.loads(line)
                    seconds, warnings = float(answer["seconds"]), answer["warnings"]
                except (ValueError, TypeError, KeyError):  # if the line has another origin, such as a ``sitecustomize``
                    continue
                if warnings:
                    raise SynoviaError(str(warnings[0]))
                return seconds
        return None

    def _ended(self) -> tuple[str, bool]:
        """Wait for the process, or kill it after a timeout; return why it ended, and whether it was killed."""
        process, errors = self._process, self._errors
        self._process = self._errors = None
        if errors is not None and process is None:  # if the process could not be started
            errors.close()
        if process is None or errors is None:
            return "", False
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError, ValueError):  # closing flushes data that cannot be written any more
                if pipe is not None:
                    pipe.close()
        with errors:
            errors.seek(0)
            said = errors.read().strip().rpartition("\n")[2].strip()
        if process.returncode < 0:
            why = ", perhaps because memory ran out" if process.returncode == _KILLED else ""
            return f"its process was killed by signal {-process.returncode}{why}", True
        return said or f"its process ended with code {process.returncode}", not said


class Compilers:
    """A pool of processes that compile entry points and store them in the cache on disk.

    Args:
        count: Number of processes; each starts with its first entry point.
        wait: Whether the processes wait for entry points that other processes compile, see ``CompilerProcess.compile``.
    """

    def __init__(self, count: int, *, wait: bool = True) -> None:
        """Begin without work."""
        self._wait = wait
        self._lock = threading.Lock()
        self._waiting: list[str] = []  # queue of entry points
        self._results: dict[str, Future[float]] = {}
        self._processes = [CompilerProcess() for _ in range(count)]
        self._idle = [*self._processes]

    def start(self, names: Iterable[str]) -> dict[str, Future[float]]:
        """Begin to compile entry points in this order; return futures of the compile times in seconds."""
        with self._lock:
            out = {name: self._results.get(name) or self._add(name, len(self._waiting)) for name in names}
            self._go_on()
        return out

    def compile(self, name: str) -> float:
        """Compile an entry point before all waiting ones, and wait for it; return the time in seconds.

        Raises:
            SynoviaError: If the process fails, see ``CompilerProcess.compile``.
        """
        with self._lock:
            result = self._results.get(name)
            if result is None:
                result = self._add(name, 0)
            elif name in self._waiting:
                self._waiting.remove(name)
                self._waiting.insert(0, name)
            self._go_on()
        return result.result()

    def stop(self) -> None:
        """Kill the processes, even while they compile."""
        for process in self._processes:
            process.stop()

    def _add(self, name: str, place: int) -> Future[float]:
        """Insert an entry point into the queue; the caller holds the lock."""
        self._results[name] = Future()
        self._waiting.insert(place, name)
        return self._results[name]

    def _go_on(self) -> None:
        """Start idle processes on the queue; the caller holds the lock."""
        for _ in range(min(len(self._idle), len(self._waiting))):
            threading.Thread(target=self._work, args=(self._idle.pop(),), daemon=True).start()

    def _work(self, process: CompilerProcess) -> None:
        """Compile in a process until the queue is empty."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._idle.append(process)
                    return
                name = self._waiting.pop(0)
                result = self._results[name]
            try:
                result.set_result(process.compile(name, wait=self._wait))
            except SynoviaError as error:
                with self._lock:
                    del self._results[name]  # so that another attempt is possible
                result.set_exception(error)


def longest_first(names: Iterable[str]) -> list[str]:
    """Sort entry points by compile time, the longest first, so that several processes finish early."""
    from synovia.kernels.compiler.entries import ENTRIES

    return sorted(names, key=lambda name: -ENTRIES[name].seconds)


def cores() -> int:
    """Return the number of processes that can compile at the same time."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return count or 1


def missing(names: Iterable[str]) -> list[str]:
    """Return the entry points that must be compiled and whose code can be stored."""
    from synovia.kernels import compiler

    if compiler.mode != "jit":
        return []
    from synovia.kernels.compiler.compile_events import missing_code
    from synovia.kernels.compiler.entries import kernel_of, signatures

    return [name for name in names if any(missing_code(kernel_of(name), types) for types in signatures(name))]


class _Shared:
    """The shared processes of all calls of ``compile_soon``, one fewer than cores; they end when all work is done."""

    def __init__(self) -> None:
        """Begin without processes."""
        self._lock = threading.Lock()
        self._compilers: Compilers | None = None
        self._users = 0

    def start(self, names: Iterable[str]) -> None:
        """Begin to compile entry points in this order."""
        with self._lock:
            if self._compilers is None:
                self._compilers = Compilers(cores() - 1, wait=False)
            self._users += 1
            results = [*self._compilers.start(names).values()]
        threading.Thread(target=self._end, args=(results,), daemon=True).start()

    def _end(self, results: list[Future[float]]) -> None:
        """Wait for results, then end the processes if no other call uses them."""
        for result in results:
            result.exception()  # ignored: this process compiles failed entry points itself and reports the error
        with self._lock:
            self._users -= 1
            ended = None if self._users else self._compilers
            if ended is not None:
                self._compilers = None
        if ended is not None:
            ended.stop()


_shared = _Shared()


class _Next(threading.local):
    """Entry points that a thread will need after the kernel of the problem that it is building."""

    names: tuple[str, ...] = ()
    misses = False


_next = _Next()


@contextmanager
def needed_next(*names: str, misses: bool = False) -> Generator[None]:
    """Declare entry points needed after the kernel of a problem built in this block, to compile them together.

    Args:
        names: Entry points, in the order in which they will be needed.
        misses: Whether the problem's kernel for misses is needed, too.
    """
    before = _next.names, _next.misses
    _next.names, _next.misses = names, misses
    try:
        yield
    finally:
        _next.names, _next.misses = before


def compile_with_next(kernel: Any, miss_kernel: Callable[[], Any]) -> None:
    """Compile the kernel of a problem and the entry points of ``needed_next`` in other processes."""
    from synovia.kernels.compiler.entries import name_of_entry

    names, misses = _next.names, _next.misses
    if names or misses:
        compile_soon(*map(name_of_entry, (kernel, miss_kernel()) if misses else (kernel,)), *names)


def compile_soon(*names: str) -> None:
    """Compile entry points that this thread will need soon in other processes, on idle cores.

    The thread continues and compiles the first entry point itself. While it waits for an entry point that another
    process is compiling, it compiles another of the list. Nothing happens if all are stored or prebuilt.

    Args:
        names: Entry points, in the order in which they will be needed.
    """
    from synovia.kernels.compiler import mode

    if mode != "jit":
        return
    from synovia.kernels.compiler.ahead import compile_entry
    from synovia.kernels.compiler.compile_events import announce, start_elsewhere, while_waiting
    from synovia.kernels.compiler.entries import ENTRIES

    wanted = missing(names)
    if start_elsewhere(wanted) or len(wanted) < 2 or cores() < 2:
        return
    seconds = sum(ENTRIES[name].seconds for name in wanted)
    announce(f"compiling {len(wanted)} kernels on all cores, {seconds:.0f} s on one core, once for this version")
    _shared.start(longest_first(wanted[1:]))
    while_waiting.extend(partial(compile_entry, name, wait=False) for name in wanted)


def _purpose(name: str) -> str:
    """Return the description of an entry point."""
    from synovia.kernels.compiler.entries import ENTRIES

    return ENTRIES[name].words if name in ENTRIES else name
