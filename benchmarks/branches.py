"""All branches of chains of six joints, against Newton's method from hundreds of starts.

    python benchmarks/branches.py
    python benchmarks/branches.py --poses 200 --each 20 --starts 800   # as the committed figures

Random chains of hinges, and named arms: UR5e as built and calibrated, JACO2, Panda with each joint locked, arms with a
slide. Targets are those of random poses, all limits are ±π (slides: half a unit). A branch *counts* if Newton's method
finds it; whole turns do not count. *Short*: lists that claim to be complete and lack a branch; *wrong*: branches whose
own kinematics (NumPy, in this file) miss the target by more than 1e-9. Times are those of calls from Python.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

import numpy as np
from common import machine, save, table, verdicts
from numba import njit

import synovia as sy
from synovia.comparison.arms import ARMS, Arm, arm_skeleton, random_screws

ALIKE = 1e-5  # radians, lengths: poses nearer than this are one
EXACT = 1e-9
CALLS = 5  # of which the median counts
EXCEPTED = "JACO2"


@njit(cache=True, error_model="numpy")
def times(A, B, out):
    """Write the product of two transforms."""
    for i in range(3):
        for j in range(4):
            out[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j] + (A[i, 3] if j == 3 else 0.0)


@njit(cache=True, error_model="numpy")
def kinematics(fixed, slides, q, J):
    """Return the transform of the tool, and write its Jacobian (spatial, at the origin of the world)."""
    T, after, step = fixed[0].copy(), np.eye(4), np.eye(4)
    for i in range(6):
        z, o = T[:, 2], T[:, 3]
        J[:, i] = 0.0
        for k in range(3):
            if slides[i]:
                J[k, i] = z[k]
            else:
                J[k, i] = o[(k + 1) % 3] * z[(k + 2) % 3] - o[(k + 2) % 3] * z[(k + 1) % 3]
                J[k + 3, i] = z[k]
        c, s = (1.0, 0.0) if slides[i] else (math.cos(q[i]), math.sin(q[i]))
        step[0, 0], step[0, 1], step[1, 0], step[1, 1] = c, -s, s, c
        step[2, 3] = q[i] if slides[i] else 0.0
        times(T, step, after)
        times(after, fixed[i + 1], T)
    return T


@njit(cache=True, error_model="numpy")
def solve(J, e):
    """Write the solution of J x = e to e; return whether J is regular. J is overwritten."""
    for k in range(6):
        p = k
        for i in range(k + 1, 6):
            p = i if abs(J[i, k]) > abs(J[p, k]) else p
        if abs(J[p, k]) < 1e-12:
            return False
        for j in range(6):
            J[k, j], J[p, j] = J[p, j], J[k, j]
        e[k], e[p] = e[p], e[k]
        for i in range(k + 1, 6):
            t = J[i, k] / J[k, k]
            for j in range(k, 6):
                J[i, j] -= t * J[k, j]
            e[i] -= t * e[k]
    for i in range(5, -1, -1):
        for j in range(i + 1, 6):
            e[i] -= J[i, j] * e[j]
        e[i] /= J[i, i]
    return True


@njit(cache=True, error_model="numpy")
def newton(fixed, slides, target, starts, found):
    """Write the different poses that Newton's method finds from some starts; return how many."""
    J, e, R = np.zeros((6, 6)), np.zeros(6), np.zeros((3, 3))
    count = 0
    for k in range(len(starts)):
        q = starts[k].copy()
        good = False
        for _ in range(60):
            T = kinematics(fixed, slides, q, J)
            for i in range(3):
                for j in range(3):
                    R[i, j] = target[i, 0] * T[j, 0] + target[i, 1] * T[j, 1] + target[i, 2] * T[j, 2]
            for i in range(3):
                e[i] = target[i, 3] - R[i, 0] * T[0, 3] - R[i, 1] * T[1, 3] - R[i, 2] * T[2, 3]
                e[i + 3] = 0.5 * (R[(i + 2) % 3, (i + 1) % 3] - R[(i + 1) % 3, (i + 2) % 3])
            size = np.sqrt((e * e).sum())
            if R[0, 0] + R[1, 1] + R[2, 2] > 2.9 and size < 1e-11:
                good = True
                break
            if not solve(J, e):
                break
            q += e * min(1.0, 0.5 / np.abs(e).max())
        if not good:
            continue
        for i in range(6):
            if not slides[i]:
                q[i] -= 2 * math.pi * math.floor(q[i] / (2 * math.pi) + 0.5)
            elif abs(q[i]) > 0.5:
                good = False
        for j in range(count):
            away = 0.0
            for i in range(6):
                d = abs(q[i] - found[j, i])
                away = max(away, d if slides[i] else min(d, 2 * math.pi - d))
            good = good and away > ALIKE
        if good and count < len(found):
            found[count] = q
            count += 1
    return count


