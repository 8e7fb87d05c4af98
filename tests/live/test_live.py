"""Live retargeting: it follows as ``retarget`` does, keeps limits and feet, and survives what sources do."""

import time
from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from conftest import REPO
from live.limits import faster_than
from synovia.errors import FileError, FormatError, InputError, UnknownNameError
from synovia.model.anatomy.planting import FootPlaces
from synovia.retargeting.clearance import pairs_too_near
from synovia.retargeting.judging.measure import Figures
from synovia.servo.joints import LimitedBody

SPEED, ACCELERATION = 6.0, 60.0


@pytest.fixture(scope="module")
def walk():
    return sy.load_motion(REPO / "examples" / "walk.bvh")


@pytest.fixture(scope="module")
def character():
    return sy.load_skeleton(REPO / "examples" / "character.glb")


@pytest.fixture(scope="module")
def known(walk, character):
    return sy.live.LiveCalibration.learn(walk[: round(walk.fps)], character)


def followed(live, poses):
    """Return the clip of the poses of a live body."""
    return sy.Motion(live.skeleton, np.array([live.step(pose).q for pose in poses]), live.rate)


@pytest.mark.shared_data
def test_bodies_follow_clips_about_as_closely_live_as_whole(shared_data):
    """Directions of limbs, by the judge: not knowing later frames costs at most 5 %."""
    body, off = sy.bundled("humanoid"), []
    for path in sorted((shared_data / "motion").glob("*.bvh")):
        clip = sy.load_motion(path)[:600]
        calibration = sy.live.LiveCalibration.learn(clip[: max(2, round(clip.fps))], body)
        live = sy.LiveRetarget(clip.skeleton, body, rate=clip.fps, calibration=calibration)
        followed(live, clip)
        limbs = sy.retarget(clip, body, clearance=None).judgement.figures.limbs
        off.append([
            np.mean([limb["mean_deg"] for limb in live.report().facts["limbs"]]),
            np.degrees(np.mean([limb.mean for limb in limbs])),
        ])  # fmt: skip
    now, whole = np.mean(off, axis=0)
    assert now <= 1.05 * whole


def test_toes_that_stood_bent_return_at_a_bounded_speed(walk, character):
    """The toes are bent by 42° when they leave the ground, at frame 56."""
    live = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, learn=0.2)
    clip = followed(live, walk)
    turns = clip.q[:, clip.skeleton.q_slice(clip.skeleton.index("mixamorig:LeftToeBase"))]
    steps = 2.0 * np.arccos(np.clip(np.abs(np.sum(turns[1:] * turns[:-1], axis=1)), 0.0, 1.0))
    at_most = 2.0 * 3.0 / walk.fps  # of the correction, and of the foot's turn back to its own direction
    assert steps[52:64].max() <= at_most
    assert not [found for found in live.report().facts["findings"] if found["cause"] == "step"]


@pytest.mark.compiled
def test_it_follows_as_closely_as_retarget_and_its_feet_stand(walk, character, known):
    made = sy.retarget(walk, character, clearance=None)
    shared = {role: (made.source.roles[role], made.target.roles[role]) for role in made.carried}
    live = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, calibration=known)
    clip = followed(live, [walk[k] for k in range(len(walk))])
    mine, theirs = (Figures(motion, walk, shared, (None, None)) for motion in (clip, made.motion))
    off = [float(np.mean([limb.mean for limb in one.limbs])) for one in (mine, theirs)]
    assert off[0] <= 1.15 * off[1] + np.radians(0.5)
    slides = [max(foot.slide for foot in one.feet) for one in (mine, theirs)]
    assert slides[0] <= 2.0 * slides[1] + 0.01
    judged = sy.judge(clip, walk, shared).report().facts
    report = live.report()
    facts = report.facts
    assert {key: facts[key] for key in judged} == judged  # live frames are judged as those of a clip
    assert facts["verdict"] == "good"
    assert facts["ticks"] == len(walk)
    assert max(limb["mean_deg"] for limb in facts["limbs"]) < 10.0
    assert 0.3 < facts["standing"] <= 1.0
    assert report.startswith("verdict: good")


