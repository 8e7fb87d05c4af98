"""The live page in a real browser. Skipped, with the reason, where there is no Chromium or no Playwright.

A browser takes seconds of processor time to load the page, so the tests share one visit: each has it show its model.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("viser")
pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")

from viser._messages import GuiUpdateMessage

import synovia as sy
from browsing import Heard, browser_path, chromium, grab, page_of, paint, pixel, quiet, until
from cli_runs import run
from synovia.files.poses import load_pose
from synovia.retargeting import read_map
from synovia.viewer import View, view, view_retarget
from synovia.viewer.live import animated, opening
from synovia.viewer.page.saving import Files
from synovia.viewer.panel.why import Why
from synovia.viewer.retarget.open import retarget_opening
from synovia.viewer.retarget.page import quality_of
from synovia.viewer.serving.view import Opening

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.slow,
    pytest.mark.nightly,  # minutes, as the processor draws every picture
    pytest.mark.skipif(browser_path() is None, reason="no Chromium on this machine"),
    pytest.mark.xdist_group("live page"),  # one worker does all these tests, so that one browser and one visit do
]

WIDTH, HEIGHT = 960, 420
PATIENCE = 300  # seconds: hanging is all that is measured


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with chromium() as one:
        yield one


class Visit:
    """A browser's visit to a page, and the page's other side."""

    def __init__(self, browser: object, running: View, tab: object = None) -> None:
        self.view = running
        self.heard = Heard()
        self.mistakes: list[str] = []
        self.tab = tab or page_of(browser, viewport={"width": WIDTH, "height": HEIGHT}, accept_downloads=True)
        self.tab.set_default_timeout(PATIENCE * 1000)
        self.tab.on("websocket", lambda ws: ws.on("framereceived", self.heard))
        self.tab.on("pageerror", lambda error: self.mistakes.append(str(error)))
        self.tab.on("dialog", lambda dialog: self.mistakes.append(dialog.message))
        self.tab.on("console", self.told)
        self.arrive(running, lambda: self.tab.goto(f"{running.url}?fixedDpr=0.4"))
        self.tab.get_by_role("tab", name="Targets", exact=True).wait_for()
        # "software rendering", over what is dragged; a mouse would wait for many frames until it stands still
        quiet(self.tab)

    def told(self, message: object) -> None:
        """Keep what viser's client says about a control that is gone."""
        if message.type == "error" and "non-existent component" in message.text:
            self.mistakes.append(message.text)

    def arrive(self, running: View, come: Callable[[], object]) -> None:
        """Come to a page, and wait until it is there and has solved."""
        self.go(running, come)
        self.session, self.host = self.page.session, self.page.host
        self.wait(lambda: self.page.frame is not None and not self.page.frame.busy)
        self.wait(lambda: all(f"/targets/{editor.key}" in self.heard.nodes for editor in self.session.goals.editors))

    def go(self, running: View, come: Callable[[], object]) -> None:
        """Come to a page, and wait until it is there."""
        self.view = running
        self.heard.nodes.clear()
        before = list(running.pages.values())
        come()
        self.wait(lambda: any(page not in before for page in running.pages.values()), "no page came")
        self.page = next(page for page in running.pages.values() if page not in before)

    def show(self, what: Opening) -> None:
        """Show another body in place of the present one, as the page does when it opens a file."""
        self.arrive(self.view, lambda: self.host.show(what))
        self.tab.get_by_role("tab", name="Targets", exact=True).wait_for()
        aim, camera = what.aim(self.session), self.page.client.camera
        self.wait(lambda: np.allclose(camera.up_direction, aim.up, atol=1e-3), "the camera is not upright")
        assert np.allclose(self.heard.nodes["/sky"]["position"], aim.up), "the light does not come from above"

    def wait(self, what: object, why: str = "it never happened") -> object:
        """Wait, and let the browser speak meanwhile."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if value := what():
                return value
            self.tab.wait_for_timeout(50)
        raise AssertionError(why)

    def at(self, place: np.ndarray) -> tuple[float, float]:
        """Where a place of the model is on the page."""
        box = self.tab.locator("canvas").first.bounding_box()  # beside the panel and above the time line
        return pixel(self.page.client.camera, np.asarray(place) * self.page.scene.scale, box["width"], box["height"])

    def shown(self, node: str, what: object = "position") -> np.ndarray:
        """What the browser's own scene holds, in the model's unit."""
        value = self.heard.nodes[node][what]
        value = np.frombuffer(value, np.float32).reshape(-1, 3) if isinstance(value, bytes) else np.array(value)
        return value / self.page.scene.scale

    def skin(self) -> tuple[str, str]:
        """The name of the surface's first mesh in the browser's scene, and the expression that finds it there."""
        name = next(node for node in self.heard.nodes if node.startswith("/body/surface") and node.endswith("/0"))
        return name, f'synovia.nodes["{name}"]?.children.find(one => one.isMesh)'

    def joints(self) -> dict[int, np.ndarray]:
        """Where the browser's own scene has the joints, by row."""
        rows = self.page.scene._build.joints.tolist()
        return dict(zip(rows, self.shown("/body/joints", "batched_positions"), strict=True))

    def drag(self, start: tuple[float, float], by: tuple[float, float]) -> None:
        """Drag by the mouse, as a hand would."""
        quiet(self.tab)
        self.tab.mouse.move(*start)
        self.tab.mouse.down()
        self.pull(start, by)
        self.tab.mouse.up()

    def grab(self, place: Callable[[], np.ndarray]) -> np.ndarray:
        """Press the mouse on what is at a place of the model, and return where on the page."""
        return grab(self.tab, self.page.client.camera, lambda: self.at(place()))

    def pull(self, start: tuple[float, float], by: tuple[float, float]) -> None:
        """Move what the mouse holds."""
        for part in np.linspace(0.1, 1.0, 8):
            self.tab.mouse.move(start[0] + part * by[0], start[1] + part * by[1])
            self.tab.wait_for_timeout(60)
        self.tab.wait_for_timeout(200)

    def answered(self) -> bool:
        """Whether the page rests with an answer to what the session asks now, by the solver and not its stand-in."""
        frame, state, asked = self.page.frame, self.session.state, self.session.goals.editors
        if self.page.worker.engine.stale or state.changed.is_set() or not frame.still or frame.busy:
            return False
        shown = {editor.key: editor.eased_position for editor in frame.editors}
        return frame.pose is state.pose and all(
            np.array_equal(editor.position, shown.get(editor.key)) for editor in asked
        )

    def still(self) -> None:
        """Wait until the eased targets have arrived, and the solver has answered."""
        self.wait(self.answered, "the page never came to rest")
        frames = -1
        while frames != self.page.worker.frames:
            frames = self.page.worker.frames
            self.tab.wait_for_timeout(400)

    def drawn(self) -> None:
        """Wait until the browser has drawn twice."""
        self.tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def rests(self, value: Callable[[], np.ndarray]) -> None:
        """Wait until a value has not changed while the browser drew six times."""
        left, seen = 3, value()
        while left:
            self.drawn()
            self.tab.wait_for_timeout(300)
            left = left - 1 if np.array_equal(seen, seen := value()) else 3

    # --- controls

    def open(self, name: str) -> None:
        self.tab.get_by_role("tab", name=name, exact=True).click()

    def click(self, text: str) -> None:
        self.tab.get_by_role("button", name=text, exact=True).click()

    def field(self, label: str) -> object:
        """The first visible input beside a label."""
        words = f'//label[normalize-space(.)="{label}"]'
        return self.tab.locator(f"xpath={words}/../../following-sibling::div//input").locator("visible=true").first

    def put(self, label: str, value: object) -> None:
        self.field(label).fill(str(value))

    def tick(self, label: str, on: bool) -> None:
        end = time.monotonic() + PATIENCE
        while (
            time.monotonic() < end
        ):  # a folder that opens and a server that draws anew move the box from under the mouse
            if self.field(label).is_checked() == on:
                return
            self.settled(label).click(force=True)
            for _ in range(20):
                if self.field(label).is_checked() == on:
                    return
                self.tab.wait_for_timeout(50)
        raise AssertionError(f"'{label}' does not take a click")

    def settled(self, label: str) -> object:
        """An input that has stopped moving."""
        place = None
        while place != (place := self.field(label).bounding_box()):
            self.tab.wait_for_timeout(150)
        return self.field(label)

    def pick(self, label: str, option: str) -> None:
        self.field(label).click()
        self.tab.get_by_role("option", name=option, exact=True).click()

    def take(self, button: str, folder: Path) -> Path:
        """Press a button and return the file that it hands out."""
        with self.tab.expect_download() as kept:
            self.click(button)
        path = folder / kept.value.suggested_filename
        kept.value.save_as(path)
        return path


