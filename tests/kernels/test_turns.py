"""Turns of single joints: the best angle of a hinge, whole turns within limits, and what limits cost a ball."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import synovia as sy
from probes import Probe
from synovia.kernels.compiler.jit import entry
from synovia.kernels.jacobian.secondary import ball_range_cost, manipulability_gradient
from synovia.kernels.math.two_segments import nearest_turn
from synovia.kernels.tree.problem import open_general, open_work
from synovia.kernels.tree.turn import hinge_angle

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone

PI = np.pi
ENDS = st.floats(-20, 20, allow_nan=False).map(lambda x: round(x, 3))


@entry
def best_angle(v, out):
    """Write the angle of a hinge; v: A, B, where it stands, and its limits."""
    out[0] = hinge_angle(v[0], v[1], v[2], v[3], v[4])


def angle_of(A, B, x, lower, upper):
    """Return the angle of a hinge."""
    out = np.zeros(1)
    best_angle(np.array([A, B, x, lower, upper], float), out)
    return out[0]


@given(way=st.floats(-PI, PI), x=ENDS, lower=ENDS, width=st.floats(0, 15))
def test_a_hinge_turns_to_the_best_angle_that_its_limits_leave(way, x, lower, width):
    """No angle of the range gains more (by a scan); where the best one is free, the turn is at most half a circle."""
    upper = lower + width
    x = min(max(x, lower), upper)
    A, B = 2.0 * np.cos(way), 2.0 * np.sin(way)
    found = angle_of(A, B, x, lower, upper)
    assert lower <= found <= upper
    scan = np.linspace(lower, upper, 2001)

    def gain(angle):
        return A * np.cos(angle - x) + B * np.sin(angle - x)

    assert gain(found) >= gain(scan).max() - 1e-9
    if lower <= x + way <= upper:
        assert abs(found - x) <= PI + 1e-9


@pytest.mark.parametrize(
    ("x", "way", "lower", "upper", "wanted"),
    [
        pytest.param(0.0, 1.0, -2, 2, 1.0, id="free"),
        pytest.param(0.0, 3.0, -1, 1, 1.0, id="beyond the upper end, which is nearer"),
        pytest.param(0.0, -3.0, -1, 1, -1.0, id="beyond the lower end, which is nearer"),
        pytest.param(0.0, 3.0, -1.0, 0.5, -1.0, id="beyond the upper end, the lower is nearer round the back"),
        pytest.param(2.5, 2.0, -3, 3, 4.5 - 2 * PI, id="the same angle a turn below"),
        pytest.param(-2.5, -2.0, -3, 3, 2 * PI - 4.5, id="the same angle a turn above"),
        pytest.param(9.0, 1.0, -10, 10, 10.0, id="in a range of several turns"),
        pytest.param(9.0, 2.0, -10, 10, 11.0 - 2 * PI, id="a turn back in a wide range"),
        pytest.param(0.3, 1.0, 0.3, 0.3, 0.3, id="a range of one angle"),
    ],
)
def test_edges_of_a_hinge(x, way, lower, upper, wanted):
    assert angle_of(np.cos(way), np.sin(way), x, lower, upper) == pytest.approx(wanted, abs=1e-12)


@entry
def whole_turns(v, out):
    """Write the angle and whether there is one; v: the angle, what it should be near to, and the limits."""
    best, fits = nearest_turn(v[0], v[1], v[2], v[3])
    out[0], out[1] = best, 1.0 if fits else 0.0


@given(angle=st.floats(-PI, PI), at=ENDS, lower=ENDS, width=st.floats(0, 15))
def test_whole_turns_come_within_the_limits_as_near_as_they_can(angle, at, lower, width):
    """Against all whole turns; where none is within the limits, that is told."""
    upper = lower + width
    out = np.zeros(2)
    whole_turns(np.array([angle, at, lower, upper], float), out)
    every = angle + 2 * PI * np.arange(-12, 13)
    inside = every[(every >= lower) & (every <= upper)]
    edge = np.abs(np.concatenate([every - lower, every - upper])).min() < 1e-9
    if edge:
        return
    assert bool(out[1]) is bool(len(inside))
    if len(inside):
        assert abs(out[0] - at) <= np.abs(inside - at).min() + 1e-9
        assert np.abs(every - out[0]).min() < 1e-9


@entry
def prices(ints, floats, q, out):
    """Write what the limit of the first variable costs."""
    problem = open_general(ints, floats)
    out[0] = ball_range_cost(problem.params, problem.limits, 0, q)


@pytest.mark.parametrize("margins", [0.0, 3.0])
def test_what_a_limit_costs_a_ball_counts_fractions_of_its_range(margins):
    """The same on every side of the ellipse: a fraction squared, and beyond the margin more; twist apart."""
    x, y, twist = (0.9, 0.3), (0.4, 1.2), (-0.5, 1.1)
    body = sy.Skeleton([sy.Joint("ball", kind=sy.Kind.BALL, limit=sy.SwingTwist(x=x, y=y, twist=twist))])
    objective = sy.NullSpace(center=2.0, **({"margins": margins, "margin": 0.3} if margins else {}))
    ik = sy.IK(body, sy.RotationGoal("ball"), sy.LevenbergMarquardt(null_space=objective))
    turn = twist[0] + twist[1]  # of the middle of the twist, doubled

    def price_of(fraction, angle, part):
        c, s = np.cos(angle), np.sin(angle)
        swing = fraction * np.array([c * (x[1] if c >= 0 else x[0]), s * (y[1] if s >= 0 else y[0]), 0.0])
        twisted = 0.5 * turn + 0.5 * part * (twist[1] - twist[0])
        q = (sy.Rotation.from_rotvec(swing) * sy.Rotation.from_rotvec((0, 0, twisted))).as_quat()
        out = np.zeros(1)
        prices(ik.problem.ints, ik.problem.floats, q, out)
        return out[0]

    def wanted(fraction):
        return 2.0 * fraction**2 + margins * max(0.0, abs(fraction) - 0.7) ** 2

    for angle in np.linspace(0.1, 6.1, 9):
        for fraction in (0.0, 0.4, 0.9, 1.0):
            for part in (-1.0, -0.2, 0.0, 0.8):
                assert price_of(fraction, angle, part) == pytest.approx(wanted(fraction) + wanted(part), abs=1e-9)


@entry
def volume_gradient(ints, floats, scratch, targets, q, objective):
    """Write what the manipulability asks for."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    manipulability_gradient(problem, work, targets, q, objective)


