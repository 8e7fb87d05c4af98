"""The subproblems of Paden and Kahan: turns about given axes that bring given points where they should be.

The third (a distance) is in ``two_segments``; here are the first (a point to a point) and the fourth (a point to a
plane), and three turns in a row that make a rotation.
"""

import math
from typing import NamedTuple

from synovia.kernels.compiler.jit import F, inline
from synovia.kernels.math.rotations import apply, apply_t
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.vectors import add, axpy, cross, dot, norm, perpendicular, scale

ALONG = F(1e-9)  # sine under which a direction lies on an axis: a turn about it does nothing


class Turn(NamedTuple):
    """The component along a direction of a point that turns about an axis: constant + size cos(angle - middle)."""

    constant: float
    size: float
    middle: float


@inline
def spin(z, p, sc):
    """Return p turned about a unit axis by the angle with this sine and cosine (Rodrigues)."""
    s, c = sc
    return add(axpy(c, p, scale(s, cross(z, p))), scale((F(1) - c) * dot(z, p), z))


@inline
def opposite(sc):
    """Return sine and cosine of the turn back."""
    return -sc[0], sc[1]


@inline
def turned(z, p, angle):
    """Return p turned about a unit axis."""
    return spin(z, p, sincos(angle))


@inline
def turn_of(z, p, h):
    """Return the component along h of p turned about a unit axis."""
    constant = dot(h, z) * dot(z, p)
    a, b = dot(h, p) - constant, dot(h, cross(z, p))
    return Turn(constant, math.sqrt(a * a + b * b), math.atan2(b, a))


@inline
def turn_to(z, p, t):
    """Return the turn about z that takes p to t, as seen along z (subproblem 1)."""
    return math.atan2(dot(z, cross(p, t)), dot(p, t) - dot(p, z) * dot(t, z))


@inline
def turns_to_plane(z, p, h, d):
    """Return (middle, half): the turns about z that give the turned p the component d along h are middle ± half.

    Subproblem 4. Where d is out of range half is 0 or π, the nearest.
    """
    turn = turn_of(z, p, h)
    return turn.middle, half_width(turn, norm(p), d)


@inline
def half_width(turn, length, d):
    """Return how far to both sides of its middle a turn gives the component d; 0 or π, the nearest, out of range.

    ``length`` is that of the point, against which a turn that does nothing shows.
    """
    if turn.size <= ALONG * ALONG * length:
        return F(0)
    x = min(max((F(1) - (d - turn.constant) / turn.size) * F(0.5), F(0)), F(1))
    return F(2) * math.asin(math.sqrt(x))


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
