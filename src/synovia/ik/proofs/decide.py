"""Decide whether a missed goal is out of reach: find a proof, or a pose that another solve can begin with."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.ik.interrupts import Watch
from synovia.ik.proofs.chain import Chain, chain_of, held_text
from synovia.ik.proofs.maps import MOST_PAINTED, ReachMap, map_of
from synovia.ik.proofs.proof import Proof
from synovia.ik.proofs.search import Found, search
from synovia.kernels.layout import PARTS, ROTATION
from synovia.model.geometry import Array, frames_to_transforms

_SHARES: Final = (0.5,)  # shares of the smallest distance found that a search tries to exclude, before the tolerance
_FINE: Final = (0.3, 0.5, 0.7, 0.85, 0.95)  # the same for a map, which takes less time
_ROUNDING: Final = 1e-8  # more than the margin of the search, which is 1e-9 of the scale of a chain
_EXACT: Final = 1e-12  # of the distance of a target from the origin: its rounding
_WORTH: Final = 1.01  # factor by which limits have to exclude more than lengths, which are the simpler proof
_SHORT: Final = 4_000  # length of a proof of a share of the distance by a map
_QUICK: Final = 20_000  # length of a proof of a share of the distance


class Decision(NamedTuple):
    """What is known about a miss.

    Args:
        proof: The proof that one of the goals is out of reach; None without one.
        start: Joint values (nq,) of a pose in which the missed position is met; None without one.
    """

    proof: Proof | None
    start: Array | None


@dataclass(slots=True)
class _Budget:
    """The work that is left for the maps of one call.

    A map that was painted before counts as if it were painted now, so that equal calls have equal results.

    Args:
        boxes: Number of boxes.
    """

    boxes: int = MOST_PAINTED


class _Point(NamedTuple):
    """A point that a goal fixes in the world.

    Args:
        goal: Index of the goal.
        chain: The chain to the point.
        target: Where the goal puts it (3,).
        near: Distance from there that the tolerances allow, length units.
        miss: Its distance from there in the best pose.
        slack: Part of ``near`` that the tolerance of the rotation allows.
    """

    goal: int
    chain: Chain
    target: Array
    near: float
    miss: float
    slack: float = 0.0

    @property
    def excess(self) -> float:
        """How much farther than ``near`` the target is from all that the lengths of the links reach."""
        return self.chain.length_gap(self.target) - self.chain.length_rounding(self.target) - self.near


def decide(solution: Any, watch: Watch) -> Decision:
    """Search for proofs of the missed positions and poses of a solution, one goal after the other.

    Args:
        solution: A solution that misses a goal.
        watch: The deadline.
    """
    ik, q = solution.ik, np.asarray(solution.q)
    unit = math.nan if ik.skeleton.meters_per_unit is None else ik.skeleton.meters_per_unit
    start: Array | None = None
    points = [point for g in solution.missed for point in _points(solution, g)] if np.isfinite(q).all() else []
    budget = _Budget()
    for point in sorted(points, key=lambda point: point.excess <= 0.0):  # first those that lengths exclude
        proof, found = _proof_of(point, watch, budget)
        if proof is not None:
            named = replace(proof, goal=ik.goals[point.goal].label, unit=unit, slack=point.slack)
            return Decision(named.sealed(), None)
        if found.q is not None and min(point.chain.places) >= 0 and start is None:
            start = q.copy()
            start[[*point.chain.places]] = found.q
    return Decision(None, start)


def _points(solution: Any, g: int) -> list[_Point]:
    """Return the points that a goal fixes and that the best pose misses.

    They are the point of the goal, and for a pose the point on the axis of the last joint that is nearest to the axis
    before it, such as the centre of a wrist: joints whose axes meet there do not move it. The origin of the goal's
    joint counts if the lengths of the links exclude it, because solvers test it, too.
    """
    ik = solution.ik
    chain = chain_of(ik.reduced, ik.skeleton.joint_names, np.asarray(solution.q), g)
    if chain is None:
        return []
    near, most = ik.goals[g].own_tolerance or ik.tolerance[0], ik.tolerance[1]
    target, frame = solution.targets[g], solution.frames[g]
    if not len(chain.slides) and np.linalg.norm(chain.fixed[0, :, 3] - frame[:3, 3]) > _ROUNDING * chain.scale:
        return []
    out = [_Point(g, chain.trimmed(), target[:3, 3].copy(), near, solution.errors[g].position)]
    turn, tip = chain.fixed[-1, :, :3], chain.fixed[-1, :, 3]

    def point_at(local: Array) -> _Point:
        slack = most * float(np.linalg.norm(local))
        wanted, now = target[:3, :3] @ local + target[:3, 3], frame[:3, :3] @ local + frame[:3, 3]
        away = float(np.linalg.norm(now - wanted))
        return _Point(g, chain.to(turn @ local + tip), wanted, near + slack, away, slack)

    if ik.reduced.goals.table[g, PARTS] & ROTATION:
        if (at := chain.wrist()) is not None:
            out.append(point_at(turn.T @ (at - tip)))
        offset = frames_to_transforms(ik.reduced.goals.offsets[g])
        joint = point_at(-offset[:3, :3].T @ offset[:3, 3])
        out += [joint] if joint.excess > 0.0 else []
    return [point for point in out if point.near < point.miss < math.inf]


def _proof_of(point: _Point, watch: Watch, budget: _Budget) -> tuple[Proof | None, Found]:
    """Search for a proof: by a bound, by a map if there is one, by a short search, by a new map, by a long search.

    Args:
        point: The point and its chain.
        watch: The deadline.
        budget: The work that is left for maps.
    """
    chain, target, near, miss = point.chain, point.target, point.near, point.miss

    def proof(kind: str, excluded: float, tokens: NDArray[np.int32], area: ReachMap | None = None) -> Proof:
        cells = np.zeros((0, 0), np.uint8) if area is None else area.cells
        plane = np.zeros(3) if area is None else np.array([area.axis, area.cell, area.lowest])
        arrays = target, chain.fixed, chain.slides, chain.low, chain.high, tokens, cells, plane
        return Proof(kind, "", held_text(chain.held), excluded, miss, math.nan, 0.0, *arrays)

    def by_map(area: ReachMap) -> Proof | None:
        excluded = distances[-1]
        tokens = area.excludes(target, excluded)
        if tokens is None:
            return None
        for distance in (share * miss for share in _FINE if share * miss > excluded):
            more = area.excludes(target, distance, _SHORT)
            if more is None:
                break
            excluded, tokens = distance, more
        return proof("map", excluded, tokens, area)

    def by_lengths() -> Proof:
        return proof("length", near + point.excess, np.zeros(0, np.int32))

    none = Found(None, None, miss)
    if not len(chain.slides):
        return by_lengths() if point.excess > 0.0 else None, none
    gap = chain.gap(target) - _ROUNDING * chain.scale - _EXACT * float(np.linalg.norm(target))
    short = near + point.excess if point.excess > 0.0 else -math.inf  # distance that the lengths exclude
    gap = gap if gap > _WORTH * short else short
    distances = [share * miss for share in _SHARES if share * miss > max(gap, near)]
    distances.append(max(gap, near))
    area = map_of(chain)
    known = area is not None and area.whole and area.spent <= budget.boxes
    if area is not None and known and (found := by_map(area)) is not None:
        return found, none
    for distance in distances:
        if distance <= short:
            return by_lengths(), none
        found = search(chain, target, distance, watch, _QUICK)
        if found.tokens is not None:
            single = "length" if chain.freed().gap(target) > distance else "limits"
            return proof(single if len(found.tokens) == 1 else "search", distance, found.tokens), found
        if found.q is not None and distance == near:
            return None, found
    if short > near:
        return by_lengths(), none
    if area is not None:
        new = not known and area.paint(watch, budget.boxes) and area.spent <= budget.boxes
        if new and (shown := by_map(area)) is not None:
            return shown, none
        budget.boxes -= min(area.spent, budget.boxes)
    found = search(chain, target, distances[-1], watch)
    return (None if found.tokens is None else proof("search", distances[-1], found.tokens)), found
