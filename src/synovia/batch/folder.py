"""Do a task for many files: plan what is missing, deal it out, publish the outputs and keep the ledger.

Workers write into a folder of unfinished files. Only this process moves a file to its place, records it, and so decides
that it is done: every output is whole or absent, and a worker whose run was killed cannot change it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from synovia.batch.inputs import Item, Shard, first_names
from synovia.batch.ledger import Ledger, Row, as_text, parquet_bytes, settings_hash
from synovia.batch.pool import Engine, Local
from synovia.batch.summary import write_summary
from synovia.batch.work import DONE, FAILED, GONE, SAME, Job, Outcome, Task
from synovia.errors import FileError, SynoviaError
from synovia.io.base import write_bytes

_UNFINISHED: Final = ".unfinished"
_PAUSE: Final = 10.0  # seconds between two writes of the ledger
_SHARE: Final = 20.0  # least ratio of the time between two writes and that of one


class Event(NamedTuple):
    """The end of one item.

    Args:
        row: Its row of the ledger.
        seconds: Time that it took.
        ended: Number of items that have ended.
        todo: Number of items to do.
        failed: Number of failures so far.
    """

    row: Row
    seconds: float
    ended: int
    todo: int
    failed: int


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run.

    Args:
        rows: All rows of the ledger.
        inputs: Number of inputs.
        done: Number of inputs that this run has done.
        same: Number of inputs that were left as they were.
        failed: Rows of inputs that failed, now or before.
        gone: Rows whose input was deleted; their outputs remain.
        ledger: The file of the ledger.
        summary: The page; None for a shard.
    """

    rows: Sequence[Row]
    inputs: int
    done: int
    same: int
    failed: Sequence[Row]
    gone: Sequence[Row]
    ledger: Path
    summary: Path | None


def run_folder(
    task: Task,
    items: Sequence[Item],
    output: Path,
    *,
    engine: Engine | None = None,
    shard: Shard | None = None,
    force: bool = False,
    retry_failed: bool = False,
    fail_fast: bool = False,
    notice: Callable[[Event], object] | None = None,
) -> Run:
    """Do a task for all items that are not done yet.

    An item is done again if its output is missing, its input or the settings have changed, or the process that worked
    on it died.

    Args:
        task: The task.
        items: The inputs and their outputs.
        output: The output folder; it is created.
        engine: Does the work; None for a process per core.
        shard: Share of the items to do; None for all.
        force: Whether to do everything again and to replace files that no ledger names.
        retry_failed: Whether to do again what failed.
        fail_fast: Whether the first failure ends the run.
        notice: Called when an item ends.

    Raises:
        FileError: If the folder cannot be written, holds files of others with names of outputs or outputs of another
            command, or is in use.
        SynoviaError: The first failure, with ``fail_fast``.
    """
    twice = [output for output, times in Counter(item.output for item in items).items() if times > 1]
    if twice:
        raise FileError("inputs have the same output", where=str(output), value=first_names(twice), hint="rename one")
    mine = list(items) if shard is None else shard.of_items(items)
    settings = {"command": task.name, "version": version("synovia"), **task.settings()}
    _make(output)
    with Ledger(output, shard) as ledger:
        made = {ledger.commands.get(ledger.rows[item.output].settings) for item in mine if item.output in ledger.rows}
        others = sorted(name for name in made if name is not None and name != task.name)
        if others and not force:
            what = f"these outputs were made by {' and '.join(map(repr, others))}, not by {task.name!r}"
            raise FileError(what, where=str(output), expected="another folder", hint="--force replaces them")
        plan = _Plan(task, settings_hash(settings), mine, output, ledger)
        jobs = plan.jobs(force=force, retry_failed=retry_failed)
        ledger.write_log([{"event": "run", "time": time.time(), "settings": settings, "items": len(mine)}])
        own = {item.output for item in mine}
        scratch = output / (_UNFINISHED if shard is None else f"{_UNFINISHED}.{shard.tag}")
        try:
            if shard is None:
                _remove(*output.glob(f"{_UNFINISHED}.*-of-*"))  # of shards that were killed
            _remove(scratch)
            _make(scratch)
            plan.work(engine or Local(), jobs, scratch, fail_fast=fail_fast, notice=notice)
        finally:
            _remove(scratch)
            with suppress(FileError):  # the disk is full: the log has everything
                if shard is None:
                    ledger.part_with(ledger.rows.keys() - own)
                ledger.write()
        rows = ledger.write()
        page = None
        if shard is None:
            data = parquet_bytes(rows)
            if data is not None:
                write_bytes(output / "ledger.parquet", data, force=True)
            ledger.unite()
            page = write_summary(output, rows, settings, task.picture, {item.output: item.path for item in items})
        failed = [row for row in rows if row.output in own and row.status != DONE]
        gone = [row for row in rows if row.status == GONE]
        return Run(rows, len(mine), plan.done, plan.same, failed, gone, ledger.path, page)


