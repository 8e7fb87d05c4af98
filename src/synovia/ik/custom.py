"""Solving with residuals or gradients that a user wrote in Python.

A compiled kernel cannot call them, so ``Driver`` runs its loop in Python: compiled parts (``kernels.search.custom``)
for the built-in goals and the step, the user's functions in between. It has the signature of a kernel, so ``solve``,
``solve_many`` and ``track`` need not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.goals import CustomGoal, Goal
from synovia.ik.columns import NUDGE, column_velocities, nudged
from synovia.ik.interrupts import has_ended, is_over
from synovia.ik.status import Status
from synovia.ik.wishes import Wishes
from synovia.kernels.layout import (
    ATTEMPTS,
    COST,
    CUT,
    FINISH,
    FIRST_RESIDUAL,
    MAX_STEPS,
    OUT_HEAD,
    PATIENCE,
    RESIDUALS,
    REST_WEIGHT,
    STATUS,
    STEPS,
    TRANSFORM_WIDTH,
    TRIES,
    WINNER,
)
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array
from synovia.problem import Reduced
from synovia.solver import JacobianMethod

Ints = NDArray[np.int32]
# methods of ``kernels.jacobian.methods``: the one that corrects slides, the one that settles
_PSEUDO_INVERSE, _DAMPED = 1, 2
_CORRECTIONS: Final = 10  # as in ``kernels.jacobian.null_space``
# as in ``kernels.jacobian.levenberg`` and ``kernels.search.multistart``
_AIM, _FALLS, _BETTER = 1.0 - 1e-6, 1.0 - 1e-12, 0.999
_STATIONARY, _CANCELS = 1e-5, 1e-3  # as in ``kernels.search.classify``
_SETTLE_STEPS, _SETTLED, _QUIET = 200, 1e-12, 1e-8  # relative falls of the cost


class Part:
    """A custom goal in a problem: its rows, and its derivative by the problem's columns."""

    def __init__(self, goal: CustomGoal, place: int, reduced: Reduced, skeleton: Skeleton) -> None:
        """Find its rows and the velocities that each column moves."""
        self.goal, self.place = goal, place
        first = int(reduced.goals.table[place, FIRST_RESIDUAL])
        self.rows = slice(first, first + goal.size)
        self.root = float(reduced.goals.roots[place])
        self._skeleton, self._reduced = skeleton, reduced
        self._velocities = column_velocities(skeleton, reduced)

    def residual(self, q: Array) -> Array:
        """Return the residual at q, (k,)."""
        value = self.goal.residual(Pose.trusted(self._skeleton, q.copy()))
        return self.goal.checked(value, (self.goal.size,))

    def jacobian(self, q: Array) -> Array:
        """Return the derivative by column (radians, reaches), the user's own or central differences."""
        given = self.goal.jacobian(Pose.trusted(self._skeleton, q.copy()))
        if given is not None:
            return self.goal.checked(given, (self.goal.size, self._skeleton.nv)) @ self._velocities
        out = np.empty((self.goal.size, self._reduced.columns))
        for column, (ahead, behind) in enumerate(nudged(self._skeleton, self._reduced, q)):
            out[:, column] = (self.residual(ahead) - self.residual(behind)) / (2.0 * NUDGE)
        return out


