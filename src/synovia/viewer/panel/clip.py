"""The tab *Clip*: choose, play and scrub the clip under the goals."""

from __future__ import annotations

from synovia.viewer.editor_values import free_label
from synovia.viewer.engine import Frame
from synovia.viewer.page import Tab
from synovia.viewer.style import note

_NONE = "(none)"


class Clip(Tab):
    """Chooses, plays and scrubs a clip."""

    def build(self) -> None:
        """Add the controls."""
        gui = self.gui
        if not self.session.clips:
            gui.add_html(note("This model has no clip. To play one: synovia view MODEL CLIP."))
            self._names: list[str] = []
            return
        self._names = [_NONE]
        for motion in self.session.clips:
            self._names.append(free_label(motion.name, self._names))
        self._pick = self.connect(gui.add_dropdown("Clip", tuple(self._names)), self._picked)
        self._playing = self.connect(
            gui.add_checkbox("Play", False), lambda on: self.session.set_play(playing=bool(on))
        )
        self._time = self.connect(
            gui.add_slider("Time s", 0.0, 1.0, 0.001, 0.0),
            lambda seconds: self.session.set_play(time=float(seconds), playing=False),
        )
        self._speed = self.connect(
            gui.add_slider("Speed", -2.0, 3.0, 0.05, 1.0), lambda speed: self.session.set_play(speed=float(speed))
        )
        self._weight = self.connect(
            gui.add_slider(
                "Weight", 0.0, 1.0, 0.01, 1.0, hint="Share of the clip in the blend with the pose without it."
            ),
            lambda weight: self.session.set_play(weight=min(max(float(weight), 0.0), 1.0)),
        )
        gui.add_html(note("Goals act on top of the clip. Joints that no goal needs follow the clip."))

    def _picked(self, name: str) -> None:
        number = self._names.index(name) - 1
        self.session.set_clip(None if number < 0 else number)
        self.session.set_play(playing=number >= 0)

    def show(self, frame: Frame) -> None:
        """Update the controls from the clip."""
        if not self._names:
            return
        play = self.session.play
        number = 0
        if play.motion is not None:
            number = 1 + next(i for i, motion in enumerate(self.session.clips) if motion is play.motion)
            length = max(round(play.motion.duration, 3), 0.001)
            if self._time.max != length:
                self._time.max = length
        self._pick.value = self._names[number]
        self._playing.value = play.playing
        for handle in (self._playing, self._time, self._speed, self._weight):
            if handle.disabled != (number == 0):
                handle.disabled = number == 0
        self._speed.value, self._weight.value = play.speed, play.weight
        self._time.value = min(max(round(frame.time, 3), 0.0), self._time.max)
