"""The goals of a tick: rows, level by level with strict priorities, in the box of velocities of all axes.

A goal that is held has its rows at the next sample. A goal that moves has them where the body stops. For that, all axes
come to rest in the same time, relative to how their targets move (the feed f), so a body with the next velocities w
stops at s = α w + β, with one factor α for axes that belong together (see ``write_stops``): a body that can stop at
its target does not overshoot. From the next sample on, the stop bends with the goals: there, rows are linear in s. As α
is the same for all axes, a motion that changes no row at the stop changes none at the next sample. So lower levels
leave the goals above alone in every sample.

Each Newton step needs the frames, the Jacobian and one solution of the levels (``hierarchy.levels``) in what is left of
the box. A goal that is far goes where the velocities lead that are proposed (``axis.choose``), and all that the levels
leave free stays at these. Its rows count only above a goal that is held: elsewhere the joints go to the answer as far
as goals above allow, and never away from it.
"""

import math

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.compiler.records import cutter, record
from synovia.kernels.goals.residuals import complete_targets, measure, residual
from synovia.kernels.hierarchy.basis import open_levels, reset_column, reset_columns
from synovia.kernels.hierarchy.inequalities import (
    choose_edges,
    general_slacks,
    slack_count,
    write_contact_slacks,
    write_slacks,
)
from synovia.kernels.hierarchy.levels import fix_at_bounds, solve_levels
from synovia.kernels.hierarchy.step import update_frames, update_jacobian
from synovia.kernels.layout import (
    ACTIVE_SIDE,
    AWAY,
    AXIS_ACCELERATION,
    AXIS_LOWER,
    AXIS_TARGET,
    AXIS_UPPER,
    AXIS_VELOCITY,
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    EMERGENCY,
    FAR,
    FEED,
    FEED_ACCELERATION,
    FIRST_RESIDUAL,
    FOLLOWED,
    GAP,
    HELD_STILL,
    MODE,
    NEXT,
    NEXT_LOWER,
    NEXT_UPPER,
    PARTS,
    POSE_COLUMN,
    POSITION,
    REASON,
    RECOVERING,
    REFERENCE,
    ROTATION,
    SCALAR,
    SOLVES,
    SPIN,
    STEP,
    STEP_STIFFNESS,
    TARGET_WIDTH,
    TICK,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
    TURNED_AWAY,
)
from synovia.kernels.math.rotations import load_quat, quat_exp, quat_mul, quat_normalize, store_quat
from synovia.kernels.servo.axis import acceleration_of, reason_of
from synovia.kernels.servo.ball import bound_turn
from synovia.kernels.servo.stop import NO_LIMIT
from synovia.kernels.servo.tools import CRUISE, most_used, write_tools
from synovia.kernels.tree.problem import copy
from synovia.kernels.tree.variables import clamp_block, is_limited, step_unit

MOST_STEPS, NEWTON_STEPS = 10, 2  # steps of a tick, and the last one of Newton's that changes the time of the stop, too
LAST_STEP = F(2e-5)  # radians, reaches: a step of this length ends the others
SHARE = F(0.1)  # least part of a bracket that a step of regula falsi takes off it
ENOUGH = F(3e-4)  # radians, reaches: after a step of this length, its square is what is left
DAMPING, ERROR_DAMPING = F(1e-9), F(0.02)  # of a level: λ = DAMPING + ERROR_DAMPING |e|² (Sugihara 2011)
SMALL = F(1e-6)  # of a limit of the velocity, for a difference
NEAR, NO_LONGER_NEAR = F(0.02), F(0.1)  # reaches, and half of the radians: a goal that is farther away is far
NEARLY = F(10)  # tolerances: a goal that is held stays so within them
LOOSER = F(0.1)  # of what goals that are followed are off on a stop
ROOM = F(1.2)  # times the way to the stop, as that may take longer
ELSEWHERE = F(0.2)  # radians, reaches: an answer that is farther away moves otherwise than the body would
SLOW = F(1e-3)  # of the highest velocity: an axis that is not faster stands still
REST = F(1e-9)  # radians, length units: a body that would go no farther in a tick does not move
SMOOTH = F(0.01)  # of its square: a velocity that changes by less in a tick is one of a target that does not jump
MET, ARRIVED = F(0.02), F(1e-3)  # tolerances; radians, reaches: goals are met, and joints are where they go
ALONG = F(0.1)  # weight of the error of a turning twist about its axis, beside those across it
STILL = F(0.1)  # tolerances: a goal that moves by less in a tick stands still
FARTHEST = F(1e9)  # largest move of a column in a step of the levels: any

