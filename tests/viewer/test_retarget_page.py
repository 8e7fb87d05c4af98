"""The retarget page: what it computes and its controls; ``test_browser.py`` has it in a real browser."""

import asyncio
import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("viser")

import synovia as sy
from cli_runs import assert_refused, run
from panels import Gui, Line, make_host
from synovia.retargeting import read_map, retarget
from synovia.retargeting.straight import adjusted, pose_of
from synovia.surface import Surface
from synovia.viewer import View
from synovia.viewer.editing.worker import Background
from synovia.viewer.live import Start, opening
from synovia.viewer.retarget.page import RetargetPage, quality_of
from synovia.viewer.retarget.panel import Panel
from synovia.viewer.retarget.transfer import Transfer

WALK = "examples/walk.bvh"


def walk(frames=20):
    motion = sy.load_motion(WALK)
    return sy.Motion(motion.skeleton, motion.q[:frames], motion.fps, name="walk")


@settings(max_examples=15)
@given(st.sampled_from(["humanoid", "arm7", "quadruped"]), st.integers(0, 1000))
def test_a_pose_comes_back_from_its_frames(model, seed):
    pose = sy.bundled(model).with_root("free").random_pose(seed)
    np.testing.assert_allclose(pose_of(pose.skeleton, pose.frames).frames, pose.frames, atol=1e-9)


def test_outward_raises_the_arms_of_both_sides_alike():
    body = sy.bundled("humanoid")
    rows = {side: body.index(f"{side}_upper_arm") for side in ("left", "right")}
    basis = np.eye(3)  # the humanoid has x left, y up, z forward
    pose = adjusted(body.rest_pose(), basis, dict.fromkeys(rows.values(), (0.0, 30.0, 0.0)), {rows["right"]})
    for side, row in rows.items():
        before = body.rest_pose().position(f"{side}_hand") - body.rest_pose().positions[row]
        after = pose.position(f"{side}_hand") - pose.positions[row]
        angle = np.degrees(np.arccos(before @ after / np.linalg.norm(before) / np.linalg.norm(after)))
        assert angle == pytest.approx(30.0)
        assert after[1] > before[1]
    ahead = adjusted(body.rest_pose(), basis, {rows["left"]: (0.0, -90.0, 0.0)}, set())  # first hang the arm
    ahead = adjusted(ahead, basis, {rows["left"]: (40.0, 0.0, 0.0)}, set())
    assert (ahead.position("left_hand") - ahead.positions[rows["left"]])[2] > 0.1


def test_limbs_are_those_of_the_judge_and_the_worst_frame_is_found():
    transfer = Transfer(raised(walk(40), 20), sy.bundled("humanoid"))
    outcome = transfer.compute()
    assert {limb.limb for limb in outcome.limbs} >= {"trunk", "left_upper_arm", "right_lower_leg"}
    assert (outcome.worst.limb, outcome.worst.frame) == ("left_upper_arm", 20)
    figures = outcome.answer.judgement.figures
    body = outcome.answer.motion.skeleton
    assert [body.joint_names[row] for row in figures.bones["left_upper_arm"]] == ["left_lower_arm"]
    assert {body.joint_names[row] for row in figures.bones["trunk"]} >= {"chest"}


def raised(motion, frame):
    """A clip whose left arm turns backwards around a frame, which no shoulder can follow."""
    q, at = np.array(motion.q), motion.skeleton.q_slice(motion.skeleton.roles["left_upper_arm"])
    for k in range(max(frame - 6, 0), frame + 7):
        turn = sy.Rotation.from_euler("z", -60.0 * np.exp(-(((k - frame) / 3.0) ** 2)), degrees=True)
        q[k, at] = (sy.Rotation.from_quat(q[k, at]) * turn).as_quat()
    return sy.Motion(motion.skeleton, q, motion.fps, name=motion.name)


def glitched(answer, frame):
    """A result that went wrong around a frame: the left arm is turned by 80 degrees."""
    skeleton, q = answer.motion.skeleton, np.array(answer.motion.q)
    at = skeleton.q_slice(skeleton.roles["left_upper_arm"])
    for k in range(frame - 6, frame + 7):
        turn = sy.Rotation.from_euler("y", -80.0 * np.exp(-(((k - frame) / 3.0) ** 2)), degrees=True)
        q[k, at] = (sy.Rotation.from_quat(q[k, at]) * turn).as_quat()
    return replace(answer, motion=sy.Motion(skeleton, q, answer.motion.fps, name=answer.motion.name))


