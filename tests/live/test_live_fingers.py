"""Live retargeting carries fingers: between bodies by their directions, and from landmarks of both hands."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import synovia as sy
from synovia.clips.hands.carrying import angles_off
from synovia.model.motion import Motion
from synovia.retargeting.fingers import Hands
from synovia.retargeting.pairing import paired

BODY = sy.bundled("humanoid_hands").with_root("free")
COUNT = 24


def fist(deep: float = 0.7) -> Motion:
    """Return a clip in which both hands close and open."""
    q = np.repeat(BODY.rest_q[None], COUNT, axis=0)
    for side in ("left", "right"):
        for finger in sy.hand_of(BODY, side).fingers:
            for key in finger.flexion:
                limit = BODY.joints[BODY.index(key)].limit
                if isinstance(limit, sy.Interval):
                    q[:, BODY.q_slice(key)] = deep * limit.upper * np.sin(np.linspace(0.0, np.pi, COUNT))[:, None]
    return Motion(BODY, q, 30.0)


def off(clip: Motion, q: NDArray[np.float64], target: sy.Skeleton, skip: int = 0) -> float:
    """Return the largest mean angle of a finger between a clip and joint values of its target, degrees."""
    pair = paired(clip, target)
    frames = Motion(pair.target.skeleton, q, 30.0).frames()
    hands = Hands.of(pair.source, pair.target, pair.turns)
    found = [
        angle[skip:].max()
        for one, other in hands.pairs.values()
        for angle in angles_off(one, other, (clip.frames(), frames)).values()
    ]
    assert len(found) == 10
    return float(np.degrees(max(found)))


def test_a_fist_arrives_pose_by_pose() -> None:
    """Fingers point as those of the source in the frames of the palms, as in whole clips, within their limits."""
    clip, target = fist(), sy.bundled("humanoid_hands")
    live = sy.LiveRetarget(BODY, target, rate=30, learn=0)
    q = np.array([live.step(row).q for row in clip.q])
    assert off(clip, q, target) < 1.0
    live.reset()
    again = np.array([live.step(row).q for row in clip.q])
    np.testing.assert_array_equal(again, q)


def with_followers(body: sy.Skeleton) -> sy.Skeleton:
    """Return a body whose last joints of fingers follow those before."""
    ends = {
        finger.joints[-1]: sy.Mimic(str(finger.joints[-2]), 0.9)
        for side in ("left", "right")
        for finger in sy.hand_of(body, side).fingers[1:]
    }
    joints = [
        sy.Joint(j.name, j.parent, kind=j.kind, rest=j.rest, axis=j.axis, limit=j.limit, mimic=ends[j.name])
        if j.name in ends
        else j
        for j in body.joints
    ]
    return sy.Skeleton(joints, name="robot", up=body.up, forward=body.forward, meters_per_unit=body.meters_per_unit)


@pytest.mark.compiled
def test_fingers_that_follow_others_are_carried() -> None:
    """Joints that follow others bend too, whole clips and live alike, and followers equal their leaders."""
    clip, target = fist(), with_followers(sy.bundled("humanoid_hands"))
    answer = sy.retarget(clip, target)
    assert off(clip, answer.motion.q, target) < 8.0
    live = sy.LiveRetarget(BODY, target, rate=30, learn=0)
    q = np.array([live.step(row).q for row in clip.q])
    assert off(clip, q, target) < 8.0
    body = answer.motion.skeleton
    for values in (answer.motion.q, q):
        for row, leader in body.leader_rows.items():
            error = values[:, body.q_slice(row).start] - 0.9 * values[:, body.q_slice(leader).start]
            assert np.abs(error).max() < 1e-12


def landmarks(clip: Motion) -> NDArray[np.float64]:
    """Return 33 + 21 + 21 landmarks of a clip in the axes of MediaPipe, metres."""
    from synovia.clips.landmarks import OF_ROLES, PRESETS

    roles = {landmark: role for role, landmark in OF_ROLES.items()}
    out = np.full((len(clip), 75, 3), np.nan)
    for at, name in enumerate(PRESETS["mediapipe"]):
        side = name.partition("_")[0]
        role = roles.get(name, "head")
        for k in range(len(clip)):
            pose = clip[k]
            out[k, at] = pose.position(role if role in BODY.role_rows else "head")
            if name.endswith("index"):
                out[k, at] = sy.hands.hand_landmarks(pose, side)[5]
    out[:, 33:54], out[:, 54:] = sy.hands.hand_landmarks(clip, "left"), sy.hands.hand_landmarks(clip, "right")
    return out * (1.0, -1.0, -1.0) * (BODY.meters_per_unit or 1.0)


@pytest.mark.compiled
def test_landmarks_of_body_and_hands_move_a_character() -> None:
    """33 + 21 + 21 points: fingers follow; a hand that is not seen holds; the body is built from the first frames."""
    clip = fist()
    points = np.concatenate([np.repeat(landmarks(clip)[:1], 20, axis=0), landmarks(clip)])
    live = sy.LiveRetarget(None, sy.bundled("humanoid_hands"), rate=30, learn=0)
    poses = [live.step(one) for one in points]
    assert poses[10].status is sy.Status.HOLDING
    assert poses[-1].status is not sy.Status.HOLDING
    q = np.array([pose.q for pose in poses[20:]])
    assert off(clip, q, sy.bundled("humanoid_hands"), skip=2) < 12.0
    lost = points[20 + COUNT // 2].copy()
    before = [live.step(lost) for _ in range(8)][-1]
    lost[54:] = np.nan
    after = live.step(lost)
    for finger in sy.hand_of(BODY, "right").fingers:
        for key in finger.joints:
            where = live.skeleton.q_slice(key)
            np.testing.assert_allclose(after.q[where], before.q[where], atol=0.02)


def test_points_of_one_hand_are_told_where_to_go() -> None:
    """21 points alone, other counts, and a hand as target: the error names what takes them."""
    live = sy.LiveRetarget(None, sy.bundled("humanoid_hands"), rate=30)
    with pytest.raises(sy.InputError, match=r"got \(21, 3\).*LiveHand"):
        live.step(np.zeros((21, 3)))
    with pytest.raises(sy.InputError, match=r"\(75, 3\).*got \(20, 3\)"):
        live.step(np.zeros((20, 3)))
    known = sy.LiveRetarget(BODY, sy.bundled("humanoid_hands"), rate=30)
    with pytest.raises(sy.InputError, match=r"got \(75, 3\).*LiveRetarget\(None"):
        known.step(np.zeros((75, 3)))
    hinge = {"kind": sy.Kind.HINGE, "axis": np.array((1.0, 0.0, 0.0)), "limit": sy.Interval(0.0, 1.5)}
    joints = [sy.Joint("palm")]
    for k, name in enumerate(("thumb", "index", "middle")):
        for n, above in enumerate(("palm", f"{name}_0")):
            rest = np.eye(4)
            rest[:3, 3] = (0.03 * k, 0.0, 0.0) if n == 0 else (0.0, 0.04, 0.0)
            joints.append(sy.Joint(f"{name}_{n}", above, rest=rest, **hinge))
    with pytest.raises(sy.errors.UnsupportedError, match=r"only a hand.*LiveHand"):
        sy.LiveRetarget(None, sy.Skeleton(joints, name="hand"), rate=30)


@pytest.mark.compiled
def test_hands_without_counterparts_are_relaxed_as_in_retarget() -> None:
    body, source = sy.bundled("humanoid_hands"), sy.bundled("humanoid").with_root("free")
    clip = sy.Motion(source, [source.rest_q] * 30, 30.0)
    made = sy.retarget(clip, body, idle_hands="relaxed", clearance=None)
    live = sy.LiveRetarget(source, body, rate=30, learn=0, idle_hands="relaxed")
    q = live.step(clip[0]).q
    for side in ("left", "right"):
        for finger in sy.hand_of(live.skeleton, side).fingers:
            for joint in finger.joints:
                at, own = live.skeleton.q_slice(joint), made.motion.skeleton.q_slice(joint)
                turn = sy.Rotation.from_quat(q[at]).inv() if at.stop - at.start == 4 else None
                far = (
                    q[at] - made.motion.q[0, own]
                    if turn is None
                    else (turn * sy.Rotation.from_quat(made.motion.q[0, own])).as_rotvec()
                )
                np.testing.assert_allclose(far, 0.0, atol=1e-6)
    rest = sy.LiveRetarget(source, body, rate=30, learn=0).step(clip[0])
    assert np.abs(rest.q - q).max() > 0.05
    with pytest.raises(sy.InputError, match="idle_hands"):
        sy.LiveRetarget(source, body, rate=30, idle_hands="bent")
