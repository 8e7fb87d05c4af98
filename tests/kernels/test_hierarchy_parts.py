"""The linear algebra of strict priorities, part by part: bases, active bounds, moves and multipliers, against NumPy."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from synovia.kernels import layout
from synovia.kernels.hierarchy import basis, levels, newton, polish
from synovia.kernels.layout import (
    ACTIVE_SIDE,
    DIRECTION,
    GRADIENT,
    PERMANENT,
    POSE_COLUMN,
    REFERENCE,
    RELEASES,
    STEP,
    STEP_LOWER,
    STEP_STIFFNESS,
    STEP_UPPER,
)

pytestmark = pytest.mark.parts

FAR = 1e9
SEEDS = range(4)


def opened(m, n):
    """Return a hierarchy without rows, its columns free, far from their bounds, and not yet moved."""
    h = basis.open_levels(np.zeros(basis.levels_size(m, n)), m, n)
    for k in range(n):
        basis.reset_column(h, k, -FAR, FAR)
    basis.reset_columns(h)
    h.v[STEP_STIFFNESS], h.constrains[:] = 1.0, 1.0
    h.state[layout.BASIS_STALE] = 1.0
    return h


def filled(rng, m, n):
    """Return a hierarchy of random rows and right sides."""
    h = opened(m, n)
    h.G[:], h.e[:] = rng.normal(size=(m, n)), rng.normal(size=m)
    return h


def by_pose_column(h, row):
    """Return one of the vectors in the order in which the columns were opened."""
    out = np.empty(h.v.shape[1])
    out[h.v[POSE_COLUMN].astype(int)] = row
    return out


def free_of(h):
    """Return how many columns are free."""
    return int(h.state[layout.FREE_COUNT])


def null_space(A):
    """Return an orthonormal basis of the null space, by columns."""
    _, s, vt = np.linalg.svd(np.vstack([A, np.zeros((1, A.shape[1]))]))
    return vt[(s > 1e-10).sum() :].T


# --- memory ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (1, 1), (0, 4), (4, 4)])
def test_the_arrays_share_no_memory_and_fill_what_was_asked_for(shape):
    """Each number belongs to one array at most, all lie inside, and every array has its full shape."""
    m, n = shape
    size = basis.levels_size(m, n)
    h = basis.open_levels(np.arange(float(size)), m, n)
    numbers = np.concatenate([array.ravel() for array in h])
    assert len(np.unique(numbers)) == len(numbers) <= size
    d = max(m, n)
    assert (h.G.shape, h.e.shape, h.s.shape, h.B.shape) == ((m, n), (m,), (m,), (n + 1, n))
    assert (h.L.shape, h.A.shape, h.c.shape, h.R.shape) == ((d, n), (d, d), (d,), (n, n))
    assert h.best.shape == h.errors.shape == h.dampings.shape == h.damping_floors.shape == (m + 1,)
    assert min(len(h.constrains), len(h.saved_errors)) >= m
    assert h.saved_pose.shape == (n, 4)
    assert len(h.edges) >= m  # of a one-sided goal, which has as many rows as slacks
    assert len(h.active_bounds) == n
    assert h.v.shape == (layout.VECTORS, n)
    assert h.state.shape == (layout.STATES,)


# --- the basis ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_basis_is_orthonormal_and_holds_its_rows(seed):
    """Rows are L Q over the free columns; dependent rows and rows of rounding add nothing."""
    rng = np.random.default_rng(seed)
    m, n = 5, 7
    h = filled(rng, m, n)
    h.G[2] = 2.0 * h.G[0] - h.G[1]
    h.G[3] *= 1e-14
    basis.fix_column(h, 1, 1.0)
    free = free_of(h)
    assert free == n - 1
    count = levels.add_level_rows(h, 0, m)
    assert count == 3
    Q = h.B[:count, :free]
    np.testing.assert_allclose(Q @ Q.T, np.eye(count), atol=1e-12)
    for i in (0, 1, 2, 4):
        np.testing.assert_allclose(h.L[i, :count] @ Q, h.G[i, :free], atol=1e-11)
        np.testing.assert_allclose(h.L[i, :count] @ h.B[:count], h.G[i], atol=1e-10)  # fixed columns too


@pytest.mark.parametrize("remainder", [1e-6, 1e-8])
def test_nearly_dependent_rows_stay_orthogonal(remainder):
    """A row that is almost the one before it is orthogonalised again, until rounding is gone."""
    rng = np.random.default_rng(3)
    h = filled(rng, 3, 6)
    h.G[1] = h.G[0] + remainder * h.G[1]
    h.G[2] = h.G[0] - remainder * h.G[2]
    count = levels.add_level_rows(h, 0, 3)
    assert count == 3
    np.testing.assert_allclose(h.B[:3] @ h.B[:3].T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(h.L[:3, :3] @ h.B[:3], h.G, atol=1e-14)


def test_a_basis_ends_when_no_direction_is_left():
    """With more rows than free columns every row still has its coordinates."""
    h = filled(np.random.default_rng(0), 5, 3)
    assert levels.add_level_rows(h, 0, 5) == 3
    np.testing.assert_allclose(h.L[:5, :3] @ h.B[:3], h.G, atol=1e-12)


def test_the_coordinates_count_from_the_base():
    """Of a level below others, ``L`` holds the coordinates in the level's own part of the basis alone."""
    rng = np.random.default_rng(5)
    h = filled(rng, 4, 6)
    basis.rebuild_basis(h, 2)
    assert h.state[layout.BASIS_COUNT] == 2
    assert h.state[layout.BASIS_STALE] == 0
    count = levels.add_level_rows(h, 2, 4)
    assert count == 4
    projector = np.eye(6) - h.B[:2].T @ h.B[:2]
    np.testing.assert_allclose(h.L[2:4, :2] @ h.B[2:4], h.G[2:4] @ projector, atol=1e-12)


