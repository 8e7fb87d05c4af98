"""The page of one browser: its session, scene, controls and solver thread."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from synovia.ik.solution import miss_text
from synovia.model.shapes.world import World
from synovia.surface import Surface
from synovia.text import UNITS, counted, short_names
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.session import Session
from synovia.viewer.editing.worker import Worker
from synovia.viewer.page.actions import Actions
from synovia.viewer.page.control import Message
from synovia.viewer.page.style import BAD, BRANDS, DIM, GOOD, WARN, note, safe, status_line, style
from synovia.viewer.page.tab import Navigation, Tab
from synovia.viewer.scene.scene import Scene
from synovia.viewer.scene.skin import Look
from synovia.viewer.serving.view import Host

if TYPE_CHECKING:
    from viser import ClientHandle

_TEXT_PERIOD: Final = 0.12  # seconds between two updates of the text
_HINT: Final = "Drag a ball or a joint. G moves and R turns the selected target; Ctrl-K lists all keys."


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The model of a page.

    Args:
        command: File or name of the model, for the Python code and the command that the page shows.
        surface: Surface of the body.
        navigation: Navigation to other pages.
        world: Obstacles around the body; None without any.
        loops: The model's file of loops; None for the file next to the model.
    """

    command: str
    surface: Surface
    navigation: Navigation
    world: World | None = None
    loops: str | Path | None = None


class Commands(Protocol):
    """Protocol of commands with keys; ``Keys`` implements it."""

    def show(self) -> None:
        """Enable the commands that are available now."""


