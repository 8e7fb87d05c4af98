"""The smallest set of goals that cannot be met together: each goal of it is needed, and a proof of it is true."""

import time
from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from synovia.errors import FileError, FormatError
from synovia.ik.interrupts import Watch
from synovia.ik.proofs.decide import exclude_apart
from synovia.ik.proofs.together import Step
from synovia.results import Proof, SharedProof

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
    assert conflict.claim.startswith("No pose within the joint limits meets 'left' and 'right' together. The limit")
    parts = proof.aims[1].parts
    reachable = parts.parts[0]._replace(target=turned(angle).position("right").copy())
    meets = proof.aims[1]._replace(parts=parts._replace(parts=(reachable,)))
    for aims, steps in (
        ((proof.aims[0], meets), proof.steps),
        (proof.aims, proof.steps[:-1]),
        (proof.aims, (*proof.steps, Step(-1, 0, np.array([-1], np.int32)))),
    ):
        assert not replace(proof, aims=aims, steps=steps).check()


def test_a_proof_of_several_goals_is_saved_and_read_and_damage_is_noticed(tmp_path):
    goals = [sy.PositionGoal(side, turned(x).position(side)) for side, x in (("left", 1.2), ("right", -1.2))]
    proof = sy.solve(two_arms(), goals, "full-body").find_conflict().proof
    file = tmp_path / "both.npz"
    proof.save(file)
    with pytest.raises(FileError):
        proof.save(file)
    with pytest.raises(FormatError, match="npz"):
        proof.save(tmp_path / "both.txt")
    read = SharedProof.load(file)
    assert read.claim == proof.claim
    assert read.check()
    with np.load(file) as archive:
        content = dict(archive)
    for name, value in {
        "labels": np.array(["left", "hand"]),
        "numbers": content["numbers"] * 0.9,
        "tokens": content["tokens"][:-1],
        "steps": content["steps"][:-1],
    }.items():
        np.savez(file, **{**content, name: value})
        with pytest.raises(FormatError, match="damaged"):
            SharedProof.load(file)
    with pytest.raises(FormatError):
        Proof.load(file)


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
    clip = sy.IK(two_arms(), goals, sy.FullBody(attempts=1, max_steps=1)).solve()
    assert clip.conflict is None
    stopped = sy.IK(two_arms(), goals, sy.FullBody(attempts=1, max_steps=1)).solve()
    assert stopped.find_conflict() is None


def test_a_position_and_a_direction_exclude_each_other_and_a_stopped_search_says_so_without_proof():
    body = two_arms()
    goals = [
        sy.PositionGoal("left", turned(1.2).position("left")),
        sy.DirectionGoal("trunk", (1, 0, 0), (0, -1, 0)),
    ]
    solution = sy.solve(body, goals, "full-body")
    conflict = solution.find_conflict(deadline=0.0)
    assert conflict.proof is None
    assert "it is not proved" in conflict.claim
    conflict = solution.find_conflict()
    assert len(conflict.goals) == 2
    assert conflict.proof.check()


def narrow():
    """Return an arm of three hinges and a body whose second hinge has narrower limits, and a pose outside of them."""
    body = two_arms().with_limits({"trunk": (-0.3, 0.3)})
    return body, sy.Pose(two_arms(), {"trunk": 0.9, "left_a": 1.1, "left_b": 1.1, "left_c": 0.1})


def outside(skeleton, pose):
    """Return the joints whose values in a pose are outside the limits."""
    lower, upper = skeleton.limits
    out = (pose.q < lower - 1e-9) | (pose.q > upper + 1e-9)
    return {name.split(".")[0] for name, far in zip(skeleton.dof_names, out, strict=True) if far}


def test_the_limits_of_a_conflict_are_each_needed_and_together_enough():
    body, wanted = narrow()
    target = wanted.position("left")
    solution = sy.solve(body, [sy.PositionGoal("left", target)], "full-body")
    conflict = solution.conflict
    assert conflict is solution.conflict
    assert conflict.limits
    assert set(conflict.limit_poses) == set(conflict.limits)
    for joint, pose in conflict.limit_poses.items():
        assert np.linalg.norm(pose.position("left") - target) <= solution.ik.tolerance[0]
        assert outside(body, pose) & set(conflict.limits) == {joint}
    proof = conflict.limits_proof
    assert proof.check()
    for name, low, high in zip((*proof_names(solution, proof),), proof.low, proof.high, strict=True):
        assert name in conflict.limits or high - low > 6.28
    assert proof.near <= conflict.proof.near + 1e-9


def proof_names(solution, proof):
    """Return the names of the hinges of a proof of a goal on the left arm."""
    names = [name for name in solution.pose.skeleton.joint_names if name == "trunk" or name.startswith("left_")]
    return names[: len(proof.low)]


