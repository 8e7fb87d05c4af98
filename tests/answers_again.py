"""Answers to slightly other problems, found again from an answer, to judge its derivative by central differences.

Solvers take errors that differ by 1e-9 as equal, so the answer to a miss stays where it is while its target moves by
less than that resolves. So several steps are tried, and the estimate is taken on which two of them agree best.
"""

from __future__ import annotations

import numpy as np

import synovia as sy
from synovia.ik.derivative import target_parts
from synovia.model import Kind
from synovia.model.geometry import rotation_between

STEPS = (1e-7, 1e-6, 1e-5, 1e-4)  # radians, length scales
MISSED_STEPS = (3e-4, 1e-3, 3e-3, 1e-2)  # for misses, whose answers are found less exactly


def difference(skeleton: sy.Skeleton, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the motion from joint values a to b in the order of ``dof_names``."""
    out: list[float] = []
    for row, joint in enumerate(skeleton.joints):
        x, y = a[skeleton.q_slice(row)], b[skeleton.q_slice(row)]
        if joint.kind in (Kind.BALL, Kind.FREE):
            out += [*(y[:-4] - x[:-4]), *rotation_between(x[None, -4:], y[None, -4:])[0]]
        else:
            out += [*(y - x)]
    return np.array(out)


def places(ik: sy.IK) -> list[tuple[int, bool, int]]:
    """Return (goal, whether it is a rotation, axis) of each component of the targets."""
    return [
        (g, turns, c)
        for g, parts in enumerate(target_parts(ik.problem))
        for part, turns in ((1, False), (2, True))
        if parts & part
        for c in range(3)
    ]


def displaced(targets: np.ndarray, place: tuple[int, bool, int], step: float) -> np.ndarray:
    """Return targets (goals, 4, 4) with one component moved."""
    g, turns, c = place
    out = targets.copy()
    if turns:
        out[g, :3, :3] = sy.Rotation.from_rotvec(step * np.eye(3)[c]).as_matrix() @ out[g, :3, :3]
    else:
        out[g, c, 3] += step
    return out


def solved(ik: sy.IK, solution: sy.Solution, targets: np.ndarray) -> np.ndarray:
    """Return the joint values of the answer to other targets, solved from the answer."""
    forms = {3: lambda T: T, 1: lambda T: T[:3, 3], 2: lambda T: sy.Rotation.from_matrix(T[:3, :3])}
    given = {
        goal.label: forms[parts](T)
        for goal, parts, T in zip(ik.goals, target_parts(ik.problem), targets, strict=True)
        if parts
    }
    return ik.solve(given, start=solution.pose, follow=True).q.copy()


def differences(ik: sy.IK, solution: sy.Solution, step: float) -> np.ndarray:
    """Return central differences of the answer by the components of its targets, (nv, parameters)."""
    columns = []
    for place in places(ik):
        size = step if place[1] else step * ik.reach
        ahead, behind = (solved(ik, solution, displaced(solution.targets, place, s * size)) for s in (1.0, -1.0))
        columns.append(difference(ik.skeleton, behind, ahead) / (2.0 * size))
    return np.array(columns).T


def estimate(ik: sy.IK, solution: sy.Solution) -> tuple[np.ndarray, float]:
    """Return the derivative from differences with several steps, extrapolated, and its doubt relative to its size.

    A column that is exactly zero comes from a solver that took the moved problem as solved; other steps decide it.
    """
    steps = STEPS if solution.reached else MISSED_STEPS
    found = np.array([differences(ik, solution, step) for step in steps])
    squared = (np.array(steps[1:]) / np.array(steps[:-1]))[:, None, None] ** 2
    better = (squared * found[:-1] - found[1:]) / (squared - 1.0)
    estimates = [(found[k], np.abs(found[k] - found[k + 1]).max(0)) for k in range(len(steps) - 1)]
    estimates += [(better[k], np.abs(better[k] - better[k + 1]).max(0)) for k in range(len(steps) - 2)]
    still = [~found[k].any(0) for k in range(len(steps) - 1)] + [~found[k].any(0) for k in range(len(steps) - 2)]
    doubts = np.array([np.where(zero, 1e3, doubt) for (_, doubt), zero in zip(estimates, still, strict=True)])
    best = doubts.argmin(0)
    columns = np.arange(len(best))
    value = np.array([one for one, _ in estimates])[best, :, columns].T
    moved = doubts.min(0) < 1e3
    doubt = float(doubts.min(0)[moved].max(initial=0.0))
    return value, doubt / max(float(np.abs(value).max()), 1e-9)
