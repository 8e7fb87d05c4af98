"""Goals as residuals with a Jacobian.

A goal's frame is fixed on a joint; its error is the vector from there to the target, and the rotation vector (SO(3)
logarithm) that turns it onto the target, both in the world: right up to half a turn.
"""

from synovia.kernels._jit import F, device, inline
from synovia.kernels.forward import BALL, FREE, HINGE, SLIDE
from synovia.kernels.problem import POSITION, ROTATION
from synovia.kernels.rotations import (
    angle_of,
    apply,
    column,
    identity,
    load_quat,
    load_rotation,
    log_rotation,
    matmul,
    matmul_t,
    quat_matrix,
)
from synovia.kernels.variables import SCALAR
from synovia.kernels.vectors import add, cross, dot, load, norm, scale, sub

SKEWED = F(1e-5)  # largest entry of RᵀR - 1 that passes as rounding
FARTHEST = F(1e150)  # reaches; squares beyond it overflow


@inline
def goal_frame(problem, frames, g):
    """Return the world frame (R, p) of goal g."""
    row = problem.goals[g, 1]
    R = load_rotation(problem.goal_data, g, 2)
    p = load(problem.goal_data, g, 11)
    if row < 0:
        return R, p
    W = load_rotation(frames, row, 0)
    return matmul(W, R), add(load(frames, row, 9), apply(W, p))


@inline
def target_frame(targets, g):
    """Return the wanted world frame (R, p) of goal g."""
    t = targets[g]
    return (t[0], t[1], t[2], t[4], t[5], t[6], t[8], t[9], t[10]), (t[3], t[7], t[11])


@inline
def set_target(targets, g, R, p):
    """Write the wanted world frame of goal g."""
    t = targets[g]
    for i in range(3):
        t[4 * i] = R[3 * i]
        t[4 * i + 1] = R[3 * i + 1]
        t[4 * i + 2] = R[3 * i + 2]
        t[4 * i + 3] = p[i]
        t[12 + i] = F(0)
    t[15] = F(1)


@device
def refused_target(problem, targets):
    """Return the first goal whose given target is not finite or no rigid transform, or -1: the check at the door."""
    for g in range(problem.goals.shape[0]):
        what = problem.goals[g, 0] & int(targets[g, 16])
        R, p = target_frame(targets, g)
        if what & POSITION and not abs(p[0]) + abs(p[1]) + abs(p[2]) < FARTHEST * problem.reach:
            return g
        if what & ROTATION:
            E = matmul_t(R, R)
            off = max(abs(E[0] - F(1)), abs(E[4] - F(1)), abs(E[8] - F(1)), abs(E[1]), abs(E[2]), abs(E[5]))
            last = abs(targets[g, 12]) + abs(targets[g, 13]) + abs(targets[g, 14]) + abs(targets[g, 15] - F(1))
            turn = dot(cross(column(R, 0), column(R, 1)), column(R, 2))
            if not (off < SKEWED and last < SKEWED and turn > F(0)):
                return g
    return -1


@inline
def orthonormal(R):
    """Return R with its rounding removed: Gram-Schmidt on the columns."""
    x = column(R, 0)
    x = scale(F(1) / norm(x), x)
    y = column(R, 1)
    y = sub(y, scale(dot(x, y), x))
    y = scale(F(1) / norm(y), y)
    z = cross(x, y)
    return x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]


@inline
def all_given(problem, targets):
    """Return whether every goal is given all that it asks for, so that the start's frames are not needed."""
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, 0] & int(targets[g, 16]) != problem.goals[g, 0]:
            return False
    return True


@device
def complete_targets(problem, frames, targets, kept):
    """Write the targets that hold (kept): the given ones, and the place at the start for what is not given.

    What a goal does not ask for is left as the unit frame has it.
    """
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, 0] & int(targets[g, 16]) == problem.goals[g, 0]:
            set_target(kept, g, identity(), (F(0), F(0), F(0)))
        else:
            R, p = goal_frame(problem, frames, g)
            set_target(kept, g, R, p)
    replace_targets(problem, targets, kept)


@device
def replace_targets(problem, targets, kept):
    """Write the targets that are given over those that are kept."""
    for g in range(problem.goals.shape[0]):
        R, p = target_frame(kept, g)
        T, t = target_frame(targets, g)
        given = problem.goals[g, 0] & int(targets[g, 16])
        if given & ROTATION:
            R = orthonormal(T)
        if given & POSITION:
            p = t
        set_target(kept, g, R, p)