def test_a_basis_is_rebuilt_from_what_constrains():
    """Rows that constrain nothing are left out; rows of R count only with a clear remainder."""
    rng = np.random.default_rng(6)
    h = filled(rng, 3, 6)
    h.constrains[1] = 0.0
    h.R[0] = rng.normal(size=6)
    h.R[1] = h.G[0] + h.R[0] + 0.05 * rng.normal(size=6) / 6  # nearly what is there already
    h.state[layout.STIFF_COUNT] = 2.0
    basis.rebuild_basis(h, 3)
    assert h.state[layout.BASIS_COUNT] == 3
    Q = h.B[:3]
    for row, held in ((h.G[0], True), (h.G[1], False), (h.G[2], True), (h.R[0], True)):
        left = np.linalg.norm(row - row @ Q.T @ Q)
        assert (left < 1e-10) == held
    before = h.B[:3].copy()
    h.G[0] = 0.0
    basis.rebuild_basis(h, 3)  # is not stale: nothing is done
    np.testing.assert_array_equal(h.B[:3], before)


def test_projections_leave_the_multipliers_of_fixed_columns():
    """Over free columns the gradient loses its part along the basis; at fixed ones the multiplier remains."""
    rng = np.random.default_rng(7)
    h = filled(rng, 2, 6)
    basis.fix_column(h, 2, 1.0)
    basis.fix_column(h, 0, -1.0)
    basis.rebuild_basis(h, 2)
    free = free_of(h)
    h.v[GRADIENT] = g = rng.normal(size=6)
    g = g.copy()
    assert levels.bound_multipliers(h) == pytest.approx(np.abs(g).max())
    force = np.linalg.lstsq(h.G[:, :free].T, g[:free], rcond=None)[0]  # of the rows, which balances the free columns
    np.testing.assert_allclose(h.v[GRADIENT], g - h.G.T @ force, atol=1e-12)


# --- columns --------------------------------------------------------------------------------------------------------


def test_columns_move_as_a_whole():
    """Whatever is fixed and released, each column keeps its row entries, bounds and step together."""
    rng = np.random.default_rng(8)
    n = 6
    h = filled(rng, 2, n)
    h.state[layout.STIFF_COUNT] = 1.0
    h.R[0], h.v[REFERENCE], h.v[STEP_LOWER], h.v[STEP_UPPER] = rng.normal(size=(4, n)) + np.array([[0], [0], [-9], [9]])
    at_first = np.vstack([h.G, h.R[:1], h.v[[REFERENCE, STEP_LOWER, STEP_UPPER]]])
    active = {}
    for _ in range(40):
        free = free_of(h)
        if rng.random() < 0.55 and free:
            k, side = int(rng.integers(free)), float(rng.choice([-1, 1]))
            column = int(h.v[POSE_COLUMN, k])
            basis.fix_column(h, k, side)
            active[column] = side
            assert free_of(h) == free - 1
        elif free < n:
            k = int(rng.integers(free, n))
            column = int(h.v[POSE_COLUMN, k])
            basis.release_column(h, k)
            del active[column]
            assert free_of(h) == free + 1
        assert h.state[layout.BASIS_STALE] == 1
        now = np.vstack([h.G, h.R[:1], h.v[[REFERENCE, STEP_LOWER, STEP_UPPER]]])
        order = h.v[POSE_COLUMN].astype(int)
        assert sorted(order) == list(range(n))
        np.testing.assert_array_equal(now, at_first[:, order])
        assert set(order[free_of(h) :]) == set(active)  # the fixed ones come last
        for k in range(n):
            side = active.get(int(h.v[POSE_COLUMN, k]), 0.0)
            assert h.v[ACTIVE_SIDE, k] == side
            if side:
                assert h.v[STEP, k] == h.v[STEP_UPPER if side > 0 else STEP_LOWER, k]


