"""Answers to slightly other problems, found again from an answer, to judge its derivative by central differences.

``solved`` asks the solver. ``refined`` then solves the conditions of a minimum by Newton's method to rounding, with the
bounds held that are active at the answer: solvers take errors that differ by 1e-9 as equal, so the answer to a miss
stays where it is while its target moves by less than that resolves.
"""

from __future__ import annotations

import numpy as np

import synovia as sy
from synovia.ik.derivative import Differentiable, missed_goals, target_parts
from synovia.kernels import layout
from synovia.model import Kind
from synovia.model.geometry import rotation_between

STEPS = (1e-5, 1e-4, 1e-3)


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


class Refined:
    """The conditions of a minimum of an answer, solved again for other targets."""

    def __init__(self, ik: sy.IK, solution: sy.Solution) -> None:
        """Find what is active at the answer."""
        problem = solution.ik
        row = solution._row[None]
        self.p, self.q = Differentiable(problem), np.ascontiguousarray(row[0, problem.places])
        self.n, self.chart = self.p.n, self.p.chart
        missed = set(np.flatnonzero(missed_goals(problem, row)[0]).tolist())
        table = problem.reduced.goals.table
        at = self.p.rows(self.q[None], problem.targets_in(row)[0])
        self.bounds = self.chart.bounds(self.q)
        self.met: list[int] = []
        self.least: list[list[int]] = []
        for first, last in self.p.levels:
            rows = list(range(first, last))
            lost = any(first <= table[g, layout.FIRST_RESIDUAL] < last for g in missed if table[g, layout.RESIDUALS])
            equal = at.low[0] == at.high[0]
            if lost:
                self.least.append([r for r in rows if equal[r] or at.e[0, r] != 0.0])
            else:
                self.met += [r for r in rows if equal[r] or at.low[0, r] >= -1e-6 or at.high[0, r] <= 1e-6]
        self.side = np.where(at.low[0] == at.high[0], 0, np.where(at.high[0] <= 1e-6, 2, 1))
        self.posture = self.p.posture if self.p.posture[:, layout.REST_WEIGHT].any() else None

    @property
    def single(self) -> bool:
        """Whether there is exactly one function to minimise."""
        return len(self.least) + (self.posture is not None) == 1

    def conditions(self, q: np.ndarray, forces: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the gradient with the forces of constraints, then the constraints."""
        poses = np.concatenate([self.q[None], q[None]])
        at = self.p.rows(poses, targets)
        values = np.choose(self.side, [at.e[1], at.low[1], at.high[1]])[self.met]
        if self.posture is not None:
            gradient = self.chart.posture_gradient(q[None], self.posture)[0]
        else:
            rows = self.least[0]
            gradient = -at.J[1, rows].T @ at.e[1, rows]
        normals = at.J[1, self.met]
        limits = np.zeros((len(self.bounds), self.n))
        for i, beyond in enumerate(self.bounds):
            h = 1e-6 * np.eye(self.n)
            limits[i] = (beyond(self.chart.moved(q, h)) - beyond(self.chart.moved(q, -h))) / 2e-6
        held = np.array([beyond(q[None])[0] for beyond in self.bounds])
        k = len(self.met)
        return np.concatenate([gradient + normals.T @ forces[:k] + limits.T @ forces[k:], values, held])

    def solve(self, targets: np.ndarray) -> np.ndarray | None:
        """Return the joint values at which the conditions hold, or None if Newton's method does not converge."""
        q, forces = self.q.copy(), np.zeros(len(self.met) + len(self.bounds))
        m = len(forces)
        h = 1e-6
        for k in range(30):
            now = self.conditions(q, forces, targets)
            K = np.zeros((len(now), self.n + m))
            for i in range(self.n):
                step = h * np.eye(self.n)[[i]]
                ahead, behind = (
                    self.conditions(self.chart.moved(q, s * step)[0], forces, targets) for s in (1.0, -1.0)
                )
                K[:, i] = (ahead - behind) / (2 * h)
            for j in range(m):
                one = np.zeros(m)
                one[j] = 1.0
                K[:, self.n + j] = self.conditions(q, forces + one, targets) - now
            step = np.linalg.lstsq(K, -now, rcond=1e-7)[0]
            q = self.chart.moved(q, step[None, : self.n])[0]
            forces = forces + step[self.n :]
            if k and np.abs(step[: self.n]).max() < 1e-12:
                return self.p.ik.skeleton.follow(q)
        return None
