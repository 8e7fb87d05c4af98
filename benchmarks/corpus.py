"""A corpus of answers, and what got worse between two of them: every solver on many bodies and kinds of goals.

    python benchmarks/corpus.py make before.npz                     # about 10^4 problems, on all cores
    python benchmarks/corpus.py make before.npz --solvers lm ccd --bodies arm7 --problems 1000 --add
    python benchmarks/corpus.py make before.npz --clips edit live   # some whole clips alone; without names all
    python benchmarks/corpus.py compare before.npz after.npz
    python benchmarks/corpus.py compare before.npz after.npz --bits # also answers that are as good, but others
    python benchmarks/corpus.py show lm arm7 pose 0.17              # solves one problem again, and tells all of it

Run ``make`` in a checkout of the old version and in one of the new (``PYTHONPATH=CHECKOUT/src`` picks the package, so
the same script serves both). Problems come from seeds by NumPy alone and are the same for all solvers; targets are
rounded, so that they are the same on every processor, and each has a fingerprint: what the package itself makes of a
body (its forward kinematics, its limits) may change, and then a problem is named as another one instead of being
compared.

Kept are, for each problem or frame, status, errors of each goal, how far beyond a limit the answer is (measured by
NumPy), and the joint values. Two poses can be equally good, so joint values count with ``--bits`` only: then each
answer that is not the same bit for bit is listed, and is a failure. ``sequences.py`` has what is followed over time:
tracks, pursuits and a servo for each solver, edits, retargeted and live clips.

``compare`` ends with 1 if a limit is broken or an exception came that was not there, if a status contradicts the
other's proof, or if a solver got worse on more problems than better by more than chance (a sign test at 1 %).
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from common import data_folder, table
from draws import joint_values, size_of
from sequences import CLIPS, TRACKED, Frames, pursued, served, way_between

import synovia as sy
from synovia.errors import SynoviaError

SEED = 1
VARIANTS = 3  # choices of joints for each kind of problem on a body
PROBLEMS = 50  # for each solver and body, over all kinds that it takes
GOALS = 5  # goals that have room in a row
TOLERANCE = (1e-4, 1e-3)  # of the body's size; radians
# The first that is better. Which of conflict and limits held a pose back is no matter of better or worse.
RANK = {
    "REACHED": 0, "UNREACHABLE": 1, "CONFLICT": 2, "LIMITED": 2, "STALLED": 3, "MAX_STEPS": 4, "ERROR": 5,
    "LATE": 2, "HOLDING": 2,
}  # fmt: skip
NAMES = tuple(RANK)
SLACK = 1e-9


# --- bodies ---------------------------------------------------------------------------------------------------------


def bodies(data: Path) -> dict[str, str]:
    """Return the bodies by name: bundled ones, a plain chain, and the files of a folder of models."""
    out = dict.fromkeys(("arm7", "humanoid", "quadruped"), "bundled") | {"chain8": "chain"}
    for path in sorted(data.rglob("*")) if data.is_dir() else []:
        if path.suffix.lower() in (".urdf", ".xml", ".gltf", ".glb", ".bvh") and "edge" not in path.parent.name:
            out[path.name] = str(path)
    return out


def load(name: str, where: str) -> Any:
    """Return a skeleton."""
    if where == "bundled":
        return sy.bundled(name)
    if where == "chain":
        return sy.Skeleton.chain([(0.05 * k * k, float(k), 0.0) for k in range(9)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sy.load_skeleton(where)


def number(word: str) -> int:
    return zlib.crc32(word.encode())


class Body:
    """A skeleton, and the joints that problems are about."""

    def __init__(self, name: str, skeleton: Any) -> None:
        """Find ends and limbs."""
        self.name, self.skeleton = name, skeleton
        self.size = size_of(skeleton)
        kinds = [joint.kind.name for joint in skeleton.joints]
        parents = list(skeleton.parents)
        self.parents, self.kinds = parents, kinds
        moved = []  # number of moving joints above each row, itself included; free roots stay
        for row, parent in enumerate(parents):
            moves = kinds[row] in ("HINGE", "SLIDE", "BALL") and skeleton.joints[row].mimic is None
            moved.append(int(moves) + (moved[parent] if parent >= 0 else 0))
        leaves = set(range(len(parents))) - set(parents)
        self.ends = [row for row in sorted(leaves) if moved[row] >= 2] or [
            max(range(len(parents)), key=moved.__getitem__)
        ]
        self.middles = [row for row in range(len(parents)) if moved[row] >= 2 and row not in leaves] or self.ends
        self.scalars = [
            row for row in range(len(parents)) if kinds[row] == "HINGE" and skeleton.joints[row].mimic is None
        ]
        above = {parents[row] for row in self.ends if parents[row] >= 0 and moved[parents[row]] >= 2}
        self.ends_or_above = sorted({*self.ends, *above})  # hands above fingers too, which closed forms are made for
        self.heavy = any(joint.mass > 0.0 for joint in skeleton.joints)

    def limb(self, end: int) -> tuple[int, int, int] | None:
        """Return root, middle and tip of the limb that ends at a row: its two nearest moving joints above."""
        found, row = [], self.parents[end]
        while row >= 0 and len(found) < 2:
            far = np.linalg.norm(self.skeleton.rest_pose().positions[row] - self.skeleton.rest_pose().positions[end])
            if self.kinds[row] in ("HINGE", "BALL") and far > 1e-6 * self.size:
                found.append(row)
            row = self.parents[row]
        return (found[1], found[0], end) if len(found) == 2 else None


# --- problems -------------------------------------------------------------------------------------------------------


@dataclass
class Problem:
    """A kind of problem on chosen joints: goals, and their targets, given the pose that they are drawn from."""

    goals: list[Any]
    targets: Callable[[Any, np.random.Generator], dict[str, np.ndarray]]
    root: str = "fixed"


def position(body: Body, rng: np.random.Generator) -> Problem:
    row = int(rng.choice(body.ends_or_above))
    return Problem([sy.PositionGoal(row, name="a")], lambda pose, _: {"a": pose.positions[row]})


def rotation(body: Body, rng: np.random.Generator) -> Problem:
    row = int(rng.choice(body.ends_or_above))
    return Problem([sy.RotationGoal(row, name="a")], lambda pose, _: {"a": pose.transform(row)[:3, :3]})


def whole(body: Body, rng: np.random.Generator) -> Problem:
    row = int(rng.choice(body.ends_or_above))
    return Problem([sy.PoseGoal(row, name="a")], lambda pose, _: {"a": pose.transform(row)})


def far(body: Body, rng: np.random.Generator) -> Problem:
    row = int(rng.choice(body.ends_or_above))

    def targets(pose: Any, draw: np.random.Generator) -> dict[str, np.ndarray]:
        way = draw.normal(size=3)
        root = body.skeleton.rest_pose().positions[0]
        return {"a": root + way / np.linalg.norm(way) * draw.uniform(0.2, 1.5) * body.size}

    return Problem([sy.PositionGoal(row, name="a")], targets)


def _two(body: Body, rng: np.random.Generator) -> tuple[int, int] | None:
    pool = body.ends if len(body.ends) > 1 else sorted({*body.ends, *body.middles})
    if len(pool) < 2:
        return None
    a, b = rng.choice(pool, 2, replace=False)
    return int(a), int(b)


def ends(body: Body, rng: np.random.Generator) -> Problem | None:
    if len(body.ends) < 2:
        return None
    rows = [int(row) for row in rng.choice(body.ends, min(len(body.ends), 4), replace=False)]
    goals = [sy.PositionGoal(row, name=f"e{i}") for i, row in enumerate(rows)]
    return Problem(goals, lambda pose, _: {f"e{i}": pose.positions[row] for i, row in enumerate(rows)})


def free(body: Body, rng: np.random.Generator) -> Problem | None:
    made = ends(body, rng)
    return None if made is None else Problem(made.goals, made.targets, root="free")


def levels(body: Body, rng: np.random.Generator) -> Problem | None:
    two = _two(body, rng)
    if two is None:
        return None
    goals = [sy.PositionGoal(two[0], name="a"), sy.PositionGoal(two[1], name="b", priority=1)]

    def targets(pose: Any, draw: np.random.Generator) -> dict[str, np.ndarray]:
        aside = draw.normal(size=3) * 0.2 * body.size  # mostly not both
        return {"a": pose.positions[two[0]], "b": pose.positions[two[1]] + aside}

    return Problem(goals, targets)


def aim(body: Body, rng: np.random.Generator) -> Problem:
    row = int(rng.choice([*body.ends, *body.middles]))
    axis = rng.normal(size=3)

    def targets(pose: Any, draw: np.random.Generator) -> dict[str, np.ndarray]:
        way = draw.normal(size=3)
        return {"a": pose.positions[row] + 2.0 * body.size * way / np.linalg.norm(way)}

    return Problem([sy.AimGoal(row, axis=np.round(axis, 6), name="a")], targets)


def pole(body: Body, rng: np.random.Generator) -> Problem | None:
    limb = body.limb(int(rng.choice(body.ends_or_above)))
    if limb is None:
        return None
    root, middle, tip = limb
    goals = [sy.PositionGoal(tip, name="a"), sy.PoleGoal(middle, root=root, tip=tip, name="p")]

    def targets(pose: Any, draw: np.random.Generator) -> dict[str, np.ndarray]:
        way = draw.normal(size=3) * 0.5 * body.size
        return {"a": pose.positions[tip], "p": pose.positions[middle] + way}

    return Problem(goals, targets)


def distance(body: Body, rng: np.random.Generator) -> Problem | None:
    two = _two(body, rng)
    if two is None:
        return None
    gap = round(float(rng.uniform(0.1, 0.6)) * body.size, 6)
    goals = [
        sy.PositionGoal(two[0], name="a"),
        sy.DistanceGoal(two[1], two[0], minimum=gap, maximum=1.5 * gap, name="d"),
    ]
    return Problem(goals, lambda pose, _: {"a": pose.positions[two[0]]})


def plane(body: Body, rng: np.random.Generator) -> Problem:
    row = int(rng.choice(body.ends))
    normal = np.round(rng.normal(size=3), 6)
    goals = [sy.PlaneGoal(row, normal=normal, name="a"), sy.RotationGoal(row, name="r")]
    return Problem(goals, lambda pose, _: {"a": pose.positions[row], "r": pose.transform(row)[:3, :3]})


def balance(body: Body, rng: np.random.Generator) -> Problem | None:
    if not body.heavy:
        return None
    row = int(rng.choice(body.ends))
    shift = np.round(rng.normal(size=3) * 0.02 * body.size, 6)
    rest = body.skeleton.rest_pose()
    weights = np.array([joint.mass for joint in body.skeleton.joints])
    centres = np.array(
        [rest.transform(i)[:3, :3] @ j.com + rest.positions[i] for i, j in enumerate(body.skeleton.joints)]
    )
    centre = np.round(weights @ centres / weights.sum() + shift, 6)
    goals = [sy.PositionGoal(row, name="a"), sy.CenterOfMassGoal(centre, name="c")]
    return Problem(goals, lambda pose, _: {"a": pose.positions[row]})


def rest(body: Body, rng: np.random.Generator) -> Problem:
    row = int(rng.choice(body.ends))
    goals = [sy.PositionGoal(row, name="a"), sy.RestGoal(weight=round(float(rng.uniform(1e-4, 1e-2)), 6))]
    return Problem(goals, lambda pose, _: {"a": pose.positions[row]})


def relative(body: Body, rng: np.random.Generator) -> Problem | None:
    two = _two(body, rng)
    if two is None:
        return None

    def targets(pose: Any, draw: np.random.Generator) -> dict[str, np.ndarray]:
        T = pose.transform(two[1])
        return {"a": T[:3, :3].T @ (pose.positions[two[0]] - T[:3, 3])}

    return Problem([sy.RelativeGoal(*two, parts="position", name="a")], targets)


def bounded(body: Body, rng: np.random.Generator) -> Problem | None:
    if not body.scalars:
        return None
    row, joint = int(rng.choice(body.ends)), int(rng.choice(body.scalars))
    limit = body.skeleton.joints[joint].limit
    low, high = (-1.0, 1.0) if limit is None else (max(limit.lower, -3.0), min(limit.upper, 3.0))
    if not high - low > 1e-3:
        return None
    goals = [
        sy.PositionGoal(row, name="a"),
        sy.RangeGoal(joint, round(low + 0.3 * (high - low), 6), round(low + 0.6 * (high - low), 6), name="r"),
    ]
    return Problem(goals, lambda pose, _: {"a": pose.positions[row]})


def contact(body: Body, rng: np.random.Generator) -> Problem | None:
    two = _two(body, rng)
    if two is None:
        return None
    goals = [sy.ContactGoal(two[0], keep="normal", name="c"), sy.PositionGoal(two[1], name="a")]

    def targets(pose: Any, draw: np.random.Generator) -> dict[str, np.ndarray]:
        T = body.skeleton.rest_pose().transform(two[0]).copy()
        T[:3, 3] = pose.positions[two[0]]
        return {"c": T, "a": pose.positions[two[1]]}

    return Problem(goals, targets)


SORTS: dict[str, Callable[[Body, np.random.Generator], Problem | None]] = {
    "position": position, "rotation": rotation, "pose": whole, "far": far, "ends": ends, "free": free,
    "levels": levels, "aim": aim, "pole": pole, "distance": distance, "plane": plane, "balance": balance,
    "rest": rest, "relative": relative, "range": bounded, "contact": contact,
}  # fmt: skip


def rounded(value: np.ndarray, size: float) -> np.ndarray:
    """Return a target whose last digits do not hang on the processor; a rotation stays one to 1e-9."""
    value = np.array(value, dtype=float)
    if value.shape == (3,):
        return np.round(value / size, 9) * size
    value[:3, :3] = np.round(value[:3, :3], 11)
    if value.shape == (4, 4):
        value[:3, 3] = np.round(value[:3, 3] / size, 9) * size
    return value


def draw(body: Body, sort: str, variant: int, count: int) -> tuple[Problem, dict[str, np.ndarray], np.ndarray] | None:
    """Return the problem on the joints of a variant, targets of ``count`` problems by name, and their starts."""
    problem = SORTS[sort](body, np.random.default_rng([SEED, number(body.name), number(sort), variant]))
    if problem is None:
        return None
    targets: dict[str, list[np.ndarray]] = defaultdict(list)
    starts = []
    for k in range(count):
        rng = np.random.default_rng([SEED, number(body.name), number(sort), variant, k])
        q = np.round(joint_values(body.skeleton, rng, 2), 12)
        for name, value in problem.targets(sy.Pose(body.skeleton, q[0]), rng).items():
            targets[name].append(rounded(value, body.size))
        starts.append(body.skeleton.rest_pose().q if k % 2 else q[1])
    return problem, {name: np.array(values) for name, values in targets.items()}, np.array(starts)


def fingerprints(targets: dict[str, np.ndarray], starts: np.ndarray, size: float) -> np.ndarray:
    """Return a number for each problem that tells whether it is the same one, (B,)."""
    rows = []
    for b in range(len(starts)):
        # coarser than the targets are rounded, so that a last digit makes no other problem of it
        parts = [np.round(targets[name][b] / size, 6) + 0.0 for name in sorted(targets)] + [
            np.round(starts[b], 6) + 0.0
        ]
        rows.append(zlib.crc32(b"".join(part.tobytes() for part in parts)))
    return np.array(rows, np.uint32)


# --- answers --------------------------------------------------------------------------------------------------------


def beyond(skeleton: Any, q: np.ndarray) -> np.ndarray:
    """Return how far each row is beyond its worst limit (radians or length units), by NumPy, (B,)."""
    worst = np.zeros(len(q))
    for row, joint in enumerate(skeleton.joints):
        at, kind, limit = skeleton.q_slice(row), joint.kind.name, joint.limit
        if limit is None or joint.mimic is not None:
            continue
        if kind in ("HINGE", "SLIDE"):
            x = q[:, at][:, 0]
            worst = np.fmax(worst, np.fmax(limit.lower - x, x - limit.upper))
            continue
        turn = q[:, at][:, -4:]
        frame = np.asarray(limit.frame)
        v, w = turn[:, :3] @ frame, turn[:, 3]
        twist = 2.0 * np.arctan2(v[:, 2], w)
        twist = (twist + np.pi) % (2.0 * np.pi) - np.pi
        length = np.hypot(v[:, 2], w)
        # swing = q · twist⁻¹: its rotation vector is normal to the bone
        c, s = (
            np.where(length > 0, w, 1.0) / np.where(length > 0, length, 1.0),
            v[:, 2] / np.where(length > 0, length, 1.0),
        )
        sx, sy_ = v[:, 0] * c - v[:, 1] * s, v[:, 1] * c + v[:, 0] * s
        across = np.hypot(sx, sy_)
        angle = 2.0 * np.arctan2(across, length)
        unit = np.where(across > 0, across, 1.0)
        x, y = sx / unit * angle, sy_ / unit * angle
        a = np.maximum(np.where(x < 0.0, limit.x[0], limit.x[1]), 1e-9)
        b = np.maximum(np.where(y < 0.0, limit.y[0], limit.y[1]), 1e-9)
        # along its own direction: how far the swing goes beyond the ellipse
        out = angle * (1.0 - 1.0 / np.maximum(np.hypot(x / a, y / b), 1e-300))
        turned = np.fmax(limit.twist[0] - twist, twist - limit.twist[1])
        near_pi = np.abs(np.abs(twist) - np.pi) < 1e-9  # both names of half a turn
        worst = np.fmax(worst, np.fmax(out, np.where(near_pi, 0.0, turned)))
    return np.where(np.isnan(q).any(axis=1), np.nan, worst)


def answer(task: tuple[str, str, str, tuple[str, ...], int]) -> list[dict[str, Any]]:
    """Return the answers of one solver on one body, a block for each kind and choice of joints."""
    name, where, solver, sorts, problems = task
    try:
        body = Body(name, load(name, where))
    except SynoviaError as error:
        return [{"solver": solver, "body": name, "sort": "", "refused": f"cannot be read: {error}"[:200]}]
    out: list[dict[str, Any]] = []
    taken: list[dict[str, Any]] = []
    for sort in sorts:
        for variant in range(VARIANTS):
            block: dict[str, Any] = {"solver": solver, "body": name, "sort": sort, "variant": variant}
            drawn = draw(body, sort, variant, 1)
            try:
                if drawn is not None:
                    built(body, solver, drawn[0])
                    taken.append(block)
            except SynoviaError as error:
                block["refused"] = f"{type(error).__name__}: {error}"[:200]
                out.append(block)
    for i, block in enumerate(taken):
        if block["variant"] == 0 and block["sort"] in TRACKED and problems >= len(taken):
            out += followed(body, solver, block)
        count = len(range(i, problems, len(taken)))
        drawn = draw(body, block["sort"], block["variant"], count)
        if count and drawn is not None:
            out.append(block | solved(body, solver, *drawn))
    return out


def built(body: Body, solver: str, problem: Problem) -> Any:
    settings = sy.Hinges(joints=2) if solver == "hinges" else solver
    tolerance = (TOLERANCE[0] * body.size, TOLERANCE[1])
    return sy.IK(body.skeleton, problem.goals, settings, tolerance=tolerance, root=problem.root)


def solved(
    body: Body, solver: str, problem: Problem, targets: dict[str, np.ndarray], starts: np.ndarray
) -> dict[str, Any]:
    """Return the answers of many problems as arrays."""
    n = len(starts)
    ik = built(body, solver, problem)
    status, errors = np.full(n, NAMES.index("ERROR"), np.uint8), np.full((n, GOALS, 2), np.nan, np.float32)
    broken, words = np.full(n, np.nan, np.float32), ""
    try:
        blocks = [(slice(None), ik.solve_many(targets, starts, threads=1))]
    except Exception:  # noqa: BLE001 - find out which one it is
        blocks = []
        for b in range(n):
            try:
                one = ik.solve_many({name: some[b : b + 1] for name, some in targets.items()}, starts[b : b + 1])
                blocks.append((slice(b, b + 1), one))
            except Exception as error:  # noqa: BLE001 - whatever comes out is an answer to keep
                words = f"{type(error).__name__}: {error}"
    q = np.full((n, ik.skeleton.nq), np.nan)
    for rows, many in blocks:
        status[rows] = [NAMES.index(sy.Status(int(s)).name) for s in many.status]
        found = many.errors / [body.size, 1.0]
        errors[rows, : found.shape[1]] = found[:, :GOALS]
        broken[rows], q[rows] = beyond(ik.skeleton, many.q), many.q
    return {
        "status": status, "errors": errors, "broken": broken, "q": q, "goals": len(problem.goals), "words": words,
        "prints": fingerprints(targets, starts, body.size), "priorities": [int(g.priority) for g in problem.goals],
    }  # fmt: skip


def followed(body: Body, solver: str, block: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the frames of a track, of a pursuit and of a servo for a kind of problem."""
    problem = draw(body, block["sort"], 0, 1)
    if problem is None:
        return []
    rng = np.random.default_rng([SEED, number(body.name), number(block["sort"]), VARIANTS])
    poses = way_between(body, *np.round(joint_values(body.skeleton, rng, 2), 12))
    targets: dict[str, list[np.ndarray]] = defaultdict(list)
    for q in poses:
        chosen = problem[0].targets(sy.Pose(body.skeleton, q), np.random.default_rng(SEED))
        for name, value in chosen.items():
            targets[name].append(rounded(value, body.size))
    wanted = {name: np.array(values) for name, values in targets.items()}
    prints = fingerprints(wanted, poses, body.size)

    def tracked(ik: Any) -> Frames:
        many = ik.track(wanted, poses[0])
        return ik.skeleton, many.q, [sy.Status(int(s)).name for s in many.status]

    out = []
    for what, run in (
        ("track", tracked),
        ("pursue", lambda ik: pursued(ik, wanted, poses[0])),
        ("servo", lambda ik: served(ik, wanted, poses[0])),
    ):
        found = as_block(lambda run=run: run(built(body, solver, problem[0])), prints)
        out.append({"solver": solver, "body": body.name, "sort": f"{what} {block['sort']}", "variant": 0} | found)
    return out


