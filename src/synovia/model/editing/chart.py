"""Steps between joint values: differences of numbers, and rotation vectors of rotations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synovia.kernels.layout import BLOCK, BLOCK_Q, TURN
from synovia.model import Skeleton
from synovia.model.geometry import Array, rotation_between, same_side, times_exp

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """Where numbers and rotations stand in joint values.

    A step has the differences of the m numbers first, then the rotation vector of each of the k rotations, in the frame
    of the joint after its motion: q becomes q · exp(w).

    Args:
        numbers: Elements of q that are not part of a quaternion, (m,); values of mimic joints are among them.
        turns: Elements of q of each quaternion, (k, 4).
    """

    numbers: Ints
    turns: Ints

    @classmethod
    def of(cls, skeleton: Skeleton) -> Chart:
        """Return the chart of a skeleton."""
        variables = skeleton.tables.variables
        first = variables[variables[:, BLOCK] == TURN, BLOCK_Q].astype(np.int64)
        turns = first[:, None] + np.arange(4)
        return cls(np.setdiff1d(np.arange(skeleton.nq), turns.ravel()), turns)

    def between(self, a: Array, b: Array) -> Array:
        """Return the steps (T, m + 3 k) from joint values a to b, (T, nq) each, by the shorter way."""
        turned = rotation_between(a[..., self.turns], b[..., self.turns])
        return np.concatenate([b[..., self.numbers] - a[..., self.numbers], turned.reshape(*turned.shape[:-2], -1)], -1)

    def stepped(self, q: Array, steps: Array) -> Array:
        """Return joint values (T, nq) after steps (T, m + 3 k)."""
        out = np.array(np.broadcast_to(q, (*steps.shape[:-1], q.shape[-1])))
        size = len(self.numbers)
        out[..., self.numbers] += steps[..., :size]
        turns = steps[..., size:].reshape(*steps.shape[:-1], -1, 3)
        out[..., self.turns] = times_exp(out[..., self.turns], turns)
        return out

    def unflipped(self, q: Array) -> Array:
        """Return joint values (T, nq) whose quaternions have the sign nearest to that of the frame before."""
        out = q.copy()
        for columns in self.turns:
            out[:, columns] = same_side(q[:, columns])
        return out


def smoothstep(x: Array) -> Array:
    """Return the polynomial 3 x² - 2 x³, which goes from 0 to 1 with level ends."""
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)
