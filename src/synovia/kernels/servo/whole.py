"""The stop of a whole body: all axes come to rest in the same time, and goals that are held stay held.

With τ = t / T the body is at q ⊕ (d f + a g + c k), from its last sample q at τ = 0 to rest at τ = 1. Without a limit
of the jerk, f = τ (2 - τ), k = f² and there is no g: velocities fall evenly. With one, d = u T and a T² begin with the
velocity u and the acceleration a, f = τ (1 + τ² (τ / 2 - 1)), g = τ² (1 / 2 + τ (τ / 4 - 2 / 3)), k = (2 f)², and the
stop ends without acceleration. d and a continue the last samples.

The bend c puts the end onto the rows that are held, by Newton steps of least norm. If d is tangent to these rows, c has
the order of d², and what is left between begin and end the order of d³. That is measured in the middle.

A stop that is known is a promise: its next sample is always allowed. Divided differences of samples of a smooth motion
are means of its derivatives, so it suffices that these keep the limits. A tick is taken only if a stop after it is
found. Otherwise the body goes a part of the way from the stop that is known to the tick, put back onto the rows that
are held, or it follows that stop.
"""

import math

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.hierarchy.step import smallest_tolerance
from synovia.kernels.layout import (
    AXIS_LOWER,
    AXIS_UPPER,
    BLOCK,
    BLOCK_Q,
    NEXT,
    NEXT_LOWER,
    NEXT_UPPER,
    PLAN_NEXT,
    SCALAR,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
)
from synovia.kernels.math.rotations import (
    load_quat,
    quat_conj,
    quat_exp,
    quat_log,
    quat_mul,
    quat_normalize,
    store_quat,
)
from synovia.kernels.math.swing_twist import signed_excess
from synovia.kernels.servo.axis import ROUNDING, WITHIN, acceleration_of
from synovia.kernels.servo.levels import (
    holds_promised,
    leads_promised,
    note_first_rows,
    promised_residual,
    promised_step,
    solve_tick,
    sync_time,
)
from synovia.kernels.servo.stop import NO_LIMIT
from synovia.kernels.tree.problem import copy
from synovia.kernels.tree.variables import is_limited

NODES = 12  # instants of a stop with a limit of the jerk at which its derivatives are judged
SPARE = F(1.1)  # a stop takes longer by this factor than limits ask for, as the bend adds to its accelerations
LONGER = F(1.02)  # the same, if it turns out to exceed them
ROUNDS = 6  # of a stop that is made longer, and bent
CLOSED = F(0.02)  # tolerances: rows that are held to this are closed
OPEN = F(0.5)  # tolerances: what they may lack on the stop
SHARES = 4  # parts of the way from the known stop to a tick that are tried: 1, 1/2, 1/4, 1/8
ENDS_IN, PASSED, KNOWN = 0, 1, 2  # numbers of a stop: its time, the time since its start, 1 if it is a promise


@inline
def shape(tau, jerk):
    """Return (f, g, k) of a stop at an instant, 0 to 1; before 0 it goes on backwards."""
    if jerk:
        f = tau * (F(1) + tau * tau * (F(0.5) * tau - F(1)))
        return f, tau * tau * (F(0.5) + tau * (F(0.25) * tau - F(2) / F(3))), F(4) * f * f
    f = tau * (F(2) - tau)
    return f, F(0), f * f


@inline
def derivatives(tau):
    """Return the first three derivatives of (f, g, k) of a stop with a limit of the jerk."""
    f = tau * (F(1) + tau * tau * (F(0.5) * tau - F(1)))
    f1, f2, f3 = F(1) + tau * tau * (F(2) * tau - F(3)), F(6) * tau * (tau - F(1)), F(12) * tau - F(6)
    g1, g2, g3 = tau * (F(1) - tau) * (F(1) - tau), F(1) - tau * (F(4) - F(3) * tau), F(6) * tau - F(4)
    k1, k2, k3 = F(8) * f * f1, F(8) * (f1 * f1 + f * f2), F(8) * (F(3) * f1 * f2 + f * f3)
    return (f1, g1, k1), (f2, g2, k2), (f3, g3, k3)


