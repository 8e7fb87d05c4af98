"""Read track files: goals with keyframes in TOML or JSON, ``synovia.track/1``; schema: ``schemas/track-1.json``.

    schema = "synovia.track/1"
    fps = 30

    [[goals]]
    joint = "left_hand"
    keys = [
        { time = 0, position = [0.4, 1.2, 0.3] },
        { time = 1, position = [0.5, 1.4, 0.3], rotation = { euler = "xyz", degrees = [0, 90, 0] } },
    ]

Between keys, positions follow straight lines or smooth curves, and rotations the shortest arc. Before the first and
after the last key, a target is constant. A goal without keys keeps its joint where it is in the start pose.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct

from synovia.errors import FormatError, InputError, restated
from synovia.files.rotations import ROTATION_FORMS, RotationSpec, to_matrix
from synovia.files.typed import TypedFile
from synovia.goals import Goal, PoseGoal, PositionGoal, RotationGoal
from synovia.io.base import most_numbers
from synovia.model.geometry import Array, quat_to_matrix

SCHEMA: Final = "synovia.track/1"
_LARGEST: Final = 2**26  # largest size of a file, bytes; a key takes about 100 bytes
MOST_FRAMES: Final = 1_000_000

_Three = tuple[float, float, float]


class Key(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, kw_only=True):
    """Target of a joint at a time."""

    time: Annotated[float, Meta(ge=0, description="Seconds from the first frame.")]
    position: Annotated[_Three, Meta(description="World position in the length unit of the model's file.")] | None = (
        None
    )
    rotation: Annotated[RotationSpec, Meta(description="World rotation of the joint.")] | None = None


class TrackEntry(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, kw_only=True):
    """Targets of one joint over time. All keys have the same parts: positions, rotations, or both."""

    joint: Annotated[str | int, Meta(description="Name of a joint, link or site, else a role, or a row.")]
    keys: Annotated[list[Key], Meta(description="In the order of their times; none to stay at the start.")] = []
    weight: Annotated[float, Meta(gt=0, description="Weight relative to the other goals.")] = 1.0
    offset: Annotated[_Three, Meta(description="Point on the joint, in its frame.")] | None = None
    name: Annotated[str, Meta(min_length=1, description="What to call the goal.")] | None = None


class TrackFile(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Goals with keyframes for one model."""

    schema: Literal["synovia.track/1"]
    goals: Annotated[list[TrackEntry], Meta(min_length=1)]
    fps: Annotated[float, Meta(gt=0, description="Frames per second.")] = 30.0
    interpolation: Annotated[Literal["linear", "cubic"], Meta(description="How positions run from key to key.")] = (
        "linear"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """Goals with their targets over time, for ``IK`` and ``IK.track``.

    Args:
        goals: The goals.
        targets: By goal label: (T, 3), rotation matrices (T, 3, 3), or (T, 4, 4).
        fps: Frames per second.
        frames: Number of frames.
    """

    goals: tuple[Goal, ...]
    targets: dict[str, Any]
    fps: float
    frames: int


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of track files."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(TrackFile)}


def read_track(path: Path) -> Track:
    """Read the goals of a TOML or JSON file and their targets in every frame.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is malformed or a value cannot be used; the message names the place in the file.
        UnsupportedError: If the name of the file ends neither in ``.toml`` nor in ``.json``.
    """
    where = str(path)
    file = TypedFile(TrackFile, "track file", SCHEMA, _LARGEST, _fields, forms=ROTATION_FORMS).read(path)
    end = max((key.time for entry in file.goals for key in entry.keys), default=0.0)
    if not end * file.fps < MOST_FRAMES:
        raise FormatError("number of frames", where=where, value=end * file.fps, expected=f"less than {MOST_FRAMES}")
    frames = round(end * file.fps) + 1
    numbers, most = 16 * frames * sum(bool(entry.keys) for entry in file.goals), most_numbers(path.stat().st_size)
    if numbers > most:
        raise FormatError("targets", where=where, value=numbers, expected=f"at most {most} numbers in all")
    with np.errstate(over="ignore"):
        times = np.arange(frames) / file.fps
    goals: list[Goal] = []
    targets: dict[str, Any] = {}
    for i, entry in enumerate(file.goals):
        try:
            goal, target = _goal(entry, times, file.interpolation)
        except InputError as error:
            raise restated(error, FormatError, f"{where}: goals[{i}]") from error
        goals.append(goal)
        if target is not None:
            if goal.label in targets:
                raise FormatError(
                    "name", where=f"{where}: goals[{i}]", value=goal.label, expected="a different name for each goal"
                )
            targets[goal.label] = target
    return Track(tuple(goals), targets, file.fps, frames)


def _fields(path: str, value: object) -> tuple[str, ...]:
    """Return the names of the fields that the format allows at a path in the file."""
    del value
    if path.endswith("rotation"):
        return RotationSpec.__struct_fields__
    if path.endswith("]"):
        return (Key if ".keys[" in path else TrackEntry).__struct_fields__
    return TrackFile.__struct_fields__


def _goal(entry: TrackEntry, times: Array, interpolation: str) -> tuple[Goal, Any]:
    """Return the goal of an entry and its targets over time; the targets are None for a goal without keys."""
    keys = entry.keys
    moved, turned = [key.position is not None for key in keys], [key.rotation is not None for key in keys]
    if len(set(moved)) > 1 or len(set(turned)) > 1 or (keys and not (moved[0] or turned[0])):
        raise InputError("keys", expected="position, rotation, or both, the same in all keys")
    at = np.array([key.time for key in keys])
    if (np.diff(at) <= 0.0).any():
        raise InputError("times of keys", value=at.tolist(), expected="increasing times")
    kind = RotationGoal if keys and not moved[0] else PoseGoal if not keys or turned[0] else PositionGoal
    if kind is RotationGoal:
        if entry.offset is not None:
            raise InputError("offset", value=entry.offset, expected="a position in the keys")
        goal: Goal = RotationGoal(entry.joint, weight=entry.weight, name=entry.name)
    else:
        goal = kind(entry.joint, weight=entry.weight, name=entry.name, offset=entry.offset)
    if not keys:
        return goal, None
    try:
        with np.errstate(all="ignore"):
            places = (
                interpolate_positions([key.position for key in keys], at, times, interpolation) if moved[0] else None
            )
            rotations = [to_matrix(key.rotation) for key in keys if key.rotation is not None]
            turns = interpolate_rotations(rotations, at, times) if rotations else None
    except InputError:
        raise
    except ValueError as error:  # SciPy raises ValueError if distances or slopes of keys overflow
        raise InputError(f"no curve passes through the keys ({error})") from error
    if not all(np.isfinite(part).all() for part in (places, turns) if part is not None):
        raise InputError("keys", expected="keys further apart in time", hint="the curve through them overflows")
    if places is None or turns is None:
        return goal, turns if places is None else places
    frames = np.tile(np.eye(4), (len(times), 1, 1))
    frames[:, :3, :3] = turns
    frames[:, :3, 3] = places
    return goal, frames


def interpolate_positions(points: Any, at: Array, times: Array, interpolation: str) -> Array:
    """Return positions (T, 3) at times (T,), on straight lines or on a natural cubic spline through points (n, 3)."""
    p = np.asarray(points, np.float64)
    if not np.isfinite(p).all():
        raise InputError("position", value=p.tolist(), expected="finite numbers")
    if interpolation == "cubic" and len(p) > 2:
        from scipy import interpolate

        spline: Any = interpolate.CubicSpline  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        curve = spline(at, p, bc_type="natural")
        return np.asarray(curve(np.clip(times, at[0], at[-1])), np.float64)
    return np.stack([np.interp(times, at, p[:, axis]) for axis in range(3)], axis=1)


def interpolate_rotations(matrices: list[Array], at: Array, times: Array) -> Array:
    """Return rotation matrices (T, 3, 3) at times (T,), along the shortest rotations between one or more keys."""
    from scipy.spatial.transform import Rotation, Slerp

    if len(matrices) == 1:
        return np.repeat(matrices[0][None], len(times), axis=0)
    turns = Slerp(at, Rotation.from_matrix(np.array(matrices)))(np.clip(times, at[0], at[-1]))
    return quat_to_matrix(np.asarray(turns.as_quat(), np.float64))