def test_a_retargeted_clip_is_judged_again_after_an_edit():
    good = retarget(walk(101), sy.bundled("humanoid"))
    bad = glitched(good, 42)
    session = opening("humanoid", Start(clip=bad, frame=42)).make()
    judging, at = session.judging, good.motion.skeleton.q_slice("left_upper_arm")
    assert (session.animation.play.frame, session.animation.play.playing) == (42, False)
    assert [one.cause for one in judging.findings] == ["direction"]
    assert not judging.due
    row = session.body.given.index("left_upper_arm")
    session.body.set_joint(row + session.body.rooted.added, good.motion.q[42, at])
    session.hand.end()
    assert not judging.due  # the drag has not ended
    session.state.finish()
    session.layers.change(0, blend=5)
    assert judging.due
    assert [one.cause for one in judging.findings] == ["direction"]
    judging.judge()
    assert (judging.due, list(judging.findings)) == (False, [])
    while session.layers.all:
        session.history.undo()
    assert judging.due
    judging.judge()
    assert [one.cause for one in judging.findings] == ["direction"]


def test_the_map_is_edited_and_undone():
    transfer = Transfer(walk(), sy.bundled("humanoid"))
    good = transfer.compute()
    assert good.answer is not None
    first = dict(transfer.joints)
    left, right = first["left_upper_arm"][1], first["right_upper_arm"][1]
    transfer.assign("left_upper_arm", target=right)
    transfer.assign("right_upper_arm", target=left)
    worst = max(transfer.compute().limbs, key=lambda limb: limb.mean)
    assert quality_of(worst) == "bad"
    assert worst.limb.endswith("arm")
    transfer.assign("hips", source="", target="")
    spoiled = transfer.compute()
    assert spoiled.answer is None
    assert "hips" in spoiled.trouble
    with pytest.raises(sy.errors.UnknownNameError):
        transfer.assign("hips", source="nothing")
    while transfer.undo():
        pass
    assert transfer.joints == first
    again = transfer.compute().answer
    np.testing.assert_array_equal(again.motion.q, good.answer.motion.q)
    transfer.assign("tail", source=first["hips"][0])
    transfer.automatic()
    assert transfer.joints == first


def test_the_rest_pose_changes_the_result():
    transfer = Transfer(walk(), sy.bundled("humanoid"))
    before = transfer.compute().answer.motion
    head = transfer.turning_rows("head")
    transfer.turn({head[0]: (8.0, 0.0, 0.0)})
    after = transfer.compute().answer.motion
    row = after.skeleton.index(after.skeleton.roles["head"])
    turn = np.einsum("tij,tik->tjk", *(m.frames()[:, row, :9].reshape(-1, 3, 3) for m in (before, after)))
    angles = np.degrees(np.arccos(np.clip((np.trace(turn, axis1=1, axis2=2) - 1.0) / 2.0, -1.0, 1.0)))
    assert angles.mean() == pytest.approx(8.0, abs=1.0)
    transfer.straighten()
    np.testing.assert_array_equal(transfer.compute().answer.motion.q, before.q)


class Figure:
    """Stands for a body in the scene."""

    def __init__(self, _client, _name, skeleton, _look, scale, pick):
        self.skeleton, self.scale, self.pick = skeleton, scale, pick
        self.shares = {}

    def show(self, frames, basis, foot, aside):
        assert np.isfinite(frames).all()
        self.shown = (frames - np.append(np.zeros(9), foot))[:, 9:] @ basis, aside

    def colour(self, shares, chosen):
        self.shares, self.chosen = shares, chosen

    def look(self, shown):
        self.looks = shown


@pytest.fixture
def page(monkeypatch):
    """A page without a browser and without a thread."""
    monkeypatch.setattr("synovia.viewer.retarget.page.Figure", Figure)
    monkeypatch.setattr(Background, "start", lambda *_: None)
    gui, sent = Gui(), []
    label = SimpleNamespace(position=None)
    scene = SimpleNamespace(
        configure_default_lights=lambda *_, **__: None, add_grid=lambda *_, **__: None, add_label=lambda *_, **__: label
    )
    client = SimpleNamespace(
        gui=gui, scene=scene, flush=lambda: None, atomic=lambda: io.StringIO(),
        send_file_download=lambda name, content, **_: sent.append((name, content)),
    )  # fmt: skip
    transfer = Transfer(walk(), sy.bundled("humanoid"))
    transfer.compute()
    out = RetargetPage(client, transfer, make_host(), (Surface(), Surface()), Panel, lambda clip: None)
    out.controls, out.sent = gui.by_label, sent
    return out


