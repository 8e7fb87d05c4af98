"""A recorded hand of 21 points on other hands: tips, pinches, sides, gaps, limits, and what is told."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import synovia as sy
from synovia.clips.handfile import holds_hand, read_hand
from synovia.draw.scene import bones_of
from synovia.model.anatomy.hands.landmarks import palm_of

Array = NDArray[np.float64]
TIPS = {"thumb": 4, "index": 8, "middle": 12, "ring": 16, "little": 20}
# Of the shared recording, from the table of its peer: mean error of vectors from the palm to the tips and largest step
# (method "vector"), and mean distance of pinched tips (method "dexpilot"); millimetres and radians
PEER = {
    "allegro": ("wrist", 1.6, 38.8, 0.85, 4.6),
    "shadow": ("palm", 1.2, 16.5, 0.52, 4.1),
    "leap": ("base", 1.6, 42.6, 0.86, 4.9),
    "ability": ("base_link", 1.0, 20.4, 0.97, 8.3),
    "inspire": ("base", 1.15, 25.5, 1.06, 48.1),
}


@pytest.fixture(scope="module")
def body() -> sy.Skeleton:
    return sy.bundled("humanoid_hands")


def curling(body: sy.Skeleton, side: str, frames: int = 40) -> sy.Motion:
    """Return a clip in which the fingers of a hand close and open."""
    hand = sy.hand_of(body, side)
    q = np.tile(body.rest_q, (frames, 1))
    for finger in hand.fingers[1:]:
        for key in finger.flexion:
            row = body.value_index(key)
            joint, part = body.joints[row], body.q_slice(row)
            if joint.kind is sy.Kind.HINGE and isinstance(joint.limit, sy.Interval):
                far = joint.limit.upper if abs(joint.limit.upper) > abs(joint.limit.lower) else joint.limit.lower
                q[:, part.start] = 0.5 * far * np.sin(np.linspace(0.0, np.pi, frames))
    return sy.Motion(body, q, 30.0)


def pinching(body: sy.Skeleton, finger: str = "index", frames: int = 60) -> Array:
    """Return 21 points of an open right hand whose finger touches the thumb in frames 20 to 39."""
    points = np.repeat(sy.hands.hand_landmarks(body.rest_pose(), "right")[None], frames, axis=0)
    points *= 0.09 / np.linalg.norm(points[0, 9] - points[0, 0])
    tip, thumb = TIPS[finger], TIPS["thumb"]
    share = np.interp(np.arange(frames), [10, 20, 39, 49], [0.0, 1.0, 1.0, 0.0])
    middle = 0.5 * (points[:, tip] + points[:, thumb])
    for k in (tip, thumb):
        points[:, k] += share[:, None] * (middle - points[:, k])
    return points


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_hand_follows_its_own_points_and_those_of_the_other_side(body: sy.Skeleton, side: str) -> None:
    points = sy.hands.hand_landmarks(curling(body, "right"), "right")
    answer = sy.retarget_hand(points, body, fps=30, side=side)
    assert answer.source_side == "right"
    assert answer.mirrored == (side == "left")
    assert answer.verdict == "good", answer.report()
    assert answer.scale == pytest.approx(1.0, rel=0.02)
    assert answer.errors.mean() < 0.06 * answer.reach
    others = [row for row in range(len(body)) if not str(body.joint_names[row]).startswith(f"{side}_")]
    for row in others:
        assert not np.diff(answer.motion.q[:, body.q_slice(row)], axis=0).any()


def test_points_may_be_in_any_frame_and_scale(body: sy.Skeleton) -> None:
    points = sy.hands.hand_landmarks(curling(body, "right"), "right")
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    moved = 850.0 * points @ turn.T + (3.0, -2.0, 9.0)
    one, two = (sy.retarget_hand(p, body, fps=30, side="right") for p in (points, moved))
    np.testing.assert_allclose(one.tips, two.tips, atol=2e-3 * one.reach)
    assert two.scale == pytest.approx(one.scale / 850.0, rel=1e-6)


@pytest.mark.parametrize("finger", ["index", "middle"])
def test_a_pinch_closes_exactly_and_opens_again(body: sy.Skeleton, finger: str) -> None:
    answer = sy.retarget_hand(pinching(body, finger), body, fps=30, side="right")
    mine = [one for one in answer.pinches if one.finger == finger]
    assert len(mine) == 1
    assert mine[0].first <= 20
    assert mine[0].end >= 40
    assert mine[0].distance < 1e-4, answer.report()
    k = answer.fingers.index(finger)
    gaps = np.linalg.norm(answer.tips[:, k] - answer.tips[:, 0], axis=-1)
    assert gaps[0] > 0.03
    assert gaps[-1] > 0.03
    steps = np.abs(np.diff(answer.motion.q, axis=0)).max()
    assert steps <= 15.0 / 30.0 + 1e-9
    assert not any(one.cause == "pinch" for one in answer.findings)


def test_gaps_are_filled_and_told(body: sy.Skeleton) -> None:
    points = sy.hands.hand_landmarks(curling(body, "right"), "right")
    whole = sy.retarget_hand(points, body, fps=30, side="right")
    some = points.copy()
    some[10:13, 5:9] = np.nan
    short = sy.retarget_hand(some, body, fps=30, side="right")
    assert any("missing in frames 10-12" in note for note in short.notes)
    assert np.abs(short.tips - whole.tips).max() < 0.05 * whole.reach
    some[8:30] = np.nan
    long = sy.retarget_hand(some, body, fps=30, side="right")
    assert any("not seen in frames 8-29" in note for note in long.notes)
    assert long.verdict == "look"
    assert any(one.cause == "gap" for one in long.findings)
    assert np.isfinite(long.motion.q).all()


def test_a_hidden_finger_goes_along_with_a_hand_that_turns(body: sy.Skeleton) -> None:
    points = sy.hands.hand_landmarks(curling(body, "right"), "right")
    turns = sy.Rotation.from_rotvec(np.linspace(0.0, 12.0, len(points))[:, None] * (0.6, 0.0, 0.8)).as_matrix()
    moved = np.einsum("tij,tkj->tki", turns, points) + np.linspace(0.0, 2.0, len(points))[:, None, None]
    points[10:18, 5:9] = moved[10:18, 5:9] = np.nan
    still, turning = (sy.retarget_hand(given, body, fps=30, side="right") for given in (points, moved))
    np.testing.assert_allclose(turning.tips, still.tips, atol=1e-6 * still.reach)


def test_a_finger_that_was_never_recorded_stays_at_rest(body: sy.Skeleton) -> None:
    points = sy.hands.hand_landmarks(curling(body, "right"), "right")
    whole = sy.retarget_hand(points, body, fps=30, side="right")
    points[:, 17:] = np.nan
    answer = sy.retarget_hand(points, body, fps=30, side="right")
    assert answer.fingers == ("thumb", "index", "middle", "ring")
    assert any("not recorded, so at rest: 'little'" in note for note in answer.notes)
    assert np.abs(answer.tips - whole.tips[:, :4]).max() < 0.1 * whole.reach
    assert np.isfinite(answer.with_points().positions()).all()


def test_confidence_of_zero_counts_as_not_seen(body: sy.Skeleton) -> None:
    points = sy.hands.hand_landmarks(curling(body, "right"), "right")
    wild, confidence = points.copy(), np.ones(points.shape[:2])
    wild[15, 8] += 0.5
    confidence[15, 8] = 0.0
    one, two = (
        sy.retarget_hand(points, body, fps=30, side="right"),
        sy.retarget_hand(wild, body, fps=30, side="right", confidence=confidence),
    )
    assert np.abs(one.tips - two.tips).max() < 0.05 * one.reach


def test_what_cannot_be_used_is_told(body: sy.Skeleton) -> None:
    points = sy.hands.hand_landmarks(body.rest_pose(), "right")[None]
    wrong = [
        ({"points": points[:, :20]}, "21"),
        ({"fps": 0}, "fps"),
        ({"side": None}, "2 hands are found"),
        ({"side": "up"}, "'left', 'right'"),
        ({"source_side": "up"}, "source_side"),
        ({"frame": "camera"}, "'palm' or 'given'"),
        ({"origin": "hips"}, "origin"),
        ({"scale": -1.0}, "scale"),
        ({"velocity": -1.0}, "velocity"),
        ({"velocity": {"right_index_1": "fast"}}, "velocity of 'right_index_1'"),
        ({"velocity": {"right_index_9": 1.0}}, "right_index_9"),
        ({"frame": "given", "side": "left"}, "source_side="),
        ({"points": np.full((3, 21, 3), np.nan)}, "points"),
        ({"points": [["thumb"]]}, "points"),
    ]
    for given, text in wrong:
        arguments = {"points": points, "fps": 30, "side": "right"} | given
        with pytest.raises(sy.SynoviaError, match=text):
            sy.retarget_hand(arguments.pop("points"), body, **arguments)
    with pytest.raises(sy.errors.UnsupportedError, match="no hand is found"):
        sy.retarget_hand(points, sy.bundled("arm7"), fps=30)


def test_velocities_by_joint_leave_the_usual_one_to_others(body: sy.Skeleton) -> None:
    points = pinching(body)
    answer = sy.retarget_hand(points, body, fps=30, side="right", velocity={"right_index_2": 1.0})
    steps = np.abs(np.diff(answer.motion.q, axis=0)) * 30.0
    assert steps[:, body.q_slice("right_index_2")].max() <= 1.0 + 1e-6
    assert steps.max() <= 15.0 + 1e-6


def gripper(*, narrow: float = 0.0) -> sy.Skeleton:
    """Return two fingers on slides, whose tips are from ``narrow`` to 80 mm + ``narrow`` apart."""
    joints = [sy.Joint("base")]
    for name, side in (("a", 1.0), ("b", -1.0)):
        rest, tip = np.eye(4), np.eye(4)
        rest[:3, 3], tip[:3, 3] = (side * (0.04 + 0.5 * narrow), 0.06, 0.0), (0.0, 0.05, 0.0)
        limit, axis = sy.Interval(0.0, 0.04), np.array((-side, 0.0, 0.0))
        joints += [
            sy.Joint(name, "base", kind=sy.Kind.SLIDE, rest=rest, axis=axis, limit=limit),
            sy.Joint(f"{name}_tip", name, rest=tip),
        ]
    return sy.Skeleton(joints, name="gripper", meters_per_unit=1.0)


@pytest.mark.parametrize("narrow", [0.0, 0.01])
def test_a_gripper_opens_as_far_as_the_fingers(body: sy.Skeleton, narrow: float) -> None:
    """Its width is that of thumb and index finger, also where its tips stay apart when it is closed."""
    points, hand = pinching(body), gripper(narrow=narrow)
    apart = np.linalg.norm(points[:, 8] - points[:, 4], axis=1)
    answer = sy.retarget_hand(points, hand, fps=30)
    live = sy.hands.LiveHand(hand, rate=30)
    poses = [live.step(frame) for frame in points]
    for q in (answer.motion.q, np.array([pose.q for pose in poses])):
        places = sy.Motion(hand, q, 30.0).positions()
        widths = np.linalg.norm(places[:, hand.index("a_tip")] - places[:, hand.index("b_tip")], axis=1)
        want = np.clip(answer.scale * apart, narrow, 0.08 + narrow)
        np.testing.assert_allclose(widths[[0, -1]], want[[0, -1]], atol=2e-3)
        assert widths[30] < narrow + 1e-4
    assert answer.verdict == "good", answer.report()
    assert answer.pinches[0].distance < 1e-4
    assert poses[30].status.name == "REACHED"
    half = sy.retarget_hand(points, hand, fps=30, scale=0.5 * answer.scale)
    assert np.linalg.norm(half.tips[0, 1] - half.tips[0, 0]) < 0.6 * np.linalg.norm(
        answer.tips[0, 1] - answer.tips[0, 0]
    )


def test_where_no_other_pose_is_tried_the_finding_says_so(body: sy.Skeleton) -> None:
    slow = {"a": 0.001, "b": 0.001}
    answer = sy.retarget_hand(pinching(body), gripper(), fps=30, velocity=slow)
    assert answer.pinches[0].distance > 2e-3
    assert answer.pinches[0].closable is None
    assert "other poses were not tried" in answer.report()


def test_one_frame_is_a_clip(body: sy.Skeleton) -> None:
    answer = sy.retarget_hand(sy.hands.hand_landmarks(body.rest_pose(), "right"), body, fps=30, side="right")
    assert len(answer.motion) == 1


def _followers_hold(skeleton: sy.Skeleton, q: Array) -> bool:
    for row, leader in skeleton.leader_rows.items():
        mimic, own, other = skeleton.joints[row].mimic, skeleton.q_slice(row).start, skeleton.q_slice(leader).start
        assert mimic is not None
        if np.abs(q[:, own] - mimic.ratio * q[:, other] - mimic.offset).max() > 1e-12:
            return False
    return True


@pytest.mark.shared_data
@pytest.mark.compiled
@pytest.mark.parametrize("name", PEER)
def test_the_recorded_hand_on_robot_hands(shared_data: Path, name: str) -> None:
    points = np.load(shared_data / "hands" / "human_right_hand.npz")["joints"]
    origin, scale, vector, step, pinch = PEER[name]
    skeleton = sy.load_skeleton(shared_data / "hands" / f"{name}_hand_right.urdf")
    answer = sy.retarget_hand(points, skeleton, fps=30, frame="given", origin=origin, scale=scale)
    q = answer.motion.q
    assert 1e3 * answer.errors.mean() <= 1.03 * vector + 0.3
    assert np.abs(np.diff(q, axis=0)).max() <= 1.05 * step
    gaps = np.linalg.norm(answer.tips - answer.tips[:, :1], axis=-1)
    ends = [TIPS[finger] for finger in answer.fingers]
    apart = np.linalg.norm(points[:, ends] - points[:, [4]], axis=-1)
    closed = apart < 0.02
    closed[:, 0] = False
    assert 1e3 * gaps[closed].mean() <= pinch + 3.0
    assert np.sum((gaps < 0.01) & (apart > 0.04)) <= 3
    missed = {one.finger for one in answer.pinches if one.distance > 0.002}
    assert missed == {one.limb for one in answer.findings if one.cause == "pinch"}
    for row, joint in enumerate(skeleton.joints):
        if isinstance(joint.limit, sy.Interval) and not joint.mimic:
            values = q[:, skeleton.q_slice(row).start]
            assert values.min() >= joint.limit.lower
            assert values.max() <= joint.limit.upper
    assert _followers_hold(skeleton, np.array(q))


def test_the_command_carries_a_recording(tmp_path: Path, body: sy.Skeleton) -> None:
    points = sy.hands.hand_landmarks(curling(body, "right"), "right")
    np.savez(tmp_path / "hand.npz", joints=points, fps=60.0)
    outcome = sy.jobs.RetargetHand("humanoid_hands", side="left")(tmp_path / "hand.npz", tmp_path / "out.npz")
    assert outcome.figures["verdict"] == "good"
    assert "pinches" in outcome.report().to_object()
    motion = sy.load_motion(tmp_path / "out.npz")
    assert motion.fps == 60.0
    assert len(motion) == len(points)


def capsule_hand(fingers: int = 3, *, thick: float = 0.008) -> sy.Skeleton:
    """Return a right hand of capsules: a box as palm, fingers along y that bend to z, and a thumb against them."""
    joints = [sy.Joint("palm", shapes=(sy.Box(center=(0.0, -0.04, -0.012), size=(0.08, 0.07, 0.012)),))]
    hinge = {"kind": sy.Kind.HINGE}
    for k, name in enumerate(("thumb", "index", "middle", "ring", "little")[: fingers + 1]):
        rest = np.eye(4)
        rest[:3, 3] = (0.045, -0.05, 0.0) if k == 0 else (0.03 - 0.022 * (k - 1), 0.0, 0.0)
        axes = [(0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 0.0, 0.0)]
        if k == 0:  # it points aside and opposes
            rest[:3, :3] = sy.Rotation.from_euler("ZX", (-35, 15), degrees=True).as_matrix()
            axes = [(0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0)]
        above = "palm"
        for n, axis in enumerate(axes):
            if n > 0:
                rest = np.eye(4)
                rest[1, 3] = (0.0, 0.0, 0.04, 0.028)[n]
            limit = sy.Interval(-0.5, 1.6) if n > 0 else sy.Interval(-0.6, 0.6)
            shapes = (
                () if n == 0 else (sy.Capsule(a=(0, 0.0, 0), b=(0, (0.0, 0.04, 0.028, 0.024)[n], 0), radius=thick),)
            )
            joints.append(
                sy.Joint(f"{name}_{n}", above, rest=rest, axis=np.array(axis), limit=limit, shapes=shapes, **hinge)
            )
            above = f"{name}_{n}"
        tip = np.eye(4)
        tip[1, 3] = 0.024
        joints.append(sy.Joint(f"{name}_tip", above, rest=tip))
    return sy.Skeleton(joints, name="capsules", meters_per_unit=1.0)


@pytest.mark.compiled
def test_pads_meet_and_fingers_do_not_pass_through_each_other(body: sy.Skeleton) -> None:
    """With a clearance, surfaces touch in a pinch, and overlap nowhere, in whole clips and live."""
    hand = capsule_hand()
    points = pinching(body)
    through = sy.retarget_hand(points, hand, fps=30)
    assert through.too_near[0].distance < -5e-3
    answer = sy.retarget_hand(points, hand, fps=30, clearance=0.0)
    assert all(one.distance > -1e-4 for one in answer.too_near)
    (pinch,) = [one for one in answer.pinches if one.finger == "index"]
    assert pinch.distance < 1e-3
    assert np.linalg.norm(answer.tips[30, 1] - answer.tips[30, 0]) > 5e-3
    assert not [one for one in answer.findings if one.cause == "overlap"]
    lower, upper = hand.limits
    assert (answer.motion.q >= lower - 1e-9).all()
    assert (answer.motion.q <= upper + 1e-9).all()
    assert np.abs(np.diff(answer.motion.q, axis=0)).max() <= 15.0 / 30.0 + 1e-9
    live = sy.hands.LiveHand(hand, rate=30, source_side="right", clearance=0.0)
    poses = [live.step(frame) for frame in points]
    clip = sy.Motion(hand, np.array([pose.q for pose in poses]), 30.0)
    from synovia.retargeting.hands.apart import overlaps_of

    assert all(one.distance > -1e-4 for one in overlaps_of(hand, live.hand, clip.q))
    assert poses[38].pinching == ("index",)
    assert poses[38].status is sy.Status.REACHED


def test_clearance_needs_shapes(body: sy.Skeleton) -> None:
    """A hand without shapes cannot keep a distance, and the error names what makes them."""
    bare = sy.Skeleton([sy.Joint(j.name, j.parent, kind=j.kind, rest=j.rest, axis=j.axis, limit=j.limit)
                        for j in capsule_hand().joints], name="bare")  # fmt: skip
    with pytest.raises(sy.InputError, match=r"clearance.*with_shapes"):
        sy.retarget_hand(pinching(body), bare, fps=30, clearance=0.0)
    with pytest.raises(sy.InputError, match="clearance"):
        sy.hands.LiveHand(bare, rate=30, clearance=0.001)
    with pytest.raises(sy.InputError, match="clearance"):
        sy.retarget_hand(pinching(body), capsule_hand(), fps=30, clearance=float("nan"))


def test_points_are_shown_beside_the_hand(body: sy.Skeleton) -> None:
    """The 21 points are more joints of the motion: as the hand lies, aside from it, and the hand moves as before."""
    answer = sy.retarget_hand(pinching(body), body, fps=30, side="right")
    shown = answer.with_points()
    assert len(shown.skeleton) == len(body) + 21
    np.testing.assert_array_equal(shown.q[:, : body.nq], answer.motion.q)
    places = shown.frames()[:, len(body) :, 9:]
    moved = places - answer.landmarks
    np.testing.assert_allclose(moved, np.broadcast_to(moved[0, 0], moved.shape), atol=1e-9)
    assert np.linalg.norm(moved[0, 0]) > answer.reach
    lines = set(bones_of(shown.skeleton))  # drawn are those with a length
    assert all(row in lines and shown.skeleton.lengths[row] > 0 for row in range(len(body) + 1, len(shown.skeleton)))


@pytest.mark.shared_data
@pytest.mark.compiled
@pytest.mark.parametrize("velocity", [None, 1000.0])
def test_a_pinch_closes_where_some_pose_closes_it(shared_data: Path, velocity: float | None) -> None:
    points = np.load(shared_data / "hands" / "human_right_hand.npz")["joints"]
    skeleton = sy.load_skeleton(shared_data / "hands" / "ability_hand_right.urdf")
    answer = sy.retarget_hand(points, skeleton, fps=30, velocity=velocity)
    pinch = answer.pinches[0]
    assert (pinch.finger, pinch.first) == ("index", 280)
    assert pinch.distance < 1e-6
    assert np.abs(np.diff(answer.motion.q, axis=0)).max() * 30 <= (velocity or 15.0) * (1 + 1e-12)
    for one in answer.pinches:
        assert one.closable or one.distance > 2e-3
    told = [one.text for one in answer.findings if one.cause == "pinch"]
    assert all("did not close" in text for text in told)


@pytest.mark.shared_data
@pytest.mark.compiled
def test_velocities_of_the_file_hold_exactly(shared_data: Path) -> None:
    points = np.load(shared_data / "hands" / "human_right_hand.npz")["joints"]
    skeleton = sy.load_skeleton(shared_data / "hands" / "leap_hand_right.urdf")
    answer = sy.retarget_hand(points, skeleton, fps=30, velocity="file")
    for row, joint in enumerate(skeleton.joints):
        if joint.velocity is not None:
            speeds = np.abs(np.diff(answer.motion.q[:, skeleton.q_slice(row)], axis=0)) * 30
            assert speeds.max() <= joint.velocity * (1 + 1e-12), skeleton.joint_names[row]


def own_errors(answer: sy.hands.RetargetedHand, pose: sy.Pose, *, palm: bool) -> NDArray[np.float64]:
    """Return the distances of an answer's landmarks from those of a pose, (21,), in the world or in the palm."""
    found: list[NDArray[np.float64]] = []
    for one in (answer.motion[0], pose):
        back = np.linalg.inv(one.transform(answer.hand.palm)) if palm else np.eye(4)
        found.append(sy.hands.hand_landmarks(one) @ back[:3, :3].T + back[:3, 3])
    return np.linalg.norm(found[0] - found[1], axis=1)


