"""The goals of a tick: rows, level by level with strict priorities, in the box of velocities of all axes.

Rows of a held goal are evaluated at the next sample, and rows of a moving goal where the body stops: a body that can
stop at its target does not overshoot. For that, all axes come to rest in the same time, relative to the velocity of
their targets (the feed f). So a body with the next velocities w stops at s = α w + β, with one factor α for axes that
belong together (see ``write_stops``). From the next sample on, the stop bends with the goals: there, rows are linear in
s. As α is the same for all axes, a motion that changes no row at the stop changes none at the next sample. So lower
levels do not change the goals above in any sample.

Each Newton step needs the frames, the Jacobian and one solution of the levels (``hierarchy.levels``) in what is left of
the box. Far goals, and all motion that the levels leave free, follow the proposed velocities (``axis.choose``). Rows of
a far goal apply only above a held goal: elsewhere the joints go to the answer (the solved pose) as far as goals above
allow, and never away from it.
"""

import math

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.compiler.records import cutter, record
from synovia.kernels.goals.clearance import keeps_clear
from synovia.kernels.goals.residuals import complete_targets, measure, residual
from synovia.kernels.hierarchy.basis import open_levels, reset_column, reset_columns
from synovia.kernels.hierarchy.inequalities import (
    choose_edges,
    general_slacks,
    slack_count,
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
    CLEAR_GOAL,
    CLEAR_ROW,
    EMERGENCY,
    FAR,
    FEED,
    FEED_ACCELERATION,
    FIRST_RESIDUAL,
    FOLLOWED,
    GAP,
    HELD_STILL,
    LAG,
    MODE,
    NEXT,
    NEXT_LOWER,
    NEXT_UPPER,
    PARTS,
    POSE_COLUMN,
    POSITION,
    RAW_FEED,
    REASON,
    RECOVERING,
    REFERENCE,
    ROTATION,
    SCALAR,
    SOLVES,
    SPIN,
    STEP,
    STEP_LOWER,
    STEP_STIFFNESS,
    TARGET_WIDTH,
    TICK,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
    TURNED_AWAY,
)
from synovia.kernels.math.rotations import load_quat
from synovia.kernels.servo import ALONG_NOW, ALONG_POSE
from synovia.kernels.servo.axis import acceleration_of, reason_of, stop_after
from synovia.kernels.servo.ball import bound_turn
from synovia.kernels.servo.distances import keeps_apart, write_contacts, write_moved
from synovia.kernels.servo.path import aim_along, follows_path
from synovia.kernels.servo.stop import NO_LIMIT, duration, sync_time, travelled
from synovia.kernels.servo.tools import CRUISE, most_used, write_tools
from synovia.kernels.tree.problem import copy
from synovia.kernels.tree.variables import is_limited, step_unit

MOST_STEPS, NEWTON_STEPS = 10, 2  # most steps of a tick; last Newton step that also changes the time of the stop
LAST_STEP = F(2e-5)  # radians, length scales: regula falsi ends after a step of at most this length
SHARE = F(0.1)  # least part of its bracket that a step of regula falsi removes
ENOUGH = F(3e-4)  # radians, length scales: Newton's steps end below this length, as the error is about its square
DAMPING, ERROR_DAMPING = F(1e-9), F(0.02)  # of a level: λ = DAMPING + ERROR_DAMPING |e|² (Sugihara 2011)
SMALL = F(1e-6)  # fraction of the velocity limit: step of a finite difference
NEAR, NO_LONGER_NEAR = F(0.02), F(0.1)  # length scales, or half of the radians: a goal farther away is far
WORTH = F(0.03)  # length scales · s per radian to a remote answer: with a larger error over time, LAG, the body moves
REMOTE = F(6)  # radians per length scale of error: an answer farther away is on another branch
LOST = F(0.005)  # length scales, or half of the radians: a moving target that stays farther away is not followed
NEARLY = F(10)  # tolerances: a held goal stays held within this error
LOOSER = F(0.1)  # weight of followed goals' errors (held goals: 1)
SPARE = F(1.1)  # factor of the least time of a stop, as bends add to its accelerations
ROOM = F(1.2)  # factor of the braking distance, as a stop may take longer; with a jerk limit: SPARE
ELSEWHERE = F(0.2)  # radians, length scales: at an answer farther away, joints move the goals differently
CREEP = F(0.05)  # part of the highest velocity: a body whose axes are slower may be blocked
EASY = F(0.9)  # fraction of tool speed limits that a course with a jerk limit uses
SLOW = F(1e-3)  # part of the highest velocity: slower axes count as at rest
REST = F(1e-9)  # radians, length units: smaller displacements in a tick are rounding
SMOOTH = F(0.01)  # part of a squared velocity: if its squared change in a tick is less, the target does not jump
MET, ARRIVED = F(0.02), F(1e-3)  # tolerances: goals are met; radians, length scales: joints have arrived
ALONG = F(0.1)  # weight of the rotation error of a twist about its axis, relative to errors across it
STILL = F(0.1)  # tolerances: a goal whose error changes by less in a tick stands still
INDEPENDENT = F(1e-6)  # fraction of a row's squared length: with a smaller remainder, it depends on other rows
LIMITED = F(2)  # factor of the time in which goals come to rest, as joints at limits contribute less
SOONEST = F(0.5)  # ticks: shortest time for goals to come to rest
TIED = -2  # marks the rows of loops, in place of a goal
FARTHEST = F(1e9)  # no bound on the move of a column in a step of the levels