@inline
def goal_error(problem, frames, targets, g):
    """Return (vector to the target, rotation vector onto the target) of goal g, in the world."""
    R, p = goal_frame(problem, frames, g)
    T, t = target_frame(targets, g)
    return sub(t, p), log_rotation(matmul_t(T, R))


@device
def residual(problem, frames, targets, e):
    """Write the weighted residuals, lengths in units of the reach.

    Returns:
        (cost e·e, the largest error in units of its tolerance: at most 1 when every goal holds).
    """
    cost = F(0)
    worst = F(0)
    for g in range(problem.goals.shape[0]):
        what = problem.goals[g, 0]
        k = problem.goals[g, 2]
        d, w = goal_error(problem, frames, targets, g)
        if what & POSITION:
            worst = max(worst, norm(d) / problem.tolerance)
            d = scale(problem.goal_data[g, 0] / problem.reach, d)
            e[k], e[k + 1], e[k + 2] = d
            cost += dot(d, d)
            k += 3
        if what & ROTATION:
            worst = max(worst, norm(w) / problem.tolerance_angle)
            w = scale(problem.goal_data[g, 1], w)
            e[k], e[k + 1], e[k + 2] = w
            cost += dot(w, w)
    return cost, worst


@device
def measure(problem, frames, targets, errors):
    """Write each goal's distance (length units) and angle (radians); return the largest in units of its tolerance."""
    worst = F(0)
    for g in range(problem.goals.shape[0]):
        what = problem.goals[g, 0]
        R, p = goal_frame(problem, frames, g)
        T, t = target_frame(targets, g)
        errors[2 * g] = norm(sub(t, p)) if what & POSITION else F(0)
        errors[2 * g + 1] = angle_of(matmul_t(T, R)) if what & ROTATION else F(0)
        worst = max(worst, errors[2 * g] / problem.tolerance, errors[2 * g + 1] / problem.tolerance_angle)
    return worst


@inline
def put(J, k, what, v, linear, angular, wp, wr):
    """Add one column's share to the rows of a goal that start at k."""
    if what & POSITION:
        for i in range(3):
            J[k + i, v] += wp * linear[i]
        k += 3
    if what & ROTATION:
        for i in range(3):
            J[k + i, v] += wr * angular[i]


@device
def jacobian(problem, q, frames, J):
    """Write the Jacobian of the goals' places by cross products; minus the derivative of ``residual``.

    Hinge: (z × (p - o), z); slide: (z, 0), a ball: three hinges about its own axes. Columns of lengths are per reach,
    like the residuals. Joints that are no ancestors of a goal keep columns of zeros.
    """
    tree = problem.tree
    nothing = (F(0), F(0), F(0))
    J[:, :] = F(0)
    for g in range(problem.goals.shape[0]):
        what, row, k = problem.goals[g, 0], problem.goals[g, 1], problem.goals[g, 2]
        wp, wr = problem.goal_data[g, 0] / problem.reach, problem.goal_data[g, 1]
        _, p = goal_frame(problem, frames, g)
        while row >= 0:
            kind, v, free = tree.ints[row, 0], tree.ints[row, 3], tree.ints[row, 4]
            R = load_rotation(frames, row, 0)
            arm = sub(p, load(frames, row, 9))
            if kind == HINGE and v >= 0:
                z = scale(tree.couple[row, 0], column(R, 2))
                put(J, k, what, v, cross(z, arm), z, wp, wr)
            elif kind == SLIDE and v >= 0:
                z = scale(tree.couple[row, 0] * problem.reach, column(R, 2))
                put(J, k, what, v, z, nothing, wp, wr)
            elif (kind == BALL or kind == FREE) and v >= 0:
                for c in range(3):
                    z = (R[c], R[c + 3], R[c + 6])
                    put(J, k, what, v + c, cross(z, arm), z, wp, wr)
            if free >= 0:
                before = matmul_t(R, quat_matrix(load_quat(q, tree.ints[row, 2] + 3)))
                for c in range(3):
                    z = scale(problem.reach, (before[c], before[c + 3], before[c + 6]))
                    put(J, k, what, free + c, z, nothing, wp, wr)
            row = tree.ints[row, 1]


@device
def to_units(problem, dq):
    """Turn a step in the solvers' units into one in the units of q: lengths were counted in reaches."""
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, 0] == SCALAR and problem.limits[k, 10] == F(0):
            dq[problem.variables[k, 2]] *= problem.reach
