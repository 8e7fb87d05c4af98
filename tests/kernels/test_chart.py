"""The coordinates in which a limited ball moves: what a unit of each turns, and how far it may go."""

import numpy as np
import pytest

import synovia as sy
from synovia.kernels.compiler.jit import entry
from synovia.kernels.tree.chart import ellipse_normal, move_ball, velocity, write_ball_bounds

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone

LIMIT = sy.SwingTwist.about((1, 2, -1), x=(0.7, 1.3), y=(0.4, 1.8), twist=(-0.6, 1.1))


@entry
def bound(limit, q, box):
    """Write the box of one ball at rotation q."""
    write_ball_bounds(limit, 0, 0, (q[0], q[1], q[2], q[3]), box)


@entry
def moved(limit, q, step, out):
    """Write where a step takes q."""
    out[0], out[1], out[2], out[3] = move_ball(limit, 0, (q[0], q[1], q[2], q[3]), (step[0], step[1], step[2]))


@entry
def turned(limit, v, out):
    """Write the angular velocity of a ball; v: swing, twist, and their rates."""
    out[0], out[1], out[2] = velocity(limit, 0, (v[0], v[1]), v[2], (v[3], v[4], v[5]))


def box_at(q, limit=LIMIT):
    """Return the three rows of a ball."""
    box = np.full((3, 7), np.nan)
    bound(limit.row()[None], q, box)
    return box


def after(q, step):
    """Return q after a step."""
    out = np.empty(4)
    moved(LIMIT.row()[None], q, np.asarray(step, float), out)
    return sy.Rotation.from_quat(out)


def rotation(x, y, twist):
    """Return the rotation that is swung and twisted so far."""
    frame = np.asarray(LIMIT.frame)
    turned = sy.Rotation.from_rotvec(frame @ (x, y, 0.0)) * sy.Rotation.from_rotvec(frame @ (0.0, 0.0, twist))
    return turned.as_quat()


@pytest.mark.parametrize(
    ("x", "y", "twist"), [(0.3, 0.4, 0.2), (-0.4, 0.1, -0.5), (0.1, -0.3, 1.0), (-0.2, 1.2, 0.0), (1e-5, 0, 0.3)]
)
def test_a_unit_of_each_direction_turns_as_the_box_says(x, y, twist):
    """By differences of the moved ball; inside its limits it may go both ways, and twist as far as they say."""
    q = rotation(x, y, twist)
    box = box_at(q)
    for c in range(3):
        small = 1e-6 * np.eye(3)[c]
        turn = (after(q, -small).inv() * after(q, small)).as_rotvec() / 2e-6
        np.testing.assert_allclose(box[c, 4:7], turn, atol=1e-6)
        assert box[c, 0] < 0.0 < box[c, 1]
    np.testing.assert_allclose(box[2, :2], [LIMIT.twist[0] - twist, LIMIT.twist[1] - twist], atol=1e-12)


@pytest.mark.parametrize("size", [0.0, 1e-9, 3e-4, 9e-4, 1.1e-3, 0.5, 2.5])
def test_the_angular_velocity_of_a_ball_is_the_series_of_the_right_jacobian(size):
    """To the last digits, on both sides of where the short form ends."""
    rng = np.random.default_rng(3)
    frame = np.asarray(LIMIT.frame)
    for _ in range(4):
        heading = rng.uniform(-np.pi, np.pi)
        s = size * np.array([np.cos(heading), np.sin(heading), 0.0])
        twist, rate = rng.uniform(-2, 2), rng.normal(size=3)
        cross = np.array([[0, -s[2], s[1]], [s[2], 0, -s[0]], [-s[1], s[0], 0]])
        term = np.array([rate[0], rate[1], 0.0])
        total = term.copy()
        for k in range(1, 60):  # Σ (-1)^k / (k + 1)! [s]^k
            term = -cross @ term / (k + 1)
            total += term
        total = sy.Rotation.from_rotvec([0, 0, -twist]).apply(total) + np.array([0, 0, rate[2]])
        found = np.empty(3)
        turned(LIMIT.row()[None], np.array([s[0], s[1], twist, *rate]), found)
        np.testing.assert_allclose(found, frame @ total, rtol=0, atol=3e-13)


def test_a_ball_whose_swing_is_free_has_no_bounds_but_those_of_its_twist():
    limit = sy.SwingTwist.about((0, 0, 1), x=(np.pi, np.pi), y=(np.pi, np.pi), twist=(-0.4, 0.9))
    box = box_at(np.array([0.1, 0.2, 0.0, np.sqrt(0.95)]), limit)
    assert (box[:2, 0] < -1e10).all()
    assert (box[:2, 1] > 1e10).all()
    np.testing.assert_allclose(box[2, :2], limit.twist, atol=1e-9)


@entry
def way_out(limit, s, out):
    """Write what ``outward`` returns at a swing vector."""
    f, slope, n, bend = ellipse_normal(limit, 0, (s[0], s[1]))
    out[0], out[1], out[2], out[3], out[4] = f, slope, n[0], n[1], bend


@pytest.mark.parametrize("share", [0.02, 0.5, 1.0, 1.2])
@pytest.mark.parametrize("angle", [0.3, 1.2, 2.0, 2.9, 3.6, 4.4, 5.0, 6.0])
def test_the_way_out_of_an_ellipse_is_the_gradient_of_the_place_on_it(angle, share):
    """Slope and normal by differences; the curvature is that of the line on which the place is the same."""
    (left, right), (down, up) = LIMIT.x, LIMIT.y
    a, b = (right if np.cos(angle) > 0 else left), (up if np.sin(angle) > 0 else down)

    def point(t, scale=share):
        return scale * np.array([a * np.cos(t), b * np.sin(t)])

    def place_of(s):
        return np.hypot(s[0] / a, s[1] / b)

    s = point(angle)
    out = np.empty(5)
    way_out(LIMIT.row()[None], s, out)
    assert out[0] == pytest.approx(share, rel=1e-12)
    h = 1e-6 * share
    gradient = [(place_of(s + h * e) - place_of(s - h * e)) / (2 * h) for e in np.eye(2)]
    assert out[1] == pytest.approx(np.linalg.norm(gradient), rel=1e-6)
    np.testing.assert_allclose(out[2:4], gradient / np.linalg.norm(gradient), atol=1e-6)
    before, middle, after_ = point(angle - 1e-4), point(angle), point(angle + 1e-4)
    speed, bent = (after_ - before) / 2e-4, (after_ - 2 * middle + before) / 1e-8
    curvature = (speed[0] * bent[1] - speed[1] * bent[0]) / np.linalg.norm(speed) ** 3
    assert out[4] == pytest.approx(curvature, rel=1e-4)


def test_the_way_out_of_the_middle_is_a_direction():
    out = np.empty(5)
    way_out(LIMIT.row()[None], np.zeros(2), out)
    assert np.isfinite(out).all()
    assert out[0] < 1e-9
    assert np.hypot(out[2], out[3]) == pytest.approx(1.0, abs=1e-12)
