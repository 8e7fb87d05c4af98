"""The threads beside the page: those that may compile a solver, and the one that solves a session."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Final

from synovia.viewer.engine import Engine, Frame
from synovia.viewer.session import Session

SESSION: Final = "synovia-session"  # the threads' name
RATE: Final = 60.0  # steps a second
_PAUSE: Final = 0.2  # seconds without a change after which a frame is still
_LONGEST: Final = 0.1  # seconds; after a pause, time goes on by no more than this


class Background:
    """The threads of one view that may compile a solver: none is left behind.

    The compiler runs in native code that Python cannot stop. A process that ends while it runs destroys what it works
    on, and crashes. So these threads are waited for: when the page is stopped, and before the process ends.

    Attributes:
        stopped: Set when they should come to an end; long work looks at it between its steps.
    """

    def __init__(self) -> None:
        """Run nothing yet."""
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()

    def start(self, name: str, action: Callable[[], None]) -> None:
        """Run an action in a thread of its own; nothing happens after ``stop``."""

        def run() -> None:
            try:
                action()
            finally:
                with self._lock:
                    self._threads.discard(thread)

        # a daemon, so that a script that ends without a word is not held by a page that waits for the next message
        thread = threading.Thread(target=run, name=name, daemon=True)
        with self._lock:
            if self.stopped.is_set():
                return
            self._threads.add(thread)
            thread.start()

    def running(self, name: str) -> int:
        """Return how many threads of a name run."""
        with self._lock:
            return sum(thread.name == name for thread in self._threads)

    @property
    def busy(self) -> bool:
        """Whether any thread runs."""
        with self._lock:
            return bool(self._threads)

    def stop(self) -> None:
        """Wait until every thread has come to its end, however long a compilation takes."""
        self.stopped.set()
        while True:
            with self._lock:
                others = self._threads - {threading.current_thread()}
            if not others:
                return
            for thread in others:
                thread.join()


class Worker:
    """Runs a session in a thread of its own and calls a listener with what to show.

    It solves 60 times a second while anything moves, always for the latest targets, and sleeps else. After a moment of
    rest it shows its last frame once more, marked as still, so that the listener may do what takes long.

    Args:
        session: The session.
        listener: Called with each frame, from the thread.
        background: What runs the thread.
        again: Called at rest: the seconds after which the last frame is to be shown once more, None for never.
    """

    def __init__(
        self,
        session: Session,
        listener: Callable[[Frame], None],
        background: Background,
        again: Callable[[], float | None] = lambda: None,
    ) -> None:
        """Start the thread."""
        self.session = session
        self._stopped = threading.Event()
        self.engine = Engine(session, self._stopped)
        self.frames = 0
        self._listener, self._again = listener, again
        background.start(SESSION, self._run)

    def stop(self) -> None:
        """End the thread, after the step that it is at."""
        self._stopped.set()
        self.session.changed.set()

    def _run(self) -> None:
        """Step, show, wait."""
        last = due = time.perf_counter()
        moving = True
        shown: Frame | None = None
        while not self._stopped.is_set():
            if not moving:
                pause: float | None = _PAUSE
                while shown is not None and not self.session.changed.wait(pause):
                    self._listener(dataclasses.replace(shown, still=True))
                    pause = self._again()
                last = due = time.perf_counter() - 1.0 / RATE
            if self._stopped.is_set():
                return
            if self.engine.stale:
                self._listener(dataclasses.replace(shown or self.engine.unsolved(), busy=True))
            now = time.perf_counter()
            frame, moving = self.engine.step(min(now - last, _LONGEST))
            last = now
            shown = frame
            self.frames += 1
            self._listener(frame)
            moving = moving or self.session.changed.is_set()
            due = max(due, now - 1.0 / RATE) + 1.0 / RATE  # a late wake-up is made up for, a long pause is not
            rest = due - time.perf_counter()
            if moving and rest > 0.0:
                self._stopped.wait(rest)
