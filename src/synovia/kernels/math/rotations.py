"""Rotations: matrices as tuples of nine (row-major), unit quaternions as tuples of four (x, y, z, w).

A frame in an array is a row of twelve values: nine of the matrix, then three of the origin.
"""

import math

from synovia.kernels.compiler.jit import F, inline
from synovia.kernels.layout import ORIENTATION, ORIGIN
from synovia.kernels.math.trigonometry import PI, arcsine, sincos
from synovia.kernels.math.vectors import add, cross, dot, load, perpendicular, scale, store

SMALL = F(1e-4)  # radians: for smaller angles, series replace quotients; their error, about SMALL^4, is negligible
OPPOSITE = F(1e-16)  # squared sine below which directions are opposite: the rounding of a cross product


@inline
def identity():
    """Return the unit matrix."""
    return F(1), F(0), F(0), F(0), F(1), F(0), F(0), F(0), F(1)


@inline
def matmul(A, B):
    """Return the matrix product A B."""
    return (
        A[0] * B[0] + A[1] * B[3] + A[2] * B[6],
        A[0] * B[1] + A[1] * B[4] + A[2] * B[7],
        A[0] * B[2] + A[1] * B[5] + A[2] * B[8],
        A[3] * B[0] + A[4] * B[3] + A[5] * B[6],
        A[3] * B[1] + A[4] * B[4] + A[5] * B[7],
        A[3] * B[2] + A[4] * B[5] + A[5] * B[8],
        A[6] * B[0] + A[7] * B[3] + A[8] * B[6],
        A[6] * B[1] + A[7] * B[4] + A[8] * B[7],
        A[6] * B[2] + A[7] * B[5] + A[8] * B[8],
    )


@inline
def transposed(A):
    """Return Aᵀ."""
    return A[0], A[3], A[6], A[1], A[4], A[7], A[2], A[5], A[8]


@inline
def matmul_t(A, B):
    """Return A Bᵀ."""
    return matmul(A, transposed(B))


@inline
def apply(A, v):
    """Return A v."""
    return (
        A[0] * v[0] + A[1] * v[1] + A[2] * v[2],
        A[3] * v[0] + A[4] * v[1] + A[5] * v[2],
        A[6] * v[0] + A[7] * v[1] + A[8] * v[2],
    )


@inline
def apply_t(A, v):
    """Return Aᵀ v."""
    return apply(transposed(A), v)


@inline
def column(A, k):
    """Return column k of A; column 2 of a hinge's world frame is its axis."""
    if k == 0:
        return A[0], A[3], A[6]
    if k == 1:
        return A[1], A[4], A[7]
    return A[2], A[5], A[8]


@inline
def turn_z(A, s, c):
    """Return A Rz for a turn about the local z axis with sine s and cosine c."""
    return (
        c * A[0] + s * A[1],
        c * A[1] - s * A[0],
        A[2],
        c * A[3] + s * A[4],
        c * A[4] - s * A[3],
        A[5],
        c * A[6] + s * A[7],
        c * A[7] - s * A[6],
        A[8],
    )


@inline
def load_rotation(a, i, k):
    """Return the matrix at elements k to k+8 of row i."""
    return (
        a[i, k],
        a[i, k + 1],
        a[i, k + 2],
        a[i, k + 3],
        a[i, k + 4],
        a[i, k + 5],
        a[i, k + 6],
        a[i, k + 7],
        a[i, k + 8],
    )


@inline
def store_rotation(a, i, k, A):
    """Write a matrix to elements k to k+8 of row i."""
    a[i, k], a[i, k + 1], a[i, k + 2] = A[0], A[1], A[2]
    a[i, k + 3], a[i, k + 4], a[i, k + 5] = A[3], A[4], A[5]
    a[i, k + 6], a[i, k + 7], a[i, k + 8] = A[6], A[7], A[8]


@inline
def rotation_of(frames, i):
    """Return the rotation of frame i."""
    return load_rotation(frames, i, ORIENTATION)


@inline
def origin_of(frames, i):
    """Return the origin of frame i."""
    return load(frames, i, ORIGIN)


@inline
def frame_of(frames, i):
    """Return the rotation and the origin of frame i."""
    return load_rotation(frames, i, ORIENTATION), load(frames, i, ORIGIN)


@inline
def store_frame(frames, i, R, p):
    """Write the rotation and the origin of frame i."""
    store_rotation(frames, i, ORIENTATION, R)
    store(frames, i, ORIGIN, p)


@inline
def log_rotation(E):
    """Return the rotation vector (axis times angle in [0, pi]) of the matrix E, accurate up to half a turn."""
    v = (F(0.5) * (E[7] - E[5]), F(0.5) * (E[2] - E[6]), F(0.5) * (E[3] - E[1]))  # the axis times sin(angle)
    c = F(0.5) * (E[0] + E[4] + E[8] - F(1))
    if c >= F(0):
        cos2 = F(0.5) * (F(1) + c)  # cos² of half the angle
        a, b = arcsine(F(1) - cos2)
        return scale(a / (b * math.sqrt(cos2)), v)
    s = math.sqrt(dot(v, v))
    if s > SMALL:
        return scale(math.atan2(s, c) / s, v)
    # near half a turn: take the axis from (E + Eᵀ) / 2 - cos(angle) = (1 - cos(angle)) axis axisᵀ, its longest column
    x, y, z = E[0] - c, E[4] - c, E[8] - c
    if x >= y and x >= z:
        u = (x, F(0.5) * (E[1] + E[3]), F(0.5) * (E[2] + E[6]))
    elif y >= z:
        u = (F(0.5) * (E[1] + E[3]), y, F(0.5) * (E[5] + E[7]))
    else:
        u = (F(0.5) * (E[2] + E[6]), F(0.5) * (E[5] + E[7]), z)
    sign = F(1) if dot(u, v) >= F(0) else F(-1)
    return scale(sign * (PI - s) / math.sqrt(dot(u, u)), u)


