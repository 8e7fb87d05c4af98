"""Straight limbs bend to their sides: knees forward, elbows back, in every solver, in tracks and in other worlds."""

from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from synovia.kernels.compiler import compiled
from synovia.kernels.layout import WINNER

COUNT = 40 if compiled() else 3
DOWN, UP = (40, 80) if compiled() else (3, 6)  # frames of a track
SOLVERS = ["lm", "dls", "pinv", "transpose", "sdls", "full-body", "fabrik", "ccd", "particles", "two-bone"]
SIDES = {"left": 1.0, "right": -1.0}


def at(place):
    frame = np.eye(4)
    frame[:3, 3] = place
    return frame


def straight(turn=None, scale=1.0, hinges=False, named=True, travels=False):
    """Return a body in T-pose whose limbs are exactly straight, and the rotation of its world.

    Without ``turn`` its up axis is y and it faces z.
    """
    R = np.eye(3) if turn is None else turn.as_matrix()
    rows = [("hips", None, (0, 0.96, 0)), ("spine", "hips", (0, 0.1, 0)), ("chest", "spine", (0, 0.16, 0))]
    rows += [("neck", "chest", (0, 0.26, 0)), ("head", "neck", (0, 0.09, 0))]
    for side, x in SIDES.items():
        rows += [
            (f"{side}_upper_leg", "hips", (0.09 * x, -0.03, 0)),
            (f"{side}_lower_leg", f"{side}_upper_leg", (0, -0.43, 0)),
            (f"{side}_foot", f"{side}_lower_leg", (0, -0.43, 0)),
            (f"{side}_toes", f"{side}_foot", (0, -0.06, 0.13)),
            (f"{side}_shoulder", "chest", (0.03 * x, 0.2, 0)),
            (f"{side}_upper_arm", f"{side}_shoulder", (0.14 * x, 0, 0)),
            (f"{side}_lower_arm", f"{side}_upper_arm", (0.28 * x, 0, 0)),
            (f"{side}_hand", f"{side}_lower_arm", (0.27 * x, 0, 0)),
            (f"{side}_tip", f"{side}_hand", (0.18 * x, 0, 0)),
        ]
    joints = []
    for name, parent, place in rows:
        kind, axis = sy.Kind.FREE if parent is None else sy.Kind.BALL, (0.0, 0.0, 1.0)
        if name.endswith(("tip", "toes")):
            kind = sy.Kind.FIXED
        if hinges and name.endswith(("lower_leg", "lower_arm")):
            kind, axis = sy.Kind.HINGE, R[:, 0] if name.endswith("leg") else R[:, 1]
        if travels and kind is sy.Kind.BALL:  # as in a file whose clip has places for every joint
            kind = sy.Kind.FREE
        joints.append(sy.Joint(name, parent, kind, at(scale * R @ np.array(place, float)), axis=axis))
    up, ahead = (axis_name(R[:, k]) for k in (1, 2))
    if not named:
        new = {joint.name: f"bone{k}" for k, joint in enumerate(joints)}
        joints = [replace(joint, name=new[joint.name], parent=new.get(joint.parent)) for joint in joints]
    return sy.Skeleton(joints, up=up, forward=ahead, meters_per_unit=1.0 / scale), R


def axis_name(v):
    k = int(np.argmax(np.abs(v)))
    return ("-" if v[k] < 0 else "") + "xyz"[k]


Z_UP = sy.Rotation.from_euler("x", 90, degrees=True)
BODIES = {
    "y up": straight(),
    "z up": straight(Z_UP),
    "centimetres": straight(sy.Rotation.from_euler("y", 90, degrees=True), scale=100.0),
    "hinges": straight(hinges=True),
    "hinges, z up": straight(Z_UP, hinges=True),
    "free joints": straight(travels=True),
}
bodies = pytest.mark.parametrize("made", BODIES.values(), ids=BODIES)


def bend(body, R, pose, side, leg, least=0.02):
    """Return the part of a limb's bend that is to its side, -1 to 1; None if it is straight or has no side here."""
    trunk = "hips" if leg else "chest"
    parts = ("upper_leg", "lower_leg", "foot") if leg else ("upper_arm", "lower_arm", "hand")
    u, m, e = (pose.position(f"{side}_{part}") for part in parts)
    line = (e - u) / np.linalg.norm(e - u)
    off = (m - u) - ((m - u) @ line) * line
    turned = pose.rotation(trunk).as_matrix() @ body.rest_pose().rotation(trunk).as_matrix().T
    ahead = turned @ R[:, 2]
    ahead = ahead - (ahead @ line) * line
    if np.linalg.norm(off) < least * (np.linalg.norm(m - u) + np.linalg.norm(e - m)) or np.linalg.norm(ahead) < 0.3:
        return None
    return (1.0 if leg else -1.0) * float(off @ ahead) / np.linalg.norm(off) / np.linalg.norm(ahead)


