"""Limbs: two segments from a root A over a joint B to a tip C, and the angles that bring C to a distance from A.

With U = B - A and V = C - B, a turn by δ about the unit axis n through B gives the distance

    |U + R(n, δ) V|² = |U|² + |V|² + 2 (U·n)(V·n) + 2 h cos(δ - φ)

h = hypot(a, b), φ = atan2(b, a), a = U·V - (U·n)(V·n), b = U·(n × V): the third subproblem of Paden and Kahan. It is
largest at φ, smallest at φ + π, and each distance between has the two branches φ ± ω.
"""

import math
from typing import NamedTuple

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.math.rotations import PI, quat_apply, quat_between, quat_mul
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.vectors import add, axpy, cross, dot, norm, scale, sub

FLAT = F(1e-9)  # of the lengths: where a bend has no plane that rounding does not decide
STRAIGHT = F(1e-15)  # of the squared distance: nearer to an end of the range than this is that end
OPPOSITE = F(1e-7)  # sine under which a turn onto the opposite direction takes the axis that it is given


class Bend(NamedTuple):
    """The distance as a function of the turn, and the turns that are allowed."""

    most: float  # squared distance at φ
    wide: float  # 2 h: the range of the squared distance is from most - 2 wide to most
    phi: float
    lower: float
    upper: float


@inline
def turn_about(n, angle):
    """Return the quaternion of a turn about a unit axis."""
    s, c = sincos(F(0.5) * angle)
    return s * n[0], s * n[1], s * n[2], c


@inline
def distance_curve(U, V, n, lower, upper):
    """Return the distance as a function of the turn about n, within [lower, upper]."""
    along = dot(U, n) * dot(V, n)
    a, b = dot(U, V) - along, dot(U, cross(n, V))
    h = math.sqrt(a * a + b * b)
    phi = math.atan2(b, a) if h > FLAT * FLAT * (dot(U, U) + dot(V, V)) else F(0)
    return Bend(dot(U, U) + dot(V, V) + F(2) * (along + h), F(2) * h, phi, lower, upper)


@inline
def distance2(bend, angle):
    """Return the squared distance after a turn."""
    s, _ = sincos(F(0.5) * (angle - bend.phi))
    return max(bend.most - F(2) * bend.wide * s * s, F(0))


@inline
def nearest_turn(angle, at, lower, upper):
    """Return (the angle plus whole turns within [lower, upper] that is nearest to ``at``, whether there is one)."""
    whole = F(2) * PI
    best = angle - whole * math.floor((angle - at) / whole + F(0.5))
    if best > upper:
        best -= whole * math.ceil((best - upper) / whole)
    elif best < lower:
        best += whole * math.ceil((lower - best) / whole)
    return best, lower <= best <= upper


@device
def distance_range(bend):
    """Return the smallest and the largest distance within the allowed turns."""
    one, other = distance2(bend, max(bend.lower, F(-1e6))), distance2(bend, min(bend.upper, F(1e6)))
    nearest, farthest = min(one, other), max(one, other)
    if nearest_turn(bend.phi, F(0), bend.lower, bend.upper)[1]:
        farthest = bend.most
    if nearest_turn(bend.phi + PI, F(0), bend.lower, bend.upper)[1]:
        nearest = max(bend.most - F(2) * bend.wide, F(0))
    return math.sqrt(nearest), math.sqrt(farthest)


@device
def branch_turn(bend, d, side, at):
    """Return (the turn φ ± ω that brings the tip to distance d, nearest to ``at``, whether limits and reach allow it).

    ω = 2 asin √((most - d²) / 2 wide): an arc cosine would lose half the digits where the limb is straight.
    """
    if bend.wide <= F(0):
        return at, True
    x = (bend.most - d * d) / (F(2) * bend.wide)
    if x < STRAIGHT:
        x = F(0)
    elif x > F(1) - STRAIGHT:
        x = F(1)
    omega = F(2) * math.asin(math.sqrt(x))
    return nearest_turn(bend.phi + side * omega, at, bend.lower, bend.upper)


