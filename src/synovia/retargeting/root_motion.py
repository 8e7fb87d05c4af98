"""The root bone on the floor that characters for game engines have: what it takes of the motion."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import numpy as np

from synovia.errors import InputError
from synovia.model import Kind, Pose, Skeleton
from synovia.model.clip_tools.path import inverse
from synovia.model.geometry import Array, frames_to_transforms, matrix_to_quat, same_side
from synovia.model.pose import world_frames
from synovia.model.shapes.world import Ground
from synovia.model.tree import ancestors
from synovia.retargeting.body import Body

RootMotion = Literal["root", "hips", "none"]
_MODES: Final = ("root", "hips", "none")
_FLOOR: Final = 0.2  # leg lengths: a bone above the hips in the tree is on the floor if at most this far from the soles
_FLAT: Final = 0.3  # level part of where the hips face below which their own upward direction shows the heading
_STEP: Final = 0.2  # seconds before and after a step in which the bone changes its height
_BELOW: Final = 0.5  # leg lengths: the bone is at least this far below the hips
_ROOT: Final = re.compile(r"(.*[:|])?root([ _.-]?(bone|motion))?([._]?\d+)?", re.IGNORECASE)  # not "Armature"
_LEFT: Final = 1.0  # leg lengths: if hips leave a bone farther behind on the floor, the bone does not move with them


def checked_root_motion(value: str) -> str:
    """Check the argument ``root_motion``, and return it.

    Raises:
        InputError: If the value is not one of the choices.
    """
    if value not in _MODES:
        raise InputError("root_motion", value=value, expected="'root', 'hips' or 'none'")
    return value


def root_bone(body: Body, added: int = 0) -> int | None:
    """Return the row of the bone on the floor that carries the hips of a body; None without one.

    It is the bone nearest to the hips that clips of the file move. If clips move none, it is the topmost fixed joint
    with the name of a root.

    Args:
        body: The body.
        added: Number of joints at the front that were added to the file's skeleton, such as a free root.
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
    """Where a bone on the floor goes.

    Args:
        fps: Frames per second.
        given: World frames of the bone, (T, 12); None to use path and heading of the hips.
        below: A function that returns the surface below points (T, 3) along a direction; None for a floor at height 0.
    """

    fps: float
    given: Array | None = None
    below: Callable[[Array, Array], Ground] | None = None


class RootMover:
    """Moves the hips of a body relative to a bone on the floor, in a clip or one pose at a time.

    Joints from the hips on keep their world poses; with ``"none"``, they keep them relative to a body that stays in
    place. Joints above the bone are at rest, and balls among them become fixed.

    Args:
        body: The body; a free joint moves it.
        bone: Row of the bone; None for a body without one, which only ``"none"`` changes.
        mode: ``"root"`` for a bone that takes path and heading, ``"hips"`` for a bone that stays, ``"none"`` for a bone
            and body that stay in place.

    Attributes:
        skeleton: The skeleton of the result.
    """

    def __init__(self, body: Body, bone: int | None, mode: str) -> None:
        """Make the joints that will move free."""
        self._body, self._bone, self._mode = body, bone, mode
        of_body = body.carrier if mode == "none" else None
        self._mover = mover = of_body if bone is None else bone
        self.skeleton = skeleton = body.skeleton
        self._last: Array | None = None
        self._along = True  # whether a given bone has moved with the hips so far
        if mover is None:
            return
        self._above, rest = ancestors(skeleton.parents, mover)[1:], skeleton.rest_pose().frames
        self._base = frames_to_transforms(rest)[self._above[0]] if self._above else np.eye(4)
        moves = [mover] if bone is None else [mover, body.roles["hips"]]
        self.skeleton = free = _freed(skeleton, tuple(moves), tuple(self._above))
        slices = [(free.q_slice(row), skeleton.q_slice(row), row) for row in range(len(free)) if row not in moves]
        kept = [(at, own, row) for at, own, row in slices if at.stop - at.start == own.stop - own.start]
        self._start = np.zeros(free.nq)
        for at, own, row in kept:
            if row in self._above:
                self._start[at] = skeleton.rest_q[own]
        pairs = [(at, own) for at, own, row in kept if row not in self._above]
        self._to = np.array([k for at, _ in pairs for k in range(at.start, at.stop)], np.intp)
        self._of = np.array([k for _, own in pairs for k in range(own.start, own.stop)], np.intp)

    def reset(self) -> None:
        """Discard the previous pose."""
        self._last, self._along = None, True

    def whole(self, pose: Pose) -> Array:
        """Return joint values (nq,) of the body, with all motion in its free joint, for a pose of the result."""
        body, skeleton = self._body, self._body.skeleton
        q = skeleton.rest_q.copy()
        if self._mover is None or body.carrier is None:
            return pose.inside[0]
        q[self._of] = pose.inside[0][self._to]
        hips, carrier, at = body.roles["hips"], body.carrier, skeleton.q_slice(body.carrier)
        rest = frames_to_transforms(world_frames(skeleton, q[None])[0])
        above = skeleton.parents[carrier]
        joint = skeleton.joints[carrier].rest if above < 0 else rest[above] @ skeleton.joints[carrier].rest
        local = inverse(joint) @ pose.transform(hips) @ inverse(rest[hips]) @ rest[carrier]
        q[at] = np.concatenate([local[:3, 3], matrix_to_quat(local[:3, :3])])
        return q

    def moved(self, q: Array, world: Array, floor: OnFloor) -> tuple[Array, Array | None]:
        """Return joint values (T, nq) of consecutive poses, and the path that was taken out of them.

        Args:
            q: Joint values of the body, (T, nq).
            world: World frames of the body, (T, n, 12).
            floor: Where the bone goes.

        Returns:
            Joint values of the result, and the path as transforms (T, 4, 4); None if no path was taken out.
        """
        body, bone, mover = self._body, self._bone, self._mover
        if mover is None:
            return q, None
        hips, parents = body.roles["hips"], body.skeleton.parents
        there = frames_to_transforms(world[:, hips])
        ground = _at_floor(body, hips if bone is None else bone)
        given = None if floor.given is None else frames_to_transforms(floor.given)
        self._along = self._along and (given is None or _goes_along(body, given, there))
        if given is not None and self._along:
            place = given
        else:
            place = _heading(body, there, ground)
            if floor.below is not None:
                heights = _heights(floor.below(there[:, :3, 3], body.basis[:, 1]), floor.fps)
                place[:, :3, 3] += heights[:, None] * body.basis[:, 1]
        way = place @ inverse(ground) if self._mode == "none" else None
        moves: dict[int, tuple[Array, Array]] = {}  # for each joint: frames of its carrier, and its target frames
        if bone is not None:
            if way is not None:
                there = inverse(way) @ there
            if way is not None or self._mode == "hips":
                place = np.broadcast_to(ground, place.shape)
            carried = inverse(frames_to_transforms(world[:, bone])) @ frames_to_transforms(world[:, parents[hips]])
            moves = {bone: (self._base, place), hips: (place @ carried, there)}
        elif way is not None:
            moves = {mover: (self._base, inverse(way) @ frames_to_transforms(world[:, mover]))}
        out = np.tile(self._start, (len(q), 1))
        out[:, self._to] = q[:, self._of]
        for row, (carrier, wanted) in moves.items():
            local = inverse(carrier @ body.skeleton.joints[row].rest) @ wanted
            at = self.skeleton.q_slice(row)
            turns = matrix_to_quat(local[:, :3, :3])
            if self._last is not None and turns[0] @ self._last[at][3:] < 0.0:
                turns[0] = -turns[0]
            out[:, at] = np.concatenate([local[:, :3, 3], same_side(turns)], axis=1)
        self._last = out[-1]
        return out, way


