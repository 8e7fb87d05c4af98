"""Limits of a ball joint: rotation = swing · twist, bounded by an ellipse of four half-angles and by an interval.

In the limit's own frame z is the twist axis. The swing is a rotation vector (sx, sy, 0) of length up to pi. So
half-angles beyond 90 degrees are ordinary values, and the only singularity is at half a turn, where the twist is
undefined. (Yamane & Nakamura 2002 bound the swing in the same vector; Baerlocher & Boulic 2001 split off the twist the
same way.)

A limit is a row of eleven values: quaternion of the limit frame in the joint's rest frame (4), half-angles x-, x+,
y-, y+ (4), twist lower and upper (2), and a mark that is not 0 if the joint has a limit (see ``variables``).
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import LIMIT_FRAME, SWING_X, SWING_X_BACK, SWING_Y, SWING_Y_BACK, TWIST_LOWER, TWIST_UPPER
from synovia.kernels.math.rotations import PI, quat_apply, quat_conj, quat_exp, quat_mul
from synovia.kernels.math.vectors import norm, scale

EDGE = F(1e-9)  # excess (radians) that still counts as inside
FOLDED = PI - F(4e-6)  # largest swing of a limited ball: beyond, rounding changes swing direction and twist by EDGE
ROUNDS = 100  # most Newton steps in ``nearest_on_ellipse``; a few are usual, about 40 on a very thin ellipse


@inline
def split(q):
    """Return (sx, sy, twist) of a quaternion in the limit's frame; q = exp(sx, sy, 0) · exp(0, 0, twist)."""
    x, y, z, w = q
    if w < F(0):
        x, y, z, w = -x, -y, -z, -w
    c = math.sqrt(w * w + z * z)  # cos(swing / 2)
    if c > F(1e-12):
        ct, st = w / c, z / c
    else:
        ct, st = F(1), F(0)  # half a turn of swing: the twist is undefined
    u, v = x * ct - y * st, x * st + y * ct
    s = math.sqrt(u * u + v * v)  # sin(swing / 2)
    k = F(2) * math.atan2(s, c) / s if s > F(1e-12) else F(2)
    return k * u, k * v, F(2) * math.atan2(st, ct)


@inline
def join(sx, sy, twist):
    """Return the quaternion exp(sx, sy, 0) · exp(0, 0, twist)."""
    return quat_mul(quat_exp((sx, sy, F(0))), quat_exp((F(0), F(0), twist)))


@inline
def half_angles(limit, k, sx, sy):
    """Return the two half-angles that bound a swing in the quadrant of (sx, sy)."""
    a = limit[k, SWING_X] if sx >= F(0) else limit[k, SWING_X_BACK]
    b = limit[k, SWING_Y] if sy >= F(0) else limit[k, SWING_Y_BACK]
    return a, b


@inline
def limit_frame(limit, k):
    """Return the quaternion of the frame in which limit k measures swing and twist."""
    return (
        limit[k, LIMIT_FRAME],
        limit[k, LIMIT_FRAME + 1],
        limit[k, LIMIT_FRAME + 2],
        limit[k, LIMIT_FRAME + 3],
    )


@inline
def to_limit_frame(limit, k, q):
    """Return the rotation q, given in the joint's rest frame, in the frame of limit k."""
    frame = limit_frame(limit, k)
    return quat_mul(quat_mul(quat_conj(frame), q), frame)


@inline
def from_limit_frame(limit, k, q):
    """Return the rotation q, given in the frame of limit k, in the joint's rest frame."""
    frame = limit_frame(limit, k)
    return quat_mul(quat_mul(frame, q), quat_conj(frame))


@device
def nearest_on_ellipse(x, y, a, b):
    """Return the point of the ellipse (x/a)² + (y/b)² = 1 nearest to a point outside it; all four arguments >= 0.

    The nearest point is (a² x / (t + a²), b² y / (t + b²)) for the one t >= 0 that puts it on the ellipse (Eberly,
    *Distance from a point to an ellipse*). There is no closed form. The left side of the equation is convex and falls
    in t, so Newton's method from below approaches the root and never passes it. Unlike bisection, it keeps its relative
    precision if a is a billion times smaller than b.
    """
    if x <= F(0):
        return F(0), min(y, b)
    if y <= F(0):
        return min(x, a), F(0)
    t = max(F(0), a * (x - a), b * (y - b))  # each coordinate by itself gives a lower bound of the root
    u = a * x / (t + a * a)
    v = b * y / (t + b * b)
    for _ in range(ROUNDS):
        over = u * u + v * v - F(1)
        if over <= F(0):
            break
        before = t
        t += F(0.5) * over / (u * u / (t + a * a) + v * v / (t + b * b))
        if t <= before:
            break
        u = a * x / (t + a * a)
        v = b * y / (t + b * b)
    k = F(1) / math.sqrt(u * u + v * v)  # scale the point exactly onto the ellipse
    return a * u * k, b * v * k


@inline
def wrap(angle):
    """Return the angle plus a multiple of 2 pi, in (-pi, pi]."""
    return angle - F(2) * PI * math.ceil((angle - PI) / (F(2) * PI))


@inline
def is_whole_turn(limit, k):
    """Return whether the twist of limit k is unlimited (its range is a full turn)."""
    return limit[k, TWIST_UPPER] - limit[k, TWIST_LOWER] >= F(2) * PI - EDGE


@inline
def twist_step(limit, k, first, second):
    """Return the difference between two twists inside limit k: the shorter one if the twist is unlimited."""
    return wrap(second - first) if is_whole_turn(limit, k) else second - first


