"""Is NEW slower than OLD? Both run at once and take short turns; each pair of new processes gives one ratio of times.

    python benchmarks/against.py v0.1.0 .                       # two checkouts, or git revisions, in any mix
    python benchmarks/against.py HEAD~3 . --groups kernels misses --pairs 40
    python benchmarks/against.py OLD NEW --only 'arm*' --json found.json

The ratio of a pair is that of each side's best turn, in CPU time, so that other work on the machine counts little;
turns go OLD NEW NEW OLD, so that a drift of the clock cancels; and each pair has new processes, as the place of code
and data in memory alone makes some processes slower than others. The table shows the median ratio over the pairs
(above 1: NEW is slower) and its 95 % interval by order statistics, which asks nothing of how times are distributed.

The exit status is 1 if the whole interval of a workload lies above ``--allow``: it is slower beyond doubt. What one
side cannot run is named and left out. ``reached`` shows how many problems of a workload each side reaches: an
algorithm that gives up early is also quick. ``starts`` times whole processes with a warm compile cache, ``cold`` with
an empty one.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import machine, table

HERE = Path(__file__).resolve().parent
REPO = HERE.parent
PROCESSES = ("starts", "cold")
GROUPS = ("kernels", "calls", "misses", "full-body", "bulk", *PROCESSES)
TURN = 0.02  # seconds of one turn, about
SOLVE = 'import synovia as sy; sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5)), {!r})'
STARTS = {
    "import synovia": "import synovia",
    "first solve, lm": SOLVE.format("lm"),
    "first solve, fabrik": SOLVE.format("fabrik"),
    "synovia --help": 'import sys; sys.argv = ["synovia", "--help"]; from synovia.cli import main; main()',
}
COLD = {"first solve, lm, nothing compiled": SOLVE.format("lm")}


# --- statistics -----------------------------------------------------------------------------------------------------


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Return the median and an interval that holds the true one with at least this probability.

    The number of values below the true median is binomial with p = 1/2, whatever their distribution; so the k-th
    smallest and the k-th largest enclose it with probability 1 - 2 P(fewer than k below). With fewer than six values no
    interval of 95 % exists: then it is infinite.
    """
    x = sorted(values)
    n = len(x)
    median = 0.5 * (x[(n - 1) // 2] + x[n // 2])
    tail, k = 0.0, 0
    while k < n // 2 and 2.0 * (tail + math.comb(n, k) / 2.0**n) <= 1.0 - level:
        tail += math.comb(n, k) / 2.0**n
        k += 1
    return median, x[k - 1] if k else -math.inf, x[n - k] if k else math.inf


@dataclass
class Found:
    """The ratios of one workload, and what each side reached."""

    group: str
    ratios: list[float] = field(default_factory=list)
    seconds: list[tuple[float, float]] = field(default_factory=list)  # of one call: OLD, NEW
    reached: tuple[Any, Any] = (None, None)
    skipped: str = ""


def verdicts(found: dict[str, Found], allow: float) -> tuple[list[list[object]], list[str]]:
    """Return the rows of the table, and the workloads that are slower beyond doubt."""
    rows: list[list[object]] = []
    slower = []
    for name, one in found.items():
        if not one.ratios:
            rows.append([one.group, name, "", "", "", "", one.skipped])
            continue
        median, low, high = interval(one.ratios)
        old = interval([seconds[0] for seconds in one.seconds])[0]
        if low > allow:
            slower.append(name)
        word = "slower" if low > allow else "faster" if high < 1.0 / allow else ""
        counts = one.reached
        if counts[0] != counts[1]:
            word = f"{word}; reached {counts[0]} and {counts[1]}".lstrip("; ")
        rows.append([
            one.group, name, f"{1e3 * old:.3f}", f"{median:.3f}", f"{low:.3f} to {high:.3f}", len(one.ratios), word
        ])  # fmt: skip
    return rows, slower


# --- sides ----------------------------------------------------------------------------------------------------------


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=REPO, capture_output=True, text=True, check=True).stdout.strip()


@contextlib.contextmanager
def checkout(which: str) -> Generator[Path]:
    """Yield the folder of a checkout, or of a temporary worktree of a git revision."""
    if (Path(which) / "src" / "synovia").is_dir():
        yield Path(which).resolve()
        return
    try:
        commit = git("rev-parse", "--verify", "--quiet", f"{which}^{{commit}}")
    except subprocess.CalledProcessError:
        sys.exit(f"{which}: neither a checkout (a folder with src/synovia) nor a revision that git knows here")
    with tempfile.TemporaryDirectory(prefix="synovia-against-") as folder:
        place = Path(folder) / "tree"
        git("worktree", "add", "--detach", "--quiet", str(place), commit)
        try:
            yield place
        finally:
            git("worktree", "remove", "--force", str(place))


@dataclass(frozen=True)
class Side:
    """One of the two versions."""

    name: str
    folder: Path
    python: str
    caches: Path

    def environment(self, cache: Path | None = None) -> dict[str, str]:
        """Return the environment of its processes: its own package, its own compile cache and bytecode."""
        kernels = sorted((self.folder / "src" / "synovia" / "kernels").glob("*.py"))
        content = hashlib.sha256(b"\0".join(path.read_bytes() for path in kernels)).hexdigest()[:16]
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return kept | {
            "PYTHONPATH": os.pathsep.join([str(self.folder / "src"), str(HERE)]),
            "SYNOVIA_CACHE_DIR": str(cache or self.caches / content),
            "PYTHONPYCACHEPREFIX": str(self.caches / "bytecode"),
            "OPENBLAS_NUM_THREADS": "1",
        }


class Worker:
    """A process of one side that holds built problems and calls them in turns."""

    def __init__(self, side: Side, groups: Sequence[str], only: Sequence[str]) -> None:
        """Start the process."""
        self.side = side
        self.process = subprocess.Popen(
            [side.python, str(HERE / "against_work.py"), *only], env=side.environment(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._say(list(groups))
        self._ready: dict[str, Any] | None = None

    @property
    def ready(self) -> dict[str, Any]:
        """What it can run: waits until all is built and compiled."""
        if self._ready is None:
            said = self._hear()
            if not Path(said["file"]).resolve().is_relative_to(self.side.folder):
                sys.exit(f"{self.side.name}: measured {said['file']}, not the package in {self.side.folder}")
            self._ready = said["work"]
        return self._ready

    def turn(self, name: str, count: int, clock: int) -> float:
        """Return the seconds of one call, by CPU time (0) or the wall's clock (1)."""
        self._say([name, count])
        return self._hear()[clock] / count

    def close(self) -> None:
        """Let it end."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def _say(self, what: object) -> None:
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def _hear(self) -> Any:
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.side.name}: its process ended with {self.process.wait()}")
        return json.loads(line)


def best_turns(pair: Sequence[Worker], name: str, count: int, rounds: int, clock: int) -> tuple[float, float]:
    """Return each side's best turn; the sides go A B B A."""
    best = [math.inf, math.inf]
    for _ in range(rounds):
        for i in (0, 1, 1, 0):
            best[i] = min(best[i], pair[i].turn(name, count, clock))
    return best[0], best[1]


def whole_process(side: Side, code: str, cache: Path | None, clock: int) -> float | str:
    """Return the seconds of one process from start to end, or why it failed."""
    import resource
    import time

    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [side.python, "-c", code], env=side.environment(cache), capture_output=True, text=True, check=False
    )
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it failed without a word"])[-1]
    return took if clock else after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_work(sides: Sequence[Side], args: argparse.Namespace, found: dict[str, Found]) -> None:
    """Measure the workloads that stay in one process, pair by pair."""
    groups = [group for group in args.groups if group not in PROCESSES]
    for k in range(args.pairs if groups else 0):
        order = (0, 1) if k % 2 == 0 else (1, 0)
        pair = [Worker(sides[i], groups, args.only) for i in order]
        can = {worker.side: worker.ready for worker in pair}
        old, new = (can[side] for side in sides)
        for name in dict.fromkeys([*old, *new]):
            one = found.setdefault(name, Found((old.get(name) or new[name])["group"]))
            words = [
                f"{side.name}: {can[side].get(name, {'cannot': 'unknown'})['cannot']}"
                for side in sides
                if "cannot" in can[side].get(name, {"cannot": "unknown"})
            ]
            if words:
                one.skipped = "; ".join(words)
                continue
            one.reached = (old[name]["reached"], new[name]["reached"])
            count = max(1, round(args.turn / max(old[name]["seconds"], 1e-7)))
            took = best_turns(pair, name, count, args.rounds, args.wall)
            seconds = (took[order.index(0)], took[order.index(1)])
            one.seconds.append(seconds)
            one.ratios.append(seconds[1] / seconds[0])
        for worker in pair:
            worker.close()
        print(f"pair {k + 1} of {args.pairs}", file=sys.stderr, flush=True)


def measure_processes(sides: Sequence[Side], args: argparse.Namespace, found: dict[str, Found]) -> None:
    """Measure whole processes: those of a pair go A B B A too, and the better of each counts."""
    todo = [
        (group, name, code)
        for group, codes in (("starts", STARTS), ("cold", COLD))
        for name, code in codes.items()
        if group in args.groups and (not args.only or any(fnmatch.fnmatch(name, one) for one in args.only))
    ]
    for group, name, code in todo:
        one = found.setdefault(name, Found(group))
        if group == "starts":
            for side in sides:
                whole_process(side, code, None, args.wall)  # compiles
        for k in range(args.pairs):
            order = (0, 1, 1, 0) if k % 2 == 0 else (1, 0, 0, 1)
            best = [math.inf, math.inf]
            for i in order if group == "starts" else order[:2]:
                with tempfile.TemporaryDirectory() as empty:
                    took = whole_process(sides[i], code, Path(empty) if group == "cold" else None, args.wall)
                if isinstance(took, str):
                    one.skipped = f"{sides[i].name}: {took}"
                    break
                best[i] = min(best[i], took)
            if one.skipped:
                break
            one.seconds.append((best[0], best[1]))
            one.ratios.append(best[1] / best[0])
        print(f"{name}: done", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", help="a checkout or a git revision")
    parser.add_argument("new", help="the same")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of new processes")
    parser.add_argument(
        "--rounds", type=int, default=3, help="times that a pair goes OLD NEW NEW OLD through a workload"
    )
    parser.add_argument("--turn", type=float, default=TURN, help="seconds of one turn, about")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--only", action="append", default=[], help="workloads, such as 'arm*' (again for more)")
    parser.add_argument("--allow", type=float, default=1.02, help="exit with 1 if an interval lies above this")
    parser.add_argument("--wall", action="store_true", help="the wall's clock instead of CPU time: on an idle machine")
    parser.add_argument("--python", default=sys.executable, help="interpreter of both sides, with what Synovia needs")
    parser.add_argument("--caches", type=Path, default=REPO / ".against", help="where compiled kernels are kept")
    parser.add_argument("--json", type=Path, help="also write all ratios there")
    args = parser.parse_args(arguments)
    found: dict[str, Found] = {}
    args.caches = args.caches.resolve()
    with checkout(args.old) as old, checkout(args.new) as new:
        sides = [Side("OLD", old, args.python, args.caches), Side("NEW", new, args.python, args.caches)]
        measure_work(sides, args, found)
        measure_processes(sides, args, found)
    rows, slower = verdicts(found, args.allow)
    print(table(["group", "workload", "OLD, ms", "ratio", "95 % interval", "pairs", ""], rows))
    print(f"\nslower than {args.allow:g} beyond doubt: {', '.join(slower) or 'none'}")
    if args.json:
        result = {
            name: {
                "group": one.group, "ratios": one.ratios, "seconds": one.seconds, "reached": one.reached,
                "skipped": one.skipped, "interval": interval(one.ratios) if one.ratios else None,
            }
            for name, one in found.items()
        }  # fmt: skip
        record = {"old": args.old, "new": args.new, "allow": args.allow, "machine": machine(), "work": result}
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
