"""Distance between the cores of two separate shapes: the algorithm of Gilbert, Johnson and Keerthi.

The distance between A and B is that of the origin from A - B, the set of all a - b. In each step, a simplex of points
of A - B comes nearer to the origin. Let v be its point nearest to the origin. The next simplex has the corners of the
part with v, and the point w of A - B that is farthest along -v. Then v·w / |v| is a lower bound of the distance, and
|v| is an upper bound.

The nearest point of a simplex is that of one of its parts. Of all parts with the newest point, the nearest is used.
Each candidate is a point of the simplex, so rounding makes it no nearer than the sets are.

References:
    E. Gilbert, D. Johnson, S. Keerthi, "A fast procedure for computing the distance between complex objects in
    three-dimensional space", IEEE Journal of Robotics and Automation, 1988.
    G. van den Bergen, "A fast and robust GJK implementation for collision detection of convex objects", 1999.
"""

import math

from synovia.kernels.collision.support import difference
from synovia.kernels.compiler.jit import F, device
from synovia.kernels.layout import CORNER, CORNER_FIRST
from synovia.kernels.math.vectors import axpy, cross, dot, load, norm, scale, store, sub

STEPS = 200  # largest number of steps, far more than pairs need
EXACT = F(1e-15)  # fraction of distance plus size: bounds of the distance that differ by less are equal
TOUCHING = F(1e-11)  # fraction of the size: nearer shapes count as overlapping, so that faces give the normal
FLAT = F(1e-28)  # squared sine of the smallest angle of a triangle with an area


@device
def face(w, e, f):
    """Return the weights of w + e and w + f for the point of a triangle's plane nearest to the origin; w is a corner.

    The first weight is negative if that point is outside the triangle, or if the triangle has no area.
    """
    n = cross(e, f)
    area2 = dot(n, n)
    if area2 <= FLAT * dot(e, e) * dot(f, f):
        return F(-1), F(0)
    x = -dot(cross(w, f), n) / area2
    y = -dot(cross(e, w), n) / area2
    if x <= F(0) or y <= F(0) or x + y >= F(1):
        return F(-1), F(0)
    return x, y


@device
def nearest_part(corners, n):
    """Reduce a simplex of n corners to its part nearest to the origin, with the newest corner.

    Returns:
        The number of corners, 4 if the origin is inside; the nearest point; and the matching point of the first shape.
    """
    last = n - 1
    w, a = load(corners, last, CORNER), load(corners, last, CORNER_FIRST)
    best, least = w, dot(w, w)
    s, t, x, y = -1, -1, F(0), F(0)
    for i in range(last):
        e = sub(load(corners, i, CORNER), w)
        size = dot(e, e)
        k = -dot(w, e) / size if size > F(0) else F(-1)
        if k > F(0):
            p = axpy(min(k, F(1)), e, w)
            if dot(p, p) < least:
                best, least, s, t, x, y = p, dot(p, p), i, -1, min(k, F(1)), F(0)
    for i in range(last):
        e = sub(load(corners, i, CORNER), w)
        for j in range(i + 1, last):
            f = sub(load(corners, j, CORNER), w)
            k, m = face(w, e, f)
            if k > F(0):
                p = axpy(k, e, axpy(m, f, w))
                if dot(p, p) < least:
                    best, least, s, t, x, y = p, dot(p, p), i, j, k, m
    if last == 3:
        e, f, g = (
            sub(load(corners, 0, CORNER), w),
            sub(load(corners, 1, CORNER), w),
            sub(load(corners, 2, CORNER), w),
        )
        n1 = cross(f, g)
        volume = dot(e, n1)
        if abs(volume) > F(1e-14) * math.sqrt(dot(e, e) * dot(f, f) * dot(g, g)):
            k = -dot(w, n1) / volume
            m = -dot(e, cross(w, g)) / volume
            r = -dot(e, cross(f, w)) / volume
            if k >= F(0) and m >= F(0) and r >= F(0) and k + m + r <= F(1):
                return 4, best, a
    p = a
    if s >= 0:
        p = axpy(x, sub(load(corners, s, CORNER_FIRST), a), p)
    if t >= 0:
        p = axpy(y, sub(load(corners, t, CORNER_FIRST), a), p)
    ws, a_s, wt, a_t = w, a, w, a
    if s >= 0:
        ws, a_s = load(corners, s, CORNER), load(corners, s, CORNER_FIRST)
    if t >= 0:
        wt, a_t = load(corners, t, CORNER), load(corners, t, CORNER_FIRST)
    store(corners, 0, CORNER, w)
    store(corners, 0, CORNER_FIRST, a)
    store(corners, 1, CORNER, ws)
    store(corners, 1, CORNER_FIRST, a_s)
    store(corners, 2, CORNER, wt)
    store(corners, 2, CORNER_FIRST, a_t)
    return 1 + (s >= 0) + (t >= 0), best, p


@device
def apart(solids, i, j, c, enough, corners):
    """Return whether the cores of two shapes are separate, the shortest vector from B to A, and its end.

    Args:
        solids: The tables of all shapes, and of the points of hulls.
        i: Row of the first shape A.
        j: Row of the second one B.
        c: Origin of B minus that of A.
        enough: The search ends once the distance is known to be larger than this; the vector may then be too long.
        corners: Scratch memory for the simplex.

    Returns:
        Whether they are separate; the vector v; the point of A at its end, relative to the origin of A; steps taken.
    """
    v = (-c[0], -c[1], -c[2])
    if dot(v, v) == F(0):
        v = (F(1), F(0), F(0))
    w, a = difference(solids, i, j, c, (-v[0], -v[1], -v[2]))
    store(corners, 0, CORNER, w)
    store(corners, 0, CORNER_FIRST, a)
    if dot(v, w) > enough * norm(v):  # the lower bound along the line of the origins already exceeds ``enough``
        return True, w, a, 1
    v, p, n = w, a, 1
    size2 = dot(w, w)
    for k in range(STEPS):
        vv = dot(v, v)
        if vv <= TOUCHING * TOUCHING * size2:
            return False, v, p, k + 1
        d = scale(F(-1) / math.sqrt(vv), v)
        w, a = difference(solids, i, j, c, d)
        size2 = max(size2, dot(w, w))
        low = -dot(d, w)  # lower bound of the distance
        gap = math.sqrt(vv) - low
        if low > enough or gap <= EXACT * (math.sqrt(vv) + math.sqrt(size2)):
            break
        store(corners, n, CORNER, w)
        store(corners, n, CORNER_FIRST, a)
        n, next_v, next_p = nearest_part(corners, n + 1)
        if n == 4:
            return False, v, p, k + 2
        if dot(next_v, next_v) >= vv:
            break  # no part is nearer: rounding
        v, p = next_v, next_p
    return dot(v, v) > TOUCHING * TOUCHING * size2, v, p, k + 2
