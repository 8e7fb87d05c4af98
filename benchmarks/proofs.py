"""Proofs that positions are out of reach: false ones, how many misses they decide, and how long they take.

    python benchmarks/proofs.py [--reachable 1000] [--misses 100] [--checked 20] [--bodies ur5 panda ...]

Bodies are bundled ones, robots of the shared data where it is there, and random arms of seeds. ``--reachable`` poses of
each body, a third of them with joints at their limits, give targets that must not be proved to be out of reach; the
table says how many were, by search or by map. ``--misses`` random targets that many attempts missed are proved; the
table gives the share of those that miss by more than 1, 10 and 20 mm (scaled to a reach of 1 m), the time, and how many
of the first proofs the checker accepts, and refuses after the target was moved to a reachable point. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import synovia as sy
from synovia.ik.interrupts import Watch
from synovia.ik.proofs.chain import chain_of
from synovia.ik.proofs.maps import map_of
from synovia.ik.proofs.search import search, single
from synovia.results import Proof

DATA = Path(os.environ.get("SYNOVIA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "robot"
ROBOTS = {
    "ur5e": ("ur5e_nomesh.xml", "wrist_3_link"), "ur5": ("ur5_robot.urdf", "ee_link"),
    "panda": ("panda.urdf", "panda_hand"),
    "so100": ("so100.urdf", "link:gripper"),
}  # fmt: skip
SHORT = 5_000  # tokens: reachable targets have no proof, so a longer search takes only time
GAPS = (0.001, 0.01, 0.02)


def place(point: np.ndarray) -> np.ndarray:
    """Return the transform of a translation."""
    out = np.eye(4)
    out[:3, 3] = point
    return out


def random_arm(seed: int, joints: int, width: float) -> sy.Skeleton:
    """Return an arm of hinges, and a slide for some seeds, with random axes, links and limits."""
    rng = np.random.default_rng(seed)
    parts = [sy.Joint("base")]
    for k in range(joints):
        slides = seed % 3 == 2 and k == 2
        low, high = sorted(rng.uniform(-width, width, 2) + np.array([-0.2, 0.2]))
        limit = sy.Interval(0.0, 0.3) if slides else sy.Interval(float(low), float(high))
        axis = rng.normal(size=3)
        parts.append(
            sy.Joint(
                f"j{k}", parts[-1].name, sy.Kind.SLIDE if slides else sy.Kind.HINGE, place(rng.uniform(-0.3, 0.3, 3)),
                axis=axis / np.linalg.norm(axis), limit=limit,
            )
        )  # fmt: skip
    parts.append(sy.Joint("tip", parts[-1].name, rest=place(rng.uniform(-0.2, 0.2, 3))))
    return sy.Skeleton(parts, name=f"random{seed}")


def bodies() -> Iterator[tuple[str, sy.Skeleton, str]]:
    """Yield name, skeleton and tip of the bodies."""
    yield "arm7", sy.bundled("arm7"), "tool"
    for name, (file, tip) in ROBOTS.items():
        if (DATA / file).exists():
            body = sy.load_skeleton(DATA / file)
            yield name, body, tip
    for seed in range(14):
        yield f"random{seed}", random_arm(seed, 4 + seed % 4, 1.2 if seed % 2 else 3.0), "tip"


def poses(body: sy.Skeleton, count: int, seed: int) -> Iterator[sy.Pose]:
    """Yield random poses; in every third one, half of the joints are at a limit."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        q = body.random_pose(seed * 1_000_003 + k).q.copy()
        if k % 3 == 0:
            low, high = body.limits
            at = (rng.random(len(q)) < 0.5) & np.isfinite(low) & np.isfinite(high)
            q[at] = np.where(rng.random(len(q)) < 0.5, low, high)[at]
        yield sy.Pose(body, body.follow(q))


def main() -> None:
    """Print a row for each body."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reachable", type=int, default=1000)
    parser.add_argument("--misses", type=int, default=100)
    parser.add_argument("--checked", type=int, default=20)
    parser.add_argument("--bodies", nargs="*")
    options = parser.parse_args()
    head = "body", "joints", "s of map", "false", "of", ">20 mm", ">10 mm", ">1 mm", "ms p50 / p90", "bound / miss"
    print("|", " | ".join((*head, "checked", "refused")), "|")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    wrong = 0
    for name, body, tip in bodies():
        if options.bodies and name not in options.bodies:
            continue
        ik = sy.IK(body, sy.PositionGoal(tip), "lm", proofs=True)
        offset = ik.reach
        chain = chain_of(ik.problem.reduced, body.joint_names, body.rest_pose().q, 0)
        if chain is None:
            print(f"| {name} | no chain |")
            continue
        false = 0
        points = np.array([pose.position(tip) for pose in poses(body, options.reachable, 1)])
        near = 0.1 * ik.tolerance[0]
        area = map_of(chain)
        begun = time.process_time()
        painted = area is not None and area.paint(Watch())
        seconds = time.process_time() - begun
        for point in points:
            false += search(single(chain, point, near), Watch(), SHORT).tokens is not None
            false += painted and area.excludes(point, near) is not None
        wrong += false
        rng, middle = np.random.default_rng(2), chain.fixed[0, :, 3]
        plain, rows = sy.IK(body, sy.PositionGoal(tip), "lm"), []
        directions = rng.normal(size=(20 * options.misses, 3))
        directions *= (rng.random(len(directions)) ** (1 / 3) / np.linalg.norm(directions, axis=1))[:, None]
        found = plain.solve_many(middle + 1.1 * offset * directions)
        for b in np.flatnonzero(~found.reached)[: options.misses].tolist():
            solution = found[b]
            begun = time.perf_counter()
            proof = solution.prove()
            took = 1e3 * (time.perf_counter() - begun)
            looked = proof is not None and len(rows) < options.checked
            held = proof.check() if looked else np.nan
            moved = damaged(proof, points[b % len(points)]) if looked else np.nan
            share = 0.0 if proof is None else proof.bound / proof.found
            rows.append((solution.errors[0].position / offset, proof is not None, took, share, held, moved))
        table = np.array(rows, float).reshape(-1, 6)
        shares = [
            f"{100 * table[table[:, 0] > gap, 1].mean():.1f} % of {(table[:, 0] > gap).sum()}" for gap in GAPS[::-1]
        ]
        proved, looked = table[table[:, 1] > 0], table[table[:, 4] >= 0]
        p50, p90 = np.percentile(table[:, 2], [50, 90])
        print(
            f"| {name} | {len(chain.slides)} | {seconds:.1f} | {false} | {len(points)} "
            f"| {' | '.join(shares)} | {p50:.2f} / {p90:.2f} "
            f"| {np.median(proved[:, 3]):.2f} | {int(looked[:, 4].sum())} of {len(looked)} "
            f"| {int(looked[:, 5].sum())} |",
            flush=True,
        )
    raise SystemExit(1 if wrong else 0)


def damaged(proof: Proof, reachable: np.ndarray) -> bool:
    """Return whether the checker refuses the proof for a target that is reachable."""
    from dataclasses import replace

    return not replace(proof, targets=np.ascontiguousarray(reachable)[None]).sealed().check()


if __name__ == "__main__":
    main()
