"""Clip tools: cut, join, loop, resample, smooth, move; what each one promises."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, RotationSpline

import synovia as sy
from conftest import UNCOMPILED
from synovia.errors import InputError
from synovia.model import Joint, Kind, Mimic, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import rotation_between
from synovia.model.limits import Interval, SwingTwist
from synovia.model.pose import inside_limits

FREE = sy.bundled("humanoid").with_root("free")
ARM = sy.bundled("arm7")
UP = np.eye(4)
UP[1, 3] = 2.0
LEG = Skeleton(  # all kinds of joints, with limits
    [
        Joint("root", None, Kind.FREE),
        Joint("hip", "root", Kind.BALL, UP, limit=SwingTwist(x=(0.9, 0.7), y=(0.5, 0.6), twist=(-0.4, 0.5))),
        Joint("knee", "hip", Kind.HINGE, UP, (0, 0, 1), limit=Interval(-0.2, 1.4)),
        Joint("slide", "knee", Kind.SLIDE, UP, (0, 1, 0), limit=Interval(0.0, 0.3)),
        Joint("ankle", "knee", Kind.HINGE, UP, (0, 0, 1), mimic=Mimic("knee", -0.5, 0.1)),
        Joint("foot", "ankle", Kind.FIXED, UP, tip=True),
    ],
    name="leg",
)
seeds = st.integers(0, 2**16)


def wavy(skeleton, seed=0, frames=40, fps=30.0, span=0.5, **options):
    """A smooth clip that keeps all limits, its root on its way and turning."""
    rng = np.random.default_rng(seed)
    middle, times = skeleton.random_pose(seed).q, np.arange(frames)[:, None] / fps
    rest = sy.Motion(skeleton, np.repeat(middle[None], frames, axis=0), fps)
    waves = span * sum(
        rng.normal(size=(1, skeleton.nv))
        / k
        * np.sin(2 * np.pi * k * times / 1.3 + rng.uniform(0, 6, (1, skeleton.nv)))
        for k in (1, 2)
    )
    q = middle + np.zeros((frames, 1))
    column = 0
    for row, joint in enumerate(skeleton.joints):
        at = skeleton.q_slice(row)
        size = joint.kind.v_size
        step = waves[:, column : column + size]
        column += size
        if joint.kind is Kind.FREE:
            q[:, at.start : at.start + 3] = step[:, :3] + times * (0.3, 0.0, 1.0)
            step = step[:, 3:] * 0.3 + times * (0.0, 0.7, 0.0)
        if joint.kind in (Kind.BALL, Kind.FREE):
            turned = Rotation.from_quat(q[:, at.stop - 4 : at.stop]) * Rotation.from_rotvec(step)
            q[:, at.stop - 4 : at.stop] = turned.as_quat()
        elif size:
            q[:, at] += step
    q = inside_limits(skeleton, skeleton.follow(q))
    assert len(rest) == frames
    return sy.Motion(skeleton, q, fps, name="wavy", notes=["a note"], **options)


def inside(motion):
    return np.abs(inside_limits(motion.skeleton, np.array(motion.q)) - motion.q).max(initial=0.0) < 1e-9


def same(a, b, slack=1e-9):
    """Equal rotations and numbers, whatever the signs of quaternions."""
    assert len(a) == len(b)
    assert np.abs(a.frames() - b.frames()).max(initial=0.0) < slack * max(1.0, np.abs(b.positions()).max(initial=1.0))


def turned_by(a, b):
    return np.linalg.norm((Rotation.from_quat(a).inv() * Rotation.from_quat(b)).as_rotvec(), axis=-1)


# Parts of clips ------------------------------------------------------------------------------------------------------


@given(
    st.integers(0, 9), st.integers(-12, 12) | st.none(), st.integers(-12, 12) | st.none(),
    st.sampled_from([None, 1, 2, 3, -1, -2]),
)  # fmt: skip
def test_a_slice_is_that_of_python(frames, start, stop, step):
    clip = wavy(LEG, frames=frames, stretch=np.arange(frames * 18.0).reshape(frames, 6, 3))
    part = clip[start:stop:step]
    assert np.array_equal(part.q, clip.q[start:stop:step])
    assert np.array_equal(part.stretch, clip.stretch[start:stop:step])
    assert (part.name, part.notes, part.skeleton) == ("wavy", ("a note",), LEG)
    assert part.fps == 30.0 / abs(step or 1)


def test_a_frame_is_a_pose():
    clip = wavy(LEG)
    assert isinstance(clip[3], sy.Pose)
    assert np.array_equal(clip[3].q, clip.q[3])
    assert np.array_equal(clip[-1].q, clip.q[-1])
    assert np.array_equal(clip[np.int64(2)].q, clip.q[2])


@pytest.mark.parametrize("frame", [40, -41, 1.0, "1", True, None, slice(0, 1.5), slice(None, None, 0), (1, 2)])
def test_frames_that_are_not_there(frame):
    with pytest.raises(InputError, match="wavy"):
        _ = wavy(LEG)[frame]


def test_what_belongs_to_frames_is_cut_with_them():
    clip = wavy(ARM, frames=20)
    fitted = sy.fit_positions(clip.positions(), ARM, ARM.joint_names)
    fitted = type(fitted).made(fitted, fitted.errors, fitted.smoothness, flips=(3, 12, 14))
    part = fitted[10:20:2]
    assert isinstance(part, sy.results.Fitted)
    assert np.array_equal(part.errors, fitted.errors[10:20:2])
    assert part.flips == (1, 2)
    assert part.smoothness == fitted.smoothness
    clip = wavy(FREE, frames=16)
    still = clip.in_place()[5:9]
    assert np.array_equal(still.root_motion, clip.in_place().root_motion[5:9])
    again = pickle.loads(pickle.dumps(still))
    assert np.array_equal(again.root_motion, still.root_motion)
    locked = sy.foot_lock(clip)
    part = locked[4:12]
    assert np.array_equal(part.contact, locked.contact[4:12])
    assert np.array_equal(part.motion.q, locked.motion.q[4:12])


# Between frames ------------------------------------------------------------------------------------------------------


@given(seeds, st.sampled_from([15.0, 30.0, 50.0, 120.0]))
def test_resampled_clips_keep_time_names_and_limits(seed, fps):
    clip = wavy(LEG, seed, stretch=np.linspace(0.5, 2.0, 40 * 18).reshape(40, 6, 3))
    there = clip.resample(fps)
    assert there.fps == fps
    assert (there.name, there.notes[0], there.skeleton) == ("wavy", "a note", LEG)
    assert clip.duration - 1.0 / fps < there.duration + 1e-9
    assert there.duration < clip.duration + 1e-9
    assert inside(there)
    assert there.stretch.min() >= 0.5 - 1e-12
    assert there.stretch.max() <= 2.0 + 1e-12
    every = round(fps / 30.0) if fps >= 30.0 and fps % 30.0 == 0.0 else None
    if every:
        same(there[::every], clip, 1e-12)
        assert np.einsum("i,i", there.q[0], clip.q[0]) > 0.0


def test_rotations_follow_spherical_cubic_splines():
    """SciPy's spline is the oracle; signs of quaternions do not matter."""
    loose = FREE.with_limits(dict.fromkeys(["chest"]))
    clip = wavy(loose, 3)
    at = loose.q_slice("chest")
    q = np.array(clip.q)
    q[::3, at] *= -1.0
    flipped = sy.Motion(loose, q, 30.0)
    spline = RotationSpline(clip.times, Rotation.from_quat(clip.q[:, at]))
    there = flipped.resample(77.0)
    assert turned_by(there.q[:, at], spline(there.times).as_quat()).max() < 1e-9
    same(there, clip.resample(77.0), 1e-9)
    assert (np.einsum("ij,ij->i", there.q[1:, at], there.q[:-1, at]) > 0.0).all()


