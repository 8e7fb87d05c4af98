"""``LiveRetarget``: a body that follows a moving source, one pose at a time, within its limits."""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, Unpack, cast

import numpy as np

from synovia.arguments import ChecksArguments, check_kind, completed, takes
from synovia.clips.resting import UnseenLimbs, kept_values
from synovia.errors import InputError, UnsupportedError
from synovia.facade import IK
from synovia.goals import PositionGoal
from synovia.ik import GoalError, Status
from synovia.model import Pose, Skeleton
from synovia.model.anatomy.hands.find import hands_of
from synovia.model.anatomy.up import given_up
from synovia.model.geometry import Array, as_numbers, is_finite, is_number
from synovia.model.loops.closing import refuse_loops
from synovia.model.motion import Motion
from synovia.model.pose import world_frames
from synovia.model.shapes.body import unchecked_links
from synovia.retargeting.clearance import checked_clearance
from synovia.retargeting.fingers import checked_idle
from synovia.retargeting.follower import Closer, PoseFollower, hurried
from synovia.retargeting.joint_map import draft_map
from synovia.retargeting.live.ahead import Ahead, Known, Standing
from synovia.retargeting.live.apart import LiveApart
from synovia.retargeting.live.calibration import LiveCalibration, same_body
from synovia.retargeting.live.landmarks import ALL_LIMBS, COUNT, ONE_HAND, WITH_HANDS, LandmarkBody
from synovia.retargeting.live.playout import Playout
from synovia.retargeting.live.report import Judge, report_of
from synovia.retargeting.options import LiveOptions, checked_look_ahead, checked_world
from synovia.retargeting.planter import Planter
from synovia.retargeting.rest_pose import check_rest
from synovia.retargeting.root_motion import OnFloor, RootMover, checked_root_motion, root_bone
from synovia.servo.joints import LimitedBody
from synovia.servo.limits import Axes
from synovia.servo.tick import Tick
from synovia.solver import LevenbergMarquardt
from synovia.text import Report

_TRUNK: Final = ("hips", "spine", "chest", "neck", "left_upper_arm", "right_upper_arm")
_MANY: Final = "LiveRetarget(None, target, rate=...) takes landmarks: 33, or 33 + 21 + 21 with both hands"
_NO_FEET: Final = np.zeros(0, bool)
_NO_FRAMES: Final = np.zeros((0, 12))
_NOTHING: Final = frozenset[str]()
_HINTS: Final = {  # by shape of points
    (ONE_HAND, 3): "LiveHand(skeleton, rate=...) follows 21 points of one hand; with the body, 33 + 21 + 21 are taken",
    (COUNT, 3): _MANY,
    (WITH_HANDS, 3): _MANY,
}


@dataclass(slots=True, eq=False)
class BodyDetails:
    """Details of a tick of a live body, from which ``Tick`` computes its attributes.

    Args:
        axes: Axes of the body.
        reasons: For each axis, the code of the limit that holds it back.
        places: Joint values of the body, and joint values that it follows, (nq,) each.
        velocity: Velocity, (nv,).
        acceleration: Acceleration, (nv,).
        time: Seconds since the reset.
        status: Status of the tick.
        parts: Roles of the parts that follow the source.
        behind: As in ``Tick``.
        standing: As in ``Tick``.
        missing: Roles of planted feet that miss their places.
    """

    axes: Axes
    reasons: Array
    places: tuple[Array, Array]
    velocity: Array
    acceleration: Array
    time: float
    status: Status
    parts: tuple[str, ...]
    behind: float | None
    standing: tuple[str, ...]
    missing: tuple[str, ...] = ()
    errors: tuple[GoalError, ...] = ()

    @property
    def states(self) -> dict[str, str]:
        """See ``Tick.states``."""
        state = {Status.LATE: "late", Status.HOLDING: "holding"}.get(self.status, "reached")
        return dict.fromkeys(self.parts, state) | dict.fromkeys(self.missing, "missed")

    @property
    def lag(self) -> GoalError:
        """See ``Tick.lag``."""
        far, lengths = np.abs(self.axes.way(*self.places)), self.axes.lengths
        return GoalError(float(far[lengths].max(initial=0.0)), float(far[~lengths].max(initial=0.0)))

    @property
    def limited(self) -> dict[str, str]:
        """See ``Tick.limited``."""
        return self.axes.limits_of(self.reasons)

    @property
    def speeds(self) -> dict[str, float]:
        """See ``Tick.speeds``."""
        return self.axes.speeds_of(self.velocity)

    def explain(self) -> tuple[list[str], list[str]]:
        """Return the sentences of ``Tick.explain`` that come before and after the sentences about limits."""
        missing = f"Stalled: feet that stand miss their places: {', '.join(self.missing)}."
        follows = "The body follows its source within its limits; report() says how far its limbs are off."
        return [{Status.STALLED: missing, Status.REACHED: follows}.get(self.status, self.status.meaning)], []