def follows(visit: Visit, key: int) -> None:
    """Dragging a target by the mouse moves target and body, in the browser's own scene."""
    editor = visit.session.goals.editor(key)
    before = editor.position.copy()
    for _ in range(5):  # a page that has just come back may forget a drag
        hand = visit.grab(lambda: editor.position)
        by = 0.35 * (np.array(visit.at(visit.session.body.pose.positions.mean(axis=0))) - hand)
        visit.pull(hand, by)
        visit.tab.mouse.up()
        visit.tab.wait_for_timeout(500)
        if np.linalg.norm(editor.position - before) > 0.02 * visit.session.body.size:
            break
    else:
        raise AssertionError("the target did not move")
    visit.still()
    assert math.hypot(*(visit.at(editor.position) - hand - by)) < 6.0, "the target is not under the pointer"
    unit = visit.session.body.given.meters_per_unit or 1.7 / visit.session.body.size
    ball, hand = visit.shown(f"/targets/{key}"), visit.joints()[editor.row]
    assert np.linalg.norm(ball - editor.position) * unit < 0.001
    assert np.linalg.norm(hand - ball) * unit < 0.01, "the end effector is not within 1 cm of its target"
    assert not visit.mistakes


def solves_to_the_same_pose(visit: Visit, model: object, folder: Path) -> None:
    """Saved goals from the saved pose, solved on the command line, give the pose that the page shows.

    From there a solver still takes its last step towards the rest pose: less than a milliradian.
    """
    visit.still()
    visit.open("Export")
    goals, pose = visit.take("Save goals", folder), visit.take("Save pose", folder)
    out = folder / "out.json"
    root = ["--root", "free"] if visit.session.body.mode == "free" else []
    solver = ["--solver", visit.session.solving.solver.name]
    ran = run("solve", model, "-g", goals, "--start", pose, "-o", out, "--json", *root, *solver)
    assert ran.code == 0, ran.err
    np.testing.assert_allclose(load_pose(out, visit.session.body.skeleton).q, visit.session.body.pose.q, atol=1e-3)


@pytest.fixture(scope="module")
def visit(browser: object) -> Iterator[Visit]:
    with view("arm7", port=0, shadows=False) as running:
        one = Visit(browser, running)
        yield one
        one.view.stop()
        one.tab.close()


@pytest.fixture(scope="module")
def arm(visit: Visit) -> Visit:
    return visit


def test_the_arm_follows_the_mouse(arm: Visit) -> None:
    follows(arm, arm.session.goals.editors[0].key)


def test_a_long_message_can_be_read_whole(arm: Visit) -> None:
    text = "Joint 'left_index_intermediate' is far from its place in the file. " * 4 + "a/path/without/spaces" * 6
    arm.page.notify(text)
    box = arm.tab.locator(".synovia-status > div")
    arm.wait(lambda: "left_index" in (box.text_content() or ""), "the message was not shown")
    seen = "e => [e.clientHeight >= e.scrollHeight, e.clientWidth >= e.scrollWidth]"
    assert box.evaluate(seen) == [True, True]
    line = box.evaluate("e => e.parentElement.clientHeight")
    assert box.evaluate("e => e.clientHeight") > 2 * line  # it covers what is below, which does not move
    box.dispatch_event("click")
    arm.wait(lambda: box.evaluate("e => e.clientHeight") <= line, "a click does not fold it")
    box.dispatch_event("click")
    assert box.evaluate(seen) == [True, True]
    arm.page.message.withdraw(arm.page.message.mark)
    arm.wait(lambda: "left_index" not in (box.text_content() or ""), "the message did not go")


def test_goals_are_added_changed_and_removed(arm: Visit) -> None:
    session = arm.session
    arm.click("Add goal")
    arm.wait(lambda: len(session.goals.editors) == 2, "no goal was added")
    editor = session.goals.editors[1]
    arm.tick("Enabled", False)
    arm.wait(lambda: not editor.enabled, "the goal is still enabled")
    arm.put("Weight", 2.5)
    arm.wait(lambda: editor.weight == 2.5, "the weight did not change")
    arm.put("Priority", 3)
    arm.wait(lambda: editor.priority == 3, "the priority did not change")
    arm.put("Target m", "")
    arm.field("Target m").press_sequentially("-0.25, 0.1, 0.7", delay=60)
    arm.wait(lambda: editor.position.tolist() == [-0.25, 0.1, 0.7], "the target is not where it was typed to be")
    assert arm.field("Target m").input_value() == "-0.25, 0.1, 0.7"
    assert arm.tab.title() == "arm7 · Synovia"
    arm.put("Target m", "0.125, 0, 0.7")
    arm.wait(lambda: editor.position[0] == 0.125, "the target did not move")
    arm.pick("Kind", "pose")
    arm.wait(lambda: editor.kind == "pose", "the kind did not change")
    arm.put("Turn °", "30, 0, 0")
    arm.wait(lambda: editor.rotation[2, 1] == pytest.approx(0.5), "the target did not turn")
    session.goals.change(editor.key, enabled=False)
    bent = session.goals.add("range", "joint4")
    arm.page.select(bent.key)
    arm.put("Lower, upper", "-inf, -60")
    arm.wait(lambda: math.degrees(session.body.pose["joint4"]) < -59.9, "the joint is not within its range")
    arm.wait(lambda: len(arm.heard.nodes["/ranges/reached"]["points"]) > 24 * 60, "its arc is not in the scene")
    arm.click("Remove")
    arm.page.select(editor.key)
    arm.click("Remove")
    arm.wait(lambda: len(session.goals.editors) == 1, "the goal is still there")
    arm.open("Pose")
    arm.click("Undo")
    arm.wait(lambda: len(session.goals.editors) == 2, "nothing was undone")
    arm.click("Reset")
    arm.wait(lambda: len(session.goals.editors) == 1, "nothing was reset")


