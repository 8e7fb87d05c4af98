"""Live input as it is: twists, clutches, slow targets, chunks of a policy, and time stamps."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import synovia as sy
from servo.test_servo import NEAR, arm, run, worst
from synovia.servo.targets import Curve, exp_turn, log_turn

LATE_MODES = pytest.mark.parametrize("late", ["deviate", "slow"])


def place(command):
    return command.pose.position("tool")


def shifted(frame, way, turn=(0.0, 0.0, 0.0)):
    out = frame.copy()
    out[:3, 3] += way
    out[:3, :3] = sy.Rotation.from_rotvec(turn).as_matrix() @ out[:3, :3]
    return out


# --- Twists ----------------------------------------------------------------------------------------------------------


@LATE_MODES
def test_a_twist_moves_the_end_effector_and_zero_stops_it_without_a_way_back(late):
    servo = arm(late=late)
    begin = servo.step(dt=0.0).pose
    moving = run(servo, 100, sy.Twist((0.1, -0.05, 0.08), (0.0, 0.0, 0.3)))
    way = place(moving[-1]) - begin.position("tool")
    np.testing.assert_allclose(way, (0.1, -0.05, 0.08), atol=1e-4 if late == "deviate" else 1.5e-2)
    turn = (sy.Rotation.from_matrix(moving[-1].pose.matrix("tool") @ begin.matrix("tool").T)).as_rotvec()
    np.testing.assert_allclose(turn, (0.0, 0.0, 0.3), atol=3e-3 if late == "deviate" else 4e-2)
    stopping = run(servo, 100, sy.Twist())
    np.testing.assert_allclose(stopping[-1].velocity, 0.0, atol=1e-9)
    axis = np.array((0.1, -0.05, 0.08)) / np.linalg.norm((0.1, -0.05, 0.08))
    along = np.array([place(command) @ axis for command in stopping])
    assert along.max() - along[-1] < 2e-4
    assert worst(moving + stopping, servo) <= 0.0


def test_a_twist_along_the_axes_of_a_joint_does_not_depend_on_what_becomes_of_a_command():
    servo, other = arm(), arm()
    for k in range(20):
        command, same = (one.step(sy.Twist((0.0, 0.1, 0.0), frame="joint4")) for one in (servo, other))
        np.testing.assert_array_equal(command.q, same.q, err_msg=str(k))
        command.velocity[:] = np.degrees(command.velocity)  # it belongs to the user
        with pytest.raises(ValueError, match="read-only"):
            command.q[:] = np.degrees(command.q)


def test_a_twist_goes_on_for_the_timeout_and_then_the_body_stops():
    servo = arm(timeout=0.2)
    moving = run(servo, 50, sy.Twist((0.0, 0.1, 0.0)))
    kept = run(servo, 19, None)
    np.testing.assert_allclose(place(kept[-1]) - place(moving[-1]), (0.0, 0.019, 0.0), atol=2e-3)
    lost = run(servo, 100, None)
    assert lost[-1].status is sy.Status.HOLDING
    assert np.linalg.norm(place(lost[-1]) - place(kept[-1])) < 0.02
    back = run(servo, 50, sy.Twist((0.0, -0.1, 0.0)))
    assert back[-1].status is not sy.Status.HOLDING
    assert worst(moving + kept + lost + back, servo) <= 0.0


@pytest.mark.slow
@LATE_MODES
def test_a_twist_out_of_reach_does_not_wind_up(late):
    servo = arm(late=late, jerk=120.0 if late == "deviate" else None)
    out = run(servo, 1500, sy.Twist((0.4, 0.0, 0.1)))
    assert np.abs(out[-1].velocity).max() < 0.2
    assert out[-1].lag.position < 0.4 * 0.6  # not six metres
    back = run(servo, 100 if late == "deviate" else 300, sy.Twist((-0.4, 0.0, -0.1)))
    assert place(out[-1])[0] - place(back[-1])[0] > 0.05
    assert worst(out + back, servo, 120.0 if late == "deviate" else None) <= 0.0


@pytest.mark.parametrize("way", [(0.3, 0.0, 0.0), (0.0, 0.0, 0.3), (0.2, 0.2, -0.1)])
def test_a_straight_arm_comes_back_when_its_twist_turns_around(way):
    servo, way = arm(), np.array(way)
    out = run(servo, 1000, sy.Twist(way))
    back = run(servo, 200, sy.Twist(-way))
    assert (place(out[-1]) - place(back[-1])) @ way / np.linalg.norm(way) > 0.1
    assert worst(out + back, servo) <= 0.0


def test_the_axes_of_a_twist_are_those_of_the_world_the_end_effector_or_a_joint():
    for frame in ("world", "local", "tool", "joint1"):
        servo = arm()
        before = servo.step(dt=0.0).pose
        after = run(servo, 100, sy.Twist((0.0, 0.06, 0.08), frame=frame))[-1]
        R = np.eye(3) if frame == "world" else before.matrix("tool" if frame == "local" else frame)
        way = place(after) - before.position("tool")
        np.testing.assert_allclose(way, R @ (0.0, 0.06, 0.08), atol=1e-2 if frame == "joint1" else 3e-3)
    servo = sy.Servo(sy.bundled("arm7"), sy.PositionGoal("tool"), rate=100, velocity=1.5, acceleration=8.0)
    servo.reset(before)
    after = servo.step(sy.Twist((0.0, 0.0, 0.1), frame="local"))
    for _ in range(20):
        after = servo.step(sy.Twist((0.0, 0.0, 0.1), frame="local"))
    assert (place(after) - before.position("tool")) @ before.matrix("tool")[:, 2] > 0.01


@example(seed=5376965)  # the body goes far beside the line of a turn
@given(seed=st.integers(0, 2**31))
@settings(max_examples=10, deadline=None)
def test_under_any_twists_the_target_stays_near_the_body_and_limits_hold(seed):
    rng = np.random.default_rng(seed)
    servo, commands, twist = arm(jerk=100.0), [], sy.Twist()
    for _ in range(400):
        if rng.uniform() < 0.03:
            size = rng.choice([0.0, 0.05, 0.3], 2)
            frame = str(rng.choice(["world", "local"]))
            twist = sy.Twist(size[0] * rng.uniform(-1, 1, 3), 3.0 * size[1] * rng.uniform(-1, 1, 3), frame)
        commands.append(servo.step(twist if rng.uniform() < 0.9 else None))
    assert worst(commands, servo, 100.0) <= 0.0
    assert not any("recovering" in command.limited.values() for command in commands)
    assert max(command.lag.position for command in commands) < 0.6


BAD_TWISTS = {
    "numbers": (lambda: sy.Twist((1.0, 2.0)), r"Twist: linear: expected \(3,\)"),
    "nan": (lambda: sy.Twist((0.0, 0.0, np.nan)), "Twist: linear: expected finite"),
    "frame": (lambda: sy.Twist(frame=3), "Twist: frame: expected 'world', 'local'"),
}


@pytest.mark.parametrize("case", BAD_TWISTS)
def test_twists_that_cannot_be_used_are_refused(case):
    make, words = BAD_TWISTS[case]
    with pytest.raises(sy.InputError, match=words):
        make()


def test_twists_that_a_goal_cannot_follow_are_refused():
    servo = sy.Servo(sy.bundled("arm7"), sy.PositionGoal("tool"), rate=100, velocity=1.5, acceleration=8.0)
    servo.reset()
    with pytest.raises(sy.InputError, match="angular part of the twist of 'tool': expected zero for a goal without"):
        servo.step(sy.Twist(angular=(0.0, 0.0, 1.0)))
    with pytest.raises(sy.errors.UnknownNameError, match="'hook'"):
        servo.step(sy.Twist((0.1, 0.0, 0.0), frame="hook"))
    with pytest.raises(sy.errors.UnknownNameError, match="'hook'"):
        servo.step({"hook": sy.Twist()})
    aim = sy.Servo(
        sy.bundled("arm7"), sy.DirectionGoal("tool", (1.0, 0.0, 0.0)), rate=100, velocity=1.5, acceleration=8.0
    )
    aim.reset()
    with pytest.raises(sy.InputError, match="twist of 'tool': expected a goal with a position"):
        aim.step(sy.Twist())
    assert sy.Twist((1.0, 0.0, 0.0)) == sy.Twist([1, 0, 0])
    assert hash(sy.Twist()) == hash(sy.Twist())


# --- Clutches --------------------------------------------------------------------------------------------------------


@LATE_MODES
def test_a_clutch_couples_motion_and_not_places(late):
    servo = arm(late=late)
    begin = servo.step(dt=0.0).pose.transform("tool")
    clutch = servo.clutch("tool", scale=(0.5, 2.0))
    hand = shifted(np.eye(4), (5.0, 5.0, 5.0), (0.0, 1.0, 0.0))
    idle = run(servo, 5, {"tool": hand})
    np.testing.assert_array_equal(idle[-1].velocity, 0.0)  # it begins released
    clutch.engage()
    idle = run(servo, 5, {"tool": hand})
    np.testing.assert_allclose(idle[-1].pose.transform("tool"), begin, atol=2e-4)
    moved = run(servo, 300, {"tool": shifted(hand, (0.1, 0.0, -0.06), (0.0, 0.0, 0.2))})
    np.testing.assert_allclose(place(moved[-1]) - begin[:3, 3], (0.05, 0.0, -0.03), atol=3e-4)
    turn = sy.Rotation.from_matrix(moved[-1].pose.matrix("tool") @ begin[:3, :3].T).as_rotvec()
    np.testing.assert_allclose(turn, (0.0, 0.0, 0.4), atol=2e-3)
    clutch.release()
    away = run(servo, 200, {"tool": shifted(hand, (-0.4, 0.3, 0.3), (1.0, 0.0, 0.0))})
    assert away[-1].status is sy.Status.HOLDING
    assert "clutch of 'tool' is released" in away[-1].explain()[0]
    np.testing.assert_allclose(place(away[-1]), place(moved[-1]), atol=1e-3)
    clutch.engage()
    again = run(servo, 5, {"tool": shifted(hand, (-0.4, 0.3, 0.3), (1.0, 0.0, 0.0))})
    np.testing.assert_allclose(place(again[-1]), place(away[-1]), atol=3e-4)
    assert worst(idle + moved + away + again, servo) <= 0.0


@given(seed=st.integers(0, 2**31))
@settings(max_examples=10, deadline=None)
def test_no_clutch_makes_a_jump_of_the_target(seed):
    rng = np.random.default_rng(seed)
    servo = arm(jerk=100.0)
    clutch = servo.clutch("tool", scale=0.7)
    hand, commands, targets = np.eye(4), [], []
    for _ in range(400):
        hand = shifted(hand, rng.normal(size=3) * 2e-3, rng.normal(size=3) * 5e-3)
        if rng.uniform() < 0.03:
            (clutch.engage if rng.uniform() < 0.5 else clutch.release)()
        if not clutch.engaged and rng.uniform() < 0.2:
            hand = shifted(hand, rng.normal(size=3))
        before = clutch.engaged
        commands.append(servo.step({"tool": hand}))
        targets.append((before, servo._parts[0]._live.table[0, 0, :16].reshape(4, 4)[:3, 3].copy()))
    assert worst(commands, servo, 100.0) <= 0.0
    jumps = [np.linalg.norm(b - a) for (_, a), (engaged, b) in pairwise(targets) if engaged]
    assert max(jumps, default=0.0) < 0.02


def test_turns_of_a_scaled_controller_go_on_beyond_half_a_turn():
    servo = arm(velocity=6.0, acceleration=60.0)
    begin = servo.step(dt=0.0).pose.transform("tool")
    clutch = servo.clutch("tool", scale=(1.0, 0.1))
    clutch.engage()
    for k in range(400):
        command = servo.step({"tool": shifted(np.eye(4), (0.0, 0.0, 0.0), (0.0, 0.0, 0.02 * k))})
    run(servo, 50, {"tool": shifted(np.eye(4), (0.0, 0.0, 0.0), (0.0, 0.0, 8.0))})
    command = servo.step(dt=0.0)
    turn = sy.Rotation.from_matrix(command.pose.matrix("tool") @ begin[:3, :3].T).as_rotvec()
    np.testing.assert_allclose(turn, (0.0, 0.0, 0.8), atol=3e-3)


def test_a_clutch_lets_other_goals_go_on():
    body = sy.bundled("humanoid")
    goals = [sy.PoseGoal("hips"), sy.PositionGoal("left_hand", priority=1), sy.PositionGoal("right_hand", priority=1)]
    servo = sy.Servo(body, goals, rate=100, velocity=2.0, acceleration=10.0, root="free")
    servo.reset()
    rest = servo.skeleton.rest_pose()
    clutch = servo.clutch("left_hand")
    clutch.engage()
    right = rest.position("right_hand") + np.array((0.0, 0.05, 0.05))
    for k in range(100):
        command = servo.step({"left_hand": (0.0, 0.001 * k, 0.0), "right_hand": right})
    clutch.release()
    for _ in range(100):
        command = servo.step({"left_hand": (9.0, 9.0, 9.0), "right_hand": right - 0.02})
    assert command.status is not sy.Status.HOLDING
    assert np.linalg.norm(command.pose.position("left_hand") - rest.position("left_hand")) < 0.2
    assert np.linalg.norm(command.pose.position("right_hand") - right + 0.02) < 0.02


def test_clutches_that_cannot_be_made_are_refused():
    servo = arm()
    with pytest.raises(sy.InputError, match="scale: expected a number from 0"):
        servo.clutch("tool", scale=-1.0)
    with pytest.raises(sy.InputError, match="scale"):
        servo.clutch("tool", scale=(1.0, 2.0, 3.0))
    with pytest.raises(sy.errors.UnknownNameError, match="'hook'"):
        servo.clutch("hook")
    aim = sy.Servo(
        sy.bundled("arm7"), sy.DirectionGoal("tool", (1.0, 0.0, 0.0)), rate=100, velocity=1.5, acceleration=8.0
    )
    aim.reset()
    with pytest.raises(sy.InputError, match="clutch of 'tool': expected a goal with a position"):
        aim.clutch("tool")


# --- Slow targets and chunks -----------------------------------------------------------------------------------------


def course(t):
    """A place that moves, and turns."""
    t = max(t, 0.0)
    way = (0.06 * (1 - np.cos(2.0 * t)), 0.08 * (1 - np.cos(1.7 * t)), 0.04 * (1 - np.cos(3.0 * t)))
    return shifted(NEAR, way, (0.0, 0.0, 0.3 * (1 - np.cos(1.5 * t))))


@pytest.mark.slow
@pytest.mark.parametrize("hertz", [10, 20, 60])
def test_slow_targets_are_followed_smoothly_with_the_stated_lag(hertz):
    lag = 2.0 / hertz
    servo = arm(rate=500, velocity=3.0, acceleration=30.0, interpolation=lag)
    run(servo, 1000, {"tool": course(0.0)})
    begin, commands, off = servo.time, [], []
    for k in range(1500):
        t = servo.time - begin
        target = {"tool": course(t)} if k % (500 // hertz) == 0 else None
        commands.append(servo.step(target, at=servo.time if target else None))
        t = commands[-1].time - begin
        if t > 1.0:
            off.append(np.linalg.norm(place(commands[-1]) - course(t - lag)[:3, 3]))
    assert max(off) < (4e-3 if hertz == 10 else 1e-3)
    q = np.array([command.q for command in commands[500:]])
    jumps = np.abs(np.diff(q, n=2, axis=0)).max() * 500**2  # of the velocity, per second
    assert jumps < (10.0 if hertz == 10 else 6.0)
    assert worst(commands, servo, velocity=3.0, acceleration=30.0) <= 0.0


def test_a_lag_longer_than_the_timeout_does_not_lose_a_target():
    servo = arm(timeout=0.1, interpolation=0.5)
    servo.step({"tool": NEAR})
    commands = run(servo, 55, None)
    np.testing.assert_allclose(place(commands[-1]), NEAR[:3, 3], atol=1e-3)
    assert commands[-1].status is not sy.Status.HOLDING
    assert run(servo, 20, None)[-1].status is sy.Status.HOLDING


def test_a_jump_of_a_slow_target_does_not_overshoot():
    servo = arm(rate=250, velocity=3.0, acceleration=30.0, interpolation=0.1)
    run(servo, 500, {"tool": NEAR})
    end = shifted(NEAR, (0.1, 0.0, 0.0))
    for k in range(250):
        command = servo.step({"tool": end} if k % 12 == 0 else None)
        assert place(command)[0] < NEAR[0, 3] + 0.1 + 1e-3
    assert place(command)[0] > NEAR[0, 3] + 0.1 - 1e-3


@pytest.mark.slow
@given(seed=st.integers(0, 2**31))
@settings(max_examples=20, deadline=None)
def test_a_curve_never_jumps_in_place_or_velocity_and_is_at_its_samples_in_time(seed):
    rng = np.random.default_rng(seed)
    curve, now, last = Curve(NEAR, 0.0), 0.0, NEAR
    expected = {}

    def same(a, b, atol):
        np.testing.assert_allclose(a.frame, b.frame, atol=atol)
        if curve.moves:  # where samples end before others come, it stops
            np.testing.assert_allclose(a.velocity, b.velocity, atol=1e3 * atol)
            np.testing.assert_allclose(a.turning, b.turning, atol=1e3 * atol)

    for k in range(200):
        before = curve._state(now)
        if k % 10 == 0 and rng.uniform() < 0.7:
            last = shifted(last, rng.normal(size=3) * 0.02, rng.normal(size=3) * 0.1)
            curve.append(now + 0.1, last, now)
            expected = {}
        elif k % 10 == 5 and rng.uniform() < 0.3:
            times = now + rng.uniform(-0.1, 0.05) + np.cumsum(rng.uniform(0.02, 0.08, 6))
            samples = [(float(t), shifted(last, rng.normal(size=3) * 0.02, rng.normal(size=3) * 0.1)) for t in times]
            there = now + rng.uniform(0.0, 0.1)
            curve.replace(samples, now, there, stops=True)
            expected = {t: frame for t, frame in samples if t >= there}
            last = samples[-1][1]
        same(before, curve._state(now), 1e-9)
        following = now + rng.uniform(1e-3, 8e-3)
        for knot in [knot for knot in curve._ahead if knot.time <= following]:
            near = curve._state(knot.time - 1e-9) if curve._ahead[0] is knot else knot
            curve.at(knot.time)
            same(near, curve._state(knot.time), 1e-5)
            if knot.time in expected:
                np.testing.assert_allclose(curve.at(knot.time), expected.pop(knot.time), atol=1e-9)
        now = following
        frame, state = curve.at(now), curve._state(now)
        np.testing.assert_allclose(frame[:3, :3] @ frame[:3, :3].T, np.eye(3), atol=1e-12)
        after = curve._state(now + 1e-7)
        moved = (after.frame[:3, 3] - frame[:3, 3]) / 1e-7
        turned = sy.Rotation.from_matrix(frame[:3, :3].T @ after.frame[:3, :3]).as_rotvec() / 1e-7
        if curve.moves and curve._ahead[0].time > now + 1e-6:
            for moves, name, atol in ((moved, "velocity", 1e-3), (turned, "turning", 1e-2)):
                speed = getattr(state, name)
                changes = np.abs(getattr(after, name) - speed).max()  # short curves have large accelerations
                np.testing.assert_allclose(moves, speed, atol=atol + changes)


def test_a_chunk_is_played_in_time_and_another_one_replaces_its_rest():
    servo = arm(rate=250, velocity=3.0, acceleration=30.0)
    run(servo, 500, {"tool": NEAR})
    begin = servo.time
    times = begin + 0.1 * np.arange(1, 11)
    servo.schedule({"tool": np.array([shifted(NEAR, (0.008 * k, 0.0, 0.0)) for k in range(1, 11)])}, times)
    commands = []
    for _ in range(125):
        commands.append(servo.step())
    assert commands[-1].status is not sy.Status.HOLDING
    np.testing.assert_allclose(place(commands[-1]) - NEAR[:3, 3], (0.04, 0.0, 0.0), atol=1e-3)
    other = np.array([shifted(NEAR, (0.04, 0.012 * k, 0.0)) for k in range(11)])
    servo.schedule({"tool": other}, servo.time - 0.2 + 0.1 * np.arange(11), fade=0.3)
    commands.append(servo.step())
    assert commands[-1].stamps == {"tool": "late"}
    assert any("later than its time" in line for line in commands[-1].explain())
    for _ in range(250):
        commands.append(servo.step())
    np.testing.assert_allclose(place(commands[-1]) - NEAR[:3, 3], (0.04, 0.12, 0.0), atol=1e-3)
    assert worst(commands, servo, velocity=3.0, acceleration=30.0) <= 0.0
    speeds = np.diff([place(command) for command in commands], axis=0) * 250.0
    assert np.linalg.norm(np.diff(speeds, axis=0), axis=1).max() * 250.0 < 6.0
    for _ in range(200):
        command = servo.step()
    assert command.status is sy.Status.HOLDING  # the timeout begins at the end of the chunk


def test_a_chunk_that_is_over_does_not_count_and_a_target_or_hold_ends_one():
    servo = arm()
    frames = np.array([shifted(NEAR, (0.0, 0.01 * k, 0.0)) for k in range(5)])
    run(servo, 200, {"tool": NEAR})
    servo.schedule({"tool": frames}, servo.time - 1.0 + 0.1 * np.arange(5))
    command = servo.step({"tool": NEAR})
    assert command.stamps == {"tool": "too late"}
    servo.schedule({"tool": frames[:2]}, servo.time + np.array((0.005, 0.01)), fade=0.2)
    soon = run(servo, 50, None)
    np.testing.assert_allclose(place(soon[-1]) - NEAR[:3, 3], (0.0, 0.01, 0.0), atol=2e-4)
    assert max(np.linalg.norm(np.diff([place(one) for one in soon], axis=0), axis=1)) < 1.6 * 0.01 / 0.2 * 0.01
    servo.schedule({"tool": frames}, servo.time + 0.1 * np.arange(1, 6))
    run(servo, 10, None)
    ended = run(servo, 200, {"tool": NEAR})
    np.testing.assert_allclose(place(ended[-1]), NEAR[:3, 3], atol=2e-4)
    servo.schedule({"tool": frames}, servo.time + 0.1 * np.arange(1, 6))
    assert servo.hold().status is sy.Status.HOLDING
    held = run(servo, 100, None)
    assert held[-1].status is sy.Status.HOLDING
    np.testing.assert_allclose(place(held[-1]), NEAR[:3, 3], atol=2e-4)


BAD_CHUNKS = {
    "order": ({"tool": np.array([NEAR, NEAR])}, (0.2, 0.1), 0.1, "times: expected times that increase"),
    "count": ({"tool": np.array([NEAR, NEAR])}, (0.2,), 0.1, r"times: expected \(2,\)"),
    "nan": ({"tool": np.array([NEAR])}, (np.nan,), 0.1, "times: expected finite"),
    "clock": ({"tool": np.array([NEAR])}, (1.7e9,), 0.1, r"times: expected a time on the clock .* Servo.reset\(time="),
    "one": ({"tool": NEAR}, (0.1,), 0.1, "targets of 'tool'"),
    "fade": ({"tool": np.array([NEAR])}, (0.1,), -1.0, "fade: expected seconds, 0 or more"),
    "target": ({"tool": np.full((1, 4, 4), np.nan)}, (0.1,), 0.1, "target"),
}


@pytest.mark.parametrize("case", BAD_CHUNKS)
def test_chunks_that_cannot_be_used_are_refused(case):
    targets, times, fade, words = BAD_CHUNKS[case]
    servo, other = arm(), arm()
    with pytest.raises(sy.InputError, match=words):
        servo.schedule(targets, times, fade=fade)
    np.testing.assert_array_equal(servo.step({"tool": NEAR}).q, other.step({"tool": NEAR}).q)


# --- Time stamps -----------------------------------------------------------------------------------------------------


def test_targets_that_are_doubled_or_out_of_order_do_not_count_and_are_told():
    servo, plain = arm(timeout=0.2), arm(timeout=0.2)
    other = shifted(NEAR, (0.0, 0.1, 0.0))
    for frame, at, told in [(NEAR, 0.0, None), (other, 0.0, "doubled"), (other, -0.05, "out of order")]:
        command = servo.step({"tool": frame}, at=at)
        np.testing.assert_array_equal(command.q, plain.step({"tool": NEAR}).q)
        assert command.stamps == ({} if told is None else {"tool": told})
    for _ in range(50):
        command = servo.step({"tool": NEAR}, at=0.0)  # a dead sender, whose last message is passed again and again
    assert command.status is sy.Status.HOLDING
    command = servo.step({"tool": NEAR}, at=0.1)
    assert command.stamps == {"tool": "too late"}
    assert command.status is sy.Status.HOLDING
    assert any("too late" in line for line in command.explain())
    assert servo.step({"tool": NEAR}, at=servo.time).status is sy.Status.LATE


def test_late_targets_are_used_smoothly_and_told():
    servo = arm(interpolation=0.05)
    run(servo, 200, {"tool": NEAR})
    command = servo.step({"tool": shifted(NEAR, (0.0, 0.02, 0.0))}, at=servo.time - 0.2)
    assert command.stamps == {"tool": "late"}
    assert np.linalg.norm(place(run(servo, 50, None)[-1]) - NEAR[:3, 3] - (0.0, 0.02, 0.0)) < 1e-3


def test_time_stamps_are_on_the_clock_that_reset_sets():
    servo = arm(timeout=1.0)
    with pytest.raises(sy.InputError, match=r"at: expected a time on the clock of the servo, .*reset\(time=...\)"):
        servo.step({"tool": NEAR}, at=1.7e9)
    start = servo.step(dt=0.0).pose
    servo.reset(start, time=1.7e9)
    assert servo.time == 1.7e9
    command = servo.step({"tool": NEAR}, at=1.7e9 + 0.3)
    assert command.time == pytest.approx(1.7e9 + 0.01)
    assert np.linalg.norm(place(run(servo, 15, None)[-1]) - NEAR[:3, 3]) > 0.01
    assert np.linalg.norm(place(run(servo, 75, None)[-1]) - NEAR[:3, 3]) < 1e-3
    for bad in (np.nan, "now"):
        with pytest.raises(sy.InputError, match="at: expected seconds"):
            servo.step({"tool": NEAR}, at=bad)
        with pytest.raises(sy.InputError, match="time: expected seconds"):
            servo.reset(start, time=bad)
    with pytest.raises(sy.InputError, match="interpolation: expected seconds, 0 or more"):
        arm(interpolation=-0.1)


def test_a_bad_target_is_refused_with_all_inputs_on():
    servo, other = (arm(interpolation=0.05, filter=sy.live.OneEuro()) for _ in range(2))
    run(servo, 10, {"tool": NEAR})
    run(other, 10, {"tool": NEAR})
    with pytest.raises(sy.InputError):
        servo.step({"tool": np.full((4, 4), np.inf)}, at=servo.time)
    np.testing.assert_array_equal(servo.step({"tool": NEAR}).q, other.step({"tool": NEAR}).q)


# --- Time ------------------------------------------------------------------------------------------------------------

FIRST_TICKS = """
import sys
import numpy as np
import synovia as sy

