"""Keep the surfaces of fingers apart from each other and from the palm; pads meet in a pinch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.facade import IK
from synovia.goals import ClearanceGoal, Goal
from synovia.ik.targets import transforms
from synovia.model import Skeleton
from synovia.model.anatomy.hands.hand import Finger, Hand
from synovia.model.geometry import LONGEST, Array, is_number
from synovia.model.pose import world_frames
from synovia.model.shapes.body import Ints
from synovia.model.shapes.over_time import TooNear, are_near, near_shapes
from synovia.model.shapes.pairs import self_pairs
from synovia.model.tree import ancestors
from synovia.retargeting.clearance import links_too_near
from synovia.retargeting.hands.follower import HandFollower
from synovia.solver import FullBody

_STEPS: Final = 12  # largest number of steps per frame
_FIRST_STEPS: Final = 60
_CHUNK: Final = (8, 128)  # numbers of frames followed between two checks: after a contact, and at most
_ANY: Final = 3.0  # radians or length units: largest joint move in frame 0


def checked_clearance(clearance: Any, skeleton: Skeleton) -> float | None:
    """Check the argument ``clearance``, the least distance between shapes, and return it; None without a clearance.

    Raises:
        InputError: If the value is not a distance, or the skeleton has no shapes.
    """
    if clearance is None:
        return None
    if not is_number(clearance) or not 0.0 <= clearance <= LONGEST:
        raise InputError("clearance", value=clearance, expected=f"a distance from 0 to {LONGEST:g}, or None")
    if not any(joint.shapes for joint in skeleton.joints):
        raise InputError(
            "clearance", where=skeleton.name, value=clearance, expected="a skeleton with shapes",
            hint="sy.with_shapes(skeleton) makes them from the bones",
        )  # fmt: skip
    return float(clearance)


def finger_pairs(skeleton: Skeleton, hand: Hand) -> Ints:
    """Return the pairs of links of a hand that can collide, as rows, (p, 2); at least one link is a finger's."""
    palm = skeleton.value_index(hand.palm)
    roots = {skeleton.value_index(finger.joints[0]) for finger in hand.fingers}
    lines = [set(ancestors(skeleton.parents, row)) for row in range(len(skeleton))]
    inside = [row for row, line in enumerate(lines) if palm in line]
    first = next((row for row in ancestors(skeleton.parents, palm) if skeleton.joints[row].shapes), palm)
    known = {*inside, first}
    found: list[list[int]] = self_pairs(skeleton).rows.tolist()
    pairs = [
        pair for pair in found
        if set(pair) <= known and any(roots & lines[row] for row in pair)
    ]  # fmt: skip
    return np.array(pairs, np.int32).reshape(-1, 2)


def overlaps_of(skeleton: Skeleton, hand: Hand, q: Array, distance: float = 0.0) -> list[TooNear]:
    """Return the pairs of links of a hand that are nearer than a distance in poses (T, nq), the nearest first."""
    return links_too_near(skeleton, q, finger_pairs(skeleton, hand), distance)


class Pads:
    """Pads: the last links of fingers, which touch other fingers in a pinch.

    Args:
        skeleton: The skeleton.
        fingers: The fingers, thumb first.
    """

    def __init__(self, skeleton: Skeleton, fingers: Sequence[Finger]) -> None:
        """Find the links that have shapes."""
        self._skeleton = skeleton
        self._links = [
            [row for row in range(len(skeleton)) if skeleton.joints[row].shapes
             and skeleton.value_index(finger.joints[-1]) in ancestors(skeleton.parents, row)]
            for finger in fingers
        ]  # fmt: skip

    def gaps(self, q: Array, finger: int, tips: Array) -> Array:
        """Return the distances of a finger's pad from the thumb's pad at poses (T, nq), (T,).

        Args:
            q: Joint values, (T, nq).
            finger: Index of the finger.
            tips: Distances of the tips, (T,): they bound the result, and replace it for links without shapes.
        """
        pairs = [(a, b) for a in self._links[0] for b in self._links[finger]]
        if not pairs or not len(q):
            return tips
        far = float(tips.max()) + 1e-9
        found = near_shapes(self._skeleton, world_frames(self._skeleton, q), np.array(pairs, np.int32), far)
        out = np.array(tips)
        np.minimum.at(out, found.poses, found.gaps)
        return np.maximum(out, 0.0)


