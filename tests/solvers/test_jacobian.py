"""The Jacobian family: each method against its formula in NumPy, and every trap of its sources by name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import synovia as sy
from conftest import UNCOMPILED
from synovia.errors import InputError
from synovia.kernels import layout
from synovia.kernels.compiler.jit import entry
from synovia.kernels.goals.residuals import residual
from synovia.kernels.jacobian.methods import limited_step
from synovia.kernels.jacobian.null_space import null_space_step
from synovia.kernels.jacobian.secondary import write_gradient
from synovia.kernels.jacobian.shared import open_scratch, write_jacobian
from synovia.kernels.layout import DAMPING, LARGEST_TURN, METHOD
from synovia.kernels.tree import problem as kp
from synovia.kernels.tree.forward import forward

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone

ARM = sy.bundled("arm7")
FAMILY = ("transpose", "pinv", "dls", "sdls", "lm")
FREE_TURN = 1e6  # radians: a clamp that does not clamp
SEEDS = st.integers(0, 2**20)


@entry
def one_step(ints, floats, scratch, targets, q, e, J, held, dq, gradient, z):
    """Write residual, Jacobian, the Jacobian without what is held, a method's step, ∇H and its free motion."""
    problem, work = kp.open_problem(ints, floats), kp.open_work(ints, scratch)
    room = open_scratch(work)
    forward(problem.tree, q, work.frames)
    residual(problem, q, work.frames, targets, work.e)
    H = write_gradient(problem, work, targets, q, room.gradient)
    params = problem.params
    for i in range(J.shape[0]):
        e[i] = work.e[i]
        for j in range(J.shape[1]):
            J[i, j] = work.J[i, j]
    limited_step(problem, work, room, q, np.int64(params[METHOD]), params[DAMPING], params[LARGEST_TURN])
    for j in range(J.shape[1]):
        dq[j] = work.dq[j]
        gradient[j] = room.gradient[j]
        for i in range(J.shape[0]):
            held[i, j] = work.J[i, j]
    null_space_step(problem, work, room, q, 1.0)
    for j in range(J.shape[1]):
        z[j] = room.z[j]
    write_jacobian(problem, work, targets, q)
    return H


class Step:
    """One step of a solver of the family from a pose, with all that it was made from."""

    def __init__(self, skeleton, goals, solver, pose, root="fixed"):
        ik = sy.IK(skeleton, goals, solver, root=root)
        m, n = int(ik.problem.ints[layout.N_RESIDUALS]), int(ik.problem.ints[layout.N_COLUMNS])
        self.e, self.J, self.held = np.zeros(m), np.zeros((m, n)), np.zeros((m, n))
        self.dq, self.gradient, self.z = np.zeros(n), np.zeros(n), np.zeros(n)
        targets = np.ascontiguousarray(ik.problem.writer.own[0][:, :16])
        scratch = np.zeros(ik.problem.scratch_size)
        q = np.array(pose.values if isinstance(pose, sy.Pose) else pose, float)
        self.H = one_step(
            ik.problem.ints,
            ik.problem.floats,
            scratch,
            targets,
            q,
            self.e,
            self.J,
            self.held,
            self.dq,
            self.gradient,
            self.z,
        )


def free(name, **given):
    """Return settings of a method without clamps and without a kernel of its own."""
    return sy.solvers[name](largest_error=None, largest_turn=FREE_TURN, **given)


def reaching(seed, goal=sy.PoseGoal):
    """Return a goal on the arm's tool, met by a random pose, and another random pose; neither at a limit."""
    frame = ARM.random_pose(seed).transform("tool")
    parts = {3: (frame[:3, 3], frame[:3, :3]), 1: (frame[:3, 3],), 2: (frame[:3, :3],)}[goal.pose_parts]
    return goal("tool", *parts), ARM.random_pose(seed + 10**6)


