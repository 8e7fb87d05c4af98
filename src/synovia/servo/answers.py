"""The solutions that a servo moves to: one solve in each tick, from the previous one, and a search after a miss."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from time import perf_counter
from typing import Final

import numpy as np

from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import clear, new_scratch, set_deadline
from synovia.ik.obstacles import Places
from synovia.kernels.layout import (
    ATTEMPTS,
    BLOCK,
    BLOCK_Q,
    COLD,
    IS_ANGLE,
    LEADER,
    LOWER,
    MAX_STEPS,
    MISSED,
    MOST_WORK,
    REACHED,
    REST_WEIGHT,
    SCALAR,
    SEED,
    STALLED,
    STATUS,
    TOLERANCE,
    TOLERANCE_ANGLE,
    TRANSFORM_WIDTH,
    UPPER,
)
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.pose import inside_limits
from synovia.model.tables import Ints
from synovia.problem import table_of
from synovia.problem.goals import posture_of
from synovia.servo.limits import Axes
from synovia.servo.path import between

_NEAR: Final = 1e-3  # radians, length scales: joints nearer to their reference count as being there


class Home:
    """The reference of all rest goals.

    Args:
        ik: The problem.
        axes: The axes of the body.

    Attributes:
        exists: Whether a joint has a reference.
    """

    def __init__(self, ik: CompiledProblem, axes: Axes) -> None:
        """Find the axes of all rest goals."""
        posture = posture_of(ik.skeleton, ik.goals)
        rest = {i: posture_of(ik.skeleton, [goal]) for i, goal in enumerate(ik.goals) if goal.preference is not None}
        moves = np.isin(axes.joints, list(ik.moving))
        self._of = {i: moves & (one.shares[axes.joints] > 0.0) for i, one in rest.items()}
        self._axes, self._q = axes, posture.q
        self._weights = moves * posture.shares[axes.joints]
        self.exists = bool(self._weights.any())
        self._weights /= self._weights.max(initial=0.0) or 1.0
        self._units = np.where(axes.lengths, ik.reach, 1.0)

    def way(self, q: Array) -> Array:
        """Return the weighted displacement of each axis, (n,), from joint values q (nq,) to the reference."""
        return self._weights * self._axes.way(q, self._q)

    def size(self, way: Array) -> float:
        """Return the largest component of a displacement of all axes, radians or length scales."""
        return float((np.abs(way) / self._units).max(initial=0.0))

    def distance(self, q: Array) -> float:
        """Return the weighted distance of joint values q (nq,) from the reference, radians or length scales."""
        return float(np.linalg.norm(np.sqrt(self._weights) * self._axes.way(q, self._q) / self._units))

    def reached(self, q: Array) -> dict[int, bool]:
        """Return, by index of each rest goal, whether its joints are at their reference at joint values q (nq,)."""
        way = self._axes.way(q, self._q)
        return {i: self.size(way * own) <= _NEAR for i, own in self._of.items()}


_SEARCHES: Final = frozenset(4**k for k in range(16))  # numbers of missed ticks after which a search begins
_ELSEWHERE: Final = 0.1  # length scales, rotation-matrix entries: a larger change of the targets restarts the search
_BESIDE: Final = 12  # ticks of a search with seeds near the present pose, each farther away
_NEAREST: Final = 0.1  # radians, length units: standard deviation of the first seed
_WIDER: Final = 1.25  # factor from one seed to the next
_FAR: Final = 1.0  # radians, length units: a solution farther from the last one may be on another branch
_BENT: Final = 5.0  # bound of (angle / change of the quaternion)², up to ``_FAR``
_NEARER: Final = 0.5  # another solution is taken if it is nearer to the body by this factor
_PRECISION: Final = 0.1  # fraction of the tolerance that a tick's solve meets, to follow slow targets smoothly
_PARTS: Final = 8  # number of steps from the old to the new targets, solved one after the other
_FEW_STEPS: Final = 20  # largest number of full-body solver steps in a tick; the next tick continues
_STRIDE: Final = 0.05  # radians, length scales: longest step of a solution towards the reference of rest goals
_SHORTEST: Final = 1e-4  # radians, length scales: with a shorter step, the solution no longer drifts
_LEAD: Final = 0.1  # radians, length scales: a drifting solution waits for a body that is farther behind
_GAIN: Final = 1e-4  # fraction of a step by which the distance to the reference has to fall
_MOST_WORK: Final = 2e5  # largest number of joint visits in one solve, about 10 ms (see ``kernels.compiler.watch``)
_HELPS: Final = 0.5  # if a polish cuts an error to this fraction or less, the next miss is polished, too
_UNTIMED: Final = nullcontext()


class Answers:
    """Solves the goals in each tick, and keeps the solution. A kernel writes a row of results (``layout.ANSWER``).

    Args:
        ik: The problem.
        axes: The axes of the body.
        deadline: Seconds after which all solves of a tick end with the best pose so far; None for no deadline.

    Attributes:
        q: Joint values of the solution, (nq,).
        drifts: Whether the solution still moves towards the reference of rest goals.
        before: Joint values of the solution in the tick before, (nq,).
        home: The reference of rest goals.
        row: The row of results of the solution; None if the targets have no solution yet.
    """

    def __init__(self, ik: CompiledProblem, axes: Axes, deadline: float | None) -> None:
        """Copy the packed problem, with a finer tolerance."""
        self._ik, self._axes, self._deadline = ik, axes, deadline
        self._ends = 0.0  # deadline of this tick's solves, seconds of ``perf_counter``
        self._scratch = new_scratch(ik.scratch_size)
        self._strict = ik.method.supports_priorities
        self._stays = ik.skeleton.mechanism is not None  # solutions of bodies with loops stay in their assembly branch
        self._floats, self._exact = ik.floats.copy(), ik.floats.copy()
        self._held: tuple[Ints, Array] | None = None  # indices in q of held joints, and their values
        self._floats[[TOLERANCE, TOLERANCE_ANGLE]] *= _PRECISION if self._strict else _PRECISION**2
        for floats in (self._floats, self._exact):
            floats[MOST_WORK] = min(float(floats[MOST_WORK]), _MOST_WORK)
        self._starts = int(ik.ints[ATTEMPTS])  # number of starts of a search
        self._few, self._again = ik.one_attempt.copy(), ik.ints.copy()
        self._again[ATTEMPTS] = min(2, self._starts)  # the first attempt starts at a solution and ends at once
        if self._strict:
            self._few[MAX_STEPS] = min(int(self._few[MAX_STEPS]), _FEW_STEPS)
        self.home = Home(ik, axes)
        self._posture = table_of(ik.ints, self._floats, "posture")[:, REST_WEIGHT]
        self._winding = winding(ik.skeleton)
        if self._stays:  # joints of a loop rotate together
            self._winding = self._winding[:0]
        self.reset(ik.default_start.q)

    def reset(self, q: Array) -> None:
        """Restart at joint values (nq,)."""
        self.stay(q)
        self._good = q  # the last solution that reached its targets
        self._misses, self._searching, self._helps = 0, 0, False
        self._missed = self._ik.writer.own  # targets at which the misses began

    def put(self, places: Places) -> None:
        """Move obstacles to their present places; the targets then have no solution yet."""
        for floats in (self._floats, self._exact):
            places.put_into(self._ik.obstacles, floats)
        self.row = None

    def hold(self, held: tuple[Ints, Array] | None) -> None:
        """Hold joints at values in the next solutions, unless goals need these joints.

        Args:
            held: Indices of the joints in q, and their values; None for no joints.
        """
        before, self._held = self._held, held
        if before is None and held is None:
            return
        if before is not None and held is not None and all(map(np.array_equal, before, held)):
            return
        self.row = None
        self._lock(held)

    def _lock(self, held: tuple[Ints, Array] | None) -> None:
        """Set both limits of held joints to their value, and restore the limits of all other joints."""
        variables = self._ik.reduced.variables
        for floats in (self._floats, self._exact):
            limits = table_of(self._ik.ints, floats, "limits")
            limits[...] = table_of(self._ik.ints, self._ik.floats, "limits")
            for at, value in () if held is None else zip(held[0].tolist(), held[1].tolist(), strict=True):
                here = (variables[:, BLOCK] == SCALAR) & (variables[:, BLOCK_Q] == at)
                limits[here, LOWER] = limits[here, UPPER] = value

    def stay(self, q: Array) -> None:
        """Set the solution to joint values (nq,), without a row of results."""
        self.q = self.before = q
        self.row: Array | None = None
        self._place: Array | None = None
        self.drifts, self._stride = False, 0.0

    def rest(self) -> None:
        """Record a tick in which the solution did not move."""
        self.before = self.q

    def go_home(self, table: Array, q: Array) -> None:
        """Step towards the reference of rest goals, with unchanged targets (1, goals, 17) that stay met.

        After a straight step towards the reference, a solve meets the goals again. No step is taken while the body, at
        joint values q (nq,), is far behind. A step without progress is halved; ``drifts`` becomes False when steps are
        too short.
        """
        self.before = self.q
        if not self.drifts:
            return
        home = self.home
        if home.size(self._axes.way(q, self.q)) > _LEAD:
            return
        way = home.way(self.q)
        share = min(self._stride / max(home.size(way), self._stride), 1.0)
        self._begin()
        weights, self._posture[:] = self._posture.copy(), 0.0
        row = self._solve(table, self._axes.shifted(self.q, share * way), self._few)
        self._posture[:] = weights
        there = row[self._ik.places]
        gain = home.distance(self.q) - home.distance(there)
        if row[STATUS] == REACHED and gain > _GAIN * self._stride:
            self.row, self.before, self.q = row, there, there
            self._good, self._stride = there, min(2.0 * self._stride, _STRIDE)
        else:
            self._stride *= 0.5
            self.drifts = self._stride >= _SHORTEST

    def restart(self, q: Array) -> None:
        """Seed the next solve from joint values (nq,), to which the body moves instead of this solution."""
        self._place = q

    def solve(self, table: Array, q: Array) -> Array:
        """Solve targets (1, goals, 17) from joint values (nq,) in one attempt; return the row of results."""
        self._begin()
        return self._solve(table, q, self._few, best=False)

    @property
    def reaches(self) -> bool:
        """Whether the solution meets the targets."""
        return self.row is not None and bool(self.row[STATUS] == REACHED)

    def at(self, row: Array) -> Array:
        """Return the joint values (nq,) of a row of results."""
        return row[self._ik.places]

    def lead(self, q: Array, row: Array | None) -> None:
        """Set this tick's solution to joint values (nq,); ``row`` has its results, None for an intermediate pose."""
        self.before, self.q = self.q, q
        self.row, self._misses, self.drifts = row, 0, False

    def lead_near(self, table: Array) -> None:
        """Set this tick's solution: solve targets (1, goals, 17) from the last solution, without a search."""
        self._begin()
        row = self._solve(table, self.q, self._few)
        self.lead(row[self._ik.places], row)

    def settled(self) -> bool:
        """Return whether the solution stays unchanged as long as the targets do."""
        return self.row is not None and not self._misses

    def load(self, q: Array, table: Array) -> None:
        """Load all kernels that ticks need, so that no tick waits for compilation."""
        row = self._solve(table, q, self._few)[None]
        self._ik.polish_misses(row[:, self._ik.places].copy(), row, self._scratch, False)
        self._beside(q, 0.0)

    def take(self, table: Array, last: Array, q: Array) -> None:
        """Solve the goals from the previous solution.

        Args:
            table: Targets, (1, goals, 17).
            last: Targets of the tick before.
            q: Joint values of the body, (nq,).
        """
        self._begin()
        held, kept, start = self._held, None, self.q
        if held is not None:
            kept = self._solve(table, start, self._few)
            if kept[STATUS] == REACHED:
                self._misses = self._searching = 0
                self.row, self.before, self.q, self._place = kept, start, kept[self._ik.places], None
                self._good = self.q
                self._may_drift()
                return
            self._held = None  # goals need the held joints, and take precedence
            self._lock(None)
        before, place, self._place = self.q, self._place, None
        if place is not None:
            near = self._solve(last, place, self._few)
            if near[STATUS] == REACHED:
                before = self.q = near[self._ik.places]
        if self._misses and self._elsewhere(table):
            self._misses = self._searching = 0
        row = self._solve(table, before, self._few)
        if row[STATUS] != REACHED:
            if not self._misses:
                self._missed = table
            self._misses += 1
            row = self._searched(table, row, q)
        if row[STATUS] == REACHED:
            self._misses = self._searching = 0
            row = self._at_hand(table, self._nearer(table, last, row), q)
            self._good = row[self._ik.places]
        elif kept is not None and self._no_worse(kept, row):
            row, before = kept, start
        self.row = row
        self.before, self.q = before, row[self._ik.places]
        self._may_drift()

    def _may_drift(self) -> None:
        """Let a solution that meets the targets drift to the reference of rest goals; bodies with loops never drift."""
        self.drifts, self._stride = self.home.exists and self.reaches and not self._stays, _STRIDE

    def _no_worse(self, row: Array, other: Array) -> bool:
        """Return whether a row of results misses no goal by more than another one does."""
        first = self._ik.places.stop
        errors, least = (one[first : first + 2 * len(self._ik.goals)].reshape(-1, 2) for one in (row, other))
        return bool((errors <= least + self._ik.tolerance).all())

    def _elsewhere(self, table: Array) -> bool:
        """Return whether these targets (1, goals, 17) are far from those at which the misses began."""
        way = np.abs(table - self._missed)[0, :, :TRANSFORM_WIDTH].reshape(-1, 4, 4)
        way[:, :3, 3] /= self._ik.reach
        return bool(way.max(initial=0.0) > _ELSEWHERE)

    def _searched(self, table: Array, row: Array, q: Array) -> Array:
        """Return a better solution than a miss (a row of results), or the miss.

        At first the miss is polished from its own pose, which helps if a limb is straight. After certain numbers of
        missed ticks, other branches are searched: each of the next ticks tries one start, so that no tick takes long.
        If the solution jumps, the body does not.
        """
        if self._stays:
            return row  # ``loops.Branch`` searches for such bodies
        if self._misses in _SEARCHES:
            self._searching = 0 if self._misses == 1 else self._starts + 1
            other = self._solve(table, self._good, self._few, best=False)  # targets may return to their old places
            if other[STATUS] != REACHED and self._strict:
                self._helps = self._polish(row)
        elif self._searching:
            tried = self._starts - self._searching
            self._searching -= 1
            if tried < 0:
                other = self._solve(table, q, self._few, best=False)
            elif tried < min(_BESIDE, self._starts // 2):  # near branches first, with short paths to them
                near = self._beside(q, _NEAREST * _WIDER**tried)
                other = self._solve(table, near, self._ik.one_attempt, best=False)
            else:
                self._again[SEED] = self._misses
                other = self._solve(table, row[self._ik.places], self._again, best=False)
        else:
            other = row
        if other[STATUS] != REACHED and self._helps and self._misses not in _SEARCHES:
            self._helps = self._polish(row)
        return other if other[STATUS] == REACHED else row

    def _polish(self, row: Array) -> bool:
        """Polish a miss (a row of results) in place; return whether the next miss should be polished, too.

        It should if the error of a goal has at least halved: where a limb is straight, solves with priorities may stop
        too early in every tick.
        """
        first = self._ik.places.stop
        errors = row[first : first + 2 * len(self._ik.goals)].reshape(-1, 2)
        before = errors.copy()
        with self._in_time():
            self._ik.polish_misses(self.q[None], row[None], self._scratch, False, self._exact)
        return bool((errors <= _HELPS * before)[before > self._ik.tolerance].any())

    def _beside(self, q: Array, far: float) -> Array:
        """Draw joint values (nq,) near q, within limits; standard deviation ``far`` (radians, length units)."""
        offset = np.random.default_rng(self._misses).normal(scale=far, size=len(self._axes.joints))
        return inside_limits(self._ik.skeleton, self._axes.shifted(q, offset)[None])[0]

    def _nearer(self, table: Array, last: Array, row: Array) -> Array:
        """Return a solution on the last one's branch if it is nearer to the last one than this row of results.

        A solve that begins far from its target can end on another branch. Solves along the path of the targets do not.
        """
        far = self._apart(self.q, row)
        if far <= _FAR:
            return row
        place, other = self.q, row
        for k in range(_PARTS):
            if self._deadline is not None and perf_counter() >= self._ends:
                return row
            other = self._solve(between(last, table, (k + 1) / _PARTS), place, self._few)
            place = other[self._ik.places]
        return other if other[STATUS] == REACHED and self._apart(self.q, other) < far else row

    def _at_hand(self, table: Array, row: Array, q: Array) -> Array:
        """Return a solution much nearer to the body, at joint values q (nq,), than this row of results; else the row.

        Solves from the last solution stay on its branch, although another branch may be nearer to the body.
        """
        far = self._apart(q, row)
        if far <= _FAR:
            return row
        other = self._solve(table, q, self._few, best=False)
        return other if other[STATUS] == REACHED and self._apart(q, other) < _NEARER * far else row

    def _apart(self, q: Array, row: Array) -> float:
        """Return the largest displacement of an axis from q (nq,) to a row of results, radians or length units.

        If the norm of all displacements is at most ``_FAR``, the result is 0.
        """
        there = row[self._ik.places]
        change = there - q
        if _BENT * change.dot(change) <= _FAR * _FAR:
            return 0.0
        way = self._axes.way(q, there)
        return 0.0 if way.dot(way) <= _FAR * _FAR else float(np.abs(way).max())

    def _solve(self, table: Array, start: Array, ints: Ints, *, best: bool = True) -> Array:
        """Solve these targets from a start (nq,) with these packed integers; return the row of results.

        A miss of a full body stays unpolished, as the next tick continues from it. Other misses are polished to the
        best miss if ``best``. Joints with a range of more than a full rotation end within half a rotation of the last
        solution, if their limits allow it.
        """
        ik, scratch = self._ik, self._scratch
        first = start[None]
        if self._held is not None:
            first = first.copy()
            first[0, self._held[0]] = self._held[1]
            ik.skeleton.follow(first)
        out = ik.new_rows(1)
        call = partial(ik.call, ints, self._floats, table, first, out, scratch, COLD, 0)
        with self._in_time():
            if ik.checked_call(call, table, None) & MISSED and best and not self._strict and not self._stays:
                ik.polish_misses(first, out, scratch, False, self._exact)
        self._unwind(out[0, ik.places])
        if self._held is not None:
            out[0, ik.places][self._held[0]] = self._held[1]
        return out[0]

    def _begin(self) -> None:
        """Start the clock for the deadline of this tick's solves."""
        if self._deadline is not None:
            self._ends = perf_counter() + self._deadline

    def _in_time(self) -> AbstractContextManager[None]:
        """Return a context in which solves end at this tick's deadline."""
        return _UNTIMED if self._deadline is None else self._timed()

    @contextmanager
    def _timed(self) -> Generator[None]:
        """End solves in this context at the tick's deadline."""
        set_deadline(self._scratch, max(self._ends - perf_counter(), 0.0))
        try:
            yield
        finally:
            clear(self._scratch)

    def _unwind(self, q: Array) -> None:
        """Shift joint values (nq,) by multiples of 2π to within half a rotation of the last solution, in place."""
        at = self._winding
        if len(at):
            turns = np.round((q[at] - self.q[at]) / (2.0 * math.pi))
            if turns.any():
                low, high = self._ik.skeleton.limits
                near = q[at] - 2.0 * math.pi * turns
                q[at] = np.where((near >= low[at]) & (near <= high[at]), near, q[at])

    def classified(self, row: Array, places: Places | None = None) -> Array:
        """Return a row of results with the reason for a miss, for obstacles at these places."""
        if row[STATUS] == REACHED or not (self._strict or self._stays):
            return row
        out = row[None].copy()
        ik = self._ik if places is None else self._ik.with_obstacles_at(places)
        ik.polish_misses(out[:, ik.places].copy(), out, self._scratch, False)
        if self._stays and out[0, STATUS] == REACHED:  # reached on a path that the body cannot follow
            out[0, STATUS] = STALLED
        return out[0]


def winding(skeleton: Skeleton) -> Ints:
    """Return the indices in q of hinges with a range above 2π that lead no mimic joint."""
    t = skeleton.tables
    hinges = (t.variables[:, BLOCK] == SCALAR) & (t.limits[:, IS_ANGLE] != 0.0)
    at = t.variables[hinges & (t.limits[:, UPPER] - t.limits[:, LOWER] > 2.0 * math.pi), BLOCK_Q].astype(np.int64)
    return at[~np.isin(at, t.followers[:, LEADER])]
