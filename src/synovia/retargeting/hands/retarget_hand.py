"""``retarget_hand``: retarget a recorded hand of 21 points to any hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import check_kind, completed, takes
from synovia.errors import InputError
from synovia.ik.solution import length_text
from synovia.model import Skeleton
from synovia.model.anatomy.feet import runs
from synovia.model.anatomy.hands.find import hand_of
from synovia.model.anatomy.hands.hand import Hand
from synovia.model.finding import Finding, verdict_of
from synovia.model.geometry import Array, is_number
from synovia.model.motion import Motion
from synovia.model.shapes.over_time import TooNear
from synovia.retargeting.hands.aims import Aims, aims_of
from synovia.retargeting.hands.apart import Apart, Pads, checked_clearance, overlaps_of
from synovia.retargeting.hands.closing import Clip, close_open
from synovia.retargeting.hands.follower import UNSEEN, HandFollower
from synovia.retargeting.hands.judge import TOUCH, HandFigures, findings_of
from synovia.retargeting.hands.recording import closed_frames, closing_shares, read_recording, with_points
from synovia.retargeting.hands.tracked import TrackedHand
from synovia.retargeting.judging import aligned
from synovia.retargeting.options import HandOptions
from synovia.text import Report, counted, plain

_STARTS: Final = 6  # number of start poses tried for a first frame that pinches
_CLOSED: Final = 1e-5  # fraction of the length scale: tips with a smaller gap touch
_ASIDE: Final = 1.4  # hand lengths between the hand and the points that are shown next to it


@dataclass(frozen=True, slots=True)
class HandPinch:
    """A pinch of a recorded hand.

    Attributes:
        finger: The finger that touches the thumb.
        first: First frame of the pinch.
        end: The frame after its last frame.
        distance: Largest distance of the two tips of the target hand, length units. With ``clearance``, the distance of
            the surfaces of their links. For a gripper, the tips' distance minus that of the closed gripper.
        closable: Whether a pose that closes the pinch is known; None if it stays open and no other pose was tried (with
            ``clearance``, for a gripper, or for a hand with loops).

    Example:
        >>> import synovia as sy
        >>> sy.hands.HandPinch("index", 20, 40, 1e-8).finger
        'index'
    """

    finger: str
    first: int
    end: int
    distance: float
    closable: bool | None = True


@dataclass(frozen=True, eq=False)
class RetargetedHand:
    """A recorded hand that was retargeted to another hand, with a report.

    Attributes:
        motion: The motion of the whole skeleton; joints other than those of the hand stay in its rest pose.
        hand: The target hand.
        fingers: Names of the target's fingers, thumb first.
        scale: Length on the target hand per unit of the points.
        source_side: The side of the recorded hand.
        mirrored: Whether the recorded hand is of the other side than the target.
        targets: Target positions of the tips in the world, (T, F, 3), length units.
        tips: Positions of the tips in the world, (T, F, 3).
        pinches: Pinches of the recording, in temporal order.
        reach: Mean distance of the straight fingers' tips from the origin; errors are judged relative to it.
        notes: Sentences about values that were filled in, guessed or left out.
        landmarks: The recorded points, scaled and placed in the world where the hand is, (T, 21, 3).
        clearance: Distance that the surfaces of fingers keep, length units; None without a clearance.
        others: Frames in which the recorded fingers clearly bend as on a hand of the other side.

    Example:
        >>> import numpy as np
        >>> import synovia as sy
        >>> hand = sy.bundled("humanoid_hands")
        >>> points = sy.hands.hand_landmarks(hand.rest_pose(), "left")
        >>> answer = sy.retarget_hand(np.repeat(points[None], 10, axis=0), hand, fps=30, side="left")
        >>> len(answer.motion), answer.fingers
        (10, ('thumb', 'index', 'middle', 'ring', 'little'))
    """

    motion: Motion
    hand: Hand
    fingers: tuple[str, ...]
    scale: float
    source_side: str
    mirrored: bool
    targets: Array
    tips: Array
    pinches: tuple[HandPinch, ...]
    reach: float
    notes: tuple[str, ...]
    apart: Array
    trust: Array
    landmarks: Array
    clearance: float | None = None
    others: tuple[int, ...] = ()

    def with_points(self) -> Motion:
        """Return the motion with the 21 recorded points next to the hand, for films and pages.

        The points become joints of the skeleton, with the size and orientation of the hand.

        Example:
            >>> import numpy as np
            >>> import synovia as sy
            >>> hand = sy.bundled("humanoid_hands")
            >>> points = sy.hands.hand_landmarks(hand.rest_pose(), "left")
            >>> answer = sy.retarget_hand(np.repeat(points[None], 10, axis=0), hand, fps=30, side="left")
            >>> len(answer.with_points().skeleton) - len(hand)
            21
        """
        frame = self.motion.skeleton.rest_pose().transform(self.hand.palm) @ self.hand.frame
        return with_points(self.motion, self.landmarks + _ASIDE * self.reach * frame[:3, 0])

    @cached_property
    def too_near(self) -> tuple[TooNear, ...]:
        """Pairs of links that are nearer than ``clearance`` (or overlap, without a clearance), the nearest first.

        The tuple is empty for a skeleton without shapes.
        """
        skeleton = self.motion.skeleton
        if not any(joint.shapes for joint in skeleton.joints):
            return ()
        return tuple(overlaps_of(skeleton, self.hand, np.array(self.motion.q), self.clearance or 0.0))

    @cached_property
    def errors(self) -> Array:
        """Distances of the tips from their targets, (T, F), length units."""
        return np.linalg.norm(self.tips - self.targets, axis=-1)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Defects and notable facts, the worst first.

        Possible causes are ``"tips"``, ``"pinch"``, ``"false pinch"``, ``"side"``, ``"gap"``, ``"limits"``,
        ``"velocity"`` and, with a clearance, ``"overlap"``.
        """
        near = self.too_near if self.clearance is not None else ()
        figures = HandFigures(
            self.motion, self.hand, self.fingers, self.errors, self.trust, self.reach, self._gaps, self.apart,
            [(one.finger, one.first, one.end, one.distance, one.closable) for one in self.pinches],
            (self.source_side, self.others),
            [(one.pair, one.distance - (self.clearance or 0.0), one.frames) for one in near],
        )  # fmt: skip
        return findings_of(figures)

    @cached_property
    def _gaps(self) -> Array:
        """Distances of the tips from the thumb's tip, (T, F), length units."""
        return np.linalg.norm(self.tips - self.tips[:, :1], axis=-1)

    @property
    def verdict(self) -> str:
        """``"good"``, ``"look"`` (look at the motion before you use it) or ``"failed"``."""
        return verdict_of(self.findings)

    def __repr__(self) -> str:
        """Return the motion, the number of fingers, and the verdict."""
        return f"RetargetedHand({self.motion!r}, {counted(len(self.fingers), 'finger')}, {self.verdict})"

    def report(self) -> Report:
        """Return the fingers with their errors, pinches, notes and findings; lengths in the unit of the file."""
        unit = self.motion.skeleton.meters_per_unit
        rows = [("finger", "joints", "mean error", "95 %", "largest")]
        for k, name in enumerate(self.fingers):
            finger = self.hand.finger(name)
            joints = str(len(finger.joints)) if finger is not None else ""
            e = self.errors[:, k]
            mean, most, worst = (length_text(float(v), unit) for v in (e.mean(), np.quantile(e, 0.95), e.max()))
            rows.append((name, joints, mean, most, worst))
        side = f" {self.hand.side}" if self.hand.side else ""
        mirrored = ", mirrored" if self.mirrored else ""
        lines = aligned(rows)
        lines.append(
            f"a recorded {self.source_side} hand on the{side} hand at {self.hand.palm!r}{mirrored}: scale"
            f" {self.scale:.4g}, {counted(len(self.motion), 'frame')} at {self.motion.fps:g} fps"
        )
        for name in self.fingers[1:]:
            mine = [one for one in self.pinches if one.finger == name]
            if mine:
                far = length_text(max(one.distance for one in mine), unit)
                long = counted(sum(one.end - one.first for one in mine), "frame")
                lines.append(f"pinches of thumb and {name}: {len(mine)}, {long}, tips at most {far} apart")
        lines += [f"note: {note}" for note in self.notes]
        lines += [str(one) for one in self.findings]
        lines.append(f"verdict: {self.verdict}")
        return Report(lines, {
            "target": self.motion.skeleton.name, "side": self.hand.side, "source_side": self.source_side,
            "mirrored": self.mirrored, "frames": len(self.motion), "fps": self.motion.fps, "scale": self.scale,
            "fingers": [
                {"finger": name, "mean": float(self.errors[:, k].mean()), "worst": float(self.errors[:, k].max())}
                for k, name in enumerate(self.fingers)
            ],
            "pinches": [plain(one, "finger", "first", "end", "distance") for one in self.pinches],
            "clearance": self.clearance, "too_near": [] if self.clearance is None else plain(self.too_near),
            "verdict": self.verdict, "findings": plain(self.findings), "notes": list(self.notes),
        })  # fmt: skip