def hinges(count, limit=None, plane=True):
    """Return an arm of hinges with bones of length 1: in a plane, or with axes that alternate."""
    joints = []
    for i in range(count):
        rest = np.eye(4)
        rest[0, 3] = 0.0 if i == 0 else 1.0
        axis = (0.0, 0.0, 1.0) if plane or i % 2 == 0 else (0.0, 1.0, 0.0)
        joints.append(sy.Joint(f"h{i}", None if i == 0 else f"h{i - 1}", sy.Kind.HINGE, rest, axis=axis, limit=limit))
    rest = np.eye(4)
    rest[0, 3] = 1.0
    return sy.Skeleton([*joints, sy.Joint("tip", f"h{count - 1}", rest=rest)])


# --- the Jacobian, two ways ------------------------------------------------------------------------------------------


def both_ways(skeleton, seed, root="fixed"):
    """Check that both forms agree for a goal of each kind on every tip, from a random pose."""
    rng = np.random.default_rng(seed)
    tips = [i for i in range(len(skeleton)) if i not in set(skeleton.parents)][:12]
    goals = []
    for tip in tips:
        offset = np.eye(4)
        offset[:3, :3] = sy.Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
        offset[:3, 3] = 0.1 * skeleton.size * rng.normal(size=3)
        goals.append(sy.PoseGoal(tip, offset=offset, weight=float(rng.uniform(0.5, 2.0))))
    pose = skeleton.random_pose(seed)
    if root == "free":
        first = np.concatenate([rng.normal(size=3), sy.Rotation.from_rotvec(rng.normal(size=3)).as_quat()])
        ik = sy.IK(skeleton, goals, root="free")
        q = ik.skeleton.random_pose(seed).q.copy()
        q[:7] = first
        pose = q
    geometric = Step(skeleton, goals, free("lm", jacobian="geometric"), pose, root).J
    partial = Step(skeleton, goals, free("lm", jacobian="partial"), pose, root).J
    assert np.abs(geometric).max(initial=0.0) > 0.0
    np.testing.assert_allclose(partial, geometric, rtol=0, atol=1e-10)


@pytest.mark.compiled
@pytest.mark.parametrize("root", ["fixed", "free"])
@pytest.mark.parametrize("name", sy.skeletons.bundled_names())
def test_partial_derivatives_and_cross_products_agree_on_bundled_models(name, root):
    """Every entry to 1e-10, away from the rest pose."""
    for seed in range(3):
        both_ways(sy.bundled(name), seed, root)


