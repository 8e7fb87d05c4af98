"""Derivatives of answers with respect to targets, weights, the posture, link offsets and tool frames.

An answer minimises the error of one priority level after the other, within the limits. This module differentiates the
optimality conditions at the answer, and keeps active bounds active. A level that is met gives equations, J dq = de. A
level that is missed is a minimum: H dq = -d(∇L), where L is half the squared error plus the constraints of higher
levels times their multipliers, and H its Hessian. In directions that no level determines, the answer stays, in the
metric of the solver's steps. Second derivatives are central differences, which work for every kind of goal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError, UnsupportedError
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.kernels import layout
from synovia.kernels.packing import table_of
from synovia.model import Kind
from synovia.model.geometry import Array, quat_product, rotation_between, times_exp
from synovia.model.pose import world_frames
from synovia.solver import JacobianMethod

OF: Final = ("targets", "weights", "posture", "offsets", "tools")
_STEP: Final = 1e-5  # step of first differences, radians or length scales
_SECOND: Final = 3e-4  # step of second differences
_NEAR: Final = 1e-5  # radians, length scales: a bound nearer than this counts as touched
_RANK: Final = 1e-7  # a direction is undetermined if its singular value, relative to the largest, is below this
_WEAK: Final = 1e-6  # an active bound may be left if its multiplier, relative to the gradient, is below this
_MOVES: Final = 1e-9  # smallest motion, relative to the largest, that counts
_BALANCED: Final = 1e-3  # a pose counts as a minimum if its gradient, relative to the gradient's parts, is below this
_SOFT: Final = 1e-7  # a direction is undetermined if its curvature, relative to the largest, is below this
_SINGULAR: Final = 1e-4  # an answer is singular if a relative curvature or singular value is below this
_MIXED: Final = 1e-5  # a ball takes part in motions if its share, relative to the largest, is above this
_BLOCK: Final = 2000  # number of poses that are evaluated at once
_EXACT, _CLOSE = 1e-9, 1e-3  # steps to a minimum (radians, length scales) that are rounding, and that are large
_ASIDE: Final = 1e-2  # radians, length scales: distance of a pose at which no curvature is 0 by chance
_STAY: Final = 0.01  # weight of no motion, relative to the largest posture weight, see ``kernels.hierarchy.step``


class Derivative(np.ndarray[Any, np.dtype[np.float64]]):
    """The derivative of an answer: (nv, parameters) for one, (B, nv, parameters) for a batch.

    Rows are the velocities of ``skeleton.dof_names``: radians and length units; a ball has the angular velocity in its
    own frame. The row of a mimic joint is its motion.

    Attributes:
        parameters: Name of each column, such as ``"tool.x"`` or ``"tool.rx"``.
        kink: Whether the derivative is one-sided or may be inaccurate: the answer touches a limit,
            clearance or bound without a force against it, is singular or no minimum; or it misses goals at a ball's
            limit where the half-angles change; or it misses goals with priorities, while a limited ball that moves can
            also turn without effect on any goal (the steps of ``FullBody`` then decide how it turns). For a batch,
            (B,).

    Example:
        >>> import synovia as sy
        >>> solution = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5)))
        >>> change = solution.derivative()
        >>> change.shape, change.parameters, change.kink
        ((7, 3), ('tool.x', 'tool.y', 'tool.z'), False)
    """

    parameters: tuple[str, ...]
    kink: Any

    def __new__(cls, values: Array, parameters: Sequence[str], kink: Any) -> Self:
        """Return the values as a derivative."""
        out = np.asarray(values).view(cls)
        out.parameters, out.kink = tuple(parameters), kink
        return out

    def __array_finalize__(self, other: object) -> None:
        """Copy the attributes to views and copies."""
        self.parameters = getattr(other, "parameters", ())
        self.kink = getattr(other, "kink", None)


class Change(NamedTuple):
    """A parameter, and its effect.

    Args:
        name: Name of the parameter.
        unit: Units of the parameter for a step of 1: 1 for radians, the length scale for lengths.
        moved: Returns (targets, floats) after a step.
    """

    name: str
    unit: float
    moved: Callable[[float], tuple[Array, Array]]


@dataclass
class _Rows:
    """Rows of the problem at several poses; see ``kernels.hierarchy.linear_rows``."""

    e: Array
    J: Array
    low: Array
    high: Array


@dataclass
class _State:
    """What the levels so far determine.

    Args:
        D: (n, P) the derivative.
        Z: (n, z) basis of the undetermined directions.
        open: (n, z) the basis Z if no bound were held.
        normals: Outward normals of bounds, and gradients of equations.
        keys: Residual row of each normal; -1 - k for bound k of the joints; None for a missed level.
        bounds: Whether each normal is that of a bound.
        strengths: Largest multiplier of each normal, relative to the gradient.
        kink: Whether a condition of smoothness failed.
    """

    D: Array
    Z: Array
    open: Array
    normals: list[Array] = field(default_factory=list[Array])
    keys: list[int | None] = field(default_factory=list["int | None"])
    bounds: list[bool] = field(default_factory=list[bool])
    strengths: list[float] = field(default_factory=list[float])
    kink: bool = False

    def add(self, normal: Array, key: int | None, *, bound: bool = False) -> None:
        """Add an equation or a held bound."""
        self.normals.append(normal)
        self.keys.append(key)
        self.bounds.append(bound)
        self.strengths.append(0.0)


class _Touched(NamedTuple):
    """A bound that the answer touches.

    Args:
        key: As in ``_State.keys``.
        normal: (n,) outward normal.
        value: Bound of the row that is touched, ``"low"`` or ``"high"``; empty for a joint.
    """

    key: int
    normal: Array
    value: str


class Answer(NamedTuple):
    """An answer to differentiate: joint values (nq,), complete targets (goals, 16), and which goals are missed."""

    q: Array
    targets: Array
    missed: Sequence[int]


class Differentiable:
    """A packed problem whose answers are differentiated. Not safe to use from several threads.

    Args:
        ik: The problem.

    Raises:
        UnsupportedError: If this module cannot differentiate its answers.
    """

    def __init__(self, ik: CompiledProblem) -> None:
        """Check the problem, and read its tables."""
        _refuse(ik)
        self.ik = ik
        self.ints, self.floats = ik.ints, ik.floats
        self.reduced = ik.reduced
        self._scratch = new_scratch(ik.scratch_size)
        self._edges = np.zeros(3 * len(self.reduced.goals.general_ints) + 1)
        self.posture = table_of(self.ints, self.floats, "posture")
        self.chart = Chart(ik)
        self.n = self.chart.n
        goals = self.reduced.goals
        self.levels = list(zip(goals.levels[:-1].tolist(), goals.levels[1:].tolist(), strict=True))

    # --- Parameters ---------------------------------------------------------------------------------------------------

    def changes(self, of: str, answer: Answer) -> list[Change]:
        """Return those parameters of one kind that change residuals, with their effect on the problem."""
        if of == "targets":
            return list(self._target_changes(answer))
        if of == "offsets":
            return list(self._offset_changes(answer))
        return list(self._tool_changes(answer)) if of == "tools" else []

    def _target_changes(self, answer: Answer) -> Iterator[Change]:
        """Yield a change for each component of each target: positions, then rotation vectors, in the world."""
        takes = target_parts(self.ik)
        for g, goal in enumerate(self.ik.goals):

            def moved(step: float, g: int = g, c: int = 0, turns: bool = False) -> tuple[Array, Array]:
                targets = answer.targets.copy()
                T = targets[g].reshape(4, 4)
                if turns:
                    T[:3, :3] = _turn(step, c) @ T[:3, :3]
                else:
                    T[c, 3] += step
                return targets, self.floats

            yield from _six(goal.label, takes[g], moved, self.ik.reach)

    def _offset_changes(self, answer: Answer) -> Iterator[Change]:
        """Yield a change for each component of each moving joint's fixed offset, in its parent's frame."""
        skeleton, reduced = self.ik.skeleton, self.reduced
        joints: list[int] = reduced.joints.tolist()
        pose_frames = world_frames(skeleton, answer.q[None])[0]
        z_frames = skeleton.tables.unfold.reshape(-1, 3, 3)
        for r, joint in enumerate(joints):
            above = int(skeleton.parents[joint])
            outer = np.eye(3) if above < 0 else pose_frames[above, :9].reshape(3, 3)
            carrier = int(reduced.rows[r, layout.PARENT])
            row_joint = -1 if carrier < 0 else joints[carrier]
            inner = np.eye(3)
            if row_joint >= 0:  # the frame of a row is in z-form
                inner = pose_frames[row_joint, :9].reshape(3, 3) @ z_frames[row_joint].T
            into = inner.T @ outer

            def moved(
                step: float, r: int = r, into: Array = into, c: int = 0, turns: bool = False
            ) -> tuple[Array, Array]:
                floats = self.floats.copy()
                frame = table_of(self.ints, floats, "tree.fixed")[r]
                if turns:
                    frame[:9] = (into @ _turn(step, c) @ into.T @ frame[:9].reshape(3, 3)).ravel()
                else:
                    frame[9:] += step * into[:, c]
                return answer.targets, floats

            yield from _six(skeleton.joint_keys[joint], POSITION | ROTATION, moved, self.ik.reach)

    def _tool_changes(self, answer: Answer) -> Iterator[Change]:
        """Yield a change for each component of the frame of each position, rotation or pose goal, in its own axes."""
        for g in tool_goals(self.ik):

            def moved(step: float, g: int = g, c: int = 0, turns: bool = False) -> tuple[Array, Array]:
                floats = self.floats.copy()
                frame = table_of(self.ints, floats, "goal_data")[g, layout.GOAL_ORIENTATION :]
                R = frame[:9].reshape(3, 3)
                if turns:
                    frame[:9] = (R @ _turn(step, c)).ravel()
                else:
                    frame[9:] += step * R[:, c]
                return answer.targets, floats

            yield from _six(self.ik.goals[g].label, POSITION | ROTATION, moved, self.ik.reach)

    # --- The derivative -----------------------------------------------------------------------------------------------

    def of(self, answer: Answer, of: str) -> Derivative:
        """Return the derivative of an answer by one kind of parameters.

        Raises:
            UnsupportedError: If the problem has no such parameters.
        """
        here = _AtAnswer(self, answer, of)
        found = here.solved()
        if answer.missed and _EXACT < np.abs(here.shift).max(initial=0.0) < _CLOSE:  # solvers stop before a minimum
            q = self.ik.skeleton.follow(self.chart.moved(answer.q, here.shift[None])[0])
            found = _AtAnswer(self, answer._replace(q=q), of).solved()
        return Derivative(self.chart.to_v @ found[0], here.names, found[1])

    def rows(self, q: Array, targets: Array, floats: Array | None = None) -> _Rows:
        """Return the rows at poses (T, nq), with targets (goals, 16) or (T, goals, 16); the first is the answer's."""
        from synovia.kernels.hierarchy.linear_rows import linear_rows

        count, m = len(q), self.reduced.residuals
        many = np.ascontiguousarray(np.broadcast_to(targets, (count, *targets.shape[-2:])))
        values, J = np.empty((3, count, m)), np.empty((count, m, self.n))
        given = self.floats if floats is None else floats
        linear_rows(self.ints, given, many, np.ascontiguousarray(q), self._scratch, self._edges, values, J)
        return _Rows(values[0], J, values[1], values[2])


