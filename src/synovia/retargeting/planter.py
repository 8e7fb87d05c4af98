"""Plants the feet of the target where those of the source have contact, in a whole clip or tick by tick."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from synovia.ik.frame import FrameSolver
from synovia.ik.targets import transforms
from synovia.model.anatomy.contacts import ContactWatch, find_contacts
from synovia.model.anatomy.feet import runs
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.planting import FootPlaces
from synovia.model.geometry import Array, Bools
from synovia.model.pose import world_frames
from synovia.retargeting.body import Body
from synovia.retargeting.feet import MISSED, FootPath, LiveSoles, foot_problem, toe_row
from synovia.retargeting.pairing import Pairing

_STEPS: Final = 5  # largest number of solver steps per tick; the solve continues in the next tick


@dataclass(frozen=True)
class Point:
    """A point of a foot that can be planted: an ankle or a toe.

    Args:
        role: Role of the point, such as ``"left_foot"`` or ``"left_toes"``.
        source: Row of its joint in the source.
        target: Row of its joint in the target.
        mate: Index in the list of the other point of the same foot; None without one.
    """

    role: str
    source: int
    target: int
    mate: int | None


def points_of(source: Body, target: Body, roles: Collection[str]) -> list[Point]:
    """Return the ankles, then the toes, that both bodies have."""
    feet = [side for side in SIDES if all(f"{side}_foot" in known for known in (source.roles, target.roles, roles))]
    toes = {
        side: (one, other)
        for side in feet
        if (one := toe_row(source, side)) is not None and (other := toe_row(target, side)) is not None
    }
    mates = {side: len(feet) + k for k, side in enumerate(toes)}
    ankles = [
        Point(role, source.roles[role], target.roles[role], mates.get(side))
        for side, role in ((side, f"{side}_foot") for side in feet)
    ]
    return ankles + [Point(f"{side}_toes", *rows, feet.index(side)) for side, rows in toes.items()]


class Planter:
    """Plants the feet of the target while those of the source have contact.

    For a clip, ``paths`` returns where the feet should be. Live, ``step`` moves a pose to where its feet should be.

    Args:
        pairing: The two bodies.
        rate: Frames per second.
        grounds: Height of each point of the source's feet while the source stands, by role, for poses that come one by
            one; None for a clip, in which the heights are found.

    Attributes:
        points: The ankles, then the toes, that both bodies have.
        ankles: Rows of the target's ankles.
        stands: Mask of the points that are planted in the last frame, (points,).
        missing: Roles of the planted ankles that missed their places in the last judged pose.
    """

    def __init__(self, pairing: Pairing, rate: float, grounds: Mapping[str, float] | None = None) -> None:
        """Prepare contacts and places; live, also the problem of a tick."""
        self._pair, self._rate = pairing, rate
        source, target = pairing.source, pairing.target
        self.points = points = points_of(source, target, pairing.roles)
        self._seen, self._rows = np.array([[one.source, one.target] for one in points], np.int64).reshape(-1, 2).T
        self.ankles = self._rows[: sum(one.role.endswith("_foot") for one in points)]
        mates, up = [one.mate for one in points], target.basis[:, 1]
        self._places = FootPlaces(up, target.leg, mates, rate, causal=grounds is not None)
        self._watch: ContactWatch | None = None
        if grounds is not None:
            heights = np.array([grounds.get(one.role, -math.inf) for one in points])
            self._watch = ContactWatch(heights, source.basis[:, 1], source.leg, rate)
            hands = [row for side in SIDES if (row := target.roles.get(f"{side}_hand")) is not None]
            ankles, below = tuple(self.ankles.tolist()), (*self._rows[len(self.ankles) :].tolist(), *hands)
            self._goals = np.array([*ankles, *below], np.int64)
            problem = foot_problem(target, ankles, below, ()).problem
            self._frame, self._out = FrameSolver(problem, attempts=1, steps=_STEPS), problem.new_rows(1)
            self._table = self._frame.table()
            count = 0 if pairing.same_legs or target.skeleton.loops else 2  # before and after the feet are placed
            self._soles = [LiveSoles(target, pairing.roles, rate) for _ in range(count)]
            self.reset()

    def reset(self) -> None:
        """Discard contacts and displacements of the ticks so far."""
        self._places.reset()
        if self._watch is not None:
            self._watch.reset()
            for soles in self._soles:
                soles.reset()
        self.stands: Bools = np.zeros(len(self.points), bool)
        self.missing: tuple[str, ...] = ()

    def paths(self, frames: Array, own: Array) -> dict[str, FootPath]:
        """Return the target path of each foot of a clip, with contacts, by role.

        Args:
            frames: World frames of the source, (T, n, 12).
            own: World frames of the target before its feet are placed, (T, m, 12).
        """
        source = self._pair.source
        stands = find_contacts(frames[:, self._seen, 9:], source.basis[:, 1], self._rate, source.leg).stands
        places, out = self._places.follow(own[:, self._rows, 9:], stands), dict[str, FootPath]()
        spans = [runs(column) for column in stands.T]
        for k, point in enumerate(self.points[: len(self.ankles)]):
            path = FootPath(places[:, k], spans[k], None, places[:, k], [])
            if (mate := point.mate) is not None:
                path = replace(path, toe_row=self.points[mate].target, toe=places[:, mate], toe_spans=spans[mate])
            out[point.role] = path
        return out

    def step(self, frames: Array, own: Array, q: Array, gone: Collection[str] = ()) -> Array:
        """Advance by one tick; return joint values (nq,) with planted feet in place and soles above the floor.

        Args:
            frames: World frames of the source, (n, 12).
            own: World frames of the target at q, (m, 12).
            q: Joint values that follow the source, (nq,).
            gone: Limbs, such as ``"left_leg"``, whose feet are not placed.
        """
        if self._watch is not None:
            self.stands = self._watch.look(frames[self._seen, 9:])
        if gone:
            self.stands = self.stands & [f"{one.role.partition('_')[0]}_leg" not in gone for one in self.points]
        soles, self.missing = self._soles, ()
        if soles:
            q, own = soles[0].raised(q, own)
        self._now = self._places.follow(own[None, self._rows, 9:], self.stands[None])[0]
        if self._places.active:
            wanted = own[self._goals, 9:]
            wanted[: len(self._rows)] = self._now
            transforms(self._table)[0, :, :3, 3] = wanted
            q = self._frame.solve(self._table, q[None], self._out)[0, self._frame.problem.places].copy()
            if soles and not soles[1].moves_ankles:
                q, _ = soles[1].raised(q, world_frames(self._pair.target.skeleton, q[None])[0])
        return q

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles of the planted points."""
        return self._named(self.stands)

    def _named(self, which: Bools) -> tuple[str, ...]:
        """Return the roles of the points in a mask, which may cover only the first points."""
        return tuple(point.role for point, on in zip(self.points, which.tolist(), strict=False) if on)

    def judge(self, frames: Array) -> None:
        """Update ``missing`` from world frames (m, 12) of the target."""
        n = len(self.ankles)
        if not self.stands[:n].any():
            return
        away = frames[self.ankles, 9:] - self._now[:n]
        misses = np.sum(away * away, axis=1) * self.stands[:n] > (MISSED * self._pair.target.leg) ** 2
        self.missing = self._named(misses) if misses.any() else ()
