"""Bounds of a goal, axis by axis: how far a frame may be displaced or rotated from its target.

Let (T, t) be the target, (R, p) the frame, and A the axes of the bounds: T, or R for bounds in the frame itself.

A position has the values x = Aᵀ (p - t).

A rotation is a twist about axis k, then the smallest rotation that takes the axis n of the target to the axis u of the
frame, n = T e_k and u = R e_k. Its values are the angle of the twist for axis k, and the components of the rotation
vector s of the smallest rotation for the other two axes: s = α m, m = n × u / |n × u|, α = atan2(|n × u|, n·u). So a
frame that rotates freely about axis k keeps the other two values. Where u = -n, the twist is undefined.

The twist is an angle modulo 2π: if it is outside its bounds, its error is the shorter rotation to a bound.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import add_wrench_row, goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, turn_between, unit_weight
from synovia.kernels.layout import FIRST, GOAL, GOAL_ROW, LENGTHS, NUMBERS
from synovia.kernels.math.rotations import PI, column
from synovia.kernels.math.vectors import add, axpy, cross, dot, norm, normalize, perpendicular, scale, sub

LOWEST, HIGHEST, IN_FRAME, TWIST = NUMBERS, NUMBERS + 3, NUMBERS + 6, NUMBERS + 7  # parameters of the term
OPEN = F(1e150)  # a bound of a larger size counts as none
STRAIGHT = F(1e-12)  # sin(α) below which α / sin(α) is 1
REVERSED = F(1e-9)  # 1 + cos(α) below which the rate of the twist is limited


@inline
def is_free(general, term, i):
    """Return whether axis i has no bounds."""
    return general.data[term, LOWEST + i] < -OPEN and general.data[term, HIGHEST + i] > OPEN


@inline
def is_exact(general, term, i):
    """Return whether axis i has a single allowed value."""
    return general.data[term, LOWEST + i] == general.data[term, HIGHEST + i]


@inline
def placed(problem, frames, targets, term):
    """Return the target (T, t) and the frame (R, p) of a term as (T, t, R, p)."""
    g = problem.general.ints[term, GOAL]
    T, t = target_frame(targets, g)
    R, p = goal_frame(problem, frames, g)
    return T, t, R, p


@inline
def twist_between(T, R, k):
    """Return the angle of the twist about axis k from T to R, in [-π, π]."""
    a, b = (k + 1) % 3, (k + 2) % 3
    ta, tb, ra, rb = column(T, a), column(T, b), column(R, a), column(R, b)
    return math.atan2(dot(tb, ra) - dot(ta, rb), dot(ta, ra) + dot(tb, rb))


@device
def bounds(general, term, at):
    """Return the lower and the upper bounds of the three values, relative to their present values; see ``placed``."""
    data = general.data
    T, t, R, p = at
    A = R if data[term, IN_FRAME] > F(0) else T
    turns = general.ints[term, LENGTHS] == 0
    k = int(data[term, TWIST]) if turns else -1
    v = turn_between(column(T, k), column(R, k)) if turns else sub(p, t)
    x = (dot(column(A, 0), v), dot(column(A, 1), v), dot(column(A, 2), v))
    low = (data[term, LOWEST] - x[0], data[term, LOWEST + 1] - x[1], data[term, LOWEST + 2] - x[2])
    high = (data[term, HIGHEST] - x[0], data[term, HIGHEST + 1] - x[1], data[term, HIGHEST + 2] - x[2])
    if turns and not is_free(general, term, k):
        middle = F(0.5) * (data[term, LOWEST + k] + data[term, HIGHEST + k])
        half = F(0.5) * (data[term, HIGHEST + k] - data[term, LOWEST + k])
        turn = twist_between(T, R, k) - middle
        turn -= F(2) * PI * math.floor(turn / (F(2) * PI) + F(0.5))
        low, high = with_value(low, k, -half - turn), with_value(high, k, half - turn)
    return low, high


@inline
def with_value(x, k, value):
    """Return the three values x with value k replaced."""
    return value if k == 0 else x[0], value if k == 1 else x[1], value if k == 2 else x[2]


@inline
def outside(general, term, at):
    """Return how far the three values are outside their bounds (bound minus value, 0 inside)."""
    low, high = bounds(general, term, at)
    return (
        max(low[0], F(0)) + min(high[0], F(0)),
        max(low[1], F(0)) + min(high[1], F(0)),
        max(low[2], F(0)) + min(high[2], F(0)),
    )


@inline
def error(problem, frames, targets, term):
    """Return how far the values are outside their bounds, as lengths d and angles w."""
    out = outside(problem.general, term, placed(problem, frames, targets, term))
    return (out, NOTHING) if problem.general.ints[term, LENGTHS] > 0 else (NOTHING, out)


@device
def gradient(general, term, at, i):
    """Return the derivatives of value i by the velocity v of p, and by the angular velocity ω.

    Let a = A e_i, n, u, s and m as above, and b = m × n. Then a position changes at the rate a·v, the twist at
    (u + n)·ω / (1 + n·u), and another value at a·ds, ds = m (m·ω) - (α / sin α) b ((u × m)·ω). If the axes move with
    the frame, a × (p - t)·ω or a × s·ω is added.
    """
    T, t, R, p = at
    moves = general.data[term, IN_FRAME] > F(0)
    a = column(R, i) if moves else column(T, i)
    if general.ints[term, LENGTHS] > 0:
        return a, cross(a, sub(p, t)) if moves else NOTHING
    k = int(general.data[term, TWIST])
    n, u = column(T, k), column(R, k)
    if i == k:
        return NOTHING, scale(F(1) / max(F(1) + dot(n, u), REVERSED), add(u, n))
    s = turn_between(n, u)
    angle, sine = norm(s), norm(cross(n, u))
    m = normalize(s, perpendicular(n))
    per = angle / sine if sine > STRAIGHT else F(1)
    torque = axpy(dot(a, m), m, scale(-per * dot(a, cross(m, n)), cross(u, m)))
    return NOTHING, add(torque, cross(a, s)) if moves else torque


@device
def pull(general, term, at):
    """Return the gradient of half the squared error: a force, and a torque at p."""
    e = outside(general, term, at)
    force, torque = NOTHING, NOTHING
    for i in range(3):
        if e[i] != F(0):
            f, w = gradient(general, term, at, i)
            force, torque = axpy(-e[i], f, force), axpy(-e[i], w, torque)
    return force, torque


@device
def row(problem, q, frames, targets, term, i, J):
    """Write the Jacobian row of value i."""
    general = problem.general
    g, k, w = general.ints[term, GOAL], general.ints[term, FIRST] + i, unit_weight(problem, term)
    at = placed(problem, frames, targets, term)
    force, torque = gradient(general, term, at, i)
    add_wrench_row(problem, q, frames, problem.goals[g, GOAL_ROW], at[3], scale(w, force), scale(w, torque), J, k)


@inline
def distances(general, term, target, origin):
    """Return the smallest and the largest distance of a point from the positions within the bounds."""
    T, t = target
    least2 = most2 = F(0)
    v = sub(origin, t)
    for i in range(3):
        low, high = general.data[term, LOWEST + i], general.data[term, HIGHEST + i]
        x = F(0) if general.data[term, IN_FRAME] > F(0) else dot(column(T, i), v)
        near = max(low - x, F(0)) + min(high - x, F(0))
        far = min(max(x - low, high - x), OPEN)
        least2 += near * near
        most2 += far * far
    if general.data[term, IN_FRAME] > F(0):  # the axes may have any orientation: a shell about the target
        away, inner, outer = norm(v), math.sqrt(least2), math.sqrt(most2)
        return max(away - outer, inner - away, F(0)), away + outer
    return math.sqrt(least2), math.sqrt(most2)


@device
def rows(problem, q, frames, targets, term, J):
    """Add the Jacobian rows of the values outside their bounds, and of values with a single allowed value."""
    e = outside(problem.general, term, placed(problem, frames, targets, term))
    for i in range(3):
        if e[i] != F(0) or is_exact(problem.general, term, i):
            row(problem, q, frames, targets, term, i, J)


@device
def bounded_rows(problem, q, frames, targets, term, J):
    """Write the Jacobian rows of all values that have bounds, even if they are inside these."""
    for i in range(3):
        if not is_free(problem.general, term, i):
            row(problem, q, frames, targets, term, i, J)
