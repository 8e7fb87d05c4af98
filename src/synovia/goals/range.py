"""Range: keep a joint value within bounds narrower than its limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import Goal, Term, as_lengths, goal_class
from synovia.goals.describe import Sketch, View
from synovia.model import Kind
from synovia.model.geometry import Array, as_numbers

if TYPE_CHECKING:
    from synovia.model import Skeleton

_MOST = 1e300  # the value for no bound in kernels
_INSTEAD = "use PositionGoal, PlaneGoal or DistanceGoal to bound its position"


@goal_class
class RangeGoal(Goal):
    """A joint value should stay within bounds: a comfortable angle, clear of a cable or an end stop.

    The value is the angle of a hinge (radians; full turns count), the position of a slide (length units), or the
    rotation angle of a ball from rest (radians, 0 to π). Residual, for a value q: lower - q below the range, upper - q
    above it, else 0 (1 row). Unlike a joint limit, a range has a weight and a priority, and may be missed.

    Args:
        lower: Least value; minus infinity for no bound.
        upper: Largest value; infinity for no bound. At least one bound is required.

    Raises:
        InputError: If a value cannot be used, there is no bound, or the range is empty; when an ``IK`` is built, if the
            joint has no value of its own, or the range is outside its limits.

    Example:
        >>> import synovia as sy
        >>> goals = [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.RangeGoal("joint4", -2.2, -1.8)]
        >>> bool(-2.201 < sy.solve(sy.bundled("arm7"), goals).pose["joint4"] < -1.799)
        True
    """

    kind = "range"
    needs = "rows"
    summary = "A joint's own value should be within bounds: of a ball, how far it is turned from rest."
    fields = (
        describe.Field(
            name="lower",
            form="number",
            text="Least value, radians or length units; no bound if left out.",
            take=lambda goal: goal.lower if math.isfinite(goal.lower) else None,
        ),
        describe.Field(
            name="upper",
            form="number",
            text="Most value, radians or length units; no bound if left out.",
            take=lambda goal: goal.upper if math.isfinite(goal.upper) else None,
        ),
    )
    bounds_value = True

    lower: float = -math.inf
    upper: float = math.inf
    # whether the joint value is a length; set when the goal is resolved
    slides: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Check the values."""
        super().__post_init__()
        lower, upper = (float(as_numbers(getattr(self, name), (), name, finite=False)) for name in ("lower", "upper"))
        for value, what in ((lower, "lower"), (upper, "upper")):
            if math.isfinite(value):
                as_lengths(value, (), what)
        if not lower <= upper or lower == math.inf or upper == -math.inf:
            raise InputError("bounds", value=(lower, upper), expected="lower <= upper")
        if math.isinf(lower) and math.isinf(upper):
            raise InputError("bounds", expected="a finite lower=, a finite upper=, or both")
        self._keep(lower=lower, upper=upper)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Further residual: a length for a slide, else an angle."""
        bounds = (max(self.lower, -_MOST), min(self.upper, _MOST))
        return (Term(kind="range", lengths=int(self.slides), angles=int(not self.slides), numbers=bounds),)

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with ``slides`` set by the kind of its joint.

        Raises:
            InputError: If the joint has no value of its own, or the range is outside its limits.
        """
        with self._named_in_errors():
            row = skeleton.value_index(self.joints[0])
            joint = skeleton.joints[row]
            if joint.kind in (Kind.FIXED, Kind.FREE):
                raise InputError(
                    joint.name,
                    value=joint.kind.name,
                    expected="a HINGE, SLIDE or BALL",
                    hint=_INSTEAD if joint.kind is Kind.FREE else None,
                )
            least, most = (0.0, math.pi) if joint.kind is Kind.BALL else skeleton.value_range(row)
            if self.lower > most or self.upper < least:
                what = "a turn from rest" if joint.kind is Kind.BALL else "its limits"
                raise InputError(
                    "bounds",
                    value=(self.lower, self.upper),
                    expected=f"values within {what}, {least:g} to {most:g}",
                )
        lower = -math.inf if joint.kind is Kind.BALL and self.lower <= 0.0 else self.lower
        return self._with(lower=lower, slides=joint.kind is Kind.SLIDE)

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return a text with the distance of the joint value from the range."""
        ends = [say(x) if self.slides else describe.degrees(x) for x in (self.lower, self.upper)]
        within = f"{ends[0]} to {ends[1]}"
        if math.isinf(self.lower) or math.isinf(self.upper):
            within = f"at most {ends[1]}" if math.isinf(self.lower) else f"at least {ends[0]}"
        return f"is {say(length) if self.slides else describe.degrees(angle)} outside its range, {within}"

    def sketch(self, view: View) -> Sketch:
        """Return the range as an arc or a rail."""
        return Sketch(arc=(self.lower, self.upper), note="length" if self.slides else "angle")

    @classmethod
    def first_values(cls, skeleton: Skeleton, row: int, up: Array) -> dict[str, Any]:
        """Return the arguments of a new goal: the whole range of the joint."""
        lower, upper = cls.ends(skeleton, row)
        return {"lower": lower, "upper": upper}

    @staticmethod
    def ends(skeleton: Skeleton, row: int) -> tuple[float, float]:
        """Return the range of values that the page offers for a joint, radians or length units.

        Raises:
            InputError: If the joint has no value of its own.
        """
        kind = skeleton.joints[row].kind
        if kind is Kind.BALL:
            return 0.0, math.pi
        if kind not in (Kind.HINGE, Kind.SLIDE):
            RangeGoal(row, 0.0).resolved(skeleton)  # raises the error for such a joint
        low, high = skeleton.value_range(row)
        far = math.pi if kind is Kind.HINGE else skeleton.size or 1.0
        return (low if math.isfinite(low) else min(-far, high - far)), (
            high if math.isfinite(high) else max(far, low + far)
        )