class Chart:
    """Coordinates of poses around an answer: a step of each Jacobian column, in radians and length scales."""

    def __init__(self, ik: CompiledProblem) -> None:
        """Read the variables."""
        reduced, skeleton = ik.reduced, ik.skeleton
        variables = reduced.variables
        scalar = variables[:, layout.BLOCK] == layout.SCALAR
        self.n = reduced.columns
        self.by_levels = ik.method.supports_priorities
        self.limits = reduced.limits
        lengths = scalar & (reduced.limits[:, layout.IS_ANGLE] == 0.0)
        self.units = np.where(lengths, ik.reach, 1.0)
        self.scalars = [
            (k, int(variables[k, layout.BLOCK_Q]), int(variables[k, layout.BLOCK_COLUMN]))
            for k in np.flatnonzero(scalar).tolist()
        ]
        self.balls = [
            (k, int(variables[k, layout.BLOCK_Q]), int(variables[k, layout.BLOCK_COLUMN]))
            for k in np.flatnonzero(~scalar).tolist()
        ]
        self._to_v = np.zeros((skeleton.nv, self.n))
        first_of: dict[int, int] = {}
        at_v = 0
        for row, joint in enumerate(skeleton.joints):
            at_q = skeleton.q_slice(row).start
            first_of[at_q] = at_v
            if joint.kind is Kind.FREE:
                first_of |= {at_q + c: at_v + c for c in range(4)}
            at_v += joint.kind.v_size
        for k, at, column in self.scalars:
            self._to_v[first_of[at], column] = self.units[k]
        for _, at, column in self.balls:
            self._to_v[first_of[at] : first_of[at] + 3, column : column + 3] = np.eye(3)
        self.from_v = np.zeros((self.n, skeleton.nv))
        np.divide(1.0, self._to_v.T, where=self._to_v.T != 0.0, out=self.from_v)
        at_v = 0
        for row, joint in enumerate(skeleton.joints):
            if joint.mimic is not None:
                leader, ratio = skeleton.dof_columns[row]
                self._to_v[at_v] = ratio * self._to_v[leader]
            at_v += joint.kind.v_size

    @property
    def to_v(self) -> Array:
        """Matrix (nv, n) from columns to velocities."""
        return self._to_v

    def moved(self, q: Array, steps: Array) -> Array:
        """Return the poses (T, nq) after steps (T, n) from q."""
        out = np.repeat(q[None], len(steps), axis=0)
        for k, at, column in self.scalars:
            out[:, at] += self.units[k] * steps[:, column]
        for _, at, column in self.balls:
            out[:, at : at + 4] = times_exp(out[:, at : at + 4], steps[:, column : column + 3])
        return out

    def bounds(self, q: Array) -> list[Callable[[Array], Array]]:
        """Return a function of poses (T, nq) for each limit that q touches; it is 0 there and grows outwards."""
        found: list[Callable[[Array], Array]] = []
        for k, at, _ in self.scalars:
            low, high = self.limits[k, [layout.LOWER, layout.UPPER]] / self.units[k]
            x = q[at] / self.units[k]
            for sign, bound in ((1.0, high), (-1.0, low)):
                if sign * (bound - x) <= _NEAR:

                    def beyond(poses: Array, at: int = at, sign: float = sign, k: int = k, b: float = bound) -> Array:
                        return sign * (poses[:, at] / self.units[k] - b)

                    found.append(beyond)
        for k, at, _ in self.balls:
            if self.limits[k, layout.IS_LIMITED] == 0.0:
                continue
            limit = self.limits[k]

            half, _ = self._half_angles(k, q[at : at + 4])  # half-angles of the answer's quadrant, also beyond its edge

            def swing(poses: Array, at: int = at, limit: Array = limit, half: Array = half) -> Array:
                return np.linalg.norm(swing_twist(limit, poses[:, at : at + 4])[:, :2] / half, axis=1) - 1.0

            if swing(q[None])[0] >= -_NEAR:
                found.append(swing)
            low, high = limit[layout.TWIST_LOWER], limit[layout.TWIST_UPPER]
            twist = float(swing_twist(limit, q[None, at : at + 4])[0, 2])
            for sign, bound in ((1.0, high), (-1.0, low)):
                if high - low < 2.0 * np.pi - 1e-9 and sign * (bound - twist) <= _NEAR:

                    def turned(
                        poses: Array, at: int = at, limit: Array = limit, sign: float = sign, b: float = bound
                    ) -> Array:
                        return sign * (swing_twist(limit, poses[:, at : at + 4])[:, 2] - b)

                    found.append(turned)
        return found

    def _half_angles(self, k: int, quat: Array) -> tuple[Array, bool]:
        """Return the two half-angles that bound a swing in its quadrant, and whether they change right next to it."""
        limit: Array = self.limits[k]
        s: Array = swing_twist(limit, quat[None])[0, :2]
        ahead: Array = limit[[layout.SWING_X, layout.SWING_Y]]
        behind: Array = limit[[layout.SWING_X_BACK, layout.SWING_Y_BACK]]
        half: Array = np.where(s >= 0.0, ahead, behind)
        return half, bool(((np.abs(s) <= _NEAR) & (ahead != behind)).any())

    def at_seam(self, q: Array) -> bool:
        """Return whether q is at a swing limit where the half-angles change, and with them the limit's curvature."""
        for k, at, _ in self.balls:
            if self.limits[k, layout.IS_LIMITED] != 0.0:
                half, seam = self._half_angles(k, q[at : at + 4])
                swing = swing_twist(self.limits[k], q[None, at : at + 4])[0, :2]
                if seam and np.linalg.norm(swing / half) >= 1.0 - _NEAR:
                    return True
        return False

    def measure(self, q: Array, posture: Array, *, missed: bool) -> Array:
        """Return S (n, n): the solver (at a miss, its polish) takes the step S x of the columns with least |x|."""
        S = np.eye(self.n)
        for k, at, column in self.balls:
            if (self.by_levels or missed) and self.limits[k, layout.IS_LIMITED] != 0.0:  # steps of swing and twist
                part = slice(column, column + 3)
                S[part, part] = np.linalg.pinv(self._rates(k, q[at : at + 4]), rcond=1e-9)
        weights = posture[:, layout.REST_WEIGHT]
        if self.by_levels and weights.any():
            for k, _, column in (*self.scalars, *self.balls):
                stiff = np.sqrt(weights[k] / weights.max() + _STAY)
                S[:, column : column + (1 if (k, _, column) in self.scalars else 3)] /= stiff
        return S

    def posture_gradient(self, poses: Array, posture: Array) -> Array:
        """Return the gradients, (T, n), of half the weighted squared distance from the posture at poses (T, nq)."""
        out = np.zeros((len(poses), self.n))
        for k, at, column in self.scalars:
            out[:, column] = posture[k, layout.REST_WEIGHT] * (poses[:, at] - posture[k, layout.REST_Q]) / self.units[k]
        for k, at, column in self.balls:
            weight = posture[k, layout.REST_WEIGHT]
            if weight > 0.0:
                quats = poses[:, at : at + 4]
                wanted = np.broadcast_to(posture[k, layout.REST_Q : layout.REST_Q + 4], quats.shape)
                out[:, column : column + 3] = -weight * self._towards(k, quats, wanted)
        return out

    def _towards(self, k: int, quats: Array, wanted: Array) -> Array:
        """Return minus the gradients (T, 3) of half the squared distance of rotations to wanted ones."""
        if self.limits[k, layout.IS_LIMITED] == 0.0 or not self.by_levels:
            return rotation_between(quats, wanted)
        steps = swing_twist(self.limits[k], wanted) - swing_twist(self.limits[k], quats)
        if self.limits[k, layout.TWIST_UPPER] - self.limits[k, layout.TWIST_LOWER] >= 2.0 * np.pi - 1e-9:
            steps[:, 2] = (steps[:, 2] + np.pi) % (2.0 * np.pi) - np.pi
        return np.array([self._rates(k, quat).T @ step for quat, step in zip(quats, steps, strict=True)])

    def posture_changes(self, q: Array, posture: Array) -> Array:
        """Return the derivative of the gradient by steps of the reference in each column, (n, n)."""
        out = np.zeros((self.n, self.n))
        for k, _, column in self.scalars:
            out[column, column] = -posture[k, layout.REST_WEIGHT]
        for k, at, column in self.balls:
            quat, wanted = np.repeat(q[None, at : at + 4], 6, axis=0), posture[k, layout.REST_Q : layout.REST_Q + 4]
            steps = _STEP * np.concatenate([np.eye(3), -np.eye(3)])
            found = self._towards(k, quat, times_exp(np.repeat(wanted[None], 6, axis=0), steps))
            part = slice(column, column + 3)
            out[part, part] = -posture[k, layout.REST_WEIGHT] * ((found[:3] - found[3:]) / (2.0 * _STEP)).T
        return out

    def _rates(self, k: int, quat: Array) -> Array:
        """Return the rates of swing and twist per unit of angular velocity, (3, 3)."""
        steps = np.concatenate([_STEP * np.eye(3), -_STEP * np.eye(3)])
        found = swing_twist(self.limits[k], times_exp(np.repeat(quat[None], 6, axis=0), steps))
        return ((found[:3] - found[3:]) / (2.0 * _STEP)).T


