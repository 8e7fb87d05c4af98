"""Secondary objectives in Python: a given gradient as null-space term, and every objective beside goals in Python."""

import numpy as np
import pytest
from scipy.optimize import minimize

import synovia as sy
from synovia.errors import InputError
from synovia.model import Kind

ARM = sy.bundled("arm7")
LIKED = np.array([0.3, -0.4, 0.5, -1.2, 0.2, 0.9, -0.6])


def own(function, **terms):
    """Return settings whose null space has a gradient of the user's."""
    return sy.LevenbergMarquardt(null_space=sy.NullSpace(gradient=function, **terms))


def liking(values=LIKED):
    """Return the gradient of |q - values|² / 2."""
    return lambda pose: pose.q - values


def there(pose, **given):
    """Return a goal that has the tool where a pose has it."""
    return sy.PositionGoal("tool", pose.position("tool"), **given)


def lowest(objective, start, constraints):
    """Return the least objective near a start under constraints that are zero there, by SciPy."""
    found = minimize(
        objective,
        start,
        method="SLSQP",
        bounds=list(zip(*ARM.limits, strict=True)),
        constraints=[{"type": "eq", "fun": c} for c in constraints],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return found.fun if found.success else np.inf


def stay(start):
    """Return the constraint that the tool stays where a start has it."""
    place = sy.Pose(ARM, start).position("tool")
    return lambda q: sy.Pose(ARM, q).position("tool") - place


def test_a_users_gradient_leads_where_the_same_built_in_term_does():
    """The middle of all ranges, by the kernel's own term and by its derivative in Python; beside another term too."""
    middle, half = 0.5 * (ARM.limits[1] + ARM.limits[0]), 0.5 * (ARM.limits[1] - ARM.limits[0])
    goal = there(ARM.random_pose(6))
    for others in ({}, {"manipulability": 0.3}):
        built_in = sy.LevenbergMarquardt(null_space=sy.NullSpace(posture=0.0, center=0.7, **others))
        in_python = own(lambda pose: 1.4 * (pose.q - middle) / half**2, posture=0.0, **others)
        start = sy.solve(ARM, goal, "lm", ARM.random_pose(5)).pose
        one, other = (sy.solve(ARM, goal, solver, start) for solver in (built_in, in_python))
        assert one.reached
        assert other.reached
        np.testing.assert_allclose(other.pose.q, one.pose.q, atol=2e-2)


@pytest.mark.parametrize("name", ["lm", "pinv"])
def test_once_reached_the_users_term_is_as_low_as_the_goal_allows(name):
    """As low as SciPy's constrained descent gets from there, the goal still met, limits kept."""
    H = lambda q: 0.5 * ((q - LIKED) ** 2).sum()  # noqa: E731
    for seed in range(3):
        goal, start = there(ARM.random_pose(seed)), ARM.random_pose(seed + 50)
        plain = sy.solve(ARM, goal, "lm", start)
        settings = sy.solvers[name](null_space=sy.NullSpace(gradient=liking()))
        liked = sy.solve(ARM, goal, settings, plain.pose)
        assert liked.reached
        assert H(liked.pose.q) < H(plain.pose.q)
        assert H(liked.pose.q) < 1.01 * lowest(H, liked.pose.q, [stay(liked.pose.q)]) + 1e-4
        assert not sy.IK(ARM, goal).problem.outside(liked.pose)


def test_the_gradient_of_balls_is_by_angular_velocity_in_their_frames():
    """Half the squared turns from a pose that meets the goal lead to that pose."""
    chain = sy.Skeleton.chain(np.cumsum(np.random.default_rng(5).normal(size=(6, 3)), axis=0))
    wanted = chain.random_pose(3)
    goal = sy.PositionGoal("joint5", wanted.position("joint5"))

    def gradient(pose):
        turns = [sy.Rotation.from_quat(w).inv() * sy.Rotation.from_quat(q)
                 for w, q in zip(wanted.q.reshape(-1, 4), pose.q.reshape(-1, 4), strict=True)]  # fmt: skip
        return np.concatenate([turn.as_rotvec() for turn in turns])

    solver = sy.LevenbergMarquardt(null_space=sy.NullSpace(gradient=gradient), max_steps=200)
    near = sy.solve(chain, goal, solver, chain.random_pose(4))
    assert near.reached
    np.testing.assert_allclose(near.pose.positions, wanted.positions, atol=0.02 * sy.IK(chain, goal, solver).reach)


@pytest.mark.parametrize("how", ["rest goal", "preferred values", "own gradient"])
def test_objectives_beside_a_goal_in_python_are_followed(how):
    """An upright tool by a custom goal, and what the two goals leave free by each kind of objective."""
    from dataclasses import replace

    joints = [
        replace(j, parent=None if p < 0 else ARM.joint_names[p], stiffness=float(j.kind is sy.Kind.HINGE))
        for j, p in zip(ARM.joints, ARM.parents, strict=True)
    ]
    rest = iter(LIKED)
    joints = [replace(j, preferred=next(rest)) if j.kind is sy.Kind.HINGE else j for j in joints]
    arm = sy.Skeleton(joints)
    goals = [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.CustomGoal(lambda p: p.matrix("tool")[:2, 2], tolerance=1e-3)]
    solver = sy.LevenbergMarquardt()
    plain = sy.solve(arm, goals, solver)
    if how == "rest goal":
        goals.append(sy.RestGoal(LIKED))
    else:
        terms = {} if how == "preferred values" else {"posture": 0.0, "gradient": liking()}
        solver = sy.LevenbergMarquardt(null_space=sy.NullSpace(**terms))
    liked = sy.solve(arm, goals, solver, plain.pose)
    H = lambda q: ((q - LIKED) ** 2).sum()  # noqa: E731
    upright = sy.Pose(ARM, liked.pose.q).matrix("tool")[:2, 2]
    best = lowest(H, liked.pose.q, [stay(liked.pose.q), lambda q: sy.Pose(ARM, q).matrix("tool")[:2, 2] - upright])
    assert plain.reached
    assert liked.reached
    assert H(liked.pose.q) < H(plain.pose.q)
    assert H(liked.pose.q) < 1.02 * best + 1e-3


def test_a_track_with_a_users_gradient_does_not_jump_and_a_batch_is_its_singles():
    """Frame by frame near the one before; the same bits one by one."""
    ik = sy.IK(ARM, sy.PositionGoal("tool"), own(liking()))
    way = np.linspace((0.4, 0.1, 0.5), (0.45, -0.05, 0.45), 8)
    clip = ik.track({"tool": way})
    assert clip.reached.all()
    assert not clip.jumps
    assert np.abs(np.diff(clip.q[1:], axis=0)).max() < 0.15
    many = ik.solve_many({"tool": way}, threads=2)
    for b in range(8):
        np.testing.assert_array_equal(ik.solve({"tool": way[b]}).pose.q, many.q[b])


def test_out_of_reach_is_proved_with_objectives_too():
    """The gradient has no say in what a target out of reach means."""
    goal = sy.PositionGoal("tool", (4.0, 0.0, 0.0))
    solution, without = (sy.solve(ARM, goal, solver) for solver in (own(liking()), "lm"))
    assert solution.status is without.status is sy.Status.UNREACHABLE
    assert solution.errors[0].position == pytest.approx(without.errors[0].position, abs=1e-4)


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (lambda pose: "down", "expected numbers"),
        (lambda pose: np.zeros(6), "shape of gradient"),
        (lambda pose: np.full(7, np.nan), "finite numbers"),
    ],
)
def test_a_gradient_that_goes_wrong_is_an_input_error(gradient, message):
    with pytest.raises(InputError, match=message):
        sy.solve(ARM, there(ARM.random_pose(1)), own(gradient))
    with pytest.raises(InputError, match="gradient is out of range"):
        sy.NullSpace(gradient=3.0)


