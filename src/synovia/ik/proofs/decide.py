"""Decide whether a missed goal is out of reach: find a proof, or a pose that another solve can begin with."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.goals import PositionGoal
from synovia.ik.interrupts import Watch
from synovia.ik.proofs.chain import Chain, between, chain_of, held_text
from synovia.ik.proofs.conditions import Condition, conditions_of, implied, join
from synovia.ik.proofs.maps import MOST_BY_MAP, MOST_PAINTED, ReachMap, map_of
from synovia.ik.proofs.proof import Proof
from synovia.ik.proofs.search import MOST_TOKENS, MOST_WORK, Found, pose_near, search, single
from synovia.kernels.layout import PARTS, POSITION, ROTATION
from synovia.model.geometry import Array, frames_to_transforms

_SHARES: Final = (0.5,)  # shares of the smallest distance found; a search tries to exclude these, then the tolerance
_FINE: Final = (0.3, 0.5, 0.7, 0.85, 0.95)  # such shares for a map, which takes less time
_ROUNDING: Final = 1e-8  # fraction of a chain's scale: rounding error; above ``MARGIN`` of ``kernels.proofs.boxes``
_EXACT: Final = 1e-12  # fraction of a target's distance from the origin: rounding error
_ALMOST: Final = 10.0  # tolerances: if no part is missed by more, a pose within all tolerances is tried first
_WORTH: Final = 1.01  # a proof by limits must exclude more than the simpler proof by lengths, by this factor
_SHORT: Final = 200  # most tokens for proving a share of a miss by a map: a tenth or two of a millisecond
_QUICK: Final = 20_000  # most tokens for proving a share of a miss by a search
_NAMES: Final = {
    "position": "position", "bounds": "position", "rotation": "rotation", "direction": "direction", "aim": "direction",
}  # fmt: skip
_MEASURES: Final = {"rotation": "angle", "direction": "direction", "aim": "aim", "bounds": "bounds"}


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

    A cached map counts as if it were computed now, so that equal calls have equal results.

    Args:
        boxes: Number of boxes.
    """

    boxes: int = MOST_PAINTED


@dataclass(frozen=True, eq=False)
class _Point:
    """A point that a goal fixes in the world.

    Args:
        goal: Index of the goal.
        chain: The chain to the point.
        target: Where the goal puts it (3,).
        near: Distance from there that the tolerances allow, length units.
        miss: Its distance from there in the best pose.
        slack: Part of ``near`` that the tolerance of the rotation or direction allows.
        given: Text about what the poses of the claim have in common.
    """

    goal: int
    chain: Chain
    target: Array
    near: float
    miss: float
    slack: float = 0.0
    given: str = ""

    @cached_property
    def excess(self) -> float:
        """How much farther than ``near`` the target is from all that the lengths of the links reach."""
        return self.chain.length_gap(self.target) - self.chain.length_rounding(self.target) - self.near


def decide(solution: Any, watch: Watch) -> Decision:
    """Search for proofs that goals cannot be met: first for each missed goal, then for all goals together.

    Args:
        solution: A solution that misses a goal.
        watch: The deadline.
    """
    ik, q = solution.ik, np.asarray(solution.q)
    if not np.isfinite(q).all():
        return Decision(None, None)
    start: Array | None = None
    points = [point for g in solution.missed for point in _points(solution, g)]
    budget, claims = _Budget(), _claims(solution)
    if claims and all(one.miss <= _ALMOST * one.part.near for one in claims[-1]):
        chain, parts = join(claims[-1])
        here = q[[*chain.places]]
        if min(chain.places) >= 0 and (near := pose_near(parts, here)) is not None:
            start = q.copy()
            start[[*chain.places]] = near
            return Decision(None, start)
    short = [point for point in points if point.excess > 0.0]  # points that the lengths of the links exclude
    rest = [point for point in points if point.excess <= 0.0]
    for one in claims[-1] if claims else ():
        if one.slack > 0.0 and one.goal != one.other and not one.exact and one.part.near < one.miss < math.inf:
            given = f" that meets {ik.goals[one.other].label!r}"
            rest.append(_Point(one.goal, one.chain, one.part.target, one.part.near, one.miss, one.slack, given))
    rest += _between(solution)
    for one in (*short, *((claim, _QUICK) for claim in claims), *rest, *((claim, MOST_TOKENS) for claim in claims)):
        if isinstance(one, _Point):
            proof, found = _proof_of(one, watch, budget)
            goal, places = one.goal, one.chain.places
        else:
            proof, found = _proof_of_claim(*one, watch)
            goal, places = one[0][0].goal, join(one[0]).chain.places
        if proof is not None:
            given = one.given if isinstance(one, _Point) else _given(one[0], [goal.label for goal in ik.goals])
            return Decision(_named(proof, ik, goal, given), None)
        if found.q is not None and min(places, default=-1) >= 0 and start is None:
            start = q.copy()
            start[[*places]] = found.q
    return Decision(None, start)


