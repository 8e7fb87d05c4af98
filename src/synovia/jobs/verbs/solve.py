"""``solve``: solve for one pose and print or write it, or solve a table of targets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from synovia.errors import InputError, UnsupportedError
from synovia.jobs.base import Host, Outcome, UsageError
from synovia.jobs.clearance import Clear
from synovia.jobs.clips import Looped, Roles, Verified
from synovia.jobs.job import Job, Running, Verb, format_option, output_option
from synovia.jobs.options import (
    ALWAYS,
    NEVER,
    NUMBER,
    File,
    Flag,
    Number,
    Option,
    Parsed,
    argument,
    described,
    flag_of,
    is_changed,
    numbers_of,
    option,
    options_of,
)  # fmt: skip
from synovia.jobs.shared import DEADLINE, GOALS, LOOK, MODEL, MOVING, ROOT, SEED, SOLVER, STARTS, TOLERANCE
from synovia.text import Report, counted

if TYPE_CHECKING:
    from synovia.batch.functions import Solve as SolveRows
    from synovia.batch.inputs import Item
    from synovia.facade import IK
    from synovia.goals import Goal
    from synovia.goals.base import GoalList
    from synovia.ik import Solution
    from synovia.ik.starts import LearnedStarts
    from synovia.model import Pose, Skeleton
    from synovia.model.geometry import Array
    from synovia.solver import Solver as SolverSettings

TABLE_SCHEMA: Final = "synovia.solve-table/1"
_QUICK: Final = 2.0  # seconds; a solve that takes longer is not repeated to measure its time, unless it took few steps
_FEW: Final = 2000  # number of steps; a slow solve with fewer steps spent its time in the compiler
_POSE_SEED: Final = Number(0, 2**32 - 1, whole=True)

_T = TypeVar("_T")
_Frame = tuple[int, bytes]  # row of a joint, and the bytes of a site's placement on this joint
_Position = tuple[str, tuple[float, ...]]  # key of a joint, and position
_Rotation = tuple[str, "Array"]  # key of a joint, and rotation matrix


def _position(text: str) -> _Position:
    """Return joint and position of ``JOINT=X,Y,Z``."""
    joint, value = _joint_and_value(text, "JOINT=X,Y,Z")
    return joint, numbers_of(value, 3, 3, text)


def _rotation(text: str) -> _Rotation:
    """Return joint and rotation matrix of ``JOINT=AXES:A,B,C`` or of a quaternion."""
    from synovia.files.rotations import RotationSpec, to_matrix

    joint, value = _joint_and_value(text, "JOINT=xyz:A,B,C")
    way, colon, angles = value.partition(":")
    way = way.strip()
    quaternion = way in ("quat_xyzw", "quat_wxyz")
    size = 4 if quaternion else len(way)
    if not colon or not size:
        raise InputError("", value=text, expected="JOINT=xyz:A,B,C")
    values = numbers_of(angles, size, size, text)
    turn = RotationSpec(**{way: values}) if quaternion else RotationSpec(euler=way, degrees=list(values))  # type: ignore[arg-type]
    return joint, to_matrix(turn, f"rotation of {joint!r}")


def _joint_and_value(text: str, form: str) -> tuple[str, str]:
    """Return the texts on both sides of the last equals sign.

    Raises:
        InputError: If a side is empty; the message names the expected ``form``.
    """
    joint, _, value = text.rpartition("=")
    if not joint.strip() or not value.strip():
        raise InputError("", value=text, expected=form)
    return joint.strip(), value


def _start(text: str) -> int | Path | None:
    """Return the seed or the pose file to start from, None for the rest pose."""
    if text == "rest":
        return None
    if Path(text).suffix:
        return Path(text)
    word, colon, seed = text.partition(":")
    if word != "random" or not colon:
        raise InputError("", value=text, expected="rest, random:SEED such as random:1, or a pose file")
    return int(_POSE_SEED.of(seed))


def _table_endings() -> Sequence[str]:
    """Return the endings of tables."""
    from synovia.batch.tables import ENDINGS

    return ENDINGS


@described
class _Solves(Looped, Clear, Job):
    """Options that both jobs share: the goals, and the settings of the solve."""

    goals: Path | None = option(default=None, like=GOALS, recorded=ALWAYS, rank=-1)
    solver: Any = option(default=..., like=SOLVER, recorded=ALWAYS)
    tolerance: tuple[float, float] | None = option(default=..., like=TOLERANCE, recorded=ALWAYS)
    root: Any = option(default=..., like=ROOT, recorded=ALWAYS)
    moving: Sequence[str] = option(default=(), like=MOVING)
    starts: Path | None = option(default=..., like=STARTS)
    attempts: int | None = option(
        default=None,
        help="Largest number of attempts; all but the first start at random. A solve makes fewer if it proves that a"
        " goal cannot be reached, or if the body is large.",
        kind=Number(1, 10**6, whole=True), metavar="N", shown="the solver's", recorded=NEVER,
    )  # fmt: skip
    seed: int | None = option(default=None, like=replace(SEED, help="Seed of the restarts."), shown="0", recorded=NEVER)

    name: ClassVar[str] = "solve"
    doing: ClassVar[str] = "solving"
    how: ClassVar[Mapping[str, Option]] = {
        "output": output_option(
            "Write the pose (.json, or .glb for a glTF; --start reads both), or the results of --targets: a table or a"
            " folder."
        ),
        "format": format_option(_table_endings, "parquet|arrow|npz|csv"),
    }

    @property
    def _default_solver(self) -> str | None:
        """The solver to use without ``--solver``; None for the library's default."""
        return None

    def _algorithm(self, goals: Sequence[Goal]) -> SolverSettings:
        """Return the settings of the solver for given goals.

        Raises:
            UsageError: If the solver has no setting for a given option.
        """
        from synovia.solver import as_solver

        algorithm = as_solver(self._default_solver if self.solver is None else self.solver, goals)
        given = {key: value for key, value in (("attempts", self.attempts), ("seed", self.seed)) if value is not None}
        for key in given:
            if not hasattr(algorithm, key):
                raise UsageError(f"expected a solver with {key}, got {algorithm.name!r}.", f"--{key}")
        return algorithm.replace(**given)

    @cached_property
    def _learned(self) -> LearnedStarts | None:
        """The learned starts; None if no file is given."""
        from synovia.ik.starts import load_starts

        return None if self.starts is None else load_starts(self.starts)

    @cached_property
    def _of_file(self) -> GoalList | None:
        """The goals of the file; None if no file is given."""
        from synovia.files.goals import read_goals

        return None if self.goals is None else read_goals(self.goals, world=self.obstacles)

    @property
    def _allowed(self) -> Sequence[str | int] | None:
        """The joints that may move: those of the options, else those of the file; None for all."""
        return self.moving or (None if self._of_file is None else self._of_file.moving)


