"""The ground under points: the highest surface of obstacles on a vertical line, with its normal.

A vertical line intersects a convex solid in one interval of heights, in closed form for each kind of shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array
from synovia.model.shapes.lines import Spans
from synovia.model.shapes.solids import Shape, Solid


@dataclass(frozen=True, eq=False)
class Ground:
    """The surface under some points.

    Args:
        heights: Height of the surface under each point, along the upward direction, (n,); -inf without ground.
        normals: Unit normal of the surface, (n, 3); the upward direction without ground.
        obstacles: Name of the obstacle under each point; None without ground.

    Example:
        >>> import synovia as sy
        >>> step = sy.World({"step": sy.Box(center=(0, 0, 0.1), size=(1, 1, 0.2))}, up="z")
        >>> ground = step.ground([(0, 0, 1), (2, 0, 1)])
        >>> isinstance(ground, sy.shapes.Ground), ground.obstacles
        (True, ('step', None))
    """

    heights: Array
    normals: Array
    obstacles: tuple[str | None, ...]

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        self.heights.setflags(write=False)
        self.normals.setflags(write=False)


def ground_under(shapes: Sequence[Shape], points: Array, up: Array) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return the height of the ground under points, (n,), its normal, (n, 3), and the row of its shape, (n,).

    Solids that overlap or touch on a line form one piece. The ground is the top of the highest piece that begins at or
    below the point: the surface below a free point, and the top of the piece around a point inside. Without such a
    piece, the height is -inf and the row -1.

    Args:
        shapes: The shapes, in the world.
        points: The points, (n, 3).
        up: Unit vector that points up, (3,).
    """
    count = len(points)
    own = points @ up
    spans: list[Spans] = []
    rows: list[int] = []
    flat = points - np.outer(own, up)  # lines begin at height 0, so that positions on them are heights
    for row, shape in enumerate(shapes):
        if isinstance(shape, Solid) and not _may_meet(shape, flat, up):
            continue
        parts = shape.spans(flat, up)
        spans += parts
        rows += [row] * len(parts)
    best, normals = np.full(count, -np.inf), np.tile(up, (count, 1))
    owner = np.full(count, -1)
    if not spans:
        return best, normals, owner
    low, high = (np.array(each) for each in list(zip(*spans, strict=True))[:2])
    low = np.where(
        np.isfinite(high) | (high == np.inf), low, np.inf
    )  # begins above every point if the line misses the solid
    high = np.where(np.isnan(high), -np.inf, high)
    low = np.where(np.isnan(low), np.inf, low)
    order = np.argsort(low, axis=0, kind="stable")
    for line in order:  # solids in the order of their lowest point, for all points at once
        at = (line, np.arange(count))
        begins, ends = low[at], high[at]
        joins = begins <= best  # whether the span touches the piece below it
        takes = (begins < np.inf) & (joins | (begins <= own)) & (ends > best)
        for k in np.flatnonzero(takes):
            normals[k] = spans[line[k]].normals[k]
            owner[k] = rows[line[k]]
        best = np.where(takes, ends, best)
    return best + 0.0, normals, owner  # + 0.0 turns -0 into 0


def _may_meet(solid: Solid, points: Array, up: Array) -> bool:
    """Return whether a line intersects the bounding sphere of a solid."""
    extent = solid.extent()
    if extent == np.inf:
        return True
    off = points - solid.place()[:3, 3]
    across = off - np.outer(off @ up, up)
    return bool((np.sum(across * across, axis=1) <= (1.0 + 1e-9) * extent * extent).any())
