"""Conflicts of goals: problems whose smallest set of goals and limits is known, how many are found and proved.

    python benchmarks/conflicts.py [--problems 300] [--deadline 5]

There are six kinds of problems, built from seeds. The smallest set of each is known by construction; goals that can be
met in addition must stay outside of it.

- far: one target is out of reach of its arm.
- trunk: two targets need the trunk turned to both ends of its limits, too far for either arm. No limit is the cause.
- three: arms on a carriage; any two targets can be met, but not all three.
- limit: a stretched arm has to point beyond the limit of its shoulder, and no other limit matters.
- direction: a stretched arm meets its target only while it points away from the wanted direction.
- grip: the wrist of an arm has a reachable target, but at another distance from the target of the tool than the hand.

A set is right if it is the known one. It is wrong if a pose meets all its goals, if one of its poses misses a goal that
it should meet or needs another limit, or if the checker refuses its proof.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import NamedTuple

import numpy as np

import synovia as sy

SIDES = ("a", "b", "c")


class Problem(NamedTuple):
    """A problem: body, goals, and the labels and joints of the smallest set; None if limits are not compared."""

    body: sy.Skeleton
    goals: list[sy.Goal]
    labels: set[str]
    limits: set[str] | None


def place(*point: float) -> np.ndarray:
    """Return the transform of a translation."""
    out = np.eye(4)
    out[:3, 3] = point
    return out


def hinge(name: str, parent: str | None, at: np.ndarray, axis: object, most: float | None) -> sy.Joint:
    """Return a hinge with limits -most and most; without limits for None."""
    limit = None if most is None else sy.Interval(-most, most)
    return sy.Joint(name, parent, sy.Kind.HINGE, at, axis=np.asarray(axis, float), limit=limit)


def random_arms(rng: np.random.Generator, trunk: list[sy.Joint]) -> sy.Skeleton:
    """Return a trunk with three arms of three random hinges."""
    joints = [*trunk]
    for k, side in enumerate(SIDES):
        turn = 2.0 * np.pi * k / 3.0
        above, at = trunk[-1].name, place(0.5 * np.cos(turn), 0.5 * np.sin(turn), rng.uniform(0.0, 0.3))
        for n in range(3):
            axis = rng.normal(size=3)
            joints.append(hinge(f"{side}{n}", above, at, axis / np.linalg.norm(axis), 0.8))
            above, at = f"{side}{n}", place(*rng.uniform(-0.15, 0.15, 3))
        joints.append(sy.Joint(side, above, rest=at))
    return sy.Skeleton(joints, meters_per_unit=1.0)


def positions(targets: dict[str, np.ndarray]) -> list[sy.Goal]:
    """Return position goals."""
    return [sy.PositionGoal(name, target) for name, target in targets.items()]


def arms(rng: np.random.Generator, seed: int, turns: tuple[float, float]) -> tuple[sy.Skeleton, list[sy.Pose]]:
    """Return three arms on a trunk, and random poses with the trunk at each of two angles."""
    trunk = [hinge("trunk", None, np.eye(4), (0, 0, 1), 1.5)]
    trunk += [hinge("waist", "trunk", np.eye(4), (0, 1, 0), 0.3)] if rng.random() < 0.5 else []
    body = random_arms(rng, trunk)
    return body, [sy.Pose(body, body.random_pose(seed).with_values({"trunk": turn}).q) for turn in turns]


def far(rng: np.random.Generator, seed: int) -> Problem:
    """Return a target that is out of reach, and two that are not."""
    body, (pose, _) = arms(rng, seed, (-1.4, 1.4))
    targets = {side: pose.position(side).copy() for side in SIDES}
    targets["a"] += (0.0, 0.0, 2.0)
    return Problem(body, positions(targets), {"a"}, set())


def trunk(rng: np.random.Generator, seed: int) -> Problem:
    """Return two targets that need different angles of the trunk."""
    body, ends = arms(rng, seed, (-1.4, 1.4))
    targets = {"a": ends[0].position("a"), "b": ends[1].position("b")}
    return Problem(body, positions(targets), {"a", "b"}, None)


def three(rng: np.random.Generator, seed: int) -> Problem:
    """Return three targets for arms on a carriage that any two of them can reach: the three discs have no common point.

    The discs have radius r, the length of the arms, and their centres form a triangle of side s, with s < 2r < 2s/√3.
    """
    del seed
    reach, turn = rng.uniform(0.2, 0.3), rng.uniform(0.0, 2.0 * np.pi)
    side = rng.uniform(1.78, 1.92) * reach
    slide = sy.Interval(-2.0, 2.0)
    joints = [
        sy.Joint("x", None, sy.Kind.SLIDE, axis=(1, 0, 0), limit=slide),
        sy.Joint("y", "x", sy.Kind.SLIDE, axis=(0, 1, 0), limit=slide),
    ]
    targets = {}
    for k, name in enumerate(SIDES):
        joints += [
            hinge(f"{name}0", "y", place(0.0, 0.0, 0.1 * k), (0, 0, 1), None),
            hinge(f"{name}1", f"{name}0", place(0.5 * reach, 0.0, 0.0), (0, 0, 1), None),
            sy.Joint(name, f"{name}1", rest=place(0.5 * reach, 0.0, 0.0)),
        ]
        angle = turn + 2.0 * np.pi * k / 3.0
        targets[name] = np.array([np.cos(angle), np.sin(angle), 0.0]) * side / np.sqrt(3.0) + (0.1, 0.2, 0.1 * k)
    return Problem(sy.Skeleton(joints, meters_per_unit=1.0), positions(targets), set(SIDES), set())


def stretched(rng: np.random.Generator) -> tuple[sy.Skeleton, float]:
    """Return two planar arms on a trunk that does not turn in their planes, and the length of an arm.

    Each arm turns about y at its shoulder and elbow, up to 0.6 rad; the trunk turns about y, too, but only one arm is
    on it.
    """
    length = rng.uniform(0.2, 0.4)
    joints = [sy.Joint("base")]
    for name, y in (("a", 0.3), ("b", -0.3)):
        joints += [
            hinge(f"{name}0", "base", place(0.0, y, 0.2), (0, 1, 0), 0.6),
            hinge(f"{name}1", f"{name}0", place(0.5 * length, 0.0, 0.0), (0, 1, 0), 0.6),
            sy.Joint(name, f"{name}1", rest=place(0.5 * length, 0.0, 0.0)),
        ]
    return sy.Skeleton(joints, meters_per_unit=1.0), length


def toward(angle: float, length: float, y: float) -> np.ndarray:
    """Return where an arm's tool is if it is stretched and its shoulder is turned."""
    return np.array([length * np.cos(angle), y, 0.2 - length * np.sin(angle)])


