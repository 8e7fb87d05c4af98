"""FABRIK against the published algorithm, and the traps of its originals, each by name."""

import numpy as np
import pytest

import synovia as sy
from synovia.skeleton import Joint, Kind


def published(points, target, iterations):
    """Return joint positions after so many iterations of Aristidou & Lasenby (2011), algorithm 1."""
    p = np.array(points, float)
    base = p[0].copy()
    d = np.linalg.norm(np.diff(p, axis=0), axis=1)
    for _ in range(iterations):
        p[-1] = target
        for i in range(len(p) - 2, -1, -1):
            p[i] = p[i + 1] + d[i] / np.linalg.norm(p[i] - p[i + 1]) * (p[i] - p[i + 1])
        p[0] = base
        for i in range(len(p) - 1):
            p[i + 1] = p[i] + d[i] / np.linalg.norm(p[i + 1] - p[i]) * (p[i + 1] - p[i])
    return p


def straight(lengths):
    """Return a chain along z with bones of these lengths."""
    z = np.concatenate([[0.0], np.cumsum(lengths)])
    return sy.Skeleton.chain(np.column_stack([0 * z, 0 * z, z]))


def solve(skeleton, target, start=None, solver=None, **given):
    """Return the answer for a position goal on the last joint."""
    return sy.solve(skeleton, sy.PositionGoal(len(skeleton) - 1, target), solver or sy.Fabrik(), start, **given)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("iterations", [1, 2, 3, 6])
def test_unlimited_chains_follow_the_published_algorithm_iteration_by_iteration(seed, iterations):
    """Positions after each iteration are the paper's."""
    rng = np.random.default_rng(seed)
    points = np.cumsum(rng.normal(size=(rng.integers(3, 12), 3)), axis=0)
    chain = sy.Skeleton.chain(points)
    start, target = chain.random_pose(seed), chain.random_pose(seed + 100).positions[-1]
    wanted = [published(start.positions, target, k) for k in range(iterations + 1)]
    errors = [np.linalg.norm(p[-1] - target) for p in wanted]
    tolerance = 1e-6
    last = next((k for k, error in enumerate(errors) if error <= tolerance), iterations)
    once = sy.Fabrik(max_steps=iterations, attempts=1)
    solution = solve(chain, target, start, once, tolerance=(tolerance, 1e-3))
    assert solution.steps == last
    np.testing.assert_allclose(solution.pose.positions, wanted[last], rtol=0, atol=1e-9 * np.abs(points).max() + 1e-9)


def test_unreachable_targets_are_reached_for_in_a_straight_line():
    """Beyond the sum of the lengths: the chain lies straight towards the target, at once, and says so."""
    chain = sy.Skeleton.chain(np.cumsum(np.random.default_rng(1).normal(size=(6, 3)), axis=0))
    base = chain.rest_pose().positions[0]
    target = base + np.array([20.0, -30.0, 10.0])
    solution = solve(chain, target, chain.random_pose(2))
    total = sum(np.linalg.norm(joint.rest[:3, 3]) for joint in chain.joints[1:])
    assert solution.status is sy.Status.UNREACHABLE
    assert solution.errors[0].position == pytest.approx(np.linalg.norm(target - base) - total, abs=1e-9)
    direction = (target - base) / np.linalg.norm(target - base)
    along = (solution.pose.positions - base) @ direction
    np.testing.assert_allclose(solution.pose.positions - base, along[:, None] * direction, atol=1e-9)


@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Ccd()])
def test_target_at_the_root_divides_by_nothing(solver):
    """r = 0: reachable by folding when the lengths allow it, inside the hole when they do not."""
    even, uneven = straight([1.0, 1.0, 1.0]), straight([3.0, 1.0, 1.0])
    assert solve(even, (0, 0, 0), even.random_pose(1), solver).reached
    solution = solve(uneven, (0, 0, 0), uneven.random_pose(1), solver)
    assert solution.status is sy.Status.UNREACHABLE
    assert solution.errors[0].position == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Ccd()])
def test_the_inner_hole_is_unreachable_and_the_best_pose_is_at_its_rim(solver):
    """Lengths 3, 1, 1 cannot come nearer than 1: a target at 0.51 is missed by 0.49."""
    chain = straight([3.0, 1.0, 1.0])
    solution = solve(chain, (0.0, 0.51, 0.0), chain.random_pose(4), solver)
    assert solution.status is sy.Status.UNREACHABLE
    assert solution.errors[0].position == pytest.approx(0.49, abs=1e-3)


