"""Many targets of a Panda arm at once: good answers a second, one by one and in lanes, on one core and on all.

    python benchmarks/bulk.py --peer /path/to/venv/bin/python

Every target is cold: all start from one neutral pose, keep the limits and may restart. Good means reached, verified in
double precision. Ways take turns; the best round of each counts. The control is a loop of arithmetic on as many
threads, so that a busy machine shows: threads can gain no more than it does. CPU time is that of the whole process.
With ``--peer`` roboticstoolbox's ik_LM has its turn too, one by one to 1e-6 (see ``panda.py``).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
from common import machine, save, table, verdicts
from panda import NEUTRAL, TIP, Arm, Rival, write_panda

import synovia as sy

FINE, COARSE = (1e-6, 1e-6), (1e-4, 1e-3)
LANES, SINGLE, PEER = "lanes, 1e-6 m and rad", "lanes in single precision, 1e-4 m and 1e-3 rad", "roboticstoolbox ik_LM"


@numba.njit(nogil=True)
def arithmetic(n):
    x = 0.5
    for _ in range(n):
        x = 3.7 * x * (1.0 - x)
    return x


def control(threads: int) -> None:
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(arithmetic, [8_000_000 // threads] * threads))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--peer", type=Path, help="python of an environment with roboticstoolbox-python")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return compare(args, Path(folder))


def compare(args: argparse.Namespace, folder: Path) -> int:
    """Measure, and write what came out; return 1 if a bar is missed."""
    where = machine()
    urdf = write_panda(folder / "panda.urdf")
    arm, body = Arm(urdf), sy.load_skeleton(urdf)
    rng = np.random.default_rng(0)
    poses = arm.forward(rng.uniform(arm.low, arm.high, (args.targets, len(NEUTRAL))))
    targets = {TIP: poses}
    start = body.rest_pose().with_values(dict(zip(arm.names, NEUTRAL.tolist(), strict=True)))
    cores = os.cpu_count() or 1
    fine, coarse = (sy.IK(body, sy.PoseGoal(TIP), tolerance=tolerance) for tolerance in (FINE, COARSE))
    closed = sy.IK(body, sy.PoseGoal(TIP), "segments", tolerance=FINE)
    ways = {
        (name, threads): (ik, lanes)
        for name, ik, lanes in (
            ("one by one, 1e-6 m and rad", fine, False),
            ("one by one, closed form", closed, False),
            (LANES, fine, True),
            ("lanes, 1e-4 m and 1e-3 rad", coarse, True),
            (SINGLE, coarse, "single"),
        )
        for threads in sorted({1, cores})
    }
    best: dict[tuple[str, int], tuple[float, float, float]] = {}

    def note(key: tuple[str, int], took: float, cpu: float, good: float) -> None:
        wall, spent, _ = best.get(key, (np.inf, np.inf, 0.0))
        best[key] = (min(wall, took), min(spent, cpu), good)

    controls = dict.fromkeys(sorted({1, cores}), np.inf)
    control(cores)
    rival = Rival(args.peer, urdf, folder, poses) if args.peer else None
    for k in range(args.rounds + 1):  # the first one compiles
        for key, (ik, lanes) in ways.items():
            began, used = time.perf_counter(), time.process_time()
            many = ik.solve_many(targets, start, threads=key[1], simd=lanes)
            note(key, time.perf_counter() - began, time.process_time() - used, float(many.reached.sum()))
        if rival and k < 3:  # it takes as long as all the others together
            answer = rival.solve(slice(0, args.targets))
            good = arm.good(answer["answers"], poses).sum()
            note((PEER, 1), answer["took"].sum() * 1e-9, float(answer["cpu"]), float(good))
        for threads in controls:
            began = time.perf_counter()
            control(threads)
            controls[threads] = min(controls[threads], time.perf_counter() - began)
    if rival:
        rival.close()
    rows: list[list[object]] = []
    found = []
    rate: dict[str, float] = {}
    for (name, threads), (wall, cpu, good) in best.items():
        gain = best[name, 1][0] / wall
        possible = controls[1] / controls[threads]
        rate.setdefault(name, good / cpu)
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
    bars = []
    for name, factor in ((LANES, 20), (SINGLE, 40)) if args.peer else ():
        ratio = rate[name] / rate[PEER]
        bars.append((f"{name}: {factor} times the peer's good answers a CPU second ({ratio:.0f})", ratio >= factor))
    what = f"Panda, {args.targets} random reachable poses at once"
    lines, held = verdicts(bars)
    save("bulk", what, {"targets": args.targets, "rows": found}, f"{table(head, rows)}\n\n{lines}".rstrip(), where)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
