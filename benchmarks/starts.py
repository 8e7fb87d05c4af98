"""Learned starts: cold calls with them and without, in turns, on four arms and two hands of a body.

    python benchmarks/starts.py --targets 20000 --before /path/to/earlier/bin/python

Targets are those of random poses within the limits, asked for to 1e-6 m and 1e-6 rad. Calls of both problems alternate
target by target, so that other load of the machine meets both. With ``--before``, the times without starts are those of
another checkout's environment: the calls themselves may have become faster since.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import machine, needed_data, save, table, verdicts

import synovia as sy
from synovia.model.pose import random_values, world_frames

FINE = (1e-6, 1e-6)
# URDF numbers of the xArm 7, as its maker publishes them: place, turn about x (right angles), lower and upper limit
XARM7 = [
    ((0.0, 0.0, 0.267), 0, -2 * np.pi, 2 * np.pi),
    ((0.0, 0.0, 0.0), -1, -2.059, 2.0944),
    ((0.0, -0.293, 0.0), 1, -2 * np.pi, 2 * np.pi),
    ((0.0525, 0.0, 0.0), 1, -0.19198, 3.927),
    ((0.0775, -0.3425, 0.0), 1, -2 * np.pi, 2 * np.pi),
    ((0.0, 0.0, 0.0), 1, -1.69297, np.pi),
    ((0.076, 0.097, 0.0), -1, -2 * np.pi, 2 * np.pi),
]
BEFORE = """
import sys, time
import numpy as np
import synovia as sy
path, tip, targets, out = sys.argv[1:]
arm = sy.load_skeleton(path)
ik = sy.IK(arm, sy.PoseGoal(tip), "lm", tolerance=(1e-6, 1e-6))
targets = [one.copy() for one in np.load(targets)]
seconds = np.full(len(targets), np.inf)
for _ in range(2):
    for k, one in enumerate(targets):
        begun = time.perf_counter()
        ik.solve(one)
        seconds[k] = min(seconds[k], time.perf_counter() - begun)
