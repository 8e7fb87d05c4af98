"""Settings of gizmos (axes and steps of moves and rotations), and the poses that the browser reports for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from synovia.model.geometry import Array, quat_to_matrix

ANGLE: Final = math.radians(15.0)  # radians; default step of rotations
_METERS: Final = 0.05  # metres; default step of moves
_SHARE: Final = 0.03  # default step without a known unit, fraction of the body's size; rounded to a power of ten
_STILL: Final = 1e-6  # scene units and quaternion components; smaller changes are not sent


@dataclass(slots=True)
class Handles:
    """Settings of the gizmos of one page.

    Args:
        length: Step of moves, length units.
        angle: Step of rotations, radians.
        local: Whether the axes are those of the moved object; otherwise they are the world axes.
        snap: Whether moves and rotations snap to steps.
    """

    length: float
    angle: float = ANGLE
    local: bool = True
    snap: bool = False

    def moved(self, start: Array, to: Array, axes: Array, *, held: bool = False) -> Array:
        """Return the end of a drag: ``to``, or, with snapping, the nearest point that is whole steps from the start.

        Args:
            start: Position where the drag started, (3,), length units.
            to: Position under the pointer, (3,), length units.
            axes: Directions of the steps, the columns of a rotation matrix, (3, 3).
            held: Whether the user holds the key that snaps.
        """
        if not (self.snap or held):
            return to
        return start + axes @ (np.round(axes.T @ (to - start) / self.length) * self.length)

    def turned(self, vector: Array) -> Array:
        """Return the rotation since the start of a drag as a rotation vector, (3,); with snapping, in whole steps."""
        angle = float(np.linalg.norm(vector))
        if not self.snap or angle < 1e-9:
            return vector
        return vector * (round(angle / self.angle) * self.angle / angle)


def first_length(size: float, meters_per_unit: float | None) -> float:
    """Return the default step of moves, length units: 5 cm for a person, less for a small body.

    Args:
        size: Size of the body, length units.
        meters_per_unit: Metres per length unit; None if unknown.
    """
    known = _METERS / meters_per_unit if meters_per_unit else math.inf
    return min(known, 10.0 ** round(math.log10(_SHARE * size)))


def move_node(handle: Any, position: Array, rotation: Array | None = None) -> None:
    """Move a node of the scene to a position (3,) and a rotation (4,; wxyz).

    Nothing is sent if the node is already there. Most nodes do not move, and this comparison is faster than viser's.
    """
    if not _is_near(handle.position, position):
        handle.position = tuple(position.tolist())
    if rotation is not None and not _is_near(handle.wxyz, rotation):
        handle.wxyz = tuple(rotation.tolist())


def _is_near(at: Array, to: Array) -> bool:
    """Return whether two vectors are equal within ``_STILL``."""
    return all(abs(a - b) <= _STILL for a, b in zip(at.tolist(), to.tolist(), strict=True))


def dragged_to(handle: Any) -> tuple[Array, Array] | None:
    """Return the position (3,), scene units, and the rotation (3, 3) of a gizmo; None if the browser sent no pose."""
    place, (w, x, y, z) = np.array(handle.position, float), handle.wxyz
    length = math.sqrt(w * w + x * x + y * y + z * z)
    if not (math.isfinite(length) and length > 1e-6 and np.isfinite(place).all()):
        return None
    return place, quat_to_matrix(np.array([x, y, z, w]) / length)
