"""Limbs as chains: spines and necks of other numbers of joints, bones that twist, joints beside the parts."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from people import moved, person, turn
from synovia.kernels.tree import spread

BOW = np.array([1.0, 0.0, 0.0])


@pytest.mark.parametrize("way", [BOW, (0.0, 1.0, 0.0), (0.5, -0.3, 0.8)], ids=["bow", "twist", "both"])
@pytest.mark.parametrize(("count", "other"), [(2, 7), (7, 2), (3, 5), (5, 3), (4, 4), (6, 5), (2, 3)])
def test_a_spine_of_another_number_of_joints_shares_the_bend(count, other, way):
    vector = 1.2 * np.asarray(way) / np.linalg.norm(way)
    source, target = person([0.3 / (count - 1)] * (count - 1)), person([0.3 / (other - 1)] * (other - 1))
    answer = sy.retarget(moved(source, {f"spine{k}": vector / count for k in range(count)}), target)
    turns = [turn(answer.motion, "base"), *(turn(answer.motion, f"spine{k}") for k in range(other))]
    shares = [(before.inv() * after).magnitude() for before, after in itertools.pairwise(turns)]
    np.testing.assert_allclose(shares, 1.2 / other, atol=1e-6)
    np.testing.assert_allclose(turns[-1].as_rotvec(), vector, atol=1e-6)


def test_a_bend_stays_where_the_source_has_it():
    """A source that bends at its lowest joint alone bends a longer spine below, too."""
    answer = sy.retarget(moved(person([0.1, 0.1, 0.1]), {"spine0": BOW}), person([0.05] * 6))
    turns = [turn(answer.motion, f"spine{k}").magnitude() for k in range(7)]
    assert turns[0] > 0.5
    np.testing.assert_allclose(turns[2:], 1.0, atol=1e-6)


def test_necks_share_their_bend_and_the_head_has_that_of_the_source():
    source = moved(person(neck=1), {"neck0": 0.4 * BOW, "head": 0.4 * BOW})
    answer = sy.retarget(source, person(neck=3))
    turns = [0.0, *(turn(answer.motion, name).magnitude() for name in ("neck0", "neck1", "neck2", "head"))]
    assert turns[-1] == pytest.approx(0.8, abs=1e-6)
    assert max(np.diff(turns)) < 2 * 0.8 / 4


@pytest.mark.parametrize("both", [False, True], ids=["target", "both"])
def test_a_pelvis_beside_the_spine_does_not_hide_the_trunk(both):
    source = person([0.15], pelvis=both)
    clip = moved(source, {"spine0": 0.45 * BOW, "spine1": 0.45 * BOW})
    answer = sy.retarget(clip, person([0.1, 0.1], pelvis=True))
    assert {"spine", "chest"} <= answer.joint_map().keys()
    assert turn(answer.motion, "spine2").magnitude() == pytest.approx(0.9, abs=1e-6)
    assert turn(answer.motion, "hips").magnitude() < 1e-6
    back = sy.retarget(moved(person([0.1, 0.1], pelvis=True), {f"spine{k}": 0.3 * BOW for k in range(3)}), source)
    assert turn(back.motion, "spine1").magnitude() == pytest.approx(0.9, abs=1e-6)


LEAF = [("forearm_twist", "lower_arm", (0.125, 0.0, 0.005))]
ROLL = np.array([1.4, 0.0, 0.0])


def test_joints_along_a_forearm_twist_with_the_hand_and_do_not_bend_with_it():
    clip = moved(person(), {"left_hand": ROLL})
    answer = sy.retarget(clip, person(extra=LEAF))
    assert turn(answer.motion, "left_forearm_twist").as_rotvec() == pytest.approx(0.5 * ROLL, abs=1e-6)
    assert turn(answer.motion, "right_forearm_twist").magnitude() < 1e-6
    answer = sy.retarget(moved(person(), {"left_hand": (0.0, 0.0, 0.8)}), person(extra=LEAF))
    assert turn(answer.motion, "left_forearm_twist").magnitude() < 1e-6


def test_bones_that_twist_follow_those_of_the_source_one_by_one():
    """Leaves follow leaves, whatever their names and places are, and a body without them has the end's twist."""
    clip = moved(person(extra=LEAF), {"left_forearm_twist": ROLL})
    other = [("roll", "lower_arm", (0.2, 0.0, 0.0))]
    assert turn(sy.retarget(clip, person(extra=other)).motion, "left_roll").as_rotvec() == pytest.approx(ROLL, abs=1e-6)
    assert turn(sy.retarget(clip, person()).motion, "left_hand").magnitude() < 1e-6