def as_block(run: Callable[[], Frames], prints: np.ndarray | None = None) -> dict[str, Any]:
    """Return the frames of a clip as a block; their errors are not kept."""
    try:
        skeleton, q, names = run()
    except SynoviaError as error:
        return {"refused": f"{type(error).__name__}: {error}"[:200]}
    n = len(q)
    marks = np.zeros(n, np.uint32)
    if prints is not None:
        marks[: len(prints)] = prints[:n]
    return {
        "status": np.array([NAMES.index(name) for name in names], np.uint8), "q": np.array(q, float),
        "errors": np.zeros((n, GOALS, 2), np.float32), "broken": beyond(skeleton, q).astype(np.float32),
        "goals": 0, "words": "", "prints": marks, "priorities": [],
    }  # fmt: skip


def clip(task: tuple[str, str]) -> list[dict[str, Any]]:
    """Return the frames of an edit, of a retargeted or of a live clip."""
    kind, name = task
    return [{"solver": kind, "body": name, "sort": "frames", "variant": 0} | as_block(dict(CLIPS[kind]())[name])]


# --- files ----------------------------------------------------------------------------------------------------------


def write(place: Path, blocks: list[dict[str, Any]]) -> None:
    """Write blocks as one compressed file: their heads as JSON, their rows one after the other."""
    full = [block for block in blocks if "status" in block]
    heads = [{k: v for k, v in block.items() if not isinstance(v, np.ndarray)} for block in full]
    for head, block in zip(heads, full, strict=True):
        head["count"], head["nq"] = block["q"].shape
    meta = {
        "version": 2, "seed": SEED, "heads": heads, "refused": [block for block in blocks if "status" not in block],
    }  # fmt: skip
    empty = {"status": (0,), "errors": (0, GOALS, 2), "broken": (0,), "prints": (0,)}
    arrays = {name: np.concatenate([np.empty(shape, np.uint8), *(block[name] for block in full)]) if not full else
              np.concatenate([block[name] for block in full]) for name, shape in empty.items()}  # fmt: skip
    arrays["q"] = np.concatenate([np.empty(0), *(block["q"].ravel() for block in full)])
    fresh = place.with_suffix(".part.npz")
    np.savez_compressed(fresh, meta=np.frombuffer(json.dumps(meta).encode(), np.uint8), **arrays)
    fresh.replace(place)