def test_the_keyboard_alone_moves_a_target_and_reaches_the_controls(arm: Visit) -> None:
    session, keys = arm.session, arm.tab.keyboard
    other = session.goals.add("position", "joint4")
    arm.page.select(session.goals.editors[0].key)
    arm.wait(lambda: not arm.page.keys._next.disabled, "Tab has nowhere to go")

    # The browser learns later than the server that Tab is enabled, so it may take several; the last target stays.
    def next_target() -> bool:
        arm.tab.evaluate("document.activeElement.blur()")
        keys.press("Tab")
        arm.tab.wait_for_timeout(500)
        return arm.page.selected == other.key

    arm.wait(next_target, "Tab does not select the next target")
    arm.tab.evaluate("document.activeElement.blur()")
    arm.wait(lambda: arm.page.keys._next.disabled)
    arm.tab.wait_for_timeout(300)
    place, camera = other.position.copy(), arm.page.client.camera.position.copy()
    keys.press("ArrowUp")
    arm.wait(lambda: other.position[2] > place[2], "an arrow does not move the target")
    arm.tab.wait_for_timeout(300)
    np.testing.assert_array_equal(arm.page.client.camera.position, camera)
    keys.press("Control+z")
    arm.wait(lambda: session.goals.find(other.key).position[2] == place[2], "Ctrl-Z undoes nothing")
    keys.press("Control+Shift+z")
    arm.wait(lambda: session.goals.find(other.key).position[2] > place[2], "Shift-Ctrl-Z redoes nothing")
    keys.press("r")
    arm.wait(lambda: session.goals.find(other.key).kind == "pose", "R does not turn")
    keys.press("p")
    arm.wait(lambda: session.goals.find(other.key).free, "P does not let go")
    assert arm.tab.evaluate("document.activeElement.tagName") == "BODY"
    for _ in range(60):
        keys.press("Tab")
        if arm.tab.evaluate("document.activeElement.getAttribute('role')") == "tab":
            break
    else:
        raise AssertionError("Tab never reaches the tabs")
    keys.press("ArrowRight")
    arm.wait(lambda: arm.tab.get_by_role("tab", name="Pose", exact=True).get_attribute("aria-selected") == "true")
    place = session.goals.find(other.key).position.copy()
    arm.tab.wait_for_timeout(300)
    np.testing.assert_array_equal(session.goals.find(other.key).position, place)  # an arrow on a tab is the tab's
    keys.press("Escape")
    keys.press("Delete")
    arm.wait(lambda: len(session.goals.editors) == 1, "Delete removes nothing")
    arm.open("Targets")
    assert not arm.mistakes


def test_body_and_solver_are_set(arm: Visit) -> None:
    session = arm.session
    arm.open("Pose")
    arm.pick("Root", "x,z")
    arm.wait(lambda: session.body.mode == "x,z", "the root is still held")
    arm.pick("Root", "fixed")
    arm.pick("Limits", "all")
    arm.wait(lambda: len(arm.heard.nodes["/limits"]["points"]) > 1000, "the limits are not drawn")
    arm.tick("Dark", True)
    arm.wait(lambda: arm.page.dark, "the page is still light")
    arm.tick("Dark", False)
    session.goals.change(session.goals.editors[0].key, enabled=False)
    arm.put("joint4 °", -90)
    arm.wait(lambda: session.body.pose["joint4"] == pytest.approx(-np.pi / 2, abs=1e-6), "the joint did not turn")
    arm.open("Solver")
    arm.put("error damping", "0.5")
    arm.wait(lambda: session.solving.solver.error_damping == 0.5, "the setting did not change")
    arm.put("max steps", 10**9)
    arm.tab.get_by_text("too large").wait_for()
    arm.pick("Solver", "dls")
    arm.wait(lambda: session.solving.solver.name == "dls", "the solver is another")
    arm.open("Pose")
    arm.click("Reset")
    arm.wait(lambda: session.solving.solver.name == "lm", "nothing was reset")


def test_within_speed_limits_the_arm_is_late_and_bars_say_why(arm: Visit) -> None:
    session, key = arm.session, arm.session.goals.editors[0].key
    session.goals.move(key, (0.1, 0.5, 0.5))
    arm.still()
    arm.open("Solver")
    arm.tick("Speed limits", True)
    arm.wait(lambda: session.solving.limits.on, "the limits are off")
    arm.put("Velocity rad/s", 0.2)
    arm.wait(lambda: session.solving.limits.velocity == 0.2, "the velocity did not change")
    arm.wait(lambda: arm.page.frame.following is not None, "the body does not follow within limits")
    session.goals.move(key, (0.35, -0.4, 0.5))
    bar = arm.tab.locator('.synovia-speed [data-limit="velocity"]').first
    bar.wait_for()
    width = "e => e.clientWidth / e.parentElement.clientWidth"  # none while the page puts a new bar in its place
    arm.wait(lambda: bar.locator("i").evaluate(width) > 0.9, "the bar of the velocity is short")
    arm.tab.get_by_text("on its way").wait_for()
    assert arm.page.frame.late
    arm.put("Velocity rad/s", 5)
    arm.wait(lambda: arm.page.frame.solution.reached and not arm.page.frame.late, "it does not arrive")
    arm.wait(lambda: arm.tab.locator('.synovia-speed [data-limit="velocity"]').count() == 0, "a bar is still full")
    arm.tick("Speed limits", False)
    arm.wait(lambda: not session.solving.limits.on, "the limits are still on")
    assert not arm.mistakes
    arm.open("Pose")
    arm.click("Reset")


def test_what_is_saved_solves_to_the_same_pose(arm: Visit, tmp_path: Path) -> None:
    arm.session.goals.move(arm.session.goals.editors[0].key, (0.35, 0.1, 0.7))
    solves_to_the_same_pose(arm, "arm7", tmp_path)
    arm.click("Copy as Python")
    code = arm.tab.locator("pre").inner_text()
    arm.click("Close")
    space: dict = {}
    exec(code, space)
    assert space["solution"].reached
    np.testing.assert_allclose(space["solution"].pose.position("tool"), (0.35, 0.1, 0.7), atol=1e-3)
    assert arm.take("Save picture", tmp_path).read_bytes().startswith(b"\x89PNG")


def test_a_race_shows_each_solver_as_a_ghost_and_all_in_one_plot(arm: Visit) -> None:
    arm.open("Why")
    why = next(tab for tab in arm.page._tabs if isinstance(tab, Why))
    arm.tab.get_by_text("Who races").click()
    for name, box in why._racers.items():
        arm.tick(name, name in ("lm", "dls"))
        arm.wait(lambda box=box, wanted=name in ("lm", "dls"): box.value == wanted, "a box was not heard")
    arm.click("Race")
    arm.wait(lambda: {"/runners/0", "/runners/1"} <= set(arm.heard.nodes), "there are no ghosts")
    arm.tab.get_by_role("cell", name="dls", exact=True).wait_for()
    assert [line["label"] for line in why._plot.series] == ["iteration", "lm", "dls"]
    arm.click("Clear the ghosts")
    arm.wait(lambda: "/runners/0" not in arm.heard.nodes, "the ghosts are still there")


