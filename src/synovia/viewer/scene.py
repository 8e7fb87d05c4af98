"""What a browser shows in three dimensions: the body, its limits, the floor, and other solvers as ghosts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.draw.camera import direction
from synovia.draw.scene import up_of
from synovia.draw.theme import THEMES, Theme
from synovia.geometry import Array
from synovia.skeleton import Pose
from synovia.viewer.bodies import Build, ball, build, limit_arcs, rod
from synovia.viewer.engine import Frame
from synovia.viewer.session import Session
from synovia.viewer.skin import Skin
from synovia.viewer.surface import Surface
from synovia.viewer.targets import Targets

if TYPE_CHECKING:
    from viser import ClientHandle, ViserServer

_TALL: Final = 1.7  # size of a body in scene units where its file names no unit
_SANE: Final = (0.2, 20.0)  # metres; a body of known unit within is shown in metres
_LIMIT: Final = (214, 158, 46)
_FLOORS: Final = ("yz", "xz", "xy")  # across x, y, z
_VIEW: Final = 0.8  # radians from the bottom of the page to its top; a wide angle would bend what is near
_SEGMENTS: Final = 4000  # line segments of limits; more would fill the line to the browser


def scene_scale(session: Session) -> float:
    """Return scene units per length unit: metres where the file names its unit, else a body of human size."""
    extent = float(np.linalg.norm(np.ptp(session.given.rest_pose().positions, axis=0))) or session.reach
    unit = session.given.meters_per_unit
    if unit is not None and _SANE[0] <= extent * unit <= _SANE[1]:
        return unit
    return _TALL / extent


class Scene:
    """One browser's scene of one session.

    Args:
        client: The browser.
        session: The session.
        on_select: Called when a target is clicked or grabbed, with its key.
        surface: What the body looks like.
        dark: Whether the background is dark.
        shadows: Whether the body throws a shadow.
    """

    def __init__(
        self,
        client: ClientHandle,
        session: Session,
        on_select: Callable[[int], None],
        surface: Surface,
        *,
        dark: bool = False,
        shadows: bool = True,
    ) -> None:
        """Put the body, the floor and the camera in place."""
        self.client, self.session = client, session
        self.scale = scene_scale(session)
        self.theme: Theme = THEMES["dark" if dark else "light"]
        self.arcs = "selected"
        self.shadows = shadows
        self._up = direction(up_of(session.given), "y")
        pose = session.given.rest_pose()
        self.size = float(np.linalg.norm(np.ptp(pose.positions, axis=0)) * self.scale) or 1.0
        self._build: Build = build(session.given, self.theme, self.scale)
        self._runners: list[Any] = []
        self._rims: dict[int, Array] = {}
        self.targets = Targets(
            client, session, self.theme, scale=self.scale, size=self.size, up=self._up, on_select=on_select
        )
        self._make()
        world = session.pose.frames[session.rooted.added :]
        self._skin = Skin(client, surface, scale=self.scale, world=world, shadows=shadows)

    # --- made once --------------------------------------------------------------------------------------------------

    def _make(self) -> None:
        """Make what stays."""
        scene, theme = self.client.scene, self.theme
        pose = self.session.pose
        positions = pose.positions[self.session.rooted.added :] * self.scale
        scene.configure_default_lights(True, cast_shadow=self.shadows)
        floor = float((positions @ self._up).min()) - 0.01 * self.size
        middle = (positions.max(axis=0) + positions.min(axis=0)) / 2.0
        foot = middle + (floor - middle @ self._up) * self._up
        self._grid = scene.add_grid(
            "/floor",
            width=8.0 * self.size,
            height=8.0 * self.size,
            plane=_FLOORS[int(np.argmax(np.abs(self._up)))],
            cell_size=0.125 * self.size,
            section_size=0.5 * self.size,
            cell_color=theme.grid,
            section_color=theme.grid,
            cell_thickness=0.6,
            section_thickness=1.2,
            fade_distance=6.0 * self.size,
            fade_from="origin",
            shadow_opacity=0.25,
            position=tuple(foot),
        )
        place, turn, scale = self._build.bone_frames(positions)
        self._lengths = scale
        vertices, faces = rod()
        options: Any = {"material": "standard", "lod": "off"}
        self._bones = scene.add_batched_meshes_simple(
            "/body/bones",
            vertices,
            faces,
            batched_wxyzs=turn,
            batched_positions=place,
            batched_scales=scale,
            batched_colors=self._build.bone_colours,
            **options,
        )
        vertices, faces = ball()
        joints = self._build.joints
        self._joints = scene.add_batched_meshes_simple(
            "/body/joints",
            vertices,
            faces,
            batched_wxyzs=np.tile((1.0, 0.0, 0.0, 0.0), (len(joints), 1)),
            batched_positions=positions[joints],
            batched_scales=self._build.round.astype(np.float32),
            batched_colors=self._build.joint_colours,
            **options,
        )
        self._joints.on_drag("left")(self._on_joint)
        nothing = np.zeros((1, 2, 3), np.float32)
        self._limits = scene.add_line_segments(
            "/limits", nothing, _LIMIT, thickness=1.5, thickness_units="screen", visible=False
        )

    def set_theme(self, dark: bool) -> None:
        """Take the colours of the dark or the light page."""
        self.theme = THEMES["dark" if dark else "light"]
        self._build = build(self.session.given, self.theme, self.scale)
        self._bones.batched_colors = self._build.bone_colours
        self._joints.batched_colors = self._build.joint_colours
        self._grid.cell_color = self._grid.section_color = self.theme.grid
        self.targets.set_theme(self.theme)

    def choose_look(self, shown: str) -> None:
        """Show the surface, the bones or both; ``shown`` is one of ``skin.SHOWN``."""
        self._skin.choose(shown)
        self._bones.visible = self._joints.visible = shown != "surface"
        self.session.touch()  # a surface that was hidden is where it was then

    def show_runners(self, runners: Sequence[tuple[Pose, tuple[int, int, int]]]) -> None:
        """Show poses as ghosts, each in its colour, in place of those before."""
        for handle in self._runners:
            handle.remove()
        self._runners = []
        vertices, faces = rod()
        for number, (pose, colour) in enumerate(runners):
            added = len(pose.skeleton) - len(self.session.given)
            place, turn, scale = self._build.bone_frames(pose.positions[added:] * self.scale)
            scale[:, :2] *= 0.6
            self._runners.append(
                self.client.scene.add_batched_meshes_simple(
                    f"/runners/{number}",
                    vertices,
                    faces,
                    batched_wxyzs=turn,
                    batched_positions=place,
                    batched_scales=scale,
                    batched_colors=np.array(colour, np.uint8),
                    opacity=0.45,
                    lod="off",
                    cast_shadow=False,
                )
            )

    # --- shown 60 times a second ------------------------------------------------------------------------------------

    def show(self, frame: Frame) -> None:
        """Show a frame."""
        added = len(frame.pose.skeleton) - len(self.session.given)
        world = frame.pose.frames[added:]
        positions = world[:, 9:] * self.scale
        place, turn, scale = self._build.bone_frames(positions)
        with self.client.atomic():
            self._bones.batched_positions = place.astype(np.float32)
            self._bones.batched_wxyzs = turn.astype(np.float32)
            if np.abs(scale - self._lengths).max(initial=0.0) > 1e-5 * self.size:
                self._lengths = scale
                self._bones.batched_scales = scale.astype(np.float32)
            self._joints.batched_positions = positions[self._build.joints].astype(np.float32)
            self._skin.show(world)
            self.targets.show(frame, added)
            self._show_limits(world)
        self.client.flush()

    def _show_limits(self, world: Array) -> None:
        """Show the limits of the selected joint and those above it, or of all."""
        skeleton, added = self.session.given, 0
        rows: list[int] = []
        if self.arcs == "all":
            rows = list(range(len(skeleton)))
        elif self.arcs == "selected" and self.targets.selected is not None:
            wish = next((wish for wish in self.session.wishes if wish.key == self.targets.selected), None)
            row = -1 if wish is None or wish.row is None else wish.row
            while row >= 0 and len(rows) < 4:
                if skeleton.joints[row].limit is not None:
                    rows.append(row)
                row = skeleton.parents[row]
        parts: list[Array] = []
        count = 0
        for row in rows:
            if row not in self._rims:
                self._rims[row] = limit_arcs(skeleton, row, 0.07 * self.size)
            arc = self._rims[row]
            count += len(arc)
            if not len(arc) or count > _SEGMENTS:
                continue
            parent = skeleton.parents[row] + added
            turn = world[parent, :9].reshape(3, 3) if parent >= 0 else np.eye(3)
            parts.append(arc @ turn.T + world[row, 9:] * self.scale)
        if parts:
            self._limits.points = np.concatenate(parts).astype(np.float32)
        self._limits.visible = bool(parts)

    # --- the mouse --------------------------------------------------------------------------------------------------

    async def _on_joint(self, event: Any) -> None:
        """Let a joint itself be dragged: it gets a target if it has none."""
        index = event.instance_index
        if not isinstance(index, int) or not 0 <= index < len(self._build.joints):
            return
        row = int(self._build.joints[index])

        def key() -> int:
            for wish in self.session.wishes:
                if wish.row == row and wish.places and wish.enabled:
                    return wish.key
            return self.session.add("position", row).key

        self.targets.drag(f"joint {row}", event, key)


def aim_camera(server: ViserServer, session: Session) -> None:
    """Let every browser look at the body from its front, a little from above and from the side."""
    up = direction(up_of(session.given), "y")
    scale = scene_scale(session)
    positions = session.pose.positions[session.rooted.added :] * scale
    middle = (positions.max(axis=0) + positions.min(axis=0)) / 2.0
    size = float(np.linalg.norm(np.ptp(positions, axis=0))) or 1.0
    high = float(np.ptp(positions @ up))
    wide = float(np.linalg.norm(np.ptp(positions - np.outer(positions @ up, up), axis=0)))
    away = max(0.75 * high, 0.5 * wide, 0.3 * size) / math.tan(0.5 * _VIEW) + 0.25 * wide
    ahead = direction(session.given.forward, "z") if session.given.forward else _ahead(up)
    side = np.cross(up, ahead)
    server.scene.set_up_direction(tuple(up.tolist()))
    camera = server.initial_camera
    camera.up = up
    camera.position = middle + away * (0.89 * ahead + 0.39 * side + 0.23 * up)
    camera.look_at = middle + 0.16 * away * side  # the panel covers the right of the page
    camera.fov = _VIEW
    camera.near, camera.far = 0.01 * size, 100.0 * size


def _ahead(up: Array) -> Array:
    """Return the direction that a body is looked at from where its file names no front."""
    return np.array([0.0, 0.0, 1.0]) if abs(up[2]) < 0.5 else np.array([1.0, 0.0, 0.0])
