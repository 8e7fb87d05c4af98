"""Goals in Python: the answers of built-in goals, honest statuses, errors that say what a function did wrong."""

import re
from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError, UnsupportedError
from synovia.kernels.compiler.jit import entry
from synovia.kernels.goals.residuals import geometric_jacobian
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_general, open_work

ARM = sy.bundled("arm7")
FAMILY = ("transpose", "pinv", "dls", "sdls", "lm")


def at(place, joint="tool", **given):
    """Return a goal like ``PositionGoal``, in Python."""
    return sy.CustomGoal(lambda pose: pose.position(joint) - np.asarray(place), **given)


@pytest.mark.compiled
@pytest.mark.parametrize("name", FAMILY)
def test_a_residual_in_python_leads_where_the_built_in_goal_does(name):
    """Both reach, beside another goal that is built in."""
    wanted = ARM.random_pose(3)
    goals = [at(wanted.position("tool"), name="there"), sy.RotationGoal("tool", wanted.matrix("tool"))]
    solution = sy.solve(ARM, goals, sy.solvers[name](attempts=20), ARM.random_pose(8))
    assert solution.reached
    assert np.linalg.norm(solution.pose.position("tool") - wanted.position("tool")) <= 1e-4
    assert solution.errors[0].position <= 1e-4


