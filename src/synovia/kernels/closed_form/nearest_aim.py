"""The nearest aim of a ball: the rotation within its limits that points an axis nearest to a target.

It is used if no allowed rotation aims at the target. All quantities are in the limit's own frame. There the allowed
rotations are a disc of swings times an interval of twists (see ``swing_twist``). Each quarter of the ellipse is scaled
to a quarter of the unit disc. For a given swing the best twist is that of a hinge. The remaining function of the swing
has a few local minima, mostly on the rim. A compass search (Kolda, Lewis & Torczon 2003) descends from the present pose
and from the best directions of the disc. It works across the rim and the creases between the quarters.
"""

import math
from typing import NamedTuple

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import TWIST_LOWER, TWIST_UPPER
from synovia.kernels.math.rotations import PI, quat_apply, quat_conj, quat_exp
from synovia.kernels.math.subproblems import turn_to
from synovia.kernels.math.swing_twist import (
    from_limit_frame,
    half_angles,
    join,
    limit_frame,
    nearest_twist,
    split,
    to_limit_frame,
    unfold,
)
from synovia.kernels.math.trigonometry import sincos
from synovia.kernels.math.two_segments import FLAT, nearest_turn
from synovia.kernels.math.vectors import axpy, dot, norm, reject, sub

WORST = F(4)  # squared distance of opposite unit vectors
COLUMNS, RINGS = 18, 5  # number of directions of the disc, and of samples on each in addition to the centre
WIDE, NARROW, FINE = F(0.25), F(1e-2), F(1e-8)  # step sizes: first, last while comparing candidates, last
ROUNDS = 400  # largest number of rounds of the compass search
BETTER = F(5e-4)  # radians: another minimum must aim better by this, so that answers do not flicker between equals
Z = (F(0), F(0), F(1))


class Sight(NamedTuple):
    """An axis of the joint and its target, in the limit's frame."""

    axis: tuple[float, float, float]  # unit vector
    eye: tuple[float, float, float]  # a point of the axis, from the joint's centre
    target: tuple[float, float, float]  # vector from the joint's centre to the target
    twist: float  # radians; used if all twists aim equally well


class Candidate(NamedTuple):
    """An allowed rotation, and the error of its aim."""

    u: float  # point (u, v) of the unit disc of swings
    v: float
    twist: float  # radians
    gap: float  # squared distance between the unit vectors of the axis and of the direction to the target


@inline
def lever(e, a, d):
    """Return the point e + s a of the axis with |e + s a| = |d|, or the point nearest to the centre if there is none.

    Of two such points, return the one ahead. ``a`` need not be a unit vector: for a hinge it is the part of the axis
    normal to the hinge.
    """
    aa, ea = dot(a, a), dot(e, a)
    if aa <= FLAT * FLAT:
        return e
    root = ea * ea - aa * (dot(e, e) - dot(d, d))
    s = (-ea + math.sqrt(max(root, F(0)))) / aa
    return axpy(max(s, F(0)), a, e)


@inline
def swing_at(limit, k, u, v):
    """Return the swing vector of the point (u, v) of the unit disc."""
    a, b = half_angles(limit, k, u, v)
    return a * u, b * v


@inline
def target_seen(limit, k, sight, u, v):
    """Return the vector to the target in the frame after the swing of a point (u, v) of the disc, before the twist."""
    sx, sy = swing_at(limit, k, u, v)
    return quat_apply(quat_exp((-sx, -sy, F(0))), sight.target)


@inline
def gap_at(sight, d, twist):
    """Return the error of the aim of a twist, see ``Candidate``; d is the vector to the target before the twist."""
    s, c = sincos(twist)
    way = sub((c * d[0] + s * d[1], c * d[1] - s * d[0], d[2]), sight.eye)
    size = norm(way)
    if size <= FLAT * norm(d):
        return WORST
    off = axpy(-F(1) / size, way, sight.axis)
    return dot(off, off)


@device
def best_twist(limit, k, sight, d):
    """Return an allowed twist that rotates the axis of ``sight`` towards its target, and the error of the aim.

    Limits are those of row k of ``limit``; for the error, see ``Candidate``. d is the vector to the target in the frame
    after the swing and before the twist, as from ``target_seen``.

    The twist makes axis and target coincide as seen along z. If limits forbid that, it is the better of the two limits;
    if the axis or the target is along z, it is the allowed twist nearest to ``sight.twist``. Another twist may have a
    smaller error, so ``search`` also varies the twist.
    """
    low, high = limit[k, TWIST_LOWER], limit[k, TWIST_UPPER]
    level = reject(d, Z)
    point = lever(reject(sight.eye, Z), reject(sight.axis, Z), level)
    flat = FLAT * norm(d)
    if norm(level) <= flat or norm(point) <= flat:
        twist = nearest_twist(sight.twist, low, high)
        return twist, gap_at(sight, d, twist)
    twist, found = nearest_turn(turn_to(Z, point, level), sight.twist, low, high)
    if found:
        return twist, gap_at(sight, d, twist)
    below, above = gap_at(sight, d, low), gap_at(sight, d, high)
    return (low, below) if below <= above else (high, above)


