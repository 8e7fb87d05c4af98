"""The real angles of a trigonometric polynomial, which closed forms of arms stand on."""

import numpy as np
import pytest

from synovia.kernels.compiler.jit import entry
from synovia.kernels.layout import SCRATCH_SIZE
from synovia.kernels.math.trigonometric_polynomials import real_angles

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone


@entry
def found(samples, degree, scratch, angles):
    """Write the angles; return how many there are."""
    return real_angles(samples, degree, scratch, angles)


ROOTS = [[], [0.3, 1.8], [-2.0, 0.1], [1.0, 2.0, -0.5, 3.0], [-3.0, -1.0, 0.2, 0.4, 1.0, 2.9]]


@pytest.mark.parametrize(("degree", "roots"), [(n, roots) for n in (2, 4) for roots in ROOTS if len(roots) <= 2 * n])
def test_the_angles_are_the_roots_of_a_product_of_sines(degree, roots):
    """Of sin((θ - r) / 2) for each root. With fewer roots than twice the degree, leading coefficients are rounding."""
    theta = 2 * np.pi * np.arange(2 * degree + 1) / (2 * degree + 1)
    samples = np.ones(len(theta))
    for root in roots:
        samples *= np.sin(0.5 * (theta - root))
    angles = np.zeros(2 * degree)
    count = found(samples, degree, np.zeros(SCRATCH_SIZE), angles)
    np.testing.assert_allclose(np.sort(angles[:count]), np.sort(roots), atol=1e-7)
