"""Kill a run at random, fill the disk, and go on: in the end the folder must be that of an undisturbed run.

    python benchmarks/batch/kill.py CLIPS MODEL [--task retarget|solve] [--workers 50] [--drivers 50] [--full 5]

CLIPS is a folder that ``clips.py`` made. Workers and the process that deals out the work are killed with SIGKILL at
random times. The disk is filled with ``--disk FOLDER``, a small file system such as a tmpfs; without it a limit of
the file size takes its place. Prints how many inputs were done more than once, which must not be more than were in
flight. Exits with 1 if a file differs. Linux only.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from synovia.batch.solving import collect_tables
from synovia.jobs import Retarget, Solve


def task_of(name, model):
    """Return the task of a name."""
    return Retarget(model) if name == "retarget" else Solve(model)


def items_of(name, source, output):
    """Return the inputs and outputs of a task."""
    if name == "solve":
        return collect_tables([str(source)], output, None)
    return Retarget("humanoid").collect([str(source)], output, ".npz")


def command(given, output):
    """Return the command line of a run."""
    if given.task == "solve":
        return [sys.executable, "-m", "synovia", "solve", given.model, "--targets", str(given.clips), "-o", str(output)]
    more = ["--format", "npz", "-o", str(output)]
    return [sys.executable, "-m", "synovia", "retarget", str(given.clips), given.model, *more]


def differences(one, other):
    """Return the files that differ between two folders, apart from the logs."""
    kept = [
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.suffix != ".log"
        }
        for folder in (one, other)
    ]
    return sorted(str(name) for name in kept[0].keys() | kept[1].keys() if kept[0].get(name) != kept[1].get(name))


def workers_of(pid):
    """Return the processes that a run has started."""
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def outcomes(log):
    """Return how often each output was recorded, and the number of processes that died on one."""
    times, died = Counter(), 0
    for line in log.read_text().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event["event"] in ("done", "failed", "crashed"):
            times[event["row"]["output"]] += 1
            died += event["attempts"] - 1
    return times, died


def fill(folder, kib):
    """Fill the file system of a folder but for some KiB; return the file that does."""
    path = folder / "filler"
    room = shutil.disk_usage(folder).free - 1024 * kib
    path.write_bytes(bytes(max(room, 0)))
    return path


def with_full_disk(given, output, rng):
    """Run while the disk is full, or a limit of the file size plays one; return whether it was noticed."""
    room = rng.randint(given.kib // 8, given.kib)
    words, filler = " ".join(f"'{word}'" for word in command(given, output)), None
    if given.disk is None:
        words = f"ulimit -f {room}; trap '' XFSZ; exec {words}"
    else:
        filler = fill(given.disk, room)
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
    if filler is not None:
        filler.unlink()
    if done.returncode not in (0, 1, 3) or "Traceback" in done.stderr:
        sys.exit(f"a full disk was not recognised: {done.stderr}")
    return done.returncode == 3


def disturbed(given, output, left, rng):
    """Run until nothing is left to do, and disturb it meanwhile; take from ``left`` what was done."""
    while True:
        if left["full"] > 0 and rng.random() < 0.3:
            left["full"] -= with_full_disk(given, output, rng)
            continue
        process = subprocess.Popen(command(given, output), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        end = time.monotonic() + rng.uniform(1.0, given.seconds) if left["drivers"] > 0 else float("inf")
        while process.poll() is None and time.monotonic() < end:
            time.sleep(rng.uniform(0.1, 0.7))
            found = workers_of(process.pid)
            if found and left["workers"] > 0 and rng.random() < 0.5:
                os.kill(rng.choice(found), signal.SIGKILL)
                left["workers"] -= 1
        if process.poll() is None:
            process.kill()
            left["drivers"] -= 1
        process.wait()
        left["runs"] += 1
        if process.returncode in (0, 1):
            return
        if process.returncode > 1:
            sys.exit(f"a run ended with {process.returncode}: is there room for the outputs in {output.parent}?")


def main():
    """Compare a disturbed and an undisturbed run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("clips", type=Path)
    parser.add_argument("model")
    parser.add_argument("--task", choices=("retarget", "solve"), default="retarget")
    parser.add_argument("--workers", type=int, default=50)
    parser.add_argument("--drivers", type=int, default=50)
    parser.add_argument("--full", type=int, default=5)
    parser.add_argument(
        "--kib", type=int, default=400, help="most room on the disk, or size of a file, while it is full"
    )
    parser.add_argument(
        "--disk", type=Path, help="folder of a small file system to fill; else a limit of the file size"
    )
    parser.add_argument("--seconds", type=float, default=6.0, help="longest life of a run that is killed")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.clips.parent) as folder:
        whole, cut = Path(folder) / "whole", (given.disk or Path(folder)) / "cut"
        subprocess.run(command(given, whole), check=False, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        rng, rounds = random.Random(given.seed), 0
        left = Counter(workers=given.workers, drivers=given.drivers, full=given.full)
        wrong, again = [], 0
        while not rounds or max(left["workers"], left["drivers"], left["full"]) > 0:
            shutil.rmtree(cut, ignore_errors=True)
            disturbed(given, cut, left, rng)
            rounds += 1
            times, _ = outcomes(cut / "ledger.log")
            again += sum(count - 1 for count in times.values())
            wrong += differences(whole, cut) + [path.name for path in cut.iterdir() if path.name[0] == "."]
        print(f"{rounds} folders in {left['runs']} runs; SIGKILL: {given.drivers} drivers, {given.workers} workers;")
        print(f"{given.full} times a full disk; {len(times)} inputs, {again} recorded more than once")
        print(f"{len(wrong)} files differ or are left over {wrong[:5]}")
        sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