def limit(rng: np.random.Generator, seed: int) -> Problem:
    """Return a target that needs a shoulder beyond its limit, and one that is reached."""
    del seed
    body, length = stretched(rng)
    angle = rng.choice([-1.0, 1.0]) * rng.uniform(1.0, 2.0)
    goals = positions({"a": toward(angle, length, 0.3), "b": toward(rng.uniform(-0.5, 0.5), length, -0.3)})
    return Problem(body, goals, {"a"}, {"a0"})


def direction(rng: np.random.Generator, seed: int) -> Problem:
    """Return a position and a direction of one tool that exclude each other, and another target."""
    del seed
    body, length = stretched(rng)
    angle = rng.uniform(-0.5, 0.5)
    other = angle + rng.choice([-1.0, 1.0]) * rng.uniform(0.3, 0.5)
    goals = positions({"a": toward(angle, length, 0.3), "b": toward(rng.uniform(-0.5, 0.5), length, -0.3)})
    goals.append(sy.DirectionGoal("a", (1, 0, 0), (np.cos(other), 0.0, -np.sin(other)), name="points"))
    return Problem(body, goals, {"a", "points"}, set())


def grip(rng: np.random.Generator, seed: int) -> Problem:
    """Return a pose of a tool and a position of its wrist that do not fit together, though each can be reached."""
    del rng
    arm = sy.bundled("arm7")
    pose = arm.random_pose(seed)
    tool, fixed = pose.position("tool"), np.linalg.norm(pose.position("joint5") - pose.position("tool"))
    others = (arm.random_pose(1000 * seed + k).position("joint5") for k in range(1, 1000))
    wrist = next(at for at in others if abs(np.linalg.norm(at - tool) - fixed) > 0.02)
    goals = [
        sy.PoseGoal("tool", transform=pose.transform("tool")),
        sy.PositionGoal("joint5", wrist),
        sy.PositionGoal("joint1", pose.position("joint1")),
    ]
    return Problem(arm, goals, {"tool", "joint5"}, None)


