"""Calibration of live retargeting for two bodies, and its file format.

schema = "synovia.calibration/1"
moves = true                     # whether the base of the target moves
alike = false                    # whether the bodies are built alike: then both have the rest pose of the source
floor = 8.14                     # height of the source's ankles while it stands, length units of the source
up = [0.0, 1.0, 0.0]
carried = ["hips", "spine"]      # parts that follow the source

[source]
name = "walk"
structure = "5f0c5b2a9d0e1c3a"   # hash of its joints, so that no other body is calibrated by mistake
offsets = [[0.0, 0.9, 0.0], ...] # offsets of its joints from their parents at rest; 0.5 % of its size may differ
[source.roles]
hips = "Hips"                    # part = joint, or its row where several joints share the name
[target]
...
[rest]                           # rest pose of the source
name = "tpose"
certainty = 0.9
frames = [[1.0, ...], ...]       # world frame of each joint: rotation row by row, then position
[grounds]
left_foot = 8.1                  # height of this point of the source while it stands
[bends]
left_lower_arm = false           # whether a limb that can bend to both sides bends to the narrower one
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np

from synovia.clips.resting import Rest
from synovia.errors import FormatError, InputError
from synovia.io.base import as_path, read_text, write_text
from synovia.model import Skeleton
from synovia.model.anatomy.contacts import LOW
from synovia.model.anatomy.up import Up
from synovia.model.geometry import LONGEST, Array, as_numbers, axis_name, axis_vector, is_finite
from synovia.model.motion import Motion
from synovia.retargeting.alignment import Alike, align
from synovia.retargeting.body import Body
from synovia.retargeting.follower import PoseFollower
from synovia.retargeting.pairing import Pairing, alike_pairing, paired, turning
from synovia.retargeting.planter import points_of
from synovia.retargeting.rest_pose import RestPose, Stance, standing_target
from synovia.text import parse_toml, toml_key, toml_text

SCHEMA: Final = "synovia.calibration/1"
_LARGEST: Final = 2**24  # bytes; a joint has about 300
_ROTATION: Final = 1e-6  # tolerance of stored rotations and unit vectors
_ALIKE: Final = 5e-3  # fraction of the size: the same body's joint offsets differ by at most this


@dataclass(frozen=True, eq=False)
class LiveCalibration:
    """Calibration of a ``LiveRetarget`` for two bodies: parts, rest poses, axes, scale and floor.

    Args:
        pairing: The two bodies, and the parts that follow the source.
        floor: Height of the source's ankles while it stands, length units of the source, minus the rise that the target
            needs so that its soles are above the floor.
        grounds: Height of the ankle and the toes of each foot while the source stands, by role.
        bends: Whether each limb that can bend to both sides bends to the narrower one, by role of its lower part.
        target: The target that was given, without an added root.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> still = sy.Motion(body, [body.rest_q] * 30, 30.0)
        >>> known = sy.live.LiveCalibration.learn(still, sy.bundled("humanoid"))
        >>> live = sy.LiveRetarget(body, sy.bundled("humanoid"), rate=30, calibration=known)
    """

    pairing: Pairing
    floor: float
    grounds: Mapping[str, float]
    bends: Mapping[str, bool]
    target: Skeleton

    @classmethod
    def learn(
        cls,
        motion: Motion,
        target: Skeleton,
        joint_map: Mapping[str, tuple[Any, Any]] | None = None,
        *,
        rest: Rest | None = None,
        up: str | None = None,
        root: str = "free",
    ) -> LiveCalibration:
        """Learn a calibration from a clip of the source, as ``retarget`` does. Long clips with much motion are best.

        Args:
            motion: The clip.
            target: The body that follows.
            joint_map: See ``retarget``.
            rest: See ``retarget``.
            up: See ``retarget``.
            root: ``"free"``, or ``"fixed"`` for a target whose base does not move.

        Raises:
            InputError: If the two have no part in common, or there is no such rest pose.
            UnknownNameError: If the map names a part or a joint that does not exist.
        """
        pairing = paired(motion, target, joint_map, rest=rest, up=up, moves=root != "fixed")
        frames = motion.frames()
        points = points_of(pairing.source, pairing.target, pairing.roles) if pairing.moves else []
        heights = frames[:, [point.source for point in points], 9:] @ pairing.source.basis[:, 1]
        grounds = np.percentile(heights, LOW, axis=0).tolist()
        follower = PoseFollower(pairing)
        follower.learn(frames)
        floor = follower.floor
        if points and not pairing.same_legs:
            floor -= follower.rise(frames, motion.fps) / pairing.scale
        return cls(
            pairing,
            floor,
            {point.role: height for point, height in zip(points, grounds, strict=True)},
            follower.bends,
            target,
        )

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the calibration as TOML.

        Args:
            path: The file.
            force: Whether an existing file may be replaced.

        Raises:
            FileError: If the file exists and ``force`` is not set, or it cannot be written.
        """
        pair = self.pairing
        rest = pair.stance.rest
        lines = [
            f'schema = "{SCHEMA}"',
            f"moves = {'true' if pair.moves else 'false'}",
            f"alike = {'false' if pair.alike is None else 'true'}",
            f"floor = {self.floor!r}",
            f"up = {_numbers(pair.source.basis[:, 1])}",
            f"carried = [{', '.join(toml_text(role) for role in pair.source.roles if role in pair.carried)}]",
        ]
        for name, body, skeleton in (
            ("source", pair.source, pair.source.skeleton),
            ("target", pair.target, self.target),
        ):
            lines += ["", f"[{name}]", f"name = {toml_text(skeleton.name)}", f'structure = "{_structure(skeleton)}"']
            lines += ["offsets = [", *(f"    {_numbers(row)}," for row in _offsets(skeleton)), "]"]
            lines += [f"[{name}.roles]"]
            added = len(body.skeleton) - len(skeleton)
            lines += [f"{toml_key(role)} = {_address(skeleton, row - added)}" for role, row in body.roles.items()]
        lines += ["", "[rest]", f"name = {toml_text(rest.name)}", f"certainty = {rest.certainty!r}", "frames = ["]
        lines += [f"    {_numbers(row)}," for row in pair.source.rest]
        lines += ["]", "", "[grounds]"]
        lines += [f"{toml_key(role)} = {height!r}" for role, height in self.grounds.items()]
        lines += ["", "[bends]"]
        lines += [f"{toml_key(role)} = {'true' if turned else 'false'}" for role, turned in self.bends.items()]
        write_text(as_path(path), "\n".join(lines) + "\n", force=force)

    @classmethod
    def load(cls, path: str | os.PathLike[str], source: Skeleton, target: Skeleton) -> LiveCalibration:
        """Read the calibration of two bodies.

        Args:
            path: The file.
            source: The body whose motion is retargeted.
            target: The body that follows, without an added root.

        Raises:
            FileError: If the file cannot be read.
            FormatError: If the file is no calibration, or belongs to other bodies.
        """
        where = as_path(path)
        table = _Table(parse_toml(read_text(where, most=_LARGEST), str(where)), str(where))
        if table.content.get("schema") != SCHEMA:
            raise FormatError(
                "is not a calibration of a live body", where=str(where), value=table.content.get("schema"),
                expected=f'schema = "{SCHEMA}"',
            )  # fmt: skip
        bodies = {"source": source, "target": target}
        roles: dict[str, dict[str, int]] = {}
        for name, skeleton in bodies.items():
            part = table.table(name)
            alike = part.content.get("structure") == _structure(skeleton)
            if not alike or not _near(part.numbers("offsets", (len(skeleton), 3)), skeleton):
                difference = "joints are" if not alike else "lengths of bones are"
                raise FormatError(
                    f"is the calibration of another {name}", where=str(where), value=part.content.get("name"),
                    expected=f"one of {skeleton.name}, whose {difference} different",
                    hint="learn a new one: LiveCalibration.learn(clip, target)",
                )  # fmt: skip
            roles[name] = part.rows("roles", skeleton)
        moves, up = table.flag("moves"), table.numbers("up", (3,))
        rest = table.table("rest")
        frames = rest.numbers("frames", (len(source), 12))
        R = frames[:, :9].reshape(-1, 3, 3)
        if np.abs(R @ np.swapaxes(R, 1, 2) - np.eye(3)).max() > _ROTATION or abs(np.linalg.norm(up) - 1.0) > _ROTATION:
            raise FormatError("has rows that are not rotations", where=str(where), expected="frames of joints, unit up")
        carried = table.content.get("carried")
        carried = cast("list[object]", carried) if isinstance(carried, list) else []
        if not carried or not all(role in rows for role in carried for rows in roles.values()):
            raise FormatError(
                "has no parts that both bodies have", where=str(where), value=carried, expected="carried = [...]"
            )
        pose = RestPose(str(rest.content.get("name")), frames, rest.number("certainty"), {})
        moving = target.with_root("free") if moves else target
        added = len(moving) - len(target)
        try:
            own = Body(source, roles["source"], pose.frames, up)
            other = Body.of(moving, {role: row + added for role, row in roles["target"].items()})
            name = axis_name(up)
            axis = "" if float(axis_vector(name) @ up) > 1.0 - _ROTATION else name  # named only in a tilted world
            stance = Stance(pose, (pose,), Up(name, up, 1.0, axis=axis), axis_name(own.basis[:, 2]))
            known = frozenset(map(str, carried))
            alike = Alike.of(Body(source, own.roles), other) if table.content.get("alike") is True else None
            if alike is not None:
                pairing = alike_pairing(alike, stance, known, moves=moves)
            else:
                body, target_rest = standing_target(other)
                parts = tuple(align(own, body, turning(body, known)))
                pairing = Pairing(own, body, parts, moves, stance, target_rest, known)
        except InputError as error:
            raise FormatError("does not fit its bodies", where=str(where), expected=str(error)) from error
        grounds, bends = table.table("grounds"), table.table("bends")
        points = points_of(own, pairing.target, pairing.roles) if moves else []
        heights = {point.role: grounds.number(point.role) for point in points}
        return cls(pairing, table.number("floor"), heights, {role: bends.flag(role) for role in bends.content}, target)


