"""The stop of a whole body: all axes come to rest at the same time, and held goals stay held.

Without a limit of the jerk, the body is at q ⊕ (d r + r² (b₀ + b₁ r + b₂ r²)), r = τ (2 - τ), τ = t / T, from its last
sample q at τ = 0 to rest at τ = 1: without bends b, velocities fall evenly. d continues the last samples.

With a limit of the jerk, the cubic through the last three samples has a part of the last jerks, the same for all axes.
It ends with velocities u and accelerations a - c u. From there on the body is at
q ⊕ (u p(t) + k p(t)² / 2 + (a - k) g(t) + r³ (b₀ + b₁ r + b₂ r²)), r = p / p(T). p is the stop of one axis (``stop``)
from the velocity 1 and the acceleration -c, and g is the stop from the acceleration 1. Each uses a part of the limits,
so that both end together. k is the acceleration with which a body of velocity u stays on the held rows. It fades as p'²
does; g fades earlier, so that the body would leave curved rows.

Bends put nodes of the stop onto the held rows, by Newton steps of least norm within the limits of positions. One node,
the end, suffices for a short stop: the error of the rows in between has the order of d³. Otherwise there are three
nodes, and the error has the order of d⁵. It is measured where it is largest.

The known stop is a promise: its next sample is always allowed. Divided differences of samples of a smooth motion are
means of its derivatives, so it suffices that the derivatives keep the limits. A tick is taken only if a stop after it
is found. Otherwise velocities are interpolated between the known stop and the tick, and corrected onto the held rows,
or the body follows the known stop.
"""

import math

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.hierarchy.step import smallest_tolerance, update_frames
from synovia.kernels.layout import (
    AXIS_ACCELERATION,
    AXIS_LOWER,
    AXIS_UPPER,
    AXIS_VELOCITY,
    BLOCK,
    BLOCK_Q,
    GAP,
    GAP_BEFORE,
    NEXT,
    NEXT_LOWER,
    NEXT_UPPER,
    PLAN_NEXT,
    SCALAR,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
)
from synovia.kernels.loops.closing import NEARLY, STEPS, close
from synovia.kernels.loops.ties import has_loops
from synovia.kernels.math.rotations import (
    load_quat,
    quat_conj,
    quat_log,
    quat_mul,
)
from synovia.kernels.math.swing_twist import signed_excess
from synovia.kernels.math.vectors import norm
from synovia.kernels.servo import ALONG_BEGIN, ALONG_END, ALONG_NOW, ALONG_POSE, ALONG_WAITS, PATH_PLACE
from synovia.kernels.servo.axis import ROUNDING, WITHIN, acceleration_of, jerk_of
from synovia.kernels.servo.distances import stays_apart
from synovia.kernels.servo.levels import (
    TIED,
    has_promise,
    holds_promised,
    is_held,
    leads_promised,
    limits_motion,
    limits_tools,
    note_first_rows,
    promised_residual,
    promised_step,
    solve_tick,
    spare_of,
    tool_part,
    write_stops,
)
from synovia.kernels.servo.path import follows_path, go_to
from synovia.kernels.servo.places import (
    ENDS_IN,
    HALVINGS,
    KNOWN,
    LENGTH,
    PASSED,
    arch_of,
    instant_of,
    place_of,
    progress,
    shape_of,
    store_shape,
    write_place,
)
from synovia.kernels.servo.stop import NO_LIMIT, duration, motion_at, stop_profile, sync_time, travelled
from synovia.kernels.servo.tick import move
from synovia.kernels.servo.tools import CRUISE, most_used, note_places
from synovia.kernels.tree.problem import copy
from synovia.kernels.tree.variables import is_limited

BENT = F(1.1)  # factor of accelerations and jerks of bends, which are evaluated at instants only
# Margin for the position error of a cubic polynomial over a time dt, divided by dt² and by the largest difference
# between its accelerations and the given ones at both ends. If the error is a polynomial of degree 5, it is at most
# 1/32, the largest value of ½ x² (1 - x)²; enlarged for other motions
UNSURE = F(0.05)
PARTS = 4  # intervals per part of a stop; with a jerk limit, the motion is evaluated at their ends
SPLITS = 12  # bisection steps for the part of the limits that shape 0 (velocities) uses
INSTANTS = 12  # intervals of a stop that are searched for extremes, without a limit of the jerk
NODES, MOST_NODES = 3, 5  # number of nodes of a stop that bends, and of a long one with a jerk limit
# Sets of nodes (values of r): without a jerk limit, with one, and for long stops with one. For rows that are
# polynomials of r, they make the error between nodes least
NODES_AT = (
    (F(0.4304), F(0.7836), F(1), F(1), F(1)),
    (F(0.5242), F(0.8281), F(1), F(1), F(1)),
    (F(0.3106), F(0.5449), F(0.7512), F(0.9134), F(1)),
)
OFF_ONE = F(0.667), F(0.88)  # r at which the error is largest with one node
MOST_OFF = (  # r at which the error is largest with all nodes of a set; the last ones count only with a jerk limit
    (F(0.617), F(0.9155), F(1)),
    (F(0.337), F(0.689), F(0.934)),
    (F(0.191), F(0.427), F(0.6525)),
)


def _bends(nodes, count, power):
    """Return the change of the bends per displacement of each node, the others fixed: rᵖᵒʷᵉʳ times a polynomial."""
    out = [(F(0),) * MOST_NODES for _ in nodes]
    for k in range(count):
        curve, per = [F(1)], nodes[k] ** power
        for r in (nodes[j] for j in range(count) if j != k):
            per *= nodes[k] - r
            curve = [a - r * b for a, b in zip([F(0), *curve], [*curve, F(0)], strict=True)]
        out[k] = (*(a / per for a in curve), *(F(0),) * (MOST_NODES - count))
    return tuple(out)


