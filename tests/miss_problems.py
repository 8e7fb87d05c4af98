"""Problems that are likely to be missed, and how good the pose of a miss is beside the best of random starts.

A target lies at 1.02 to 1.5 reaches from the first joint that moves it, or nearer and yet blocked by limits; a third of
the problems have several goals, which ``full-body`` takes in levels. The reference starts the same solver from each of
25 random poses, without restarts. Beside it stands the best of that and of Levenberg-Marquardt ("of any"), which
heuristics with limits do not always meet. Targets that a reference reaches are no misses and are left out.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import synovia as sy
from shared_files import shared_data_folder

STARTS = 25
ALLOWED = 0.01  # reaches that a level may be worse than the reference
SAME = 1e-3  # reaches: levels that differ by less are as good as each other, and the next one counts
KINDS = ("beyond", "blocked", "several")
BUNDLED = ("arm7", "humanoid", "quadruped")
SHARED = (
    "robot/panda.urdf",
    "robot/ur5_robot.urdf",
    "robot/g1_29dof.urdf",
    "robot/irb6700_235_265.urdf",
    "robot/schunk_svh_hand_left.urdf",
    "character/mannequiny.glb",
    "character/greenman.glb",
)
LIMBS = ("left_hand", "right_hand", "left_foot", "right_foot")
FEWEST_COLUMNS = 3  # degrees of freedom above a goal: with fewer nearly everything is a miss


@dataclass(frozen=True)
class Miss:
    """A problem that is likely to be missed.

    Args:
        seed: What it was made from.
        kind: One of ``KINDS``.
        body: Name of the model.
        skeleton: The model.
        ends: Joints with goals, the most important first.
        targets: Where they should be.
        start: Start pose.
    """

    seed: int
    kind: str
    body: str
    skeleton: sy.Skeleton
    ends: tuple[str, ...]
    targets: dict[str, np.ndarray]
    start: sy.Pose

    def goals(self, solver: str) -> list[sy.Goal]:
        """Return the goals, in levels for a solver that has them."""
        supports_priorities = sy.solvers[solver].supports_priorities
        return [
            sy.PositionGoal(end, self.targets[end], priority=i * supports_priorities) for i, end in enumerate(self.ends)
        ]

    def text(self, solver: str) -> str:
        """Return Python that solves it."""
        model = f"sy.bundled({self.body!r})" if self.body in BUNDLED else f"sy.load_skeleton({self.body!r})"
        goals = ", ".join(
            f"sy.PositionGoal({goal.joint!r}, {np.round(self.targets[goal.joint], 6).tolist()}"
            + (f", priority={goal.priority})" if goal.priority else ")")
            for goal in self.goals(solver)
        )
        start = "" if self.seed % 2 == 0 else f", start=body.random_pose({self.seed})"
        return f"body = {model}; sy.solve(body, [{goals}], {solver!r}{start})"


@functools.cache
def model(name: str) -> tuple[sy.Skeleton, tuple[str, ...], tuple[float, ...], tuple[np.ndarray, ...]]:
    """Return a model, the joints that get goals, the reach of each, and where the first joint that moves it stands."""
    skeleton = sy.bundled(name) if name in BUNDLED else sy.load_skeleton(shared_data_folder() / name)
    parents = {int(parent) for parent in skeleton.parents}
    ends = [skeleton.roles[role] for role in LIMBS if role in skeleton.roles]
    if not ends:
        ends = [joint for i, joint in enumerate(skeleton.joint_names) if i not in parents]
    rest, kept = skeleton.rest_pose(), []
    for end in ends:
        ik = sy.IK(skeleton, sy.PositionGoal(end))
        if ik.problem.reduced.columns >= FEWEST_COLUMNS:
            kept.append((end, ik.reach, rest.position(min(ik.moving))))
    ends, reaches, bases = zip(*kept, strict=True)
    return skeleton, ends, reaches, bases


def problem(seed: int, bodies: Sequence[str] | None = None) -> Miss:
    """Return the problem of a seed."""
    rng = np.random.default_rng([2026, seed])
    kind = KINDS[seed % len(KINDS)]
    if bodies is None:
        bodies = BUNDLED if (seed // len(KINDS)) % 2 == 0 else SHARED
    body = bodies[int(rng.integers(len(bodies)))]
    skeleton, names, reaches, bases = model(body)
    count = min(len(names), int(rng.integers(2, 4))) if kind == "several" else 1
    chosen = rng.permutation(len(names))[:count].tolist()
    other = skeleton.random_pose(10_000 + seed)
    targets = {}
    for place, i in enumerate(chosen):
        way = rng.normal(size=3)
        way /= np.linalg.norm(way)
        far = rng.uniform(1.02, 1.5) if kind == "beyond" else rng.uniform(0.1, 1.0)
        if kind == "several" and place > 0 and rng.random() < 0.5:
            targets[names[i]] = np.array(other.position(names[i]))  # reached alone, perhaps not beside the others
        else:
            targets[names[i]] = bases[i] + (1.5 if kind == "several" else 1.0) * far * reaches[i] * way
    start = skeleton.rest_pose() if seed % 2 == 0 else skeleton.random_pose(seed)
    return Miss(seed, kind, body, skeleton, tuple(names[i] for i in chosen), targets, start)


@functools.lru_cache(maxsize=64)
def compiled(body: str, ends: tuple[str, ...], solver: str, attempts: int | None) -> sy.IK:
    """Return the packed problem; None for the attempts that the solver makes by itself."""
    settings = {} if attempts is None else {"attempts": attempts}
    supports_priorities = sy.solvers[solver].supports_priorities
    goals = [sy.PositionGoal(end, priority=i * supports_priorities) for i, end in enumerate(ends)]
    return sy.IK(model(body)[0], goals, sy.solvers[solver](**settings))


def levels(errors: np.ndarray, supports_priorities: bool, reach: float) -> np.ndarray:
    """Return the error of each level, reaches, from the distances (..., goals) of an answer."""
    return errors / reach if supports_priorities else np.linalg.norm(errors, axis=-1, keepdims=True) / reach


def better(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether levels a are better than b, in the first where they differ."""
    differ = np.flatnonzero(np.abs(a - b) > SAME)
    return bool(len(differ)) and bool(a[differ[0]] < b[differ[0]])