Tick = record("Tick", TICK)
open_tick = cutter(Tick, TICK, ("columns", "axes", "nq", "goals", "errors", "residuals"))


@device
def relative_motion(row, h, w):
    """Return the velocity and acceleration, relative to its target, with which an axis begins its stop after w."""
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
    """Return a better time for the stop of the body after the chosen velocities, by regula falsi.

    The longer a stop may take, the slower are the velocities that are chosen for it. So the time is between the
    largest time that was too short and the least that was too long; ``bracket`` has both, each with its error.
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
    """Write where each column stops: ``slope`` times its next velocity, plus ``rest``.

    The slowest column of a part sets the time of its stop (``times``). ``lead`` is the derivative of that time by the
    slowest column's velocity, and ``turn`` the derivative of each column's stop place by the time. If ``fixed`` is 0 or
    more, it is the time of all stops.
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
            per = F(2) / (row[GAP] + h)  # derivative of the acceleration by the next velocity
            arc = F(0.25) * T * h + T * T / F(12)  # displacement until the stop per acceleration
            still = acceleration_of(row, F(0), h) - row[FEED_ACCELERATION]
            tick.slope[j] = h + F(0.5) * T + arc * per
            tick.rest[j] = arc * still - F(0.5) * T * row[FEED]
            tick.turn[j] = F(0.5) * u + a * T / F(6)
        if slowest == j and T > F(0) and not is_fixed:
            d = SMALL * row[TOP_SPEED]
            tick.lead[j] = (time_after(row, h, tick.choice[j] + d) - T) / d
    copy(tick.shift, tick.times)


@device
def time_of_rows(held, axes, h):
    """Return the time in which goals can come to rest relative to their targets, after the chosen velocities.

    Motion that leaves all goals unchanged does not need to stop. So this is the time for the least motion, relative to
    the accelerations of the axes, that changes the errors of goals as the chosen velocities do, less the motion of the
    targets. Rows are made orthonormal by the modified Gram-Schmidt method. Frames are those of the next sample.
    """
    problem, work, levels, tick, columns, goal_of_row, _, _, _, rates, _, _, _ = held
    m, n = work.J.shape
    update_jacobian(problem, tick.pose, work.frames, tick.aimed, work.J, levels)
    rows, parts = levels.G, levels.e
    for j in range(n):
        tick.shift[j] = F(0)
    for i in range(m):
        parts[i] = F(0)
        if goal_of_row[i] < 0 and goal_of_row[i] != TIED:
            continue
        speed, length = -rates[0, i], F(0)
        for j in range(n):
            per = work.J[i, j] / tick.unit[j]
            speed += per * tick.choice[j]
            rows[i, j] = per * axes[columns[j], TOP_ACCELERATION]
            length += rows[i, j] * rows[i, j]
        left = F(0)
        for k in range(i):
            if goal_of_row[k] < 0 and goal_of_row[k] != TIED:
                continue
            share = F(0)
            for j in range(n):
                share += rows[i, j] * rows[k, j]
            for j in range(n):
                rows[i, j] -= share * rows[k, j]
            speed -= share * parts[k]
        for j in range(n):
            left += rows[i, j] * rows[i, j]
        per = F(1) / math.sqrt(left) if left > INDEPENDENT * length else F(0)
        parts[i] = per * speed
        for j in range(n):
            rows[i, j] *= per
            tick.shift[j] += parts[i] * rows[i, j]
    T = F(0)
    for j in range(n):
        T = max(T, LIMITED * abs(tick.shift[j]) - F(0.5) * h)
    return T


@device
def write_units(problem, tick):
    """Write the unit of each column: 1 for angles, the length scale for lengths."""
    for k in range(problem.variables.shape[0]):
        v = problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            tick.unit[v] = step_unit(problem.limits, k, problem.reach)
        else:
            tick.unit[v] = tick.unit[v + 1] = tick.unit[v + 2] = F(1)


