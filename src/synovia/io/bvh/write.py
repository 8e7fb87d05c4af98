"""Write motions as BVH files.

Joints from a BVH file are written with their own channels, in their own order. BVH has no rest rotations, and no axes
other than x, y and z. So other joints are written with their complete rotation relative to the parent, rest rotation
included. All joint positions and rotations stay the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from synovia.arguments import check_kind
from synovia.io.base import as_path, write_bytes
from synovia.io.bvh.read import row_groups
from synovia.io.bvh.text import CHANNELS
from synovia.io.nodes.euler import AXES, from_quat
from synovia.model import Joint, Kind, Skeleton
from synovia.model.geometry import Array, axis_vector, matrix_to_quat
from synovia.model.motion import Motion

_POSITIONS: Final = ("Xposition", "Yposition", "Zposition")
_ROTATIONS: Final = ("Zrotation", "Xrotation", "Yrotation")  # the order that most files use
_SAME: Final = 1e-12  # tolerance for an identity rest rotation and for an axis along x, y or z


@dataclass(slots=True)
class _Node:
    """A joint of the file.

    Args:
        name: Name of the joint.
        offset: OFFSET, length units.
        channels: Channels of the joint.
        end: Whether the joint is an end site.
        row: The last skeleton row of the joint.
        values: Values by channel, (T,) each; rotations in radians.
        quats: Rotation of the joint, (T, 4), if it has three rotation channels.
        below: First skeleton rows of its children.
    """

    name: str
    offset: Array
    channels: tuple[str, ...]
    end: bool = False
    row: int = -1
    values: dict[str, Array] = field(default_factory=dict[str, Array])
    quats: Array | None = None
    below: tuple[int, ...] = ()


def write_bvh(motion: Motion, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a motion as a BVH file.

    Euler angles do not jump from frame to frame. Lengths are in the unit of the skeleton. Joints below animated scale
    (``Motion.stretch``) get position channels. BVH cannot store limits, masses and names of tips, so these are left
    out.

    Args:
        motion: The motion, of a skeleton from any source.
        path: The file.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.

    Example:
        >>> import synovia as sy
        >>> sy.formats.write_bvh(sy.load_motion("walk.glb"), "walk.bvh")  # doctest: +SKIP
    """
    check_kind("motion", motion, Motion, "sy.load_motion(path) reads one")
    where = as_path(path)
    nodes = _nodes(motion)
    _fill_angles(nodes.values())
    lines = ["HIERARCHY"]
    columns = list(_hierarchy(motion.skeleton, nodes, lines))
    lines += ["MOTION", f"Frames: {len(motion)}", f"Frame Time: {1.0 / motion.fps:.17g}"]
    table = np.array(columns).T if columns else np.empty((len(motion), 0))
    lines += [" ".join([format(value, ".12g") for value in row]) for row in (table + 0.0).tolist()]  # + 0.0: no -0
    write_bytes(where, ("\n".join(lines) + "\n").encode(errors="replace"), force=force)


def _nodes(motion: Motion) -> dict[int, _Node]:
    """Return the joints of the file by their first skeleton row."""
    skeleton = motion.skeleton
    nodes: dict[int, _Node] = {}
    grouped: set[int] = set()
    moved = _moved(motion)
    for row, joint in enumerate(skeleton.joints):
        rows = _own_rows(skeleton, row) if joint.channels else []
        if rows and grouped.isdisjoint(rows) and moved.isdisjoint(rows):
            nodes[rows[0]] = _with_own_channels(motion, rows)
            nodes[rows[0]].row = row
            grouped.update(rows)
    frames: Array | None = None
    for row, joint in enumerate(skeleton.joints):
        if row in grouped:
            continue
        still = joint.kind is Kind.FIXED and _unturned(joint) and row not in moved
        above = skeleton.parents[row]
        end = joint.tip and joint.kind is Kind.FIXED and not skeleton.children[row] and above >= 0 and row not in moved
        if end or (still and joint.channels is not None):  # other fixed joints get channels, as most programs need them
            node = _Node(joint.name, joint.rest[:3, 3], (), end=end)
        else:
            frames = motion.frames() if frames is None else frames
            node = _baked(skeleton, row, frames, moved=row in moved)
        node.below = skeleton.children[row]
        node.row = row
        nodes[row] = node
    return nodes


def _moved(motion: Motion) -> set[int]:
    """Return the rows whose positions relative to their parents change because of animated scale above."""
    if motion.stretch is None:
        return set()
    scaled = np.any(motion.stretch != 1.0, axis=(0, 2))
    out: set[int] = set()
    for row, parent in enumerate(motion.skeleton.parents):
        if parent in out or (parent >= 0 and scaled[parent]):
            out.add(row)
    return out


def _unturned(joint: Joint) -> bool:
    """Return whether a joint has no rest rotation."""
    return bool(np.abs(joint.rest[:3, :3] - np.eye(3)).max() <= _SAME)


