"""FABRIK on many chains in lanes beside C++ lanes, in the same run: an iteration, and whole answers.

    python benchmarks/lanes_native.py

The C++ loop moves points and nothing else, as many iterations as our answers took on average. Ours checks targets,
stops each chain when it has arrived, turns points into joint values, and verifies them by forward kinematics. CPU time
of the thread; ways take turns, the best round of each counts.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from functools import partial

import numpy as np
from chain import chain, points
from common import machine, save, table, verdicts
from fabrik_native import FEW, MANY, Doubles, Endless, native

import synovia as sy

TOLERANCE = 1e-4  # of the chain's length
BAR = 2.0
WAYS = {"double": True, "single": "single"}


def pointers(*arrays: np.ndarray) -> list[object]:
    return [a.ctypes.data_as(Doubles) for a in arrays]


def theirs(library: ctypes.CDLL, precision: str, n: int, targets: np.ndarray, steps: int):
    """Return a call of the C++ lanes that takes so many iterations of all chains."""
    start = chain(n).rest_pose().positions.copy()
    lengths = np.linalg.norm(np.diff(start, axis=0), axis=1)
    tips = np.empty_like(targets)
    run = getattr(library, f"lanes_{precision}")
    arrays = (start, lengths, targets, tips)
    a, b, c, d = pointers(*arrays)

    def call(kept=arrays) -> None:
        run(a, b, n, c, len(targets), steps, d)

    return call


def ours(precision: str, n: int, targets: np.ndarray, steps: int):
    """Return a call of our lanes in which every chain takes so many iterations and none arrives."""
    ik = sy.IK(chain(n), sy.PositionGoal(n), Endless(max_steps=steps, attempts=1), tolerance=(1e-200, 1e-3))
    problem = ik.problem
    kernel = ik.solver.simd_kernel(problem.reduced)
    rows = problem.writer.table_of_many({n: targets})
    out = np.empty((len(targets), problem.row_shape[1]))
    scratch = np.zeros(problem.scratch_size)
    room = np.empty(ik.solver.simd_size(problem.reduced), np.float32 if precision == "single" else np.float64)

    def call() -> None:
        if kernel(problem.ints, problem.floats, rows, problem.rest, out, scratch, room) != len(targets):
            raise SystemExit("a chain arrived")

    return call


def best_of(calls: dict[object, object], rounds: int) -> dict[object, float]:
    """Return the CPU time of each call, in turns."""
    best = dict.fromkeys(calls, np.inf)
    for call in calls.values():
        call()
    for _ in range(rounds):
        for key, call in calls.items():
            began = time.thread_time()
            call()
            best[key] = min(best[key], time.thread_time() - began)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--joints", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--compiler", default="g++")
    args = parser.parse_args()
    where = machine()
    library = native(args.compiler, "lanes", "-fno-math-errno")
    rows: list[list[object]] = []
    found: dict[str, dict[str, float]] = {}
    bars: list[tuple[str, bool]] = []
    for n in args.joints:
        count = max(32, 20_480 // n // 32 * 32)
        targets = points(count)
        far = targets / np.linalg.norm(targets, axis=1, keepdims=True) * 0.9995  # FABRIK goes on and on
        calls: dict[object, object] = {}
        steps = {}
        for precision, lanes in WAYS.items():
            ik = sy.IK(chain(n), sy.PositionGoal(n), sy.Fabrik(), tolerance=(TOLERANCE, 1e-3))
            many = ik.solve_many({n: targets}, simd=lanes, threads=1)
            steps[precision] = max(1, round(float(many._rows[:, 1].mean())))
            calls[precision, "ours", "all"] = partial(ik.solve_many, {n: targets}, simd=lanes, threads=1)
            calls[precision, "C++", "all"] = theirs(library, precision, n, targets, steps[precision])
            for most in (FEW, MANY):
                calls[precision, "ours", most] = ours(precision, n, far, most)
                calls[precision, "C++", most] = theirs(library, precision, n, far, most)
        best = best_of(calls, args.rounds)
        for precision in WAYS:
            one = {
                who: (best[precision, who, MANY] - best[precision, who, FEW]) / (MANY - FEW) / count * 1e9
                for who in ("ours", "C++")
            }
            whole = {who: best[precision, who, "all"] / count * 1e6 for who in ("ours", "C++")}
            ratio, of_whole = one["ours"] / one["C++"], whole["ours"] / whole["C++"]
            found[f"{n} {precision}"] = {
                "iteration_ns": one["ours"], "native_iteration_ns": one["C++"], "iterations": steps[precision],
                "answer_us": whole["ours"], "native_points_us": whole["C++"],
            }  # fmt: skip
            rows.append(
                [f"{n} joints, {precision}", f"{one['ours']:.1f}", f"{one['C++']:.1f}", f"{ratio:.2f}",
                 steps[precision], f"{whole['ours']:.2f}", f"{whole['C++']:.2f}", f"{of_whole:.2f}"]
            )  # fmt: skip
            bars.append(
                (f"{n} joints, {precision}: an iteration at most {BAR:g} times C++ ({ratio:.2f})", ratio <= BAR)
            )
    lines, held = verdicts(bars)
    head = ["one chain", "iteration, ns", "C++, ns", "ratio", "iterations", "answer, µs", "C++ points, µs", "ratio "]
    text = f"{table(head, rows)}\n\n{lines}"
    save("lanes_native", "FABRIK in lanes beside native lanes", {"rows": found, "all_held": held}, text, where)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