@described
class Solve(_Solves):
    """Solve tables of targets.

    >>> import synovia as sy
    >>> solve = sy.jobs.Solve("arm7", solver="dls")
    >>> solve("targets.csv", "answers.csv")  # doctest: +SKIP
    >>> solve.run("tables", "answers")  # doctest: +SKIP
    """

    model: str = argument(like=MODEL, recorded=ALWAYS)
    simd: bool | None = option(
        default=None, help="Solve --targets with SIMD.", kind=Flag(both=True), shown="if the solver can",
        recorded=ALWAYS,
    )  # fmt: skip

    counts: ClassVar[str] = "rows"

    def settings(self) -> dict[str, Any]:
        """Return the settings that, with the input, determine the output, as JSON values."""
        from synovia.io.base import read_text

        goals = None if self.goals is None else read_text(self.goals)
        return {**super().settings(), "goals": goals, "solver": repr(self._algorithm(self._problem[1] or ()))}

    @cached_property
    def _problem(self) -> tuple[Skeleton, list[Goal] | None]:
        """The body, and the goals in addition to those of the table's columns; None if there are no others."""
        from synovia.io.load import load_model

        given = self._of_file
        skeleton, goals = self.keep_clear(load_model(self.model, loops=self.loops), given or (), Host())
        return skeleton, goals if given is not None or goals else None

    def function(self, threads: int | None = 1) -> SolveRows:
        """Return the function that solves a block of rows on the given number of threads."""
        from synovia.batch.functions import Solve as SolveRows

        skeleton, goals = self._problem
        return SolveRows(
            skeleton, goals, self._algorithm(goals or ()), tolerance=self.tolerance, root=self.root, simd=self.simd,
            threads=threads, starts=self._learned, moving=self._allowed,
        )  # fmt: skip

    @cached_property
    def _on_one_thread(self) -> SolveRows:
        """The function on one thread, which caches the compiled problem for the next table."""
        return self.function()

    def prepare(self) -> None:
        """Load the model; the first block loads the kernels, because its columns determine the goals."""
        _ = self._on_one_thread

    def are_many(self, sources: Sequence[str], output: str | None) -> bool:
        """Return whether the answers go into a folder, with a ledger."""
        if output is None:
            raise UsageError("expected a file or a folder for the answers to --targets, got none.", "-o")
        return super().are_many(sources, output) or not Path(output).suffix

    def endings(self) -> Sequence[str]:
        """Return the endings of the files to read from folders."""
        return _table_endings()

    def collect(self, sources: Sequence[str], output: Path, ending: str | None) -> list[Item]:
        """Return tables as items; long tables are split into parts."""
        from synovia.batch.solving import collect_tables

        return collect_tables(sources, output, ending)

    def do(self, item: Item, output: Path | None, host: Host) -> Outcome:
        """Solve a table, and return the outcome."""
        from synovia.batch.solving import figures_of, write_answers
        from synovia.batch.tables import Source
        from synovia.io.base import check_writable
        from synovia.jobs.words import time_text

        if output is None:
            raise UsageError("expected a file for the answers, got none.", "-o")
        with suppress(OSError):  # a file does not exist or cannot be accessed
            if output.samefile(item.path):
                raise UsageError(f"expected a file other than the table of targets, got {str(output)!r}.", "-o")
        check_writable(output, force=host.force)
        if self.obstacles is not None:
            host.note_model(self.obstacles.notes)
        function = self._on_one_thread if host.threads == 1 else self.function(host.threads)
        begun, done = time.perf_counter(), 0
        with Source(item.path) as source, host.bar(self.doing, source.count or 0, "rows") as bar:

            def progress(rows: int) -> None:
                nonlocal done
                done += rows
                if source.count and bar is not None:
                    bar(done, source.count)

            counts = write_answers(function, source, output, item.rows, force=host.force, progress=progress)
        seconds = time.perf_counter() - begun
        rows, reached = counts.total(), counts["REACHED"]
        missed = [f"  {name}: {count}" for name, count in counts.most_common() if name != "REACHED"]
        figures = figures_of(counts)
        return Outcome(
            counts, figures, falls_short=self.falls_short(figures), files=[output],
            reporter=lambda: Report([f"reached in {reached} of {counted(rows, 'row')}", *missed], {
                "schema": TABLE_SCHEMA, "targets": str(item.path), "output": str(output), "rows": rows,
                "status": dict(counts),
            }),
            said=f"{output}: {counted(rows, 'row')} in {time_text(seconds)}",
        )  # fmt: skip


