"""Verdicts and missed poses against geometry, brute force and random poses, through the public face alone."""

import numpy as np
import pytest

import synovia as sy
from probes import random_q
from trees import random_tree

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


def free_joints(body):
    """Yield the rows of free joints, and where their values are."""
    for row, joint in enumerate(body.joints):
        if joint.kind is sy.Kind.FREE:
            yield row, body.q_slice(joint.name).start


def displaced(body, q, rng):
    """Return joint values with free joints far from their rest places."""
    q = np.array(q)
    for _, at in free_joints(body):
        q[at : at + 3] = rng.normal(size=3) * rng.choice([0.3, 3.0])
        q[at + 3 : at + 7] = sy.Rotation.random(random_state=rng).as_quat()
    return q


def kept(body, q, start, rng):
    """Return joint values whose free joints stay where the start has them, and turn if a joint above them moves."""
    q = np.array(q)
    for row, at in free_joints(body):
        q[at : at + 7] = start[at : at + 7]
        above = body.parents[row]
        while above >= 0 and body.joints[above].kind is sy.Kind.FIXED:
            above = body.parents[above]
        if above >= 0:
            q[at + 3 : at + 7] = sy.Rotation.random(random_state=rng).as_quat()
    return q


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(12))
def test_a_target_that_some_pose_reaches_is_never_called_unreachable(seed):
    """Random trees with limits, coupled joints and free joints that stay; targets come from poses of the same body."""
    rng = np.random.default_rng(seed)
    body = random_tree(rng, joints=7, limits=True, mimic=bool(seed % 2), held=seed % 4 > 1)
    offset = rng.normal(size=3) * 0.3
    ik = sy.IK(body, sy.PositionGoal("j6", offset=offset), sy.LevenbergMarquardt(attempts=1, max_steps=10))
    start = displaced(body, body.rest_pose().q, rng)
    for _ in range(8):
        q = kept(body, random_q(body, rng), start, rng)
        frame = sy.Pose(body, q).transform("j6")
        point = frame[:3, :3] @ offset + frame[:3, 3]
        assert ik.solve({"j6": point}, start=sy.Pose(body, start)).status is not sy.Status.UNREACHABLE


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


@pytest.mark.parametrize(("away", "proved"), [(2.0, False), (2.00019, False), (2.0004, True)])
def test_a_proof_leaves_the_tolerance(away, proved):
    """Nothing is proved within the tolerance, which is 2e-4 here."""
    solution = sy.solve(chain(), sy.PositionGoal("tip", (0, away, 0)))
    assert (solution.status is sy.Status.UNREACHABLE) == proved
    assert solution.reached != proved


@pytest.mark.parametrize("scale", [0.0, 0.5, 4.0])
def test_free_joints_that_stay_are_part_of_their_bones(scale):
    """Their translations lengthen, shorten and turn the segments: reach and hole are exact."""
    rng = np.random.default_rng(5)
    joints, q = [], []
    for i, kind in enumerate((sy.Kind.BALL, sy.Kind.FREE, sy.Kind.BALL, sy.Kind.FREE, sy.Kind.FIXED)):
        rest = np.eye(4)
        rest[:3, :3] = sy.Rotation.random(random_state=i).as_matrix()
        rest[:3, 3] = rng.normal(size=3)
        joints.append(sy.Joint(f"j{i}", f"j{i - 1}" if i else None, kind, rest))
        if kind is sy.Kind.FREE:
            q += [*(scale * rng.normal(size=3)), *sy.Rotation.random(random_state=i).as_quat()]
        elif kind is sy.Kind.BALL:
            q += [0.0, 0.0, 0.0, 1.0]
    body = sy.Skeleton(joints)
    at = sy.Pose(body, q).positions
    lengths = np.linalg.norm(np.diff(at, axis=0), axis=1)
    for edge, outward in ((lengths.sum(), 1), (2 * lengths.max() - lengths.sum(), -1)):
        for beyond, proved in ((-0.01, False), (0.01, True)):
            away = edge + outward * beyond
            if away <= 0:
                continue
            target = at[0] + away * np.array([0.6, 0.0, 0.8])
            solution = sy.IK(body, sy.PositionGoal("j4", target)).solve(start=sy.Pose(body, q))
            assert (solution.status is sy.Status.UNREACHABLE) == proved
            assert solution.reached != proved
            if proved:
                assert "from 'j0', the first joint that moves" in solution.explain()[0]
                assert "while free joints stay in place ('j1', 'j3')" in solution.explain()[0]


