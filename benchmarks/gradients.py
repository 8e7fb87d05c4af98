"""Derivatives of answers against central differences of answers solved again, and the times of their products.

    python benchmarks/gradients.py [--problems 100] [--seed 0]

Each case is a body with goals: positions, poses, balance, priorities, a posture, active limits, loops, clearance, and
targets out of reach. Its answers are solved at a tolerance of 1e-12, moved targets from the answer. The differences are
estimates: solvers take errors that differ by 1e-9 as equal. So a derivative is wrong if it differs by more than the bar
and by more than five times what the estimates themselves differ by; where these differ by more than the bar, the
problem is undecided. A kink is an answer at a switch, of which the derivative says so itself.
"""

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from common import machine, save, table, verdicts

import synovia as sy

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from answers_again import estimate
from mechanisms import five_bar

BAR, WRONG = 1e-5, 1e-3
TIGHT = (1e-12, 1e-12)


def cases():
    """Return the cases: name, IK, and joints with the factor of their places."""
    arm, man, dog = sy.bundled("arm7"), sy.bundled("humanoid"), sy.bundled("quadruped")
    hand, clear = sy.bundled("humanoid_hands"), sy.with_shapes(sy.bundled("arm7"))
    world = sy.World([sy.Sphere(center=(0.3, 0.0, 0.4), radius=0.15)])
    narrow = arm.with_limits({"joint2": (-0.3, 0.3), "joint4": (-1.0, -0.5)})
    paws = [name for name in dog.tips if "foot" in name or "paw" in name][:2] or list(dog.tips)[:2]
    fingers = [name for name in hand.tips if "index" in name.lower()][:1] or list(hand.tips)[-1:]
    heavy = sy.with_body_masses(man)
    balance = sy.CenterOfMassGoal(heavy.rest_pose().center_of_mass())

    def ik(body, goals, solver, **options):
        return sy.IK(body, goals, solver, **{"tolerance": TIGHT} | options)

    position, pose = sy.PositionGoal, sy.PoseGoal
    return [
        ("arm, position", ik(arm, position("tool"), "lm"), {"tool": 1.0}),
        ("arm, pose", ik(arm, pose("tool"), "lm"), {"tool": 1.0}),
        ("arm, pose, by levels", ik(arm, pose("tool"), "full-body"), {"tool": 1.0}),
        ("arm, position out of reach", ik(arm, position("tool"), "lm"), {"tool": 2.5}),
        ("arm, pose out of reach", ik(arm, pose("tool"), "lm"), {"tool": 2.5}),
        ("narrow arm, pose", ik(narrow, pose("tool"), "lm"), {"tool": 1.3}),
        ("humanoid, hand", ik(man, position("left_hand"), "lm"), {"left_hand": 1.0}),
        ("humanoid, hand out of reach", ik(man, position("left_hand"), "lm"), {"left_hand": 3.0}),
        (
            "humanoid, hands, free root",
            ik(man, [position("left_hand"), position("right_hand")], "full-body", root="free"),
            {"left_hand": 1.0, "right_hand": 1.0},
        ),
        (
            "humanoid, two levels",
            ik(man, [position("left_hand", priority=0), position("right_hand", priority=1)], "full-body"),
            {"left_hand": 1.0, "right_hand": 1.0},
        ),
        ("humanoid, balance", ik(heavy, [position("left_hand"), balance], "full-body"), {"left_hand": 1.0}),
        ("finger", ik(hand, position(fingers[0]), "lm"), {fingers[0]: 1.0}),
        ("quadruped, paws", ik(dog, [position(paw) for paw in paws], "full-body"), dict.fromkeys(paws, 1.0)),
        ("five-bar linkage", ik(five_bar(), position("right_forearm"), None), {"right_forearm": 1.0}),
        (
            "arm, clearance",
            ik(clear, [position("tool"), sy.ClearanceGoal(0.02, world=world)], "full-body", tolerance=(1e-9, 1e-9)),
            {"tool": 1.0},
        ),
    ]


