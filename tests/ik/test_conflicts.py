"""The smallest set of goals that cannot be met together: each goal of it is needed, and a proof of it is true."""

from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from synovia.ik.proofs.together import Step
from synovia.results import SharedProof

pytestmark = pytest.mark.compiled


def place(*point):
    """Return the transform of a translation."""
    T = np.eye(4)
    T[:3, 3] = point
    return T


def two_arms():
    """Return a trunk that turns about z, and two arms of two hinges on its sides that reach 0.6."""
    limit = sy.Interval(-1.2, 1.2)
    joints = [sy.Joint("trunk", None, sy.Kind.HINGE, axis=(0, 0, 1), limit=sy.Interval(-2.0, 2.0))]
    for side, y in (("left", 0.4), ("right", -0.4)):
        joints += [
            sy.Joint(f"{side}_a", "trunk", sy.Kind.HINGE, place(0, y, 0), axis=(0, 0, 1), limit=limit),
            sy.Joint(f"{side}_b", f"{side}_a", sy.Kind.HINGE, place(0.3, 0, 0), axis=(0, 0, 1), limit=limit),
            sy.Joint(f"{side}_c", f"{side}_b", sy.Kind.HINGE, place(0.1, 0, 0), axis=(0, 1, 0), limit=limit),
            sy.Joint(side, f"{side}_c", rest=place(0.2, 0, 0)),
        ]
    return sy.Skeleton(joints, meters_per_unit=1.0)


def turned(angle):
    """Return a pose of the arms with a trunk that is turned."""
    return sy.Pose(two_arms(), {"trunk": angle, "left_b": 0.3, "right_b": -0.2, "left_c": 0.2})


@pytest.mark.parametrize("angle", [1.2, 1.7])
def test_hands_that_need_the_trunk_turned_both_ways_exclude_each_other(angle):
    body = two_arms()
    goals = [
        sy.PositionGoal("left", turned(angle).position("left")),
        sy.PositionGoal("right", turned(-angle).position("right")),
        sy.PositionGoal("trunk", (0.0, 0.0, 0.0)),  # always met
    ]
    solution = sy.solve(body, goals, "full-body")
    assert not solution.reached
    conflict = solution.find_conflict()
    assert set(conflict.goals) == {"left", "right"}
    for label, pose in conflict.poses.items():
        other = "right" if label == "left" else "left"
        wanted = solution.targets[int(other == "right"), :3, 3]
        assert np.linalg.norm(pose.position(other) - wanted) <= solution.ik.tolerance[0]
    proof = conflict.proof
    assert isinstance(proof, SharedProof)
    assert proof.check()
    assert conflict.claim == "No pose within the joint limits meets 'left' and 'right' together."
    parts = proof.aims[1].parts
    reachable = parts.parts[0]._replace(target=turned(angle).position("right").copy())
    meets = proof.aims[1]._replace(parts=parts._replace(parts=(reachable,)))
    for aims, steps in (
        ((proof.aims[0], meets), proof.steps),
        (proof.aims, proof.steps[:-1]),
        (proof.aims, (*proof.steps, Step(-1, 0, np.array([-1], np.int32)))),
    ):
        assert not replace(proof, aims=aims, steps=steps).check()


def test_a_goal_that_is_out_of_reach_is_a_conflict_alone():
    goals = [sy.PositionGoal("left", (9.0, 0.0, 0.0)), sy.PositionGoal("right", turned(0.2).position("right"))]
    conflict = sy.solve(two_arms(), goals, "full-body").find_conflict()
    assert conflict.goals == ("left",)
    np.testing.assert_allclose(conflict.poses["left"].position("right"), turned(0.2).position("right"), atol=1e-3)
    assert conflict.proof.check()


def test_goals_that_can_be_met_have_no_conflict():
    pose = turned(0.4)
    goals = [sy.PositionGoal(side, pose.position(side)) for side in ("left", "right")]
    assert sy.solve(two_arms(), goals, "full-body").find_conflict() is None
    stopped = sy.IK(two_arms(), goals, sy.FullBody(attempts=1, max_steps=1)).solve()
    assert stopped.find_conflict() is None


def test_what_no_proof_knows_is_said_to_be_unproved():
    body = two_arms()
    goals = [
        sy.PositionGoal("left", turned(1.2).position("left")),
        sy.DirectionGoal("trunk", (1, 0, 0), (0, -1, 0)),
    ]
    conflict = sy.solve(body, goals, "full-body").find_conflict()
    assert len(conflict.goals) == 2
    assert conflict.proof is None
    assert "it is not proved" in conflict.claim
