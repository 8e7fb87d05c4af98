"""The page of one browser: its session, scene, controls and solver thread; and the base class of its tabs."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from synovia.errors import InputError
from synovia.surface import Surface
from synovia.text import counted
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.session import Session
from synovia.viewer.editing.worker import Worker
from synovia.viewer.page.control import Message, connect
from synovia.viewer.page.style import BAD, BRANDS, DIM, GOOD, WARN, note, safe, status_line, style
from synovia.viewer.scene.scene import Look, Scene
from synovia.viewer.serving.view import Host

if TYPE_CHECKING:
    from viser import ClientHandle

_TEXT_PERIOD: Final = 0.12  # seconds between two updates of the text
_HINT: Final = "Drag a ball or a joint. G moves and R turns the selected target; Ctrl-K lists all keys."
_UNITS: Final = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254, "ft": 0.3048}


class Tab(ABC):
    """One tab of the panel.

    Args:
        page: The page of the tab.
    """

    def __init__(self, page: Page) -> None:
        """Store the page; ``build`` adds the controls."""
        self.page = page
        self.session = page.session
        self.gui = page.client.gui

    @abstractmethod
    def build(self) -> None:
        """Add the controls to the tab."""

    @abstractmethod
    def show(self, frame: Frame) -> None:
        """Update the controls; called a few times a second."""

    def select(self, key: int | None) -> None:
        """React to the selection of a goal, None for no goal, and of the joint ``page.joint``."""
        del key

    def record(self, frame: Frame, now: float) -> None:
        """Record a frame; called with every frame.

        Args:
            frame: The frame.
            now: Time of a monotonic clock, seconds.
        """
        del frame, now

    def connect(
        self,
        handle: Any,
        action: Callable[[Any], None],
        *,
        click: bool = False,
        upload: bool = False,
        slow: bool = False,
    ) -> Any:
        """Call an action after each change of a control, and show its errors on the page, see ``control.connect``."""
        return connect(handle, action, self.page.message, click=click, upload=upload, slow=slow)


class Navigation(Protocol):
    """How the page of one body leads to other pages."""

    def open(self, model: str | Path) -> None:
        """Show another model."""

    def play(self, clip: str | Path) -> None:
        """Carry a clip over to the body and play it there."""

    def map(self, clip: str | Path) -> None:
        """Show a clip beside its transfer to the body, to edit the map."""


class Commands(Protocol):
    """Commands with keys: ``Keys``, which needs to know the page."""

    def show(self) -> None:
        """Enable the commands that can be used now."""


class Page:
    """The page of one browser.

    Args:
        client: The browser.
        session: The session of this page alone.
        command: File or name of the model, for the Python code and the command that the page shows.
        host: What serves the page.
        surface: The surface of the body.
        tabs: Titles and classes of the tabs beside the scene.
        keys: Class of the commands with keys.
        navigation: How the page leads to other pages.
    """

    def __init__(
        self,
        client: ClientHandle,
        session: Session,
        command: str,
        host: Host,
        surface: Surface,
        tabs: Sequence[tuple[str, type[Tab]]],
        keys: Callable[[Page], Commands],
        navigation: Navigation,
    ) -> None:
        """Add the scene and the controls, and start to solve."""
        self.client, self.session, self.command, self.dark = client, session, command, host.dark
        self.host, self.background, self.surface, self.navigation = host, host.background, surface, navigation
        self.selected: int | None = session.goals.editors[0].key if session.goals.editors else None
        self.joint: int | None = session.goals.editors[0].row if session.goals.editors else None
        self.frame: Frame | None = None
        self.joint_labels = _labels(session)
        self.unit = unit_of(session.body.given.meters_per_unit)
        self.message = Message(self.wake)
        self._updates: list[float] = []  # times of updates of the text that are due without a change
        self._last = 0.0  # time of the last update of the text
        self._status_text = ""
        self._searches = 0  # for a joint, in the tree
        self.closed = False
        self._theme()
        self.scene = Scene(client, session, Look(surface, host.dark, host.shadows), self.select, self.select_joint)
        self.scene.targets.selected, self.scene.joint = self.selected, self.joint
        self._tabs: list[Tab] = []
        self._panel(tabs)
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

    def _panel(self, tabs: Sequence[tuple[str, type[Tab]]]) -> None:
        """Add the controls."""
        gui = self.client.gui
        gui.set_panel_label(f"Synovia: {self.session.body.given.name}"[:60])
        gui.add_html(style(f"{self.session.body.given.name} · Synovia"))
        self._status = gui.add_html("")
        self._hint = gui.add_html(note(_HINT, DIM))
        group = gui.add_tab_group()
        for title, cls in tabs:
            with group.add_tab(title):
                tab = cls(self)
                tab.build()
                self._tabs.append(tab)

    def select(self, key: int | None) -> None:
        """Select a goal, or none, and its joint."""
        editor = self.session.goals.find(key)
        self._select(key, None if editor is None else editor.row)

    def select_joint(self, row: int) -> None:
        """Select a joint, a row of the given skeleton, and the goal that it has, if any."""
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
        self.session.state.touch()

    def refresh(self) -> None:
        """Update the tabs after a change that may have replaced the goals."""
        keys = {editor.key for editor in self.session.goals.editors}
        if self.selected not in keys and (self.selected is not None or self.joint is None):
            self.select(min(keys, default=None))
        for tab in self._tabs:
            tab.select(self.selected)
        self.session.state.touch()

    def undo(self) -> None:
        """Take the last change back."""
        if not self.session.history.undo():
            self.notify("No change to undo.")
        self.refresh()

    def redo(self) -> None:
        """Make the change again that was taken back last."""
        if not self.session.history.redo():
            self.notify("No change to redo.")
        self.refresh()

    def key(self) -> None:
        """Keep the present pose at the present frame of the clip."""
        made = self.session.animation.key()
        self.notify(f"Keyed frame {made.frame}. The targets follow the clip again.")

    def find_joint(self) -> None:
        """Open the tree of joints at its search; ``browser.js`` does so when the number of searches changes."""
        self._searches += 1
        self.session.state.touch()

    def switch_auto_key(self) -> None:
        """Key the pose at the end of each edit, or only on request again."""
        self.session.animation.auto_key = not self.session.animation.auto_key
        self.notify(
            "Each edit of a clip becomes a key." if self.session.animation.auto_key else "K keys an edit of a clip."
        )

    def clear_joint(self) -> None:
        """Set the selected joint to its rest value.

        Raises:
            InputError: If no joint is selected.
        """
        if self.joint is None:
            raise InputError("no joint is selected", hint="a click on a joint selects it")
        self.session.body.clear_joint(self.joint)
        self.session.animation.finish_edit()

    def copy_pose(self) -> None:
        """Keep the present pose for ``paste_pose``."""
        self.session.poses.copy()
        self.notify("Copied the pose.")

    def paste_pose(self, *, mirror: bool = False) -> None:
        """Set the pose that was copied last, or its mirror image; on a clip, key it."""
        self.session.poses.paste(mirror=mirror)
        self.refresh()
        if self.session.animation.play.motion is not None:
            self.notify(f"Keyed the copied pose at frame {self.session.animation.play.frame}.")

    def notify(self, text: str) -> None:
        """Show a message for a few seconds."""
        self.message.show(text)

    def wake(self, seconds: float) -> None:
        """Update the text now, and once more after some seconds."""
        self._updates.append(time.monotonic() + seconds)
        self.session.state.touch()

    def _next_update(self) -> float | None:
        """Return the seconds until the next update of the text, None to wait for a change."""
        now = time.monotonic()
        for due in [due for due in self._updates if due <= now]:
            self._updates.remove(due)  # in place, because another thread may be adding one
        return min(self._updates) - now + 0.02 if self._updates else None

    def set_dark(self, dark: bool) -> None:
        """Change to the dark or the light page."""
        self.dark = dark
        self._theme()
        self.scene.set_theme(dark)
        self.session.state.touch()

    def _show(self, frame: Frame) -> None:
        """Show a frame: the scene every time, the text a few times a second and at rest."""
        if self.closed:
            return
        self.frame = frame
        if frame.still and not frame.busy and (made := self.session.animation.key_if_due()) is not None:
            self.notify(f"Keyed frame {made.frame}.")
        now = time.monotonic()
        with suppress(RuntimeError):  # a control was removed meanwhile
            if not frame.still:
                self.scene.show(frame)
                for tab in self._tabs:
                    tab.record(frame, now)
            if now - self._last >= _TEXT_PERIOD or frame.busy or frame.still:
                self._last = now
                self._show_text(frame)

    def _show_text(self, frame: Frame) -> None:
        """Show the status and the text of the tabs."""
        state = f'data-joint="{"" if self.joint is None else self.joint}" data-searches="{self._searches}"'
        text = status_line(self._status_note(frame), state)
        if text != self._status_text:
            self._status.content = self._status_text = text
        if self.session.history.edited and self._hint.visible:  # whoever has changed something needs no hint
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
            return note("No goal is enabled.")
        status = frame.solution.status
        colour = GOOD if frame.solution.reached else BAD
        name = status.name.lower().replace("_", " ")
        steps = counted(frame.solution.steps, "step")
        spent = f", {frame.milliseconds:.2f} ms" if frame.milliseconds > 0.0 else ""
        return note(
            f'<b style="color:{colour}">{name}</b> in {steps}{spent} '
            f'<span style="color:{DIM}">({safe(self.session.solving.solver.name)})</span>'
        )

    def close(self) -> None:
        """Stop solving after the browser has gone."""
        self.closed = True
        self.worker.stop()

    def finish(self, seconds: float) -> None:
        """Wait until the page changes no control any more, at most some seconds."""
        self.worker.ended.wait(seconds)


def _compiling_note(words: str, spent: float, usual: float) -> str:
    """Return the status line while the solver is not ready: what is being compiled, for how long, and what works now.

    Args:
        words: What is being compiled, empty if unknown.
        spent: Seconds since that began.
        usual: Seconds that it usually takes, 0 if unknown.
    """
    if not words:
        return note("Making the solver ready.", WARN)
    share = min(spent / usual, 1.0) if usual else 0.0
    text = f"Compiling {safe(words)}, once: {spent:.0f} s of about {usual:.0f} s. Limbs follow already."
    return note(text, WARN) + f'<div class="synovia-bar"><div style="width:{100.0 * share:.0f}%"></div></div>'


def _labels(session: Session) -> dict[str, int]:
    """Return the row of each joint by its label; equal names get the row as a suffix."""
    out: dict[str, int] = {}
    for row, name in enumerate(session.body.given.joint_names):
        label = name if name not in out else f"{name} (joint {row})"
        out[label] = row
    return out


def unit_of(meters: float | None) -> str:
    """Return the name of a length unit, empty if it is unknown."""
    return "" if meters is None else next((name for name, size in _UNITS.items() if math.isclose(size, meters)), "")