@device
def even_extremes(d, c, T, h):
    """Return the largest acceleration and velocity, and the lowest and highest place, of an even stop.

    Its acceleration is -(2 / T²) (d - 4 c + 6 c f), so it is largest at an end: one tick before the stop, or at rest.
    """
    before, _, _ = shape(-h / T, False)
    push = max(abs(d - F(4) * c + F(6) * c * before), abs(d + F(2) * c)) * F(2) / (T * T)
    low, high, speed = min(d + c, F(0)), max(d + c, F(0)), abs(d)
    if c != F(0):
        turn, peak = -d / (F(2) * c), (F(4) * c - d) / (F(6) * c)
        if F(0) < turn < F(1):
            low, high = min(low, F(0.5) * d * turn), max(high, F(0.5) * d * turn)
        if F(0) < peak < F(1):
            speed = max(speed, abs(d + F(2) * c * peak) * math.sqrt(F(1) - peak))
    return push, F(0), F(2) * speed / T, low, high


@device
def curved_extremes(d, a, c, T):
    """Return the largest acceleration, jerk and velocity, and the lowest and highest place, of a stop with jerk."""
    speed, push, jolt, low, high = F(0), F(0), F(0), F(0), F(0)
    for i in range(NODES + 1):
        tau = F(i) / F(NODES)
        f, g, k = shape(tau, True)
        first, second, third = derivatives(tau)
        x = d * f + a * g + c * k
        low, high = min(low, x), max(high, x)
        speed = max(speed, abs(d * first[0] + a * first[1] + c * first[2]) / T)
        push = max(push, abs(d * second[0] + a * second[1] + c * second[2]) / (T * T))
        jolt = max(jolt, abs(d * third[0] + a * third[1] + c * third[2]) / (T * T * T))
    return push, jolt, speed, low, high


@device
def begin_ways(stop, axes, h, T):
    """Write the ways d and a of a stop of time T after the velocities that are chosen (``NEXT``), for its bend."""
    for i in range(axes.shape[0]):
        row = axes[i]
        v, a = row[NEXT], acceleration_of(row, row[NEXT], h)
        if row[TOP_JERK] >= NO_LIMIT:
            before, _, bent = shape(-h / T, False)
            stop.way[i], stop.push[i] = -(v * h + stop.bend[i] * bent) / before, F(0)
        else:
            stop.way[i], stop.push[i] = (v + F(0.5) * h * a) * T, a * T * T


@device
def needed_time(axes, h):
    """Return the time in which a body can come to rest after the velocities that are chosen, without a bend."""
    T = F(0)
    for i in range(axes.shape[0]):
        row = axes[i]
        a = acceleration_of(row, row[NEXT], h)
        A, J = row[TOP_ACCELERATION], row[TOP_JERK]
        u = row[NEXT] if J >= NO_LIMIT else row[NEXT] + F(0.5) * h * a
        T = max(T, sync_time(u, a, A, J, h))
    return SPARE * T


@device
def write_place(variables, stop, tau, jerk, out):
    """Write the pose of a stop at an instant to ``out`` (nq,)."""
    f, g, k = shape(tau, jerk)
    i = 0
    for row in range(variables.shape[0]):
        at = variables[row, BLOCK_Q]
        if variables[row, BLOCK] == SCALAR:
            out[at] = stop.start[at] + f * stop.way[i] + g * stop.push[i] + k * stop.bend[i]
            i += 1
            continue
        w = (
            f * stop.way[i] + g * stop.push[i] + k * stop.bend[i],
            f * stop.way[i + 1] + g * stop.push[i + 1] + k * stop.bend[i + 1],
            f * stop.way[i + 2] + g * stop.push[i + 2] + k * stop.bend[i + 2],
        )
        store_quat(out, at, quat_normalize(quat_mul(load_quat(stop.start, at), quat_exp(w))))
        i += 3


@device
def first_samples(row, stop, i, h, T):
    """Return the largest acceleration and jerk of an axis between samples before and on a stop, 1 at the limit."""
    x, v = F(0), row[NEXT]
    a, worst = acceleration_of(row, v, h), F(0)
    for n in range(1, 4):
        f, g, k = shape(min(F(n) * h / T, F(1)), True)
        there = f * stop.way[i] + g * stop.push[i] + k * stop.bend[i]
        speed = (there - x) / h
        push = (speed - v) / h
        worst = max(worst, abs(push - a) / (h * row[TOP_JERK]), abs(push) / max(row[TOP_ACCELERATION], abs(a)))
        x, v, a = there, speed, push
    return worst