BENDS = (_bends(NODES_AT[0], 3, 2), _bends(NODES_AT[1], 3, 3), _bends(NODES_AT[2], 5, 3))
LONGER, MOST_LONGER = F(1.02), F(1.3)  # factors of the stopping time: extra if a stop exceeds limits; most in a round
ROUNDS = 16  # largest number of rounds in which a stop is lengthened or bent
# tolerances: larger errors at nodes are corrected; short stops with a limit of the jerk cannot correct smaller ones
CLOSED, CLOSED_WITH_JERK = F(0.02), F(0.2)
BEGINS_OPEN, OFF_AT_NODES = F(0.6), F(0.4)  # tolerances: largest errors of a stop at its start, and at nodes
NEAR = F(2)  # tolerances: below this error at nodes, the error between them decides whether there are more
OPEN = F(0.5)  # tolerances: largest error between nodes
SHUT = F(1e-11)  # length scales, radians: largest closure error of loops after a tick
TIED_SHARE = F(0.08)  # part of the limits that closing loops may use on a stop
WAVE, WAVES = F(100), F(1000)  # bounds of accelerations by closing loops, per displacement / T²: one node, several
JOLT, JOLTS = F(1e3), F(5e4)  # bounds of the jerk by closing loops, per displacement / T³: one node, several
EXACT, FIRST, AFTER = 64, 8, 3  # numbers of samples of a stop: at most, spaced like ticks at first, at rest at the end
ROUNDED, COARSE = F(1e-7), F(0.02)  # margins as parts of limits: if all samples are ticks, and otherwise
NODE = F(0.1)  # part of ``room_of`` by which loops may be open at a node
SHORT = F(0.003)  # radians, length units: stops of a shorter displacement need no curvature
SHARES = 4  # number of tried blends of tick and known stop: the tick's weight is 1, 1/2, 1/4, 1/8
STEP_ALONG = F(1e-5)  # length scales, radians: finite difference of rows along a path
FREE_ROUNDS = 4  # largest number of joints at their limits for which others take over in a tick on a path
OPEN_ROWS = F(1e-2)  # largest error of a direction along a path, as a fraction of the change of its rows
UNMOVED = F(1e-12)  # rates of axes along a path below this count as zero
FITS = 10  # bisection steps for the fastest motion along a path
AT_END = F(1e-7)  # length scales, radians: a stop that ends so near to the end of the path ends there
MORE_SHARES = 8  # number of tried blends (see SHARES) after the known stop's end, where the body else would rest
SAMPLES = 16  # number of poses of a stop at which the speed of end effectors is measured
AHEAD = F(0.995)  # fraction of tool speed limits that these samples may use


@inline
def cubic(c, r):
    """Return the value of a cubic polynomial."""
    return c[0] + r * (c[1] + r * (c[2] + r * c[3]))


@device
def root_between(c, low, high):
    """Return where a cubic polynomial changes its sign in an interval."""
    rises = cubic(c, high) > F(0)
    for _ in range(HALVINGS):
        middle = F(0.5) * (low + high)
        if (cubic(c, middle) > F(0)) == rises:
            high = middle
        else:
            low = middle
    return F(0.5) * (low + high)


@device
def even_extremes(stop, i, T):
    """Return the largest acceleration, jerk and velocity of axis i and its extreme positions, without a jerk limit.

    With the position x as a function of r, velocities are 2 √(1 - r) x' / T, accelerations 2 (2 (1 - r) x'' - x') / T².
    """
    d, p, q, s = stop.way[i], stop.bends[0, i], stop.bends[1, i], stop.bends[2, i]
    slopes = d, F(2) * p, F(3) * q, F(4) * s
    pushes = F(4) * p - d, F(12) * q - F(6) * p, F(24) * s - F(15) * q, F(-28) * s
    push, speed, low, high = abs(pushes[0]), abs(d), min(d + p + q + s, F(0)), max(d + p + q + s, F(0))
    if p == F(0) and q == F(0) and s == F(0):
        return push * F(2) / (T * T), F(0), F(2) * speed / T, low, high
    turns = pushes[1], F(2) * pushes[2], F(3) * pushes[3], F(0)
    before = F(0)
    for n in range(1, INSTANTS + 1):
        r = F(n) / F(INSTANTS)
        push = max(push, abs(cubic(pushes, r)))
        if cubic(slopes, before) * cubic(slopes, r) < F(0):
            x = root_between(slopes, before, r)
            place = place_of(stop, i, x, F(0), False)
            low, high = min(low, place), max(high, place)
        if cubic(pushes, before) * cubic(pushes, r) < F(0):
            x = root_between(pushes, before, r)
            speed = max(speed, abs(cubic(slopes, x)) * math.sqrt(F(1) - x))
        if cubic(turns, before) * cubic(turns, r) < F(0):
            push = max(push, abs(cubic(pushes, root_between(turns, before, r))))
        before = r
    return push * F(2) / (T * T), F(0), F(2) * speed / T, low, high


@device
def mark_instants(stop):
    """Write the motion of both shapes at instants of a stop; return their number, PARTS + 1 for each part of the stop.

    Within a part, the jerk of each shape is constant.
    """
    T, t, count = stop.clock[ENDS_IN], F(0), 0
    while t < T and count + PARTS + 1 < stop.marks.shape[0]:
        end = T
        for k in range(2):
            knot = F(0)
            for n in range(3, 6):
                knot += stop.shapes[k, n]
                if knot > t + F(1e-9) * T:
                    end = min(end, knot)
        _, _, r3 = motion_at(shape_of(stop, 0), F(0.5) * (t + end))
        _, _, g3 = motion_at(shape_of(stop, 1), F(0.5) * (t + end))
        for n in range(PARTS + 1):
            mark_at(stop, stop.marks[count], t + (end - t) * F(n) / F(PARTS))
            stop.marks[count, 3], stop.marks[count, 7] = r3 / stop.shapes[0, LENGTH], g3
            count += 1
        t = end
    return count


@device
def mark_at(stop, mark, t):
    """Write the motion of both shapes at an instant, without jerks."""
    per = F(1) / stop.shapes[0, LENGTH]
    mark[0], mark[4] = progress(stop, t)
    r1, r2, _ = motion_at(shape_of(stop, 0), t)
    mark[5], mark[6], _ = motion_at(shape_of(stop, 1), t)
    mark[1], mark[2], mark[8] = r1 * per, r2 * per, t


@device
def moves_at(stop, i, mark):
    """Return position, velocity, acceleration and jerk of axis i at an instant, then acceleration and jerk to compare.

    The last two are compared with limits. BENT enlarges the parts by bends, as these are evaluated at instants only.
    """
    r, r1, r2, r3 = mark[0], mark[1], mark[2], mark[3]
    d, a = stop.way[i], stop.push[i]
    x1 = x2 = x3 = F(0)  # derivatives of r³ (b₀ + b₁ r + …)
    for n in range(MOST_NODES - 1, -1, -1):
        b, power = stop.bends[n, i], F(n + 3)
        x1, x2 = x1 * r + power * b, x2 * r + power * (power - F(1)) * b
        x3 = x3 * r + power * (power - F(1)) * (power - F(2)) * b
    x1, x2 = x1 * r * r, x2 * r
    push, jolt = x2 * r1 * r1 + x1 * r2, x3 * r1 * r1 * r1 + F(3) * x2 * r1 * r2 + x1 * r3
    arch = F(2) * arch_of(stop, i)
    rise, rise_jolt = arch * (r1 * r1 + r * r2), arch * (F(3) * r1 * r2 + r * r3)
    even = d * r2 + a * mark[6] + rise
    return (
        place_of(stop, i, r, mark[4], True),
        (d + x1 + r * arch) * r1 + a * mark[5],
        even + push,
        d * r3 + a * mark[7] + rise_jolt + jolt,
        abs(even) + BENT * abs(push) + (BENT - F(1)) * abs(rise - stop.curve[i]),
        abs(d * r3 + a * mark[7] + rise_jolt) + BENT * abs(jolt) + (BENT - F(1)) * abs(rise_jolt),
    )


