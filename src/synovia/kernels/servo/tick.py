"""One tick of all axes: allowed velocities, chosen velocities, and the new samples."""

import math

import numpy as np

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.layout import (
    AXIS_ACCELERATION,
    AXIS_LOWER,
    AXIS_TARGET,
    AXIS_UPPER,
    AXIS_VELOCITY,
    BLOCK,
    BLOCK_Q,
    EMERGENCY,
    FEED,
    FEED_ACCELERATION,
    FEED_JERK,
    FOLLOWER,
    GAP,
    GAP_BEFORE,
    LEADER,
    LOWER,
    NEXT,
    NEXT_LOWER,
    NEXT_UPPER,
    PLAN_NEXT,
    RAW_FEED,
    RAW_FEED_ACCELERATION,
    REASON,
    SCALAR,
    STRETCH,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
    UPPER,
)
from synovia.kernels.math.rotations import (
    load_quat,
    quat_apply,
    quat_conj,
    quat_exp,
    quat_log,
    quat_mul,
    quat_normalize,
    store_quat,
)
from synovia.kernels.math.swing_twist import project, signed_excess
from synovia.kernels.math.vectors import norm
from synovia.kernels.servo.axis import (
    WITHIN,
    allow,
    choose,
    keeps_limits,
    plan_of,
    settle,
    stop_after,
    stop_keeps,
    stop_of,
    store_plan,
)
from synovia.kernels.servo.ball import (
    EDGE,
    inset,
    restrict_ball,
    stays_inside,
    stops_of,
    way_to,
)
from synovia.kernels.servo.stop import NO_LIMIT, extremes
from synovia.kernels.tree.variables import follower_value, is_limited

FAR = F(4)  # ticks: if all motions are shorter, axes need not arrive together
SLOWEST = F(0.05)  # least time scaling of an axis that arrives together with slower ones


@device
def feed(row, raw, h):
    """Store the velocity of the target and its derivatives as feed, within the axis limits; 0 if the target jumps."""
    a = F(2) * (raw - row[RAW_FEED]) / (row[GAP] + h)
    top = row[TOP_ACCELERATION]
    follows = abs(a) <= F(2) * top
    row[FEED] = min(max(raw, -row[TOP_SPEED]), row[TOP_SPEED]) if follows else F(0)
    j = F(3) * (a - row[RAW_FEED_ACCELERATION]) / (row[GAP_BEFORE] + row[GAP] + h)
    smooth = follows and abs(raw) <= row[TOP_SPEED] and abs(j) <= F(2) * row[TOP_JERK] and abs(a) <= top
    row[FEED_ACCELERATION], row[FEED_JERK] = (a, j) if smooth else (F(0), F(0))
    row[RAW_FEED], row[RAW_FEED_ACCELERATION] = raw, a


@device
def aim(variables, limits, axes, q, wanted, before, h):
    """Write limits and targets of all axes, relative to q; return whether a target has moved."""
    i = 0
    moved = False
    for k in range(variables.shape[0]):
        at = variables[k, BLOCK_Q]
        if variables[k, BLOCK] == SCALAR:
            row = axes[i]
            row[AXIS_LOWER], row[AXIS_UPPER] = limits[k, LOWER] - q[at], limits[k, UPPER] - q[at]
            row[AXIS_TARGET] = wanted[at] - q[at]
            feed(row, (wanted[at] - before[at]) / h, h)
            moved = moved or wanted[at] != before[at]
            i += 1
            continue
        back = quat_conj(load_quat(q, at))
        end, begin = load_quat(wanted, at), load_quat(before, at)
        way = quat_log(quat_mul(back, end))
        shift = quat_apply(quat_mul(back, begin), quat_log(quat_mul(quat_conj(begin), end)))
        for c in range(3):
            row = axes[i + c]
            row[AXIS_LOWER], row[AXIS_UPPER] = F(-np.inf), F(np.inf)
            row[AXIS_TARGET] = way[c]
            feed(row, shift[c] / h, h)
            moved = moved or shift[c] != F(0)
        if is_limited(limits, k):
            if axes[i, TOP_JERK] < NO_LIMIT:
                lag = (way[0] - axes[i, FEED] * h, way[1] - axes[i + 1, FEED] * h, way[2] - axes[i + 2, FEED] * h)
                end = inset(limits, k, end, norm(lag))
            way = way_to(limits, k, load_quat(q, at), end)
            for c in range(3):
                axes[i + c, AXIS_TARGET] = way[c]
        i += 3
    return moved


