"""Two hands on one prop: where the source keeps their distance, so does a body with other arms and shoulders."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from synovia.retargeting.body import Body
from synovia.retargeting.props import props_held

FRAMES = 120
APART = 0.46


@pytest.fixture(scope="module")
def body():
    """Return the bundled body without limits."""
    whole = sy.bundled("humanoid")
    return whole.with_joints([replace(joint, limit=None) for joint in whole.joints]).with_root("free")


def clip_of(body, apart):
    """Return a clip in which the hands turn a prop, ``apart`` (T,) from each other, as a wheel."""
    t = np.linspace(0.0, 2.0 * np.pi, FRAMES)
    middle = np.stack([0.04 * np.sin(t), 1.25 + 0.03 * np.sin(2 * t), 0.27 + 0.05 * np.cos(t)], axis=1)
    roll = 1.1 * np.sin(t)  # as a wheel
    way = 0.5 * apart[:, None] * np.stack([np.cos(roll), np.sin(roll), 0.0 * t], axis=1)
    ik = sy.IK(body, [sy.PositionGoal("left_hand"), sy.PositionGoal("right_hand"), sy.RestGoal()], sy.FullBody(),
               moving=[f"{side}_{part}_arm" for side in ("left", "right") for part in ("upper", "lower")])  # fmt: skip
    track = ik.track({"left_hand": middle + way, "right_hand": middle - way}, body.rest_pose(), fps=30)
    assert track.reached.all()
    return track.motion


@pytest.fixture(scope="module")
def holding(body):
    return clip_of(body, np.full(FRAMES, APART))


@pytest.fixture(scope="module")
def broad():
    """Return a body with shoulders that are farther apart, and shorter arms."""
    whole = sy.bundled("humanoid")
    joints = []
    for joint in whole.joints:
        rest = joint.rest.copy()
        if joint.role and joint.role.endswith("upper_arm"):
            rest[0, 3] += 0.05 * np.sign(rest[0, 3])
        if joint.role and joint.role.endswith(("lower_arm", "hand")):
            rest[:3, 3] *= 0.92
        joints.append(replace(joint, rest=rest))
    return whole.with_joints(joints)


def distances(motion):
    places = motion.positions()[:, [motion.skeleton.index(f"{side}_hand") for side in ("left", "right")]]
    return np.linalg.norm(places[:, 0] - places[:, 1], axis=1)


def test_the_distance_is_constant_on_another_body(holding, broad):
    answer = sy.retarget(holding, broad)
    assert [prop.span for prop in answer.props] == [(0, FRAMES)]
    assert np.ptp(distances(answer.motion)) < 0.005
    assert not [one for one in answer.findings if one.cause == "prop"]


def test_without_it_the_distance_changes(holding, broad, monkeypatch):
    """So that the test above shows something."""
    monkeypatch.setattr(sys.modules["synovia.retargeting.retarget"], "props_held", lambda *_: [])
    assert np.ptp(distances(sy.retarget(holding, broad).motion)) > 0.03


def test_a_body_that_cannot_is_told(holding, broad):
    """An arm that hangs stiffly: it does not come to the prop."""
    stiff = broad.with_limits({"left_lower_arm": (0.0, 0.1), "right_lower_arm": (0.0, 0.1)})
    answer = sy.retarget(holding, stiff)
    found = [one for one in answer.findings if one.cause == "prop"]
    assert found
    assert found[0].level == "look"
    assert found[0].frames
    assert "differ from this by up to" in found[0].text


@pytest.mark.parametrize("apart", [0.06, 0.2, APART])
def test_every_prop_is_listed_and_keeps_its_distance_exactly(body, apart):
    """However small the prop is, and however little other arms change its distance."""
    clip = clip_of(body, np.full(FRAMES, apart))
    joints = []
    for joint in body.joints:
        rest = joint.rest.copy()
        rest[:3, 3] *= 0.96 if joint.role and joint.role.endswith("hand") else 1.0
        joints.append(replace(joint, rest=rest))
    answer = sy.retarget(clip, body.with_joints(joints), clearance=None)
    assert [prop.span for prop in answer.props] == [(0, FRAMES)]
    found = distances(answer.motion)
    assert np.ptp(found) < 0.02 * found.mean()
    assert not [one for one in answer.findings if one.cause == "prop"]


def test_a_finding_says_that_a_small_prop_is_lost(body, monkeypatch):
    """A difference of 2 cm is much for hands that are 6 cm apart."""
    clip = clip_of(body, np.full(FRAMES, 0.06))
    answer = sy.retarget(clip, body, clearance=None)
    assert not [one for one in answer.findings if one.cause == "prop"]
    q = np.array(answer.motion.q)
    q[40:60, body.q_slice("left_upper_arm")] = q[39, body.q_slice("left_upper_arm")]
    moved = replace(answer, motion=sy.Motion(answer.motion.skeleton, q, answer.motion.fps))
    off = np.abs(distances(moved.motion) - 0.06)
    assert 0.005 < off.max() < 0.03
    found = [one for one in moved.findings if one.cause == "prop"]
    assert found
    assert set(found[0].frames) <= set(range(40, 60))


def test_hands_apart_and_still_hands_hold_nothing(body, holding):
    """Hands whose distance changes, hands that rest, and hands that hold for less than a second."""
    person = Body.of(body)
    swinging = clip_of(body, APART + 0.1 * np.sin(np.linspace(0.0, 9.0, FRAMES)))
    assert props_held(person, swinging.frames(), 30.0) == []
    still = sy.Motion(body, np.tile(body.rest_q, (FRAMES, 1)), 30.0)
    assert props_held(person, still.frames(), 30.0) == []
    assert props_held(person, holding.frames()[:20], 30.0) == []
    assert props_held(person, holding.frames(), 30.0) == [(0, FRAMES)]


def test_a_part_of_the_answer_has_its_part_of_the_prop(holding, broad):
    part = sy.retarget(holding, broad)[30:90:2]
    assert [prop.span for prop in part.props] == [(0, 30)]
