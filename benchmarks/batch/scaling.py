"""Simulate runs on many nodes from the times of a real one: how much of the cores' time is work.

    python benchmarks/batch/scaling.py OUT/ledger.log [--clips 1000000] [--cores 64] [--bandwidth 20000]

First the simulation is checked: it repeats the run of the log with its number of workers, and its time has to be that
of the run. Then each of N nodes does its shard (``--shard i/N``) with a worker for each core. A node starts at a random
moment, its first process deals out the work (a measured time for each job), and with the last column all nodes share
one file server. The share is work divided by cores times the time until the last node ends.
"""

import argparse
import heapq
import json
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import machine, save, table

from synovia.batch.content import Content, file_hash
from synovia.batch.folder import run_folder
from synovia.batch.inputs import Item
from synovia.batch.work import Result

SIMULATED = 20  # nodes of a large cluster that are simulated
START = (2.0, 20.0)  # seconds until a node works: a container starts, Python and the kernels are loaded


class Nothing:
    """A task that does nothing."""

    name = "nothing"

    def settings(self):
        return {}

    def prepare(self):
        pass

    def picture(self, output, source):
        return None


class Instant:
    """An engine that is done at once."""

    def run(self, task, jobs):
        for job in jobs:
            file = job.folder / str(job.number)
            file.write_bytes(b"")
            content = Content("00")
            figures = {"frames": 100, "worst": 0.1}
            yield Result(job.number, "done", content, file_hash(file), figures, file=file)


def dealing_seconds(count=3000):
    """Return the time that a job costs the process that deals out the work: plan, publish, record, ledger, page."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "in"
        source.write_bytes(b"x")
        items = [Item(f"{k:05}", source, f"{k:05}") for k in range(count)]
        begun = time.process_time()
        run_folder(Nothing(), items, Path(folder) / "out", engine=Instant())
        return (time.process_time() - begun) / count


def events_of(log):
    """Return seconds of each job, and the times at which they ended, of the last run in a log."""
    runs = [[]]
    for line in log.read_text().splitlines():
        event = json.loads(line) if line else {}
        if event.get("event") == "run":
            runs.append([])
        elif event.get("seconds", 0.0) > 0.0:
            runs[-1].append(event)
    longest = max(runs, key=len)
    return [event["seconds"] for event in longest], [event["time"] for event in longest]


def makespan(durations, workers, dealing, start=0.0):
    """Return when the last of the jobs ends that one process deals out to workers."""
    free = [start] * min(workers, len(durations))
    heapq.heapify(free)
    dealer = end = start
    for seconds in durations:
        begun = max(heapq.heappop(free), dealer)
        ended = begun + seconds
        heapq.heappush(free, ended)
        dealer = max(dealer, begun) + dealing
        end = max(end, ended)
    return max(end, dealer)


def main():
    """Check the simulation, simulate and save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("--clips", type=int, default=1_000_000)
    parser.add_argument("--each", type=int, default=100_000, help="clips of each node in the first half of the table")
    parser.add_argument("--cores", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2, help="workers of the run in the log")
    parser.add_argument("--bandwidth", type=float, default=20_000.0, help="MiB a second of the file server")
    parser.add_argument("--size", type=float, default=0.4, help="MiB that are read and written for a clip")
    given = parser.parse_args()
    where = machine()
    seconds, ended = events_of(given.log)
    dealing = dealing_seconds()
    real = max(ended) - min(ended) + seconds[0]
    simulated = makespan(seconds, given.workers, dealing)
    rng = random.Random(1)
    rows = []
    for each in (given.each, None):
        for nodes in (1, 10, 100, 1000):
            clips = nodes * each if each else given.clips
            own = -(-clips // nodes)
            ends, work = [], 0.0
            for node in range(min(nodes, SIMULATED)):  # the others are like these
                durations = rng.choices(seconds, k=own)
                work += sum(durations) / min(nodes, SIMULATED)
                start = START[1] if node == 0 else rng.uniform(*START)  # of many nodes, one starts last
                ends.append(makespan(durations, given.cores, dealing, start))
            shares = [
                work / (given.cores * last) for last in (max(ends), max(*ends, clips * given.size / given.bandwidth))
            ]
            rows.append([f"{clips:,}", nodes, f"{max(ends) / 60:.1f}", *(f"{share:.2f}" for share in shares)])
    head = ["clips", "nodes", "minutes", "share", "share with one file server"]
    text = (
        f"The run of the log: {len(seconds)} clips, {real:.1f} s; simulated {simulated:.1f} s."
        f" Dealing out a job takes {1e3 * dealing:.2f} ms; a clip {1e3 * sum(seconds) / len(seconds):.0f} ms.\n\n"
        f"Nodes of {given.cores} cores; share of the cores' time that is work:\n\n{table(head, rows)}"
    )
    result = {"real": real, "simulated": simulated, "dealing": dealing, "rows": rows}
    save("batch_scaling", "Many nodes, simulated", result, text, where)


if __name__ == "__main__":
    main()