@device
def excess_of(stop, axes, h, T):
    """Return by how much a stop exceeds accelerations and jerks, 1 at the limit; infinite beyond other limits."""
    worst = F(0)
    for i in range(axes.shape[0]):
        row = axes[i]
        A, J, V = row[TOP_ACCELERATION], row[TOP_JERK], row[TOP_SPEED]
        if J >= NO_LIMIT:
            push, jolt, speed, low, high = even_extremes(stop.way[i], stop.bend[i], T, h)
            worst = max(worst, push / A)
        else:
            push, jolt, speed, low, high = curved_extremes(stop.way[i], stop.push[i], stop.bend[i], T)
            begins = abs(acceleration_of(row, row[NEXT], h))
            worst = max(worst, push / max(A, begins), jolt / J, first_samples(row, stop, i, h, T))
        x, most = row[NEXT] * h, V * (F(1) + ROUNDING)
        if (
            speed > max(most, abs(row[NEXT]))
            or x + high > row[AXIS_UPPER] + WITHIN
            or x + low < row[AXIS_LOWER] - WITHIN
        ):
            return F(math.inf)
    return worst


@device
def turns_inside(variables, limits, stop, jerk, q, pose):
    """Return whether limited rotations stay inside their limits on a stop, or come back, by samples of it."""
    for row in range(variables.shape[0]):
        if variables[row, BLOCK] != SCALAR and is_limited(limits, row):
            most = max(signed_excess(limits, row, load_quat(q, variables[row, BLOCK_Q])), F(0)) + WITHIN
            for n in range(5):
                write_place(variables, stop, F(n) / F(4), jerk, pose)
                if signed_excess(limits, row, load_quat(pose, variables[row, BLOCK_Q])) > most:
                    return False
    return True


@device
def write_lines(tick, columns, stop):
    """Write how far the rows go on a stop along which their goals go straight on."""
    for i in range(tick.line.shape[0]):
        tick.line[i] = F(0)
        for j in range(columns.shape[0]):
            tick.line[i] += tick.gains[i, j] * (stop.way[columns[j]] + stop.push[columns[j]]) / tick.unit[j]


@apart
def find_stop(held, body, axes, q, stop, h):
    """Find a stop of the whole body after the velocities that are chosen (``NEXT``); return whether there is one.

    Args:
        held: What ``held_step`` needs.
        body: Variables and limits of the skeleton.
        axes: The state of all axes.
        q: Joint values before the tick, (nq,), of the robot.
        stop: Written.
        h: Time of the tick.
    """
    variables, limits = body
    tick = held[3]
    copy(q, stop.start)
    for i in range(axes.shape[0]):
        stop.way[i], stop.push[i], stop.bend[i] = axes[i, NEXT] * h, F(0), F(0)
    write_place(variables, stop, F(1), False, tick.sample)
    copy(tick.sample, stop.start)
    jerk = axes[0, TOP_JERK] < NO_LIMIT
    T = needed_time(axes, h)
    stop.clock[ENDS_IN], stop.clock[PASSED] = T, F(0)
    if T <= F(0):
        for i in range(axes.shape[0]):
            stop.way[i] = F(0)
        return True
    columns, smallest, follows = held[4], smallest_tolerance(held[0]), leads_promised(held)
    if follows:
        note_first_rows(held, stop.start)
    for _ in range(ROUNDS):
        begin_ways(stop, axes, h, T)
        worst = excess_of(stop, axes, h, T)
        if worst == F(math.inf):
            return False
        if worst > F(1):
            longer = LONGER * worst
            T *= longer
            for i in range(axes.shape[0]):
                stop.bend[i] *= longer * longer
            continue
        if follows:
            write_lines(tick, columns, stop)
        write_place(variables, stop, F(1), jerk, tick.pose)
        if promised_residual(held, tick.pose, F(1)) <= CLOSED * smallest:
            stop.clock[ENDS_IN] = T
            middle = F(0.5) if jerk else F(0.3)
            write_place(variables, stop, middle, jerk, tick.pose)
            left = promised_residual(held, tick.pose, shape(middle, jerk)[0])
            return left <= OPEN * smallest and turns_inside(variables, limits, stop, jerk, q, tick.pose)
        promised_step(held, follows)
        per = F(1) if jerk else F(1) / (F(1) - shape(-h / T, False)[0])  # d grows with the bend
        for j in range(columns.shape[0]):
            stop.bend[columns[j]] += per * tick.shift[j]
    return False


@device
def plan_tick(variables, axes, known, q, pose, h):
    """Choose the velocities of the next sample of the stop that is known, and write that sample to ``pose``."""
    T, t = known.clock[ENDS_IN], known.clock[PASSED] + h
    tau = min(t / T, F(1)) if T > F(0) else F(1)
    write_place(variables, known, tau, axes[0, TOP_JERK] < NO_LIMIT, pose)
    i = 0
    for row in range(variables.shape[0]):
        at = variables[row, BLOCK_Q]
        if variables[row, BLOCK] == SCALAR:
            axes[i, NEXT] = (pose[at] - q[at]) / h
            i += 1
            continue
        w = quat_log(quat_mul(quat_conj(load_quat(q, at)), load_quat(pose, at)))
        for c in range(3):
            axes[i + c, NEXT] = w[c] / h
        i += 3


