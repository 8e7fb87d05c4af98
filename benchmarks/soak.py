"""Random problems against the promises on every answer: inside the limits, finite, honest status, same bits in a batch.

    python benchmarks/soak.py --solves 100000 --seed 1 --models all

Block k of a seed is always the same problems, so a failure comes back with ``--seed S --block K``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import data_folder, machine, table

import synovia as sy
from synovia.errors import SynoviaError
from synovia.kernels.tables import clamp_rows, random_rows, violations
from synovia.skeleton import Kind
from synovia.skeleton.pose import world_frames
from synovia.solver import Solver
from synovia.solver import solvers as every_solver

# those for any joints; the others leave joints still, so that targets of whole poses are no promise that they break
solvers = {name: kind for name, kind in every_solver.items() if kind.narrow is Solver.narrow}
# every model meets each solver in five blocks of 100 for each block of the one that takes ten times as long
DEAL = [name for name in solvers for _ in range(1 if name == "full-body" else 5)]
BLOCK = 100
SLACK = 1e-9  # beyond a limit
GOALS = (sy.PositionGoal, sy.RotationGoal, sy.PoseGoal)
POSES = ("random", "rest", "limits", "folded")  # targets made by forward kinematics
OTHERS = ("far", "edge", "root", "anywhere")  # targets that may be out of reach
STARTS = ("rest", "random", "limits", "outside", "answer")
FAILURES = ("limit", "false reached", "not finite", "false unreachable", "not unit", "batch differs", "error")
SHOWN = 20  # failures with a full reproducer


@dataclass
class Case:
    """One block of problems."""

    model: str  # the expression that makes the skeleton
    ik: sy.IK
    targets: dict[str, np.ndarray]
    frames: np.ndarray  # (B, goals, 4, 4)
    starts: np.ndarray
    reachable: np.ndarray  # made by forward kinematics


def odd() -> sy.Skeleton:
    """Return a tree of what the files lack: slides, coupled joints, bones of no length, narrow limits."""

    def at(*point: float) -> np.ndarray:
        T = np.eye(4)
        T[:3, 3] = point
        return T

    narrow = sy.SwingTwist(x=(0.01, 0.02), y=(0.3, 1.2), twist=(-0.05, 0.5))
    joints = [
        sy.Joint("rail", kind=Kind.SLIDE, axis=(1, 0, 0), limit=sy.Interval(-0.5, 2.0)),
        sy.Joint("turn", "rail", Kind.HINGE, axis=(0, 0, 1)),
        sy.Joint("lift", "turn", Kind.SLIDE, at(0, 0, 1), axis=(0, 0, 1), limit=sy.Interval(0.1, 0.9)),
        sy.Joint("lift2", "lift", Kind.SLIDE, axis=(0, 0, 1), mimic=sy.Mimic("lift", -0.5, 0.2)),
        sy.Joint("held", "lift2", Kind.HINGE, at(1, 0, 0), axis=(0, 1, 0), limit=sy.Interval(0.3, 0.3)),
        sy.Joint("neck", "held", Kind.BALL, at(1, 0, 0), limit=narrow),
        sy.Joint("finger", "neck", Kind.HINGE, at(0.5, 0, 0), axis=(0, 1, 0), limit=sy.Interval(-1.0, 2.0)),
        sy.Joint(
            "finger2",
            "finger",
            Kind.HINGE,
            axis=(0, 1, 0),
            mimic=sy.Mimic("finger", 0.5, binds=True),
            limit=sy.Interval(-0.2, 2),
        ),
        sy.Joint(
            "finger3", "finger2", Kind.HINGE, axis=(1, 0, 0), mimic=sy.Mimic("finger", -1.5), limit=sy.Interval(0, 0.1)
        ),
        sy.Joint("tip", "finger3", rest=at(0.3, 0, 0), tip=True),
        sy.Joint("loose", "turn", Kind.FREE, at(0, 1, 0)),
        sy.Joint("arm", "loose", Kind.BALL, at(0, 1, 0)),
        sy.Joint("end", "arm", rest=at(0, 1, 0), tip=True),
    ]
    return sy.Skeleton(joints, name="odd")


def models(which: str, folder: Path) -> list[tuple[str, sy.Skeleton]]:
    """Return the skeletons, each with the expression that makes it."""
    out = [(f"sy.bundled({name!r})", sy.bundled(name)) for name in sy.bundled_names()]
    out.append(("__import__('soak').odd()", odd()))
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


def quaternions(rng: np.random.Generator, n: int) -> np.ndarray:
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


class Poses:
    """Joint values of one skeleton, free joints placed the same for start and target where they are held."""

    def __init__(self, skeleton: sy.Skeleton, root: str, rng: np.random.Generator) -> None:
        self.skeleton, self.rng = skeleton, rng
        t = skeleton.tables
        self.table, self.limits = t.variables, t.limits
        moving = np.array([skeleton.joints[row].kind is not Kind.FREE for row in t.owner], bool)
        self.own = np.ascontiguousarray(t.variables[moving]), np.ascontiguousarray(t.limits[moving])
        self.turns = t.variables[t.variables[:, 0] == 1, 1]
        self.free = [(row, int(t.ints[row, 2])) for row, j in enumerate(skeleton.joints) if j.kind is Kind.FREE]
        self.root = root
        self.size = skeleton.size or 1.0
        self.placed = {
            at: np.concatenate([rng.normal(size=3) * self.size, quaternions(rng, 1)[0]]) for _, at in self.free
        }

    def _is_root(self, row: int) -> bool:
        above = self.skeleton.parents[row]
        while above >= 0:
            if self.skeleton.joints[above].kind is not Kind.FIXED:
                return False
            above = self.skeleton.parents[above]
        return True

    def __call__(self, kind: str, n: int) -> np.ndarray:
        """Return n rows of joint values of one kind."""
        rng = self.rng
        q = np.repeat(self.skeleton.rest_q[None], n, axis=0)
        scalars = self.own[0][self.own[0][:, 0] == 0, 1]
        if kind in ("random", "outside"):
            random_rows(*self.own, q, int(rng.integers(2**31)), np.empty(1, np.uint64))
        if kind == "outside":
            q[:, scalars] += rng.normal(size=(n, len(scalars))) * 3.0
        if kind in ("outside", "limits"):
            for at in self.turns:
                q[:, at : at + 4] = quaternions(rng, n)
        if kind == "limits":
            q[:, scalars] += rng.choice([-1e3, 1e3], size=(n, len(scalars)))
            unlimited = scalars[~np.isfinite(self.own[1][self.own[0][:, 0] == 0, :2]).all(axis=1)]
            q[:, unlimited] = rng.choice([-np.pi, 0.0, np.pi], size=(n, len(unlimited)))
        if kind == "folded":
            low, high = self.skeleton.limits
            ends = np.where(-low[scalars] > high[scalars], low[scalars], high[scalars])
            q[:, scalars] = np.where(np.isfinite(ends), ends, np.pi)
            for at in self.turns:
                q[:, at : at + 4] = np.sin(0.495 * np.pi), 0.0, 0.0, np.cos(0.495 * np.pi)
        for row, at in self.free:
            moves = self._is_root(row) and self.root == "free"
            if moves:
                q[:, at : at + 3] = rng.normal(size=(n, 3)) * self.size
            else:
                q[:, at : at + 3] = self.placed[at][:3]
            held = self._is_root(row) and not moves
            q[:, at + 3 : at + 7] = self.placed[at][3:] if held else quaternions(rng, n)
        if kind != "outside":
            clamp_rows(self.table, self.limits, q)
        return self.skeleton.follow(q)


def goal_frames(ik: sy.IK, q: np.ndarray) -> np.ndarray:
    """Return where the goals' frames are, (B, goals, 4, 4)."""
    rows = world_frames(ik.skeleton, np.ascontiguousarray(q))[:, list(ik.rows)]
    out = np.zeros((*rows.shape[:2], 4, 4))
    out[..., :3, :3] = rows[..., :9].reshape(*rows.shape[:2], 3, 3)
    out[..., :3, 3] = rows[..., 9:]
    out[..., 3, 3] = 1.0
    return out @ np.array([goal.offset for goal in ik.goals])