@pytest.mark.compiled
def test_losses_are_no_jumps_and_a_long_session_is_judged_by_blocks(walk, character, known):
    """The body is judged where it follows its source: not in ticks that hold, nor while it moves over."""
    live = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, calibration=known, timeout=0.1)
    for begin in (0, 40, 10, 60):
        for pose in walk[begin : begin + 35]:
            live.step(pose)
        for _ in range(8):
            live.step(None)
    report = live.report()
    assert report.losses == 4
    assert not [one for one in report.findings if one["cause"] in ("jump", "step", "contacts", "direction")]
    assert {limb["limb"] for limb in report.limbs} >= {"trunk", "left_upper_arm"}
    frames = 0
    for _ in range(40):
        for pose in walk:
            live.step(pose)
    blocks = [*live._judge._blocks, live._judge._next]
    frames = sum(len(block.ticks) for block in blocks)
    assert 800 <= frames <= 17 * 4 * walk.fps
    assert blocks[0].ticks[0] < 100
    assert blocks[-1].ticks[-1] > 4000
    begun = time.perf_counter()
    text = live.report()
    assert time.perf_counter() - begun < 20.0
    assert live.report() == text
    assert "off its source" in text


@pytest.mark.compiled
def test_feet_turn_where_soles_would_be_below_the_floor(walk, character, known):
    live = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, calibration=known)
    frames = followed(live, [walk[k] for k in range(len(walk))]).frames()
    target = known.pairing.target
    low = np.min([sole.lowest(frames, target.basis[:, 1]) for sole in target.soles.values()], axis=0)
    assert np.quantile(low, 0.05) > -0.005 * target.leg  # -0.08 with feet that do not turn


@pytest.mark.compiled
def test_limbs_move_out_of_each_other_and_return():
    """Arms that swing into the legs stay outside; where nothing overlaps, the pose is that without a clearance."""
    body = sy.bundled("humanoid")
    source, poses = body.with_root("free"), []
    for share in (*np.linspace(0.0, 1.0, 40), *np.linspace(1.0, 0.0, 40), *np.zeros(20)):
        q = np.array(source.rest_q)
        for side, sign in (("left", -1.0), ("right", 1.0)):
            part = source.q_slice(source.index(f"{side}_upper_arm"))
            q[part] = sy.Rotation.from_euler("z", sign * share * 1.9).as_quat()
        poses.append(q)
    known = sy.live.LiveCalibration.learn(sy.Motion(source, poses[:5], 30.0), body)
    two = [sy.LiveRetarget(source, body, rate=30, calibration=known, clearance=own) for own in (None, 0.0)]
    through, apart = (np.array([live.step(pose).q for pose in poses]) for live in two)
    assert pairs_too_near(known.pairing.target, through, 0.0)[0].distance < -0.05
    assert pairs_too_near(known.pairing.target, apart, 0.0) == []
    assert two[1].report().facts["near"] == 0.0
    np.testing.assert_array_equal(apart[:10], through[:10])
    np.testing.assert_allclose(apart[-1], through[-1], atol=1e-3)
    assert np.abs(np.diff(apart, axis=0)).max() < 2.0 * np.abs(np.diff(through, axis=0)).max()


def test_clearance_needs_shapes_and_names_links_without(walk, character):
    assert not character.shapes
    with pytest.raises(InputError, match="a target with shapes"):
        sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, clearance=0.0)
    body = sy.bundled("humanoid")
    joints = [
        replace(joint, parent=parent if parent >= 0 else None, shapes=() if joint.name == "head" else joint.shapes)
        for joint, parent in zip(body.joints, body.parents, strict=True)
    ]
    bare = sy.Skeleton(joints, up="y", meters_per_unit=1.0)
    live = sy.LiveRetarget(walk.skeleton, bare, rate=walk.fps, clearance=0.0)
    assert "without known shapes are not kept apart: 'head'" in live.report()


def test_the_first_second_is_learned_and_then_followed(walk, character):
    live = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, learn=0.2)
    poses = [live.step(walk[k]) for k in range(30)]
    learning = round(0.2 * walk.fps)
    assert all(pose.status is sy.Status.HOLDING for pose in poses[: learning - 1])
    assert live.calibration is not None
    assert poses[learning].status is not sy.Status.HOLDING
    assert live.report().facts["learning"] == learning - 1
    assert live.skeleton is poses[-1].skeleton


def test_a_single_pose_is_enough(walk, character):
    live = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, learn=0)
    assert live.step(walk[0]).status is sy.Status.REACHED
    assert live.step(walk[1]).velocity.shape == (len(live.skeleton.dof_names),)


