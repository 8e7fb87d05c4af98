"""Arms of six hinges whose axes 2, 3 and 4 are parallel, and whose last two axes meet (Elias & Wen 2025, IK-Geo).

With D and E1 ... E6 as in ``six_hinges``, E2 E3 E4 keep components along the common direction h. The last two axes meet
in w. So h·E1⁻¹ D w = h·w gives the first turn and h·R1ᵀ R z6 = h·R5 z6 the fifth, where R, R1 and R5 are the rotations
of D, E1 and E5. The sum of the parallel turns and the sixth turn follow. The remaining problem is planar, with two
bones. The first, fifth and third turn have at most two solutions each.
"""

import math

from synovia.kernels.closed_form.selection import list_branches, open_branches, pick
from synovia.kernels.closed_form.six_hinges import (
    axis,
    base_row,
    crossing,
    motion_to_target,
    nearer_side,
    prove_arm_branches,
    put_turns,
    turn_cost,
)
from synovia.kernels.compiler.jit import F, algorithm, device, entry, inline
from synovia.kernels.layout import LIST
from synovia.kernels.math.rotations import apply, apply_t, origin_of
from synovia.kernels.math.subproblems import (
    double_arcsine,
    half_width,
    opposite,
    plus,
    seen_along,
    spin,
    turn_of,
    turn_to,
    unit,
)
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.two_segments import STRAIGHT, distance_curve
from synovia.kernels.math.vectors import add, axpy, cross, dot, norm, scale, sub
from synovia.kernels.search.multistart import Begins, Search, solve_rows
from synovia.kernels.search.restarts import random_scalars
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_problem, open_work

DEPENDENT = F(1e-7)  # two axes count as one if the sine of their angle is below this


@inline
def bent_turn(curve, distance2):
    """Return (ω, its sine and cosine): the turns φ ± ω give this squared distance (``two_segments``), or come closest.

    Values within ``STRAIGHT`` of an end of the range are set to that end.
    """
    x = (curve.most - distance2) / (F(2) * curve.wide) if curve.wide > F(0) else F(0)
    return double_arcsine(F(0) if x < STRAIGHT else F(1) if x > F(1) - STRAIGHT else x)


@device
def parallel_candidates(problem, work, q, R, t, every):
    """Write the candidates of an arm with three parallel axes, at most eight; return how many.

    Args:
        problem: The problem.
        work: Scratch memory, frames at q.
        q: The start.
        R: Rotation of the motion D to the target.
        t: Translation of D.
        every: Whether to write all candidates; otherwise skip candidates farther from q than the nearest so far.
    """
    f, memory = work.frames[base_row(problem) :], open_branches(work)
    h, z0, z4, z5 = axis(f, 1), axis(f, 0), axis(f, 4), axis(f, 5)
    # 1, or -1 for an axis that points the other way
    third, fourth = math.copysign(F(1), dot(h, axis(f, 2))), math.copysign(F(1), dot(h, axis(f, 3)))
    o0, o1, o2, o3 = origin_of(f, 0), origin_of(f, 1), origin_of(f, 2), origin_of(f, 3)
    w = crossing(f, 4, 5)
    at, upper, lower = sub(o3, w), sub(o2, o1), sub(o3, o2)
    along = dot(sub(o3, o1), h)
    there, last_axis = sub(add(apply(R, w), t), o0), apply(R, z5)
    base, tilt = turn_of(scale(F(-1), z0), there, h), turn_of(z4, z5, h)  # D w turned back about z1, z6 about z5
    base_middle, tilt_middle = sincos(base.middle), sincos(tilt.middle)
    # seen along h, the lower bone turned by φ ± ω is at the angle ± ω from the upper bone
    bend = distance_curve(upper, lower, h, F(-math.inf), F(math.inf))
    upper2 = dot(upper, upper) - dot(upper, h) * dot(upper, h)
    half, half_sc = half_width(base, norm(there), dot(h, sub(w, o0)))
    nearest = F(math.inf)
    count = 0
    side = nearer_side(base.middle, half)
    for first in (side, -side):
        a = base.middle + first * half
        if not every and turn_cost(a) >= nearest:
            continue
        sca = plus(base_middle, half_sc, first)
        up = spin(z0, h, sca)  # h after the rotation of the first joint
        aim, place = spin(z0, last_axis, opposite(sca)), add(o0, spin(z0, there, opposite(sca)))
        spread, spread_sc = half_width(tilt, F(1), dot(up, last_axis))
        side = nearer_side(tilt.middle, spread)
        for second in (side, -side):
            e = tilt.middle + second * spread
            if not every and turn_cost(a) + turn_cost(e) >= nearest:
                continue
            sce = plus(tilt_middle, spread_sc, second)
            tilted = spin(z4, z5, sce)
            if norm(cross(tilted, h)) > DEPENDENT:
                last = turn_to(z5, apply_t(R, up), spin(z4, h, opposite(sce)))
                if not every and turn_cost(a) + turn_cost(e) + turn_cost(last) >= nearest:
                    continue
                y, x = seen_along(h, tilted, aim)
            else:
                memory.singular[0] = F(1)
                last = F(0)
                across = cross(z5, z4)
                y, x = seen_along(h, spin(z4, across, sce), spin(z0, apply(R, across), opposite(sca)))
            sum_of_three = math.atan2(y, x)
            # vector from the second axis to the place of the fourth, without E5, E6 and the sum of the three turns
            goal = sub(add(place, spin(h, at, unit(y, x))), o1)
            goal = axpy(along - dot(goal, h), h, goal)
            omega, (s, c) = bent_turn(bend, dot(goal, goal))
            aside = math.atan2(F(0.5) * bend.wide * s, upper2 + F(0.5) * bend.wide * c)
            middle = turn_to(h, upper, goal)
            for way in (F(1), F(-1)):
                b, bent = middle - way * aside, bend.phi + way * omega
                turns = a, b, third * bent, fourth * (sum_of_three - b - bent), e, last
                away = put_turns(problem, memory.candidates, q, count, turns)
                nearest = min(nearest, away)
                count += 1
    return count


@algorithm
def branches(problem, work, targets, q):
    """Write all candidates to the scratch memory; return how many. q is unchanged."""
    R, t = motion_to_target(problem, work, targets, q)
    return parallel_candidates(problem, work, q, R, t, True), F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Take the nearest candidate that meets the goal, or the one with the lowest error."""
    R, t = motion_to_target(problem, work, targets, q)
    for every in (False, True):
        count = parallel_candidates(problem, work, q, R, t, every)
        cost, met = pick(problem, work, targets, q, open_branches(work).candidates, count)
        if met or every:
            break
        copy(work.trial, q)  # restore the start
        forward(problem.tree, q, work.frames)
    return 1, cost


SEARCH = Search(attempt, random_scalars, prove_arm_branches)


@entry
def segments_parallel(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve problems (see ``search.multistart``) or, if ``first`` is LIST, list branches (see ``list_branches``)."""
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    if first == LIST:
        return list_branches(branches, problem, work, targets, starts, out)
    return solve_rows(SEARCH, problem, work, targets, Begins(starts, ints, floats), out, warm, first)