@lru_cache(maxsize=8)
def _freed(skeleton: Skeleton, free: tuple[int, ...], above: tuple[int, ...]) -> Skeleton:
    """Return a skeleton in which given joints are free, and balls above them fixed; the last results are cached."""
    joints = list(skeleton.joints)
    for row in (*above, *free):
        kind = joints[row].kind
        other = Kind.FREE if row in free else Kind.FIXED if kind is Kind.BALL else kind
        if other is not kind:
            joints[row] = replace(joints[row], kind=other, limit=None, preferred=None, channels=None)
    return skeleton.with_joints(joints)


def without_added(body: Body, given: Skeleton) -> Body:
    """Return a body without the joints that were added above the given skeleton; these must be at rest."""
    added = len(body.skeleton) - len(given)
    pairs = zip(given.joints, body.skeleton.joints[added:], strict=True)
    skeleton = given.with_joints(replace(moving, parent=own.parent, rest=own.rest) for own, moving in pairs)
    roles = {role: row - added for role, row in body.roles.items()}
    return Body(skeleton, roles, body.rest[added:], body.basis[:, 1], body.basis)


def _goes_along(body: Body, bone: Array, hips: Array) -> bool:
    """Return whether the hips (T, 4, 4) never leave a bone (T, 4, 4) far behind on the ground."""
    away = hips[:, :3, 3] - bone[:, :3, 3]
    level = away - (away @ body.basis[:, 1])[:, None] * body.basis[:, 1]
    return bool(np.linalg.norm(level, axis=1).max() < _LEFT * body.leg)


def _heights(ground: Ground, fps: float) -> Array:
    """Return the heights of the ground below the hips, (T,), averaged over time so that steps become ramps."""
    heights = np.where(np.isfinite(ground.heights), ground.heights, 0.0)
    around = max(1, round(_STEP * fps))
    sums = np.cumsum(np.pad(heights, (around + 1, around), mode="edge"))
    return (sums[2 * around + 1 :] - sums[: -2 * around - 1]) / (2 * around + 1)


def _at_floor(body: Body, bone: int) -> Array:
    """Return the transform (4, 4) of a bone at rest, moved vertically to height 0."""
    up, out = body.basis[:, 1], frames_to_transforms(body.rest[[bone]])[0]
    out[:3, 3] -= (out[:3, 3] @ up) * up
    return out


def _heading(body: Body, hips: Array, ground: Array) -> Array:
    """Return transforms (T, 4, 4) of a bone on the floor that is below the hips and faces as they do.

    Args:
        body: The body.
        hips: World transforms of the hips, (T, 4, 4).
        ground: Transform of the bone at rest on the floor, (4, 4).
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
