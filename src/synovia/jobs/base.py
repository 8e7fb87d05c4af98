"""Host of a job (threads, notes, progress), and the outcome of one input."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from synovia.errors import InputError
from synovia.text import Report

if TYPE_CHECKING:
    from synovia.batch.work import Figure
    from synovia.io.verify import FileCheck

REACHED: Final = 0  # exit code of a job that reached its targets
MISSED: Final = 1  # exit code of a job that missed targets
Progress = Callable[[float, float], Any]


class UsageError(InputError):
    """An option that cannot be used together with other options, or with these inputs.

    Args:
        message: What was expected, a sentence.
        option: The option, for example ``-o``; "" for several.
    """

    def __init__(self, message: str, option: str = "") -> None:
        """Store the option, and build the message."""
        super().__init__(message, where=option or None)
        self.option = option


class Host:
    """Host of a job: sets its threads, whether it may replace files, and where its notes and progress go.

    This class collects the notes; the host of the command line prints them.

    Args:
        threads: Number of threads; None for all cores.
        force: Whether to replace existing files.
        progress: Called with the amount of work done and the total.
    """

    def __init__(self, threads: int | None = None, *, force: bool = False, progress: Progress | None = None) -> None:
        """Store the arguments."""
        self.threads, self.force, self._progress = threads, force, progress
        self.notes: list[str] = []  # notes on the input
        self.written: list[str] = []  # notes on the written files

    def note(self, notes: Iterable[str], about: str = "") -> None:
        """Record notes on ignored parts of an input.

        Args:
            notes: The notes.
            about: Name of the clip.
        """
        del about
        self.notes += notes

    def note_model(self, notes: Iterable[str]) -> None:
        """Record notes on a model, which are the same for all inputs."""

    def say(self, text: str, about: str) -> None:
        """Record a sentence on the clip named ``about``."""
        del about
        self.notes.append(text)

    def wrote(self, path: Path, notes: Sequence[str]) -> None:
        """Record notes on content that a written file does not show."""
        if notes:
            self.written.append(f"{path}: {' '.join(notes)}")

    def compared(self, check: FileCheck) -> None:
        """Record the comparison of a written file with the result in memory."""

    def ready(self, outcome: Outcome) -> None:
        """Record an outcome before its files are written, so that a failed write keeps the report."""

    @contextmanager
    def bar(self, text: str, count: int = 0, unit: str = "frames") -> Generator[Callable[..., Any] | None]:
        """Yield a function to call with the units done and their total, or with a fraction; None for no reports."""
        del text, count, unit
        progress = self._progress

        def share(done: float, of: float = 1.0) -> None:
            if progress is not None:
                progress(done, of)

        yield None if progress is None else share


@dataclass(frozen=True)
class Outcome:
    """Outcome of a job for one input.

    Args:
        result: The result object of the library, such as a ``Motion`` or a ``Retargeted``.
        figures: Figures of the result, as in a row of the ledger.
        falls_short: Whether goals were missed, or the verdict is "failed".
        files: The files that were written.
        notes: Notes for the user.
        warnings: Warnings from the judgement of the clip.
        reporter: Returns the report; None if there is none.
        said: A sentence on the work done; "" if the report contains it.
        hint: A sentence that only the terminal shows, after the report; "" for none.
        check: Comparison of the file with the result in memory; None without verification.
        text_warns: Whether the text of the report contains the warnings.
    """

    result: Any
    figures: Mapping[str, Figure]
    falls_short: bool = False
    files: Sequence[Path] = ()
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    reporter: Callable[[], Report] | None = None
    said: str = ""
    hint: str = ""
    check: FileCheck | None = field(default=None, repr=False)
    text_warns: bool = False

    @property
    def code(self) -> int:
        """Exit code of the command: 0, or 1 if the result falls short or the written file differs from memory."""
        return MISSED if self.falls_short or (self.check is not None and not self.check.holds) else REACHED

    def report(self) -> Report:
        """Return the report."""
        from synovia.jobs.words import unstyled

        if self.reporter is None:
            return Report([self.said], {})
        found = self.reporter()
        return Report([unstyled(found)], found.facts)
