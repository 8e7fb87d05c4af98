"""Stops of one axis: from velocity u and acceleration a to rest, as fast as its limits allow.

A stop has three parts: the jerk j for the time t1, then none for t2, then -j for t3. Let s = ±1 be the direction in
which the axis would drift on if its acceleration went to zero now, the sign of u + a|a| / (2 J). Then j = -s J, and the
acceleration falls to -s p with p² = J |u| + a² / 2 or p = A, whichever is less. Without a limit of the jerk the axis
brakes with -s A from the first moment on.

References:
    Berscheid & Kröger (2021), *Jerk-limited real-time trajectory generation with arbitrary target states*.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline

NO_LIMIT = F(1e30)  # limits of the jerk from this value on mean no limit


@device
def stop_profile(u, a, A, J):
    """Return the stop from velocity u and acceleration a: (u, a, j, t1, t2, t3); without a limit of J, a is ignored."""
    if J >= NO_LIMIT:
        return u, (-A if u > F(0) else A), F(0), F(0), abs(u) / A, F(0)
    s = F(1) if u + a * abs(a) / (F(2) * J) >= F(0) else F(-1)
    u1, a1 = s * u, s * a
    p2 = J * u1 + F(0.5) * a1 * a1
    p = math.sqrt(max(p2, F(0)))
    t2 = F(0)
    if a1 < F(0):
        p = max(p, -a1)
    top = max(A, -a1)  # an acceleration beyond the limit remains until the last part of the stop
    if p > top:
        p = top
        t2 = max((u1 + (F(0.5) * a1 * a1 - p * p) / J) / p, F(0))
    return u, a, -s * J, (a1 + p) / J, t2, p / J


@device
def travelled(profile, t):
    """Return the displacement of an axis after the time t of a stop."""
    u, a, j, t1, t2, t3 = profile
    d = min(t, t1)
    x = d * (u + d * (F(0.5) * a + d * j / F(6)))
    if t <= t1:
        return x
    u, a = u + d * (a + F(0.5) * d * j), a + d * j
    d = min(t - t1, t2)
    x += d * (u + F(0.5) * d * a)
    u += d * a
    if t <= t1 + t2:
        return x
    d = min(t - t1 - t2, t3)
    return x + d * (u + d * (F(0.5) * a - d * j / F(6)))


@inline
def duration(profile):
    """Return the time that a stop takes."""
    return profile[3] + profile[4] + profile[5]


@device
def extremes(profile):
    """Return the end of a stop, its lowest and highest position, and its lowest and highest velocity.

    Positions are relative to the start of the stop.
    """
    u, a, j, t1, t2, t3 = profile
    end = travelled(profile, t1 + t2 + t3)
    slowest, fastest = min(u, F(0)), max(u, F(0))
    back = F(0)
    if j != F(0):
        # the velocity has its extreme where the acceleration is zero; only then may it have begun on the wrong side
        if a * j < F(0):
            peak = u - F(0.5) * a * a / j
            slowest, fastest = min(slowest, peak), max(fastest, peak)
            if u * peak < F(0):
                root = math.sqrt(max(a * a - F(2) * j * u, F(0)))
                t = -F(2) * u / (a + (root if a > F(0) else -root))
                back = t * (u + t * (F(0.5) * a + t * j / F(6)))
    return end, min(back, end, F(0)), max(back, end, F(0)), slowest, fastest


@device
def rest_of(profile, t):
    """Return what is left of a stop after the time t."""
    u, a, j, t1, t2, t3 = profile
    d = min(t, t1)
    u, a, t1, t = u + d * (a + F(0.5) * d * j), a + d * j, t1 - d, t - d
    d = min(t, t2)
    u, t2, t = u + d * a, t2 - d, t - d
    d = min(t, t3)
    u, a, t3 = u + d * (a - F(0.5) * d * j), a - d * j, t3 - d
    if t1 + t2 + t3 <= F(0):
        u, a = F(0), F(0)
    return u, a, j, t1, t2, t3


@device
def motion_at(profile, t):
    """Return the velocity, the acceleration and the jerk of a stop at a time."""
    u, a, j, t1, t2, t3 = rest_of(profile, t)
    return u, a, (j if t1 > F(0) else F(0) if t2 > F(0) or t3 <= F(0) else -j)


@device
def sync_time(v, a, A, J, h):
    """Return the time in which an axis can come to rest, if all come to rest in the same time.

    Without a limit of the jerk, velocities fall evenly: v is the mean of the tick before, of time h. With one, they are
    cubic polynomials of the time, from a velocity v and an acceleration a to rest; their largest jerk is at most
    6 |v| / T² + 4 |a| / T, and their largest acceleration about 1.5 |v| / T.
    """
    if J >= NO_LIMIT:
        return max(abs(v) / A - F(0.5) * h, F(0))
    b = F(2) * abs(a)
    return max((b + math.sqrt(b * b + F(6) * J * abs(v))) / J, F(1.5) * abs(v) / A)
