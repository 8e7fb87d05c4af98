"""Restarts, proofs, polish and classification, part by part: each rule against geometry, differences or brute force."""

import math

import numpy as np
import pytest

import synovia as sy
from beyond import beyond_limits
from parts import Parts
from probes import random_q
from synovia.kernels import layout
from synovia.kernels.compiler.jit import perform
from synovia.kernels.compiler.views import bits, matrix
from synovia.kernels.goals import reach
from synovia.kernels.hierarchy import full_body
from synovia.kernels.search import classify, descent, finish, multistart, polish, restarts
from synovia.kernels.tree import chart, variables
from synovia.kernels.tree.problem import with_steps
from synovia.model.tree import ancestors
from trees import random_tree

pytestmark = pytest.mark.parts

LM = sy.LevenbergMarquardt


def turn(q):
    """Return a quaternion as a rotation."""
    return sy.Rotation.from_quat(np.asarray(q, float))


def chain(lengths=(1.0, 1.0), kind=sy.Kind.HINGE, **given):
    """Return joints in a row along x, hinges about z, with a tip."""
    joints, at = [], 0.0
    for i, length in enumerate(lengths):
        rest = np.eye(4)
        rest[0, 3] = at
        joints.append(sy.Joint(f"j{i}", f"j{i - 1}" if i else None, kind, rest, axis=(0, 0, 1), **given))
        at = length
    rest = np.eye(4)
    rest[0, 3] = at
    return sy.Skeleton([*joints, sy.Joint("tip", joints[-1].name, sy.Kind.FIXED, rest)])


def missed_tree(seed, free=False):
    """Return a random tree with limits and goals that it misses."""
    rng = np.random.default_rng(seed)
    body = random_tree(rng, joints=7, free=free, limits=True, mimic=False)
    q = random_q(body, rng)
    goals = [
        sy.PositionGoal("j6", rng.normal(size=3) * 2, offset=rng.normal(size=3)),
        sy.PositionGoal("j4", rng.normal(size=3) * 2, weight=0.4),
    ]
    return rng, Parts(body, goals, LM(), q, "free" if free else "fixed")


# --- the quadratic model of a polish --------------------------------------------------------------------------------


def model_at(parts):
    """Write gradient, Hessian and box at the pose; return copies of gradient and Hessian."""
    parts.update()
    left, held = polish.bounded_gradient(*parts.call)
    polish.hessian(*parts.call)
    return parts.work.g.copy(), parts.work.H.copy(), left, held


def half_cost(parts, y):
    """Return half the cost after a step in the directions of the box."""
    return 0.5 * parts.update(parts.moved(y))[0]


@pytest.mark.parametrize("seed", range(4))
def test_the_model_is_the_taylor_series_of_the_cost(seed):
    """In the coordinates of the box half the cost falls by g·y - y·H y / 2, along each column and random ways."""
    rng, parts = missed_tree(seed, free=bool(seed % 2))
    g, H, _, _ = model_at(parts)
    box = parts.work.box.copy()
    n, d = len(g), 2e-4
    inside = (box[:, layout.BOX_LOWER] < -d) & (box[:, layout.BOX_UPPER] > d)
    assert inside.sum() > 2
    scale = 1 + np.abs(H).max()
    for y in [*np.eye(n)[inside], *(rng.normal(size=(4, n)) * inside)]:
        y = y / np.abs(y).max()
        low, middle, high = (half_cost(parts, t * y) for t in (-d, 0.0, d))
        assert (low - high) / (2 * d) == pytest.approx(g @ y, abs=1e-5 * scale)
        assert (low - 2 * middle + high) / d**2 == pytest.approx(y @ H @ y, abs=2e-3 * scale)


@pytest.mark.parametrize("seed", range(3))
def test_the_predicted_fall_is_that_of_the_model(seed):
    """A step falls by 2 g·y - y·H y; without second derivatives the damped step stands for itself."""
    rng, parts = missed_tree(seed)
    g, H, _, _ = model_at(parts)
    y = rng.normal(size=len(g))
    parts.work.dq[:] = y
    assert polish.predicted_fall(parts.work, 7.0) == pytest.approx(2 * g @ y - y @ H @ y)
    bare = parts.work._replace(H=np.zeros((0, 0)))
    J, damping = parts.work.J, 0.3
    y = np.linalg.solve(J.T @ J + damping * np.eye(len(g)), g)
    parts.work.dq[:] = y
    assert polish.predicted_fall(bare, damping) == pytest.approx(2 * g @ y - y @ J.T @ J @ y)


def test_columns_at_active_bounds_are_left_out():
    """Their gradient and their Jacobian columns are zero; the others stay."""
    rng, parts = missed_tree(1)
    model_at(parts)
    J, g = rng.normal(size=parts.work.J.shape), rng.normal(size=parts.work.g.shape)
    parts.work.J[:], parts.work.g[:] = J, g
    held = np.arange(len(g)) % 3 == 0
    parts.work.box[:, layout.HELD] = np.where(held, 1.0, 0.0)
    polish.drop_active(parts.work)
    np.testing.assert_array_equal(parts.work.g, np.where(held, 0, g))
    np.testing.assert_array_equal(parts.work.J, np.where(held, 0, J))


