"""A hand that follows a tracked one frame by frame: pinches, losses, limits."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import synovia as sy

RATE = 30.0


@pytest.fixture(scope="module")
def body() -> sy.Skeleton:
    return sy.bundled("humanoid_hands")


def open_points(body: sy.Skeleton) -> NDArray[np.float64]:
    """Return the 21 points of an open right hand of usual size."""
    points = sy.hands.hand_landmarks(body.rest_pose(), "right")
    return points * 0.09 / np.linalg.norm(points[9] - points[0])


def closing(body: sy.Skeleton, frames: int = 60) -> NDArray[np.float64]:
    """Return points whose index finger touches the thumb in frames 20 to 39."""
    points = np.repeat(open_points(body)[None], frames, axis=0)
    share = np.interp(np.arange(frames), [5, 20, 39, 54], [0.0, 1.0, 1.0, 0.0])
    middle = 0.5 * (points[:, 8] + points[:, 4])
    for k in (4, 8):
        points[:, k] += share[:, None] * (middle - points[:, k])
    return points


def lost(pose: sy.live.Tick) -> list[str]:
    """Return the fingers that were not seen."""
    return [finger for finger, state in pose.states.items() if state == "lost"]


def speeds(q: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.abs(np.diff(q, axis=0)).max(axis=1) * RATE


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_pinch_closes_and_opens_within_the_velocity(body: sy.Skeleton, side: str) -> None:
    live = sy.hands.LiveHand(body, rate=RATE, side=side, source_side="right")
    poses = [live.step(frame) for frame in closing(body)]
    assert [pose.pinching for pose in poses[22:38]] == [("index",)] * 16
    assert all(pose.status is sy.Status.REACHED for pose in poses[26:38])
    assert all(len(pose.errors) == 5 for pose in poses)
    points = np.array([sy.hands.hand_landmarks(pose, side) for pose in poses])
    gaps = np.linalg.norm(points[:, 8] - points[:, 4], axis=-1)
    assert gaps[24:38].max() < 1e-3
    assert min(gaps[0], gaps[-1]) > 0.02
    assert speeds(np.array([pose.q for pose in poses])).max() <= 15.0 + 1e-6


def test_it_ends_where_the_recording_does(body: sy.Skeleton) -> None:
    points = closing(body)
    live = sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right")
    last = [live.step(frame) for frame in points][-1]
    whole = sy.retarget_hand(points, body, fps=RATE, side="right", source_side="right")
    np.testing.assert_allclose(last.q, whole.motion.q[-1], atol=0.05)


@pytest.mark.parametrize("clearance", [None, 0.0])
def test_a_recording_that_is_known_as_a_whole_has_the_answer_of_retarget_hand(
    body: sy.Skeleton, clearance: float | None
) -> None:
    target = sy.with_shapes(body) if clearance is not None else body
    points, options = closing(body), {"side": "left", "source_side": "right", "clearance": clearance}
    live = sy.hands.LiveHand(target, rate=RATE, look_ahead=None, **options)
    assert {live.step(frame).status for frame in points} == {sy.Status.HOLDING}
    ticks, whole = live.finish(), sy.retarget_hand(points, target, fps=RATE, **options)
    np.testing.assert_array_equal([tick.q for tick in ticks], whole.motion.q)
    assert live.scale == whole.scale
    (pinch,) = whole.pinches
    assert [k for k, tick in enumerate(ticks) if tick.pinching] == list(range(pinch.first, pinch.end))
    np.testing.assert_array_equal([[one.position for one in tick.errors] for tick in ticks], whole.errors)


def test_a_hand_that_knows_some_frames_ahead_is_nearer_to_the_recording(body: sy.Skeleton) -> None:
    """It keeps the velocity where windows meet, follows what waits when points are lost, and then holds."""
    points = closing(body, 120)
    whole = sy.retarget_hand(points, body, fps=RATE, side="right", source_side="right").motion.q
    off = []
    for seconds in (0.0, 0.8):
        live = sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right", look_ahead=seconds)
        ticks = [live.step(frame) for frame in points]
        ticks += [live.step(None) for _ in range(24)]
        follows = [tick for tick in ticks if tick.status is not sy.Status.HOLDING]
        assert len(follows) == len(points)
        q = np.array([tick.q for tick in follows])
        assert speeds(np.array([tick.q for tick in ticks])).max() <= 15.0 + 1e-6
        off.append(np.abs(q - whole)[10:].mean())
        assert live.step(None).status is sy.Status.HOLDING
    assert off[1] < 0.5 * off[0]


def test_lost_points_hold_and_return_without_a_jump(body: sy.Skeleton) -> None:
    points = closing(body)
    live = sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right", velocity=4.0)
    before = [live.step(frame) for frame in points[:10]]
    held = [live.step(None) for _ in range(50)]
    assert {pose.status for pose in held} == {sy.Status.HOLDING}
    assert all(np.array_equal(pose.q, before[-1].q) for pose in held)
    after = [live.step(frame) for frame in points[30:50]]
    q = np.array([pose.q for pose in (*before, *held, *after)])
    assert speeds(q).max() <= 4.0 + 1e-6
    wild = points[10].copy()
    wild[[0, 5]] = np.nan  # without wrist and knuckles there is no palm
    assert live.step(wild).status is sy.Status.HOLDING
    wild = points[10].copy()
    wild[8] = np.nan
    assert lost(live.step(wild)) == ["index"]
    for flat in (np.zeros((21, 3)), np.tile(points[10, :1], (21, 1)), np.linspace((0, 0, 0), (0, 1, 0), 21)):
        pose = live.step(flat)  # points in line show no palm
        assert pose.status is sy.Status.HOLDING
        assert np.isfinite(pose.q).all()
    confidence = np.ones(21)
    confidence[0] = 0.0
    assert live.step(points[10], confidence).status is sy.Status.HOLDING


def test_it_starts_with_the_fingers_that_are_seen(body: sy.Skeleton) -> None:
    """The others follow from the first frame that shows them, without a jump."""
    live = sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right")
    whole = bent(body, 0.8)
    thumb = whole.copy()
    thumb[5:] = np.nan
    assert live.step(thumb).status is sy.Status.HOLDING
    assert live.fingers == ()
    some = whole.copy()
    some[[12, 17, 18, 19, 20]] = np.nan  # also without the knuckle of the little finger
    first = [live.step(some) for _ in range(30)]
    assert first[-1].status is sy.Status.REACHED
    assert live.fingers == ("thumb", "index", "ring")
    then = [live.step(whole) for _ in range(30)]
    assert live.fingers == ("thumb", "index", "middle", "ring", "little")
    assert then[-1].status is sy.Status.REACHED
    assert speeds(np.array([pose.q for pose in (*first, *then)])).max() <= 15.0 + 1e-6
    points = [sy.hands.hand_landmarks(pose, "right") for pose in (first[-1], then[-1])]
    moved = np.linalg.norm(points[1] - points[0], axis=1)
    assert moved[[4, 8, 16]].max() < 0.01 < moved[[12, 20]].min()  # metres
    live.reset()
    assert live.fingers == ()


def test_hidden_knuckles_are_where_the_palm_has_them(body: sy.Skeleton) -> None:
    points = closing(body)
    two = [sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right") for _ in range(2)]
    for k, frame in enumerate(points):
        turned = frame @ sy.Rotation.from_euler("xyz", (0.02 * k, 0.03 * k, 0.05 * k)).as_matrix().T
        hidden = turned.copy()
        if k > 3:
            hidden[[9, 17] if k % 2 else [5]] = np.nan
        one, other = two[0].step(turned), two[1].step(hidden)
        assert other.status is one.status
        np.testing.assert_allclose(other.q, one.q, atol=1e-6)


def test_mirrored_points_are_told(body: sy.Skeleton) -> None:
    live = sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right")
    points = bent(body, 0.8)
    assert not any("mirrored" in line for line in live.step(points).explain())
    told = live.step(points * (-1.0, 1.0, 1.0)).explain()
    assert any("left hand" in line and "mirrored" in line for line in told)


def test_what_holds_a_hand_back_is_told(body: sy.Skeleton) -> None:
    points = closing(body)
    slow = sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right", velocity=0.2)
    pose = [slow.step(frame) for frame in points[:25]][-1]
    assert pose.status is sy.Status.LATE
    assert pose.states == dict.fromkeys(slow.fingers, "late")
    assert set(pose.limited.values()) == {"velocity"}
    assert any("At its limit of velocity" in line for line in pose.explain())
    far = points[0].copy()
    far[8] += (0.0, 0.0, 0.3)  # where no finger is
    live = sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right", scale=1.0 / 1.0)
    live.step(points[0])
    pose = [live.step(far) for _ in range(60)][-1]
    assert pose.status is sy.Status.STALLED
    assert np.argmax([error.position for error in pose.errors]) == live.fingers.index("index")
    assert pose.lag.position == max(error.position for error in pose.errors)
    assert [finger for finger, state in pose.states.items() if state == "missed"] == ["index"]


def test_points_that_show_no_palm_are_waited_out(body: sy.Skeleton) -> None:
    live = sy.hands.LiveHand(body, rate=RATE, side="right")
    assert live.step(np.zeros((21, 3))).status is sy.Status.HOLDING
    assert live.fingers == ()


def test_what_cannot_be_used_is_told(body: sy.Skeleton) -> None:
    with pytest.raises(sy.InputError, match="rate"):
        sy.hands.LiveHand(body, rate=0, side="right")
    with pytest.raises(sy.errors.UnsupportedError, match="2 hands"):
        sy.hands.LiveHand(body, rate=30)
    live = sy.hands.LiveHand(body, rate=30, side="right")
    with pytest.raises(sy.InputError, match="points"):
        live.step(np.zeros((20, 3)))
    with pytest.raises(sy.InputError, match="pose of"):
        live.reset(sy.bundled("arm7").rest_pose())


@pytest.mark.shared_data
@pytest.mark.compiled
@pytest.mark.parametrize("name", ["allegro", "shadow"])
def test_the_recorded_hand_live(shared_data: Path, name: str) -> None:
    points = np.load(shared_data / "hands" / "human_right_hand.npz")["joints"]
    skeleton = sy.load_skeleton(shared_data / "hands" / f"{name}_hand_right.urdf")
    live = sy.hands.LiveHand(skeleton, rate=RATE, source_side="right")
    q = np.array([live.step(frame).q for frame in points])
    whole = sy.retarget_hand(points, skeleton, fps=RATE, scale=live.scale)
    landmarks = sy.hands.hand_landmarks(sy.Motion(skeleton, q, RATE))
    ends = [{"thumb": 4, "index": 8, "middle": 12, "ring": 16, "little": 20}[one] for one in whole.fingers]
    errors = np.linalg.norm(landmarks[:, ends] - whole.targets, axis=-1)
    assert errors.mean() <= 1.15 * whole.errors.mean() + 1e-3
    assert speeds(q).max() <= 15.0 + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_no_joint_is_faster_than_allowed_whatever_is_seen(body: sy.Skeleton, seed: int) -> None:
    rng, points = np.random.default_rng(seed), closing(body)
    live = sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right", velocity=3.0)
    begun = None
    if seed % 2:
        begun = body.rest_pose()
        live.reset(begun)
    poses = [] if begun is None else [begun.q]
    for _ in range(60):
        frame, confidence = points[rng.integers(len(points))].copy(), np.ones(21)
        kind = rng.integers(5)
        if kind == 1:
            frame[rng.integers(21, size=rng.integers(1, 21))] = np.nan
        elif kind == 2:
            confidence[rng.integers(21, size=rng.integers(1, 21))] = 0.0
        elif kind == 3:
            frame = np.full((21, 3), (np.nan, 0.0)[rng.integers(2)])
        pose = live.step(None if kind == 4 else frame, confidence if kind == 2 else None)
        assert np.isfinite(pose.q).all()
        poses.append(pose.q)
    assert speeds(np.array(poses)).max() <= 3.0 * (1.0 + 1e-6)


def test_a_first_frame_without_points_counts_as_a_pose(body: sy.Skeleton) -> None:
    live = sy.hands.LiveHand(body, rate=RATE, side="right")
    held = live.step(None)
    after = live.step(closing(body)[25])
    assert speeds(np.array([held.q, after.q])).max() <= 15.0 + 1e-6


def test_a_reset_takes_poses_alone(body: sy.Skeleton) -> None:
    live = sy.hands.LiveHand(body, rate=RATE, side="right")
    with pytest.raises(sy.InputError, match=r"sy\.Pose\(skeleton, q\)"):
        live.reset(np.zeros(body.nq))


def bent(body: sy.Skeleton, by: float) -> NDArray[np.float64]:
    """Return the points of a right hand whose fingers are bent, an adult's size."""
    hand, pose = sy.hand_of(body, "right"), body.rest_pose()
    values = {key: by for finger in hand.fingers[1:] for key in finger.flexion}
    points = sy.hands.hand_landmarks(pose.with_values(values), "right")
    return points * 0.09 / np.linalg.norm(points[9] - points[0])


