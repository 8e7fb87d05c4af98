"""Arms to 6D targets: every library that is installed, on the same targets, in turns.

    python benchmarks/peers/run.py --make peers      # makes an environment of each library in that folder, once
    python benchmarks/peers/run.py --env /path/to/venv/bin/python --env /path/to/another/bin/python

What does not install is told and left out. Each library runs in a process of its own, in the first environment that has
it (this one first). They take turns of a few hundred targets. Clock: CPU time of the process around each call, so that
other work on the machine does not count, less what an empty reading takes. Every answer is judged by NumPy kinematics
of the same URDF, limits included.

``pose``: random reachable poses from one neutral start, restarts allowed. ``track``: a smooth way at 100 Hz, each call
started from the answer before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]
from adapters import BRANCHES, LIBRARIES, PINS, Library, Task  # noqa: E402  # the folders above come first
from panda import Arm, write_panda  # noqa: E402

ROBOTS = {
    "panda": ("panda_link0", "panda_link8", [0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4]),
    "ur5e": ("base_link", "tool0", [0.0, -np.pi / 2, np.pi / 2, -np.pi / 2, -np.pi / 2, 0.0]),
    "wrist6": ("base_link", "tool0", [0.0, -np.pi / 4, np.pi / 4, 0.1, np.pi / 4, 0.0]),
}
SHOWN = {"segments": "synovia segments", "synovia": "synovia lm"}
MEASURED = ("panda", "ur5e")  # wrist6 is for ``closed.py``
MOST = 64  # branches of a pose
TOLERANCES = {"1e-6 m, 1e-6 rad": (1e-6, 1e-6), "1e-3 m, 1e-2 rad": (1e-3, 1e-2)}
TURN = 250  # calls before the next library has its turn
FRAMES = 1000
ENOUGH = 0.999  # share of targets from which a library counts as a rival
ENOUGH_TRACKED = 0.99
# Denavit-Hartenberg numbers of the UR5e, as its maker publishes them: d, a (metres), alpha (right angles)
UR5E = [(0.1625, 0, 1), (0, -0.425, 0), (0, -0.3922, 0), (0.1333, 0, 1), (0.0997, 0, -1), (0.0996, 0, 0)]
# those of the Puma 560, whose last three axes meet (Lee & Ziegler 1984)
WRIST6 = [(0.6718, 0, 1), (0, 0.4318, 0), (0.1501, 0.0203, -1), (0.4318, 0, 1), (0, 0, -1), (0.05, 0, 0)]


def write_ur5e(to: Path) -> None:
    """Write the arm as a URDF."""
    write_arm(to, "ur5e", UR5E, [2 * np.pi, 2 * np.pi, np.pi, 2 * np.pi, 2 * np.pi, 2 * np.pi], np.pi)


def write_arm(to: Path, name: str, numbers: list[tuple[float, float, int]], limits: list[float], turn: float) -> None:
    """Write an arm as a URDF, from its Denavit-Hartenberg numbers; its base is turned against the first frame."""
    lines = [f'<robot name="{name}"><link name="base_link"/>']
    above, x, z, bend = "base_link", 0.0, 0.0, 0.0
    for i, (d, a, alpha) in enumerate(numbers):
        most = limits[i]
        lines.append(
            f'<link name="link{i}"/><joint name="joint{i}" type="revolute"><parent link="{above}"/>'
            f'<child link="link{i}"/><origin xyz="{x} 0 {z}" rpy="{bend} 0 {turn}"/><axis xyz="0 0 1"/>'
            f'<limit lower="{-most}" upper="{most}" effort="1" velocity="3"/></joint>'
        )
        above, x, z, bend, turn = f"link{i}", a, d, alpha * np.pi / 2, 0.0
    lines.append(
        f'<link name="tool0"/><joint name="tool" type="fixed"><parent link="{above}"/><child link="tool0"/>'
        f'<origin xyz="{x} 0 {z}" rpy="{bend} 0 0"/></joint></robot>'
    )
    to.write_text("\n".join(lines))


def problems(arm: Arm, neutral: np.ndarray, kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return targets (n, 4, 4) and the first start."""
    low, high = np.maximum(arm.low, -np.pi), np.minimum(arm.high, np.pi)
    if kind != "track":
        return arm.forward(np.random.default_rng(1).uniform(low, high, (count, len(low)))), neutral
    rng = np.random.default_rng(3)
    t = np.arange(count)[:, None] / 100.0
    pace, phase = rng.uniform(0.05, 0.25, (2, len(low))), rng.uniform(0.0, 2 * np.pi, (2, len(low)))
    wave = 0.7 * np.sin(2 * np.pi * pace[0] * t + phase[0]) + 0.3 * np.sin(2 * np.pi * pace[1] * t + phase[1])
    q = (low + high) / 2 + 0.35 * (high - low) * wave
    return arm.forward(q), q[0]


