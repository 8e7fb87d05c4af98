"""Paden-Kahan subproblems: rotations about given axes that take a point to a target.

This file has subproblem 1 (point to point), subproblem 4 (point to plane), and three turns that compose a given
rotation. Subproblem 3 (point to a distance) is in ``two_segments``.
"""

import math
from typing import NamedTuple

from synovia.kernels.compiler.jit import F, inline
from synovia.kernels.math.rotations import PI, apply, apply_t
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.vectors import add, axpy, cross, dot, norm, perpendicular, scale

ALONG = F(1e-9)  # sine below which a direction is parallel to an axis, so that rotating it has no effect


class Turn(NamedTuple):
    """The component, along a direction, of a point rotated about an axis: constant + size cos(angle - middle)."""

    constant: float
    size: float
    middle: float


@inline
def spin(z, p, sc):
    """Return p rotated about the unit axis z by the angle with (sine, cosine) ``sc`` (Rodrigues)."""
    s, c = sc
    return add(axpy(c, p, scale(s, cross(z, p))), scale((F(1) - c) * dot(z, p), z))


@inline
def opposite(sc):
    """Return the sine and cosine of minus the angle, from the sine and cosine of the angle."""
    return -sc[0], sc[1]


@inline
def turned(z, p, angle):
    """Return p rotated about a unit axis."""
    return spin(z, p, sincos(angle))


@inline
def turn_of(z, p, h):
    """Return the component along h of p rotated about a unit axis, as a function of the angle."""
    constant = dot(h, z) * dot(z, p)
    a, b = dot(h, p) - constant, dot(h, cross(z, p))
    return Turn(constant, math.sqrt(a * a + b * b), math.atan2(b, a))


@inline
def seen_along(z, p, t):
    """Return (y, x), whose arctangent is the turn about z that takes p to t, both seen along z."""
    return dot(z, cross(p, t)), dot(p, t) - dot(p, z) * dot(t, z)


@inline
def turn_to(z, p, t):
    """Return the turn about z that takes p to t, both seen along z (subproblem 1)."""
    y, x = seen_along(z, p, t)
    return math.atan2(y, x)


@inline
def unit(y, x):
    """Return sine and cosine of atan2(y, x); those of angle 0 if both are zero."""
    size = math.sqrt(x * x + y * y)
    return (y / size, x / size) if size > F(0) else (F(0), F(1))


@inline
def plus(a, b, side):
    """Return sine and cosine of the angle a + side * b, from those of a and b; ``side`` is 1 or -1."""
    return a[0] * b[1] + side * (a[1] * b[0]), a[1] * b[1] - side * (a[0] * b[0])


@inline
def double_arcsine(x):
    """Return (2 asin √x, its sine and cosine), with x clamped to [0, 1]."""
    x = min(max(x, F(0)), F(1))
    angle = F(2) * math.asin(math.sqrt(min(x, F(1) - x)))  # near 1 the arcsine of √x would lose half the digits
    return angle if x <= F(0.5) else PI - angle, (F(2) * math.sqrt(x * (F(1) - x)), F(1) - F(2) * x)


@inline
def turns_to_plane(z, p, h, d):
    """Return the angles (middle, half): the turns middle ± half about z give p the component d along h (subproblem 4).

    If d is out of range, half is 0 or π, whichever gives the component closest to d.
    """
    turn = turn_of(z, p, h)
    return turn.middle, half_width(turn, norm(p), d)[0]


@inline
def half_width(turn, length, d):
    """Return the angle ``half`` of ``turns_to_plane``, and its sine and cosine; ``length`` is that of p."""
    if turn.size <= ALONG * ALONG * length:
        return F(0), (F(0), F(1))
    return double_arcsine((F(1) - (d - turn.constant) / turn.size) * F(0.5))


@inline
def three_turns(z1, z2, z3, R, side):
    """Return three turns about z1, z2, z3 that compose the rotation R, and whether the outer axes become parallel.

    ``side`` is 1 or -1 and selects one of the two solutions. If the outer axes become parallel, only the sum of their
    turns is determined, and the last turn is 0.
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
