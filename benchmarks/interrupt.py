"""Interruptions at random moments: a file must be the old or the new one, whole; a long solve must end, its IK sane.

python benchmarks/interrupt.py [1000]          writings of a file
python benchmarks/interrupt.py solves [100]    Ctrl-C in long solves, of one problem, many and a track
"""

import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import synovia as sy

SOON = 0.5  # seconds within which Ctrl-C has to be heard
HERE, THERE = (0.3, 1.2, 0.3), (0.1, 1.2, 0.3)
APART, MET = {"one": HERE, "other": THERE}, {"one": HERE, "other": HERE}


class InterruptedWriting(BaseException):
    """What Ctrl-C would raise."""


def interrupt(number, frame):
    """Stop whatever is done, wherever it is."""
    raise InterruptedWriting


def writings(count):
    """Write two motions in turn over one file, interrupted, and read what is there."""
    body = sy.bundled("quadruped")
    motions = [sy.Motion(body, [body.random_pose(k + i).q for i in range(20)], 30.0) for k in (0, 100)]
    rng = random.Random(0)
    signal.signal(signal.SIGALRM, interrupt)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.bvh"
        contents = []
        for motion in motions:
            begun = time.perf_counter()
            sy.formats.write_bvh(motion, path, force=True)
            seconds = time.perf_counter() - begun
            contents.append(path.read_bytes())
        hit = 0
        for k in range(count):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 1.2 * seconds))
                sy.formats.write_bvh(motions[k % 2], path, force=True)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            except InterruptedWriting:
                hit += 1
            if path.read_bytes() not in contents:
                raise SystemExit(f"after {k + 1} writings the file is neither the old nor the new one")
        left = len(list(Path(folder).iterdir())) - 1
    print(f"{count} writings, {hit} interrupted: always the old or the new file; {left} other files left behind")


def endless(solver):
    """Return a problem that takes hours: one hand at two places."""
    return sy.IK(
        sy.bundled("humanoid"),
        [sy.PositionGoal("left_hand", name=name) for name in APART],
        sy.solvers[solver](attempts=1_000_000),
    )


def solves(count):
    """Press Ctrl-C in long solves and look how soon they end, and whether the next solve has the bits of the first."""
    rng = random.Random(0)
    problems = [endless(name) for name in ("lm", "fabrik", "ccd", "particles", "full-body")]
    sane = [ik.solve(MET).q.tobytes() for ik in problems]
    many = {name: np.repeat([target], 64, axis=0) for name, target in APART.items()}
    ways = (
        lambda ik: ik.solve(APART),
        lambda ik: ik.solve_many(many, threads=rng.choice((1, 2, 4))),
        lambda ik: ik.track(many, candidates=rng.choice((1, 2))),
    )
    for ik in problems:
        ik.precompile()
    waits = []
    for k in range(count):
        place = k % len(problems)
        pressed = []

        def press(pressed=pressed):
            pressed.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(rng.uniform(0.0, 0.5), press)
        try:
            timer.start()
            rng.choice(ways)(problems[place])
            raise SystemExit(f"solve {k + 1}, by {problems[place].solver.name}, has ended before it was interrupted")
        except KeyboardInterrupt:
            waits.append(time.monotonic() - pressed[0])
        if problems[place].solve(MET).q.tobytes() != sane[place]:
            raise SystemExit(f"after solve {k + 1}, by {problems[place].solver.name}, another has other bits")
    late = sum(wait > SOON for wait in waits)
    print(f"{count} solves interrupted: back after {np.median(waits):.3f} s, at most {max(waits):.3f} s,")
    print(f"{late} later than {SOON} s; the next solve had the same bits every time")


def main():
    """Run the one or the other."""
    words = sys.argv[1:]
    if words[:1] == ["solves"]:
        solves(int(words[1]) if len(words) > 1 else 100)
    else:
        writings(int(words[0]) if words else 1000)


if __name__ == "__main__":
    main()
