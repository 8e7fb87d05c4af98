"""Interruptions at random moments of writing a file: it must be the old or the new one, whole.

python benchmarks/interrupt.py [1000]
"""

import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import synovia as sy


class InterruptedWriting(BaseException):
    """What Ctrl-C would raise."""


def interrupt(number, frame):
    """Stop whatever is done, wherever it is."""
    raise InterruptedWriting


def main():
    """Write two motions in turn over one file, interrupted, and read what is there."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    body = sy.bundled("quadruped")
    motions = [sy.Motion(body, [body.random_pose(k + i).q for i in range(20)], 30.0) for k in (0, 100)]
    rng = random.Random(0)
    signal.signal(signal.SIGALRM, interrupt)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.bvh"
        contents = []
        for motion in motions:
            begun = time.perf_counter()
            sy.write_bvh(motion, path, force=True)
            seconds = time.perf_counter() - begun
            contents.append(path.read_bytes())
        hit = 0
        for k in range(count):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 1.2 * seconds))
                sy.write_bvh(motions[k % 2], path, force=True)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            except InterruptedWriting:
                hit += 1
            if path.read_bytes() not in contents:
                raise SystemExit(f"after {k + 1} writings the file is neither the old nor the new one")
        left = len(list(Path(folder).iterdir())) - 1
    print(f"{count} writings, {hit} interrupted: always the old or the new file; {left} other files left behind")


if __name__ == "__main__":
    main()
