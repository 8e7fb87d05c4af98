"""Swing-twist limits: the split, the excess, the nearest allowed rotation, and the normals of the bounds."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from synovia.kernels.math import swing_twist as k
from synovia.kernels.math.rotations import load_quat
from synovia.model.limits import SwingTwist

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone

PI = math.pi
LIMITS = {
    "even": SwingTwist(x=(0.6, 0.6), y=(0.6, 0.6), twist=(-0.5, 0.5)),
    "four": SwingTwist(x=(0.2, 1.1), y=(0.7, 0.4), twist=(-0.3, 1.2)),
    "wide": SwingTwist(x=(2.0, 2.9), y=(PI, 1.9), twist=(-3.0, 2.0)),
    "whole": SwingTwist(x=(PI, PI), y=(PI, PI)),
    "twist excludes 0": SwingTwist(x=(0.5, 0.5), y=(0.9, 0.9), twist=(0.4, 0.9)),
    "twist at the back": SwingTwist(x=(0.5, 1.5), y=(0.9, 0.9), twist=(2.9, PI)),
    "hinge-like": SwingTwist(x=(0.0, 2.4), y=(0.0, 0.0), twist=(0.0, 0.0)),
    "both ways": SwingTwist(x=(0.5, 0.5), y=(0.0, 0.0), twist=(-0.1, 0.1)),
    "twist only": SwingTwist(x=(0.0, 0.0), y=(0.0, 0.0), twist=(-1.0, 2.0)),
    "slim": SwingTwist(x=(1e-4, 1e-4), y=(1.0, 2.0), twist=(-1.0, 1.0)),
    "framed": SwingTwist.about((0.3, -2.0, 0.5), x=(0.2, 1.1), y=(0.7, 0.4), twist=(-0.3, 1.2)),
    "along -z": SwingTwist.about((0, 0, -1), x=(0.2, 1.1), y=(0.7, 0.4), twist=(-0.3, 1.2)),
}
every_limit = pytest.mark.parametrize("name", LIMITS)
seeds = st.integers(0, 2**32 - 1)


@numba.njit
def split(q):
    return k.split(load_quat(q, 0))


@numba.njit
def join(sx, sy, twist):
    return k.join(sx, sy, twist)


@numba.njit
def local_split(limit, q):
    return k.split(k.to_limit_frame(limit, 0, load_quat(q, 0)))


@numba.njit
def from_parts(limit, sx, sy, twist):
    return k.from_limit_frame(limit, 0, k.join(sx, sy, twist))


@numba.njit
def excess(limit, q):
    return k.excess(limit, 0, load_quat(q, 0))


@numba.njit
def project(limit, q):
    return k.project(limit, 0, load_quat(q, 0))


@numba.njit
def normals(limit, q, slack):
    return k.normals(limit, 0, load_quat(q, 0), slack)


@numba.njit
def nearest_on_ellipse(x, y, a, b):
    return k.nearest_on_ellipse(x, y, a, b)


@numba.njit
def wrap(angle):
    return k.wrap(angle)


def row(name):
    return LIMITS[name].row().reshape(1, -1)


def rotations(seed, n=6):
    """Random rotations, both signs, half of them close to the identity or to half a turn."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        v = rng.normal(size=3)
        angle = (rng.uniform(0, PI), 10 ** rng.uniform(-12, -1), PI - 10 ** rng.uniform(-6, -1))[i % 3]
        yield rng.choice((-1.0, 1.0)) * Rotation.from_rotvec(angle * v / np.linalg.norm(v)).as_quat()


def angle_between(p, q):
    return (Rotation.from_quat(p).inv() * Rotation.from_quat(q)).magnitude()


def is_inside(name, sx, sy, twist, slack=0.0):
    limit = LIMITS[name]
    a, b = limit.x[int(sx >= 0)], limit.y[int(sy >= 0)]
    return (sx / max(a, 1e-10)) ** 2 + (sy / max(b, 1e-10)) ** 2 <= 1 + slack and limit.twist[
        0
    ] <= twist <= limit.twist[1]


@given(seeds)
def test_join_undoes_split(seed):
    for q in rotations(seed):
        sx, sy, twist = split(q)
        assert math.hypot(sx, sy) <= PI + 1e-15
        assert abs(twist) <= PI + 1e-15
        assert angle_between(join(sx, sy, twist), q) < 1e-12


@given(st.floats(0, 3.1), st.floats(-PI, PI), st.floats(-3.14, 3.14))
def test_split_undoes_join(swing, direction, twist):
    sx, sy = swing * math.cos(direction), swing * math.sin(direction)
    np.testing.assert_allclose(split(np.array(join(sx, sy, twist))), (sx, sy, twist), atol=1e-12)