def same_body(one: Skeleton, other: Skeleton) -> bool:
    """Return whether two skeletons have the same joints, and rest offsets that differ by at most 0.5 % of the size.

    A tracker sends rounded offsets again each time it starts.
    """
    return one is other or (_structure(one) == _structure(other) and _near(_offsets(one), other))


def _structure(skeleton: Skeleton) -> str:
    """Return a hash of the names, kinds and parents of a skeleton's joints, 16 hexadecimal digits."""
    out = hashlib.sha256()
    for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True):
        out.update(f"{joint.name}\0{joint.kind.name}\0{parent}\n".encode())
    return out.hexdigest()[:16]


def _offsets(skeleton: Skeleton) -> Array:
    """Return the offsets of joints from their parents at rest, (n, 3), length units."""
    return np.array([np.asarray(joint.rest)[:3, 3] for joint in skeleton.joints], np.float64)


def _near(offsets: Array, skeleton: Skeleton) -> bool:
    """Return whether offsets (n, 3) equal those of a skeleton, within a tolerance."""
    return bool(np.abs(offsets - _offsets(skeleton)).max(initial=0.0) <= _ALIKE * skeleton.size)


class _Table:
    """A table of the file that checks its values when they are read."""

    def __init__(self, content: dict[str, Any], where: str, name: str = "") -> None:
        """Store the content; file and name of the table are for error messages."""
        self.content, self._where, self._name = content, where, name

    def _refuse(self, key: str, expected: str) -> FormatError:
        """Return the exception for a value that cannot be used."""
        name = f"{self._name}.{key}" if self._name else key
        return FormatError(f"has no {name} to use", where=self._where, value=self.content.get(key), expected=expected)

    def table(self, key: str) -> _Table:
        """Return the nested table ``key``."""
        value = self.content.get(key)
        if not isinstance(value, dict):
            raise self._refuse(key, f"a table [{key}]")
        return _Table(cast("dict[str, Any]", value), self._where, key)

    def flag(self, key: str) -> bool:
        """Return the boolean value of ``key``."""
        value = self.content.get(key)
        if not isinstance(value, bool):
            raise self._refuse(key, "true or false")
        return value

    def number(self, key: str) -> float:
        """Return the number at ``key``, within the allowed range."""
        value = self.content.get(key)
        if not is_finite(value) or abs(cast("float", value)) > LONGEST:
            raise self._refuse(key, f"a number of at most {LONGEST:g}")
        return float(cast("float", value))

    def numbers(self, key: str, shape: tuple[int, ...]) -> Array:
        """Return the array at ``key``; it must have the shape, and values within the allowed range."""
        try:
            found = as_numbers(cast("Any", self.content.get(key)), shape, key)
        except InputError:
            found = None
        if found is None or np.abs(found).max(initial=0.0) > LONGEST:
            raise self._refuse(key, f"numbers of at most {LONGEST:g}, {shape}")
        return found

    def rows(self, key: str, skeleton: Skeleton) -> dict[str, int]:
        """Return the rows of joints at ``key``, by role."""
        out: dict[str, int] = {}
        for role, joint in self.table(key).content.items():
            known = joint in skeleton.joint_names if isinstance(joint, str) else type(joint) is int
            if not known or (type(joint) is int and not 0 <= joint < len(skeleton)):
                raise self._refuse(key, f"a joint of {skeleton.name} for {role}")
            out[role] = skeleton.index(joint)
        return out


def _address(skeleton: Skeleton, row: int) -> str:
    """Return a joint as it is written to the file: by name, or by row if the name is not unique."""
    name = skeleton.joint_names[row]
    if skeleton.joint_names.count(name) == 1 and skeleton.knows(name) and _means(skeleton, name, row):
        return toml_text(name)
    return str(row)


def _means(skeleton: Skeleton, name: str, row: int) -> bool:
    """Return whether a name alone refers to the joint in a row."""
    try:
        return skeleton.index(name) == row
    except InputError:
        return False


def _numbers(values: Array) -> str:
    """Return an array as TOML text that stores its values exactly."""
    return f"[{', '.join(repr(value) for value in values.tolist())}]"
