"""User functions in Python that kernels call: residuals, their derivatives, gradients of secondary objectives.

Kernels call these functions through one callback (see ``kernels.goals.custom``), which ``Functions`` handles. If a
function raises an exception, the exception is stored, the kernel stops at its next step, and the exception is raised
again.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from synovia.goals import Goal
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    DEADLINE_PASSED,
    FIRST_RESIDUAL,
    IS_ANGLE,
    SCALAR,
    STOP_REASON,
    TURN,
    WATCH,
    WORK_LEFT,
    WORK_RESERVE,
)
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, as_numbers, rotation_between, times_exp
from synovia.problem import Reduced
from synovia.solver import NullSpace
from synovia.solver.base import Kernel

if TYPE_CHECKING:
    from synovia.goals import CustomGoal


NUDGE: Final = 1e-6  # step of finite differences, radians or length scales
_PLACES: Final = [BLOCK, BLOCK_Q, BLOCK_COLUMN]
_RESIDUAL, _JACOBIAN, _GRADIENT, _CURVATURE = 0, 2, 3, 4  # see kernels.goals.custom
_SCRATCH: Final = 5  # index of the scratch memory among the arguments of a kernel
_WORK: Final = 200.0  # work of one call, in the unit of the kernels: about ten microseconds
_CURVED: Final = 32  # largest number of columns for which second derivatives are computed; they take columns² residuals
_NUDGE_TWICE: Final = 1e-4  # step of second differences, radians or length scales


class Part:
    """A custom goal in a problem: its residual rows, and its derivative with respect to the problem's columns."""

    def __init__(self, goal: CustomGoal, place: int, reduced: Reduced, skeleton: Skeleton) -> None:
        """Find the residual rows of the goal, and the joint velocities for each column."""
        self.goal = goal
        first = int(reduced.goals.table[place, FIRST_RESIDUAL])
        self.rows = slice(first, first + goal.size)
        self.root = float(reduced.goals.roots[place])
        self._skeleton, self._reduced = skeleton, reduced
        self._velocities, self._units = column_velocities(skeleton, reduced), column_units(reduced)

    def moved(self, q: Array, step: Array) -> Array:
        """Return the joint values after a small step; the step has one element for each column."""
        return self._skeleton.follow(moved(q, self._reduced.variables, self._units, step))

    def residual(self, q: Array) -> Array:
        """Return the residual of the goal at joint values q, (k,)."""
        value = self.goal.residual(Pose.trusted(self._skeleton, q.copy()))
        return self.goal.checked(value, (self.goal.size,))

    def jacobian(self, q: Array) -> Array:
        """Return the user's derivative of the residual, or central differences, by column (radians, length scales)."""
        given = self.goal.jacobian(Pose.trusted(self._skeleton, q.copy()))
        if given is not None:
            return self.goal.checked(given, (self.goal.size, self._skeleton.nv)) @ self._velocities
        out = np.empty((self.goal.size, self._reduced.columns))
        variables = self._reduced.variables
        steps = (self._skeleton.follow(nudged(q, variables, self._units, size)) for size in (NUDGE, -NUDGE))
        for column, (ahead, behind) in enumerate(zip(*steps, strict=True)):
            out[:, column] = (self.residual(ahead) - self.residual(behind)) / (2.0 * NUDGE)
        return out

    def curvature(self, q: Array, residual: Array) -> Array:
        """Return Σ r ∂²r, the part of the Hessian of r·r / 2 beyond JᵀJ, by differences; 0 for too many columns."""
        n = self._reduced.columns
        out = np.zeros((n, n))
        if n > _CURVED:
            return out
        steps = _NUDGE_TWICE * np.eye(n)

        def change(w: Array) -> float:
            """Return the second difference along w of r·r(0), with the constant residual r(0) at the current pose."""
            ahead, behind = (self.residual(self.moved(q, sign * w)) for sign in (1.0, -1.0))
            return float(residual @ (ahead - 2.0 * residual + behind)) / _NUDGE_TWICE**2

        alone = [change(step) for step in steps]
        for i in range(n):
            out[i, i] = alone[i]
            for j in range(i):
                out[i, j] = out[j, i] = 0.5 * (change(steps[i] + steps[j]) - alone[i] - alone[j])
        return out


