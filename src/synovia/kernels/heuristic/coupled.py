"""Move the joints of one variable together, such as the joints of a finger that one motor closes.

Mimic joints follow the value of their leader. The best rotation for one of them also moves the others, so rotations of
single joints do not lead to a minimum. Instead, the variable takes a Gauss-Newton step for the goals that its joints
move. A step that does not lower the cost is shortened to the minimum of the parabola through both costs and the slope.
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import goal_frame
from synovia.kernels.goals.residuals import goal_error
from synovia.kernels.layout import (
    BLOCK_Q,
    GOAL_ROW,
    KIND,
    LOWER,
    PARENT,
    PARTS,
    POSITION,
    POSITION_WEIGHT,
    PREFERRED,
    RATIO,
    ROTATION,
    ROTATION_WEIGHT,
    SLIDE,
    STIFFNESS,
    UPPER,
    VARIABLE,
)
from synovia.kernels.math.rotations import column, origin_of, rotation_of
from synovia.kernels.math.vectors import add, cross, dot, scale, sub
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.turn import apply_stiffness
from synovia.kernels.tree.variables import step_unit

TRIALS = 8  # largest number of step lengths tried
SHORTEST = F(0.1)  # smallest factor of the step length, because rounding errors distort the parabola


@inline
def moves_row(problem, k, i):
    """Return whether variable k moves row i."""
    return problem.tree.ints[i, VARIABLE] == k and problem.tree.couple[i, RATIO] != F(0)


@device
def is_shared(problem, k):
    """Return whether variable k moves several rows."""
    rows = 0
    for i in range(problem.tree.ints.shape[0]):
        if moves_row(problem, k, i):
            rows += 1
    return rows > 1


@device
def is_last_row(problem, i):
    """Return whether no row after row i has the same variable."""
    for j in range(i + 1, problem.tree.ints.shape[0]):
        if moves_row(problem, problem.tree.ints[i, VARIABLE], j):
            return False
    return True


@device
def pose_cost(problem, frames, targets, k):
    """Return the cost of the pose goals, -1/2 times its first and 1/2 times its second derivative by variable k.

    The second derivative is that of Gauss-Newton.
    """
    tree = problem.tree
    cost = F(0)
    slope = F(0)
    curvature = F(0)
    for g in range(problem.goals.shape[0]):
        parts = problem.goals[g, PARTS]
        if parts == 0:
            continue
        _, p = goal_frame(problem, frames, g)
        shift = (F(0), F(0), F(0))  # displacement of the goal's frame per unit of the variable
        turn = (F(0), F(0), F(0))
        i = problem.goals[g, GOAL_ROW]
        while i >= 0:
            if moves_row(problem, k, i):
                axis = scale(tree.couple[i, RATIO], column(rotation_of(frames, i), 2))
                if tree.ints[i, KIND] == SLIDE:
                    shift = add(shift, axis)
                else:
                    shift = add(shift, cross(axis, sub(p, origin_of(frames, i))))
                    turn = add(turn, axis)
            i = tree.ints[i, PARENT]
        distance, angle = goal_error(problem, frames, targets, g)
        if parts & POSITION:
            w = problem.goal_data[g, POSITION_WEIGHT] / problem.reach
            cost += w * w * dot(distance, distance)
            slope += w * w * dot(shift, distance)
            curvature += w * w * dot(shift, shift)
        if parts & ROTATION:
            w = problem.goal_data[g, ROTATION_WEIGHT]
            cost += w * w * dot(angle, angle)
            slope += w * w * dot(turn, angle)
            curvature += w * w * dot(turn, turn)
    return cost, slope, curvature


@device
def move_together(problem, work, targets, q, k, smallest, stiffness):
    """Move the rows of variable k towards the goals, within its limits; work.frames follow q.

    Skip steps below ``smallest`` (radians or length scales). ``stiffness`` is a factor on the stiffness of the variable
    (see ``apply_stiffness``).

    Returns:
        The size of the step in the same units, 0 if none lowers the cost.
    """
    cost, slope, curvature = pose_cost(problem, work.frames, targets, k)
    if not curvature > F(0):
        return F(0)
    at = problem.variables[k, BLOCK_Q]
    before = q[at]
    stiffness *= problem.preferences[k, STIFFNESS]
    step = apply_stiffness(slope / curvature, before, problem.preferences[k, PREFERRED], stiffness)
    step = min(max(before + step, problem.limits[k, LOWER]), problem.limits[k, UPPER]) - before
    unit = step_unit(problem.limits, k, problem.reach)
    for _ in range(TRIALS):
        if abs(step) <= smallest * unit:
            break
        q[at] = min(max(before + step, problem.limits[k, LOWER]), problem.limits[k, UPPER])
        forward(problem.tree, q, work.frames)
        new_cost, _, _ = pose_cost(problem, work.frames, targets, k)
        if new_cost < cost:
            return abs(step) / unit
        bend = new_cost - cost + F(2) * slope * step  # cost - 2 slope x + bend (x / step)² passes through both costs
        shorter = slope * step / bend if bend > F(0) else F(0.5)
        step *= min(max(shorter, SHORTEST), F(0.5))
    q[at] = before
    forward(problem.tree, q, work.frames)
    return F(0)
