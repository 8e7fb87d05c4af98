"""The lines that show why goals are missed: what they bound holds for random poses, and what they promise is solved."""

import numpy as np
import pytest

import synovia as sy
from synovia.draw.causes import causes_of

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def arm():
    return sy.bundled("arm7")


def middle_and_radius(cause):
    """The middle and the radius of a drawn ball."""
    points = np.concatenate(cause.paths)
    middle = 0.5 * (points.max(axis=0) + points.min(axis=0))
    return middle, np.linalg.norm(points - middle, axis=1)


def test_a_target_that_is_too_far_is_outside_two_balls(arm):
    target = np.array([3.0, 0.0, 0.5])
    answer = sy.solve(arm, sy.PositionGoal("tool", target))
    causes = {cause.kind: cause for cause in causes_of(answer, arm.size)}
    assert set(causes) == {"reach", "proof"}
    tips = np.array([arm.random_pose(seed).position("tool") for seed in range(500)])
    middle = answer.pose.position("joint1")
    points = np.concatenate([causes["reach"].at[None], *causes["reach"].paths])
    radius = np.linalg.norm(points - middle, axis=1)
    assert np.ptp(radius) < 1e-9
    far = np.linalg.norm(tips - middle, axis=1)
    assert far.max() <= radius[0] < far.max() + 0.2
    near = np.linalg.norm(points - target, axis=1)
    assert near[0] == pytest.approx(near.min())  # the words are at the nearest point
    middle, radius = middle_and_radius(causes["proof"])
    np.testing.assert_allclose(middle, target)
    assert np.linalg.norm(tips - target, axis=1).min() >= radius[0] > 1.9
    assert np.linalg.norm(answer.pose.position("tool") - target) >= radius[0]


def test_limits_other_goals_and_the_move_that_helps(arm):
    goals = [sy.PositionGoal("tool", (0.05, 0.0, 0.3)), sy.PositionGoal("joint5", (0.0, 0.0, 0.3), priority=1)]
    answer = sy.solve(arm, goals, "full-body")
    causes = {cause.kind: cause for cause in causes_of(answer, arm.size)}
    assert "joint4" in causes["limit"].text
    assert any("joint4" in line and "limit" in line.lower() for line in answer.explain())
    np.testing.assert_allclose(causes["limit"].at, answer.pose.position("joint4"))
    assert causes["goal"].text == "tool holds back joint5"
    ends = causes["goal"].paths[0]
    np.testing.assert_allclose(ends, [answer.pose.position("joint5"), answer.pose.position("tool")], atol=1e-9)
    moved = [goals[0], sy.PositionGoal("joint5", causes["move"].at, priority=1)]
    reason = answer.reasons[0]
    assert sy.solve(arm, moved, "full-body", start=reason.pose, tolerance=(1e-3, 1e-3)).reached


def test_nothing_stands_against_goals_that_are_met(arm):
    assert causes_of(sy.solve(arm, sy.PositionGoal("tool", (0.4, 0.1, 0.5))), arm.size) == []


def test_the_picture_is_in_the_unit_of_the_body(arm):
    small = sy.Skeleton.chain([(0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 2.0, 0.0)])
    answer = sy.solve(small, sy.PositionGoal(small.joint_names[-1], (5.0, 0.0, 0.0)))
    reach = next(cause for cause in causes_of(answer, small.size) if cause.kind == "reach")
    np.testing.assert_allclose(np.linalg.norm(np.concatenate(reach.paths), axis=1), 2.0)
    np.testing.assert_allclose(reach.at, (2.0, 0.0, 0.0), atol=1e-9)
