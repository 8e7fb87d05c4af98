"""Retarget the orientations of a motion, and compute joint values of the target frame by frame."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from synovia.arguments import Progress
from synovia.model.geometry import Array
from synovia.model.tree import ancestors
from synovia.model.turns import PathTurns, Spread
from synovia.retargeting.alignment import Part
from synovia.retargeting.body import LEGS, Body
from synovia.retargeting.fingers import Hands
from synovia.retargeting.limbs import TRUNK, Follower, Limb, follow_arms, limbs_of, set_planes, smooth_steps

_REPORT = 2000  # frames between two reports of progress


def world_rotations(source: Body, target: Body, parts: Sequence[Part], frames: Array) -> Array:
    """Return the world orientations that the target's parts should have, (T, parts, 3, 3).

    In the axes of its body, a part of the source has rotated by D = Bᵀ R(t) R₀ᵀ B since the rest pose. The target
    rotates by the same D from its own rest pose after alignment by A (``Part.turn``): W = B' D A B'ᵀ R'₀. A part in a
    chain with another number of joints takes a share of the source's rotation between two joints.

    Args:
        source: The body that moves.
        target: The body that follows.
        parts: The parts that both have.
        frames: (T, n, 12) world frames of the source.
    """
    turns = frames[:, [part.source for part in parts], :9]
    shared = [k for k, part in enumerate(parts) if part.earlier >= 0]
    if shared:
        spread = np.zeros((len(frames), len(shared), 12))
        spread_of(source, parts).turn(frames, spread)
        turns[:, shared] = spread[..., :9]
    turns = turns.reshape(len(frames), -1, 3, 3)
    return across(source, target) @ (turns @ own_rotations(source, target, parts))


def spread_of(source: Body, parts: Sequence[Part]) -> Spread:
    """Return the rotations between two joints of the source of which some parts take a share."""
    shared = [part for part in parts if part.earlier >= 0]
    rest = source.rest[:, :9].reshape(-1, 3, 3)
    numbers = [
        (
            *(rest[part.earlier].T @ rest[part.source]).ravel(),
            part.share,
            *(np.zeros(3) if part.twist is None else part.twist),
        )
        for part in shared
    ]
    return Spread([part.earlier for part in shared] + [part.source for part in shared], np.array(numbers))


def across(source: Body, target: Body) -> Array:
    """Return the rotation B' Bᵀ (3, 3) from the world of the source to that of the target."""
    return target.basis @ source.basis.T


def own_rotations(source: Body, target: Body, parts: Sequence[Part]) -> Array:
    """Return the rotation (parts, 3, 3) of each part in the axes of the source's part: R₀ᵀ B A B'ᵀ R'₀."""
    B, C = source.basis, target.basis
    R0, R1 = (body.rest[:, :9].reshape(-1, 3, 3) for body in (source, target))
    return np.array([R0[part.source].T @ B @ part.turn @ C.T @ R1[part.target] for part in parts])


class Orienter(PathTurns):
    """Joint values that rotate the parts of a body to orientations, as closely as the limits permit.

    Joints of no part stay at rest. A free joint that carries the hips takes their orientation, but not their position.

    Args:
        target: The body.
        parts: Its parts.
        still: Rows above the parts that also stay at rest.

    Attributes:
        ends: Index in ``parts`` of the part that gives each path its orientation.
        onto: Rotation (paths, 3, 3) from the orientation of that part to that of the last joint of the path, z-form.
    """

    def __init__(self, target: Body, parts: Sequence[Part], still: Collection[int] = ()) -> None:
        """Find the path of joints that rotates each part."""
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
    """Return joint values (T, nq) that rotate the target's parts to orientations as closely as the limits permit.

    Args:
        target: The body.
        parts: Its parts.
        wanted: World orientations of the parts, (T, parts, 3, 3).
        progress: Called with (frames done, all).
        still: Rows above the parts that also stay at rest; see ``Orienter``.
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


def orientations(source: Body, target: Body, parts: Sequence[Part], limbs: Sequence[Limb], frames: Array) -> Array:
    """Return the world orientations of the target's parts (T, parts, 3, 3), with limbs in their hinge planes."""
    wanted = world_rotations(source, target, parts, frames)
    set_planes(limbs, target, parts, wanted)
    return wanted


def follow(
    source: Body,
    follower: Follower,
    frames: Array,
    progress: Progress | None = None,
    still: Collection[int] = (),
) -> Array:
    """Return joint values (T, nq) that follow the orientations and swing planes of a motion, without its path.

    Args:
        source: The body that moves.
        follower: The body that follows.
        frames: (T, n, 12) world frames of the source.
        progress: Called with (frames done, all).
        still: Rows above the parts that also stay at rest, for a body whose base does not move.
    """
    target, parts = follower.body, follower.parts
    limbs = limbs_of(source, target, [part.role for part in parts], frames)
    wanted = orientations(source, target, parts, limbs, frames)
    q = joint_values(target, parts, wanted, progress, still)
    smooth_steps(TRUNK, follower, wanted, q)
    follow_arms(limbs, follower, wanted, q)
    smooth_steps(LEGS, follower, wanted, q)
    hands = Hands.of(source, target, parts)
    hands.turn(target, frames, q, follower.fps)
    return q
