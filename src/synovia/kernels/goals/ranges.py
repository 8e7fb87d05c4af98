"""A joint's own value, as range goals bound it: read from q, so that whole turns of a hinge count."""

from synovia.kernels.compiler.jit import F, inline
from synovia.kernels.goals.frames import pull_joint
from synovia.kernels.layout import BALL, FIRST_Q, KIND, OFFSET, ORIENTATION, RATIO
from synovia.kernels.math.rotations import apply, column, load_quat, load_rotation, quat_log
from synovia.kernels.math.vectors import norm, normalize, scale

NOTHING = (F(0), F(0), F(0))


@inline
def joint_value(problem, q, row):
    """Return the value of a row's joint: radians of a hinge, a slide's length, how far a ball is turned from rest."""
    tree = problem.tree
    at = tree.ints[row, FIRST_Q]
    if tree.ints[row, KIND] == BALL:
        return norm(quat_log(load_quat(q, at)))
    return tree.couple[row, RATIO] * q[at] + tree.couple[row, OFFSET]


@inline
def value_axis(problem, q, frames, row):
    """Return the axis in the world about which, or along which, the value of a row's joint grows.

    A ball at rest has none: its own z axis is taken, the same one every time.
    """
    R = load_rotation(frames, row, ORIENTATION)
    if problem.tree.ints[row, KIND] == BALL:
        return apply(R, normalize(quat_log(load_quat(q, problem.tree.ints[row, FIRST_Q])), (F(0), F(0), F(1))))
    return column(R, 2)


@inline
def pull_value(problem, q, frames, row, is_length, w, J, k):
    """Add to row k of J how the value of a row's joint grows, weighted; no joint above moves it."""
    n = value_axis(problem, q, frames, row)
    force, torque = NOTHING, scale(w, n)
    if is_length:
        force, torque = scale(w / problem.reach, n), NOTHING
    pull_joint(problem, q, frames, row, force, torque, J, k)
