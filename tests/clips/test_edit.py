"""Edits: frames of no layer keep every bit, goals hold in the frames of a layer, fades are smooth, feet stand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia as sy
from synovia.clips.editing.edit import EditStack
from synovia.model.geometry import rotation_between

pytestmark = pytest.mark.compiled  # a whole body in many frames

FPS = 30.0
LEFT, RIGHT = "left_hand", "right_hand"


def stepping(frames=80):
    """A humanoid that steps on the spot: one foot stands while the other is in the air, and bent arms swing."""
    body = sy.bundled("humanoid")
    rest, swing = body.rest_pose(), np.sin(2 * np.pi * np.arange(frames) / FPS / 1.2)
    targets = {"hips": np.tile(rest.transform("hips"), (frames, 1, 1))}
    targets["hips"][:, 1, 3] -= 0.02
    for name, sign in (("left_foot", 1.0), ("right_foot", -1.0)):
        targets[name] = np.tile(rest.transform(name), (frames, 1, 1))
        targets[name][:, 1, 3] += 0.04 * np.maximum(sign * swing, 0.0) ** 2
    goals = [sy.PoseGoal("left_foot"), sy.PoseGoal("right_foot"), sy.PoseGoal("hips"), sy.RestGoal()]
    q = sy.IK(body, goals, "full-body", root="free").track(targets, fps=FPS).motion.q.copy()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        hang = sy.Rotation.from_rotvec((0.0, 0.0, -1.0 * sign))
        forward = sy.Rotation.from_rotvec(np.outer(-0.4 - 0.3 * sign * swing, (1.0, 0.0, 0.0)))
        q[:, body.q_slice(f"{side}_upper_arm")] = (forward * hang).as_quat()
        q[:, body.q_slice(f"{side}_lower_arm")] = 1.1 + 0.2 * sign * swing[:, None]
    return sy.Motion(body, q, FPS, name="steps")


@pytest.fixture(scope="module")
def clip():
    return stepping()


def places(motion, joint):
    return motion.positions()[:, motion.skeleton.index(joint)]


def turned(a, b, joint):
    """Degrees between the world rotations of a joint in two clips, (T,)."""
    row = a.skeleton.index(joint)
    first, second = (sy.Rotation.from_matrix(m.frames()[:, row, :9].reshape(-1, 3, 3)) for m in (a, b))
    return np.degrees((first * second.inv()).magnitude())


def accelerations(motion):
    """Second differences of each ball's rotation, by row, (T - 2,)."""
    out = {}
    for row, joint in enumerate(motion.skeleton.joints):
        if joint.kind in (sy.Kind.BALL, sy.Kind.FREE):
            quats = motion.q[:, motion.skeleton.q_slice(row)][:, -4:]
            out[row] = np.linalg.norm(np.diff(rotation_between(quats[:-1], quats[1:]), axis=0), axis=1)
    return out


def raised(height=0.15, frames=(30, 50), blend=10, **more):
    return sy.Layer({LEFT: (0.0, height, 0.0)}, frames=frames, blend=blend, relative=True, **more)


def test_an_edit_keeps_every_bit_where_no_layer_acts_and_holds_its_goal_where_it_acts(clip):
    edited = sy.edit(clip, raised())
    first, last = 21, 59  # frame 20 and 60 have the weight 0
    assert edited.acts.tolist() == [first <= k <= last for k in range(len(clip))]
    assert np.array_equal(edited.motion.q[~edited.acts], clip.q[~edited.acts])
    assert edited.motion.skeleton is clip.skeleton
    assert edited.reached.all()
    assert not edited.findings
    inner = slice(30, 51)
    assert places(edited.motion, LEFT)[inner] == pytest.approx(places(clip, LEFT)[inner] + (0.0, 0.15, 0.0), abs=2e-4)
    for joint in ("head", RIGHT, "chest", "right_foot"):
        assert turned(clip, edited.motion, joint).max() == pytest.approx(0.0, abs=1e-6)


def test_a_fade_goes_smoothly_from_the_clip_to_the_target(clip):
    edited = sy.edit(clip, raised())
    way = places(edited.motion, LEFT) - places(clip, LEFT)
    part = np.arange(1, 10) / 10
    assert way[21:30, 1] == pytest.approx(0.15 * part**2 * (3 - 2 * part), abs=5e-3)
    assert way[51:60, 1] == pytest.approx(way[21:30, 1][::-1], abs=5e-3)
    own, after = accelerations(clip), accelerations(edited.motion)
    for row in own:
        at = clip.skeleton.q_slice(row)
        quats = [motion.q[:, at][:, -4:] for motion in (clip, edited.motion)]
        size = np.linalg.norm(rotation_between(*quats), axis=1).max()
        assert after[row].max() <= 2.0 * max(own[row].max(), 6.0 * size / 10**2) + 1e-6


