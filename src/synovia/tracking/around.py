"""Solve frames around a clip: each frame near its own pose in the clip, which is also the reference of a rest goal.

The start of a frame is its pose in the clip, changed as the frame before it was. So a frame that needs the same change
as the one before takes few steps, whatever the clip itself does in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.ik.compiled import CompiledProblem
from synovia.ik.frame import FrameSolver
from synovia.ik.interrupts import Watch
from synovia.ik.status import reached
from synovia.model.geometry import Array, quat_product
from synovia.model.pose import clamped
from synovia.problem.bends import SIZES

Bools = NDArray[np.bool_]
_CONJUGATE: Final = np.array([-1.0, -1.0, -1.0, 1.0])


class Around:
    """Solves frames of one problem around poses of a clip.

    Args:
        ik: The problem; its rest goals take each frame's pose in the clip as their reference.
    """

    def __init__(self, ik: CompiledProblem) -> None:
        """Find which joint values move."""
        self.ik = ik
        self._frame = FrameSolver(ik)
        self._numbers, self._quats = ik.reduced.places
        self._limited = any(ik.skeleton.joints[row].limit is not None for row in ik.moving)
        self._followers = bool(len(ik.skeleton.tables.followers))
        bends = ik.bends
        self._bends = bends if bends is not None and len(bends.places) else None

    def solve(
        self,
        reference: Array,
        table: Array,
        watch: Watch,
        before: tuple[Array, Array] | None = None,
        *,
        must: Bools | None = None,
        frame_done: Callable[[], object] | None = None,
    ) -> Array | None:
        """Return rows of results of frames in order.

        Args:
            reference: Poses of the clip, (n, nq).
            table: Targets, (n, goals, 17).
            watch: When to stop.
            before: Pose of the clip and answer, (nq,) each, of the frame before the first one.
            must: Frames that must reach their goals, (n,): a miss of one of them is improved as far as possible, and if
                it remains, return None; other misses are not improved. None: each miss is improved.
            frame_done: Called after each frame.
        """
        ik, rows = self.ik, self.ik.new_rows(len(table))
        postures, numbers, quats = self._frame.postures(reference), self._numbers, self._quats
        earlier = np.concatenate([reference[:1] if before is None else before[0][None], reference[:-1]])
        shifts = reference[:, numbers] - earlier[:, numbers]
        turns = _left_factors(reference[:, quats], earlier[:, quats])
        answer = reference[0] if before is None else before[1]
        mechanism = ik.skeleton.mechanism
        if mechanism is not None:
            answer = mechanism.shut_clip(answer[None])[0]
        ones = None if self._bends is None else np.ones((1, len(self._bends.places)))
        with self._frame.until(watch):
            for k in range(len(table)):
                start = reference[k].copy()
                start[numbers] = answer[numbers] + shifts[k]
                start[quats] = (turns[k] @ answer[quats][:, :, None])[:, :, 0]
                if self._followers:
                    ik.skeleton.follow(start)
                first = start[None]
                if self._limited:
                    first = clamped(ik.skeleton, first)
                if self._bends is not None and ones is not None:
                    bent = self._bends.bent(first, SIZES[0], ones)
                    first = first if bent is None else bent
                if mechanism is not None:
                    first = mechanism.shut_clip(first, beside=answer[None])
                row, needed = rows[k : k + 1], must is None or must[k]
                recover = "polish" if needed else "none"
                self._frame.solve(table[k : k + 1], first, row, posture=postures[k], recover=recover)
                if must is not None and needed and not reached(row)[0]:
                    return None
                answer = row[0, ik.places]
                if frame_done is not None:
                    frame_done()
        return rows

    def missed(self, rows: Array) -> Array:
        """Return which rows of results miss a goal, (n,)."""
        return np.logical_not(reached(rows))


def _left_factors(a: Array, b: Array) -> Array:
    """Return the matrices (..., 4, 4) of the products of a b⁻¹ with quaternions from the right; a and b (..., 4)."""
    x, y, z, w = np.moveaxis(quat_product(a, b * _CONJUGATE), -1, 0)
    rows = [[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
