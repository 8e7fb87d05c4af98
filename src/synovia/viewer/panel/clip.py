"""The tab *Animation*: choose the clip under the goals, key poses on top of it, and show it in the scene."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from synovia.clips.editing.reach import REACHES, WHOLE
from synovia.model.motion import Motion
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.editing.clip.layers import ClipLayers
from synovia.viewer.editing.editor_values import free_label
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.goals import Goals
from synovia.viewer.page.actions import Actions
from synovia.viewer.page.saving import Files
from synovia.viewer.page.style import PRIMARY, WARN, note, safe
from synovia.viewer.page.tab import Desk, Tab
from synovia.viewer.panel.controls import Field, above_zero, whole
from synovia.viewer.panel.layers import Layers
from synovia.viewer.scene.ghosts import ONION

_NONE = "(none)"
_TOOLS: Final[Mapping[str, Callable[[Motion], Motion]]] = {
    "Mirrored": Motion.mirrored, "Looped": Motion.looped, "In place": Motion.in_place
}  # fmt: skip
_PATIENCE: Final = 1.0  # seconds of solving before the page shows the progress
_SECONDS = 2.0  # length of a new clip
_EMPTY = "This model has no clip. Drop one on the page, or begin one here: pose the body, key it, go to another frame."


class ClipTab(Tab):
    """Chooses a clip, and sets how edits and the scene show it; the time line below the scene plays it.

    Args:
        page: The page.
        actions: Actions that also have a key.
        animation: The clip.
        layers: The layers between the clip and its keys.
        goals: The goals, which may become layers.
        files: Exports of the page.
    """

    def __init__(
        self, page: Desk, actions: Actions, animation: Animation, layers: ClipLayers, goals: Goals, files: Files
    ) -> None:
        """Store the arguments."""
        super().__init__(page)
        self._actions, self._animation, self._layers, self._goals = actions, animation, layers, goals
        self._files = files
        layers.progress = self._show_progress

    def build(self) -> None:
        """Add the controls."""
        gui = self.gui
        self._length = _SECONDS
        self._shown_notes: tuple[str, ...] = ()  # the notes that are shown
        self._solving_since = time.monotonic()
        self._empty = gui.add_html(note(_EMPTY), visible=not self._animation.clips)
        self._names = self._labels()
        self._pick = self.connect(gui.add_dropdown("Clip", tuple(self._names)), self._picked)
        self._notes: Any = gui.add_html("", visible=False)
        hint = (
            "Make a clip of what plays, from In to Out, with its layers: its mirror image, a loop, or without its path."
        )
        self._tools: Any = gui.add_button_group("Make a clip", tuple(_TOOLS), hint=hint)
        self.connect(self._tools, self._make, click=True, slow=True)
        self._key = gui.add_button(
            "Key the pose",
            color=PRIMARY,
            hint="Layers that only hold this frame become a key of the whole pose (Enter).",
        )
        self.connect(self._key, lambda _: self._actions.key(), click=True)
        auto = gui.add_checkbox(
            "Auto-key", False, hint="Key the pose at the end of each drag, turn or step (Shift-Enter)."
        )
        self._auto = self._sets(auto, self._animation, "auto_key")
        self._reach: Any = gui.add_dropdown(
            "Drags move", REACHES, initial_value=WHOLE, hint="The joints that a drag may move; the limb moves first."
        )
        self.connect(self._reach, self._animation.set_reach)
        self._stack = Layers(self, self._layers, self._animation, self._goals)
        self._speed = self.connect(
            gui.add_slider("Speed", -2.0, 3.0, 0.05, 1.0, hint="Also of the saved clip; below 0: backwards."),
            lambda speed: self._animation.set_play(speed=float(speed)),
        )
        self._weight = self.connect(
            gui.add_slider(
                "Weight", 0.0, 1.0, 0.01, 1.0, hint="Share of the clip when blended with the pose without it."
            ),
            lambda weight: self._animation.set_play(weight=min(max(float(weight), 0.0), 1.0)),
        )
        scene = self.page.scene
        path = gui.add_checkbox("Path", False, hint="Show where the selected joint goes in the clip, and its keys.")
        self._path = self._sets(path, scene.path, "shown")
        contacts = gui.add_checkbox("Foot contacts", False, hint="Show where feet stand in the clip.")
        self._contacts = self._sets(contacts, scene.path, "contacts")
        follow = gui.add_checkbox("Camera follows", True, hint="The camera goes along when the body leaves its place.")
        self._follow = self._sets(follow, scene.leash, "on")
        original = gui.add_checkbox("Original", False, hint="Show the clip without layers and keys, as a ghost.")
        self._original = self._sets(original, scene.original, "shown")
        hint = "Show two poses before (orange) and after (blue), some frames away or keyed (H)."
        self._onion: Any = self._sets(gui.add_dropdown("Onion skin", ONION, hint=hint), scene.onion, "mode")
        self._every = Field(
            self, "Ghosts every", (5.0,), self._set_every, digits=0, hint="Frames between two poses of the onion skin."
        )
        with gui.add_folder("New clip", expand_by_default=not self._animation.clips):
            self._seconds = Field(self, "Length s", (_SECONDS,), lambda typed: setattr(self, "_length", typed[0]))
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

    def _make(self, tool: str) -> None:
        """Make a clip from the present one with a tool, and play it."""
        self._animation.required()
        before = self._files.solved_clip([])
        made = _TOOLS[tool](before)
        name = f"{before.name}, {tool.lower()}"
        self._animation.add_clip(Motion(made.skeleton, made.q, made.fps, name=name, notes=made.notes))
        self.page.notify(f"This is a new clip, {tool.lower()}; the former one is in the list.")
        self.page.refresh()

    def _labels(self) -> list[str]:
        """Return the options of the dropdown."""
        out = [_NONE]
        for motion in self._animation.clips:
            out.append(free_label(motion.name, out))
        return out

    def _sets(self, handle: Any, owner: object, name: str) -> Any:
        """Set an attribute to the value of a control after each change; return the control."""

        def put(value: Any) -> None:
            setattr(owner, name, value)
            self.page.redraw()

        return self.connect(handle, put)

    def _show_progress(self, done: int, of: int) -> None:
        """Show the progress of solving layers if solving takes more than a second."""
        now = time.monotonic()
        if done == 0 or done >= of:
            self._solving_since = now
        elif now - self._solving_since > _PATIENCE:
            self.page.notify(f"Solving layers: {100 * done // of} %")

    def _set_every(self, values: tuple[float, ...]) -> None:
        """Set the number of frames between poses of the onion skin."""
        self.page.scene.onion.every = int(above_zero("frames", float(whole("frames", values[0]))))
        self.page.redraw()

    def _picked(self, name: str) -> None:
        number = self._names.index(name) - 1
        self._animation.set_clip(None if number < 0 else number)
        self._animation.set_play(playing=number >= 0)

    def show(self, frame: Frame) -> None:
        """Update the controls from the clip."""
        del frame
        if len(self._names) != 1 + len(self._animation.clips):
            self._names = self._labels()
            self._pick.options = tuple(self._names)
            self._empty.visible, self._begin.color = False, None
        play = self._animation.play
        number = next((1 + k for k, one in enumerate(self._animation.clips) if one is play.motion), 0)
        if (notes := () if play.motion is None else play.motion.notes) != self._shown_notes:
            self._shown_notes = notes  # notes on ignored parts of the clip
            self._notes.content, self._notes.visible = note("<br>".join(map(safe, notes)), WARN), bool(notes)
        self._pick.value = self._names[number]
        chosen = number > 0
        onion = self.page.scene.onion
        self._reach.value = self._animation.reach
        self._auto.value, self._onion.value = self._animation.auto_key, onion.mode
        self._every.show((float(onion.every),))
        self._every.visible = chosen and onion.mode == "frames"
        for control in (
            self._tools, self._speed, self._weight, self._key, self._auto, self._path, self._reach, self._onion,
            self._help, self._original, self._contacts, self._follow,
        ):  # fmt: skip
            control.visible = chosen
        self._speed.value, self._weight.value = play.speed, play.weight
        self._stack.show()
        self._original.value = self.page.scene.original.shown
