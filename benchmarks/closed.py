"""Closed forms of arms with six and seven hinges: ours beside other libraries, in turns, one answer and every branch.

    python benchmarks/closed.py --env /path/to/venv/bin/python --env /path/to/another/bin/python

An arm with three parallel axes (UR5e), one whose last three axes meet (Puma 560), one of seven hinges (Panda); random
reachable poses, answers judged by NumPy kinematics of the same URDF, limits included; clock and turns as in
``peers/run.py``. One answer is what each library gives first (ours: the nearest to the start). *Branches*: different
ones within the limits; whole turns do not count; *wrong*: answers that miss their target.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import machine, save, table

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
from adapters import BRANCHES, LIBRARIES  # the folder above comes first
from panda import Arm, write_panda
from run import MOST, ROBOTS, SHOWN, WRIST6, Process, found_in, in_turns, measure, problems, write_arm, write_ur5e

TOLERANCE = (1e-6, 1e-6)
ARMS = {
    "ur5e": "UR5e: three parallel axes",
    "wrist6": "Puma 560: a spherical wrist",
    "panda": "Panda: seven hinges, a turn of which is free",
}
LISTED = ("ur5e", "wrist6")  # arms with a number of branches that can be compared


def every_branch(
    robot: str, where: dict[str, str], folder: Path, count: int, rounds: int
) -> dict[str, dict[str, float]]:
    """Return time, number and truth of the branches of each library."""
    base, tip, neutral = ROBOTS[robot]
    arm = Arm(folder / f"{robot}.urdf", base, tip)
    targets, start = problems(arm, np.array(neutral), "branches", count)
    np.savez(folder / "problems.npz", targets=targets, start=start)
    setting = {"robot": robot, "kind": "branches", "tolerance": TOLERANCE}
    crew = [
        Process(name, where[name], folder, setting)
        for name in where
        if robot in LIBRARIES[name][2] and name in BRANCHES
    ]
    rows = {}
    for one, took, answers in in_turns(crew, count, (MOST, len(start)), rounds):
        p50, _, p99 = np.percentile(took, [50, 90, 99]) / 1000
        number, wrong = counted(arm, targets, answers)
        rows[one.name] = {"branches": number, "wrong": wrong, "median_us": p50, "p99_us": p99}
    return rows


def counted(arm: Arm, targets: np.ndarray, answers: np.ndarray) -> tuple[float, int]:
    """Return the mean number of different branches within the limits, and how many answers miss their target."""
    total, wrong = 0, 0
    unlimited = copy.copy(arm)
    unlimited.low, unlimited.high = np.full_like(arm.low, -np.inf), np.full_like(arm.high, np.inf)
    for target, q in zip(targets, answers, strict=True):
        q = q[np.isfinite(q).all(axis=1)]
        inside = (q + np.pi) % (2 * np.pi) - np.pi  # whole turns do not count
        repeated = np.repeat(target[None], len(q), axis=0)
        wrong += int((~unlimited.good(inside, repeated, TOLERANCE)).sum())
        good = arm.good(inside, repeated, TOLERANCE)
        seen: list[np.ndarray] = []
        for one in inside[good]:
            if all(np.abs((one - other + np.pi) % (2 * np.pi) - np.pi).max() > 1e-5 for other in seen):
                seen.append(one)
        total += len(seen)
    return total / len(targets), wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", action="append", default=[], help="python of an environment with other libraries")
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    about = machine()
    where: dict[str, str] = {}
    versions: dict[str, str] = {}
    for python in [sys.executable, *args.env]:
        for name, number in found_in(python).items():
            if name not in where and (name == "synovia" or LIBRARIES[name][3] == "closed form"):
                where[name], versions[name] = python, number
    found: dict[str, object] = {}
    texts: list[str] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_ur5e(folder / "ur5e.urdf")
        write_panda(folder / "panda.urdf")
        write_arm(folder / "wrist6.urdf", "wrist6", WRIST6, [2.7, 3.1, 3.1, 3.1, 3.1, 3.1], 0.0)
        for robot, what in ARMS.items():
            nearest = measure(robot, "pose", TOLERANCE, where, folder, args.targets, args.rounds)
            listed = robot in LISTED
            every = every_branch(robot, where, folder, args.targets, args.rounds) if listed else {}
            lines: list[list[object]] = []
            for name in sorted(nearest, key=lambda name: nearest[name]["median_us"]):
                one, all_of = nearest[name], every.get(name)
                lines.append(
                    [
                        f"{SHOWN.get(name, name)} {versions[name]}",
                        f"{one['success']:.2%}",
                        f"{one['median_us']:.1f}",
                        f"{one['p99_us']:.1f}",
                        *(
                            (f"{all_of['branches']:.2f}", all_of["wrong"], f"{all_of['median_us']:.1f}")
                            if all_of
                            else ("-", "-", "-")
                        ),
                    ]
                )
            head = ["µs of CPU a call", "on target", "median", "99 %"]
            head += ["branches", "wrong", "every branch"] if listed else []
            lines = [line[: len(head)] for line in lines]
            texts.append(f"## {what}\n\n{table(head, lines)}")
            found[robot] = {"one": nearest, "every": every}
    result = {"targets": args.targets, "rounds": args.rounds, "versions": versions, **found}
    sys.argv = ["closed.py", "--env", "...", "--targets", str(args.targets), "--rounds", str(args.rounds)]
    save("closed", "Closed forms beside other libraries", result, "\n\n".join(texts), about)


if __name__ == "__main__":
    main()
