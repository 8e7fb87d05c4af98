"""The 21 landmarks of a hand: side and palm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import synovia as sy
from synovia.model.anatomy.hands.landmarks import FINGER_POINTS, palm_of, side_of


def hand(bend: float, *, left: bool = False) -> NDArray[np.float64]:
    """Return the landmarks (21, 3) of a hand whose palm faces z; fingers along y bend by an angle at each joint."""
    points = np.zeros((21, 3))
    points[0] = 0.0, -0.09, 0.0
    points[1:5] = (0.02, -0.07, 0.01), (0.04, -0.05, 0.02), (0.05, -0.03, 0.03), (0.06, -0.02, 0.035)
    for k, name in enumerate(("index", "middle", "ring", "little")):
        place, turn = np.array((0.03 - 0.02 * k, 0.0, 0.0)), 0.0
        for row in FINGER_POINTS[name]:
            points[row] = place
            turn += bend
            place = place + 0.03 * np.array((0.0, np.cos(turn), np.sin(turn)))
    return points * (-1.0, 1.0, 1.0) if left else points


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("degrees", [0.0, 10.0, 45.0, 85.0])
def test_palm_and_side_of_points(left: bool, degrees: float) -> None:
    """A flat hand and a fist show the same palm, for both sides, wherever the hand is."""
    rng = np.random.default_rng(3)
    turns = sy.Rotation.random(5, random_state=1).as_matrix()
    moves = rng.normal(size=(5, 3))
    points = np.einsum("tij,kj->tki", turns, hand(np.radians(degrees), left=left)) + moves[:, None]
    side = "left" if left else "right"
    assert side_of(points) == side
    for frames in (palm_of(points), palm_of(points, side)):
        np.testing.assert_allclose(frames[:, :3, :3], turns, atol=1e-12)
        np.testing.assert_allclose(frames[:, :3, 3], moves, atol=1e-12)
        np.testing.assert_array_equal(frames[:, 3], np.tile((0.0, 0.0, 0.0, 1.0), (5, 1)))


def test_what_is_not_seen_and_what_is_wrong() -> None:
    """Frames without a knuckle are NaN, and other shapes and sides are refused."""
    points = np.tile(hand(0.5), (3, 1, 1))
    points[1, 9] = np.nan
    frames = palm_of(points)
    assert np.isnan(frames[1, :3]).all()
    assert np.isfinite(frames[[0, 2]]).all()
    with pytest.raises(sy.InputError, match="points"):
        palm_of(points[:, :20])
    with pytest.raises(sy.InputError, match="side"):
        palm_of(points, "Left")


@pytest.mark.shared_data
def test_each_frame_of_a_recorded_hand_shows_its_side(shared_data: Path) -> None:
    """One frame is enough for a recorded right hand, and for its mirror image."""
    points = np.load(shared_data / "hands" / "human_right_hand.npz")["joints"]
    for frame in points[::5]:
        assert side_of(frame[None]) == "right"
        assert side_of(frame[None] * (1.0, -1.0, 1.0)) == "left"
