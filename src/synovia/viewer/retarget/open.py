"""``view_retarget``: open the retarget page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from synovia.clips import find_ends
from synovia.errors import InputError
from synovia.io.base import optional_package
from synovia.io.load import load_model, load_motion
from synovia.model import Pose, Skeleton
from synovia.model.motion import Motion
from synovia.retargeting import read_map
from synovia.viewer.live import View, serve, surface_with
from synovia.viewer.retarget.transfer import Transfer
from synovia.viewer.worker import Background


def view_retarget(
    clip: Any,
    onto: Any,
    joint_map: Any = None,
    *,
    rest: Pose | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    token: str | None = None,
    dark: bool = False,
    shadows: bool = True,
    browser: bool = False,
) -> View:
    """Open a page with a clip and its transfer to another body side by side; map and rest pose can be edited there.

    Args:
        clip: The clip: a ``Motion`` or a file.
        onto: The body that follows: a ``Skeleton``, a file, or the name of a bundled model.
        joint_map: (source joint, target joint) by part, or a file of it; None for the automatic map.
        rest: Pose of the clip's skeleton that counts as rest; None for the rest pose of the file.
        host: As in ``view``, also the others below.
        port: Port to try first, 0 for any.
        token: Secret that browsers must send.
        dark: Whether the page starts dark.
        shadows: Whether bodies cast a shadow.
        browser: Whether to open a browser.

    Returns:
        The running page.

    Raises:
        MissingExtraError: If viser is not installed.
        SynoviaError: If a file or the map cannot be used.
    """
    optional_package("viser", "the live page needs viser", "view")
    from synovia.viewer.retarget.page import RetargetPage, aim_at
    from synovia.viewer.retarget.panel import Panel

    motion = clip if isinstance(clip, Motion) else load_motion(clip)
    if not len(motion):
        raise InputError("the motion has no frames", where=motion.name, expected="at least one")
    body = onto if isinstance(onto, Skeleton) else load_model(str(onto))
    given: Mapping[str, tuple[str, str]] | None = (
        read_map(joint_map) if isinstance(joint_map, str | Path) else joint_map
    )
    surfaces = surface_with(motion.skeleton), surface_with(body)
    ends = [f"{motion.name}: {note}" for note in find_ends(motion).notes]
    first = Transfer(motion, body, given, rest).compute()
    trouble = [first.trouble] if first.trouble else []  # the page opens all the same, to complete the map

    def make() -> Transfer:
        return Transfer(motion, body, given, rest, outcome=replace(first, version=1))

    def give(client: Any, transfer: Transfer, background: Background) -> RetargetPage:
        return RetargetPage(client, transfer, background, surfaces, Panel, dark=dark, shadows=shadows)

    notes = (*surfaces[0].notes, *surfaces[1].notes, *ends, *trouble)
    return serve(make, give, aim_at, notes, host=host, port=port, token=token, browser=browser)
