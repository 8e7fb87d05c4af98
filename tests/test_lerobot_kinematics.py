"""Kinematics for LeRobot's processor steps: against Pinocchio, over whole paths, and in the steps themselves."""

from itertools import pairwise

import numpy as np
import pytest

import synovia as sy
from conftest import REPO
from synovia.lerobot.kinematics import Kinematics

MOTORS = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]


@pytest.fixture(scope="module")
def panda_file(shared_data):
    return shared_data / "robot" / "panda.urdf"


@pytest.fixture(scope="module")
def so100_file(shared_data):
    return shared_data / "robot" / "so100.urdf"


def path_of(skeleton, names, frames=40, size=0.3):
    """Joint values over time within the limits, (frames, joints), degrees for hinges."""
    rows = [skeleton.value_index(name) for name in names]
    middle = np.array([np.mean(skeleton.value_range(row)) for row in rows])
    half = np.array([np.ptp(skeleton.value_range(row)) / 2.0 for row in rows])
    t = np.linspace(0.0, 2.0, frames)[:, None]
    scale = [np.degrees(1.0) if skeleton.joints[row].kind is sy.Kind.HINGE else 1.0 for row in rows]
    return (middle + size * half * np.sin(t + np.arange(len(rows)))) * scale


def test_the_pose_is_that_of_pinocchio(panda_file):
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(panda_file))
    data = model.createData()
    kinematics = Kinematics(panda_file, "panda_link8")
    names = list(model.names)[1:]
    order = [kinematics.joint_names.index(name) for name in names if name in kinematics.joint_names]
    assert [kinematics.joint_names[k] for k in order] == [name for name in names if name in kinematics.joint_names]
    for values in path_of(kinematics.skeleton, kinematics.joint_names, 5):
        q = pin.neutral(model)
        for name, value in zip(kinematics.joint_names, values, strict=True):
            hinge = kinematics.skeleton.joint(name).kind is sy.Kind.HINGE
            q[model.joints[model.getJointId(name)].idx_q] = np.radians(value) if hinge else value
        pin.framesForwardKinematics(model, data, q)
        want = data.oMf[model.getFrameId("panda_link8")].homogeneous
        assert np.abs(kinematics.forward_kinematics(values) - want).max() < 1e-9


@pytest.mark.parametrize("name", ["panda", "so100"])
def test_poses_of_a_path_are_reached_near_the_joints_before(name, panda_file, so100_file):
    panda = Kinematics(panda_file, "panda_link8", [f"panda_joint{k}" for k in range(1, 8)])
    kinematics = panda if name == "panda" else Kinematics(so100_file, "link:gripper", MOTORS)
    path = path_of(kinematics.skeleton, kinematics.joint_names)
    values = path[0]
    for want in path[1:]:
        target = kinematics.forward_kinematics(want)
        before, values = values, kinematics.inverse_kinematics(values, target)
        assert kinematics.solution.status.name == "REACHED"
        made = kinematics.forward_kinematics(values)
        assert np.abs(made - target).max() < 2e-3
        assert np.abs(values - before).max() < 10.0  # degrees: no other branch
    if name == "so100":
        assert np.abs(values - want)[:5].max() < 1.0  # five joints for a pose: no choice
        assert values[5] == path[0, 5]  # the gripper does not move the tool


def test_the_larger_weight_comes_first(so100_file):
    kinematics = Kinematics(so100_file, "link:gripper", MOTORS)
    start = path_of(kinematics.skeleton, MOTORS, 1)[0]
    target = kinematics.forward_kinematics(start)
    target[:3, :3] = target[:3, :3] @ sy.Rotation.from_euler("yz", [25.0, 20.0], degrees=True).as_matrix()

    def off(**weights):
        made = kinematics.forward_kinematics(kinematics.inverse_kinematics(start, target, **weights))
        angle = sy.Rotation.from_matrix(made[:3, :3].T @ target[:3, :3]).magnitude()
        return np.linalg.norm(made[:3, 3] - target[:3, 3]), angle

    place, turn = off(), off(position_weight=0.01, orientation_weight=1.0)
    alone = off(orientation_weight=0.0)
    assert place[0] < 1e-3
    assert alone[0] < 1e-3
    assert alone[1] >= place[1] - 1e-3
    assert turn[1] <= place[1] + 1e-3
    assert off(position_weight=0.0)[1] <= turn[1] + 1e-3


