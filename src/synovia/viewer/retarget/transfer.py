"""An editable retargeting of a clip to another body: joint map, rest pose and result, without browser and threads."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from synovia.draw.rods import axes_of
from synovia.errors import SynoviaError, UnsupportedError
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.tree import ancestors
from synovia.retargeting import Retargeted, draft_map, retarget
from synovia.retargeting.judging.measure import Limb
from synovia.retargeting.straight import Angles, adjusted, pose_of
from synovia.viewer.editing.undo import Undo

Map = dict[str, tuple[str, str]]  # (source joint, target joint) by part, "" for none
_LOW: Final = 20.0  # percentage of the frames whose lowest joint may be below the floor
_Settings = tuple[Map, dict[int, Angles], bool]  # joints, angles of the rest pose, whether standing feet are kept


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Result of a transfer.

    Args:
        version: Version of the settings that gave this result.
        answer: The result of retargeting; None if it failed.
        floor: Height of the floor below the clip, length units of the clip.
        trouble: Reason for a failure; empty otherwise.
    """

    version: int
    answer: Retargeted | None = None
    floor: float = 0.0
    trouble: str = ""

    @property
    def limbs(self) -> tuple[Limb, ...]:
        """The limbs that both bodies have, with the angles between their directions."""
        return () if self.answer is None else self.answer.judgement.figures.limbs

    @property
    def worst(self) -> Limb | None:
        """The limb with the largest angle in a frame, compared with its threshold; None without limbs."""
        return max(self.limbs, key=lambda limb: limb.largest / limb.thresholds[1], default=None)


