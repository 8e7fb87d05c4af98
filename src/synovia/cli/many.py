"""Many inputs on the command line: options, the progress bar, lines of JSON and the report of a run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from synovia.cli.command import Decorator, bundle, refuse, wrong
from synovia.cli.declare import decorator_of
from synovia.cli.inputs import force_option, json_option
from synovia.cli.output import MISSED, REACHED, emit, printable, talk
from synovia.cli.progress import Bar
from synovia.cli.values import typed
from synovia.jobs.job import Running
from synovia.jobs.options import Parsed, Word, ending_of, options_of
from synovia.text import counted

if TYPE_CHECKING:
    from synovia.batch.folder import Event, Run
    from synovia.batch.inputs import Item, Shard
    from synovia.batch.ledger import Row
    from synovia.batch.pool import Engine
    from synovia.batch.work import Task

SCHEMA: Final = "synovia.batch/1"
jobs_option: Final = decorator_of("jobs", {name: said for name, said, _ in options_of(Running)}["jobs"])
_SHOWN: Final = 5  # failures in the report
ONLY_MANY: Final = ("file_format", "engine", "address", "shard", "retry_failed", "fail_fast")


@dataclass(frozen=True)
class Options:
    """The options that commands with many inputs share.

    Args:
        output: The output file or folder.
        file_format: Ending of the outputs, with its dot; None for that of each input.
        engine: Where the work is done, "local" or "ray".
        address: A running Ray cluster.
        shard: Share of the inputs.
        retry_failed: Whether failed inputs are tried again.
        fail_fast: Whether the first failure ends the run.
        force: Whether files are replaced and everything is done again.
        jobs: Number of processes, or of threads for one input.
        as_json: Whether to print JSON: one object, or a line for each of many inputs.
    """

    output: str | None = None
    file_format: str | None = None
    engine: str = "local"
    address: str | None = None
    shard: Shard | None = None
    retry_failed: bool = False
    fail_fast: bool = False
    force: bool = False
    jobs: int | None = None
    as_json: bool = False

    @property
    def path(self) -> Path | None:
        """The output."""
        return None if self.output is None else Path(self.output)

    def are_many(self, sources: Sequence[str], *, prints_json: bool = True) -> bool:
        """Return whether there are many inputs.

        Args:
            sources: Files, folders and patterns.
            prints_json: Whether the command prints JSON for one input.

        Raises:
            click.BadParameter: If an option that only many inputs take is given for one.
        """
        from synovia.batch.inputs import is_many
        from synovia.errors import FileError
        from synovia.io.base import similar_names
        from synovia.io.load import is_bundled

        if is_many(sources, self.output):
            return True
        only_many = ONLY_MANY if prints_json else (*ONLY_MANY, "as_json")
        try:
            refuse("expected a folder or several inputs with this option.", *only_many)
        except click.BadParameter:
            for source in sources:  # it may be the name of a folder, mistyped
                if not os.path.exists(source) and not is_bundled(source):  # noqa: PTH110  a path would raise
                    what = "file or folder does not exist"
                    raise FileError(what, where=source, hint=similar_names(Path(source))) from None
            raise
        return False

    def folder(self) -> Path:
        """Return the output folder.

        Raises:
            click.BadParameter: If there is none, or it cannot be a folder.
        """
        if self.path is None:
            raise wrong("-o", "expected an output folder for many inputs, got none.")
        try:
            is_file = self.path.is_file()
        except OSError as error:
            raise wrong("-o", f"expected a name that a folder can have ({error.strerror}).") from error
        if is_file:
            raise wrong("-o", f"expected a folder for many inputs, got the file {self.output!r}.")
        if _ends_as_an_output(self.path) and not self.path.exists():
            raise wrong("-o", f"expected a folder for many inputs, got {self.output!r}, the name of a file.")
        return self.path

    def make_engine(self) -> Engine:
        """Return the engine.

        Raises:
            MissingExtraError: If Ray is not installed.
        """
        if self.engine == "ray":
            from synovia.batch.cluster import Cluster

            return Cluster(self.address, self.jobs)
        refuse("expected --engine ray with this option.", "address")
        from synovia.batch.pool import Local

        return Local(self.jobs)


def _ends_as_an_output(path: Path) -> bool:
    """Return whether a path ends as the files do that the present command writes."""
    ctx = click.get_current_context()
    try:
        for parameter in ctx.command.params:
            if parameter.name == "file_format":
                parameter.type.convert(path.suffix, parameter, ctx)
                return True
    except click.BadParameter:
        pass
    return False


def _shard(text: str) -> Shard:
    """Return the shard of ``I/N``."""
    from synovia.batch.inputs import Shard

    return Shard.parse(text)


def _motion_endings() -> Sequence[str]:
    """Return the endings of clips that can be written."""
    from synovia.jobs.clips import written_endings

    return written_endings()


def format_option(
    metavar: str = "bvh|glb|npz|csv",
    known: Callable[[], Sequence[str]] = _motion_endings,
    default: str | None = "that of each input",
) -> Decorator:
    """Return the option ``--format`` of a command.

    Args:
        metavar: The usual formats.
        known: Returns the endings of all formats.
        default: Default in the help text.
    """
    return click.option(
        "--format",
        "file_format",
        metavar=metavar,
        type=typed(Parsed(lambda text: ending_of(text, known()))),
        help="Format of the outputs, for folders.",
        show_default=default,
    )


def many_options(json: Decorator = json_option) -> Decorator:
    """Return a decorator that adds the options for many inputs, which a command gets as ``options``.

    Args:
        json: The option ``--json``.
    """
    return bundle(
        "options",
        Options,
        jobs_option,
        click.option(
            "--engine",
            type=typed(Word(("local", "ray"))),
            default="local",
            help="For many inputs: processes on this machine, or a Ray cluster.",
        ),
        click.option(
            "--address", metavar="ADDRESS", help="A running Ray cluster.", show_default="a cluster of its own"
        ),
        click.option(
            "--shard",
            metavar="I/N",
            type=typed(Parsed(_shard)),
            help="Only the I-th of N shares of the inputs, for job arrays.",
            show_default="all",
        ),
        click.option("--retry-failed", is_flag=True, help="For many inputs: try failed ones again."),
        click.option("--fail-fast", is_flag=True, help="For many inputs: end at the first failure."),
        force_option,
        json,
    )


json_lines: Final = click.option(
    "--json", "as_json", is_flag=True, help="For many inputs: print a line of JSON for each."
)


def run_many(
    task: Task,
    sources: Sequence[str],
    options: Options,
    text: str,
    ending: str | None = None,
    inputs: Sequence[str] | None = None,
) -> int:
    """Do a task for files, folders and patterns, report, and return the exit code.

    Args:
        task: The task.
        sources: Files, folders and patterns.
        options: The options of the command.
        text: What is done, for the progress bar.
        ending: Ending of the outputs without ``--format``; None for that of each input.
        inputs: Endings of the files that are taken from folders; None for those of clips.
    """
    from synovia.batch.inputs import collect
    from synovia.jobs.clips import motion_endings

    items = collect(sources, options.folder(), inputs or motion_endings(), options.file_format or ending)
    return run_items(task, items, options, text)


def run_items(task: Task, items: Sequence[Item], options: Options, text: str) -> int:
    """Do a task for items, report, and return the exit code."""
    refuse("expected a single input with this option.", "roles")
    from synovia.batch.folder import run_folder

    ended = [0, 0]  # items, and those to do
    with Bar(text, "files", len(items)) as bar:

        def notice(event: Event) -> None:
            ended[:] = event.ended, event.todo
            if options.as_json:
                emit(_line(event.row, event.seconds))
            failed = f", {event.failed} failed" if event.failed else ""
            bar(event.ended, event.todo, text=f"{text}{failed}")

        try:
            run = run_folder(
                task, items, options.folder(), engine=options.make_engine(), shard=options.shard, force=options.force,
                retry_failed=options.retry_failed, fail_fast=options.fail_fast, notice=notice,
            )  # fmt: skip
        except KeyboardInterrupt:
            if ended[1]:
                again = f"the same command goes on where it ended ({options.folder()})"
                talk(f"stopped after {ended[0]} of {ended[1]}; {again}")
            else:
                talk("stopped before the first input")
            raise
    for line in _report(run, of_rows=task.name == "solve"):
        talk(line)
    return MISSED if run.failed or _missed(run) else REACHED


def _missed(run: Run) -> list[Row]:
    """Return the inputs with goals that were missed."""
    return [row for row in run.rows if row.figure("missed")]


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
        if name not in ("input", "output", "error", "notes", "sha256", "settings"):
            try:
                value = float(text)
            except ValueError:
                continue
            if math.isfinite(value):
                out[name] = int(value) if value.is_integer() and "." not in text and "e" not in text else value
    return out


def _report(run: Run, *, of_rows: bool) -> list[str]:
    """Return the lines about a run; ``of_rows`` if its inputs are tables."""
    before = run.inputs - run.done - len(run.failed)
    told = f", {before} done before" if before else ""
    inputs = counted(run.inputs, "input")
    lines = [f"{inputs}: {run.done} done{told}, {len(run.failed)} failed"]
    lines += [f"  {printable(row.error)}" for row in run.failed[:_SHOWN]]
    if len(run.failed) > _SHOWN:
        lines.append(f"  and {len(run.failed) - _SHOWN} more")
    if missed := _missed(run):
        count, of = (sum(int(row.figure(name)) for row in run.rows) for name in ("missed", "frames"))
        what = "rows" if of_rows else "frames"
        lines.append(f"goals are missed in {count} of {of} {what}, in {len(missed)} of {inputs}")
    if run.gone:
        kept = counted(len(run.gone), "result", verb=("is", "are"))
        lines.append(f"of inputs that were deleted, {kept} kept ('gone' in the ledger)")
    noted = sum("notes" in row.figures for row in run.rows)
    if noted:
        lines.append(f"the ledger has notes on {counted(noted, 'input')}")
    verdicts = Counter(row.figures["verdict"] for row in run.rows if "verdict" in row.figures)
    if verdicts:
        lines.append("verdicts: " + ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items())))
    page = "" if run.summary is None else f"; open {run.summary} to see the worst"
    lines.append(f"each input is a row of {run.ledger}{page}")
    return lines