def answers(ik, joints, count, seed):
    """Yield answers to random targets, from random starts."""
    body = ik.skeleton
    for k in range(count):
        pose = body.random_pose(seed + 2 * k)
        targets = {}
        for goal in ik.goals:
            if goal.label in joints:
                T = pose.transform(goal.joint) @ goal.frame
                T[:3, 3] *= joints[goal.label]
                targets[goal.label] = T if isinstance(goal, sy.PoseGoal) else T[:3, 3]
        yield ik.solve(targets, start=body.random_pose(seed + 2 * k + 1))


def judged(name, ik, joints, count, seed):
    """Return the row of a case."""
    row = {"case": name, "problems": count, "kinks": 0, "undecided": 0, "exact": 0, "wrong": 0, "worst": 0.0}
    spent = 0.0
    for solution in answers(ik, joints, count, seed):
        begun = time.process_time()
        found = solution.derivative()
        spent += time.process_time() - begun
        if found.kink:
            row["kinks"] += 1
            continue
        wanted, doubt = estimate(ik, solution)
        error = float(np.abs(found - wanted).max()) / max(float(np.abs(wanted).max()), 1e-9)
        if doubt > BAR and error <= 5.0 * doubt:
            row["undecided"] += 1
            continue
        row["exact"] += error <= max(BAR, 5.0 * doubt)
        row["wrong"] += error > max(WRONG, 5.0 * doubt)
        row["worst"] = max(row["worst"], error)
    return row | {"ms": 1e3 * spent / count}


def rounds(count, seed):
    """Return processor milliseconds of a forward and a backward pass, in arrays and, if it is there, in PyTorch."""
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, sy.PoseGoal("tool"))
    T = np.array([arm.random_pose(seed + k).transform("tool") for k in range(count)])
    v = np.ones((count, arm.nv))

    def measured(work):
        best = np.inf
        for _ in range(5):
            begun = time.perf_counter()
            work()
            best = min(best, time.perf_counter() - begun)
        return 1e3 * best

    many = ik.solve_many(T)
    out = {"solve_many": measured(lambda: ik.solve_many(T)), "pull_back": measured(lambda: many.pull_back(v))}
    if find_spec("torch"):
        import torch

        import synovia.torch as st

        torch.set_num_threads(1)
        given = torch.tensor(T, requires_grad=True)
        out["torch, forward"] = measured(lambda: st.solve(ik, given))
        q = st.solve(ik, given)
        ones = torch.ones_like(q)
        out["torch, backward"] = measured(lambda: torch.autograd.grad(q, given, ones, retain_graph=True))
    return out


def main():
    """Judge the derivatives, measure the times, and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", nargs="+", help="only cases with one of these words")
    options = parser.parse_args()
    rows = [
        judged(name, ik, joints, options.problems, options.seed)
        for name, ik, joints in cases()
        if not options.cases or any(word in name for word in options.cases)
    ]
    times = rounds(options.rows, options.seed)
    judgeable = sum(row["problems"] - row["kinks"] - row["undecided"] for row in rows)
    exact = sum(row["exact"] for row in rows) / max(judgeable, 1)
    backward = times["pull_back"] / times["solve_many"]
    bars, held = verdicts(
        [
            (
                f"at least 99 % of the decided answers without a kink agree to {BAR:g}: {100 * exact:.2f} %",
                exact >= 0.99,
            ),
            (f"none differs by more than {WRONG:g}", not any(row["wrong"] for row in rows)),
            (f"products take at most 0.3 of the solves: {backward:.2f}", backward <= 0.3),
        ]
    )
    head = list(rows[0]) if rows else ["case"]
    cells = [[f"{cell:.2g}" if isinstance(cell, float) else cell for cell in row.values()] for row in rows]
    text = f"{table(head, cells)}\n\n{table(list(times), [[f'{ms:.2f} ms' for ms in times.values()]])}\n\n{bars}"
    result = {"rows": rows, "times": times, "exact": exact, "backward": backward}
    save("gradients", "Derivatives of answers, and the times of their products", result, text, machine())
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