def study(arm: Arm, poses: int, starts: int, seed: int) -> dict[str, float]:
    """Return the counts and times of one kind of arm."""
    rng = np.random.default_rng(seed)
    kinds = np.array([i in arm.slides for i in range(6)])
    out = dict.fromkeys(("poses", "branches", "found", "certified", "short", "wrong"), 0.0)
    took, built, J = [], [], np.zeros((6, 6))
    for k in range(poses):
        if k % arm.each == 0:
            fixed = np.ascontiguousarray(arm.make(rng))
            ik = sy.IK(arm_skeleton(fixed, arm.slides), sy.PoseGoal("tool"))
            begun = time.process_time()
            ik.branches(np.eye(4))
            built.append(time.process_time() - begun)
        q = np.where(kinds, rng.uniform(-0.5, 0.5, 6), rng.uniform(-math.pi, math.pi, 6))
        target = kinematics(fixed, kinds, q, J)
        calls = []
        for _ in range(CALLS):
            begun = time.perf_counter_ns()
            listed = ik.branches(target)
            calls.append((time.perf_counter_ns() - begun) / 1000)
        took.append(float(np.median(calls)))
        others = np.empty((64, 6))
        begins = rng.uniform(-math.pi, math.pi, (starts, 6)) * np.where(kinds, 0.5 / math.pi, 1.0)
        others = others[: newton(fixed, kinds, target, begins, others)]
        answers = listed.q
        away = np.abs(answers[None] - others[:, None])
        away = np.where(kinds, away, np.minimum(away, 2 * math.pi - away)).max(axis=2, initial=0.0)
        known = int((away.min(axis=1, initial=np.inf) < 10 * ALIKE).sum())
        out["poses"] += 1
        out["branches"] += len(others)
        out["found"] += known
        out["certified"] += listed.complete
        out["short"] += listed.complete and known < len(others)
        out["wrong"] += sum(np.abs(kinematics(fixed, kinds, one, J) - target).max() > EXACT for one in answers)
    p50, p99 = np.percentile(took, [50, 99])
    return out | {"median_us": p50, "p99_us": p99, "build_s": float(np.median(built)), "times": took}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--poses", type=int, default=40, help="of each named arm")
    parser.add_argument("--chains", type=int, default=50, help="random chains")
    parser.add_argument("--each", type=int, default=0, help="poses of each random chain; as --poses by default")
    parser.add_argument("--starts", type=int, default=400, help="of Newton's method")
    args = parser.parse_args()
    about = machine()
    each = args.each or args.poses
    kinds = {f"{args.chains} random chains": Arm(random_screws, each), **ARMS}
    found = {}
    for name, arm in kinds.items():
        count = args.poses if name in ARMS else args.chains * each
        found[name] = study(arm, count, args.starts, seed=1)
        print(name, {key: value for key, value in found[name].items() if key != "times"}, file=sys.stderr, flush=True)
    rows = [
        [
            name,
            f"{one['found']:.0f} / {one['branches']:.0f}",
            f"{one['certified'] / one['poses']:.1%}",
            f"{one['short']:.0f}",
            f"{one['wrong']:.0f}",
            f"{one['median_us']:.0f}",
            f"{one['p99_us']:.0f}",
            f"{1000 * one['build_s']:.0f}",
        ]
        for name, one in found.items()
    ]
    head = ["arm", "found / all", "proved complete", "short", "wrong", "µs, median", "99 %", "first call, ms"]
    times = np.concatenate([one.pop("times") for one in found.values()])
    usual = [one for name, one in found.items() if name != EXCEPTED]
    least = min(one["certified"] / one["poses"] for one in usual)
    share = sum(one["found"] for one in usual) / sum(one["branches"] for one in usual)
    hard = found[EXCEPTED]
    text, held = verdicts(
        [
            (f"at least 99.9 % of the branches: {share:.2%}", share >= 0.999),
            (
                f"{EXCEPTED}: at least 99 %: {hard['found'] / hard['branches']:.2%}",
                hard["found"] >= 0.99 * hard["branches"],
            ),
            (f"proved complete for 95 % of the poses of each arm: {least:.1%}", least >= 0.95),
            ("no list is short that claims to be complete", not any(one["short"] for one in found.values())),
            ("no branch is wrong", not any(one["wrong"] for one in found.values())),
            (f"median at most 70 µs: {np.median(times):.0f}", np.median(times) <= 70),
            ("slowest arm at most 150 µs", max(one["median_us"] for one in usual) <= 150),
            (f"99 % at most 500 µs: {np.percentile(times, 99):.0f}", np.percentile(times, 99) <= 500),
        ]
    )
    result = {"poses": args.poses, "chains": args.chains, "each": each, "starts": args.starts, "arms": found}
    save("branches", "All branches of chains of six joints", result, f"{table(head, rows)}\n\n{text}", about)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
