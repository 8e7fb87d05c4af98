"""A hand that follows its aims frame by frame: the compiled problem and the calls of its kernel.

A hand with loops, such as four-bars in fingers, is solved on its tree without loops. Each loop is a goal with the
highest priority, like a pinch, so that loops and pinches are solved together. At the end, the loops are closed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.errors import UnsupportedError
from synovia.goals import DirectionGoal, DistanceGoal, Goal, PoseGoal, PositionGoal, RelativeGoal, RestGoal
from synovia.ik.pursuit import STAY, Pursuit, pursuit_settings
from synovia.ik.targets import transforms
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.hands.hand import Finger
from synovia.model.geometry import Array, unit
from synovia.model.loops.loop import Loop
from synovia.model.loops.tables import moved_by
from synovia.model.motion_limits import by_joint
from synovia.model.pose import world_frames

VELOCITY: Final = 15.0  # radians per second: largest velocity of joints, fast for a human finger
UNSEEN: Final = 0.5  # weight of a finger that is not seen, which is drawn to its last position
_ALONG: Final = 0.002  # weight of the direction of a last segment; the position of a tip has weight 1
_OWN_ALONG: Final = 0.1  # the same for landmarks of this very hand, which can reach them all
_REST: Final = 3e-4  # weight of the rest pose; the position of a tip has weight 1
STEPS, _PINCH_STEPS, _TIE_STEPS = 4, 12, 60  # largest numbers of steps per frame: usual, with a pinch, with loops
_SEEKING_STEPS: Final = 20  # largest number of steps when a pose is searched for
ALL: Final = 1.0 - 1e-12  # a share above this counts as the whole displacement, because of rounding
_TIE_CONVERGED: Final = 1e-4  # radians: tolerance for convergence; steps along a loop are short
_BELOW_TIES: Final = 1e-3  # weight of a pinch; loops have weight 1 and so stay closed if the pinch cannot close
_ROUNDED: Final = 1.0 + 1e-9
_LEAST_SHARE: Final = 1e-3  # share of the displacement: a loop that can move by less keeps its pose
_PARTS = ("point", "hinge", "universal")  # kinds held by origins here; structure and final closing keep the axes


class Moving(NamedTuple):
    """The fingers and joints of a hand that move.

    Args:
        fingers: The fingers that follow, thumb first.
        wrist: Rows of the joints of the wrist if it moves too.
        own: Whether the landmarks are those of this very hand, which can reach them all.
    """

    fingers: Sequence[Finger]
    wrist: Sequence[int] = ()
    own: bool = False


class HandFollower:
    """A hand that follows aims frame by frame, as a compiled problem.

    Loops of the skeleton are goals with priority over all others (``ties``); ``closed`` then closes them exactly.

    Args:
        skeleton: The skeleton of the hand.
        moving: What moves.
        fps: Frames per second.
        velocity: See ``retarget_hand``.
        steps: Largest number of steps per frame without a pinch.

    Attributes:
        skeleton: The skeleton without its loops.
        rows: Rows of the joints that move.
        has_ties: Whether the skeleton has loops; ``ties`` is the slice of their goals.
        tips: Row of the link of each tip, (F,); ``offsets`` has the tips in the frames of these links, (F, 3).
        goals: The goals, the rest goal last; ``moves`` has the largest moves per frame.
        settings: Settings of the kernel for frames without and with pinches, (2, PURSUIT_SETTINGS).
        pinch_weight: Weight of a pinch.
        only_numbers: Whether no joint that moves is a ball.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        moving: Moving,
        fps: float,
        velocity: Any,
        steps: int = STEPS,
    ) -> None:
        """Compile the problem and load its kernel."""
        fingers = moving.fingers
        self._tied, self.skeleton = skeleton, skeleton.with_loops([]) if skeleton.loops else skeleton
        self.tips = np.array([skeleton.value_index(one.tip) for one in fingers])
        self.offsets = np.array([one.offset for one in fingers])
        rows = {skeleton.value_index(key) for one in fingers for key in one.joints} | set(moving.wrist)
        rows |= {skeleton.leader_rows[row] for row in rows if row in skeleton.leader_rows}
        ties, self.rows = ties_of(skeleton, rows)
        rest = skeleton.rest_pose()
        count = self.count = len(fingers)
        self._pinches = slice(2 * count, 3 * count - 1)
        goals: list[Goal] = [
            PositionGoal(row, offset=offset, priority=1, name=f"tip {k}")
            for k, (row, offset) in enumerate(zip(self.tips.tolist(), self.offsets, strict=True))
        ]
        along = _OWN_ALONG if moving.own else _ALONG
        goals += [
            DirectionGoal(row, axis, priority=1, weight=along, name=f"way {k}")
            for k, (row, axis) in enumerate(self._last_segments(fingers, np.array(rest.frames)))
        ]
        thumb, thumb_offset = int(self.tips[0]), self.offsets[0]
        pairs = list(zip(self.tips.tolist(), self.offsets, strict=True))[1:]
        goals += [
            RelativeGoal(
                row, thumb, (0, 0, 0), offset=offset, other_offset=thumb_offset, priority=0, name=f"pinch {k + 1}"
            )
            for k, (row, offset) in enumerate(pairs)
        ]
        self.ties = slice(len(goals), len(goals) + len(ties))
        goals += ties
        goals.append(RestGoal(weight=_REST, joints=[skeleton.joint_keys[row] for row in self.rows]))
        self.goals, self.moves = goals, _moves(skeleton, self.rows, velocity, fps)
        self.pursuit = Pursuit(self.skeleton, goals, self.rows, self.moves)
        self.ik = self.pursuit.ik
        tables, mine = self.skeleton.tables, np.isin(self.skeleton.tables.owner, self.rows)
        moved = np.full(len(mine), math.inf) if self.ik.moves is None else self.ik.moves  # radians or length units
        numbers, turns = tables.is_number & mine, ~tables.is_number & mine
        self._numbers, self._largest = tables.places[numbers], moved[numbers]
        balls = zip(tables.places[turns].tolist(), moved[turns].tolist(), strict=True)
        self._balls = [(slice(at, at + 4), far) for at, far in balls]
        self.only_numbers = not self._balls
        self.has_ties = len(ties) > 0
        tied = [pursuit_settings(_TIE_STEPS, _TIE_CONVERGED)] * 2
        self.settings = np.array(tied if ties else [pursuit_settings(steps), pursuit_settings(_PINCH_STEPS)])
        self._seeking = pursuit_settings(_SEEKING_STEPS, stay=1e-3 * STAY)
        self.pinch_weight = _BELOW_TIES if ties else 1.0

    def _last_segments(self, fingers: Sequence[Finger], frames: Array) -> list[tuple[int, Array]]:
        """Return, for each finger, its last joint and the direction from that joint to the tip in the joint's frame."""
        out = list[tuple[int, Array]]()
        for k, finger in enumerate(fingers):
            row = self.skeleton.value_index(finger.joints[-1])
            R = frames[row, :9].reshape(3, 3)
            tip = frames[self.tips[k], :9].reshape(3, 3) @ self.offsets[k] + frames[self.tips[k], 9:]
            way = R.T @ (tip - frames[row, 9:])
            out.append((row, unit(way) if np.linalg.norm(way) > 0.0 else np.array([0.0, 0.0, 1.0])))
        return out

    def table(self, tips: Array, directions: Array, trust: Array) -> tuple[Array, Array]:
        """Return the targets (T, goals, 17) and weights (T, goals) of aims, without pinches."""
        table, weights = self.pursuit.table(len(tips))
        self.aim(table, tips, directions)
        self.trust(weights, trust)
        table[:, self.ties], weights[:, self.ties] = self.ik.writer.own[0, self.ties], 1.0
        return table, weights

    def aim(self, table: Array, tips: Array, directions: Array) -> None:
        """Set targets in a table: tips, (T, F, 3), and directions of last segments, (T, F, 3)."""
        places, F = transforms(table)[..., :3, 3], self.count
        places[:, :F], places[:, F : 2 * F] = tips, directions

    def pinching(self, weights: Array) -> NDArray[np.bool_]:
        """Return a mask of the fingers that pinch, (T, F), given the weights (T, goals)."""
        return np.pad(weights[:, self._pinches] > 0.0, ((0, 0), (1, 0)))

    def trust(self, weights: Array, trust: Array, *, ways: bool = True) -> None:
        """Set the weights (T, goals) of tips to ``trust``, (T, F), and those of last segments to ``trust`` or 0."""
        F = self.count
        weights[:, :F], weights[:, F : 2 * F] = trust, trust if ways else 0.0

    def closed(self, q: Array, before: Array | None = None) -> Array:
        """Return poses (T, nq) of consecutive frames with closed loops, close to the given poses.

        If joints of loops would move too far in a frame, they cover only a share of the displacement; loops stay
        closed.

        Args:
            q: Joint values, (T, nq), before loops are closed.
            before: The closed pose of the previous frame, (nq,), from which moves are limited; None without a previous
                frame.
        """
        mechanism = self._tied.mechanism
        if mechanism is None or not self.has_ties:
            return q
        if before is None:
            out = np.array(mechanism.shut_clip(q))
        else:
            out = np.concatenate([before[None], mechanism.shut_clip(q, anchors=before[None])])
        tied: NDArray[np.bool_] = np.asarray(mechanism.groups.any(axis=0), np.bool_)
        for t in range(1, len(out)):
            last: Array = out[t - 1]
            wanted: Array = out[t].copy()
            share = 1.0
            while share > _LEAST_SHARE and (far := self._excess(last, out[t])) > _ROUNDED:
                share /= far
                way: Array = np.where(tied, share * (wanted - last), wanted - last)
                out[t] = mechanism.shut_clip((last + way)[None], anchors=last[None])[0]
            if share <= _LEAST_SHARE:
                out[t] = np.where(tied, last, wanted)
        return out if before is None else out[1:]

    def _excess(self, before: Array, after: Array) -> float:
        """Return the largest ratio of a hinge's or slide's move between two poses (nq,) to its largest allowed move."""
        return float((np.abs(after - before)[self._numbers] / self._largest).max(initial=0.0))

    def unpinch(self, weights: Array, off: NDArray[np.bool_]) -> None:
        """Switch pinches off: set the weights (T, goals) to 0 where the mask ``off`` (T, F) is set."""
        weights[:, self._pinches][off[:, 1:]] = 0.0

    def first(self, table: Array, weights: Array, start: Array) -> Array:
        """Return the pose (nq,) of the first frame; the start may be far from it."""
        return self.pursuit.first(table, weights, start)

    def sought(self, table: Array, weights: Array, start: Array) -> Array:
        """Return almost the pose of ``first`` in fewer steps, to test whether a start leads to a pinch."""
        return self.pursuit.first(table, weights, start, self._seeking)

    def follow(self, table: Array, weights: Array, start: Array) -> Array:
        """Return the poses (T, nq) of consecutive frames; ``start`` is the pose (nq,) of the frame before them."""
        pinching = bool(weights[:, self._pinches].any())
        return self.pursuit.follow(table, weights, start, self.settings[int(pinching)])

    def may_go(self, before: Array, after: Array) -> bool:
        """Return whether the hand can move from one pose (nq,) to another in one frame."""
        return self.share(before, after) >= ALL

    def share(self, before: Array, after: Array) -> float:
        """Return the share of the way from one pose (nq,) to another that is possible in one frame, at most 1."""
        way = np.abs(after - before)[self._numbers]
        far = way > self._largest
        share = float((self._largest[far] / way[far]).min(initial=1.0))
        for part, largest in self._balls:
            turn = 2.0 * math.acos(min(abs(float(before[part] @ after[part])), 1.0))
            share = min(share, largest / max(turn, largest))
        return share

    def tips_at(self, q: Array) -> tuple[Array, Array]:
        """Return the tips in the world, (T, F, 3), and orientations of the thumb's tip, (T, 3, 3), at poses (T, nq)."""
        frames = world_frames(self.skeleton, q)
        R = frames[:, self.tips, :9].reshape(len(q), -1, 3, 3)
        return np.einsum("tkij,kj->tki", R, self.offsets) + frames[:, self.tips, 9:], R[:, 0]


