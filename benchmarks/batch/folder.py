"""A folder of clips onto a robot by one command: throughput beside one process, memory of the workers, spoiled clips.

    python benchmarks/batch/folder.py CLIPS MODEL [--workers N] [--rounds 5] [--turn 40] [--keep OUT]

CLIPS is a folder that ``clips.py`` made. While the command works, this script stops all of its workers but one for a
while (SIGSTOP), lets all go on, and so forth. So one worker and all meet the same clips and the same load of the
machine, in one run, and no time of starting counts. Later all work on, and the memory of each is watched until the end.
Every spoiled clip must be a row whose error has a fitting word, every other clip must have an output, and the same
command once more must have nothing to do. Linux only.
"""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from kill import workers_of

from clips import WAYS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import machine, save, table

from synovia.batch.pool import cores

TICK = os.sysconf("SC_CLK_TCK")
WATCHED = 10  # clips between two looks at the memory


def processor_time(pids):
    """Return the seconds that processes have worked."""
    total = 0.0
    for pid in pids:
        with suppress(OSError):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(words[11]) + int(words[12])) / TICK
    return total


def memory_of(pid, what="VmRSS"):
    """Return the memory of a process in MiB."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(what):
                return int(line.split()[1]) / 1024
    return float("nan")


class Turns:
    """Turns of one worker and of all workers of a run.

    Args:
        pid: The process that deals out the work.
        workers: Number of workers.
        rounds: Number of turns of each kind.
        turn: Clips in a turn of one worker.
    """

    def __init__(self, pid, workers, rounds, turn):
        """Wait for the first outcomes."""
        self.pid, self.workers, self.left, self.turn = pid, workers, 2 * rounds, turn
        self.done = []  # (whether one worked, clips, seconds, processor time)
        self._clips, self._one, self._begun, self._spent = 0, False, None, 0.0

    def ended(self):
        """Count a clip; begin the next turn when it is due."""
        self._clips += 1
        if self._begun is None:
            due = self._clips >= 4 * self.workers and len(workers_of(self.pid)) == self.workers
        else:
            due = self._clips >= (self.turn if self._one else self.turn * self.workers)
        if self.left < 0 or not due:
            return
        pids, now = workers_of(self.pid), time.perf_counter()
        spent = processor_time([self.pid, *pids])
        if self._begun is not None:
            self.done.append((self._one, self._clips, now - self._begun, spent - self._spent))
        self._one = not self._one and self.left > 0
        for pid in pids[1:]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP if self._one else signal.SIGCONT)
        self.left -= 1
        self._clips, self._begun, self._spent = 0, now, spent

    def of(self, *, one):
        """Return (clips, seconds, processor time) of each turn of one worker, or of all."""
        return np.array([turn[1:] for turn in self.done if turn[0] == one])


def run(command, turns_of):
    """Run a command; return its turns, the memory of the workers over time, its own, and seconds."""
    begun = time.perf_counter()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        turns, memory, own, most = turns_of(process.pid), [], 0.0, 0.0
        for number, _ in enumerate(process.stdout, 1):
            turns.ended()
            if number % WATCHED == 0:
                pids = workers_of(process.pid)
                memory.append((number, max(map(memory_of, pids), default=float("nan"))))
                most = max([most, *(memory_of(pid, "VmHWM") for pid in pids)])
                own = memory_of(process.pid, "VmHWM")
    if process.returncode not in (0, 1):
        sys.exit(f"the command ended with {process.returncode}")
    return turns, np.array(memory), most, own, time.perf_counter() - begun


def main():
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("clips", type=Path)
    parser.add_argument("model")
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--rounds", type=int, default=5, help="turns of one worker and of all")
    parser.add_argument("--turn", type=int, default=40, help="clips in a turn of one worker")
    parser.add_argument("--keep", type=Path, help="output folder, which is kept")
    given = parser.parse_args()
    where = machine()
    made = json.loads((given.clips / "made.json").read_text())
    spoiled = made["spoiled"]
    with tempfile.TemporaryDirectory() as folder:
        output = given.keep or Path(folder) / "out"
        command = [sys.executable, "-m", "synovia", "retarget", str(given.clips), given.model, "-o", str(output)]
        command += ["--format", "npz", "--json", "-j", str(given.workers)]
        turns, memory, most, own, seconds = run(
            command, lambda pid: Turns(pid, given.workers, given.rounds, given.turn)
        )
        with (output / "ledger.csv").open(newline="") as file:
            rows = {row["input"]: row for row in csv.DictReader(file)}
        absent = [
            name for name, row in rows.items() if row["status"] == "done" and not (output / row["output"]).exists()
        ]
        again = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    failed = {name: row["error"] for name, row in rows.items() if row["status"] != "done"}
    told = [name for name in failed if name in spoiled and any(word in failed[name] for word in WAYS[spoiled[name]][1])]
    one, many = turns.of(one=True), turns.of(one=False)
    if not len(one) or not len(many):
        sys.exit("too few clips for the turns of one worker and of all: give less with --rounds or --turn")
    rates = [each[:, 0] / each[:, 1] for each in (one, many)]
    shares = rates[1] / rates[0][: len(rates[1])] / given.workers
    share = (many[:, 0].sum() / many[:, 1].sum()) / (one[:, 0].sum() / one[:, 1].sum()) / given.workers
    spent = [1e3 * each[:, 2].sum() / each[:, 0].sum() for each in (one, many)]
    first, last = (np.nanmax(part[:, 1]) for part in np.array_split(memory, 4)[1::2])  # after the start; to the end
    lines = [
        ["clips", len(rows)],
        ["the whole command, s", f"{seconds:.0f}"],
        ["turns of one worker: clips, clips/s", f"{one[:, 0].sum():.0f}, {one[:, 0].sum() / one[:, 1].sum():.2f}"],
        [
            f"turns of {given.workers} workers: clips, clips/s",
            f"{many[:, 0].sum():.0f}, {many[:, 0].sum() / many[:, 1].sum():.2f}",
        ],
        [
            "share of workers × one worker (least and largest of a round)",
            f"{share:.3f} ({min(shares):.2f}, {max(shares):.2f})",
        ],
        ["processor time of a clip: turns of one worker, of all, ms", " ".join(f"{value:.1f}" for value in spent)],
        ["memory of a worker, MiB: second quarter, last quarter, most", f"{first:.0f}, {last:.0f}, {most:.0f}"],
        ["memory of the process that deals out the work, MiB", f"{own:.0f}"],
        ["done, without an output", f"{len(rows) - len(failed)}, {len(absent)}"],
        ["spoiled clips, failed, told by their cause", f"{len(spoiled)}, {len(failed)}, {len(told)}"],
        ["done once more by the same command", len(again)],
    ]
    result = {str(name): value for name, value in lines}
    save("batch_folder", "A folder of clips", result, table(["clips onto a robot", ""], lines), where)
    right = set(failed) == spoiled.keys() and len(told) == len(spoiled) and len(rows) == made["count"]
    sys.exit(not right or bool(absent or again))


if __name__ == "__main__":
    main()
