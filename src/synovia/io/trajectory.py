"""Read and write ROS joint trajectories (``trajectory_msgs/JointTrajectory``) as JSON or YAML, for robot controllers.

Each frame is a point with positions, velocities and accelerations of the hinges and slides (radians or metres, and per
second), and its time from the start. Mimic joints are left out, because controllers do not know them. The last point
has velocity and acceleration zero, as controllers require. YAML has one point per line, in the flow style that is also
JSON.

References:
    https://docs.ros.org/en/rolling/p/trajectory_msgs/ (fields of the message)
    https://control.ros.org/rolling/doc/ros2_controllers/joint_trajectory_controller/doc/trajectory.html
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from synovia.errors import FormatError, InputError, SynoviaError, UnsupportedError, restated
from synovia.io.base import Format, as_path, frame_rate, read_text, resting_notes, write_text
from synovia.model import Kind, Skeleton
from synovia.model.clip_tools.derivatives import accelerations, velocities
from synovia.model.geometry import Array, as_numbers
from synovia.model.motion import Motion
from synovia.text import counted, listed

_ENDINGS: Final = (".trajectory.json", ".trajectory.yaml")
_SCALAR: Final = (Kind.HINGE, Kind.SLIDE)
_NANO: Final = 1_000_000_000
STILL: Final = 1e-6  # radians or length units; a joint that moves less counts as at rest
_ENDING: Final = 0.01  # fraction of a joint's highest velocity; a slower joint counts as at rest at the end of a clip
_LINE: Final = re.compile(r"(header|joint_names|points): ?(.*)|- (\{.*\})")


def write_trajectory(
    motion: Motion, path: str | os.PathLike[str], *, joints: Sequence[int] | None = None, force: bool = False
) -> None:
    """Write a robot motion as a joint trajectory, JSON or YAML by the ending of the name.

    Args:
        motion: The motion.
        path: The file.
        joints: Rows of the joints that the file has, in this order; None for all hinges and slides.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        InputError: If a joint in ``joints`` is not a hinge or slide, or follows another joint.
        UnsupportedError: If a joint other than hinges and slides moves.
    """
    where = as_path(path)
    rows = _driven(motion, str(where)) if joints is None else _chosen(motion.skeleton, joints)
    skeleton = motion.skeleton
    firsts = [skeleton.dof_columns[row][0] for row in rows]
    metres = _metres(skeleton, rows)
    places = motion.q[:, [skeleton.q_slice(row).start for row in rows]] * metres
    rates, changes = velocities(motion)[:, firsts] * metres, accelerations(motion)[:, firsts] * metres
    rates[-1:], changes[-1:] = 0.0, 0.0
    points: list[dict[str, Any]] = [
        {
            "positions": place,
            "velocities": rate,
            "accelerations": change,
            "effort": [],
            "time_from_start": dict(zip(("sec", "nanosec"), divmod(round(time * _NANO), _NANO), strict=True)),
        }
        for place, rate, change, time in zip(
            places.tolist(), rates.tolist(), changes.tolist(), motion.times.tolist(), strict=True
        )
    ]
    header = {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    names = [skeleton.joint_keys[row] for row in rows]
    if where.name.lower().endswith(".json"):
        text = json.dumps({"header": header, "joint_names": names, "points": points}, indent=1) + "\n"
    else:
        lines = [f"header: {_flow(header)}", f"joint_names: {_flow(names)}", "points:"]
        text = "\n".join([*lines, *(f"- {_flow(point)}" for point in points)]) + "\n"
    write_text(where, text, force=force)


def _flow(value: Any) -> str:
    """Return a value as text that is both JSON and YAML; numbers in YAML need a point before the exponent."""
    return re.sub(r"(?<=[\[ ])(-?\d+)e", r"\1.0e", json.dumps(value))


def _driven(motion: Motion, where: str) -> list[int]:
    """Return the rows of the joints that a controller drives: hinges and slides that are not mimic joints."""
    skeleton = motion.skeleton
    moving = [
        joint.name
        for row, joint in enumerate(skeleton.joints)
        if joint.kind in (Kind.BALL, Kind.FREE) and np.ptp(motion.q[:, skeleton.q_slice(row)], axis=0).max() > STILL
    ]
    if moving:
        raise UnsupportedError(
            f"{listed(moving)} cannot be in a joint trajectory",
            where=where,
            expected="a motion of hinges and slides",
            hint="write the clip as .csv, which holds every joint",
        )
    return [row for row, joint in enumerate(skeleton.joints) if joint.kind in _SCALAR and joint.mimic is None]


def _chosen(skeleton: Skeleton, rows: Sequence[int]) -> list[int]:
    """Return the rows of joints that users chose for a controller.

    Raises:
        InputError: If a controller cannot drive one of them.
    """
    for row in rows:
        joint = skeleton.joints[row]
        if joint.kind not in _SCALAR or joint.mimic is not None:
            hint = None if joint.mimic is None else f"it follows {joint.mimic.leader!r}, which a controller drives"
            raise InputError("joints", value=skeleton.joint_keys[row], expected="hinges and slides", hint=hint)
    return list(rows)


def read_trajectory(path: str | os.PathLike[str], skeleton: Skeleton) -> Motion:
    """Read a robot motion from a joint trajectory; the joints may have any order.

    Args:
        path: The file, JSON or YAML. YAML from other programs needs the package ``pyyaml``.
        skeleton: The robot. Joints without values stay at rest, and mimic joints follow.

    Returns:
        The motion at a constant rate. Its notes list joints without values, and report unevenly spaced times.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is not a joint trajectory, a joint is unknown, or a value cannot be used.
    """
    where = as_path(path)
    content = _content(read_text(where), where)
    names, points = content.get("joint_names"), content.get("points")
    if not isinstance(names, list) or not isinstance(points, list) or not points:
        raise FormatError("file is not a joint trajectory", where=str(where), expected="joint_names and points")
    joints = [str(name) for name in cast("list[object]", names)]
    try:
        rows = list(skeleton.by_row([(name, name) for name in joints], "values"))
    except SynoviaError as error:
        raise restated(error, FormatError, str(where)) from error
    wrong = [name for name, row in zip(joints, rows, strict=True) if skeleton.joints[row].kind not in _SCALAR]
    if wrong:
        raise FormatError(f"joints {listed(wrong)}", where=str(where), expected="only hinges and slides of the model")
    given = [_point(point, k, len(joints), where) for k, point in enumerate(cast("list[object]", points))]
    times = np.array([time for time, _ in given])
    q = np.tile(skeleton.rest_q, (len(given), 1))
    at = [skeleton.q_slice(row).start for row in rows]
    q[:, at] = np.array([values for _, values in given]) / _metres(skeleton, rows)
    rate, said = frame_rate(times, where)
    return Motion(skeleton, q, rate or 30.0, name=_stem(where), notes=[*resting_notes(skeleton, at, q), *said])


def _metres(skeleton: Skeleton, rows: Sequence[int]) -> Array:
    """Return the length unit of each joint's value in metres; 1 for hinges, and for an unknown unit."""
    unit = skeleton.meters_per_unit or 1.0
    return np.array([unit if skeleton.joints[row].kind is Kind.SLIDE else 1.0 for row in rows])