@pytest.mark.shared_data
@pytest.mark.compiled
@pytest.mark.parametrize("name", PEER)
def test_the_landmarks_of_a_hand_come_back_as_itself(shared_data: Path, name: str) -> None:
    skeleton = sy.load_skeleton(shared_data / "hands" / f"{name}_hand_right.urdf")
    points = np.zeros((21, 3))
    for pose in [skeleton.rest_pose(), *(skeleton.random_pose(seed) for seed in range(20))]:
        points = sy.hands.hand_landmarks(pose)  # a hand of four fingers has no little one
        answer = sy.retarget_hand(points, skeleton, fps=30, scale=1.0, source_side="right")
        assert np.nanmean(own_errors(answer, pose, palm=True)) < 3e-3
        given = sy.retarget_hand(points, skeleton, fps=30, scale=1.0, source_side="right", frame="given")
        assert np.nanmean(own_errors(given, pose, palm=False)) < 5e-3
    turn = sy.Rotation.from_euler("xyz", (0.4, -1.1, 2.0)).as_matrix()
    answer = sy.retarget_hand(300.0 * points @ turn + 7.0, skeleton, fps=30, source_side="right")
    assert answer.scale == pytest.approx(1 / 300, rel=1e-6)
    assert answer.errors.max() < 1e-3


