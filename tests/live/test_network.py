"""Live retargeting with a source that is lost, over real UDP, and the command that is interrupted and started again."""

import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import synovia as sy
from conftest import REPO
from live.limits import faster_than
from synovia.streams import JsonSink, JsonSource, VmcSink, VmcSource, play

RATE, SPEED, ACCELERATION = 60.0, 8.0, 100.0


@pytest.fixture(scope="module")
def walk():
    return sy.load_motion(REPO / "examples" / "walk.bvh").resample(RATE)


class Keeper:
    """A sink that keeps what comes."""

    def __init__(self):
        self.poses = []

    def send(self, pose, time):
        self.poses.append(pose)

    def close(self):
        pass


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["vmc", "json"])
def test_a_source_that_is_lost_and_comes_back_elsewhere_breaks_no_limit(walk, kind):
    """With the clock of another sender; meanwhile the body stands still."""
    source = VmcSource(port=0) if kind == "vmc" else JsonSource(walk.skeleton, port=0)
    make = VmcSink if kind == "vmc" else JsonSink
    made, keeper = [], Keeper()

    def send(first, stamp, frames):
        sink, began = make(walk.skeleton, port=source.address[1]), time.monotonic()
        for k in range(frames):
            time.sleep(max(0.0, began + k / RATE - time.monotonic()))
            sink.send(walk[min(first + k, len(walk) - 1)], stamp + k / RATE)
        sink.close()

    def both():
        send(0, 500.0, 50)
        time.sleep(1.2)
        send(40, 3.0, 180)
        source.ended = True

    def body(skeleton):
        made.append(sy.LiveRetarget(skeleton, sy.bundled("humanoid"), rate=RATE, learn=0.2, velocity=SPEED,
                                    acceleration=ACCELERATION))  # fmt: skip
        return made[0]

    sending = threading.Thread(target=both)
    sending.start()
    run = play(source, body, lambda skeleton: [keeper])
    sending.join()
    q = np.array([pose.q for pose in keeper.poses])
    status = [pose.status for pose in keeper.poses]
    leg = made[0].calibration.pairing.target.leg
    assert run.report.facts["losses"] == 1
    assert faster_than(made[0].skeleton, q, RATE, SPEED, ACCELERATION, leg) < 1e-6
    held = [k for k, one in enumerate(status) if one is sy.Status.HOLDING and k > 50]
    assert np.abs(q[held[-1]] - q[held[-2]]).max() < 1e-9
    assert sy.Status.HOLDING not in status[held[-1] + 1 :]
    assert sy.Status.REACHED in status[held[-1] + 1 :]


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.skipif(sys.platform == "win32", reason="no signal ends a process gently there")
def test_ctrl_c_ends_the_command_which_says_what_has_passed_and_starts_again(walk, tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sink, done = VmcSink(walk.skeleton, port=port), threading.Event()

    def send():
        k = 0
        while not done.wait(1.0 / RATE):
            sink.send(walk[k % len(walk)], k / RATE)
            k += 1

    sending = threading.Thread(target=send)
    sending.start()
    try:
        for number, (how, code) in enumerate(((signal.SIGINT, 130), (signal.SIGTERM, 143))):
            out, known = tmp_path / f"{number}.csv", tmp_path / f"{number}.toml"
            words = ["live", f"vmc://127.0.0.1:{port}", "humanoid", "--to", str(out), "--learn", "0",
                     "--save-calibration", str(known)]  # fmt: skip
            running = subprocess.Popen(
                [sys.executable, "-m", "synovia", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            end = time.monotonic() + 200.0
            while (
                time.monotonic() < end and running.poll() is None and not (out.exists() and out.stat().st_size > 9000)
            ):
                time.sleep(0.05)
            running.send_signal(how)
            text, trouble = running.communicate(timeout=60.0)
            assert running.returncode == code, trouble
            assert "verdict" in text
            assert "Traceback" not in trouble
            assert len(sy.formats.read_csv(out, sy.bundled("humanoid").with_root("free"))) > 3
            assert known.exists()
    finally:
        done.set()
        sending.join()
        sink.close()