class Apart:
    """Keeps the fingers of a hand apart from each other and from the palm.

    A frame in which shapes overlap is solved again, starting from the previous frame, with the same largest moves.
    Clearance has priority over pinches, and pinches over all other goals.

    Args:
        follower: The hand that follows, as a problem.
        hand: The hand.
        distance: Least distance between shapes, length units.
    """

    def __init__(self, follower: HandFollower, hand: Hand, distance: float) -> None:
        """Find which pairs of links can collide."""
        self._follower, self._distance = follower, distance
        self._pairs = finger_pairs(follower.skeleton, hand)
        self._problems: dict[tuple[bool, tuple[int, ...]], IK] = {}

    def overlaps(self, q: Array) -> NDArray[np.bool_]:
        """Return a mask of the poses (T, nq) in which shapes are too near, (T,)."""
        frames = world_frames(self._follower.skeleton, q)
        return are_near(self._follower.skeleton, frames, self._pairs, self._distance)

    def solve(self, table: Array, weights: Array, start: Array, *, first: bool = False) -> Array:
        """Return a pose (nq,) for a frame in which shapes keep their distance.

        Args:
            table: Targets of the frame, (goals, 17).
            weights: Weights, (goals,); goals of weight 0 are left out.
            start: The pose of the previous frame, (nq,); for the first frame, its own pose.
            first: Whether it is the first frame.
        """
        goals = self._follower.goals
        on = tuple(k for k in range(len(goals) - 1) if weights[k] > 0.0)
        ik = self._problems.get((first, on))
        if ik is None:
            ik = self._problems[first, on] = self._problem([goals[k] for k in on], first=first)
        places = transforms(table)[:, :3, 3]
        targets: dict[Any, Any] = {goals[k].name: places[k] for k in on if k < self._follower.ties.start}
        return np.array(ik.solve(targets, start=start, follow=True).q)

    def _problem(self, goals: Sequence[Goal], *, first: bool) -> IK:
        """Return the compiled problem of some goals."""
        follower = self._follower
        apart = ClearanceGoal(self._distance, pairs=[(a, b) for a, b in self._pairs.tolist()])
        settings = FullBody(
            attempts=1, max_steps=_FIRST_STEPS if first else _STEPS, largest_move=_ANY if first else follower.moves
        )
        return IK(follower.skeleton, [*goals, follower.goals[-1], apart], settings, moving=follower.rows)

    def cleared(self, table: Array, weights: Array, q: Array) -> Array:
        """Return the poses of a clip, (T, nq), in which shapes keep their distance.

        Args:
            table: Targets, (T, goals, 17).
            weights: Weights, (T, goals).
            q: Poses that were solved without shapes, (T, nq); those before the first overlap are kept.
        """
        out, t, size = q.copy(), 0, _CHUNK[1]
        before: Array | None = None
        while t < len(q):
            part = slice(t, min(t + size, len(q)))
            found = q[part] if before is None else self._follower.follow(table[part], weights[part], before)
            touched = np.flatnonzero(self.overlaps(found))
            clear = int(touched[0]) if len(touched) else len(found)
            out[t : t + clear] = found[:clear]
            t += clear
            size = _CHUNK[0] if len(touched) else min(2 * size, _CHUNK[1])
            if len(touched):
                out[t] = self.solve(table[t], weights[t], out[t - 1] if t > 0 else q[0], first=t == 0)
                before = out[t]
                t += 1
            elif before is not None:
                before = out[t - 1]
        return out