@device
def add_lead(h, J, tick, together, goal_of_row, states, j):
    """Add to column j how its velocity lengthens the stop of its part, and so moves the stops of all columns there."""
    m, n = J.shape
    per = tick.lead[j] * tick.unit[j] / tick.slope[j]
    for i in range(m):
        g = goal_of_row[i]
        if g == TIED or (g >= 0 and states[g, MODE] != F(FOLLOWED)):
            continue
        total = F(0)
        for k in range(n):
            if together[k] == together[j]:
                total += J[i, k] * tick.turn[k] / tick.unit[k]
        h.G[i, j] += per * total


@device
def write_row(h, J, tick, rates, i, mode, jerk, time):
    """Write row i of the levels, relative to the chosen velocities, from its residual at the next sample."""
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
    elif mode == HELD_STILL and jerk:  # corrected where the body stops, as a correction goes on after the next sample
        h.e[i] -= (F(1) - time / tick.slope[0]) * rates[2, i]
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
    """Return whether a twist rotates the target of a goal with this state."""
    return state[SPIN] != F(0) or state[SPIN + 1] != F(0) or state[SPIN + 2] != F(0)


@device
def ends_a_spin(problem, goal_of_row, states, i):
    """Return whether row i is the last rotation row of a followed goal whose target a twist rotates."""
    g = goal_of_row[i]
    if g < 0 or states[g, MODE] != F(FOLLOWED) or not spins(states[g]):
        return False
    parts = problem.goals[g, PARTS]
    return parts & ROTATION != 0 and i - problem.goals[g, FIRST_RESIDUAL] == (5 if parts & POSITION else 2)


@device
def weigh_spins(problem, h, goal_of_row, states):
    """Reduce the weight of rotation errors about the axes of twists, relative to errors across these axes.

    So a body that cannot follow is late but stays near these rotations. From a singular pose, joints that move nothing
    there can then lead it to where it can continue.
    """
    for i in range(problem.levels[problem.levels.shape[0] - 1]):
        if ends_a_spin(problem, goal_of_row, states, i):
            state = states[goal_of_row[i]]
            reflect_rows(h, i, (state[SPIN], state[SPIN + 1], state[SPIN + 2]))
            h.e[i] *= ALONG
            for j in range(h.G.shape[1]):
                h.G[i, j] *= ALONG


@apart
def assemble(held, axes, together, q, time, levels, stays):
    """Write rows, bounds and references of the first ``levels`` levels, relative to the chosen velocities.

    The unknowns are changes of the stop place. Frames and residuals at the next sample are in ``work``.
    """
    problem, work, h, tick, axis_of, goal_of_row, states, _, tools, rates, _, _, _ = held
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
    holds = 0  # first row of the last level that has a held goal
    for k in range(problem.levels.shape[0] - 1):
        for i in range(problem.levels[k], problem.levels[k + 1]):
            if is_held(states, goal_of_row, i):
                holds = problem.levels[k]
    for i in range(m):
        h.constrains[i] = F(1)
        mode = FOLLOWED if goal_of_row[i] < 0 else int(states[goal_of_row[i], MODE])
        if goal_of_row[i] == TIED:
            mode = HELD_STILL
        write_row(h, work.J, tick, rates, i, mode, axes[0, TOP_JERK] < NO_LIMIT, time)
        if mode == FAR and i >= holds:  # the joints go to the answer as far as goals above allow
            h.e[i] = F(0)
            for j in range(n):
                h.G[i, j] = F(0)
    for j in range(n):
        if tick.lead[j] != F(0):
            add_lead(h, work.J, tick, together, goal_of_row, states, j)
    write_tools(problem, work, h, tick, tools[0], n + slack_count(problem), time)
    if keeps_clear(problem.clear):
        write_contacts(held, axes, q, time, spare_of(held), n + general_slacks(problem.general))
    for i in range(problem.levels[min(levels, problem.levels.shape[0] - 1)], m):
        h.e[i] = F(0)
        for k in range(columns):
            h.G[i, k] = F(0)
    weigh_spins(problem, h, goal_of_row, states)
    fix_at_bounds(h)


@device
def take_velocities(h, tick):
    """Change the chosen velocities by the solution of the levels; return the largest component of the step."""
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


@device
def touches(problem, h, n):
    """Return 1 if a contact of a clearance goal bounds the step, else 0; the pose has n columns."""
    first = n + general_slacks(problem.general)
    for k in range(h.v.shape[1]):
        j = int(h.v[POSE_COLUMN, k])
        if h.v[ACTIVE_SIDE, k] != F(0) and first <= j < n + slack_count(problem) and h.v[STEP_LOWER, k] != F(0):
            return F(1)
    return F(0)