def _moves(skeleton: Skeleton, rows: Sequence[int], velocity: Any, fps: float) -> dict[str | int, float]:
    """Return the largest move per frame of each joint that has one, radians or length units.

    Raises:
        InputError: If the velocity cannot be used.
        UnknownNameError: If a joint does not exist.
    """
    most = np.full(len(skeleton), np.inf) if velocity is None else by_joint(skeleton, velocity, "velocity")
    own: dict[str | int, float] = {row: float(most[row]) / fps for row in np.flatnonzero(np.isfinite(most)).tolist()}
    if velocity is not None and not isinstance(velocity, Mapping | str):
        own = {row: move for row, move in own.items() if row in rows}
    turning = {row: VELOCITY / fps for row in rows if row not in own and skeleton.joints[row].kind is not Kind.SLIDE}
    return own | turning


def ties_of(skeleton: Skeleton, rows: Iterable[int]) -> tuple[list[Goal], list[int]]:
    """Return the loops that given joints move, as goals of priority 0; and the rows of all joints that belong to them.

    Args:
        skeleton: A skeleton.
        rows: Rows of the given joints.

    Raises:
        UnsupportedError: If no goal supports the kind of a loop.
    """
    inside, left = set(rows), list(skeleton.loops)
    chosen: list[Loop] = []
    while found := [tie for tie in left if inside & moved_by(skeleton, tie)]:
        for tie in found:
            if not isinstance(tie, Loop) or tie.kind not in (*_PARTS, "weld", "distance"):
                raise UnsupportedError(
                    "retargeting of hands does not support such a loop", where=f"{skeleton.name}: {tie.label}",
                    value=tie.kind if isinstance(tie, Loop) else "a coupling of joints",
                    expected=f"loops of the kinds {', '.join(_PARTS)}, weld and distance",
                    hint="skeleton.with_loops([...]) without it leaves it open; a Mimic couples joints in proportion",
                )  # fmt: skip
            chosen.append(tie)
            inside |= moved_by(skeleton, tie)
        left = [tie for tie in left if tie not in found]
    return [_goal(skeleton, tie, k) for k, tie in enumerate(chosen)], sorted(inside)


def _goal(skeleton: Skeleton, tie: Loop, number: int) -> Goal:
    """Return a loop as a goal of priority 0."""
    (first, offset), (second, other) = tie.ends(skeleton)
    name = f"loop {number}"
    if first < 0:
        first, offset, second, other = second, other, first, offset
    if tie.kind == "distance":
        far = tie.distance or 0.0
        to: dict[str, Any] = {"point": other[:3, 3]} if second < 0 else {"other": second, "other_offset": other[:3, 3]}
        return DistanceGoal(first, **to, minimum=far, maximum=far, offset=offset[:3, 3], priority=0, name=name)
    how: dict[str, Any] = {"offset": offset, "priority": 0, "name": name}
    if second < 0:
        how |= {"transform": other} if tie.kind == "weld" else {"position": other[:3, 3]}
        return PoseGoal(first, **how)
    how |= {"transform": np.eye(4)} if tie.kind == "weld" else {"position": (0.0, 0.0, 0.0)}
    return RelativeGoal(first, second, **how, other_offset=other)
