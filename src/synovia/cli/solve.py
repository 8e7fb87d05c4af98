"""``synovia solve``: solve for one pose; print it, or write it as JSON, a pose file or a picture."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from synovia.cli.completion import targets
from synovia.cli.inputs import (
    Deadline,
    Force,
    Jobs,
    Json,
    Look,
    Model,
    Root,
    Solver,
    Tolerance,
    load_body,
    numbers,
    output_option,
    parse_tolerance,
)
from synovia.cli.many import (
    Address,
    EngineName,
    EngineOption,
    FailFast,
    Options,
    RetryFailed,
    ShardOption,
)
from synovia.cli.output import MISSED, REACHED, emit_json, emit_rich
from synovia.errors import UnsupportedError

if TYPE_CHECKING:
    from synovia.goals import Goal
    from synovia.model import Pose, Skeleton
    from synovia.model.geometry import Array
    from synovia.solver import Solver as SolverSettings

_QUICK: Final = 2.0  # seconds; a slower solve is not repeated for its time, unless it took few steps
_FEW: Final = 2000  # steps; fewer are only slow because of the compiler


def solve(
    file: Model,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="JOINT=X,Y,Z",
            autocompletion=targets,
            help="World position of a joint, in the length unit of the file. Repeat for more joints. A joint is"
            " named by its name, body, role or row.",
            show_default=False,
        ),
    ] = None,
    rotation: Annotated[
        list[str] | None,
        typer.Option(
            "--rotation",
            "-r",
            metavar="JOINT=AXES:A,B,C",
            autocompletion=targets,
            help="World rotation of a joint: Euler angles in degrees, for example hand=xyz:10,20,30 about fixed axes,"
            " XYZ about turned ones; or quat_xyzw:X,Y,Z,W, or quat_wxyz:W,X,Y,Z. Repeat for more joints.",
            show_default=False,
        ),
    ] = None,
    goals: Annotated[
        Path | None,
        typer.Option(
            "--goals",
            "-g",
            metavar="GOALS",
            help="File of goals, TOML or JSON, with weights, priorities, offsets and names; 'synovia schema goals'"
            " prints its schema.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--targets",
            metavar="TABLE",
            help="Solve many: a table of targets, or a folder or pattern of them, .csv, .npz, .arrow or .parquet. The"
            " columns of a joint are JOINT.x, JOINT.y, JOINT.z and JOINT.qx to JOINT.qw.",
            show_default=False,
        ),
    ] = None,
    solver: Solver = None,
    tol: Tolerance = None,
    root: Root = "fixed",
    start: Annotated[
        str,
        typer.Option("--start", metavar="POSE.json|rest|random:SEED", help="Pose to start from."),
    ] = "rest",
    attempts: Annotated[
        int | None,
        typer.Option(
            "--attempts", metavar="N", help="Attempts; all but the first start at random.", show_default="the solver's"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Seed of the restarts.", show_default="0")
    ] = None,
    deadline: Deadline = None,
    output: Annotated[
        Path | None,
        output_option(
            "OUT", "Write the pose (.json, for --start to read), or the answers to --targets: table or folder."
        ),
    ] = None,
    simd: Annotated[
        bool | None,
        typer.Option("--simd/--no-simd", help="Solve --targets in SIMD lanes.", show_default="if the solver can"),
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", metavar="parquet|arrow|npz|csv", help="Format of the answers in a folder."),
    ] = None,
    jobs: Jobs = None,
    engine: EngineOption = EngineName.LOCAL,
    address: Address = None,
    shard: ShardOption = None,
    retry_failed: RetryFailed = False,
    fail_fast: FailFast = False,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="PNG", help="Draw the result; needs synovia[render].", show_default=False),
    ] = None,
    look: Look = "surface",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find the pose that brings joints to their targets, or the poses for a table of targets.

    For example: synovia solve arm7 -t tool=0.4,0.1,0.5 -r tool=xyz:180,0,0
    """
    tolerance = parse_tolerance(tol)
    options = Options(output, file_format, engine, address, shard, retry_failed, fail_fast, force, jobs, as_json)
    if table is not None:
        from synovia.cli.tables import solve_tables

        single = {"-t": target, "-r": rotation, "--picture": picture, "--deadline": deadline}
        for option, given in single.items():
            if given:
                raise typer.BadParameter("expected no --targets with this option", param_hint=f"'{option}'")
        if start != "rest":
            raise typer.BadParameter("expected no --targets with this option", param_hint="'--start'")
        solve_tables(file, table, goals, _with_settings(solver, attempts, seed), tolerance, root, simd, options)
    options.refuse_single()
    if not (target or rotation or goals):
        raise typer.BadParameter("expected at least one target", param_hint="'-t', '-r', '-g' or '--targets'")
    _check_files(output, picture, force=force)
    from synovia.cli.report import solution_object, solution_text
    from synovia.facade import IK

    skeleton = load_body(file)
    wanted = _goals_from(target or (), rotation or (), skeleton)
    if goals is not None:
        from synovia.files.goals import read_goals

        wanted = [*read_goals(goals), *wanted]
    ik = IK(skeleton, wanted, _with_settings(solver, attempts, seed), tolerance=tolerance, root=root)
    begin = _start(start, ik.skeleton)
    seconds = time.perf_counter()
    solution = ik.solve(start=begin, deadline=deadline)
    seconds = time.perf_counter() - seconds
    if (seconds < _QUICK or solution.steps < _FEW) and not solution.interrupted:
        # the first solve of a process loads or compiles code; the second has the same answer and shows the speed
        seconds = time.perf_counter()
        ik.solve(start=begin)
        seconds = time.perf_counter() - seconds
    if output is not None:
        from synovia.files.poses import save_pose

        save_pose(solution.pose, output, force=force)
    if picture is not None:
        from synovia import draw

        title = f"{skeleton.name}: {solution.status.name.lower().replace('_', ' ')}"
        draw.picture(solution, path=picture, title=title, look=look, force=force)
    if as_json:
        emit_json(solution_object(solution, ik, seconds))
    else:
        emit_rich(*solution_text(solution, ik, ik.default_start if begin is None else begin, seconds))
    raise typer.Exit(REACHED if solution.reached else MISSED)


