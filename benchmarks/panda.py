"""A Panda arm to random reachable poses: success and time of one call, beside roboticstoolbox's ik_LM, in turns.

    python benchmarks/panda.py --targets 100000 --peer /path/to/venv/bin/python --starts

Both start from one neutral pose, keep the limits, may restart, and are asked for 1e-6 m and 1e-6 rad. Answers are
judged by the kinematics below, read from the URDF with nothing but NumPy. The peer runs in its own environment and
times its own calls. With ``--starts``, calls that begin at learned starts are measured too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

BASE, TIP = "panda_link0", "panda_hand"
NEUTRAL = np.array([0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4])
TOLERANCE = 1e-6  # metres and radians
CHUNK = 1000  # targets before the other one has its turn
# Denavit-Hartenberg numbers of the Panda, as its maker publishes them (Craig's convention), and limits, joint by joint:
# d, a (metres), alpha (right angles), lower, upper (radians)
NUMBERS = [
    (0.333, 0.0, 0, -2.8973, 2.8973),
    (0.0, 0.0, -1, -1.7628, 1.7628),
    (0.316, 0.0, 1, -2.8973, 2.8973),
    (0.0, 0.0825, 1, -3.0718, -0.0698),
    (0.384, -0.0825, -1, -2.8973, 2.8973),
    (0.0, 0.0, 1, -0.0175, 3.7525),
    (0.0, 0.088, 1, -2.8973, 2.8973),
]


class Arm:
    """The chain from a base to a tip, read from a URDF."""

    def __init__(self, path: Path, base: str = BASE, tip: str = TIP) -> None:
        above = {joint.find("child").get("link"): joint for joint in ET.parse(path).getroot().findall("joint")}
        way, link = [], tip
        while link != base:
            way.insert(0, above[link])
            link = above[link].find("parent").get("link")
        self.fixed = [self._origin(joint.find("origin")) for joint in way]
        self.axes = [
            None if joint.get("type") == "fixed" else np.array(joint.find("axis").get("xyz").split(), float)
            for joint in way
        ]
        moving = [joint for joint in way if joint.get("type") != "fixed"]
        self.names = [joint.get("name") for joint in moving]
        self.low, self.high = (
            np.array([float(joint.find("limit").get(end)) for joint in moving]) for end in ("lower", "upper")
        )

    @staticmethod
    def _origin(element: ET.Element | None) -> np.ndarray:
        T = np.eye(4)
        if element is not None:
            T[:3, 3] = np.array(element.get("xyz", "0 0 0").split(), float)
            for axis, angle in zip(np.eye(3), np.array(element.get("rpy", "0 0 0").split(), float), strict=True):
                T[:3, :3] = turns(axis, np.array([angle]))[0] @ T[:3, :3]
        return T

    def forward(self, q: np.ndarray) -> np.ndarray:
        """Return the tip's transforms (n, 4, 4) at joint values (n, 7)."""
        T = np.repeat(np.eye(4)[None], len(q), axis=0)
        k = 0
        for fixed, axis in zip(self.fixed, self.axes, strict=True):
            T = T @ fixed
            if axis is not None:
                M = np.repeat(np.eye(4)[None], len(q), axis=0)
                M[:, :3, :3] = turns(axis, q[:, k])
                T = T @ M
                k += 1
        return T

    def good(
        self, q: np.ndarray, targets: np.ndarray, tolerance: tuple[float, float] = (TOLERANCE, TOLERANCE)
    ) -> np.ndarray:
        """Return which answers are inside the limits and within the tolerance (metres, radians)."""
        F = self.forward(q)
        away = np.linalg.norm(F[:, :3, 3] - targets[:, :3, 3], axis=1)
        R = np.swapaxes(F[:, :3, :3], 1, 2) @ targets[:, :3, :3] - np.eye(3)
        turned = 2.0 * np.arcsin(np.minimum(np.linalg.norm(R, axis=(1, 2)) / np.sqrt(8.0), 1.0))
        inside = ((q >= self.low - 1e-9) & (q <= self.high + 1e-9)).all(axis=1)
        most, most_turned = (value * (1 + 1e-6) for value in tolerance)
        return inside & (away <= most) & (turned <= most_turned)


