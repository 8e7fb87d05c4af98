"""The live page in a real Chromium, driven by mouse, keyboard and dropped files.

    python benchmarks/page.py [start] [drag] [files] [keys] [--model FILE.glb] [--seconds 10] [--size 1400 900]
                              [--shots FOLDER]

``start``: seconds from ``synovia view humanoid`` to a body that follows. ``drag``: a hand is dragged beyond its reach
in all directions; how far the feet move, and whether the centre of mass stays over them. ``files``: a character and a
clip are dropped, mapped and played, a hand is keyed over the clip, and the GLB that comes out is read back. ``keys``:
target, nudge, key and export with the keyboard alone. Needs Playwright and a Chromium; no graphics hardware.
"""

import argparse
import base64
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import synovia as sy
from synovia.bodies.support import soles, up_of

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from browsing import Heard, chromium, pixel  # noqa: E402

WALK = HERE.parent / "examples" / "walk.bvh"
PATIENCE = 180.0  # seconds: hanging is all that is measured
DROP = """([name, text]) => {
    const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    const carried = new DataTransfer();
    carried.items.add(new File([bytes], name));
    for (const kind of ["dragover", "drop"])
        document.querySelector("canvas").dispatchEvent(
            new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: carried}));
}"""


class Visit:
    """A browser at a page that this process serves."""

    def __init__(self, browser, running, asked):
        self.view, self.shots, self.mistakes, self.size = running, asked.shots, [], asked.size
        self.tab = browser.new_page(
            viewport=dict(zip(("width", "height"), asked.size, strict=True)), accept_downloads=True
        )
        self.tab.set_default_timeout(1000 * PATIENCE)
        self.tab.on("pageerror", lambda error: self.mistakes.append(str(error)))
        self.tab.on(
            "console",
            lambda said: said.type == "error" and self.mistakes.append(f"{said.text} {said.location}"),
        )
        self.tab.goto(f"{running.url}?fixedDpr=0.3")
        self.page = self.next_page(None)
        self.tab.locator(".mantine-Notification-closeButton").first.dispatch_event("click")

    def next_page(self, old, what="frame"):
        """Wait for another page than the old one, and until it has a frame."""

        def found():
            page = next(iter(self.view.pages.values()), None)
            return page is not None and page is not old and getattr(page, what, None) is not None and page

        self.page = self.wait(found)
        for _ in range(3):  # until the browser has taken the old page away, whose button would take a dropped file
            self.drawn()
        return self.page

    def wait(self, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if value := what():
                return value
            self.tab.wait_for_timeout(30)
        raise SystemExit("it never happened")

    def settle(self):
        """Wait until nothing moves."""
        self.wait(lambda: not self.page.frame.busy)
        frames = -1
        while frames != self.page.worker.frames:
            frames = self.page.worker.frames
            self.tab.wait_for_timeout(500)

    def drawn(self):
        """Wait until the browser has drawn twice."""
        self.tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def shot(self, name):
        if self.shots is not None:
            self.tab.wait_for_timeout(1500)
            self.tab.screenshot(path=self.shots / f"{name}.png")

    def at(self, place):
        """Where a place of the model is on the page, pixels."""
        wide = self.tab.locator("canvas").first.bounding_box()["width"]
        return pixel(self.page.client.camera, np.asarray(place) * self.page.scene.scale, wide, self.size[1])

    def drop(self, path):
        self.tab.evaluate(DROP, [path.name, base64.b64encode(path.read_bytes()).decode()])

    def press(self, label):
        self.tab.get_by_role("button", name=label, exact=True).click(force=True)

    def open(self, name):
        self.tab.get_by_role("tab", name=name, exact=True).click(force=True)

    def take(self, folder, press):
        """Return the file that a press hands out."""
        with self.tab.expect_download() as kept:
            press()
        path = folder / kept.value.suggested_filename
        kept.value.save_as(path)
        return path


def start(browser, asked):
    """Seconds to the address, to the page, and to a body that has followed a key."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "synovia", "view", "humanoid", "--no-browser", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        text = ""
        while not text.rstrip().endswith("}"):
            text += server.stdout.readline()
        address = time.perf_counter() - begun
        heard = Heard()
        tab = browser.new_page(viewport=dict(zip(("width", "height"), asked.size, strict=True)))
        tab.on("websocket", lambda socket: socket.on("framereceived", heard))
        tab.goto(json.loads(text)["url"] + "?fixedDpr=0.4", wait_until="commit")
        tab.get_by_role("tab", name="Targets", exact=True).wait_for()
        shown = time.perf_counter() - begun
        before = heard.nodes["/body/joints"]["batched_positions"]
        while heard.nodes["/body/joints"]["batched_positions"] == before:
            tab.keyboard.press("ArrowUp")
            tab.wait_for_timeout(20)
        followed = time.perf_counter() - begun
        tab.close()
        server.terminate()
    print(f"address {address:.1f} s, page {shown:.1f} s, the body follows {followed:.1f} s after the command")


def drag(browser, asked):
    """Drag a hand around the body, beyond its reach."""
    with sy.view("humanoid", port=0, shadows=False) as running:
        visit = Visit(browser, running, asked)
        visit.settle()
        visit.shot("first")
        page, poses = visit.page, []
        show = page.scene.show
        page.scene.show = lambda frame: (poses.append(frame.pose), show(frame))
        hand = page.session.goals.editors[0]
        x, y = visit.at(hand.position)
        middle = np.array(visit.at(page.session.body.pose.positions.mean(axis=0)))
        radius = 1.2 * np.hypot(x - middle[0], y - middle[1])
        mouse, first = visit.tab.mouse, np.arctan2(y - middle[1], x - middle[0])
        mouse.move(x, y)
        visit.tab.wait_for_timeout(800)
        mouse.down()
        begun = time.perf_counter()
        while (spent := time.perf_counter() - begun) < asked.seconds:
            angle = first + 2.0 * np.pi * spent / asked.seconds * 2.0
            away = radius * min(1.0, 0.6 + spent)
            mouse.move(
                *(middle + away * np.array([np.cos(angle), np.sin(angle)])).clip(
                    5, (asked.size[0] - 400, asked.size[1] - 10)
                )
            )
            visit.tab.wait_for_timeout(16)
            if asked.shots is not None and 0.45 < spent / asked.seconds < 0.47:
                visit.shot("beyond")
        mouse.up()
        visit.settle()
        moved = max(
            np.linalg.norm(pose.position(foot) - poses[0].position(foot))
            for foot in ("left_foot", "right_foot")
            for pose in poses
        )
        given = page.session.body.given
        feet = [given.index("left_foot"), given.index("right_foot")]
        corners = soles(given, feet, up_of(given, feet))
        out = max(outside(pose.center_of_mass()[[0, 2]], corners[:, [0, 2]]) for pose in poses)
        reached = np.ptp([pose.position("left_hand") for pose in poses], axis=0)
        print(f"{len(poses)} frames; the hand went over {np.round(reached, 2).tolist()} m")
        print(
            f"feet moved at most {1e3 * moved:.3f} mm; centre of mass outside the soles by {1e3 * out:.2f} mm at most"
        )
        print(f"mistakes in the console: {visit.mistakes}")
        visit.tab.close()
        return moved < 1e-3 and out == 0.0 and not visit.mistakes and reached.max() > 0.5


def outside(point, corners):
    """Return how far a point (2,) is outside the hull of corners (n, 2), 0 inside."""
    from scipy.spatial import ConvexHull

    return max(float((ConvexHull(corners).equations @ (*point, 1.0)).max()), 0.0)


def files(browser, asked):
    """Drop a character and a clip, map it, key a hand over it, export, and read the file."""
    with sy.view("humanoid", port=0, shadows=False) as running, tempfile.TemporaryDirectory() as folder:
        visit = Visit(browser, running, asked)
        first = visit.page
        visit.drop(asked.model)
        visit.next_page(first)
        character = visit.page
        print(f"dropped {asked.model.name}: the page shows {character.session.body.given.name}")
        visit.drop(WALK)
        visit.press(f"Map it to {character.session.body.given.name}")
        mapped = visit.next_page(character, "transfer")
        visit.wait(lambda: mapped.transfer.outcome.answer is not None)
        print(f"mapped {len(mapped.transfer.outcome.answer.parts)} parts")
        visit.shot("map")
        visit.open("Save")
        visit.press("Animate")
        page = visit.next_page(mapped)
        visit.wait(lambda: page.session.animation.play.playing and page.session.animation.play.time > 0.5)
        visit.shot("clip")
        visit.tab.keyboard.press("Space")
        visit.wait(lambda: not page.session.animation.play.playing)
        page.session.animation.set_play(time=1.0)
        visit.settle()
        key_over(visit, Path(folder), lambda: mouse_key(visit), lambda: export(visit))
        visit.shot("export")
        print(f"mistakes in the console: {visit.mistakes}")
        visit.tab.close()
        return not visit.mistakes


def mouse_key(visit):
    """Drag the first hand up by the mouse and key the pose by a press."""
    hand, mouse = visit.page.session.goals.editors[0], visit.tab.mouse
    for _ in range(4):  # a browser without graphics may not have drawn yet what is to be grabbed
        visit.drawn()
        x, y = visit.at(hand.position)
        mouse.move(x, y)
        visit.drawn()
        mouse.down()
        for step in range(1, 9):
            mouse.move(x + 2 * step, y - 6 * step)
            visit.tab.wait_for_timeout(100)
        visit.drawn()
        mouse.up()
        visit.tab.wait_for_timeout(500)
        if hand.enabled and not hand.follows:
            break
    visit.settle()
    visit.open("Animation")
    posed = visit.page.session.body.pose
    visit.press("Key the pose")
    return posed


def export(visit):
    visit.open("Export")
    visit.press("Save motion (GLB)")


def key_over(visit, folder, key, press):
    """Key a pose over the clip, take the GLB, and compare it with the clip at the key and far from it."""
    page, session = visit.page, visit.page.session
    joint = session.goals.editors[0].label
    posed = key()
    visit.wait(lambda: session.animation.play.keys)
    frame = session.animation.play.keys[0].frame
    path = visit.take(folder, press)
    back = sy.load_motion(path)
    clip = session.animation.play.motion
    far = len(clip) - 1 if frame < len(clip) / 2 else 0
    moved = np.linalg.norm(posed.position(joint) - clip.pose(frame).position(joint))
    kept = np.linalg.norm(back.pose(frame).position(joint) - posed.position(joint))
    same = np.linalg.norm(back.pose(far).position(joint) - clip.pose(far).position(joint))
    unit = page.session.body.given.meters_per_unit or 1.0
    print(f"{path.name}: {len(back)} frames; the key at frame {frame} moves {joint} by {1e3 * unit * moved:.0f} mm,")
    print(f"the file keeps it to {1e3 * unit * kept:.2f} mm, and frame {far} of the clip to {1e3 * unit * same:.2f} mm")
    if not (kept < 0.05 * moved and moved * unit > 0.03):
        raise SystemExit("the key is not in the file")


def keys(browser, asked):
    """Choose a target, nudge it, key it and export with the keyboard alone."""
    body = sy.bundled("humanoid")
    clip = sy.retarget(sy.load_motion(WALK), body).motion
    with sy.view(body, clip=clip, port=0, shadows=False) as running, tempfile.TemporaryDirectory() as folder:
        visit = Visit(browser, running, asked)
        page, board = visit.page, visit.tab.keyboard
        visit.wait(lambda: page.session.animation.play.time > 0.3)
        board.press("Space")
        visit.wait(lambda: not page.session.animation.play.playing)
        first = page.selected
        board.press("Tab")
        visit.wait(lambda: page.selected != first)
        visit.tab.wait_for_timeout(500)  # until the browser knows that there is a target to go back to
        board.press("Shift+Tab")
        visit.wait(lambda: page.selected == first)

        def key():
            for _ in range(12):
                board.press("ArrowUp")
            visit.wait(lambda: page.session.goals.editors[0].enabled)
            visit.settle()
            posed = page.session.body.pose
            board.press("k")
            return posed

        key_over(visit, Path(folder), key, lambda: by_keyboard(visit))
        print(f"target {page.session.goals.editor(first).label}; mistakes in the console: {visit.mistakes}")
        visit.tab.close()
        return not visit.mistakes


def by_keyboard(visit):
    """Go to the tab Export and its button for GLB with Tab, arrows and Enter."""
    seen = walk_to(visit, "tab", "Targets")
    for _ in range(6):
        if visit.tab.get_by_role("tab", name="Export", exact=True).get_attribute("aria-selected") == "true":
            break
        visit.tab.keyboard.press("ArrowRight")
        visit.tab.wait_for_timeout(150)
    else:
        raise SystemExit("the tabs do not take arrow keys")
    seen += walk_to(visit, "button", "Save motion (GLB)")
    print(f"{seen} presses of Tab to the export")
    visit.tab.keyboard.press("Enter")


def walk_to(visit, role, name):
    """Press Tab until a control has the focus; return the number of presses."""
    wanted = visit.tab.get_by_role(role, name=name, exact=True)

    def where():
        return visit.page.selected, visit.tab.evaluate("document.activeElement.outerHTML.slice(0, 300)")

    for count in range(60):
        if wanted.evaluate("node => node === document.activeElement"):
            return count
        before, end = where(), time.monotonic() + 10.0
        visit.tab.keyboard.press("Tab")
        while where() == before and time.monotonic() < end:  # a browser without graphics is slow to hear of it
            visit.tab.wait_for_timeout(60)
    raise SystemExit(f"no key leads to {name}")


PARTS = {"start": start, "drag": drag, "files": files, "keys": keys}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to do, all by default")
    parser.add_argument("--model", type=Path, default=Path(sy.bundled("humanoid").source).with_suffix(".glb"))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--size", type=int, nargs=2, default=(1400, 900), help="of the page, pixels")
    parser.add_argument("--shots", type=Path, help="a folder for pictures")
    asked = parser.parse_args()
    if asked.shots is not None:
        asked.shots.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for part in asked.parts or PARTS:
            print(f"--- {part}")
            if PARTS[part](browser, asked) is False:
                raise SystemExit(f"{part}: not as promised")


if __name__ == "__main__":
    main()
