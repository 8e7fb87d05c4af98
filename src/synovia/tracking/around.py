"""Solve frames around a clip: each frame near its own pose in the clip, which is also the reference of a rest goal.

The start of a frame is its pose in the clip, changed as the frame before it was. So a frame that needs the same change
as the one before takes few steps, whatever the clip itself does in between.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import Watch, new_scratch
from synovia.ik.status import Status
from synovia.kernels.layout import BLOCK, BLOCK_Q, REST_Q, SCALAR, STATUS
from synovia.model.geometry import Array, quat_product
from synovia.model.pose import inside_limits
from synovia.problem import posture_of_packed
from synovia.problem.bends import SIZES

_CONJUGATE: Final = np.array([-1.0, -1.0, -1.0, 1.0])


class Around:
    """Solves frames of one problem around poses of a clip.

    Args:
        ik: The problem; its rest goals take each frame's pose in the clip as their reference.
    """

    def __init__(self, ik: CompiledProblem) -> None:
        """Find where the packed problem keeps the reference, and which joint values move."""
        self.ik = ik
        self._floats = ik.floats.copy()
        self._posture = posture_of_packed(ik.ints, self._floats)
        self._scratch = new_scratch(ik.scratch_size)
        variables = ik.reduced.variables
        scalar = variables[:, BLOCK] == SCALAR
        self._scalar, self._turn = np.flatnonzero(scalar), np.flatnonzero(~scalar)
        self._numbers = variables[scalar, BLOCK_Q].astype(np.int64)
        self._quats = variables[~scalar, BLOCK_Q].astype(np.int64)[:, None] + np.arange(4)
        self._limited = any(ik.skeleton.joints[row].limit is not None for row in ik.moving)
        self._followers = bool(len(ik.skeleton.tables.followers))
        bends = ik.bends
        self._bends = bends if bends is not None and len(bends.places) else None

    def postures(self, reference: Array) -> Array:
        """Return the tables of rest goals, (n, k, 5), with poses (n, nq) as their references."""
        out = np.repeat(self._posture[None], len(reference), axis=0)
        out[:, self._scalar, REST_Q] = reference[:, self._numbers]
        out[:, self._turn, REST_Q:] = reference[:, self._quats]
        return out

    def solve(
        self,
        reference: Array,
        table: Array,
        watch: Watch,
        before: tuple[Array, Array] | None = None,
        *,
        give_up: bool = False,
    ) -> Array | None:
        """Return rows of results of frames in order.

        Args:
            reference: Poses of the clip, (n, nq).
            table: Targets, (n, goals, 17).
            watch: When to stop.
            before: Pose of the clip and answer, (nq,) each, of the frame before the first one.
            give_up: Whether to return None at the first miss.
        """
        ik, rows = self.ik, self.ik.new_rows(len(table))
        postures = self.postures(reference)
        earlier = np.concatenate([reference[:1] if before is None else before[0][None], reference[:-1]])
        shifts = reference[:, self._numbers] - earlier[:, self._numbers]
        turns = _left_factors(reference[:, self._quats], earlier[:, self._quats])
        answer = reference[0] if before is None else before[1]
        ones = None if self._bends is None else np.ones((1, len(self._bends.places)))
        with watch.over(self._scratch):
            for k in range(len(table)):
                start = reference[k].copy()
                start[self._numbers] = answer[self._numbers] + shifts[k]
                start[self._quats] = (turns[k] @ answer[self._quats][:, :, None])[:, :, 0]
                if self._followers:
                    ik.skeleton.follow(start)
                first = start[None]
                if self._limited:
                    first = inside_limits(ik.skeleton, first)
                if self._bends is not None and ones is not None:
                    bent = self._bends.bent(first, SIZES[0], ones)
                    first = first if bent is None else bent
                self._posture[...] = postures[k]
                row = rows[k : k + 1]
                code = ik.call(ik.ints, self._floats, table[k : k + 1], first, row, self._scratch, False, 0)
                if code & 1:
                    if give_up:
                        return None
                    ik.classify(first, row, self._scratch, False)
                    if row[0, STATUS] == Status.REACHED:  # polishing reaches the goals, and forgets the clip
                        again = row.copy()
                        polished = np.ascontiguousarray(row[:, ik.places])
                        if (
                            not ik.call(
                                ik.ints, self._floats, table[k : k + 1], polished, again, self._scratch, False, 0
                            )
                            & 1
                        ):
                            row[:] = again
                answer = row[0, ik.places]
        return rows

    def missed(self, rows: Array) -> Array:
        """Return which rows of results miss a goal, (n,)."""
        return rows[:, STATUS] != Status.REACHED


def _left_factors(a: Array, b: Array) -> Array:
    """Return the matrices (..., 4, 4) of the products of a b⁻¹ with quaternions from the right; a and b (..., 4)."""
    x, y, z, w = np.moveaxis(quat_product(a, b * _CONJUGATE), -1, 0)
    rows = [[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
