"""Tables of targets to tables of answers: one file in a stream, or parts of many files with a ledger."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

from synovia.batch.columns import STATUS
from synovia.batch.content import model_settings
from synovia.batch.functions import Solve
from synovia.batch.inputs import Item, collect
from synovia.batch.tables import ENDINGS, PART, Source, open_sink
from synovia.batch.work import Figure, Task
from synovia.errors import FileError, FormatError, InputError, restated
from synovia.files.goals import read_goals
from synovia.ik.status import Status
from synovia.io.base import read_text
from synovia.solver import Solver

_AHEAD: Final = 2  # blocks that another thread makes or has made
_ANSWER: Final = 48  # bytes that a number of an answer takes: in arrays, and in Python where it is written as text
_T = TypeVar("_T")


def collect_tables(sources: Sequence[str], output: Path, ending: str | None) -> list[Item]:
    """Return the parts of tables: a table of more than ``PART`` rows is divided, unless it is text.

    Args:
        sources: Files, folders and patterns.
        output: The output folder.
        ending: Ending of the outputs; None for that of each input.
    """
    items: list[Item] = []
    for item in collect(sources, output, ENDINGS, ending):
        count = None if item.problem else _count_of(item.path)
        if count is None or count <= PART:
            items.append(item)
            continue
        stem = PurePosixPath(item.output)
        for number, first in enumerate(range(0, count, PART)):
            last = min(first + PART, count)
            part = stem.with_name(f"{stem.stem}-{number:05}{stem.suffix}")
            items.append(replace(item, name=f"{item.name} {first:010}", output=str(part), rows=(first, last)))
    return items


def _count_of(path: Path) -> int | None:
    """Return the number of rows of a table; None if it is unknown, also because the file cannot be read."""
    try:
        with Source(path) as source:
            return source.count
    except (FileError, FormatError):
        return None  # a row of the ledger says why


class SolveTable(Task):
    """Solve a table of targets.

    Args:
        model: The model: a file or the name of a bundled model.
        goals: Goal file; None for a goal on each joint that has columns.
        solver: Settings of the algorithm.
        tolerance: (length, angle) within which goals are met; None for the default.
        root: How the root may move.
        simd: Whether to use SIMD; None where the solver supports it.
        threads: Number of threads.
    """

    name = "solve"

    def __init__(
        self,
        model: str,
        goals: Path | None,
        solver: Solver,
        tolerance: tuple[float, float] | None = None,
        root: str = "fixed",
        simd: bool | None = None,
        threads: int | None = 1,
    ) -> None:
        """Store the arguments."""
        self._model, self._goals, self._solver = model, goals, solver
        self._tolerance, self._root, self._simd, self._threads = tolerance, root, simd, threads

    @cached_property
    def function(self) -> Solve:
        """The function that solves a block."""
        goals = None if self._goals is None else read_goals(self._goals)
        return Solve(
            self._model, goals, self._solver, tolerance=self._tolerance, root=self._root, simd=self._simd,
            threads=self._threads,
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """Return what decides about the output beside the input."""
        return {
            "model": model_settings(self._model),
            "goals": None if self._goals is None else read_text(self._goals),
            "solver": repr(self._solver),
            "tolerance": None if self._tolerance is None else list(self._tolerance),
            "root": self._root,
            "simd": self._simd,
        }

    def prepare(self) -> None:
        """Load the model; the kernels come with the first block, because its columns tell the goals."""
        _ = self.function

    def work(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the answers of an item; return its figures."""
        with Source(item.path) as source:
            return figures_of(write_answers(self.function, source, output, item.rows))


def figures_of(counts: Counter[str]) -> dict[str, Figure]:
    """Return the figures of a table, from the number of rows by status."""
    rows = counts.total()
    named = {name.lower(): counts[name] for name in Status.__members__ if counts[name]}
    return {"frames": rows, "missed": rows - counts[Status.REACHED.name], **named}


def write_answers(
    solve: Solve,
    source: Source,
    output: Path,
    rows: tuple[int, int] | None = None,
    *,
    force: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Counter[str]:
    """Solve blocks of a table and write the answers; reading, solving and writing go on at the same time.

    Args:
        solve: The function.
        source: The table of targets.
        output: The file.
        rows: First row and the row after the last; None for all.
        force: Whether an existing file may be replaced.
        progress: Called with the rows of each block that is solved.

    Returns:
        Number of rows by status.

    Raises:
        FileError: If the file cannot be written.
        FormatError: If the table has no targets, or is malformed.
    """
    counts: Counter[str] = Counter()

    def told(error: InputError) -> FormatError:
        return restated(error, FormatError, str(source.path))

    try:
        beside = _ANSWER * len(solve.answer_columns(source.names))
    except InputError as error:
        raise told(error) from error
    blocks = source.blocks(rows, beside=beside)

    def answers() -> Generator[Any]:
        with closing(ahead(blocks)) as ready:
            for block in ready:
                try:
                    answer = solve(block)
                except InputError as error:
                    raise told(error) from error
                found = _statuses(answer)
                counts.update(found)
                if progress is not None:
                    progress(found.total())
                yield answer

    with open_sink(output, force=force) as sink, closing(ahead(answers())) as solved:
        for answer in solved:
            sink.write(answer)
    return counts


def _statuses(answer: Any) -> Counter[str]:
    """Return the number of rows by status."""
    if hasattr(answer, "schema"):
        return Counter({one["values"]: one["counts"] for one in answer.column(STATUS).value_counts().to_pylist()})
    return Counter(answer[STATUS].tolist())


def ahead(values: Generator[_T]) -> Generator[_T]:
    """Yield values that another thread makes, a few ahead; closing the generator ends the thread.

    Raises:
        BaseException: The exception of the other thread.
    """
    with ThreadPoolExecutor(1) as pool:
        waiting = deque(pool.submit(next, values, None) for _ in range(_AHEAD))
        try:
            while (value := waiting.popleft().result()) is not None:
                waiting.append(pool.submit(next, values, None))
                yield value
        finally:
            pool.shutdown(cancel_futures=True)
            values.close()
