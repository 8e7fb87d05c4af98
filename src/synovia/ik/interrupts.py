"""When a solve has to end: at a deadline, at Ctrl-C, or because another part of the same work has failed.

Kernels watch for that themselves (``kernels.compiler.watch``); what they watch is the beginning of their scratch
memory. A kernel on the main thread lets the handlers of signals run. On other threads none ever run: there the main
thread, when it is interrupted, puts their deadline into the past.
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

_PAST: Final = 1e-300  # of the clock


def new_scratch(size: int) -> Array:
    """Return memory for a kernel, with nothing to watch for."""
    out = np.empty(size)
    out[:WATCH] = 0.0
    return out


def deadline_of(seconds: Any) -> float:
    """Return the time of the kernels' clock at which so many seconds from now have passed; 0 for None: never.

    Raises:
        InputError: If it is no number from 0.
    """
    if seconds is None:
        return 0.0
    from synovia.kernels.compiler.watch import now

    number = float(as_numbers(seconds, (), "deadline"))
    if number < 0.0:
        raise InputError("deadline is out of range", value=seconds, expected="seconds from 0")
    return now() + number


def set_deadline(scratch: Array, seconds: Any) -> None:
    """Have kernels on this memory end so many seconds from now, until it is cleared.

    Raises:
        InputError: If it is no number from 0.
    """
    scratch[WORK_LEFT], scratch[DEADLINE] = 0.0, deadline_of(seconds)  # the clock is read at the first step


def has_ended(scratch: Array) -> bool:
    """Return whether kernels on this memory end at once."""
    return scratch[STOP_REASON] in (DEADLINE_PASSED, SIGNAL)


def clear(scratch: Array) -> None:
    """Have nothing to watch for any more.

    Raises:
        BaseException: What the handler of a signal has raised during a kernel.
    """
    try:
        raise_signal(scratch)
    finally:
        scratch[:WATCH] = 0.0


def raise_signal(scratch: Array) -> None:
    """Raise what the handler of a signal has raised during a kernel, if one has; there is nothing to watch for then.

    Raises:
        BaseException: That exception, for example KeyboardInterrupt.
    """
    if scratch[STOP_REASON] != SIGNAL:
        return
    raised = [ctypes.c_void_p(int(address)) for address in scratch[RAISED : RAISED + 3].view(np.uintp)]
    scratch[:WATCH] = 0.0
    ctypes.pythonapi.PyErr_Restore(*raised)  # ctypes then raises it


class Watch:
    """Watches over the memory of several kernels that do one piece of work.

    Args:
        deadline: Time of the kernels' clock, 0 for none.
    """

    def __init__(self, deadline: float = 0.0) -> None:
        """Begin with no kernel."""
        self._deadline = deadline
        self._all: dict[int, Array] = {}
        self._lock = threading.Lock()

    @contextmanager
    def over(self, scratch: Array) -> Generator[None]:
        """Have a kernel on this memory stop in time; raise afterwards what the handler of a signal has raised in it."""
        self.begin(scratch)
        try:
            yield
        finally:
            self.end(scratch)

    def begin(self, scratch: Array) -> None:
        """Have a kernel on this memory stop in time, until ``end``: what ``over`` does, some microseconds faster."""
        with self._lock:
            if self._deadline != 0.0:
                scratch[DEADLINE] = self._deadline
            self._all[id(scratch)] = scratch

    def end(self, scratch: Array) -> None:
        """Have nothing to watch for in this memory; raise what the handler of a signal has raised in a kernel."""
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

    def stop(self) -> None:
        """Stop all kernels now, and those to come as soon as they begin."""
        with self._lock:
            self._deadline = _PAST
            for scratch in self._all.values():
                scratch[DEADLINE] = _PAST