@inline
def is_held(states, goal_of_row, i):
    """Return whether residual row i belongs to a loop, or to a goal that is held."""
    g = goal_of_row[i]
    return g == TIED or (g >= 0 and states[g, MODE] == F(HELD_STILL))


@inline
def is_led(states, goal_of_row, i):
    """Return whether residual row i belongs to a goal that is followed."""
    return goal_of_row[i] >= 0 and states[goal_of_row[i], MODE] == F(FOLLOWED)


@apart
def promised_residual(held, pose, share, ties):
    """Return the largest error (length scales, radians) of promised rows on a stop; write the errors of all rows.

    Args:
        held: See ``open_held``.
        pose: A pose on the stop.
        share: Progress of the stop at that pose, 0 to 1; negative to check held goals only.
        ties: Weight of the closure errors of loops.
    """
    problem, work, _, tick, _, goal_of_row, states, (still, led), _, _, _, _, _ = held
    update_frames(problem, pose, work.frames)
    aim_along(held)
    residual(problem, pose, work.frames, tick.aimed, work.e)
    most = F(0)
    for i in range(max(still, led)):
        part = F(0)
        if i < still and is_held(states, goal_of_row, i):
            part = ties if goal_of_row[i] == TIED else F(1)
        elif i < led and share >= F(0) and is_led(states, goal_of_row, i):
            work.e[i] -= tick.first[i] - share * tick.line[i]
            part = LOOSER
        if part > F(0):
            most = max(most, part * abs(work.e[i])) if work.e[i] == work.e[i] else F(math.inf)
    return most


@apart
def promised_step(held, follows):
    """Write to ``tick.shift`` the least step (radians, length units) onto the promised rows, with their priorities.

    The pose is ``tick.pose``; ``tick.least`` and ``tick.most`` are bounds, per unit. Followed goals are included if
    ``follows`` is true.
    """
    problem, work, h, tick, _, goal_of_row, states, (still, led), _, _, _, _, _ = held
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
    problem, work, h, tick = held[0], held[1], held[2], held[3]
    update_frames(problem, pose, work.frames)
    residual(problem, pose, work.frames, tick.aimed, work.e)
    choose_edges(problem.general, problem, work.frames, h.edges)
    update_jacobian(problem, pose, work.frames, tick.aimed, work.J, h)
    copy(work.e, tick.first)
    for i in range(work.J.shape[0]):
        copy(work.J[i], tick.gains[i])


@device
def promised_rows(problem, goal_of_row, states, motion):
    """Return the end of the promised rows of held goals, and that of the promised rows of followed goals.

    A stop of the whole body has to keep promised rows. A held goal is promised if all levels with a moving goal are
    below. A followed goal is promised if all far goals are below: it continues straight while the body brakes. A
    clearance goal that is nearer than asked moves the goals of its level and below. Loops are always promised.

    ``motion`` is whether the body stops, whether it yields, and how many levels apply. A body that stops has no moving
    goal. Unless it yields, held goals are promised above far goals of their own level, too.
    """
    stops, yields, levels = motion
    count = min(int(levels), problem.levels.shape[0] - 1)
    last = int(problem.levels[count])
    if stops:
        return last, 0
    still = led = last
    for k in range(count - 1, -1, -1):
        for i in range(problem.levels[k], problem.levels[k + 1]):
            g = goal_of_row[i]
            if g >= 0 and states[g, MODE] != F(HELD_STILL):
                kept = not yields and states[g, MODE] == F(FAR)
                still = min(still, int(problem.levels[k + 1 if kept else k]))
            if g >= 0 and states[g, MODE] == F(FAR):
                led = int(problem.levels[k])
    if problem.clear is not None:
        for t in range(problem.clear.ints.shape[0]):
            if states[problem.clear.ints[t, CLEAR_GOAL], AWAY] > F(0):
                k = 0
                while problem.levels[k + 1] <= problem.clear.ints[t, CLEAR_ROW]:
                    k += 1
                still, led = min(still, int(problem.levels[k])), min(led, int(problem.levels[k]))
    return still, led


@device
def holds_promised(held):
    """Return whether a held goal is promised, see ``promised_rows``."""
    goal_of_row, states, (still, _) = held[5], held[6], held[7]
    for i in range(still):
        if is_held(states, goal_of_row, i):
            return True
    return False


@device
def leads_promised(held):
    """Return whether a followed goal is promised, see ``promised_rows``."""
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
    return limits_motion(held) or holds_promised(held) or leads_promised(held)