@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Ccd()])
@pytest.mark.parametrize("target", [(0.0, 0.0, 100.0), (0.0, 0.0, 60.0), (0.0, 0.0, -50.0)])
def test_a_collinear_start_bends_and_always_in_the_same_way(solver, target):
    """Chain and target on one line: the plain method never leaves it."""
    chain = straight([40.0, 40.0, 40.0])
    first = solve(chain, target, None, solver)
    assert first.reached
    np.testing.assert_array_equal(first.pose.q, solve(chain, target, None, solver).pose.q)


def test_straight_and_folded_poses_are_reached_from_each_other():
    """The whole length straight ahead is at the edge of reach; the fold is at the other."""
    chain = straight([1.0, 1.0, 1.0, 1.0])
    for target in ((0.0, 4.0, 0.0), (0.0, 0.0, 4.0), (0.0, 1e-9, 0.0)):
        assert solve(chain, target, chain.random_pose(3)).reached


@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Ccd()])
def test_zero_length_bones_are_kept_and_do_no_harm(solver):
    """Two joints in one place."""
    chain = straight([1.0, 0.0, 1.0, 0.0, 1.0])
    for seed in range(5):
        target = chain.random_pose(seed).positions[-1]
        solution = solve(chain, target, chain.random_pose(seed + 50), solver)
        assert solution.reached
        assert np.isfinite(solution.pose.q).all()


def branched():
    """Return a trunk with two driven arms and a tail that nothing drives."""

    def ball(name, parent, x, y, z):
        rest = np.eye(4)
        rest[:3, 3] = x, y, z
        return Joint(name, parent, Kind.BALL, rest)

    return sy.Skeleton(
        [
            ball("root", None, 0, 0, 0), ball("chest", "root", 0, 0, 1), ball("arm0", "chest", 1, 0, 0),
            ball("end0", "arm0", 1, 0, 0), ball("arm1", "chest", -1, 0, 0), ball("end1", "arm1", -1, 0, 0),
            ball("tail", "chest", 0, 1, 0), ball("tuft", "tail", 0, 1, 0.3),
        ]
    )  # fmt: skip


@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Ccd(), sy.LevenbergMarquardt()])
def test_branches_that_nothing_drives_do_not_vote_and_follow_rigidly(solver):
    """The tail keeps its joint values, and its goals' answers are those of a body without it."""
    body = branched()
    bare = sy.Skeleton([j for j in body.joints if j.name not in ("tail", "tuft")])
    goals = [sy.PositionGoal("end0"), sy.PositionGoal("end1")]
    start, wanted = body.random_pose(1), body.random_pose(2)
    targets = {end: wanted.position(end) for end in ("end0", "end1")}
    solution = sy.IK(body, goals, solver).solve(targets, start)
    without = sy.IK(bare, goals, solver).solve(targets, sy.Pose(bare, start.q[: bare.nq]))
    assert solution.reached
    np.testing.assert_array_equal(solution.pose.q[: bare.nq], without.pose.q)
    np.testing.assert_array_equal(solution.pose.q[bare.nq :], start.q[bare.nq :])
    carried = np.linalg.inv(start.transform("chest")) @ start.transform("tuft")
    np.testing.assert_allclose(
        np.linalg.inv(solution.pose.transform("chest")) @ solution.pose.transform("tuft"), carried, atol=1e-12
    )


@pytest.mark.compiled
def test_an_iteration_costs_in_proportion_to_the_joints():
    """Ten times the joints cost ten times the time, not a hundred or a thousand times."""
    import time

    def seconds(n):
        chain = straight(np.ones(n))
        rng = np.random.default_rng(0)
        q = np.concatenate([sy.Rotation.from_rotvec(0.05 * rng.normal(size=3)).as_quat() for _ in range(n)])
        ik = sy.IK(chain, sy.PositionGoal(n), sy.Fabrik(max_steps=20, attempts=1), tolerance=(1e-12, 1e-3))
        best = np.inf
        for _ in range(5):
            before = time.process_time()
            ik.solve({n: np.array([0.3, 0.2, 0.4]) * n}, q)
            best = min(best, time.process_time() - before)
        return best

    assert seconds(1000) < 40 * seconds(100)