def test_the_range_of_a_slide_counts_from_where_the_chain_meets_it():
    """A slide across the arm: the far end of its range is the edge of reach, its nearest point the edge of the hole."""
    aside = np.eye(4)
    aside[0, 3] = 3.0
    joints = [
        sy.Joint("turn", kind=sy.Kind.BALL),
        sy.Joint("slide", "turn", sy.Kind.SLIDE, aside, axis=(0, 1, 0), limit=sy.Interval(-1.0, 4.0)),
    ]
    body = sy.Skeleton(joints)
    for away, proved in ((2.9, True), (3.1, False), (4.9, False), (5.1, True)):
        solution = sy.solve(body, sy.PositionGoal("slide", (0.0, 0.0, away)))
        assert (solution.status is sy.Status.UNREACHABLE) == proved
        assert solution.reached != proved
    assert "reaches 5 units at most" in solution.explain()[0]


@pytest.mark.parametrize("solver", ["lm", "ccd", "full-body"])
def test_held_joints_below_a_moving_one_are_part_of_its_bone(solver):
    """The tip's goal may move the upper arm alone: the forearm, which it may not bend, is a part of the segment."""
    body = chain((1.0, 1.0, 0.1))
    for height, proved in ((2.05, False), (2.2, True)):
        goals = [sy.PositionGoal("tip", (0, height, 0), ancestors=0), sy.PositionGoal("j1", (0, 1, 0))]
        solution = sy.solve(body, goals, solver)
        assert not solution.reached
        assert (solution.status is sy.Status.UNREACHABLE) == proved


@pytest.mark.parametrize(("away", "proved"), [(4.0, True), (2.6, True), (2.0, False), (1.6, False), (1.0, True)])
def test_a_root_that_walks_reaches_all_but_where_it_has_a_target(away, proved):
    """With a target of its own the root is there: its limb has a reach and a hole. Without one nothing is too far."""
    joints, at = [sy.Joint("root")], 0.0
    for i, length in enumerate((2.0, 0.5)):
        rest = np.eye(4)
        rest[0, 3] = at
        joints.append(sy.Joint(f"b{i}", joints[-1].name, sy.Kind.BALL, rest))
        at = length
    rest = np.eye(4)
    rest[0, 3] = at
    body = sy.Skeleton([*joints, sy.Joint("tip", "b1", rest=rest)])
    goals = [sy.PositionGoal("root", (1, 1, 0)), sy.PositionGoal("tip", (1, 1 + away, 0))]
    both = sy.IK(body, goals, root="free").solve()
    assert (both.status is sy.Status.UNREACHABLE) == proved
    assert both.reached != proved
    assert sy.IK(body, sy.PositionGoal("tip", (0, 100 * away, 0)), root="free").solve().reached


# --- the pose of a miss ---------------------------------------------------------------------------------------------


@pytest.mark.compiled
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


@pytest.mark.parametrize("solver", [*DESCENTS, "ccd"])
def test_one_hinge_has_the_best_of_all_angles(solver):
    """Two targets pull at one hinge: the weighted sum of squares is the least of a whole circle of angles."""
    at = [np.eye(4), np.eye(4)]
    at[0][0, 3], at[1][1, 3] = 1.0, 2.0
    body = sy.Skeleton(
        [sy.Joint("h", kind=sy.Kind.HINGE, axis=(0, 0, 1))]
        + [sy.Joint(name, "h", rest=rest) for name, rest in zip("ab", at, strict=True)]
    )
    goals = [sy.PositionGoal("a", (0.5, 1.5, 0)), sy.PositionGoal("b", (-2.5, 1.0, 0), weight=0.3)]
    angles = np.linspace(-np.pi, np.pi, 20001)
    c, s = np.cos(angles), np.sin(angles)
    cost = (c - 0.5) ** 2 + (s - 1.5) ** 2 + 0.3 * ((2.5 - 2 * s) ** 2 + (2 * c - 1) ** 2)
    best = angles[np.argmin(cost)]
    solution = sy.solve(body, goals, solver, start=[0.1])
    assert not solution.reached
    assert abs(np.angle(np.exp(1j * (solution.q[0] - best)))) < 2e-3


@pytest.mark.parametrize("ends", [(-9.0, 9.0), (-0.1, 0.2)])
@pytest.mark.parametrize("solver", [*DESCENTS, "ccd"])
def test_one_slide_goes_to_the_mean_of_what_its_goals_ask(solver, ends):
    """The place along its axis with the least squares, or the end of its range that is nearer to it."""
    axis = np.array([1.0, 2.0, 2.0]) / 3
    joints = [sy.Joint("s", kind=sy.Kind.SLIDE, axis=axis, limit=sy.Interval(*ends))]
    targets = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, -1.0]])
    for name, place in zip("ab", np.eye(3)[:2], strict=True):
        rest = np.eye(4)
        rest[:3, 3] = place
        joints.append(sy.Joint(name, "s", rest=rest))
    goals = [sy.PositionGoal(name, place) for name, place in zip("ab", targets, strict=True)]
    solution = sy.solve(sy.Skeleton(joints), goals, solver)
    wanted = ((targets - np.eye(3)[:2]) @ axis).mean()
    assert solution.q[0] == pytest.approx(np.clip(wanted, *ends), abs=1e-6)


