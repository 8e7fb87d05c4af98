"""The page of one browser that shows a body while it follows a live source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from synovia.draw.rods import axes_of, extent
from synovia.model import Pose, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.surface import Surface
from synovia.viewer.follow.feed import EACH, Feed
from synovia.viewer.page.stage import TALL, Controls, Stage, aim_from
from synovia.viewer.retarget.figure import Figure
from synovia.viewer.scene.skin import Look
from synovia.viewer.serving.view import Aim, Host

if TYPE_CHECKING:
    from viser import ClientHandle


class FollowPage(Stage):
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
        super().__init__(client, host, 40.0)
        self.feed, self.in_place, self.period = feed, False, EACH
        self._shown: tuple[Pose, bool] | None = None
        body = feed.skeleton
        self._basis, self._floor = axes_of(body), _lowest(body)
        look = Look(surface, host.dark, host.shadows)
        self.figure = Figure(client, "/body", body, look, TALL / extent(body), lambda row: None)
        self.panel = controls(self)
        self.begin()

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
    return aim_from((1.5, 1.5, 4.2))


def _first_row(skeleton: Skeleton) -> int:
    """Return the row of the hips; the root for a body without hips."""
    return skeleton.role_rows.get("hips", 0)


def _lowest(skeleton: Skeleton) -> float:
    """Return the height of the lowest joint at rest, length units."""
    return float((skeleton.rest_pose().positions @ find_up(skeleton).vector).min())
