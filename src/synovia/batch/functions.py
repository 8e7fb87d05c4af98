"""``Solve``, ``Retarget`` and ``Fit``: functions from a batch of rows to a batch of rows, for any engine.

They can be pickled: each process builds its own compiled problem when it gets its first batch. Every answer has the
columns ``status`` and ``error``; a row that cannot be used has the status ``INVALID`` and never stops the others.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from synovia.batch.columns import ERROR, INVALID, STATUS, Batch, TargetColumns, Texts, check_names
from synovia.batch.tasks import judged, load_clip
from synovia.clips import fit_positions
from synovia.errors import InputError, SynoviaError, UnknownNameError, UnsupportedError
from synovia.facade import IK
from synovia.goals import Goal, PoseGoal, PositionGoal, RotationGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.status import Status
from synovia.io.csvfile import columns as joint_columns
from synovia.io.load import load_model
from synovia.model import Skeleton
from synovia.model.motion import Motion
from synovia.model.root import Root
from synovia.retargeting import retarget
from synovia.solver import Solver, SolverName

_STATUSES: Final = (*(status.name for status in Status), INVALID)
_GOALS: Final = {POSITION: PositionGoal, ROTATION: RotationGoal, POSITION | ROTATION: PoseGoal}


def _skeleton_of(model: Any) -> Skeleton:
    """Return a skeleton, or that of a file or a bundled model."""
    return model if isinstance(model, Skeleton) else load_model(str(model))


class Solve:
    """Solve a batch of targets: columns of targets in, joint values, errors and status out.

        >>> import numpy as np
        >>> solve = Solve("arm7")
        >>> answer = solve({"tool.x": [0.4], "tool.y": [0.1], "tool.z": [0.5], "id": ["first"]})
        >>> answer["id"], str(answer["status"][0]), answer["joint1"].shape
        (['first'], 'REACHED', (1,))

    A goal's columns begin with its name or that of its joint: ``tool.x tool.y tool.z`` for the position,
    ``tool.qx tool.qy tool.qz tool.qw`` for the rotation; or lists: ``tool.position``, ``tool.quat_xyzw``,
    ``tool.quat_wxyz``, ``tool.transform``. With one goal, the name can be left out. The columns of the answer are those
    of the batch that give no targets, then ``status``, ``error``, ``steps``, ``NAME.position_error`` (length units) and
    ``NAME.angle_error`` (radians) of each goal, and one column for each joint value, with the names of ``q`` in CSV
    files.

    Args:
        skeleton: The skeleton, a file, or the name of a bundled model.
        goals: One goal or several; None for a goal on each joint that has columns.
        solver: As in ``IK``.
        tolerance: As in ``IK``.
        root: As in ``IK``.
        simd: As in ``IK.solve_many``; None to use SIMD where the solver supports it.
        threads: Number of threads; one by default, because engines run several processes. None for all cores.
        keep: Columns of the batch to keep; None for all that give no targets.
    """

    def __init__(
        self,
        skeleton: Skeleton | str | os.PathLike[str],
        goals: Goal | Iterable[Goal] | None = None,
        solver: Solver | SolverName | None = None,
        *,
        tolerance: tuple[float, float] | None = None,
        root: Root = "fixed",
        simd: bool | str | None = None,
        threads: int | None = 1,
        keep: Sequence[str] | None = None,
    ) -> None:
        """Read the model; the problem is built with the first batch."""
        self.skeleton = _skeleton_of(skeleton)
        self._goals = None if goals is None else (goals,) if isinstance(goals, Goal) else tuple(goals)
        self._solver: Solver | SolverName | None = solver
        self._tolerance, self._root = tolerance, root
        self._simd, self._threads, self._keep = simd, threads, keep
        self._built: dict[tuple[str, ...], tuple[IK, TargetColumns]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but what is compiled."""
        return {**self.__dict__, "_built": {}}

    def __repr__(self) -> str:
        """Return the model."""
        return f"Solve({self.skeleton.name!r})"

    def problem(self, names: Sequence[str]) -> tuple[IK, TargetColumns]:
        """Return the compiled problem for batches with these columns, and which columns give its targets.

        Raises:
            InputError: If no column gives a target, or some columns of a target are missing.
            UnknownNameError: If a column belongs to no joint or goal.
        """
        key = tuple(names)
        if key not in self._built:
            self._built[key] = self._build(names)
        return self._built[key]

    def _build(self, names: Sequence[str]) -> tuple[IK, TargetColumns]:
        """Build the problem."""
        if self._goals is not None:
            goals = self._goals
            taking = [goal for goal in goals if goal.takes]
            only = str(taking[0].label) if len(taking) == 1 else None
            targets = TargetColumns.find(names, only)
        else:
            tips = self.skeleton.tips
            targets = TargetColumns.find(names, tips[0] if len(tips) == 1 else None)
            targets = TargetColumns({key: parts for key, parts in targets.parts.items() if self._has(key)})
            goals = tuple(_GOALS[targets.takes(key)](key) for key in targets.parts)
        if not targets.parts:
            expected = "columns of targets, such as NAME.x, NAME.y, NAME.z with the name of a joint"
            raise InputError("columns", value=list(names), expected=expected)
        ik = IK(self.skeleton, goals, self._solver, tolerance=self._tolerance, root=self._root)
        return ik, targets

    def _has(self, key: str) -> bool:
        """Return whether a joint has this name, body or role."""
        try:
            self.skeleton.index(key)
        except UnknownNameError:
            return False
        return True

    def answer_columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns of the answer to batches with these columns."""
        ik, targets = self.problem(names)
        return [*self._kept(names, targets), *_answer(ik, 0, None, np.zeros(0, np.int32), [])]

    def _kept(self, names: Sequence[str], targets: TargetColumns) -> list[str]:
        """Return the columns to keep."""
        used = targets.used
        return [name for name in names if (name not in used if self._keep is None else name in self._keep)]

    def __call__(self, batch: Any) -> Any:
        """Return the answers to a batch: an Arrow batch or table, a DataFrame, or a dict of columns.

        Raises:
            InputError: If columns are missing, or of a wrong kind.
        """
        rows = Batch(batch)
        ik, columns = self.problem(rows.names)
        keep = self._kept(rows.names, columns)
        targets, wrong, reasons = columns.read(rows)
        good = wrong < 0
        solved = None
        if good.all():
            solved = self._solved(ik, targets) if rows.size else None
        elif good.any():
            solved = self._solved(ik, {key: value[good] for key, value in targets.items()})
        new = _answer(ik, rows.size, solved, wrong, reasons)
        check_names(keep, list(new))
        return rows.answer(keep, new)

    def _solved(self, ik: IK, targets: Mapping[str, Any]) -> Any:
        """Return the solutions; find out whether the solver supports SIMD for this problem."""
        if self._simd is None:
            try:
                found = ik.solve_many(dict(targets), simd=True, threads=self._threads)
            except UnsupportedError:
                self._simd = False
            else:
                self._simd = True
                return found
        return ik.solve_many(dict(targets), simd=self._simd, threads=self._threads)


def _answer(ik: IK, size: int, solved: Any, wrong: Any, reasons: Sequence[str]) -> dict[str, Any]:
    """Return the new columns of an answer.

    Args:
        ik: The problem.
        size: Number of rows.
        solved: The solutions of the rows that can be used; None if there are none.
        wrong: Number of each row's reason, -1 for rows that can be used.
        reasons: The reasons.
    """
    good = wrong < 0
    every = bool(good.all())

    def spread(values: Any, empty: float) -> Any:
        """Return a value for each row of the batch."""
        if every and solved is not None:
            return values
        out = np.full(size, empty, np.float64 if isinstance(empty, float) and np.isnan(empty) else np.int32)
        if solved is not None:
            out[good] = values
        return out

    codes = spread(None if solved is None else solved.status.astype(np.int32), len(_STATUSES) - 1)
    columns: dict[str, Any] = {
        STATUS: Texts(np.asarray(codes, np.int32), _STATUSES),
        ERROR: Texts(wrong, list(reasons)),
        "steps": spread(None if solved is None else solved.steps.astype(np.int32), 0),
    }
    errors = None if solved is None else solved.errors
    for i, goal in enumerate(ik.goals):
        for bit, at, word in ((POSITION, 0, "position_error"), (ROTATION, 1, "angle_error")):
            if goal.measures & bit:
                value = None if errors is None else np.ascontiguousarray(errors[:, i, at])
                columns[f"{goal.label}.{word}"] = spread(value, np.nan)
    q = None if solved is None else np.asfortranarray(solved.q)
    for i, name in enumerate(joint_columns(ik.skeleton)):
        columns[name] = spread(None if q is None else q[:, i], np.nan)
    return columns


class _ClipFunction(ABC):
    """A function of rows that are clips: joint values, frame rate and figures out, with status and error."""

    @abstractmethod
    def _clip(self, row: Mapping[str, Any]) -> tuple[Motion, Mapping[str, Any]]:
        """Return the motion of a row, and its figures."""

    @abstractmethod
    def _used(self, names: Sequence[str]) -> Sequence[str]:
        """Return the columns that are read.

        Raises:
            InputError: If one is missing.
        """

    def __call__(self, batch: Any) -> Any:
        """Return the clips of a batch: an Arrow batch or table, a DataFrame, or a dict of columns.

        Raises:
            InputError: If columns are missing.
        """
        rows = Batch(batch)
        used = self._used(rows.names)
        values = {name: rows.values(name) for name in used}
        status: list[str] = []
        errors: list[str] = []
        frames, fps, clips = list[int](), list[float](), list[Any]()
        figures: list[Mapping[str, Any]] = []
        for i in range(rows.size):
            try:
                motion, found = self._clip({name: column[i] for name, column in values.items()})
            except (SynoviaError, TypeError, ValueError) as error:
                status, errors = [*status, "failed"], [*errors, " ".join(str(error).split())]
                frames, fps, clips = [*frames, 0], [*fps, float("nan")], [*clips, np.zeros((0, 0))]
                figures.append({})
            else:
                status, errors = [*status, "done"], [*errors, ""]
                frames, fps, clips = [*frames, len(motion)], [*fps, float(motion.fps)], [*clips, motion.q]
                figures.append(found)
        keep = [name for name in rows.names if name not in used or name == "path"]
        new: dict[str, Any] = {
            STATUS: status,
            ERROR: errors,
            "frames": np.array(frames, np.int64),
            "fps": np.array(fps),
        }
        new["q"] = clips
        for name in dict.fromkeys(name for found in figures for name in found):
            new[name] = [found.get(name) for found in figures]
        check_names(keep, list(new))
        return rows.answer(keep, new)


class Retarget(_ClipFunction):
    """Retarget a batch of clips to another body.

    The column ``path`` names files of clips. The answer keeps the columns of the batch and adds ``status`` ("done" or
    "failed"), ``error``, ``frames``, ``fps``, ``q`` (joint values of each frame, as a list of lists), ``missed``
    (frames), ``worst`` (length units) and what the judge of clips says.

    Args:
        skeleton: The target body: a skeleton, a file, or the name of a bundled model.
        joint_map: As in ``sy.retarget``.
        feet: As in ``sy.retarget``.
        clip: Name or number of the clip in each file; None for the first.
    """

    def __init__(
        self,
        skeleton: Skeleton | str | os.PathLike[str],
        joint_map: Mapping[str, tuple[Any, Any]] | None = None,
        *,
        feet: bool = True,
        clip: str | None = None,
    ) -> None:
        """Read the model."""
        self.skeleton = _skeleton_of(skeleton)
        self._map, self._feet, self._chosen = joint_map, feet, clip

    def _used(self, names: Sequence[str]) -> Sequence[str]:
        """Return the columns that are read."""
        if "path" not in names:
            raise InputError("columns", value=list(names), expected="a column 'path' with files of clips")
        return ["path"]

    def _clip(self, row: Mapping[str, Any]) -> tuple[Motion, Mapping[str, Any]]:
        """Return the motion of a row, and its figures."""
        motion = load_clip(Path(row["path"]), self._chosen)
        answer = retarget(motion, self.skeleton, self._map, feet=self._feet, threads=1)
        figures = {"missed": len(answer.missed_frames), "worst": float(answer.worst), **judged(answer)}
        return answer.motion, figures


class Fit(_ClipFunction):
    """Fit a body to points over time, a clip in each row.

    The column ``positions`` holds the points of each clip: frames, points, x y z. The columns ``fps``, ``confidence``
    and ``name`` are optional. The answer keeps the other columns and adds ``status`` ("done" or "failed"), ``error``,
    ``frames``, ``fps``, ``q`` (joint values of each frame, as a list of lists), and ``median_error`` and ``p99_error``
    (length units).

    Args:
        skeleton: The body: a skeleton, a file, or the name of a bundled model.
        joints: Joint of each point; None for all joints in order.
        fps: Frames per second where no column gives them.
        smoothness: As in ``sy.fit_positions``.
    """

    def __init__(
        self,
        skeleton: Skeleton | str | os.PathLike[str],
        joints: Sequence[str | int] | None = None,
        *,
        fps: float = 30.0,
        smoothness: float | None = None,
    ) -> None:
        """Read the model."""
        self.skeleton = _skeleton_of(skeleton)
        self._joints, self._fps, self._smoothness = joints, fps, smoothness

    def _used(self, names: Sequence[str]) -> Sequence[str]:
        """Return the columns that are read."""
        if "positions" not in names:
            raise InputError("columns", value=list(names), expected="a column 'positions' with lists of points")
        return [name for name in ("positions", "fps", "confidence") if name in names]

    def _clip(self, row: Mapping[str, Any]) -> tuple[Motion, Mapping[str, Any]]:
        """Return the motion of a row, and its figures."""
        given = row["positions"]
        positions = np.array([[list(point) for point in frame] for frame in given], np.float64)
        rate = row.get("fps")
        fitted = fit_positions(
            self.skeleton, positions, self._joints, confidence=row.get("confidence"),
            fps=self._fps if rate is None else float(rate), smoothness=self._smoothness, threads=1,
        )  # fmt: skip
        seen = fitted.errors[np.isfinite(fitted.errors)]
        return fitted, {"median_error": float(np.median(seen)), "p99_error": float(np.quantile(seen, 0.99))}
