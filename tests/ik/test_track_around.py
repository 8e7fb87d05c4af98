"""A clip as the start and as the reference of a track, frame by frame."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia as sy

ARM = sy.bundled("arm7")
T = 12


@pytest.fixture(scope="module")
def clip():
    a, b = ARM.random_pose(3).q, ARM.random_pose(8).q
    return sy.Motion(ARM, a + (b - a) * np.linspace(0.2, 0.5, T)[:, None], 24.0)


def test_frames_whose_goals_the_clip_meets_keep_its_values(clip):
    ik = sy.IK(ARM, sy.PositionGoal("tool"))
    targets = sy.targets_from(clip, ["tool"])
    tracked = ik.track(targets, clip)
    assert np.array_equal(tracked.q, clip.q)
    assert tracked.fps == 24.0
    moved = {"tool": targets["tool"] + np.where(np.arange(T) == 5, 0.05, 0.0)[:, None]}
    away = ik.track(moved, clip, fps=30.0)
    assert away.fps == 30.0
    assert np.flatnonzero((away.q != clip.q).any(axis=1)).tolist() == [5]
    assert away.reached.all()
    assert np.array_equal(away[5].start.q, clip.q[5])


def test_joints_that_no_goal_needs_do_what_they_do_in_the_clip():
    body = sy.bundled("humanoid")
    q = np.stack([body.random_pose(k).q for k in range(6)])
    q[:, body.q_slice("hips")] = body.rest_q[body.q_slice("hips")]
    clip = sy.Motion(body, q, 30.0)
    reach = sy.targets_from(clip, ["left_hand"])
    tracked = sy.IK(body, sy.PositionGoal("left_hand")).track(reach, clip)
    leg = body.q_slice("right_lower_leg")
    assert np.array_equal(tracked.q[:, leg], clip.q[:, leg])


@pytest.mark.parametrize("solver", ["full-body", "lm", "dls"])
def test_a_rest_goal_takes_the_pose_of_each_frame(clip, solver):
    targets = sy.targets_from(clip, ["tool"])
    targets["tool"] = targets["tool"] + (0.0, 0.0, 0.03)
    goals = [sy.PositionGoal("tool"), sy.RestGoal(clip)]
    tracked = sy.IK(ARM, goals, solver).track(targets, clip)
    assert tracked.reached.all()
    for k in (0, 5, T - 1):
        one = sy.IK(ARM, [sy.PositionGoal("tool"), sy.RestGoal(clip.pose(k))], solver)
        alone = one.solve(targets["tool"][k], start=clip.pose(k))
        assert tracked.q[k] == pytest.approx(alone.q, abs=2e-3)


@given(st.floats(-0.05, 0.05), st.floats(-0.05, 0.05), st.floats(-0.05, 0.05))
@settings(max_examples=10, deadline=None)
def test_without_other_goals_than_its_own_places_the_reference_is_the_answer(clip, x, y, z):
    """From a start that is off, a track around a clip comes back to it."""
    ik = sy.IK(ARM, [sy.PositionGoal("tool"), sy.RestGoal(clip)], sy.FullBody(rest_step=1e-5))
    start = ARM.rest_pose().with_values({"joint1": x, "joint3": y, "joint6": z})
    tracked = ik.track(sy.targets_from(clip, ["tool"]), start)
    assert tracked.q == pytest.approx(clip.q, abs=5e-3)


def test_what_a_clip_cannot_be_used_for_is_refused(clip):
    ik = sy.IK(ARM, [sy.PositionGoal("tool"), sy.RestGoal(clip)], "full-body")
    targets = sy.targets_from(clip, ["tool"])
    with pytest.raises(sy.InputError, match=r"RestGoal\(motion\).*track"):
        ik.solve((0.4, 0.1, 0.5))
    with pytest.raises(sy.InputError, match=r"RestGoal\(motion\).*track"):
        ik.solve_many(targets)
    with pytest.raises(sy.InputError, match="frames of RestGoal"):
        ik.track({"tool": targets["tool"][:5]})
    plain = sy.IK(ARM, sy.PositionGoal("tool"))
    with pytest.raises(sy.InputError, match="frames of start"):
        plain.track({"tool": targets["tool"][:5]}, clip)
    for options in ({"candidates": 2}, {"both_ways": True}):
        with pytest.raises(sy.InputError, match="default with start=motion"):
            plain.track(targets, clip, **options)
    body = sy.bundled("humanoid")
    other = sy.Motion(body, np.tile(body.rest_q, (T, 1)), 30.0)
    with pytest.raises(sy.InputError, match="skeleton of start"):
        plain.track(targets, other)
    with pytest.raises(sy.InputError, match="skeleton of the motion"):
        sy.IK(ARM, [sy.PositionGoal("tool"), sy.RestGoal(other)], "full-body")
    half = sy.Motion(ARM, clip.q[:6], 24.0)
    both = [sy.RestGoal(clip, joints=["joint1"]), sy.RestGoal(half, joints=["joint2"], name="other")]
    with pytest.raises(sy.InputError, match="motions of rest goals"):
        sy.IK(ARM, [sy.PositionGoal("tool"), *both], "full-body")
    with pytest.raises(sy.errors.UnsupportedError, match="names"):
        sy.write_goals([sy.RestGoal(clip)], "never.toml")
