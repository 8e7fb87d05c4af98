"""Joints that users drive themselves, to values or with velocities, as an outside judge sees the commands."""

import copy

import numpy as np
import pytest

import synovia as sy
from mechanisms import four_bar
from servo.judge import differences, excesses

BENT = {"joint2": 0.6, "joint4": -1.2, "joint6": 0.9}
V, A = 1.5, 8.0


def servo_of(goals=(), *, body=None, start=BENT, **changes):
    body = sy.bundled("arm7") if body is None else body
    servo = sy.Servo(body, goals, **({"rate": 200, "velocity": V, "acceleration": A} | changes))
    servo.reset(start)
    return servo


def judged(commands, start, jerk=None, limits=(V, A)):
    """Check limits of hinges and slides of commands that follow a body at rest."""
    q = np.array([start, start, *(command.q for command in commands)])
    body = commands[0].skeleton
    low, high = body.limits
    assert (q >= low - 1e-9).all()
    assert (q <= high + 1e-9).all()
    times = np.diff([command.time for command in commands], prepend=0.0)
    times = np.concatenate([times[:1], times])
    for row in range(len(body)):
        part = body.q_slice(row)
        if part.stop - part.start == 1:
            ulp = np.spacing(np.abs(q[:, part]).max())
            assert excesses(differences(q[:, part], times), (*limits, jerk), ulp, times.min()) <= 0.0


def with_gripper():
    """The arm with two fingers, which close together, and no goal needs."""
    arm = sy.bundled("arm7")
    rest = np.eye(4)
    rest[2, 3] = 0.05
    fingers = [
        sy.Joint("finger1", "hand", sy.Kind.SLIDE, rest, axis=np.array((0, 1.0, 0)), limit=sy.Interval(0.0, 0.04)),
        sy.Joint("finger2", "hand", sy.Kind.SLIDE, rest, axis=np.array((0, -1.0, 0)), limit=sy.Interval(0.0, 0.04),
                 mimic=sy.Mimic("finger1", -0.5, 0.02)),
    ]  # fmt: skip
    return sy.Skeleton([*arm.joints, *fingers], name="gripper", meters_per_unit=1.0)


@pytest.mark.parametrize("jerk", [None, 100.0])
@pytest.mark.parametrize("goals", [(), sy.PoseGoal("tool"), [sy.PoseGoal("tool"), sy.RestGoal()]])
def test_a_joint_moves_with_its_velocity_and_rests_inside_its_limit(goals, jerk):
    """Goals without a target let no other joint move, and keep the place to which it leads."""
    servo = servo_of(goals, jerk=jerk)
    start = servo.step(dt=0).q
    commands = [servo.step(jog={"joint3": 0.7}) for _ in range(1200)]
    judged(commands, start, jerk)
    q = np.array([command.q for command in commands])
    assert np.abs(q[:, [0, 1, 3, 4, 5, 6]] - start[[0, 1, 3, 4, 5, 6]]).max() == 0.0
    assert np.abs(np.diff(q[200:400, 2]) * 200 - 0.7).max() < 1e-9
    assert commands[300].states["joint3"] == "reached"
    assert q[-1, 2] == pytest.approx(servo.skeleton.limits[1][2], abs=1e-9)
    assert commands[-1].states["joint3"] == "missed"
    assert commands[-1].limited == {"joint3": "position"}
    assert commands[-1].status is sy.Status.LIMITED
    assert not commands[-1].reached
    after = [servo.step() for _ in range(200)]
    assert after[-1].states["joint3"] == "lost"
    assert after[-1].status is sy.Status.HOLDING
    assert np.abs(after[-1].q - q[-1]).max() < 1e-9
    assert copy.copy(commands[300]).states == commands[300].states