@described
class SolvePose(Verified, Roles, _Solves):
    """Solve for one pose of a model, which is the input.

    >>> import synovia as sy
    >>> solve = sy.jobs.SolvePose(positions={"tool": (0.4, 0.1, 0.5)})
    >>> print(solve("arm7").report())  # doctest: +SKIP
    """

    positions: Sequence[_Position] = option(
        default=(),
        help="World position of a joint, in the length unit of the file. Repeat for more joints. A joint is named by"
        " its name, its link, a site on it, its role or its row; joint:NAME and link:NAME say which is meant.",
        kind=Parsed(_position), names=("--target", "-t"), metavar="JOINT=X,Y,Z", repeats=True, completes="targets",
        rank=-2,
    )  # fmt: skip
    rotations: Sequence[_Rotation] = option(
        default=(),
        help="World rotation of a joint: Euler angles in degrees, for example hand=xyz:10,20,30 about fixed axes, XYZ"
        " about moving axes; or quat_xyzw:X,Y,Z,W, or quat_wxyz:W,X,Y,Z. Repeat for more joints.",
        kind=Parsed(_rotation), names=("--rotation", "-r"), metavar="JOINT=AXES:A,B,C", repeats=True,
        completes="targets",
        rank=-2,
    )  # fmt: skip
    standing: bool = option(
        default=False,
        help="Keep the body standing: planted feet and balance have priority over the targets, a look ahead and the"
        " rest pose come after them. A body without masses gets those of an adult. Implies --root free and --solver"
        " full-body.",
    )
    start: Any = option(
        default=None, help="Pose to start from.", kind=Parsed(_start), metavar="POSE|rest|random:SEED", shown="rest"
    )
    deadline: float | None = option(default=..., like=DEADLINE)
    prove: bool = option(
        default=False,
        help="After a miss, search for a proof that a position is out of reach, or for a pose, and for a smallest set"
        " of goals that cannot be met together. It may take seconds.",
    )  # fmt: skip
    picture_file: Path | None = option(
        default=None, help="Draw the result; needs the extra [render].", kind=File(), names=("--picture",),
        metavar="PNG", recorded=NEVER,
    )  # fmt: skip
    look: str = option(default=..., like=LOOK, needs="picture_file", recorded=NEVER)

    def is_brief(self) -> bool:
        """Return whether kernels may run as plain Python: not with a deadline or ``--prove``."""
        return (self.deadline is None and not self.prove) or not self._wants()

    def are_many(self, sources: Sequence[str], output: str | None) -> bool:
        """Return False: the input is a single model.

        Raises:
            UsageError: If the output is a folder.
        """
        from synovia.batch.inputs import means_folder

        if output is not None and means_folder(output):
            raise UsageError(f"expected a file that ends in .json for one pose, got the folder {output!r}.", "-o")
        return False

    def endings(self) -> Sequence[str]:
        """Return the endings of models."""
        from synovia.io.load import formats

        return [ending for fmt in formats() for ending in fmt.extensions]

    def usual_ending(self) -> str | None:
        """Return the ending of pose files."""
        return ".json"

    @property
    def _default_solver(self) -> str | None:
        """The solver to use without ``--solver``: full-body for a standing body."""
        return "full-body" if self.standing else None

    def _wants(self) -> bool:
        """Return whether an option gives a target."""
        return bool(self.positions or self.rotations or self.goals or self.clearance is not None)

    def do(self, item: Item, output: Path | None, host: Host) -> Outcome:
        """Solve for a pose, and return the outcome."""
        from synovia.facade import IK
        from synovia.files.poses import verify_pose, write_pose

        if not self._wants():
            raise _no_target(str(item.path), self.load_body(str(item.path), host))
        self._check_files(output, host)
        skeleton = self.load_body(str(item.path), host)
        wanted = [*(self._of_file or ()), *_goals_from(self.positions, self.rotations, skeleton)]
        root = self.root
        if self.standing:
            skeleton, wanted = _standing(skeleton, wanted)
            root = self.root if is_changed(self, "root") else "free"
        skeleton, wanted = self.keep_clear(skeleton, wanted, host)
        ik = IK(
            skeleton, wanted, self._algorithm(wanted), tolerance=self.tolerance, root=root, starts=self._learned,
            moving=self._allowed, proofs=self.prove,
        )  # fmt: skip
        start = _start_pose(self.start, ik.skeleton)
        solution, seconds = self._solved(ik, start)
        outcome = self._outcome(solution, ik, start, seconds)
        host.ready(outcome)  # report before writing files, because the report may restart the command with the compiler
        check = None
        if output is not None:
            host.wrote(output, write_pose(solution.pose, output, force=host.force))
            check = self.compare(verify_pose, solution.pose, output, host)
        if self.picture_file is not None:
            from synovia import draw

            title = f"{skeleton.name}: {solution.status.name.lower().replace('_', ' ')}"
            draw.picture(solution, path=self.picture_file, title=title, look=self.look, force=host.force)
        files = [path for path in (output, self.picture_file) if path is not None]
        return replace(outcome, files=files, check=check)

    def _solved(self, ik: IK, start: Pose | None) -> tuple[Solution, float]:
        """Return the solution and its solve time in seconds."""
        from synovia.kernels.compiler import compiled

        if self.deadline is not None:
            ik.precompile()  # compiling cannot be interrupted, so the deadline must not include it
        begun = time.perf_counter()
        solution = ik.solve(start=start, deadline=self.deadline)
        seconds = time.perf_counter() - begun
        if compiled() and (seconds < _QUICK or solution.steps < _FEW) and not solution.interrupted:
            # the first solve of a process loads or compiles code, so only a second solve measures the speed
            begun = time.perf_counter()
            ik.solve(start=start)
            seconds = time.perf_counter() - begun
        return solution, seconds

    def _outcome(self, solution: Solution, ik: IK, start: Pose | None, seconds: float) -> Outcome:
        """Return the outcome of a solve; its files are not written yet."""
        from synovia.jobs.solutions import solution_report

        figures = {"missed": int(not solution.reached), "steps": solution.steps, "status": solution.status.name}
        begin = start or ik.skeleton.rest_pose()
        if self.prove and len(solution.goals) > 1 and not solution.interrupted:
            solution.find_conflict()
        return Outcome(
            solution, figures, falls_short=self.falls_short(figures),
            reporter=lambda: solution_report(solution, ik, begin, seconds),
        )  # fmt: skip

    def _check_files(self, output: Path | None, host: Host) -> None:
        """Check, before any work, that the output files can be written.

        Raises:
            SynoviaError: If a file cannot be written.
        """
        from synovia.files.poses import pose_format
        from synovia.io.base import check_writable

        drawing = self.picture_file
        if drawing is not None and drawing.suffix.lower() != ".png":
            raise UnsupportedError("cannot write this format", where=str(drawing), expected="a name that ends in .png")
        if output is not None:
            pose_format(output)
        for path in filter(None, (output, drawing)):
            check_writable(path, force=host.force)
        if drawing is not None:
            from synovia.draw.raster import require_pillow

            require_pillow()


