"""The obstacles of a world in a browser's scene."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.draw.obstacles import Around, Surroundings, tones_of
from synovia.draw.theme import Theme
from synovia.model.geometry import Array, matrix_to_quat
from synovia.model.shapes.world import World
from synovia.surface import Part
from synovia.surface.solids import world_surface
from synovia.viewer.scene.handles import move_node

if TYPE_CHECKING:
    from viser import ClientHandle

_WALL: Final = 0.3  # opacity of pieces of half-spaces
_MANY: Final = 200  # with more obstacles than this, one mesh has all obstacles of a colour, which is faster to draw


class Obstacles:
    """The obstacles around a body.

    Args:
        client: The browser.
        world: The obstacles, in the unit and with the axis of the body.
        theme: Colours.
        scale: Scene units per length unit.
        up: Unit vector that points up, (3,).
    """

    def __init__(self, client: ClientHandle, world: World, theme: Theme, scale: float, up: Array) -> None:
        """Make the meshes of all obstacles except half-spaces."""
        self._client, self._scale, self._world = client, scale, world
        self._surroundings = Surroundings(world, theme, up)
        self._meshes: list[tuple[int, Any]] = []  # index of the colour, and the mesh
        self._single: list[tuple[str, Any]] = []  # obstacle names, each with a mesh of only this obstacle
        self._wall: Any = None
        groups: dict[tuple[int, bool, int], list[Part]] = {}
        for part in world_surface(world, tones_of(theme)).parts:
            row = int(part.rows[0])
            alone = row if len(world) <= _MANY else -1
            groups.setdefault((alone, part.flat, row % len(tones_of(theme))), []).append(part)
        for number, ((row, flat, tone), parts) in enumerate(groups.items()):
            place = world.transforms[row] if row >= 0 else np.eye(4)
            moves = [np.eye(4) if row >= 0 else world.transforms[int(part.rows[0])] for part in parts]
            points = [p.vertices @ T[:3, :3].T + T[:3, 3] for p, T in zip(parts, moves, strict=True)]
            starts = np.cumsum([0, *map(len, points[:-1])])
            mesh = client.scene.add_mesh_simple(
                f"/world/{number}",
                (np.concatenate(points) * scale).astype(np.float32),
                np.concatenate([p.faces + at for p, at in zip(parts, starts, strict=True)]).astype(np.uint32),
                color=tones_of(theme)[tone],
                flat_shading=flat,
                side="double",
                position=tuple(place[:3, 3] * scale),
                wxyz=np.roll(matrix_to_quat(place[:3, :3]), 1),
            )
            self._meshes.append((tone, mesh))
            if row >= 0:
                self._single.append((world.names[row], mesh))

    def on_drag(self, action: Callable[[str, Any], None]) -> None:
        """Register a function that gets the name of a dragged obstacle, and viser's event."""

        def listen(name: str, mesh: Any) -> None:
            async def dragged(event: Any) -> None:
                action(name, event)

            mesh.on_drag("left")(dragged)

        for name, mesh in self._single:
            listen(name, mesh)

    def show(self, world: World | None) -> None:
        """Show the obstacles at their current positions."""
        if world is None or world is self._world:
            return
        self._world = world
        for name, mesh in self._single:
            move_node(mesh, world[name].transform[:3, 3] * self._scale)

    def around(self, middle: Array, size: float) -> float | None:
        """Show pieces of the half-spaces around a body; return the height of the floor, or None without a floor.

        Args:
            middle: Centre of the body, (3,), length units.
            size: Size of the body, length units.
        """
        around: Around = self._surroundings.around(middle, size)
        if around.walls is not None:
            self._wall = self._client.scene.add_mesh_simple(
                "/world/walls",
                (around.walls.vertices * self._scale).astype(np.float32),
                around.walls.faces.astype(np.uint32),
                color=self._surroundings.theme.wall,
                opacity=_WALL,
                side="double",
                cast_shadow=False,
            )
        return around.floor

    def set_theme(self, theme: Theme) -> None:
        """Change to the colours of another theme."""
        for tone, mesh in self._meshes:
            mesh.color = tones_of(theme)[tone]
        if self._wall is not None:
            self._wall.color = theme.wall
