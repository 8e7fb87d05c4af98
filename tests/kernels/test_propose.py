"""Proposals: what a pose reaches, turned about the first and last axis, is reached by the pose that is placed there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia as sy
from synovia.ik.starts import Learnable
from synovia.kernels import layout
from synovia.kernels.compiler.jit import entry
from synovia.kernels.math.trigonometry import coarse_arctan2
from synovia.kernels.proposals.propose import describe_poses, place_proposals


@entry
def write_angles(points, angles):
    """Write the angle of each point (x, y), by the coarse arctangent."""
    for i in range(points.shape[0]):
        angles[i] = coarse_arctan2(points[i, 1], points[i, 0])


def angle_of(y, x):
    """Return the angle of a point."""
    out = np.empty(1)
    write_angles(np.array([[x, y]]), out)
    return out[0]


COARSE = 1e-4  # radians, times the reach: angles of a start need no more


def described(skeleton, goals, q):
    """Return a problem, its integers with the form of its proposals, and what poses (N, nq) reach."""
    ik = sy.IK(skeleton, goals, "lm")
    problem = Learnable.of(ik.skeleton, ik.goals, ik.problem.reduced)
    ints = ik.problem.ints.copy()
    ints[layout.PROPOSAL_FORM] = problem.form
    targets = np.zeros((len(q), len(ik.goals), layout.TARGET_WIDTH))
    out = np.zeros((len(q), problem.width + problem.features))
    describe_poses(ints, ik.problem.floats, q, targets, out, ik.problem.new_workspace().scratch)
    return ik, problem, ints, targets, out


def placed(ik, problem, ints, targets, out, slopes=0.0):
    """Return the poses of proposals at targets, and how far they are within limits.

    Args:
        ik, problem, ints, targets, out: As ``described`` returns them.
        slopes: Of the joints over the features.
    """
    rows = np.zeros((len(targets), problem.width + problem.slopes))
    rows[:, : problem.width] = out[:, : problem.width]
    rows[:, problem.width :] = slopes
    starts, rooms = np.repeat(ik.problem.rest, len(targets), axis=0), np.empty(len(targets))
    place_proposals(ints, ik.problem.floats, targets, rows, starts, rooms)
    return starts, rooms


def turn(axis, angle):
    """Return a 4x4 turn about z or another axis."""
    out = np.eye(4)
    out[:3, :3] = sy.Rotation.from_rotvec(angle * np.asarray(axis)).as_matrix()
    return out


def arm_without_limits(tip=(0.0, 0.3, 0.05)):
    """Return an arm of four hinges in general position, on a base that is turned."""
    axes = ((0.0, 0.6, 0.8), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.6, 0.8, 0.0))
    joints = [
        sy.Joint(f"j{k}", k - 1 if k else None, sy.Kind.HINGE, place(0.1, 0.02 * k, 0.3 if k else 0.7), axis)
        for k, axis in enumerate(axes)
    ]
    return sy.Skeleton([*joints, sy.Joint("tip", 3, rest=place(*tip))], name="bent")


def place(x, y, z):
    """Return a 4x4 translation."""
    out = np.eye(4)
    out[:3, 3] = x, y, z
    return out


@given(st.floats(-3.1, 3.1), st.floats(-3.1, 3.1), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_turned_targets_are_reached_by_the_placed_pose(about_base, about_tip, seed):
    arm = arm_without_limits()
    pose = arm.random_pose(seed)
    ik, problem, ints, targets, out = described(arm, sy.PoseGoal("tip"), pose.q[None].copy())
    assert problem.form == layout.FREE_TURN | layout.FREE_TWIST
    base, last = pose.transform("j0"), pose.transform("j3")
    axis = np.array((0.0, 0.6, 0.8)), np.array((0.6, 0.8, 0.0))
    at_base = np.eye(4)
    at_base[:3, 3] = base[:3, 3]
    moved = at_base @ turn(axis[0], about_base) @ np.linalg.inv(at_base) @ pose.transform("tip")
    from_last = np.linalg.inv(last) @ pose.transform("tip")
    moved = moved @ np.linalg.inv(from_last) @ turn(axis[1], about_tip) @ from_last
    targets[0, 0, :16] = moved.ravel()
    starts, rooms = placed(ik, problem, ints, targets, out)
    assert (rooms >= 0.0).all()
    reached = sy.Pose(arm, starts[0]).transform("tip")
    assert np.abs(reached - moved).max() < COARSE
    assert np.abs(starts[0][1:3] - pose.q[1:3]).max() < 1e-12


@pytest.mark.parametrize("name", ["arm7", "humanoid"])
def test_a_pose_is_placed_at_its_own_target(name):
    skeleton = sy.bundled(name)
    goals = sy.PoseGoal("tool") if name == "arm7" else [sy.PositionGoal("left_hand"), sy.PoseGoal("right_hand")]
    q = np.stack([skeleton.random_pose(k).q for k in range(20)])
    ik, problem, ints, targets, out = described(skeleton, goals, q)
    starts, rooms = placed(ik, problem, ints, targets, out)
    fits = rooms >= 0.0
    moved = ik.problem.reduced.variables[:, layout.BLOCK_Q]
    for b in np.flatnonzero(fits > 0.0).tolist():
        for goal in ik.goals:
            a, c = (sy.Pose(skeleton, one[b]).transform(goal.joint) for one in (q, starts))
            assert np.abs(a[:3, 3] - c[:3, 3]).max() < COARSE
    if name == "humanoid":
        assert problem.form == 0
        assert fits.all()
        assert np.abs(starts[:, moved] - q[:, moved]).max() < 1e-12
    else:
        assert fits.sum() >= 10  # a random pose may be close to a limit


def test_poses_beyond_the_limits_of_the_first_joint_do_not_fit():
    arm = arm_without_limits().with_limits({"j0": (-1.0, 1.0)})
    pose = sy.Pose(arm, [0.0, 0.4, 0.5, 0.6])
    ik, problem, ints, targets, out = described(arm, sy.PoseGoal("tip"), pose.q[None].copy())
    base = pose.transform("j0")
    for angle, fits in ((0.8, True), (2.0, False), (-0.8, True), (3.0, False)):
        at_base = np.eye(4)
        at_base[:3, 3] = base[:3, 3]
        turned = at_base @ turn((0.0, 0.6, 0.8), angle) @ np.linalg.inv(at_base) @ pose.transform("tip")
        targets[0, 0, :16] = turned.ravel()
        assert (placed(ik, problem, ints, targets, out)[1][0] >= 0.0) == fits


def test_joints_follow_the_features_and_keep_their_limits():
    arm = arm_without_limits().with_limits({"j1": (-1.0, 1.0)})
    pose = sy.Pose(arm, [0.1, 0.4, 0.5, 0.6])
    ik, problem, ints, targets, out = described(arm, sy.PoseGoal("tip"), pose.q[None].copy())
    slopes = np.random.default_rng(3).normal(size=(4, problem.features))
    moves = slopes @ out[0, -problem.features :]
    share = 0.3 / np.abs(moves).max()
    starts, rooms = placed(ik, problem, ints, targets, out, share * slopes.ravel())
    assert np.abs(starts[0] - pose.q - share * moves).max() < COARSE
    assert abs(rooms[0] - min(1.0 - starts[0][1], 1.0 + starts[0][1])) < 1e-12
    slopes[0], slopes[2:] = 0.0, 0.0
    slopes[1] *= 0.7 / (slopes[1] @ out[0, -problem.features :])  # to 1.1, a little beyond the limit
    starts, rooms = placed(ik, problem, ints, targets, out, slopes.ravel())
    assert starts[0][1] == 1.0
    assert abs(rooms[0] + 0.1) < 1e-12
    starts, rooms = placed(ik, problem, ints, targets, out, 2.0 * slopes.ravel())  # too far: nothing is written
    assert np.array_equal(starts[0], ik.problem.rest[0])
    assert rooms[0] < -0.5


@pytest.mark.parametrize(("y", "x"), [(0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.0, -2.0), (1.0, 1.0), (-3.0, -3.0)])
def test_coarse_arctangent_at_its_edges(y, x):
    assert abs(angle_of(y, x) - np.arctan2(y, x)) < 3e-5


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
@settings(max_examples=100, deadline=None)
def test_coarse_arctangent(y, x):
    x, y = x + 0.0, y + 0.0  # zeros without a sign, which is no direction
    off = angle_of(y, x) - np.arctan2(y, x)
    assert abs(off - 2.0 * np.pi * np.round(off / (2.0 * np.pi))) < 3e-5