def _make(folder: Path) -> None:
    """Create a folder, unless it is there.

    Raises:
        FileError: If it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot be written ({error.strerror})", where=str(folder), expected="a folder") from error


def _remove(*folders: Path) -> None:
    """Remove folders with their content, as far as possible."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


class _Plan:
    """What is to do in one run, and what has been done."""

    def __init__(self, task: Task, settings: str, items: Sequence[Item], output: Path, ledger: Ledger) -> None:
        """Store the arguments."""
        self._task, self._settings, self._items, self._output, self._ledger = task, settings, items, output, ledger
        self.done = 0
        self.same = 0

    def jobs(self, *, force: bool, retry_failed: bool) -> list[tuple[Item, str]]:
        """Return the items to do, each with the hash of the content that is done, "" if none is.

        Raises:
            FileError: If outputs exist that this ledger does not name.
        """
        ledger, found = self._ledger, list[tuple[Item, str]]()
        others: list[str] = []
        for item in self._items:
            there = os.path.exists(self._output / item.output)  # noqa: PTH110  a path would raise for a long name
            if there and item.output not in ledger.claimed and not force:
                others.append(item.output)
            row = ledger.rows.get(item.output)
            known = ""
            if row is not None and not force and row.settings == self._settings and row.input == item.name:
                is_open = {DONE: not there, GONE: not there, FAILED: retry_failed}.get(row.status, True)
                known = "" if is_open else row.sha256
                if known and row.status != GONE and ledger.is_unchanged(item.output, item.path):
                    self.same += 1
                    continue
            found.append((item, known))
        if others:
            what = f"{len(others)} outputs exist that this ledger does not name: {first_names(others)}"
            hint = "give another folder, or --force to replace them"
            raise FileError(what, where=str(self._output), hint=hint)
        return found

    def work(
        self,
        engine: Engine,
        todo: Sequence[tuple[Item, str]],
        scratch: Path,
        *,
        fail_fast: bool,
        notice: Callable[[Event], object] | None,
    ) -> None:
        """Do the items, publish and record each outcome.

        Raises:
            FileError: If nothing can be written.
            SynoviaError: The first failure, with ``fail_fast``.
        """
        jobs = [Job(number, item, known, scratch) for number, (item, known) in enumerate(todo)]
        self._ledger.claim({item.output: item.name for item, _ in todo})
        failed = 0
        written, pause = time.monotonic(), _PAUSE
        with closing(engine.run(self._task, jobs)) as outcomes:
            for ended, outcome in enumerate(outcomes, 1):
                job = jobs[outcome.number]
                if outcome.fatal:
                    raise FileError(outcome.error, hint="run the command again when there is space")
                row = self._publish(job, outcome)
                failed += row.status != DONE
                if notice is not None:
                    notice(Event(row, outcome.seconds, ended, len(jobs), failed))
                if fail_fast and row.status != DONE:
                    raise SynoviaError(row.error)
                if time.monotonic() - written > pause:
                    written = time.monotonic()
                    self._ledger.write()
                    pause = max(_PAUSE, _SHARE * (time.monotonic() - written))

    def _publish(self, job: Job, outcome: Outcome) -> Row:
        """Move the output to its place, or remove that of an earlier run after a failure; return the recorded row."""
        item, target = job.item, self._output / job.item.output
        more: dict[str, Any] = {"seconds": outcome.seconds, "attempts": outcome.attempts}
        if outcome.trace:
            more["trace"] = outcome.trace
        if outcome.status == SAME:
            row = self._ledger.rows[item.output]
            row = replace(row, status=DONE) if row.status == GONE else row  # the input is back
            self.same += 1
        else:
            self._ledger.replace(item.output)
            try:
                if outcome.file is not None and outcome.status == DONE:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    outcome.file.replace(target)
                    self.done += 1
                else:
                    target.unlink(missing_ok=True)
            except OSError as error:
                raise FileError(f"cannot be written ({error.strerror})", where=str(target)) from error
            figures = {name: text for name, value in outcome.figures.items() if (text := as_text(value))}
            row = Row(
                item.name, item.output, outcome.status, outcome.sha256, self._settings, outcome.error, figures
            )  # fmt: skip
        self._ledger.record(row, outcome.stat, item.path, more)
        if outcome.file is not None and outcome.status != DONE:
            with suppress(OSError):
                outcome.file.unlink(missing_ok=True)
        return row