@device
def time_of(d, V, A, J):
    """Return the approximate time of an axis for the displacement d >= 0 from rest to rest."""
    if J >= NO_LIMIT:
        return d / V + V / A if d * A >= V * V else F(2) * math.sqrt(d / A)
    p = A / J
    if d <= F(2) * A * p * p:
        t = (F(32) * d / J) ** F(1.0 / 3.0)
        peak = F(0.25) * J * t * t
    else:
        b = math.sqrt(p * p + F(4) * d / A)
        t, peak = p + b, F(0.5) * A * (b - p)
    return t if peak <= V else max(t, d / V + V / A + p)


@device
def stretch(axes, h):
    """Write the time scaling with which all axes arrive at their targets together."""
    longest = F(0)
    for i in range(axes.shape[0]):
        row = axes[i]
        time = time_of(abs(row[AXIS_TARGET]), row[TOP_SPEED], row[TOP_ACCELERATION], row[TOP_JERK])
        row[STRETCH] = time
        longest = max(longest, time)
    for i in range(axes.shape[0]):
        row = axes[i]
        together = longest > FAR * h and row[FEED] == F(0)
        row[STRETCH] = max(row[STRETCH] / longest, SLOWEST) if together else F(1)


@device
def move(variables, axes, q, out, h):
    """Write the pose after the chosen velocities to ``out``."""
    i = 0
    for k in range(variables.shape[0]):
        at = variables[k, BLOCK_Q]
        if variables[k, BLOCK] == SCALAR:
            out[at] = q[at] + axes[i, NEXT] * h
            i += 1
            continue
        w = (axes[i, NEXT] * h, axes[i + 1, NEXT] * h, axes[i + 2, NEXT] * h)
        store_quat(out, at, quat_normalize(quat_mul(load_quat(q, at), quat_exp(w))))
        i += 3


@device
def advance(body, axes, q, wanted, out, h, stopping, proven):
    """Take the tick with the chosen velocities, and write the new samples to ``out``.

    If ``proven``, a stop of the whole body after this tick is known, which keeps the limits of all balls.
    """
    variables, limits = body
    i = 0
    for k in range(variables.shape[0]):
        at = variables[k, BLOCK_Q]
        if variables[k, BLOCK] == SCALAR:
            row = axes[i]
            out[at] = q[at] + row[NEXT] * h
            follows = row[NEXT] == row[PLAN_NEXT] and (stopping or not keeps_limits(row, row[NEXT], h))
            way = out[at] - q[at]
            settle(row, h, way, stop_after(row, way / h, h), follows)
            i += 1
            continue
        here = load_quat(q, at)
        end = here if stopping else load_quat(wanted, at)
        limited = is_limited(limits, k) and not proven
        planned = restrict_ball(limits, k, axes, i, here, end, h) if limited else False
        w = (axes[i, NEXT] * h, axes[i + 1, NEXT] * h, axes[i + 2, NEXT] * h)
        there = quat_normalize(quat_mul(here, quat_exp(w)))
        if limited and signed_excess(limits, k, there) > max(signed_excess(limits, k, here), F(1e-10)):
            there = here if signed_excess(limits, k, here) <= EDGE else project(limits, k, there)
            for c in range(3):
                axes[i + c, REASON] = F(EMERGENCY)
        store_quat(out, at, there)
        moved = quat_log(quat_mul(quat_conj(here), there))
        stops = stops_of(axes, i, (moved[0] / h, moved[1] / h, moved[2] / h), h)
        for c in range(3):
            row = axes[i + c]
            follows = row[NEXT] == row[PLAN_NEXT] and (stopping or not stop_keeps(row, stops[c], row[NEXT], h))
            settle(row, h, moved[c], stops[c], planned or follows)
        i += 3


@device
def brake(row):
    """Choose the velocity of the known stop, if that stop stays inside the position limits.

    The interval may exclude this velocity, as it only has velocities from which a new stop keeps the limits. Braking by
    a new stop in every tick might never end. A stop that was planned again after a change of limits may leave the
    position limits; then the interval applies.
    """
    w = row[PLAN_NEXT]
    _, lowest, highest, _, _ = extremes(plan_of(row))
    inside = highest <= row[AXIS_UPPER] + WITHIN and lowest >= row[AXIS_LOWER] - WITHIN
    if row[TOP_JERK] >= NO_LIMIT or not inside:
        w = min(max(w, row[NEXT_LOWER]), row[NEXT_UPPER])
    row[NEXT] = w


@device
def propose(variables, limits, axes, q, wanted, before, h, stops):
    """Write the interval of each axis, and choose the velocity with which it goes to its target, or brakes."""
    if aim(variables, limits, axes, q, wanted, before, h):
        stretch(axes, h)
    for i in range(axes.shape[0]):
        allow(axes[i], h)
        choose(axes[i], h)
        if stops:
            brake(axes[i])


