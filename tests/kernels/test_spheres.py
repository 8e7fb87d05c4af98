"""The circle in which two spheres meet, and the side to which two bones bend: edges, brute force, and laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from synovia.kernels.compiler.jit import entry
from synovia.kernels.math.spheres import bend_at_rest, nearest_on_circle

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone


@entry
def nearest(v, ra, rb, out):
    """Write the point; rows of v are a, b, p and the side."""
    a, b = (v[0, 0], v[0, 1], v[0, 2]), (v[1, 0], v[1, 1], v[1, 2])
    p, side = (v[2, 0], v[2, 1], v[2, 2]), (v[3, 0], v[3, 1], v[3, 2])
    out[0], out[1], out[2] = nearest_on_circle(a, ra, b, rb, p, side)


def found(a, ra, b, rb, p, side=(0, 0, 0)):
    """Return the point."""
    out = np.zeros(3)
    nearest(np.array([a, b, p, side], float), float(ra), float(rb), out)
    return out


ZERO = (0, 0, 0)
H = np.sqrt(0.75)


@pytest.mark.parametrize(
    ("b", "ra", "rb", "p", "side", "wanted"),
    [
        pytest.param((1, 0, 0), 1, 1, (5, 3, 0), ZERO, (0.5, H, 0), id="beside the axis"),
        pytest.param((1, 0, 0), 1, 1, (0.5, 1e-6, 0), (0, -1, 0), (0.5, H, 0), id="hardly beside it"),
        pytest.param((1, 0, 0), 1, 1, (9, 0, 0), (3, 0, -2), (0.5, 0, -H), id="on the axis: the side decides"),
        pytest.param((1, 0, 0), 1, 1, (0.5, 0, 0), (0, 7, 0), (0.5, H, 0), id="at the centre"),
        pytest.param((1, 0, 0), 1, 1, (0, 0, 0), (0, 1, 0), (0.5, H, 0), id="at the first"),
        pytest.param((2, 0, 0), 1, 1, (1, 4, 0), ZERO, (1, 0, 0), id="tangent from outside"),
        pytest.param((1, 0, 0), 2, 1, (0, 4, 0), ZERO, (2, 0, 0), id="tangent from inside: folded"),
        pytest.param((1, 0, 0), 1, 2, (0, 4, 0), ZERO, (-1, 0, 0), id="tangent, the second around"),
        pytest.param((3, 0, 0), 1, 1, (0, 4, 0), ZERO, (1, 0, 0), id="empty: too far"),
        pytest.param((1, 0, 0), 3, 1, (0, 4, 0), ZERO, (3, 0, 0), id="empty: the second inside"),
        pytest.param((1, 0, 0), 1, 5, (0, 4, 0), ZERO, (-1, 0, 0), id="empty: the first inside"),
        pytest.param((0, 0, 0), 2, 1, (0, 4, 0), (1, 0, 0), (0, 2, 0), id="concentric"),
        pytest.param((0, 0, 0), 1, 1, (0, 0, 0), (0, 0, 3), (0, 0, 1), id="folded on its root, no point"),
        pytest.param((0, 0, 0), 1, 1, (0, 0, 0), (0, 0, 0), (1, 0, 0), id="nothing says where"),
        pytest.param((1, 0, 0), 1, 0, (0, 4, 0), ZERO, (1, 0, 0), id="a bone of no length"),
    ],
)
def test_edges_of_the_two_sphere_shortcut(b, ra, rb, p, side, wanted):
    """Empty and tangent circles, a joint on the axis, one centre, no length; the same answer where all is moved."""
    np.testing.assert_allclose(found(ZERO, ra, b, rb, p, side), wanted, atol=1e-7)
    away = np.array([3.0, -2.0, 5.0])
    moved = found(away, ra, away + b, rb, away + p, side)
    np.testing.assert_allclose(moved - away, wanted, atol=1e-6)


@pytest.mark.parametrize("side", [ZERO, (2, 0, 0), (-1e-12, 0, 0)], ids=["none", "along the axis", "hardly any"])
def test_a_joint_on_the_axis_without_a_side_is_put_on_the_circle(side):
    """Any point of it, always the same."""
    x = found(ZERO, 1, (1, 0, 0), 1, (3, 0, 0), side)
    assert x[0] == pytest.approx(0.5, abs=1e-12)
    assert np.linalg.norm(x) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_array_equal(x, found(ZERO, 1, (1, 0, 0), 1, (3, 0, 0), side))


@given(seed=st.integers(0, 2**31 - 1))
def test_the_point_is_the_nearest_of_the_circle(seed):
    """Against a fine walk around it; both distances are kept."""
    rng = np.random.default_rng(seed)
    a, b, p = rng.normal(size=(3, 3))
    away = np.linalg.norm(b - a)
    ra = away * rng.uniform(0.3, 2.0)
    rb = rng.uniform(abs(away - ra), away + ra)
    x = found(a, ra, b, rb, p)
    assert np.linalg.norm(x - a) == pytest.approx(ra, rel=1e-9)
    assert np.linalg.norm(x - b) == pytest.approx(rb, rel=1e-9, abs=1e-7 * ra)
    u = (b - a) / away
    foot = a + u * ((x - a) @ u)
    first = x - foot
    turns = np.linspace(0, 2 * np.pi, 721)[:, None]
    circle = foot + np.cos(turns) * first + np.sin(turns) * np.cross(u, first)
    assert np.linalg.norm(circle - p, axis=1).min() >= np.linalg.norm(x - p) - 1e-9 * (1 + ra)


# --- the side at rest -----------------------------------------------------------------------------------------------


@entry
def bend(v, out):
    """Write the side; rows of v are three of a rotation, the first bone, both bones, and where they start and end."""
    R = (v[0, 0], v[0, 1], v[0, 2], v[1, 0], v[1, 1], v[1, 2], v[2, 0], v[2, 1], v[2, 2])
    base, along = (v[3, 0], v[3, 1], v[3, 2]), (v[4, 0], v[4, 1], v[4, 2])
    here, there = (v[5, 0], v[5, 1], v[5, 2]), (v[6, 0], v[6, 1], v[6, 2])
    out[0], out[1], out[2] = bend_at_rest(R, base, along, here, there)


def side_of(base, along, here, there, R=None):
    """Return the side."""
    out = np.zeros(3)
    bend(np.vstack([np.eye(3) if R is None else R, base, along, here, there]).astype(float), out)
    return out


@given(seed=st.integers(0, 2**31 - 1), power=st.integers(-6, 6))
def test_the_side_turns_with_the_bones_and_their_frame_and_scales_with_them(seed, power):
    """At rest it is what the first bone has beside the line; elsewhere it turns with the line by the smallest turn."""
    rng = np.random.default_rng(seed)
    base, along, here, way = rng.normal(size=(4, 3))
    line = along / np.linalg.norm(along)
    wanted = base - line * (base @ line)
    np.testing.assert_allclose(side_of(base, along, here, here + along), wanted, atol=1e-12)
    axis = np.cross(along, way)
    angle = np.arctan2(np.linalg.norm(axis), along @ way)
    turn = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))
    moved = side_of(base, along, here, here + way)
    np.testing.assert_allclose(moved, turn.apply(wanted), atol=1e-8)
    R = Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
    np.testing.assert_allclose(side_of(base, along, R @ here, R @ (here + way), R), R @ moved, atol=1e-8)
    s = 10.0**power
    scaled = side_of(s * base, s * along, s * here, s * (here + way)) / s
    np.testing.assert_allclose(scaled, moved, atol=1e-8)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_bones_that_lie_straight_or_nearly_bend_to_one_side_always_the_same(size):
    """Across the line, of a length that can be told from nothing, whatever rounding says."""
    line = size * np.array([1.0, 2.0, -0.5])
    straight = side_of(line, 2 * line, ZERO, 2 * line)
    assert abs(straight @ line) < 1e-12 * size
    assert np.linalg.norm(straight) > 1e-3
    for beside in np.eye(3):
        hardly = side_of(line + 1e-11 * size * beside, 2 * line, ZERO, 2 * line)
        np.testing.assert_allclose(hardly, straight, atol=1e-9)
    clearly = side_of(line + 1e-7 * size * np.array([2.0, -1.0, 0.0]), 2 * line, ZERO, 2 * line)
    np.testing.assert_allclose(clearly, 1e-7 * size * np.array([2.0, -1.0, 0.0]), rtol=1e-6, atol=1e-14 * size)


def test_bones_that_lie_folded_bend_along_the_first():
    """Both together have no length at rest, so no line."""
    np.testing.assert_allclose(side_of((0, 2, 1), ZERO, ZERO, ZERO), (0, 2, 1))
    assert np.isfinite(side_of((0, 2, 1), ZERO, ZERO, (1, 0, 0))).all()
