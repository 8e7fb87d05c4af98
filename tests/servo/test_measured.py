"""What the robot reports: within a bound the commands are corrected, beyond it the body holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia as sy
from servo.test_servo import NEAR, arm, run, worst


def drive(servo, robot, ticks, target):
    """Commands to a robot whose joints are where ``robot`` says, for commanded values."""
    out = []
    for _ in range(ticks):
        out.append(servo.step({"tool": target}))
        servo.measured(robot(out[-1].q))
    return out


@pytest.mark.parametrize("late", ["deviate", "slow"])
def test_a_robot_that_sags_is_brought_to_its_target(late):
    sag = np.array([0.02, -0.01, 0.03, 0.0, 0.01, -0.02, 0.04])
    servo = arm(jerk=80.0, late=late)
    commands = drive(servo, lambda q: q + sag, 700, NEAR)
    found = sy.Pose(servo.skeleton, commands[-1].q + sag)
    assert np.linalg.norm(found.position("tool") - NEAR[:3, 3]) < 1e-3
    assert np.linalg.norm(commands[-1].pose.position("tool") - NEAR[:3, 3]) > 5e-3
    assert commands[-1].status is sy.Status.REACHED  # errors are those of the robot
    assert worst(commands, servo, 80.0) <= 0.0
    still = np.array([command.q for command in commands[-20:]])
    assert np.ptp(still, axis=0).max() < 1e-3


def test_a_robot_that_sags_more_than_is_corrected_does_not_reach_its_target_and_is_named():
    sag = np.array([0.0, 0.17, 0.0, 0.0, 0.01, 0.0, 0.0])
    servo = arm(jerk=80.0)
    last = drive(servo, lambda q: q + sag, 700, NEAR)[-1]
    found = sy.Pose(servo.skeleton, last.q + sag).position("tool")
    assert np.linalg.norm(last.velocity) < 1e-9
    assert last.status is not sy.Status.REACHED
    np.testing.assert_allclose(last.errors[0].position, np.linalg.norm(found - NEAR[:3, 3]), atol=1e-3)
    assert (
        "The robot is 0.17 rad away from its command at joint 'joint2'; 0.1 of that is corrected" in last.explain()[-2]
    )
    back = drive(servo, lambda q: q, 700, NEAR)[-1]
    assert back.status is sy.Status.REACHED
    assert not any("away from its command" in line for line in back.explain())


@given(seed=st.integers(0, 2**31))
@settings(max_examples=10, deadline=None)
def test_no_measurement_breaks_a_limit(seed):
    rng = np.random.default_rng(seed)
    servo = arm(jerk=80.0, following_error=0.1)
    commands, target = [], NEAR.copy()
    lag = servo.step(dt=0.0).q
    for _ in range(300):
        if rng.uniform() < 0.02:
            target = NEAR.copy()
            target[:3, 3] += rng.uniform(-0.15, 0.15, 3)
        commands.append(servo.step({"tool": target} if rng.uniform() < 0.9 else None))
        lag = lag + 0.2 * (commands[-1].q - lag)
        size = 0.2 if rng.uniform() < 0.05 else 0.01
        servo.measured(lag + size * rng.normal(size=7))
    assert worst(commands, servo, 80.0) <= 0.0
    assert not any("recovering" in command.limited.values() for command in commands)


def test_a_robot_that_moves_behind_its_commands_is_no_error():
    servo, plain = arm(), arm()
    held, q = servo.step(dt=0.0).q, []
    for k in range(300):
        target = NEAR.copy()
        target[1, 3] += 0.1 * np.sin(0.05 * k)
        q.append((servo.step({"tool": target}).q, plain.step({"tool": target}).q))
        held = held + 0.3 * (q[-1][0] - held)
        servo.measured(held)
        if np.abs(servo.step(dt=0.0).velocity).max() > 0.2:
            np.testing.assert_array_equal(*q[-1])


def test_a_robot_that_is_blocked_is_not_pushed_without_end():
    servo = arm(following_error=0.05)
    first = servo.step(dt=0.0).q
    near = servo.step(dt=0.0).pose.transform("tool").copy()
    near[:3, 3] += (0.004, 0.0, 0.0)
    commands = drive(servo, lambda q: first, 1000, near)
    assert commands[-1].status is not sy.Status.HOLDING
    assert np.abs(commands[-1].q - first).max() < 0.05
    assert np.abs(commands[-1].velocity).max() < 1e-2


def test_beyond_the_bound_the_body_holds_says_so_and_goes_on_when_the_robot_is_back():
    servo = arm(following_error={"joint2": 0.05})
    commands = run(servo, 20, {"tool": NEAR})
    servo.measured({"joint2": commands[-1].pose["joint2"] + 0.06})
    held = run(servo, 100, {"tool": NEAR})
    assert held[-1].status is sy.Status.HOLDING
    np.testing.assert_allclose(held[-1].velocity, 0.0, atol=1e-12)
    words = held[-1].explain()[0]
    assert "'joint2' is measured at" in words
    assert f"commanded {commands[-1].pose['joint2']:.4g}" in words
    assert "0.05" in words
    with pytest.raises(sy.InputError, match="target of 'tool': expected finite numbers"):
        servo.step({"tool": np.full((4, 4), np.inf)})
    servo.measured(held[-1].q)
    assert servo.step(None).status is sy.Status.HOLDING  # it waits for a target
    back = run(servo, 300, {"tool": NEAR})
    assert back[-1].status is sy.Status.REACHED
    assert worst(commands + held + back, servo) <= 0.0


def test_turns_of_a_whole_circle_are_no_difference():
    joints = [
        sy.Joint("base"),
        sy.Joint("turn", "base", sy.Kind.HINGE, axis=(0, 0, 1)),
        sy.Joint("tip", "turn", rest=np.eye(4) + 0.5 * np.eye(4, k=3)),
    ]
    servo = sy.Servo(sy.Skeleton(joints), sy.PositionGoal("tip"), rate=100, velocity=1.0, acceleration=8.0)
    servo.reset()
    command = servo.step((0.0, 0.5, 0.0))
    servo.measured(command.q + 2.0 * np.pi)
    assert servo.step((0.0, 0.5, 0.0)).status is sy.Status.LATE


def test_a_whole_body_is_measured_too():
    body = sy.bundled("humanoid")
    goals = [sy.PoseGoal("left_foot"), sy.PoseGoal("right_foot"), sy.PositionGoal("right_hand", priority=1)]
    servo, plain = (sy.Servo(body, goals, rate=100, velocity=2.0, acceleration=10.0, root="free") for _ in range(2))
    for one in (servo, plain):
        one.reset()
    hand = servo.skeleton.rest_pose().position("right_hand") + np.array((0.1, -0.2, 0.2))
    commands = []
    for _ in range(200):
        commands.append(servo.step({"right_hand": hand}))
        servo.measured(commands[-1].q)
        np.testing.assert_array_equal(commands[-1].q, plain.step({"right_hand": hand}).q)
    away = commands[-1].q.copy()
    away[:3] += (0.0, 0.0, 2.0)
    servo.measured(away)
    assert "is measured at (" in servo.step({"right_hand": hand}).explain()[0]


BAD = {
    "shape": (np.zeros(3), r"measured: expected \(7,\), got \(3,\). These are the values of 'joint1', .*, 'joint7';"),
    "nan": (np.full(7, np.nan), "measured: expected finite numbers"),
    "text": ("rest", "measured: expected a pose, joint values"),
    "joint": ({"finger": 0.0}, "no joint named 'finger'"),
}


@pytest.mark.parametrize("case", BAD)
def test_measurements_that_cannot_be_used_are_refused(case):
    value, words = BAD[case]
    servo = arm()
    with pytest.raises(sy.SynoviaError, match=words):
        servo.measured(value)
    assert servo.step({"tool": NEAR}).status is sy.Status.LATE


def test_a_bound_that_cannot_be_used_is_refused():
    with pytest.raises(sy.InputError, match="following_error: expected above 0"):
        arm(following_error=0.0)
    with pytest.raises(sy.errors.UnknownNameError, match="no joint named 'finger'"):
        arm(following_error={"finger": 0.1})
