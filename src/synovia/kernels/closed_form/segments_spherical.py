"""Arms of six hinges with a spherical wrist: the last three axes meet in a point w (Pieper 1968).

The first three turns place the wrist (D and E as in ``six_hinges``): D w = E1 E2 E3 w. Let z1, z2, z3 be the axes, o1,
o2, o3 points on them, and R2 the rotation of E2. With v = E3 w - o2 and b = o2 - o1 this gives the equations

    z1·R2 v = z1·(D w - o2)    and    b·R2 v = (|D w - o1|² - |b|² - |v|²) / 2.

Both are linear in the part of R2 v normal to z2, whose length is known: an equation of the second degree in cosine and
sine of the third turn. If the first two axes are parallel or meet, the two equations are dependent, and the second turn
has two solutions instead. The wrist makes the remaining rotation.
"""

import math
from typing import NamedTuple

from synovia.kernels.closed_form.selection import list_branches, open_branches, pick
from synovia.kernels.closed_form.six_hinges import (
    axis,
    base_row,
    crossing,
    motion_to_target,
    prove_arm_branches,
    put_turns,
    turned_about,
)
from synovia.kernels.compiler.jit import F, algorithm, device, entry, inline, perform
from synovia.kernels.layout import LIST
from synovia.kernels.math.rotations import PI, apply, column, origin_of
from synovia.kernels.math.subproblems import three_turns, turn_to, turned, turns_to_plane
from synovia.kernels.math.trigonometric_polynomials import real_angles, sample_angle
from synovia.kernels.math.vectors import add, axpy, cross, dot, norm, scale, sub
from synovia.kernels.search.multistart import Begins, Search, solve_rows
from synovia.kernels.search.restarts import random_scalars
from synovia.kernels.tree.problem import open_problem, open_work

SCAN_ANGLES = 36  # number of angles of the third joint to try if none is exact
DEPENDENT = F(1e-7)  # directions count as parallel if the sine of their angle is below this


class Shoulder(NamedTuple):
    """The first three axes z in the start pose, points on the first two, and the wrist with its target position."""

    z: tuple[tuple[float, float, float], ...]
    o2: tuple[float, float, float]
    o3: tuple[float, float, float]
    b: tuple[float, float, float]  # vector from the first to the second point
    x: tuple[float, float, float]  # vector from the first point to the target position of the wrist
    w: tuple[float, float, float]  # position of the wrist in the start pose
    u: tuple[float, float, float]  # part of the first axis normal to the second
    s: tuple[float, float, float]  # part of b normal to the second axis
    single: bool  # whether u and s are parallel; then at most two angles of joint 3, each with two of joint 2


@inline
def shoulder_of(frames, x, w):
    """Return the ``Shoulder`` of an arm whose wrist is at w and has the target position x."""
    z1, z2, z3 = axis(frames, 0), axis(frames, 1), axis(frames, 2)
    o1, o2, o3 = origin_of(frames, 0), origin_of(frames, 1), origin_of(frames, 2)
    b = sub(o2, o1)
    u, s = axpy(-dot(z1, z2), z2, z1), axpy(-dot(b, z2), z2, b)
    size = norm(b) + norm(sub(w, o2))
    single = norm(u) <= DEPENDENT or norm(cross(u, s)) <= DEPENDENT * norm(u) * size
    return Shoulder((z1, z2, z3), o2, o3, b, sub(x, o1), w, u, s, single)


@inline
def components(arm, c):
    """Return (v, p = u·R2 v, q = s·R2 v), the values that the two equations require after a third turn c."""
    v = sub(turned_about(arm.z[2], arm.o3, c, arm.w), arm.o2)
    along = dot(arm.z[1], v)
    p = dot(arm.z[0], sub(arm.x, arm.b)) - dot(arm.z[0], arm.z[1]) * along
    q = F(0.5) * (dot(arm.x, arm.x) - dot(arm.b, arm.b) - dot(v, v)) - dot(arm.b, arm.z[1]) * along
    return v, p, q


@inline
def normal_part(arm, p, q):
    """Return the part of R2 v normal to the second axis, from p and q."""
    uu, us, ss = dot(arm.u, arm.u), dot(arm.u, arm.s), dot(arm.s, arm.s)
    det = uu * ss - us * us
    return add(scale((p * ss - q * us) / det, arm.u), scale((q * uu - p * us) / det, arm.s))


