"""``LiveHand``: a hand that follows a tracked hand, frame by frame."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import ChecksArguments, check_kind, completed, takes
from synovia.clips.points import confidence_of
from synovia.errors import InputError
from synovia.ik import GoalError, Status
from synovia.kernels.layout import BEFORE_Q, FOLLOWS, FREE_Q, HAND_Q, HELD_BACK, NO_PALM, OFF_TARGET, OPEN_PINCH
from synovia.model import Pose, Skeleton
from synovia.model.anatomy.hands.find import hand_of
from synovia.model.anatomy.hands.landmarks import COUNT, FINGER_POINTS, KNUCKLES, WRIST, palm_of, palms_and_side_of
from synovia.model.change import blend
from synovia.model.clip_tools.derivatives import steps
from synovia.model.geometry import Array, as_numbers, is_number
from synovia.model.motion import Motion
from synovia.model.pose import inside_limits
from synovia.retargeting.hands.ahead import HandAhead, HandFrame
from synovia.retargeting.hands.aims import Aims, aims_of
from synovia.retargeting.hands.apart import Apart, Pads, checked_clearance
from synovia.retargeting.hands.follower import ALL, STEPS, HandFollower, Moving
from synovia.retargeting.hands.judge import OFF, TOUCH
from synovia.retargeting.hands.recording import read_recording
from synovia.retargeting.hands.tracked import TrackedHand
from synovia.retargeting.options import HandOptions, LiveHandOptions, checked_look_ahead
from synovia.servo.tick import Tick
from synovia.text import length_text

Bools = NDArray[np.bool_]
_BEYOND: Final = 0.05  # radians or length units: largest excess of a measured pose over its limits
_AT_MOST: Final = 1.0 - 1e-6  # fraction of a joint's largest move from which the joint counts as held back
_STATUS: Final = MappingProxyType(
    {FOLLOWS: Status.REACHED, HELD_BACK: Status.LATE, OPEN_PINCH: Status.STALLED, OFF_TARGET: Status.STALLED}
)


@dataclass(slots=True, eq=False)
class HandDetails:
    """Details of a tick of a live hand, from which ``Tick`` computes its attributes.

    Args:
        skeleton: The skeleton.
        trail: Joint values of the last two ticks and of this tick, (nq,) each.
        rate: Ticks per second.
        moves: Largest move per tick of each joint that has one, by row.
        time: Seconds since the reset.
        status: Status of the tick.
        distances: Distance of each tip from its target, (F,); empty while the hand holds its pose.
        fingers: Names of the fingers, mask of the seen fingers, and mask of those that missed their targets, (F,) each.
        pinching: As in ``Tick``.
        source: The tracked points, (21, 3), and the side of the tracked hand; None while the hand holds its pose.
    """

    skeleton: Skeleton
    trail: tuple[Array, ...]
    rate: float
    moves: Mapping[str | int, float]
    time: float
    status: Status
    distances: Array
    fingers: tuple[tuple[str, ...], Bools, Bools]
    pinching: tuple[str, ...]
    source: tuple[Array, str] | None

    def _velocities(self) -> Array:
        """Return the velocities of the previous tick and of this one, (2, nv)."""
        return steps(Motion(self.skeleton, np.array(self.trail), self.rate))

    @property
    def velocity(self) -> Array:
        """See ``Tick.velocity``."""
        return self._velocities()[1]

    @property
    def acceleration(self) -> Array:
        """See ``Tick.acceleration``."""
        before, now = self._velocities()
        return (now - before) * self.rate

    @property
    def states(self) -> dict[str, str]:
        """See ``Tick.states``."""
        names, seen, missed = self.fingers
        state = {Status.LATE: "late", Status.HOLDING: "holding"}.get(self.status, "reached")
        return {
            name: state if self.status is Status.HOLDING or (sees and not misses) else "missed" if sees else "lost"
            for name, sees, misses in zip(names, seen.tolist(), missed.tolist(), strict=True)
        }

    @property
    def errors(self) -> tuple[GoalError, ...]:
        """See ``Tick.errors``."""
        return tuple(GoalError(distance, 0.0) for distance in self.distances.tolist())

    @property
    def speeds(self) -> dict[str, float]:
        """See ``Tick.speeds``."""
        out, moved, skeleton = dict[str, float](), self.velocity / self.rate, self.skeleton
        for row, most in self.moves.items():
            (first, ratio), joint = skeleton.dof_columns[int(row)], skeleton.joints[int(row)]
            part = ratio * moved[first : first + joint.kind.v_size]
            out[skeleton.joint_keys[int(row)]] = float(np.linalg.norm(part)) / most
        return out

    @property
    def limited(self) -> dict[str, str]:
        """See ``Tick.limited``."""
        late = self.status is Status.LATE
        return {joint: "velocity" for joint, share in self.speeds.items() if late and share >= _AT_MOST}

    def _follows(self) -> str:
        """Return a sentence about the distances of the tips from their targets."""
        far = length_text(float(self.distances.max(initial=0.0)), self.skeleton.meters_per_unit)
        return f"The hand follows as closely as its joints allow: the tips are at most {far} from their targets."

    def explain(self) -> tuple[list[str], list[str]]:
        """Return the sentences of ``Tick.explain`` that come before and after the sentences about limits."""
        unseen = [finger for finger, state in self.states.items() if state == "lost"]
        stalled = "Stalled: a pinch does not close, or the tips are far from their targets."
        first = {Status.STALLED: stalled, Status.REACHED: self._follows()}.get(self.status, self.status.meaning)
        further = [f"Fingers that were not seen: {', '.join(unseen)}."] if unseen else []
        if self.source is not None and palms_and_side_of(self.source[0][None], self.source[1]).others:
            other = "left" if self.source[1] == "right" else "right"
            further.append(f"The fingers bend as those of a {other} hand: the points may be mirrored.")
        return [first], further


def _shows_palm(points: Array, side: str | None) -> bool:
    """Return whether points (21, 3) show a palm: the wrist and two knuckles that are neither in line nor coincide."""
    knuckles = points[list(KNUCKLES)]
    knuckles = knuckles[np.isfinite(knuckles[:, 0])]
    if len(knuckles) < 2 or not np.isfinite(points[WRIST]).all():
        return False
    return bool((knuckles != points[WRIST]).any(1).all() and np.isfinite(palm_of(points[None], side)).all())


class LiveHand(ChecksArguments):
    """A hand that follows a tracked hand of 21 points, frame by frame; ``retarget_hand`` follows recordings.

    The hand starts with the first frame that shows the palm, the thumb and another finger, which also define the side
    of the tracked hand and the scale; until then, and without points, it holds. A finger that is seen later follows
    from then on. Later frames are unknown: a pinch begins to close where the tracked
    tips are 30 mm apart, and opens within 0.15 s.

    If the first frame has all points, the first pose is that of the tracked hand. After ``reset(pose)``, or after
    frames in which the hand held its pose, the hand moves there from its current pose. From the first pose on, no joint
    moves faster than ``velocity``, even when points return. A frame that does not show the palm (wrist or three
    knuckles missing, or in line) counts as a frame without points. Mirrored points are followed as they are;
    ``explain`` of their ticks says so.

    Args:
        skeleton: The skeleton of the hand, or a body with one.
        rate: Frames per second.
        options: As in ``retarget_hand``, and ``look_ahead`` as in ``LiveRetarget``. With a look-ahead, the program of
            ``retarget_hand`` follows the frames, and side and scale come from the frames that are known at the first
            one. Without one, give ``source_side`` if the first frame may be one of straight fingers. With
            ``clearance``, a frame in which surfaces would overlap takes some milliseconds.

    Attributes:
        skeleton: The skeleton.
        hand: The target hand.

    Raises:
        InputError: If a value cannot be used.
        UnsupportedError: If no hand is found, or several and ``side`` does not choose, or a loop cannot be kept
            closed.

    Example:
        >>> import synovia as sy
        >>> hands = sy.bundled("humanoid_hands")
        >>> live = sy.hands.LiveHand(hands, rate=30, side="left")
        >>> pose = live.step(sy.hands.hand_landmarks(hands.rest_pose(), "right"))
        >>> pose.status.name, pose.pinching
        ('REACHED', ())
    """

    @takes(LiveHandOptions)
    def __init__(
        self,
        skeleton: Skeleton,
        *,
        rate: float,
        **options: Unpack[LiveHandOptions],
    ) -> None:
        """Start at rest."""
        check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
        if not is_number(rate) or not 0.0 < rate < math.inf:
            raise InputError("rate", value=rate, expected="frames per second above 0")
        self._chosen = chosen = completed(LiveHandOptions, options, "LiveHand")
        self.skeleton, self.hand = skeleton, hand_of(skeleton, chosen.side)
        self._rate, self._distance = float(rate), checked_clearance(chosen.clearance, skeleton)
        self._touch = TOUCH / (skeleton.meters_per_unit or 1.0)
        self._all = np.ones(COUNT)
        self._tracked: TrackedHand | None = None
        given: dict[str, Any] = {name: getattr(chosen, name) for name in HandOptions.__annotations__}
        seconds = checked_look_ahead(chosen.look_ahead)
        self._ahead: HandAhead | None = None
        if seconds:
            self._ahead = HandAhead(skeleton, self._rate, seconds, given)
            self._follower = HandFollower(skeleton, Moving(self.hand.fingers), self._rate, chosen.velocity)
        self.reset()

    def reset(self, pose: Pose | None = None) -> None:
        """Restart from a pose or the rest pose; forget the fingers, side and scale of the tracked hand.

        The pose also sets the position of the palm, which an arm or a wrist may have moved. Joints slightly beyond
        their limits start at the limits.

        Raises:
            InputError: If ``pose`` is not a pose of this skeleton, or is more than 0.05 rad beyond limits.
        """
        if pose is not None:
            check_kind("pose", pose, Pose, "sy.Pose(skeleton, q) makes one of joint values")
            if pose.skeleton is not self.skeleton:
                raise InputError("pose", value=pose.skeleton.name, expected=f"a pose of {self.skeleton.name}")
        self._q = np.array(self.skeleton.rest_pose().q if pose is None else self._inside(pose.q))
        self._began = self._given = pose is not None
        self._trail, self._ticks = (self._q,) * 3, 0
        self._tracked, self._side = None, self._chosen.source_side
        if self._ahead is not None:
            self._ahead.reset()

    def _inside(self, q: Array) -> Array:
        """Return joint values (nq,) clamped to the limits.

        Raises:
            InputError: If a value is far beyond its limits.
        """
        inside = inside_limits(self.skeleton, q[None])[0]
        far = int(np.argmax(np.abs(inside - q)))
        if abs(inside[far] - q[far]) > _BEYOND:
            rows = range(len(self.skeleton))
            row = next(k for k in rows if (part := self.skeleton.q_slice(k)).start <= far < part.stop)
            raise InputError(
                f"pose of joint {self.skeleton.joint_keys[row]!r}", value=float(q[far]),
                expected=f"a value at most {_BEYOND:g} beyond its limits",
                hint=f"set it to {float(inside[far]):.4g}, as a jump there exceeds any velocity limit",
            )  # fmt: skip
        return inside

    @property
    def fingers(self) -> tuple[str, ...]:
        """Names of the fingers that follow, thumb first; empty before the first frame."""
        if self._ahead is not None:
            return () if self._ahead.answer is None else self._ahead.answer.fingers
        return tuple(one.name for one in self._aims.fingers) if self._tracked is not None else ()

    @property
    def scale(self) -> float | None:
        """Length on the target hand per unit of the points; None before the first frame."""
        if self._ahead is not None:
            return None if self._ahead.answer is None else self._ahead.answer.scale
        return self._aims.scale if self._tracked is not None else None

    def step(self, points: Any = None, confidence: Any = None) -> Tick:
        """Return the tick for the next frame of points, with the pose of the hand.

        Args:
            points: (21, 3), as in ``retarget_hand``; NaN where a point is not seen. None without points.
            confidence: (21,), 0 for not seen; None for equal weights.

        Raises:
            InputError: If a shape is wrong.
        """
        if points is None:
            waits = self._ahead is None or self._chosen.look_ahead is None
            return self._tick(Status.HOLDING) if waits else self._later(ended=True)
        places = as_numbers(points, (COUNT, 3), "points", finite=False)
        trust = self._all if confidence is None else np.array(confidence_of(confidence, 1, COUNT)[0])
        if self._ahead is not None:
            self._ahead.add((np.array(places), trust))
            return self._later(ended=False)
        if self._tracked is None or self._left:
            seen = np.isfinite(places).all(axis=1) & (trust > 0.0)
            shown = {one.name for one in self.hand.fingers if seen[list(FINGER_POINTS[one.name])].all()}
            more = shown - {*self.fingers}
            if more and len(shown) > 1 and "thumb" in shown and shown > {*self.fingers}:
                known = np.where(seen[:, None], places, np.nan)
                if _shows_palm(known, self._side):
                    self._tracked = self._learned(known)
            if self._tracked is None:
                return self._tick(Status.HOLDING)
        self._points = places
        return self._judged(self._tracked, self._tracked.step(places, trust))

    def finish(self) -> list[Tick]:
        """Return the ticks of the frames that wait for later ones, because the source has ended; see ``look_ahead``."""
        out = list[Tick]()
        while self._ahead is not None and self._ahead.waiting:
            out.append(self._later(ended=True))
        return out

    def _later(self, *, ended: bool) -> Tick:
        """Return the tick of a frame whose later ones are known; the hand holds its pose while none is."""
        known = None if self._ahead is None else self._ahead.next(ended=ended)
        if known is None:
            return self._tick(Status.HOLDING)
        frame, self._points = known.facts, known.sample[0]
        status = Status.STALLED if frame.missed.any() else Status.REACHED
        free = known.first and self._chosen.look_ahead is None and not self._given
        share = 1.0 if free else self._follower.share(self._q, known.q)
        self._q = known.q.copy()
        if share < ALL:
            status = Status.LATE
            (self._q,) = blend(self.skeleton, self._trail[-1][None], known.q[None], np.array([share]))
        return self._tick(status, frame)

    def _learned(self, places: Array) -> TrackedHand:
        """Return the hand that follows; fingers, side and scale come from a frame of points (21, 3)."""
        chosen = self._chosen
        recording = read_recording(places[None], None, self._side, self._rate)
        self._side = recording.side
        aims = aims_of(recording, self.skeleton, self.hand, chosen.frame, chosen.origin, chosen.scale)
        rest, now = (pose.transform(aims.carrier) for pose in (self.skeleton.rest_pose(), Pose(self.skeleton, self._q)))
        self._aims: Aims = aims.moved(now @ np.linalg.inv(rest))
        self._left = len(aims.fingers) < len(self.hand.fingers)
        self._follower = HandFollower(self.skeleton, self._aims.moving, self._rate, chosen.velocity, 2 * STEPS)
        self._apart = None if self._distance is None else Apart(self._follower, self.hand, self._distance)
        self._pads = Pads(self.skeleton, self._aims.fingers)
        on_palm = chosen.frame == "palm"
        tracked = TrackedHand(self._follower, self._aims, recording, self._rate, on_palm=on_palm)
        tracked.q[HAND_Q] = self._q
        if not self._began:
            tracked.aim(places)
            start = self._q if aims.own is None else aims.own.q
            tracked.q[HAND_Q] = self._follower.first(tracked.table[None], tracked.weights[None], start)
            self._keep_apart(tracked, first=True)
            tracked.q[HAND_Q] = self._follower.closed(tracked.q[HAND_Q][None])[0]
            self._began = True
        tracked.q[FREE_Q] = self._q = tracked.q[HAND_Q]
        return tracked

    def _keep_apart(self, tracked: TrackedHand, *, first: bool = False) -> bool:
        """Keep surfaces apart in the current pose; return whether the pose changed."""
        q = tracked.q[HAND_Q]
        if self._apart is None or not self._apart.overlaps(q[None])[0]:
            return False
        q[:] = self._apart.solve(tracked.table, tracked.weights, q if first else tracked.q[BEFORE_Q], first=first)
        return True

    def _judged(self, tracked: TrackedHand, became: int) -> Tick:
        """Return the tick of a frame, given its kernel result (see ``layout.NO_PALM``), with surfaces and loops."""
        if became == NO_PALM:
            return self._tick(Status.HOLDING)
        changed = self._keep_apart(tracked)
        if changed:
            tracked.part()
        if self._follower.has_ties:
            changed, q = True, tracked.q
            q[HAND_Q] = self._follower.closed(q[HAND_Q][None], q[BEFORE_Q])[0]
            if tracked.is_free:
                q[FREE_Q] = q[HAND_Q]
        if changed:
            became = tracked.judge()
        if became == OPEN_PINCH and self._apart is not None and self._pads_touch(tracked):
            became = FOLLOWS
        missed = ~tracked.seen
        if became in (OFF_TARGET, OPEN_PINCH):
            off, most = (
                (tracked.errors, OFF[1] * self._aims.reach) if became == OFF_TARGET else (tracked.gaps, self._touch)
            )
            missed = (off > most) & (tracked.seen if became == OFF_TARGET else tracked.closed)
        pinching = self._named(tracked.closed)
        frame = HandFrame(self.fingers, tracked.errors, tracked.seen, missed, pinching, self._side or "right")
        return self._tick(_STATUS[became], frame)

    def _pads_touch(self, tracked: TrackedHand) -> bool:
        """Return whether the pad of each pinching finger touches the thumb's pad."""
        q, gaps = tracked.q[HAND_Q][None], tracked.gaps
        pinching = np.flatnonzero(tracked.closed).tolist()
        return all(self._pads.gaps(q, k, gaps[k : k + 1])[0] <= self._touch for k in pinching)

    def _named(self, which: Bools) -> tuple[str, ...]:
        """Return the names of the fingers in a mask."""
        return tuple(name for name, one in zip(self.fingers, which, strict=True) if one) if which.any() else ()

    def _tick(self, status: Status, frame: HandFrame | None = None) -> Tick:
        """Return the tick of a frame; without one, the hand holds its pose."""
        self._ticks += 1
        q = self._q.copy()
        self._trail = (*self._trail[1:], q) if self._began else (q, q, q)
        self._began = True
        none = np.zeros(len(self.fingers), bool)
        details = HandDetails(
            self.skeleton,
            self._trail,
            self._rate,
            {} if self._tracked is None and self._ahead is None else self._follower.moves,
            self._ticks / self._rate,
            status,
            np.zeros(0) if frame is None else frame.errors,
            (self.fingers, none, none) if frame is None else (frame.fingers, frame.seen, frame.missed),
            () if frame is None else frame.pinching,
            None if frame is None else (self._points, frame.side),
        )
        return Tick(self.skeleton, q, details)
