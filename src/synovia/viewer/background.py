"""Threads beside the page that may compile a solver.

The compiler runs in native code that Python cannot stop. A process that ends while it runs destroys what it works on,
and dies of that. So these threads are waited for: when the page is stopped, and before the process ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Background:
    """The threads of one view: none is left behind.

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
