"""Many targets of a Panda arm at once: good answers a second, one by one and in lanes, on one core and on all.

    python benchmarks/bulk.py

Every target is cold: all start from one neutral pose, keep the limits and may restart. Good means reached, verified in
double precision. Ways take turns; the best round of each counts. The control is a loop of arithmetic on as many
threads, so that a busy machine shows: threads can gain no more than it does. CPU time is that of the whole process.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from common import data_folder, machine, save, table
from panda import NEUTRAL, TIP, Arm

import synovia as sy

FINE, COARSE = (1e-6, 1e-6), (1e-4, 1e-3)


@numba.njit(nogil=True)
def arithmetic(n):
    x = 0.5
    for _ in range(n):
        x = 3.7 * x * (1.0 - x)
    return x


def control(threads: int) -> None:
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(arithmetic, [8_000_000 // threads] * threads))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    where = machine()
    urdf = data_folder() / "robot" / "panda.urdf"
    arm, body = Arm(urdf), sy.load_skeleton(urdf)
    rng = np.random.default_rng(0)
    targets = {TIP: arm.forward(rng.uniform(arm.low, arm.high, (args.targets, len(NEUTRAL))))}
    start = body.rest_pose().with_values(dict(zip(arm.names, NEUTRAL.tolist(), strict=True)))
    cores = os.cpu_count() or 1
    problems = {tolerance: sy.IK(body, sy.PoseGoal(TIP), tolerance=tolerance) for tolerance in (FINE, COARSE)}
    ways = {
        (name, threads): (problems[tolerance], lanes)
        for name, tolerance, lanes in (
            ("one by one, 1e-6 m and rad", FINE, False),
            ("lanes, 1e-6 m and rad", FINE, True),
            ("lanes, 1e-4 m and 1e-3 rad", COARSE, True),
            ("lanes in single precision, 1e-4 m and 1e-3 rad", COARSE, "single"),
        )
        for threads in sorted({1, cores})
    }
    best: dict[object, tuple[float, float, float]] = {}
    controls = dict.fromkeys(sorted({1, cores}), np.inf)
    control(cores)
    for _ in range(args.rounds + 1):  # the first one compiles
        for key, (ik, lanes) in ways.items():
            began, used = time.perf_counter(), time.process_time()
            many = ik.solve_many(targets, start, threads=key[1], lanes=lanes)
            took, cpu = time.perf_counter() - began, time.process_time() - used
            good = int(many.reached.sum())
            wall, spent, _ = best.get(key, (np.inf, np.inf, 0.0))
            best[key] = (min(wall, took), min(spent, cpu), good)
        for threads in controls:
            began = time.perf_counter()
            control(threads)
            controls[threads] = min(controls[threads], time.perf_counter() - began)
    rows: list[list[object]] = []
    found = []
    for (name, threads), (wall, cpu, good) in best.items():
        gain = best[name, 1][0] / wall
        possible = controls[1] / controls[threads]
        rows.append(
            [name, threads, f"{good / args.targets:.2%}", f"{good / wall:,.0f}", f"{good / cpu:,.0f}",
             f"{gain:.2f}", f"{gain / possible:.2f}"]
        )  # fmt: skip
        found.append({
            "way": name, "threads": threads, "good": good, "per_second": good / wall, "per_cpu_second": good / cpu,
            "gain_of_threads": gain, "gain_of_the_control": possible,
        })  # fmt: skip
    head = [
        "way",
        "threads",
        "good",
        "good a second",
        "good a CPU second",
        "gain of threads",
        "of what a plain loop gains",
    ]
    what = f"Panda, {args.targets} random reachable poses at once"
    save("bulk", what, {"targets": args.targets, "rows": found}, table(head, rows), where)


if __name__ == "__main__":
    main()
