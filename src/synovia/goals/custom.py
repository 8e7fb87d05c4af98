"""A user-defined goal: any residual that should be zero, written in Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from synovia.arguments import as_call
from synovia.errors import InputError
from synovia.goals.base import Goal, Term
from synovia.goals.describe import Sketch, View
from synovia.model.geometry import Array, as_numbers, dimensions, is_number

if TYPE_CHECKING:
    from synovia.model import Pose, Skeleton


class CustomGoal(Goal):
    """A residual in Python that should be zero. Slower than the other goals, and solved by the Jacobian family.

    Args:
        residual: Function of a ``Pose`` that returns values (k,), with constant k, smooth in the pose.
        jacobian: Function of a ``Pose`` that returns the derivative (k, nv) of the residual with respect to the
            velocities of all joints in order: 1 for a hinge or slide, 3 for a ball (angular velocity in the joint's
            frame), 6 for a free joint (translation first). With ``root="free"``, six more come first if the skeleton's
            own root is fixed. None for central differences.
        weight: Weight of its squared norm relative to other goals, whose lengths are divided by the length scale.
        tolerance: Norm of the residual, in its own unit, up to which the goal is met.
        name: What to call the goal.

    Keep the tool upright while it moves to a position: the x and y components of its z axis should be 0.

    >>> import synovia as sy
    >>> arm = sy.bundled("arm7")
    >>> upright = sy.CustomGoal(lambda pose: pose.matrix("tool")[:2, 2], tolerance=1e-3, name="upright")
    >>> sy.solve(arm, [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), upright]).status.name
    'REACHED'

    Or derive a class with a method ``residual`` and optionally ``jacobian``. In ``solution.errors``, ``position`` is
    the norm of the residual, in its own unit.

    Raises:
        InputError: If a value cannot be used.
    """

    kind = "custom"
    needs = "custom"
    on_joint = False
    in_python = True

    function: Callable[[Pose], Any] | None
    derivative: Callable[[Pose], Any] | None
    size: int  # number of residual values; set when the goal is resolved
    tolerance: float

    def __init__(
        self,
        residual: Callable[[Pose], Any] | None = None,
        jacobian: Callable[[Pose], Any] | None = None,
        *,
        weight: float = 1.0,
        tolerance: float = 1e-4,
        name: str | None = None,
    ) -> None:
        """Check and store the values."""
        super().__init__(None, weight=weight, name=name)
        for what, given in (("residual", residual), ("jacobian", jacobian)):
            if given is not None and not callable(given):
                raise InputError(what, where=self.label, value=given, expected="a function of a pose")
        if residual is None and type(self).residual is CustomGoal.residual:
            raise InputError("residual", where=self.label, expected="a function, or a method ``residual``")
        number: Any = tolerance
        if not is_number(number) or not 0.0 < number < math.inf:
            raise InputError("tolerance", where=self.label, value=tolerance, expected="a number above 0")
        self._keep(function=residual, derivative=jacobian, size=0, tolerance=float(number))

    def __repr__(self) -> str:
        """Return the call that creates the goal, without defaults."""
        return as_call(self, {**self._values(), "residual": self.function, "jacobian": self.derivative})

    def residual(self, pose: Pose) -> Any:
        """Return the residual at a pose, (k,)."""
        if self.function is None:
            raise InputError("residual", where=self.label, expected="a function")
        return self.function(pose)

    def jacobian(self, pose: Pose) -> Any:
        """Return the derivative of the residual, (k, nv), or None for finite differences."""
        return None if self.derivative is None else self.derivative(pose)

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with the size of its residual at the rest pose."""
        return self._with(size=len(self.checked(self.residual(skeleton.rest_pose()))))

    def checked(self, value: Any, shape: tuple[int, ...] | None = None) -> Array:
        """Return the result of a user's function as an array of finite numbers.

        Args:
            value: The result.
            shape: The expected shape; None for (k,) of any length.

        Raises:
            InputError: If the result cannot be used.
        """
        what = "residual" if shape is None or len(shape) == 1 else "jacobian"
        single = dimensions(value) == 0 and what == "residual"
        with self._named_in_errors():
            if value is None:
                raise InputError(what, expected="numbers", hint="the function returns None")
            given = as_numbers([value] if single else value, shape or (-1,), what)
            if given.size == 0:
                raise InputError(what, expected="at least one number")
        return given

    @property
    def terms(self) -> tuple[Term, ...]:
        """The residual of the Python function."""
        return (Term(kind="custom", lengths=self.size, numbers=(self.tolerance,)),)

    @property
    def measures(self) -> int:
        """Return 0, because the error has a unit of its own."""
        return 0

    @property
    def own_tolerance(self) -> float:
        """Largest norm of the residual at which the goal is met."""
        return self.tolerance

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return the norm of the residual as text, in its own unit."""
        return f"is missed by {length:.3g}"

    def sketch(self, view: View) -> Sketch:
        """Return no marks, because the goal has no position."""
        return Sketch(on_joint=False)
