"""Read and write poses: joint values by joint name as JSON, and poses in model files (glTF).

    {"schema": "synovia.pose/1", "model": "arm7", "q": {"joint1": 0.3, "joint2": -0.7}}

A file of several poses has them by name, ``{"schema": "synovia.poses/1", "poses": {"fist": {"thumb": 0.3}}}``.

Values are as in ``Pose``: radians and length units of the model's file, and unit quaternions xyzw for balls.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import FormatError, InputError, UnknownNameError, restated
from synovia.io.base import Format, as_path, read_text, write_text
from synovia.io.load import endings, formats
from synovia.io.save import is_of, lost_loops, skin_of, source_of
from synovia.io.verify import FileCheck, check_places
from synovia.model import Pose, Skeleton
from synovia.text import parse_json

SCHEMA: Final = "synovia.pose/1"
LIBRARY: Final = "synovia.poses/1"
ENDING: Final = ".json"
_LARGEST: Final = 2**26  # largest size of a file, bytes; ten times that of a pose of 20,000 joints


def values_of(pose: Pose) -> dict[str, float | list[float]]:
    """Return the values of the movable joints by their names in a pose file; a value is a number or a list."""
    out: dict[str, float | list[float]] = {}
    for row, key in enumerate(pose.skeleton.joint_keys):
        value = pose[row]
        if not isinstance(value, np.ndarray):
            out[key] = value
        elif len(value):
            out[key] = value.tolist()
    return out


def save_pose(
    pose: Pose,
    path: str | os.PathLike[str],
    *,
    into: str | os.PathLike[str] | None = None,
    force: bool = False,
    verify: bool = False,
) -> None:
    """Write a pose as JSON by joint name, the format of ``synovia solve -o``, or as a posed glTF.

    Args:
        pose: The pose.
        path: The file: ``.json``; or ``.glb`` or ``.gltf`` for a copy of the model's file in this pose, including its
            meshes and clips.
        into: For glTF: the file to copy. None for ``pose.skeleton.source``, or the body of a bundled model. If this is
            not a glTF, a new file with the skeleton and the shapes of the body is written.
        force: Whether an existing file may be replaced.
        verify: Whether to read the file back and raise an error if joint positions differ, as with
            ``sy.formats.verify_file``.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        FormatError: If files with this extension cannot hold a pose; with ``verify``, also if the written file differs.
        InputError: If the pose belongs to another skeleton than ``into``.

    Example:
        >>> import synovia as sy
        >>> sy.save_pose(sy.bundled("arm7").rest_pose(), "pose.json")  # doctest: +SKIP
    """
    notes = write_pose(pose, path, into=into, force=force, verify=verify)
    if notes:
        warnings.warn(f"{path}: {' '.join(notes)}", UserWarning, stacklevel=2)


def write_pose(
    pose: Pose,
    path: str | os.PathLike[str],
    *,
    into: str | os.PathLike[str] | None = None,
    force: bool = False,
    verify: bool = False,
) -> list[str]:
    """Write a pose and return sentences about differences between the file and the pose; see ``save_pose``."""
    check_kind("pose", pose, Pose, "skeleton.rest_pose() and solution.pose are poses")
    pose.check_finite()
    where = as_path(path)
    fmt, doubtful, notes = pose_format(where), verify, list[str]()
    if fmt is None or fmt.write_pose is None:
        content = {"schema": SCHEMA, "model": pose.skeleton.name, "q": values_of(pose)}
        write_text(where, json.dumps(content, indent=2, allow_nan=False) + "\n", force=force)
    else:
        source = source_of(pose.skeleton, into, fmt, where)
        if source is not None and is_of(fmt, as_path(source)):
            said, why = fmt.write_pose(pose, where, into=source, force=force), list[str]()
        else:
            skin, why = skin_of(pose.skeleton, None if source is None else as_path(source))
            said = fmt.write_pose(pose, where, skin=skin, force=force)
        notes = [*lost_loops(pose.skeleton, fmt), *why, *(said or ())]
        doubtful = verify or bool(pose.skeleton.notes) or into is not None
    check = verify_pose(pose, where) if doubtful else None
    if check is None or check.holds:
        return notes
    if verify:
        raise FormatError("file was written, but differs", where=str(where), hint=" ".join([*notes, check.report()]))
    return [*notes, check.report()]


def verify_pose(pose: Pose, path: str | os.PathLike[str]) -> FileCheck:
    """Return the differences between a pose and the file to which it was written."""
    where = as_path(path)
    fmt = pose_format(where)
    if fmt is None or fmt.shown_pose is None:
        rows, places = list(range(len(pose.skeleton))), load_pose(where, pose.skeleton).positions
    else:
        rows, places = fmt.shown_pose(where, pose.skeleton)
    return check_places(where, pose.skeleton, pose.positions[rows], places, rows)


def pose_format(path: Path) -> Format | None:
    """Return the format of a pose's file by its extension; None for JSON.

    Raises:
        FormatError: If no file of this extension holds a pose.
    """
    if path.suffix.lower() == ENDING:
        return None
    known = [fmt for fmt in formats() if fmt.write_pose is not None]
    found = next((fmt for fmt in known if fmt.names(path)), None)
    if found is None:
        raise FormatError(
            "no file with this extension holds a pose",
            where=str(path),
            value=path.suffix or None,
            expected=f"one of {ENDING}, {endings(known)}",
        )
    return found


def load_pose(path: str | os.PathLike[str], skeleton: Skeleton) -> Pose:
    """Read the pose of a file: a pose file in JSON, or the nodes of a glTF.

    Joints that are not in a pose file are at rest. If the skeleton cannot represent the pose of a glTF, for example
    because bones in the file are longer, a ``UserWarning`` reports the largest difference.

    Args:
        path: The file: ``.json``, ``.glb`` or ``.gltf``.
        skeleton: The skeleton of the pose, with the same root (see ``Skeleton.with_root``).

    Raises:
        FileError: If the file cannot be read.
        FormatError: If it is not a pose file, a joint is not in the skeleton, or a value cannot be used.
        InputError: If a glTF has other joints.

    Example:
        >>> import synovia as sy
        >>> pose = sy.load_pose("pose.json", sy.bundled("arm7"))  # doctest: +SKIP
        >>> sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5)), start=pose)  # doctest: +SKIP
    """
    return _load(path, skeleton, led=False)


def load_start(path: str | os.PathLike[str], skeleton: Skeleton) -> Pose:
    """Read a start pose like ``load_pose``, but compute mimic joints from their leaders."""
    return _load(path, skeleton, led=True)


def _load(path: str | os.PathLike[str], skeleton: Skeleton, *, led: bool) -> Pose:
    """Read the pose of a file; with ``led``, ignore the values of mimic joints."""
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    path = as_path(path)
    fmt = pose_format(path)
    if fmt is None or fmt.read_pose is None:
        return _json_pose(path, skeleton, led=led)
    pose = fmt.read_pose(path, skeleton)
    check = verify_pose(pose, path)
    if not check.holds:
        what = f"joint {check.joint!r} is {check.difference:.3g} from its position in the file, others may be too"
        warnings.warn(f"{path}: the skeleton cannot take this pose: {what}.", UserWarning, stacklevel=3)
    return pose


def _json_pose(path: Path, skeleton: Skeleton, *, led: bool = False) -> Pose:
    """Read the pose of a pose file."""
    where = str(path)
    fields = _fields(parse_json(read_text(path, most=_LARGEST), where), "q", where, (SCHEMA,))
    return _pose_of(fields.get("q"), skeleton, where, "q", led=led)


def poses_text(poses: Mapping[str, Pose]) -> str:
    """Return the text of a file of named poses, all of one skeleton."""
    model = next((pose.skeleton.name for pose in poses.values()), "")
    content = {"schema": LIBRARY, "model": model, "poses": {name: values_of(pose) for name, pose in poses.items()}}
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def load_poses(path: str | os.PathLike[str], skeleton: Skeleton) -> dict[str, Pose]:
    """Read the poses of a file by name. In a file of one pose, this pose gets the name of the file.

    Args:
        path: The file.
        skeleton: The skeleton of the poses.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If it is not a file of poses, a joint is not in the skeleton, or a value cannot be used.
    """
    path = as_path(path)
    where = str(path)
    content: Any = parse_json(read_text(path, most=_LARGEST), where)
    if isinstance(content, dict) and cast("dict[str, Any]", content).get("schema") == SCHEMA:
        return {path.stem: _json_pose(path, skeleton)}
    poses: Any = _fields(content, "poses", where, (LIBRARY, SCHEMA)).get("poses")
    if not isinstance(poses, dict):
        raise FormatError("poses", where=where, value=poses, expected='"poses": {name: {joint: value}}')
    named = cast("dict[str, Any]", poses)
    return {name: _pose_of(values, skeleton, where, f"poses.{name}") for name, values in named.items()}


def _fields(content: Any, values: str, where: str, schemas: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a file of schema ``schemas[0]``; errors name all ``schemas``."""
    if not isinstance(content, dict) or cast("dict[str, Any]", content).get("schema") != schemas[0]:
        expected = " or ".join(f'"schema": "{schema}"' for schema in schemas)
        raise FormatError("", where=where, expected=f"an object with {expected}")
    fields = cast("dict[str, Any]", content)
    for field in fields:
        if field not in ("schema", "model", values):
            raise FormatError(f"unknown field {field!r}", where=where, expected=f"schema, model or {values}")
    return fields


