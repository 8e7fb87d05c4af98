"""Ways between poses that keep the distances of clearance goals: conservative advancement.

No point of a link moves farther than each joint turns, times the distance of the farthest shape that it carries. So
from a pose in which all pairs are farther apart than they have to be, the body may go on until this bound has used up
what is left; there the distances are measured again (Mirtich 1996; Zhang, Lee & Kim 2006).
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
from synovia.solver import FullBody

_SEEN: Final = 0.1  # reaches beyond their distance: pairs that are farther apart count as so far apart
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
        wide = [ClearanceGoal(goal.distance + self._seen, world=goal.world, pairs=goal.pairs) for goal in goals]
        self._ik = CompiledProblem(ik.given, wide, FullBody(attempts=1), tolerance=ik.tolerance, root=ik.root)
        self._no_steps = self._ik.ints.copy()
        self._no_steps[[MAX_STEPS, ATTEMPTS, PATIENCE]] = 0, 1, 1
        self._scratch, self._row = new_scratch(self._ik.scratch_size), self._ik.new_rows(1)
        self._no_targets = np.zeros((1, len(wide), TARGET_WIDTH))
        self._chart = Chart.of(ik.skeleton)
        self._skeleton = ik.skeleton
        low, high = ik.skeleton.limits
        self._farthest = np.maximum(np.abs(low), np.abs(high))  # of each joint value
        self._fixed = _levers(ik.skeleton, self._chart, self._farthest)

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
        """Return how far any point moves at most from joint values q to others, (nq,), if no joint turns back."""
        return float(self._levers(q, to) @ np.abs(self._chart.between(q, to)))

    def _levers(self, q: Array, to: Array) -> Array:
        """Return how far a unit of each column of the chart moves any point of a shape, between two poses, (m + 3 k).

        It is the same for all poses, unless a joint carries slides or free joints that may go anywhere.
        """
        if np.isfinite(self._fixed).all():
            return self._fixed
        farthest = np.minimum(self._farthest, np.maximum(np.abs(q), np.abs(to)))
        return _levers(self._skeleton, self._chart, farthest)

    def along(self, q: Array, to: Array, left: float, least: float) -> float:
        """Return what is left at the end of the way from joint values q to others, (nq,), all joints at once.

        Args:
            q: Where the way begins.
            to: Where it ends.
            left: What is left at q.
            least: Where less is left, the way ends, and that is returned.
        """
        step = self._chart.between(q, to)
        length, done = float(self._levers(q, to) @ np.abs(step)), 0.0
        while done < length:
            done = min(done + max(left, self._least), length)
            left = self.left(to if done == length else self._chart.stepped(q, done / length * step))
            if left < least:
                break
        return left


def _levers(skeleton: Skeleton, chart: Chart, farthest: Array) -> Array:
    """Return how far a unit of each column of a chart moves any point of a shape at most, (m + 3 k).

    Args:
        skeleton: The body.
        chart: Its chart.
        farthest: Largest size of each joint value, (nq,), infinite for one without an end.
    """
    body = packed_shapes(skeleton)
    far = np.full(len(skeleton), -np.inf)  # of the shapes that each joint carries, from its origin
    for (row, _, _), (*center, radius) in zip(body.links.tolist(), body.covers.tolist(), strict=True):
        far[row] = float(np.linalg.norm(center)) + radius
    for row in range(len(skeleton) - 1, 0, -1):
        joint, parent = skeleton.joints[row], skeleton.parents[row]
        if parent >= 0 and far[row] > -np.inf:
            way = skeleton.q_slice(row)
            if joint.kind is Kind.FREE:
                way = slice(way.start, way.start + 3)
            moved = float(np.linalg.norm(farthest[way])) if joint.kind in (Kind.SLIDE, Kind.FREE) else 0.0
            far[parent] = max(far[parent], far[row] + float(np.linalg.norm(joint.rest[:3, 3])) + moved)
    of_q = np.zeros(skeleton.nq)
    for row, joint in enumerate(skeleton.joints):
        part = skeleton.q_slice(row)
        if part.stop > part.start and far[row] > -np.inf:
            of_q[part] = 1.0 if joint.kind is Kind.SLIDE else far[row]
            if joint.kind is Kind.FREE:
                of_q[part.start : part.start + 3] = 1.0
    return np.concatenate([of_q[chart.numbers], np.repeat(of_q[chart.turns[:, 0]], 3)])
