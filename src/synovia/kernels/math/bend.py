"""The bend plane of a limb r, m, t (shoulder, elbow, wrist), and its angle to a pole about the line r-t.

Let a be the unit vector along the line, and u and v the parts of m - r and pole - r normal to it. The angle leads from
u to v about a. When the points move, u rotates by b·(δm - (1-s) δr - s δt) / |u|, where b = a × u / |u| and s is the
foot of m on the line, as a fraction of its length (Blondel & Karplus 1996, derivatives of a dihedral angle). The same
holds for v.
"""

import math
from typing import NamedTuple

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.math.vectors import TINY, axpy, cross, dot, norm, scale, sub

FLAT = F(1e-3)  # fraction of the length r-m-t: a point nearer to the line does not define the plane


class Bend(NamedTuple):
    """The angle to the pole (radians), its fade (0 on the line, 1 far from it), and its derivatives by r, m and t."""

    angle: float
    fade: float
    at_root: tuple[float, float, float]
    at_middle: tuple[float, float, float]
    at_tip: tuple[float, float, float]


@inline
def smoothstep(x):
    """Return the cubic step of x: 0 at 0, 1 from 1 on."""
    x = min(x, F(1))
    return x * x * (F(3) - F(2) * x)


@device
def bend_of(r, m, t, pole):
    """Return the ``Bend`` of three points towards a pole; all zeros where a plane is undefined."""
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
    fade = smoothstep(size_u / thin) * smoothstep(size_v / thin)
    du = scale(F(1) / (size_u * size_u), cross(a, u))
    dv = scale(F(1) / (size_v * size_v), cross(a, v))
    su, sv = along_u / length, along_v / length
    at_root = axpy(F(1) - sv, dv, scale(su - F(1), du))
    at_tip = axpy(sv, dv, scale(-su, du))
    return Bend(angle, fade, at_root, du, at_tip)
