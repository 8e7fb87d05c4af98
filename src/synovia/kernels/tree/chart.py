"""Coordinates in which limits are bounds: every limited ball moves by its swing vector and its twist.

At a pose each ball has three directions of its own: the swing along the outward normal of its ellipse, the swing along
the ellipse, and the twist. All other columns keep theirs. A step then has a lower and an upper bound for each number,
whatever the joint. Angular velocities would not do: a step along a limit leaves it by its square, to the inside, where
the limit is lost until the next step runs into it, and so on for ever.

A row of the box belongs to one column: lower bound, upper bound, two marks (see ``bounded``), and the angular velocity
in the joint's frame (3) that its unit is.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    BOX_LOWER,
    BOX_UPPER,
    IS_ANGLE,
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
    join,
    limit_frame,
    nearest_swing,
    nearest_twist,
    split,
    to_limit_frame,
)
from synovia.kernels.math.vectors import dot, load, scale, store
from synovia.kernels.tree.variables import clamp_block, is_limited

NEAR = F(1e-9)  # radians or reaches from a bound within which it is touched
NUDGE = F(1e-4)  # radians, for central differences of the directions
INFINITE = F(math.inf)


@device
def velocity(limit, k, s, twist, way):
    """Return the angular velocity, in the joint's frame, of a ball whose (sx, sy, twist) move at the rates ``way``.

    The swing's is the right Jacobian of the exponential map (Sola et al. 2018, eq. 143) at (sx, sy, 0); the twist
    carries it along.
    """
    sx, sy = s
    x, y, z = way
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
def goes_round(limit, k, sx, sy):
    """Return whether the swing has no end on this side: half a turn is the same on both."""
    a, b = half_angles(limit, k, sx, sy)
    return min(a, b) >= PI - EDGE


@device
def support(limit, k, x, y):
    """Return how far the ellipse reaches in the direction (x, y)."""
    a, b = half_angles(limit, k, x, y)
    return math.sqrt(a * x * a * x + b * y * b * y)


@device
def ellipse_normal(limit, k, s):
    """Return (place on the way out: 1 on the ellipse, its slope, unit normal, curvature) of a swing vector."""
    x, y = s
    if x * x + y * y < F(1e-24):
        x, y = F(1e-12), F(0)
    a, b = half_angles(limit, k, x, y)
    f = math.sqrt((x / a) * (x / a) + (y / b) * (y / b))
    gx, gy = x / (a * a * f), y / (b * b * f)
    slope = math.sqrt(gx * gx + gy * gy)
    bend = F(1) / (a * a * b * b * f * slope * slope * slope)
    return f, slope, (gx / slope, gy / slope), bend


@device
def direction(n, c):
    """Return direction c of a ball as rates of (sx, sy, twist); n is the outward normal of its ellipse."""
    if c == 0:
        return n[0], n[1], F(0)
    if c == 1:
        return -n[1], n[0], F(0)
    return F(0), F(0), F(1)


@device
def write_ball_bounds(limit, k, v, q, box):
    """Write the three rows of a limited ball."""
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    f, slope, n, _ = ellipse_normal(limit, k, (sx, sy))
    t = (-n[1], n[0])
    if goes_round(limit, k, sx, sy):
        box[v, BOX_LOWER], box[v, BOX_UPPER], box[v + 1, BOX_LOWER], box[v + 1, BOX_UPPER] = (
            -INFINITE,
            INFINITE,
            -INFINITE,
            INFINITE,
        )
    else:
        box[v, BOX_LOWER] = -support(limit, k, -n[0], -n[1]) - (sx * n[0] + sy * n[1])
        box[v, BOX_UPPER] = max(F(0), (F(1) - f) / slope)
        box[v + 1, BOX_LOWER] = -support(limit, k, -t[0], -t[1]) - (sx * t[0] + sy * t[1])
        box[v + 1, BOX_UPPER] = support(limit, k, t[0], t[1]) - (sx * t[0] + sy * t[1])
    lower, upper = limit[k, TWIST_LOWER], limit[k, TWIST_UPPER]
    whole = upper - lower >= F(2) * PI - EDGE
    near = nearest_twist(twist, lower, upper)
    box[v + 2, BOX_LOWER], box[v + 2, BOX_UPPER] = (-INFINITE, INFINITE) if whole else (lower - near, upper - near)
    for c in range(3):
        w = velocity(limit, k, (sx, sy), twist, direction(n, c))
        store(box, v + c, VELOCITY, w)


@device
def bend_ball(limit, k, v, q, g, touches, H):
    """Add to H what the ball's coordinates bend, and the ellipse if it holds the ball.

    A step y turns the ball by w = M y + (∂M/∂y y) y / 2, and the cost falls by g·w. The gradient along the normal is
    the limit's multiplier; the ellipse's curvature times it says what sliding along the limit costs.
    """
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    _, _, n, bend = ellipse_normal(limit, k, (sx, sy))
    for i in range(3):
        x, y, z = scale(NUDGE, direction(n, i))
        for j in range(3):
            way = direction(n, j)
            after = dot(g, velocity(limit, k, (sx + x, sy + y), twist + z, way))
            before = dot(g, velocity(limit, k, (sx - x, sy - y), twist - z, way))
            d = F(0.25) * (after - before) / NUDGE
            H[v + i, v + j] -= d
            H[v + j, v + i] -= d
    if touches:
        push = dot(g, velocity(limit, k, (sx, sy), twist, direction(n, 0)))
        H[v + 1, v + 1] += max(F(0), push) * bend


@device
def write_bounds(problem, q, box):
    """Write the box of a pose: the bounds of every column, and the directions of limited balls."""
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            unit = F(1) if problem.limits[k, IS_ANGLE] != F(0) else F(1) / problem.reach
            box[v, BOX_LOWER] = unit * (problem.limits[k, LOWER] - q[at])
            box[v, BOX_UPPER] = unit * (problem.limits[k, UPPER] - q[at])
        elif is_limited(problem.limits, k):
            write_ball_bounds(problem.limits, k, v, load_quat(q, at), box)
        else:
            for c in range(v, v + 3):
                box[c, BOX_LOWER], box[c, BOX_UPPER] = -INFINITE, INFINITE


@device
def add_chart_curvature(problem, q, box, g, H):
    """Add what the coordinates of all limited balls bend; g in angular velocities."""
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] != SCALAR and is_limited(problem.limits, k):
            at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
            w = (g[v], g[v + 1], g[v + 2])
            bend_ball(problem.limits, k, v, load_quat(q, at), w, box[v, BOX_UPPER] <= NEAR, H)


@device
def to_box(problem, box, J):
    """Turn the columns of limited balls from angular velocities into those of the box."""
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] != SCALAR and is_limited(problem.limits, k):
            v = problem.variables[k, BLOCK_COLUMN]
            for i in range(J.shape[0]):
                x, y, z = J[i, v], J[i, v + 1], J[i, v + 2]
                for c in range(v, v + 3):
                    J[i, c] = dot((x, y, z), load(box, c, VELOCITY))


@device
def move_ball(limit, k, q, step):
    """Return the rotation q after a step in the box's directions, brought to the nearest allowed one."""
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    _, _, n, _ = ellipse_normal(limit, k, (sx, sy))
    free = goes_round(limit, k, sx, sy)
    sx, sy = sx + step[0] * n[0] - step[1] * n[1], sy + step[0] * n[1] + step[1] * n[0]
    if not free:
        sx, sy = nearest_swing(limit, k, sx, sy)
    twist += step[2]
    if limit[k, TWIST_UPPER] - limit[k, TWIST_LOWER] < F(2) * PI - EDGE:
        twist = min(max(twist, limit[k, TWIST_LOWER]), limit[k, TWIST_UPPER])
    return from_limit_frame(limit, k, join(sx, sy, twist))


@device
def move(problem, q, y, size):
    """Move q by size * y, a step in the box's directions, and within the limits."""
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            unit = F(1) if problem.limits[k, IS_ANGLE] != F(0) else problem.reach
            q[at] += size * unit * y[v]
        else:
            w = (size * y[v], size * y[v + 1], size * y[v + 2])
            p = load_quat(q, at)
            if is_limited(problem.limits, k):
                p = move_ball(problem.limits, k, p, w)
            else:
                p = quat_mul(p, quat_exp(w))
            store_quat(q, at, quat_normalize(p))
        clamp_block(problem.variables, problem.limits, k, q)