KINDS = far, trunk, three, limit, direction, grip


def wrong(problem: Problem, solution: sy.Solution, conflict: sy.Conflict) -> bool:
    """Return whether a pose meets all goals of a set, or a pose or proof of the set does not show what it should."""
    by_name = {goal.label: goal for goal in solution.ik.goals}
    goals = [by_name[label] for label in conflict.goals]
    if sy.solve(problem.body, goals, sy.FullBody(attempts=400)).reached:
        return True
    for label, pose in conflict.poses.items():
        met = all(
            meets(solution, k, pose)
            for k, one in enumerate(solution.ik.goals)
            if one.label in conflict.goals and one.label != label
        )
        if not met or outside(problem.body, pose):
            return True
    for joint, pose in conflict.limit_poses.items():
        met = all(meets(solution, k, pose) for k, one in enumerate(solution.ik.goals) if one.label in conflict.goals)
        if not met or outside(problem.body, pose) & set(conflict.limits) != {joint}:
            return True
    return any(not proof.check() for proof in (conflict.proof, conflict.limits_proof) if proof is not None)


def meets(solution: sy.Solution, k: int, pose: sy.Pose) -> bool:
    """Return whether a pose meets goal k, by forward kinematics."""
    goal, target, most = solution.goals[k], solution.targets[k], solution.ik.tolerance
    at = pose.transform(goal.joint)
    if isinstance(goal, sy.DirectionGoal):
        wanted = target[:3, 3] / np.linalg.norm(target[:3, 3])
        return bool(np.linalg.norm(at[:3, 0] - wanted) <= 1.01 * most[1])
    away = np.linalg.norm(at[:3, 3] - target[:3, 3])
    turned = np.linalg.norm(at[:3, :3] - target[:3, :3]) / np.sqrt(2.0) if isinstance(goal, sy.PoseGoal) else 0.0
    return bool(away <= 1.01 * most[0] and turned <= 1.01 * most[1])


def outside(body: sy.Skeleton, pose: sy.Pose) -> set[str]:
    """Return the joints whose values in a pose are outside of the limits of a body."""
    lower, upper = body.limits
    bad = (pose.q < lower - 1e-9) | (pose.q > upper + 1e-9)
    return {name.split(".")[0] for name, out in zip(body.dof_names, bad, strict=True) if out}


def main() -> None:
    """Print one line of counts for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--deadline", type=float)
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {kind.__name__: Counter() for kind in KINDS}
    times: list[float] = []
    for seed in range(options.problems):
        kind = KINDS[seed % len(KINDS)]
        problem, count = kind(np.random.default_rng(seed), seed), counts[kind.__name__]
        solution = sy.solve(problem.body, problem.goals, "full-body")
        begun = time.perf_counter()
        conflict = solution.find_conflict(options.deadline)
        times.append(time.perf_counter() - begun)
        count["all"] += 1
        if conflict is None:
            count["none"] += 1
            continue
        right = set(conflict.goals) == problem.labels
        right &= problem.limits is None or set(conflict.limits) == problem.limits
        count["right"] += right
        count["proved"] += conflict.proof is not None
        count["limits proved"] += conflict.limits_proof is not None
        count["wrong"] += wrong(problem, solution, conflict)
        if not right:
            print(f"{kind.__name__}, seed {seed}: {conflict.goals}, {conflict.limits}; {problem.labels} expected")
    for name, count in counts.items():
        print(f"{name}:", ", ".join(f"{number} {what}" for what, number in count.items()))
    total = sum(counts.values(), Counter[str]())
    print(f"all: {100 * total['right'] / total['all']:.1f} % right, {total['wrong']} wrong, {total['proved']} proved")
    print(f"seconds: median {np.median(times):.2f}, 90 % {np.percentile(times, 90):.2f}, largest {max(times):.2f}")
    raise SystemExit(1 if total["wrong"] or total["right"] < 0.95 * total["all"] else 0)


if __name__ == "__main__":
    main()