def _with_settings(name: str | None, attempts: int | None, seed: int | None) -> SolverSettings:
    """Return the settings of the solver of the options.

    Raises:
        typer.BadParameter: If the solver has no such setting.
        UnknownNameError: If there is no such solver.
    """
    from synovia.solver import as_solver

    algorithm = as_solver(name)
    settings = {key: value for key, value in (("attempts", attempts), ("seed", seed)) if value is not None}
    for key in settings:
        if not hasattr(algorithm, key):
            raise typer.BadParameter(f"the solver {algorithm.name!r} has no {key}", param_hint=f"'--{key}'")
    return algorithm.replace(**settings)


def _start(text: str, skeleton: Skeleton) -> Pose | None:
    """Return the start pose of ``--start``, None for the rest pose."""
    if text == "rest":
        return None
    word, colon, seed = text.partition(":")
    if word == "random" and Path(text).suffix != ".json":
        if not colon or not (seed.isascii() and seed.isdecimal()) or len(seed) > 10:
            raise typer.BadParameter(f"expected random:SEED, got {text!r}", param_hint="'--start'")
        return skeleton.random_pose(int(seed))
    from synovia.files.poses import load_pose

    return load_pose(Path(text), skeleton)


def _check_files(output: Path | None, picture: Path | None, *, force: bool) -> None:
    """Check, before any work, that the output files can be written."""
    from synovia.io.base import check_writable

    for path, ending in ((output, ".json"), (picture, ".png")):
        if path is None:
            continue
        if path.suffix.lower() != ending:
            raise UnsupportedError(
                "cannot write this format", where=str(path), expected=f"a name that ends in {ending}"
            )
        check_writable(path, force=force)
    if picture is not None:
        from synovia.draw.raster import require_pillow

        require_pillow()


def _goals_from(positions: Sequence[str], rotations: Sequence[str], skeleton: Skeleton) -> list[Goal]:
    """Return a goal for each joint: a pose goal if both options name it.

    Args:
        positions: Texts ``JOINT=X,Y,Z``.
        rotations: Texts ``JOINT=AXES:A,B,C``.
        skeleton: The skeleton.

    Raises:
        typer.BadParameter: If a text does not have this form, or a joint has two targets of one kind.
        InputError: If a number is not finite or a rotation is invalid.
        UnknownNameError: If a joint does not exist.
    """
    from synovia.goals import PoseGoal, PositionGoal, RotationGoal

    joints: dict[int, str | int] = {}  # key of each row in goals: a joint has several names
    places: dict[int, tuple[float, ...]] = {}
    turns: dict[int, Array] = {}
    for text in positions:
        row, value = _joint_and_value(text, "-t", "JOINT=X,Y,Z", skeleton, joints)
        if row in places:
            raise typer.BadParameter(f"joint {joints[row]!r} has two positions", param_hint="'-t'")
        places[row] = numbers(value, "-t", 3, 3, text)
    for text in rotations:
        row, value = _joint_and_value(text, "-r", "JOINT=xyz:A,B,C", skeleton, joints)
        if row in turns:
            raise typer.BadParameter(f"joint {joints[row]!r} has two rotations", param_hint="'-r'")
        turns[row] = _rotation(value, text, joints[row])
    return [
        PositionGoal(joint, places[row])
        if row not in turns
        else RotationGoal(joint, turns[row])
        if row not in places
        else PoseGoal(joint, places[row], turns[row])
        for row, joint in joints.items()
    ]


def _joint_and_value(
    text: str, option: str, form: str, skeleton: Skeleton, joints: dict[int, str | int]
) -> tuple[int, str]:
    """Return the row of a joint and its value, from the texts on both sides of the last equals sign.

    A joint is addressed by its name, body, role or row, in this order. The key for its goal is added to ``joints``.
    """
    name, equals, value = text.rpartition("=")
    name = name.strip()
    if not equals or not name:
        raise typer.BadParameter(f"expected {form}, got {text!r}", param_hint=f"'{option}'")
    joint = int(name) if name.isascii() and name.isdecimal() and len(name) < 10 else name
    row = skeleton.index(name if name in skeleton.joint_names else joint)
    joints.setdefault(row, row if isinstance(joint, int) else name)
    return row, value


def _rotation(value: str, text: str, joint: str | int) -> Array:
    """Return the rotation matrix of ``AXES:A,B,C`` or of a quaternion; ``text`` is the whole option."""
    from synovia.files.rotations import RotationSpec, to_matrix

    way, colon, angles = value.partition(":")
    way = way.strip()
    quaternion = way in ("quat_xyzw", "quat_wxyz")
    size = 4 if quaternion else len(way)
    if not colon or not size:
        raise typer.BadParameter(f"expected JOINT=xyz:A,B,C, got {text!r}", param_hint="'-r'")
    values = numbers(angles, "-r", size, size, text)
    turn = RotationSpec(**{way: values}) if quaternion else RotationSpec(euler=way, degrees=list(values))  # type: ignore[arg-type]
    return to_matrix(turn, f"rotation of {joint!r}")
