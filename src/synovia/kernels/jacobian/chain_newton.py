"""The pose of a ball chain that reaches a target and turns its bones least: Newton's method in three numbers.

With unit vectors d_i along the bones now, and lengths L_i, it is sought to

    maximise Σ L_i d_i·u_i    such that    Σ L_i u_i = T,  |u_i| <= 1,

T being the vector from root to target: every bone keeps to its direction as well as the target allows. This is convex;
its dual is a function of three multipliers v alone,

    minimise Φ(v) = Σ L_i |d_i + v| - T·v,    ∇Φ = Σ L_i u_i - T,    ∇²Φ = Σ L_i / |d_i + v| (1 - u_i u_iᵀ),

with u_i = (d_i + v) / |d_i + v|. So there is one answer, a step costs one look at each bone, and a chain of a thousand
joints takes as many steps as one of ten. Where one long bone would have to vanish (w = 0, |u_i| < 1) the answer is no
pose, and another start is tried. The dual of such a problem: Boyd & Vandenberghe (2004), chapter 5.
"""

import math

from synovia.kernels.compiler.jit import F, algorithm, device, device_dot, entry, inline, perform
from synovia.kernels.compiler.watch import halted, stopped
from synovia.kernels.goals.reach import prove_unreachable
from synovia.kernels.goals.residuals import target_frame
from synovia.kernels.heuristic.fabrik_chain import lay_out, turn_joints
from synovia.kernels.heuristic.loop import leave_line
from synovia.kernels.layout import BEST, BONE, PLACE, POSITION_WEIGHT
from synovia.kernels.math.vectors import TINY, axpy, dot, load, norm, scale, store, sub
from synovia.kernels.search.descent import INSIDE
from synovia.kernels.search.multistart import multistart
from synovia.kernels.search.restarts import random_start

GAINS = F(1e-4)  # share of the slope's promise that a step must keep (Armijo)
HALVINGS = 30
SLACK = F(1e-15)  # rounding of Φ, of the chain's length
SINGULAR = F(1e-12)  # of the trace of ∇²Φ, added to its diagonal


@device
def directions(points, n, D):
    """Write the unit vector along each bone into the rows of D (3, 2n), and its length behind the first row."""
    for i in range(n):
        u = sub(load(points, i + 1, PLACE), load(points, i, PLACE))
        size2 = dot(u, u)
        u = scale(F(1) / math.sqrt(size2), u) if size2 > TINY else (F(1), F(0), F(0))
        D[0, i], D[1, i], D[2, i] = u
        D[0, n + i] = points[i, BONE]


@device_dot
def dual(D, n, v):
    """Return Σ L |w|, Σ L w / |w| and Σ L / |w| (1 - w wᵀ / |w|²), lower triangle, with w = d + v."""
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
    """Return the solution of a symmetric positive definite system of three, given by its lower triangle."""
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
def lie(points, n, root, D, v):
    """Write the best points: from the root along d + v, bone after bone."""
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
    """Step until the goal holds or Φ falls no more, then turn the joints."""
    n = problem.tree.ints.shape[0]
    points, D = work.points, work.J
    _, t = target_frame(targets, 0)
    total = lay_out(problem, work, q)
    root = load(points, 0, PLACE)
    T = sub(t, root)
    most = INSIDE * problem.tolerance
    weight = problem.goal_data[0, POSITION_WEIGHT] / problem.reach
    steps = 0
    lowest = norm(sub(t, load(points, n, PLACE)))
    if lowest <= most:
        return 0, lowest * lowest * weight * weight
    if norm(T) >= total - most:  # straight towards it
        store(points, 0, BEST, root)
        for i in range(n):
            store(points, i + 1, BEST, axpy(points[i, BONE] / norm(T), T, load(points, i, BEST)))
        turn_joints(problem, work, q)
        missed = norm(T) - total
        return 1, missed * missed * weight * weight
    for nudged in range(2):
        if nudged == 1:
            perform(leave_line, problem, work, targets, q)
            lay_out(problem, work, q)
        directions(points, n, D)
        v = (F(0), F(0), F(0))
        best = v
        f, u, H = dual(D, n, v)
        g = sub(u, T)
        if nudged == 1:
            lowest = norm(g)
        while lowest > most and steps < problem.max_steps and not stopped(work.watch, n):
            dv = scale(F(-1), solve3(H, g))
            slope = dot(g, dv)
            size = F(1)
            for _ in range(HALVINGS):
                tried = axpy(size, dv, v)
                new, u, H = dual(D, n, tried)
                new -= dot(T, tried)
                if new <= f + GAINS * size * slope + SLACK * total:
                    break
                size *= F(0.5)
            else:
                break
            steps += 1
            moved = norm(sub(u, T))
            stuck = f - new <= SLACK * total and moved >= lowest
            v, f, g = tried, new, sub(u, T)
            if moved < lowest:
                lowest = moved
                best = v
            if stuck:
                break
        lie(points, n, root, D, best)
        if lowest <= most or steps >= problem.max_steps or halted(work.watch):
            break
    turn_joints(problem, work, q)
    return steps, lowest * lowest * weight * weight


@entry
def chain_newton(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems; see ``multistart``."""
    return multistart(
        attempt, random_start, prove_unreachable, ints, floats, targets, starts, out, scratch, warm, first
    )
