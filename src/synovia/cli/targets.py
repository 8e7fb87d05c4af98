"""The options ``-t`` and ``-r`` as goals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import typer

if TYPE_CHECKING:
    from synovia.goals import Goal
    from synovia.model import Skeleton


class _Wanted(NamedTuple):
    """What the options ask of one joint."""

    joint: str | int
    position: tuple[float, ...] | None = None
    rotation: tuple[str, tuple[float, ...]] | None = None


def goals_from(targets: Sequence[str], rotations: Sequence[str], skeleton: Skeleton) -> list[Goal]:
    """Return a goal for each joint that is named, a pose goal where both options name it.

    Args:
        targets: Texts ``JOINT=X,Y,Z``.
        rotations: Texts ``JOINT=AXES:A,B,C``.
        skeleton: The skeleton whose joints are meant.

    Raises:
        typer.BadParameter: If a text is not of this form, or says the same twice.
        InputError: If a number is not finite or the rotation is none.
        UnknownNameError: If there is no such joint.
    """
    wanted: dict[int, _Wanted] = {}  # by row, so that two names of one joint mean the same
    for text in targets:
        name, value = _halves(text, "-t", "JOINT=X,Y,Z")
        row = _row(name, skeleton)
        known = wanted.get(row, _Wanted(row if _is_row(name) else name))
        if known.position is not None:
            raise typer.BadParameter(f"joint {name!r} has two positions", param_hint="'-t'")
        wanted[row] = known._replace(position=numbers(value, "-t", 3, 3, text))
    for text in rotations:
        name, value = _halves(text, "-r", "JOINT=xyz:A,B,C")
        way, colon, angles = value.partition(":")
        size = {"quat_xyzw": 4, "quat_wxyz": 4}.get(way.strip(), len(way.strip()))
        if not colon or not size:
            raise typer.BadParameter(f"{text!r} is not of the form JOINT=xyz:A,B,C", param_hint="'-r'")
        row = _row(name, skeleton)
        known = wanted.get(row, _Wanted(row if _is_row(name) else name))
        if known.rotation is not None:
            raise typer.BadParameter(f"joint {name!r} has two rotations", param_hint="'-r'")
        wanted[row] = known._replace(rotation=(way.strip(), numbers(angles, "-r", size, size, text)))
    return [_goal(want) for want in wanted.values()]


def numbers(text: str, option: str, least: int, most: int, whole: str) -> tuple[float, ...]:
    """Return the numbers of a list with commas.

    Raises:
        typer.BadParameter: If they are no numbers, or too few or too many.
    """
    parts = text.split(",")
    try:
        values = tuple(float(part) for part in parts)
    except ValueError:
        values = ()
    if not least <= len(values) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        raise typer.BadParameter(
            f"{whole!r} does not hold {count} numbers with commas between", param_hint=f"'{option}'"
        )
    return values


def _halves(text: str, option: str, form: str) -> tuple[str, str]:
    """Return what stands left and right of the last equals sign; names may hold others."""
    name, equals, value = text.rpartition("=")
    if not equals or not name.strip():
        raise typer.BadParameter(f"{text!r} is not of the form {form}", param_hint=f"'{option}'")
    return name.strip(), value


def _is_row(name: str) -> bool:
    """Return whether a name can be the number of a row."""
    return name.isascii() and name.isdecimal() and len(name) < 10


def _row(name: str, skeleton: Skeleton) -> int:
    """Return the row of a joint by its name, body, role or row; names go first."""
    if _is_row(name) and name not in skeleton.joint_names:
        return skeleton.index(int(name))
    return skeleton.index(name)


def _goal(want: _Wanted) -> Goal:
    """Return the goal of one joint."""
    from synovia.files.goals import Turn, to_matrix
    from synovia.goals import PoseGoal, PositionGoal, RotationGoal

    joint = want.joint
    if want.rotation is None:
        return PositionGoal(joint, want.position)
    way, values = want.rotation
    quaternion = way in ("quat_xyzw", "quat_wxyz")
    turn = Turn(**{way: values}) if quaternion else Turn(euler=way, degrees=list(values))  # type: ignore[arg-type]
    matrix = to_matrix(turn, f"rotation of {joint!r}")
    return RotationGoal(joint, matrix) if want.position is None else PoseGoal(joint, want.position, matrix)
