"""What people are told about a miss is true."""

import re
from itertools import pairwise

import numpy as np
import pytest

import synovia as sy
from synovia.diagnosis.explain import limits_in_the_way
from synovia.ik import Reason, Relief
from synovia.ik.solution import GoalError, length_text
from synovia.model.geometry import as_direction


def test_beyond_reach_says_from_where_and_how_far_it_goes():
    arm = sy.bundled("arm7")
    solution = sy.solve(arm, sy.PositionGoal("tool", (3.0, 0.0, 0.0), offset=(0.0, 0.0, 0.1)))
    assert solution.status is sy.Status.UNREACHABLE
    text = " ".join(solution.explain())
    from_joint = np.linalg.norm(np.array([3.0, 0.0, 0.0]) - arm.rest_pose().position("joint1"))
    assert f"{from_joint:.3g} m from 'joint1'" in text
    points = [arm.rest_pose().position(row) for row in range(arm.index("joint1"), arm.index("tool") + 1)]
    reach = sum(np.linalg.norm(b - a) for a, b in pairwise(points)) + 0.1
    assert f"reaches {reach:.3g} m at most" in text
    assert reach >= np.linalg.norm(solution.targets[0, :3, 3] - points[0]) - solution.errors[0].position


def test_a_slide_adds_its_travel_to_what_is_reached():
    lift = sy.Skeleton(
        [
            sy.Joint("lift", kind=sy.Kind.SLIDE, axis=np.array([0.0, 0.0, 1.0]), limit=sy.Interval(-0.2, 0.7)),
            sy.Joint("arm", "lift", sy.Kind.BALL, rest=np.diag([1.0, 1.0, 1.0, 1.0])),
            sy.Joint("tip", "arm", rest=np.array([[1, 0, 0, 0.5], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])),
        ]
    )
    text = " ".join(sy.solve(lift, sy.PositionGoal("tip", (0.0, 0.0, 9.0))).explain())
    assert "from 'lift', the first joint that moves; the chain from there reaches 1.2 units at most" in text


def test_limits_are_named_only_where_a_missed_goal_hangs_on_them():
    body = sy.bundled("humanoid")
    solution = sy.solve(body, sy.PositionGoal("left_hand", (3.0, 1.0, 0.0)))
    assert "left_lower_leg" in solution.active_limits  # straight, as at rest
    text = " ".join(solution.explain())
    assert "at a limit" in text.lower()
    assert "left_lower_leg" not in text
    knee = Relief("left_lower_leg", GoalError(0.1, 0.0))  # with the foot planted it would be its reason
    at_limits, _ = limits_in_the_way(solution, [Reason(0, (), (knee,), None, None)])
    assert "left_lower_leg" in at_limits


def test_raising_carries_the_explanation():
    solution = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (3.0, 0.0, 0.0)))
    with pytest.raises(sy.errors.UnsolvedError, match="the chain from there reaches"):
        solution.raise_for_status()


def test_only_targets_that_are_out_of_bounds_are_told_as_such():
    body = sy.bundled("humanoid")
    ik = sy.IK(body, [sy.PositionGoal("left_hand", (3.0, 1.0, 0.0)), sy.PositionGoal("right_hand", (-0.3, 1.0, 0.3))])
    text = " ".join(ik.solve().explain())
    assert "target of 'left_hand' is" in text
    assert "target of 'right_hand' is" not in text


def test_a_hole_is_told_as_a_hole():
    chain = sy.Skeleton.chain([(0, 0, 0), (3, 0, 0), (4, 0, 0)])
    text = " ".join(sy.solve(chain, sy.PositionGoal("joint2", (0.0, 1.0, 0.0))).explain())
    assert "is 1 unit from 'joint0'" in text
    assert "comes no nearer than 2 units" in text


