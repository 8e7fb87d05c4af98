"""``Solve``: a function from a batch of targets to a batch of answers, for any engine.

``Solve`` can be pickled: each process builds its own compiled problem for its first batch. Every answer has the columns
``status`` and ``error``. A row that cannot be used gets the status ``INVALID`` and does not stop the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Unpack

import numpy as np

from synovia.arguments import checked_joints, completed, takes
from synovia.batch.columns import (
    ERROR,
    START,
    STATUS,
    Batch,
    StartColumns,
    TargetColumns,
    Texts,
    check_names,
)
from synovia.errors import InputError
from synovia.facade import IK
from synovia.goals import Goal, PoseGoal, PositionGoal, RotationGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import Options
from synovia.ik.status import Status
from synovia.io.csvfile import columns as joint_columns
from synovia.io.load import load_model
from synovia.model import Skeleton
from synovia.solver import Solver, SolverName

_STATUSES: Final = tuple(status.name for status in Status)
_GOALS: Final = {POSITION: PositionGoal, ROTATION: RotationGoal, POSITION | ROTATION: PoseGoal}


def skeleton_of(model: Any) -> Skeleton:
    """Return a skeleton as it is, or load it from a file or a bundled model."""
    return model if isinstance(model, Skeleton) else load_model(str(model))


class _Problem(NamedTuple):
    """A compiled problem, whether to solve it with SIMD, and the columns of its targets and starts."""

    ik: IK
    simd: bool | str
    targets: TargetColumns
    starts: StartColumns

    @property
    def used(self) -> set[str]:
        """Names of all columns of targets and starts."""
        return self.targets.used | set(self.starts.places.values())


class Solve:
    """Solve a batch of targets: convert columns of targets to columns of joint values, errors and status.

        >>> import numpy as np
        >>> solve = Solve("arm7")
        >>> answer = solve({"tool.x": [0.4], "tool.y": [0.1], "tool.z": [0.5], "id": ["first"]})
        >>> answer["id"], str(answer["status"][0]), answer["joint1"].shape
        (['first'], 'REACHED', (1,))

    A goal's columns begin with its name or that of its joint: ``tool.x tool.y tool.z`` for the position,
    ``tool.qx tool.qy tool.qz tool.qw`` for the rotation; or lists: ``tool.position``, ``tool.quat_xyzw``,
    ``tool.quat_wxyz``, ``tool.transform``. With one goal, the name can be left out. Columns such as ``start.joint1``
    give joint values of the start pose; other joints start at rest. The answer has all other columns of the batch, then
    ``status``, ``error``, ``steps``, ``NAME.position_error`` (length units) and ``NAME.angle_error`` (radians) of each
    goal, and one column for each joint value, named as in CSV files.

    Args:
        skeleton: The skeleton, a file, or the name of a bundled model.
        goals: One goal or several. For None, or if no goal has a target (for example only a ``ClearanceGoal``), each
            joint that has columns gets a goal.
        solver: As in ``IK``.
        simd: As in ``IK.solve_many``; None to use SIMD where the solver supports it.
        threads: Number of threads; one by default, because engines run several processes. None for all cores.
        keep: Columns of the batch to keep; None for all except those of targets and starts.
        options: As in ``IK``; ``starts`` are for rows without a start.
    """

    @takes(Options)
    def __init__(
        self,
        skeleton: Skeleton | str | os.PathLike[str],
        goals: Goal | Iterable[Goal] | None = None,
        solver: Solver | SolverName | None = None,
        *,
        simd: bool | str | None = None,
        threads: int | None = 1,
        keep: Sequence[str] | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Read the model; the problem is built with the first batch."""
        self.skeleton = skeleton_of(skeleton)
        self._goals = () if goals is None else (goals,) if isinstance(goals, Goal) else tuple(goals)
        self._by_columns = not any(goal.takes for goal in self._goals)
        self._solver: Solver | SolverName | None = solver
        self._options, self._simd, self._threads = options, simd, threads
        if (moving := completed(Options, options, "Solve").moving) is not None:
            self._options = Options(**options | {"moving": checked_joints(moving)})
        if isinstance(keep, str):
            raise InputError("keep", value=keep, expected="a list of columns", hint=f"write [{keep!r}]")
        self._keep = keep
        self._built: dict[tuple[str, ...], _Problem] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes, without the compiled problems."""
        return {**self.__dict__, "_built": {}}

    def __repr__(self) -> str:
        """Return the call with the name of the model."""
        return f"Solve({self.skeleton.name!r})"

    def _problem(self, names: Sequence[str]) -> _Problem:
        """Return the compiled problem for batches with these columns.

        Raises:
            InputError: If no column gives a target, or a column of a target is missing.
            UnknownNameError: If a column belongs to no joint or goal.
        """
        key = tuple(names)
        if key not in self._built:
            self._built[key] = self._build(names)
        return self._built[key]

    def _build(self, names: Sequence[str]) -> _Problem:
        """Build and return the problem for batches with these columns."""
        begins = [name for name in names if name.startswith(START) and not self._is_goal(START[:-1])]
        others = [name for name in names if name not in begins]
        goals = self._goals
        if not self._by_columns:
            taking = [goal for goal in goals if goal.takes]
            targets = TargetColumns.find(others, str(taking[0].label) if len(taking) == 1 else None)
        else:
            tips = [self.skeleton.frame_names[row] for row in self.skeleton.tip_rows]
            of_joints = [name for name in others if "." not in name or self._has(name.rpartition(".")[0])]
            targets = TargetColumns.find(of_joints, tips[0] if len(tips) == 1 else None)
            goals = (*(_GOALS[targets.takes(key)](key) for key in targets.parts), *goals)
        if not targets.parts:
            expected = "columns of targets, such as NAME.x, NAME.y, NAME.z with the name of a joint"
            raise InputError("columns", value=list(names), expected=expected)
        ik = IK(self.skeleton, goals, self._solver, **self._options)
        simd = ik.solver.simd_kernel(ik.problem.reduced) is not None if self._simd is None else self._simd
        return _Problem(ik, simd, targets, StartColumns.find(begins, ik.skeleton))

    def _is_goal(self, name: str) -> bool:
        """Return whether a goal, or a joint that may get one, has this name."""
        return self._has(name) if self._by_columns else any(str(goal.label) == name for goal in self._goals)

    def _has(self, key: str) -> bool:
        """Return whether a joint, link or site has this name, or a joint this role."""
        return self.skeleton.knows(key)

    def answer_columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns of the answer to batches with these columns."""
        problem = self._problem(names)
        return [*self._kept(names, problem), *_answer(problem.ik, 0, None, np.zeros(0, np.int32), [])]

    def _kept(self, names: Sequence[str], problem: _Problem) -> list[str]:
        """Return the columns of a batch that the answer keeps."""
        used = problem.used
        return [name for name in names if (name not in used if self._keep is None else name in self._keep)]

    def __call__(self, batch: Any) -> Any:
        """Return the answers to a batch: an Arrow batch or table, a DataFrame, or a dict of columns.

        Raises:
            InputError: If columns are missing, or of a wrong kind.
        """
        rows = Batch(batch)
        problem = self._problem(rows.names)
        ik, keep = problem.ik, self._kept(rows.names, problem)
        targets, wrong, reasons = problem.targets.read(rows)
        starts = problem.starts.read(rows, wrong, reasons)
        good = wrong < 0
        solved = None
        if good.any():
            if not good.all():
                targets = {key: value[good] for key, value in targets.items()}
                starts = None if starts is None else starts[good]
            solved = ik.solve_many(targets, starts, simd=problem.simd, threads=self._threads)
        new = _answer(ik, rows.size, solved, wrong, reasons)
        check_names(keep, new)
        return rows.answer(keep, new)


def _answer(ik: IK, size: int, solved: Any, wrong: Any, reasons: Sequence[str]) -> dict[str, Any]:
    """Return the new columns of an answer.

    Args:
        ik: The problem.
        size: Number of rows.
        solved: The solutions of the valid rows; None if there are none.
        wrong: Index of each row's reason, -1 for valid rows.
        reasons: The reasons.
    """
    good = wrong < 0

    def spread(values: Any, empty: float) -> Any:
        """Return a value for each row of the batch; ``empty`` for invalid rows."""
        if solved is not None and good.all():
            return values
        out = np.full(size, empty, np.int32 if isinstance(empty, int) else np.float64)
        if solved is not None:
            out[good] = values
        return out

    codes = spread(None if solved is None else solved.status.astype(np.int32), int(Status.INVALID))
    columns: dict[str, Any] = {
        STATUS: Texts(codes, _STATUSES),
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
