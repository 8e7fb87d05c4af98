"""Convert columns of joint values to end-effector poses, and poses to joint values, episode by episode.

A pose is x, y, z in the model's length unit and the rotation as a rotation vector wx, wy, wz, in the frame of the
model's world, with LeRobot's names ``ee.x`` to ``ee.wz``. Values of the joint column that do not move the end effector,
such as those of a gripper, are copied: ``gripper.pos`` becomes ``ee.gripper_pos``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from synovia.errors import InputError, did_you_mean
from synovia.facade import IK
from synovia.goals import PoseGoal
from synovia.ik.status import Status
from synovia.lerobot.layout import DataSet, Feature, NewColumns, Numbers
from synovia.model import Joint, Kind, Skeleton
from synovia.model.geometry import (
    Array,
    frames_to_transforms,
    matrix_to_quat,
    quat_to_matrix,
    rotation_between,
    times_exp,
    unit,
)
from synovia.model.pose import world_frames
from synovia.model.tree import ancestors

_POSE: Final = ("x", "y", "z", "wx", "wy", "wz")
_ENDING: Final = ".pos"  # ending of the names of motors in LeRobot
_PLAIN: Final = "_pos"  # replaces the ending ".pos" in the names of an end effector
_EXACT: Final = 1e-6  # tolerance in radians, and as a fraction of the arm's size: the accuracy of float32
_ONE: Final = np.array([0.0, 0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Arm:
    """Mapping from a column of joint values to a skeleton.

    Args:
        skeleton: The robot.
        tip: Joint, link or site that is the end effector.
        joints: Joint for each name in the column; None if the names are equal, apart from the ending ``.pos``. Other
            values of the column, such as a gripper's, are copied unchanged.
        degrees: Whether hinges are in degrees in the data set; otherwise in radians.
        prefix: Prefix of the names of the end effector's values; use different prefixes for two arms in one column.

    Raises:
        InputError: If a joint is neither a hinge nor a slide, or is named twice.
        UnknownNameError: If the tip or a joint does not exist.
    """

    skeleton: Skeleton
    tip: str
    joints: Mapping[str, str] | None = None
    degrees: bool = False
    prefix: str = "ee"
    row: int = field(init=False, repr=False)
    place: Array = field(init=False, repr=False, compare=False)  # frame of the tip on its row, (4, 4)

    def __post_init__(self) -> None:
        """Find the tip and check the joints."""
        row, place = self.skeleton.locate(self.tip)
        object.__setattr__(self, "row", row)
        object.__setattr__(self, "place", np.eye(4) if place is None else place)
        named = [(joint, name) for name, joint in (self.joints or {}).items()]
        for own, name in self.skeleton.by_row(named, "number").items():
            kind = self.skeleton.joints[own].kind
            if kind not in (Kind.HINGE, Kind.SLIDE):
                joint = (self.joints or {})[name]
                raise InputError(f"joint {joint!r} for {name!r}", value=kind.name, expected="a hinge or slide")

    def used(self, names: tuple[str, ...], where: str) -> dict[str, int]:
        """Return the row of the joint for each name of a column whose joint moves the tip.

        Raises:
            InputError: If a name of ``joints`` is not in the column, a joint has no value, or no joint moves the tip.
        """
        moving = {joint.name: row for row, joint in self.chain() if joint.kind in (Kind.HINGE, Kind.SLIDE)}
        if self.joints is None:
            rows = {name: moving[own] for name in names if (own := name.removesuffix(_ENDING)) in moving}
        else:
            for name in self.joints:
                if name not in names:
                    raise InputError(f"no number named {name!r}", where=where, hint=did_you_mean(name, names))
            found = {name: self.skeleton.value_index(joint) for name, joint in self.joints.items()}
            rows = {name: row for name, row in found.items() if row in moving.values()}
        lost = [name for name, row in moving.items() if row not in rows.values()]
        lost = [name for name in lost if self.skeleton.joints[moving[name]].mimic is None]
        if lost:
            raise InputError(
                f"column has no number for joint {lost[0]!r}",
                where=where,
                value=", ".join(names),
                hint="pass joints={name in the column: joint of the model}",
            )
        if not rows:
            raise InputError(f"no number of the column moves {self.tip!r}", where=where, value=", ".join(names))
        return rows

    def chain(self) -> list[tuple[int, Joint]]:
        """Return the rows and the joints from the root to the tip."""
        rows = sorted({*ancestors(self.skeleton.parents, self.row), self.row})
        return [(row, self.skeleton.joints[row]) for row in rows]

    def places(self, names: tuple[str, ...], rows: Mapping[str, int]) -> tuple[list[int], list[int], Array]:
        """Return for each joint its index in the column, its index in q, and the factor from q to the column."""
        degrees = [self.degrees and self.skeleton.joints[row].kind is Kind.HINGE for row in rows.values()]
        at = [names.index(name) for name in rows]
        return at, [self.skeleton.q_slice(row).start for row in rows.values()], np.where(degrees, np.degrees(1.0), 1.0)

    def q_of(self, values: Numbers, names: tuple[str, ...], rows: Mapping[str, int]) -> Array:
        """Return q (T, nq) for the values of a column; other joints are at rest."""
        at, own, scale = self.places(names, rows)
        q = np.tile(self.skeleton.rest_q, (len(values), 1))
        q[:, own] = values[:, at] / scale
        return self.skeleton.follow(q)


@dataclass(frozen=True)
class Converted:
    """Result of a conversion.

    Args:
        frames: Number of frames.
        statuses: Number of frames by name of their status; for ``add_poses``, all frames are ``REACHED``.
        jumps: Episode and frame of each jump of the joints.
    """

    frames: int
    statuses: Mapping[str, int]
    jumps: tuple[tuple[int, int], ...] = ()


def add_poses(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    arm: Arm,
    *,
    column: str = "observation.state",
    into: str = "observation.ee",
    replace: bool = False,
    force: bool = False,
) -> Converted:
    """Write a copy of a LeRobot data set with end-effector poses computed from its joint values.

    Rotation vectors are continuous within an episode, even beyond half a turn.

    Args:
        source: Folder of the data set, layout v3.0.
        target: Folder of the copy.
        arm: Mapping from the column to a skeleton.
        column: The column of joint values, for example ``"action"``.
        into: The new column.
        replace: Whether ``into`` may be an existing column.
        force: Whether an existing folder may be replaced.

    Raises:
        FileError: If a folder exists and ``force`` is not set, or a file cannot be read or written.
        FormatError: If the data set is damaged or of another version.
        InputError: If columns or names do not fit.
        MissingExtraError: If pyarrow is not installed (the extra ``data``).

    Example:
        >>> arm = Arm(load_skeleton("so100.urdf"), "jaw", degrees=True)  # doctest: +SKIP
        >>> add_poses("pick", "pick_ee", arm, column="action", into="action.ee")  # doctest: +SKIP
    """
    data = DataSet(source)
    names = data.feature(column).names or ()
    rows = arm.used(names, f"{data.root}: {column}")
    others = [name for name in names if name not in rows]
    ee = (*(f"{arm.prefix}.{part}" for part in _POSE), *(_along(arm, name) for name in others))
    frames = 0

    def make(episode: int, columns: Mapping[str, Numbers]) -> Mapping[str, Numbers]:
        nonlocal frames
        del episode
        values = columns[column]
        frames_of_tip = world_frames(arm.skeleton, arm.q_of(values, names, rows))[:, arm.row]
        tips = frames_to_transforms(frames_of_tip) @ arm.place
        frames += len(values)
        along = values[:, [names.index(name) for name in others]]
        return {into: np.concatenate([tips[:, :3, 3], _turns(tips[:, :3, :3]), along], axis=1)}

    new = NewColumns({into: Feature("float32", ee)}, (column,), make)
    data.write_with(target, new, replace=replace, force=force)
    return Converted(frames, {Status.REACHED.name: frames})


def add_joints(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    arm: Arm,
    *,
    column: str = "observation.ee",
    into: str = "observation.state",
    start: str | None = None,
    tolerance: tuple[float, float] | None = None,
    replace: bool = False,
    force: bool = False,
) -> Converted:
    """Write a copy of a LeRobot data set with joint values that reach its end-effector poses.

    Each episode is tracked: each frame starts from the joint values of the previous frame. The column ``INTO.status``
    has the status of each frame, checked by forward kinematics: 0 for reached, else the value of a ``synovia.Status``.

    Args:
        source: Folder of the data set, layout v3.0.
        target: Folder of the copy.
        arm: Mapping from the new column to a skeleton.
        column: The column of poses, with names as from ``add_poses``.
        into: The new column of joint values.
        start: Column of joint values; its first frame in each episode is the start, and the new column gets its names
            in the same order. If several arm poses reach a target, the pose near the start is chosen. None to start
            from the rest pose.
        tolerance: Position (length units) and angle (radians) within which a pose is reached; None for 1e-6 times the
            size of the arm and 1e-6 rad.
        replace: Whether ``into`` may be an existing column.
        force: Whether an existing folder may be replaced.

    Raises:
        FileError: If a folder exists and ``force`` is not set, or a file cannot be read or written.
        FormatError: If the data set is damaged or of another version.
        InputError: If columns or names do not fit.
        MissingExtraError: If pyarrow is not installed (the extra ``data``).
    """
    data = DataSet(source)
    ee = data.feature(column).names or ()
    pose = [f"{arm.prefix}.{part}" for part in _POSE]
    lost = [name for name in pose if name not in ee]
    if lost:
        raise InputError(f"column {column!r} has no number {lost[0]!r}", where=str(data.root), value=", ".join(ee))
    names = (data.feature(start).names or ()) if start is not None else _names(arm, ee)
    rows = arm.used(names, f"{data.root}: {start or column}")
    size = arm.skeleton.size
    ik = IK(arm.skeleton, PoseGoal(arm.tip, np.zeros(3), np.eye(3)), tolerance=tolerance or (_EXACT * size, _EXACT))
    along = {name: other for name in names if name not in rows and (other := _along(arm, name)) in ee}
    statuses: Counter[str] = Counter()
    jumps: list[tuple[int, int]] = []

    def make(episode: int, columns: Mapping[str, Numbers]) -> Mapping[str, Numbers]:
        values = columns[column]
        targets = np.tile(np.eye(4), (len(values), 1, 1))
        parts = values[:, [ee.index(name) for name in pose]].astype(np.float64)
        targets[:, :3, 3] = parts[:, :3]
        targets[:, :3, :3] = quat_to_matrix(times_exp(_ONE, parts[:, 3:]))
        first = None if start is None else arm.q_of(columns[start][:1], names, rows)[0]
        tracked = ik.track(targets, first, fps=data.fps)
        out = np.zeros((len(values), len(names))) if start is None else columns[start].astype(np.float64)
        at, own, scale = arm.places(names, rows)
        out[:, at] = tracked.q[:, own] * scale
        out[:, [names.index(name) for name in along]] = values[:, [ee.index(other) for other in along.values()]]
        statuses.update(Status(int(status)).name for status in tracked.status)
        jumps.extend((episode, frame) for frame in tracked.jumps)
        return {into: out, f"{into}.status": tracked.status[:, None]}

    features = {into: Feature("float32", names), f"{into}.status": Feature("int64", None)}
    new = NewColumns(features, (column,) if start is None else (column, start), make)
    data.write_with(target, new, replace=replace, force=force)
    return Converted(sum(statuses.values()), dict(statuses), tuple(jumps))


def _along(arm: Arm, name: str) -> str:
    """Return the name, in the column of poses, of a value that is copied because it is no joint of the arm."""
    plain = name.removesuffix(_ENDING) + _PLAIN if name.endswith(_ENDING) else name
    return f"{arm.prefix}.{plain}"


def _names(arm: Arm, ee: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the elements of a new column: the joints, then the values copied with the pose."""
    moving = [joint for _, joint in arm.chain() if joint.kind in (Kind.HINGE, Kind.SLIDE)]
    plain = [joint.name for joint in moving if joint.mimic is None]
    along = [name.removeprefix(f"{arm.prefix}.") for name in ee if name.startswith(f"{arm.prefix}.")][len(_POSE) :]
    back = [name.removesuffix(_PLAIN) + _ENDING if name.endswith(_PLAIN) else name for name in along]
    joints = list(arm.joints) if arm.joints is not None else plain
    return (*joints, *(name for name in back if name not in joints))


def _turns(rotations: Array) -> Array:
    """Return rotations (T, 3, 3) as rotation vectors, (T, 3), each unwrapped to be nearest to the previous vector."""
    out = rotation_between(_ONE, matrix_to_quat(rotations))
    for t in range(1, len(out)):
        axis = unit(out[t] if out[t].any() else out[t - 1])  # the identity is a multiple of 2π about any axis
        turns = np.rint((out[t - 1] - out[t]) @ axis / (2.0 * np.pi))
        out[t] += 2.0 * np.pi * turns * axis
    return out