def _standing(skeleton: Skeleton, wanted: Sequence[Goal]) -> tuple[Skeleton, list[Goal]]:
    """Return a body with masses, and goals: standing goals first, then the given goals one priority lower.

    Raises:
        InputError: If the body cannot stand.
    """
    from synovia.bodies import standing_goals, with_body_masses

    body = skeleton if any(joint.mass > 0.0 for joint in skeleton.joints) else with_body_masses(skeleton)
    return body, [*standing_goals(body), *(goal.lowered(1) for goal in wanted)]


def _no_target(file: str, skeleton: Skeleton) -> UsageError:
    """Return the error for a solve without targets, with an example for the model."""
    from synovia.model import Kind
    from synovia.model.tree import ancestors

    def moving(row: int) -> int:
        return sum(skeleton.joints[above].kind is not Kind.FIXED for above in ancestors(skeleton.parents, row))

    row = max(skeleton.tip_rows, key=moving)
    joint = skeleton.address(row)
    place = ",".join(f"{round(value, 4) + 0.0:.5g}" for value in skeleton.rest_pose().positions[row])
    return UsageError(
        f"expected at least one target (-t, -r, -g or --targets), got none. For example: synovia solve {file}"
        f" -t {joint}={place}"
    )


def _start_pose(start: int | Path | None, skeleton: Skeleton) -> Pose | None:
    """Return the start pose of a seed or a file, None for the rest pose."""
    if start is None:
        return None
    if isinstance(start, int):
        return skeleton.random_pose(start)
    from synovia.files.poses import load_start

    return load_start(start, skeleton)