def test_joints_beside_the_parts_follow_by_place_or_name():
    tail = [("ear", "upper_leg", (0.02, 0.1, 0.05)), ("tip", "ear", (0.0, 0.1, 0.0))]
    source = moved(person(extra=tail), {"left_ear": (0.0, 0.3, 0.6), "left_tip": (0.2, 0.0, 0.0)})
    turned = person(extra=tail, turned=np.random.default_rng(3), scale=0.4)
    elsewhere = person(extra=[("ear", "upper_leg", (0.2, 0.1, 0.05)), ("end", "ear", (0.0, 0.3, 0.0))])
    for target, last in ((turned, "left_tip"), (elsewhere, "left_ear")):
        motion = sy.retarget(source, target).motion
        np.testing.assert_allclose(
            turn(motion, last).as_rotvec(), turn(source, last).as_rotvec(), atol=1e-6, err_msg=last
        )
    assert turn(motion, "left_end").as_rotvec() == pytest.approx(turn(motion, "left_ear").as_rotvec(), abs=1e-6)


def test_a_map_of_other_joints_than_the_body_has_is_kept():
    source, target = person([0.1, 0.1, 0.1]), person([0.05] * 6)
    clip = moved(source, {f"spine{k}": 0.3 * BOW for k in range(4)})
    found = sy.retarget(clip, target)
    pairs = found.joint_map()
    np.testing.assert_allclose(sy.retarget(clip, target, pairs).motion.q, found.motion.q, atol=1e-9)
    answer = sy.retarget(clip, target, {**pairs, "spine": ("spine0", "spine3")})
    assert turn(answer.motion, "spine2").magnitude() < 1e-6
    assert turn(answer.motion, "spine3").magnitude() == pytest.approx(0.3, abs=1e-6)


def test_live_poses_follow_as_clips_do():
    """Hips, spines and twists of a live body are those of the clip, before its feet are corrected."""
    source, target = person([0.1] * 3, neck=2), person([0.06] * 5, extra=LEAF)
    clip = moved(source, {**{f"spine{k}": 0.2 * BOW for k in range(4)}, "left_hand": ROLL, "head": 0.3 * BOW})
    wanted = sy.retarget(clip, target, hold_feet=False).motion
    known = sy.live.LiveCalibration.learn(clip, target)
    live = sy.LiveRetarget(source, target, rate=30, calibration=known, hold_feet=False)
    for t, q in enumerate(clip.q):
        pose = live.step(q)
        for row, name in enumerate(live.skeleton.joint_names):
            there = wanted.pose(t).rotation(name).as_matrix()
            off = Rotation.from_matrix(pose.rotation(row).as_matrix().T @ there).magnitude()
            assert off < 1e-6, (t, name)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_shares_of_rotations_between_two_joints(share):
    rng = np.random.default_rng(2)
    first, rest, last = (Rotation.random(40, random_state=rng) for _ in range(3))
    axis = np.array([0.0, 0.6, 0.8])
    ends = np.zeros((40, 4, 12))
    ends[:, :2, :9], ends[:, 2:, :9] = first.as_matrix().reshape(-1, 1, 9), last.as_matrix().reshape(-1, 1, 9)
    between, out = rest[0], np.zeros((40, 2, 12))
    numbers = np.array([[*between.as_matrix().ravel(), share, *way] for way in (np.zeros(3), axis)])
    spread.spread_turns(ends, numbers, out)
    begin = first * between
    way = begin.inv() * last
    whole = Rotation.from_matrix(out[:, 0, :9].reshape(-1, 3, 3))
    assert (whole.inv() * begin * way**share).magnitude().max() < 1e-9
    twist = Rotation.from_matrix(out[:, 1, :9].reshape(-1, 3, 3))
    quat = way.as_quat()
    angle = 2.0 * np.arctan2(quat[:, :3] @ axis, quat[:, 3])
    angle = (angle + np.pi) % (2.0 * np.pi) - np.pi
    assert (twist.inv() * begin * Rotation.from_rotvec(share * angle[:, None] * axis)).magnitude().max() < 1e-9