class LiveRetarget(ChecksArguments):
    """A body that follows a moving source, such as a tracked person, one pose at a time and within its limits.

    Parts, rest poses, scale and floor are found as in ``retarget``. They are learned from the first second of the
    source, during which the body holds its rest pose, or they come from a ``LiveCalibration``. Each tick returns the
    pose that follows the source: orientations, swing planes, path and height. A foot is planted as soon as the source's
    foot is low and slow, and keeps its place on the ground until it is released. Then its correction fades over the
    swing. At the end, the joints are limited as in ``Servo``.

    If the first poses cannot be used, for example of a body upside down, the source is learned from the next ones.

    Without a new sample, the body follows the last one for ``timeout`` seconds. Then the source is lost, and the body
    holds its pose. When the source returns, the body moves to the source's pose smoothly, within 0.3 s, or longer for a
    long path. A sample with a value that is not finite is ignored. Samples with time stamps go through a buffer of at
    most 16 samples and are played one frame late, so packets may arrive late or out of order. Joint values are
    interpolated between samples.

    Loops of the target stay closed: joints without a role, such as rods, follow the others, even if they must exceed
    their velocity limits; the report then says so.

    Fingers keep the source's directions in the frames of the palms, as in ``retarget``. With ``clearance``, limbs are
    moved apart in each tick; a fast limb may still pass through others if its limits allow no faster change. With a
    ``look_ahead``, feet stand on a ``world``. With ``root_motion="none"``, the path of the body is lost.

    Args:
        source_skeleton: The body that moves; None for landmarks of MediaPipe: 33, or 33, 21 of the left hand and 21 of
            the right one. Their body is built from the first 15 frames.
        target: The body that follows; a free joint is added above its root if it has none and its base moves.
        rate: Ticks per second.
        joint_map: As in ``retarget``.
        rest: As in ``retarget``; frames are those of the poses from which the source is learned. With landmarks, what
            arms and legs do that are not seen: ``"keep"`` or None to stay where they were seen, ``"rest"``, a pose of
            the target or its file to take that pose. Limbs that have never been seen are at rest.
        velocity: Highest velocity of the joints, as in ``Servo``; None for those of the file. A joint without one has
            no limit. For a free root, a number is the limit of rotation in rad/s and of translation in legs/s; or a
            pair of both.
        acceleration: Highest acceleration, likewise, per s²; None for no limit.
        jerk: Highest jerk, likewise, per s³; None for no limit.
        hold_feet: Whether standing feet stay in place.
        clearance: As in ``retarget``, but None by default: then limbs may pass through each other.
        idle_hands: Hands of the target whose source has no fingers, as in ``retarget``.
        root_motion: What a bone on the floor above the hips takes, as in ``retarget``. Limits hold for the body as a
            whole, which this bone and the hips move together. None for a bone that moves with the body.
        root: ``"free"``, or ``"fixed"`` for a base of the target that stays where it is.
        up: Axis of the source that points up, for example ``"z"``; None to find it.
        calibration: A calibration or its file, which has joint map, rest pose and upward axis; None to learn one.
        learn: Seconds for which the source is learned; 0 to learn it from its first pose.
        look_ahead: Seconds by which poses are late, so that each knows those of at least half this time after it: feet,
            limbs of hinges and clearance are then as in ``retarget``. None to wait for ``finish()``: the source is
            learned from all its poses, and the answer is that of ``retarget`` with the same options.
        world: As in ``retarget``; it needs a ``look_ahead``, so that steps are known before feet leave the ground.
        timeout: Seconds without a sample after which the source is lost.

    Attributes:
        source: The skeleton of the source; with landmarks, the target's skeleton until their body is built.
        skeleton: The skeleton that follows the source, with the added free joint if there is one.
        rate: Ticks per second.

    Raises:
        InputError: If a value cannot be used.
        UnknownNameError: If a joint does not exist.
        FormatError: If the calibration belongs to other bodies.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> live = sy.LiveRetarget(body, sy.bundled("humanoid"), rate=30, learn=0)
        >>> pose = live.step(body.rest_pose())
        >>> pose.status.name
        'REACHED'
    """

    @takes(LiveOptions)
    def __init__(
        self,
        source_skeleton: Skeleton | None,
        target: Skeleton,
        *,
        rate: float,
        **options: Unpack[LiveOptions],
    ) -> None:
        """Check the arguments; without a calibration, the bodies are prepared when they have been learned."""
        check_kind("target", target, Skeleton, "sy.load_skeleton(path) reads one")
        if source_skeleton is not None:
            check_kind("source_skeleton", source_skeleton, Skeleton, "sy.load_skeleton(path) reads one")
            refuse_loops(source_skeleton, "LiveRetarget")
        _refuse_hand(target)
        chosen = completed(LiveOptions, options, "LiveRetarget")
        root, learn = chosen.root, chosen.learn
        calibration: LiveCalibration | str | os.PathLike[str] | None = chosen.calibration
        if root not in ("free", "fixed"):
            raise InputError("root", value=root, expected="'free' or 'fixed'")
        self._target = target
        self._landmarks = LandmarkBody() if source_skeleton is None else None
        self.rate = _seconds("rate", rate, "ticks per second")
        self.timeout = _seconds("timeout", chosen.timeout, "seconds")
        if not is_number(learn) or not 0.0 <= learn < math.inf:
            raise InputError("learn", value=learn, expected="seconds, 0 or more")
        if chosen.up is not None:
            given_up(chosen.up)
        if chosen.joint_map is not None and source_skeleton is not None and chosen.calibration is None:
            draft_map(source_skeleton, target.with_root("free"), chosen.joint_map)  # refuses unknown names
        self._waits = checked_look_ahead(chosen.look_ahead)
        self._learning = max(1, round(learn * self.rate)) if self._waits < math.inf else math.inf
        self._how = {name: getattr(chosen, name) for name in ("joint_map", "rest", "up", "root")}
        self._stays = True
        self._unseen = self._how.pop("rest") if source_skeleton is None else None
        if source_skeleton is None:
            _, self._stays = kept_values(self._unseen, target, target)
        elif chosen.rest in ("keep", "rest"):
            raise InputError("rest", value=chosen.rest, expected="a pose of the source", hint="those are for landmarks")
        else:
            check_rest(source_skeleton, chosen.rest)
        self._limits = {name: getattr(chosen, name) for name in ("velocity", "acceleration", "jerk")}
        self._hold_feet, self._distance = chosen.hold_feet, checked_clearance(chosen.clearance)
        if self._distance is not None and not target.shapes:
            hint = "sy.with_shapes(body), or --shapes, fits capsules to it"
            raise InputError("clearance", value=self._distance, expected="a target with shapes", hint=hint)
        self._world = checked_world(chosen.world)
        if self._world is not None and not self._waits:
            hint = "look_ahead=0.5; a foot must know its next step before it leaves the ground"
            raise InputError("world", value=self._world, expected="none without look_ahead=", hint=hint)
        mode = chosen.root_motion
        self._root_motion: str | None = None if mode is None else checked_root_motion(mode)
        self._apart: LiveApart | None = None
        self._relaxed = checked_idle(chosen.idle_hands) == "relaxed"
        self._set_source(target if source_skeleton is None else source_skeleton)
        self._planter: Planter | None = None
        self._resting: UnseenLimbs | None = None
        self._ahead: Ahead | None = None
        self._whole = self.skeleton = target.with_root("free") if root == "free" else target
        self._body = LimitedBody(self.skeleton, self.skeleton.size or 1.0, self.rate, self._limits)
        self._mover: RootMover | None = None
        self._closer: Closer | None = None
        self._calibration: LiveCalibration | None = None
        self._parts: tuple[str, ...] = ()
        if calibration is not None and source_skeleton is None:
            raise InputError(
                "calibration", value=calibration, expected="none for landmarks, whose body is built again each time"
            )
        twice = [name for name in ("joint_map", "rest", "up") if self._how.get(name) is not None]
        if calibration is not None and twice:
            raise InputError(
                twice[0], value=self._how[twice[0]], expected="none with calibration=, which has it",
                hint=f"leave out calibration= to learn a new one with {twice[0]}=",
            )  # fmt: skip
        if isinstance(calibration, str | os.PathLike):
            calibration = LiveCalibration.load(calibration, self.source, target)
        if calibration is not None:
            check_kind("calibration", calibration, LiveCalibration, "LiveCalibration.load(path, ...) reads one")
            self._check_bodies(calibration)
            if root == "fixed" and calibration.pairing.moves:
                raise InputError("root", value=root, expected="'free', because the base of the calibration moves")
            self._take(calibration)
        self.reset()

    def _set_source(self, source: Skeleton) -> None:
        """Set the skeleton of the source, and clear its buffers."""
        self.source = source
        self._playout = Playout(source, self.rate)
        self._fit: IK | None = None
        self._known: set[int] = {id(source)}
        self._inside = np.empty(source.nq)

    def _check_bodies(self, calibration: LiveCalibration) -> None:
        """Check that a calibration belongs to these bodies.

        Raises:
            InputError: If it does not.
        """
        pairs = {
            "source": (self.source, calibration.pairing.source.skeleton),
            "target": (self._target, calibration.target),
        }
        for name, (mine, other) in pairs.items():
            if not same_body(mine, other):
                raise InputError(
                    "calibration",
                    value=f"one for the {name} {other.name}",
                    expected=f"one for {mine.name}, with the same joints and lengths of bones",
                    hint="learn a new one: LiveCalibration.learn(clip, target)",
                )

    def _take(self, calibration: LiveCalibration) -> None:
        """Prepare the follower, limits, statistics and feet for a calibration."""
        self._calibration, pair = calibration, calibration.pairing
        target = pair.target
        self._whole = self.skeleton = skeleton = target.skeleton
        bone = root_bone(target, len(skeleton) - len(self._target)) if pair.moves else None
        self._mover, self._bone, self._closer = None, bone, Closer(target, pair.roles)
        mode = self._root_motion
        if mode is not None and pair.moves and (bone is not None or mode == "none"):
            self._mover = RootMover(target, bone, mode)
            self.skeleton = self._mover.skeleton
        self._parts = tuple(pair.roles)
        self._follower = PoseFollower(pair, relaxed=self._relaxed)
        self._follower.know(calibration.floor, calibration.bends)
        self._body = LimitedBody(skeleton, target.leg, self.rate, self._limits)
        self._judge = Judge(pair, self.rate, self._world)
        if self._waits:
            self._ahead = Ahead(
                calibration, self._follower, self.rate, self._waits, hold_feet=self._hold_feet,
                clearance=self._distance, idle_hands="relaxed" if self._relaxed else "rest", world=self._world,
            )  # fmt: skip
        feet = self._hold_feet and pair.moves and any(role.endswith("_foot") for role in pair.roles) and not self._waits
        self._planter = Planter(pair, self.rate, calibration.grounds) if feet else None
        if self._landmarks is not None:
            upper = {limb: "{}_upper_{}".format(*limb.split("_")) for limb in ALL_LIMBS}
            first = {limb: target.first_row(role) for limb, role in upper.items() if role in pair.roles}
            kept, _ = kept_values(self._unseen, self._target, skeleton)
            self._resting = UnseenLimbs(skeleton, first, kept, self.rate)
        if self._distance is not None and skeleton.shapes and not self._waits:
            ankles: list[int] = [] if self._planter is None else self._planter.ankles.tolist()
            self._apart = LiveApart(target, pair.roles, self._distance, self._body.axes, ankles, self.rate)

    @property
    def calibration(self) -> LiveCalibration | None:
        """The calibration of the two bodies; None while the source is learned."""
        return self._calibration

    def reset(self, pose: Pose | None = None) -> None:
        """Discard the last poses and the report, but keep the calibration.

        Args:
            pose: Current pose of the target, from which it moves over to the source. None for the rest pose; if the
                first tick has a sample and a calibration is known, the target starts at the source's pose.

        Raises:
            InputError: If it is a pose of another skeleton.
        """
        self._playout.reset()
        self._playout.counts.clear()
        self._heard: list[tuple[Array, frozenset[str]]] = []  # poses for learning, and hidden limbs
        self._sample: Array | None = None
        self._poses: Array | None = None  # world frames (1, n, 12) of the last source
        self._age = math.inf  # seconds since the last sample
        self._lost = True
        self._ticks = self._held = self._losses = self._taught = self._samples = 0
        self._invalid = self._near = self._stood = self._missed = 0
        self._limited = Counter[int]()  # ticks in which a limit holds an axis back
        self._trouble = ""
        self._shut_before: Array | None = None  # the last pose with closed loops
        self._forced, self._too_fast = 0.0, dict[str, float]()
        self._behind = 0.0
        self._timed = 0
        self._given = pose is not None
        self._began = self._given  # whether the body has a pose from which it moves to its source
        start = self._whole.rest_pose().inside[0]
        if self._mover is not None:
            self._mover.reset()
        if pose is not None:
            check_kind("pose", pose, Pose, "a pose of the target")
            if not same_body(pose.skeleton, self.skeleton):
                raise InputError("pose", value=pose.skeleton.name, expected=f"a pose of {self.skeleton.name}")
            start = pose.inside[0] if self._mover is None else self._mover.whole(pose)
        self._body.reset(start)
        if self._calibration is not None:
            self._follower.reset()
            if self._ahead is not None:
                self._ahead.reset()
            if self._resting is not None:
                self._resting.reset()
            if self._planter is not None:
                self._planter.reset()
            self._judge = Judge(self._calibration.pairing, self.rate, self._world)

    def receive(self, pose: Pose | Array | None, time: float | None = None) -> None:
        """Add a sample of the source without a tick, for packets that arrive more often or at other times than ticks.

        Args:
            pose: As in ``step``.
            time: As in ``step``.

        Raises:
            InputError: If it has another shape, is a pose of another skeleton, or its time is no number.
        """
        q = self._values(pose)
        if q is None:
            return
        if time is None:
            self._sample, self._age = q, 0.0
            self._samples += 1
        elif not is_number(time):
            raise InputError("time", value=time, expected="seconds, or None to use the sample at once")
        elif not is_finite(time):
            self._invalid += 1
        else:
            self._sample = None
            if self._playout.put(q, float(time)):
                self._age = 0.0
                self._samples += 1

    def step(self, pose: Pose | Array | None = None, time: float | None = None) -> Tick:
        """Take one tick.

        Args:
            pose: The source: a pose, its joint values (nq,), or the positions of all its joints, (n, 3), length units
                of its skeleton. Without a source skeleton: landmarks (33, 3) or (75, 3) in the axes of MediaPipe,
                metres, NaN where one is not seen; a fourth column may hold their visibility. None without a new sample.
            time: Time stamp of this sample on the clock of the source, seconds; None to use the sample at once.

        Raises:
            InputError: If it has another shape, or is a pose of another skeleton.
        """
        self.receive(pose, time)
        self._ticks += 1
        q, restarted = self._played()
        self._age += 1.0 / self.rate
        if q is None or self._age > self.timeout:
            return self._hold()
        if self._sample is None:
            self._behind += self._playout.behind
            self._timed += 1
        if self._calibration is None:
            self._heard.append((q, self._hidden()))
            if len(self._heard) < self._learning or not self._learn():
                self._taught += 1
                return self._tick(self._body.go(None), Status.HOLDING)[0]
        return self._follow(q, restarted)

    def finish(self) -> list[Tick]:
        """Return the ticks of the poses that wait for later ones, because the source has ended; see ``look_ahead``."""
        out, heard = list[Tick](), list(self._heard)
        learns = self._calibration is None and self._waits == math.inf and heard
        if learns and self._learn() and self._ahead is not None:
            self._began = self._given
            for q, gone in heard:
                self._ahead.add((q, gone))
        while self._ahead is not None and self._ahead.waiting:
            self._ticks += 1
            out.append(self._follow(None, restarted=False))
        self._lost = True
        return out

    def _played(self) -> tuple[Array | None, bool]:
        """Return the joint values of the source for this tick (None without any), and whether its clock was reset."""
        if self._sample is not None:
            return self._sample, False
        return self._playout.advance()

    def _hold(self) -> Tick:
        """Take a tick without a source; poses that wait for later ones are followed before the body holds."""
        if not self._lost:
            self._lost = True
            self._losses += 1
        if self._ahead is not None and self._ahead.waiting and self._waits < math.inf:
            return self._follow(None, restarted=False)
        self._held += 1
        return self._tick(self._body.go(None), Status.HOLDING)[0]

    def _learn(self) -> bool:
        """Learn the calibration from the received poses, and discard these; return False if they cannot be used.

        Raises:
            InputError: If the bodies do not fit each other.
            UnknownNameError: If the map names a part or a joint that does not exist.
        """
        clip = Motion(self.source, np.array([q for q, _ in self._heard]), self.rate, name=self.source.name)
        began = self._body.q
        self._heard.clear()
        try:
            known = LiveCalibration.learn(clip, self._target, **self._how)
        except InputError as error:
            still = Motion(self.source, self.source.rest_pose().q[None], self.rate, name=self.source.name)
            LiveCalibration.learn(still, self._target, **self._how)  # raises if the poses are not the reason
            self._trouble = str(error)
            return False
        self._take(known)
        if len(began) == self._whole.nq:
            self._body.reset(began)
        return True

    def _hidden(self) -> frozenset[str]:
        """Return the arms and legs that do not follow the last pose because they are hidden."""
        body = self._landmarks
        return _NOTHING if body is None else body.new if self._stays else body.hidden

    def _follow(self, q: Array | None, restarted: bool) -> Tick:
        """Take a tick in which the target follows joint values (nq,) of the source, None if no more come."""
        jumps, planter, ahead = q is not None and (self._lost or restarted), self._planter, self._ahead
        gone = self._hidden()
        self._lost = q is None
        if jumps:
            self._judge.pause()
        known: Known[tuple[Array, frozenset[str]], Standing] | None = None
        source = q
        found = _NO_FRAMES
        if ahead is not None:
            if jumps and self._waits < math.inf:
                ahead.reset()
            if q is not None:
                ahead.add((q, gone))
            known = ahead.next(ended=q is None)
            if known is None:
                return self._tick(self._body.go(None), Status.HOLDING)[0]
            wanted, (source, gone), jumps = known.q.copy(), known.sample, known.first
            poses = world_frames(self.source, source[None])
        else:
            poses = world_frames(self.source, cast("Array", q)[None])
            (wanted,), (found,) = self._follower.follow(poses)
        self._poses, frames = poses, poses[0]
        if self._resting is not None and self._resting.step(wanted, gone):
            found = world_frames(self._whole, wanted[None])[0]
        if planter is not None:
            if jumps:
                planter.reset()
            wanted = planter.step(frames, found, wanted, gone)
        if self._apart is not None:
            if jumps:
                self._apart.reset()
            wanted = self._apart.step(wanted, _NO_FEET if planter is None else planter.stands)
        body = self._body
        if jumps:
            if self._began:
                body.leave(wanted)
            else:
                body.reset(wanted)
        led = body.go(wanted)
        if ahead is not None and not body.behind:
            led = wanted  # without the rounding of the limits
        tick, details, own, led = self._tick(led, Status.REACHED)
        if body.going_over:  # limbs and feet cannot be compared with the source yet
            self._judge.pause()
            details.status = Status.LATE
            return tick
        if self._apart is not None:
            self._near += self._apart.is_near(own)
        self._judge.feed(self._ticks - 1, cast("Array", source), led, gone)
        if known is not None:
            details.standing = known.facts.roles
            details.missing = known.facts.roles if known.facts.missed else ()
        if planter is not None:
            planter.judge(own)
            details.missing = planter.missing
        self._stood += bool(details.standing)
        self._missed += bool(details.missing)
        if details.missing:
            details.status = Status.STALLED
        if body.behind:
            details.status = Status.LATE
            self._limited.update(np.flatnonzero(body.axes.reasons).tolist())
        return tick

    def _tick(self, q: Array, status: Status) -> tuple[Tick, BodyDetails, Array, Array]:
        """Return the tick with joint values (nq,) of the whole body, its details, and frames and values of the body."""
        body, self._began = self._body, True
        led = q
        if self._closer is not None and self._whole.loops:
            q = self._shut(self._closer, q)
        holds = status is Status.HOLDING
        details = BodyDetails(
            body.axes,
            body.axes.reasons.copy(),
            (led, body.wanted),
            body.velocity,
            body.acceleration,
            self._ticks / self.rate,
            status,
            self._parts,
            None if holds or self._sample is not None else self._playout.behind,
            () if holds or self._planter is None else self._planter.roles,
        )
        mover = self._mover
        if mover is None:
            tick = Tick(self.skeleton, q, details)
            return tick, details, tick.frames, q
        own, given = world_frames(self._whole, q[None]), None
        if self._bone is not None and self._poses is not None and self._calibration is not None:
            given = self._calibration.pairing.root_frames(self._bone, self._poses, own)
        (moved,), _ = mover.moved(q[None], own, OnFloor(self.rate, given))
        return Tick(self.skeleton, moved, details), details, own[0], q

    def _shut(self, closer: Closer, q: Array) -> Array:
        """Return joint values (nq,) with closed loops; count how far they turn parts, and joints that are too fast."""
        before = self._shut_before
        (out,), (angle,) = closer.closed(q[None], before)
        self._forced = max(self._forced, float(angle))
        if before is not None:
            steps = hurried(self._whole, np.array([before, out]), self._body.axes.top_speeds / self.rate)
            for name, ratio in steps.items():
                self._too_fast[name] = max(self._too_fast.get(name, 0.0), float(ratio[1]))
        self._shut_before = out
        return out

    def report(self) -> Report:
        """Return verdict, findings and figures since the last reset.

        Frames are judged as by ``sy.judge``: those of the first minute or, of longer sessions, 16 blocks of 4 seconds
        at most. This takes up to a second, so do not call it between ticks.

        Returns:
            The text, and as ``facts`` those of a judgement, and these figures: number of ``ticks``, their duration in
            ``seconds``, ticks of ``learning``, and ticks in which the source was lost (``held``); accepted ``samples``,
            those left out by reason (``samples_left_out``), and number of ``losses``; share of the ticks in which a
            limit held a joint back (``limited``, the largest first); share of the ticks in which a foot stands
            (``standing``), and of these in which it misses its place (``missed``); mean delay of samples with time
            stamps (``behind``, seconds); why learning failed (``trouble``); share of the ticks with limbs nearer than
            ``clearance`` (``near``), links without known shapes (``unchecked``), and ``unseen``; the largest angle by
            which loops turned a part so that they close (``turned_by_loops``, radians), and joints that loops moved
            faster than their velocity limits, with the largest ratio (``too_fast``).
        """
        dropped = dict(self._playout.counts) | ({"not finite": self._invalid} if self._invalid else {})
        names, joints, ticks = self._whole.joint_names, self._body.axes.joints, max(self._ticks - self._taught, 1)
        limited: dict[str, float] = {}
        for axis, count in Counter(self._limited).most_common():
            limited.setdefault(names[int(joints[axis])], count / ticks)
        figures = {
            "ticks": self._ticks, "seconds": self._ticks / self.rate, "learning": self._taught, "held": self._held,
            "samples": self._samples, "samples_left_out": dropped, "losses": self._losses,
            "limited": limited, "standing": self._stood / ticks, "missed": self._missed / max(self._stood, 1),
            "behind": self._behind / self._timed if self._timed else 0.0,
            "trouble": self._trouble if self._calibration is None else "",
            "near": self._near / max(self._ticks - self._taught - self._held, 1),
            "unchecked": unchecked_links(self.skeleton) if self._distance is not None else [],
            "turned_by_loops": self._forced, "too_fast": dict(self._too_fast),
            "unseen": {} if self._landmarks is None else self._landmarks.unseen,
        }  # fmt: skip
        return report_of(figures, None if self._calibration is None else self._judge.sum())

    @property
    def samples(self) -> int:
        """Number of accepted samples since the last reset."""
        return self._samples

    def _values(self, pose: Pose | Array | None) -> Array | None:
        """Return the joint values of a sample, (nq,); None without a sample, or if a value is not finite.

        Raises:
            InputError: If it has another shape, or is a pose of another skeleton.
        """
        if pose is None:
            return None
        if self._landmarks is not None:
            return self._seen(self._landmarks, pose)
        if isinstance(pose, Pose):
            other = pose.skeleton
            if id(other) not in self._known and other is not self.source:
                if not same_body(other, self.source):
                    raise InputError("pose", value=other.name, expected=f"a pose of {self.source.name}")
                self._fine = other  # this reference keeps its id from being reused
                self._known = {id(self.source), id(other)}
            values = pose.values
        else:
            try:
                values = np.asarray(pose, np.float64)
            except (TypeError, ValueError):
                values = np.zeros((0, 0))
        if not np.isfinite(values).all():
            self._invalid += 1
            return None
        if isinstance(pose, Pose):
            return values
        if values.shape == (self.source.nq,):
            values = np.array(values)  # a copy, because it is buffered
            if self.source.validate(values, self._inside) < 0:
                values = Pose(self.source, values).values  # normalizes the values, or raises
            return values
        if values.shape == (len(self.source), 3):
            return self._fitted(values)
        raise InputError(
            "shape of the pose", value=values.shape,
            expected=f"({self.source.nq},) joint values or ({len(self.source)}, 3) places of {self.source.name}",
            hint=_HINTS.get(values.shape),
        )  # fmt: skip

    def _seen(self, body: LandmarkBody, points: Any) -> Array | None:
        """Return the joint values (nq,) of the body of landmarks; None until it is built, or if they show no pose.

        Raises:
            InputError: If the points are not landmarks of a body.
        """
        columns = 4 if np.shape(points)[1:] == (4,) else 3
        values = as_numbers(points, (-1, columns), "points", finite=False)
        if len(values) == ONE_HAND:
            raise InputError("points", value=values.shape, expected="landmarks of a body", hint=_HINTS[ONE_HAND, 3])
        q = body.pose(values)
        if q is None:
            self._invalid += body.skeleton is not None
        elif body.skeleton is not None and self.source is not body.skeleton:
            self._set_source(body.skeleton)
        return q

    def _fitted(self, points: Array) -> Array:
        """Return joint values (nq,) of the source with its joints as close to points (n, 3) as its bones allow."""
        if self._fit is None:
            goals = [PositionGoal(row) for row in range(len(self.source))]
            root = "free" if len(self.source.with_root("free")) == len(self.source) else "fixed"
            # No pose meets all measured points. This solver finds the nearest pose in a tenth of FullBody's time.
            self._fit = IK(self.source, goals, LevenbergMarquardt(attempts=10), root=root)
            self._before: Pose | None = None
        found = self._fit.solve(dict(enumerate(points)), start=self._before, follow=self._before is not None)
        self._before = found.pose
        return found.pose.values


def _refuse_hand(target: Skeleton) -> None:
    """Refuse a target that is only a hand.

    Raises:
        UnsupportedError: If the target is only a hand.
    """
    if not any(role in target.role_rows for role in _TRUNK) and hands_of(target):
        raise UnsupportedError(
            "LiveRetarget moves bodies", where=target.name, value="only a hand", expected="a body",
            hint="LiveHand(skeleton, rate=...) follows 21 points of a hand",
        )  # fmt: skip


def _seconds(name: str, value: Any, unit: str) -> float:
    """Return a value as a positive float.

    Raises:
        InputError: If it is no positive number.
    """
    if not is_number(value) or not 0.0 < value < math.inf:
        raise InputError(name, value=value, expected=f"a number above 0, {unit}")
    return float(value)