class _AtAnswer:
    """Differentiates one answer level by level, in the coordinates x of the solver's measure."""

    def __init__(self, problem: Differentiable, answer: Answer, of: str) -> None:
        """Evaluate the problem at the answer, and list its parameters."""
        self.p, self.answer, self.of = problem, answer, of
        self.chart, self.n = problem.chart, problem.n
        self.changes = problem.changes(of, answer)
        self.names = self._names()
        self.P = len(self.names)
        self.base = problem.rows(answer.q[None], answer.targets)
        self.S = self.chart.measure(answer.q, problem.posture, missed=len(answer.missed) > 0)
        self.J = self.base.J[0] @ self.S
        self.joint_bounds = self.chart.bounds(answer.q)
        self.missed = [self._is_missed(first, last) for first, last in problem.levels]
        self.touched = [*self._touched_joints(), *self._touched_rows()]
        self.has_posture = bool(problem.posture[:, layout.REST_WEIGHT].any())
        self.shift = np.zeros(self.n)  # step of the columns to the minima of missed levels; known when solved

    def _names(self) -> list[str]:
        """Return the names of the parameters.

        Raises:
            UnsupportedError: If the problem has no such parameters.
        """
        ik = self.p.ik
        if self.of == "posture" and not self.p.posture[:, layout.REST_WEIGHT].any():
            raise UnsupportedError("the problem has no posture", where="derivative", expected="a RestGoal")
        if self.of == "weights":
            return [goal.label for goal in ik.goals]
        return list(ik.skeleton.dof_names) if self.of == "posture" else [change.name for change in self.changes]

    def _is_missed(self, first: int, last: int) -> bool:
        """Return whether a goal with rows in a level is missed."""
        table = self.p.reduced.goals.table
        rows = table[list(self.answer.missed), layout.FIRST_RESIDUAL] if len(self.answer.missed) else np.empty(0)
        sizes = table[list(self.answer.missed), layout.RESIDUALS] if len(self.answer.missed) else np.empty(0)
        return bool(((rows >= first) & (rows < last) & (sizes > 0)).any())

    def _touched_joints(self) -> Iterator[_Touched]:
        """Yield the limits of joints that the answer touches."""
        steps = _STEP * np.eye(self.n)
        poses = self.chart.moved(self.answer.q, np.concatenate([steps, -steps]))
        for k, beyond in enumerate(self.joint_bounds):
            values = beyond(poses)
            normal = (values[: self.n] - values[self.n :]) / (2.0 * _STEP)
            yield _Touched(-1 - k, normal @ self.S, "")

    def _touched_rows(self) -> Iterator[_Touched]:
        """Yield the one-sided rows of met levels that are at a bound, or beyond it within the tolerance."""
        low, high = self.base.low[0], self.base.high[0]
        for (first, last), missed in zip(self.p.levels, self.missed, strict=True):
            for row in range(first, last):
                if missed or low[row] == high[row]:
                    continue
                if low[row] >= -_NEAR:
                    yield _Touched(row, -self.J[row], "low")
                elif high[row] <= _NEAR:
                    yield _Touched(row, self.J[row], "high")

    # --- Differences --------------------------------------------------------------------------------------------------

    @cached_property
    def stepped(self) -> list[tuple[_Rows, _Rows, float]]:
        """The rows after a forward and a backward step of each parameter, and the sum of both steps."""
        out: list[tuple[_Rows, _Rows, float]] = []
        q = self.answer.q[None]
        for change in self.changes:
            pair = [self.p.rows(q, *change.moved(side * _STEP * change.unit)) for side in (1.0, -1.0)]
            out.append((pair[0], pair[1], 2.0 * _STEP * change.unit))
        return out

    def _by_parameters(self, value: Callable[[_Rows], Array]) -> Array:
        """Return the derivative of some values (k,) of the rows by the parameters, (k, P)."""
        columns = [(value(ahead) - value(behind)) / size for ahead, behind, size in self.stepped]
        return np.array(columns).T if columns else np.zeros((len(value(self.base)), self.P))

    def _gradient(self, rows: _Rows, some: Sequence[int]) -> Array:
        """Return the gradients of half the squared residuals of some rows, (T, n), by the columns."""
        return -np.einsum("tij,ti->tj", rows.J[:, some], rows.e[:, some])

    def _forces(self, poses: Array, rows: _Rows, multipliers: Sequence[tuple[int, float, str]]) -> Array:
        """Return Σ multiplier · constraint for each of T poses, (T,)."""
        out = np.zeros(len(poses))
        for key, factor, value in multipliers:
            if key < 0:
                out += factor * self.joint_bounds[-1 - key](poses)
            elif value:
                out += factor * (rows.low[:, key] if value == "low" else -rows.high[:, key])
            else:
                out += factor * rows.e[:, key]
        return out

    def _poses(self, steps: Array) -> Iterator[tuple[Array, slice]]:
        """Yield the poses after steps (T, n) in blocks that begin with the answer, and the steps of each block."""
        for first in range(0, len(steps), _BLOCK):
            part = slice(first, min(first + _BLOCK, len(steps)))
            yield np.concatenate([self.answer.q[None], self.chart.moved(self.answer.q, steps[part])]), part

    def _force_curvature(self, multipliers: Sequence[tuple[int, float, str]]) -> Array:
        """Return the second derivatives, by the columns, of Σ multiplier · constraint, (n, n)."""
        n = self.n
        rows = [key for key, _, _ in multipliers if key >= 0]
        joints = [bound.normal for bound in self.touched if bound.key in {key for key, _, _ in multipliers if key < 0}]
        aside = self.chart.moved(self.answer.q, _ASIDE * np.cos(np.arange(n))[None])  # no entry is 0 there by chance
        J = self.p.rows(np.concatenate([self.answer.q[None], aside]), self.answer.targets).J[1]
        used = np.abs(J[rows]).max(0, initial=0.0) + np.abs(joints or np.zeros((1, n))).max(0)
        for _, _, at in self.chart.balls:  # normals are by swing and twist, but steps by angular velocities
            used[at : at + 3] = used[at : at + 3].max()
        columns = np.flatnonzero(used > 0.0).tolist()
        pairs = [(i, j) for i in columns for j in columns if j <= i]
        signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
        eye = _SECOND * np.eye(n)
        steps = np.array([a * eye[i] + b * eye[j] for i, j in pairs for a, b in signs])
        values = np.empty(len(steps))
        for poses, part in self._poses(steps):
            values[part] = self._forces(poses, self.p.rows(poses, self.answer.targets), multipliers)[1:]
        values = values.reshape(-1, 4)
        out = np.zeros((n, n))
        for (i, j), (pp, pm, mp, mm) in zip(pairs, values.tolist(), strict=True):
            out[i, j] = out[j, i] = (pp - pm - mp + mm) / (4.0 * _SECOND**2)
        return out

    def _force_changes(self, multipliers: Sequence[tuple[int, float, str]]) -> Array:
        """Return the derivative, by the parameters, of the gradient of Σ multiplier · constraint, (n, P)."""
        own = [one for one in multipliers if one[0] >= 0]
        if not own or not self.changes:
            return np.zeros((self.n, self.P))
        steps = _SECOND * np.concatenate([np.eye(self.n), -np.eye(self.n)])
        poses = np.concatenate([self.answer.q[None], self.chart.moved(self.answer.q, steps)])
        out = np.empty((self.n, self.P))
        for p, change in enumerate(self.changes):
            ahead, behind = (
                self._forces(poses, self.p.rows(poses, *change.moved(side * _SECOND * change.unit)), own)[1:]
                for side in (1.0, -1.0)
            )
            mixed = (ahead - behind).reshape(2, self.n)
            out[:, p] = (mixed[0] - mixed[1]) / (4.0 * _SECOND**2 * change.unit)
        return out

    def _hessian(self, gradient: Callable[[Array], Array]) -> Array:
        """Return the Hessian (n, n) by the columns, given a function of the gradient at poses."""
        steps = _STEP * np.concatenate([np.eye(self.n), -np.eye(self.n)])
        found = np.concatenate([gradient(poses)[1:] for poses, _ in self._poses(steps)])
        H = (found[: self.n] - found[self.n :]) / (2.0 * _STEP)
        return 0.5 * (H + H.T)  # the mean removes how the axes of balls turn

    # --- Levels -------------------------------------------------------------------------------------------------------

    def solved(self, held: Sequence[bool] | None = None) -> tuple[Array, bool]:
        """Return the derivative by the columns (n, P), and whether it is one-sided or may be inaccurate.

        ``held`` says which of the touched bounds are held; None for all.
        """
        keep = [True] * len(self.touched) if held is None else held
        active = {bound.key: bound for bound, kept in zip(self.touched, keep, strict=True) if kept}
        state = _State(np.zeros((self.n, self.P)), np.eye(self.n), np.eye(self.n))
        joints = [bound for bound in active.values() if bound.key < 0]
        for bound in joints:
            state.add(bound.normal, bound.key, bound=True)
        if joints:
            state.Z = _null(np.array([bound.normal for bound in joints]))
        for (first, last), missed in zip(self.p.levels, self.missed, strict=True):
            if missed:
                self._miss(state, first, last)
            else:
                self._meet(state, first, last, active)
        if self.has_posture:
            self._rest(state)
        if any(self.missed):
            state.kink |= self.chart.at_seam(self.answer.q) or (self.chart.by_levels and self._is_loose(state))
        if held is None:
            self._leave(state)
        return self.S @ state.D, state.kink

    def _is_loose(self, state: _State) -> bool:
        """Return whether limited balls that move can also turn in directions that no level determines."""
        moves, free = self.S @ state.D, self.S @ state.Z
        least = _MIXED * float(np.abs(moves).max(initial=0.0))
        return any(
            np.abs(moves[at : at + 3]).max(initial=0.0) > least and np.abs(free[at : at + 3]).max(initial=0.0) > _MIXED
            for k, _, at in self.chart.balls
            if self.chart.limits[k, layout.IS_LIMITED] != 0.0
        )

    def _leave(self, state: _State) -> None:
        """Mark a kink if the derivative changes when touched bounds without a force (multiplier 0) are released."""
        strong = {
            key
            for key, bound, strength in zip(state.keys, state.bounds, state.strengths, strict=True)
            if bound and strength > _WEAK
        }
        weak = [bound.key not in strong for bound in self.touched]
        if not any(weak):
            return
        free, failed = self.solved([not one for one in weak])
        moves = np.linalg.solve(self.S, free)
        size = max(float(np.abs(moves).max(initial=0.0)), 1e-300)
        leaves = [
            float(np.abs(bound.normal @ moves).max(initial=0.0)) > _MOVES * size * float(np.abs(bound.normal).max())
            for bound, one in zip(self.touched, weak, strict=True)
            if one
        ]
        state.kink |= failed or any(leaves)

    def _meet(self, state: _State, first: int, last: int, active: dict[int, _Touched]) -> None:
        """Keep the equations of a level that is met, and its held bounds."""
        low, high = self.base.low[0], self.base.high[0]
        equal = [row for row in range(first, last) if low[row] == high[row]]
        bounds = [active[row] for row in range(first, last) if row in active]
        rows = [*equal, *(bound.key for bound in bounds)]
        if not rows:
            return
        A = self.J[rows]
        R = self._by_parameters(
            lambda at: np.concatenate(
                [at.e[0, equal], [at.low[0, b.key] if b.value == "low" else at.high[0, b.key] for b in bounds]]
            )
        )
        wanted = R - A @ state.D
        u, s, vt = np.linalg.svd(A @ state.Z)
        rank = int((s > _RANK * max(s[0], 1e-300)).sum()) if len(s) and s[0] > 1e-12 else 0
        if rank:
            state.kink |= bool(s[rank - 1] < _SINGULAR * s[0])
            state.D = state.D + state.Z @ (vt[:rank].T @ ((u[:, :rank].T @ wanted) / s[:rank, None]))
        free = np.linalg.svd(A @ state.open, compute_uv=False)
        state.kink |= rank < int((free > _SINGULAR * max(free.max(initial=0.0), 1e-12)).sum())
        state.Z = state.Z @ vt[rank:].T
        state.open = state.open @ _null(A @ state.open)
        for row in equal:
            state.add(-self.J[row], row)
        for bound in bounds:
            state.add(bound.normal, bound.key, bound=True)

    def _miss(self, state: _State, first: int, last: int) -> None:
        """Stay at the minimum of a level that is missed."""
        low, high, e = self.base.low[0], self.base.high[0], self.base.e[0]
        rows = [row for row in range(first, last) if low[row] == high[row] or e[row] != 0.0]
        edge = [
            row
            for row in range(first, last)
            if low[row] != high[row] and e[row] == 0.0 and (low[row] >= -_NEAR or high[row] <= _NEAR)
        ]
        G = self._gradient(self.base, rows)[0]
        scale = float(np.linalg.norm(e[rows])) * max(float(np.abs(self.J[rows]).max(initial=0.0)), 1e-300)

        def curvature() -> Array:
            """Return the Hessian of the level."""
            return self._hessian(lambda poses: self._gradient(self.p.rows(poses, self.answer.targets), rows))

        by_weights = self.of == "weights"
        changes = (
            self._by_weights(first, last) if by_weights else self._by_parameters(lambda at: self._gradient(at, rows)[0])
        )
        self._stay_at_minimum(state, G, curvature, changes, scale)
        if edge:
            size = max(float(np.abs(state.D).max(initial=0.0)), 1e-300)
            state.kink |= bool(np.abs(self.J[edge] @ state.D).max(initial=0.0) > _MOVES * size)

    def _by_weights(self, first: int, last: int) -> Array:
        """Return the derivative of a level's gradient by the goals' weights, (n, goals)."""
        out = np.zeros((self.n, self.P))
        for g, goal in enumerate(self.p.ik.goals):
            at, count = self.p.reduced.goals.table[g, [layout.FIRST_RESIDUAL, layout.RESIDUALS]].tolist()
            if count and first <= at < last:
                out[:, g] = self._gradient(self.base, range(at, at + count))[0] / goal.weight
        return out

    def _rest(self, state: _State) -> None:
        """Stay at the minimum of the distance from the posture."""
        posture, chart = self.p.posture, self.chart
        G = chart.posture_gradient(self.answer.q[None], posture)[0]
        changes = np.zeros((self.n, self.P))
        if self.of == "posture":
            changes = chart.posture_changes(self.answer.q, posture) @ chart.from_v
        scale = max(float(np.abs(G).max(initial=0.0)), 1e-3 * float(posture[:, layout.REST_WEIGHT].max()))
        self._stay_at_minimum(
            state, G, lambda: self._hessian(lambda poses: chart.posture_gradient(poses, posture)), changes, scale
        )

    def _stay_at_minimum(
        self, state: _State, gradient: Array, curvature: Callable[[], Array], changes: Array, scale: float
    ) -> None:
        """Move with the minimum of a function in the undetermined directions.

        Args:
            state: What the levels above determine; extended.
            gradient: (n,) gradient of the function by the columns.
            curvature: Returns the Hessian of the function by the columns.
            changes: (n, P) derivative of the gradient by the parameters.
            scale: Size of the gradient's parts, before they cancel.
        """
        G = self.S.T @ gradient
        multipliers: list[tuple[int, float, str]] = []
        left = G
        if state.normals:
            N = np.array(state.normals)
            found = np.linalg.lstsq(N.T, -G, rcond=1e-10)[0]
            left = G + N.T @ found
            values = {bound.key: bound.value for bound in self.touched}
            for i, (key, factor) in enumerate(zip(state.keys, found.tolist(), strict=True)):
                pull = factor * float(np.abs(state.normals[i]).max()) / max(scale, 1e-300)
                if state.bounds[i]:
                    state.kink |= pull < -_WEAK and state.strengths[i] <= _WEAK
                    state.strengths[i] = max(state.strengths[i], pull)
                if key is None:
                    state.kink |= abs(pull) > _WEAK  # a missed level's curvature would change by third derivatives
                elif abs(pull) > 1e-9:
                    multipliers.append((key, factor, values.get(key, "")))
        state.kink |= float(np.abs(left).max(initial=0.0)) > _BALANCED * scale
        if not state.Z.shape[1]:
            return
        second = curvature()
        if multipliers:
            second = second + self._force_curvature(multipliers)
            changes = changes + self._force_changes(multipliers)
        H, B = self.S.T @ second @ self.S, self.S.T @ changes
        w, V = np.linalg.eigh(state.Z.T @ H @ state.Z)
        largest = float(np.abs(H).max())
        state.kink |= bool((w < -_SOFT * largest).any())
        state.kink |= bool(((w > _SOFT * largest) & (w < _SINGULAR * largest)).any())
        stiff = w > _SOFT * largest
        into = state.Z @ V[:, stiff]
        self.shift = self.shift - self.S @ into @ ((into.T @ left) / w[stiff])
        state.D = state.D - into @ ((into.T @ (B + H @ state.D)) / w[stiff, None])
        for row in into.T @ H:
            state.add(row, None)
        state.Z = state.Z @ V[:, ~stiff]


