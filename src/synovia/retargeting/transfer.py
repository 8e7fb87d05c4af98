"""Transfer the orientations of a motion to another body, and compute its joint values frame by frame."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from synovia.ik.parallel import Progress
from synovia.model.geometry import Array
from synovia.model.path_turns import PathTurns
from synovia.model.pose import world_frames
from synovia.model.tree import ancestors
from synovia.retargeting.alignment import Part
from synovia.retargeting.body import LEGS, Body
from synovia.retargeting.fingers import Hands
from synovia.retargeting.limbs import TRUNK, Follower, calm, follow_arms, limbs_of, set_planes

_REPORT = 2000  # frames between two reports of progress
LOW = 5.0  # percentile of the ankle heights that counts as standing; lower values are errors of the capture


def world_rotations(source: Body, target: Body, parts: Sequence[Part], frames: Array) -> Array:
    """Return the world orientations that the target's parts should have, (T, parts, 3, 3).

    In the axes of its body, a part of the source has rotated by D = Bᵀ R(t) R₀ᵀ B since the rest pose. The target
    rotates by the same D from its own rest pose after alignment by A (``Part.turn``): W = B' D A B'ᵀ R'₀.

    Args:
        source: The body that moves.
        target: The body that follows.
        parts: The parts that both have.
        frames: (T, n, 12) world frames of the source.
    """
    R = frames[:, [part.source for part in parts], :9].reshape(len(frames), -1, 3, 3)
    return across(source, target) @ (R @ own_rotations(source, target, parts))


def across(source: Body, target: Body) -> Array:
    """Return the rotation B' Bᵀ (3, 3) from the world of the source to that of the target."""
    return target.basis @ source.basis.T


def own_rotations(source: Body, target: Body, parts: Sequence[Part]) -> Array:
    """Return the rotation (parts, 3, 3) of each part in the axes of the source's part: R₀ᵀ B A B'ᵀ R'₀."""
    B, C = source.basis, target.basis
    R0, R1 = (body.rest[:, :9].reshape(-1, 3, 3) for body in (source, target))
    return np.array([R0[part.source].T @ B @ part.turn @ C.T @ R1[part.target] for part in parts])


class Orienter(PathTurns):
    """Joint values that bring the parts of a body to orientations, as closely as the limits permit.

    Joints of no part stay at rest. A free joint that carries the hips takes their orientation, but not their position.

    Args:
        target: The body.
        parts: Its parts.
        still: Rows above the parts that stay at rest too.

    Attributes:
        ends: The part that each path takes its orientation from, as its place in ``parts``.
        onto: Rotation (paths, 3, 3) from the orientation of that part to that of the last joint of the path, z-form.
    """

    def __init__(self, target: Body, parts: Sequence[Part], still: Collection[int] = ()) -> None:
        """Find the path of joints that turns each part."""
        skeleton = target.skeleton
        rest = target.rest[:, :9].reshape(-1, 3, 3)
        ends: dict[int, tuple[int, Array]] = {}
        for k, part in enumerate(parts):
            row, onto = part.target, np.eye(3)
            if part.role == "hips" and target.carrier is not None:
                row, onto = target.carrier, rest[part.target].T @ rest[target.carrier]
            ends[row] = k, onto @ skeleton.tables.unfold[row].reshape(3, 3).T  # to z-form
        covered: set[int] = set(still)
        paths: list[list[int]] = []
        for row in sorted(ends):
            paths.append([above for above in ancestors(skeleton.parents, row)[::-1] if above not in covered])
            covered.update(paths[-1])
        self.ends = np.array([ends[row][0] for row in sorted(ends)], np.int32)
        self.onto = np.array([ends[row][1] for row in sorted(ends)]).reshape(-1, 3, 3)
        super().__init__(skeleton, paths, rest)


