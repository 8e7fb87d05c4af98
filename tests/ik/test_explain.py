"""What people are told about a miss is true."""

from itertools import pairwise

import numpy as np
import pytest

import synovia as sy


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
    assert "'lift', the first joint that moves it; from there it reaches 1.2 units at most" in text


def test_limits_are_named_only_where_a_missed_goal_hangs_on_them():
    body = sy.bundled("humanoid")
    solution = sy.solve(body, sy.PositionGoal("left_hand", (3.0, 1.0, 0.0)))
    assert "left_lower_leg" in solution.active_limits  # straight, as at rest
    text = " ".join(solution.explain())
    assert "At a limit" in text
    assert "left_lower_leg" not in text


def test_raising_carries_the_explanation():
    solution = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (3.0, 0.0, 0.0)))
    with pytest.raises(sy.UnsolvedError, match="beyond the reach of its chain"):
        solution.raise_for_status()
