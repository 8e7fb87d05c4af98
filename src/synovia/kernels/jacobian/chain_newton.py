"""Newton's method for a chain of balls: reach a target with the smallest rotation of the bones.

Given unit vectors d_i along the bones and their lengths L_i, find new directions u_i that

    maximise Σ L_i d_i·u_i    such that    Σ L_i u_i = T,  |u_i| <= 1,

where T is the vector from root to target. This problem is convex. Its dual has three variables, the multipliers v:

    minimise Φ(v) = Σ L_i |d_i + v| - T·v,    ∇Φ = Σ L_i u_i - T,    ∇²Φ = Σ L_i / |d_i + v| (1 - u_i u_iᵀ),

with u_i = (d_i + v) / |d_i + v|. So the answer is unique, a step costs one pass over the bones, and a chain of a
thousand joints takes as many steps as one of ten. If the optimum shortens a bone (d_i + v = 0, |u_i| < 1), it is not a
pose, and another start is tried. Duality: Boyd & Vandenberghe (2004), chapter 5.
"""

import math

from synovia.kernels.compiler.jit import F, algorithm, device, device_dot, entry, inline, perform
from synovia.kernels.compiler.watch import halted, stopped
from synovia.kernels.goals.frames import target_frame
from synovia.kernels.goals.reach import prove_unreachable
from synovia.kernels.heuristic.fabrik_chain import lay_out, turn_joints
from synovia.kernels.heuristic.loop import nudge
from synovia.kernels.layout import BEST, BONE, PLACE, POSITION_WEIGHT
from synovia.kernels.math.vectors import TINY, axpy, dot, load, norm, scale, store, sub
from synovia.kernels.search.descent import INSIDE
from synovia.kernels.search.multistart import Search, multistart
from synovia.kernels.search.restarts import random_start

ARMIJO = F(1e-4)  # fraction of the predicted decrease that a step must achieve
HALVINGS = 30  # largest number of halvings of one step
ROUNDING = F(1e-15)  # rounding error of Φ, relative to the length of the chain
SINGULAR = F(1e-12)  # fraction of the trace of ∇²Φ that is added to its diagonal


@device
def directions(points, n, D):
    """Write the unit vectors along the bones to the first n columns of D (3, 2n), and the lengths to D[0, n:]."""
    for i in range(n):
        u = sub(load(points, i + 1, PLACE), load(points, i, PLACE))
        size2 = dot(u, u)
        u = scale(F(1) / math.sqrt(size2), u) if size2 > TINY else (F(1), F(0), F(0))
        D[0, i], D[1, i], D[2, i] = u
        D[0, n + i] = points[i, BONE]


@device_dot
def dual(D, n, v):
    """Return Σ L |w|, Σ L w / |w| and Σ L / |w| (1 - w wᵀ / |w|²), lower triangle, with w = d + v.

    d and L are the columns of D and the lengths of the n bones, see ``directions``; v are the multipliers.
    """
    f = gx = gy = gz = c = xx = yx = yy = zx = zy = zz = F(0)
    for i in range(n):
        x, y, z = D[0, i] + v[0], D[1, i] + v[1], D[2, i] + v[2]
        length = D[0, n + i]
        size2 = x * x + y * y + z * z + TINY
        r = F(1) / math.sqrt(size2)
        k = length * r
        f += k * size2
        gx += k * x
        gy += k * y
        gz += k * z
        c += k
        h = k * r * r
        xx += h * x * x
        yx += h * y * x
        yy += h * y * y
        zx += h * z * x
        zy += h * z * y
        zz += h * z * z
    return f, (gx, gy, gz), (c - xx, -yx, c - yy, -zx, -zy, c - zz)


@inline
def solve3(H, g):
    """Solve a symmetric positive definite 3x3 system, given by its lower triangle."""
    more = SINGULAR * (H[0] + H[2] + H[5])
    a, b, d = H[0] + more, H[1] / (H[0] + more), H[3] / (H[0] + more)
    c = H[2] + more - b * b * a
    e = (H[4] - d * b * a) / c
    f = H[5] + more - d * d * a - e * e * c
    y = g[1] - b * g[0]
    z = (g[2] - d * g[0] - e * y) / f
    y = y / c - e * z
    return g[0] / a - b * y - d * z, y, z


@device
def write_points(points, n, root, D, v):
    """Write the best joint positions: from the root bone after bone, along the columns of D plus the multipliers v."""
    p = root
    store(points, 0, BEST, p)
    for i in range(n):
        w = (D[0, i] + v[0], D[1, i] + v[1], D[2, i] + v[2])
        size2 = dot(w, w)
        w = scale(F(1) / math.sqrt(size2), w) if size2 > TINY else (D[0, i], D[1, i], D[2, i])
        p = axpy(D[0, n + i], w, p)
        store(points, i + 1, BEST, p)


@algorithm
def attempt(problem, work, targets, q):
    """Iterate until the goal is met or Φ stops falling; then rotate the joints."""
    n = problem.tree.ints.shape[0]
    points, D = work.points, work.J
    _, t = target_frame(targets, 0)
    total = lay_out(problem, work, q)
    root = load(points, 0, PLACE)
    T = sub(t, root)
    max_distance = INSIDE * problem.tolerance
    weight = problem.goal_data[0, POSITION_WEIGHT] / problem.reach
    steps = 0
    lowest = norm(sub(t, load(points, n, PLACE)))
    if lowest <= max_distance:
        return 0, lowest * lowest * weight * weight
    if norm(T) >= total - max_distance:  # out of reach: straighten the chain towards the target
        store(points, 0, BEST, root)
        for i in range(n):
            store(points, i + 1, BEST, axpy(points[i, BONE] / norm(T), T, load(points, i, BEST)))
        turn_joints(problem, work, q)
        missed = norm(T) - total
        return 1, missed * missed * weight * weight
    for side_step in range(2):
        if side_step == 1:
            perform(nudge, problem, work, targets, q)
            lay_out(problem, work, q)
        directions(points, n, D)
        v = (F(0), F(0), F(0))
        best = v
        f, u, H = dual(D, n, v)
        g = sub(u, T)
        if side_step == 1:
            lowest = norm(g)
        while lowest > max_distance and steps < problem.max_steps and not stopped(work.watch, n):
            dv = scale(F(-1), solve3(H, g))
            slope = dot(g, dv)
            size = F(1)
            for _ in range(HALVINGS):
                tried = axpy(size, dv, v)
                new, u, H = dual(D, n, tried)
                new -= dot(T, tried)
                if new <= f + ARMIJO * size * slope + ROUNDING * total:
                    break
                size *= F(0.5)
            else:
                break
            steps += 1
            moved = norm(sub(u, T))
            stuck = f - new <= ROUNDING * total and moved >= lowest
            v, f, g = tried, new, sub(u, T)
            if moved < lowest:
                lowest = moved
                best = v
            if stuck:
                break
        write_points(points, n, root, D, best)
        if lowest <= max_distance or steps >= problem.max_steps or halted(work.watch):
            break
    turn_joints(problem, work, q)
    return steps, lowest * lowest * weight * weight


SEARCH = Search(attempt, random_start, prove_unreachable)


@entry
def chain_newton(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems with one position goal on a chain of balls; see ``search.multistart``."""
    return multistart(SEARCH, ints, floats, targets, starts, out, scratch, warm, first)
