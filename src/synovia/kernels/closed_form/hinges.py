"""One and two hinges or slides in closed form: the pose within the limits nearest to a target, and all branches.

A turn by x about the axis z through o brings the point p nearest to t if (t - o)·(turned p - o), that is
A cos x + B sin x, is largest: x = atan2(B, A). Of two hinges the second moves p on a circle q(y). The first then turns
p to the target's side, and the squared distance is f(y) = (q_z - t_z)² + (ρ_q - ρ_t)², in cylinder coordinates about
the first axis. At a minimum of f

    ρ_q (½ |q|²' - t_z q_z') = ρ_t ½ ρ_q²',

and the square of this is a trigonometric polynomial of the fourth degree in y. Each limit of one joint, with the best
value of the other, is a further candidate.
"""

import math
from typing import NamedTuple

from synovia.kernels.closed_form.selection import choose, list_branches, open_branches, put_candidate
from synovia.kernels.compiler.jit import F, algorithm, device, entry, inline, perform
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.layout import BLOCK_Q, GOAL_ROW, HINGE, KIND, LIST, LOWER, PARTS, POSITION, UPPER, VARIABLE
from synovia.kernels.math.rotations import column, origin_of, rotation_of
from synovia.kernels.math.subproblems import turned
from synovia.kernels.math.trigonometric_polynomials import real_angles, sample_angle
from synovia.kernels.math.two_segments import nearest_turn
from synovia.kernels.math.vectors import add, cross, dot, sub
from synovia.kernels.search.multistart import Begins, Search, solve_rows
from synovia.kernels.search.restarts import random_scalars
from synovia.kernels.tree.branches import moving_row
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_problem, open_work
from synovia.kernels.tree.turn import add_direction, add_frame, harmonic, hinge_angle, zero_covariance

DEGREE = 4
POLISH = 8  # largest number of secant steps
FLAT = F(1e-12)  # fraction of the squared lengths: a shorter lever counts as zero


@inline
def best_angle(A, B, lower, upper):
    """Return the x within [lower, upper] with the largest A cos x + B sin x."""
    best, found = nearest_turn(math.atan2(B, A), F(0), lower, upper)
    return best if found else hinge_angle(A, B, F(0), lower, upper)


@inline
def best_turn(z, p, t, lower, upper):
    """Return the angle about z within [lower, upper] that brings p nearest to t; the smallest angle if all do."""
    A, B = harmonic(add_direction(zero_covariance(), F(1), p, t), z)  # t·(p turned by x) = A cos x + B sin x + const
    if abs(A) + abs(B) <= FLAT * (dot(p, p) + dot(t, t)):
        return min(max(F(0), lower), upper)
    return best_angle(A, B, lower, upper)


@inline
def circle(z, w, b, c, t, y):
    """Return ρ_q², P = ½ |q|²' - t_z q_z' and S = ½ ρ_q²' for q = b + c rotated by y about w.

    P and S are the derivatives in the equation for a minimum of f, see above.
    """
    q = add(b, turned(w, c, y))
    slope = cross(w, sub(q, b))
    qz, sz = dot(q, z), dot(slope, z)
    rho2 = max(dot(q, q) - qz * qz, F(0))
    half = dot(q, slope)
    return rho2, half - dot(t, z) * sz, half - qz * sz


@device
def polished(z, w, b, c, t, y):
    """Return the root near y of the derivative f' = 2 (P - ρ_t S / ρ_q), see ``circle``, by the secant method."""
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


class Joint(NamedTuple):
    """A moving joint in the start pose."""

    variable: int
    z: tuple[float, float, float]  # axis
    o: tuple[float, float, float]  # origin
    x: float  # value
    low: float  # smallest and largest change of the value within the limits
    high: float


@inline
def joint_of(problem, frames, q, row):
    """Return the ``Joint`` of a row of the tree."""
    k = problem.tree.ints[row, VARIABLE]
    x = q[problem.variables[k, BLOCK_Q]]
    z, o = column(rotation_of(frames, row), 2), origin_of(frames, row)
    return Joint(k, z, o, x, problem.limits[k, LOWER] - x, problem.limits[k, UPPER] - x)


@inline
def move_by(problem, q, joint, by):
    """Set a joint to its value in the start pose plus the step ``by``, within its limits."""
    low, high = problem.limits[joint.variable, LOWER], problem.limits[joint.variable, UPPER]
    q[problem.variables[joint.variable, BLOCK_Q]] = min(max(joint.x + by, low), high)


@inline
def put_pair(problem, q, table, count, first, a, second, b):
    """Write the candidate in which two joints move by steps a and b; return the new count. q is unchanged."""
    move_by(problem, q, first, a)
    move_by(problem, q, second, b)
    put_candidate(problem, q, table, count)
    move_by(problem, q, first, F(0))
    move_by(problem, q, second, F(0))
    return count + 1


