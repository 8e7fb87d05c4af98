"""Tables of loops, as the kernels read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synovia.kernels import layout
from synovia.model.geometry import Array
from synovia.model.joint import Kind
from synovia.model.loops.loop import KINDS, Coupling, Loop, Tie, Tied
from synovia.model.tables import Ints


@dataclass(frozen=True, slots=True, eq=False)
class LoopTables:
    """Loops in the form that kernels read (see ``kernels.layout``).

    Args:
        ties: The loops; row i of ``ints`` and ``data`` belongs to loop i.
        ints: (l, 8) integers of each loop.
        data: (l, 27) floats of each loop.
        monomials: (m, 2) monomials of couplings.
        coefficients: (m,) factors of the monomials. Factors and constant of a coupling are divided by a scale, so that
            its closure error is the deviation of the joint with the largest term.
    """

    ties: tuple[Tie, ...]
    ints: Ints
    data: Array
    monomials: Ints
    coefficients: Array

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.ints, self.data, self.monomials, self.coefficients):
            array.setflags(write=False)

    @property
    def rows(self) -> int:
        """Number of residual rows."""
        return int(self.ints[:, layout.TIED_ROWS].sum())

    @property
    def tables(self) -> dict[str, NDArray[Any]]:
        """The tables by their names in ``kernels.layout``."""
        return {
            "loops.ints": self.ints,
            "loops.data": self.data,
            "loops.monomials": self.monomials,
            "loops.coefficients": self.coefficients,
        }

    def counts(self, rows: int, variables: Ints, nq: int) -> dict[int, int]:
        """Return the sizes of the tables of loops, and of their scratch memory.

        Args:
            rows: Number of rows of the tree.
            variables: (k, 3) variables of the problem.
            nq: Number of joint values.
        """
        from synovia.kernels.hierarchy.basis import levels_size

        columns = int(sum(3 if block else 1 for block in variables[:, layout.BLOCK]))
        return {
            layout.N_LOOPS: len(self.ints),
            layout.N_MONOMIALS: len(self.monomials),
            layout.N_TIED: self.rows,
            layout.N_TIED_ROWS: rows,
            layout.N_TIED_COLUMNS: columns,
            layout.N_TIED_Q: nq,
            layout.N_TIED_VARIABLES: len(variables),
            layout.N_CLOSING: levels_size(self.rows, columns),
        }


def loop_tables(
    skeleton: Tied,
    ties: Sequence[Tie],
    row_of: Callable[[int], int],
    on_row: Callable[[int, Array], Array],
) -> LoopTables:
    """Return the tables of some loops.

    Args:
        skeleton: The skeleton.
        ties: The loops.
        row_of: Returns the row of the tables that carries a joint; -1 for the world.
        on_row: Returns twelve values: a frame (4, 4) on a joint, converted to the frame of the joint's row.
    """
    ints = np.zeros((len(ties), layout.TIE_WIDTH), np.int32)
    data = np.zeros((len(ties), layout.TIE_DATA_WIDTH))
    monomials: list[tuple[int, int]] = []
    coefficients: list[float] = []
    first = 0
    for row, numbers, tie in zip(ints, data, ties, strict=True):
        row[layout.TIED_ROW], row[layout.TIED_ROWS] = first, tie.rows
        first += tie.rows
        if isinstance(tie, Coupling):
            joints = tie.joint_rows(skeleton)
            scale, is_length = _scale(skeleton, tie)
            row[layout.FIRST_MONOMIAL] = len(monomials)
            for joint, factors in zip(joints, tie.terms.values(), strict=True):
                for power, factor in enumerate(factors, 1):
                    if factor != 0.0:
                        monomials.append((row_of(joint), power))
                        coefficients.append(factor / scale)
            row[layout.MONOMIALS] = len(monomials) - row[layout.FIRST_MONOMIAL]
            numbers[layout.TIE_CONSTANT] = tie.equals / scale
            numbers[layout.TIE_UNIT] = float(is_length)
            continue
        row[layout.TIED_PLACE], row[layout.TIED_TURN], _ = KINDS[tie.kind]
        ends = tie.ends(skeleton)
        for (joint, frame), at, begin in zip(
            ends,
            (layout.TIED_FIRST, layout.TIED_SECOND),
            (layout.FIRST_FRAME, layout.SECOND_FRAME),
            strict=True,
        ):
            row[at] = -1 if joint < 0 else row_of(joint)
            whole = np.append(frame[:3, :3].ravel(), frame[:3, 3]) if joint < 0 else on_row(joint, frame)
            numbers[begin : begin + layout.FRAME_WIDTH] = whole
        numbers[layout.TIE_DISTANCE] = tie.distance or 0.0
    return LoopTables(
        tuple(ties),
        ints,
        data,
        # a copy, so that the result is not a view of another array
        np.array(monomials, np.int32).reshape(-1, layout.MONOMIAL_WIDTH).copy(),
        np.array(coefficients),
    )


def _scale(skeleton: Tied, tie: Coupling) -> tuple[float, bool]:
    """Return the scale of a coupling, and whether its scaled closure error is a length; otherwise it is an angle.

    The scale is the largest term if angles are one radian and slides one length scale. So it does not matter by which
    factor an equation is multiplied, and in which unit its lengths are.
    """
    reach, largest, out = skeleton.size or 1.0, 0.0, (1.0, False)
    for joint, factors in zip(tie.joint_rows(skeleton), tie.terms.values(), strict=True):
        is_length = skeleton.joints[joint].kind is Kind.SLIDE
        for power, factor in enumerate(factors, 1):
            part = abs(factor) * (reach**power if is_length else 1.0)
            if part > largest:
                largest, out = part, (part / reach if is_length else part, is_length)
    return out


def joints_of(skeleton: Tied, tie: Tie) -> tuple[int, ...]:
    """Return the rows of the joints that a loop ties: carriers of its frames, or joints of a coupling."""
    if isinstance(tie, Loop):
        return tuple(row for row, _ in tie.ends(skeleton) if row >= 0)
    return tie.joint_rows(skeleton)


def moved_by(skeleton: Tied, tie: Tie) -> frozenset[int]:
    """Return the rows of joints whose values affect a loop, with leaders in place of mimic joints."""
    if isinstance(tie, Loop):
        above: list[set[int]] = []
        for row, _ in tie.ends(skeleton):
            found: set[int] = set()
            at = row
            while at >= 0:
                found.add(at)
                at = skeleton.parents[at]
            above.append(found)
        rows = above[0] ^ above[1]
    else:
        rows = set(tie.joint_rows(skeleton))
    rows = {row for row in rows if skeleton.joints[row].kind is not Kind.FIXED}
    leaders = skeleton.leader_rows
    return frozenset(rows | {leaders[row] for row in rows if row in leaders})
