"""The law of one ball: velocities of its three axes from which its rotation stops inside its limits.

The axes keep their own limits (``axis``). Limits of the rotation, an ellipse and an interval (``math.swing_twist``),
hold for the three axes together: the velocities are reduced towards those of the known stop, which the last tick has
found, until the stop after them stays inside.

Along a curved limit no straight stop stays inside, so that a ball at its limit could only creep. So, with a limit of
the jerk, a ball that goes to a rotation on its limits reaches it from inside. Where the direct rotation leaves the
limits in between, the ball goes around: in the coordinates of swing and twist, where limits are convex, to a rotation
ahead that is pulled inwards. Where its velocities are reduced, the ball tries this path, too.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import (
    EMERGENCY,
    NEXT,
    NEXT_LOWER,
    NEXT_UPPER,
    PLAN_NEXT,
    REASON,
    RECOVERING,
    TOP_ACCELERATION,
    TWIST_LOWER,
    TWIST_UPPER,
)
from synovia.kernels.math.rotations import quat_conj, quat_exp, quat_log, quat_mul, quat_normalize
from synovia.kernels.math.swing_twist import (
    from_limit_frame,
    half_angles,
    is_whole_turn,
    join,
    project,
    signed_excess,
    split,
    to_limit_frame,
    twist_step,
)
from synovia.kernels.math.vectors import dot, norm, scale
from synovia.kernels.servo.axis import plan_of, stop_after, stop_keeps, stopping_speed
from synovia.kernels.servo.stop import duration, travelled

TICKS = 48  # largest number of samples at which the stop of a ball is checked
EFFORTS = 9  # number of velocities that a ball tries if it has to brake harder than allowed
EDGE = F(1e-11)  # radians: smaller excesses of the limits of a ball are rounding
HALVINGS = 6  # number of tried blends of a ball's velocities with the known stop: weights 1, 1/2, 1/4, …
SAG = F(4)  # 1/rad: bound of the excess between two samples, relative to their squared distance
AHEAD = F(0.2)  # radians of swing and twist: look-ahead of a ball that keeps off its limits
PULL = F(0.05)  # largest pull inwards of the rotation ahead, as part of its displacement to the limits' middle
NEAR = F(0.5)  # 1/rad: pull per radian of distance to the target, where the pull vanishes
INSET = F(0.45)  # inset from limits, as part of the remaining rotation
CLOSER = F(0.5)  # largest change of the swing by the inset, as part of the remaining rotation, so that the ball arrives
DEEPEST = F(0.2)  # largest inset, as a part of a limit
OUTSIDE = F(1e-3)  # radians: a rotation beyond the limits by more leaves them
BULGE = F(2)  # 1/rad: margin inside the limits where a stop ends, relative to its squared rotation
SLANT = F(0.25)  # largest margin, relative to the rotation of the stop


@device
def stops_of(axes, i, w, h):
    """Return the stops of axes i to i + 2 after their next velocities w."""
    return stop_after(axes[i], w[0], h), stop_after(axes[i + 1], w[1], h), stop_after(axes[i + 2], w[2], h)


@device
def stop_inside(limits, k, axes, i, q, w, h):
    """Return whether the ball k stops inside its limits after the next velocities w of its axes i to i + 2."""
    px, py, pz = stops_of(axes, i, w, h)
    if not (
        stop_keeps(axes[i], px, w[0], h)
        and stop_keeps(axes[i + 1], py, w[1], h)
        and stop_keeps(axes[i + 2], pz, w[2], h)
    ):
        return False
    most = max(signed_excess(limits, k, q), F(0))  # a ball that is outside may not go farther
    quat = quat_normalize(quat_mul(q, quat_exp((w[0] * h, w[1] * h, w[2] * h))))
    if signed_excess(limits, k, quat) > most + EDGE:
        return False
    return stays_inside(limits, k, quat, (px, py, pz), h, most)


@device
def stays_inside(limits, k, quat, stops, h, most):
    """Return whether ball k, now at ``quat``, exceeds its limits by at most ``most`` on the stops of its axes.

    The stops are checked at samples, about as dense as ticks of time h.
    """
    px, py, pz = stops
    T = max(duration(px), duration(py), duration(pz))
    if T <= F(0):
        return True
    step = T / math.ceil(min(max(T / h, F(TICKS // 2)), F(TICKS)))
    t = F(0)
    a, b, c = F(0), F(0), F(0)
    while t < T:
        t += step
        a1, b1, c1 = travelled(px, t), travelled(py, t), travelled(pz, t)
        way = (a1 - a, b1 - b, c1 - c)
        a, b, c = a1, b1, c1
        quat = quat_mul(quat, quat_exp(way))
        length = norm(way)
        if signed_excess(limits, k, quat) > max(most, F(0)) - SAG * length * length:
            return False
    return True


@inline
def between(axes, i, column, share):
    """Return the velocities of axes i to i + 2 between those in a column (share 0) and the chosen ones (share 1)."""
    return (
        axes[i, column] + share * (axes[i, NEXT] - axes[i, column]),
        axes[i + 1, column] + share * (axes[i + 1, NEXT] - axes[i + 1, column]),
        axes[i + 2, column] + share * (axes[i + 2, NEXT] - axes[i + 2, column]),
    )


@device
def slide(limits, k, axes, i, q, h):
    """Redirect the chosen velocities of ball k along its limits if they lead out, as far as its axes can."""
    w = (axes[i, NEXT] * h, axes[i + 1, NEXT] * h, axes[i + 2, NEXT] * h)
    there = quat_mul(q, quat_exp(w))
    if signed_excess(limits, k, there) <= F(0):
        return
    w = quat_log(quat_mul(quat_conj(q), project(limits, k, quat_normalize(there))))
    for c in range(3):
        axes[i + c, NEXT] = min(max(w[c] / h, axes[i + c, NEXT_LOWER]), axes[i + c, NEXT_UPPER])


@device
def inset(limits, k, end, left):
    """Return the rotation to which ball k goes if it has ``left`` radians to ``end``: ``end``, moved inside its limits.

    A straight stop to a rotation on a limit crosses the limit by its sag unless it comes from inside. So the target is
    moved inside by a part of the remaining rotation, and approaches ``end`` as the ball does.
    """
    x, y, twist = split(to_limit_frame(limits, k, end))
    a, b = half_angles(limits, k, x, y)
    margin = INSET * left
    f = math.sqrt((x / a) * (x / a) + (y / b) * (y / b))
    length = math.sqrt(x * x + y * y)
    most = F(1) - min(margin / min(a, b), CLOSER * left / max(length, F(1e-12)), DEEPEST)
    lower, upper = limits[k, TWIST_LOWER], limits[k, TWIST_UPPER]
    turn = twist
    if not is_whole_turn(limits, k):
        inside = min(margin, F(0.5) * DEEPEST * (upper - lower))
        turn = min(max(twist, lower + inside), upper - inside)
    if f <= most and turn == twist:
        return end
    share = most / f if f > most else F(1)
    return from_limit_frame(limits, k, join(share * x, share * y, turn))


@device
def bound_turn(limits, k, q, w, per, bounds):
    """Bound the velocities w of ball k, so that it stops inside its limits; return whether they have changed.

    Each axis has its own bound, so a ball at its limit slides along it: where the velocities lead out, they are
    redirected to a rotation farther inside, as a straight path along a curved limit leaves it.

    Args:
        limits: Limits of all variables.
        k: The variable.
        q: Its rotation.
        w: The velocities, (3,); changed.
        per: The displacement to the stop, per velocity.
        bounds: The lowest and the highest velocities, (3,) each; changed.
    """
    way = (per * w[0], per * w[1], per * w[2])
    length = norm(way)
    margin = min(BULGE * length, SLANT) * length
    end = quat_normalize(quat_mul(q, quat_exp(way)))
    if signed_excess(limits, k, end) <= -F(0.5) * margin:
        return False
    end = inset(limits, k, project(limits, k, end), margin / INSET)
    way = quat_log(quat_mul(quat_conj(q), end))
    low, high = bounds
    changed = False
    for c in range(3):
        most = min(max(way[c] / per, low[c]), high[c])
        changed = changed or most != w[c]
        if most < w[c]:
            high[c] = most
        else:
            low[c] = most
        w[c] = most
    return changed


@device
def way_inside(limits, k, q, end):
    """Return the rotation vector from q to a point ahead on a path to ``end`` that keeps off the limits of ball k."""
    sx, sy, twist = split(to_limit_frame(limits, k, q))
    ex, ey, turn = split(to_limit_frame(limits, k, end))
    dx, dy, dt = ex - sx, ey - sy, twist_step(limits, k, twist, turn)
    left = math.sqrt(dx * dx + dy * dy + dt * dt)
    share = AHEAD / left if left > AHEAD else F(1)
    pull = min(PULL, NEAR * left)
    x, y, z = (F(1) - pull) * (sx + share * dx), (F(1) - pull) * (sy + share * dy), twist + share * dt
    if not is_whole_turn(limits, k):
        z += pull * (F(0.5) * (limits[k, TWIST_LOWER] + limits[k, TWIST_UPPER]) - z)
    return quat_log(quat_mul(quat_conj(q), from_limit_frame(limits, k, join(x, y, z))))


@device
def way_to(limits, k, q, end):
    """Return the rotation vector from q to ``end``, or around the limits of ball k if the direct rotation leaves them.

    The vector around points to a rotation ahead on a path inside the limits, and is as long as the direct one.
    """
    way = quat_log(quat_mul(quat_conj(q), end))
    left = norm(way)
    if left <= AHEAD:
        return way
    n = math.ceil(left / AHEAD)
    for step in range(1, n):
        part = F(step) / F(n)
        if signed_excess(limits, k, quat_mul(q, quat_exp(scale(part, way)))) > OUTSIDE:
            around = way_inside(limits, k, q, end)
            return scale(left / norm(around), around)
    return way


@device
def admissible(limits, k, axes, i, q, h):
    """Return the weight of the chosen velocities, relative to the known stop's, with which a stop keeps all limits.

    It is 1, 1/2, 1/4 and so on, or 0 if only the known stop is left.
    """
    share = F(1)
    for _ in range(HALVINGS):
        if stop_inside(limits, k, axes, i, q, between(axes, i, PLAN_NEXT, share), h):
            return share
        share *= F(0.5)
    return F(0)


@device
def keep_off(limits, k, axes, i, q, end, h, found):
    """Choose velocities that keep off the limits of ball k, if they make more progress than the chosen ones.

    Args:
        limits: Limits of all variables.
        k: The variable.
        axes: The state of all axes.
        i: The first axis of the ball.
        q: Its rotation.
        end: The rotation to go to.
        h: Time of the tick.
        found: Which part of the chosen velocities keeps all limits, see ``admissible``.

    Returns:
        ``found`` for the velocities that are chosen now.
    """
    chosen = (axes[i, NEXT], axes[i + 1, NEXT], axes[i + 2, NEXT])
    way = way_inside(limits, k, q, end)
    length = norm(way)
    if length <= F(0):
        return found
    before = dot(between(axes, i, PLAN_NEXT, found), way)
    rate = stopping_speed(length, axes[i, TOP_ACCELERATION], h) / length
    for c in range(3):
        if way[c] != F(0):
            most = axes[i + c, NEXT_UPPER] if way[c] > F(0) else axes[i + c, NEXT_LOWER]
            rate = min(rate, max(most / way[c], F(0)))
    for c in range(3):
        axes[i + c, NEXT] = min(max(rate * way[c], axes[i + c, NEXT_LOWER]), axes[i + c, NEXT_UPPER])
    other = admissible(limits, k, axes, i, q, h)
    if other > F(0) and dot(between(axes, i, PLAN_NEXT, other), way) > before:
        return other
    for c in range(3):
        axes[i + c, NEXT] = chosen[c]
    return found


@device
def restrict_ball(limits, k, axes, i, q, end, h):
    """Change the velocities of ball k so that it stops inside its limits; return whether it follows the known stop.

    The velocities are moved towards those of the known stop, which stays inside. If a reset has set velocities from
    which no stop stays inside, the ball brakes as hard as it must.

    Args:
        limits: Limits of all variables.
        k: The variable.
        axes: The state of all axes.
        i: The first axis of the ball.
        q: Its rotation.
        end: The rotation to go to; q itself if it brakes.
        h: Time of the tick.
    """
    slide(limits, k, axes, i, q, h)
    share = admissible(limits, k, axes, i, q, h)
    if share < F(1) and end != q:
        share = keep_off(limits, k, axes, i, q, end, h, share)
    if share > F(0):
        w = between(axes, i, PLAN_NEXT, share)
        for c in range(3):
            axes[i + c, NEXT] = w[c]
        return False
    recovers = False
    for c in range(3):
        axes[i + c, NEXT] = axes[i + c, PLAN_NEXT]
        recovers = recovers or axes[i + c, REASON] == F(RECOVERING)
    stops = plan_of(axes[i]), plan_of(axes[i + 1]), plan_of(axes[i + 2])
    if not recovers or stays_inside(limits, k, q, stops, h, signed_excess(limits, k, q) + OUTSIDE):
        return True
    for n in range(EFFORTS):
        share = F(1) - F(n) / F(EFFORTS - 1)
        w = (share * axes[i, PLAN_NEXT], share * axes[i + 1, PLAN_NEXT], share * axes[i + 2, PLAN_NEXT])
        if n == EFFORTS - 1 or stop_inside(limits, k, axes, i, q, w, h):
            for c in range(3):
                axes[i + c, NEXT] = w[c]
                if n > 0:
                    axes[i + c, REASON] = F(EMERGENCY)
            break
    return False
