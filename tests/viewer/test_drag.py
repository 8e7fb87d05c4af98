"""Drags on a clip: the pose under the mouse is that of the layer, of ``sy.edit`` and of the saved file."""

import itertools

import numpy as np
import pytest

import synovia as sy
from panels import make_page, settled
from synovia.clips.editing import EditStack
from synovia.clips.editing.reach import REACHES
from synovia.errors import InputError, UnsupportedError
from synovia.layers import moved_along
from synovia.viewer.editing.engine import Engine
from synovia.viewer.editing.first_goals import first_goals
from synovia.viewer.editing.session import Session
from synovia.viewer.page.saving import Files, motion_file

FPS, FRAME, COUNT = 20.0, 30, 61


def steps():
    """Return a clip of a person who steps in place, turns and swings the arms."""
    body = sy.bundled("humanoid").with_root("free")
    t = np.arange(COUNT) / FPS
    q = np.tile(body.rest_q, (COUNT, 1))
    q[:, 0], q[:, 2] = 0.05 * np.sin(2.0 * t), 0.2 * t
    for side, phase in (("left", 0.0), ("right", np.pi)):
        swing = 0.4 * np.sin(3.0 * t + phase)
        for name, share in (("upper_leg", 1.0), ("upper_arm", -0.8), ("lower_leg", 0.6)):
            row = body.index(f"{side}_{name}")
            at = body.q_slice(row)
            if at.stop - at.start == 1:
                q[:, at] = share * np.abs(swing)[:, None]
            else:
                half = 0.5 * share * swing
                q[:, at] = np.stack([np.sin(half), 0 * half, 0 * half, np.cos(half)], axis=1)
    return sy.Motion(body, q, FPS, name="steps")


@pytest.fixture
def session():
    clip = steps()
    one = Session(clip.skeleton, [clip], mode="free")
    first_goals(one.goals)
    one.animation.set_clip(0)
    one.animation.set_play(time=FRAME / FPS, playing=False)
    settled(one)
    one.history.mark_first()
    return one


def editor_of(session, label):
    """Return the goal of a joint; add one if there is none."""
    found = next((editor for editor in session.goals.editors if editor.label == label), None)
    return session.goals.add("position", label) if found is None else found


def drag(session, label, way, *, stops=3, end=True):
    """Drag a target as the page does, in some stops; return the pose that is shown last."""
    engine = Engine(session.state)
    engine.step(1.0 / 60.0)
    with session.hand.one_step():
        editor = editor_of(session, label)
    start = editor.position.copy()
    for stop in range(1, stops + 1):
        session.goals.move(editor.key, start + stop / stops * np.array(way))
        frame, moving = engine.step(1.0 / 60.0)
        assert not moving
    if end:
        session.hand.end()
    return frame


def check_same(session, q, folder, frame=FRAME):
    """Check that a pose is that of the page at rest, of the layers, of their file, and of the saved motions."""
    clip, size = session.animation.play.motion, session.body.given.size
    np.testing.assert_allclose(settled(session).pose.q, q, atol=1e-12)
    (folder / "edit.toml").write_bytes(Files(session.state).layer_file())
    edited = sy.edit(clip, sy.formats.read_layers(folder / "edit.toml", clip.skeleton))
    places = sy.Pose(clip.skeleton, q).positions
    np.testing.assert_allclose(edited.motion.pose(frame).positions, places, atol=1e-6 * size)
    np.testing.assert_allclose(edited.motion.q, session.animation.play.top.q, atol=1e-9)
    for ending in (".npz", ".bvh"):
        path = folder / f"clip{ending}"
        path.write_bytes(motion_file(Files(session.state).solved_clip([]), ending)[0])
        read = sy.load_motion(path)
        rows = [row for row, name in enumerate(clip.skeleton.joint_names) if name in read.skeleton.joint_names]
        own = read.pose(frame).positions[[read.skeleton.index(clip.skeleton.joint_names[row]) for row in rows]]
        scale = (read.skeleton.meters_per_unit or 1.0) / (clip.skeleton.meters_per_unit or 1.0)
        np.testing.assert_allclose(own * scale, places[rows], atol=1e-6 * size)
    return edited


WAYS = {
    "left_hand": (0.05, 0.2, 0.1),
    "right_foot": (0.0, 0.1, 0.1),
    "hips": (0.05, -0.1, 0.0),
    "head": (0.1, -0.05, 0.05),
}


