"""Random problems against the promises on every answer: inside the limits, finite, honest status, same bits in a batch.

    python benchmarks/soak.py --solves 100000 --seed 1 --models all
    python benchmarks/soak.py --solves 1000000 --wide

The problems are those of ``tests/random_problems.py``. Block k of a seed is always the same problems, so a failure
comes back with ``--seed S --block K``. ``--wide`` takes every solver and every kind of goal, models from 1e-12 to 1e12
of their size, and limits that leave next to nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from common import data_folder, machine, table

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np

import synovia as sy
from random_problems import BLOCK, DEAL, check, make_case, make_wide_case, odd, reproducer, solvers
from synovia.errors import SynoviaError
from synovia.solver import solvers as every_solver

FAILURES = ("limit", "false reached", "not finite", "false unreachable", "not unit", "batch differs", "error")
SHOWN = 20  # failures with a full reproducer


def models(which: str, folder: Path) -> list[tuple[str, sy.Skeleton]]:
    """Return the skeletons, each with the expression that makes it."""
    out = [(f"sy.bundled({name!r})", sy.bundled(name)) for name in sy.skeletons.bundled_names()]
    out.append(("__import__('random_problems').odd()", odd()))
    if which == "bundled":
        return out
    if not folder.is_dir():
        sys.exit(f"no folder {folder}: give --data, or --models bundled")
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in (".urdf", ".xml", ".gltf", ".glb", ".bvh"):
            try:
                out.append((f"sy.load_skeleton({str(path)!r})", sy.load_skeleton(path)))
            except SynoviaError as error:
                print(f"left out: {path.name}: {error}", file=sys.stderr)
    return out


def compile_kernels() -> float:
    """Solve one reached and one missed problem with every kernel, so that compiling is not counted; return seconds."""
    began = time.perf_counter()
    for model, joint in (("arm7", "tool"), ("humanoid", "left_hand")):
        for name in solvers:
            sy.IK(sy.bundled(model), sy.PositionGoal(joint), name).solve_many({joint: np.array([[0.3] * 3, [9.0] * 3])})
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--solves", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", choices=("bundled", "all"), default="bundled")
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of models for --models all")
    parser.add_argument("--block", type=int, help="run only this block")
    parser.add_argument("--wide", action="store_true", help="all goals, sizes from 1e-12 to 1e12, narrow limits")
    parser.add_argument("--solvers", nargs="+", choices=sorted(every_solver), help="only these, with --wide")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    known = models(args.models, args.data)
    blocks = range(-(-args.solves // BLOCK)) if args.block is None else [args.block]
    deal = (args.solvers or list(every_solver)) if args.wide else DEAL
    counts: dict[str, Counter[str]] = {name: Counter() for name in dict.fromkeys(deal)}
    failed: Counter[str] = Counter()
    slowest = (0.0, "")
    shown = 0
    compiling = 0.0 if args.wide else compile_kernels()
    began = said = time.perf_counter()
    for k in blocks:
        name = deal[k % len(deal)]
        case = None
        again = f"--seed {args.seed} --models {args.models} --block {k}"
        if args.wide:
            again += " --wide" + (f" --solvers {' '.join(args.solvers)}" if args.solvers else "")
        try:
            case = make_wide_case(k, args.seed, known, deal) if args.wide else make_case(k, args.seed, known)
            before = time.perf_counter()
            answers = case.ik.solve_many(case.targets, case.starts, threads=args.threads)
            took = time.perf_counter() - before
            slowest = max(slowest, (took, f"{took:.1f} s for {again}: {name}, {case.model}"))
            broken = check(case, answers)
        except Exception:  # noqa: BLE001 - whatever comes out of random problems is a finding
            failed["error"] += 1
            print(
                f"ERROR in {again}: {name}, {case.model if case else 'while building'}\n{traceback.format_exc()}",
                flush=True,
            )
            continue
        tally = counts[name]
        tally.update(sy.Status(int(s)).name for s in answers.status)
        tally["seconds"] += took
        tally["made"] += int(case.reachable.sum())
        tally["made, reached"] += int((case.reachable & answers.reached).sum())
        for failure, rows in broken.items():
            failed[failure] += len(rows)
            for b in rows:
                shown += 1
                print(f"FAILED: {failure}, row {b} of {again}", flush=True)
                if shown <= SHOWN:
                    print(f"answered {answers[int(b)]}\n{reproducer(case, int(b))}", flush=True)
        if time.perf_counter() - said > 20:
            said = time.perf_counter()
            print(
                f"{(k + 1) * BLOCK} solves, {said - began:.0f} s, {failed.total()} failures",
                file=sys.stderr,
                flush=True,
            )
    total, wall = len(blocks) * BLOCK, time.perf_counter() - began
    states = [status.name for status in sy.Status]
    rows = [
        [name, sum(c[s] for s in states), *(c[s] for s in states), f"{c['made, reached'] / max(c['made'], 1):.1%}",
         f"{1e6 * c['seconds'] / max(sum(c[s] for s in states), 1):.0f}"]
        for name, c in counts.items()
    ]  # fmt: skip
    print(table(["solver", "solves", *states, "of reachable", "µs a solve"], rows))
    print()
    print(table(["failure", "count"], [[name, failed[name]] for name in FAILURES]))
    where = machine()
    print(
        f"\n{total} solves on {len(known)} models, seed {args.seed}, {wall:.1f} s, {total / wall:.0f} a second on"
        f" {args.threads} threads (load now {where['load_before']}); compiled in {compiling:.1f} s;"
        f" slowest block {slowest[1]}"
    )
    return 1 if failed.total() else 0


if __name__ == "__main__":
    sys.exit(main())