def test_what_bounds_hold_back_of_a_gradient():
    """A hinge at its limit that is pulled outwards is held; pulled inwards, or free, it is not."""
    arm = chain(limit=sy.Interval(-0.5, 0.5))
    for q, target, free in (
        ([0.5, 0.1], (-1, 2, 0), [False, True]),
        ([-0.5, 0.1], (-1, 2, 0), [True, True]),
        ([0.5, 0.5], (-1, 3, 0), [False, False]),
    ):
        parts = Parts(arm, [sy.PositionGoal("tip", target)], LM(), q)
        g, _, left, held = model_at(parts)
        limits = np.where(np.sign(g) > 0, 0.5 - np.array(q), 0.5 + np.array(q))
        allowed = np.minimum(np.abs(g), limits)
        assert left == pytest.approx(allowed.max(), abs=1e-12)
        assert held == pytest.approx((np.abs(g) - allowed).max(), abs=1e-12)
        assert [abs(x) < 1e-9 for x in allowed] == [not one for one in free]


@pytest.mark.parametrize("many", [False, True])
def test_a_descent_ends_where_no_step_helps(many):
    """The cost is that of the best pose on a grid, with second derivatives and without."""
    arm = chain((1.0, 0.7), limit=sy.Interval(-0.9, 0.6))
    target = np.array([-0.4, 2.0, 0.0])
    parts = Parts(arm, [sy.PositionGoal("tip", tuple(target))], LM(), [0.1, 0.2])
    work = parts.work._replace(H=np.zeros((0, 0)), K=np.zeros((0, 0))) if many else parts.work
    taken, ended = polish.newton_descent(parts.problem, work, parts.targets, parts.q, 300)
    assert ended == 1
    assert taken > 0
    a, b = np.meshgrid(*[np.linspace(-0.9, 0.6, 301)] * 2, indexing="ij")
    x, y = np.cos(a) + 0.7 * np.cos(a + b), np.sin(a) + 0.7 * np.sin(a + b)
    best = np.hypot(x - target[0], y - target[1]).min()
    assert np.linalg.norm(sy.Pose(arm, parts.q).position("tip") - target) < best + 1e-6
    before = parts.q.copy()
    polish.newton_descent(parts.problem, work, parts.targets, parts.q, 300)
    np.testing.assert_allclose(parts.q, before, atol=1e-9)
    assert polish.newton_descent(parts.problem, work, parts.targets, parts.q.copy() * 0.3, 1) == (1, 0)


def test_a_descent_stops_at_goals_that_are_met():
    """No step is taken from a pose within the tolerance; a step that reaches ends the descent."""
    parts = Parts(chain(), [sy.PositionGoal("tip", (1, 1, 0))], LM(), [0.0, np.pi / 2])
    assert polish.newton_descent(*parts.call, 50) == (0, 1)
    parts = Parts(chain(), [sy.PositionGoal("tip", (1, 1, 0))], LM(), [0.3, 1.2])
    taken, ended = polish.newton_descent(*parts.call, 50)
    assert 0 < taken < 30
    assert ended == 1
    assert parts.errors()[0, 0] <= parts.problem.tolerance


def test_saddles_are_told_from_minima():
    """Pointing straight away from the target is a saddle, pointing at it is none; the polish leaves the one only."""
    for q, saddle in (([np.pi, 0.0], True), ([0.0, np.pi], True), ([0.0, 0.0], False)):
        parts = Parts(chain(), [sy.PositionGoal("tip", (5, 0, 0))], LM(), q)
        cost, _ = parts.update()
        assert polish.is_saddle(*parts.call, cost, 0) == saddle
        bare = parts.work._replace(H=np.zeros((0, 0)))
        assert polish.is_saddle(parts.problem, bare, parts.targets, parts.q, cost, 0)
        assert not polish.is_saddle(parts.problem, bare, parts.targets, parts.q, cost, 3)
        _, ended = polish.polish_to_minimum(*parts.call, 200)
        assert ended == 1
        np.testing.assert_allclose(sy.Pose(parts.ik.skeleton, parts.q).position("tip"), [2, 0, 0], atol=1e-6)
        if not saddle:
            np.testing.assert_array_equal(parts.q, q)


# --- what a miss is called ------------------------------------------------------------------------------------------


def called(parts, converged=True):
    """Return the status of the pose."""
    errors = parts.errors().ravel()
    return classify.status_of(parts.problem, parts.work, parts.targets, errors, parts.q, converged)


def test_goals_that_pull_against_each_other_conflict():
    """Between two targets of one point, their pulls cancel; beside the middle, they do not."""
    goals = [sy.PositionGoal("tip", (1, 1, 0)), sy.PositionGoal("tip", (1, -1, 0))]
    assert called(Parts(chain((1.0,)), goals, LM(), [0.0])) == layout.CONFLICT
    assert called(Parts(chain((1.0,)), goals, LM(), [0.3]), converged=False) == layout.STEPS_SPENT


