"""The live page without a browser: time from a drag message to the bones that answer it, updates a second, memory.

    python benchmarks/view.py [--seconds 20] [--joints 61] [--flooders 2]

A WebSocket client speaks as the page does: it drags a target at 60 messages a second and reads what comes back.
With ``--flooders`` it then does so once more while others, each a process, pour messages in as fast as they can and
come back as soon as they are cut off: what is left of the good client's updates.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE

import msgspec
import numpy as np
import websockets
import zstandard


def body(joints):
    """A body of five limbs on one root."""
    import synovia as sy

    out = [sy.Joint(name="root", kind=sy.Kind.FIXED)]
    for limb in range(5):
        parent = 0
        for k in range((joints - 1) // 5):
            turn = 2 * np.pi * limb / 5
            rest = np.eye(4)
            rest[:3, 3] = (0.12 * np.cos(turn), 0.12 * np.sin(turn), 0.05)
            out.append(sy.Joint(name=f"limb{limb}_{k}", parent=parent, kind=sy.Kind.BALL, rest=rest))
            parent = len(out) - 1
    return sy.Skeleton(out, name=f"{len(out)} joints", meters_per_unit=1.0, up="z")


def heard(frame):
    """Messages of a frame."""
    packed = int.from_bytes(frame[8:16], "little")
    return msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(frame[16 : 16 + packed]))["messages"]


def camera():
    zero, look = [0.0, 0.0, 0.0], [0.0, 0.0, 3.0]
    sizes = {"fov": 1.0, "near": 0.01, "far": 100.0, "image_height": 480, "image_width": 640}
    views = {"wxyz": [1.0, 0.0, 0.0, 0.0], "position": look, "look_at": zero, "up_direction": [0.0, 0.0, 1.0]}
    return msgspec.msgpack.encode({"type": "ViewerCameraMessage", **sizes, **views})


def drag(owner, key, place, phase):
    screen = {"start_screen_pos": [0.5, 0.5], "end_screen_pos": [0.5, 0.5], "button": "left", "modifier": None}
    places = {"start_position": [0.0, 0.0, 0.0], "end_position": place, "instance_index": None, "owner": str(owner)}
    named = {"type": "SceneNodeDragMessage", "phase": phase, "name": f"/targets/{key}"}
    return msgspec.msgpack.encode({**named, **places, **screen})


def memory():
    """Resident memory now, MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


async def talk(url, version, seconds):
    """The client, a process of its own: what it costs is not the page's."""
    options = {"origin": f"http://{url}", "subprotocols": [f"viser-v{version}"], "max_size": None}
    async with websockets.connect(f"ws://{url}/", **options) as socket:
        await socket.send(camera())
        seen = {"count": 0, "last": 0.0, "gap": 0.0}  # and no list, which would grow with the time that is watched

        async def read():
            async for frame in socket:
                now = time.perf_counter()
                found = [m for m in heard(frame) if m["type"] == "SceneNodeUpdateMessage"]
                if any(m["name"] == "/body/joints" for m in found):
                    seen["gap"] = max(seen["gap"], now - seen["last"])
                    seen["count"], seen["last"] = seen["count"] + 1, now

        reading = asyncio.create_task(read())
        owner, key = (await asyncio.to_thread(input)).split()  # when the page is ready, it says of what
        waits = []
        for i in range(24):  # a message when all is still: how long until its first bones
            count = seen["count"]
            sent = time.perf_counter()
            await socket.send(drag(owner, key, [0.01 * (i % 2 + 1), 0.0, 0.0], "update" if i else "start"))
            while seen["count"] == count:
                await asyncio.sleep(0.0005)
            waits.append(seen["last"] - sent)
            await asyncio.sleep(0.7)
        print("dragging", flush=True)
        seen["count"], seen["gap"], seen["last"] = 0, 0.0, time.perf_counter()
        begun = time.perf_counter()
        i = 0
        while time.perf_counter() - begun < seconds:
            t = i / 60.0
            place = [0.1 * float(np.sin(3 * t)), 0.1 * float(np.cos(2 * t)), 0.0]
            await socket.send(drag(owner, key, place, "update"))
            i += 1
            await asyncio.sleep(max(0.0, begun + i / 60.0 - time.perf_counter()))
        spent = time.perf_counter() - begun
        reading.cancel()
        print(json.dumps({"waits": waits, "count": seen["count"], "gap": seen["gap"], "seconds": spent}), flush=True)