def test_a_palm_takes_a_wrist_and_two_knuckles(body: sy.Skeleton) -> None:
    points = sy.hands.hand_landmarks(curling(body, "right"), "right")
    points[:, 13:] = np.nan
    answer = sy.retarget_hand(points, body, fps=30, side="right")
    assert answer.fingers == ("thumb", "index", "middle")
    assert answer.verdict != "failed", answer.report()
    points[:, 9:] = np.nan
    with pytest.raises(sy.InputError, match="the wrist and 2 knuckles"):
        sy.retarget_hand(points, body, fps=30, side="right")


@pytest.mark.shared_data
@pytest.mark.compiled
def test_mimic_joints_beyond_their_own_limits_are_told(shared_data: Path) -> None:
    points = np.load(shared_data / "hands" / "human_right_hand.npz")["joints"]
    skeleton = sy.load_skeleton(shared_data / "hands" / "ability_hand_right.urdf")
    told = [one for one in sy.retarget_hand(points, skeleton, fps=30).findings if "mimic" in one.text]
    assert [(one.cause, one.level) for one in told] == [("limits", "note")]
    assert "ring_q2 at 2.8" in told[0].text
    assert "leave the limits of their own" in told[0].text
    own: dict[str, tuple[float, float]] = {}
    for row in skeleton.leader_rows:
        limit = skeleton.joints[row].limit
        assert isinstance(limit, sy.Interval)
        own[skeleton.joint_names[row]] = (limit.lower, limit.upper)
    bound = sy.retarget_hand(points, skeleton.with_limits(own), fps=30)
    assert not [one for one in bound.findings if "mimic" in one.text]