def test_a_level_below_takes_what_a_missed_level_leaves_free():
    """A far target leaves the turn about its line free. The level below takes exactly this turn."""
    rest = np.eye(4)
    rest[2, 3] = 1.0
    arm = sy.Skeleton(
        [
            sy.Joint("a", None, sy.Kind.BALL),
            sy.Joint("b", "a", sy.Kind.HINGE, rest, axis=(1, 0, 0)),
            sy.Joint("tip", "b", sy.Kind.FIXED, rest),
        ]
    )
    heading = (np.cos(0.4), np.sin(0.4), 0)
    goals = [
        sy.PositionGoal("tip", (0, 0, 5), priority=0),
        sy.DirectionGoal("a", axis=(1, 0, 0), direction=heading, priority=1),
    ]
    start = np.concatenate([sy.Rotation.from_rotvec([0.02, -0.03, 0.1]).as_quat(), [0.05]])
    pose = sy.solve(arm, goals, "full-body", start=start).pose
    np.testing.assert_allclose(pose.position("tip"), [0, 0, 2], atol=1e-6)
    np.testing.assert_allclose(pose.transform("a")[:3, 0], heading, atol=1e-4)


def test_of_all_nearest_poses_the_posture_chooses():
    """Of all poses with the tip as near to its target as it gets, the one nearest to the posture, by brute force."""
    arm = chain((1.0, 1.0, 1.0))
    target, wanted = np.array([1.2, 0.9, 0.4]), np.array([-0.6, 0.9, 1.3])  # beside the plane: it is missed
    goals = [sy.PositionGoal("tip", tuple(target)), sy.RestGoal(pose=sy.Pose(arm, wanted))]
    solution = sy.solve(arm, goals, "full-body", start=[-0.3, 1.0, 0.6])
    np.testing.assert_allclose(solution.pose.position("tip"), [1.2, 0.9, 0.0], atol=1e-6)
    heading = np.linspace(-np.pi, np.pi, 20001)  # of the last bone
    x, y = 1.2 - np.cos(heading), 0.9 - np.sin(heading)
    near = x * x + y * y <= 4
    heading, x, y = heading[near], x[near], y[near]
    best = np.inf
    for side in (1, -1):
        bend = side * np.arccos((x * x + y * y - 2) / 2)
        first = np.arctan2(y, x) - bend / 2
        q = np.column_stack([first, bend, heading - first - bend])
        off = np.arctan2(np.sin(q - wanted), np.cos(q - wanted))
        best = min(best, (off**2).sum(axis=1).min())
    assert ((solution.q - wanted) ** 2).sum() < best + 1e-4


@pytest.mark.parametrize("limited", [False, True])
def test_balls_go_to_their_posture_where_the_goals_leave_them_free(limited):
    """The posture meets the goal, so that it is the answer from any start."""
    limit = sy.SwingTwist.about((1, 2, 3), x=(1.4, 1.0), y=(1.2, 1.5), twist=(-1.0, 1.3)) if limited else None
    rest = np.eye(4)
    rest[:3, 3] = 0.3, 0.2, 1.0
    joints = [sy.Joint(f"b{i}", f"b{i - 1}" if i else None, sy.Kind.BALL, rest, limit=limit) for i in range(3)]
    body = sy.Skeleton([*joints, sy.Joint("tip", "b2", rest=rest)])
    wanted = body.random_pose(3)
    goals = [sy.PositionGoal("tip", wanted.position("tip")), sy.RestGoal(pose=wanted)]
    solution = sy.solve(body, goals, "full-body", start=body.random_pose(8))
    assert solution.reached
    for joint in ("b0", "b1", "b2"):
        assert (wanted.rotation(joint).inv() * solution.pose.rotation(joint)).magnitude() < 0.01


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


def test_parallel_first_and_third_axes_share_their_turn():
    """With the second hinge at zero only the sum of its neighbours counts, and the target is reached."""
    arm = seven(0.0)
    target = sy.Pose(arm, [0.4, 0.0, 0.3, 0.9, 0.2, 0.7, 0.5]).transform("tool")
    ik = sy.IK(arm, sy.PoseGoal("tool", transform=target), "segments")
    solution = ik.solve(start=np.array([0.1, 0.0, 0.3, 0.8, 0.1, 0.6, 0.5]))
    np.testing.assert_allclose(solution.pose.transform("tool"), target, atol=1e-6)


@pytest.mark.compiled
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
