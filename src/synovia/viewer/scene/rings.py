"""Rings that rotate the selected joint if it has no goal, in one browser's scene; an arrow moves a slide."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from synovia.errors import InputError, SynoviaError
from synovia.model import Kind
from synovia.model.geometry import Array, align_z, matrix_to_quat, quat_to_matrix
from synovia.viewer.editing.body import Body
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.hand import Hand
from synovia.viewer.scene.bodies import wxyz
from synovia.viewer.scene.canvas import Canvas
from synovia.viewer.scene.handles import Handles, dragged_to, move_node

_SIZE: Final = 0.2  # size of the gizmo, as a fraction of the body's size
_ABOVE: Final = 0.05  # height of the name above the joint, as a fraction of the body's size
_OCTANTS: Final = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))  # signs of the axes that keep these right-handed


@dataclass(slots=True, eq=False)
class _Grab:
    """State of a drag: initial frames of gizmo and joint, initial values of the joint, and the angle so far (rad)."""

    turn: Array
    place: Array
    joint: Array
    values: Array
    angle: float = 0.0


class Rings:
    """The gizmo and the name of a joint.

    Args:
        canvas: The browser, and the scale and colours of its scene.
        body: The body.
        hand: Edits by hand.
        handles: Axes and steps.
    """

    def __init__(self, canvas: Canvas, body: Body, hand: Hand, handles: Handles) -> None:
        """Make the label, which is never removed."""
        self.shown = True
        self._client, self._body, self._hand, self._handles = canvas.client, body, hand, handles
        self._scale, self._size, self._above = canvas.scale, canvas.size, _ABOVE * canvas.size * canvas.up
        self._redraw = canvas.redraw
        self._gizmo: Any = None
        self._gizmo_of: tuple[int, bool] | None = None
        self._turn, self._place = np.eye(3), np.zeros(3)  # rotation and position of the gizmo, scene units
        self._grab: _Grab | None = None
        self._label = self._client.scene.add_label(
            "/joint", "", visible=False, anchor="bottom-center", font_screen_scale=0.9
        )

    def toggle(self, row: int) -> None:
        """Show the rings, or hide them if they are shown.

        Raises:
            InputError: If the joint does not move.
        """
        joint = self._body.given.joints[row]
        if not joint.kind.q_size:
            raise InputError("this joint does not move", value=joint.name)
        self.shown = not self.shown
        self._redraw()

    def show(self, frame: Frame, row: int | None) -> None:
        """Show the gizmo of a joint, a row of the given skeleton; None for no joint."""
        shape: tuple[int, bool] | None = None
        if row is not None:
            if self._grab is None:
                world = frame.pose.frames[row + frame.added]
                self._place = world[9:] * self._scale
                self._turn = self._axes(row, world[:9].reshape(3, 3))
            if self.shown and self._body.given.joints[row].kind.q_size:
                shape = row, self._handles.local
        if shape != self._gizmo_of:
            if self._gizmo is not None:
                self._gizmo.remove()
                self._gizmo = self._grab = None
            self._gizmo_of = shape
            if shape is not None:
                self._gizmo = self._add(shape[0])
        self._label.visible = row is not None
        if row is None:
            return
        if self._gizmo is not None and self._grab is None:
            move_node(self._gizmo, self._place, wxyz(self._turn))
        move_node(self._label, self._place + self._above)
        self._label.text = self._body.given.joint_names[row]

    def _axes(self, row: int, turn: Array) -> Array:
        """Return the axes of the gizmo as columns, (3, 3), for a joint with rotation ``turn``.

        A ring is the quarter circle between two positive axes; the axes are chosen so that it is nearest to the camera.
        """
        joint = self._body.given.joints[row]
        near = np.asarray(self._client.camera.position) - self._place
        if joint.kind in (Kind.HINGE, Kind.SLIDE):
            return _facing(align_z(turn @ np.asarray(joint.axis)), near)
        axes = turn if self._handles.local else np.eye(3)
        return axes * max(_OCTANTS, key=lambda signs: float((axes * signs).sum(axis=1) @ near))

    def _add(self, row: int) -> Any:
        """Make the gizmo: a ring for a hinge, an arrow for a slide, three rings for a ball, with arrows if free."""
        kind = self._body.given.joints[row].kind
        gizmo = self._client.scene.add_transform_controls(
            "/rings",
            scale=_SIZE * self._size,
            active_axes=(kind is not Kind.SLIDE, kind is not Kind.SLIDE, kind is not Kind.HINGE),
            disable_axes=kind not in (Kind.SLIDE, Kind.FREE),
            disable_sliders=True,
            disable_rotations=kind is Kind.SLIDE,
            depth_test=False,
            opacity=0.85,
            position=self._place,
            wxyz=wxyz(self._turn),
        )

        async def on_update(event: Any) -> None:
            if (to := dragged_to(event.target)) is not None:
                with suppress(SynoviaError, ValueError):
                    self._drag(row, event.phase, *to)
            if event.phase == "end":
                self._grab = None
                self._hand.end()

        gizmo.on_update(on_update)
        return gizmo

    def _drag(self, row: int, phase: str, place: Array, turn: Array) -> None:
        """Set the joint while its gizmo is dragged to a position (3,), scene units, and a rotation (3, 3)."""
        body = self._body
        with body.lock:
            at = row + body.rooted.added
            if phase == "start" or self._grab is None:
                self._hand.begin()
                values = body.pose.q[body.skeleton.q_slice(at)].copy()
                self._grab = _Grab(self._turn, self._place, body.pose.frames[at].copy(), values)
            grab = self._grab
            body.set_joint(at, self._values(row, grab, turn, place), step=False)

    def _values(self, row: int, grab: _Grab, turn: Array, place: Array) -> Array:
        """Return the values of a joint for the rotation and the position of its gizmo."""
        from scipy.spatial.transform import Rotation

        joint, frame = self._body.given.joints[row], grab.joint[:9].reshape(3, 3)
        vector = Rotation.from_matrix(turn @ grab.turn.T).as_rotvec()
        if joint.kind is Kind.HINGE:
            angle = float(vector @ (frame @ np.asarray(joint.axis)))
            grab.angle += math.remainder(angle - grab.angle, 2.0 * math.pi)  # counts rotations beyond half a turn
            return grab.values + self._handles.turned(np.array([grab.angle]))
        start = grab.place / self._scale
        moved = self._handles.moved(start, place / self._scale, grab.turn) - start
        if joint.kind is Kind.SLIDE:
            return grab.values + moved @ (frame @ np.asarray(joint.axis))
        about = Rotation.from_rotvec(self._handles.turned(vector)).as_matrix()
        return turned_values(grab.values, frame, about, moved)


def turned_values(values: Array, frame: Array, turn: Array, moved: Array | None = None) -> Array:
    """Return the values of a ball or free joint after a rotation and, for a free joint, a displacement in world axes.

    Args:
        values: The values before, (4,) or (7,).
        frame: World rotation of the joint before, (3, 3).
        turn: The rotation, (3, 3).
        moved: Displacement of a free joint, (3,), length units.
    """
    own = quat_to_matrix(values[-4:])
    out = np.array(values)
    out[-4:] = matrix_to_quat(own @ frame.T @ turn @ frame)
    if len(out) > 4 and moved is not None:
        out[:3] += own @ frame.T @ moved
    return out


def _facing(axes: Array, near: Array) -> Array:
    """Return axes, (3, 3), rotated about their z axis so that the quarter between x and y faces a direction, (3,)."""
    x, y, _ = near @ axes
    angle = math.atan2(y, x) - 0.25 * math.pi
    cosine, sine = math.cos(angle), math.sin(angle)
    return axes @ np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