@pytest.mark.shared_data
@pytest.mark.compiled
def test_points_move_a_robot_hand_whose_names_tell_no_fingers(shared_data: Path) -> None:
    points = np.load(shared_data / "hands" / "human_right_hand.npz")["joints"][:20]
    skeleton = sy.load_skeleton(shared_data / "hands" / "allegro_hand_right.urdf")
    fitted = sy.fit_keypoints(points, body=skeleton, preset="hand", fps=30)
    moved = np.ptp(np.array(fitted.q), axis=0) > 1e-6
    assert moved.sum() > 10  # the root and the fingers


def test_files_of_points_in_other_shapes(tmp_path: Path, body: sy.Skeleton) -> None:
    points = sy.hands.hand_landmarks(curling(body, "right", 5), "right")
    np.savez(tmp_path / "flat.npz", joints=points.reshape(5, 63))
    np.savez(tmp_path / "named.npz", wrist_and_fingers=points, other=np.zeros(3))
    np.save(tmp_path / "flat.npy", points.reshape(5, 63))
    for name in ("flat.npz", "named.npz", "flat.npy"):
        assert holds_hand(tmp_path / name)
        np.testing.assert_array_equal(read_hand(tmp_path / name).points, points)
    more = np.concatenate([points, points[:, :1]], axis=1)
    np.savez(tmp_path / "more.npz", joints=more)
    np.save(tmp_path / "more.npy", more)
    np.savez(tmp_path / "two.npz", a=points, b=points)
    for name, text in (
        ("more.npz", "'joints': \\(5, 22, 3\\)"),
        ("more.npy", "5, 22, 3"),
        ("two.npz", "several arrays"),
    ):
        assert holds_hand(tmp_path / name)
        with pytest.raises(sy.errors.FormatError, match=text):
            read_hand(tmp_path / name)
    sy.save_motion(curling(body, "right", 5), tmp_path / "clip.npz")
    assert not holds_hand(tmp_path / "clip.npz")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"fps": np.zeros(0)}, "fps cannot be used: expected one number"),
        ({"fps": np.array("thirty")}, "fps cannot be used"),
        ({"fps": np.array([30.0, 30.0])}, "fps cannot be used"),
        ({"fps": np.array(np.nan)}, "the frame rate cannot be used"),
        ({"side": np.array(["left", "right"])}, "side cannot be used: expected 'left' or 'right'"),
        ({"side": np.array(2)}, "side cannot be used"),
        ({"side": np.zeros(0, "<U5")}, "side cannot be used"),
        ({"confidence": np.full((5, 21), "high")}, "confidence cannot be used: expected numbers"),
        ({"joints": np.full((5, 21, 3), "1")}, "no points of a hand"),
    ],
)
def test_archives_of_hands_with_other_values(tmp_path: Path, more: dict[str, Any], says: str) -> None:
    np.savez(tmp_path / "a.npz", **({"joints": np.zeros((5, 21, 3))} | more))
    with pytest.raises(sy.errors.FormatError, match=says):
        read_hand(tmp_path / "a.npz")
    holds_hand(tmp_path / "a.npz")


