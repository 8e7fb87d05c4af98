"""One and two hinges or slides in closed form: the pose nearest to a target of all within the limits, and each branch.

A turn by x about the axis z through o takes the point p nearest to t where (t - o)·(turned p - o), that is
A cos x + B sin x, is largest: x = atan2(B, A). Of two hinges the second moves p on a circle q(y); the first then brings
it to the target's side, and what is left is f(y) = (q_z - t_z)² + (ρ_q - ρ_t)², in cylinder coordinates about the first
axis. Where f is least

    ρ_q (½ |q|²' - t_z q_z') = ρ_t ½ ρ_q²'

whose square is a trigonometric polynomial of the fourth degree in y. Limits add their ends, with the other joint's
best.
"""

import math

from synovia.kernels.closed_form.selection import choose, list_branches, put_candidate
from synovia.kernels.compiler.jit import F, algorithm, device, entry, inline, perform
from synovia.kernels.goals.residuals import goal_frame, target_frame
from synovia.kernels.layout import (
    BLOCK_Q,
    GOAL_ROW,
    HINGE,
    KIND,
    LOWER,
    ORIENTATION,
    ORIGIN,
    PARENT,
    PARTS,
    POSITION,
    UPPER,
    VARIABLE,
)
from synovia.kernels.math.rotations import column, load_rotation
from synovia.kernels.math.subproblems import turned
from synovia.kernels.math.trigonometric_polynomials import SCRATCH_SIZE, real_angles, sample_angle
from synovia.kernels.math.two_segments import nearest_turn
from synovia.kernels.math.vectors import add, cross, dot, load, sub
from synovia.kernels.search.multistart import multistart
from synovia.kernels.search.restarts import random_scalars
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_problem, open_work
from synovia.kernels.tree.turn import add_direction, add_frame, harmonic, hinge_angle, zero_covariance

DEGREE = 4
# Places in spare memory: candidates, then samples, roots, and what the search for roots needs
SAMPLES = 64
ROOTS = SAMPLES + 2 * DEGREE + 1
SCRATCH = ROOTS + 2 * DEGREE
SPARE = SCRATCH + SCRATCH_SIZE
POLISH = 8
FLAT = F(1e-12)  # against the squared lengths: a lever that turns nothing


@inline
def lever(z, p, t):
    """Return (A, B): t·(p turned by x about z) = A cos x + B sin x + const."""
    return harmonic(add_direction(zero_covariance(), F(1), p, t), z)


@inline
def best_turn(z, p, t, lower, upper):
    """Return the turn about z within [lower, upper] that brings p nearest to t; none where all are alike."""
    A, B = lever(z, p, t)
    if abs(A) + abs(B) <= FLAT * (dot(p, p) + dot(t, t)):
        return min(max(F(0), lower), upper)
    best, found = nearest_turn(math.atan2(B, A), F(0), lower, upper)
    return best if found else hinge_angle(A, B, F(0), lower, upper)


@inline
def circle(z, w, b, c, t, y):
    """Return ρ_q², and the two sides P = ½ |q|²' - t_z q_z' and S = ½ ρ_q²' at a turn y of c about w, on b."""
    q = add(b, turned(w, c, y))
    slope = cross(w, sub(q, b))
    qz, sz = dot(q, z), dot(slope, z)
    rho2 = max(dot(q, q) - qz * qz, F(0))
    half = dot(q, slope)
    return rho2, half - dot(t, z) * sz, half - qz * sz


@device
def polished(z, w, b, c, t, y):
    """Return the root of f' = 2 (P - ρ_t S / ρ_q) near y: Newton's method by secants."""
    tz = dot(t, z)
    rho_t = math.sqrt(max(dot(t, t) - tz * tz, F(0)))
    x0 = y - F(1e-4)
    rho2, P, S = circle(z, w, b, c, t, x0)
    f0 = P - rho_t * S / max(math.sqrt(rho2), F(1e-300))
    for _ in range(POLISH):
        rho2, P, S = circle(z, w, b, c, t, y)
        f = P - rho_t * S / max(math.sqrt(rho2), F(1e-300))
        if f == f0 or abs(f) >= abs(f0):
            break
        step = f * (y - x0) / (f - f0)
        x0, f0 = y, f
        y -= step
    return y


