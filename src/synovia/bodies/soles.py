"""Find the soles of a body: the lowest surface of each foot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.bodies.footing import HALF_WIDTH, HEEL
from synovia.errors import SynoviaError
from synovia.io.load import format_of
from synovia.io.nodes.skins import Skin
from synovia.model import Skeleton
from synovia.model.anatomy.feet import Foot
from synovia.model.anatomy.up import Lines
from synovia.model.geometry import Array, Bools, align_z, axis_vector, frames_to_transforms

_NEAR_FLOOR: Final = 0.03  # fraction of the body's size: a foot at rest closer to height 0 stands on a floor there
_ON_FLOOR: Final = 0.004  # fraction of the body's size: depth below this floor at which shapes still count as on it
_TILTS: Final = (0.0, 10.0, 25.0, 45.0)  # degrees: sampled tilts of a foot, each in eight directions
_MOVES: Final = 0.5  # a joint carries a vertex if it has more than this share of the vertex's weight
_SAME: Final = 1e-3  # fraction of the body's size: if joints of skin and skeleton differ more, so do the rest poses


@dataclass(frozen=True, eq=False, slots=True)
class Sole:
    """The sole of a foot.

    Args:
        height: Height of the lowest point at rest, length units.
        below: Depth of the lowest point below each joint and tip of the foot at rest, length units.
        source: Source of the sole: ``"shapes"`` (contact and collision shapes), ``"skin"``, ``"floor"`` (the body
            stands on a floor at height 0 at rest), or ``"points"`` (joints and tips).
        rows: The joint that carries each point, (k,).
        points: The lowest points of the level and tilted foot, each in the frame of its joint, (k, 3).
    """

    height: float
    below: Array
    source: str
    rows: NDArray[np.int64]
    points: Array

    @property
    def surface(self) -> bool:
        """Whether a surface of the foot is known."""
        return self.source in ("shapes", "skin")

    def places(self, frames: Array) -> Array:
        """Return the positions of the points, (..., k, 3), for world frames (..., n, 12)."""
        taken = frames[..., self.rows, :]
        turns = taken[..., :9].reshape(*taken.shape[:-1], 3, 3)
        return (turns @ self.points[..., None])[..., 0] + taken[..., 9:]

    def heights(self, frames: Array, up: Array) -> Array:
        """Return the heights of the points, (..., k), for world frames (..., n, 12)."""
        out = np.empty((*frames.shape[:-2], len(self.rows)))
        for row in dict.fromkeys(self.rows.tolist()):
            mine, taken = self.rows == row, frames[..., row, :]
            local = up @ taken[..., :9].reshape(*taken.shape[:-1], 3, 3)
            out[..., mine] = local @ self.points[mine].T + (taken[..., 9:] @ up)[..., None]
        return out

    def lowest(self, frames: Array, up: Array) -> Array:
        """Return the height of the lowest point, (...), for world frames (..., n, 12)."""
        return self.heights(frames, up).min(-1)


def sole_of(skeleton: Skeleton, foot: Foot, up: Array, frames: Array | None = None) -> Sole:
    """Find the sole of a foot.

    Joints of robots and tips of toes are above the surface on which a body stands. If the feet are nearly at height 0
    in the rest pose, they stand on a floor there. Shapes that extend below this floor are too large, such as capsules
    around bones, and are not used; skin below the floor shows the end of the foot.

    Args:
        skeleton: The skeleton.
        foot: The foot.
        up: Upward direction, (3,).
        frames: World frames (n, 12) of another pose to use as rest pose, at any height; None for the file's rest pose.
    """
    rest = np.array(skeleton.rest_pose().frames)
    pose = rest if frames is None else frames
    rows = np.array(foot.points)
    places = pose[rows, 9:]
    heights = places @ up
    points = float(heights.min())
    floor = bool(np.allclose(pose, rest)) and 0.0 <= points < _NEAR_FLOOR * skeleton.size
    for source, found, depth in (("shapes", _of_shapes, _ON_FLOOR), ("skin", _of_skin, _NEAR_FLOOR)):
        carried = list(found(skeleton, foot, up, pose))
        if not carried:
            continue
        at, local = (
            np.concatenate([[row] * len(local) for row, local in carried]),
            np.concatenate([p for _, p in carried]),
        )
        lowest = float(Sole(0.0, heights, source, at, local).lowest(pose, up))
        if (-depth * skeleton.size if floor else -np.inf) <= lowest < points:
            return Sole(lowest, heights - lowest, source, at, local)
    height = 0.0 if floor else points
    toe = int(np.argmax(np.linalg.norm(places - places[0], axis=1)))
    under = places + np.outer(height - heights, up)
    if toe:  # adds an outline as wide as a human foot
        ahead = under[toe] - under[0]
        side = HALF_WIDTH * np.cross(up, ahead)
        corners = [under[0] + end * ahead + sign * side for end in (HEEL, 1.0) for sign in (1.0, -1.0)]
        under, rows = np.vstack([under, corners]), np.append(rows, rows[[0, 0, toe, toe]])
    turns = pose[rows, :9].reshape(-1, 3, 3)
    local = np.einsum("kji,kj->ki", turns, under - pose[rows, 9:])
    return Sole(height, heights - height, "floor" if floor else "points", rows, local)


def soles_in(
    skeleton: Skeleton,
    feet: Sequence[Foot],
    frames: Array,
    stands: Bools,
    up: Array,
    rows: Mapping[str, int] | None = None,
) -> list[Sole]:
    """Return the sole of each foot, found in the rest pose if that stands, else where the foot is flattest.

    Args:
        skeleton: The skeleton.
        feet: The feet.
        frames: World frames of the clip, (T, n, 12).
        stands: Mask of the frames in which each foot stands, (T, feet).
        up: Upward direction in the clip, (3,).
        rows: Row of each part of the body, by role; None for the recognised roles.
    """
    axis = Lines.of(skeleton, rows).axis_at(np.array(skeleton.rest_pose().positions))
    if axis is not None:
        return [sole_of(skeleton, foot, axis_vector(axis)) for foot in feet]
    out: list[Sole] = []
    for foot, own in zip(feet, stands.T, strict=True):
        level = (frames[:, list(foot.points), 9:] @ up).sum(axis=1) + np.where(own, 0.0, np.inf if own.any() else 0.0)
        out.append(sole_of(skeleton, foot, up, frames[int(np.argmin(level))]))
    return out


def _downwards(up: Array) -> Array:
    """Return the downward directions of a level foot and of tilted feet, (d, 3)."""
    turn = align_z(up)
    ways = [
        (np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), -np.cos(a))
        for a in np.radians(_TILTS)
        for b in np.arange(8) * (np.pi / 4.0)
    ]
    return np.array(ways) @ turn.T


def _of_shapes(skeleton: Skeleton, foot: Foot, up: Array, pose: Array) -> Iterator[tuple[int, Array]]:
    """Yield each joint of a foot that has shapes, and the lowest points of its shapes, (k, 3) in its frame."""
    ways = _downwards(up)
    for row in foot.points:
        solids = [solid for shape in skeleton.joints[row].shapes for solid in shape.solids()]
        if solids:
            local = ways @ pose[row, :9].reshape(3, 3)
            yield row, _farthest(np.concatenate([solid.farthest(local) for solid in solids]), local)


def _of_skin(skeleton: Skeleton, foot: Foot, up: Array, pose: Array) -> Iterator[tuple[int, Array]]:
    """Yield each joint of a foot that carries skin, and the lowest points of its skin, (k, 3) in its frame."""
    ways = _downwards(up)
    for row, local in _skin_of(skeleton).items():
        if row in foot.points:
            yield row, _farthest(local, ways @ pose[row, :9].reshape(3, 3))


def _farthest(points: Array, ways: Array) -> Array:
    """Return the points, of (n, 3), that are farthest along any of the directions (d, 3)."""
    return points[np.unique(np.argmax(points @ ways.T, axis=0))]


def _skin_of(skeleton: Skeleton) -> dict[int, Array]:
    """Return the skin vertices of each joint, (k, 3) in its frame, by row; empty without a skin."""
    if skeleton.source is None or not skeleton.source.is_file():
        return {}
    return _vertices(skeleton, skeleton.source.absolute(), skeleton.source.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _vertices(skeleton: Skeleton, path: Path, stamp: int) -> dict[int, Array]:
    """Return the skin vertices of a file by row; ``stamp`` is the file's modification time, for the cache."""
    del stamp
    skin: Skin | None = None
    with suppress(OSError, SynoviaError, MemoryError), np.errstate(over="ignore", invalid="ignore"):
        read = format_of(path).read_skin
        skin = None if read is None else read(path)
    own = None if skin is None else skin.rows_in(skeleton.joint_names)
    if skin is None or own is None:
        return {}
    frames, out = frames_to_transforms(skeleton.rest_pose().frames), dict[int, list[Array]]()
    for mesh in skin.meshes:
        rows = np.array([own[row] for row in mesh.rows])
        worlds = skin.worlds[mesh.rows]
        if np.abs(worlds[:, :3, 3] - frames[rows, :3, 3]).max() > _SAME * skeleton.size:
            continue  # the mesh belongs to another rest pose
        moves = np.einsum("bij,bjk->bik", worlds, mesh.binds)
        strongest = np.argmax(mesh.weights, axis=1)
        vertex = np.arange(len(mesh.vertices))
        share = mesh.weights[vertex, strongest] / np.maximum(mesh.weights.sum(1), 1e-12)
        first = mesh.bones[vertex, strongest]
        for bone, row in enumerate(rows.tolist()):
            mine = (first == bone) & (share > _MOVES)
            if mine.any():
                world = mesh.vertices[mine] @ moves[bone, :3, :3].T + moves[bone, :3, 3]
                out.setdefault(row, []).append((world - frames[row, :3, 3]) @ frames[row, :3, :3])
    return {row: np.concatenate(parts) for row, parts in out.items()}
