"""One step of a full body: goals and posture as rows and wishes of the levels, bounds of the pose, and the move."""

import math

from synovia.kernels.compiler.jit import F, apart, device, inline
from synovia.kernels.goals.residuals import jacobian, residual
from synovia.kernels.hierarchy.basis import (
    ALONE,
    BENT,
    FREE,
    GRADIENT,
    LOWER,
    PINNED,
    PLACE,
    SEALED,
    SIDE,
    STEP,
    STIFF,
    UPPER,
    WISH,
    add_row,
    hold,
)
from synovia.kernels.hierarchy.inequalities import put_walls, stand_walls, wall_rows
from synovia.kernels.hierarchy.largest_move import hold_back, slow_down
from synovia.kernels.hierarchy.levels import missing, solve_levels
from synovia.kernels.hierarchy.soft_edge import soften
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    BOX_LOWER,
    BOX_UPPER,
    DAMPING,
    ERROR_DAMPING,
    IS_ANGLE,
    LARGEST_MOVE,
    LARGEST_STEP,
    REST_Q,
    REST_WEIGHT,
    SCALAR,
    SOFT,
)
from synovia.kernels.math.rotations import load_quat, quat_conj, quat_log, quat_mul
from synovia.kernels.math.swing_twist import split, to_limit_frame
from synovia.kernels.tree.chart import INFINITE, ellipse_normal, move, to_box, write_bounds
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy
from synovia.kernels.tree.variables import is_limited

SLOWER = F(10)  # damping of the posture beside that of the levels
SAME = F(1e-9)  # of an error (reaches, radians): poses that differ by less are as good as each other
BELOW = F(1e-2)  # what the squared error of a level counts beside that of the one above
LOOSE = F(0.01)  # weight, of the largest of a posture, with which every variable stays where it is
TOUCHING = F(1e-9)  # radians or reaches from a bound


@apart
def place(problem, q, frames):
    """Write the frames of q."""
    forward(problem.tree, q, frames)


@apart
def derive(problem, q, frames, targets, J, h):
    """Write the Jacobian of the goals, with the walls as they have been put."""
    jacobian(problem, q, frames, targets, J)
    wall_rows(problem.general, problem, q, frames, targets, h.edges, J)


@apart
def advance_pose(problem, q, y):
    """Move q by a step."""
    move(problem, q, y, F(1))


@inline
def ball_reference(limit, k, q, wanted):
    """Return the way from rotation q to the wanted one in the directions in which the ball moves (see ``chart``)."""
    if not is_limited(limit, k):
        return quat_log(quat_mul(quat_conj(q), wanted))
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    _, _, n, _ = ellipse_normal(limit, k, (sx, sy))
    ax, ay, turned = split(to_limit_frame(limit, k, wanted))
    dx, dy = ax - sx, ay - sy
    return dx * n[0] + dy * n[1], dy * n[0] - dx * n[1], turned - twist


@apart
def write_references(problem, q, h):
    """Write what the posture asks of every column, and how stiff each is; return the length of all.

    A variable of weight w moves w / (w + loose) of its way when nothing else asks: all others stay. Upper levels alone
    have no posture, and take the steps that they would take without the goals below.
    """
    most = F(0)
    for k in range(problem.variables.shape[0]):
        most = max(most, problem.posture[k, REST_WEIGHT])
    if h.now[ALONE] != F(0):
        most = F(0)
    total = F(0)
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        w = problem.posture[k, REST_WEIGHT] / most if most > F(0) else F(0)
        stiff = math.sqrt(w + LOOSE) if most > F(0) else F(1)
        share = w / (w + LOOSE)
        if problem.variables[k, BLOCK] == SCALAR:
            unit = F(1) if problem.limits[k, IS_ANGLE] != F(0) else F(1) / problem.reach
            h.v[STIFF, v] = stiff
            y = unit * (problem.posture[k, REST_Q] - q[at]) if w > F(0) else F(0)
            h.v[WISH, v] = share * y
            total += w * y * y
            continue
        y = (F(0), F(0), F(0))
        if w > F(0):
            y = ball_reference(problem.limits, k, load_quat(q, at), load_quat(problem.posture[k], REST_Q))
        for c in range(3):
            h.v[STIFF, v + c] = stiff
            h.v[WISH, v + c] = share * y[c]
            total += w * y[c] * y[c]
    return math.sqrt(total)