@device
def turning_places(before, after, dt):
    """Return the lowest and the highest position where an axis reverses between two instants.

    The axis moves as the cubic polynomial with the positions and velocities at both instants. Positions are relative to
    the first one; without a reversal both are 0. Differences of its accelerations give the error, which is a margin.

    Args:
        before: Position, velocity and acceleration at the first instant.
        after: The same at the second one.
        dt: Seconds between them.
    """
    speed = (after[0] - before[0]) / dt
    b, c = F(3) * speed - F(2) * before[1] - after[1], before[1] + after[1] - F(2) * speed
    off = max(abs(F(2) * b - before[2] * dt), abs(F(2) * b + F(6) * c - after[2] * dt))
    low, high, square = F(0), F(0), b * b - F(3) * c * before[1]
    if square < F(0):
        return low, high
    root = -(b + math.copysign(math.sqrt(square), b))
    for n in range(2):
        over, under = (root, F(3) * c) if n == 0 else (before[1], root)
        if under != F(0) and F(0) < over / under < F(1):
            part = over / under
            turn = part * (before[1] + part * (b + part * c))
            low, high = min(low, turn * dt - UNSURE * off * dt), max(high, turn * dt + UNSURE * off * dt)
    return low, high


@device
def curved_extremes(stop, i, count):
    """Return the largest acceleration, jerk and velocity of axis i and its extreme positions, with a jerk limit."""
    speed, push, jolt, low, high = F(0), F(0), F(0), F(0), F(0)
    before = F(0), F(0), F(0), F(0)
    for n in range(count):
        x, v, a, j, pushes, jolts = moves_at(stop, i, stop.marks[n])
        low, high = min(low, x), max(high, x)
        speed, push, jolt = max(speed, abs(v)), max(push, pushes), max(jolt, jolts)
        dt = stop.marks[n, 8] - stop.marks[n - 1, 8] if n % (PARTS + 1) > 0 else F(0)
        if dt > F(0):
            back, ahead = turning_places(before, (x, v, a), dt)
            low, high = min(low, before[0] + back), max(high, before[0] + ahead)
            if a * before[2] < F(0):
                speed = max(speed, abs(before[1] + F(0.5) * before[2] * before[2] * dt / (before[2] - a)))
            if j * before[3] < F(0):  # the largest acceleration is in between
                bend = F(0.5) * dt / (before[3] - j)
                push = max(push, abs(before[2] + before[3] * before[3] * bend), abs(a + j * j * bend))
        before = x, v, a, j
    return push, jolt, speed, low, high


@device
def share_jerk(axes, h):
    """Return the fraction of the last jerks with which all axes continue, and for how many seconds.

    Any part from 0 to 1 is allowed, as later samples see only the last three (see ``axis``).
    """
    part, c = F(1), F(0)
    for i in range(axes.shape[0]):
        row = axes[i]
        a = acceleration_of(row, row[NEXT], h)
        j = abs(jerk_of(row, a, h))
        c = (F(2) * h + row[GAP]) / F(3)
        part = min(part, row[TOP_JERK] / max(j, row[TOP_JERK]))
        if a * (a - row[AXIS_ACCELERATION]) > F(0) and j > F(0):
            part = min(part, max(row[TOP_ACCELERATION] - abs(a), F(0)) / (j * c))
    return part, c


@device
def begin_shapes(stop, axes, h):
    """Write the velocities (``way``) and accelerations (``push``) with which a stop with a limit of the jerk begins.

    Returns:
        The rate at which accelerations reduce the velocities, 1/s.
    """
    part, c = share_jerk(axes, h)
    along = total = F(0)
    for i in range(axes.shape[0]):
        row = axes[i]
        a = acceleration_of(row, row[NEXT], h)
        j = part * jerk_of(row, a, h)
        a += j * c
        stop.push[i], stop.way[i] = a - stop.curve[i], row[NEXT] + F(0.5) * h * a - j * h * h / F(6)
        per = F(1) / (row[TOP_SPEED] * row[TOP_SPEED])
        along += per * stop.way[i] * stop.push[i]
        total += per * stop.way[i] * stop.way[i]
    return -along / total if total > F(0) else F(0)


@device
def choose_shapes(stop, axes, brake, spare):
    """Choose the shapes that end velocities and accelerations: each uses a part of the limits, in equal times.

    Args:
        stop: ``way`` and ``push`` are the velocities and accelerations with which it begins; written.
        axes: The state of all axes.
        brake: The rate at which velocities fall, 1/s.
        spare: The part of the limits that is used.
    """
    part = most = u = ju = p = jp = F(1)
    for turn in range(2):
        u = ju = p = jp = F(1e-9)
        for i in range(axes.shape[0]):
            A, J = axes[i, TOP_ACCELERATION], axes[i, TOP_JERK]
            rest = abs(stop.push[i] + brake * stop.way[i])
            u, ju = max(u, abs(stop.way[i]) / A), max(ju, abs(stop.way[i]) / J)
            p, jp = max(p, rest / A), max(jp, rest / J)
        low, high, part = F(0.02), F(0.98), F(0.5)
        for _ in range(SPLITS):
            part = F(0.5) * (low + high)
            ends = duration(stop_profile(F(1), -brake, spare * part / u, spare * part / ju))
            left = spare * (F(1) - part)
            if ends > duration(stop_profile(F(0), F(1), left / p, left / jp)):
                low = part
            else:
                high = part
        most = math.sqrt(F(2) * spare * part / ju)
        if brake <= most or turn == 1:
            break
        brake = most  # if it braked faster, the body would reverse
    left = spare * (F(1) - part)
    way = stop_profile(F(1), -min(brake, most), spare * part / u, spare * part / ju)
    push = stop_profile(F(0), F(1), left / p, left / jp)
    store_shape(stop, 0, way)
    store_shape(stop, 1, push)
    stop.clock[ENDS_IN] = max(duration(way), duration(push))
    stop.shapes[0, LENGTH], stop.shapes[1, LENGTH] = travelled(way, duration(way)), travelled(push, duration(push))
    brake = min(brake, most)
    for i in range(axes.shape[0]):
        stop.push[i] += brake * stop.way[i]
        stop.way[i] *= stop.shapes[0, LENGTH]


@device
def begin_ways(stop, axes, h):
    """Write ``way`` of a stop without a limit of the jerk, for its bends."""
    T = stop.clock[ENDS_IN]
    for i in range(axes.shape[0]):
        if axes[i, TOP_JERK] >= NO_LIMIT:
            v = axes[i, NEXT]
            stop.way[i], stop.push[i] = (v * T * T + F(4) * h * stop.bends[0, i]) / (F(2) * T + h), F(0)


@device
def move_node(stop, i, k, kind, shift, per):
    """Move node k of axis i, and keep the other nodes fixed.

    ``kind`` is the set of nodes, -1 for one node only. ``per`` is the derivative of ``way`` with respect to the first
    bend.
    """
    if kind < 0:
        stop.bends[0, i] += shift / (F(1) + per)
        return
    shapes, nodes = BENDS[kind], NODES_AT[kind]
    total = F(1)
    for j in range(MOST_NODES):
        first, _, _, _, _ = shapes[j]
        total += per * first * nodes[j]
    first, _, _, _, _ = shapes[k]
    grows = per * first * shift / total
    for j in range(MOST_NODES):
        moved = (shift if j == k else F(0)) - grows * nodes[j]
        for n in range(MOST_NODES):
            stop.bends[n, i] += moved * shapes[j][n]


