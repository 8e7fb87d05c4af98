"""Cyclic coordinate descent: its known answer, and the traps of its originals, each by name."""

import numpy as np
import pytest

import synovia as sy
from synovia.model import Joint, Kind

ONCE = sy.Ccd(attempts=1)


def hinge(limit=None, reach=(1.0, 0.0, 0.0), axis=(0, 0, 1)):
    """Return one hinge with a tip."""
    rest = np.eye(4)
    rest[:3, 3] = reach
    return sy.Skeleton([Joint("hinge", kind=Kind.HINGE, axis=axis, limit=limit), Joint("tip", "hinge", rest=rest)])


def test_known_answer_of_the_five_joint_chain():
    """Turns beyond 90 degrees and corrections on the right side: 6, 3 and 14 sweeps, counted on fresh positions."""
    chain = sy.Skeleton.chain([(0, 0, 0), (40, 15, 15), (60, 15, 15), (80, 15, 15), (100, 15, 15)])
    turns = [
        sy.Rotation.from_euler("YXZ", (yaw, pitch, roll), degrees=True)
        for pitch, yaw, roll in [(0, 0, 0), (10, 0, 0), (0, 40, 0), (0, 0, 20)]  # the last joint turns nothing
    ]
    pose = sy.Pose(chain, np.concatenate([turn.as_quat() for turn in turns]))
    ik = sy.IK(chain, sy.PositionGoal("joint4"), sy.Ccd(smallest_turn=1e-4, attempts=1), tolerance=(1e-2, 1e-3))
    steps = []
    for target in [(50, 60, 30), (20, -40, 10), (-60, 40, 40)]:
        solution = ik.solve({"joint4": target}, pose)
        assert solution.reached
        steps.append(solution.steps)
        pose = solution.pose
    assert steps == [6, 3, 14]


def test_a_sweep_of_a_plain_chain_is_that_of_the_paper():
    """From the tip to the root, the smallest turn that points the tip at the target, written down again."""
    points = np.cumsum(np.random.default_rng(3).normal(size=(7, 3)), axis=0)
    chain = sy.Skeleton.chain(points)
    start, target = chain.random_pose(4), np.array([1.0, -2.0, 0.5])
    at = np.array([start.position(joint) for joint in chain.joint_names])
    turns = [sy.Rotation.from_matrix(start.transform(joint)[:3, :3]) for joint in chain.joint_names[:-1]]
    for i in reversed(range(6)):
        lever, wanted = at[-1] - at[i], target - at[i]
        axis = np.cross(lever, wanted)
        angle = np.arctan2(np.linalg.norm(axis), lever @ wanted)
        turn = sy.Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))
        at[i:] = at[i] + turn.apply(at[i:] - at[i])
        turns[i:] = [turn * below for below in turns[i:]]
    goal = sy.PositionGoal(chain.joint_names[-1])
    found = sy.IK(chain, goal, sy.Ccd(attempts=1, max_steps=1)).solve({goal.joint: target}, start)
    for i, joint in enumerate(chain.joint_names):
        np.testing.assert_allclose(found.pose.position(joint), at[i], atol=1e-12)
        if i < 6:
            np.testing.assert_allclose(found.pose.transform(joint)[:3, :3], turns[i].as_matrix(), atol=1e-12)


@pytest.mark.parametrize("degrees", [60, 91, 150, 179, -120])
def test_turns_beyond_90_degrees_take_one_step(degrees):
    """A single hinge and a single ball point at their target at once."""
    angle = np.radians(degrees)
    target = (np.cos(angle), np.sin(angle), 0.0)
    solution = sy.solve(hinge(), sy.PositionGoal("tip", target), ONCE)
    assert solution.reached
    assert solution.steps == 1
    assert solution.pose["hinge"] == pytest.approx(angle, abs=1e-9)
    solution = sy.solve(sy.Skeleton.chain([(0, 0, 0), (1, 0, 0)]), sy.PositionGoal("joint1", target), ONCE)
    assert solution.reached
    assert solution.steps == 1


