"""The keys of a page. viser also lists them with their commands in its palette (Ctrl-K)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from synovia.errors import InputError
from synovia.model import Kind
from synovia.model.geometry import Array
from synovia.viewer.editing.body import Body
from synovia.viewer.editing.editor import GoalEditor
from synovia.viewer.editing.goals import Goals
from synovia.viewer.editing.hand import Hand
from synovia.viewer.page.actions import Actions
from synovia.viewer.page.control import connect
from synovia.viewer.page.tab import Desk
from synovia.viewer.scene.ghosts import ONION
from synovia.viewer.scene.rings import turned_values
from synovia.viewer.scene.targets import Gizmo

_STEP: Final = 0.007  # step of an arrow key, fraction of the body's size, rounded to a power of ten; 1 cm for a person
_ANGLE: Final = math.radians(5.0)  # rotation per press of an arrow key, radians
_ALL: Final = 1 << 40  # more frames than any clip has
_STEPS: Final = (
    ("First frame", "home", -_ALL),
    ("Last frame", "end", _ALL),
    ("Frame before", "pageup", -1),
    ("Next frame", "pagedown", 1),
)
# by direction: key, modifier, index of the view axis, and sign
_ARROWS: Final = {
    "right": ("arrowright", "", 0, 1.0),
    "left": ("arrowleft", "", 0, -1.0),
    "up": ("arrowup", "", 1, 1.0),
    "down": ("arrowdown", "", 1, -1.0),
    "away": ("arrowup", "shift", 2, 1.0),
    "nearer": ("arrowdown", "shift", 2, -1.0),
}


class Keys:
    """The keys of one page.

    Args:
        page: The page, with its scene.
        actions: Actions that also have a button.
        goals: The goals.
        body: The body.
        hand: Edits by hand.
    """

    def __init__(self, page: Desk, actions: Actions, goals: Goals, body: Body, hand: Hand) -> None:
        """Register the commands."""
        self._page, self._goals, self._body, self._hand = page, goals, body, hand
        clip = actions.transport
        self._smallest = 10.0 ** round(math.log10(_STEP * body.size))
        self._add("Move the target", "G", lambda: self._use("move"))
        self._add("Turn the target or the joint", "R", lambda: self._use("turn"))
        self._add("Undo", "Z", actions.undo, "cmd/ctrl")
        self._add("Redo", "Z", actions.redo, "cmd/ctrl+shift")
        self._add("Play or pause", "space", clip.play)
        for label, key, frames in _STEPS:
            self._add(label, key, lambda frames=frames: clip.step(frames))
        for label, key, way in (("Play backwards", "J", -1), ("Pause", "K", 0), ("Play forwards, or faster", "L", 1)):
            self._add(label, key, lambda way=way: clip.shuttle(way))
        self._add("Playback begins here", "I", lambda: clip.mark(last=False))
        self._add("Playback ends here", "O", lambda: clip.mark(last=True))
        self._add("Key the pose on top of the clip", "enter", actions.key)
        self._add("Auto-key, on or off", "enter", actions.switch_auto_key, "shift")
        self._add("Axes of the joint or of the world", "X", self._switch_axes)
        self._add("Snap, on or off", "N", self._switch_snap)
        self._add("Onion skin: off, frames, keys", "H", self._switch_onion)
        self._add("Frame the body", "F", page.scene.frame_body)
        self._add("Mirror the pose", "M", actions.mirror)
        self._add("Set the joint to its rest value", "R", actions.clear_joint, "alt")
        self._add("Copy the pose", "C", actions.copy_pose)
        self._add("Paste the pose", "V", actions.paste_pose)
        self._add("Paste the mirrored pose", "V", lambda: actions.paste_pose(mirror=True), "shift")
        for key, side in (("1", "front"), ("3", "left"), ("7", "top")):
            self._add(f"View: {side}", key, lambda side=side: page.scene.frame_body(side))
        self._add("Pin the joint, or let it go", "P", self._pin)
        self._add("Remove the goal", "delete", self._remove)
        self._add("Find a joint", "T", page.find_joint)
        self._next = self._add("Next target", "tab", lambda: self._go(1))
        self._previous = self._add("Previous target", "tab", lambda: self._go(-1), "shift")
        for word, (key, modifier, axis, sign) in _ARROWS.items():
            self._add(f"Target: {word}", key, lambda axis=axis, sign=sign: self._nudge(axis, sign), modifier or None)
        self.show()

    def show(self) -> None:
        """Enable the keys for the next and the previous target, if there is one.

        After the last target, Tab leads to the controls, and before the first target, Shift-Tab does, so that keyboard
        focus is never trapped.
        """
        keys = [editor.key for editor in self._targets()]
        at = keys.index(self._page.selected) if self._page.selected in keys else -1
        for command, off in ((self._next, at == len(keys) - 1), (self._previous, at <= 0)):
            if command.disabled != off:
                command.disabled = off

    def _add(self, label: str, key: Any, action: Callable[[], Any], modifier: Any = None) -> Any:
        """Register a command with its key; the page shows the errors of its action."""
        command = self._page.client.gui.add_command(label, hotkey=key, modifier=modifier)
        return connect(command, lambda _: action(), self._page.message, on="trigger")

    def _targets(self) -> list[GoalEditor]:
        """Return the goals whose targets are in the scene."""
        return [editor for editor in self._goals.editors if editor.has_target]

    def _chosen(self) -> GoalEditor:
        """Return the selected goal, which has a target in the scene.

        Raises:
            InputError: If there is no such goal.
        """
        editor = self._goals.find(self._page.selected)
        if editor is None:
            raise InputError("no target is selected", hint="press Tab or click a ball to select one")
        if not editor.has_target:
            raise InputError("this goal has no target in the scene", value=editor.label)
        return editor

    def _use(self, gizmo: Gizmo) -> None:
        """Show the arrows or the rings of the selected target, or hide them if they are shown."""
        if self._page.selected is None and self._page.joint is not None:
            if gizmo == "turn":
                self._page.scene.rings.toggle(self._page.joint)
                return
            self._page.select(self._goals.add("position", self._page.joint).key)
        editor, targets = self._chosen(), self._page.scene.targets
        if gizmo == "turn" and editor.kind == "position":
            self._goals.change(editor.key, kind="pose")  # add a rotation target, initially the joint's current rotation
            self._page.refresh()
        if not (editor.has_position if gizmo == "move" else editor.has_rotation):
            raise InputError(f"the target of this goal does not {gizmo}", value=editor.label)
        targets.gizmo = "" if targets.gizmo == gizmo else gizmo
        self._page.redraw()

    def _nudge(self, axis: int, sign: float) -> None:
        """Move the selected target a step along an axis of the view, or rotate it about this axis."""
        axes = self._page.scene.view_axes()
        if self._page.selected is None and self._page.joint is not None:
            self._nudge_joint(self._page.joint, axis, sign, axes)
            return
        editor = self._chosen()
        self._hand.begin(("nudge", editor.key))
        if editor.has_rotation and (self._page.scene.targets.gizmo == "turn" or not editor.has_position):
            self._goals.move(editor.key, turn=_turn(axis, sign * self._angle, axes) @ editor.rotation)
        else:
            self._goals.move(editor.key, place=editor.position + sign * self._step * axes[axis])
        self._hand.end()

    def _nudge_joint(self, row: int, axis: int, sign: float, axes: tuple[Array, Array, Array]) -> None:
        """Rotate a joint of the given skeleton a step about a view axis; a hinge or slide moves along its own axis."""
        with self._body.lock:
            at, kind = row + self._body.rooted.added, self._body.given.joints[row].kind
            values = self._body.pose.q[self._body.skeleton.q_slice(at)]
            if kind in (Kind.HINGE, Kind.SLIDE):
                values = values + sign * (self._angle if kind is Kind.HINGE else self._step)
            elif kind is not Kind.FIXED:
                frame = self._body.pose.frames[at, :9].reshape(3, 3)
                values = turned_values(values, frame, _turn(axis, sign * self._angle, axes))
            self._body.set_joint(at, values)
        self._hand.end()

    def _pin(self) -> None:
        """Pin the joint of the selected goal, or release it."""
        held = self._goals.pin(self._page.selected)
        self._page.refresh()
        label = self._goals.editor(self._page.selected).label
        self._page.notify(f"{label} is held where it is." if held else f"{label} is free.")

    def _remove(self) -> None:
        self._goals.remove(self._page.selected)
        self._page.refresh()

    @property
    def _step(self) -> float:
        """Displacement per arrow key, length units; with snapping, a snap step."""
        handles = self._page.scene.handles
        return handles.length if handles.snap else self._smallest

    @property
    def _angle(self) -> float:
        """Rotation per arrow key, radians; with snapping, a snap step."""
        handles = self._page.scene.handles
        return handles.angle if handles.snap else _ANGLE

    def _switch_axes(self) -> None:
        """Switch between the axes of the joint and of the world."""
        handles = self._page.scene.handles
        handles.local = not handles.local
        self._page.notify(f"Arrows and rings have the axes of the {'joint' if handles.local else 'world'}.")

    def _switch_snap(self) -> None:
        """Switch snapping on or off."""
        handles = self._page.scene.handles
        handles.snap = not handles.snap
        self._page.notify("Moves and turns go in steps." if handles.snap else "Moves and turns are free.")

    def _switch_onion(self) -> None:
        """Switch to the next mode of the onion skin."""
        onion = self._page.scene.onion
        onion.mode = ONION[(ONION.index(onion.mode) + 1) % len(ONION)]
        self._page.notify(f"Onion skin: {onion.mode}.")

    def _go(self, step: int) -> None:
        """Select the next or the previous target."""
        keys = [editor.key for editor in self._targets()]
        at = keys.index(self._page.selected) + step if self._page.selected in keys else 0
        if 0 <= at < len(keys):
            self._page.select(keys[at])


def _turn(axis: int, angle: float, axes: tuple[Array, Array, Array]) -> Array:
    """Return the rotation, (3, 3), of an arrow key.

    Keys for right and left rotate about the up axis, for up and down about the view's right axis, for away and nearer
    about the line of sight.
    """
    from scipy.spatial.transform import Rotation

    right, up, away = axes
    return Rotation.from_rotvec(angle * (up, -right, away)[axis]).as_matrix()
