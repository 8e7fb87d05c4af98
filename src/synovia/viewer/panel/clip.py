"""The tab *Animation*: choose, play and scrub the clip under the goals, and key poses on top of it."""

from __future__ import annotations

import time
from typing import Any, Final

from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.editing.clip.drag import REACHES, WHOLE
from synovia.viewer.editing.clip.layers import ClipLayers
from synovia.viewer.editing.editor_values import free_label
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.goals import Goals
from synovia.viewer.page.actions import Actions
from synovia.viewer.page.style import PRIMARY, WARN, note, safe
from synovia.viewer.page.tab import Desk, Tab
from synovia.viewer.panel.controls import Field, above_zero, whole
from synovia.viewer.panel.curves import CurvesView
from synovia.viewer.panel.layers import Layers
from synovia.viewer.panel.sheet import Sheet
from synovia.viewer.scene.ghosts import ONION

_NONE = "(none)"
_BODY = "whole body"
_KEY = ("Go to", "Move", "Copy", "Delete")
_KEY_HINT = "Move and Copy bring the key to the current frame. Marks above can be dragged, with Ctrl to copy."
_PATIENCE: Final = 1.0  # seconds of solving before the page shows the progress
_SECONDS = 2.0  # length of a new clip
_EMPTY = "This model has no clip. Drop one on the page, or begin one here: pose the body, key it, go to another frame."


