"""The law of one axis: velocities of the next tick that keep its limits, now and later, and the choice among them.

All differences are finite differences of samples, as a robot sees them. With samples x₀, x₁, x₂ at times that are h and
h' apart, the velocity of a tick is v = [x₀, x₁], the acceleration a' = 2 [x₀, x₁, x₂] = 2 (v' - v) / (h + h'), and the
jerk 6 [x₀ … x₃]. A divided difference of samples is a mean of the derivative. So if some smooth motion passes the last
samples and keeps the limits from there on, then all samples of that motion keep them too, whatever the times of the
ticks will be. A state is viable if such a motion leads to a stop inside the limits of the position.

Without a limit of the jerk that motion is a parabola: it has the velocity u = v - A h / 2 at the last sample, if it
brakes with A. It stops in time if u² / (2 A) <= d, the distance to the limit. The next state is viable for every
v' <= √(2 A d) - A h' / 2, or v' <= d / h' where the axis may stop within the tick. Braking with A is always viable.

With a limit of the jerk the motion is the cubic through the last three samples that has the jerk j of the last tick, or
less where its acceleration would exceed A; then the stop of ``stop``. At the last sample, its acceleration is
a + j (2 h' + h) / 3, and with that its velocity is v' + a h' / 2 - j h'² / 6. How far it goes grows with v'. So the
velocities whose stop keeps the limits are an interval, which bisection finds. Where it is empty, because the stop was
planned with earlier tick times, the axis continues the known stop, which the last tick has proved.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import (
    AT_ACCELERATION,
    AT_JERK,
    AT_POSITION,
    AT_VELOCITY,
    AXIS_ACCELERATION,
    AXIS_LOWER,
    AXIS_TARGET,
    AXIS_UPPER,
    AXIS_VELOCITY,
    EMERGENCY,
    FEED,
    FEED_ACCELERATION,
    FEED_JERK,
    GAP,
    GAP_BEFORE,
    NEXT,
    NEXT_LOWER,
    NEXT_UPPER,
    PLAN_ACCELERATION,
    PLAN_FIRST,
    PLAN_JERK,
    PLAN_LAST,
    PLAN_MIDDLE,
    PLAN_NEXT,
    PLAN_VELOCITY,
    REASON,
    RECOVERING,
    STRETCH,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
)
from synovia.kernels.servo.stop import NO_LIMIT, extremes, rest_of, stop_profile, travelled

BISECTIONS = 40  # halvings of an interval of velocities; the error is then 1e-12 of its width
SEARCHES = 60  # steps of a search for the velocity whose stop ends at the target
LANDING = F(0.5)  # part of the limits that an axis uses to land on its target in one tick
CLOSE = F(1e-13)  # fraction of (distance to the target + V h): a stop that misses by less ends at the target
ROUNDING = F(1e-11)  # part of a limit: smaller excesses are rounding
CHANGED = F(1e-7)  # part of V + A H: a known stop that leaves the interval by more had other limits
TOLD = F(1e-6)  # part of a limit: a larger excess is reported as RECOVERING
WITHIN = F(1e-10)  # radians, length units: smaller excesses of a position limit are rounding


@inline
def stopping_speed(d, A, h):
    """Return the largest velocity of a tick of time h from which an axis can stop within the distance d >= 0."""
    return d / h if d <= F(0.5) * A * h * h else math.sqrt(F(2) * A * d) - F(0.5) * A * h


@inline
def plan_of(row):
    """Return the profile (see ``stop_profile``) of the known stop of an axis."""
    return (
        row[PLAN_VELOCITY],
        row[PLAN_ACCELERATION],
        row[PLAN_JERK],
        row[PLAN_FIRST],
        row[PLAN_MIDDLE],
        row[PLAN_LAST],
    )


@device
def store_plan(row, profile):
    """Store the profile of a stop as the known stop of an axis."""
    row[PLAN_VELOCITY] = profile[0]
    row[PLAN_ACCELERATION] = profile[1]
    row[PLAN_JERK] = profile[2]
    row[PLAN_FIRST] = profile[3]
    row[PLAN_MIDDLE] = profile[4]
    row[PLAN_LAST] = profile[5]


@inline
def planned_speed(row, h):
    """Return the velocity of the next tick on the known stop."""
    return travelled(plan_of(row), h) / h


@inline
def acceleration_of(row, w, h):
    """Return the acceleration, a divided difference of samples, for the next velocity w."""
    return F(2) * (w - row[AXIS_VELOCITY]) / (row[GAP] + h)


@inline
def jerk_of(row, a, h):
    """Return the jerk, a divided difference of samples, for the next acceleration a."""
    return F(3) * (a - row[AXIS_ACCELERATION]) / (row[GAP_BEFORE] + row[GAP] + h)


@device
def stop_of(v, a, j, h, before, A, J):
    """Return the stop after a tick of time h with the velocity v, the acceleration a and the jerk j.

    ``before`` is the duration of the tick before.
    """
    if J >= NO_LIMIT:
        u = max(abs(v) - F(0.5) * A * h, F(0))
        return stop_profile(u if v > F(0) else -u, F(0), A, J)
    c = (F(2) * h + before) / F(3)
    j = min(max(j, min((-A - a) / c, F(0)), -J), max((A - a) / c, F(0)), J)
    a += j * c
    return stop_profile(v + F(0.5) * a * h - j * h * h / F(6), a, A, J)


@device
def stop_after(row, w, h):
    """Return the stop of an axis if its next velocity is w."""
    a = acceleration_of(row, w, h)
    return stop_of(w, a, jerk_of(row, a, h), h, row[GAP], row[TOP_ACCELERATION], row[TOP_JERK])


@device
def excess_above(row, w, h, above):
    """Return how far the stop after the next velocity w exceeds the upper limits if ``above``, else the lower ones.

    The value is positive only if a limit is exceeded. Excesses of velocities are multiplied by h.
    """
    _, lowest, highest, slowest, fastest = extremes(stop_after(row, w, h))
    x, V = w * h, row[TOP_SPEED]
    if above:
        return max(x + highest - row[AXIS_UPPER], (fastest - V) * h)
    return max(row[AXIS_LOWER] - x - lowest, (-V - slowest) * h)


@device
def last_good(row, good, bad, h, above):
    """Bisect for the velocity nearest to ``bad`` whose stop keeps the limits; the stop after ``good`` keeps them."""
    for _ in range(BISECTIONS):
        middle = F(0.5) * (good + bad)
        if excess_above(row, middle, h, above) <= F(0):
            good = middle
        else:
            bad = middle
    return good


@inline
def set_interval(row, low, high):
    """Store the velocities of the next tick that keep the limits."""
    row[NEXT_LOWER], row[NEXT_UPPER] = low, high


@device
def emergency_speed(v, h, after, d):
    """Return the next velocity, with the least braking, from which an axis stops within the distance d >= 0."""
    b = v * h + F(2) * d
    A = F(2) * (b - math.sqrt(max(b * b - v * v * h * h, F(0)))) / (h * h)
    return max(min(v - F(0.5) * A * (h + after), d / after), F(0))


@device
def fall_back(row, h):
    """Allow only the velocity of the known stop; if that stop leaves the position limits, brake harder."""
    v, before = row[AXIS_VELOCITY], row[GAP]
    w = row[PLAN_NEXT]
    _, lowest, highest, _, _ = extremes(plan_of(row))
    if row[AXIS_UPPER] >= F(0) and highest > row[AXIS_UPPER] + F(5) * WITHIN:
        w = min(w, emergency_speed(v, before, h, row[AXIS_UPPER]))
    if row[AXIS_LOWER] <= F(0) and lowest < row[AXIS_LOWER] - F(5) * WITHIN:
        w = max(w, -emergency_speed(-v, before, h, -row[AXIS_LOWER]))
    if w != row[PLAN_NEXT]:
        row[REASON] = F(EMERGENCY)
    set_interval(row, w, w)


@device
def allow_without_jerk(row, h):
    """Write the interval of velocities of an axis whose jerk has no limit."""
    v, A, V = row[AXIS_VELOCITY], row[TOP_ACCELERATION], row[TOP_SPEED]
    H = F(0.5) * (row[GAP] + h)
    low, high = max(v - A * H, -V), min(v + A * H, V)
    if low > high:
        low = high = v - A * H if v > F(0) else v + A * H
        if abs(low) > V * (F(1) + ROUNDING):
            row[REASON] = F(RECOVERING)
    for side in (F(1), F(-1)):
        d = row[AXIS_UPPER] if side > F(0) else -row[AXIS_LOWER]
        now, least, most = side * v, (low if side > F(0) else -high), (high if side > F(0) else -low)
        if d < F(0):  # outside: no farther than the stop, and back as the target requires
            u = max(now - F(0.5) * A * row[GAP], F(0))
            d = F(0.5) * u * u / A
            if -row[AXIS_UPPER] > WITHIN or row[AXIS_LOWER] > WITHIN:
                row[REASON] = F(RECOVERING)
        cap = stopping_speed(d, A, h)
        if cap < least:
            u = max(least - F(0.5) * A * h, F(0))
            if least * h + F(0.5) * u * u / A > d + WITHIN:
                row[REASON] = F(EMERGENCY)
                cap = min(emergency_speed(now, row[GAP], h, d), least)
            else:
                cap = least
        most = min(most, cap)
        least = min(least, most)
        low, high = (least, most) if side > F(0) else (-most, -least)
    set_interval(row, low, high)


@device
def allow_with_jerk(row, h):
    """Write the interval of velocities of an axis whose jerk has a limit."""
    v, a = row[AXIS_VELOCITY], row[AXIS_ACCELERATION]
    A, J, V = row[TOP_ACCELERATION], row[TOP_JERK], row[TOP_SPEED]
    H = F(0.5) * (row[GAP] + h)
    change = J * (row[GAP_BEFORE] + row[GAP] + h) / F(3)
    least, most = (a - change) * H + v, (a + change) * H + v
    low, high = max(v - A * H, least, -V), min(v + A * H, most, V)
    planned = planned_speed(row, h)
    slack = CHANGED * (V + A * H)  # the plan itself may leave the interval by rounding
    if low > high or planned < low - slack or planned > high + slack or row[PLAN_JERK] == F(0):
        # a limit has changed: plan a stop with the new limits
        profile = stop_of(v, a, F(0), row[GAP], row[GAP_BEFORE], A, J)
        _, lowest, highest, slowest, fastest = extremes(profile)
        store_plan(row, profile)
        planned = planned_speed(row, h)
        row[PLAN_NEXT] = planned
        if abs(a) > A * (F(1) + ROUNDING) or max(fastest, -slowest) > V * (F(1) + ROUNDING):
            row[REASON] = F(RECOVERING)
            row[PLAN_NEXT] = planned
            fall_back(row, h)
            return
    planned = min(max(planned, low), high)
    planned = min(max(planned, least), most)
    row[PLAN_NEXT] = planned
    above, below = row[AXIS_UPPER], row[AXIS_LOWER]
    if above < F(0) or below > F(0):  # outside: no farther than the stop
        _, lowest, highest, _, _ = extremes(stop_of(v, a, F(0), row[GAP], row[GAP_BEFORE], A, J))
        row[AXIS_UPPER], row[AXIS_LOWER] = max(above, highest), min(below, lowest)
        if above < -WITHIN or below > WITHIN:
            row[REASON] = F(RECOVERING)
    top, bottom = high, low
    empty = low > high
    if not empty and excess_above(row, high, h, True) > F(0):
        empty = excess_above(row, low, h, True) > F(0)
        if not empty:
            top = last_good(row, low, high, h, True)
    if not empty and excess_above(row, low, h, False) > F(0):
        empty = excess_above(row, high, h, False) > F(0)
        if not empty:
            bottom = last_good(row, high, low, h, False)
    row[AXIS_UPPER], row[AXIS_LOWER] = above, below
    if empty or bottom > top:
        fall_back(row, h)
    else:
        set_interval(row, bottom, top)


@device
def allow(row, h):
    """Write the interval of velocities for the next tick of time h; from each, the axis can stop inside its limits."""
    row[REASON] = F(0)
    if row[TOP_JERK] >= NO_LIMIT:
        allow_without_jerk(row, h)
        row[PLAN_NEXT] = min(max(planned_speed(row, h), row[NEXT_LOWER]), row[NEXT_UPPER])
    else:
        allow_with_jerk(row, h)


@device
def miss_of(row, w, h, A, J):
    """Return the end of the stop after the next velocity w, relative to the target and its motion."""
    a = acceleration_of(row, w, h)
    j = jerk_of(row, a, h) - row[FEED_JERK]
    end, _, _, _, _ = extremes(stop_of(w - row[FEED], a - row[FEED_ACCELERATION], j, h, row[GAP], A, J))
    return w * h + end - row[AXIS_TARGET]


@device
def search(row, h, A, J):
    """Return the velocity in the interval whose stop ends nearest to the target: regula falsi (Illinois)."""
    low, high = row[NEXT_LOWER], row[NEXT_UPPER]
    below, over = miss_of(row, low, h, A, J), miss_of(row, high, h, A, J)
    if over <= F(0) or low >= high:
        return high
    if below >= F(0):
        return low
    near = CLOSE * (abs(row[AXIS_TARGET]) + row[TOP_SPEED] * h)
    side = 0
    for k in range(SEARCHES):
        w = (low * over - high * below) / (over - below)
        if not low < w < high or k % 8 == 7:
            w = F(0.5) * (low + high)
        miss = miss_of(row, w, h, A, J)
        if abs(miss) <= near:
            return w
        if miss > F(0):
            high, over = w, miss
            if side == 1:
                below *= F(0.5)
            side = 1
        else:
            low, below = w, miss
            if side == -1:
                over *= F(0.5)
            side = -1
    return low if row[AXIS_TARGET] > F(0) else high


@device
def lands(row, w, h):
    """Return whether an axis can go to its target in one tick, with velocity w, and stay there from then on.

    With the search for the stop only, the axis would oscillate about the target for ever, by less than the jerk can
    change within a tick.
    """
    part, H = LANDING * row[TOP_JERK], F(0.5) * (row[GAP] + h)
    v, a = row[AXIS_VELOCITY] - row[FEED], row[AXIS_ACCELERATION] - row[FEED_ACCELERATION]
    first, second = (w - row[FEED] - v) / H, (row[FEED] - w) / h
    change = max(abs(first - a), abs(second - first), abs(second))
    fits = change <= part * min(H, h) and max(abs(first), abs(second)) <= LANDING * row[TOP_ACCELERATION]
    return fits and row[NEXT_LOWER] <= w <= row[NEXT_UPPER]


@device
def choose(row, h):
    """Choose the velocity, among those of the interval, from which a stop ends at the target.

    This is the fastest motion without overshoot: as long as the stop ends before the target, the axis gains speed.
    """
    k = row[STRETCH]
    A, J = row[TOP_ACCELERATION] * k * k, row[TOP_JERK] * k * k * k
    low, high = row[NEXT_LOWER], row[NEXT_UPPER]
    if row[TOP_JERK] >= NO_LIMIT:
        d = row[AXIS_TARGET] - row[FEED] * h
        speed = stopping_speed(abs(d), A, h)
        w = row[FEED] + (speed if d > F(0) else -speed)
    else:
        w = row[AXIS_TARGET] / h
        if not lands(row, w, h):
            w = search(row, h, A, J)
    most = row[TOP_SPEED] * k
    if k < F(1):
        w = max(min(w, most), -most)
    row[NEXT] = min(max(w, low), high)
    if row[REASON] == F(0) and (w > high or w < low or (row[TOP_JERK] < NO_LIMIT and (w == low or w == high))):
        row[REASON] = reason_of(row, row[NEXT], h)


@device
def reason_of(row, w, h):
    """Return the limit that keeps an axis at the next velocity w."""
    V, A = row[TOP_SPEED], row[TOP_ACCELERATION]
    slack = F(1e-9)
    if abs(w) >= V * (F(1) - slack):
        return F(AT_VELOCITY)
    a = acceleration_of(row, w, h)
    if row[TOP_JERK] < NO_LIMIT:
        j = F(3) * abs(a - row[AXIS_ACCELERATION])
        if j >= row[TOP_JERK] * (row[GAP_BEFORE] + row[GAP] + h) * (F(1) - slack):
            return F(AT_JERK)
    if abs(a) >= A * (F(1) - slack):
        return F(AT_ACCELERATION)
    return F(AT_POSITION)


@device
def stop_keeps(row, stop, w, h):
    """Return whether a stop after the next velocity w keeps the limits of an axis, up to rounding."""
    a = acceleration_of(row, w, h)
    _, lowest, highest, slowest, fastest = extremes(stop)
    x, most = w * h, F(1) + ROUNDING
    return (
        x + highest <= row[AXIS_UPPER] + WITHIN
        and x + lowest >= row[AXIS_LOWER] - WITHIN
        and max(fastest, -slowest) <= row[TOP_SPEED] * most
        and abs(a) <= row[TOP_ACCELERATION] * most
    )


@inline
def keeps_limits(row, w, h):
    """Return whether the axis keeps its limits if it stops as fast as it can after the next velocity w."""
    return stop_keeps(row, stop_after(row, w, h), w, h)


@device
def settle(row, h, moved, stop, follows):
    """Store the state of an axis after a tick of time h with the displacement ``moved``.

    If the axis ``follows`` the known stop, the rest of that stop is kept. Otherwise ``stop`` is the new known stop.
    """
    v = moved / h
    row[AXIS_ACCELERATION] = acceleration_of(row, v, h)
    row[AXIS_VELOCITY] = v
    beyond = max(abs(v) / row[TOP_SPEED], abs(row[AXIS_ACCELERATION]) / row[TOP_ACCELERATION]) - F(1)
    if beyond > TOLD and row[REASON] != F(EMERGENCY):
        row[REASON] = F(RECOVERING)  # after a limit was lowered
    row[GAP_BEFORE] = row[GAP]
    row[GAP] = h
    store_plan(row, rest_of(plan_of(row), h) if follows else stop)
    if row[REASON] == F(EMERGENCY):  # a jerk that kept this acceleration would throw the axis back
        row[AXIS_ACCELERATION] = F(0)
        store_plan(row, stop_of(v, F(0), F(0), h, row[GAP_BEFORE], row[TOP_ACCELERATION], row[TOP_JERK]))