class Gradient:
    """A user-defined term of the secondary objective H, given only by its gradient.

    Along a step s from one pose to another, H changes by (∇H + ∇H') · s / 2 + O(s³). Summing these changes gives H up
    to a constant. The values of the last two poses are cached, since solvers may return to the previous pose.
    """

    def __init__(self, function: Callable[[Pose], Any], skeleton: Skeleton, reduced: Reduced) -> None:
        """Compute the map from joint velocities to columns."""
        self._function, self._skeleton, self._reduced = function, skeleton, reduced
        self._velocities, self._units = column_velocities(skeleton, reduced), column_units(reduced)

    def at(self, q: Array, known: list[tuple[Array, Array, float]]) -> tuple[Array, float]:
        """Return ∇H by column (radians, length scales) and H at q; update the cached poses."""
        for k, (pose, gradient, value) in enumerate(known):
            if (pose == q).all():
                known.append(known.pop(k))
                return gradient, value
        given = as_numbers(
            self._function(Pose.trusted(self._skeleton, q.copy())), (self._skeleton.nv,), "gradient of NullSpace"
        )
        gradient, value = given @ self._velocities, 0.0
        if known:
            pose, before, value = known[-1]
            value += 0.5 * float((before + gradient) @ self._between(pose, q))
        known[:] = [*known[-1:], (q, gradient, value)]
        return gradient, value

    def _between(self, a: Array, b: Array) -> Array:
        """Return the step from pose a to pose b, one element for each column, (columns,)."""
        out = np.empty(self._reduced.columns)
        for block, at, column in self._reduced.variables.tolist():
            if block:
                out[column : column + 3] = rotation_between(a[at : at + 4], b[at : at + 4])
            else:
                out[column] = (b[at] - a[at]) / self._units[column]
        return out


class _Call(threading.local):
    """State of the current kernel call of a thread: scratch memory, exception of a function, cached poses of H."""

    scratch: Array | None = None
    raised: BaseException | None = None
    known: list[tuple[Array, Array, float]]


class Functions:
    """All Python functions of a problem; kernels call them through one callback."""

    def __init__(
        self, skeleton: Skeleton, goals: Sequence[Goal], reduced: Reduced, null_space: NullSpace | None
    ) -> None:
        """Create the custom goals, the gradient and the callback."""
        from synovia.kernels.compiler.callback import FUNCTION

        own = {g: cast("CustomGoal", goal) for g, goal in enumerate(goals) if goal.in_python}
        self._parts = {g: Part(goal, g, reduced, skeleton) for g, goal in own.items()}
        function = None if null_space is None else null_space.gradient
        self._gradient = None if function is None else Gradient(function, skeleton, reduced)
        self._skeleton = skeleton
        self._residuals, self._columns = reduced.residuals, reduced.columns
        self._call = _Call()
        self._function = FUNCTION(self._handle)  # the reference keeps the callback alive; kernels hold only its address

    def __bool__(self) -> bool:
        """Return whether the problem has Python functions."""
        return bool(self._parts) or self._gradient is not None

    @property
    def address(self) -> float:
        """Address of the callback, for kernels."""
        return float(ctypes.cast(self._function, ctypes.c_void_p).value or 0)

    def around(self, kernel: Kernel) -> Kernel:
        """Return a kernel that raises the exceptions of functions that it called."""

        def run(*arguments: Any) -> int:
            """Run the kernel."""
            call, scratch = self._call, arguments[_SCRATCH]
            call.scratch, call.raised, call.known = scratch, None, []
            code = kernel(*arguments)
            if call.raised is not None:
                scratch[:WATCH] = 0.0
                raised, call.raised = call.raised, None
                raise raised
            return code

        return run

    def _handle(self, what: int, goal: int, q: int, out: int) -> float:
        """Handle a callback with a request (what), a goal, and the addresses of joint values and output."""
        call = self._call
        scratch = call.scratch
        if call.raised is not None or scratch is None:
            return 0.0
        if scratch[STOP_REASON] == 0.0:
            scratch[WORK_RESERVE] += scratch[WORK_LEFT] - _WORK  # makes the kernel check the clock after each call
            scratch[WORK_LEFT] = 0.0
        try:
            return self._value(what, goal, self._skeleton.follow(_numbers(q, self._skeleton.nq).copy()), out)
        except BaseException as error:  # noqa: BLE001 - a kernel cannot raise exceptions
            call.raised = error
            scratch[WORK_LEFT], scratch[STOP_REASON] = -np.inf, DEADLINE_PASSED
            return 0.0

    def _value(self, what: int, goal: int, q: Array, out: int) -> float:
        """Write the requested array to ``out``; return the length of a residual, or the value of H."""
        if what == _GRADIENT and self._gradient is not None:
            gradient, value = self._gradient.at(q, self._call.known)
            _numbers(out, self._columns)[:] += gradient
            return value
        part = self._parts[goal]
        if what == _JACOBIAN:
            J = _numbers(out, self._residuals * self._columns).reshape(self._residuals, self._columns)
            J[part.rows] = part.root * part.jacobian(q)
            return 0.0
        residual = part.residual(q)
        if what == _CURVATURE:
            hessian = _numbers(out, self._columns * self._columns).reshape(self._columns, self._columns)
            hessian += part.root * part.root * part.curvature(q, residual)
        if what == _RESIDUAL:
            _numbers(out, self._residuals)[part.rows] = -part.root * residual
        return float(np.linalg.norm(residual))


