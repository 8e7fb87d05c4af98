"""Answers to slightly other problems, found again from an answer, to judge its derivative by central differences.

Solvers take errors that differ by 1e-9 as equal, so the answer to a miss stays where it is while its target moves by
less than that resolves. So several steps are tried, and the estimate is taken on which two of them agree best.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space

import synovia as sy
from synovia.ik.derivative import Differentiable, missed_goals, target_parts
from synovia.kernels import layout
from synovia.model import Kind
from synovia.model.geometry import rotation_between

STEPS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)  # radians, length scales
_SOFT = 3e-5  # curvature, relative to the largest, below which Newton's method leaves a direction as it is
MISSED_STEPS = (1e-6, 1e-5, 1e-4, 1e-3)  # for misses, whose answers are found less exactly


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


def solved(ik: sy.IK, solution: sy.Solution, targets: np.ndarray) -> sy.Solution:
    """Return the answer to other targets, solved from the answer."""
    forms = {3: lambda T: T, 1: lambda T: T[:3, 3], 2: lambda T: sy.Rotation.from_matrix(T[:3, :3])}
    given = {
        goal.label: forms[parts](T)
        for goal, parts, T in zip(ik.goals, target_parts(ik.problem), targets, strict=True)
        if parts
    }
    return ik.solve(given, start=solution.pose, follow=True)


class Refined:
    """The conditions of the minimum that a miss is, solved to rounding from answers to other targets.

    Solvers stop a little before a minimum. Newton's method moves their answers onto it, with the bounds held that
    are active at the first answer; directions without curvature stay as the solver left them.
    """

    def __init__(self, ik: sy.IK, solution: sy.Solution) -> None:
        """Find what is active at the answer."""
        problem = solution.ik
        row = problem.new_rows(1)
        row[0] = solution._row
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
        """Whether there is one function to minimise, by hinges and slides."""
        return len(self.least) == 1 and self.posture is None and not self.chart.balls

    def normals(self, poses: np.ndarray) -> np.ndarray:
        """Return the derivatives of the touched limits at poses, (T, bounds, n)."""
        h = 1e-6 * np.eye(self.n)
        out = np.zeros((len(poses), len(self.bounds), self.n))
        for t, q in enumerate(poses if self.bounds else ()):
            ahead, behind = self.chart.moved(q, h), self.chart.moved(q, -h)
            for i, beyond in enumerate(self.bounds):
                out[t, i] = (beyond(ahead) - beyond(behind)) / 2e-6
        return out

    def conditions(self, poses: np.ndarray, forces: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the gradient with the forces of constraints, then the constraints, at poses (T, nq)."""
        at = self.p.rows(np.concatenate([self.q[None], poses]), targets)
        e, J = at.e[1:], at.J[1:]
        values = np.choose(self.side, [e, at.low[1:], at.high[1:]])[:, self.met]
        rows, k = self.least[0], len(self.met)
        gradient = -np.einsum("tij,ti->tj", J[:, rows], e[:, rows])
        gradient += np.einsum("tij,i->tj", J[:, self.met], forces[:k])
        gradient += np.einsum("tij,i->tj", self.normals(poses), forces[k:])
        held = np.array([beyond(poses) for beyond in self.bounds]).T.reshape(len(poses), -1)
        return np.concatenate([gradient, values, held], axis=1)

    def solve(self, targets: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Return the joint values at which the conditions hold; the start if Newton's method does not converge."""
        m, h = len(self.met) + len(self.bounds), 1e-6
        q, forces = start.copy(), np.zeros(m)
        for k in range(12):
            steps = h * np.concatenate([np.eye(self.n), -np.eye(self.n)])
            found = self.conditions(np.concatenate([q[None], self.chart.moved(q, steps)]), forces, targets)
            now = found[0]
            K = np.zeros((len(now), self.n + m))
            K[:, : self.n] = ((found[1 : 1 + self.n] - found[1 + self.n :]) / (2 * h)).T
            for j in range(m):
                K[:, self.n + j] = self.conditions(q[None], forces + np.eye(m)[j], targets)[0] - now
            n = self.n
            A, C, F, g = K[:n, :n], K[n:, :n], K[:n, n:], now[:n]
            x = np.linalg.lstsq(C, -now[n:], rcond=1e-7)[0] if m else np.zeros(n)
            Z = null_space(C, rcond=1e-7) if m else np.eye(n)
            x = x - Z @ np.linalg.lstsq(Z.T @ A @ Z, Z.T @ (g + A @ x), rcond=_SOFT)[0]
            q = self.chart.moved(q, x[None])[0]
            forces = forces + np.linalg.lstsq(F, -(g + A @ x), rcond=1e-7)[0] if m else forces
            if k and np.abs(x).max() < 1e-11:
                return self.p.ik.skeleton.follow(q)
        return start


def differences(ik: sy.IK, solution: sy.Solution, step: float) -> np.ndarray:
    """Return central differences of the answer by the components of its targets, (nv, parameters)."""
    columns = []
    refined = None if solution.reached else Refined(ik, solution)

    def found(targets: np.ndarray) -> np.ndarray:
        moved = solved(ik, solution, targets)
        exact = Refined(ik, moved) if refined is None and not moved.reached else refined
        return moved.q if exact is None or not exact.single else exact.solve(targets.reshape(-1, 16), moved.q.copy())

    for place in places(ik):
        size = step if place[1] else step * ik.reach
        ahead, behind = (found(displaced(solution.targets, place, s * size)) for s in (1.0, -1.0))
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
