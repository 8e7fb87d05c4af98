"""A clip under the goals, and what is keyed on top of it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import synovia as sy
from cli_runs import run
from conftest import REPO
from panels import Line, make_page, settled
from synovia.draw.rods import build
from synovia.draw.theme import THEMES
from synovia.errors import InputError
from synovia.model.change import change_between, no_change
from synovia.viewer.editing.first_goals import first_goals
from synovia.viewer.editing.session import Session
from synovia.viewer.page.saving import Files, motion_file
from synovia.viewer.panel.why import Why
from synovia.viewer.scene.canvas import Canvas
from synovia.viewer.scene.ghosts import Onion

FPS = 10.0


@pytest.fixture
def session():
    body = sy.bundled("humanoid").with_root("free")
    q = np.tile(body.rest_q, (41, 1))
    q[:, 2] = np.linspace(0.0, 2.0, 41)  # it glides ahead
    one = Session(body, [sy.Motion(body, q, FPS, name="glide")], mode="free")
    first_goals(one.goals)
    one.animation.set_clip(0)
    one.history.mark_first()
    return one


def change_at(session, seconds):
    """What the keys change at a time, (nq,)."""
    below, shown = session.state.clip_values(seconds), session.animation.start(seconds).q
    return change_between(session.body.skeleton, below, shown)


def save(clip, folder):
    """Write a clip without loss; the path."""
    sy.save_motion(clip, folder / "clip.npz", force=True)
    return folder / "clip.npz"


def _keyed(session, frame=20):
    """Raise the left hand at a frame and key it; where the hand is then."""
    session.animation.set_play(time=frame / FPS, playing=False)
    settled(session)
    hand = next(editor for editor in session.goals.editors if editor.label == "left_hand")
    session.goals.move(hand.key, hand.position + np.array((-0.1, 0.3, 0.1)))
    assert not settled(session).missed
    place = session.body.pose.position("left_hand").copy()
    assert session.animation.key().frame == frame
    return place


def test_a_walk_is_mirrored_and_looped_with_its_layers_and_taken_home(monkeypatch, tmp_path):
    walk = sy.load_motion(REPO / "examples" / "walk.bvh")
    session = Session(walk.skeleton, [walk], mode="free")
    session.animation.set_clip(0)
    page, at, step = make_page(session, monkeypatch)
    hand = session.body.given.roles["left_hand"]
    key, drag = next(iter(session.goals.editors), None) or session.goals.add("position", hand), 40
    session.animation.set_play(time=drag / walk.fps, playing=False)
    settled(session)
    session.goals.move(key.key, key.position + np.array([0.0, 0.2, 0.1]) * session.body.size / 1.7)
    settled(session)
    session.animation.finish_edit()
    session.state.finish()
    edited = session.animation.play.top
    assert np.abs(edited.q - walk.q).max() > 0.01
    at["Make a clip"].type("Mirrored")
    mirrored = session.animation.play.motion
    np.testing.assert_allclose(mirrored.q, edited.mirrored().q, atol=1e-9)
    assert not session.animation.play.all  # the layers are in the clip
    at["Make a clip"].type("Looped")
    looped = session.animation.play.motion
    np.testing.assert_allclose(looped.q, edited.mirrored().looped().q, atol=1e-9)
    step()
    assert at["Clip"].value == at["Clip"].options[-1] == looped.name == "walk, mirrored, looped"
    assert "former one" in page.message.text
    sent = {}
    page.client.send_file_download = lambda name, content, **_: sent.update({name: content})
    at["Motion as"].value = next(label for label in at["Motion as"].options if ".fbx" in label)
    at["Save motion"].type(True)
    (tmp_path / "home.fbx").write_bytes(sent["walk_mirrored_looped.fbx"])
    read = sy.load_motion(tmp_path / "home.fbx")
    assert len(read) == len(looped)
    far = lambda pose: np.linalg.norm(pose.position(hand) - pose.positions[0])  # noqa: E731
    unit = (read.skeleton.meters_per_unit or 1.0) / (walk.skeleton.meters_per_unit or 1.0)
    for frame in (0, len(looped) // 2):
        assert far(read.pose(frame)) * unit == pytest.approx(far(looped.pose(frame)), rel=1e-4)
    assert session.history.undo()
    assert session.animation.play.motion is mirrored
    session.animation.set_clip(None)
    with pytest.raises(InputError, match="no clip is chosen"):
        next(tab for tab in page._tabs if hasattr(tab, "_tools"))._make("Looped")


def test_the_page_says_that_a_held_hand_stays_behind(session, monkeypatch):
    page, at, step = make_page(session, monkeypatch)
    stack = next(tab for tab in page._tabs if hasattr(tab, "_stack"))._stack
    session.animation.set_play(time=2.0, playing=False)
    settled(session)
    hand = next(editor for editor in session.goals.editors if editor.label == "left_hand")
    session.goals.move(hand.key, hand.position + np.array((-0.1, 0.3, 0.1)))
    settled(session)
    session.animation.finish_edit()
    session.state.finish()
    step()
    assert session.layers.all[0].relative  # as the body walks
    at["Held frames"].type("15, 25")
    step()
    assert "stays in place" not in stack._shown_findings.content
    at["Goes along"].type(False)
    step()
    assert "stays in place while the body goes 500 mm" in stack._shown_findings.content
    at["Goes along"].type(True)
    step()
    assert "stays in place" not in stack._shown_findings.content


def test_goals_that_were_there_first_do_not_pin_the_clip(session):
    feet = [editor for editor in session.goals.editors if editor.label.endswith("_foot")]
    assert len(feet) == 2
    for time in (1.0, 3.0):
        session.animation.set_play(time=time)
        frame = settled(session)
        np.testing.assert_allclose(frame.pose.q, session.animation.clips[0].q[round(time * FPS)], atol=1e-6)
        assert not frame.missed
    foot = feet[0]
    place = foot.position.copy()
    session.goals.move(foot.key, place + np.array((0.0, 0.1, 0.0)))
    np.testing.assert_allclose(
        settled(session).pose.position("left_foot"), place + np.array((0.0, 0.1, 0.0)), atol=2e-3
    )
    session.animation.set_play(time=3.8)
    np.testing.assert_allclose(settled(session).pose.q, session.animation.clips[0].q[38], atol=1e-12)
    assert foot.follows
    session.animation.set_clip(None)
    assert all(editor.enabled and not editor.follows for editor in feet)


def test_a_key_changes_its_surroundings_and_nothing_else(session):
    place = _keyed(session)
    session.animation.set_play(time=0.0)
    clip = session.animation.clips[0]
    np.testing.assert_allclose(settled(session).pose.q, clip.q[0], atol=1e-6)
    session.animation.set_play(time=2.0)
    np.testing.assert_allclose(settled(session).pose.position("left_hand"), place, atol=1e-3)
    session.animation.set_play(time=2.3)
    away = np.abs(settled(session).pose.q - clip.q[23]).max()
    session.animation.set_play(time=2.4)
    assert away > np.abs(settled(session).pose.q - clip.q[24]).max() > 0.0
    session.animation.set_play(time=3.0)
    np.testing.assert_allclose(settled(session).pose.q, clip.q[30], atol=1e-6)


def test_between_two_keys_the_layer_goes_from_one_to_the_other(session):
    _keyed(session, 10)
    _keyed(session, 20)
    for key, time in zip(session.animation.play.keys, (1.0, 2.0), strict=True):
        change = change_at(session, time)
        assert len(key.values) > 10
        for joint, value in key.values.items():
            np.testing.assert_allclose(change[session.body.skeleton.q_slice(joint)], value, atol=1e-12)
    moves = no_change(session.body.skeleton) == 0.0
    assert not change_at(session, 0.4)[moves].any()
    assert not change_at(session, 2.6)[moves].any()
    steps = [change_at(session, time) for time in np.linspace(0.501, 2.499, 201)]
    assert np.abs(np.diff(steps, axis=0)).max() < 0.05  # no jump


@pytest.mark.parametrize("ending", [".glb", ".bvh", ".npz"])
def test_the_key_is_in_the_saved_file(session, tmp_path, ending):
    place = _keyed(session)
    path = tmp_path / f"clip{ending}"
    path.write_bytes(motion_file(Files(session.state).solved_clip([]), ending)[0])
    read = sy.load_motion(path)
    assert read.duration == pytest.approx(4.0)
    unit = np.linalg.norm(read.pose(0).position("left_foot") - read.pose(0).position("left_hand")) / np.linalg.norm(
        session.animation.clips[0].pose(0).position("left_foot")
        - session.animation.clips[0].pose(0).position("left_hand")
    )
    np.testing.assert_allclose(read.pose(round(2.0 * read.fps)).position("left_hand"), place * unit, atol=2e-3 * unit)
    plain = session.animation.clips[0].pose(0).position("left_hand")
    np.testing.assert_allclose(read.pose(0).position("left_hand"), plain * unit, atol=2e-3 * unit)


def test_the_layer_of_the_page_is_that_of_sy_edit(session, tmp_path, monkeypatch):
    _keyed(session, 12)
    _keyed(session, 20)
    clip, path = session.animation.clips[0], tmp_path / "edit.toml"
    path.write_bytes(Files(session.state).layer_file())
    layers = sy.formats.read_layers(path, clip.skeleton)
    edited = sy.edit(clip, layers)
    shown = np.array([session.animation.start(frame / FPS).q for frame in range(len(clip))])
    np.testing.assert_allclose(edited.motion.q, shown, atol=1e-12)
    assert np.flatnonzero(edited.acts).tolist() == list(range(8, 25))  # half a second at 10 frames a second
    played = Files(session.state).solved_clip([])
    np.testing.assert_allclose(edited.motion.positions(), played.positions(), atol=2e-3)
    again = Session(clip.skeleton, [clip], mode="free")
    with pytest.raises(sy.InputError, match="no clip is chosen"):
        again.layers.open(layers)
    again.animation.set_clip(0)
    _, at, step = make_page(again, monkeypatch)
    at["Open a file"].type(SimpleNamespace(name="edit.toml", content=path.read_bytes()))
    step()
    assert [key.frame for key in again.animation.play.keys] == [12, 20]
    assert Files(again.state).layer_file() == path.read_bytes()
    again.history.undo()
    assert again.animation.play.keys == ()
    with pytest.raises(sy.errors.UnsupportedError, match="no pose is keyed"):
        Files(again.state).layer_file()


def _shown(session):
    """Joint values of the clip with layers and keys at each frame, as the page shows them."""
    session.animation.set_play(time=session.animation.play.time, playing=False)
    count = len(session.animation.play.motion)
    return np.array([session.animation.start(frame / FPS).q for frame in range(count)])


def _moved_hand(session, frame, way, label="left_hand"):
    """Drag a hand at a frame; its editor."""
    session.animation.set_play(time=frame / FPS, playing=False)
    settled(session)
    hand = next(editor for editor in session.goals.editors if editor.label == label)
    session.goals.move(hand.key, hand.position + np.array(way))
    settled(session)
    return hand


def test_layers_made_on_the_page_give_the_clip_that_their_file_gives(session, tmp_path):
    clip, path = session.animation.clips[0], tmp_path / "edit.toml"
    hand = _moved_hand(session, 12, (-0.1, 0.3, 0.1))
    session.layers.change(0, frames=(10, 18), blend=4)
    assert hand.follows
    _moved_hand(session, 25, (0.1, 0.2, 0.2), "right_hand")
    session.animation.key()
    session.layers.add_key()
    session.layers.change(1, frames=(24, 30))
    _keyed(session, 33)
    path.write_bytes(Files(session.state).layer_file())
    layers = sy.formats.read_layers(path, clip.skeleton)
    assert [layer.name for layer in layers] == ["left_hand", "pose at 25", "keys"]
    edited = sy.edit(clip, layers)
    np.testing.assert_allclose(edited.motion.q, _shown(session), atol=1e-12)
    code = run("edit", save(clip, tmp_path), "--layers", path, "-o", tmp_path / "edited.npz")
    assert code.code in (0, 1)
    np.testing.assert_allclose(sy.load_motion(tmp_path / "edited.npz").q, _shown(session), atol=1e-12)
    again = Session(clip.skeleton, [clip], mode="free")
    again.animation.set_clip(0)
    again.layers.open(layers)
    np.testing.assert_array_equal(_shown(again), _shown(session))
    assert Files(again.state).layer_file() == path.read_bytes()


def test_a_layer_of_the_target_holds_it_and_keeps_the_rest(session):
    clip = session.animation.clips[0]
    hand = _moved_hand(session, 20, (-0.25, 0.1, 0.1))
    place = hand.position.copy()
    session.layers.move_along(0, False)
    session.layers.change(0, frames=(18, 22), blend=3)
    q, row = _shown(session), clip.skeleton.index("left_hand")
    np.testing.assert_allclose(
        [sy.Pose(clip.skeleton, values).positions[row] for values in q[18:23]], np.tile(place, (5, 1)), atol=1e-3
    )
    np.testing.assert_array_equal(q[:16], clip.q[:16])
    np.testing.assert_array_equal(q[25:], clip.q[25:])
    assert session.layers.edited.changes[0].joint == "left_hand"


def test_a_target_goes_along_with_the_clip_until_it_is_fixed(session, monkeypatch):
    """The body glides ahead, and the hand keeps its distance from where the clip has it."""
    _, at, step = make_page(session, monkeypatch)
    clip, row = session.animation.clips[0], session.animation.clips[0].skeleton.index("left_hand")
    hand, way = _moved_hand(session, 20, (0.0, 0.0, 0.0)), np.array((-0.25, 0.1, 0.1))
    session.goals.move(hand.key, clip.pose(20).positions[row] + way)
    assert session.layers.all[0].relative
    step()
    session.layers.change(0, frames=(15, 30), blend=3)
    made = np.array([sy.Pose(clip.skeleton, values).positions[row] for values in _shown(session)])
    np.testing.assert_allclose((made - clip.positions()[:, row])[15:31], np.tile(way, (16, 1)), atol=1e-3)
    for other in ("head", "left_foot"):
        moved = [sy.Pose(clip.skeleton, values).position(other) for values in _shown(session)]
        np.testing.assert_allclose(moved, clip.positions()[:, clip.skeleton.index(other)], atol=1e-6)
    session.layers.move_along(0, False)
    session.layers.change(0, frames=(20, 20))
    (target,) = session.layers.all[0].targets.values()
    np.testing.assert_allclose(target.position[0], clip.pose(20).positions[row] + way, atol=1e-9)
    session.layers.open([sy.Layer(goals=[sy.AimGoal("head", (1.0, 1.5, 9.0))], frames=(15, 20))])
    step()
    assert not at["Goes along"].visible
    with pytest.raises(InputError, match="one place or rotation for each joint"):
        session.layers.move_along(0, True)


def test_a_layer_of_a_key_is_the_key_until_it_is_stretched(session):
    place = _keyed(session, 20)
    before = _shown(session)
    layer = session.layers.add_key()
    assert session.animation.play.keys == ()
    np.testing.assert_allclose(_shown(session), before, atol=1e-5)
    assert layer.frames == (20, 20)
    session.layers.change(0, frames=(20, 26))
    moved = [sy.Pose(session.body.skeleton, q).position("left_hand") for q in _shown(session)[20:27]]
    for k, one in enumerate(moved):
        np.testing.assert_allclose(one - place, (0.0, 0.0, 0.05 * k), atol=1e-3)  # the body glides on


def test_a_layer_of_one_limb_leaves_the_other_keys(session):
    _keyed(session, 20)
    hand = next(editor for editor in session.goals.editors if editor.label == "left_hand")
    before = _shown(session)
    layer = session.layers.add_key(session.goals.part_of(hand.key))
    rows = {session.body.skeleton.index(joint) for joint in layer.keys[0].values}
    assert rows <= session.goals.part_of(hand.key)
    assert [key.frame for key in session.animation.play.keys] == [20]
    np.testing.assert_allclose(_shown(session), before, atol=1e-5)


def test_layers_are_muted_moved_removed_and_undone(session):
    clip = session.animation.clips[0]
    _moved_hand(session, 10, (-0.1, 0.3, 0.0))
    first = _shown(session)
    session.layers.change(0, muted=True)
    np.testing.assert_array_equal(_shown(session), clip.q)
    assert session.layers.edited is None
    session.layers.change(0, muted=False)
    np.testing.assert_array_equal(_shown(session), first)
    session.layers.change(0, frames=(20, 24), blend=0)
    assert np.flatnonzero((_shown(session) != clip.q).any(axis=1)).tolist() == list(range(20, 25))
    session.layers.remove(0)
    np.testing.assert_array_equal(_shown(session), clip.q)
    session.history.undo()
    session.history.undo()
    np.testing.assert_array_equal(_shown(session), first)
    for frames in ((30, 20), (0, 99), (-1, 3)):
        with pytest.raises(sy.InputError, match="frames"):
            session.layers.change(0, frames=frames)
    with pytest.raises(sy.InputError, match="no such layer"):
        session.layers.remove(7)
    np.testing.assert_array_equal(_shown(session), first)


def test_keys_go_with_a_layer_that_is_moved_and_stay_within_one_that_is_cut(session):
    turn = np.array([0.0, 0.0, np.sin(0.2), np.cos(0.2)])
    layer = sy.Layer(pose={10: {"left_upper_arm": turn}, 20: {"left_upper_arm": turn}}, frames=(8, 22), relative=True)
    session.layers.open([layer, layer])
    session.layers.change(0, frames=(11, 25))
    session.layers.change(1, frames=(8, 15))
    assert [[key.frame for key in one.keys] for one in session.layers.all] == [[13, 23], [10, 15]]


def test_a_pose_that_is_the_clips_makes_no_layer(session):
    session.animation.set_play(time=1.0, playing=False)
    settled(session)
    with pytest.raises(sy.InputError, match="the pose is the same as in the clip"):
        session.layers.add_key()
    assert session.layers.all == ()


def test_a_layer_that_misses_says_so_and_layers_with_goals_open(session, monkeypatch):
    _, at, step = make_page(session, monkeypatch)
    far = sy.Layer({"left_hand": (9.0, 1.0, 0.0)}, frames=(10, 12), name="far")
    session.layers.open([far])
    step()
    assert session.layers.findings(0)[0].cause == "missed"
    assert at["Held frames"].value == "10, 12"
    at["Held frames"].type("20, 25")
    at["Fade"].type("3")
    assert (session.layers.all[0].frames, session.layers.all[0].blend) == ((20, 25), 3)
    step()
    at["Remove the layer"].type(None)
    assert session.layers.all == ()


def test_layers_are_changed_on_the_time_line(session, monkeypatch):
    page, at, step = make_page(session, monkeypatch)
    hand = _moved_hand(session, 10, (-0.1, 0.3, 0.0))
    page.select(hand.key)
    step()
    line = Line(page, at)
    (row,) = line.data["layers"]
    assert (row["name"], row["first"], row["last"], row["muted"]) == ("left_hand", 10, 10, False)
    there = lambda: (*session.layers.all[0].frames, session.layers.all[0].blend)  # noqa: E731
    session.layers.change(0, blend=2)
    last = len(session.animation.play.motion) - 1
    for part, by, wanted in (
        ("last", 10, (10, 20, 2)), ("first", 2, (12, 20, 2)), ("out", 3, (12, 20, 5)), ("in", 1, (12, 20, 4)),
        ("move", -999, (0, 8, 4)), ("move", 999, (last - 8, last, 4)), ("first", 999, (last, last, 4)),
        ("last", -999, (last, last, 4)), ("in", 999, (last, last, 0)), ("first", 12 - last, (12, last, 0)),
        ("last", 20 - last, (12, 20, 0)), ("out", 4, (12, 20, 4)),
    ):  # fmt: skip
        line.act("layer", 0, part, by)
        assert there() == wanted
    line.act("mute", 0)
    assert session.layers.all[0].muted
    play = lambda: session.animation.play  # noqa: E731
    for action, given, frame in (
        ("go", 30, 30),
        ("step", 3, 33),
        ("step", -last, 0),
        ("step", last, last),
        ("go", 30, 30),
    ):
        line.act(action, given)
        assert play().frame == frame
    line.act("mark", 0)
    line.act("step", 5)
    line.act("mark", 1)
    assert (play().first, play().end, play().frame) == (30, 35, 35)
    line.act("step", 5)
    assert play().frame == 35
    line.act("range", 0, last)
    line.act("go", 30)
    line.act("rename", 0, "wave <b>")
    step()
    assert [one["name"] for one in line.data["layers"]] == ["wave <b>"]
    for text in ("", "[1]", '[1, "layer"]', '[1, "layer", [0], 2]', '[1, "no"]', "[", "9" * 6000):
        at["Time line"].type(text)
        at["Layers of the time line"].type(text)
    for wrong, word in (
        (("layer", 0, "all", 1), "part of the layer"), (("layer", 7, "move", 3), "no such layer"),
        (("rename", 0, " "), "name of the layer"), (("order", 0, 5), "no such place"),
    ):  # fmt: skip
        line.act(*wrong)
        assert word in page.message.text
    assert session.layers.all[0].frames == (12, 20)
    line.act("remove", 0)
    step()
    assert line.data["layers"] == []


def test_layers_are_reordered_among_the_keys_and_soloed(session, monkeypatch):
    page, at, step = make_page(session, monkeypatch)
    raised = {"left_upper_arm": np.array([0.0, 0.0, np.sin(0.2), np.cos(0.2)])}
    keys = sy.Layer(pose={20: raised}, frames=(20, 20), relative=True, name="keys")
    low, high = (sy.Layer(pose={5: raised}, frames=(5, 5), relative=True, name=name) for name in ("low", "high"))
    session.layers.open([low, keys, high.replace(muted=True)])
    step()
    line = Line(page, at)
    names = lambda: [one.label for one in session.layers.all]  # noqa: E731
    assert (names(), line.data["below"]) == (["low", "high"], 1)
    line.act("order", 1, 0)  # below the lowest layer
    step()
    assert (names(), line.data["below"]) == (["high", "low"], 2)
    line.act("order", 0, 2)  # above the keys
    step()
    assert (names(), line.data["below"]) == (["low", "high"], 1)
    line.act("solo", 1)
    assert [one.muted for one in session.layers.all] == [True, False]
    assert session.layers.soloed == 1
    line.act("solo", 1)
    assert [one.muted for one in session.layers.all] == [False, True]  # as before
    assert session.history.undo()
    assert [one.muted for one in session.layers.all] == [True, False]


def test_playback_goes_backwards_faster_and_only_once(session, monkeypatch):
    page, at, step = make_page(session, monkeypatch)
    play = lambda: session.animation.play  # noqa: E731
    step()
    line = Line(page, at)
    line.act("go", 20)
    for way, factor in ((1, 1.0), (1, 2.0), (-1, -2.0), (-1, -4.0), (-1, -4.0)):
        line.act("shuttle", way)
        assert (play().playing, play().shuttle) == (True, factor)
    play().advance(0.1)
    assert play().time == pytest.approx(1.6)
    assert len(Files(session.state).solved_clip([])) == 41  # playback does not change what is saved
    line.act("shuttle", 0)
    assert (play().playing, play().shuttle) == (False, 1.0)
    line.act("range", 10, 20)
    line.act("loop", 0)
    line.act("play", 1)
    play().advance(5.0)
    assert (play().frame, play().playing) == (20, False)
    line.act("play", 1)  # again from its beginning
    assert (play().frame, play().playing) == (10, True)
    line.act("stop")
    step()
    assert line.now == (10.0, False)
    assert (line.data["first"], line.data["end"], line.data["loop"]) == (10, 20, False)
    for key, frame, ends in (("begins", 12, (12, 20)), ("ends", 15, (12, 15)), ("begins", 18, (18, 19))):
        session.animation.set_span(*ends) if frame == 18 else None
        session.animation.set_play(time=frame / FPS)
        at[f"Playback {key} here"].type(None)
        assert (play().first, play().end) == ends


def test_a_step_on_a_long_clip_sends_one_frame(session, monkeypatch):
    body = session.body.given
    long = sy.Motion(body, np.tile(body.rest_q, (10_000, 1)), FPS, name="long")
    session.state.clips = [long]
    session.animation.set_clip(0)
    page, at, step = make_page(session, monkeypatch)
    step()
    line = Line(page, at)
    before = line._bar._data.content
    line.act("go", 7_000)
    step()
    assert line._bar._data.content is before
    assert line.now == (7_000.0, False)
    assert len(line._bar._now.content) < 100


def test_curves_have_the_values_of_the_joint_and_its_limits(session, monkeypatch):
    page, at, step = make_page(session, monkeypatch)
    _keyed(session, 20)
    elbow = session.body.given.index("left_lower_arm")
    curves = session.animation.curves(elbow)
    row = session.body.skeleton.q_slice("left_lower_arm")
    (curve,) = curves.curves
    np.testing.assert_allclose(curve.values, np.degrees(_shown(session)[:, row][:, 0]), atol=1e-9)
    np.testing.assert_allclose(curve.clip, np.degrees(session.animation.clips[0].q[:, row][:, 0]), atol=1e-9)
    assert (curve.low, curve.high) == pytest.approx(np.degrees(session.body.given.value_range(elbow)))
    shoulder = session.animation.curves(session.body.given.index("left_upper_arm"))
    assert [one.name for one in shoulder.curves] == ["swing x", "swing y", "twist"]
    assert all(one.low <= one.values.min() and one.values.max() <= one.high for one in shoulder.curves)
    page.select_joint(elbow)
    step()
    line = Line(page, at)
    assert line.data["curves"] == []
    line.act("curves", 1)
    step()
    (shown,) = line.data["curves"]
    assert shown["name"] == "left_lower_arm"
    np.testing.assert_allclose(shown["lines"][0]["values"], curve.values, atol=0.05)
    np.testing.assert_allclose(shown["lines"][0]["clip"], curve.clip, atol=0.05)  # before the key
    assert shown["lines"][0]["limits"] == pytest.approx([curve.low, curve.high])
    line.act("keep", elbow)
    page.select_joint(session.body.given.index("left_upper_arm"))
    step()
    assert [one["name"] for one in line.data["curves"]] == ["left_lower_arm", "left_upper_arm"]


def test_the_ghost_of_the_original_is_where_the_clip_is(session, monkeypatch):
    page, at, _ = make_page(session, monkeypatch)
    _keyed(session, 20)
    session.animation.set_play(time=2.0, playing=False)
    np.testing.assert_array_equal(session.animation.original().q, session.animation.clips[0].q[20])
    assert (
        np.abs(settled(session).pose.position("left_hand") - session.animation.original().position("left_hand")).max()
        > 0.1
    )
    at["Original"].type(True)
    assert page.scene.original.shown


def test_keys_are_undone_deleted_and_replaced(session):
    _keyed(session)
    session.animation.key()
    assert [key.frame for key in session.animation.play.keys] == [20]
    session.history.undo()
    session.history.undo()
    assert session.animation.play.keys == ()
    session.history.redo()
    assert [key.frame for key in session.animation.play.keys] == [20]
    with pytest.raises(sy.SynoviaError, match="while the clip has keys"):
        session.body.set_root("fixed")
    session.animation.unkey(20)
    assert session.animation.play.keys == ()


def test_the_clip_loops_between_its_first_and_last_frame(session):
    session.animation.set_span(10, 20)
    assert session.animation.play.time == 1.0
    session.animation.set_play(playing=True)
    session.animation.play.advance(1.25)
    assert session.animation.play.time == pytest.approx(1.25)
    assert len(Files(session.state).solved_clip([])) == 11
    for span in ((20, 10), (-1, 5), (0, 41)):
        with pytest.raises(sy.SynoviaError, match="frames that play"):
            session.animation.set_span(*span)


def test_keys_go_to_frames_within_the_frames_that_play(session, monkeypatch):
    page, at, step = make_page(session, monkeypatch)
    session.animation.set_span(5, 30)
    presses = {"Last frame": 30, "Frame before": 29, "Next frame": 30, "First frame": 5}
    for label, frame in (*presses.items(), ("Frame before", 5)):
        session.animation.set_play(playing=True)
        at[label].type(None)
        step()
        assert (session.animation.play.frame, session.animation.play.playing) == (frame, False)
    session.animation.set_clip(None)
    at["Next frame"].type(None)
    assert "no clip is chosen" in page.message.text


def test_the_time_line_lists_the_keys_and_deletes_them(session, monkeypatch):
    page, at, step = make_page(session, monkeypatch)
    session.animation.set_play(time=1.5)
    step()
    line = Line(page, at)
    at["Key the pose"].type(None)
    assert "frame 15" in page.message.text
    step()
    assert line.data["keys"][0] == {"name": "whole body", "frames": [15]}
    line.act("unkey", 0, 15)
    step()
    assert session.animation.play.keys == ()
    assert line.data["keys"] == []


def test_keys_are_moved_and_copied(session, monkeypatch):
    place = _keyed(session, 20)
    page, at, step = make_page(session, monkeypatch)
    step()
    line = Line(page, at)
    session.animation.set_play(time=3.0)
    line.act("key", 0, 20, 30, 1)
    assert [key.frame for key in session.animation.play.keys] == [20, 30]
    moved = settled(session).pose.position("left_hand")
    np.testing.assert_allclose(moved - place, (0.0, 0.0, 0.5), atol=2e-3)  # the body has glided on
    session.animation.set_play(time=1.0)
    line.act("key", 0, 20, 10, 0)
    assert [key.frame for key in session.animation.play.keys] == [10, 30]
    step()
    for _ in range(2):  # a slow browser still shows the key at 30
        line.act("key", 0, 30, 31, 0)
    line.act("key", 0, 31, 30, 0)  # and now at 31
    assert [key.frame for key in session.animation.play.keys] == [10, 31]
    line.act("key", 0, 31, 10, 0)  # in place of the key that is there
    assert [key.frame for key in session.animation.play.keys] == [10]
    for _ in range(5):
        session.history.undo()
    assert [key.frame for key in session.animation.play.keys] == [20, 30]
    for frame, to, word in ((20, 20, "is already at this frame"), (20, 99, "frame of the key"), (5, 6, "no key")):
        with pytest.raises(sy.InputError, match=word):
            session.animation.move_key(frame, to)


def test_keys_of_one_limb_move_by_themselves(session, monkeypatch):
    page, at, step = make_page(session, monkeypatch)
    hand = next(editor for editor in session.goals.editors if editor.label == "left_hand")
    page.select(hand.key)
    foot = session.body.skeleton.index("left_lower_leg")
    session.animation.set_play(time=2.0)
    settled(session)
    session.body.set_joint(foot, (0.5,))
    _keyed(session, 20)
    whole = change_at(session, 2.0)
    part = session.goals.part_of(hand.key)
    rows = {session.body.skeleton.joint_names[row] for row in part}
    assert {"left_upper_arm", "left_lower_arm", "left_hand"} <= rows
    assert not {"left_lower_leg", "right_hand", "spine"} & rows
    step()
    line = Line(page, at)
    assert [row["name"] for row in line.data["keys"]] == ["whole body", "left_hand"]
    line.act("key", 1, 20, 35, 0)
    step()
    assert [key.frame for key in session.animation.play.keys] == [20, 35]
    arm, leg = (session.body.skeleton.q_slice(name) for name in ("left_upper_arm", "left_lower_leg"))
    before, after = (change_at(session, time) for time in (2.0, 3.5))
    np.testing.assert_allclose(after[arm], whole[arm], atol=1e-12)
    np.testing.assert_allclose(before[arm], (0.0, 0.0, 0.0, 1.0), atol=1e-12)
    np.testing.assert_allclose(before[leg], whole[leg], atol=1e-12)
    np.testing.assert_allclose(after[leg], 0.0, atol=1e-12)
    session.animation.set_play(time=2.0)
    line.act("key", 1, 35, 20, 1)  # joins the key that is there
    step()
    np.testing.assert_allclose(change_at(session, 2.0), whole, atol=1e-12)
    line.act("unkey", 1, 35)
    assert [key.frame for key in session.animation.play.keys] == [20]
    for _ in range(3):
        session.history.undo()
    np.testing.assert_allclose(change_at(session, 2.0), whole, atol=1e-12)
    with pytest.raises(sy.InputError, match="no key"):
        session.animation.move_key(35, 10, part=part)


@pytest.fixture
def still():
    """A body without a clip, its left hand raised."""
    one = Session(sy.bundled("humanoid"), mode="free")
    first_goals(one.goals)
    one.history.mark_first()
    hand = next(editor for editor in one.goals.editors if editor.label == "left_hand")
    one.goals.move(hand.key, hand.position + np.array((-0.1, 0.3, 0.1)))
    assert settled(one).solution.reached
    return one


def test_a_clip_is_made_from_nothing_but_keys(still, tmp_path):
    raised = still.body.pose
    still.animation.new_clip(2.0)
    assert (len(still.animation.play.motion), still.animation.play.frame, len(still.animation.play.keys)) == (61, 0, 1)
    np.testing.assert_allclose(settled(still).pose.positions, raised.positions, atol=1e-3)
    still.animation.set_play(time=2.0)
    np.testing.assert_allclose(settled(still).pose.positions, raised.positions, atol=1e-3)  # the only key holds
    hand = next(editor for editor in still.goals.editors if editor.label == "left_hand")
    still.goals.move(hand.key, hand.position - np.array((0.0, 0.5, 0.0)))
    settled(still)
    low = still.body.pose.position("left_hand").copy()
    still.animation.key()
    saved = tmp_path / "made.npz"
    saved.write_bytes(motion_file(Files(still.state).solved_clip([]), ".npz")[0])
    back = sy.load_motion(saved)
    np.testing.assert_allclose(back.pose(0).position("left_hand"), raised.position("left_hand"), atol=2e-3)
    np.testing.assert_allclose(back.pose(60).position("left_hand"), low, atol=2e-3)
    heights = [back.pose(frame).position("left_hand")[1] for frame in range(61)]
    assert max(np.diff(heights)) < 1e-3  # from the one to the other
    while still.animation.play.motion is not None:
        assert still.history.undo()
    assert len(still.animation.clips) == 1


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e9, np.nan])
def test_lengths_that_no_clip_has_are_refused(still, seconds):
    with pytest.raises(sy.InputError, match="length of the clip"):
        still.animation.new_clip(seconds)
    assert still.animation.play.motion is None


def test_a_pose_is_pasted_on_the_body_or_as_a_key(still):
    with pytest.raises(sy.InputError, match="no pose was copied"):
        still.poses.paste()
    raised = still.body.pose
    still.poses.copy()
    still.body.rest()
    still.poses.paste()
    np.testing.assert_allclose(settled(still).pose.positions, raised.positions, atol=1e-6)
    still.poses.paste(mirror=True)
    image = settled(still).pose
    for foot, other in (("left_foot", "right_foot"), ("right_foot", "left_foot")):
        far = np.linalg.norm(raised.position("left_hand") - raised.position(foot))
        assert np.linalg.norm(image.position("right_hand") - image.position(other)) == pytest.approx(far, abs=1e-6)
    still.animation.new_clip(1.0)
    still.animation.set_play(time=1.0)
    still.poses.paste()
    assert [key.frame for key in still.animation.play.keys] == [0, 30]
    np.testing.assert_allclose(settled(still).pose.positions, raised.positions, atol=1e-3)
    still.poses.mirror()  # a key, too
    np.testing.assert_allclose(settled(still).pose.positions, image.positions, atol=1e-3)


def test_the_tab_begins_a_clip(still, monkeypatch):
    _, controls, step = make_page(still, monkeypatch)
    step()
    assert controls["Clip"].options == ("(none)",)
    controls["Length s"].type("1")
    controls["Begin a clip"].type(None)
    step()
    assert controls["Clip"].options == ("(none)", "new clip")
    assert controls["Clip"].value == "new clip"
    assert len(still.animation.play.motion) == 31


def test_a_joint_that_is_turned_on_a_clip_stays_until_it_is_keyed(session):
    row = session.body.given.index("left_lower_arm")
    session.animation.set_play(time=2.0, playing=False)
    settled(session)
    session.body.set_joint(row + session.body.rooted.added, (0.7,))
    assert settled(session).pose["left_lower_arm"] == pytest.approx(0.7, abs=1e-3)
    assert [layer.name for layer in session.layers.all] == ["pose at 20"]
    session.animation.key()
    assert session.layers.all == ()
    assert settled(session).pose["left_lower_arm"] == pytest.approx(0.7, abs=1e-3)
    session.animation.set_play(time=3.5)
    assert settled(session).pose["left_lower_arm"] == pytest.approx(
        session.animation.clips[0].pose(35)["left_lower_arm"], abs=1e-3
    )
    session.history.undo()
    session.history.undo()
    session.animation.set_play(time=2.0)
    np.testing.assert_allclose(settled(session).pose.q, session.animation.clips[0].q[20], atol=1e-6)


def test_the_onion_skin_shows_poses_around_the_present_one(session, monkeypatch):
    names = []
    scene = SimpleNamespace(
        add_batched_meshes_simple=lambda name, *_, **props: names.append(name) or SimpleNamespace(visible=True, **props)
    )
    client, up = SimpleNamespace(scene=scene), np.array((0.0, 1.0, 0.0))
    canvas = Canvas(client, THEMES["light"], 1.0, 1.0, up, session.state.touch)
    onion = Onion(canvas, session.animation, build(session.body.given, THEMES["light"], 1.0))
    session.animation.set_play(time=0.7, playing=False)
    onion.show()
    assert not names
    onion.mode = "frames"
    assert onion.frames() == {("before", 0): 2, ("after", 0): 12, ("after", 1): 17}
    onion.show()
    assert len(names) == 3
    after = onion._ghosts["after", 0]._mesh
    hips = after.batched_positions[:, 2].mean()
    session.animation.set_play(time=1.7)
    onion.show()
    assert after.batched_positions[:, 2].mean() - hips == pytest.approx(0.5, abs=1e-6)  # half a metre a second
    onion.every = 2
    for degrees in (10.0, 20.0):  # a joint that was turned, and not keyed yet
        elbow = session.body.given.index("left_lower_arm") + session.body.rooted.added
        session.body.set_joint(elbow, np.radians([degrees]))
        settled(session)
        session.animation.finish_edit()
        settled(session)
        before = after.batched_positions
        onion.show()
        assert not np.array_equal(after.batched_positions, before)
    session.layers.remove(0)
    onion.every = 5
    _keyed(session, 20)
    _keyed(session, 30)
    onion.mode = "keys"
    session.animation.set_play(time=2.5)
    assert onion.frames() == {("before", 0): 20, ("after", 0): 30}
    onion.show()
    assert not onion._ghosts["before", 1]._mesh.visible
    session.animation.set_play(playing=True)
    assert onion.frames() == {}
    page, at, step = make_page(session, monkeypatch)
    at["Onion skin"].type("frames")
    at["Ghosts every"].type("9")
    step()
    assert (page.scene.onion.mode, page.scene.onion.every) == ("frames", 9)
    assert at["Ghosts every"].visible
    at["Onion skin: off, frames, keys"].type(None)
    assert page.scene.onion.mode == "keys"
    at["Ghosts every"].type("0")
    assert "above 0" in page.message.text


def test_with_auto_key_an_edit_becomes_a_key_in_one_step_of_undo(session, monkeypatch):
    page, at, step = make_page(session, monkeypatch)
    session.animation.set_play(time=2.0, playing=True)
    hand = next(editor for editor in session.goals.editors if editor.label == "left_hand")
    page.select(hand.key)
    at["Auto-key, on or off"].type(None)
    step()
    assert at["Auto-key"].value
    at["Target: up"].type(None)
    assert not session.animation.play.playing
    assert [key.frame for key in session.animation.play.keys] == [session.animation.play.frame]
    assert session.layers.all == ()
    assert session.history.undo()
    assert session.animation.play.keys == ()
    row = session.body.given.index("left_lower_arm")
    page.select_joint(row)
    session.animation.set_play(time=1.0)
    at["Target: right"].type(None)
    session.animation.set_play(time=3.0)
    assert [key.frame for key in session.animation.play.keys] == [10]
    at["Auto-key"].type(False)
    at["Target: right"].type(None)
    assert len(session.animation.play.keys) == 1


def test_why_explains_the_layer_that_misses_at_this_frame(session, monkeypatch):
    """The words and the causes in the scene are of the layer's own problem, whose pose is that of the clip."""
    page, _, step = make_page(session, monkeypatch)
    why = next(tab for tab in page._tabs if isinstance(tab, Why))
    shown = []
    monkeypatch.setattr(
        page.scene.causes, "show", lambda causes: shown.append([one.kind for one in causes]), raising=False
    )
    monkeypatch.setattr(page.host.background, "start", lambda name, action: action() if "trace" in name else None)
    session.layers.open([sy.Layer({"left_hand": (0.0, 9.0, 0.0)}, frames=(20, 24), blend=3, name="far")])
    for frame, misses in ((22, True), (35, False)):
        session.animation.set_play(time=frame / session.animation.play.motion.fps, playing=False)
        page.frame = replace(step(), still=True)
        why.show(page.frame)
        assert session.layers.missed() == (0 if misses else None)
        assert ("left_hand" in why._text.content) == misses
        assert ("No layer misses" in why._text.content) != misses
        assert bool(shown[-1]) == misses
    session.animation.set_play(time=22 / session.animation.play.motion.fps)
    solution = session.layers.solution(0)
    there = session.animation.start().position("left_hand")
    np.testing.assert_allclose(solution.pose.position("left_hand"), there, atol=1e-3)
    assert solution.missed