def _pose_of(values: Any, skeleton: Skeleton, where: str, field: str, *, led: bool = False) -> Pose:
    """Return the pose with the joint values in a field of a file; joints without a value are at rest.

    With ``led``, mimic joints are computed from their leaders, and their values in the file are ignored.
    """
    if not isinstance(values, dict):
        raise FormatError(field, where=where, value=values, expected=f'joint values, "{field}": {{joint: value}}')
    joints = skeleton.joints
    try:
        by_row = skeleton.by_row(cast("dict[str, Any]", values), "values")
        for row, value in by_row.items():
            _check(value, joints[row].kind.q_size, f"{where}: joint {skeleton.joint_keys[row]!r}")
        given = {row: value for row, value in by_row.items() if not (led and joints[row].mimic is not None)}
        return skeleton.rest_pose().with_values(given)
    except (InputError, UnknownNameError) as error:
        raise restated(error, FormatError, where) from error


def _check(value: object, size: int, where: str) -> None:
    """Raise an error unless a value has ``size`` finite numbers, as its joint needs."""
    listed: list[object] = cast("list[object]", value) if isinstance(value, list) and size != 1 else [value]
    if len(listed) != size or not all(map(_is_finite, listed)):
        several = f"a list of {size} finite numbers" if size else "none: the joint is fixed"
        raise FormatError("", where=where, value=listed, expected="a finite number" if size == 1 else several)


def _is_finite(value: object) -> bool:
    """Return whether a JSON value is a number within the range of float64."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= sys.float_info.max
