"""Solve tables of targets: stream one file, or divide many files into parts for a run with a ledger."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

from synovia.batch.columns import STATUS
from synovia.batch.functions import Solve
from synovia.batch.inputs import Item, collect
from synovia.batch.tables import ENDINGS, PART, Source, open_sink
from synovia.batch.work import Figure
from synovia.errors import FileError, FormatError, InputError, restated
from synovia.ik.status import Status

_AHEAD: Final = 2  # number of blocks that another thread prepares before they are needed
_ANSWER: Final = 48  # bytes of memory per value of an answer: in an array, and as a Python object for writing text
_T = TypeVar("_T")


def collect_tables(sources: Sequence[str], output: Path, ending: str | None) -> list[Item]:
    """Return items for tables; divide a table with more than ``PART`` rows into parts, unless it is a text file.

    Args:
        sources: Files, folders and patterns.
        output: The output folder.
        ending: Ending of the outputs; None for the ending of each input.
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
    """Return the number of rows of a table; None if it is unknown or the file cannot be read."""
    try:
        with Source(path) as source:
            return source.count
    except (FileError, FormatError):
        return None  # the ledger reports the reason later, so the number is unknown here


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
    """Solve a table block by block and write the answers; reading, solving and writing run at the same time.

    Args:
        solve: The function.
        source: The table of targets.
        output: The file.
        rows: First row and end row (exclusive); None for all.
        force: Whether an existing file may be replaced.
        progress: Called with the number of rows of each solved block.

    Returns:
        Number of rows by status.

    Raises:
        FileError: If the file cannot be written.
        FormatError: If the table has no targets, or is malformed.
    """
    counts: Counter[str] = Counter()

    def of_file(error: InputError) -> FormatError:
        return restated(error, FormatError, str(source.path))

    try:
        answer_bytes = _ANSWER * len(solve.answer_columns(source.names))
    except InputError as error:
        raise of_file(error) from error
    blocks = source.blocks(rows, answer_bytes=answer_bytes)

    def answers() -> Generator[Any]:
        with closing(ahead(blocks)) as ready:
            for block in ready:
                try:
                    answer = solve(block)
                except InputError as error:
                    raise of_file(error) from error
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
    """Yield the values of a generator that runs in another thread, a few values ahead; closing ends the thread.

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