@apart
def fill(problem, work, targets, q, h):
    """Write rows, bounds and wishes of a pose into the levels, and hold what stands at a bound and seems pushed out."""
    m, n = work.J.shape
    columns = h.v.shape[1]
    put_walls(problem.general, problem, work.frames, h.edges)
    derive(problem, q, work.frames, targets, work.J, h)
    write_bounds(problem, q, work.box)
    if problem.params[LARGEST_MOVE] < INFINITE:
        slow_down(problem, q, work.box, h.began)
    to_box(problem, work.box, work.J)
    h.now[FREE] = F(columns)
    h.now[BENT] = F(0)
    h.now[PINNED] = F(0)
    for k in range(n):
        s = h.v[STIFF, k]
        h.v[STEP, k] = F(0)
        h.v[SIDE, k] = F(0)
        h.v[SEALED, k] = F(0)
        h.v[PLACE, k] = F(k)
        h.v[LOWER, k] = s * min(work.box[k, BOX_LOWER], F(0))
        h.v[UPPER, k] = s * max(work.box[k, BOX_UPPER], F(0))
        h.v[WISH, k] *= s
        s = F(1) / s
        for i in range(m):
            h.G[i, k] = s * work.J[i, k]
    for i in range(m):
        h.holds[i] = F(1)
    stand_walls(problem.general, problem, q, work.frames, targets, h, n)
    missing(h, 0, m)
    for k in range(columns):
        h.v[GRADIENT, k] = F(0)
    for i in range(m):
        add_row(h.v, GRADIENT, h.s[i], h.G, i, columns)
    for k in range(columns - 1, -1, -1):
        x = h.v[STEP, k]
        if h.v[UPPER, k] - x <= TOUCHING and (h.v[GRADIENT, k] > F(0) or h.v[WISH, k] > x):
            hold(h, k, F(1))
        elif h.v[LOWER, k] - x >= -TOUCHING and (h.v[GRADIENT, k] < F(0) or h.v[WISH, k] < x):
            hold(h, k, F(-1))


@apart
def look(problem, work, targets, q, h):
    """Write frames and residuals of q, and the error of every level; return the largest error in units of tolerance."""
    place(problem, q, work.frames)
    _, worst = residual(problem, q, work.frames, targets, work.e)
    if problem.params[SOFT] > F(0):
        worst = max(worst, soften(problem, work.frames, targets, problem.params[SOFT], work.e))
    levels = problem.levels.shape[0] - 1
    for k in range(levels):
        total = F(0)
        for i in range(problem.levels[k], problem.levels[k + 1]):
            total += work.e[i] * work.e[i]
        h.present[k] = math.sqrt(total)
    h.present[levels] = write_references(problem, q, h)
    return worst


@inline
def smallest_tolerance(problem):
    """Return the error (reaches, radians) below which a level holds."""
    return min(problem.tolerance / problem.reach, problem.tolerance_angle)


@device
def improves(h, count, held):
    """Return whether the present pose is better than the best: in the first of so many levels where they differ.

    Errors up to ``held`` are as good as none. Where an error is no number it is not.
    """
    for k in range(count):
        present, lowest = max(h.present[k], held), max(h.lowest[k], held)
        gap = SAME * (F(1) + lowest)
        if present < lowest - gap:
            return True
        if not present <= lowest + gap:
            return False
    return False


@inline
def keep(h):
    """Take the errors of the present pose for those of the best."""
    for k in range(h.lowest.shape[0]):
        h.lowest[k] = h.present[k]


@device
def ranked(problem, errors, count):
    """Return the errors of the first ``count`` levels as one number, those of each far below those of the one above.

    A level within the tolerance counts as met, or the last digits of one would outweigh those below it.
    """
    met = smallest_tolerance(problem)
    cost = F(0)
    weight = F(1)
    for k in range(min(count, problem.levels.shape[0] - 1)):
        if errors[k] > met:
            cost += weight * errors[k] * errors[k]
        weight *= BELOW
    return cost


@device
def turn_back(problem, work, h):
    """Write the step of the levels in the order and units of the pose's columns; return its longest part."""
    size = F(0)
    for k in range(h.v.shape[1]):
        v = int(h.v[PLACE, k])
        if v >= work.dq.shape[0]:
            continue  # a wall's
        work.dq[v] = h.v[STEP, k] / h.v[STIFF, k]
        size = max(size, abs(work.dq[v]))
    return size


@apart
def take_step(problem, work, targets, q, h, count, extra):
    """Move q by one step of the first ``count`` levels, damped by ``extra`` more; return its longest part.

    Frames and residuals of q are in work.
    """
    copy(work.e, h.e)
    fill(problem, work, targets, q, h)
    solve_levels(
        h,
        problem.levels,
        count,
        problem.params[DAMPING] + extra,
        problem.params[ERROR_DAMPING],
        SLOWER * extra,
        problem.params[LARGEST_STEP],
        True,
    )
    size = turn_back(problem, work, h)
    advance_pose(problem, q, work.dq)
    if problem.params[LARGEST_MOVE] < INFINITE:
        hold_back(problem, q, h.began)
    return size
