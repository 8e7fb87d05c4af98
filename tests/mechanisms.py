"""Mechanisms with loops: a four-bar, a slider-crank, a five-bar, a Stewart platform and a delta robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import synovia as sy
from synovia.model.loops.mechanism import Mechanism


def mechanism_of(body: sy.Skeleton) -> Mechanism:
    """Return the loops of a body that has some."""
    mechanism = body.mechanism
    assert mechanism is not None
    return mechanism


def at(x: float, y: float = 0.0, z: float = 0.0) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the transform of a place."""
    out = np.eye(4)
    out[:3, 3] = x, y, z
    return out


def hinge(name: str, parent: str | None, rest: Any, axis: Any = (0, 0, 1), limit: Any = None) -> sy.Joint:
    """Return a hinge."""
    return sy.Joint(name, parent, kind=sy.Kind.HINGE, rest=rest, axis=np.array(axis, float), limit=limit)


def slide(name: str, parent: str | None, rest: Any, axis: Any, limit: sy.skeletons.Limit | None = None) -> sy.Joint:
    """Return a slide."""
    return sy.Joint(name, parent, kind=sy.Kind.SLIDE, rest=rest, axis=np.array(axis, float), limit=limit)


def four_bar(ground: float = 3.0, crank: float = 1.0, coupler: float = 3.0, rocker: float = 2.0) -> sy.Skeleton:
    """Return a planar four-bar whose crank turns all around."""
    bars = [hinge("crank", None, at(0)), hinge("coupler", "crank", at(crank)), hinge("rocker", None, at(ground))]
    loop = sy.Loop("coupler", "rocker", offset=(coupler, 0, 0), other_offset=(rocker, 0, 0), name="four-bar")
    return sy.Skeleton(bars, name="four-bar").with_loops([loop])


def slider_crank(crank: float = 1.0, rod: float = 2.5) -> sy.Skeleton:
    """Return a crank with a rod to a slide along x."""
    slider = slide("slide", None, at(2.0), (1, 0, 0), sy.Interval(-2.0, 3.0))
    bars = [hinge("crank", None, at(0)), hinge("rod", "crank", at(crank)), slider]
    return sy.Skeleton(bars, name="slider-crank").with_loops([sy.Loop("rod", "slide", offset=(rod, 0, 0))])


def five_bar() -> sy.Skeleton:
    """Return two cranks whose forearms meet in a point."""
    bars = [
        hinge("left", None, at(0)),
        hinge("left_forearm", "left", at(1)),
        hinge("right", None, at(1)),
        hinge("right_forearm", "right", at(1)),
    ]
    loop = sy.Loop("left_forearm", "right_forearm", offset=(1.5, 0, 0), other_offset=(1.5, 0, 0))
    return sy.Skeleton(bars, name="five-bar").with_loops([loop])


def stewart_platform() -> sy.Skeleton:
    """Return a platform on six legs, each a universal joint with a slide."""
    free = sy.Joint("platform", None, kind=sy.Kind.FREE, rest=at(0, 0, 1.0))
    joints: list[sy.Joint] = [free]
    loops: list[sy.Loop] = []
    for k in range(6):
        pair, side = 120.0 * (k // 2), 1.0 if k % 2 else -1.0
        low, high = np.deg2rad(pair + 10.0 * side), np.deg2rad(pair + 50.0 * side)
        foot, head = at(np.cos(low), np.sin(low)), 0.6 * np.array([np.cos(high), np.sin(high), 0.0])
        bend = sy.Interval(-0.9, 0.9)
        joints += [
            hinge(f"x{k}", None, foot, (1, 0, 0), bend),
            hinge(f"y{k}", f"x{k}", at(0), (0, 1, 0), bend),
            slide(f"leg{k}", f"y{k}", at(0, 0, 1.1), (0, 0, 1), sy.Interval(-0.35, 0.45)),
        ]
        loops.append(sy.Loop(f"leg{k}", "platform", other_offset=head))
    return sy.Skeleton(joints, name="stewart").with_loops(loops)


def delta_robot() -> sy.Skeleton:
    """Return a platform on three arms, each with two rods."""
    free = sy.Joint("platform", None, kind=sy.Kind.FREE, rest=at(0, 0, -0.75))
    joints: list[sy.Joint] = [free]
    loops: list[sy.Loop] = []
    for k in range(3):
        turn = np.eye(4)
        c, s = np.cos(2 * np.pi * k / 3), np.sin(2 * np.pi * k / 3)
        turn[:2, :2] = (c, -s), (s, c)
        joints.append(hinge(f"arm{k}", None, turn @ at(0.3), (0, 1, 0), sy.Interval(-0.6, 1.4)))
        for side in (-0.1, 0.1):
            head = (turn @ np.array([0.1, side, 0.0, 1.0]))[:3]
            loops.append(
                sy.Loop(f"arm{k}", "platform", "distance", offset=(0.4, side, 0), other_offset=head, distance=0.8)
            )
    return sy.Skeleton(joints, name="delta").with_loops(loops)


MECHANISMS: dict[str, tuple[Callable[[], sy.Skeleton], str, tuple[float, float, float]]] = {
    "four-bar": (four_bar, "coupler", (1.5, 0.5, 0.0)),
    "slider-crank": (slider_crank, "rod", (1.0, 0.3, 0.0)),
    "five-bar": (five_bar, "left_forearm", (1.5, 0.0, 0.0)),
    "stewart": (stewart_platform, "platform", (0.0, 0.0, 0.0)),
    "delta": (delta_robot, "platform", (0.0, 0.0, 0.0)),
}

SLOW = ("stewart", "delta")  # interpreted, their solves would take a minute
NAMES = [pytest.param(name, marks=pytest.mark.compiled) if name in SLOW else name for name in MECHANISMS]
