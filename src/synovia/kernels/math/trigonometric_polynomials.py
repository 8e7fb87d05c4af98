"""Find all real roots of a trigonometric polynomial, for closed forms that end in an equation of degree 4 or 8.

With z = exp(iθ), a polynomial of degree n in cos θ and sin θ is z⁻ⁿ times a polynomial of degree 2n in z. Its real
angles are the roots on the unit circle. A discrete Fourier transform of 2n + 1 samples gives the coefficients without
cancellation, and the method of Ehrlich and Aberth finds all roots at once.
"""

import math

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import LARGEST_DEGREE
from synovia.kernels.math.trigonometry import PI, sincos

ROUNDS = 80  # largest number of iterations
ZERO = F(1e-13)  # fraction of the largest coefficient: smaller coefficients are rounding
ON_CIRCLE = F(1e-3)  # distance from the unit circle within which a root may be real: double roots split by rounding
CONVERGED = F(1e-15)  # largest change of a root in the last round


@inline
def sample_angle(j, n):
    """Return the angle of sample j of a polynomial of degree n."""
    return F(2) * PI * F(j) / F(2 * n + 1)


@inline
def horner(c, first, n, z):
    """Return the value and the derivative at z of the polynomial with coefficients first to first + 2n."""
    value = complex(c[2 * (first + 2 * n)], c[2 * (first + 2 * n) + 1])
    slope = complex(F(0), F(0))
    for k in range(2 * n - 1, -1, -1):
        slope = slope * z + value
        value = value * z + complex(c[2 * (first + k)], c[2 * (first + k) + 1])
    return value, slope


@device
def real_angles(samples, n, scratch, angles):
    """Write the angles of the real roots of a trigonometric polynomial of degree n; return how many there are.

    Args:
        samples: Values of the polynomial at ``sample_angle(j, n)``, j = 0 ... 2n.
        n: Degree, at most ``LARGEST_DEGREE``.
        scratch: Scratch memory of ``SCRATCH_SIZE`` values.
        angles: Up to 2n angles, radians in (-π, π]; written. Double roots may occur twice.
    """
    largest = F(0)
    for k in range(-n, n + 1):
        re = im = F(0)
        for j in range(2 * n + 1):
            s, c = sincos(-F(k) * sample_angle(j, n))
            re += samples[j] * c
            im += samples[j] * s
        scratch[2 * (k + n)] = re
        scratch[2 * (k + n) + 1] = im
        largest = max(largest, abs(re), abs(im))
    first = 0
    while n > 0 and abs(scratch[2 * first]) + abs(scratch[2 * first + 1]) <= ZERO * largest:
        first += 1  # the coefficients of z⁻ᵏ and zᵏ are conjugate: drop both
        n -= 1
    if n == 0:
        return 0
    degree = 2 * n
    at = 2 * (2 * LARGEST_DEGREE + 1)
    for i in range(degree):
        s, c = sincos(F(2) * PI * F(i) / F(degree) + F(0.4))
        scratch[at + 2 * i], scratch[at + 2 * i + 1] = F(1.1) * c, F(1.1) * s
    for _ in range(ROUNDS):
        most = F(0)
        for i in range(degree):
            z = complex(scratch[at + 2 * i], scratch[at + 2 * i + 1])
            value, slope = horner(scratch, first, n, z)
            away = complex(F(0), F(0))
            for j in range(degree):
                if j != i:
                    gap = z - complex(scratch[at + 2 * j], scratch[at + 2 * j + 1])
                    if gap != complex(F(0), F(0)):
                        away += F(1) / gap
            below = slope - value * away
            if below == complex(F(0), F(0)):
                continue
            step = value / below
            scratch[at + 2 * i] -= step.real
            scratch[at + 2 * i + 1] -= step.imag
            most = max(most, abs(step.real) + abs(step.imag))
        if most <= CONVERGED:
            break
    count = 0
    for i in range(degree):
        x, y = scratch[at + 2 * i], scratch[at + 2 * i + 1]
        if abs(math.sqrt(x * x + y * y) - F(1)) <= ON_CIRCLE:
            angles[count] = math.atan2(y, x)
            count += 1
    return count
