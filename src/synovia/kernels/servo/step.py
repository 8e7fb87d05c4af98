"""One tick of a body with goals, in one call."""

import math

from synovia.kernels.compiler.jit import F, device, entry, inline
from synovia.kernels.compiler.records import cutter, record
from synovia.kernels.goals.clearance import keeps_clear
from synovia.kernels.layout import (
    AT_POSITION,
    AXIS_ACCELERATION,
    AXIS_LOWER,
    AXIS_UPPER,
    AXIS_VELOCITY,
    AXIS_WIDTH,
    BLOCK,
    EMERGENCY,
    GAP,
    GAP_BEFORE,
    HELD_STILL,
    MEETS,
    MODE,
    NEXT,
    REASON,
    RECOVERING,
    SCALAR,
    STOP,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
    WHOLE,
    Table,
)
from synovia.kernels.servo import ALONG_NOW, PATH_PLACE
from synovia.kernels.servo.axis import TOLD, WITHIN, acceleration_of, jerk_of, reason_of
from synovia.kernels.servo.course import choose_course
from synovia.kernels.servo.distances import ignore_clearance, keeps_apart, note_distances, note_pressed
from synovia.kernels.servo.levels import (
    EASY,
    any_far,
    begin_tick,
    choose_modes,
    creeps,
    distance_of_answer,
    fastest_course,
    has_promise,
    is_alone,
    limits_tools,
    note_rates,
    open_held,
    open_tick,
    solve_tick,
    stands,
    write_units,
)
from synovia.kernels.servo.path import write_path
from synovia.kernels.servo.places import KNOWN, PASSED
from synovia.kernels.servo.stop import NO_LIMIT
from synovia.kernels.servo.tick import advance, follow_leaders, move, propose
from synovia.kernels.servo.tools import measure_tools
from synovia.kernels.servo.whole import MOST_NODES, accept_tick, brake_tick, ends_along, go_along, stay_along
from synovia.kernels.tree.problem import copy, open_all, open_work
from synovia.kernels.tree.variables import is_limited

STOP_OF_BODY = (  # memory of a stop of the whole body
    *(Table("bends", (MOST_NODES, "axes")) if table.name == "bends" else table for table in WHOLE),
    Table("shapes", (2, 7)),  # stops of one axis: how the velocities and the accelerations end; the length of each
    Table("marks", (40, 9)),  # position, velocity, acceleration and jerk of both shapes at instants; the time
    Table("curve", ("axes",)),  # curvature of held rows along the velocities, as accelerations
    Table("one", (AXIS_WIDTH,)),  # an axis along the course to the answer
    Table("end", ("nq",)),  # pose at the end
    Table("moves", (2, "axes")),  # velocities and accelerations at a sample
)
FREE_SPEED, FREE_ACCELERATION, FREE_JERK = F(1e9), F(1e12), F(1e15)  # limits of the path coordinate, too high to apply
BINDS = F(0.98)  # fraction of the speed of a course from which on end effectors count as limiting it
Whole = record("Whole", STOP_OF_BODY)
_open = cutter(Whole, STOP_OF_BODY, ("nq", "axes"))


@inline
def open_stop(memory, nq, axes):
    """Return a stop of a whole body, see ``STOP_OF_BODY``."""
    return _open(memory, (nq, axes))


@device
def limits_rotations(variables, limits):
    """Return whether a rotation has limits."""
    for k in range(variables.shape[0]):
        if variables[k, BLOCK] != SCALAR and is_limited(limits, k):
            return True
    return False


@device
def judge_again(axes, h):
    """Replace the reasons RECOVERING and EMERGENCY of axes whose chosen velocities keep all limits."""
    for i in range(axes.shape[0]):
        row, w = axes[i], axes[i, NEXT]
        a = acceleration_of(row, w, h)
        keeps = abs(w) <= row[TOP_SPEED] * (F(1) + TOLD) and abs(a) <= row[TOP_ACCELERATION] * (F(1) + TOLD)
        keeps = keeps and abs(jerk_of(row, a, h)) <= row[TOP_JERK] * (F(1) + TOLD)
        keeps = keeps and row[AXIS_LOWER] - WITHIN <= w * h <= row[AXIS_UPPER] + WITHIN
        if keeps and (row[REASON] == F(RECOVERING) or row[REASON] == F(EMERGENCY)):
            reason = reason_of(row, w, h)
            row[REASON] = F(0) if reason == F(AT_POSITION) else reason


