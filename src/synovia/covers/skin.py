"""The surface of a body in its bind pose, as triangles that each belong to one joint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.covers.points import in_triangles, windings
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, frames_to_transforms
from synovia.surface import Part, Surface

_ALIKE: Final = 1e-4  # fraction of the body's size: bind frames of a joint that differ by less count as equal
_EDGE: Final = 0.03  # fraction of the surface's extent: longer edges are divided, so that joints can share a triangle
_INSIDE: Final = 0.5  # winding number from which a point counts as inside
_WOUND: Final = 8_000  # number of samples for winding numbers
_MOST: Final = 400_000  # largest number of triangles after edges are divided


@dataclass(frozen=True, slots=True, eq=False)
class Skin:
    """The triangles of a surface in one pose.

    Args:
        corners: World positions of the corners of the triangles, (f, 3, 3).
        rows: The joint with the largest weight in each triangle, a skeleton row, (f,).
        frames: World frames of all joints in the same pose, (n, 4, 4).
    """

    corners: Array
    rows: NDArray[np.int64]
    frames: Array

    @property
    def extent(self) -> float:
        """Return the length of the diagonal of the box around the surface."""
        points = self.corners.reshape(-1, 3)
        return float(np.linalg.norm(points.max(0) - points.min(0)))


class Outside:
    """Measures distances of points outside a surface, by samples of the surface.

    Args:
        skin: The surface.
        count: Number of samples.
        rng: Generator of the random samples.
    """

    def __init__(self, skin: Skin, count: int, rng: np.random.Generator) -> None:
        """Draw the samples."""
        from scipy.spatial import KDTree

        self._points, face = in_triangles(skin.corners, count, rng)
        p, q, r = (skin.corners[:, k] for k in range(3))
        normals = 0.5 * np.cross(q - p, r - p)
        area = np.linalg.norm(normals, axis=1)
        self._normals = (normals / np.where(area > 0.0, area, 1.0)[:, None])[face] * area.sum()
        self._tree: Any = KDTree(self._points)

    def farthest(self, probes: Array) -> float:
        """Return the largest distance of points (n, 3) outside the surface; 0 if no point is outside.

        Points in front of the nearest sample, by its normal, count as outside. Other points count as inside if their
        winding number is at least 0.5.
        """
        if not len(probes):
            return 0.0
        found: tuple[Array, NDArray[np.int64]] = self._tree.query(probes)
        away, at = found
        out = ((probes - self._points[at]) * self._normals[at]).sum(axis=1) > 0.0
        most = float(away[out].max(initial=0.0))
        unsure = np.flatnonzero(~out & (away > most))
        if len(unsure):
            some = slice(0, _WOUND)
            wound = windings(probes[unsure], self._points[some], self._normals[some] / len(self._points[some]))
            most = max(most, float(away[unsure][np.abs(wound) < _INSIDE].max(initial=0.0)))
        return most


def skin_of(surface: Surface, skeleton: Skeleton, pose: Pose | None = None) -> Skin | None:
    """Return the surface of a body as triangles; None if the body has no surface.

    Args:
        surface: The surface.
        skeleton: The skeleton.
        pose: The pose; None for the bind pose of the surface, or for the rest pose if parts were bound in different
            poses or to other bone lengths.
    """
    parts = [part for part in surface.parts if len(part.faces)]
    if not parts:
        return None
    frames = None if pose is not None else _bind_frames(parts, skeleton)
    if frames is None:
        packed = (skeleton.rest_pose() if pose is None else pose).frames
        frames, places = frames_to_transforms(packed), [part.placed(packed) for part in parts]
    else:
        places = [part.vertices for part in parts]
    every = np.concatenate([found[part.faces.ravel()] for part, found in zip(parts, places, strict=True)])
    longest = _EDGE * float(np.linalg.norm(np.ptp(every, axis=0)))
    pieces = [_divided(part, found, longest) for part, found in zip(parts, places, strict=True)]
    corners, rows = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return Skin(corners, rows, frames)


def _bind_frames(parts: list[Part], skeleton: Skeleton) -> Array | None:
    """Return the world frames of all joints in the bind pose, (n, 4, 4); None if parts or bone lengths disagree."""
    slack = _ALIKE * max(skeleton.size, 1e-12)
    bound: dict[int, Array] = {}
    for part in parts:
        for row, bind in zip(part.rows.tolist(), part.bind, strict=True):
            if np.abs(bound.setdefault(row, bind) - bind).max() > slack:
                return None
    frames = frames_to_transforms(skeleton.rest_pose().frames)
    for row, parent in enumerate(skeleton.parents):
        joint = skeleton.joints[row]
        if row in bound:
            frames[row] = bound[row]
            bone = frames[row][:3, 3] - frames[parent][:3, 3]
            moves = parent < 0 or parent not in bound or joint.kind in (Kind.SLIDE, Kind.FREE)
            if not moves and abs(np.linalg.norm(bone) - np.linalg.norm(joint.rest[:3, 3])) > slack:
                return None
        elif parent >= 0:  # a joint without surface moves with its parent
            frames[row] = frames[parent] @ joint.rest
    return frames


def _divided(part: Part, places: Array, longest: float) -> tuple[Array, NDArray[np.int64]]:
    """Divide long edges of a part; return the corners of the triangles, and the joint of each triangle."""
    vertices = len(places)
    weights = np.zeros((vertices, len(part.rows)))
    np.add.at(weights, (np.arange(vertices)[:, None], part.bones), part.weights)
    values = np.hstack([places, weights])
    corners = values[part.faces]  # (f, 3, 3 + bones)
    done: list[Array] = []
    while len(corners) and longest > 0.0:
        sides = np.linalg.norm(corners[:, :, :3] - np.roll(corners[:, :, :3], -1, axis=1), axis=2)
        widest = sides.argmax(axis=1)
        long = sides.max(axis=1) > longest
        done.append(corners[~long])
        corners, widest = corners[long], widest[long]
        if sum(map(len, done)) + 2 * len(corners) > _MOST:
            break
        at = np.arange(len(corners))
        a, b, c = corners[at, widest], corners[at, (widest + 1) % 3], corners[at, (widest + 2) % 3]
        middle = 0.5 * (a + b)
        corners = np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])
    done.append(corners)
    every = np.concatenate(done)
    carried = every[:, :, 3:].sum(axis=1).argmax(axis=1)
    return np.ascontiguousarray(every[:, :, :3]), part.rows[carried]
