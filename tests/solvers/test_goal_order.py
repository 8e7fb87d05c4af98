"""The order in which goals are named does not matter, and goals without a target keep the start."""

import numpy as np
import pytest

import synovia as sy
from synovia.model import Joint, Kind
from synovia.solver import Solver
from trees import random_frame

QUICK = ("ccd", "fabrik", "particles")  # interpreted too
GENERAL = [name for name, kind in sy.solvers.items() if kind.restrict is Solver.restrict]


def placed(x, y, z):
    """Return a transform that only shifts."""
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def two_arms():
    """Return a spine of balls and a slide with two arms of balls, and a hand on each."""
    joints = [Joint("hips", kind=Kind.BALL), Joint("lift", "hips", Kind.SLIDE, placed(0, 0.2, 0), axis=(0, 1, 0))]
    joints.append(Joint("chest", "lift", Kind.BALL, placed(0, 0.3, 0)))
    for side, x in (("left", 1.0), ("right", -1.0)):
        joints.append(Joint(f"{side}_arm", "chest", Kind.BALL, placed(0.2 * x, 0.2, 0), mass=1.0))
        joints.append(Joint(f"{side}_elbow", f"{side}_arm", Kind.BALL, placed(0.3 * x, -0.05, 0.1), mass=1.0))
        joints.append(Joint(f"{side}_hand", f"{side}_elbow", Kind.BALL, placed(0.3 * x, 0, 0.05), mass=1.0))
    return sy.Skeleton(joints)


BODY = two_arms()
SIZE = 0.7


def goals_at(pose):
    """Return goals of several kinds that a pose meets."""
    return [
        sy.PoleGoal("left_elbow", pose.position("left_elbow"), root="left_arm", tip="left_hand", name="pole"),
        sy.RotationGoal("chest", pose.matrix("chest"), weight=0.5, name="chest"),
        sy.PoseGoal("left_hand", transform=pose.transform("left_hand"), name="left"),
        sy.PositionGoal("right_hand", pose.position("right_hand"), weight=2.0, name="right"),
        sy.RotationGoal("right_hand", pose.matrix("right_hand"), name="right turn"),
    ]


@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize(
    "solver",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.compiled) for name in GENERAL],
)
def test_one_step_is_the_same_whichever_goal_is_named_first(solver, first):
    """Sums come in another order, so to rounding alone."""
    wanted = near(BODY.rest_pose(), first, 0.3)
    goals = [goal for goal in goals_at(wanted) if goal.needs in sy.solvers[solver].supported_goals]
    settings = sy.solvers[solver](attempts=1, max_steps=1)
    once = sy.IK(BODY, goals, settings).solve()
    other = sy.IK(BODY, [*goals[first:], *goals[:first]], settings).solve()
    assert not np.allclose(once.pose.q, BODY.rest_q, atol=1e-3)
    np.testing.assert_allclose(other.pose.q, once.pose.q, atol=1e-7)
    assert other.status is once.status


def near(pose, seed, size):
    """Return a pose some way from another."""
    rng = np.random.default_rng(seed)
    values = {}
    for row, joint in enumerate(pose.skeleton.joints):
        if joint.kind is Kind.BALL:
            values[row] = (
                sy.Rotation.from_quat(pose[row]) * sy.Rotation.from_rotvec(size * rng.normal(size=3))
            ).as_quat()
        elif joint.kind is Kind.SLIDE:
            values[row] = pose[row] + 0.1 * size * rng.normal()
    return pose.with_values(values)


def waiting_goals():
    """Return goals of all kinds without targets."""
    one, other = (random_frame(np.random.default_rng(seed)) for seed in (0, 1))
    return [
        sy.PositionGoal("left_hand"),
        sy.RotationGoal("chest"),
        sy.PoseGoal("right_hand", offset=one),
        sy.PlaneGoal("left_hand", normal=(0, 1, 0)),
        sy.DistanceGoal("left_hand", "right_hand", minimum=0.01),
        sy.PoleGoal("left_elbow", root="left_arm", tip="left_hand"),
        sy.AimGoal("left_hand", axis=(0.3, -1, 0.2), offset=(0.1, 0.0, 0.2)),
        sy.DirectionGoal("right_hand", (0.3, -1, 0.2)),
        sy.CenterOfMassGoal(),
        sy.RelativeGoal("left_hand", "right_elbow", parts="pose", offset=other),
        sy.ContactGoal("left_hand", keep="normal", axis=(0, 0, 1)),
        sy.ContactGoal("left_hand", keep="pose"),
    ]


@pytest.mark.parametrize("solver", ["lm", "full-body"])
def test_a_goal_of_any_kind_without_a_target_keeps_the_start_as_it_is(solver):
    """Each alone is reached at once, and the pose stays."""
    start = near(BODY.rest_pose(), 5, 0.4)
    for goal in waiting_goals():
        still = sy.IK(BODY, goal, solver).solve(start=start)
        assert still.reached, goal
        assert still.steps == 0, goal
        np.testing.assert_allclose(still.pose.q, start.q, atol=1e-12)


def held(goal, pose, reach):
    """Return what a goal without a target holds on to."""
    hand = pose.transform("left_hand")
    if goal.kind == "center_of_mass":
        return pose.center_of_mass()
    if goal.kind == "direction":
        return pose.matrix("right_hand") @ goal.offset[:3, 2]
    if goal.kind == "aim":  # a point ahead, as far away as the reach
        ray = hand @ goal.offset
        return ray[:3, 3] + ray[:3, 2] * reach
    if goal.kind == "relative":
        return np.linalg.inv(pose.transform("right_elbow")) @ hand
    return hand[:3, 3]


@pytest.mark.parametrize("which", range(6, 12))
def test_a_goal_without_a_target_holds_what_the_start_has_while_another_moves_the_body(which):
    start = near(BODY.rest_pose(), 5, 0.4)
    goal = waiting_goals()[which]
    shoulder = start.position("right_arm") + np.array((0.03, -0.02, 0.05))
    ik = sy.IK(BODY, [goal, sy.PositionGoal("right_arm", name="pull")], sy.LevenbergMarquardt(attempts=1))
    moved = ik.solve({"pull": shoulder}, start)
    assert moved.reached
    assert not np.allclose(moved.pose.q, start.q, atol=1e-3)
    before, after = (held(goal, pose, ik.reach) for pose in (start, moved.pose))
    if goal.kind == "aim":
        ray = moved.pose.transform("left_hand") @ goal.offset
        way = before - ray[:3, 3]
        assert np.linalg.norm(np.cross(ray[:3, 2], way)) < 3e-3 * np.linalg.norm(way)
    else:
        np.testing.assert_allclose(after, before, atol=3e-3)
