"""How a retarget page is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from synovia.clips import find_ends
from synovia.errors import InputError
from synovia.io.load import load_model, load_motion
from synovia.model import Pose, Skeleton
from synovia.model.motion import Motion
from synovia.retargeting import Retargeted, read_map
from synovia.viewer.retarget.transfer import Transfer
from synovia.viewer.scene.skin import surface_with
from synovia.viewer.serving.view import Host, Opening


def retarget_opening(
    clip: Any,
    onto: Any,
    joint_map: Any,
    rest: Pose | None,
    animate: Callable[[Host, Skeleton, Retargeted, int | None], None],
) -> Opening:
    """Return the functions and notes with which retarget pages of a clip and a body are opened.

    Args:
        clip: The clip, as in ``view_retarget``.
        onto: The body that follows the clip, as in ``view_retarget``.
        joint_map: The map of joints, as in ``view_retarget``.
        rest: The rest pose of the source, as in ``view_retarget``.
        animate: Shows the live page of a body that plays a retargeted clip.
    """
    from synovia.viewer.retarget.page import RetargetPage, first_aim
    from synovia.viewer.retarget.panel import Panel

    motion = clip if isinstance(clip, Motion) else load_motion(clip)
    if not len(motion):
        raise InputError("the motion has no frames", where=motion.name, expected="at least one")
    body = onto if isinstance(onto, Skeleton) else load_model(str(onto))
    given: Mapping[str, tuple[str | int, str | int]] | None = (
        read_map(joint_map) if isinstance(joint_map, str | Path) else joint_map
    )
    surfaces = surface_with(motion.skeleton), surface_with(body)
    ends = [f"{motion.name}: {note}" for note in (*find_ends(motion).notes, *motion.notes)]
    first = Transfer(motion, body, given, rest).compute()
    trouble = [first.trouble] if first.trouble else []  # the page still opens, so that the user can complete the map

    def make() -> Transfer:
        return Transfer(motion, body, given, rest, outcome=replace(first, version=1))

    def give(client: Any, transfer: Transfer, host: Host) -> RetargetPage:
        return RetargetPage(client, transfer, host, surfaces, Panel, partial(animate, host, body))

    lost = dict.fromkeys((*surfaces[0].notes, *surfaces[1].notes, *motion.notes))
    notes = (*lost, *ends, *trouble)
    return Opening(make, give, first_aim, notes)
