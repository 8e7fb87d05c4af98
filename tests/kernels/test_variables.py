"""Laws of the variable table: steps and clamps stay inside, excesses are distances, samples are uniform."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from beyond import beyond_limits
from conftest import UNCOMPILED
from synovia.kernels.tree import variables
from synovia.kernels.tree.tables import clamp_rows, excesses, random_rows
from synovia.model import Joint, Kind, Skeleton
from synovia.model.limits import Interval, SwingTwist

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone

Z = np.array([0.0, 0.0, 1.0])
BODY = Skeleton(
    [
        Joint("root", None, Kind.FREE),
        Joint("lift", "root", Kind.SLIDE, axis=Z, limit=Interval(-0.2, 1.5)),
        Joint("rail", "lift", Kind.SLIDE, axis=Z),
        Joint("hip", "rail", Kind.BALL, limit=SwingTwist(x=(0.2, 1.4), y=(0.7, 0.3), twist=(-0.4, 0.9))),
        Joint("knee", "hip", Kind.HINGE, axis=Z, limit=Interval(0.1, 2.0)),
        Joint("wheel", "knee", Kind.HINGE, axis=Z),
        Joint("eye", "wheel", Kind.BALL),
        Joint("lid", "eye", Kind.BALL, limit=SwingTwist(x=(0.0, 2.0), y=(0.0, 0.0), twist=(0.3, 0.3))),
    ]
)
seeds = st.integers(0, 2**32 - 1)
SAMPLES = 400 if UNCOMPILED else 20_000


@numba.njit
def step(table, limit, q, dq, size):
    variables.step(table, limit, q, dq, size)


@numba.njit
def uniforms(seed, attempt, out):
    state = np.empty(1, np.uint64)
    variables.seed_state(state, seed, attempt)
    for i in range(len(out)):
        out[i] = variables.uniform(state)


def clamped(q):
    out = np.array(q).reshape(1, -1)
    clamp_rows(BODY.tables.variables, BODY.tables.limits, out)
    return out[0]


def anywhere(seed):
    rng = np.random.default_rng(seed)
    q = rng.uniform(-4, 4, BODY.nq)
    for at in BODY.tables.variables[BODY.tables.variables[:, 0] == 1, 1]:
        q[at : at + 4] /= np.linalg.norm(q[at : at + 4])
    return q


def draws(limit, kind, n=SAMPLES, seed=1):
    joint = Joint("a", None, kind, axis=Z, limit=limit)
    t = Skeleton([joint]).tables
    q = np.zeros((n, kind.q_size))
    random_rows(t.variables, t.limits, q, seed, np.empty(1, np.uint64))
    return q


@given(seeds)
def test_clamp_brings_inside_and_keeps_what_is_inside(seed):
    q = anywhere(seed)
    inside = clamped(q)
    assert beyond_limits(BODY.tables, inside) <= 1e-9
    np.testing.assert_allclose(clamped(inside), inside, atol=1e-9)
    free = np.r_[BODY.q_slice("root"), BODY.q_slice("rail"), BODY.q_slice("wheel"), BODY.q_slice("eye")]
    np.testing.assert_array_equal(inside[free], q[free])


@pytest.mark.parametrize(("joint", "value", "wanted"), [("lift", 1.75, 0.25), ("lift", -0.7, 0.5), ("knee", 0.0, 0.1)])
def test_an_excess_is_a_distance_of_its_variable(joint, value, wanted):
    q = clamped(anywhere(4))
    q[BODY.q_slice(joint)] = value
    out = np.empty(len(BODY.tables.variables))
    excesses(BODY.tables.variables, BODY.tables.limits, q, out)
    assert out.max() == pytest.approx(wanted, abs=1e-12)
    assert BODY.joint_names[BODY.tables.owner[out.argmax()]] == joint


def test_nothing_is_beyond_its_limit_at_rest():
    assert beyond_limits(BODY.tables, BODY.rest_q) <= 1e-9


@given(seeds)
def test_step_adds_numbers_turns_quaternions_and_stays_inside(seed):
    rng = np.random.default_rng(seed)
    q = clamped(anywhere(seed))
    dq, size = rng.normal(size=BODY.nv), rng.uniform(0, 2)
    out = q.copy()
    step(BODY.tables.variables, BODY.tables.limits, out, dq, size)
    assert beyond_limits(BODY.tables, out) <= 1e-9
    v = {BODY.joint_names[o]: row[2] for o, row in zip(BODY.tables.owner, BODY.tables.variables, strict=True)}
    rail, wheel, eye = BODY.q_slice("rail"), BODY.q_slice("wheel"), BODY.q_slice("eye")
    np.testing.assert_allclose(out[rail], q[rail] + size * dq[v["rail"]], atol=1e-14)
    np.testing.assert_allclose(out[wheel], q[wheel] + size * dq[v["wheel"]], atol=1e-14)
    turned = Rotation.from_quat(q[eye]) * Rotation.from_rotvec(size * dq[v["eye"] : v["eye"] + 3])
    assert (Rotation.from_quat(out[eye]).inv() * turned).magnitude() < 1e-12
    knee = BODY.q_slice("knee")
    np.testing.assert_allclose(out[knee], np.clip(q[knee] + size * dq[v["knee"]], 0.1, 2.0), atol=1e-14)


@given(seeds)
def test_a_step_of_nothing_changes_nothing(seed):
    q = clamped(anywhere(seed))
    out = q.copy()
    step(BODY.tables.variables, BODY.tables.limits, out, np.zeros(BODY.nv), 1.0)
    np.testing.assert_allclose(out, q, atol=1e-9)


@given(seeds)
def test_samples_are_inside_and_repeatable(seed):
    t = BODY.tables
    a = np.tile(BODY.rest_q, (4, 1))
    b = a.copy()
    random_rows(t.variables, t.limits, a, seed, np.empty(1, np.uint64))
    random_rows(t.variables, t.limits, b, seed, np.empty(1, np.uint64))
    np.testing.assert_array_equal(a, b)
    one = BODY.rest_q.copy()[None]
    random_rows(t.variables, t.limits, one, seed, np.empty(1, np.uint64))
    np.testing.assert_array_equal(one[0], a[0])  # row t is attempt t, however many rows there are
    for q in a:
        assert beyond_limits(BODY.tables, q) <= 1e-9
        assert q[BODY.q_slice("rail")] == 0.0
    assert len({tuple(q) for q in a}) == 4


def test_generator_is_uniform_within_and_across_seeds():
    for across in (False, True):
        u = np.empty(SAMPLES)
        if across:
            for i in range(len(u)):
                one = np.empty(1)
                uniforms(i, 0, one)
                u[i] = one[0]
        else:
            uniforms(2**32 - 1, 3, u)
        sigma = 1 / math.sqrt(len(u))
        assert 0.0 <= u.min() < 20 / len(u)
        assert 1.0 > u.max() > 1 - 20 / len(u)
        assert abs(u.mean() - 0.5) < 4 * sigma * math.sqrt(1 / 12)
        assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 5 * sigma
        counts = np.histogram(u, 10, (0, 1))[0]
        assert ((counts - len(u) / 10) ** 2).sum() / (len(u) / 10) < 30


def test_no_seed_and_attempt_start_a_dead_generator():
    """The one pair whose words cancel to zero, where a xorshift generator would stay for ever."""
    M = 2**32
    attempt = (0x4F6CDD1D * pow(0x85EBCA6B, -1, M) - 1) % M
    high = ((attempt + 1) * 0x85EBCA6B >> 32) ^ 0x2545F491
    seed = (high * pow(0x9E3779B1, -1, M) - 1) % M
    u = np.empty(8)
    uniforms(seed, attempt, u)
    assert len(set(u)) == 8


@pytest.mark.parametrize(
    ("limit", "low", "high"),
    [
        (Interval(-0.3, 2.0), -0.3, 2.0),
        (None, -math.pi, math.pi),
        (Interval(lower=1.0), 1.0, 1.0 + 2 * math.pi),
        (Interval(lower=4.0), 4.0, 4.0 + 2 * math.pi),
        (Interval(upper=-5.0), -5.0 - 2 * math.pi, -5.0),
        (Interval(-50.0, 50.0), -50.0, 50.0),
    ],
)
def test_hinge_samples_cover_their_range(limit, low, high):
    q = draws(limit, Kind.HINGE)[:, 0]
    assert low <= q.min() < low + 0.02 * (high - low)
    assert high - 0.02 * (high - low) < q.max() <= high
    assert abs(q.mean() - 0.5 * (low + high)) < 5 * (high - low) / math.sqrt(12 * len(q))


def test_ball_samples_are_uniform_over_unequal_half_angles():
    limit = SwingTwist(x=(0.2, 1.4), y=(0.6, 0.3), twist=(-0.4, 0.9))
    R = Rotation.from_quat(draws(limit, Kind.BALL))
    z = R.apply(Z)  # the bone; the swing vector is normal to it and to z
    angle, flat = np.arccos(np.clip(z[:, 2], -1, 1)), np.hypot(z[:, 0], z[:, 1])
    sx, sy = -z[:, 1] / flat * angle, z[:, 0] / flat * angle
    sigma = 0.5 / math.sqrt(len(sx))
    assert abs(np.mean(sx > 0) - 1.4 / 1.6) < 5 * sigma
    assert abs(np.mean(sy > 0) - 0.3 / 0.9) < 5 * sigma
    a, b = np.where(sx > 0, 1.4, 0.2), np.where(sy > 0, 0.3, 0.6)
    r2 = (sx / a) ** 2 + (sy / b) ** 2
    assert r2.max() <= 1 + 1e-9
    assert abs(np.mean(r2) - 0.5) < 5 * sigma


def test_an_elbow_samples_all_of_its_range():
    q = draws(SwingTwist(x=(0.0, 2.4), y=(0.0, 0.0), twist=(0.0, 0.0)), Kind.BALL)
    angle = Rotation.from_quat(q).magnitude()
    assert np.mean(angle < 1e-6) < 0.01
    assert angle.max() > 2.2


def test_free_balls_are_uniform_on_rotations():
    R = Rotation.from_quat(draws(None, Kind.BALL)).as_matrix()
    sigma = 1 / math.sqrt(len(R))
    assert np.abs(R.mean(0)).max() < 5 * sigma
    assert abs((R**2).mean(0) - 1 / 3).max() < 5 * sigma


def test_joints_without_an_end_keep_their_value():
    for limit in (None, Interval(lower=-1.0), Interval(upper=1.0)):
        assert not draws(limit, Kind.SLIDE, 20).any()
