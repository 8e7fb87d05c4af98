"""Isolate all real roots of a trigonometric polynomial f of degree ``DEGREE``, with proof.

The values of f are known up to an error ε, and its slope up to an error ε'. Taylor's theorem decides about an interval
of half-width w around m:

- it has no root if |f| - |f'| w - ½ B w² > ε, where B bounds |f''|,
- it has at most one root if |f'| > B w + ε', because f is then monotonic; the signs of f at the ends say if it has one.

All other intervals are halved, at points with |f| > ε. An interval is undecided if it becomes too narrow, or if
|f| <= ε at its ends and in the middle: a double root, or roots that rounding does not separate.
"""

import math

from synovia.kernels.branches.memory import DEGREE, MOST_CLUSTERS, MOST_ROOTS, ORDERS, SAMPLES, STACK
from synovia.kernels.compiler.jit import F, apart, inline
from synovia.kernels.math.rotations import PI

FIRST = 16  # number of intervals with which the search begins
MOST_INTERVALS = 600  # largest number of intervals that are examined
NARROWEST = F(5e-6)  # radians: half-width of an interval that stays undecided
FLAT = F(0.05)  # radians: half-width of an undecided interval if f is 0, up to its error, at the ends and in the middle
TOUCHING = F(1e-9)  # radians: undecided intervals that are closer together are merged
BEGIN = F(0.2718281828)  # radians: where the first interval begins; an arbitrary value, at which a root is unlikely
CANCEL = F(16)  # error of a coefficient: this times the largest coefficient above ``DEGREE``
FLOOR = F(5e-15)  # least error of a coefficient, as a fraction of the largest coefficient


@inline
def value(f, x):
    """Return (f, f', f'') at the angle x; rows 0 and 1 of ``f`` are the coefficients of cos kx and sin kx."""
    c1, s1 = math.cos(x), math.sin(x)
    c, s = F(1), F(0)
    y, slope, bend = f[0, 0], F(0), F(0)
    for k in range(1, DEGREE + 1):
        c, s = c * c1 - s * s1, s * c1 + c * s1
        a, b = f[0, k] * c + f[1, k] * s, f[1, k] * c - f[0, k] * s
        y += a
        slope += F(k) * b
        bend -= F(k * k) * a
    return y, slope, bend


@inline
def transform(samples, f):
    """Write the coefficients of f from samples at equal angles; return (largest, largest above ``DEGREE``)."""
    largest = noise = F(0)
    for k in range(ORDERS):
        a = b = F(0)
        c1, s1 = math.cos(F(2) * PI * F(k) / F(SAMPLES)), math.sin(F(2) * PI * F(k) / F(SAMPLES))
        c, s = F(1), F(0)
        for i in range(SAMPLES):
            a += samples[i] * c
            b += samples[i] * s
            c, s = c * c1 - s * s1, s * c1 + c * s1
        half = F(1) / F(SAMPLES) if k == 0 or 2 * k == SAMPLES else F(2) / F(SAMPLES)
        f[0, k], f[1, k] = half * a, half * b
        size = math.hypot(f[0, k], f[1, k])
        if k <= DEGREE:
            largest = max(largest, size)
        else:
            noise = max(noise, size)
    return largest, noise


@inline
def root_between(f, low, high, first):
    """Return the root of f in an interval in which f is monotonic; ``first`` is its value at ``low``."""
    x = F(0.5) * (low + high)
    for _ in range(60):
        y, slope, _ = value(f, x)
        if (y > F(0)) == (first > F(0)):
            low = x
        else:
            high = x
        step = y / slope if slope != F(0) else F(0)
        new = x - step
        if not low < new < high:
            new = F(0.5) * (low + high)
        if abs(new - x) < F(4e-15):
            return new
        x = new
    return x


@apart
def isolate(f, error, stack, roots, clusters):
    """Write all real roots of f, and undecided intervals that contain the others.

    Args:
        f: Coefficients, (2, ``ORDERS``).
        error: Largest error of a coefficient.
        stack: Scratch memory, (``STACK``, 4).
        roots: The roots; written.
        clusters: The ends of undecided intervals, and 1 if each has at most two roots, as f'' has none; written.

    Returns:
        (number of roots, number of undecided intervals).
    """
    bound2 = bound3 = F(0)
    for k in range(1, DEGREE + 1):
        size = math.hypot(f[0, k], f[1, k]) + error
        bound2 += F(k * k) * size
        bound3 += F(k * k * k) * size
    most = F(2 * DEGREE + 1) * error  # error of f
    most_slope = F(DEGREE * (DEGREE + 1)) * error
    count = undecided = looked = 0
    y0 = y = value(f, BEGIN)[0]
    low = BEGIN
    top = 0
    for i in range(FIRST):
        high = BEGIN + F(2) * PI * F(i + 1) / F(FIRST)
        if i == FIRST - 1:
            above = y0
        else:
            above = value(f, high)[0]
            if abs(above) <= most:
                high += F(0.0123)
                above = value(f, high)[0]
        stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = low, high, y, above
        top += 1
        low, y = high, above
    top_first = top
    for i in range(top_first // 2):  # the first interval is on top
        for k in range(4):
            stack[i, k], stack[top_first - 1 - i, k] = stack[top_first - 1 - i, k], stack[i, k]
    while top > 0:
        top -= 1
        low, high, below, above = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        looked += 1
        m, w = F(0.5) * (low + high), F(0.5) * (high - low)
        y, slope, bend = value(f, m)
        bound = min(bound2, abs(bend) + bound3 * w)
        if abs(y) - abs(slope) * w - F(0.5) * bound * w * w > most:
            continue
        sure = abs(below) > most and abs(above) > most
        if sure and abs(slope) > bound * w + most_slope:
            if (below > F(0)) != (above > F(0)) and count < MOST_ROOTS:
                roots[count] = root_between(f, low, high, below)
                count += 1
            continue
        flat = w < FLAT and max(abs(below), abs(y), abs(above)) <= most
        if flat or w < NARROWEST or looked > MOST_INTERVALS or top + 2 > STACK:
            if undecided > 0 and (low < clusters[undecided - 1, 1] + TOUCHING or undecided == MOST_CLUSTERS):
                clusters[undecided - 1, 1] = high
            else:
                clusters[undecided, 0], clusters[undecided, 1] = low, high
                undecided += 1
            continue
        part = m
        if abs(y) <= most:
            part = m + F(0.3) * w
            y = value(f, part)[0]
        stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = part, high, y, above
        stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2], stack[top + 1, 3] = low, part, below, y
        top += 2
    bend_error = error * F(DEGREE * (DEGREE + 1) * (2 * DEGREE + 1)) / F(3)
    for k in range(undecided):
        m, w = F(0.5) * (clusters[k, 0] + clusters[k, 1]), F(0.5) * (clusters[k, 1] - clusters[k, 0])
        clusters[k, 2] = F(1) if abs(value(f, m)[2]) > bound3 * w + bend_error else F(0)
    return count, undecided
