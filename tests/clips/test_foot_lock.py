"""Foot lock: feet that slide are held, none sinks, the rest of the body hardly notices; and what cannot be done."""

import numpy as np
import pytest

import synovia as sy
from foot_figures import foot_figures
from synovia.errors import InputError, UnknownNameError, UnsupportedError
from synovia.model.anatomy.contacts import find_contacts
from synovia.model.anatomy.feet import feet_of
from synovia.model.anatomy.up import find_up

BODY = sy.bundled("humanoid")
FPS = 30.0
FRAMES = 400  # of a recorded walk: several steps of each foot


def sliding_walk(frames=90):
    """Return a walk on the spot whose standing feet slide and dip below the floor."""
    rest = BODY.rest_pose()
    time = np.arange(frames) / FPS
    targets = {}
    for side, phase in (("left_foot", 0.0), ("right_foot", np.pi)):
        swing = np.clip(np.sin(2 * np.pi * time + phase), 0.0, None)
        place = np.tile(rest.position(side), (frames, 1))
        place[:, 1] += 0.12 * swing - 0.004 * np.sin(9 * time)
        place[:, 2] += 0.1 * np.cos(2 * np.pi * time + phase) * (swing > 0) + 0.03 * time
        targets[side] = place
    hips = np.tile(rest.position("hips"), (frames, 1)) - (0.0, 0.05, 0.0)
    hips[:, 0] += 0.02 * np.sin(2 * np.pi * time)
    ik = sy.IK(BODY, [sy.PositionGoal(name) for name in ("left_foot", "right_foot", "hips")], root="free")
    return ik.track({**targets, "hips": hips}, fps=FPS).motion


@pytest.mark.compiled
def test_standing_feet_stand_still_above_the_floor(monkeypatch):
    """Slides shrink twentyfold, nothing is below the floor, and what is not root or leg keeps its bits."""
    walk = sliding_walk()
    seen = []
    locked = sy.foot_lock(walk, progress=lambda done, of: seen.append(done / of))
    assert locked.up == "y"
    assert locked.slide_before > 0.02
    assert locked.slide < locked.slide_before / 20
    assert locked.depth_before > 0.002
    assert locked.depth < 0.001
    for name in ("left_upper_arm", "head", "right_hand"):
        place = walk.skeleton.q_slice(name)
        np.testing.assert_array_equal(locked.motion.q[:, place], walk.q[:, place])
    assert np.degrees(np.abs(locked.motion.q - walk.q)).max() < 40
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    np.testing.assert_array_equal(sy.foot_lock(walk, threads=1).motion.q, locked.motion.q)
    monkeypatch.setattr("synovia.tracking.trajectory.solve.WINDOW", 50)
    monkeypatch.setattr("synovia.tracking.trajectory.solve.LEAD", 20)
    seen.clear()
    in_parts = sy.foot_lock(walk, progress=lambda done, of: seen.append(done / of))
    assert seen == sorted(seen)
    assert in_parts.slide < locked.slide_before / 20
    assert np.abs(in_parts.motion.q - locked.motion.q).max() < 0.05


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize(("name", "up", "unit"), [("cmu_07_01_walk", "z", 0.056444), ("pymo_8walk", "y", 0.0254)])
def test_real_walks(shared_data, name, up, unit):
    """On recorded walks, by figures that know nothing of how feet are locked."""
    walk = sy.load_motion(shared_data / "motion" / f"{name}.bvh")
    walk = sy.Motion(walk.skeleton, walk.q[:FRAMES], walk.fps)
    figures = foot_figures(walk, sy.foot_lock(walk).motion, up, unit)
    assert figures["speed_ratio"] > 20
    assert figures["penetration_after_mm"] < 1
    assert figures["mean_change_of_other_joints_deg"] < 3
    assert figures["acceleration_peak_ratio"] < 1.5
    assert figures["angular_acceleration_peak_ratio"] < 1.5


def test_contacts_are_low_and_slow_without_gaps():
    """A point that rests, leaves and comes back; a gap of one frame in a rest is closed, a way to elsewhere is not."""
    places = np.zeros((60, 1, 3))
    places[20:40, 0, 1] = np.hanning(20)
    places[20:, 0, 0] = np.minimum(np.arange(40) * 0.1, 2.0)
    places[10, 0, 1] = 1e-4
    found = find_contacts(places, np.array([0.0, 1.0, 0.0]), 60.0).spans[0]
    assert found[0][0] == 0
    assert 17 <= found[0][1] <= 22
    assert all(first >= 36 or last <= 22 for first, last in found)