@pytest.mark.parametrize("angle", [1e-3, 1e-6, -1e-8])
def test_small_turns_keep_their_digits(angle):
    """An arc cosine would lose half of them."""
    goal, tight = sy.PositionGoal("tip", (np.cos(angle), np.sin(angle), 0.0)), (1e-15, 1e-15)
    assert sy.solve(hinge(), goal, ONCE, tolerance=tight).pose["hinge"] == pytest.approx(angle, rel=1e-7)
    ball = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0)])
    goal = sy.PositionGoal("joint1", goal.target[:3, 3])
    turn = sy.Rotation.from_quat(sy.solve(ball, goal, ONCE, tolerance=tight).pose.q[:4]).as_rotvec()
    np.testing.assert_allclose(turn, (0.0, 0.0, angle), rtol=1e-7, atol=1e-22)


def test_a_ball_whose_tip_or_target_is_in_its_centre_stays():
    """Directions of length zero decide nothing, and nothing is lost for the joints that can turn."""
    start = sy.Rotation.from_rotvec((0.1, 0.2, 0.3)).as_quat()
    for points, target in (([(0, 0, 0), (0, 0, 0)], (1.0, 0.0, 0.0)), ([(0, 0, 0), (1, 0, 0)], (0.0, 0.0, 0.0))):
        chain = sy.Skeleton.chain(points)
        solution = sy.solve(chain, sy.PositionGoal("joint1", target), ONCE, sy.Pose(chain, start))
        assert not solution.reached
        np.testing.assert_allclose(np.abs(solution.pose.q[:4] @ start), 1.0, atol=1e-5)  # but for the nudge
    chain = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (1, 0, 0), (2, 0, 0)])
    assert sy.solve(chain, sy.PositionGoal("joint3", (0.0, 1.2, 0.3)), ONCE).reached


def test_antiparallel_targets_turn_about_any_axis_across_and_always_the_same():
    """Exactly opposite: the cross product says nothing."""
    ball = sy.Skeleton.chain([(0, 0, 0), (0.3, -0.5, 0.8)])
    cases = [(ball, "joint1", (-0.3, 0.5, -0.8)), (hinge(), "tip", (-1.0, 0.0, 0.0))]
    cases += [(sy.Skeleton.chain([(0, 0, 0), way]), "joint1", -way) for way in (*np.eye(3), *-np.eye(3))]
    for skeleton, tip, target in cases:
        for solver in (ONCE, sy.Fabrik(attempts=1)):
            first = sy.solve(skeleton, sy.PositionGoal(tip, target), solver)
            assert first.reached
            np.testing.assert_array_equal(first.pose.q, sy.solve(skeleton, sy.PositionGoal(tip, target), solver).pose.q)


def test_a_hinge_with_its_axis_through_tip_or_target_stays():
    """Projections of length zero decide nothing: the joint is skipped."""
    start = [0.4]
    through_tip = hinge(reach=(0.0, 0.0, 1.0))
    for skeleton, target in ((through_tip, (0.5, 0.5, 0.0)), (hinge(), (0.0, 0.0, 0.7))):
        for solver in (ONCE, sy.Fabrik(attempts=1)):
            solution = sy.solve(skeleton, sy.PositionGoal("tip", target), solver, start)
            assert not solution.reached
            assert solution.pose["hinge"] == pytest.approx(0.4, abs=2e-3)  # but for the nudge off a dead line