@inline
def limits_motion(held):
    """Return whether a tick needs a stop of the whole body that keeps more limits than those of single axes.

    These are speeds of end effectors, distances and, with a limit of the jerk, limits of rotations.
    """
    return limits_tools(held) or keeps_apart(held) or held[11]


@device
def spare_of(held):
    """Return the factor of the shortest stopping time that is tried first; bends for promised rows take longer."""
    return SPARE if holds_promised(held) or leads_promised(held) else F(1)


@inline
def open_held(problem, work, tick, columns, goal_of_row, states, live, motion):
    """Return the data with which the levels of a tick are solved; for ``motion`` see ``promised_rows``.

    It is (problem, work, h, tick, columns, goal_of_row, states, promised, tools, rates, apart, turns, course), the last
    five from ``live``. ``tools`` are the limits of end effectors and the used parts of them, see ``servo.tools``; for
    ``rates`` see ``note_rates``, and for ``apart`` see ``servo.distances``. ``turns`` is whether the stop of the whole
    body has to keep limits of rotations, as those of single axes may not. ``course`` is the path of the targets and the
    coordinates on it, see ``servo.path``.
    """
    tools, rates, apart, turns, course = live
    slacks = slack_count(problem) + 2 * tools[0].shape[0]
    h = open_levels(work.solver_scratch, work.J.shape[0], work.J.shape[1] + slacks)
    promised = promised_rows(problem, goal_of_row, states, motion)
    return problem, work, h, tick, columns, goal_of_row, states, promised, tools, rates, apart, turns, course


@device
def is_worth_leaving(state, mode, errors, same, answer, h):
    """Return whether the joints should go to an answer on another branch, where the only goal does not come nearer.

    They go at once if the target stands still, and always arrive. On its way there the goal is worse for a while. So if
    the target moves, they go only after an error over time (``LAG``, written) that is worth the move.

    Args:
        state: The state of the goal.
        mode: Its mode.
        errors: Its error now and in the tick before, length scales, and now in tolerances.
        same: Whether the target equals that of the tick before.
        answer: The largest displacement of an axis to the answer, radians or length scales, and whether that is on
            another branch.
        h: Time of the tick.
    """
    far, before, off = errors
    distance, remote = answer
    gains = before - far > h * far
    if same or far <= LOST or abs(far - before) > NEAR:
        state[LAG] = F(0)
    elif remote and mode == FOLLOWED and not gains:
        state[LAG] += h * far
    if distance <= ELSEWHERE or spins(state):
        return False
    if same:
        return off > F(1) and (mode == FAR or not gains)
    return far > LOST and (mode == FAR or state[LAG] > WORTH * distance)


@device
def mode_after(problem, state, away, turned, same, now):
    """Return the mode of a goal in a tick.

    A far goal is followed instead if the joints cannot continue to the answer and the body rests, or if the body
    touches something and comes no nearer, or if the answer of the only goal is on another branch: that may be needless,
    see ``is_worth_leaving``. This does not apply to the target of a twist, which waits.

    Args:
        problem: The problem.
        state: Its mode in the tick before, and its distance and angle from its target then.
        away: Its distance from the target now, length units.
        turned: Its angle from the target now, radians.
        same: Whether the target equals that of the tick before.
        now: Whether the body stands still; the largest displacement of an axis to the answer, which is infinite if that
            misses the targets, and 0 if the body has other goals; whether the jerk has a limit; whether distances
            changed the last tick; the time of the tick.
    """
    rests, answer, jerk, touches, h = now
    mode = int(state[MODE])
    off = max(away / problem.tolerance, turned / problem.tolerance_angle)
    if mode == HELD_STILL and same and off <= (F(1) if jerk or touches else NEARLY):  # else no single tick corrects it
        return HELD_STILL
    far, before = (
        max(away / problem.reach, F(0.5) * turned),
        max(state[AWAY] / problem.reach, F(0.5) * state[TURNED_AWAY]),
    )
    misses = answer == F(math.inf)
    remote = not same if misses else answer > ELSEWHERE + REMOTE * far
    if remote and not same and mode == FAR and abs(far - before) > NEAR:
        mode = FOLLOWED  # the target has jumped, so the branch is chosen again
    other = F(0) if misses else answer, remote
    if is_worth_leaving(state, mode, (far, before, off), same, other, h):
        return FAR
    blocked = rests or (touches and far >= before)
    stuck = same and ((mode == FAR and blocked) or (mode == FOLLOWED and far <= before))
    if jerk and same and not blocked and mode == FAR and not spins(state):
        return FAR
    if far > (NEAR if mode != FOLLOWED else NO_LONGER_NEAR) and not stuck and not remote:
        return FAR
    near = off <= (F(1) if rests or not jerk else MET)
    still = same and near and abs(away - state[AWAY]) <= STILL * problem.tolerance
    return HELD_STILL if still and mode == FOLLOWED else FOLLOWED