def _stem(where: Path) -> str:
    """Return the name of a file without its ending."""
    ending = next((end for end in _ENDINGS if where.name.lower().endswith(end)), where.suffix)
    return where.name[: -len(ending)] if ending else where.name


def _point(point: object, k: int, count: int, where: Path) -> tuple[float, Array]:
    """Return the time of a point, seconds, and its positions."""
    place = f"{where}, points[{k}]"
    try:
        fields = cast("Mapping[str, Any]", point)
        time = fields["time_from_start"]
        if isinstance(time, Mapping):
            parts = cast("Mapping[str, Any]", time)  # ROS 1 has secs and nsecs
            whole, rest = (parts.get(name, parts.get(old, 0)) for name, old in (("sec", "secs"), ("nanosec", "nsecs")))
            time = float(whole) + float(rest) / _NANO
        positions = as_numbers(fields["positions"], (-1,), "positions")
        seconds = float(as_numbers(time, (), "time_from_start"))
    except (KeyError, TypeError, ValueError, InputError) as error:
        hint = str(error) if isinstance(error, InputError) else None
        raise FormatError(
            "point cannot be used",
            where=place,
            expected="positions, and time_from_start with sec and nanosec",
            hint=hint,
        ) from error
    if len(positions) != count:
        raise FormatError(
            f"point has {counted(len(positions), 'position')}", where=place, expected=f"{count}, as joint_names has"
        )
    return seconds, positions


