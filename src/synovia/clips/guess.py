"""Compute joint values from points in closed form: from the root down, rotate each joint to fit the points it moves.

The best rotation between two sets of points is computed after Kabsch (1976): one singular value decomposition for all
frames. A bone with a single point does not determine its twist, so the rest orientation has a small weight.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, matrix_to_quat, quat_to_matrix

# fraction of the skeleton's size: much shorter bones keep their rest orientation, because noise would rotate them
NOISY: Final = 0.01
CLEAN: Final = 1e-4  # as ``NOISY``, for points without noise
_NO_LENGTH: Final = 1e-9  # fraction of the skeleton's size: a point nearer to the joint does not determine its rotation


def first_guess(
    skeleton: Skeleton, rows: list[int], offsets: Array, points: Array, weights: Array, short: float = NOISY
) -> Array:
    """Return joint values (T, nq) that bring points on the joints close to observed world positions.

    Args:
        skeleton: The skeleton.
        rows: Row of the joint of each of the K points.
        offsets: Position of each point in its joint's frame, (K, 3).
        points: World positions, (T, K, 3), without gaps.
        weights: Weight of each position, (T, K); small for interpolated positions, which may flip short bones.
        short: Fraction of the skeleton's size: for a bone of this length, points and rest orientation have equal
            weight.
    """
    count = len(points)
    q = np.repeat(skeleton.rest_q[None], count, axis=0)
    own: list[list[int]] = [[] for _ in range(len(skeleton))]
    for k, row in enumerate(rows):
        own[row].append(k)
    moved = [_moved_points(skeleton, own, offsets, row) for row in range(len(skeleton))]
    turns = np.empty((count, len(skeleton), 3, 3))
    places = np.empty((count, len(skeleton), 3))
    pull = max((short * skeleton.size) ** 2, 1e-300)
    smallest = _NO_LENGTH * max(skeleton.size, 1e-300)
    for row, joint in enumerate(skeleton.joints):
        parent = skeleton.parents[row]
        turn = np.broadcast_to(joint.rest[:3, :3], (count, 3, 3))
        place = np.broadcast_to(joint.rest[:3, 3], (count, 3))
        if parent >= 0:
            place = places[:, parent] + (turns[:, parent] @ joint.rest[:3, 3])
            turn = turns[:, parent] @ joint.rest[:3, :3]
        local = [(k, a) for k, a in moved[row] if np.linalg.norm(a) > smallest]
        at = skeleton.q_slice(row).start
        arms = np.array([a for _, a in local]).reshape(-1, 3)
        seen, counts = points[:, [k for k, _ in local]], weights[:, [k for k, _ in local], None]
        if joint.kind is Kind.FREE:
            centre = [k for k in own[row] if np.linalg.norm(offsets[k]) <= smallest]
            if centre:
                middle, pivot = points[:, centre].mean(1), np.zeros(3)
            else:
                middle, pivot = (seen.mean(1), arms.mean(0)) if local else (place, np.zeros(3))
            new = _best_rotations(turn, arms - pivot, counts * (seen - middle[:, None]), pull)
            where = middle - new @ pivot
            q[:, at : at + 3] = np.matmul(np.swapaxes(turn, 1, 2), (where - place)[:, :, None])[:, :, 0]
            q[:, at + 3 : at + 7] = matrix_to_quat(np.swapaxes(turn, 1, 2) @ new)
            turn, place = new, where
        elif joint.kind is Kind.BALL and local:
            new = _best_rotations(turn, arms, counts * (seen - place[:, None]), pull)
            q[:, at : at + 4] = matrix_to_quat(np.swapaxes(turn, 1, 2) @ new)
            turn = new
        elif joint.kind is Kind.HINGE and local:
            angle = _best_angles(joint.axis, arms, np.matmul(counts * (seen - place[:, None]), turn))
            q[:, at] = angle
            half = 0.5 * angle[:, None]
            turn = turn @ quat_to_matrix(np.concatenate([np.sin(half) * joint.axis, np.cos(half)], axis=1))
        turns[:, row], places[:, row] = turn, place
    return q


def _moved_points(skeleton: Skeleton, own: list[list[int]], offsets: Array, row: int) -> list[tuple[int, Array]]:
    """Return the points that determine a joint's rotation, as (index, position in the joint's frame at rest).

    These are the joint's own points and, on each branch below the joint, the points of the nearest joint that has any.
    """
    found = [(k, offsets[k]) for k in own[row]]
    left = [(child, skeleton.joints[child].rest) for child in skeleton.children[row]]
    while left:
        at, frame = left.pop()
        if own[at]:
            found += [(k, frame[:3, :3] @ offsets[k] + frame[:3, 3]) for k in own[at]]
        else:
            left += [(child, frame @ skeleton.joints[child].rest) for child in skeleton.children[at]]
    return found


def _best_rotations(turn: Array, arms: Array, seen: Array, pull: float) -> Array:
    """Return the rotations, (T, 3, 3), that bring vectors (n, 3) closest to vectors ``seen``, (T, n, 3).

    Args:
        turn: Rotations, (T, 3, 3), to which the result is pulled.
        arms: The vectors to rotate, (n, 3).
        seen: The observed vectors, (T, n, 3).
        pull: Weight of ``turn``.
    """
    if len(arms) == 0:
        return turn
    return nearest_rotations(np.einsum("tni,nj->tij", seen, arms) + pull * turn)


def nearest_rotations(matrices: Array) -> Array:
    """Return the rotation matrices closest to matrices (..., 3, 3)."""
    u, _, vt = np.linalg.svd(matrices)
    u[..., 2] *= np.linalg.det(u @ vt)[..., None]  # prevents reflections
    return u @ vt


def _best_angles(axis: Array, arms: Array, seen: Array) -> Array:
    """Return angles about an axis, (T,), that bring vectors ``arms``, (n, 3), closest to ``seen``, (T, n, 3)."""
    flat = arms - np.outer(arms @ axis, axis)
    return np.arctan2(np.einsum("tni,ni->t", seen, np.cross(axis, flat)), np.einsum("tni,ni->t", seen, flat))