@pytest.mark.compiled
def test_limits_hold_in_every_tick_also_when_the_source_is_lost_and_comes_back(walk, character, known):
    live = sy.LiveRetarget(
        walk.skeleton, character, rate=walk.fps, calibration=known, velocity=SPEED, acceleration=ACCELERATION
    )
    rng, q, k = np.random.default_rng(0), [], 0
    for _ in range(30):
        for _ in range(int(rng.integers(5, 60))):
            k = (k + 1) % len(walk)
            q.append(live.step(walk[k]).q)
        q += [live.step(None).q for _ in range(int(rng.choice([1, 10, 60])))]
        k = int(rng.integers(len(walk)))
    held = [live.step(None) for _ in range(round(60 * walk.fps))]
    assert np.abs(held[-1].q - held[-2].q).max() < 1e-12
    assert held[-1].status is sy.Status.HOLDING
    q += [pose.q for pose in held]
    back = [live.step(walk[5]) for _ in range(round(8 * walk.fps))]
    q += [pose.q for pose in back]
    assert back[0].status is sy.Status.LATE
    assert back[-1].status is sy.Status.REACHED
    leg = known.pairing.target.leg
    assert faster_than(live.skeleton, np.array(q), walk.fps, SPEED, ACCELERATION, leg) < 1e-6
    assert live.report().facts["losses"] >= 10


def test_values_that_are_not_finite_count_as_no_sample(walk, character, known):
    live = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, calibration=known, timeout=0.1)
    live.step(walk[0])
    broken = walk.q[1].copy()
    broken[3] = np.nan
    for _ in range(round(0.2 * walk.fps)):
        pose = live.step(broken)
    assert pose.status is sy.Status.HOLDING
    live.step(walk[1], time=float("inf"))
    assert live.report().facts["samples_left_out"]["not finite"] == round(0.2 * walk.fps) + 1


def test_poses_values_and_places_are_the_same(walk, character, known):
    results = []
    for sample in (walk[7], walk.q[7], np.array(walk[7].positions)):
        live = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, calibration=known)
        results.append(live.step(sample).positions)
    np.testing.assert_allclose(results[1], results[0], atol=1e-9)
    assert np.abs(results[2] - results[0]).max() < 0.1 * known.pairing.target.leg  # places do not show all twists


def test_measured_places_are_followed_as_near_as_the_bones_allow(walk, character, known):
    live = sy.LiveRetarget(walk.skeleton, character, rate=30, calibration=known)
    size, rng = walk.skeleton.size, np.random.default_rng(0)
    for frame in walk[:20]:
        noisy = frame.positions + rng.normal(scale=0.003 * size, size=frame.positions.shape)
        live.step(noisy)
        fitted = sy.Pose(walk.skeleton, live._sample).positions
        assert np.linalg.norm(fitted - noisy) < 1.01 * np.linalg.norm(frame.positions - noisy)
        assert np.linalg.norm(fitted - frame.positions, axis=1).mean() < 0.005 * size


def test_what_cannot_be_used_is_refused(walk, character, known):
    live = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, calibration=known)
    with pytest.raises(InputError, match="shape of the pose"):
        live.step(np.zeros(3))
    with pytest.raises(InputError, match="a pose of"):
        live.step(sy.bundled("arm7").rest_pose())
    with pytest.raises(InputError, match="root"):
        sy.LiveRetarget(walk.skeleton, character, rate=30, root="xy")
    with pytest.raises(InputError, match="rate"):
        sy.LiveRetarget(walk.skeleton, character, rate=0)
    with pytest.raises(InputError, match="time: expected seconds"):
        live.step(walk[0], time="now")
    with pytest.raises(InputError, match="up: expected x, y, z"):
        sy.LiveRetarget(walk.skeleton, character, rate=30, up="q")
    with pytest.raises(UnknownNameError, match="no joint named 'left_foto'"):
        sy.LiveRetarget(walk.skeleton, character, rate=30, joint_map={"left_foot": ("left_foto", "left_foot")})
    for rest in ("nope", character.rest_pose()):
        with pytest.raises(InputError, match="rest: expected"):
            sy.LiveRetarget(walk.skeleton, character, rate=30, rest=rest)
    with pytest.raises(InputError, match="calibration"):
        sy.LiveRetarget(sy.bundled("humanoid"), character, rate=30, calibration=known)


@pytest.mark.parametrize(
    ("option", "value"), [("joint_map", {"hips": ("hips", "hips")}), ("rest", "file"), ("up", "y"), ("root", "fixed")]
)
def test_what_a_calibration_has_is_not_given_again(walk, character, known, option, value):
    with pytest.raises(InputError, match=option):
        sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, calibration=known, **{option: value})


