"""What a body would like beside its goals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from synovia.arguments import ChecksArguments
from synovia.errors import InputError
from synovia.kernels.layout import (
    CENTRE_WEIGHT,
    GRADIENT_WEIGHT,
    MANIPULABILITY_WEIGHT,
    MARGIN,
    MARGIN_WEIGHT,
    POSTURE_WEIGHT,
)
from synovia.model.geometry import is_number
from synovia.solver.base import LARGEST

if TYPE_CHECKING:
    from synovia.model import Pose


@dataclass(frozen=True, slots=True, kw_only=True)
class NullSpace(ChecksArguments):
    """Wishes for what the goals leave free: weights of the terms of a function H(q) that is to be small.

    Steps take dq = J⁺e + (J⁺J - 1)∇H: the projector lets nothing of the wishes leak into the goals. Once all goals
    hold, the pose slides along those that meet them until H is lowest nearby. A pose that misses a goal has no wishes.

    Args:
        posture: Weight of the preferred values: Σ αi (qi - qi,opt)², αi the joint's stiffness (``Joint.stiffness``) and
            qi,opt its preferred value (a ball: its rest; the squared angle from there). Joints without stiffness have
            no say; a ``RestGoal`` has weights and values of its own, and needs no ``NullSpace``.
        center: Weight of staying in the middle of the ranges: Σ (q - mid)² / half², over all limited joints.
        margins: Weight of staying out of the margins at the ends of the ranges, where the same is counted from the
            margin on; 0 between. Limits are hard with or without it.
        margin: Width of the margins, a fraction of half the range.
        manipulability: Weight of -log √det(J Jᵀ), J of all goals but custom ones together: away from singular
            poses.
        gradient: Any other wish: function of a ``Pose`` that returns the derivative (nv,) of a term of H by the
            velocities of all joints in order: 1 for a hinge or slide, 3 for a ball (angular velocity in the joint's
            frame), 6 for a free joint (translation first). A term that bends by about 1 per squared radian is met in
            the fewest steps. It moves the joints that a goal hangs on; a ``RestGoal`` on others adds those. Called from
            Python in every step: a solve takes milliseconds, not microseconds.

    Keep the elbow low, with a gradient by differences:

    >>> import numpy as np
    >>> import synovia as sy
    >>> arm = sy.bundled("arm7")
    >>> def lower_elbow(pose):
    ...     nudge = 1e-6 * np.eye(7)
    ...     height = lambda q: sy.Pose(pose.skeleton, q).position("joint4")[2]
    ...     return [(height(pose.q + d) - height(pose.q - d)) / 2e-6 for d in nudge]
    >>> low = sy.LevenbergMarquardt(null_space=sy.NullSpace(gradient=lower_elbow))
    >>> goal = sy.PositionGoal("tool", (0.4, 0.1, 0.5))
    >>> bool(sy.solve(arm, goal, low).pose.position("joint4")[2] < sy.solve(arm, goal).pose.position("joint4")[2])
    True

    Raises:
        InputError: If a weight is negative or no finite number, or the gradient no function.

    References:
        Liégeois (1977), *Automatic supervisory control of the configuration and behavior of multibody mechanisms*;
        Yoshikawa (1985), *Manipulability of robotic mechanisms*.
    """

    posture: float = 1.0
    center: float = 0.0
    margins: float = 0.0
    margin: float = 0.1
    manipulability: float = 0.0
    gradient: Callable[[Pose], Any] | None = None

    def __post_init__(self) -> None:
        """Refuse weights that mean nothing."""
        for setting in fields(self):
            value: Any = getattr(self, setting.name)
            if setting.name == "gradient":
                if value is not None and not callable(value):
                    raise InputError(
                        "gradient is no function", where="NullSpace", value=value, expected="a function of a pose"
                    )
                continue
            most = 1.0 if setting.name == "margin" else LARGEST
            if not is_number(value) or not 0.0 <= value <= most:
                raise InputError(
                    f"{setting.name} is out of range",
                    where="NullSpace",
                    value=value,
                    expected="a finite number from 0" + (" to 1" if most == 1.0 else ""),
                )
            object.__setattr__(self, setting.name, float(value))
        if self.gradient is None and not self.posture + self.center + self.margins + self.manipulability > 0.0:
            raise InputError("NullSpace has no wish", expected="at least one weight above 0, or a gradient")

    def params(self) -> dict[int, float]:
        """Return the settings by their places in ``kernels.layout``."""
        return {
            POSTURE_WEIGHT: self.posture,
            CENTRE_WEIGHT: self.center,
            MARGIN_WEIGHT: self.margins,
            MARGIN: self.margin,
            MANIPULABILITY_WEIGHT: self.manipulability,
            GRADIENT_WEIGHT: float(self.gradient is not None),
        }