def read(place: Path) -> tuple[dict[tuple[str, str, str, int], dict[str, Any]], list[dict[str, Any]]]:
    """Return blocks by (solver, body, kind, variant), and what was refused."""
    with np.load(place, allow_pickle=False) as kept:
        meta = json.loads(kept["meta"].tobytes())
        arrays, values_of_all = {name: kept[name] for name in ("status", "errors", "broken", "prints")}, kept["q"]
    if meta["version"] != 2 or meta["seed"] != SEED:
        sys.exit(f"{place}: made by another version of this script")
    out, at, first = {}, 0, 0
    for head in meta["heads"]:
        rows = slice(at, at + head["count"])
        at += head["count"]
        key = (head["solver"], head["body"], head["sort"], head["variant"])
        last = first + head["count"] * head["nq"]
        q = values_of_all[first:last].reshape(head["count"], head["nq"])
        out[key], first = head | {"q": q} | {name: values[rows] for name, values in arrays.items()}, last
    return out, meta["refused"]


def make(args: argparse.Namespace) -> int:
    """Solve, and write the corpus."""
    known = bodies(args.data)
    for name in args.bodies or ():
        if name not in known:
            sys.exit(f"no body named {name!r}: one of {', '.join(known)}")
    chosen = args.solvers or list(sy.solvers)
    sorts = tuple(sort for sort in SORTS if sort in (args.sorts or SORTS))
    tasks = [(name, known[name], solver, sorts, args.problems) for solver in chosen for name in args.bodies or known]
    some = bool(args.solvers or args.bodies or args.sorts)
    wanted = args.clips or (() if some and args.clips is None else CLIPS)
    clips = [(kind, name) for kind in wanted for name, _ in CLIPS[kind]()]
    if args.clips is not None and not some:
        tasks = []
    blocks: list[dict[str, Any]] = []
    if args.add and args.out.exists():
        before, refused = read(args.out)
        blocks = [*before.values(), *refused]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(args.jobs, len(tasks) + len(clips)), context) as pool:
        for k, found in enumerate(chain(pool.map(answer, tasks), pool.map(clip, clips))):
            keys = {(b["solver"], b["body"], b["sort"], b.get("variant")) for b in found}
            blocks = [b for b in blocks if (b["solver"], b["body"], b["sort"], b.get("variant")) not in keys] + found
            count = sum(len(block["status"]) for block in found if "status" in block)
            what = f"{tasks[k][2]} on {tasks[k][0]}" if k < len(tasks) else " ".join(clips[k - len(tasks)])
            print(f"{k + 1} of {len(tasks) + len(clips)}: {what}: {count}", file=sys.stderr, flush=True)
    write(args.out, blocks)
    total = sum(len(block["status"]) for block in blocks if "status" in block)
    print(f"{total} problems in {args.out}, {args.out.stat().st_size / 1e3:.0f} kB")
    return 0