def test_the_controls_edit_the_transfer(page):
    controls, transfer = page.controls, page.transfer
    part = "left_upper_arm"
    page.panel.choose(part)
    other = transfer.joints["right_upper_arm"][1]
    controls["Target"].type(other)
    assert transfer.joints[part] == (transfer.joints[part][0], other)
    assert transfer.changed.is_set()
    page._compute()
    page.show()
    assert page.figures[1].shares
    assert max(page.figures[1].shares.values()) == 1.0
    label, kind = page.panel._labels[part]
    assert (kind, "°" in label) == ("bad", True)
    page.panel._map_button("Undo")
    page._compute()
    page.show()
    assert page.panel._labels[part][1] == "good"
    assert max(page.figures[1].shares.values()) < 1.0
    page.picking = True
    page.figures[0].pick(3)
    assert transfer.joints[part][0] == transfer.motion.skeleton.joint_names[3]
    controls["New part"].value = "Tail end"
    controls["Add part"].type(True)
    assert transfer.joints["tail_end"] == ("", "")
    assert page.part == "tail_end"
    assert "?" in page.panel._labels["tail_end"][0]


def test_the_sliders_turn_both_sides_of_the_rest_pose(page):
    page.panel.choose("left_upper_arm")
    slider = page.panel._sliders[1][2]
    slider.type(35.0)
    assert set(page.transfer.angles.values()) == {(0.0, 35.0, 0.0)}
    assert len(page.transfer.angles) == 2
    assert page.at_rest
    page.show()
    Line(page.panel._line, page.controls).act("play", 1)
    assert not page.at_rest
    page.controls["Reset"].type(True)
    assert not page.transfer.angles


def test_undo_takes_a_whole_drag_back_and_the_controls_show_it(page):
    page.panel.choose("left_upper_arm")
    for degrees in (10.0, 20.0, 35.0):
        page.panel._sliders[1][2].type(degrees)
    page.controls["Keep standing feet in place"].type(False)
    page.panel._map_button("Undo")
    assert page.transfer.feet
    assert page.controls["Keep standing feet in place"].value is True
    page.controls["New part"].value = "tail"
    page.controls["Add part"].type(True)
    page.panel._map_button("Undo")
    assert page.part in page.transfer.joints
    page.panel.choose("left_upper_arm")
    page.panel._map_button("Undo")
    assert not page.transfer.angles
    assert [slider.value for *_, slider in page.panel._sliders] == [0.0, 0.0, 0.0]


def test_a_clip_is_saved_once_it_is_that_of_the_settings(page):
    page.transfer.assign("head", source="", target="")
    page.controls["Save clip"].type(True)
    assert "still being retargeted" in page.message.text
    page._compute()
    page.controls["Save clip"].type(True)
    assert [name for name, _ in page.sent] == ["clip.npz"]
    page.transfer.assign("hips", source="", target="")
    page._compute()
    page.controls["Save clip"].type(True)
    assert "no new clip" in page.message.text
    assert "hips" in page.message.text
    assert len(page.sent) == 1


def test_what_is_saved_can_be_used(page, tmp_path):
    for button in ("Save map", "Save rest pose", "Save clip"):
        page.controls[button].type(True)
    files = dict(page.sent)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    again = retarget(page.transfer.motion, page.transfer.target, read_map(tmp_path / "map.toml"))
    np.testing.assert_array_equal(again.motion.q, page.transfer.outcome.answer.motion.q)
    np.testing.assert_array_equal(sy.load_motion(tmp_path / "clip.npz").q, again.motion.q)
    rest = sy.load_pose(tmp_path / "rest.json", page.transfer.motion.skeleton)
    np.testing.assert_allclose(rest.q, page.transfer.rest_pose().q, atol=1e-12)


def test_side_by_side_and_on_the_floor(page):
    page.show()
    (left, aside), (right, other) = page.figures[0].shown, page.figures[1].shown
    assert aside < 0.0 < other
    for positions in (left, right):
        assert -0.15 < positions[:, 1].min() / np.ptp(positions[:, 1]) < 0.15
    page.controls["On top of each other"].type(True)
    page.show()
    assert page.figures[0].shown[1] == 0.0


def test_the_command_opens_the_page(monkeypatch):
    seen = []
    monkeypatch.setattr(View, "wait", lambda self: seen.append(self._opening.make()))
    ran = run("view", WALK, "--onto", "humanoid", "--no-browser", "--port", 0, "--json")
    assert ran.code == 0, ran.err
    assert ran.data["url"].startswith("http://127.0.0.1")
    assert isinstance(seen[0], Transfer)
    ran = run("view", WALK, "--onto", "arm7", "--no-browser", "--port", 0)  # opens, so that the map can be completed
    assert (ran.code, "no part of arm7" in ran.err) == (0, True)
    assert_refused(run("view", WALK, "--map", "map.toml"), "--onto", code=2)
    assert_refused(run("view", "humanoid", "--onto", "arm7"), "no motion")


def test_clicks_on_joints_are_passed_on():
    from synovia.viewer.retarget.figure import Figure as Real

    seen = []
    figure = SimpleNamespace(_build=SimpleNamespace(joints=np.array([4, 7])), _pick=seen.append)
    for index in (1, None, 9, -1):
        asyncio.run(Real._clicked(figure, SimpleNamespace(instance_index=index)))
    assert seen == [7]
