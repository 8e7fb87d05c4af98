"""The bone on the floor below a body, as characters for engines have it: what it takes of the motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal, NamedTuple

import numpy as np

from synovia.errors import InputError
from synovia.model import Kind, Skeleton
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

    Args:
        body: The body.
        added: How many of its first joints were added to the skeleton of the file, such as a free root.
    """
    if not body.whole:
        return None
    hips, joints = body.roles["hips"], body.skeleton.joints
    height, floor = body.rest[:, 9:] @ body.basis[:, 1], body.lowest(body.rest)
    for row in ancestors(body.skeleton.parents, hips)[1:]:
        near = abs(height[row] - floor) < _FLOOR * body.leg and height[hips] - height[row] > _BELOW * body.leg
        if near and row >= added and joints[row].kind in (Kind.BALL, Kind.FREE):
            return row
    return None


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


def moving_root(body: Body, bone: int, q: Array, mode: str, floor: OnFloor) -> tuple[Skeleton, Array]:
    """Return the skeleton in which the hips move relative to a bone on the floor, and joint values (T, nq) of it.

    Every joint from the hips on is where it was; with ``"none"``, it is so relative to a body that stays in its place.

    Args:
        body: The body, whose free joint at or above the bone moves it.
        bone: The bone.
        q: Joint values of the body.
        mode: ``"root"`` for a bone that takes path and heading, ``"hips"`` for one that stays, ``"none"`` for a body
            that stays in its place, too.
        floor: Where the bone goes.
    """
    skeleton, hips = body.skeleton, body.roles["hips"]
    parents = skeleton.parents
    mover = next((row for row in ancestors(parents, bone) if skeleton.joints[row].kind is Kind.FREE), bone)
    above = parents[hips]
    world = world_frames(skeleton, q)[:, [mover, bone, above, hips]]
    moved, boned, carried, there = (frames_to_transforms(world[:, k]) for k in range(4))
    ground = _at_floor(body, bone)
    place = _heading(body, bone, there, ground) if floor.given is None else frames_to_transforms(floor.given)
    if floor.below is not None and floor.given is None:
        place[:, :3, 3] += (
            _heights(floor.below(there[:, :3, 3], body.basis[:, 1]), floor.fps)[:, None] * body.basis[:, 1]
        )
    if mode == "none":
        there = ground @ np.linalg.inv(place) @ there
    if mode != "root":
        place = np.broadcast_to(ground, place.shape)
    joints = list(skeleton.joints)
    for row in {mover, hips}:
        if joints[row].kind is not Kind.FREE:
            joints[row] = replace(joints[row], kind=Kind.FREE, limit=None, preferred=None, channels=None)
    free = skeleton.with_joints(joints)
    out = np.zeros((len(q), free.nq))
    for row in range(len(joints)):
        at, own = free.q_slice(row), skeleton.q_slice(row)
        out[:, at.stop - (own.stop - own.start) : at.stop] = q[:, own]
    top, before = parents[mover], np.linalg.inv(moved)
    base = np.eye(4) if top < 0 else frames_to_transforms(world_frames(skeleton, q[:1])[:, top])[0]
    to = place @ np.linalg.inv(boned) @ moved
    for row, carrier, wanted in ((mover, base, to), (hips, to @ before @ carried, there)):
        local = np.linalg.inv(carrier @ joints[row].rest) @ wanted
        at = free.q_slice(row)
        out[:, at.start : at.start + 3] = local[:, :3, 3]
        out[:, at.start + 3 : at.stop] = same_side(matrix_to_quat(local[:, :3, :3]))
    return free, out


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


def _heading(body: Body, bone: int, hips: Array, ground: Array) -> Array:
    """Return where a bone on the floor is below the hips, facing as they do, (T, 4, 4).

    Args:
        body: The body.
        bone: The bone.
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
    away = body.rest[row, 9:] - body.rest[bone, 9:]
    out = np.tile(np.eye(4), (len(hips), 1, 1))
    out[:, :3, :3] = spin @ ground[:3, :3]
    place = hips[:, :3, 3] - spin @ away
    out[:, :3, 3] = place + ((ground[:3, 3] - place) @ up)[:, None] * up
    return out
