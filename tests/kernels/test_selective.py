"""The singular values that selectively damped least squares stands on."""

import numpy as np
import pytest

from synovia.kernels.compiler.jit import entry
from synovia.kernels.jacobian.selective import decompose

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone


@entry
def decomposed(W, Ut):
    """Decompose all rows."""
    decompose(W, Ut, W.shape[0])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("m", "n"), [(1, 4), (3, 7), (6, 7), (12, 30)])
def test_rows_become_orthogonal_and_keep_what_they_are(m, n, seed):
    """Uᵀ J = Σ Vᵀ: lengths of the rows are the singular values that NumPy finds."""
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-3, 1, (m, 1))
    W, Ut = J.copy(), np.full((m, m), 9.0)
    decomposed(W, Ut)
    np.testing.assert_allclose(Ut @ Ut.T, np.eye(m), atol=1e-12)
    np.testing.assert_allclose(Ut @ J, W, atol=1e-12 * np.linalg.norm(J))
    sigma = np.linalg.norm(W, axis=1)
    np.testing.assert_allclose((W @ W.T)[~np.eye(m, dtype=bool)], 0.0, atol=1e-9 * sigma.max() ** 2)
    np.testing.assert_allclose(np.sort(sigma)[::-1], np.linalg.svd(J, compute_uv=False), rtol=1e-6)