def _null(A: Array) -> Array:
    """Return an orthonormal basis (n, z) of the null space of A."""
    _, s, vt = np.linalg.svd(A)
    rank = int((s > _RANK * max(s.max(initial=0.0), 1e-12)).sum())
    return vt[rank:].T


def _turn(angle: float, c: int) -> Array:
    """Return the rotation by an angle about axis c."""
    s, k = np.sin(angle), np.cos(angle)
    out = np.eye(3)
    a, b = (c + 1) % 3, (c + 2) % 3
    out[a, a] = out[b, b] = k
    out[a, b], out[b, a] = -s, s
    return out


def _six(name: str, parts: int, moved: Callable[..., tuple[Array, Array]], reach: float) -> Iterator[Change]:
    """Yield the changes of the given parts of a frame."""
    for part, turns in ((POSITION, False), (ROTATION, True)):
        for c, axis in enumerate("xyz" if parts & part else ""):
            yield Change(
                f"{name}.{'r' if turns else ''}{axis}", 1.0 if turns else reach, partial(moved, c=c, turns=turns)
            )


def target_parts(ik: CompiledProblem) -> list[int]:
    """Return the parts (bits) of each goal's target that its residuals read."""
    parts = ik.reduced.goals.table[:, layout.PARTS].tolist()
    for term in ik.reduced.goals.general_ints.tolist():
        parts[term[layout.GOAL]] |= term[layout.TARGET_PARTS]
    return parts