@device
def needed_time(axes, h):
    """Return the time in which a body without a limit of the jerk can come to rest, without a bend."""
    T = F(0)
    for i in range(axes.shape[0]):
        T = max(T, sync_time(axes[i, NEXT], F(0), axes[i, TOP_ACCELERATION], NO_LIMIT, h))
    return T


@device
def shape_stop(stop, axes, h, longer):
    """Write the shapes of a stop without bends; ``longer`` multiplies its time or, with jerk, divides its limits.

    Without a limit of the jerk, ``longer`` includes ``SPARE`` for bends.
    """
    if axes[0, TOP_JERK] >= NO_LIMIT:
        T = longer * needed_time(axes, h)
        store_shape(stop, 0, (F(1), -F(1) / T if T > F(0) else F(0), F(0), F(0), T, F(0)))
        stop.clock[ENDS_IN], stop.shapes[0, LENGTH] = T, F(0.5) * T
        return
    brake = begin_shapes(stop, axes, h)
    choose_shapes(stop, axes, brake, F(1) / longer)


@device
def excess_of(stop, axes, h):
    """Return the largest acceleration or jerk of a stop relative to its limit, and whether it keeps other limits."""
    worst, keeps, T = F(0), True, stop.clock[ENDS_IN]
    count = mark_instants(stop) if axes[0, TOP_JERK] < NO_LIMIT else 0
    for i in range(axes.shape[0]):
        row = axes[i]
        A, J, V = row[TOP_ACCELERATION], row[TOP_JERK], row[TOP_SPEED]
        if J >= NO_LIMIT:
            push, jolt, speed, low, high = even_extremes(stop, i, T)
            worst = max(worst, push / A)
        else:
            push, jolt, speed, low, high = curved_extremes(stop, i, count)
            begins = min(abs(acceleration_of(row, row[NEXT], h)), abs(row[AXIS_ACCELERATION]))
            worst = max(worst, push / max(A, begins), jolt / J)
        x, most = row[NEXT] * h, max(V * (F(1) + ROUNDING), min(abs(row[NEXT]), abs(row[AXIS_VELOCITY])))
        inside = x + high <= row[AXIS_UPPER] + WITHIN and x + low >= row[AXIS_LOWER] - WITHIN
        keeps = keeps and inside and max(speed, abs(row[NEXT])) <= most
    return worst, keeps


@device
def turns_inside(variables, limits, stop, jerk, q, pose):
    """Return whether limited rotations are inside their limits at samples of a stop, or no farther outside than q."""
    for row in range(variables.shape[0]):
        if variables[row, BLOCK] != SCALAR and is_limited(limits, row):
            most = max(signed_excess(limits, row, load_quat(q, variables[row, BLOCK_Q])), F(0)) + WITHIN
            before = load_quat(stop.start, variables[row, BLOCK_Q])
            for n in range(INSTANTS + 1):
                write_place(variables, stop, stop.clock[ENDS_IN] * F(n) / F(INSTANTS), jerk, pose)
                turn = load_quat(pose, variables[row, BLOCK_Q])
                way = norm(quat_log(quat_mul(quat_conj(before), turn)))
                if signed_excess(limits, row, turn) > most - way * way:
                    return False
                before = turn
    return True


@device
def write_lines(tick, columns, stop):
    """Write the linear change of each row over a stop on which its goal continues straight."""
    _, g = progress(stop, stop.clock[ENDS_IN])
    for i in range(tick.line.shape[0]):
        tick.line[i] = F(0)
        for j in range(columns.shape[0]):
            way = stop.way[columns[j]] + g * stop.push[columns[j]]
            tick.line[i] += tick.gains[i, j] * way / tick.unit[j]


@device
def lengthen(stop, axes, h, longer, worst):
    """Lengthen a stop that exceeds a limit by the factor ``worst``; return the new ``longer``, see ``shape_stop``.

    Its bends grow with the square of its displacement.
    """
    longer *= min(LONGER * worst, MOST_LONGER)
    before = stop.shapes[0, LENGTH]
    shape_stop(stop, axes, h, longer)
    part = stop.shapes[0, LENGTH] / before
    for n in range(MOST_NODES):
        for i in range(stop.way.shape[0]):
            stop.bends[n, i] *= part * part
    return longer


@device
def bound_node(tick, axes, columns, stop, r, g, jerk, h):
    """Bound the next step of a node by the position limits of the axes; return whether all are inside already."""
    inside = True
    for j in range(columns.shape[0]):
        i = columns[j]
        x = axes[i, NEXT] * h + place_of(stop, i, r, g, jerk)
        low, high = axes[i, AXIS_LOWER] - x, axes[i, AXIS_UPPER] - x
        inside = inside and low <= WITHIN and high >= -WITHIN
        tick.least[j], tick.most[j] = low / tick.unit[j], high / tick.unit[j]
    return inside


@apart
def curve_stop(held, variables, axes, stop, h, longer):
    """Find the curvature of the held rows along the velocities with which a stop begins, and shape the stop with it."""
    tick, columns, size = held[3], held[4], F(0)
    for i in range(axes.shape[0]):
        size = max(size, abs(stop.way[i]))
        stop.push[i] = F(0)
    if size > SHORT:
        go_to(held, variables, stop, instant_of(stop, F(0.5)), True, tick.pose)
        promised_residual(held, tick.pose, F(-1), F(0))
        for j in range(columns.shape[0]):
            tick.least[j], tick.most[j] = F(-math.inf), F(math.inf)
        promised_step(held, False)
        per = F(0.5) * stop.shapes[0, LENGTH]
        for j in range(columns.shape[0]):
            stop.curve[columns[j]] = F(2) * tick.shift[j] / (per * per)
    shape_stop(stop, axes, h, longer)


@inline
def kind_of(count, jerk):
    """Return the set of nodes of a stop with ``count`` nodes."""
    return (2 if count > NODES else 1) if jerk else 0


