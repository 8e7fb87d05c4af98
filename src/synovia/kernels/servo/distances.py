"""Distances of clearance goals in a tick by levels: one-sided rows where the body stops, and what is checked.

Rows belong to the place where all axes come to rest together after the chosen velocities, whatever their targets do.
Contacts are found there, so that rows are exact for a body that touches. The rows are those of the problem; constraints
are the level above all others.

Rows are linear, and do not see what is on the path to the stop. So a tick is taken only if the path to its sample, and
the stop of the whole body after it, keep the distances of all constraints (see ``goals.ways``). A pair that is too near
already must not come nearer than its largest distance since then, within the slack.
"""

import math

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals.clearance import (
    clearance_residual,
    clearance_rows,
    find_contacts,
    has_contact,
    ignore_contacts,
    is_nearest,
    keeps_clear,
    lacking,
)
from synovia.kernels.goals.term import NEVER
from synovia.kernels.goals.ways import count_axes, displace, go, left_of_pair, nearer, open_ways, shift
from synovia.kernels.hierarchy.inequalities import write_slack
from synovia.kernels.hierarchy.step import update_frames
from synovia.kernels.layout import (
    AWAY,
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    CLEAR_GOAL,
    CLEAR_ROW,
    CLEAR_WEIGHT,
    FIRST_SLOT,
    GAP,
    SCALAR,
    SEEN,
    SLACK,
    SLOTS,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
)
from synovia.kernels.loops.closing import STEPS, close
from synovia.kernels.loops.ties import has_loops
from synovia.kernels.math.rotations import load_quat, quat_exp, quat_mul, quat_normalize, store_quat
from synovia.kernels.servo.axis import acceleration_of
from synovia.kernels.servo.places import ENDS_IN, farthest_of, instant_of, is_straight, write_place
from synovia.kernels.servo.stop import NO_LIMIT, sync_time
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_clear, open_work
from synovia.kernels.tree.variables import clamp_block

SMALL = F(1e-6)  # fraction of the velocity limit: step of a finite difference
SPARED = F(0.05)  # margin in tolerances; not larger than that of solved poses, or the body could not reach them
PRESSED = F(1.2)  # factor of the slack: a body that is nearer has not come so near by its own motion
AGAIN = F(0.1)  # part of the slack by which a pair may come nearer again, after a motion that was not checked
PIECES, PIECES_WITH_JERK = 8, 16  # pieces of a stop that is not straight; each is checked as if straight


@inline
def ignore_clearance(problem):
    """Let residuals ignore clearance goals: their contacts are found by ``write_contacts`` only."""
    if keeps_clear(problem.clear):
        ignore_contacts(problem.clear, 1)


@inline
def keeps_apart(held):
    """Return whether the body keeps distances in every tick."""
    return held[10][3].shape[0] > 0


@device
def note_pressed(problem, work, states, apart, axes):
    """Write to ``states`` how much nearer than asked each clearance goal is (AWAY), 0 if a motion may come so near.

    Frames in ``work`` are those of the body now.
    """
    clear = problem.clear
    nearest = F(0)
    if apart[3].shape[0] > 0:
        ways = open_ways(open_clear(apart[0], apart[1], apart[2]).clear, problem.nq, axes, apart[3])
        for u in range(ways.left.shape[0]):
            nearest = min(nearest, ways.left[u] + PRESSED * ways.numbers[SLACK])
    constrains, top = apart[3].shape[0] > 0, problem.levels[2 if has_loops(problem.loops) else 1]
    for t in range(clear.ints.shape[0]):
        states[clear.ints[t, CLEAR_GOAL], AWAY] = F(0)
    ignore_contacts(clear, 0)
    for t in range(clear.ints.shape[0]):
        g, lack = clear.ints[t, CLEAR_GOAL], -nearest
        if not (constrains and clear.ints[t, CLEAR_ROW] < top):
            find_contacts(clear, problem, work.frames, t)
            lack = F(0)
            for slot in range(clear.ints[t, FIRST_SLOT], clear.ints[t, FIRST_SLOT] + clear.ints[t, SLOTS]):
                if is_nearest(clear, slot):
                    lack = max(lack, lacking(clear, problem, t, slot) - problem.tolerance)
        states[g, AWAY] = max(states[g, AWAY], lack)
    ignore_contacts(clear, 1)


@device
def write_moved(problem, velocities, q, time, out):
    """Write the pose after velocities of all columns, for a time, within the limits of positions."""
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            out[at] = q[at] + time * velocities[v]
        else:
            w = (time * velocities[v], time * velocities[v + 1], time * velocities[v + 2])
            store_quat(out, at, quat_normalize(quat_mul(load_quat(q, at), quat_exp(w))))
        clamp_block(problem.variables, problem.limits, k, out)