def test_limits_that_hold_a_goal_back():
    """At its limit the hinge is pulled outwards; if it is pulled inwards the descent has not ended."""
    arm = chain((1.0,), limit=sy.Interval(-0.5, 0.5))
    for q, target in ((0.5, (0, 1, 0)), (-0.5, (0, -1, 0))):
        assert called(Parts(arm, [sy.PositionGoal("tip", target)], LM(), [q])) == layout.LIMITED
        assert called(Parts(arm, [sy.PositionGoal("tip", target)], LM(), [q]), converged=False) == layout.LIMITED
        assert called(Parts(arm, [sy.PositionGoal("tip", target)], LM(), [-q]), converged=False) == layout.STEPS_SPENT


def test_a_stationary_miss_without_a_reason_stalled():
    """Stretched towards a target beyond reach nothing pulls; unless it did not converge."""
    for converged, status in ((True, layout.STALLED), (False, layout.STEPS_SPENT)):
        parts = Parts(chain(), [sy.PositionGoal("tip", (5, 0, 0))], LM(), [0.0, 0.0])
        assert called(parts, converged) == status


def test_the_highest_level_that_is_missed_decides():
    """A goal whose way a level above bars conflicts; the level above itself is judged alone."""
    goals = [sy.PositionGoal("tip", (0, 1, 0)), sy.PositionGoal("tip", (1, 1, 0), priority=1)]
    parts = Parts(chain((1.0,)), goals, sy.FullBody(), [np.pi / 2])
    assert called(parts) == layout.CONFLICT  # the first is met, and bars the second
    goals = [sy.PositionGoal("tip", (0, 5, 0)), sy.PositionGoal("tip", (1, 1, 0), priority=1)]
    assert called(Parts(chain((1.0,)), goals, sy.FullBody(), [np.pi / 2])) == layout.STALLED
    goals = [sy.RotationGoal("j0", np.eye(3)), sy.PositionGoal("tip", (5, 0, 0), priority=1)]
    assert called(Parts(chain((1.0,)), goals, sy.FullBody(), [0.0])) == layout.STALLED
    goals = [sy.RotationGoal("j0", turn([0, 0, 1, 1]).as_matrix()), sy.RotationGoal("j0", np.eye(3), priority=1)]
    assert called(Parts(chain((1.0,)), goals, sy.FullBody(), [0.4]), converged=False) == layout.STEPS_SPENT


def test_a_gradient_of_some_rows():
    """Of the rows in question alone, split at the bounds."""
    rng, parts = missed_tree(2)
    parts.work.J[:] = rng.normal(size=parts.work.J.shape)
    parts.work.e[:] = rng.normal(size=parts.work.e.shape)
    parts.work.box[:, layout.BOX_LOWER], parts.work.box[:, layout.BOX_UPPER] = -0.1, 1e9
    expected = parts.work.J[1:4].T @ parts.work.e[1:4]
    free, held = classify.level_gradient(parts.work, 1, 4, 1e-12)
    np.testing.assert_allclose(parts.work.g, expected, atol=1e-12)
    assert free == pytest.approx(max(expected.max(), min(0.1, -expected.min())))
    assert held == pytest.approx(max(0.0, -expected.min() - 0.1))


def test_coarse_descents_keep_the_lowest():
    """The cost never rises, is that of q, and a descent without steps only looks."""
    for seed in range(4):
        _, parts = missed_tree(seed)
        first, _ = parts.update()
        q = parts.q.copy()
        assert perform(classify.coarse_descent, with_steps(parts.problem, 0), *parts.call[1:]) == (0, first)
        np.testing.assert_array_equal(parts.q, q)
        taken, cost = perform(classify.coarse_descent, with_steps(parts.problem, 12), *parts.call[1:])
        assert taken == 12
        assert cost < first
        assert parts.update()[0] == pytest.approx(cost, rel=1e-9)
    met = Parts(chain(), [sy.PositionGoal("tip", (1, 1, 0))], LM(), [0.0, np.pi / 2])
    assert perform(classify.coarse_descent, *met.call)[0] == 0


# --- bounds of distances --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_no_pose_is_nearer_than_the_bound(seed):
    """Whatever the joints, the tip is never nearer to the point than the bound; on both sides of reach."""
    rng = np.random.default_rng(seed)
    body = random_tree(rng, joints=6, free=bool(seed % 2), limits=True, mimic=False)
    row, offset = "j5", rng.normal(size=3) * 0.3
    parts = Parts(body, [sy.PositionGoal(row, (0, 0, 0), offset=offset)], LM())
    positive = 0
    for size in (0.05, 1.0, 9.0, 40.0):
        point = rng.normal(size=3)
        point *= size / np.linalg.norm(point)
        parts.update()
        goal = int(parts.problem.goals[0, layout.GOAL_ROW])
        tip = np.linalg.norm(parts.problem.goal_data[0, layout.GOAL_ORIGIN :])
        bound = reach.least_distance(parts.problem, parts.work.frames, parts.targets, goal, tip, tuple(point))
        positive += bound > 0
        for pose in range(40):
            q = body.random_pose(pose).q.copy()
            q[: 7 if seed % 2 else 0] = body.rest_pose().q[: 7 if seed % 2 else 0]
            frame = sy.Pose(body, q).transform(row)
            away = np.linalg.norm(frame[:3, :3] @ offset + frame[:3, 3] - point)
            assert away >= bound - 1e-9
    assert positive >= 1


