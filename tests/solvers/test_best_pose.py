"""Verdicts and missed poses against geometry, brute force and random poses, through the public face alone."""

import numpy as np
import pytest

import synovia as sy
from probes import random_q
from trees import random_tree

pytestmark = pytest.mark.compiled  # grids of brute force: minutes as plain Python

DESCENTS = ("lm", "full-body")


def chain(lengths=(1.0, 1.0), **given):
    """Return hinges about z in a row along x, with a tip."""
    joints, at = [], 0.0
    for i, length in enumerate(lengths):
        rest = np.eye(4)
        rest[0, 3] = at
        joints.append(sy.Joint(f"j{i}", f"j{i - 1}" if i else None, sy.Kind.HINGE, rest, axis=(0, 0, 1), **given))
        at = length
    rest = np.eye(4)
    rest[0, 3] = at
    return sy.Skeleton([*joints, sy.Joint("tip", joints[-1].name, sy.Kind.FIXED, rest)])


# --- proofs of unreachable targets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_a_target_that_some_pose_reaches_is_never_called_unreachable(seed):
    """Random trees with limits, coupled joints and free joints that stay; targets come from poses of the same body."""
    rng = np.random.default_rng(seed)
    body = random_tree(rng, joints=7, limits=True, mimic=bool(seed % 2))
    offset = rng.normal(size=3) * 0.3
    ik = sy.IK(body, sy.PositionGoal("j6", offset=offset), sy.LevenbergMarquardt(attempts=1, max_steps=10))
    for _ in range(8):
        frame = sy.Pose(body, random_q(body, rng)).transform("j6")
        point = frame[:3, :3] @ offset + frame[:3, 3]
        assert ik.solve({"j6": point}).status is not sy.Status.UNREACHABLE


@pytest.mark.parametrize("lengths", [(1.0, 1.0), (2.0, 0.5), (0.4, 2.0, 0.6), (0.5, 0.5, 3.0)])
def test_the_reach_and_the_hole_of_a_chain_are_exact(lengths):
    """A target is unreachable beyond the sum of lengths, and in the hole that the longest bone leaves."""
    total, longest = sum(lengths), max(lengths)
    ik = sy.IK(chain(lengths), sy.PositionGoal("tip"))
    for away in (0.2, 1.0, 1.9, total - 0.01, total + 0.01, 7.0):
        beyond = max(away - total, 2 * longest - total - away)
        assert (ik.solve({"tip": (0.0, away, 0.0)}).status is sy.Status.UNREACHABLE) == (beyond > 1e-3), away


def test_a_rotation_can_put_the_wrist_out_of_reach():
    """The tip is within reach, but with the hand turned back the wrist is not."""
    for heading, proved in ((0.0, False), (np.pi, True)):
        goal = sy.PoseGoal("tip", (2.4, 0, 0), sy.Rotation.from_rotvec([0, 0, heading]))
        assert (sy.solve(chain((1.0, 1.0, 0.5)), goal).status is sy.Status.UNREACHABLE) == proved


# --- the pose of a miss ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", DESCENTS)
@pytest.mark.parametrize("limit", [0.3, 0.8])
def test_a_miss_within_limits_is_the_best_of_a_grid(solver, limit):
    """No pose on a fine grid of both hinges within their limits is nearer."""
    arm, target = chain((1.0, 0.7), limit=sy.Interval(-limit, 0.8 * limit)), np.array([-0.4, 2.0, 0.0])
    solution = sy.solve(arm, sy.PositionGoal("tip", tuple(target)), solver)
    a, b = np.meshgrid(*[np.linspace(-limit, 0.8 * limit, 301)] * 2, indexing="ij")
    best = np.hypot(np.cos(a) + 0.7 * np.cos(a + b) + 0.4, np.sin(a) + 0.7 * np.sin(a + b) - 2.0).min()
    assert np.linalg.norm(solution.pose.position("tip") - target) < best + 1e-6
    assert (solution.q >= -limit - 1e-9).all()
    assert (solution.q <= 0.8 * limit + 1e-9).all()


