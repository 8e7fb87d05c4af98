"""``PageSink``: the live page as a sink of live motion."""

from __future__ import annotations

from typing import Any, Unpack

from synovia.arguments import check_kind
from synovia.io.base import optional_package
from synovia.model import Pose, Skeleton
from synovia.retargeting import LiveRetarget
from synovia.viewer.follow.feed import Feed
from synovia.viewer.scene.skin import surface_with
from synovia.viewer.serving.view import Host, Opening, PageOptions, PageSettings, View, serve


class PageSink:
    """Shows a live body in a page, with a meter and a recording.

    The page is there at once, and stays after ``close`` until ``view.stop()``, so that a recording can still be saved.

    Args:
        skeleton: The body; of poses, a free joint that was added above its root is fine.
        title: Title of the page; None for the name of the body.
        options: Options of the page, as of ``view``.

    Attributes:
        view: The running page: ``view.url``, ``view.wait()``, ``view.stop()``.

    Raises:
        MissingExtraError: If viser is not installed.
        InputError: If an option cannot be used.

    Example:
        >>> import synovia as sy
        >>> sink = sy.viewer.PageSink(sy.bundled("humanoid"))  # doctest: +SKIP
        >>> sink.view.url  # doctest: +SKIP
        'http://127.0.0.1:8080/'
    """

    def __init__(self, skeleton: Skeleton, title: str | None = None, **options: Unpack[PageOptions]) -> None:
        """Start the page."""
        check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
        optional_package("viser", "the live page needs viser", "view")
        from synovia.viewer.follow.page import FollowPage, first_aim
        from synovia.viewer.follow.panel import Panel

        self._feed = feed = Feed(skeleton)
        surface, name = surface_with(skeleton), title or skeleton.name

        def give(client: Any, session: Feed, host: Host) -> FollowPage:
            return FollowPage(client, session, host, surface, lambda page: Panel(page, name))

        self.view: View = serve(Opening(lambda: feed, give, first_aim, surface.notes), PageSettings(**options))

    def follow(self, live: LiveRetarget) -> None:
        """Show rate and delay of the source of a live body, and what has passed, in the meter.

        Args:
            live: The body; it is only read, in the thread that calls ``send``.
        """
        check_kind("live", live, LiveRetarget, "sy.LiveRetarget(source, target, rate=...) makes one")
        self._feed.follow(live)

    def send(self, pose: Pose, time: float) -> None:
        """Show a pose; its time is that of the page."""
        del time
        self._feed.send(pose)

    def close(self) -> None:
        """Say on the page that no more poses come."""
        self._feed.end()
