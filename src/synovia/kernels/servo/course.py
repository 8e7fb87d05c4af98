"""The course of a body with a jerk limit to a far answer (solved pose): straight, with one speed for all axes.

If each axis planned its own motion to the answer, an axis that held goals have led aside would have to go back alone,
and this would excite the others. So velocities are in three directions, orthogonal in the norm in which the highest
velocity of each axis has the length 1: along the displacement d to the answer, along the rest of the velocities, and
along the rest of the accelerations. In the first direction the body moves to the answer as one axis, in minimal time.
In the others it comes to rest. The limits of such an axis are those at which an axis of the body first reaches its own.
The coefficients are the same for all axes. So what d, velocities and accelerations leave unchanged to first order, such
as held goals, the course leaves unchanged, too.
"""

import math

from synovia.kernels.compiler.jit import F, device
from synovia.kernels.layout import (
    AXIS_ACCELERATION,
    AXIS_LOWER,
    AXIS_TARGET,
    AXIS_UPPER,
    AXIS_VELOCITY,
    FEED,
    FEED_ACCELERATION,
    FEED_JERK,
    GAP,
    GAP_BEFORE,
    NEXT,
    NEXT_LOWER,
    NEXT_UPPER,
    STRETCH,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
)
from synovia.kernels.servo.axis import BISECTIONS, choose, excess_above, lands, last_good, stop_after
from synovia.kernels.servo.stop import duration, extremes, travelled

ROUNDS = 3  # rounds of the iteration that finds the direction to the answer
TINY = F(1e-12)  # seconds at top speed, and per second: shorter vectors have no direction


@device
def dot_of(axes, x, y):
    """Return the scalar product of two vectors over the axes of a body, in units of their highest velocities."""
    total = F(0)
    for i in range(axes.shape[0]):
        V = axes[i, TOP_SPEED]
        total += x[i] * y[i] / (V * V)
    return total


@device
def normalize(axes, x):
    """Scale a vector to the length 1, and return its length before; 0 and a vector of zeros if it is tiny."""
    length = math.sqrt(dot_of(axes, x, x))
    for i in range(axes.shape[0]):
        x[i] = x[i] / length if length > TINY else F(0)
    return length if length > TINY else F(0)


@device
def remove(axes, x, e):
    """Remove from x its part along a vector e of length 1; return that part."""
    part = dot_of(axes, x, e)
    for i in range(axes.shape[0]):
        x[i] -= part * e[i]
    return part


@device
def begin_course(axes, one, e, v, a):
    """Write the body's velocity v and acceleration a along the direction e as the state of one axis, with limits."""
    one[AXIS_LOWER], one[AXIS_UPPER] = F(-math.inf), F(math.inf)
    one[GAP], one[GAP_BEFORE] = axes[0, GAP], axes[0, GAP_BEFORE]
    one[FEED] = one[FEED_ACCELERATION] = one[FEED_JERK] = F(0)
    one[STRETCH] = F(1)
    one[AXIS_VELOCITY], one[AXIS_ACCELERATION] = v, a
    V = A = J = F(math.inf)
    for i in range(axes.shape[0]):
        part = abs(e[i])
        if part > F(0):
            V, A, J = (
                min(V, axes[i, TOP_SPEED] / part),
                min(A, axes[i, TOP_ACCELERATION] / part),
                min(J, axes[i, TOP_JERK] / part),
            )
    one[TOP_SPEED], one[TOP_ACCELERATION], one[TOP_JERK] = max(V, abs(v)), max(A, abs(a)), J


@device
def reverses(one, w, h):
    """Return whether one axis would go back on its stop after the velocity w."""
    _, _, _, slowest, _ = extremes(stop_after(one, w, h))
    return slowest < F(0)


