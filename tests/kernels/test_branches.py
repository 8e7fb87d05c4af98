"""Roots of trigonometric polynomials with proof, and the determinant of six equations."""

import numpy as np
import pytest

from probes import from_python
from synovia.kernels.branches import elimination, isolation
from synovia.kernels.branches.memory import DEGREE, MOST_CLUSTERS, MOST_ROOTS, ORDERS, ROWS, SAMPLES, STACK

factor, write_orthogonal = from_python(elimination.factor), from_python(elimination.write_orthogonal)
isolate, transform = from_python(isolation.isolate), from_python(isolation.transform)


def isolated(roots):
    """Return the roots and the undecided intervals that are found of a polynomial with 16 or fewer roots."""
    x = 2 * np.pi * np.arange(SAMPLES) / SAMPLES
    lifted = np.repeat([2.0 + np.cos(x)], DEGREE - len(roots) // 2, axis=0).prod(axis=0)
    samples = np.sin((x[:, None] - roots) / 2).prod(axis=1) * lifted
    f = np.zeros((2, ORDERS))
    largest, noise = transform(samples, f)
    assert noise < 1e-14 * largest
    found, clusters = np.zeros(MOST_ROOTS), np.zeros((MOST_CLUSTERS, 3))
    count, undecided = isolate(f, 8 * noise + 2e-15 * largest, np.zeros((STACK, 4)), found, clusters)
    return found[:count], clusters[:undecided]


def apart(a, b):
    """Return the distance of two angles."""
    return np.abs((a - b + np.pi) % (2 * np.pi) - np.pi)


@pytest.mark.parametrize("seed", range(8))
def test_each_root_is_found_or_lies_in_an_undecided_interval(seed):
    rng = np.random.default_rng(seed)
    roots = rng.uniform(0, 2 * np.pi, 2 * (seed % 8) + 2)
    if seed % 2:
        roots[1] = roots[0] + 10.0 ** rng.uniform(-9, -2)  # nearly a double root
    found, clusters = isolated(roots)
    for root in roots:
        near = apart(found, root).min(initial=np.inf) < 1e-5
        assert near or any(
            low - 1e-9 <= root + turn <= high + 1e-9 for low, high, _ in clusters for turn in (0, 2 * np.pi)
        )
    assert len(found) <= len(roots)
    assert seed % 2 or (len(found) == len(roots) and len(clusters) == 0)


def test_an_undecided_interval_with_a_double_root_has_at_most_two():
    found, clusters = isolated(np.array([1.0, 1.0, 3.0, 5.0]))
    assert len(found) == 2
    assert len(clusters) == 1
    low, high, two = clusters[0]
    assert low <= 1.0 <= high
    assert two == 1.0


def test_a_polynomial_without_roots_is_proved_to_have_none():
    found, clusters = isolated(np.array([]))
    assert len(found) == len(clusters) == 0


def test_the_determinant_is_that_of_both_copies_of_the_equations():
    rng = np.random.default_rng(0)
    E, A, M = rng.normal(size=(6, 27)), np.zeros((6, 9)), np.zeros((9, 9))
    for angle in rng.uniform(0, 6, 5):
        s, c = np.sin(angle), np.cos(angle)
        one = E.reshape(6, 9, 3) @ (s, c, 1.0)
        both = np.zeros((12, 12))
        both[:6, :9], both[6:, 3:] = one, one
        expected = abs(np.linalg.det(both))
        np.testing.assert_allclose(abs(factor(E, (s, c), A, M)), expected, rtol=1e-9)


@pytest.mark.parametrize("rank", [8, 7, 3])
def test_vectors_are_orthogonal_to_all_rows(rank):
    rng = np.random.default_rng(rank)
    rows = rng.normal(size=(9, rank)) @ rng.normal(size=(rank, ROWS))
    N = np.zeros((6, ROWS))
    assert write_orthogonal(rows.copy(), N) == rank
    np.testing.assert_allclose(N @ rows[:8].T, 0, atol=1e-11)
    assert np.linalg.matrix_rank(N) == 6
