"""The local engine: a pool of processes, each of which works on one portion at a time.

A thread per process sends a portion and waits for the result, both as pickles. If a process dies, its thread starts
another process and tries the portion again. A process ends at once when its input is closed, even in the middle of a
portion, so it also ends when its parent process is killed.

``python -m synovia.batch.pool`` starts such a process.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, Final, Protocol, cast

from synovia.batch.inputs import escaped
from synovia.batch.work import CRASHED, Portion, Result, Task, work_on
from synovia.errors import SynoviaError

ATTEMPTS: Final = 3  # number of processes that may die on one portion before it fails
_STARTS: Final = 20  # largest number of starts of one process, which may be killed before it is ready
_FROM_OUTSIDE: Final = (-9, -15)  # exit codes of processes that the system killed, for example when memory is short
_LISTEN: Final = 0.2  # seconds between checks for Ctrl-C
_READY: Final = "ready"
_LAST_WORDS: Final = 4000  # bytes at the end of stderr that are reported if a process dies
# one thread for each process, because the pool has a process for each core
_ALONE: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Engine(Protocol):
    """An engine that works on portions."""

    def run(self, task: Task, portions: Iterable[Portion]) -> Generator[Result]:
        """Yield results in the order in which portions finish; closing the generator stops the work."""
        ...


def cores() -> int:
    """Return the number of cores that this process may use."""
    with suppress(AttributeError):  # macOS and Windows do not support processor affinity
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Local:
    """A pool of processes on this machine.

    Args:
        workers: Number of processes; None for one per core.
    """

    def __init__(self, workers: int | None = None) -> None:
        """Store the number of processes."""
        self.workers = workers or cores()

    def run(self, task: Task, portions: Iterable[Portion]) -> Generator[Result]:
        """Yield results in the order in which portions finish; closing the generator stops the work.

        The first process loads or compiles the kernels before the others start, so that kernels are compiled only once.

        Raises:
            SynoviaError: If the task cannot be prepared.
        """
        waiting = deque(portions)
        if not waiting:
            return
        ended: queue.SimpleQueue[Result | BaseException | None] = queue.SimpleQueue()
        workers = [Worker(task, waiting, ended) for _ in range(min(self.workers, len(waiting)))]
        try:
            workers[0].start()
            while not workers[0].ready.wait(_LISTEN):  # ``ready`` is also set when the worker ends
                pass
            for worker in workers[1:]:
                worker.start()
            left = len(workers)
            while left:
                with suppress(queue.Empty):
                    one = ended.get(timeout=_LISTEN)
                    if one is None:
                        left -= 1
                    elif isinstance(one, BaseException):
                        raise one
                    else:
                        yield one
        finally:
            waiting.clear()
            for worker in workers:
                worker.stop()
            for worker in workers:
                worker.finish()


class Worker(threading.Thread):
    """A thread with a process that works on portions.

    Args:
        task: The task.
        waiting: The portions.
        ended: Gets the results, an exception if the task cannot be prepared, and None at the end.
    """

    def __init__(self, task: Task, waiting: deque[Portion], ended: queue.SimpleQueue[Any]) -> None:
        """Store the arguments."""
        super().__init__(daemon=True)
        self._task = pickle.dumps(task)
        self._waiting = waiting
        self._ended = ended
        self._process: subprocess.Popen[bytes] | None = None
        self._words: BinaryIO  # text that the process writes to stderr
        self._stopped = False
        self.ready = threading.Event()

    def run(self) -> None:
        """Work on portions until none is left."""
        try:
            while not self._stopped:
                try:
                    portion = self._waiting.popleft()  # this call is atomic, so threads need no lock
                except IndexError:
                    break
                result = self.do(portion)
                if result is not None:
                    self._ended.put(result)
        except BaseException as error:  # noqa: BLE001  raised again in the main thread
            self._ended.put(error)
        finally:
            self.ready.set()
            self.stop()
            self._ended.put(None)

    def do(self, portion: Portion) -> Result | None:
        """Return the result of a portion; None after ``stop``.

        Raises:
            SynoviaError: If the task cannot be prepared.
        """
        words = ""
        for attempt in range(1, ATTEMPTS + 1):
            process = self._process or self._start()
            with suppress(OSError, EOFError, pickle.UnpicklingError, IndexError, AttributeError):
                answer = self._ask(process, portion)
                return cast("Result", answer)._replace(attempts=attempt)
            if self._stopped:
                return None
            words = self._ending(process)
            self._process = None
        how, name = words.splitlines()[0], escaped(portion.item.name)
        reason = f"{name}: the worker process crashed {ATTEMPTS} times ({how})"
        return Result(portion.number, CRASHED, error=reason, trace=words, attempts=ATTEMPTS)

    def _ask(self, process: subprocess.Popen[bytes], content: object) -> Any:
        """Send a task or a portion to a process and return its answer."""
        _send(cast("BinaryIO", process.stdin), pickle.dumps(content))
        return pickle.load(cast("BinaryIO", process.stdout))  # noqa: S301  from our own process

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a process, prepare the task in it, and return the process.

        Raises:
            SynoviaError: If the task cannot be prepared, or no process starts.
        """
        words, own = "", 0
        for _ in range(_STARTS):
            self._words = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115  lives as long as the process
            process = subprocess.Popen(
                [sys.executable, "-m", "synovia.batch.pool"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._words,
                env={**_ALONE, **os.environ},
                start_new_session=True,  # Ctrl-C at the terminal reaches only the main process
            )
            self._process = process
            if self._stopped:
                process.kill()
            try:
                answer = self._ask(process, self._task)
            except (OSError, EOFError, pickle.UnpicklingError):
                words = self._ending(process)
                if self._stopped:
                    return process
                own += process.returncode not in _FROM_OUTSIDE
                if own == ATTEMPTS:
                    break
                continue
            if answer != _READY:
                raise answer
            self.ready.set()
            return process
        raise SynoviaError("a worker process cannot start", value=words)

    def _ending(self, process: subprocess.Popen[bytes]) -> str:
        """Return how a process ended and the end of its stderr."""
        process.kill()
        with suppress(BrokenPipeError), process:  # a task that was never read is still in the pipe
            process.wait()
        code = process.wait()
        try:
            how = f"signal {-code}, {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        except ValueError:
            how = f"signal {-code}"
        with self._words as words:
            words.seek(max(words.seek(0, os.SEEK_END) - _LAST_WORDS, 0))
            return f"{how}\n{words.read().decode(errors='replace')}".strip()

    def stop(self) -> None:
        """End the process now."""
        self._stopped = True
        process = self._process
        if process is not None:
            process.kill()

    def finish(self) -> None:
        """Wait for the thread, and release the pipes and the file of the process."""
        if self.ident is not None:
            self.join()
        if self._process is not None:
            with suppress(ValueError):  # if the pipe is already closed
                self._ending(self._process)


def serve(asked: Iterator[bytes], answers: BinaryIO) -> None:
    """Read and prepare the task, then work on portions.

    Args:
        asked: Pickles: first the task, then the portions.
        answers: Gets pickles of ``_READY`` or an error, then of the results.
    """
    try:
        task = cast("Task", pickle.loads(pickle.loads(next(asked))))  # noqa: S301  from the parent process
        task.prepare()
        answer: object = _READY
    except Exception as error:  # noqa: BLE001  raised again in the parent process
        task, answer = cast("Task", None), error
    _answer(answers, answer)
    if task is not None:  # pyright: ignore[reportUnnecessaryComparison]
        for portion in asked:
            _answer(answers, work_on(task, cast("Portion", pickle.loads(portion))))  # noqa: S301


def _answer(answers: BinaryIO, content: object) -> None:
    """Write an answer as a pickle."""
    try:
        data = pickle.dumps(content)
    except Exception:  # noqa: BLE001  an error with attributes that cannot be pickled
        data = pickle.dumps(SynoviaError(str(content)))
    answers.write(data)
    answers.flush()


def _send(stream: BinaryIO, data: bytes) -> None:
    """Write the number of bytes, then the bytes, so that the reader knows where they end."""
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def _awaited(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the messages of ``_send``. A thread reads them and ends this process when the stream is closed."""
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        while len(head := stream.read(8)) == 8:
            waiting.put(stream.read(*struct.unpack("<Q", head)))
        os._exit(0)  # ends the process, because the caller no longer waits for an answer

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield waiting.get()


def _main() -> None:
    """Run a process of the pool: its standard output carries answers only."""
    import faulthandler

    faulthandler.enable()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(BrokenPipeError, KeyboardInterrupt):
        serve(_awaited(cast("BinaryIO", sys.stdin.buffer)), cast("BinaryIO", answers))


if __name__ == "__main__":
    _main()
