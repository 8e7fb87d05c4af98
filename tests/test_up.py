"""Which direction points up: one answer for pictures, clip tools, foot lock, edits, the judge and retargeting."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from synovia.model.anatomy.up import find_up, given_up
from synovia.model.clip_tools.path import Ground
from synovia.retargeting.body import Body
from synovia.retargeting.rest_pose import find_stance

FPS = 30.0


def silent(skeleton, turn=None):
    """Return a skeleton whose file states no axes, turned as a whole at rest."""
    joints = []
    for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True):
        rest = joint.rest.copy()
        if turn is not None and parent < 0:
            rest[:3] = turn.as_matrix() @ rest[:3]
        joints.append(dataclasses.replace(joint, parent=parent if parent >= 0 else None, rest=rest))
    return sy.Skeleton(joints, name="silent")


def walk(frames=60):
    """Return a body that walks along z, and rocks from foot to foot; y is up."""
    body = silent(sy.bundled("humanoid").with_root("free"))
    rest, time = body.rest_pose(), np.arange(frames) / FPS
    hips = np.tile(rest.position("hips"), (frames, 1)) + np.stack([0 * time, 0 * time - 0.05, 0.9 * time], 1)
    targets = {}
    for side, phase in (("left_foot", 0.0), ("right_foot", 0.5)):
        cycle = time + phase
        step = np.floor(cycle) + np.clip(2.0 * (cycle % 1.0) - 1.0, 0.0, 1.0)
        places = np.tile(rest.position(side), (frames, 1))
        places[:, 1] += 0.1 * np.clip(-np.sin(2 * np.pi * cycle), 0.0, None)
        places[:, 2] += 0.9 * (step - phase) + 0.2
        targets[side] = poses(places)
    targets["hips"] = poses(hips)
    return sy.IK(body, [sy.PoseGoal(name) for name in targets], root="free").track(targets, fps=FPS).motion


def poses(places):
    """Return transforms (T, 4, 4) at places, not turned."""
    out = np.tile(np.eye(4), (len(places), 1, 1))
    out[:, :3, 3] = places
    return out


def turned(motion, turn, *, rest):
    """Return a clip turned as a whole: with its rest pose, or its frames alone."""
    if rest:
        return sy.Motion(silent(motion.skeleton, turn), motion.q, motion.fps)
    q = motion.q.copy()
    q[:, :3] = turn.apply(q[:, :3])
    q[:, 3:7] = (turn * Rotation.from_quat(q[:, 3:7])).as_quat()
    return sy.Motion(motion.skeleton, q, motion.fps)


def lying(pitch, frames=40):
    """Return a body whose rest pose stands along y, on its belly or its back on the floor, moving a leg."""
    body = silent(sy.bundled("humanoid").with_root("free"))
    still = sy.Motion(body, np.tile(body.rest_q, (frames, 1)), FPS)
    q = turned(still, Rotation.from_euler("x", pitch, degrees=True), rest=False).q.copy()
    hips = sy.Motion(body, q, FPS).positions()[:, body.index("hips")]
    q[:, :3] += (0.0, 0.14, 0.0) - hips
    leg = body.q_slice("left_upper_leg")
    q[:, leg] = Rotation.from_euler("x", 20.0 * np.sin(np.arange(frames) / 8.0)[:, None], degrees=True).as_quat()
    return sy.Motion(body, q, FPS)


@pytest.mark.parametrize("pitch", [90.0, -90.0])
def test_a_body_that_lies_in_all_frames_lies(pitch):
    """The rest pose stands along y, so y is up; the report says so, and first how the clip stays as it is."""
    clip = lying(pitch)
    answer = sy.retarget(clip, sy.bundled("humanoid"))
    up = answer.stance.up
    assert (up.name, up.source) == ("y", "rest pose")
    assert up.certainty <= 0.5
    places = answer.motion.positions()
    rise = places[:, answer.target.roles["head"], 1] - places[:, answer.target.roles["hips"], 1]
    assert np.abs(rise).max() < 0.3
    text = answer.report()
    assert text.index('up="y" (--up=y) keeps') < text.index(f'up="{up.lies}"')
    stands = sy.retarget(clip, sy.bundled("humanoid"), up=up.lies).motion.positions()
    assert (stands[:, answer.target.roles["head"], 1] > stands[:, answer.target.roles["hips"], 1] + 0.4).all()


@pytest.mark.parametrize("rest", [True, False])
@pytest.mark.parametrize(("axis", "angle", "name"), [("x", 90.0, "z"), ("x", 180.0, "-y"), ("x", 0.0, "y")])
def test_steps_outweigh_a_rest_pose_that_stands_along_another_axis(axis, angle, name, rest):
    """Files store rest poses with other axes than clips; the answer is the same for all tools."""
    clip = turned(walk(), Rotation.from_euler(axis, angle, degrees=True), rest=rest)
    found = find_up(clip.skeleton, clip.q)
    assert found.name == name
    assert found.certainty > 0.5
    body = Body.of(clip.skeleton)
    assert find_stance(clip, body).up.name == name
    np.testing.assert_array_equal(Ground.of(clip.skeleton, clip.q).up, found.vector)
    layer = sy.Layer(goals=[sy.PositionGoal("left_hand", clip[3].position("left_hand"))], frames=(2, 5))
    assert sy.edit(clip, layer).up == name
    locked = sy.foot_lock(clip)
    assert locked.up == name
    assert locked.contact.any()
    same = sy.foot_lock(clip, up=name)
    np.testing.assert_array_equal(same.motion.q, locked.motion.q)


def test_foot_lock_holds_feet_above_a_floor_along_any_axis():
    """A walk whose world is turned as a whole is corrected as the walk is."""
    clip = walk()
    usual = sy.foot_lock(clip)
    turn = Rotation.from_euler("z", 180.0, degrees=True)
    down = sy.foot_lock(turned(clip, turn, rest=True))
    assert (usual.up, down.up) == ("y", "-y")
    other = down.contact != usual.contact  # rounding may decide whether a contact begins or ends a frame earlier
    begins = np.diff(usual.contact, axis=0, prepend=usual.contact[:1])
    ends = np.diff(usual.contact, axis=0, append=usual.contact[-1:])
    assert not (other & ~(begins | ends)).any()
    assert down.floor == pytest.approx(usual.floor, abs=1e-9)
    positions = down.motion.positions()
    back, close = turn.inv().apply(positions.reshape(-1, 3)).reshape(positions.shape), 1e-3 if other.any() else 1e-6
    assert down.depth == pytest.approx(usual.depth, abs=10.0 * close)
    np.testing.assert_allclose(back, usual.motion.positions(), atol=10.0 * close)


def test_animals_stand_on_four_legs():
    """Their trunk is level: pictures and clip tools give the same answer."""
    dog = silent(sy.bundled("quadruped").with_root("free"))
    still = np.tile(dog.rest_q, (10, 1))
    assert find_up(dog).name == find_up(dog, still).name == "y"
    assert find_up(dog).certainty == 1.0
    np.testing.assert_array_equal(Ground.of(dog, still).up, (0.0, 1.0, 0.0))


def test_a_handstand_is_a_question_that_keeps_the_clip_first():
    """Frames alone do not tell a handstand from a file in which the axis points down."""
    body = silent(sy.bundled("humanoid").with_root("free"))
    still = sy.Motion(body, np.tile(body.rest_q, (30, 1)), FPS)
    clip = turned(still, Rotation.from_euler("x", 180.0, degrees=True), rest=False)
    with pytest.raises(sy.InputError, match=r'up="y" \(--up=y\) to keep the clip as it is.*up="-y"'):
        sy.retarget(clip, sy.bundled("humanoid"))


def test_an_axis_that_a_user_names():
    assert given_up("+z").name == "z"
    with pytest.raises(sy.InputError, match="up: expected x, y, z, -x, -y, -z, got 'w'"):
        find_up(sy.bundled("humanoid"), up="w")