@pytest.mark.parametrize("jerk", [None, 100.0])
def test_velocities_stop_when_they_are_zero_or_stop_coming(jerk):
    servo = servo_of(jerk=jerk, timeout=0.2)
    start = servo.step(dt=0).q
    commands = [servo.step(jog={"joint1": 1.0}) for _ in range(200)]
    commands += [servo.step(jog={"joint1": 0.0}) for _ in range(150)]
    assert commands[-1].velocity[0] == pytest.approx(0.0, abs=1e-9)
    assert commands[-1].states["joint1"] == "reached"
    commands += [servo.step(jog={"joint1": -1.0}) for _ in range(150)]
    before = commands[-1].q[0]
    commands += [servo.step() for _ in range(150)]
    judged(commands, start, jerk)
    braking = 1.0 / (2 * A) + (0.0 if jerk is None else A / jerk)
    assert 0.2 - 0.02 < before - commands[-1].q[0] < 0.2 + braking + 0.02
    assert commands[-1].status is sy.Status.HOLDING


def test_values_are_reached_in_their_own_time():
    servo = servo_of()
    commands = [servo.step(joints={"joint1": 1.0, "joint2": 9.0}) for _ in range(700)]
    final = commands[-1]
    assert final.pose["joint1"] == pytest.approx(1.0, abs=1e-12)
    assert final.states == {"joint1": "reached", "joint2": "missed"}
    assert any("At its limit of position: joint2" in line for line in final.explain())
    fastest = 1.0 / V + V / A
    assert next(command.time for command in commands if command.states["joint1"] == "reached") < fastest + 0.02


@pytest.mark.parametrize(("jerk", "most"), [(None, 1e-6), (100.0, 2e-3)])
def test_a_pose_is_kept_while_another_joint_moves(jerk, most):
    servo = servo_of([sy.PoseGoal("tool"), sy.RestGoal()], jerk=jerk)
    begin = servo.step(dt=0)
    target = begin.pose.transform("tool")
    commands = [servo.step({"tool": target}, joints={"joint3": 0.8}) for _ in range(800)]
    judged(commands, begin.q, jerk)
    assert max(command.errors[0].position for command in commands) < most
    assert max(command.errors[0].angle for command in commands) < 5 * most
    assert commands[-1].pose["joint3"] == pytest.approx(0.8, abs=1e-3)
    assert commands[-1].states == {"tool": "reached", "rest": "missed", "joint3": "reached"}
    home = [servo.step({"tool": target}) for _ in range(1000)]
    assert home[-1].states == {"tool": "reached", "rest": "missed", "joint3": "lost"}
    assert abs(home[-1].pose["joint3"]) < 0.2

    assert max(command.errors[0].position for command in home) < most


def test_goals_with_a_target_come_first():
    servo = servo_of(sy.PoseGoal("tool"))
    target = servo.step(dt=0).pose.transform("tool")
    commands = [servo.step({"tool": target}, jog={"joint3": 0.5}) for _ in range(1200)]
    assert max(command.errors[0].position for command in commands) < 1e-6
    assert commands[-1].states == {"tool": "reached", "joint3": "missed"}
    assert commands[-1].status is sy.Status.CONFLICT
    assert any("joint3" in line for line in commands[-1].explain())


def test_a_joint_that_no_goal_needs_and_one_that_follows():
    body = with_gripper()
    servo = servo_of(sy.PoseGoal("tool"), body=body, velocity=dict.fromkeys(body.joint_names[1:8], V) | {
        "finger1": 0.1, "finger2": 0.04}, acceleration=A)  # fmt: skip
    target = servo.step(dt=0).pose.transform("tool")
    target[:3, 3] += (0.0, 0.1, 0.05)
    commands = [servo.step({"tool": target}, joints={"finger1": 0.03}) for _ in range(300)]
    assert commands[-1].reached
    assert commands[-1].pose["finger1"] == pytest.approx(0.03)
    assert commands[-1].pose["finger2"] == pytest.approx(0.005)
    fingers = np.array([command.pose["finger1"] for command in commands])
    assert np.abs(np.diff(fingers)).max() * 200 <= 0.08 * (1 + 1e-9)  # the finger that follows has 0.04
    after = [servo.step({"tool": target}, joints={"finger2": 0.02}) for _ in range(300)]
    assert after[-1].pose["finger1"] == pytest.approx(0.0, abs=1e-9)
    bare = servo_of(sy.PoseGoal("tool"), body=body, velocity=dict.fromkeys(body.joint_names[1:8], V))
    with pytest.raises(sy.InputError, match=r"velocity: .*finger1"):
        bare.step(joints={"finger1": 0.03})


