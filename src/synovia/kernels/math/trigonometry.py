"""Sine and cosine without calls of libm, so that loops over them vectorise."""

import math

import numpy as np

from synovia.kernels.compiler.jit import F, inline

PI = F(math.pi)
FAR = F(1e9)  # radians: multiples of 2π are first removed from larger angles, so that quarter turns fit in an int32
WHOLE = F(2.0**52)  # floats of at least this size have no fraction
BLOCK = 8  # number of angles per call: two vector registers on most processors


@inline
def near_quarter(K, x, n):
    """Return sine and cosine of x minus n quarter turns, which is at most an eighth of a turn, in the type K.

    Subtract in three parts (Cody-Waite), then use minimax polynomials.
    """
    m = K(np.int32(n))  # helpers take integers as int64 (``jit``), but most processors convert only int32 as vectors
    r = x - m * K(1.5707963267341256) - m * K(6.077100506303966e-11) - m * K(2.0222662487959506e-21)
    z = r * r
    s = K(-2.50507477628578072866e-8) + z * K(1.58962301576546568060e-10)
    s = K(-1.98412698295895385996e-4) + z * (K(2.75573136213857245213e-6) + z * s)
    s = r + r * z * (K(-1.66666666666666307295e-1) + z * (K(8.33333333332211858878e-3) + z * s))
    c = K(2.08757008419747316778e-9) + z * K(-1.13585365213876817300e-11)
    c = K(2.48015872888517045348e-5) + z * (K(-2.75573141792967388112e-7) + z * c)
    return s, K(1) - K(0.5) * z + z * z * (K(4.16666666666665929218e-2) + z * (K(-1.38888888888730564116e-3) + z * c))


@inline
def quarter(x, n):
    """Return (sin x, cos x) for an x within an eighth of a turn of n quarter turns."""
    s, c = near_quarter(F, x, n)
    n = np.int32(n)
    # Select the quadrant by exact products with 0, 1 and -1: LLVM turns a choice by an integer into a branch, which
    # the processor predicts badly.
    odd = F(n & np.int32(1))
    even = F(1) - odd
    a = (even * s + odd * c) * (F(1) - F(n & np.int32(2)))
    b = (even * c + odd * s) * (F(1) - F((n + np.int32(1)) & np.int32(2)))
    return a, b


@inline
def remove_whole_turns(x):
    """Return x reduced by multiples of 2π if |x| is large, else x."""
    if abs(x) > FAR:
        turns = x / (F(2) * PI)
        whole = WHOLE if turns >= F(0) else -WHOLE
        turns = (turns + whole) - whole if abs(turns) < WHOLE else turns  # rounded; GPUs have no np.floor
        x = x - turns * F(6.2831853071795862) - turns * F(2.4492935982947064e-16)
        x = min(max(x, F(-2) * PI), F(4) * PI)  # an ulp of x is more than a turn
    return x


@inline
def nearest_quarter(x):
    """Return the number of quarter turns nearest to x."""
    t = x * F(0.6366197723675814)
    return np.int32(t + (F(0.5) if t >= F(0) else F(-0.5)))


@inline
def sincos(x):
    """Return (sin x, cos x) by reduction with pi/2 in three parts (Cody-Waite), then minimax polynomials.

    The error is about 1 ulp for |x| < 1e5, and the effect of one ulp of x for larger x; always sin² + cos² = 1. Loops
    over this function vectorise, and libm takes five times as long.
    """
    x = remove_whole_turns(x)
    return quarter(x, nearest_quarter(x))


@inline
def sincos_block(X, S, C):
    """Write sine and cosine of the ``BLOCK`` angles in row 0 of X, all below ``FAR``, by vector instructions."""
    for j in range(BLOCK):
        x = X[0, j]
        S[0, j], C[0, j] = quarter(x, nearest_quarter(x))


@inline
def arcsine(x):
    """Return (a, b) with a / b = asin(√x) / √x to 1e-14, for x in [0, 1/2]; callers fold b into their own division.

    The rational function interpolates in eleven Chebyshev points. An arctangent of libm takes three times as long.
    """
    a = F(-0.815156464554371) + x * (F(0.1107140502049874) + x * F(-0.0028336182508565564))
    a = F(1) + x * (F(-2.4928285883275794) + x * (F(2.2048225858898243) + x * a))
    b = F(-1.0891824765184703) + x * (F(0.1876095973308164) + x * F(-0.008853970963347809))
    b = F(1) + x * (F(-2.659495254994144) + x * (F(2.5730717950476643) + x * b))
    return a, b


@inline
def coarse_arctan2(y, x):
    """Return the angle of (x, y) to 2e-5 radians, in a fraction of the time of libm; 0 for the origin.

    The polynomial is the minimax one of degree 11 in Hastings (1955), *Approximations for digital computers*, sheet 13.
    """
    a, b = abs(x), abs(y)
    high = max(a, b)
    t = min(a, b) / high if high > F(0) else F(0)
    u = t * t
    r = F(-0.01172120)
    r = F(0.05265332) + u * r
    r = F(-0.11643287) + u * r
    r = F(0.19354346) + u * r
    r = F(-0.33262347) + u * r
    r = t * (F(0.99997726) + u * r)
    r = F(0.5) * PI - r if b > a else r
    r = PI - r if x < F(0) else r
    return -r if y < F(0) else r