def exclude_apart(solution: Any, watch: Watch) -> Proof | None:
    """Return a proof that two goals of a miss are too near or too far from each other; None without one."""
    for point in _between(solution):
        proof, _ = _proof_of(point, watch, _Budget(0))
        if proof is not None:
            return _named(proof, solution.ik, point.goal, point.given)
    return None


def exclude_all(solution: Any, watch: Watch) -> Proof | None:
    """Return a proof by one search of all joints that no pose meets all goals of a miss; None without one."""
    ik, claims = solution.ik, _claims(solution)
    if not claims or len({one.goal for one in claims[-1]}) < 2:
        return None
    proof, _ = _proof_of_claim(claims[-1], MOST_TOKENS, watch)
    return proof and _named(proof, ik, claims[-1][0].goal, _given(claims[-1], [goal.label for goal in ik.goals]))


def _named(proof: Proof, ik: Any, goal: int, given: str) -> Proof:
    """Return a proof with the label of its goal and its hash."""
    unit = math.nan if ik.skeleton.meters_per_unit is None else ik.skeleton.meters_per_unit
    return replace(proof, goal=ik.goals[goal].label, unit=unit, given=given).sealed()


def _claims(solution: Any) -> list[list[Condition]]:
    """Return lists of conditions to exclude together: one for each missed goal (except positions), one for all goals.

    The first condition of each list is missed.
    """
    every, goal = range(len(solution.goals)), solution.goals[0]
    if len(every) == 1 and isinstance(goal, PositionGoal) and not goal.bounded_parts:
        return []
    missed = solution.missed
    found = {g: conditions_of(solution, g) for g in every}
    missed = [g for g in missed if found[g] and found[g][0].miss > found[g][0].part.near]
    claims = [found[g] for g in missed if len(found[g]) > 1 or found[g][0].what != "position"]
    both = [one for g in sorted(every, key=lambda g: g not in missed) for one in found[g]]
    if missed and len({one.goal for one in both}) > 1:
        claims.append([*both, *implied(solution, both)])
    return claims


def _given(conditions: list[Condition], labels: list[str]) -> str:
    """Return what the poses of a claim have in common, such as " that has the rotation of 'hand'"."""
    first = conditions[0]
    own = dict.fromkeys(_NAMES[one.what] for one in conditions if one.goal == first.goal and one.what != first.what)
    others = dict.fromkeys(repr(labels[one.goal]) for one in conditions if one.goal != first.goal)
    text = [f"has the {' and the '.join(own)} of {labels[first.goal]!r}"] if own else []
    text += [f"meets {' and '.join(others)}"] if others else []
    return f" that {' and '.join(text)}" if text else ""