Tick = record("Tick", TICK)
open_tick = cutter(Tick, TICK, ("columns", "axes", "nq", "goals", "errors", "residuals"))


@device
def sync_time(v, a, A, J, h):
    """Return the time in which an axis can come to rest, if all come to rest in the same time.

    Without a limit of the jerk, velocities fall evenly: v is the mean of the tick before, of time h. With one, they are
    cubic polynomials of the time, from a velocity v and an acceleration a to rest; their largest jerk is at most
    6 |v| / T² + 4 |a| / T, and their largest acceleration about 1.5 |v| / T.
    """
    if J >= NO_LIMIT:
        return max(abs(v) / A - F(0.5) * h, F(0))
    b = F(2) * abs(a)
    return max((b + math.sqrt(b * b + F(6) * J * abs(v))) / J, F(1.5) * abs(v) / A)


@device
def relative_motion(row, h, w):
    """Return the velocity and acceleration, relative to its target, with which an axis begins to stop after w."""
    a = acceleration_of(row, w, h) - row[FEED_ACCELERATION]
    u = w - row[FEED]
    return (u, F(0)) if row[TOP_JERK] >= NO_LIMIT else (u + F(0.5) * h * a, a)


@device
def time_after(row, h, w):
    """Return the time in which an axis can come to rest after its next velocity w."""
    u, a = relative_motion(row, h, w)
    return sync_time(u, a, row[TOP_ACCELERATION], row[TOP_JERK], h)


@device
def bracketed_time(tick, axes, columns, h, bracket):
    """Return a time for the stop of the body that is nearer to what the chosen velocities need: regula falsi.

    The longer a stop may take, the slower are the velocities that are chosen for it. So the time is between the largest
    one that was too short and the least that was too long; ``bracket`` has both, each with how far it was off.
    """
    early, lacks, late, spares = bracket
    used = needed = F(0)
    for j in range(columns.shape[0]):
        used = max(used, tick.times[j])
        needed = max(needed, time_after(axes[columns[j]], h, tick.choice[j]))
    if needed > used:
        early, lacks = used, needed - used
    else:
        late, spares = used, used - needed
    T = needed
    if lacks > F(0) and spares > F(0):
        share = lacks / (lacks + spares)
        T = early + min(max(share, SHARE), F(1) - SHARE) * (late - early)
    return T, (early, lacks, late, spares)


@device
def write_stops(tick, axes, columns, together, h, fixed):
    """Write where each column stops after its next velocity: ``slope`` times that, plus ``rest``.

    The slowest column of a part sets the time of its stop (``times``): ``lead`` is how fast that grows with its
    velocity, and ``turn`` how far each column then goes farther. A time that is ``fixed``, 0 or more, is that of all
    stops.
    """
    n = columns.shape[0]
    is_fixed = fixed >= F(0)
    for j in range(n):
        tick.times[j] = fixed if is_fixed else time_after(axes[columns[j]], h, tick.choice[j])
        tick.lead[j] = F(0)
    for j in range(n):
        slowest = j
        for i in range(n):
            if together[i] == together[j] and tick.times[i] > tick.times[slowest]:
                slowest = i
        T, row = tick.times[slowest], axes[columns[j]]
        tick.shift[j] = T
        u, a = relative_motion(row, h, tick.choice[j])
        if row[TOP_JERK] >= NO_LIMIT:
            brake = F(0.5) * T * T / (T + F(0.5) * h)
            tick.slope[j], tick.rest[j] = h + brake, -brake * row[FEED]
            tick.turn[j] = u * F(0.5) * T * (T + h) / ((T + F(0.5) * h) * (T + F(0.5) * h))
        else:
            per = F(2) / (row[GAP] + h)  # of a velocity: the acceleration of the last samples
            arc = F(0.25) * T * h + T * T / F(12)  # of an acceleration, the way until the stop
            still = acceleration_of(row, F(0), h) - row[FEED_ACCELERATION]
            tick.slope[j] = h + F(0.5) * T + arc * per
            tick.rest[j] = arc * still - F(0.5) * T * row[FEED]
            tick.turn[j] = F(0.5) * u + a * T / F(6)
        if slowest == j and T > F(0) and not is_fixed:
            d = SMALL * row[TOP_SPEED]
            tick.lead[j] = (time_after(row, h, tick.choice[j] + d) - T) / d
    copy(tick.shift, tick.times)