@pytest.mark.parametrize("skeleton", [LEG, FREE, ARM])
def test_there_and_back_is_as_good_as_a_cubic(skeleton):
    """The error of a cubic falls with the fourth power of the step; that of the nearest sample with the first."""
    errors = []
    for fps in (30.0, 60.0):
        clip = wavy(skeleton, 5, frames=240, fps=240.0, span=0.1)
        back = clip.resample(fps).resample(240.0)
        inner = slice(30, min(len(clip), len(back)) - 30)
        errors.append(np.abs(back.positions()[inner] - clip.positions()[inner]).max())
    assert errors[0] < 2e-3 * skeleton.size
    if skeleton is ARM:  # its waves are not cut by limits
        assert errors[1] < errors[0] / 8.0


def test_a_number_at_its_limit_does_not_swing_beyond():
    hinge = Skeleton([Joint("knee", kind=Kind.HINGE, axis=(1, 0, 0), limit=Interval(0.0, 1.0))])
    clip = sy.Motion(hinge, np.array([0, 0, 0, 1, 1, 1, 0.5, 0, 0.01, 0.0])[:, None], 10.0)
    there = clip.resample(370.0)
    assert there.q.min() >= -1e-12
    assert there.q.max() <= 1.0 + 1e-12
    assert np.abs(np.diff(there.q[:, 0])).max() < 0.1  # and it is continuous
    free = sy.Motion(hinge.with_limits({"knee": None}), clip.q, 10.0).resample(370.0)
    assert free.q.max() > 1.0


def test_a_hinge_without_limits_does_not_turn_back_a_whole_turn():
    wheel = Skeleton([Joint("wheel", kind=Kind.HINGE, axis=(1, 0, 0))])
    angles = np.arange(20) * 0.5
    wrapped = (angles + np.pi) % (2 * np.pi) - np.pi
    there = sy.Motion(wheel, wrapped[:, None], 10.0).resample(40.0).q[:, 0]
    off = there - np.arange(len(there)) * 0.125
    assert np.abs(off - 2 * np.pi * np.round(off / (2 * np.pi))).max() < 1e-9


def test_whole_turns_of_a_wheel_do_not_count():
    """Smoothing, blends, loops and differences take the shorter way, as the wheel does not show how often it turned."""
    wheel = Skeleton([Joint("wheel", kind=Kind.HINGE, axis=(1, 0, 0)), Joint("rim", "wheel", rest=UP, tip=True)])
    angles = np.arange(60) * 0.3
    clip = sy.Motion(wheel, ((angles + np.pi) % (2 * np.pi) - np.pi)[:, None], 10.0)
    same(clip.smoothed(1.0), clip)
    same(sy.concatenate([clip[:30], clip[20:]], blend=10), clip)
    far = sy.Motion(wheel, np.full((60, 1), 50.0), 10.0)
    same(far.with_added(clip.additive(far)), clip)
    loop = clip[:43].looped(5)
    assert np.abs(np.diff(np.unwrap(loop.q[:, 0]))).max() < 0.4


def test_one_pose_of_a_long_clip_is_that_of_the_whole():
    clip = wavy(LEG, 4, frames=200)
    assert np.abs(clip.at(3.3333).frames - clip.at([0.0, 3.3333, 6.6])[1].frames).max() < 1e-12


