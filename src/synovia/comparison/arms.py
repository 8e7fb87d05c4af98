"""Chains of six joints by name: industrial arms, an arm of seven with a locked joint, calibrated and random arms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from synovia.model import Joint, Kind, Skeleton
from synovia.model.geometry import Array
from synovia.model.limits import Interval

_JOINTS: Final = 6
_SLIDE: Final = 0.5  # length units: largest displacement of a slide in both directions
_H: Final = math.pi / 2
_UR5E: Final = ((0, _H, 0.1625), (-0.425, 0, 0), (-0.3922, 0, 0), (0, _H, 0.1333), (0, -_H, 0.0997), (0, 0, 0.0996))
_PANDA: Final = (
    (0, 0, 0.333), (0, -_H, 0), (0, _H, 0.316), (0.0825, _H, 0), (-0.0825, -_H, 0.384), (0, _H, 0), (0.088, _H, 0),
)  # fmt: skip
_FLANGE: Final = 0.107  # length units: from the last joint of the Panda to its flange
_CALIBRATED: Final = 5e-4, 1e-3  # standard deviations of calibrated lengths and angles
_LOCKED: Final = (-2.0, 2.0), (-2.5, -0.5)  # ranges of values of a locked joint of the Panda, and of the fourth


class Arm(NamedTuple):
    """A kind of arm.

    Args:
        make: Returns the fixed transforms of an arm, (7, 4, 4): before, between and after the joints.
        each: Number of targets of an arm before another one is made.
        slides: Indices of the joints that slide.
    """

    make: Callable[[np.random.Generator], Array]
    each: float = 10
    slides: tuple[int, ...] = ()


def arm_skeleton(fixed: Array, slides: Sequence[int] = (), name: str = "") -> Skeleton:
    """Return the skeleton of a chain with the tip ``tool``: hinges within ±π, slides within half a unit.

    Args:
        fixed: Fixed transforms, (7, 4, 4).
        slides: Indices of the joints that slide.
        name: Name of the skeleton.
    """
    joints = [Joint("base")]
    for i in range(_JOINTS):
        most, kind = (_SLIDE, Kind.SLIDE) if i in slides else (math.pi, Kind.HINGE)
        joints.append(Joint(f"j{i}", joints[-1].name, kind, fixed[i], axis=np.eye(3)[2], limit=Interval(-most, most)))
    return Skeleton([*joints, Joint("tool", joints[-1].name, rest=fixed[_JOINTS])], name=name)


def random_screws(rng: np.random.Generator) -> Array:
    """Return a chain with random parameters."""
    low, high = (-0.5, -math.pi, -0.5), (0.5, math.pi, 0.5)
    return _classic([rng.uniform(low, high).tolist() for _ in range(_JOINTS)])


def _row(a: float, alpha: float, d: float, *, modified: bool = False) -> Array:
    """Return the transform of a row of Denavit and Hartenberg's parameters, without its rotation."""
    c, s = math.cos(alpha), math.sin(alpha)
    place = (a, -s * d, c * d) if modified else (a, 0, d)
    return np.array([[1, 0, 0, place[0]], [0, c, -s, place[1]], [0, s, c, place[2]], [0, 0, 0, 1]], float)


def _ur5e(_: np.random.Generator) -> Array:
    """Return a UR5e as designed."""
    return _classic(_UR5E)


def _classic(rows: Sequence[Sequence[float]]) -> Array:
    """Return the chain of Denavit and Hartenberg's parameters (a, alpha, d)."""
    return np.array([np.eye(4), *(_row(*row) for row in rows)])


def _calibrated(rng: np.random.Generator) -> Array:
    """Return a UR5e whose axes are a little off."""
    length, angle = _CALIBRATED
    return _classic([rng.normal(row, (length, angle, length)).tolist() for row in _UR5E])


def _jaco(_: np.random.Generator) -> Array:
    """Return Kinova's JACO2 with its wrist of 60 degrees."""
    half, e = math.radians(30), 0.0098
    part = math.sin(half) / math.sin(2 * half)
    d4, d5, d6 = 0.2073 + part * 0.0741, 2 * part * 0.0741, part * 0.0741 + 0.16
    first = (0, _H, 0.2755), (0.41, math.pi, 0), (0, _H, -e)
    return _classic([*first, (0, 2 * half, -d4), (0, 2 * half, -d5), (0, math.pi, -d6)])


def _panda(joint: int, rng: np.random.Generator) -> Array:
    """Return a Panda with one joint (from 0) locked at a random value."""
    parts = [*(_row(*row, modified=True) for row in _PANDA), _row(0, 0, _FLANGE)]
    turn = np.eye(4)
    angle = rng.uniform(*_LOCKED[joint == 3])
    turn[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    return np.array([*parts[:joint], parts[joint] @ turn @ parts[joint + 1], *parts[joint + 2 :]])


def _rail(rng: np.random.Generator) -> Array:
    """Return five joints of a calibrated UR5e on a rail."""
    out, tilt = _calibrated(rng), np.eye(4)
    tilt[:3, :3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
    return np.array([tilt, tilt.T, *out[1:5], out[5] @ out[6]])


ARMS: Final[dict[str, Arm]] = {
    "UR5e": Arm(_ur5e, each=math.inf),
    "UR5e, calibrated": Arm(_calibrated),
    "JACO2": Arm(_jaco, each=math.inf),
    **{f"Panda, joint {i + 1} locked": Arm(partial(_panda, i)) for i in range(len(_PANDA))},
    "rail with five hinges": Arm(_rail, slides=(0,)),
    "random, third a slide": Arm(random_screws, slides=(2,)),
}