@pytest.mark.parametrize("solver", ["two-bone", "segments", "lm"])
def test_a_limb_alone_is_told_from_a_body_that_bends_too(solver):
    """Closed forms hold the spine: the explanation says so, and which solver moves it."""
    goal = sy.PoseGoal("left_hand", (1.0, 1.3, 0.5), np.eye(3))
    first = sy.solve(sy.bundled("humanoid"), goal, solver).explain()[0]
    assert first.startswith("Unreachable: the target of 'left_hand'")
    held = f"The joints above it stay as they are with {solver!r}; the solver 'lm' moves them too." in first
    assert held == (solver != "lm")
    arm = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    assert "stay as they are" not in " ".join(sy.solve(arm, sy.PositionGoal("joint2", (9, 0, 0)), "two-bone").explain())


def test_only_the_missed_part_of_a_pose_is_told():
    arm = sy.bundled("arm7")
    start = arm.rest_pose()
    far = sy.PoseGoal("joint1", start.position("joint1"), sy.Rotation.from_euler("x", 90, degrees=True))
    assert any(line == "Goal 'joint1' is missed by 90 deg." for line in sy.solve(arm, far).explain())


def test_settings_are_told_where_they_hold_back_a_missed_goal():
    position, pole = sy.PositionGoal("left_hand"), sy.PoleGoal("left_lower_arm")
    solver = sy.TwoBone(softening=0.1, twist=0.5)
    assert [reason[:9] for reason in solver.reasons([position])] == ["softening"]
    assert [reason[:5] for reason in solver.reasons([pole])] == ["twist"]
    assert not sy.FullBody(softening=0.1).reasons([sy.RotationGoal("left_hand")])


def test_a_length_that_rounds_to_a_metre_is_a_metre():
    assert [length_text(x, 1.0) for x in (0.9994, 0.9996, 1.0)] == ["999 mm", "1 m", "1 m"]


def test_what_nothing_moves_is_told():
    arm = sy.bundled("arm7")
    line = sy.solve(arm, sy.PositionGoal("base", (1.0, 0.0, 0.0))).explain()[0]
    assert line.startswith("Unreachable: no joint moves 'base'; it is part of the fixed root")


def test_a_proof_names_the_free_joints_that_stay_in_place():
    at = np.eye(4)
    at[0, 3] = 0.5
    body = sy.Skeleton(
        [
            sy.Joint("root", kind=sy.Kind.FREE),
            sy.Joint("hip", "root", sy.Kind.BALL, at),
            sy.Joint("hand", "hip", sy.Kind.FREE, at),
        ]
    )
    solution = sy.solve(body, sy.PositionGoal("hand", (3.0, 0.0, 0.0)))
    assert solution.status is sy.Status.UNREACHABLE
    assert solution.explain()[0] == (
        "Unreachable: the target of 'hand' is 2.5 units from 'hip', the first joint that moves; the chain from there "
        "reaches 0.5 units at most while free joints stay in place ('root', 'hand'); root='free' (--root free) moves "
        "'root'."
    )
    moved = sy.Pose(body, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.2, 0.0, 0.0, 0.0, 0.0, 1.0])
    carried = sy.solve(body, sy.PositionGoal("hand", (3.0, 0.0, 0.0)), start=moved).explain()[0]
    assert "is 1.5 units from 'hip'" in carried
    assert "reaches 1.3 units at most" in carried
    assert sy.solve(body, sy.PositionGoal("hand", (3.0, 0.0, 0.0)), root="free").reached


def test_millimetres_and_centimetres_given_to_metres_are_told():
    """A question at the end of the line; none for what is just far away, nor where lengths are millimetres."""
    arm = sy.bundled("arm7")
    solution = sy.solve(arm, sy.PositionGoal("tool", (400.0, 100.0, 500.0)))
    assert "Did you mean metres" in str(solution)
    assert any("(0.4, 0.1, 0.5)" in line for line in solution.explain())
    for target in ((4.0, 0.0, 0.0), (4e5, 0.0, 0.0)):
        assert "metres" not in str(sy.solve(arm, sy.PositionGoal("tool", target)))
    both = {"left_hand": (30.0, 100.0, 40.0), "right_hand": (-30.0, 100.0, 40.0)}
    told = sy.IK(sy.bundled("humanoid"), [sy.PositionGoal(name) for name in both]).solve(both).explain()
    assert any("can reach (0.3, 1, 0.4), its target in centimetres" in line for line in told)
    chain = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    assert "may be in metres" in str(sy.solve(chain, sy.PositionGoal("joint2", (900.0, 0.0, 0.0))))