@device
def motion_alone(row, w, h):
    """Return the velocity and acceleration with which an axis begins to stop after its next velocity w."""
    if row[TOP_JERK] >= NO_LIMIT:
        return w, F(0)
    a = acceleration_of(row, w, h)
    return w + F(0.5) * h * a, a


@device
def time_alone(row, w, h):
    """Return the time that an axis needs to stop after its next velocity w, if all axes stop in equal time."""
    u, a = motion_alone(row, w, h)
    return sync_time(u, a, row[TOP_ACCELERATION], row[TOP_JERK], h)


@device
def reach_of(row, w, T, h):
    """Return how far an axis goes after velocity w in a stop of time T, and the derivatives by w and by T."""
    if row[TOP_JERK] >= NO_LIMIT:
        double = F(2) * T + h
        reach = h + T * T / double
        return reach * w, reach, F(2) * T * (T + h) / (double * double) * w
    u, a = motion_alone(row, w, h)
    per, arc = F(2) / (row[GAP] + h), T * T / F(12)
    slope = h + F(0.5) * T * (F(1) + F(0.5) * h * per) + arc * per
    return h * w + F(0.5) * T * u + arc * a, slope, F(0.5) * u + a * T / F(6)


@apart
def write_contacts(held, axes, q, time, spare, first):
    """Write rows of contacts where the body stops after the chosen velocities, and their slacks from ``first`` on.

    ``spare`` multiplies the least stopping time. Afterwards, the frames in ``work`` are those of the stop.
    """
    problem, work, h, tick, columns = held[0], held[1], held[2], held[3], held[4]
    clear, n = problem.clear, work.J.shape[1]
    T, slowest = F(0), -1
    for j in range(n):
        t = spare * time_alone(axes[columns[j]], tick.choice[j], time)
        if t > T:
            T, slowest = t, j
    for j in range(n):
        tick.least[j], tick.most[j], _ = reach_of(axes[columns[j]], tick.choice[j], T, time)
    copy(q, tick.sample)
    write_moved(problem, tick.least, q, F(1), tick.sample)
    update_frames(problem, tick.sample, work.frames)
    ignore_contacts(clear, 0)
    clearance_residual(clear, problem, work.frames, work.e)
    clearance_rows(clear, problem, tick.sample, work.frames, work.J)
    for t in range(clear.ints.shape[0]):
        for i in range(clear.ints[t, CLEAR_ROW], clear.ints[t, CLEAR_ROW] + clear.ints[t, SLOTS]):
            total = F(0)
            for j in range(n):
                h.G[i, j] = work.J[i, j] * tick.most[j] / tick.slope[j]
                _, _, longer = reach_of(axes[columns[j]], tick.choice[j], T, time)
                total += work.J[i, j] * longer / tick.unit[j]
            if slowest >= 0:
                row, w = axes[columns[slowest]], tick.choice[slowest]
                d = math.copysign(SMALL * row[TOP_SPEED], w)
                per = spare * (time_alone(row, w + d, time) - time_alone(row, w, time)) / d
                h.G[i, slowest] += total * per * tick.unit[slowest] / tick.slope[slowest]
        w, row = clear.data[t, CLEAR_WEIGHT] / problem.reach, clear.ints[t, CLEAR_ROW]
        for slot in range(clear.ints[t, FIRST_SLOT], clear.ints[t, FIRST_SLOT] + clear.ints[t, SLOTS]):
            lack = lacking(clear, problem, t, slot) - (F(1) - SPARED) * problem.tolerance
            write_slack(h, first + slot, row, w * lack, NEVER, has_contact(clear, slot))
            row += 1
    ignore_contacts(clear, 1)


@device
def path_sizes(variables, stop, jerk, sizes):
    """Write to ``sizes`` how far each axis moves on a stop at most; the size of a rotation is on its first axis.

    Returns:
        Whether the stop is straight.
    """
    straight, i = not jerk, 0
    for k in range(variables.shape[0]):
        count = 1 if variables[k, BLOCK] == SCALAR else 3
        size = F(0)
        for c in range(i, i + count):
            straight = straight and is_straight(stop, c)
            size += farthest_of(stop, c, jerk) * farthest_of(stop, c, jerk)
            sizes[c] = F(0)
        sizes[i] = math.sqrt(size)
        i += count
    return straight


@device
def write_robot(held, whole, stop, ways, r, jerk, out):
    """Write to ``out`` (nq,) the pose of the robot on a stop at the progress r, with closed loops."""
    problem, tick = held[0], held[3]
    if r <= F(0):
        copy(stop.start, tick.pose)
    else:
        write_place(whole[0], stop, instant_of(stop, r) if r < F(1) else stop.clock[ENDS_IN], jerk, tick.pose)
        if has_loops(problem.loops):
            close(problem.loops, problem, tick.pose, False, STEPS)
    shift(whole, tick.pose, ways.offset, F(1), out)


