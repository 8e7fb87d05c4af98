"""Live retargeting over a bad network: real UDP, packets that nobody should send, losses, Ctrl-C.

    python benchmarks/live_network.py [--seconds 60] [--packets 1000000] [--silence 60] [--only udp fuzz loss command]

- udp: a process sends a walk at 60 Hz, as VMC and as lines of JSON. A proxy loses 5 % of its packets, doubles 5 %, and
  holds 5 % back until later ones have passed. ``sy.streams.play`` follows at 60 Hz. The judge of ``servo.py``, which
  shares no code with the servo, looks for ticks beyond the limits. The delay is that between the time when a pose was
  sent and that when the body is there: the one with which the result is nearest to what the body does with all poses
  at once, for each five seconds, the first three apart. Memory is that of the process;
- fuzz: random bytes, changed, cut and nested bundles and lines, huge sizes, values that are no numbers, and wrong types
  go to the parsers, and what these accept goes to a body. Packets that are broken for sure must be counted;
- loss: the sender is silent for a minute, then starts anew elsewhere, with another clock and another port;
- command: Ctrl-C ends ``synovia live``, which says what has passed; its table is whole, and it starts again at once.
"""

import argparse
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from common import machine, save, table, verdicts

import synovia as sy
from live import exceeded, limits_of
from synovia.streams import JsonSink, JsonSource, VmcSink, VmcSource, play
from synovia.streams.osc import bundle, message

RATE = 60.0
SHARE = 0.05  # of packets that are lost, doubled, held back
SETTLE = 3.0  # seconds in which the body goes over to its source
BLOCK = 5.0  # seconds over which a delay is measured
GROWTH = 4 << 20  # bytes that memory may grow, for caches of the allocator
SLOWEST = 0.1  # seconds of processor time that a packet may take
WALK = Path(__file__).resolve().parents[1] / "examples" / "walk.bvh"