@device
def write_sample(problem, tick, q, h):
    """Write the pose after the tick to ``tick.pose``."""
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            tick.pose[at] = q[at] + h * tick.choice[v]
        else:
            w = (h * tick.choice[v], h * tick.choice[v + 1], h * tick.choice[v + 2])
            store_quat(tick.pose, at, quat_normalize(quat_mul(load_quat(q, at), quat_exp(w))))
        clamp_block(problem.variables, problem.limits, k, tick.pose)


@device
def write_units(problem, tick):
    """Write the unit of each column: 1 for angles, the reach for lengths."""
    for k in range(problem.variables.shape[0]):
        v = problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            tick.unit[v] = step_unit(problem.limits, k, problem.reach)
        else:
            tick.unit[v] = tick.unit[v + 1] = tick.unit[v + 2] = F(1)


@device
def add_lead(h, J, tick, together, goal_of_row, states, j):
    """Add to column j what it moves the others of its part farther, as it makes their stop take longer."""
    m, n = J.shape
    per = tick.lead[j] * tick.unit[j] / tick.slope[j]
    for i in range(m):
        g = goal_of_row[i]
        if g >= 0 and states[g, MODE] != F(FOLLOWED):
            continue
        total = F(0)
        for k in range(n):
            if together[k] == together[j]:
                total += J[i, k] * tick.turn[k] / tick.unit[k]
        h.G[i, j] += per * total


@device
def write_row(h, J, tick, rates, i, mode, time):
    """Write row i of the levels, relative to the velocities that are chosen, from its residual at the next sample."""
    n = J.shape[1]
    ahead = F(0)
    for j in range(n):
        w, slope = tick.choice[j], tick.slope[j]
        if mode == HELD_STILL:
            h.G[i, j] = J[i, j] * time / slope
            continue
        h.G[i, j] = J[i, j]
        way = slope * (tick.reference[j] - w) if mode == FAR else time * w - slope * w - tick.rest[j]
        ahead += J[i, j] * way / tick.unit[j]
    if mode == FAR:
        h.e[i] = ahead
    elif mode == FOLLOWED:
        h.e[i] += ahead + (tick.slope[0] - time) * rates[0, i]


@device
def reflect_rows(h, last, d):
    """Change three rows up to ``last`` by a reflection, so that ``last`` is along a unit vector d or against it."""
    z = d[2] + math.copysign(F(1), d[2])
    per = F(2) / (d[0] * d[0] + d[1] * d[1] + z * z)
    a, b, c = last - 2, last - 1, last
    part = per * (d[0] * h.e[a] + d[1] * h.e[b] + z * h.e[c])
    h.e[a], h.e[b], h.e[c] = h.e[a] - part * d[0], h.e[b] - part * d[1], h.e[c] - part * z
    for j in range(h.G.shape[1]):
        part = per * (d[0] * h.G[a, j] + d[1] * h.G[b, j] + z * h.G[c, j])
        h.G[a, j], h.G[b, j], h.G[c, j] = h.G[a, j] - part * d[0], h.G[b, j] - part * d[1], h.G[c, j] - part * z


@inline
def spins(state):
    """Return whether a twist turns the target of a goal, by its state."""
    return state[SPIN] != F(0) or state[SPIN + 1] != F(0) or state[SPIN + 2] != F(0)


@device
def ends_a_spin(problem, goal_of_row, states, i):
    """Return whether row i is the last one of the rotation of a goal that is followed, and that a twist turns."""
    g = goal_of_row[i]
    if g < 0 or states[g, MODE] != F(FOLLOWED) or not spins(states[g]):
        return False
    parts = problem.goals[g, PARTS]
    return parts & ROTATION != 0 and i - problem.goals[g, FIRST_RESIDUAL] == (5 if parts & POSITION else 2)


@device
def weigh_spins(problem, h, goal_of_row, states):
    """Let errors about the axes of twists weigh less than those across them.

    So a body that cannot follow stays near these turns, and is late. In a singular pose, joints that move nothing there
    then lead it to where it can go on.
    """
    for i in range(problem.levels[problem.levels.shape[0] - 1]):
        if ends_a_spin(problem, goal_of_row, states, i):
            state = states[goal_of_row[i]]
            reflect_rows(h, i, (state[SPIN], state[SPIN + 1], state[SPIN + 2]))
            h.e[i] *= ALONG
            for j in range(h.G.shape[1]):
                h.G[i, j] *= ALONG