def tool_goals(ik: CompiledProblem) -> list[int]:
    """Return the goals that have a frame on a joint."""
    parts = ik.reduced.goals.table[:, layout.PARTS].tolist()
    return [g for g, goal in enumerate(ik.goals) if goal.joint is not None and (parts[g] or goal.terms)]


def swing_twist(limit: Array, quats: Array) -> Array:
    """Return swing and twist (sx, sy, twist) of rotations (T, 4) in the frame of a limit, (T, 3)."""
    frame = np.broadcast_to(limit[layout.LIMIT_FRAME : layout.LIMIT_FRAME + 4], quats.shape)
    back = frame * np.array([-1.0, -1.0, -1.0, 1.0])
    x, y, z, w = (quat_product(quat_product(back, quats), frame)).T
    flip = np.where(w < 0.0, -1.0, 1.0)
    x, y, z, w = flip * x, flip * y, flip * z, flip * w
    c = np.hypot(w, z)
    safe = np.maximum(c, 1e-12)
    ct, st = np.where(c > 1e-12, w / safe, 1.0), np.where(c > 1e-12, z / safe, 0.0)
    u, v = x * ct - y * st, x * st + y * ct
    s = np.hypot(u, v)
    k = np.where(s > 1e-12, 2.0 * np.arctan2(s, c) / np.maximum(s, 1e-12), 2.0)
    return np.stack([k * u, k * v, 2.0 * np.arctan2(st, ct)], axis=1)


