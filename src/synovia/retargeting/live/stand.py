"""Planted feet of a live body: contacts, corrections, and the inverse kinematics of each tick."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from synovia.ik.frame import FrameSolver
from synovia.ik.targets import transforms
from synovia.model.anatomy.contacts import ContactWatch
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.planting import Corrections
from synovia.model.geometry import Array, Bools
from synovia.model.pose import world_frames
from synovia.retargeting.above_floor import LiveSoles
from synovia.retargeting.feet import MISSED, foot_problem, points_of
from synovia.retargeting.pairing import Pairing

_STEPS: Final = 5  # largest number of solver steps per tick; the solve continues in the next tick


class Stand:
    """Keeps the target's feet in place while the source's feet are planted.

    Args:
        pairing: The two bodies.
        grounds: Height of each point of the source's feet while the source stands, by role.
        rate: Ticks per second.

    Attributes:
        points: The ankles, then the toes, that both bodies have.
        ankles: Rows of the target's ankles.
        stands: Mask of the planted points, (points,).
        missing: Roles of the planted ankles that missed their places in the last judged pose.
    """

    def __init__(self, pairing: Pairing, grounds: Mapping[str, float], rate: float) -> None:
        """Build the problem of a tick."""
        source, target = pairing.source, pairing.target
        self.points = points = points_of(source, target, pairing.roles)
        count = sum(point.role.endswith("_foot") for point in points)
        rows = [point.target for point in points]
        hands = [row for side in SIDES if (row := target.roles.get(f"{side}_hand")) is not None]
        heights = np.array([grounds.get(point.role, -math.inf) for point in points])
        self._contacts = ContactWatch(heights, source.basis[:, 1], source.leg, rate)
        self._corrections = Corrections(target.basis[:, 1], target.leg, [point.mate for point in points], rate)
        self._seen = np.array([point.source for point in points], np.int64)
        self._rows, self._goals = np.array(rows, np.int64), np.array([*rows, *hands], np.int64)
        self.ankles = self._rows[:count]
        ik = foot_problem(target, tuple(rows[:count]), (*rows[count:], *hands), ())
        self._frame, self._out = FrameSolver(ik.problem, attempts=1, steps=_STEPS), ik.problem.new_rows(1)
        self._table = self._frame.table()
        self._far, self._skeleton = MISSED * target.leg, target.skeleton
        count = 0 if pairing.same_legs or target.skeleton.loops else 2  # before and after the feet are placed
        self._soles = [LiveSoles(target, pairing.roles, rate) for _ in range(count)]
        self.reset()

    def reset(self) -> None:
        """Discard contacts and corrections."""
        self._contacts.reset()
        self._corrections.reset()
        for soles in self._soles:
            soles.reset()
        self.stands: Bools = self._contacts.stands
        self.missing: tuple[str, ...] = ()

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles of the planted points."""
        return self._named(self.stands)

    def _named(self, which: Bools) -> tuple[str, ...]:
        """Return the roles of the points in a mask, which may cover only the first points."""
        return tuple(point.role for point, on in zip(self.points, which.tolist(), strict=False) if on)

    def step(self, frames: Array, own: Array, q: Array, gone: Collection[str] = ()) -> Array:
        """Advance by one tick; return joint values (nq,) with planted feet in place and soles above the floor.

        Args:
            frames: World frames of the source, (n, 12).
            own: World frames of the target at q, (m, 12).
            q: Joint values that follow the source, (nq,).
            gone: Limbs, such as ``"left_leg"``, whose feet are not placed.
        """
        self.stands = stands = self._contacts.look(frames[self._seen, 9:])
        if gone:
            sides = [point.role.partition("_")[0] for point in self.points]
            self.stands = stands = stands & [f"{side}_leg" not in gone for side in sides]
        corrections, soles = self._corrections, self._soles
        if soles:
            q, own = soles[0].raised(q, own)
        corrections.apply(own[self._rows, 9:], stands)
        self.missing = ()
        if corrections.active:
            wanted = own[self._goals, 9:]
            wanted[: len(self._rows)] = corrections.places
            transforms(self._table)[0, :, :3, 3] = wanted
            q = self._frame.solve(self._table, q[None], self._out)[0, self._frame.problem.places].copy()
            if soles and not soles[1].moves_ankles:
                q, _ = soles[1].raised(q, world_frames(self._skeleton, q[None])[0])
        return q

    def judge(self, frames: Array) -> None:
        """Update ``missing`` from world frames (m, 12) of the target."""
        n = len(self.ankles)
        if not self.stands[:n].any():
            return
        away = frames[self.ankles, 9:] - self._corrections.places[:n]
        misses = np.sum(away * away, axis=1) * self.stands[:n] > self._far * self._far
        self.missing = self._named(misses) if misses.any() else ()