@pytest.mark.parametrize("way", [(0.02, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, -0.02, 0.0)])
def test_an_edit_of_the_hips_keeps_feet_where_the_clip_has_them(clip, way):
    """The clip bends the ankle of a raised foot to its limit: there lower hips may be missed, but not the feet."""
    edited = sy.edit(clip, sy.Layer({"hips": way}, relative=True, blend=8, frames=(20, 60)))
    missed = [one.text for one in edited.findings if one.cause == "missed"]
    assert edited.reached.all() or (way[1] < 0.0 and missed and all("at a limit there: " in text for text in missed))
    for foot in ("left_foot", "right_foot"):
        assert places(edited.motion, foot) == pytest.approx(places(clip, foot), abs=3e-4)
        assert turned(clip, edited.motion, foot).max() < 0.3
    inner = slice(21, 45)
    assert places(edited.motion, "hips")[inner] == pytest.approx(places(clip, "hips")[inner] + way, abs=5e-4)
    assert np.median(turned(clip, edited.motion, "chest")[20:61]) < (6.0 if way[1] < 0.0 else 1.0)


def test_without_feet_the_body_goes_down_as_a_whole(clip):
    edited = sy.edit(clip, sy.Layer({"hips": (0.0, -0.02, 0.0)}, relative=True), feet=())
    assert edited.reached.all()
    assert places(edited.motion, "left_foot") == pytest.approx(places(clip, "left_foot") - (0, 0.02, 0), abs=2e-3)


def test_the_body_helps_where_the_arm_alone_is_too_short(clip):
    edited = sy.edit(clip, sy.Layer({LEFT: (0.2, 0.35, 0.45)}, frames=(30, 40), blend=8, relative=True))
    assert edited.reached.all()
    assert turned(clip, edited.motion, "chest")[30:41].max() > 1.0
    assert places(edited.motion, "right_foot") == pytest.approx(places(clip, "right_foot"), abs=3e-4)


def test_a_miss_tells_which_joints_of_standing_legs_are_at_a_limit(clip):
    """Heels stay on the floor, so the ankles bend until they are at their limits."""
    told = sy.edit(clip, sy.Layer({"hips": (0.0, -0.1, 0.0)}, relative=True, frames=(40, 46))).findings
    assert any("; at a limit there: left_foot" in one.text for one in told if one.cause == "missed")
    far = sy.edit(clip, sy.Layer({LEFT: (0.0, -9.0, 0.0)}, relative=True, frames=(40, 40)), feet=()).findings
    assert not any("limit" in one.text for one in far)


def test_a_goal_that_nothing_reaches_is_missed_and_told(clip):
    edited = sy.edit(clip, sy.Layer({LEFT: (0.0, 9.0, 0.0)}, frames=(30, 33)))
    assert np.flatnonzero(~edited.reached).tolist() == [30, 31, 32, 33] == list(edited.missed_frames)
    (finding,) = (one for one in edited.findings if one.cause == "missed")
    assert finding.frames == (30, 31, 32, 33)
    assert LEFT in finding.text
    assert LEFT in edited.report()
    assert "4 frames miss a goal" in edited.report()


@given(st.integers(0, 40), st.integers(0, 39), st.integers(0, 25), st.floats(-0.15, 0.15), st.floats(0.05, 1.0))
@settings(max_examples=20, deadline=None)
def test_any_frames_any_blend(clip, first, length, blend, height, weight):
    last = first + length
    edited = sy.edit(clip, raised(height, (first, last), blend, weight=weight))
    before, after = max(first - max(blend - 1, 0), 0), min(last + max(blend - 1, 0), len(clip) - 1)
    still = np.ones(len(clip), bool)
    still[before : after + 1] = False
    assert np.array_equal(edited.motion.q[still], clip.q[still])
    assert edited.reached[still].all()
    way = (places(edited.motion, LEFT) - places(clip, LEFT))[first : last + 1]
    good = edited.reached[first : last + 1]
    assert way[good, 1] == pytest.approx(np.full(good.sum(), weight * height), abs=3e-4)


def test_layers_see_those_before_them_and_keep_what_these_have_placed(clip):
    hand = raised(frames=(25, 55))
    down = sy.Layer({"hips": (0.0, -0.02, 0.0)}, relative=True, frames=(30, 50), blend=8)
    alone, both = sy.edit(clip, hand), sy.edit(clip, [hand, down])
    assert both.reached.all()
    assert places(both.motion, LEFT) == pytest.approx(places(alone.motion, LEFT), abs=5e-4)
    again = sy.edit(alone.motion, down)
    assert places(again.motion, "hips")[30:51] == pytest.approx(places(both.motion, "hips")[30:51], abs=5e-4)
    twice = sy.edit(clip, [raised(), raised()])
    assert places(twice.motion, LEFT)[40] == pytest.approx(places(clip, LEFT)[40] + (0, 0.3, 0), abs=4e-4)


