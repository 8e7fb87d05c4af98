"""Standing feet of a body, tick by tick: corrections that keep points in place, and angles that raise soles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from synovia.model.geometry import Array, Bools
from synovia.model.tables import Ints

_LEVELING: Final = 0.15  # seconds: time constant with which a standing foot returns to its uncorrected height
_ROLL: Final = 25.0  # 1/s: rate of the change from standing on the ankle to standing on the toes
_SWING: Final = 25.0  # 1/s: rate at which the correction of a released foot fades
_NONE: Final = 1e-5  # leg lengths: smaller corrections count as zero


class Corrections:
    """Corrections that keep the points of standing feet in place.

    While a point of a foot stands in the source, the same point of the body keeps its place on the ground. A point that
    begins to stand keeps its current position. In all other changes of state, the correction moves to its new goal with
    critical damping, so that a foot that is released does not jump.

    Args:
        up: Upward direction, (3,).
        leg: Length of a leg.
        mates: Index of the other point of the same foot for each point; None without one.
        rate: Ticks per second.

    Attributes:
        places: Where the points should be, (points, 3).
        active: Whether a correction is above rounding.
    """

    def __init__(self, up: Array, leg: float, mates: Sequence[int | None], rate: float) -> None:
        """Begin without corrections."""
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
            stands: Mask of the points that stand, (points,).
        """
        self.active = bool(
            self._plant(own, stands.astype(np.float64), self._mates, self._settings, self._state, self.places)
        )


def raising_angles(joint: int, rows: Ints, points: Array, numbers: Array) -> Callable[[Array, Array], None]:
    """Return a function that computes how far a joint must raise toes and heel, and how far it can turn towards level.

    Its arguments are world frames of the body, (T, n, 12), and the angles, (T, 4), which it writes.

    Args:
        joint: Row of the joint.
        rows: Row of the joint that carries each point of the sole, (k,).
        points: The points in the frames of these joints, (k, 3).
        numbers: See ``kernels.tree.soles``, (4, 3).
    """
    from synovia.kernels.tree.soles import sole_needs

    def write(frames: Array, out: Array) -> None:
        sole_needs(frames, joint, rows, points, numbers, out)

    return write