def test_a_column_starts_at_the_value_nearest_to_zero():
    """Bounds that leave zero out move the step to the nearer one."""
    h = opened(0, 3)
    h.v[ACTIVE_SIDE], h.v[PERMANENT] = 1.0, 1.0
    for k, (low, high) in enumerate([(-1.0, 2.0), (0.5, 2.0), (-3.0, -0.25)]):
        basis.reset_column(h, k, low, high)
    np.testing.assert_array_equal(h.v[STEP], [0.0, 0.5, -0.25])
    np.testing.assert_array_equal(h.v[[ACTIVE_SIDE, PERMANENT]], np.zeros((2, 3)))
    np.testing.assert_array_equal(h.v[POSE_COLUMN], range(3))
    np.testing.assert_array_equal(h.v[[STEP_LOWER, STEP_UPPER]], [[-1.0, 0.5, -3.0], [2.0, 2.0, -0.25]])


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_pinned_column_joins_the_basis(side):
    """The basis then holds the unit vector of the column and stays orthonormal; at the end of a level it is fixed."""
    rng = np.random.default_rng(9)
    n = 6
    h = filled(rng, 2, n)
    h.v[STEP_LOWER], h.v[STEP_UPPER] = -1.0, 2.0
    basis.rebuild_basis(h, 2)
    basis.pin_column(h, 3, side)
    assert h.v[STEP, 3] == (2.0 if side > 0 else -1.0)
    assert h.v[ACTIVE_SIDE, 3] == side
    assert h.state[layout.BASIS_COUNT] == 3
    assert free_of(h) == n  # pinned, not fixed
    Q = h.B[:3, :n]
    np.testing.assert_allclose(Q @ Q.T, np.eye(3), atol=1e-12)
    unit = np.eye(n)[3]
    np.testing.assert_allclose(unit @ Q.T @ Q, unit, atol=1e-12)
    basis.fix_pinned(h)
    assert free_of(h) == n - 1
    assert h.v[POSE_COLUMN, n - 1] == 3
    assert h.state[layout.ANY_PINNED] == 0


def test_a_column_that_cannot_move_is_fixed_at_once():
    """Where the basis holds its unit vector already, or would fill the space, pinning fixes."""
    h = opened(1, 4)
    h.G[0, 1] = 1.0
    basis.rebuild_basis(h, 1)
    basis.pin_column(h, 1, 1.0)
    assert free_of(h) == 3
    assert h.v[POSE_COLUMN, 3] == 1
    h = filled(np.random.default_rng(1), 2, 3)
    basis.rebuild_basis(h, 2)
    basis.pin_column(h, 0, -1.0)  # the third direction of three
    assert free_of(h) == 2
    assert h.v[POSE_COLUMN, 2] == 0
    assert h.state[layout.ANY_PINNED] == 0


# --- one move -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_a_move_ends_at_the_first_bound(seed):
    """The step goes as far along its direction as bounds and the largest move allow, and says what ended it."""
    rng = np.random.default_rng(seed)
    n = 5
    h = opened(0, n)
    h.v[STEP_STIFFNESS] = rng.uniform(0.5, 2.0, n)
    h.v[STEP_LOWER], h.v[STEP_UPPER] = -rng.uniform(0.1, 2.0, n), rng.uniform(0.1, 2.0, n)
    h.v[STEP] = x = rng.uniform(0.5, 0.9) * np.where(rng.random(n) < 0.5, h.v[STEP_LOWER], h.v[STEP_UPPER])
    h.v[DIRECTION] = p = rng.normal(size=n) * rng.choice([0.1, 1.0, 5.0])
    x, p, most = x.copy(), p.copy(), float(rng.choice([0.2, 100.0]))
    cut = min(1.0, most / (np.abs(p) / h.v[STEP_STIFFNESS]).max())
    room = np.where(p > 0, h.v[STEP_UPPER] - x, h.v[STEP_LOWER] - x) / p
    share = min(cut, room.min())
    stiff = h.v[STEP_STIFFNESS].copy()
    ended = levels.advance_to_bound(h, most)
    np.testing.assert_allclose(by_pose_column(h, h.v[STEP]), x + share * p, atol=1e-14)
    assert (np.abs(share * p) <= most * stiff * (1 + 1e-12)).all()
    assert ended == (1 if room.min() < cut else 2 if cut < 1 else 0)
    sides = by_pose_column(h, h.v[ACTIVE_SIDE])
    if ended == 1:
        first = int(np.argmin(room))
        assert sides[first] == np.sign(p[first])
        sides[first] = 0.0
    np.testing.assert_array_equal(sides, np.zeros(n))


