"""The page of a live body: its meter, its recording, and the command that opens it, without a browser."""

import io
import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("viser")

import synovia as sy
from cli_runs import run
from conftest import REPO
from panels import Gui, make_host
from synovia.streams import ClipSource, play
from synovia.surface import Surface
from synovia.viewer import PageSink, View
from synovia.viewer.editing.worker import Background
from synovia.viewer.follow.feed import Feed
from synovia.viewer.follow.page import FollowPage, first_aim
from synovia.viewer.follow.panel import Panel


@pytest.fixture(scope="module")
def walk():
    return sy.load_motion(REPO / "examples" / "walk.bvh")


@pytest.fixture(scope="module")
def body():
    return sy.bundled("humanoid")


class Figure:
    """Stands for a body in the scene."""

    def __init__(self, _client, _name, skeleton, _look, scale, _pick):
        self.skeleton, self.scale, self.shown, self.looks = skeleton, scale, [], None

    def show(self, frames, basis, foot, aside):
        assert frames.shape == (len(self.skeleton), 12)
        assert aside == 0.0
        self.shown.append((frames[:, 9:] - foot) @ basis)

    def look(self, shown):
        self.looks = shown


class Clock:
    """A clock that is set."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def page(monkeypatch, body):
    """A page without a browser and without a thread."""
    monkeypatch.setattr("synovia.viewer.follow.page.Figure", Figure)
    monkeypatch.setattr(Background, "start", lambda *_: None)
    gui, sent, clock = Gui(), [], Clock()
    client = SimpleNamespace(
        gui=gui, scene=SimpleNamespace(add_grid=lambda *_, **__: None), flush=lambda: None,
        atomic=lambda: io.StringIO(), send_file_download=lambda name, content, **_: sent.append((name, content)),
    )  # fmt: skip
    feed = Feed(body, clock)
    out = FollowPage(client, feed, make_host(), Surface(), lambda page: Panel(page, "walk onto humanoid"))
    out.controls, out.sent, out.clock = gui.by_label, sent, clock
    return out


def followed(page, live, poses, rate):
    """Let the body of a page follow poses, with their times, at the pace of the clock of its feed."""
    page.feed.follow(live)
    for pose in poses:
        page.clock.now += 1.0 / rate
        out = live.step(pose, page.clock.now)
        page.feed.send(out)
    return out


def texts(page):
    """Return what the panel says: status, meter, limits, length, what has passed."""
    page.panel.show()
    panel = page.panel
    return [one.content for one in (panel._status, panel._meter, panel._limits, panel._length, panel._passed)]


def test_before_a_source_has_come_the_page_waits_and_shows_the_rest_pose(page, body):
    page.show()
    assert "Waiting for the source" in texts(page)[0]
    assert page.figure.shown[0][:, 1].min() == pytest.approx(0.0, abs=1e-9)
    assert np.ptp(page.figure.shown[0][:, 1]) == pytest.approx(np.ptp(body.rest_pose().positions[:, 1]))


def test_the_meter_has_rates_delay_and_what_has_passed(page, walk, body):
    live = sy.LiveRetarget(walk.skeleton, body, rate=walk.fps, learn=0.5)
    followed(page, live, [walk[k] for k in range(8)], walk.fps)
    assert "Learning" in texts(page)[0]
    last = followed(page, live, [walk[k] for k in range(60)], walk.fps)
    page.feed._reported = -np.inf, None  # a report may be some seconds old
    found = page.feed.figures()
    assert found.ticks == pytest.approx(walk.fps, rel=0.1)
    assert found.source == pytest.approx(walk.fps, rel=0.1)
    assert 0.5 / walk.fps < found.delay < 2.0 / walk.fps
    status, meter, _, _, passed = texts(page)
    assert "Following" in status
    assert f"{walk.fps:.0f}/s" in meter
    assert "ms" in meter
    assert f"{found.report.facts['ticks']} ticks" in passed
    assert 60 < found.report.facts["ticks"] <= 68
    page.show()
    np.testing.assert_allclose(page.figure.shown[-1], last.positions[-len(body) :] - (0.0, page._floor, 0.0), atol=1e-9)


def test_it_says_when_the_source_is_lost_and_when_it_ends(page, walk, body):
    live = sy.LiveRetarget(walk.skeleton, body, rate=walk.fps, learn=0)
    followed(page, live, [walk[0]] * 10 + [None] * 60, walk.fps)
    assert "the body holds" in texts(page)[0]
    assert "lost 1 time" in texts(page)[4]
    page.clock.now += 5.0
    assert "Waiting" in texts(page)[0]
    assert page.feed.figures().ticks == 0.0
    page.feed.end()
    assert "ended" in texts(page)[0]


def test_joints_that_a_limit_holds_back_have_bars(page, walk, body):
    live = sy.LiveRetarget(walk.skeleton, body, rate=walk.fps, learn=0, velocity=0.2, acceleration=1.0)
    followed(page, live, [walk[k] for k in range(40)], walk.fps)
    status, _, limits, _, _ = texts(page)
    assert "Limits hold" in status
    assert "data-limit=" in limits
    assert "velocity" in limits or "acceleration" in limits
    found = page.feed.figures()
    assert set(found.speeds) >= set(found.limited)
    assert all(0.0 <= share <= 1.0 + 1e-9 for share in found.speeds.values())


def test_a_recording_is_saved_as_it_was_shown(page, walk, body, tmp_path):
    live = sy.LiveRetarget(walk.skeleton, body, rate=walk.fps, learn=0)
    page.controls["Save clip (npz)"].type(True)
    assert "nothing is recorded" in page.message.text
    page.controls["Record"].type(True)
    followed(page, live, [walk[k] for k in range(20)], walk.fps)
    assert "0.6 s recorded" in texts(page)[3]
    page.controls["Record"].type(False)
    last = page.feed.pose
    followed(page, live, [walk[k] for k in range(20, 40)], walk.fps)
    for name in ("npz", "GLB", "BVH"):
        page.controls[f"Save clip ({name})"].type(True)
    assert [name for name, _ in page.sent] == ["live.npz", "live.glb", "live.bvh"]
    for name, content in page.sent:
        (tmp_path / name).write_bytes(content)
        clip = sy.load_motion(tmp_path / name)
        assert len(clip) == 20
        assert clip.fps == pytest.approx(walk.fps, rel=1e-3)
    np.testing.assert_array_equal(sy.load_motion(tmp_path / "live.npz").q[-1], last.q)
    page.controls["Record"].type(True)  # a new one
    followed(page, live, [walk[0]] * 3, walk.fps)
    assert len(page.feed.clip()) == 3


def test_a_recording_ends_after_ten_minutes(page, body):
    page.feed.record(on=True)
    for _ in range(round(600 * page.feed.rate) + 50):
        page.feed.send(body.rest_pose())
    assert page.feed.figures().recorded == pytest.approx(600.0)


def test_in_place_holds_the_hips_over_the_middle(page, walk, body):
    live = sy.LiveRetarget(walk.skeleton, body, rate=walk.fps, learn=0)
    followed(page, live, [walk[k] for k in range(60)], walk.fps)
    page.show()
    page.controls["In place"].type(True)
    page.controls["Look"].type("bones")
    page.show()
    away, held = (shown[body.role_rows["hips"]] for shown in page.figure.shown[-2:])
    assert np.linalg.norm(away[[0, 2]]) > 0.1
    np.testing.assert_allclose(held, [0.0, away[1], 0.0], atol=1e-9)
    assert page.figure.looks == "bones"
    assert first_aim(page.feed).position[2] > 0.0


def test_a_page_is_served_while_a_body_follows(walk, body):
    sink = PageSink(body, "walk", port=0)
    try:
        play(
            ClipSource(walk[:10], None), lambda skeleton: sy.LiveRetarget(skeleton, body, rate=walk.fps, learn=0),
            lambda skeleton: [sink], paced=False,
        )  # fmt: skip
        assert sink.view.url.startswith("http://127.0.0.1:")
        assert sink._feed.figures().ended
        with pytest.raises(sy.InputError, match="live"):
            sink.follow(walk)
    finally:
        sink.view.stop()


def test_the_command_shows_the_page_and_waits_for_its_recording(monkeypatch):
    waited = []
    monkeypatch.setattr(View, "wait", lambda self: waited.append(self.url))
    words = ["live", REPO / "examples" / "walk.bvh", "humanoid", "--to", "page", "--port", 0, "--no-browser", "--fast",
             "--learn", "0.2", "--json"]  # fmt: skip
    ran = run(*words)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["schema"] == "synovia.live/1"
    assert "live page is at http://127.0.0.1" in ran.err
    assert len(waited) == 1
    begun = time.monotonic()
    ran = run(*words[:-1], "--seconds", 1)  # who gives an end does not wait for another
    assert (ran.code, len(waited)) == (0, 1)
    assert time.monotonic() - begun < 60.0
