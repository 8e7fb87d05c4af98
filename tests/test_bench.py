"""Solvers side by side: fair problems, honest rows, a plot that can be drawn, and one JSON object."""

import numpy as np
import pytest

import synovia as sy
from cli_runs import assert_refused, run
from synovia.comparison import compare, make_problems
from synovia.comparison.problems import default_joints
from synovia.errors import InputError, UnknownNameError
from synovia.tracking.trajectory import all_variables


@pytest.fixture(scope="module")
def result():
    problems = make_problems(sy.bundled("arm7"), count=6, frames=20, seed=3)
    return compare(problems, ["lm", "ccd", sy.Fabrik(attempts=1, max_steps=3)])


def test_every_target_is_where_a_pose_within_the_limits_has_it():
    body = sy.bundled("humanoid")
    problems = make_problems(body, count=3, frames=10, seed=5)
    assert [goal.joint for goal in problems.goals] == list(default_joints(body))
    assert len(problems.goals) == 5
    for k in range(3):
        np.testing.assert_allclose(
            problems.targets["left_hand"][k], body.random_pose(5 + k).transform("left_hand"), atol=1e-12
        )


GRIPPER = """<robot name="r"><link name="a"/><link name="hand"/>{tool}
  <link name="left"/><link name="right"/>
  <joint name="turn" type="revolute"><parent link="a"/><child link="hand"/><origin xyz="0 0 1"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="one" type="prismatic"><parent link="hand"/><child link="left"/><origin xyz="0 0.03 0.06"/>
    <axis xyz="0 1 0"/><limit lower="0" upper="0.04" effort="1" velocity="1"/></joint>
  <joint name="two" type="prismatic"><parent link="hand"/><child link="right"/><origin xyz="0 -0.03 0.06"/>
    <axis xyz="0 -1 0"/><limit lower="0" upper="0.04" effort="1" velocity="1"/></joint>
</robot>"""
TOOL = """<link name="tcp"/><joint name="tool" type="fixed"><parent link="hand"/><child link="tcp"/>
  <origin xyz="0 0 0.1"/></joint>"""


@pytest.mark.parametrize(("tool", "named"), [(TOOL, "tool"), ("", "turn")])
def test_a_gripper_on_an_arm_has_one_goal(tmp_path, tool, named):
    (tmp_path / "r.urdf").write_text(GRIPPER.format(tool=tool))
    assert default_joints(sy.load_skeleton(tmp_path / "r.urdf")) == (named,)


def test_joints_of_problems_are_names():
    for joints in (3, "tool"):
        with pytest.raises(InputError, match="joints: expected names of joints"):
            make_problems(sy.bundled("arm7"), joints)


def test_rows_tell_what_happened(result):
    lm, ccd, few = result.rows
    assert lm.reached == 1.0
    assert lm.track_reached == 1.0
    assert lm.statuses == {"REACHED": 6}
    assert lm.count == ccd.count == 6
    assert few.reached < 1.0
    assert sum(few.statuses.values()) == 6
    assert 0.0 < lm.median_us <= lm.p99_us
    problems = result.problems
    q = sy.IK(problems.skeleton, problems.goals, "lm").track(problems.of_kind(problems.path)).q
    turns = np.degrees(np.abs(np.diff(q, axis=0)))  # the arm has hinges alone
    assert lm.largest_step_deg == pytest.approx(turns[1:].max(), rel=1e-6)
    assert 0.0 < lm.roughness_deg < lm.largest_step_deg


def test_curves_start_at_the_same_error_and_fall(result):
    lm, ccd, _ = result.rows
    np.testing.assert_allclose(lm.curve[0], ccd.curve[0], rtol=1e-9)  # by two entries: not to the last bit
    assert np.median(lm.curve[-1]) < 1e-4 < np.median(lm.curve[0])
    for k, steps in enumerate(lm.curve_steps[:3]):
        ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"), sy.LevenbergMarquardt(max_steps=1000, attempts=1))
        targets = {"tool": result.problems.targets["tool"][:, :3, 3]}
        np.testing.assert_allclose(ik.errors_after(steps, targets)[:, 0, 0] / ik.reach, lm.curve[k], rtol=1e-12)