def test_a_move_leaves_pinned_columns_and_rounding_alone():
    """A pinned column stays; moves of rounding towards a bound do not end the step."""
    h = opened(0, 4)
    h.v[STEP_UPPER, 2] = h.v[STEP, 2] = 1.0
    basis.pin_column(h, 2, 1.0)
    h.v[STEP_UPPER, 1], h.v[STEP_LOWER, 3] = 0.0, 0.0
    h.v[DIRECTION] = [0.5, 1e-15, 7.0, -1e-15]
    assert levels.advance_to_bound(h, 100.0) == 0
    np.testing.assert_allclose(h.v[STEP], [0.5, 0.0, 1.0, 0.0], atol=1e-14)


def test_a_move_from_beyond_a_bound_goes_no_further():
    """A column that rounding put outside stops there: it does not step back by the same way."""
    for side, row in ((1.0, STEP_UPPER), (-1.0, STEP_LOWER)):
        h = opened(0, 3)
        h.v[row, 0], h.v[STEP, 0] = side, side * 1.5
        h.v[DIRECTION] = [side, 2.0, 0.0]
        assert levels.advance_to_bound(h, 100.0) == 1
        np.testing.assert_allclose(by_pose_column(h, h.v[STEP]), [side, 0.0, 0.0])


# --- releases -------------------------------------------------------------------------------------------------------


def held(multipliers, sides, **marks):
    """Return a hierarchy whose columns are all at bounds, with multipliers in GRADIENT."""
    n = len(sides)
    h = opened(0, n)
    for _k in range(n):
        basis.fix_column(h, 0, float(sides[int(h.v[POSE_COLUMN, 0])]))
    order = h.v[POSE_COLUMN].astype(int)
    h.v[GRADIENT] = np.asarray(multipliers, float)[order]
    for row, values in marks.items():
        h.v[getattr(layout, row)] = np.asarray(values, float)[order]
    return h


def released(h):
    """Return the columns that are free."""
    return set(h.v[POSE_COLUMN, : free_of(h)].astype(int))


def test_the_worst_bound_is_released():
    """A bound is in the way where the gradient points inwards; the one that is most in the way goes first."""
    pushes, sides = [-1.0, 2.0, -3.0, 0.5], [1, 1, 1, -1]
    h = held(pushes, sides)
    assert levels.release_bounds(h, 3.0, False) == 1
    assert released(h) == {2}
    assert by_pose_column(h, h.v[RELEASES])[2] == 1
    h = held(pushes, sides)
    assert levels.release_bounds(h, 3.0, True) == 3
    assert released(h) == {0, 2, 3}
    np.testing.assert_array_equal(by_pose_column(h, h.v[RELEASES]), [1, 0, 1, 1])


def test_what_is_not_released():
    """Rounding, bounds that stay for the whole step, and bounds that were released often enough to cycle."""
    for every in (False, True):
        h = held([-1e-12, 1e-12], [1, -1])
        assert levels.release_bounds(h, 1.0, every) == 0
        h = held([-1.0, 1.0, -0.5], [1, -1, 1], PERMANENT=[1, 0, 0], RELEASES=[0, levels.MAX_RELEASES, 0])
        assert levels.release_bounds(h, 1.0, every) == 1
        assert released(h) == {2}


# --- one level ------------------------------------------------------------------------------------------------------


def damped(A, s, above, damping):
    """Return the damped least-squares step that keeps what the rows above have."""
    Z = null_space(above)
    return Z @ (A @ Z).T @ np.linalg.solve((A @ Z) @ (A @ Z).T + damping * np.eye(len(A)), s)