class Driver:
    """A kernel for problems with custom goals or a gradient of the user's, and their judge."""

    def __init__(self, skeleton: Skeleton, goals: Sequence[Goal], reduced: Reduced, solver: JacobianMethod) -> None:
        """Prepare the parts."""
        wished = solver.null_space is not None or bool(reduced.posture[:, REST_WEIGHT].any())
        self.wishes = Wishes(skeleton, reduced, solver.null_space) if wished else None
        self.parts = [Part(goal, g, reduced, skeleton) for g, goal in enumerate(goals) if isinstance(goal, CustomGoal)]
        self.solver = solver
        self.skeleton, self.goals, self.table = skeleton, len(goals), reduced.goals.table
        self.shape = (reduced.residuals, reduced.columns)

    def __call__(
        self,
        ints: Ints,
        floats: Array,
        targets: Array,
        starts: Array,
        out: Array,
        scratch: Array,
        warm: bool,
        first: int,
    ) -> int:
        """Solve rows of problems, as ``kernels.search.multistart`` does."""
        from synovia.kernels.search.custom import begin, proved, restart

        missed = 0
        for b in range(first, len(out)):
            one = Row(self, ints, floats, out[b], scratch)
            follows = warm and b > 0
            start = (
                out[b - 1, OUT_HEAD : OUT_HEAD + len(one.q)] if follows else starts[min(b, len(starts) - 1)]
            ).copy()
            one.q[:] = start
            if follows:
                one.kept[:] = Row(self, ints, floats, out[b - 1], scratch).kept
            refused = begin(ints, floats, targets[b], one.q, one.kept, scratch, follows)
            if refused >= 0:
                return -1 - refused - self.goals * b
            best, lowest, winner, steps, tries = start, np.inf, 0, 0, 0
            reached = beyond = False
            while tries < int(ints[ATTEMPTS]) and not (reached or beyond or is_over(scratch)):
                if tries > 0:
                    one.q[:] = start
                    restart(ints, floats, one.q, one.kept, scratch, tries)
                taken, cost, worst = one.attempt()
                steps, tries, reached = steps + taken, tries + 1, worst <= 1.0
                if reached or tries == 1 or (not follows and cost < _BETTER * lowest):
                    best, lowest, winner = one.q.copy(), cost, tries - 1
                beyond = tries == 1 and not reached and proved(ints, floats, one.q, one.kept, scratch) > 0
            one.q[:] = best
            _, worst = one.assess()
            cut = has_ended(scratch)
            reached = reached or (cut and worst <= 1.0)
            status = Status.REACHED if reached else Status.UNREACHABLE if beyond else Status.STALLED
            row = out[b]
            row[STATUS], row[STEPS], row[TRIES], row[WINNER] = status, steps, tries, winner
            row[COST], row[FINISH], row[CUT] = lowest, 0.0, cut
            if not reached or cut:
                missed = 1
                if warm and not cut:
                    return 2 * (b + 1) + 1
        return 2 * len(out) + missed

    def judge(self, ints: Ints, floats: Array, starts: Array, rows: Array, scratch: Array, searches: bool) -> None:
        """Settle the rows that missed and tell why, as ``kernels.search.classify`` does; without a look elsewhere."""
        del starts, searches
        for row in rows:
            if row[STATUS] != Status.REACHED:
                Row(self, ints, floats, row, scratch).conclude()


