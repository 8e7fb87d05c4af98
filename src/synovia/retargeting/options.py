"""Options of retargeting that functions, batches, live bodies and jobs share."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from synovia.arguments import check_kind, completed
from synovia.clips.resting import Rest
from synovia.errors import InputError
from synovia.model.geometry import is_number
from synovia.model.shapes.world import World
from synovia.options import (
    CALIBRATION,
    FINGERS_APART,
    HOLD_FEET,
    IDLE_HANDS,
    JOINT_MAP,
    LEARN,
    LIMBS_APART,
    LIVE_APART,
    LIVE_ROOT,
    LOOK_AHEAD,
    ORIGIN,
    REST,
    ROOT_MOTION,
    SCALE,
    SIDE,
    SOURCE_SIDE,
    TIMEOUT,
    UP,
    VELOCITY,
    WORLD,
    MotionLimits,
)
from synovia.retargeting.clearance import checked_clearance
from synovia.retargeting.fingers import IdleHands, checked_idle
from synovia.retargeting.root_motion import RootMotion, checked_root_motion

if TYPE_CHECKING:
    from synovia.retargeting.live.calibration import LiveCalibration


class RetargetOptions(TypedDict, total=False):
    """Options of ``retarget``, with their defaults."""

    rest: Annotated[Rest | None, REST]
    up: Annotated[str | None, UP]
    hold_feet: Annotated[bool, HOLD_FEET]
    clearance: Annotated[float | None, LIMBS_APART]
    velocity: Annotated[Any, VELOCITY]
    world: Annotated[World | None, WORLD]
    idle_hands: Annotated[IdleHands, IDLE_HANDS]
    root_motion: Annotated[RootMotion, ROOT_MOTION]


class FollowOptions(MotionLimits, total=False):
    """Options of bodies that follow a live source, with their defaults; ``LiveRetarget`` describes them."""

    joint_map: Annotated[Mapping[str, tuple[Any, Any]] | None, JOINT_MAP]
    rest: Annotated[Rest | None, REST]
    hold_feet: Annotated[bool, HOLD_FEET]
    clearance: Annotated[float | None, LIVE_APART]
    idle_hands: Annotated[IdleHands, IDLE_HANDS]
    root_motion: Annotated[RootMotion | None, LIVE_ROOT]
    up: Annotated[str | None, UP]
    calibration: Annotated[LiveCalibration | str | os.PathLike[str] | None, CALIBRATION]
    learn: Annotated[float, LEARN]
    timeout: Annotated[float, TIMEOUT]


class LiveOptions(FollowOptions, total=False):
    """Options of ``LiveRetarget``, with their defaults."""

    root: Annotated[Literal["free", "fixed"], "free"]
    look_ahead: Annotated[float | None, LOOK_AHEAD]
    world: Annotated[World | None, WORLD]


class HandOptions(TypedDict, total=False):
    """Options of ``retarget_hand``, with their defaults."""

    side: Annotated[str | None, SIDE]
    source_side: Annotated[str | None, SOURCE_SIDE]
    scale: Annotated[float | None, SCALE]
    frame: Annotated[Literal["palm", "given"], "palm"]
    origin: Annotated[str | int | None, ORIGIN]
    velocity: Annotated[Any, VELOCITY]
    clearance: Annotated[float | None, FINGERS_APART]


class LiveHandOptions(HandOptions, total=False):
    """Options of ``LiveHand``, with their defaults."""

    look_ahead: Annotated[float | None, LOOK_AHEAD]


def checked_look_ahead(value: float | None) -> float:
    """Return the seconds by which poses are late; infinite for None.

    Raises:
        InputError: If it is no time.
    """
    if value is not None and (not is_number(value) or not 0.0 <= value < math.inf):
        raise InputError("look_ahead", value=value, expected="seconds, 0 or more, or None")
    return math.inf if value is None else float(value)


def checked_options(given: RetargetOptions) -> Any:
    """Return the options of ``retarget`` as attributes, after the checks that are possible without the bodies.

    Raises:
        InputError: If a value cannot be used.
        UnknownNameError: If there is no such option.
    """
    options = completed(RetargetOptions, given, "retarget")
    options.known = None
    options.clearance = checked_clearance(options.clearance)
    checked_idle(options.idle_hands)
    checked_root_motion(options.root_motion)
    options.world = checked_world(options.world)
    return options


def checked_world(world: World | None) -> World | None:
    """Return the world on which feet stand, after a check.

    Raises:
        InputError: If it is no world.
    """
    if world is not None:
        check_kind("world", world, World, "sy.World({...}) is one")
    return world
