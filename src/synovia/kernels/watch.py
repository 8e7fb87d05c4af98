"""Whether a kernel may go on: it ends early at a deadline, or when the handler of a signal has raised an exception.

Every loop that may take long asks ``stopped`` once a step, and gives up with the best that it has. That costs one
subtraction: only when some work has been done is the clock read, and only a call that takes long lets signals be
handled. After that everything is over: each further loop of the call, and of those after it, ends at once, until
Python has cleared the watch.

The watch is the beginning of the scratch memory. Zeros mean: no deadline, nothing has happened.
"""

import math

from synovia.kernels._jit import F, apart, inline
from synovia.kernels._outside import clock, signalled

# Places
LEFT, DEADLINE, ASK, ENDED, RAISED = 0, 1, 2, 3, 4  # RAISED: three pointers, of the exception
WATCH = 8
# What has ENDED it
DEADLINE_PASSED, SIGNAL = F(1), F(2)
PORTION = F(256)  # joints that are looked at between two looks at the clock: some 10 microseconds
WAIT = F(0.1)  # seconds after which signals are handled, and again after as many


@inline
def begin_watch(watch):
    """Begin a call: signals are handled when it has taken a while."""
    watch[ASK] = F(0)


@inline
def stopped(watch, joints):
    """Return whether to stop; called once a step, with about as many joints as the step looks at."""
    watch[LEFT] -= joints
    if watch[LEFT] > F(0):
        return False
    return is_over(watch)


@inline
def halted(watch):
    """Return whether something has been stopped."""
    return watch[ENDED] != F(0)


@apart
def is_over(watch):
    """Look at the clock; return whether to stop."""
    if watch[ENDED] != F(0):
        return True
    time = clock()
    if watch[DEADLINE] != F(0) and time >= watch[DEADLINE]:
        watch[ENDED] = DEADLINE_PASSED
    elif watch[ASK] == F(0):
        watch[ASK] = time + WAIT
    elif time >= watch[ASK]:
        if signalled(watch, RAISED) != 0:
            watch[ENDED] = SIGNAL
        watch[ASK] = clock() + WAIT
    watch[LEFT] = PORTION if watch[ENDED] == F(0) else -F(math.inf)
    return watch[ENDED] != F(0)