@inline
def nearest_twist(twist, lower, upper):
    """Return the angle of [lower, upper] that is nearest to twist on the circle."""
    if twist < lower or twist > upper:
        return lower if abs(wrap(lower - twist)) <= abs(wrap(twist - upper)) else upper
    return twist


@inline
def signed_excess(limit, k, q):
    """Return how far (radians) the rotation q exceeds limit k, negative inside: the larger of swing and twist."""
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    a, b = half_angles(limit, k, sx, sy)
    f = math.sqrt((sx / a) * (sx / a) + (sy / b) * (sy / b))
    swing = (f - F(1)) * min(a, b)
    if f > F(1):  # use the true distance: on a thin ellipse, the radial distance magnifies rounding
        u, v = nearest_on_ellipse(abs(sx), abs(sy), a, b)
        swing = math.sqrt((abs(sx) - u) * (abs(sx) - u) + (abs(sy) - v) * (abs(sy) - v))
    lower, upper = limit[k, TWIST_LOWER], limit[k, TWIST_UPPER]
    if twist < lower or twist > upper:
        turned = abs(wrap(twist - nearest_twist(twist, lower, upper)))
    elif is_whole_turn(limit, k):
        turned = F(-math.inf)
    else:
        turned = max(lower - twist, twist - upper)
    return max(swing, turned)


@inline
def excess(limit, k, q):
    """Return how far (radians) the rotation q exceeds limit k; 0 inside."""
    return max(F(0), signed_excess(limit, k, q))


@device
def nearest_swing(limit, k, sx, sy):
    """Return the allowed swing vector nearest to (sx, sy)."""
    a, b = half_angles(limit, k, sx, sy)
    if (sx / a) * (sx / a) + (sy / b) * (sy / b) <= F(1):
        return sx, sy
    u, v = nearest_on_ellipse(abs(sx), abs(sy), a, b)
    return (u if sx >= F(0) else -u), (v if sy >= F(0) else -v)


@inline
def unfold(limit, k, sx, sy):
    """Return an allowed swing vector, shortened to just below half a turn if the twist or the swing has limits.

    At half a turn the twist is undefined: a change of twist is the same as a change of swing direction. Close to half a
    turn, the rounding of a quaternion (1e-16) changes both by 1e-16 / cos(swing / 2).
    """
    squared = sx * sx + sy * sy
    if squared > FOLDED * FOLDED and (
        not is_whole_turn(limit, k)
        or min(limit[k, SWING_X_BACK], limit[k, SWING_X], limit[k, SWING_Y_BACK], limit[k, SWING_Y]) < PI - EDGE
    ):
        shorter = FOLDED / math.sqrt(squared)
        return sx * shorter, sy * shorter
    return sx, sy


@device
def project(limit, k, q):
    """Return the allowed rotation nearest to q: the nearest swing vector in the plane, and the nearest twist.

    The plane of swing vectors ends at half a turn. A swing slightly beyond half a turn appears on the opposite side and
    is projected onto the limit there, although the limit that it passed is nearer. See ``unfold`` for swings just below
    half a turn.
    """
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    x, y = nearest_swing(limit, k, sx, sy)
    x, y = unfold(limit, k, x, y)
    near = nearest_twist(twist, limit[k, TWIST_LOWER], limit[k, TWIST_UPPER])
    if x == sx and y == sy and near == twist:
        return q
    return from_limit_frame(limit, k, join(x, y, near))


@device
def normals(limit, k, q, slack):
    """Return which bounds of limit k the rotation q touches, and their outward normals.

    The normals are angular velocities in the joint's moving frame (q ← q · exp(w)). With the swing vector of length s
    along u, the unit vector v = z × u and the velocity w' before the twist, the swing moves by w'·u along u and by
    w'·v s / sin s along v, and the twist by w'·z + tan(s / 2) w'·v.

    Returns:
        swing: 1 if q is on the ellipse, else 0.
        swing_normal: Unit vector.
        twist: 1 at the upper end, -1 at the lower end, else 0; always 0 for a range of a whole turn.
        twist_normal: Unit vector along which the twist grows fastest.
    """
    sx, sy, twist = split(to_limit_frame(limit, k, q))
    s = math.sqrt(sx * sx + sy * sy)
    a, b = half_angles(limit, k, sx, sy)
    f = (sx / a) * (sx / a) + (sy / b) * (sy / b)
    u = (sx / s, sy / s, F(0)) if s > F(1e-12) else (F(1), F(0), F(0))
    v = (-u[1], u[0], F(0))
    half = min(F(0.5) * s, F(1.57))
    gx, gy = sx / (a * a), sy / (b * b)
    gu = gx * u[0] + gy * u[1]
    gv = (gx * v[0] + gy * v[1]) * (s / max(math.sin(s), F(1e-3)) if s > F(1e-6) else F(1))
    n = (gu * u[0] + gv * v[0], gu * u[1] + gv * v[1], F(0))
    swing = 1 if f >= (F(1) - slack) * (F(1) - slack) else 0
    tan = math.tan(half)
    t = (tan * v[0], tan * v[1], F(1))
    side = 0
    lower, upper = limit[k, TWIST_LOWER], limit[k, TWIST_UPPER]
    if upper - lower < F(2) * PI - slack:
        near = nearest_twist(twist, lower, upper)
        if near >= upper - slack:
            side = 1
        elif near <= lower + slack:
            side = -1
    back = quat_exp((F(0), F(0), -twist))
    frame = limit_frame(limit, k)
    n = quat_apply(frame, quat_apply(back, n))
    t = quat_apply(frame, quat_apply(back, t))
    length = norm(n)
    n = scale(F(1) / length, n) if length > F(1e-12) else n
    return swing, n, side, scale(F(1) / norm(t), t)