# --- what got worse -------------------------------------------------------------------------------------------------


@dataclass
class Change:
    """One problem whose answer differs."""

    key: tuple[str, str, str, int]
    k: int
    what: str  # "status", "errors", "limits", "contradiction"
    size: float  # above 0: worse
    words: str


def cost_by_level(errors: np.ndarray, priorities: Sequence[int]) -> list[np.ndarray]:
    """Return the error of each level, (levels, B): the root of squares, lengths in sizes of the body; NaN: infinite."""
    squares = np.where(np.isnan(errors), np.inf, errors.astype(float)) ** 2
    return [
        np.sqrt(squares[:, [g for g, p in enumerate(priorities[:GOALS]) if p == level]].sum(axis=(1, 2)))
        for level in sorted(set(priorities))
    ]


def changes(key: tuple[str, str, str, int], old: dict[str, Any], new: dict[str, Any], margin: float) -> list[Change]:
    """Return what differs between two blocks of the same problems."""
    out: list[Change] = []
    n = min(len(old["status"]), len(new["status"]))
    same = old["prints"][:n] == new["prints"][:n]
    levels_ = list(zip(cost_by_level(old["errors"], old["priorities"]), cost_by_level(new["errors"], new["priorities"]),
                       strict=False))  # fmt: skip
    for k in np.flatnonzero(same):
        was, now = NAMES[old["status"][k]], NAMES[new["status"][k]]
        if {was, now} == {"REACHED", "UNREACHABLE"}:
            out.append(Change(key, int(k), "contradiction", 1.0, f"{was} -> {now}"))
        if RANK[now] != RANK[was]:
            out.append(Change(key, int(k), "status", float(RANK[now] - RANK[was]), f"{was} -> {now}"))
        if "REACHED" not in (was, now) and "ERROR" not in (was, now):
            for before, after in levels_:  # the first level that differs decides
                more = after[k] - before[k]
                if not abs(more) <= margin and before[k] != after[k]:
                    out.append(Change(key, int(k), "errors", float(more), f"error {before[k]:.4g} -> {after[k]:.4g}"))
                    break
        out_before, out_after = (float(np.nan_to_num(side["broken"][k], nan=0.0)) for side in (old, new))
        if max(out_before, out_after) > SLACK and (out_before > SLACK) != (out_after > SLACK):
            out.append(
                Change(key, int(k), "limits", out_after - out_before, f"beyond {out_before:.2g} -> {out_after:.2g}")
            )
    return out


