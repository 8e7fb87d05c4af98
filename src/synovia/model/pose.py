"""Check joint values, and compute world frames at joint values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np

from synovia.errors import InputError
from synovia.kernels.layout import BLOCK, BLOCK_Q, FIRST_Q, FREE, KIND, PARENT, TURN, VARIABLE
from synovia.model.degrees import FAR, Bounded, warn_of_degrees
from synovia.model.geometry import LONGEST, UNIT_SLACK, Array, as_numbers, dimensions, exp_matrix
from synovia.model.joint import Joint

_CLOSE = 1e-6  # largest deviation of a mimic joint's value
_ROUNDING = 1e-15  # largest rounding error of a normalized quaternion's length
_SHOWN = 12  # largest number of joints named in a message


class Closes(Protocol):
    """The methods of a mechanism that poses need; see ``model.loops``."""

    def random(self, count: int, seed: int, rows: Iterable[int] | None = None) -> Array:
        """Return random closed poses."""
        ...

    def shut(self, q: Array) -> Array:
        """Return the nearest closed poses."""
        ...

    def shut_clip(self, q: Array, rows: Iterable[int] | None = None, anchors: Array | None = None) -> Array:
        """Return closed poses near those of a clip."""
        ...

    def refuse_open(self, q: Array, what: str) -> None:
        """Refuse poses whose loops are open."""
        ...


class Posable(Bounded, Protocol):
    """The parts of a skeleton that poses need."""

    nq: int

    @cached_property
    def zero_q(self) -> Array:
        """Joint values of zero motion."""
        ...

    def __len__(self) -> int:
        """Return the number of joints."""
        ...

    @property
    def mechanism(self) -> Closes | None:
        """Mechanism of the loops; None without loops."""
        ...

    @cached_property
    def validate(self) -> Callable[[Array, Array], int]:
        """Compiled function that checks joint values."""
        ...

    def follow(self, q: Array) -> Array:
        """Set the values of mimic joints in place."""
        ...


def world_frames(skeleton: Posable, q: Array, offsets: Array | None = None) -> Array:
    """Return the world frames (T, n, 12) at joint values (T, nq): rotation row-major (9), then position (3).

    ``offsets`` (n, 6) change the places of the joints: a translation and a rotation vector in the axes of the parent.
    """
    t = skeleton.tables
    frames = np.empty((len(q), len(skeleton), 12))
    fixed = t.fixed
    if offsets is not None:
        fixed, above = t.fixed.copy(), t.ints[:, PARENT].tolist()
        for row, parent in enumerate(above):
            axes = np.eye(3) if parent < 0 else t.unfold[parent].reshape(3, 3)
            fixed[row, :9] = (axes @ exp_matrix(offsets[row, 3:]) @ axes.T @ fixed[row, :9].reshape(3, 3)).ravel()
            fixed[row, 9:] += axes @ offsets[row, :3]
    _forward_kinematics()(t.ints, fixed, t.couple, t.unfold, np.ascontiguousarray(q, np.float64), frames)
    return frames


@cache
def _forward_kinematics() -> Callable[..., Any]:
    """Return the compiled function of ``world_frames``."""
    from synovia.kernels.compiler.jit import ready
    from synovia.kernels.tree.forward import forward_many

    floats = (np.empty((0, width)) for width in (12, 2, 9, 0))
    return ready(forward_many, np.empty((0, VARIABLE), np.int32), *floats, np.empty((0, 0, 12)))


def bind_frames(joints: Sequence[Joint], parents: Sequence[int]) -> Array:
    """Return the world frames (n, 12) of the pose in which the skin was bound; joints without a skin are at rest."""
    out = np.empty((len(joints), 12))
    for row, (joint, parent) in enumerate(zip(joints, parents, strict=True)):
        turn, place = np.eye(3), np.zeros(3)
        if parent >= 0:
            turn, place = out[parent, :9].reshape(3, 3), out[parent, 9:]
        out[row, :9] = (turn @ (joint.rest[:3, :3] if joint.bind is None else joint.bind)).ravel()
        out[row, 9:] = place + turn @ joint.rest[:3, 3]
    return out


def inside_limits(skeleton: Posable, q: Array) -> Array:
    """Return joint values (T, nq) clamped to the limits, with closed loops; the same array if all are inside.

    Raises:
        InputError: If the loops of a clamped pose cannot be closed.
    """
    inside = clamped(skeleton, q)
    return inside if skeleton.mechanism is None else skeleton.mechanism.shut(inside)


def clamped(skeleton: Posable, q: Array) -> Array:
    """Return joint values (T, nq) clamped to the limits; the same array if all are inside. Loops may be open there."""
    inside = np.empty(q.shape)
    skeleton.validate(np.ascontiguousarray(q).reshape(-1), inside.reshape(-1))
    return q if np.array_equal(inside, q) else skeleton.follow(inside)


def random_values(skeleton: Posable, count: int, seed: int, *, rows: Iterable[int] | None = None) -> Array:
    """Return joint values of random poses, (count, nq), uniform within the limits; see ``Skeleton.random_pose``.

    Args:
        skeleton: The skeleton.
        count: Number of poses. The first poses are the same for every count.
        seed: From 0 to 2^32 - 1.
        rows: The joints that move; None for all. Other joints and free joints stay at rest. With loops, all joints of a
            loop move with any of its joints.
    """
    if skeleton.mechanism is not None:
        return skeleton.mechanism.random(count, seed, rows)
    return drawn_values(skeleton, count, seed, rows=rows)


def drawn_values(
    skeleton: Posable, count: int, seed: int, *, rows: Iterable[int] | None = None, around: Array | None = None
) -> Array:
    """Return random joint values like ``random_values``, but without closing loops.

    Args:
        skeleton: The skeleton.
        count: Number of poses.
        seed: From 0 to 2^32 - 1.
        rows: The joints that move; None for all.
        around: Values of other joints and of free joints, (nq,); None for zero motion.
    """
    from synovia.kernels.tree.tables import random_rows

    t = skeleton.tables
    moving = t.ints[t.owner, KIND] != FREE
    if rows is not None:
        moving &= np.isin(t.owner, [*rows])
    q = np.tile(skeleton.zero_q if around is None else around, (count, 1))
    random_rows(
        *(np.ascontiguousarray(part[moving]) for part in (t.variables, t.limits)), q, seed, np.empty(1, np.uint64)
    )
    return skeleton.follow(q)


def as_values(skeleton: Posable, q: Any, what: str, *, many: int = 0, finite: bool = True) -> Array:
    """Return joint values (..., nq) as a new float64 array, with ``many`` leading axes.

    Raises:
        InputError: If the shape is wrong (the message names the joints), or a value is not finite.
    """
    shape = (-1,) * many + (skeleton.nq,)
    try:
        return as_numbers(q, shape, what, finite=finite)
    except InputError as error:
        given: tuple[int, ...] = np.shape(q) if dimensions(q) == many + 1 else ()
        if not given or given[-1] == skeleton.nq:
            raise
        firsts = [*skeleton.tables.ints[:, FIRST_Q].tolist(), skeleton.nq]
        names = [
            name for name, first, end in zip(skeleton.joint_names, firsts, firsts[1:], strict=False) if end > first
        ]
        listed = ", ".join(repr(name) for name in names[:_SHOWN])
        rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise InputError(
            f"shape of {what}", value=given, expected=str(shape).replace("-1", "n"),
            hint=f"these are the values of {listed}{rest}; values by joint are a dict",
        ) from error  # fmt: skip


def checked_q(skeleton: Posable, q: Any, what: str = "q", *, closed: bool = True) -> Array:
    """Return joint values (..., nq) as a new float64 array with exact quaternions and couplings.

    Values that seem to be in degrees cause a warning. With ``closed``, loops must be closed.

    Raises:
        InputError: If the shape is wrong, a value is not finite, a quaternion is not of length 1, a mimic joint
            contradicts its leader, or a loop is open.
    """
    out = as_values(skeleton, q, what, many=dimensions(q) - 1)
    largest = float(np.abs(out).max(initial=0.0))
    if largest > LONGEST:
        raise InputError(
            what,
            value=float(out.flat[np.argmax(np.abs(out))]),
            expected=f"numbers of at most {LONGEST:g}",
        )
    if largest > FAR:
        warn_of_degrees(skeleton, out, what)
    t = skeleton.tables
    turns = np.flatnonzero(t.variables[:, BLOCK] == TURN)
    if len(turns):
        columns = t.variables[turns, BLOCK_Q, None] + np.arange(4)
        quats = out[..., columns]
        length = np.linalg.norm(quats, axis=-1)
        off = np.abs(length - 1.0)
        if off.size and not off.max() <= UNIT_SLACK:
            first = int(np.argmax((off.reshape(-1, len(turns)) > UNIT_SLACK).any(0)))
            raise InputError(
                f"{what} of joint {skeleton.joint_names[t.owner[turns[first]]]!r}",
                value=quats[..., first, :].reshape(-1, 4)[np.argmax(off[..., first])].tolist(),
                expected="a unit quaternion x, y, z, w",
            )
        length[off < _ROUNDING] = 1.0  # keeps quaternions of an already checked pose bit-identical
        out[..., columns] = quats / length[..., None]
    if len(t.followers):
        _check_followers(skeleton, out, what)
    if closed and skeleton.mechanism is not None:
        skeleton.mechanism.refuse_open(out, what)
    return out


def _check_followers(skeleton: Posable, out: Array, what: str) -> None:
    """Set the values of mimic joints to exactly those that follow from their leaders.

    Raises:
        InputError: If a mimic joint contradicts its leader.
    """
    t = skeleton.tables
    before = out.copy()
    skeleton.follow(out)
    off = np.abs(out - before) / np.maximum(1.0, np.abs(out))
    if off.size and not off.max() <= _CLOSE:  # also true for NaN
        frame, at = divmod(int(np.argmax(off)), skeleton.nq)
        row = int(np.flatnonzero(t.ints[:, FIRST_Q] <= at)[-1])
        raise InputError(
            f"{what} of joint {skeleton.joint_names[row]!r}, which follows another",
            value=float(before.reshape(-1, skeleton.nq)[frame, at]),
            expected=f"{out.reshape(-1, skeleton.nq)[frame, at]:.9g}",
        )


def refused_rows(check: Callable[[Array], object], rows: Array) -> list[int]:
    """Return the rows that a check refuses. Bisection needs few calls if it refuses few rows.

    Args:
        check: Raises an ``InputError`` if any of the given rows cannot be used.
        rows: The rows, (n, ...).
    """
    found: list[int] = []
    parts = [(0, len(rows))]
    while parts:
        first, last = parts.pop()
        try:
            check(rows[first:last].copy())
        except InputError:
            middle = (first + last) // 2
            if last - first == 1:
                found.append(first)
            else:
                parts += [(middle, last), (first, middle)]
    return found
