"""Targets in a browser's scene: balls to drag, ghosts of what should meet them, a gizmo, lines to what is missed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.draw.theme import Theme
from synovia.errors import SynoviaError
from synovia.model.geometry import Array, matrix_to_quat, quat_to_matrix
from synovia.viewer.engine import Frame, miss_text, tip_of
from synovia.viewer.session import Session
from synovia.viewer.wish import Wish

if TYPE_CHECKING:
    from viser import ClientHandle

_BALL: Final = 0.032  # radius of a target, as a part of the body's size
_STILL: Final = 1e-6  # of a scene unit, and of a quaternion: below, nothing is sent


def wxyz(matrix: Array) -> Array:
    """Return a rotation matrix as viser takes it."""
    x, y, z, w = matrix_to_quat(matrix)
    return np.array([w, x, y, z])


def put(handle: Any, place: Array, turn: Array | None = None) -> None:
    """Put a node of the scene to a place (3,) and a turn (4,; wxyz); most stand still, and viser's look is slow."""
    if not _there(handle.position, place):
        handle.position = tuple(place.tolist())
    if turn is not None and not _there(handle.wxyz, turn):
        handle.wxyz = tuple(turn.tolist())


def _there(at: Array, to: Array) -> bool:
    """Return whether a few numbers are those that are there."""
    return all(abs(a - b) <= _STILL for a, b in zip(at.tolist(), to.tolist(), strict=True))