@device
def turn_to_distance(bend, d, at):
    """Return the allowed turn nearest to ``at`` that brings the tip to distance d, or else the closest to it."""
    best, found = branch_turn(bend, d, F(1), at)
    other, too = branch_turn(bend, d, F(-1), at)
    if too and (not found or abs(other - at) < abs(best - at)):
        best = other
    if found or too:
        return best
    low = abs(math.sqrt(distance2(bend, bend.lower)) - d)
    high = abs(math.sqrt(distance2(bend, bend.upper)) - d)
    return bend.lower if low <= high else bend.upper


@inline
def soften(d, longest, share):
    """Return the distance that the tip is allowed for a target at distance d, of a limb that reaches ``longest``.

    Up to (1 - s) longest it is d itself; then longest (1 - s exp(-t)) with t = (d - (1 - s) longest) / (s longest):
    the slope starts at 1 and falls with what is left, so that the bend √(2 s) exp(-t / 2) opens ever slower, where
    without it the last step of the target opens it at once.
    """
    left = share * longest
    over = d - (longest - left)
    if over <= F(0) or left <= F(0):
        return d
    return longest - left * math.exp(-over / left)


@inline
def turn_onto(a, b, axis):
    """Return the smallest turn from direction a to direction b; onto the opposite one about ``axis`` as far as it can.

    A direction of length zero gives no turn.
    """
    c = cross(a, b)
    size = norm(a) * norm(b)
    if dot(a, b) < F(0) and norm(c) <= OPPOSITE * size:
        u = axpy(-dot(axis, a) / max(dot(a, a), F(1e-300)), a, axis)
        if dot(u, u) > FLAT * FLAT:
            u = scale(F(1) / norm(u), u)
            half = quat_between(a, cross(u, a))
            return quat_mul(quat_between(quat_apply(half, a), b), half)
    return quat_between(a, b)


@inline
def signed_angle(a, b, axis):
    """Return the angle from a to b about a unit axis, both seen along it."""
    return math.atan2(dot(axis, cross(a, b)), dot(a, b) - dot(a, axis) * dot(b, axis))


@inline
def reject(a, line):
    """Return what is left of a across a unit direction."""
    return axpy(-dot(a, line), line, a)


@device
def aim_limb(U, V, bent, n, way):
    """Return the turn of the root that points the limb along ``way``, its plane carried by the smallest turn.

    The limb is bent in its own plane first (V becomes ``bent``), root and tip staying on their line; then that line is
    laid onto the new one. Where tip and root were in one place, the bent limb is laid onto it directly.
    """
    before, after = add(U, V), add(U, bent)
    size = norm(U) + norm(V)
    if norm(before) <= FLAT * size or norm(after) <= FLAT * size:
        return turn_onto(after, way, n)
    opened = turn_onto(after, before, n)
    return quat_mul(turn_onto(before, way, quat_apply(opened, n)), opened)


@inline
def elbow_side(U, n, line, bends_up):
    """Return the direction from the line root-tip to the joint between, also where the limb is straight."""
    out = reject(U, line)
    if norm(out) > FLAT * norm(U):
        return out
    side = cross(line, n)
    return side if bends_up else scale(F(-1), side)


@inline
def bend_normal(U, V, rest, other):
    """Return the unit normal of the bend: from U to V, to the rest direction of V where they are aligned, or another.

    Args:
        U: Root to joint.
        V: Joint to tip.
        rest: V as the rest pose has it.
        other: Unit vector normal to V.
    """
    n = cross(U, V)
    if norm(n) <= FLAT * norm(U) * norm(V):
        n = cross(U, rest)
        if norm(n) <= FLAT * norm(U) * norm(rest):
            n = sub(other, scale(dot(other, U) / max(dot(U, U), F(1e-300)), U))
    size = norm(n)  # a product of lengths: for small bodies it is far smaller than any of them
    return scale(F(1) / size, n) if size > F(0) else other
