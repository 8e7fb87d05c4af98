"""A target that moves beyond reach: the tip slides with it, without a rest and without a hop that is not listed."""

import numpy as np
import pytest

import synovia as sy

HEURISTICS = ("fabrik", "ccd", "particles")
LARGEST = 3.0  # steps of the tip beside those of its target, unless the frame is listed as a jump
BODIES = {
    "two bones": (sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0.1, 2, 0)]), "joint2"),
    "rope": (sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0.1, 2, 0), (0, 3, 0), (0.5, 3.2, 0), (0.5, 3.2, 1)]), "joint5"),
    "arm": (sy.bundled("arm7"), "tool"),
    "hand": (sy.bundled("humanoid"), "left_hand"),
    "foot": (sy.bundled("humanoid"), "right_foot"),
}
pytestmark = pytest.mark.compiled


def sweep(ik, start, seed, frames, fast):
    """Return targets on an arc about the first moving joint, 1.05 to 3 reaches away."""
    rng = np.random.default_rng(seed)
    a, b = np.linalg.qr(rng.normal(size=(3, 2)))[0].T
    step = 10 ** (rng.uniform(-2, -0.8) if fast else rng.uniform(-4, -2))
    angle = step * np.arange(frames)[:, None]
    center = start.position(ik.skeleton.joint_names[min(ik.moving)])
    return center + rng.uniform(1.05, 3.0) * ik.reach * (np.cos(angle) * a + np.sin(angle) * b)


def steps(ik, q, tip, targets):
    """Return how far the tip moves in each frame, beside its target."""
    tips = np.array([sy.Pose(ik.skeleton, values).position(tip) for values in q])
    return np.linalg.norm(np.diff(tips, axis=0), axis=1) / np.linalg.norm(np.diff(targets, axis=0), axis=1)


def check(solver, name, seed, frames, fast):
    """Track a sweep; the tip is never still, and frames in which it hops are listed."""
    body, tip = BODIES[name]
    ik = sy.IK(body, sy.PositionGoal(tip), solver)
    start = body.rest_pose() if seed % 3 == 0 else body.random_pose(seed)
    targets = sweep(ik, start, seed, frames, fast)
    clip = ik.track({tip: targets}, start)
    moved = steps(ik, clip.q, tip, targets)
    assert not clip.reached.any()
    assert moved.min() > 1e-7  # in a corner of its limits, the nearest place hardly moves
    assert {*(np.flatnonzero(moved > LARGEST) + 1).tolist()} <= {*clip.jumps}


@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("solver", HEURISTICS)
def test_the_tip_slides_with_a_target_beyond_reach(solver, name, fast):
    for seed in range(2):
        check(solver, name, seed, 20, fast)


@pytest.mark.slow
@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("solver", HEURISTICS)
def test_in_many_sweeps_no_tip_rests_and_no_hop_is_hidden(solver, count):
    for seed in range(count):
        check(solver, [*BODIES][seed % len(BODIES)], seed, 60, seed % 2 > 0)


@pytest.mark.parametrize("name", ["two bones", "rope", "arm"])
@pytest.mark.parametrize("solver", HEURISTICS)
def test_the_tip_slides_in_a_loop_of_solves_too(solver, name):
    """The pose of a moment before is the start of each solve. Newton's steps are told."""
    body, tip = BODIES[name]
    ik = sy.IK(body, sy.PositionGoal(tip), solver)
    pose, q = body.random_pose(3), []
    targets = sweep(ik, pose, 4, 20, fast=False)
    for target in targets:
        solution = ik.solve({tip: target}, start=pose, follow=True)
        pose = solution.pose
        q.append(pose.q)
    moved = steps(ik, q, tip, targets)
    assert moved.min() > 0.1
    assert moved.max() < LARGEST
    assert solution.finish_steps > 0
    assert " by lm)" in str(solution)


@pytest.mark.parametrize("name", ["rope", "arm", "hand"])
@pytest.mark.parametrize("solver", HEURISTICS)
def test_when_the_target_rests_the_pose_rests(solver, name):
    body, tip = BODIES[name]
    ik = sy.IK(body, sy.PositionGoal(tip), solver)
    targets = sweep(ik, body.rest_pose(), 5, 10, fast=False)
    clip = ik.track({tip: np.concatenate([targets, np.repeat(targets[-1:], 6, axis=0)])})
    tips = np.array([clip[k].pose.position(tip) for k in range(9, 16)])
    assert np.ptp(tips, axis=0).max() < 1e-6 * ik.reach
    assert not {*range(10, 16)} & {*clip.jumps}


@pytest.mark.parametrize("solver", HEURISTICS)
def test_a_pole_keeps_its_limb_while_the_hand_slides(solver):
    """Newton's steps are those of the hand alone: poles come last, at their own pace."""
    body = sy.bundled("humanoid")
    limb = ("left_upper_arm", "left_hand")
    ik = sy.IK(body, [sy.PositionGoal("left_hand"), sy.PoleGoal("left_lower_arm", root=limb[0], tip=limb[1])], solver)
    start = body.rest_pose()
    targets = sweep(ik, start, 6, 20, fast=False)
    pole = np.broadcast_to(start.position("left_lower_arm") + np.array((0.0, 0.0, -0.5)), (20, 3))
    clip = ik.track({"left_hand": targets, "left_lower_arm": pole}, start)
    moved = steps(ik, clip.q, "left_hand", targets)
    assert moved.min() > 0.05
    assert {*(np.flatnonzero(moved > LARGEST) + 1).tolist()} <= {*clip.jumps}


def test_a_tip_that_catches_up_step_by_step_does_not_hop():
    """With a bound on motion, the tip lags behind a target that has leapt."""
    arm = sy.bundled("arm7")
    start = arm.rest_pose()
    ik = sy.IK(arm, sy.PositionGoal("tool"), sy.FullBody(largest_move=0.02, attempts=1))
    clip = ik.track({"tool": np.tile((0.4, 0.1, 0.5), (30, 1))}, start)
    moved = np.linalg.norm(np.diff([clip[k].pose.position("tool") for k in range(30)], axis=0), axis=1)
    assert moved.max() > 1e-3
    assert clip.jumps == ()
