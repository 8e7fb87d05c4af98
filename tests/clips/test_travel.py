"""The path of a body that is known relative to its hips: standing feet, flights under gravity, and what is told."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jumps
import landmark_tables as tables
import synovia as sy
from synovia.clips.travel import find_flights, find_travel

pytestmark = pytest.mark.compiled  # whole bodies in many frames
REPO = Path(__file__).parents[2]


def centred(motion):
    """Return joint values with the middle of the hips at the origin in every frame."""
    q = motion.q.copy()
    q[:, :3] -= jumps.hips(motion)
    return q


def off(path, truth):
    """Return the largest distance of a path from another that begins at the same place, (3,)."""
    return np.abs((path - path[0]) - (truth - truth[0])).max(0)


@pytest.mark.parametrize("fps", [24.0, 30.0, 60.0, 120.0])
@pytest.mark.parametrize("tuck", [0.0, 0.3])
def test_jumps_are_as_high_and_long_as_they_were(fps, tuck):
    """Landmarks at the hips' origin have no jump in them; gravity and the legs determine it within 2 cm."""
    motion, air = jumps.jumping(tuck=tuck, fps=fps)
    truth = jumps.hips(motion)
    travel = find_travel(motion.skeleton, centred(motion), fps)
    assert len(travel.flights) == len(air)
    for flight, (first, end) in zip(travel.flights, air, strict=True):
        assert abs(flight.first - first) <= max(1.0, fps / 30.0) + 1
        assert abs(flight.end - end) <= max(1.0, fps / 30.0) + 1
        assert flight.off < 0.5
    assert off(travel.path, truth).max() < 0.02
    assert not travel.adrift.any()
    assert not any("uncertain" in note for note in travel.notes())


def test_the_same_jump_on_a_body_of_another_size():
    """A person of 2 length units a metre falls with gravity of 19.6 length units."""
    motion, _ = jumps.jumping()
    body = motion.skeleton
    twice = []
    for joint in body.joints:
        rest = joint.rest.copy()
        rest[:3, 3] *= 2.0
        twice.append(replace(joint, rest=rest, com=2.0 * joint.com, shapes=()))
    large = body.with_joints(twice)
    one = find_travel(body, centred(motion), motion.fps)
    two = find_travel(large, centred(motion), motion.fps, metre=2.0)
    np.testing.assert_allclose(two.path, 2.0 * one.path, atol=1e-6)
    bare = body.with_joints([replace(joint, mass=0.0) for joint in body.joints])
    assert off(find_travel(bare, centred(motion), motion.fps).path, one.path).max() < 0.03


def test_a_walk_has_no_flight_and_its_feet_stand():
    walk = sy.load_motion(REPO / "examples" / "walk.bvh")
    body = walk.skeleton
    travel = find_travel(body, centred(walk), walk.fps)
    truth = jumps.hips(walk)
    assert not travel.flights
    assert off(travel.path, truth).max() < 0.05 * np.ptp(truth, axis=0).max()
    assert not any("uncertain" in note for note in travel.notes())
    rows = [row for row in range(len(body)) if "foot" in body.joint_names[row] or "toe" in body.joint_names[row]]
    q = centred(walk)
    q[:, :3] += travel.path
    assert abs(sy.Motion(body, q, walk.fps).positions()[:, rows, 1].min()) < 0.05  # the floor has height 0


def test_feet_that_slide_are_told():
    """Both feet are on the floor and slide apart and together, so no foot says where the hips are."""
    body = jumps.body()
    swing = 0.5 * np.sin(np.linspace(0.0, 20.0, 120))
    q = np.tile(body.rest_q, (120, 1))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        turns = np.outer(sign * swing, [1.0, 0.0, 0.0])
        q[:, body.q_slice(f"{side}_upper_leg")] = sy.Rotation.from_rotvec(turns).as_quat()
        q[:, body.q_slice(f"{side}_foot")] = sy.Rotation.from_rotvec(-0.9 * turns).as_quat()
    travel = find_travel(body, q, 30.0)
    assert travel.adrift.mean() > 0.15
    assert any("no foot stands still" in note for note in travel.notes())


