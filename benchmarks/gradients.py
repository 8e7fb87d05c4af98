"""Derivatives of answers against central differences of answers solved again, and the times of their products.

    python benchmarks/gradients.py [--problems 10000] [--first 0] [--seconds 180] [--add]

Problem k is that of case k mod 27, with seeds of its own: positions, poses, balance, priorities, active limits, loops,
clearance, and targets out of reach, of arms, hands, humanoids, a quadruped and a linkage. Its answers are solved at a
tolerance of 1e-12, moved targets from the answer. The differences are estimates: solvers take errors that differ by
1e-9 as equal. So a derivative is wrong if it differs by more than the bar and by more than five times what the
estimates themselves differ by; where these differ by more than the bar, the problem is undecided. A kink is an answer
at a switch, of which the derivative says so itself.

``--seconds`` ends the run early, and the result says which problem is next; ``--add`` adds to the result on disk.
"""

import argparse
import json
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from common import RESULTS, machine, needed_data, save, table, verdicts

import synovia as sy

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from answers_again import estimate
from mechanisms import five_bar

BAR, WRONG = 1e-5, 1e-3
TIGHT = (1e-12, 1e-12)


def cases():
    """Return the cases: name, IK, and joints with the factor of their places."""
    data = needed_data()
    arm, man, dog = sy.bundled("arm7"), sy.bundled("humanoid"), sy.bundled("quadruped")
    fingers, clear = sy.bundled("humanoid_hands"), sy.with_shapes(sy.bundled("arm7"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # meshes that the folder does not have
        panda, ur5, so100, g1 = (
            sy.load_skeleton(data / "robot" / f"{name}.urdf") for name in ("panda", "ur5_robot", "so100", "g1_29dof")
        )
        allegro, shadow = (
            sy.load_skeleton(data / "hands" / f"{name}_hand_right.urdf") for name in ("allegro", "shadow")
        )
    world = sy.World([sy.Sphere(center=(0.3, 0.0, 0.4), radius=0.15)])
    narrow = arm.with_limits({"joint2": (-0.3, 0.3), "joint4": (-1.0, -0.5)})
    paws = [name for name in dog.tips if "foot" in name or "paw" in name][:2] or list(dog.tips)[:2]
    index = next(name for name in fingers.tips if "index" in name.lower())
    flange, wrist, palm = "panda_hand_tcp_joint", "ee_fixed_joint", "left_hand_palm_joint"
    tips = ["joint_3.0_tip", "joint_7.0_tip", "joint_11.0_tip", "joint_15.0_tip"]
    heavy = sy.with_body_masses(man)
    balance = sy.CenterOfMassGoal(heavy.rest_pose().center_of_mass())

    def ik(body, goals, solver, **options):
        return sy.IK(body, goals, solver, **{"tolerance": TIGHT} | options)

    def case(name, body, goal, solver, joints, *, far=1.0, levels=False, **options):
        goals = [goal(joint, **({"priority": k} if levels else {})) for k, joint in enumerate(joints)]
        return name, ik(body, goals, solver, **options), dict.fromkeys(joints, far)

    position, pose, hands = sy.PositionGoal, sy.PoseGoal, ["left_hand", "right_hand"]
    return [
        case("arm7, position", arm, position, "lm", ["tool"]),
        case("Panda, pose", panda, pose, "lm", [flange]),
        case("UR5, pose", ur5, pose, "lm", [wrist]),
        case("SO-100, position", so100, position, "lm", ["link:gripper"]),
        case("arm7, pose, by levels", arm, pose, "full-body", ["tool"]),
        case("Panda, two levels", panda, position, "full-body", [flange, "panda_joint5"], levels=True),
        case("arm7, position out of reach", arm, position, "lm", ["tool"], far=2.5),
        case("UR5, pose out of reach", ur5, pose, "lm", [wrist], far=1.5),
        case("Panda, pose out of reach", panda, pose, "lm", [flange], far=1.5),
        case("arm7, position out of reach, by levels", arm, position, "full-body", ["tool"], far=2.5),
        case("narrow arm7, pose", narrow, pose, "lm", ["tool"], far=1.3),
        case("Allegro, finger tips", allegro, position, "lm", tips),
        case("Shadow, finger and thumb", shadow, position, "lm", ["FFtip", "THtip"]),
        case("Shadow, tips out of reach", shadow, position, "lm", ["FFtip", "THtip"], far=1.3),
        case("hands, finger", fingers, position, "lm", [index]),
        case("humanoid, hand", man, position, "lm", ["left_hand"]),
        case("humanoid, hand out of reach", man, position, "lm", ["left_hand"], far=3.0),
        case("humanoid, pose out of reach", man, pose, "lm", ["left_hand"], far=1.3),
        case("humanoid, hands, free root", man, position, "full-body", hands, root="free"),
        case("humanoid, two levels", man, position, "full-body", hands, levels=True),
        ("humanoid, balance", ik(heavy, [position("left_hand"), balance], "full-body"), {"left_hand": 1.0}),
        case("G1, pose", g1, pose, "lm", [palm]),
        case("G1, pose out of reach", g1, pose, "lm", [palm], far=1.5),
        case("G1, two levels", g1, position, "full-body", [palm, "right_hand_palm_joint"], levels=True),
        case("quadruped, paws", dog, position, "full-body", paws),
        case("five-bar linkage", five_bar(), position, None, ["right_forearm"]),
        (
            "arm7, clearance",
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


def judge(ik, joints, seed, row):
    """Judge the answer to one problem, and add it to the row of its case."""
    (solution,) = answers(ik, joints, 1, seed)
    begun = time.process_time()
    found = solution.derivative()
    row["seconds"] += time.process_time() - begun
    row["problems"] += 1
    row["misses"] += not solution.reached
    if found.kink:
        row["kinks"] += 1
        return
    wanted, doubt = estimate(ik, solution)
    error = float(np.abs(found - wanted).max()) / max(float(np.abs(wanted).max()), 1e-9)
    if doubt > BAR and error <= 5.0 * doubt:
        row["undecided"] += 1
        return
    row["exact"] += error <= max(BAR, 5.0 * doubt)
    row["worst"] = max(row["worst"], error)
    if error > max(BAR, 5.0 * doubt):
        row["wrong"] += error > WRONG
        row["seeds"].append(seed)


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


COUNTS = ("problems", "misses", "kinks", "undecided", "exact", "wrong")


def main():
    """Judge the derivatives, measure the times, and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first problem")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no problem after this time")
    parser.add_argument("--add", action="store_true", help="go on after the problems of the result on disk")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--cases", nargs="+", help="only cases with one of these words")
    options = parser.parse_args()
    some = [one for one in cases() if not options.cases or any(word in one[0] for word in options.cases)]
    rows = [
        dict.fromkeys(("case", *COUNTS), 0) | {"case": one[0], "worst": 0.0, "seconds": 0.0, "seeds": []}
        for one in some
    ]
    first = options.first
    if options.add:
        before = json.loads((RESULTS / "gradients.json").read_text(encoding="utf-8"))
        rows, first = before["rows"], before["next"]
    end = time.monotonic() + options.seconds
    following = first
    while following < first + options.problems and time.monotonic() < end:
        k, which = divmod(following, len(some))
        judge(*some[which][1:], 2 * k, rows[which])
        following += 1
    times = rounds(options.rows, 0)
    total = {name: sum(row[name] for row in rows) for name in COUNTS}
    decided = total["problems"] - total["kinks"] - total["undecided"]
    exact, backward = total["exact"] / max(decided, 1), times["pull_back"] / times["solve_many"]
    bars, held = verdicts(
        [
            (
                f"of {decided} decided answers without a kink, at least 99 % agree to {BAR:g}: {100 * exact:.2f} %",
                exact >= 0.99,
            ),
            (f"none differs by more than {WRONG:g}: {total['wrong']} do", total["wrong"] == 0),
            (f"products take at most 0.3 of the solves: {backward:.2f}", backward <= 0.3),
        ]
    )
    head = ["case", *COUNTS, "worst", "ms"]
    cells = [
        [
            *(row[name] for name in head[:-2]),
            f"{row['worst']:.1e}",
            f"{1e3 * row['seconds'] / max(row['problems'], 1):.1f}",
        ]
        for row in [
            *rows,
            total
            | {
                "case": "all",
                "worst": max(row["worst"] for row in rows),
                "seconds": sum(row["seconds"] for row in rows),
            },
        ]
    ]
    text = f"{table(head, cells)}\n\n{table(list(times), [[f'{ms:.2f} ms' for ms in times.values()]])}\n\n{bars}"
    result = {"rows": rows, "next": following, "times": times, "exact": exact, "backward": backward}
    save("gradients", "Derivatives of answers, and the times of their products", result, text, machine())
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
