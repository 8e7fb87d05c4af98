"""Process many files: plan the work, distribute it, publish the outputs and keep the ledger.

Workers write into a folder of unfinished files. Only this process moves a finished file to its place and records it.
So an output is either complete or absent, and a worker whose run was killed cannot change it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from synovia.batch.content import Content, contents_of
from synovia.batch.inputs import Item, Shard, escaped, first_names, shared
from synovia.batch.ledger import NAME, UNFINISHED, Ledger, Row, as_text, parquet_bytes, settings_hash
from synovia.batch.pool import Engine, Local, cores
from synovia.batch.summary import write_summary
from synovia.batch.work import DONE, FAILED, GONE, Portion, Result, Task
from synovia.errors import FileError, SynoviaError
from synovia.io.base import write_bytes
from synovia.text import counted

_PAUSE: Final = 10.0  # smallest time between two writes of the ledger, seconds
_SHARE: Final = 20.0  # smallest ratio of the time between two writes to the duration of one write


class Event(NamedTuple):
    """The end of one item.

    Args:
        row: The item's row of the ledger.
        seconds: Processing time.
        ended: Number of finished items, failures included.
        todo: Number of items to process.
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
        done: Number of inputs that this run processed successfully.
        same: Number of inputs that were up to date.
        failed: Rows of inputs that failed, now or before.
        gone: Rows whose input was deleted; their outputs remain.
        ledger: The file of the ledger.
        summary: The summary page; None for a shard.
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
    """Process all items that are not done yet.

    An item is processed again if its output is missing or damaged, if its input or the settings have changed, or if it
    failed for a reason other than its input. A run that cannot start leaves no files.

    Args:
        task: The task.
        items: The inputs and their outputs.
        output: The output folder; created if it is missing.
        engine: Runs the task; None for one process per core.
        shard: Share of the items to process; None for all.
        force: Whether to process all items again and to replace files that no ledger names.
        retry_failed: Whether to try failed items again.
        fail_fast: Whether the first failure ends the run.
        notice: Called when an item is finished.

    Raises:
        FileError: If the folder cannot be written or is in use, or if a foreign file, or an output of another command
            or another input, would be replaced.
        SynoviaError: The first failure, with ``fail_fast``.
    """
    mine = list(items) if shard is None else shard.of_items(items)
    settings = {"command": task.name, "version": version("synovia"), **task.settings()}
    made = _make(output)
    try:
        with Ledger(output, shard, force=force) as ledger:
            plan = _Plan(task, settings, mine, ledger)
            try:
                both = shared((item.output for item in items), folds_case=_folds_case(output))
                if both:
                    what, hint = "inputs have the same output", "rename one of the inputs"
                    raise FileError(what, where=str(output), value=first_names(both), hint=hint)
                todo = plan.todo(force=force, retry_failed=retry_failed)
                scratch = output / (UNFINISHED if shard is None else f"{UNFINISHED}.{shard.tag}")
                if shard is None:
                    _remove(*output.glob(f"{UNFINISHED}.*-of-*"))  # folders of runs of shards that were killed
                plan.work(engine or Local(), todo, scratch, fail_fast=fail_fast, notice=notice)
            finally:
                if plan.begun:
                    with suppress(FileError):  # if the disk is full; the log already has all rows
                        if shard is None:
                            ledger.part_with(ledger.rows.keys() - {item.output for item in mine})
                        ledger.write()
                else:
                    ledger.remove_if_empty()
            rows = ledger.write()
            page = None
            if shard is None:
                data = parquet_bytes(rows)
                if data is not None:
                    write_bytes(output / "ledger.parquet", data, force=True)
                ledger.unite()
                page = write_summary(output, rows, settings, task.picture, {item.output: item.path for item in items})
    finally:
        _unmake(made)
    own = {item.output for item in mine}
    failed = [row for row in rows if row.output in own and row.status != DONE]
    gone = [row for row in rows if row.status == GONE]
    return Run(rows, len(mine), plan.done, plan.same, failed, gone, ledger.path, page)


def _folds_case(folder: Path) -> bool:
    """Return whether the disk of an output folder ignores the case of names."""
    logs = [path for path in folder.glob(f"{NAME}*.log") if path.name.islower()]
    return any(path.with_name(path.name.upper()).exists() for path in logs)