@inline
def bounds(problem, q, row):
    """Return how far the joint of a row may go down and up from where it is."""
    k = problem.tree.ints[row, VARIABLE]
    x = q[problem.variables[k, BLOCK_Q]]
    return problem.limits[k, LOWER] - x, problem.limits[k, UPPER] - x


@inline
def place(problem, q, row, x, by):
    """Set the joint of a row to what it was at, x, and a step, within its limits."""
    k = problem.tree.ints[row, VARIABLE]
    q[problem.variables[k, BLOCK_Q]] = min(max(x + by, problem.limits[k, LOWER]), problem.limits[k, UPPER])


@device
def one_joint(problem, work, targets, q, row):
    """Write the one candidate of a single joint; return 1."""
    R, p = goal_frame(problem, work.frames, 0)
    T, t = target_frame(targets, 0)
    z, o = column(load_rotation(work.frames, row, ORIENTATION), 2), load(work.frames, row, ORIGIN)
    lower, upper = bounds(problem, q, row)
    x = q[problem.variables[problem.tree.ints[row, VARIABLE], BLOCK_Q]]
    if problem.tree.ints[row, KIND] != HINGE:
        by = min(max(dot(z, sub(t, p)), lower), upper)
    elif problem.goals[0, PARTS] & POSITION:
        by = best_turn(z, sub(p, o), sub(t, o), lower, upper)
    else:
        A, B = harmonic(add_frame(zero_covariance(), F(1), R, T), z)
        best, found = nearest_turn(math.atan2(B, A), F(0), lower, upper)
        by = best if found else hinge_angle(A, B, F(0), lower, upper)
    place(problem, q, row, x, by)
    put_candidate(problem, q, work.solver_scratch, 0)
    place(problem, q, row, x, F(0))
    return 1


@device
def two_hinges(problem, work, targets, q, upper_row, row):
    """Write all candidates of two hinges; return how many."""
    _, p = goal_frame(problem, work.frames, 0)
    _, t = target_frame(targets, 0)
    z, o = column(load_rotation(work.frames, upper_row, ORIENTATION), 2), load(work.frames, upper_row, ORIGIN)
    w, joint = column(load_rotation(work.frames, row, ORIENTATION), 2), load(work.frames, row, ORIGIN)
    b, c, t = sub(joint, o), sub(p, joint), sub(t, o)
    rho_t2 = max(dot(t, t) - dot(t, z) * dot(t, z), F(0))
    for j in range(2 * DEGREE + 1):
        rho2, P, S = circle(z, w, b, c, t, sample_angle(j, DEGREE))
        work.solver_scratch[SAMPLES + j] = rho2 * P * P - rho_t2 * S * S
    roots = real_angles(
        work.solver_scratch[SAMPLES:ROOTS], DEGREE, work.solver_scratch[SCRATCH:], work.solver_scratch[ROOTS:SCRATCH]
    )
    low1, high1 = bounds(problem, q, upper_row)
    low2, high2 = bounds(problem, q, row)
    x1 = q[problem.variables[problem.tree.ints[upper_row, VARIABLE], BLOCK_Q]]
    x2 = q[problem.variables[problem.tree.ints[row, VARIABLE], BLOCK_Q]]
    count = 0
    for i in range(roots + 3):  # the roots, the start, the limits of the second
        if i < roots:
            y, allowed = nearest_turn(polished(z, w, b, c, t, work.solver_scratch[ROOTS + i]), F(0), low2, high2)
        else:
            y = F(0) if i == roots else low2 if i == roots + 1 else high2
            allowed = abs(y) < math.inf
        if allowed:
            place(problem, q, row, x2, y)
            place(problem, q, upper_row, x1, best_turn(z, add(b, turned(w, c, y)), t, low1, high1))
            put_candidate(problem, q, work.solver_scratch, count)
            count += 1
    for end in (low1, high1):
        if abs(end) < math.inf:
            place(problem, q, upper_row, x1, end)
            place(problem, q, row, x2, best_turn(w, c, sub(turned(z, t, -end), b), low2, high2))
            put_candidate(problem, q, work.solver_scratch, count)
            count += 1
    place(problem, q, upper_row, x1, F(0))
    place(problem, q, row, x2, F(0))
    return count