def railed(scale):
    """Return an arm of three hinges in a plane on a rail, all with stiffness and ranges, in a unit of length."""

    def at(x, y):
        out = np.eye(4)
        out[:2, 3] = scale * x, scale * y
        return out

    bones = [at(0.2, 0), at(0.5, 0), at(0.4, 0.1)]
    rail = sy.Joint(
        "rail", kind=Kind.SLIDE, axis=(1, 0, 0), limit=sy.Interval(-0.9 * scale, 0.6 * scale), preferred=-0.2 * scale,
        stiffness=0.7,
    )  # fmt: skip
    hinges = [
        sy.Joint(
            f"turn{k}", f"turn{k - 1}" if k else "rail", Kind.HINGE, bone, axis=(0, 0, 1), limit=sy.Interval(-2.0, 2.5),
            preferred=0.4 + 0.2 * k, stiffness=0.4,
        )
        for k, bone in enumerate(bones)
    ]  # fmt: skip
    return sy.Skeleton([rail, *hinges, sy.Joint("tip", "turn2", rest=at(0.3, 0), tip=True)])


@pytest.mark.parametrize(
    "objectives", [{"posture": 1.0}, {"posture": 0.0, "center": 1.0}, None], ids=["posture", "center", "rest"]
)
@pytest.mark.parametrize("scale", [1.0, 1000.0, 0.01])
def test_the_objective_of_a_slide_is_least_in_any_unit_of_length(objectives, scale):
    """Beside the tip's goal it is as small as SciPy finds it: a slide counts in reaches, a hinge in radians."""
    body = railed(scale)
    goals: list[object] = [sy.PositionGoal("tip", scale * np.array([0.5, 0.7, 0.0]))]
    liked = np.array([-0.2, 0.4, 0.6, 0.8])
    if objectives is None:
        goals.append(sy.RestGoal(body.rest_pose().with_values({"rail": 0.3 * scale, "turn1": 0.5})))
        liked = np.array([0.3, 0.0, 0.5, 0.0])
    solver = sy.LevenbergMarquardt(null_space=None if objectives is None else sy.NullSpace(**objectives))
    ik = sy.IK(body, goals, solver, tolerance=(1e-6 * scale, 1e-6))
    solution = ik.solve()
    assert solution.reached
    units = np.array([scale, 1.0, 1.0, 1.0])
    low, high = (np.asarray(bound) / units for bound in body.limits)
    reach = ik.reach / scale

    def objective(x):
        if objectives is not None and "center" in objectives:
            return np.sum(((x - 0.5 * (low + high)) / (0.5 * (high - low))) ** 2)
        stiffness = np.array([0.7, 0.4, 0.4, 0.4]) if objectives is not None else np.ones(4)
        return np.sum(stiffness * ((x - liked) / [reach, 1.0, 1.0, 1.0]) ** 2)

    def place(x):
        return (sy.Pose(body, x * units).position("tip")[:2] - goals[0].target[:2, 3]) / scale

    found = minimize(
        objective, solution.q / units, method="SLSQP", bounds=list(zip(low, high, strict=True)),
        constraints=[{"type": "eq", "fun": place}], options={"maxiter": 500, "ftol": 1e-14},
    )  # fmt: skip
    assert found.success
    assert objective(solution.q / units) <= found.fun + 1e-4
