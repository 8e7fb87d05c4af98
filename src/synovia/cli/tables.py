"""``synovia solve --targets``: tables of targets, in a stream to one file, or in parts to a folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import typer

from synovia.cli.many import EngineName, Options, checked_ending, run_items
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
) -> NoReturn:
    """Solve tables of targets, and report; end with the exit code.

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
    from synovia.batch.tables import ENDINGS

    if options.output is None:
        raise typer.BadParameter("expected a file or a folder for the answers to --targets", param_hint="'-o'")
    if is_many([table], options.output) or not options.output.suffix:
        task = SolveTable(file, goals, solver, tolerance, root, simd)
        ending = None if options.file_format is None else checked_ending(options.file_format, ENDINGS)
        run_items(task, collect_tables([table], options.folder(), ending), options, "solving")
    if options.engine is not EngineName.LOCAL:
        raise typer.BadParameter("expected an output folder with --engine ray", param_hint="'-o'")
    options.refuse_single()
    if options.output.exists() and options.output.samefile(table):
        raise typer.BadParameter("expected another file than the table of targets", param_hint="'-o'")
    task = SolveTable(file, goals, solver, tolerance, root, simd, options.jobs)
    _solve_one(task, Path(table), options.output, options)


def _solve_one(task: SolveTable, path: Path, output: Path, options: Options) -> NoReturn:
    """Solve one table to one file, and report; end with the exit code."""
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
    raise typer.Exit(REACHED if reached == rows else MISSED)