@apart
def assemble(held, together, time, levels, stays):
    """Write rows, bounds and references of the first levels, relative to the velocities that are chosen.

    The unknowns are changes of the stop place. Frames and residuals at the next sample are in ``work``.
    """
    problem, work, h, tick, axis_of, goal_of_row, states, _, tools, rates = held
    m, n = work.J.shape
    columns = h.v.shape[1]
    choose_edges(problem.general, problem, work.frames, h.edges)
    update_jacobian(problem, tick.pose, work.frames, tick.aimed, work.J, h)
    copy(work.e, h.e)
    reset_columns(h)
    for j in range(n):
        per = tick.slope[j] / tick.unit[j]
        w = tick.choice[j]
        reset_column(h, j, per * (tick.low[j] - w), per * (tick.high[j] - w))
        h.v[REFERENCE, j] = per * ((tick.plan[axis_of[j]] if stays else tick.reference[j]) - w)
        h.v[STEP_STIFFNESS, j] = F(1)
    write_slacks(problem.general, problem, tick.pose, work.frames, tick.aimed, h, n)
    write_contact_slacks(problem.clear, problem, h, n + general_slacks(problem.general))
    holds = 0
    for i in range(m):
        if is_held(states, goal_of_row, i):
            holds = i + 1
    for i in range(m):
        h.constrains[i] = F(1)
        mode = FOLLOWED if goal_of_row[i] < 0 else int(states[goal_of_row[i], MODE])
        write_row(h, work.J, tick, rates, i, mode, time)
        if mode == FAR and i >= holds:  # the joints go to the answer as far as what is above allows
            h.e[i] = F(0)
            for j in range(n):
                h.G[i, j] = F(0)
    for j in range(n):
        if tick.lead[j] != F(0):
            add_lead(h, work.J, tick, together, goal_of_row, states, j)
    write_tools(problem, work, h, tick, tools[0], n + slack_count(problem), time)
    for i in range(problem.levels[min(levels, problem.levels.shape[0] - 1)], m):
        h.e[i] = F(0)
        for k in range(columns):
            h.G[i, k] = F(0)
    weigh_spins(problem, h, goal_of_row, states)
    fix_at_bounds(h)


@device
def take_velocities(h, tick):
    """Change the chosen velocities by the solution of the levels; return the longest part of the step."""
    size = F(0)
    n = tick.choice.shape[0]
    for k in range(h.v.shape[1]):
        j = int(h.v[POSE_COLUMN, k])
        if j >= n:
            continue
        x = h.v[STEP, k]
        size = max(size, abs(x))
        side = h.v[ACTIVE_SIDE, k]
        if side != F(0):
            tick.choice[j] = tick.high[j] if side > F(0) else tick.low[j]
        else:
            w = tick.choice[j] + x * tick.unit[j] / tick.slope[j]
            tick.choice[j] = min(max(w, tick.low[j]), tick.high[j])
    return size


@inline
def is_held(states, goal_of_row, i):
    """Return whether residual row i belongs to a goal that is held."""
    return goal_of_row[i] >= 0 and states[goal_of_row[i], MODE] == F(HELD_STILL)


@inline
def is_led(states, goal_of_row, i):
    """Return whether residual row i belongs to a goal that is followed."""
    return goal_of_row[i] >= 0 and states[goal_of_row[i], MODE] == F(FOLLOWED)


@apart
def promised_residual(held, pose, share):
    """Return by how much rows that are a promise are off (reaches, radians) on a stop; write the errors of all rows.

    Args:
        held: See ``open_held``.
        pose: A pose on the stop.
        share: The part of its way that is behind; less than 0 if only goals that are held count.
    """
    problem, work, _, tick, _, goal_of_row, states, (still, led), _, _ = held
    update_frames(problem, pose, work.frames)
    residual(problem, pose, work.frames, tick.aimed, work.e)
    most = F(0)
    for i in range(max(still, led)):
        part = F(0)
        if i < still and is_held(states, goal_of_row, i):
            part = F(1)
        elif i < led and share >= F(0) and is_led(states, goal_of_row, i):
            work.e[i] -= tick.first[i] - share * tick.line[i]
            part = LOOSER
        if part > F(0):
            most = max(most, part * abs(work.e[i])) if work.e[i] == work.e[i] else F(math.inf)
    return most