def test_a_layer_keeps_places_as_keys_below_it_have_moved_them(clip):
    keys = sy.Layer(pose={"left_upper_arm": sy.Rotation.from_rotvec((0.0, 0.0, 0.3))}, relative=True, frames=(30, 50))
    down = sy.Layer({"hips": (0.0, -0.01, 0.0)}, relative=True, frames=(30, 50))
    two, three = sy.edit(clip, [raised(), keys]), sy.edit(clip, [raised(), keys, down])
    assert np.abs(places(two.motion, LEFT) - places(sy.edit(clip, raised()).motion, LEFT)).max() > 0.05
    assert places(three.motion, LEFT)[30:51] == pytest.approx(places(two.motion, LEFT)[30:51], abs=5e-4)


def test_the_errors_of_many_layers_do_not_add_up(clip):
    """A later layer keeps the goals of those before it at their targets, not at the places that these have reached."""
    at = {"frames": (30, 60), "blend": 10, "relative": True}
    chest, hips = {"chest": (0.02, 0.0, 0.01)}, {"hips": (0.01, -0.02, 0.0), "right_hand": (0.0, 0.1, 0.05)}
    for offsets, tolerance in (
        ({LEFT: (0.0, 0.1, 0.05), **chest}, (3e-3, 5e-2)),
        ({LEFT: (0.0, 0.2, 0.1), **hips}, (1e-2, 0.1)),
    ):
        layers = [sy.Layer({joint: offset}, **at) for joint, offset in offsets.items()]
        assert sy.edit(clip, layers, tolerance=tolerance).reached.all()


def test_muted_and_empty_layers_and_weight_zero_change_nothing(clip):
    for layers in ([], [sy.Layer()], [raised(muted=True)], [raised(weight=0.0)], raised().replace(muted=True)):
        edited = sy.edit(clip, layers)
        assert np.array_equal(edited.motion.q, clip.q)
        assert edited.reached.all()
        assert not edited.acts.any()


def test_a_pin_stays_where_the_clip_has_it_in_the_first_frame(clip):
    edited = sy.edit(clip, sy.Layer(goals=[sy.PoseGoal(RIGHT)], frames=(30, 40), blend=5))
    assert edited.reached.all()
    assert places(edited.motion, RIGHT)[30:41] == pytest.approx(np.tile(places(clip, RIGHT)[30], (11, 1)), abs=2e-4)


def test_targets_are_one_or_one_for_each_frame_of_the_layer_or_of_the_clip(clip):
    own = places(clip, LEFT)
    lifted = own + np.array((0.0, 0.1, 0.0))
    part = sy.edit(clip, sy.Layer({LEFT: lifted[30:51]}, frames=(30, 50)))
    whole = sy.edit(clip, sy.Layer({LEFT: lifted}, frames=(30, 50)))
    relative = sy.edit(clip, sy.Layer({LEFT: (0.0, 0.1, 0.0)}, frames=(30, 50), relative=True))
    assert np.array_equal(part.motion.q, whole.motion.q)
    assert places(relative.motion, LEFT) == pytest.approx(places(part.motion, LEFT), abs=3e-4)
    with pytest.raises(sy.InputError, match=r"layers\[0\].*1, 21 .*or 80"):
        sy.edit(clip, sy.Layer({LEFT: lifted[:7]}, frames=(30, 50)))


@pytest.mark.parametrize(
    "goal",
    [
        sy.AimGoal("head", (1.0, 1.6, 2.0)),
        sy.DirectionGoal("head", (0, 0, 1), (0.5, 0.0, 1.0)),
        sy.RelativeGoal(LEFT, "head", position=(0.0, 0.1, 0.25)),
        sy.DistanceGoal(LEFT, "head", maximum=0.35),
        sy.PlaneGoal(LEFT, (0.0, 1.1, 0.0), (0.0, 1.0, 0.0)),
        sy.RotationGoal(LEFT, sy.Rotation.from_euler("x", 50, degrees=True)),
        sy.ContactGoal("left_foot", keep="point"),
        sy.RangeGoal("left_lower_arm", lower=0.9),
        sy.PoleGoal("left_lower_arm", (1.0, 0.5, -0.5)),
    ],
    ids=lambda goal: goal.kind,
)
def test_goals_of_every_kind_hold_in_a_layer_and_fade(clip, goal):
    edited = sy.edit(clip, sy.Layer(goals=goal, frames=(30, 40), blend=8))
    assert edited.reached.all(), edited.report()
    assert np.array_equal(edited.motion.q[~edited.acts], clip.q[~edited.acts])
    steps = np.linalg.norm(np.diff(edited.motion.positions(), axis=0), axis=2).max(axis=1)
    usual = np.linalg.norm(np.diff(clip.positions(), axis=0), axis=2).max()
    assert steps.max() < 4.0 * usual + 0.05


def test_a_pole_turns_the_limb_and_keeps_its_end(clip):
    edited = sy.edit(clip, sy.Layer(goals=[sy.PoleGoal("left_lower_arm", (1.0, 0.5, -0.5))], frames=(30, 40)))
    assert places(edited.motion, LEFT)[30:41] == pytest.approx(places(clip, LEFT)[30:41], abs=5e-4)


