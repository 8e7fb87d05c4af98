"""The set-up of the FABRIK paper: ten joints, 900 mm, targets at 600 mm to a thousandth of a millimetre.

python benchmarks/paper.py
"""

from __future__ import annotations

import argparse

import numpy as np
from common import machine, save, table

import synovia as sy

BONES, BONE = 9, 100.0  # ten joints; millimetres
NEAR, FAR = 600.0, 1000.0  # distance of targets from the root, within and beyond the reach of 900
TOLERANCE = 1e-3
BEND = 3.0  # degrees from bone to bone at the start, all in one plane
PUBLISHED = {  # iterations: reachable, unreachable (Aristidou & Lasenby 2011)
    "fabrik": (15.5, "67.6; 1 with the straight line"),
    "ccd": (26.3, "390"),
    "transpose": (1311, "-"),
    "dls": (999, "-"),
}
NOTES = """An iteration is what each method calls one: a pass inward and outward, a sweep over all joints, a step. The
Jacobian methods here take far fewer than the published ones: the transpose takes the step that leaves the least
error, and damping counts lengths in reaches; the paper does not state its settings. Out of reach, FABRIK lays the
chain straight in one iteration and sees in the next that it stays; the others count until nothing moves any more."""
OTHERS = {"damped least squares with SVD": 809, "follow the leader": 21.1, "triangulation": 1}


def directions(count: int) -> np.ndarray:
    """Return unit vectors all around."""
    way = np.random.default_rng(2011).normal(size=(count, 3))
    return way / np.linalg.norm(way, axis=1, keepdims=True)


def start_of(chain: sy.Skeleton) -> sy.Pose:
    """Return the start: an arc, so that no method has to leave a straight line first."""
    turn = sy.Rotation.from_euler("z", BEND, degrees=True).as_quat()
    return sy.Pose(chain, np.tile(turn, BONES))


def plain(points: np.ndarray, target: np.ndarray, most: int) -> int:
    """Return the iterations of the paper's loop alone, without the straight line for targets out of reach.

    It stops at the tolerance, or where an iteration moves the end effector by less.
    """
    p, base = points.copy(), points[0].copy()
    for k in range(most):
        if np.linalg.norm(p[-1] - target) <= TOLERANCE:
            return k
        before = p[-1].copy()
        p[-1] = target
        for i in range(len(p) - 2, -1, -1):
            p[i] = p[i + 1] + BONE / np.linalg.norm(p[i] - p[i + 1]) * (p[i] - p[i + 1])
        p[0] = base
        for i in range(len(p) - 1):
            p[i + 1] = p[i] + BONE / np.linalg.norm(p[i + 1] - p[i]) * (p[i + 1] - p[i])
        if np.linalg.norm(p[-1] - before) < TOLERANCE:
            return k + 1
    return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=100)
    parser.add_argument("--steps", type=int, default=5000, help="iterations of the single attempt that each gets")
    args = parser.parse_args()
    where = machine()
    chain = sy.Skeleton.chain(np.column_stack([np.arange(BONES + 1) * BONE, *np.zeros((2, BONES + 1))]))
    start = start_of(chain)
    ways = directions(args.targets)
    rows: list[list[object]] = []
    found: dict[str, dict[str, float]] = {}
    loops = [[plain(start.positions, way * far, args.steps) for way in ways[:10]] for far in (NEAR, FAR)]
    rows.append(
        [
            "the loop of the paper alone (10 targets)",
            "100%",
            f"{np.mean(loops[0]):.1f}",
            f"{np.mean(loops[1]):.1f}",
            15.5,
            "67.6",
        ]
    )
    for name, kind in sy.solvers.items():
        if kind.restrict is not sy.Solver.restrict:
            continue  # made for a few joints
        solver = kind(attempts=1, max_steps=args.steps)
        try:
            ik = sy.IK(chain, sy.PositionGoal(BONES), solver, tolerance=(TOLERANCE, 1e-3))
        except sy.errors.UnsupportedError:
            continue  # made for other bodies
        near = ik.solve_many({BONES: ways * NEAR}, start)
        far = ik.solve_many({BONES: ways * FAR}, start)
        over = far.errors[:, 0, 0] - (FAR - BONES * BONE)
        found[name] = {
            "reached": float(near.reached.mean()), "iterations": float(near.steps.mean()),
            "unreachable_iterations": float(far.steps.mean()), "unreachable_over_mm": float(over.max()),
        }  # fmt: skip
        published = PUBLISHED.get(name, ("-", "-"))
        rows.append(
            [name, f"{near.reached.mean():.0%}", f"{near.steps.mean():.1f}", f"{far.steps.mean():.1f}", *published]
        )
    rows += [[name, "-", "-", "-", *PUBLISHED[name]] for name in PUBLISHED if name not in found]
    rows += [[name, "-", "-", "-", value, "-"] for name, value in OTHERS.items()]
    head = ["iterations, mean", "reached", "reachable", "unreachable", "published, reachable", "published, unreachable"]
    text = (
        f"Ten joints (nine bones of {BONE:g} mm), no limits; targets at {NEAR:g} mm and, out of reach, at {FAR:g} mm,\n"
        f"in {args.targets} random directions; tolerance {TOLERANCE:g} mm; one attempt. The start is an arc: each\n"
        f"bone is turned {BEND:g}° against the one before. The paper states no start: compare orders of magnitude.\n\n"
        + table(head, rows)
        + f"\n\n{NOTES}"
    )
    save("paper", "The set-up of the FABRIK paper", {"rows": found}, text, where)


if __name__ == "__main__":
    main()
