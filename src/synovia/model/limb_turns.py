"""Orientations of body parts that follow the poses of another body, pose by pose (``kernels.tree.swing``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from synovia.model.geometry import Array
from synovia.model.tables import Ints


class SwingLimb(NamedTuple):
    """A limb whose parts are rotated so that the hinge between them is normal to the plane of both bones.

    Args:
        parts: Indices of upper and lower part in the list of parts, and of the foot if the leg rotates with the foot.
        points: Rows of the source where the two bones begin, the row that carries the end, and the end in its frame;
            None for a limb that follows the orientations of its parts.
        numbers: Parameters of the kernel, by name.
    """

    parts: tuple[int, ...]
    points: tuple[int, int, int, Array] | None
    numbers: Mapping[str, Array]


class Spread:
    """Shares of the rotations between pairs of joints of a body, for ``kernels.tree.spread``.

    Args:
        rows: The earlier joint of each pair, then the later joint of each pair, (2 k,).
        numbers: Parameters of the kernel, (k, 13).
    """

    def __init__(self, rows: Sequence[int], numbers: Array) -> None:
        """Store the tables of the kernel."""
        self._rows, self._numbers = np.array(rows, np.int32), numbers

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self._numbers)

    def turn(self, frames: Array, out: Array) -> None:
        """Write the rotations of the frames out (T, k, 12), from world frames (T, n, 12) of the body."""
        from synovia.kernels.tree.spread import spread_turns

        spread_turns(frames.take(self._rows, 1), self._numbers, out)


class LimbTurns:
    """The orientations of parts of a body that follows another body, the source.

    Args:
        rows: Row of each part in the source; rows after the last source row are those of ``spread``.
        ends: Index of the part whose orientation each path of joints gets.
        own: Rotations from the source to the parts, then the rotation across, then the rotations from a part to the end
            of each path, (parts + 1 + paths, 9).
        limbs: Limbs of hinges.
        joints: Number of joints of the source.
        spread: Rotations between joints of the source that are shared by some parts; None without such parts.
    """

    def __init__(
        self,
        rows: Sequence[int],
        ends: Ints,
        own: Array,
        limbs: Sequence[SwingLimb],
        joints: int,
        spread: Spread | None = None,
    ) -> None:
        """Fill the tables of the kernel."""
        from synovia.kernels.tree import swing

        self._spread = spread
        count = 0 if spread is None else joints + len(spread)
        self._frames = np.zeros((count, 12))  # frames of the source, then those of ``spread``
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
        """Discard the previous poses."""
        self._state[:] = 0.0

    def turn(self, frames: Array) -> Array:
        """Return the orientations of the ends of the paths, (1, paths, 9), z-form, for frames (n, 12) of the source."""
        from synovia.kernels.tree.swing import swing_turns

        if self._spread is not None:
            self._frames[: len(frames)] = frames
            self._spread.turn(frames[None], self._frames[None, len(frames) :])
            frames = self._frames
        swing_turns(
            frames, self._rows, self._own, self._limbs, self._numbers, self._state, self._wanted, self._ends
        )  # fmt: skip
        return self._ends
