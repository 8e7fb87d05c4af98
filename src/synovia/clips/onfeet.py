"""Move the root and legs of a clip so that points of its feet follow paths, with the smallest and smoothest change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import Progress
from synovia.goals import PositionGoal
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.pose import world_frames
from synovia.tracking.trajectory import Effort, Model, Terms, solve_in_windows

_STANDS: Final = 1e5  # weight of a point of a planted foot; the accelerations of the joints' changes have weight 1
_SWINGS: Final = 1e3  # weight of a point of a foot without contact, on the same scale as ``_STANDS``
HEEL_SHARE: Final = 0.05  # weight of the ankle of a planted foot; its toes have weight 1
_PELVIS: Final = 100.0  # weight of the root's change; the change of a leg joint has weight 1
_BLEND: Final = 0.06  # seconds over which a correction begins or ends
_ROUNDS: Final = (1e-2, 1.0)  # factors of ``_STANDS`` and ``_SWINGS``, one for each round
_EFFORT: Final = Effort(30, 1e-3)


@dataclass(frozen=True, eq=False)
class FootPoint:
    """A point of a foot with its target path.

    Args:
        row: Row of the joint that moves the point.
        local: Position of the point in the frame of the joint, (3,).
        path: Path of the point, (T, 3).
        stands: Mask of the frames in which the foot is planted, (T,).
        swings: Whether the point also follows its path in frames without contact; if not, the ankle determines the
            foot's orientation there.
        share: Weight of the point. If the ankle is at its limits, points with smaller weights deviate more.
    """

    row: int
    local: Array
    path: Array
    stands: NDArray[np.bool_]
    swings: bool = False
    share: float = 1.0


def on_feet(
    skeleton: Skeleton,
    q: Array,
    fps: float,
    points: Sequence[FootPoint],
    threads: int | None,
    progress: Progress | None = None,
) -> Array:
    """Return joint values (T, nq) in which feet follow paths as far as limits permit; other joints do not change.

    Least squares solves all frames together, so that legs and root share the correction and the path of the root stays
    smooth. After that, other joints close the loops.

    Args:
        skeleton: The body; its free root moves.
        q: Joint values, (T, nq).
        fps: Frames per second.
        points: The points of the feet with their paths.
        threads: Number of threads; None for all cores.
        progress: Called with (steps done, number of steps).
    """
    goals = [PositionGoal(point.row, offset=point.local, name=str(k)) for k, point in enumerate(points)]
    model = Model(skeleton, goals, [(point.row,) for point in points], free_root=True, threads=threads)
    smooth = (_BLEND * fps) ** 4
    targets = np.tile(np.eye(4), (len(q), len(points), 1, 1))
    targets[:, :, :3, 3] = np.stack([point.path for point in points], axis=1)
    stands = np.stack([point.stands for point in points], axis=1)
    free = np.array([_SWINGS if point.swings else 0.0 for point in points])
    held = np.array([_STANDS * point.share for point in points])
    weight = np.ones(model.columns)
    weight[: 6 if model.is_length[:3].all() else 0] = _PELVIS
    terms = Terms(
        targets=targets.reshape(len(q), len(points), 16),
        weights=np.repeat(np.where(stands, held, free) * smooth, 3, axis=1),
        side=np.zeros(3 * len(points)),
        reference=q.copy(),
        pull=weight,
        smooth=smooth * weight,
        relative=True,
    )
    out = solve_in_windows(model, terms, q, _EFFORT, shares=_ROUNDS, progress=progress)
    return out if skeleton.mechanism is None else skeleton.mechanism.shut_clip(out, model.moving, q)


def raised(skeleton: Skeleton, q: Array, row: int, rise: Array, up: Array) -> Array:
    """Return joint values, (T, nq), in which a free joint is raised.

    Args:
        skeleton: The skeleton.
        q: Joint values, (T, nq).
        row: Row of the joint.
        rise: Height by which the joint is raised in each frame, (T,), length units.
        up: Upward direction, (3,).
    """
    parent, turn, out = skeleton.parents[row], skeleton.joints[row].rest[:3, :3], q.copy()
    if parent >= 0:
        turn = world_frames(skeleton, q)[:, parent, :9].reshape(-1, 3, 3) @ turn
    first = skeleton.q_slice(row).start
    out[:, first : first + 3] += rise[:, None] * (up @ turn)
    return out


def point_of(frames: Array, local: Array) -> Array:
    """Return the world positions, (T, 3), of a point fixed on a joint, given the joint's world frames, (T, 12)."""
    return frames[:, 9:] + frames[:, :9].reshape(-1, 3, 3) @ local
