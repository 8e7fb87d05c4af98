"""What a browser shows in three dimensions: body, limits, floor and ghosts of other solvers; and the camera."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.draw.arcs import limit_arcs
from synovia.draw.camera import direction
from synovia.draw.scene import up_of
from synovia.draw.theme import THEMES, Theme
from synovia.model import Pose
from synovia.model.geometry import Array
from synovia.viewer.bodies import Build, ahead_of, build, rod
from synovia.viewer.engine import Frame
from synovia.viewer.session import Session
from synovia.viewer.skin import Skin
from synovia.viewer.surface import Surface
from synovia.viewer.surface.shapes import ball
from synovia.viewer.targets import Ranges, Targets

if TYPE_CHECKING:
    from viser import ClientHandle, ViserServer

_LIMIT: Final = (214, 158, 46)
_FLOORS: Final = ("yz", "xz", "xy")  # across x, y, z
_SEGMENTS: Final = 4000  # line segments of limits; more would fill the line to the browser

_TALL: Final = 1.7  # size of a body in scene units where its file names no unit
_SANE: Final = (0.2, 20.0)  # metres; a body of known unit within is shown in metres
_VIEW: Final = 0.8  # radians from the bottom of the page to its top; a wide angle would bend what is near
_TALL_PAGE: Final = 0.7  # width over height of a page below which it is a telephone's


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
        self.ranges = Ranges(client, session.given, self.theme, scale=self.scale, size=self.size)
        self._make()
        self._aspect, self._viewpoint = 1.0, viewpoint(session, 1.0)
        client.camera.on_update(self._look)
        world = session.pose.frames[session.rooted.added :]
        self._skin = Skin(client, surface, scale=self.scale, world=world, shadows=shadows)

    # --- made once --------------------------------------------------------------------------------------------------

    def _make(self) -> None:
        """Make what stays: light, floor, body, and the lines of limits."""
        positions = self.session.pose.positions[self.session.rooted.added :] * self.scale
        self.client.scene.configure_default_lights(True, cast_shadow=self.shadows)
        self._make_floor(positions)
        self._make_body(positions)
        nothing = np.zeros((1, 2, 3), np.float32)
        self._limits = self.client.scene.add_line_segments(
            "/limits", nothing, _LIMIT, thickness=1.5, thickness_units="screen", visible=False
        )

    def _make_floor(self, positions: Array) -> None:
        """Lay a grid just below the lowest joint."""
        floor = float((positions @ self._up).min()) - 0.01 * self.size
        middle = (positions.max(axis=0) + positions.min(axis=0)) / 2.0
        foot = middle + (floor - middle @ self._up) * self._up
        self._grid = self.client.scene.add_grid(
            "/floor",
            width=8.0 * self.size,
            height=8.0 * self.size,
            plane=_FLOORS[int(np.argmax(np.abs(self._up)))],
            cell_size=0.125 * self.size,
            section_size=0.5 * self.size,
            cell_color=self.theme.grid,
            section_color=self.theme.grid,
            cell_thickness=0.6,
            section_thickness=1.2,
            fade_distance=6.0 * self.size,
            fade_from="origin",
            shadow_opacity=0.25,
            position=tuple(foot),
        )

    def _make_body(self, positions: Array) -> None:
        """Make bones and joints, one mesh in many places each; a joint can be dragged."""
        scene = self.client.scene
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
        vertices, faces = ball(np.ones(3))
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

    def set_theme(self, dark: bool) -> None:
        """Take the colours of the dark or the light page."""
        self.theme = THEMES["dark" if dark else "light"]
        self._build = build(self.session.given, self.theme, self.scale)
        self._bones.batched_colors = self._build.bone_colours
        self._joints.batched_colors = self._build.joint_colours
        self._grid.cell_color = self._grid.section_color = self.theme.grid
        self.targets.set_theme(self.theme)
        self.ranges.set_theme(self.theme)

    def choose_look(self, shown: str) -> None:
        """Show the surface, the bones or both; ``shown`` is one of ``skin.SHOWN``."""
        self._skin.choose(shown)
        self._bones.visible = self._joints.visible = shown != "surface"
        self.session.touch()  # a surface that was hidden is where it was then

    def show_runners(self, runners: Sequence[tuple[Pose, str]]) -> None:
        """Show poses as ghosts, each in its colour (#rrggbb), in place of those before."""
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
                    batched_colors=np.array(list(bytes.fromhex(colour[1:])), np.uint8),
                    opacity=0.45,
                    lod="off",
                    cast_shadow=False,
                )
            )

    # --- shown 60 times a second ------------------------------------------------------------------------------------

    def show(self, frame: Frame) -> None:
        """Show a frame."""
        world = frame.pose.frames[frame.added :]
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
            self.targets.show(frame)
            self.ranges.show(frame)
            self._show_limits(world)
        self.client.flush()

    def _show_limits(self, world: Array) -> None:
        """Show the limits of the selected joint and those above it, or of all."""
        skeleton = self.session.given
        rows: list[int] = []
        if self.arcs == "all":
            rows = list(range(len(skeleton)))
        elif self.arcs == "selected" and self.targets.selected is not None:
            editor = next((editor for editor in self.session.editors if editor.key == self.targets.selected), None)
            row = -1 if editor is None or editor.row is None else editor.row
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
            parent = skeleton.parents[row]
            turn = world[parent, :9].reshape(3, 3) if parent >= 0 else np.eye(3)
            parts.append(arc @ turn.T + world[row, 9:] * self.scale)
        if parts:
            self._limits.points = np.concatenate(parts).astype(np.float32)
        self._limits.visible = bool(parts)

    async def _look(self, camera: Any) -> None:
        """Keep the whole body in view while the page takes its shape; a camera that somebody has moved stays."""
        aspect = camera.image_width / max(camera.image_height, 1)
        there = np.abs(np.asarray(camera.position) - self._viewpoint[0]).max() < 1e-3 * self.size
        if there and abs(aspect - self._aspect) > 0.02:
            self._aspect, self._viewpoint = aspect, viewpoint(self.session, aspect)
            camera.position, camera.look_at = self._viewpoint

    # --- the mouse --------------------------------------------------------------------------------------------------

    async def _on_joint(self, event: Any) -> None:
        """Let a joint itself be dragged: it gets a target if it has none."""
        index = event.instance_index
        if not isinstance(index, int) or not 0 <= index < len(self._build.joints):
            return
        row = int(self._build.joints[index])

        def key() -> int:
            for editor in self.session.editors:
                if editor.row == row and editor.has_position and editor.enabled:
                    return editor.key
            return self.session.add("position", row).key

        self.targets.drag(f"joint {row}", event, key)


def scene_scale(session: Session) -> float:
    """Return scene units per length unit: metres if the file names its unit, else a body of human size."""
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
    """Return the position (3,) and the target (3,) of a camera that sees the whole body, scene units.

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
    ahead = ahead_of(session.given)
    side = np.cross(up, ahead)
    at = middle - (0.5 * away * half if tall else 0.0) * up
    return at + away * (0.89 * ahead + 0.39 * side + 0.23 * up), at
