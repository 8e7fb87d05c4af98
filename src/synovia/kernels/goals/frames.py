"""Frames of goals and targets, and Jacobian rows of a frame that moves with the joints above it."""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import (
    BALL,
    COLUMN,
    FREE,
    GOAL_ORIENTATION,
    GOAL_ORIGIN,
    GOAL_ROW,
    HINGE,
    KIND,
    LAST_ROW,
    PARENT,
    POSITION,
    RATIO,
    ROTATION,
    SLIDE,
    TRANSLATION_COLUMN,
    VARIABLE,
)
from synovia.kernels.math.rotations import apply, column, load_rotation, matmul, matmul_t, origin_of, rotation_of
from synovia.kernels.math.vectors import add, cross, dot, load, norm, scale, sub
from synovia.kernels.tree.forward import translation_axes
from synovia.kernels.tree.variables import step_unit

SKEWED = F(1e-5)  # largest entry of RᵀR - 1 that counts as rounding
FARTHEST = F(1e15)  # largest coordinate, length units; equals ``LONGEST`` of ``model.geometry``


@inline
def frame_on(frames, row, R, p):
    """Return the frame (R, p) on a row in the world; row -1 is the world."""
    if row < 0:
        return R, p
    W = rotation_of(frames, row)
    return matmul(W, R), add(origin_of(frames, row), apply(W, p))


@inline
def goal_offset(problem, g):
    """Return the point of goal g in the frame of its row."""
    return load(problem.goal_data, g, GOAL_ORIGIN)


@inline
def local_frame(problem, g):
    """Return the frame (R, p) of goal g in the frame of its row."""
    return load_rotation(problem.goal_data, g, GOAL_ORIENTATION), goal_offset(problem, g)


@inline
def goal_frame(problem, frames, g):
    """Return the world frame (R, p) of goal g."""
    R, p = local_frame(problem, g)
    return frame_on(frames, problem.goals[g, GOAL_ROW], R, p)


@inline
def target_frame(targets, g):
    """Return the target frame (R, p) of goal g."""
    t = targets[g]
    return (t[0], t[1], t[2], t[4], t[5], t[6], t[8], t[9], t[10]), (t[3], t[7], t[11])


@inline
def row_target(problem, targets, g):
    """Return the world position that the joint of goal g has if the goal's position and rotation are at its target."""
    T, t = target_frame(targets, g)
    R, p = local_frame(problem, g)
    return sub(t, apply(matmul_t(T, R), p))


@inline
def set_target(targets, g, R, p):
    """Write the target frame of goal g."""
    t = targets[g]
    for i in range(3):
        t[4 * i] = R[3 * i]
        t[4 * i + 1] = R[3 * i + 1]
        t[4 * i + 2] = R[3 * i + 2]
        t[4 * i + 3] = p[i]
        t[12 + i] = F(0)
    t[15] = F(1)


@inline
def orthonormal(R):
    """Return R with orthonormal columns, by Gram-Schmidt."""
    x = column(R, 0)
    x = scale(F(1) / norm(x), x)
    y = column(R, 1)
    y = sub(y, scale(dot(x, y), x))
    y = scale(F(1) / norm(y), y)
    z = cross(x, y)
    return x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]


@inline
def is_invalid(targets, g, parts):
    """Return whether one of the given parts (bits) of a target is not finite or not a rigid transform."""
    R, p = target_frame(targets, g)
    if parts & POSITION:
        inside = abs(p[0]) <= FARTHEST and abs(p[1]) <= FARTHEST and abs(p[2]) <= FARTHEST  # else squares overflow
        if not (inside and dot(p, p) <= FARTHEST * FARTHEST):
            return True
    if parts & ROTATION:
        E = matmul_t(R, R)
        off = max(abs(E[0] - F(1)), abs(E[4] - F(1)), abs(E[8] - F(1)), abs(E[1]), abs(E[2]), abs(E[5]))
        x, y, z = load(targets, g, LAST_ROW)
        last = abs(x) + abs(y) + abs(z) + abs(targets[g, LAST_ROW + 3] - F(1))
        turn = dot(cross(column(R, 0), column(R, 1)), column(R, 2))
        return not (off < SKEWED and last < SKEWED and turn > F(0))
    return False