def test_a_solver_that_cannot_take_the_goals_is_a_row_with_a_reason():
    problems = make_problems(sy.bundled("arm7"), count=2, frames=5)
    low = sy.comparison.Problems(
        problems.skeleton, (sy.PositionGoal("tool", priority=1),), problems.targets, problems.path
    )
    row = compare(low, ["lm"]).rows[0]
    assert row.refused is not None
    assert "priorit" in row.refused


def test_angles_of_joints():
    body = sy.bundled("humanoid")
    variables = all_variables(body)
    a, b = body.random_pose(1).q[None], body.random_pose(2).q[None]
    np.testing.assert_allclose(variables.angles(variables.difference(a, a)), 0.0, atol=1e-7)
    there, back = (variables.angles(variables.difference(*ends)) for ends in ((a, b), (b, a)))
    assert there.max() > 0.1
    np.testing.assert_allclose(there, back, atol=1e-12)


def test_a_joint_that_goes_to_and_fro_is_rough(monkeypatch):
    """Each step of one degree has the same size, but the other direction."""
    problems = make_problems(sy.bundled("arm7"), count=1, frames=11)
    real = sy.IK.track

    def shaken(ik, targets):
        answer = real(ik, targets)
        answer._rows[:, ik.problem.places] = np.radians(np.arange(11) % 2)[:, None]
        return answer

    monkeypatch.setattr(sy.IK, "track", shaken)
    row = compare(problems, ["lm"]).rows[0]
    assert row.largest_step_deg == pytest.approx(1.0)
    assert row.roughness_deg == pytest.approx(2.0)


def test_bad_input():
    with pytest.raises(InputError, match="count is out of range"):
        make_problems(sy.bundled("arm7"), count=0)
    with pytest.raises(InputError, match=r"frames is out of range.*whole number"):
        make_problems(sy.bundled("arm7"), frames=5.5)
    with pytest.raises(InputError, match="budget: expected seconds above 0"):
        compare(make_problems(sy.bundled("arm7"), count=1, frames=3), ["lm"], budget=float("nan"))
    with pytest.raises(UnknownNameError, match="Did you mean"):
        make_problems(sy.bundled("arm7"), ["tol"])


def test_command_line(tmp_path):
    plot = tmp_path / "curve.png"
    ran = run("bench", "arm7", "--problems", 3, "--solver", "lm", "--solver", "ccd", "--plot", plot, "--json")
    assert (ran.code, ran.data["schema"]) == (0, "synovia.bench/1")
    assert [row["solver"] for row in ran.data["solvers"]] == ["lm", "ccd"]
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert run("bench", "arm7", "--problems", 3, "--solver", "lm", "--plot", plot).code == 3
    ran = run("bench", "arm7", "--problems", 3, "--solver", "lm")
    assert "from rest" in ran.out
    assert run("bench", "arm7", "--solver", "no").code == 2


def test_settings_of_one_solver_run_apart():
    """Each row tells its own settings' answers, and says which they are."""
    problems = make_problems(sy.bundled("arm7"), count=4, frames=5)
    few, many = compare(problems, [sy.Fabrik(max_steps=1, attempts=1), sy.Fabrik()]).rows
    assert (few.solver, many.solver) == ("fabrik (max_steps=1, attempts=1)", "fabrik")
    assert few.steps == 1
    assert few.reached < many.reached


def test_a_plot_that_cannot_be_written_is_told_before_the_work(tmp_path):
    for name in ("a.txt", "nowhere/a.png"):
        answer = run("bench", "arm7", "--solver", "lm", "--plot", str(tmp_path / name))
        assert (answer.code, answer.out) == (3, "")