@entry
def built_in(ints, floats, q, scratch, targets, J):
    """Write the Jacobian of built-in goals."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    forward(problem.tree, q, work.frames)
    geometric_jacobian(problem, q, work.frames, targets, J)


def test_derivatives_by_differences_are_those_of_the_built_in_jacobian():
    """Hinges, balls, slides, followers, a free root: the same rows as the compiled goal has."""
    from synovia.ik.custom import Part
    from synovia.problem import reduce

    wrist = sy.Joint("wrist", "arm", sy.Kind.HINGE, axis=(0, 1, 0), mimic=sy.Mimic("turn", -0.7, 0.2), rest=shift(0.4))
    mixed = sy.Skeleton(
        [
            sy.Joint("rail", kind=sy.Kind.SLIDE, axis=(1, 0.2, 0), limit=sy.Interval(-0.4, 0.5)),
            sy.Joint("turn", "rail", sy.Kind.HINGE, shift(0.3), axis=(0.1, 0, 1)),
            sy.Joint("arm", "turn", sy.Kind.BALL, shift(0.5)),
            wrist,
            sy.Joint("tip", "wrist", rest=shift(0.3)),
        ]
    )
    for root in ("fixed", "free"):
        goal = at((0, 0, 0), "tip")
        ik = sy.IK(mixed, [sy.PositionGoal("tip", (0, 0, 0)), goal], root=root)
        q = ik.skeleton.random_pose(4).q.copy()
        if root == "free":
            q[:7] = [0.3, -0.2, 0.5, 0.5, 0.1, -0.4, np.sqrt(1 - 0.42)]
        reduced = reduce(ik.skeleton, ik.goals, ik.problem.goal_joints, free_root=root == "free")
        J = np.zeros((6, reduced.columns))
        built_in(ik.problem.ints, ik.problem.floats, q, np.zeros(ik.problem.scratch_size), np.zeros((2, 16)), J)
        part = Part(ik.goals[1], 1, reduced, ik.skeleton)
        np.testing.assert_allclose(part.jacobian(q) / reduced.reach, J[:3], atol=1e-8)
        velocities = part._velocities
        exact = sy.CustomGoal(
            goal.function, lambda pose, q=q, part=part, V=velocities: part.jacobian(q) @ np.linalg.pinv(V)
        )
        given = Part(exact.resolved(ik.skeleton), 1, reduced, ik.skeleton)
        np.testing.assert_allclose(given.jacobian(q), part.jacobian(q), atol=1e-8)


def shift(x):
    """Return a transform along x."""
    out = np.eye(4)
    out[0, 3] = x
    return out


def test_batches_tracks_and_single_solves_agree():
    """The same bits one by one, and a clip that starts each frame where the one before ended."""
    upright = sy.CustomGoal(lambda pose: pose.matrix("tool")[:2, 2], tolerance=1e-3, name="upright")
    ik = sy.IK(ARM, [sy.PositionGoal("tool"), upright], sy.LevenbergMarquardt(attempts=5))
    way = np.linspace((0.4, 0.1, 0.5), (0.5, -0.2, 0.4), 4)
    many = ik.solve_many({"tool": way}, threads=2)
    clip = ik.track({"tool": way})
    assert many.reached.all()
    assert clip.reached.all()
    assert not clip.jumps
    for b in range(4):
        single = ik.solve({"tool": way[b]})
        np.testing.assert_array_equal(single.pose.q, many.q[b])
        assert single.errors == many[b].errors
        assert np.linalg.norm(single.pose.matrix("tool")[:2, 2]) <= 1e-3


def test_a_miss_is_a_miss_and_says_why():
    """Out of reach, at odds with another goal, held by a limit; limits hold whatever the function says."""
    lower, upper = ARM.limits
    far = sy.solve(ARM, at((4.0, 0.1, 0.5), name="far"), sy.LevenbergMarquardt(attempts=2))
    assert far.status in (sy.Status.STALLED, sy.Status.LIMITED, sy.Status.MAX_STEPS)
    assert far.missed == (0,)
    assert "far" in str(far)
    assert any("far" in line for line in far.explain())
    torn = sy.solve(ARM, [at((0.4, 0.2, 0.5)), at((0.4, -0.2, 0.5))], sy.LevenbergMarquardt(attempts=2))
    assert torn.status is sy.Status.CONFLICT
    assert torn.pose.position("tool")[1] == pytest.approx(0.0, abs=1e-3)
    over = sy.CustomGoal(lambda pose: pose["joint2"] - 10.0, name="over")
    held = sy.solve(ARM, over, sy.LevenbergMarquardt(attempts=2))
    assert held.status is sy.Status.LIMITED
    assert (held.pose.q <= upper + 1e-9).all()
    assert (held.pose.q >= lower - 1e-9).all()


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["near", "far", "torn", "limited"])
def test_a_goal_in_python_gets_the_verdict_of_the_built_in_goal(kind):
    """Goals that copy ``PositionGoal``: the same status and error; only that a target is out of reach is not proved."""
    rng = np.random.default_rng(7)
    arm = ARM
    if kind == "limited":
        tight = [
            replace(j, parent=None if p < 0 else ARM.joint_names[p], limit=sy.Interval(-0.25, 0.2)) if j.limit else
            replace(j, parent=None if p < 0 else ARM.joint_names[p])
            for j, p in zip(ARM.joints, ARM.parents, strict=True)
        ]  # fmt: skip
        arm = sy.Skeleton(tight)
    same = 0
    for seed in range(10):
        place = ARM.random_pose(seed).position("tool")
        if kind == "far":
            place = place * (4.0 / np.linalg.norm(place))
        places = [place, place + rng.normal(size=3) * 0.2] if kind == "torn" else [place]
        solver = sy.LevenbergMarquardt(attempts=4)
        one = sy.solve(arm, [sy.PositionGoal("tool", p, name=f"g{k}") for k, p in enumerate(places)], solver)
        other = sy.solve(arm, [at(p, name=f"g{k}") for k, p in enumerate(places)], solver)
        missed = [sum(error.position for error in solution.errors) for solution in (one, other)]
        assert missed[1] <= 1.01 * missed[0] + 1e-3
        assert one.reached == other.reached
        same += one.status is other.status or one.status is sy.Status.UNREACHABLE
    assert same >= 9  # a chain that points at its target is held by a limit or not by the last digits


def test_the_error_is_told_once_and_in_a_unit_of_its_own():
    """It is no length, and it is at no place: not at the centre of mass, which a model without masses has not."""
    solution = sy.solve(ARM, at((4.0, 0.0, 0.0), name="mine"), sy.LevenbergMarquardt(attempts=1))
    assert re.search(r"; mine [\d.]+$", str(solution))
    np.testing.assert_array_equal(solution.frames, [np.eye(4)])


def test_a_function_that_raises_ends_the_solve_with_its_exception():
    """At any call, on any thread, and the problem is as good as new afterwards."""
    calls = []

    def moody(pose):
        calls.append(0)
        if len(calls) == 40:
            raise ZeroDivisionError("enough")
        return pose.position("tool") - np.array([4.0, 0.0, 0.0])

    ik = sy.IK(ARM, [sy.CustomGoal(moody), sy.PositionGoal("tool")], sy.LevenbergMarquardt(attempts=2))
    for run in (ik.solve, lambda: ik.solve_many({"tool": np.zeros((3, 3))}, threads=2)):
        calls.clear()
        with pytest.raises(ZeroDivisionError, match="enough"):
            run()
        assert not ik.solve().reached


@pytest.mark.parametrize(
    ("residual", "message"),
    [
        (lambda pose: "far", "expected numbers"),
        (lambda pose: np.array([1j]), "expected numbers"),
        (lambda pose: [True], "expected numbers"),
        (lambda pose: [], "at least one number"),
        (lambda pose: None, "residual: expected numbers. The function returns None"),
        (lambda pose: np.zeros((2, 2)), "shape of residual"),
        (lambda pose: float("nan"), "finite numbers"),
        (lambda pose: np.zeros(1 if pose.q[0] == 0.0 else 2), "shape of residual"),
    ],
)
def test_a_function_that_goes_wrong_is_an_input_error_that_names_the_goal(residual, message):
    with pytest.raises(InputError, match=message) as error:
        sy.solve(ARM, sy.CustomGoal(residual, name="mine"), start=ARM.random_pose(2))
    assert "mine" in str(error.value)


@pytest.mark.parametrize("solver", ["full-body", "fabrik"])
def test_who_cannot_call_python_refuses(solver):
    """And does not pass the goal over: what is not looked at would be called reached."""
    arm = sy.bundled("arm7")
    height = sy.CustomGoal(lambda pose: [pose.position("tool")[2] - 0.9], name="height")
    with pytest.raises(UnsupportedError, match="'height'"):
        sy.IK(arm, [sy.PositionGoal("tool"), height], solver)
    with pytest.raises(UnsupportedError, match="CustomGoal"):
        sy.IK(arm, Bare("tool"))


def test_what_is_no_goal_is_told():
    arm = sy.bundled("arm7")
    with pytest.raises(InputError, match="got str"):
        sy.IK(arm, "tool")
    with pytest.raises(InputError, match=r"Forgetful.*super"):
        sy.IK(arm, Forgetful())
    ik = sy.IK(arm, sy.PositionGoal("tool"))
    for steps in ("a", None, float("nan"), -1, 2**31, 1.5, True):
        with pytest.raises(InputError, match="steps"):
            ik.errors_after(steps)


class Bare(sy.Goal):
    """A goal that no solver knows."""


class Forgetful(sy.CustomGoal):
    """A goal whose maker forgot what it inherits."""

    def __init__(self):
        """Set nothing up."""


def test_what_cannot_be_a_goal_is_refused():
    for given in ({}, {"residual": 1.0}, {"residual": len, "tolerance": 0.0}, {"residual": len, "jacobian": 3}):
        with pytest.raises(InputError):
            sy.CustomGoal(**given)
    with pytest.raises(UnsupportedError, match="does not support"):
        sy.solve(ARM, at((0.4, 0.1, 0.5)), "ccd")