def places(body, start, count):
    """Yield joint values at random within the limits; translations of free joints, and a free root, stay."""
    first = body.tables.ints[:, layout.FIRST_Q]
    free = [row for row, joint in enumerate(body.joints) if joint.kind is sy.Kind.FREE]
    for seed in range(count):
        q = body.random_pose(seed).q.copy()
        for row in free:
            at = first[row]
            q[at : at + 7] = start[at : at + 7]
            if any(body.joints[above].kind is not sy.Kind.FIXED for above in ancestors(body.parents, row)[1:]):
                q[at + 3 : at + 7] = sy.Rotation.random(random_state=seed + row).as_quat()
        yield q


@pytest.mark.parametrize("seed", range(24))
def test_no_pose_is_nearer_than_the_bound_of_what_free_joints_that_stay_leave(seed):
    """Free joints anywhere, far from their rest places at the start: distances are those of the start."""
    rng = np.random.default_rng(seed)
    body = random_tree(rng, joints=8, limits=bool(seed % 2), mimic=bool(seed % 3), held=True)
    start = body.random_pose(seed).q.copy()
    for row, joint in enumerate(body.joints):
        if joint.kind is sy.Kind.FREE:
            at = body.tables.ints[row, layout.FIRST_Q]
            start[at : at + 3] = rng.normal(size=3) * rng.choice([0.3, 3.0])
            start[at + 3 : at + 7] = sy.Rotation.random(random_state=seed).as_quat()
    offset = rng.normal(size=3) * 0.3
    parts = Parts(body, [sy.PositionGoal("j7", (0, 0, 0), offset=offset)], LM(), start)
    goal = int(parts.problem.goals[0, layout.GOAL_ROW])
    tip = np.linalg.norm(parts.problem.goal_data[0, layout.GOAL_ORIGIN :])
    tips = []
    for q in places(body, start, 200):
        frame = sy.Pose(body, q).transform("j7")
        tips.append(frame[:3, :3] @ offset + frame[:3, 3])
    for size in (0.0, 0.3, 1.0, 3.0, 9.0, 30.0):
        point = np.mean(tips, axis=0) + size * rng.normal(size=3)
        bound = reach.least_distance(parts.problem, parts.work.frames, parts.targets, goal, tip, tuple(point))
        assert np.linalg.norm(np.array(tips) - point, axis=1).min() >= bound - 1e-9


@pytest.mark.parametrize("scale", [0.0, 0.5, 4.0])
def test_the_bound_of_a_chain_with_free_joints_that_stay_is_exact(scale):
    """Balls and free joints, whose translations lengthen, shorten and turn the segments: reach and hole are sharp."""
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
    rests = [np.eye(4) for _ in range(2)]
    rests[1][0, 3] = 3.0
    joints = [
        sy.Joint("turn", kind=sy.Kind.BALL),
        sy.Joint("slide", "turn", sy.Kind.SLIDE, rests[1], axis=(0, 1, 0), limit=sy.Interval(-1.0, 4.0)),
    ]
    body = sy.Skeleton(joints)
    for away, proved in ((2.9, True), (3.1, False), (4.9, False), (5.1, True)):
        solution = sy.solve(body, sy.PositionGoal("slide", (0.0, 0.0, away)))
        assert (solution.status is sy.Status.UNREACHABLE) == proved
        assert solution.reached != proved
    assert "reaches 5 units at most" in solution.explain()[0]


@pytest.mark.parametrize("lengths", [(1.0, 1.0), (2.0, 0.5), (0.4, 2.0, 0.6), (0.5, 0.5, 3.0)])
def test_the_bound_of_a_free_chain_is_exact(lengths):
    """Beyond the sum of lengths, and within the hole that the longest bone leaves."""
    parts = Parts(chain(lengths), [sy.PositionGoal("tip", (9, 0, 0))], LM())
    total, longest = sum(lengths), max(lengths)
    row = int(parts.problem.goals[0, layout.GOAL_ROW])
    tip = np.linalg.norm(parts.problem.goal_data[0, layout.GOAL_ORIGIN :])
    for away in (0.0, 0.2, 1.0, 1.9, total - 0.01, total + 0.01, 7.0):
        exact = max(away - total, 2 * longest - total - away)
        found = reach.least_distance(parts.problem, parts.work.frames, parts.targets, row, tip, (0.0, away, 0.0))
        assert found == pytest.approx(exact)