@device
def is_same(a, b):
    """Return whether two vectors are the same."""
    for i in range(a.shape[0]):
        if a[i] != b[i]:
            return False
    return True


@device
def begin_along(axes, path, along, targets, given, h):
    """Prepare the path coordinate for a tick, and write the targets there; without a path it rests."""
    row, first = axes[axes.shape[0] - 1], axes[0]
    row[TOP_SPEED], row[TOP_ACCELERATION] = FREE_SPEED, FREE_ACCELERATION
    row[TOP_JERK] = FREE_JERK if first[TOP_JERK] < NO_LIMIT else first[TOP_JERK]
    row[AXIS_LOWER], row[AXIS_UPPER], row[NEXT] = F(-math.inf), F(math.inf), F(0)
    row[GAP], row[GAP_BEFORE] = first[GAP], first[GAP_BEFORE]
    if path.shape[0] == 0:
        row[AXIS_VELOCITY] = row[AXIS_ACCELERATION] = F(0)
        return
    row[AXIS_UPPER] = max(path[path.shape[0] - 1, PATH_PLACE] - along[ALONG_NOW], F(0))
    write_path(path, along[ALONG_NOW], targets)
    for g in range(targets.shape[0]):
        copy(targets[g], given[g])


@device
def advance_along(axes, along, h):
    """Advance the path coordinate by a tick of time h."""
    row = axes[axes.shape[0] - 1]
    row[AXIS_ACCELERATION] = acceleration_of(row, row[NEXT], h)
    row[AXIS_VELOCITY] = row[NEXT]
    along[ALONG_NOW] += row[NEXT] * h