def joint_values(
    target: Body,
    parts: Sequence[Part],
    wanted: Array,
    progress: Progress | None = None,
    still: Collection[int] = (),
) -> Array:
    """Return joint values (T, nq) that bring the target's parts as close to orientations as the limits permit.

    Args:
        target: The body.
        parts: Its parts.
        wanted: World orientations of the parts, (T, parts, 3, 3).
        progress: Called with (frames done, all).
        still: Rows above the parts that stay at rest too; see ``Orienter``.
    """
    orienter = Orienter(target, parts, still)
    goals = np.ascontiguousarray((wanted[:, orienter.ends] @ orienter.onto).reshape(len(wanted), -1, 9))
    q = orienter.start(len(wanted))
    for first in range(0, len(q), _REPORT):
        part = slice(first, first + _REPORT)
        if first:
            orienter.go_on(q[first], q[first - 1])
        orienter.turn(goals[part], q[part])
        if progress is not None:
            progress(min(first + _REPORT, len(q)), len(q))
    return orienter.values(q)


def hip_centre(source: Body, target: Body, frames: Array) -> Array:
    """Return the position for the midpoint of the target's hip joints, (T, 3), world coordinates.

    The horizontal path, and the height above the ankles of the standing body, are scaled by the lengths of the legs.
    The floor of the target is at height 0.
    """
    slope, shift = hip_map(source, target, standing_height(source, frames))
    return np.mean([frames[:, source.first_row(leg[0]), 9:] for leg in LEGS], axis=0) @ slope.T + shift


def hip_map(source: Body, target: Body, floor: float) -> tuple[Array, Array]:
    """Return what maps the midpoint of the source's hip joints to that of the target's: a matrix (3, 3), a shift (3,).

    Args:
        source: The body that moves.
        target: The body that follows.
        floor: Height of the source's ankles while it stands, see ``standing_height``.
    """
    scale = target.leg / source.leg
    return scale * across(source, target), (target.ankle - scale * floor) * target.basis[:, 1]


def standing_height(body: Body, frames: Array) -> float:
    """Return the height of the ankles (of the knees if nothing is below) while the body stands, length units."""
    ankles = [row for leg in LEGS for row in body.end_rows(leg[1]) or (body.roles[leg[1]],)]
    return float(np.percentile(frames[:, ankles, 9:] @ body.basis[:, 1], LOW))


def place_hips(target: Body, q: Array, frames: Array, centre: Array) -> None:
    """Move the free joint that carries the hips so that the midpoint of the hip joints is at ``centre``.

    Args:
        target: The body, with a free joint above its hips.
        q: (T, nq), changed in place.
        frames: (T, n, 12) its world frames at q.
        centre: (T, 3) position for the midpoint of the hip joints.
    """
    row = target.carrier
    if row is None:
        return
    now = np.mean([frames[:, target.first_row(leg[0]), 9:] for leg in LEGS], axis=0)
    above = target.skeleton.parents[row]
    parent = frames[:, above, :9].reshape(-1, 3, 3) if above >= 0 else np.eye(3)[None]
    own = parent @ target.skeleton.joints[row].rest[:3, :3]
    at = target.skeleton.q_slice(row).start
    q[:, at : at + 3] += ((centre - now)[:, None, :] @ own)[:, 0]


def follow(
    source: Body,
    follower: Follower,
    frames: Array,
    progress: Progress | None = None,
    still: Collection[int] | None = None,
) -> Array:
    """Return joint values (T, nq) of a body that follow a motion: orientations, swing planes, path and height.

    Args:
        source: The body that moves.
        follower: The body that follows.
        frames: (T, n, 12) world frames of the source.
        progress: Called with (frames done, all).
        still: Rows above the parts that stay at rest, for a body whose base does not move; None for one that moves.
    """
    target, parts = follower.body, follower.parts
    wanted = world_rotations(source, target, parts, frames)
    limbs = limbs_of(source, target, [part.role for part in parts], frames)
    set_planes(limbs, target, parts, wanted)
    q = joint_values(target, parts, wanted, progress, still or ())
    calm(TRUNK, follower, wanted, q)
    follow_arms(limbs, follower, wanted, q)
    calm(LEGS, follower, wanted, q)
    hands = Hands.of(source, target, [part.role for part in parts])
    hands.turn(target, frames, q, follower.fps)
    if still is None:
        place_hips(target, q, world_frames(target.skeleton, q), hip_centre(source, target, frames))
    return q