def test_a_target_at_a_limit_is_reached_and_one_beyond_stops_there():
    """The nearer end of the range, also when the shorter way to the target leads past the other end."""
    skeleton = hinge(limit=sy.Interval(-0.5, 2.0))
    for solver in (ONCE, sy.Fabrik(attempts=1)):
        at_limit = sy.solve(skeleton, sy.PositionGoal("tip", (np.cos(2.0), np.sin(2.0), 0)), solver, [0.3])
        assert at_limit.reached
        beyond = sy.solve(skeleton, sy.PositionGoal("tip", (np.cos(2.6), np.sin(2.6), 0)), solver, [0.3])
        assert not beyond.reached
        assert beyond.pose["hinge"] == pytest.approx(2.0, abs=1e-6)
        other = sy.solve(skeleton, sy.PositionGoal("tip", (np.cos(-1.2), np.sin(-1.2), 0)), solver, [1.9])
        assert other.pose["hinge"] == pytest.approx(-0.5, abs=1e-6)


def test_a_ball_with_a_limit_goes_to_the_nearest_allowed_direction():
    """One ball in a round cone: the best place for the tip is on the cone's edge, in the plane of the target."""
    limit = sy.SwingTwist.about((0.0, 0.0, 1.0), x=(0.7, 0.7), y=(0.7, 0.7))
    ball = sy.Skeleton.chain([(0, 0, 0), (0, 0, 1)], limits=[limit])
    for solver in (ONCE, sy.Fabrik(attempts=1)):
        solution = sy.solve(ball, sy.PositionGoal("joint1", (0.6, 0.8, 0.0)), solver, ball.random_pose(3))
        best = np.array([0.6 * np.sin(0.7), 0.8 * np.sin(0.7), np.cos(0.7)])
        np.testing.assert_allclose(solution.pose.position("joint1"), best, atol=2e-2)


def test_no_sweep_raises_the_error():
    """Every turn is the best of its joint, so more sweeps are never worse."""
    body = sy.bundled("humanoid")
    goals = [sy.PositionGoal(end) for end in ("left_hand", "right_hand", "head")]
    wanted, start = body.random_pose(8), body.random_pose(9)
    targets = {goal.joint: wanted.position(goal.joint) for goal in goals}
    squares = []
    for sweeps in range(1, 15):
        solution = sy.IK(body, goals, sy.Ccd(max_steps=sweeps, attempts=1)).solve(targets, start)
        squares.append(sum(error.position**2 for error in solution.errors))
    assert (np.diff(squares) <= 1e-12).all()


def stiff(stiffness, preferred=None, kind=Kind.HINGE):
    """Return three hinges (or balls) of one bone each; the middle one is stiff."""
    joints = []
    for i in range(3):
        rest = np.eye(4)
        rest[0, 3] = 1.0 if i else 0.0
        hinge_only = {"axis": (0, 0, 1), "preferred": preferred if i == 1 else None} if kind is Kind.HINGE else {}
        joints.append(
            Joint(f"j{i}", i - 1 if i else None, kind, rest, stiffness=stiffness if i == 1 else 0.0, **hinge_only)
        )
    rest = np.eye(4)
    rest[0, 3] = 1.0
    return sy.Skeleton([*joints, Joint("tip", "j2", rest=rest)])


@pytest.mark.parametrize("kind", [Kind.HINGE, Kind.BALL])
def test_a_stiff_joint_turns_less_and_every_target_stays_in_reach(kind):
    """Stiffness 0 and the factor 0 are the plain method; more of it bends the joint less."""
    free = stiff(0.0, kind=kind)
    target = (1.2, 1.4, 0.0)

    def bend(skeleton, solver=ONCE):
        solution = sy.solve(skeleton, sy.PositionGoal("tip", target), solver)
        assert solution.reached
        turn = solution.pose["j1"]
        return abs(turn) if kind is Kind.HINGE else 2.0 * np.arccos(min(1.0, abs(turn[3]))), solution

    plain, answer = bend(free)
    ignored, same = bend(stiff(5.0, kind=kind), sy.Ccd(attempts=1, stiffness=0.0))
    np.testing.assert_array_equal(same.pose.q, answer.pose.q)
    some, much = bend(stiff(1.0, kind=kind))[0], bend(stiff(50.0, kind=kind))[0]
    assert ignored == plain > some > much > 0.0


