"""Speed limits of end effectors: one-sided rows of a tick above all goals, and what is measured between samples.

An end effector is a goal of the problem without a target, so its target is where it is at the last sample. Its error at
the next one is how far it goes in the tick.
"""

from synovia.kernels.compiler.jit import F, apart, device
from synovia.kernels.goals.frames import goal_frame, set_target, target_frame
from synovia.kernels.goals.term import NEVER
from synovia.kernels.hierarchy.inequalities import write_slack
from synovia.kernels.hierarchy.step import update_frames
from synovia.kernels.layout import (
    ANGULAR,
    FIRST_RESIDUAL,
    LINEAR,
    POSITION_WEIGHT,
    ROTATION_WEIGHT,
    SHARE,
    SLOWS,
)
from synovia.kernels.math.rotations import angle_of, matmul_t
from synovia.kernels.math.vectors import norm, sub

CRUISE = F(0.98)  # part of a limit up to which goals lead: so a stop from there keeps it
SIDES = 3  # rows of the way, and of the turn


@device
def note_places(problem, tick, frames):
    """Note where end effectors are."""
    first = problem.goals.shape[0] - tick.tools.shape[0]
    for t in range(tick.tools.shape[0]):
        R, p = goal_frame(problem, frames, first + t)
        set_target(tick.places, t, R, p)


@device
def part_used(problem, tick, frames, t, h):
    """Return which part of its limits an end effector uses from its noted place to frames, in the time h."""
    R, p = goal_frame(problem, frames, problem.goals.shape[0] - tick.tools.shape[0] + t)
    T, s = target_frame(tick.places, t)
    way, turn = norm(sub(s, p)), angle_of(matmul_t(T, R))
    return max(way / (tick.tools[t, LINEAR] * h), turn / (tick.tools[t, ANGULAR] * h))


@device
def most_used(problem, tick, frames, h):
    """Return the largest part of its limits that an end effector uses; note which it is, as it slows down the body.

    Without one that uses more than the limits allow, none does.
    """
    most, which = F(0), -1
    for t in range(tick.tools.shape[0]):
        part = part_used(problem, tick, frames, t, h)
        if part > most:
            most, which = part, t
    if most > CRUISE:
        tick.tools[which, SLOWS] = F(1)
    return most


@device
def measure_tools(problem, work, tick, q, out, h):
    """Note which part of their limits end effectors use from q to ``out``."""
    if tick.tools.shape[0] == 0:
        return
    update_frames(problem, q, work.frames)
    note_places(problem, tick, work.frames)
    update_frames(problem, out, work.frames)
    for t in range(tick.tools.shape[0]):
        tick.tools[t, SHARE] = part_used(problem, tick, work.frames, t, h)


@device
def write_side(h, J, tick, row, column, most, time):
    """Write the row of a way or turn, and its slack: it may be as long as ``most`` at the next sample."""
    n, length = J.shape[1], F(0)
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
def write_tools(problem, work, h, tick, first, time):
    """Write the rows of end effectors, relative to the velocities that are chosen, and their slacks from ``first`` on.

    Residuals at the next sample are in ``work``.
    """
    begin = problem.goals.shape[0] - tick.tools.shape[0]
    for t in range(tick.tools.shape[0]):
        g = begin + t
        row = int(problem.goals[g, FIRST_RESIDUAL])
        for i in range(2 * SIDES):
            h.e[row + i] = work.e[row + i]
        way = CRUISE * tick.tools[t, LINEAR] * time * problem.goal_data[g, POSITION_WEIGHT] / problem.reach
        turn = CRUISE * tick.tools[t, ANGULAR] * time * problem.goal_data[g, ROTATION_WEIGHT]
        write_side(h, work.J, tick, row, first + 2 * t, way, time)
        write_side(h, work.J, tick, row + SIDES, first + 2 * t + 1, turn, time)