def test_a_calibration_comes_back_from_its_file_as_it_was(walk, character, known, tmp_path):
    path = tmp_path / "known.toml"
    known.save(path)
    with pytest.raises(FileError):
        known.save(path)
    one = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, calibration=known)
    two = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, calibration=path)
    for k in range(10):
        np.testing.assert_array_equal(one.step(walk[k]).q, two.step(walk[k]).q)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('schema = "synovia.calibration/1"', 'schema = "synovia.map/1"', "is not a calibration"),
        ("floor = ", "floor = nan #", "no floor"),
        ("floor = ", f"floor = {10**400} #", "no floor"),
        ("up = [", 'up = ["a", ', "no up"),
        ("moves = true", "moves = 1", "no moves"),
        ("frames = [\n    [1.0", "frames = [\n    [1e200", "no rest.frames"),
        ("frames = [\n", "frames = [\n[1.0, 2.0],", "no rest.frames"),
        ("[grounds]\n", "[other]\n", "no grounds"),
        ("carried = [", 'carried = ["tail", ', "no parts"),
    ],
)
def test_foreign_files_are_clear_errors(walk, character, known, tmp_path, old, new, message):
    path = tmp_path / "known.toml"
    known.save(path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        sy.live.LiveCalibration.load(path, walk.skeleton, character)


def test_the_calibration_of_other_bodies_is_refused(walk, character, known, tmp_path):
    path = tmp_path / "known.toml"
    known.save(path)
    with pytest.raises(FormatError, match="another source"):
        sy.live.LiveCalibration.load(path, sy.bundled("humanoid"), character)
    with pytest.raises(FormatError, match="another target"):
        sy.live.LiveCalibration.load(path, walk.skeleton, sy.bundled("humanoid"))


def test_a_base_that_stays_and_parts_of_a_map(walk):
    target = sy.bundled("humanoid")
    parts = {role: (role, role) for role in ("left_upper_arm", "left_lower_arm")}
    live = sy.LiveRetarget(walk.skeleton, target, rate=30, root="fixed", joint_map=_map(walk, target, parts), learn=0)
    poses = [live.step(walk[k]) for k in range(5)]
    moved = {target.joint_names[row] for row in range(len(target)) if _turns(target, row, poses)}
    assert moved
    assert moved <= {target.joint_names[target.role_rows[role]] for role in parts}
    assert len(live.skeleton) == len(target)


def _map(walk, target, parts):
    """Return a joint map of parts by their roles."""
    return {role: (walk.skeleton.role_rows[role], target.role_rows[role]) for role in parts}


def _turns(skeleton, row, poses):
    """Return whether a joint moves in some poses."""
    q = np.array([pose.q[skeleton.q_slice(row)] for pose in poses])
    return bool(len(q[0])) and np.ptp(q, axis=0).max() > 1e-6


def test_a_body_goes_over_from_where_it_stands(walk, character, known):
    live = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, calibration=known)
    live.reset(live.skeleton.rest_pose())
    first = live.step(walk[0])
    way = np.abs(first.q - live.skeleton.rest_q).max()
    assert way < 0.1
    assert first.status is sy.Status.LATE
    for _ in range(round(5 * walk.fps)):
        last = live.step(walk[0])
    assert last.status is sy.Status.REACHED


def test_a_foot_that_is_released_does_not_jump():
    feet = FootPlaces(np.array([0.0, 0.0, 1.0]), 1.0, [None], 100.0, causal=True)
    places = []
    for k in range(200):
        own = np.array([[[0.01 * k, 0.0, 0.0]]])  # a metre a second
        places.append(feet.follow(own, np.array([[50 <= k < 100]]))[0, 0, 0])
    steps = np.diff(places)
    assert np.abs(steps[50:99]).max() < 1e-12
    assert steps.min() >= -1e-12
    assert steps.max() < 0.01 + 0.5 * 1.875 / 20.0  # the steepest slope of the fade of half a metre
    assert np.abs(np.diff(steps[99:])).max() < 0.03
    assert places[-1] == pytest.approx(1.99, abs=1e-9)


def test_a_foot_that_is_planted_now_is_rigid_and_stays():
    """Planted points stay on the spot and the foot keeps its length, in whatever order heel and toe touch and leave."""
    rng = np.random.default_rng(3)
    feet = FootPlaces(np.array([0.0, 0.0, 1.0]), 1.0, [1, 0], 100.0, causal=True)
    heading, before, stood = np.zeros(2), None, np.zeros(2, bool)
    for k in range(2000):
        if k % 25 == 0:
            stands = rng.random(2) < 0.5
        heading = heading + 0.03 * rng.normal(size=2)
        line = 0.2 * np.array([np.cos(heading[0]), np.sin(heading[0]), 0.0])  # level, so that heights stay
        own = np.array([0.01 * k, np.sin(0.02 * k), 0.0]) + np.array([np.zeros(3), line])
        places = feet.follow(own[None], stands[None])[0]
        assert np.linalg.norm(places[1] - places[0]) == pytest.approx(0.2, abs=1e-12)
        if before is not None:
            both = stands & stood
            np.testing.assert_allclose(places[both], before[both], atol=1e-12)
        before, stood = places, stands.copy()