def _points(solution: Any, g: int) -> list[_Point]:
    """Return the points that a goal fixes and that the best pose misses.

    They are the point of the goal, and for a pose the point on the axis of the last joint that is nearest to the axis
    before it, such as the centre of a wrist: joints whose axes meet there do not move it. The origin of the goal's
    joint counts if the lengths of the links exclude it, because solvers test it, too.
    """
    ik = solution.ik
    parts = int(ik.reduced.goals.table[g, PARTS])
    chain = chain_of(ik.reduced, ik.skeleton.joint_names, np.asarray(solution.q), g) if parts & POSITION else None
    if chain is None:
        return []
    near, most = ik.goals[g].own_tolerance or ik.tolerance[0], ik.tolerance[1]
    target = solution.targets[g]
    frame = np.eye(4) if len(chain.slides) and not parts & ROTATION else solution.frames[g]
    if not len(chain.slides) and np.linalg.norm(chain.fixed[0, :, 3] - frame[:3, 3]) > _ROUNDING * chain.scale:
        return []
    out = [_Point(g, chain.trimmed(), target[:3, 3].copy(), near, solution.errors[g].position)]
    turn, tip = chain.fixed[-1, :, :3], chain.fixed[-1, :, 3]

    def point_at(local: Array) -> _Point:
        slack = most * float(np.linalg.norm(local))
        wanted, now = target[:3, :3] @ local + target[:3, 3], frame[:3, :3] @ local + frame[:3, 3]
        away = float(np.linalg.norm(now - wanted))
        given = f" that has the rotation of {ik.goals[g].label!r}"
        return _Point(g, chain.to(turn @ local + tip), wanted, near + slack, away, slack, given)

    if parts & ROTATION:
        if (at := chain.wrist()) is not None:
            out.append(point_at(turn.T @ (at - tip)))
        offset = frames_to_transforms(ik.reduced.goals.offsets[g])
        joint = point_at(-offset[:3, :3].T @ offset[:3, 3])
        out += [joint] if joint.excess > 0.0 else []
    return [point for point in out if point.near < point.miss < math.inf]


def _between(solution: Any) -> list[_Point]:
    """Return the positions of goals as the tool of a pose goal sees them: joints before both do not matter."""
    ik, q = solution.ik, np.asarray(solution.q)
    links: dict[int, Chain] = {}
    for g, parts in enumerate(ik.reduced.goals.table[:, PARTS].tolist() if len(solution.goals) > 1 else ()):
        found = chain_of(ik.reduced, ik.skeleton.joint_names, q, g, along=False) if parts & POSITION else None
        if found is not None:
            links[g] = found
    out: list[_Point] = []
    for a, b in permutations(links, 2):
        tool, target, frame = solution.targets[a], solution.targets[b, :3, 3], solution.frames[a]
        if not int(ik.reduced.goals.table[a, PARTS]) & ROTATION or {a, b}.isdisjoint(solution.missed):
            continue
        wanted = tool[:3, :3].T @ (target - tool[:3, 3])
        now = frame[:3, :3].T @ (solution.frames[b, :3, 3] - frame[:3, 3])
        near, other = (ik.goals[g].own_tolerance or ik.tolerance[0] for g in (b, a))
        slack = other + ik.tolerance[1] * float(np.linalg.norm(wanted))
        miss, given = float(np.linalg.norm(now - wanted)), f" that meets {ik.goals[a].label!r}"
        if miss > near + slack:
            out.append(_Point(b, between(links[a], links[b]).trimmed(), wanted, near + slack, miss, slack, given))
    return out


