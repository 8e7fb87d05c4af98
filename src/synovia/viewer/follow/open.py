"""``PageSink``, which shows live motion on the live page."""

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
    """Shows a live body on a page that has a meter and can record.

    The page is available at once. After ``close``, it remains until ``view.stop()``, so that the user can still save a
    recording.

    Args:
        skeleton: The body. Poses may have an additional free joint above its root.
        title: Title of the page; None for the name of the body.
        options: Options of the page, as in ``view``.

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
        """Show the rate and the delay of the source of a live body, its limits and its report in the meter.

        Args:
            live: The live body; it is only read, and only in the thread that calls ``send``.
        """
        check_kind("live", live, LiveRetarget, "sy.LiveRetarget(source, target, rate=...) makes one")
        self._feed.follow(live)

    def send(self, pose: Pose, time: float) -> None:
        """Show a pose; ``time`` is ignored, because the page uses its own clock."""
        del time
        self._feed.send(pose)

    def close(self) -> None:
        """Show on the page that no more poses will come."""
        self._feed.end()
