"""Goals in a browser's scene: targets to drag, markers of the tips, lines to missed targets, arcs of ranges."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal

import numpy as np

from synovia.draw.arcs import range_lines, value_of
from synovia.draw.scene import bones_of, radii_of
from synovia.draw.theme import Theme
from synovia.errors import SynoviaError
from synovia.ik.solution import miss_text
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.viewer.editing.editor import GoalEditor, bounds_of
from synovia.viewer.editing.editor_values import tip_of
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.goals import Goals
from synovia.viewer.editing.hand import Hand
from synovia.viewer.scene.bodies import wxyz
from synovia.viewer.scene.canvas import Canvas
from synovia.viewer.scene.handles import Handles, dragged_to, move_node
from synovia.viewer.scene.lines import STATES, StateLines, add_lines

_BALL: Final = 0.018  # radius of a target, as a fraction of the body's size
_RADIUS: Final = 0.1  # radius of a range's arc, as a fraction of the body's size; outside the arcs of limits
_ARC_OFFSET: Final = (
    1.1  # distance of the arc from the bone's axis, in radii of the joint, so that the bone does not hide it
)
SNAPS: Final = "cmd/ctrl"  # key that makes a free drag snap while the user holds the key
Gizmo = Literal["", "both", "move", "turn"]  # mode of the gizmo of the selected target; "" hides it


class Targets:
    """The targets of one browser's scene.

    Args:
        canvas: The browser, and the scale and colours of its scene.
        goals: The goals.
        hand: Edits by hand.
        handles: Axes and steps of the gizmo.
        on_select: Called with the key of a target that is clicked or grabbed.
    """

    def __init__(
        self,
        canvas: Canvas,
        goals: Goals,
        hand: Hand,
        handles: Handles,
        on_select: Callable[[int], None],
    ) -> None:
        """Make the nodes that are never removed."""
        self.theme, self._goals, self._hand, self._handles = canvas.theme, goals, hand, handles
        self.scale, self._size, self._up, self._redraw = canvas.scale, canvas.size, canvas.up, canvas.redraw
        self._nodes = canvas.client.scene
        self.selected: int | None = None
        self.gizmo: Gizmo = ""  # hidden until a click, because its arrows would block a free drag
        self._select = on_select
        self._balls: dict[int, Any] = {}
        self._ghosts: dict[int, Any] = {}
        self._grab: dict[str, tuple[int, Array, Array]] = {}  # goal key, offset from the pointer, start position
        self._gizmo: Any = None
        self._gizmo_of: tuple[int, str, str] | None = None
        self._held: tuple[Array, Array, Array] | None = None  # axes, position and rotation at the start of a drag
        self._axes = np.eye(3)  # axes of the gizmo, as columns
        self._misses = add_lines(canvas.client, "/misses", self.theme.missed, 3.0)
        self._late = False  # whether the body is still moving to its targets
        self._label = self._nodes.add_label("/label", "", visible=False, anchor="bottom-center", font_screen_scale=0.9)

    def show(self, frame: Frame, *, hidden: bool = False) -> None:
        """Show the targets of a frame; with ``hidden``, hide the parts that no hidden parent node hides."""
        if hidden:
            if self._balls.keys() != {editor.key for editor in frame.editors}:
                self._show_editors(frame)  # so that they are there when playback stops
            for node in (self._misses, self._label, *([] if self._gizmo is None else [self._gizmo])):
                node.visible = False
            return
        self._show_editors(frame)
        self._show_gizmo(frame)

    def set_theme(self, theme: Theme) -> None:
        """Change the colours."""
        self.theme = theme
        self._misses.colors = np.array(theme.quiet if self._late else theme.missed, np.uint8)
        for ghost in self._ghosts.values():
            ghost.origin_color = theme.quiet

    def _show_editors(self, frame: Frame) -> None:
        """Show the targets, the markers of the tips, and lines from tips to missed targets."""
        alive = {editor.key for editor in frame.editors}
        for key in [key for key in self._balls if key not in alive]:
            self._balls.pop(key).remove()
            self._ghosts.pop(key).remove()
        lines: list[tuple[Array, Array]] = []
        for editor in frame.editors:
            tip, tip_turn = tip_of(frame.pose, editor, frame.added)
            place = (editor.eased_position if editor.has_position else tip) * self.scale
            colour = getattr(self.theme, frame.state(editor))
            if editor.key not in self._balls:
                self._add_ball(editor, place, colour)
            ball_handle, ghost = self._balls[editor.key], self._ghosts[editor.key]
            move_node(ball_handle, place)
            ball_handle.color = colour
            move_node(ghost, tip * self.scale, wxyz(tip_turn))
            ghost.show_axes = editor.has_rotation  # the kind of the goal may have changed
            if editor.key in frame.missed and editor.has_position:
                lines.append((tip * self.scale, place))
        if frame.late != self._late:
            self._late = frame.late
            self._misses.colors = np.array(self.theme.quiet if self._late else self.theme.missed, np.uint8)
        if lines:
            self._misses.points = np.array(lines, np.float32)
        self._misses.visible = bool(lines)

    def _add_ball(self, editor: GoalEditor, place: Array, colour: tuple[int, int, int]) -> None:
        """Make the ball of a target and the marker of its tip."""
        key, radius = editor.key, _BALL * self._size
        handle = self._nodes.add_icosphere(
            f"/targets/{key}", radius=radius, color=colour, opacity=0.55, position=tuple(place), cast_shadow=False
        )

        async def on_click(_: Any) -> None:
            self.gizmo = "" if self.gizmo and self.selected == key else "both"
            self._select(key)
            self._redraw()

        async def on_drag(event: Any) -> None:
            self.drag(f"target {key}", event, lambda: key)

        handle.on_click(on_click)
        handle.on_drag("left")(on_drag)
        handle.on_drag("left", modifier=SNAPS)(on_drag)
        self._balls[key] = handle
        self._ghosts[key] = self._nodes.add_frame(
            f"/ghosts/{key}",
            show_axes=editor.has_rotation,
            axes_length=1.7 * radius,
            axes_radius=0.09 * radius,
            origin_radius=0.4 * radius,
            origin_color=self.theme.quiet,
            position=tuple(place),
        )

    def _show_gizmo(self, frame: Frame) -> None:
        """Show the gizmo and the label of the selected target."""
        editor = next((editor for editor in frame.editors if editor.key == self.selected), None)
        shape = (editor.key, editor.kind, self.gizmo) if editor is not None and self.gizmo else None
        if editor is not None and self._held is None:
            own = editor.rotation if editor.has_rotation else tip_of(frame.pose, editor, frame.added)[1]
            self._axes = own if self._handles.local else np.eye(3)
        if shape != self._gizmo_of:
            if self._gizmo is not None:
                self._gizmo.remove()
                self._gizmo = None
            self._held, self._gizmo_of = None, shape
            if editor is not None and shape is not None:
                self._gizmo = self._add_gizmo(editor)
        if editor is None:
            self._label.visible = False
            return
        place = editor.position if editor.has_position else tip_of(frame.pose, editor, frame.added)[0]
        if self._gizmo is not None and self._held is None:
            move_node(self._gizmo, place * self.scale, wxyz(self._axes))
            self._gizmo.visible = True
        move_node(self._label, place * self.scale + 2.2 * _BALL * self._size * self._up)
        text = editor.label
        if editor.key in frame.missed:
            far = miss_text(frame.errors[editor.key], self._goals.given.meters_per_unit)
            text += f"  {far} away" if frame.late else f"  missed by {far}"
        self._label.text = text
        self._label.visible = True

    def _add_gizmo(self, editor: GoalEditor) -> Any:
        """Make and return the gizmo of a target."""
        key = editor.key
        gizmo = self._nodes.add_transform_controls(
            "/gizmo",
            scale=0.22 * self._size,
            disable_axes=not editor.has_position or self.gizmo == "turn",
            disable_sliders=True,
            disable_rotations=not editor.has_rotation or self.gizmo == "move",
            depth_test=False,
            opacity=0.85,
            position=tuple(editor.position * self.scale),
            wxyz=wxyz(self._axes),
        )

        async def on_update(event: Any) -> None:
            if event.phase == "start" or self._held is None:
                self._hand.begin()
                self._held = self._axes, editor.position, editor.rotation
            if (to := dragged_to(event.target)) is not None:
                with suppress(SynoviaError, ValueError):
                    self._drag_gizmo(key, to[0] / self.scale, to[1])
            if event.phase == "end":
                self._held = None
                self._hand.end()

        gizmo.on_update(on_update)
        return gizmo

    def _drag_gizmo(self, key: int, place: Array, turn: Array) -> None:
        """Move a target with its gizmo, to a position (3,) and a rotation (3, 3) of the gizmo."""
        from scipy.spatial.transform import Rotation

        editor = self._goals.editor(key)
        axes, start, rotation = self._held or (self._axes, editor.position, editor.rotation)
        about = self._handles.turned(Rotation.from_matrix(turn @ axes.T).as_rotvec())
        self._goals.move(
            key,
            self._handles.moved(start, place, axes) if editor.has_position else None,
            Rotation.from_rotvec(about).as_matrix() @ rotation if editor.has_rotation else None,
        )

    def drag(self, what: str, event: Any, key_of: Callable[[], int]) -> None:
        """Move a target with a drag: the grabbed point stays under the pointer, in the plane that faces the camera.

        Args:
            what: Name of the dragged node.
            event: viser's event.
            key_of: Returns the key of the goal's editor when the drag starts.
        """
        pointer = np.array(event.end_position, float) / self.scale
        if not np.isfinite(pointer).all():
            return

        with suppress(SynoviaError, ValueError):
            if event.phase == "start" or what not in self._grab:
                self._begin_drag(what, event, key_of)
            if what in self._grab:
                key, offset, start = self._grab[what]
                held = event.modifier == SNAPS
                self._goals.move(key, self._handles.moved(start, pointer + offset, np.eye(3), held=held))
        if event.phase == "end":
            self._grab.pop(what, None)
            self._hand.end()

    def _begin_drag(self, what: str, event: Any, key_of: Callable[[], int]) -> None:
        """Grab a target, if its goal has a position; arguments as in ``drag``."""
        self._grab.pop(what, None)
        with self._hand.one_step():  # ``key_of`` may add a goal; undo then removes this goal with the drag
            key = key_of()
        editor = self._goals.editor(key)
        if editor.has_position:
            self.gizmo = ""
            grabbed = np.array(event.start_position, float) / self.scale
            self._grab[what] = key, editor.position - grabbed, editor.position
            self._select(key)


class Ranges:
    """The arcs of range goals in one browser's scene, coloured by the state of the goals.

    Args:
        canvas: The browser, and the scale and colours of its scene.
        skeleton: The given skeleton.
    """

    def __init__(self, canvas: Canvas, skeleton: Skeleton) -> None:
        """Make the nodes that are never removed."""
        self._skeleton, self._scale, self._radius = skeleton, canvas.scale, _RADIUS * canvas.size / canvas.scale
        self._arc_offset = _ARC_OFFSET * radii_of(skeleton, bones_of(skeleton))
        self._lines = StateLines(canvas.client, "/ranges", canvas.theme, 4.0)

    def set_theme(self, theme: Theme) -> None:
        """Change the colours."""
        self._lines.set_theme(theme)

    def show(self, frame: Frame) -> None:
        """Show an arc for each range goal, from its lower to its upper bound, coloured by the state of the goal."""
        paths: dict[str, list[Array]] = {state: [] for state in STATES}
        for editor in frame.editors:
            if (bounds := bounds_of(editor)) is not None and editor.row is not None:
                paths[frame.state(editor)] += self._paths_of(frame, editor.row, bounds)
        self._lines.show(paths)

    def _paths_of(self, frame: Frame, row: int, bounds: tuple[float, float]) -> list[Array]:
        """Return the lines of one range, each as points (n, 3), scene units."""
        skeleton, world = self._skeleton, frame.pose.frames[frame.added :]
        above = skeleton.parents[row]
        turn = world[above, :9].reshape(3, 3) if above >= 0 else np.eye(3)
        value = value_of(frame.pose, row + frame.added)
        lines = range_lines(skeleton, row, bounds, value, self._radius, self._arc_offset[row])
        return [(line @ turn.T + world[row, 9:]) * self._scale for line in lines]
