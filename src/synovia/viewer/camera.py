"""From where a browser looks at a body, and how large the body is there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from synovia.draw.camera import direction
from synovia.draw.scene import up_of
from synovia.model.geometry import Array
from synovia.viewer.session import Session

if TYPE_CHECKING:
    from viser import ViserServer

_TALL: Final = 1.7  # size of a body in scene units where its file names no unit
_SANE: Final = (0.2, 20.0)  # metres; a body of known unit within is shown in metres
_VIEW: Final = 0.8  # radians from the bottom of the page to its top; a wide angle would bend what is near
_TALL_PAGE: Final = 0.7  # width over height of a page below which it is a telephone's


def scene_scale(session: Session) -> float:
    """Return scene units per length unit: metres where the file names its unit, else a body of human size."""
    extent = float(np.linalg.norm(np.ptp(session.given.rest_pose().positions, axis=0))) or session.reach
    unit = session.given.meters_per_unit
    if unit is not None and _SANE[0] <= extent * unit <= _SANE[1]:
        return unit
    return _TALL / extent


def aim_camera(server: ViserServer, session: Session) -> None:
    """Let every browser look at the body from its front, a little from above and from the side."""
    up = direction(up_of(session.given), "y")
    size = float(np.linalg.norm(np.ptp(session.pose.positions * scene_scale(session), axis=0))) or 1.0
    server.scene.set_up_direction(tuple(up.tolist()))
    camera = server.initial_camera
    camera.up = up
    camera.position, camera.look_at = viewpoint(session, 1.0)
    camera.fov = _VIEW
    camera.near, camera.far = 0.01 * size, 100.0 * size


def viewpoint(session: Session, aspect: float) -> tuple[Array, Array]:
    """Return from where, (3,), and at which point, (3,), a camera sees the whole body, scene units.

    Args:
        session: The session.
        aspect: Width of the scene over its height. On a tall one, a telephone's, the panel covers what is below.
    """
    up = direction(up_of(session.given), "y")
    positions = session.pose.positions[session.rooted.added :] * scene_scale(session)
    middle = (positions.max(axis=0) + positions.min(axis=0)) / 2.0
    size = float(np.linalg.norm(np.ptp(positions, axis=0))) or 1.0
    high = float(np.ptp(positions @ up))
    wide = float(np.linalg.norm(np.ptp(positions - np.outer(positions @ up, up), axis=0)))
    tall = aspect < _TALL_PAGE
    room = 0.35 if tall else 0.7  # of the height, for the body
    half = math.tan(0.5 * _VIEW)
    away = max(0.5 * high / room, 0.57 * wide / min(aspect, 1.15), 0.3 * size) / half + 0.25 * wide
    ahead = direction(session.given.forward, "z") if session.given.forward else _ahead(up)
    side = np.cross(up, ahead)
    at = middle - (0.5 * away * half if tall else 0.0) * up
    return at + away * (0.89 * ahead + 0.39 * side + 0.23 * up), at


def _ahead(up: Array) -> Array:
    """Return the direction that a body is looked at from where its file names no front."""
    return np.array([0.0, 0.0, 1.0]) if abs(up[2]) < 0.5 else np.array([1.0, 0.0, 0.0])