def _own_rows(skeleton: Skeleton, last: int) -> list[int]:
    """Return the rows that a row's BVH channels animate, the row itself last; empty if the channels do not fit."""
    joint = skeleton.joints[last]
    channels = joint.channels or ()
    if len(set(channels)) != len(channels) or not set(channels) <= set(CHANNELS):
        return []
    groups = row_groups(channels)
    rows = [last]
    while len(rows) < len(groups):
        above = skeleton.parents[rows[0]]
        if above < 0 or skeleton.children[above] != (rows[0],) or skeleton.joints[above].body != joint.body:
            return []
        rows.insert(0, above)
    for row, (kind, parts) in zip(rows, groups, strict=True):
        own = skeleton.joints[row]
        inner = row != rows[0] and bool(np.any(own.rest[:3, 3]))
        if own.kind is not kind or inner or not _unturned(own):
            return []
        axis = axis_vector(channels[parts[0]][0].lower())
        if kind in (Kind.SLIDE, Kind.HINGE) and np.abs(own.axis - axis).max() > _SAME:
            return []
    return rows


def _with_own_channels(motion: Motion, rows: list[int]) -> _Node:
    """Return the file joint for rows that came from a BVH file."""
    skeleton = motion.skeleton
    first, last = skeleton.joints[rows[0]], skeleton.joints[rows[-1]]
    offset = first.rest[:3, 3]
    name = last.name if last.body is None or len(rows) == 1 else last.body
    node = _Node(name, offset, last.channels or (), below=skeleton.children[rows[-1]])
    for row in rows:
        joint, q = skeleton.joints[row], motion.q[:, skeleton.q_slice(row)]
        if joint.kind is Kind.FREE:
            node.values.update({name: q[:, i] + offset[i] for i, name in enumerate(_POSITIONS)})
        elif joint.kind is Kind.SLIDE:
            i = int(np.argmax(joint.axis))
            node.values[_POSITIONS[i]] = q[:, 0] + offset[i]
        elif joint.kind is Kind.HINGE:
            node.values[f"{AXES[int(np.argmax(joint.axis))]}rotation"] = q[:, 0]
        if joint.kind in (Kind.BALL, Kind.FREE):
            node.quats = q[:, -4:]
    return node


def _baked(skeleton: Skeleton, row: int, frames: Array, *, moved: bool) -> _Node:
    """Return a file joint with the complete transform relative to its parent, from world frames (T, n, 12).

    Args:
        skeleton: The skeleton.
        row: The joint.
        frames: World frames of all joints over time.
        moved: Whether animated scale changes its position relative to its parent.
    """
    joint, parent = skeleton.joints[row], skeleton.parents[row]
    turn, p = frames[:, row, :9].reshape(-1, 3, 3), frames[:, row, 9:]
    if parent >= 0:
        back = np.swapaxes(frames[:, parent, :9].reshape(-1, 3, 3), 1, 2)
        turn, p = back @ turn, (back @ (p - frames[:, parent, 9:])[..., None])[..., 0]
    travels = parent < 0 or moved or joint.kind in (Kind.SLIDE, Kind.FREE)
    node = _Node(joint.name, joint.rest[:3, 3], (*_POSITIONS, *_ROTATIONS) if travels else _ROTATIONS)
    node.quats = matrix_to_quat(turn)
    if travels:
        node.values.update({name: p[:, i] for i, name in enumerate(_POSITIONS)})
    return node


def _fill_angles(nodes: Iterable[_Node]) -> None:
    """Compute the Euler angles of all joints with three rotation channels."""
    turned = [(node, node.quats) for node in nodes if node.quats is not None]
    if not turned:
        return
    names = [[name for name in node.channels if name.endswith("rotation")] for node, _ in turned]
    orders = np.array([[AXES.index(name[0]) for name in three] for three in names], np.intp)
    angles = from_quat(orders, np.stack([quats for _, quats in turned], axis=1))
    for i, ((node, _), three) in enumerate(zip(turned, names, strict=True)):
        node.values.update({name: angles[:, i, k] for k, name in enumerate(three)})


def _hierarchy(skeleton: Skeleton, nodes: dict[int, _Node], lines: list[str]) -> Iterable[Array]:
    """Append the lines of the hierarchy, and yield the columns of the motion in channel order, rotations in degrees."""
    roots = [row for row, parent in enumerate(skeleton.parents) if parent < 0]
    stack: list[tuple[int, int]] = [(row, 0) for row in reversed(roots)]
    while stack:
        row, depth = stack.pop()
        indent = "\t" * depth
        if row < 0:
            lines.append(indent + "}")
            continue
        node = nodes[row]
        name = re.sub(r"[{}\r\n]", "_", node.name).strip() or "joint"  # braces and line breaks would end the name
        kind = "End Site" if node.end else f"{'JOINT' if depth else 'ROOT'} {name}"
        lines += [indent + kind, indent + "{", f"{indent}\tOFFSET " + " ".join(f"{v + 0.0:.12g}" for v in node.offset)]
        if not node.end:
            lines.append(f"{indent}\tCHANNELS " + " ".join([str(len(node.channels)), *node.channels]))
        for channel in node.channels:
            yield np.degrees(node.values[channel]) if channel.endswith("rotation") else node.values[channel]
        stack.append((-1, depth))
        stack += [(child, depth + 1) for child in reversed(node.below)]


def rows_in_order(motion: Motion) -> list[int]:
    """Return the skeleton row of each joint of a written file, end sites included, in the order of the file."""
    skeleton, nodes = motion.skeleton, _nodes(motion)
    order: list[int] = []
    stack = [row for row, parent in enumerate(skeleton.parents) if parent < 0][::-1]
    while stack:
        node = nodes[stack.pop()]
        order.append(node.row)
        stack += reversed(node.below)
    return order
