"""Goal kernels: Jacobian and curvature by central differences, errors near half a turn, proofs of reach."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import synovia as sy
from conftest import UNCOMPILED
from synovia.kernels import layout
from synovia.kernels.compiler.jit import entry, perform
from synovia.kernels.goals.curvature import curvature
from synovia.kernels.goals.reach import prove_arm_unreachable, prove_unreachable
from synovia.kernels.goals.residuals import jacobian, measure, residual, to_units
from synovia.kernels.math.linear import factor6, finish6, solve_ldl
from synovia.kernels.tree import problem as kp
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.variables import step
from synovia.model.geometry import rigid
from trees import random_frame, random_tree

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone

SEEDS = st.integers(0, 2**31 - 1)


@entry
def residual_at(ints, floats, scratch, targets, q, dq, e):
    """Write the residual after a step in the solvers' units (q is moved)."""
    problem, work = kp.open_problem(ints, floats), kp.open_work(ints, scratch)
    to_units(problem, dq)
    step(problem.variables, problem.limits, q, dq, 1.0)
    for k in range(problem.followers.shape[0]):
        q[problem.followers[k, 0]] = problem.coupling[k, 0] * q[problem.followers[k, 1]] + problem.coupling[k, 1]
    forward(problem.tree, q, work.frames)
    return residual(problem, q, work.frames, targets, e)


@entry
def derivatives_at(ints, floats, scratch, targets, q, J, H):
    """Write Jacobian and the Hessian of e·e / 2."""
    problem, work = kp.open_problem(ints, floats), kp.open_work(ints, scratch)
    forward(problem.tree, q, work.frames)
    jacobian(problem, q, work.frames, targets, J)
    curvature(problem, q, work.frames, targets, H)


@entry
def proof_and_errors(ints, floats, scratch, targets, q, errors):
    """Return (whether a goal is proved out of reach, largest error in units of its tolerance)."""
    problem, work = kp.open_problem(ints, floats), kp.open_work(ints, scratch)
    forward(problem.tree, q, work.frames)
    worst = measure(problem, q, work.frames, targets, errors)
    return perform(prove_unreachable, problem, work, targets, q)[0], worst


@entry
def arm_proof(ints, floats, scratch, targets, q):
    """Return whether the goal of an arm is proved out of reach."""
    problem, work = kp.open_problem(ints, floats), kp.open_work(ints, scratch)
    return perform(prove_arm_unreachable, problem, work, targets, q)[0]


@entry
def ldl(A, b):
    """Solve in place."""
    solve_ldl(A, b, len(b))


@entry
def six(a, b, x):
    """Solve by the unrolled factorisation."""
    A = (
        a[0, 0], a[1, 0], a[1, 1], a[2, 0], a[2, 1], a[2, 2], a[3, 0], a[3, 1], a[3, 2], a[3, 3], a[4, 0], a[4, 1],
        a[4, 2], a[4, 3], a[4, 4], a[5, 0], a[5, 1], a[5, 2], a[5, 3], a[5, 4], a[5, 5],
    )  # fmt: skip
    y = finish6(factor6(1.0, A), (b[0], b[1], b[2], b[3], b[4], b[5]))
    for i in range(6):
        x[i] = y[i]