def test_a_finger_that_is_not_seen_stays_bent(body: sy.Skeleton) -> None:
    """The pull to the rest pose does not open it, live or in a clip."""
    seen = bent(body, 0.8)
    hidden = seen.copy()
    hidden[5 + 1 : 9] = np.nan
    live = sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right")
    before = [live.step(seen) for _ in range(30)][-1]
    after = [live.step(hidden) for _ in range(150)][-1]
    assert lost(after) == ["index"]
    parts = [body.q_slice(body.value_index(key)) for key in sy.hand_of(body, "right").fingers[1].joints]
    for part in parts:
        assert abs(after.q[part] - before.q[part]).max() < 0.12
    clip = np.array([seen] * 30 + [hidden] * 150)
    answer = sy.retarget_hand(clip, body, fps=RATE, side="right", source_side="right")
    for part in parts:
        assert np.abs(np.diff(answer.motion.q[[29, -1], part], axis=0)).max() < 0.12
    assert "gap" in {one.cause for one in answer.findings}


def test_the_palm_is_where_the_pose_is_that_it_begins_from(body: sy.Skeleton) -> None:
    """A body that stands elsewhere, with a bent arm, follows as it does at rest."""
    points = closing(body)
    fingers = [key for finger in sy.hand_of(body, "right").fingers for key in finger.joints]
    parts = np.concatenate([np.arange(body.nq)[body.q_slice(body.value_index(key))] for key in fingers])
    moved = body.random_pose(5)
    q = np.array(moved.q)
    q[parts] = body.rest_q[parts]
    begun = sy.Pose(body, q)
    two = [sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right") for _ in range(2)]
    two[0].reset(body.rest_pose())
    two[1].reset(begun)
    for frame in points:
        here, there = (live.step(frame) for live in two)
        np.testing.assert_allclose(there.q[parts], here.q[parts], atol=5e-3)
        assert there.pinching == here.pinching
    assert there.status is here.status is sy.Status.REACHED


def test_a_pose_far_beyond_its_limits_is_no_beginning(body: sy.Skeleton) -> None:
    hand = sy.hand_of(body, "right")
    row = body.value_index(hand.fingers[1].flexion[1])
    limit, at = body.joints[row].limit, body.q_slice(row).start
    assert isinstance(limit, sy.Interval)
    live = sy.hands.LiveHand(body, rate=RATE, side="right")
    q = np.array(body.rest_q)
    q[at] = limit.upper + 0.3
    with pytest.raises(sy.InputError, match=str(body.joint_names[row])):
        live.reset(sy.Pose(body, q))
    q[at] = limit.upper + 0.01
    live.reset(sy.Pose(body, q))
    assert live.step(None).q[at] == limit.upper


def test_a_pose_is_copied_whole(body: sy.Skeleton) -> None:
    live = sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right")
    pose = [live.step(frame) for frame in closing(body)[:25]][-1]
    for one in (pickle.loads(pickle.dumps(pose)), copy.deepcopy(pose)):
        assert isinstance(one, sy.live.Tick)
        np.testing.assert_array_equal(one.q, pose.q)
        assert (one.status, one.errors, one.pinching) == (pose.status, pose.errors, pose.pinching)
        assert (one.states, one.limited, one.explain()) == (pose.states, pose.limited, pose.explain())


def test_confidence_may_say_only_whether_points_are_seen(body: sy.Skeleton) -> None:
    live = sy.hands.LiveHand(body, rate=RATE, side="right", source_side="right")
    seen, points = np.ones(21, bool), open_points(body)
    live.step(points, seen)
    seen[8] = False
    assert lost(live.step(points, seen)) == ["index"]
