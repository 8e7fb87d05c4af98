"""Poses and motions: what is refused, what agrees with what, and that nothing can be changed from outside."""

import copy
import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from synovia.errors import InputError, UnknownNameError
from synovia.model import Joint, Kind, Mimic, Pose, Skeleton
from synovia.model.motion import Motion

Z = np.array([0.0, 0.0, 1.0])
UP = np.eye(4)
UP[1, 3] = 2.0
BODY = Skeleton(
    [
        Joint("root", None, Kind.FREE),
        Joint("hip", "root", Kind.BALL, UP),
        Joint("knee", "hip", Kind.HINGE, UP, Z),
        Joint("toe", "knee", Kind.FIXED, UP),
        Joint("ankle", "knee", Kind.HINGE, UP, Z, mimic=Mimic("knee", -0.5, 0.1)),
        Joint("foot", "ankle", Kind.FIXED, UP, tip=True),
    ],
    name="leg",
)
copies = pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])


def good():
    return BODY.random_pose(3).with_values({"root": [1, 2, 3, 0.5, 0.5, 0.5, 0.5]})


def changed(joint, value):
    q = good().q.copy()
    q[BODY.q_slice(joint)] = value
    return q


@pytest.mark.parametrize(
    ("q", "match"),
    [
        (np.zeros(3), "shape"),
        (np.zeros((1, 13)), "shape"),
        (5.0, "shape"),
        (None, "q"),
        ("abc", "q"),
        ([[1], [1, 2]], "numbers of shape"),
        ([10**400] * 13, "numbers of shape"),
        (changed("knee", np.nan), "finite numbers"),
        (changed("root", np.inf), "finite numbers"),
        (changed("hip", [0, 0, 0, 0]), "joint 'hip': expected a unit quaternion"),
        (changed("hip", [0, 0, 0, 1.1]), "joint 'hip': expected a unit quaternion"),
        (changed("root", [0, 0, 0, 1, 1, 0, 0]), "joint 'root': expected a unit quaternion"),
        (changed("ankle", 2.0), "joint 'ankle', which follows another: expected"),
    ],
)
def test_garbage_is_refused(q, match):
    with pytest.raises(InputError, match=match):
        Pose(BODY, q)
    if np.ndim(q if not isinstance(q, list) else 0) == 1:
        with pytest.raises(InputError, match=match):
            Motion(BODY, [good().q, q] if np.shape(q) == (13,) else [q, q], 30)


def test_a_far_root_does_not_excuse_a_follower():
    q = changed("root", [1e7, 0, 0, 0, 0, 0, 1])
    q[BODY.q_slice("ankle")] += 0.01
    with pytest.raises(InputError, match="'ankle'"):
        Pose(BODY, q)


def test_rounding_is_cleaned_away():
    q = good().q.astype(np.float32)
    pose = Pose(BODY, q)
    assert np.linalg.norm(pose["hip"]) == pytest.approx(1.0, abs=1e-15)
    assert pose["ankle"] == -0.5 * pose["knee"] + 0.1


def test_the_error_of_a_motion_shows_the_frame_that_is_wrong():
    q = np.array([good().q, changed("ankle", 7.5)])
    with pytest.raises(InputError, match=r"got 7\.5"):
        Motion(BODY, q, 30)


def test_values_by_name():
    pose = good()
    assert isinstance(pose["knee"], float)
    assert pose["hip"].shape == (4,)
    assert pose["root"].shape == (7,)
    assert pose["toe"].shape == (0,)
    pose["hip"][0] = 9.0
    assert pose["hip"][0] != 9.0
    with pytest.raises(UnknownNameError, match="Did you mean 'knee'"):
        pose["kne"]


def test_with_values():
    pose = good()
    turned = Rotation.from_euler("x", 0.4).as_quat()
    new = pose.with_values({"knee": 0.8, "hip": turned})
    assert (new["knee"], new["ankle"]) == (0.8, pytest.approx(-0.3))
    np.testing.assert_allclose(new["hip"], turned, atol=1e-15)
    np.testing.assert_array_equal(new["root"], pose["root"])
    assert pose["knee"] != 0.8
    assert pose.with_values({"knee": [0.8], "ankle": -0.3})["ankle"] == pytest.approx(-0.3)
    np.testing.assert_array_equal(pose.with_values({}).q, pose.q)


