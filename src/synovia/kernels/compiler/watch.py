"""The watch: stop kernels at a deadline, when a signal handler raises (Ctrl-C), or when their work limit is reached.

Every long loop calls ``stopped`` once per step and, if True, returns its best result so far. The call is one
subtraction: the clock is read only after some work, and signals are handled only in long calls. Once the watch has
stopped a loop, all further loops of this call and of later calls end at once, until Python clears the watch.

Work is counted in visits of a joint, about 50 nanoseconds each. The work limit of one row of the answer is part of the
problem (``problem.most_work``). So default settings end in time on bodies of any size, and always at the same step.

A kernel runs without the interpreter's lock, so signal handlers, such as that of Ctrl-C, do not run meanwhile. A long
call takes the lock from time to time and runs them. If a handler raises an exception, the kernel stores the exception
in its scratch memory, and Python raises it after the kernel returns (see ``ik.interrupts``). C functions are found by
name when code is loaded, so kernels that call them can be cached on disk. On a GPU there are no signals and no clock.

The watch is the head of the scratch memory. Zeros mean no deadline and no stop.
"""

import math
import sys
import time

from synovia.kernels.compiler import numba
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

PORTION = F(256)  # work between two readings of the clock
WAIT = F(0.1)  # seconds between two checks for signals

WINDOWS = sys.platform == "win32"


def now() -> float:
    """Return the time in seconds, of the clock that kernels read."""
    return time.perf_counter() if WINDOWS else time.clock_gettime(time.CLOCK_MONOTONIC)


if numba is not None:
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    _INT, _LONG, _DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()
    _POINTER = ir.IntType(8).as_pointer()

    def _call(builder, name, result, *arguments):
        """Call a C function and return its result."""
        kind = ir.FunctionType(result, [one.type for one in arguments])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    def _on_gpu(context):
        """Return whether the code is compiled for a GPU."""
        return "cuda" in type(context).__module__

    def _seconds(builder):
        """Return the LLVM value of the time on POSIX."""
        pair = cgutils.alloca_once(builder, ir.ArrayType(_LONG, 2))
        _call(builder, "clock_gettime", _INT, _INT(time.CLOCK_MONOTONIC), pair)
        whole, nano = (builder.sitofp(builder.extract_value(builder.load(pair), i), _DOUBLE) for i in range(2))
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
            _function = getattr(ctypes.windll.kernel32, _name)  # pyright: ignore[reportAttributeAccessIssue]  # Windows
            add_symbol(_name, ctypes.cast(_function, ctypes.c_void_p).value)

    @intrinsic
    def clock(typingctx):  # pyright: ignore[reportRedeclaration]  # defined twice
        """Return the time, seconds."""

        def codegen(context, builder, signature, args):
            if _on_gpu(context):
                return _DOUBLE(0.0)
            return _windows_seconds(builder) if WINDOWS else _seconds(builder)

        return types.float64(), codegen

    @intrinsic
    def signalled(typingctx, scratch, first):  # pyright: ignore[reportRedeclaration]  # defined twice
        """Run the handlers of pending signals; return whether one raised an exception.

        Write the three pointers of the exception to ``scratch`` from index ``first`` on. Outside the main thread,
        signals are not handled.
        """

        def codegen(context, builder, signature, args):
            out = cgutils.alloca_once_value(builder, _INT(0))
            if _on_gpu(context):
                return builder.load(out)
            # while the interpreter closes, a thread that asks for its lock never returns
            alive = _call(builder, "Py_IsInitialized", _INT)
            with builder.if_then(builder.icmp_signed("!=", alive, _INT(0))):
                state = _call(builder, "PyGILState_Ensure", _INT)
                raised = _call(builder, "PyErr_CheckSignals", _INT)
                with builder.if_then(builder.icmp_signed("!=", raised, _INT(0))):
                    array = context.make_array(signature.args[0])(context, builder, args[0])
                    start = builder.bitcast(builder.gep(array.data, [args[1]]), _POINTER.as_pointer())
                    places = [builder.gep(start, [_INT(i)]) for i in range(3)]
                    _call(builder, "PyErr_Fetch", ir.VoidType(), *places)
                builder.store(raised, out)
                _call(builder, "PyGILState_Release", ir.VoidType(), state)
            return builder.load(out)

        return types.int32(scratch, types.intp), codegen

else:

    def clock():
        """Return the time, seconds."""
        return now()

    def signalled(scratch, first):
        """Return 0: in plain Python, handlers run by themselves."""
        return 0


@inline
def begin_watch(watch):
    """Begin a call, with the first check for signals after ``WAIT``."""
    watch[NEXT_SIGNAL_CHECK] = F(0)
    begin_work(watch, F(math.inf))


@inline
def begin_work(watch, most):
    """Begin a row of the answer with the work limit ``most``."""
    if watch[STOP_REASON] == SPENT:
        watch[STOP_REASON] = F(0)
        watch[WORK_LEFT] = F(0)
    watch[WORK_RESERVE] = most - watch[WORK_LEFT]


@inline
def stopped(watch, work):
    """Count the work of a step, and return whether to stop."""
    watch[WORK_LEFT] -= work
    if watch[WORK_LEFT] > F(0):
        return False
    return is_over(watch)


@inline
def halted(watch):
    """Return whether the watch has stopped a loop."""
    return watch[STOP_REASON] != F(0)


@inline
def interrupted(watch):
    """Return whether a deadline or a signal has stopped a loop, not the work limit."""
    return (watch[STOP_REASON] != F(0)) & (watch[STOP_REASON] != SPENT)


@apart
def is_over(watch):
    """Check the remaining work, the clock and signals; return whether to stop."""
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
