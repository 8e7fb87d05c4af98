"""A skeleton with loops as a mechanism: closed poses, random closed poses, and degrees of freedom."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.kernels import layout
from synovia.kernels.packing import packed, table_of
from synovia.model.change import blend
from synovia.model.geometry import Array, rigid
from synovia.model.joint import Kind
from synovia.model.loops.loop import KINDS, Coupling, Tied
from synovia.model.loops.tables import LoopTables, loop_tables, moved_by
from synovia.model.pose import drawn_values
from synovia.model.tables import Ints, writable

CLOSED: Final = 1e-9  # largest closure error of a closed pose, length scales or radians
TIGHT: Final = 1e-10  # largest closure error of a solved pose, length scales or radians
SHUT: Final = 1e-6  # largest closure error of poses that users give, because their values are rounded
_STEPS: Final = 300  # largest number of steps to close any pose
# singular value of the constraints, per radian or length scale; constraints with smaller values are dependent
INDEPENDENT: Final = 1e-6
_SHARES: Final = (0.01, 0.1, 0.5)  # fractions of the path to a random pose from which closing starts again
_TRIES: Final = 8  # number of random poses for each fraction
_FEW_STEPS: Final = 20  # largest number of steps to close a pose near a closed one
_WALK: Final = 0.1  # radians or length units: largest step of an independent joint on a path
_LONGEST: Final = 6.3  # radians or length units: a longer path gets no more steps than one of this length
_DRAWS: Final = 20  # largest number of draws for one random pose
# ratio of the motion of a closed frame to the wanted motion; above it, the frame is closed again in small steps
_LEAPS: Final = 3.0
_NEXT_SEED: Final = 0x9E3779B1
_PROBES: Final = 3  # number of poses near the rest pose that determine mobility
_ASIDE: Final = 0.05  # distance of the ``_PROBES`` poses from the rest pose, as a fraction of the path to random poses
# smallest share of a joint's column that other columns do not explain, for a well-conditioned dependent joint
_WELL: Final = 0.1


class Mechanism:
    """The loops of a skeleton, packed for the kernel that closes poses.

    Args:
        skeleton: The skeleton with loops.

    Attributes:
        tables: Tables of the loops.
        reach: Length scale, length units.
    """

    def __init__(self, skeleton: Tied) -> None:
        """Pack the whole skeleton: each joint has a row, and mimic joints use the variables of their leaders."""
        self.skeleton = skeleton
        t = skeleton.tables
        self.reach = skeleton.size or 1.0
        ints = np.full((len(skeleton), layout.ROW_WIDTH), -1, np.int32)
        ints[:, : layout.COLUMN] = t.ints[:, : layout.COLUMN]
        couple = t.couple.copy()
        variables = t.variables.copy()
        sizes = np.where(variables[:, layout.BLOCK] == layout.SCALAR, 1, 3)
        variables[:, layout.BLOCK_COLUMN] = np.cumsum(sizes) - sizes
        column_at = {int(at): (int(v), k) for k, (_, at, v) in enumerate(variables.tolist())}
        leader_of = {int(f): (int(a), k) for k, (f, a) in enumerate(t.followers)}
        for row, joint in enumerate(skeleton.joints):
            at = int(ints[row, layout.FIRST_Q])
            if joint.kind is Kind.FIXED:
                continue
            if at in leader_of and joint.kind in (Kind.HINGE, Kind.SLIDE):
                at, k = leader_of[at]
                ints[row, layout.FIRST_Q] = at
                couple[row] = t.coupling[k]
            if joint.kind is Kind.FREE:
                ints[row, layout.TRANSLATION_COLUMN] = column_at[at][0]
                at += 3
            ints[row, layout.COLUMN], ints[row, layout.VARIABLE] = column_at[at]

        def on_row(joint: int, frame: Array) -> Array:
            whole = rigid((0.0, 0.0, 0.0), t.unfold[joint].reshape(3, 3)) @ frame
            return np.append(whole[:3, :3].ravel(), whole[:3, 3])

        self.tables: LoopTables = loop_tables(skeleton, skeleton.loops, int, on_row)
        self.variables: Ints = variables
        numbers = {
            layout.N_ROWS: len(skeleton),
            layout.N_VARIABLES: len(variables),
            layout.N_COLUMNS: int(sizes.sum()),
            layout.N_Q: skeleton.nq,
            **self.tables.counts(len(skeleton), variables, skeleton.nq),
        }
        tables: dict[str, NDArray[Any]] = {
            "params": np.zeros(layout.PARAMS_WIDTH),
            "tree.ints": ints,
            "tree.fixed": t.fixed,
            "tree.couple": couple,
            "variables": variables,
            "limits": t.limits,
            "moves": np.full(len(variables), np.inf),
            **self.tables.tables,
        }
        self.ints, self.floats = packed(numbers, {layout.REACH: self.reach}, tables)
        for array in (self.ints, self.floats, variables):
            array.setflags(write=False)

    @cached_property
    def _close(self) -> Callable[..., Any]:
        """Compiled kernel that closes poses."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.loops.closing import close_rows

        lacks = np.zeros((0, len(self.skeleton.loops)))
        none = np.zeros((0, self.skeleton.nq)), self._new_scratch(), lacks, 0, False
        return ready(close_rows, *writable(self.ints, self.floats), *none)

    @cached_property
    def _write_rows(self) -> Callable[..., Any]:
        """Compiled kernel that writes constraint rows."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.loops.closing import write_rows

        none = np.zeros((0, self.skeleton.nq)), self._new_scratch(), np.zeros((0, 0)), np.zeros((0, 0, 0))
        return ready(write_rows, *writable(self.ints, self.floats), *none)

    def _new_scratch(self) -> Array:
        """Return scratch memory for a kernel."""
        return np.zeros(int(self.ints[layout.WORK_SIZE]))

    def run(self, q: Array, steps: int = _STEPS, held: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """Close poses (T, nq) in a limited number of steps; return the poses and their closure errors, (T, loops).

        Args:
            q: The poses, within the limits.
            steps: Largest number of steps.
            held: Mask of variables that keep their values, (k,); None to move all.
        """
        out = np.array(q, np.float64, order="C")
        lacks = np.empty((len(out), len(self.skeleton.loops)))
        floats = self.floats
        if held is not None:
            floats = floats.copy()
            table_of(self.ints, floats, "moves")[held] = 0.0
        self._close(self.ints, floats, out, self._new_scratch(), lacks, steps, held is not None)
        return (self.skeleton.follow(out) if steps else out), lacks

    def lacks(self, q: Array) -> Array:
        """Return the closure error (T, loops) of each loop, length scales or radians, at poses (T, nq)."""
        return self.run(q, 0)[1]

    def in_words(self, tie: int, lack: float) -> str:
        """Return the closure error of a loop as text."""
        one = self.tables.ties[tie]
        length, angle = f"{lack * self.reach:.3g} length units", f"{lack:.3g} rad"
        if isinstance(one, Coupling):
            return length if self.tables.data[tie, layout.TIE_UNIT] else angle
        return length if KINDS[one.kind].turn == layout.ANY_TURN else f"{length} or {angle}"

    def closed(self, q: Array) -> tuple[Array, Array]:
        """Return the nearest closed poses, (T, nq), within the limits, and the remaining closure errors.

        If loops remain open after all steps, as for a straight linkage, restart from displaced poses. Joints that do
        not affect these loops keep their values.
        """
        inside = np.empty_like(q)
        self.skeleton.validate(np.ascontiguousarray(q).reshape(-1), inside.reshape(-1))
        out, lacks = self.run(inside)
        for k, share in enumerate(_SHARES):
            open_rows = np.flatnonzero(lacks.max(axis=1) > CLOSED)
            if not len(open_rows):
                break
            ends = drawn_values(self.skeleton, _TRIES, k)
            starts = np.repeat(inside[open_rows], _TRIES, axis=0)
            aside = blend(self.skeleton, starts, np.tile(ends, (len(open_rows), 1)), share)
            moves = np.repeat(self._moving(lacks[open_rows] > CLOSED), _TRIES, axis=0)
            found, left = self.run(self.skeleton.follow(np.where(moves, aside, starts)))
            far = np.linalg.norm(found - starts, axis=1) + np.where(left.max(axis=1) > CLOSED, np.inf, 0.0)
            best = np.argmin(far.reshape(-1, _TRIES), axis=1) + _TRIES * np.arange(len(open_rows))
            closes = np.isfinite(far[best])
            out[open_rows[closes]], lacks[open_rows[closes]] = found[best[closes]], left[best[closes]]
        return out, lacks

    def rows(self, q: Array) -> tuple[Array, Array]:
        """Return the closure errors of all constraints, (T, rows), at poses (T, nq), and their negative derivatives.

        The derivatives are with respect to the velocities of the variables, (T, rows, columns). Lengths are in length
        scales.
        """
        lack = np.empty((len(q), self.tables.rows))
        out = np.empty((*lack.shape, int(self.ints[layout.N_COLUMNS])))
        self._write_rows(self.ints, self.floats, np.ascontiguousarray(q), self._new_scratch(), lack, out)
        return lack, out

    def shut(self, q: Array) -> Array:
        """Return the nearest closed poses within the limits, (T, nq); the same array if all poses are already closed.

        Raises:
            InputError: If a pose cannot be closed.
        """
        if self.lacks(q).max(initial=0.0) <= TIGHT:
            return q
        out, lacks = self.closed(q)
        if lacks.size and not lacks.max() <= CLOSED:
            frame, k = divmod(int(np.argmax(lacks)), lacks.shape[1])
            raise InputError(
                f"loop {self.tables.ties[k].label!r} cannot be closed near this pose within the limits",
                where=self.skeleton.name,
                value=f"a gap of {self.in_words(k, float(lacks[frame, k]))}",
                expected="a pose with a smaller gap",
            )
        return out

    def shut_clip(self, q: Array, rows: Iterable[int] | None = None, anchors: Array | None = None) -> Array:
        """Return closed poses near those of a clip, (T, nq), that stay in the assembly branch of the previous frame.

        If a pose cannot be closed nearby, move from the previous frame towards it, as far as the loops allow.

        Args:
            q: Joint values of consecutive frames, (T, nq). Closed frames are returned bit-identical.
            rows: Joints whose values are kept, while other joints follow from the previous frame. If that is
                impossible, these joints move as well. None: all joints move by the smallest steps.
            anchors: Closed poses, (T, nq), from which to start if a frame does not close; None for the previous frame,
                and for the first frame the rest pose.
        """
        gaps: NDArray[np.bool_] = np.asarray(self.lacks(q) > TIGHT)
        opened: NDArray[np.bool_] = np.asarray(gaps.any(axis=1))
        if not opened.any():
            return q
        moves = self._moving(gaps)
        inside = np.empty_like(q)
        self.skeleton.validate(np.ascontiguousarray(q).reshape(-1), inside.reshape(-1))
        inside = np.where(opened[:, None], self.skeleton.follow(inside), q)
        held = None if rows is None else np.isin(self.skeleton.tables.owner, [self._leader(row) for row in rows])
        direct, lacks = (inside, None) if held is not None else self.run(inside)
        out = np.where(opened[:, None], direct, q)
        for k in np.flatnonzero(opened).tolist():
            before = out[k - 1] if k else self.skeleton.rest_q
            start = before if anchors is None else anchors[k]
            if lacks is not None and lacks[k].max() <= CLOSED:
                near = self._far(out[k], start), self._far(inside[k], start)
                if near[0] <= _LEAPS * near[1] + _WALK or (k == 0 and anchors is None):
                    continue
            out[k] = self._towards(start, inside[k], held, moves[k])
        return out

    def _towards(self, start: Array, end: Array, held: NDArray[np.bool_] | None, moves: NDArray[np.bool_]) -> Array:
        """Return the last closed pose (nq,) on a path from a closed pose to joint values, at best the end of the path.

        Args:
            start: The closed pose.
            end: The joint values.
            held: As in ``run``.
            moves: Mask of joint values that affect the open loops, (nq,); all others are set to the end at once.
        """
        begin = self.skeleton.follow(np.where(moves, start, end))
        if self.lacks(begin[None]).max() > TIGHT:
            begin = start
        if held is not None:
            found, closes = self.way(begin[None], end[None], held)
            if closes[0]:
                return found[0]
            begin = found[0]
            end = np.where(self._places(held), end, begin)
        return self.way(begin[None], end[None], None)[0][0]

    def _leader(self, row: int) -> int:
        """Return the row of a mimic joint's leader; for other joints, the row itself."""
        return self.skeleton.leader_rows.get(row, row)

    def _far(self, a: Array, b: Array) -> float:
        """Return the largest change of a joint value between two poses (nq,); quaternions q and -q are equal."""
        change = np.abs(a - b)
        for block, at, _ in self.variables.tolist():
            if block != layout.SCALAR:
                change[at : at + 4] = min(float(change[at : at + 4].max()), float(np.abs(a + b)[at : at + 4].max()))
        return float(change.max(initial=0.0))

    def _places(self, variables: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the joint values that belong to some variables, (nq,)."""
        places = np.zeros(self.skeleton.nq, bool)
        for block, at, _ in self.variables[variables].tolist():
            places[at : at + (1 if block == layout.SCALAR else 4)] = True
        return places

    def _moving(self, gaps: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of joint values that affect open loops, (T, nq), given a mask of open loops, (T, loops)."""
        return np.asarray(gaps.astype(np.int64) @ self._moved_with > 0)

    @cached_property
    def groups(self) -> NDArray[np.bool_]:
        """Masks of the joint values that affect each group of loops; loops of a group share joints, (groups, nq)."""
        return np.unique(self._moved_with, axis=0) > 0

    @cached_property
    def _moved_with(self) -> NDArray[np.int64]:
        """For each loop, the joint values that affect its group of loops, (loops, nq), as 0 and 1."""
        owner = self.skeleton.tables.owner
        own = np.array([np.isin(owner, [*moved_by(self.skeleton, tie)]) for tie in self.tables.ties])
        for column in range(own.shape[1]):  # each variable merges all loops that it affects, as in union-find
            shared = own[:, column].copy()
            own[shared] = own[shared].any(axis=0)
        return np.array([self._places(variables) for variables in own]).astype(np.int64)

    def refuse_open(self, q: Array, what: str) -> None:
        """Raise an error for poses (..., nq) with open loops.

        Raises:
            InputError: If a closure error is larger than rounding can explain.
        """
        flat = np.ascontiguousarray(q.reshape(-1, q.shape[-1]))
        lacks = self.lacks(flat)
        if not lacks.size or lacks.max() <= SHUT:
            return
        frame, k = divmod(int(np.argmax(lacks)), lacks.shape[1])
        raise InputError(
            f"{what}[{frame}]" if len(flat) > 1 else what,
            where=self.skeleton.name,
            value=f"loop {self.tables.ties[k].label!r} has a gap of {self.in_words(k, float(lacks[frame, k]))}",
            expected="a pose in which all loops are closed",
            hint="sy.close_loops(skeleton, q) returns the nearest one",
        )

    @cached_property
    def mobility(self) -> Mobility:
        """Mobility of the mechanism. The rank of the constraints is that of generic poses near the rest pose."""
        rest = self.skeleton.rest_q[None]
        probes = np.repeat(rest, _PROBES, axis=0)
        drawn = drawn_values(self.skeleton, _PROBES, 0)
        scalar = self.variables[:, layout.BLOCK] == layout.SCALAR
        at = self.variables[scalar, layout.BLOCK_Q]
        probes[:, at] += _ASIDE * (drawn[:, at] - probes[:, at])
        probes, lacks = self.closed(probes)
        probes = np.concatenate([rest, probes[lacks.max(axis=1) <= CLOSED]])
        _, J = self.rows(probes)
        _, values, ways = np.linalg.svd(J)
        ranks = (values > INDEPENDENT).sum(axis=1)
        rank, best = int(ranks.max()), int(np.argmax(ranks))
        still = np.ones(len(self.variables), bool)
        # a joint that stands still at a dead centre of one pose moves in another pose
        for k in np.flatnonzero(ranks == rank):
            moves = np.linalg.norm(ways[k, rank:], axis=0) > INDEPENDENT  # norm of each column
            np.logical_and.at(still, self.columns, ~moves)
        return Mobility(
            J.shape[2] - rank, J.shape[1] - rank, self._dependent(J[best], rank), bool(ranks[0] < rank), still
        )

    @cached_property
    def columns(self) -> Ints:
        """Variable that each column of ``rows`` belongs to."""
        sizes = np.where(self.variables[:, layout.BLOCK] == layout.SCALAR, 1, 3)
        return np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)

    def _dependent(self, J: Array, rank: int) -> NDArray[np.bool_]:
        """Return a mask of dependent variables, (k,).

        Joints near the root are independent, because these usually have the motors and come first in files.
        Free joints are dependent if possible, because their values are not drawn at random. So are balls, because they
        are usually at the ends of passive rods, and the loops hardly ever close with random rotations of balls.
        """
        owner = self.columns
        first = {Kind.FREE: 0, Kind.BALL: 1}
        turn = [first.get(self.skeleton.joints[int(row)].kind, 2) for row in self.skeleton.tables.owner]
        order = sorted(range(len(owner)), key=lambda column: (turn[int(owner[column])], -column))
        basis = np.zeros((0, len(J)))
        dependent = np.zeros(len(self.variables), bool)
        for least in (_WELL, INDEPENDENT):
            for column in order:
                if len(basis) == rank:
                    return dependent
                rest = J[:, column] - basis.T @ (basis @ J[:, column])
                rest -= basis.T @ (basis @ rest)
                size = float(np.linalg.norm(rest))
                if size > max(least * float(np.linalg.norm(J[:, column])), INDEPENDENT):
                    basis = np.concatenate([basis, rest[None] / size])
                    dependent[owner[column]] = True
        return dependent

    def random(self, count: int, seed: int, rows: Iterable[int] | None = None) -> Array:
        """Return random closed poses, (count, nq), on paths from the rest pose; see ``random_values``.

        The independent joints are uniform within their limits. Each pose is reached on a path from the rest pose, along
        which the loops stay closed; if they cannot, the joints are drawn again. A mechanism that hardly ever closes
        like this, such as a platform on six legs, moves towards a random pose of all its joints, as near as the loops
        allow.
        """
        rows = None if rows is None else [*rows]
        held = ~self.mobility.dependent
        out = np.repeat(self.skeleton.rest_q[None], count, axis=0)
        left = np.arange(count)
        for k in range(_DRAWS + 1):
            if not len(left):
                break
            ends = drawn_values(
                self.skeleton, count, (seed + k * _NEXT_SEED) % 2**32, rows=rows, around=self.skeleton.rest_q
            )[left]
            found, closes = self.way(out[left], ends, held if k < _DRAWS else None)
            closes |= k == _DRAWS
            out[left[closes]] = found[closes]
            left = left[~closes]
        return out

    def way(self, begin: Array, end: Array, held: NDArray[np.bool_] | None) -> tuple[Array, NDArray[np.bool_]]:
        """Move some variables on a straight path. At each step, close the loops by the other variables, or else by all.

        Args:
            begin: Closed poses, (T, nq).
            end: Targets of the variables, (T, nq).
            held: Mask of variables that follow the path exactly, (k,); None to move all, which then end near it.

        Returns:
            The last closed poses on the path, and a mask of those at its end.
        """
        places = self._places(np.ones(len(self.variables), bool) if held is None else held)
        far = float(np.abs(end - begin)[:, places].max(initial=0.0))
        steps = max(1, math.ceil(min(far, _LONGEST) / _WALK))
        now, moving = begin.copy(), np.ones(len(begin), bool)
        for step in range(1, steps + 1):
            there = now[moving]
            if held is None:
                there = blend(self.skeleton, there, end[moving], 1.0 / (steps - step + 1))
            else:
                there[:, places] = blend(self.skeleton, begin[moving], end[moving], step / steps)[:, places]
            there, lacks = self.run(there, _FEW_STEPS, held)
            closes = lacks.max(axis=1) <= CLOSED
            rows = np.flatnonzero(moving)
            now[rows[closes]] = there[closes]
            moving[rows[~closes]] = False
            if not moving.any():
                break
        return now, moving


class Mobility(NamedTuple):
    """Mobility of a mechanism.

    Args:
        freedom: Number of degrees of freedom with closed loops.
        redundant: Number of constraints that depend on others.
        dependent: Mask of the variables that the independent variables determine, (k,).
        singular: Whether the rest pose has more degrees of freedom than the poses around it.
        still: Mask of variables that cannot move, (k,).
    """

    freedom: int
    redundant: int
    dependent: NDArray[np.bool_]
    singular: bool
    still: NDArray[np.bool_]
