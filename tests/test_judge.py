"""The judge of clips: good clips pass, spoiled ones are found and named, and its geometry agrees with brute force."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from cli_runs import run
from synovia.model.geometry import quat_product
from synovia.model.pose import inside_limits
from synovia.retargeting.judging.actor import first_row
from synovia.retargeting.judging.findings import CAUSES
from synovia.retargeting.judging.overlap import segment_distance
from synovia.retargeting.judging.steps import at_limits, jumps

WALK = Path(__file__).parents[1] / "examples" / "walk.bvh"


@pytest.fixture(scope="module")
def walk():
    return sy.load_motion(WALK)


@pytest.fixture(scope="module")
def answer(walk):
    return sy.retarget(walk, sy.bundled("humanoid"))


def turned(motion, joint, rotvec, frames=slice(None)):
    """The clip with one ball joint turned further in some frames, by one rotation vector or one a frame."""
    q, place = motion.q.copy(), motion.skeleton.q_slice(joint)
    at = slice(place.stop - 4, place.stop)
    more = np.broadcast_to(Rotation.from_rotvec(rotvec).as_quat(), q[frames, at].shape)
    q[frames, at] = quat_product(q[frames, at], more)
    return sy.Motion(motion.skeleton, q, motion.fps, name=motion.name)


def moved(motion, way):
    """The clip with its path changed by way(position)."""
    q, place = motion.q.copy(), motion.skeleton.q_slice("hips")
    at = slice(place.start, place.start + 3)
    q[:, at] = way(q[:, at])
    return sy.Motion(motion.skeleton, q, motion.fps, name=motion.name)


def named(judgement, limb, cause):
    """Whether a warning names a limb (or part of one) and a cause."""
    assert {one.cause for one in judgement.findings} <= set(CAUSES)
    return any(limb in one.limb and one.cause == cause for one in judgement.warnings)


def test_a_good_clip_is_good(walk, answer):
    assert answer.verdict == "good"
    assert not answer.judgement.warnings
    assert answer.judgement.trunk_tilt < np.radians(3.0)
    limbs = {limb.limb: limb for limb in answer.judgement.figures.limbs}
    assert {"trunk", "left_upper_arm", "right_lower_leg", "left_foot"} <= set(limbs)
    assert max(limb.mean for limb in limbs.values()) < np.radians(3.0)
    for foot in answer.judgement.figures.feet:
        assert foot.agreement(walk.fps) == (1.0, 1.0)
        assert foot.slide <= foot.source_slide + 1e-9
    assert "verdict: good" in answer.report()
    alone = sy.judge(walk)
    assert alone.verdict == "good"
    assert alone.figures.limbs == ()
    assert len(alone.figures.feet) == 2


def test_the_axes_and_the_unit_of_the_file_make_no_difference(walk, answer):
    body = answer.motion.skeleton
    turn = Rotation.from_euler("x", 90, degrees=True).as_matrix()
    joints = []
    for row, joint in enumerate(body.joints):
        rest = joint.rest.copy()
        rest[:3, 3] *= 100.0
        parent = body.parents[row] if body.parents[row] >= 0 else None
        if parent is None:
            rest[:3] = turn @ rest[:3]
        joints.append(dataclasses.replace(joint, rest=rest, parent=parent))
    other = sy.Skeleton(joints, up="z", meters_per_unit=0.01)
    q, place = (
        answer.motion.q.copy(),
        body.q_slice(next(j for j in body.joint_names if body.joint(j).kind.name == "FREE")),
    )
    q[:, place.start : place.start + 3] *= 100.0
    there = sy.judge(sy.Motion(other, q, walk.fps), walk)
    here = sy.judge(answer.motion, walk)
    assert there.verdict == "good"
    for a, b in zip(there.figures.limbs, here.figures.limbs, strict=True):
        np.testing.assert_allclose(a.angles, b.angles, atol=1e-6)
    for a, b in zip(there.figures.feet, here.figures.feet, strict=True):
        assert a.slide == pytest.approx(b.slide, abs=1e-6)
        np.testing.assert_array_equal(a.contact, b.contact)


@pytest.mark.slow
def test_a_wrong_rest_pose_of_one_arm(walk, answer):
    bad = turned(answer.motion, "right_upper_arm", [0.0, np.radians(30.0), 0.0])
    found = sy.judge(bad, walk)
    assert found.verdict == "look"
    assert [one.limb for one in found.warnings if one.cause == "rest pose"] == ["right_upper_arm"]


def test_a_limb_that_is_mirrored(walk, answer):
    q, body = answer.motion.q.copy(), answer.motion.skeleton
    place = body.q_slice("left_upper_arm")
    q[:, place] *= [1.0, -1.0, -1.0, 1.0]  # as seen in a mirror between left and right
    found = sy.judge(sy.Motion(body, q, walk.fps), walk)
    assert found.verdict == "failed"
    assert {one.limb for one in found.warnings} & {"left_upper_arm", "left_lower_arm"}
    assert not any("right" in one.limb and one.cause != "overlap" for one in found.warnings)


@pytest.mark.slow
@pytest.mark.parametrize("parts", ["body", "arm", "leg"])
def test_a_map_that_exchanges_left_and_right(walk, answer, parts):
    words = {"body": ("_",), "arm": ("arm", "hand", "shoulder"), "leg": ("leg", "foot", "toes")}[parts]
    joints = answer.joint_map()
    swapped = {}
    for role, (source, target) in joints.items():
        if role.startswith(("left", "right")) and any(word in role for word in words):
            other = role.replace("left", "right") if role.startswith("left") else role.replace("right", "left")
            source = joints[other][0]
        swapped[role] = source, target
    found = sy.retarget(walk, sy.bundled("humanoid"), swapped)
    assert found.verdict == "failed"
    assert named(found.judgement, parts, "sides swapped")
    assert "left and right are swapped in" in found.report()


@pytest.mark.parametrize("nameless", [False, True])
@pytest.mark.parametrize("part", ["shoulder", "lower_arm", "hand", "lower_leg", "foot"])
def test_a_part_of_the_map_that_exchanges_left_and_right(walk, answer, part, nameless):
    """By the names of the joints, or by the tree: a hand is below the arm of its own side."""
    source = walk
    if nameless:
        joints = [
            dataclasses.replace(joint, name=f"j{row}", role=None) for row, joint in enumerate(walk.skeleton.joints)
        ]
        source = sy.Motion(sy.Skeleton(joints, up="y"), walk.q, walk.fps)
    right = _rows(answer)
    wrong = dict(right)
    for side, other in (("left", "right"), ("right", "left")):
        wrong[f"{side}_{part}"] = right[f"{other}_{part}"][0], right[f"{side}_{part}"][1]
    found = sy.judge(answer.motion, source, wrong)
    first = [one for one in found.warnings if one.cause == "sides swapped"]
    assert [one.limb for one in first] == [f"left_{part}", f"right_{part}"]
    assert "left and right are swapped in the map" in str(first[0])
    assert not [one for one in sy.judge(answer.motion, source, right).findings if one.cause == "sides swapped"]


def test_sides_are_told_without_names(walk, answer):
    """From toes and knees: the same clip on a skeleton whose joints have numbers for names, with the map swapped."""
    joints = [
        dataclasses.replace(joint, name=f"j{row}", role=None, parent=parent if parent >= 0 else None)
        for row, (joint, parent) in enumerate(zip(walk.skeleton.joints, walk.skeleton.parents, strict=True))
    ]
    source = sy.Motion(sy.Skeleton(joints, up="y"), walk.q, walk.fps)
    right = {role: (pair[0], pair[1]) for role, pair in _rows(answer).items()}
    assert sy.judge(answer.motion, source, right).verdict == "good"
    wrong = {}
    for role, (_, target) in right.items():
        other = role.replace("left", "X").replace("right", "left").replace("X", "right")
        wrong[role] = right[other][0], target
    assert named(sy.judge(answer.motion, source, wrong), "body", "sides swapped")


def _rows(answer):
    return {part.role: (part.source, part.target) for part in answer.parts}


@pytest.mark.parametrize("angle", [90.0, -90.0, 180.0])
def test_a_body_that_lies_or_stands_on_its_head(walk, answer, angle):
    turn = Rotation.from_euler("x", angle, degrees=True)
    q, place = answer.motion.q.copy(), answer.motion.skeleton.q_slice("hips")
    rest = answer.motion.skeleton.joint("hips").rest[:3, 3]
    q[:, place.start : place.start + 3] = turn.apply(q[:, place.start : place.start + 3] + rest) - rest
    q[:, place.stop - 4 : place.stop] = (turn * Rotation.from_quat(q[:, place.stop - 4 : place.stop])).as_quat()
    found = sy.judge(sy.Motion(answer.motion.skeleton, q, walk.fps), walk)
    assert found.verdict == "failed"
    assert named(found, "body", "up axis")
    assert named(found, "body", "upside down") == (angle == 180.0)


def test_a_path_in_another_unit(walk, answer):
    found = sy.judge(moved(answer.motion, lambda p: 100.0 * p), walk)
    assert (found.verdict, found.warnings[0].cause) == ("failed", "scale")
    assert named(sy.judge(moved(walk, lambda p: 100.0 * p)), "hips", "scale")


@pytest.mark.parametrize("factor", [0.01, 0.1])
def test_a_path_that_is_too_short_for_the_steps(walk, factor):
    """A hundred times too small, as metres beside centimetres: the body walks on the spot."""
    slow = moved(walk, lambda p: p[:1] + factor * (p - p[:1]))
    for found in (sy.judge(slow), sy.retarget(slow, sy.bundled("humanoid")).judgement):
        assert found.verdict != "good"
        assert named(found, "hips", "scale")
    assert not named(sy.judge(walk), "hips", "scale")


@pytest.mark.parametrize("ahead", [0.0, 2.0])
def test_a_jump_is_no_error_of_the_unit(ahead):
    """Both feet are in the air and move as the hips do, upwards and forwards; the rest of the time the body stands."""
    body = sy.bundled("humanoid").with_root("free")
    t = np.arange(0.0, 1.6, 1.0 / 60.0)
    air = np.clip(t - 0.5, 0.0, 0.6)
    q, at = np.tile(body.rest_q, (len(t), 1)), body.q_slice("hips").start
    q[:, at + 1] += 0.5 * 9.81 * air * (0.6 - air)
    q[:, at + 2] += ahead * air
    jump = sy.Motion(body, q, 60.0)
    for found in (sy.judge(jump), sy.judge(jump, jump)):
        assert not any(one.cause == "scale" for one in found.findings)


def test_missed_goals_are_never_good(walk, answer):
    assert sy.judge(answer.motion, walk, missed=[7]).verdict == "look"
    found = sy.judge(answer.motion, walk, missed=range(len(walk)))
    assert (found.verdict, found.findings[0].cause) == ("failed", "missed")
    assert f"goals are missed in {len(walk)} of {len(walk)} frames" in found.report()
    late = dataclasses.replace(answer, missed_frames=(3, 4))
    assert named(late.judgement, "body", "missed")
    assert late.verdict == "look"


def test_points_that_are_far_away_are_never_good(walk):
    near = np.full((len(walk), 6), 0.02)
    near[0, 0] = np.nan
    assert sy.judge(walk, errors=near).verdict == "good"
    far = near.copy()
    far[30, 2] = 0.25
    found = sy.judge(walk, errors=far)
    assert (found.verdict, found.warnings[0].cause, found.warnings[0].frames) == ("look", "points", (30,))
    far[10:] = 0.4
    assert sy.judge(walk, errors=far).verdict == "failed"
    fitted = sy.clips.Fitted.made(walk, far, 0.0, flips=(2,))
    assert {one.cause for one in sy.judge(fitted).warnings} >= {"points", "flip"}
    with pytest.raises(sy.InputError, match="errors"):
        sy.judge(walk, errors=near[:5])


def test_a_body_in_another_unit(walk):
    body = sy.bundled("humanoid")
    joints = []
    for joint, parent in zip(body.joints, body.parents, strict=True):
        rest = joint.rest.copy()
        rest[:3, 3] *= 100.0
        joints.append(dataclasses.replace(joint, rest=rest, parent=parent if parent >= 0 else None))
    giant = sy.Skeleton(joints, up="y", meters_per_unit=1.0)
    found = sy.retarget(walk, giant, hold_feet=False)
    assert (found.verdict, [one.cause for one in found.judgement.warnings]) == ("look", ["scale"])


def test_jumps_are_found_with_their_frame(walk, answer):
    found = sy.judge(turned(answer.motion, "left_upper_arm", [0.0, 0.0, np.radians(40.0)], slice(40, 41)), walk)
    jump = next(one for one in found.warnings if one.cause == "jump")
    assert (jump.limb, jump.frames) == ("left_upper_arm", (40, 41))
    found = sy.judge(turned(answer.motion, "left_upper_arm", [0.0, 0.0, np.radians(30.0)], slice(60, None)), walk)
    assert any(one.cause == "jump" and one.frames == (60,) for one in found.warnings)
    found = sy.judge(moved(answer.motion, lambda p: p + 0.2 * (np.arange(len(p)) == 30)[:, None]), walk)
    path = next(one for one in found.warnings if (one.limb, one.cause, one.frames) == ("hips", "jump", (30, 31)))
    assert "mm in one frame" in path.text  # a path jumps by a length, not by an angle
    both = turned(walk, "left_upper_arm", [0.0, 0.0, np.radians(50.0)], slice(40, 41))
    told = next(one for one in sy.retarget(both, sy.bundled("humanoid")).findings if one.cause == "jump")
    assert told.level == "look"
    assert "the source jumps here" in told.text


def test_a_first_frame_in_a_t_pose_is_a_note(walk):
    q = walk.q.copy()
    root = walk.skeleton.q_slice("hips")
    q[0] = walk.skeleton.rest_q
    q[0, root] = walk.q[1, root]
    found = sy.retarget(sy.Motion(walk.skeleton, q, walk.fps), sy.bundled("humanoid"), hold_feet=False)
    assert found.verdict == "good"
    assert any((one.cause, one.frames) == ("calibration pose", (1,)) for one in found.findings)


def test_what_jumps_with_the_whole_source_at_an_end_is_no_finding(walk):
    """The hips of the source stay in the T-pose, those of the result are elsewhere in its own."""
    q = walk.q.copy()
    root = walk.skeleton.q_slice("hips")
    q[0] = walk.skeleton.rest_q
    q[0, root] = walk.q[1, root]
    source = sy.Motion(walk.skeleton, q, walk.fps)
    result = sy.retarget(source, sy.bundled("humanoid"), hold_feet=False).motion
    moved_there = moved(result, lambda p: p + 0.2 * (np.arange(len(p)) == 0)[:, None])
    assert not [one for one in sy.judge(moved_there, source).findings if one.cause == "jump"]
    later = moved(result, lambda p: p + 0.2 * (np.arange(len(p)) == 30)[:, None])
    assert [one.frames for one in sy.judge(later, source).findings if one.cause == "jump"] == [(30, 31)]


def test_fast_motion_is_no_jump():
    t = np.linspace(0.0, 1.0, 30)
    angle = 2.5 / (1.0 + np.exp(-20.0 * (t - 0.5)))  # a punch: 24 degrees in its fastest frame
    steps, double = np.abs(np.diff(angle)), np.abs(angle[2:] - angle[:-2])
    assert steps.max() > np.radians(20.0)
    assert not len(jumps(steps, double))
    angle[4] += 0.5
    steps, double = np.abs(np.diff(angle)), np.abs(angle[2:] - angle[:-2])
    assert jumps(steps, double).tolist() == [4, 5]
    assert not len(jumps(np.zeros(0), np.zeros(0)))


def test_feet_that_drift_hover_or_sink(walk, answer):
    seconds = np.arange(len(walk))[:, None] / walk.fps
    found = sy.judge(moved(answer.motion, lambda p: p + 0.1 * seconds * [0.6, 0.0, 0.8]), walk)
    assert found.verdict == "look"
    assert {one.limb for one in found.warnings if one.cause == "slide"} == {"left_foot", "right_foot"}
    found = sy.judge(moved(answer.motion, lambda p: p + 0.15 * np.sin(3.0 * seconds) * [0.0, 1.0, 0.0]), walk)
    assert named(found, "left_foot", "height")


def test_feet_of_a_clip_in_place_slide_as_they_should(walk, tmp_path):
    there = walk.in_place()
    judgement = sy.judge(there)
    assert judgement.verdict == "good"
    assert any(one.cause == "in place" and one.level == "note" for one in judgement.findings)
    assert [foot.slide for foot in judgement.figures.feet] == pytest.approx(
        [foot.slide for foot in sy.judge(walk).figures.feet], abs=1e-9
    )
    assert sy.judge(there[10:60]).verdict == "good"
    sy.save_motion(there, tmp_path / "there.bvh")  # a file has no root motion beside its clip
    alone = sy.judge(sy.load_motion(tmp_path / "there.bvh"))
    assert alone.verdict == "good"
    assert any("on the spot" in one.text for one in alone.findings)


def test_feet_that_slide_in_a_clip_that_moves_on_are_told_though_its_way_is_apart(walk):
    skates = moved(walk, lambda path: path * (1.5, 1.0, 1.5))
    assert sy.judge(skates).verdict == "look"
    assert sy.judge(skates.in_place()).verdict == "look"


def test_feet_without_toes_are_compared_at_the_ankles(walk):
    """The toes of the source stand longer than its ankles, and lower."""
    clip, body = sy.Motion(walk.skeleton, walk.q[:60:2], walk.fps / 2), sy.bundled("humanoid")
    toeless = sy.Skeleton([joint for joint in body.joints if "toe" not in joint.name], name="toeless", up="y")
    for foot in sy.retarget(clip, toeless).judgement.figures.feet:
        assert foot.hover < 0.005
        assert foot.source_ground > 0.05


def test_crossed_legs_and_an_arm_in_the_trunk(walk, answer):
    bad = turned(answer.motion, "left_upper_leg", [0.0, 0.0, -np.radians(22.0)])
    found = sy.judge(bad, walk)
    assert named(found, "legs", "crossed")
    q, body = answer.motion.q.copy(), answer.motion.skeleton
    q[:, body.q_slice("left_upper_arm")] = Rotation.from_euler("z", [-100.0], degrees=True).as_quat()
    found = sy.judge(sy.Motion(body, q, walk.fps), walk)
    assert named(found, "left_lower_arm", "overlap")


def reaching(walk, frames):
    """The walk with the left hand at the middle of the chest in some frames."""
    body = walk.skeleton
    ik = sy.IK(body, [sy.PositionGoal("left_hand", ancestors=3)], "lm")
    q = walk.q.copy()
    for frame in frames:
        chest = 0.5 * (walk.pose(frame).position("left_upper_arm") + walk.pose(frame).position("right_upper_arm"))
        hips = walk.pose(frame).position("hips")
        free = ik.solve({"left_hand": chest + 0.3 * (hips - chest)}, start=walk.pose(frame))
        assert free.reached
        q[frame] = free.q
    return sy.Motion(body, q, walk.fps, name=walk.name)


def test_a_hand_in_the_chest_is_told_for_a_moment_for_one_pose_and_beside_a_source_that_does_the_same(walk):
    inside = reaching(walk, range(20, 20 + int(0.4 * walk.fps)))
    for found in (sy.judge(inside), sy.judge(inside, inside), sy.judge(inside, walk)):
        assert named(found, "left", "overlap")
        told = next(one for one in found.warnings if one.cause == "overlap")
        assert set(told.frames) & set(range(20, 44))
    one = sy.judge(sy.Motion(inside.skeleton, inside.q[25:26], walk.fps))
    assert named(one, "left", "overlap")
    assert not sy.judge(walk).warnings


def test_legs_of_a_body_whose_hips_share_a_point_are_not_in_each_other(walk):
    joints = list(walk.skeleton.joints)
    for row in (walk.skeleton.index("left_upper_leg"), walk.skeleton.index("right_upper_leg")):
        rest = joints[row].rest.copy()
        rest[0, 3] = 0.0
        joints[row] = dataclasses.replace(joints[row], rest=rest)
    narrow = sy.Motion(walk.skeleton.with_joints(joints), walk.q, walk.fps)
    assert not any(one.cause == "overlap" for one in sy.judge(narrow).findings)


def test_a_foot_that_points_down_has_no_wrong_heading(walk, answer):
    """Pitched a little less or more, it heads ahead or back; the foot itself is hardly elsewhere."""
    body = sy.bundled("humanoid").with_root("free")
    still, swing = sy.Motion(body, np.tile(body.rest_q, (40, 1)), 30.0), slice(10, 20)
    ahead, back = (turned(still, "left_foot", [np.radians(angle), 0.0, 0.0], swing) for angle in (34.0, 100.0))
    found = sy.judge(back, ahead)
    off = {limb.limb: limb for limb in found.figures.limbs}
    assert 30.0 < np.degrees(off["left_foot"].largest) < 75.0
    assert not named(found, "left_foot", "direction")
    round_ = turned(walk, "left_foot", [0.0, np.radians(90.0), 0.0])
    assert named(sy.judge(round_, walk), "left_foot", "direction")


def test_names_of_the_source_that_exchange_left_and_right_are_the_one_cause(walk):
    other = {"left": "right", "right": "left"}

    def exchanged(name):
        side, _, part = name.partition("_")
        return f"{other[side]}_{part}" if side in other else name

    joints = [
        dataclasses.replace(joint, name=exchanged(joint.name), role=None, parent=parent if parent >= 0 else None)
        for joint, parent in zip(walk.skeleton.joints, walk.skeleton.parents, strict=True)
    ]
    source = sy.Motion(sy.Skeleton(joints, name="exchanged", up="y"), walk.q, walk.fps)
    found = sy.retarget(source, sy.bundled("humanoid")).judgement
    assert (found.verdict, found.findings[0].limb, found.findings[0].cause) == ("failed", "body", "sides swapped")
    assert not any(one.cause in ("rest pose", "direction") and one.limb != "body" for one in found.warnings)
    pairs = {
        role: (exchanged(one), two)
        for role, (one, two) in sy.retarget(walk, sy.bundled("humanoid")).joint_map().items()
    }
    right = sy.retarget(source, sy.bundled("humanoid"), pairs).judgement  # the map mends what the names say
    assert not any(one.cause == "sides swapped" for one in right.findings)


@pytest.mark.parametrize(
    ("joints", "limit"),
    [
        (("left_lower_leg",), (0.0, 0.3)),
        (("left_lower_leg", "right_lower_leg"), (0.0, 0.0)),
        (("right_upper_arm",), sy.SwingTwist(x=(0.2, 0.2), y=(0.2, 0.2))),
    ],
)
def test_a_limit_that_holds_a_limb_is_its_cause(joints, limit):
    walk = sy.load_motion(WALK)
    answer = sy.retarget(walk, sy.bundled("humanoid").with_limits(dict.fromkeys(joints, limit)))
    assert answer.verdict != "good"
    causes = {one.limb: one.cause for one in answer.findings if one.cause in ("limits", "rest pose", "direction")}
    assert {causes[joint] for joint in joints} == {"limits"}
    assert "rest pose" not in causes.values()
    assert f"the limits of {joints[0]}" in answer.report()


def test_fingers_that_are_mapped_are_not_called_unmapped():
    body = sy.bundled("humanoid_hands").with_root("free")
    still = sy.Motion(body, np.tile(body.rest_q, (10, 1)), 30.0)
    pairs = {role: (joint, joint) for role, joint in body.roles.items()}
    missing = [role for role in pairs if "index" in role and role.startswith("left")]
    for role in (*missing, "right_ring_3", "right_little_3"):
        pairs.pop(role, None)
    told = [one.text for one in sy.judge(still, still, pairs).findings if one.cause == "not mapped"]
    assert told == ["not mapped: left index"]


def test_what_cannot_be_judged(walk, answer):
    with pytest.raises(sy.InputError, match="differ in length"):
        sy.judge(answer.motion, sy.Motion(walk.skeleton, walk.q[:-1], walk.fps))
    with pytest.raises(sy.InputError, match="no frames"):
        sy.judge(sy.Motion(walk.skeleton, walk.q[:0], walk.fps))
    for wrong in ("up", "--y", 1):
        with pytest.raises(sy.InputError, match=r"^up: expected x, y, z"):
            sy.judge(answer.motion, walk, up=wrong)
        with pytest.raises(sy.InputError, match=r"^source_up: expected x, y, z"):
            sy.judge(answer.motion, walk, source_up=wrong)
    with pytest.raises(sy.errors.UnknownNameError):
        sy.judge(answer.motion, walk, {"hips": ("hips", "hipz")})


@pytest.mark.parametrize("count", [1, 2, 3])
def test_short_clips_and_bodies_without_legs(walk, count):
    assert sy.judge(sy.Motion(walk.skeleton, walk.q[:count], 30.0)).verdict == "good"
    arm = sy.bundled("arm7")
    still = sy.judge(sy.Motion(arm, np.tile(arm.rest_q, (count, 1)), 30.0))
    assert still.verdict == "good"
    assert still.figures.feet == ()


def test_a_hinge_that_twists_a_limb_is_not_at_its_next_joint():
    """A forearm that turns about itself: its hinge is at the elbow, but the hand begins at the wrist."""
    hinges = (("shoulder", (0.0, 0.0, 0.0), (1, 0, 0)), ("elbow", (0.0, 0.0, -0.3), (0, 1, 0)),
              ("twist", (0.01, 0.0, -0.02), (0, 0, 1)), ("pitch", (0.0, 0.0, -0.25), (0, 1, 0)),
              ("yaw", (0.0, 0.0, 0.0), (1, 0, 0)))  # fmt: skip
    joints = [sy.Joint("base")]
    for name, at, axis in hinges:
        rest = np.eye(4)
        rest[:3, 3] = at
        joints.append(sy.Joint(name, len(joints) - 1, sy.Kind.HINGE, rest, axis=axis))
    arm = sy.Skeleton(joints)
    rows = {role: arm.index(name) for role, name in (("left_upper_arm", "shoulder"), ("left_lower_arm", "elbow"),
                                                     ("left_hand", "yaw"))}  # fmt: skip
    names = {role: arm.joint_names[first_row(arm, rows, role)] for role in rows}
    assert names == {"left_upper_arm": "shoulder", "left_lower_arm": "elbow", "left_hand": "pitch"}


def test_distances_of_segments_agree_with_sampling():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 200, 2, 3))
    b[::5, 1] = b[::5, 0] + a[::5, 1] - a[::5, 0]  # parallel
    b[::7, 1] = b[::7, 0]  # a point
    u = np.linspace(0.0, 1.0, 201)[:, None]
    for one, other, distance in zip(a, b, segment_distance(a, b), strict=True):
        p, q = (s[0] + u * (s[1] - s[0]) for s in (one, other))
        nearest = np.linalg.norm(p[:, None] - q[None], axis=-1).min()
        assert nearest - 0.02 <= distance <= nearest + 1e-9


def test_limits_of_balls_and_hinges_are_seen():
    """Poses that were clamped are at a limit; the same poses halfway to rest are not."""
    body = sy.bundled("humanoid")
    rng = np.random.default_rng(5)
    q = np.tile(body.rest_q, (40, 1))
    ball, hinge = body.q_slice("left_upper_arm"), body.q_slice("left_lower_arm")
    q[:, ball] = Rotation.random(40, random_state=5).as_quat()
    q[:, hinge] = rng.uniform(-1.0, 4.0, (40, 1))
    inside = inside_limits(body, q)
    clamped = np.abs(inside - q).max(1) > 1e-6
    assert clamped.sum() > 10
    seen = at_limits(sy.Motion(body, inside, 30.0))
    for joint, place in (("left_upper_arm", ball), ("left_lower_arm", hinge)):
        same = np.abs(np.abs(inside[:, place] / q[:, place]) - 1.0).max(1) < 1e-9
        np.testing.assert_array_equal(seen[body.index(joint)], ~same)


@pytest.mark.slow
def test_command_line(walk, tmp_path):
    out, plot = tmp_path / "out.npz", tmp_path / "judged.png"
    ran = run("retarget", WALK, "humanoid", "-o", out, "--plot", plot, "--json")
    assert (ran.code, ran.data["verdict"], ran.data["findings"]) == (0, "good", [])
    assert ran.data["trunk_tilt_deg"] < 3.0
    assert {"slide_per_second", "precision", "recall"} <= set(ran.data["feet"][0])
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert run("plot", out, "--judge", "--source", WALK, "-o", tmp_path / "again.svg").code == 0
    assert run("plot", out, "--source", WALK, "-o", tmp_path / "third.svg").code == 2
    spoiled = tmp_path / "spoiled.npz"
    sy.save_motion(moved(walk, lambda p: 100.0 * p), spoiled)
    ran = run("retarget", spoiled, "humanoid")
    assert (ran.code, "verdict: failed" in ran.out) == (1, True)
    assert "failed: hips: the hips of the source move at" in ran.out
    assert "hips" not in ran.err  # the report on stdout has said it
    jumped = tmp_path / "jumped.npz"
    sy.save_motion(turned(walk, "left_upper_arm", [0.0, 0.0, 0.9], slice(40, 41)), jumped)
    ran = run("retarget", jumped, "humanoid", "--json")
    assert (ran.code, ran.data["verdict"]) == (0, "look")
    assert [(one["cause"], one["frames"]) for one in ran.data["findings"] if one["level"] == "look"] == [
        ("jump", [40, 41])
    ]
    assert "look: left upper arm" in ran.err
    ran = run("animate", jumped, "--foot-lock", "--json")
    assert ran.code == 0
    assert ran.data["judgement"]["verdict"] == "look"


def _renamed(body, name):
    """Return a body whose joints have other names and no roles."""
    joints = [
        dataclasses.replace(joint, name=name(joint.name, row), role=None, parent=parent if parent >= 0 else None)
        for row, (joint, parent) in enumerate(zip(body.joints, body.parents, strict=True))
    ]
    return sy.Skeleton(joints, name="renamed", up=body.up)


def _other_side(role):
    return role.replace("left", "X").replace("right", "left").replace("X", "right")


@pytest.mark.parametrize("mapped", ["right", "arm", "leg", "body"])
def test_a_map_is_compared_with_the_shape_of_a_target_without_names(walk, mapped):
    body = sy.bundled("humanoid")
    target = _renamed(body, lambda name, row: f"bone_{row:03}")
    words = {"right": (), "arm": ("arm", "hand", "shoulder"), "leg": ("leg", "foot", "toes"), "body": ("_",)}[mapped]
    pairs = {}
    for role, joint in sy.retarget(walk, body).joint_map().items():
        exchanged = any(word in role for word in words)
        pairs[role] = joint[0], target.joint_names[body.role_rows[_other_side(role) if exchanged else role]]
    found = sy.retarget(walk, target, pairs).judgement
    swapped = [one for one in found.findings if one.cause == "sides swapped"]
    if mapped == "right":
        assert not swapped
        return
    assert found.verdict == "failed"
    assert found.findings[0].cause == "sides swapped"
    assert found.findings[0].limb == ("body" if mapped == "body" else f"left_{mapped}")
    joint = pairs["left_upper_leg" if mapped == "leg" else "left_upper_arm"][1]
    limb = "the map" if mapped == "body" else f"the {mapped}s of the map"
    if mapped != "body":
        assert found.findings[0].text == (
            f"left and right are swapped in {limb}: it calls {joint!r} left, but toes and knees say right"
        )
    assert "but toes and knees say right" in found.findings[0].text


@pytest.mark.parametrize("limb", [("arm", "hand", "shoulder"), ("leg", "foot", "toes")])
def test_shape_comes_before_names_of_one_limb(walk, limb):
    """The joints of the left limb have names of the right one: a map that says so is right, automatic parts are not."""
    body = sy.bundled("humanoid")

    def name(own, row):
        if own.startswith("left") and any(word in own for word in limb):
            return _other_side(own)
        return f"bone_{row:03}"

    target = _renamed(body, name)
    pairs = {
        role: (joint[0], target.joint_names[body.role_rows[role]])
        for role, joint in sy.retarget(walk, body).joint_map().items()
    }
    mended = sy.retarget(walk, target, pairs).judgement
    assert mended.verdict == "good"
    assert [one.level for one in mended.findings if one.cause == "names"] == ["note"]
    assert not [one for one in mended.findings if one.cause == "sides swapped"]
    target = target.with_joints([*target.joints, sy.Joint("prop", target.joint_names[-1], sy.Kind.FIXED)])  # no twin
    if limb[0] == "arm" and {"left_upper_arm", "right_upper_arm"} <= target.role_rows.keys():
        found = sy.retarget(walk, target).judgement.findings[0]
        assert (found.cause, found.level) == ("sides swapped", "failed")
        assert "in the names of the arms of the result" in found.text


def test_the_front_of_the_trunk_is_that_of_the_toes(walk, answer):
    """A trunk that is turned round above legs that stay: no map is wrong, and yet the body is back to front."""
    bad = turned(answer.motion, "spine", [0.0, np.pi, 0.0])
    found = sy.judge(bad, walk)
    assert found.verdict == "failed"
    assert any("its front points away from the toes" in one.text for one in found.findings)
    assert not any("its front points" in one.text for one in answer.findings)


def test_the_guide_explains_every_cause():
    text = (Path(__file__).parents[1] / "docs" / "guides" / "judge.md").read_text(encoding="utf-8")
    listed = text.partition("| cause |")[2].partition("Notes do not change")[0]
    assert [cause for cause in CAUSES if f"`{cause}`" not in listed] == []


@pytest.mark.parametrize(
    ("limb", "parts"), [("arms", ("upper_arm", "lower_arm", "hand")), ("legs", ("upper_leg", "lower_leg", "foot"))]
)
def test_limbs_that_move_as_those_of_the_other_side_are_named(walk, answer, limb, parts):
    """Arms or legs alone, each as the mirror image of the other one."""
    motion, mirrored = answer.motion, answer.motion.mirrored()
    skeleton, q = motion.skeleton, np.array(motion.q)
    for role, row in skeleton.role_rows.items():
        if role.startswith(("left_", "right_")) and role.split("_", 1)[1] in parts:
            q[:, skeleton.q_slice(row)] = mirrored.q[:, skeleton.q_slice(row)]
    found = sy.judge(sy.Motion(skeleton, q, motion.fps), walk)
    assert found.verdict == "failed"
    assert any(one.limb == limb and f"left and right {limb} are swapped" in one.text for one in found.findings)
    assert not any("are swapped" in one.text for one in sy.judge(motion, walk).findings)


def test_a_note_that_names_a_doubt_is_never_good(answer):
    doubtful = answer.motion.noted(["Look at it: this is odd.", "This is a note."])
    found = sy.judge(doubtful)
    assert found.verdict == "look"
    assert [one.text for one in found.findings if one.cause == "doubt"] == ["this is odd."]
    assert sy.judge(doubtful[3:20]).verdict != "good"


@pytest.mark.parametrize("which", ["source", "result"])
def test_bones_of_nearly_no_length_are_named(walk, answer, which):
    body = sy.bundled("humanoid")
    joints = list(body.joints)
    for row, joint in enumerate(joints):
        if joint.name.endswith(("_lower_arm", "_hand")):
            rest = joint.rest.copy()
            rest[:3, 3] *= 0.01
            joints[row] = dataclasses.replace(joint, rest=rest)
    short = body.with_joints(joints).with_root("free")
    still = sy.Motion(short, np.tile(short.rest_q, (20, 1)), 30.0)
    found = sy.judge(still) if which == "result" else sy.retarget(still, body).judgement
    [one] = [one for one in found.findings if "nearly no length" in one.text]
    assert (one.cause, one.level) == ("scale", "look")
    assert f"the {which} has" in one.text
    assert all(name in one.text for name in ("left_upper_arm", "right_lower_arm", "mm long at most"))
    assert not any("nearly no length" in one.text for one in answer.findings)
