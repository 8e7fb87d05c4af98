"""Conflicts of goals: problems whose smallest set is known, how many are found, and how many are proved.

    python benchmarks/conflicts.py [--problems 100]

Each body has a trunk of one or two hinges and three arms of three hinges, from seeds. One kind of problem has one
target out of reach of its arm; the other has two targets that need the trunk turned to both ends of its limits. The
targets of the other arms are reachable with all of them. A set is right if it is the one that the problem was made for.
Another set may be right as well, which its poses and proofs show, and counts as "other". A set is wrong if a pose meets
all its goals.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import synovia as sy

SIDES = ("a", "b", "c")


def place(point: np.ndarray) -> np.ndarray:
    """Return the transform of a translation."""
    out = np.eye(4)
    out[:3, 3] = point
    return out


def body_of(rng: np.random.Generator) -> sy.Skeleton:
    """Return a trunk with three arms."""
    joints = [sy.Joint("trunk", None, sy.Kind.HINGE, axis=(0, 0, 1), limit=sy.Interval(-1.5, 1.5))]
    below = "trunk"
    if rng.random() < 0.5:
        joints.append(sy.Joint("waist", below, sy.Kind.HINGE, axis=(0, 1, 0), limit=sy.Interval(-0.3, 0.3)))
        below = "waist"
    for k, side in enumerate(SIDES):
        turn = 2.0 * np.pi * k / 3.0
        above, at = below, np.array([0.5 * np.cos(turn), 0.5 * np.sin(turn), rng.uniform(0.0, 0.3)])
        for n in range(3):
            axis = rng.normal(size=3)
            axis /= np.linalg.norm(axis)
            joints.append(
                sy.Joint(f"{side}{n}", above, sy.Kind.HINGE, place(at), axis=axis, limit=sy.Interval(-0.8, 0.8))
            )
            above, at = f"{side}{n}", rng.uniform(-0.15, 0.15, 3)
        joints.append(sy.Joint(side, above, rest=place(at)))
    return sy.Skeleton(joints, meters_per_unit=1.0)


def main() -> None:
    """Print one line of counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=100)
    options = parser.parse_args()
    counts = dict.fromkeys(("right", "other", "none", "proved", "refused", "wrong"), 0)
    times: list[float] = []
    for seed in range(options.problems):
        rng = np.random.default_rng(seed)
        body = body_of(rng)
        ends = [sy.Pose(body, body.random_pose(seed).with_values({"trunk": turn}).q) for turn in (-1.4, 1.4)]
        targets = {side: ends[0].position(side).copy() for side in SIDES}
        if seed % 2:
            wanted = {"a"}
            targets["a"] += 2.0 * np.array([0.0, 0.0, 1.0])
        else:
            wanted = {"a", "b"}
            targets["b"] = ends[1].position("b").copy()
            del targets["c"]
        solution = sy.solve(body, [sy.PositionGoal(side, at) for side, at in targets.items()], "full-body")
        begun = time.process_time()
        conflict = solution.find_conflict()
        times.append(time.process_time() - begun)
        if conflict is None:
            counts["none"] += 1
            continue
        counts["right" if set(conflict.goals) == wanted else "other"] += 1
        if conflict.proof is not None:
            counts["proved"] += 1
            counts["refused"] += not conflict.proof.check()
        goals = [sy.PositionGoal(side, targets[side]) for side in conflict.goals]
        counts["wrong"] += sy.solve(body, goals, sy.FullBody(attempts=400)).reached
    print(f"{options.problems} problems:", ", ".join(f"{count} {name}" for name, count in counts.items()))
    print(f"seconds: median {np.median(times):.2f}, largest {max(times):.2f}")
    raise SystemExit(1 if counts["wrong"] or counts["refused"] else 0)


if __name__ == "__main__":
    main()
