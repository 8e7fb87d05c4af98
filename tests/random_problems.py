"""Random problems, block by block, and the promises that every answer to them has to keep.

Block k of a seed is always the same problems. Answers are judged by ``oracle``, which shares no arithmetic with the
package. Wide problems take every solver and every kind of goal, models from 1e-12 to 1e12 of their size, and limits
that leave next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import oracle
import synovia as sy
from synovia.errors import SynoviaError
from synovia.goals import kinds as goal_kinds
from synovia.kernels.tree.tables import clamp_rows, random_rows
from synovia.model import Kind
from synovia.model.pose import world_frames
from synovia.solver import Solver
from synovia.solver import solvers as every_solver

# those for any joints; the others leave joints still, so that targets of whole poses are no promise that they break
solvers = {name: kind for name, kind in every_solver.items() if kind.restrict is Solver.restrict}
# every model meets each solver in five blocks of 100 for each block of the one that takes ten times as long
DEAL = [name for name in solvers for _ in range(1 if name == "full-body" else 5)]
BLOCK = 100
SLACK = 1e-9  # beyond a limit
GOALS = (sy.PositionGoal, sy.RotationGoal, sy.PoseGoal)
WIDE = (
    *("position", "rotation", "pose", "aim", "direction", "pole", "distance", "plane", "center_of_mass", "relative"),
    *("contact", "range"),
)  # kinds of goals
POSES = ("random", "rest", "limits", "folded")  # targets made by forward kinematics
OTHERS = ("far", "edge", "root", "anywhere")  # targets that may be out of reach
STARTS = ("rest", "random", "limits", "outside", "answer")


@dataclass
class Case:
    """One block of problems."""

    model: str  # the expression that makes the skeleton
    ik: sy.IK
    targets: dict[str, np.ndarray]
    frames: np.ndarray  # wanted, (B, goals, 4, 4)
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
    rows = world_frames(ik.skeleton, np.ascontiguousarray(q))[:, list(ik.problem.rows)]
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
    attempts = int(rng.choice([1, 2, 8, getattr(solver(), "attempts", 1)], p=[0.4, 0.3, 0.2, 0.1]))
    settings = with_settings(solver, attempts=attempts, seed=int(rng.integers(1000)))
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
        for g, row in enumerate(ik.problem.rows):
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
    targets = {f"g{g}": np.ascontiguousarray(frames[:, g][parts[goal.pose_parts]]) for g, goal in enumerate(goals)}
    return Case(model, ik, targets, frames, starts, np.isin(kinds, POSES))


SIZES = 12  # powers of ten up and down
FARTHEST = 1e13  # length units that a target is moved
OUTERMOST = 4e14  # length units that bodies and targets go out: the package takes targets up to 1e15 from the origin
NARROW = (0.0, 0.0, 1e-9, 1e-6, 1e-3, 0.3, 1.5, 3.0, np.pi - 1e-9, np.pi)  # half-angles
TWISTS = ((-np.pi, np.pi), (0.0, 0.0), (-1e-9, 1e-9), (-0.5, 1.0), (1.0, 1.0), (np.pi, np.pi), (2.5, np.pi))
TRIES = 300  # random goals until a solver takes them


def changed(skeleton: sy.Skeleton, factor: float, seed: int | None) -> sy.Skeleton:
    """Return a skeleton in another unit, with masses; with a seed also with limits that leave next to nothing."""
    rng = np.random.default_rng(seed)
    joints = []
    for row, joint in enumerate(skeleton.joints):
        rest, limit = joint.rest.copy(), joint.limit
        rest[:3, 3] *= factor
        if joint.kind is Kind.SLIDE and isinstance(limit, sy.Interval):
            limit = sy.Interval(limit.lower * factor, limit.upper * factor)
        coupled = joint.mimic is not None or any(j.mimic and j.mimic.leader == joint.name for j in skeleton.joints)
        if seed is not None and rng.random() < 0.5 and not coupled:
            if joint.kind in (Kind.BALL, Kind.FREE):
                x, y = rng.choice(NARROW, size=(2, 2)).tolist()
                frame = oracle.turn_matrix(rng.normal(size=4)).tolist()
                limit = sy.SwingTwist(x=x, y=y, twist=TWISTS[rng.integers(len(TWISTS))], frame=frame)
            elif joint.kind is Kind.HINGE:
                low = rng.uniform(-1, 1)
                limit = sy.Interval(low, low + rng.choice([0.0, 1e-12, 1e-6, 1.0]))
        mimic = joint.mimic
        if mimic is not None and joint.kind is Kind.SLIDE:
            mimic = replace(mimic, offset=mimic.offset * factor)
        above = skeleton.parents[row]
        joints.append(
            replace(
                joint, rest=rest, limit=limit, com=joint.com * factor, mass=joint.mass or 0.1, mimic=mimic,
                preferred=None, parent=None if above < 0 else skeleton.joint_names[above],
            )
        )  # fmt: skip
    return sy.Skeleton(joints, name=skeleton.name)


def limb_rows(skeleton: sy.Skeleton, rng: np.random.Generator) -> tuple[int, int, int]:
    """Return (root, middle, tip) of a way down the tree, where there is one of three joints."""
    tip = int(rng.integers(len(skeleton)))
    rows = [tip]
    while skeleton.parents[rows[-1]] >= 0:
        rows.append(skeleton.parents[rows[-1]])
    if len(rows) < 3:
        return limb_rows(skeleton, rng)
    a, b, c = sorted(rng.choice(len(rows), size=3, replace=False).tolist())
    return rows[c], rows[b], rows[a]


def wide_goal(kind: str, skeleton: sy.Skeleton, q: np.ndarray, world: np.ndarray, name: str, rng: np.random.Generator):
    """Return a goal of a kind, and the frames (B, 4, 4) that it is given: the poses q, with frames ``world``, meet it.

    A goal is None where the skeleton has no place for it.
    """
    size = skeleton.size or 1.0
    row, other = (int(v) for v in rng.choice(len(skeleton), size=2, replace=False))
    offset = rng.normal(size=3) * 0.1 * size if rng.random() < 0.3 else None
    common = {"weight": float(rng.choice([1.0, 0.01, 30.0])), "name": name}
    count = len(q)
    T = np.tile(np.eye(4), (count, 1, 1))
    point = world[:, row, :3, 3] if offset is None else world[:, row, :3, :3] @ offset + world[:, row, :3, 3]
    far = size * 10.0 ** rng.uniform(-1, 1, size=(count, 1))
    if kind in ("position", "rotation", "pose"):
        goal = dict(zip(("position", "rotation", "pose"), GOALS, strict=True))[kind]
        some = {} if kind == "rotation" else {"offset": offset}
        few = int(rng.integers(1, 3)) if rng.random() < 0.2 else None
        if few is not None and few < depth(skeleton, row):
            some["ancestors"] = few
        T = world[:, row].copy()
        if kind != "rotation":
            T[:, :3, 3] = point
        return goal(row, **some, **common), T
    if kind == "aim":
        axis = rng.normal(size=3)
        T[:, :3, 3] = point + far * (world[:, row, :3, :3] @ (axis / np.linalg.norm(axis)))
        return sy.AimGoal(row, axis=axis, offset=offset, **common), T
    if kind == "direction":
        axis = rng.normal(size=3)
        T[:, :3, 3] = far * (world[:, row, :3, :3] @ (axis / np.linalg.norm(axis)))
        return sy.DirectionGoal(row, axis, **common), T
    if kind == "pole":
        root, middle, tip = limb_rows(skeleton, rng)
        r, m, t = (world[:, i, :3, 3] for i in (root, middle, tip))
        line = (t - r) / np.maximum(oracle.length(t - r), 1e-300)[:, None]
        out = (m - r) - ((m - r) * line).sum(-1)[:, None] * line
        T[:, :3, 3] = r + out * 10.0 ** rng.uniform(0, 2, size=(count, 1)) + line * far * 0.1
        return sy.PoleGoal(middle, root=root, tip=tip, **common), T
    if kind == "distance" and rng.random() < 0.5:
        away = oracle.length(point - world[:, other, :3, 3])
        if not away.max() > 0.0:
            return None, T
        bounds = {"minimum": float(away.min()) * (1 - 1e-9), "maximum": float(away.max()) * (1 + 1e-9)}
        return sy.DistanceGoal(row, other, offset=offset, **bounds, **common), T
    if kind == "distance":
        way = rng.normal(size=(count, 3))
        T[:, :3, 3] = point + way / oracle.length(way)[:, None] * size * rng.uniform(0.3, 0.5, size=(count, 1))
        return sy.DistanceGoal(row, minimum=0.3 * size, maximum=0.5 * size, offset=offset, **common), T
    if kind == "plane":
        T[:, :3, :3] = oracle.turn_matrix(rng.normal(size=(count, 4)))
        T[:, :3, 3] = point - far * T[:, :3, 2] * rng.choice([0.0, 1.0], size=(count, 1))
        return sy.PlaneGoal(row, normal=(0, 0, 1), offset=offset, **common), T
    if kind == "center_of_mass":
        T[:, :3, 3] = oracle.center_of_mass(skeleton, world)
        return sy.CenterOfMassGoal(**common), T
    if kind == "relative":
        T = np.linalg.inv(world[:, other]) @ world[:, row]
        return sy.RelativeGoal(row, other, parts="pose", **common), T
    if kind == "contact":
        keep = str(rng.choice(["point", "normal", "pose"]))
        axis = {"axis": np.array([0.0, 0.0, 1.0])} if keep == "normal" else {}
        T = world[:, row].copy()
        T[:, :3, 3] = point
        return sy.ContactGoal(row, keep=keep, offset=offset, **axis, **common), T
    if kind == "range":
        v = q[:, skeleton.q_slice(row)]
        if skeleton.joints[row].kind not in (Kind.HINGE, Kind.SLIDE):
            return None, T
        return sy.RangeGoal(row, float(v.min()), float(v.max()), **common), T
    raise ValueError(kind)


def with_settings(solver: type[Solver], **given: int) -> Solver:
    """Return a solver with those settings that it has."""
    return solver(**{name: value for name, value in given.items() if hasattr(solver, name)})


def honoured(solver: type[Solver]) -> list[str]:
    """Return the kinds of goals that a solver takes."""
    return [kind for kind in WIDE if goal_kinds()[kind].needs in solver.supported_goals]


def depth(skeleton: sy.Skeleton, row: int) -> int:
    """Return how many joints are above one."""
    count = 0
    while skeleton.parents[row] >= 0:
        row = skeleton.parents[row]
        count += 1
    return count


def make_wide_case(k: int, seed: int, known: list[tuple[str, sy.Skeleton]], deal: list[str]) -> Case:
    """Return block k of a seed: wide problems, of the solvers of ``deal`` in turn."""
    rng = np.random.default_rng([seed, k, 1])
    name = deal[k % len(deal)]
    solver = every_solver[name]
    for _ in range(TRIES):
        model, skeleton = known[rng.integers(len(known))]
        factor = 10.0 ** float(rng.uniform(-SIZES, SIZES)) if rng.random() < 0.7 else 1.0
        narrow = int(rng.integers(1000)) if rng.random() < 0.4 else None
        skeleton = changed(skeleton, factor, narrow)
        model = f"__import__('random_problems').changed({model}, {factor!r}, {narrow})"
        poses = Poses(skeleton, "fixed", rng)
        kinds = rng.choice(("random", "other"), size=BLOCK, p=[0.6, 0.4])
        truth, starts = poses("random", BLOCK), poses("random", BLOCK)
        same = rng.random(BLOCK) < 0.1
        starts[same] = truth[same]
        world = oracle.frames(skeleton, truth)
        if max(np.abs(world).max(), np.abs(truth).max(), np.abs(starts).max()) > OUTERMOST:
            continue
        pool = honoured(solver)
        goals, frames = [], []
        for g in range(int(rng.choice([1, 2, 3], p=[0.5, 0.3, 0.2])) if solver.restrict is Solver.restrict else 1):
            goal, T = wide_goal(str(rng.choice(pool)), skeleton, truth, world, f"g{g}", rng)
            if goal is not None:
                goals.append(goal)
                frames.append(T)
        if not any(goal.takes for goal in goals):  # many problems are told apart by their targets
            continue
        if max(np.abs(T).max() for T in frames) > OUTERMOST:  # an aim's target lies up to ten sizes away
            continue
        settings = with_settings(solver, attempts=int(rng.choice([1, 2, 8, 20])), seed=int(rng.integers(1000)))
        tight = 10.0 ** rng.uniform(-6, -3)
        try:
            ik = sy.IK(skeleton, goals, settings)
            ik = sy.IK(skeleton, goals, settings, tolerance=(tight * ik.reach, tight))
        except SynoviaError:
            continue
        break
    else:
        raise RuntimeError(f"no problem that {name} takes")
    for b in np.flatnonzero(kinds == "other"):
        for T in frames:
            T[b, :3, 3] += rng.normal(size=3) * min(ik.reach * 10.0 ** rng.uniform(-9, 2), FARTHEST)
    given = {}
    for goal, T in zip(ik.goals, frames, strict=True):
        if goal.takes:
            given[goal.label] = np.ascontiguousarray(
                T[{1: np.s_[:, :3, 3], 2: np.s_[:, :3, :3], 3: np.s_[:]}[goal.takes]]
            )
    reachable = (kinds == "random") & (solver.restrict is Solver.restrict) & all(g.ancestors is None for g in goals)
    return Case(model, ik, given, np.stack(frames, axis=1), starts, reachable)


def misses(case: Case, q: np.ndarray) -> np.ndarray:
    """Return which rows miss a goal by forward kinematics, (B,), with room for rounding."""
    ik = case.ik
    world = oracle.frames(ik.skeleton, q)
    wanted = {goal.label: case.frames[:, g] for g, goal in enumerate(ik.goals)}
    lengths, angles = oracle.errors(ik, world, wanted)
    for g, (goal, out) in enumerate(zip(ik.goals, oracle.range_errors(ik, q).T, strict=True)):
        (lengths if goal.measures & 1 else angles)[:, g] += out
    size = np.abs(world[..., :3, 3]).max((1, 2)) + np.abs(case.frames[..., :3, 3]).max((1, 2)) + ik.reach
    length, angle = ik.tolerance
    near = (lengths <= length * (1 + 1e-9) + 1e-13 * size[:, None]).all(axis=1)
    return ~(near & (angles <= angle * (1 + 1e-9) + 1e-13 * len(ik.skeleton)).all(axis=1))


def check(case: Case, answers: sy.results.Solutions) -> dict[str, np.ndarray]:
    """Return the rows that break each promise."""
    ik, q, status = case.ik, answers.q, answers.status
    turns = ik.skeleton.tables.variables[ik.skeleton.tables.variables[:, 0] == 1, 1]
    length = np.array([np.linalg.norm(q[:, at : at + 4], axis=1) for at in turns]).reshape(len(turns), len(q))
    finite = np.isfinite(q).all(axis=1) & np.isfinite(answers.errors).all(axis=(1, 2))
    inside = oracle.beyond_limits(ik.skeleton, q) <= SLACK
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
    """Return Python text that solves one problem again; nothing for goals that it has no words for."""
    if not all(type(goal) in GOALS for goal in case.ik.goals):
        return ""
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
