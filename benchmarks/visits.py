"""Browsers that come to the live page and leave again within moments: threads, sessions and memory before and after.

    python benchmarks/visits.py [500] [--longest 1.5] [--at-once 6] [--model arm7]

Each visitor opens the page's WebSocket, mostly says where its camera is (which makes its session), and is gone after up
to 1.5 s, with or without a good-bye. Half of them leave within a third of a second. What is left is counted when the
page has had time to clean up. A first round of visits comes before the first count: a server's own threads and caches
are not what visitors leave behind. Exits 1 where visits leave a session or a thread.
"""

import argparse
import asyncio
import gc
import random
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import viser
import websockets

from synovia.viewer import view

FIRST = 200  # visits before the first count
GRACE = 20.0  # seconds to clean up in


def camera():
    """Return a browser's first message."""
    zero, place = [0.0, 0.0, 0.0], [0.0, 0.0, 3.0]
    sizes = {"fov": 1.0, "near": 0.01, "far": 100.0, "image_height": 480, "image_width": 640}
    turns = {"wxyz": [1.0, 0.0, 0.0, 0.0], "position": place, "look_at": zero, "up_direction": [0.0, 0.0, 1.0]}
    return msgspec.msgpack.encode({"type": "ViewerCameraMessage", **sizes, **turns})


async def visit(port, seconds, *, speak, goodbye):
    """Come, perhaps speak, and be gone after some seconds; return whether the page let the visitor in."""
    protocols = [f"viser-v{viser.__version__}"]
    try:
        socket = await websockets.connect(
            f"ws://127.0.0.1:{port}/", subprotocols=protocols, max_size=None, origin=f"http://127.0.0.1:{port}"
        )
    except websockets.exceptions.InvalidStatus:
        return False
    with suppress(websockets.exceptions.ConnectionClosed):
        if speak:
            await socket.send(camera())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                async for _ in socket:
                    pass
    if goodbye:
        await socket.close()
    else:
        socket.transport.abort()
    return True


async def visits(port, count, longest=1.5, at_once=6, seed=0):
    """Return how many of so many visitors were let in."""
    rng = random.Random(seed)
    free = asyncio.Semaphore(at_once)

    async def one():
        seconds = rng.uniform(0.0, longest) * rng.choice((0.2, 1.0))
        speak, goodbye = rng.random() < 0.9, rng.random() < 0.5
        async with free:
            return await visit(port, seconds, speak=speak, goodbye=goodbye)

    return sum(await asyncio.gather(*(one() for _ in range(count))))


def left(page):
    """Return what a page's visitors left: sessions, threads that solve one, threads in all."""
    names = [thread.name for thread in threading.enumerate()]
    return len(page.pages), sum(name.startswith("synovia-session") for name in names), len(names)


def memory():
    """Return the resident memory in MiB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 2**20


def settled(page):
    """Return what is left when the page has had time to clean up."""
    end = time.monotonic() + GRACE
    while time.monotonic() < end and left(page)[:2] != (0, 0):
        time.sleep(0.1)
    return left(page)


def main():
    """Visit and count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=500)
    parser.add_argument("--longest", type=float, default=1.5, help="seconds of the longest visit")
    parser.add_argument("--at-once", type=int, default=6, help="visitors at once")
    parser.add_argument("--model", default="arm7")
    asked = parser.parse_args()
    with view(asked.model, port=0) as page:
        page.rules._knocks.rate = page.rules._knocks.left = page.rules._knocks.burst = 1e6  # all come from here
        asyncio.run(visits(page.rules.port, FIRST, asked.longest, asked.at_once, seed=1))
        before, held = settled(page), memory()
        begun = time.perf_counter()
        came = asyncio.run(visits(page.rules.port, asked.count, asked.longest, asked.at_once))
        spent = time.perf_counter() - begun
        after, now = settled(page), memory()
    print(f"{came} of {asked.count} visitors let in, in {spent:.0f} s")
    for name, was, here in zip(("sessions", "threads that solve", "threads"), before, after, strict=True):
        print(f"{name}: {was} before, {here} after")
    print(f"memory: {held:.1f} MiB before, {now:.1f} MiB after ({now - held:+.1f})")
    if any(here > was for was, here in zip(before, after, strict=True)):
        sys.exit(1)


if __name__ == "__main__":
    main()