@pytest.fixture
def still(arm: Visit) -> Iterator[Visit]:
    """A new clip of two seconds, whose first key is the present pose."""
    arm.session.animation.new_clip(2.0)
    arm.tab.locator(".tl-slider").wait_for()
    arm.tab.evaluate("document.activeElement.blur()")
    yield arm
    arm.session.animation.set_clip(None)
    arm.session.state.clips = ()
    arm.tab.locator(".tl").wait_for(state="hidden")
    arm.open("Targets")
    assert arm.mistakes == []


def pull(visit: Visit, part: object, frames: float, *, aside: float = 0.0) -> None:
    """Drag a part of the time line by some frames of a clip of 60, by the mouse."""
    shown = ""
    while shown != (shown := visit.tab.locator(".synovia-time").get_attribute("data-content")):
        visit.tab.wait_for_timeout(500)  # until the rows stay
    part.scroll_into_view_if_needed()
    wide = visit.tab.locator(".tl-slider").bounding_box()["width"] / 60.0
    box, mouse = part.bounding_box(), visit.tab.mouse
    start = box["x"] + 0.5 * box["width"] + aside, box["y"] + 0.5 * box["height"]
    mouse.move(*start)
    mouse.down()
    mouse.move(start[0] + frames * wide, start[1], steps=5)
    mouse.up()


def test_keys_are_dragged_on_the_time_line(still: Visit, tmp_path: Path) -> None:
    session = still.session
    frames = lambda: [key.frame for key in session.animation.play.keys]  # noqa: E731
    marks = still.tab.locator('.tl-keys[data-row="0"] .tl-key')
    at = lambda: [mark.get_attribute("data-id") for mark in marks.all()]  # noqa: E731
    marks.first.wait_for()
    pull(still, marks.first, 30)
    still.wait(lambda: frames() == [30], "the key did not move")
    still.wait(lambda: at() == ["key 0 30"], "the time line does not show it")
    still.tab.keyboard.down("Control")
    pull(still, marks.first, 15)
    still.tab.keyboard.up("Control")
    still.wait(lambda: frames() == [30, 45], "the key was not copied")
    still.wait(lambda: len(at()) == 2, "the time line does not show the copy")
    marks.nth(1).focus()
    for _ in range(3):
        still.tab.keyboard.press("ArrowLeft")  # without waiting for the page
    still.wait(lambda: frames() == [30, 42], "an arrow does not move the key")
    still.wait(lambda: at()[-1] == "key 0 42" and still.tab.evaluate("document.activeElement.dataset.id") == "key 0 42")
    still.tab.keyboard.press("Delete")
    still.wait(lambda: frames() == [30], "the key was not removed")
    still.open("Export")
    (layer,) = sy.formats.read_layers(still.take("Save layers", tmp_path), session.body.given)
    assert [key.frame for key in layer.keys] == [30]


def test_each_key_plays_or_steps(still: Visit) -> None:
    play, keys = (lambda: still.session.animation.play), still.tab.keyboard
    place = still.session.goals.editors[0].position.copy()
    for key, frame in (("End", 60), ("Home", 0), ("ArrowRight", 1), ("Shift+ArrowRight", 11), ("ArrowLeft", 10)):
        keys.press(key)
        still.wait(lambda frame=frame: play().frame == frame, f"{key} does not go to frame {frame}")
    keys.press("i")
    still.wait(lambda: (play().first, play().end) == (10, 60), "I does not begin the range")
    for _ in range(3):
        keys.press("Shift+ArrowRight")
    still.wait(lambda: play().frame == 40)
    keys.press("o")
    still.wait(lambda: (play().first, play().end) == (10, 40), "O does not end the range")
    for key, wanted in (("l", (True, 1.0)), ("l", (True, 2.0)), ("j", (True, -2.0)), ("k", (False, 1.0))):
        keys.press(key)
        still.wait(lambda wanted=wanted: (play().playing, play().shuttle) == wanted, f"{key} does not play")
    for on in (True, False):
        keys.press("Space")
        still.wait(lambda on=on: play().playing == on, "Space does not play or pause")
    still.wait(lambda: still.tab.locator(".tl-play").get_attribute("aria-label") == "Play")
    assert 10 <= play().frame <= 40
    np.testing.assert_allclose(still.session.goals.editors[0].position, place, atol=1e-9)  # arrows were the time line's
    assert still.session.layers.all == ()


def test_a_file_that_is_refused_is_not_a_success(arm: Visit, tmp_path: Path) -> None:
    path = tmp_path / "fair däb ✨.txt"
    path.write_text("no clip")
    arm.open("Open")
    try:
        arm.tab.locator('input[type=file][id^="file_upload_"]').set_input_files(path)
        boxes = arm.tab.locator(".mantine-Notification-description")
        texts = lambda: boxes.all_inner_texts()  # noqa: E731
        arm.wait(
            lambda: any("no known format" in text and path.name in text for text in texts()),
            "the error is not where the file was sent",
        )
        assert not any("successfully" in text for text in texts())
    finally:
        arm.page.message.withdraw(arm.page.message.mark)
        arm.open("Targets")
    assert arm.mistakes == []


def test_a_drag_on_a_clip_is_its_layer_and_the_saved_file(arm: Visit, tmp_path: Path) -> None:
    session = arm.session
    session.history.reset()  # nothing hides the target in the first pose
    arm.still()
    session.animation.new_clip(2.0)
    try:
        session.animation.set_play(time=1.0, playing=False)
        arm.still()
        editor = session.goals.editors[0]
        clip, size, shown = session.animation.play.motion, session.body.given.size, []
        for by in ((45.0, 20.0), (-15.0, 15.0)):  # away from what would hide it; the second changes the first's layer
            wide = arm.tab.locator("canvas").first.bounding_box()
            hand = arm.grab(lambda: editor.position)
            arm.pull(hand, by)
            arm.wait(lambda: session.animation.play.drag is not None, "the drag made no layer")
            dragged = session.animation.play.drag
            to = hand + by
            there = lambda to=to: math.hypot(*(arm.at(editor.position) - to)) < 1.5  # noqa: E731
            arm.wait(there, "the target is not under the pointer")
            arm.rests(lambda dragged=dragged: dragged.pose().q)  # all moves of the mouse have arrived
            same = lambda dragged=dragged: np.array_equal(arm.page.frame.pose.q, dragged.pose().q)  # noqa: E731
            arm.wait(same, "the page does not show the layer that is dragged")
            arm.rests(lambda: np.array(list(arm.joints().values())))
            shown = [arm.page.frame.pose.positions, arm.joints()]
            assert arm.tab.locator("canvas").first.bounding_box() == wide, "the new row moved the scene under the mouse"
            arm.tab.mouse.up()
            arm.wait(lambda: session.animation.play.drag is None, "the drag did not end")
            (layer,) = session.layers.all
            assert (layer.frames, layer.name) == ((30, 30), editor.label)
            arm.still()
            np.testing.assert_allclose(arm.page.frame.pose.positions, shown[0], atol=1e-9 * size)
            for row, place in arm.joints().items():
                np.testing.assert_allclose(place, shown[1][row], atol=1e-6 * size)
        arm.open("Export")
        arm.pick("Motion as", "Synovia motion (.npz)")
        read = sy.load_motion(arm.take("Save motion", tmp_path))
        np.testing.assert_allclose(read.pose(30).positions, shown[0], atol=1e-6 * size)
        layers = sy.formats.read_layers(arm.take("Save layers", tmp_path), clip.skeleton)
        edited = sy.edit(clip, layers)
        np.testing.assert_allclose(edited.motion.pose(30).positions, shown[0], atol=1e-6 * size)
        for count in (1, 0):  # one step of undo for a drag
            assert session.history.undo()
            assert len(session.layers.all) == count
    finally:
        session.animation.set_clip(None)
        session.state.clips = ()
        arm.open("Targets")
    assert arm.mistakes == []


