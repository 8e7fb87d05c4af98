"""States of goals in commands, and the reasons why they are late, as a user reads them."""

import copy

import numpy as np
import pytest

import synovia as sy

BENT = {"joint2": 0.6, "joint4": -1.2, "joint6": 0.9}
LIMITS = {"rate": 100, "velocity": 1.5, "acceleration": 8.0}


def arm(goals, start=BENT, **changes):
    servo = sy.Servo(sy.bundled("arm7"), goals, **(LIMITS | changes))
    servo.reset(start)
    return servo


def planar(values, goals, **changes):
    """A servo of three hinges in a plane, of 0.3 each."""
    rest = np.eye(4)
    rest[0, 3] = 0.3
    joints = [
        sy.Joint(f"bone{k}", f"bone{k - 1}" if k else None, sy.Kind.HINGE, rest if k else np.eye(4),
                 axis=np.array((0, 0, 1.0)), limit=sy.Interval(-2.0, 2.0)) for k in range(3)
    ]  # fmt: skip
    body = sy.Skeleton([*joints, sy.Joint("tip", "bone2", rest=rest, tip=True)], name="planar", meters_per_unit=1.0)
    servo = sy.Servo(body, goals, **(LIMITS | changes))
    servo.reset(values)
    return servo


def test_goals_have_a_state_from_their_first_target_to_the_last():
    goals = [sy.PositionGoal("tool"), sy.DirectionGoal("joint4", (0, 0, 1.0), (0, 0, 1.0), name="elbow", priority=1)]
    servo = arm(goals, timeout=0.1)
    assert servo.step().states["tool"] == "waiting"
    place = servo.step().pose.position("tool")
    first = servo.step({"tool": place + np.array((0.0, 0.05, 0.0))})
    assert first.states["tool"] == "late"
    for _ in range(200):
        command = servo.step({"tool": place + np.array((0.0, 0.05, 0.0))})
    assert command.states["tool"] == "reached"
    for _ in range(800):
        command = servo.step({"tool": place + np.array((1.5, 0.0, 0.0))})
    assert command.states["tool"] == "missed"
    for _ in range(40):
        lost = servo.step()
    assert lost.states["tool"] == "lost"
    servo.step({"tool": place})
    held = servo.hold()
    assert set(held.states.values()) == {"holding"}
    assert list(held.states) == ["tool", "elbow"]
    assert copy.copy(first).states == first.states


@pytest.mark.parametrize(("solver", "jerk"), [(None, None), ("lm", None), (None, 100.0)])
def test_a_rest_goal_leads_home_as_far_as_a_still_target_leaves_free(solver, jerk):
    """At the end, the distance from the reference has no slope along the motion that keeps the pose."""
    servo = arm([sy.PoseGoal("tool"), sy.RestGoal(np.zeros(7))], BENT | {"joint3": 0.5}, solver=solver, jerk=jerk)
    begin = servo.step(dt=0).pose
    commands = [servo.step({"tool": begin.transform("tool")}) for _ in range(600)]
    assert all(command.states["tool"] == "reached" for command in commands)
    assert commands[0].states["rest"] == "late"
    last = commands[-1]
    assert last.states["rest"] == "missed"
    assert last.status.name == "REACHED"
    free = np.linalg.svd(last.pose.jacobian("tool"))[2][-1]
    assert abs(last.q @ free) < 0.02 * np.linalg.norm(last.q)
    assert np.linalg.norm(last.q) < np.linalg.norm(begin.q) - 1e-3
    assert copy.copy(last).states == last.states


def test_a_relative_goal_waits_until_a_goal_has_a_target():
    """From then on it is met or late; a goal with a target of its own never waits."""
    body = sy.bundled("humanoid")
    goals = [sy.PositionGoal("right_hand"), sy.RelativeGoal("left_hand", "right_hand", name="grip")]
    servo = sy.Servo(body, goals, **LIMITS)
    servo.reset("rest")
    first = servo.step()
    assert set(first.states.values()) == {"waiting"}
    place = first.pose.position("right_hand") + np.array((0.0, -0.2, 0.1))
    moving = [servo.step({"right_hand": place}) for _ in range(200)]
    assert {command.states["grip"] for command in moving} <= {"reached", "late"}
    assert set(moving[-1].states.values()) == {"reached"}
    placed = arm(sy.PositionGoal("tool", (0.4, 0.1, 0.5)))
    assert [placed.step().states["tool"] for _ in range(300)][::299] == ["late", "reached"]


def test_a_rest_goal_without_other_goals_is_reached():
    servo = arm(sy.RestGoal({"joint1": 0.5}))
    states = [servo.step().states["rest"] for _ in range(300)]
    assert (states[0], states[-1]) == ("late", "reached")