def make_case(k: int, seed: int, known: list[tuple[str, sy.Skeleton]]) -> Case:
    """Return block k of a seed."""
    rng = np.random.default_rng([seed, k])
    model, skeleton = known[k // len(DEAL) % len(known)]
    solver = solvers[DEAL[k % len(DEAL)]]
    root = "free" if rng.random() < 0.25 else "fixed"
    goals = []
    for g in range(int(rng.choice([1, 2, 3], p=[0.6, 0.25, 0.15]))):
        offset = rng.normal(size=3) * 0.1 * (skeleton.size or 1.0) if rng.random() < 0.2 else None
        tips = [row for row, below in enumerate(skeleton.children) if not below]
        joint = int(rng.choice(tips)) if rng.random() < 0.6 else int(rng.integers(len(skeleton)))
        weight = float(rng.choice([1.0, 1.0, 0.01, 30.0]))
        goals.append(GOALS[rng.integers(3)](joint, offset=offset, weight=weight, name=f"g{g}"))
    attempts = int(rng.choice([1, 2, 8, solver().attempts], p=[0.4, 0.3, 0.2, 0.1]))
    settings = solver(attempts=attempts, seed=int(rng.integers(1000)))
    ik = sy.IK(skeleton, goals, settings, root=root)
    tight = 10.0 ** rng.uniform(-6, -3)
    ik = sy.IK(skeleton, goals, settings, root=root, tolerance=(tight * ik.reach, tight))

    poses = Poses(ik.skeleton, root, rng)
    kinds = rng.choice(POSES + OTHERS, size=BLOCK, p=[0.4, 0.06, 0.12, 0.06, 0.09, 0.09, 0.06, 0.12])
    truth = np.empty((BLOCK, ik.skeleton.nq))
    starts = np.empty_like(truth)
    for kind in POSES + OTHERS:
        rows = np.flatnonzero(kinds == kind)
        truth[rows] = poses(kind if kind in POSES else "random", len(rows))
    begin = rng.choice(STARTS, size=BLOCK, p=[0.3, 0.3, 0.15, 0.2, 0.05])
    for kind in STARTS:
        rows = np.flatnonzero(begin == kind)
        starts[rows] = truth[rows] if kind == "answer" else poses(kind, len(rows))
    frames = goal_frames(ik, truth)
    bases = goal_frames(ik, starts)
    for b in np.flatnonzero(np.isin(kinds, OTHERS)):
        for g, row in enumerate(ik.rows):
            above = row
            while ik.skeleton.parents[above] >= 0:
                above = ik.skeleton.parents[above]
            origin = world_frames(ik.skeleton, starts[b : b + 1])[0, above, 9:]
            way = rng.normal(size=3)
            way /= np.linalg.norm(way)
            frames[b, g, :3, 3] = {
                "far": origin + way * ik.reach * 10.0 ** rng.uniform(0.1, 6.0),
                "edge": origin + way * ik.reach * (1.0 + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-9, -2)),
                "root": origin,
                "anywhere": bases[b, g, :3, 3] + rng.normal(size=3) * ik.reach,
            }[str(kinds[b])]
    parts = {1: np.s_[:, :3, 3], 2: np.s_[:, :3, :3], 3: np.s_[:, :, :]}
    targets = {f"g{g}": np.ascontiguousarray(frames[:, g][parts[goal.what]]) for g, goal in enumerate(goals)}
    return Case(model, ik, targets, frames, starts, np.isin(kinds, POSES))


