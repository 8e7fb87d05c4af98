"""Convert the targets that users pass to the table that kernels read.

Every call passes its targets through a ``TargetWriter``. Float64 arrays, and pairs of a position and a ``Rotation``,
are written without checks: the kernel itself rejects values that are not finite or not rigid. All other forms are
checked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, cast

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import InputError, SynoviaError, UnknownNameError, restated, unknown_name
from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.kernels.layout import GIVEN, REFUSED, TARGET_WIDTH, TRANSFORM_WIDTH
from synovia.model import Skeleton
from synovia.model.geometry import (
    LONGEST,
    Array,
    Bools,
    all_finite,
    as_matrix,
    as_numbers,
    as_transform,
    dimensions,
    frames_to_transforms,
    quaternion_hint,
    with_exact_rotations,
)
from synovia.model.motion import Motion
from synovia.text import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.spatial.transform import Rotation

    from synovia.model.skeleton import Numbers

_Rotation: TypeAlias = "NDArray[Any] | Sequence[Sequence[float]] | Rotation"
# One target: a position, a rotation, a pair of both, or a 4x4 transform. Targets of many problems have a leading axis.
Target: TypeAlias = "NDArray[Any] | Sequence[float] | Sequence[Sequence[float]] | Rotation | tuple[Numbers, _Rotation]"
Targets: TypeAlias = "Mapping[str, Target] | Mapping[int, Target] | Mapping[str | int, Target] | Target"
_BOTH: Final = POSITION | ROTATION
_PARTS: dict[tuple[int, ...], int] = {(3,): POSITION, (3, 3): ROTATION, (4, 4): _BOTH}
_POINT, _FRAME = (3,), (4, 4)
_LAST_ROW: Final = (0.0, 0.0, 0.0, 1.0)  # last row of a transform
_DOUBLE: Final = np.dtype(np.float64)
_ndarray = np.ndarray  # saves an attribute lookup in each call
_ALL: Final = slice(None)  # created once, not in each call


class Workspace:
    """The memory of one call: a table of targets (1, goals, 17), views that write to this table, and scratch memory."""

    __slots__ = ("all_given", "only", "scratch", "slots", "table")

    def __init__(
        self, own: Array, names: Mapping[Any, tuple[int, tuple[int, ...], int]], only: Any, scratch: Array
    ) -> None:
        """Copy the goals' own targets, and create views of the table.

        Args:
            own: The goals' own targets, (1, goals, 17).
            names: By key of a goal: index of the goal, array shape of its target, bit of the goal.
            only: Key of the goal that takes a target; None if several goals do.
            scratch: Scratch memory of the kernel.
        """
        self.table = own.copy()
        self.scratch = scratch
        rows = self.table[0, :, :TRANSFORM_WIDTH]
        frames = [row.reshape(4, 4) for row in rows]
        # by key of a goal: array shape of its target, bit of the goal, view of the target, view of the transform as
        # bytes
        self.slots = {
            key: (shape, bit, frames[i][:3, 3] if shape is _POINT else frames[i], memoryview(rows[i]).cast("B"))
            for key, (i, shape, bit) in names.items()
        }
        self.only = self.slots.get(only)
        self.all_given = False  # whether every goal of the table is marked as given


class TargetWriter:
    """Writes the targets of one problem's goals into the table that its kernels read.

    Args:
        skeleton: The skeleton.
        goals: The goals.
        rows: Joint of each goal.
    """

    def __init__(self, skeleton: Skeleton, goals: Sequence[Goal], rows: Sequence[int]) -> None:
        """Collect the names of the goals and their own targets."""
        self.goals = goals
        self._skeleton = skeleton
        self._frames = [(row, goal.place(0)) for row, goal in zip(rows, goals, strict=True)]
        self._goals_by_key = _index_by_key(goals, rows)
        self._takes = [float(goal.takes) for goal in goals]
        self.own = np.zeros((1, len(goals), TARGET_WIDTH))  # the goals' own targets
        for row, goal in zip(self.own[0], goals, strict=True):
            row[:TRANSFORM_WIDTH] = (np.eye(4) if goal.target is None else goal.target).ravel()
            row[GIVEN] = float(goal.given)
        # by key of a goal: index of the goal, array shape of its target, bit of the goal
        self._names = {
            key: (at[0], _POINT if goals[at[0]].usual_parts == POSITION else _FRAME, 1 << at[0])
            for key, at in self._goals_by_key.items()
            if len(at) == 1 and goals[at[0]].takes & POSITION
        }
        # whether a goal keeps a part of its own target if its target is written without checks
        self._keeps_parts = any(goal.usual_parts != goal.takes for goal in goals)
        with_target = [i for i, goal in enumerate(goals) if goal.takes]
        self._all_bits, self._count = sum(1 << i for i in with_target), len(with_target)
        # key of the goal that takes a target; None if several goals do
        self._only = _key_of(goals[with_target[0]]) if len(with_target) == 1 else None

    def workspace(self, scratch: Array) -> Workspace:
        """Return new memory for one call at a time."""
        return Workspace(self.own, self._names, self._only, scratch)

    def fill(self, targets: Any, workspace: Workspace) -> None:
        """Write the targets of one problem into the table of a workspace; goals without a target keep their own."""
        kind: type[object] = type(targets)  # pyright: ignore[reportUnknownVariableType]  # it may be anything
        if workspace.only is not None and kind is _ndarray and workspace.all_given:  # fast path for calls in a loop
            shape, _, view, memory = workspace.only
            if targets.dtype == _DOUBLE and targets.shape == shape:
                if shape is _FRAME:
                    memory[_ALL] = targets.tobytes()  # assigning bytes takes a third less time than assigning arrays
                else:
                    view[...] = targets
                return
        if self._only is not None and (kind is _ndarray or kind is tuple):
            targets, kind = {self._only: targets}, dict
        if kind is dict and len(targets) == self._count:
            slots, written = workspace.slots, 0
            if self._keeps_parts and not workspace.all_given:
                workspace.table[...] = self.own
            for key in targets:  # a loop over keys is faster than ``items`` and ``get``
                if key not in slots:
                    break
                shape, bit, view, memory = slots[key]
                value = targets[key]
                kind = type(value)  # pyright: ignore[reportUnknownVariableType]  # it may be anything
                if kind is _ndarray and value.dtype == _DOUBLE and value.shape == shape:
                    if shape is _FRAME:
                        memory[_ALL] = value.tobytes()
                    else:
                        view[...] = value
                elif kind is not tuple or not _filled(view, shape, value):
                    break
                written |= bit
            else:
                if written == self._all_bits:
                    if not workspace.all_given:
                        workspace.table[0, :, GIVEN] = self._takes
                        workspace.all_given = True
                    return
        workspace.all_given = False
        workspace.table[...] = self.own
        if targets is not None:
            given: dict[int, int] = {}
            for key, value in _checked_table(targets, self.goals).items():
                i = self._assign(given, key, parts_of(value))
                _write(workspace.table[0, i], self.goals[i], value)

    def table_of_many(self, targets: Targets) -> Array:
        """Return the table (B, goals, 17) of a batch of problems.

        Raises:
            InputError: If the targets cannot be used; the message names the row.
        """
        table, odd = self.read_many(targets)
        if odd.any():
            raise self.error_of(int(np.argmax(odd)), 0, targets, many=True)
        return table

    def read_many(self, targets: Targets) -> tuple[Array, Bools]:
        """Return the table (B, goals, 17) of a batch, and a mask of problems with unusable targets.

        The mask marks only rows that are not finite, or whose form differs from the form of most rows.

        Raises:
            InputError: If no row has a usable form.
        """
        by_key = _checked_table(targets, self.goals)
        count = _count_of(by_key)
        table = np.repeat(self.own, count, axis=0)
        odd = np.zeros(count, bool)
        given: dict[int, int] = {}
        for key, value in by_key.items():
            same, others = _with_regular_rows(value)
            odd |= others
            i = self._assign(given, key, parts_of(same, many=True))
            odd |= _write_many(table[:, i], self.goals[i], same)
        return table, odd

    def orthonormalize(self, table: Array) -> Bools:
        """Check a table of targets, and replace rotations with rounding errors by the nearest exact ones, in place.

        Kernels reject rotations with rounding errors as well as unusable targets. So only tables that a kernel rejected
        need this.

        Returns:
            Mask of the targets that cannot be used, (B, goals).
        """
        wrong = np.zeros(table.shape[:2], bool)
        for i, goal in enumerate(self.goals):
            given = table[:, i, GIVEN].astype(np.int64) & goal.takes
            frames = table[:, i, :TRANSFORM_WIDTH].reshape(-1, 4, 4).copy()
            with np.errstate(over="ignore", invalid="ignore"):
                place = frames[:, :3, 3]
                far = ~(np.abs(place).max(1) <= LONGEST) | ~(np.linalg.norm(place, axis=1) <= LONGEST)
                if goal.vector == "direction":
                    far |= ~(np.einsum("bi,bi->b", place, place) > 0.0)
                exact, usable = with_exact_rotations(frames)
            turns = given & ROTATION > 0
            wrong[:, i] = (far & (given & POSITION > 0)) | (turns & ~usable)
            table[turns & usable, i, :TRANSFORM_WIDTH] = exact[turns & usable].reshape(-1, TRANSFORM_WIDTH)
        return wrong

    def orthonormalize_or_refuse(self, table: Array, targets: Targets | None, *, many: bool = False) -> None:
        """Check and correct a table as ``orthonormalize`` does.

        Raises:
            InputError: If a target cannot be used.
        """
        wrong = self.orthonormalize(table)
        if wrong.any():
            row, i = divmod(int(np.argmax(wrong)), len(self.goals))
            raise self.error_of(row, i, targets, many=many)

    def refuse(self, code: int, targets: Targets | None, *, many: bool = False) -> NoReturn:
        """Raise the error for a target that the kernel rejected. With ``many``, targets have a leading axis."""
        row, i = divmod(REFUSED - code, len(self.goals))
        raise self.error_of(row, i, targets, many=many)

    def error_of(self, row: int, i: int, targets: Targets | None, *, many: bool = False) -> SynoviaError:
        """Return the error for the target of goal i that the kernel rejected.

        Write the row again with all checks to find the error. If the row passes the checks, its target is too far away.

        Args:
            row: The problem; 0 without a leading axis.
            i: The goal.
            targets: The targets as given.
            many: Whether the targets have a leading axis; the message then names the row.
        """
        written = self.own[0].copy()
        at = f"targets[{row}]" if many else None
        for key, value in _checked_table({} if targets is None else targets, self.goals).items():
            one, parts = value, parts_of(value)
            if many:
                one = tuple(part[row] for part in value) if _is_pair(value, many=True) else value[row]
                parts = parts_of(_with_regular_rows(value)[0], many=True)
            try:
                g = self.goal_of(key, parts)
                _write(written[g], self.goals[g], one)
            except InputError as error:
                return error if at is None else restated(error, InputError, at)
        goal = self.goals[i]
        vector = written[i, :TRANSFORM_WIDTH].reshape(4, 4)[:3, 3].tolist()
        expected = f"a position within {LONGEST:g} length units of the origin"
        if goal.vector == "direction":
            expected = "a vector longer than 0"
        return InputError(f"target of {goal.label!r}", where=at, value=vector, expected=expected)

    def goal_of(self, key: Any, parts: int) -> int:
        """Return the index of the goal with this key that takes these parts of a target.

        If no goal has this key, it may be another name of a joint, link or site that has a goal.

        Raises:
            UnknownNameError: If no goal or several goals have this key, or several frames have this name.
        """
        goals = self.goals
        if key not in self._goals_by_key and self._skeleton.knows(key):
            row, place = self._skeleton.locate(key)
            place = np.eye(4) if place is None else place
            same = [
                i
                for i, (own, on) in enumerate(self._frames)
                if goals[i].takes and own == row and np.array_equal(on, place)
            ]
            self._goals_by_key.update({key: same} if same else {})
        try:
            places = self._goals_by_key.get(key)
        except TypeError as error:
            raise InputError("key of a target", value=key, expected="a joint's or goal's name") from error
        if places is None:
            if any(goal.label == key for goal in goals):
                raise InputError(f"target of {key!r}", expected="a goal that takes a position or a rotation")
            raise unknown_name("goal on a joint", key, [str(name) for name in self._goals_by_key])
        if len(places) > 1:
            fitting = [i for i in places if goals[i].takes == parts]
            if len(fitting) > 1:  # the others have names of their own, by which targets can address them
                fitting = [i for i in fitting if goals[i].name is None]
            if len(fitting) != 1:
                named = [str(goals[i].name) for i in places if goals[i].name is not None]
                hint = "give each of them a name, and use those" + (
                    f" (named so far: {listed(named)})" if named else ""
                )
                raise UnknownNameError(f"{key!r} means {len(places)} goals", hint=hint)
            return fitting[0]
        return places[0]

    def _assign(self, given: dict[int, int], key: Any, parts: int) -> int:
        """Return the index of the goal with this key, and record which parts of its target are given.

        Raises:
            InputError: If another key gives the same part.
        """
        i = self.goal_of(key, parts)
        if given.get(i, 0) & parts:
            raise InputError(
                f"target of {key!r}", expected="one target for each goal", hint="use only one name of its joint"
            )
        given[i] = given.get(i, 0) | parts
        return i


def targets_from(
    motion: Motion, joints: Iterable[str] | Mapping[str, str], *, rotations: bool = False
) -> dict[str, Array]:
    """Return targets for ``IK.track`` that follow joints of a clip.

    A ``PoseGoal`` needs ``rotations``: if only positions are given, it keeps the rotation of the start in all frames.

    Args:
        motion: The clip.
        joints: Names of joints, if the clip uses the same names, or a dict from joints to joints of the clip.
        rotations: Whether to follow rotations too.

    Returns:
        By joint: positions (T, 3) in the clip's length unit, or transforms (T, 4, 4) with ``rotations``.

    Raises:
        InputError: If no joint is named.
        UnknownNameError: If the clip has no such joint.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> motion = sy.Motion(body, [body.rest_pose().q] * 10, 30.0)
        >>> ik = sy.IK(body, [sy.PoseGoal("left_hand")])
        >>> ik.track(sy.targets_from(motion, ["left_hand"], rotations=True)).reached.all().item()
        True
    """
    check_kind("motion", motion, Motion, "sy.load_motion(path) reads one")
    if isinstance(joints, str):
        joints = [joints]
    pairs = dict(cast("Mapping[str, str]", joints)) if isinstance(joints, Mapping) else {name: name for name in joints}
    if not pairs:
        raise InputError("joints", expected="at least one name")
    found = {own: motion.skeleton.locate(other) for own, other in pairs.items()}
    frames = motion.frames()
    return {
        own: _path(frames[:, row], place) if rotations else _path(frames[:, row], place)[:, :3, 3].copy()
        for own, (row, place) in found.items()
    }


def _path(frames: Array, place: Array | None) -> Array:
    """Return world transforms (T, 4, 4) of a frame ``place`` on a joint, given the joint's world frames (T, 12)."""
    transforms = frames_to_transforms(frames)
    return transforms if place is None else transforms @ place


