"""What the methods of the Jacobian family share: clamps, the form of the Jacobian, motion in the null space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from synovia.errors import InputError
from synovia.kernels.layout import (
    DAMPING,
    ERROR_DAMPING,
    FORM,
    LARGEST_ERROR,
    LARGEST_TURN,
    METHOD,
    PROGRESS,
    REST_WEIGHT,
)
from synovia.problem import Reduced
from synovia.solver.base import ALL_GOALS, Kernel, Solver
from synovia.solver.jacobian.null_space import NullSpace

_NONE = 1e100  # a clamp that never clamps
_FORMS = ("geometric", "partial")


@dataclass(frozen=True, slots=True, kw_only=True)
class JacobianMethod(Solver):
    """Settings of every method of the family; see its subclasses.

    Residuals are radians and lengths per reach. Joint values stay within their limits in every step: what stands at a
    limit and would be pushed out is held, the step is solved for the rest, and the joint is free again at the next.

    Args:
        max_steps: Steps of one attempt; motion in the null space may take as many again.
        attempts: Attempts, restarts included.
        seed: Seed of the restarts.
        largest_error: What one step believes of a goal's error: more is shortened to it; None for all of it.
        largest_turn: Largest change of a joint in one step, radians (slides: reaches); None for any.
        jacobian: ``"geometric"`` by cross products, ``"partial"`` by partial derivatives of the transforms. They agree
            to rounding; the first is quicker.
        null_space: What the body would like beside its goals.

    Raises:
        InputError: If a setting is out of range.
    """

    others: ClassVar[frozenset[str]] = frozenset({"jacobian", "null_space"})
    supported_goals: ClassVar[frozenset[str]] = ALL_GOALS
    method: ClassVar[int]  # in ``kernels.jacobian.methods``

    largest_error: float | None = None
    largest_turn: float | None = 1.0
    jacobian: Literal["geometric", "partial"] = "geometric"
    null_space: NullSpace | None = None

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        Solver.__post_init__(self)
        if not isinstance(self.jacobian, str) or self.jacobian not in _FORMS:
            raise InputError(
                "jacobian is out of range",
                where=type(self).__name__,
                value=self.jacobian,
                expected=" or ".join(map(repr, _FORMS)),
            )
        if self.null_space is not None and not isinstance(self.null_space, NullSpace):
            raise InputError(
                "null_space is out of range",
                where=type(self).__name__,
                value=self.null_space,
                expected="sy.NullSpace(...) or None",
            )

    @property
    def polishes(self) -> bool:
        """Whether a miss is descended to a minimum: by the family's own last steps."""
        return True

    def bare(self, reduced: Reduced) -> bool:
        """Return whether nothing is asked for beyond the method itself."""
        return (
            self.largest_error is None
            and self.largest_turn == 1.0
            and self.jacobian == "geometric"
            and self.null_space is None
            and not reduced.posture[:, REST_WEIGHT].any()
        )

    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the kernel of the family, with wishes or without."""
        if self.null_space is not None or reduced.posture[:, REST_WEIGHT].any():
            from synovia.kernels.jacobian.secondary_steps import secondary_family, secondary_family_general

            return secondary_family if reduced.pose_only else secondary_family_general
        from synovia.kernels.jacobian.family import family, family_general

        return family if reduced.pose_only else family_general

    def extra_scratch(self, residuals: int, columns: int) -> int:
        """Return the size of the family's room."""
        from synovia.kernels.jacobian.shared import scratch_size

        return scratch_size(residuals, columns)

    def damping_terms(self) -> tuple[float, float]:
        """Return constant damping and the factor of the squared error."""
        return (0.0, 0.0)

    def params(self) -> dict[int, float]:
        """Return the settings by their places."""
        constant, of_error = self.damping_terms()
        return {
            PROGRESS: self.progress[1],
            DAMPING: constant,
            ERROR_DAMPING: of_error,
            METHOD: self.method,
            FORM: _FORMS.index(self.jacobian),
            LARGEST_ERROR: _NONE if self.largest_error is None else self.largest_error,
            LARGEST_TURN: _NONE if self.largest_turn is None else self.largest_turn,
            **({} if self.null_space is None else self.null_space.params()),
        }
