"""Steps between joint values: differences of scalars, and rotation vectors of rotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.kernels.layout import BLOCK, BLOCK_Q, TURN
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, Bools, rotation_between, same_side, times_exp

Ints = NDArray[np.int64]
_TURN: Final = 2.0 * np.pi
_FAR: Final = 0.5 * np.pi  # radians: rotations that stay below this have a unique shortest path without jumps
_SMALL: Final = 1e-9  # radians: smaller rotations have no axis


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """Indices of scalars and rotations in joint values.

    A step has the differences of the m scalars first, then the rotation vector of each of the k rotations, in the frame
    of the joint after its motion: q becomes q · exp(w).

    Args:
        numbers: Indices in q of scalars, (m,), which are not part of a quaternion; mimic joints are included.
        turns: Indices in q of each quaternion, (k, 4).
        endless: Mask of scalars that are angles of hinges without limits, (m,), whose whole turns are ignored.
    """

    numbers: Ints
    turns: Ints
    endless: Bools

    @classmethod
    def of(cls, skeleton: Skeleton) -> Chart:
        """Return the chart of a skeleton."""
        variables = skeleton.tables.variables
        first = variables[variables[:, BLOCK] == TURN, BLOCK_Q].astype(np.int64)
        turns = first[:, None] + np.arange(4)
        numbers = np.setdiff1d(np.arange(skeleton.nq), turns.ravel())
        lower, upper = skeleton.limits
        hinges = [
            skeleton.q_slice(row).start
            for row, joint in enumerate(skeleton.joints)
            if joint.kind is Kind.HINGE and joint.mimic is None
        ]
        return cls(numbers, turns, np.isin(numbers, hinges) & np.isinf(lower[numbers]) & np.isinf(upper[numbers]))

    def between(self, a: Array, b: Array) -> Array:
        """Return the shortest steps (T, m + 3 k) from joint values a to b, (T, nq) each."""
        turned = rotation_between(a[..., self.turns], b[..., self.turns])
        moved = b[..., self.numbers] - a[..., self.numbers]
        moved[..., self.endless] -= _TURN * np.round(moved[..., self.endless] / _TURN)
        return np.concatenate([moved, turned.reshape(*turned.shape[:-2], -1)], axis=-1)

    def course(self, a: Array, b: Array) -> Array:
        """Return the steps (T, m + 3 k) from joint values a to b in consecutive frames, (T, nq) each, without jumps.

        If the shortest path of a rotation or of an endless hinge changes its side, the step continues on the previous
        side, beyond a half turn. In the frame with the smallest step, the path is the shortest one.
        """
        out = self.between(a, b)
        size = len(self.numbers)
        if len(out) < 2:
            return out
        for column in np.flatnonzero(self.endless):
            nearest = int(np.argmin(np.abs(out[:, column])))
            values = np.unwrap(out[:, column])
            out[:, column] = values - _TURN * np.round((values[nearest] - out[nearest, column]) / _TURN)
        ways = out[:, size:].reshape(len(out), -1, 3)  # a view of ``out``
        for k in np.flatnonzero(np.linalg.norm(ways, axis=-1).max(axis=0, initial=0.0) > _FAR):
            nearest = int(np.argmin(np.linalg.norm(ways[:, k], axis=-1)))
            for frames in (range(nearest + 1, len(out)), range(nearest - 1, -1, -1)):
                before = ways[nearest, k]
                for frame in frames:
                    before = ways[frame, k] = _near(ways[frame, k], before)
        return out

    def stepped(self, q: Array, steps: Array) -> Array:
        """Return joint values (T, nq) after steps (T, m + 3 k)."""
        out = np.array(np.broadcast_to(q, (*steps.shape[:-1], q.shape[-1])))
        size = len(self.numbers)
        out[..., self.numbers] += steps[..., :size]
        turns = steps[..., size:].reshape(*steps.shape[:-1], -1, 3)
        out[..., self.turns] = times_exp(out[..., self.turns], turns)
        return out

    def unwound(self, q: Array) -> Array:
        """Return the scalars (T, m) of joint values (T, nq), with endless hinges unwrapped over time."""
        out = q[:, self.numbers]
        out[:, self.endless] = np.unwrap(out[:, self.endless], axis=0)
        return out

    def unflipped(self, q: Array) -> Array:
        """Return joint values (T, nq) in which the sign of each quaternion is nearest to the previous frame."""
        out = q.copy()
        for columns in self.turns:
            out[:, columns] = same_side(q[:, columns])
        return out

    def signed_like(self, q: Array, near: Array) -> Array:
        """Return joint values (T, nq) with the quaternion signs of given joint values, (nq,), in the first frame."""
        out = q.copy()
        for columns in self.turns:
            if len(q) and q[0, columns] @ near[columns] < 0.0:
                out[:, columns] *= -1.0
        return out


def _near(way: Array, other: Array) -> Array:
    """Return the rotation vector (3,) nearest to ``other`` that gives the same rotation as ``way``."""
    angle = float(np.linalg.norm(way))
    axis = way / angle if angle > _SMALL else other / max(float(np.linalg.norm(other)), _SMALL)
    return (angle + _TURN * round((float(other @ axis) - angle) / _TURN)) * axis


def smoothstep(x: Array) -> Array:
    """Return the polynomial 3 x² - 2 x³, which goes from 0 to 1 with level ends."""
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)
