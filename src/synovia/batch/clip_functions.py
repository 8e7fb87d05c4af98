"""``Retarget`` and ``Fit``: functions from a batch of rows, each a clip, to a batch of clips, for any engine.

The functions can be pickled. The columns of an answer and their types depend only on the columns of the batch. A row
that cannot be used gets the status ``failed`` and an error, and does not stop the others. A setting that cannot be used
raises an exception when the function is created.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Unpack

import numpy as np

from synovia.arguments import takes
from synovia.batch.clips import JUDGED, judged, notes_of, point_errors, target_of
from synovia.batch.columns import ERROR, STATUS, Batch, Values, check_names, is_missing_number
from synovia.batch.functions import skeleton_of
from synovia.batch.work import DONE, FAILED, joined, one_line, user_warnings
from synovia.clips import find_ends, fit_positions
from synovia.errors import InputError, SynoviaError
from synovia.io.load import load_motion
from synovia.model import Skeleton
from synovia.model.geometry import as_numbers
from synovia.model.motion import Motion
from synovia.retargeting import retarget
from synovia.retargeting.body import Body
from synovia.retargeting.joint_map import check_map
from synovia.retargeting.options import RetargetOptions, checked_options

_EMPTY: Final = {str: None, int: 0, float: float("nan")}  # figures of a failed row, by type


class _ClipFunction(ABC):
    """A function of a batch with a clip in each row; it adds status, error, notes, joint values, rate and figures."""

    _figures: ClassVar[Mapping[str, type]]  # columns of figures, with their types
    _needed: ClassVar[str]  # name of the required column
    _content: ClassVar[str]  # content of the required column, for messages
    _further: ClassVar[tuple[str, ...]] = ()  # names of the optional columns

    @abstractmethod
    def _clip(self, row: Mapping[str, Any]) -> tuple[Motion, Mapping[str, Any], Sequence[str]]:
        """Return the motion of a row, its figures, and notes for the user."""

    def _used(self, names: Sequence[str]) -> list[str]:
        """Return the names of the columns that the function reads.

        Raises:
            InputError: If the required column is missing.
        """
        if self._needed not in names:
            raise InputError("columns", value=list(names), expected=f"a column {self._needed!r} with {self._content}")
        return [name for name in (self._needed, *self._further) if name in names]

    def _kept(self, names: Sequence[str]) -> list[str]:
        """Return the names of the columns of a batch that the answer keeps."""
        used = self._used(names)
        keep = [name for name in names if name not in used or name == "path"]
        check_names(keep, self._new_columns())
        return keep

    def _new_columns(self) -> dict[str, type]:
        """Return the columns that an answer adds, with their types."""
        return {STATUS: str, ERROR: str, "notes": str, "frames": int, "fps": float, "q": list, **self._figures}

    def answer_columns(self, names: Sequence[str]) -> list[str]:
        """Return the names of the answer's columns for batches with these columns.

        Raises:
            InputError: If the required column is missing, or a kept column has the name of an added one.
        """
        return [*self._kept(names), *self._new_columns()]

    def __call__(self, batch: Any) -> Any:
        """Return the clips of a batch: an Arrow batch or table, a DataFrame, or a dict of columns.

        Raises:
            InputError: If columns are missing.
        """
        rows = Batch(batch)
        keep = self._kept(rows.names)
        values = {name: rows.values(name) for name in self._used(rows.names)}
        made = [self._row(dict(zip(values, row, strict=True))) for row in zip(*values.values(), strict=True)]
        new: dict[str, Any] = {}
        for name, kind in self._new_columns().items():
            column = [row[name] for row in made]
            if kind in (str, list):
                new[name] = Values(column, "clip" if kind is list else "text")
            else:
                new[name] = np.array(column, np.int64 if kind is int else np.float64)
        return rows.answer(keep, new)

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the new columns for a row."""
        values: dict[str, Any]
        found: Mapping[str, Any] = {}
        notes: Sequence[str] = ()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                motion, found, notes = self._clip(row)
                values = {STATUS: DONE, ERROR: None, "frames": len(motion), "fps": float(motion.fps), "q": motion.q}
            except Exception as error:  # noqa: BLE001  a bug that affects one clip only gives a failed row
                text = one_line(error) if isinstance(error, SynoviaError) else f"{type(error).__name__}: {error}"
                values = {STATUS: FAILED, ERROR: text, "frames": 0, "fps": float("nan"), "q": np.zeros((0, 0))}
        values["notes"] = joined([*notes, *user_warnings(caught)]) or None
        return values | {name: found.get(name, _EMPTY[kind]) for name, kind in self._figures.items()}


