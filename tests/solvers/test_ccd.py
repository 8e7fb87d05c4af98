"""Cyclic coordinate descent: its known answer, and the traps of its originals, each by name."""

import numpy as np
import pytest

import synovia as sy
from synovia.skeleton import Joint, Kind

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


def test_antiparallel_targets_turn_about_any_axis_across_and_always_the_same():
    """Exactly opposite: the cross product says nothing."""
    ball = sy.Skeleton.chain([(0, 0, 0), (0.3, -0.5, 0.8)])
    for skeleton, tip, target in ((ball, "joint1", (-0.3, 0.5, -0.8)), (hinge(), "tip", (-1.0, 0.0, 0.0))):
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
