"""One step of strict priorities within bounds, against formulas, enumeration of all active sets, and its own laws."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synovia.kernels.hierarchy.basis import levels_size
from synovia.kernels.hierarchy.levels import solve_hierarchy

pytestmark = pytest.mark.jit  # an entry point for these tests alone

FAR = 1e9


def step(levels, wants, *, lower=None, upper=None, reference=None, stiff=None, damping=1e-14):
    """Return the step of a hierarchy of (m, n) matrices."""
    n = levels[0].shape[1] if levels else len(reference)
    A, e = np.vstack([*levels, np.zeros((0, n))]), np.concatenate([*wants, np.zeros(0)])
    edges = np.cumsum([0, *map(len, levels)]).astype(np.int32)
    rows = [(np.zeros(n) + default if given is None else given) for given, default in
            ((lower, -FAR), (upper, FAR), (reference, 0.0), (stiff, 1.0))]  # fmt: skip
    x = np.zeros(n)
    solve_hierarchy(A, e, edges, np.array(rows), np.empty(levels_size(len(A), n)), x, damping, 0.0, FAR, True)
    return x


def problem(seed, n=7):
    """Return random levels that share rows, what they want, and bounds around 0, some of them touched."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, rng.integers(1, 5))
    levels = [rng.normal(size=(m, n)) for m in sizes]
    if len(levels) > 1 and rng.random() < 0.4:
        levels[-1][0] = levels[0][0] + levels[0][-1]  # asks again for what a higher level has
    wants = [rng.normal(size=m) * rng.choice([0.1, 1.0, 4.0]) for m in sizes]
    lower, upper = -rng.uniform(0, 1, n) * (rng.random(n) > 0.2), rng.uniform(0, 1, n) * (rng.random(n) > 0.1)
    return levels, wants, {"lower": lower, "upper": upper, "reference": rng.normal(size=n)}


def test_two_levels_are_the_projected_pseudo_inverse():
    """Δq = Δq1 + W S⁺ (e2 - J2 Δq1) with Δq1 = J1⁺ e1 and S = J2 W; both levels are met to the last digits."""
    rng = np.random.default_rng(1)
    J1, J2, e1, e2 = rng.normal(size=(3, 9)), rng.normal(size=(4, 9)), rng.normal(size=3), rng.normal(size=4)
    first = np.linalg.pinv(J1) @ e1
    W = np.eye(9) - np.linalg.pinv(J1) @ J1
    expected = first + W @ np.linalg.pinv(J2 @ W) @ (e2 - J2 @ first)
    found = step([J1, J2], [e1, e2])
    np.testing.assert_allclose(found, expected, atol=1e-11)
    assert max(np.abs(J1 @ found - e1).max(), np.abs(J2 @ found - e2).max()) < 1e-12


def test_a_reference_is_followed_with_its_bias_term():
    """Δθ = Δθ_ref + J⁺(Δp - J Δθ_ref): the goal is met to 1e-12; without the term in J Δθ_ref it would be missed."""
    rng = np.random.default_rng(2)
    J, dp, ref = rng.normal(size=(3, 8)), rng.normal(size=3), rng.normal(size=8)
    found = step([J], [dp], reference=ref)
    np.testing.assert_allclose(found, ref + np.linalg.pinv(J) @ (dp - J @ ref), atol=1e-12)
    assert np.abs(J @ found - dp).max() < 1e-12
    assert np.abs(J @ (ref + np.linalg.pinv(J) @ dp) - dp).max() > 0.1


def test_a_reference_as_rows_of_the_lowest_level_is_the_same():
    """Rows of a posture Jacobian, one a joint, below the goal find the same step as the bias term."""
    rng = np.random.default_rng(3)
    J, dp, ref = rng.normal(size=(3, 8)), rng.normal(size=3), rng.normal(size=8)
    np.testing.assert_allclose(step([J, np.eye(8)], [dp, ref]), step([J], [dp], reference=ref), atol=1e-9)


def test_stiffness_decides_who_moves():
    """The step is the least Σ stiff² (x - reference)² that meets the rows."""
    J, stiff = np.array([[1.0, 1.0]]), np.array([1.0, 3.0])
    scaled = step([J / stiff], [np.array([1.0])], stiff=stiff) / stiff
    np.testing.assert_allclose(scaled, [0.9, 0.1], atol=1e-12)


