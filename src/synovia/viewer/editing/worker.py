"""Threads of the page: a registry of threads that may need a compiled solver, and the thread that solves a session."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from synovia.compiling import Compilers, Compiling, cores
from synovia.errors import SynoviaError
from synovia.kernels.compiler.compile_events import delegated
from synovia.viewer.editing.engine import Engine, Frame
from synovia.viewer.editing.state import State

SESSION: Final = "synovia-session"  # name of the threads that solve
RATE: Final = 60.0  # largest number of steps per second
_PAUSE: Final = 0.2  # seconds without a change after which a frame is still
_PROMPT: Final = 0.25  # seconds; a solver that is ready sooner is not shown as busy
_LONGEST: Final = 0.1  # longest time step, seconds, even after a pause


class Background:
    """The threads of one view that may need a compiled solver.

    Other processes compile, so that the page stays responsive. If such a process fails, this one compiles instead. A
    process that ends while the compiler runs may crash, so ``stop`` waits until all threads have ended. ``stop`` is
    called when the page stops and before the process ends.

    Attributes:
        stopped: Event that is set when the threads should end; long work checks it between its steps.
    """

    def __init__(self) -> None:
        """Start with no thread."""
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._compilers = Compilers(cores())

    def start(self, name: str, action: Callable[[], None]) -> None:
        """Run an action in a new thread, unless ``stop`` was called."""

        def run() -> None:
            try:
                with delegated(self._compile, self._check, self._compilers.start):
                    action()
            finally:
                with self._lock:
                    self._threads.discard(thread)

        # a daemon thread, so that a script that ends without ``stop`` does not wait for the page
        thread = threading.Thread(target=run, name=name, daemon=True)
        with self._lock:
            if self.stopped.is_set():
                return
            self._threads.add(thread)
            thread.start()

    def _compile(self, name: str) -> None:
        """Compile an entry point in another process."""
        try:
            self._compilers.compile(name)
        except SynoviaError as error:
            self._check()
            logging.getLogger("synovia.kernels").warning("%s. This process compiles it instead", error)

    def _check(self) -> None:
        """Raise an error if the page has stopped, so that a thread stops compiling.

        Raises:
            SynoviaError: If the page has stopped.
        """
        if self.stopped.is_set():
            raise SynoviaError("the page has stopped")

    def running(self, name: str) -> int:
        """Return the number of running threads with a name."""
        with self._lock:
            return sum(thread.name == name for thread in self._threads)

    def stop(self) -> None:
        """End the compilers and all threads."""
        self.stopped.set()
        self._compilers.stop()
        while True:
            with self._lock:
                others = self._threads - {threading.current_thread()}
            if not others:
                return
            for thread in others:
                thread.join()


class Worker:
    """Solves a session in a thread and calls a listener with each frame.

    The thread solves for the latest targets 60 times a second while anything moves, and sleeps otherwise. After a
    moment of rest, it passes the last frame again, marked as still, so that the listener can start slow work.

    Args:
        state: The state of the page.
        listener: Called with each frame in the thread.
        background: Runner of the thread.
        next_update: Returns the seconds until the last frame is due again at rest; None for never.
    """

    def __init__(
        self,
        state: State,
        listener: Callable[[Frame], None],
        background: Background,
        next_update: Callable[[], float | None] = lambda: None,
    ) -> None:
        """Start the thread."""
        self.state = state
        self._stopped = threading.Event()
        self.engine = Engine(state, self._stopped)
        self.frames = 0
        self.ended = threading.Event()
        self._listener, self._next_update, self._background = listener, next_update, background
        background.start(SESSION, self._run)

    def stop(self) -> None:
        """End the thread after its current step."""
        self._stopped.set()
        self.state.changed.set()

    def _run(self) -> None:
        """Run ``_work`` in the thread until stopped."""
        try:
            self._work()
        finally:
            self.ended.set()

    def _work(self) -> None:
        """Repeat until stopped: advance the engine, call the listener, wait."""
        last = due = time.perf_counter()
        moving = True
        shown: Frame | None = None
        while not self._stopped.is_set():
            if not moving:
                pause: float | None = _PAUSE
                while shown is not None and not self.state.changed.wait(pause):
                    self._listener(dataclasses.replace(shown, still=True))
                    pause = self._next_update()
                last = due = time.perf_counter() - 1.0 / RATE
            if self._stopped.is_set():
                return
            if self.engine.stale:
                if shown is None:
                    self._listener(dataclasses.replace(self.engine.unsolved(), busy=True))
                self._prepare()  # shown as busy only if slow, because rotating a joint packs the problem in each frame
                if self._stopped.is_set():  # if set, the other thread may still use the engine
                    return
                last = max(last, time.perf_counter() - 1.0 / RATE)
            now = time.perf_counter()
            shown, moving = self.engine.step(min(now - last, _LONGEST))
            last = now
            self.frames += 1
            self._listener(shown)
            moving = moving or self.state.changed.is_set()
            due = max(due, now - 1.0 / RATE) + 1.0 / RATE  # catches up after a late wake-up, not after a long pause
            rest = due - time.perf_counter()
            if moving and rest > 0.0:
                self._stopped.wait(rest)

    def _prepare(self) -> None:
        """Prepare the solver in another thread; if this takes long, frames show what is compiled."""
        ready = threading.Event()

        def prepare() -> None:
            try:
                self.engine.prepare()
            finally:
                ready.set()

        with Compiling() as compiling:
            self._background.start("synovia-prepare", prepare)
            patience = _PROMPT
            while not ready.wait(patience) and not (self._stopped.is_set() or self._background.stopped.is_set()):
                progress = compiling.words, compiling.spent, compiling.seconds
                frame = self.engine.unsolved(patience)
                self._listener(dataclasses.replace(frame, busy=True, compiling=progress))
                patience = 1.0 / RATE
