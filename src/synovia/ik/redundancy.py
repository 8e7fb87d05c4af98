"""Chains of seven joints: their branches as functions of one of the joints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.errors import InputError, UnsupportedError
from synovia.ik.compiled import CompiledProblem, Start
from synovia.ik.completeness import SLACK
from synovia.ik.targets import Targets
from synovia.kernels.layout import BLOCK_Q, LOWER, UPPER, VARIABLE
from synovia.model import Kind
from synovia.model.geometry import Array, as_numbers
from synovia.problem.structure import above, is_locked
from synovia.solver import Segments, SixJoints

_JOINTS: Final = 7
_STEPS: Final = 256  # steps over the range of the joint in which the number of branches is counted
_NARROW: Final = 1e-7  # fraction of the range: accuracy of the ends of intervals
_GOOD: Final = 2.0  # with this ``CompiledProblem.split_cost`` or less, a joint is chosen without trying the others


class Span(NamedTuple):
    """An interval of a joint's value with a constant number of branches.

    Args:
        low: First value, radians or length units.
        high: Last value.
        branches: Number of branches within the limits.

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


class Redundancy(NamedTuple):
    """The values of a redundant joint for which a target has branches.

    Args:
        joint: Name of the joint.
        intervals: Intervals of its value, in order, each with the number of branches in it.

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


class Held(NamedTuple):
    """A chain of seven joints of which one is held.

    Args:
        lister: The problem in which the other six joints move; it lists branches.
        row: Row of the held joint in the skeleton.
        at: Index of its value in q.
        low: Smallest value, radians or length units.
        high: Largest value.
    """

    lister: CompiledProblem
    row: int
    at: int
    low: float
    high: float

    def start(self, start: Array, value: float) -> Array:
        """Return a start, (1, nq), in which the held joint has a given value."""
        out = start.copy()
        out[0, self.at] = value
        return self.lister.skeleton.follow(out)


def held_of(problem: CompiledProblem, joint: str | int | None) -> Held:
    """Return the problem with one of its seven joints held; for None, the default joint.

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
    found: list[Held] = []
    for row in reversed(rows):
        one = _held(problem, rows, row)
        found.append(one)
        if one.lister.split_cost <= _GOOD:
            return one
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
    problem: CompiledProblem, targets: Targets | None, start: Start | None, joint: str | int | None
) -> Redundancy:
    """Return the intervals of the redundant joint; see ``IK.redundancy``."""
    held = held_of(problem, joint)
    lister, targets = held.lister.read_obstacles(targets)
    given = lister.default_start if start is None else lister.as_start(start)
    first = given.inside if given.ready is None else given.ready
    low, high = held.low, held.high
    if _turns(lister, held.row) and high - low > 2.0 * math.pi:  # one whole turn has all branches
        low = max(low, min(-math.pi, high - 2.0 * math.pi))
        high = low + 2.0 * math.pi
    if not math.isfinite(high - low):
        name = problem.skeleton.joint_names[held.row]
        raise UnsupportedError("a slide without limits has no intervals", where="redundancy", value=name)
    least = _NARROW * (high - low)

    def count(value: float) -> int:
        return len(lister.listed(targets, held.start(first, value))[0])

    def changes(a: float, before: int, b: float, after: int) -> Iterator[tuple[float, int]]:
        """Yield the values at which the number of branches changes, with the number after each."""
        if before == after:
            return
        middle = 0.5 * (a + b)
        if b - a <= least:
            yield middle, after
            return
        between = count(middle)
        yield from changes(a, before, middle, between)
        yield from changes(middle, between, b, after)

    places = np.linspace(low, high, _STEPS + 1).tolist()
    numbers = [count(place) for place in places]
    spans: list[Span] = []
    begin, now = low, numbers[0]
    for (a, before), (b, after) in zip(
        zip(places, numbers, strict=True), zip(places[1:], numbers[1:], strict=True), strict=False
    ):
        for place, number in changes(a, before, b, after):
            spans.append(Span(begin, place, now))
            begin, now = place, number
    spans.append(Span(begin, high, now))
    return Redundancy(problem.skeleton.joint_names[held.row], tuple(span for span in spans if span.branches))


def _chain(problem: CompiledProblem) -> list[int]:
    """Return the rows, in the skeleton, of the seven joints that move a goal, from the root on.

    A mimic joint stands for its leader.

    Raises:
        UnsupportedError: If there are not seven.
    """
    reduced = problem.reduced
    variables = [int(reduced.rows[row, VARIABLE]) for row in reversed(above(reduced, reduced.row_of_goal(0)))]
    rows = [int(reduced.owner[k]) for k in variables if k >= 0 and not is_locked(reduced, k)]
    if len(rows) != _JOINTS or len(problem.goals) != 1:
        names = [problem.skeleton.joint_names[row] for row in rows]
        raise UnsupportedError(
            "a redundancy needs seven hinges or slides that move one goal", where="redundancy", value=names,
            expected="seven joints", hint="lock further joints: skeleton.with_limits({joint: (value, value)})",
        )  # fmt: skip
    return rows


def _held(problem: CompiledProblem, rows: list[int], row: int) -> Held:
    """Return the problem with one joint of its chain held; it is built once."""
    if row not in problem.held:
        names = [problem.skeleton.joint_names[other] for other in rows if other != row]
        make = partial(
            type(problem), problem.given, problem.goals,
            tolerance=problem.tolerance, root=problem.root, moving=names,
        )  # fmt: skip
        try:
            lister = make(solver=Segments())
        except UnsupportedError:
            lister = make(solver=SixJoints())
        _ = lister.branch_call  # chooses the splits
        k = int(np.flatnonzero(problem.reduced.owner == row)[0])
        low, high = (float(x) for x in problem.reduced.limits[k, [LOWER, UPPER]])
        problem.held[row] = Held(lister, row, int(problem.reduced.variables[k, BLOCK_Q]), low, high)
    return problem.held[row]


def _turns(problem: CompiledProblem, row: int) -> bool:
    """Return whether a joint is a hinge."""
    return problem.skeleton.joints[row].kind is Kind.HINGE