def _refuse(ik: CompiledProblem) -> None:
    """Refuse problems whose answers are not differentiated.

    Raises:
        UnsupportedError: If a goal or a setting is not supported.
    """
    solver = ik.solver
    why = None
    if any(goal.in_python for goal in ik.goals):
        why = "a CustomGoal", "goals that are built in"
    elif isinstance(solver, JacobianMethod) and solver.null_space is not None:
        why = "null_space", "a RestGoal as the secondary objective"
    elif getattr(solver, "softening", 0.0) > 0.0:
        why = "softening", "softening=0"
    elif ik.moves is not None:
        why = "largest_move", "no largest_move"
    elif ik.reduced.path is not None:
        why = "a RestGoal that follows a motion", "a RestGoal with one pose"
    if why is not None:
        raise UnsupportedError(f"answers with {why[0]} have no derivative", where="derivative", expected=why[1])


def missed_goals(ik: CompiledProblem, rows: Array) -> NDArray[np.bool_]:
    """Return which goals are missed in rows of results, (B, goals)."""
    most, most_angle = ik.tolerance
    own = np.array([goal.own_tolerance or most for goal in ik.goals])
    errors = ik.errors_in(rows)
    return (errors[..., 0] > own) | (errors[..., 1] > most_angle)


def check_differentiable(ik: CompiledProblem, of: Any) -> None:
    """Check that a problem can be differentiated by a kind of parameters.

    Raises:
        InputError: If the kind of parameters is unknown.
        UnsupportedError: If the problem is not supported.
    """
    if of not in OF:
        raise InputError("of", value=of, expected=" or ".join(map(repr, OF)))
    _refuse(ik)