def test_a_gripper_opens_in_its_own_time_after_the_arm_has_moved():
    """What other axes did before does not slow down a joint that is driven."""
    body = with_gripper()
    servo = servo_of(sy.PoseGoal("tool"), body=body)
    target = sy.Pose(body, BENT).transform("tool")
    for k in range(100):
        target[1, 3] += 0.0005 if k < 50 else 0.0
        servo.step({"tool": target})
    commands = [servo.step({"tool": target}, joints={"finger1": 0.04}) for _ in range(60)]
    time = np.sqrt(4 * 0.04 / A)  # from rest to rest with the largest acceleration
    first = next(k for k, command in enumerate(commands) if command.states["finger1"] == "reached")
    assert (first + 1) / 200 <= 1.1 * time + 2 / 200


def test_feet_stay_while_joints_of_a_body_move():
    body = sy.bundled("humanoid")
    goals = [sy.PoseGoal("left_foot"), sy.PoseGoal("right_foot"), sy.PositionGoal("right_hand", priority=1)]
    servo = sy.Servo(body, goals, rate=100, velocity=2.0, acceleration=10.0, root="free")
    servo.reset()
    commands = [servo.step({"right_hand": (-0.3, 1.0, 0.5)}, joints={"left_lower_arm": 0.9}) for _ in range(300)]
    assert max(error.position for command in commands for error in command.errors[:2]) < 1e-4
    assert commands[-1].reached
    assert commands[-1].pose["left_lower_arm"] == pytest.approx(0.9, abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_limits_hold_whatever_joints_and_goals_get(seed):
    rng = np.random.default_rng(seed)
    jerk = None if seed % 2 else 100.0
    goals = [(), sy.PoseGoal("tool"), [sy.PoseGoal("tool"), sy.RestGoal()]][seed % 3]
    servo = servo_of(goals, jerk=jerk)
    names = [f"joint{k}" for k in range(1, 8)]
    start, low, high = servo.step(dt=0).q, *servo.skeleton.limits
    commands, orders, target = [], {}, None
    for _ in range(1500):
        if rng.random() < 0.03:
            picked = rng.permutation(7)[: rng.integers(0, 4)]
            values = {names[k]: rng.uniform(low[k] - 0.2, high[k] + 0.2) for k in picked}
            speeds = {name: rng.uniform(-2, 2) for name in names if name not in values and rng.random() < 0.3}
            orders = {"joints": values, "jog": speeds}
        if goals and rng.random() < 0.02:
            pose = sy.Pose(servo.skeleton, rng.uniform(low, high))
            target = None if rng.random() < 0.4 else {"tool": pose.transform("tool")}
        if rng.random() < 0.01:
            orders = {}
        dt = rng.choice([0.004, 0.005, 0.007])
        commands.append(servo.hold(dt) if rng.random() < 0.002 else servo.step(target, dt, **orders))
    judged(commands, start, jerk)


def test_a_path_a_tool_speed_and_a_wall_are_kept():
    slow = servo_of(sy.PoseGoal("tool"), late="slow")
    assert slow.step(jog={"joint3": 0.2}).states["joint3"] == "late"
    with pytest.raises(sy.errors.UnsupportedError, match="slow"):
        slow.step({"tool": slow.step(dt=0).pose.transform("tool")}, jog={"joint3": 0.2})
    careful = servo_of(sy.PoseGoal("tool"), tool_speed={"tool": 0.1})
    places = [careful.step(jog={"joint1": 1.0}).pose.position("tool") for _ in range(300)]
    assert np.linalg.norm(np.diff(places, axis=0), axis=1).max() * 200 <= 0.1 * (1 + 1e-9)
    assert np.linalg.norm(places[-1] - places[0]) > 0.1


def test_loops_stay_closed_while_a_joint_of_them_moves():
    body = four_bar()
    servo = sy.Servo(body, (), rate=100, velocity=2.0, acceleration=10.0)
    servo.reset()
    joint = next(name for name, kind in zip(body.joint_names, body.joints, strict=True) if kind.kind is sy.Kind.HINGE)
    commands = [servo.step(jog={joint: 0.3}) for _ in range(100)]
    lacks = body.mechanism.lacks(np.array([command.q for command in commands]))
    assert lacks.max() <= 1e-9
    assert commands[-1].velocity[0] == pytest.approx(0.3, abs=1e-3)


BAD = {
    "list": (lambda servo: servo.step(joints=[0.1]), "joints: expected values by joint"),
    "name": (lambda servo: servo.step(jog={"joint9": 0.1}), "no joint named 'joint9'"),
    "inf": (lambda servo: servo.step(joints={"joint1": float("inf")}), "joints of 'joint1': expected a finite number"),
    "text": (lambda servo: servo.step(jog={"joint1": "fast"}), "jog of 'joint1': expected a finite number"),
    "fixed": (lambda servo: servo.step(jog={"tool": 0.1}), "expected a HINGE or SLIDE"),
    "both": (lambda servo: servo.step(joints={"joint1": 0.1}, jog={"joint1": 0.1}), "one value or velocity"),
}


@pytest.mark.parametrize("case", BAD)
def test_orders_that_cannot_be_used_change_nothing(case):
    call, message = BAD[case]
    servo, other = (servo_of(sy.PoseGoal("tool")) for _ in range(2))
    with pytest.raises(sy.SynoviaError, match=message):
        call(servo)
    for one in (servo, other):
        one.step(jog={"joint1": 0.5})
    target = np.eye(4)
    target[0, 3] = np.inf
    with pytest.raises(sy.InputError):
        servo.step({"tool": target}, jog={"joint1": 0.7})
    assert np.array_equal(servo.step(jog={"joint1": 0.5}).q, other.step(jog={"joint1": 0.5}).q)
    assert servo.step(jog={"joint1": 0.5}, dt=0).time == servo.time


@pytest.mark.parametrize("rest", [(), [sy.RestGoal()]])
def test_fingers_at_the_end_of_their_range_hold_no_goal_back(rest):
    """They are named while they are driven against that end."""
    servo = servo_of([sy.PoseGoal("tool"), *rest], body=with_gripper(), velocity=0.3)
    place = servo.step(dt=0).pose.position("tool") + np.array((0.1, 0.0, 0.0))
    moving = [servo.step({"tool": place}) for _ in range(100)]
    assert any(command.limited for command in moving)
    assert not any("finger1" in command.limited for command in moving)
    driven = [servo.step({"tool": place}, jog={"finger1": -0.01}) for _ in range(20)]
    assert driven[-1].limited["finger1"] == "position"
    released = [servo.step({"tool": place - np.array((0.1, 0.0, 0.0))}) for _ in range(200)]
    assert "finger1" not in released[-1].limited


@pytest.mark.compiled
@pytest.mark.parametrize("rate", [100, 250, 500])
def test_a_jog_beside_a_held_pose_goes_on_with_a_limit_of_the_jerk(rate):
    """The joint does not swing to and fro while its reference waits for the other joints."""
    arm = sy.bundled("arm7")
    start = sy.Pose(arm, np.radians([10.0, 40.0, 10.0, -80.0, 10.0, 40.0, 10.0]))
    servo = sy.Servo(arm, sy.PoseGoal("tool"), rate=rate, velocity=1.5, acceleration=8.0, jerk=100.0)
    servo.reset(start)
    held = start.transform("tool")
    speeds = [servo.step({"tool": held}, jog={"joint3": 0.2}).velocity[2] for _ in range(int(1.5 * rate))]
    assert min(speeds[rate:]) > 0.1
    assert abs(np.mean(speeds[rate:]) - 0.2) < 0.03


@pytest.mark.parametrize("jerk", [None, 100.0, 500.0])
@pytest.mark.parametrize("rate", [100, 250])
def test_a_joint_goes_to_a_value_without_overshoot(rate, jerk):
    arm = sy.bundled("arm7")
    servo = sy.Servo(arm, (), rate=rate, velocity=2.0, acceleration=8.0, jerk=jerk)
    servo.reset(arm.rest_pose())
    values = [servo.step(joints={"joint3": 0.5}).q[2] for _ in range(2 * rate)]
    assert max(values) < 0.501
    assert abs(values[-1] - 0.5) < 1e-5
