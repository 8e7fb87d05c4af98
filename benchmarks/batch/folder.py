"""A folder of clips onto a robot: throughput beside one process, memory of the workers, and the spoiled clips.

    python benchmarks/batch/folder.py CLIPS MODEL [--limit N] [--workers N]

CLIPS is a folder that ``clips.py`` made. Some clips are done by one worker and the others by all, in turns, so that
both meet the same load of the machine. On a busy machine only the processor time tells something: that of a clip in
this process alone, beside that of a clip in the pool, with the process that deals out the work. Every spoiled clip must
be a row whose error has a fitting word. Linux only.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from kill import items_of, task_of, workers_of

from clips import WAYS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import machine, save, table

from synovia.batch import folder as batch_folder
from synovia.batch.folder import run_folder
from synovia.batch.pool import Local, cores
from synovia.batch.work import work_on

ROUNDS = 4


class Inline:
    """An engine without processes."""

    def run(self, task, jobs):
        for job in jobs:
            yield work_on(task, job)


def processor_time():
    """Return seconds of this process and of those that it has started and that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def resident(pid):
    """Return the memory of a process in MiB."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("VmRSS")), 0.0)


def measure(task, items, output, workers):
    """Run some items; return seconds between the first and the last outcome, their number, and memory over time."""
    times, memory = [], []

    def notice(event):
        times.append(time.perf_counter())
        if event.ended % 10 == 0:
            memory.append(max(map(resident, workers_of(os.getpid())), default=0.0))

    result = run_folder(task, items, output, engine=Local(workers), notice=notice)
    return times[-1] - times[0], len(times) - 1, memory, result


def main():
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("clips", type=Path)
    parser.add_argument("model")
    parser.add_argument("--limit", type=int, default=None, help="clips to take, all without it")
    parser.add_argument("--workers", type=int, default=cores())
    given = parser.parse_args()
    where = machine()
    task = task_of("retarget", given.model)
    spoiled = json.loads((given.clips / "made.json").read_text())["spoiled"]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out"
        items = items_of("retarget", given.clips, output)[: given.limit]
        size = -(-len(items) // ROUNDS)
        rates = {1: [0.0, 0], given.workers: [0.0, 0]}
        memory = []
        for number in range(ROUNDS):
            block = items[number * size : (number + 1) * size]
            cut = max(len(block) // (given.workers + 1), 2)
            for workers, part in ((1, block[:cut]), (given.workers, block[cut:])):
                seconds, count, seen, result = measure(task, part, output, workers)
                rates[workers][0] += seconds
                rates[workers][1] += count
                memory += seen
        run = run_folder(task, items, output)
        task.prepare()
        spent = []
        batch_folder.write_summary = lambda *_: None  # its pictures cost the same for any number of clips
        for name, engine in (("alone", Inline()), ("pool", Local(given.workers))):
            begun = processor_time()
            run_folder(task, items, Path(folder) / name, engine=engine)
            spent.append((processor_time() - begun) / len(items))
    single, many = (rates[n][1] / rates[n][0] for n in (1, given.workers))
    failed = {row.input: row.error for row in run.failed}
    told = [name for name in failed if name in spoiled and any(word in failed[name] for word in WAYS[spoiled[name]][1])]
    wanted = {item.name for item in items} & spoiled.keys()
    half = len(memory) // 2
    rows = [
        ["clips", len(items)],
        ["one worker, clips/s", f"{single:.2f}"],
        [f"{given.workers} workers, clips/s", f"{many:.2f}"],
        ["share of cores × one worker", f"{many / single / given.workers:.3f}"],
        ["processor time of a clip alone, in the pool, ms", " ".join(f"{1e3 * value:.1f}" for value in spent)],
        ["memory of a worker, MiB: first half, second half", f"{max(memory[:half]):.0f}, {max(memory[half:]):.0f}"],
        ["spoiled clips, failed, told by their cause", f"{len(wanted)}, {len(failed)}, {len(told)}"],
    ]
    result = {str(name): value for name, value in rows}
    save("batch_folder", "A folder of clips", result, table(["clips onto a robot", ""], rows), where)
    sys.exit(set(failed) != wanted or len(told) < len(wanted))


if __name__ == "__main__":
    main()