@takes(HandOptions)
def retarget_hand(
    points: Any,
    skeleton: Skeleton,
    *,
    fps: float,
    confidence: Any = None,
    name: str = "hand",
    **options: Unpack[HandOptions],
) -> RetargetedHand:
    """Retarget a recorded hand of 21 points to any hand, within its limits.

    Finger tips follow the recorded tips relative to the palm, scaled by the size of the hands. The last segments point
    as in the recording, as far as this costs the tips little. If limits and lengths do not permit this, the sum of
    squared distances is minimized. While the recorded tips of thumb and finger are within 20 mm of each other, the tips
    of the hand touch; this has the highest priority. A pinch closes and opens within 0.15 s; it ends when the recorded
    tips are 25 mm apart. While the recorded tips are more than 40 mm apart, tips of the hand that would nearly touch
    keep a distance of 12 mm. A gripper, with two fingers or with three around a middle, follows the distance of the
    recorded fingers from the thumb: it is open at 100 mm on an adult's hand (``scale`` changes this). Motion of joints
    that is left free stays near the previous frame and the rest pose. Joint limits and couplings hold exactly. Loops,
    such as four-bars in fingers, stay closed; a frame then takes a millisecond or two.

    Args:
        points: The points in the order of MediaPipe and MANO, (T, 21, 3): wrist, then four of each finger from the
            thumb to the little finger, base to tip. Any frame and scale; NaN where a point was not seen. If the hand
            has no plausible size in metres, its palm counts as 90 mm.
        skeleton: The skeleton of the hand, or a body with one.
        fps: Frames per second.
        side: The target hand, ``"left"`` or ``"right"``; required for a body with two hands.
        source_side: The side of the recorded hand; None to find it.
        scale: Length on the target hand per unit of the points; None to compute it from the lengths of the fingers.
        frame: ``"palm"`` aligns the palms in each frame, and mirrors a hand of the other side. ``"given"`` uses the
            points relative to the wrist, in the axes of the base of the hand, about ``origin``; the wrist of a hand
            without an arm then also moves.
        origin: With ``"given"``, the joint or link at the position of the recorded wrist; None for the palm.
        confidence: Confidence of the points, (T, 21), (T,) or (21,), 0 for not seen; None for equal weights.
        velocity: Highest velocity of the joints, radians per second (slides: length units per second), as in
            ``Motion.slowed``. None for 15 rad/s, also used for joints without a value; a slide then has no limit.
        clearance: Least distance between the surfaces of fingers, and between fingers and palm, length units; 0 lets
            them touch. It has priority over pinches, whose pads then meet. The skeleton needs shapes. None to let
            fingers pass through each other, so that a pinch brings the tips together.
        name: Name of the motion.

    Raises:
        InputError: If a value cannot be used.
        UnsupportedError: If no hand is found, or several and ``side`` does not choose, or a loop cannot be kept
            closed.
        UnknownNameError: If a joint does not exist.

    References:
        Handa et al. (2020), *DexPilot*; Qin et al. (2023), *AnyTeleop*, for vectors from palm to tip. Both hold pinches
        by weights, so that tips stay apart.

    Example:
        >>> import numpy as np
        >>> import synovia as sy
        >>> hands = sy.bundled("humanoid_hands")
        >>> points = np.repeat(sy.hands.hand_landmarks(hands.rest_pose(), "right")[None], 10, axis=0)
        >>> answer = sy.retarget_hand(points, hands, fps=30, side="left")
        >>> answer.mirrored, answer.verdict
        (True, 'good')
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    if not is_number(fps) or not 0.0 < fps < math.inf:
        raise InputError("fps", value=fps, expected="frames per second above 0")
    chosen = completed(HandOptions, options, "retarget_hand")
    hand = hand_of(skeleton, chosen.side)
    recording = read_recording(points, confidence, chosen.source_side, float(fps))
    rest = skeleton.rest_pose()
    distance = checked_clearance(chosen.clearance, skeleton)
    aims = aims_of(recording, skeleton, hand, chosen.frame, chosen.origin, chosen.scale)
    follower = HandFollower(skeleton, aims.moving, float(fps), chosen.velocity)
    metre = 1.0 / (skeleton.meters_per_unit or 1.0)
    closed = closed_frames(aims.apart)
    tracked = TrackedHand(follower, aims, recording, float(fps), on_palm=chosen.frame == "palm")
    start = np.array(rest.q if aims.own is None else aims.own.q)
    q, table, weights, held = _followed(tracked, aims, closed, start, float(fps))
    if distance is not None:
        q = Apart(follower, hand, distance).cleared(table, weights, q)
    motion = Motion(skeleton, follower.closed(q), float(fps), name=name)
    tips, _ = follower.tips_at(motion.q)
    gaps = np.maximum(np.linalg.norm(tips - tips[:, :1], axis=-1) - aims.narrow, 0.0)
    if distance is not None:
        pads = Pads(skeleton, aims.fingers)
        for k in range(1, len(aims.fingers)):
            at = closed[:, k]
            gaps[at, k] = pads.gaps(q[at], k, gaps[at, k])
    tried = distance is None and aims.gripper is None and not follower.has_ties
    touch = TOUCH * metre
    pinches = [
        HandPinch(finger.name, int(first), int(end), far, far <= touch or ((k, first) in held if tried else None))
        for k, finger in enumerate(aims.fingers)
        if k > 0
        for first, end in runs(closed[:, k])
        for far in [float(gaps[first:end, k].max())]
    ]
    return RetargetedHand(
        motion, hand, tuple(finger.name for finger in aims.fingers), aims.scale, recording.side, aims.mirrored,
        aims.tips, tips, tuple(sorted(pinches, key=lambda one: one.first)), aims.reach,
        (*recording.notes, *hand.notes, *aims.notes), aims.apart, aims.trust, aims.landmarks, distance,
        recording.others,
    )  # fmt: skip


def _begun(follower: HandFollower, table: Array, weights: Array, closed: NDArray[np.bool_], start: Array) -> Array:
    """Return a first pose (nq,) for a frame that pinches: of several starts, the first that closes it, or the best."""
    skeleton = follower.skeleton
    best, least = start, math.inf
    for seed in range(_STARTS):
        begin = np.array(start)
        if seed > 0:
            drawn = skeleton.random_pose(seed).q
            for row in follower.rows:
                begin[skeleton.q_slice(row)] = drawn[skeleton.q_slice(row)]
        found = follower.first(table, weights, begin)
        tips = follower.tips_at(found[None])[0][0]
        gap = float(np.linalg.norm(tips[closed] - tips[0], axis=-1).max(initial=0.0))
        if gap < 0.5 * least:
            best, least = found, gap
        if gap <= _CLOSED * follower.ik.reach:
            break
    return best


def _followed(
    tracked: TrackedHand, aims: Aims, closed: NDArray[np.bool_], start: Array, fps: float
) -> tuple[Array, Array, Array, frozenset[tuple[int, int]]]:
    """Return the poses of all frames, (T, nq); pinches begin before recorded tips touch, and end after.

    Also return the targets (T, goals, 17) and weights (T, goals), and the second result of ``close_open``.
    """
    follower, metre = tracked.follower, 1.0 / (tracked.follower.skeleton.meters_per_unit or 1.0)
    table, weights = follower.table(aims.tips, aims.directions, aims.trust)
    follower.trust(weights, np.where(aims.trust > 0.0, aims.trust, UNSEEN), ways=aims.gripper is None)
    shares = closing_shares(closed, fps)
    first, one = follower.first(table, weights, start), (table[:1].copy(), weights[:1].copy())
    tracked.begin(first)
    tracked.follow(*one, shares[:1], aims.apart[:1])
    pinches = follower.pinching(one[1]).any()
    tracked.begin(first, _begun(follower, *one, shares[0] >= 1.0, first) if pinches else None)
    q = tracked.follow(table, weights, shares, aims.apart)
    on = follower.pinching(weights)
    if not on.any() or follower.has_ties or aims.gripper is not None:
        return q, table, weights, frozenset()
    clip = Clip(follower, table, weights, closed, on & (shares < 1.0), aims.apart, metre, fps)
    q, held = close_open(clip, q, start)
    return q, table, weights, held
