"""VRM animations (``.vrma``): the clip of a humanoid, for any VRM character.

The file is a GLB whose extension maps nodes to the bones of a humanoid. Its rest pose is a T-pose that faces +z,
with y up. It is read like any glTF, with its own skeleton and the roles of the bones.

Only joints with a role are written. The T-pose of the file, in which all rotations are 0, is made from the rest pose of
the skeleton, which must stand upright. The smallest rotations C bring arms to the sides and legs down; hands rotate
with their arms, and other bones stay as they are. With the world rotations W of a bone at time t and at rest, its
rotation from the T-pose is ``W(t) W(0)⁻¹ C⁻¹``, the product of the local rotations in the file down to the bone. Only
the hips translate. Joint positions in the file are exact if no joint without a role bends between them.

Players multiply the position of the hips in the clip by a ratio of heights above y = 0: the height of the character's
hips over that of the hips in the T-pose. So the T-pose stands at y = 0, also if the rest pose of the skeleton does not.
A clip whose feet are below y = 0 in nearly all frames, as with hips that stay at the origin, is lifted onto the floor.

References:
    VRM Consortium, *VRMC_vrm_animation-1.0*, and *VRMC_vrm-1.0*, humanoid bones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.errors import InputError
from synovia.io.base import Contents, Format, Shown, as_path, as_utf8
from synovia.io.gltf import FORMAT as GLTF
from synovia.io.gltf.animation import WRITER, read_animations
from synovia.io.gltf.container import MAGIC, linked_files, read_document
from synovia.io.gltf.fresh import axes_frame
from synovia.io.gltf.scene import read_scene
from synovia.io.gltf.vrm import ANIMATION, bone_of
from synovia.io.gltf.write import NewClip, write_new
from synovia.io.nodes.lengths import unit_of
from synovia.io.nodes.tree import Scene, node_places
from synovia.model import Skeleton
from synovia.model.anatomy.axes import faced_axis
from synovia.model.anatomy.names import PERSON, SIDES
from synovia.model.geometry import Array, axis_vector, matrix_to_quat, quat_to_matrix, same_side, unit
from synovia.model.motion import Motion
from synovia.text import listed

_CARRY: Final = "retarget the clip to a humanoid that stands at rest: synovia retarget clip.bvh humanoid -o clip.vrma"
_STAND: Final = "sy.skeletons.stand_at_rest(motion) finds a rest pose that stands, and so does synovia convert"
_SOLE: Final = 0.15  # fraction of the hips' height: foot joints up to this height count as on the floor
_BELOW: Final = 0.1  # fraction of the hips' height by which feet may be below the floor
_LOWEST: Final = 0.02  # quantile of heights over time that serves as the lowest height; robust against outliers
_NO_LEGS: Final = 1.4  # assumed ratio of the hips' height to the distance from hips to head, for bodies without legs
_HIGH: Final = 1e-3  # relative difference of the hips' heights: smaller ones get no note
_UPRIGHT: Final = 45.0  # degrees: largest angle of trunk and legs from vertical at rest
_SHORT: Final = 1e-6  # fraction of the body's size; a shorter bone counts as without direction
_NEXT: Final = {"upper_arm": "lower_arm", "lower_arm": "hand", "upper_leg": "lower_leg", "lower_leg": "foot"}
_TOPS: Final = ("head", "neck", "upper_chest", "chest", "left_upper_arm")  # upper end of the trunk: the first one found
_WITH_ARM: Final = ("hand", *(f"{f}_{k}" for f in ("thumb", "index", "middle", "ring", "little") for k in (1, 2, 3)))
_NEEDED: Final = (  # bones that every VRM character has
    "hips", "spine", "head",
    *(f"{s}_{part}" for s in SIDES for part in ("upper_arm", "lower_arm", "hand", "upper_leg", "lower_leg", "foot")),
)  # fmt: skip


class _Bone(NamedTuple):
    """A bone of the file.

    Args:
        role: Role of the bone.
        row: The joint that has the role; its position is that of the bone.
        turns: The joint whose rotation is that of the bone; see ``_turning``.
        parent: Index of the parent bone, -1 for the hips.
    """

    role: str
    row: int
    turns: int
    parent: int


class _TPose(NamedTuple):
    """The T-pose of a file, in the world of the file.

    Args:
        bones: The bones.
        turn: Rotation from the world of the skeleton, (3, 3).
        meters: Metres in one length unit of the skeleton.
        rotations: Rotation of each bone from rest to the T-pose.
        offsets: Position of each bone relative to its parent bone, (n, 3); of the hips relative to the origin.
        lift: Metres by which the clip is lifted.
        notes: Sentences about the unit, and about the lift.
    """

    bones: list[_Bone]
    turn: Array
    meters: float
    rotations: list[Array]
    offsets: Array
    lift: float
    notes: tuple[str, ...]


def _read(path: Path) -> Contents:
    """Read a file, whose main motion is its first clip by default."""
    contents = GLTF.read(path)
    return contents if contents.shown is not None else contents._replace(shown=0)


def write_vrma(motion: Motion, path: str | os.PathLike[str], *, force: bool = False) -> tuple[str, ...]:
    """Write the clip of a humanoid.

    Args:
        motion: The clip; its skeleton has the roles of a humanoid, at least the hips.
        path: The file.
        force: Whether an existing file may be replaced.

    Returns:
        A sentence about the unit, if it was not known.

    Raises:
        FileError: If the file cannot be written, or exists and ``force`` is not set.
        InputError: If the motion has no frames, or if its skeleton is not a humanoid, has unknown up and forward axes,
            or does not stand upright at rest.
    """
    target = as_path(path)
    if not len(motion):
        raise InputError("motion has no frames", where=str(target), expected="at least one")
    as_utf8(motion.name, str(target))
    pose = _t_pose(motion, str(target))
    bones, turn = pose.bones, pose.turn
    nodes: list[dict[str, Any]] = [
        {"name": bone_of(bone.role), "translation": offset}
        for bone, offset in zip(bones, pose.offsets.tolist(), strict=True)
    ]
    for number, bone in enumerate(bones):
        if bone.parent >= 0:
            nodes[bone.parent].setdefault("children", []).append(number)
    table = {bone_of(bone.role): {"node": number} for number, bone in enumerate(bones)}
    content: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": WRITER}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": nodes,
        "extensionsUsed": [ANIMATION],
        "extensions": {ANIMATION: {"specVersion": "1.0", "humanoid": {"humanBones": table}}},
    }  # fmt: skip
    clip = NewClip(content, motion.name, motion.times, 0)
    rest, frames = motion.skeleton.rest_pose().frames, motion.frames()
    worlds: list[Array] = []
    for number, bone in enumerate(bones):
        own = frames[:, bone.turns, :9].reshape(-1, 3, 3)
        at_rest = rest[bone.turns, :9].reshape(3, 3)
        worlds.append(turn @ own @ (at_rest.T @ turn.T @ pose.rotations[number].T))
        local = worlds[-1] if bone.parent < 0 else np.swapaxes(worlds[bone.parent], 1, 2) @ worlds[-1]
        clip.add_track(number, "rotation", same_side(matrix_to_quat(local)))
    clip.add_track(0, "translation", pose.meters * frames[:, bones[0].row, 9:] @ turn.T + (0.0, pose.lift, 0.0))
    write_new(content, bytes(clip.data), target, force=force)
    return pose.notes


def _t_pose(motion: Motion, where: str) -> _TPose:
    """Return the T-pose that the file of a clip gets.

    Raises:
        InputError: If the skeleton is not a humanoid, or does not stand at rest.
    """
    body = motion.skeleton
    bones = _bones(body, where)
    meters, notes = unit_of(body, 1.0)
    turn = _standing(body, {bone.role: bone.row for bone in bones}, where)
    places = meters * body.rest_pose().positions @ turn.T
    rotations = _to_t_pose(bones, places, where)
    offsets, there = np.empty((len(bones), 3)), np.empty((len(bones), 3))
    for number, bone in enumerate(bones):
        above = bone.parent
        offsets[number] = there[number] = places[bone.row]
        if above >= 0:
            offsets[number] = rotations[above] @ (places[bone.row] - places[bones[above].row])
            there[number] = there[above] + offsets[number]
    height, lift = _above_floor(motion, bones, meters * turn, rotations, there)
    offsets[0, 1] = height
    if lift:
        notes += (f"The clip is below the floor of the file, y = 0: it was lifted by {lift:.3g} m.",)
    return _TPose(bones, turn, meters, rotations, offsets, lift, notes)


def _above_floor(
    motion: Motion, bones: list[_Bone], world: Array, rotations: list[Array], there: Array
) -> tuple[float, float]:
    """Return the height of the hips in a T-pose that stands on the floor, and the lift that the clip needs, metres.

    The height stays as it is if the feet of the T-pose are near the floor. Otherwise the lowest joint of the feet gets
    its median height in the clip, because the sole is below every joint; or 0 if that height is implausible.

    Args:
        motion: The clip.
        bones: The bones.
        world: Rotation times unit factor from the world of the skeleton to that of the file, (3, 3).
        rotations: Rotation of each bone from rest to the T-pose.
        there: Positions of the bones in the T-pose, (n, 3).
    """
    body, hips = motion.skeleton, float(there[0, 1])
    feet = [number for number, bone in enumerate(bones) if bone.role.endswith(("_foot", "_toes"))]
    feet = feet or [number for number, bone in enumerate(bones) if bone.role.endswith("_leg")]
    if not feet:
        top = next((number for role in _TOPS for number, bone in enumerate(bones) if bone.role == role), 0)
        height = _NO_LEGS * float(np.linalg.norm(there[top] - there[0]))
        return (hips, 0.0) if hips >= 0.5 * height else (height, height - hips)
    points = {row: number for number in feet for row in _with_tips(body, bones[number].row)}
    rest = body.rest_pose().positions @ world.T
    lowest = min(
        float(there[number, 1] + rotations[number][1] @ (rest[row] - rest[bones[number].row]))
        for row, number in points.items()
    )
    tall = hips - lowest
    low = (motion.positions()[:, list(points)] @ world[1]).min(1)
    first, middle, last = (float(part) for part in np.quantile(low, (_LOWEST, 0.5, 1.0 - _LOWEST)))
    if not -_BELOW * tall <= lowest <= _SOLE * tall:
        hips = tall + (middle if 0.0 <= middle <= _SOLE * tall else 0.0)
    return hips, hips - tall - first if last < -_BELOW * tall else 0.0


def _with_tips(body: Skeleton, row: int) -> list[int]:
    """Return a joint and its descendants, except descendants with a role and all joints below these."""
    known = set(body.role_rows.values())
    out, todo = [row], list(body.children[row])
    while todo:
        at = todo.pop()
        if at not in known:
            out.append(at)
            todo += body.children[at]
    return out


def _bones(body: Skeleton, where: str) -> list[_Bone]:
    """Return the bones of a humanoid, the hips first, parents before their children.

    Raises:
        InputError: If the body has no hips.
    """
    rows = {role: row for role, row in body.role_rows.items() if role in PERSON}
    if "hips" not in rows:
        raise InputError("a VRM animation needs a humanoid", where=where, value=body.name, hint=_CARRY)
    of_row = {row: role for role, row in sorted(rows.items(), key=lambda item: item[0] != "hips")}
    below = {row: role for row, role in of_row.items() if row == rows["hips"] or rows["hips"] in _above(body, row)}
    order = sorted(below, key=lambda row: (len(list(_above(body, row))), row))
    bones: list[_Bone] = []
    number_of: dict[int, int] = {}
    for row in order:
        parent = next((number_of[above] for above in _above(body, row) if above in number_of), -1)
        number_of[row] = len(bones)
        bones.append(_Bone(below[row], row, _turning(body, rows, below[row]), parent))
    return bones


def _above(body: Skeleton, row: int) -> Iterator[int]:
    """Yield the ancestors of a joint, the nearest first."""
    while (row := body.parents[row]) >= 0:
        yield row


def _turning(body: Skeleton, rows: dict[str, int], role: str) -> int:
    """Return the joint that rotates a bone: the joint with the longest link on the chain to the limb's next bone.

    Each joint of a robot rotates about one axis, and any of the joints of a limb may have the role.
    """
    side, _, part = role.partition("_")
    at = rows.get(f"{side}_{_NEXT[part]}", -1) if part in _NEXT else -1
    lengths: dict[int, float] = {}
    while at >= 0 and at != rows[role]:
        lengths[body.parents[at]] = float(body.lengths[at])
        at = body.parents[at]
    return max(lengths, key=lambda row: lengths[row]) if at == rows[role] and lengths else rows[role]


def _standing(body: Skeleton, rows: dict[str, int], where: str) -> Array:
    """Return the rotation from the world of a skeleton to that of the file, (3, 3): y up, z forward.

    If the skeleton has no upward axis, the axis nearest to the direction of the trunk at rest is used.

    Raises:
        InputError: If the upward or the forward axis is unknown.
    """
    places = {role: np.array(body.rest_pose().positions[row]) for role, row in rows.items()}
    up = body.up
    top = next((role for role in _TOPS if role in rows), None)
    if up is None and top is not None:
        along = places[top] - places["hips"]
        best = int(np.abs(along).argmax())
        up = ("-" if along[best] < 0.0 else "") + "xyz"[best]
    ahead = body.forward if up is None or up == body.up else faced_axis(places, axis_vector(up))
    if up is None or ahead is None:
        hint = f"the rest pose does not show them; {_STAND}"
        raise InputError("a VRM animation needs a body whose up and forward axes are known", where=where, hint=hint)
    return axes_frame(up, ahead, 1.0)[:3, :3]


def _to_t_pose(bones: list[_Bone], places: Array, where: str) -> list[Array]:
    """Return the rotation of each bone from rest to a T-pose, in the world of the file.

    Args:
        bones: The bones.
        places: Positions of all joints at rest, in the world of the file, (n, 3).
        where: The file, for the message.

    Raises:
        InputError: If trunk or legs are not upright at rest.
    """
    rows = {bone.role: bone.row for bone in bones}
    size = float(np.ptp(places, axis=0).max())
    top = next((rows[role] for role in _TOPS if role in rows), None)
    if top is not None:
        _check_upright("trunk", places[top] - places[rows["hips"]], 1.0, size, where)
    turns: dict[str, Array] = {}
    for side, x in (("left", 1.0), ("right", -1.0)):
        for part, after in _NEXT.items():
            start, end = rows.get(f"{side}_{part}"), rows.get(f"{side}_{after}")
            along = np.zeros(3) if start is None or end is None else places[end] - places[start]
            leg = part.endswith("leg")
            if leg:
                _check_upright(f"{side} leg", along, -1.0, size, where)
            if np.linalg.norm(along) > _SHORT * size:
                aim = np.array((0.0, -1.0, 0.0) if leg else (x, 0.0, 0.0))
                turns[f"{side}_{part}"] = _smallest(unit(along), aim)
        arm = turns.get(f"{side}_lower_arm", turns.get(f"{side}_upper_arm", np.eye(3)))
        turns |= {f"{side}_{part}": arm for part in _WITH_ARM}
    return [turns.get(bone.role, np.eye(3)) for bone in bones]


def _smallest(a: Array, b: Array) -> Array:
    """Return the smallest rotation from one unit vector to another, (3, 3); a rotation by 180° is about z or y."""
    axis, cosine = np.cross(a, b), float(a @ b)
    if cosine < -1.0 + 1e-12:
        axis = (
            np.array((0.0, 0.0, 1.0)) if abs(a[2]) < abs(a[1]) or abs(a[2]) < abs(a[0]) else np.array((0.0, 1.0, 0.0))
        )
        return quat_to_matrix(np.append(unit(axis - a * (a @ axis)), 0.0))
    quat = np.append(axis, 1.0 + cosine)
    return quat_to_matrix(quat / np.linalg.norm(quat))


def _check_upright(what: str, along: Array, sign: float, size: float, where: str) -> None:
    """Raise an error if a part of the body is not upright at rest; ignore parts without length."""
    length = float(np.linalg.norm(along))
    angle = np.degrees(np.arccos(np.clip(sign * along[1] / length, -1.0, 1.0))) if length > _SHORT * size else 0.0
    if angle > _UPRIGHT:
        raise InputError(
            f"a VRM animation needs a body that stands at rest, and its {what} is {angle:.0f}° from vertical",
            where=where, hint=_STAND,
        )  # fmt: skip


def _lacks(motion: Motion) -> list[str]:
    """Return sentences about parts of a clip that the file does not hold."""
    roles = {role: row for role, row in motion.skeleton.role_rows.items() if role in PERSON}
    out: list[str] = []
    if missing := [bone_of(role) for role in _NEEDED if role not in roles]:
        out.append(f"Bones that every VRM character has are missing: {listed(missing)}.")
    body = motion.skeleton
    columns = {row: motion.q[:, body.q_slice(row)] for row in range(len(body)) if row not in roles.values()}
    moving = [body.joint_names[row] for row, values in columns.items() if values.size and np.ptp(values, axis=0).any()]
    if moving:
        out.append(f"Joints without a role are not in the file: {listed(moving)}.")
    return out


def _shown(path: Path, motion: Motion) -> Shown:
    """Return the positions of the joints with a role in a file, as players show them."""
    document = read_document(path)
    scene = read_scene(document)
    (clip,) = read_animations(document, scene.row_of)
    times = np.unique(np.concatenate([track.times for track in clip.tracks.values()]))
    local = {key: track.sample(times) for key, track in clip.tracks.items()}
    row_of = {role: row for row, role in scene.roles.items()}
    rows = {role: row for role, row in motion.skeleton.role_rows.items() if role in row_of}
    pose = _t_pose(motion, str(path))
    meters = motion.skeleton.meters_per_unit or _meters(pose.bones, motion.skeleton, scene, row_of)
    scale = meters / pose.meters
    hips, wanted = float(node_places(scene, {}, 1)[0, row_of["hips"], 1]), scale * float(pose.offsets[0, 1])
    problems: list[str] = []
    if abs(hips - wanted) > _HIGH * abs(wanted):
        problems.append(
            f"The hips are {hips:.3g} m high at rest instead of {wanted:.3g} m; players divide heights by it."
        )
    places = node_places(scene, local, len(times))[:, [row_of[role] for role in rows]] - (0.0, scale * pose.lift, 0.0)
    return Shown(list(rows.values()), places @ pose.turn / meters, times, tuple(problems))


def _meters(bones: list[_Bone], body: Skeleton, scene: Scene, row_of: dict[str, int]) -> float:
    """Return an estimate of the unit of a body, metres, from the lengths of its bones in a file."""
    own, shown = body.rest_pose().positions, node_places(scene, {}, 1)[0]
    lengths = np.zeros(2)
    for bone in bones:
        if bone.parent >= 0 and bone.role in row_of and (above := bones[bone.parent]).role in row_of:
            lengths += [
                np.linalg.norm(shown[row_of[bone.role]] - shown[row_of[above.role]]),
                np.linalg.norm(own[bone.row] - own[above.row]),
            ]
    return float(lengths[0] / lengths[1]) if lengths.all() else 1.0


FORMAT: Final = Format(
    name="VRM animation",
    extensions=(".vrma",),
    looks_like=lambda head: head.startswith(MAGIC) and ANIMATION.encode() in head,
    read=_read,
    write=write_vrma,
    holds_motions=True,
    stands=True,
    companions=linked_files,
    lacks=_lacks,
    shown=_shown,
    keeps="bones with a role, on a T-pose: rotations, and the path of the hips",
)