@device
def put_back(held, variables, axes, stop, q, h):
    """Change the velocities that are chosen so that the next sample is on the rows that are held; return whether."""
    tick, columns, smallest = held[3], held[4], smallest_tolerance(held[0])
    for n in range(3):
        copy(q, stop.start)
        for i in range(axes.shape[0]):
            stop.way[i], stop.push[i], stop.bend[i] = axes[i, NEXT] * h, F(0), F(0)
        write_place(variables, stop, F(1), False, tick.pose)
        left = promised_residual(held, tick.pose, F(-1))
        if left <= CLOSED * smallest or n == 2:
            return left <= OPEN * smallest
        promised_step(held, False)
        for j in range(columns.shape[0]):
            row = axes[columns[j]]
            row[NEXT] = min(max(row[NEXT] + tick.shift[j] / h, row[NEXT_LOWER]), row[NEXT_UPPER])
    return False


@device
def keep_tick(held, body, axes, known, found, q, h):
    """Put the chosen velocities back onto what is held; return whether a stop is found, which is then the known one."""
    if not (put_back(held, body[0], axes, found, q, h) and find_stop(held, body, axes, q, found, h)):
        return False
    copy(found.start, known.start)
    copy(found.way, known.way)
    copy(found.push, known.push)
    copy(found.bend, known.bend)
    copy(found.clock, known.clock)
    known.clock[KNOWN] = F(1)
    return True


@device
def moving_level(held):
    """Return the highest level with a goal that moves, or the number of levels."""
    problem, (promised, _) = held[0], held[7]
    for k in range(problem.levels.shape[0] - 1):
        if problem.levels[k] >= promised and problem.levels[k + 1] > problem.levels[k]:
            return k
    return problem.levels.shape[0] - 1


@device
def led_level(held):
    """Return the number of levels whose goals are a promise if they are followed."""
    problem, (_, led) = held[0], held[7]
    k = 0
    while k < problem.levels.shape[0] - 1 and problem.levels[k + 1] <= led:
        k += 1
    return k


@device
def take_part(axes, begin, end, share):
    """Choose velocities that lie a part of the way from some to others."""
    for i in range(axes.shape[0]):
        axes[i, NEXT] = begin[i] + share * (end[i] - begin[i]) if share != F(1) else end[i]


@device
def accept_tick(held, body, axes, together, known, found, q, h):
    """Change the velocities of a tick, if no stop after it is found.

    First, levels below the highest one that moves follow the stop that is known; then the tick goes only a part of the
    way from that stop. If goals are followed above those that are far, the way begins instead at a tick in which these
    goals alone count: they lose nothing by what is below. Without a stop that is known (``KNOWN``), as after a change
    of limits, the axes brake for themselves, and if that does not help, the tick is taken as it is.

    Returns:
        The number of linear systems that were solved.
    """
    variables, _ = body
    tick = held[3]
    n = axes.shape[0]
    for i in range(n):
        tick.wish[i] = axes[i, NEXT]
        axes[i, NEXT] = axes[i, PLAN_NEXT]
    if known.clock[KNOWN] != F(0):
        plan_tick(variables, axes, known, q, tick.pose, h)
    for i in range(n):
        tick.plan[i] = axes[i, NEXT]
        axes[i, NEXT] = tick.wish[i]
    if keep_tick(held, body, axes, known, found, q, h):
        return F(0)
    follows, holds = leads_promised(held), holds_promised(held)
    solved = solve_tick(held, axes, together, q, h, led_level(held) if follows else moving_level(held) + 1, True)
    if follows:
        for i in range(n):
            tick.base[i] = axes[i, NEXT]
        share = F(0.5)
        for k in range(SHARES):
            take_part(axes, tick.base, tick.wish, share if k < SHARES - 1 else F(0))
            if keep_tick(held, body, axes, known, found, q, h):
                return solved
            share *= F(0.5)
        if not holds:
            take_part(axes, tick.base, tick.base, F(1))
            known.clock[KNOWN] = F(0)
            return solved
    for i in range(n):
        tick.wish[i] = tick.base[i] if follows else axes[i, NEXT]
    share = F(1)
    for _ in range(SHARES):
        take_part(axes, tick.plan, tick.wish, share)
        if keep_tick(held, body, axes, known, found, q, h):
            return solved
        share *= F(0.5)
    take_part(axes, tick.plan, tick.wish, F(0) if known.clock[KNOWN] != F(0) else F(1))
    known.clock[PASSED] += h
    return solved
