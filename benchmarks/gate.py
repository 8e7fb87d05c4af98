"""Has a kernel become slower? Its CPU time in units of a fixed reference loop, against the ratios that are committed.

    python benchmarks/gate.py            # exits 1 if a kernel is slower than its baseline by more than the tolerance
    python benchmarks/gate.py --update   # writes the baselines of this processor

Reference and kernels take short turns, and each one's fastest turn counts, in CPU time of the thread: other work on the
machine can only slow a turn down, not make the fastest one faster. A kernel that seems slower has more turns, in memory
of another place, until it does not or all are spent: what stays slow is. Baselines hold for one kind of processor, as
the compiler tells them apart: a maker's name covers several.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import llvmlite.binding
import numba
import numpy as np
from chain import chain, points
from common import machine, table

import synovia as sy

BASELINES = Path(__file__).parent / "baselines.json"
TOLERANCE = 0.25  # two runs on a busy machine differed by 9 %
AGAIN = 12  # times a kernel that seems slower is measured once more


def processor() -> str:
    """Return the kind of processor."""
    return f"{machine()['cpu']}, {llvmlite.binding.get_host_cpu_name()}"


@numba.njit
def reference(n):
    """Square roots that wait for each other, and products that do not."""
    x, y = 1.0, 0.0
    for i in range(n):
        x = np.sqrt(x + 1.5)
        y += x * i
    return y


def kernels() -> dict[str, object]:
    """Return calls of a fraction of a millisecond to a few."""
    arm, person = sy.bundled("arm7"), sy.bundled("humanoid")
    poses = np.stack([arm.random_pose(i).transform("tool") for i in range(64)])
    hands = np.stack([person.random_pose(i).position("left_hand") for i in range(16)])
    to_pose = sy.IK(arm, sy.PoseGoal("tool"), tolerance=(1e-6, 1e-6))
    to_hand = sy.IK(person, sy.PositionGoal("left_hand"))
    ten, hundred = (sy.IK(chain(n), sy.PositionGoal(n), sy.Fabrik()) for n in (10, 100))
    newton = sy.IK(chain(100), sy.PositionGoal(100))
    many, some = points(320), points(16)
    return {
        "arm, lm": lambda: to_pose.solve_many({"tool": poses}, threads=1),
        "arm, lm in lanes": lambda: to_pose.solve_many({"tool": poses}, threads=1, simd=True),
        "humanoid, lm": lambda: to_hand.solve_many({"left_hand": hands}, threads=1),
        "chain of 10, fabrik": lambda: ten.solve_many({10: many}, threads=1),
        "chain of 10, fabrik in lanes": lambda: ten.solve_many({10: many}, threads=1, simd=True),
        "chain of 100, fabrik": lambda: hundred.solve_many({100: some}, threads=1),
        "chain of 100, lm": lambda: newton.solve_many({100: some}, threads=1),
    }


def ratios(rounds: int, most: dict[str, float]) -> dict[str, float]:
    """Return each kernel's time in units of the reference; one above its ratio in ``most`` is measured again."""
    best: dict[str, float] = {}
    left, now = None, {}
    for _ in range(1 + AGAIN):
        calls = kernels()
        calls = {"reference": lambda: reference(50_000), **{name: calls[name] for name in left or calls}}
        for call in calls.values():
            call()
        for _ in range(rounds):
            for name, call in calls.items():
                began = time.thread_time()
                call()
                best[name] = min(best.get(name, np.inf), time.thread_time() - began)
        now = {name: round(value / best["reference"], 3) for name, value in best.items() if name != "reference"}
        left = [name for name, value in now.items() if value > most.get(name, np.inf)]
        if not left:
            break
    return now


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="a part of the baseline")
    args = parser.parse_args()
    cpu = processor()
    known = json.loads(BASELINES.read_text(encoding="utf-8")) if BASELINES.exists() else {}
    most = {} if args.update else {name: (1 + args.tolerance) * value for name, value in known.get(cpu, {}).items()}
    now = ratios(args.rounds, most)
    if args.update:
        BASELINES.write_text(json.dumps({**known, cpu: now}, indent=2) + "\n", encoding="utf-8")
    before = known.get(cpu, now)
    rows = [
        [name, before.get(name, value), value, f"{value / before.get(name, value):.2f}"] for name, value in now.items()
    ]
    print(table(["in units of the reference", "baseline", "now", "ratio"], rows))
    if cpu not in known and not args.update:
        print(f"no baselines for {cpu}: run with --update")
        return 0
    slower = [name for name, value in now.items() if value > (1 + args.tolerance) * before.get(name, value)]
    print(f"slower by more than {args.tolerance:.0%}: {', '.join(slower) or 'none'}")
    if slower and not args.update:
        print(
            "Find the commit (git bisect run python benchmarks/gate.py); if it is worth its price, measure on an idle "
            "machine of this kind with --update, and say in the commit why."
        )
    return 1 if slower and not args.update else 0


if __name__ == "__main__":
    sys.exit(main())
