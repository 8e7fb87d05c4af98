"""The bend plane of three points r, m, t (shoulder, elbow, wrist) and the angle from it to a pole, about the line r-t.

With a along the line, the parts of m - r and of the pole - r across it are u and v, and the angle is that from u to v
about a. When the points move, u turns by b·(δm - (1-s) δr - s δt) / |u|, where b = a × u / |u| and s is the foot of m
on the line as a part of its length (Blondel & Karplus 1996, derivatives of a dihedral angle); v likewise.
"""

import math
from typing import NamedTuple

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.math.vectors import TINY, axpy, cross, dot, norm, scale, sub

FLAT = F(1e-3)  # of the length r-m-t: where m or the pole is nearer to the line, the plane loses its direction


class Bend(NamedTuple):
    """An angle, how much it means (0 on the line, 1 away from it), and its derivatives by the motion of r, m and t."""

    angle: float
    share: float
    at_root: tuple[float, float, float]
    at_middle: tuple[float, float, float]
    at_tip: tuple[float, float, float]


@inline
def fade(x):
    """Return 0 at 0, 1 from 1 on, smooth between."""
    x = min(x, F(1))
    return x * x * (F(3) - F(2) * x)


@device
def bend_of(r, m, t, pole):
    """Return the ``Bend`` of three points towards a pole; nothing is asked where a plane has no direction."""
    none = (F(0), F(0), F(0))
    line = sub(t, r)
    length = norm(line)
    thin = FLAT * (norm(sub(m, r)) + norm(sub(t, m)))
    if not length > thin:
        return Bend(F(0), F(0), none, none, none)
    a = scale(F(1) / length, line)
    u, v = sub(m, r), sub(pole, r)
    along_u, along_v = dot(a, u), dot(a, v)
    u, v = axpy(-along_u, a, u), axpy(-along_v, a, v)
    size_u, size_v = norm(u), norm(v)
    if not (size_u * size_u > TINY and size_v * size_v > TINY):
        return Bend(F(0), F(0), none, none, none)
    angle = math.atan2(dot(a, cross(u, v)), dot(u, v))
    share = fade(size_u / thin) * fade(size_v / thin)
    du = scale(F(1) / (size_u * size_u), cross(a, u))
    dv = scale(F(1) / (size_v * size_v), cross(a, v))
    su, sv = along_u / length, along_v / length
    at_root = axpy(F(1) - sv, dv, scale(su - F(1), du))
    at_tip = axpy(sv, dv, scale(-su, du))
    return Bend(angle, share, at_root, du, at_tip)