def test_held_joints_below_a_moving_one_are_part_of_the_chain():
    """The tip's goal may move the upper arm alone: the held forearm is a part of its segment."""
    at = [np.eye(4) for _ in range(4)]
    for rest, x in zip(at, (0.0, 1.0, 1.0, 0.1), strict=True):
        rest[0, 3] = x
    kinds = [sy.Kind.HINGE] * 3 + [sy.Kind.FIXED]
    joints = [
        sy.Joint(f"j{i}", f"j{i - 1}" if i else None, kind, rest, axis=(0, 0, 1))
        for i, (kind, rest) in enumerate(zip(kinds, at, strict=True))
    ]
    body = sy.Skeleton(joints)
    for height, proved in ((2.05, False), (2.2, True)):
        goals = [sy.PositionGoal("j3", (0, height, 0), ancestors=0), sy.PositionGoal("j1", (0, 1, 0))]
        for solver in ("lm", "ccd", "full-body"):
            solution = sy.solve(body, goals, solver)
            assert not solution.reached
            assert (solution.status is sy.Status.UNREACHABLE) == proved, (solver, height)


@pytest.mark.parametrize(("away", "proved"), [(2.0, 0), (2.0 + 1.9e-4, 0), (2.0 + 4e-4, 1), (0.9, 0), (5.0, 1)])
def test_a_proof_leaves_the_tolerance(away, proved):
    """Within the tolerance of reach nothing is proved; the tolerance is 2e-4 here."""
    parts = Parts(chain(), [sy.PositionGoal("tip", (0, away, 0))], LM())
    assert parts.problem.tolerance == pytest.approx(2e-4)
    assert perform(reach.prove_unreachable, *parts.call) == (proved, 0.0)


def test_a_proof_in_the_hole_and_at_the_wrist():
    """A target too near the base, and one whose rotation puts the wrist out of reach."""
    long = chain((2.0, 0.5))
    for away, proved in ((1.4, 1), (1.6, 0)):
        parts = Parts(long, [sy.PositionGoal("tip", (away, 0, 0))], LM())
        assert perform(reach.prove_unreachable, *parts.call)[0] == proved
    arm = chain((1.0, 1.0, 0.5))
    for heading, proved in ((0.0, 0), (np.pi, 1)):
        rotation = sy.Rotation.from_rotvec([0, 0, heading])
        parts = Parts(arm, [sy.PoseGoal("tip", (2.4, 0, 0), rotation)], LM())
        assert perform(reach.prove_unreachable, *parts.call)[0] == proved


def test_what_no_joint_moves():
    """A goal on a part that cannot move is unreachable as soon as it is missed, and proves nothing else."""
    body = sy.Skeleton([sy.Joint("a", None, sy.Kind.FIXED), sy.Joint("b", "a", sy.Kind.HINGE, axis=(0, 0, 1))])
    for goal, proved in (
        (sy.PositionGoal("a", (0, 0, 1)), 1),
        (sy.PositionGoal("a", (0, 0, 0)), 0),
        (sy.RotationGoal("a", turn([0, 0, 1, 1]).as_matrix()), 1),
        (sy.RotationGoal("a", np.eye(3)), 0),
    ):
        parts = Parts(body, [goal, sy.RotationGoal("b", np.eye(3))], LM())
        assert perform(reach.prove_unreachable, *parts.call)[0] == proved
        assert reach.missed(parts.problem, parts.work.frames, parts.targets, 0) == bool(proved)


def walking(root, far, bones=(2.0, 0.5)):
    """Return a body with a free root, goals for its root and its tip, and the bound of the tip's distance."""
    rest = np.eye(4)
    joints = [sy.Joint("root", None, sy.Kind.FREE)]
    for i, length in enumerate((0.0, *bones)):
        frame = rest.copy()
        frame[0, 3] = length
        kind = {"kind": sy.Kind.BALL} if i < len(bones) else {}
        joints.append(sy.Joint(f"b{i}", joints[-1].name, rest=frame, **kind))
    tip = joints[-1].name
    goals = [sy.PositionGoal("root", root), sy.PositionGoal(tip, far)] if root else [sy.PositionGoal(tip, far)]
    start = np.array([5.0, 6.0, 7.0, 0, 0, 0, 1.0] + [0, 0, 0, 1.0] * len(bones))
    parts = Parts(sy.Skeleton(joints), goals, LM(), start, "free")
    g = len(goals) - 1
    return parts, reach.least_distance(
        parts.problem, parts.work.frames, parts.targets, int(parts.problem.goals[g, layout.GOAL_ROW]),
        float(np.linalg.norm(parts.problem.goal_data[g, layout.GOAL_ORIGIN :])), far,
    )  # fmt: skip


@pytest.mark.parametrize(("away", "least"), [(4.0, 1.5), (2.5, 0.0), (2.0, -0.5), (1.6, -0.1), (1.5, 0.0), (1.0, 0.5)])
def test_a_root_that_walks_reaches_all_but_where_it_has_a_target(away, least):
    """With a target of its own the root is there, within its tolerance: beyond reach and in the hole are proved."""
    parts, bound = walking((1.0, 1.0, 0.0), (1.0, 1.0 + away, 0.0))
    assert bound == pytest.approx(least - parts.problem.tolerance, abs=1e-9)
    assert perform(reach.prove_unreachable, *parts.call)[0] == (least > 0.1)
    parts, bound = walking(None, (0.0, 100.0 * away, 0.0))
    assert bound == -np.inf
    assert perform(reach.prove_unreachable, *parts.call)[0] == 0