def _content(text: str, where: Path) -> Mapping[str, Any]:
    """Return the fields of a trajectory from JSON or YAML."""
    try:
        content: object = json.loads(text) if text.lstrip().startswith("{") else _lines(text)
        if content is None:
            content = _foreign(text, where)
    except (ValueError, RecursionError) as error:
        raise FormatError("file is not a joint trajectory", where=str(where), hint=str(error)) from error
    if not isinstance(content, Mapping):
        raise FormatError("file is not a joint trajectory", where=str(where), expected="joint_names and points")
    return cast("Mapping[str, Any]", content)


def _lines(text: str) -> dict[str, Any] | None:
    """Return the fields of YAML in the form written here, whose lines end with JSON; None for other YAML."""
    out: dict[str, Any] = {}
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            return None
        field, value, point = found.groups()
        try:
            if point is not None:
                out["points"].append(json.loads(point))
            else:
                out[field] = json.loads(value) if value else []
        except (KeyError, ValueError):
            return None
    return out


def _foreign(text: str, where: Path) -> object:
    """Return the content of YAML in any form."""
    try:
        yaml = import_module("yaml")
    except ImportError:
        hint = "install it: pip install pyyaml; or write the file as JSON"
        raise FormatError("YAML of another program needs the package pyyaml", where=str(where), hint=hint) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise FormatError("file is not YAML", where=str(where), hint=str(error)) from error


def _looks_like(head: bytes) -> bool:
    """Return whether the first bytes are those of a joint trajectory with joint names."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith((b"header:", b"joint_names:", b"{")) and b"joint_names" in start


def _lacks(motion: Motion) -> Sequence[str]:
    """Return sentences about joints that the file leaves out, and about motion in the last frame."""
    skeleton = motion.skeleton
    away = [
        joint.name
        for row, joint in enumerate(skeleton.joints)
        if joint.kind in (Kind.BALL, Kind.FREE) and _off_rest(motion, row) > STILL
    ]
    notes = [f"The trajectory leaves out {listed(away)}, whose values differ from rest."] if away else []
    rates = np.abs(velocities(motion))
    if not rates.size:
        return notes
    fastest = int(np.argmax(rates[-1]))
    if rates[-1, fastest] <= _ENDING * rates[:, fastest].max():
        return notes
    moving = f"{skeleton.dof_names[fastest]!r} at {rates[-1, fastest]:.3g} per second"
    return [*notes, f"The clip moves in its last frame ({moving}), but the trajectory ends there with velocity 0."]


def _off_rest(motion: Motion, row: int) -> float:
    """Return the largest difference of a joint's values from rest."""
    at = motion.skeleton.q_slice(row)
    return float(np.abs(motion.q[:, at] - motion.skeleton.rest_q[at]).max(initial=0.0))


FORMAT: Final = Format.without_skeleton(
    "ROS JointTrajectory", _ENDINGS, _looks_like, read_trajectory, write_trajectory,
    what="a joint trajectory", hint="name the robot: --model FILE, or load_motion(path, skeleton=robot) in Python",
    lacks=_lacks,
    keeps="positions, velocities, accelerations and times of hinges and slides, as controllers take them",
    chooses=True,
)  # fmt: skip
