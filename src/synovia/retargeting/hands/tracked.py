"""Let a hand follow tracked points, frame by frame."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.clips.hands.palms import completed_palm
from synovia.ik.pursuit import PackedHand
from synovia.ik.targets import transforms
from synovia.kernels import layout
from synovia.model.anatomy.hands.landmarks import COUNT, FINGER_POINTS, KNUCKLES, WRIST
from synovia.model.geometry import Array, rigid
from synovia.retargeting.hands.aims import Aims
from synovia.retargeting.hands.follower import UNSEEN, HandFollower
from synovia.retargeting.hands.judge import OFF, TOUCH
from synovia.retargeting.hands.recording import AWAY, CLEAR, CLOSED, ONSET, OPEN, Recording

_PALM: Final = [WRIST, *KNUCKLES]
_BEGIN: Final = 0.03  # metres between the recorded tips: below this, a pinch begins to close


class TrackedHand:
    """A hand that follows tracked points.

    Args:
        follower: The compiled problem of the hand.
        aims: Aims of its fingers, from a first frame.
        recording: The first frame.
        rate: Frames per second.
        on_palm: Whether the palm of the points is laid on the hand's palm in each frame; if not, points keep their own
            axes.

    Attributes:
        q: The pose without pinches, the pose of the hand, and the hand's pose in the previous frame, (3, nq).
        follower: The argument of this name.
        table: Targets of the last frame, (goals, 17); ``weights`` has their weights, (goals,).
    """

    def __init__(self, follower: HandFollower, aims: Aims, recording: Recording, rate: float, *, on_palm: bool) -> None:
        """Compile the problem of the hand and load its kernels."""
        self.follower, self._gripper, self._own = follower, aims.gripper, aims.own
        self._ends = [FINGER_POINTS[one.name][-1] for one in aims.fingers]
        none = np.zeros((1, len(self._ends), 3))
        table, weights = follower.table(none, none, none[..., 0])
        self._hand = hand = PackedHand(follower.pursuit, len(self._ends))
        self._numbers, self._fingers = hand.numbers, hand.fingers
        self.table, self.weights, self.q = hand.targets, hand.weights, hand.q
        self._numbers[:] = _numbers(follower, aims, recording, rate, on_palm=on_palm)
        self._fingers[:, layout.FINGER_POINT], self._fingers[:, layout.FINGER_NARROW] = self._ends, aims.narrow
        self.table[:], self.weights[:], hand.settings[:] = table[0], weights[0], follower.settings
        hand.landmarks[:] = np.nan
        known = recording.trust[0, _PALM] > 0.0
        self._last, self._has_palm = recording.places[0].copy(), False  # points of the last frame that showed a palm
        self._last[np.array(_PALM)[~known]] = self._last[_PALM][1:][known[1:]].mean(0)

    def _take(self, points: Array, confidence: Array) -> None:
        """Store a frame of points (21, 3), with their confidence.

        Landmarks of the hand itself are laid on the hand here. A gripper opens with the distances of the tips; while a
        tip is not seen, the gripper's targets do not change.
        """
        hand = self._hand
        if self._own is None:
            if self._has_palm:
                self._last[:] = hand.landmarks
            hand.landmarks[:], hand.confidence[:] = points, confidence
        else:
            whole = np.array(points)
            known = self._completed(whole, confidence)
            laid, _ = self._own.laid(whole)
            known = known and bool(np.isfinite(laid).any())
            hand.landmarks[:] = laid
            hand.confidence[:] = confidence
            hand.landmarks[_PALM], hand.confidence[_PALM] = self._own.wrist if known else np.nan, 1.0
            if known:
                self._last[:] = whole
        if self._gripper is None:
            return
        ends = points[self._ends]
        if np.isfinite(ends).all() and (confidence[self._ends] > 0.0).all():
            apart = np.linalg.norm(ends - ends[0], axis=1)
            tips = self._gripper.at(self._numbers[layout.HAND_SCALE] * apart[None])[0]
            transforms(self.table)[: len(tips), :3, 3] = tips

    def aim(self, points: Array) -> None:
        """Set the targets for a frame of points (21, 3), without pinches."""
        self._take(points, np.ones(COUNT))
        self._hand.aim()

    def step(self, points: Array, confidence: Array) -> int:
        """Follow a frame of points (21, 3); return the kernel's result, see ``layout.NO_PALM``.

        Args:
            points: The points; NaN where one is not seen.
            confidence: (21,), above 0 where one is seen.
        """
        self._take(points, confidence)
        became = self._hand.step()
        hand = self._hand
        if became == layout.NO_PALM and self._own is None and self._completed(hand.landmarks, hand.confidence):
            hand.confidence[_PALM] = 1.0
            became = hand.step()
        self._has_palm = became != layout.NO_PALM
        return became

    def _completed(self, points: Array, confidence: Array) -> bool:
        """Replace hidden knuckles in points (21, 3) by those of the last frame; return whether all are known then."""
        palm = points[_PALM]
        palm[~(np.isfinite(palm).all(1) & (confidence[_PALM] > 0.0))] = np.nan
        if np.isnan(palm[0]).any():  # knuckles alone are nearly in line
            return False
        points[_PALM] = palm = completed_palm(self._last[_PALM], palm)
        return bool(np.isfinite(palm).all())

    def begin(self, free: Array, pinching: Array | None = None) -> None:
        """Set the pose without pinches, (nq,), and the pose of a hand that pinches; None for a hand without pinches."""
        self.q[:], self._numbers[layout.HAND_IS_FREE] = free, float(pinching is None)
        if pinching is not None:
            self.q[layout.HAND_Q] = pinching

    def follow(self, table: Array, weights: Array, shares: Array, apart: Array) -> Array:
        """Return poses (T, nq) that follow a clip's targets from ``q`` on; add pinches to ``table`` and ``weights``.

        Args:
            table: Targets, (T, goals, 17).
            weights: Weights, (T, goals).
            shares: How far each pinch is closed, (T, F).
            apart: Distances of the recorded tips from the tip of the thumb, (T, F), metres.
        """
        goals, count = weights.shape[1], shares.shape[1]
        states = np.concatenate([weights, shares, apart, np.zeros((len(table), self.q.shape[1]))], axis=1)
        self._hand.follow(table, states)
        weights[:] = states[:, :goals]
        return np.ascontiguousarray(states[:, goals + 2 * count :])

    def judge(self) -> int:
        """Judge the pose again after it was changed; return the result of the frame."""
        return self._hand.judge()

    @property
    def is_free(self) -> bool:
        """Whether neither a pinch nor a clearance changes the pose."""
        return bool(self._numbers[layout.HAND_IS_FREE])

    def part(self) -> None:
        """Mark the pose of the hand as different from the pose without pinches."""
        self._numbers[layout.HAND_IS_FREE] = 0.0

    @property
    def errors(self) -> Array:
        """Distance of each tip from its target, (F,); 0 for fingers that are not seen."""
        return self._fingers[:, layout.FINGER_ERROR].copy()

    @property
    def gaps(self) -> Array:
        """Distance of each tip from the thumb's tip, (F,), minus that of the closed gripper for grippers."""
        return self._fingers[:, layout.FINGER_GAP]

    @property
    def closed(self) -> NDArray[np.bool_]:
        """Mask of the fingers that pinch, (F,)."""
        return self._fingers[:, layout.FINGER_CLOSED] > 0.0

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Mask of the fingers that are seen, (F,)."""
        return self._fingers[:, layout.FINGER_SEEN] > 0.0


def _numbers(follower: HandFollower, aims: Aims, recording: Recording, rate: float, *, on_palm: bool) -> Array:
    """Return the numbers that lay points on the hand, (HAND_WIDTH,), see ``kernels.layout``."""
    metre, out = 1.0 / (follower.skeleton.meters_per_unit or 1.0), np.zeros(layout.HAND_WIDTH)
    place, scale = aims.place, aims.scale
    if aims.own is not None:  # landmarks of the hand itself are laid on it at rest, relative to its wrist
        moved = place @ np.linalg.inv(aims.own.axes)
        place, scale, on_palm = moved @ rigid(aims.own.wrist), 1.0, False
    out[layout.HAND_PLACE : layout.HAND_PLACE + 9] = place[:3, :3].ravel()
    out[layout.HAND_PLACE + 9 : layout.HAND_PLACE + 12] = place[:3, 3]
    out[layout.HAND_SCALE], out[layout.HAND_ON_PALM] = scale, float(on_palm)
    out[layout.HAND_SIDE] = 1.0 if recording.side == "right" else -1.0
    out[layout.HAND_MIRROR] = -1.0 if aims.mirrored else 1.0
    out[layout.HAND_METRE] = aims.metre * aims.scale / scale
    out[layout.HAND_BEGIN], out[layout.HAND_CLOSED], out[layout.HAND_OPEN] = _BEGIN, CLOSED, OPEN
    out[layout.HAND_AWAY], out[layout.HAND_CLEAR] = AWAY, CLEAR * metre
    out[layout.HAND_OPENING] = 1.0 / max(1.0, ONSET * rate)
    out[layout.HAND_PINCH] = follower.pinch_weight
    out[layout.HAND_GRIPS] = float(aims.gripper is not None)
    out[layout.HAND_TOUCH], out[layout.HAND_OFF] = TOUCH * metre, OFF[1] * aims.reach
    out[layout.HAND_IS_FREE], out[layout.HAND_UNSEEN] = 1.0, UNSEEN
    return out
