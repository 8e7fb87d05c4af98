"""Proofs of all kinds for the checker: it must accept each of them, and refuse damaged ones.

    python benchmarks/proofs_checked.py [--proofs 300] [--damaged 1000]

Random arms miss random targets: positions, poses, directions, positions with a direction, and positions with bounds.
Some arms have a map of what their last joints reach.
Each proof is checked as it is, and damaged in several ways: the target is moved to a reachable point, the limits are
moved, the claimed distance is larger than the miss that was found, a branch is removed or closed, the body is that of
another seed, or painted cells of a map are erased. A damaged proof gets a new hash, so that only its content can show
the damage. If the checker accepts one, joint values are searched for that refute its claim: without them, the damage
is harmless; with them, the checker is wrong.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from proofs import random_arm
from scipy.optimize import least_squares

import synovia as sy
from synovia.ik.interrupts import Watch
from synovia.ik.proofs.chain import chain_of
from synovia.ik.proofs.maps import map_of
from synovia.results import Proof

STARTS = 40


def goals_of(body: sy.Skeleton, k: int, rng: np.random.Generator) -> list[sy.Goal]:
    """Return goals of the k-th kind with targets that are often out of reach."""
    pose = body.random_pose(int(rng.integers(1 << 30)))
    at = pose.position("tip") + rng.normal(size=3) * rng.choice([0.05, 0.2, 0.8, 3.0])
    axis = rng.normal(size=3)
    return [
        [sy.PositionGoal("tip", at)],
        [sy.PositionGoal("tip", at)],
        [sy.PoseGoal("tip", at, sy.Rotation.random(random_state=int(rng.integers(1 << 30))))],
        [sy.DirectionGoal("tip", (0, 0, 1), axis)],
        [sy.PositionGoal("tip", at), sy.DirectionGoal("tip", (0, 0, 1), axis)],
        [sy.PositionGoal("tip", at, bounds=(0.05, 0.02, 0.01))],
    ][k % 6]


def proofs() -> Iterator[tuple[Proof, sy.Skeleton, np.random.Generator]]:
    """Yield proofs, bodies and random generators of seeds."""
    seed = 0
    while True:
        rng = np.random.default_rng(seed)
        body = random_arm(seed, 2 + seed % 6, 1.0 if seed % 2 else 2.0)
        solution = sy.solve(body, goals_of(body, seed // 2, rng), "full-body")
        if seed % 2 and len(solution.goals) == 1 and isinstance(solution.goals[0], sy.PositionGoal):
            ik = solution.ik
            chain = chain_of(ik.reduced, body.joint_names, solution.q, 0)
            area = None if chain is None else map_of(chain.trimmed())
            if area is not None:
                area.paint(Watch())
        proof = None if solution.reached else solution.prove()
        if proof is not None:
            yield proof, body, rng
        seed += 1


def damages(proof: Proof, other: Proof, body: sy.Skeleton, rng: np.random.Generator) -> Iterator[tuple[str, Proof]]:
    """Yield names of damages, and damaged proofs."""
    q = rng.uniform(proof.low, proof.high)
    parts = list(zip(proof.fixed, proof.kinds, strict=True))
    yield "target", replace(proof, targets=np.array([tip(fixed, kinds, q) for fixed, kinds in parts]))
    yield "distance", replace(proof, near=1.05 * proof.found)
    width = rng.uniform(0.5, 2.0) + 0.0 * proof.low
    yield "limits", replace(proof, low=proof.low - width, high=proof.high + width)
    if other.fixed.shape == proof.fixed.shape:
        yield "body", replace(proof, fixed=other.fixed, low=other.low, high=other.high)
    tokens = proof.tokens
    if len(tokens) > 1:
        at = int(rng.integers(len(tokens)))
        yield "removed", replace(proof, tokens=np.delete(tokens, at))
        splits = np.flatnonzero((tokens >= 0) & (tokens < len(proof.low)))
        if len(splits):
            closed = tokens.copy()
            closed[rng.choice(splits)] = -2
            yield "closed", replace(proof, tokens=closed)
            joint = tokens.copy()
            at = rng.choice(splits)
            joint[at] = (joint[at] + 1) % len(proof.low)
            yield "joint", replace(proof, tokens=joint)
    if len(tokens):
        yield "added", replace(proof, tokens=np.append(tokens, np.int32(-2)))
    if proof.cells.size:
        cells = np.unpackbits(proof.cells, axis=1)
        painted = np.argwhere(cells)
        i, j = painted[rng.integers(len(painted))]
        cells[max(i - 3, 0) : i + 4, max(j - 3, 0) : j + 4] = 0
        yield "cells", replace(proof, cells=np.packbits(cells, axis=1))


def tip(fixed: np.ndarray, kinds: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return a part's place at joint values q."""
    p = fixed[-1, :, 3]
    for frame, kind, x in zip(fixed[-2::-1], kinds[::-1], q[::-1], strict=True):
        c, s = np.cos(x), np.sin(x)
        turned = np.array([c * p[0] - s * p[1], s * p[0] + c * p[1], p[2]])
        p = turned if kind == 0 else p + np.array([0.0, 0.0, x]) if kind == 1 else p
        p = frame[:, :3] @ p + frame[:, 3]
    return p


def refuted(proof: Proof) -> bool:
    """Return whether joint values within the limits bring all parts near their targets, so that the claim is wrong."""
    near = proof.margins + proof.near * (np.arange(len(proof.margins)) < proof.group)
    rng = np.random.default_rng(0)

    def away(q: np.ndarray) -> np.ndarray:
        """Return the distances of the parts from their targets, in their allowed distances."""
        found = [tip(fixed, kinds, q) for fixed, kinds in zip(proof.fixed, proof.kinds, strict=True)]
        return ((np.array(found) - proof.targets) / np.maximum(near, 1e-9)[:, None]).ravel()

    for _ in range(STARTS):
        start = rng.uniform(proof.low, proof.high)
        q = least_squares(away, start, bounds=(proof.low, proof.high + 1e-12)).x if len(start) else start
        if (np.linalg.norm(away(q).reshape(-1, 3), axis=1) < 1.0 - 1e-6).all():
            return True
    return False


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--proofs", type=int, default=300)
    parser.add_argument("--damaged", type=int, default=1000)
    options = parser.parse_args()
    kinds, counts, tried = Counter[str](), Counter[str](), 0
    last: dict[tuple[int, ...], Proof] = {}
    for k, (proof, body, rng) in enumerate(proofs()):
        if k >= options.proofs and tried >= options.damaged:
            break
        if k < options.proofs:
            kinds[f"{proof.kind} of {len(proof.margins)} parts" if len(proof.margins) > 1 else proof.kind] += 1
            counts["accepted" if proof.check() else "not accepted"] += 1
        for name, damaged in damages(proof, last.get(proof.fixed.shape, proof), body, rng):
            if tried < options.damaged and damaged is not proof:
                same = name == "body" and damaged.fixed is proof.fixed
                tried += not same
                if same or not damaged.sealed().check():
                    counts[f"refused: {name}"] += not same
                    continue
                state = "WRONG" if refuted(damaged) else "harmless"
                counts[f"{state}: {name}"] += 1
        last[proof.fixed.shape] = proof
    print("proofs:", ", ".join(f"{number} by {kind}" for kind, number in kinds.items()))
    for name in sorted(counts):
        print(f"{name}: {counts[name]}")
    wrong = sum(number for name, number in counts.items() if name.startswith(("WRONG", "not")))
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