def test_layers_are_edited_on_the_time_line(still: Visit) -> None:
    session, tab, keys = still.session, still.tab, still.tab.keyboard
    session.goals.pin(session.goals.editors[0].key)
    session.layers.change(0, frames=(20, 30), blend=10)
    layer = lambda number=0: session.layers.all[number]  # noqa: E731
    row = tab.locator('.tl-layer[data-layer="0"]')
    bar = row.locator(".tl-clip")
    says = lambda words: still.wait(lambda: words in bar.get_attribute("aria-label"), "it is not shown")  # noqa: E731
    bar.wait_for()
    for part, by, wanted in (
        (bar, 5, (25, 35, 10)),
        (row.locator("[data-part=last]"), 10, (25, 45, 10)),
        (row.locator("[data-part=in]"), 2, (25, 45, 8)),
    ):
        says("frames {} to {}, fades of {}".format(*layer().frames, layer().blend))
        pull(still, part, by)
        still.wait(lambda wanted=wanted: (*layer().frames, layer().blend) == wanted, f"the layer is not at {wanted}")
    says("frames 25 to 45, fades of 8")
    bar.focus()
    for key in ("ArrowRight", "Shift+ArrowLeft", "Alt+ArrowRight", "ArrowRight", "ArrowLeft"):
        keys.press(key)  # without waiting for the page
    still.wait(lambda: (*layer().frames, layer().blend) == (26, 45, 9), "a key was lost")
    says("frames 26 to 45, fades of 9")
    row.locator(".tl-label").dblclick()
    row.locator("input").fill("wave <b>")
    keys.press("Enter")
    still.wait(lambda: layer().label == "wave <b>", "the layer has no new name")
    row.get_by_role("button", name="Mute wave <b>").click()
    still.wait(lambda: layer().muted, "the layer is not muted")
    tab.locator(".tl-muted").wait_for()
    session.layers.mute(0)
    session.animation.set_play(time=0.2, playing=False)
    session.goals.pin(session.goals.editors[0].key)
    tab.locator('.tl-layer[data-layer="1"]').wait_for()
    second = layer(1).label
    tab.get_by_role("button", name="Solo wave <b>").click()
    still.wait(lambda: [one.muted for one in session.layers.all] == [False, True], "the layer is not soloed")
    tab.locator('.tl-layer[data-layer="1"].tl-muted').wait_for()
    tab.locator('.tl-layer[data-layer="1"] .tl-label').focus()
    keys.press("Alt+ArrowDown")
    still.wait(lambda: session.layers.all[0].label == second, "the layers are in the same order")
    still.page.select_joint(session.body.given.index("joint3"))
    tab.get_by_role("button", name="Curves of the selected joint").click()
    tab.locator(".tl-curve polyline").first.wait_for(state="attached")
    slider = tab.locator(".tl-slider")
    slider.scroll_into_view_if_needed()
    slider.click(position={"x": 0.5 * slider.bounding_box()["width"], "y": 14})
    still.wait(lambda: session.animation.play.frame == 30, "a click on the ruler does not go to the frame")
    tab.get_by_role("button", name="Curves of the selected joint").click()


def test_findings_lead_to_their_frames(still: Visit) -> None:
    far = sy.Layer({"tool": (9.0, 1.0, 0.0)}, frames=(40, 44), blend=3, name="far")
    still.session.layers.open([far])
    finding = still.tab.locator(".tl-finding").first
    finding.wait_for()
    finding.scroll_into_view_if_needed()
    finding.click()
    still.wait(lambda: 37 <= still.session.animation.play.frame <= 47, "a click does not go to its frame")
    assert "far" in finding.get_attribute("aria-label")


def test_on_a_phone_the_time_line_folds_and_nothing_is_cut_off(still: Visit) -> None:
    tab = still.tab
    try:
        tab.set_viewport_size({"width": 390, "height": 844})
        fold = tab.get_by_role("button", name="Rows", exact=True)
        if fold.get_attribute("aria-expanded") == "true":
            fold.click()
        tab.locator(".tl-keys").first.wait_for(state="hidden")
        wide = "e => e.scrollWidth <= document.documentElement.clientWidth"
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        assert tab.locator(".tl-bar").evaluate(wide)
        boxes = [one.bounding_box() for one in tab.locator(".tl-bar button:visible").all()]
        assert min(min(box["width"], box["height"]) for box in boxes) >= 24
        assert max(box["x"] + box["width"] for box in boxes) <= 390
        line, panel = (tab.locator(name).first.bounding_box() for name in (".tl", ".mantine-Paper-root"))
        assert panel["y"] + panel["height"] <= line["y"] + 1.0  # the controls end above it
        fold.click()
        tab.locator(".tl-keys").first.wait_for()
    finally:
        tab.set_viewport_size({"width": WIDTH, "height": HEIGHT})


def test_an_animator_raises_a_hand_and_takes_a_mirrored_loop_home(browser: object, tmp_path: Path) -> None:
    """By what is on the page alone: a hand is up for thirty frames with fades; the mirrored loop is saved as FBX."""
    with view("humanoid", clip="examples/walk.bvh", port=0, shadows=False) as running:
        visit = Visit(browser, running)
        session, walk = visit.session, visit.session.animation.clips[0]
        visit.tab.set_viewport_size({"width": 1280, "height": 800})
        visit.tab.keyboard.press("Space")
        visit.wait(lambda: not session.animation.play.playing)
        field = visit.tab.locator("input.tl-frame")
        field.fill("40")
        field.press("Enter")
        visit.wait(lambda: session.animation.play.frame == 40)
        hand = next(editor for editor in session.goals.editors if editor.label == "right_hand")
        visit.pull(visit.grab(lambda: hand.position), (-30.0, -200.0))
        visit.tab.mouse.up()
        visit.wait(lambda: session.layers.all and session.animation.play.drag is None, "the drag made no layer")
        visit.open("Animation")
        for label, text in (("Held frames", "25, 54"), ("Fade", "10")):
            visit.put(label, text)
            visit.field(label).press("Tab")
        visit.wait(lambda: (session.layers.all[0].frames, session.layers.all[0].blend) == ((25, 54), 10))
        visit.tick("Goes along", on=True)
        visit.open("Export")
        saved = sy.load_motion(visit.take("Save motion", tmp_path))
        up = [saved.pose(k).position("right_hand")[1] - walk.pose(k).position("right_hand")[1] for k in range(101)]
        np.testing.assert_allclose([*up[:15], *up[65:]], 0.0, atol=1e-4)
        assert min(up[25:55]) > 0.5 * up[40] > 0.05
        assert 0.0 < up[20] < up[40]
        visit.open("Animation")
        for tool, count in (("Mirrored", 2), ("Looped", 3)):
            visit.click(tool)
            visit.wait(lambda count=count: len(session.animation.clips) == count)
        visit.open("Export")
        visit.pick("Motion as", next(one for one in Files(session.state).endings() if ".fbx" in one))
        path = visit.take("Save motion", tmp_path)
        assert path.name == "walk_on_humanoid_mirrored_looped.fbx"
        assert len(sy.load_motion(path)) == len(session.animation.play.motion)
        assert not visit.mistakes
        visit.tab.close()


