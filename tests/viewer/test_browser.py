"""The live page in a real browser. Skipped, with the reason, where there is no Chromium or no Playwright."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("viser")
pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")

import synovia as sy
from browsing import Heard, browser_path, chromium, pixel, until
from synovia.viewer import View, view

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.slow,
    pytest.mark.skipif(browser_path() is None, reason="no Chromium on this machine"),
    pytest.mark.filterwarnings("ignore:Queued a:UserWarning"),
    pytest.mark.xdist_group("browser"),
]

WIDTH, HEIGHT = 560, 420


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with chromium() as one:
        yield one


class Visit:
    """A browser's visit to a page, and the page's other side."""

    def __init__(self, browser: object, running: View) -> None:
        self.view = running
        self.heard = Heard()
        self.tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, accept_downloads=True)
        self.tab.set_default_timeout(60_000)
        self.tab.on("websocket", lambda ws: ws.on("framereceived", self.heard))
        before = set(running.pages)
        self.tab.goto(f"{running.url}?fixedDpr=0.4")
        self.wait(lambda: set(running.pages) - before)
        self.page = running.pages[max(set(running.pages) - before)]
        self.session = self.page.session
        self.wait(lambda: self.page.frame is not None and self.page.frame.solution is not None)
        self.wait(lambda: "/targets/1" in self.heard.nodes)
        self.tab.wait_for_selector("text=Goals")

    def wait(self, what: object, why: str = "it never happened") -> object:
        """Wait, and let the browser speak meanwhile."""
        for _ in range(1200):
            if value := what():
                return value
            self.tab.wait_for_timeout(50)
        raise AssertionError(why)

    def at(self, place: np.ndarray) -> tuple[float, float]:
        """Where a place of the model is on the page."""
        return pixel(self.page.client.camera, np.asarray(place) * self.page.scene.scale, WIDTH, HEIGHT)

    def shown(self, node: str, what: str = "position") -> np.ndarray:
        """What the browser's own scene holds, in the model's unit."""
        value = self.heard.nodes[node][what]
        value = np.frombuffer(value, np.float32).reshape(-1, 3) if isinstance(value, bytes) else np.array(value)
        return value / self.page.scene.scale

    def drag(self, start: tuple[float, float], by: tuple[float, float]) -> None:
        """Drag by the mouse, as a hand would."""
        mouse = self.tab.mouse
        mouse.move(*start)
        mouse.down()
        for part in np.linspace(0.1, 1.0, 8):
            mouse.move(start[0] + part * by[0], start[1] + part * by[1])
            self.tab.wait_for_timeout(60)
        self.tab.wait_for_timeout(200)
        mouse.up()

    def still(self) -> None:
        """Wait until the eased targets have arrived."""
        self.wait(lambda: all(np.array_equal(wish.place, wish.at_place) for wish in self.session.wishes))
        frames = -1
        while frames != self.page.worker.frames:
            frames = self.page.worker.frames
            self.tab.wait_for_timeout(400)

    def click(self, text: str) -> None:
        self.tab.get_by_role("button", name=text, exact=True).click()

    def open(self, name: str) -> None:
        self.tab.get_by_role("tab", name=name, exact=True).click()


def _follows(visit: Visit, key: int) -> None:
    """Dragging a target by the mouse moves target and body, in the browser's own scene."""
    wish = visit.session.wish(key)
    before = wish.place.copy()
    hand, root = np.array(visit.at(before)), np.array(visit.at(visit.session.pose.positions.mean(axis=0)))
    by = 0.35 * (root - hand)
    visit.drag(tuple(hand), tuple(by))
    visit.wait(lambda: np.linalg.norm(wish.place - before) > 0.02 * visit.session.reach, "the target did not move")
    visit.still()
    assert math.hypot(*(visit.at(wish.place) - hand - by)) < 6.0, "the target is not under the pointer"
    unit = visit.session.given.meters_per_unit or 1.7 / visit.session.reach
    ball, body = visit.shown(f"/targets/{key}"), visit.shown("/body/joints", "batched_positions")
    joints = visit.page.scene._build.joints.tolist()
    hand = body[joints.index(wish.row)]
    assert np.linalg.norm(ball - wish.place) * unit < 0.001
    assert np.linalg.norm(hand - ball) * unit < 0.01, "the end effector is not within 1 cm of its target"


