"""Limbs of two segments, from a root A over a joint B to a tip C: rotations that put C at a distance from A.

With U = B - A and V = C - B, a rotation by δ about the unit axis n through B gives the distance

    |U + R(n, δ) V|² = |U|² + |V|² + 2 (U·n)(V·n) + 2 h cos(δ - φ)

where h = hypot(a, b), φ = atan2(b, a), a = U·V - (U·n)(V·n) and b = U·(n × V) (Paden-Kahan subproblem 3). The
distance is largest at φ and smallest at φ + π. Each distance between these has two solutions (branches), φ ± ω.
"""

import math
from typing import NamedTuple

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.math.rotations import PI, quat_apply, quat_between, quat_mul
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.vectors import add, axpy, cross, dot, norm, reject, scale, sub

FLAT = F(1e-9)  # fraction of the lengths: if the bend is flatter, rounding would determine the bend plane
STRAIGHT = F(1e-15)  # fraction of the range of the squared distance: values nearer to an end are set to it
OPPOSITE = F(1e-7)  # sine below which two directions count as opposite


class DistanceCurve(NamedTuple):
    """The distance of the tip from the root as a function of the turn, and the limits of the turn."""

    most: float  # squared distance at φ
    wide: float  # 2 h: the range of the squared distance is from most - 2 wide to most
    phi: float
    lower: float
    upper: float


@inline
def turn_about(n, angle):
    """Return the quaternion of a rotation about a unit axis."""
    s, c = sincos(F(0.5) * angle)
    return s * n[0], s * n[1], s * n[2], c


@inline
def distance_curve(U, V, n, lower, upper):
    """Return the distance of the tip from the root as a function of a turn about n within [lower, upper]."""
    along = dot(U, n) * dot(V, n)
    a, b = dot(U, V) - along, dot(U, cross(n, V))
    h = math.sqrt(a * a + b * b)
    phi = math.atan2(b, a) if h > FLAT * FLAT * (dot(U, U) + dot(V, V)) else F(0)
    return DistanceCurve(dot(U, U) + dot(V, V) + F(2) * (along + h), F(2) * h, phi, lower, upper)


@inline
def distance2(curve, angle):
    """Return the squared distance of the tip from the root after a turn."""
    s, _ = sincos(F(0.5) * (angle - curve.phi))
    return max(curve.most - F(2) * curve.wide * s * s, F(0))


@inline
def nearest_turn(angle, at, lower, upper):
    """Return ``angle`` plus a multiple of 2π, and whether the result is within [lower, upper].

    Of the results within the interval, return the one nearest to ``at``.
    """
    whole = F(2) * PI
    best = angle - whole * math.floor((angle - at) / whole + F(0.5))
    if best > upper:
        best -= whole * math.ceil((best - upper) / whole)
    elif best < lower:
        best += whole * math.ceil((lower - best) / whole)
    return best, lower <= best <= upper


@device
def distance_range(curve):
    """Return the smallest and the largest distance of the tip from the root within the allowed turns."""
    one, other = distance2(curve, max(curve.lower, F(-1e6))), distance2(curve, min(curve.upper, F(1e6)))
    nearest, farthest = min(one, other), max(one, other)
    if nearest_turn(curve.phi, F(0), curve.lower, curve.upper)[1]:
        farthest = curve.most
    if nearest_turn(curve.phi + PI, F(0), curve.lower, curve.upper)[1]:
        nearest = max(curve.most - F(2) * curve.wide, F(0))
    return math.sqrt(nearest), math.sqrt(farthest)


@device
def branch_turn(curve, d, side, at):
    """Return the turn that puts the tip at distance d from the root, and whether it is within the limits.

    The turn is φ + ω or φ - ω, by the sign ``side``, plus the multiple of 2π that brings it nearest to ``at``. If d is
    out of range, the turn brings the tip closest to d. Here ω = 2 asin √((most - d²) / 2 wide): an arc cosine would
    lose half the digits if the limb is straight.
    """
    if curve.wide <= F(0):
        return at, True
    x = (curve.most - d * d) / (F(2) * curve.wide)
    if x < STRAIGHT:
        x = F(0)
    elif x > F(1) - STRAIGHT:
        x = F(1)
    omega = F(2) * math.asin(math.sqrt(x))
    return nearest_turn(curve.phi + side * omega, at, curve.lower, curve.upper)


@device
def turn_to_distance(curve, d, at):
    """Return the allowed turn nearest to ``at`` that puts the tip at distance d, or as close to it as limits allow."""
    best, found = branch_turn(curve, d, F(1), at)
    other, too = branch_turn(curve, d, F(-1), at)
    if too and (not found or abs(other - at) < abs(best - at)):
        best = other
    if found or too:
        return best
    low = abs(math.sqrt(distance2(curve, curve.lower)) - d)
    high = abs(math.sqrt(distance2(curve, curve.upper)) - d)
    return curve.lower if low <= high else curve.upper


@inline
def soften(d, longest, share):
    """Return the softened distance of the tip for a target at distance d, for a limb with the length ``longest``.

    Up to (1 - s) longest, with s = ``share``, the softened distance is d. Beyond, it is longest (1 - s exp(-t)) with
    t = (d - (1 - s) longest) / (s longest). Its slope falls from 1 to 0, so the limb straightens ever more slowly and
    does not snap straight when the target leaves its reach.
    """
    left = share * longest
    over = d - (longest - left)
    if over <= F(0) or left <= F(0):
        return d
    return longest - left * math.exp(-over / left)


@inline
def turn_onto(a, b, axis):
    """Return the smallest rotation from direction a to direction b.

    For opposite directions the rotation is about ``axis`` if possible. A zero vector gives the identity.
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


@device
def aim_limb(U, V, bent, n, direction):
    """Return the rotation of the root that points the limb along ``direction`` and moves its bend plane least.

    First bend the limb in its own plane (V becomes ``bent``) with root and tip on their line, then rotate this line
    onto ``direction``. If tip and root coincide before or after bending, rotate the bent limb onto ``direction``
    directly.
    """
    before, after = add(U, V), add(U, bent)
    size = norm(U) + norm(V)
    if norm(before) <= FLAT * size or norm(after) <= FLAT * size:
        return turn_onto(after, direction, n)
    opened = turn_onto(after, before, n)
    return quat_mul(turn_onto(before, direction, quat_apply(opened, n)), opened)


@inline
def elbow_side(U, n, line, bends_up):
    """Return the direction from the line root-tip to the middle joint, also for a straight limb."""
    out = reject(U, line)
    if norm(out) > FLAT * norm(U):
        return out
    side = cross(line, n)
    return side if bends_up else scale(F(-1), side)


@inline
def bend_normal(U, V, rest, other):
    """Return the unit normal of the bend plane: U × V, else U × rest if the limb is straight, else from ``other``.

    Args:
        U: Root to joint.
        V: Joint to tip.
        rest: V in the rest pose.
        other: Unit vector normal to V.
    """
    n = cross(U, V)
    if norm(n) <= FLAT * norm(U) * norm(V):
        n = cross(U, rest)
        if norm(n) <= FLAT * norm(U) * norm(rest):
            n = sub(other, scale(dot(other, U) / max(dot(U, U), F(1e-300)), U))
    size = norm(n)  # a product of two lengths, so tiny for small bodies
    return scale(F(1) / size, n) if size > F(0) else other
