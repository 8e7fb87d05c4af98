"""Makes the pictures of guides/view.md: the live page in a headless Chromium, photographed.

    python docs/pictures/view.py [layers | transferred | limited]

With a word, only those; the pictures of the time line are in the folder ``page`` at three widths, light and dark. Needs
Playwright and a Chromium; no graphics hardware.
"""

import sys
from pathlib import Path

import synovia as sy
from synovia.viewer import view_retarget
from synovia.viewer.editing.limits import SpeedLimits

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
from browsing import chromium  # noqa: E402

SIZE = {"width": 1120, "height": 700}
WIDTHS = {390: 844, 1280: 800, 2560: 1440}
RACERS = ("lm", "sdls", "fabrik", "ccd")
ASKED = {"left_hand": (0.62, 1.45, 0.42), "right_hand": (-0.75, 1.25, 0.5)}


def main():
    with chromium() as browser:
        if len(sys.argv) > 1:
            {"layers": layers, "transferred": transferred, "limited": limited}[sys.argv[1]](browser)
            return
        for file, dark in (("view.jpg", False), ("view_why.jpg", True)):
            goals = [sy.PositionGoal(joint) for joint in ASKED] if dark else None  # racers know no priorities
            with sy.view("humanoid", goals, root="fixed" if dark else None, port=0, dark=dark) as running:
                tab = browser.new_page(viewport=SIZE)
                tab.set_default_timeout(120_000)
                tab.goto(running.url)
                while not running.pages or next(iter(running.pages.values())).frame is None:
                    tab.wait_for_timeout(200)
                page = next(iter(running.pages.values()))
                why = next(part for part in page._tabs if hasattr(part, "_racers"))
                tab.locator(".mantine-Notification-closeButton").first.click()
                for editor in page.session.goals.editors:
                    if editor.label in ASKED:
                        page.session.goals.move(editor.key, ASKED[editor.label])
                if dark:
                    tab.get_by_role("tab", name="Why", exact=True).click()
                    for name in set(sy.solvers) - set(RACERS):
                        why._racers[name].value = False
                    tab.get_by_role("button", name="Race", exact=True).click()
                    tab.get_by_role("cell", name=RACERS[-1], exact=True).wait_for(timeout=600_000)
                tab.wait_for_timeout(10_000)  # drawn without graphics hardware
                tab.screenshot(path=HERE / file, type="jpeg", quality=86)
                tab.close()
        limited(browser)
        transferred(browser)
        layers(browser)


def limited(browser):
    """An arm on its way within speed limits, with the bars of its joints."""
    with sy.view("arm7", port=0) as running:
        tab = browser.new_page(viewport=SIZE)
        tab.set_default_timeout(120_000)
        tab.goto(running.url)
        while not running.pages or next(iter(running.pages.values())).frame is None:
            tab.wait_for_timeout(200)
        page = next(iter(running.pages.values()))
        tab.locator(".mantine-Notification-closeButton").first.click()
        tab.get_by_role("tab", name="Solver", exact=True).click()
        page.session.solving.set_limits(SpeedLimits(on=True, velocity=0.08, acceleration=0.05))
        tab.wait_for_timeout(10_000)  # drawn without graphics hardware
        page.session.goals.move(page.session.goals.editors[0].key, (0.35, 0.45, 0.55))
        while "velocity" not in page.frame.following.limited.values():
            tab.wait_for_timeout(50)
        tab.wait_for_timeout(500)
        tab.screenshot(path=HERE / "view_limits.jpg", type="jpeg", quality=86)
        tab.close()


def transferred(browser):
    """A clip next to its transfer to another body, with a mistake in the map."""
    with view_retarget(HERE.parents[1] / "examples" / "walk.bvh", "humanoid", port=0) as running:
        tab = browser.new_page(viewport=SIZE)
        tab.set_default_timeout(120_000)
        tab.goto(running.url)
        while not running.pages:
            tab.wait_for_timeout(200)
        page = next(iter(running.pages.values()))
        tab.locator(".mantine-Notification-closeButton").first.click()
        page.play.time, page.play.playing = 0.7, False
        for side, other in (("left", "right"), ("right", "left")):
            page.transfer.assign(f"{side}_hand", target=f"{other}_hand")
        page.panel.choose("left_hand")
        tab.wait_for_timeout(10_000)  # drawn without graphics hardware
        while "Retargeting" in tab.locator(".synovia-status").inner_text():
            tab.wait_for_timeout(200)
        for _ in range(12):
            tab.evaluate("new Promise(done => requestAnimationFrame(done))")
        tab.screenshot(path=HERE / "view_retarget.jpg", type="jpeg", quality=86)
        tab.close()


def layers(browser):
    """A walk with two layers on the time line, and the curves of an elbow: at three widths, light and dark."""
    (HERE / "page").mkdir(exist_ok=True)
    for dark in (False, True):
        with sy.view("humanoid", clip=HERE.parents[1] / "examples" / "walk.bvh", port=0, dark=dark) as running:
            for width, height in WIDTHS.items():
                mode = "dark" if dark else "light"
                edited(browser, running, (width, height), HERE / "page" / f"{width}_{mode}.jpg")
    (HERE / "view_layers.jpg").write_bytes((HERE / "page" / "1280_light.jpg").read_bytes())


def edited(browser, running, size, path):
    """The picture of a page of one size, with layers and a key."""
    tab = browser.new_page(viewport=dict(zip(("width", "height"), size, strict=True)))
    tab.set_default_timeout(120_000)
    before = list(running.pages.values())
    tab.goto(running.url)
    while not (new := [page for page in running.pages.values() if page not in before]) or new[0].frame is None:
        tab.wait_for_timeout(200)
    page, session = new[0], new[0].session
    for button in tab.locator(".mantine-Notification-closeButton").all():
        button.dispatch_event("click")
    for frame, label, way in ((40, "left_hand", (0.05, 0.45, 0.15)), (72, "right_hand", (-0.1, 0.3, 0.2))):
        session.animation.set_play(time=frame / 30.0, playing=False)
        tab.wait_for_timeout(2_000)
        editor = next(one for one in session.goals.editors if one.label == label)
        page.select(editor.key)
        session.goals.move(editor.key, editor.position + way)
        session.animation.finish_edit()
        while session.animation.play.drag is not None:
            tab.wait_for_timeout(200)
    session.layers.change(0, frames=(36, 46), blend=12)
    session.layers.change(1, frames=(60, 78), blend=8)
    session.animation.set_play(time=42 / 30.0, playing=False)
    page.select_joint(session.body.given.index("left_lower_arm"))
    if size[0] < 640:
        tab.get_by_role("button", name="Rows", exact=True).click()
    else:
        tab.get_by_role("button", name="Curves of the selected joint").click()
        tab.get_by_role("tab", name="Animation", exact=True).click()
    tab.mouse.move(5, 5)
    tab.wait_for_timeout(10_000)  # drawn without graphics hardware
    tab.screenshot(path=path, type="jpeg", quality=60)
    tab.close()


if __name__ == "__main__":
    main()