@apart
def bend_stop(held, variables, axes, stop, count, closed, h):
    """Move nodes of a stop whose error exceeds ``closed`` onto the held rows, by one Newton step.

    Returns:
        The largest error of a node before the step.
    """
    tick, columns, follows = held[3], held[4], leads_promised(held)
    jerk, T = axes[0, TOP_JERK] < NO_LIMIT, stop.clock[ENDS_IN]
    per = F(0) if jerk else F(4) * h / (F(2) * T + h)
    kind, most = kind_of(count, jerk), F(0)
    ties = (CLOSED_WITH_JERK if jerk else CLOSED) * smallest_tolerance(held[0])
    ties = ties / (NODE * room_of(held, axes, T, count, h)) if is_tied(held) else F(0)
    for k in range(count):
        part = F(1) if k == count - 1 else NODES_AT[kind][k]
        t = instant_of(stop, part) if k < count - 1 else T
        go_to(held, variables, stop, t, jerk, tick.pose)
        left = promised_residual(held, tick.pose, part, ties)
        if not bound_node(tick, axes, columns, stop, part, progress(stop, t)[1], jerk, h):
            most = F(math.inf)
        most = max(most, left)
        if most <= closed:
            continue
        promised_step(held, follows)
        for j in range(columns.shape[0]):
            move_node(stop, columns[j], k, -1 if count == 1 else kind, tick.shift[j], per)
        begin_ways(stop, axes, h)
    return most


@device
def most_off(held, variables, stop, count, jerk):
    """Return the largest error of promised rows between the nodes of a stop."""
    tick, kind, most = held[3], kind_of(count, jerk), F(0)
    for n in range((1 if count == 1 else 2) + (1 if jerk else 0)):
        part = OFF_ONE[n] if count == 1 else MOST_OFF[kind][n]
        go_to(held, variables, stop, instant_of(stop, part), jerk, tick.pose)
        most = max(most, promised_residual(held, tick.pose, part, F(0)))
    return most


@inline
def is_tied(held):
    """Return whether the body has loops."""
    return has_loops(held[0].loops)


@device
def room_of(held, axes, T, count, h):
    """Return the least displacement (radians, length scales) of an axis for which closing loops leaves room.

    Closing the poses of a stop of time T with ``count`` nodes moves each axis between the nodes; see ``stays_closed``.
    """
    tick, columns, push, jolt = held[3], held[4], F(math.inf), F(math.inf)
    for j in range(columns.shape[0]):
        push = min(push, axes[columns[j], TOP_ACCELERATION] / tick.unit[j])
        jolt = min(jolt, axes[columns[j], TOP_JERK] / tick.unit[j])
    t = max(T, h)
    room = push * t * t / (WAVES if count > 1 else WAVE)
    if axes[0, TOP_JERK] < NO_LIMIT:
        room = min(room, jolt * t * t * t / (JOLTS if count > 1 else JOLT))
    return TIED_SHARE * room


@device
def stays_closed(held, variables, axes, stop, count, h):
    """Return whether a stop keeps its limits if loops are closed at all of its poses.

    Between its nodes, closing a pose moves axes. That motion is about the product of (r - node) for all nodes, times
    r². So its largest velocities and accelerations follow from its size, which is measured where it is largest.
    """
    problem, tick = held[0], held[3]
    T, waves = max(stop.clock[ENDS_IN], h), WAVES if count > 1 else WAVE
    for n in range(1 if count == 1 else 2):
        part = OFF_ONE[0] if count == 1 else MOST_OFF[0][n]
        write_place(variables, stop, instant_of(stop, part), False, tick.pose)
        copy(tick.pose, tick.sample)
        if not close(problem.loops, problem, tick.sample, False, STEPS) <= NEARLY:
            return False
        i = 0
        for k in range(variables.shape[0]):
            at = variables[k, BLOCK_Q]
            moved = tick.sample[at] - tick.pose[at], F(0), F(0)
            size = 1
            if variables[k, BLOCK] != SCALAR:
                moved = quat_log(quat_mul(quat_conj(load_quat(tick.pose, at)), load_quat(tick.sample, at)))
                size = 3
            for c in range(size):
                if not has_room(stop, axes[i + c], i + c, abs(moved[c]), T, waves, h):
                    return False
            i += size
    return True


@device
def has_room(stop, row, i, moved, T, waves, h):
    """Return whether axis i keeps its limits on a stop if closing loops moves it by ``moved``."""
    push, v = waves * moved / (T * T), abs(row[NEXT])
    if push > TIED_SHARE * row[TOP_ACCELERATION]:
        return False
    if v + F(0.05) * push * T > row[TOP_SPEED] and push * T > F(0.5) * v:
        return False
    _, _, _, low, high = even_extremes(stop, i, T)
    x = row[NEXT] * h
    above = high <= F(0) or x + high + moved <= row[AXIS_UPPER] + WITHIN
    return above and (low >= F(0) or x + low - moved >= row[AXIS_LOWER] - WITHIN)


@device
def excess_of_sample(variables, axes, stop, tick, q, gaps):
    """Return the largest part of its limits that an axis uses from ``tick.pose`` to ``tick.sample``; update ``moves``.

    ``gaps`` are the times of this step and of the two before it, seconds.
    """
    step, gap, before = gaps
    worst, i = F(0), 0
    for k in range(variables.shape[0]):
        at, size = variables[k, BLOCK_Q], 1 if variables[k, BLOCK] == SCALAR else 3
        moved = tick.sample[at] - tick.pose[at], F(0), F(0)
        if size == 1:
            x = tick.sample[at] - q[at]
            if x > axes[i, AXIS_UPPER] + WITHIN or x < axes[i, AXIS_LOWER] - WITHIN:
                return F(math.inf)
        else:
            moved = quat_log(quat_mul(quat_conj(load_quat(tick.pose, at)), load_quat(tick.sample, at)))
        for c in range(size):
            row = axes[i + c]
            v = moved[c] / step
            a = F(2) * (v - stop.moves[0, i + c]) / (gap + step)
            j = F(3) * (a - stop.moves[1, i + c]) / (before + gap + step)
            begins = acceleration_of(row, row[NEXT], gap)
            fastest = max(row[TOP_SPEED], min(abs(row[NEXT]), abs(row[AXIS_VELOCITY])))
            hardest = max(row[TOP_ACCELERATION], min(abs(begins), abs(row[AXIS_ACCELERATION])))
            worst = max(worst, abs(v) / fastest, abs(a) / hardest, abs(j) / row[TOP_JERK])
            stop.moves[0, i + c], stop.moves[1, i + c] = v, a
        i += size
    return worst


@apart
def worst_sample(held, variables, axes, stop, q, h):
    """Return the largest part of a limit that the samples of a stop use, with loops closed, by divided differences.

    It is infinite if a sample cannot be closed or leaves position limits. If ticks are even, the samples are ticks, up
    to EXACT of them. Otherwise they are evenly spaced, and a part of the limits is left for what is between them.
    """
    problem, tick, T = held[0], held[3], stop.clock[ENDS_IN]
    count, first, t, worst = math.ceil(T / h - ROUNDED), FIRST, F(0), F(0)
    kept, rest = F(1) - ROUNDED, h
    even = abs(axes[0, GAP] - h) + abs(axes[0, GAP_BEFORE] - h) <= ROUNDED * h
    if count > EXACT or not even:
        first = FIRST if even else 0
        kept, rest, count = F(1) - COARSE, (T - F(first) * h) / F(EXACT - first), EXACT
    before, gap = axes[0, GAP], h
    for i in range(axes.shape[0]):
        stop.moves[0, i], stop.moves[1, i] = axes[i, NEXT], acceleration_of(axes[i], axes[i, NEXT], h)
    copy(stop.start, tick.pose)
    for n in range(1, count + AFTER + 1):
        step = h if n <= first else rest
        t += step
        write_place(variables, stop, min(t, T), True, tick.sample)
        if is_tied(held) and not close(problem.loops, problem, tick.sample, False, STEPS) <= NEARLY:
            return F(math.inf)
        worst = max(worst, excess_of_sample(variables, axes, stop, tick, q, (step, gap, before)) / kept)
        if worst > MOST_LONGER:
            return worst
        copy(tick.sample, tick.pose)
        before, gap = gap, step
    return worst


