"""Read and write joint values in Unitree's order, as in LAFAN1 motions retargeted to G1 and H1: text without names.

Each row is a frame: position of the base (3), its rotation as a quaternion xyzw (4), then the value of each joint in
the order of the model's file. The rate is not in the file; these motions have 30 frames per second.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import numpy as np

from synovia.errors import FormatError
from synovia.io.base import Format, as_path, read_text, write_text
from synovia.model import Skeleton
from synovia.model.geometry import Array, frames_to_transforms, matrix_to_quat, quat_to_matrix, same_side
from synovia.model.motion import Motion
from synovia.model.simulators import floating, free_slice, mounted, robot_of
from synovia.text import counted, listed

FPS: Final = 30.0
_RATE: Final = f"The file does not contain its frame rate: {FPS:g} per second is assumed, as for Unitree's motions."
_BASE: Final = 7  # number of values of the base, which come before the joint values
_SLACK: Final = 1e-2  # tolerance of a quaternion's norm; values in files have six digits


def write_unitree(motion: Motion, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a robot motion as text in Unitree's order.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        UnsupportedError: If a joint has more than one degree of freedom.
    """
    where = as_path(path)
    skeleton = motion.skeleton
    robot = robot_of(skeleton, "depth", str(where))
    base = frames_to_transforms(motion.frames()[:, robot.base])
    joints = [skeleton.q_slice(row).start for row in robot.joints]
    quats = same_side(matrix_to_quat(base[:, :3, :3]))
    rows = np.concatenate([base[:, :3, 3], quats, motion.q[:, joints]], axis=1)
    write_text(where, "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist()), force=force)


def read_unitree(path: str | os.PathLike[str], skeleton: Skeleton, *, fps: float = FPS) -> Motion:
    """Read a robot motion from text in Unitree's order.

    Args:
        path: The file.
        skeleton: The robot; it gets a free root if it has none, unless the base stays at its rest pose in all frames.
        fps: Frames per second, which the file does not hold.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If a row does not have seven values of the base and one for each joint, or a value cannot be used.
            The message names the line.
        UnsupportedError: If a joint has more than one degree of freedom.
    """
    where = as_path(path)
    rooted = skeleton.with_root("free")
    robot = robot_of(rooted, "depth", str(where))
    rows = _rows(where, [rooted.joints[row].name for row in robot.joints])
    q = np.tile(rooted.rest_q, (len(rows), 1))
    q[:, [rooted.q_slice(row).start for row in robot.joints]] = rows[:, _BASE:]
    with np.errstate(over="ignore"):  # infinite norms fail the check below
        lengths = np.linalg.norm(rows[:, 3:_BASE], axis=1)
    wrong = np.flatnonzero(np.abs(lengths - 1.0) > _SLACK)
    if len(wrong):
        raise FormatError(
            "columns 4 to 7 are not a unit quaternion",
            where=f"{where}, row {wrong[0] + 1}",
            value=rows[wrong[0], 3:_BASE].tolist(),
            expected="x, y, z, w of the base's rotation",
        )
    poses = np.tile(np.eye(4), (len(rows), 1, 1))
    poses[:, :3, :3] = quat_to_matrix(rows[:, 3:_BASE] / lengths[:, None])
    poses[:, :3, 3] = rows[:, :3]
    q[:, free_slice(rooted)] = floating(rooted, robot.base, poses)
    body, q = mounted(skeleton, rooted, q)
    notes = [_RATE] if fps == FPS else []
    return Motion(body, q, fps, name=where.stem.removesuffix(".unitree"), notes=notes)


def _rows(where: Path, joints: list[str]) -> Array:
    """Read the values of a file, (T, 7 + joints)."""
    size = _BASE + len(joints)
    rows: list[list[float]] = []
    for line, text in enumerate(read_text(where).splitlines(), 1):
        if not text.strip():
            continue
        numbers = _numbers(text)
        if numbers is None or not np.isfinite(numbers).all():
            raise FormatError("line is not a row of numbers", where=f"{where}, line {line}", value=text[:40])
        if len(numbers) != size:
            raise FormatError(
                f"row has {counted(len(numbers), 'number')}",
                where=f"{where}, line {line}",
                expected=f"{size}: 7 of the base and one for each of {len(joints)} joints, {listed(joints)}",
                hint="is it a motion of this model?",
            )
        rows.append(numbers)
    if not rows:
        raise FormatError("file has no frames", where=str(where))
    return np.array(rows)


def _numbers(text: str) -> list[float] | None:
    """Parse the comma-separated numbers of a line; return None for any other line."""
    if "_" in text or not text.isascii():  # float() accepts 1_0 and Arabic digits, other programs do not
        return None
    try:
        return [float(cell) for cell in text.split(",")]
    except ValueError:
        return None


def _looks_like(head: bytes) -> bool:
    """Return whether the first line has only numbers, at least the seven of a base."""
    numbers = _numbers(head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode("latin-1").strip())
    return numbers is not None and len(numbers) >= _BASE


def _lacks(motion: Motion) -> list[str]:
    """Return a sentence about the frame rate if it differs from the usual rate of these files."""
    if motion.fps == FPS:
        return []
    return [f"The file cannot hold the rate of {motion.fps:g} frames per second: readers assume {FPS:g}."]


FORMAT: Final = Format.without_skeleton(
    "Unitree CSV", (".unitree.csv",), _looks_like, read_unitree, write_unitree,
    what="a table without names of columns",
    hint="name the robot: --model FILE, or load_motion(path, skeleton=robot) in Python", lacks=_lacks,
    keeps="base and joints in Unitree's order, without names and rate",
)  # fmt: skip
