"""Where a job runs, who hears of its notes and its progress, and what it makes of one input."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from synovia.errors import InputError

if TYPE_CHECKING:
    from synovia.batch.work import Figure
    from synovia.io.verify import FileCheck

REACHED: Final = 0  # exit codes
MISSED: Final = 1
Progress = Callable[[float, float], Any]


class UsageError(InputError):
    """An option that cannot be used together with others, or with these inputs.

    Args:
        message: What was expected, a sentence.
        option: The option, for example ``-o``; "" for several.
    """

    def __init__(self, message: str, option: str = "") -> None:
        """Store the parts."""
        super().__init__(message, where=option or None)
        self.option = option


class Host:
    """Where a job runs: its threads, whether it may replace files, and who hears of its notes and its progress.

    This one keeps the notes. The command line has one that prints them.

    Args:
        threads: Number of threads; None for all cores.
        force: Whether files that exist are replaced.
        progress: Called with what is done and the whole.
    """

    def __init__(self, threads: int | None = None, *, force: bool = False, progress: Progress | None = None) -> None:
        """Store the arguments."""
        self.threads, self.force, self._progress = threads, force, progress
        self.notes: list[str] = []  # on the input
        self.written: list[str] = []  # on the files that were written

    def note(self, notes: Iterable[str], about: str = "") -> None:
        """Take notes on what of an input was not kept.

        Args:
            notes: The notes.
            about: Name of the clip.
        """
        del about
        self.notes += notes

    def note_model(self, notes: Iterable[str]) -> None:
        """Take notes on a model, which are the same for all inputs."""

    def say(self, text: str, about: str) -> None:
        """Take a sentence on a clip with this name."""
        del about
        self.notes.append(text)

    def wrote(self, path: Path, notes: Sequence[str]) -> None:
        """Take notes on what a written file does not show."""
        if notes:
            self.written.append(f"{path}: {' '.join(notes)}")

    def compared(self, check: FileCheck) -> None:
        """Take the comparison of a written file with the memory."""

    def ready(self, outcome: Outcome) -> None:
        """Take an outcome whose files are not written yet, so that its report is there if they cannot be."""

    @contextmanager
    def bar(self, text: str, count: int = 0, unit: str = "frames") -> Generator[Callable[..., Any] | None]:
        """Give what takes the progress of some work on ``count`` units, or its share of 1; None if nobody looks."""
        del text, count, unit
        progress = self._progress

        def share(done: float, of: float = 1.0) -> None:
            if progress is not None:
                progress(done, of)

        yield None if progress is None else share


@dataclass(frozen=True)
class Outcome:
    """What a job made of one input.

    Args:
        result: The answer of the library, such as a ``Motion`` or a ``Retargeted``.
        figures: Its figures, as in a row of the ledger.
        falls_short: Whether goals were missed, or the verdict forbids to use it.
        files: The files that were written.
        notes: What a user should know.
        warnings: Sentences of the judge of clips.
        text: Returns the report; None if there is none.
        json: Returns the report as an object of plain values; None if there is none.
        said: A sentence on what was done; "" if the report says it.
        hint: A sentence that the text of the report leaves to the terminal; "" for none.
        check: Comparison of the file with the memory; None if it was not asked for.
        text_warns: Whether the report has the warnings.
    """

    result: Any
    figures: Mapping[str, Figure]
    falls_short: bool = False
    files: Sequence[Path] = ()
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    text: Callable[[], str] | None = None
    json: Callable[[], Mapping[str, Any]] | None = None
    said: str = ""
    hint: str = ""
    check: FileCheck | None = field(default=None, repr=False)
    text_warns: bool = False

    @property
    def code(self) -> int:
        """Exit code of the command: 0, or 1 if the result falls short or the file differs from the memory."""
        return MISSED if self.falls_short or (self.check is not None and not self.check.holds) else REACHED

    def report(self) -> str:
        """Return the report as text."""
        from synovia.jobs.words import unstyled

        return self.said if self.text is None else unstyled(self.text())
