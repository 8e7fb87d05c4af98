"""Compute joint values that orient the ends of joint paths, frame by frame (``kernels.tree.orient``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from synovia.kernels.layout import BLOCK, BLOCK_Q, FIRST_Q, LOWER, RATIO, SCALAR, TURN, UPPER
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array
from synovia.model.tables import Ints

_TURNS: Final = 0.05  # smallest rotation of a path's end per radian of a leader, radians


class PathTurns:
    """Rotates joints so that paths end in given orientations, as far as limits permit. Other joints stay at rest.

    Args:
        skeleton: The skeleton.
        paths: Rows of the joints of each path, from the root on. No joint is in two paths.
        rest: World rotations of all joints at rest, (n, 3, 3).
    """

    def __init__(self, skeleton: Skeleton, paths: Sequence[Sequence[int]], rest: Array) -> None:
        """Fill the tables of the kernel."""
        t = skeleton.tables
        ends = np.cumsum([0, *map(len, paths)])
        which = np.full(len(skeleton), -1, np.int32)
        ints, couple, limits, gain = _coupled(skeleton, paths, rest)
        hinges: list[int] = []
        owners: list[int] = t.owner.tolist()
        for k, (owner, (block, at, _)) in enumerate(zip(owners, t.variables.tolist(), strict=True)):
            is_hinge = skeleton.joints[owner].kind is Kind.HINGE and gain[at] != 0.0
            if block == TURN or is_hinge:
                which[owner] = k
            if is_hinge:
                hinges.append(at)
        gain[gain == 0.0] = 1.0
        self._skeleton, self._gain, self._hinges = skeleton, gain, hinges
        stays = np.array(skeleton.rest_pose().frames)[:, :9].reshape(-1, 3, 3) @ np.swapaxes(
            t.unfold.reshape(-1, 3, 3), 1, 2
        )
        # kernels take writable arrays
        self._tables = (
            ints, t.fixed.copy(), couple, t.variables.copy(), limits, which,
            np.array([row for path in paths for row in path], np.int32),
            np.stack([ends[:-1], ends[1:]], axis=1).astype(np.int32),
        )  # fmt: skip
        self._scratch = np.ascontiguousarray(stays.reshape(-1, 9)), np.empty((len(skeleton), 3))

    def start(self, count: int = 1) -> Array:
        """Return joint values (count, nq) at rest, in the form for ``turn``."""
        return np.tile(self._skeleton.rest_q, (count, 1)) * self._gain

    def turn(self, wanted: Array, q: Array) -> None:
        """Change joint values q (T, nq) so that paths end in orientations (T, paths, 9); hinges start from row 0."""
        from synovia.kernels.tree.orient import orient

        orient(*self._tables, wanted, q, *self._scratch)

    def go_on(self, q: Array, before: Array) -> None:
        """Let hinges of q (nq,) start from previous joint values, in the form for ``turn``; change q in place."""
        q[self._hinges] = before[self._hinges]

    def values(self, q: Array) -> Array:
        """Convert joint values from the form for ``turn`` to joint values (T, nq) of the body."""
        return self._skeleton.follow(q / self._gain)


def _coupled(skeleton: Skeleton, paths: Sequence[Sequence[int]], rest: Array) -> tuple[Ints, Array, Array, Array]:
    """Return the tables of joints, couplings and limits with mimic joints coupled to leaders, and gains (nq,).

    A leader rotates the end of its path about its own axis and the axes of its followers in the path. The kernel
    knows only the leader's axis, so its variable is the value times a gain: the rotation of the end about that axis at
    rest, per unit. A gain of 0 means that the leader does not rotate the end.
    """
    t = skeleton.tables
    ints, couple, limits, gain = t.ints.copy(), t.couple.copy(), t.limits.copy(), np.ones(skeleton.nq)
    row_of = {skeleton.q_slice(row).start: row for row, joint in enumerate(skeleton.joints) if joint.kind.q_size == 1}
    path_of = {row: path for path in paths for row in path}
    axis_of = {row: rest[row] @ skeleton.joints[row].axis for row in row_of.values()}
    for (at, of), coupling in zip(t.followers.tolist(), t.coupling, strict=True):
        row, leader = row_of[at], row_of[of]
        ints[row, FIRST_Q], couple[row] = of, coupling
        hinges = all(skeleton.joints[one].kind is Kind.HINGE for one in (row, leader))
        if hinges and row in path_of.get(leader, ()):
            gain[of] += coupling[RATIO] * float(axis_of[row] @ axis_of[leader])
    gain[np.abs(gain) < _TURNS] = 0.0
    scale = np.where(gain == 0.0, 1.0, gain)
    rows = list(row_of.values())
    couple[rows, RATIO] /= scale[ints[rows, FIRST_Q]]
    ends = limits[:, [LOWER, UPPER]] * scale[t.variables[:, BLOCK_Q], None]
    scalar = t.variables[:, BLOCK] == SCALAR
    limits[np.ix_(scalar, [LOWER, UPPER])] = np.sort(ends[scalar], axis=1)
    return ints, couple, limits, gain
