"""Many inputs on the command line: options, the progress bar, lines of JSON and the report of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from synovia.cli.output import MISSED, REACHED, emit, printable, talk
from synovia.cli.progress import Bar

if TYPE_CHECKING:
    from synovia.batch.folder import Event, Run
    from synovia.batch.inputs import Item
    from synovia.batch.ledger import Row
    from synovia.batch.pool import Engine
    from synovia.batch.work import Task

SCHEMA: Final = "synovia.batch/1"
_SHOWN: Final = 5  # failures in the report


class EngineName(StrEnum):
    """Where the work is done."""

    LOCAL = "local"
    RAY = "ray"


Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="bvh|glb|npz|csv",
        help="Format of the outputs, for folders.",
        show_default="that of each input",
    ),
]
EngineOption = Annotated[
    EngineName, typer.Option("--engine", help="For many inputs: processes on this machine, or a Ray cluster.")
]
Address = Annotated[
    str | None,
    typer.Option("--address", metavar="ADDRESS", help="A running Ray cluster.", show_default="a cluster of its own"),
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard", metavar="I/N", help="Only the I-th of N shares of the inputs, for job arrays.", show_default="all"
    ),
]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="For many inputs: try failed ones again.")]
FailFast = Annotated[bool, typer.Option("--fail-fast", help="For many inputs: end at the first failure.")]
JsonLines = Annotated[bool, typer.Option("--json", help="For many inputs: print a line of JSON for each.")]


@dataclass(frozen=True, slots=True)
class Options:
    """The options that commands with many inputs share.

    Args:
        output: The output folder.
        file_format: Format of the outputs.
        engine: Where the work is done.
        address: A running Ray cluster.
        shard: Share of the inputs, ``I/N``.
        retry_failed: Whether failed inputs are tried again.
        fail_fast: Whether the first failure ends the run.
        force: Whether everything is done again.
        jobs: Number of processes.
        as_json: Whether to print a line of JSON for each input.
    """

    output: Path | None
    file_format: str | None = None
    engine: EngineName = EngineName.LOCAL
    address: str | None = None
    shard: str | None = None
    retry_failed: bool = False
    fail_fast: bool = False
    force: bool = False
    jobs: int | None = None
    as_json: bool = False

    def refuse_single(self, *, prints_json: bool = True) -> None:
        """Check that one input has no option that only many inputs take.

        Args:
            prints_json: Whether the command prints JSON for one input.

        Raises:
            typer.BadParameter: If it has.
        """
        given = {
            "--format": self.file_format is not None,
            "--engine": self.engine is not EngineName.LOCAL,
            "--address": self.address is not None,
            "--shard": self.shard is not None,
            "--retry-failed": self.retry_failed,
            "--fail-fast": self.fail_fast,
            "--json": self.as_json and not prints_json,
        }
        for option, is_given in given.items():
            if is_given:
                raise typer.BadParameter("expected a folder or several inputs with this option", param_hint=option)

    def folder(self) -> Path:
        """Return the output folder.

        Raises:
            typer.BadParameter: If there is none, or it is a file.
        """
        if self.output is None:
            raise typer.BadParameter("expected an output folder for many inputs", param_hint="'-o'")
        if self.output.exists() and not self.output.is_dir():
            raise typer.BadParameter(f"expected a folder, got the file {self.output}", param_hint="'-o'")
        return self.output

    def make_engine(self) -> Engine:
        """Return the engine.

        Raises:
            MissingExtraError: If Ray is not installed.
        """
        if self.engine is EngineName.RAY:
            from synovia.batch.cluster import Cluster

            return Cluster(self.address, self.jobs)
        if self.address is not None:
            raise typer.BadParameter("expected --engine ray with this option", param_hint="'--address'")
        from synovia.batch.pool import Local

        return Local(self.jobs)


def run_many(
    task: Task,
    sources: Sequence[str],
    options: Options,
    text: str,
    ending: str | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> NoReturn:
    """Do a task for files, folders and patterns, and report; end with the exit code.

    Args:
        task: The task.
        sources: Files, folders and patterns.
        options: The options of the command.
        text: What is done, for the progress bar.
        ending: Ending of the outputs without ``--format``; None for that of each input.
        inputs: Endings of the files that are taken from folders; None for those of clips.
        outputs: Endings that ``--format`` may name; None for those of clips.
    """
    from synovia.batch.inputs import collect
    from synovia.batch.tasks import motion_endings, written_endings

    if options.file_format is not None:
        ending = checked_ending(options.file_format, outputs or written_endings())
    run_items(task, collect(sources, options.folder(), inputs or motion_endings(), ending), options, text)


def run_items(task: Task, items: Sequence[Item], options: Options, text: str) -> NoReturn:
    """Do a task for items, and report; end with the exit code."""
    from synovia.batch.folder import run_folder
    from synovia.batch.inputs import Shard

    shard = None if options.shard is None else Shard.parse(options.shard)
    with Bar(text, "files", len(items)) as bar:

        def notice(event: Event) -> None:
            if options.as_json:
                emit(_line(event.row, event.seconds))
            failed = f", {event.failed} failed" if event.failed else ""
            bar(event.ended, event.todo, text=f"{text}{failed}")

        try:
            run = run_folder(
                task, items, options.folder(), engine=options.make_engine(), shard=shard, force=options.force,
                retry_failed=options.retry_failed, fail_fast=options.fail_fast, notice=notice,
            )  # fmt: skip
        except KeyboardInterrupt:
            talk(f"stopped; the same command goes on where it ended ({options.folder()})")
            raise
    for line in _report(run):
        talk(line)
    missed = any(row.figure("missed") for row in run.rows)
    raise typer.Exit(MISSED if run.failed or missed else REACHED)


def _line(row: Row, seconds: float) -> str:
    """Return the line of JSON of an input."""
    import json

    return json.dumps({"schema": SCHEMA, **_values(row.fields()), "time": round(seconds, 6)}, allow_nan=False)


def _values(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return texts as numbers where they are numbers."""
    import math

    out: dict[str, Any] = {}
    for name, text in fields.items():
        out[name] = text
        if name not in ("input", "output", "error", "sha256", "settings"):
            try:
                value = float(text)
            except ValueError:
                continue
            if math.isfinite(value):
                out[name] = int(value) if value.is_integer() and "." not in text and "e" not in text else value
    return out


def _report(run: Run) -> list[str]:
    """Return the lines about a run."""
    before = run.inputs - run.done - len(run.failed)
    told = f", {before} done before" if before else ""
    lines = [f"{run.inputs} inputs: {run.done} done{told}, {len(run.failed)} failed"]
    lines += [f"  {printable(row.error)}" for row in run.failed[:_SHOWN]]
    if len(run.failed) > _SHOWN:
        lines.append(f"  and {len(run.failed) - _SHOWN} more")
    verdicts = Counter(row.figures["verdict"] for row in run.rows if "verdict" in row.figures)
    if verdicts:
        lines.append("verdicts: " + ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items())))
    lines.append(f"{run.ledger}" + ("" if run.summary is None else f", {run.summary}"))
    return lines


def checked_ending(text: str, endings: Sequence[str]) -> str:
    """Return the ending of ``--format``, with the dot.

    Raises:
        typer.BadParameter: If it is not one of ``endings``.
    """
    ending = "." + text.lower().removeprefix(".")
    if ending not in endings:
        expected = ", ".join(one[1:] for one in endings)
        raise typer.BadParameter(f"expected one of {expected}, got {text!r}", param_hint="'--format'")
    return ending