def table_of(wanted: Sequence[Array], takes: Sequence[int], *, rest: int = 0) -> Array:
    """Return the table of complete targets, (n, goals, 17).

    Args:
        wanted: Targets of each goal, (n, 4, 4).
        takes: Bits of the parts that each goal takes.
        rest: Number of further goals without targets.
    """
    out = np.zeros((len(wanted[0]), len(wanted) + rest, TARGET_WIDTH))
    out[:, :, :TRANSFORM_WIDTH] = np.eye(4).ravel()
    for i, (frames, parts) in enumerate(zip(wanted, takes, strict=True)):
        out[:, i, :TRANSFORM_WIDTH] = frames.reshape(-1, TRANSFORM_WIDTH)
        out[:, i, GIVEN] = float(parts)
    return out


def transforms(table: Array) -> Array:
    """Return a view of the transforms (T, goals, 4, 4) of a table of targets, (T, goals, 17)."""
    return table[..., :TRANSFORM_WIDTH].reshape(*table.shape[:-1], 4, 4)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a value; () for ragged lists and other values without a shape."""
    return np.shape(value) if dimensions(value) > 0 else ()


def parts_of(value: Any, *, many: bool = False) -> int:
    """Return bits of the parts that a target gives; 0 for an unknown form. ``many``: the target has a leading axis."""
    if hasattr(value, "as_matrix"):
        return ROTATION
    if _is_pair(value, many=many):
        return _BOTH
    return _PARTS.get(shape_of(value)[many:], 0)


def _index_by_key(goals: Sequence[Goal], rows: Sequence[int]) -> dict[str | int, list[int]]:
    """Map each key of targets to the indices of the goals with this name, or else of the goals on this joint.

    ``rows`` has the joint row of each goal, -1 for the whole body. ``goal_of`` looks up other names of a joint.
    """
    meanings: list[list[tuple[Any, int]]] = [
        [(goal.name, i) for i, goal in enumerate(goals) if goal.name is not None],
        [(goal.joint if rows[i] >= 0 else goal.label, i) for i, goal in enumerate(goals) if goal.takes],
    ]
    book: dict[str | int, list[int]] = {}
    for pairs in meanings:
        known = set(book)
        for key, i in pairs:
            if key is not None and key not in known:
                book.setdefault(key, []).append(i)
    return book


def _checked_table(targets: Any, goals: Sequence[Goal]) -> Mapping[Any, Any]:
    """Return the targets by key. If targets are not a mapping, they belong to the only goal that takes a target.

    Raises:
        InputError: If targets are not a mapping and several goals or none take a target.
    """
    if isinstance(targets, Mapping):
        return cast("Mapping[Any, Any]", targets)
    with_target = [goal for goal in goals if goal.takes]
    if len(with_target) == 1 and not isinstance(targets, str):
        return {_key_of(with_target[0]): targets}
    raise InputError("targets", value=targets, expected="a dict from joints or goals to their targets")


def _key_of(goal: Goal) -> str | int:
    """Return the key of a goal in a table of targets."""
    return goal.joint if goal.name is None and goal.joint is not None else goal.label


def _count_of(targets: Mapping[Any, Any]) -> int:
    """Return the number of problems in a table of targets with a leading axis.

    Raises:
        InputError: If the table is empty or its lengths differ.
    """
    lengths: dict[Any, int] = {}
    for key, value in targets.items():
        first = value[0] if _is_pair(value, many=True) else value
        try:
            lengths[key] = len(first)
        except TypeError as error:
            raise InputError(
                f"targets of {key!r}",
                value=first,
                expected="an array with a leading axis",
                hint="solve() takes one target, this method takes many",
            ) from error
    if not lengths:
        raise InputError("targets", expected="at least one joint with an array of targets")
    if len(set(lengths.values())) > 1:
        raise InputError("lengths of targets", value=lengths, expected="the same for all")
    return next(iter(lengths.values()))


def _is_pair(value: Any, *, many: bool = False) -> bool:
    """Return whether a value is a (position, rotation) pair, and not a list of two targets."""
    if not isinstance(value, tuple | list):
        return False
    pair = cast("Sequence[Any]", value)
    return len(pair) == 2 and (hasattr(pair[1], "as_matrix") or dimensions(pair[1]) == 2 + many)


def _filled(view: Array, shape: tuple[int, ...], value: tuple[Any, ...]) -> bool:
    """Write a target given as three floats, or as a position and a ``Rotation``; return False for any other form."""
    if shape is _POINT:
        if [*map(type, value)] != [float, float, float]:
            return False
        view[...] = value
        return True
    if len(value) != 2 or not hasattr(value[1], "as_matrix"):
        return False
    position, matrix = value[0], value[1].as_matrix()
    kind: type[object] = type(position)  # pyright: ignore[reportUnknownVariableType]  # it may be anything
    if kind is np.ndarray:
        if position.dtype != _DOUBLE or position.shape != _POINT:
            return False
    elif kind is not tuple or [*map(type, position)] != [float, float, float]:
        return False
    if matrix.shape != (3, 3):
        return False
    view[:3, :3] = matrix
    view[:3, 3] = position
    view[3] = _LAST_ROW
    return True


def _write(row: Array, goal: Goal, value: Any) -> None:
    """Write one target into a goal's row of the table, (17,), with all checks.

    Raises:
        InputError: If the value cannot be used or does not fit the goal.
    """
    where = f"target of {goal.label!r}"
    parts = parts_of(value)
    if parts == 0:
        raise InputError(
            where,
            value=value,
            expected="a position (3,), a Rotation, a pair of both, or a 4x4 transform",
            hint=quaternion_hint(value),
        )
    if not _fits(goal, parts):
        forms = {0: "no target", POSITION: "a position", ROTATION: "a rotation", _BOTH: "both"}
        raise InputError(
            where, value=value, expected=f"{forms[goal.takes]}, not {forms[parts]}", hint=f"the goal is {goal!r}"
        )
    # Rotations are only checked here: kernels and ``orthonormalize`` remove rounding, so single solves equal batches.
    frame = row[:TRANSFORM_WIDTH].reshape(4, 4)
    if parts == _BOTH and not _is_pair(value):
        as_transform(value, where)
        frame[:] = np.asarray(value, np.float64)
    else:
        pair = value if parts == _BOTH else (value, value)
        if parts & POSITION:
            frame[:3, 3] = as_numbers(pair[0], (3,), where)
        if parts & ROTATION:
            as_matrix(pair[1], where)
            frame[:3, :3] = _numbers_of(pair[1])
    row[GIVEN] = float(int(row[GIVEN]) | (parts & goal.takes))


def _write_many(rows: Array, goal: Goal, value: Any) -> Bools:
    """Write the targets of a batch of problems, (B, ...), into a goal's rows of the table, (B, 17).

    Returns:
        Mask of rows that are not finite; the kernel checks everything else.

    Raises:
        InputError: If the shape cannot be used or does not fit the goal.
    """
    where = f"targets of {goal.label!r}"
    parts = parts_of(value, many=True)
    if parts == 0:
        raise InputError(
            f"shape of {where}",
            value=shape_of(value),
            expected="(B, 3), a Rotation of B, a pair of both, or (B, 4, 4) for B problems",
            hint="this is one target: pass it to solve(), or pass [target] as a batch of one"
            if parts_of(value)
            else quaternion_hint(value),
        )
    if not _fits(goal, parts):
        raise InputError(where, expected=f"targets that fit {goal!r}")
    count = len(rows)
    frames = rows[:, :TRANSFORM_WIDTH].reshape(count, 4, 4)
    if parts == _BOTH and not _is_pair(value, many=True):
        frames[:] = as_numbers(value, (count, 4, 4), where, finite=False)
    else:
        pair = value if parts == _BOTH else (value, value)
        if parts & POSITION:
            frames[:, :3, 3] = as_numbers(pair[0], (count, 3), where, finite=False)
        if parts & ROTATION:
            frames[:, :3, :3] = as_numbers(_numbers_of(pair[1]), (count, 3, 3), where, finite=False)
    rows[:, :TRANSFORM_WIDTH] = frames.reshape(count, TRANSFORM_WIDTH)
    rows[:, GIVEN] = rows[:, GIVEN].astype(np.int64) | (parts & goal.takes)
    if all_finite(frames):
        return np.zeros(count, bool)
    return np.logical_not(np.isfinite(frames).all((1, 2)))


def _with_regular_rows(value: Any) -> tuple[Any, Bools | bool]:
    """Replace targets of another form than most targets by NaN; return the targets and a mask of the replaced ones.

    If all rows have the same form, or no row can be used, the targets are returned unchanged.
    """
    if _is_pair(value, many=True):
        (place, odd), (turn, also) = (_with_regular_rows(part) for part in value)
        return (place, turn), odd | also
    return regular_rows(value, {(3,), (3, 3), (4, 4)})


def regular_rows(value: Any, shapes: Collection[tuple[int, ...]]) -> tuple[Any, Bools | bool]:
    """Replace unreadable rows of values by NaN; return the rows and a mask of the replaced rows.

    Args:
        value: The rows. If all rows can be read, or none, they are returned unchanged.
        shapes: Allowed shapes of a row. Rows are kept only if they have the most frequent of these shapes.
    """
    if (type(value) is np.ndarray and value.dtype.kind in "fiu") or hasattr(value, "as_matrix"):
        return value, False
    with suppress(InputError):
        return as_numbers(value, shape_of(value), "rows", finite=False), False
    rows: list[Any] = [
        None if (row := _numbers_or_none(one)) is None or row.shape not in shapes else row for one in value
    ]
    counts = Counter(row.shape for row in rows if row is not None)
    if not counts:
        return value, False
    shape = counts.most_common(1)[0][0]
    kept = [row is not None and row.shape == shape for row in rows]
    empty = np.full(shape, np.nan)
    return np.array([row if keep else empty for row, keep in zip(rows, kept, strict=True)]), ~np.array(kept)


def _numbers_or_none(value: Any) -> Array | None:
    """Return a value as an array; None if it is not numeric."""
    try:
        return as_numbers(value, shape_of(value), "row", finite=False)
    except InputError:
        return None


def _fits(goal: Goal, parts: int) -> bool:
    """Return whether a goal takes a target with these parts. A transform may have more parts than the goal uses."""
    return bool(parts & goal.takes) and (parts == _BOTH or not parts & ~goal.takes)


def _numbers_of(rotation: Any) -> Any:
    """Return the matrices of a ``Rotation``; any other value is returned unchanged."""
    return rotation.as_matrix() if hasattr(rotation, "as_matrix") else rotation
