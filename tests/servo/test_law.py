"""The law of every tick: differences of samples keep all limits, and the body can always stop inside its limits."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import synovia as sy
from conftest import UNCOMPILED
from servo.judge import differences, excesses
from synovia.kernels import layout as L
from synovia.kernels.servo.tick import servo_reset, servo_tick

NONE = np.zeros((0, 2), np.int32), np.zeros((0, 2))
EXAMPLES = 3 if UNCOMPILED else 15
BALLS = ["left_hand", "left_upper_leg", "head", "spine"]  # of the bundled humanoid


class Line:
    """Some slides, each with limits of its own, and the samples that the kernel returned."""

    def __init__(self, rng, n, jerk, h):
        self.variables = np.zeros((n, 3), np.int32)
        self.variables[:, L.BLOCK_Q] = self.variables[:, L.BLOCK_COLUMN] = np.arange(n)
        self.limits = np.zeros((n, L.LIMIT_WIDTH))
        width, centre = 10.0 ** rng.uniform(-3.0, 0.7, n), rng.uniform(-1.0, 1.0, n)
        self.limits[:, L.LOWER], self.limits[:, L.UPPER] = centre - width, centre + width
        self.V = 10.0 ** rng.uniform(-1.0, 1.0, n)
        self.A = self.V * 10.0 ** rng.uniform(-0.5, 2.0, n)
        self.J = self.A * 10.0 ** rng.uniform(-0.5, 2.5, n) if jerk else None
        self.axes = np.zeros((n, L.AXIS_WIDTH))
        self.write(self.V, self.A, self.J)
        servo_reset(self.axes, np.zeros(n), h)
        self.q = rng.uniform(self.limits[:, L.LOWER], self.limits[:, L.UPPER])
        self.wanted = self.q.copy()
        self.samples, self.times = [self.q], []

    def write(self, V, A, J):
        self.axes[:, L.TOP_SPEED], self.axes[:, L.TOP_ACCELERATION] = V, A
        self.axes[:, L.TOP_JERK] = np.inf if J is None else J

    def step(self, wanted, h, parts=0):
        low, high = self.limits[:, L.LOWER], self.limits[:, L.UPPER]
        before, self.wanted = self.wanted, np.clip(wanted, low, high)
        out = np.empty_like(self.q)
        servo_tick(self.variables, self.limits, *NONE, self.axes, self.q, self.wanted, before, out, h, parts)
        assert np.isfinite(out).all()
        assert (self.axes[:, L.NEXT_LOWER] <= self.axes[:, L.NEXT_UPPER]).all()  # the next box is not empty
        self.q = out
        self.samples.append(out)
        self.times.append(h)

    def worst(self):
        """The largest excess of a difference, and of a position."""
        q, times = np.array(self.samples), np.array(self.times)
        beyond = np.maximum(q - self.limits[:, L.UPPER], self.limits[:, L.LOWER] - q).max()
        ulp = np.spacing(np.abs(q).max(0))
        return excesses(differences(q, times), (self.V, self.A, self.J), ulp, times.min()), beyond


def adversary(rng, line, velocity):
    """Targets that jump, go to the limits, move steadily, stop, or are noise."""
    n = len(line.q)
    low, high = line.limits[:, L.LOWER], line.limits[:, L.UPPER]
    u = rng.uniform(size=n)
    end = np.where(rng.uniform(size=n) < 0.5, low, high)
    wanted = np.where(u < 0.02, rng.uniform(low, high), np.where(u < 0.03, end, line.wanted))
    wanted = np.where(u > 0.99, line.q + line.V * 1e-3 * rng.normal(size=n), wanted)
    velocity[:] = np.where(rng.uniform(size=n) < 0.02, rng.normal(size=n) * line.V, velocity)
    velocity[rng.uniform(size=n) < 0.01] = 0.0
    return wanted


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("jerk", [False, True], ids=["acceleration", "jerk"])
@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
@example(seed=4036702)  # an axis swung to and fro when it was to brake
@given(seed=st.integers(0, 2**31))
@settings(max_examples=15, deadline=None)
def test_every_tick_keeps_all_limits_and_every_state_can_stop(seed, jerk, uneven):
    rng = np.random.default_rng(seed)
    h = 10.0 ** rng.uniform(-3.0, -1.5)
    line = Line(rng, 32, jerk, h)
    velocity = np.zeros(32)
    held = int(rng.integers(50, 400))
    for k in range(held + 200):
        dt = h * 10.0 ** rng.uniform(-0.5, 0.5) if uneven else h
        if k < held:
            line.step(adversary(rng, line, velocity) + velocity * dt, dt)
        else:
            line.step(line.wanted, dt, L.STOP)
        assert not (line.axes[:, L.REASON] == L.RECOVERING).any()
    excess, beyond = line.worst()
    assert excess <= 0.0
    assert beyond <= SMALL
    longest = (line.V / line.A + (0.0 if line.J is None else 2.0 * line.A / line.J)).max()
    for _ in range(int(min(longest / h, 20_000)) + 20):
        line.step(line.wanted, h, L.STOP)
    still = line.q.copy()
    line.step(line.wanted, h, L.STOP)
    moving = np.abs(line.q - still) > 4.0 * np.spacing(np.abs(still))
    assert not moving[line.V / line.A + (0.0 if line.J is None else 2.0 * line.A / line.J) < 20_000 * h].any()


SMALL = 1e-9  # radians or length units: slack of limits of positions


@pytest.mark.parametrize("jerk", [False, True], ids=["acceleration", "jerk"])
@given(seed=st.integers(0, 2**31))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_jump_arrives_without_overshoot_and_stays(seed, jerk):
    rng = np.random.default_rng(seed)
    line = Line(rng, 4, jerk, 0.005)
    line.V, line.A, line.J = np.full(4, 2.0), np.full(4, 10.0), np.full(4, 100.0) if jerk else None
    line.write(line.V, line.A, line.J)
    begin, end = line.q.copy(), rng.uniform(line.limits[:, L.LOWER], line.limits[:, L.UPPER])
    least = np.abs(end - begin) / 2.0 + 2.0 / 10.0 + (0.1 if jerk else 0.0)
    for _ in range(int(2.0 * least.max() / 0.005) + 20):
        line.step(end, 0.005)
    q = np.array(line.samples)
    side = np.sign(end - begin)
    assert (side * (q - end)).max() <= (5.0 * 100.0 * 0.005**3 if jerk else 1e-9)  # the last change of the jerk
    np.testing.assert_allclose(q[-1], end, atol=1e-12)
    assert line.worst()[0] <= 0.0


@pytest.mark.parametrize("jerk", [False, True], ids=["acceleration", "jerk"])
@given(seed=st.integers(0, 2**31))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_motion_that_keeps_the_limits_is_followed_exactly(seed, jerk):
    rng = np.random.default_rng(seed)
    line = Line(rng, 4, jerk, 0.01)
    line.limits[:, L.LOWER], line.limits[:, L.UPPER] = -3.0, 3.0
    line.q = line.wanted = np.zeros(4)
    line.samples = [line.q]
    line.V, line.A, line.J = np.full(4, 3.0), np.full(4, 20.0), np.full(4, 400.0) if jerk else None
    line.write(line.V, line.A, line.J)
    speed = rng.uniform(0.5, 2.0, 4)
    wanted = np.zeros(4)
    for k in range(400):
        t = 0.01 * (k + 1)
        wanted = np.sin(speed * t) * min(t / 2.0, 1.0) ** 3
        line.step(wanted, 0.01)
    np.testing.assert_allclose(line.q, wanted, atol=1e-9)


@pytest.mark.parametrize("jerk", [False, True], ids=["acceleration", "jerk"])
@given(seed=st.integers(0, 2**31))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_lower_limit_of_speed_opens_a_recovery_in_which_the_speed_falls(seed, jerk):
    rng = np.random.default_rng(seed)
    line = Line(rng, 8, jerk, 0.01)
    line.limits[:, L.LOWER], line.limits[:, L.UPPER] = -50.0, 50.0
    line.q = line.wanted = np.full(8, rng.uniform(-1.0, 1.0))  # axes with ways of one length are equally fast
    line.samples = [line.q]
    line.V, line.A, line.J = np.full(8, 4.0), np.full(8, 10.0), np.full(8, 200.0) if jerk else None
    line.write(line.V, line.A, line.J)
    for _ in range(150):
        line.step(np.full(8, 40.0), 0.01)
    assert (line.axes[:, L.AXIS_VELOCITY] > 3.9).all()
    line.write(0.25 * line.V, line.A, line.J)
    speeds = [line.axes[:, L.AXIS_VELOCITY].copy()]
    recovering = 0
    for _ in range(100):
        line.step(np.full(8, 40.0), 0.01)
        speeds.append(line.axes[:, L.AXIS_VELOCITY].copy())
        recovering += int((line.axes[:, L.REASON] == L.RECOVERING).any())
    fall = np.diff(np.array(speeds)[: recovering + 1], axis=0)
    assert recovering > 0
    assert (fall <= 1e-12).all()
    assert recovering * 0.01 <= 4.0 / 10.0 + 2.0 * 10.0 / 200.0  # the time of a whole stop
    np.testing.assert_allclose(line.axes[:, L.AXIS_VELOCITY], 1.0, atol=1e-9)
    assert line.worst()[0] <= 0.0  # acceleration and jerk hold in the recovery, too


@pytest.mark.parametrize("jerk", [False, True], ids=["acceleration", "jerk"])
@pytest.mark.parametrize(
    ("joint", "count"),
    [("left_hand", 1), *(pytest.param(joint, 20, marks=pytest.mark.compiled) for joint in BALLS)],
)
def test_a_ball_comes_to_a_place_on_its_limits_and_stays(joint, count, jerk):
    """A straight stop along a curved limit leaves it, and a turn may leave the limits in between."""
    body = sy.bundled("humanoid")
    row = body.joint_names.index(joint)
    tables = body.tables
    k = int(np.flatnonzero(tables.owner == row)[0])
    limits, variables = tables.limits[k : k + 1].copy(), np.array([[tables.variables[k, L.BLOCK], 0, 0]], np.int32)
    rng, h, top = np.random.default_rng(3), 0.01, np.array([2.0, 10.0, 100.0 if jerk else np.inf])
    for _ in range(count):
        q, end = (sy.Pose(body, {joint: turn.as_quat()}).inside[0][body.q_slice(row)].copy()
                  for turn in sy.Rotation.from_rotvec(rng.normal(size=(2, 3)) * 3.0))  # fmt: skip
        axes = np.zeros((3, L.AXIS_WIDTH))
        axes[:, [L.TOP_SPEED, L.TOP_ACCELERATION, L.TOP_JERK]] = top
        servo_reset(axes, np.zeros(3), h)
        places = []
        for _ in range(2000):
            out = np.empty(4)
            servo_tick(variables, limits, *NONE, axes, q, end, end, out, h, 0)
            q = out
            places.append(q)
        angles = 2.0 * np.arccos(np.minimum(np.abs(np.array(places[-200:]) @ end), 1.0))
        assert angles.max() <= 1e-6
