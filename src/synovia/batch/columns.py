"""Batches of rows: convert columns to targets, and answers to columns.

A batch is an Arrow ``RecordBatch`` or ``Table``, a pandas ``DataFrame``, or a dict from column names to arrays or
lists; the answer has the same form. The columns of a goal begin with its name, or the name of its joint:

    tool.x  tool.y  tool.z               position, in the length unit of the model's file
    tool.qx  tool.qy  tool.qz  tool.qw   rotation as a quaternion
    tool.position                        position as a list of three
    tool.quat_xyzw, tool.quat_wxyz       quaternion as a list of four
    tool.transform                       transform as a list of 16, row by row, or of four lists of four

The name can be left out if there is only one goal. ``start.NAME`` is a joint value of the start pose. NAME is the name
of the value in CSV files, such as ``start.joint1`` or ``start.hip.qx``, or another name of the joint. Joints without a
column start at rest, and mimic joints follow their leaders.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.goals.base import POSITION, ROTATION
from synovia.io.csvfile import JointColumns
from synovia.model import Skeleton
from synovia.model.geometry import LONGEST, ROUNDED, UNIT_SLACK, Array, quat_to_matrix
from synovia.model.pose import checked_q

STATUS, ERROR = "status", "error"
START: Final = "start."  # prefix of the names of joint values
_NO_REALS: Final = "cmM"  # NumPy kinds of complex numbers and times, whose conversion to float loses information
_PLACE: Final = ("x", "y", "z")
_TURN: Final = ("qx", "qy", "qz", "qw")
_LISTS: Final = {"position": 3, "quat_xyzw": 4, "quat_wxyz": 4, "transform": 16}
_WORDS: Final = frozenset((*_PLACE, *_TURN, *_LISTS))
Bools = NDArray[np.bool_]


class Batch:
    """The columns of a batch in any form.

    Args:
        given: The batch.

    Raises:
        InputError: If the form is unknown, or the columns have different lengths.
    """

    def __init__(self, given: Any) -> None:
        """Find the form of the batch."""
        self._given: Any = given
        kind = cast("Any", type(given)).__module__.partition(".")[0]
        self.is_arrow = kind == "pyarrow"
        self._is_frame = kind == "pandas"
        if self.is_arrow:
            self.names = [str(name) for name in given.schema.names]
            self.size = int(given.num_rows)
        elif self._is_frame:
            self.names = [str(name) for name in given.columns]
            self.size = len(given)
            if self.names != list(given.columns):  # if some column names are numbers
                self._given = given.rename(columns=str)
        elif isinstance(given, Mapping):
            self._given = {str(name): value for name, value in cast("Mapping[Any, Any]", given).items()}
            self.names = list(self._given)
            sizes = {name: _length(name, value) for name, value in self._given.items()}
            if len(set(sizes.values())) > 1:
                raise InputError("lengths of columns", value=sizes, expected="the same for all")
            self.size = next(iter(sizes.values()), 0)
        else:
            expected = "an Arrow batch or table, a data frame, or a dict of columns"
            raise InputError("batch", value=cast("object", given), expected=expected)

    def column(self, name: str) -> Any:
        """Return a column in its original form."""
        return self._given[name] if not self.is_arrow else self._given.column(name)

    def numbers(self, name: str, width: int = 0) -> Array:
        """Return a column of numbers, (B,), or of lists of ``width`` numbers, (B, width); NaN for missing values.

        Raises:
            InputError: If the column holds no real numbers.
        """
        value = self.column(name)
        if self.is_arrow and not width:
            value = value.to_numpy() if hasattr(value, "num_chunks") else value.to_numpy(zero_copy_only=False)
        if getattr(getattr(value, "dtype", None), "kind", "f") in _NO_REALS:
            raise InputError(f"column {name!r}", value=str(value.dtype), expected="real numbers")
        try:
            if width:
                return _lists(value, self.size, width, is_arrow=self.is_arrow)
            return _cells(value).reshape(self.size)
        except (TypeError, ValueError) as error:
            expected = f"lists of {width} numbers" if width else "numbers"
            raise InputError(f"column {name!r}", expected=expected, hint=str(error).partition("\n")[0]) from error

    def values(self, name: str) -> list[Any]:
        """Return a column as a list of Python values."""
        value = self.column(name)
        return value.to_pylist() if hasattr(value, "to_pylist") else list(value)

    def answer(self, keep: Sequence[str], new: Mapping[str, Any]) -> Any:
        """Return a batch of the same form.

        Args:
            keep: Columns of this batch to keep.
            new: Additional columns: arrays, ``Texts`` and ``Values``.
        """
        if self.is_arrow:
            arrow: Any = import_module("pyarrow")
            made = {name: _arrow_column(arrow, value) for name, value in new.items()}
            fields = [self._given.schema.field(name) for name in keep]
            fields += [arrow.field(name, column.type) for name, column in made.items()]
            columns = [*map(self._given.column, keep), *made.values()]
            form = cast("Any", type(self._given))
            return form.from_arrays(columns, schema=arrow.schema(fields))
        if self._is_frame:
            return self._given[list(keep)].assign(**{name: _plain(value, "texts") for name, value in new.items()})
        out: dict[str, Any] = {name: self._given[name] for name in keep}
        return out | {name: _plain(value, "array") for name, value in new.items()}


def _length(name: Any, value: Any) -> int:
    """Return the number of rows of a column.

    Raises:
        InputError: If the column is a single value.
    """
    single = isinstance(value, (str, bytes, Mapping))
    with suppress(TypeError):
        if not single:
            return len(value)
    raise InputError(f"column {name!r}", value=value, expected="a list with a value for each row", hint="write [value]")


class Values(NamedTuple):
    """A column with a fixed type, so that all batches have the same schema.

    Args:
        rows: The value of each row; None for a missing value.
        kind: ``"text"``, or ``"clip"`` for arrays of joint values (frames, nq).
    """

    rows: list[Any]
    kind: str

    def plain(self) -> list[Any]:
        """Return the rows for a data frame or a dict; an empty text for a missing text."""
        return ["" if row is None else row for row in self.rows] if self.kind == "text" else self.rows

    def in_arrow(self, arrow: Any) -> Any:
        """Return the rows as an Arrow array."""
        if self.kind == "text":
            return arrow.array(self.rows, arrow.string())
        lists = [None if row is None else row.tolist() for row in self.rows]
        return arrow.array(lists, arrow.list_(arrow.list_(arrow.float64())))


class Texts(NamedTuple):
    """A column of few distinct texts, stored as codes.

    Args:
        codes: Index of each row's text in ``known``; -1 for no text.
        known: The distinct texts.
    """

    codes: NDArray[np.int32]
    known: Sequence[str]

    def texts(self) -> list[str | None]:
        """Return the text of each row."""
        known = [*self.known, None]
        return [known[code] for code in self.codes.tolist()]

    def array(self) -> NDArray[Any]:
        """Return an array of objects; an empty text for a missing text."""
        return np.array([*self.known, ""], dtype=object)[self.codes]


def _plain(value: Any, method: str) -> Any:
    """Return a column as plain values; ``method`` converts ``Texts``: "texts" for a data frame, "array" for a dict."""
    if isinstance(value, Values):
        return value.plain()
    return getattr(value, method)() if isinstance(value, Texts) else value


def _arrow_column(arrow: Any, value: Any) -> Any:
    """Return a column as an Arrow array."""
    if isinstance(value, Texts):
        codes = arrow.array(value.codes, mask=value.codes < 0)
        known = arrow.array(list(value.known), arrow.string())
        return arrow.DictionaryArray.from_arrays(codes, known).cast(arrow.string())
    return value.in_arrow(arrow) if isinstance(value, Values) else arrow.array(value)


def _cells(cells: Any) -> Array:
    """Convert cells to numbers; a cell without a number becomes NaN, so that it only affects its own row.

    Integers too large for a float become infinite.

    Raises:
        TypeError: If no cell holds a number, and not all are empty.
        ValueError: In the same case, depending on the cells.
    """
    try:
        return np.asarray(cells, np.float64)
    except (TypeError, ValueError, OverflowError):
        out = np.full(len(cells), np.nan)
        for i, cell in enumerate(cells):
            with suppress(TypeError, ValueError):
                try:
                    out[i] = float(cell)
                except OverflowError:
                    out[i] = np.inf
        if np.isnan(out).all() and not all(map(_is_missing, cells)):
            raise  # the column holds no numbers
        return out


def _is_missing(cell: Any) -> bool:
    """Return whether a cell is empty: None, an empty text, NaN, or a missing value of pandas."""
    return cell is None or (isinstance(cell, str) and not cell) or is_missing_number(cell)


def is_missing_number(cell: Any) -> bool:
    """Return whether a cell is NaN or a missing value of pandas."""
    return type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, (float, np.floating)) and cell != cell)


def _lists(value: Any, size: int, width: int, *, is_arrow: bool) -> Array:
    """Convert a column of lists to numbers, (B, width); NaN for a row that is missing or has another length.

    An integer too large for a float makes its row infinite.

    Raises:
        TypeError: If no row has this length, and not all are missing.
        ValueError: In the same case, depending on the rows.
    """
    if is_arrow and value.null_count == 0 and hasattr(value, "flatten"):
        flat = value.combine_chunks() if hasattr(value, "num_chunks") else value
        even = True
        while hasattr(flat, "values") and hasattr(flat, "flatten"):
            even = even and (hasattr(flat.type, "list_size") or len(set(np.diff(flat.offsets.to_numpy()).tolist())) < 2)
            flat = flat.flatten()
        numbers = np.asarray(flat.to_numpy(zero_copy_only=False), np.float64)
        if even and len(numbers) == size * width:
            return numbers.reshape(size, width)
    rows = value.to_pylist() if hasattr(value, "to_pylist") else value
    out = np.full((size, width), np.nan)
    none, wrong = True, None
    for i, row in enumerate(rows):
        if _is_missing(row):
            continue
        try:
            out[i] = np.asarray(row, np.float64).reshape(width)
            none = False
        except OverflowError:
            out[i], none = np.inf, False
        except (TypeError, ValueError) as error:
            wrong = error
    if none and wrong is not None:
        raise wrong  # the column holds no lists of this length
    return out


class _Part(NamedTuple):
    """Columns that give the position or the rotation of a goal."""

    word: str  # key of ``_LISTS``: "x" for x, y, z, or "qx" for a quaternion
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetColumns:
    """The columns that give the targets of each goal.

    Args:
        parts: Columns of each goal, by the key of the goal.
    """

    parts: Mapping[str, tuple[_Part, ...]]

    @staticmethod
    def find(names: Sequence[str], only: str | None) -> TargetColumns:
        """Find the columns that give targets.

        Args:
            names: All columns.
            only: Key of the goal whose name may be left out; None if there are several goals.

        Raises:
            InputError: If columns of a goal are missing, or its position or rotation is given twice.
        """
        found: dict[str, dict[str, str]] = {}
        for name in names:
            key, dot, word = name.rpartition(".")
            if word in _WORDS and (dot or only is not None):
                found.setdefault(key if dot else only or "", {})[word] = name
        parts = {key: _parts_of(key, words) for key, words in found.items()}
        return TargetColumns({key: part for key, part in parts.items() if part})

    @property
    def used(self) -> set[str]:
        """Names of all columns of targets."""
        return {name for parts in self.parts.values() for part in parts for name in part.columns}

    def takes(self, key: str) -> int:
        """Return whether a goal's columns give ``POSITION``, ``ROTATION`` or both, as flags."""
        bits = {"x": POSITION, "position": POSITION, "transform": POSITION | ROTATION}
        out = 0
        for part in self.parts[key]:
            out |= bits.get(part.word, ROTATION)
        return out

    def read(self, batch: Batch) -> tuple[dict[str, Any], NDArray[np.int32], list[str]]:
        """Return the targets of a batch by goal, and the reasons why rows cannot be used.

        Returns:
            Targets for ``solve_many``; for each row the index of its reason, -1 for a valid row; the reasons.
        """
        targets: dict[str, Any] = {}
        wrong = np.full(batch.size, -1, np.int32)
        reasons: list[str] = []
        for key, parts in self.parts.items():
            place = turn = None
            for part in parts:
                values = self._values(batch, part)
                finite = np.isfinite(values).all(1)
                size = f"{_LISTS[part.word]} " if part.word in _LISTS else ""
                expected = f"expected {size}finite numbers, got a missing, infinite, NaN or non-numeric value"
                _mark(wrong, reasons, ~finite, f"target of {key!r}: {expected}")
                if part.word == "transform":
                    frames = values.reshape(-1, 4, 4)
                    place, turn = frames[:, :3, 3], frames[:, :3, :3]
                    last = np.abs(frames[:, 3] - (0.0, 0.0, 0.0, 1.0)).max(1) > ROUNDED
                    _mark(wrong, reasons, last & finite, f"last row of the transform of {key!r}: expected 0 0 0 1")
                    _mark(
                        wrong,
                        reasons,
                        ~_orthonormal(turn) & finite,
                        f"rotation of {key!r}: expected an orthonormal matrix of determinant 1",
                    )
                elif part.word in ("x", "position"):
                    place = values
                else:
                    quat = values[:, [1, 2, 3, 0]] if part.word == "quat_wxyz" else values
                    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                        length = np.sqrt(np.einsum("ij,ij->i", quat, quat))
                        off = ~(np.abs(length - 1.0) <= UNIT_SLACK) & finite
                        turn = quat_to_matrix(quat / length[:, None])
                    _mark(wrong, reasons, off, f"quaternion of {key!r}: expected length 1")
            if place is not None:
                with np.errstate(invalid="ignore"):
                    far = np.abs(place).max(1, initial=0.0) > LONGEST
                _mark(wrong, reasons, far, f"target of {key!r}: expected a position within {LONGEST:g} length units")
            if place is None:
                targets[key] = turn
            elif turn is None:
                targets[key] = place
            else:
                frames = np.zeros((batch.size, 4, 4))
                frames[:, :3, :3], frames[:, :3, 3], frames[:, 3, 3] = turn, place, 1.0
                targets[key] = frames
        return targets, wrong, reasons

    @staticmethod
    def _values(batch: Batch, part: _Part) -> Array:
        """Return the numbers in the columns of a position or a rotation, (B, width)."""
        if part.word in _LISTS:
            return batch.numbers(part.columns[0], _LISTS[part.word])
        return np.stack([batch.numbers(name) for name in part.columns], axis=1)


