"""Vectors and rotations against SciPy, at the places where formulas break: no turn, half a turn, no direction."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from synovia.kernels.math import rotations as ro
from synovia.kernels.math import vectors as ve

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone

TINY_ANGLES = [0.0, *(10.0**-k for k in range(16, 2, -1)), 0.99e-4, 1.01e-4]
NEAR_HALF_TURN = [math.pi, *(math.pi - 10.0**-k for k in range(9, 2, -1)), math.pi - 0.99e-4, math.pi - 1.01e-4]
ORDINARY = [0.1, 1.0, math.pi / 2, 2.0, 3.0]
AXES = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, -1), (1, 1, 0), (-1, 2, -2), (1, 1, 1), (1e-6, 1, 1e-9), (0.2, -0.7, 3)]


@numba.njit
def sincos(x):
    return ro.sincos(x)


@numba.njit
def log_rotation(E):
    return ro.log_rotation(ro.load_rotation(E, 0, 0))


@numba.njit
def angle_of(E):
    return ro.angle_of(ro.load_rotation(E, 0, 0))


@numba.njit
def matrix_quat(E):
    return ro.matrix_quat(ro.load_rotation(E, 0, 0))


@numba.njit
def quat_matrix(q):
    return ro.quat_matrix(ro.load_quat(q, 0))


@numba.njit
def quat_exp(v):
    return ro.quat_exp((v[0], v[1], v[2]))


@numba.njit
def quat_log(q):
    return ro.quat_log(q)


@numba.njit
def quat_between(a, b):
    return ro.quat_between((a[0], a[1], a[2]), (b[0], b[1], b[2]))


@numba.njit
def quat_algebra(a, b, v):
    p, q = ro.load_quat(a, 0), ro.load_quat(b, 0)
    return ro.quat_mul(p, q), ro.quat_conj(p), ro.quat_apply(p, (v[0], v[1], v[2]))


@numba.njit
def matrix_algebra(a, b, v, s, c):
    A, B = ro.load_rotation(a, 0, 0), ro.load_rotation(b, 0, 0)
    w = (v[0], v[1], v[2])
    return ro.matmul(A, B), ro.matmul_t(A, B), ro.apply(A, w), ro.apply_t(A, w), ro.turn_z(A, s, c), ro.column(A, 2)


@numba.njit
def vector_algebra(a, b, k):
    u, v = (a[0], a[1], a[2]), (b[0], b[1], b[2])
    return ve.add(u, v), ve.sub(u, v), ve.scale(k, u), ve.axpy(k, u, v), ve.cross(u, v), ve.dot(u, v), ve.norm(u)


@numba.njit
def directions(a):
    u = (a[0], a[1], a[2])
    return ve.normalize(u, (0.0, 1.0, 0.0)), ve.perpendicular(u)


def flat(R):
    return np.ascontiguousarray(R.as_matrix().reshape(1, 9))


def unit(v):
    v = np.array(v, float)
    return v / np.linalg.norm(v)


def turns(angles):
    return [(unit(axis), angle) for axis in AXES for angle in angles]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0, 1e4])
def test_sincos_is_exact_to_two_ulp(scale):
    for x in np.random.default_rng(5).uniform(-scale, scale, 300):
        s, c = sincos(float(x))
        assert abs(s - math.sin(x)) <= 2 * math.ulp(math.sin(x)), x
        assert abs(c - math.cos(x)) <= 2 * math.ulp(math.cos(x)), x


@pytest.mark.parametrize("n", [0, 1, -1, 2, -2, 3, 4, 5, 1001, -6000])
def test_sincos_close_to_multiples_of_a_quarter_turn(n):
    for d in (0.0, 1e-16, -1e-12, 1e-8, -1e-4):
        x = n * math.pi / 2 + d
        s, c = sincos(x)
        assert abs(s - math.sin(x)) <= 4e-16
        assert abs(c - math.cos(x)) <= 4e-16


@pytest.mark.parametrize("x", [1e5, 3e8, 9.99e8, 1e9, 1.001e9, 2**31 * math.pi / 2, 3.4e9, 1e10, 1e12, 1e15])
def test_sincos_of_many_turns_is_as_good_as_the_angle(x):
    for y in (x, -x, math.nextafter(x, 0.0), 1.2345 * x):
        s, c = sincos(y)
        assert abs(s - math.sin(y)) <= math.ulp(y) + 4e-16
        assert abs(c - math.cos(y)) <= math.ulp(y) + 4e-16


@pytest.mark.parametrize("x", [2.0**53, 1e17, -1e25, 1e100, -1e300, 1.7e308])
def test_sincos_of_angles_without_a_phase_is_still_a_rotation(x):
    s, c = sincos(x)
    assert s * s + c * c == pytest.approx(1.0, abs=4e-16)


@pytest.mark.parametrize(("axis", "angle"), turns([*TINY_ANGLES, *ORDINARY]))
def test_log_and_exp_match_scipy(axis, angle):
    R = Rotation.from_rotvec(angle * axis)
    np.testing.assert_allclose(log_rotation(flat(R)), R.as_rotvec(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(quat_exp(angle * axis), R.as_quat(canonical=True), rtol=0, atol=4e-16)
    assert angle_of(flat(R)) == pytest.approx(angle, abs=1e-12)
    assert np.linalg.norm(quat_exp(angle * axis)) == pytest.approx(1.0, abs=4e-16)


@pytest.mark.parametrize(("axis", "angle"), turns(NEAR_HALF_TURN))
def test_log_close_to_half_a_turn(axis, angle):
    got = np.array(log_rotation(flat(Rotation.from_rotvec(angle * axis))))
    if math.pi - angle < 1e-12:  # either axis is right
        got = got if got @ axis > 0 else -got
    np.testing.assert_allclose(got, angle * axis, rtol=0, atol=1e-11)


@given(st.integers(0, 2**32 - 1))
def test_quaternions_and_matrices_agree_with_scipy(seed):
    rng = np.random.default_rng(seed)
    P, Q = Rotation.random(2, random_state=int(seed))
    v = rng.normal(size=3)
    p, q = P.as_quat(), -Q.as_quat()  # both signs of w
    product, inverse, turned = quat_algebra(p, q, v)
    np.testing.assert_allclose(abs(np.dot(product, (P * Q).as_quat())), 1.0, atol=1e-14)
    np.testing.assert_allclose(abs(np.dot(inverse, P.inv().as_quat())), 1.0, atol=1e-14)
    np.testing.assert_allclose(turned, P.apply(v), atol=1e-14)
    np.testing.assert_allclose(quat_matrix(q), Q.as_matrix().ravel(), atol=1e-14)
    np.testing.assert_allclose(matrix_quat(flat(P)), P.as_quat(canonical=True), atol=1e-14)
    A, B = P.as_matrix(), Q.as_matrix()
    s, c = math.sin(v[0]), math.cos(v[0])
    got = matrix_algebra(flat(P), flat(Q), v, s, c)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    for mine, theirs in zip(got, (A @ B, A @ B.T, A @ v, A.T @ v, A @ turn, A[:, 2]), strict=True):
        np.testing.assert_allclose(mine, theirs.ravel(), atol=1e-14)


@pytest.mark.parametrize(("axis", "angle"), turns([0.0, 1e-9, 1.0, *NEAR_HALF_TURN]))
def test_matrix_to_quaternion_at_the_edges(axis, angle):
    q = np.array(matrix_quat(flat(Rotation.from_rotvec(angle * axis))))
    assert q[3] >= 0.0
    assert np.linalg.norm(q) == pytest.approx(1.0, abs=1e-15)
    assert abs(q @ Rotation.from_rotvec(angle * axis).as_quat()) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(quat_matrix(q), flat(Rotation.from_rotvec(angle * axis))[0], atol=1e-14)


@pytest.mark.parametrize("lengths", [(1.0, 1.0), (1e-6, 1e5), (3.0, 1e-20)])
@pytest.mark.parametrize(("axis", "angle"), turns([*TINY_ANGLES, *ORDINARY, *NEAR_HALF_TURN]))
def test_smallest_turn_between_directions(axis, angle, lengths):
    across = np.cross(axis, (0.3, 0.5, -0.8))
    a = unit(across)
    b = Rotation.from_rotvec(angle * axis).apply(a)
    q = np.array(quat_between(lengths[0] * a, lengths[1] * b))
    assert np.linalg.norm(q) == pytest.approx(1.0, abs=1e-14)
    # a cross product of opposite directions knows its own direction to 1e-16 / sine, so 2e-8 is the best there is
    slack = 1e-14 + min(3e-8, 1e-15 / max(math.sin(angle), 1e-300))
    np.testing.assert_allclose(Rotation.from_quat(q).apply(a), b, rtol=0, atol=slack)
    assert 2 * math.atan2(np.linalg.norm(q[:3]), abs(q[3])) == pytest.approx(angle, abs=slack)


@pytest.mark.parametrize("axis", AXES)
def test_opposite_directions_turn_half_a_turn_about_a_perpendicular(axis):
    a = np.array(axis, float)
    q = np.array(quat_between(a, -2.0 * a))
    assert q[3] == pytest.approx(0.0, abs=1e-8)
    np.testing.assert_allclose(Rotation.from_quat(q).apply(a), -a, atol=1e-7 * np.linalg.norm(a))
    assert tuple(q) == tuple(quat_between(a, -2.0 * a))


def test_no_direction_gives_no_turn():
    assert tuple(quat_between(np.zeros(3), np.ones(3))) == (0.0, 0.0, 0.0, 1.0)
    assert tuple(quat_between(np.ones(3), np.zeros(3))) == (0.0, 0.0, 0.0, 1.0)
    assert tuple(quat_between(np.zeros(3), np.zeros(3))) == (0.0, 0.0, 0.0, 1.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6), st.floats(-10, 10))
def test_vector_algebra(numbers, k):
    a, b = np.array(numbers[:3]), np.array(numbers[3:])
    wanted = (a + b, a - b, k * a, k * a + b, np.cross(a, b), a @ b, np.linalg.norm(a))
    size = max(1.0, np.abs(numbers).max()) ** 2
    for mine, theirs in zip(vector_algebra(a, b, k), wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-14 * size)


@pytest.mark.parametrize("axis", [*AXES, (1e-14, 0, 0), (0, 1e10, 1e10), (1, -1, 1)])
def test_normalize_and_perpendicular(axis):
    a = np.array(axis, float)
    n, p = directions(a)
    np.testing.assert_allclose(n, unit(a), atol=1e-15)
    assert np.linalg.norm(p) == pytest.approx(1.0, abs=1e-15)
    assert abs(np.dot(p, unit(a))) < 1e-15


def test_what_has_no_direction_falls_back():
    for a in (np.zeros(3), np.full(3, 1e-16), np.full(3, 1e-200)):
        n, p = directions(a)
        assert n == (0.0, 1.0, 0.0)
        assert np.linalg.norm(p) == 1.0


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-5, 0.3, 3.0, np.pi - 1e-9])
def test_quat_log_is_the_inverse_of_quat_exp(angle):
    """Also for the quaternion of the other sign, and for no turn at all."""
    vector = angle * np.array([0.36, -0.48, 0.8])
    quat = np.array(quat_exp(tuple(vector)))
    for sign in (1.0, -1.0):
        np.testing.assert_allclose(quat_log(tuple(sign * quat)), vector, atol=1e-12)