def resident():
    """Return the memory of this process, bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def there_and_back(clip, frame):
    """Return the frame of a clip that is played forwards and backwards for ever."""
    k = frame % (2 * (len(clip) - 1))
    return min(k, 2 * (len(clip) - 1) - k)


# --- sender and proxy -------------------------------------------------------------------------------------------------


def proxy(inlet, outlet, seed, share, counts):
    """Pass datagrams on from a socket to an address, some of them not, twice or late; an empty one ends it."""
    rng, late = np.random.default_rng(seed), []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        while True:
            data = inlet.recv(65_507)
            if not data:
                return
            counts["sent"] += 1
            u = rng.uniform()
            if u < share:
                counts["lost"] += 1
            elif u < 2.0 * share:
                counts["doubled"] += 1
                out.sendto(data, outlet)
                out.sendto(data, outlet)
            elif u < 3.0 * share:
                counts["late"] += 1
                late.append((int(rng.integers(1, 6)), data))
                continue
            else:
                out.sendto(data, outlet)
            late = [(left - 1, one) for left, one in late]
            for one in [one for left, one in late if left <= 0]:
                out.sendto(one, outlet)
            late = [(left, one) for left, one in late if left > 0]


def send(kind, port, plan, seed, share):
    """Send a walk, and print when each frame was sent and what the proxy did.

    Args:
        kind: ``"vmc"`` or ``"udp"``.
        port: The port.
        plan: Parts: first frame, first time stamp, seconds, seconds of silence after it.
        seed: Seed of the proxy.
        share: Share of packets that are lost, doubled and late, each.
    """
    clip = sy.load_motion(WALK).resample(RATE)
    times, counts = [], dict.fromkeys(("sent", "lost", "doubled", "late"), 0)
    for first, stamp, seconds, silence in plan:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as inlet:
            inlet.bind(("127.0.0.1", 0))
            passing = threading.Thread(target=proxy, args=(inlet, ("127.0.0.1", port), seed, share, counts))
            passing.start()
            make = VmcSink if kind == "vmc" else JsonSink
            sink = make(clip.skeleton, port=inlet.getsockname()[1])
            begun = time.monotonic()
            for k in range(int(seconds * RATE)):
                time.sleep(max(0.0, begun + k / RATE - time.monotonic()))
                times.append((first + k, time.monotonic()))
                sink.send(clip[there_and_back(clip, first + k)], stamp + k / RATE)
            sink.close()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(b"", inlet.getsockname())
            passing.join()
        time.sleep(silence)
    print(json.dumps({"times": times, "counts": counts}))


class Sender:
    """The sender in a process of its own."""

    def __init__(self, kind, port, plan, seed, share=SHARE):
        given = json.dumps({"kind": kind, "port": port, "plan": plan, "seed": seed, "share": share})
        self._told = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe would be full before it is read
        self._process = subprocess.Popen([sys.executable, __file__, "--send", given], stdout=self._told)

    @property
    def ended(self):
        return self._process.poll() is not None

    def kill(self):
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def result(self):
        """Return when each frame was sent, (n, 2) frame and time, and the counts of the proxy."""
        self._process.wait()
        self._told.seek(0)
        content = json.loads(self._told.read())
        return np.array(content["times"]), content["counts"]


class Ending:
    """A source that ends with its sender."""

    def __init__(self, source, sender):
        self._source, self._sender = source, sender

    def __getattr__(self, name):
        return getattr(self._source, name)

    @property
    def ended(self):
        return self._sender.ended


class Recorder:
    """A sink that keeps times, joint values and statuses of ticks, in memory that it has from the beginning.

    Args:
        skeleton: The body.
        ticks: Most ticks.
        settled: Ticks after which memory is measured first.
    """

    def __init__(self, skeleton, ticks, settled):
        self.q, self.times, self.status = np.ones((ticks, skeleton.nq)), np.ones(ticks), np.zeros(ticks, np.int64)
        self.count, self._settled, self.memory = 0, settled, [0, 0]

    def send(self, pose, when):
        k = self.count
        self.q[k], self.times[k], self.status[k] = pose.q, time.monotonic(), pose.status.value
        self.count += 1
        if self.count == self._settled:
            self.memory[0] = resident()

    def close(self):
        self.memory[1] = resident()

    def rows(self):
        return self.times[: self.count], self.q[: self.count], self.status[: self.count]


# --- udp and loss -----------------------------------------------------------------------------------------------------


def source_of(kind, clip):
    """Return a source that listens on any port."""
    return VmcSource(port=0) if kind == "vmc" else JsonSource(clip.skeleton, port=0)


def as_received(kind, clip, frames):
    """Return the skeleton that a source has, and its joint values for frames of the clip, (frames, nq)."""
    if kind != "vmc":
        return clip.skeleton, clip.q[frames]
    sink, source, found, kept = VmcSink(clip.skeleton), VmcSource(port=0), [], []
    sink._sender.send = kept.append
    for k, frame in enumerate([frames[0]] * 3 + list(frames)):  # the first ones show which bones there are
        sink.send(clip[frame], k / RATE)
        for data in kept:
            source.take(data, found)
        kept.clear()
    sink.close()
    source.close()
    return source.skeleton, np.array([one.pose for one in found[-len(frames) :]])


def following(kind, clip, target):
    """Return a function that makes the body that follows, its limits, and the length of its legs."""
    skeleton, poses = as_received(kind, clip, range(len(clip)))
    known = sy.live.LiveCalibration.learn(sy.Motion(skeleton, poses, RATE), target)
    velocity, acceleration = limits_of(target.with_root("free"))

    def make(body):
        return sy.LiveRetarget(body, target, rate=RATE, calibration=known, velocity=velocity, acceleration=acceleration)

    return make, velocity, known.pairing.target.leg


def delays(times, q, sent, body, ideal):
    """Return the delay of each block, and how far the result is from what it should be with it, lengths of the body.

    Args:
        times: When each tick was, (T,).
        q: Joint values of the ticks, (T, nq).
        sent: When each pose was sent, (n,).
        body: The body.
        ideal: Its joint values for each of them, (n, nq).
    """
    places = sy.Motion(body, ideal, RATE).positions().reshape(len(ideal), -1)
    found = sy.Motion(body, q, RATE).positions().reshape(len(q), -1)
    grid, out = np.arange(0.0, 0.3, 0.0005), []
    for begin in np.arange(times[0], times[-1] - BLOCK, BLOCK):
        at = np.flatnonzero((times >= begin) & (times < begin + BLOCK))
        errors = []
        for lag in grid:
            u = np.interp(times[at] - lag, sent, np.arange(len(sent)))
            k = np.minimum(u.astype(int), len(sent) - 2)
            there = places[k] + (u - k)[:, None] * (places[k + 1] - places[k])
            errors.append(float(np.sqrt(np.mean((there - found[at]) ** 2))))
        best = int(np.argmin(errors))
        out.append((float(grid[best]), errors[best] / body.size))
    return np.array(out)


def udp(kind, seconds, seed):
    """Return the figures of a run over a bad network."""
    clip, target = sy.load_motion(WALK).resample(RATE), sy.bundled("humanoid")
    make, velocity, leg = following(kind, clip, target)
    source = source_of(kind, clip)
    sender = Sender(kind, source.address[1], [(0, 0.0, seconds, 0.0)], seed)
    made, sinks = [], []

    def keep(body):
        sinks.append(Recorder(body, int((seconds + 30.0) * RATE), int(seconds * RATE / 6.0)))
        return sinks

    run = play(Ending(source, sender), lambda body: made.append(make(body)) or made[0], keep)
    sent, counts = sender.result()
    times, q, status = sinks[0].rows()
    here = (times > sent[0, 1] + SETTLE) & (times < sent[-1, 1])  # while poses come
    live = made[0]
    bad, worst = exceeded(live.skeleton, q, RATE, velocity, leg)
    skeleton, poses = as_received(kind, clip, [there_and_back(clip, int(k)) for k in sent[:, 0]])
    perfect = make(skeleton)
    ideal = np.array([perfect.step(one).q for one in poses])
    found = delays(times[here], q[here], sent[:, 1], live.skeleton, ideal)
    places = sy.Motion(live.skeleton, q[here], RATE).positions()
    steps = np.linalg.norm(np.diff(places, axis=0), axis=2).max()
    usual = np.linalg.norm(np.diff(sy.Motion(live.skeleton, ideal, RATE).positions(), axis=0), axis=2).max()
    return {
        "kind": kind, "seconds": seconds, **counts, "ticks": run.ticks, "late_ticks": run.late,
        "left_out": run.dropped | dict(run.report.facts["samples_left_out"]),
        "held": int((status[here] == sy.Status.HOLDING.value).sum()),
        "beyond_limits": bad, "worst": worst, "largest_step": float(steps / usual),
        "delay_ms": (1e3 * found[:, 0]).round(1).tolist(), "off": float(found[:, 1].max()),
        "memory": int(sinks[0].memory[1] - sinks[0].memory[0]),
    }  # fmt: skip


def loss(kind, silence, seed):
    """Return the figures of a run whose sender is silent, and comes back elsewhere with another clock."""
    clip, target = sy.load_motion(WALK).resample(RATE), sy.bundled("humanoid")
    make, velocity, leg = following(kind, clip, target)
    source = source_of(kind, clip)
    plan = [(0, 1000.0, 6.0, silence), (len(clip) // 2, 3.0, 8.0, 0.0)]
    sender = Sender(kind, source.address[1], plan, seed)
    made, sinks = [], []

    def keep(body):
        sinks.append(Recorder(body, int((silence + 45.0) * RATE), 60))
        return sinks

    run = play(Ending(source, sender), lambda body: made.append(make(body)) or made[0], keep)
    sent, _ = sender.result()
    times, q, status = sinks[0].rows()
    bad, worst = exceeded(made[0].skeleton, q, RATE, velocity, leg)
    gap = int(np.argmax(np.diff(sent[:, 1])))
    quiet = (times > sent[gap, 1] + 3.0) & (times < sent[gap + 1, 1])
    back = times > sent[gap + 1, 1] + 4.0
    back &= times < sent[-1, 1]
    return {
        "kind": kind, "silence": silence, "losses": run.report.facts["losses"], "beyond_limits": bad, "worst": worst,
        "restless": float(np.abs(np.diff(q[quiet], axis=0)).max(initial=0.0)),
        "held": float((status[quiet] == sy.Status.HOLDING.value).mean()),
        "follows": float((status[back] != sy.Status.HOLDING.value).mean()),
        "memory": int(sinks[0].memory[1] - sinks[0].memory[0]),
    }  # fmt: skip


# --- fuzz -------------------------------------------------------------------------------------------------------------


class Broken:
    """Makes packets of VMC; the second value says whether one is broken for sure.

    Args:
        rng: Random numbers.
        good: Good datagrams.
        fresh: Returns good datagrams for a time stamp.
    """

    def __init__(self, rng, good, fresh):
        self._rng, self._good, self._fresh, self._count = rng, good, fresh, 0
        self.kinds = [
            self.fine, self.noise, self.changed, self.cut, self.deep, self.huge, self.no_number, self.types,
            self.repeated, self.blob, self.names,
        ]  # fmt: skip

    def one(self):
        """Return the name of a kind, a packet of it, and whether it is broken for sure."""
        kind = self.kinds[int(self._rng.integers(len(self.kinds)))]
        data, sure = kind()
        return kind.__name__, data[:65_507], sure

    def pick(self):
        return bytearray(self._good[int(self._rng.integers(len(self._good)))])

    def fine(self):
        self._count += 1
        made = self._fresh(self._count / RATE)
        return made[int(self._rng.integers(len(made)))], False  # the others are lost

    def noise(self):
        data = self._rng.bytes(int(self._rng.integers(0, 300)))
        return data, not data.startswith((b"/", b"#bundle\0"))

    def changed(self):
        data = self.pick()
        for _ in range(int(self._rng.integers(1, 8))):
            data[int(self._rng.integers(len(data)))] = int(self._rng.integers(256))
        return bytes(data), False

    def cut(self):
        data = self.pick()
        end = int(self._rng.integers(len(data)))
        return bytes(data[:end]), bool(end % 4)  # sizes of messages are multiples of 4

    def deep(self):
        data = bytes(self.pick())
        depth = int(self._rng.choice([2, 5, 50, 400]))
        for _ in range(depth):
            data = bundle([data])
        return data, depth > 4

    def huge(self):
        data = self.pick()
        size = int(self._rng.choice([0xFFFFFFFF, 0x7FFFFFFC, 0x80000000, len(data) * 4, 3, 0]))
        data[16:20] = size.to_bytes(4, "big")
        return bytes(data), True

    def no_number(self):
        values = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
        values[int(self._rng.integers(7))] = float(self._rng.choice([np.nan, np.inf, -np.inf, 1e30, 5e4]))
        return message("/VMC/Ext/Bone/Pos", ("Hips", *values)), True

    def types(self):
        kinds = self._rng.choice(list("ifsbTFNhdtc[]rm"), 8)
        head = b"/VMC/Ext/Bone/Pos\0\0\0," + "".join(kinds).encode()
        head += b"\0" * (4 - len(head) % 4)
        return head + self._rng.bytes(4 * int(self._rng.integers(0, 12))), False

    def repeated(self):
        return bytes(self.pick()) * int(self._rng.integers(2, 30)), False

    def blob(self):
        size = int(self._rng.choice([-1, 2**31 - 1, 10**6, -(2**31)]))
        return b"/a\0\0,b\0\0" + struct.pack(">i", size) + b"\0" * 8, True

    def names(self):
        name = self._rng.bytes(int(self._rng.integers(1, 40))).replace(b"\0", b"x")
        data = b"/VMC/Ext/Bone/Pos\0\0\0,sfffffff\0\0\0" + name
        return data + b"\0" * (4 - len(name) % 4) + struct.pack(">7f", 0, 0, 0, 0, 0, 0, 1), False


class BrokenLines(Broken):
    """Makes lines of JSON."""

    def __init__(self, rng, good, fresh):
        super().__init__(rng, good, fresh)
        self.kinds = [
            self.fine, self.noise, self.changed, self.cut, self.deep, self.huge, self.no_number, self.types, self.shape,
        ]  # fmt: skip

    def noise(self):
        data = self._rng.bytes(int(self._rng.integers(1, 300)))
        try:
            json.loads(data)
        except ValueError:
            return data, bool(data.strip())
        return data, False

    def cut(self):
        data = self.pick()
        return bytes(data[: int(self._rng.integers(1, len(data)))]), True

    def deep(self):
        depth = int(self._rng.choice([3, 70, 900, 30_000]))
        ends = int(self._rng.integers(2))
        return b'{"q": ' + b"[" * depth + b"]" * (depth * ends) + b"}" * ends, True

    def huge(self):
        text = str(self._rng.choice(["1" * 60_000, "1e999999", "-" + "9" * 400, "1" + "0" * 5000 + ".5", "1e309"]))
        where = int(self._rng.integers(3))
        line = ['{"t": %s, "q": [0]}', '{"q": [%s]}', '{"q": [' + "0," * 20_000 + "%s]}"][where]
        return (line % text).encode(), True

    def no_number(self):
        line = json.loads(bytes(self.pick()))
        key = "q" if "q" in line else "points"
        line[key][0] = str(self._rng.choice(["NaN", "Infinity", "null", "true", "x"]))
        return json.dumps(line).encode(), True  # a text among numbers

    def types(self):
        values = ["null", "true", '"q"', "{}", "[]", "[[]]", '["1", "2"]', '{"q": 1}', "[null]", "[[1], [1, 2]]", "-1"]
        a, b = self._rng.choice(values, 2)
        return (f'{{"t": {a}, "q": {b}}}').encode(), True

    def shape(self):
        rows = [[0.0] * int(self._rng.integers(0, 5)) for _ in range(int(self._rng.integers(0, 40)))]
        fine = len(rows) > 0 and {len(row) for row in rows} == {3}
        return json.dumps({"points": rows}).encode(), not fine


def fuzz(packets, seed):
    """Return the figures of packets that nobody should send."""
    rng, body = np.random.default_rng(seed), sy.bundled("humanoid_hands").with_root("free")
    clip = sy.load_motion(WALK).resample(RATE)
    sink, kept = VmcSink(body), []
    sink._sender.send = kept.append

    def bones(when):
        kept.clear()
        sink.send(body.random_pose(round(when * RATE) % 20), when)
        return list(kept)

    vmc, good = VmcSource(port=0), [one for k in range(20) for one in bones(k / RATE)]
    found = []
    for one in good:
        vmc.take(one, found)
    q = [{"t": k / RATE, "q": clip.q[k].tolist()} for k in range(20)]
    points = [{"t": k / RATE, "points": rng.normal(size=(33, 3)).tolist()} for k in range(20)]
    lines = [[json.dumps(one).encode() for one in made] for made in (q, points)]
    plain, marks = JsonSource(clip.skeleton, port=0), JsonSource(None, port=0)
    for one in lines[1]:
        marks.take(one)

    def with_time(made):
        return lambda when: [json.dumps({**made[round(when * RATE) % 20], "t": when}).encode()]

    def of_vmc(data):
        found.clear()
        vmc.take(data, found)
        return found

    cases = [
        ("vmc", vmc, of_vmc, Broken(rng, good, bones), packets // 2),
        ("json", plain, lambda data: _one(plain.take(data)), BrokenLines(rng, lines[0], with_time(q)), packets // 4),
        ("landmarks", marks, lambda data: _one(marks.take(data)), BrokenLines(rng, lines[1], with_time(points)),
         packets - 3 * packets // 4),
    ]  # fmt: skip
    rows = []
    for name, source, take, makes, count in cases:
        live = sy.LiveRetarget(source.skeleton, sy.bundled("humanoid"), rate=RATE, learn=0)
        before = uncounted = samples = 0
        slowest, crashes = 0.0, []
        total = sum(source.dropped.values())
        for k in range(count):
            kind, data, sure = makes.one()
            try:
                begun = time.thread_time()
                got = list(take(data))
                slowest = max(slowest, time.thread_time() - begun)
                for one in got:
                    live.receive(one.pose, one.time)
                if k % 50 == 0 and not np.isfinite(live.step().q).all():
                    crashes.append(f"{kind}: a pose that is not finite")
            except Exception as error:  # noqa: BLE001 - whatever it is
                crashes.append(f"{kind}: {error!r}")
                got = []
            samples += len(got)
            now = sum(source.dropped.values())
            uncounted += sure and now == total
            total = now
            if k == count // 10:
                before = resident()
        memory = resident() - before
        rows.append(
            {"parser": name, "packets": count, "samples": samples, "left_out": dict(source.dropped),
             "uncounted": uncounted, "crashes": len(crashes), "first": crashes[:3], "slowest_ms": 1e3 * slowest,
             "memory": memory}
        )  # fmt: skip
        source.close()
    sink.close()
    return rows


def _one(sample):
    """Return a list of a sample, empty without one."""
    return [] if sample is None else [sample]


# --- the command ------------------------------------------------------------------------------------------------------


def command():
    """Return the figures of a command that is interrupted and started again at the same port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sender = Sender("vmc", port, [(0, 0.0, 60.0, 0.0)], 0, 0.0)
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for number, how in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGKILL)):
            path = Path(folder) / f"{number}.csv"
            words = ["live", f"vmc://127.0.0.1:{port}", "humanoid", "--to", str(path), "--learn", "0.2"]
            running = subprocess.Popen(
                [sys.executable, "-m", "synovia", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            begun = time.monotonic()
            while not (path.exists() and path.stat().st_size > 50_000) and time.monotonic() - begun < 60.0:
                time.sleep(0.05)
            first = time.monotonic() - begun
            running.send_signal(how)
            begun = time.monotonic()
            text, trouble = running.communicate(timeout=30.0)
            rows = len(sy.formats.read_csv(path, sy.bundled("humanoid").with_root("free")))
            out.append(
                {"signal": how.name, "started_s": first, "ended_s": time.monotonic() - begun,
                 "code": running.returncode, "says": "verdict" in text, "traceback": "Traceback" in trouble,
                 "rows": rows}
            )  # fmt: skip
    sender.kill()
    return out


def main():
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("udp", "fuzz", "loss", "command")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--silence", type=float, default=60.0)
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--send", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.send:
        send(**json.loads(options.send))
        return
    where, result, text, bars = machine(), {}, [], []
    if "udp" in options.only:
        rows = result["udp"] = [udp(kind, options.seconds, options.seed) for kind in ("vmc", "udp")]
        head = ["UDP", "packets", "lost", "doubled", "late", "ticks", "late ticks", "held", "beyond limits",
                "largest step", "delay ms, first", "last", "memory KiB"]  # fmt: skip
        text.append(table(head, [
            [row["kind"], row["sent"], row["lost"], row["doubled"], row["late"], row["ticks"], row["late_ticks"],
             row["held"], row["beyond_limits"], f"{row['largest_step']:.2f}", row["delay_ms"][0], row["delay_ms"][-1],
             row["memory"] // 1024]
            for row in rows
        ]))  # fmt: skip
        for row in rows:
            name, wait = row["kind"], row["delay_ms"]
            bars += [
                (f"{name}: no tick beyond the limits: {row['beyond_limits']}", not row["beyond_limits"]),
                (f"{name}: the delay does not grow: {wait[0]} ms, at last {wait[-1]} ms, most {max(wait)} ms",
                 max(wait) - wait[0] < 500.0 / RATE),
                (f"{name}: memory is flat: {row['memory'] / 1024:,.0f} KiB more", row["memory"] < GROWTH),
            ]  # fmt: skip
    if "fuzz" in options.only:
        rows = result["fuzz"] = fuzz(options.packets, options.seed)
        head = ["parser", "packets", "samples", "left out", "not counted", "crashes", "slowest ms", "memory KiB"]
        text.append(table(head, [
            [row["parser"], f"{row['packets']:,}", f"{row['samples']:,}", f"{sum(row['left_out'].values()):,}",
             row["uncounted"], row["crashes"], f"{row['slowest_ms']:.1f}", row["memory"] // 1024]
            for row in rows
        ]))  # fmt: skip
        for row in rows:
            name = row["parser"]
            bars += [
                (f"{name}: {row['packets']:,} packets, crashes: {row['crashes']}", not row["crashes"]),
                (f"{name}: broken packets that were not counted: {row['uncounted']}", not row["uncounted"]),
                (f"{name}: memory is flat: {row['memory'] / 1024:,.0f} KiB more", row["memory"] < GROWTH),
                (f"{name}: the slowest packet takes {row['slowest_ms']:.1f} ms", row["slowest_ms"] < 1e3 * SLOWEST),
            ]
    if "loss" in options.only:
        rows = result["loss"] = [loss(kind, options.silence, options.seed) for kind in ("vmc", "udp")]
        head = ["lost for a while", "seconds", "losses", "beyond limits", "moves meanwhile", "holds", "follows again"]
        text.append(table(head, [
            [row["kind"], f"{row['silence']:g}", row["losses"], row["beyond_limits"], f"{row['restless']:.1e}",
             f"{row['held']:.0%}", f"{row['follows']:.0%}"]
            for row in rows
        ]))  # fmt: skip
        for row in rows:
            name = row["kind"]
            bars += [
                (f"{name}: a minute without a source: no tick beyond the limits: {row['beyond_limits']}",
                 not row["beyond_limits"]),
                (f"{name}: it stands still meanwhile: {row['restless']:.1e}",
                 row["restless"] < 1e-9 and row["held"] == 1.0),
                (f"{name}: it follows again: {row['follows']:.0%}", row["follows"] > 0.99),
            ]  # fmt: skip
    if "command" in options.only:
        rows = result["command"] = command()
        head = ["synovia live", "exit code", "says what has passed", "rows of its table", "ended after s"]
        text.append(table(head, [
            [row["signal"], row["code"], "yes" if row["says"] else "no", row["rows"], f"{row['ended_s']:.2f}"]
            for row in rows
        ]))  # fmt: skip
        for row in rows:
            gentle = row["signal"] != "SIGKILL"
            fine = row["rows"] > 30 and not row["traceback"] and (not gentle or (row["says"] and row["ended_s"] < 3.0))
            bars.append((f"{row['signal']} ends it, the table is whole, and it starts again", fine))
    lines, held = verdicts(bars)
    text.append(lines)
    save("live_network", "Live retargeting over a bad network", result, "\n\n".join(text), where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
