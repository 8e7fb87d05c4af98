"""Arms of seven hinges whose first three axes meet in a shoulder S, and the fifth and sixth in a wrist W.

Examples are the arms of Franka, and those with a spherical shoulder and a spherical wrist. One turn is free: the last,
g. If E1 ... E7 are the turns about the axes, and D moves the goal's frame to its target, then E1 ... E7 = D. For a
given g (He & Liu 2021):

- |E4 W - S| = |D E7⁻¹ W - S| gives the fourth turn,
- z5·E4⁻¹S = z5·E6 (E7 D⁻¹ S), seen from W, the sixth, and then the fifth follows,
- the first three make the remaining rotation.

Each equation has at most two solutions, so there are eight branches. Points that g moves run on circles, so testing a
value of g takes a few products. The kernel tries values of g on both sides of the start, in ever finer steps, until a
branch lies within the limits. It takes the branch nearest to the start. If there is none, Levenberg-Marquardt solves
the problem (``arm``).
"""

import math
from typing import NamedTuple

from synovia.kernels.closed_form.selection import list_branches, open_branches, pick
from synovia.kernels.closed_form.six_hinges import axis, crossing
from synovia.kernels.compiler.jit import F, algorithm, device, entry, inline, perform
from synovia.kernels.compiler.watch import halted
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.goals.reach import prove_arm_unreachable
from synovia.kernels.goals.residuals import residual
from synovia.kernels.jacobian.arm import attempt as descend
from synovia.kernels.layout import BLOCK_Q, LIST, LOWER, UPPER
from synovia.kernels.math.rotations import PI, apply, apply_t, matmul_t, origin_of
from synovia.kernels.math.subproblems import Turn, opposite, spin, turn_of, turn_to
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.two_segments import nearest_turn
from synovia.kernels.math.vectors import add, axpy, cross, dot, norm, perpendicular, scale, sub
from synovia.kernels.search.multistart import Begins, Search, solve_rows
from synovia.kernels.search.restarts import random_scalars
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_problem, open_work, with_steps
from synovia.kernels.tree.variables import start_random

JOINTS = 7
CLOSE = (F(0.02), F(0.1))  # radians: changes of the last joint to try first, for small moves along a path
COARSEST = F(0.4)  # radians: first spacing of the changes of the last joint that are tried next
HALVINGS = 4  # number of times that this step is halved; descent finds narrower windows
EDGE = F(1e-12)  # largest excess of a cosine over 1 that is rounding
SLACK = F(1e-9)  # largest excess over a limit (radians) that is rounding
COINCIDENT = F(1e-7)  # the first and third axis count as one if the sine of their angle is below this
STEPS, RESTARTS = 60, 100  # largest number of steps of a descent; largest number of descents


class SevenHinges(NamedTuple):
    """The arm in the start pose, and the quantities that do not depend on the last turn."""

    z: tuple[tuple[float, float, float], ...]
    R: tuple[float, float, float, float, float, float, float, float, float]  # rotation of D
    back: tuple[float, float, float]  # the first axis, rotated by D⁻¹
    shoulder: tuple[float, float, float]  # vector from the fourth joint
    wrist: tuple[float, float, float]  # vector from the fourth joint
    elbow: tuple[float, float, float]  # cosine of (fourth turn - ``middle``): factors of 1, cos g and sin g
    middle: float  # middle of the two solutions for the fourth turn (radians)
    seen: tuple[tuple[float, float, float], ...]  # E7 D⁻¹ S from W: factors of 1, cos g and sin g
    second: Turn


@inline
def circle(z, r):
    """Return r rotated about z as (constant part, factor of the cosine, factor of the sine)."""
    along = scale(dot(z, r), z)
    return along, sub(r, along), cross(z, r)