@device
def stands(axes, h):
    """Return whether the body is at rest or nearly: slower than a body that begins to move."""
    for i in range(axes.shape[0]):
        row = axes[i]
        gains = min(row[TOP_ACCELERATION], F(0.25) * row[TOP_JERK] * h) * h
        if abs(row[AXIS_VELOCITY]) > min(SLOW * row[TOP_SPEED], F(0.25) * gains):
            return False
    return True


@device
def creeps(axes, h):
    """Return whether a body with a limit of the jerk is slow and gains no speed, unlike one that begins to move."""
    for i in range(axes.shape[0]):
        row = axes[i]
        if (
            abs(row[AXIS_VELOCITY]) > CREEP * row[TOP_SPEED]
            or abs(row[AXIS_ACCELERATION]) > F(0.25) * row[TOP_JERK] * h
        ):
            return False
    return axes[0, TOP_JERK] < NO_LIMIT


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
def distance_of_answer(tick, axes, columns):
    """Return the largest displacement that an axis has left to the solved pose, radians or length scales."""
    most = F(0)
    for j in range(columns.shape[0]):
        most = max(most, abs(axes[columns[j], AXIS_TARGET]) / tick.unit[j])
    return most


@device
def note_rates(problem, work, tick, goal_of_row, targets, q, h, rates):
    """Write the rates at which residuals grow as targets move, 0 for targets that jump; then residuals now.

    ``tick.last`` has the targets of the tick before.
    """
    update_frames(problem, q, work.frames)
    complete_targets(problem, work.frames, tick.last, tick.aimed)
    residual(problem, q, work.frames, tick.aimed, work.e)
    for i in range(rates.shape[1]):
        rates[0, i] = -work.e[i]
    complete_targets(problem, work.frames, targets, tick.aimed)
    residual(problem, q, work.frames, tick.aimed, work.e)
    copy(work.e, rates[2])
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
    """Choose the mode of each goal.

    ``now`` is whether the body is to stop, whether it is at rest, whether it creeps, whether the answer meets the
    targets, the largest displacement of an axis to it, whether the jerk has a limit, whether distances changed the last
    tick, and the duration of the tick. If the body stops, only held goals keep targets.

    Below a far goal no goal is followed, as that would lead the joints off their path to the answer. If a held goal
    keeps the body from a far goal of its own level, it is far, too.
    """
    stops, rests, slow, meets, answer, jerk, touches, h = now
    elsewhere, blocked = meets and not touches and answer > ELSEWHERE, False
    if touches or not is_alone(goal_of_row):
        answer = F(0)
    elif not meets:
        answer = F(math.inf)
    update_frames(problem, q, work.frames)
    complete_targets(problem, work.frames, targets, tick.aimed)
    measure(problem, q, work.frames, tick.aimed, tick.errors)
    for g in range(states.shape[0]):
        same = True
        for i in range(TARGET_WIDTH):
            same = same and targets[g, i] == tick.last[g, i]
            tick.last[g, i] = targets[g, i]
        away, turned = tick.errors[2 * g], tick.errors[2 * g + 1]
        mode = mode_after(problem, states[g], away, turned, same, (rests, answer, jerk, touches, h))
        if stops and mode != HELD_STILL:
            mode = FAR
        blocked = blocked or (slow and elsewhere and same and mode == FAR and states[g, MODE] == F(FAR))
        states[g, MODE], states[g, AWAY], states[g, TURNED_AWAY] = F(mode), away, turned
    above = False
    for k in range(problem.levels.shape[0] - 1):
        far = above
        for i in range(problem.levels[k], problem.levels[k + 1]):
            g = goal_of_row[i]
            if g >= 0 and above and states[g, MODE] == F(FOLLOWED):
                states[g, MODE] = F(FAR)
            far = far or (g >= 0 and states[g, MODE] == F(FAR))
        for i in range(problem.levels[k], problem.levels[k + 1] if blocked and far and not above else 0):
            if goal_of_row[i] >= 0:
                states[goal_of_row[i], MODE] = F(FAR)
        above = far


@device
def give_reasons(tick, axes, columns, h):
    """Write which limit holds each axis at its velocity; 0 if the axis is not at a bound."""
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
    """Write the pose after the chosen velocities, its frames, and where the body stops after it.

    If ``fixed`` is 0 or more, it is the time of the stop.
    """
    problem, work, tick, columns = held[0], held[1], held[3], held[4]
    write_moved(problem, tick.choice, q, time, tick.pose)
    update_frames(problem, tick.pose, work.frames)
    write_stops(tick, axes, columns, together, time, fixed)


