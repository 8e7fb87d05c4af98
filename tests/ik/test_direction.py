"""Directions: an axis of a joint points along a world direction, in solvers, files, pictures and pages."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia as sy
from conftest import UNCOMPILED
from probes import Probe, random_q
from synovia.draw.marks import marks_of
from synovia.viewer.editing.first_goals import add_goals
from synovia.viewer.editing.session import Session
from synovia.viewer.page.saving import Files
from trees import random_tree

BODY = sy.bundled("humanoid")
AXIS, WAY = (0.3, -1.0, 2.0), (1.0, 0.5, 0.7)


def unit(v):
    """Return a vector of length one."""
    return np.asarray(v, float) / np.linalg.norm(v)


def between(a, b):
    """Return the rotation vector of the smallest turn from a to b, by SciPy."""
    c = np.cross(unit(a), unit(b))
    return unit(c) * np.arctan2(np.linalg.norm(c), unit(a) @ unit(b))


@settings(max_examples=4 if UNCOMPILED else 20)
@given(seed=st.integers(0, 2**31 - 1), free=st.booleans())
def test_residual_is_the_smallest_turn_and_its_jacobian_the_derivative(seed, free):
    """Residuals by SciPy's rotations, Jacobians by central differences: the gradient of the cost is exact."""
    rng = np.random.default_rng(seed)
    skeleton = random_tree(rng, free=free, bounded=False)
    row = int(rng.integers(len(skeleton)))
    axis, way = rng.normal(size=3), 10.0 ** rng.uniform(-3, 3) * rng.normal(size=3)
    ik = sy.IK(skeleton, sy.DirectionGoal(row, axis, way), root="free" if free else "fixed")
    probe = Probe(ik, random_q(ik.skeleton, rng))
    if probe.columns == 0:
        return
    e = probe.residual()
    turned = sy.Pose(ik.skeleton, probe.q).rotation(ik.problem.rows[0]).apply(axis)
    np.testing.assert_allclose(sy.Rotation.from_rotvec(e).apply(unit(turned)), unit(way), atol=1e-9)
    np.testing.assert_allclose(e, between(turned, way), atol=1e-7)
    J, errors = probe.jacobian()
    np.testing.assert_allclose(errors[0], (0.0, np.linalg.norm(e)), atol=1e-12)
    _, gradient = probe.differences()
    np.testing.assert_allclose(gradient, -J.T @ e, atol=1e-5 * (1 + np.abs(J).max()) * (1 + np.abs(e).max()))


@pytest.mark.parametrize("solver", [name for name, kind in sy.solvers.items() if "aim" in kind.supported_goals])
def test_every_solver_that_aims_points_and_leaves_the_twist_free(solver):
    body = BODY if solver != "aim" else sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0)])
    joint = "head" if solver != "aim" else "joint1"
    ik = sy.IK(body, sy.DirectionGoal(joint, AXIS), solver)
    way = np.add(unit(ik.problem.default_start.rotation(joint).apply(AXIS)), (0.1, 0.2, -0.1))
    solution = ik.solve({joint: 7.0 * way})
    assert solution.reached, solution.explain()
    pointed = solution.pose.rotation(joint).apply(AXIS)
    assert np.linalg.norm(np.cross(unit(pointed), unit(way))) < 2e-3
    assert solution.errors[0].position == 0.0
    assert ik.solve().pose.rotation(joint).approx_equal(ik.problem.default_start.rotation(joint), atol=1e-9)  # it stays


def test_aim_turns_by_the_smallest_turn():
    """A ball goes the way that SciPy says, and where it stands does not matter."""
    body = sy.Skeleton.chain([(3, 0, 0), (3, 1, 0), (3, 2, 0)])
    solution = sy.solve(body, sy.DirectionGoal("joint0", (0, 1, 0), WAY), "aim")
    np.testing.assert_allclose(solution.pose.rotation("joint0").as_rotvec(), between((0, 1, 0), WAY), atol=1e-12)


def test_a_track_follows_directions():
    ways = sy.Rotation.from_rotvec(np.linspace(0, 0.8, 20)[:, None] * (0, 1, 0)).apply((0, 0, 1))
    tracked = sy.IK(BODY, sy.DirectionGoal("head", (0, 0, 1))).track({"head": ways})
    assert tracked.reached.all()


@pytest.mark.parametrize("target", [(0.0, 0.0, 0.0), (0.0, 1e-150, 0.0)])
def test_a_target_without_direction_is_refused(target):
    with pytest.raises(sy.InputError, match="'head': expected a vector"):
        sy.IK(BODY, sy.DirectionGoal("head")).solve({"head": target})
    with pytest.raises(sy.InputError, match="direction: expected a vector"):
        sy.DirectionGoal("head", direction=(0, 0, 0))
    with pytest.raises(sy.errors.UnsupportedError, match="fabrik does not support"):
        sy.IK(BODY, sy.DirectionGoal("head"), "fabrik")


def test_a_miss_is_told_and_drawn():
    solution = sy.solve(BODY, [sy.DirectionGoal("head", (0, 0, 1), (0, 0, -1))], "aim")
    assert not solution.reached
    assert any("'head' points" in line and "away from its direction" in line for line in solution.explain())
    (mark,) = marks_of(solution)
    assert mark.note.endswith("°")
    ends = [np.asarray(path)[1] - np.asarray(path)[0] for path in mark.paths]
    np.testing.assert_allclose([unit(end) for end in ends], [(0, 0, -1), solution.pose.matrix("head")[:, 2]], atol=1e-9)


def test_files_and_the_page_keep_it(tmp_path):
    goals = [sy.DirectionGoal("head", AXIS, WAY, weight=2.0, priority=1), sy.DirectionGoal("left_hand")]
    sy.write_goals(goals, tmp_path / "goals.toml")
    session = Session(BODY)
    add_goals(session.goals, goals)
    for again in (sy.read_goals(tmp_path / "goals.toml", BODY), Files(session.state).goals()):
        np.testing.assert_allclose([goal.offset for goal in again], [goal.offset for goal in goals], atol=1e-12)
        np.testing.assert_allclose(again[0].target, goals[0].target, atol=1e-12)
        assert (again[0].weight, again[0].priority) == (2.0, 1)
    assert "sy.DirectionGoal('head', axis=(" in Files(session.state, "humanoid").python_text()
    editor = session.goals.add("direction", BODY.index("right_hand"))
    np.testing.assert_allclose(editor.values["direction"], BODY.rest_pose().matrix("right_hand")[:, 2])
    session.goals.change(editor.key, values={**editor.values, "direction": (0.0, 2.0, 0.0)})
    np.testing.assert_allclose(Files(session.state).goals()[-1].target[:3, 3], (0, 1, 0))