def test_jumps_whose_feet_spread_at_take_off_and_landing_are_told():
    """In jumping jacks, the feet move apart while they are on the floor: no foot shows where the flight goes."""
    motion, air = jumps.jumping()
    q, frames = centred(motion), np.arange(len(motion))
    spread = np.max([np.interp(frames, (a - 3, a + 3, b - 3, b + 3), (0.0, 1.0, 1.0, 0.0)) for a, b in air], axis=0)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        at = motion.skeleton.q_slice(f"{side}_upper_leg")
        turn = sy.Rotation.from_rotvec(np.outer(0.4 * sign * spread, (0.0, 0.0, 1.0)))
        q[:, at] = (turn * sy.Rotation.from_quat(q[:, at])).as_quat()
    travel = find_travel(motion.skeleton, q, motion.fps)
    assert len(travel.flights) == len(air)
    assert travel.wander > 0.1
    assert any("may be off by 0." in note for note in travel.notes())
    assert find_travel(motion.skeleton, centred(motion), motion.fps).wander < 0.05


def test_a_stop_that_gravity_does_not_explain_is_told():
    """Legs that are pulled from the floor faster than the body falls make a flight whose ends do not fit."""
    heights = np.full(90, 1.0)
    heights[40:50] -= 0.4 * np.sin(np.linspace(0.0, np.pi, 10))
    flights = find_flights(heights, np.zeros(89), 30.0)
    assert [flight for flight in flights if flight.off > 0.8]
    assert not find_flights(np.full(90, 1.0), np.zeros(89), 30.0)


def test_bends_of_the_knees_are_no_flights():
    """The body sinks slower than it falls, and rises without leaving the floor."""
    time = np.arange(120) / 30.0
    for depth, rate in ((0.4, 0.7), (0.1, 1.4)):
        assert depth * (2.0 * np.pi * rate) ** 2 / 2.0 < 9.81
        heights = 0.9 - 0.5 * depth * (1.0 - np.cos(2.0 * np.pi * rate * time))
        assert not find_flights(heights, np.zeros(119), 30.0)


@pytest.mark.parametrize("frames", [1, 2, 3, 5])
def test_few_frames_have_a_path(frames):
    motion, _ = jumps.jumping()
    part = motion[:frames]
    assert find_travel(part.skeleton, centred(part), 30.0).path.shape == (frames, 3)


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.004])
def test_landmarks_of_a_camera_jump(noise):
    """MediaPipe's landmarks of jumps: hips at the origin, y down. The notes say what is not known."""
    motion, air = jumps.jumping(crouches=(0.2, 0.28))
    truth = jumps.hips(motion)
    places = tables.landmarks(motion, "mediapipe", metre=1.0)
    seen = tables.monocular(places, motion.fps, noise=noise) if noise else places * [1.0, -1.0, -1.0]
    fitted = sy.fit_keypoints(seen, fps=motion.fps)
    found = jumps.hips(fitted)
    np.testing.assert_allclose(tables.rises(found, air), tables.rises(truth, air), atol=0.03)
    away = (found - found.mean(0)) - (truth - truth.mean(0))
    assert np.abs(away).max() < max(0.15 * np.ptp(truth, axis=0).max(), 25.0 * noise)
    assert any("in the air in 2 flights" in note for note in fitted.notes)
    assert any("how far from the camera" in note for note in fitted.notes)


@pytest.mark.shared_data
@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("preset", ["mediapipe", "openpose"])
def test_jumping_jacks_of_a_real_person_keep_their_flights(shared_data, preset):
    clip = sy.load_motion(shared_data / "motion" / "cmu_jumping_jacks.bvh")
    metre = 1.0 / 0.056444  # length units of this laboratory
    seen = tables.landmarks(clip, preset, metre=metre) * [1.0, -1.0, -1.0]
    fitted = sy.fit_keypoints(seen, preset=preset, fps=clip.fps)
    truth, found = tables.path(clip) / metre, tables.path(fitted)
    spans = tables.flights(clip, metre)
    assert len(spans) >= 5
    np.testing.assert_allclose(tables.rises(found, spans), tables.rises(truth, spans), atol=0.03)
    away = np.linalg.norm((found - found.mean(0)) - (truth - truth.mean(0)), axis=1).max()
    assert away < 0.15 * np.ptp(truth, axis=0).max() or any("uncertain path" in note for note in fitted.notes)


@pytest.mark.shared_data
@pytest.mark.compiled
@pytest.mark.slow
def test_a_dance_whose_heights_are_no_parabolas_is_told(shared_data):
    """In this recording with inertial sensors, bodies fall twice as fast as with gravity, and standing feet slide."""
    clip = sy.load_motion(shared_data / "motion" / "rokoko_jesse_dance.bvh")[:450:3]
    fitted = sy.fit_keypoints(tables.landmarks(clip, "mediapipe", metre=100.0) * [1.0, -1.0, -1.0], fps=clip.fps)
    assert any("uncertain path" in note for note in fitted.notes)
    assert sy.judge(fitted).verdict != "good"