@pytest.mark.parametrize("seed", SEEDS)
def test_damping_is_that_of_tikhonov_in_the_null_space(seed):
    """A level minimises |A x - e|² + λ |x|² beside the rows above, with λ = damping + error_damping |residual|²."""
    rng = np.random.default_rng(seed)
    h = filled(rng, 5, 7)
    h.v[STEP] = x = rng.normal(size=7)
    s = h.e - h.G @ x
    total = levels.level_residual(h, 2, 5)
    assert total == pytest.approx((s[2:] ** 2).sum())
    np.testing.assert_allclose(h.s[2:], s[2:], atol=1e-13)
    levels.residual_gradient(h, 2, 5)
    np.testing.assert_allclose(h.v[GRADIENT], h.G[2:].T @ s[2:], atol=1e-12)
    x = x.copy()
    levels.solve_level(h, 2, 5, 0.3, 0.05, FAR, True)
    np.testing.assert_allclose(h.v[STEP], x + damped(h.G[2:], s[2:], h.G[:2], 0.3 + 0.05 * total), atol=1e-10)
    assert h.state[layout.BASIS_COUNT] == 5  # of both levels, for those below
    assert h.state[layout.SOLVES] == 1


def test_the_largest_move_shortens_a_level_and_the_posture():
    """The step keeps its direction; a stiff column counts by its move."""
    rng = np.random.default_rng(2)
    h = filled(rng, 2, 5)
    h.v[STEP_STIFFNESS, 0] = 4.0
    whole = damped(h.G, h.e, np.zeros((0, 5)), 1e-14)
    levels.solve_level(h, 0, 2, 1e-14, 0.0, 0.01, True)
    np.testing.assert_allclose(h.v[STEP], whole * 0.01 / np.abs(whole / h.v[STEP_STIFFNESS]).max(), atol=1e-12)
    h = filled(rng, 2, 5)
    h.v[REFERENCE] = wish = rng.normal(size=5)
    basis.rebuild_basis(h, 2)
    levels.solve_posture(h, 3.0, FAR, True)
    Z = null_space(h.G)
    np.testing.assert_allclose(h.v[STEP], Z @ Z.T @ wish / 4.0, atol=1e-12)


def test_without_releases_a_bound_stays_active():
    """Saturation in the null space: a column that reached its bound above is not moved below."""
    for releases, expected in ((False, 1.0), (True, -1.0)):
        h = opened(2, 2)
        h.G[:] = [[1.0, 1.0], [1.0, 0.0]]
        h.e[:] = [4.0, -1.0]
        h.v[STEP_LOWER], h.v[STEP_UPPER] = -1.0, [1.0, 5.0]
        levels.solve_levels(h, np.array([0, 1, 2]), 2, 1e-14, 0.0, 0.0, FAR, releases)
        x = by_pose_column(h, h.v[STEP])
        assert x.sum() == pytest.approx(4.0)
        assert x[0] == pytest.approx(expected)


def test_only_the_first_levels_take_part():
    """``count`` levels are solved; the posture counts as the last one; levels without rows are skipped."""
    rng = np.random.default_rng(4)
    edges = np.array([0, 1, 1, 2])
    for count in range(1, 5):
        h = filled(rng, 2, 4)
        h.v[REFERENCE] = wish = rng.normal(size=4)
        levels.solve_levels(h, edges, count, 1e-15, 0.0, 0.0, FAR, True)
        met = [abs(h.G[i] @ h.v[STEP] - h.e[i]) < 1e-9 for i in range(2)]
        assert met == [True, count >= 3]
        Z = null_space(h.G)
        assert (np.abs(Z.T @ (h.v[STEP] - wish)).max() < 1e-9) == (count >= 4)


# --- Newton steps of a level that is missed -----------------------------------------------------------------------


def moved_columns(rng, m, n, fixed):
    """Return a hierarchy with stiff columns, some of them fixed at bounds, and a symmetric matrix for its pose."""
    h = filled(rng, m, n)
    h.v[STEP_STIFFNESS] = rng.uniform(0.5, 2.0, n)
    for k in fixed:
        h.v[STEP_UPPER, k] = rng.uniform(0.1, 0.5)
    for column in fixed:
        basis.fix_column(h, int(np.flatnonzero(h.v[POSE_COLUMN] == column)[0]), 1.0)
    H = rng.normal(size=(n, n))
    return h, H + H.T


def in_columns(h, H):
    """Return a matrix of the pose in the order and units of the columns."""
    order, scale = h.v[POSE_COLUMN].astype(int), 1.0 / h.v[STEP_STIFFNESS]
    return scale[:, None] * H[np.ix_(order, order)] * scale


