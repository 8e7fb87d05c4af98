"""What happens around a compilation: people are told, Ctrl-C is handled, and numba's own way is the fallback.

**Messages.** A compilation takes seconds, so records at level INFO of the logger ``synovia.kernels`` tell of it. Each
has an attribute ``compiling``: True before, False after; ``solver``, what the kernel is for; and ``seconds``: about
what it will take (None if unknown), or what it took. If nobody listens to the logger, a compilation of more than two
seconds is told in one line on stderr, at a terminal or in a notebook. A level above INFO silences both.

**Ctrl-C.** It is handled between two functions, where the compiler can be left. An exception at any other moment can
break numba for the rest of the process (a generator that it keeps ends when an exception passes through it), and one
that comes while LLVM calls back is printed and lost.

**Fallback.** ``link`` uses private parts of numba. If a compilation fails with it, it is repeated the ordinary way, and
so is every later one of the process; that is told once.
"""

import contextlib
import functools
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from synovia.kernels.compiler.entries import entry_of

logger = logging.getLogger("synovia.kernels")
PATIENCE = 2.0  # seconds of compiling before a person is told


class Linking:
    """Whether ``link`` is in use."""

    active = True
    failure: Exception | None = None  # why it cannot be used at all, until that is told
    forget_helpers: Callable[[], None]  # forgets what was compiled for linking; set by ``link``


linking = Linking()
_handlers: list[Callable[..., Any]] = []  # the user's, while one of ours notes that Ctrl-C came
_came: list[bool] = []
_raised: list[Exception] = []  # by the user's handler


# Messages ---------------------------------------------------------------------------------------------------------


def listen() -> None:
    """Tell of compilations from now on."""
    with contextlib.suppress(ImportError, AttributeError):  # a numba without such events
        from numba.core import event

        event.Listener.register(_Listener)
        event.register("numba:compile", _Listener())  # pyright: ignore[reportArgumentType]  # one by the line above


class _Listener:
    """Hears of every compilation, also of helpers inside that of an entry point and of users' own functions."""

    def __init__(self) -> None:
        self._inside: list[tuple[Any, float]] = []
        self._timer: threading.Timer | None = None

    def notify(self, event: Any) -> None:
        """Take an event of numba's."""
        (self.on_start if event.is_start else self.on_end)(event)

    def on_start(self, event: Any) -> None:
        """Tell of the outermost compilation, if it is ours."""
        function = event.data["dispatcher"].py_func
        self._inside.append((function, time.perf_counter()))
        if len(self._inside) == 1 and _is_ours(function):
            if linking.failure is not None:
                _tell_fallback(linking.failure)
                linking.failure = None
            words, seconds = purpose(function)
            more: dict[str, Any] = {"compiling": True, "solver": words, "seconds": seconds}
            logger.info("compiling %s%s, once for this version", words, about(seconds), extra=more)
            if _unheard():
                line = f"compiling {words}{about(seconds)}, once for this version"
                self._timer = threading.Timer(PATIENCE, notice, (line,))
                self._timer.daemon = True
                self._timer.start()

    def on_end(self, event: Any) -> None:
        """Tell how long it took."""
        del event
        function, begun = self._inside.pop()
        if self._inside or not _is_ours(function):
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        seconds = time.perf_counter() - begun
        more: dict[str, Any] = {"compiling": False, "solver": purpose(function)[0], "seconds": seconds}
        logger.info("compiled %s in %.1f s", more["solver"], seconds, extra=more)


def purpose(function: Any) -> tuple[str, float | None]:
    """Return what one of our kernels is for, and about how many seconds it takes to compile."""
    entry = entry_of(function)
    return (function.__name__, None) if entry is None else (entry.words, entry.seconds)


def about(seconds: float | None) -> str:
    """Return how long it will take, for a sentence."""
    return "" if seconds is None else f" (about {seconds:.0f} s)"


def notice(line: str) -> None:
    """Write a line for a person who waits in Python: at a terminal or in a notebook."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr is closed, or there is none
        if sys.stderr.isatty() or "ipykernel" in sys.modules:
            sys.stderr.write(f"synovia: {line}\n")
            sys.stderr.flush()


def _unheard() -> bool:
    """Return whether nobody listens to the logger, and nobody has silenced it."""
    return logger.level <= logging.INFO and not (logger.isEnabledFor(logging.INFO) and logger.hasHandlers())


def _is_ours(function: Any) -> bool:
    """Return whether a function is one of our kernels."""
    return (function.__module__ or "").startswith("synovia.kernels.")  # one made by exec may have none


# Ctrl-C -----------------------------------------------------------------------------------------------------------


@contextmanager
def interrupt_deferred() -> Generator[None]:
    """Let Ctrl-C wait for ``handle_interrupt``, or for the end. Other threads than the main one never see it."""
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


def handle_interrupt() -> None:
    """Call the user's handler if Ctrl-C came; it may raise."""
    if _came and threading.current_thread() is threading.main_thread():
        _came.clear()
        try:
            _handlers[0](signal.SIGINT, None)
        except Exception as error:
            _raised.append(error)  # numba may wrap it in one of its own
            raise


# Fallback ---------------------------------------------------------------------------------------------------------


def guard(dispatcher: Any) -> None:
    """Have an entry point compile, or load kept code, with Ctrl-C deferred and with the fallback."""

    @functools.wraps(type(dispatcher).compile)
    def compiling(signature: Any) -> Any:
        with interrupt_deferred():
            return _compile(dispatcher, signature)

    dispatcher.compile = compiling


def _compile(dispatcher: Any, signature: Any) -> Any:
    """Compile for a signature; if that fails while ``link`` is in use, once more without it."""
    compile_it = type(dispatcher).compile
    linked = linking.active
    try:
        return compile_it(dispatcher, signature)
    except Exception as error:
        if _raised:
            raise _raised.pop() from None
        if not linked:
            raise
        first = error
    linking.active = False
    try:
        linking.forget_helpers()
        out = compile_it(dispatcher, signature)
    except BaseException:  # the kernel itself does not compile, or somebody pressed Ctrl-C
        linking.active = True
        raise
    _tell_fallback(first)
    return out


def _tell_fallback(error: Exception) -> None:
    """Tell that kernels are compiled the ordinary way."""
    line = f"kernels are compiled by numba's own linking, in twice the time ({type(error).__name__}: {error})"
    logger.info(line)
    if _unheard():
        notice(line)
