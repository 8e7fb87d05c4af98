"""Pack a skeleton into the flat arrays that kernels read.

Each hinge or slide axis is folded into the fixed transforms (z-form, see ``kernels.tree.forward``), and the moving
parts are listed as variables with their limits (see ``kernels.tree.variables``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.kernels import layout
from synovia.model.geometry import Array, align_z
from synovia.model.joint import Joint, Kind
from synovia.model.limits import Interval, SwingTwist

Ints = NDArray[np.int32]
_T = TypeVar("_T", bound=NDArray[Any])
_TOUCHING: Final = 1e-12  # relative gap between two limits that counts as rounding


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Packed arrays of a skeleton with n joints, nq values in q and k variables; ``kernels.layout`` has the columns.

    The arrays are read-only. numba compiles a kernel again for read-only arrays, so kernels get ``writable`` copies, or
    are prepared with such copies (``kernels.compiler.jit.ready``).

    Args:
        ints: (n, 5) columns before ``VARIABLE``; Jacobian columns are those of all joint velocities.
        fixed: (n, 12) rotation and origin in the parent's z-form frame, before the motion.
        couple: (n, 2) all (1, 0), because every joint has its own values in q.
        unfold: (n, 9) rotation from the z-form frame to the joint's own frame.
        variables: (k, 3) variables; mimic joints have no variables.
        limits: (k, 11) limits of the variables, restricted by mimic joints that bind their leader.
        owner: (k,) joint of each variable.
        followers: (m, 2) indices in q of each mimic joint and its leader.
        coupling: (m, 2) ratio and offset of each mimic joint.
    """

    ints: Ints
    fixed: Array
    couple: Array
    unfold: Array
    variables: Ints
    limits: Array
    owner: Ints
    followers: Ints
    coupling: Array

    def __post_init__(self) -> None:
        """Make the arrays read-only. Views are copied, because their base array could still be changed."""
        for each in fields(self):
            array = getattr(self, each.name)
            if array.base is not None:
                array = array.copy()
                object.__setattr__(self, each.name, array)
            array.setflags(write=False)

    @property
    def is_number(self) -> NDArray[np.bool_]:
        """Mask of variables that are scalars, not rotations, (k,)."""
        return self.variables[:, layout.BLOCK] == layout.SCALAR

    @property
    def is_angle(self) -> NDArray[np.bool_]:
        """Mask of variables that are angles of hinges, (k,)."""
        return self.is_number & (self.limits[:, layout.IS_ANGLE] != 0.0)

    @property
    def places(self) -> NDArray[np.int64]:
        """Index in q of the first value of each variable, (k,)."""
        return self.variables[:, layout.BLOCK_Q].astype(np.int64)

    @property
    def ratios(self) -> Array:
        """Ratio of each mimic joint to its leader, (m,)."""
        return self.coupling[:, layout.RATIO]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that rebuilds a copy from the values, so that the arrays stay read-only."""
        return Tables, tuple(getattr(self, each.name) for each in fields(self))


def writable(*tables: _T) -> tuple[_T, ...]:
    """Return writable copies of tables, as kernels require."""
    return tuple(table.copy() for table in tables)


def validator_of(tables: Tables, nq: int) -> Callable[[Array, Array], int]:
    """Return the compiled function that checks joint values (T * nq,) and writes clamped values; see ``validate``."""
    from synovia.kernels.compiler.jit import ready
    from synovia.kernels.tree.tables import validate

    given = (tables.variables, tables.limits, tables.followers, tables.coupling)
    return partial(ready(validate, *writable(*given), nq, np.zeros(0), np.zeros(0)), *given, nq)


def pack(joints: Sequence[Joint], parents: Sequence[int], leaders: dict[int, tuple[int, float, float]]) -> Tables:
    """Pack joints in topological order.

    Args:
        joints: The joints.
        parents: Index of each joint's parent, -1 for a root.
        leaders: For each mimic joint: index of its first leader, ratio and offset.

    Raises:
        InputError: If the limits of a leader and of its binding mimic joint do not overlap.
    """
    n = len(joints)
    ints = np.zeros((n, layout.VARIABLE), np.int32)
    ints[:, layout.KIND] = [joint.kind for joint in joints]
    ints[:, layout.PARENT] = parents
    ints[1:, layout.FIRST_Q] = np.cumsum([joint.kind.q_size for joint in joints])[:-1]
    free = ints[:, layout.KIND] == Kind.FREE
    ints[1:, layout.COLUMN] = np.cumsum([joint.kind.v_size for joint in joints])[:-1]
    ints[:, layout.TRANSLATION_COLUMN] = np.where(free, ints[:, layout.COLUMN], -1)
    ints[free, layout.COLUMN] += 3
    fixed, unfold = _fold(joints, parents)

    blocks: list[tuple[int, int, int]] = []
    limits: list[Array] = []
    owner: list[int] = []
    for i, joint in enumerate(joints):
        if i in leaders:
            continue
        for block in _blocks(joint.kind, *(int(at) for at in ints[i, layout.FIRST_Q :])):
            blocks.append(block)
            limits.append(_limit_row(joint, block[0]))
            owner.append(i)
    block_of = {i: k for k, i in enumerate(owner)}
    for i, (leader, ratio, offset) in leaders.items():
        if (mimic := joints[i].mimic) is not None and mimic.binds:
            _restrict(limits[block_of[leader]], joints[i], joints[leader], ratio, offset)
    return Tables(
        ints=ints,
        fixed=fixed,
        couple=np.tile(np.array([1.0, 0.0]), (n, 1)),
        unfold=unfold,
        variables=np.array(blocks, np.int32).reshape(-1, layout.VARIABLE_WIDTH),
        limits=np.array(limits, np.float64).reshape(-1, layout.LIMIT_WIDTH),
        owner=np.array(owner, np.int32),
        followers=np.array(
            [(ints[i, layout.FIRST_Q], ints[a, layout.FIRST_Q]) for i, (a, _, _) in leaders.items()], np.int32
        ).reshape(-1, layout.FOLLOWER_WIDTH),
        coupling=np.array([(r, b) for _, r, b in leaders.values()], np.float64).reshape(-1, layout.COUPLING_WIDTH),
    )


def _fold(joints: Sequence[Joint], parents: Sequence[int]) -> tuple[Array, Array]:
    """Return the fixed transforms in z-form, and the rotations from z-form frames to the joints' frames."""
    n = len(joints)
    fixed = np.zeros((n, layout.FRAME_WIDTH))
    unfold = np.zeros((n, 9))
    folds: list[Array | None] = []
    for i, joint in enumerate(joints):
        A = align_z(joint.axis) if joint.kind in (Kind.HINGE, Kind.SLIDE) else None
        before = folds[parents[i]] if parents[i] >= 0 else None
        turn, p = joint.rest[:3, :3], joint.rest[:3, 3]
        if before is not None:
            turn, p = before.T @ turn, before.T @ p
        fixed[i, : layout.ORIGIN] = (turn if A is None else turn @ A).ravel()
        fixed[i, layout.ORIGIN :] = p
        unfold[i] = (np.eye(3) if A is None else A.T).ravel()
        folds.append(A)
    return fixed, unfold