def test_a_twist_that_the_body_cannot_follow_is_late_and_never_reached():
    """Towards the end of the reach, the target waits where the body is."""
    servo = arm(sy.PositionGoal("tool"))
    commands = [servo.step(sy.Twist((0.3, 0.0, 0.0))) for _ in range(400)]
    assert commands[-1].errors[0].position < 0.1
    assert commands[-1].status is sy.Status.LATE
    assert not commands[-1].reached
    assert commands[-1].states == {"tool": "late"}
    assert "slower than its twist" in " ".join(commands[-1].explain())
    stopped = [servo.step(sy.Twist()) for _ in range(200)]
    assert stopped[-1].status is sy.Status.REACHED


def said_on_the_way(goals, targets):
    """What an arm says that is on its way to turn its tool, the last goal, before it has come there."""
    servo = arm([*goals, sy.RotationGoal("tool", name="turn", priority=2)])
    start = servo.step(dt=0).pose.transform("tool")
    turned = start[:3, :3] @ sy.Rotation.from_euler("x", 80, degrees=True).as_matrix()
    places = {name: start[:3, 3] + np.array(shift) for name, shift in targets.items()}
    commands = [servo.step({**places, "turn": turned}) for _ in range(8)]
    assert commands[-1].status is sy.Status.LATE
    return " ".join(commands[-1].explain())


def test_goals_that_are_against_a_late_one_are_named():
    tool, other = sy.PositionGoal("tool"), sy.PositionGoal("tool", name="other", priority=1)
    said = said_on_the_way([tool, other], {"tool": (0, 0, 0), "other": (0, 0, 0.1)})
    assert "'tool', of a higher priority, keeps 'other' from its target" in said
    said = said_on_the_way([tool, other], {"tool": (0, 0, 0.1), "other": (0, 0, 0.1)})
    assert "keeps 'other'" not in said
    said = said_on_the_way([other, sy.PositionGoal("tool", name="third", priority=1)],
                           {"other": (0, 0.05, 0), "third": (0, -0.05, 0)})  # fmt: skip
    assert "'third', of the same priority, and 'other' are against each other" in said


def test_a_singular_direction_and_the_end_of_a_range_are_named():
    straight = planar({}, sy.PositionGoal("tip"))
    said = " ".join(straight.step((0.8, 0.0, 0.0)).explain())
    assert "singular" in said
    goals = [sy.PositionGoal("bone1"), sy.DirectionGoal("bone2", (1.0, 0, 0), (1.0, 0, 0))]
    away = np.array((np.cos(2.5), np.sin(2.5), 0.0))
    for first, named in ((2.0, True), (1.5, False)):
        servo = planar({"bone0": first, "bone1": 0.3, "bone2": 0.3}, goals)
        said = " ".join(servo.step({"bone1": 0.3 * away, "bone2": away}).explain())
        assert ("end of its range: bone0" in said) is named


@pytest.mark.parametrize("changes", [{}, {"late": "slow"}, {"jerk": 60.0}, {"tool_speed": {"tool": 0.2}}])
def test_a_late_body_always_says_what_keeps_it(changes):
    goals = [sy.PoseGoal("tool"), sy.PositionGoal("joint4", name="elbow", priority=1)]
    servo, rng = arm(goals, **changes), np.random.default_rng(5)
    place = servo.step(dt=0).pose.transform("tool")
    for k in range(240):
        if k % 60 == 0:
            place = place.copy()
            place[:3, 3] += rng.normal(size=3) * (0.05, 0.1, 1.0)[k // 60 % 3]
        command = servo.step({"tool": place if k // 60 % 2 else sy.Twist(0.1 * rng.normal(size=3))})
        if command.status is sy.Status.LATE and not command.limited and k % 5 == 0:
            said = " ".join(command.explain()[1:])
            assert any(text in said for text in ("joint", "priority", "singular", "slower than its twist"))


def test_a_target_that_is_not_yet_due_is_not_reached():
    """While the servo interpolates to it, the body is at a target that was moved, not at the one that was asked."""
    servo = arm(sy.PositionGoal("tool"), interpolation=0.4)
    place = servo.step(dt=0).pose.position("tool") + np.array((0.0, 0.01, 0.0))
    commands = [servo.step({"tool": place} if k == 0 else None) for k in range(80)]
    early = [command for command in commands if command.time < 0.35]
    assert {(command.status, command.states["tool"]) for command in early} == {(sy.Status.LATE, "late")}
    assert "is due in" in " ".join(early[10].explain())
    assert any(command.status is sy.Status.REACHED for command in commands)


def test_what_keeps_a_missed_goal_is_named_without_advice_for_solves():
    servo = planar({"bone1": 0.5, "bone2": 0.5}, sy.PositionGoal("tip"))
    for _ in range(300):
        command = servo.step((1.5, 0.2, 0.0))
    assert command.states["tip"] == "missed"
    said = " ".join(command.explain())
    assert "attempts" not in said
    assert "singular" in said or "reach" in said


def test_time_that_goes_back_gives_a_warning():
    servo = arm(sy.PositionGoal("tool"))
    before = servo.step()
    with pytest.warns(UserWarning, match="does not go back"):
        after = servo.step(dt=-0.01)
    np.testing.assert_array_equal(after.q, before.q)
