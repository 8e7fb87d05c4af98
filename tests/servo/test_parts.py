"""Parts of a body that share nothing never disturb each other: two arms on a fixed base, in all that a servo does."""

import copy

import numpy as np
import pytest

import synovia as sy
from servo.judge import differences, excesses

ARM = sy.bundled("arm7")
BODY = sy.combine({"left": ARM, "right": ARM}, at={"left": (0, 0.4, 0), "right": (0, -0.4, 0)})
SIDES = {side: [k for k, name in enumerate(BODY.dof_names) if name.startswith(side)] for side in ("left", "right")}
LIMITS = {"rate": 100, "velocity": 1.5, "acceleration": 8.0}
BENT = {f"{side}/joint{k}": value for side in SIDES for k, value in ((2, 0.6), (4, -1.2), (6, 0.5))}


def two_arms(goals=None, **settings):
    if goals is None:
        goals = [sy.PoseGoal("left/tool"), sy.PoseGoal("right/tool")]
    servo = sy.Servo(BODY, goals, **(LIMITS | settings))
    servo.reset(BENT)
    return servo


def left_targets(ticks):
    """A slow circle of the left tool."""
    begin = sy.Pose(BODY, BENT).transform("left/tool")
    for k in range(ticks):
        out = begin.copy()
        out[:3, 3] += 0.05 * np.array([np.cos(0.05 * k) - 1.0, np.sin(0.05 * k), 0.0])
        yield out


def quiet(servo, k, rng):
    return {}


def far(servo, k, rng):
    """Out of reach, elsewhere every half second."""
    if k % 50 == 0:
        servo.aim = rng.normal(size=3) * 1.5
    out = np.eye(4)
    out[:3, 3] = servo.aim
    return {"targets": {"right/tool": out}}


def twisted(servo, k, rng):
    return {"targets": {"right/tool": sy.Twist(linear=(3.0, 0, 0), angular=(0, 0, 2.0))}}


def driven(servo, k, rng):
    return {"jog": {"right/joint4": -2.0, "right/joint1": 3.0}}


def unseen(servo, k, rng):
    return {"targets": {"right/tool": np.full((4, 4), np.nan)}} if k % 3 else far(servo, 0, rng)


@pytest.mark.compiled
@pytest.mark.parametrize("other", [far, twisted, driven, unseen])
@pytest.mark.parametrize("settings", [{}, {"jerk": 80.0}, {"late": "slow"}, {"tool_speed": {"right/tool": 0.1}}])
def test_no_arm_notices_what_the_other_one_does(other, settings):
    ticks, samples, told = 150, [], []
    if other is driven and settings.get("late"):
        other = far
    for right in (quiet, other):
        servo, rng = two_arms(**settings), np.random.default_rng(5)
        rows, states = [], []
        for k, target in enumerate(left_targets(ticks)):
            inputs = right(servo, k, rng)
            inputs["targets"] = {"left/tool": target} | inputs.get("targets", {})
            command = servo.step(**inputs)
            rows.append(command.q[SIDES["left"]])
            limited = {joint: why for joint, why in command.limited.items() if joint.startswith("left")}
            states.append((command.states["left/tool"], limited, command.errors[0].position))
        samples.append(np.array(rows))
        told.append(states)
    np.testing.assert_array_equal(samples[0], samples[1])
    assert told[0] == told[1]


@pytest.mark.compiled
def test_an_arm_of_two_moves_as_one_with_its_own_servo():
    alone = sy.Servo(ARM, sy.PoseGoal("tool"), **LIMITS)
    alone.reset({name.split("/")[1]: value for name, value in BENT.items() if name.startswith("left")})
    both = two_arms()
    shift = BODY.rest_pose().position("left/tool") - ARM.rest_pose().position("tool")
    worst = 0.0
    for target in left_targets(150):
        single = target.copy()
        single[:3, 3] -= shift
        command = both.step({"left/tool": target, "right/tool": np.eye(4)})
        worst = max(worst, np.abs(command.q[SIDES["left"]] - alone.step(single).q).max())
    assert worst < 1e-9


@pytest.mark.compiled
def test_a_tick_says_of_both_arms_what_is_true():
    servo = two_arms()
    aims = {side: sy.Pose(BODY, BENT).transform(f"{side}/tool") for side in SIDES}
    aims["left"][:3, 3] += (0.0, 0.05, 0.0)
    aims["right"][:3, 3] += (5.0, 0.0, 0.0)
    for _ in range(400):
        command = servo.step({f"{side}/tool": aim for side, aim in aims.items()})
    assert command.states == {"left/tool": "reached", "right/tool": "missed"}
    assert command.status is command.solution.status
    assert command.status not in (sy.Status.REACHED, sy.Status.LATE)
    assert not command.reached
    assert "right/tool" in " ".join(command.explain())
    assert command.errors[0].position <= servo.ik.tolerance[0] < command.errors[1].position
    pose = command.pose
    for side, error in zip(SIDES, command.errors, strict=True):
        np.testing.assert_allclose(
            np.linalg.norm(pose.position(f"{side}/tool") - aims[side][:3, 3]), error.position, atol=1e-12
        )
    assert [error.position for error in command.solution.errors] == pytest.approx(
        [error.position for error in command.errors]
    )
    assert copy.deepcopy(command).states == command.states
    held = servo.hold()
    assert held.status is sy.Status.HOLDING
    again = servo.step({"left/tool": aims["left"]})
    assert again.status is not sy.Status.HOLDING
    assert again.states["right/tool"] != "holding"