@inline
def follow_leaders(followers, coupling, out):
    """Write the values of mimic joints."""
    for k in range(followers.shape[0]):
        out[followers[k, FOLLOWER]] = follower_value(coupling, k, out[followers[k, LEADER]])


@entry
def servo_tick(variables, limits, followers, coupling, axes, q, wanted, before, out, h, stops):
    """Take one tick of joints that move independently.

    Args:
        variables: All variables of a skeleton.
        limits: Their limits.
        followers: Mimic joints and their leaders.
        coupling: Their ratios and offsets.
        axes: The state of all axes, see ``layout``.
        q: Joint values now, (nq,).
        wanted: Joint values to go to, (nq,), at the end of the tick.
        before: ``wanted`` of the tick before.
        out: Joint values after the tick, (nq,); written.
        h: Time of the tick, seconds.
        stops: 1 if all axes brake, else 0.
    """
    propose(variables, limits, axes, q, wanted, before, h, stops != 0)
    advance((variables, limits), axes, q, wanted, out, h, stops != 0, False)
    follow_leaders(followers, coupling, out)


@entry
def servo_reset(axes, velocity, h):
    """Begin at rest, or with a velocity of each axis, as if the last samples were the time h apart."""
    for i in range(axes.shape[0]):
        row = axes[i]
        row[AXIS_VELOCITY], row[AXIS_ACCELERATION] = velocity[i], F(0)
        row[GAP], row[GAP_BEFORE] = h, h
        row[RAW_FEED], row[RAW_FEED_ACCELERATION], row[STRETCH] = F(0), F(0), F(1)
        store_plan(row, stop_of(velocity[i], F(0), F(0), h, h, row[TOP_ACCELERATION], row[TOP_JERK]))


@entry
def servo_replan(axes):
    """Plan the stops of all axes again after a change of their limits."""
    for i in range(axes.shape[0]):
        row = axes[i]
        v, a = row[AXIS_VELOCITY], row[AXIS_ACCELERATION]
        store_plan(row, stop_of(v, a, F(0), row[GAP], row[GAP_BEFORE], row[TOP_ACCELERATION], row[TOP_JERK]))


@entry
def servo_rest(variables, limits, axes, q, out, leaves):
    """Write where all axes rest after their known stops.

    Args:
        variables: All variables of a skeleton.
        limits: Their limits.
        axes: The state of all axes, see ``layout``.
        q: Joint values now, (nq,).
        out: Joint values at rest, (nq,); written.
        leaves: 1 for axes whose stop leaves the limits of their variable, else 0, (axes,); written.
    """
    i = 0
    for k in range(variables.shape[0]):
        at = variables[k, BLOCK_Q]
        if variables[k, BLOCK] == SCALAR:
            end, lowest, highest, _, _ = extremes(plan_of(axes[i]))
            out[at] = q[at] + end
            inside = limits[k, LOWER] - WITHIN <= q[at] + lowest and q[at] + highest <= limits[k, UPPER] + WITHIN
            leaves[i] = F(0) if inside else F(1)
            i += 1
            continue
        stops = plan_of(axes[i]), plan_of(axes[i + 1]), plan_of(axes[i + 2])
        ends = extremes(stops[0])[0], extremes(stops[1])[0], extremes(stops[2])[0]
        here = load_quat(q, at)
        store_quat(out, at, quat_normalize(quat_mul(here, quat_exp(ends))))
        most = signed_excess(limits, k, here)
        inside = not is_limited(limits, k) or stays_inside(limits, k, here, stops, axes[i, GAP], most)
        for c in range(3):
            leaves[i + c] = F(0) if inside else F(1)
        i += 3


@entry
def servo_stop(variables, axes, q, out, follows, part):
    """Write the pose after a part of the way on which all axes come to rest at the same time; see ``levels``.

    Args:
        variables: All variables of a skeleton.
        axes: The state of all axes, see ``layout``.
        q: Joint values now, (nq,).
        out: Joint values after this part of the way, (nq,); written.
        follows: 1 for a stop relative to the motion of the targets, 0 for an absolute one, which takes as long as the
            motion of the targets needs to end.
        part: Which part of the way.
    """
    h = fed = T = F(0)
    for i in range(axes.shape[0]):
        h, fed = max(h, axes[i, GAP]), max(fed, abs(axes[i, FEED]))
    for i in range(axes.shape[0]):
        row = axes[i]
        v = row[AXIS_VELOCITY] - row[FEED] if follows or fed == F(0) else row[FEED]
        T = max(T, abs(v) / row[TOP_ACCELERATION] - F(0.5) * h)
        row[NEXT] = row[AXIS_VELOCITY] - row[FEED] if follows else row[AXIS_VELOCITY]
    move(variables, axes, q, out, part * T * T / (F(2) * T + h))