class Page:
    """The page of one browser.

    Args:
        client: The browser.
        session: The session of this page.
        model: The model.
        host: Interface of the view that serves the page.
        tabs: Returns the titles and the tabs next to the scene.
        keys: Adds the commands with keys.
    """

    def __init__(
        self,
        client: ClientHandle,
        session: Session,
        model: Model,
        host: Host,
        tabs: Callable[[Page], Sequence[tuple[str, Tab]]],
        keys: Callable[[Page], Commands],
    ) -> None:
        """Add the scene and the controls, and start to solve."""
        self.client, self.session, self.host, self.dark = client, session, host, host.dark
        self.command, self.surface, self.navigation = model.command, model.surface, model.navigation
        self.loops = model.loops
        self.selected: int | None = session.goals.editors[0].key if session.goals.editors else None
        self.joint: int | None = session.goals.editors[0].row if session.goals.editors else None
        self.frame: Frame | None = None
        self.joint_labels = _labels(session)
        self.unit = unit_of(session.body.given.meters_per_unit)
        self.message = Message(self.wake, host.folder)
        self._updates: list[float] = []  # times to update the text even if nothing changed
        self._last = 0.0  # time of the last update of the text
        self._status_text = ""
        self._searches = 0  # number of searches for a joint in the tree
        self.closed = False
        self._theme()
        self.scene = Scene(
            client, session, Look(model.surface, host.dark, host.shadows, model.world), self.select, self.select_joint
        )
        self.scene.targets.selected, self.scene.joint = self.selected, self.joint
        self._tabs: list[Tab] = []
        self.actions = Actions(self, session.history, session.body, session.animation, session.poses)
        self._panel(tabs(self))
        labels = list(self.joint_labels)
        names = safe(json.dumps([labels[row] for row in self.scene.balls]))
        client.gui.add_html(f'<div hidden class="synovia-joints" data-names="{names}"></div>')
        self.keys = keys(self)
        self.worker = Worker(session.state, self._show, host.background, self._next_update)

    def _theme(self) -> None:
        """Set the page's colours."""
        self.client.gui.configure_theme(
            control_width="large",
            dark_mode=self.dark,
            show_logo=False,
            show_share_button=False,
            brand_color=BRANDS[self.dark],
        )

    def _panel(self, tabs: Sequence[tuple[str, Tab]]) -> None:
        """Add the controls."""
        gui = self.client.gui
        gui.set_panel_label(f"Synovia: {self.session.body.given.name}"[:60])
        gui.add_html(style(f"{self.session.body.given.name} · Synovia"))
        self._status = gui.add_html("")
        self._hint = gui.add_html(note(_HINT, DIM))
        group = None
        for title, tab in tabs:
            if title:
                group = group or gui.add_tab_group()
            with group.add_tab(title) if group else nullcontext():
                tab.build()
                self._tabs.append(tab)

    def select(self, key: int | None) -> None:
        """Select a goal, or none, and its joint."""
        editor = self.session.goals.find(key)
        self._select(key, None if editor is None else editor.row)

    def select_joint(self, row: int) -> None:
        """Select a joint, a row of the given skeleton, and its goal if it has one."""
        goals = (editor.key for editor in self.session.goals.editors if editor.row == row and editor.has_target)
        self._select(next(goals, None), row)

    def _select(self, key: int | None, row: int | None) -> None:
        """Select a goal and a joint."""
        if (key, row) == (self.selected, self.joint):
            return
        self.selected = self.scene.targets.selected = key
        self.joint = self.scene.joint = row
        for tab in self._tabs:
            tab.select(key)
        self.redraw()

    def refresh(self) -> None:
        """Update the tabs after a change that may have replaced the goals."""
        keys = {editor.key for editor in self.session.goals.editors}
        if self.selected not in keys and (self.selected is not None or self.joint is None):
            self.select(min(keys, default=None))
        for tab in self._tabs:
            tab.select(self.selected)
        self.redraw()

    def find_joint(self) -> None:
        """Open the search in the tree of joints; ``browser.js`` opens it when the number of searches changes."""
        self._searches += 1
        self.redraw()

    def redraw(self) -> None:
        """Update scene and text after a change that is no edit."""
        self.session.state.touch()

    def notify(self, text: str) -> None:
        """Show a message for a few seconds."""
        self.message.show(text)

    def wake(self, seconds: float) -> None:
        """Update the text now, and once more after some seconds."""
        self._updates.append(time.monotonic() + seconds)
        self.redraw()

    def _next_update(self) -> float | None:
        """Return the seconds until the next update of the text; None to wait for a change."""
        now = time.monotonic()
        for due in [due for due in self._updates if due <= now]:
            self._updates.remove(due)  # removed in place, because another thread may add a time
        return min(self._updates) - now + 0.02 if self._updates else None

    def set_dark(self, dark: bool) -> None:
        """Switch to the dark or the light theme."""
        self.dark = dark
        self._theme()
        self.scene.set_theme(dark)
        self.redraw()

    def _show(self, frame: Frame) -> None:
        """Show a frame: the scene every time, the text a few times a second and at rest."""
        if self.closed:
            return
        self.frame = frame
        now = time.monotonic()
        with suppress(RuntimeError):  # a control was removed in the meantime
            if not frame.still:
                self.scene.show(frame)
                for tab in self._tabs:
                    tab.record(frame, now)
            if now - self._last >= _TEXT_PERIOD or frame.busy or frame.still:
                self._last = now
                self._show_text(frame)

    def _show_text(self, frame: Frame) -> None:
        """Show the status and the text of the tabs."""
        if refused := self.session.state.refused:
            self.session.state.refused = ""
            self.notify(refused)
        said = ' data-said="1"' if self.message.text else ""
        state = f'data-joint="{"" if self.joint is None else self.joint}" data-searches="{self._searches}"{said}'
        text = status_line(self._status_note(frame), state)
        if text != self._status_text:
            self._status.content = self._status_text = text
        if self.session.history.edited and self._hint.visible:  # the hint is for users who have not edited anything yet
            self._hint.visible = False
        self.keys.show()
        for tab in self._tabs:
            tab.show(frame)
        self.client.flush()

    def _status_note(self, frame: Frame) -> str:
        """Return the status line: a message, or status and time of the solve."""
        if text := self.message.text:
            return note(safe(text), WARN)
        if frame.busy:
            return _compiling_note(*frame.compiling)
        if frame.trouble:
            return note(safe(frame.trouble), WARN)
        if frame.solution is None:
            return note(self._clip_note(frame))
        if frame.following is not None and frame.late:
            behind = miss_text(frame.following.lag, self.session.body.given.meters_per_unit)
            return note(f'<b style="color:{WARN}">on its way</b>, {safe(behind)} behind')
        status = frame.solution.status
        colour = GOOD if frame.solution.reached else BAD
        name = status.name.lower().replace("_", " ")
        steps = "" if frame.following is not None else f" in {counted(frame.solution.steps, 'step')}"
        spent = f", {frame.milliseconds:.2f} ms" if frame.milliseconds > 0.0 else ""
        return note(
            f'<b style="color:{colour}">{name}</b>{steps}{spent} '
            f'<span style="color:{DIM}">({safe(self.session.solving.solver.name)})</span>'
        )

    def _clip_note(self, frame: Frame) -> str:
        """Return the state of the layers at the current frame of the clip as HTML."""
        play = self.session.animation.play
        if play.motion is None:
            return "No goal is enabled."
        drag = play.drag
        if drag is not None:
            missed = [drag.layer.label] if frame.missed else []
        else:
            number = self.session.layers.missed()
            missed = [] if number is None else [play.all[number].label]
        state, colour = ("missed", BAD) if missed else ("reached", GOOD)
        if drag is None and not missed:
            count = len(play.all)
            return f"Frame {play.frame}, {counted(count, 'layer')}" if count else f"Frame {play.frame}"
        name = missed[0] if missed else drag.layer.label if drag is not None else ""
        far = "".join(miss_text(error, self.session.body.given.meters_per_unit) for error in frame.errors.values())
        by = f" by {safe(far)}" if missed and far else ""
        return f'<b style="color:{colour}">{state}</b>{by}, layer {safe(name)}'

    def close(self) -> None:
        """Stop solving after the browser has disconnected."""
        self.closed = True
        self.worker.stop()

    def finish(self, seconds: float) -> None:
        """Wait, at most some seconds, until the page no longer changes any control."""
        self.worker.ended.wait(seconds)


def _compiling_note(words: str, spent: float, usual: float) -> str:
    """Return the status line while the solver is not ready: the current compilation and its progress.

    Args:
        words: Description of the compilation; empty if unknown.
        spent: Seconds since the compilation began.
        usual: Estimated seconds of the compilation; 0 if unknown.
    """
    if not words:
        return note("Preparing the solver.", WARN)
    share = min(spent / usual, 1.0) if usual else 0.0
    text = f"Compiling {safe(words)}, once: {spent:.0f} s of about {usual:.0f} s."
    return note(text, WARN) + f'<div class="synovia-bar"><div style="width:{100.0 * share:.0f}%"></div></div>'


def _labels(session: Session) -> dict[str, int]:
    """Return the row of each joint by its label, a short name; equal names get the row as a suffix."""
    out: dict[str, int] = {}
    for row, name in enumerate(short_names(session.body.given.joint_names)):
        label = name if name not in out else f"{name} (joint {row})"
        out[label] = row
    return out


def unit_of(meters: float | None) -> str:
    """Return the name of a length unit; empty if it is unknown."""
    return "" if meters is None else next((name for name, size in UNITS.items() if math.isclose(size, meters)), "")
