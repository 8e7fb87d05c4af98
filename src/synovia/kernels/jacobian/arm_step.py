"""The formulas of a Levenberg-Marquardt step of an arm, for one problem and for SIMD batches.

``arm`` applies them to one arm, in registers, and ``simd.arm_step`` to a batch of thirty-two arms. They take and return
scalars and tuples of one type K, and select instead of branching, so that a loop over a batch becomes vector
instructions. Constants have the type K, so that single precision stays single.
"""

from synovia.kernels.compiler.jit import inline
from synovia.kernels.math.rotations import apply, matmul
from synovia.kernels.math.vectors import add, axpy, cross, scale, sub


@inline
def carried(R, p, G, g):
    """Return the world frame of a body from its frame (G, g) in a parent with the world frame (R, p)."""
    return matmul(R, G), add(p, apply(R, g))


@inline
def joint_frame(R, p, G, g, shift):
    """Return a joint's world frame from its parent's (R, p), its frame in the parent (G, g) and its shift along z.

    The rotation of a hinge is either part of G or applied to the result, whichever is faster for the caller.
    """
    R, p = carried(R, p, G, g)
    return R, axpy(shift, (R[2], R[5], R[8]), p)


@inline
def hinge_column(z, pivot, p, wp, wr):
    """Return a hinge's column of the weighted Jacobian of a goal at p: z × (p - pivot), z."""
    return scale(wp, cross(z, sub(p, pivot))), scale(wr, z)


@inline
def free_column(K, x, low, high, u, w, e, slack):
    """Return a column, or zeros if its joint is at a limit and Jᵀ e pushes it outwards by more than ``slack``."""
    g = dot6((u[0], u[1], u[2], w[0], w[1], w[2]), e)
    o = K(0)
    if ((x <= low) & (g < -slack)) | ((x >= high) & (g > slack)):
        return (o, o, o), (o, o, o)
    return u, w


@inline
def diagonal6(K, d):
    """Return the lower triangle (21) of a 6x6 matrix with d on its diagonal."""
    o = K(0)
    return d, o, d, o, o, d, o, o, o, d, o, o, o, o, d, o, o, o, o, o, d


@inline
def add_column(a, u, w):
    """Return the lower triangle (21) of J Jᵀ with one more column (u, w)."""
    return (
        a[0] + u[0] * u[0],
        a[1] + u[1] * u[0],
        a[2] + u[1] * u[1],
        a[3] + u[2] * u[0],
        a[4] + u[2] * u[1],
        a[5] + u[2] * u[2],
        a[6] + w[0] * u[0],
        a[7] + w[0] * u[1],
        a[8] + w[0] * u[2],
        a[9] + w[0] * w[0],
        a[10] + w[1] * u[0],
        a[11] + w[1] * u[1],
        a[12] + w[1] * u[2],
        a[13] + w[1] * w[0],
        a[14] + w[1] * w[1],
        a[15] + w[2] * u[0],
        a[16] + w[2] * u[1],
        a[17] + w[2] * u[2],
        a[18] + w[2] * w[0],
        a[19] + w[2] * w[1],
        a[20] + w[2] * w[2],
    )


@inline
def dot6(x, y):
    """Return x·y."""
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3] * y[3] + x[4] * y[4] + x[5] * y[5]


@inline
def clamp(x, low, high):
    """Return x clamped to [low, high]."""
    x = low if x < low else x
    return high if x > high else x
