"""A frame of tracked points as its kernel takes it: what fingers aim at, and frames without a palm."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import synovia as sy
from synovia.ik import pursuit
from synovia.kernels.layout import FREE_Q, HAND_Q, NO_PALM, WATCH
from synovia.retargeting.hands.aims import aims_of
from synovia.retargeting.hands.follower import HandFollower
from synovia.retargeting.hands.recording import read_recording
from synovia.retargeting.hands.tracked import TrackedHand

RATE = 30.0
Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def body() -> sy.Skeleton:
    return sy.bundled("humanoid_hands")


def moved(points: Array, seed: int, frames: int = 5) -> Array:
    """Return points in other places, attitudes, and shapes that are a little different, (frames, 21, 3)."""
    rng = np.random.default_rng(seed)
    turns = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(frames)]
    turns = [R * np.sign(np.linalg.det(R)) for R in turns]
    noisy = points + 0.004 * rng.normal(size=(frames, *points.shape))
    return np.array([one @ R.T + rng.normal(size=3) for one, R in zip(noisy, turns, strict=True)])


def tracked_of(body: sy.Skeleton, points: Array, side: str, frame: str = "palm") -> TrackedHand:
    """Return a hand of the body that follows a right hand."""
    recording = read_recording(points[:1], None, "right", RATE)
    aims = aims_of(recording, body, sy.hand_of(body, side), frame, None, 1.1)
    follower = HandFollower(body, aims.moving, RATE, None)
    tracked = TrackedHand(follower, aims, recording, RATE, on_palm=frame == "palm")
    tracked.q[[FREE_Q, HAND_Q]] = body.rest_pose().q
    return tracked


@pytest.mark.parametrize(("side", "frame"), [("right", "palm"), ("left", "palm"), ("right", "given")])
def test_fingers_aim_where_those_of_a_recording_do(body: sy.Skeleton, side: str, frame: str) -> None:
    points = moved(sy.hands.hand_landmarks(body.rest_pose(), "right"), 3)
    tracked = tracked_of(body, points, side, frame)
    hand = sy.hand_of(body, side)
    for one in points:
        recording = read_recording(one[None], None, "right", RATE)
        aims = aims_of(recording, body, hand, frame, None, 1.1)
        tracked.aim(one)
        count = len(aims.fingers)
        places = tracked.table[: 2 * count, [3, 7, 11]]
        ways = places[count:] / np.linalg.norm(places[count:], axis=1, keepdims=True)
        np.testing.assert_allclose(places[:count], aims.tips[0], atol=1e-12)
        np.testing.assert_allclose(ways, aims.directions[0], atol=1e-9)
        np.testing.assert_array_equal(tracked.weights[: 2 * count], 1.0)
        np.testing.assert_array_equal(tracked.weights[2 * count :], 0.0)


def test_errors_are_distances_from_the_targets(body: sy.Skeleton) -> None:
    points = moved(sy.hands.hand_landmarks(body.rest_pose(), "right"), 4, 12)
    tracked = tracked_of(body, points, "left")
    for one in points:
        assert tracked.step(one, np.ones(21)) != NO_PALM
        tips = sy.hands.hand_landmarks(sy.Pose(body, tracked.q[HAND_Q]), "left")[[4, 8, 12, 16, 20]]
        off = np.linalg.norm(tips - tracked.table[:5, [3, 7, 11]], axis=1)
        np.testing.assert_allclose(tracked.errors, off, atol=1e-12)
        np.testing.assert_allclose(tracked.gaps, np.linalg.norm(tips - tips[0], axis=1), atol=1e-12)


@pytest.mark.parametrize(
    ("point", "value"),
    [(0, math.nan), (5, math.inf), (9, math.nan), (13, -math.inf), (17, math.nan)],
)
def test_without_a_palm_nothing_moves(body: sy.Skeleton, point: int, value: float) -> None:
    """A palm has a wrist and two knuckles."""
    points = moved(sy.hands.hand_landmarks(body.rest_pose(), "right"), 5)
    tracked = tracked_of(body, points, "right")
    tracked.step(points[0], np.ones(21))
    before = tracked.q.copy()
    lost, unseen = points[1].copy(), np.ones(21)
    others = [k for k in (5, 9, 13, 17) if k != point][:2] if point else []
    lost[[point, *others], 1] = value
    assert tracked.step(lost, np.ones(21)) == NO_PALM
    unseen[[point, *others]] = 0.0
    assert tracked.step(points[1], unseen) == NO_PALM
    unseen[[point, *others]] = math.nan
    assert tracked.step(points[1], unseen) == NO_PALM
    assert tracked.step(np.outer(np.arange(21.0), (1.0, 2.0, 3.0)), np.ones(21)) == NO_PALM  # in line
    np.testing.assert_array_equal(tracked.q, before)


def test_a_finger_that_is_not_seen_is_drawn_to_its_last_target(body: sy.Skeleton) -> None:
    points = moved(sy.hands.hand_landmarks(body.rest_pose(), "right"), 6)
    tracked = tracked_of(body, points, "right")
    points[1, 7] = math.nan  # the other end of the last segment of the index finger
    for one in points:
        tracked.step(one, np.ones(21))
        assert np.isfinite(tracked.q).all()
        assert tracked.seen.all() == np.isfinite(one).all()
    tracked.step(points[1], np.ones(21))
    before = tracked.table.copy()
    tracked.step(points[1], np.ones(21))
    np.testing.assert_array_equal(tracked.table[[1, 6]], before[[1, 6]])
    assert tracked.weights[[1, 6]].max() < tracked.weights[0]
    assert tracked.errors[1] == 0.0


def test_what_is_left_in_memory_does_not_count(body: sy.Skeleton, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goals that are off write no residuals, and memory may hold anything where these would be."""
    points = moved(sy.hands.hand_landmarks(body.rest_pose(), "right"), 8)
    expected = tracked_of(body, points, "right")
    clean = pursuit.new_scratch

    def dirty(size: int) -> Array:
        memory = clean(size)
        memory[WATCH:] = math.nan
        return memory

    monkeypatch.setattr(pursuit, "new_scratch", dirty)
    tracked = tracked_of(body, points, "right")
    for one in points:
        for hand in (expected, tracked):
            hand.step(one, np.ones(21))
        np.testing.assert_array_equal(tracked.q, expected.q)
