"""``Servo`` as users call it: targets that come and go, statuses, holding, resets, limits and bad input."""

import dataclasses
import math
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia as sy
from servo.judge import differences, excesses, turn_differences

DOWN = sy.Rotation.from_euler("x", 180, degrees=True)
NEAR = np.eye(4)
NEAR[:3, :3], NEAR[:3, 3] = DOWN.as_matrix(), (0.4, 0.1, 0.4)
FAR = NEAR.copy()
FAR[:3, 3] = 3.0, 0.0, 0.5
LIMITS = {"rate": 100, "velocity": 1.5, "acceleration": 8.0}


def arm(**changes):
    servo = sy.Servo(sy.bundled("arm7"), sy.PoseGoal("tool"), **(LIMITS | changes))
    start = sy.solve(servo.skeleton, sy.PoseGoal("tool", position=(0.45, -0.1, 0.35), rotation=DOWN), start=BENT)
    servo.reset(start.pose)
    return servo


BENT = {"joint2": 0.6, "joint4": -1.2, "joint6": 0.9}


def run(servo, ticks, targets, dt=None):
    return [servo.step(targets, dt) for _ in range(ticks)]


def worst(commands, servo, jerk=None, velocity=1.5, acceleration=8.0):
    """The largest excess of a difference of the samples of an arm."""
    q = np.array([command.q for command in commands])
    times = np.diff([command.time for command in commands])
    ulp = np.spacing(np.abs(q).max())
    return excesses(differences(q, times), (velocity, acceleration, jerk), ulp, times.min())


def test_twists_and_targets_follow_each_other_on_a_path_within_all_limits():
    servo, rng = arm(late="slow", timeout=0.2), np.random.default_rng(8)
    commands = [servo.step(dt=0)]
    for k in range(12):
        place = NEAR.copy()
        place[:3, 3] += 0.1 * rng.normal(size=3)
        target = place if k % 3 == 1 else sy.Twist(0.2 * rng.normal(size=3), 0.5 * rng.normal(size=3))
        for tick in range(int(rng.integers(5, 60))):
            holds = k == 7 and tick > 10
            commands.append(servo.hold() if holds else servo.step(None if k == 9 else {"tool": target}))
    commands += run(servo, 600, {"tool": NEAR})
    assert commands[-1].status is sy.Status.REACHED
    assert worst(commands, servo) <= 0.0


@pytest.mark.parametrize("late", ["deviate", "slow"])
def test_a_twist_about_an_axis_that_a_wrist_has_lost_hardly_moves_the_tool(shared_data, late):
    """A motion out of the singular pose would lead the tool by 100 mm and more."""
    robot = sy.load_skeleton(shared_data / "robot" / "ur5_robot.urdf")
    servo = sy.Servo(robot, sy.PoseGoal("ee_link"), rate=125, velocity=1.5, acceleration=8.0, late=late)
    servo.reset(sy.Pose(robot, np.array([0.0, -1.2, 1.5, -0.3, 0.0, 0.0])))
    first = servo.step(dt=0).pose.position("ee_link")
    spin = sy.Twist((0, 0, 0), (0.2, 0, 0))
    places = [servo.step({"ee_link": spin}).pose.position("ee_link") for _ in range(400)]
    assert np.abs(np.array(places) - first).max() < 0.01


def test_a_motion_goes_on_in_another_servo_with_its_velocity_and_acceleration():
    first, other = arm(jerk=80.0), arm(jerk=80.0)
    commands = run(first, 25, {"tool": NEAR})
    last = commands[-1]
    assert np.abs(last.acceleration).max() > 1.0
    other.reset(last.pose, last.velocity, last.acceleration, time=last.time)
    commands += run(other, 100, {"tool": FAR})
    assert worst(commands, first, 80.0) <= 0.0
    with pytest.raises(sy.InputError, match="acceleration"):
        other.reset(last.pose, last.velocity, last.acceleration[:3])


@pytest.mark.parametrize("jerk", [None, 80.0])
def test_a_jump_is_reached_and_the_way_there_is_late(jerk):
    servo = arm(jerk=jerk)
    commands = run(servo, 400, {"tool": NEAR})
    assert commands[5].status is sy.Status.LATE
    assert commands[5].limited
    assert set(commands[5].limited.values()) <= {"velocity", "acceleration", "jerk"}
    assert commands[5].lag.position > 0.01
    last = commands[-1]
    assert last.status is sy.Status.REACHED
    assert last.reached
    assert bool(last)
    assert last.errors[0].position < 1e-4
    assert not last.limited
    assert worst(commands, servo, jerk) <= 0.0
    np.testing.assert_array_equal(last.velocity, 0.0)


