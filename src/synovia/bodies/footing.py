"""Find where a foot stands on a world: the rigid motion of its sole from a level floor to the surface below."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model.anatomy.feet import frames_text
from synovia.model.geometry import Array, align_z, cross, rigid, unit
from synovia.model.shapes.world import World
from synovia.text import counted, first_few

HEEL: Final = -0.35  # position of the heel relative to the ankle, in units of the distance from ankle to toes
HALF_WIDTH: Final = 0.25  # half the width of a sole, in units of the distance from ankle to toes
ENOUGH: Final = 0.6  # fraction of the sole that must be on the surface; the rest may be over an edge
_STEEPEST: Final = 45.0  # degrees: a steeper surface counts as a wall; a foot next to it stays level
_SLACK: Final = 0.01  # sole lengths: a point of the sole counts as on the surface up to this height above it
_ROUNDING: Final = 1e-9  # sole lengths: a smaller height difference counts as zero
_FARTHEST: Final = 0.5  # sole lengths: largest displacement of a foot to a better place
_STEP: Final = 0.05  # sole lengths: distance between places that are tried
_ALONG: Final = 9  # sample points along the sole
_ACROSS: Final = 3  # sample points across the sole


@dataclass(frozen=True, eq=False)
class Foothold:
    """A place on a world where a foot stands.

    Args:
        motion: Rigid motion (4, 4) of the foot, from its pose on a level floor.
        height: Height of the surface under the middle of the sole, length units.
        normal: Upward normal of the plane of the sole, (3,).
        obstacle: The obstacle on which the foot stands; None for the floor.
        share: Fraction of the sole on the surface.
        moved: Horizontal displacement of the foot to this place, length units.
    """

    motion: Array
    height: float
    normal: Array
    obstacle: str | None
    share: float
    moved: float

    @property
    def level(self) -> bool:
        """Whether the foot stays exactly where it is on the level floor."""
        return bool((self.motion == np.eye(4)).all())


@dataclass(frozen=True, eq=False)
class Sole:
    """The sole of a foot on a level floor.

    Args:
        middle: Middle of the sole, (3,), at the height of the floor.
        ahead: Horizontal vector from heel to toes, (3,).
        up: Upward direction, (3,).
    """

    middle: Array
    ahead: Array
    up: Array

    @classmethod
    def below(cls, ankle: Array, toe: Array, floor: float, up: Array, size: float) -> Sole:
        """Return the sole below an ankle and the end of the toes.

        Args:
            ankle: The ankle, (3,).
            toe: The end of the toes, (3,).
            floor: Height of the floor.
            up: Upward direction, (3,).
            size: Length of the sole of a foot without toes.
        """
        flat = [point - (point @ up - floor) * up for point in (ankle, toe)]
        way = flat[1] - flat[0]
        if np.linalg.norm(way) < 0.5 * size:
            return cls(flat[0], size * align_z(up)[:, 0], up)
        heel = flat[0] + HEEL * way
        return cls(0.5 * (heel + flat[1]), flat[1] - heel, up)

    @property
    def length(self) -> float:
        """Length of the sole, length units."""
        return float(np.linalg.norm(self.ahead))

    def points(self, along: int = _ALONG, across: int = _ACROSS) -> Array:
        """Return points on the sole, in rows along it, (n, 3)."""
        side = cross(self.up, self.ahead) * (HALF_WIDTH / (1.0 - HEEL))
        grid = [
            self.middle + u * self.ahead + v * side
            for u in np.linspace(-0.5, 0.5, along)
            for v in np.linspace(-1.0, 1.0, across)
        ]
        return np.array(grid)

    def ways(self) -> Array:
        """Return horizontal displacements of the foot to try, (n, 3), the shortest first; the first is zero."""
        ahead, side = self.ahead, cross(self.up, self.ahead)
        count = round(_FARTHEST / _STEP)
        steps = [(i, j) for i in range(-count, count + 1) for j in range(-count, count + 1, 2)]
        near = sorted((step for step in steps if np.hypot(*step) <= count), key=lambda step: np.hypot(*step))
        return np.array([_STEP * (i * ahead + j * side) for i, j in near])


def foothold(world: World, sole: Sole, floor: float, level: float, step: float) -> Foothold:
    """Find where a foot stands on a world, near its pose on a level floor.

    If at least the fraction ``ENOUGH`` of the sole is on one plane and nothing is above this plane, the foot stands
    there, and the rest of the sole is over an edge. Otherwise the foot moves horizontally to the nearest place where
    this holds, by at most half its length. If there is none, as on stones, the sole rests on the highest points around
    its middle, like a plate.

    Args:
        world: The world.
        sole: The sole on the floor.
        floor: Height of the floor where no obstacle is below.
        level: Height of the ground of the previous contact.
        step: Largest height of a foothold above ``level``; a higher surface counts as a wall, or as above the body.
    """
    up, points, ways = sole.up, sole.points(), sole.ways()
    tried = (points + ways[:, None]).reshape(-1, 3)
    tried = tried + (level + step - tried @ up)[:, None] * up
    ground = world.ground(tried, up)
    known = np.isfinite(ground.heights)
    high = np.where(known, ground.heights, floor).reshape(len(ways), -1)
    normals = ground.normals.reshape(len(ways), -1, 3)
    slack = _SLACK * sole.length
    flat = points - sole.middle
    best: tuple[int, Array, float, float] | None = None
    for k in range(len(ways)):
        found = _plane(flat, high[k], normals[k], up, slack)
        if found is not None and found[1] >= ENOUGH and found[2] <= level + step:  # higher surfaces are walls
            best = (k, *found)
            break
    if best is None:
        low = np.where(high[0] > level + step, level, high[0])  # in front of a wall, the foot stays on the ground
        normal, height = _resting(flat, low, up)
        share = float((low >= height + flat @ _slope(normal, up) - slack).mean())
        best = (0, normal, share, height)
    k, normal, share, height = best
    at = len(points) * k + int(np.argmin(np.abs(high[k] - height) + np.linalg.norm(flat, axis=1)))
    rise = height - float(sole.middle @ up)
    if abs(rise) < _ROUNDING * sole.length:
        rise = 0.0
    return Foothold(
        _motion(sole, normal, ways[k], rise), height, normal, ground.obstacles[at], share,
        float(np.linalg.norm(ways[k])),
    )  # fmt: skip


def standing_lines(footholds: Sequence[Sequence[Foothold]], missed: Sequence[int] = ()) -> list[str]:
    """Return report lines about where feet stand on a world; none without footholds."""
    holds = [hold for own in footholds for hold in own]
    if not holds:
        return []
    names = list(dict.fromkeys(hold.obstacle or "floor" for hold in holds))
    line = f"stands on {first_few(names)}"
    if moved := sum(hold.moved > 0.0 for hold in holds):
        line += f"; {counted(moved, 'contact')} of {len(holds)} moved to better ground"
    if few := sum(hold.share < ENOUGH for hold in holds):
        line += f"; {counted(few, 'contact')} with less than {100.0 * ENOUGH:.0f} % of the sole on the ground"
    return [line, *([f"does not reach the ground in {frames_text(missed)}"] if missed else [])]


def _motion(sole: Sole, normal: Array, way: Array, rise: float) -> Array:
    """Return the rigid motion of a foot whose sole rotates about its middle and then translates."""
    if (normal == sole.up).all():
        return rigid(way + rise * sole.up)
    R = smallest_turns(sole.up, normal)
    return rigid(sole.middle - R @ sole.middle + way + rise * sole.up, R)


def smallest_turns(up: Array, normals: Array) -> Array:
    """Return the smallest rotations (..., 3, 3) from ``up`` to normals (..., 3) with positive upward parts."""
    axis = np.cross(up, normals)
    K = np.zeros((*normals.shape, 3))
    for (i, j), k, sign in (((1, 0), 2, 1), ((2, 0), 1, -1), ((2, 1), 0, 1)):
        K[..., i, j], K[..., j, i] = sign * axis[..., k], -sign * axis[..., k]
    return np.eye(3) + K + K @ K / (1.0 + normals @ up)[..., None, None]


def _slope(normal: Array, up: Array) -> Array:
    """Return the horizontal gradient of the height of planes, (..., 3)."""
    rise = np.sum(normal * up, axis=-1, keepdims=True)
    return -(normal - rise * up) / rise


def _plane(flat: Array, high: Array, normals: Array, up: Array, slack: float) -> tuple[Array, float, float] | None:
    """Return the plane through a point of the ground that supports most of a sole, with nothing above the plane.

    Args:
        flat: Points of the sole about its middle, (n, 3).
        high: Height of the ground under each point, (n,).
        normals: Normal of the ground under each point, (n, 3).
        up: Upward direction, (3,).
        slack: Height difference up to which a point counts as on the plane.

    Returns:
        The plane's normal, the fraction of points on it, and its height under the middle; None without such a plane.
    """
    walks = normals @ up >= np.cos(np.radians(_STEEPEST))
    if not walks.any():
        return None
    slopes = _slope(np.where(walks[:, None], normals, up), up)
    planes = high[:, None] + np.einsum("kj,kij->ki", slopes, flat[None] - flat[:, None])
    holds = walks & (high <= planes + slack).all(axis=1)
    if not holds.any():
        return None
    shares = np.where(holds, (high >= planes - slack).mean(axis=1), -1.0)
    k = int(np.argmax(shares))
    lift = max(0.0, float((high - planes[k]).max()))  # at most the slack: no point penetrates
    return normals[k], float(shares[k]), float(high[k] - slopes[k] @ flat[k]) + (lift if lift > 1e-12 else 0.0)


def _resting(flat: Array, high: Array, up: Array) -> tuple[Array, float]:
    """Return normal and height of the plane in which a plate loaded at its middle rests on points.

    This is the plane above all points that is lowest at the middle; a level plane if the lowest plane is too steep.
    """
    axes = align_z(up)[:, :2]
    at = flat @ axes
    few = np.unique(np.linspace(0, len(flat) - 1, min(len(flat), 15)).round().astype(int))
    best = (float(high.max()), np.zeros(2))
    for rows in itertools.combinations(few.tolist(), 3):
        matrix = np.column_stack([at[list(rows)], np.ones(3)])
        if abs(np.linalg.det(matrix)) < 1e-12 * float(np.abs(at).max()) ** 2:
            continue
        *slope, height = np.linalg.solve(matrix, high[list(rows)]).tolist()
        over = float((high - at @ slope - height).max())  # points that are not in ``few`` may be above
        if height + max(over, 0.0) < best[0]:
            best = (height + max(over, 0.0), np.array(slope))
    normal = unit(up - axes @ best[1])
    if normal @ up < np.cos(np.radians(_STEEPEST)):
        return up, float(high.max())
    return normal, best[0]