@pytest.fixture(scope="module")
def arm(browser: object) -> Iterator[Visit]:
    with view("arm7", port=0, shadows=False) as running:
        visit = Visit(browser, running)
        yield visit
        visit.tab.close()


def test_the_arm_follows_the_mouse(arm: Visit) -> None:
    _follows(arm, arm.session.wishes[0].key)


def test_the_controls_do_what_they_say(arm: Visit) -> None:
    session = arm.session
    arm.click("Add goal")
    arm.wait(lambda: len(session.wishes) == 2, "no goal was added")
    arm.tab.get_by_role("checkbox", name="Enabled").first.uncheck(force=True)
    arm.wait(lambda: not session.wishes[1].enabled, "the goal is still enabled")
    arm.click("Remove")
    arm.wait(lambda: len(session.wishes) == 1, "the goal is still there")
    arm.open("Body")
    arm.click("Undo")
    arm.wait(lambda: len(session.wishes) == 2, "nothing was undone")
    arm.click("Reset")
    arm.wait(lambda: len(session.wishes) == 1, "nothing was reset")


def test_what_is_saved_solves_to_the_same_pose(arm: Visit, tmp_path: Path) -> None:
    from cli_runs import run

    arm.session.move(arm.session.wishes[0].key, (0.35, 0.1, 0.7))
    arm.still()
    arm.open("Keep")
    names = {"Save goals": "goals.toml", "Save pose": "pose.json"}
    for button, name in names.items():
        with arm.tab.expect_download() as kept:
            arm.click(button)
        kept.value.save_as(tmp_path / name)
    out = tmp_path / "out.json"
    ran = run("solve", "arm7", "-g", tmp_path / "goals.toml", "--start", tmp_path / "pose.json", "-o", out, "--json")
    assert ran.code == 0
    asked = json.loads((tmp_path / "pose.json").read_text())["q"]
    found = json.loads(out.read_text())["q"]
    assert found == pytest.approx(asked, abs=1e-9)


def test_a_character_follows_the_mouse(browser: object, shared_data: Path) -> None:
    with view(shared_data / "character" / "mannequiny.glb", port=0, shadows=False) as running:
        visit = Visit(browser, running)
        _follows(visit, visit.session.wishes[0].key)
        visit.tab.close()


def test_a_page_plays_from_disk_without_a_network(browser: object, tmp_path: Path) -> None:
    body = sy.bundled("humanoid")
    q = np.array([body.rest_q, body.random_pose(3).q, body.rest_q])
    motion = sy.Motion(body, q, 1.0, name='</script><script>alert("x")</script>')
    sy.write_page(motion, tmp_path / "page.html", targets=np.zeros((1, 3)))
    context = browser.new_context(offline=True, viewport={"width": WIDTH, "height": HEIGHT})
    tab = context.new_page()
    asked: list[str] = []
    mistakes: list[object] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: mistakes.append(error))
    tab.on("dialog", lambda dialog: mistakes.append(dialog))
    tab.goto((tmp_path / "page.html").as_uri())
    clock = tab.locator("#time")
    until(lambda: float((clock.inner_text().split() or ["0"])[0]) > 0.3)
    tab.click("#play")
    before = tab.screenshot(timeout=60_000)
    tab.locator("#scrub").fill("1")
    until(lambda: clock.inner_text().startswith("1.00"))
    assert tab.screenshot(timeout=60_000) != before
    assert all(url.startswith("file:") for url in asked)
    assert not mistakes
    assert re.search("alert", tab.title())
    context.close()