def test_forces_of_the_rows_above_balance_the_residual():
    """Over the free columns the pull of a level and the forces of the rows above leave what no row above can hold."""
    rng = np.random.default_rng(10)
    h, _ = moved_columns(rng, 6, 7, [1, 4])
    h.constrains[1] = 0.0
    levels.level_residual(h, 3, 5)
    pull = h.G[3:5].T @ h.s[3:5]
    mine = h.s[3:5].copy()
    newton.constraint_forces(h, 3, 5)
    free, above = free_of(h), h.G[[0, 2]]
    expected = -np.linalg.lstsq(above[:, :free].T, pull[:free], rcond=None)[0]
    np.testing.assert_allclose(h.s[[0, 2]], expected, atol=1e-9)
    np.testing.assert_allclose(h.s[[1, 5]], 0.0, atol=1e-15)
    np.testing.assert_array_equal(h.s[3:5], mine)
    np.testing.assert_allclose(h.G[[0, 2], :free] @ (h.G.T @ h.s)[:free], 0.0, atol=1e-9)


def test_the_hessian_is_projected_onto_what_is_free():
    """P (GᵀG + C) P over the free columns, with the stiffness of the columns."""
    rng = np.random.default_rng(11)
    h, H = moved_columns(rng, 4, 7, [0, 5])
    basis.rebuild_basis(h, 2)
    base, free = int(h.state[layout.BASIS_COUNT]), free_of(h)
    newton.reduced_hessian(h, H, 2, 4, base)
    P = np.eye(free) - h.B[:base, :free].T @ h.B[:base, :free]
    whole = (h.G[2:4].T @ h.G[2:4] + in_columns(h, H))[:free, :free]
    np.testing.assert_allclose(h.A[:free, :free], P @ whole @ P, atol=1e-10)


def test_a_hessian_leaves_slack_columns_without_stiffness():
    """Columns beyond those of the pose have rows, but no second derivatives."""
    rng = np.random.default_rng(12)
    h, H = moved_columns(rng, 2, 5, [])
    H = H[:3, :3]
    h.v[STEP] = x = rng.normal(size=5)
    padded = np.zeros((5, 5))
    padded[:3, :3] = H
    newton.reduced_hessian(h, H, 0, 2, 0)
    np.testing.assert_allclose(h.A[:5, :5], h.G.T @ h.G + in_columns(h, padded), atol=1e-12)
    newton.level_gradient(h, H, 0, 2)
    np.testing.assert_allclose(h.v[GRADIENT], h.G.T @ (h.e - h.G @ x) - in_columns(h, padded) @ x, atol=1e-12)


@pytest.mark.parametrize("rank", [1, 3, 5])
def test_rows_of_a_factor(rank):
    """RᵀR is the matrix; rows that are there already stay; what is softer than asked adds no row."""
    rng = np.random.default_rng(rank)
    h = opened(5, 5)
    rows = rng.normal(size=(rank, 5))
    h.R[0] = kept = rng.normal(size=5)
    for first in (0, 1):
        if rank + first > 5:
            continue
        h.A[:5, :5] = rows.T @ rows
        count = newton.pivoted_cholesky(h, first, 1e-9)
        assert count == rank + first
        np.testing.assert_allclose(h.R[first:count].T @ h.R[first:count], rows.T @ rows, atol=1e-9)
        if first:
            np.testing.assert_array_equal(h.R[0], kept)
        h.R[0] = kept
    h.A[:5, :5] = np.diag([4.0, 1e-3, -2.0, 0.25, -1e-9])
    assert newton.pivoted_cholesky(h, 0, 1e-2) == 2
    np.testing.assert_allclose(h.R[:2], np.diag([2.0, 0, 0, 0.5, 0])[[0, 3]], atol=1e-12)


def best_quadratic(H, g, above, lower, upper):
    """Return the x that maximises g·x - x·H x / 2 with above @ x = 0 within bounds: every active set is tried."""
    n, best, where = len(g), -np.inf, None
    for sides in itertools.product((-1, 0, 1), repeat=n):
        side = np.array(sides)
        free = side == 0
        x = np.where(side < 0, lower, np.where(side > 0, upper, 0.0))
        if not np.isfinite(x).all():
            continue
        base = np.zeros(free.sum())
        if free.any() and len(above):
            base = np.linalg.lstsq(above[:, free], -above @ x, rcond=None)[0]
        x[free] = base
        if len(above) and np.abs(above @ x).max() > 1e-9:
            continue
        if free.any():
            Z = null_space(above[:, free])
            pull = (g - H @ x)[free]
            x[free] += Z @ np.linalg.solve(Z.T @ H[np.ix_(free, free)] @ Z, Z.T @ pull) if Z.shape[1] else 0.0
        value = g @ x - 0.5 * x @ H @ x
        if (x >= lower - 1e-9).all() and (x <= upper + 1e-9).all() and value > best:
            best, where = value, x
    return best, where


