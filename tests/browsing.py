"""A real browser for tests of the live page: where it is, what its scene was told, and the mouse over it."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import numpy as np

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-rasterization",  # the panel is drawn by the processor, as in any browser without a graphics card
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Without a graphics card the processor draws every picture, in some hundredths of a second for a thousand triangles.
# So a page has about seven frames in a second, and WebGL draws in one of them, or in all once :func:`paint` has asked.
SELDOM = """(() => {
  const draw = window.requestAnimationFrame.bind(window)
  let asked = new Map(), last = 0, waits = false, painted = -Infinity, paints = true
  const frame = time => {
    const now = asked
    asked = new Map()
    waits = false
    paints = window.alwaysPaints || time - painted > 1000
    if (paints) painted = time
    for (const each of now.values()) each(time)
  }
  window.requestAnimationFrame = each => {
    asked.set(++last, each)
    if (!waits) setTimeout(() => draw(frame), 130)
    waits = true
    return last
  }
  window.cancelAnimationFrame = number => asked.delete(number)
  const gl = WebGL2RenderingContext.prototype
  for (const name of ["clear", "drawArrays", "drawElements", "drawArraysInstanced", "drawElementsInstanced"]) {
    const does = gl[name]
    gl[name] = function (...given) { if (paints) does.apply(this, given) }
  }
})()"""


def browser_path() -> str | None:
    """Where a Chromium is, None where there is none."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def until(what: Callable[[], object], why: str = "it never happened", seconds: float = 300.0) -> object:
    """Wait until something holds; hanging is all that is measured."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := what():
            return value
        time.sleep(0.05)
    raise AssertionError(why)


class Heard:
    """What a browser's scene was told over its WebSocket: the last value of every property of every node."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, object]] = {}

    def __call__(self, frame: bytes | str) -> None:
        if isinstance(frame, str):
            return
        import zstandard

        packed = int.from_bytes(frame[8:16], "little")
        inner = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(frame[16 : 16 + packed]))
        at, buffers = 16 + packed, []
        for length in inner["binaryBufferLengths"]:
            at += (8 - at % 8) % 8
            buffers.append(frame[at : at + length])
            at += length
        for message in inner["messages"]:
            kind, name = message["type"], message.get("name")
            if kind == "SetPositionMessage":
                self.nodes.setdefault(name, {})["position"] = np.array(message["position"])
            elif kind == "SetBonePositionMessage":
                self.nodes.setdefault(name, {})["bone", message["bone_index"]] = np.array(message["position"])
            elif kind == "SceneNodeUpdateMessage":
                self.nodes.setdefault(name, {}).update(
                    {key: _plain(value, buffers) for key, value in message["updates"].items()}
                )
            elif kind == "RemoveSceneNodeMessage":
                self.nodes.pop(name, None)
            elif "props" in message and name:
                props = {key: _plain(value, buffers) for key, value in message["props"].items()}
                self.nodes.setdefault(name, {}).update(props)


def _plain(value: object, buffers: list[bytes]) -> object:
    """Return a value of a message; arrays as their bytes."""
    return buffers[value["__binary_index"]] if isinstance(value, dict) and "__binary_index" in value else value


@contextmanager
def chromium() -> Iterator[object]:
    """A headless Chromium; :func:`page_of` opens its pages."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path(), args=FLAGS)
        yield browser
        browser.close()


def page_of(context: object, **options: object) -> object:
    """A new page of a browser or of a context of it, which draws seldom."""
    tab = context.new_page(**options)
    tab.add_init_script(SELDOM)
    return tab


def paint(tab: object) -> None:
    """Have every frame of a page painted from now on, for pictures that are looked at, and wait for two of them."""
    tab.evaluate("window.alwaysPaints = true")
    tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def pixel(camera: object, point: np.ndarray, width: int, height: int) -> tuple[float, float]:
    """Where a point of the scene is on the page, pixels."""
    w, x, y, z = camera.wxyz
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    local = turn.T @ (np.asarray(point) - camera.position)
    focal = 0.5 * height / np.tan(0.5 * camera.fov)
    return 0.5 * width + focal * local[0] / local[2], 0.5 * height + focal * local[1] / local[2]


def quiet(tab: object) -> None:
    """Close the notices of a page: they cover what is below them, and stay while the mouse is over them."""
    tab.evaluate('document.querySelectorAll(".mantine-Notification-closeButton").forEach(close => close.click())')


def grab(tab: object, camera: object, place: Callable[[], tuple[float, float]]) -> np.ndarray:
    """Press the mouse on a node, once the browser shows that it can be dragged, and return where: (2,), pixels.

    A press before the browser has drawn the node would turn the camera, and every later drag would mean another way.
    """
    seen = None

    def over() -> bool:
        nonlocal seen
        before, seen = seen, np.array([*camera.wxyz, *camera.position])
        quiet(tab)
        at = np.array(place())
        for there in ((4.0, 4.0), at):  # viser sees that the pointer comes over a node, not that a node comes under it
            tab.mouse.move(*there)
            tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        cursor = tab.evaluate("([x, y]) => document.elementFromPoint(x, y).style.cursor", at.tolist())
        return cursor == "pointer" and before is not None and np.array_equal(before, seen)

    until(over, "there is nothing to drag under the pointer")
    tab.mouse.down()
    return np.array(place())