def _proof_of_claim(conditions: list[Condition], most: int, watch: Watch) -> tuple[Proof | None, Found]:
    """Search for a proof that no pose meets all conditions; try to exclude half of the miss of the first one, too.

    Args:
        conditions: The conditions.
        most: Largest number of tokens of a proof.
        watch: The deadline.
    """
    first = conditions[0]
    near = first.part.near - first.slack
    found = Found(None, None, first.miss)
    for distance in (*(share * first.miss for share in _SHARES if share * first.miss > near), near):
        kept = [one for one in conditions if distance == near or not one.follows(first)]
        group = [one for one in kept if (one.goal, one.what) == (first.goal, first.what)]
        others = [one for one in kept if (one.goal, one.what) != (first.goal, first.what)]
        chain, parts = join([*group, *others])
        slack = np.array([one.slack for one in group])
        found = search(parts.within(distance + slack), watch, min(most, MOST_WORK // max(parts.size, 1)))
        if found.tokens is not None:
            fixed, kinds, _, targets, margins = parts.within(slack).arrays()
            kind = "limits" if len(found.tokens) == 1 else "search"
            arrays = margins, targets, fixed, kinds, parts.low, parts.high, found.tokens
            measure = _MEASURES.get(first.what, "length")
            cells, plane = np.zeros((0, 0), np.uint8), np.zeros(3)
            proof = Proof(
                kind, measure, "", "", held_text(chain.held), distance, first.miss, math.nan, len(group), *arrays,
                cells, plane,
            )  # fmt: skip
            return proof, found
        if found.q is not None and distance == near:
            break
    return None, found


def _proof_of(point: _Point, watch: Watch, budget: _Budget) -> tuple[Proof | None, Found]:
    """Search for a proof: by a bound, by a map if there is one, by a short search, by a new map, by a long search.

    Args:
        point: The point and its chain.
        watch: The deadline.
        budget: The work that is left for maps.
    """
    chain, target, near, miss, excess = point.chain, point.target, point.near, point.miss, point.excess

    def proof(kind: str, excluded: float, tokens: NDArray[np.int32], area: ReachMap | None = None) -> Proof:
        cells = np.zeros((0, 0), np.uint8) if area is None else area.cells
        plane = np.zeros(3) if area is None else np.array([area.axis, area.cell, area.height])
        fixed, kinds, _, targets, margins = single(chain, target, point.slack).arrays()
        return Proof(
            kind, "length", "", point.given, held_text(chain.held),
            excluded - point.slack, miss, math.nan, 1, margins, targets, fixed, kinds, chain.low, chain.high, tokens,
            cells, plane,
        )  # fmt: skip

    def by_map(area: ReachMap) -> Proof | None:
        shares = [share * miss for share in _FINE if share * miss > distances[-1]]
        most = _SHORT if gap > near else MOST_BY_MAP  # a short search has a proof if the gap excludes more than needed
        found = area.excludes(target, distances[-1], most, shares, _SHORT)
        return None if found is None else proof("map", *found, area)

    def by_lengths() -> Proof:
        return proof("length", near + excess, np.zeros(0, np.int32))

    none = Found(None, None, miss)
    if not len(chain.slides):
        return by_lengths() if excess > 0.0 else None, none
    gap = chain.gap(target) - _ROUNDING * chain.scale - _EXACT * float(np.linalg.norm(target))
    short = near + excess if excess > 0.0 else -math.inf  # distance that the lengths exclude
    gap = gap if gap > _WORTH * short else short
    if short > _FINE[-1] * miss:
        return by_lengths(), none
    distances = [share * miss for share in _SHARES if share * miss > max(gap, near)]
    distances.append(max(gap, near))
    area = map_of(chain)
    known = area is not None and area.whole and area.spent <= budget.boxes
    if area is not None and known and (found := by_map(area)) is not None:
        return found, none
    for distance in distances:
        if distance <= short:
            return by_lengths(), none
        found = search(single(chain, target, distance), watch, _SHORT if known and gap > near else _QUICK)
        if found.tokens is not None:
            name = "length" if chain.freed().gap(target) > distance else "limits"
            return proof(name if len(found.tokens) == 1 else "search", distance, found.tokens), found
        if found.q is not None and distance == near:
            return None, found
    if short > near:
        return by_lengths(), none
    if area is not None:
        new = not known and area.paint(watch, budget.boxes) and area.spent <= budget.boxes
        if new and (shown := by_map(area)) is not None:
            return shown, none
        budget.boxes -= min(area.spent, budget.boxes)
    found = search(single(chain, target, distances[-1]), watch)
    return (None if found.tokens is None else proof("search", distances[-1], found.tokens)), found