@pytest.mark.parametrize("solver", DESCENTS)
@pytest.mark.parametrize("start", [(np.pi, 0.0), (0.0, np.pi), (0.0, 0.0), (0.4, -0.3)])
def test_an_arm_that_points_away_turns_round(solver, start):
    """Pointing away from a far target is a saddle: one attempt leaves it and ends stretched towards the target."""
    goal = sy.PositionGoal("tip", (5, 0, 0))
    solution = sy.IK(chain(), goal, sy.solvers[solver](attempts=1)).solve(start=np.array(start))
    np.testing.assert_allclose(solution.pose.position("tip"), [2, 0, 0], atol=1e-5)


def test_an_answer_says_how_it_was_made():
    """An answer that is reached had no last descent, and was found in one attempt from the start."""
    points = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    for solver in ("lm", "fabrik", "ccd", "full-body"):
        body, goal = (points, "joint2") if solver == "fabrik" else (chain(), "tip")
        found = sy.solve(body, sy.PositionGoal(goal, (1.2, 0.9, 0)), solver)
        assert found.reached
        assert (found.finish_steps, found.attempts, found.attempt) == (0, 1, 0)
        assert found.steps > 0
        missed = sy.solve(body, sy.PositionGoal(goal, (5, 0, 0)), solver)
        assert missed.status is sy.Status.UNREACHABLE
        assert missed.finish_steps <= missed.steps


# --- heuristics -----------------------------------------------------------------------------------------------------


# --- closed forms ---------------------------------------------------------------------------------------------------


def seven(wrist):
    """Return an arm of seven hinges with a spherical shoulder, whose last axis may stand beside the wrist."""
    y, z = (0, 1, 0), (0, 0, 1)
    joints = []
    for i, (axis, height) in enumerate([(z, 0.34), (y, 0), (z, 0.2), (y, 0.2), (z, 0.2), (y, 0.2), (z, 0)]):
        rest = np.eye(4)
        rest[:3, 3] = (wrist if i == 6 else 0.0, 0, height)
        limit = sy.Interval(-2.9, 2.0 + 0.1 * i)
        joints.append(sy.Joint(f"j{i}", f"j{i - 1}" if i else None, sy.Kind.HINGE, rest, axis=axis, limit=limit))
    tool = np.eye(4)
    tool[:3, 3] = (0.02, 0.01, 0.1)
    return sy.Skeleton([*joints, sy.Joint("tool", "j6", rest=tool)])


@pytest.mark.parametrize("wrist", [0.0, 0.08])
@pytest.mark.parametrize("seed", range(2))
def test_every_branch_of_seven_hinges_is_exact(seed, wrist):
    """Each branch has the target's frame within its limits, and no two are the same."""
    arm = seven(wrist)
    target, start = arm.random_pose(seed).transform("tool"), arm.random_pose(seed + 50)
    branches = sy.IK(arm, sy.PoseGoal("tool", transform=target), "segments").branches(start=start)
    assert len(branches) >= 1
    found = np.array([branch.q for branch in branches])
    for q in found:
        np.testing.assert_allclose(sy.Pose(arm, q).transform("tool"), target, atol=1e-6)
        assert (q >= arm.limits[0] - 1e-9).all()
        assert (q <= arm.limits[1] + 1e-9).all()
    assert len(np.unique(np.round(found, 5), axis=0)) == len(found)


# --- the largest move -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_no_joint_goes_farther_than_the_largest_move(seed):
    """Hinges and balls, with limits and without, towards targets far away."""
    most = 0.1
    rng = np.random.default_rng(seed)
    body = random_tree(rng, joints=8, limits=True, mimic=bool(seed % 2))
    start = random_q(body, rng)
    goals = [sy.PositionGoal("j7", rng.normal(size=3) * 9), sy.PositionGoal("j4", rng.normal(size=3), priority=1)]
    ik = sy.IK(body, goals, sy.FullBody(largest_move=most, attempts=1))
    q = ik.solve(start=sy.Pose(body, start)).q
    moved = 0.0
    for joint in body.joints:
        at = body.q_slice(joint.name)
        if joint.kind is sy.Kind.BALL:
            turned = sy.Rotation.from_quat(start[at]).inv() * sy.Rotation.from_quat(q[at])
            moved = max(moved, turned.magnitude())
            assert turned.magnitude() <= most + 1e-6
        elif joint.kind is sy.Kind.HINGE and joint.mimic is None:
            moved = max(moved, abs(q[at][0] - start[at][0]))
            assert abs(q[at][0] - start[at][0]) <= most + 1e-9
    assert moved > 0.5 * most
