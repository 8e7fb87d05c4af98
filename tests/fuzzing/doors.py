"""Doors through which texts and datagrams of strangers come: how each is read, and a small valid input for each.

A live door takes what comes and counts what it cannot use: no input may end it. Other doors read a file, or refuse it
by an error of the package. Inputs are up to ``MOST`` bytes, and reading one takes at most ``MEMORY`` more than rest.
"""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path
from random import Random

import numpy as np

import synovia as sy
from fuzzing.seeds import ODD_TOML, SCENE, WORLD, Seed, archive, clip, room
from synovia.clips.handfile import holds_hand, read_hand
from synovia.clips.pointtable import read_point_table
from synovia.io.toml.world import world_text
from synovia.io.toml.write import skeleton_text
from synovia.streams import JsonSource, VmcSink, VmcSource
from synovia.streams.base import LARGEST as DATAGRAM
from synovia.streams.osc import OscError, bundle, message, read_messages

MOST = 2**20  # bytes of an input
MEMORY = 64 * 2**20  # bytes more than at rest
SECONDS = 20.0  # of processor time
LIVE = ("live lines", "live landmarks", "live vmc", "osc")
_BODY = "humanoid"


@functools.cache
def bodies() -> tuple[sy.Skeleton, sy.Skeleton]:
    """Return the body that moves and the body that follows."""
    return sy.bundled(_BODY).with_root("free"), sy.bundled(_BODY)


def followed(samples: list, source: sy.Skeleton | None) -> None:
    """Let a body follow samples, as ``synovia live`` does; refusals of a body that cannot be followed are fine."""
    if not samples:
        return
    try:
        live = sy.LiveRetarget(source, bodies()[1], rate=30.0, learn=0.0)
        live.step(None if source is None else source.rest_pose())
    except sy.SynoviaError:
        return
    for sample in samples[:20]:  # no sample may end the loop
        live.receive(sample.pose, sample.time)
        live.step()


def take_lines(path: Path, rng: Random) -> None:
    """Take lines of JSON about the joints of a body."""
    del rng
    _lines(JsonSource(bodies()[0], None), path)


def take_landmarks(path: Path, rng: Random) -> None:
    """Take lines of JSON with landmarks."""
    del rng
    _lines(JsonSource(None, None), path)


def _lines(source: JsonSource, path: Path) -> None:
    found = [source.take(line) for line in path.read_bytes().split(b"\n")]
    followed([one for one in found if one is not None], source.skeleton)


def take_vmc(path: Path, rng: Random) -> None:
    """Take datagrams of VMC, as they come first and after whole ones."""
    data = path.read_bytes()
    parts = [data[at : at + DATAGRAM] for at in range(0, len(data), DATAGRAM)]
    source, out = VmcSource(port=0), []
    try:
        for k in range(3 if rng.random() < 0.5 else 0):
            for good in datagrams(k):
                source.take(good, out)
        for _ in range(4):
            for part in parts:
                source.take(part, out)
            source.poll()
        followed(out, source.skeleton)
    finally:
        source.close()


def take_osc(path: Path, rng: Random) -> None:
    """Read the messages of a datagram."""
    del rng
    try:
        read_messages(path.read_bytes()[:DATAGRAM])
    except OscError:
        return


def read_a_csv(path: Path, rng: Random) -> None:
    """Read joint values, and the same file as points."""
    if rng.random() < 0.5:
        sy.formats.read_csv(path, sy.bundled("arm7"))
    else:
        read_point_table(path)


def read_a_hand(path: Path, rng: Random) -> None:
    del rng
    holds_hand(path)
    read_hand(path)


def read_a_calibration(path: Path, rng: Random) -> None:
    del rng
    sy.live.LiveCalibration.load(path, *bodies())


def read_a_skeleton(path: Path, rng: Random) -> None:
    del rng
    sy.load_skeleton(path)


def read_some_layers(path: Path, rng: Random) -> None:
    del rng
    sy.formats.read_layers(path)


def read_obstacles(path: Path, rng: Random) -> None:
    del rng
    sy.load_world(path)