def misses(case: Case, q: np.ndarray) -> np.ndarray:
    """Return which rows miss a goal by forward kinematics, (B,), with room for rounding."""
    out = np.zeros(len(q), bool)
    found = goal_frames(case.ik, q)
    length, angle = case.ik.tolerance
    for g, goal in enumerate(case.ik.goals):
        F, T = found[:, g], case.frames[:, g]
        if goal.what & 1:
            away = np.linalg.norm(F[:, :3, 3] - T[:, :3, 3], axis=1)
            size = np.abs(T[:, :3, 3]).max(axis=1) + np.abs(F[:, :3, 3]).max(axis=1) + case.ik.reach
            out |= ~(away <= length * (1 + 1e-9) + 1e-13 * size)
        if goal.what & 2:
            R = np.swapaxes(F[:, :3, :3], 1, 2) @ T[:, :3, :3] - np.eye(3)
            turned = 2.0 * np.arcsin(np.minimum(np.linalg.norm(R, axis=(1, 2)) / np.sqrt(8.0), 1.0))
            out |= ~(turned <= angle * (1 + 1e-9) + 1e-13 * len(case.ik.skeleton))
    return out


def check(case: Case, answers: sy.Solutions) -> dict[str, np.ndarray]:
    """Return the rows that break each promise."""
    ik, q, status = case.ik, answers.q, answers.status
    low, high = np.full((2, ik.skeleton.nq), [[-np.inf], [np.inf]])
    for row, joint in enumerate(ik.skeleton.joints):
        if isinstance(joint.limit, sy.Interval) and (joint.mimic is None or joint.mimic.binds):
            low[ik.skeleton.q_slice(row)], high[ik.skeleton.q_slice(row)] = joint.limit.lower, joint.limit.upper
    worst, where = np.empty(len(q)), np.empty(len(q), np.int64)
    violations(ik.skeleton.tables.variables, ik.skeleton.tables.limits, q, worst, where)
    turns = ik.skeleton.tables.variables[ik.skeleton.tables.variables[:, 0] == 1, 1]
    length = np.array([np.linalg.norm(q[:, at : at + 4], axis=1) for at in turns]).reshape(len(turns), len(q))
    finite = np.isfinite(q).all(axis=1) & np.isfinite(answers.errors).all(axis=(1, 2))
    inside = ((q >= low - SLACK) & (q <= high + SLACK)).all(axis=1) & (worst <= SLACK)
    found = {
        "not finite": ~finite,
        "limit": ~inside & finite,
        "not unit": (np.abs(length - 1.0) > 1e-9).any(axis=0),
        "false reached": (status == sy.Status.REACHED) & misses(case, q),
        "false unreachable": (status == sy.Status.UNREACHABLE) & case.reachable,
    }
    b = int(np.argmax(answers.steps))  # the longest way round shows differences best
    single = ik.solve({key: value[b] for key, value in case.targets.items()}, start=case.starts[b])
    same = np.array_equal(single.pose.q, q[b], equal_nan=True) and single.status == status[b]
    found["batch differs"] = (np.arange(len(q)) == b) & (not same)
    return {name: np.flatnonzero(rows) for name, rows in found.items()}