@pytest.mark.parametrize("kind", ["<f8", "<f4", "<f2", "<i1"])
def test_small_archives_do_not_unpack_to_much(tmp_path: Path, kind: str) -> None:
    points = np.zeros((100_000, 21, 3), kind)
    for frames in (20_000, 100_000):
        np.savez_compressed(tmp_path / "a.npz", joints=points[:frames])
        assert (tmp_path / "a.npz").stat().st_size < 2**20
        with pytest.raises(sy.errors.FormatError, match="array is too large"):
            read_hand(tmp_path / "a.npz")
    np.savez(tmp_path / "whole.npz", joints=points[:20_000])
    assert len(read_hand(tmp_path / "whole.npz").points) == 20_000


def test_velocities_are_shares_of_those_of_the_file(body: sy.Skeleton) -> None:
    points = pinching(body)
    with pytest.raises(sy.InputError, match="no velocity limits"):
        sy.retarget_hand(points, body, fps=30, side="right", velocity="50%")
    for wrong in ("half", "-3%", "x%"):
        with pytest.raises(sy.InputError, match="'50%'"):
            sy.retarget_hand(points, body, fps=30, side="right", velocity=wrong)
    joints = [dataclasses.replace(one, velocity=4.0) if one.kind is sy.Kind.HINGE else one for one in body.joints]
    answer = sy.retarget_hand(points, body.with_joints(joints), fps=30, side="right", velocity="50%")
    hinges = [body.q_slice(row).start for row, one in enumerate(body.joints) if one.kind is sy.Kind.HINGE]
    assert np.abs(np.diff(answer.motion.q[:, hinges], axis=0)).max() * 30 <= 2.0 + 1e-9