@device
def two_slides(problem, work, targets, q, upper_row, row):
    """Write all candidates of two slides: the least squares of both, and each at its limits with the other's best."""
    _, p = goal_frame(problem, work.frames, 0)
    _, t = target_frame(targets, 0)
    d = sub(t, p)
    u = column(load_rotation(work.frames, upper_row, ORIENTATION), 2)
    v = column(load_rotation(work.frames, row, ORIENTATION), 2)
    low1, high1 = bounds(problem, q, upper_row)
    low2, high2 = bounds(problem, q, row)
    x1 = q[problem.variables[problem.tree.ints[upper_row, VARIABLE], BLOCK_Q]]
    x2 = q[problem.variables[problem.tree.ints[row, VARIABLE], BLOCK_Q]]
    k, du, dv = dot(u, v), dot(d, u), dot(d, v)
    count = 0
    for i in range(5):
        if i < 3:
            a = low1 if i == 1 else high1 if i == 2 else F(0)
            if i == 0 and F(1) - k * k > FLAT:
                a = (du - k * dv) / (F(1) - k * k)
            if not abs(a) < math.inf:
                continue
            a = min(max(a, low1), high1)
            b = min(max(dv - k * a, low2), high2)
        else:
            b = low2 if i == 3 else high2
            if not abs(b) < math.inf:
                continue
            a = min(max(du - k * b, low1), high1)
        place(problem, q, upper_row, x1, a)
        place(problem, q, row, x2, b)
        put_candidate(problem, q, work.solver_scratch, count)
        count += 1
    place(problem, q, upper_row, x1, F(0))
    place(problem, q, row, x2, F(0))
    return count


@algorithm
def branches(problem, work, targets, q):
    """Leave all candidates in spare memory; return how many. q stays."""
    forward(problem.tree, q, work.frames)
    row = problem.goals[0, GOAL_ROW]
    while problem.tree.ints[row, VARIABLE] < 0:
        row = problem.tree.ints[row, PARENT]
    above = problem.tree.ints[row, PARENT]
    while above >= 0 and problem.tree.ints[above, VARIABLE] < 0:
        above = problem.tree.ints[above, PARENT]
    if above < 0:
        return one_joint(problem, work, targets, q, row), F(0)
    if problem.tree.ints[row, KIND] == HINGE:
        return two_hinges(problem, work, targets, q, above, row), F(0)
    return two_slides(problem, work, targets, q, above, row), F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Take the nearest candidate that meets the goal, or the one with the lowest error."""
    count, _ = perform(branches, problem, work, targets, q)
    return choose(problem, work, targets, q, work.solver_scratch, count)


@algorithm
def prove(problem, work, targets, q):
    """Return 1: the answer is the best of all within the limits, so that it misses is the proof."""
    return 1, F(0)


@entry
def hinges(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems; see ``multistart``."""
    return multistart(attempt, random_scalars, prove, ints, floats, targets, starts, out, scratch, warm, first)


@entry
def hinges_branches(ints, floats, targets, starts, out, scratch, warm, first):
    """List the branches of one problem; see ``list_branches``."""
    return list_branches(branches, open_problem(ints, floats), open_work(ints, scratch), targets, starts, out)