@pytest.mark.parametrize(("label", "reach"), [*itertools.product(WAYS, REACHES)])
def test_a_drag_shows_the_pose_of_its_layer_and_of_the_saved_file(session, tmp_path, label, reach):
    session.animation.set_reach(reach)
    frame = drag(session, label, WAYS[label])
    (layer,) = session.layers.all
    assert layer.frames == (FRAME, FRAME)
    assert session.layers.reach(0) in {"hips": REACHES, "right_foot": (reach, "limb")}.get(label, (reach,))
    edited = check_same(session, frame.pose.q, tmp_path)
    assert bool(frame.missed) == (not edited.reached[FRAME])
    clip = session.animation.clips[0]
    np.testing.assert_array_equal(edited.motion.q[~edited.acts], clip.q[~edited.acts])
    assert session.history.undo()
    assert session.layers.all == ()
    np.testing.assert_array_equal(settled(session).pose.q, clip.q[FRAME])
    assert not session.history.undo()
    assert session.history.redo()
    np.testing.assert_array_equal(settled(session).pose.q, frame.pose.q)


def test_a_limb_moves_alone_and_its_layer_keeps_that(session, tmp_path):
    session.animation.set_reach("limb")
    frame = drag(session, "left_hand", (0.4, 0.9, 0.9))
    assert frame.missed
    body, clip = session.body.given, session.animation.clips[0]
    arm = {body.index(name) for name in ("left_shoulder", "left_upper_arm", "left_lower_arm", "left_hand")}
    for row in range(len(body)):
        at = body.q_slice(row)
        assert row in arm or (frame.pose.q[at] == clip.q[FRAME][at]).all()
    check_same(session, frame.pose.q, tmp_path)
    session.layers.change(0, reach="whole body")
    assert session.layers.all[0].moving is None
    assert session.layers.reach(0) == "whole body"
    assert np.abs(settled(session).pose.q - frame.pose.q).max() > 1e-3
    with pytest.raises(InputError, match="reach of drags"):
        session.animation.set_reach("leg")


def test_the_way_of_a_drag_does_not_matter(session):
    there = drag(session, "left_hand", (-0.1, 0.25, 0.2), stops=1).pose.q
    session.history.undo()
    settled(session)
    again = drag(session, "left_hand", (-0.1, 0.25, 0.2), stops=17).pose.q
    np.testing.assert_array_equal(again, there)


def target_of(layer, pose):
    """The target of a layer that goes along with the clip, in the world, where the clip has a pose."""
    assert layer.relative
    (target,) = moved_along(layer, pose, False).targets.values()
    return target.position[0]


def test_drags_of_several_joints_change_their_own_layers(session, tmp_path):
    drag(session, "left_hand", (0.0, 0.2, 0.1))
    settled(session)
    drag(session, "right_hand", (0.0, 0.1, 0.2))
    settled(session)
    q = drag(session, "left_hand", (-0.1, 0.05, 0.0)).pose.q  # the layer below is changed
    assert [layer.name for layer in session.layers.all] == ["left_hand", "right_hand"]
    check_same(session, q, tmp_path)
    target = target_of(session.layers.all[0], session.animation.clips[0].pose(FRAME))
    np.testing.assert_allclose(sy.Pose(session.body.given, q).position("left_hand"), target, atol=1e-3)


def test_a_drag_after_a_key_is_not_applied_twice(session, tmp_path):
    q = drag(session, "left_hand", (0.0, 0.25, 0.1)).pose.q
    session.animation.key()
    assert session.layers.all == ()
    np.testing.assert_allclose(settled(session).pose.q, q, atol=1e-9)
    session.animation.key()  # again: no change
    np.testing.assert_allclose(settled(session).pose.q, q, atol=1e-9)
    frame = drag(session, "left_hand", (0.0, -0.1, 0.1))
    assert not frame.missed
    (layer,) = session.layers.all
    edited = check_same(session, frame.pose.q, tmp_path)
    assert edited.reached.all()
    place = edited.motion.pose(FRAME).position("left_hand")
    np.testing.assert_allclose(place, target_of(layer, sy.Pose(session.body.given, q)), atol=1e-3)
    again = Session(session.body.given, [session.animation.clips[0]], mode="free")
    again.animation.set_clip(0)
    again.layers.open(sy.formats.read_layers(tmp_path / "edit.toml", session.body.given))
    assert ([key.frame for key in again.animation.play.keys], len(again.layers.all)) == ([FRAME], 1)
    assert Files(again.state).layer_file() == Files(session.state).layer_file()
    session.animation.key()  # the layer on top goes into the key
    assert session.layers.all == ()
    np.testing.assert_allclose(settled(session).pose.q, frame.pose.q, atol=1e-9)
    session.animation.move_key(FRAME, 10)
    np.testing.assert_array_equal(settled(session).pose.q, session.animation.clips[0].q[FRAME])


