"""Whether a kernel may go on: until a deadline, until the handler of a signal raises, or until its work is spent.

Every loop that may take long asks ``stopped`` once a step, and gives up with the best that it has. That costs one
subtraction: only when some work has been done is the clock read, and only a call that takes long lets signals be
handled. After that everything is over: each further loop of the call, and of those after it, ends at once, until
Python has cleared the watch.

Work is counted in looks at a joint, some 50 nanoseconds each. How much one row of the answer may take is part of the
problem (``problem.most_work``): so default settings end in time on bodies of any size, and at the same step every time.

The watch is the beginning of the scratch memory. Zeros mean: no deadline, nothing has happened.
"""

import math

from synovia.kernels.compiler.jit import F, apart, inline
from synovia.kernels.compiler.process import clock, signalled
from synovia.kernels.layout import ASK, DEADLINE, DEADLINE_PASSED, ENDED, LEFT, MORE, RAISED, SIGNAL, SPENT

# Places
# What has ENDED it
PORTION = F(256)  # work between two looks at the clock
WAIT = F(0.1)  # seconds after which signals are handled, and again after as many


@inline
def begin_watch(watch):
    """Begin a call: signals are handled when it has taken a while."""
    watch[ASK] = F(0)
    begin_work(watch, F(math.inf))


@inline
def begin_work(watch, most):
    """Begin a row of the answer, which may take so much work."""
    if watch[ENDED] == SPENT:
        watch[ENDED] = F(0)
        watch[LEFT] = F(0)
    watch[MORE] = most - watch[LEFT]


@inline
def stopped(watch, work):
    """Return whether to stop; called once a step, with the work of a step."""
    watch[LEFT] -= work
    if watch[LEFT] > F(0):
        return False
    return is_over(watch)


@inline
def halted(watch):
    """Return whether something has been stopped."""
    return watch[ENDED] != F(0)


@inline
def interrupted(watch):
    """Return whether it was stopped by a deadline or a signal, not by the work that it may take."""
    return (watch[ENDED] != F(0)) & (watch[ENDED] != SPENT)


@apart
def is_over(watch):
    """Look at the work that is left and at the clock; return whether to stop."""
    if watch[ENDED] != F(0):
        return True
    more = watch[LEFT] + watch[MORE]
    time = clock()
    if watch[DEADLINE] != F(0) and time >= watch[DEADLINE]:
        watch[ENDED] = DEADLINE_PASSED
    elif not more > F(0):
        watch[ENDED] = SPENT
    elif watch[ASK] == F(0):
        watch[ASK] = time + WAIT
    elif time >= watch[ASK]:
        if signalled(watch, RAISED) != 0:
            watch[ENDED] = SIGNAL
        watch[ASK] = clock() + WAIT
    watch[LEFT] = min(PORTION, more) if watch[ENDED] == F(0) else -F(math.inf)
    watch[MORE] = more - watch[LEFT]
    return watch[ENDED] != F(0)
