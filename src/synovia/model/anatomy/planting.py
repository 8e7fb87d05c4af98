"""Planted feet of a live body: corrections that keep points in place, and angles that raise soles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from synovia.model.geometry import Array, Bools
from synovia.model.tables import Ints

_LEVELING: Final = 0.15  # seconds: time constant with which a planted foot returns to its uncorrected height
_ROLL: Final = 25.0  # 1/s: rate at which a foot rolls from the ankle to the toes
_SWING: Final = 25.0  # 1/s: rate at which the correction of a released foot fades
_NONE: Final = 1e-5  # leg lengths: smaller corrections count as zero


class Corrections:
    """Corrections that keep the points of planted feet in place.

    While a point of the source's foot is planted, the same point of the body keeps its place on the ground. A point
    that becomes planted keeps its current position. In all other changes, the correction moves to its new value with
    critical damping, so that a released foot does not jump.

    Args:
        up: Upward direction, (3,).
        leg: Length of a leg, length units.
        mates: For each point, the index of the other point of the same foot; None without one.
        rate: Ticks per second.

    Attributes:
        places: Target positions of the points, (points, 3).
        active: Whether any correction is larger than rounding errors.
    """

    def __init__(self, up: Array, leg: float, mates: Sequence[int | None], rate: float) -> None:
        """Start without corrections."""
        from synovia.kernels.pursuit import feet

        h, n = 1.0 / rate, len(mates)
        self._plant = feet.plant_points
        self._mates = np.array([-1 if mate is None else mate for mate in mates], np.int32)
        leveling = 1.0 - float(np.exp(-h / _LEVELING))
        self._settings = np.array([h, leveling, _NONE * leg, _SWING, _ROLL, *up])
        self._state, self.places = np.empty((n, feet.PLANT_STATE)), np.zeros((n, 3))
        self._start = np.zeros(feet.PLANT_STATE)
        self._start[feet.PACE] = _SWING
        self.reset()

    def reset(self) -> None:
        """Discard all corrections."""
        self._state[:], self.places[:], self.active = self._start, 0.0, False

    def apply(self, own: Array, stands: Bools) -> None:
        """Advance by one tick, and update ``places``.

        Args:
            own: Positions of the points without corrections, (points, 3).
            stands: Mask of the planted points, (points,).
        """
        self.active = bool(
            self._plant(own, stands.astype(np.float64), self._mates, self._settings, self._state, self.places)
        )


def raising_angles(joint: int, rows: Ints, points: Array, numbers: Array) -> Callable[[Array, Array], None]:
    """Return a function that finds how far a joint of a foot must turn, so that toes and heel are not below the floor.

    It takes world frames of the body, (T, n, 12), and writes to its second argument, (T, 4), radians: the angles by
    which toes and heel must rise, then the angles by which toes and heel can rise until the foot is horizontal.

    Args:
        joint: Row of the joint.
        rows: Row of the joint that carries each point of the sole, (k,).
        points: The points in the frames of these joints, (k, 3).
        numbers: (4, 3): the joint's axis and the direction ahead, both in its frame; the upward direction of the world;
            bounds, see ``kernels.tree.soles``.
    """
    from synovia.kernels.tree.soles import sole_needs

    def write(frames: Array, out: Array) -> None:
        sole_needs(frames, joint, rows, points, numbers, out)

    return write
