"""Hands whose fingers have closed loops follow recorded hands, and the loops stay closed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import synovia as sy
from mechanisms import mechanism_of

Array = NDArray[np.float64]
X, Z = np.array((1.0, 0.0, 0.0)), np.array((0.0, 0.0, 1.0))


def place(x: float, y: float, z: float = 0.0) -> Array:
    """Return the transform of a place."""
    out = np.eye(4)
    out[:3, 3] = x, y, z
    return out


def hinge(name: str, parent: str, rest: Array, axis: Array, low: float, high: float) -> sy.Joint:
    """Return a hinge with limits."""
    return sy.Joint(name, parent, kind=sy.Kind.HINGE, rest=rest, axis=axis, limit=sy.Interval(low, high))


def bar_hand(kind: str) -> sy.Skeleton:
    """Return a right hand whose last joints are driven by bars, crossed four-bars.

    Args:
        kind: ``"point"`` for bars that are links, ``"distance"`` for bars that are distances.
    """
    joints, loops = [sy.Joint("base")], list[sy.Loop]()
    end, pivot = np.array((0.0, -0.001, -0.007)), np.array((0.0, 0.008, 0.008))
    bar = end + np.array((0.0, 0.05, 0.0)) - pivot
    for k in range(5):
        start, aside = place(0.033 - 0.022 * (k - 1), 0.0), 0.6
        if k == 0:
            start, aside = place(0.04, -0.05, 0.01), 1.3
            start[:2, :2] = (math.cos(1.0), math.sin(1.0)), (-math.sin(1.0), math.cos(1.0))
        joints += [
            hinge(f"a{k}", "base", start, Z, -aside, aside),
            hinge(f"b{k}", f"a{k}", place(0.0, 0.005), X, -0.3, 1.6),
            hinge(f"c{k}", f"b{k}", place(0.0, 0.045), X, -0.3, 1.8),
            sy.Joint(f"tip{k}", f"c{k}", rest=place(0.0, 0.035)),
        ]
        if k and kind == "point":
            joints.append(hinge(f"bar{k}", f"a{k}", place(*pivot), X, -2.0, 2.0))
            loops.append(sy.Loop(f"bar{k}", f"c{k}", offset=bar, other_offset=end))
        elif k:
            far = float(np.linalg.norm(bar))
            loops.append(sy.Loop(f"a{k}", f"c{k}", "distance", offset=pivot, other_offset=end, distance=far))
    return sy.Skeleton(joints, name="bar hand", meters_per_unit=1.0).with_loops(loops)


def closing(frames: int = 30) -> Array:
    """Return 21 points of a right hand whose fingers bend and whose index finger then touches the thumb."""
    body = sy.bundled("humanoid_hands")
    hand, q = sy.hand_of(body, "right"), np.tile(body.rest_q, (frames, 1))
    for finger in hand.fingers[1:]:
        for key in finger.flexion:
            limit = body.joint(key).limit
            assert isinstance(limit, sy.Interval)
            far = limit.upper if abs(limit.upper) > abs(limit.lower) else limit.lower
            q[:, body.q_slice(key).start] = 0.35 * far * np.sin(np.linspace(0.0, np.pi, frames))
    points = sy.hands.hand_landmarks(sy.Motion(body, q, 30.0), "right")
    points *= 0.09 / np.linalg.norm(points[0, 9] - points[0, 0])
    share = np.interp(np.arange(frames), [frames - 10, frames - 4], [0.0, 1.0])
    middle = 0.5 * (points[:, 4] + points[:, 8])
    for k in (4, 8):
        points[:, k] += share[:, None] * (middle - points[:, k])
    return points


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["point", "distance"])
def test_loops_stay_closed(kind: str) -> None:
    """In every frame, whole clips and live; joints keep their limits and velocities, and pinches close."""
    hand, points = bar_hand(kind), closing()
    mechanism = mechanism_of(hand)
    assert [finger.joints for finger in sy.hand_of(hand).fingers] == [(f"a{k}", f"b{k}", f"c{k}") for k in range(5)]
    answer = sy.retarget_hand(points, hand, fps=30)
    live = sy.hands.LiveHand(hand, rate=30, source_side="right")
    poses = [live.step(frame) for frame in points]
    for q in (answer.motion.q, np.array([pose.q for pose in poses])):
        assert mechanism.lacks(q).max() < 1e-9
        assert np.abs(np.diff(q, axis=0)).max() <= 15.0 / 30.0 + 1e-6
        assert np.ptp(q[:, hand.q_slice("c1").start]) > 0.3
        low, high = hand.limits
        assert (q >= low - 1e-9).all()
        assert (q <= high + 1e-9).all()
    assert [one.finger for one in answer.pinches] == ["index"]
    assert answer.pinches[0].distance < 1e-3
    assert poses[-1].pinching == ("index",)


def test_loops_that_no_goal_holds_are_refused() -> None:
    hand = bar_hand("distance")
    tied = hand.with_loops([sy.Coupling({"b1": (1.0, 0.2), "c1": -1.0}, name="cam")])
    with pytest.raises(sy.errors.UnsupportedError, match=r"cam.*coupling"):
        sy.retarget_hand(closing(2), tied, fps=30)