def test_goals_and_all_that_holds_them_are_copied_and_pickled():
    import copy
    import pickle

    goal = sy.PoseGoal("tool", position=(0.4, 0.1, 0.5), rotation=np.eye(3), weight=2.0, name="hand")
    ik = sy.IK(sy.bundled("arm7"), goal)
    solution = ik.solve()
    many = ik.solve_many({"hand": np.tile(goal.target, (3, 1, 1))})
    for how in (copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))):
        assert repr(how(goal)) == repr(goal)
        assert np.array_equal(how(goal).target, goal.target)
        assert np.array_equal(how(ik).solve().pose.q, solution.pose.q)
        assert str(how(solution)) == str(solution)
        assert np.array_equal(how(many).q, many.q)


def test_lengths_whose_squares_overflow_are_refused():
    with pytest.raises(sy.InputError, match=r"at most 1e\+15"):
        sy.Skeleton.chain([(0, 0, 0), (1e160, 0, 0)])
    for goal in (
        lambda: sy.CenterOfMassGoal(polygon=[(0, 0, 0), (1e200, 0, 0), (0, 0, 1e200)]),
        lambda: sy.PositionGoal("tool", offset=(1e200, 0, 0)),
        lambda: sy.RelativeGoal("tool", "joint1", other_offset=(0, 1e200, 0)),
        lambda: sy.DistanceGoal("tool", "joint1", minimum=1e200),
    ):
        with pytest.raises(sy.InputError, match=r"at most 1e\+15"):
            goal()


def test_a_direction_has_no_length():
    """However long or short it is written."""
    for length in (1e-200, 1.0, 1e200):
        np.testing.assert_allclose(as_direction((0.0, -3.0 * length, 4.0 * length), "axis"), (0.0, -0.6, 0.8))


def five():
    """Return an arm of five hinges: what many cheap arms are."""
    along, axes = np.eye(4), [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)]
    along[0, 3] = 0.3
    joints = [
        sy.Joint(f"h{i}", f"h{i - 1}" if i else None, sy.Kind.HINGE, along if i else np.eye(4), axis=axis)
        for i, axis in enumerate(axes)
    ]
    return sy.Skeleton([*joints, sy.Joint("tool", "h4", rest=along)])


def test_too_few_joints_for_a_pose_are_told_with_their_number():
    """Five numbers cannot meet the six of a pose; three of them can meet a place."""
    arm = five()
    target = arm.random_pose(3).transform("tool")
    target[:3, :3] = target[:3, :3] @ sy.Rotation.from_euler("y", 40, degrees=True).as_matrix()
    solver = sy.LevenbergMarquardt(attempts=2)
    text = " ".join(sy.solve(arm, sy.PoseGoal("tool", transform=target), solver).explain())
    assert "Only 5 joint values move 'tool', but a pose needs 6" in text
    assert "more attempts" not in text
    assert "A PositionGoal needs only 3" in text
    far = " ".join(sy.solve(arm, sy.PositionGoal("tool", (9, 0, 0)), solver).explain())
    assert "Only" not in far
    target[:3, 3] = 9.0
    pose = sy.PoseGoal("tool", transform=target)
    assert "Only" not in " ".join(sy.solve(sy.bundled("arm7"), pose, solver).explain())


@pytest.mark.parametrize("solver", ["full-body", "lm", "fabrik", "particles"])
def test_a_body_without_a_moving_joint_is_told(solver):
    rigid = sy.Skeleton([sy.Joint("base"), sy.Joint("tip", "base", rest=[[1, 0, 0, 1], [0, 1, 0, 0], *np.eye(4)[2:]])])
    solution = sy.solve(rigid, sy.PositionGoal("tip", (1.0, 0.0, 5.0)), solver)
    assert solution.status is sy.Status.UNREACHABLE
    assert any("no joint moves 'tip'" in line for line in solution.explain())