def test_values_after_the_joints_are_left_alone():
    arm = Kinematics("arm7", "tool")
    values = np.array([10.0, 40.0, 10.0, -70.0, 10.0, 40.0, 10.0, 42.0])
    back = arm.inverse_kinematics(values, arm.forward_kinematics(values + 1.0))
    assert back[-1] == 42.0
    assert np.abs(back[:-1] - values[:-1]).max() < 20.0


def test_mistakes_are_named():
    for make, error, words in (
        (lambda: Kinematics("arm7"), sy.errors.UnknownNameError, "gripper_frame_link"),
        (lambda: Kinematics("arm7", "tool", ["joint1", "jiont2"]), sy.errors.UnknownNameError, "jiont2"),
        (lambda: Kinematics("humanoid", "left_hand", ["spine"]), sy.InputError, "expected a hinge or slide"),
        (lambda: Kinematics("arm7", "tool").forward_kinematics([0.0]), sy.InputError, "7 numbers"),
        (lambda: Kinematics("arm7", "tool").forward_kinematics([np.nan] * 7), sy.InputError, "finite"),
        (lambda: Kinematics("arm7", "tool").inverse_kinematics([0.0] * 7, np.eye(3)), sy.InputError, "shape"),
        (lambda: Kinematics("arm7", "tool").inverse_kinematics([0.0] * 7, np.eye(4), 0, 0), sy.InputError, "above 0"),
        (lambda: Kinematics("arm7", "tool", velocity=60.0), sy.InputError, "fps"),
        (lambda: Kinematics("arm7", "tool", fps=30), sy.InputError, "acceleration"),
        (lambda: Kinematics("arm7", "tool", fps=0, velocity=9.0, acceleration=300.0), sy.InputError, "rate"),
        (lambda: Kinematics("arm7", "tool", fps=30, velocity=9.0, acceleration=-1.0), sy.InputError, "acceleration"),
        (
            lambda: Kinematics("arm7", "tool", fps=30, velocity={"j": 1.0}, acceleration=1.0),
            sy.errors.UnknownNameError,
            "'j'",
        ),
    ):
        with pytest.raises(error, match=words):
            make()


LIMITS = {"fps": 50, "velocity": 60.0, "acceleration": 400.0}  # degrees
START = np.array([10.0, 40.0, 10.0, -70.0, 10.0, 40.0, 10.0])


def away(arm, shift):
    """The pose of the start, moved."""
    pose = arm.forward_kinematics(START)
    pose[:3, 3] += shift
    return pose


def limited(answers, fps=50):
    """The highest velocity and acceleration of answers, from their differences alone."""
    speeds = np.diff(answers, axis=0) * fps
    return np.abs(speeds).max(), np.abs(np.diff(speeds, axis=0)).max() * fps


