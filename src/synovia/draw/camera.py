"""A pinhole or orthographic camera, its standard views, and fitting the content into the image."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError, unknown_name
from synovia.model.geometry import Array, as_numbers, axis_vector

# Azimuth (counter-clockwise about up, from the direction that the body faces) and elevation, degrees.
VIEWS: Final[dict[str, tuple[float, float]]] = {
    "three-quarter": (38.0, 17.0),
    "front": (0.0, 6.0),
    "back": (180.0, 6.0),
    "left": (90.0, 6.0),
    "right": (-90.0, 6.0),
    "top": (0.0, 89.9),
}
# Default axis that the body faces, by up axis; used if the file names none. The viewer sees x (or y) to the right.
_FORWARD: Final = {"x": "y", "y": "z", "z": "-y"}
# Field of view of the shorter side of the image: small enough that perspective does not distort the limbs.
_FIELD: Final = math.radians(26.0)
_AWAY: Final = 1.2  # smallest distance from the content, as a multiple of its size
_LENSES: Final = 40  # largest number of focal lengths that are tried; usually three suffice
_NEAREST: Final = 1e-3  # smallest depth that is drawn, as a fraction of the content's size


@dataclass(frozen=True, slots=True, eq=False)
class Camera:
    """A camera for an image of a given size.

    Args:
        position: Position of the camera, world coordinates, (3,).
        axes: Rows are its right, up and backward directions in the world, (3, 3).
        focal: Pixels per length unit at depth 1, or at any depth without perspective.
        centre: Pixel on the optical axis.
        perspective: Whether distant objects look smaller.
        nearest: Smallest depth that is drawn, length units, above 0.
    """

    position: Array
    axes: Array
    focal: float
    centre: tuple[float, float]
    perspective: bool = True
    nearest: float = 1e-9

    def project(self, points: Array) -> tuple[Array, Array, Array]:
        """Return pixels (n, 2), depths (n,) in length units and scales (n,) in pixels per length unit.

        Points behind the camera get the depth ``nearest`` and meaningless pixels.
        """
        local = (points - self.position) @ self.axes.T
        depth = np.maximum(-local[:, 2], self.nearest)
        scale = self.focal / depth if self.perspective else np.full(len(depth), self.focal)
        pixels = np.stack([self.centre[0] + scale * local[:, 0], self.centre[1] - scale * local[:, 1]], axis=1)
        return pixels, depth, scale

    def points_at(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]], depth: Array) -> Array:
        """Return the world positions, (n, 3), of pixels x, y at given depths, (n,) each."""
        reach = depth / self.focal if self.perspective else np.full(len(depth), 1.0 / self.focal)
        local = np.stack([(x - self.centre[0]) * reach, (self.centre[1] - y) * reach, -depth], axis=1)
        return self.position + local @ self.axes

    def plane_to_pixel(self, origin: Array, right: Array, along: Array) -> Array:
        """Return the homography (3, 3) from coordinates (u, v, 1) of a plane to homogeneous pixels.

        Args:
            origin: Point of the plane with u = v = 0.
            right: World vector of u = 1, (3,).
            along: World vector of v = 1, (3,).
        """
        local = self.axes @ np.column_stack([right, along, origin - self.position])
        weight = -local[2] if self.perspective else np.array([0.0, 0.0, 1.0])
        x = self.focal * local[0] + self.centre[0] * weight
        y = -self.focal * local[1] + self.centre[1] * weight
        return np.stack([x, y, weight])

    def scaled(self, factor: float) -> Camera:
        """Return the camera of the same image with ``factor`` times as many pixels in each direction."""
        return replace(self, focal=self.focal * factor, centre=(self.centre[0] * factor, self.centre[1] * factor))

    def shifted(self, left: float, top: float) -> Camera:
        """Return the camera of a part of the image, given the left and top pixel of this part."""
        return replace(self, centre=(self.centre[0] - left, self.centre[1] - top))


def direction(axis: str | None, otherwise: str) -> Array:
    """Return the unit vector of an axis such as ``"y"`` or ``"-z"``, or of the axis ``otherwise`` for None."""
    return axis_vector(axis if axis and axis.lstrip("+-") in _FORWARD else otherwise)


def look(view: str | tuple[float, float], up: str | None, forward: str | None) -> Array:
    """Return the axes of a camera: rows right, up and backward in world coordinates.

    Args:
        view: Name in ``VIEWS``, or (azimuth, elevation) in degrees: azimuth 0 is in front of the body, 90 on its left.
        up: Axis of the skeleton that points up; y if unknown.
        forward: Axis that the body faces; a horizontal axis if unknown.

    Raises:
        UnknownNameError: If no view has that name.
        InputError: If the angles are not two finite numbers.
    """
    if isinstance(view, str):
        if view not in VIEWS:
            raise unknown_name("view", view, VIEWS)
        angles = VIEWS[view]
    else:
        angles = tuple(as_numbers(view, (2,), "view").tolist())
    if not -90.0 <= angles[1] <= 90.0:
        raise InputError("elevation of the view is out of range", value=angles[1], expected="-90 to 90 degrees")
    vertical = direction(up, "y")
    level_axis = _FORWARD["xyz"[int(np.argmax(np.abs(vertical)))]]
    ahead = direction(forward, level_axis)
    if abs(float(ahead @ vertical)) > 0.5:
        ahead = axis_vector(level_axis)
    side = np.cross(vertical, ahead)
    azimuth, elevation = (math.radians(angle) for angle in angles)
    level = math.cos(azimuth) * ahead + math.sin(azimuth) * side
    backward = math.cos(elevation) * level + math.sin(elevation) * vertical
    right = math.cos(azimuth) * side - math.sin(azimuth) * ahead
    return np.stack([right, np.cross(backward, right), backward])


def fit(
    axes: Array,
    points: Array,
    radii: Array,
    window: tuple[float, float, float, float],
    *,
    perspective: bool = True,
) -> Camera:
    """Return the nearest camera that shows every ball of the content inside a window of the image.

    Each side of the window is a plane through the camera. A ball is inside the window if it is inside all four planes.
    These conditions are linear in the camera position, so the position has a closed form.

    Args:
        axes: Directions of the camera, from ``look``.
        points: Centres of the balls, (n, 3), n >= 1.
        radii: Radii of the balls, (n,).
        window: Left, top, right and bottom of the free part of the image, pixels.
        perspective: Whether distant objects look smaller.
    """
    left, top, right, bottom = window
    half = np.array([max(right - left, 2.0), max(bottom - top, 2.0)]) / 2.0
    centre = ((left + right) / 2.0, (top + bottom) / 2.0)
    local = points @ axes.T
    sides, depth = local[:, :2], local[:, 2]
    extent = float(np.max(np.ptp(local, axis=0) + 2.0 * radii.max()))
    extent = extent if extent > 0.0 else 1.0
    if perspective:
        focal = float(half.min()) / math.tan(_FIELD / 2.0)
        middle, back = np.zeros(2), 0.0
        least = float(np.max(depth + radii)) + _AWAY * extent
        for _ in range(_LENSES):
            slope = half / focal
            lean = radii[:, None] * np.sqrt(1.0 + slope**2)
            high = np.max(sides + slope * depth[:, None] + lean, axis=0)
            low = np.max(-sides + slope * depth[:, None] + lean, axis=0)
            middle, back = (high - low) / 2.0, float(np.max((high + low) / (2.0 * slope)))
            if back >= least:
                break
            focal *= 1.5  # a longer focal length from farther away, so that near objects do not look huge
        back = max(back, least)  # content without size fits at any focal length
    else:
        high = np.max(sides + radii[:, None], axis=0)
        low = np.min(sides - radii[:, None], axis=0)
        middle = (high + low) / 2.0
        focal = float(np.min(2.0 * half / np.maximum(high - low, 1e-6 * extent)))
        back = float(np.max(depth + radii)) + extent
    position = axes.T @ np.array([middle[0], middle[1], back])
    return Camera(position, axes, focal, centre, perspective, nearest=_NEAREST * extent)
