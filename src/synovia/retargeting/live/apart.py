"""Moves limbs of a live body apart where their shapes overlap, tick by tick."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from synovia.model.geometry import Array, Bools
from synovia.model.pose import inside_limits, world_frames
from synovia.model.shapes.over_time import are_near
from synovia.retargeting.body import Body
from synovia.retargeting.clearance import SHORT, InTurn, apart_of
from synovia.retargeting.judging.shaped import ARMS, LEGS
from synovia.servo.limits import Axes

_RETURN: Final = 0.05  # seconds: time constant with which limbs return after they were moved apart
_NONE: Final = 1e-4  # radians or length units: smaller changes count as no change


class LiveApart:
    """Keeps the limbs of a live body apart: first legs, whose feet keep their places, then arms.

    A limb stays as near to its pose as the clearance permits, on the same side of other limbs as in the previous tick.
    The change begins when shapes touch, and fades out afterwards.

    Args:
        target: The body; it has shapes.
        roles: Roles of the retargeted parts.
        distance: Least distance between limbs, length units.
        axes: Axes of the body.
        ankles: Rows of the body's ankles.
        rate: Ticks per second.
    """

    def __init__(
        self, target: Body, roles: Collection[str], distance: float, axes: Axes, ankles: Sequence[int], rate: float
    ) -> None:
        """Start without changes."""
        self._apart = apart = apart_of(target, frozenset(roles), distance)
        self._distance, self._axes, self._fade = (
            distance - SHORT * target.leg,
            axes,
            float(np.exp(-1.0 / (_RETURN * rate))),
        )
        self._ankles = {LEGS: list(ankles), ARMS: []}
        self._pairs = apart.pairs_of((*LEGS, *ARMS))
        self.reset()

    def reset(self) -> None:
        """Discard the changes of previous ticks."""
        self._before: dict[tuple[str, ...], tuple[Array, Array]] = {}  # reference and pose of the last tick, by limbs

    def step(self, q: Array, stands: Bools) -> Array:
        """Return joint values (nq,) in which limbs keep the distance, as far as possible.

        Args:
            q: Joint values, (nq,).
            stands: Mask of the planted feet.
        """
        for limbs, ankles in self._ankles.items():
            problem = self._apart.problem(limbs, tuple(zip(ankles, stands.tolist(), strict=False)))
            if problem is None:
                continue
            before, start = self._before.pop(limbs, None), q
            if before is not None:
                change = self._fade * self._axes.way(*before)
                start = q if np.abs(change).max() < _NONE else self._axes.shifted(q, change)
            out = start
            if problem.overlapping(start[None], InTurn(), 1)[0]:
                q = inside_limits(self._apart.target.skeleton, q[None])[0]
                places = world_frames(self._apart.target.skeleton, q[None])[:, ankles]
                out = problem.around(q[None], places, before)[0]
                if before is None:  # limbs may be far inside others, so solve once more
                    out = problem.around(q[None], places, (q, out))[0]
            if out is not q:
                self._before[limbs] = q, out
            q = out
        return q

    def is_near(self, frames: Array) -> bool:
        """Return whether limbs that were moved apart are still too near, for world frames (m, 12) of the body."""
        skeleton = self._apart.target.skeleton
        return bool(self._before) and bool(are_near(skeleton, frames[None], self._pairs, self._distance)[0])
