"""Penetration depth of two cylinders; a segment, the core of a capsule, is a cylinder of radius 0.

Let A have the unit axis u, the half length h and the radius r, and B have v, k and t. The extent of A - B along a unit
vector n is

    f(n) = h |n·u| + r √(1 - (n·u)²) + k |n·v| + t √(1 - (n·v)²) + n·s,

where s is the origin of A minus that of B. The depth is the minimum of f. At the minimum, n is an axis, or normal to
both axes, or normal to one of them, or both circular edges touch. The first six directions are compared directly. On
the circle normal to an axis, and on the sphere, Newton's method starts at the lowest of some samples. So curved sides
cost no more than flat ones, also for nearly coaxial cylinders, where f hardly changes around the axis.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.math.vectors import add, axpy, cross, dot, norm, perpendicular, scale, sub

SAMPLES = 16  # number of samples of a circle
STEPS = 20  # largest number of Newton steps
EXACT = F(1e-13)  # radians: a smaller step is rounding
LARGEST_STEP = F(0.5)  # longest step (radians), as a fraction of the sine between the direction and the nearer axis
NUDGE = F(0.05)  # angle (radians) between the best direction so far and further starts
STARTS = 2  # number of samples of the sphere, the lowest ones, from which a descent to both edges starts
PARALLEL = F(1e-10)  # sine of the angle between axes that count as parallel
LEVEL = F(1e-9)  # cosine below which a direction is normal to an axis
ROUND = F(1e-300)  # smallest divisor, so that divisions stay finite


@inline
def rim(a, n):
    """Return the extent of the cylinder (axis, half length, radius) along n, and its farthest point."""
    u, h, r = a
    x = dot(n, u)
    e = axpy(-x, u, n)
    across = norm(e)
    k = r / across if across > F(0) else F(0)
    return h * abs(x) + r * across, axpy(math.copysign(h, x), u, scale(k, e))


@inline
def extent(a, b, s, n):
    """Return f(n), the extent of A - B along n."""
    return rim(a, n)[0] + rim(b, n)[0] + dot(n, s)


@inline
def slope_on_circle(b, s, beta, p, q, angle, side):
    """Return the first and second derivative of f at an angle of the circle of ``lowest_on_circle``.

    ``side`` is the sign of n·v. If n is the axis of b, f has an edge, and the second derivative is returned as 0.
    """
    _, k, t = b
    sine, cosine = math.sin(angle), math.cos(angle)
    y = beta * sine
    square = F(1) - y * y
    root = math.sqrt(max(square, ROUND))
    first = beta * cosine * (side * k - t * y / root) - dot(p, s) * sine + dot(q, s) * cosine
    if not square > F(0):
        return first, F(0)
    second = (
        -beta * sine * (side * k - t * y / root)
        - t * beta * beta * cosine * cosine / (root * root * root)
        - dot(p, s) * cosine
        - dot(q, s) * sine
    )
    return first, second


@device
def lowest_on_circle(a, b, s, m):
    """Return the minimum of f over directions n normal to the axis of a, and the n of this minimum.

    n = cos(angle) m + sin(angle) q, where m is normal to both axes. The circle is cut at ±m, where f has an edge.
    """
    u, v = a[0], b[0]
    q = cross(u, m)
    beta = dot(q, v)
    width = F(2) * F(math.pi) / F(SAMPLES)
    best, where = F(math.inf), m
    for k in range(SAMPLES):
        middle = (F(k) + F(0.5)) * width  # middle of an interval; intervals end where f has an edge
        low, high = F(k) * width, F(k + 1) * width
        side = math.copysign(F(1), beta * math.sin(middle))
        first, _ = slope_on_circle(b, s, beta, m, q, low, side)
        last, _ = slope_on_circle(b, s, beta, m, q, high, side)
        if first > F(0) or last < F(0):
            continue  # no minimum inside the interval
        angle = middle
        for _ in range(3 * STEPS):
            slope, curve = slope_on_circle(b, s, beta, m, q, angle, side)
            if slope > F(0):
                high = angle
            else:
                low = angle
            new = angle - slope / curve if curve > F(0) else F(0.5) * (low + high)
            if not low <= new <= high:
                new = F(0.5) * (low + high)
            moved = abs(new - angle)
            angle = new
            if moved <= EXACT:
                break
        n = axpy(math.cos(angle), m, scale(math.sin(angle), q))
        found = extent(a, b, s, n)
        if found < best:
            best, where = found, n
    return best, where


@device
def lowest_of_edges(a, b, s, n):
    """Descend from n to where the circular edges of both touch; return the lowest f found, and its direction.

    The gradient of f is the point w of A - B along n. On the tangent plane the Hessian is
    r/α p pᵀ + t/β g gᵀ - f. Here p and g are the directions of the edges, and α and β the sines of the angles between n
    and the axes.
    """
    best, where = F(math.inf), n
    for _ in range(STEPS):
        first, second = rim(a, n), rim(b, n)
        w = add(add(first[1], second[1]), s)
        f = first[0] + second[0] + dot(n, s)  # near an axis, n·w would lose accuracy
        if not f < best:
            break
        best, where = f, n
        p, g = cross(a[0], n), cross(b[0], n)
        alpha, beta = norm(p), norm(g)
        if min(alpha, beta) <= LEVEL:
            break
        x = scale(F(1) / alpha, p)
        y = cross(n, x)
        c, d = dot(g, x) / beta, dot(g, y) / beta
        ra, rb = a[2] / alpha, b[2] / beta
        xx, xy, yy = ra + rb * c * c - f, rb * c * d, rb * d * d - f
        det = xx * yy - xy * xy
        if not (det > F(0) and xx > F(0)):  # not convex: take a damped step downhill
            xx, yy = xx + F(1.5) * abs(f), yy + F(1.5) * abs(f)
            det = xx * yy - xy * xy
        i, j = dot(w, x), dot(w, y)
        di, dj = (xy * j - yy * i) / det, (xy * i - xx * j) / det
        size = math.hypot(di, dj)
        k = min(F(1), LARGEST_STEP * min(alpha, beta) / size) if size > F(0) else F(1)
        n = axpy(k * di, x, axpy(k * dj, y, n))
        n = scale(F(1) / norm(n), n)
        if size <= EXACT:
            break
    return best, where


@inline
def lower(a, b, s, n, best, where):
    """Return the lowest of f(n), f(-n) and the best f so far, and its direction."""
    along = dot(n, s)
    same = rim(a, n)[0] + rim(b, n)[0] - abs(along)
    return (same, scale(-math.copysign(F(1), along), n)) if same < best else (best, where)


@device
def lowest_between(a, b, s, m, best, where):
    """Return the lower of the best f so far and the minimum where both edges touch, and its direction."""
    u = a[0]
    v = cross(m, u)
    for k in range(4):  # start between the axes, however near they are, and on both sides of the best direction
        n = scale(F(2 * k - 1), b[0]) if k < 2 else where
        n = add(n, u) if k < 2 else axpy(NUDGE * F(2 * k - 5), m, n)
        n = scale(-math.copysign(F(1) / max(norm(n), ROUND), dot(n, s)) if k < 2 else F(1) / norm(n), n)
        found, n = lowest_of_edges(a, b, s, n)
        if found < best:
            best, where = found, n
    done = -F(math.inf)
    for _ in range(STARTS):
        low, start = F(math.inf), m
        for k in range(24):  # samples: all signs along three orthogonal directions, with one of them weighted more
            most = k >> 3
            n = scale(F(1 - 2 * (k & 1)) * (F(2) if most == 0 else F(0.7)), u)
            n = axpy(F(1 - (k & 2)) * (F(2) if most == 1 else F(0.7)), v, n)
            n = axpy(F(1 - ((k & 4) >> 1)) * (F(2) if most == 2 else F(0.7)), m, n)
            n = scale(F(1) / norm(n), n)
            found = extent(a, b, s, n)
            if done < found < low:
                low, start = found, n
        found, n = lowest_of_edges(a, b, s, start)
        if found < best:
            best, where = found, n
        done = low
    return best, where


@device
def point_of_first(a, b, s, n, depth):
    """Return the deepest point of A: a farthest point along n that has a point of B behind it, along n."""
    u, h, r = a
    v, k, _ = b
    pa, pb = rim(a, n)[1], rim(b, n)[1]
    x, y = dot(n, u), dot(n, v)
    if norm(axpy(-x, u, n)) <= LEVEL:  # an end face of A
        p = sub(scale(depth, n), add(pb, s))
        if abs(y) <= LEVEL:  # a line of B is deepest: use the point of the line nearest to the axis of A
            now = dot(pb, v)
            p = axpy(now - min(max(now + dot(p, v), -k), k), v, p)
        across = axpy(-dot(p, u), u, p)
        size = norm(across)
        return axpy(math.copysign(h, x), u, scale(min(F(1), r / size) if size > F(0) else F(0), across))
    if abs(x) <= LEVEL:  # a line of A is deepest
        rest = sub(scale(depth, n), add(add(pa, pb), s))
        way = cross(n, v) if abs(y) <= LEVEL else u  # a line of B is deepest too: use the crossing of both lines
        along = dot(way, u)
        move = dot(way, rest) / along if abs(along) > F(0) else F(0)
        now = dot(pa, u)
        return axpy(min(max(now + move, -h), h) - now, u, pa)
    return pa


@device
def depth_of_cylinders(a, b, s):
    """Return the depth of two cylinders, the unit vector along which A leaves B, and the deepest point of A.

    Args:
        a: Unit axis, half length and radius of A.
        b: Unit axis, half length and radius of B.
        s: Origin of A minus that of B. If the axes are parallel, A - B must still have a volume.

    Returns:
        Depth, direction, and the point relative to the origin of A.
    """
    u, v = a[0], b[0]
    m = cross(u, v)
    sine = norm(m)
    m = scale(F(1) / sine, m) if sine > PARALLEL else perpendicular(u)
    best, where = lower(a, b, s, u, F(math.inf), m)
    best, where = lower(a, b, s, v, best, where)
    best, where = lower(a, b, s, m, best, where)
    found, n = lowest_on_circle(a, b, s, m)
    if found < best:
        best, where = found, n
    found, n = lowest_on_circle(b, a, s, m)
    if found < best:
        best, where = found, n
    if min(a[2], b[2]) > F(0):
        best, where = lowest_between(a, b, s, m, best, where)
    return best, scale(F(-1), where), point_of_first(a, b, s, where, best)