@pytest.mark.parametrize("seed", range(10))
def test_a_newton_step_is_the_best_of_all_active_sets(seed):
    """An infeasible level with geometric stiffness gets what no other step within the bounds gives it."""
    rng = np.random.default_rng(seed)
    n, m = 4, 3
    h = filled(rng, m, n)
    h.e[:1] = 0.0  # a row above that is met
    C = rng.normal(size=(n, n))
    C = C @ C.T * 0.3
    lower, upper = -rng.uniform(0, 0.6, n), rng.uniform(0, 0.6, n)
    h.v[STEP_LOWER], h.v[STEP_UPPER] = lower, upper
    G, e = h.G.copy(), h.e.copy()
    h.state[layout.STIFF_COUNT] = 0.0
    newton.newton_level(h, C, 1, m, 1e-13, FAR, 1.0)
    x = by_pose_column(h, h.v[STEP])
    H, g = G[1:].T @ G[1:] + C, G[1:].T @ e[1:]
    value, where = best_quadratic(H, g, G[:1], lower, upper)
    assert (x >= lower - 1e-12).all()
    assert (x <= upper + 1e-12).all()
    assert np.abs(G[0] @ x) < 1e-10
    assert g @ x - 0.5 * x @ H @ x > value - 1e-8
    np.testing.assert_allclose(x, where, atol=1e-5)
    count = int(h.state[layout.STIFF_COUNT])
    free = free_of(h)
    Z = null_space(G[:1, h.v[POSE_COLUMN, :free].astype(int)])
    assert count == Z.shape[1]  # all that is left is stiff: levels below may not move along it


def test_a_newton_step_is_damped_and_bounded():
    """Damping and the largest move shorten it; soft directions are left to the levels below."""
    h = opened(1, 3)
    h.G[0], h.e[:] = [1.0, 0.0, 0.0], 2.0
    C = np.diag([1.0, 3.0, 0.0])
    newton.newton_level(h, C, 0, 1, 0.5, FAR, 1.0)
    np.testing.assert_allclose(h.v[STEP], [2.0 / 2.5, 0.0, 0.0], atol=1e-9)
    assert h.state[layout.STIFF_COUNT] == 2
    np.testing.assert_allclose(h.R[:2, 2], 0.0)
    np.testing.assert_allclose(np.sort((h.R[:2] ** 2).sum(1)), np.array([2.0, 3.0]) / 1e-5, rtol=1e-3)
    h = opened(1, 3)
    h.G[0], h.e[:] = [1.0, 0.0, 0.0], 2.0
    newton.newton_level(h, C, 0, 1, 0.0, 0.1, 1.0)
    np.testing.assert_allclose(h.v[STEP], [0.1, 0.0, 0.0], atol=1e-12)


def test_a_strong_bound_stays_for_the_levels_below():
    """A bound with a clear multiplier is permanent; one that is only touched is not."""
    h = opened(1, 2)
    h.G[0], h.e[:] = [1.0, 0.0], 2.0
    h.v[STEP_UPPER] = [0.5, 0.0]
    basis.fix_column(h, 1, 1.0)
    newton.newton_level(h, np.diag([1.0, 1.0]), 0, 1, 0.0, FAR, 1.0)
    np.testing.assert_allclose(by_pose_column(h, h.v[STEP]), [0.5, 0.0])
    np.testing.assert_array_equal(by_pose_column(h, h.v[PERMANENT]), [1.0, 0.0])


def test_rows_that_turn_with_the_body_constrain_nothing():
    """If a missed level has more rows than stiff directions, only those directions hold the levels below."""
    for stiff, expected in ((1, 0.0), (2, 1.0)):
        h = filled(np.random.default_rng(0), 3, 5)
        newton.unlock_rows(h, 1, 3, 0, stiff)
        np.testing.assert_array_equal(h.constrains[:3], [1.0, expected, expected])


# --- what a polished level keeps -----------------------------------------------------------------------------------


def scored(best, errors):
    """Return what comparisons of poses read."""
    width = len(best)
    return SimpleNamespace(
        best=np.array(best), errors=np.array(errors), dampings=np.zeros(width), damping_floors=np.zeros(width)
    )


