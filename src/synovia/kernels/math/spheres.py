"""A joint between two neighbours that stand where they are: the circle in which two spheres meet.

Aristidou & Lasenby (2011, section 4) put such a joint there at once, with conformal geometric algebra; two spheres meet
in a circle about the line of their centres, which takes a square root.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.math.rotations import apply, apply_t, quat_apply, quat_between
from synovia.kernels.math.vectors import axpy, dot, norm, normalize, perpendicular, scale, sub

ON_AXIS = F(1e-9)  # of a radius: nearer to the axis a point says nothing about the side
CONCENTRIC = F(1e-12)  # of a radius


@inline
def reject(v, u):
    """Return the part of v normal to the unit vector u."""
    return axpy(-dot(v, u), u, v)


@device
def nearest_on_circle(a, ra, b, rb, p, side):
    """Return the point at distance ra from a and rb from b that is nearest to p.

    Spheres that do not meet, or only touch, leave the point of the first that is nearest to the second. A point p on
    the axis does not choose: then ``side`` does, a direction, and without one of its own any, always the same.
    """
    d = sub(b, a)
    away = norm(d)
    if away <= CONCENTRIC * (ra + rb):
        v = sub(p, a)
        size = norm(v)
        v = normalize(v if size > ON_AXIS * ra else side, (F(1), F(0), F(0)))
        return axpy(ra, v, a)
    u = scale(F(1) / away, d)
    x = F(0.5) * (away + (ra - rb) * (ra + rb) / away)
    h2 = (ra - x) * (ra + x)
    if h2 <= F(0):
        return axpy(ra if x > F(0) else -ra, u, a)
    centre = axpy(x, u, a)
    v = reject(sub(p, centre), u)
    size = norm(v)
    if size <= ON_AXIS * ra:
        v = reject(side, u)
        size = norm(v)
        if size <= ON_AXIS * norm(side):
            v, size = perpendicular(u), F(1)
    return axpy(math.sqrt(h2) / size, v, centre)


@device
def bend_at_rest(R, base, along, here, there):
    """Return the side to which the joint between two bones bends at rest, carried over to where their ends are now.

    Args:
        R: World rotation of the frame in which the vectors at rest are given, so that the answer turns with it.
        base: Vector of the first bone at rest.
        along: Vector of both bones at rest. Where they lie straight the side is any, always the same.
        here: Where the first bone starts, in the world.
        there: Where the second ends.
    """
    size2 = dot(along, along)
    bend = axpy(-dot(base, along) / size2, along, base) if size2 > F(0) else base
    if norm(bend) <= ON_AXIS * norm(base):
        bend = perpendicular(base)
    return apply(R, quat_apply(quat_between(along, apply_t(R, sub(there, here))), bend))
