"""The 3D scene of one browser: body, limits, floor, poses of other solvers, and the camera."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.draw.arcs import limit_arcs
from synovia.draw.rods import Build, ahead_of, build
from synovia.draw.scene import bone_lengths
from synovia.draw.theme import THEMES, Theme
from synovia.model import Pose, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import Array
from synovia.model.loops.loop import Loop
from synovia.surface import Surface
from synovia.surface.base import joined
from synovia.surface.solids import body_surface
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.session import Session
from synovia.viewer.scene.bodies import BodyMeshes
from synovia.viewer.scene.camera import Leash, facing, scene_scale, seen_from, viewpoint
from synovia.viewer.scene.canvas import Canvas
from synovia.viewer.scene.causes import Causes
from synovia.viewer.scene.ghosts import Ghost, Onion, Original
from synovia.viewer.scene.handles import Handles, first_length
from synovia.viewer.scene.lines import add_lines
from synovia.viewer.scene.loops import LoopMeshes
from synovia.viewer.scene.obstacles import Obstacles
from synovia.viewer.scene.path import ClipPath
from synovia.viewer.scene.rings import Rings
from synovia.viewer.scene.sketches import Sketches
from synovia.viewer.scene.skin import Look, Skin
from synovia.viewer.scene.targets import SNAPS, Ranges, Targets

if TYPE_CHECKING:
    from viser import ClientHandle

_UNDER: Final = 0.55  # relative size of joint balls inside an opaque surface
_LIMIT: Final = (214, 158, 46)
_FLOORS: Final = ("yz", "xz", "xy")  # planes perpendicular to x, y, z
_SEGMENTS: Final = 4000  # largest number of line segments for limits, because each frame sends all of them

_AIDS: Final = ("targets", "ghosts", "sketches", "ranges")
_RUNNER: Final = 0.45  # opacity of the result of another solver


class Scene:
    """One browser's scene of one session.

    Args:
        client: The browser.
        session: The session.
        look: Appearance of the body.
        on_select: Called with the key of a target that is clicked or grabbed.
        on_joint: Called with the joint that is clicked, a row of the given skeleton.
    """

    def __init__(
        self,
        client: ClientHandle,
        session: Session,
        look: Look,
        on_select: Callable[[int], None],
        on_joint: Callable[[int], None],
    ) -> None:
        """Add the body, the floor and the camera."""
        self.client, self._state, self._body, self._goals = client, session.state, session.body, session.goals
        self.scale = scene_scale(session.state)
        self.theme: Theme = look.theme
        self.arcs = "selected"
        self.joint: int | None = None  # selected joint, a row of the given skeleton
        self._select_joint = on_joint
        self._up = find_up(session.body.given).vector
        pose = session.body.given.rest_pose()
        self.size = float(np.linalg.norm(np.ptp(pose.positions, axis=0)) * self.scale) or 1.0
        self._build: Build = build(session.body.given, self.theme, self.scale)
        self._runners: list[Ghost] = []
        self._rims: dict[int, Array] = {}
        self.handles = Handles(first_length(session.body.size, session.body.given.meters_per_unit))
        canvas = Canvas(client, self.theme, self.scale, self.size, self._up, session.state.touch)
        # scene nodes above all that is not part of the body; hidden while the clip plays
        self._aids = [client.scene.add_frame(f"/{name}", show_axes=False) for name in _AIDS]
        self.targets = Targets(canvas, session.goals, session.hand, self.handles, on_select)
        self.rings = Rings(canvas, session.body, session.hand, self.handles)
        self.ranges = Ranges(canvas, session.body.given)
        self.sketches = Sketches(canvas, session.goals)
        self.causes = Causes(canvas)
        positions = session.animation.start().positions[session.body.rooted.added :] * self.scale
        self._obstacles = None
        if look.world is not None:
            self._obstacles = Obstacles(client, look.world, self.theme, self.scale, self._up)
            self._obstacles.on_drag(self._on_obstacle)
        self._moved = session.obstacles
        self._grabbed: Array | None = None  # offset of the dragged obstacle from the pointer
        self._make_floor(positions)
        self._meshes = BodyMeshes(client.scene, "/body", self._build, positions)
        self._bones, self._joints = self._meshes.bones, self._meshes.joints
        self._joints.on_drag("left")(self._on_joint)
        self._joints.on_drag("left", modifier=SNAPS)(self._on_joint)
        self._joints.on_click(self._on_click)
        self._loops = None
        if any(isinstance(tie, Loop) for tie in session.body.given.loops):
            frames = session.animation.start().frames[session.body.rooted.added :]
            self._loops = LoopMeshes(client.scene, session.body.given, self.theme, self.scale, frames)
        self.path = ClipPath(canvas, session.animation)
        self.onion = Onion(canvas, session.animation, self._build)
        self.original = Original(canvas, session.animation, self._build)
        self._limits = add_lines(client, "/limits", _LIMIT, 1.5)
        self.leash = Leash(self.size)
        self._aspect, self._viewpoint = 1.0, viewpoint(session.state, 1.0)
        client.camera.on_update(self._look)
        world = session.animation.start().frames[session.body.rooted.added :]
        self.look = first_look(session.body.given, look.surface)
        self._skin = Skin(client, look, self.scale, world, shown=self.look)
        self._cover: Skin | None = None  # shapes of the body; created when they are first shown
        self.choose_look(self.look)

    def _make_floor(self, positions: Array) -> None:
        """Add a grid at the floor of the world; without a floor, just below the lowest joint."""
        floor = float((positions @ self._up).min()) - 0.01 * self.size
        if self._obstacles is not None:
            middle = (positions.max(axis=0) + positions.min(axis=0)) / (2.0 * self.scale)
            height = self._obstacles.around(middle, self.size / self.scale)
            floor = floor if height is None else height * self.scale
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

    def set_theme(self, dark: bool) -> None:
        """Switch to the colours of the dark or the light theme."""
        self.theme = THEMES["dark" if dark else "light"]
        self._build = build(self._body.given, self.theme, self.scale)
        self._bones.batched_colors = self._build.bone_colours
        self._joints.batched_colors = self._build.joint_colours
        self._grid.cell_color = self._grid.section_color = self.theme.grid
        if self._loops is not None:
            self._loops.set_theme(self.theme)
        if self._obstacles is not None:
            self._obstacles.set_theme(self.theme)
        self.targets.set_theme(self.theme)
        self.ranges.set_theme(self.theme)
        self.sketches.set_theme(self.theme)

    def choose_look(self, shown: str) -> None:
        """Show the surface, the bones or both; ``shown`` is one of ``skin.SHOWN``."""
        self.look = shown
        self._skin.choose(shown)
        self._bones.visible = shown != "surface"
        self._joints.visible = True
        if self._loops is not None:
            self._loops.show(shown != "surface")
        # below an opaque surface, joints are small and invisible, but the mouse can still grab the joints
        self._joints.batched_scales = (self._build.round * (_UNDER if shown == "surface" else 1.0)).astype(np.float32)
        self._state.touch()  # update a surface that was hidden

    def show_shapes(self, on: bool) -> None:
        """Show or hide the shapes of the body."""
        if self._cover is None and on:
            surface = body_surface(self._body.given, self.theme.cover)
            surface = replace(surface, parts=joined(surface.parts))
            frames = self._body.given.rest_pose().frames
            self._cover = Skin(self.client, Look(surface, shadows=False), self.scale, frames, name="/shapes")
        if self._cover is not None:
            self._cover.choose("both" if on else "bones")
        self._state.touch()

    def show_runners(self, runners: Sequence[tuple[Pose, str]]) -> None:
        """Show poses as translucent bodies, each in its colour (#rrggbb), and remove the previous ones."""
        for ghost in self._runners:
            ghost.remove()
        self._runners = []
        for number, (pose, colour) in enumerate(runners):
            positions = pose.positions[len(pose.skeleton) - len(self._body.given) :] * self.scale
            ghost = Ghost(
                self.client, f"/runners/{number}", self._build, positions, tuple(bytes.fromhex(colour[1:])), _RUNNER
            )
            self._runners.append(ghost)

    def show(self, frame: Frame) -> None:
        """Show a frame; called 60 times a second."""
        world = frame.pose.frames[frame.added :]
        play = self._state.play
        playing = play.playing and play.motion is not None
        with self.client.atomic():
            for node in (*self._aids, *([self._joints] if self.look == "surface" else [])):
                node.visible = not playing
            if not (playing and self.look == "surface"):
                self._meshes.move(world[:, 9:] * self.scale)
            if self._loops is not None:
                self._loops.move(world)
            self._skin.show(world)
            if self._obstacles is not None:
                self._obstacles.show(self._state.world)
            if self._cover is not None:
                self._cover.show(world)
            self.targets.show(frame, hidden=playing)
            self.rings.show(frame, self.joint if self.targets.selected is None else None)
            self.ranges.show(frame)
            self.sketches.show(frame)
            self._show_limits(world)
            self.path.show(self.joint)
            self.onion.show()
            self.original.show(world[:, 9:] * self.scale)
        if play.drag is not None:  # the camera would take what is dragged away from the pointer
            self.leash.begin()
        if play.motion is not None:
            self.leash.pull(world[:, 9:] * self.scale)
        self.client.flush()

    @property
    def balls(self) -> list[int]:
        """Rows of the joints that are drawn as balls, in order."""
        return self._build.joints.tolist()

    def _show_limits(self, world: Array) -> None:
        """Show the limits of the selected joint and its nearest ancestors, or of all joints."""
        skeleton = self._body.given
        rows: list[int] = []
        if self.arcs == "all":
            rows = list(range(len(skeleton)))
        elif self.arcs == "selected":
            row = -1 if self.joint is None else self.joint
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

    def frame_body(self, side: str | None = None) -> None:
        """Move the camera so that it shows the whole body in its current pose.

        Args:
            side: Side of the body for the camera: ``"front"``, ``"left"`` or ``"top"``; None to keep the viewing
                direction.
        """
        camera = self.client.camera
        positions = self._body.pose.positions[self._body.rooted.added :] * self.scale
        way = np.asarray(camera.position) - np.asarray(camera.look_at)
        if side is not None:
            ahead = facing(self._body.given, positions)
            sides = {"front": ahead, "left": np.cross(self._up, ahead), "top": self._up + 1e-3 * ahead}
            way = sides[side]
        far = float(np.linalg.norm(way))
        self.leash.begin()
        aspect = camera.image_width / max(camera.image_height, 1)
        camera.position, camera.look_at = seen_from(positions, self._up, aspect, way / far if far > 0.0 else self._up)

    def view_axes(self) -> tuple[Array, Array, Array]:
        """Return the world axes, (3,) each, nearest to right, up, and away from the viewer."""
        camera = self.client.camera
        away = np.asarray(camera.look_at) - np.asarray(camera.position)
        away = away - (away @ self._up) * self._up
        if np.linalg.norm(away) < 1e-9:  # the camera looks straight down
            away = -ahead_of(self._body.given)
        place = int(np.argmax(np.abs(away) - 2.0 * np.linalg.norm(away) * np.abs(self._up)))
        ahead: Array = math.copysign(1.0, float(away[place])) * np.eye(3)[place]
        return np.cross(ahead, self._up), self._up, ahead

    async def _look(self, camera: Any) -> None:
        """Show the whole body again when the aspect ratio changes, unless the user has moved the camera."""
        aspect = camera.image_width / max(camera.image_height, 1)
        way = np.asarray(camera.position) - np.asarray(camera.look_at)  # the camera may have followed the body
        there = np.abs(way - (self._viewpoint[0] - self._viewpoint[1])).max() < 1e-3 * self.size
        if there and abs(aspect - self._aspect) > 0.02:
            self._aspect, self._viewpoint = aspect, viewpoint(self._state, aspect)
            self.leash.begin()
            camera.position, camera.look_at = self._viewpoint

    def _row(self, index: Any) -> int | None:
        """Return the joint of a drawn ball; None if there is no such ball."""
        if not isinstance(index, int) or not 0 <= index < len(self._build.joints):
            return None
        return int(self._build.joints[index])

    async def _on_click(self, event: Any) -> None:
        """Select a joint; if it is already selected, show or hide its rings."""
        row = self._row(event.instance_index)
        if row is None:
            return
        if row == self.joint and self.targets.selected is None:
            self.rings.shown = not self.rings.shown
            self._state.touch()
        else:
            self.rings.shown = True
            self._select_joint(row)

    def _on_obstacle(self, name: str, event: Any) -> None:
        """Drag an obstacle: the grabbed point stays under the pointer, in the plane that faces the camera."""
        pointer = np.array(event.end_position, float) / self.scale
        if not np.isfinite(pointer).all():
            return
        if event.phase == "start" or self._grabbed is None:
            self._grabbed = self._moved.place(name) - np.array(event.start_position, float) / self.scale
        self._moved.move(name, pointer + self._grabbed)
        if event.phase == "end":
            self._grabbed = None

    async def _on_joint(self, event: Any) -> None:
        """Drag a joint; add a position goal if it has none."""
        row = self._row(event.instance_index)
        if row is None:
            return

        def key() -> int:
            for editor in self._goals.editors:
                if editor.row == row and editor.has_position and editor.enabled:
                    return editor.key
            return self._goals.add("position", row).key

        self.targets.drag(f"joint {row}", event, key)


def first_look(skeleton: Skeleton, surface: Surface) -> str:
    """Return the initial look of a body: surface, both if the surface is partial, or bones without a surface."""
    if not surface.parts:
        return "bones"
    return "surface" if surface.covers(bone_lengths(skeleton)) else "both"
