"""The layers of the tab *Animation*: exact values of the layer that is selected on the time line."""

from __future__ import annotations

from typing import Any, Final

from synovia.clips.editing.reach import REACHES, WHOLE
from synovia.errors import InputError
from synovia.layers import is_movable
from synovia.text import length_text
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.editing.clip.drag import AWAY, distance_in
from synovia.viewer.editing.clip.layers import ClipLayers
from synovia.viewer.editing.goals import Goals
from synovia.viewer.page.style import DIM, WARN, note, safe
from synovia.viewer.page.tab import Tab
from synovia.viewer.panel.controls import Field, whole

_HELP: Final = (
    "A layer changes some frames of the clip and keeps the others. Drag a target or turn a joint: a layer holds it at"
    " this frame. Then drag the bar of the layer, its ends, or its fades."
)
_OTHER: Final = "other joints"
_SHOWN: Final = 3  # largest number of shown findings


class Layers:
    """The folder of layers of one tab.

    Args:
        tab: The tab.
        layers: The layers.
        animation: The clip.
        goals: The goals.
    """

    def __init__(self, tab: Tab, layers: ClipLayers, animation: Animation, goals: Goals) -> None:
        """Add the controls."""
        self._tab, self._layers, self._animation, self._goals = tab, layers, animation, goals
        self._state: tuple[Any, ...] | None = None  # state that is shown
        gui = tab.gui
        self._folder: Any = gui.add_folder("Layers", expand_by_default=True)
        with self._folder:
            self._name: Any = gui.add_html("")
            hint = "First and last, both included."
            self._frames = Field(tab, "Held frames", (0.0, 0.0), self._set_frames, digits=0, hint=hint)
            hint = "Frames before and after in which it fades in and out."
            self._fade = Field(tab, "Fade", (0.0,), self._set_fade, digits=0, hint=hint)
            self._relative: Any = gui.add_checkbox(
                "Goes along",
                False,
                hint="The target moves with the clip, like a hand raised during a walk; else it is a fixed place.",
            )
            tab.connect(self._relative, lambda on: layers.move_along(layers.chosen, bool(on)), slow=True)
            self._reach: Any = gui.add_dropdown(
                "Moves", (*REACHES, _OTHER), hint="The joints that may move to meet the target of the layer."
            )
            tab.connect(self._reach, self._set_reach, slow=True)
            self._remove: Any = gui.add_button("Remove the layer")
            tab.connect(self._remove, lambda _: layers.remove(layers.chosen), click=True, slow=True)
            self._shown_findings: Any = gui.add_html("")
            self._of_key: Any = gui.add_button(
                "Layer of this key", hint="The pose at this frame becomes a layer, which can hold for many frames."
            )
            tab.connect(self._of_key, lambda _: self._add_key(), click=True, slow=True)
            self._of_goal: Any = gui.add_button(
                "Layer of this goal", hint="For a goal without a target to drag: a layer holds it at this frame."
            )
            tab.connect(self._of_goal, lambda _: self._add_goal(), click=True, slow=True)

    def _set_frames(self, values: tuple[float, ...]) -> None:
        """Set the frames of the selected layer."""
        first, last = (whole("frame", value) for value in values)
        self._layers.change(self._layers.chosen, frames=(first, last))

    def _set_fade(self, values: tuple[float, ...]) -> None:
        """Set the fades of the selected layer."""
        self._layers.change(self._layers.chosen, blend=whole("fade", values[0]))

    def _add_key(self) -> None:
        """Make a layer from the key or the pose at the current frame."""
        self._layers.add_key()
        self._added()

    def _set_reach(self, reach: str) -> None:
        """Set the joints that the selected layer may move."""
        if reach != _OTHER:
            self._layers.change(self._layers.chosen, reach=reach)

    def _add_goal(self) -> None:
        """Make a layer from the selected goal.

        Raises:
            InputError: If no goal is selected.
        """
        if self._goals.find(self._tab.page.selected) is None:
            raise InputError("no goal is selected", hint="select it in the tab Targets")
        self._layers.add_goal(self._tab.page.selected)
        self._added()

    def _added(self) -> None:
        """Select the last layer, and show a message about it."""
        self._layers.chosen = len(self._layers.all) - 1
        layer = self._layers.all[-1]
        along = "; Goes along moves its target with the clip" if is_movable(layer) else ""
        self._tab.page.notify(f"Added the layer {layer.label}. Drag its bar to make it longer{along}.")

    def show(self) -> None:
        """Update the controls."""
        motion, layers = self._animation.play.motion, self._layers.all
        self._folder.visible = motion is not None
        if motion is None:
            return
        self._layers.chosen = min(self._layers.chosen, max(len(layers) - 1, 0))
        selected = self._goals.find(self._tab.page.selected)
        self._of_goal.visible = selected is not None and not selected.has_target
        state = (layers, self._layers.chosen, motion, self._layers.edited)
        if layers:
            layer = layers[self._layers.chosen]
            self._frames.show([float(frame) for frame in layer.bounds(len(motion))])
            self._fade.show((float(layer.blend),))
            self._relative.value = layer.relative
            self._name.content = note(f"<b>{safe(layer.label)}</b>")
            self._reach.value = (self._layers.reach(self._layers.chosen) or _OTHER) if layer.all_goals() else WHOLE
            self._reach.visible = bool(layer.all_goals())
        if state == self._state:
            return
        self._state = state
        for control in (self._name, self._frames, self._fade, self._remove):
            control.visible = bool(layers)
        self._reach.visible = self._reach.visible and bool(layers)
        self._relative.visible = bool(layers) and is_movable(layers[self._layers.chosen])
        self._shown_findings.content = self._text()

    def _text(self) -> str:
        """Return the effects and findings of the selected layer as HTML."""
        if not self._layers.all:
            return note(_HELP)
        layer, motion = self._layers.all[self._layers.chosen], self._animation.required()[1]
        label = layer.label
        edited = self._layers.edited
        lines = [] if edited is None else edited.moved(label)
        found = [finding.text for finding in self._layers.findings(self._layers.chosen)][:_SHOWN]
        away = distance_in(self._animation.play, layer.bounds(len(motion)))
        if not layer.relative and is_movable(layer) and away > AWAY * motion.skeleton.size:
            far = length_text(away, motion.skeleton.meters_per_unit)
            found.insert(0, f"Its target stays in place while the body goes {far}. Goes along takes it with the body.")
        out = note("<br>".join(map(safe, lines)), DIM) if lines else ""
        return out + (note("<br>".join(map(safe, found)), WARN) if found else "")
