"""Stop solves at a deadline, at Ctrl-C, or when another thread of the same task has failed.

Kernels check the first values of their scratch memory (``kernels.compiler.watch``). On the main thread, they also run
signal handlers. Python runs no signal handlers on other threads; the main thread stops kernels there by setting their
deadline to the past.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from synovia.errors import InputError
from synovia.kernels.layout import DEADLINE, DEADLINE_PASSED, RAISED, SIGNAL, STOP_REASON, WATCH, WORK_LEFT
from synovia.model.geometry import Array, as_numbers

_PAST: Final = 1e-300  # clock time in the past


def new_scratch(size: int) -> Array:
    """Allocate scratch memory for a kernel, without a deadline."""
    out = np.empty(size)
    out[:WATCH] = 0.0
    return out


def deadline_of(seconds: Any) -> float:
    """Return the time on the kernels' clock that is ``seconds`` from now; 0 (no deadline) for None.

    Raises:
        InputError: If ``seconds`` is negative or cannot be used.
    """
    if seconds is None:
        return 0.0
    from synovia.kernels.compiler.watch import now

    number = float(as_numbers(seconds, (), "deadline"))
    if number < 0.0:
        raise InputError("deadline", value=seconds, expected="seconds, 0 or more")
    return now() + number


def set_deadline(scratch: Array, seconds: Any) -> float:
    """Set a deadline, in seconds from now, for kernels that use this scratch memory. It applies until ``clear``.

    Returns:
        The deadline on the clock of kernels.

    Raises:
        InputError: If ``seconds`` is negative or cannot be used.
    """
    ends = deadline_of(seconds)
    scratch[WORK_LEFT], scratch[DEADLINE] = 0.0, ends  # the clock is read at the first step
    return ends


def has_ended(scratch: Array) -> bool:
    """Return whether a deadline or signal stopped a kernel that used this scratch memory."""
    return scratch[STOP_REASON] in (DEADLINE_PASSED, SIGNAL)


def clear(scratch: Array) -> None:
    """Remove the deadline from scratch memory.

    Raises:
        BaseException: The exception of a signal handler that ran in a kernel.
    """
    try:
        raise_signal(scratch)
    finally:
        scratch[:WATCH] = 0.0


def raise_signal(scratch: Array) -> None:
    """Raise the exception of a signal handler that ran in a kernel, if there is one, and remove the deadline.

    Raises:
        BaseException: The exception of the handler, for example KeyboardInterrupt.
    """
    if scratch[STOP_REASON] != SIGNAL:
        return
    raised = [ctypes.c_void_p(int(address)) for address in scratch[RAISED : RAISED + 3].view(np.uintp)]
    scratch[:WATCH] = 0.0
    ctypes.pythonapi.PyErr_Restore(*raised)  # ctypes then raises it


class Watch:
    """Stops several kernels that work on one task.

    Args:
        deadline: Time on the kernels' clock; 0 for none.
    """

    def __init__(self, deadline: float = 0.0) -> None:
        """Create a watch without kernels."""
        self._deadline = deadline
        self._all: dict[int, Array] = {}
        self._lock = threading.Lock()

    @contextmanager
    def over(self, scratch: Array) -> Generator[None]:
        """Apply the deadline to a kernel with this memory; at exit, raise the exception of its signal handler."""
        self.begin(scratch)
        try:
            yield
        finally:
            self.end(scratch)

    def begin(self, scratch: Array) -> None:
        """Apply the deadline to a kernel with this memory until ``end``; takes some microseconds less than ``over``."""
        with self._lock:
            if self._deadline != 0.0:
                scratch[DEADLINE] = self._deadline
            self._all[id(scratch)] = scratch

    def end(self, scratch: Array) -> None:
        """Remove the deadline from this memory; raise the exception of a signal handler that ran in the kernel."""
        with self._lock:
            del self._all[id(scratch)]
            clear(scratch)

    @property
    def passed(self) -> bool:
        """Whether the deadline has passed."""
        if self._deadline == 0.0:
            return False
        from synovia.kernels.compiler.watch import now

        return now() >= self._deadline

    def half(self) -> Watch:
        """Return a watch whose deadline leaves half of the remaining time; without a deadline, it has none either."""
        if self._deadline == 0.0:
            return Watch()
        from synovia.kernels.compiler.watch import now

        return Watch(0.5 * (self._deadline + now()))

    def stop(self) -> None:
        """Stop all running kernels now, and later kernels when they begin."""
        with self._lock:
            self._deadline = _PAST
            for scratch in self._all.values():
                scratch[DEADLINE] = _PAST