@device
def best_of_column(limit, k, sight, j):
    """Return the best of the samples in direction j of the disc."""
    s, c = sincos(F(2) * PI * F(j) / F(COLUMNS))
    best = Candidate(F(0), F(0), F(0), F(math.inf))
    for i in range(RINGS + 1):
        r = F(i) / F(RINGS)
        u, v = r * c, r * s
        twist, gap = best_twist(limit, k, sight, target_seen(limit, k, sight, u, v))
        if gap < best.gap:
            best = Candidate(u, v, twist, gap)
    return best


@inline
def stepped(limit, k, at, way, size):
    """Return (u, v, twist) after a step in one of six directions, clamped to the limits."""
    step = size if way % 2 == 0 else -size
    u = at.u + (step if way < 2 else F(0))
    v = at.v + (step if way // 2 == 1 else F(0))
    twist = at.twist
    if way >= 4:
        twist = nearest_twist(twist + step, limit[k, TWIST_LOWER], limit[k, TWIST_UPPER])
    r = math.sqrt(u * u + v * v)
    return (u / r, v / r, twist) if r > F(1) else (u, v, twist)


@device
def search(limit, k, sight, at, first, last):
    """Return the local minimum near a candidate by a compass search with step sizes from ``first`` down to ``last``."""
    size = first
    for _ in range(ROUNDS):
        moved = False
        for way in range(6):
            u, v, twist = stepped(limit, k, at, way, size)
            d = target_seen(limit, k, sight, u, v)
            gap = gap_at(sight, d, twist)
            if way < 4:
                other, less = best_twist(limit, k, sight, d)
                if less < gap:
                    twist, gap = other, less
            if gap < at.gap:
                at = Candidate(u, v, twist, gap)
                moved = True
        if not moved:
            size *= F(0.5)
            if size < last:
                break
    return at


@inline
def angle_of(gap):
    """Return the angle between two unit vectors from their squared distance."""
    return F(2) * math.asin(min(F(0.5) * math.sqrt(gap), F(1)))


@device
def current(limit, k, sight, q):
    """Return the rotation q, brought within the limits, as a ``Candidate``."""
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    a, b = half_angles(limit, k, sx, sy)
    u, v = sx / a, sy / b
    r = max(F(1), math.sqrt(u * u + v * v))
    u, v, twist = u / r, v / r, nearest_twist(twist, limit[k, TWIST_LOWER], limit[k, TWIST_UPPER])
    return Candidate(u, v, twist, gap_at(sight, target_seen(limit, k, sight, u, v), twist))


@device
def nearest_aim(limit, k, q, wanted, axis, eye, target):
    """Return the allowed rotation whose axis points nearest to a target.

    Args:
        limit: Limits.
        k: Row of the limit.
        q: The present rotation.
        wanted: A rotation that aims but exceeds the limits; its twist is used if no other is better.
        axis: Unit vector in the joint's frame.
        eye: A point of the axis in the joint's frame.
        target: Vector from the joint's centre to the target, in the joint's frame before its own motion.
    """
    back = quat_conj(limit_frame(limit, k))
    _, _, twist = split(to_limit_frame(limit, k, wanted))
    sight = Sight(quat_apply(back, axis), quat_apply(back, eye), quat_apply(back, target), twist)
    best = search(limit, k, sight, current(limit, k, sight, q), WIDE, FINE)
    before = best_of_column(limit, k, sight, -1)
    here = best_of_column(limit, k, sight, 0)
    for j in range(COLUMNS):
        after = best_of_column(limit, k, sight, j + 1)
        if here.gap <= before.gap and here.gap <= after.gap:
            rival = search(limit, k, sight, here, WIDE, NARROW)
            if rival.gap < best.gap:
                rival = search(limit, k, sight, rival, NARROW, FINE)
                if angle_of(rival.gap) < angle_of(best.gap) - BETTER:
                    best = rival
        before, here = here, after
    sx, sy = unfold(limit, k, *swing_at(limit, k, best.u, best.v))
    return from_limit_frame(limit, k, join(sx, sy, best.twist))
