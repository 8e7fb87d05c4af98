"""Arms of six hinges with three parallel axes, 2, 3 and 4, whose last two meet (Elias & Wen 2025, IK-Geo).

E2 E3 E4 keep what lies along the common direction h. So with w where the last two axes meet, h·E1⁻¹ D w = h·w gives the
first turn, h·R1ᵀ R z6 = h·R5 z6 the fifth, and a rotation about h and the sixth turn follow from the rotation R that
is left. What remains is planar, two bones: at most two ways each for first, fifth and third.
"""

import math

from synovia.kernels._jit import F, algorithm, device, entry, perform
from synovia.kernels.branching import choose, list_branches
from synovia.kernels.drive import drive
from synovia.kernels.limb import bend_of, branch_turn
from synovia.kernels.problem import open_problem, open_work
from synovia.kernels.rotations import apply, apply_t
from synovia.kernels.scatter import scatter_numbers
from synovia.kernels.six_hinges import (
    FREE,
    TURNS,
    about,
    axis,
    crossing,
    motion_to_target,
    offer,
    prove_arm_branches,
)
from synovia.kernels.subproblems import turn_to, turned, turns_to_plane
from synovia.kernels.vectors import add, axpy, cross, dot, load, norm, scale, sub

DEPENDENT = F(1e-7)  # sine under which two axes are one


@device
def parallel(problem, work, q, R, t):
    """Write the eight candidates of an arm with three parallel axes; (R, t): the motion D."""
    f, turns = work.frames, work.spare
    h, z0, z4, z5 = axis(f, 1), axis(f, 0), axis(f, 4), axis(f, 5)
    o0, o1, o2, o3 = load(f, 0, 9), load(f, 1, 9), load(f, 2, 9), load(f, 3, 9)
    w = crossing(f, 4, 5)
    x = sub(add(apply(R, w), t), o0)
    middle, half = turns_to_plane(scale(F(-1), z0), x, h, dot(h, sub(w, o0)))
    count = 0
    for i in range(8):
        a = middle + (half if i & 4 else -half)
        up = turned(z0, h, a)  # h as the first joint turns it
        lift, spread = turns_to_plane(z4, z5, h, dot(up, apply(R, z5)))
        e = lift + (spread if i & 2 else -spread)
        tilted, aim = turned(z4, z5, e), turned(z0, apply(R, z5), -a)
        if norm(cross(tilted, h)) > DEPENDENT:
            sum_of_three = turn_to(h, tilted, aim)
            last = turn_to(z5, apply_t(R, up), turned(z4, h, -e))
        else:
            turns[FREE] = F(1)
            last = F(0)
            sum_of_three = turn_to(h, turned(z4, cross(z5, z4), e), turned(z0, apply(R, cross(z5, z4)), -a))
        # where the fourth axis has to be: E5 and E6 and the sum of the three turns are taken off
        at = sub(o3, w)
        place = add(about(z0, o0, -a, add(apply(R, w), t)), turned(h, at, sum_of_three))
        bend = bend_of(sub(o2, o1), sub(o3, o2), h, F(-math.inf), F(math.inf))
        goal = sub(place, o1)
        goal = axpy(dot(sub(sub(o3, o1), goal), h), h, goal)
        c, _ = branch_turn(bend, norm(goal), F(1) if i & 1 else F(-1), F(0))
        b = turn_to(h, add(sub(o2, o1), turned(h, sub(o3, o2), c)), goal)
        turns[TURNS], turns[TURNS + 1], turns[TURNS + 2] = a, b, c
        turns[TURNS + 3], turns[TURNS + 4], turns[TURNS + 5] = sum_of_three - b - c, e, last
        offer(problem, work, q, count)
        count += 1
    return count


@algorithm
def branches(problem, work, targets, q):
    """Leave all candidates in spare memory; return how many. q stays."""
    R, t = motion_to_target(problem, work, targets, q)
    return parallel(problem, work, q, R, t), F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Take the nearest candidate that meets the goal, or the one with the lowest error."""
    count, _ = perform(branches, problem, work, targets, q)
    return choose(problem, work, targets, q, work.spare, count)


@entry
def segments_parallel(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems; see ``drive``."""
    return drive(attempt, scatter_numbers, prove_arm_branches, ints, floats, targets, starts, out, scratch, warm, first)


@entry
def segments_parallel_branches(ints, floats, targets, starts, out, scratch, warm, first):
    """List the branches of one problem; see ``list_branches``."""
    return list_branches(branches, open_problem(ints, floats), open_work(ints, scratch), targets, starts, out)