@apart
def find_stop(held, body, axes, q, off, stop, h):
    """Find a stop of the whole body after the chosen velocities (``NEXT``); return whether one is found.

    Its nodes need not be nearer to the held rows than its start is, as no short stop could correct that.

    Args:
        held: See ``open_held``.
        body: Variables and limits of the skeleton.
        axes: The state of all axes.
        q: Joint values before the tick, (nq,), of the robot.
        off: Error of the held rows where the stop begins, in tolerances.
        stop: Written.
        h: Time of the tick.
    """
    variables, limits = body
    tick = held[3]
    go_to_next(held, variables, axes, q, tick.sample, h)
    held[12][1][ALONG_BEGIN] = held[12][1][ALONG_POSE]
    copy(tick.sample, stop.start)
    for n in range(MOST_NODES):
        for i in range(axes.shape[0]):
            stop.bends[n, i] = stop.curve[i] = F(0)
    jerk, tied = axes[0, TOP_JERK] < NO_LIMIT, is_tied(held)
    longer, spare = F(1) if jerk else spare_of(held), F(1) / (F(1) - TIED_SHARE) if tied else F(1)
    shape_stop(stop, axes, h, longer)
    T, stop.clock[PASSED] = stop.clock[ENDS_IN], F(0)
    if T <= F(0):
        for i in range(axes.shape[0]):
            stop.way[i] = F(0)
        return True
    smallest, follows, count = smallest_tolerance(held[0]), leads_promised(held), 1
    closed = (min(max(off, CLOSED_WITH_JERK), OFF_AT_NODES) if jerk else CLOSED) * smallest
    if follows:
        note_first_rows(held, stop.start)
    if jerk and holds_promised(held):
        curve_stop(held, variables, axes, stop, h, longer)
    for _ in range(ROUNDS):
        begin_ways(stop, axes, h)
        worst, keeps = excess_of(stop, axes, h)
        worst *= spare
        if worst > F(1) + ROUNDING:
            longer = lengthen(stop, axes, h, longer, worst)
            continue
        if not (follows or holds_promised(held)):
            return keeps and turns_inside(variables, limits, stop, jerk, q, tick.pose)
        if follows:
            write_lines(tick, held[4], stop)
        left = bend_stop(held, variables, axes, stop, count, closed, h)
        if left > (NEAR * smallest if jerk else closed):
            continue
        off = most_off(held, variables, stop, count, jerk)
        closes = True
        if tied and not jerk:
            closes = stays_closed(held, variables, axes, stop, count, h)
        elif (tied or follows_path(held)) and jerk and left <= closed and off <= OPEN * smallest:
            worst = worst_sample(held, variables, axes, stop, q, h)
            closes = worst <= F(1)
            if F(1) < worst < MOST_LONGER:
                longer = lengthen(stop, axes, h, longer, worst)
                continue
        if left <= closed and off <= OPEN * smallest and closes:
            return keeps and turns_inside(variables, limits, stop, jerk, q, tick.pose)
        if off > F(2) * OPEN * smallest or left <= closed:
            if count == (MOST_NODES if jerk else NODES):
                return False
            count = NODES if count == 1 else MOST_NODES
    return False


@device
def go_to_next(held, variables, axes, q, out, h):
    """Write the next sample to ``out`` (nq,), and note its coordinate on the path."""
    move(variables, axes, q, out, h)
    along = held[12][1]
    along[ALONG_POSE] = along[ALONG_NOW] + axes[axes.shape[0] - 1, NEXT] * h


@device
def plan_tick(held, variables, axes, known, q, h):
    """Choose the velocities of the next sample of the known stop, from q (nq,)."""
    problem, tick = held[0], held[3]
    jerk, t = axes[0, TOP_JERK] < NO_LIMIT, known.clock[PASSED]
    go_to(held, variables, known, t, jerk, tick.pose)
    before = held[12][1][ALONG_POSE]
    go_to(held, variables, known, t + h, jerk, tick.sample)
    axes[axes.shape[0] - 1, NEXT] = (held[12][1][ALONG_POSE] - before) / h
    if is_tied(held):
        copy(q, tick.pose)
        close(problem.loops, problem, tick.sample, False, STEPS)
    i = 0
    for row in range(variables.shape[0]):
        at = variables[row, BLOCK_Q]
        if variables[row, BLOCK] == SCALAR:
            axes[i, NEXT] = (tick.sample[at] - tick.pose[at]) / h
            i += 1
            continue
        w = quat_log(quat_mul(quat_conj(load_quat(tick.pose, at)), load_quat(tick.sample, at)))
        for c in range(3):
            axes[i + c, NEXT] = w[c] / h
        i += 3


@device
def correction_of(held, kept, ties):
    """Subtract a part of the errors before the tick from those of the held rows; return the largest error left.

    With a limit of the jerk, that part is corrected where the body stops, as the correction goes on after the next
    sample. Loops are closed at once; ``ties`` is the weight of their errors.
    """
    work, goal_of_row, states, (still, _), rates = held[1], held[5], held[6], held[7], held[9]
    most = F(0)
    for i in range(still):
        if goal_of_row[i] == TIED:
            most = max(most, ties * abs(work.e[i]))
        elif is_held(states, goal_of_row, i):
            work.e[i] -= kept * rates[2, i]
            most = max(most, abs(work.e[i]))
    return most


@device
def put_back(held, variables, axes, q, h):
    """Change the chosen velocities so that the next sample satisfies the held rows; return the error, in tolerances."""
    tick, columns, smallest = held[3], held[4], smallest_tolerance(held[0])
    jerk = axes[0, TOP_JERK] < NO_LIMIT
    ties, rounds = (CLOSED * smallest / SHUT, 5) if is_tied(held) else (F(0), 2)
    kept = F(1) - h / tick.slope[0] if jerk else F(0)
    for n in range(rounds + 1):
        go_to_next(held, variables, axes, q, tick.pose, h)
        left = promised_residual(held, tick.pose, F(-1), ties)
        open_by = correction_of(held, kept, ties) if jerk else left
        if open_by <= CLOSED * smallest or n == rounds:
            return left / smallest
        for j in range(columns.shape[0]):
            row = axes[columns[j]]
            tick.least[j] = min(row[NEXT_LOWER] - row[NEXT], F(0)) * h / tick.unit[j]
            tick.most[j] = max(row[NEXT_UPPER] - row[NEXT], F(0)) * h / tick.unit[j]
        promised_step(held, False)
        for j in range(columns.shape[0]):
            row = axes[columns[j]]
            row[NEXT] = min(max(row[NEXT] + tick.shift[j] / h, row[NEXT_LOWER]), row[NEXT_UPPER])
    return F(math.inf)