def test_what_was_not_recorded_is_told(body: sy.Skeleton) -> None:
    points = sy.hands.hand_landmarks(body.rest_pose(), "right")
    points[1:5] = np.nan
    with pytest.raises(sy.InputError, match="all four points of 'index', 'middle', 'ring', 'little'"):
        sy.retarget_hand(points, body, fps=30, side="right")
    with pytest.raises(sy.InputError, match="clearance"):
        sy.retarget_hand(pinching(body), sy.with_shapes(body), fps=30, side="right", clearance=-1)


@pytest.mark.parametrize("side", ["left", "right"])
def test_frames_of_the_other_side_are_told(side: str) -> None:
    body = sy.bundled("humanoid_hands")
    points = sy.hands.hand_landmarks(curling(body, side), side)[10:30].copy()
    whole = sy.retarget_hand(points, body, fps=30, side=side)
    assert whole.others == ()
    assert "side" not in {one.cause for one in whole.findings}
    points[6:9] *= (-1.0, 1.0, 1.0)
    points[15] *= (1.0, 1.0, -1.0)
    told = sy.retarget_hand(points, body, fps=30, side=side)
    assert told.others == (6, 7, 8, 15)
    assert told.source_side == side
    found = next(one for one in told.findings if one.cause == "side")
    assert (found.frames, found.level) == ((6, 7, 8, 15), "look")
    assert told.verdict != "good"


