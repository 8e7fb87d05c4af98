"""The page of one HTML file: what it stores, its joints and surface against the library's, and what is dragged."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import synovia as sy
from browsing import browser_path, chromium, page_of, until
from synovia.model.geometry import frames_to_transforms
from synovia.model.pose import inside_limits
from synovia.surface import surface_of_skeleton

pytest.importorskip("trimesh")

ROOT = Path(__file__).resolve().parents[2]
drawn = pytest.mark.skipif(browser_path() is None, reason="no Chromium on this machine")
READY = "typeof shown !== 'undefined' && shown.frames !== null"


def some_motion(name: str, frames: int = 5) -> sy.Motion:
    """Random poses of a bundled body."""
    body = sy.bundled(name)
    return sy.Motion(body, np.array([body.random_pose(seed).q for seed in range(frames)]), 30.0)


def content(path: Path) -> dict[str, object]:
    """What a page stores."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)[1])


def test_a_page_is_a_few_hundred_kilobytes_and_loads_nothing(tmp_path: Path) -> None:
    sy.formats.write_page(some_motion("humanoid", 90), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(text) < 600_000
    assert not re.search(r"""(src|href)\s*=\s*["']|https?://|@import""", text)
    assert "/*" not in text.split("</style>")[0]  # all parts are in their places


def test_a_motion_without_frames_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sy.InputError, match="no frames"):
        sy.formats.write_page(sy.Motion(sy.bundled("arm7"), np.zeros((0, 7)), 30.0), tmp_path / "page.html")


@pytest.mark.parametrize("targets", ["ab", [[1.0, 2.0, 3.0], [1.0]], [[0.0, 0.0, np.nan]], 1.0])
def test_targets_that_are_no_positions_are_refused(tmp_path: Path, targets: object) -> None:
    with pytest.raises(sy.InputError, match="targets"):
        sy.formats.write_page(some_motion("arm7"), tmp_path / "page.html", targets=targets)


@pytest.mark.parametrize("shape", [(3,), (2, 1, 3), (4, 2)])
def test_targets_of_another_shape_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(sy.InputError, match="targets"):
        sy.formats.write_page(some_motion("arm7"), tmp_path / "page.html", targets=np.zeros(shape))
    assert not (tmp_path / "page.html").exists()


def test_every_body_has_handles_and_bodies_with_feet_stand(tmp_path: Path) -> None:
    wanted = {"humanoid": (5, 2), "quadruped": (5, 4), "arm7": (1, 0)}
    for name, (count, feet) in wanted.items():
        sy.formats.write_page(some_motion(name), tmp_path / f"{name}.html")
        handles = content(tmp_path / f"{name}.html")["handles"]
        assert (len(handles), sum(handle["carries"] for handle in handles)) == (count, feet)


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with chromium() as one:
        yield one


def opened(browser: object, path: Path, **size: int) -> object:
    """A tab that shows a page, whose errors make the test fail."""
    tab = page_of(browser, viewport={"width": 640, "height": 420} | size)
    tab.mistakes = []
    tab.on("pageerror", lambda error: tab.mistakes.append(error))
    tab.on("console", lambda message: tab.mistakes.append(message.text) if message.type == "error" else None)
    tab.goto(path.as_uri())
    until(lambda: tab.evaluate(READY))
    return tab


@drawn
@pytest.mark.slow
@pytest.mark.parametrize("name", ["humanoid", "quadruped", "arm7"])
def test_joints_and_surface_are_those_of_the_library(browser: object, tmp_path: Path, name: str) -> None:
    motion = some_motion(name)
    sy.formats.write_page(motion, tmp_path / "page.html")
    tab = opened(browser, tmp_path / "page.html")
    parts = surface_of_skeleton(motion.skeleton).parts
    rows = np.concatenate([part.rows for part in parts])
    binds = np.concatenate([part.bind for part in parts])
    for frame in range(len(motion)):
        found, moves = tab.evaluate(
            """f => { const frames = body.frames(q_of(f));
            surface.place(frames); return [[...frames], [...surface.moves.data]] }""",
            frame,
        )
        wanted = motion.frames()[frame]
        np.testing.assert_allclose(np.reshape(found, (-1, 12)), wanted, atol=1e-4)
        expected = frames_to_transforms(wanted)[rows] @ np.linalg.inv(binds)
        np.testing.assert_allclose(np.reshape(moves, (-1, 3, 4)), expected[:, :3], atol=3e-4)
    assert not tab.mistakes
    tab.close()


