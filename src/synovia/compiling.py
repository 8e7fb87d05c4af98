"""Messages about compilations, and processes that compile.

The logger ``synovia.kernels`` gets the messages. Each record has the attributes ``compiling`` (True before a
compilation, False after it), ``solver`` (what the kernel is for) and ``seconds`` (an estimate before, None if unknown;
the time taken after).
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

    def compile(self, name: str, *, wait: bool = True) -> float:
        """Compile an entry point, unless it is stored already; return the seconds that it took.

        Args:
            name: Module and function of the entry point, see ``kernels.compiler.entries``.
            wait: Whether to wait while another process compiles the same; otherwise it is left to that one.

        Raises:
            SynoviaError: If the process has failed, was killed twice, or was stopped, or the code cannot be stored.
        """
        with self._lock:
            problem = ""
            for _ in range(_TRIES):
                try:
                    seconds = None if self._stopped else self._ask(name, wait)
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

    def _ask(self, name: str, wait: bool) -> float | None:
        """Have the process, started if need be, compile an entry point; return the seconds, None if it has failed."""
        if self._process is None:
            self._errors = TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - ``_ended`` closes it
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "synovia.kernels.compiler.ahead"],  # no modules of the current folder
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
            process.stdin.write(json.dumps({"entry": name, "wait": wait}) + "\n")
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
            said = errors.read().strip().rpartition("\n")[2].strip()
        if process.returncode < 0:
            why = ", perhaps for lack of memory" if process.returncode == _KILLED else ""
            return f"its process was killed by signal {-process.returncode}{why}", True
        return said or f"its process ended with code {process.returncode}", not said


class Compilers:
    """Processes that compile entry points side by side and store them in the cache on disk.

    Args:
        count: How many processes; each starts with its first entry point.
        wait: Whether they wait for what other processes compile, see ``CompilerProcess.compile``.
    """

    def __init__(self, count: int, *, wait: bool = True) -> None:
        """Begin without work."""
        self._wait = wait
        self._lock = threading.Lock()
        self._waiting: list[str] = []  # the next first
        self._results: dict[str, Future[float]] = {}
        self._processes = [CompilerProcess() for _ in range(count)]
        self._idle = [*self._processes]

    def start(self, names: Iterable[str]) -> dict[str, Future[float]]:
        """Begin to compile entry points, in this order; return the seconds that each will have taken."""
        with self._lock:
            out = {name: self._results.get(name) or self._add(name, len(self._waiting)) for name in names}
            self._go_on()
        return out

    def compile(self, name: str) -> float:
        """Compile an entry point before those that have not begun, and wait for it; return the seconds that it took.

        Raises:
            SynoviaError: If its process fails, see ``CompilerProcess.compile``.
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
        """Kill the processes, also while they compile."""
        for process in self._processes:
            process.stop()

    def _add(self, name: str, place: int) -> Future[float]:
        """Have an entry point wait at a place; the caller holds the lock."""
        self._results[name] = Future()
        self._waiting.insert(place, name)
        return self._results[name]

    def _go_on(self) -> None:
        """Give work to idle processes; the caller holds the lock."""
        for _ in range(min(len(self._idle), len(self._waiting))):
            threading.Thread(target=self._work, args=(self._idle.pop(),), daemon=True).start()

    def _work(self, process: CompilerProcess) -> None:
        """Have a process compile until nothing waits."""
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
                    del self._results[name]  # may be tried again
                result.set_exception(error)


def longest_first(names: Iterable[str]) -> list[str]:
    """Return entry points in the order in which several processes end soonest."""
    from synovia.kernels.compiler.entries import ENTRIES

    return sorted(names, key=lambda name: -ENTRIES[name].seconds)


def cores() -> int:
    """Return how many processes can compile side by side."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return count or 1


def missing(names: Iterable[str]) -> list[str]:
    """Return the entry points that have to be compiled and can be stored."""
    from synovia.kernels import compiler

    if compiler.mode != "jit":
        return []
    from synovia.kernels.compiler.compile_events import missing_code
    from synovia.kernels.compiler.entries import kernel_of, signatures

    return [name for name in names if any(missing_code(kernel_of(name), types) for types in signatures(name))]


class _Shared:
    """The processes of ``compile_soon``, one fewer than there are cores, whoever asks; they end when all is done."""

    def __init__(self) -> None:
        """Begin without processes."""
        self._lock = threading.Lock()
        self._compilers: Compilers | None = None
        self._users = 0

    def start(self, names: Iterable[str]) -> None:
        """Begin to compile entry points, in this order."""
        with self._lock:
            if self._compilers is None:
                self._compilers = Compilers(cores() - 1, wait=False)
            self._users += 1
            results = [*self._compilers.start(names).values()]
        threading.Thread(target=self._end, args=(results,), daemon=True).start()

    def _end(self, results: list[Future[float]]) -> None:
        """Wait for results, and end the processes if nobody else waits for one."""
        for result in results:
            result.exception()  # this process compiles what has failed, and says why that fails
        with self._lock:
            self._users -= 1
            ended = None if self._users else self._compilers
            if ended is not None:
                self._compilers = None
        if ended is not None:
            ended.stop()


_shared = _Shared()


class _Next(threading.local):
    """What a thread will need after the kernel of the problem that it builds."""

    names: tuple[str, ...] = ()
    misses = False


_next = _Next()


@contextmanager
def needed_next(*names: str, misses: bool = False) -> Generator[None]:
    """Say what is needed soon after the kernel of a problem that is built in this block, so that both are compiled.

    Args:
        names: Entry points, in the order in which they will be needed.
        misses: Whether the kernel for misses of that problem is among them.
    """
    before = _next.names, _next.misses
    _next.names, _next.misses = names, misses
    try:
        yield
    finally:
        _next.names, _next.misses = before


def compile_with_next(kernel: Any, miss_kernel: Callable[[], Any]) -> None:
    """Have other processes compile the kernel of a problem, and what ``needed_next`` says; see ``compile_soon``."""
    from synovia.kernels.compiler.entries import name_of_entry

    names, misses = _next.names, _next.misses
    if names or misses:
        compile_soon(*map(name_of_entry, (kernel, miss_kernel()) if misses else (kernel,)), *names)


def compile_soon(*names: str) -> None:
    """Have other processes compile what this thread will need in a moment, on the cores that it leaves idle.

    The thread goes on, and compiles what it needs first. When it needs what another process is compiling, it compiles
    something else of the list meanwhile. Nothing happens if all is stored, or was compiled ahead.

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
    announce(f"compiling {len(wanted)} kernels on all cores, {seconds:.0f} s on one, once for this version")
    _shared.start(longest_first(wanted[1:]))
    while_waiting.extend(partial(compile_entry, name, wait=False) for name in wanted)


def _purpose(name: str) -> str:
    """Return what an entry point is for."""
    from synovia.kernels.compiler.entries import ENTRIES

    return ENTRIES[name].words if name in ENTRIES else name
