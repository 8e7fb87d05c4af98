"""``synovia solve --targets``: tables of targets, in a stream to one file, or in parts to a folder."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from synovia.cli.command import wrong
from synovia.cli.many import Options, run_items
from synovia.cli.output import MISSED, REACHED, emit, emit_json, talk, time_text
from synovia.cli.progress import Bar

if TYPE_CHECKING:
    from synovia.batch.solving import SolveTable
    from synovia.solver import Solver

SCHEMA: Final = "synovia.solve-table/1"


def solve_tables(
    file: str,
    table: str,
    goals: Path | None,
    solver: Solver,
    tolerance: tuple[float, float] | None,
    root: str,
    simd: bool | None,
    options: Options,
) -> int:
    """Solve tables of targets, report, and return the exit code.

    Args:
        file: The model.
        table: A table, or a folder or pattern of tables.
        goals: Goal file.
        solver: Settings.
        tolerance: Tolerance of goals.
        root: How the root may move.
        simd: Whether to use SIMD.
        options: The options for many inputs.
    """
    from synovia.batch.inputs import is_many
    from synovia.batch.solving import SolveTable, collect_tables
    from synovia.io.base import check_writable

    if options.path is None:
        raise wrong("-o", "expected a file or a folder for the answers to --targets, got none.")
    if is_many([table], options.output) or not options.path.suffix:
        task = SolveTable(file, goals, solver, tolerance, root, simd)
        return run_items(task, collect_tables([table], options.folder(), options.file_format), options, "solving")
    if options.engine != "local":
        raise wrong("-o", f"expected an output folder with --engine ray, got {options.output!r}.")
    options.are_many([table])
    with suppress(OSError):  # one of them does not exist, or cannot be looked at
        if options.path.samefile(table):
            raise wrong("-o", f"expected another file than the table of targets, got {options.output!r}.")
    check_writable(options.path, force=options.force)
    task = SolveTable(file, goals, solver, tolerance, root, simd, options.jobs)
    return _solve_one(task, Path(table), options.path, options)


def _solve_one(task: SolveTable, path: Path, output: Path, options: Options) -> int:
    """Solve one table to one file, report, and return the exit code."""
    import time

    from synovia.batch.solving import write_answers
    from synovia.batch.tables import Source

    begun, done = time.perf_counter(), 0
    with Source(path) as source, Bar("solving", "rows", source.count or 0) as bar:

        def progress(rows: int) -> None:
            nonlocal done
            done += rows
            if source.count:
                bar(done, source.count)

        blocks = source.blocks()
        counts = write_answers(task.function, blocks, output, path, force=options.force, progress=progress)
    seconds = time.perf_counter() - begun
    rows, reached = counts.total(), counts["REACHED"]
    if options.as_json:
        emit_json({"schema": SCHEMA, "targets": str(path), "output": str(output), "rows": rows, "status": dict(counts)})
    else:
        emit(f"reached in {reached} of {rows} rows")
        others = Counter({name: count for name, count in counts.items() if name != "REACHED"})
        for name, count in others.most_common():
            emit(f"  {name}: {count}")
    talk(f"{output}: {rows} rows in {time_text(seconds)}")
    return REACHED if reached == rows else MISSED