@apart
def promised_step(held, follows):
    """Write to ``tick.shift`` the least step (radians, length units) onto the rows that are a promise.

    They keep their levels. The pose is ``tick.pose``, and ``tick.least`` and ``tick.most`` are bounds, per unit; goals
    that are followed count if it ``follows`` them.
    """
    problem, work, h, tick, _, goal_of_row, states, (still, led), _, _ = held
    m, n = work.J.shape
    choose_edges(problem.general, problem, work.frames, h.edges)
    update_jacobian(problem, tick.pose, work.frames, tick.aimed, work.J, h)
    reset_columns(h)
    for k in range(h.v.shape[1]):
        reset_column(h, k, tick.least[k] if k < n else F(0), tick.most[k] if k < n else F(0))
        h.v[REFERENCE, k], h.v[STEP_STIFFNESS, k] = F(0), F(1)
    for i in range(m):
        counts = i < still and is_held(states, goal_of_row, i)
        counts = counts or (follows and i < led and is_led(states, goal_of_row, i))
        h.e[i], h.constrains[i] = work.e[i] if counts else F(0), F(1)
        for j in range(h.v.shape[1]):
            h.G[i, j] = work.J[i, j] if counts and j < n else F(0)
    solve_levels(h, problem.levels, problem.levels.shape[0] - 1, DAMPING, F(0), F(0), FARTHEST, True)
    for k in range(h.v.shape[1]):
        j = int(h.v[POSE_COLUMN, k])
        if j < n:
            tick.shift[j] = h.v[STEP, k] * tick.unit[j]


@apart
def note_first_rows(held, pose):
    """Note the errors of all rows, and their derivatives, at the pose where a stop begins."""
    problem, work, h, tick, _, _, _, _, _, _ = held
    update_frames(problem, pose, work.frames)
    residual(problem, pose, work.frames, tick.aimed, work.e)
    choose_edges(problem.general, problem, work.frames, h.edges)
    update_jacobian(problem, pose, work.frames, tick.aimed, work.J, h)
    copy(work.e, tick.first)
    for i in range(work.J.shape[0]):
        copy(work.J[i], tick.gains[i])


@device
def promised_rows(problem, goal_of_row, states, stops):
    """Return before which residual row held goals are a promise, and before which those that are followed.

    Held goals are if all levels with a goal that moves are below. Those that are followed promise to go straight on
    while the body brakes; goals that are far, which joints lead, are below. A body that ``stops`` has no goal that
    moves.
    """
    last = int(problem.levels[problem.levels.shape[0] - 1])
    if stops:
        return last, 0
    still = led = last
    for k in range(problem.levels.shape[0] - 2, -1, -1):
        for i in range(problem.levels[k], problem.levels[k + 1]):
            g = goal_of_row[i]
            if g >= 0 and states[g, MODE] != F(HELD_STILL):
                still = int(problem.levels[k])
            if g >= 0 and states[g, MODE] == F(FAR):
                led = int(problem.levels[k])
    return still, led


@device
def holds_promised(held):
    """Return whether a goal is held that is a promise."""
    goal_of_row, states, (still, _) = held[5], held[6], held[7]
    for i in range(still):
        if is_held(states, goal_of_row, i):
            return True
    return False


@device
def leads_promised(held):
    """Return whether a goal is followed that is a promise."""
    goal_of_row, states, (_, led) = held[5], held[6], held[7]
    for i in range(led):
        if is_led(states, goal_of_row, i):
            return True
    return False


@inline
def limits_tools(held):
    """Return whether the speed of an end effector is limited."""
    return held[8][0].shape[0] > 0


@device
def has_promise(held):
    """Return whether a tick needs a stop of the whole body."""
    return limits_tools(held) or holds_promised(held) or leads_promised(held)


@inline
def open_held(problem, work, tick, columns, goal_of_row, states, live, stops):
    """Return what solves the levels of a tick.

    That is (problem, work, h, tick, columns, goal_of_row, states, promised, tools, rates), the last two from ``live``.
    ``tools`` are the limits of end effectors, and what is noted about them, see ``servo.tools``; for ``rates`` see
    ``note_rates``.
    """
    tools, rates = live
    slacks = slack_count(problem) + 2 * tools[0].shape[0]
    h = open_levels(work.solver_scratch, work.J.shape[0], work.J.shape[1] + slacks)
    promised = promised_rows(problem, goal_of_row, states, stops)
    return problem, work, h, tick, columns, goal_of_row, states, promised, tools, rates