def derivative_of(ik: CompiledProblem, rows: Array, of: Any) -> Derivative:
    """Return the derivatives, (B, nv, parameters), of the answers in rows of results of one problem.

    Raises:
        InputError: If the kind of parameters is unknown.
        UnsupportedError: If the problem is not supported, or has no such parameters.
    """
    check_differentiable(ik, of)
    problem = Differentiable(ik)
    q, targets, missed = np.ascontiguousarray(rows[:, ik.places]), ik.targets_in(rows), missed_goals(ik, rows)
    found = [
        problem.of(Answer(q[b], targets[b], np.flatnonzero(missed[b]).tolist()), of)
        if np.isfinite(q[b]).all()
        else None
        for b in range(len(rows))
    ]
    good = next((one for one in found if one is not None), None)
    if good is None:  # only the names and the number of parameters are used
        rest = Answer(ik.rest[0], ik.writer.own[0, :, : layout.TRANSFORM_WIDTH], ())
        good = problem.of(rest, of)
    none = np.full(good.shape, np.nan)
    values = np.array([none if one is None else one for one in found]).reshape(-1, *good.shape)
    return Derivative(values, good.parameters, np.array([one is None or one.kink for one in found], bool))


def derivative_of_many(ik: CompiledProblem, rows: Array, of: Any) -> Derivative:
    """Return the derivatives of a batch, like ``derivative_of``, with the obstacles of each problem at their places."""
    if ik.obstacle_places is None:
        return derivative_of(ik, rows, of)
    parts = [derivative_of(ik.single(b), rows[b : b + 1], of) for b in range(len(rows))]
    if not parts:
        return derivative_of(ik, rows, of)
    return Derivative(np.concatenate(parts), parts[0].parameters, np.concatenate([part.kink for part in parts]))
