"""Full body on trial: one random problem a seed, and what is asked of its answer.

``reasons``: explanations of what cannot be met are acted upon. ``law``: strict priorities, limits, the same answer when
asked again.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import synovia as sy
from beyond import beyond_limits
from trees import random_tree

BLOCK = 32  # seeds that are tried before it is asked whether there are enough
ENDS = ("left_hand", "right_hand", "left_foot", "right_foot")
Said = dict[str, object]


def many(trial: Callable[[int], Said | None], wanted: int, jobs: int, notes: str | None) -> dict[int, Said]:
    """Return what is said of the first so many seeds of which a trial says anything.

    Args:
        trial: Takes a seed.
        wanted: How many.
        jobs: Processes.
        notes: File of what is known from before, to which everything new is added at once; so that a trial of hours may
            be broken off and taken up again.
    """
    path = Path(notes) if notes else None
    known: dict[int, Said | None] = {}
    if path and path.exists():
        known = dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    said: dict[int, Said] = {}
    first = 0
    with ProcessPoolExecutor(jobs) as pool:
        while len(said) < wanted:
            block = range(first, first + BLOCK)
            new = [seed for seed in block if seed not in known]
            for seed, answer in zip(new, pool.map(trial, new), strict=True):
                known[seed] = answer
                if path:
                    with path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps([seed, answer]) + "\n")
            said |= {seed: answer for seed in block if (answer := known[seed]) is not None}
            first += BLOCK
    return dict(list(said.items())[:wanted])


@functools.cache
def humanoid() -> tuple[sy.Skeleton, float]:
    """Return the body of the reasons, and its reach."""
    body = sy.bundled("humanoid")
    return body, sy.IK(body, [sy.PositionGoal(end) for end in ENDS], sy.FullBody()).reach


def beyond_reach(seed: int) -> list[sy.Goal]:
    """Return hands and feet where a random pose has them, but for one or two that are somewhere else."""
    rng = np.random.default_rng(seed)
    pose = humanoid()[0].random_pose(seed)
    lost = rng.permutation(ENDS)[: 1 + int(rng.random() < 0.3)]
    goals: list[sy.Goal] = []
    for end in ENDS:
        T = pose.transform(end).copy()
        T[:3, 3] += rng.normal(size=3) * 0.5 * (end in lost)
        level = int(rng.integers(0, 3)) if end in lost else 0
        kind = sy.PoseGoal(end, transform=T, priority=level)
        goals.append(kind if rng.random() < 0.3 else sy.PositionGoal(end, T[:3, 3], priority=level))
    return goals


def reasons(seed: int) -> Said | None:
    """Do what an explanation says: move the goals, 90 % of it, release the limits; None if nothing is missed."""
    body, reach = humanoid()
    goals = beyond_reach(seed)
    solution = sy.solve(body, goals, sy.FullBody())
    if solution.reached:
        return None
    before = time.perf_counter()
    found = solution.reasons
    said: Said = {"seconds": time.perf_counter() - before}
    way = least(found)
    said["told"] = len(way)
    if way:
        told = moved(goals, way, 1.0)
        start = next(iter(way.values())).pose
        said["holds"] = sy.solve(body, told, sy.FullBody(attempts=1), start).reached
        said["found"] = sy.solve(body, told, sy.FullBody(attempts=100), solution.pose).reached
        equal = [goal.at_priority(0) for goal in moved(goals, way, 0.9)]
        less = sy.solve(body, equal, sy.LevenbergMarquardt(attempts=100), solution.pose).reached
        rest = 0.1 * max(float(np.linalg.norm(reason.move)) for reason in way.values())
        said["short"] = not less or rest <= 1e-4 * reach  # where the tenth that is left is within the tolerance
    named = [reason for reason in found if reason.limits]
    said["named"] = len(named)
    said["lowered"] = sum(
        size(reason.limits[0].error, reach) < size(solution.errors[reason.goal], reach) for reason in named
    )
    return said


def least(found: Sequence[sy.results.Reason]) -> dict[int, sy.results.Reason]:
    """Return the goals that are to move: the one that does so alone, or all that have to together."""
    for reason in found:
        if reason.move is not None and not reason.along:
            return {reason.goal: reason}
    return {reason.goal: reason for reason in found if reason.move is not None}


def moved(goals: Sequence[sy.Goal], way: dict[int, sy.results.Reason], share: float) -> list[sy.Goal]:
    """Return the goals with a share of what their reasons say."""
    out = []
    for i, goal in enumerate(goals):
        if i not in way:
            out.append(goal)
            continue
        T = goal.target.copy()
        T[:3, 3] += share * way[i].move
        if way[i].turn is None:
            out.append(sy.PositionGoal(goal.joint, T[:3, 3], priority=goal.priority))
            continue
        T[:3, :3] = sy.Rotation.from_rotvec(share * way[i].turn).as_matrix() @ T[:3, :3]
        out.append(sy.PoseGoal(goal.joint, transform=T, priority=goal.priority))
    return out


def size(error: sy.results.GoalError, reach: float) -> float:
    """Return an error as the solvers count it, in reaches and radians."""
    return float(np.hypot(error.position / reach, error.angle))


def any_goal(rng: np.random.Generator, pose: sy.Pose, name: str) -> sy.Goal:
    """Return a goal of any kind, level and weight, with a target that may be out of reach."""
    n = len(pose.skeleton)
    j, level, weight = int(rng.integers(n // 3, n)), int(rng.integers(0, 4)), float(rng.choice([1.0, 0.01, 30.0]))
    T = pose.transform(j).copy()
    T[:3, 3] += rng.normal(size=3) * rng.choice([0, 0, 0.2, 3.0])
    offset = 0.3 * rng.normal(size=3) if rng.random() < 0.4 else None
    own = {"priority": level, "weight": weight, "name": name}
    p = T[:3, 3]

    def another() -> int:
        """Return a joint other than the goal's own."""
        k = int(rng.integers(0, n))
        return k if k != j else (k + 1) % n

    kinds: list[Callable[[], sy.Goal]] = [
        lambda: sy.PositionGoal(j, p, offset=offset, **own),
        lambda: sy.RotationGoal(j, T[:3, :3], **own),
        lambda: sy.PoseGoal(j, transform=T, offset=offset, **own),
        lambda: sy.AimGoal(j, p + rng.normal(size=3), axis=rng.normal(size=3), **own),
        lambda: sy.DirectionGoal(j, rng.normal(size=3), rng.normal(size=3), **own),
        lambda: sy.DistanceGoal(j, another(), minimum=float(rng.uniform(0.5, 3)), **own),
        lambda: sy.PlaneGoal(j, p, rng.normal(size=3), **own),
        lambda: sy.CenterOfMassGoal(pose.center_of_mass() + rng.normal(size=3) * rng.choice([0, 0.3]), **own),
        lambda: sy.CenterOfMassGoal(polygon=rng.normal(size=(4, 3)), up=(0, 0, 1), **own),
        lambda: sy.RelativeGoal(j, another(), p, **own),
        lambda: sy.ContactGoal(j, p, normal=rng.normal(size=3), axis=rng.normal(size=3), **own),
    ]
    return kinds[int(rng.integers(0, len(kinds)))]()


