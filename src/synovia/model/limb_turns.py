"""Orientations that a pose of one body gives to the parts of another one, pose by pose (``kernels.tree.swing``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from synovia.model.geometry import Array
from synovia.model.tables import Ints


class SwingLimb(NamedTuple):
    """A limb of hinges whose parts are turned so that the hinge between them is normal to the plane of both bones.

    Args:
        parts: Places of upper and lower part in the list of parts, and of the foot if the leg is turned as the foot is.
        points: Rows of the source where the two bones begin, the row that carries the end, and that end in its frame;
            None for a limb that follows the orientations of its parts.
        numbers: Numbers for the kernel, by their names there.
    """

    parts: tuple[int, ...]
    points: tuple[int, int, int, Array] | None
    numbers: Mapping[str, Array]


class LimbTurns:
    """The orientations of parts of a body that follows another one.

    Args:
        rows: Row of each part in the source.
        ends: The part from which each path of joints takes its orientation.
        own: From the orientations of the source to those of the parts, then the rotation across, then that from a part
            to the end of each path, (parts + 1 + paths, 9).
        limbs: Limbs of hinges.
    """

    def __init__(self, rows: Sequence[int], ends: Ints, own: Array, limbs: Sequence[SwingLimb]) -> None:
        """Fill the tables of the kernel."""
        from synovia.kernels.tree import swing

        self._rows, self._own = np.concatenate([rows, ends]).astype(np.int32), own
        self._limbs = np.full((len(limbs), swing.LIMB_INTS), -1, np.int32)
        self._numbers = np.zeros((len(limbs), swing.LIMB_WIDTH))
        self._state = np.zeros((len(limbs), swing.STATE_WIDTH))
        self._wanted, self._ends = np.empty((len(rows), 9)), np.empty((1, len(ends), 9))
        for limb, ints, numbers in zip(limbs, self._limbs, self._numbers, strict=True):
            ints[[swing.UPPER_PART, swing.LOWER_PART, swing.FOOT_PART][: len(limb.parts)]] = limb.parts
            given = dict(limb.numbers)
            if limb.points is not None:
                ints[[swing.START_ROW, swing.MIDDLE_ROW, swing.END_ROW]] = limb.points[:3]
                given["END_POINT"] = limb.points[3]
            for name, values in given.items():
                at = getattr(swing, name)
                numbers[at : at + values.size] = values.ravel()

    def reset(self) -> None:
        """Forget the poses before."""
        self._state[:] = 0.0

    def turn(self, frames: Array) -> Array:
        """Return the orientations of the ends of the paths, (1, paths, 9), z-form, for frames (n, 12) of the source."""
        from synovia.kernels.tree.swing import swing_turns

        swing_turns(
            frames, self._rows, self._own, self._limbs, self._numbers, self._state, self._wanted, self._ends
        )  # fmt: skip
        return self._ends