@dataclass(slots=True, eq=False)
class Transfer:
    """A clip, a target body, and the settings and result of retargeting.

    Args:
        motion: The clip.
        target: The body.
        joint_map: Joints by part; None for the automatic map.
        rest: Rest pose of the source; None for the pose that the first retargeting finds.
    """

    motion: Motion
    target: Skeleton
    joint_map: Mapping[str, tuple[str | int, str | int]] | None = None
    rest: Pose | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    changed: threading.Event = field(default_factory=threading.Event)
    joints: Map = field(init=False)
    angles: dict[int, Angles] = field(default_factory=dict[int, Angles])
    feet: bool = True
    version: int = 1
    outcome: Outcome = field(default_factory=lambda: Outcome(0))
    _undo: Undo[_Settings] = field(default_factory=Undo[_Settings])
    _base: Pose | None = None  # rest pose of the source before the user's angles
    _edited: bool = False  # whether the map differs from the initial map

    def __post_init__(self) -> None:
        """Set the initial map: the given map or the automatic map."""
        self.joints = self._first_map()

    def _first_map(self) -> Map:
        """Return the given map or the automatic map, with empty entries for missing joints."""
        return draft_map(self.motion.skeleton, self.target, self.joint_map)

    @property
    def parts(self) -> tuple[str, ...]:
        """Parts of the map; parts with both joints come first."""
        return tuple(sorted(self.joints, key=lambda part: not all(self.joints[part])))

    def assign(self, part: str, *, source: str | None = None, target: str | None = None) -> None:
        """Set the joint of a part in one or both bodies; "" for no joint.

        Raises:
            UnknownNameError: If a body has no such joint.
        """
        with self.lock:
            old = self.joints.get(part, ("", ""))
            pair = (old[0] if source is None else source, old[1] if target is None else target)
            for body, name in zip((self.motion.skeleton, self.target), pair, strict=True):
                if name:
                    body.index(name)
            if pair != self.joints.get(part):
                self._remember()
                self.joints[part] = pair
                self._edited = True
                self._touch()

    def automatic(self) -> None:
        """Restore the initial map."""
        with self.lock:
            self._remember()
            self.joints, self._edited = self._first_map(), False
            self._touch()

    def turn(self, angles: Mapping[int, Angles]) -> None:
        """Set the angles of joints in the rest pose, by row of the source; zeros mean no rotation."""
        with self.lock:
            self.rest_pose()  # the pose that the angles are relative to
            new = {row: values for row, values in (self.angles | dict(angles)).items() if any(values)}
            if new != self.angles:
                self._remember(("turn", *angles))
                self.angles = new
                self._touch()

    def straighten(self) -> None:
        """Restore the initial rest pose."""
        with self.lock:
            self._remember()
            self.angles = {}
            self._touch()

    def set_feet(self, on: bool) -> None:
        """Set whether standing feet are kept in place."""
        with self.lock:
            self._remember()
            self.feet = on
            self._touch()

    def undo(self) -> bool:
        """Undo the last change; return whether there was a change to undo."""
        with self.lock:
            if (before := self._undo.undo(self._settings())) is None:
                return False
            self.joints, self.angles, self.feet = before
            self._edited = self.joints != self._first_map()
            self._touch()
            return True

    def _settings(self) -> _Settings:
        """Return a copy of the settings."""
        return dict(self.joints), dict(self.angles), self.feet

    def _remember(self, what: Hashable = None) -> None:
        """Store the settings for ``undo``; quick changes with the same ``what`` are one step."""
        self._undo.keep(self._settings(), what)

    def _touch(self) -> None:
        """Signal a change."""
        self.version += 1
        self.changed.set()

    def turning_rows(self, part: str) -> list[int]:
        """Return the joints that rotate a part of the source in the rest pose: its ball, or its hinges."""
        name = self.joints.get(part, ("", ""))[0]
        skeleton = self.motion.skeleton
        if not name:
            return []
        row = skeleton.index(name)
        if skeleton.joints[row].kind in (Kind.BALL, Kind.FREE):
            return [row]
        others = {skeleton.index(pair[0]) for pair in self.joints.values() if pair[0]} - {row}
        rows: list[int] = []
        for above in ancestors(skeleton.parents, row):
            if above in others or skeleton.joints[above].kind is not Kind.HINGE:
                break
            rows.append(above)
        return rows[::-1]

    def rest_pose(self) -> Pose:
        """Return the adjusted rest pose of the source."""
        with self.lock:
            answer, skeleton = self.outcome.answer, self.motion.skeleton
            if self._base is None and self.rest is not None:
                self._base = self.rest
            elif self._base is None and answer is not None and not self.angles:
                self._base = pose_of(skeleton, answer.source.rest)
            base = skeleton.rest_pose() if self._base is None else self._base
            if not self.angles:
                return base
            right = {row for part in self.joints if part.startswith("right") for row in self.turning_rows(part)}
            return adjusted(base, self.axes()[0], self.angles, right)

    def axes(self) -> tuple[Array, Array]:
        """Return the rotations (3, 3) from the axes of each body (x left, y up, z forward) to its world."""
        answer = self.outcome.answer
        if answer is not None:
            return answer.source.basis, answer.target.basis
        return axes_of(self.motion.skeleton), axes_of(self.target)

    def compute(self) -> Outcome:
        """Retarget the clip with the current settings, and return the outcome; takes seconds for a long clip."""
        with self.lock:
            version, feet = self.version, self.feet
            known = {part: pair for part, pair in self.joints.items() if all(pair)}
            given = known if self._edited or self.joint_map is not None else None
            rest = self.rest_pose() if self.angles or self.rest is not None else None
        try:
            answer = retarget(self.motion, self.target, given, rest=rest, hold_feet=feet)
            if not answer.moves:
                raise UnsupportedError(
                    "this page moves whole bodies", expected="hips and both legs in the map",
                    hint="`synovia retarget SRC DST --map MAP.toml` retargets other parts",
                )  # fmt: skip
            heights = self.motion.positions() @ answer.source.basis[:, 1]
            floor = float(np.percentile(heights.min(axis=1), _LOW))
            _ = answer.judgement  # computed in this thread
            outcome = Outcome(version, answer, floor)
        except SynoviaError as error:
            outcome = Outcome(version, trouble=str(error))
        with self.lock:
            self.outcome = outcome
        return outcome
