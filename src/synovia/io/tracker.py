"""Read and write robot motions for motion trackers of robot learning: NumPy archives with the poses of all bodies.

Written files have the arrays of BeyondMimic (whole_body_tracking) and mjlab, and the names of joints and bodies.
T frames, J joints, B bodies; world frame, quaternions wxyz:

fps                              (1,) frames per second
joint_pos, joint_vel             (T, J) radians or length units, and per second
body_pos_w, body_quat_w          (T, B, 3), (T, B, 4)
body_lin_vel_w, body_ang_vel_w   (T, B, 3) of the origin of the body's frame
joint_names, body_names          (J,), (B,)

The reader accepts these arrays, with or without names, and those of Isaac Lab's AMP (``dof_positions``,
``body_positions``, ...). Without names, it chooses the joint order that reproduces the body positions of the file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError, did_you_mean
from synovia.io.base import Format, as_path, file_rate, resting_notes
from synovia.io.npz import numbers_of, read_arrays, texts_of, unread_notes, write_archive
from synovia.model import Skeleton
from synovia.model.geometry import (
    Array,
    frames_to_transforms,
    matrix_to_quat,
    quat_to_matrix,
    rotation_between,
    same_side,
)
from synovia.model.motion import Motion
from synovia.model.pose import world_frames
from synovia.model.rates import usual_rate
from synovia.model.simulators import Order, Robot, body_name, floating, free_slice, mounted, robot_of
from synovia.text import DOUBT, counted

_MUJOCO: Final = ".mujoco.npz"
_ENDINGS: Final = (".isaac.npz", _MUJOCO)
_BASE: Final = 7  # number of base values that some files have before the joint values
_NEAR: Final = 0.05  # fraction of the robot's size: if body positions differ more, the file is of another robot
_NOTED: Final = 1e-3  # fraction of the robot's size; larger differences of body positions get a note
_EXPECTED: Final = "a motion for trackers as .npz"
# Arrays that follow from other arrays and are not read.
_DERIVED: Final = {"body_lin_vel_w", "body_ang_vel_w", "body_linear_velocities", "body_angular_velocities"}
_ALIKE: Final = 0.8  # smallest cosine between velocities of a file and finite differences for both to agree
_SAME_RATE: Final = 1.2  # ratio of two frame rates, below which velocities cannot show which one is right
_CHECKED: Final = 50  # largest number of frames whose body positions are compared


class _Names(NamedTuple):
    """Names of the arrays in the files of one kind of tracker."""

    values: str
    joints: str
    bodies: str
    positions: str
    quats: str
    velocities: str


_KINDS: Final = (
    _Names("joint_pos", "joint_names", "body_names", "body_pos_w", "body_quat_w", "joint_vel"),
    _Names("dof_positions", "dof_names", "body_names", "body_positions", "body_rotations", "dof_velocities"),
)


def write_tracker(
    motion: Motion, path: str | os.PathLike[str], *, order: Order | None = None, force: bool = False
) -> None:
    """Write a robot motion as an archive for trackers.

    Args:
        motion: The motion.
        path: The file.
        order: ``"breadth"`` for the order of joints and bodies in Isaac Lab (BeyondMimic), ``"depth"`` for that of
            MuJoCo (mjlab). None for ``"depth"`` if the name ends with ``.mujoco.npz``, else ``"breadth"``.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        UnsupportedError: If a joint has more than one degree of freedom.
    """
    where = as_path(path)
    skeleton = motion.skeleton
    order = order or ("depth" if where.name.lower().endswith(_MUJOCO) else "breadth")
    robot = robot_of(skeleton, order, str(where))
    values = motion.q[:, [skeleton.q_slice(row).start for row in robot.joints]]
    frames = frames_to_transforms(motion.frames()[:, robot.bodies])
    quats = np.stack([same_side(body) for body in np.swapaxes(matrix_to_quat(frames[..., :3, :3]), 0, 1)], axis=1)
    arrays: dict[str, Array] = {
        "fps": np.array([motion.fps]),
        "joint_pos": values,
        "joint_vel": _rates(values, motion.fps),
        "body_pos_w": frames[..., :3, 3],
        "body_quat_w": np.roll(quats, 1, axis=-1),
        "body_lin_vel_w": _rates(frames[..., :3, 3], motion.fps),
        "body_ang_vel_w": _spins(quats, motion.fps),
    }
    content: dict[str, Any] = {name: array.astype(np.float32) for name, array in arrays.items()} | {
        "joint_names": np.array([skeleton.joints[row].name for row in robot.joints], np.str_),
        "body_names": np.array([body_name(skeleton, row) for row in robot.bodies], np.str_),
    }
    write_archive(where, content, force=force)


def read_tracker(path: str | os.PathLike[str], skeleton: Skeleton) -> Motion:
    """Read a robot motion from an archive for trackers.

    Args:
        path: The file.
        skeleton: The robot; it gets a free root if it has none, unless the base stays at its rest pose in all frames.
            Joints that the file lacks stay at rest.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If arrays are missing or do not fit each other, a joint is unknown, or the body positions differ
            from those of this robot.
        UnsupportedError: If a joint has more than one degree of freedom.
    """
    where = as_path(path)
    wanted = {name for kind in _KINDS for name in kind} | {"fps"}
    arrays = read_arrays(where, sorted(wanted), _EXPECTED)
    kind = next((kind for kind in _KINDS if kind.values in arrays), _KINDS[0])
    values, positions, quats, fps = (
        numbers_of(arrays, name, where, _EXPECTED) for name in (kind.values, kind.positions, kind.quats, "fps")
    )
    fps = fps.reshape(-1)
    count = values.shape[0] if values.ndim == 2 else -1
    if (
        count < 0
        or positions.shape[:1] + positions.shape[2:] != (count, 3)
        or quats.shape != (*positions.shape[:2], 4)
        or not positions.shape[1]
        or len(fps) != 1
    ):
        raise FormatError(
            "arrays do not fit each other",
            where=str(where),
            value=", ".join(
                f"{name} {arrays[name].shape}" for name in (kind.values, kind.positions, kind.quats, "fps")
            ),
            expected=f"{kind.values} (T, J), {kind.positions} (T, B, 3), {kind.quats} (T, B, 4), fps one number",
        )
    if not count:
        raise FormatError("file has no frames", where=str(where))
    lengths = np.linalg.norm(quats, axis=-1)
    if not np.abs(lengths - 1.0).max() < 1e-2:
        raise FormatError(
            f"{kind.quats} has no unit quaternions", where=str(where), expected="w, x, y, z of each body's rotation"
        )
    poses = np.tile(np.eye(4), (*positions.shape[:2], 1, 1))
    poses[..., :3, :3] = quat_to_matrix(np.roll(quats / lengths[..., None], -1, axis=-1))
    poses[..., :3, 3] = positions
    rooted = skeleton.with_root("free")
    names = [None if name not in arrays else texts_of(arrays[name]) for name in (kind.joints, kind.bodies)]
    away, q, given = _with_names(rooted, _Frames(where, values, poses, *names))
    base = free_slice(rooted)
    notes = resting_notes(rooted, [*given, *range(base.start, base.stop)], q)
    if away > _NOTED * skeleton.size:
        notes.append(f"The positions of bodies in model and file differ by {away:.3g} m in the median.")
    notes += unread_notes(where, wanted | _DERIVED)
    body, q = mounted(skeleton, rooted, q)
    name = where.stem.removesuffix(".isaac").removesuffix(".mujoco")
    rate = file_rate(float(fps[0]), where)
    notes += [*rate.notes, *_velocity_notes(values, arrays.get(kind.velocities), rate.fps)]
    return Motion(body, q, rate.fps, name=name, notes=notes)


class _Frames(NamedTuple):
    """Data of all frames of a file.

    Args:
        where: The file.
        values: Joint values, (T, J); Holosoma's files have the base values before them.
        poses: World transforms of bodies, (T, B, 4, 4).
        joints: Names of the joints, None in a file without names.
        bodies: Names of the bodies, None in a file without names.
    """

    where: Path
    values: Array
    poses: Array
    joints: list[str] | None
    bodies: list[str] | None


def _with_names(skeleton: Skeleton, frames: _Frames) -> tuple[float, Array, list[int]]:
    """Return the error of body positions, the joint values q, and the columns of q that the file gives.

    The error is the median over frames of the largest position error of the bodies, length units. The joint values q,
    (T, nq), are assigned by name, or in the order with the smaller error.

    Raises:
        FormatError: If a name is unknown, counts differ, or no order reproduces the body positions.
    """
    orders: tuple[Order, ...] = ("breadth", "depth")
    robots = [robot_of(skeleton, order, str(frames.where)) for order in orders]
    if frames.joints is not None:
        robots = robots[:1]
    tried = [_values(skeleton, robot, frames) for robot in robots]
    off, q, given = min(tried, key=lambda one: one[0])
    if off > _NEAR * skeleton.size:
        raise FormatError(
            "positions of bodies do not match the model",
            where=str(frames.where),
            value=f"a median difference of {off:.3g}",
            hint="is it a motion of this model? Files without names must have Isaac Lab's or MuJoCo's order",
        )
    return off, q, given


def _values(skeleton: Skeleton, robot: Robot, frames: _Frames) -> tuple[float, Array, list[int]]:
    """Return the error of body positions as in ``_with_names``, q (T, nq), and the columns of q that the file gives."""
    where, values, poses, joints, bodies = frames
    count = len(robot.joints if joints is None else joints)
    if values.shape[1] == count + _BASE:
        values = values[:, _BASE:]
    if values.shape[1] != count:
        raise FormatError(f"file has {values.shape[1]} joints", where=str(where), expected=f"{count}, as the model has")
    rows = robot.joints if joints is None else _rows(skeleton, joints, where)
    if bodies is None:
        body_rows = robot.bodies
        if poses.shape[1] != len(body_rows):
            raise FormatError(
                f"file has {poses.shape[1]} bodies without names", where=str(where), expected=f"{len(body_rows)}"
            )
    else:
        if len(bodies) != poses.shape[1]:
            raise FormatError(
                f"file names {counted(len(bodies), 'body', 'bodies')}", where=str(where), expected=f"{poses.shape[1]}"
            )
        known = {body_name(skeleton, row): row for row in reversed(range(len(skeleton)))}
        body_rows = [known.get(name, -1) for name in bodies]  # bodies without a joint, such as sensors, may be missing
    if robot.base not in body_rows:
        raise FormatError(
            "file lacks the base of the robot", where=str(where), expected=body_name(skeleton, robot.base)
        )
    q = np.tile(skeleton.rest_q, (len(values), 1))
    given = [skeleton.q_slice(row).start for row in rows]
    q[:, given] = values
    q[:, free_slice(skeleton)] = floating(skeleton, robot.base, poses[:, body_rows.index(robot.base)])
    some = np.linspace(0, len(q) - 1, min(len(q), _CHECKED)).astype(int)
    there = [at for at, row in enumerate(body_rows) if row >= 0]
    found = world_frames(skeleton, np.ascontiguousarray(q[some]))[:, [body_rows[at] for at in there], 9:]
    away = np.linalg.norm(found - poses[some][:, there][..., :3, 3], axis=-1)
    return float(np.median(away.max(axis=1))), q, given


def _rows(skeleton: Skeleton, names: list[str], where: Path) -> list[int]:
    """Return the skeleton rows of the joints named in a file."""
    known = {name: row for row, name in enumerate(skeleton.joint_names)}
    for name in names:
        if name not in known:
            raise FormatError(f"joint {name!r} is not of this model", where=str(where), hint=did_you_mean(name, known))
    return [known[name] for name in names]


def _velocity_notes(values: Array, velocities: NDArray[Any] | None, fps: float) -> list[str]:
    """Return a note if the joint velocities of a file fit its joint values at another frame rate.

    Args:
        values: Joint values, (T, J).
        velocities: Joint velocities in the file, (T, J); None if the file has none.
        fps: Frame rate of the file.
    """
    if velocities is None or velocities.shape != values.shape or velocities.dtype.kind not in "fiu":
        return []
    own, given = _rates(values, 1.0), np.nan_to_num(velocities.astype(np.float64))
    size, alike = np.linalg.norm(own), np.sum(own * given)
    if not alike > _ALIKE * size * np.linalg.norm(given):
        return []
    other = usual_rate(float(f"{alike / size**2:.4g}")).fps
    if 1.0 / _SAME_RATE < other / fps < _SAME_RATE:
        return []
    return [f"{DOUBT}the file says {fps:.4g} frames per second, but its velocities fit {other:.4g}."]


def _rates(values: Array, fps: float) -> Array:
    """Return derivatives per second (T, ...) by central differences; zero for a single frame."""
    return np.gradient(values, axis=0) * fps if len(values) > 1 else np.zeros_like(values)


def _spins(quats: Array, fps: float) -> Array:
    """Return world angular velocities (T, B, 3) of rotations (T, B, 4) over time by central differences, rad/s."""
    if len(quats) < 2:
        return np.zeros((*quats.shape[:-1], 3))
    frames = np.arange(len(quats))
    before, after = np.maximum(frames - 1, 0), np.minimum(frames + 1, frames[-1])
    turned = rotation_between(quats[before], quats[after])
    world = np.einsum("...ij,...j->...i", quat_to_matrix(quats[before]), turned)
    return world * (fps / (after - before))[:, None, None]


def _looks_like(head: bytes) -> bool:
    """Return whether an archive has the arrays of a known kind of tracker."""
    names = [(f"{kind.values}.npy".encode(), f"{kind.quats}.npy".encode()) for kind in _KINDS]
    return head.startswith(b"PK") and any(values in head and quats in head for values, quats in names)


FORMAT: Final = Format.without_skeleton(
    "tracker", _ENDINGS, _looks_like, read_tracker, write_tracker,
    what="a motion for trackers",
    hint="name the robot: --model FILE, or load_motion(path, skeleton=robot) in Python",
    keeps="joints, bodies and velocities of a robot, for trackers of robot learning",
)  # fmt: skip
