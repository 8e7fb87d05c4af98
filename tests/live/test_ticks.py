"""One tick for servos, live bodies and live hands: a pose with its motion, its status, and what holds it back."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import synovia as sy

pytestmark = pytest.mark.compiled
RATE = 60.0
FIELDS = ("time", "status", "states", "errors", "lag", "limited", "speeds", "stamps", "behind", "standing", "pinching")


def of_servo() -> list[sy.live.Tick]:
    servo = sy.Servo(sy.bundled("arm7"), sy.PositionGoal("tool"), rate=RATE, velocity=1.0, acceleration=8.0)
    servo.reset("rest")
    return [servo.step((0.4, 0.1, 0.5)) for _ in range(20)]


def of_body() -> list[sy.live.Tick]:
    body = sy.bundled("humanoid").with_root("free")
    live = sy.LiveRetarget(body, body, rate=RATE, learn=0, velocity=0.5, acceleration=4.0)
    turns = sy.Rotation.from_euler("z", np.linspace(0.0, 0.8, 20)[:, None]).as_quat()
    return [live.step(body.rest_pose().with_values({"right_upper_arm": turn})) for turn in turns]


def of_hand() -> list[sy.live.Tick]:
    hands = sy.bundled("humanoid_hands")
    live = sy.hands.LiveHand(hands, rate=RATE, side="right", velocity=0.5)
    points = sy.hands.hand_landmarks(hands.rest_pose(), "right")
    bent = points.copy()
    bent[8] -= 0.5 * (points[8] - points[5])
    return [live.step(points if k < 5 else bent) for k in range(20)]


@pytest.fixture(scope="module", params=[of_servo, of_body, of_hand])
def ticks(request: Any) -> list[sy.live.Tick]:
    return request.param()


def test_a_tick_is_a_pose_with_its_motion(ticks: list[sy.live.Tick]) -> None:
    assert {type(tick) for tick in ticks} == {sy.live.Tick}
    skeleton = ticks[0].skeleton
    clip = sy.Motion(skeleton, [tick.q for tick in ticks], RATE)
    step = np.concatenate([np.zeros((1, skeleton.nv)), np.array(differences(clip))]) * RATE
    for k in range(2, len(ticks)):
        tick, pose = ticks[k], ticks[k].pose
        assert type(pose) is sy.Pose
        np.testing.assert_array_equal(pose.q, tick.q)
        np.testing.assert_array_equal(pose.frames, tick.frames)
        assert tick.velocity.shape == tick.acceleration.shape == (skeleton.nv,)
        np.testing.assert_allclose(tick.velocity, step[k], atol=0.02)
        assert tick.time == pytest.approx(ticks[k - 1].time + 1.0 / RATE)
    assert np.abs([tick.velocity for tick in ticks]).max() > 0.1


def differences(clip: sy.Motion) -> list[np.ndarray[Any, Any]]:
    """The displacement of each frame from the one before, in the order of the velocities."""
    out: list[np.ndarray[Any, Any]] = []
    for k in range(1, len(clip)):
        parts: list[Any] = []
        for row, joint in enumerate(clip.skeleton.joints):
            a, b = (clip.q[f, clip.skeleton.q_slice(row)] for f in (k - 1, k))
            if joint.kind in (sy.Kind.BALL, sy.Kind.FREE):
                turn = sy.Rotation.from_quat(a[-4:]).inv() * sy.Rotation.from_quat(b[-4:])
                parts += [b[:-4] - a[:-4], turn.as_rotvec()]
            else:
                parts.append(b - a)
        out.append(np.concatenate(parts))
    return out


def test_a_late_tick_says_what_holds_it_back(ticks: list[sy.live.Tick]) -> None:
    late = [tick for tick in ticks if tick.status is sy.Status.LATE and tick.limited]
    assert late
    for tick in late:
        assert not tick.reached
        assert "late" in tick.states.values()
        assert max(tick.lag) > 0.0
        assert all(0.0 <= share <= 1.0 + 1e-6 for share in tick.speeds.values())
        assert all(tick.speeds[joint] > 0.999 for joint, limit in tick.limited.items() if limit == "velocity")
        assert any("limit" in line for line in tick.explain())
        assert repr(tick).startswith("<Tick late")


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_of_a_tick_is_whole(ticks: list[sy.live.Tick], way: Callable[[Any], Any]) -> None:
    for tick in (ticks[0], ticks[-1]):
        other = way(tick)
        assert type(other) is sy.live.Tick
        for field in FIELDS:
            assert getattr(other, field) == getattr(tick, field), field
        np.testing.assert_array_equal(other.velocity, tick.velocity)
        np.testing.assert_array_equal(other.acceleration, tick.acceleration)
        assert other.explain() == tick.explain()