def best_of_all_active_sets(A, e, E, f, lower, upper):
    """Return the least |A x - e|² with E x = f within bounds: every set of bounds is tried."""
    best = np.inf
    for sides in itertools.product((-1, 0, 1), repeat=len(lower)):
        side = np.array(sides)
        free = side == 0
        x = np.where(side < 0, lower, np.where(side > 0, upper, 0.0))
        rest, wanted = E[:, free], f - E @ x
        base = np.linalg.lstsq(rest, wanted, rcond=1e-10)[0] if free.any() and len(E) else np.zeros(free.sum())
        if len(E) and np.abs(rest @ base - wanted).max(initial=0.0) > 1e-9:
            continue
        if free.any():
            _, s, vt = np.linalg.svd(np.vstack([rest, np.zeros((1, free.sum()))]))
            Z = vt[(s > 1e-10).sum() :].T
            x[free] = base + Z @ np.linalg.lstsq(A[:, free] @ Z, e - A @ x - A[:, free] @ base, rcond=1e-10)[0]
        if (x >= lower - 1e-9).all() and (x <= upper + 1e-9).all():
            best = min(best, ((A @ x - e) ** 2).sum())
    return best


@pytest.mark.parametrize("seed", range(12))
def test_every_level_has_its_best_within_the_bounds(seed):
    """No choice of active bounds gives a level less than it got, with the levels above as they are."""
    levels, wants, room = problem(seed, n=4)
    x = step(levels, wants, **room)
    E, f = np.zeros((0, 4)), np.zeros(0)
    for A, e in zip([*levels, np.eye(4)], [*wants, room["reference"]], strict=True):
        best = best_of_all_active_sets(A, e, E, f, room["lower"], room["upper"])
        assert ((A @ x - e) ** 2).sum() < best + 1e-8
        E, f = np.vstack([E, A]), np.concatenate([f, A @ x])


@given(st.integers(0, 2**32 - 1))
def test_lower_levels_change_nothing_above(seed):
    """What a level gets is the same to 1e-9 with and without all that is below it; bounds hold."""
    levels, wants, room = problem(seed)
    x = step(levels, wants, **room)
    assert (x >= room["lower"] - 1e-12).all()
    assert (x <= room["upper"] + 1e-12).all()
    for k in range(1, len(levels)):
        alone = step(levels[:k], wants[:k], **room)
        for A in levels[:k]:
            np.testing.assert_allclose(A @ x, A @ alone, atol=1e-9)


@pytest.mark.parametrize("singular", [1e-2, 1e-4, 1e-7, 1e-10, 0.0])
def test_damping_stays_in_its_level(singular):
    """A level whose rows are nearly dependent moves little, and disturbs neither the one above nor the one below."""
    J1 = np.array([[1.0, 0.0, 0.0, 0.0, 0.0]])
    J2 = np.array([[0.0, 1.0, 0.0, 0.0, 0.0], [0.3, 1.0, singular, 0.0, 0.0]])
    J3 = np.array([[0.2, 0.3, 0.5, 1.0, 0.0]])
    x = step([J1, J2, J3], [np.array([0.5]), np.array([0.1, 0.9]), np.array([0.4])], damping=1e-4)
    assert abs(J1 @ x - 0.5).max() < 1e-3  # its own damping alone
    np.testing.assert_allclose(J1 @ x, J1 @ step([J1], [np.array([0.5])], damping=1e-4), atol=1e-12)
    assert np.abs(x).max() < 60.0
    assert abs(J3 @ x - 0.4).max() < 2e-3


@pytest.mark.compiled
def test_hundreds_of_bounds_in_one_level():
    """A level that runs into more bounds than there are other changes still keeps what it has from those below."""
    rng = np.random.default_rng(5)
    n = 500
    levels = [np.abs(rng.normal(size=(2, n))), rng.normal(size=(3, n))]
    wants = [np.full(2, 0.9 * 0.01 * levels[0].sum(1).min()), rng.normal(size=3)]
    room = {"lower": np.full(n, -0.01), "upper": np.full(n, 0.01)}
    alone, x = step(levels[:1], wants[:1], **room), step(levels, wants, **room)
    np.testing.assert_allclose(levels[0] @ x, levels[0] @ alone, atol=1e-9)
    assert np.abs(x).max() <= 0.01 + 1e-12
    assert (np.abs(x) > 0.01 - 1e-9).sum() > 200


def test_the_edges():
    """No rows, rows of zeros, more rows than columns, no room at all, a reference alone."""
    np.testing.assert_allclose(step([], [], reference=np.array([0.3, -0.2])), [0.3, -0.2])
    np.testing.assert_allclose(step([np.zeros((2, 3))], [np.ones(2)], reference=np.ones(3)), np.ones(3))
    rng = np.random.default_rng(4)
    A, e = rng.normal(size=(7, 3)), rng.normal(size=7)
    np.testing.assert_allclose(step([A], [e]), np.linalg.lstsq(A, e)[0], atol=1e-10)
    still = step([A], [e], lower=np.zeros(3), upper=np.zeros(3), reference=np.ones(3))
    np.testing.assert_allclose(still, np.zeros(3), atol=1e-13)
