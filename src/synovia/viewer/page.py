"""One browser's page: its own session, scene, controls and solver thread; and what its tabs are made of."""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from synovia.errors import SynoviaError
from synovia.viewer.engine import Frame
from synovia.viewer.scene import Scene
from synovia.viewer.session import Session
from synovia.viewer.style import BAD, BRANDS, DIM, GOOD, WARN, note, safe, style
from synovia.viewer.surface import Surface
from synovia.viewer.worker import Background, Worker

if TYPE_CHECKING:
    from viser import ClientHandle

_SLOW: Final = 0.12  # seconds between two updates of the text
_UNITS: Final = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254, "ft": 0.3048}
_SHOWN: Final = 8.0  # seconds that a message stays


class Tab(ABC):
    """One tab of the panel.

    Args:
        page: The page that it belongs to.
    """

    def __init__(self, page: Page) -> None:
        """Keep the page; ``build`` makes the controls."""
        self.page = page
        self.session = page.session
        self.gui = page.client.gui

    @abstractmethod
    def build(self) -> None:
        """Make the controls, inside the tab."""

    @abstractmethod
    def show(self, frame: Frame) -> None:
        """Update what the controls show; called a few times a second."""

    def select(self, key: int | None) -> None:
        """Follow the selection of a goal, or of none."""
        del key

    def record(self, frame: Frame, now: float) -> None:
        """Take note of a frame; called with every one.

        Args:
            frame: The frame.
            now: Seconds of a clock that only goes forward.
        """
        del frame, now

    def connect(self, handle: Any, action: Callable[[Any], None], *, click: bool = False, slow: bool = False) -> Any:
        """Call an action with a control's new value whenever it changes; errors are shown on the page.

        Args:
            handle: The control.
            action: What to do.
            click: Whether the control is a button or a group of them.
            slow: Whether the action takes long, and must not hold up other messages.
        """
        at_work = threading.Lock()

        def act(event: Any) -> None:
            if event.client is None:  # set by the page itself
                return
            if slow and not at_work.acquire(blocking=False):
                self.page.notify("The last request is still being processed.")
                return
            before = self.page.message
            try:
                action(handle.value)
            except (SynoviaError, ValueError, TypeError, ArithmeticError, LookupError) as error:
                self.page.notify(str(error))
            else:
                self.page.withdraw(before)
            finally:
                if slow:
                    at_work.release()

        async def soon(event: Any) -> None:
            act(event)

        register = handle.on_click if click else handle.on_update
        register(act if slow else soon)
        return handle


class Page:
    """One browser's page. Several browsers have pages of their own.

    Args:
        client: The browser.
        session: The session, which no other page shares.
        command: How the page was started, for the lines that repeat it elsewhere.
        background: What runs its threads.
        surface: What the body looks like.
        tabs: Titles and classes of the tabs beside the scene.
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
        tabs: Sequence[tuple[str, type[Tab]]],
        *,
        dark: bool = False,
        shadows: bool = True,
    ) -> None:
        """Make scene and controls, and start to solve."""
        self.client, self.session, self.command, self.dark = client, session, command, dark
        self.background, self.surface = background, surface
        self.selected: int | None = session.editors[0].key if session.editors else None
        self.frame: Frame | None = None
        self.joint_labels = _labels(session)
        self.unit = unit_of(session.given.meters_per_unit)
        self.message = ("", 0.0)  # a text, and when it was shown
        self._due: list[float] = []  # when the text is to be looked at again, though nothing has changed
        self._last = 0.0
        self._status_text = ""
        self.closed = False
        self._theme()
        self.scene = Scene(client, session, self.select, surface, dark=dark, shadows=shadows)
        self.scene.targets.selected = self.selected
        self._tabs: list[Tab] = []
        self._panel(tabs)
        self.worker = Worker(session, self._show, background, self._again)

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
        """Make the controls."""
        gui = self.client.gui
        gui.set_panel_label(f"Synovia: {self.session.given.name}"[:60])
        gui.add_html(style(f"{self.session.given.name} · Synovia"))
        self._status = gui.add_html("")
        group = gui.add_tab_group()
        for title, cls in tabs:
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
            tab.select(key)
        self.session.touch()

    def refresh(self) -> None:
        """Bring everything up to date: the goals may be others than before."""
        keys = {editor.key for editor in self.session.editors}
        if self.selected not in keys:
            self.select(min(keys, default=None))
        for tab in self._tabs:
            tab.select(self.selected)
        self.session.touch()

    def notify(self, text: str) -> None:
        """Show a message for a few seconds."""
        self.message = (text, time.monotonic())
        self.wake(_SHOWN)

    def withdraw(self, message: tuple[str, float]) -> None:
        """Take a message away, unless there is another by now."""
        if message[0] and self.message is message:
            self.notify("")

    def wake(self, seconds: float) -> None:
        """Update the text now and again after some seconds, also if nothing changes."""
        self._due.append(time.monotonic() + seconds)
        self.session.touch()

    def _again(self) -> float | None:
        """Return the seconds until the next update of the text, None to wait for a change."""
        now = time.monotonic()
        self._due = [due for due in self._due if due > now]
        return min(self._due) - now + 0.02 if self._due else None

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
        text = f'<div class="synovia-status">{self._status_note(frame)}</div>'  # always of the same height
        if text != self._status_text:
            self._status.content = self._status_text = text
        for tab in self._tabs:
            tab.show(frame)
        self.client.flush()

    def _status_note(self, frame: Frame) -> str:
        """Return the status line: a message, or how the solve ended and its time."""
        text, when = self.message
        if text and time.monotonic() - when < _SHOWN:
            return note(safe(text), WARN)
        if frame.busy:
            return note("Compiling the solver. This takes 10 to 20 seconds and happens once.", WARN)
        if frame.trouble:
            return note(safe(frame.trouble), WARN)
        if frame.solution is None:
            return note("No goal is enabled.")
        status = frame.solution.status
        colour = GOOD if frame.solution.reached else BAD
        name = status.name.lower().replace("_", " ")
        spent = f", {frame.milliseconds:.2f} ms" if frame.milliseconds > 0.0 else ""
        return note(
            f'<b style="color:{colour}">{name}</b> in {frame.solution.steps} steps{spent} '
            f'<span style="color:{DIM}">({safe(self.session.solver.name)})</span>'
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


def unit_of(meters: float | None) -> str:
    """Return the name of a length unit, empty if it is unknown or has none."""
    return "" if meters is None else next((name for name, size in _UNITS.items() if math.isclose(size, meters)), "")