@pytest.mark.parametrize("alone", [False, True])
def test_each_change_that_resolves_a_conflict_does_so_when_it_is_made(alone):
    body, wanted = narrow()
    goals = [sy.PositionGoal("left", wanted.position("left"))]
    if not alone:
        goals.append(sy.PositionGoal("right", turned(-0.2).position("right")))
    solution = sy.solve(body, goals, "full-body")
    kinds = set()
    for change in solution.conflict.relaxations:
        targets = {goal.label: solution.targets[g, :3, 3] for g, goal in enumerate(solution.goals)}
        changed, tolerance = body, None
        if change.kind == "target":
            targets[change.name] = targets[change.name] + change.move
        elif change.kind == "tolerance":
            tolerance = change.length, 1e-3
        else:
            limit = body.joints[body.joint_names.index(change.name)].limit
            limits = limit.lower + min(change.angle, 0.0), limit.upper + max(change.angle, 0.0)
            changed = body.with_limits({change.name: limits})
        names = [goal for goal in targets if goal in solution.conflict.goals]
        ik = sy.IK(changed, [sy.PositionGoal(name) for name in names], sy.FullBody(attempts=40), tolerance=tolerance)
        start = sy.Pose(ik.skeleton, change.pose.q)
        assert ik.solve({name: targets[name] for name in names}, start=start).reached, change
        kinds.add(change.kind)
    assert kinds == {"target", "tolerance", "limit"}


def test_the_first_priority_that_fails_is_named():
    body = two_arms()
    free, far = turned(0.2).position("right"), (3.0, 0.0, 0.0)
    goals = [sy.PositionGoal("right", free), sy.PositionGoal("left", far, priority=1)]
    conflict = sy.solve(body, goals, "full-body").conflict
    assert (conflict.goals, conflict.priority) == (("left",), 1)
    goals = [sy.PositionGoal("left", far), sy.PositionGoal("right", (-3.0, 0.0, 0.0), priority=1)]
    conflict = sy.solve(body, goals, "full-body").conflict
    assert (conflict.goals, conflict.priority) == (("left",), 0)


def test_an_explanation_with_a_proved_conflict_advises_no_further_attempts():
    goals = [
        sy.PositionGoal("left", turned(1.7).position("left")),
        sy.PositionGoal("right", turned(-1.7).position("right")),
    ]
    solution = sy.solve(two_arms(), goals, "full-body")
    assert solution.known_conflict is None
    conflict = solution.conflict
    solution.prove()
    text = " ".join(solution.explain())
    assert solution.status in (sy.Status.CONFLICT, sy.Status.UNREACHABLE)
    assert "attempts or" not in text
    assert "Not decided" not in text
    assert conflict.claim in text
    assert all(change.text(1.0) in text for change in conflict.relaxations)


def test_a_search_that_is_stopped_leaves_out_no_goal():
    goals = [
        sy.PositionGoal("left", turned(1.2).position("left")),
        sy.PositionGoal("right", turned(-1.2).position("right")),
        sy.PositionGoal("trunk", (0.0, 0.0, 0.0)),
    ]
    conflict = sy.solve(two_arms(), goals, "full-body").find_conflict(deadline=0.0)
    assert {"left", "right"} <= set(conflict.goals)


@pytest.mark.parametrize("seed", range(8))
def test_a_pose_excludes_another_point_of_the_body_by_the_joints_between_them(seed):
    arm = sy.bundled("arm7")
    pose, other = arm.random_pose(seed), arm.random_pose(seed + 100)
    goals = [sy.PoseGoal("tool", transform=pose.transform("tool")), sy.PositionGoal("joint5", other.position("joint5"))]
    conflict = sy.solve(arm, goals, "full-body").find_conflict()
    assert set(conflict.goals) == {"tool", "joint5"}
    assert conflict.proof.check()
    moved = conflict.proof.targets + np.array([0.0, 0.0, 2.0 * conflict.proof.near])
    near = np.linalg.norm(pose.rotation("tool").inv().apply(pose.position("joint5") - pose.position("tool")) - moved)
    assert near > conflict.proof.near or not replace(conflict.proof, targets=moved).sealed().check()


@pytest.mark.parametrize("seed", range(12))
def test_goals_that_one_pose_meets_are_not_apart(seed):
    man = sy.bundled("humanoid")
    pose = man.random_pose(seed)
    goals = [
        sy.PoseGoal("left_hand", transform=pose.transform("left_hand")),
        sy.PoseGoal("head", transform=pose.transform("head")),
    ]
    goals += [sy.PositionGoal(name, pose.position(name)) for name in ("right_hand", "left_foot", "spine")]
    early = sy.IK(man, goals, "full-body").solve(deadline=0.0)
    assert not early.reached
    assert exclude_apart(early, Watch()) is None


def test_a_deadline_of_a_search_for_a_conflict_is_kept():
    man = sy.bundled("humanoid")
    pose = man.random_pose(4)
    goals = [sy.PositionGoal(name, pose.position(name)) for name in ("right_hand", "left_foot", "right_foot", "head")]
    goals.append(
        sy.PoseGoal("left_hand", pose.position("left_hand") + np.array([0.0, 0.0, 1.5]), pose.rotation("left_hand"))
    )
    solution = sy.solve(man, goals, "full-body")
    solution.find_conflict()  # compiles
    for deadline in (0.0, 0.2):
        again = sy.solve(man, goals, "full-body")
        begun = time.perf_counter()
        assert again.find_conflict(deadline=deadline) is not None
        assert time.perf_counter() - begun < deadline + 0.5