def _goals_from(positions: Sequence[_Position], rotations: Sequence[_Rotation], skeleton: Skeleton) -> list[Goal]:
    """Return a goal for each joint with a target; a joint with a position and a rotation gets a pose goal.

    Args:
        positions: Joints with positions.
        rotations: Joints with rotations.
        skeleton: The skeleton.

    Raises:
        UsageError: If a joint has two targets of one kind.
        UnknownNameError: If a joint does not exist.
    """
    from synovia.goals import PoseGoal, PositionGoal, RotationGoal

    joints: dict[_Frame, str | int] = {}
    places = _by_frame("-t", positions, skeleton, joints)
    turns = _by_frame("-r", rotations, skeleton, joints)
    return [
        PositionGoal(joint, places[frame])
        if frame not in turns
        else RotationGoal(joint, turns[frame])
        if frame not in places
        else PoseGoal(joint, places[frame], turns[frame])
        for frame, joint in joints.items()
    ]


def _by_frame(
    option: str, given: Sequence[tuple[str, _T]], skeleton: Skeleton, joints: dict[_Frame, str | int]
) -> dict[_Frame, _T]:
    """Return the targets of an option by frame; add to ``joints`` how each frame was named.

    A joint is addressed by the name of a joint, link or site, by a role, or by a row, in this order.
    """
    found: dict[_Frame, _T] = {}
    for name, value in given:
        joint = int(name) if NUMBER.fullmatch(name) else name
        row, place = skeleton.locate(name if skeleton.knows(name) else joint)
        frame = row, b"" if place is None else place.tobytes()
        joints.setdefault(frame, name if skeleton.knows(name) else row)
        if frame in found:
            raise UsageError(f"expected one target of this kind for each joint, got two for {name!r}.", option)
        found[frame] = value
    return found


