"""Jobs with their options, and the code that runs a job on one input, on many inputs, or as a command."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from synovia.errors import FormatError, InputError
from synovia.jobs.base import Host, Outcome, Progress, UsageError
from synovia.jobs.options import (
    File,
    Kind,
    Number,
    Option,
    Parsed,
    Word,
    described,
    ending_of,
    flag_of,
    is_changed,
    option,
    options_of,
    settings_of,
)
from synovia.jobs.shared import FORCE, FORMAT

CLIP_FORMATS: Final = "bvh|glb|vrm|vrma|fbx|npz|isaac.npz|mujoco.npz|csv|unitree.csv|trajectory.json|trajectory.yaml"
_CLIPS: Final = "The clip: a BVH, glTF/GLB, FBX, npz or CSV file. Or many: files, folders, patterns."

if TYPE_CHECKING:
    from synovia.batch.folder import Event, Run
    from synovia.batch.inputs import Item, Shard
    from synovia.batch.pool import Engine
    from synovia.batch.work import Figure, Picture


class Job(ABC):
    """A job: its fields are its options, and ``do`` processes one input.

    Derive a class from this one and decorate it with ``described``. To process one input, call an instance with a file
    and an output; ``run`` processes many inputs and keeps a ledger.
    """

    name: ClassVar[str]  # name of the command
    doing: ClassVar[str]  # text of the progress bar, such as "retargeting"
    how: ClassVar[Mapping[str, Option]]  # replaces descriptions of the options "output" and "format" of ``Running``
    counts: ClassVar[str] = "frames"  # unit of the figure "missed"

    def __getstate__(self) -> dict[str, Any]:
        """Return only the options: another process loads the models itself."""
        return {name: getattr(self, name) for name, _, _ in options_of(self)}

    @abstractmethod
    def do(self, item: Item, output: Path | None, host: Host) -> Outcome:
        """Process one input, and return the outcome.

        Args:
            item: The input.
            output: The file to write; None for only a report.
            host: Threads, notes and progress of the job.
        """

    def open(self, host: Host) -> None:
        """Load the models, and report their notes."""
        del host

    def prepare(self) -> None:
        """Load models and kernels in this process."""
        self.open(Host())

    def settings(self) -> dict[str, Any]:
        """Return the settings that, with the input, determine the output, as JSON values."""
        return settings_of(self)

    def is_brief(self) -> bool:
        """Return whether kernels that are not compiled yet may run as plain Python."""
        return False

    def are_many(self, sources: Sequence[str], output: str | None) -> bool:
        """Return whether there are many inputs: several files, a folder, a pattern, or an output folder (``out/``)."""
        from synovia.batch.inputs import is_many

        return is_many(sources, output)

    @abstractmethod
    def endings(self) -> Sequence[str]:
        """Return the endings of the files to read from folders."""

    def usual_ending(self) -> str | None:
        """Return the default ending of the output files in a folder; None for the ending of each input.

        Raises:
            UsageError: If the format has no default.
        """
        return None

    def collect(self, sources: Sequence[str], output: Path, ending: str | None) -> list[Item]:
        """Return the inputs, each with its output.

        Args:
            sources: Files, folders and patterns.
            output: The output folder.
            ending: Ending of the outputs; None for the default.
        """
        from synovia.batch.inputs import collect

        return collect(sources, output, self.endings(), ending or self.usual_ending())

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output, next to its input if the input still exists; None for no picture."""
        del output, source
        return None

    def falls_short(self, figures: Mapping[str, Any]) -> bool:
        """Return whether the figures of a result, as numbers or texts, lead to exit code 1."""
        return float(figures.get("missed") or 0) > 0

    def work(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the output of one of many inputs; return its figures and notes.

        Raises:
            FormatError: If verification finds that the output differs from the result in memory.
        """
        from synovia.batch.work import joined

        host = Host(1)
        outcome = self.do(item, output, host)
        if outcome.check is not None and not outcome.check.holds:
            hint = " ".join(dict.fromkeys([*host.written, outcome.check.report()]))
            raise FormatError("file was written, but differs", where=str(output), hint=hint)
        return {**outcome.figures, "notes": joined([*host.notes, *outcome.notes, *host.written])}

    def __call__(
        self,
        source: str | os.PathLike[str],
        output: str | os.PathLike[str] | None = None,
        *,
        threads: int | None = None,
        force: bool = False,
        progress: Progress | None = None,
    ) -> Outcome:
        """Process one input in this process, and return the outcome.

        Args:
            source: The input.
            output: The file to write; None for only a report.
            threads: Number of threads; None for all cores.
            force: Whether to replace existing files.
            progress: Called with the amount of work done and the total.

        Raises:
            SynoviaError: If the input cannot be used.
        """
        host = Host(threads, force=force, progress=progress)
        outcome = self.do(one_item(source), None if output is None else Path(output), host)
        return replace(outcome, notes=(*host.notes, *outcome.notes, *host.written))

    def run(
        self,
        sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        output: str | os.PathLike[str],
        *,
        notice: Callable[[Event], object] | None = None,
        **how: Any,
    ) -> Run:
        """Process many inputs as the command does: one process per core, a folder of outputs and a ledger.

        Args:
            sources: Files, folders and patterns.
            output: The output folder.
            notice: Called when an input is finished.
            how: Options of ``sy.jobs.Running``: ``format``, ``jobs``, ``engine``, ``address``, ``shard``,
                ``retry_failed``, ``fail_fast``, ``force``.

        Raises:
            SynoviaError: If the run cannot start. An input that cannot be used is reported in its row of the ledger.
        """
        given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
        running = Running(output=str(output), **how)
        return running.run(self, running.items(self, [str(one) for one in given]), notice)

    def refuse_many(self) -> None:
        """Refuse options that only work with a single input.

        Raises:
            UsageError: If such an option is given.
        """
        for name, said, _ in options_of(self):
            if said.single and is_changed(self, name):
                raise UsageError(f"expected a single {said.single} with this option.", flag_of(name, said))


def one_item(source: str | os.PathLike[str]) -> Item:
    """Return the item of a single input."""
    from synovia.batch.inputs import Item

    return Item(str(source), Path(source), "")


@dataclass(frozen=True)
class Verb:
    """A command with one or several jobs.

    Args:
        about: Help text of the command.
        jobs: The classes.
        sources: Description of the inputs.
        takes_output: Whether the last of several inputs is the output if there is no ``-o``.
        prints_json: Whether ``--json`` prints an object for a single input.
        inputs: Options that also name inputs.
        several: Whether the command accepts several inputs as arguments.
    """

    about: str
    jobs: tuple[type[Job], ...]
    sources: Option
    takes_output: bool = False
    prints_json: bool = False
    inputs: Mapping[str, Option] = field(default_factory=dict[str, Option])
    several: bool = True

    def options(self) -> Iterable[tuple[str, Option, Any]]:
        """Return name, description and default of each option of the jobs, each option once."""
        every = [one for job in self.jobs for one in options_of(job) if not one[1].hidden]
        return sorted(
            {name: (name, said, default) for name, said, default in every}.values(), key=lambda one: one[1].rank
        )

    def made(self, values: Mapping[str, Any], sources: Sequence[str], typed: Iterable[str]) -> tuple[Job, list[str]]:
        """Return the job of a command line, and its inputs.

        Args:
            values: The values of the options.
            sources: The inputs.
            typed: Names of the options that the user typed.

        Raises:
            UsageError: If options cannot be combined.
        """
        del typed
        return self.jobs[0](**values), list(sources)


def _shard(text: str) -> Shard:
    """Parse a shard such as ``I/N``."""
    from synovia.batch.inputs import Shard

    return Shard.parse(text)


def output_option(text: str, *, required: bool = False) -> Option:
    """Return a job's description of ``--output``: the help text, and whether it must be given."""
    return Option(text, File(as_text=True), ("--output", "-o"), "OUT", required=required)


def clips_argument(metavar: str, text: str = _CLIPS, *, required: bool = True) -> Option:
    """Return the description of inputs that are clips.

    Args:
        metavar: Placeholder of the inputs in the help.
        text: Help text.
        required: Whether at least one input must be given.
    """
    return Option(text, Kind(), metavar=metavar, completes="models", required=required, positional=True)


def format_option(
    known: Callable[[], Sequence[str]], metavar: str = CLIP_FORMATS, shown: str = "that of each input"
) -> Option:
    """Return a job's description of ``--format``.

    Args:
        known: Returns the endings of all formats, with their dots.
        metavar: The same endings without dots; a fixed text, so that help does not import the modules of all formats.
        shown: The default, in words.
    """
    kind = Parsed(lambda text: ending_of(text, known()))
    return replace(FORMAT, kind=kind, metavar=metavar, shown=shown)


@described
class Running:
    """Options for running a job: output, threads, and processing of many inputs."""

    output: str | None = option(
        default=None, help="The output file or folder.", kind=File(as_text=True), names=("--output", "-o")
    )
    format: str | None = option(default=None, like=FORMAT)
    jobs: int | None = option(
        default=None, help="Number of threads; results are identical for any number.",
        names=("--jobs", "-j"), metavar="N", kind=Number(1, whole=True), shown="all cores", rank=1,
    )  # fmt: skip
    engine: str = option(
        default="local", help="For many inputs: processes on this machine, or a Ray cluster.",
        kind=Word(("local", "ray")), many=True, rank=1,
    )  # fmt: skip
    address: str | None = option(
        default=None,
        help="A running Ray cluster.",
        metavar="ADDRESS",
        shown="a new one on this machine",
        many=True,
        rank=1,
    )
    shard: Any = option(
        default=None, help="Process only the I-th of N shares of the inputs, for job arrays.",
        metavar="I/N", kind=Parsed(_shard), shown="all", many=True, rank=1,
    )  # fmt: skip
    retry_failed: bool = option(default=False, help="For many inputs: try failed ones again.", many=True, rank=1)
    fail_fast: bool = option(default=False, help="For many inputs: stop at the first failure.", many=True, rank=1)
    force: bool = option(default=False, like=FORCE)

    @property
    def path(self) -> Path | None:
        """Path of the output; None if no output is given."""
        return None if self.output is None else Path(self.output)

    def folder(self, job: Job) -> Path:
        """Return the output folder of many inputs.

        Raises:
            UsageError: If no output is given, or the output cannot be a folder.
        """
        path = self.path
        if path is None:
            raise UsageError("expected an output folder for many inputs, got none.", "-o")
        try:
            is_file = path.is_file()
        except OSError as error:
            raise UsageError(f"expected a valid name of a folder ({error.strerror}).", "-o") from error
        if is_file:
            raise UsageError(f"expected a folder for many inputs, got the file {self.output!r}.", "-o")
        if _is_ending(job, path.suffix) and not path.exists():
            raise UsageError(f"expected a folder for many inputs, got {self.output!r}, the name of a file.", "-o")
        return path

    def items(self, job: Job, sources: Sequence[str]) -> list[Item]:
        """Return the inputs of a run, each with its output.

        Raises:
            FileError: If a source does not exist, or nothing is found.
            UsageError: If an option only works with a single input, or the output cannot be used.
        """
        job.refuse_many()
        folder = self.folder(job)
        ending = None if self.format is None else job.how["format"].checked("format", self.format)
        return job.collect(sources, folder, ending)

    def run(self, job: Job, items: Sequence[Item], notice: Callable[[Event], object] | None = None) -> Run:
        """Process many inputs, and return the result of the run.

        Args:
            job: The job.
            items: The inputs and their outputs.
            notice: Called when an input is finished.

        Raises:
            SynoviaError: If the run cannot start or continue.
        """
        from synovia.batch.folder import run_folder

        return run_folder(
            job, items, self.folder(job), engine=self._engine(), shard=self.shard, force=self.force,
            retry_failed=self.retry_failed, fail_fast=self.fail_fast, notice=notice,
        )  # fmt: skip

    def _engine(self) -> Engine:
        """Return the engine that distributes the inputs.

        Raises:
            MissingExtraError: If Ray is not installed.
            UsageError: If an address is given but the engine is not Ray.
        """
        if self.engine == "ray":
            from synovia.batch.cluster import Cluster

            return Cluster(self.address, self.jobs)
        if self.address is not None:
            raise UsageError("expected --engine ray with this option.", "--address")
        from synovia.batch.pool import Local

        return Local(self.jobs)


def running_options(job: type[Job]) -> Iterator[tuple[str, Option, Any]]:
    """Yield name, description and default of the options of ``Running`` for a job."""
    for name, said, default in options_of(Running):
        yield name, job.how.get(name, said), default


def _is_ending(job: Job, ending: str) -> bool:
    """Return whether outputs of a job may have an ending."""
    try:
        job.how["format"].checked("format", ending)
    except InputError:
        return False
    return True