def loss(a: np.ndarray, b: np.ndarray) -> float:
    """Return by how much a is worse than b (reaches) in the first level where they differ; negative where it is better.

    What is better in an upper level may be worse below; what is worse by no more than is allowed may not.
    """
    worst = -np.inf
    for one, other in zip(a, b, strict=True):
        worst = max(worst, one - other)
        if one < other - SAME:
            return float(worst)
    return float(worst)


@functools.cache
def random_starts(body: str, count: int) -> np.ndarray:
    """Return the joint values of random poses of a model."""
    return np.stack([model(body)[0].random_pose(k).q for k in range(count)])


def reference(miss: Miss, solver: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the levels of the best of random starts without restarts, by the solver itself and by any reference.

    None if one reaches all targets.
    """
    supports_priorities = sy.solvers[solver].supports_priorities
    starts = random_starts(miss.body, STARTS)
    many = {end: np.repeat(target[None], STARTS, 0) for end, target in miss.targets.items()}
    best = []
    for name in (solver,) if solver == "lm" or (supports_priorities and len(miss.ends) > 1) else (solver, "lm"):
        answers = compiled(miss.body, miss.ends, name, 1).solve_many(many, starts, threads=1)
        if answers.reached.any():
            return None
        found = levels(answers.errors[:, :, 0], supports_priorities, answers.ik.reach)
        best.append(functools.reduce(lambda a, b: b if better(b, a) else a, found))
    return best[0], best[-1] if better(best[-1], best[0]) else best[0]


@dataclass(frozen=True)
class Judged:
    """What came of one miss: how much worse it is (reaches) than the solver's own best and any, and what it cost."""

    miss: Miss
    loss: float
    loss_of_any: float
    seconds: float
    steps: int
    attempts: int


def judged(
    solver: str, seeds: Iterator[int], count: int, bodies: Sequence[str] | None = None, timings: int = 2
) -> list[Judged]:
    """Return the first so many misses of a solver, each beside its reference; the time is the shortest of some."""
    out: list[Judged] = []
    for seed in seeds:
        if len(out) == count:
            break
        miss = problem(seed, bodies)
        best = reference(miss, solver)
        if best is None:
            continue
        ik = compiled(miss.body, miss.ends, solver, None)
        solution = ik.solve(miss.targets, miss.start)
        spent = []
        for _ in range(timings):
            began = time.thread_time()
            ik.solve(miss.targets, miss.start)
            spent.append(time.thread_time() - began)
        if solution.reached:
            continue
        mine = levels(np.array([e.position for e in solution.errors]), ik.solver.supports_priorities, ik.reach)
        lost = [loss(mine, other) for other in best]
        out.append(Judged(miss, *lost, min(spent, default=np.nan), solution.steps, solution.attempts))
    return out