def any_problem(seed: int) -> tuple[sy.Skeleton, str, list[sy.Goal]]:
    """Return (body, root, goals): a random tree with limits and masses, goals of all kinds that share joints."""
    rng = np.random.default_rng(seed)
    free = bool(rng.random() < 0.5)
    joints = int(rng.integers(4, 25))
    body = random_tree(rng, joints=joints, free=free, limits=True, mass=True, mimic=bool(rng.random() < 0.3))
    pose = body.random_pose(seed)
    goals = [any_goal(rng, pose, f"goal{i}") for i in range(int(rng.integers(2, 6)))]
    if rng.random() < 0.3:
        goals.append(sy.RestGoal())
    return body, "free" if free or rng.random() < 0.3 else "fixed", goals


def level_errors(solution: sy.Solution, places: Sequence[int], goals: Sequence[sy.Goal], reach: float) -> list[float]:
    """Return the error of each level of some goals, the highest first, as the solver counts it.

    Args:
        solution: An answer.
        places: Where each goal stands in it.
        goals: The goals.
        reach: Length of an error that counts as much as a radian.
    """
    squares = dict.fromkeys(sorted({goal.priority for goal in goals}), 0.0)
    for i, goal in zip(places, goals, strict=True):
        most = max(other.weight for other in goals if other.priority == goal.priority)
        squares[goal.priority] += goal.weight / most * size(solution.errors[i], reach) ** 2
    return [float(np.sqrt(square)) for square in squares.values()]


def runs_away(ik: sy.IK, solution: sy.Solution) -> bool:
    """Return whether a problem has no best pose: asked again and again, its root is ten reaches farther every time.

    An aim is the better the farther away what it points from is, and the best is nowhere.
    """
    for _ in range(3):
        then = ik.solve(start=solution.pose)
        if then.status is not sy.Status.MAX_STEPS or np.abs(then.pose.q - solution.pose.q).max() < 10.0 * ik.reach:
            return False
        solution = then
    return True


def law(seed: int) -> Said | None:
    """Solve with goals of all kinds; from the answer, the levels above each one alone must gain nothing.

    ``lost`` is the most that they gain, ``beyond`` the distance beyond a limit, ``away`` whether there is no best pose,
    so that something can always be gained; None if the goals are refused.
    """
    body, root, goals = any_problem(seed)
    try:
        ik = sy.IK(body, goals, sy.FullBody(attempts=3), root=root)
    except sy.InputError:
        return None
    solution = ik.solve()
    q = solution.pose.q
    beyond = beyond_limits(ik.skeleton.tables, q)
    again = ik.solve(start=solution.pose)
    moves = float(np.abs(again.pose.q - q).max(initial=0.0))
    own = [i for i, goal in enumerate(goals) if goal.measures]
    lost = 0.0
    for last in sorted({goals[i].priority for i in own})[:-1]:
        places = [i for i in own if goals[i].priority <= last]
        upper = [goals[i] for i in places]
        with patch("synovia.problem.reduced.reach_of", lambda *_: ik.reach):  # lengths weigh as they did beside angles
            alone = sy.IK(body, upper, sy.FullBody(attempts=1), root=root, tolerance=ik.tolerance)
        then = alone.solve(start=solution.pose)
        before = level_errors(solution, places, upper, ik.reach)
        after = level_errors(then, range(len(upper)), upper, ik.reach)
        changed = (a - b for a, b in zip(before, after, strict=True) if abs(a - b) > 1e-6)
        lost = max(lost, next(changed, 0.0))  # a level that lost to one above it may do anything
    away = lost > 1e-6 and solution.status is sy.Status.MAX_STEPS and runs_away(ik, solution)
    return {"status": solution.status.name, "lost": lost, "beyond": beyond, "moves": moves, "away": away}