servo = sy.Servo(sy.bundled("arm7"), sy.PoseGoal("tool"), rate=100, velocity=1.0, acceleration=5.0,
                 filter=sy.live.OneEuro(), interpolation=0.05)
servo.reset({"joint2": 0.6, "joint4": -1.2})
before = set(sys.modules)
frame = servo.step(dt=0.0).pose.transform("tool").copy()
for k in range(20):
    frame[0, 3] += 1e-3
    servo.step({"tool": frame})
servo.step(sy.Twist((0.0, 0.01, 0.0), (0.0, 0.0, 0.1)))
servo.schedule({"tool": frame[None].repeat(4, 0)}, servo.time + np.arange(1.0, 5.0) / 20)
servo.step()
servo.clutch("tool").engage()
servo.step({"tool": frame})
print({name.partition(".")[0] for name in set(sys.modules) - before} & {"scipy"})
"""


def test_no_tick_waits_for_scipy():
    out = subprocess.run([sys.executable, "-c", FIRST_TICKS], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


@given(size=st.sampled_from([1e-12, 1e-6, 1.0, 3.0, np.pi - 1e-9, np.pi]), seed=st.integers(0, 2**31))
def test_turns_are_those_of_scipy(size, seed):
    turn = np.random.default_rng(seed).normal(size=3)
    turn *= size / np.linalg.norm(turn)
    R = sy.Rotation.from_rotvec(turn).as_matrix()
    np.testing.assert_allclose(exp_turn(turn), R, atol=1e-15)
    found = log_turn(R)
    assert np.linalg.norm(found) <= np.pi + 1e-12
    np.testing.assert_allclose(sy.Rotation.from_rotvec(found).as_matrix(), R, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(found), size, rtol=1e-9, atol=1e-15)