def test_a_layer_of_many_frames_is_dragged_at_one_of_them(session, tmp_path):
    drag(session, "left_hand", (0.0, 0.2, 0.1))
    session.layers.change(0, frames=(25, 40), blend=8)
    settled(session)
    session.animation.set_play(time=33 / FPS)
    settled(session)
    frame = drag(session, "left_hand", (0.1, 0.0, 0.0))
    (layer,) = session.layers.all
    assert (layer.frames, layer.blend) == ((25, 40), 8)
    check_same(session, frame.pose.q, tmp_path, 33)
    session.layers.move_along(0, True)
    settled(session)
    frame = drag(session, "left_hand", (0.0, 0.1, 0.0))
    assert session.layers.all[0].relative
    check_same(session, frame.pose.q, tmp_path, 33)


def test_turned_joints_are_one_layer_of_the_frame(session, tmp_path):
    row = session.body.given.index("left_lower_arm") + session.body.rooted.added
    other = session.body.given.index("right_lower_arm") + session.body.rooted.added
    session.hand.begin()
    for value in (0.2, 0.5, 0.8):
        session.body.set_joint(row, [value], step=False)
    session.hand.end()
    session.body.set_joint(other, [0.6])
    frame = settled(session)
    assert frame.pose["left_lower_arm"] == pytest.approx(0.8, abs=1e-12)
    assert frame.pose["right_lower_arm"] == pytest.approx(0.6, abs=1e-12)
    assert [layer.name for layer in session.layers.all] == [f"pose at {FRAME}"]
    check_same(session, frame.pose.q, tmp_path)
    q = drag(session, "left_hand", (0.0, 0.1, 0.1)).pose.q
    assert len(session.layers.all) == 2
    check_same(session, q, tmp_path)


def test_what_a_drag_cannot_do_is_said(session, monkeypatch):
    page, at, step = make_page(session, monkeypatch)
    session.animation.set_play(weight=0.5)
    hand = editor_of(session, "left_hand")
    with pytest.raises(InputError, match="blended with another pose"):
        session.goals.move(hand.key, hand.position)
    step()
    assert "Set the weight to 1" in page.message.text
    session.animation.set_play(weight=1.0)
    rest = session.goals.add("rest", None)
    assert not rest.enabled
    with pytest.raises(InputError, match="Layer of this goal"):
        session.goals.change(rest.key, enabled=True)
    assert not at["Layer of this goal"].visible
    floor = session.goals.add("plane", "left_hand")
    page.select(floor.key)
    step()
    assert at["Layer of this goal"].visible == (not floor.has_target)
    session.layers.add_goal(floor.key)
    assert [type(goal) for goal in session.layers.all[0].goals] == [sy.PlaneGoal]
    arm = sy.bundled("arm7")
    fixed = Session(arm, [sy.Motion(arm, [arm.rest_q] * 3, 10.0)], mode="free")
    fixed.animation.set_clip(0)
    with pytest.raises(UnsupportedError, match="root joint"):
        fixed.body.set_joint(0, fixed.body.skeleton.rest_q[:7])


def test_a_pinned_joint_is_a_layer(session, tmp_path):
    foot = editor_of(session, "left_foot")
    place = settled(session).pose.position("left_foot").copy()
    assert session.goals.pin(foot.key)
    (layer,) = session.layers.all
    np.testing.assert_allclose(layer.goals[0].target[:3, 3], place, atol=1e-9)
    session.layers.change(0, frames=(20, 40))
    for frame in (20, 33, 40):
        np.testing.assert_allclose(session.animation.start(frame / FPS).position("left_foot"), place, atol=1e-3)


@pytest.mark.parametrize(("label", "far"), [("left_hand", 0.2), ("right_foot", 0.2), ("hips", 0.04), ("head", 0.04)])
def test_the_frame_alone_is_solved_as_in_the_clip(label, far):
    """The law that drags rest on: the frame of a layer does not depend on its fades, or on targets before."""
    clip, rng = steps(), np.random.default_rng(5)
    body, stack = clip.skeleton, EditStack(steps())
    below = [sy.Layer({"right_hand": (0.0, 0.1, 0.1)}, frames=(22, 22), blend=10, relative=True)]
    at, top = clip.pose(FRAME).position(label), None
    for way in far * rng.normal(size=(4, 3)):
        layer = sy.Layer(goals=[sy.PositionGoal(label, at + way)], frames=(FRAME, FRAME), blend=10)
        top = stack.on_top(below, layer) if top is None else top
        pose = top.pose(layer)
        edited = sy.edit(clip, [*below, layer])
        np.testing.assert_allclose(pose.q, edited.motion.q[FRAME], atol=1e-12)
        missed = [one for one in edited.findings if one.cause == "missed" and one.layer == layer.label]
        assert pose.missed == any(FRAME in one.frames for one in missed)
        if not pose.missed:
            there = sy.Pose(body, pose.q).position(label)
            np.testing.assert_allclose(there, at + way, atol=2e-4 * body.size)