def serve(name: str, folder: Path, setting: dict[str, object]) -> None:
    """Be the process of one library: for each line ``first last`` solve those targets and write times and answers."""
    warnings.simplefilter("ignore")
    base, tip, _ = ROBOTS[setting["robot"]]
    urdf = folder / f"{setting['robot']}.urdf"
    track = setting["kind"] == "track"
    task = Task(str(urdf), base, tip, Arm(urdf, base, tip), tuple(setting["tolerance"]))
    branches = setting["kind"] == "branches"
    library = Library(*(BRANCHES[name](task) if branches else LIBRARIES[name][0](task, track)))
    solve = library.solve
    data = np.load(folder / "problems.npz")
    targets, numbers = data["targets"], len(data["start"])
    start = library.begin(data["start"])
    ready = [library.prepare(T) for T in targets]
    clock = time.process_time_ns
    empty = min(-clock() + clock() for _ in range(10_000))
    for goal in ready[:30]:
        solve(goal, start)
    print("ready", flush=True)
    for line in sys.stdin:
        first, last = map(int, line.split())
        now = start if first == 0 or not track else now  # noqa: F821  # kept from the turn before
        took = np.empty(last - first)
        answers = np.full((last - first, *((MOST,) if branches else ()), numbers), np.nan)
        for i, goal in enumerate(ready[first:last]):
            began = clock()
            answer = solve(goal, now)
            took[i] = clock() - began - empty
            if branches:
                answers[i, : len(answer)] = np.reshape(answer, (-1, numbers))[:MOST]
            elif answer is not None:
                answers[i] = library.joints(answer)
                if track:
                    now = answer
        np.savez(folder / f"{name}.npz", took=took, answers=answers)
        print("done", flush=True)