def turns(axis: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return rotations (n, 3, 3) about a unit axis."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle)[:, None, None] * K + (1 - np.cos(angle))[:, None, None] * (K @ K)


def ours(urdf: Path, arm: Arm, *, starts: bool = False):
    """Return the call that is timed: from a target to joint values; reading them is part of it."""
    import synovia as sy

    skeleton, goal = sy.load_skeleton(urdf), sy.PoseGoal(TIP)
    learned = sy.learn_starts(skeleton, goal) if starts else None
    ik = sy.IK(skeleton, goal, tolerance=(TOLERANCE, TOLERANCE), starts=learned)
    neutral = skeleton.rest_pose().with_values(dict(zip(arm.names, NEUTRAL.tolist(), strict=True)))
    start = None if starts else neutral
    at = [skeleton.q_slice(name).start for name in arm.names]
    return (lambda target: ik.solve({TIP: target}, start).pose.q), lambda q: q[at]


def write_panda(to: Path) -> Path:
    """Write the arm as a URDF, with its hand and fingers, which no target moves; return where it is."""
    lines = ['<robot name="panda"><link name="panda_link0"/>']
    for i, (d, a, alpha, low, high) in enumerate(NUMBERS, start=1):
        lines.append(
            f'<link name="panda_link{i}"/><joint name="panda_joint{i}" type="revolute">'
            f'<parent link="panda_link{i - 1}"/><child link="panda_link{i}"/>'
            f'<origin xyz="{a} {-alpha * d} {0.0 if alpha else d}" rpy="{alpha * np.pi / 2} 0 0"/><axis xyz="0 0 1"/>'
            f'<limit lower="{low}" upper="{high}" effort="87" velocity="2.175"/></joint>'
        )
    for name, above, below, origin in (
        ("panda_joint8", "panda_link7", "panda_link8", 'xyz="0 0 0.107"'),
        ("panda_hand_joint", "panda_link8", "panda_hand", f'rpy="0 0 {-np.pi / 4}"'),
    ):
        lines.append(
            f'<link name="{below}"/><joint name="{name}" type="fixed"><parent link="{above}"/><child link="{below}"/>'
            f"<origin {origin}/></joint>"
        )
    for side, finger in ((1, "left"), (-1, "right")):
        lines.append(
            f'<link name="panda_{finger}finger"/><joint name="panda_{finger}_finger" type="prismatic">'
            f'<parent link="panda_hand"/><child link="panda_{finger}finger"/><origin xyz="0 0 0.0584"/>'
            f'<axis xyz="0 {side} 0"/><limit lower="0" upper="0.04" effort="100" velocity="0.2"/></joint>'
        )
    to.write_text("\n".join([*lines, "</robot>"]), encoding="utf-8")
    return to


def bare(urdf: Path, to: Path) -> None:
    """Write a URDF without its meshes, which some libraries look for and nobody needs."""
    robot = ET.parse(urdf)
    for link in robot.getroot().findall("link"):
        for element in link.findall("visual") + link.findall("collision"):
            link.remove(element)
    robot.write(to)


def peer(urdf: Path, folder: Path):
    """Return roboticstoolbox's call, set as it does best: LM by Chan, restarts, limits kept."""
    import roboticstoolbox as rtb

    bare(urdf, folder / "bare.urdf")
    warnings.simplefilter("ignore", DeprecationWarning)  # of Robot.URDF
    ets = rtb.Robot.URDF(str(folder / "bare.urdf")).ets(start=BASE, end=TIP)
    # its error is half the squared residual, so this is the loosest bound that guarantees the tolerance
    keep = {"tol": 0.5 * TOLERANCE**2, "joint_limits": True, "slimit": 100, "ilimit": 30, "k": 0.1, "method": "chan"}
    return (lambda target: ets.ik_LM(target, q0=NEUTRAL, **keep).q), lambda q: q


def timed(solve, joints, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return nanoseconds and answers of each call."""
    took, answers = np.empty(len(targets)), np.empty((len(targets), len(NEUTRAL)))
    clock = time.perf_counter_ns
    for i, target in enumerate(targets):
        began = clock()
        q = solve(target)
        took[i] = clock() - began
        answers[i] = joints(q)
    return took, answers


def work(urdf: Path, folder: Path) -> None:
    """Serve as the peer's process: for each line ``first last`` solve those targets and write the answers."""
    targets = np.load(folder / "targets.npy")
    solve, joints = peer(urdf, folder)
    timed(solve, joints, targets[:50])
    print("ready", flush=True)
    for line in sys.stdin:
        first, last = map(int, line.split())
        began = time.process_time()
        took, answers = timed(solve, joints, targets[first:last])
        np.savez(folder / "peer.npz", took=took, answers=answers, cpu=time.process_time() - began)
        print("done", flush=True)


class Rival:
    """The peer's process."""

    def __init__(self, python: Path, urdf: Path, folder: Path, targets: np.ndarray) -> None:
        self.folder = folder
        np.save(folder / "targets.npy", targets)
        command = [str(python), __file__, "--urdf", str(urdf), "--work", str(folder)]
        self.pipe = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while (line := self.pipe.stdout.readline()).strip() != "ready":
            if not line:
                sys.exit("the peer did not start")

    def solve(self, part: slice) -> dict[str, np.ndarray]:
        """Return nanoseconds of each call (took), answers, and CPU seconds in all (cpu)."""
        self.pipe.stdin.write(f"{part.start} {part.stop}\n")
        self.pipe.stdin.flush()
        self.pipe.stdout.readline()
        with np.load(self.folder / "peer.npz") as answer:
            return dict(answer)

    def close(self) -> None:
        """End the process."""
        self.pipe.stdin.close()
        self.pipe.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--urdf", type=Path, help="another file of the arm than the one that is written here")
    parser.add_argument("--peer", type=Path, help="python of an environment with roboticstoolbox-python")
    parser.add_argument("--starts", action="store_true", help="measure learned starts too")
    parser.add_argument("--core", type=int, help="core to run on, both of them")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(args.urdf, args.work)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return compare(args, Path(folder))


def compare(args: argparse.Namespace, folder: Path) -> int:
    """Measure, and write what came out; return 1 if a bar is missed."""
    from common import machine, save, table, verdicts

    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    urdf = args.urdf.resolve() if args.urdf else write_panda(folder / "panda.urdf")
    arm = Arm(urdf)
    targets = arm.forward(np.random.default_rng(args.seed).uniform(arm.low, arm.high, (args.targets, len(NEUTRAL))))
    where = machine()
    own = {"synovia": ours(urdf, arm)}
    if args.starts:
        own["synovia, learned starts"] = ours(urdf, arm, starts=True)
    for solve, joints in own.values():
        timed(solve, joints, targets[:50])
    other = "roboticstoolbox ik_LM"
    names = [*own, other] if args.peer else list(own)
    took = {name: np.empty((args.rounds, len(targets))) for name in names}
    good = {name: np.empty((args.rounds, len(targets)), bool) for name in names}
    rival = Rival(args.peer, urdf, folder, targets) if args.peer else None
    for r in range(args.rounds):
        for first in range(0, len(targets), CHUNK):
            part = slice(first, min(first + CHUNK, len(targets)))
            for name, (solve, joints) in own.items():
                took[name][r, part], q = timed(solve, joints, targets[part])
                good[name][r, part] = arm.good(q, targets[part])
            if rival:
                answer = rival.solve(part)
                took[other][r, part] = answer["took"]
                good[other][r, part] = arm.good(answer["answers"], targets[part])
    if rival:
        rival.close()
    rows, result = [], {}
    for name in names:
        medians = np.median(took[name], axis=1) / 1000
        best = int(np.argmin(medians))
        p50, p90, p99 = np.percentile(took[name][best], [50, 90, 99]) / 1000
        mean = float(took[name][best].mean() / 1000)
        result[name] = {
            "success": float(good[name].mean(axis=1).min()), "missed": int((~good[name]).sum(axis=1).max()),
            "median_us": p50, "p90_us": p90, "p99_us": p99, "mean_us": mean, "medians_of_rounds_us": medians.tolist(),
        }  # fmt: skip
        rows.append([name, f"{result[name]['success']:.4%}", *(f"{v:.1f}" for v in (p50, p90, p99, mean))])
    bars = [(f"{name} reaches at least 99.99 %", result[name]["success"] >= 0.9999) for name in own]
    for name, least in zip(own, (4.0, 10.0), strict=False) if args.peer else ():
        ratio = result[other]["median_us"] / result[name]["median_us"]
        result[name]["ratio_of_medians"] = ratio
        bars.append((f"{name}: {least:g} times faster in the median ({ratio:.1f})", ratio >= least))
    lines, held = verdicts(bars)
    text = table(["best of rounds, µs a call", "reached", "median", "p90", "p99", "mean"], rows) + f"\n\n{lines}"
    what = f"Panda, {len(targets)} random reachable poses to {TOLERANCE:g} m and {TOLERANCE:g} rad"
    save("panda", what, {"targets": len(targets), "rounds": args.rounds, **result, "holds": held}, text, where)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