def _blocks(kind: Kind, q: int, v: int, v_free: int) -> list[tuple[int, int, int]]:
    """Return the variables of a joint; q, v and v_free are its first value, rotation column and translation column."""
    if kind in (Kind.HINGE, Kind.SLIDE):
        return [(layout.SCALAR, q, v)]
    if kind is Kind.BALL:
        return [(layout.TURN, q, v)]
    if kind is Kind.FREE:
        return [(layout.SCALAR, q + i, v_free + i) for i in range(3)] + [(layout.TURN, q + 3, v)]
    return []


def _limit_row(joint: Joint, block: int) -> Array:
    """Return the limit of one variable of a joint."""
    if block == layout.TURN:
        return joint.limit.row() if isinstance(joint.limit, SwingTwist) else np.zeros(layout.LIMIT_WIDTH)
    limit = joint.limit if isinstance(joint.limit, Interval) else Interval()
    row = limit.row()
    row[layout.IS_ANGLE] = float(joint.kind is Kind.HINGE)
    return row


def _restrict(row: Array, follower: Joint, leader: Joint, ratio: float, offset: float) -> None:
    """Restrict the leader's limit so that the mimic joint's value, ratio * value + offset, is within its own limit."""
    if not isinstance(follower.limit, Interval):
        return
    if ratio == 0.0:
        if not follower.limit.contains(offset):
            raise InputError(
                f"value of joint {follower.name!r}, which follows {leader.name!r} with ratio 0",
                value=offset,
                expected=follower.limit.describe(),
            )
        return
    ends = sorted(((follower.limit.lower - offset) / ratio, (follower.limit.upper - offset) / ratio))
    low, high = max(row[layout.LOWER], ends[0]), min(row[layout.UPPER], ends[1])
    if low > high + _TOUCHING * max(1.0, abs(low)):
        own, other = Interval(*ends).describe(), Interval(row[layout.LOWER], row[layout.UPPER]).describe()
        raise InputError(
            f"limits of joint {follower.name!r} and its leader {leader.name!r}",
            expected="limits that overlap",
            hint=f"the limit of {follower.name!r} allows {leader.name!r} values of {own}, the other limits allow "
            f"{other}",
        )
    row[layout.LOWER], row[layout.UPPER] = min(low, high), high
