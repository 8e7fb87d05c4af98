"""What a body would like beside its goals."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from synovia.errors import InputError
from synovia.solver.base import LARGEST


@dataclass(frozen=True, slots=True, kw_only=True)
class NullSpace:
    """Wishes for what the goals leave free: weights of the terms of a function H(q) that is to be small.

    Steps take dq = J⁺e + (J⁺J - 1)∇H: the projector lets nothing of the wishes leak into the goals. Once all goals
    hold, the pose slides along those that meet them until H is lowest nearby. A pose that misses a goal has no wishes.

    Args:
        posture: Weight of the preferred values: Σ αi (qi - qi,opt)², αi the joint's stiffness (``Joint.stiffness``) and
            qi,opt its preferred value (a ball: its rest; the squared angle from there). Joints without stiffness have
            no say; a ``RestGoal`` has weights and values of its own, and needs no ``NullSpace``.
        centre: Weight of staying in the middle of the ranges: Σ (q - mid)² / half², over all limited joints.
        margins: Weight of staying out of the margins at the ends of the ranges, where the same is counted from the
            margin on; 0 between. Limits are hard with or without it.
        margin: Width of the margins, a fraction of half the range.
        manipulability: Weight of -log √det(J Jᵀ), J of all goals together: away from singular poses.

    Raises:
        InputError: If a weight is negative or no finite number.

    References:
        Liégeois (1977), *Automatic supervisory control of the configuration and behavior of multibody mechanisms*;
        Yoshikawa (1985), *Manipulability of robotic mechanisms*.
    """

    posture: float = 1.0
    centre: float = 0.0
    margins: float = 0.0
    margin: float = 0.1
    manipulability: float = 0.0

    def __post_init__(self) -> None:
        """Refuse weights that mean nothing."""
        for setting in fields(self):
            value: Any = getattr(self, setting.name)
            most = 1.0 if setting.name == "margin" else LARGEST
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= most:
                raise InputError(
                    f"{setting.name} is out of range",
                    where="NullSpace",
                    value=value,
                    expected="a finite number from 0" + (" to 1" if most == 1.0 else ""),
                )
            object.__setattr__(self, setting.name, float(value))
        if not self.posture + self.centre + self.margins + self.manipulability > 0.0:
            raise InputError("NullSpace has no wish", expected="at least one weight above 0")

    def weights(self) -> tuple[float, float, float, float, float]:
        """Return what the kernel reads: posture, centre, margins, their width, manipulability."""
        return (self.posture, self.centre, self.margins, self.margin, self.manipulability)