def random_goals(rng, skeleton, pose=None):
    """Return goals of each kind with offsets and weights; targets from a pose, or random."""
    goals = []
    for number, cls in enumerate((sy.PoseGoal, sy.PositionGoal, sy.RotationGoal)):
        joint = int(rng.integers(len(skeleton) // 2, len(skeleton)))
        offset = random_frame(rng, 0.3)
        frame = random_frame(rng) if pose is None else pose.transform(joint) @ offset
        kind = {"weight": float(rng.uniform(0.1, 5)), "offset": offset, "name": f"g{number}"}
        parts = [frame[:3, 3]] * (cls.pose_parts & 1) + [frame[:3, :3]] * (cls.pose_parts >> 1)
        goals.append(cls(joint, *parts, **kind))
    return goals


def packed(ik):
    """Return a problem's arrays, scratch memory and its targets in the kernels' form."""
    return (
        ik.problem.ints,
        ik.problem.floats,
        np.zeros(ik.problem.scratch_size),
        np.ascontiguousarray(ik.problem.writer.own[0][:, :16]),
    )


def sizes(ik):
    """Return (residuals, columns)."""
    return int(ik.problem.ints[layout.N_RESIDUALS]), int(ik.problem.ints[layout.N_COLUMNS])


@pytest.mark.parametrize("free", [False, True], ids=["fixed root", "free root"])
@given(seed=SEEDS)
def test_jacobian_and_curvature_are_the_derivatives_of_the_residual(free, seed):
    """Columns against central differences of e: position rows, gradient and Hessian of the whole cost."""
    rng = np.random.default_rng(seed)
    skeleton = random_tree(rng, free=free, bounded=False)  # a step is not clamped
    ik = sy.IK(skeleton, random_goals(rng, skeleton), root="free" if free else "fixed")
    ints, floats, scratch, targets = packed(ik)
    m, n = sizes(ik)
    if n == 0:
        return
    q = ik.skeleton.random_pose(seed % 1000).q.copy()
    if free:
        q[:3] = rng.normal(size=3)
        q[3:7] = sy.Rotation.from_rotvec(rng.normal(size=3)).as_quat()

    def at(dq):
        e = np.zeros(m)
        residual_at(ints, floats, scratch, targets, q.copy(), dq.copy(), e)
        return e

    J, H = np.zeros((m, n)), np.zeros((n, n))
    derivatives_at(ints, floats, scratch, targets, q, J, H)
    e = at(np.zeros(n))
    steps = 1e-5 * np.eye(n)
    differences = np.array([(at(d) - at(-d)) / 2e-5 for d in steps]).T
    position_rows = [0, 1, 2, 6, 7, 8]
    np.testing.assert_allclose(-differences[position_rows], J[position_rows], atol=1e-7 * (1 + np.abs(J).max()))
    gradient = np.array([(at(d) @ at(d) - at(-d) @ at(-d)) / 4e-5 for d in steps])
    np.testing.assert_allclose(gradient, -J.T @ e, atol=1e-6 * (1 + np.abs(gradient).max()))
    if UNCOMPILED:
        return
    h = 1e-3 * np.eye(n)
    whole = np.zeros((n, n))
    half = lambda d: 0.5 * at(d) @ at(d)  # noqa: E731
    for i in range(n):
        for j in range(n):
            whole[i, j] = (half(h[i] + h[j]) - half(h[i] - h[j]) - half(h[j] - h[i]) + half(-h[i] - h[j])) / 4e-6
    turned = [np.linalg.norm(e[k : k + 3]) for k in (3, 9)]
    weights = [ik.goals[0].weight, ik.goals[2].weight]
    heaviest = max(g.weight for g in ik.goals)
    largest = max(w / math.sqrt(weight / heaviest) for w, weight in zip(turned, weights, strict=True))
    if largest < 2.9:  # beyond, the fourth derivative of the angle spoils the differences
        np.testing.assert_allclose(whole, H + J.T @ J, atol=2e-3 * (1 + np.abs(whole).max()))


@given(axis=st.tuples(*[st.floats(-1, 1)] * 3), short=st.floats(0, 1e-3), seed=st.integers(0, 10**6))
def test_an_error_close_to_half_a_turn_is_never_read_as_small(axis, short, seed):
    """The angle is right to 1e-7 for every axis, up to the exact half turn."""
    axis = np.array(axis)
    if np.linalg.norm(axis) < 1e-2:
        return
    chain = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0)])
    start = chain.random_pose(seed)
    vector = (math.pi - short) * axis / np.linalg.norm(axis)
    wanted = sy.Rotation.from_rotvec(vector).as_matrix() @ start.matrix(1)
    ik = sy.IK(chain, sy.RotationGoal(1, wanted), tolerance=(1e-9, 1e-9))
    errors = np.zeros(2)
    proof, worst = proof_and_errors(*packed(ik), start.values, errors)
    assert proof == 0
    assert errors[1] == pytest.approx(math.pi - short, abs=1e-7)
    assert worst > 1e9
    assert ik.solve(start=start).reached


@pytest.mark.parametrize("free", [False, True], ids=["fixed root", "free root"])
@pytest.mark.parametrize("limits", [False, True], ids=["free", "limited"])
@given(seed=SEEDS)
def test_a_place_that_a_pose_takes_is_never_proved_out_of_reach(limits, free, seed):
    """Targets from forward kinematics of a random pose, seen from another: slides, couplings, held roots, offsets."""
    rng = np.random.default_rng(seed)
    skeleton = random_tree(rng, joints=int(rng.integers(1, 12)), free=free, limits=limits)

    def posed(number):
        q = skeleton.random_pose(number).q.copy()
        if free:
            q[:7] = root
        return sy.Pose(skeleton, q)

    root = np.concatenate([rng.normal(size=3), sy.Rotation.from_rotvec(rng.normal(size=3)).as_quat()])
    goal, here = posed(seed % 2**20), posed(seed % 2**20 + 1)
    goals = random_goals(rng, skeleton, goal)
    ik = sy.IK(skeleton, goals, tolerance=(1e-9, 1e-9))
    errors = np.zeros(2 * len(goals))
    proof, _ = proof_and_errors(*packed(ik), here.values, errors)
    assert proof == 0
    proof, worst = proof_and_errors(*packed(ik), goal.values, errors)
    assert proof == 0
    assert worst < 1e3  # the goal's own pose has no error


