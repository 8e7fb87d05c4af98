"""Range goal: the value of a joint stays within bounds. The value is read from q, so full turns of a hinge count."""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import add_joint_row
from synovia.kernels.goals.term import NOTHING, unit_weight
from synovia.kernels.layout import BALL, FIRST, FIRST_Q, GOAL, GOAL_ROW, KIND, LENGTHS, NUMBERS, OFFSET, RATIO
from synovia.kernels.math.rotations import apply, column, load_quat, quat_log, rotation_of
from synovia.kernels.math.vectors import norm, normalize, scale


@inline
def joint_value(problem, q, row):
    """Return the value of a row's joint: angle of a hinge, length of a slide, or angle of a ball from rest."""
    tree = problem.tree
    at = tree.ints[row, FIRST_Q]
    if tree.ints[row, KIND] == BALL:
        return norm(quat_log(load_quat(q, at)))
    return tree.couple[row, RATIO] * q[at] + tree.couple[row, OFFSET]


@inline
def value_axis(problem, q, frames, row):
    """Return the world axis about which, or along which, the value of a row's joint grows.

    For a ball at rest this axis is undefined, and the z axis of the ball is returned.
    """
    R = rotation_of(frames, row)
    if problem.tree.ints[row, KIND] == BALL:
        return apply(R, normalize(quat_log(load_quat(q, problem.tree.ints[row, FIRST_Q])), (F(0), F(0), F(1))))
    return column(R, 2)


@inline
def bounds(problem, q, term):
    """Return the bounds of the value, relative to its present value."""
    general = problem.general
    x = joint_value(problem, q, problem.goals[general.ints[term, GOAL], GOAL_ROW])
    return general.data[term, NUMBERS] - x, general.data[term, NUMBERS + 1] - x


@device
def rows(problem, q, frames, term, J):
    """Write the Jacobian row. Only the joint itself has an entry."""
    general = problem.general
    row = problem.goals[general.ints[term, GOAL], GOAL_ROW]
    along = scale(unit_weight(problem, term), value_axis(problem, q, frames, row))
    is_length = general.ints[term, LENGTHS] > 0
    force, torque = (along, NOTHING) if is_length else (NOTHING, along)
    add_joint_row(problem, q, frames, row, force, torque, J, general.ints[term, FIRST])