async def pour(url, version):
    """A flooder: sends without a pause, and knocks again whenever it is cut off, until its input ends."""
    os.nice(19)  # whoever floods from elsewhere takes no time of this machine
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    told = {"sent": 0, "cut": 0, "refused": 0}
    options = {"origin": f"http://{url}", "subprotocols": [f"viser-v{version}"], "max_size": None}
    message = camera()
    while not ended.done():
        try:
            async with websockets.connect(f"ws://{url}/", **options) as socket:
                while not ended.done():
                    await socket.send(message)
                    told["sent"] += 1
        except websockets.exceptions.ConnectionClosed:
            told["cut"] += 1
        except (OSError, websockets.exceptions.WebSocketException):
            told["refused"] += 1
            await asyncio.sleep(0.01)
    print(json.dumps(told), flush=True)


@contextmanager
def flooded(page, count):
    """Let flooders be at work; the list that comes is filled with what each did when they have ended."""
    import viser

    told = [sys.executable, __file__, "--flood", f"127.0.0.1:{page.rules.port}", viser.__version__]
    crowd = [subprocess.Popen(told, stdin=PIPE, stdout=PIPE, text=True) for _ in range(count)]
    done = []
    yield done
    done += [json.loads(one.communicate()[0]) for one in crowd]


def run(page, seconds, ready=None):
    """Let a client drag; return what it saw, the seconds of a core that it cost, and the memory once a second.

    ``ready`` is called when the client has its page, before it drags.
    """
    import viser

    while page.pages:  # of a client that has gone
        time.sleep(0.05)
    told = [sys.executable, __file__, "--client", f"127.0.0.1:{page.rules.port}", viser.__version__]
    client = subprocess.Popen([*told, "--seconds", str(seconds)], stdin=PIPE, stdout=PIPE, text=True)
    while not page.pages or next(iter(page.pages.values())).worker.frames < 1:
        time.sleep(0.1)
    owner = next(iter(page.pages))
    if ready is not None:
        ready()
    time.sleep(1.0)
    client.stdin.write(f"{owner} {page.pages[owner].session.goals.editors[0].key}\n")
    client.stdin.flush()
    client.stdout.readline()
    kept, ended = [], threading.Event()

    def watch():
        while not ended.wait(1.0):
            kept.append(memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    worked = time.process_time()
    seen = json.loads(client.stdout.readline())
    worked = time.process_time() - worked
    ended.set()
    watcher.join()
    client.wait()
    return seen, worked, kept


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--joints", type=int, default=61)
    parser.add_argument("--flooders", type=int, default=0)
    parser.add_argument("--flood", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.client:
        asyncio.run(talk(*asked.client, asked.seconds))
        return
    if asked.flood:
        asyncio.run(pour(*asked.flood))
        return
    import synovia as sy

    with sy.view(body(asked.joints), port=0) as page:
        seen, worked, kept = run(page, asked.seconds)
        if asked.flooders:
            with ExitStack() as stack:
                done = []
                beside, _, _ = run(
                    page, asked.seconds, lambda: done.append(stack.enter_context(flooded(page, asked.flooders)))
                )
    ms = sorted(1e3 * wait for wait in seen["waits"])
    print(f"{asked.joints} joints: message to new bones {statistics.median(ms):.1f} ms median, {ms[-3]:.1f} ms at 95 %")
    print(f"{seen['count'] / seen['seconds']:.1f} updates a second over {seen['seconds']:.0f} s of dragging")
    each = 1e3 * worked / seen["count"]
    print(f"{each:.2f} ms of a core an update, so that 60 a second take {6 * each:.0f} % of it")
    half = len(kept) // 2
    slope = np.polyfit(np.arange(half, len(kept)), kept[half:], 1)[0] if half > 2 else float("nan")
    print(f"memory {kept[0]:.0f} -> {kept[-1]:.0f} MiB; {60 * slope:+.2f} MiB a minute in the second half")
    if asked.flooders:
        did = {name: sum(one[name] for one in done[0]) for name in done[0][0]}
        waits = sorted(1e3 * wait for wait in beside["waits"])
        print(
            f"beside {asked.flooders} flooders: {beside['count'] / beside['seconds']:.1f} updates a second "
            f"(alone {seen['count'] / seen['seconds']:.1f}), longest gap {1e3 * beside['gap']:.0f} ms "
            f"(alone {1e3 * seen['gap']:.0f} ms), message to new bones {statistics.median(waits):.1f} ms median"
        )
        print(f"they sent {did['sent']} messages, were cut off {did['cut']} and refused {did['refused']} times")


if __name__ == "__main__":
    main()