def differing(old: dict[str, Any], new: dict[str, Any]) -> np.ndarray:
    """Return by how much each answer to the same problem differs from that of before, (B,); 0: the same bits."""
    n = min(len(old["q"]), len(new["q"]))
    if old["q"].shape[1] != new["q"].shape[1]:
        return np.full(n, np.inf)
    a, b = (np.ascontiguousarray(side["q"][:n]) for side in (old, new))
    other = (a.view(np.uint64) != b.view(np.uint64)).any(axis=1) & (old["prints"][:n] == new["prints"][:n])
    far = np.nan_to_num(np.abs(a - b), nan=np.inf).max(axis=1, initial=0.0)
    return np.where(other, np.maximum(far, 5e-324), 0.0)


def by_chance(worse: int, better: int) -> float:
    """Return how probable at least so many worse among all that changed would be if both were as probable."""
    n = worse + better
    return sum(math.comb(n, k) for k in range(worse, n + 1)) / 2**n


def compare(args: argparse.Namespace) -> int:
    """Print what got worse, by solver and body, and the worst of it with what shows it again."""
    (old, refused_before), (new, refused) = read(args.old), read(args.new)
    keys = [key for key in old if key in new]
    if not keys:
        sys.exit("the two have no problems in common")
    found = [change for key in keys for change in changes(key, old[key], new[key], args.margin)]
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for key in keys:
        n = min(len(old[key]["status"]), len(new[key]["status"]))
        same = old[key]["prints"][:n] == new[key]["prints"][:n]
        tally = counts[key[:2]]
        tally["problems"] += int(same.sum())
        tally["others"] += int((~same).sum())
        for side, name in ((old, "old"), (new, "new")):
            tally[name] += int((side[key]["status"][:n][same] == 0).sum())
    for change in found:
        counts[change.key[:2]][f"{change.what} {'worse' if change.size > 0 else 'better'}"] += 1
    head = [
        "solver, body", "problems", "reached", "now", "status worse", "better", "error worse", "better", "limits",
        "contradictions",
    ]  # fmt: skip
    rows = []
    for (solver, body), c in counts.items():
        n = max(c["problems"], 1)
        rows.append([
            f"{solver}, {body}", c["problems"], f"{c['old'] / n:.1%}", f"{c['new'] / n:.1%}", c["status worse"],
            c["status better"], c["errors worse"], c["errors better"], c["limits worse"], c["contradiction worse"],
        ])  # fmt: skip
    if not args.all:
        rows = [row for row in rows if any(row[4:])]
    print(table(head, rows) if rows else "no answer differs")
    bad = []
    for solver in dict.fromkeys(solver for solver, _ in counts):
        some = [change for change in found if change.key[0] == solver]
        sign: dict[tuple[Any, ...], float] = {}
        for change in some:  # one vote for each problem: its status, else its errors
            if change.what in ("status", "errors"):
                sign.setdefault((change.key, change.k), change.size)
        worse, better = sum(s > 0 for s in sign.values()), sum(s < 0 for s in sign.values())
        if worse and by_chance(worse, better) < 0.01:
            bad.append(f"{solver}: {worse} problems worse, {better} better")
    for what, words in (("limits", "limits broken"), ("contradiction", "one of two statuses must be false")):
        many = [change for change in found if change.what == what and change.size > 0]
        bad += [f"{words}: {len(many)}"] if many else []
    errors = [change for change in found if change.what == "status" and change.words.endswith("> ERROR")]
    bad += [f"exceptions: {len(errors)}"] if errors else []
    told = {(r["solver"], r["body"], r["sort"], r.get("variant")) for r in refused_before}
    gone = [r for r in refused if (r["solver"], r["body"], r["sort"], r.get("variant")) not in told and
            (r["solver"], r["body"], r["sort"], r.get("variant")) in old]  # fmt: skip
    bad += [f"refused now: {len(gone)} kinds of problems, such as {gone[0]['refused']}"] if gone else []
    if args.bits:
        sizes = {key: differing(old[key], new[key]) for key in keys}
        lines = [
            [" ".join(map(str, key)), int((size > 0).sum()), int(np.argmax(size > 0)), f"{size.max():.2g}"]
            for key, size in sizes.items() if (size > 0).any()
        ]  # fmt: skip
        count = sum(len(size) for size in sizes.values())
        print(f"\n{count - sum(line[1] for line in lines)} of {count} answers are the same, bit for bit")
        if lines:
            print(table(["answers with other joint values", "of them", "first", "largest difference"], lines))
            bad.append(f"other joint values: {sum(line[1] for line in lines)}")
        gone = [key for key in old if key not in new]
        bad += [f"answers that are missing: {len(gone)} blocks, such as {' '.join(map(str, gone[0]))}"] if gone else []
    others = sum(c["others"] for c in counts.values())
    if others:
        print(f"\n{others} problems are other ones now (targets or starts differ): not compared")
    order = {"limits": 0, "contradiction": 1, "status": 2, "errors": 3}
    worst = sorted((c for c in found if c.size > 0), key=lambda c: (order[c.what], -c.size))[: args.worst]
    if worst:
        print("\nthe worst:")
    for change in worst:
        solver, body, sort, variant = change.key
        print(f"  {change.what:13s} {change.words:34s} corpus.py show {solver} {body} {sort} {variant}.{change.k}")
    print("\nworse:\n" + "\n".join(f"  {one}" for one in bad) if bad else "\nnothing got worse beyond chance")
    return 1 if bad else 0