class Targets:
    """The targets of one browser's scene.

    Args:
        client: The browser.
        session: The session.
        theme: Colours.
        scale: Scene units per length unit.
        size: Size of the body, scene units.
        up: Direction that points up, (3,).
        on_select: Called when a target is clicked or grabbed, with its key.
    """

    def __init__(
        self,
        client: ClientHandle,
        session: Session,
        theme: Theme,
        *,
        scale: float,
        size: float,
        up: Array,
        on_select: Callable[[int], None],
    ) -> None:
        """Make what stays."""
        self.client, self.session, self.theme = client, session, theme
        self.scale, self.size, self._up = scale, size, up
        self.selected: int | None = None
        self.gizmo = False  # shown by a click: its arrows would stand in the way of a free drag
        self._select = on_select
        self._balls: dict[int, Any] = {}
        self._ghosts: dict[int, Any] = {}
        self._colours: dict[int, tuple[int, int, int]] = {}
        self._grab: dict[str, tuple[int, Array]] = {}
        self._gizmo: Any = None
        self._gizmo_of: tuple[int, str] | None = None
        self._held = False
        self._misses = client.scene.add_line_segments(
            "/misses",
            np.zeros((1, 2, 3), np.float32),
            theme.missed,
            thickness=3.0,
            thickness_units="screen",
            visible=False,
        )
        self._label = client.scene.add_label("/label", "", visible=False, anchor="bottom-center", font_screen_scale=0.9)

    def show(self, frame: Frame, added: int) -> None:
        """Show the targets of a frame; ``added``: rows of its pose before those of the skeleton that was given."""
        self._show_wishes(frame, added)
        self._show_gizmo(frame, added)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        self.theme = theme
        self._misses.colors = np.array(theme.missed, np.uint8)
        for ghost in self._ghosts.values():
            ghost.origin_color = theme.quiet

    def _show_wishes(self, frame: Frame, added: int) -> None:
        """Show targets, ghosts of what should meet them, and lines to those that are missed."""
        alive = {wish.key for wish in frame.wishes}
        for key in [key for key in self._balls if key not in alive]:
            self._balls.pop(key).remove()
            self._ghosts.pop(key).remove()
            self._colours.pop(key)
        lines: list[tuple[Array, Array]] = []
        for wish in frame.wishes:
            tip, tip_turn = tip_of(frame, wish, added)
            place = (wish.at_place if wish.places else tip) * self.scale
            missed = wish.key in frame.missed
            solved = wish.enabled and wish.key in frame.errors
            colour = self.theme.missed if missed else self.theme.reached if solved else self.theme.quiet
            if wish.key not in self._balls:
                self._add_ball(wish, place, colour)
            ball_handle, ghost = self._balls[wish.key], self._ghosts[wish.key]
            put(ball_handle, place)
            if self._colours[wish.key] != colour:
                self._colours[wish.key] = colour
                ball_handle.color = colour
            put(ghost, tip * self.scale, wxyz(tip_turn))
            if missed and wish.places:
                lines.append((tip * self.scale, place))
        if lines:
            self._misses.points = np.array(lines, np.float32)
        self._misses.visible = bool(lines)

    def _add_ball(self, wish: Wish, place: Array, colour: tuple[int, int, int]) -> None:
        """Make the ball of a target, and the ghost of what should meet it."""
        key, radius = wish.key, _BALL * self.size
        handle = self.client.scene.add_icosphere(
            f"/targets/{key}", radius=radius, color=colour, opacity=0.8, position=tuple(place), cast_shadow=False
        )

        async def on_click(_: Any) -> None:
            self.gizmo = not (self.gizmo and self.selected == key)
            self._select(key)
            self.session.touch()

        async def on_drag(event: Any) -> None:
            self.drag(f"target {key}", event, lambda: key)

        handle.on_click(on_click)
        handle.on_drag("left")(on_drag)
        self._balls[key] = handle
        self._colours[key] = colour
        self._ghosts[key] = self.client.scene.add_frame(
            f"/ghosts/{key}",
            show_axes=wish.turns,
            axes_length=1.7 * radius,
            axes_radius=0.09 * radius,
            origin_radius=0.4 * radius,
            origin_color=self.theme.quiet,
            position=tuple(place),
        )

    def _show_gizmo(self, frame: Frame, added: int) -> None:
        """Keep the gizmo on the selected target."""
        wish = next((wish for wish in frame.wishes if wish.key == self.selected), None)
        shape = (wish.key, wish.kind) if wish is not None and self.gizmo else None
        if shape != self._gizmo_of:
            if self._gizmo is not None:
                self._gizmo.remove()
                self._gizmo = None
            self._held = False
            self._gizmo_of = shape
            if wish is not None and shape is not None:
                self._gizmo = self._add_gizmo(wish)
        if wish is None:
            self._label.visible = False
            return
        place = wish.place if wish.places else tip_of(frame, wish, added)[0]
        if self._gizmo is not None and not self._held:
            put(self._gizmo, place * self.scale, wxyz(wish.turn) if wish.turns else None)
        put(self._label, place * self.scale + 2.2 * _BALL * self.size * self._up)
        text = wish.label
        if wish.key in frame.missed:
            text += f"  missed by {miss_text(frame.errors[wish.key], self.session.given.meters_per_unit)}"
        self._label.text = text
        self._label.visible = True

    def _add_gizmo(self, wish: Wish) -> Any:
        """Make the gizmo of a target."""
        key = wish.key
        gizmo = self.client.scene.add_transform_controls(
            "/gizmo",
            scale=0.22 * self.size,
            disable_axes=not wish.places,
            disable_sliders=True,
            disable_rotations=not wish.turns,
            depth_test=False,
            opacity=0.85,
            position=tuple(wish.place * self.scale),
            wxyz=tuple(wxyz(wish.turn)),
        )

        async def on_update(event: Any) -> None:
            if event.phase == "start":
                self.session.remember()
            self._held = event.phase != "end"
            w, x, y, z = event.target.wxyz
            length = math.sqrt(w * w + x * x + y * y + z * z)
            if not (math.isfinite(length) and length > 1e-6):
                return
            turn = quat_to_matrix(np.array([x, y, z, w]) / length) if wish.turns else None
            place = np.array(event.target.position, float) / self.scale if wish.places else None
            self._try(lambda: self.session.move(key, place, turn))

        gizmo.on_update(on_update)
        return gizmo

    def drag(self, what: str, event: Any, key_of: Callable[[], int]) -> None:
        """Follow a drag: the grabbed point stays under the pointer, in the plane that faces the camera."""
        pointer = np.array(event.end_position, float) / self.scale
        if not np.isfinite(pointer).all():
            return

        def act() -> None:
            if event.phase == "start" or what not in self._grab:
                with self.session.one_step():  # a joint that has no goal gets one: the drag is undone with it
                    key = key_of()
                wish = self.session.wish(key)
                if not wish.places:
                    return
                self.gizmo = False
                grabbed = np.array(event.start_position, float) / self.scale
                self._grab[what] = key, wish.place - grabbed
                self._select(key)
            key, offset = self._grab[what]
            self.session.move(key, pointer + offset)

        self._try(act)
        if event.phase == "end":
            self._grab.pop(what, None)

    @staticmethod
    def _try(action: Callable[[], None]) -> None:
        """Act; what a page asks for and cannot have is left as it was."""
        try:
            action()
        except (SynoviaError, ValueError):
            return