@pytest.mark.parametrize(
    "values",
    [
        {"knee": "x"},
        {"knee": None},
        {"knee": [1, 2]},
        {"knee": np.nan},
        {"hip": 1.0},
        {"hip": [1, 1, 1, 1]},
        {"hip": [[0, 0, 0, 1]]},
        {"hip": [[1], [2, 3]]},
        {"toe": 1.0},
        {"ankle": 1.0},
        {"knee": 0.8, "ankle": 1.0},
    ],
)
def test_values_that_do_not_fit_are_refused(values):
    with pytest.raises(InputError, match=list(values)[-1]):
        good().with_values(values)


def test_all_ways_to_ask_for_a_frame_agree():
    pose = good()
    for row, name in enumerate(BODY.joint_names):
        T = pose.transform(name)
        np.testing.assert_array_equal(T[:3, :3], pose.matrix(row))
        np.testing.assert_array_equal(T[:3, 3], pose.position(name))
        np.testing.assert_array_equal(pose.positions[row], pose.position(name))
        np.testing.assert_allclose(pose.rotation(name).as_matrix(), pose.matrix(name), atol=1e-14)
        np.testing.assert_array_equal(T[3], [0, 0, 0, 1])
        np.testing.assert_allclose(pose.matrix(name).T @ pose.matrix(name), np.eye(3), atol=1e-14)
    np.testing.assert_allclose(pose.position("root"), (1, 2, 3))
    np.testing.assert_allclose(np.linalg.norm(pose.position("foot") - pose.position("ankle")), 2.0)


def test_poses_cannot_be_changed_from_outside():
    q = good().q.copy()
    pose = Pose(BODY, q)
    q[:] = 0.0
    np.testing.assert_array_equal(pose.q, good().q)
    for array in (pose.q, pose.frames, pose.positions):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    pose.position("hip")[0] = pose.matrix("hip")[0, 0] = pose.transform("hip")[0, 0] = 99.0
    np.testing.assert_array_equal(pose.frames, good().frames)


def clip(n=4):
    return Motion(BODY, [BODY.random_pose(i).q for i in range(n)], 30, name="walk")


def test_motion_agrees_with_its_poses():
    motion = clip()
    assert (len(motion), motion.duration) == (4, 0.1)
    np.testing.assert_allclose(motion.times, [0, 1 / 30, 2 / 30, 0.1])
    for t, pose in enumerate(motion):
        np.testing.assert_array_equal(pose.frames, motion.frames()[t])
        np.testing.assert_array_equal(pose.positions, motion.positions()[t])
    np.testing.assert_array_equal(motion.pose(-1).q, motion.q[3])
    assert repr(motion) == "Motion('walk', 4 frames at 30 fps, 'leg')"
    for frame in (4, -5, 0.5, True, "first"):
        with pytest.raises(InputError, match="frame: expected 0 to 3"):
            motion.pose(frame)


def test_an_empty_motion():
    motion = Motion(BODY, np.empty((0, BODY.nq)), 30)
    assert (len(motion), motion.duration, motion.frames().shape) == (0, 0.0, (0, 6, 12))
    with pytest.raises(InputError, match="frame: expected a clip with frames"):
        motion.pose(0)


@pytest.mark.parametrize("fps", [0, -1, np.nan, np.inf, "30", None, True])
def test_fps_is_positive(fps):
    with pytest.raises(InputError, match="fps"):
        Motion(BODY, clip().q, fps)


@pytest.mark.parametrize("stretch", [np.ones((4, 6, 2)), np.ones(3), np.full((4, 6, 3), np.nan), "x"])
def test_stretch_has_its_shape(stretch):
    with pytest.raises(InputError, match="stretch"):
        Motion(BODY, clip().q, 30, stretch=stretch)


@copies
def test_motions_copy_and_pickle(copier):
    motion = Motion(BODY, clip().q, 24, name="run", stretch=np.ones((4, 6, 3)))
    again = copier(motion)
    assert (again.name, again.fps, again.skeleton.joint_names) == ("run", 24.0, BODY.joint_names)
    np.testing.assert_array_equal(again.q, motion.q)
    for array in (again.q, again.stretch, motion.q, motion.stretch):
        assert not array.flags.writeable