def test_a_command_owns_its_arrays_and_knows_its_motion():
    servo = arm()
    first, second = run(servo, 2, {"tool": NEAR})
    before = first.q.copy()
    run(servo, 5, {"tool": NEAR})
    np.testing.assert_array_equal(first.q, before)
    np.testing.assert_allclose(second.velocity, (second.q - first.q) * 100.0, atol=1e-12)
    np.testing.assert_allclose(second.acceleration, (second.velocity - first.velocity) * 100.0, atol=1e-9)
    second.velocity[:] = second.acceleration[:] = 7.0
    assert np.abs(servo.step({"tool": NEAR}).velocity).max() < 4.0
    with pytest.raises(ValueError, match="read-only"):
        second.q[:] = 7.0
    assert len(second.velocity) == len(servo.skeleton.dof_names)


def test_a_command_is_a_solution_of_its_tick():
    servo = arm()
    for command in (
        run(servo, 5, {"tool": NEAR})[-1],
        run(servo, 400, {"tool": NEAR})[-1],
        *run(servo, 3, {"tool": FAR}),
    ):
        solution = command.solution
        np.testing.assert_array_equal(solution.pose.q, command.q)
        assert solution.errors == command.errors
        assert solution.status is command.status
        assert solution.reached == command.reached


def test_out_of_reach_the_body_stands_still_at_its_best_miss_and_comes_back():
    servo = arm()
    away = run(servo, 600, {"tool": FAR})
    assert away[-1].status in (sy.Status.UNREACHABLE, sy.Status.LIMITED, sy.Status.CONFLICT)
    still = np.array([command.q for command in away[-100:]])
    assert np.ptp(still, axis=0).max() < 1e-9
    best = sy.solve(servo.skeleton, sy.PoseGoal("tool", transform=FAR)).errors[0].position
    assert away[-1].errors[0].position <= 1.01 * best + 1e-3
    back = run(servo, 500, {"tool": NEAR})
    assert back[-1].status is sy.Status.REACHED
    assert worst(away + back, servo) <= 0.0


def test_a_goal_without_a_target_keeps_its_place():
    body = sy.bundled("humanoid").with_root("free")
    goals = [sy.PoseGoal("left_foot"), sy.PoseGoal("right_foot"), sy.PositionGoal("right_hand", priority=1)]
    servo = sy.Servo(body, goals, rate=50, velocity=2.0, acceleration=8.0, root="free")
    servo.reset()
    pose = body.rest_pose()
    hand = pose.position("right_hand")
    feet = {foot: pose.transform(foot) for foot in ("left_foot", "right_foot")}
    for k in range(600):
        command = servo.step(
            {"right_hand": hand + 0.1 * np.array([math.sin(0.05 * k), -1.0 + math.cos(0.07 * k), 0.0])}
        )
        for foot, place in feet.items():
            np.testing.assert_allclose(command.pose.transform(foot), place, atol=2e-4)
    assert command.lag.position < 0.02