@device
def measure_pairs(problem, frames, ways, q, left):
    """Write to ``left`` the margin at q of each pair that is not ignored (infinite)."""
    forward(problem.tree, q, frames)
    for u in range(left.shape[0]):
        if left[u] < F(math.inf):
            left[u] = left_of_pair(problem.clear, frames, u, ways.numbers[SEEN])


@device
def forget_distant(ways, both):
    """Ignore pairs (set ``rest`` to infinity) that no motion within ``sizes`` brings too near; return how many remain.

    If ``both``, ``found`` has the margins at the end of the motion, as ``rest`` has those at its start.
    """
    count = 0
    for u in range(ways.rest.shape[0]):
        if ways.rest[u] == F(math.inf):
            continue
        most = nearer(ways.levers, u, ways.sizes)
        if ways.rest[u] > most or (both and ways.rest[u] + ways.found[u] - most > F(2) * ways.least[u]):
            ways.rest[u] = F(math.inf)
        else:
            count += 1
    return count


@apart
def stays_apart(held, body, stop, jerk, q):
    """Return whether a tick from q to the start of a stop, and the stop, keep all distances.

    If so, ``after`` has the margin of each pair after the tick. A body that keeps no distances stays apart.
    """
    if not keeps_apart(held):
        return True
    ints, floats, scratch, memory, _ = held[10]
    problem, work = open_clear(ints, floats, scratch), open_work(ints, scratch)
    whole = body[0], body[1], problem.followers, problem.coupling
    ways = open_ways(problem.clear, problem.nq, count_axes(body[0]), memory)
    last, place = ways.poses[1], ways.poses[2]
    shift(whole, q, ways.offset, F(1), last)
    write_robot(held, whole, stop, ways, F(0), jerk, place)
    copy(ways.left, ways.rest)
    if not go(problem, work.frames, whole, ways, last, place, ways.rest):
        return False
    copy(ways.rest, ways.after)
    straight = path_sizes(body[0], stop, jerk, ways.sizes)
    if forget_distant(ways, False) == 0:
        return True
    measure_pairs(problem, work.frames, ways, place, ways.rest)
    for u in range(ways.rest.shape[0]):
        if ways.rest[u] < F(math.inf):
            ways.after[u] = ways.rest[u]
    if forget_distant(ways, False) == 0:
        return True
    copy(place, last)
    write_robot(held, whole, stop, ways, F(1), jerk, place)
    copy(ways.rest, ways.found)
    measure_pairs(problem, work.frames, ways, place, ways.found)
    for u in range(ways.rest.shape[0]):
        if ways.rest[u] < F(math.inf) and ways.found[u] < ways.least[u]:
            return False
    path_sizes(body[0], stop, jerk, ways.sizes)
    if forget_distant(ways, True) == 0:
        return True
    pieces = 1 if straight else PIECES_WITH_JERK if jerk else PIECES
    for n in range(pieces):
        write_robot(held, whole, stop, ways, F(n + 1) / F(pieces), jerk, place)
        if not go(problem, work.frames, whole, ways, last, place, ways.rest):
            return False
        copy(place, last)
    return True


@apart
def note_distances(held, body, q, to, proven):
    """Note the margins of all pairs after a tick from q to another pose; ``proven`` if ``stays_apart`` has them."""
    ints, floats, scratch, memory, _ = held[10]
    problem, work = open_clear(ints, floats, scratch), open_work(ints, scratch)
    whole = body[0], body[1], problem.followers, problem.coupling
    ways = open_ways(problem.clear, problem.nq, count_axes(body[0]), memory)
    if not proven:
        place = ways.poses[1]
        shift(whole, to, ways.offset, F(1), place)
        displace(whole, q, to, ways.steps, ways.sizes)
        measured = False
        for u in range(ways.rest.shape[0]):
            ways.after[u] = ways.left[u] - nearer(ways.levers, u, ways.sizes)
            if ways.after[u] <= F(0):
                if not measured:
                    forward(problem.tree, place, work.frames)
                    measured = True
                ways.after[u] = left_of_pair(problem.clear, work.frames, u, ways.numbers[SEEN])
    copy(ways.after, ways.left)
    slack = ways.numbers[SLACK]
    for u in range(ways.rest.shape[0]):
        if not proven and ways.left[u] < ways.least[u]:
            ways.least[u] = ways.left[u] - AGAIN * slack
        ways.least[u] = max(ways.least[u], min(ways.left[u], F(0)) - slack)
