"""Whether a kernel may go on: until a deadline, until the handler of a signal raises, or until its work is spent.

Every loop that may take long calls ``stopped`` once a step, and gives up with the best that it has. That costs one
subtraction: the clock is read only after some work, and signals are handled only in a call that takes long. After that
everything is over: each further loop of the call, and of those after it, ends at once, until Python has cleared the
watch.

Work is counted in visits of a joint, some 50 nanoseconds each. How much one row of the answer may take is part of the
problem (``problem.most_work``): so default settings end in time on bodies of any size, and at the same step every time.

A kernel runs without the interpreter's lock, so no handler of a signal runs meanwhile, that of Ctrl-C included. A long
one takes the lock now and then and lets them run, as long functions of C do. An exception of a handler is put aside in
the kernel's own memory; Python raises it once the kernel has returned (see ``batch.watch``). The functions of C are
found by their names when code is loaded, so kernels that call them can be kept on disk. On a GPU there are no signals,
and time stands still.

The watch is the beginning of the scratch memory. Zeros mean: no deadline, nothing has happened.
"""

import math
import sys
import time

from synovia.kernels.compiler import compiled
from synovia.kernels.compiler.jit import F, apart, inline
from synovia.kernels.layout import (
    DEADLINE,
    DEADLINE_PASSED,
    NEXT_SIGNAL_CHECK,
    RAISED,
    SIGNAL,
    SPENT,
    STOP_REASON,
    WORK_LEFT,
    WORK_RESERVE,
)

PORTION = F(256)  # work between two looks at the clock
WAIT = F(0.1)  # seconds after which signals are handled, and again after as many

WINDOWS = sys.platform == "win32"


def now() -> float:
    """Return the time of the clock that kernels read, seconds."""
    return time.perf_counter() if WINDOWS else time.clock_gettime(time.CLOCK_MONOTONIC)


if compiled():
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    _INT, _LONG, _DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()
    _POINTER = ir.IntType(8).as_pointer()

    def _call(builder, name, result, *arguments):
        """Return the result of a function of C."""
        kind = ir.FunctionType(result, [one.type for one in arguments])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    def _on_gpu(context):
        """Return whether code for a GPU is made."""
        return "cuda" in type(context).__module__

    def _seconds(builder):
        """Return the LLVM value of the time on POSIX."""
        room = cgutils.alloca_once(builder, ir.ArrayType(_LONG, 2))
        _call(builder, "clock_gettime", _INT, _INT(time.CLOCK_MONOTONIC), room)
        whole, nano = (builder.sitofp(builder.extract_value(builder.load(room), i), _DOUBLE) for i in range(2))
        return builder.fadd(whole, builder.fmul(nano, _DOUBLE(1e-9)))

    def _windows_seconds(builder):  # pragma: no cover - for Windows
        """Return the LLVM value of the time on Windows."""
        ticks, rate = cgutils.alloca_once(builder, _LONG), cgutils.alloca_once(builder, _LONG)
        _call(builder, "QueryPerformanceCounter", _INT, ticks)
        _call(builder, "QueryPerformanceFrequency", _INT, rate)
        count, each = (builder.sitofp(builder.load(one), _DOUBLE) for one in (ticks, rate))
        return builder.fdiv(count, each)

    if WINDOWS:  # pragma: no cover
        import ctypes

        from llvmlite.binding import add_symbol

        for _name in ("QueryPerformanceCounter", "QueryPerformanceFrequency"):
            _function = getattr(ctypes.windll.kernel32, _name)  # pyright: ignore[reportAttributeAccessIssue]  # there alone
            add_symbol(_name, ctypes.cast(_function, ctypes.c_void_p).value)

    @intrinsic
    def clock(typingctx):  # pyright: ignore[reportRedeclaration]  # or the one below
        """Return the time, seconds."""

        def codegen(context, builder, signature, args):
            if _on_gpu(context):
                return _DOUBLE(0.0)
            return _windows_seconds(builder) if WINDOWS else _seconds(builder)

        return types.float64(), codegen

    @intrinsic
    def signalled(typingctx, room, place):  # pyright: ignore[reportRedeclaration]  # or the one below
        """Let the handlers of signals run that have come; return whether one has raised an exception.

        The three pointers of the exception are written into ``room`` from ``place`` on. In a thread that is not the
        main one nothing happens.
        """

        def codegen(context, builder, signature, args):
            out = cgutils.alloca_once_value(builder, _INT(0))
            if _on_gpu(context):
                return builder.load(out)
            # once the interpreter is closing, a thread that asks for its lock never comes back
            alive = _call(builder, "Py_IsInitialized", _INT)
            with builder.if_then(builder.icmp_signed("!=", alive, _INT(0))):
                state = _call(builder, "PyGILState_Ensure", _INT)
                raised = _call(builder, "PyErr_CheckSignals", _INT)
                with builder.if_then(builder.icmp_signed("!=", raised, _INT(0))):
                    array = context.make_array(signature.args[0])(context, builder, args[0])
                    first = builder.bitcast(builder.gep(array.data, [args[1]]), _POINTER.as_pointer())
                    places = [builder.gep(first, [_INT(i)]) for i in range(3)]
                    _call(builder, "PyErr_Fetch", ir.VoidType(), *places)
                builder.store(raised, out)
                _call(builder, "PyGILState_Release", ir.VoidType(), state)
            return builder.load(out)

        return types.int32(room, types.intp), codegen