@pytest.mark.parametrize(
    ("points", "frames", "toe"),
    [(0, 3, 0.1), (2, 0, 0.1), (2, 1, 0.1), (2, 3, 0.0), (2, 3, 1e-300), (2, 3, 1e9)],
    ids=["no feet", "no frames", "one frame", "toe at the ankle", "tiny foot", "huge foot"],
)
@pytest.mark.parametrize("causal", [False, True])
def test_places_of_feet_at_the_edges(points, frames, toe, causal):
    feet = FootPlaces(np.array([0.0, 0.0, 1.0]), 1.0, [1, 0][:points], 30.0, causal=causal)
    own = np.zeros((frames, points, 3))
    own[:, 1:, 0] = toe
    own[..., 1] = np.arange(frames)[:, None]
    stands = np.ones((frames, points), bool)
    stands[:1] = False
    places = feet.follow(own, stands)
    assert places.shape == own.shape
    assert np.isfinite(places).all()
    assert feet.active == bool(own.size and stands.any())
    if points == 2 and frames == 3:
        np.testing.assert_allclose(places[2], places[1], atol=1e-9 * max(1.0, toe))


def test_without_limits_a_body_is_where_it_is_led():
    skeleton = sy.bundled("humanoid").with_root("free")
    body = LimitedBody(skeleton, 1.0, 30.0, {"velocity": None, "acceleration": None, "jerk": None})
    for seed in range(5):
        wanted = skeleton.random_pose(seed).q
        np.testing.assert_allclose(sy.Pose(skeleton, body.go(np.array(wanted))).positions,
                                   sy.Pose(skeleton, wanted).positions, atol=1e-9)  # fmt: skip


def test_a_body_that_has_waited_goes_over_to_its_source(walk, character, known):
    """The poses that it had before the first sample came may have gone to a robot."""
    live = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, calibration=known, velocity=SPEED,
                           acceleration=ACCELERATION)  # fmt: skip
    q = [live.step(None).q for _ in range(5)]
    first = live.step(walk[20])
    assert first.status is sy.Status.LATE
    q += [first.q, *(live.step(walk[20]).q for _ in range(round(5 * walk.fps)))]
    assert live.step(walk[20]).status is sy.Status.REACHED
    leg = known.pairing.target.leg
    assert faster_than(live.skeleton, np.array(q), walk.fps, SPEED, ACCELERATION, leg) < 1e-6


def test_a_calibration_fits_the_same_body_of_another_day(walk, character, known, tmp_path):
    """A tracker states the offsets of its joints with the rounding of the day."""
    path, rng = tmp_path / "known.toml", np.random.default_rng(0)
    known.save(path)

    def body(error):
        joints = []
        for joint in walk.skeleton.joints:
            rest = np.array(joint.rest)
            rest[:3, 3] += error * walk.skeleton.size * rng.uniform(-1.0, 1.0, 3)
            joints.append(replace(joint, rest=rest))
        return sy.Skeleton(joints, name=walk.skeleton.name, up=walk.skeleton.up, forward=walk.skeleton.forward)

    for given in (path, known):
        live = sy.LiveRetarget(body(1e-3), character, rate=walk.fps, calibration=given)
        assert live.step(walk.q[0]).status is sy.Status.REACHED
        with pytest.raises((FormatError, InputError), match="lengths of bones"):
            sy.LiveRetarget(body(0.05), character, rate=walk.fps, calibration=given)


def test_poses_that_show_no_body_are_not_learned_from(walk, character):
    live = sy.LiveRetarget(walk.skeleton, character, rate=walk.fps, learn=0)
    q = np.array(walk.q[0])
    upside = sy.Rotation.from_euler("x", 180.0, degrees=True) * sy.Rotation.from_quat(q[3:7])
    q[3:7] = upside.as_quat()
    assert live.step(q).status is sy.Status.HOLDING
    assert "could not be learned" in live.report().facts["findings"][0]["text"]
    assert live.report().facts["verdict"] == "look"
    live.step(walk[0])
    assert live.calibration is not None
    assert not live.report().facts["trouble"]
    with pytest.raises(InputError, match="no part"):
        sy.LiveRetarget(walk.skeleton, sy.bundled("arm7"), rate=30, learn=0).step(walk[0])
