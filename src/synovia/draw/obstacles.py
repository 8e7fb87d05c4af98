"""The obstacles of a world in a picture: parts near the body, cut off far away and below the floor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.draw.camera import Camera
from synovia.draw.surfaces import Mesh, Skin
from synovia.draw.theme import Colour, Theme
from synovia.model.geometry import Array, unit
from synovia.model.shapes.solids import HalfSpace
from synovia.model.shapes.world import World
from synovia.surface.solids import world_surface

_TONES: Final = (1.0, 0.86, 1.08, 0.94)  # relative brightness of obstacles in turn, so that neighbours differ
# distances from the middle of the body, as multiples of its size
_FAR: Final = 8.0  # obstacles are cut off at this distance
_CAST: Final = 2.0  # obstacles within this distance cast shadows; half-spaces within this distance are drawn
_NEAR: Final = 0.9  # the camera shows obstacles within this distance
_WALL: Final = 1.1  # half the width of the drawn piece of a wall, as a multiple of the body's size
_AHEAD: Final = 1.5  # smallest depth that is drawn, as a multiple of the camera's ``nearest``
_LEVEL: Final = 1e-6  # largest sine of the angle between a floor and the horizontal


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """Drawable parts of the obstacles around a body.

    Args:
        solid: The obstacles; None without any.
        cast: Parts of the obstacles that cast shadows; None without any.
        walls: Transparent pieces of half-spaces other than floors; None without any.
        floor: Height of the highest floor along up, length units; None without a floor.
        hull: Vertices of nearby obstacles, (n, 3), to which the camera is fitted.
    """

    solid: Mesh | None
    cast: Mesh | None
    walls: Mesh | None
    floor: float | None
    hull: Array


class Surroundings:
    """The obstacles of a world as triangles.

    Args:
        world: The world, in the unit and with the axis of the body.
        theme: Colours.
        up: Unit vector that points up, (3,).
    """

    def __init__(self, world: World, theme: Theme, up: Array) -> None:
        """Make the triangles."""
        self._up, self.theme = up, theme
        surface = world_surface(world, tones_of(theme))
        frames = np.concatenate([world.transforms[:, :3, :3].reshape(-1, 9), world.transforms[:, :3, 3]], axis=1)
        self._mesh = Skin(surface).at(frames) if surface.parts else None
        planes = [*_half_spaces(world)]
        level = [float(np.linalg.norm(np.cross(plane.normal, up))) <= _LEVEL for plane in planes]
        floors = [plane for plane, flat in zip(planes, level, strict=True) if flat and float(plane.normal @ up) > 0.0]
        self._floor = max((float(plane.point @ up) for plane in floors), default=None)
        self._walls = [plane for plane in planes if all(plane is not floor for floor in floors)]

    def around(self, middle: Array, size: float) -> Around:
        """Return the drawable parts of the obstacles around a body.

        Args:
            middle: Middle of the body, (3,).
            size: Size of the body, length units.
        """
        mesh = _inside(self._mesh, middle, _FAR * size)
        if self._floor is not None and mesh is not None:
            mesh = cut(mesh, self._floor * self._up, -self._up)
        shown = _inside(mesh, middle, _NEAR * size)
        hull = np.empty((0, 3)) if shown is None else shown.vertices
        walls = [wall for plane in self._walls if (wall := self._wall(plane, middle, size)) is not None]
        return Around(mesh, _inside(mesh, middle, _CAST * size), _joined(walls), self._floor, hull)

    def _wall(self, plane: HalfSpace, middle: Array, size: float) -> Mesh | None:
        """Return the piece of a half-space that is nearest to a body; None if it is too far away or below the floor."""
        normal = plane.normal
        foot = middle - float((middle - plane.point) @ normal) * normal
        if float(np.linalg.norm(foot - middle)) > _CAST * size:
            return None
        across = np.cross(self._up, normal)
        across = unit(across) if float(np.linalg.norm(across)) > _LEVEL else np.roll(self._up, 1)
        along = np.cross(normal, across)
        corners = [foot + _WALL * size * (u * across + v * along) for u, v in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        colour = np.broadcast_to((np.array(self.theme.wall) / 255.0) ** 2.2, (4, 3)).astype(np.float32)
        normals = np.broadcast_to(normal, (4, 3)).astype(np.float32)
        mesh = Mesh(np.array(corners), normals, np.array([(0, 1, 2), (0, 2, 3)], np.intp), colour)
        return mesh if self._floor is None else cut(mesh, self._floor * self._up, -self._up)


def cut(mesh: Mesh, point: Array, normal: Array) -> Mesh | None:
    """Return the part of a mesh behind a plane; None if the mesh is completely in front.

    Args:
        mesh: The mesh, without textures.
        point: A point of the plane, (3,).
        normal: Normal of the plane towards the part to cut off, (3,).
    """
    height = (mesh.vertices - point) @ normal
    inside = height <= 0.0
    if inside.all():
        return mesh
    count = inside[mesh.faces].sum(axis=1)
    whole = mesh.faces[count == 3]
    odd = mesh.faces[(count == 1) | (count == 2)]
    # for each cut triangle, whether one corner remains; otherwise two remain
    alone = inside[odd].sum(axis=1) == 1
    first = np.argmax(inside[odd] == alone[:, None], axis=1)
    a, b, c = (np.take_along_axis(odd, ((first + k) % 3)[:, None], axis=1)[:, 0] for k in range(3))
    start = len(mesh.vertices)
    ab, ac = start + np.arange(len(odd)), start + len(odd) + np.arange(len(odd))
    ends = np.concatenate([np.stack([a, b], axis=1), np.stack([a, c], axis=1)])
    share = height[ends[:, 0]] / (height[ends[:, 0]] - height[ends[:, 1]])
    three = np.stack([a, ab, ac], axis=1)[alone]
    four = np.stack([ab, b, c, ac], axis=1)[~alone]
    out = np.concatenate([whole, three, four[:, :3], four[:, [0, 2, 3]]])
    if not len(out):
        return None

    def more(values: NDArray[Any]) -> NDArray[Any]:
        weight = share[:, None].astype(values.dtype)
        return np.concatenate([values, values[ends[:, 0]] * (1 - weight) + values[ends[:, 1]] * weight])

    kept, faces = np.unique(out, return_inverse=True)
    vertices, normals, colours = (more(values)[kept] for values in (mesh.vertices, mesh.normals, mesh.colours))
    return replace(mesh, vertices=vertices, normals=normals, colours=colours, faces=faces.reshape(-1, 3))


def in_front(mesh: Mesh, camera: Camera) -> Mesh | None:
    """Return the part of a mesh in front of a camera, with its mesh ``behind`` cut as well; None if there is none."""
    edge = camera.position - _AHEAD * camera.nearest * camera.axes[2]
    ahead = mesh if mesh.corners is not None else cut(mesh, edge, camera.axes[2])
    if ahead is None or ahead.behind is None:
        return ahead
    return replace(ahead, behind=in_front(ahead.behind, camera))


def _inside(mesh: Mesh | None, middle: Array, reach: float) -> Mesh | None:
    """Return the part of a mesh inside a cube with half-width ``reach`` around a point; None if no part is inside."""
    for axis in np.concatenate([np.eye(3), -np.eye(3)]):
        mesh = None if mesh is None else cut(mesh, middle + reach * axis, axis)
    return mesh


def _joined(meshes: list[Mesh]) -> Mesh | None:
    """Return meshes joined to one mesh; None without any."""
    out: Mesh | None = None
    for mesh in meshes:
        out = mesh if out is None else out.joined(mesh)
    return out


def _half_spaces(world: World) -> Iterator[HalfSpace]:
    """Yield the half-spaces of a world in world coordinates."""
    for obstacle in world:
        for shape in obstacle.shapes:
            if isinstance(shape, HalfSpace):
                yield shape.moved(obstacle.transform)


def tones_of(theme: Theme) -> list[Colour]:
    """Return the colours that obstacles get, one after the other."""
    return [_toned(theme.obstacle, tone) for tone in _TONES]


def _toned(colour: Colour, tone: float) -> Colour:
    """Return a colour with scaled brightness."""
    red, green, blue = (min(round(tone * part), 255) for part in colour)
    return red, green, blue