def test_a_proof_ends_attempts_only_if_no_other_goal_is_missed():
    """A goal out of reach is hopeless; with another that is missed, the next attempt may still help that one."""
    arm = chain((1.0, 1.0, 1.0))
    far, near = sy.PositionGoal("tip", (9, 0, 0)), sy.PositionGoal("j1", (0, 1, 0), priority=1)
    for goals, q, hopeless in (([far], [0, 0, 0], 1), ([far, near], [0, 0, 0], 0), ([far, near], [np.pi / 2, 0, 0], 1)):
        parts = Parts(arm, goals, sy.FullBody(), q)
        assert perform(full_body.prove_hopeless, *parts.call)[0] == hopeless


def test_an_answer_at_its_bound_needs_no_search():
    """Stretched towards a far target no pose is nearer; bent, one is."""
    for q, at in (([0.0, 0.0], True), ([0.2, -0.4], False)):
        parts = Parts(chain(), [sy.PositionGoal("tip", (5, 0, 0))], LM(), q)
        assert reach.at_bound(parts.problem, parts.work.frames, parts.targets, parts.errors().ravel()) == at


# --- restarts -------------------------------------------------------------------------------------------------------


def test_finalists_are_the_lowest_of_different_costs():
    """Of random costs, the lowest stay, in order; equal ones count once, and a number that is none never."""
    parts = Parts(chain(), [sy.PositionGoal("tip", (1, 1, 0))], LM())
    stored = matrix(parts.work.watch, layout.OTHERS, layout.FINALISTS + 1, 4)
    rng = np.random.default_rng(0)
    for _ in range(50):
        costs = rng.choice([0.5, 1.0, 2.0, 3.0, 4.0, 5.0, np.nan, np.inf], size=rng.integers(0, 8))
        count = 0
        for i, cost in enumerate(costs):
            pose = np.array([float(i), cost if cost == cost else -1.0])
            count = finish.insert_finalist(parts.work, count, pose, cost, i + 5, 1e-3)
        expected = sorted({c for c in costs if np.isfinite(c)})[: layout.FINALISTS]
        assert count == len(expected)
        np.testing.assert_array_equal(stored[:count, 2], expected)
        np.testing.assert_array_equal(stored[:count, 1], expected)
        kept = stored[:count, 0].astype(int)
        assert all(costs[k] == c for k, c in zip(kept, expected, strict=True))
        np.testing.assert_array_equal(stored[:count, 3], kept + 5)
        for k in range(count):
            q = np.zeros(2)
            assert finish.load_pose(parts.work, k, q) == kept[k] + 5
            np.testing.assert_array_equal(q, stored[k, :2])


def test_nearly_equal_costs_are_one_minimum():
    """Within the tolerance a pose is not stored again, whichever is lower."""
    parts = Parts(chain(), [sy.PositionGoal("tip", (1, 1, 0))], LM())
    assert finish.insert_finalist(parts.work, 0, np.zeros(2), 1.0, 0, 1e-3) == 1
    assert finish.insert_finalist(parts.work, 1, np.ones(2), 1.0005, 1, 1e-3) == 1
    assert finish.insert_finalist(parts.work, 1, np.ones(2), 0.9995, 1, 1e-3) == 1
    assert finish.insert_finalist(parts.work, 1, np.ones(2), 0.99, 1, 1e-3) == 2


@pytest.mark.parametrize(
    ("attempts", "status", "tries", "left"),
    [(10, layout.STALLED, 10, 9), (100, layout.STALLED, 100, 25), (10, layout.UNREACHABLE, 1, 9),
     (10, layout.UNREACHABLE, 4, 6), (10, layout.UNREACHABLE, 40, 0), (1, layout.STALLED, 1, 0)],
)  # fmt: skip
def test_how_many_restarts_a_miss_may_take(attempts, status, tries, left):
    """As many as attempts but one, at most 25; fewer if the proof came after some."""
    parts = Parts(chain(), [sy.PositionGoal("tip", (1, 1, 0))], LM(attempts=attempts))
    row = np.zeros(20)
    row[layout.STATUS], row[layout.TRIES] = status, tries
    assert finish.restarts_left(parts.problem, row) == left


