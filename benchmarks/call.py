"""Where the time of one ``IK.solve`` call goes: parts timed in turn, the best of many rounds of each.

python benchmarks/call.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numba
import numpy as np
from common import machine, save, table

import synovia as sy
from synovia.ik.solution import Solution
from synovia.kernels.compiler.jit import ready


@numba.njit
def nothing(ints, floats, targets, starts, out, scratch, warm, first):
    return 0


def cases() -> dict[str, tuple[sy.IK, dict[str, object]]]:
    """Return problems: an arm that is there already, one that has to move, slower targets, a person's hand."""
    arm, person = sy.bundled("arm7"), sy.bundled("humanoid")
    pose = sy.IK(arm, sy.PoseGoal("tool"), tolerance=(1e-6, 1e-6))
    away = arm.random_pose(3).transform("tool")
    hand = sy.IK(person, sy.PositionGoal("left_hand"), sy.Fabrik())
    place = person.random_pose(5).position("left_hand")
    return {
        "arm, at the target": (pose, {"tool": pose.skeleton.rest_pose().transform("tool")}),
        "arm, random target": (pose, {"tool": away}),
        "arm, position and Rotation": (pose, {"tool": (away[:3, 3], sy.Rotation.from_matrix(away[:3, :3]))}),
        "hand, FABRIK": (hand, {"left_hand": place}),
    }


def parts(ik: sy.IK, targets: dict[str, object]) -> dict[str, Callable[[], object]]:
    """Return the parts of a call, each as a function without arguments."""
    problem = ik.problem
    workspace = problem.new_workspace()
    problem.writer.fill(targets, workspace)
    row = np.empty(problem.row_shape)
    given = (problem.ints, problem.floats, workspace.table, problem.rest, row, workspace.scratch, False, 0)
    empty = ready(nothing, *given)
    if problem.call(*given) & 1:
        raise SystemExit(f"the target {targets} is missed: this measures calls that reach")
    fill, kernel, shape, idle = problem.writer.fill, problem.call, problem.row_shape, [workspace]
    ints, floats, aim, rest, scratch = problem.ints, problem.floats, workspace.table, problem.rest, workspace.scratch
    return {
        "whole call": lambda: ik.solve(targets),
        "targets": lambda: fill(targets, workspace),
        "empty answer": lambda: np.empty(shape),
        "empty compiled call": lambda: empty(ints, floats, aim, rest, row, scratch, False, 0),
        "kernel call": lambda: kernel(ints, floats, aim, rest, row, scratch, False, 0),
        "solution": lambda: Solution(problem, row, None),
        "workspace": lambda: idle.append(idle.pop()),
        "nothing": lambda: 0,
        "reading pose.q": lambda: Solution(problem, row, None).pose.q,
        "reading q": lambda: Solution(problem, row, None).q,
    }


def measure(ik: sy.IK, targets: dict[str, object], rounds: int, calls: int) -> dict[str, float]:
    """Return the best time of each part in microseconds; in each round every part has its turn."""
    best: dict[str, float] = {}
    todo = parts(ik, targets)
    for _ in range(rounds):
        for name, part in todo.items():
            began = time.perf_counter_ns()
            for _ in range(calls):
                part()
            best[name] = min(best.get(name, np.inf), (time.perf_counter_ns() - began) / calls / 1000)
    own = best.pop("nothing")  # the loop and the function around each part
    net = {name: value - own for name, value in best.items()}
    known = net["targets"] + net["empty answer"] + net["kernel call"] + net["solution"] + net["workspace"]
    return {
        "targets": net["targets"],
        "array for the answer": net["empty answer"],
        "compiled call, empty": net["empty compiled call"],
        "kernel": net["kernel call"] - net["empty compiled call"],
        "solution object": net["solution"],
        "rest of solve": net["whole call"] - known,
        "whole call": net["whole call"],
        "without the kernel": net["whole call"] - net["kernel call"] + net["empty compiled call"],
        "then reading pose.q": net["reading pose.q"] - net["solution"],
        "or q": net["reading q"] - net["solution"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--calls", type=int, default=100, help="of a part in turn: short, or others have the core")
    args = parser.parse_args()
    where = machine()
    found, steps = {}, {}
    for name, (ik, targets) in cases().items():
        steps[name] = ik.solve(targets).steps
        found[name] = measure(ik, targets, args.rounds, args.calls)
    rows: list[list[object]] = [["steps", *steps.values()]]
    rows += [[part, *(f"{found[name][part]:.3f}" for name in found)] for part in next(iter(found.values()))]
    result = {name: {"steps": steps[name], "us": {k: round(v, 4) for k, v in found[name].items()}} for name in found}
    save("call", "One call of IK.solve, microseconds", {"cases": result}, table(["µs", *found], rows), where)


if __name__ == "__main__":
    main()