np.save(out, seconds)
"""


def xarm7() -> sy.Skeleton:
    """Return the xArm 7."""
    joints = []
    for k, (place, turns, low, high) in enumerate(XARM7):
        rest = np.eye(4)
        rest[:3, :3] = sy.Rotation.from_euler("x", 90 * turns, degrees=True).as_matrix()
        rest[:3, 3] = place
        limit = sy.Interval(low, high)
        joints.append(sy.Joint(f"joint{k + 1}", k - 1 if k else None, sy.Kind.HINGE, rest, (0.0, 0.0, 1.0), limit))
    return sy.Skeleton(joints, name="xarm7")


def arms(data: Path) -> dict[str, tuple[sy.Skeleton, str]]:
    """Return the arms with the joint of their goal."""
    return {
        "Panda": (sy.load_skeleton(data / "robot/panda.urdf"), "panda_hand_joint"),
        "UR5e": (sy.load_skeleton(data / "robot/ur5e_nomesh.xml"), "wrist_3"),
        "xArm7": (xarm7(), "joint7"),
        "SO-100": (sy.load_skeleton(data / "robot/so100.urdf"), "wrist_roll"),
    }


def reachable(skeleton: sy.Skeleton, joint: str, count: int) -> np.ndarray:
    """Return transforms (N, 4, 4) of a joint in random poses."""
    row = skeleton.joint_names.index(joint)
    frames = np.concatenate(
        [
            world_frames(skeleton, random_values(skeleton, min(5000, count - k), 90 + k))[:, row]
            for k in range(0, count, 5000)
        ]
    )
    out = np.tile(np.eye(4), (count, 1, 1))
    out[:, :3, :3], out[:, :3, 3] = frames[:, :9].reshape(-1, 3, 3), frames[:, 9:]
    return out


def in_turns(problems: list[sy.IK], targets: np.ndarray) -> tuple[np.ndarray, list[list[sy.Solution]]]:
    """Return the seconds of each call, (problems, N), the faster of two, and the solutions."""
    seconds = np.full((len(problems), len(targets)), np.inf)
    answers: list[list[sy.Solution]] = [[] for _ in problems]
    ones = [one.copy() for one in targets]
    for turn in range(2):
        for k, one in enumerate(ones):
            for p, ik in enumerate(problems):
                begun = time.perf_counter()
                answer = ik.solve(one)
                seconds[p, k] = min(seconds[p, k], time.perf_counter() - begun)
                if turn == 0:
                    answers[p].append(answer)
    return seconds, answers


def bulk(problems: list[sy.IK], targets: np.ndarray) -> list[float]:
    """Return the least seconds of a batch in lanes, of three in turns."""
    best = [np.inf for _ in problems]
    for _ in range(3):
        for p, ik in enumerate(problems):
            begun = time.perf_counter()
            ik.solve_many(targets, simd=True)
            best[p] = min(best[p], time.perf_counter() - begun)
    return best


def seconds_before(python: str, path: Path, joint: str, targets: np.ndarray) -> np.ndarray:
    """Return the seconds of each call in another environment."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/targets.npy", targets)
        words = [python, "-c", BEFORE, str(path), joint, f"{folder}/targets.npy", f"{folder}/out.npy"]
        subprocess.run(words, check=True)
        return np.load(f"{folder}/out.npy")


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", type=int, default=20_000)
    parser.add_argument("--before", help="Python of an environment with an earlier version")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    where, rows, bars = machine(), [], []
    folder = Path(tempfile.mkdtemp())
    for name, (skeleton, joint) in arms(needed_data()).items():
        if options.only.lower() not in name.lower():
            continue
        goal = sy.PoseGoal(joint)
        begun = time.perf_counter()
        starts = sy.learn_starts(skeleton, goal)
        learning = time.perf_counter() - begun
        starts.save(folder / f"{name}.npz")
        size = (folder / f"{name}.npz").stat().st_size
        loads = []
        for _ in range(5):
            begun = time.perf_counter()
            sy.formats.load_starts(folder / f"{name}.npz")
            loads.append(time.perf_counter() - begun)
        learned, plain = (sy.IK(skeleton, goal, "lm", tolerance=FINE, starts=one) for one in (starts, None))
        targets = reachable(skeleton, joint, options.targets)
        (new, old), (answers, others) = in_turns([learned, plain], targets)
        if options.before is not None:
            path = folder / f"{name}.toml"
            sy.formats.write_skeleton(skeleton, path)
            old = seconds_before(options.before, path, joint, targets)
        median, p99 = (float(np.percentile(new, q) / np.percentile(old, q)) for q in (50, 99))
        reached = float(np.mean([one.reached for one in answers]))
        first = float(np.mean([one.attempts == 1 and one.reached for one in answers]))
        outside = sum(bool((one.pose.inside != one.pose.values[None]).any()) for one in answers)
        far = targets[:500].copy()
        far[:, :3, 3] *= 2.0 * plain.reach / np.maximum(np.linalg.norm(far[:, :3, 3], axis=1), 1e-3)[:, None]
        (far_new, far_old), (a, b) = in_turns([learned, plain], far)
        same = all(x.status == y.status for x, y in zip(a, b, strict=True))
        unreached = float(np.median(far_new) / np.median(far_old))
        lanes = bulk([learned, plain], targets)
        steps = [float(np.median([one.steps for one in some])) for some in (others, answers)]
        rows.append([
            name, f"{1e6 * np.median(old):.1f}", f"{1e6 * np.median(new):.1f}", f"{median:.2f}", f"{p99:.2f}",
            f"{steps[0]:.0f} -> {steps[1]:.0f}", f"{100 * first:.2f}", f"{100 * reached:.3f}", outside,
            f"{unreached:.2f}", f"{lanes[1] / lanes[0]:.2f}", f"{learning:.0f}", f"{size / 1e6:.1f}",
            f"{1e3 * min(loads):.1f}",
        ])  # fmt: skip
        print(*rows[-1], sep=" | ", flush=True)
        bars += [
            (f"{name}: median of a cold call at most 0.65: {median:.2f}", median <= 0.65),
            (f"{name}: 99 % of calls at most 0.5: {p99:.2f}", p99 <= 0.5),
            (f"{name}: 99 % at the first attempt: {100 * first:.2f} %", first >= 0.99),
            (f"{name}: all reached, none outside limits", reached == 1.0 and outside == 0),
            (f"{name}: out of reach within 5 %, same status: {unreached:.2f}", unreached <= 1.05 and same),
            (f"{name}: batches in lanes 1.3 times: {lanes[1] / lanes[0]:.2f}", lanes[1] / lanes[0] >= 1.3),
            (f"{name}: learned in 60 s, 5 MB, loaded in 5 ms",
             learning <= 60 and size <= 5e6 and min(loads) <= 5e-3),
        ]  # fmt: skip
    lines, kept = verdicts(bars)
    head = ["arm", "cold us", "with starts us", "median", "99 %", "steps", "first attempt %", "reached %", "outside",
            "out of reach", "lanes", "learning s", "MB", "loading ms"]  # fmt: skip
    text = table(head, rows)
    save("starts", "Learned starts", {"rows": rows}, f"{text}\n\n{lines}", where)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
