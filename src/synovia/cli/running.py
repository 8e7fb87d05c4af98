"""Run a job for a command: one input with a report, or many inputs with a ledger."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from synovia.cli import uncompiled
from synovia.cli.command import refuse
from synovia.cli.output import REACHED, emit, emit_report, reported_warnings, talk
from synovia.cli.progress import Bar
from synovia.jobs.base import MISSED, Host, Outcome
from synovia.jobs.job import Job, Running, one_item, running_options
from synovia.text import counted, printable

if TYPE_CHECKING:
    from synovia.batch.folder import Event, Run
    from synovia.batch.ledger import Row
    from synovia.io.verify import FileCheck

SCHEMA: Final = "synovia.batch/1"
_SHOWN: Final = 5  # largest number of failures in the report


class Terminal(Host):
    """Host of the command line: writes each note once to stderr, and shows a progress bar for long work.

    Args:
        threads: Number of threads; None for all cores.
        force: Whether to replace existing files.
        as_json: Whether to print reports as JSON objects.
    """

    def __init__(self, threads: int | None = None, *, force: bool = False, as_json: bool = False) -> None:
        """Store the arguments."""
        super().__init__(threads, force=force)
        self._as_json = as_json
        self._report: Callable[[], None] | None = None

    def ready(self, outcome: Outcome) -> None:
        """Prepare the report of an outcome."""
        if outcome.reporter is not None:
            found = outcome.reporter()
            self._report = partial(emit_report, found, as_json=self._as_json)

    def report(self, outcome: Outcome | None = None) -> None:
        """Write the prepared report to stdout; without one, write the report of an outcome."""
        if self._report is None and outcome is not None:
            self.ready(outcome)
        if self._report is not None:
            self._report()

    def note(self, notes: Iterable[str], about: str = "") -> None:
        """Write notes on ignored parts of an input."""
        report_notes(notes, about)

    def note_model(self, notes: Iterable[str]) -> None:
        """Write notes on a model."""
        report_notes(notes)

    def say(self, text: str, about: str) -> None:
        """Write a sentence on a clip."""
        talk(f"{printable(about)}: {text}")

    def wrote(self, path: Path, notes: Sequence[str]) -> None:
        """Write notes on content that a written file does not show."""
        for note in notes:
            talk(f"synovia: {path}: {printable(note)}")

    def compared(self, check: FileCheck) -> None:
        """Write how a file differs from the result in memory."""
        talk(f"{check.path}: {printable(check.report())}")

    @contextmanager
    def bar(self, text: str, count: int = 0, unit: str = "frames") -> Generator[Callable[..., Any] | None]:
        """Show a progress bar if the work takes more than a second."""
        with Bar(text, unit, count) as bar:
            yield bar


def report_notes(notes: Iterable[str], about: str = "") -> None:
    """Write notes on ignored parts of a file to stderr, each once in a command; ``about`` names the clip."""
    new = untold(notes)
    for note in untold(f"{about}: {note}" for note in new) if about else new:
        talk(f"synovia: {printable(note)}")


def untold(notes: Iterable[str]) -> list[str]:
    """Return the notes that this command has not reported yet, without duplicates; mark them as reported."""
    reported: set[str] = click.get_current_context().meta.setdefault(f"{__name__}.reported", set())
    new = [note for note in dict.fromkeys(notes) if note not in reported]
    reported.update(new)
    return new


def perform(job: Job, sources: Sequence[str], how: Running, *, as_json: bool, prints_json: bool) -> int:
    """Run the job of a command, and return the exit code.

    Args:
        job: The job.
        sources: Files, folders and patterns.
        how: Options for running the job.
        as_json: Whether to print JSON: one object, or a line for each of many inputs.
        prints_json: Whether the command can print an object for a single input.
    """
    if job.is_brief():
        uncompiled.begin()  # must come before any import of kernels
    if job.are_many(sources, how.output):
        return _many(job, sources, how, as_json=as_json)
    _refuse_many(job, sources, prints_json=prints_json)
    return _one(job, sources[0], how, as_json=as_json)


def _refuse_many(job: Job, sources: Sequence[str], *, prints_json: bool) -> None:
    """Refuse options that only work with many inputs.

    Raises:
        click.BadParameter: If such an option is given.
        FileError: If such an option is given and an input does not exist: it may be a mistyped folder.
    """
    from synovia.errors import FileError
    from synovia.io.base import similar_names
    from synovia.io.load import is_bundled

    names = [name for name, said, _ in running_options(type(job)) if said.many]
    try:
        refuse("expected a folder or several inputs with this option.", *names, *([] if prints_json else ["as_json"]))
    except click.BadParameter:
        for source in sources:
            if not os.path.exists(source) and not is_bundled(source):  # noqa: PTH110  a path would raise
                what = "file or folder does not exist"
                raise FileError(what, where=source, hint=similar_names(Path(source))) from None
        raise


def _one(job: Job, source: str, how: Running, *, as_json: bool) -> int:
    """Process one input, write the report, and return the exit code."""
    terminal = Terminal(how.jobs, force=how.force, as_json=as_json)
    try:
        with reported_warnings():
            outcome = job.do(one_item(source), how.path, terminal)
    except BaseException:
        terminal.report()
        raise
    terminal.report(outcome)
    if outcome.hint and not as_json:
        talk(outcome.hint)
    if outcome.said:
        talk(outcome.said)
    if as_json or not outcome.text_warns:
        for warning in outcome.warnings:
            talk(f"synovia: {printable(warning)}")
    return outcome.code


def _many(job: Job, sources: Sequence[str], how: Running, *, as_json: bool) -> int:
    """Process many inputs, write the report, and return the exit code."""
    items = how.items(job, sources)
    job.open(Terminal())
    ended = [0, 0]  # numbers of finished inputs and of inputs to process
    with Bar(job.doing, "files", len(items)) as bar:

        def notice(event: Event) -> None:
            ended[:] = event.ended, event.todo
            if as_json:
                emit(_line(event.row, event.seconds))
            failed = f", {event.failed} failed" if event.failed else ""
            bar(event.ended, event.todo, text=f"{job.doing}{failed}")

        try:
            run = how.run(job, items, notice)
        except KeyboardInterrupt:
            if ended[1]:
                again = f"run the same command again to continue ({how.path})"
                talk(f"stopped after {ended[0]} of {ended[1]}; {again}")
            else:
                talk("stopped before the first input")
            raise
    for line in _report(run, job.counts):
        talk(line)
    return MISSED if run.failed or any(job.falls_short(row.figures) for row in run.rows) else REACHED


def _line(row: Row, seconds: float) -> str:
    """Return the line of JSON of an input."""
    return json.dumps({"schema": SCHEMA, **_values(row.fields()), "time": round(seconds, 6)}, allow_nan=False)


def _values(fields: Mapping[str, str]) -> dict[str, Any]:
    """Convert texts to numbers where possible, except in text columns."""
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


def _report(run: Run, unit: str) -> list[str]:
    """Return the report of a run as lines; ``unit`` names what the figure "missed" counts."""
    before = run.inputs - run.done - len(run.failed)
    before_it = f", {before} done before" if before else ""
    inputs = counted(run.inputs, "input")
    lines = [f"{inputs}: {run.done} done{before_it}, {len(run.failed)} failed"]
    lines += [f"  {printable(row.error)}" for row in run.failed[:_SHOWN]]
    if len(run.failed) > _SHOWN:
        lines.append(f"  and {len(run.failed) - _SHOWN} more")
    if missed := [row for row in run.rows if row.figure("missed")]:
        count, of = (sum(int(row.figure(name)) for row in run.rows) for name in ("missed", "frames"))
        lines.append(f"goals are missed in {count} of {of} {unit}, in {len(missed)} of {inputs}")
    if run.gone:
        kept = counted(len(run.gone), "result", verb=("is", "are"))
        lines.append(f"{kept} kept although the input was deleted ('gone' in the ledger)")
    noted = sum("notes" in row.figures for row in run.rows)
    if noted:
        lines.append(f"the ledger has notes on {counted(noted, 'input')}")
    verdicts = Counter(row.figures["verdict"] for row in run.rows if "verdict" in row.figures)
    if verdicts:
        lines.append("verdicts: " + ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items())))
    page = "" if run.summary is None else f"; open {run.summary} to see the worst"
    lines.append(f"each input is a row of {run.ledger}{page}")
    return lines