@inline
def angle_of(E):
    """Return the angle of the matrix E, in [0, pi]."""
    v = (F(0.5) * (E[7] - E[5]), F(0.5) * (E[2] - E[6]), F(0.5) * (E[3] - E[1]))
    return math.atan2(math.sqrt(dot(v, v)), F(0.5) * (E[0] + E[4] + E[8] - F(1)))


@inline
def quat_mul(a, b):
    """Return the quaternion product a b: first b, then a."""
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@inline
def quat_conj(a):
    """Return the inverse of a unit quaternion."""
    return -a[0], -a[1], -a[2], a[3]


@inline
def quat_normalize(a):
    """Return a / |a|."""
    k = F(1) / math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3])
    return k * a[0], k * a[1], k * a[2], k * a[3]


@inline
def quat_apply(a, v):
    """Return v rotated by the unit quaternion a."""
    u = (a[0], a[1], a[2])
    t = cross(u, v)
    t = add(t, t)
    return add(add(v, scale(a[3], t)), cross(u, t))


@inline
def quat_matrix(a):
    """Return the matrix of a unit quaternion."""
    x, y, z, w = a
    return (
        F(1) - F(2) * (y * y + z * z),
        F(2) * (x * y - w * z),
        F(2) * (x * z + w * y),
        F(2) * (x * y + w * z),
        F(1) - F(2) * (x * x + z * z),
        F(2) * (y * z - w * x),
        F(2) * (x * z - w * y),
        F(2) * (y * z + w * x),
        F(1) - F(2) * (x * x + y * y),
    )


@inline
def matrix_quat(A):
    """Return the unit quaternion of a rotation matrix, with w >= 0 (Shepperd's method: the largest part first)."""
    t = A[0] + A[4] + A[8]
    if t >= A[0] and t >= A[4] and t >= A[8]:
        q = (A[7] - A[5], A[2] - A[6], A[3] - A[1], F(1) + t)
    elif A[0] >= A[4] and A[0] >= A[8]:
        q = (F(1) + A[0] - A[4] - A[8], A[1] + A[3], A[2] + A[6], A[7] - A[5])
    elif A[4] >= A[8]:
        q = (A[1] + A[3], F(1) - A[0] + A[4] - A[8], A[5] + A[7], A[2] - A[6])
    else:
        q = (A[2] + A[6], A[5] + A[7], F(1) - A[0] - A[4] + A[8], A[3] - A[1])
    q = quat_normalize(q)
    sign = F(1) if q[3] >= F(0) else F(-1)
    return sign * q[0], sign * q[1], sign * q[2], sign * q[3]


@inline
def quat_exp(v):
    """Return the unit quaternion of the rotation vector v."""
    angle2 = dot(v, v)
    if angle2 < SMALL * SMALL:
        k = F(0.5) - angle2 / F(48)
        return quat_normalize((k * v[0], k * v[1], k * v[2], F(1) - angle2 / F(8)))
    angle = math.sqrt(angle2)
    s, c = sincos(F(0.5) * angle)
    k = s / angle
    return k * v[0], k * v[1], k * v[2], c


@inline
def quat_log(a):
    """Return the rotation vector of a unit quaternion, of at most half a turn."""
    v = (a[0], a[1], a[2])
    s = math.sqrt(dot(v, v))
    w = a[3]
    if w < F(0):
        v, w = scale(F(-1), v), -w
    return scale(F(2) * math.atan2(s, w) / s if s > SMALL * SMALL else F(2), v)


@inline
def quat_between(a, b):
    """Return the smallest rotation from direction a to direction b (of any lengths).

    Opposite directions rotate about a fixed perpendicular of a. A zero vector gives the identity.
    """
    length2 = dot(a, a) * dot(b, b)
    if not length2 > F(0):
        return F(0), F(0), F(0), F(1)
    length = math.sqrt(length2)
    c = dot(a, b)
    v = cross(a, b)
    if c >= F(0):
        return quat_normalize((v[0], v[1], v[2], length + c))
    v2 = dot(v, v)
    if v2 < OPPOSITE * length2:
        u = perpendicular(a)
        return u[0], u[1], u[2], F(0)
    return quat_normalize((v[0], v[1], v[2], v2 / (length - c)))  # length + c without cancellation


@inline
def load_quat(a, k):
    """Return the quaternion at elements k to k+3 of a vector."""
    return a[k], a[k + 1], a[k + 2], a[k + 3]


@inline
def store_quat(a, k, q):
    """Write a quaternion to elements k to k+3 of a vector."""
    a[k] = q[0]
    a[k + 1] = q[1]
    a[k + 2] = q[2]
    a[k + 3] = q[3]
