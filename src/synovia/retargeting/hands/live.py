"""``LiveHand``: a hand that follows a tracked hand frame by frame."""

from __future__ import annotations

import math
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import ChecksArguments, check_kind
from synovia.errors import InputError
from synovia.ik.status import Status
from synovia.model import Pose, Skeleton
from synovia.model.anatomy.hands.find import hand_of
from synovia.model.anatomy.hands.landmarks import COUNT, FINGER_POINTS, KNUCKLES, WRIST, palm_frame, palm_of
from synovia.model.geometry import Array, as_numbers, is_number
from synovia.retargeting.hands.aims import Aims, aims_of
from synovia.retargeting.hands.apart import Apart, Pads, checked_clearance
from synovia.retargeting.hands.follower import STEPS, HandFollower
from synovia.retargeting.hands.judge import FINGER_OFF, TOUCH
from synovia.retargeting.hands.pinches import AWAY, CLEAR, CLOSED, ONSET, OPEN
from synovia.retargeting.hands.recording import Recording, read_recording

Bools = NDArray[np.bool_]
_BEGIN: Final = 0.03  # metres between the recorded tips from which a pinch begins to close
_NEEDED: Final = (WRIST, *KNUCKLES)
_SAME: Final = 1e-3  # radians, length units: poses this near go on as one


class HandPose(Pose):
    """A pose of a live hand.

    Attributes:
        status: ``REACHED``; ``LATE`` if ``velocity`` holds a joint back; ``STALLED`` if a pinch does not close, or a
            tip is more than 15 % of the length of the hand from its target; ``HOLDING`` without a palm.
        pinching: Names of the fingers whose recorded tip touches that of the thumb.
        unseen: Names of the fingers that hold because their points were not seen.
        errors: Distance of each tip from its target, (F,), length units; 0 for fingers that are not seen. Empty while
            the hand holds.

    Example:
        >>> import synovia as sy
        >>> hands = sy.bundled("humanoid_hands")
        >>> live = sy.LiveHand(hands, rate=30, side="right")
        >>> live.step(sy.hand_landmarks(hands.rest_pose(), "right")).status.name
        'REACHED'
    """

    __slots__ = ("errors", "pinching", "status", "unseen")

    status: Status
    pinching: tuple[str, ...]
    unseen: tuple[str, ...]
    errors: Array