@device
def mode_after(problem, state, away, turned, same, now):
    """Return how a goal takes part in a tick.

    A goal that is far and gets no nearer, as the joints cannot go on to the answer, is followed instead. The only goal,
    whose answer is on another branch, is far if the body gets hardly nearer: the joints can always go there. The target
    of a twist waits instead.

    Args:
        problem: The problem.
        state: How it did in the tick before, and how far it was from its target then.
        away: How far it is now, length units.
        turned: The same, radians.
        same: Whether the target is that of the tick before.
        now: Whether the body stands still, whether joints lead the only goal elsewhere, whether the jerk has a limit,
            and the time of the tick.
    """
    rests, elsewhere, jerk, h = now
    mode = int(state[MODE])
    off = max(away / problem.tolerance, turned / problem.tolerance_angle)
    if mode == HELD_STILL and same and off <= (F(1) if jerk else NEARLY):  # no single tick with jerk brings it back
        return HELD_STILL
    far, before = (
        max(away / problem.reach, F(0.5) * turned),
        max(state[AWAY] / problem.reach, F(0.5) * state[TURNED_AWAY]),
    )
    if elsewhere and same and off > F(1) and not spins(state) and (mode == FAR or before - far <= h * far):
        return FAR
    stuck = same and ((mode == FAR and rests) or (mode == FOLLOWED and far <= before))
    if jerk and same and not rests and mode == FAR and not spins(state):
        return FAR
    if far > (NEAR if mode != FOLLOWED else NO_LONGER_NEAR) and not stuck:
        return FAR
    still = same and off <= F(1) and (rests or not jerk) and abs(away - state[AWAY]) <= STILL * problem.tolerance
    return HELD_STILL if still and mode == FOLLOWED else FOLLOWED


@device
def stands(axes, h):
    """Return whether the body stands still, or nearly, so that it does not just begin to move."""
    for i in range(axes.shape[0]):
        row = axes[i]
        gains = min(row[TOP_ACCELERATION], F(0.25) * row[TOP_JERK] * h) * h
        if abs(row[AXIS_VELOCITY]) > min(SLOW * row[TOP_SPEED], F(0.25) * gains):
            return False
    return True


@device
def is_alone(goal_of_row):
    """Return whether all rows of goals with targets are those of one goal."""
    only = -1
    for i in range(goal_of_row.shape[0]):
        g = goal_of_row[i]
        if g >= 0 and only >= 0 and g != only:
            return False
        only = max(only, int(g))
    return only >= 0


@device
def leads_elsewhere(tick, axes, columns):
    """Return whether the answer is so far away that it moves otherwise than the body would."""
    for j in range(columns.shape[0]):
        if abs(axes[columns[j], AXIS_TARGET]) > ELSEWHERE * tick.unit[j]:
            return True
    return False


@device
def note_rates(problem, work, tick, goal_of_row, targets, q, h, rates):
    """Note how fast the residuals of goals grow as their targets move; not of those that jump.

    ``tick.last`` has the targets of the tick before.
    """
    update_frames(problem, q, work.frames)
    complete_targets(problem, work.frames, tick.last, tick.aimed)
    residual(problem, q, work.frames, tick.aimed, work.e)
    for i in range(rates.shape[1]):
        rates[0, i] = -work.e[i]
    complete_targets(problem, work.frames, targets, tick.aimed)
    residual(problem, q, work.frames, tick.aimed, work.e)
    for g in range(targets.shape[0]):
        size = change = F(0)
        for i in range(rates.shape[1]):
            if goal_of_row[i] == g:
                rates[0, i] = (rates[0, i] + work.e[i]) / h
                size += rates[0, i] * rates[0, i]
                change += (rates[0, i] - rates[1, i]) * (rates[0, i] - rates[1, i])
        for i in range(rates.shape[1]):
            if goal_of_row[i] == g:
                rates[1, i] = rates[0, i]
                rates[0, i] = rates[0, i] if change <= SMOOTH * size else F(0)
    for i in range(rates.shape[1]):
        if goal_of_row[i] < 0:
            rates[0, i] = F(0)


