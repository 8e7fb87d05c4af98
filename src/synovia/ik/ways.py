"""Ways between poses that keep the distances of clearance goals: conservative advancement.

Two links come nearer by no more than the joints between them turn, times the distance of the farthest point of the link
that each carries. So from a pose in which all pairs are farther apart than they have to be, the body may go on until
this bound has used up what is left; there the distances are measured again (Mirtich 1996; Zhang, Lee & Kim 2006).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.goals import ClearanceGoal
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.kernels.layout import ATTEMPTS, COLD, MAX_STEPS, PATIENCE, TARGET_WIDTH
from synovia.model import Kind, Skeleton
from synovia.model.clip_tools.chart import Chart
from synovia.model.geometry import Array
from synovia.model.shapes.body import packed_shapes
from synovia.model.tree import ancestors
from synovia.solver import FullBody

_SEEN: Final = 0.1  # reaches beyond their distance: pairs that are farther apart count as so far apart
_LONG: Final = 4.0  # reaches: longer levers are those of slides that go far, so they are found anew on each way
_LEAST: Final = 0.005  # reaches: a shorter way is not divided, so what is thinner may be passed where it is grazed


class ClearWays:
    """What is left of the distances of the clearance goals of a problem that are constraints, along ways of its body.

    Args:
        ik: The problem, which has one at least.
    """

    def __init__(self, ik: CompiledProblem) -> None:
        """Build a problem that sees farther than the distances."""
        goals = [goal for goal in ik.goals if isinstance(goal, ClearanceGoal) and goal.rank < 0]
        self._seen, self._least = _SEEN * ik.reach, _LEAST * ik.reach
        wide = [wider for goal in goals for wider in _wider(goal, self._seen)]
        self._ik = CompiledProblem(ik.given, wide, FullBody(attempts=1), tolerance=ik.tolerance, root=ik.root)
        self._no_steps = self._ik.ints.copy()
        self._no_steps[[MAX_STEPS, ATTEMPTS, PATIENCE]] = 0, 1, 1
        self._scratch, self._row = new_scratch(self._ik.scratch_size), self._ik.new_rows(1)
        self._no_targets = np.zeros((1, len(wide), TARGET_WIDTH))
        self._chart = Chart.of(ik.skeleton)
        before = len(ik.skeleton) - len(ik.given)
        self._pairs = [
            pair for goal in self._ik.goals if isinstance(goal, ClearanceGoal) for pair in _pairs(goal, before)
        ]
        self._skeleton = ik.skeleton
        low, high = ik.skeleton.limits
        self._farthest = np.maximum(np.abs(low), np.abs(high))  # of each joint value
        self._fixed = _levers(ik.skeleton, self._pairs, self._chart, self._farthest)
        self._bounded = bool((self._fixed <= _LONG * ik.reach).all())

    def left(self, q: Array) -> float:
        """Return how much farther apart than its distance the nearest pair is at joint values (nq,), length units.

        It is at most a tenth of the reach, and negative if the pair is too near.
        """
        ik = self._ik
        ik.call(self._no_steps, ik.floats, self._no_targets, q[None], self._row, self._scratch, COLD, 0)
        first = ik.places.stop
        lacking = float(self._row[0, first : first + 2 * len(ik.goals)].max())
        return self._seen + ik.tolerance[0] - lacking

    def length(self, q: Array, to: Array) -> float:
        """Return by how much a pair comes nearer at most from joint values q to others, if no joint turns back."""
        return float((self._levers(q, to) @ np.abs(self._chart.between(q, to))).max(initial=0.0))

    def _levers(self, q: Array, to: Array) -> Array:
        """Return by how much a unit of each column of the chart brings pairs nearer between two poses, (p, m + 3 k).

        It is the same for all poses, unless a joint carries slides or free joints that may go far.
        """
        if self._bounded:
            return self._fixed
        farthest = np.minimum(self._farthest, np.maximum(np.abs(q), np.abs(to)))
        return _levers(self._skeleton, self._pairs, self._chart, farthest)

    def along(self, q: Array, to: Array, left: float, least: float) -> float:
        """Return what is left at the end of the way from joint values q to others, (nq,), all joints at once.

        Args:
            q: Where the way begins.
            to: Where it ends.
            left: What is left at q.
            least: Where less is left, the way ends, and that is returned.
        """
        step = self._chart.between(q, to)
        length, done = self.length(q, to), 0.0
        while done < length:
            done = min(done + max(left, self._least), length)
            left = self.left(to if done == length else self._chart.stepped(q, done / length * step))
            if left < least:
                break
        return left


def _wider(goal: ClearanceGoal, more: float) -> list[ClearanceGoal]:
    """Return goals that keep the same pairs apart by a length more, one for each distance of a resolved goal.

    The pairs are named, because which ones cannot be so far apart depends on the distance.
    """
    if goal.apart is None:
        return [ClearanceGoal(goal.distance + more, world=goal.world, pairs=goal.pairs)]
    links, close = ([tuple(pair) for pair in rows.tolist()] for rows in (goal.apart.links, goal.apart.close))
    given = (goal.pairs or ("world",)) if goal.world is not None else ()
    others = [pair for pair in given if pair != "self" and (pair == "world" or pair not in links)]
    wide = [ClearanceGoal(more, pairs=close)] if close else []
    if links or others:
        wide.append(ClearanceGoal(goal.distance + more, world=goal.world, pairs=[*links, *others]))
    return wide or [ClearanceGoal(goal.distance + more, world=goal.world, pairs=goal.pairs)]


def _pairs(goal: ClearanceGoal, before: int) -> list[tuple[int, ...]]:
    """Return the joints that carry the links of each pair; only one for a link that avoids obstacles.

    Args:
        goal: The goal, resolved.
        before: Number of rows put before the skeleton that the goal was resolved for.
    """
    if goal.apart is None:
        return []
    alone = [*goal.apart.avoiding.tolist(), *goal.apart.single[:, 0].tolist()]
    return [*((a + before, b + before) for a, b in goal.apart.links.tolist()), *((row + before,) for row in alone)]


def _levers(skeleton: Skeleton, pairs: list[tuple[int, ...]], chart: Chart, farthest: Array) -> Array:
    """Return by how much a unit of each column of a chart brings each pair nearer at most, (pairs, m + 3 k).

    Args:
        skeleton: The body.
        pairs: Joints that carry the links of each pair, see ``_pairs``.
        chart: The chart of the body.
        farthest: Largest size of each joint value, (nq,), infinite for one without an end.
    """
    own = {row: _levers_of(skeleton, row, farthest) for row in {row for pair in pairs for row in pair}}
    out = np.zeros((len(pairs), skeleton.nq))
    for values, pair in zip(out, pairs, strict=True):
        sides = [own[row] for row in pair]
        for side, other in zip(sides, sides[::-1], strict=True):
            for row, (part, levers) in side.items():
                if len(sides) == 1 or row not in other:  # a joint above both moves them together
                    values[part] = levers
    columns = np.concatenate([out[:, chart.numbers], np.repeat(out[:, chart.turns[:, 0]], 3, axis=1)], axis=1)
    return np.unique(columns, axis=0)


def _levers_of(skeleton: Skeleton, link: int, farthest: Array) -> dict[int, tuple[slice, Array]]:
    """Return how far a unit of each joint value above a link moves any point of it, by the row of the joint."""
    body = packed_shapes(skeleton)
    cover = body.covers[body.links[:, 0] == link][0]
    far = float(np.linalg.norm(cover[:3]) + cover[3])  # of the link, from the origin of the joint
    found: dict[int, tuple[slice, Array]] = {}
    for row in ancestors(skeleton.parents, link):
        joint, part = skeleton.joints[row], skeleton.q_slice(row)
        lengths = {Kind.SLIDE: 1, Kind.FREE: 3}.get(joint.kind, 0)
        if part.stop > part.start:
            levers = np.full(part.stop - part.start, far)
            levers[:lengths] = 1.0
            found[row] = part, levers
        moved = float(np.linalg.norm(farthest[part.start : part.start + lengths])) if lengths else 0.0
        far += float(np.linalg.norm(joint.rest[:3, 3])) + moved
    return found
