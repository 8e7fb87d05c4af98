"""Chains of seven joints: their branches as functions of one of the joints."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.errors import InputError, UnsupportedError
from synovia.goals import PoseGoal
from synovia.ik.compiled import CompiledProblem, Start
from synovia.ik.completeness import SLACK
from synovia.ik.strips import Curves, Strip
from synovia.ik.targets import Targets
from synovia.kernels.layout import BLOCK_Q, LOWER, UPPER, VARIABLE
from synovia.model import Kind
from synovia.model.geometry import Array, as_numbers
from synovia.problem.structure import above, is_locked
from synovia.solver import Segments, SixJoints
from synovia.text import counted, first_few

_JOINTS: Final = 7
_STEPS: Final = 256  # steps over the range of the joint in which the number of branches is counted
_SHOWN: Final = 24  # intervals in a text
_COUNTS: Final = 20_000  # after so many counts, ends are not refined: branches are singular over a range
_NARROW: Final = 1e-7  # fraction of the range: accuracy of the ends of intervals
_SHORT: Final = 1e-6  # fraction of the range: proofs leave out shorter parts around the ends of intervals
_GOOD: Final = 2.0  # with this ``CompiledProblem.split_cost`` or less, a joint is chosen without trying the others


class Span(NamedTuple):
    """An interval of a joint's value with a constant number of branches.

    Args:
        low: First value, radians or length units.
        high: Last value.
        branches: Number of branches within the limits.
        proved: Part of the interval, 0 to 1, for which it is proved that there are these branches and no others; fixed
            margins allow for rounding.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> free = sy.IK(arm, sy.PoseGoal("tool")).redundancy(arm.random_pose(1).transform("tool"))
        >>> free.intervals[1].branches
        2
    """

    low: float
    high: float
    branches: int
    proved: float = 0.0

    def __str__(self) -> str:
        """Return values and number of branches as text."""
        return f"{self.low:.4g} to {self.high:.4g}: {counted(self.branches, 'branch', 'branches')}"


class Redundancy(NamedTuple):
    """The values of a redundant joint for which a target has branches.

    Args:
        joint: Name of the joint.
        intervals: Intervals of its value, in order, each with the number of branches in it.
        low: First value that was examined, radians or length units.
        high: Last value.
        proved: Part of the range, 0 to 1, for which the number of branches is proved, also where there are none.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> ik = sy.IK(arm, sy.PoseGoal("tool"))
        >>> target = arm.random_pose(1).transform("tool")
        >>> free = ik.redundancy(target)
        >>> free.joint
        'joint7'
        >>> first = free.intervals[0]
        >>> len(ik.branches(target, redundancy=(first.low + first.high) / 2)) == first.branches
        True
    """

    joint: str
    intervals: tuple[Span, ...]
    low: float
    high: float
    proved: float = 0.0

    def __str__(self) -> str:
        """Return the intervals as lines of text."""
        proof = f"; proved for {math.floor(1e4 * self.proved) / 100:g} % of this range" if self.proved else ""
        head = f"{self.joint}, {self.low:.4g} to {self.high:.4g}{proof}"
        lines = [str(one) for one in self.intervals[:_SHOWN]]
        if len(self.intervals) > _SHOWN:
            lines.append(f"and {len(self.intervals) - _SHOWN} more")
        return "\n  ".join([head, *lines] if lines else [f"{head}: no branches"])


class Held:
    """A chain of seven joints of which one is held.

    Args:
        problem: The problem in which all seven move.
        rows: Rows of the seven joints in the skeleton, from the root on.
        row: Row of the held joint in the skeleton.

    Attributes:
        lister: The problem in which the other six joints move; it lists branches.
        at: Index of the held joint's value in q.
        low: Smallest value, radians or length units.
        high: Largest value.
    """

    def __init__(self, problem: CompiledProblem, rows: list[int], row: int) -> None:
        """Build the problem of the other six joints."""
        names = [problem.skeleton.joint_names[other] for other in rows if other != row]
        self._make = partial(
            type(problem), problem.given, problem.goals,
            tolerance=problem.tolerance, root=problem.root, moving=names,
        )  # fmt: skip
        try:
            self.lister = self._make(solver=Segments())
        except UnsupportedError:
            self.lister = self._make(solver=SixJoints())
        _ = self.lister.branch_call  # chooses the splits
        owners, limits = problem.reduced.owner.tolist(), problem.reduced.limits
        k = owners.index(row)
        self.row, self.at = row, int(problem.reduced.variables[k, BLOCK_Q])
        self.low, self.high = (float(x) for x in limits[k, [LOWER, UPPER]])
        self._rows, self._limits = rows, limits[[owners.index(other) for other in rows]][:, [LOWER, UPPER]]

    @cached_property
    def curves(self) -> Curves | None:
        """The branches as functions of the held joint; None if the other joints do not support proofs."""
        six = self.lister
        if six.clear_branches:
            return None
        if not isinstance(six.solver, SixJoints):
            with suppress(UnsupportedError):
                six = self._make(solver=SixJoints())
        return Curves(six, self._rows, self._rows.index(self.row), self._limits)

    def start(self, start: Array, value: float) -> Array:
        """Return a start, (1, nq), in which the held joint has a given value."""
        out = start.copy()
        out[0, self.at] = value
        return self.lister.skeleton.follow(out)

    def strips(self, targets: Targets | None, first: Array, ends: tuple[float, float]) -> list[Strip]:
        """Return intervals between two values, with proved numbers of branches where there is a proof."""
        if self.curves is None:
            return [Strip(*ends, -1)]
        six = self.curves.six
        workspace = six.new_workspace()
        six.writer.fill(targets, workspace)
        found = self.curves.strips(workspace.table, first, ends, _SHORT * (ends[1] - ends[0]))
        return [Strip(*ends, -1)] if found is None else found


def held_of(problem: CompiledProblem, joint: str | int | None, *, prove: bool = False) -> Held:
    """Return the problem with one of its seven joints held; for None, the default joint.

    With ``prove``, the default joint is one that supports proofs, if there is one.

    Raises:
        UnsupportedError: If the chain does not have seven joints, or has no such joint.
    """
    rows = _chain(problem)
    names = [problem.skeleton.joint_names[row] for row in rows]
    if joint is not None:
        row = problem.given.value_index(joint) + len(problem.skeleton) - len(problem.given)
        if row not in rows:
            raise UnsupportedError(
                "this joint does not belong to the chain", where="redundancy", value=joint, expected=f"one of {names}"
            )
        return _held(problem, rows, row)
    found, refusal = list[Held](), None
    for row in reversed(rows):
        try:
            one = _held(problem, rows, row)
        except UnsupportedError as error:  # such as two slides among the others
            refusal = refusal or error
            continue
        found.append(one)
        if one.lister.split_cost <= _GOOD and (not prove or (one.curves and one.curves.splits)):
            return one
    if refusal is not None and not found:
        raise refusal
    return min(found, key=lambda one: one.lister.split_cost)


def value_of(problem: CompiledProblem, redundancy: float | Mapping[str | int, float]) -> tuple[Held, float]:
    """Return the problem with the redundant joint held, and its value.

    Raises:
        InputError: If the value is outside the limits or cannot be used.
    """
    joint: str | int | None = None
    value: Any = redundancy
    if isinstance(redundancy, Mapping):
        if len(redundancy) != 1:
            raise InputError("redundancy", value=redundancy, expected="a value, or one joint with its value")
        joint, value = next(iter(redundancy.items()))
    held, number = held_of(problem, joint), float(as_numbers(value, (), "redundancy"))
    slack = SLACK if _turns(problem, held.row) else SLACK * problem.reach
    if not held.low - slack <= number <= held.high + slack:
        name = problem.skeleton.joint_names[held.row]
        raise InputError(f"redundancy: {name!r}", value=number, expected=f"{held.low:g} to {held.high:g}, its limits")
    return held, min(max(number, held.low), held.high)


def redundancy_of(
    problem: CompiledProblem, targets: Targets | None, start: Start | None, joint: str | int | None, *, prove: bool
) -> Redundancy:
    """Return the intervals of the redundant joint; see ``IK.redundancy``."""
    held = held_of(problem, joint, prove=prove)
    name = problem.skeleton.joint_names[held.row]
    lister, targets = held.lister.read_obstacles(targets)
    given = lister.default_start if start is None else lister.as_start(start)
    first = given.inside if given.ready is None else given.ready
    low, high = held.low, held.high
    if _turns(lister, held.row) and high - low > 2.0 * math.pi:  # one whole turn has all branches
        low = max(low, min(-math.pi, high - 2.0 * math.pi))
        high = low + 2.0 * math.pi
    if not math.isfinite(high - low):
        raise UnsupportedError(
            "a slide without limits has no intervals", where="redundancy", value=name, expected="a joint with limits",
            hint=f"give it some: skeleton.with_limits({{{name!r}: (low, high)}}), or vary another joint: joint=",
        )  # fmt: skip
    step, least = (high - low) / _STEPS, _NARROW * (high - low)

    left = _COUNTS

    def count(value: float) -> int:
        nonlocal left
        left -= 1
        return len(lister.listed(targets, held.start(first, value))[0])

    def changes(a: float, before: int, b: float, after: int) -> Iterator[tuple[float, int]]:
        """Yield the values at which the number of branches changes, with the number after each."""
        if before == after:
            return
        middle = 0.5 * (a + b)
        if b - a <= least or left < 0:
            yield middle, after
            return
        between = count(middle)
        yield from changes(a, before, middle, between)
        yield from changes(middle, between, b, after)

    def sampled(a: float, b: float) -> Iterator[Span]:
        """Yield intervals from samples of the number of branches."""
        places = np.linspace(a, b, math.ceil((b - a) / step - _NARROW) + 1).tolist()
        numbers = [count(place) for place in places]
        begin, now = a, numbers[0]
        for ends, both in zip(itertools.pairwise(places), itertools.pairwise(numbers), strict=True):
            for place, number in changes(ends[0], both[0], ends[1], both[1]):
                yield Span(begin, place, now)
                begin, now = place, number
        yield Span(begin, b, now)

    strips = held.strips(targets, first, (low, high)) if prove else [Strip(low, high, -1)]
    spans: list[Span] = []
    for known, run in itertools.groupby(strips, key=lambda strip: strip.branches >= 0):
        parts = list(run)
        more = [Span(*strip, 1.0) for strip in parts] if known else sampled(parts[0].low, parts[-1].high)
        for one in more:
            if spans and spans[-1].branches == one.branches:
                last = spans.pop()
                share = (last.proved * (last.high - last.low) + one.proved * (one.high - one.low)) / (
                    one.high - last.low
                )
                spans.append(Span(last.low, one.high, one.branches, min(share, 1.0)))
            else:
                spans.append(one)
    proved = math.fsum(one.proved * (one.high - one.low) for one in spans) / (high - low)
    return Redundancy(name, tuple(one for one in spans if one.branches), low, high, min(proved, 1.0))


def _chain(problem: CompiledProblem) -> list[int]:
    """Return the rows, in the skeleton, of the seven joints that move a goal, from the root on.

    A mimic joint stands for its leader.

    Raises:
        UnsupportedError: If there are not seven.
    """
    others = [goal.label for goal in problem.goals if not isinstance(goal, PoseGoal)]
    if len(problem.goals) != 1 or others:
        raise UnsupportedError(
            "only one PoseGoal alone has a redundant joint", where="redundancy", value=list(problem.goals),
            expected="IK(skeleton, PoseGoal(joint))",
        )  # fmt: skip
    reduced = problem.reduced
    variables = [int(reduced.rows[row, VARIABLE]) for row in reversed(above(reduced, reduced.row_of_goal(0)))]
    rows = [int(reduced.owner[k]) for k in variables if k >= 0 and not is_locked(reduced, k)]
    if len(rows) != _JOINTS or len(set(rows)) != _JOINTS:
        names = [problem.skeleton.joint_names[row] for row in rows]
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        hint = "lock further joints: skeleton.with_limits({joint: (value, value)})"
        if twice:
            hint = f"{first_few(twice)} moves several joints of the chain, which has no list of branches"
        elif len(names) < _JOINTS:
            hint = "ik.branches(target) lists the poses of six joints" if len(names) == _JOINTS - 1 else ""
        raise UnsupportedError(
            f"the goal is moved by {counted(len(rows), 'joint')}", where="redundancy", value=names,
            expected="seven hinges and slides, each of which moves on its own", hint=hint or None,
        )  # fmt: skip
    return rows


def _held(problem: CompiledProblem, rows: list[int], row: int) -> Held:
    """Return the problem with one joint of its chain held; it is built once."""
    if row not in problem.held:
        problem.held[row] = Held(problem, rows, row)
    return problem.held[row]


def _turns(problem: CompiledProblem, row: int) -> bool:
    """Return whether a joint is a hinge."""
    return problem.skeleton.joints[row].kind is Kind.HINGE