@device
def choose_modes(problem, work, tick, goal_of_row, states, targets, q, now):
    """Decide how each goal takes part.

    ``now`` is whether the body is to stop, whether it stands still, whether the answer meets the targets elsewhere,
    whether the jerk has a limit, and the time of the tick. If the body stops, only held goals keep targets.

    Below a goal that is far none is followed, as that would lead the joints off their way to the answer.
    """
    stops, rests, elsewhere, jerk, h = now
    alone = elsewhere and is_alone(goal_of_row)
    update_frames(problem, q, work.frames)
    complete_targets(problem, work.frames, targets, tick.aimed)
    measure(problem, q, work.frames, tick.aimed, tick.errors)
    for g in range(states.shape[0]):
        same = True
        for i in range(TARGET_WIDTH):
            same = same and targets[g, i] == tick.last[g, i]
            tick.last[g, i] = targets[g, i]
        away, turned = tick.errors[2 * g], tick.errors[2 * g + 1]
        mode = mode_after(problem, states[g], away, turned, same, (rests, alone, jerk, h))
        if stops and mode != HELD_STILL:
            mode = FAR
        states[g, MODE], states[g, AWAY], states[g, TURNED_AWAY] = F(mode), away, turned
    above = False
    for k in range(problem.levels.shape[0] - 1):
        far = above
        for i in range(problem.levels[k], problem.levels[k + 1]):
            g = goal_of_row[i]
            if g >= 0 and above and states[g, MODE] == F(FOLLOWED):
                states[g, MODE] = F(FAR)
            far = far or (g >= 0 and states[g, MODE] == F(FAR))
        above = far


@device
def give_reasons(tick, axes, columns, h):
    """Note which limit holds each axis at its velocity; one that is not at a bound has none."""
    for j in range(columns.shape[0]):
        row = axes[columns[j]]
        w = tick.choice[j]
        if row[REASON] == F(RECOVERING) or row[REASON] == F(EMERGENCY):
            continue
        row[REASON] = reason_of(row, w, h) if w <= tick.low[j] or w >= tick.high[j] else F(0)


@device
def any_far(states):
    """Return whether a goal is far."""
    for g in range(states.shape[0]):
        if states[g, MODE] == F(FAR):
            return True
    return False


@device
def go_to_sample(held, axes, together, q, time, fixed):
    """Write the pose after the velocities that are chosen, its frames, and where the body stops from there."""
    problem, work, _, tick, columns, _, _, _, _, _ = held
    write_stops(tick, axes, columns, together, time, fixed)
    write_sample(problem, tick, q, time)
    update_frames(problem, tick.pose, work.frames)


@device
def keep_room(tick, axes, columns, h):
    """Leave each axis the room in which it stops together with the others."""
    for j in range(columns.shape[0]):
        row = axes[columns[j]]
        if row[AXIS_LOWER] == F(-math.inf) and row[AXIS_UPPER] == F(math.inf):
            continue
        per = h + ROOM * (tick.slope[j] - h)
        most, least = max(row[AXIS_UPPER], F(0)) / per, min(row[AXIS_LOWER], F(0)) / per
        tick.high[j] = max(min(row[NEXT_UPPER], most), row[NEXT_LOWER])
        tick.low[j] = min(max(row[NEXT_LOWER], least), row[NEXT_UPPER])
        tick.choice[j] = min(max(tick.choice[j], tick.low[j]), tick.high[j])


@device
def keep_turns(problem, tick, q, h):
    """Bound the chosen velocities of limited rotations, so that they stop inside; return whether some have changed."""
    changed = False
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] != SCALAR and is_limited(problem.limits, k):
            v = int(problem.variables[k, BLOCK_COLUMN])
            per = h + ROOM * (tick.slope[v] - h)
            bounds = tick.low[v : v + 3], tick.high[v : v + 3]
            here = load_quat(q, problem.variables[k, BLOCK_Q])
            changed = bound_turn(problem.limits, k, here, tick.choice[v : v + 3], per, bounds) or changed
    return changed


@device
def tool_part(held, velocities, q, h):
    """Return the largest part of its limits that an end effector would use with some velocities, (columns,)."""
    problem, work, _, tick, _, _, _, _, tools, _ = held
    copy(velocities, tick.choice)
    write_sample(problem, tick, q, h)
    update_frames(problem, tick.pose, work.frames)
    return most_used(problem, tick, work.frames, tools, h)


@device
def slow_down(held, axes, q, h):
    """Let no axis go faster than its part of the straight way to the answer, on which end effectors keep their limits.

    So all axes arrive together, as without these limits.
    """
    tick, columns = held[3], held[4]
    longest = fastest = F(0)
    for j in range(columns.shape[0]):
        longest = max(longest, abs(axes[columns[j], AXIS_TARGET]))
        fastest = max(fastest, abs(tick.reference[j]))
    if longest <= F(0):
        return
    for j in range(columns.shape[0]):
        tick.shift[j] = axes[columns[j], AXIS_TARGET] * fastest / longest
    part = tool_part(held, tick.shift, q, h)
    for j in range(columns.shape[0]):
        row = axes[columns[j]]
        most = abs(tick.shift[j]) * CRUISE / part if part > F(0) else F(math.inf)
        tick.reference[j] = min(max(min(max(row[NEXT], -most), most), row[NEXT_LOWER]), row[NEXT_UPPER])


