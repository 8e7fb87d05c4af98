"""Joint values and orientations of bodies that follow others (``kernels.tree.orient`` and ``kernels.tree.swing``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from synovia.kernels.layout import BLOCK, BLOCK_Q, FIRST_Q, LOWER, RATIO, SCALAR, TURN, UPPER
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array
from synovia.model.tables import Ints

_TURNS: Final = 0.05  # radians per radian of a leader: smallest rotation of a path's end that counts


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
        self._start = (skeleton.rest_q * gain)[None]
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
        return np.repeat(self._start, count, axis=0)

    def turn(self, wanted: Array, q: Array) -> None:
        """Change joint values q (T, nq) so that paths end in orientations (T, paths, 9); hinges start from row 0."""
        from synovia.kernels.tree.orient import orient

        orient(*self._tables, np.ascontiguousarray(wanted), q, *self._scratch)

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


class SwingLimb(NamedTuple):
    """A limb whose parts are rotated so that the hinge between them is normal to the plane of both bones.

    Args:
        parts: Indices of upper and lower part in the list of parts, and of the foot if the leg rotates with the foot.
        points: Row of the source where the upper bone begins, row where the lower bone begins, row that carries the
            lower bone's end, and this end in the frame of that row; None for a limb that follows the orientations of
            its parts.
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
        """Write the rotations into frames ``out``, (T, k, 12), for world frames of the body, (T, n, 12)."""
        from synovia.kernels.tree.spread import spread_turns

        spread_turns(frames.take(self._rows, 1), self._numbers, out)


class LimbTurns:
    """The orientations of parts of a body that follows another body, the source.

    Args:
        rows: Row of each part in the source; rows after the last source row are those of ``spread``.
        ends: Index of the part whose orientation each path of joints gets.
        own: Rotations M of each part, then A (both as in ``kernels.tree.swing``), then the rotation from a part to the
            end of each path, (parts + 1 + paths, 9).
        limbs: Limbs of hinges.
        spread: Shares of rotations between joints of the source, which some parts get; None without such parts.
    """

    def __init__(
        self,
        rows: Sequence[int],
        ends: Ints,
        own: Array,
        limbs: Sequence[SwingLimb],
        spread: Spread | None = None,
    ) -> None:
        """Fill the tables of the kernel."""
        from synovia.kernels.tree import swing

        self._spread, self._parts, self._paths = spread, len(rows), len(ends)
        self._own = np.column_stack([own, np.concatenate([rows, [-1], ends])])
        self._limbs = np.full((len(limbs), swing.LIMB_INTS), -1, np.int32)
        self._numbers = np.zeros((len(limbs), swing.LIMB_WIDTH))
        self._state = self._numbers[:, swing.STATE :]
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

    def turn(self, frames: Array) -> tuple[Array, Array]:
        """Return the orientations of the parts and of the ends of the paths in consecutive poses.

        Args:
            frames: World frames of the source, (T, n, 12).

        Returns:
            World orientations of the parts, (T, parts, 9), and those of the ends, z-form, (T, paths, 9).
        """
        return self._turned(frames)[:2]

    def bends(self, frames: Array) -> Array:
        """Return the mean sine of the bend of each limb, (limbs,), below 0 for bends to the other side of its hinge.

        Args:
            frames: As in ``turn``; the previous poses are not discarded.
        """
        from synovia.kernels.tree import swing

        state = self._state.copy()
        poses = self._turned(frames)[2]
        self._state[:] = state
        return np.asarray((poses[..., swing.BEND] * np.cos(poses[..., swing.ANGLE])).mean(axis=1), np.float64)

    def _turned(self, frames: Array) -> tuple[Array, Array, Array]:
        """Return the results of the kernel: those of ``turn``, and the values of the limbs in each pose."""
        from synovia.kernels.tree import swing

        count = len(frames)
        between = np.empty((count, 0 if self._spread is None else len(self._spread), 12))
        if self._spread is not None:
            self._spread.turn(frames, between)
        poses, wanted = np.empty((len(self._limbs), count, swing.POSE_WIDTH)), np.empty((count, self._parts, 9))
        ends = np.empty((count, self._paths, 9))
        swing.swing_turns(frames, between, self._own, self._limbs, self._numbers, poses, wanted, ends)
        return wanted, ends, poses