@device
def one_joint(problem, work, targets, q, row):
    """Write the only candidate of a single joint; return 1, the number of candidates."""
    R, p = goal_frame(problem, work.frames, 0)
    T, t = target_frame(targets, 0)
    joint = joint_of(problem, work.frames, q, row)
    if problem.tree.ints[row, KIND] != HINGE:
        by = min(max(dot(joint.z, sub(t, p)), joint.low), joint.high)
    elif problem.goals[0, PARTS] & POSITION:
        by = best_turn(joint.z, sub(p, joint.o), sub(t, joint.o), joint.low, joint.high)
    else:
        A, B = harmonic(add_frame(zero_covariance(), F(1), R, T), joint.z)
        by = best_angle(A, B, joint.low, joint.high)
    move_by(problem, q, joint, by)
    put_candidate(problem, q, open_branches(work).candidates, 0)
    move_by(problem, q, joint, F(0))
    return 1


@device
def two_hinges(problem, work, targets, q, first, second):
    """Write all candidates of two hinges; return how many."""
    _, p = goal_frame(problem, work.frames, 0)
    _, t = target_frame(targets, 0)
    h, z, w = open_branches(work), first.z, second.z
    b, c, t = sub(second.o, first.o), sub(p, second.o), sub(t, first.o)
    rho_t2 = max(dot(t, t) - dot(t, z) * dot(t, z), F(0))
    for j in range(2 * DEGREE + 1):
        rho2, P, S = circle(z, w, b, c, t, sample_angle(j, DEGREE))
        h.samples[j] = rho2 * P * P - rho_t2 * S * S
    roots = real_angles(h.samples, DEGREE, h.search, h.roots)
    count = 0
    for i in range(roots + 3):  # values of the second joint: the roots, the start, both limits
        if i < roots:
            y, allowed = nearest_turn(polished(z, w, b, c, t, h.roots[i]), F(0), second.low, second.high)
        else:
            y = F(0) if i == roots else second.low if i == roots + 1 else second.high
            allowed = abs(y) < math.inf
        if allowed:
            x = best_turn(z, add(b, turned(w, c, y)), t, first.low, first.high)
            count = put_pair(problem, q, h.candidates, count, first, x, second, y)
    for x in (first.low, first.high):
        if abs(x) < math.inf:
            y = best_turn(w, c, sub(turned(z, t, -x), b), second.low, second.high)
            count = put_pair(problem, q, h.candidates, count, first, x, second, y)
    return count


@device
def two_slides(problem, work, targets, q, first, second):
    """Write all candidates of two slides: the least-squares solution, and one at a limit, the other at its best."""
    _, p = goal_frame(problem, work.frames, 0)
    _, t = target_frame(targets, 0)
    d = sub(t, p)
    k, du, dv = dot(first.z, second.z), dot(d, first.z), dot(d, second.z)
    count = 0
    for i in range(5):
        if i < 3:
            a = first.low if i == 1 else first.high if i == 2 else F(0)
            if i == 0 and F(1) - k * k > FLAT:
                a = (du - k * dv) / (F(1) - k * k)
            if not abs(a) < math.inf:
                continue
            a = min(max(a, first.low), first.high)
            b = min(max(dv - k * a, second.low), second.high)
        else:
            b = second.low if i == 3 else second.high
            if not abs(b) < math.inf:
                continue
            a = min(max(du - k * b, first.low), first.high)
        count = put_pair(problem, q, open_branches(work).candidates, count, first, a, second, b)
    return count


@algorithm
def branches(problem, work, targets, q):
    """Write all candidates to the scratch memory; return how many. q is unchanged."""
    forward(problem.tree, q, work.frames)
    row, above = moving_row(problem, problem.goals[0, GOAL_ROW], 0), moving_row(problem, problem.goals[0, GOAL_ROW], 1)
    if above < 0:
        return one_joint(problem, work, targets, q, row), F(0)
    first, second = joint_of(problem, work.frames, q, above), joint_of(problem, work.frames, q, row)
    if problem.tree.ints[row, KIND] == HINGE:
        return two_hinges(problem, work, targets, q, first, second), F(0)
    return two_slides(problem, work, targets, q, first, second), F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Take the nearest candidate that meets the goal, or the one with the lowest error."""
    count, _ = perform(branches, problem, work, targets, q)
    return choose(problem, work, targets, q, open_branches(work).candidates, count)


@algorithm
def prove(problem, work, targets, q):
    """Return 1: the answer is the global best within the limits, so a miss proves that the target is unreachable."""
    return 1, F(0)


SEARCH = Search(attempt, random_scalars, prove)


@entry
def hinges(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve problems (see ``search.multistart``) or, if ``first`` is LIST, list branches (see ``list_branches``)."""
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    if first == LIST:
        return list_branches(branches, problem, work, targets, starts, out)
    return solve_rows(SEARCH, problem, work, targets, Begins(starts, ints, floats), out, warm, first)
