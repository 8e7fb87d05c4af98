"""How kernels are compiled: messages, compilation by another process, Ctrl-C, and the fallback to numba's own linking.

**Messages.** A compilation takes seconds, so the logger ``synovia.kernels`` reports it at level INFO. Each record has
the attributes ``compiling`` (True before, False after), ``solver`` (the purpose of the kernel) and ``seconds`` (an
estimate before, None if unknown; the time taken after). If the logger has no handler, a process that has compiled for
two seconds prints a line on stderr for the present and each later compilation. A log level above INFO silences both.

**Another process.** The compiler is written in Python, so it slows down all other threads of its process. A thread can
have another process compile the code that the thread needs (``delegated``), and then load the result from the cache on
disk. Two processes never compile the same code at the same time: the second waits until the first has stored the code.

**Ctrl-C.** Ctrl-C is handled between the compilations of two functions, where the compiler can be interrupted safely.
An exception at any other moment can break numba for the rest of the process (it ends a generator that numba reuses),
and an exception during a callback from LLVM is printed and lost.

**Fallback.** ``link`` uses private parts of numba. If a compilation with ``link`` fails, numba compiles the ordinary
way, for this code and for the rest of the process. This is reported once.
"""

import contextlib
import functools
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

from synovia.kernels.compiler.entries import entry_of, name_of_entry

logger = logging.getLogger("synovia.kernels")
_POLL = 0.02  # seconds between two checks whether another process has compiled the needed code
PATIENCE = 2.0  # seconds that a process compiles before it prints lines about compilations


class Linking:
    """Whether ``link`` is in use."""

    active = True
    failure: Exception | None = None  # the error because of which ``link`` cannot be used; None once reported
    forget_helpers: Callable[[], None]  # discards code that was compiled for linking; set by ``link``


linking = Linking()
_handlers: list[Callable[..., Any]] = []  # the user's handler of Ctrl-C, while our handler is installed
_interrupts: list[bool] = []
_handler_errors: list[Exception] = []  # exceptions raised by the user's handler


# Messages ---------------------------------------------------------------------------------------------------------


def listen() -> None:
    """Report compilations from now on."""
    with contextlib.suppress(ImportError, AttributeError):  # some versions of numba lack these events
        from numba.core import event

        event.Listener.register(_Listener)
        event.register("numba:compile", _Listener())  # pyright: ignore[reportArgumentType]  # registered above


class _Listener:
    """Receive the events of all compilations, including helpers of an entry point and functions of users."""

    def __init__(self) -> None:
        self._inside: list[tuple[Any, float]] = []
        self._timer: threading.Timer | None = None
        self._left = PATIENCE

    def notify(self, event: Any) -> None:
        """Handle an event of numba."""
        (self.on_start if event.is_start else self.on_end)(event)

    def on_start(self, event: Any) -> None:
        """Report the start of an outermost compilation of our kernels."""
        function = event.data["dispatcher"].py_func
        self._inside.append((function, time.perf_counter()))
        if len(self._inside) == 1 and _is_ours(function):
            if linking.failure is not None:
                _report_fallback(linking.failure)
                linking.failure = None
            words, seconds = _report_start(function)
            if _has_no_handler():
                line = f"compiling {words}{about(seconds)}, once for this version"
                self._timer = threading.Timer(max(self._left, 0.0), notice, (line,))
                self._timer.daemon = True
                self._timer.start()

    def on_end(self, event: Any) -> None:
        """Report the time that the compilation took."""
        del event
        function, begun = self._inside.pop()
        if self._inside or not _is_ours(function):
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        taken = time.perf_counter() - begun
        self._left -= taken
        _report_end(function, taken)


def _report_start(function: Any) -> tuple[str, float | None]:
    """Log that a kernel is being compiled; return its purpose and an estimate of the seconds."""
    words, seconds = purpose(function)
    more: dict[str, Any] = {"compiling": True, "solver": words, "seconds": seconds}
    logger.info("compiling %s%s, once for this version", words, about(seconds), extra=more)
    return words, seconds


def _report_end(function: Any, seconds: float) -> None:
    """Log the time that the compilation took."""
    more: dict[str, Any] = {"compiling": False, "solver": purpose(function)[0], "seconds": seconds}
    logger.info("compiled %s in %.1f s", more["solver"], seconds, extra=more)


def purpose(function: Any) -> tuple[str, float | None]:
    """Return the purpose of one of our kernels, and an estimate of the seconds to compile it."""
    entry = entry_of(function)
    return (function.__name__, None) if entry is None else (entry.words, entry.seconds)


def about(seconds: float | None) -> str:
    """Return the estimated time as part of a sentence."""
    return "" if seconds is None else f" (about {seconds:.0f} s)"


