"""A page with bodies on a floor and a thread that shows them, but without a session: retargeting and live sources."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from synovia.draw.theme import THEMES
from synovia.viewer.editing.worker import SESSION
from synovia.viewer.page.control import Message
from synovia.viewer.page.style import BRANDS
from synovia.viewer.serving.view import Aim, Host

if TYPE_CHECKING:
    from viser import ClientHandle

RATE: Final = 30.0  # frames per second
TALL: Final = 1.7  # height of the body, scene units


class Controls(Protocol):
    """The controls of a page."""

    def show(self) -> None:
        """Update the text."""


class Stage(ABC):
    """The page of one browser, with y up.

    Args:
        client: The browser.
        host: Interface of the view that serves the page.
        wide: Width of the floor, scene units.

    Attributes:
        message: The message that the page shows.
        panel: The controls.
        period: Seconds between two updates of the text.
    """

    panel: Any
    period: float

    def __init__(self, client: ClientHandle, host: Host, wide: float) -> None:
        """Set the colours, and add the floor."""
        self.client, self._background = client, host.background
        self.message = Message(self._wake, host.folder)
        self._stopped, self._ended, self._due = threading.Event(), threading.Event(), 0.0
        theme = THEMES["dark" if host.dark else "light"]
        client.gui.configure_theme(
            control_width="large", dark_mode=host.dark, show_logo=False, show_share_button=False,
            brand_color=BRANDS[host.dark],
        )  # fmt: skip
        client.scene.add_grid(
            "/floor", width=wide, height=wide, plane="xz", cell_size=0.25, section_size=1.0, cell_color=theme.grid,
            section_color=theme.grid, cell_thickness=0.6, section_thickness=1.2, fade_distance=6.0 + 0.25 * wide,
            shadow_opacity=0.25, position=(0.0, -0.01, 0.0),
        )  # fmt: skip

    @abstractmethod
    def show(self) -> None:
        """Show the present poses."""

    def prepare(self) -> None:  # noqa: B027 - most pages have nothing to prepare
        """Do slow work before the next frame."""

    def begin(self) -> None:
        """Start the thread."""
        self._background.start(SESSION, self._run)

    def close(self) -> None:
        """Stop all work after the browser has disconnected."""
        self._stopped.set()

    def finish(self, seconds: float) -> None:
        """Wait, at most some seconds, until the page no longer changes any control."""
        self._ended.wait(seconds)

    def _wake(self, seconds: float) -> None:
        """Update the text soon."""
        del seconds
        self._due = 0.0

    def _run(self) -> None:
        """Show poses and text until stopped."""
        try:
            while not self._stopped.is_set():
                self.prepare()
                now = time.perf_counter()
                with suppress(RuntimeError):  # a control was removed in the meantime
                    self.show()
                    if now >= self._due:
                        self._due = now + self.period
                        self.panel.show()
                    self.client.flush()
                self._stopped.wait(max(now + 1.0 / RATE - time.perf_counter(), 0.001))
        finally:
            self._ended.set()


def aim_from(position: tuple[float, float, float]) -> Aim:
    """Return a camera at a position that looks at the middle of the body."""
    up, at, middle = np.array([(0.0, 1.0, 0.0), position, (0.0, 0.8, 0.0)])
    return Aim(up, at, middle, fov=0.8, near=0.01, far=200.0)
