"""Filter noisy targets: the One-Euro filter for positions and rotations, with a dead band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.arguments import ChecksArguments
from synovia.errors import InputError
from synovia.kernels.layout import TRANSFORM_WIDTH
from synovia.model.geometry import Array, Bools, is_number
from synovia.servo.curve import exp_turn, log_turn

_SPEED_CUTOFF: Final = 1.0  # Hz: cutoff frequency of the speed filter, as in the paper
_LARGEST: Final = 1e6


@dataclass(frozen=True, kw_only=True)
class OneEuro(ChecksArguments):
    """A filter for the targets of a ``Servo``: strong for slow targets, so that noise disappears, weak for fast ones.

    The filter is of first order, with the cutoff frequency ``cutoff + beta · speed``. For positions, the speed is in
    length scales per second, for rotations in rad/s. It lags by about 1 / (2π · cutoff frequency) seconds.

    Args:
        cutoff: Cutoff frequency of a target at rest, Hz.
        beta: Increase of the cutoff frequency per unit of speed.
        dead_band: A target counts as unchanged within this distance, length scales, and half this angle, radians.

    References:
        Casiez, Roussel & Vogel (2012), *1€ filter*.

    Example:
        >>> import synovia as sy
        >>> goal = sy.PositionGoal("tool")
        >>> smooth = sy.live.OneEuro()
        >>> servo = sy.Servo(sy.bundled("arm7"), goal, rate=100, velocity=1.0, acceleration=5.0, filter=smooth)
        >>> servo.reset("rest")
        >>> servo.step((0.4, 0.1, 0.5)).status.name
        'LATE'
    """

    cutoff: float = 1.0
    beta: float = 5.0
    dead_band: float = 0.0

    def __post_init__(self) -> None:
        """Check the settings."""
        for name, least in (("cutoff", 1e-6), ("beta", 0.0), ("dead_band", 0.0)):
            value = getattr(self, name)
            if not is_number(value) or not least <= value <= _LARGEST:
                raise InputError(name, where="OneEuro", value=value, expected=f"from {least:g} to {_LARGEST:g}")
            object.__setattr__(self, name, float(value))


class TargetFilter:
    """The filter of all goals of a servo, with its memory.

    Args:
        settings: The settings.
        goals: Number of goals.
        reach: Length scale of the problem, length units.
    """

    def __init__(self, settings: OneEuro, goals: int, reach: float) -> None:
        """Begin without memory."""
        self._settings, self._reach = settings, reach
        self._raw: list[Array | None] = [None] * goals
        self._smooth = np.zeros((goals, 4, 4))
        self._speeds = np.zeros((goals, 2))
        self._times = np.zeros(goals)

    def take_over(self, other: TargetFilter, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy the memory of goals, by pairs of their indices now and before."""
        for new, old in pairs:
            self._raw[new], self._times[new] = other._raw[old], other._times[old]
            self._smooth[new], self._speeds[new] = other._smooth[old], other._speeds[old]

    def forget(self, goals: Bools) -> None:
        """Discard the memory of some goals: their next target passes unfiltered."""
        for g in np.flatnonzero(goals).tolist():
            self._raw[g] = None

    def apply(self, table: Array, goals: Bools, time: float) -> None:
        """Filter the targets of some goals in a table (1, goals, 17), in place; ``time`` in seconds."""
        for g in np.flatnonzero(goals).tolist():
            frame = table[0, g, :TRANSFORM_WIDTH].reshape(4, 4)
            raw, before = frame.copy(), self._raw[g]
            dt = time - self._times[g]
            if before is None or dt <= 0.0:
                self._smooth[g], self._speeds[g] = raw, 0.0
            else:
                self._update(g, raw, before, dt)
            self._raw[g], self._times[g] = raw, time
            frame[:] = self._smooth[g]

    def _update(self, g: int, raw: Array, before: Array, dt: float) -> None:
        """Update the filter with a target of goal g, the time dt after the last target."""
        smooth, settings = self._smooth[g], self._settings
        found = (
            np.linalg.norm(raw[:3, 3] - before[:3, 3]) / self._reach,
            np.linalg.norm(log_turn(before[:3, :3].T @ raw[:3, :3])),
        )
        rate = _share(_SPEED_CUTOFF, dt)
        self._speeds[g] += rate * (np.array(found) / dt - self._speeds[g])
        shares = [_share(settings.cutoff + settings.beta * speed, dt) for speed in self._speeds[g].tolist()]
        shift = shares[0] * (raw[:3, 3] - smooth[:3, 3])
        turn = shares[1] * log_turn(smooth[:3, :3].T @ raw[:3, :3])
        near = settings.dead_band
        if np.linalg.norm(raw[:3, 3] - smooth[:3, 3]) > near * self._reach:
            smooth[:3, 3] += shift
        if np.linalg.norm(turn) / shares[1] > 0.5 * near:
            smooth[:3, :3] = smooth[:3, :3] @ exp_turn(turn)


def _share(cutoff: float, dt: float) -> float:
    """Return the smoothing factor of a first-order filter for the time step dt, seconds."""
    return 1.0 / (1.0 + 1.0 / (2.0 * math.pi * cutoff * dt))