def test_poses_at_times():
    clip = wavy(LEG)
    one, several = clip.at(0.5), clip.at([0.0, 0.5, clip.duration])
    assert np.allclose(one.q, several[1].q)
    assert np.allclose(several[0].q, clip.q[0])
    assert np.allclose(several[2].q, clip.q[-1])
    assert np.allclose(one.frames, clip.resample(60.0)[30].frames)
    assert clip.at([]) == []
    for times in (-0.1, 5.0, [0.0, np.nan], "a", [[0.0]]):
        with pytest.raises(InputError, match="times"):
            clip.at(times)
    with pytest.raises(InputError, match="a clip with frames"):
        clip[:0].at(0.0)


def test_rates_that_files_round_lose_no_frame():
    clip = sy.Motion(LEG, wavy(LEG, frames=160).q, 1.0 / 0.033333)
    assert np.array_equal(clip.resample(30).q, clip.q)
    assert len(sy.Motion(LEG, wavy(LEG, frames=161).q, 120.005).resample(30)) == 41


# In a row ------------------------------------------------------------------------------------------------------------


@given(seeds, st.integers(0, 40))
def test_a_clip_that_is_cut_and_joined_is_the_same(seed, cut):
    clip = wavy(LEG, seed, stretch=np.linspace(0.5, 2.0, 40 * 18).reshape(40, 6, 3))
    whole = sy.concatenate([clip[:cut], clip[cut:]])
    assert np.array_equal(whole.q, clip.q)
    assert np.array_equal(whole.stretch, clip.stretch)
    assert (whole.name, whole.notes, whole.fps) == ("wavy", ("a note",), 30.0)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("overlap", [1, 7])
def test_parts_that_overlap_are_the_same_again(align, overlap):
    clip = wavy(FREE)
    whole = sy.concatenate([clip[: 20 + overlap], clip[20:]], blend=overlap, align=align)
    assert np.abs(whole.q - clip.q).max() < 1e-9


@given(seeds, st.integers(0, 15))
def test_the_length_is_the_sum_less_the_overlaps_and_limits_are_kept(seed, overlap):
    clips = [wavy(LEG, seed + k, frames=16 + k) for k in range(3)]
    for align in (False, True):
        joined = sy.concatenate(clips, blend=overlap, align=align)
        assert len(joined) == 16 + 17 + 18 - 2 * overlap
        assert inside(joined)


def test_an_overlap_goes_from_one_clip_to_the_other_without_a_jump():
    a, b = wavy(LEG, 1), wavy(LEG, 2)
    joined = sy.concatenate([a, b], blend=10)
    assert np.array_equal(joined.q[:30], a.q[:30])
    same(joined[40:], b[10:], 1e-12)
    steps = np.abs(np.diff(joined.positions(), axis=0)).max((1, 2))
    plain = np.abs(np.diff(sy.concatenate([a, b]).positions(), axis=0)).max((1, 2))
    assert steps[29:41].max() < 0.5 * plain[39]