@pytest.mark.parametrize("seed", range(3))
def test_random_starts_lie_within_the_limits_and_everywhere(seed):
    """Every variable is drawn within its limits; free balls turn by whole, fifth and twenty-fifth parts."""
    rng = np.random.default_rng(seed)
    joints = [sy.Joint(f"b{i}", f"b{i - 1}" if i else None, sy.Kind.BALL) for i in range(3)]
    joints.append(sy.Joint("h", "b2", sy.Kind.HINGE, axis=(0, 0, 1), limit=sy.Interval(-0.3, 1.1)))
    limited = sy.SwingTwist(x=(0.3, 0.2), y=(0.4, 0.5), twist=(-0.2, 0.1))
    joints.append(sy.Joint("l", "h", sy.Kind.BALL, limit=limited))
    rest = np.eye(4)
    rest[:3, 3] = rng.normal(size=3)
    body = sy.Skeleton([*joints, sy.Joint("tip", "l", sy.Kind.FIXED, rest)])
    parts = Parts(body, [sy.PositionGoal("tip", (1, 1, 0))], LM())
    largest, hinge = [], []
    for attempt in range(120):
        variables.seed_state(bits(parts.work.watch, layout.STATE, 1), seed, attempt)
        perform(restarts.random_start, *parts.call)
        assert beyond_limits(parts.problem, parts.q) < 1e-9
        largest.append(max(turn(parts.q[4 * i : 4 * i + 4]).magnitude() for i in range(3)))
        hinge.append(parts.q[12])
    assert min(hinge) < -0.2
    assert max(hinge) > 1.0
    groups = np.histogram(largest, [0, np.pi / 25 + 1e-6, np.pi / 5 + 1e-6, np.pi + 1e-6])[0]
    assert (groups > 20).all()


def rail(low=-100.0, high=200.0):
    """Return a wide slide along x, with an arm on it."""
    rest = np.eye(4)
    rest[0, 3] = 1.0
    axes = {"axis": (1, 0, 0), "limit": sy.Interval(low, high)}
    return sy.Skeleton(
        [
            sy.Joint("rail", None, sy.Kind.SLIDE, **axes),
            sy.Joint("arm", "rail", sy.Kind.HINGE, axis=(0, 0, 1)),
            sy.Joint("short", "arm", sy.Kind.SLIDE, rest, axis=(1, 0, 0), limit=sy.Interval(0, 0.1)),
            sy.Joint("tip", "short", sy.Kind.FIXED, rest),
        ]
    )


def test_wide_slides_are_drawn_near_the_target():
    """So that the goal can be reached from there: at most the reach from where the slide brings it nearest."""
    body = rail()
    parts = Parts(body, [sy.PositionGoal("tip", (70.0, 0.5, 0))], LM())
    size = parts.problem.reach
    assert size < 10
    drawn = []
    for attempt in range(60):
        variables.seed_state(bits(parts.work.watch, layout.STATE, 1), 3, attempt)
        parts.q[:] = [5.0, 0.2, 0.05]
        perform(restarts.random_start, *parts.call)
        arm = parts.q.copy()
        arm[0] = 0.0
        nearest = 70.0 - sy.Pose(body, arm).position("tip")[0]
        drawn.append(parts.q[0] - nearest)
        assert 0.0 <= parts.q[2] <= 0.1
    assert np.abs(drawn).max() <= size + 1e-9
    assert min(drawn) < -0.5 * size < 0.5 * size < max(drawn)
    far = Parts(body, [sy.PositionGoal("tip", (500.0, 0.5, 0))], LM())
    perform(restarts.random_start, *far.call)
    assert far.q[0] == 200.0  # as far as its limit allows
    rows = {j: i for i, j in enumerate(("rail", "arm", "short"))}
    wide = [restarts.is_wide(parts.problem, rows[name]) for name in rows]
    assert wide == [True, False, False]


def test_a_nudge_is_small_random_and_within_the_limits():
    """Each variable moves by at most the size, slides by that part of the reach, each its own way."""
    body = rail(-1.0, 1.0)
    joints = [*body.joints, sy.Joint("ball", "tip", sy.Kind.BALL)]
    body = sy.Skeleton(joints)
    parts = Parts(body, [sy.PoseGoal("ball", (1, 1, 0), sy.Rotation.identity())], LM())
    moves = []
    for seed in range(60):
        q = parts.q.copy()
        variables.perturb(parts.problem._replace(seed=seed, reach=3.0), parts.work, q, 0.01)
        turned = turn(parts.q[3:7]).inv() * turn(q[3:7])
        moves.append([*(q[:3] - parts.q[:3]), *turned.as_rotvec()])
    moves = np.array(moves)
    most = np.array([0.03, 0.01, 0.03, 0.01, 0.01, 0.01])
    assert (np.abs(moves) <= most + 1e-12).all()
    for k in range(6):
        assert moves[:, k].max() > 0.8 * most[k]
        assert moves[:, k].min() < -0.8 * most[k] or k == 2  # which stands at its lower limit
    assert moves[:, 2].min() == 0.0


def test_a_displacement_is_of_one_component():
    """By h, a slide by that part of the reach, whatever its limits."""
    _, parts = missed_tree(3)
    for k in range(len(parts.problem.variables)):
        at = parts.problem.variables[k, layout.BLOCK_Q]
        for c in range(3 if parts.problem.variables[k, layout.BLOCK] else 1):
            q = parts.q.copy()
            variables.displace(parts.problem, q, k, c, 0.02)
            if parts.problem.variables[k, layout.BLOCK] == layout.SCALAR:
                unit = 1.0 if parts.problem.limits[k, layout.IS_ANGLE] else parts.problem.reach
                assert q[at] - parts.q[at] == pytest.approx(0.02 * unit)
                q[at] = parts.q[at]
            else:
                turned = (turn(parts.q[at : at + 4]).inv() * turn(q[at : at + 4])).as_rotvec()
                np.testing.assert_allclose(turned, 0.02 * np.eye(3)[c], atol=1e-9)
                q[at : at + 4] = parts.q[at : at + 4]
            np.testing.assert_array_equal(q, parts.q)


