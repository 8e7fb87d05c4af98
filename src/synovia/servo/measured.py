"""Measurements of the robot: its offset from the commands, and the correction of the commands by this offset.

A command continues the commands before it, never a measurement: so noise and delay of a measurement cannot break a
limit. Goals, however, are meant for the real robot. If it rests at an offset from its commands, because it sags or is
badly calibrated, the commanded joint values are corrected by this offset. The offset is learned slowly, and only while
the commands stand still, since a moving robot is behind its commands anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np

from synovia.errors import InputError
from synovia.kernels.layout import AXIS_VELOCITY, TOP_SPEED
from synovia.model import Pose
from synovia.model.geometry import Array
from synovia.model.loops.closing import closed_reading
from synovia.model.pose import as_values
from synovia.model.tables import Ints
from synovia.servo.limits import Axes

WINDOW: Final = 0.2  # default of ``following_error``, radians or length units
_SECONDS: Final = 0.5  # time constant of the filter that learns the difference
_SHARE: Final = 0.5  # fraction of the window: largest correction, so that a blocked robot is not pushed without end
_STILL: Final = 0.01  # fraction of the top speed: slower commands count as standing still
_DEAD: Final = 2e-4  # radians, length scales: smaller changes of the offset are noise


class Feedback:
    """The difference between measured and commanded joint values.

    Args:
        axes: The axes of the body.
        reach: Length scale of the problem, length units.
        window: Largest offset of a measurement, as ``following_error`` of ``Servo``.
        winding: Indices in q of hinges whose values may differ by multiples of 2π.

    Raises:
        InputError: If the window cannot be used.
        UnknownNameError: If it names a joint that does not exist.

    Attributes:
        far: A sentence about a joint that is too far from its command, or "".
        offset: The offset that commands compensate, by axis; None for no correction.
        beside: A sentence about a joint whose offset is corrected only in part, or "".
    """

    def __init__(self, axes: Axes, reach: float, window: Any, *, winding: Ints) -> None:
        """Find the window of each axis."""
        self._skeleton, self._axes = axes.skeleton, axes
        rows = axes.pairs("following_error", window)
        rows = np.where(np.isnan(rows), axes.pairs("following_error", WINDOW), rows)
        lengths = axes.lengths.astype(np.int64)
        self._window = rows[axes.joints, lengths]
        self._group = 2 * axes.joints.astype(np.int64) + lengths  # axes of a group share one window for their norm
        self._dead = np.where(axes.lengths, _DEAD * reach, _DEAD)
        self._winding = winding
        self.reset()

    def reset(self) -> None:
        """Discard all measurements."""
        self.far = self.beside = ""
        self.offset: Array | None = None
        self._smooth, self._left = np.zeros((2, len(self._window)))
        self._time: float | None = None

    def of(self, given: Any, q: Array, as_pose: Callable[[Any], Pose]) -> Array:
        """Return the measured joint values (nq,), with expected values for joints that are not given.

        Args:
            given: The measurement that the user passed.
            q: Commanded joint values, (nq,).
            as_pose: Checks joint values.

        Raises:
            InputError: If a value cannot be used.
            UnknownNameError: If a joint does not exist.
        """
        if isinstance(given, str):
            raise InputError("measured", value=given, expected="a pose, joint values, or joint values by joint")
        if self._skeleton.loops and not isinstance(given, Pose):
            return closed_reading(self._skeleton, given, self.body(q), "measured")
        if isinstance(given, Pose | Mapping):
            found = as_pose(given)
        else:
            found = as_pose(as_values(self._skeleton, given, "measured"))
        if not isinstance(given, Mapping):
            return found.q.copy()
        out = self.body(q).copy()
        for row in self._skeleton.by_row(cast("Mapping[Any, Any]", given), "measured"):
            where = self._skeleton.q_slice(row)
            out[where] = found.q[where]
        return self._skeleton.follow(out)

    def read(self, q: Array, measured: Array, time: float) -> None:
        """Take a measurement (nq,) into account, for commanded joint values q (nq,) at a time, seconds."""
        at = self._winding
        measured[at] -= 2.0 * math.pi * np.round((measured[at] - q[at]) / (2.0 * math.pi))
        apart = self._axes.way(q, measured)
        sizes = np.sqrt(np.bincount(self._group, weights=apart**2))[self._group]
        worst = int(np.argmax(sizes / self._window)) if len(sizes) else 0
        before, self._time = self._time, time
        if len(sizes) and sizes[worst] > self._window[worst]:
            self.far = self._sentence(worst, q, measured, float(sizes[worst]))
            return
        self.far = ""
        table = self._axes.table
        if (np.abs(table[:, AXIS_VELOCITY]) > _STILL * table[:, TOP_SPEED]).any():
            return
        dt = 0.0 if before is None else time - before
        most = _SHARE * self._window
        factor = np.minimum(1.0, most / np.maximum(sizes, 1e-300))
        rate = 1.0 - math.exp(-dt / _SECONDS)
        self._smooth += rate * (factor * apart - self._smooth)
        self._left += rate * ((1.0 - factor) * apart - self._left)
        old = np.zeros(len(most)) if self.offset is None else self.offset
        new = np.abs(self._smooth - old) > self._dead
        if new.any():
            self.offset = np.where(new, self._smooth, old)
        self.beside = self._sentence_of_rest()

    @property
    def found(self) -> Array | None:
        """The whole offset of the robot from its commands, by axis, with the part beyond the correction."""
        return self.offset if not self.beside or self.offset is None else self.offset + self._left

    def _sentence_of_rest(self) -> str:
        """Return a sentence about the joint that is corrected least, or "" if all are corrected in full."""
        left = np.where(np.abs(self._left) > self._dead, np.abs(self._left), 0.0)
        if not left.any():
            return ""
        worst = int(np.argmax(left / self._window))
        unit = "length units" if self._axes.lengths[worst] else "rad"
        apart, most = abs(float(self._smooth[worst] + self._left[worst])), _SHARE * float(self._window[worst])
        return (
            f"The robot is {apart:.3g} {unit} away from its command at joint"
            f" {self._skeleton.joint_names[int(self._axes.joints[worst])]!r}; {most:.3g} of that is corrected, half of"
            " the following error."
        )

    def _sentence(self, axis: int, q: Array, measured: Array, apart: float) -> str:
        """Return a sentence about the joint of an axis, which is too far from its command."""
        skeleton, row = self._skeleton, int(self._axes.joints[axis])
        where = skeleton.q_slice(row)
        unit = "length units" if self._axes.lengths[axis] else "rad"
        values = [", ".join(f"{value:.4g}" for value in one[where].tolist()) for one in (measured, q)]
        if where.stop - where.start > 1:
            values = [f"({value})" for value in values]
        return (
            f"Holding: joint {skeleton.joint_names[row]!r} is measured at {values[0]} and commanded {values[1]};"
            f" that is {apart:.3g} {unit} apart, more than the following error of {self._window[axis]:.3g}. The next"
            " target after a measurement within it goes on."
        )

    def body(self, q: Array) -> Array:
        """Return the expected joint values of the robot, (nq,), for commanded joint values."""
        return q if self.offset is None else self._axes.shifted(q, self.offset)

    def command(self, q: Array) -> Array:
        """Return the joint values to command, (nq,), so that the robot is expected at q."""
        return q if self.offset is None else self._axes.shifted(q, -self.offset)
