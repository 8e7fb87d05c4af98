"""Rows of the Jacobian of further goals.

Where a residual falls with the motion of a body as a force f at a point and a torque m have it, the row is what both do
on the axes of the joints above (``pull_up``): z·((p - o) × f + m) for a turn, z·f for a shift. Two bodies add up.
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import climb, goal_frame, pull_up, target_frame
from synovia.kernels.goals.general import (
    AIM,
    ALIGN,
    CENTRE,
    DISTANCE,
    NOTHING,
    PLANE,
    POLE,
    RANGE,
    RELATIVE,
    TOUCHING,
    away_from,
    lacking,
    second_frame,
    third_point,
    wanted_on_other,
)
from synovia.kernels.goals.masses import across, centre_of_mass, outside_support, pull_centre, sum_branches
from synovia.kernels.goals.ranges import joint_value, pull_value
from synovia.kernels.layout import (
    ANGLES,
    FIRST,
    GOAL,
    GOAL_ROW,
    KIND,
    LENGTHS,
    NUMBERS,
    POSITION,
    ROTATION,
    SECOND,
    THIRD,
    VERTEX,
    VERTICES,
    WEIGHT,
)
from synovia.kernels.math.bend import bend_of
from synovia.kernels.math.rotations import column
from synovia.kernels.math.vectors import cross, dot, load, norm, normalize, scale, sub


@inline
def unit(i):
    """Return axis i of the world."""
    return F(i == 0), F(i == 1), F(i == 2)


@device
def direction_rows(problem, q, frames, targets, h, J):
    """Aim and alignment: turns about all axes but the direction itself, and shifts across the way to the target."""
    f = problem.further
    g, row = f.ints[h, GOAL], problem.goals[f.ints[h, GOAL], GOAL_ROW]
    R, p = goal_frame(problem, frames, g)
    u = column(R, 2)
    by = NOTHING  # d / |d|²: a shift δp turns the direction to the target by δp × d / |d|²
    if f.ints[h, KIND] == AIM:
        d = sub(target_frame(targets, g)[1], p)
        size2 = dot(d, d)
        if not size2 > TOUCHING * TOUCHING * problem.reach * problem.reach:
            return
        by = scale(F(1) / size2, d)
    w = f.data[h, WEIGHT]
    for i in range(3):
        e = unit(i)
        torque = (w * (e[0] - u[0] * u[i]), w * (e[1] - u[1] * u[i]), w * (e[2] - u[2] * u[i]))
        pull_up(problem, q, frames, row, p, scale(w, cross(e, by)), torque, J, f.ints[h, FIRST] + i)


@device
def pole_row(problem, q, frames, targets, h, J):
    """Bend plane: three points move. What the angle means is a weight, so that no limb straightens to be rid of it."""
    f = problem.further
    g, k = f.ints[h, GOAL], f.ints[h, FIRST]
    _, r = second_frame(problem, frames, h)
    _, m = goal_frame(problem, frames, g)
    t = third_point(problem, frames, h)
    bend = bend_of(r, m, t, target_frame(targets, g)[1])
    w = f.data[h, WEIGHT] * bend.share
    if w > F(0):
        pull_up(problem, q, frames, f.ints[h, SECOND], r, scale(w, bend.at_root), NOTHING, J, k)
        pull_up(problem, q, frames, problem.goals[g, GOAL_ROW], m, scale(w, bend.at_middle), NOTHING, J, k)
        pull_up(problem, q, frames, f.ints[h, THIRD], t, scale(w, bend.at_tip), NOTHING, J, k)


@device
def clearance_row(problem, q, frames, targets, h, J):
    """Distance and plane, where they are violated."""
    f = problem.further
    g, k = f.ints[h, GOAL], f.ints[h, FIRST]
    w = f.data[h, WEIGHT] / problem.reach
    _, p = goal_frame(problem, frames, g)
    if f.ints[h, KIND] == PLANE:
        T, t = target_frame(targets, g)
        n = column(T, 2)
        if dot(n, sub(t, p)) > F(0):
            pull_up(problem, q, frames, problem.goals[g, GOAL_ROW], p, scale(w, n), NOTHING, J, k)
        return
    apart = away_from(problem, frames, targets, h)
    if lacking(f.data, h, norm(apart)) != F(0):
        n = normalize(apart, (F(0), F(0), F(1)))  # at one place any way is out: the same one every time
        pull_up(problem, q, frames, problem.goals[g, GOAL_ROW], p, scale(w, n), NOTHING, J, k)
        pull_up(problem, q, frames, f.ints[h, SECOND], sub(p, apart), scale(-w, n), NOTHING, J, k)


@device
def range_row(problem, q, frames, h, J):
    """Range of a joint's value, where it is violated."""
    f = problem.further
    row = problem.goals[f.ints[h, GOAL], GOAL_ROW]
    if lacking(f.data, h, joint_value(problem, q, row)) != F(0):
        pull_value(problem, q, frames, row, f.ints[h, LENGTHS] > 0, f.data[h, WEIGHT], J, f.ints[h, FIRST])