def _numbers(address: int, count: int) -> Array:
    """Return a view of the float64 values at an address."""
    memory: Any = (ctypes.c_double * count).from_address(address)  # the type stub does not declare a buffer
    return np.frombuffer(memory)


def column_velocities(skeleton: Skeleton, reduced: Reduced) -> Array:
    """Return the velocities of all joints, including mimic joints, for one unit of each column, (nv, columns)."""
    first = np.cumsum([0, *(joint.kind.v_size for joint in skeleton.joints)]).tolist()
    unit = column_units(reduced)
    out = np.zeros((skeleton.nv, reduced.columns))
    for (block, at, column), joint in zip(reduced.variables[:, _PLACES].tolist(), reduced.owner.tolist(), strict=True):
        # index within the joint, equal in q and in velocities, because a free joint's translation comes first
        inside = at - skeleton.q_slice(joint).start
        for c in range(3 if block == TURN else 1):
            out[first[joint] + inside + c, column + c] = unit[column]
    for own, (leader, ratio) in zip(first, skeleton.dof_columns, strict=False):
        if leader != own:
            out[own] = ratio * out[leader]
    return out


def column_units(reduced: Reduced) -> Array:
    """Return the size of one unit of each column, (columns,): 1 radian, or one length scale in length units."""
    unit = np.ones(reduced.columns)
    for (block, _, column), limit in zip(reduced.variables[:, _PLACES].tolist(), reduced.limits, strict=True):
        if block == SCALAR and limit[IS_ANGLE] == 0.0:
            unit[column] = reduced.reach
    return unit


def nudged(q: Array, variables: NDArray[np.int32], unit: Array, size: float) -> Array:
    """Return joint values (columns, nq): row k is q after a step of ``size`` units along column k, see ``moved``."""
    out = np.repeat(q[None], len(unit), axis=0)
    turns, scalars = variables[variables[:, BLOCK] == TURN], variables[variables[:, BLOCK] == SCALAR]
    at, column = turns[:, BLOCK_Q, None] + np.arange(4), turns[:, BLOCK_COLUMN, None] + np.arange(3)
    out[column[:, :, None], at[:, None, :]] = times_exp(q[at][:, None, :], size * np.eye(3))
    out[scalars[:, BLOCK_COLUMN], scalars[:, BLOCK_Q]] += size * unit[scalars[:, BLOCK_COLUMN]]
    return out


def moved(q: Array, variables: NDArray[np.int32], unit: Array, step: Array) -> Array:
    """Return the joint values after a step, (columns,) in the unit of each column; mimic joints do not move."""
    out = q.copy()
    parts = step.tolist()
    for block, at, column in variables[:, _PLACES].tolist():
        if not any(parts[column : column + (3 if block == TURN else 1)]):
            continue  # most elements are 0, because finite differences step along one column at a time
        if block == TURN:
            out[at : at + 4] = times_exp(q[at : at + 4], step[column : column + 3])
        else:
            out[at] += step[column] * unit[column]
    return out