@pytest.mark.parametrize("d", [0.0, 1e-16, 1e-13, 1e-9, 1e-3])
@pytest.mark.parametrize("direction", [0.0, 0.3, 2.0, -1.0, PI])
def test_half_turn_of_swing_stays_finite(d, direction):
    swing = PI - d
    q = np.array(join(swing * math.cos(direction), swing * math.sin(direction), 0.7))
    sx, sy, twist = split(q)
    assert math.hypot(sx, sy) == pytest.approx(swing, abs=1e-12)
    assert angle_between(join(sx, sy, twist), q) < 1e-9


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_identity_and_half_turn_of_twist(sign):
    assert tuple(split(sign * np.array((0.0, 0.0, 0.0, 1.0)))) == (0.0, 0.0, 0.0)
    sx, sy, twist = split(sign * np.array((0.0, 0.0, 1.0, 0.0)))
    assert (sx, sy, abs(twist)) == (0.0, 0.0, PI)


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("d", [0.0, 1e-16, 1e-12, 1e-6])
def test_extreme_rotations_can_be_brought_inside(name, d):
    for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, -1), (1, 1, 1), (1, -1, 0)):
        v = np.array(axis) / np.linalg.norm(axis)
        q = Rotation.from_rotvec((PI - d) * v).as_quat()
        assert excess(row(name), np.array(project(row(name), q))) <= 1e-9


@every_limit
@given(seed=seeds)
def test_inside_is_left_alone(name, seed):
    limit, rng = LIMITS[name], np.random.default_rng(seed)
    r, at = math.sqrt(rng.uniform(0, 0.999)), rng.uniform(0, 2 * PI)
    sx, sy = r * math.cos(at), r * math.sin(at)
    sx *= limit.x[int(sx >= 0)]
    sy *= limit.y[int(sy >= 0)]
    if math.hypot(sx, sy) > 3.1:
        return  # next to half a turn of swing the twist is not defined
    q = np.array(from_parts(row(name), sx, sy, rng.uniform(*limit.twist)))
    assert excess(row(name), q) <= 1e-12
    assert angle_between(project(row(name), q), q) < 1e-12


@every_limit
@given(seed=seeds)
def test_projection_lands_inside_and_stays(name, seed):
    limit = row(name)
    for q in rotations(seed):
        p = np.array(project(limit, q))
        assert np.linalg.norm(p) == pytest.approx(1.0, abs=1e-12)
        assert excess(limit, p) <= 1e-9
        assert angle_between(project(limit, p), p) < 1e-9
        if excess(limit, q) == 0.0:
            assert angle_between(p, q) == 0.0 or angle_between(p, q) < 1e-12
        assert angle_between(project(limit, -q), p) < 1e-9  # q and -q are one rotation


@every_limit
@given(seed=seeds)
def test_excess_is_the_distance_to_the_projection(name, seed):
    limit = row(name)
    for q in rotations(seed, 3):
        here, there = np.array(local_split(limit, q)), np.array(local_split(limit, np.array(project(limit, q))))
        if max(math.hypot(*here[:2]), math.hypot(*there[:2])) > 3.1:
            continue
        swing = math.hypot(*(there - here)[:2])
        twist = abs((there - here)[2] + PI) % (2 * PI) - PI
        assert excess(limit, q) == pytest.approx(max(swing, abs(twist)), abs=1e-8)


@pytest.mark.parametrize(
    "name", ["even", "four", "wide", "twist excludes 0", "hinge-like", "both ways", "slim", "framed"]
)
def test_projection_is_nearest_in_the_swing_plane(name):
    limit, rng = LIMITS[name], np.random.default_rng(7)
    around = np.linspace(0, 2 * PI, 20_001)
    c, s = np.cos(around), np.sin(around)
    edge = np.stack([c * np.where(c >= 0, limit.x[1], limit.x[0]), s * np.where(s >= 0, limit.y[1], limit.y[0])], 1)
    for _ in range(20):
        at, far = rng.uniform(0, 2 * PI), rng.uniform(0.1, 3.0)
        sx, sy = far * math.cos(at), far * math.sin(at)
        twist = 0.5 * sum(limit.twist)
        if is_inside(name, sx, sy, twist):
            continue
        p = np.array(
            local_split(row(name), np.array(project(row(name), np.array(from_parts(row(name), sx, sy, twist)))))
        )
        best = np.linalg.norm(edge - (sx, sy), axis=1).min()
        assert math.hypot(p[0] - sx, p[1] - sy) <= best + 2e-8
        assert math.hypot(p[0] - sx, p[1] - sy) >= best - 2e-5  # the sampled edge has gaps
        assert p[2] == pytest.approx(twist, abs=1e-9)


