"""A robot of hinges that follows a tracked person, in LeRobot's units, and in its processor steps."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import synovia as sy
from conftest import REPO
from synovia.errors import InputError, MissingExtraError
from synovia.lerobot import BodyToJoints
from synovia.model import Joint, Kind

FPS, VELOCITY, ACCELERATION = 30.0, 200.0, 2000.0  # per second, degrees


def offset(x, y, z):
    rest = np.eye(4)
    rest[:3, 3] = x, y, z
    return rest


@pytest.fixture(scope="module")
def robot():
    """Two arms of four hinges on a column, z up, x ahead."""
    joints = [Joint("column", None, Kind.FIXED, offset(0, 0, 1.2))]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        above = "column"
        for name, axis, rest in (
            ("shoulder_pitch", (0, 1, 0), (0, 0.2 * sign, 0)), ("shoulder_roll", (1, 0, 0), (0, 0, 0)),
            ("shoulder_yaw", (0, 0, 1), (0, 0, 0)), ("elbow", (0, 1, 0), (0, 0, -0.3)),
        ):  # fmt: skip
            limit = sy.Interval(-2.6, 0.0) if name == "elbow" else sy.Interval(-3.0, 3.0)
            joints.append(Joint(f"{side}_{name}", above, Kind.HINGE, offset(*rest), axis=axis, limit=limit))
            above = f"{side}_{name}"
        joints.append(Joint(f"{side}_gripper", above, Kind.FIXED, offset(0, 0, -0.25)))
    return sy.Skeleton(joints, name="robot", up="z", forward="x", meters_per_unit=1.0)


@pytest.fixture(scope="module")
def walk():
    return sy.load_motion(REPO / "examples" / "walk.bvh")


@pytest.fixture(scope="module")
def arms(walk):
    """The joint map of both arms."""
    rows = walk.skeleton.role_rows
    return {
        f"{side}_{part}": (rows[f"{side}_{part}"], f"{side}_{joint}")
        for side in ("left", "right")
        for part, joint in (("upper_arm", "shoulder_yaw"), ("lower_arm", "elbow"))
    }


@pytest.fixture
def follower(robot, walk, arms):
    return BodyToJoints(robot, walk.skeleton, fps=FPS, velocity=VELOCITY, acceleration=ACCELERATION, joint_map=arms,
                        learn=0)  # fmt: skip


def followed(follower, poses, current):
    """Return the values of the motors for some poses; the robot does what it is told."""
    out = [np.asarray(current, float)]
    for pose in poses:
        out.append(follower.step(out[-1], pose))
    return np.array(out)


def bone(pose, a, b):
    way = pose.position(b) - pose.position(a)
    return way / np.linalg.norm(way)


def test_arms_have_the_directions_of_the_person_within_limits(follower, robot, walk):
    assert follower.motor_names == [joint.name for joint in robot.joints if joint.kind is Kind.HINGE]
    start = np.zeros(8)
    values = followed(follower, [walk[k] for k in range(90)], start)
    velocity = np.diff(values, axis=0) * FPS
    assert np.abs(velocity).max() <= VELOCITY * (1.0 + 1e-9)
    assert np.abs(np.diff(velocity, axis=0)).max() * FPS <= ACCELERATION * (1.0 + 1e-6)
    pose = follower.pose
    to_robot = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # x left, y up, z ahead
    for side in ("left", "right"):
        roles = walk.skeleton.roles
        person = bone(walk[89], roles[f"{side}_upper_arm"], roles[f"{side}_lower_arm"])
        mine = bone(pose, f"{side}_shoulder_yaw", f"{side}_elbow")
        assert np.degrees(np.arccos(np.clip(mine @ (to_robot @ person), -1.0, 1.0))) < 25.0
    off = [limb["mean_deg"] for limb in follower.live.report().limbs]
    assert off
    assert max(off) < 20.0


def test_it_begins_where_the_robot_is_and_begins_anew_if_somebody_moved_it(follower, walk):
    start = np.array([20.0, -10.0, 5.0, -30.0, 0.0, 0.0, 10.0, -40.0])
    values = followed(follower, [walk[0]] * 5, start)
    assert np.abs(values[1] - start).max() <= ACCELERATION / FPS**2 + 1e-6
    moved = values[-1] + 40.0 * np.array([1, 0, 0, 0, 0, 0, 0, 0])
    after = follower.step(moved, walk[0])
    assert np.abs(after - moved).max() <= ACCELERATION / FPS**2 + 1e-6
    follower.reset()
    again = follower.step(start, walk[0])
    assert np.abs(again - start).max() <= ACCELERATION / FPS**2 + 1e-6


def test_without_a_person_the_robot_holds(follower, walk):
    values = followed(follower, [walk[k] for k in range(40)] + [None] * 60, np.zeros(8))
    assert np.abs(values[-1] - values[-2]).max() < 1e-9
    assert follower.pose.status is sy.Status.HOLDING
    follower.receive(walk[3], 5.0)
    follower.step(values[-1])
    assert follower.pose.status is not sy.Status.HOLDING


def test_what_cannot_be_used_is_refused(robot, walk, arms, follower):
    with pytest.raises(InputError, match="acceleration"):
        BodyToJoints(robot, walk.skeleton, fps=30, acceleration=None)
    with pytest.raises(InputError, match="hinge or slide that follows no other joint"):
        BodyToJoints(robot, walk.skeleton, ["left_gripper"], fps=30, acceleration=1.0)
    with pytest.raises(sy.errors.UnknownNameError, match="left_elbow"):
        BodyToJoints(robot, walk.skeleton, ["left_elbwo"], fps=30, acceleration=1.0)
    with pytest.raises(InputError, match="joint values"):
        follower.step([0.0, 1.0])


@pytest.fixture
def stand_in(monkeypatch):
    """The few classes of LeRobot that a step needs, where it is not installed."""
    keys = SimpleNamespace(OBSERVATION="observation", ACTION="action")

    class Step:
        def __call__(self, transition):
            self.transition = dict(transition)
            return {**transition, "action": self.action(dict(transition["action"]))}

    known = {}

    class Registry:
        @staticmethod
        def register(name):
            return lambda step: known.setdefault(name, step)

    processor, types = ModuleType("lerobot.processor"), ModuleType("lerobot.configs.types")
    processor.RobotActionProcessorStep, processor.ProcessorStepRegistry = Step, Registry
    processor.TransitionKey = keys
    types.PipelineFeatureType, types.FeatureType = SimpleNamespace(ACTION="action"), SimpleNamespace(ACTION="ACTION")
    types.PolicyFeature = lambda **given: given
    for name in ("lerobot", "lerobot.configs"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "lerobot.processor", processor)
    monkeypatch.setitem(sys.modules, "lerobot.configs.types", types)
    monkeypatch.delitem(sys.modules, "synovia.lerobot.steps", raising=False)
    yield known
    sys.modules.pop("synovia.lerobot.steps", None)


def test_a_step_replaces_the_person_by_motors(stand_in, follower, walk):
    from synovia.lerobot.steps import RetargetBodyToJoints

    assert stand_in == {"synovia_retarget_body_to_joints": RetargetBodyToJoints}
    step = RetargetBodyToJoints(follower)
    seen = {f"{name}.pos": 0.0 for name in follower.motor_names}
    action = step({"observation": seen, "action": {"body": walk.q[5], "body.time": 0.1, "gripper.pos": 40.0}})["action"]
    assert set(action) == {*seen, "gripper.pos"}
    assert action["gripper.pos"] == 40.0
    with pytest.raises(InputError, match="observation"):
        step({"observation": {}, "action": {"body": walk.q[5]}})
    step.reset()
    assert follower.pose is None
    features = step.transform_features({"action": {"body": 1, "gripper.pos": 2}})
    assert set(features["action"]) == {*seen, "gripper.pos"}


def test_a_step_runs_in_a_pipeline_of_lerobot(follower, walk):
    processor = pytest.importorskip("lerobot.processor")
    from lerobot.processor.converters import robot_action_observation_to_transition, transition_to_robot_action

    from synovia.lerobot.steps import RetargetBodyToJoints

    assert processor.ProcessorStepRegistry.get("synovia_retarget_body_to_joints") is RetargetBodyToJoints
    pipeline = processor.RobotProcessorPipeline(
        steps=[RetargetBodyToJoints(follower)],
        to_transition=robot_action_observation_to_transition,
        to_output=transition_to_robot_action,
    )
    seen = {f"{name}.pos": 0.0 for name in follower.motor_names}
    for k in range(20):
        sent = pipeline(({"body": walk.q[k], "body.time": k / FPS, "gripper.pos": 1.0}, seen))
        assert set(sent) == {*seen, "gripper.pos"}
        seen = {name: sent[name] for name in seen}
    assert max(abs(value) for value in seen.values()) > 1.0


def test_without_lerobot_a_step_says_what_to_install():
    if "lerobot.processor" in sys.modules:
        pytest.skip("LeRobot is installed")
    with pytest.raises(MissingExtraError, match="pip install lerobot"):
        import synovia.lerobot.steps  # noqa: F401
