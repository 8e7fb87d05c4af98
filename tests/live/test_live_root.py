"""Root bones of bodies that follow a live source: what they take of its motion, tick by tick."""

from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError

RATE = 30.0


def with_root_bone(body):
    """Return a body whose hips hang below a ball on the floor."""
    joints = [sy.Joint("root", kind=sy.Kind.BALL)]
    joints += [joint if joint.parent is not None else replace(joint, parent="root") for joint in body.joints]
    return sy.Skeleton(joints, name="character", meters_per_unit=1.0, up="y", forward="z")


@pytest.fixture(scope="module")
def circle():
    """Return a source that stands for a second, and then goes around half a circle, facing ahead."""
    body = sy.bundled("humanoid").with_root("free")
    angle = np.concatenate([np.zeros(15), np.linspace(0.0, np.pi, 60)])
    q, hips = np.tile(body.rest_q, (len(angle), 1)), body.q_slice(0)
    q[:, hips.start : hips.start + 3] += 2.0 * np.stack([1.0 - np.cos(angle), 0.0 * angle, np.sin(angle)], axis=1)
    q[:, hips.start + 3 : hips.stop] = sy.Rotation.from_euler("y", angle[:, None]).as_quat()
    return body, q, angle


@pytest.fixture(scope="module")
def character():
    return with_root_bone(sy.bundled("humanoid"))


def followed(circle, character, mode):
    body, q, _ = circle
    live = sy.LiveRetarget(body, character, rate=RATE, learn=0, root_motion=mode)
    return live, [live.step(row) for row in q]


@pytest.fixture(scope="module")
def ticks(circle, character):
    return {mode: followed(circle, character, mode)[1] for mode in ("root", "hips", "none")}


def places(poses, name):
    """Return the positions (T, 3) of a joint, and its heading (T,), radians."""
    heading = [np.arctan2(R[0, 2], R[2, 2]) for R in (pose.rotation(name).as_matrix() for pose in poses)]
    return np.array([pose.position(name) for pose in poses]), np.unwrap(heading)


def test_the_root_is_on_the_floor_below_the_hips_and_faces_as_they_do(circle, ticks):
    place, heading = places(ticks["root"], "root")
    hips, _ = places(ticks["root"], "hips")
    np.testing.assert_allclose(place[:, 1], 0.0, atol=1e-9)
    assert np.linalg.norm((hips - place)[:, [0, 2]], axis=1).max() < 0.1
    np.testing.assert_allclose(heading - heading[0], circle[2], atol=0.05)


def test_the_body_is_where_it_is_for_root_and_hips(ticks):
    for name in ("hips", "head", "left_foot", "right_hand"):
        for one, other in zip(places(ticks["root"], name), places(ticks["hips"], name), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)
    assert np.ptp(places(ticks["hips"], "root")[0], axis=0).max() < 1e-12


def test_without_root_motion_the_body_stays_in_its_place(ticks):
    place, heading = places(ticks["none"], "hips")
    assert np.ptp(place[:, [0, 2]], axis=0).max() < 0.1
    assert np.ptp(heading) < 0.05
    np.testing.assert_allclose(place[:, 1], places(ticks["root"], "hips")[0][:, 1], atol=1e-9)


def test_a_body_without_such_a_bone_stays_in_its_place_too(circle):
    _, poses = followed(circle, sy.bundled("humanoid"), "none")
    assert np.ptp(places(poses, "hips")[0][:, [0, 2]], axis=0).max() < 0.1
    one, other = (
        followed(circle, sy.bundled("humanoid"), "root")[1],
        followed(circle, sy.bundled("humanoid"), "hips")[1],
    )
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a.q, b.q)


def test_the_root_is_where_retarget_has_it(circle, character, ticks):
    body, q, _ = circle
    answer = sy.retarget(sy.Motion(body, q, RATE), character)
    place, heading = places([answer.motion[k] for k in range(len(q))], "root")
    mine, own = places(ticks["root"], "root")
    np.testing.assert_allclose(mine[1:-1], place[1:-1], atol=0.1)
    np.testing.assert_allclose(own, heading, atol=0.05)


@pytest.mark.parametrize("mode", ["root", "hips", "none"])
def test_quaternions_have_no_jumps_and_the_frames_of_ticks_are_those_of_the_skeleton(ticks, mode):
    poses = ticks[mode]
    assert all(pose.skeleton is poses[0].skeleton for pose in poses)
    t = poses[0].skeleton.tables
    quats = np.array([pose.q for pose in poses])[:, t.places[~t.is_number, None] + np.arange(4)]
    assert (np.sum(quats[1:] * quats[:-1], axis=2) > 0.0).all()


def test_a_body_goes_on_from_a_pose_that_it_is_given(circle, character):
    live, poses = followed(circle, character, "root")
    again = sy.LiveRetarget(circle[0], character, rate=RATE, calibration=live.calibration, root_motion="root")
    again.reset(poses[50])
    held = again.step()
    assert held.status.name == "HOLDING"
    for name in ("hips", "head", "left_foot"):
        np.testing.assert_allclose(held.position(name), poses[50].position(name), atol=1e-9)


def test_a_lost_source_leaves_the_root_below_the_body(circle):
    """Also where the source has such a bone, and the bone follows that one."""
    body, q, _ = circle
    walk = sy.Motion(body, q, RATE)
    source = sy.retarget(walk, with_root_bone(sy.bundled("humanoid"))).motion
    live = sy.LiveRetarget(source.skeleton, source.skeleton, rate=RATE, learn=0, timeout=0.1, root_motion="root")
    poses = [live.step(row) for row in source.q[:40]]
    before, held = poses[-1], [live.step() for _ in range(30)]
    assert held[-1].status.name == "HOLDING"
    for pose in (before, held[-1]):
        away = pose.position("hips") - pose.position("root")
        assert np.linalg.norm(away[[0, 2]]) < 0.15
    np.testing.assert_allclose(held[-1].position("root"), before.position("root"), atol=0.2)


def test_what_a_root_takes_is_one_of_three_words(circle, character):
    with pytest.raises(InputError, match="root_motion"):
        sy.LiveRetarget(circle[0], character, rate=RATE, root_motion="heading")
