"""Shapes as solids of coal, which measures distances beside Synovia."""

from __future__ import annotations

from typing import Any

import numpy as np

import synovia as sy


def geometry(shape: Any) -> Any:
    """Return a shape as one of coal, in its own frame."""
    import coal

    x, y, z, radius = shape.sizes()
    if isinstance(shape, sy.ConvexHull):
        points = coal.StdVec_Vec3s()
        for point in shape.corners():
            points.append(point)
        return coal.Convex.convexHull(points, True, "Qt")
    return {
        "sphere": lambda: coal.Sphere(radius),
        "capsule": lambda: coal.Capsule(radius, 2 * z),
        "box": lambda: coal.Box(2 * x, 2 * y, 2 * z),
        "cylinder": lambda: coal.Cylinder(radius, 2 * z),
        "ellipsoid": lambda: coal.Ellipsoid(x, y, z),
        "half-space": lambda: coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0),
    }[shape.word]()