def test_keys_hold_values_of_joints_or_blend_from_key_to_key(clip):
    body, name = clip.skeleton, "left_upper_arm"
    at = body.q_slice(name)
    value = sy.Rotation.from_euler("z", 40, degrees=True)
    held = sy.edit(clip, sy.Layer(pose={name: value}, frames=(30, 40)))
    assert held.motion.q[30:41][:, at] == pytest.approx(np.tile(value.as_quat(), (11, 1)))
    keyed = sy.edit(clip, sy.Layer(pose={30: clip.pose(10), 50: clip.pose(60)}, joints=[name], blend=6))
    assert keyed.motion.q[30] == pytest.approx(np.where(np.isin(np.arange(body.nq), np.r_[at]), clip.q[10], clip.q[30]))
    assert keyed.motion.q[50, at] == pytest.approx(clip.q[60, at])
    assert keyed.acts.tolist() == [25 <= k <= 55 for k in range(len(clip))]
    added = sy.edit(clip, sy.Layer(pose={name: value}, relative=True, frames=(30, 40), blend=10))
    angle = np.linalg.norm(rotation_between(clip.q[:, at], added.motion.q[:, at]), axis=1)
    assert np.degrees(angle[30:41]) == pytest.approx(np.full(11, 40.0))
    part = np.arange(1, 10) / 10
    assert np.degrees(angle[21:30]) == pytest.approx(40.0 * part**2 * (3 - 2 * part))
    motion = sy.Motion(body, clip.q[:11], FPS)
    copied = sy.edit(clip, sy.Layer(pose=motion, joints=[name], frames=(30, 40)))
    assert copied.motion.q[30:41][:, at] == pytest.approx(clip.q[:11][:, at])
    assert np.array_equal(np.delete(copied.motion.q, np.r_[at], axis=1), np.delete(clip.q, np.r_[at], axis=1))


def test_a_clip_outside_limits_stays_so_and_findings_say_it():
    arm = sy.bundled("arm7")
    line = np.linspace((0.35, -0.1, 0.5), (0.35, 0.1, 0.5), 40)
    q = sy.IK(arm, sy.PositionGoal("tool")).track(line).q
    tight = arm.with_limits({"joint4": (q[:, 3].min() + 0.05, q[:, 3].max() + 1.0)})
    clip = sy.Motion(tight, q, FPS)
    edited = sy.edit(clip, sy.Layer({"tool": (0.0, 0.0, 0.05)}, frames=(10, 20), blend=5, relative=True))
    assert np.array_equal(edited.motion.q[~edited.acts], q[~edited.acts])
    assert edited.reached.all()
    (finding,) = edited.findings
    assert finding.cause == "limits"
    assert "joint4" in finding.text
    assert max(finding.frames) < 40
    steps = np.abs(np.diff(edited.motion.q, axis=0)).max()
    assert steps < 0.1  # no joint jumps back into its limits where the layer begins


