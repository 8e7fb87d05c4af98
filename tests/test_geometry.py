"""Rotations and transforms at the door: what is taken, what is cleaned and what is refused."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from synovia.errors import InputError
from synovia.model import geometry as ge

NO_NUMBERS = [
    "x",
    ["1", "2", "3"],
    [True] * 3,
    [1.0, True, 2.0],
    [1.0, np.True_, 2.0],
    None,
    [[1], [1, 2]],
    [10**400],
    [1j],
    {},
    [math.nan] * 3,
    [math.inf, 0, 0],
    [[1, 2, 3]],
    [1, 2],
    5,
]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_vector_is_refused_by_name(value):
    with pytest.raises(InputError, match="offset"):
        ge.as_numbers(value, (3,), "offset")


def test_masks_are_refused_where_they_hide_something():
    masked = np.ma.array([[1.0, 2.0, 3.0]], mask=[[0, 1, 0]])
    for value in (masked, [masked[0]], list(masked)):
        with pytest.raises(InputError, match="offset: expected numbers without masked"):
            ge.as_numbers(value, (-1, 3), "offset")
    np.testing.assert_array_equal(ge.as_numbers(np.ma.array([1, 2, 3]), (3,), "offset"), [1, 2, 3])
    for objects in ([True, 2, 3], ["1", 2, 3], [b"1", 2, 3]):
        with pytest.raises(InputError, match="offset: expected numbers"):
            ge.as_numbers(np.array(objects, object), (3,), "offset")
    assert ge.as_numbers(np.array([1, 2.5, 3], object), (3,), "offset")[1] == 2.5


@pytest.mark.parametrize("kind", [np.float64, np.float32, ">f8", ">f4", np.int64])
def test_numbers_are_packed_whatever_the_order_of_their_axes(kind):
    numbers = np.arange(12).reshape(4, 3).astype(kind)
    for one in (np.asfortranarray(numbers), numbers.T.copy().T, np.repeat(numbers, 2, axis=1)[:, ::2]):
        packed = ge.as_numbers(one, (4, 3), "numbers")
        assert packed.flags.c_contiguous
        assert packed.dtype == np.float64
        np.testing.assert_array_equal(packed, numbers)


def test_numbers_are_copied_and_converted():
    given_array = np.array([1, 2, 3], np.int32)
    out = ge.as_numbers(given_array, (-1,), "q")
    out[0] = 9
    assert (given_array[0], out.dtype) == (1, np.float64)
    assert math.isinf(ge.as_numbers([math.inf], (1,), "limit", finite=False)[0])


@given(st.integers(0, 2**32 - 1))
def test_matrix_and_quaternion_round_trip(seed):
    R = Rotation.random(5, random_state=int(seed))
    np.testing.assert_allclose(ge.quat_to_matrix(R.as_quat()), R.as_matrix(), atol=1e-14)
    np.testing.assert_allclose(ge.matrix_to_quat(R.as_matrix()), R.as_quat(canonical=True), atol=1e-14)
    np.testing.assert_array_equal(ge.matrix_to_quat(R.as_matrix())[2], ge.matrix_to_quat(R.as_matrix()[2]))


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, -1, 0), (1, 2, 3), (-1, -1, -1)])
@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-8, math.pi - 1e-9, math.pi - 1e-12, math.pi])
def test_quaternion_at_the_edges(axis, angle):
    R = Rotation.from_rotvec(angle * np.array(axis) / np.linalg.norm(axis))
    q = ge.matrix_to_quat(R.as_matrix())
    assert q[3] >= 0.0
    assert abs(q @ R.as_quat()) == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_allclose(ge.quat_to_matrix(q), R.as_matrix(), atol=1e-15)


def test_rotations_come_in_as_rotation_or_matrix_and_leave_orthonormal():
    R = Rotation.from_euler("xyz", (0.3, -2.0, 1.0))
    single = R.as_matrix().astype(np.float32)
    for value in (R, R.as_matrix(), R.as_matrix().tolist(), single):
        out = ge.as_matrix(value)
        np.testing.assert_allclose(out, R.as_matrix(), atol=1e-6)
        np.testing.assert_allclose(out.T @ out, np.eye(3), atol=1e-15)


@given(st.integers(0, 2**32 - 1))
def test_a_clean_rotation_keeps_its_bits(seed):
    R = Rotation.random(random_state=seed)
    for value in (np.eye(3), ge.as_matrix(R), ge.quat_to_matrix(R.as_quat())):
        out = ge.as_matrix(value)
        assert out.tobytes() == value.tobytes()
        assert out is not value
    off = R.as_matrix() * (1 + 1e-9)
    assert ge.as_matrix(off).tobytes() != off.tobytes()
    np.testing.assert_allclose(ge.as_matrix(off), R.as_matrix(), rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ([0, 0, 0, 1], "quat_xyzw"),
        (np.array([0.0, 0, 0, 1]), "quat_xyzw"),
        (np.diag([1, 1, -1]), "it mirrors"),
        (-np.eye(3), "it mirrors"),
        (2 * np.eye(3), "differs from the identity"),
        (np.zeros((3, 3)), "differs from the identity"),
        (1e200 * np.eye(3), "differs from the identity"),
        (np.full((3, 3), np.nan), "finite numbers"),
        (np.eye(4), "shape"),
        ([[1, 2], [3]], "expected numbers"),
        (Rotation.from_quat([[0, 0, 0, 1]]), "shape"),
        (None, "rotation"),
        ("xyz", "rotation"),
    ],
)
def test_what_is_no_rotation_is_refused(value, match):
    with pytest.raises(InputError, match=match):
        ge.as_matrix(value)


def test_transforms():
    T = ge.rigid((1, 2, 3), Rotation.from_euler("x", 1).as_matrix())
    np.testing.assert_allclose(ge.as_transform(T), T, atol=1e-15)
    for bad in (np.eye(3), 2 * T, np.where(np.eye(4) > 0, T, np.nan), T + np.eye(4)[[3] * 4], None, T.T):
        with pytest.raises(InputError, match="transform"):
            ge.as_transform(bad)
    np.testing.assert_array_equal(ge.rigid(), np.eye(4))


def test_unit_quaternions():
    np.testing.assert_allclose(np.linalg.norm(ge.as_unit_quat([0.6, 0.0, 0.0, 0.8004])), 1.0, atol=1e-15)
    for bad in ([0, 0, 0, 0], [0, 0, 0, 2], [0, 0, 1], [np.nan, 0, 0, 1], "abcd"):
        with pytest.raises(InputError, match="quaternion"):
            ge.as_unit_quat(bad)


@pytest.mark.parametrize("d", [0.0, 1e-16, 1e-15, 1e-12, 1e-9, 1e-7, 1.5e-6, 1e-5, 1e-3, 0.1])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("at", [0.0, 0.7, 2.0, -1.5])
def test_align_z_is_a_rotation_onto_the_axis(d, side, at):
    axis = np.array([math.sin(d) * math.cos(at), math.sin(d) * math.sin(at), side * math.cos(d)])
    A = ge.align_z(axis)
    np.testing.assert_allclose(A[:, 2], axis, atol=2e-15)
    np.testing.assert_allclose(A.T @ A, np.eye(3), atol=4e-15)
    assert np.linalg.det(A) > 0


@given(st.integers(0, 2**32 - 1))
def test_align_z_turns_no_more_than_it_must(seed):
    axis = np.random.default_rng(seed).normal(size=3)
    axis /= np.linalg.norm(axis)
    wanted = math.atan2(math.hypot(axis[0], axis[1]), axis[2])
    assert Rotation.from_matrix(ge.align_z(axis)).magnitude() == pytest.approx(wanted, abs=1e-7)


def test_texts_are_refused_before_they_take_memory():
    texts = [""] * 20_000 + ["a" * 20_000]
    tracemalloc.start()
    for value in (texts, [texts], [[0.5], texts], [[texts]]):
        assert ge.dimensions(value) == -1
        with pytest.raises(InputError, match="x: expected numbers"):
            ge.as_numbers(value, (-1, -1), "x")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 << 20
    nested = 1.0
    for _ in range(200):
        nested = [nested]
    assert ge.dimensions(nested) == -1
    with pytest.raises(InputError, match="x: expected numbers"):
        ge.as_numbers(nested, (-1,), "x")