@dataclass(frozen=True)
class _Verb(Verb):
    """The command: with ``--targets``, it solves tables."""

    def options(self) -> Iterable[tuple[str, Option, Any]]:
        """Yield name, description and default of each option; the model is an argument of both jobs."""
        return [one for one in super().options() if not one[1].positional]

    def made(self, values: Mapping[str, Any], sources: Sequence[str], typed: Iterable[str]) -> tuple[Job, list[str]]:
        """Return the job of a command line, and its inputs."""
        table = values.get("targets")
        kind = SolvePose if table is None else Solve
        own = {name: said for name, said, _ in options_of(kind)}
        others = [(name, said) for name, said, _ in self.options() if name not in own]
        if table is None:
            others += [(name, said) for name, said, _ in options_of(Running) if said.many]
        for name, said in others:
            if name in typed:
                raise UsageError(
                    f"expected {'' if table is None else 'no '}--targets with this option.", flag_of(name, said)
                )
        chosen = {name: value for name, value in values.items() if name in own}
        if table is None:
            return SolvePose(**chosen), list(sources)
        return Solve(sources[0], **chosen), [str(table)]


VERB: Final = _Verb(
    """Find the pose that brings joints to their targets.

    With --targets, find the poses for a table of targets.

    For example: synovia solve arm7 -t tool=0.4,0.1,0.5 -r tool=xyz:180,0,0
    """,
    (SolvePose, Solve),
    replace(MODEL, required=True, positional=True),
    inputs={
        "targets": Option(
            "Solve many: a table of targets, or a folder or pattern of them, .csv, .npz, .arrow or .parquet. The"
            " columns of a joint are JOINT.x, JOINT.y, JOINT.z and JOINT.qx to JOINT.qw.",
            File(as_text=True), metavar="TABLE",
        ),
    },
    prints_json=True,
    several=False,
)  # fmt: skip