def test_feet_hold_while_a_hand_jumps():
    body = sy.bundled("humanoid").with_root("free")
    goals = [sy.PoseGoal("left_foot"), sy.PoseGoal("right_foot"), sy.PositionGoal("right_hand", priority=1)]
    servo = sy.Servo(body, goals, rate=100, velocity=2.0, acceleration=10.0, root="free")
    servo.reset()
    pose = body.rest_pose()
    hand = pose.position("right_hand")
    feet = {foot: pose.position(foot) for foot in ("left_foot", "right_foot")}
    commands = []
    for k in range(500):
        shift = (0.2, 0.3, 0.2) if (k // 125) % 2 else (0.1, -0.3, 0.3)
        commands.append(servo.step({"right_hand": hand + shift}))
        for foot, place in feet.items():
            assert np.linalg.norm(commands[-1].pose.position(foot) - place) < 1e-3
    assert max(np.abs(command.velocity).max() for command in commands) > 0.5  # it does move


def test_goals_of_two_levels_come_where_they_can_again_and_again():
    """A lower goal that cannot hold on the way does not hold the body up."""
    goals = [sy.PositionGoal("tool", name="place"), sy.RotationGoal("tool", name="turn", priority=1)]
    servo = sy.Servo(sy.bundled("arm7"), goals, **LIMITS)
    start = sy.Pose(servo.skeleton, np.radians([10.0, 40.0, 10.0, -70.0, 10.0, 40.0, 10.0]))
    servo.reset(start)
    frame = start.transform("tool")
    for shift in [(0.1, -0.2, 0.05), (-0.1, 0.25, 0.1)] * 3:
        last = run(servo, 500, {"place": frame[:3, 3] + shift, "turn": frame[:3, :3]})[-1]
        assert last.errors[0].position < 1e-3
        assert last.status is not sy.Status.LATE


def test_hands_of_a_standing_body_come_where_they_can_and_feet_stay():
    body = sy.bundled("humanoid").with_root("free")
    goals = [sy.PoseGoal("left_foot"), sy.PoseGoal("right_foot")]
    goals += [sy.PositionGoal("left_hand", priority=1), sy.PositionGoal("right_hand", priority=2), sy.RestGoal()]
    servo = sy.Servo(body, goals, rate=60, velocity=3.0, acceleration=15.0, root="free")
    rest = servo.skeleton.rest_pose()
    servo.reset(rest)
    left, right, foot = (rest.position(joint) for joint in ("left_hand", "right_hand", "left_foot"))
    for shift in [(-0.3, -0.3, 0.2), (-0.1, 0.2, 0.3), (-0.4, 0.1, 0.1)] * 2:
        commands = run(
            servo, 300, {"left_hand": left + shift, "right_hand": right + np.multiply(shift, (-1.0, 0.5, 1.0))}
        )
        assert commands[-1].reached
        assert max(np.linalg.norm(command.pose.position("left_foot") - foot) for command in commands) < 5e-3


@pytest.mark.slow
@pytest.mark.compiled
def test_goals_of_one_level_that_contradict_each_other_do_not_lead_a_body_astray():
    body = sy.bundled("humanoid").with_root("free")
    rest, ends = body.rest_pose(), ("left_hand", "right_hand", "left_foot", "right_foot")
    goals = [*map(sy.PoseGoal, ends), sy.CenterOfMassGoal(name="com"), sy.RestGoal(rest)]
    servo = sy.Servo(body, goals, rate=250, velocity=20.0, acceleration=2e4, root="free")
    servo.reset()
    misses = []
    for k in range(400):
        t = k / 250
        targets = {end: rest.transform(end).copy() for end in ends}
        for hand in ends[:2]:
            sway = np.array([0.05 * math.sin(math.pi * t), 0.0, 0.03 * math.sin(2 * math.pi * t)])
            targets[hand][:3, 3] += min(t / 0.4, 1.0) ** 2 * sway
        command = servo.step({**targets, "com": rest.center_of_mass()})
        misses.append(max(np.linalg.norm(command.pose.position(hand) - targets[hand][:3, 3]) for hand in ends[:2]))
    assert np.mean(misses) < 0.03


@pytest.mark.compiled
@pytest.mark.parametrize("acceleration", [20.0, 1e3])
def test_joints_make_up_for_one_that_is_slow(acceleration):
    slow = dict.fromkeys(sy.bundled("arm7").joint_names, 2.0) | {"joint1": 0.1}
    servo = sy.Servo(sy.bundled("arm7"), sy.PositionGoal("tool"), rate=200, velocity=slow, acceleration=acceleration)
    servo.reset(sy.Pose(servo.skeleton, BENT))
    place = servo.step().pose.position("tool")
    side = np.cross(place, (0.0, 0.0, 1.0)) / np.linalg.norm(place[:2])  # where joint1 would move the tool
    commands = [servo.step(place + 0.1 * math.sin(0.01 * k) * min(0.01 * k, 1.0) * side) for k in range(900)]
    misses = [command.errors[0].position for command in commands]
    assert np.mean([command.limited.get("joint1") == "velocity" for command in commands]) > 0.3
    assert np.mean(misses) < 1e-3
    assert max(misses) < 3e-3


def test_a_lost_target_is_kept_for_the_timeout_and_then_the_body_brakes():
    servo = arm(timeout=0.2)
    moving = run(servo, 20, {"tool": NEAR})
    kept = run(servo, 19, None)
    assert kept[-1].status is sy.Status.LATE
    lost = run(servo, 120, None)
    assert lost[-1].status is sy.Status.HOLDING
    assert "timeout" in lost[-1].explain()[0]
    np.testing.assert_array_equal(lost[-1].velocity, 0.0)
    back = run(servo, 400, {"tool": NEAR})
    assert back[-1].status is sy.Status.REACHED
    assert worst(moving + kept + lost + back, servo) <= 0.0


def test_one_lost_goal_keeps_its_place_and_the_other_goes_on():
    body = sy.bundled("humanoid")
    goals = [sy.PositionGoal("left_hand"), sy.PositionGoal("right_hand")]
    servo = sy.Servo(body, goals, rate=100, velocity=2.0, acceleration=10.0, timeout=0.1)
    servo.reset()
    pose = body.rest_pose()
    left, right = (
        0.3 * pose.position(f"{side}_upper_arm") + 0.7 * pose.position(f"{side}_hand") for side in ("left", "right")
    )
    run(servo, 20, {"left_hand": left, "right_hand": right})
    after = run(servo, 300, {"right_hand": right})
    assert after[-1].status is sy.Status.REACHED
    place = after[-1].pose.position("left_hand")
    assert np.linalg.norm(place - after[150].pose.position("left_hand")) < 1e-3
    np.testing.assert_allclose(after[-1].pose.position("right_hand"), right, atol=1e-3)


def test_hold_brakes_and_stays_until_a_target_comes():
    servo = arm()
    run(servo, 30, {"tool": NEAR})
    commands = [servo.hold() for _ in range(5)] + run(servo, 100, None)
    assert {command.status for command in commands} == {sy.Status.HOLDING}
    np.testing.assert_array_equal(commands[-1].velocity, 0.0)
    np.testing.assert_array_equal(commands[-1].q, commands[-2].q)
    assert "hold()" in commands[-1].explain()[0]
    assert run(servo, 400, {"tool": NEAR})[-1].status is sy.Status.REACHED


@pytest.mark.parametrize("dt", [0.0, -0.01, -5])
def test_a_doubled_tick_returns_the_last_command(dt):
    servo = arm()
    command = servo.step({"tool": NEAR})
    with nullcontext() if dt == 0.0 else pytest.warns(UserWarning, match="time does not go back"):
        assert servo.step({"tool": FAR}, dt) is command
    with nullcontext() if dt == 0.0 else pytest.warns(UserWarning, match="time does not go back"):
        assert servo.hold(dt) is command


@pytest.mark.parametrize("jerk", [None, 60.0])
@given(seed=st.integers(0, 2**31))
@settings(max_examples=8, deadline=None)
def test_uneven_ticks_and_restless_targets_keep_the_limits(seed, jerk):
    rng = np.random.default_rng(seed)
    servo = arm(jerk=jerk)
    target, commands = NEAR.copy(), [servo.step(dt=0.0)]
    for _ in range(300):
        if rng.uniform() < 0.03:
            target[:3, 3] = rng.uniform((-0.6, -0.6, 0.0), (0.7, 0.6, 1.2))
        seen = target.copy()
        seen[:3, 3] += 1e-3 * rng.normal(size=3)
        given = None if rng.uniform() < 0.1 else {"tool": seen}
        commands.append(servo.step(given, float(10.0 ** rng.uniform(-2.5, -1.5))))
        assert "recovering" not in commands[-1].limited.values()
    assert worst(commands, servo, jerk) <= 0.0
    low, high = servo.skeleton.limits
    q = np.array([command.q for command in commands])
    assert (q >= low - 1e-9).all()
    assert (q <= high + 1e-9).all()


def test_balls_and_a_free_root_are_limited_by_the_length_of_their_velocity():
    body = sy.bundled("humanoid").with_root("free")
    servo = sy.Servo(body, [sy.PoseGoal("left_hand"), sy.PoseGoal("hips", priority=1)], rate=100, velocity=2.0,
                     acceleration=9.0, jerk=90.0, root="free")  # fmt: skip
    servo.reset()
    pose = body.rest_pose()
    hand, hips = pose.transform("left_hand").copy(), pose.transform("hips").copy()
    hand[:3, 3] += (0.1, 0.4, 0.3)
    hand[:3, :3] = hand[:3, :3] @ sy.Rotation.from_rotvec((0.5, 1.0, 0.3)).as_matrix()
    hips[:3, 3] += (0.3, -0.1, 0.3)
    hips[:3, :3] = sy.Rotation.from_rotvec((0.2, 0.9, 0.0)).as_matrix() @ hips[:3, :3]
    q = np.array([command.q for command in run(servo, 300, {"left_hand": hand, "hips": hips})])
    times = np.full(299, 0.01)
    found = 0.0
    for row, joint in enumerate(servo.skeleton.joints):
        where = servo.skeleton.q_slice(row).start
        if joint.kind in (sy.Kind.BALL, sy.Kind.FREE):
            at = where + 3 * (joint.kind is sy.Kind.FREE)
            sizes = [np.linalg.norm(d, axis=1) for d in turn_differences(q[:, at : at + 4], times)]
            assert excesses(sizes, (2.0, 9.0, 90.0), np.spacing(1.0), 0.01) <= 0.0
            found = max(found, sizes[0].max())
        if joint.kind is sy.Kind.FREE:
            reach = servo.ik.reach
            sizes = [np.linalg.norm(d, axis=1) for d in differences(q[:, where : where + 3], times)]
            assert excesses(sizes, (2.0 * reach, 9.0 * reach, 90.0 * reach), 1e-15, 0.01) <= 0.0
    assert found > 0.3


HALF = np.eye(4) + 0.5 * np.eye(4, k=3)  # half a unit along x


def test_followers_bind_their_leader():
    joints = [
        sy.Joint("base"),
        sy.Joint("leader", "base", sy.Kind.HINGE, axis=(0, 0, 1), limit=sy.Interval(-2.0, 2.0)),
        sy.Joint("follower", "leader", sy.Kind.HINGE, HALF, axis=(0, 0, 1), mimic=sy.Mimic("leader", 2.0)),
        sy.Joint("tip", "follower", rest=HALF),
    ]
    body = sy.Skeleton(joints)
    servo = sy.Servo(body, sy.PositionGoal("tip"), rate=100, velocity=1.0, acceleration=20.0)
    servo.reset()
    place = sy.Pose(body, body.follow(np.array([1.2, 0.0]))).position("tip")
    commands = run(servo, 300, {"tip": place})
    q = np.array([command.q for command in commands])
    np.testing.assert_allclose(q[:, 1], 2.0 * q[:, 0], atol=1e-15)
    speed = np.abs(np.diff(q, axis=0) * 100.0).max(0)
    np.testing.assert_allclose(speed, (0.5, 1.0), rtol=1e-9)
    np.testing.assert_allclose([command.velocity[1] for command in commands[1:]], np.diff(q[:, 1]) * 100.0, atol=1e-9)
    assert commands[-1].reached


def test_a_start_that_is_too_fast_recovers():
    servo = arm()
    servo.reset(servo.step(dt=0.0).pose, velocity=np.full(7, 3.0))
    commands = run(servo, 60, {"tool": NEAR})
    assert "recovering" in commands[0].limited.values()
    speed = np.array([np.abs(command.velocity).max() for command in commands])
    recovering = ["recovering" in command.limited.values() for command in commands]
    length = recovering.index(False)
    assert (np.diff(speed[: length + 1]) <= 1e-12).all()
    assert length / 100.0 <= 3.0 / 8.0 + 0.02
    assert not any(recovering[length:])


def test_limits_of_the_file_are_used_and_missing_ones_named():
    slow = sy.bundled("arm7")
    slow = slow.with_joints([dataclasses.replace(joint, velocity=0.4) for joint in slow.joints])
    none = slow.with_joints([dataclasses.replace(joint, velocity=None) for joint in slow.joints])
    with pytest.raises(sy.InputError, match=r"velocity: expected a limit for every joint that moves; .*'joint1'"):
        sy.Servo(none, sy.PositionGoal("tool"), rate=50, acceleration=1.0)
    for velocity, most in ((None, 0.4), ("50%", 0.2), ({"joint1": 0.1}, 0.4)):
        servo = sy.Servo(slow, sy.PositionGoal("tool"), rate=100, velocity=velocity, acceleration=100.0)
        servo.reset()
        q = np.array([command.q for command in run(servo, 100, (-0.4, 0.1, 0.5))])
        speed = np.abs(np.diff(q, axis=0) * 100.0).max(0)
        assert speed.max() <= most * (1 + 1e-9)
        np.testing.assert_allclose(
            speed[0], 0.1 if isinstance(velocity, dict) else most, rtol=1e-9
        )  # the slowest joint


def test_a_new_limit_of_some_joints_leaves_those_of_the_others():
    quick = sy.bundled("arm7")
    quick = quick.with_joints([dataclasses.replace(joint, velocity=4.0) for joint in quick.joints])
    servo = sy.Servo(quick, sy.PositionGoal("tool"), rate=100, velocity="10%", acceleration=100.0)
    servo.reset()
    servo.change(velocity={"joint1": 0.1}, acceleration={"joint2": 50.0})
    q = np.array([command.q for command in run(servo, 100, (-0.4, 0.1, 0.5))])
    speed = np.abs(np.diff(q, axis=0) * 100.0).max(0)
    np.testing.assert_allclose(speed[0], 0.1, rtol=1e-9)
    np.testing.assert_allclose(speed[1:].max(), 0.4, rtol=1e-9)
    with pytest.raises(sy.InputError, match="velocity of 'joint1': expected above 0"):
        servo.change(velocity={"joint1": 0.0})
    servo.change(velocity=0.2)
    q = np.array([command.q for command in run(servo, 100, (0.4, -0.3, 0.5))][20:])
    assert np.abs(np.diff(q, axis=0) * 100.0).max() <= 0.2 * (1 + 1e-9)


def test_a_share_of_the_file_leaves_a_free_root_its_limit():
    body = sy.bundled("arm7")
    body = body.with_joints([dataclasses.replace(joint, velocity=4.0) for joint in body.joints])
    limits = {"rate": 100, "acceleration": 100.0, "root": "free"}
    with pytest.raises(sy.InputError, match=r"none for 'root'\. Pass .*velocity={'root': number}"):
        sy.Servo(body, sy.PositionGoal("tool"), velocity="10%", **limits)
    servo = sy.Servo(body, sy.PositionGoal("tool"), velocity={"root": (0.1, 0.2)}, **limits)
    servo.reset()
    servo.change(velocity="10%")
    moves = np.array([command.velocity for command in run(servo, 300, (4.0, 0.1, 0.5))])
    np.testing.assert_allclose(np.abs(moves[:, 6:]).max(), 0.4, rtol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(moves[:, :3], axis=1).max(), 0.2 * servo.ik.reach, rtol=0.5)
    assert np.linalg.norm(moves[:, :3], axis=1).max() <= 0.2 * servo.ik.reach * (1 + 1e-9)
    assert np.linalg.norm(moves[:, 3:6], axis=1).max() <= 0.1 * (1 + 1e-9)


def test_a_pair_of_limits_holds_for_followers_of_both_kinds():
    at = np.eye(4)
    at[2, 3] = 0.3
    body = sy.Skeleton(
        [
            sy.Joint("turn", kind=sy.Kind.HINGE, rest=at, axis=(0, 1, 0)),
            sy.Joint("lift", "turn", sy.Kind.SLIDE, rest=at, axis=(0, 0, 1), limit=sy.Interval(-0.5, 0.5)),
            sy.Joint("follower", "lift", sy.Kind.SLIDE, axis=(0, 0, 1), mimic=sy.Mimic("lift", ratio=3.0)),
            sy.Joint("tip", "follower", rest=at, tip=True),
        ]
    )
    servo = sy.Servo(body, sy.PositionGoal("tip"), rate=100, velocity=(2.0, 0.3), acceleration=20.0)
    servo.reset()
    q = np.array([command.q for command in run(servo, 100, (0.0, 0.0, 1.8))])
    np.testing.assert_allclose(np.abs(np.diff(q, axis=0)).max(0)[2] * 100, 0.3, rtol=1e-6)


def test_a_joint_that_no_goal_moves_is_not_limited():
    finger = sy.Joint("finger", "tool", sy.Kind.SLIDE, axis=(0, 1, 0), limit=sy.Interval(0.0, 0.04))
    hand = sy.bundled("arm7").with_joints([*sy.bundled("arm7").joints, finger])
    servo = sy.Servo(hand, sy.PoseGoal("tool"), rate=100, velocity=1.0, acceleration=5.0, jerk=50.0)
    servo.reset({"joint2": 0.6, "joint4": -1.2})
    away = servo.step(dt=0.0).pose.transform("tool").copy()
    away[0, 3] += 0.05
    commands = run(servo, 30, {"tool": away})
    assert any(command.limited for command in commands)
    assert not any("finger" in command.limited for command in commands)
    servo.reset({"finger": 0.02}, {"finger": 1.5})
    assert servo.step().limited["finger"] == "recovering"


BAD = {
    "rate": ({"rate": 0.0}, "rate: expected a number above 0"),
    "rate nan": ({"rate": math.nan}, "rate: expected a number above 0"),
    "velocity": ({"velocity": -1.0}, "velocity: expected above 0"),
    "velocity negative": ({"velocity": -2.0}, "per s, got -2.0"),
    "velocities": ({"velocity": [1.0] * 7}, "or a pair: of turns and of lengths, .* Numbers by joint are a dict"),
    "velocity text": ({"velocity": "fast"}, "velocity: expected a number, numbers by joint"),
    "share": ({"acceleration": "30%"}, "acceleration: expected a number, or numbers by joint"),
    "acceleration": ({"acceleration": math.inf}, "acceleration"),
    "jerk": ({"jerk": 0.0}, "jerk: expected above 0"),
    "partly": ({"acceleration": {"joint1": 1.0}}, "acceleration: expected a limit for every joint that moves"),
    "timeout": ({"timeout": -1.0}, "timeout: expected a number above 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_settings_that_cannot_be_used_are_refused(case):
    changes, words = BAD[case]
    with pytest.raises(sy.InputError, match=words):
        sy.Servo(sy.bundled("arm7"), sy.PoseGoal("tool"), **(LIMITS | changes))


WRONG = {
    "inf": {"tool": np.full((4, 4), math.inf)},
    "shape": {"tool": (1.0, 2.0)},
    "no rotation": {"tool": np.diag((2.0, 1.0, 1.0, 1.0))},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_target_is_refused_and_the_servo_goes_on(case):
    servo, other = arm(), arm()
    run(servo, 10, {"tool": NEAR})
    run(other, 10, {"tool": NEAR})
    with pytest.raises(sy.InputError):
        servo.step(WRONG[case])
    with pytest.raises(sy.errors.UnknownNameError):
        servo.step({"hand": NEAR})
    with pytest.raises(sy.InputError, match="dt: expected seconds"):
        servo.step({"tool": NEAR}, math.nan)
    np.testing.assert_array_equal(servo.step({"tool": NEAR}).q, other.step({"tool": NEAR}).q)


def test_without_limits_that_bind_it_is_a_track():
    body = sy.bundled("arm7")
    goal = sy.PoseGoal("tool")
    servo = sy.Servo(body, goal, rate=100, velocity=50.0, acceleration=1e4)
    start = sy.solve(body, sy.PoseGoal("tool", transform=NEAR), start=BENT).pose
    servo.reset(start)
    t = np.arange(300) / 100.0
    frames = np.tile(NEAR, (300, 1, 1))
    frames[:, :3, 3] += 0.1 * np.stack([np.sin(t), np.cos(2 * t) - 1.0, 0.5 * np.sin(3 * t)], axis=1)
    track = sy.IK(body, goal).track({"tool": frames}, start=start)
    q = np.array([servo.step({"tool": frame}).q for frame in frames])
    np.testing.assert_allclose(q, track.q, atol=2e-3)
    assert all(
        np.linalg.norm(sy.Pose(body, q[k]).position("tool") - frames[k, :3, 3]) < 1e-4 * 2.0 for k in range(5, 300)
    )


def test_a_target_held_for_long_does_not_drift():
    servo = arm()
    first = run(servo, 400, {"tool": NEAR})[-1].q
    last = run(servo, 5000, {"tool": NEAR})[-1].q
    np.testing.assert_array_equal(first, last)


def test_an_ik_can_be_driven():
    ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"))
    servo = sy.Servo(ik, **LIMITS)
    servo.reset()
    assert servo.ik is ik
    assert run(servo, 300, (0.4, 0.1, 0.5))[-1].reached
    with pytest.raises(sy.InputError, match="none with an IK"):
        sy.Servo(ik, sy.PositionGoal("tool"), **LIMITS)


@pytest.mark.parametrize("late", ["deviate", "slow"])
def test_a_slow_body_stays_on_the_path_of_its_targets(late):
    servo = arm(late=late)
    start = servo.step(dt=0.0).pose.position("tool")
    commands = run(servo, 500, {"tool": NEAR})
    assert commands[-1].status is sy.Status.REACHED
    way = NEAR[:3, 3] - start
    beside = [np.linalg.norm(np.cross(command.pose.position("tool") - start, way)) for command in commands]
    beside = max(beside) / np.linalg.norm(way)
    assert beside < 1e-3 if late == "slow" else beside > 1e-3
    assert worst(commands, servo) <= 0.0
    assert not any("recovering" in command.limited.values() for command in commands)


def test_a_slow_body_holds_and_goes_on():
    servo = arm(late="slow", timeout=0.1)
    moving = run(servo, 40, {"tool": NEAR})
    held = run(servo, 200, None)
    assert held[-1].status is sy.Status.HOLDING
    np.testing.assert_allclose(held[-1].velocity, 0.0, atol=1e-9)
    back = run(servo, 500, {"tool": NEAR})
    assert back[-1].status is sy.Status.REACHED
    assert worst(moving + held + back, servo) <= 0.0


def test_a_filter_removes_noise_and_a_dead_band_the_rest():
    rng = np.random.default_rng(1)
    spans = []
    for chosen in (None, sy.live.OneEuro(), sy.live.OneEuro(dead_band=0.05)):
        servo, found = arm(filter=chosen), []
        for k in range(600):
            seen = NEAR.copy()
            seen[:3, 3] += 1e-3 * rng.normal(size=3)
            seen[:3, :3] = seen[:3, :3] @ sy.Rotation.from_rotvec(1e-3 * rng.normal(size=3)).as_matrix()
            command = servo.step({"tool": seen})
            if k >= 400:
                found.append(command.pose.position("tool"))
        spans.append(np.std(found, axis=0).max())
        assert np.linalg.norm(found[-1] - NEAR[:3, 3]) < 0.1 * servo.ik.reach
    assert spans[1] < 0.5 * spans[0]
    assert spans[2] < 1e-9
    with pytest.raises(sy.InputError, match="filter: expected a OneEuro"):
        arm(filter=1.0)
    with pytest.raises(sy.InputError, match="late: expected 'deviate' or 'slow'"):
        arm(late="never")
    with pytest.raises(sy.InputError, match="OneEuro: cutoff"):
        sy.live.OneEuro(cutoff=0.0)


def test_near_targets_of_a_straight_body_are_reached_near_by():
    """At straight limbs a few steps find no way, and restarts find one that is far."""
    body = sy.bundled("humanoid")
    feet = [sy.PoseGoal(f"{side}_foot") for side in ("left", "right")]
    hands = [sy.PoseGoal(f"{side}_hand", priority=1) for side in ("left", "right")]
    servo = sy.Servo(body, [*feet, *hands], rate=50, velocity=2.0, acceleration=10.0, root="free")
    rng = np.random.default_rng(5)
    rest = servo.skeleton.rest_pose()
    arms = [f"{side}_{part}" for side in ("left", "right") for part in ("upper_arm", "lower_arm", "hand")]
    for _ in range(4):
        turned = {name: sy.Rotation.from_rotvec(rng.uniform(-0.3, 0.3, 3)).as_quat() for name in arms
                  if servo.skeleton.joints[servo.skeleton.joint_names.index(name)].kind is sy.Kind.BALL}  # fmt: skip
        near = sy.Pose(servo.skeleton, sy.Pose(servo.skeleton, turned).inside[0])
        servo.reset(rest)
        commands = run(servo, 250, {name: near.transform(name) for name in ("left_hand", "right_hand")})
        assert commands[-1].reached
        feet_now = [commands[k].pose.position("left_foot") for k in range(0, 250, 25)]
        assert np.abs(np.array(feet_now) - rest.position("left_foot")).max() < 1e-3


def test_a_target_that_cannot_be_used_is_named_as_it_was_given():
    servo = arm()
    bad = NEAR.copy()
    bad[0, 3] = math.inf
    before = servo.step({"tool": NEAR})
    with pytest.raises(sy.InputError, match=r"finite numbers, got .*inf"):
        servo.step({"tool": bad})
    with pytest.raises(sy.InputError, match="last row"):
        servo.step({"tool": 2.0 * NEAR})
    assert np.abs(servo.step({"tool": NEAR}).velocity - before.velocity).max() <= 8.0 / 100 * (1 + 1e-9)