def squat(body, R, rng):
    """Return goals of a squat: feet stay, the hips go down."""
    rest, scale = body.rest_pose(), 1.0 / body.meters_per_unit
    hips = rest.transform("hips").copy()
    hips[:3, 3] += scale * R @ (rng.uniform(-0.05, 0.05), -rng.uniform(0.03, 0.5), rng.uniform(-0.05, 0.05))
    return [sy.PoseGoal("left_foot"), sy.PoseGoal("right_foot"), sy.PoseGoal("hips", transform=hips)]


def foot(body, R, rng, side):
    scale = 1.0 / body.meters_per_unit
    way = rng.uniform(-0.1, 0.1), rng.uniform(0.02, 0.5), rng.uniform(-0.1, 0.2)
    place = body.rest_pose().position(f"{side}_foot") + scale * R @ way
    return sy.PositionGoal(f"{side}_foot", place, ancestors=2)


def hand(body, R, rng, side):
    scale = 1.0 / body.meters_per_unit
    way = -SIDES[side] * rng.uniform(0.02, 0.35), rng.uniform(-0.15, 0.15), rng.uniform(-0.05, 0.15)
    place = body.rest_pose().position(f"{side}_hand") + scale * R @ way
    return sy.PositionGoal(f"{side}_hand", place, ancestors=2)