class Row:
    """One row of the answer while it is solved."""

    def __init__(self, driver: Driver, ints: Ints, floats: Array, row: Array, scratch: Array) -> None:
        """Cut the row."""
        nq, g = driver.skeleton.nq, driver.goals
        self.driver, self.packed, self.scratch, self.row = driver, (ints, floats), scratch, row
        self.q = row[OUT_HEAD : OUT_HEAD + nq]
        self.errors = row[OUT_HEAD + nq : OUT_HEAD + nq + 2 * g]
        self.kept = row[OUT_HEAD + nq + 2 * g :].reshape(g, TRANSFORM_WIDTH)
        self.e, self.J = np.zeros(driver.shape[0]), np.zeros(driver.shape)

    def assess(self) -> tuple[float, float]:
        """Write residual, Jacobian and errors at q; return (squared residual, largest error in tolerances)."""
        from synovia.kernels.search.custom import assess

        worst = float(assess(*self.packed, self.q, self.kept, self.scratch, self.e, self.J, self.errors))
        for part in self.driver.parts:
            r = part.residual(self.q)
            self.e[part.rows] = -part.root * r
            self.J[part.rows] = part.root * part.jacobian(self.q)
            self.errors[2 * part.place] = np.linalg.norm(r)
            self.errors[2 * part.place + 1] = 0.0
            worst = max(worst, float(self.errors[2 * part.place]) / part.goal.tolerance)
        return float(self.e @ self.e), worst

    def attempt(self) -> tuple[int, float, float]:
        """Step from q until all goals hold or the error stops falling; return (steps, cost, largest error)."""
        from synovia.kernels.search.custom import advance, slip

        solver, wishes = self.driver.solver, self.driver.wishes
        constant, by_error = solver.damping_terms()
        most, patience = int(self.packed[0][MAX_STEPS]), int(self.packed[0][PATIENCE])
        best, lowest, least, mark = self.q.copy(), np.inf, np.inf, np.inf
        k = 0
        for k in range(most + 1):
            cost, worst = self.assess()
            if k == 0 or cost < _FALLS * lowest:
                best, lowest, least = self.q.copy(), cost, worst
            if worst <= _AIM:
                return self.slide(k, cost, worst)
            if k % patience == 0:
                if k > 0 and lowest > solver.progress[1] * mark:
                    break
                mark = lowest
            if is_over(self.scratch):
                break
            if k < most:
                damping = constant + by_error * cost
                wish = None if wishes is None else wishes.at(self)
                size = advance(*self.packed, self.q, self.scratch, self.e, self.J, solver.method, damping)
                if wish is not None:
                    slip(*self.packed, self.q, self.scratch, self.J, wish.gradient, wish.gain, size)
        self.q[:] = best
        return k, lowest, least

    def slide(self, steps: int, cost: float, worst: float) -> tuple[int, float, float]:
        """Give what the goals leave free to the wishes; return (steps, cost, largest error) in the end."""
        wishes = self.driver.wishes
        if wishes is None:
            return steps, cost, worst
        steps += wishes.slide(self)
        return steps, *self.assess()

    def back_onto_goals(self) -> tuple[int, bool]:
        """Step back onto the goals after a slide, at least once; return (steps, whether they hold)."""
        from synovia.kernels.search.custom import advance

        for k in range(_CORRECTIONS + 1):
            _, worst = self.assess()
            if k > 0 and worst <= _AIM:
                return k, True
            if is_over(self.scratch):
                return k, False
            if k < _CORRECTIONS:
                advance(*self.packed, self.q, self.scratch, self.e, self.J, _PSEUDO_INVERSE, 0.0)
        return _CORRECTIONS, False

    def settle(self) -> tuple[int, bool]:
        """Descend to a minimum, every step lower (Nielsen 1999); return (steps, whether it is one)."""
        from synovia.kernels.search.custom import advance

        cost, worst = self.assess()
        damping, grow, failed, quiet = 1e-3, 2.0, 0, 0
        for k in range(_SETTLE_STEPS):
            if worst <= 1.0:
                return k, True
            if is_over(self.scratch):
                return k, False
            before, e, J = self.q.copy(), self.e.copy(), self.J.copy()
            advance(*self.packed, self.q, self.scratch, e, J, _DAMPED, damping)
            lower, new_worst = self.assess()
            if lower < cost * (1.0 - _SETTLED):
                quiet = quiet + 1 if cost - lower < _QUIET * cost else 0
                cost, worst = lower, new_worst
                if quiet > 4:
                    return k + 1, True
                damping, grow, failed = max(damping / 3.0, 1e-12), 2.0, 0
                continue
            self.q[:] = before
            self.assess()
            damping, grow, failed = damping * grow, 2.0 * grow, failed + 1
            if failed > 8:
                return k + 1, True
        return _SETTLE_STEPS, False

    def conclude(self) -> None:
        """Settle, and write the status: the first that applies."""
        from synovia.kernels.search.custom import held_back

        steps, still = self.settle()
        cost, worst = self.assess()
        self.row[STEPS] += steps
        self.row[FINISH] = steps
        self.row[COST] = cost
        self.row[CUT] = has_ended(self.scratch)
        if worst <= 1.0:
            self.row[STATUS] = Status.REACHED
            return
        if self.row[STATUS] == Status.UNREACHABLE:
            return
        e, J = self.e, self.J.copy()
        left, held = held_back(*self.packed, self.q, self.scratch, e, J)
        small = _STATIONARY * np.sqrt(cost)
        pulls = [
            float(np.abs(J[first : first + rows].T @ e[first : first + rows]).max(initial=0.0))
            for first, rows in self.driver.table[:, [FIRST_RESIDUAL, RESIDUALS]].tolist()
            if float(e[first : first + rows] @ e[first : first + rows]) > 0.01 * cost
        ]
        strongest = max(pulls, default=0.0)
        if len(pulls) > 1 and strongest > small and left < max(_CANCELS * strongest, small):
            self.row[STATUS] = Status.CONFLICT
        elif held > small and left < max(_CANCELS * held, small):
            self.row[STATUS] = Status.LIMITED
        else:
            self.row[STATUS] = Status.STALLED if still else Status.MAX_STEPS
