"""Place a joint between two fixed neighbours: on the circle in which two spheres intersect.

Aristidou & Lasenby (2011, section 4) use conformal geometric algebra. Here one square root gives the circle about the
line of the two centres.
"""

import math

from synovia.kernels.compiler.jit import F, device
from synovia.kernels.math.rotations import apply, apply_t, quat_apply, quat_between
from synovia.kernels.math.vectors import axpy, dot, norm, normalize, perpendicular, reject, scale, sub

ON_AXIS = F(1e-9)  # fraction of a radius: a point nearer to the axis does not define a side
CONCENTRIC = F(1e-12)  # fraction of a radius: spheres with nearer centres are concentric


@device
def nearest_on_circle(a, ra, b, rb, p, side):
    """Return the point at distance ra from a and rb from b that is nearest to p.

    If the spheres about a and b do not intersect or only touch, return the point of the first sphere that is nearest to
    the second. If p is on the line of the centres, use the direction ``side`` instead; if ``side`` is also along this
    line, use a fixed perpendicular.
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
    """Return the direction in which the joint between two bones bends at rest, rotated to the present bone ends.

    Args:
        R: World rotation of the frame of the vectors at rest.
        base: Vector of the first bone at rest.
        along: Vector of both bones at rest. If they are in line, the side is a fixed perpendicular.
        here: Start of the first bone, in the world.
        there: End of the second bone, in the world.
    """
    size2 = dot(along, along)
    bend = axpy(-dot(base, along) / size2, along, base) if size2 > F(0) else base
    if norm(bend) <= ON_AXIS * norm(base):
        bend = perpendicular(base)
    return apply(R, quat_apply(quat_between(along, apply_t(R, sub(there, here))), bend))