def test_ticks_of_a_servo_are_timed(monkeypatch):
    monkeypatch.setattr("synovia.comparison.ticks._WARM", 5)  # nothing here hangs on how long they take
    ran = run("bench", "servo", "--ticks", 100, "--json")
    assert (ran.code, ran.data["schema"]) == (0, "synovia.bench-servo/2")
    assert [one["body"] for one in ran.data["bodies"]] == ["arm7", "humanoid"]
    for one in ran.data["bodies"]:
        assert one["ticks"] == sum(one["histogram"]["counts"]) == 100
        for loop in (one["servo"], one["plain_loop"]):
            assert 0.0 < loop["median_us"] <= loop["p99_us"] <= loop["p99_9_us"] <= loop["longest_us"]
            assert loop["largest_velocity"] <= 1.0 + 1e-9
        assert one["servo"]["largest_acceleration"] <= 1.0 + 1e-6 < one["plain_loop"]["largest_acceleration"]
        assert (one["servo"]["largest_slip"] is None) == (one["body"] == "arm7")
    ran = run("bench", "servo", "--ticks", 100)
    assert ran.code == 0
    assert "humanoid: two feet, then two hands; 100 ticks" in ran.out
    assert "median" in ran.out
    assert "plain loop" in ran.out


@pytest.mark.parametrize(
    "more",
    [("--starts", "none.npz"), ("--solver", "lm"), ("--pose",), ("--plot", "a.png"), ("--seed", 3), ("--force",)],
)
def test_the_servo_takes_no_options_of_solvers(more):
    assert_refused(run("bench", "servo", *more), "expected a model with this option", more[0], code=2)


def test_solvers_take_no_options_of_the_servo():
    assert_refused(run("bench", "arm7", "--ticks", 500), "expected servo with this option", "--ticks", code=2)


def test_branches_of_named_arms():
    ran = run("bench", "--branches", "--problems", 4, "--seed", 7, "--json")
    assert (ran.code, ran.data["schema"]) == (0, "synovia.bench-branches/1")
    arms = {row["arm"]: row for row in ran.data["arms"]}
    assert {"random chains", "UR5e", "JACO2", "Panda, joint 3 locked", "rail with five hinges"} < set(arms)
    for row in arms.values():
        assert row["refused"] is None
        assert (row["targets"], row["missing"], row["short"]) == (4, 0, 0)
        assert row["branches"] >= 4  # each target is that of a pose
        assert row["error"] < 1e-9
        assert 0.0 < row["median_us"] <= row["p99_us"]


def test_branches_that_are_not_listed_are_missing(monkeypatch):
    """A solver from random starts finds the branches that a list lacks."""
    from synovia.comparison.branches import measure_branches
    from synovia.solver.six_joints import SixJoints

    whole = next(measure_branches(sy.bundled("arm7"), count=10))
    real = sy.ik.branches.branches_of

    def first_only(*args, **more):
        found = real(*args, **more)
        found._rows = found._rows[:1]
        return found

    monkeypatch.setattr("synovia.facade.branches_of", first_only)
    monkeypatch.setattr(SixJoints, "confirms_branches", lambda *_: True)
    part = next(measure_branches(sy.bundled("arm7"), count=10))
    assert (whole.held, whole.missing, whole.complete) == ("joint7", 0, 10)
    assert (part.branches, part.branches + part.missing) == (10, whole.branches)
    assert part.short > 0


def test_branches_of_a_model():
    ran = run("bench", "arm7", "--branches", "--problems", 3)
    assert ran.code == 0
    assert "seven joints, of which 'joint7' is held" in ran.out
    assert_refused(run("bench", "humanoid", "--branches"), "no lists of branches", "expected hinges and slides", code=3)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "expected a model, servo, or --branches"),
        (("--branches", "--ticks", 300), "expected no --branches with this option"),
        (("arm7", "--branches", "--solver", "lm"), "expected no --branches with this option"),
        (("--branches", "--joint", "tool"), "expected a model with this option"),
        (("servo", "--branches"), "expected a model with this option"),
    ],
)
def test_options_that_do_not_fit_branches(words, expected):
    assert_refused(run("bench", *words), expected, code=2)