# --- rules of the loops ---------------------------------------------------------------------------------------------


def test_when_a_fall_is_too_slow():
    """Every ``patience`` steps the cost is compared with that of the last comparison; never at the start."""
    parts = Parts(chain(), [sy.PositionGoal("tip", (1, 1, 0))], LM())
    patience, share = int(parts.problem.patience), float(parts.problem.params[layout.PROGRESS])
    assert patience > 1
    assert 0 < share < 1
    assert descent.falls_slowly(parts.problem, 0, 1.0, 0.0) == (False, 1.0)
    assert descent.falls_slowly(parts.problem, 1, 1.0, 1.0) == (False, 1.0)
    for k in (patience, 3 * patience):
        assert descent.falls_slowly(parts.problem, k, 0.99 * share, 1.0) == (False, 0.99 * share)
        assert descent.falls_slowly(parts.problem, k, 1.01 * share, 1.0)[0]
    assert descent.falls_slowly(parts.problem, patience + 1, 0.5, 1.0) == (False, 1.0)


def test_followers_follow_and_no_answer_is_a_number_that_is_none():
    """A coupled joint has its leader's value times the factor plus the offset; what is not finite is told."""
    body = sy.Skeleton(
        [
            sy.Joint("a", None, sy.Kind.HINGE, axis=(0, 0, 1)),
            sy.Joint("b", "a", sy.Kind.HINGE, axis=(0, 0, 1), mimic=sy.Mimic("a", -2.0, 0.5)),
            sy.Joint("c", "b", sy.Kind.HINGE, axis=(0, 0, 1)),
        ]
    )
    parts = Parts(body, [sy.RotationGoal("c", np.eye(3))], LM())
    q = np.array([0.3, 9.0, 0.7])
    multistart.set_followers(parts.problem, q)
    np.testing.assert_allclose(q, [0.3, -0.1, 0.7])
    assert multistart.all_finite(q)
    for bad in (math.nan, math.inf, -math.inf):
        for i in range(3):
            broken = q.copy()
            broken[i] = bad
            assert not multistart.all_finite(broken)
    errors = np.zeros(2)
    assert not multistart.meets_goals(parts.problem, parts.work, parts.targets, q, errors)
    assert errors[1] == pytest.approx(0.9)
    assert multistart.meets_goals(parts.problem, parts.work, parts.targets, np.array([0.3, 5.0, -0.2]), errors)
    assert errors[1] == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_a_move_ends_within_the_limits(seed):
    """Long steps along the box end on the limits; steps to a bound reach it, in each of its directions."""
    rng, parts = missed_tree(seed + 10)
    chart.write_bounds(parts.problem, parts.q, parts.work.box)
    table, limits = parts.problem.variables, parts.problem.limits
    for _ in range(20):
        q = parts.moved(rng.normal(size=parts.work.dq.shape) * 3)
        assert beyond_limits(parts.problem, q) < 1e-9
    for k in range(len(table)):
        at, v = table[k, layout.BLOCK_Q], table[k, layout.BLOCK_COLUMN]
        if table[k, layout.BLOCK] == layout.SCALAR and np.isfinite(limits[k, :2]).all():
            for side, bound in ((layout.BOX_LOWER, layout.LOWER), (layout.BOX_UPPER, layout.UPPER)):
                y = np.zeros(len(parts.work.dq))
                y[v] = parts.work.box[v, side]
                assert parts.moved(y)[at] == pytest.approx(limits[k, bound])
        elif table[k, layout.BLOCK] != layout.SCALAR and limits[k, layout.IS_LIMITED]:
            for c, side in ((0, layout.BOX_UPPER), (2, layout.BOX_LOWER), (2, layout.BOX_UPPER)):
                y = np.zeros(len(parts.work.dq))
                y[v + c] = parts.work.box[v + c, side]
                out = variables.block_excess(table, limits, k, parts.moved(y))
                assert abs(out) < 1e-9


def test_what_an_answer_says_of_its_making():
    """An answer that is reached had no last descent; one attempt was made, from the start, in as many steps as told."""
    arm, points = chain(), sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    for solver in (LM(), sy.Fabrik(), sy.Ccd(), sy.FullBody()):
        body, goal = (points, "joint2") if solver.name == "fabrik" else (arm, "tip")
        found = sy.solve(body, sy.PositionGoal(goal, (1.2, 0.9, 0)), solver)
        assert found.reached
        assert found.finish_steps == 0
        assert (found.attempts, found.attempt) == (1, 0)
        assert found.steps > 0
        missed = sy.solve(body, sy.PositionGoal(goal, (5, 0, 0)), solver)
        assert missed.status is sy.Status.UNREACHABLE
        assert missed.finish_steps <= missed.steps
        if solver.name in ("fabrik", "ccd"):
            assert missed.finish_steps == 0