def made_in(folder: Path, names: list[str]) -> list[str]:
    """Return the python of an environment of each library in a folder, made where it is not there yet."""
    pythons = []
    for name in names:
        place = folder / name
        python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        ready = place / "ready"
        if not ready.exists():
            print(f"{name}: making {place}", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            done = subprocess.run(
                [*pip, LIBRARIES[name][1], *PINS.get(name, ())], stderr=subprocess.PIPE, text=True, check=False
            )
            if done.returncode:
                print(f"{name} does not install here: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                continue
            ready.touch()
        pythons.append(str(python))
    return pythons


def found_in(python: str) -> dict[str, str]:
    """Return the libraries of an environment, with their versions."""
    if python == sys.executable:
        here = {}
        for name, (_, package, *_) in LIBRARIES.items():
            try:
                here[name] = version(package)
            except PackageNotFoundError:
                continue
        return here
    try:
        asked = subprocess.run([python, __file__, "--list"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        why = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
        print(f"{python} is left out: {why}", file=sys.stderr)
        return {}
    return json.loads(asked.stdout)


class Process:
    """A library at work."""

    def __init__(self, name: str, python: str, folder: Path, setting: dict[str, object]) -> None:
        command = [python, __file__, "--serve", name, "--folder", str(folder), "--setting", json.dumps(setting)]
        self.name, self.folder = name, folder
        self.pipe = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.works = self._wait("ready")

    def _wait(self, word: str) -> bool:
        """Wait for a word; return whether it came."""
        for line in self.pipe.stdout:
            if line.strip() == word:
                return True
        print(f"{self.name} ended:", "".join(self.pipe.stderr.readlines()[-1:]).strip(), file=sys.stderr)
        return False

    def solve(self, part: slice) -> tuple[np.ndarray, np.ndarray] | None:
        """Return nanoseconds and answers of some targets; None once the process has ended."""
        self.pipe.stdin.write(f"{part.start} {part.stop}\n")
        self.pipe.stdin.flush()
        self.works = self._wait("done")
        if not self.works:
            return None
        with np.load(self.folder / f"{self.name}.npz") as answer:
            return answer["took"], answer["answers"]

    def close(self) -> None:
        """End the process."""
        self.pipe.stdin.close()
        self.pipe.wait()


def in_turns(
    crew: list[Process], count: int, shape: tuple[int, ...], rounds: int
) -> Iterator[tuple[Process, np.ndarray, np.ndarray]]:
    """Let all solve the targets turn by turn; yield who worked to the end, each target's usual time and its answer.

    The median of the rounds, not the least: who restarts at random would be measured by its luckiest draw.
    """
    took = {one.name: np.full((rounds, count), np.inf) for one in crew}
    answers = {one.name: np.full((count, *shape), np.nan) for one in crew}
    for k in range(rounds):
        for first in range(0, count, TURN):
            part = slice(first, min(first + TURN, count))
            for one in crew:
                if one.works and (result := one.solve(part)):
                    took[one.name][k, part] = result[0]
                    answers[one.name][part] = result[1]
    for one in crew:
        one.close()
        if one.works:
            yield one, np.median(took[one.name], axis=0), answers[one.name]


def measure(
    robot: str, kind: str, tolerance: tuple[float, float], where: dict[str, str], folder: Path, count: int, rounds: int
) -> dict[str, dict[str, float]]:
    """Return success and times (microseconds) of every library: each target's median of the rounds."""
    base, tip, neutral = ROBOTS[robot]
    arm = Arm(folder / f"{robot}.urdf", base, tip)
    targets, start = problems(arm, np.array(neutral), kind, count)
    np.savez(folder / "problems.npz", targets=targets, start=start)
    setting = {"robot": robot, "kind": kind, "tolerance": tolerance}
    crew = [Process(name, where[name], folder, setting) for name in where if robot in LIBRARIES[name][2]]
    rows = {}
    for one, took, q in in_turns(crew, count, (len(start),), rounds):
        given = np.isfinite(q).all(axis=1)
        good = given & arm.good(np.where(given[:, None], q, neutral), targets, tolerance)
        p50, p90, p99 = np.percentile(took, [50, 90, 99]) / 1000
        rows[one.name] = {
            "success": float(good.mean()), "median_us": p50, "p90_us": p90, "p99_us": p99,
            "mean_us": float(took.mean() / 1000),
        }  # fmt: skip
        if kind == "track":
            rows[one.name]["largest_step_rad"] = float(np.nanmax(np.abs(np.diff(q, axis=0))))
    return rows


def report(
    rows: dict[str, dict[str, float]], kind: str, versions: dict[str, str]
) -> tuple[str, dict[str, dict[str, float]]]:
    """Return a table, and how many times faster our solvers are than the fastest rival that iterates."""
    from common import table

    enough = ENOUGH if kind == "pose" else ENOUGH_TRACKED
    lines: list[list[object]] = []
    for name, row in sorted(rows.items(), key=lambda item: (item[1]["success"] < enough, item[1]["median_us"])):
        cells = [f"{SHOWN.get(name, name)} {versions[name]}", LIBRARIES[name][3], f"{row['success']:.2%}"]
        cells += [f"{row[key]:.1f}" for key in ("median_us", "p90_us", "p99_us", "mean_us")]
        lines.append([*cells, f"{row['largest_step_rad']:.3f}"] if kind == "track" else cells)
    head = ["µs of CPU a call", "kind", "on target", "median", "p90", "p99", "mean"]
    text = table([*head, "largest step, rad"] if kind == "track" else head, lines)
    met = {name: row for name, row in rows.items() if row["success"] >= enough}
    rivals = [row for name, row in met.items() if not is_ours(name) and LIBRARIES[name][3] == "iterates"]
    ratios: dict[str, dict[str, float]] = {}
    for name, row in met.items():
        if is_ours(name) and rivals:
            ratios[name] = {key: min(r[f"{key}_us"] for r in rivals) / row[f"{key}_us"] for key in ("median", "p99")}
            text += (
                f"\n\n{SHOWN[name]}: times faster than the fastest other that iterates and is on target in at least "
            )
            text += f"{enough:.1%}: median {ratios[name]['median']:.1f}, p99 {ratios[name]['p99']:.1f}."
    return text, ratios


def is_ours(name: str) -> bool:
    """Return whether this is a solver of our own."""
    return LIBRARIES[name][1] == "synovia"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", action="append", default=[], help="python of an environment with other libraries")
    parser.add_argument("--make", type=Path, help="folder for environments of the libraries, made where they lack")
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--robots", nargs="+", choices=MEASURED, default=list(MEASURED))
    parser.add_argument("--kinds", nargs="+", choices=("pose", "track"), default=["pose", "track"])
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--list", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--setting", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.list:
        print(json.dumps(found_in(sys.executable)))
        return
    if args.serve:
        serve(args.serve, args.folder, args.setting)
        return
    from common import machine, save

    about = machine()
    where: dict[str, str] = {}
    versions: dict[str, str] = {}
    rivals = [name for name in args.only if not is_ours(name)]
    for python in [sys.executable, *args.env, *(made_in(args.make.resolve(), rivals) if args.make else ())]:
        for name, number in found_in(python).items():
            if name in args.only and name not in where:
                where[name], versions[name] = python, number
    absent = sorted(set(args.only) - set(where))
    if absent:
        print(f"not in these environments: {', '.join(absent)}; --make FOLDER installs them", file=sys.stderr)
    found: dict[str, object] = {}
    texts = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_panda(folder / "panda.urdf")
        write_ur5e(folder / "ur5e.urdf")
        for robot in args.robots:
            for kind in args.kinds:
                for words, tolerance in TOLERANCES.items():
                    if kind == "track" and tolerance != TOLERANCES["1e-6 m, 1e-6 rad"]:
                        continue
                    count = args.targets if kind == "pose" else FRAMES
                    rows = measure(robot, kind, tolerance, where, folder, count, args.rounds)
                    text, ratios = report(rows, kind, versions)
                    title = f"{robot}, {kind}, {words}"
                    found[title] = {"libraries": rows, "times_faster": ratios}
                    texts.append(f"## {title}\n\n{text}")
                    print(f"{title} measured", file=sys.stderr)
    sys.argv = [
        "peers/run.py",
        *(["--make", "peers"] if args.make else ["--env", "..."]),
        "--targets",
        str(args.targets),
        "--rounds",
        str(args.rounds),
    ]
    if absent:
        texts.append(f"Not installed, so not measured: {', '.join(absent)}.")
    result = {"targets": args.targets, "rounds": args.rounds, "versions": versions, "tables": found}
    save("peers", "Arms beside other libraries", result, "\n\n".join(texts), about)


if __name__ == "__main__":
    main()
