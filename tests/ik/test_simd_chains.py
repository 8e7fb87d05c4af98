"""FABRIK in lockstep: the answers of the scalar kernel, for any number of threads, in both precisions."""

import numpy as np
import pytest

import synovia as sy
from synovia import Status
from synovia.errors import InputError, UnsupportedError

BONES = 12


def arc(bones=BONES):
    """Return a chain of unequal bones on an arc whose root does not stand at the origin."""
    a, long = np.linspace(0.1, 1.4, bones), np.linspace(1.0, 0.4, bones)
    ways = np.column_stack([np.cos(a), np.sin(a) * np.cos(2 * a), np.sin(a) * np.sin(2 * a)]) * long[:, None]
    places = np.vstack([np.zeros(3), np.cumsum(ways, axis=0)])
    return sy.Skeleton.chain(places + np.array([3.0, -1.0, 0.5]))


def around(body, count, low=0.05, high=0.98):
    """Return points in all directions from the root, at shares of the chain's length."""
    rng = np.random.default_rng(1)
    way = rng.normal(size=(count, 3))
    places = body.rest_pose().positions
    length = np.linalg.norm(np.diff(places, axis=0), axis=1).sum()
    way *= (length * rng.uniform(low, high, count) / np.linalg.norm(way, axis=1))[:, None]
    return way + places[0]


def problem(body, tolerance=1e-5):
    return sy.IK(body, sy.PositionGoal(BONES), sy.Fabrik(), tolerance=(tolerance, 1e-3))


def test_a_few_chains_in_a_simd_batch_are_verified():
    """Few enough for kernels that run as plain Python: targets that are reached, and one out of reach."""
    body = arc()
    ik = problem(body)
    targets = around(body, 5, high=0.9)
    targets[2] += 99.0
    many = ik.solve_many({BONES: targets}, simd=True)
    assert many.status.tolist() == [Status.UNREACHABLE if b == 2 else Status.REACHED for b in range(5)]
    for b in (0, 1, 3, 4):
        assert np.linalg.norm(many[b].pose.position(BONES) - targets[b]) <= ik.tolerance[0] * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("own_starts", [False, True])
def test_simd_batches_walk_the_way_of_the_scalar_kernel(own_starts):
    body = arc()
    ik = problem(body)
    targets = around(body, 150)
    targets[7] = body.rest_pose().position(BONES)  # there already
    targets[8] = body.rest_pose().positions[0]  # at the root
    targets[9:12] += 99.0  # out of reach
    starts = np.stack([body.random_pose(i).q for i in range(150)]) if own_starts else None
    scalar = ik.solve_many({BONES: targets}, starts)
    many = ik.solve_many({BONES: targets}, starts, simd=True)
    np.testing.assert_array_equal(many.status, scalar.status)
    assert (many.status[9:12] == Status.UNREACHABLE).all()
    # steps, attempts, the attempt that won; rounding may end one of many a step earlier
    same = (many._rows[:, 1:4] == scalar._rows[:, 1:4]).all(axis=1)
    assert same.mean() > 0.97
    np.testing.assert_allclose(many.q[same], scalar.q[same], atol=1e-9)
    np.testing.assert_allclose(many.errors[same], scalar.errors[same], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("simd", "tolerance"), [(True, 1e-9), ("single", 1e-3), ("single", 1e-9)])
def test_every_answer_in_simd_batches_is_verified_in_double_precision(simd, tolerance):
    """Also where single precision cannot reach the tolerance: then the scalar kernel takes over."""
    body = arc()
    ik = problem(body, tolerance)
    targets = around(body, 60, high=0.9)
    many = ik.solve_many({BONES: targets}, simd=simd)
    assert many.reached.all()
    assert many._rows[:, 1].max() > 3
    for answer, target in zip(many, targets, strict=True):
        assert np.linalg.norm(answer.pose.position(BONES) - target) <= tolerance * (1 + 1e-9) + 1e-14


@pytest.mark.slow
def test_a_straight_chain_towards_its_root_is_left_to_the_scalar_kernel():
    line = sy.Skeleton.chain(np.column_stack([np.zeros(BONES + 1), np.arange(BONES + 1.0), np.zeros(BONES + 1)]))
    ik = problem(line)
    targets = np.array([[0.0, 5.0, 0.0], [0.0, -3.0, 0.0]])
    many = ik.solve_many({BONES: targets}, simd=True)
    assert many.reached.all()
    np.testing.assert_array_equal(many.q, ik.solve_many({BONES: targets}).q)


@pytest.mark.slow
def test_chains_in_simd_batches_give_the_same_bits_for_any_number_of_threads_and_any_order():
    body = arc()
    ik = problem(body)
    targets = np.concatenate([around(body, 300)] * 7)
    one = ik.solve_many({BONES: targets}, simd=True, threads=1)
    two = ik.solve_many({BONES: targets}, simd=True, threads=2)
    np.testing.assert_array_equal(one._rows, two._rows)
    back = ik.solve_many({BONES: targets[::-1].copy()}, simd=True, threads=2)
    np.testing.assert_array_equal(one._rows, back._rows[::-1])


@pytest.mark.slow
def test_a_refused_target_of_a_chain_is_named_as_in_the_scalar_path():
    body = arc()
    targets = around(body, 90)
    targets[67, 2] = np.inf
    with pytest.raises(InputError) as scalar:
        problem(body).solve_many({BONES: targets})
    with pytest.raises(InputError) as simd:
        problem(body).solve_many({BONES: targets}, simd=True)
    assert str(simd.value) == str(scalar.value)
    assert "67" in str(simd.value)


def test_two_bones_and_bodies_have_no_simd_batch():
    two = sy.IK(arc(2), sy.PositionGoal(2), sy.Fabrik())
    with pytest.raises(UnsupportedError, match="no SIMD kernel"):
        two.solve_many({2: np.zeros((2, 3))}, simd=True)
    person = sy.IK(sy.bundled("humanoid"), sy.PositionGoal("left_hand"), sy.Fabrik())
    with pytest.raises(UnsupportedError, match="no SIMD kernel"):
        person.solve_many({"left_hand": np.zeros((2, 3))}, simd=True)