def test_a_proved_miss_says_why_it_made_fewer_attempts_than_allowed():
    arm = sy.bundled("arm7")
    proved = sy.solve(arm, sy.PositionGoal("tool", (3.0, 0.0, 0.5)), sy.LevenbergMarquardt(attempts=100))
    assert proved.status is sy.Status.UNREACHABLE
    assert proved.attempts < 100
    assert any(
        "No more were made, because the goals are proved to be unreachable." in line for line in proved.explain()
    )
    alone = sy.solve(arm, sy.PositionGoal("tool", (3.0, 0.0, 0.5)), sy.LevenbergMarquardt(attempts=2))
    assert not any("No more were made" in line for line in alone.explain() if alone.attempts >= 2)


def test_a_rest_goal_without_effect_is_refused():
    arm = sy.bundled("arm7")
    with pytest.raises(sy.InputError, match=r"rest goal has no effect: 'tool' cannot move. Name joints that move"):
        sy.IK(arm, [sy.PositionGoal("tool"), sy.RestGoal(joints=["tool"])], "full-body")
    sy.IK(arm, [sy.PositionGoal("tool"), sy.RestGoal(joints=["tool", "joint1"])], "full-body")


def opposed(limits, follows=False):
    """Return two hinges, and two goals that pull their tip to both sides of where it is."""
    along = np.eye(4)
    along[0, 3] = 1.0
    limit = sy.Interval(*limits)
    second = {"mimic": sy.Mimic("a", 0.5)} if follows else {"limit": limit}
    joints = [
        sy.Joint("base"),
        sy.Joint("a", "base", sy.Kind.HINGE, axis=(0, 0, 1), limit=limit),
        sy.Joint("b", "a", sy.Kind.HINGE, along, axis=(0, 0, 1), **second),
        sy.Joint("tip", "b", rest=along),
    ]
    sides = {"left": 0.1, "right": -0.1}
    return sy.Skeleton(joints), [sy.PositionGoal("tip", (1.9, y, 0.0), name=name) for name, y in sides.items()]


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("solver", ["full-body", "lm", "dls", "fabrik", "ccd", "particles"])
def test_more_attempts_are_not_advised_where_limits_leave_one_pose(solver, follows):
    """They would all end in it, whatever the error does there; with room between the limits, they may help."""
    pinned, goals = opposed((0.0, 0.0), follows)
    for wanted in (goals, goals[:1]):
        found = sy.solve(pinned, wanted, solver)
        assert found.status.name in ("STALLED", "LIMITED", "CONFLICT")
        assert not re.search("attempts or|more attempts|[Aa]nother start", " ".join(found.explain()))
        for start in (pinned.random_pose(1), pinned.random_pose(2)):
            np.testing.assert_array_equal(sy.solve(pinned, wanted, solver, start).pose.q, found.pose.q)
    body, goals = opposed((0.0, 1.0), follows)
    freed = sy.solve(body, goals, solver)
    assert freed.status.name == "CONFLICT"
    assert "Try more attempts or other goals" in freed.explain()[0]


def test_a_conflict_where_limits_leave_one_pose_advises_other_goals(monkeypatch):
    """Whatever solver finds it."""
    monkeypatch.setattr(sy.Solution, "status", sy.Status.CONFLICT)
    for limits, advice in (((0.0, 0.0), "Try other goals."), ((0.0, 1.0), "Try more attempts or other goals.")):
        body, goals = opposed(limits)
        assert sy.solve(body, goals, "full-body").explain()[0].endswith(f"near this pose. {advice}")


def test_a_target_just_out_of_reach_is_not_said_to_be_at_the_reach():
    first = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.9, 0.6, 0.5))).explain()[0]
    assert "reaches 1.09 m at most" not in first
    assert "before it" in first


def test_an_answer_with_a_clearance_goal_does_not_say_that_collisions_were_not_checked():
    arm = sy.with_shapes(sy.bundled("arm7"))
    reach = sy.PositionGoal("tool", (0.4, 0.1, 0.5))
    alone, clear = (sy.solve(arm, goals) for goals in ([reach], [reach, sy.ClearanceGoal(0.01)]))
    assert (alone.reached, clear.reached) == (True, True)
    assert "Collisions are checked" in alone.explain()[0]
    assert "Collisions are checked" not in clear.explain()[0]