def _make(folder: Path) -> list[Path]:
    """Create a folder if it is missing; return the created folders, the innermost first.

    Raises:
        FileError: If the folder cannot be created.
    """
    try:
        new = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot be written ({error.strerror})", where=str(folder), expected="a folder") from error
    return new


def _unmake(folders: Sequence[Path]) -> None:
    """Remove folders that a run created, if they are empty."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _remove(*folders: Path) -> None:
    """Remove folders with their content, as far as possible."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


class _Plan:
    """Items to process in one run, and counts of its results.

    Args:
        task: The task.
        settings: Settings of the task, with command and version.
        items: The inputs and their outputs.
        ledger: The ledger of the output folder.
    """

    def __init__(self, task: Task, settings: Mapping[str, Any], items: Sequence[Item], ledger: Ledger) -> None:
        """Store the arguments."""
        self._task, self._items, self._output, self._ledger = task, items, ledger.folder, ledger
        self._run = {"event": "run", "time": time.time(), "settings": settings, "items": len(items)}
        self._settings = settings_hash(settings)
        self.begun = False  # whether this run is registered in the ledger
        self.done = 0
        self.same = 0

    def todo(self, *, force: bool, retry_failed: bool) -> list[Item]:
        """Return the items to process.

        Raises:
            FileError: If an output would replace a foreign file, or an output of another command or another input.
        """
        ledger = self._ledger
        held: dict[str, bool] = {}  # by output: whether its row is valid if its input is unchanged
        others: list[str] = []  # outputs made from another file, which is allowed if its content is equal
        strangers: list[str] = []
        unread: list[Path] = []
        for item in self._items:
            there = os.path.exists(self._output / item.output)  # noqa: PTH110  a path would raise for a long name
            row = ledger.rows.get(item.output)
            if there and not force and item.output not in ledger.claimed:
                strangers.append(item.output)
            elif there and not force and self._is_of_another(item):
                others.append(item.output)
            if row is not None and not force and row.settings == self._settings and row.input == item.name:
                held[item.output] = self._is_held(row, retry_failed=retry_failed)
            unchanged = row is not None and row.status != GONE and ledger.is_unchanged(item.output, item.path)
            if item.output in others or (held.get(item.output) and not unchanged):
                unread.append(item.path)
        self._refuse(*strangers, verb=("exists", "exist"), why="without an entry in the ledger")
        if not force:
            self._refuse_commands()
        contents = contents_of(unread, cores())
        found: list[Item] = []
        same: list[tuple[Item, Content]] = []
        foreign: list[str] = []
        for item in self._items:
            content = contents.get(item.path)
            row = ledger.rows.get(item.output)
            equal = content is None or (row is not None and content.sha256 == row.sha256)
            if item.output in others and not equal:
                foreign.append(f"{item.output} from {ledger.input_of(item.output)}")
            if held.get(item.output) and equal:
                self.same += 1
                if content is not None:
                    same.append((item, content))
            else:
                found.append(item)
        self._refuse(*foreign, verb=("was", "were"), why="made from other inputs")
        for item, content in same:  # store new stamps for the next run, and the status of inputs that exist again
            ledger.record(replace(ledger.rows[item.output], status=self._status(item)), item.path, content.stamps, {})
        return found

    def _status(self, item: Item) -> str:
        """Return the status of an input that exists and is unchanged."""
        status = self._ledger.rows[item.output].status
        return DONE if status == GONE else status

    def _is_held(self, row: Row, *, retry_failed: bool) -> bool:
        """Return whether a row is still valid, provided that its input is unchanged."""
        if row.status in (DONE, GONE):
            return bool(row.sha256) and self._ledger.is_intact(row.output)
        return row.status == FAILED and bool(row.sha256) and not retry_failed

    def _is_of_another(self, item: Item) -> bool:
        """Return whether an existing output was made from another file than the item's input."""
        before = self._ledger.input_of(item.output)
        if before is None or before == os.path.abspath(item.path):  # noqa: PTH100  absolute as in the ledger
            return False
        try:
            return not os.path.samefile(before, item.path)  # noqa: PTH121
        except (OSError, ValueError):
            return True

    def _refuse(self, *outputs: str, verb: tuple[str, str], why: str) -> None:
        """Raise an error for a run that would replace outputs; do nothing without outputs.

        Raises:
            FileError: If there are outputs.
        """
        if outputs:
            count = counted(len(outputs), "output", verb=verb)
            what = f"{count} {why}: {first_names([escaped(name) for name in outputs])}"
            hint = "give another folder, or --force to replace them"
            raise FileError(what, where=str(self._output), hint=hint)

    def _refuse_commands(self) -> None:
        """Raise an error if outputs of another command would be replaced.

        Raises:
            FileError: If outputs of another command would be replaced.
        """
        ledger = self._ledger
        rows = [ledger.rows[item.output] for item in self._items if item.output in ledger.rows]
        names = {ledger.commands.get(row.settings) for row in rows}
        others = sorted(name for name in names if name is not None and name != self._task.name)
        if others:
            what = f"these outputs were made by {' and '.join(map(repr, others))}, not by {self._task.name!r}"
            raise FileError(
                what, where=str(self._output), expected="another folder", hint="or use --force to replace them"
            )

    def _begin(self, items: Sequence[Item]) -> None:
        """Register this run in the ledger; called when the first result shows that the task works."""
        if not self.begun:
            self._ledger.write_log([self._run])
            self._ledger.claim(items)
            self.begun = True

    def work(
        self,
        engine: Engine,
        todo: Sequence[Item],
        scratch: Path,
        *,
        fail_fast: bool,
        notice: Callable[[Event], object] | None,
    ) -> None:
        """Process the items; publish and record each result.

        Raises:
            FileError: If outputs cannot be written.
            SynoviaError: The first failure, with ``fail_fast``.
        """
        portions = [Portion(number, item, scratch) for number, item in enumerate(todo)]
        failed = 0
        written, pause = time.monotonic(), _PAUSE
        _remove(scratch)
        _make(scratch)
        try:
            with closing(engine.run(self._task, portions)) as results:
                for ended, result in enumerate(results, 1):
                    self._begin(todo)
                    if result.fatal:
                        raise FileError(
                            result.error, hint="free space or make the folder writable, then run the command again"
                        )
                    row = self._publish(portions[result.number], result)
                    failed += row.status != DONE
                    if notice is not None:
                        notice(Event(row, result.seconds, ended, len(portions), failed))
                    if fail_fast and row.status != DONE:
                        raise SynoviaError(row.error)
                    if time.monotonic() - written > pause:
                        written = time.monotonic()
                        self._ledger.write()
                        pause = max(_PAUSE, _SHARE * (time.monotonic() - written))
            self._begin(todo)
        finally:
            _remove(scratch)

    def _publish(self, portion: Portion, result: Result) -> Row:
        """Move the output to its place, or after a failure remove the old output; return the recorded row."""
        item, target = portion.item, self._output / portion.item.output
        self._ledger.check()
        if result.status == DONE and (result.file is None or not result.file.is_file()):
            error = f"{escaped(item.name)}: its result file was removed before it could be moved to the output folder"
            result = result._replace(status=FAILED, error=error, content=Content())
        self._ledger.replace(item.output)
        try:
            if result.file is not None and result.status == DONE:
                target.parent.mkdir(parents=True, exist_ok=True)
                result.file.replace(target)
                self.done += 1
            else:
                target.unlink(missing_ok=True)
        except OSError as error:
            raise FileError(f"cannot be written ({error.strerror})", where=str(target)) from error
        figures = {name: text for name, value in result.figures.items() if (text := as_text(value))}
        made = result.made if result.status == DONE else ""
        row = Row(
            item.name, item.output, result.status, result.content.sha256, self._settings, result.error, figures, made
        )  # fmt: skip
        more: dict[str, Any] = {"seconds": result.seconds, "attempts": result.attempts}
        if result.trace:
            more["trace"] = result.trace
        self._ledger.record(row, item.path, result.content.stamps, more)
        if result.file is not None and result.status != DONE:
            with suppress(OSError):
                result.file.unlink(missing_ok=True)
        return row