def test_turns_towards_the_preferred_value_are_whole_and_beyond_it_resisted():
    """One hinge that prefers 0.5: from 0 to 0.3 in one step; to 0.9 it goes 0.5 and a share of the rest at first."""
    rest = np.eye(4)
    rest[0, 3] = 1.0
    joints = [Joint("h", kind=Kind.HINGE, axis=(0, 0, 1), preferred=0.5, stiffness=3.0), Joint("tip", "h", rest=rest)]
    skeleton = sy.Skeleton(joints)

    def after(angle, start, sweeps):
        goal = sy.PositionGoal("tip", (np.cos(angle), np.sin(angle), 0.0))
        solution = sy.solve(skeleton, goal, sy.Ccd(attempts=1, max_steps=sweeps), [start], tolerance=(1e-9, 1e-3))
        return solution.pose["h"]

    assert after(0.3, 0.0, 1) == pytest.approx(0.3)
    assert after(0.9, 0.0, 1) == pytest.approx(0.5 + 0.4 / 4.0)
    assert after(0.3, 0.9, 1) == pytest.approx(0.5 - 0.2 / 4.0)
    assert after(-0.4, 0.0, 1) == pytest.approx(-0.4 / 4.0)
    assert after(0.9, 0.0, 500) == pytest.approx(0.9, abs=1e-6)


def test_a_very_stiff_joint_is_no_silent_miss():
    """A stiffness that no number of sweeps overcomes ends with its steps spent, not as a pose that cannot be better."""
    rest = np.eye(4)
    rest[0, 3] = 1.0
    joints = [Joint("h", kind=Kind.HINGE, axis=(0, 0, 1), stiffness=1e12), Joint("tip", "h", rest=rest)]
    solution = sy.solve(sy.Skeleton(joints), sy.PositionGoal("tip", (0.0, 1.0, 0.0)), sy.Ccd(attempts=1, max_steps=20))
    assert solution.status is sy.Status.MAX_STEPS


def test_slides_go_where_the_effector_lacks_and_stop_at_their_end():
    """A gantry of two slides; a stiff slide makes the same way in more sweeps."""
    for stiffness in (0.0, 1.0):
        gantry = sy.Skeleton(
            [
                Joint("x", kind=Kind.SLIDE, axis=(1, 0, 0), limit=sy.Interval(-1.0, 1.0), stiffness=stiffness),
                Joint("y", "x", Kind.SLIDE, axis=(0, 1, 0), limit=sy.Interval(-1.0, 1.0)),
                Joint("tip", "y"),
            ]
        )
        solution = sy.solve(gantry, sy.PositionGoal("tip", (0.7, -0.4, 0.0)), ONCE)
        assert solution.reached
        assert (solution.steps == 1) == (stiffness == 0.0)
        beyond = sy.solve(gantry, sy.PositionGoal("tip", (0.7, -1.4, 0.0)), ONCE)
        assert beyond.pose["y"] == pytest.approx(-1.0, abs=1e-9)
        assert beyond.errors[0].position == pytest.approx(0.4, abs=1e-3)


def test_rotation_goals_and_several_end_effectors():
    """A ball turns to a rotation, half a turn included, in one step; two hands of a body meet their places."""
    ball = sy.Skeleton([Joint("b", kind=Kind.BALL)])
    for vector in [(0.3, -0.2, 0.9), (0.0, np.pi, 0.0)]:
        turn = sy.Rotation.from_rotvec(vector)
        solution = sy.solve(ball, sy.RotationGoal("b", turn), ONCE)
        assert solution.reached
    body = sy.bundled("humanoid")
    wanted = body.random_pose(4)
    goals = [sy.PositionGoal(end, wanted.position(end)) for end in ("left_hand", "right_hand")]
    assert sy.solve(body, goals, sy.Ccd()).reached