@bodies
@pytest.mark.parametrize("solver", SOLVERS)
def test_knees_bend_forward_and_elbows_back(made, solver):
    body, R = made
    for k in range(COUNT):
        rng = np.random.default_rng(k)
        side = ("left", "right")[k // 2 % 2]
        solution = sy.solve(body, (foot if k % 2 else hand)(body, R, rng, side), solver)
        assert solution.reached
        assert bend(body, R, solution.pose, side, leg=k % 2 == 1) in (None, pytest.approx(1.0, abs=1.0))
        assert not solution.notes


SQUATS = [  # thousands of steps of plain Python are for hinges alone, which take fewer
    pytest.param(made, solver, id=f"{solver}-{name}")
    for solver in SOLVERS
    if solver != "two-bone"
    for name, made in BODIES.items()
    if compiled() or "hinges" in name or solver not in {"transpose", "sdls", "ccd"}
]


@pytest.mark.parametrize(("made", "solver"), SQUATS)
def test_squats(made, solver):
    body, R = made
    for k in range(COUNT // 2):
        solution = sy.solve(body, squat(body, R, np.random.default_rng(k)), solver, root="free")
        assert solution.reached
        for side in SIDES:
            assert bend(body, R, solution.pose, side, leg=True) > 0.0


@bodies
@pytest.mark.parametrize("solver", ["lm", "transpose", "sdls", "full-body"])
def test_small_bends_of_an_arm_that_the_trunk_carries(made, solver):
    """Most of the way is the trunk's, so that the elbow bends by a few degrees alone."""
    body, R = made
    for k in range(COUNT):
        rng = np.random.default_rng(k)
        side = ("left", "right")[k % 2]
        begin, end = (body.rest_pose().position(f"{side}_{part}") for part in ("upper_arm", "hand"))
        turn = sy.Rotation.from_rotvec(rng.uniform(0.0, 0.6) * R[:, int(rng.integers(1, 3))] * (-1) ** k)
        place = begin + rng.uniform(0.5, 0.98) * turn.apply(end - begin)
        solution = sy.solve(body, sy.PositionGoal(f"{side}_hand", place), solver)
        assert solution.reached
        share = bend(body, R, solution.pose, side, leg=False, least=0.0125)
        assert share in (None, pytest.approx(1.0, abs=1.0))


@pytest.mark.parametrize("legs", ["both", "one"])
def test_if_bones_of_a_zero_pose_are_in_line_the_side_is_undefined(legs):
    """Legs that point up along the trunk: no one stands like this, and nothing is forward."""
    joints = [
        replace(joint, rest=at(joint.rest[:3, 3] * (1, -1, 1)))
        if joint.name.endswith(("lower_leg", "foot")) and (legs == "both" or "left" in joint.name)
        else joint
        for joint in straight()[0].joints
    ]
    body = straight()[0].with_joints(joints)
    place = body.rest_pose().position("left_foot") - (0.05, 0.2, 0.02)
    for solver in SOLVERS:
        solution = sy.solve(body, sy.PositionGoal("left_foot", place, ancestors=2), solver)
        assert solution.reached
        assert "'left_lower_leg' bends is undefined" in solution.notes[0]


@bodies
@pytest.mark.parametrize("solver", [name for name in SOLVERS if name not in {"transpose", "sdls"}])
def test_a_leg_that_was_beyond_its_reach_bends_to_its_side_again(made, solver):
    """In a track, without a jump: the leg goes straight while its target is too far, and bends again."""
    body, R = made
    scale = 1.0 / body.meters_per_unit
    lift = np.concatenate([np.linspace(0.1, -0.05, DOWN), np.linspace(-0.05, 0.3, UP)])
    places = body.rest_pose().position("left_foot") + scale * (lift[:, None] * R[:, 1] + 0.02 * R[:, 0])
    clip = sy.IK(body, sy.PositionGoal("left_foot", ancestors=2), solver).track({"left_foot": places})
    for pose in (clip[k].pose for k in range(len(clip))):
        assert (bend(body, R, pose, "left", leg=True) or 1.0) > 0.0
    assert clip.jumps == ()


@bodies
def test_many_at_once_are_the_same_as_one_by_one(made):
    body, R = made
    for solver in ("lm", "fabrik", "two-bone"):
        ik = sy.IK(body, sy.PositionGoal("left_foot", ancestors=2), solver)
        targets = np.array([foot(body, R, np.random.default_rng(k), "left").target[:3, 3] for k in range(8)])
        alone = [ik.solve(target).pose.q for target in targets]
        np.testing.assert_array_equal(ik.solve_many(targets).q, alone)


@pytest.mark.compiled
def test_a_row_without_straight_limbs_is_not_solved_again():
    """Else an answer depended on the rows beside it: a restart counts as bent to any side."""
    body, _ = straight()
    ik = sy.IK(body, sy.PoseGoal("left_hand"), sy.JacobianTranspose(attempts=20))
    bent = np.arange(40) % 4 > 0
    starts = np.array([body.random_pose(k).q if b else body.rest_pose().q for k, b in enumerate(bent)])
    targets = np.array([body.random_pose(100 + k).transform("left_hand") for k in range(40)])
    many = ik.solve_many(targets, starts)
    np.testing.assert_array_equal(many.q, [ik.solve(t, q).pose.q for t, q in zip(targets, starts, strict=True)])
    rows, again = np.array(many._rows), []
    rows[:, WINNER] = 1.0

    def solve(_, at):
        again.extend(at.tolist())
        return np.array(many._rows)[at]

    ik.problem.bend_well(starts, rows, solve)
    assert set(again) == set(np.flatnonzero(~bent))


@bodies
@pytest.mark.parametrize("solver", SOLVERS)
def test_an_answer_stays_and_a_met_goal_moves_nothing(made, solver):
    body, R = made
    rest = body.rest_pose()
    goal = sy.PositionGoal("left_foot", ancestors=2)
    ik = sy.IK(body, goal, solver)
    np.testing.assert_allclose(ik.solve(rest.position("left_foot")).pose.q, rest.q, atol=1e-9)
    far = rest.position("left_foot") - R[:, 1] / body.meters_per_unit
    first = ik.solve(far)
    again = ik.solve(far, first.pose)
    np.testing.assert_allclose(again.pose.positions, first.pose.positions, atol=1e-4 * ik.reach)


def test_a_chain_without_a_role_bends_as_at_rest_or_says_that_its_side_is_undefined():
    def chain(aside):
        joints = [sy.Joint("a", None, sy.Kind.BALL), sy.Joint("b", "a", sy.Kind.BALL, at((aside, 1, 0)))]
        return sy.Skeleton([*joints, sy.Joint("c", "b", sy.Kind.FIXED, at((0, 1, 0)))])

    target = (0.0, 1.5, 0.0)
    for aside in (1e-3, -1e-3):
        for solver in ("lm", "fabrik", "ccd", "particles", "two-bone", "full-body"):
            solution = sy.solve(chain(aside), sy.PositionGoal("c", target), solver)
            assert solution.reached
            assert solution.pose.position("b")[0] * aside > 0.0
            assert not solution.notes
    for solver in ("lm", "fabrik", "ccd", "particles", "two-bone", "full-body"):
        solution = sy.solve(chain(0.0), sy.PositionGoal("c", target), solver)
        assert solution.reached
        assert "'b'" in solution.notes[0]
        assert "PoleGoal" in solution.notes[0]
        assert solution.notes[0] in solution.explain()
    pole = [sy.PositionGoal("c", target), sy.PoleGoal("b", (0, 1, -5), root="a", tip="c", name="pole")]
    solution = sy.solve(chain(0.0), pole, "two-bone")
    assert solution.pose.position("b")[2] < 0.0
    assert not solution.notes


def test_limits_against_the_role_are_kept_and_said():
    """A knee that can bend backwards alone does so, and the solution says it."""
    body, _ = straight(hinges=True)
    joints = [
        replace(joint, limit=sy.Interval(-2.0, 0.0) if joint.name == "left_lower_leg" else joint.limit)
        for joint in body.joints
    ]
    backwards = body.with_joints(joints)
    place = backwards.rest_pose().position("left_foot") + np.array((0, 0.2, 0))
    solution = sy.solve(backwards, sy.PositionGoal("left_foot", place, ancestors=2))
    assert -2.0 <= solution.pose["left_lower_leg"] <= 0.0
    assert any("left_lower_leg" in note for note in solution.notes) == (not solution.pose["left_lower_leg"] > -0.1)
