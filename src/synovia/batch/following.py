"""The task of ``animate`` with many files of targets: a model follows keyframes, or joints of a clip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from synovia.batch.clips import judged_alone
from synovia.batch.content import model_settings
from synovia.batch.inputs import Item
from synovia.batch.tasks import (
    ClipReader,
    LockFeet,
    drawn,
    file_of,
    motion_endings,
    original,
    output_motion,
)
from synovia.batch.work import Figure, Picture, joined
from synovia.errors import FormatError, InputError
from synovia.facade import IK
from synovia.files.tracks import read_track
from synovia.goals import Goal, PositionGoal
from synovia.goals.base import POSITION
from synovia.ik.targets import targets_from
from synovia.io.load import format_of, load_model
from synovia.io.save import save_motion
from synovia.model import Pose, Skeleton
from synovia.model.motion import Motion
from synovia.model.root import Root
from synovia.solver import Solver

TRACK_ENDINGS: Final = (".toml", ".json")


class Targets(NamedTuple):
    """What a model follows over time.

    Args:
        goals: The goals.
        values: Their targets over time, by goal.
        fps: Frames per second.
        frames: Number of frames.
        start: Pose to start from; None for the rest pose.
    """

    goals: list[Goal]
    values: dict[str, Any]
    fps: float
    frames: int
    start: Pose | None = None


def keyframes(path: Path) -> Targets:
    """Return the targets of a track file.

    Raises:
        FormatError: If no goal has keys, or the file is malformed.
    """
    track = read_track(path)
    if not track.targets:
        raise FormatError("no goal has keys", where=str(path), expected="keys for at least one goal")
    return Targets(list(track.goals), track.targets, track.fps, track.frames)


def followed(source: Motion, joints: Mapping[str, str] | None, skeleton: Skeleton, root: Root) -> Targets:
    """Return targets that follow another clip.

    Args:
        source: The clip.
        joints: Joint of the clip by joint that follows; None for all tips.
        skeleton: The body that follows.
        root: How its root may move.
    """
    tips = [skeleton.frame_names[row] for row in skeleton.tip_rows]
    values = targets_from(source, tips if joints is None else dict(joints))
    start = None
    with suppress(InputError):  # another body
        placed = source.on(skeleton)
        same = [(body.joint_names, body.nq) for body in (skeleton, skeleton.with_root(root))]
        start = placed.pose(0) if (placed.skeleton.joint_names, placed.skeleton.nq) in same else None
    return Targets([PositionGoal(joint) for joint in values], values, source.fps, len(source), start)


@dataclass(frozen=True)
class FollowTargets:
    """Make a clip of a model that follows a file of targets: a track file, or another clip.

    Args:
        model: The model: a file or the name of a bundled model.
        tracks: Whether the files hold keyframes; otherwise they are clips.
        joints: Joint of the clips by joint that follows; None for all tips.
        reader: How clips are read; one that does not hold its skeleton is of the model.
        solver: Settings of the algorithm.
        root: How the root may move.
        lock: How the standing feet are held afterwards; None to leave them.
        options: Further arguments of ``IK.track``.
        verify: Whether an output that does not show the clip is a failure.
    """

    model: str
    tracks: bool
    joints: Mapping[str, str] | None
    reader: ClipReader
    solver: Solver
    root: Root
    lock: LockFeet | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    verify: bool = False
    name: ClassVar[str] = "animate"

    @cached_property
    def skeleton(self) -> Skeleton:
        """The skeleton of the model."""
        return load_model(self.model)

    def endings(self) -> Iterable[str]:
        """Return the endings of the files that are taken from folders."""
        return TRACK_ENDINGS if self.tracks else motion_endings(on_model=True)

    def settings(self) -> dict[str, Any]:
        """Return what decides about the output beside the input."""
        return {
            "model": model_settings(self.model),
            "follow": "tracks" if self.tracks else self.reader.settings(),
            "joints": None if self.joints is None else dict(self.joints),
            "solver": repr(self.solver),
            "root": self.root,
            "lock": None if self.lock is None else self.lock.settings(),
            **self.options,
        }

    def prepare(self) -> None:
        """Load the model; the kernels come with the first file, because its targets tell the goals."""
        _ = self.skeleton
        self.reader.prepare()

    def _reader_of(self, path: Path) -> ClipReader:
        """Return the reader of a clip: a clip that does not hold its skeleton is one of the model that follows it."""
        if self.reader.model is None and format_of(path).read_onto is not None:
            return self._on_model
        return self.reader

    @cached_property
    def _on_model(self) -> ClipReader:
        """The reader of clips of the model."""
        return ClipReader(self.reader.clip, self.model, self.reader.trim)

    def work(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the motion; return its figures."""
        notes: list[str] = []
        if self.tracks:
            targets = keyframes(item.path)
        else:
            source, notes = self._reader_of(item.path).read(item.path)
            targets = followed(source, self.joints, self.skeleton, self.root)
        ik = IK(self.skeleton, targets.goals, self.solver, root=self.root)
        tracked = ik.track(targets.values, targets.start, fps=targets.fps, threads=1, **self.options)
        motion = Motion(tracked.motion.skeleton, tracked.q, tracked.fps, name=item.path.stem)
        if self.lock is not None:
            motion = self.lock.locked(motion).motion
        save_motion(motion, output, into=file_of(self.model), verify=self.verify)
        placed = [i for i, goal in enumerate(ik.goals) if goal.measures & POSITION]
        worst = float(np.max(tracked.errors[:, placed, 0])) if placed else None
        figures = {"frames": len(motion), "missed": len(tracked.missed_frames), "jumps": len(tracked.jumps)}
        return {**figures, "worst": worst, **judged_alone(motion, missed=tracked.missed_frames), "notes": joined(notes)}

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output, beside the clip that it follows."""
        reader = None if source is None or self.tracks else self._reader_of(source)
        beside = None if reader is None else original(reader, source)
        return drawn(output_motion(self.skeleton, output), beside)