class Retarget(_ClipFunction):
    """Retarget a batch of clips to another body.

    The column ``path`` names files of clips. The answer keeps the columns of the batch and adds ``status`` ("done" or
    "failed"), ``error``, ``notes``, ``frames``, ``fps``, ``q`` (joint values of each frame, as a list of lists),
    ``missed`` (frames), ``worst`` (length units), ``scale``, and the judgement: ``verdict``, ``findings``,
    ``bad_frames``, ``foot_slide``, ``foot_depth``, ``limb_deg``. Figures of a row that failed are NaN, 0 or empty.

    Args:
        skeleton: The target body: a skeleton, a file, or the name of a bundled model.
        joint_map: As in ``sy.retarget``.
        clip: Name or number of the clip in each file; None for the first.
        options: As in ``sy.retarget``.

    Raises:
        InputError: If no part of the body is recognized, or the map has no pairs.
        UnknownNameError: If ``joint_map`` names a joint that the body does not have.
    """

    _figures: ClassVar[Mapping[str, type]] = {"missed": int, "worst": float, "scale": float, **JUDGED}
    _needed: ClassVar[str] = "path"
    _content: ClassVar[str] = "paths of clip files"

    @takes(RetargetOptions)
    def __init__(
        self,
        skeleton: Skeleton | str | os.PathLike[str],
        joint_map: Mapping[str, tuple[Any, Any]] | None = None,
        *,
        clip: str | int | None = None,
        **options: Unpack[RetargetOptions],
    ) -> None:
        """Read the model and check the settings."""
        self._target = skeleton if isinstance(skeleton, Skeleton) else target_of(str(skeleton))
        self.skeleton = self._target.skeleton if isinstance(self._target, Motion) else self._target
        given = None if joint_map is None else check_map(joint_map)
        roles = None if given is None else {role: self.skeleton.index(pair[1]) for role, pair in given.items()}
        Body.of(self.skeleton, roles).recognised()
        checked_options(options)
        self._map, self._options = given, options
        self._clip_of = int(clip) if isinstance(clip, str) and clip.isdecimal() else clip

    def _clip(self, row: Mapping[str, Any]) -> tuple[Motion, Mapping[str, Any], Sequence[str]]:
        """Return the motion of a row, its figures, and its notes."""
        path = row["path"]
        if path is None or is_missing_number(path):
            raise InputError("path is missing", expected="the path of a clip file")
        if not isinstance(path, str | Path) or not str(path):
            raise InputError("path", value=path, expected="the path of a clip file")
        motion = load_motion(path, self._clip_of)
        ends = [f"{note} (--trim-tpose cuts this off)" for note in find_ends(motion).notes]
        notes = [*dict.fromkeys((*motion.skeleton.notes, *motion.notes)), *ends]
        answer = retarget(motion, self._target, self._map, threads=1, **self._options)
        figures = {"missed": len(answer.missed_frames), "worst": float(answer.worst), "scale": float(answer.scale)}
        return answer.motion, figures | judged(answer.judgement), [*notes, *notes_of(answer)]


class Fit(_ClipFunction):
    """Fit a body to points over time, a clip in each row.

    The column ``positions`` holds the points of each clip as nested lists (frames, points, 3); None for an unseen point
    or frame. The columns ``fps`` and ``confidence`` are optional. The answer keeps the other columns and adds
    ``status`` ("done" or "failed"), ``error``, ``notes``, ``frames``, ``fps``, ``q`` (joint values of each frame, as a
    list of lists), and ``median_error`` and ``p99_error`` (length units). Figures of a row that failed are NaN.

    Args:
        skeleton: The body: a skeleton, a file, or the name of a bundled model.
        joints: Joint of each point; None for all joints in order.
        fps: Frames per second of rows without a value in the column ``fps``.
        smoothness: As in ``sy.fit_positions``.

    Raises:
        InputError: If ``fps`` or ``smoothness`` cannot be used.
        UnknownNameError: If a joint does not exist.
    """

    _figures: ClassVar[Mapping[str, type]] = {"median_error": float, "p99_error": float}
    _needed: ClassVar[str] = "positions"
    _content: ClassVar[str] = "lists of points"
    _further: ClassVar[tuple[str, ...]] = ("fps", "confidence")

    def __init__(
        self,
        skeleton: Skeleton | str | os.PathLike[str],
        joints: Sequence[str | int] | None = None,
        *,
        fps: float = 30.0,
        smoothness: float | None = None,
    ) -> None:
        """Read the model and check the settings."""
        self.skeleton = skeleton_of(skeleton)
        if isinstance(joints, str):
            raise InputError("joints", value=joints, expected="a list of joints", hint=f"write [{joints!r}]")
        for joint in joints or ():
            self.skeleton.locate(joint)
        self._joints = None if joints is None else list(joints)
        self._fps = float(as_numbers(fps, (), "fps"))
        if self._fps <= 0.0:
            raise InputError("fps", value=fps, expected="frames per second above 0")
        self._smoothness = None if smoothness is None else float(as_numbers(smoothness, (), "smoothness"))
        if self._smoothness is not None and self._smoothness < 0.0:
            raise InputError("smoothness", value=smoothness, expected="0 or more")

    def _clip(self, row: Mapping[str, Any]) -> tuple[Motion, Mapping[str, Any], Sequence[str]]:
        """Return the motion of a row, its figures, and its notes."""
        rate, weights = row.get("fps"), row.get("confidence")
        fitted = fit_positions(
            _points(row["positions"]), self.skeleton, self._joints,
            confidence=None if is_missing_number(weights) else weights,
            fps=self._fps if rate is None or is_missing_number(rate) else rate, smoothness=self._smoothness, threads=1,
        )  # fmt: skip
        return fitted, point_errors(fitted), fitted.notes


def _points(given: Any) -> Any:
    """Return the points of a clip, (frames, points, 3); NaN for points and frames that are None.

    Raises:
        InputError: If the points have another form.
    """
    expected = "nested lists (frames, points, 3), with None for unseen points or frames"
    if given is None or is_missing_number(given):
        raise InputError("positions are missing", expected=expected)
    try:
        frames = [None if frame is None else list(frame) for frame in given]
        width = max((len(frame) for frame in frames if frame is not None), default=0)
        gap = [float("nan")] * 3
        filled = [
            [gap if point is None else list(point) for point in ([None] * width if frame is None else frame)]
            for frame in frames
        ]
        return np.array(filled, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError("positions", expected=expected, hint=str(error).partition("\n")[0]) from error