class ClipTab(Tab):
    """Chooses, plays and scrubs a clip, and lists the keys on top of it.

    Args:
        page: The page.
        actions: Actions that also have a key.
        animation: The clip.
        layers: The layers between the clip and its keys.
        goals: The goals, whose limbs have keys of their own.
    """

    def __init__(self, page: Desk, actions: Actions, animation: Animation, layers: ClipLayers, goals: Goals) -> None:
        """Store the arguments."""
        super().__init__(page)
        self._actions, self._animation, self._layers, self._goals = actions, animation, layers, goals
        layers.progress = self._show_progress

    def build(self) -> None:
        """Add the controls."""
        gui = self.gui
        self._rows: list[Any] = []
        self._keyed: tuple[Any, ...] = ()  # state that the sheet shows
        self._frames: tuple[int, ...] = ()  # frames of the listed keys
        self._length = _SECONDS
        self._shown_notes: tuple[str, ...] = ()  # the notes that are shown
        self._solving_since = time.monotonic()
        self._empty = gui.add_html(note(_EMPTY), visible=not self._animation.clips)
        self._names = self._labels()
        self._pick = self.connect(gui.add_dropdown("Clip", tuple(self._names)), self._picked)
        self._notes: Any = gui.add_html("", visible=False)
        self._playing = self.connect(
            gui.add_checkbox("Play", False), lambda on: self._animation.set_play(playing=bool(on))
        )
        self._time = self.connect(
            gui.add_slider("Time s", 0.0, 1.0, 0.001, 0.0),
            lambda seconds: self._animation.set_play(time=float(seconds), playing=False),
        )
        self._frame = Field(self, "Frame", (0.0,), self._go, digits=0)
        self._span = Field(
            self, "First, last", (0.0, 0.0), self._cut, digits=0, hint="The frames that play and are saved."
        )
        self._key = gui.add_button(
            "Key the pose", color=PRIMARY, hint="Layers that only hold this frame become a key of the whole pose (K)."
        )
        self.connect(self._key, lambda _: self._actions.key(), click=True)
        self._auto = gui.add_checkbox(
            "Auto-key", False, hint="Key the pose at the end of each drag, turn or step (Shift-K)."
        )
        self.connect(self._auto, self._set_auto)
        self._reach: Any = gui.add_dropdown(
            "Drags move", REACHES, initial_value=WHOLE, hint="The joints that a drag may move; the limb moves first."
        )
        self.connect(self._reach, self._animation.set_reach)
        self._folder = gui.add_folder("Keys", expand_by_default=True, visible=False)
        with self._folder:
            self._sheet = Sheet(self, self._animation)
            self._part: Any = gui.add_dropdown(
                "Keys of", (_BODY,), hint="The whole body, or the limb of a goal, whose keys move by themselves."
            )
            self.connect(self._part, lambda _: self.page.redraw())
        self._stack = Layers(self, self._layers, self._animation, self._goals)
        self._curves = self.connect(
            gui.add_checkbox(
                "Curves", False, hint="The values of the selected joint over the frames, with its limits."
            ),
            lambda _: self.page.redraw(),
        )
        self._drawn: tuple[Any, ...] | None = None  # state that the curves show
        self._view = CurvesView(self, lambda frame: self._go((float(frame),)))
        self._speed = self.connect(
            gui.add_slider("Speed", -2.0, 3.0, 0.05, 1.0),
            lambda speed: self._animation.set_play(speed=float(speed)),
        )
        self._weight = self.connect(
            gui.add_slider(
                "Weight", 0.0, 1.0, 0.01, 1.0, hint="Share of the clip when blended with the pose without it."
            ),
            lambda weight: self._animation.set_play(weight=min(max(float(weight), 0.0), 1.0)),
        )
        path = gui.add_checkbox("Path", False, hint="Show where the selected joint goes in the clip, and its keys.")
        self._path = self.connect(path, self._show_path)
        original = gui.add_checkbox("Original", False, hint="Show the clip without layers and keys, as a ghost.")
        self._original = self.connect(original, self._show_original)
        self._onion: Any = gui.add_dropdown(
            "Onion skin", ONION, hint="Show two poses before (orange) and after (blue), some frames away or keyed (O)."
        )
        self.connect(self._onion, self._set_onion)
        self._every = Field(
            self, "Ghosts every", (5.0,), self._set_every, digits=0, hint="Frames between two poses of the onion skin."
        )
        with gui.add_folder("New clip", expand_by_default=not self._animation.clips):
            self._seconds = Field(self, "Length s", (_SECONDS,), self._set_length)
            button = gui.add_button(
                "Begin a clip",
                color=None if self._animation.clips else PRIMARY,
                hint="A still clip of the current pose, to animate with keys.",
            )
            self._begin = self.connect(button, lambda _: self._animation.new_clip(self._length), click=True)
        self._help = gui.add_html(
            note(
                "Drag a target: a layer holds it at this frame, with fades of half a second. Or key the pose: the clip"
                " then goes smoothly from key to key. On a new clip, the first and the last key hold."
            )
        )

    def _labels(self) -> list[str]:
        """Return the options of the dropdown."""
        out = [_NONE]
        for motion in self._animation.clips:
            out.append(free_label(motion.name, out))
        return out

    def _set_length(self, values: tuple[float, ...]) -> None:
        """Set the length of the next new clip."""
        self._length = values[0]

    def _set_auto(self, on: bool) -> None:
        """Set whether each edit becomes a key; otherwise keys are made only on request."""
        self._animation.auto_key = bool(on)

    def _show_path(self, on: bool) -> None:
        """Show or hide the path of the selected joint."""
        self.page.scene.path.shown = bool(on)
        self.page.redraw()

    def _show_original(self, on: bool) -> None:
        """Show or hide the ghost of the clip without layers and keys."""
        self.page.scene.original.shown = bool(on)
        self.page.redraw()

    def _show_progress(self, done: int, of: int) -> None:
        """Show the progress of solving layers if solving takes more than a second."""
        now = time.monotonic()
        if done == 0 or done >= of:
            self._solving_since = now
        elif now - self._solving_since > _PATIENCE:
            self.page.notify(f"Solving layers: {100 * done // of} %")

    def _set_onion(self, mode: str) -> None:
        """Choose the poses of the onion skin."""
        self.page.scene.onion.mode = mode
        self.page.redraw()

    def _set_every(self, values: tuple[float, ...]) -> None:
        """Set the frames from one pose of the onion skin to the next."""
        self.page.scene.onion.every = int(above_zero("frames", float(whole("frames", values[0]))))
        self.page.redraw()

    def _picked(self, name: str) -> None:
        number = self._names.index(name) - 1
        self._animation.set_clip(None if number < 0 else number)
        self._animation.set_play(playing=number >= 0)

    def _go(self, values: tuple[float, ...]) -> None:
        """Go to a frame."""
        motion = self._animation.play.motion
        if motion is not None:
            frame = min(max(whole("frame", values[0]), 0), len(motion) - 1)
            self._animation.set_play(time=frame / motion.fps, playing=False)

    def _cut(self, values: tuple[float, ...]) -> None:
        """Set the first and the last frame that play."""
        self._animation.set_span(whole("first frame", values[0]), whole("last frame", values[1]))

    def _show_keys(self) -> None:
        """Show the sheet of keys by goal, and a row for each key of the chosen part of the body."""
        keys, motion = self._animation.play.keys, self._animation.play.motion
        self._folder.visible = bool(keys)
        if not keys:
            return
        parts = {
            editor.label: self._goals.part_of(editor.key) for editor in self._goals.editors if editor.row is not None
        }
        labels = (_BODY, *parts)
        state = (keys, labels, self._part.value, motion)
        if state == self._keyed:
            return
        self._keyed = state
        if self._part.options != labels:
            self._part.options = labels
        if self._part.value not in labels:
            self._part.value = _BODY
        chosen = parts.get(str(self._part.value))
        last = max(len(motion or ()) - 1, 1)
        self._sheet.show(keys, {_BODY: None, **parts}, last)
        frames = tuple(key.frame for key in keys if key.frame is not None and self._animation.keyed(key, chosen))
        if frames != self._frames:
            self._list_keys(frames)

    def _list_keys(self, frames: tuple[int, ...]) -> None:
        """Show a row for each key."""
        for row in self._rows:
            row.remove()
        self._frames, self._rows = frames, []
        with self._folder:
            for frame in frames:
                row = self.gui.add_button_group(f"Frame {frame}", _KEY, hint=_KEY_HINT)
                self.connect(row, lambda button, frame=frame: self._at_key(button, frame), click=True)
                self._rows.append(row)

    def _at_key(self, button: str, frame: int) -> None:
        named = next((one for one in self._goals.editors if one.label == self._part.value), None)
        part = None if named is None else self._goals.part_of(named.key)
        if button == "Delete":
            self._animation.unkey(frame, part)
        elif button in ("Move", "Copy"):
            self._animation.move_key(frame, copy=button == "Copy", part=part)
        else:
            self._go((float(frame),))

    def _show_curves(self) -> None:
        """Show the curves of the selected joint, if curves are enabled and have changed."""
        play, joint = self._animation.play, self.page.joint
        if not self._curves.value or play.motion is None:
            self._view.hide()
            self._drawn = None
            return
        state = (joint, play.motion, play.edited, play.layer, self._animation.rooted)
        if state != self._drawn:
            self._drawn = state
            curves = None if joint is None else self._animation.curves(joint)
            name = "" if joint is None else self._animation.given.joint_names[joint]
            self._view.show(name, curves, max(len(play.motion) - 1, 1))

    def _show_notes(self, notes: tuple[str, ...]) -> None:
        """Show notes on ignored parts of the clip."""
        if notes != self._shown_notes:
            self._shown_notes = notes
            self._notes.content = note("<br>".join(safe(one) for one in notes), WARN)
            self._notes.visible = bool(notes)

    def show(self, frame: Frame) -> None:
        """Update the controls from the clip."""
        if len(self._names) != 1 + len(self._animation.clips):
            self._names = self._labels()
            self._pick.options = tuple(self._names)
            self._empty.visible, self._begin.color = False, None
        play = self._animation.play
        number = 0
        if play.motion is not None:
            number = 1 + next(i for i, motion in enumerate(self._animation.clips) if motion is play.motion)
            self._show_notes(play.motion.notes)
            length = max(round(play.motion.duration, 3), 0.001)
            if self._time.max != length:
                self._time.max = length
        else:
            self._show_notes(())
        self._pick.value = self._names[number]
        self._playing.value = play.playing
        chosen = number > 0
        onion = self.page.scene.onion
        self._reach.value = self._animation.reach
        self._auto.value, self._onion.value = self._animation.auto_key, onion.mode
        self._every.show((float(onion.every),))
        self._every.visible = chosen and onion.mode == "frames"
        controls = (self._playing, self._time, self._speed, self._weight, self._key, self._auto, self._path)
        more = (self._reach, self._onion, self._help, self._frame, self._span, self._curves, self._original)
        for control in (*controls, *more):
            control.visible = chosen
        self._speed.value, self._weight.value = play.speed, play.weight
        self._frame.show((float(play.frame),))
        self._span.show((float(play.first), float(play.end)))
        self._show_keys()
        self._stack.show()
        self._show_curves()
        self._original.value = self.page.scene.original.shown
        self._time.value = min(max(round(frame.time, 3), 0.0), self._time.max)
