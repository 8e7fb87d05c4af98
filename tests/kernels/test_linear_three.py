"""The system of three numbers that Newton's method on chains of balls solves in each step."""

import numpy as np
import pytest

from synovia.kernels.compiler.jit import entry
from synovia.kernels.jacobian.chain_newton import solve3

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone


@entry
def solved(H, g, out):
    """Write the solution of a system given by its lower triangle."""
    out[0], out[1], out[2] = solve3((H[0, 0], H[1, 0], H[1, 1], H[2, 0], H[2, 1], H[2, 2]), (g[0], g[1], g[2]))


@pytest.mark.parametrize("seed", range(10))
def test_three_numbers_are_those_of_numpy(seed):
    rng = np.random.default_rng(seed)
    A, g, found = rng.normal(size=(3, 3)), rng.normal(size=3), np.empty(3)
    H = A @ A.T + 0.1 * np.eye(3)
    solved(H, g, found)
    np.testing.assert_allclose(found, np.linalg.solve(H, g), rtol=1e-6, atol=1e-6)