def test_the_edges_of_a_clip_and_a_blend_without_room(clip):
    for frames in ((0, 0), (0, 5), (75, 79), (79, 79), (0, 79), None):
        edited = sy.edit(clip, raised(frames=frames, blend=12))
        assert edited.reached.all()
        inner = slice(*(frames or (0, 79)))
        way = places(edited.motion, LEFT) - places(clip, LEFT)
        assert way[inner.start : inner.stop + 1, 1] == pytest.approx(0.15, abs=3e-4)
    short = sy.edit(clip, raised(frames=(4, 8), blend=12))
    assert [one.cause for one in short.findings] == ["room"]
    assert sy.edit(clip, raised(frames=(40, 40), blend=1)).acts.sum() == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sy.Layer({LEFT: (0, np.nan, 0)}), "target of 'left_hand': expected finite numbers"),
        (lambda: sy.Layer({LEFT: "there"}), "positions"),
        (lambda: sy.Layer({LEFT: np.diag([1.0, 1.0, -1.0])}), "left_hand"),
        (lambda: sy.Layer({LEFT: np.eye(3)}, frames=(3, 5)), "one rotation or three positions"),
        (lambda: sy.Layer([LEFT]), "dict"),
        (lambda: sy.Layer(frames=(5, 3)), "first and the last"),
        (lambda: sy.Layer(frames=(-1, 3)), "from 0"),
        (lambda: sy.Layer(frames=(0.5, 3)), "whole number"),
        (lambda: sy.Layer(frames=7), "frames"),
        (lambda: sy.Layer(blend=-1), "blend"),
        (lambda: sy.Layer(weight=1.5), "0 to 1"),
        (lambda: sy.Layer(weight=np.nan), "0 to 1"),
        (lambda: sy.Layer(relative="yes"), "True or False"),
        (lambda: sy.Layer(joints=[LEFT]), "pose= too"),
        (lambda: sy.Layer(pose={}), "at least one joint"),
        (lambda: sy.Layer(pose=[1.0, 2.0]), "a Pose"),
        (lambda: sy.Layer(pose={LEFT: (0.0, 1.0)}), "4 \\(xyzw\\)"),
        (lambda: sy.Layer(pose={30: {LEFT: (0, 0, 0, 1.0)}}, frames=(31, 40)), "frame of a key"),
        (lambda: sy.Layer(goals=["look"]), r"goals\[0\]"),
        (lambda: sy.Layer(goals=[sy.RestGoal()]), "rest goal"),
        (lambda: sy.Layer(name=3), "text"),
    ],
)  # fmt: skip
def test_a_layer_refuses_what_it_cannot_use(make, message):
    with pytest.raises(sy.InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("layer", "error", "message"),
    [
        (sy.Layer({"left_hnd": (0, 1, 0)}, frames=(1, 2)), sy.errors.UnknownNameError, r"layers\[0\].*left_hnd"),
        (sy.Layer({LEFT: (0, 1, 0)}, frames=(1, 80), name="wave"), sy.InputError, r"layers\[0\] \(wave\).*0 to 79"),
        (sy.Layer(pose={"left_hnd": 1.0}), sy.errors.UnknownNameError, r"layers\[0\].*left_hnd"),
        (sy.Layer(pose={"left_upper_arm": 1.0}), sy.InputError, r"layers\[0\].*4 numbers"),
        (sy.Layer(pose={"left_upper_arm": (1, 1, 1, 1)}), sy.InputError, r"layers\[0\].*unit quaternion"),
        (sy.Layer({"head": (0, 0, 1)}, sy.DistanceGoal("head", LEFT, maximum=1)), sy.InputError, "no target"),
        (sy.Layer(goals=sy.DistanceGoal("head", LEFT, maximum=1), weight=0.5), sy.InputError, "weight"),
    ],
)  # fmt: skip
def test_a_layer_that_does_not_fit_the_clip_is_named(clip, layer, error, message):
    with pytest.raises(error, match=message):
        sy.edit(clip, [layer])


def test_edit_refuses_other_things(clip):
    for layers in ("wave", [1], None, {LEFT: (0, 0, 0)}):
        with pytest.raises(sy.InputError, match="layers"):
            sy.edit(clip, layers)
    with pytest.raises(sy.InputError, match="motion"):
        sy.edit(clip.pose(0), [])
    with pytest.raises(sy.InputError, match="no frames"):
        sy.edit(sy.Motion(clip.skeleton, clip.q[:0], FPS), raised(frames=None))


def test_an_edit_is_the_same_each_time_and_keeps_name_rate_and_notes(clip):
    noted = clip.noted(["from a test"])
    first, second = sy.edit(noted, raised()), sy.edit(noted, raised())
    assert np.array_equal(first.motion.q, second.motion.q)
    assert (first.motion.name, first.motion.fps, first.motion.notes) == ("steps", FPS, ("from a test",))


def test_joints_that_the_clip_never_moves_stay(clip):
    shoulder = clip.skeleton.q_slice("left_shoulder")
    assert np.ptp(clip.q[:, shoulder], axis=0).max() == 0.0
    edited = sy.edit(clip, raised())
    assert edited.reached.all()
    assert np.array_equal(edited.motion.q[:, shoulder], clip.q[:, shoulder])
    still = sy.Motion(clip.skeleton, np.repeat(clip.q[:1], 40, axis=0), FPS)  # nothing moves: any joint may
    assert sy.edit(still, raised(0.05, (20, 25), 5)).reached.all()


def test_a_fade_whose_straight_way_is_no_pose_of_the_limb_is_faded_by_joints():
    arm = sy.bundled("arm7")
    q = arm.random_pose(3).q + np.linspace(0.0, 0.4, 40)[:, None]
    clip = sy.Motion(arm, q, FPS)
    edited = sy.edit(clip, sy.Layer(goals=[sy.PoseGoal("joint4")], frames=(15, 25), blend=8))
    assert edited.reached.all()
    inner = edited.motion.positions()[15:26, arm.index("joint4")]
    assert inner == pytest.approx(np.tile(clip.positions()[15, arm.index("joint4")], (11, 1)), abs=1e-3)
    assert np.abs(np.diff(edited.motion.q, axis=0)).max() < 0.1


