"""Curves of a joint over the frames of a clip, in degrees or length units, with the limits of the joint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.model import Kind, Pose, Skeleton
from synovia.model.angles import named_angles, named_limits
from synovia.model.geometry import Array
from synovia.model.rooted import with_root_values
from synovia.viewer.editing.state import State

_MOST: Final = 240  # largest number of points of a curve


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One component of a joint's value over the frames of a clip, in degrees or length units.

    Args:
        name: Name of the component, such as ``"swing x"``; empty if the joint has only one.
        values: Values with layers and keys, (n,).
        clip: Values of the clip itself, (n,).
        low: Lower limit; None if there is none.
        high: Upper limit; None if there is none.
    """

    name: str
    values: Array
    clip: Array
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """The curves of a joint.

    Args:
        frames: Frames of the values, (n,).
        unit: ``"°"`` for angles, empty for lengths.
        curves: The curves.
    """

    frames: Array
    unit: str
    curves: tuple[Curve, ...]


def curves_of(state: State, row: int) -> Curves | None:
    """Return the curves of a joint; None without a clip, or if the joint does not move.

    Args:
        state: The state of a page; the caller holds its lock.
        row: The joint, a row of the given skeleton.
    """
    play, skeleton = state.play, state.given
    joint = skeleton.joints[row]
    if play.motion is None or not joint.kind.v_size:
        return None
    frames = np.unique(np.linspace(0, len(play.motion) - 1, _MOST).round().astype(np.int64))
    added = state.rooted.added
    own = play.motion.q[frames]
    edited = edited_values(state, frames)
    both = [
        [_numbers(skeleton_, row_, q) for q in rows]
        for skeleton_, row_, rows in ((state.skeleton, row + added, edited), (skeleton, row, own))
    ]
    lengths = joint.kind is Kind.SLIDE
    out: list[Curve] = []
    for name in both[0][0]:
        new, old = (np.array([values[name] for values in rows]) for rows in both)
        if not lengths:
            new, old = (np.degrees(np.unwrap(np.radians(angles))) if name == "" else angles for angles in (new, old))
        ends = named_limits(skeleton, row).get(name, (-math.inf, math.inf))
        out.append(Curve(name, new, old, *(end if math.isfinite(end) else None for end in ends)))
    return Curves(frames.astype(np.float64), "" if lengths else "°", tuple(out))


def edited_values(state: State, frames: NDArray[np.int64]) -> Array:
    """Return joint values of the clip with its layers and keys, (n, nq) of the solved skeleton."""
    play, top = state.play, state.play.top
    rows = [] if top is None else [with_root_values(top.q[frame], state.rooted) for frame in frames.tolist()]
    return play.keyed(state.skeleton, frames.astype(np.float64), np.array(rows))


def _numbers(skeleton: Skeleton, row: int, q: Array) -> dict[str, float]:
    """Return the components of a joint's value by name (see ``Curve``), length units for a slide, else degrees."""
    if skeleton.joints[row].kind is Kind.SLIDE:
        return {"": float(q[skeleton.q_slice(row)][0])}
    return named_angles(Pose.trusted(skeleton, q), row)