@pytest.mark.parametrize("up", ["y", "z"])
def test_an_aligned_clip_goes_on_by_the_last_step(up):
    """A body that walks straight on and turns evenly: the same clip twice is one long walk."""
    axis = "xyz".index(up)
    base = np.eye(4)
    base[:3, :3] = Rotation.from_rotvec([0.3, 0.2, 0.1]).as_matrix()
    body = Skeleton([Joint("still", rest=base), Joint("root", "still", Kind.FREE, base)], up=up)
    turn = np.eye(3)[axis] * 0.1
    ahead = np.eye(3)[(axis + 1) % 3]
    world, frames = np.eye(4), []
    step = np.eye(4)
    step[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
    step[:3, 3] = 0.2 * ahead
    first = body.rest_pose().transform("root")
    for _ in range(20):
        local = np.linalg.inv(first) @ world @ first
        frames.append([*local[:3, 3], *Rotation.from_matrix(local[:3, :3]).as_quat()])
        world = world @ step
    clip = sy.Motion(body, np.array(frames), 30.0)
    same(sy.concatenate([clip[:8], clip[3:11], clip[5:9]], align=True), clip)
    away = clip[3:].moved(origin=(5, 5, 5) * (1 - np.eye(3)[axis]), heading=2.0)
    same(sy.concatenate([clip[:8], away], blend=5, align=True), clip)


def test_clips_that_do_not_fit():
    clip = wavy(LEG)
    with pytest.raises(InputError, match="motions: expected at least one clip"):
        sy.concatenate([])
    with pytest.raises(InputError, match=r"fps of motions\[1\]: expected 30.*resample\(30\)"):
        sy.concatenate([clip, clip.resample(60)])
    with pytest.raises(InputError, match=r"blend before motions\[1\]: expected at most the 40 frames"):
        sy.concatenate([clip, clip], blend=41)
    with pytest.raises(InputError, match="another skeleton"):
        sy.concatenate([clip, wavy(ARM)])
    with pytest.raises(InputError, match="a free root, or none"):
        sy.concatenate([wavy(sy.bundled("humanoid").with_root("x,yaw"))] * 2, align=True)
    assert len(sy.concatenate([wavy(ARM)] * 2, align=True)) == 80
    with pytest.raises(InputError, match=r"motions\[0\]"):
        sy.concatenate([clip[0]])
    for blend in (-1, 1.5, "a", np.nan):
        with pytest.raises(InputError, match="blend"):
            sy.concatenate([clip, clip], blend=blend)


# Loops ---------------------------------------------------------------------------------------------------------------


def seam(motion):
    """Steps of places at the seam, place and heading apart, and the median and the largest step elsewhere."""
    if motion.skeleton.joints[0].kind is Kind.FREE:
        motion = motion.in_place(heading=True)
    places = motion.positions()
    steps = np.linalg.norm(np.diff(places, axis=0, append=places[:1]), axis=2).max(1)
    return steps[-1], np.median(steps[:-1]), steps[:-1].max()


@given(seeds, st.sampled_from([LEG, FREE, ARM]), st.integers(2, 20))
def test_a_loop_goes_over_into_its_beginning(seed, skeleton, blend):
    clip = wavy(skeleton, seed)
    loop = clip.looped(blend, cut=False)
    assert len(loop) == 40
    assert inside(loop)
    before, usual, largest = seam(clip)
    assume(largest < 3.0 * usual)  # at limits, joints of the clip jump by themselves
    after, _, _ = seam(loop)
    assert after <= max(2.0 * usual, 0.3 * before)
    assert np.allclose(loop.q[blend : 40 - blend], clip.q[blend : 40 - blend], atol=1e-9)


def test_a_motion_that_comes_round_by_itself_does_not_change():
    turns = np.sin(2 * np.pi * np.arange(40)[:, None] / 40 + np.arange(7))
    clip = sy.Motion(ARM, ARM.random_pose(1).q + 0.1 * turns, 30.0)
    assert np.abs(clip.looped(8).q - clip.q).max() < 1e-3  # what a parabola is off the curve
    again = sy.Motion(ARM, np.concatenate([clip.q, clip.q[:1]]), 30.0)
    assert np.array_equal(again.looped(8).q, clip.looped(8).q)


def test_velocity_is_continuous_over_the_seam():
    clip = sy.Motion(ARM, ARM.rest_q + 0.2 * np.linspace(0, 1, 60)[:, None] ** 2 * np.ones(7), 30.0)
    q = clip.looped(15).q
    steps = np.diff(np.concatenate([q, q]), axis=0)
    assert np.abs(np.diff(steps, axis=0)).max() < 2.5 * np.abs(np.diff(clip.looped(15).q, 2, axis=0)).max()
    with pytest.raises(InputError, match="at least 4"):
        clip[:3].looped()
    for blend in (0, 31, 2.5):
        with pytest.raises(InputError, match="blend"):
            clip.looped(blend)


def test_a_body_that_drifts_comes_back_and_one_that_walks_goes_on():
    body = sy.bundled("humanoid")
    times = np.arange(90)[:, None] / 30.0
    arm = np.sin(2.0 * times) * (0.0, 0.0, 0.4)

    def clip(speed, turning):
        q = np.repeat(body.rest_q[None], 90, axis=0)
        hips, upper = body.q_slice("hips"), body.q_slice("left_upper_arm")
        q[:, hips.start : hips.start + 3] += times * (speed, 0.0, 0.0)
        q[:, hips.stop - 4 : hips.stop] = Rotation.from_rotvec(times * (0.0, turning, 0.0)).as_quat()
        q[:, upper] = (Rotation.from_quat(body.rest_q[upper]) * Rotation.from_rotvec(arm)).as_quat()
        return sy.Motion(body, q, 30.0)

    def way(motion):
        """From the first to the last frame: length units, radians."""
        hips = motion.in_place(heading=True).root_motion[-1]
        return np.linalg.norm(hips[:3, 3]), np.linalg.norm(Rotation.from_matrix(hips[:3, :3]).as_rotvec())

    still = clip(0.02, 0.1).looped(10)
    assert max(way(still)) < 0.02
    walk = clip(1.0, 0.1).looped(10)
    assert way(walk)[0] > 2.5
    assert way(walk)[1] < 0.02
    turning = clip(1.0, 1.0).looped(10)
    assert way(turning)[1] == pytest.approx(way(clip(1.0, 1.0))[1])


def test_animated_scale_goes_round_too():
    stretch = np.linspace(0.5, 2.0, 40)[:, None, None] * np.ones((40, 6, 3))
    loop = wavy(LEG, stretch=stretch).looped(10, cut=False)
    assert np.abs(np.log(loop.stretch[0] / loop.stretch[-1])).max() < 0.06
    assert np.allclose(loop.stretch[10:30], stretch[10:30])


# Time ----------------------------------------------------------------------------------------------------------------


def fastest(clip):
    """The highest velocity and acceleration of any joint, from differences of its values alone."""
    skeleton, found = clip.skeleton, []
    for row, joint in enumerate(skeleton.joints):
        q = clip.q[:, skeleton.q_slice(row)]
        if joint.kind in (Kind.BALL, Kind.FREE):
            turns = Rotation.from_quat(q[:, -4:])
            found.append((turns[:-1].inv() * turns[1:]).as_rotvec())
        if joint.kind is not Kind.BALL and joint.kind.v_size:
            found.append(np.diff(q[:, :3] if joint.kind is Kind.FREE else q, axis=0))
    rates = [step * clip.fps for step in found]
    hard = [np.linalg.norm(np.diff(rate, axis=0), axis=1).max(initial=0.0) * clip.fps for rate in rates]
    return max(np.linalg.norm(rate, axis=1).max() for rate in rates), max(hard)


@pytest.mark.slow
@pytest.mark.parametrize("skeleton", [ARM, LEG, FREE], ids=lambda one: one.name)
@settings(max_examples=8 if UNCOMPILED else 25)  # a whole body takes a tenth of a second
@given(seed=seeds, velocity=st.floats(0.2, 3.0), acceleration=st.floats(1.0, 20.0))
def test_a_slowed_clip_keeps_its_limits_and_its_path(skeleton, seed, velocity, acceleration):
    clip = wavy(skeleton, seed, frames=12, span=0.3)
    slow = clip.slowed(velocity=velocity, acceleration=acceleration)
    fast, hard = fastest(slow)
    assert fast <= velocity * (1.0 + 1e-9)
    assert hard <= acceleration * (1.0 + 1e-6)
    assert len(slow) >= len(clip)
    assert inside(slow)
    same(slow[:1], clip[:1], 1e-9)
    same(slow[-1:], clip[-1:], 1e-9)
    places = np.linalg.norm(slow.positions()[:, None] - clip.positions()[None], axis=3).max(2)
    step = np.linalg.norm(np.diff(slow.positions(), axis=0), axis=2).max()
    assert places.min(0).max() <= step  # it passes each frame of the clip


def test_a_clip_within_its_limits_is_not_slowed():
    clip = wavy(FREE, span=0.2)
    fast, hard = fastest(clip)
    assert np.array_equal(clip.slowed(velocity=1.01 * fast, acceleration=1.01 * hard).q, clip.q)
    assert np.array_equal(clip.slowed().q, clip.q)


def test_a_clip_is_slowed_where_it_is_too_fast_and_not_elsewhere():
    """A joint that moves in the second half only, and then too fast."""
    q = np.tile(ARM.rest_q, (61, 1))
    q[30:, 0] = np.linspace(0.0, 1.0, 31) ** 2
    q[:, 6] = np.linspace(0.0, 1.0, 61)
    clip = sy.Motion(ARM, q, 30.0)
    slow = clip.slowed(velocity={"joint1": 0.5})
    same(slow[:28], clip[:28], 1e-6)
    assert 1.5 < slow.duration - 1.0 < 2.5
    assert np.abs(np.diff(slow.q[:, 6])).max() * 30.0 == pytest.approx(0.5)


def test_a_corner_of_the_path_is_taken_slowly():
    q = np.tile(ARM.rest_q, (41, 1))
    q[:, 0] = np.abs(np.linspace(-0.5, 0.5, 41))
    slow = sy.Motion(ARM, q, 30.0).slowed(acceleration=3.0)
    assert fastest(slow)[1] <= 3.0 * (1.0 + 1e-6)
    assert slow.q[:, 0].min() < 0.01


@pytest.mark.parametrize(
    ("given", "word"),
    [({"velocity": 0.0}, "above 0"), ({"acceleration": -1.0}, "above 0"), ({"velocity": "x"}, "velocity")],
)
def test_limits_that_cannot_be_used_are_named(given, word):
    with pytest.raises(InputError, match=word):
        wavy(ARM).slowed(**given)


def test_reversed_and_retimed():
    clip = wavy(LEG, stretch=np.ones((40, 6, 3)))
    assert np.array_equal(clip.reversed().reversed().q, clip.q)
    same(clip.retimed(1.0), clip, 1e-12)
    same(clip.retimed(0.5)[::2], clip, 1e-12)
    slow = clip.retimed([(0, 0.2), (0.5, 0.2), (1.0, 1.2)])
    assert slow.duration == pytest.approx(1.0)
    assert np.allclose(slow.q[0], slow.q[15])
    assert np.allclose(slow[-1].frames, clip.at(1.2).frames)
    assert inside(slow)
    keys = [[(0, 0), (1, 2)], [(0, 0)], [(0.1, 0), (1, 1)], [(0, 0), (0, 1)], [(0, 0), (1, np.nan)], 0, -1, "fast", []]
    for curve in keys:
        with pytest.raises(InputError, match="curve"):
            clip.retimed(curve)


# Smoothing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frequency", [1.0, 2.0, 6.0, 12.0])
def test_the_filter_has_the_gain_of_a_butterworth_filter_and_no_phase(frequency):
    """A small wave keeps 1 / (1 + (sin/sin)⁴ (√2 − 1)) of its size, as numbers and as rotations."""
    fps, cutoff = 120.0, 6.0
    times = np.arange(1200) / fps
    wave = 1e-3 * np.sin(2 * np.pi * frequency * times)
    gain = 1.0 / (1.0 + (np.sqrt(2) - 1) * (np.sin(np.pi * frequency / fps) / np.sin(np.pi * cutoff / fps)) ** 4)
    rod = Skeleton.chain([(0, 0, 0), (0, 1, 0)])
    base = Rotation.from_rotvec([0.3, 1.0, -2.0])
    clip = sy.Motion(rod, (base * Rotation.from_rotvec(wave[:, None] * (0, 0, 1))).as_quat(), fps)
    angle = (base.inv() * Rotation.from_quat(clip.smoothed(cutoff).q)).as_rotvec()[:, 2]
    assert np.abs(angle - gain * wave)[200:-200].max() < 1e-5 * 1e-3 + 1e-8
    slider = Skeleton([Joint("slide", kind=Kind.SLIDE, axis=(1, 0, 0))])
    slid = sy.Motion(slider, wave[:, None], fps).smoothed(cutoff).q[:, 0]
    assert np.abs(slid - gain * wave)[200:-200].max() < 1e-8


@given(seeds)
def test_smoothing_does_not_depend_on_axes_signs_or_direction(seed):
    rng = np.random.default_rng(seed)
    noisy = wavy(LEG, seed)
    at = LEG.q_slice("root")
    loose = LEG.with_limits({"hip": None, "knee": None, "slide": None})
    q = np.array(noisy.q)
    hip = loose.q_slice("hip")
    for turn in (slice(at.stop - 4, at.stop), hip):
        shake = Rotation.from_rotvec(0.3 * rng.normal(size=(40, 3)))
        q[:, turn] = (Rotation.from_quat(q[:, turn]) * shake).as_quat()
    clip = sy.Motion(loose, q, 30.0)
    smooth = clip.smoothed(4.0)
    same(clip.reversed().smoothed(4.0), smooth.reversed(), 1e-7)
    turned = q.copy()
    outer, inner = Rotation.random(2, random_state=seed)
    turned[:, hip] = (outer * Rotation.from_quat(q[:, hip]) * inner).as_quat() * rng.choice([-1.0, 1.0], (40, 1))
    there = sy.Motion(loose, turned, 30.0).smoothed(4.0).q[:, hip]
    back = (outer.inv() * Rotation.from_quat(there) * inner.inv()).as_quat()
    assert turned_by(back, smooth.q[:, hip]).max() < 1e-7


def test_smoothing_keeps_even_turns_and_limits():
    rod = Skeleton.chain([(0, 0, 0), (0, 1, 0)])
    spin = Rotation.from_rotvec(np.arange(100)[:, None] * (0.3, 0.1, -0.2))
    clip = sy.Motion(rod, spin.as_quat(), 30.0)
    assert turned_by(clip.smoothed(1.0).q, clip.q).max() < 1e-8
    rough = wavy(LEG, 1, span=3.0)
    assert inside(rough.smoothed(6.0))
    assert any("clamped to limits" in note for note in rough.smoothed(6.0).notes)
    for cutoff in (0.0, -1.0, 15.0, np.nan, "a"):
        with pytest.raises(InputError, match="cutoff"):
            rough.smoothed(cutoff)


@pytest.mark.parametrize(
    ("frames", "fps", "cutoff"), [(3, 30.0, 1e-9), (5, 1e6, 6.0), (90, 120.0, 0.01), (90, 30.0, 6.0)]
)
def test_the_filter_is_exact_also_at_low_cutoffs(frames, fps, cutoff):
    """The x of least |x - y|² + λ |D x|², solved densely; for a large λ the straight line of least squares."""
    noise = np.random.default_rng(3).normal(size=frames) + np.linspace(100.0, 500.0, frames)
    slider = Skeleton([Joint("slide", kind=Kind.SLIDE, axis=(1, 0, 0))])
    smooth = sy.Motion(slider, noise[:, None], fps).smoothed(cutoff).q[:, 0]
    weight = (np.sqrt(2) - 1) / (2 * np.sin(np.pi * cutoff / fps)) ** 4
    bends = np.diff(np.eye(frames), n=2, axis=0)
    inverse = np.linalg.inv(np.eye(frames - 2) / weight + bends @ bends.T)
    np.testing.assert_allclose(smooth, noise - bends.T @ inverse @ bends @ noise, atol=1e-8)
    if weight > 1e15:
        np.testing.assert_allclose(smooth, np.polyval(np.polyfit(range(frames), noise, 1), range(frames)), atol=1e-6)


def test_a_cutoff_that_a_long_clip_cannot_have_is_refused_with_the_lowest():
    slider = Skeleton([Joint("slide", kind=Kind.SLIDE, axis=(1, 0, 0))])
    clip = sy.Motion(slider, np.zeros((20_000, 1)), 1000.0)
    with pytest.raises(InputError, match=r"cutoff: expected at least (\S+) Hz for 20000 frames.*resample") as said:
        clip.smoothed(1e-4)
    lowest = float(re.search(r"least (\S+) Hz", str(said.value))[1])
    assert np.isfinite(clip.smoothed(1.1 * lowest).q).all()


@pytest.mark.parametrize("fps", [0.0, -1.0, np.nan, np.inf, 1e-300, 1e9])
def test_rates_that_no_clip_has_are_refused(fps):
    with pytest.raises(InputError, match=r"fps: expected 1e-06 to 1e[+]06 frames per second"):
        sy.Motion(ARM, [ARM.rest_q], fps)


@pytest.mark.parametrize(
    "limits", [{"velocity": 1e-6}, {"acceleration": 1e-14}, {"velocity": 1e-5, "acceleration": 1e3}]
)
def test_a_slowed_clip_of_too_many_frames_is_refused_before_it_is_made(limits):
    clip = sy.Motion(ARM, np.linspace(ARM.rest_q, ARM.random_pose(1).q, 31), 1000.0)
    with pytest.raises(InputError, match=r"velocity, acceleration: expected a clip of fewer than [0-9,]+ frames"):
        clip.slowed(**limits)


# Over the ground -----------------------------------------------------------------------------------------------------


@given(seeds, st.booleans())
def test_root_motion_is_apart_and_comes_back(seed, heading):
    clip = wavy(FREE, seed)
    still = clip.in_place(heading=heading)
    hips = still.positions()[:, FREE.index("hips")]
    assert np.abs(hips[:, [0, 2]] - hips[0, [0, 2]]).max() < 1e-9
    assert np.allclose(hips[:, 1], clip.positions()[:, FREE.index("hips"), 1])
    assert np.allclose(still.root_motion[0], np.eye(4))
    assert np.abs(still.with_root_motion().q - clip.q).max() < 1e-9
    same(still[5:20].with_root_motion(), clip[5:20], 1e-9)


@given(seeds, st.floats(-3.0, 3.0))
def test_a_moved_clip_begins_there_and_faces_there(seed, angle):
    clip = wavy(FREE, seed)
    moved = clip.moved(origin=(3.0, 0.5, -2.0), heading=angle)
    hips = FREE.index("hips")
    assert np.allclose(moved.positions()[0, hips, [0, 2]], (3.0, -2.0))
    assert np.allclose(moved.positions()[:, hips, 1], clip.positions()[:, hips, 1] + 0.5)
    legs = moved.positions()[0, [FREE.index("left_upper_leg"), FREE.index("right_upper_leg")]]
    left = legs[0] - legs[1]
    if np.hypot(left[0], left[2]) > 0.4 * np.linalg.norm(left):
        ahead = np.cross(left, (0.0, 1.0, 0.0))
        assert np.allclose(ahead / np.linalg.norm(ahead), (np.sin(angle), 0.0, np.cos(angle)), atol=1e-9)
    same(clip.moved(heading=(np.sin(angle), 0.0, np.cos(angle))), clip.moved(heading=angle), 1e-9)
    back = moved.moved(origin=clip.positions()[0, hips] * (1, 0, 1) - (0, 0.5, 0), heading=None)
    assert np.allclose(back.positions()[0, hips], clip.positions()[0, hips])


def test_a_body_that_may_lean_moves_along_the_floor_of_its_file():
    """Whether the body leans, or its world is tilted, cannot be seen in these clips."""
    leaning = [clip for seed in (3402, *range(60)) if find_up(FREE, (clip := wavy(FREE, seed)).q).tilt]
    assert leaning
    for clip in leaning:
        moved = clip.moved(origin=(3.0, 0.5, -2.0))
        hips = FREE.index("hips")
        assert np.allclose(moved.positions()[0, hips, [0, 2]], (3.0, -2.0))
        assert np.allclose(moved.positions()[:, hips, 1], clip.positions()[:, hips, 1] + 0.5)


def test_what_stands_beside_a_body_goes_with_it():
    """In some files, props stand beside the root of the body; and a scene may have two people."""
    joints = [Joint("scene"), Joint("root", "scene", Kind.FREE), Joint("prop", "scene", Kind.FREE, UP)]
    body = Skeleton([*joints, Joint("tip", "root", rest=UP)], up="y")
    clip = wavy(body)
    apart = clip.positions()[:, 2] - clip.positions()[:, 1]
    moved = clip.moved(origin=(3, 0, 1), heading=2.0)
    there = moved.positions()[:, 2] - moved.positions()[:, 1]
    assert np.allclose(np.linalg.norm(there, axis=1), np.linalg.norm(apart, axis=1))
    same(sy.concatenate([clip[:20], moved[10:]], blend=10, align=True), clip)


def test_a_body_that_stands_fixed_cannot_be_moved():
    for tool in (lambda clip: clip.moved(origin=(1, 0, 0)), lambda clip: clip.in_place()):
        with pytest.raises(InputError, match="a skeleton with a free root"):
            tool(wavy(ARM))
        with pytest.raises(InputError, match="number of frames"):
            tool(wavy(FREE)[:0])
    for wrong in ({"origin": (1, 2)}, {"heading": (0, 0, 0)}, {"origin": (np.nan, 0, 0)}, {"heading": "z"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            wavy(FREE).moved(**wrong)
    same(wavy(FREE).moved(), wavy(FREE), 1e-12)


def test_a_root_with_a_limit_is_moved_beyond_it_and_says_so():
    turning = SwingTwist(
        x=(0.2, 0.2), y=(0.2, 0.2), twist=(-0.5, 0.5), frame=np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    )
    body = Skeleton([Joint("root", kind=Kind.FREE, limit=turning)], up="y")
    clip = sy.Motion(body, [body.rest_q] * 3, 30.0)
    assert clip.moved(origin=(1, 0, 0)).notes == ()
    assert clip.moved(heading=0.4).notes == ()
    assert clip.moved(heading=1.5).notes == ("Moved beyond the limit of root.",)


# Additive ------------------------------------------------------------------------------------------------------------


@given(seeds)
def test_a_difference_added_to_its_base_is_the_clip(seed):
    clip, other = wavy(LEG, seed), wavy(LEG, seed + 1)
    for base in (other, LEG.rest_pose(), clip[0]):
        rows = base.q if isinstance(base, sy.Motion) else np.repeat(base.q[None], 40, axis=0)
        still = sy.Motion(LEG, rows, 30.0)
        same(still.with_added(clip.additive(base)), clip)
        same(still.with_added(clip.additive(base), 0.0), still)
    more = other.with_added(clip.additive(clip[0]), np.linspace(0.0, 1.0, 40))
    assert inside(more)
    same(more[:1], other[:1])


def test_differences_that_do_not_fit():
    clip = wavy(LEG)
    with pytest.raises(InputError, match="frames of base: expected 1 or 40"):
        clip.additive(clip[:5])
    with pytest.raises(InputError, match="fps of base"):
        clip.additive(sy.Motion(LEG, clip.q, 60.0))
    with pytest.raises(InputError, match="skeleton of base"):
        clip.additive(ARM.rest_pose())
    with pytest.raises(InputError, match="frames of additive"):
        clip[:7].with_added(clip.additive(clip[0]))
    with pytest.raises(InputError, match="fps of additive"):
        sy.Motion(LEG, clip.q, 60.0).with_added(clip.additive(clip[0]))
    with pytest.raises(InputError, match="weight"):
        clip.with_added(clip.additive(clip[0]), [1.0, 2.0])
    with pytest.raises(InputError, match="additive"):
        clip.with_added(clip)
    with pytest.raises(InputError, match="base"):
        clip.additive(0)


# Edges ---------------------------------------------------------------------------------------------------------------

TOOLS = {
    "slice": lambda clip: clip[:],
    "resample": lambda clip: clip.resample(77.0),
    "reversed": lambda clip: clip.reversed(),
    "smoothed": lambda clip: clip.smoothed(5.0),
    "retimed": lambda clip: clip.retimed(1.5),
    "slowed": lambda clip: clip.slowed(velocity=0.5, acceleration=2.0),
    "moved": lambda clip: clip.moved(origin=(1, 2, 3), heading=1.0),
    "in place": lambda clip: clip.in_place(),
    "joined": lambda clip: sy.concatenate([clip, clip], align=True),
    "overlap": lambda clip: sy.concatenate([clip, clip], blend=len(clip)),
    "added": lambda clip: clip.with_added(clip.additive(clip[0])),
    "mirrored": lambda clip: clip.mirrored(),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("frames", [1, 2, 3])
def test_short_clips(tool, frames):
    clip = wavy(FREE, frames=frames, stretch=np.full((frames, len(FREE), 3), 1.5))
    out = TOOLS[tool](clip)
    assert len(out) >= 1
    assert (out.name, out.notes[0], out.skeleton) == ("wavy", "a note", FREE)
    assert np.allclose(out.stretch, 1.5)
    assert inside(out)


@pytest.mark.parametrize("tool", ["slice", "resample", "reversed", "smoothed", "mirrored"])
def test_a_clip_without_frames_stays_one(tool):
    assert len(TOOLS[tool](wavy(FREE)[:0])) == 0
    assert len(sy.concatenate([wavy(FREE)[:0], wavy(FREE)])) == 40


def test_limits_that_a_clip_breaks_stay_broken():
    """Recorded clips leave limits that someone adds; a tool does not press them into them."""
    clip = wavy(LEG.with_limits({"hip": None, "knee": None, "slide": None}), span=2.0)
    tight = sy.Motion(LEG, clip.q, 30.0)
    assert not inside(tight)
    assert np.array_equal(tight.reversed().q, clip.q[::-1])
    same(tight.resample(60.0)[::2], tight, 1e-12)


@pytest.mark.compiled  # feet of a walk are held four times
@pytest.mark.parametrize(
    "tool", [lambda clip, **lock: clip.looped(8, **lock), lambda clip, **lock: clip.smoothed(3, **lock)]
)
def test_planted_feet_are_held_on_demand(tool):
    walk = sy.load_motion("examples/walk.bvh")
    plain, locked = sy.foot_lock(tool(walk)), sy.foot_lock(tool(walk, lock_feet=True))
    assert len(locked.motion) == len(plain.motion)
    assert locked.slide_before < 0.5 * plain.slide_before


@pytest.mark.parametrize("first", [0, 5, 10, 15])
def test_a_loop_has_whole_strides_wherever_it_begins(first):
    walk = sy.load_motion(Path(__file__).parents[2] / "examples" / "walk.bvh")[first:]
    assert 64 <= len(walk.looped()) <= 72  # two strides
    short = walk[:24].looped()  # less than a stride
    assert len(short) == 24
    assert any("the blend shows" in note for note in short.notes)


def test_a_loop_that_fits_badly_names_a_part_that_fits():
    walk = sy.load_motion(Path(__file__).parents[2] / "examples" / "walk.bvh")
    for clip in (walk[7:64], walk[5:90]):
        found = [re.search(r"\[(\d+):(\d+)\]", note) for note in clip.looped().notes if "the blend shows" in note]
        (first, end) = (int(text) for text in found[0].groups())
        loop = clip[first:end].looped()
        assert not [note for note in loop.notes if "the blend shows" in note]


def test_a_fast_cycle_with_few_frames_is_a_loop_without_a_note():
    """From frame to frame, such joints move and turn by much: the phase of the end is known no better."""
    walk = sy.load_motion(Path(__file__).parents[2] / "examples" / "walk.bvh")
    stride = walk[10:].looped()[::4]
    assert len(stride) < 20
    assert not [note for note in stride.looped().notes if "the blend shows" in note]


@given(st.floats(-0.9, 0.9), st.integers(4, 30), seeds)
def test_a_blend_of_poses_half_a_turn_apart_does_not_jump(lean, frames, seed):
    """In the overlap, the rotation between both clips goes through half a turn: the shorter way changes its side."""
    rod = Skeleton.chain([(0, 0, 0), (0, 1, 0)])
    rng = np.random.default_rng(seed)
    base, (axis,) = Rotation.from_quat(rng.normal(size=4)), rng.normal(size=(1, 3))
    axis /= np.linalg.norm(axis)
    turn = np.pi + np.linspace(-0.4, 0.4, frames) + lean
    still = sy.Motion(rod, np.tile(base.as_quat(), (frames, 1)), 30.0)
    other = sy.Motion(rod, (base * Rotation.from_rotvec(turn[:, None] * axis)).as_quat(), 30.0)
    joined = sy.concatenate([still, other], blend=frames).q
    steps = np.linalg.norm(rotation_between(joined[:-1], joined[1:]), axis=-1)
    assert steps.max() < 2.2 * (np.pi + 1.4) / frames  # a smoothstep is 1.5 times as fast as its mean
    half = still.with_added(other.additive(still[0]), 0.5).q
    assert np.linalg.norm(rotation_between(half[:-1], half[1:]), axis=-1).max() < 0.5 * 0.8 / (frames - 1) + 1e-6


def test_a_blend_of_endless_hinges_half_a_turn_apart_does_not_jump():
    wheel = Skeleton([Joint("wheel", kind=Kind.HINGE, axis=(1, 0, 0))])
    frames, turn = 20, np.pi + np.linspace(-0.4, 0.4, 20)
    clips = [sy.Motion(wheel, values[:, None], 30.0) for values in (np.zeros(frames), turn)]
    steps = np.diff(sy.concatenate(clips, blend=frames).q[:, 0])
    assert np.abs((steps + np.pi) % (2 * np.pi) - np.pi).max() < 2.2 * (np.pi + 0.4) / frames


def test_clips_longer_than_memory_and_headings_upwards_are_refused():
    clip = wavy(LEG)
    for call in (lambda: clip.resample(1e12), lambda: clip.retimed(1e-12), lambda: clip.retimed([(0, 0), (1e12, 1)])):
        with pytest.raises(InputError, match=r"expected a clip of fewer than [0-9,]+ frames"):
            call()
    body = sy.bundled("humanoid").with_root("free")
    with pytest.raises(InputError, match="heading: expected a direction over the ground"):
        sy.Motion(body, [body.rest_q] * 3, 30.0).moved(heading=(0.0, 2.0, 0.0))