@pytest.mark.parametrize("points_lost", [range(1, 5), range(6, 9)])
def test_a_gripper_holds_without_thumb_or_finger(body: sy.Skeleton, points_lost: range) -> None:
    """What is not seen has no distance, so that it must not close."""
    points = np.repeat(pinching(body)[:1], 60, axis=0)
    live = sy.hands.LiveHand(gripper(), rate=30)
    before = [live.step(frame) for frame in points][-1]
    lost, confidence = points[0].copy(), np.ones(21)
    lost[list(points_lost)] = np.nan
    placed = points[0].copy()
    placed[4] = placed[8]
    confidence[list(points_lost)] = 0.0
    for frame, trust in ((lost, None), (placed, confidence)):
        after = [live.step(frame, trust) for _ in range(60)][-1]
        assert "lost" in after.states.values()
        np.testing.assert_allclose(after.q, before.q, atol=2e-3)


@pytest.mark.parametrize("velocity", [None, "file", {}, 0.05])
def test_velocities_of_slides_are_lengths_per_second(body: sy.Skeleton, velocity: object) -> None:
    """Without one, a slide has no limit; with one it is that."""
    points = pinching(body)
    answer = sy.retarget_hand(points, gripper(), fps=30, velocity=velocity)
    speed = np.abs(np.diff(answer.motion.q, axis=0)).max() * 30.0
    live = sy.hands.LiveHand(gripper(), rate=30, velocity=velocity)
    q = np.array([live.step(frame).q for frame in points])
    follows = np.abs(np.diff(q, axis=0)).max() * 30.0
    if velocity == 0.05:
        np.testing.assert_allclose([speed, follows], 0.05, rtol=1e-6)
    else:
        assert min(speed, follows) > 0.06