def notice(line: str) -> None:
    """Print a line on stderr."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr is closed or missing
        sys.stderr.write(f"synovia: {line}\n")
        sys.stderr.flush()


def announce(line: str) -> None:
    """Log a sentence, and print it if the logger has no handler."""
    logger.info(line)
    if _has_no_handler():
        notice(line)


def _has_no_handler() -> bool:
    """Return whether the logger has no handler and is not silenced."""
    return logger.level <= logging.INFO and not (logger.isEnabledFor(logging.INFO) and logger.hasHandlers())


def _is_ours(function: Any) -> bool:
    """Return whether a function is one of our kernels."""
    return (function.__module__ or "").startswith("synovia.kernels.")  # None if made by exec


# Another process --------------------------------------------------------------------------------------------------

_delegate = threading.local()


while_waiting: list[Callable[[], object]] = []  # work that this process can do while it waits for another one


@contextmanager
def delegated(
    compile_elsewhere: Callable[[str], object],
    check: Callable[[], object] | None = None,
    start: Callable[[Iterable[str]], object] | None = None,
) -> Generator[None]:
    """Have another process compile the entry points that this thread needs, if a cache can hold them.

    Args:
        compile_elsewhere: Compiles the entry point with a given name, and returns when the code is stored. If it
            returns without stored code, this process compiles the entry point.
        check: Function called between two compilations by this thread itself; may raise to stop the compilation.
        start: Function that begins to compile entry points that will be needed soon, and returns at once.
    """
    _delegate.compile, _delegate.check, _delegate.start = compile_elsewhere, check, start
    try:
        yield
    finally:
        del _delegate.compile, _delegate.check, _delegate.start


def start_elsewhere(names: Iterable[str]) -> bool:
    """Have another process begin to compile entry points, if this thread delegates; return whether it delegates."""
    start = getattr(_delegate, "start", None)
    if start is not None:
        start(names)
    return hasattr(_delegate, "compile")


def missing_code(dispatcher: Any, signature: Any) -> str:
    """Return the file name of an entry point's code if the code has to be compiled and can be stored, else ""."""
    from synovia.kernels.compiler import cache

    lacks = getattr(getattr(dispatcher, "_cache", None), "lacks", None)
    if lacks is None or entry_of(dispatcher.py_func) is None or not cache.WRITABLE:
        return ""
    return "" if signature in dispatcher.overloads else lacks(signature, dispatcher.targetctx)


@contextmanager
def _reported(function: Any) -> Generator[None]:
    """Report that another process compiles a kernel for this process."""
    begun = time.perf_counter()
    _report_start(function)
    try:
        yield
    finally:
        _report_end(function, time.perf_counter() - begun)


def is_being_compiled(dispatcher: Any, signature: Any) -> bool:
    """Return whether another process compiles an entry point."""
    from synovia.kernels.compiler import kept

    name = missing_code(dispatcher, signature)
    if not name:
        return False
    try:
        return not kept.lock(name)
    finally:
        kept.unlock(name)


def _compile_elsewhere(dispatcher: Any, signature: Any) -> None:
    """Have another process compile an entry point, if this thread delegates and no compiled code is stored."""
    compile_elsewhere = getattr(_delegate, "compile", None)
    if compile_elsewhere is not None and missing_code(dispatcher, signature):
        with _reported(dispatcher.py_func):
            compile_elsewhere(name_of_entry(dispatcher.py_func))


@contextmanager
def _one_at_a_time(dispatcher: Any, signature: Any) -> Generator[None]:
    """Wait while another process compiles the same entry point, so that its stored code can be loaded afterwards."""
    from synovia.kernels.compiler import kept

    name = missing_code(dispatcher, signature)
    if not name:
        yield
        return
    if not kept.lock(name):
        if _has_no_handler():
            words, seconds = purpose(dispatcher.py_func)
            notice(f"waiting for another process that compiles {words}{about(seconds)}")
        with _reported(dispatcher.py_func):
            while not kept.lock(name):
                handle_interrupt()
                if while_waiting:
                    while_waiting.pop()()
                else:
                    time.sleep(_POLL)
    try:
        yield
    finally:
        kept.unlock(name)


# Ctrl-C -----------------------------------------------------------------------------------------------------------


@contextmanager
def interrupt_deferred() -> Generator[None]:
    """Defer Ctrl-C until ``handle_interrupt`` or the end of the block, if called in the main thread."""
    handler = signal.getsignal(signal.SIGINT)
    if _handlers or threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    _handlers.append(handler)
    signal.signal(signal.SIGINT, lambda *_: _interrupts.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        _handlers.clear()
        interrupted = bool(_interrupts)
        _interrupts.clear()
        if interrupted:
            signal.raise_signal(signal.SIGINT)


def handle_interrupt() -> None:
    """Call the user's handler if Ctrl-C was pressed, or the check of a thread that delegates; both may raise."""
    check = getattr(_delegate, "check", None)
    if check is not None:
        try:
            check()
        except Exception as error:
            _handler_errors.append(error)
            raise
    if _interrupts and threading.current_thread() is threading.main_thread():
        _interrupts.clear()
        try:
            _handlers[0](signal.SIGINT, None)
        except Exception as error:
            _handler_errors.append(error)  # numba may wrap it in another exception
            raise


# Fallback ---------------------------------------------------------------------------------------------------------


def guard(dispatcher: Any) -> None:
    """Defer Ctrl-C and enable the fallback while an entry point compiles or loads cached code."""

    @functools.wraps(type(dispatcher).compile)
    def compiling(signature: Any) -> Any:
        _compile_elsewhere(dispatcher, signature)
        with interrupt_deferred(), _one_at_a_time(dispatcher, signature):
            return _compile(dispatcher, signature)

    dispatcher.compile = compiling


def _compile(dispatcher: Any, signature: Any) -> Any:
    """Compile for a signature. If that fails while ``link`` is in use, compile again without it."""
    compile_it = type(dispatcher).compile
    linked = linking.active
    try:
        return compile_it(dispatcher, signature)
    except Exception as error:
        if _handler_errors:
            raise _handler_errors.pop() from None
        if not linked:
            raise
        first = error
    linking.active = False
    try:
        linking.forget_helpers()
        out = compile_it(dispatcher, signature)
    except BaseException:  # the kernel itself does not compile, or Ctrl-C was pressed
        linking.active = True
        raise
    _report_fallback(first)
    return out


def _report_fallback(error: Exception) -> None:
    """Report that kernels are compiled by numba's ordinary linking, and why."""
    announce(f"kernels are compiled by numba's own linking, in twice the time ({type(error).__name__}: {error})")