@device
def relative_rows(problem, q, frames, targets, h, J):
    """A place in another joint's frame: as in the world, less what the other joint does to the target."""
    f = problem.further
    g, k, w = f.ints[h, GOAL], f.ints[h, FIRST], f.data[h, WEIGHT]
    what = (POSITION if f.ints[h, LENGTHS] > 0 else 0) | (ROTATION if f.ints[h, ANGLES] > 0 else 0)
    _, p = goal_frame(problem, frames, g)
    _, t = wanted_on_other(problem, frames, targets, h)
    climb(problem, q, frames, problem.goals[g, GOAL_ROW], p, what, k, w / problem.reach, w, J)
    climb(problem, q, frames, f.ints[h, SECOND], t, what, k, -w / problem.reach, -w, J)


@device
def balance_rows(problem, q, frames, targets, h, J):
    """Centre of mass: its three parts, or the way to the support polygon."""
    f = problem.further
    k, w = f.ints[h, FIRST], f.data[h, WEIGHT] / problem.reach
    if f.ints[h, KIND] == CENTRE:
        for i in range(3):
            pull_centre(problem, q, frames, scale(w, unit(i)), J, k + i)
        return
    c = centre_of_mass(f.masses, frames)
    up = load(f.data, h, NUMBERS)
    d, corner = outside_support(f.vertices, f.ints[h, VERTEX], f.ints[h, VERTICES], up, c)
    far = norm(d)
    if far == F(0):
        return
    a, b = across(up)
    if corner:
        pull_centre(problem, q, frames, scale(w, a), J, k)
        pull_centre(problem, q, frames, scale(w, b), J, k + 1)
        return
    n = scale(F(1) / far, d)  # along the edge the way to it stays the same
    pull_centre(problem, q, frames, scale(w * dot(a, n), n), J, k)
    pull_centre(problem, q, frames, scale(w * dot(b, n), n), J, k + 1)


@device
def further_jacobian(further, problem, q, frames, targets, J):
    """Add the rows of further goals to zeros."""
    if further is None:
        return
    if further.masses.shape[0] > 0:
        sum_branches(problem.tree, further.masses, frames)
    for h in range(further.ints.shape[0]):
        kind = further.ints[h, KIND]
        if kind == AIM or kind == ALIGN:
            direction_rows(problem, q, frames, targets, h, J)
        elif kind == POLE:
            pole_row(problem, q, frames, targets, h, J)
        elif kind == DISTANCE or kind == PLANE:
            clearance_row(problem, q, frames, targets, h, J)
        elif kind == RANGE:
            range_row(problem, q, frames, h, J)
        elif kind == RELATIVE:
            relative_rows(problem, q, frames, targets, h, J)
        else:
            balance_rows(problem, q, frames, targets, h, J)