@pytest.mark.parametrize("measured", [False, True])
def test_with_a_rate_each_call_is_a_tick_within_the_limits(measured):
    """Also if the current joints are those of a robot that is late and noisy."""
    arm = Kinematics("arm7", "tool", **LIMITS)
    random = np.random.default_rng(1)
    answers = [START]
    for k in range(400):
        current = answers[max(len(answers) - 3, 0)] + random.normal(0.0, 0.3, 7) if measured else answers[-1]
        current = START if k == 0 else current
        shift = (-0.1, 0.25, 0.1) if (k // 100) % 2 else (0.1, -0.2, 0.05)
        answers.append(arm.inverse_kinematics(current, away(arm, shift)))
    assert arm.command.reached
    np.testing.assert_allclose(arm.forward_kinematics(answers[-1]), away(arm, shift), atol=1e-3)
    fastest, hardest = limited(answers)
    assert fastest <= 60.0 * (1.0 + 1e-9)
    assert 300.0 < hardest <= 400.0 * (1.0 + 1e-8)


def test_other_weights_go_on_from_the_motion_before():
    arm = Kinematics("arm7", "tool", **LIMITS)
    answers = [START]
    for k in range(120):
        weight = 0.0 if (k // 15) % 2 else 0.01
        answers.append(arm.inverse_kinematics(answers[-1], away(arm, (0.0, 0.4, 0.0)), orientation_weight=weight))
    fastest, hardest = limited(answers)
    assert fastest <= 60.0 * (1.0 + 1e-9)
    assert hardest <= 400.0 * (1.0 + 1e-8)


def test_the_position_comes_first_on_the_way_too(so100_file):
    """Along a path on which the arm cannot keep the orientation."""
    arm = Kinematics(so100_file, "link:gripper", MOTORS, fps=30, velocity=90.0, acceleration=400.0)
    values = np.array([0.0, 100.0, -90.0, 20.0, 0.0, 30.0])
    target = arm.forward_kinematics(values)
    first, off, turned = target[:3, 3].copy(), [], []
    for k in range(240):
        a = 2.0 * np.pi * k / 200.0
        target[:3, 3] = first + np.array([0.03 * np.sin(a), 0.05 * np.sin(a), 0.03 * (1.0 - np.cos(a))])
        values = arm.inverse_kinematics(values, target)
        off.append(np.linalg.norm(arm.forward_kinematics(values)[:3, 3] - target[:3, 3]))
        turned.append(arm.command.lag.angle)
    assert max(off) < 5e-3
    assert max(turned) > 0.1


def test_an_arm_that_was_moved_by_hand_begins_anew_from_where_it_is():
    arm = Kinematics("arm7", "tool", **LIMITS, window=5.0)
    for _ in range(20):
        arm.inverse_kinematics(START, away(arm, (0.0, 0.1, 0.0)))
    moved = START + 30.0
    assert np.abs(arm.inverse_kinematics(moved, arm.forward_kinematics(moved + 5.0)) - moved).max() < 0.5
    arm.reset()
    assert np.abs(arm.inverse_kinematics(moved + 4.0, away(arm, (0.0, 0.1, 0.0))) - moved - 4.0).max() < 0.5


def test_joints_that_do_not_move_the_tool_and_later_values_stay_as_given(so100_file):
    kinematics = Kinematics(so100_file, "link:gripper", MOTORS, **LIMITS)
    values = np.append(path_of(kinematics.skeleton, MOTORS, 1)[0], 7.0)
    target = kinematics.forward_kinematics(values + 3.0)
    for jaw in (10.0, 30.0, 5.0):
        values[5] = jaw
        answer = kinematics.inverse_kinematics(values, target)
        assert answer[5] == jaw
        assert answer[6] == 7.0
        assert np.abs(answer[:5] - values[:5]).max() > 0.0


def test_limits_are_by_joint_or_those_of_the_file():
    robot = sy.load_skeleton(REPO / "examples" / "arm.urdf")
    files = Kinematics(robot, "tool", fps=50, acceleration=400.0)
    share = Kinematics(robot, "tool", fps=50, velocity="50%", acceleration=400.0)
    slow = Kinematics(robot, "tool", fps=50, velocity={"joint1": 5.0}, acceleration=400.0)
    tops = []
    for arm in (files, share, slow):
        answers = [START]
        for _ in range(40):
            answers.append(arm.inverse_kinematics(answers[-1], away(arm, (-0.3, 0.5, 0.0))))
        tops.append(np.abs(np.diff(answers, axis=0)).max(axis=0) * 50)
    top = np.degrees([joint.velocity for joint in robot.joints if joint.kind is sy.Kind.HINGE])
    assert (tops[0] <= top * (1.0 + 1e-9)).all()
    assert (tops[1] <= 0.5 * top * (1.0 + 1e-9)).all()
    assert tops[2][0] <= 5.0 * (1.0 + 1e-9) < tops[0][0]


@pytest.mark.filterwarnings("default")
def test_the_steps_of_lerobot_take_it(so100_file):
    steps = pytest.importorskip("lerobot.robots.so_follower.robot_kinematic_processor")
    from lerobot.processor.converters import create_transition

    kinematics = Kinematics(so100_file, "link:gripper", MOTORS)
    forward = steps.ForwardKinematicsJointsToEE(kinematics, MOTORS)
    inverse = steps.InverseKinematicsEEToJoints(kinematics, MOTORS)
    path = path_of(kinematics.skeleton, MOTORS, 10)
    for before, after in pairwise(path):
        joints = {f"{name}.pos": float(value) for name, value in zip(MOTORS, after, strict=True)}
        seen = {f"{name}.pos": float(value) for name, value in zip(MOTORS, before, strict=True)}
        poses = forward(create_transition(observation=seen, action=joints))["action"]
        assert {"ee.x", "ee.wz", "ee.gripper_pos"} <= set(poses)
        answer = inverse(create_transition(observation=seen, action=poses))["action"]
        assert set(answer) == set(joints)
        assert max(abs(answer[name] - joints[name]) for name in joints) < 1.0