def problem(solver: str, name: str, sort: str, variant: int, k: int, data: Path | None = None) -> tuple[Any, Any, Any]:
    """Return the IK, the targets and the start of one problem."""
    known = bodies(data or data_folder())
    if name not in known:
        sys.exit(f"no body named {name!r}: one of {', '.join(known)}")
    body = Body(name, load(name, known[name]))
    drawn = draw(body, sort, variant, k + 1)
    if drawn is None:
        sys.exit(f"{name} has no joints for this kind of problem")
    chosen, targets, starts = drawn
    return built(body, solver, chosen), {goal: values[k] for goal, values in targets.items()}, starts[k]


def show(args: argparse.Namespace) -> int:
    """Solve one problem again, print how to and its answer."""
    variant, k = map(int, args.which.split("."))
    ik, targets, start = problem(args.solver, args.body, args.sort, variant, k, args.data)
    print('import sys; sys.path.insert(0, "benchmarks"); import corpus')
    print(f"ik, targets, start = corpus.problem({args.solver!r}, {args.body!r}, {args.sort!r}, {variant}, {k})")
    print("print(ik.solve(targets, start))\n")
    print("goals:", *ik.goals, sep="\n  ")
    print("targets:", *(f"{name}: {value.tolist()}" for name, value in targets.items()), sep="\n  ")
    solution = ik.solve(targets, start)
    print(f"\n{solution.status.name}", *solution.errors, sep="\n")
    print(f"beyond limits by {beyond(ik.skeleton, solution.pose.q[None])[0]:.3g}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    data = {"type": Path, "default": data_folder(), "help": "folder of models beside the bundled ones"}
    making = commands.add_parser("make", help="solve, and write the answers")
    making.set_defaults(run=make)
    making.add_argument("out", type=Path)
    making.add_argument("--solvers", nargs="+", choices=list(sy.solvers))
    making.add_argument("--bodies", nargs="+")
    making.add_argument("--sorts", nargs="+", choices=list(SORTS))
    making.add_argument(
        "--clips",
        nargs="*",
        choices=list(CLIPS),
        help="whole clips: these alone, unless solvers, bodies or sorts are named; all without names",
    )
    making.add_argument("--problems", type=int, default=PROBLEMS, help="for each solver and body, dealt over the kinds")
    making.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    making.add_argument("--add", action="store_true", help="keep what the file has of others")
    making.add_argument("--data", **data)
    comparing = commands.add_parser("compare", help="say what got worse")
    comparing.set_defaults(run=compare)
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--margin", type=float, default=0.01, help="of the body's size, or radians: of a miss")
    comparing.add_argument("--worst", type=int, default=20)
    comparing.add_argument("--bits", action="store_true", help="joint values have to be the same, bit for bit")
    comparing.add_argument("--all", action="store_true", help="also rows in which nothing changed")
    showing = commands.add_parser("show", help="solve one problem again")
    showing.set_defaults(run=show)
    for name in ("solver", "body", "sort"):
        showing.add_argument(name)
    showing.add_argument("which", help="variant.number, as compare prints it")
    showing.add_argument("--data", **data)
    args = parser.parse_args(arguments)
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