@device
def bound_one(one, h):
    """Write the interval of velocities of one axis for the next tick; the hardest braking if limits were exceeded."""
    v, a, A = one[AXIS_VELOCITY], one[AXIS_ACCELERATION], one[TOP_ACCELERATION]
    H = F(0.5) * (one[GAP] + h)
    change = one[TOP_JERK] * (one[GAP_BEFORE] + one[GAP] + h) / F(3)
    low, high = v + max(a - change, -A) * H, v + min(a + change, A) * H
    top, bottom = high, low
    if excess_above(one, high, h, True) > F(0):
        top = low if excess_above(one, low, h, True) > F(0) else last_good(one, low, high, h, True)
    if excess_above(one, low, h, False) > F(0):
        bottom = high if excess_above(one, high, h, False) > F(0) else last_good(one, high, low, h, False)
    one[NEXT_LOWER], one[NEXT_UPPER] = min(bottom, top), max(bottom, top)


@device
def rest_one(one, h):
    """Return the velocity of the next tick with which one axis comes to rest, and the displacement until then."""
    one[AXIS_TARGET] = F(0)
    bound_one(one, h)
    if lands(one, F(0), h):
        return F(0), F(0)
    bad, good = one[NEXT_LOWER], one[NEXT_UPPER]
    if not reverses(one, bad, h):
        good = bad
    elif not reverses(one, good, h):
        for _ in range(BISECTIONS):
            middle = F(0.5) * (good + bad)
            if reverses(one, middle, h):
                bad = middle
            else:
                good = middle
    stop = stop_after(one, good, h)
    return good, good * h + travelled(stop, duration(stop))


@device
def split_motion(axes, one, way, speed, push, shift, h):
    """Write the three directions of a course, each of length 1, with ``shift`` as displacement in the second one.

    Returns:
        Displacement along the first; velocity along the first, along the second; acceleration along the first, the
        second.
    """
    for i in range(axes.shape[0]):
        row = axes[i]
        way[i] = row[AXIS_TARGET] - row[FEED] * h - shift * speed[i]
        speed[i] = row[AXIS_VELOCITY] - row[FEED]
        push[i] = row[AXIS_ACCELERATION] - row[FEED_ACCELERATION]
    left = normalize(axes, way)
    v, a = remove(axes, speed, way), remove(axes, push, way)
    across = normalize(axes, speed)
    return left, v, across, a, remove(axes, push, speed)


@device
def choose_course(axes, one, way, speed, push, fastest, h):
    """Propose the velocities of a tick of time h.

    Args:
        axes: The state of all axes; NEXT is written.
        one: Scratch memory for one axis, (AXIS_WIDTH,).
        way: Scratch memory, (axes,).
        speed: The same.
        push: The same.
        fastest: Highest velocity along the displacement to the answer.
        h: Seconds.
    """
    n = axes.shape[0]
    shift = w = F(0)
    left = v = across = a = bends = F(0)
    for _ in range(ROUNDS):  # aim so that the body arrives although its sideways motion ends first
        left, v, across, a, bends = split_motion(axes, one, way, speed, push, shift, h)
        if across <= F(0):
            break
        begin_course(axes, one, speed, across, bends)
        w, shift = rest_one(one, h)
    ahead = F(0)
    if left > F(0):
        begin_course(axes, one, way, v, a)
        one[AXIS_TARGET], one[TOP_SPEED] = left, max(min(one[TOP_SPEED], fastest), abs(v))
        bound_one(one, h)
        choose(one, h)
        ahead = one[NEXT]
    T = F(0)
    for i in range(n):
        T = max(T, abs(push[i]) / axes[i, TOP_JERK])
    gap, before = axes[0, GAP], axes[0, GAP_BEFORE]
    share = max(F(1) - (before + gap + h) / (F(3) * T), F(0)) * F(0.5) * (gap + h) if T > F(0) else F(0)
    for i in range(n):
        row = axes[i]
        next_speed = row[FEED] + ahead * way[i] + w * speed[i] + share * push[i]
        row[NEXT] = min(max(next_speed, row[NEXT_LOWER]), row[NEXT_UPPER])