def test_a_root_that_only_carries_the_body_does_not_turn(clip):
    body = clip.skeleton
    joints = [sy.Joint("carrier", kind=sy.Kind.FREE)]
    joints += [replace(joint, parent=parent + 1) for joint, parent in zip(body.joints, body.parents, strict=True)]
    carried = sy.Skeleton(joints, name="carried", up="y")
    swing = sy.Rotation.from_rotvec(np.outer(np.sin(np.arange(len(clip)) / 9.0), (0.0, 0.1, 0.0))).as_quat()
    q = np.concatenate([np.tile((0.0, 0, 0, 0, 0, 0, 1), (len(clip), 1)), clip.q], axis=1)
    q[:, 10:14] = swing
    q[:, 0] = np.linspace(0.0, 0.5, len(clip))
    far = sy.Layer({LEFT: (0.2, 0.35, 0.45)}, frames=(30, 40), blend=8, relative=True)
    edited = sy.edit(sy.Motion(carried, q, FPS), far)
    assert edited.acts.any()
    assert edited.motion.q[:, 3:7] == pytest.approx(q[:, 3:7], abs=1e-9)


def test_a_root_that_rests_is_not_told_to_jerk_where_the_body_below_it_travels(clip):
    body, rng = clip.skeleton, np.random.default_rng(3)
    joints = [sy.Joint("carrier", kind=sy.Kind.FREE)]
    joints += [replace(joint, parent=parent + 1) for joint, parent in zip(body.joints, body.parents, strict=True)]
    q = np.concatenate([np.tile((0.0, 0, 0, 0, 0, 0, 1), (len(clip), 1)), clip.q], axis=1)
    q[:, 7:10] += rng.normal(scale=0.01, size=(len(clip), 3))  # as in a recording with noise
    pinned = sy.Layer(goals=[sy.PositionGoal("chest")], frames=(30, 40), blend=8)
    edited = sy.edit(sy.Motion(sy.Skeleton(joints, name="carried", up="y"), q, FPS), pinned, feet=())
    assert np.abs(edited.motion.q[:, :3]).max() > 0.01
    assert not [one for one in edited.findings if one.cause == "jerk" and "carrier" in one.text]


def test_a_deadline_leaves_frames_as_they_are_and_says_so(clip):
    edited = sy.edit(clip, sy.Layer({"hips": (0.0, -0.02, 0.0)}, relative=True), deadline=0.0)
    assert not edited.reached.all()
    assert np.isfinite(edited.motion.q).all()


def test_animated_scale_is_kept_and_told(clip):
    stretch = np.ones((len(clip), len(clip.skeleton), 3))
    scaled = sy.Motion(clip.skeleton, clip.q, FPS, stretch=stretch)
    edited = sy.edit(scaled, raised())
    assert np.array_equal(edited.motion.stretch, stretch)
    assert [one.cause for one in edited.findings] == ["stretch"]


def in_unit(clip, factor, meters):
    """The clip with all lengths multiplied by a factor, in a file whose unit has so many metres, None if unknown."""
    body = clip.skeleton
    longer = np.array([[1.0, 1.0, 1.0, factor]] * 3 + [[1.0, 1.0, 1.0, 1.0]])
    joints = [
        replace(joint, rest=joint.rest * longer, com=None if joint.com is None else factor * np.array(joint.com))
        for joint in body.joints
    ]
    q = clip.q.copy()
    for row, joint in enumerate(body.joints):
        if joint.kind is sy.Kind.FREE:
            q[:, body.q_slice(row).start : body.q_slice(row).start + 3] *= factor
    scaled = sy.Skeleton(joints, name=body.name, meters_per_unit=meters, up=body.up, forward=body.forward)
    return sy.Motion(scaled, q, clip.fps, name=clip.name)


@pytest.mark.parametrize(
    ("factor", "meters", "text"),
    [
        (1.0, 1.0, "moved by at most 0.1 m"),
        (100.0, 0.01, "moved by at most 10 cm (100 mm)"),
        (100.0, None, "moved by at most 10 units (about 96 mm on an adult)"),
    ],
)
def test_the_report_says_how_far_a_layer_moves_a_joint(clip, factor, meters, text):
    given = in_unit(clip, factor, meters)
    edited = sy.edit(given, sy.Layer({LEFT: (0.0, 0.1 * factor, 0.0)}, frames=(30, 40), blend=5, relative=True))
    assert edited.changes[0].joint == LEFT
    assert edited.changes[0].layer == LEFT
    assert edited.changes[0].length == pytest.approx(0.1 * factor, rel=0.02)
    assert f"left_hand {text}" in edited.report()
    assert "up is y" in edited.report()
    assert not edited.findings


@pytest.mark.parametrize(("angle", "text"), [(160.0, "160 deg"), (12.34, "12 deg"), (3.21, "3.2 deg")])
def test_the_report_says_angles_and_frames_plainly(clip, angle, text):
    turned = sy.Layer({"head": sy.Rotation.from_euler("y", angle, degrees=True)}, relative=True, frames=(3, 3))
    assert f"turned by at most {text}" in sy.edit(clip, turned).report()
    assert "(frame 3)" in sy.edit(clip, sy.Layer({LEFT: (9.0, 9.0, 9.0)}, frames=(3, 3))).report()