def test_an_animator_mends_the_worst_frame_of_a_bad_retarget(browser: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what is on the pages alone: the worst frame is found, taken to the live page, and the hand is dragged back."""
    good: list[sy.results.Retargeted] = []

    def glitched(*given: object, **options: object) -> sy.results.Retargeted:
        answer = sy.retarget(*given, **options)
        good[:] = [answer]
        skeleton, q = answer.motion.skeleton, np.array(answer.motion.q)
        at = skeleton.q_slice(skeleton.roles["left_upper_arm"])
        for k in range(36, 49):
            turn = sy.Rotation.from_euler("y", -80.0 * np.exp(-(((k - 42) / 3.0) ** 2)), degrees=True)
            q[k, at] = (sy.Rotation.from_quat(q[k, at]) * turn).as_quat()
        return replace(answer, motion=sy.Motion(skeleton, q, answer.motion.fps, name="walk"))

    monkeypatch.setattr("synovia.viewer.retarget.transfer.retarget", glitched)
    with view_retarget("examples/walk.bvh", "humanoid", port=0, shadows=False) as running:
        tab = page_of(browser, viewport={"width": 1280, "height": 800})
        tab.set_default_timeout(PATIENCE * 1000)
        tab.goto(f"{running.url}?fixedDpr=0.4")
        until(lambda: running.pages)
        page = next(iter(running.pages.values()))
        tab.get_by_role("button", name="Go to the worst frame", exact=True).click()
        until(lambda: (page.frame, page.play.playing, page.part) == (42, False, "left_upper_arm"))
        tab.get_by_role("tab", name="Save", exact=True).click()
        tab.get_by_role("button", name="Animate", exact=True).click()
        until(lambda: any(one is not page for one in running.pages.values()))
        live = next(one for one in running.pages.values() if one is not page)
        session = live.session
        until(lambda: live.frame is not None and not live.frame.busy)
        assert (session.animation.play.frame, session.animation.play.playing) == (42, False)
        assert [one.cause for one in session.judging.findings] == ["direction"]
        tab.locator(".tl-finding").first.wait_for()
        camera = live.client.camera
        middle = live.session.body.pose.positions.mean(axis=0) * live.scene.scale
        until(lambda: np.linalg.norm(np.asarray(camera.look_at) - middle) < live.scene.size)  # it sees the body
        hand = next(editor for editor in session.goals.editors if editor.label == "left_hand")
        place = good[0].motion.pose(42).position("left_hand")
        box = tab.locator("canvas").first.bounding_box()
        on_page = lambda at: np.array(pixel(camera, at * live.scene.scale, box["width"], box["height"]))  # noqa: E731
        start = grab(tab, camera, lambda: on_page(hand.position))
        for part in np.linspace(0.1, 1.0, 8):
            tab.mouse.move(*(start + part * (on_page(place) - start)))
            tab.wait_for_timeout(60)
        tab.wait_for_timeout(200)
        tab.mouse.up()
        until(lambda: session.layers.all and session.animation.play.drag is None)
        assert session.layers.all[0].relative  # the body walks
        tab.get_by_role("tab", name="Animation", exact=True).click()
        label = tab.locator('xpath=//label[normalize-space(.)="Fade"]/../../following-sibling::div//input')
        fade = label.locator("visible=true").first
        fade.fill("5")
        fade.press("Tab")
        until(lambda: session.layers.all[0].blend == 5)
        until(lambda: not any(one.cause == "direction" for one in session.judging.findings))
        tab.close()


def violations(tab: object) -> list[str]:
    """Serious findings of axe-core about what a tab shows."""
    axe = pytest.importorskip("axe_playwright_python.base", reason="no axe-core: pip install axe-playwright-python")
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(axe.AXE_FILE_PATH.read_text(encoding="utf-8"))
    rules = "r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact)).map(v => v.id + v.nodes[0].html)"
    return tab.evaluate(f"axe.run(document).then({rules})")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("kind", ["retarget", "follow", "offline"])
def test_axe_finds_nothing_serious_on_the_other_pages(browser: object, tmp_path: Path, kind: str, dark: bool) -> None:
    pytest.importorskip("axe_playwright_python.base", reason="no axe-core: pip install axe-playwright-python")
    tab = page_of(browser, viewport={"width": 1280, "height": 800}, color_scheme="dark" if dark else "light")
    tab.set_default_timeout(PATIENCE * 1000)
    walk = sy.load_motion("examples/walk.bvh")
    if kind == "offline":
        sy.formats.write_page(walk, tmp_path / "page.html")
        tab.goto((tmp_path / "page.html").as_uri())
        tab.locator(".tl-play").wait_for()
        assert violations(tab) == []
    elif kind == "follow":
        sink = sy.viewer.PageSink(walk.skeleton, port=0, shadows=False, dark=dark)
        with sink.view as running:
            tab.goto(f"{running.url}?fixedDpr=0.4")
            tab.get_by_role("button", name="Save clip (GLB)", exact=True).wait_for()
            sink.send(walk.pose(3), 0.0)
            assert violations(tab) == []
    else:
        with view_retarget(walk, "humanoid", port=0, shadows=False, dark=dark) as running:
            tab.goto(f"{running.url}?fixedDpr=0.4")
            for name in ("Map", "Rest pose", "Save"):
                tab.get_by_role("tab", name=name, exact=True).click()
                tab.get_by_role("tab", name=name, exact=True, selected=True).wait_for()
                assert violations(tab) == [], name
    tab.close()


def test_axe_finds_nothing_serious(still: Visit) -> None:
    """Roles, names, contrast and order of all controls, in both modes, with the rules of axe-core."""
    names = [one.inner_text() for one in still.tab.get_by_role("tab").all()]
    assert "Why" in names
    try:
        for dark in (True, False):
            still.page.set_dark(dark)
            for name in names:
                still.open(name)
                still.tab.wait_for_timeout(400)  # a hidden tab is built when it is opened
                assert violations(still.tab) == [], f"{name}, {dark=}"
    finally:
        still.page.set_dark(False)
        still.open("Targets")


def test_each_motion_file_is_read_back(still: Visit, tmp_path: Path) -> None:
    session = still.session
    still.open("Export")
    long = lambda pose: np.linalg.norm(pose.positions - pose.positions[0], axis=1).max()  # noqa: E731
    wanted = long(session.animation.play.motion.pose(30))
    labels = Files(session.state).endings()
    for ending in (".bvh", ".glb", ".fbx", ".npz", ".csv"):
        still.pick("Motion as", next(label for label, one in labels.items() if one == ending))
        body = session.body.given if ending == ".csv" else None  # the others hold their skeletons
        read = sy.load_motion(still.take("Save motion", tmp_path), skeleton=body)
        assert len(read) == 61
        assert long(read.pose(30)) * (read.skeleton.meters_per_unit or 1.0) == pytest.approx(wanted, abs=1e-4)


def test_a_joint_is_found_in_the_tree_turned_by_its_ring_and_cleared(arm: Visit) -> None:
    session, keys = arm.session, arm.tab.keyboard
    arm.tab.evaluate("document.activeElement.blur()")
    keys.press("t")
    arm.wait(lambda: arm.tab.evaluate("document.activeElement.matches('.synovia-tree input')"), "no search")
    keys.type("nt 1")
    assert arm.tab.locator(".synovia-tree li:visible").count() < len(session.body.given)
    keys.press("Enter")
    row = session.body.given.index("joint1")
    arm.wait(lambda: arm.page.joint == row, "the joint is not selected")
    current = arm.tab.locator(".synovia-tree button[aria-current]")
    arm.wait(lambda: current.count() == 1 and current.inner_text() == "joint1", "it is not marked in the tree")
    keys.press("Escape")
    arm.wait(lambda: "/rings" in arm.heard.nodes, "it has no ring")
    arm.drawn()
    tool = session.goals.find(session.goals.editors[0].key)
    before, place = float(session.body.pose["joint1"]), tool.position.copy()
    past = session.history._undo._past
    steps = len(past)
    rings, scale = arm.page.scene.rings, arm.page.scene.scale
    size = rings._gizmo.scale
    for share in (0.65, 0.7, 0.6, 0.55):  # the radius of a ring in viser's gizmo, about
        ends = [rings._turn @ (np.cos(a), np.sin(a), 0.0) * share * size + rings._place for a in (0.8, 0.3)]
        start, end = (np.array(arm.at(end / scale)) for end in ends)
        arm.drag(tuple(start), tuple(end - start))
        if abs(session.body.pose["joint1"] - before) > 0.1:
            break
    else:
        raise AssertionError("the ring does not turn the joint")
    arm.still()
    assert np.linalg.norm(tool.position - place) > 1e-3, "the target does not go with the joint"
    assert np.linalg.norm(session.body.pose.position("tool") - tool.position) < 1e-3
    keys.press("Alt+r")
    arm.wait(
        lambda: abs(session.body.pose["joint1"] - session.body.given.rest_pose()["joint1"]) < 1e-3,
        "Alt-R clears nothing",
    )
    for left in reversed(range(steps, len(past))):  # quick edits of one joint are one step, slow ones are several
        keys.press("Control+z")
        arm.wait(lambda left=left: len(past) == left, "Ctrl-Z undoes nothing")
    arm.wait(lambda: abs(session.body.pose["joint1"] - before) < 1e-3, "Ctrl-Z leads elsewhere")
    arm.open("Targets")
    assert not arm.mistakes


def test_a_page_is_replaced_while_the_browser_is_busy(arm: Visit) -> None:
    arm.tab.evaluate("setTimeout(() => { const end = Date.now() + 800; while (Date.now() < end); }, 0)")
    time.sleep(0.2)
    arm.session.goals.move(arm.session.goals.editors[0].key, (0.35, 0.1, 0.7))
    time.sleep(0.2)
    arm.arrive(arm.view, lambda: arm.page.navigation.open("arm7"))
    arm.tab.get_by_role("tab", name="Targets", exact=True).wait_for()
    arm.tab.wait_for_timeout(500)
    assert not arm.mistakes


def test_an_update_of_a_control_that_is_gone_is_no_mistake(arm: Visit) -> None:
    gui = arm.page.client.gui
    control = gui.add_text("Late", "one")
    arm.tab.get_by_text("Late", exact=True).first.wait_for()
    control.remove()
    arm.tab.get_by_text("Late", exact=True).first.wait_for(state="detached")
    gui._websock_interface.queue_message(GuiUpdateMessage(control._impl.uuid, {"value": "two"}))
    after = gui.add_text("Said after it", "three")
    arm.tab.get_by_text("Said after it", exact=True).first.wait_for()
    after.remove()
    assert not arm.mistakes


def test_two_browsers_have_a_body_each(browser: object, arm: Visit) -> None:
    other = Visit(browser, arm.view)
    place = arm.session.goals.editors[0].position.copy()
    ball = arm.shown("/targets/1").copy()
    follows(other, 1)
    np.testing.assert_array_equal(arm.session.goals.editors[0].position, place)
    np.testing.assert_array_equal(arm.shown("/targets/1"), ball)
    other.tab.close()
    arm.wait(lambda: len(arm.view.pages) == 1, "the page of a browser that went is still there")


def test_a_reload_keeps_the_work_of_each_tab(browser: object) -> None:
    with view("arm7", port=0, shadows=False) as running:
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})  # its tabs share cookies and storage
        one, two = (Visit(browser, running, page_of(context)) for _ in range(2))
        assert one.session is not two.session
        places = {}
        for visit, by in ((one, 0.1), (two, -0.1)):
            editor = visit.session.goals.editors[0]
            visit.session.goals.move(editor.key, editor.position + np.array([0.0, by, 0.0]))
            visit.still()
            places[visit] = visit.session.goals.editors[0].position.copy()
        one.page.set_dark(True)
        for visit in (two, one):
            before = visit.session
            visit.arrive(running, visit.tab.reload)
            quiet(visit.tab)
            assert visit.session is before, "the tab has another session after the reload"
            np.testing.assert_array_equal(visit.session.goals.editors[0].position, places[visit])
            np.testing.assert_allclose(visit.shown("/targets/1"), places[visit], atol=1e-6)
            visit.still()
            follows(visit, visit.session.goals.editors[0].key)
        assert one.tab.evaluate("document.documentElement.dataset.mantineColorScheme") == "dark"
        before = one.session
        one.arrive(running, one.tab.reload)
        assert one.session is before
        assert one.session.history.undo(), "the history is lost"
        np.testing.assert_array_equal(one.session.goals.editors[0].position, places[one])
        context.close()


def test_the_page_comes_back_when_its_server_does(arm: Visit) -> None:
    port = arm.view.rules.port
    arm.view.stop()
    again = view("arm7", port=port, shadows=False)
    assert again.rules.port == port
    arm.arrive(again, lambda: None)
    arm.open("Targets")
    follows(arm, 1)


@pytest.fixture(scope="module")
def man(visit: Visit, shared_data: Path) -> Visit:
    visit.show(opening(shared_data / "character" / "mannequiny.glb"))
    return visit


def test_a_character_and_its_skin_follow_the_mouse(man: Visit) -> None:
    follows(man, man.session.goals.editors[0].key)
    part, rows, (skin, mesh) = man.page.surface.parts[0], man.joints(), man.skin()
    moved = 0
    for bone, row in enumerate(part.rows.tolist()):
        if row in rows and ("bone", bone) in man.heard.nodes[skin]:
            np.testing.assert_allclose(man.shown(skin, ("bone", bone)), rows[row], atol=1e-4)
            moved += 1
    assert moved > 3
    man.wait(lambda: man.tab.evaluate(f"{mesh}?.material.vertexColors"), "the surface has one colour")
    assert man.tab.evaluate(f"{mesh}.geometry.attributes.color.count") == len(part.vertices)
    man.open("Pose")
    man.pick("Look", "both")
    man.wait(lambda: man.heard.nodes[skin]["opacity"] is not None, "the surface hides the bones")
    man.wait(lambda: man.tab.evaluate(f"{mesh}.material.transparent && {mesh}.material.vertexColors"))
    man.pick("Look", "surface")
    man.wait(lambda: man.heard.nodes[skin]["opacity"] is None, "the surface is still transparent")


def test_goals_of_a_character_solve_to_the_same_pose(man: Visit, tmp_path: Path) -> None:
    solves_to_the_same_pose(man, man.page.command, tmp_path)


def test_a_robot_follows_the_mouse(visit: Visit, shared_data: Path) -> None:
    robot = opening(shared_data / "robot" / "g1_29dof.urdf")
    assert "not found" in robot.notes[0]
    visit.show(robot)
    follows(visit, visit.session.goals.editors[0].key)
    visit.open("Pose")
    visit.tab.get_by_text("some meshes are not shown").wait_for()


def test_a_person_edits_the_map_of_a_clip(visit: Visit) -> None:
    """On the page with a clip and its transfer to another body: two limbs are exchanged, and the map is saved."""
    map_page = retarget_opening("examples/walk.bvh", "humanoid", None, None, animated)
    visit.go(visit.view, lambda: visit.host.show(map_page))
    visit.tab.get_by_text("Rest pose").first.wait_for()
    visit.tab.wait_for_timeout(500)
    visit.show(opening("arm7"))  # a page with joints to find, where nobody has asked for one
    visit.tab.wait_for_timeout(500)
    assert visit.tab.get_by_role("tab", selected=True).inner_text() == "Targets"
    visit.go(visit.view, lambda: visit.host.show(map_page))
    tab, shown = visit.tab, visit.page
    tab.get_by_text("Rest pose").first.wait_for()
    visit.wait(lambda: shown.transfer.outcome.version == shown.transfer.version)
    target = tab.locator("input[role=combobox]:visible").nth(1)
    for side, other in (("left", "right"), ("right", "left")):
        tab.get_by_role("button", name=f"{side} upper arm:").click()
        visit.wait(lambda side=side: shown.part == f"{side}_upper_arm")
        # nobody picks before the page shows what there is to change; a value on its way would replace the picked one
        visit.wait(lambda: target.input_value() == shown.transfer.joints[shown.part][1])
        target.click()
        tab.get_by_role("option", name=f"{other}_upper_arm", exact=True).click()
        visit.wait(lambda side=side, other=other: shown.transfer.joints[f"{side}_upper_arm"][1] == f"{other}_upper_arm")
    visit.wait(lambda: any(quality_of(limb) == "bad" for limb in shown.transfer.outcome.limbs))
    tab.wait_for_selector("text=/most (left|right) upper arm: 1/")
    visit.open("Save")
    with tab.expect_download() as sent:
        visit.click("Save map")
    assert sent.value.suggested_filename == "map.toml"
    assert read_map(sent.value.path())["left_upper_arm"][1] == "right_upper_arm"
    assert not visit.mistakes


def test_a_texture_is_on_the_skin_that_follows_the_joints_and_on_no_other(visit: Visit, shared_data: Path) -> None:
    visit.show(opening(shared_data / "character" / "greenman.glb"))
    part, (_, mesh) = visit.page.surface.parts[0], visit.skin()
    visit.wait(lambda: visit.tab.evaluate(f"{mesh}?.material.map?.image.width") == part.texture.shape[1])
    corners = visit.tab.evaluate(f"[...{mesh}.geometry.attributes.uv.array]")
    np.testing.assert_allclose(np.reshape(corners, (-1, 3, 2)) % 1.0, part.corners % 1.0, atol=1e-4)
    moved = visit.tab.evaluate(f"{mesh}.skeleton.bones.length")
    assert moved == len(part.rows)
    visit.show(opening("humanoid"))
    _, mesh = visit.skin()
    visit.wait(lambda: visit.tab.evaluate(f"{mesh}?.isMesh"))
    assert visit.tab.evaluate(f"[{mesh}.material.map, {mesh}.material.vertexColors]") == [None, False]
    assert not visit.mistakes


def test_a_clip_plays_with_goals_on_top_and_as_a_page_without_a_network(
    browser: object, visit: Visit, shared_data: Path, tmp_path: Path
) -> None:
    """Its name is markup, which does nothing on either page."""
    walk = sy.load_motion(shared_data / "motion" / "bvhtoolbox_walk01.bvh")
    visit.show(opening(sy.Motion(walk.skeleton, walk.q, walk.fps, name='</script><script>alert("x")</script>')))
    session = visit.session
    before = session.animation.play.time
    visit.wait(lambda: session.animation.play.time != before, "the clip stands still")
    visit.tab.locator(".tl-play").click()
    visit.wait(lambda: not session.animation.play.playing, "the clip plays on")
    visit.tab.locator(".tl-frame").fill("45")
    visit.tab.keyboard.press("Enter")
    visit.wait(lambda: session.animation.play.frame == 45, "the clip was not scrubbed")
    visit.open("Animation")
    visit.put("Speed", 2)
    visit.wait(lambda: session.animation.play.speed == 2.0, "the speed did not change")
    visit.put("Weight", 0.5)
    visit.wait(lambda: session.animation.play.weight == 0.5, "the weight did not change")
    visit.put("Weight", 1)
    visit.open("Export")
    saved = visit.take("Save page (HTML)", tmp_path)
    assert not visit.mistakes
    assert "alert" in plays_from_disk(browser, saved)


def plays_from_disk(browser: object, path: Path) -> str:
    """A saved page plays and is scrubbed with the network blocked; its title."""
    context = browser.new_context(offline=True, viewport={"width": 560, "height": 360})
    tab = page_of(context)
    asked: list[str] = []
    mistakes: list[object] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: mistakes.append(error))
    tab.on("dialog", lambda dialog: mistakes.append(dialog))
    tab.goto(path.as_uri())
    field = tab.locator(".tl-frame")
    until(lambda: int(field.input_value() or 0) > 5)
    paint(tab)
    tab.click(".tl-play")
    before = tab.screenshot(timeout=PATIENCE * 1000)
    field.fill("1")
    field.press("Enter")
    until(lambda: tab.evaluate("[state.clock, state.playing]") == [1, False])
    assert tab.screenshot(timeout=PATIENCE * 1000) != before
    assert all(url.startswith("file:") for url in asked)
    assert not mistakes
    title = tab.title()
    context.close()
    return title
