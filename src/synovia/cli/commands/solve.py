"""``synovia solve``: solve for one pose, and print or write it; or for tables of targets, with ``--targets``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from synovia.cli import uncompiled
from synovia.cli.command import Command, Decorator, refuse, wrong
from synovia.cli.completion import targets
from synovia.cli.declare import decorator_of
from synovia.cli.inputs import (
    load_body,
    model_argument,
    one_solver,
    roles_option,
    root_option,
    tolerance_option,
)
from synovia.cli.many import ONLY_MANY, Options, format_option, many_options, run_items
from synovia.cli.output import MISSED, REACHED, emit, emit_json, emit_lines, talk, time_text, warnings_told
from synovia.cli.progress import Bar
from synovia.cli.saving import save_one_pose, verify_option
from synovia.cli.values import FILE, FILE_NAME, typed
from synovia.errors import InputError, UnsupportedError
from synovia.jobs.options import NUMBER, Number, Parsed, numbers_of
from synovia.jobs.shared import DEADLINE, LOOK
from synovia.text import counted

if TYPE_CHECKING:
    from synovia.batch.solving import SolveTable
    from synovia.goals import Goal
    from synovia.model import Pose, Skeleton
    from synovia.model.geometry import Array
    from synovia.solver import Solver as SolverSettings

TABLE_SCHEMA: Final = "synovia.solve-table/1"
_QUICK: Final = 2.0  # seconds; a slower solve is not repeated for its time, unless it took few steps
_FEW: Final = 2000  # steps; fewer are only slow because of the compiler
_POSE_SEED: Final = Number(0, 2**32 - 1, whole=True)

_T = TypeVar("_T")
_Frame = tuple[int, bytes]  # row, and the place of a site on it
_Position = tuple[str, tuple[float, ...]]  # joint and position
_Rotation = tuple[str, "Array"]  # joint and rotation matrix


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
        InputError: If one is empty; ``form`` is what was expected.
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


def _joint_option(names: tuple[str, ...], value: str, parse: Callable[[str], object], text: str) -> Decorator:
    """Return an option ``JOINT=VALUE``, which may be repeated.

    Args:
        names: Its names, and that of the parameter.
        value: The value in the help.
        parse: Returns joint and value.
        text: Help text.
    """
    return click.option(
        *names, metavar=f"JOINT={value}", type=typed(Parsed(parse)), multiple=True, shell_complete=targets, help=text
    )


@click.command(cls=Command)
@model_argument
@_joint_option(
    ("--target", "-t", "positions"),
    "X,Y,Z",
    _position,
    "World position of a joint, in the length unit of the file. Repeat for more joints. A joint is named by its name,"
    " its link, a site on it, its role or its row; joint:NAME and link:NAME say which is meant.",
)
@_joint_option(
    ("--rotation", "-r", "rotations"),
    "AXES:A,B,C",
    _rotation,
    "World rotation of a joint: Euler angles in degrees, for example hand=xyz:10,20,30 about fixed axes, XYZ about"
    " turned ones; or quat_xyzw:X,Y,Z,W, or quat_wxyz:W,X,Y,Z. Repeat for more joints.",
)
@click.option(
    "--goals",
    "-g",
    metavar="GOALS",
    type=FILE,
    help="File of goals, TOML or JSON, with weights, priorities, offsets and names; 'synovia schema goals' prints its"
    " schema.",
)
@click.option(
    "--targets",
    "table",
    metavar="TABLE",
    type=FILE_NAME,
    help="Solve many: a table of targets, or a folder or pattern of them, .csv, .npz, .arrow or .parquet. The columns"
    " of a joint are JOINT.x, JOINT.y, JOINT.z and JOINT.qx to JOINT.qw.",
)
@roles_option
@one_solver
@tolerance_option
@root_option()
@click.option(
    "--start",
    metavar="POSE|rest|random:SEED",
    type=typed(Parsed(_start)),
    help="Pose to start from.",
    show_default="rest",
)
@click.option(
    "--attempts",
    metavar="N",
    type=typed(Number(1, 10**6, whole=True)),
    help="Most attempts; all but the first start at random. A solve makes fewer if it proves that a goal cannot be"
    " reached, or if the body is large.",
    show_default="the solver's",
)
@click.option(
    "--seed", metavar="N", type=typed(Number(0, 2**31 - 1, whole=True)), help="Seed of the restarts.", show_default="0"
)
@decorator_of("deadline", DEADLINE)
@click.option(
    "--output",
    "-o",
    metavar="OUT",
    type=FILE_NAME,
    help="Write the pose (.json or, of a glTF, .glb, for --start to read), or the answers to --targets: table or"
    " folder.",
)
@click.option("--simd/--no-simd", default=None, help="Solve --targets in SIMD lanes.", show_default="if the solver can")
@format_option("parquet|arrow|npz|csv", _table_endings)
@click.option("--picture", metavar="PNG", type=FILE, help="Draw the result; needs the extra [render].")
@decorator_of("look", LOOK, "surface")
@verify_option
@many_options()
def solve(
    file: str,
    positions: Sequence[_Position],
    rotations: Sequence[_Rotation],
    goals: Path | None,
    table: str | None,
    solver: str | None,
    tolerance: tuple[float, float] | None,
    root: str,
    start: int | Path | None,
    attempts: int | None,
    seed: int | None,
    deadline: float | None,
    simd: bool | None,
    picture: Path | None,
    look: str,
    verify: bool,
    options: Options,
) -> int:
    """Find the pose that brings joints to their targets.

    With --targets, find the poses for a table of targets.

    For example: synovia solve arm7 -t tool=0.4,0.1,0.5 -r tool=xyz:180,0,0
    """
    if table is not None:
        refuse("expected no --targets with this option.", "verify")
        alone = ("positions", "rotations", "roles", "picture", "look", "deadline", "start")
        refuse("expected no --targets with this option.", *alone)
        return _solve_tables(file, table, goals, _with_settings(solver, attempts, seed), tolerance, root, simd, options)
    refuse("expected --targets with this option.", "simd", *ONLY_MANY)
    if picture is None:
        refuse("expected --picture with this option.", "look")
    wants = bool(positions or rotations or goals)
    plain = (deadline is None or not wants) and uncompiled.begin()  # before anything imports kernels
    if not wants:
        raise _no_target(file)
    _check_files(options, picture)
    from synovia.cli.report import solution_object, solution_text
    from synovia.facade import IK

    skeleton = load_body(file)
    wanted = _goals_from(positions, rotations, skeleton)
    if goals is not None:
        from synovia.files.goals import read_goals

        wanted = [*read_goals(goals), *wanted]
    ik = IK(skeleton, wanted, _with_settings(solver, attempts, seed), tolerance=tolerance, root=root)
    begin = _start_pose(start, ik.skeleton)
    if deadline is not None:
        ik.precompile()  # cannot be interrupted
    seconds = time.perf_counter()
    solution = ik.solve(start=begin, deadline=deadline)
    seconds = time.perf_counter() - seconds
    if not plain and (seconds < _QUICK or solution.steps < _FEW) and not solution.interrupted:
        # the first solve of a process loads or compiles code; the second has the same answer and shows the speed
        seconds = time.perf_counter()
        ik.solve(start=begin)
        seconds = time.perf_counter() - seconds
    # before anything is written: what explains a miss may need the compiler, which runs the command again
    if options.as_json:
        report = partial(emit_json, solution_object(solution, ik, seconds))
    else:
        report = partial(emit_lines, solution_text(solution, ik, begin or ik.default_start, seconds))
    saved = True
    try:
        if options.path is not None:
            saved = save_one_pose(solution.pose, options.path, force=options.force, verify=verify)
        if picture is not None:
            from synovia import draw

            title = f"{skeleton.name}: {solution.status.name.lower().replace('_', ' ')}"
            with warnings_told():
                draw.picture(solution, path=picture, title=title, look=look, force=options.force)
    finally:
        report()
    return REACHED if solution.reached and saved else MISSED


def _with_settings(name: str | None, attempts: int | None, seed: int | None) -> SolverSettings:
    """Return the settings of the solver of the options.

    Raises:
        click.BadParameter: If the solver has no such setting.
        UnknownNameError: If there is no such solver.
    """
    from synovia.solver import as_solver

    algorithm = as_solver(name)
    settings = {key: value for key, value in (("attempts", attempts), ("seed", seed)) if value is not None}
    for key in settings:
        if not hasattr(algorithm, key):
            raise wrong(f"--{key}", f"expected a solver with {key}, got {algorithm.name!r}.")
    return algorithm.replace(**settings)


def _no_target(file: str) -> click.UsageError:
    """Return the error for a solve without targets, with an example for the model."""
    from synovia.model import Kind
    from synovia.model.tree import ancestors

    skeleton = load_body(file)

    def moving(row: int) -> int:
        return sum(skeleton.joints[above].kind is not Kind.FIXED for above in ancestors(skeleton.parents, row))

    row = max(skeleton.tip_rows, key=moving)
    joint = skeleton.address(row)
    place = ",".join(f"{round(value, 4) + 0.0:.5g}" for value in skeleton.rest_pose().positions[row])
    return click.UsageError(
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


def _check_files(options: Options, picture: Path | None) -> None:
    """Check, before any work, that the output files can be written.

    Raises:
        click.BadParameter: If the output is a folder.
        SynoviaError: If a file cannot be written.
    """
    from synovia.io.base import check_writable

    if options.output is not None:
        from synovia.batch.inputs import means_folder

        if means_folder(options.output):
            raise wrong("-o", f"expected a file that ends in .json for one pose, got the folder {options.output!r}.")
    if picture is not None and picture.suffix.lower() != ".png":
        raise UnsupportedError("cannot write this format", where=str(picture), expected="a name that ends in .png")
    if options.path is not None:
        from synovia.files.poses import pose_format

        pose_format(options.path)
    for path in filter(None, (options.path, picture)):
        check_writable(path, force=options.force)
    if picture is not None:
        from synovia.draw.raster import require_pillow

        require_pillow()


def _goals_from(positions: Sequence[_Position], rotations: Sequence[_Rotation], skeleton: Skeleton) -> list[Goal]:
    """Return a goal for each joint: a pose goal if both options name it.

    Args:
        positions: Joints with positions.
        rotations: Joints with rotations.
        skeleton: The skeleton.

    Raises:
        click.BadParameter: If a joint has two targets of one kind.
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
            raise wrong(option, f"expected one target of this kind for each joint, got two for {name!r}.")
        found[frame] = value
    return found