@pytest.mark.parametrize("meters", [0.01, None])
def test_an_offset_in_another_unit_is_told(clip, meters):
    given = in_unit(clip, 100.0, meters)
    edited = sy.edit(given, sy.Layer({LEFT: (0.0, 0.1, 0.0)}, frames=(30, 40), blend=5, relative=True))
    assert [finding.cause for finding in edited.findings] == ["unit"]
    assert "the offset of left_hand, 0.1, is less than a thousandth" in edited.report()
    assert ("0.1 cm (1 mm)" if meters else "about 0.96 mm") in edited.report()


def test_the_report_says_what_turns_and_what_a_key_moves(clip):
    turned = sy.Layer(pose={"left_upper_arm": sy.Rotation.from_euler("z", 20, degrees=True)}, relative=True, name="arm")
    change, *others = sy.edit(clip, turned).changes
    assert change.joint == "left_upper_arm"
    assert not others
    assert np.degrees(change.angle) == pytest.approx(20.0, abs=0.1)
    assert change.length == pytest.approx(0.0, abs=1e-9)
    assert "arm: left_upper_arm turned by at most 20 deg" in sy.edit(clip, turned).report()


def test_progress_goes_up_to_all_frames_of_all_layers(clip):
    seen = []
    layers = [
        sy.Layer({LEFT: (0.0, 0.1, 0.0)}, frames=(30, 40), blend=5, relative=True),
        sy.Layer({RIGHT: (9.0, 0.0, 0.0)}, frames=(50, 55)),  # several stages, because none reaches it
    ]
    edited = sy.edit(clip, layers, progress=lambda done, of: seen.append((done, of)))
    assert {of for _, of in seen} == {19 + 6}
    done = [number for number, _ in seen]
    assert done == sorted(done)
    assert done[-1] == 25
    assert len(set(done)) > 5
    assert np.array_equal(edited.motion.q, sy.edit(clip, layers).motion.q)


WALK = Path(__file__).resolve().parents[2] / "examples" / "walk.bvh"


@pytest.mark.parametrize(("height", "frames"), [(0.5, (30, 60)), (0.6, (40, 50)), (0.7, (30, 60))])
def test_a_hand_raised_over_the_shoulder_moves_the_arm_alone(height, frames):
    """On the way, the hand passes near the shoulder, where an arm has to fold."""
    walk = sy.load_motion(WALK)
    edited = sy.edit(walk, sy.Layer({LEFT: (0.0, height, 0.0)}, frames=frames, blend=8, relative=True))
    assert edited.reached.all()
    assert not [finding for finding in edited.findings if finding.cause == "body"]
    for joint in ("hips", "head", RIGHT, "left_foot"):
        assert np.array_equal(places(edited.motion, joint), places(walk, joint))
    assert sy.judge(edited.motion).verdict == "good"


def test_a_limb_that_does_not_reach_alone_is_helped_by_the_body_and_a_finding_says_how_far(clip):
    edited = sy.edit(clip, raised(0.75, frames=(30, 40)))
    (finding,) = (one for one in edited.findings if one.cause == "body")
    away = np.linalg.norm(places(edited.motion, "head") - places(clip, "head"), axis=1)
    assert away.max() > 0.01
    assert set(np.flatnonzero(away > 0.01)) <= set(finding.frames)
    assert finding.text in edited.report()


def test_a_goal_of_the_trunk_tells_nothing_of_the_body(clip):
    lower = sy.Layer({"hips": (0.0, -0.05, 0.0)}, frames=(30, 40), blend=8, relative=True)
    assert not [one for one in sy.edit(clip, lower).findings if one.cause == "body"]


def test_a_fade_whose_goal_is_out_of_reach_stays_between_the_clip_and_the_layer(clip):
    """With planted feet and ankles at their limits, the hips cannot be lowered so far in every frame."""
    lower = sy.Layer({"hips": (0.0, -0.06, 0.0)}, frames=(30, 50), blend=10, relative=True)
    edited = sy.edit(clip, lower)
    assert not edited.reached.all()
    way = places(edited.motion, "hips") - places(clip, "hips")
    assert np.linalg.norm(way, axis=1).max() < 0.065
    fading = way[20:31, 1]
    assert (np.diff(fading) < 0.005).all()  # down, without a detour
    assert turned(clip, edited.motion, "hips").max() < 20.0  # and not upside down, which would reach
    told = [finding for finding in edited.findings if finding.cause == "jerk"]
    assert told
    assert set(told[0].frames) <= {*range(20, 31), *range(50, 61)}


def test_a_smooth_fade_is_not_told_to_jerk(clip):
    looks = sy.Layer(goals=[sy.AimGoal("head", (1.0, 1.5, 2.0))], frames=(30, 50), blend=10)
    for layer in (raised(), looks):
        assert not [one for one in sy.edit(clip, layer).findings if one.cause == "jerk"]