class LiveHand(ChecksArguments):
    """A hand that follows a tracked hand of 21 points frame by frame, as ``retarget_hand`` does a recording.

    The fingers, the side of the tracked hand and the scale are those of the first frame whose points are all seen;
    until then, and without points, the hand holds. Nothing is known of later frames: a pinch begins to close where the
    tracked tips are 30 mm apart, and opens within 0.15 s.

    The first pose is where the tracked hand is; after ``reset(pose)``, the hand goes there from that pose. From then on
    no joint moves faster than ``velocity``, also when points return. A frame without a palm (wrist and knuckles that
    are not seen, or in line) counts as none.

    Args:
        skeleton: The skeleton of the hand, or a body with one.
        rate: Frames per second.
        side: As in ``retarget_hand``.
        source_side: As in ``retarget_hand``; give it if the first frame may be one of straight fingers.
        scale: As in ``retarget_hand``.
        frame: As in ``retarget_hand``.
        origin: As in ``retarget_hand``.
        velocity: As in ``retarget_hand``.
        clearance: As in ``retarget_hand``. A frame in which surfaces would overlap takes some milliseconds.

    Attributes:
        skeleton: The skeleton.
        hand: The hand that follows.

    Raises:
        InputError: If a value cannot be used.
        UnsupportedError: If no hand is found, or several and ``side`` does not choose, or a loop cannot be kept
            closed.

    Example:
        >>> import synovia as sy
        >>> hands = sy.bundled("humanoid_hands")
        >>> live = sy.LiveHand(hands, rate=30, side="left")
        >>> pose = live.step(sy.hand_landmarks(hands.rest_pose(), "right"))
        >>> pose.status.name, pose.pinching
        ('REACHED', ())
    """

    def __init__(
        self,
        skeleton: Skeleton,
        *,
        rate: float,
        side: str | None = None,
        source_side: str | None = None,
        scale: float | None = None,
        frame: Literal["palm", "given"] = "palm",
        origin: str | int | None = None,
        velocity: Any = None,
        clearance: float | None = None,
    ) -> None:
        """Find the hand."""
        check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
        if not is_number(rate) or not 0.0 < rate < math.inf:
            raise InputError("rate", value=rate, expected="frames per second above 0")
        self.skeleton, self.hand = skeleton, hand_of(skeleton, side)
        self._rate, self._source_side = float(rate), source_side
        self._how: dict[str, Any] = {"scale": scale, "frame": frame, "origin": origin}
        self._velocity, self._distance = velocity, checked_clearance(clearance, skeleton)
        self._clear = CLEAR / (skeleton.meters_per_unit or 1.0)
        self._touch = TOUCH / (skeleton.meters_per_unit or 1.0)
        self._follower: HandFollower | None = None
        self.reset()

    def reset(self, pose: Pose | None = None) -> None:
        """Begin anew, from a pose or the rest pose; what was learned of the tracked hand is forgotten.

        Raises:
            InputError: If it is a pose of another skeleton.
        """
        if pose is not None and pose.skeleton is not self.skeleton:
            raise InputError("pose", value=pose.skeleton.name, expected=f"a pose of {self.skeleton.name}")
        self._q = np.array(self.skeleton.rest_pose().q if pose is None else pose.q)
        self._began = pose is not None
        self._follower = None

    @property
    def fingers(self) -> tuple[str, ...]:
        """Names of the fingers that follow, thumb first; none before the first frame."""
        return tuple(one.name for one in self._aims.fingers) if self._follower is not None else ()

    @property
    def scale(self) -> float | None:
        """Length of the hand for a unit of the points; None before the first frame."""
        return self._aims.scale if self._follower is not None else None

    def step(self, points: Any = None, confidence: Any = None) -> HandPose:
        """Take a frame.

        Args:
            points: (21, 3), as in ``retarget_hand``; NaN where a point is not seen. None without points.
            confidence: (21,), 0 for not seen; None if all points count alike.

        Raises:
            InputError: If a shape is wrong.
        """
        if points is None:
            return self._pose(Status.HOLDING)
        places = as_numbers(points, (COUNT, 3), "points", finite=False)
        seen: Bools = np.isfinite(places).all(axis=1)  # pyright: ignore[reportAssignmentType]  # one for each point
        trust = np.ones(COUNT)
        if confidence is not None:
            trust = as_numbers(confidence, (COUNT,), "confidence", finite=False)
            seen &= trust > 0.0
        if self._follower is None:
            if not seen.all() or not np.isfinite(palm_of(places[None], self._source_side)).all():
                return self._pose(Status.HOLDING)
            self._learn(places)
        if not seen[list(_NEEDED)].all():
            return self._pose(Status.HOLDING)
        local = self._local(places)
        if not np.isfinite(local[list(_NEEDED)]).all():
            return self._pose(Status.HOLDING)
        return self._follow(local, seen)

    def _learn(self, places: Array) -> None:
        """Take the fingers, the side and the scale from a first frame."""
        self._recording: Recording = read_recording(places[None], None, self._source_side, self._rate)
        self._aims: Aims = aims_of(self._recording, self.skeleton, self.hand, **self._how)
        fingers = self._aims.fingers
        self._follower = HandFollower(self.skeleton, fingers, self._rate, self._velocity, self._aims.wrist, 2 * STEPS)
        self._apart = None if self._distance is None else Apart(self._follower, self.hand, self._distance)
        self._pads = Pads(self.skeleton, fingers)
        self._ends = np.array([FINGER_POINTS[one.name][-1] for one in fingers])
        self._before = np.array([FINGER_POINTS[one.name][-2] for one in fingers])
        self._closed = np.zeros(len(fingers), bool)
        self._shares = np.zeros(len(fingers))
        self._table, self._weights = self._follower.table(
            np.zeros((1, len(fingers), 3)), np.zeros((1, len(fingers), 3)), np.ones((1, len(fingers)))
        )
        if not self._began:
            self._aim(self._local(places), np.ones(COUNT, bool))
            self._q = self._follower.first(self._table, self._weights, self._q)
            self._keep_apart(self._q, first=True)
            self._q = self._follower.closed(self._q[None])[0]
            self._began = True
        self._free = self._q

    def _local(self, places: Array) -> Array:
        """Return points (21, 3) in the frame that lies on the hand."""
        if self._how["frame"] == "given":
            return places - places[WRIST]
        palm = palm_frame(places, self._recording.side)
        local = (places - palm[:3, 3]) @ palm[:3, :3]
        return local * (-1.0, 1.0, 1.0) if self._aims.mirrored else local

    def _aim(self, local: Array, seen: Bools) -> None:
        """Write the targets of a frame; a finger that is not seen has none, so that it holds."""
        aims = self._aims
        follower = cast("HandFollower", self._follower)
        R, p = aims.place[:3, :3], aims.place[:3, 3]
        tips = p + aims.scale * (local[self._ends] @ R.T)
        if aims.gripper is not None:
            apart = np.linalg.norm(local[self._ends] - local[self._ends[0]], axis=1)
            tips = aims.gripper.at(aims.scale * np.nan_to_num(apart)[None])[0]
        ways = (local[self._ends] - local[self._before]) @ R.T
        trust = seen[self._ends] & seen[self._before]
        tips[~trust], ways[~trust] = 0.0, (0.0, 0.0, 1.0)
        follower.aim(self._table, tips[None], ways[None])
        self._targets, self._trust = tips, trust
        follower.trust(self._weights, np.asarray(trust[None], np.float64), ways=aims.gripper is None)
        follower.no_pinch(self._weights)

    def _follow(self, local: Array, seen: Bools) -> HandPose:
        """Take a frame towards points (21, 3) in the frame that lies on the hand."""
        follower = cast("HandFollower", self._follower)
        self._aim(local, seen)
        ends = local[self._ends]
        ways = ends - ends[0]
        apart = np.sqrt(np.einsum("ij,ij->i", ways, ways)) / self._recording.metre
        apart[~self._trust] = np.inf
        apart[0] = np.inf
        if not self._trust[0]:
            apart[:] = np.inf
        if self._shares.any() or (apart < _BEGIN).any():
            self._close(apart)
        together = self._free is self._q
        self._free = follower.follow(self._table, self._weights, self._free)[0]
        tips, thumb = follower.tips_at(self._free[None])
        free = (tips[0] - tips[0, 0]) @ thumb[0]
        far = np.maximum(np.sqrt(np.einsum("ij,ij->i", free, free)), 1e-12)
        away = (apart > AWAY) & np.isfinite(apart)
        if together and not self._shares.any() and not (away & (far < self._clear))[1:].any():
            before, self._q = self._q, self._free
            return self._judged(before, tips[0] if not self._keep_apart(before) else None)
        shares = np.where(away, np.minimum(self._shares, np.maximum(1.0 - self._clear / far, 0.0)), self._shares)
        pushed = away & (far < self._clear)
        vectors = np.where(pushed[:, None], self._clear / far[:, None], 1.0 - shares[:, None]) * free
        on = (shares > 0.0) | pushed
        on[0] = False
        before = self._q
        follower.pinch(self._table, self._weights, vectors[None], on[None])
        self._q = follower.follow(self._table, self._weights, self._q)[0]
        if not self._keep_apart(before) and not on.any() and np.abs(self._q - self._free).max() <= _SAME:
            self._free = self._q
        return self._judged(before)

    def _keep_apart(self, before: Array, *, first: bool = False) -> bool:
        """Keep surfaces apart in the pose of this frame, after another one (nq,); return whether this changes it."""
        if self._apart is None or not self._apart.overlaps(self._q[None])[0]:
            return False
        self._q = self._apart.solve(self._table[0], self._weights[0], before, first=first)
        return True

    def _close(self, apart: Array) -> None:
        """Take up how far each pinch is closed, for distances (F,) of the tracked tips from the thumb's, metres."""
        self._closed = np.where(self._closed, apart < OPEN, apart < CLOSED)
        u = np.clip((_BEGIN - apart) / (_BEGIN - CLOSED), 0.0, 1.0)
        wanted = np.where(self._closed, 1.0, u * u * (3.0 - 2.0 * u))
        self._shares = np.maximum(wanted, self._shares - 1.0 / max(1.0, ONSET * self._rate))

    def _judged(self, before: Array, known: Array | None = None) -> HandPose:
        """Return the pose of this frame, after another one (nq,), with its tips (F, 3), if known, judged."""
        follower, names = cast("HandFollower", self._follower), self.fingers
        if follower.has_ties:
            together, known = self._free is self._q, None
            self._q = follower.closed(self._q[None], before)[0]
            self._free = self._q if together else self._free
        tips = follower.tips_at(self._q[None])[0][0] if known is None else known
        off = tips - self._targets
        errors = np.sqrt(np.einsum("ij,ij->i", off, off))
        errors[~self._trust] = 0.0
        pinches, status = bool(self._closed.any()), Status.REACHED
        if follower.is_held_back(before, self._q):
            status = Status.LATE
        elif pinches:  # these fingers leave their targets
            gaps = np.maximum(np.linalg.norm(tips - tips[0], axis=-1) - self._aims.narrow, 0.0)
            if self._apart is not None:
                for k in np.flatnonzero(self._closed).tolist():
                    gaps[k] = self._pads.gaps(self._q[None], k, gaps[k : k + 1])[0]
            status = Status.STALLED if float(gaps[self._closed].max()) > self._touch else status
        elif float(errors.max()) > FINGER_OFF * self._aims.reach:
            status = Status.STALLED
        pose = self._pose(status)
        pose.errors = errors
        if pinches:
            pose.pinching = tuple(name for name, closed in zip(names, self._closed, strict=True) if closed)
        if not self._trust.all():
            pose.unseen = tuple(name for name, trusted in zip(names, self._trust, strict=True) if not trusted)
        return pose

    def _pose(self, status: Status) -> HandPose:
        """Return the pose of this frame."""
        pose = cast("HandPose", HandPose.trusted(self.skeleton, self._q.copy()))
        pose.status, pose.pinching, pose.unseen, pose.errors = status, (), (), np.zeros(0)
        return pose
