"""One browser's page: its own session, scene, controls and solver thread."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from synovia.viewer.background import Background
from synovia.viewer.engine import Frame
from synovia.viewer.panel.base import Tab, note, safe
from synovia.viewer.panel.body import Body
from synovia.viewer.panel.clip import Clip
from synovia.viewer.panel.goals import Goals
from synovia.viewer.panel.keep import Keep
from synovia.viewer.panel.solver import SolverTab
from synovia.viewer.panel.why import Why
from synovia.viewer.scene import Scene
from synovia.viewer.session import Session
from synovia.viewer.surface import Surface
from synovia.viewer.worker import Worker

if TYPE_CHECKING:
    from viser import ClientHandle

_SLOW: Final = 0.12  # seconds between two updates of the text
# the ends of a slider below its track, not on it
_STYLE: Final = (
    "<style>.mantine-Slider-markLabel{margin-top:7px}.mantine-Slider-mark{display:none}"
    ".mantine-Slider-root{padding-bottom:.9em}</style>"
)
_TOLD: Final = 8.0  # seconds that a message stays


class Page:
    """One browser's page. Several browsers have pages of their own.

    Args:
        client: The browser.
        session: The session, which no other page shares.
        command: How the page was started, for the lines that repeat it elsewhere.
        background: What runs its threads.
        surface: What the body looks like.
        dark: Whether the page is dark.
        shadows: Whether the body throws a shadow; off where there is no graphics hardware.
    """

    def __init__(
        self,
        client: ClientHandle,
        session: Session,
        command: str,
        background: Background,
        surface: Surface,
        *,
        dark: bool = False,
        shadows: bool = True,
    ) -> None:
        """Make scene and controls, and start to solve."""
        self.client, self.session, self.command, self.dark = client, session, command, dark
        self.background, self.surface = background, surface
        self.selected: int | None = session.wishes[0].key if session.wishes else None
        self.frame: Frame | None = None
        self.joint_labels = _labels(session)
        self._told = ("", 0.0)
        self._last = 0.0
        self._status_text = ""
        self.closed = False
        self._theme()
        self.scene = Scene(client, session, self.select, surface, dark=dark, shadows=shadows)
        self.scene.targets.selected = self.selected
        self._tabs: list[Tab] = []
        self._panel()
        self.worker = Worker(session, self._show, background)

    def _theme(self) -> None:
        """Set the page's colours."""
        self.client.gui.configure_theme(
            control_width="large",
            dark_mode=self.dark,
            show_logo=False,
            show_share_button=False,
            brand_color=(0, 138, 120),
        )

    def _panel(self) -> None:
        """Make the controls."""
        gui = self.client.gui
        gui.set_panel_label(f"Synovia: {self.session.given.name}"[:60])
        self._status = gui.add_html("")
        gui.add_html(_STYLE)
        group = gui.add_tab_group()
        for title, cls in TABS:
            with group.add_tab(title):
                tab = cls(self)
                tab.build()
                self._tabs.append(tab)

    def select(self, key: int | None) -> None:
        """Select a goal, or none."""
        if key == self.selected:
            return
        self.selected = self.scene.targets.selected = key
        for tab in self._tabs:
            if isinstance(tab, Goals):
                tab.select(key)
        self.session.touch()

    def refresh(self) -> None:
        """Bring everything up to date: the goals may be others than before."""
        keys = {wish.key for wish in self.session.wishes}
        if self.selected not in keys:
            self.select(min(keys, default=None))
        for tab in self._tabs:
            if isinstance(tab, Goals):
                tab.select(self.selected)
        self.session.touch()

    def tell(self, text: str) -> None:
        """Show a message for a few seconds."""
        self._told = (text, time.monotonic())
        self.session.touch()

    def set_dark(self, dark: bool) -> None:
        """Make the page dark or light."""
        self.dark = dark
        self._theme()
        self.scene.set_theme(dark)
        self.session.touch()

    def _show(self, frame: Frame) -> None:
        """Show a frame: the scene at once, the text a few times a second, and once more when all is still."""
        if self.closed:
            return
        self.frame = frame
        if frame.still:
            with suppress(RuntimeError):  # a control that was removed meanwhile
                self._show_text(frame)
            return
        with suppress(RuntimeError):  # a control that was removed meanwhile
            self.scene.show(frame)
            now = time.monotonic()
            for tab in self._tabs:
                tab.record(frame, now)
            if now - self._last >= _SLOW or frame.busy:
                self._last = now
                self._show_text(frame)

    def _show_text(self, frame: Frame) -> None:
        """Show status and the tabs' text."""
        text = self._status_html(frame)
        if text != self._status_text:
            self._status.content = self._status_text = text
        for tab in self._tabs:
            tab.show(frame)
        self.client.flush()

    def _status_html(self, frame: Frame) -> str:
        """Return the line at the top: how the solve ended, in how long."""
        told, when = self._told
        if told and time.monotonic() - when < _TOLD:
            return note(safe(told), "#c2410c")
        if frame.busy:
            return note("Preparing the solver; its first use compiles it, for 10 to 20 seconds, once.", "#b7791f")
        if frame.trouble:
            return note(safe(frame.trouble), "#c2410c")
        if frame.solution is None:
            return note("No goal is enabled.")
        status = frame.solution.status
        colour = "#009e88" if frame.solution.reached else "#dd3942"
        name = status.name.lower().replace("_", " ")
        return note(
            f'<b style="color:{colour}">{name}</b> in {frame.solution.steps} steps, {frame.milliseconds:.2f} ms '
            f'<span style="opacity:.7">({safe(self.session.solver.name)})</span>'
        )

    def close(self) -> None:
        """Stop solving; the browser is gone."""
        self.closed = True
        self.worker.stop()


def _labels(session: Session) -> dict[str, int]:
    """Return the rows of the joints that can have goals, by what they are called."""
    out: dict[str, int] = {}
    for row, name in enumerate(session.given.joint_names):
        label = name if name not in out else f"{name} (joint {row})"
        out[label] = row
    return out


TABS: list[tuple[str, Any]] = [
    ("Goals", Goals),
    ("Body", Body),
    ("Clip", Clip),
    ("Solver", SolverTab),
    ("Why", Why),
    ("Keep", Keep),
]