def test_goals_take_the_upward_axis_that_the_clip_shows(clip):
    """BVH files do not say which axis points up."""
    body = sy.Skeleton(clip.skeleton.joints, name="bvh")
    plain = sy.Motion(body, clip.q, FPS)
    floor = sy.Layer(goals=[sy.PlaneGoal("left_foot", (0.0, 0.16, 0.0))], frames=(30, 40), blend=6)
    edited = sy.edit(plain, floor)
    assert edited.up == "y"
    assert edited.reached.all()
    assert places(edited.motion, "left_foot")[30:41, 1].min() > 0.16 - 2e-4


@pytest.mark.parametrize("joint", [LEFT, "right_foot"])
def test_a_hand_or_foot_that_is_turned_stays_in_its_place(clip, joint):
    turn = sy.Rotation.from_euler("y", 12, degrees=True)
    edited = sy.edit(clip, sy.Layer({joint: turn}, frames=(30, 40), blend=8, relative=True))
    assert edited.reached.all()
    assert np.abs(places(edited.motion, joint) - places(clip, joint)).max() < 5e-4
    assert turned(clip, edited.motion, joint)[30:41] == pytest.approx(12.0, abs=0.1)
    assert "turned by at most 12 deg" in edited.report()


def test_hips_that_are_moved_do_not_turn(clip):
    lower = sy.Layer({"hips": (0.01, 0.005, 0.0)}, frames=(30, 50), blend=10, relative=True)
    edited = sy.edit(clip, lower)
    assert edited.reached.all()
    assert turned(clip, edited.motion, "hips").max() < 0.1


def test_a_goal_of_a_joint_that_no_joint_of_its_limb_turns_moves_the_rest_of_the_body():
    body = sy.bundled("humanoid")
    stiff = [
        replace(joint, kind=sy.Kind.FIXED, limit=None) if name in ("neck", "head") else joint
        for name, joint in zip(body.joint_names, body.joints, strict=True)
    ]
    body = body.with_joints(stiff)
    still = sy.Motion(body, np.tile(body.rest_q, (20, 1)), FPS)
    look = sy.Layer(goals=[sy.AimGoal("head", (1.0, 1.5, 3.0), axis=(0, 0, 1))], frames=(5, 12), blend=4)
    edited = sy.edit(still, look)
    assert edited.reached.all()
    assert [finding.cause for finding in edited.findings] == ["body"]


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["lafan1_walk1_head", "bandai2_walk_turn", "rokoko_jesse_dance"])
def test_a_look_finds_the_face_in_a_clip_whose_rest_pose_does_not_stand(name, shared_data):
    clip = sy.load_motion(shared_data / "motion" / f"{name}.bvh")[:120]
    ahead = [_ahead(clip[k]) for k in range(len(clip))]
    face = np.mean([clip[k].matrix("head")[:3, :3].T @ way for k, way in enumerate(ahead)], axis=0)
    face /= np.linalg.norm(face)
    frame = 60
    point = clip[frame].position("head") + 3.0 * clip.skeleton.size * ahead[frame]
    edited = sy.edit(clip, sy.Layer(goals=[sy.AimGoal("head", point)], frames=(frame, frame + 2)))
    pose = edited.motion[frame]
    gaze, away = pose.matrix("head")[:3, :3] @ face, point - pose.position("head")
    assert np.degrees(np.arccos(gaze @ away / np.linalg.norm(away))) < 5.0
    assert any("has no limits" in finding.text for finding in edited.findings)


def _ahead(pose):
    """Return the horizontal direction in which the hips face, with y up."""
    way = np.cross(pose.position("left_upper_leg") - pose.position("right_upper_leg"), (0.0, 1.0, 0.0))
    return way / np.linalg.norm(way)


@pytest.mark.parametrize("frames", [(30, 30), (30, 50)])
def test_a_layer_takes_an_arm_to_targets_that_only_another_branch_reaches(frames):
    """Of these targets the way that starts at the clip reaches half; the others need another elbow or wrist."""
    arm, blend = sy.bundled("arm7"), 20
    clip = sy.Motion(arm, np.tile(arm.rest_q, (80, 1)), FPS, name="still")
    tool, ik = arm.rest_pose().position("tool"), sy.IK(arm, sy.PositionGoal("tool"))
    for away in np.random.default_rng(1).normal(size=(12, 3)) * 0.15:
        if not ik.solve({"tool": tool + away}).reached:
            continue
        layer = sy.Layer({"tool": tool + away}, frames=frames, blend=blend)
        edited = sy.edit(clip, [layer])
        assert EditStack(clip).on_top((), layer).solution(30).reached  # what explains misses
        held = edited.motion.positions()[frames[0] : frames[1] + 1, arm.index("tool")]
        np.testing.assert_allclose(held, np.tile(tool + away, (len(held), 1)), atol=1e-3)
        assert all(found.cause != "missed" for found in edited.findings)
        moved = np.abs(edited.motion.q - arm.rest_q).max(axis=0)
        steps = np.abs(np.diff(edited.motion.q, axis=0)).max(axis=0)
        assert (steps < 3.0 * (moved + 0.2) / blend).all(), "a joint jumps"