def test_a_foot_that_turns_back_in_the_air_does_not_stand():
    """Its mean speed around the frame is 0, but it is as fast before as after."""
    places = np.zeros((30, 1, 3))
    places[:, 0, 0] = 0.1 * np.abs(np.arange(30) - 15.0)
    up = np.array([0.0, 1.0, 0.0])
    assert find_contacts(places, up, 30.0).stands[15, 0]
    assert not find_contacts(places, up, 30.0, 0.8).any.any()


def test_steps_after_a_long_stand_are_contacts_beside_a_leg():
    """The foot stands for three seconds, then takes steps of half a second that wander by a millimetre a frame."""
    t = np.arange(180)
    step = (t >= 90) & ((t // 15) % 2 == 0)
    places = np.zeros((180, 1, 3))
    places[:, 0, 0] = np.cumsum(np.where(step, 0.05, np.where(t < 90, 0.0, 0.001)))
    places[:, 0, 1] = np.where(step, 0.1, 0.0)
    up = np.array([0.0, 1.0, 0.0])
    stands = find_contacts(places, up, 30.0, 1.0).any
    middle = ~step & (t % 15 > 2) & (t % 15 < 12)
    assert stands[middle].all()
    assert not stands[step & (t % 15 > 2) & (t % 15 < 12)].any()
    assert not find_contacts(places, up, 30.0).any[middle].all()


def test_feet_are_found_by_role_by_name_and_as_told():
    """Roles first, then names; a toe belongs to its foot."""
    assert [BODY.joint_names[foot.joints[0]] for foot in feet_of(BODY)] == ["left_foot", "right_foot"]
    leg = sy.Skeleton.chain(
        [(0, 1, 0), (0, 0.5, 0), (0, 0.1, 0), (0, 0, 0.1)], names=["hip", "knee", "LeftFoot", "tip"]
    )
    foot = feet_of(leg)[0]
    assert foot.points == (2, 3)
    assert foot.joints == (2, 3)
    assert feet_of(leg, ["knee"])[0].joints == (1, 2, 3)
    with pytest.raises(UnknownNameError, match="kne"):
        feet_of(leg, ["kne"])
    with pytest.raises(UnsupportedError, match="--feet"):
        feet_of(sy.bundled("arm7"))


def test_what_cannot_be_locked_is_refused():
    """Too short, no such axis, no time to fade in, a floor that is no number."""
    still = sy.Motion(BODY, np.repeat(BODY.rest_q[None], 8, axis=0), FPS)
    with pytest.raises(UnsupportedError, match="too short"):
        sy.foot_lock(sy.Motion(BODY, still.q[:3], FPS))
    with pytest.raises(InputError, match="up: expected x, y, z"):
        sy.foot_lock(still, up="up")
    for fade in (0.0, -1.0, 100.0, np.nan):
        with pytest.raises(InputError, match="fade"):
            sy.foot_lock(still, fade=fade)
    with pytest.raises(InputError, match="floor"):
        sy.foot_lock(still, floor=np.inf)


def test_the_way_up_is_read_from_the_clip():
    """Heads are above feet; a body that lies on its side does not tell."""
    leg = sy.Skeleton.chain(
        [(0, 0, 1), (0, 0, 0.5), (0, 0, 0.1), (0, 0.1, 0)], names=["hip", "knee", "LeftFoot", "tip"]
    )
    assert find_up(leg, leg.rest_q[None]).name == "z"
    bent = sy.Skeleton.chain([(0, 1, 1), (0, 0.5, 0.5), (0, 0, 0), (0, 0, 0)], names=["hip", "knee", "LeftFoot", "tip"])
    with pytest.raises(InputError, match="--up"):
        find_up(bent, bent.rest_q[None]).certain("bent")


@pytest.mark.compiled
@pytest.mark.slow
def test_a_planted_toe_stays_when_its_heel_lifts(shared_data):
    """The ends of these feet are no joints; nowhere does the lock make one much faster than it was."""
    motion = sy.load_motion(shared_data / "motion" / "bvhtoolbox_walk01.bvh")
    locked = sy.foot_lock(motion)
    rows = [motion.skeleton.index(f"{side}Foot_end") for side in ("Left", "Right")]
    assert set(rows) <= set(locked.feet)
    before, after = (
        np.linalg.norm(np.diff(one.positions()[:, rows], axis=0), axis=-1) * motion.fps
        for one in (motion, locked.motion)
    )
    assert (after - before).max() < 45.0  # centimetres a second
    slow = before < 20.0
    assert (after - before)[slow].max() < 35.0