@pytest.mark.compiled
def test_a_measurement_too_far_off_holds_the_whole_body():
    servo = two_arms()
    q = servo.step().q
    off = q.copy()
    off[SIDES["right"][2]] += 0.5
    servo.measured(off)
    command = servo.step({"left/tool": next(left_targets(1)), "right/tool": np.eye(4)})
    assert command.status is sy.Status.HOLDING
    assert any("right/joint3" in line for line in command.explain())
    servo.measured(servo.step(dt=0.0).q)
    assert servo.step({"left/tool": next(left_targets(1))}).status is not sy.Status.HOLDING


@pytest.mark.compiled
def test_bad_targets_leave_both_arms_as_they_are():
    servo = two_arms()
    good = {f"{side}/tool": sy.Pose(BODY, BENT).transform(f"{side}/tool") for side in SIDES}
    good["left/tool"][:3, 3] += 0.03
    for _ in range(5):
        before = servo.step(good)
    bad = good["right/tool"].copy()
    bad[:3, :3] = 0.0
    with pytest.raises(sy.InputError, match="right/tool"):
        servo.step({"left/tool": good["left/tool"] + 0.0, "right/tool": bad})
    with pytest.raises(sy.errors.UnknownNameError, match="righ/tool"):
        servo.step({"left/tool": good["left/tool"], "righ/tool": bad})
    with pytest.raises(sy.InputError, match="a dict"):
        servo.step(np.eye(4))
    with pytest.raises(sy.errors.UnknownNameError, match="left/elbow"):
        servo.step(joints={"left/elbow": 1.0})
    np.testing.assert_array_equal(servo.step(dt=0.0).q, before.q)
    assert servo.time == before.time


@pytest.mark.compiled
@pytest.mark.parametrize("jerk", [None, 80.0])
def test_arms_join_and_part_while_they_move(jerk):
    """A goal between the hands joins the parts; limits hold over the change, and both hands go on."""
    servo = two_arms(jerk=jerk)
    grip = sy.RelativeGoal("left/tool", "right/tool", name="grip")
    own = [sy.PoseGoal("left/tool"), sy.PoseGoal("right/tool", priority=1)]
    aims = {f"{side}/tool": sy.Pose(BODY, BENT).transform(f"{side}/tool") for side in SIDES}
    for aim in aims.values():
        aim[:3, 3] += (-0.04, 0.05, -0.06)
    rows = [servo.step(aims).q for _ in range(20)]
    servo.change([own[0], grip])
    rows += [servo.step({"left/tool": aims["left/tool"]}).q for _ in range(100)]
    servo.change(own)
    for _ in range(150):
        command = servo.step(aims)
        rows.append(command.q)
    found = differences(np.array(rows), np.full(len(rows) - 1, 0.01))
    assert excesses(found, (1.5, 8.0, jerk), 1e-16, 0.01) <= 0.0
    assert command.status is sy.Status.REACHED


def test_what_shares_a_joint_is_one_part():
    from synovia.servo.parts import independent_parts

    def parts(skeleton, goals, **options):
        return [goals for goals, _ in independent_parts(sy.IK(skeleton, goals, **options).problem)]

    hands = [sy.PoseGoal("left/tool"), sy.PoseGoal("right/tool")]
    assert parts(BODY, hands) == [[0], [1]]
    assert parts(BODY, hands, root="free") == [[0, 1]]
    assert parts(BODY, [*hands, sy.RestGoal()]) == [[0, 2], [1, 2]]
    assert parts(BODY, [hands[0], sy.RestGoal()]) == [[0, 1], [1]]
    assert parts(BODY, [*hands, sy.RelativeGoal("left/tool", "right/tool", name="grip")]) == [[0, 1, 2]]
    assert parts(BODY, [*hands, sy.ClearanceGoal(0.01)]) == [[0, 1, 2]]
    assert parts(ARM, [sy.PositionGoal("tool"), sy.PositionGoal("joint4")]) == [[0, 1]]
    human = sy.bundled("humanoid")
    both = [sy.PositionGoal("left_hand"), sy.PositionGoal("right_hand")]
    assert parts(human, both) == [[0, 1]]
