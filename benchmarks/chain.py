"""Chains of ball joints: FABRIK, CCD and Levenberg-Marquardt to positions, at an everyday and a tight tolerance.

    python benchmarks/chain.py
    npm install --prefix FOLDER three closed-chain-ik && python benchmarks/chain.py --node FOLDER

With ``--node`` the solvers of three.js and closed-chain-ik do the same problems before and after ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from pathlib import Path

import numpy as np
from common import machine, save, table

import synovia as sy

SOLVERS = ("fabrik", "ccd", "lm")
TOLERANCES = (1e-2, 1e-6)  # of the chain's length


def chain(n: int) -> sy.Skeleton:
    """Return n bones of total length 1 on a gentle arc, so that the start is not singular."""
    a, b = np.linspace(0.0, 0.6, n), np.linspace(0.0, 0.3, n)
    ways = np.column_stack([np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)])
    return sy.Skeleton.chain(np.vstack([np.zeros(3), np.cumsum(ways / n, axis=0)]))


def points(count: int) -> np.ndarray:
    """Return targets in all directions, 0.1 to 0.95 of the length away."""
    rng = np.random.default_rng(6)
    way = rng.normal(size=(count, 3))
    return way / np.linalg.norm(way, axis=1, keepdims=True) * rng.uniform(0.1, 0.95, (count, 1))


def run(ik: sy.IK, tip: str, targets: np.ndarray, rounds: int, budget: float) -> dict[str, float]:
    """Return success, times (each target's best of the rounds) and steps, of as many targets as the budget allows."""
    ik.solve({tip: targets[0]})
    best = np.full(len(targets), np.inf)
    answers: list[sy.Solution] = []
    began = time.perf_counter()
    for r in range(rounds):
        for i, target in enumerate(targets):
            if time.perf_counter() - began > budget:
                break
            before = time.perf_counter_ns()
            answer = ik.solve({tip: target})
            best[i] = min(best[i], (time.perf_counter_ns() - before) / 1000)
            if r == 0:
                answers.append(answer)
    best = best[: len(answers)]
    away = [np.linalg.norm(a.pose.position(tip) - t) for a, t in zip(answers, targets, strict=False)]
    steps = [answer.steps for answer in answers]
    return {
        "targets": len(answers),
        "success": float(np.mean(np.array(away) <= ik.tolerance[0] * (1 + 1e-9))),
        "median_us": float(np.median(best)),
        "p99_us": float(np.percentile(best, 99)),
        "median_steps": float(np.median(steps)),
        "mean_steps": float(np.mean(steps)),
    }


def run_node(folder: Path, body: sy.Skeleton, targets: np.ndarray, tolerance: float, budget: float) -> dict[str, dict]:
    """Return the same for the JavaScript libraries that a folder holds, by name."""
    task = {
        "points": [body.rest_pose().position(joint).tolist() for joint in body.joint_names],
        "targets": targets.tolist(),
        "tolerance": tolerance,
        "rounds": 5,
        "budget": budget,
    }
    script = Path(__file__).parent / "peers" / "chain.mjs"
    ran = subprocess.run(
        ["node", str(script), str(folder)], input=json.dumps(task), capture_output=True, text=True, check=True
    )
    return {row["name"]: row for row in json.loads(ran.stdout)}


def best_of(one: dict[str, dict], other: dict[str, dict]) -> dict[str, dict[str, float]]:
    """Return the statistics of two runs of the JavaScript libraries, the better time of each target."""
    out = {}
    for name, row in one.items():
        count = min(len(row["best"]), len(other[name]["best"]))
        best = np.minimum(row["best"][:count], other[name]["best"][:count])
        out[name] = {
            "targets": count,
            "success": float(np.mean(row["good"][:count])),
            "median_us": float(np.median(best)),
            "p99_us": float(np.percentile(best, 99)),
            "median_steps": float(np.median(row["steps"][:count])),
            "mean_steps": float(np.mean(row["steps"][:count])),
        }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--joints", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--targets", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=8.0, help="seconds for one row of the table")
    parser.add_argument("--node", type=Path, help="folder into which npm installed three and closed-chain-ik")
    args = parser.parse_args()
    where = machine()
    rows: list[list[object]] = []
    found: list[dict[str, object]] = []
    targets = points(args.targets)
    for n in args.joints:
        body = chain(n)
        tip = body.joint_names[-1]
        for tolerance in TOLERANCES:
            before = run_node(args.node, body, targets, tolerance, args.budget) if args.node and n < 1000 else {}
            results = {}
            for name in SOLVERS:
                ik = sy.IK(body, sy.PositionGoal(tip), name, tolerance=(tolerance, 1e-3))
                results[name] = run(ik, tip, targets, args.rounds, args.budget)
            if before:
                results |= best_of(before, run_node(args.node, body, targets, tolerance, args.budget))
            for name, r in results.items():
                found.append({"joints": n, "tolerance": tolerance, "solver": name, **r})
                rows.append(
                    [f"{n} joints, {tolerance:g}", name, r["targets"], f"{r['success']:.1%}", f"{r['median_us']:.1f}",
                     f"{r['p99_us']:.1f}", f"{r['median_steps']:.0f}", f"{r['mean_steps']:.1f}"]
                )  # fmt: skip
                print(*rows[-1], flush=True)
    head = ["chain, tolerance", "solver", "targets", "reached", "median µs", "p99 µs", "median steps", "mean steps"]
    save("chain", "Chains of ball joints, one call of IK.solve", {"rows": found}, table(head, rows), where)


if __name__ == "__main__":
    main()