@device
def go_to_rows(held, axes, together, q, time, before):
    """Write the results of ``go_to_sample`` for goals that stop relative to their targets; return the stopping time.

    ``before`` is that time in the step before, negative in the first step. The longer a stop may take, the slower are
    the velocities that are chosen for it, about as 1 / T. So their geometric mean is near the solution.
    """
    problem, work, tick, columns = held[0], held[1], held[3], held[4]
    write_moved(problem, tick.choice, q, time, tick.pose)
    update_frames(problem, tick.pose, work.frames)
    T = longest = F(0)
    for j in range(columns.shape[0]):
        longest = max(longest, time_after(axes[columns[j]], time, tick.choice[j]))
    T = min(max(time_of_rows(held, axes, time), SOONEST * time), max(longest, SOONEST * time))
    if before >= F(0):
        T = math.sqrt(T * before)
    write_stops(tick, axes, columns, together, time, T)
    return T


@device
def stop_lengths(tick, axes, columns, h):
    """Write to ``shift`` how far each column goes until it stops, per velocity, if all stop in the same time.

    With a limit of the jerk, it is the length of the slowest stop of one axis, as ``slope`` belongs to slower stops.
    """
    longest, per = F(-1), F(0)
    for j in range(columns.shape[0]):
        tick.shift[j] = h + ROOM * (tick.slope[j] - h)
        row, w = axes[columns[j]], tick.choice[j]
        if row[TOP_JERK] < NO_LIMIT:
            stop = stop_after(row, w, h)
            T = duration(stop)
            if T > longest:
                longest, per = T, min(abs(travelled(stop, T)), T * abs(w)) / max(abs(w), F(1e-12))
    for j in range(columns.shape[0]):
        if longest >= F(0):
            tick.shift[j] = h + SPARE * per


@device
def keep_room(tick, axes, columns):
    """Bound velocities so that each axis stops within its position limits even if it stops together with the others."""
    for j in range(columns.shape[0]):
        row = axes[columns[j]]
        if row[AXIS_LOWER] == F(-math.inf) and row[AXIS_UPPER] == F(math.inf):
            continue
        per = tick.shift[j]
        most, least = max(row[AXIS_UPPER], F(0)) / per, min(row[AXIS_LOWER], F(0)) / per
        tick.high[j] = max(min(row[NEXT_UPPER], most), row[NEXT_LOWER])
        tick.low[j] = min(max(row[NEXT_LOWER], least), row[NEXT_UPPER])
        tick.choice[j] = min(max(tick.choice[j], tick.low[j]), tick.high[j])


@device
def keep_turns(problem, tick, q):
    """Bound the chosen velocities of limited balls, so that these stop inside; return whether any changed."""
    changed = False
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] != SCALAR and is_limited(problem.limits, k):
            v = int(problem.variables[k, BLOCK_COLUMN])
            bounds = tick.low[v : v + 3], tick.high[v : v + 3]
            here = load_quat(q, problem.variables[k, BLOCK_Q])
            changed = bound_turn(problem.limits, k, here, tick.choice[v : v + 3], tick.shift[v], bounds) or changed
    return changed


@device
def tool_part(held, velocities, q, h):
    """Return the largest fraction of its speed limits that an end effector would use at ``velocities``, (columns,)."""
    problem, work, tick, tools = held[0], held[1], held[3], held[8]
    copy(velocities, tick.choice)
    write_moved(problem, tick.choice, q, h, tick.pose)
    update_frames(problem, tick.pose, work.frames)
    return most_used(problem, tick, work.frames, tools, h)


@device
def fastest_course(held, axes, q, h):
    """Return the highest velocity to the answer at which end effectors keep their limits now, see ``servo.course``.

    It is infinite if these limits are above those of the axes.
    """
    tick, columns, length, longest = held[3], held[4], F(0), F(0)
    for j in range(columns.shape[0]):
        part = axes[columns[j], AXIS_TARGET] / axes[columns[j], TOP_SPEED]
        length, longest = length + part * part, max(longest, abs(part))
    if length <= F(0):
        return F(math.inf)
    for j in range(columns.shape[0]):
        tick.shift[j] = axes[columns[j], AXIS_TARGET] / math.sqrt(length)
    part = tool_part(held, tick.shift, q, h)
    held[8][1][1, :] = F(0)
    return EASY / part if part * math.sqrt(length) > EASY * longest else F(math.inf)


