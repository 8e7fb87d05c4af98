"""The bone on the floor below a body, as characters for engines have it: what it takes of the motion."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal, NamedTuple

import numpy as np

from synovia.errors import InputError
from synovia.model import Kind, Skeleton
from synovia.model.clip_tools.path import inverse
from synovia.model.geometry import Array, frames_to_transforms, matrix_to_quat, same_side
from synovia.model.pose import world_frames
from synovia.model.shapes.world import Ground
from synovia.model.tree import ancestors
from synovia.retargeting.body import Body

RootMotion = Literal["root", "hips", "none"]
_MODES: Final = ("root", "hips", "none")
_FLOOR: Final = 0.2  # of a leg: a bone above the hips in the tree that is nearer to the soles at rest is on the floor
_FLAT: Final = 0.3  # level part of where the hips face below which their own upward direction shows the heading
_STEP: Final = 0.2  # seconds before and after which a bone goes over from a step to the next
_BELOW: Final = 0.5  # of a leg: it is at least so far below the hips
_ROOT: Final = re.compile(r"(.*[:|])?root([ _.-]?(bone|motion))?([._]?\d+)?", re.IGNORECASE)  # not of armatures
_LEFT: Final = 1.0  # of a leg: hips that leave a bone so far behind on the floor do not take it along


def checked_root_motion(value: str) -> str:
    """Return what a root bone takes of the motion.

    Raises:
        InputError: If there is no such choice.
    """
    if value not in _MODES:
        raise InputError("root_motion", value=value, expected="'root', 'hips' or 'none'")
    return value


def root_bone(body: Body, added: int = 0) -> int | None:
    """Return the bone on the floor that carries the hips of a body, None without one.

    It is the one nearest to the hips that moves in the file. If none moves there, it is the first that has the name of
    a root, though the file has no clip that moves it.

    Args:
        body: The body.
        added: How many of its first joints were added to the skeleton of the file, such as a free root.
    """
    if not body.whole:
        return None
    hips, joints = body.roles["hips"], body.skeleton.joints
    height, floor = body.rest[:, 9:] @ body.basis[:, 1], body.lowest(body.rest)
    rows = [
        row
        for row in ancestors(body.skeleton.parents, hips)[1:]
        if row >= added
        and abs(height[row] - floor) < _FLOOR * body.leg
        and height[hips] - height[row] > _BELOW * body.leg
    ]
    turning = (Kind.BALL, Kind.FREE)
    moving = [row for row in rows if joints[row].kind in turning]
    named = [row for row in rows if joints[row].kind is Kind.FIXED and _ROOT.fullmatch(joints[row].name)]
    return next(iter(moving), named[-1] if named and joints[hips].kind in turning else None)


class OnFloor(NamedTuple):
    """What is known of where a bone on the floor goes.

    Args:
        fps: Frames per second.
        given: World frames (T, 12) of the bone; None to take path and heading of the hips.
        below: Returns the surface below points (T, 3) along a direction; None for a level floor at height 0.
    """

    fps: float
    given: Array | None = None
    below: Callable[[Array, Array], Ground] | None = None


class Moved(NamedTuple):
    """A body that moves with or without a bone on the floor.

    Args:
        skeleton: Its skeleton.
        q: Joint values (T, nq).
        way: The way over the ground that was taken out of them, as transforms (T, 4, 4); None if nothing was.
    """

    skeleton: Skeleton
    q: Array
    way: Array | None


def moving_root(body: Body, bone: int | None, q: Array, mode: str, floor: OnFloor) -> Moved:
    """Return the body whose hips move relative to a bone on the floor.

    Every joint from the hips on is where it was; with ``"none"``, it is so relative to a body that stays in its place.
    Joints above the bone are at rest; balls become fixed.

    Args:
        body: The body, which a free joint moves.
        bone: The bone; None for a body without one, which ``"none"`` keeps in its place.
        q: Joint values of the body.
        mode: ``"root"`` for a bone that takes path and heading, ``"hips"`` for one that stays, ``"none"`` for a body
            that stays in its place, too.
        floor: Where the bone goes.
    """
    skeleton, hips = body.skeleton, body.roles["hips"]
    world = world_frames(skeleton, q)
    there = frames_to_transforms(world[:, hips])
    ground = _at_floor(body, hips if bone is None else bone)
    given = None if floor.given is None else frames_to_transforms(floor.given)
    if given is not None and _goes_along(body, given, there):
        place = given
    else:
        place = _heading(body, there, ground)
        if floor.below is not None:
            heights = _heights(floor.below(there[:, :3, 3], body.basis[:, 1]), floor.fps)
            place[:, :3, 3] += heights[:, None] * body.basis[:, 1]
    way = place @ inverse(ground) if mode == "none" else None
    mover, parents = body.carrier if bone is None else bone, skeleton.parents
    if mover is None:
        return Moved(skeleton, q, None)
    joints, moves = list(skeleton.joints), dict[int, tuple[Array, Array]]()  # what carries a joint, and where it goes
    above, rest = ancestors(parents, mover)[1:], skeleton.rest_q
    if bone is not None:
        if way is not None:
            there = inverse(way) @ there
        if way is not None or mode == "hips":
            place = np.broadcast_to(ground, place.shape)
        carried = inverse(frames_to_transforms(world[:, bone])) @ frames_to_transforms(world[:, parents[hips]])
        base = frames_to_transforms(skeleton.rest_pose().frames)[above[0]] if above else np.eye(4)
        moves = {bone: (base, place), hips: (place @ carried, there)}
    elif way is not None:
        base = frames_to_transforms(world[:, above[0]]) if above else np.eye(4)
        moves = {mover: (base, inverse(way) @ frames_to_transforms(world[:, mover]))}
        above = [row for row in above if (q[:, skeleton.q_slice(row)] == rest[skeleton.q_slice(row)]).all()]
    for row in (*above, *moves):
        kind = joints[row].kind
        other = Kind.FREE if row in moves else Kind.FIXED if kind is Kind.BALL else kind
        if other is not kind:
            joints[row] = replace(joints[row], kind=other, limit=None, preferred=None, channels=None)
    free = skeleton.with_joints(joints)
    out = np.zeros((len(q), free.nq))
    for row in range(len(joints)):
        at, own = free.q_slice(row), skeleton.q_slice(row)
        if at.stop - at.start == own.stop - own.start:
            out[:, at] = rest[own] if row in above else q[:, own]
    for row, (carrier, wanted) in moves.items():
        local = inverse(carrier @ joints[row].rest) @ wanted
        at = free.q_slice(row)
        out[:, at.start : at.start + 3] = local[:, :3, 3]
        out[:, at.start + 3 : at.stop] = same_side(matrix_to_quat(local[:, :3, :3]))
    return Moved(free, out, way)


def without_added(body: Body, given: Skeleton) -> Body:
    """Return a body without the joints that were added before those of the given skeleton; they are at rest."""
    added = len(body.skeleton) - len(given)
    pairs = zip(given.joints, body.skeleton.joints[added:], strict=True)
    skeleton = given.with_joints(replace(moving, parent=own.parent, rest=own.rest) for own, moving in pairs)
    roles = {role: row - added for role, row in body.roles.items()}
    return Body(skeleton, roles, body.rest[added:], body.basis[:, 1], body.basis)


def _goes_along(body: Body, bone: Array, hips: Array) -> bool:
    """Return whether a bone (T, 4, 4) goes over the ground with the hips (T, 4, 4), which do not leave it behind."""
    away = hips[:, :3, 3] - bone[:, :3, 3]
    level = away - (away @ body.basis[:, 1])[:, None] * body.basis[:, 1]
    return bool(np.linalg.norm(level, axis=1).max() < _LEFT * body.leg)


def _heights(ground: Ground, fps: float) -> Array:
    """Return the heights (T,) of what is below the hips, where a step up or down takes some time."""
    heights = np.where(np.isfinite(ground.heights), ground.heights, 0.0)
    around = max(1, round(_STEP * fps))
    sums = np.cumsum(np.pad(heights, (around + 1, around), mode="edge"))
    return (sums[2 * around + 1 :] - sums[: -2 * around - 1]) / (2 * around + 1)


def _at_floor(body: Body, bone: int) -> Array:
    """Return the transform (4, 4) of a bone at rest, on the floor at height 0."""
    up, out = body.basis[:, 1], frames_to_transforms(body.rest[[bone]])[0]
    out[:3, 3] -= (out[:3, 3] @ up) * up
    return out


def _heading(body: Body, hips: Array, ground: Array) -> Array:
    """Return where a bone on the floor is below the hips, facing as they do, (T, 4, 4).

    Args:
        body: The body.
        hips: Transforms (T, 4, 4) of the hips.
        ground: The transform (4, 4) of the bone at rest on the floor.
    """
    left, up, ahead = body.basis.T
    row = body.roles["hips"]
    turn = hips[:, :3, :3] @ body.rest[row, :9].reshape(3, 3).T
    level = np.stack([left, ahead], axis=1)
    front, top = turn @ ahead, turn @ up
    steep = np.linalg.norm(front @ level, axis=1, keepdims=True) < _FLAT
    back = -np.sign(front @ up)[:, None] * top  # lying on the front, the trunk points ahead
    way = np.asarray(np.where(steep, back, front), float) @ level
    K = np.cross(up, np.eye(3)).T  # K v = up × v
    angle = np.arctan2(way[:, 0], way[:, 1])[:, None, None]
    spin = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)
    away = body.rest[row, 9:] - ground[:3, 3]
    out = np.tile(np.eye(4), (len(hips), 1, 1))
    out[:, :3, :3] = spin @ ground[:3, :3]
    place = hips[:, :3, 3] - spin @ away
    out[:, :3, 3] = place + ((ground[:3, 3] - place) @ up)[:, None] * up
    return out
