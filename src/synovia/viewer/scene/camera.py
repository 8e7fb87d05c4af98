"""The camera of the live page: in front of the body, not behind an obstacle, and along with a body that walks away."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from synovia.draw.rods import ahead_of
from synovia.model import Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import Array, exp_matrix
from synovia.model.shapes.solids import Capsule
from synovia.viewer.editing.state import State
from synovia.viewer.serving.view import Aim

_SIZE: Final = 1.7  # size of a body with an unknown or unusual unit, scene units
_HUMAN_SCALE: Final = (0.2, 20.0)  # metres; a body with a size in this range is shown in metres
_VIEW: Final = 0.8  # vertical field of view, radians; a wider field would distort near parts
_GLANCES: Final = 12  # number of poses of a clip that determine the first view
_TILT: Final = 1e-3  # tilt of the view from above, so that the front of the body is at the bottom
_FILLED: Final = 0.9  # largest fraction of the width and height (on a phone, of the upper half) that joints fill
_PHONE: Final = 0.7  # ratio of width to height; a page with a smaller ratio is treated as a phone
_LEVEL: Final = 0.2  # least horizontal part of the unit vector between the legs for which it shows where a body faces
_ASIDE: Final = (0.0, 30.0, -30.0, 60.0, -60.0, 90.0, -90.0, 135.0, -135.0, 180.0)  # degrees: turns tried, in order
_CLEAR: Final = 0.03  # smallest distance of obstacles from the line of sight, fraction of the body's size
_SLACK: Final = 0.1  # distance that a body may go before the camera follows, fraction of its size


def scene_scale(state: State) -> float:
    """Return scene units per length unit: metres for a known unit and usual size, else a scale to human size."""
    extent = float(np.linalg.norm(np.ptp(state.given.rest_pose().positions, axis=0))) or state.size
    unit = state.given.meters_per_unit
    if unit is not None and _HUMAN_SCALE[0] <= extent * unit <= _HUMAN_SCALE[1]:
        return unit
    return _SIZE / extent


def facing(skeleton: Skeleton, positions: Array) -> Array:
    """Return the horizontal unit vector, (3,), that a body faces, from the positions of its legs, else as at rest.

    Args:
        skeleton: The given skeleton.
        positions: Positions of its joints, (n, 3).
    """
    up, rows = find_up(skeleton).vector, skeleton.role_rows
    legs = [rows.get(f"{side}_upper_leg") for side in ("left", "right")]
    if legs[0] is not None and legs[1] is not None:
        left = positions[legs[0]] - positions[legs[1]]
        ahead = np.asarray(np.cross(left, up), float)
        if np.linalg.norm(ahead) > _LEVEL * np.linalg.norm(left) > 0.0:
            return ahead / np.linalg.norm(ahead)
    return ahead_of(skeleton)


def first_aim(state: State) -> Aim:
    """Return a camera in front of the body, a little above and to the side of it."""
    up = find_up(state.given).vector
    size = float(np.linalg.norm(np.ptp(state.start().positions * scene_scale(state), axis=0))) or 1.0
    return Aim(up, *viewpoint(state, 1.0), fov=_VIEW, near=0.01 * size, far=100.0 * size)


def viewpoint(state: State, aspect: float) -> tuple[Array, Array]:
    """Return the position (3,) and the target (3,) of a camera in front of the whole body, scene units.

    The camera follows the body, so all poses of the clip must fit into the view, but not the path of the body.

    Args:
        state: The state.
        aspect: Width of the scene over its height.
    """
    up, scale = find_up(state.given).vector, scene_scale(state)
    times = [state.play.time, *np.linspace(*state.play.span, _GLANCES).tolist()]
    poses = np.array([state.start(time).positions[state.rooted.added :] for time in times]) * scale
    middles = poses.mean(axis=1)
    seen = poses + (middles[0] - middles)[:, None]
    ahead = facing(state.given, poses[0])
    way = 0.89 * ahead + 0.39 * np.cross(up, ahead) + 0.23 * up
    return unhidden(state, np.concatenate(seen), aspect, way, poses[0])


def unhidden(
    state: State, positions: Array, aspect: float, way: Array, body: Array | None = None
) -> tuple[Array, Array]:
    """Return the camera of ``seen_from``, turned about the body if an obstacle would hide the body."""
    up, scale = find_up(state.given).vector, scene_scale(state)
    first = None
    for angle in _ASIDE:
        at, target = seen_from(positions, up, aspect, exp_matrix(math.radians(angle) * up) @ way, body)
        first = (at, target) if first is None else first
        if state.world is None:
            break
        middle = (positions if body is None else body).mean(axis=0)
        sight = Capsule(a=at / scale, b=middle / scale, radius=_CLEAR * state.size)
        if all(contact.distance > 0.0 for contact in state.world.distances(sight).values()):
            return at, target
    return first or seen_from(positions, up, aspect, way, body)


class Leash:
    """The point that the camera follows: it stays while the body moves a little, and follows a body that goes away.

    Args:
        size: Size of the body, scene units.

    Attributes:
        on: Whether the camera follows the body.
        moved: Displacement of the camera since the first pose, (3,), scene units.
    """

    def __init__(self, size: float) -> None:
        """Start without a point."""
        self.on = True
        self._slack, self._behind = _SLACK * size, None
        self.moved = np.zeros(3)

    def begin(self) -> None:
        """Restart at the next pose, which the camera already shows."""
        self._behind = None

    def pull(self, positions: Array) -> None:
        """Follow the positions of the joints, (n, 3), scene units."""
        middle = positions.mean(axis=0)
        self._behind = middle - self.moved if self._behind is None or not self.on else self._behind
        lead = middle - self._behind - self.moved
        away = float(np.linalg.norm(lead))
        if away > self._slack:
            self.moved = self.moved + (1.0 - self._slack / away) * lead


def seen_from(positions: Array, up: Array, aspect: float, way: Array, body: Array | None = None) -> tuple[Array, Array]:
    """Return the position (3,) and the target (3,) of a camera that sees all joints.

    Args:
        positions: Positions of the joints, (n, 3), scene units.
        up: Upward direction, (3,).
        aspect: Width of the scene over its height. On a phone, the panel covers the lower part.
        way: Direction from the body to the camera, (3,).
        body: Joint positions of one pose, (m, 3), that determine a comfortable distance; None to use ``positions``.
    """
    middle = (positions.max(axis=0) + positions.min(axis=0)) / 2.0
    one = positions if body is None else body
    size = float(np.linalg.norm(np.ptp(one, axis=0))) or 1.0
    high = float(np.ptp(one @ up))
    wide = float(np.linalg.norm(np.ptp(one - np.outer(one @ up, up), axis=0)))
    phone = aspect < _PHONE
    share = 0.35 if phone else 0.7  # fraction of the height for the body
    half = math.tan(0.5 * _VIEW)
    away = max(0.5 * high / share, 0.57 * wide / min(aspect, 1.15), 0.3 * size) / half + 0.25 * wide
    ends = positions - middle  # joints nearer to the camera than the middle need more distance
    right = np.cross(up, way)
    if np.linalg.norm(right) > _TILT:
        right /= np.linalg.norm(right)
        sideways, above = np.abs(ends @ right) / aspect, np.abs(ends @ np.cross(way, right)) * (2.0 if phone else 1.0)
        away = max(away, float((ends @ way + np.maximum(sideways, above) / (_FILLED * half)).max()))
    at = middle - (0.5 * away * half if phone else 0.0) * up
    return at + away * way, at