@drawn
@pytest.mark.slow
def test_what_is_dragged_keeps_limits_feet_and_balance(browser: object, tmp_path: Path) -> None:
    body = sy.bundled("humanoid")
    sy.formats.write_page(sy.Motion(body, np.array([body.rest_q] * 3), 30.0), tmp_path / "page.html")
    tab = opened(browser, tmp_path / "page.html")
    hand = next(
        k for k, handle in enumerate(content(tmp_path / "page.html")["handles"]) if handle["label"] == "Left hand"
    )
    drag = """([k, to]) => { if (!state.q) grab(k); state.goals.set(k, to);
        for (let i = 0; i < 40; i++) pull(); return [[...state.q], say.textContent] }"""
    rest = body.rest_pose()
    feet = ["left_foot", "right_foot", "left_toe_tips", "right_toe_tips"]
    places = np.array([rest.position(name) for name in feet])
    corners = (places[:, None, [0, 2]] + 0.06 * np.array([(x, z) for x in (-1, 1) for z in (-1, 1)])).reshape(-1, 2)
    hull = ConvexHull(corners).equations
    masses = np.array([joint.mass for joint in body.joints])
    for to, near in [
        ((0.5, 1.5, 0.3), True),
        ((0.2, 0.4, 0.4), True),
        ((3.0, 2.0, 0.0), False),
        ((0.0, 1.2, -3.0), False),
    ]:
        q, said = tab.evaluate(drag, [hand, list(to)])
        q = np.array(q)
        np.testing.assert_allclose(inside_limits(body, q), q, atol=1e-6)
        pose = sy.Pose(body, q)
        assert max(np.linalg.norm(pose.position(name) - rest.position(name)) for name in feet) < 1e-3
        centers = np.array(
            [pose.matrix(row) @ joint.com + pose.positions[row] for row, joint in enumerate(body.joints)]
        )
        balance = (masses @ centers / masses.sum())[[0, 2]]
        assert (hull[:, :2] @ balance + hull[:, 2]).max() < 0.0
        missed = np.linalg.norm(pose.position("left_hand") - to)
        assert (missed < 0.01) == near
        assert ("short" in said) == (not near)
    tab.click("#back")
    until(lambda: tab.evaluate("state.q === null && state.blend === null"))
    assert not tab.mistakes
    tab.close()


@drawn
@pytest.mark.slow
def test_mouse_and_keys_move_a_handle_and_the_camera(browser: object, tmp_path: Path) -> None:
    walk = sy.load_motion(ROOT / "examples" / "walk.bvh")
    sy.formats.write_page(walk, tmp_path / "page.html")
    tab = opened(browser, tmp_path / "page.html")
    tab.click(".tl-play")
    handle = tab.get_by_role("button", name="Right hand")
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + 30, y - 40, steps=4)
    tab.mouse.up()
    until(lambda: tab.evaluate("state.q !== null && state.goals.size === 1"))
    placed = "[...[...state.goals.values()][0]]"
    before = tab.evaluate(placed)
    handle.press("ArrowUp")
    assert tab.evaluate(placed) != before
    turn = tab.evaluate("state.turn")
    tab.mouse.move(60, 200)
    tab.mouse.down()
    tab.mouse.move(120, 200, steps=3)
    tab.mouse.up()
    assert tab.evaluate("state.turn") != turn
    handle.press("Escape")
    assert tab.evaluate("state.q === null")
    assert not tab.mistakes
    tab.close()