@inline
def write_given(targets, complete, g, parts):
    """Copy the given parts (bits) of goal g's target into ``complete``, with an orthonormal rotation."""
    R, p = target_frame(complete, g)
    T, t = target_frame(targets, g)
    if parts & ROTATION:
        R = orthonormal(T)
    if parts & POSITION:
        p = t
    set_target(complete, g, R, p)


@inline
def add_column(J, k, parts, v, linear, angular, wp, wr):
    """Add one joint axis to column v of the Jacobian rows of a goal, from row k on."""
    if parts & POSITION:
        for i in range(3):
            J[k + i, v] += wp * linear[i]
        k += 3
    if parts & ROTATION:
        for i in range(3):
            J[k + i, v] += wr * angular[i]


@inline
def rate(problem, row):
    """Return the motion of the hinge or slide of a row (radians or length units) per unit of its column.

    The unit of the column is that of the driving variable: a slide may follow a hinge.
    """
    tree = problem.tree
    return tree.couple[row, RATIO] * step_unit(problem.limits, tree.ints[row, VARIABLE], problem.reach)


@device
def add_frame_rows(problem, q, frames, row, p, parts, k, wp, wr, J):
    """Add the Jacobian of a frame at p on a row of the tree to the rows from k on.

    The rows of the position are multiplied by wp, and those of the rotation by wr. A hinge has the column
    (z × (p - o), z), a slide (z, 0), and a ball has the columns of three hinges about its own axes. Columns of
    translations are per length scale.
    """
    tree = problem.tree
    zero = (F(0), F(0), F(0))
    while row >= 0:
        kind, v, translation = tree.ints[row, KIND], tree.ints[row, COLUMN], tree.ints[row, TRANSLATION_COLUMN]
        R = rotation_of(frames, row)
        arm = sub(p, origin_of(frames, row))
        if kind == HINGE and v >= 0:
            z = scale(rate(problem, row), column(R, 2))
            add_column(J, k, parts, v, cross(z, arm), z, wp, wr)
        elif kind == SLIDE and v >= 0:
            z = scale(rate(problem, row), column(R, 2))
            add_column(J, k, parts, v, z, zero, wp, wr)
        elif (kind == BALL or kind == FREE) and v >= 0:
            for c in range(3):
                z = column(R, c)
                add_column(J, k, parts, v + c, cross(z, arm), z, wp, wr)
        if translation >= 0:
            A = translation_axes(tree, row, q, R)
            for c in range(3):
                z = scale(problem.reach, column(A, c))
                add_column(J, k, parts, translation + c, z, zero, wp, wr)
        row = tree.ints[row, PARENT]


@inline
def add_joint_row(problem, q, frames, row, force, torque, J, k):
    """Add to Jacobian row k the entries of one joint, z·torque or z·force, for a wrench at its origin."""
    tree = problem.tree
    kind, v, translation = tree.ints[row, KIND], tree.ints[row, COLUMN], tree.ints[row, TRANSLATION_COLUMN]
    R = rotation_of(frames, row)
    if kind == HINGE and v >= 0:
        J[k, v] += rate(problem, row) * dot(column(R, 2), torque)
    elif kind == SLIDE and v >= 0:
        J[k, v] += rate(problem, row) * dot(column(R, 2), force)
    elif (kind == BALL or kind == FREE) and v >= 0:
        for c in range(3):
            J[k, v + c] += dot(column(R, c), torque)
    if translation >= 0:
        A = translation_axes(tree, row, q, R)
        for c in range(3):
            J[k, translation + c] += problem.reach * dot(column(A, c), force)


@device
def add_wrench_row(problem, q, frames, row, p, force, torque, J, k):
    """Add to Jacobian row k the entries of all joints above a row, for a force at p and a torque on the row.

    By virtual work, this is the Jacobian row of a residual whose derivative with respect to the velocity of p and the
    angular velocity of the body is (force, torque).
    """
    while row >= 0:
        about = add(cross(sub(p, origin_of(frames, row)), force), torque)
        add_joint_row(problem, q, frames, row, force, about, J, k)
        row = problem.tree.ints[row, PARENT]