@device
def seven_of(problem, frames, targets):
    """Return the ``SevenHinges`` of an arm whose start pose has these frames."""
    G, p = goal_frame(problem, frames, 0)
    T, t = target_frame(targets, 0)
    R = matmul_t(T, G)
    t = sub(t, apply(R, p))
    z = (
        axis(frames, 0), axis(frames, 1), axis(frames, 2), axis(frames, 3), axis(frames, 4), axis(frames, 5),
        axis(frames, 6),
    )  # fmt: skip
    o, last = origin_of(frames, 3), origin_of(frames, 6)
    S, W = crossing(frames, 0, 1), crossing(frames, 4, 5)
    there = apply_t(R, sub(S, t))  # D⁻¹ S
    constant, by_cos, by_sin = circle(z[6], sub(there, last))
    seen = sub(add(last, constant), W), by_cos, by_sin
    h, w = sub(S, o), sub(W, o)
    bend = turn_of(z[3], w, h)
    # |D E7⁻¹ W - S| = |E7 D⁻¹ S - W| is a constant and a harmonic of g: by_cos and by_sin are orthogonal, of one length
    far2 = dot(seen[0], seen[0]) + dot(by_cos, by_cos)
    k = F(1) / bend.size
    elbow = (
        k * (F(0.5) * (dot(w, w) + dot(h, h) - far2) - bend.constant),
        -k * dot(seen[0], by_cos),
        -k * dot(seen[0], by_sin),
    )
    return SevenHinges(z, R, apply_t(R, z[0]), h, w, elbow, bend.middle, seen, turn_of(z[1], z[2], z[0]))


@inline
def clamped_turn(problem, q, i, turn):
    """Return the smallest turn of joint i that equals ``turn`` modulo 2π, clamped, and whether it was within limits."""
    x = q[problem.variables[i, BLOCK_Q]]
    low, high = problem.limits[i, LOWER] - x, problem.limits[i, UPPER] - x
    turn, _ = nearest_turn(turn, F(0), low - SLACK, high + SLACK)
    return min(max(turn, low), high), (turn >= low - SLACK) & (turn <= high + SLACK)


@inline
def put_turns(problem, q, table, count, turns):
    """Write a candidate to ``table``: the values of all joints after the given turns; return the new count."""
    for i in range(JOINTS):
        at = problem.variables[i, BLOCK_Q]
        table[JOINTS * count + i] = min(max(q[at] + turns[i], problem.limits[i, LOWER]), problem.limits[i, UPPER])


@device
def append_candidates(problem, q, arm, turns, table, count):
    """Append the candidates with the turns (d, e, f, g) of the fourth to seventh joint; return the new count.

    In the code, ``scd`` is (sine, cosine) of d; ``sce``, ``scf`` and ``scg`` likewise.
    """
    z = arm.z
    d, e, f, g = turns
    scd, sce, scf, scg = sincos(d), sincos(e), sincos(f), sincos(g)
    # the first three turns make R E7⁻¹ E6⁻¹ E5⁻¹ E4⁻¹
    goal = spin(z[4], spin(z[3], z[2], opposite(scd)), opposite(sce))
    goal = apply(arm.R, spin(z[6], spin(z[5], goal, opposite(scf)), opposite(scg)))
    x = (dot(z[0], goal) - arm.second.constant) / arm.second.size
    if abs(x) > F(1) + EDGE:
        return count
    back = spin(z[3], spin(z[4], spin(z[5], spin(z[6], arm.back, scg), scf), sce), scd)
    half = math.acos(min(max(x, F(-1)), F(1)))
    for side in (F(1), F(-1)):
        b, fits = clamped_turn(problem, q, 1, arm.second.middle + side * half)
        if not fits:
            continue
        scb = sincos(b)
        lifted = spin(z[1], z[2], scb)
        if norm(cross(lifted, z[0])) > COINCIDENT:
            first = turn_to(z[0], lifted, goal)
            third = turn_to(z[2], back, spin(z[1], z[0], opposite(scb)))
        else:  # only the sum of the first and third turn is determined: keep the third joint's value
            u = perpendicular(z[2])
            away = spin(z[4], spin(z[3], u, opposite(scd)), opposite(sce))
            away = apply(arm.R, spin(z[6], spin(z[5], away, opposite(scf)), opposite(scg)))
            first, third = turn_to(z[0], spin(z[1], u, scb), away), F(0)
        first, fits = clamped_turn(problem, q, 0, first)
        third, fits_too = clamped_turn(problem, q, 2, third)
        if fits & fits_too:
            put_turns(problem, q, table, count, (first, b, third, d, e, f, g))
            count += 1
    return count