@pytest.mark.parametrize(
    ("best", "errors", "gained"),
    [
        ([1.0, 1.0], [1.0, 0.9], True),
        ([1.0, 1.0], [1.0, 1.0], False),
        ([1.0, 1.0], [1.0 + 1e-3, 0.5], False),  # a level above lost
        ([1.0, 1.0], [0.9, 2.0], True),  # a level above gained
        ([1.0, 1.0], [np.nan, 0.5], False),
        ([1.0, 1.0], [1.0, np.nan], False),
        ([1.0, 1.0], [1.0 + 1e-7, 0.5], True),  # a loss of rounding
        ([1.0, 1.0], [1.0 - 1e-7, 1.0], False),  # a gain of rounding
        ([1.0, 1.0], [1.0, 1.0 - 1e-5], False),
        ([9.0, 9.0], [9.0 + 5e-6, 8.0], True),  # relative to 1 + error
        ([9.0, 9.0], [9.0 + 2e-5, 8.0], False),
        ([9.0, 9.0], [9.0, 9.0 - 5e-4], False),
        ([9.0, 9.0], [9.0, 9.0 - 2e-3], True),
    ],
)
def test_what_is_a_gain(best, errors, gained):
    """The last level has to gain without a loss above; slack 1e-6 of loss and gain above, 1e-4 of gain of the last."""
    assert polish.has_gained(scored(best, errors), 2, 1e-6, 1e-6, 1e-4) == gained


def test_only_the_levels_in_question_count():
    """Levels below ``count`` may lose what they like."""
    h = scored([1.0, 1.0, 1.0], [1.0, 0.5, 9.0])
    assert polish.has_gained(h, 2, 1e-9, 1e-9, 1e-9)
    assert not polish.has_gained(h, 1, 1e-9, 1e-9, 1e-9)
    assert not polish.has_gained(h, 3, 1e-9, 0.6, 1e-9)
    assert polish.upper_levels_kept(h, 2)
    assert not polish.upper_levels_kept(h, 3)
    assert not polish.upper_levels_kept(scored([1.0], [np.nan]), 1)
    polish.update_best(h, 3)
    np.testing.assert_array_equal(h.best, [1.0, 0.5, 9.0])
    h = scored([1.0, 1.0, 1.0], [2.0, 3.0, 0.5])
    polish.update_best(h, 2)
    np.testing.assert_array_equal(h.best, [1.0, 3.0, 0.5])  # above, the lowest stays


def test_damping_grows_by_what_failed_and_never_falls_below_its_floor():
    """The last level is damped, and missed levels above a little; reached ones are not."""
    h = scored([1.0, 0.0, 1.0], [1.0, 0.0, 1.0])
    first = polish.increase_damping(h, 3)
    assert first == h.dampings[2] > 0
    assert h.dampings[1] == 0
    assert 0 < h.dampings[0] < 0.01 * first
    again = polish.increase_damping(h, 3)
    assert again > 2 * first
    h.damping_floors[:] = [5.0, 7.0, 0.0]
    polish.increase_damping(h, 3)
    np.testing.assert_array_equal(h.dampings[:2], [5.0, 0.0])
    polish.decrease_damping(h, 3, 0.5)
    assert h.dampings[0] == 5.0
    assert h.dampings[1] == 7.0
    assert 0 < h.dampings[2] < 10 * again
    for _ in range(60):
        polish.decrease_damping(h, 3, 0.5)
    np.testing.assert_array_equal(h.dampings, [5.0, 7.0, 0.0])
    h.dampings[:] = np.inf
    polish.decrease_damping(h, 2, 0.0)
    np.testing.assert_array_equal(h.dampings, [5.0, 7.0, np.inf])


def test_bounds_at_which_a_step_ended_are_held_again():
    """Where the pose is still at a recorded bound it is fixed for the whole step; elsewhere it is free."""
    h = opened(0, 4)
    h.v[STEP_LOWER], h.v[STEP_UPPER] = -1.0, 1.0
    for column, side in ((0, 1.0), (2, -1.0), (3, 1.0)):
        basis.fix_column(h, int(np.flatnonzero(h.v[POSE_COLUMN] == column)[0]), side)
    polish.record_active_bounds(h)
    np.testing.assert_array_equal(h.active_bounds, [1.0, 0.0, -1.0, 1.0])
    for k, (low, high) in enumerate([(-1.0, 0.0), (-1.0, 0.0), (-0.5, 1.0), (-1.0, 1.0)]):
        basis.reset_column(h, k, low, high)  # at its bound, not recorded, away from it, a slack
    basis.reset_columns(h)
    polish.fix_recorded_bounds(h, 3)
    assert set(h.v[POSE_COLUMN, free_of(h) :].astype(int)) == {0, 3}
    np.testing.assert_array_equal(by_pose_column(h, h.v[PERMANENT]), [1.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(by_pose_column(h, h.v[ACTIVE_SIDE]), [1.0, 0.0, 0.0, 1.0])
