"""Inputs of a servo that are probably slips, and targets without numbers."""

import warnings

import numpy as np
import pytest

import synovia as sy

LIMITS = {"rate": 100, "velocity": 1.5, "acceleration": 8.0}
NAN = float("nan")


def servo_of(goals=None, **changes):
    servo = sy.Servo(sy.bundled("arm7"), goals or sy.PoseGoal("tool"), **(LIMITS | changes))
    servo.reset({"joint2": 0.6, "joint4": -1.2})
    return servo


SLIPS = {
    "rate": (lambda: servo_of(rate=0.004), "Did you mean rate=250"),
    "dt": (lambda: servo_of().step(dt=4), "Did you mean 0.004"),
    "reset": (
        lambda: sy.Servo(sy.bundled("arm7"), sy.PoseGoal("tool"), **LIMITS).step(),
        r"Did you mean servo.reset\(pose",
    ),
    "turn": (lambda: servo_of().step(sy.Twist(angular=(0, 0, 90))), "Did you mean 90 degrees, 1.571"),
    "move": (lambda: servo_of().step(sy.Twist((250, 0, 0))), "Did you mean millimetres, 0.25"),
    "place": (lambda: servo_of().step({"tool": (400, 100, 500)}), r"Did you mean millimetres, \(0.4, 0.1, 0.5\)"),
    "jog": (lambda: servo_of().step(jog={"joint1": 90}), "Did you mean 90 degrees, 1.571"),
    "joints": (lambda: servo_of().step(joints={"joint1": 90}), "Did you mean 90 degrees, 1.571"),
}


@pytest.mark.parametrize("case", SLIPS)
def test_a_slip_is_questioned(case):
    call, words = SLIPS[case]
    with pytest.warns(UserWarning, match=words):
        call()


def test_velocities_far_beyond_those_of_the_file_are_questioned(tmp_path):
    text = """<robot name="two"><link name="base"/><link name="a"/><link name="b"/>
    <joint name="turn" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" velocity="2.2" effort="1"/></joint>
    <joint name="bend" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0.5 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="2.2" effort="1"/></joint></robot>"""
    path = tmp_path / "two.urdf"
    path.write_text(text, encoding="utf-8")
    arm = sy.load_skeleton(path)
    with pytest.warns(UserWarning, match=r"2.2 per s. So are those of 'bend'. .* Did you mean 90 degrees, 1.571"):
        servo = sy.Servo(arm, sy.PositionGoal("b"), rate=100, velocity=90, acceleration=8.0)
    servo = sy.Servo(arm, sy.PositionGoal("b"), rate=100, velocity=4.0, acceleration=8.0)
    with pytest.warns(UserWarning, match="90 degrees"):
        servo.change(velocity={"turn": 90})


def test_what_is_usual_is_not_questioned():
    servo = servo_of()
    servo.step(sy.Twist((0.3, 0.0, 0.0), (0.0, 0.0, 3.0)), dt=0.02)
    servo.step(jog={"joint1": 3.0}, joints={"joint2": 2.0})
    servo.step(dt=0.1)
    servo.step((3.0, 0.0, 4.0))
    sy.Servo(sy.bundled("arm7"), sy.PoseGoal("tool"), **LIMITS).step(dt=0)


@pytest.mark.parametrize("form", [(NAN, 0.1, 0.5), [NAN, 0.1, 0.5], np.array([NAN, 0.1, 0.5])])
def test_a_target_with_nan_counts_as_none_in_its_tick(form):
    """Commands are those of a servo that gets no target in this tick, and the state says so."""
    goals = [sy.PositionGoal("tool"), sy.PositionGoal("joint4", name="elbow", priority=1)]
    servo, other = servo_of(goals), servo_of(goals)
    place = (0.4, 0.1, 0.5)
    for k in range(60):
        lost = 20 <= k < 30
        one = servo.step({"tool": form if lost else place, "elbow": (0.0, 0.1, 0.5)})
        two = other.step({"elbow": (0.0, 0.1, 0.5)} if lost else {"tool": place, "elbow": (0.0, 0.1, 0.5)})
        assert np.array_equal(one.q, two.q)
        assert (one.states["tool"] == "lost") == lost
        assert one.stamps == ({"tool": "NaN"} if lost else {})
    servo.step({"tool": form})
    gone = [servo.step({"tool": form}) for _ in range(60)]
    assert gone[-1].status is sy.Status.HOLDING
    assert any("has NaN" in line for line in gone[-1].explain())
    assert servo.step({"tool": place}).states["tool"] != "lost"


def test_nothing_is_reached_before_the_first_target_without_nan():
    """A goal whose targets have all had NaN is not met; if nothing else was asked, the body holds."""
    servo = servo_of()
    first = servo.step((NAN, 0.1, 0.5))
    assert (first.status, first.states, first.reached) == (sy.Status.HOLDING, {"tool": "lost"}, False)
    assert servo.step().states == {"tool": "waiting"}
    servo = servo_of([sy.PositionGoal("tool"), sy.PositionGoal("joint4", name="elbow", priority=1)])
    place = servo.step(dt=0).pose.position("tool")
    both = servo.step({"tool": place, "elbow": (NAN, 0.1, 0.5)})
    assert (both.status, both.states) == (sy.Status.LATE, {"tool": "reached", "elbow": "lost"})
    assert servo.step({"tool": (NAN, 0.1, 0.5)}).status is sy.Status.REACHED  # of the target before


@pytest.mark.parametrize("jog", [None, {"joint3": 0.1}])
def test_targets_that_are_no_transforms_are_named(jog):
    """The message is the same while joints are driven, and the servo is as before."""
    servo = servo_of()
    target = servo.step(dt=0).pose.transform("tool")
    before = servo.step({"tool": target}, jog=jog)
    scaled, last = target.copy(), target.copy()
    scaled[:3, :3] *= 1.5
    last[3, 3] = 2.0
    for bad, words in ((scaled, "rotation of target of 'tool': expected an orthonormal"), (last, "last row of target")):
        with pytest.raises(sy.InputError, match=words):
            servo.step({"tool": bad}, jog=jog)
        assert np.array_equal(servo.step(dt=0).q, before.q)


def test_a_pose_a_joint_and_a_clutch_with_nan():
    servo = servo_of()
    target = servo.step(dt=0).pose.transform("tool")
    servo.step({"tool": target})
    bad = target.copy()
    bad[1, 3] = NAN
    assert servo.step({"tool": bad}).states == {"tool": "lost"}
    assert servo.step(bad).states == {"tool": "lost"}
    assert servo.step({"tool": (bad[:3, 3], sy.Rotation.identity())}).states == {"tool": "lost"}
    command = servo.step({"tool": target}, jog={"joint3": NAN})
    assert command.states == {"tool": "reached", "joint3": "lost"}
    clutch = servo.clutch("tool")
    clutch.engage()
    still = [servo.step({"tool": bad}) for _ in range(20)]
    assert np.abs(still[-1].velocity).max() < 1e-9
    with pytest.raises(sy.errors.UnknownNameError, match="tol"):
        servo.step({"tol": bad})


def test_the_device_of_a_clutch_may_be_anywhere():
    """Only its motion counts, so its places are not questioned."""
    servo = servo_of()
    clutch = servo.clutch("tool")
    clutch.engage()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (400.0, 400.001):
            T = np.eye(4)
            T[:3, 3] = x, 100.0, 500.0
            servo.step({"tool": T})
    assert np.abs(servo.step().velocity).max() < 1.0