def test_fingers_that_are_bent_back_are_no_hand_of_the_other_side(body: sy.Skeleton) -> None:
    points = sy.hands.hand_landmarks(body.rest_pose(), "right")
    points = np.repeat(points[None] * 0.09 / np.linalg.norm(points[9] - points[0]), 20, axis=0)
    frame = palm_of(points[:1], "right")[0]
    for first in (5, 9, 13, 17):
        angle, axis = np.radians(-25.0), frame[:3, 0]
        knuckle = points[:, first : first + 1]
        ways = points[:, first + 1 : first + 4] - knuckle
        along = (ways @ axis)[..., None] * axis
        points[:, first + 1 : first + 4] = (
            knuckle + np.cos(angle) * (ways - along) + np.sin(angle) * np.cross(axis, ways) + along
        )
    answer = sy.retarget_hand(points, body, fps=30, side="right", source_side="right")
    assert answer.others == ()


def test_joints_faster_than_their_file_are_told(body: sy.Skeleton) -> None:
    hand = gripper()
    slow = hand.with_joints(
        [dataclasses.replace(j, velocity=1e-3) if j.kind is sy.Kind.SLIDE else j for j in hand.joints]
    )
    assert "faster than their file allows" in sy.retarget_hand(pinching(body), slow, fps=30).report()
    assert "faster than" not in sy.retarget_hand(pinching(body), slow, fps=30, velocity="file").report()