else:

    def clock():
        """Return the time, seconds."""
        return now()

    def signalled(room, place):
        """Return that no handler has raised anything: in plain Python they run by themselves."""
        return 0


@inline
def begin_watch(watch):
    """Begin a call: signals are handled when it has taken a while."""
    watch[NEXT_SIGNAL_CHECK] = F(0)
    begin_work(watch, F(math.inf))


@inline
def begin_work(watch, most):
    """Begin a row of the answer, which may take so much work."""
    if watch[STOP_REASON] == SPENT:
        watch[STOP_REASON] = F(0)
        watch[WORK_LEFT] = F(0)
    watch[WORK_RESERVE] = most - watch[WORK_LEFT]


@inline
def stopped(watch, work):
    """Return whether to stop; called once a step, with the work of a step."""
    watch[WORK_LEFT] -= work
    if watch[WORK_LEFT] > F(0):
        return False
    return is_over(watch)


@inline
def halted(watch):
    """Return whether something has been stopped."""
    return watch[STOP_REASON] != F(0)


@inline
def interrupted(watch):
    """Return whether it was stopped by a deadline or a signal, not by the work that it may take."""
    return (watch[STOP_REASON] != F(0)) & (watch[STOP_REASON] != SPENT)


@apart
def is_over(watch):
    """Look at the work that is left and at the clock; return whether to stop."""
    if watch[STOP_REASON] != F(0):
        return True
    more = watch[WORK_LEFT] + watch[WORK_RESERVE]
    time = clock()
    if watch[DEADLINE] != F(0) and time >= watch[DEADLINE]:
        watch[STOP_REASON] = DEADLINE_PASSED
    elif not more > F(0):
        watch[STOP_REASON] = SPENT
    elif watch[NEXT_SIGNAL_CHECK] == F(0):
        watch[NEXT_SIGNAL_CHECK] = time + WAIT
    elif time >= watch[NEXT_SIGNAL_CHECK]:
        if signalled(watch, RAISED) != 0:
            watch[STOP_REASON] = SIGNAL
        watch[NEXT_SIGNAL_CHECK] = clock() + WAIT
    watch[WORK_LEFT] = min(PORTION, more) if watch[STOP_REASON] == F(0) else -F(math.inf)
    watch[WORK_RESERVE] = more - watch[WORK_LEFT]
    return watch[STOP_REASON] != F(0)