@device
def tools_keep(held, variables, stop, jerk, q, h):
    """Return whether end effectors keep their limits in a tick from q, and at samples of the stop after it.

    Samples are denser at the start of the stop, as most stops are fastest there. If the speed rises between two
    samples, the same rise is added as a margin.
    """
    if not limits_tools(held):
        return True
    problem, work, tick, tools = held[0], held[1], held[3], held[8]
    update_frames(problem, q, work.frames)  # targets on a path have replaced the places
    note_places(problem, tick, work.frames, tools)
    update_frames(problem, stop.start, work.frames)
    keeps = most_used(problem, tick, work.frames, tools, h) <= F(1)
    T, last = stop.clock[ENDS_IN], F(0)
    for n in range(1, SAMPLES + 1 if keeps and T > F(0) else 1):
        note_places(problem, tick, work.frames, tools)
        begin, end = F(n - 1) / F(SAMPLES), F(n) / F(SAMPLES)
        write_place(variables, stop, end * end * T, jerk, tick.pose)
        update_frames(problem, tick.pose, work.frames)
        part = most_used(problem, tick, work.frames, tools, (end * end - begin * begin) * T)
        keeps = keeps and part + (max(part - last, F(0)) if n > 1 else F(0)) <= AHEAD
        last = part
    update_frames(problem, q, work.frames)
    note_places(problem, tick, work.frames, tools)
    return keeps


@device
def keep_tick(held, body, axes, known, found, q, h):
    """Correct the chosen velocities onto the held rows; return whether a stop is found, and store it as ``known``."""
    off = put_back(held, body[0], axes, q, h)
    if not (off <= BEGINS_OPEN and find_stop(held, body, axes, q, off, found, h)):
        return False
    jerk = axes[0, TOP_JERK] < NO_LIMIT
    if not (tools_keep(held, body[0], found, jerk, q, h) and stays_apart(held, body, found, jerk, q)):
        return False
    copy(found.start, known.start)
    copy(found.way, known.way)
    copy(found.push, known.push)
    copy(found.curve, known.curve)
    for n in range(MOST_NODES):
        copy(found.bends[n], known.bends[n])
    for k in range(2):
        copy(found.shapes[k], known.shapes[k])
    copy(found.clock, known.clock)
    known.clock[KNOWN] = F(1)
    go_to(held, body[0], found, found.clock[ENDS_IN], jerk, known.end)
    along = held[12][1]
    along[ALONG_END], along[ALONG_WAITS] = along[ALONG_POSE], F(0)
    if is_tied(held):
        close(held[0].loops, held[0], known.end, False, STEPS)
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
    """Return the number of levels whose followed goals are promised, see ``promised_rows``."""
    problem, (_, led) = held[0], held[7]
    k = 0
    while k < problem.levels.shape[0] - 1 and problem.levels[k + 1] <= led:
        k += 1
    return k


@device
def take_part(axes, begin, end, share):
    """Choose velocities interpolated from ``begin`` to ``end`` by ``share``."""
    for i in range(axes.shape[0]):
        axes[i, NEXT] = begin[i] + share * (end[i] - begin[i]) if share != F(1) else end[i]


@device
def brake_tick(held, variables, axes, known, q, h):
    """Choose the velocities of a braking body without solving levels, if possible; return whether that worked."""
    if not has_promise(held):
        known.clock[KNOWN] = F(0)
        return True
    if known.clock[KNOWN] == F(0) or axes[0, TOP_JERK] >= NO_LIMIT:
        return False
    plan_tick(held, variables, axes, known, q, h)
    known.clock[PASSED] += h
    return True


@device
def accept_tick(held, body, axes, together, levels, stops, q, h):
    """Change the velocities of a tick, if no stop after it is found.

    First, levels below the highest one that moves follow the known stop. Then velocities are interpolated between the
    known stop and the tick. If goals are followed above far goals, the interpolation begins instead at a tick with
    only these goals, so that lower goals do not make them worse. Without a known stop (``KNOWN``), as after a change
    of limits, each axis brakes by its own stop. If no stop is found then either, the tick is taken as it is.

    Returns:
        The number of linear systems that were solved.
    """
    (variables, _), (known, found) = body, stops
    tick = held[3]
    n = axes.shape[0]
    for i in range(n):
        tick.chosen[i] = axes[i, NEXT]
        axes[i, NEXT] = axes[i, PLAN_NEXT]
    if known.clock[KNOWN] != F(0):
        plan_tick(held, variables, axes, known, q, h)
    for i in range(n):
        tick.plan[i] = axes[i, NEXT]
        axes[i, NEXT] = tick.chosen[i]
    if keep_tick(held, body, axes, known, found, q, h):
        return F(0)
    follows, holds = leads_promised(held), limits_motion(held) or holds_promised(held)
    count = led_level(held) if follows else min(moving_level(held) + 1, levels)
    solved = solve_tick(held, axes, together, q, h, count, True)
    if follows:
        for i in range(n):
            tick.base[i] = axes[i, NEXT]
        share = F(0.5)
        for k in range(SHARES):
            take_part(axes, tick.base, tick.chosen, share if k < SHARES - 1 else F(0))
            if keep_tick(held, body, axes, known, found, q, h):
                return solved
            share *= F(0.5)
        if not holds:
            take_part(axes, tick.base, tick.base, F(1))
            known.clock[KNOWN] = F(0)
            return solved
        if is_tied(held):  # loops may leave no straight motion
            still, _ = held[7]
            closed = *held[:7], (still, 0), *held[8:]
            take_part(axes, tick.base, tick.base, F(1))
            if keep_tick(closed, body, axes, known, found, q, h):
                return solved
    for i in range(n):
        tick.chosen[i] = tick.base[i] if follows else axes[i, NEXT]
    share = F(1)
    for _ in range(MORE_SHARES if known.clock[PASSED] >= known.clock[ENDS_IN] else SHARES):
        take_part(axes, tick.plan, tick.chosen, share)
        if keep_tick(held, body, axes, known, found, q, h):
            return solved
        share *= F(0.5)
    brakes = known.clock[KNOWN] != F(0) or (limits_motion(held) and not is_tied(held))
    take_part(axes, tick.plan, tick.chosen, F(0) if brakes else F(1))
    if is_tied(held) and not brakes:
        put_back(held, variables, axes, q, h)
    known.clock[PASSED] += h
    return solved


