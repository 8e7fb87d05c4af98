"""Speed limits of end effectors: one-sided rows of a tick above all goals, and what is measured between samples.

An end effector is a goal of the problem without a target, so its target is where it is at the last sample. Its error at
the next one is how far it goes in the tick. ``tools`` are two arrays: limits, linear and angular, (tools, 2); the used
fraction of these limits, and whether the end effector slows the body down, (2, tools).
"""

from synovia.kernels.compiler.jit import F, apart, device
from synovia.kernels.goals.frames import goal_frame, set_target, target_frame
from synovia.kernels.goals.term import NEVER
from synovia.kernels.hierarchy.inequalities import write_slack
from synovia.kernels.hierarchy.step import update_frames
from synovia.kernels.layout import FIRST_RESIDUAL, POSITION_WEIGHT, ROTATION_WEIGHT
from synovia.kernels.math.rotations import angle_of, matmul_t
from synovia.kernels.math.vectors import norm, sub

CRUISE = F(0.99)  # fraction of a limit that goals may use, so that a stop after the tick keeps the limit
SIDES = 3  # number of rows of a displacement, and of a rotation


@device
def note_places(problem, tick, frames, tools):
    """Store the poses of end effectors as their targets."""
    first = problem.goals.shape[0] - tools[0].shape[0]
    for g in range(first, problem.goals.shape[0]):
        R, p = goal_frame(problem, frames, g)
        set_target(tick.aimed, g, R, p)


@device
def part_used(problem, tick, frames, tools, t, h):
    """Return the fraction of its limits that end effector t uses from its stored pose to ``frames``, in time h."""
    g = problem.goals.shape[0] - tools[0].shape[0] + t
    R, p = goal_frame(problem, frames, g)
    T, s = target_frame(tick.aimed, g)
    return max(norm(sub(s, p)) / (tools[0][t, 0] * h), angle_of(matmul_t(T, R)) / (tools[0][t, 1] * h))


@device
def most_used(problem, tick, frames, tools, h):
    """Return the largest fraction of its limits that an end effector uses; mark end effectors above CRUISE."""
    most = F(0)
    for t in range(tools[0].shape[0]):
        part = part_used(problem, tick, frames, tools, t, h)
        if part > CRUISE:
            tools[1][1, t] = F(1)
        most = max(most, part)
    return most


@device
def measure_tools(problem, work, tick, tools, q, out, h):
    """Write the fraction of its limits that each end effector uses from q to ``out``."""
    if tools[0].shape[0] == 0:
        return
    update_frames(problem, q, work.frames)
    note_places(problem, tick, work.frames, tools)
    update_frames(problem, out, work.frames)
    for t in range(tools[0].shape[0]):
        tools[1][0, t] = part_used(problem, tick, work.frames, tools, t, h)


@device
def write_side(h, J, tick, row, column, most, time):
    """Write one row and its slack, which limit a displacement or rotation to ``most`` at the next sample."""
    n = J.shape[1]
    e = h.e[row], h.e[row + 1], h.e[row + 2]
    length = norm(e)
    for i in range(row, row + SIDES):
        h.e[i] = F(0)
        for j in range(h.G.shape[1]):
            h.G[i, j] = F(0)
    used = length > F(0)
    write_slack(h, column, row, length - most, NEVER, used)
    if used:
        for j in range(n):
            along = e[0] * J[row, j] + e[1] * J[row + 1, j] + e[2] * J[row + 2, j]
            h.G[row, j] = along / length * time / tick.slope[j]


@apart
def write_tools(problem, work, h, tick, speeds, first, time):
    """Write the rows of end effectors, relative to the chosen velocities, and their slacks from ``first`` on.

    Residuals at the next sample are in ``work``; ``speeds`` are limits, linear and angular, (tools, 2).
    """
    begin = problem.goals.shape[0] - speeds.shape[0]
    for t in range(speeds.shape[0]):
        g = begin + t
        row = int(problem.goals[g, FIRST_RESIDUAL])
        for i in range(2 * SIDES):
            h.e[row + i] = work.e[row + i]
        way = CRUISE * speeds[t, 0] * time * problem.goal_data[g, POSITION_WEIGHT] / problem.reach
        turn = CRUISE * speeds[t, 1] * time * problem.goal_data[g, ROTATION_WEIGHT]
        write_side(h, work.J, tick, row, first + 2 * t, way, time)
        write_side(h, work.J, tick, row + SIDES, first + 2 * t + 1, turn, time)