@pytest.mark.parametrize(("away", "proved"), [(0.51, True), (0.99, True), (1.01, False), (4.99, False), (5.01, True)])
def test_hole_and_reach_of_a_chain_of_three_one_one(away, proved):
    """Segments 3, 1, 1 leave a ball of radius 1 that cannot be reached."""
    chain = sy.Skeleton.chain([(0, 0, 0), (3, 0, 0), (3, 1, 0), (3, 1, 1)])
    direction = np.array([2.0, -1.0, 2.0]) / 3
    ik = sy.IK(chain, sy.PositionGoal("joint3", away * direction))
    errors = np.zeros(2)
    assert (proof_and_errors(*packed(ik), chain.random_pose(4).values, errors)[0] == 1) is proved
    solution = ik.solve(start=chain.random_pose(4))
    assert (solution.status is sy.Status.UNREACHABLE) is proved
    assert solution.reached is not proved


def test_a_goal_that_nothing_moves_is_proved_at_once():
    """A goal on the fixed root is unreachable by its error alone, or reached."""
    arm = sy.bundled("arm7")
    assert sy.solve(arm, sy.PositionGoal(0, (1, 1, 1))).status is sy.Status.UNREACHABLE
    assert sy.solve(arm, sy.RotationGoal(0, sy.Rotation.from_rotvec((0, 0, 1)))).status is sy.Status.UNREACHABLE
    assert sy.solve(arm, sy.PositionGoal(0, arm.rest_pose().position(0))).reached
    lost = sy.solve(arm, [sy.PositionGoal(0, (1, 1, 1)), sy.PositionGoal("tool", arm.random_pose(1).position("tool"))])
    assert lost.status is sy.Status.UNREACHABLE
    assert lost.missed == (0,)


@given(seed=SEEDS, n=st.integers(1, 12))
def test_solve_ldl_solves(seed, n):
    """A x = b against NumPy, for well and badly conditioned matrices."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n, n)) * 10 ** rng.uniform(-2, 2, n)
    A = B @ B.T + 1e-6 * np.trace(B @ B.T) * np.eye(n)
    b = rng.normal(size=n)
    expected = np.linalg.solve(A, b)
    lower = np.tril(A) + np.triu(np.full((n, n), np.nan), 1)  # the upper triangle is never read
    x = b.copy()
    ldl(lower, x)
    np.testing.assert_allclose(x, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


@given(seed=SEEDS)
def test_solve6_solves(seed):
    """The unrolled factorisation against NumPy, down to the damping of a singular arm."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(6, int(rng.integers(1, 8))))
    A = B @ B.T + 10 ** rng.uniform(-9, 0) * np.eye(6)
    b = rng.normal(size=6)
    x = np.zeros(6)
    six(A, b, x)
    assert np.abs(A @ x - b).max() < 1e-12 * (np.abs(A).max() * np.abs(x).max() + 1) * 10


def test_an_unknown_whose_pivot_vanished_is_dropped():
    """A singular system gives numbers, not NaN."""
    A = np.ones((3, 3))
    b = np.ones(3)
    ldl(A, b)
    assert np.isfinite(b).all()


@pytest.mark.parametrize("kind", ["pose", "position"])
def test_arms_prove_what_trees_prove(kind):
    """The short proof of a serial arm gives the verdict of the general one, at the edge of reach and of a hole too."""
    lift = sy.Skeleton(
        [
            sy.Joint("lift", kind=sy.Kind.SLIDE, axis=np.array([0.0, 0.0, 1.0]), limit=sy.Interval(-0.2, 0.7)),
            sy.Joint("turn", "lift", sy.Kind.HINGE, rest=rigid((0.9, 0.0, 0.0)), axis=np.array([0.0, 1.0, 0.0])),
            sy.Joint("hand", "turn", rest=rigid((0.1, 0.2, 0.0))),
        ]
    )
    hole = sy.Skeleton(
        [
            sy.Joint("a", kind=sy.Kind.HINGE, rest=rigid((0.1, 0.0, 0.3)), axis=np.array([0.0, 1.0, 0.0])),
            sy.Joint("b", "a", sy.Kind.HINGE, rest=rigid((3.0, 0.0, 0.0)), axis=np.array([0.0, 1.0, 0.0])),
            sy.Joint("hand", "b", rest=rigid((1.0, 0.0, 0.0))),
        ]
    )
    rng = np.random.default_rng(3)
    verdicts = []
    for skeleton in (sy.bundled("arm7"), lift, hole):
        tip = skeleton.tips[0]
        for _ in range(100):
            place = rng.normal(size=3) * rng.choice([0.2, 1.0, 3.0])
            turn = sy.Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
            goal = sy.PoseGoal(tip, place, turn) if kind == "pose" else sy.PositionGoal(tip, place)
            ik = sy.IK(skeleton, goal)
            q = skeleton.random_pose(1).values
            general, _ = proof_and_errors(*packed(ik), q, np.zeros(2))
            verdicts.append(general)
            assert arm_proof(*packed(ik), q) == general
    assert 0.1 < np.mean(verdicts) < 0.9
