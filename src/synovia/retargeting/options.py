"""Options of retargeting that functions, batches, live bodies and jobs share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from synovia.arguments import check_kind, completed
from synovia.model.shapes.world import World
from synovia.retargeting.clearance import checked_clearance
from synovia.retargeting.fingers import IdleHands, checked_idle
from synovia.retargeting.rest_pose import Rest
from synovia.retargeting.root_motion import RootMotion, checked_root_motion

if TYPE_CHECKING:
    from synovia.retargeting.live.calibration import LiveCalibration


class RetargetOptions(TypedDict, total=False):
    """Options of ``retarget``, with their defaults."""

    rest: Annotated[Rest | None, None]
    up: Annotated[str | None, None]
    hold_feet: Annotated[bool, True]
    clearance: Annotated[float | None, 0.0]
    velocity: Annotated[Any, None]
    world: Annotated[World | None, None]
    idle_hands: Annotated[IdleHands, "rest"]
    root_motion: Annotated[RootMotion, "root"]


class SourceOptions(TypedDict, total=False):
    """Options of a live source, with their defaults; ``LiveRetarget`` describes them."""

    joint_map: Annotated[Mapping[str, tuple[Any, Any]] | None, None]
    rest: Annotated[Rest | None, None]
    hold_feet: Annotated[bool, True]
    clearance: Annotated[float | None, None]
    idle_hands: Annotated[IdleHands, "rest"]
    up: Annotated[str | None, None]
    calibration: Annotated[LiveCalibration | str | os.PathLike[str] | None, None]
    learn: Annotated[float, 1.0]
    timeout: Annotated[float, 0.5]


class LiveOptions(SourceOptions, total=False):
    """Options of ``LiveRetarget``, with their defaults."""

    velocity: Annotated[Any, None]
    acceleration: Annotated[Any, None]
    jerk: Annotated[Any, None]
    root: Annotated[Literal["free", "fixed"], "free"]


class HandOptions(TypedDict, total=False):
    """Options of ``retarget_hand``, with their defaults."""

    side: Annotated[str | None, None]
    source_side: Annotated[str | None, None]
    scale: Annotated[float | None, None]
    frame: Annotated[Literal["palm", "given"], "palm"]
    origin: Annotated[str | int | None, None]
    velocity: Annotated[Any, None]
    clearance: Annotated[float | None, None]


def checked_options(given: RetargetOptions) -> Any:
    """Return the options of ``retarget`` as attributes, checked as far as this is possible without the bodies.

    Raises:
        InputError: If a value cannot be used.
        UnknownNameError: If there is no such option.
    """
    options = completed(RetargetOptions, given, "retarget")
    options.clearance = checked_clearance(options.clearance)
    checked_idle(options.idle_hands)
    checked_root_motion(options.root_motion)
    if options.world is not None:
        check_kind("world", options.world, World, "sy.World({...}) is one")
    return options
