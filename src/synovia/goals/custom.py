"""A goal of the user's own: any residual that should be zero, written in Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from synovia.errors import InputError
from synovia.goals.base import Goal, Term
from synovia.goals.describe import Sketch, View
from synovia.model.geometry import Array, as_numbers, dimensions, is_number

if TYPE_CHECKING:
    from synovia.model import Pose, Skeleton


class CustomGoal(Goal):
    """A residual in Python that should be zero. Slower than the other goals, and solved by the Jacobian family.

    Args:
        residual: Function of a ``Pose`` that returns numbers (k,), always as many, smooth in the pose.
        jacobian: Function of a ``Pose`` that returns the residual's derivative (k, nv) by the velocities of all joints
            in order: 1 for a hinge or slide, 3 for a ball (angular velocity in the joint's frame), 6 for a free joint
            (translation first); ``root="free"`` puts six more in front where the skeleton's own root is fixed. Without
            it, it is found by central differences.
        weight: Weight of its squared length beside other goals, whose lengths count in reaches and angles in radians.
        tolerance: Length of the residual, in its own unit, up to which the goal is reached.
        name: What to call the goal.

    Keep the tool upright while it goes to a place: its z axis has no share along x and y.

    >>> import synovia as sy
    >>> arm = sy.bundled("arm7")
    >>> upright = sy.CustomGoal(lambda pose: pose.matrix("tool")[:2, 2], tolerance=1e-3, name="upright")
    >>> sy.solve(arm, [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), upright]).status.name
    'REACHED'

    A class may be derived instead, with ``residual`` and perhaps ``jacobian`` as methods. The length of the residual is
    found in ``solution.errors`` as ``position``, in its own unit.

    Raises:
        InputError: If a value cannot be used.
    """

    kind: ClassVar[str] = "custom"
    needs: ClassVar[str] = "custom"
    on_joint: ClassVar[bool] = False
    in_python: ClassVar[bool] = True

    function: Callable[[Pose], Any] | None
    derivative: Callable[[Pose], Any] | None
    size: int  # of the residual, once it is resolved
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
        """Check and keep the values."""
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

    def residual(self, pose: Pose) -> Any:
        """Return what should be zero at a pose, (k,)."""
        if self.function is None:
            raise InputError("residual", where=self.label, expected="a function")
        return self.function(pose)

    def jacobian(self, pose: Pose) -> Any:
        """Return the derivative of the residual, (k, nv), or None to have it found by differences."""
        return None if self.derivative is None else self.derivative(pose)

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with the size of its residual, which is found at the rest pose."""
        return self._with(size=len(self.checked(self.residual(skeleton.rest_pose()))))

    def checked(self, value: Any, shape: tuple[int, ...] | None = None) -> Array:
        """Return what a user's function gave as an array of finite numbers.

        Args:
            value: What it gave.
            shape: The shape that it must have; None for (k,) of any length.

        Raises:
            InputError: If it is nothing of the kind.
        """
        what = "residual" if shape is None or len(shape) == 1 else "jacobian"
        single = dimensions(value) == 0 and what == "residual"
        with self._named_in_errors():
            given = as_numbers([value] if single else value, shape or (-1,), what)
            if given.size == 0:
                raise InputError(what, expected="at least one number")
        return given

    @property
    def terms(self) -> tuple[Term, ...]:
        """What the kernels read."""
        return (Term(kind="custom", lengths=self.size, numbers=(self.tolerance,)),)

    @property
    def measures(self) -> int:
        """Neither a length nor an angle: the error is in a unit of its own."""
        return 0

    @property
    def own_tolerance(self) -> float:
        """Length of its residual up to which it is reached."""
        return self.tolerance

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return the length of the residual, in its own unit."""
        return f"is missed by {length:.3g}"

    def sketch(self, view: View) -> Sketch:
        """Return nothing: nobody knows where it is."""
        return Sketch(on_joint=False)
