"""Damaged files of every format: each is read, or refused by an error of the package, in a second and 512 MiB.

    python tests/fuzzing/run.py --cases 1000000
    python tests/fuzzing/run.py --seed 1 --case 4711        # one case again, in this process
    python tests/fuzzing/run.py --doors --cases 200000      # live lines and datagrams, and text files, of up to 1 MiB

Inputs of doors are larger, and may take 64 MiB more than the process has at rest; see ``doors``.

Cases are drawn from small valid files, made here or found in the folder of real models (--data, SYNOVIA_DATA, else
../shared/data; --data "" leaves them out). Cases are the same only with the same files, --readers and packages: Arrow,
Parquet and C3D are among them only with pyarrow and ezc3d. Each process reads one case after the other under limits of
the system: address space, and processor time, so that the load of the machine does not count. A failure ends the
process if it must, and the next one goes on. Files that failed are kept in --keep. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
WALL = 120.0  # seconds without an answer, after which a process is taken to wait for something
START = 900.0  # seconds until a process has read every whole file once
SHOWN = 40


def seeds_of(options: argparse.Namespace) -> list:
    """Return all files that are changed, or those of some readers; the inputs of doors, if asked for."""
    from fuzzing.doors import door_seeds
    from fuzzing.seeds import made, real

    data, readers = options.data, options.readers
    if options.doors:
        return [seed for seed in door_seeds() if readers is None or seed.reader in readers.split(",")]
    folder = Path(data if data is not None else os.environ.get("SYNOVIA_DATA", HERE.parents[2] / "shared" / "data"))
    seeds = made() + (real(folder) if data != "" and folder.is_dir() else [])
    return seeds if readers is None else [seed for seed in seeds if seed.reader in readers.split(",")]


class Reading:
    """One line of processes that read every k-th case, one after the other."""

    def __init__(self, options: argparse.Namespace, seeds: Path, first: int) -> None:
        self.options = options
        self.seeds = seeds
        self.next = first
        self.rows: list[dict] = []
        self.broken = ""
        self.until = time.monotonic() + 60.0 * options.minutes

    def run(self) -> None:
        """Read all cases, with a new process after each that ended it."""
        last = self.options.first + self.options.cases
        while self.next < last and not self.broken and time.monotonic() < self.until:
            self.once()

    def once(self) -> None:
        """Read until the process ends."""
        options = self.options
        end = options.first + options.cases
        command = [sys.executable, __file__, "--work", f"{self.next}:{end}:{options.jobs}", "--seed", str(options.seed)]
        command += ["--seeds", str(self.seeds)]
        with tempfile.TemporaryFile("w+") as said, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=said, text=True
        ) as process:  # fmt: skip
            watch = threading.Timer(START, process.kill)
            watch.start()
            ready = process.stdout.readline() == "ready\n"
            for line in process.stdout:
                watch.cancel()
                watch = threading.Timer(WALL, process.kill)
                watch.start()
                row = json.loads(line)
                self.next = row["case"] + options.jobs
                self.rows.append(row)
                if row["wrong"]:
                    print(f"case {row['case']}: {row['seed']}: {row['wrong'][:200]}", file=sys.stderr, flush=True)
                if time.monotonic() > self.until:
                    process.kill()
                    break
            code = process.wait()
            watch.cancel()
            said.seek(0)
            text = said.read()
        if not ready:
            self.broken = text[-3000:] or "the process did not begin"
        elif code != 0 and time.monotonic() < self.until:
            wrong = {-27: "over a second", -9: "killed", -11: "segmentation fault", -6: "aborted"}.get(
                code, f"ended with {code}"
            )
            lines = [line.strip() for line in text.splitlines() if "File" in line or "rror" in line]
            print(f"case {self.next}: {wrong}", file=sys.stderr, flush=True)
            self.rows.append({"case": self.next, "outcome": "failed", "wrong": f"{wrong}: {' < '.join(lines[:6])}"})
            self.next += options.jobs


def worked(options: argparse.Namespace) -> None:
    """Be one of the processes."""
    from fuzzing.worker import work

    first, end, step = map(int, options.work.split(":"))
    with tempfile.TemporaryDirectory() as folder:
        work(pickle.loads(options.seeds.read_bytes()), options.seed, range(first, end, step), Path(folder))


def again(options: argparse.Namespace) -> int:
    """Read one case in this process, without limits."""
    from fuzzing.worker import case_of, judged

    chosen, data, rng = case_of(seeds_of(options), options.seed, options.case)
    path = Path(tempfile.mkdtemp()) / f"case{chosen.ending}"
    begun = time.process_time()
    outcome, wrong = judged(chosen, data, rng, path)
    print(f"{path}: {chosen.name}, {len(data)} bytes: {outcome} {wrong} in {time.process_time() - begun:.3f} s")
    return 1 if wrong else 0


def report(options: argparse.Namespace, seeds: list, rows: list[dict], seconds: float) -> int:
    """Print what came of the cases and keep the files that failed."""
    from fuzzing.worker import case_of

    failed = [row for row in rows if row["outcome"] == "failed"]
    for row in failed:
        chosen, data, _ = case_of(seeds, options.seed, row["case"])
        row |= {"reader": chosen.reader, "seed": chosen.name}
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"{options.seed}-{row['case']}-{chosen.reader}{chosen.ending}").write_bytes(data)
    by_reader: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        by_reader[row["reader"]].append(row)
    print("| reader | cases | read | refused | failed | slowest, s | most memory, MiB |")
    print("|---|---|---|---|---|---|---|")
    for reader, own in sorted(by_reader.items()):
        counts = Counter(row["outcome"] for row in own)
        read, bad = counts["read"], counts["failed"]
        slow = max((row.get("seconds", 0.0) for row in own), default=0.0)
        most = max((row.get("memory", 0) for row in own), default=0) / 2**20
        print(f"| {reader} | {len(own)} | {read} | {len(own) - read - bad} | {bad} | {slow:.2f} | {most:.0f} |")
    alike: dict[str, list[dict]] = defaultdict(list)
    for row in failed:
        alike[f"{row['reader']}: {row['wrong'][-160:]}"].append(row)
    for cases in sorted(alike.values(), key=len, reverse=True)[:SHOWN]:
        first = cases[0]
        print(f"\n{len(cases)} like case {first['case']} ({first['seed']}): {first['wrong'][:1500]}")
    slow = sorted((row for row in rows if "seconds" in row), key=lambda row: -row["seconds"])[:5]
    print("\nslowest: " + ", ".join(f"case {row['case']} ({row['seed']}) {row['seconds']:.2f} s" for row in slow))
    big = sorted((row for row in rows if "memory" in row), key=lambda row: -row["memory"])[:5]
    print(
        "most memory: "
        + ", ".join(f"case {row['case']} ({row['seed']}) {row['memory'] / 2**20:.0f} MiB" for row in big)
    )
    print(f"{len(rows)} cases of seed {options.seed}, {len(failed)} failed, {seconds:.0f} s")
    return 1 if failed else 0


def main() -> int:
    """Read the cases and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="only this one, in this process")
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after that time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--data", help="folder of real models; empty for none")
    parser.add_argument("--readers", help="only these readers, for example table,ledger")
    parser.add_argument("--doors", action="store_true", help="live lines and datagrams, and text files of a megabyte")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="where files that failed go")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--seeds", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        worked(options)
        return 0
    if options.case is not None:
        return again(options)
    seeds = seeds_of(options)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "seeds.pickle"  # made once, for all processes
        kept.write_bytes(pickle.dumps(seeds))
        readings = [Reading(options, kept, options.first + job) for job in range(options.jobs)]
        threads = [threading.Thread(target=reading.run) for reading in readings]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if broken := next((reading.broken for reading in readings if reading.broken), ""):
        raise SystemExit(f"a process did not begin:\n{broken}")
    rows = [row for reading in readings for row in reading.rows]
    return report(options, seeds, rows, time.perf_counter() - begun)


if __name__ == "__main__":
    raise SystemExit(main())