@apart
def rate_along(held, variables, axes, q, h):
    """Write to ``tick.shift`` the least velocities of all columns per velocity along the path, at the next sample.

    Axes at a bound of their velocities do not go beyond. Return whether the rows are kept.
    """
    _, work, _, tick, columns, goal_of_row, states, (still, _), _, _, _, _, (_, along) = held
    go_to_next(held, variables, axes, q, tick.pose, h)
    promised_residual(held, tick.pose, F(-1), F(0))
    copy(work.e, tick.first)
    along[ALONG_POSE] += STEP_ALONG
    promised_residual(held, tick.pose, F(-1), F(0))
    size = F(0)
    for i in range(work.e.shape[0]):
        work.e[i] = (work.e[i] - tick.first[i]) / STEP_ALONG
        size = max(size, abs(work.e[i])) if i < still and is_held(states, goal_of_row, i) else size
    for j in range(columns.shape[0]):
        row = axes[columns[j]]
        slack = ROUNDING * row[TOP_SPEED]
        tick.least[j] = F(0) if row[NEXT] <= row[NEXT_LOWER] + slack else F(-math.inf)
        tick.most[j] = F(0) if row[NEXT] >= row[NEXT_UPPER] - slack else F(math.inf)
    promised_step(held, False)
    for i in range(still):
        left = work.e[i] if is_held(states, goal_of_row, i) else F(0)
        for j in range(columns.shape[0] if left != F(0) else 0):
            left -= work.J[i, j] * tick.shift[j] / tick.unit[j]
        if abs(left) > OPEN_ROWS * size:
            return False
    return size > F(0)


@apart
def push_along(held, variables, axes, q, h):
    """Add to the chosen velocities the fastest motion along the path that the bounds of all velocities leave."""
    tick, columns, last = held[3], held[4], axes.shape[0] - 1
    for _ in range(FREE_ROUNDS):
        if not rate_along(held, variables, axes, q, h):
            return
        room = axes[last, AXIS_UPPER] / h - axes[last, NEXT]
        more = room
        for j in range(columns.shape[0]):
            row, v = axes[columns[j]], tick.shift[j]
            if v > UNMOVED:
                more = min(more, (row[NEXT_UPPER] - row[NEXT]) / v)
            elif v < -UNMOVED:
                more = min(more, (row[NEXT_LOWER] - row[NEXT]) / v)
        for j in range(columns.shape[0] if more > F(0) else 0):
            row = axes[columns[j]]
            row[NEXT] = min(max(row[NEXT] + more * tick.shift[j], row[NEXT_LOWER]), row[NEXT_UPPER])
        axes[last, NEXT] += max(more, F(0))
        if more >= room:
            return


@apart
def slow_tools(held, axes, q, h):
    """Reduce the motion along the path, from ``plan`` to ``chosen``, to the speed limits of end effectors."""
    tick, columns = held[3], held[4]
    if not limits_tools(held):
        return
    for j in range(columns.shape[0]):
        tick.shift[j] = axes[columns[j], NEXT]
    part = tool_part(held, tick.shift, q, h)
    if part <= CRUISE:
        return
    for j in range(columns.shape[0]):
        tick.shift[j] = tick.plan[columns[j]]
    least = tool_part(held, tick.shift, q, h)
    take_part(axes, tick.plan, tick.chosen, max((CRUISE - least) / (part - least), F(0)) if part > least else F(0))
    for i in range(axes.shape[0]):
        tick.chosen[i] = axes[i, NEXT]


@apart
def fits_along(held, variables, axes, stop, q, h):
    """Return whether a stop without bends after the chosen velocities keeps its limits and the end of the path."""
    for i in range(axes.shape[0]):
        stop.curve[i] = F(0)
        for n in range(MOST_NODES):
            stop.bends[n, i] = F(0)
    shape_stop(stop, axes, h, F(1) if axes[0, TOP_JERK] < NO_LIMIT else spare_of(held))
    if stop.clock[ENDS_IN] <= F(0):
        return True
    begin_ways(stop, axes, h)
    worst, keeps = excess_of(stop, axes, h)
    if not keeps or worst > F(1) + ROUNDING:
        return False
    move(variables, axes, q, stop.start, h)
    return tools_keep(held, variables, stop, axes[0, TOP_JERK] < NO_LIMIT, q, h)


@device
def stay_along(held, variables, axes, known, q, h):
    """Choose the velocities of a tick in which the body follows the known stop, which ends on the path."""
    along = held[12][1]
    plan_tick(held, variables, axes, known, q, h)
    along[ALONG_WAITS] = along[ALONG_WAITS] + F(1) if known.clock[PASSED] >= known.clock[ENDS_IN] else F(0)
    known.clock[PASSED] += h


@device
def ends_along(held, brakes):
    """Return whether the known stop ends where the body has to stop: at the end of the path, or as it brakes."""
    path, along = held[12]
    return brakes or path[path.shape[0] - 1, PATH_PLACE] - along[ALONG_END] <= AT_END


@apart
def go_along(held, body, axes, together, levels, stops, q, h):
    """Choose the velocities of a tick along the path, after ``begin_tick``.

    Goals without a target take what the path leaves. If no faster motion is found, the body follows the known stop.

    Returns:
        The number of linear systems that were solved.
    """
    (variables, _), (known, found) = body, stops
    problem, tick, columns, goal_of_row = held[0], held[3], held[4], held[5]
    n, solved = axes.shape[0], F(0)
    plan_tick(held, variables, axes, known, q, h)
    for i in range(n):
        tick.plan[i] = axes[i, NEXT]
    push_along(held, variables, axes, q, h)
    for i in range(n):
        tick.chosen[i] = axes[i, NEXT]
    slow_tools(held, axes, q, h)
    share = F(1)
    if not fits_along(held, variables, axes, found, q, h):
        low, high = F(0), F(1)
        for _ in range(FITS):
            share = F(0.5) * (low + high)
            take_part(axes, tick.plan, tick.chosen, share)
            if fits_along(held, variables, axes, found, q, h):
                low = share
            else:
                high = share
        share = low
    take_part(axes, tick.plan, tick.chosen, share)
    for i in range(n):
        tick.base[i] = axes[i, NEXT]
    for j in range(columns.shape[0]):
        tick.choice[j] = axes[columns[j], NEXT]
    write_stops(tick, axes, columns, together, h, F(-1))
    if others_lead(problem, goal_of_row):
        for j in range(columns.shape[0]):
            tick.reference[j] = axes[columns[j], NEXT]
        solved = solve_tick(held, axes, together, q, h, levels, False)
        if keep_tick(held, body, axes, known, found, q, h):
            return solved
    share = F(1)
    for _ in range(MORE_SHARES if known.clock[PASSED] >= known.clock[ENDS_IN] else SHARES):
        take_part(axes, tick.plan, tick.base, share)
        if axes[n - 1, NEXT] > tick.plan[n - 1] and keep_tick(held, body, axes, known, found, q, h):
            return solved
        share *= F(0.5)
    stay_along(held, variables, axes, known, q, h)
    return solved


@device
def others_lead(problem, goal_of_row):
    """Return whether there are rows of goals without targets."""
    for i in range(problem.levels[problem.levels.shape[0] - 1]):
        if goal_of_row[i] < 0 and goal_of_row[i] != TIED:
            return True
    return False