@device
def slow_down(held, axes, q, h):
    """Limit axes to their share of a straight path to the answer on which end effectors keep their limits.

    So all axes arrive together, as without limits of end effectors.
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
def goes_by_rows(held, axes):
    """Return whether only the motion of goals relative to their targets needs to stop, see ``time_of_rows``.

    That holds for several goals without a limit of the jerk, of which none is far. A single goal leads all joints.
    """
    return axes[0, TOP_JERK] >= NO_LIMIT and not any_far(held[6]) and not is_alone(held[5])


@device
def begin_tick(held, axes, q, h):
    """Take the proposed velocities from the state of all axes, and slow them down to the limits of end effectors."""
    tick, columns, states, rates = held[3], held[4], held[6], held[9]
    by_rows, jumps = goes_by_rows(held, axes), False
    by_targets = by_rows or any_far(states)
    elsewhere = by_targets or distance_of_answer(tick, axes, columns) > ELSEWHERE
    for j in range(columns.shape[0]):
        row = axes[columns[j]]
        jumps = jumps or (row[FEED] == F(0) and row[RAW_FEED] != F(0))
        if elsewhere:  # the answer is elsewhere: its motion moves the goals differently there
            row[FEED] = row[FEED_ACCELERATION] = F(0)
        tick.reference[j] = row[NEXT]
    if by_rows and not jumps:
        copy(rates[1], rates[0])
    elif not by_targets:
        rates[0, :] = F(0)
    copy(q, tick.pose)
    if limits_tools(held) and tool_part(held, tick.reference, q, h) > CRUISE:
        slow_down(held, axes, q, h)


@device
def may_rest(held, axes, h):
    """Return whether the body may stand still from now on.

    The chosen velocities are rounding, or all goals are met and joints have arrived. Without this, a body may
    oscillate in a singular pose.
    """
    problem, tick, columns, states = held[0], held[3], held[4], held[6]
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
        axes: The state of all axes, after ``tick.propose``.
        together: A number for each column; axes of the same number come to rest in the same time.
        q: Joint values now, (nq,).
        time: Duration of the tick, seconds.
        levels: Number of levels that are solved, from the first on; the others are ignored.
        stays: Whether motion that the levels leave free follows the known stop (a stop found in an earlier tick,
            ``tick.plan``), not the proposed velocities.

    Returns:
        The number of linear systems that were solved.
    """
    problem, work, h, tick, columns, _, states, _, _, _, apart, _, (_, along) = held
    n = columns.shape[0]
    promises = limits_motion(held) or holds_promised(held)
    far = any_far(states)
    for j in range(n):
        row = axes[columns[j]]
        tick.low[j], tick.high[j] = row[NEXT_LOWER], row[NEXT_UPPER]
        w = tick.reference[j] if far else row[AXIS_VELOCITY] + row[AXIS_ACCELERATION] * time  # constant acceleration
        tick.choice[j] = min(max(w, tick.low[j]), tick.high[j])
    solved, bracket = F(0), (F(0), F(0), F(0), F(0))
    by_rows, fixed = goes_by_rows(held, axes), F(-1)
    for step in range(MOST_STEPS):
        if by_rows:
            fixed = go_to_rows(held, axes, together, q, time, fixed)
        elif step > NEWTON_STEPS:  # if two axes alternate as the slowest one, Newton's steps do not converge
            fixed, bracket = bracketed_time(tick, axes, columns, time, bracket)
        if not by_rows:
            go_to_sample(held, axes, together, q, time, fixed)
        stop_lengths(tick, axes, columns, time)
        if promises:
            keep_room(tick, axes, columns)
        along[ALONG_POSE] = along[ALONG_NOW] + axes[axes.shape[0] - 1, NEXT] * time
        aim_along(held)
        residual(problem, tick.pose, work.frames, tick.aimed, work.e)
        assemble(held, axes, together, q, time, levels, stays)
        solve_levels(h, problem.levels, problem.levels.shape[0], DAMPING, ERROR_DAMPING, F(0), FARTHEST, True)
        solved += h.state[SOLVES]
        size = take_velocities(h, tick)
        if keeps_clear(problem.clear):
            apart[4][0] = touches(problem, h, n)
        if not keep_turns(problem, tick, q) and size <= (ENOUGH if by_rows or step <= NEWTON_STEPS else LAST_STEP):
            break
    if not follows_path(held) and may_rest(held, axes, time):
        for j in range(n):
            tick.choice[j] = F(0)
    changed = False
    for j in range(n):
        changed = changed or tick.choice[j] != axes[columns[j], NEXT]
        axes[columns[j], NEXT] = tick.choice[j]
    if changed:
        give_reasons(tick, axes, columns, time)
    return solved
