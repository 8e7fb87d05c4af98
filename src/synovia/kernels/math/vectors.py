"""Vectors with three components as tuples, which the compiler keeps in registers."""

import math

from synovia.kernels.compiler.jit import F, inline

TINY = F(1e-30)  # squared length below which a vector has no direction


@inline
def add(a, b):
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inline
def sub(a, b):
    """Return a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inline
def scale(k, a):
    """Return k a."""
    return k * a[0], k * a[1], k * a[2]


@inline
def axpy(k, a, b):
    """Return k a + b."""
    return k * a[0] + b[0], k * a[1] + b[1], k * a[2] + b[2]


@inline
def dot(a, b):
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline
def cross(a, b):
    """Return a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inline
def norm(a):
    """Return the length of a."""
    return math.sqrt(dot(a, a))


@inline
def reject(a, u):
    """Return a - (a·u) u, the part of ``a`` that is normal to the unit vector u."""
    return axpy(-dot(a, u), u, a)


@inline
def normalize(a, fallback):
    """Return a / |a|, or ``fallback`` where a has no direction."""
    length2 = dot(a, a)
    if length2 < TINY:
        return fallback
    return scale(F(1) / math.sqrt(length2), a)


@inline
def perpendicular(a):
    """Return a fixed unit vector normal to a: its cross product with the axis of its smallest component."""
    x, y, z = abs(a[0]), abs(a[1]), abs(a[2])
    if x <= y and x <= z:
        u = (F(0), a[2], -a[1])
    elif y <= z:
        u = (-a[2], F(0), a[0])
    else:
        u = (a[1], -a[0], F(0))
    return normalize(u, (F(1), F(0), F(0)))


@inline
def load(a, i, k):
    """Return elements k, k+1, k+2 of row i of array a."""
    return a[i, k], a[i, k + 1], a[i, k + 2]


@inline
def store(a, i, k, v):
    """Write v to elements k, k+1, k+2 of row i of array a."""
    a[i, k] = v[0]
    a[i, k + 1] = v[1]
    a[i, k + 2] = v[2]