MODELS = [
    "robot/panda.urdf", "robot/ur5_robot.urdf", "robot/g1_29dof.urdf", "robot/ur5e_nomesh.xml",
    "robot/g1_menagerie_nomesh.xml", "character/greenman.glb", "character/mannequiny.glb", "character/SimpleSkin.gltf",
    "motion/cmu_07_01_walk.bvh", "motion/bvhtoolbox_walk01.bvh", "motion/pymo_8walk.bvh",
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_partial_derivatives_and_cross_products_agree_on_shared_models(shared_data, model):
    """Robots and characters of every format."""
    both_ways(sy.load_skeleton(shared_data / model), 7)


@given(seed=SEEDS, root=st.sampled_from(["fixed", "free"]))
def test_partial_derivatives_and_cross_products_agree_on_slides_and_coupled_joints(seed, root):
    """Slides, a joint that follows another by a ratio, balls: what arms do not have."""
    rng = np.random.default_rng(seed)

    def frame():
        out = np.eye(4)
        out[:3, :3] = sy.Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
        out[:3, 3] = rng.normal(size=3)
        return out

    kinds = [sy.Kind.HINGE, sy.Kind.SLIDE, sy.Kind.BALL, sy.Kind.HINGE, sy.Kind.BALL]
    joints = [
        sy.Joint(f"j{i}", None if i == 0 else f"j{i - 1}", kind, frame(), axis=rng.normal(size=3),
                 limit=sy.Interval(-1, 1) if kind is sy.Kind.SLIDE else None,
                 mimic=sy.Mimic("j0", float(rng.normal()), 0.3) if i == 3 else None)
        for i, kind in enumerate(kinds)
    ]  # fmt: skip
    both_ways(sy.Skeleton([*joints, sy.Joint("tip", "j4", rest=frame())]), seed, root)


def test_rows_of_a_goal_are_zero_in_the_columns_of_joints_that_do_not_carry_it():
    """Each arm in its own columns, the spine in both."""
    body = sy.bundled("humanoid")
    goals = [sy.PositionGoal("left_hand", (0, 0, 0)), sy.PositionGoal("right_hand", (0, 0, 0))]
    J = Step(body, goals, free("lm"), body.random_pose(2)).J
    left, right = (np.abs(J[rows]).max(axis=0) > 0.0 for rows in (slice(0, 3), slice(3, 6)))
    assert (left & right).any()
    assert (left & ~right).sum() == (right & ~left).sum() > 5


# --- each method against its formula ---------------------------------------------------------------------------------


@given(seed=SEEDS)
def test_pseudo_inverse_of_a_regular_pose_is_that_of_linear_algebra(seed):
    """Three rows and seven columns: JᵀJ is singular, J Jᵀ is not; no damping where none is needed."""
    goal, pose = reaching(seed, sy.PositionGoal)
    step = Step(ARM, goal, free("pinv"), pose)
    assert np.linalg.matrix_rank(step.J.T @ step.J) == 3 < step.J.shape[1]
    inverse = np.linalg.inv(step.J @ step.J.T)
    if 1.0 / np.trace(inverse) > 2e-3 and (step.held == step.J).all():
        np.testing.assert_allclose(step.dq, np.linalg.pinv(step.J) @ step.e, atol=1e-9 * (1 + np.abs(step.dq).max()))
        np.testing.assert_allclose(step.J @ step.dq, step.e, atol=1e-10)


@given(seed=SEEDS)
def test_transpose_takes_the_step_that_leaves_the_least_error(seed):
    """dq is along Jᵀe, and what is left of e is at right angles to J dq."""
    goal, pose = reaching(seed)
    step = Step(ARM, goal, free("transpose"), pose)
    J, e = step.held, step.e
    best = (e @ (J @ J.T @ e)) / ((J @ J.T @ e) @ (J @ J.T @ e))
    np.testing.assert_allclose(step.dq, best * J.T @ e, atol=1e-9 * (1 + np.abs(step.dq).max()))
    assert abs((e - J @ step.dq) @ (J @ step.dq)) < 1e-9 * (e @ e)


@given(seed=SEEDS)
def test_damped_least_squares_is_its_formula(seed):
    """dq = Jᵀ (J Jᵀ + λ²)⁻¹ e."""
    goal, pose = reaching(seed)
    step = Step(ARM, goal, free("dls", damping=0.1), pose)
    J = step.held
    expected = J.T @ np.linalg.solve(J @ J.T + 0.01 * np.eye(6), step.e)
    np.testing.assert_allclose(step.dq, expected, atol=1e-9)


def clamp(v, most):
    """Return v scaled down until no part is larger than this."""
    return v * min(1.0, most / max(np.abs(v).max(), 1e-300))


def selective(J, e, most, blocks):
    """Return the step of Buss & Kim by NumPy's singular value decomposition."""
    U, S, Vt = np.linalg.svd(J, full_matrices=False)
    rho = sum(np.linalg.norm(J[b], axis=0) for b in blocks)
    total = np.zeros(J.shape[1])
    for u, s, v in zip(U.T, S, Vt, strict=True):
        if s > 1e-8:
            N = sum(np.linalg.norm(u[b]) for b in blocks)
            M = (np.abs(v) @ rho) / s
            total += clamp((u @ e) / s * v, min(1.0, N / M) * most)
    return clamp(total, most)


@given(seed=SEEDS)
def test_selective_damping_is_that_of_its_paper(seed):
    """Every singular vector clamped by what it moves, for one end effector and for two."""
    goal, pose = reaching(seed)
    step = Step(ARM, goal, sy.SelectivelyDamped(), pose)
    if (step.held == step.J).all():
        np.testing.assert_allclose(step.dq, selective(step.J, step.e, np.pi / 4, [slice(0, 6)]), atol=1e-8)
    body = sy.bundled("humanoid")
    wanted = body.random_pose(seed)
    goals = [sy.PositionGoal(end, wanted.position(end)) for end in ("left_hand", "head")]
    step = Step(body, goals, sy.SelectivelyDamped(), body.rest_pose())
    if (step.held == step.J).all():
        blocks = [slice(0, 3), slice(3, 6)]
        np.testing.assert_allclose(step.dq, selective(step.J, step.e, np.pi / 4, blocks), atol=1e-8)


def test_both_forms_of_the_jacobian_take_the_same_way():
    """Partial derivatives and cross products: the same first steps, and both arrive. A long way magnifies rounding."""
    for seed in range(20):
        goal, pose = reaching(seed)
        geometric, partial = (
            sy.LevenbergMarquardt(largest_turn=0.9, jacobian=jacobian) for jacobian in ("geometric", "partial")
        )
        begun = [sy.solve(ARM, goal, form.replace(attempts=1, max_steps=2), pose) for form in (geometric, partial)]
        np.testing.assert_allclose(begun[1].pose.q, begun[0].pose.q, atol=1e-9)
        assert np.abs(begun[0].pose.q - pose.q).max() > 1e-2
        assert sy.solve(ARM, goal, geometric, pose).reached
        assert sy.solve(ARM, goal, partial, pose).reached


# --- traps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILY)
def test_a_straight_arm_survives_and_bends_only_as_far_as_it_may(name):
    """J Jᵀ of a straight arm is singular: the step is finite and clamped, the target short of the tip is found."""
    arm = hinges(3)
    straight = Step(arm, sy.PositionGoal("tip", (1.5, 0.0, 0.0)), free(name), arm.rest_pose())
    assert np.isfinite(straight.dq).all()
    assert np.abs(straight.dq).max() < 1e-6  # to first order nothing moves it along its bones
    solution = sy.solve(arm, sy.PositionGoal("tip", (1.5, 0.4, 0.0)), sy.solvers[name](attempts=1), arm.rest_pose())
    assert solution.reached
    almost = Step(
        arm, sy.PositionGoal("tip", (1.5, 0.3, 0.0)), sy.solvers[name](largest_turn=0.2), sy.Pose(arm, [0, 1e-5, 1e-5])
    )
    assert np.abs(almost.dq).max() <= 0.2 * (1 + 1e-12)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("degrees", [90, 179, 180])
def test_orientation_errors_do_not_vanish_at_half_a_turn(name, degrees):
    """The error is the rotation vector: sin-type errors are zero at 180 degrees."""
    chain = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    start = chain.random_pose(4)
    turn = sy.Rotation.from_rotvec(np.radians(degrees) * np.array([2.0, -1.0, 2.0]) / 3.0).as_matrix()
    goal = sy.RotationGoal(2, turn @ start.matrix(2))
    step = Step(chain, goal, free(name), start)
    assert np.linalg.norm(step.e) == pytest.approx(np.radians(degrees), abs=1e-7)
    assert sy.solve(chain, goal, sy.solvers[name](attempts=1), start).reached


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("which", [0, 3, 6])
def test_a_joint_at_its_limit_is_held_and_the_rest_makes_up_for_it(name, which):
    """Clipping alone loses the joint's share; the first and the last joint count too, and each is let go inward."""
    lower, upper = ARM.limits
    seen = 0
    for seed in range(8 if UNCOMPILED else 40):
        palm = sy.PositionGoal("tool", reaching(seed)[0].target[:3, 3], offset=(0.2, 0.1, 0.1))
        q = ARM.random_pose(seed + 10**6).q.copy()
        q[which] = upper[which] if seed % 2 else lower[which]
        step = Step(ARM, palm, free(name), q)
        unheld = Step(hinge_free(), palm, free(name), q)
        ellipse_normal = unheld.dq[which] > 1e-9 if seed % 2 else unheld.dq[which] < -1e-9
        if not ellipse_normal:
            np.testing.assert_array_equal(step.held[:, which], step.J[:, which])
            continue
        seen += 1
        rest = np.delete(step.J, which, axis=1)
        assert step.dq[which] == 0.0
        assert not step.held[:, which].any()
        if name == "pinv" and 1.0 / np.trace(np.linalg.inv(rest @ rest.T)) > 2e-3:
            np.testing.assert_allclose(rest @ np.delete(step.dq, which), step.e, atol=1e-9)
    assert seen > (1 if UNCOMPILED else 5)


def hinge_free():
    """Return the arm without limits."""
    from dataclasses import replace

    joints = [
        replace(j, limit=None, parent=None if p < 0 else ARM.joint_names[p])
        for j, p in zip(ARM.joints, ARM.parents, strict=True)
    ]
    return sy.Skeleton(joints)


@pytest.mark.parametrize("name", FAMILY)
def test_values_stay_within_limits_in_every_step(name):
    """After each number of steps, from a start in a corner of all limits."""
    lower, upper = ARM.limits
    goal, _ = reaching(3)
    for steps in (1, 2, 3, 5, 8):
        q = sy.solve(ARM, goal, sy.solvers[name](attempts=1, max_steps=steps), upper).pose.q
        assert (q >= lower - 1e-9).all()
        assert (q <= upper + 1e-9).all()


CASES = {
    "straight, target along it": (hinges(4), (2.0, 0.0, 0.0), [0.0] * 4, True),
    "straight, target beside it": (hinges(4), (2.0, 0.5, 0.0), [0.0] * 4, True),
    "folded onto itself": (hinges(4), (2.0, 0.5, 0.0), [0.0, np.pi, np.pi, np.pi], True),
    "target at the root": (hinges(4), (0.0, 0.0, 0.0), [0.3, 0.2, 0.1, 0.4], True),
    "target where the tip is": (hinges(4), (4.0, 0.0, 0.0), [0.0] * 4, True),
    "at its limits": (hinges(4, sy.Interval(-1.0, 1.0)), (3.0, 1.0, 0.0), [1.0] * 4, True),
    "off its plane": (hinges(4), (2.0, 0.5, 0.7), [0.1, 0.2, 0.3, 0.4], False),
    "out of reach": (hinges(4, plane=False), (3.0, 4.0, 0.0), [0.1, 0.2, 0.3, 0.4], False),
}


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("case", CASES)
def test_edges(name, case):
    """What is reachable is reached from where it starts, the rest is a miss with a pose; no number is lost."""
    arm, target, start, reachable = CASES[case]
    attempts = 1 if case != "folded onto itself" else 20
    solution = sy.solve(arm, sy.PositionGoal("tip", target), sy.solvers[name](attempts=attempts), start)
    assert np.isfinite(solution.pose.q).all()
    assert solution.reached is reachable
    if case == "off its plane":
        assert solution.errors[0].position == pytest.approx(0.7, abs=1e-4)
    again = sy.solve(arm, sy.PositionGoal("tip", target), sy.solvers[name](attempts=attempts), start)
    np.testing.assert_array_equal(solution.pose.q, again.pose.q)


# --- null space ------------------------------------------------------------------------------------------------------


def stiff(values, stiffness):
    """Return the arm with preferred values and stiffness."""
    from dataclasses import replace

    joints = []
    for j, p in zip(ARM.joints, ARM.parents, strict=True):
        params = {}
        if j.kind is sy.Kind.HINGE:
            params = {"preferred": values[len(joints) % len(values)], "stiffness": stiffness}
        joints.append(replace(j, parent=None if p < 0 else ARM.joint_names[p], **params))
    return sy.Skeleton(joints)


@pytest.mark.parametrize("name", FAMILY)
@given(seed=SEEDS)
def test_the_projector_lets_nothing_leak_into_the_goals(name, seed):
    """J z = 0 whatever the damping of the method, and z is what linear algebra has: (J⁺J - 1) ∇H."""
    goal, pose = reaching(seed, sy.PositionGoal)
    settings = {"damping": 0.3} if name == "dls" else {}
    step = Step(ARM, goal, free(name, null_space=sy.NullSpace(center=1.0), **settings), pose)
    assert np.abs(step.held @ step.z).max() < 1e-12
    expected = (np.linalg.pinv(step.J) @ step.J - np.eye(7)) @ step.gradient
    if (step.held == step.J).all() and np.linalg.cond(step.J) < 1e3:
        held = (np.abs(expected - step.z) > 1e-9).any()
        at_limit = (pose.q <= ARM.limits[0] + 1e-6) | (pose.q >= ARM.limits[1] - 1e-6)
        assert not held or at_limit.any()
        both = np.linalg.solve(step.J @ step.J.T, step.e + step.J @ step.gradient)  # S2's single equation
        np.testing.assert_allclose(
            step.J.T @ both - step.gradient,
            np.linalg.pinv(step.J) @ step.e + expected,
            atol=1e-8 * (1 + np.abs(both).max()),
        )


def test_the_projector_holds_in_a_singular_pose():
    """A straight arm: J has rank 1, and what moves the tip to second order only may be used."""
    arm = hinges(4, sy.Interval(-2.0, 3.0))
    step = Step(
        arm, sy.PositionGoal("tip", (4.0, 0.0, 0.0)), free("lm", null_space=sy.NullSpace(center=1.0)), [0.0] * 4
    )
    assert np.linalg.matrix_rank(step.J) == 1
    assert np.abs(step.J @ step.z).max() < 1e-12
    assert np.abs(step.z).max() > 0.05


@given(seed=SEEDS)
def test_objectives_have_the_gradient_that_differences_have(seed):
    """Middle of the range, margins and manipulability, on hinges and on limited balls."""
    body = sy.bundled("humanoid")
    objectives = sy.NullSpace(center=0.7, margins=0.4, margin=0.6, manipulability=0.3)
    for skeleton, tip in ((ARM, "tool"), (body, "left_hand")):
        pose = skeleton.random_pose(seed)
        solver = free("lm", null_space=objectives)
        step = Step(skeleton, sy.PositionGoal(tip, (0.3, 0.2, 0.1)), solver, pose)
        if skeleton is body:
            continue
        for i in range(7):
            d = 1e-5 * (np.arange(7) == i)
            ahead, behind = (
                Step(skeleton, sy.PositionGoal(tip, (0.3, 0.2, 0.1)), solver, pose.q + s * d).H for s in (1, -1)
            )
            assert step.gradient[i] == pytest.approx((ahead - behind) / 2e-5, abs=1e-4 * (1 + abs(step.gradient[i])))


def test_manipulability_is_the_root_of_the_determinant():
    """H = -log √det(J Jᵀ), by NumPy."""
    for seed in range(5):
        goal, pose = reaching(seed)
        step = Step(ARM, goal, free("lm", null_space=sy.NullSpace(manipulability=1.0)), pose)
        assert pytest.approx(-0.5 * np.linalg.slogdet(step.J @ step.J.T)[1], abs=1e-6) == step.H


def lowest(arm, tip, gradient, start):
    """Return the least objective over the poses near a start that keep the tip where it is, by SciPy."""
    there = sy.Pose(arm, start).position(tip)
    found = minimize(
        gradient,
        start,
        method="SLSQP",
        bounds=list(zip(*arm.limits, strict=True)),
        constraints={"type": "eq", "fun": lambda q: sy.Pose(arm, q).position(tip) - there},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return found.fun if found.success else np.inf


@pytest.mark.compiled
@pytest.mark.parametrize("name", FAMILY)
def test_once_reached_the_posture_is_the_best_that_the_goal_allows(name):
    """Preferred angles with stiffness: as low as SciPy's constrained descent gets from there, the goal still met."""
    values = [0.3, -0.4, 0.5, -1.2, 0.2, 0.9, -0.6]
    arm = stiff(values, 0.5)
    wanted = np.array([arm.joints[i].preferred for i in range(len(arm)) if arm.joints[i].kind is sy.Kind.HINGE])
    H = lambda q: 0.5 * ((q - wanted) ** 2).sum()  # noqa: E731
    for seed in range(4):
        goal, pose = reaching(seed, sy.PositionGoal)
        plain = sy.solve(arm, goal, sy.solvers[name](), pose)
        liked = sy.solve(arm, goal, sy.solvers[name](null_space=sy.NullSpace()), plain.pose)
        assert liked.reached
        assert H(liked.pose.q) < H(plain.pose.q)
        assert H(liked.pose.q) < 1.01 * lowest(arm, "tool", H, liked.pose.q) + 1e-4
        assert liked.errors[0].position <= 1e-4 * sy.IK(arm, goal).reach


@pytest.mark.parametrize("name", ["lm", "pinv"])
def test_rest_goals_are_met_as_far_as_the_other_goals_allow(name):
    """Reference poses of hinges and of balls, by weight, without a word about null spaces."""
    goal, pose = reaching(5, sy.PositionGoal)
    reference = ARM.random_pose(77)
    H = lambda q: ((q - reference.q) ** 2).sum()  # noqa: E731
    plain = sy.solve(ARM, goal, sy.solvers[name](), pose)
    rested = sy.solve(ARM, [goal, sy.RestGoal(reference)], sy.solvers[name](), plain.pose)
    assert rested.reached
    assert H(rested.pose.q) < 1.01 * lowest(ARM, "tool", H, rested.pose.q) + 1e-4
    chain = sy.Skeleton.chain(np.cumsum(np.random.default_rng(5).normal(size=(6, 3)), axis=0))
    wanted = chain.random_pose(3)
    there = sy.PositionGoal("joint5", wanted.position("joint5"))
    start = sy.solve(chain, there, sy.solvers[name](), chain.random_pose(4)).pose
    near = sy.solve(chain, [there, sy.RestGoal(wanted)], sy.solvers[name](max_steps=200), start)
    assert near.reached
    np.testing.assert_allclose(near.pose.positions, wanted.positions, atol=0.02 * sy.IK(chain, there).reach)


def test_margins_give_way_to_goals_and_limits_stay_hard():
    """Range by redundancy is soft: out of the margins where the goal allows it, into them where it does not."""
    arm = hinges(4, sy.Interval(-2.0, 2.0))
    shy = sy.LevenbergMarquardt(null_space=sy.NullSpace(margins=1.0, margin=0.5))
    H = lambda q: (np.maximum(0.0, np.abs(q) / 2.0 - 0.5) ** 2).sum()  # noqa: E731
    for seed in range(5):
        start = arm.random_pose(seed)
        solution = sy.solve(arm, sy.PositionGoal("tip", start.position("tip")), shy, start)
        assert solution.reached
        assert H(solution.pose.q) <= H(start.q)
        assert H(solution.pose.q) < 1.01 * lowest(arm, "tip", H, solution.pose.q) + 1e-3
    corner = sy.Pose(hinges(3, sy.Interval(-2.0, 2.0)), [2.0, 2.0, 2.0])
    hand = sy.PoseGoal("tip", transform=corner.transform("tip"))
    solution = sy.solve(corner.skeleton, hand, shy, [1.7, 1.9, 1.6])
    assert solution.reached
    assert (np.abs(solution.pose.q) <= 2.0 + 1e-9).all()


def test_manipulability_leaves_singular_poses():
    """An arm that may choose does not stay stretched."""
    goal, pose = reaching(11, sy.PositionGoal)
    volume = lambda s: np.prod(np.linalg.svd(Step(ARM, goal, free("lm"), s.pose).J, compute_uv=False))  # noqa: E731
    plain = sy.solve(ARM, goal, "lm", pose)
    better = sy.solve(ARM, goal, sy.LevenbergMarquardt(null_space=sy.NullSpace(manipulability=1.0)), pose)
    assert better.reached
    assert volume(better) > volume(plain)


def test_objectives_follow_a_moving_target_without_jumps():
    """In ``track`` the posture is kept up from frame to frame."""
    arm = stiff([0.3, -0.4, 0.5, -1.2, 0.2, 0.9, -0.6], 1.0)
    start = sy.Pose(arm, [0.6, -0.2, 0.1, -1.6, 0.5, 1.4, 0.0])
    way = start.position("tool") + np.linspace(0.0, 1.0, 40)[:, None] * np.array([-0.2, 0.2, -0.1])
    solver = sy.LevenbergMarquardt(null_space=sy.NullSpace())
    clip = sy.IK(arm, sy.PositionGoal("tool"), solver).track({"tool": way}, start)
    assert clip.reached.all()
    assert not clip.jumps
    assert np.abs(np.diff(clip.q[1:], axis=0)).max() < 0.1


@pytest.mark.parametrize(
    "given",
    [{"center": -1.0}, {"margin": 1.5}, {"posture": float("nan")}, {"manipulability": "much"}, {"posture": 0.0}],
)
def test_objectives_that_mean_nothing_are_refused(given):
    with pytest.raises(InputError, match=r"NullSpace|out of range"):
        sy.NullSpace(**given)


@pytest.mark.parametrize("name", FAMILY)
def test_settings_that_are_no_numbers_are_checked_too(name):
    for setting, value in (("jacobian", "numeric"), ("jacobian", None), ("null_space", 1.0), ("largest_turn", 0.0),
                           ("largest_error", float("inf")), ("largest_turn", "far")):  # fmt: skip
        with pytest.raises(InputError, match=f"{setting} is out of range"):
            sy.solvers[name](**{setting: value})
    assert sy.solvers[name](largest_turn=None, largest_error=None).largest_turn is None


def sliding():
    """Return an arm of hinges and slides in turn."""
    rng = np.random.default_rng(5)
    kinds = [sy.Kind.HINGE, sy.Kind.SLIDE, sy.Kind.HINGE, sy.Kind.HINGE, sy.Kind.SLIDE, sy.Kind.HINGE, sy.Kind.HINGE]
    joints = []
    for i, kind in enumerate(kinds):
        rest = np.eye(4)
        rest[:3, 3] = rng.normal(size=3) * 0.3
        axis = rng.normal(size=3)
        joints.append(sy.Joint(f"j{i}", f"j{i - 1}" if i else None, kind, rest, axis / np.linalg.norm(axis)))
    return sy.Skeleton(joints)


@pytest.mark.parametrize("skeleton", [ARM, sliding()], ids=["hinges", "slides"])
def test_a_step_of_an_arm_follows_the_curve_of_its_goal(skeleton):
    """What one step leaves falls with the cube of the distance, not with the square as along a tangent."""
    tip = len(skeleton) - 1
    rng = np.random.default_rng(3)
    ik = sy.IK(skeleton, sy.PoseGoal(tip), tolerance=(1e-12, 1e-12))
    falls = []
    for seed in range(8):
        there = skeleton.random_pose(seed).q * 0.7
        way = rng.normal(size=skeleton.nq)
        target = {tip: sy.Pose(skeleton, there).transform(tip)[None]}
        near, far = (ik.errors_after(1, target, sy.Pose(skeleton, there + h * way))[0, 0] for h in (0.01, 0.02))
        falls.append(far / near)
    np.testing.assert_allclose(np.median(falls, axis=0), 8.0, rtol=0.15)