@given(st.floats(-12, 0), st.floats(-12, 0), st.floats(0, PI / 2), st.floats(-9, 1))
def test_nearest_point_of_any_ellipse(log_a, log_b, at, log_out):
    """The way to the nearest point is normal to the ellipse, and the point is on it."""
    a, b = 10**log_a, 10**log_b
    x, y = a * math.cos(at) * (1 + 10**log_out), b * math.sin(at) * (1 + 10**log_out)
    u, v = nearest_on_ellipse(x, y, a, b)
    assert (u / a) ** 2 + (v / b) ** 2 <= 1 + 1e-12
    gap, tangent = np.array((x - u, y - v)), np.array((-v / b**2, u / a**2))
    if x > 0 and y > 0:
        assert abs(gap @ tangent) <= 1e-6 * np.linalg.norm(gap) * np.linalg.norm(tangent) + 1e-15 * np.linalg.norm(
            tangent
        )


def test_nearest_point_from_the_axes():
    assert nearest_on_ellipse(0.0, 2.0, 1.0, 0.5) == (0.0, 0.5)
    assert nearest_on_ellipse(2.0, 0.0, 1.0, 0.5) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("twist", "wanted"),
    [(1.0, 1.0), (2.0, 1.5), (-0.5, 0.5), (3.0, 1.5), (-3.0, 1.5), (-2.2, 1.5), (-2.0, 0.5), (0.5, 0.5)],
)
def test_twist_goes_to_the_end_that_is_nearer_round_the_circle(twist, wanted):
    limit = SwingTwist(x=(1, 1), y=(1, 1), twist=(0.5, 1.5)).row().reshape(1, -1)
    q = np.array(join(0.3, -0.2, twist))
    assert local_split(limit, np.array(project(limit, q)))[2] == pytest.approx(wanted, abs=1e-12)
    gap = abs((twist - wanted + PI) % (2 * PI) - PI)
    assert excess(limit, q) == pytest.approx(gap, abs=1e-12)


@pytest.mark.parametrize("angle", [0.0, PI, -PI, 3 * PI, 4.0, -4.0, 100.0, -100.0])
def test_wrap(angle):
    got = wrap(angle)
    assert -PI < got <= PI + 1e-15
    assert math.cos(got) == pytest.approx(math.cos(angle), abs=1e-12)


def after(limit, q, w):
    """Swing function f and twist after q <- q exp(w)."""
    sx, sy, twist = local_split(limit, (Rotation.from_quat(q) * Rotation.from_rotvec(w)).as_quat())
    a, b = limit[0, 5 if sx >= 0 else 4], limit[0, 7 if sy >= 0 else 6]
    return (sx / a) ** 2 + (sy / b) ** 2, twist


@pytest.mark.parametrize("name", ["even", "four", "wide", "twist excludes 0", "framed", "along -z", "slim"])
def test_normals_are_unit_gradients(name):
    limit, rng, h = row(name), np.random.default_rng(11), 1e-6
    for _ in range(12):
        at = rng.uniform(0.1, 0.4 * PI) + rng.integers(4) * PI / 2
        c, s = math.cos(at), math.sin(at)
        sx, sy = c * limit[0, 5 if c >= 0 else 4], s * limit[0, 7 if s >= 0 else 6]
        q = np.array(from_parts(limit, sx, sy, rng.uniform(limit[0, 8], limit[0, 9])))
        swing, n, _, t = normals(limit, q, 1e-9)
        assert swing == 1
        for axis, part in ((np.array(n), 0), (np.array(t), 1)):
            step = h * (min(limit[0, 4:8]) if part == 0 else 1.0)
            grad = np.array(
                [(after(limit, q, e)[part] - after(limit, q, -e)[part]) / (2 * step) for e in step * np.eye(3)]
            )
            assert np.linalg.norm(axis) == pytest.approx(1.0, abs=1e-12)
            np.testing.assert_allclose(axis, grad / np.linalg.norm(grad), atol=3e-6)


def test_normals_say_which_bounds_are_touched():
    limit = row("four")
    for sx, twist, wanted in ((0.0, 0.0, (0, 0)), (1.1, 0.0, (1, 0)), (0.1, 1.2, (0, 1)), (-0.2, -0.3, (1, -1))):
        swing, _, side, _ = normals(limit, np.array(from_parts(limit, sx, 0.0, twist)), 1e-6)
        assert (swing, side) == wanted


def test_a_whole_turn_of_twist_has_no_wall():
    limit = SwingTwist(x=(1, 1), y=(1, 1)).row().reshape(1, -1)
    for twist in (PI, -PI, 3.0, 0.0):
        assert normals(limit, np.array(from_parts(limit, 0.2, 0.1, twist)), 1e-6)[2] == 0


def test_an_upper_end_at_half_a_turn_is_an_upper_end_from_both_sides():
    limit = row("twist at the back")
    for twist in (PI - 1e-9, PI, -PI, -PI + 1e-9):
        assert normals(limit, np.array(from_parts(limit, 0.2, 0.1, twist)), 1e-6)[2] == 1
