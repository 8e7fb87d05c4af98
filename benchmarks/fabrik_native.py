"""An iteration of FABRIK on chains of unlimited balls beside a plain C++ loop of the same work, in the same run.

python benchmarks/fabrik_native.py
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from chain import chain
from common import machine, save, table, verdicts

import synovia as sy

FEW, MANY = 50, 250  # iterations of two runs; what one costs is the difference, without what a call costs
BARS = {10: 1.3, 100: 1.3, 1000: 1.3}  # times C++
Doubles = ctypes.POINTER(ctypes.c_double)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endless(sy.Fabrik):
    """FABRIK that never finds that the error falls too slowly."""

    progress: ClassVar[tuple[int, float]] = (1_000_000, 1.0)


def native(compiler: str, name: str = "fabrik", *options: str) -> ctypes.CDLL:
    """Return a C++ loop, compiled for this machine."""
    source = Path(__file__).parent / "native" / f"{name}.cpp"
    library = Path(tempfile.mkdtemp()) / f"{name}.so"
    subprocess.run([compiler, "-O3", "-march=native", *options, "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


def ours(n: int, target: np.ndarray, steps: int):
    """Return a call of our kernel that takes so many iterations."""
    ik = sy.IK(chain(n), sy.PositionGoal(n), Endless(max_steps=steps, attempts=1), tolerance=(1e-200, 1e-3))
    if ik.solve({n: target}).steps != steps:
        raise SystemExit(f"{n} joints settled before {steps} iterations")
    problem = ik.problem
    workspace = problem.new_workspace()
    problem.writer.fill({n: target}, workspace)
    row = np.empty(problem.row_shape)
    return lambda: problem.kernel(
        problem.ints, problem.floats, workspace.table, problem.rest, row, workspace.scratch, False, 0
    )


def theirs(library: ctypes.CDLL, n: int, target: np.ndarray, steps: int):
    """Return a call of the C++ loop that takes so many iterations."""
    start = chain(n).rest_pose().positions
    points = start.copy()
    lengths = np.linalg.norm(np.diff(start, axis=0), axis=1)
    given = [a.ctypes.data_as(Doubles) for a in (points, lengths, target)]

    def call() -> None:
        points[...] = start
        if library.fabrik(given[0], given[1], n, given[2], ctypes.c_double(1e-200), steps) != steps:
            raise SystemExit("the C++ loop settled early")

    return call


def seconds(call, repeats: int) -> float:
    """Return the time of one call."""
    began = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - began) / repeats


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--joints", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--compiler", default="g++")
    args = parser.parse_args()
    where = machine()
    library = native(args.compiler)
    rows: list[list[object]] = []
    found: dict[str, dict[str, float]] = {}
    for n in args.joints:
        target = np.array([0.7, 0.6, 0.37])
        target *= 0.9995 / np.linalg.norm(target)  # nearly out of reach: FABRIK goes on and on
        calls = {
            name: (make(n, target, FEW), make(n, target, MANY))
            for name, make in (("ours", ours), ("C++", lambda *a: theirs(library, *a)))
        }
        repeats = max(1, 200 // n)  # short, so that a busy machine leaves some of them alone
        best = {(name, i): np.inf for name in calls for i in (0, 1)}
        for _ in range(args.rounds):
            for name, pair in calls.items():
                for i, call in enumerate(pair):
                    best[name, i] = min(best[name, i], seconds(call, repeats))
        one = {name: (best[name, 1] - best[name, 0]) / (MANY - FEW) * 1e9 for name in calls}
        ratio = one["ours"] / one["C++"]
        found[str(n)] = {"ours_ns": one["ours"], "native_ns": one["C++"], "ratio": ratio}
        rows.append([f"{n} joints", f"{one['ours']:.0f}", f"{one['C++']:.0f}", f"{ratio:.2f}"])
    held = [
        (f"{n} joints: at most {BARS[n]} times C++", found[str(n)]["ratio"] <= BARS[n])
        for n in args.joints
        if n in BARS
    ]
    text, all_held = verdicts(held)
    head = ["an iteration, ns", "Synovia", "C++ -O3 -march=native", "ratio"]
    save(
        "fabrik_native", "An iteration of FABRIK beside native code", {"rows": found, "all_held": all_held},
        f"{table(head, rows)}\n\n{text}", where,
    )  # fmt: skip
    return 0 if all_held else 1


if __name__ == "__main__":
    sys.exit(main())
