"""Full body: a humanoid beside its peers, a character, the edge of reach, two ways to keep limits, answers on trial.

    python benchmarks/full_body.py g1 --harness DIR [--venvs DIR]     # DIR: problems of the peers' harness
    python benchmarks/full_body.py character | edge | levels [--count N]
    python benchmarks/full_body.py reasons | law [--count N] [--jobs N] [--notes FILE]    # FILE: to be taken up again

Parts take turns: each round goes once through all of them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import full_body_trials as trials
import numpy as np
from common import machine, needed_data, save, table, verdicts

import synovia as sy

PEERS = {"placo": "soft", "mink": "daqp", "pink": "daqp"}
ROUNDS = 5


def g1(arguments: argparse.Namespace) -> bool:
    """Two hands, two feet, balance and posture: 500 frames with one step each, and 200 poses from cold."""
    harness = Path(arguments.harness)
    track = np.load(harness / "problems" / "g1_track.npz")
    cold = np.load(harness / "problems" / "g1_wb.npz")
    body = sy.load_skeleton(harness.parent / "models" / "g1.urdf")
    left_hand, right_hand, left_foot, right_foot = (str(name) for name in track["frames"])
    crouch = np.array([cold["q0"][list(cold["names"]).index(n)] for n in _moving(body)])
    goals = [
        sy.PoseGoal(left_foot),
        sy.PoseGoal(right_foot),
        sy.CenterOfMassGoal(name="balance", priority=1),
        sy.PoseGoal(left_hand, priority=2),
        sy.PoseGoal(right_hand, priority=2),
        sy.RestGoal(crouch),
    ]

    def targets(data: np.lib.npyio.NpzFile, i: int) -> dict[str, np.ndarray]:
        frames = dict(zip((left_hand, right_hand, left_foot, right_foot), data["T"][i], strict=True))
        return {**frames, "balance": data["com"][i]}

    ik = sy.IK(body, goals, sy.FullBody(rest_step=10.0), tolerance=(2e-4, 1e-2), root="free")
    asked = [targets(track, i) for i in range(len(track["T"]))]
    ours, far, steps = [], 0.0, []
    peers: dict[str, list[tuple[float, float]]] = {name: [] for name in PEERS}
    for _ in range(arguments.rounds):
        times, pose = [], ik.skeleton.rest_pose().q.copy()
        pose[:] = _start(body, ik, track)
        for frame in asked:
            before = time.perf_counter_ns()
            solution = ik.solve(frame, pose)
            times.append(time.perf_counter_ns() - before)
            pose = solution.pose
            far = max(far, *(error.position for error in solution.errors))
            steps.append(solution.steps)
        ours.append(np.median(times) / 1e3)
        for name, variant in PEERS.items():
            if arguments.venvs:
                peers[name].append(_peer(Path(arguments.venvs) / name / "bin" / "python", harness, name, variant))
    from_cold = sy.IK(body, goals, sy.FullBody(rest_step=10.0), tolerance=(1e-3, 1e-2), root="free")
    start = _start(body, from_cold, cold)
    solved, waits = 0, []
    for i in range(len(cold["T"])):
        before = time.perf_counter_ns()
        solved += from_cold.solve(targets(cold, i), start).reached
        waits.append(time.perf_counter_ns() - before)
    rows = [["synovia full-body", f"{min(ours):.1f}", f"{np.median(waits) / 1e3:.0f}", f"{solved}/{len(waits)}"]]
    rows += [[n, f"{min(t for t, _ in r):.1f}", "", f"{min(ok for _, ok in r):.0f} %"] for n, r in peers.items() if r]
    text = table(["", "a frame, us", "from cold, us", "solved from cold"], rows)
    bars = [
        (f"every frame within 0.2 mm: {1e3 * far:.3f} mm in {np.mean(steps):.2f} steps", far <= 2e-4),
        (f"from cold {solved} of {len(waits)}", solved == len(waits)),
    ]
    if arguments.venvs:
        ratio = {n: min(ours) / min(t for t, _ in peers[n]) for n in PEERS}
        bars += [
            (f"a frame takes {ratio['placo']:.2f} of placo's soft weights", ratio["placo"] <= 1.0),
            (f"and {ratio['mink']:.2f} of mink's", ratio["mink"] <= 0.2),
        ]
    return _report("full_body_g1", "Full body: G1 with strict priorities", text, bars)


def _moving(body: sy.Skeleton) -> list[str]:
    """Return the names of the joints that have a value, in the order of q."""
    return [joint.name for i, joint in enumerate(body.joints) if body.q_slice(i).stop > body.q_slice(i).start]


def _start(body: sy.Skeleton, ik: sy.IK, data: np.lib.npyio.NpzFile) -> np.ndarray:
    """Return the start of the harness: a free root, then the joints by name."""
    base, places = data["base0"], list(data["names"])
    values = [data["q0"][places.index(name)] for name in _moving(body)]
    return np.concatenate([base[:3, 3], sy.Rotation.from_matrix(base[:3, :3]).as_quat(), values])


def _peer(python: Path, harness: Path, name: str, variant: str) -> tuple[float, float]:
    """Return (median time of a frame in us, percent solved from cold) of one pass of a peer."""
    command = [str(python), "bench.py", "--peer", name, "--task", "wb", "--variant", variant]
    out = subprocess.run(command, cwd=harness, capture_output=True, text=True, check=True).stdout
    line = next(line for line in out.splitlines() if f"wb {variant} " in line)
    tick, ok = re.search(r"tick med=([\d.]+)", line), re.search(r"ok=([\d.]+)%", line)
    if tick is None or ok is None:
        raise SystemExit(f"cannot read: {line}")
    return float(tick[1]), float(ok[1])


def character(arguments: argparse.Namespace) -> bool:
    """Five position-and-rotation goals on a glTF character, from rest."""
    body = sy.load_skeleton(needed_data() / "character" / "mannequiny.glb")
    ends = ("hand.l", "hand.r", "foot.l", "foot.r", "head")
    ik = sy.IK(body, [sy.PoseGoal(end) for end in ends], sy.FullBody(), tolerance=(1e-3, np.radians(0.1)))
    rng = np.random.default_rng(1)
    times, solved = [], 0
    for _ in range(arguments.count or 1000):
        q = body.rest_pose().q.copy()
        for kind, at, _ in body.tables.variables:
            if kind == 1 and at >= 7:
                turn = sy.Rotation.from_rotvec(0.5 * rng.normal(size=3))
                q[at : at + 4] = (sy.Rotation.from_quat(q[at : at + 4]) * turn).as_quat()
        pose = sy.Pose(body, q)
        targets = {end: pose.transform(end) for end in ends}
        before = time.perf_counter_ns()
        solved += ik.solve(targets).reached
        times.append(time.perf_counter_ns() - before)
    part, median = 100 * solved / len(times), np.median(times) / 1e6
    text = table(
        ["", "solved", "median ms", "p95 ms"],
        [[body.name, f"{part:.1f} %", f"{median:.3f}", f"{np.percentile(times, 95) / 1e6:.3f}"]],
    )
    bars = [(f"{part:.1f} % to 1 mm and 0.1 deg", part >= 99.0), (f"median {median:.3f} ms", median < 0.5)]
    return _report("full_body_character", "Full body: a character", text, bars)


def edge(arguments: argparse.Namespace) -> bool:
    """A target goes through the edge of reach and back; then it rests outside. A free chain, and an arm with limits."""
    frames = arguments.count or 2000
    chain = sy.Skeleton.chain([(0, 0, 0), (0.4, 0.05, 0), (0.75, 0, 0.05), (1, 0.05, 0)])
    body = sy.bundled("humanoid")
    arm = sy.PositionGoal("left_hand", ancestors=2)
    rows, bars = [], []
    for name, skeleton, goal, base in (
        ("chain of balls", chain, sy.PositionGoal(chain.joint_names[-1]), chain.joint_names[0]),
        ("arm with limits", body, arm, body.joint_names[body.parents[body.parents[body.index("left_hand")]]]),
    ):
        ik = sy.IK(skeleton, [goal], sy.FullBody(softening=0.02))
        tip = goal.joint
        row, reach = skeleton.index(tip), 0.0
        while row != skeleton.index(base):
            reach += float(np.linalg.norm(skeleton.joints[row].rest[:3, 3]))
            row = skeleton.parents[row]
        away = np.array([0.6, 0.5, 0.62]) / np.linalg.norm([0.6, 0.5, 0.62])
        turn = np.linspace(0, 2 * np.pi, frames)
        sideways = np.cross(away, [0, 0, 1])
        path = reach * (np.outer(1.0 - 0.4 * np.cos(turn), away) + 0.05 * np.outer(np.sin(turn), sideways))
        path += skeleton.rest_pose().position(base)
        clip = ik.track({tip: path}, start=ik.solve({tip: path[0]}).pose)
        moves = _turns(clip.q, skeleton)
        far = np.linalg.norm(path - skeleton.rest_pose().position(base), axis=1)
        inside = moves[(far < 0.9 * reach)[1:]]
        rest = ik.track({tip: np.repeat(path[frames // 2][None], 50, 0)}, start=clip[frames // 2].pose)
        drift = np.abs(np.diff(rest.q, axis=0)).max()
        beyond = trials.beyond_limits(skeleton.tables, clip.q)
        reached = f"{int(clip.reached.sum())}/{frames}"
        rows.append([name, reached, f"{moves.max():.4f}", f"{inside.max():.4f}", f"{drift:.1e}", f"{beyond:.1e}"])
        bars += [
            (f"{name}: largest joint step at most 3 times that inside reach", moves.max() <= 3 * inside.max()),
            (f"{name}: nothing moves once the target rests", drift < 1e-6),
            (f"{name}: no limit violated", beyond <= 1e-9),
        ]
    text = table(["", "reached", "largest step, rad", "inside reach", "at rest", "beyond a limit"], rows)
    return _report("full_body_edge", "Full body: the edge of reach", text, bars)


def _turns(q: np.ndarray, skeleton: sy.Skeleton) -> np.ndarray:
    """Return the largest turn of a joint between frames, radians."""
    turns = [np.zeros(len(q) - 1)]
    for kind, at, _ in skeleton.tables.variables:
        if kind == 1:
            a, b = (sy.Rotation.from_quat(part) for part in (q[:-1, at : at + 4], q[1:, at : at + 4]))
            turns.append((a.inv() * b).magnitude())
        else:
            turns.append(np.abs(np.diff(q[:, at])))
    return np.max(turns, axis=0)


def levels(arguments: argparse.Namespace) -> bool:
    """Limits by an active set that lets go of bounds, and by saturation in the null space, on the same hierarchies."""
    from synovia.kernels.hierarchy.basis import levels_size
    from synovia.kernels.hierarchy.levels import solve_hierarchy

    rng, n, edges = np.random.default_rng(7), 35, np.array([0, 12, 15, 27], np.int32)
    lost, times, solves = 0, {True: [], False: []}, {True: [], False: []}
    for _ in range(arguments.count or 2000):
        A = rng.normal(size=(27, n)) * (rng.random((27, n)) < 0.5)
        e = 0.3 * rng.normal(size=27)
        bounds = np.array([-rng.exponential(0.3, n), rng.exponential(0.3, n), 0.3 * rng.normal(size=n), np.ones(n)])
        errors = {}
        for releases in (True, False):
            x, scratch = np.zeros(n), np.empty(levels_size(27, n))
            before = time.perf_counter_ns()
            solves[releases].append(solve_hierarchy(A, e, edges, bounds, scratch, x, 1e-12, 0.0, 1e9, releases))
            times[releases].append(time.perf_counter_ns() - before)
            errors[releases] = [np.linalg.norm((A @ x - e)[a:b]) for a, b in pairwise(edges)]
        first = next((k for k in range(3) if abs(errors[True][k] - errors[False][k]) > 1e-6), None)
        lost += first is not None
    rows = [
        [name, f"{np.median(times[key]) / 1e3:.1f}", f"{np.mean(solves[key]):.1f}", f"{part:.1f} %"]
        for key, name, part in ((True, "active set", 0.0), (False, "saturation", 100 * lost / len(times[True])))
    ]
    return _report(
        "full_body_levels",
        "Full body: two ways to keep limits",
        table(["", "median us", "systems", "a level short of its optimum"], rows),
        [],
    )


def reasons(arguments: argparse.Namespace) -> bool:
    """Do what explanations of random infeasible problems say: move the goals, 90 % of it, release the limit."""
    said = trials.many(trials.reasons, arguments.count or 1000, arguments.jobs, arguments.notes)
    told = {seed: one for seed, one in said.items() if one["told"]}
    met, found, short = (sum(one[key] for one in told.values()) for key in ("holds", "found", "short"))
    named, lowered = (sum(one[key] for one in said.values()) for key in ("named", "lowered"))
    ms = f"{1e3 * np.median([one['seconds'] for one in said.values()]):.0f}"
    text = table(
        ["infeasible", "a move told", "solves it", "found", "90 % does not", "limits named", "lower the error", "ms"],
        [[len(said), len(told), met, found, short, named, lowered, ms]],
    )
    wrong = [seed for seed, one in told.items() if not (one["holds"] and one["short"])]
    text += "\n\nFound: also from the pose of the miss, in 100 attempts; ms: median of the explanation."
    if wrong:
        text += f"\n\nProblems that did not do so: {', '.join(map(str, wrong))}."
    bars = [
        ("a move is told for every problem", len(told) == len(said)),
        ("every move that is told makes the goals hold", met == len(told)),
        ("90 % of it does not, in 100 attempts", short == len(told)),
        ("releasing the named limit lowers the error", lowered == named),
    ]
    return _report("full_body_reasons", "Full body: reasons on trial", text, bars)


def law(arguments: argparse.Namespace) -> bool:
    """Goals of every kind on random trees: no level gains from the answer without those below it."""
    said = trials.many(trials.law, arguments.count or 200, arguments.jobs, arguments.notes)
    statuses = Counter(one["status"] for one in said.values())
    lost = {seed: one["lost"] for seed, one in said.items() if one["lost"] > 1e-6 and not one["away"]}
    away = sum(one["away"] for one in said.values())
    beyond = max(one["beyond"] for one in said.values())
    moves = sum(one["moves"] > 1e-6 and one["status"] != "REACHED" for one in said.values())
    text = table(
        [
            "problems",
            *(name.lower() for name, _ in statuses.most_common()),
            "no best pose",
            "a level gains",
            "moves again",
        ],
        [[len(said), *(count for _, count in statuses.most_common()), away, len(lost), moves]],
    )
    if lost:
        shown = ", ".join(f"{seed} ({much:.1e})" for seed, much in lost.items())
        text += f"\n\nProblems in which a level above gains without those below it: {shown}."
    bars = [
        ("upper levels alone gain at most 1e-6 of the reach from the answer", not lost),
        (f"no limit is violated: {beyond:.0e}", beyond <= 1e-9),
    ]
    return _report("full_body_law", "Full body: strict priorities on trial, goals of every kind", text, bars)


def _report(name: str, what: str, text: str, bars: list[tuple[str, bool]]) -> bool:
    """Print and keep a table with its bars."""
    said, held = verdicts(bars)
    save(name, what, {"bars": [[b, bool(h)] for b, h in bars]}, f"{text}\n\n{said}".rstrip(), WHERE)
    return held


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["g1", "character", "edge", "levels", "reasons", "law"])
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--harness")
    parser.add_argument("--venvs")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--notes")
    chosen = parser.parse_args()
    WHERE = machine()
    sys.exit(0 if globals()[chosen.part](chosen) else 1)