DOORS = {
    "live lines": take_lines,
    "live landmarks": take_landmarks,
    "live vmc": take_vmc,
    "osc": take_osc,
    "csv file": read_a_csv,
    "hand file": read_a_hand,
    "calibration file": read_a_calibration,
    "toml file": read_a_skeleton,
    "layers file": read_some_layers,
    "world file": read_obstacles,
}


@functools.cache
def datagrams(k: int) -> tuple[bytes, ...]:
    """Return what a sender of VMC sends for a pose."""
    sink, sent = VmcSink(bodies()[0], port=1), []
    sink._sender.send = sent.append
    sink.send(bodies()[0].random_pose(k), k / 30.0)
    sink.close()
    return tuple(sent)


def door_seeds() -> list[Seed]:
    """Return a small valid input for each door."""
    body, arm = bodies()[0], sy.bundled("arm7")
    rest = body.rest_pose()
    rng = np.random.default_rng(0)
    marks = rng.normal(size=(33, 3)).round(4).tolist()
    lines = [{"t": k / 30, "q": body.random_pose(k).q.round(6).tolist()} for k in range(3)]
    lines.append({"points": rest.positions.round(4).tolist()})
    out = [
        ("lines", "live lines", ".json", "\n".join(map(json.dumps, lines)).encode()),
        ("landmarks", "live landmarks", ".json", json.dumps({"t": 0.5, "points": marks}).encode()),
        ("vmc", "live vmc", ".vmc", datagrams(1)[0]),
        ("vmc bones", "live vmc", ".vmc", bundle([_bone("Hips"), _bone("LeftIndexProximal"), message("/a", ())])),
        ("osc", "osc", ".osc", bundle([message("/a", ("b", 1, 2.0)), bundle([message("/c", (1,))])])),
    ]
    table = "time,a.x,a.y,a.z,a.confidence\n" + "".join(f"{k / 30},{k},1,2,0.9\n" for k in range(4))
    out.append(("points", "csv file", ".csv", table.encode()))
    hand = sy.hands.hand_landmarks(sy.bundled("humanoid_hands").rest_pose(), "right")
    arrays = {"joints": np.array([hand] * 4), "fps": np.array(30.0), "side": np.array("right")}
    arrays["confidence"] = np.ones((4, 21))
    out.append(("hand", "hand file", ".npz", archive(arrays)))
    out.append(("flat hand", "hand file", ".npz", archive({"arr_0": np.tile(hand.reshape(-1), (4, 1))})))
    for name, text in (("arm7", skeleton_text(arm)), ("odd", ODD_TOML)):
        out.append((name, "toml file", ".toml", text.encode()))
    out.append(("world", "world file", ".toml", world_text(WORLD).encode()))
    out.append(("scene", "world file", ".scene", SCENE.encode()))
    out.append(("room", "world file", ".gltf", json.dumps(room()).encode()))
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        sy.save_motion(clip(arm), at / "a.csv")
        out.append(("joints", "csv file", ".csv", (at / "a.csv").read_bytes()))
        sy.live.LiveCalibration.learn(sy.Motion(body, [body.rest_q] * 3, 30.0), bodies()[1]).save(at / "c.toml")
        out.append(("calibration", "calibration file", ".toml", (at / "c.toml").read_bytes()))
        layers = [
            sy.Layer({"left_hand": [(0.1, 1, 0), (0.2, 1, 0), (0.3, 1, 0)]}, frames=(1, 3), blend=2, name="a"),
            sy.Layer({"hips": sy.Rotation.from_euler("x", 0.1)}, frames=(0, 3), relative=True),
        ]
        for ending in (".toml", ".json"):
            sy.formats.write_layers(layers, at / f"l{ending}")
            out.append((f"layers {ending}", "layers file", ending, (at / f"l{ending}").read_bytes()))
    return [Seed(*one, door=True) for one in out]


def _bone(name: str) -> bytes:
    """Return the message about a bone without a place."""
    return message("/VMC/Ext/Bone/Pos", (name, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