def _parts_of(key: str, words: Mapping[str, str]) -> tuple[_Part, ...]:
    """Return the columns of a goal, grouped into position and rotation.

    Args:
        key: Name of the goal.
        words: Names of its columns, by the last word of the name.
    """
    where = f"columns of {key!r}" if key else "columns"
    parts: list[_Part] = []
    for group in (_PLACE, _TURN):
        there = [word for word in group if word in words]
        if there and len(there) < len(group):
            raise InputError(where, value=there, expected=f"all of {', '.join(group)}")
        if there:
            parts.append(_Part(group[0], tuple(words[word] for word in group)))
    parts += [_Part(word, (words[word],)) for word in _LISTS if word in words]
    for same in (("x", "position", "transform"), ("qx", "quat_xyzw", "quat_wxyz", "transform")):
        several = [part.word for part in parts if part.word in same]
        if len(several) > 1:
            raise InputError(where, value=several, expected="only one of these")
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class StartColumns:
    """The columns that give the start pose of each row.

    Args:
        skeleton: The skeleton to solve for.
        places: By index in q, the name of the column that gives this value.
    """

    skeleton: Skeleton
    places: Mapping[int, str]

    @staticmethod
    def find(names: Sequence[str], skeleton: Skeleton) -> StartColumns:
        """Find the columns that give joint values of the start.

        Raises:
            InputError: If two columns give the same joint value.
            UnknownNameError: If a column belongs to no joint, or several joints have its name.
        """
        places = JointColumns(skeleton).places([name.removeprefix(START) for name in names], START)
        return StartColumns(skeleton, dict(zip(places, names, strict=True)))

    def read(self, batch: Batch, wrong: NDArray[np.int32], reasons: list[str]) -> Array | None:
        """Return the start of each row, (B, nq), or None without columns; mark rows with an invalid start.

        Args:
            batch: The batch.
            wrong: Index of each row's reason, -1 for a valid row; updated.
            reasons: The reasons; extended.
        """
        if not self.places:
            return None
        q = np.tile(self.skeleton.rest_q, (batch.size, 1))
        for place, name in self.places.items():
            q[:, place] = batch.numbers(name)
        with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are marked below
            self.skeleton.follow(q)
        _mark(
            wrong,
            reasons,
            ~np.isfinite(q).all(1),
            "start: expected finite numbers, got a missing, infinite or NaN value",
        )
        good = np.flatnonzero(wrong < 0)
        try:
            q[good] = checked_q(self.skeleton, q[good], "start")
        except InputError:  # if the batch has invalid rows, find them row by row
            for row in good.tolist():
                try:
                    q[row] = checked_q(self.skeleton, q[row], "start")
                except InputError as error:
                    wrong[row] = len(reasons)
                    reasons.append(str(error))
        return q


def _orthonormal(turn: Array) -> Bools:
    """Return a mask of the matrices (B, 3, 3) that are rotations."""
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.abs(np.einsum("bji,bjk->bik", turn, turn) - np.eye(3)).max((1, 2), initial=0.0)
        return (off <= ROUNDED) & (np.linalg.det(turn) > 0.0)


def _mark(wrong: NDArray[np.int32], reasons: list[str], rows: Any, reason: str) -> None:
    """Mark rows as invalid with a reason, unless they already have one."""
    rows = rows & (wrong < 0)
    if rows.any():
        wrong[rows] = len(reasons)
        reasons.append(reason)


def check_names(keep: Sequence[str], new: Collection[str]) -> None:
    """Check that no new column of an answer has the name of a kept column.

    Raises:
        InputError: If a name occurs twice.
    """
    both = [name for name in keep if name in new]
    if both:
        raise InputError(
            f"column {both[0]!r}",
            expected="a name that differs from the columns of the result",
            hint="rename this input column, or leave it out of keep=",
        )
