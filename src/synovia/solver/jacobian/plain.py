"""Jacobian transpose, pseudo-inverse and selectively damped least squares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from synovia.solver.jacobian.base import JacobianMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class JacobianTranspose(JacobianMethod):
    """Jacobian transpose: dq = α Jᵀe with the step α = <e, JJᵀe> / <JJᵀe, JJᵀe> that leaves the least error.

    No system is solved, so a step is cheap and no pose is singular; but it is steepest descent, and takes hundreds of
    steps where the others take ten.

    Args:
        max_steps: Steps of one attempt; motion in the null space may take as many again.
        attempts: Attempts, restarts included.
        seed: Seed of the restarts.
        largest_error: What one step believes of a goal's error (reaches, radians): more is shortened to it; None for
            all of it.
        largest_turn: Largest change of a joint in one step, radians (slides: reaches); None for any.
        jacobian: ``"geometric"`` by cross products, ``"partial"`` by partial derivatives of the transforms.
        null_space: What the body would like beside its goals.

    References:
        Buss (2004), *Introduction to inverse kinematics with Jacobian transpose, pseudoinverse and damped least squares
        methods*, section 3.
    """

    name: ClassVar[str] = "transpose"
    method: ClassVar[int] = 0
    progress: ClassVar[tuple[int, float]] = (20, 0.9)  # steps creep before they arrive

    max_steps: int = 1000
    attempts: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PseudoInverse(JacobianMethod):
    """Pseudo-inverse: solve (JJᵀ) b = e with a factorisation for symmetric matrices, dq = Jᵀb.

    The shortest step that removes the whole error to first order. Where JJᵀ is singular, as for a straight arm, it is
    damped as far as it is, and not at all elsewhere; and since the full step is too long far from
    the target, error and step are clamped.

    Args:
        max_steps: Steps of one attempt; motion in the null space may take as many again.
        attempts: Attempts, restarts included.
        seed: Seed of the restarts.
        largest_error: What one step believes of a goal's error (reaches, radians): more is shortened to it; None for
            all of it.
        largest_turn: Largest change of a joint in one step, radians (slides: reaches); None for any.
        jacobian: ``"geometric"`` by cross products, ``"partial"`` by partial derivatives of the transforms. They agree
            to rounding; the first is quicker.
        null_space: What the body would like beside its goals.

    References:
        Whitney (1969), *Resolved motion rate control of manipulators and human prostheses*; Nakamura & Hanafusa (1986),
        *Inverse kinematic solutions with singularity robustness for robot manipulator control*, for the damping.
    """

    name: ClassVar[str] = "pinv"
    method: ClassVar[int] = 1

    max_steps: int = 60
    attempts: int = 100
    largest_error: float | None = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectivelyDamped(JacobianMethod):
    """Selectively damped least squares: every singular vector of the Jacobian is damped by how far it moves the goals.

    Needs no damping constant and does not shake near singular poses; a singular value decomposition in every step.

    Args:
        max_steps: Steps of one attempt; motion in the null space may take as many again.
        attempts: Attempts, restarts included.
        seed: Seed of the restarts.
        largest_error: What one step believes of a goal's error (reaches, radians): more is shortened to it; None for
            all of it.
        largest_turn: γmax, the largest change of a joint in one step, radians (slides: reaches); None for any.
        jacobian: ``"geometric"`` by cross products, ``"partial"`` by partial derivatives of the transforms.
        null_space: What the body would like beside its goals.

    References:
        Buss & Kim (2005), *Selectively damped least squares for inverse kinematics*.
    """

    name: ClassVar[str] = "sdls"
    method: ClassVar[int] = 3
    progress: ClassVar[tuple[int, float]] = (10, 0.5)

    max_steps: int = 200
    attempts: int = 100
    largest_turn: float | None = math.pi / 4