@device
def candidates_at(problem, q, arm, g, table):
    """Write the candidates with the turn g (radians) of the last joint to ``table``; return how many."""
    z = arm.z
    s, c = sincos(g)
    x = arm.elbow[0] + arm.elbow[1] * c + arm.elbow[2] * s
    if abs(x) > F(1) + EDGE:
        return 0
    half = math.acos(min(max(x, F(-1)), F(1)))
    u = axpy(c, arm.seen[1], axpy(s, arm.seen[2], arm.seen[0]))
    tilt = turn_of(z[5], u, z[4])
    count = 0
    if tilt.size <= EDGE * problem.reach:  # the shoulder is on the sixth axis: another turn of the last joint is better
        return 0
    for side in (F(1), F(-1)):
        d, fits = clamped_turn(problem, q, 3, arm.middle + side * half)
        if not fits:
            continue
        v = sub(spin(z[3], arm.shoulder, opposite(sincos(d))), arm.wrist)
        x = (dot(z[4], v) - tilt.constant) / tilt.size
        if abs(x) > F(1) + EDGE:
            continue
        half_tilt = math.acos(min(max(x, F(-1)), F(1)))
        for way in (F(1), F(-1)):
            f, fits = clamped_turn(problem, q, 5, tilt.middle + way * half_tilt)
            if not fits:
                continue
            e, fits = clamped_turn(problem, q, 4, turn_to(z[4], spin(z[5], u, sincos(f)), v))
            if fits:
                count = append_candidates(problem, q, arm, (d, e, f, g), table, count)
    return count


@inline
def candidates_on_either_side(problem, q, arm, g, low, high, table):
    """Write the candidates with the last joint turned by g, or else by -g; return how many."""
    count = candidates_at(problem, q, arm, g, table) if g <= high else 0
    return candidates_at(problem, q, arm, -g, table) if count == 0 and -g >= low else count


@algorithm
def branches(problem, work, targets, q):
    """Write the candidates of the first g that has any to the scratch memory; return how many. q is unchanged."""
    forward(problem.tree, q, work.frames)
    arm = seven_of(problem, work.frames, targets)
    x = q[problem.variables[6, BLOCK_Q]]
    low, high = max(problem.limits[6, LOWER] - x, -PI), min(problem.limits[6, UPPER] - x, PI)
    count = candidates_at(problem, q, arm, F(0), open_branches(work).candidates)
    for g in CLOSE:
        if count == 0:
            count = candidates_on_either_side(problem, q, arm, g, low, high, open_branches(work).candidates)
    step = COARSEST
    for level in range(HALVINGS + 1):
        if count == 0 and level == 1:  # a nearly stretched or folded arm has solutions only near these angles
            stretched = math.atan2(arm.elbow[2], arm.elbow[1])
            for turn in (stretched, stretched + PI):
                g, fits = nearest_turn(turn, F(0), low, high)
                if fits and count == 0:
                    count = candidates_at(problem, q, arm, g, open_branches(work).candidates)
        g = step
        while count == 0 and g <= max(high, -low):
            count = candidates_on_either_side(problem, q, arm, g, low, high, open_branches(work).candidates)
            g += step if level == 0 else F(2) * step  # the values between were tried with the larger step
        if count > 0:
            break
        step *= F(0.5)
    return count, F(0)


@device
def search_by_descent(problem, work, targets, q):
    """Descend from q, then from random poses, until the goal holds; leave the best in q."""
    lowest = F(math.inf)
    steps = 0
    more = with_steps(problem, STEPS)
    for k in range(RESTARTS):
        if k > 0:
            start_random(problem, work, k)
            perform(random_scalars, problem, work, targets, q)
        taken, cost = perform(descend, more, work, targets, q)
        steps += taken
        if cost < lowest:
            lowest = cost
            copy(q, work.best)
        forward(problem.tree, q, work.frames)
        if residual(problem, q, work.frames, targets, work.e)[1] <= F(1) or halted(work.watch):
            break
        if k == 0 and perform(prove_arm_unreachable, problem, work, targets, q)[0] > 0:
            break
    copy(work.best, q)
    return steps, lowest


@algorithm
def attempt(problem, work, targets, q):
    """Take the nearest candidate, or search by descent if there is none."""
    count, _ = perform(branches, problem, work, targets, q)
    cost, met = pick(problem, work, targets, q, open_branches(work).candidates, count)
    return (1, cost) if met else search_by_descent(problem, work, targets, q)


SEARCH = Search(attempt, random_scalars, prove_arm_unreachable)


@entry
def segments_seven(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve problems (see ``search.multistart``) or, if ``first`` is LIST, list branches (see ``list_branches``)."""
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    if first == LIST:
        return list_branches(branches, problem, work, targets, starts, out)
    return solve_rows(SEARCH, problem, work, targets, Begins(starts, ints, floats), out, warm, first)