def test_the_objective_of_manipulability_is_the_gradient_of_the_volume():
    """Of log √det(J Jᵀ) by differences along every column: of a hinge, a slide and the three of a ball."""
    rest = np.eye(4)
    rest[:3, 3] = 0.5, 0.2, 0.1
    joints = [
        sy.Joint("turn", kind=sy.Kind.HINGE, axis=(0, 1, 0.2)),
        sy.Joint("slide", "turn", sy.Kind.SLIDE, rest, axis=(0, 0, 1)),
        sy.Joint("ball", "slide", sy.Kind.BALL, rest),
        sy.Joint("tip", "ball", rest=rest, tip=True),
    ]
    body = sy.Skeleton(joints)
    settings = sy.LevenbergMarquardt(null_space=sy.NullSpace(manipulability=2.0))
    ik = sy.IK(body, sy.PositionGoal("tip"), settings)
    q = body.random_pose(3).q.copy()
    probe = Probe(ik, q)

    def volume(at):
        J, _ = Probe(ik, at).jacobian()
        return 0.5 * np.linalg.slogdet(J @ J.T + 1e-12 * np.eye(len(J)))[1]

    def moved(column, h):
        at = q.copy()
        if column < 2:
            at[column] += h * (ik.reach if column == 1 else 1.0)
        else:
            turn = sy.Rotation.from_quat(q[2:6]) * sy.Rotation.from_rotvec(h * np.eye(3)[column - 2])
            at[2:6] = turn.as_quat()
        return at

    objective = np.zeros(probe.columns)
    volume_gradient(*probe.packed, q, objective)
    slopes = [(volume(moved(c, 1e-4)) - volume(moved(c, -1e-4))) / 2e-4 for c in range(probe.columns)]
    np.testing.assert_allclose(objective, -2.0 * np.array(slopes), atol=1e-6)
    assert np.abs(objective[2:]).max() > 1e-3