@device
def begin_tick(held, axes, q, h):
    """Take the proposed velocities of a tick from the state of all axes, as fast as end effectors may go."""
    _, _, _, tick, columns, _, states, _, _, rates = held
    elsewhere = any_far(states) or leads_elsewhere(tick, axes, columns)
    if not any_far(states):
        rates[0, :] = F(0)
    for j in range(columns.shape[0]):
        row = axes[columns[j]]
        if elsewhere:  # the answer is elsewhere: its motion does not move the goals here as it does there
            row[FEED] = row[FEED_ACCELERATION] = F(0)
        tick.reference[j] = row[NEXT]
    copy(q, tick.pose)
    if limits_tools(held) and tool_part(held, tick.reference, q, h) > CRUISE:
        slow_down(held, axes, q, h)


@device
def may_rest(held, axes, h):
    """Return whether the body may stand still from now on.

    The chosen velocities are rounding, or all goals are met and joints are where they go: a body that is to go on to
    the last digit may go to and fro in a singular pose.
    """
    problem, _, _, tick, columns, _, states, _, _, _ = held
    there = True
    for g in range(states.shape[0]):
        off = max(states[g, AWAY] / problem.tolerance, states[g, TURNED_AWAY] / problem.tolerance_angle)
        there = there and states[g, MODE] == F(HELD_STILL) and off <= MET
    small = True
    for j in range(columns.shape[0]):
        if tick.low[j] > F(0) or tick.high[j] < F(0):
            return False
        small = small and abs(tick.choice[j]) * h <= REST
        there = there and abs(axes[columns[j], AXIS_TARGET]) <= ARRIVED * tick.unit[j]
    return small or there


@device
def solve_tick(held, axes, together, q, time, levels, stays):
    """Choose the velocities of a tick, after ``begin_tick``, so that goals are met by their priorities.

    Args:
        held: See ``open_held``.
        axes: The state of all axes, after PROPOSE.
        together: A number for each column; axes of the same number come to rest in the same time.
        q: Joint values now, (nq,).
        time: Of the tick, seconds.
        levels: How many levels count.
        stays: Whether what they leave free follows the stop that is known (``tick.plan``), and not what was proposed.

    Returns:
        The number of linear systems that were solved.
    """
    problem, work, h, tick, columns, _, states, _, _, _ = held
    n = columns.shape[0]
    promises = limits_tools(held) or holds_promised(held)
    far = any_far(states)
    for j in range(n):
        row = axes[columns[j]]
        tick.low[j], tick.high[j] = row[NEXT_LOWER], row[NEXT_UPPER]
        w = tick.reference[j] if far else row[AXIS_VELOCITY] + row[AXIS_ACCELERATION] * time  # a motion that goes on
        tick.choice[j] = min(max(w, tick.low[j]), tick.high[j])
    solved, bracket = F(0), (F(0), F(0), F(0), F(0))
    for step in range(MOST_STEPS):
        fixed = F(-1)
        if step > NEWTON_STEPS:  # two axes may be the slowest one in turn; then Newton's step does not end
            fixed, bracket = bracketed_time(tick, axes, columns, time, bracket)
        go_to_sample(held, axes, together, q, time, fixed)
        if promises:
            keep_room(tick, axes, columns, time)
        residual(problem, tick.pose, work.frames, tick.aimed, work.e)
        assemble(held, together, time, levels, stays)
        solve_levels(h, problem.levels, problem.levels.shape[0], DAMPING, ERROR_DAMPING, F(0), FARTHEST, True)
        solved += h.state[SOLVES]
        size = take_velocities(h, tick)
        if not keep_turns(problem, tick, q, time) and size <= (ENOUGH if step <= NEWTON_STEPS else LAST_STEP):
            break
    if may_rest(held, axes, time):
        for j in range(n):
            tick.choice[j] = F(0)
    changed = False
    for j in range(n):
        changed = changed or tick.choice[j] != axes[columns[j], NEXT]
        axes[columns[j], NEXT] = tick.choice[j]
    if changed:
        give_reasons(tick, axes, columns, time)
    return solved