def _solve_tables(
    file: str,
    table: str,
    goals: Path | None,
    solver: SolverSettings,
    tolerance: tuple[float, float] | None,
    root: str,
    simd: bool | None,
    options: Options,
) -> int:
    """Solve tables of targets, report, and return the exit code.

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
    from synovia.io.base import check_writable

    if options.path is None:
        raise wrong("-o", "expected a file or a folder for the answers to --targets, got none.")
    if is_many([table], options.output) or not options.path.suffix:
        task = SolveTable(file, goals, solver, tolerance, root, simd)
        return run_items(task, collect_tables([table], options.folder(), options.file_format), options, "solving")
    if options.engine != "local":
        raise wrong("-o", f"expected an output folder with --engine ray, got {options.output!r}.")
    options.are_many([table])
    with suppress(OSError):  # one of them does not exist, or cannot be looked at
        if options.path.samefile(table):
            raise wrong("-o", f"expected another file than the table of targets, got {options.output!r}.")
    check_writable(options.path, force=options.force)
    task = SolveTable(file, goals, solver, tolerance, root, simd, options.jobs)
    return _solve_one_table(task, Path(table), options.path, options)


def _solve_one_table(task: SolveTable, path: Path, output: Path, options: Options) -> int:
    """Solve one table to one file, report, and return the exit code."""
    from synovia.batch.solving import write_answers
    from synovia.batch.tables import Source

    begun, done = time.perf_counter(), 0
    with Source(path) as source, Bar("solving", "rows", source.count or 0) as bar:

        def progress(rows: int) -> None:
            nonlocal done
            done += rows
            if source.count:
                bar(done, source.count)

        counts = write_answers(task.function, source, output, force=options.force, progress=progress)
    seconds = time.perf_counter() - begun
    rows, reached = counts.total(), counts["REACHED"]
    if options.as_json:
        emit_json(
            {"schema": TABLE_SCHEMA, "targets": str(path), "output": str(output), "rows": rows, "status": dict(counts)}
        )
    else:
        emit(f"reached in {reached} of {counted(rows, 'row')}")
        for name, count in counts.most_common():
            if name != "REACHED":
                emit(f"  {name}: {count}")
    talk(f"{output}: {counted(rows, 'row')} in {time_text(seconds)}")
    return REACHED if reached == rows else MISSED
