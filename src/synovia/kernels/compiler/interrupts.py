"""Ctrl-C while code is compiled: heeded between two pieces of the work, where the compiler can be left.

An exception that comes anywhere else can break numba for the rest of the process: a generator that it keeps is over
once an exception has passed through it. And one that comes while LLVM calls back is printed and lost.
"""

import functools
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

_handlers: list[Callable[..., Any]] = []  # the user's, while one of ours notes that Ctrl-C came
_came: list[bool] = []


@contextmanager
def deferred() -> Generator[None]:
    """Let Ctrl-C wait for ``heed``, or for the end. Other threads than the main one never see it."""
    handler = signal.getsignal(signal.SIGINT)
    if _handlers or threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    _handlers.append(handler)
    signal.signal(signal.SIGINT, lambda *_: _came.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        _handlers.clear()
        came = bool(_came)
        _came.clear()
        if came:
            signal.raise_signal(signal.SIGINT)


def heed() -> None:
    """Call the user's handler if Ctrl-C came; it may raise."""
    if _came and threading.current_thread() is threading.main_thread():
        _came.clear()
        _handlers[0](signal.SIGINT, None)


def defer(dispatcher: Any) -> None:
    """Have an entry point compile, or load what is kept, with Ctrl-C deferred."""
    compile_it = type(dispatcher).compile

    @functools.wraps(compile_it)
    def compiling(signature: Any) -> Any:
        with deferred():
            return type(dispatcher).compile(dispatcher, signature)

    dispatcher.compile = compiling