def reproducer(case: Case, b: int) -> str:
    """Return Python text that solves one problem again."""
    goals = ", ".join(
        f"sy.{type(g).__name__}({g.joint}, offset=np.array({g.offset.tolist()}), weight={g.weight}, name={g.name!r})"
        for g in case.ik.goals
    )
    targets = ", ".join(f"{key!r}: np.array({value[b].tolist()})" for key, value in case.targets.items())
    return (
        "import numpy as np, synovia as sy\n"
        f"ik = sy.IK({case.model}, [{goals}], sy.{case.ik.solver!r},\n"
        f"    tolerance={case.ik.tolerance}, root={case.ik.root!r})\n"
        f"solution = ik.solve({{{targets}}}, start=np.array({case.starts[b].tolist()}))\nprint(solution)\n"
    )


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
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    known = models(args.models, args.data)
    blocks = range(-(-args.solves // BLOCK)) if args.block is None else [args.block]
    counts: dict[str, Counter[str]] = {name: Counter() for name in solvers}
    failed: Counter[str] = Counter()
    slowest = (0.0, "")
    shown = 0
    compiling = compile_kernels()
    began = said = time.perf_counter()
    for k in blocks:
        name = DEAL[k % len(DEAL)]
        case = None
        again = f"--seed {args.seed} --models {args.models} --block {k}"
        try:
            case = make_case(k, args.seed, known)
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
