"""The subproblems of Paden and Kahan: turns about given axes that bring given points where they should be.

The third (a distance) is in ``limb``; here are the first (a point to a point) and the fourth (a point to a plane), and
three turns in a row that make a rotation.
"""

import math

from synovia.kernels._jit import F, inline
from synovia.kernels.rotations import apply, apply_t
from synovia.kernels.trigonometry import sincos
from synovia.kernels.vectors import add, axpy, cross, dot, norm, perpendicular, scale

ALONG = F(1e-9)  # sine under which a direction lies on an axis: a turn about it does nothing


@inline
def turned(z, p, angle):
    """Return p turned about a unit axis (Rodrigues)."""
    s, c = sincos(angle)
    along = scale((F(1) - c) * dot(z, p), z)
    return add(axpy(c, p, scale(s, cross(z, p))), along)


@inline
def turn_to(z, p, t):
    """Return the turn about z that takes p to t, as seen along z (subproblem 1)."""
    return math.atan2(dot(z, cross(p, t)), dot(p, t) - dot(p, z) * dot(t, z))


@inline
def turns_to_plane(z, p, h, d):
    """Return (middle, half): the turns about z that give the turned p the component d along h are middle ± half.

    Subproblem 4. Where d is out of range half is 0 or π, the nearest.
    """
    constant = dot(h, z) * dot(z, p)
    a, b = dot(h, p) - constant, dot(h, cross(z, p))
    size = math.sqrt(a * a + b * b)
    middle = math.atan2(b, a)
    if size <= ALONG * ALONG * norm(p):
        return F(0), F(0)
    x = min(max((F(1) - (d - constant) / size) * F(0.5), F(0)), F(1))
    return middle, F(2) * math.asin(math.sqrt(x))


@inline
def three_turns(z1, z2, z3, R, side):
    """Return (turns about z1, z2, z3 in a row that make the rotation R, whether two of the axes fall together).

    ``side`` is 1 or -1, for the two ways that there are. Where the outer axes fall together only the sum of their turns
    matters; the last then stays.
    """
    goal = apply(R, z3)
    middle, half = turns_to_plane(z2, z3, z1, dot(z1, goal))
    y = middle + side * half
    lifted = turned(z2, z3, y)
    if norm(cross(lifted, z1)) <= F(1e-7):
        u = perpendicular(z3)
        return (turn_to(z1, turned(z2, u, y), apply(R, u)), y, F(0)), True
    back = turned(z2, z1, -y)
    return (turn_to(z1, lifted, goal), y, turn_to(z3, apply_t(R, z1), back)), False