@entry
def servo_step(
    ints, floats, scratch, memory, stops, columns, together, goal_of_row, states, axes, variables, limits, followers,
    coupling, targets, place, q, wanted, before, out, time, parts, levels, speeds, used, rates, pair_ints,
    pair_floats, pair_scratch, ways, touches, path, along,
):  # fmt: skip
    """Take one tick in which goals keep their priorities.

    Args:
        ints: A packed problem of the full body.
        floats: Its numbers.
        scratch: Its scratch memory.
        memory: The tables ``layout.TICK``.
        stops: Two stops of the whole body, see ``STOP_OF_BODY``: the known stop, and scratch memory, (2, size).
        columns: The axis of each column of the problem, (columns,).
        together: A number for each column; axes of the same number come to rest in the same time.
        goal_of_row: The goal of each residual row, -1 for none, (residuals,).
        states: State of each goal, (goals, GOAL_STATE_WIDTH), without those of end effectors; changed.
        axes: The state of all axes, then that of the path coordinate.
        variables: All variables of the skeleton.
        limits: Their limits.
        followers: Mimic joints and their leaders.
        coupling: Their ratios and offsets.
        targets: Targets of all goals, (goals, 17); end effectors whose speed is limited are the last ones.
        place: Joint values of the robot, (nq,).
        q: Commanded joint values, (nq,).
        wanted: Joint values to go to, (nq,), at the end of the tick.
        before: ``wanted`` of the tick before.
        out: Joint values after the tick, (nq,); written.
        time: Time of the tick, seconds.
        parts: STOP and MEETS, see ``layout``.
        levels: Number of levels that apply.
        speeds: Limits of end effectors, linear and angular, per s, (tools, 2).
        used: The used part of these limits, and 1 for end effectors that slow down the body, (2, tools); written.
        rates: Rates of residuals as targets move, now and in the tick before; residuals now, (3, residuals); written.
        pair_ints: A packed problem with the distances that the body keeps, each with a single slot; empty for none.
        pair_floats: Its numbers.
        pair_scratch: Its scratch memory.
        ways: The tables ``layout.WAYS``; empty for none.
        touches: 1 if distances have changed the tick, else 0, (1,); written.
        path: The path of the targets, see ``layout``; without rows, targets apply as they are.
        along: Coordinates on the path, (ALONG_WIDTH,); changed.

    Returns:
        The number of linear systems that were solved.
    """
    joints = axes[:-1]
    if joints.shape[0] == 0:
        return 0
    brakes = parts & STOP != 0
    propose(variables, limits, joints, q, wanted, before, time, brakes)
    problem, work = open_all(ints, floats, scratch), open_work(ints, scratch)
    n, goals = axes.shape[0], problem.goals.shape[0]
    rows, tools = problem.levels[problem.levels.shape[0] - 1], (speeds, used)
    tick = open_tick(memory, (columns.shape[0], n, problem.nq, goals, 2 * goals, rows))
    used[1, :] = F(0)
    follows = path.shape[0] > 0
    begin_along(axes, path, along, targets, tick.given, time)
    ignore_clearance(problem)
    write_units(problem, tick)
    jerk = axes[0, TOP_JERK] < NO_LIMIT
    answer = distance_of_answer(tick, axes, columns)
    now = (
        brakes,
        stands(joints, time),
        creeps(joints, time),
        parts & MEETS != 0,
        answer,
        jerk,
        touches[0] != F(0),
        time,
    )
    note_rates(problem, work, tick, goal_of_row, targets, place, time, rates)
    choose_modes(problem, work, tick, goal_of_row, states, targets, place, now)
    if follows:
        states[:, MODE] = F(HELD_STILL)
    apart = pair_ints, pair_floats, pair_scratch, ways, touches
    turns = jerk and limits_rotations(variables, limits)
    if keeps_clear(problem.clear):
        note_pressed(problem, work, states, apart, n - 1)
    motion = brakes, not (jerk and parts & MEETS != 0), levels
    held = open_held(
        problem, work, tick, columns, goal_of_row, states, (tools, rates, apart, turns, (path, along)), motion
    )
    touches[0] = F(0)
    known, found = open_stop(stops[0], problem.nq, n), open_stop(stops[1], problem.nq, n)
    is_arm = n - 1 == variables.shape[0] and is_alone(goal_of_row)  # each axis in its own time: no goal is held
    leads = levels >= problem.levels.shape[0] - 1  # else only joints are driven
    fastest = fastest_course(held, axes, place, time) if jerk and limits_tools(held) else F(math.inf)
    if jerk and not brakes and leads and any_far(states) and (not is_arm or fastest < F(math.inf)):
        choose_course(joints, found.one, found.way, found.push, tick.base, fastest, time)
    begin_tick(held, axes, place, time)
    solved = F(0)
    if follows and known.clock[KNOWN] != F(0):
        if ends_along(held, brakes):
            stay_along(held, variables, axes, known, place, time)
        else:
            solved = go_along(held, (variables, limits), axes, together, levels, (known, found), place, time)
    elif not (brakes and brake_tick(held, variables, axes, known, place, time)):
        solved = solve_tick(held, axes, together, place, time, levels, False)
        if has_promise(held):
            solved += accept_tick(held, (variables, limits), axes, together, levels, (known, found), place, time)
        else:
            known.clock[KNOWN] = F(0)
    if jerk and known.clock[KNOWN] != F(0):
        judge_again(joints, time)
    proven = known.clock[KNOWN] != F(0) and known.clock[PASSED] == F(0)
    move(variables, axes, q, out, time)
    keeps = known.clock[KNOWN] != F(0) and is_same(place, q)
    advance((variables, limits), joints, q, wanted, out, time, brakes, keeps)
    advance_along(axes, along, time)
    follow_leaders(followers, coupling, out)
    if keeps_apart(held):
        move(variables, axes, place, tick.sample, time)
        note_distances(held, (variables, limits), place, tick.sample, proven and is_same(found.start, tick.sample))
        touches[0] = max(touches[0], F(0) if proven or brakes else F(1))
    measure_tools(problem, work, tick, tools, q, out, time)
    for t in range(used.shape[1]):
        if fastest < F(math.inf) and used[0, t] >= BINDS * EASY:
            used[1, t] = F(1)
    return int(solved)
