"""Step coordinates (a chart) in which joint limits are simple bounds: limited balls move by swing vector and twist.

At a pose, each limited ball has three step directions: the swing along the outward normal of its limit ellipse, the
swing along the ellipse, and the twist. All other joints keep their Jacobian columns. Every step component then has a
lower and an upper bound, the box. Angular velocities as coordinates would not work: the limit curves away from a step
along it, so the step ends inside the limit. The limit then counts as free, the next step reaches it again, and so on.

A row of the box belongs to one Jacobian column: lower bound, upper bound, two marks (see ``bounded``), and the angular
velocity, in the joint's frame (3), of one unit of the column.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    BOX_LOWER,
    BOX_UPPER,
    LOWER,
    SCALAR,
    TWIST_LOWER,
    TWIST_UPPER,
    UPPER,
    VELOCITY,
)
from synovia.kernels.math.rotations import PI, load_quat, quat_apply, quat_exp, quat_mul, quat_normalize, store_quat
from synovia.kernels.math.swing_twist import (
    EDGE,
    from_limit_frame,
    half_angles,
    is_whole_turn,
    join,
    limit_frame,
    nearest_swing,
    nearest_twist,
    split,
    to_limit_frame,
)
from synovia.kernels.math.vectors import dot, load, scale, store
from synovia.kernels.tree.variables import clamp_block, is_limited, step_unit

NEAR = F(1e-9)  # a bound at most this far away (radians or length scales) counts as touched
DIFFERENCE = F(1e-4)  # step (radians) of central differences along the directions
INFINITE = F(math.inf)


@device
def velocity(limit, k, s, twist, rate):
    """Return the angular velocity, in the joint's frame, of a ball whose (sx, sy, twist) change at ``rate``.

    The swing contributes by the right Jacobian of the exponential map (Sola et al. 2018, eq. 143) at (sx, sy, 0),
    turned back by the twist.
    """
    sx, sy = s
    x, y, z = rate
    squared = sx * sx + sy * sy
    angle = math.sqrt(squared)
    if angle > F(1e-3):
        sine = math.sin(angle) / angle
        along = (F(1) - sine) / squared
        across = (F(1) - math.cos(angle)) / squared
    else:
        sine = F(1) - squared / F(6)
        along = F(1) / F(6) - squared / F(120)
        across = F(0.5) - squared / F(24)
    r = along * (sx * x + sy * y)
    w = (sine * x + r * sx, sine * y + r * sy, z - across * (sx * y - sy * x))
    return quat_apply(limit_frame(limit, k), quat_apply(quat_exp((F(0), F(0), -twist)), w))


@inline
def swing_is_unbounded(limit, k, sx, sy):
    """Return whether the swing is unlimited on this side, as for half-angles of π."""
    a, b = half_angles(limit, k, sx, sy)
    return min(a, b) >= PI - EDGE


@device
def support(limit, k, x, y):
    """Return the support function of the limit ellipse: its extent in the direction (x, y)."""
    a, b = half_angles(limit, k, x, y)
    return math.sqrt(a * x * a * x + b * y * b * y)


@device
def ellipse_normal(limit, k, s):
    """Return (f, slope, n, curvature) of the limit ellipse at a swing vector.

    f is 0 at the centre and 1 on the ellipse, ``slope`` the length of its gradient, and n its unit outward normal.
    """
    x, y = s
    if x * x + y * y < F(1e-24):
        x, y = F(1e-12), F(0)
    a, b = half_angles(limit, k, x, y)
    f = math.sqrt((x / a) * (x / a) + (y / b) * (y / b))
    gx, gy = x / (a * a * f), y / (b * b * f)
    slope = math.sqrt(gx * gx + gy * gy)
    curvature = F(1) / (a * a * b * b * f * slope * slope * slope)
    return f, slope, (gx / slope, gy / slope), curvature


@device
def direction(n, c):
    """Return step direction c of a ball as rates of (sx, sy, twist). n is the outward normal of its ellipse."""
    if c == 0:
        return n[0], n[1], F(0)
    if c == 1:
        return -n[1], n[0], F(0)
    return F(0), F(0), F(1)


@device
def write_ball_bounds(limit, k, v, q, box):
    """Write the bounds and directions of a step of a limited ball, at q, to the three rows of ``box`` from v on."""
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    f, slope, n, _ = ellipse_normal(limit, k, (sx, sy))
    t = (-n[1], n[0])
    if swing_is_unbounded(limit, k, sx, sy):
        box[v, BOX_LOWER], box[v, BOX_UPPER] = -INFINITE, INFINITE
        box[v + 1, BOX_LOWER], box[v + 1, BOX_UPPER] = -INFINITE, INFINITE
    else:
        box[v, BOX_LOWER] = -support(limit, k, -n[0], -n[1]) - (sx * n[0] + sy * n[1])
        box[v, BOX_UPPER] = max(F(0), (F(1) - f) / slope)
        box[v + 1, BOX_LOWER] = -support(limit, k, -t[0], -t[1]) - (sx * t[0] + sy * t[1])
        box[v + 1, BOX_UPPER] = support(limit, k, t[0], t[1]) - (sx * t[0] + sy * t[1])
    lower, upper = limit[k, TWIST_LOWER], limit[k, TWIST_UPPER]
    whole = is_whole_turn(limit, k)
    near = nearest_twist(twist, lower, upper)
    box[v + 2, BOX_LOWER], box[v + 2, BOX_UPPER] = (-INFINITE, INFINITE) if whole else (lower - near, upper - near)
    for c in range(3):
        w = velocity(limit, k, (sx, sy), twist, direction(n, c))
        store(box, v + c, VELOCITY, w)


@device
def add_ball_curvature(limit, k, v, q, g, active, H):
    """Add to H the curvature of one ball's coordinates, and of its limit ellipse if ``active``.

    A step y rotates the ball by w = M y + (∂M/∂y y) y / 2, and the cost falls by g·w. The gradient along the normal is
    the multiplier of the limit. This multiplier times the curvature of the ellipse is the cost of sliding along the
    limit.
    """
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    _, _, n, curvature = ellipse_normal(limit, k, (sx, sy))
    for i in range(3):
        x, y, z = scale(DIFFERENCE, direction(n, i))
        for j in range(3):
            rate = direction(n, j)
            after = dot(g, velocity(limit, k, (sx + x, sy + y), twist + z, rate))
            before = dot(g, velocity(limit, k, (sx - x, sy - y), twist - z, rate))
            d = F(0.25) * (after - before) / DIFFERENCE
            H[v + i, v + j] -= d
            H[v + j, v + i] -= d
    if active:
        push = dot(g, velocity(limit, k, (sx, sy), twist, direction(n, 0)))
        H[v + 1, v + 1] += max(F(0), push) * curvature


@device
def write_bounds(problem, q, box):
    """Write the box of a pose: the bounds of every column, and the step directions of limited balls."""
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            unit = F(1) / step_unit(problem.limits, k, problem.reach)
            box[v, BOX_LOWER] = unit * (problem.limits[k, LOWER] - q[at])
            box[v, BOX_UPPER] = unit * (problem.limits[k, UPPER] - q[at])
        elif is_limited(problem.limits, k):
            write_ball_bounds(problem.limits, k, v, load_quat(q, at), box)
        else:
            for c in range(v, v + 3):
                box[c, BOX_LOWER], box[c, BOX_UPPER] = -INFINITE, INFINITE


@device
def add_chart_curvature(problem, q, box, g, H):
    """Add to H the curvature of the coordinates of all limited balls. The gradient g is in angular velocities."""
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] != SCALAR and is_limited(problem.limits, k):
            at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
            w = (g[v], g[v + 1], g[v + 2])
            add_ball_curvature(problem.limits, k, v, load_quat(q, at), w, box[v, BOX_UPPER] <= NEAR, H)


@device
def to_box(problem, box, J):
    """Convert the columns of limited balls from angular velocities to the directions of the box."""
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] != SCALAR and is_limited(problem.limits, k):
            v = problem.variables[k, BLOCK_COLUMN]
            for i in range(J.shape[0]):
                x, y, z = J[i, v], J[i, v + 1], J[i, v + 2]
                for c in range(v, v + 3):
                    J[i, c] = dot((x, y, z), load(box, c, VELOCITY))


@device
def move_ball(limit, k, q, step):
    """Return the nearest allowed rotation after a step from q in the directions of the box."""
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    _, _, n, _ = ellipse_normal(limit, k, (sx, sy))
    free = swing_is_unbounded(limit, k, sx, sy)
    sx, sy = sx + step[0] * n[0] - step[1] * n[1], sy + step[0] * n[1] + step[1] * n[0]
    if not free:
        sx, sy = nearest_swing(limit, k, sx, sy)
    twist += step[2]
    if not is_whole_turn(limit, k):
        twist = min(max(twist, limit[k, TWIST_LOWER]), limit[k, TWIST_UPPER])
    return from_limit_frame(limit, k, join(sx, sy, twist))


@device
def move(problem, q, y, size):
    """Move q by size * y, a step in the directions of the box, and clamp it to the limits."""
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            q[at] += size * step_unit(problem.limits, k, problem.reach) * y[v]
        else:
            w = (size * y[v], size * y[v + 1], size * y[v + 2])
            p = load_quat(q, at)
            if is_limited(problem.limits, k):
                p = move_ball(problem.limits, k, p, w)
            else:
                p = quat_mul(p, quat_exp(w))
            store_quat(q, at, quat_normalize(p))
        clamp_block(problem.variables, problem.limits, k, q)
