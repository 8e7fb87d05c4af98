"""A start given as a plain array takes a short way in: it must mean the same as a pose, and refuse the same."""

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError, UnknownNameError
from synovia.model import Mimic
from synovia.model.pose import inside_limits


def both(body, goal, target, q):
    ik = sy.IK(body, goal)
    return ik.solve({goal.joint: target}, q), ik.solve({goal.joint: target}, sy.Pose(body, q))


def hinge(name, parent, offset, **more):
    rest = np.eye(4)
    rest[:3, 3] = offset
    return sy.Joint(name, parent, sy.Kind.HINGE, rest, np.array([0.0, 0.0, 1.0]), sy.Interval(-1.0, 1.0), **more)


def leg():
    return sy.Skeleton(
        [
            hinge("hip", None, (0, 0, 0)),
            hinge("knee", "hip", (1, 0, 0)),
            hinge("foot", "knee", (1, 0, 0), mimic=Mimic("knee", -0.37, 0.123)),
        ]
    )


@pytest.mark.slow
def test_an_array_means_the_same_as_its_pose():
    arm = sy.bundled("arm7")
    lower, upper = arm.limits
    target = arm.random_pose(1).transform("tool")
    for q in (arm.random_pose(2).q, upper + 0.3, np.zeros(2 * arm.nq)[::2] + lower):
        one, other = both(arm, sy.PoseGoal("tool"), target, q)
        np.testing.assert_array_equal(one._rows, other._rows)
        np.testing.assert_array_equal(one.start.q, q)
        np.testing.assert_array_equal(one.q, one.pose.q)
        assert not one.q.flags.writeable
        assert one.start_clamped == other.start_clamped
    person = sy.bundled("humanoid")
    q = person.random_pose(4).q
    one, other = both(person, sy.PositionGoal("left_hand"), person.random_pose(5).position("left_hand"), q)
    np.testing.assert_array_equal(one._rows, other._rows)


@pytest.mark.slow
def test_the_start_is_the_callers_no_longer():
    arm = sy.bundled("arm7")
    q = arm.random_pose(2).q.copy()
    kept = q.copy()
    answer = sy.IK(arm, sy.PoseGoal("tool")).solve({"tool": arm.random_pose(1).transform("tool")}, q)
    q[:] = 9.0
    np.testing.assert_array_equal(answer.start.q, kept)


@pytest.mark.slow
def test_a_wrong_array_is_refused_as_ever():
    person = sy.bundled("humanoid")
    ik = sy.IK(person, sy.PositionGoal("left_hand"))
    target = {"left_hand": person.rest_pose().position("left_hand")}
    q = person.rest_pose().q.copy()
    q[3:7] *= 1.01
    with pytest.raises(InputError, match="unit quaternion"):
        ik.solve(target, q)
    q = person.rest_pose().q.copy()
    q[-1] = np.nan
    with pytest.raises(InputError, match="finite"):
        ik.solve(target, q)


@pytest.mark.slow
def test_joints_that_follow_another_take_the_value_that_follows():
    body = leg()
    target = body.random_pose(1).position("foot")
    for q in (body.random_pose(2).q, body.follow(np.array([0.2, 3.0, 0.0]))):  # the second is outside the limits
        one, other = both(body, sy.PositionGoal("foot"), target, q)
        np.testing.assert_array_equal(one._rows, other._rows)
        assert one.start_clamped == other.start_clamped
    free, follower = np.array([0.2, 0.4, 0.4]), body.joint_names[[j.mimic is not None for j in body.joints].index(True)]
    led = body.follow(free.copy())
    assert not np.array_equal(led, free)
    ik = sy.IK(body, sy.PositionGoal("foot"))
    wanted = ik.solve({"foot": target}, led)._rows
    unknown = np.where(led == free, free, np.nan)
    for start in (free, free.tolist(), unknown):  # the leader decides, whatever the follower's value is
        np.testing.assert_array_equal(ik.solve({"foot": target}, start)._rows, wanted)
        np.testing.assert_array_equal(ik.solve_many({"foot": target[None]}, start)._rows, wanted)
        np.testing.assert_array_equal(ik.solve_many({"foot": target[None]}, np.array([start]))._rows, wanted)
        np.testing.assert_array_equal(ik.track({"foot": target[None]}, start)._rows, wanted)
    rest = ik.solve({"foot": target})._rows
    np.testing.assert_array_equal(ik.solve({"foot": target}, {follower: 0.9})._rows, rest)  # without its leader too
    with pytest.raises(InputError, match="follows another"):
        sy.Pose(body, free)
    with pytest.raises(InputError, match="follows another"):
        sy.Pose(body, {follower: 0.9})
    with pytest.raises(UnknownNameError):
        ik.solve({"foot": target}, {"foto": 0.9})


@pytest.mark.parametrize("name", ["arm7", "humanoid", "quadruped"])
def test_a_start_outside_the_limits_is_brought_inside_by_the_same_code_alone_and_among_many(name):
    body = sy.bundled(name)
    rng = np.random.default_rng(4)
    q = np.stack([body.random_pose(k).q for k in range(40)])
    table = body.tables.variables
    for at in table[table[:, 0] == 1, 1]:
        turns = rng.normal(size=(len(q), 4))
        q[:, at : at + 4] = turns / np.linalg.norm(turns, axis=1, keepdims=True)
    q[:, table[table[:, 0] == 0, 1]] += rng.normal(size=(len(q), (table[:, 0] == 0).sum())) * 3.0
    rows = inside_limits(body, q.copy())
    assert (rows != q).any(axis=1).mean() > 0.9
    for one, row in zip(q, rows, strict=True):
        quick = sy.Pose.quick(body, one)
        for pose in (sy.Pose(body, one), *([] if quick is None else [quick])):
            np.testing.assert_array_equal(pose.inside[0], row)


def test_followers_have_the_same_bits_from_the_kernels_and_from_numpy():
    body = leg()
    for value in np.random.default_rng(5).uniform(-1.0, 1.0, 200):
        q = body.follow(np.array([0.4, value, 0.0]))
        nudged = q.copy()
        nudged[2] = np.nextafter(q[2], 9.0)
        poses = [sy.Pose.quick(body, given) for given in (q, nudged)]
        assert poses[0] is not None
        for pose in poses:
            np.testing.assert_array_equal(q if pose is None else pose.q, q)


@pytest.mark.parametrize("length", [0.5, 0.99, 1.0 + 1e-6, 1.01, 2.0])
def test_a_quaternion_of_another_length_means_the_same_turn_as_in_a_pose(length):
    """In an array as in a pose: taken as the turn that it names, or refused with the same words."""
    body = sy.Skeleton([sy.Joint("ball", kind=sy.Kind.BALL), hinge("tip", "ball", (1, 0, 0))])
    q = np.array([*(length * sy.Rotation.from_rotvec((0.3, -0.2, 0.5)).as_quat()), 0.2])
    ik = sy.IK(body, sy.PositionGoal("tip"))
    said = []
    for start in (lambda: q, lambda: sy.Pose(body, q)):
        try:
            said.append(ik.solve({"tip": (0.0, 1.0, 0.0)}, start()).pose.q)
        except InputError as error:
            said.append(str(error))
    assert type(said[0]) is type(said[1])
    if isinstance(said[0], str):
        assert said[0].split(":")[-1] == said[1].split(":")[-1]
    else:
        np.testing.assert_allclose(said[0], said[1], atol=1e-12)
        assert np.linalg.norm(said[0][:4]) == pytest.approx(1.0, abs=1e-9)
