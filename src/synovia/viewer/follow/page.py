"""The page of one browser that shows a body while it follows a live source."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from synovia.draw.theme import THEMES
from synovia.model import Pose, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.surface import Surface
from synovia.viewer.editing.worker import SESSION
from synovia.viewer.follow.feed import EACH, Feed
from synovia.viewer.page.control import Message
from synovia.viewer.page.style import BRANDS
from synovia.viewer.retarget.figure import Figure
from synovia.viewer.scene.bodies import axes_of, extent
from synovia.viewer.scene.skin import Look
from synovia.viewer.serving.view import Aim, Host

if TYPE_CHECKING:
    from viser import ClientHandle

_RATE: Final = 30.0  # frames per second
_TALL: Final = 1.7  # height of the body, scene units
_VIEW: Final = 0.8  # vertical field of view, radians


class Controls(Protocol):
    """The controls of a page."""

    def show(self) -> None:
        """Show the current figures."""


class FollowPage:
    """The page of one browser.

    Args:
        client: The browser.
        feed: Data of the live body, shared by all browsers.
        host: Interface of the view that serves the page.
        surface: Surface of the body.
        controls: Adds the controls.
    """

    def __init__(
        self,
        client: ClientHandle,
        feed: Feed,
        host: Host,
        surface: Surface,
        controls: Callable[[FollowPage], Controls],
    ) -> None:
        """Add the scene and the controls, and start to show."""
        self.client, self.feed = client, feed
        self.message = Message(self._wake, host.folder)
        self.in_place = False
        self._stopped, self._ended = threading.Event(), threading.Event()
        self._due = 0.0
        self._shown: tuple[Pose, bool] | None = None
        dark = host.dark
        client.gui.configure_theme(
            control_width="large", dark_mode=dark, show_logo=False, show_share_button=False, brand_color=BRANDS[dark]
        )
        theme, body = THEMES["dark" if dark else "light"], feed.skeleton
        self._basis, self._floor = axes_of(body), _lowest(body)
        self.figure = Figure(
            client, "/body", body, Look(surface, dark, host.shadows), _TALL / extent(body), lambda row: None
        )
        client.scene.add_grid(
            "/floor", width=40.0, height=40.0, plane="xz", cell_size=0.25, section_size=1.0, cell_color=theme.grid,
            section_color=theme.grid, cell_thickness=0.6, section_thickness=1.2, fade_distance=16.0,
            shadow_opacity=0.25, position=(0.0, -0.01, 0.0),
        )  # fmt: skip
        self.panel = controls(self)
        host.background.start(SESSION, self._run)

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
        """Show poses and figures until stopped."""
        try:
            while not self._stopped.is_set():
                now = time.perf_counter()
                with suppress(RuntimeError):  # a control was removed in the meantime
                    self.show()
                    if now >= self._due:
                        self._due = now + EACH
                        self.panel.show()
                    self.client.flush()
                self._stopped.wait(max(now + 1.0 / _RATE - time.perf_counter(), 0.001))
        finally:
            self._ended.set()

    def show(self) -> None:
        """Show the newest pose if it has changed."""
        pose = self.feed.pose
        now = pose, self.in_place
        if self._shown is not None and self._shown[0] is pose and self._shown[1] == self.in_place:
            return
        self._shown = now
        frames = np.asarray(pose.frames)
        frames = frames[len(frames) - len(self.feed.skeleton) :]  # without the root that live retargeting has added
        up = self._basis[:, 1]
        foot = self._floor * up
        if self.in_place:
            middle = frames[_first_row(self.feed.skeleton), 9:]
            foot = middle + (self._floor - middle @ up) * up
        with self.client.atomic():
            self.figure.show(frames, self._basis, foot, 0.0)


def first_aim(feed: Feed) -> Aim:
    """Return a camera in front of the body that looks at its middle."""
    del feed
    up, position, middle = np.array([(0.0, 1.0, 0.0), (1.5, 1.5, 4.2), (0.0, 0.8, 0.0)])
    return Aim(up, position, middle, fov=_VIEW, near=0.01, far=200.0)


def _first_row(skeleton: Skeleton) -> int:
    """Return the row of the hips; the root for a body without hips."""
    return skeleton.role_rows.get("hips", 0)


def _lowest(skeleton: Skeleton) -> float:
    """Return the height of the lowest joint at rest, length units."""
    return float((skeleton.rest_pose().positions @ find_up(skeleton).vector).min())