@inline
def third_equation(arm, c):
    """Return the residual of the equation of the third turn; it is 0 if the other turns can place the wrist."""
    v, p, q = components(arm, c)
    if arm.single:
        return q - dot(arm.s, arm.u) / dot(arm.u, arm.u) * p if norm(arm.u) > DEPENDENT else p
    g = normal_part(arm, p, q)
    along = dot(arm.z[1], v)
    return dot(g, g) - dot(v, v) + along * along


@device
def third_turns(arm, h):
    """Write the solutions for the third turn to ``h.roots``, or the nearest turn if there are none; return how many."""
    for j in range(5):
        h.samples[j] = third_equation(arm, sample_angle(j, 2))
    found = real_angles(h.samples, 2, h.search, h.roots)
    if found == 0:
        least = F(math.inf)
        for j in range(SCAN_ANGLES):
            c = F(2) * PI * F(j) / F(SCAN_ANGLES)
            value = abs(third_equation(arm, c))
            if value < least:
                least = value
                h.roots[0] = c
        found = 1
    return found


@inline
def second_turn(arm, c, other):
    """Return the second turn for a third turn c; with ``other``, the second solution if there are two."""
    v, p, q = components(arm, c)
    if not arm.single:
        return turn_to(arm.z[1], v, normal_part(arm, p, q))
    along = dot(arm.z[1], v)
    if norm(arm.u) > DEPENDENT:
        middle, half = turns_to_plane(arm.z[1], v, arm.z[0], p + dot(arm.z[0], arm.z[1]) * along)
    else:
        middle, half = turns_to_plane(arm.z[1], v, arm.b, q + dot(arm.b, arm.z[1]) * along)
    return middle + half if other else middle - half


@device
def spherical_candidates(problem, work, q, R, t):
    """Write the candidates of an arm whose last three axes meet, at most eight; return how many."""
    f, h = work.frames[base_row(problem) :], open_branches(work)
    w = crossing(f, 3, 4)
    arm = shoulder_of(f, add(apply(R, w), t), w)
    z3, z4, z5 = axis(f, 3), axis(f, 4), axis(f, 5)
    count = 0
    for third in range(min(third_turns(arm, h), 2 if arm.single else 4)):
        for other in range(2 if arm.single else 1):
            for side in (F(1), F(-1)):
                c = h.roots[third]
                b = second_turn(arm, c, other)
                v = sub(turned_about(arm.z[2], arm.o3, c, w), arm.o2)
                first = turn_to(arm.z[0], add(arm.b, turned(arm.z[1], v, b)), arm.x)
                left = remaining_rotation(arm, first, b, c, R)
                last, singular = three_turns(z3, z4, z5, left, side)
                if singular:
                    h.singular[0] = F(1)
                put_turns(problem, h.candidates, q, count, (first, b, c, last[0], last[1], last[2]))
                count += 1
    return count


@inline
def remaining_rotation(arm, first, second, third, R):
    """Return the rotation R without the first three turns."""
    x = turned_back(arm, first, second, third, column(R, 0))
    y = turned_back(arm, first, second, third, column(R, 1))
    z = cross(x, y)
    return x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]


@inline
def turned_back(arm, first, second, third, p):
    """Return a direction turned back by the first three turns."""
    return turned(arm.z[2], turned(arm.z[1], turned(arm.z[0], p, -first), -second), -third)


@algorithm
def branches(problem, work, targets, q):
    """Write all candidates to the scratch memory; return how many. q is unchanged."""
    R, t = motion_to_target(problem, work, targets, q)
    return spherical_candidates(problem, work, q, R, t), F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Take the nearest candidate that meets the goal, or the one with the lowest error."""
    count, _ = perform(branches, problem, work, targets, q)
    cost, _ = pick(problem, work, targets, q, open_branches(work).candidates, count)
    return 1, cost


SEARCH = Search(attempt, random_scalars, prove_arm_branches)


@entry
def segments_spherical(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve problems (see ``search.multistart``) or, if ``first`` is LIST, list branches (see ``list_branches``)."""
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    if first == LIST:
        return list_branches(branches, problem, work, targets, starts, out)
    return solve_rows(SEARCH, problem, work, targets, Begins(starts, ints, floats), out, warm, first)
