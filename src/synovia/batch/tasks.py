"""The tasks of the command line on one file each: retarget, convert, animate and render."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from synovia.batch.content import file_settings, model_settings
from synovia.batch.inputs import Item
from synovia.batch.work import Figure, Picture, joined
from synovia.errors import FileError, InputError, UnsupportedError
from synovia.io.csvfile import read_csv
from synovia.io.load import format_of, formats, has_shapes, is_bundled, load_model, load_motion
from synovia.io.save import save_motion
from synovia.model import Skeleton
from synovia.model.motion import Motion

if TYPE_CHECKING:
    from synovia.clips import Fitted, FootLocked
    from synovia.retargeting import Judgement, Retargeted

_PICTURE: Final = (144, 190)  # pixels of a body in a still on the summary page
_STILLS: Final = 4
_WARM_FRAMES: Final = 8  # of the clip that loads the kernels


def motion_endings(*, on_model: bool = False) -> list[str]:
    """Return the endings of files that hold a motion; ``on_model`` for those that need a model, too."""
    known = (fmt for fmt in formats() if fmt.holds_motions and (on_model or fmt.read_onto is None))
    return [ending for fmt in known for ending in fmt.extensions]


def written_endings() -> list[str]:
    """Return the endings of single files that a motion can be written to."""
    known = (fmt for fmt in formats() if fmt.holds_motions and fmt.write is not None)
    return [ending for fmt in known for ending in fmt.extensions if ending != ".gltf"]


def file_of(model: str | None) -> str | None:
    """Return the file of a model, which the format of an output may copy; None for a bundled one."""
    return None if model is None or is_bundled(model) else model


@dataclass(frozen=True)
class ClipReader:
    """How clips are read.

    Args:
        clip: Name or number of the clip in a file; None for the one that Synovia wrote last, else the first.
        model: The model that clips are put on: a file or the name of a bundled model; None for their own skeletons.
        trim: Whether to cut off calibration frames.
    """

    clip: str | int | None = None
    model: str | None = None
    trim: bool = False

    @cached_property
    def _body(self) -> Skeleton | str | None:
        """The skeleton of the model; its file, if it takes the shape of each clip's body."""
        return None if self.model is None else self.model if has_shapes(self.model) else load_model(self.model)

    def settings(self) -> dict[str, Any]:
        """Return what decides about a clip beside its file."""
        model = None if self.model is None else model_settings(self.model)
        return {"clip": self.clip, "model": model, "trim": self.trim}

    def prepare(self) -> None:
        """Load the model."""
        _ = self._body

    def copied(self, path: Path) -> Path | str:
        """Return the file that a changed clip of a file is written into a copy of: that of the model, or its own."""
        return file_of(self.model) or path

    def read(self, path: Path) -> tuple[Motion, list[str]]:
        """Return a clip of a file, its notes, and sentences about calibration frames at its ends."""
        from synovia.clips import find_ends

        clip = int(self.clip) if isinstance(self.clip, str) and self.clip.isdecimal() else self.clip
        motion = load_motion(path, clip, skeleton=self._body)
        ends = find_ends(motion)
        what = "cut off" if self.trim else "--trim-tpose cuts this off"
        lost = (*(motion.skeleton.notes if self.model is None else ()), *motion.notes)
        notes = [*dict.fromkeys(lost), *(f"{note} ({what})" for note in ends.notes)]
        return (ends.of(motion) if self.trim else motion), notes


def target_of(name: str) -> Skeleton | Motion:
    """Return the body to retarget to: a model, or its clip if no pose of its file is a rest pose.

    Raises:
        SynoviaError: If the file cannot be read.
    """
    from synovia.retargeting import stands

    body = load_model(name)
    if is_bundled(name) or not format_of(Path(name)).holds_motions:
        return body
    try:
        return body if stands(body) else load_motion(Path(name))
    except (InputError, UnsupportedError):  # no clip, or no body: then `retarget` tells it
        return body


def notes_of(answer: Retargeted) -> list[str]:
    """Return what a user should know about a retargeted clip beside the judgement: doubts about poses, sides, path."""
    from synovia.retargeting.rest_pose import CERTAIN

    poses = (("rest pose", answer.stance.rest), ("rest pose of the target", answer.target_rest))
    doubts = [f"{what} {pose.name}: {pose.doubt}" for what, pose in poses if pose.certainty < CERTAIN]
    return [*doubts, *answer.stance.notes]


def drawn(motion: Motion, beside: Motion | None = None) -> Picture:
    """Return a few stills of a motion, each at the right of the original's if there is one.

    Raises:
        MissingExtraError: If Pillow is not installed.
    """
    from synovia.draw import render

    clips = [motion] if beside is None else [motion, beside]
    few = [Motion(each.skeleton, each.q[_stills(len(each))], 1.0, name=each.name) for each in clips]
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sheet.png"
            width, height = _PICTURE
            size = (width * len(few), height)
            titles = [""] * len(few)  # too small to read
            render(few[0], path, beside=few[1] if few[1:] else None, titles=titles, size=size, captions=False)
            return Picture(path.read_bytes(), beside is not None)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"no temporary file can be written ({error.strerror})") from error


def _stills(frames: int) -> list[int]:
    """Return the frames to show, in the middle of equal parts of the clip."""
    return [frames * (2 * k + 1) // (2 * _STILLS) for k in range(min(_STILLS, frames))]


def warm_clip() -> Motion:
    """Return a short clip of the bundled humanoid, for loading kernels."""
    body = load_model("humanoid").with_root("free")
    return Motion(body, np.tile(body.rest_pose().q, (_WARM_FRAMES, 1)), 30.0, name="rest")


def usual_ending(target: str) -> str:
    """Return the ending of retargeted files unless another is asked for: BVH files have y up, npz files any axis."""
    return ".bvh" if load_model(target).up in (None, "y") else ".npz"


def original(reader: ClipReader, source: Path | None) -> Motion | None:
    """Return the clip that an output was made from, for its picture; None if it is not there any more."""
    if source is None or not source.is_file():
        return None
    return reader.read(source)[0]


@dataclass(frozen=True)
class RetargetFile:
    """Retarget a clip to another body.

    Args:
        target: The model: a file or the name of a bundled model.
        joint_map: (source joint, target joint) by role; None to match them automatically.
        feet: Whether to correct the feet.
        reader: How clips are read.
        options: Further arguments of ``retarget``.
        verify: Whether an output that does not show the clip is a failure.
    """

    target: str
    joint_map: Mapping[str, tuple[str | int, str | int]] | None = None
    feet: bool = True
    reader: ClipReader = field(default_factory=ClipReader)
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    verify: bool = False
    name: ClassVar[str] = "retarget"

    @cached_property
    def body(self) -> Skeleton | Motion:
        """The model, or its clip if only that shows the rest pose."""
        return target_of(self.target)

    @property
    def skeleton(self) -> Skeleton:
        """The skeleton of the model."""
        return self.body.skeleton if isinstance(self.body, Motion) else self.body

    def settings(self) -> dict[str, Any]:
        """Return what decides about the output beside the input."""
        chosen = {"feet": self.feet, **self.reader.settings(), **self.options}
        if isinstance(rest := chosen.get("rest"), str) and Path(rest).is_file():
            chosen["rest"] = file_settings(rest)
        joints = None if self.joint_map is None else {role: list(pair) for role, pair in self.joint_map.items()}
        return {"target": model_settings(self.target), "joint_map": joints, **chosen}

    def prepare(self) -> None:
        """Load the models and the kernels."""
        from synovia.retargeting import retarget

        self.reader.prepare()
        try:
            _ = retarget(warm_clip(), self.body, feet=self.feet, threads=1).judgement
        except InputError:
            if self.joint_map is None:
                raise  # the model has no legs: every clip would fail

    def work(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the motion; return its figures."""
        from synovia.retargeting import retarget

        motion, notes = self.reader.read(item.path)
        joint_map = None if self.joint_map is None else dict(self.joint_map)
        answer = retarget(motion, self.body, joint_map, feet=self.feet, threads=1, **self.options)
        save_motion(answer.motion, output, into=file_of(self.target), verify=self.verify)
        return {
            "frames": len(answer.motion), "missed": len(answer.missed_frames), "worst": float(answer.worst),
            "scale": float(answer.scale), **judged(answer.judgement), "notes": joined([*notes, *notes_of(answer)]),
        }  # fmt: skip

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output beside its input."""
        return drawn(output_motion(self.skeleton, output), original(self.reader, source))


JUDGED: Final[Mapping[str, type]] = {
    "verdict": str,
    "findings": str,
    "bad_frames": int,
    "foot_slide": float,
    "foot_depth": float,
    "limb_deg": float,
}
"""Figures of a judgement, and their types."""


def judged(judgement: Judgement) -> dict[str, Figure]:
    """Return the verdict of the judge of clips, its causes and its main figures, as far as they were measured.

    Lengths are in lengths of a leg, angles in degrees. ``bad_frames`` counts the frames in which a finding shows that
    decides the verdict; all frames, if one concerns the whole clip.
    """
    warnings = judgement.warnings
    causes = dict.fromkeys(f"{one.limb.replace('_', ' ')}: {one.cause}" for one in warnings)
    deciding = [one.frames for one in warnings if one.level == warnings[0].level]  # the worst come first
    frames = {frame for some in deciding for frame in some}
    bad = len(frames) if all(deciding) else len(judgement.figures.motion)
    feet, limbs = judgement.figures.feet, judgement.figures.limbs
    found: dict[str, Figure] = {"verdict": judgement.verdict, "findings": "; ".join(causes), "bad_frames": bad}
    for name, values, unit in (
        ("foot_slide", [foot.slide for foot in feet], 1.0),
        ("foot_depth", [foot.depth for foot in feet], 1.0),
        ("limb_deg", [limb.mean for limb in limbs], math.degrees(1.0)),
    ):
        finite = [unit * float(value) for value in values if math.isfinite(value)]
        if finite:
            found[name] = max(finite)
    return found


def _last_clip(path: Path) -> Motion:
    """Return the last clip of a file: to a copy of a model, one is added at the end."""
    from synovia.io.load import load_motions

    return load_motions(path)[-1]


def output_motion(skeleton: Skeleton, path: Path) -> Motion:
    """Return a motion of a skeleton that was written to a file; BVH files do not say which axis points up."""
    if path.suffix.lower() == ".csv":
        return read_csv(path, skeleton.with_root("free"))
    motion = _last_clip(path)
    body = motion.skeleton
    if body.up == skeleton.up:
        return motion
    upright = Skeleton(body.joints, name=body.name, meters_per_unit=body.meters_per_unit, up=skeleton.up)
    return Motion(upright, motion.q, motion.fps, name=motion.name, stretch=motion.stretch, notes=motion.notes)


@dataclass(frozen=True)
class LockFeet:
    """Hold the standing feet of a clip.

    Args:
        reader: How clips are read.
        feet: The ankles; None to find them by role or name.
        up: Axis that points up; None for that of the clip.
        blend: Seconds over which a correction fades in and out.
        verify: Whether an output that does not show the clip is a failure.
    """

    reader: ClipReader = field(default_factory=ClipReader)
    feet: Sequence[str] | None = None
    up: str | None = None
    blend: float = 0.06
    verify: bool = False
    name: ClassVar[str] = "animate"

    def settings(self) -> dict[str, Any]:
        """Return what decides about the output beside the input."""
        feet = None if self.feet is None else list(self.feet)
        return {"foot_lock": True, **self.reader.settings(), "feet": feet, "up": self.up, "blend": self.blend}

    def prepare(self) -> None:
        """Load the model and the kernels."""
        from synovia.clips import foot_lock

        self.reader.prepare()
        foot_lock(warm_clip(), up="z", threads=1)

    def locked(self, motion: Motion) -> FootLocked:
        """Return a clip with locked feet."""
        from synovia.clips import foot_lock

        return foot_lock(motion, feet=self.feet, up=self.up, blend=self.blend, threads=1)

    def work(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the clip; return its figures."""
        motion, notes = self.reader.read(item.path)
        locked = self.locked(motion)
        save_motion(locked.motion, output, into=self.reader.copied(item.path), verify=self.verify)
        names = ("slide_before", "slide", "depth_before", "depth")
        figures = {name: float(getattr(locked, name)) for name in names}
        seen = judged_alone(locked.motion, self.up)
        return {"frames": len(motion), "worst": figures["slide"], **figures, **seen, "notes": joined(notes)}

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output that holds its skeleton, beside its input."""
        return None if output.suffix.lower() == ".csv" else drawn(_last_clip(output), original(self.reader, source))


def point_errors(fitted: Fitted) -> dict[str, float]:
    """Return the median distance of the points from a fitted body, and the one that 99 % of them are within."""
    errors = fitted.errors[np.isfinite(fitted.errors)]
    return {"median_error": float(np.median(errors)), "p99_error": float(np.quantile(errors, 0.99))}


def judged_alone(
    motion: Motion, up: str | None = None, *, missed: Sequence[int] = (), fitted: Fitted | None = None
) -> dict[str, Figure]:
    """Return what the judge of clips says about a motion without an original.

    Args:
        motion: The motion.
        up: The axis that points up; None to find it.
        missed: Frames in which goals are missed.
        fitted: The fit to points that it was made from.
    """
    from synovia.retargeting import judge

    flips, errors = (None, None) if fitted is None else (fitted.flips, fitted.errors)
    return judged(judge(motion, up=up, missed=missed, flips=flips, errors=errors))


@dataclass(frozen=True)
class FitPoints:
    """Fit a body to a file of points over time.

    Args:
        model: The model: a file or the name of a bundled model; None for a body made to measure.
        pairs: Name of the point, by joint; None for all points.
        lock: How the standing feet are held afterwards; None to leave them.
        options: Further arguments of ``fit_keypoints``.
        verify: Whether an output that does not show the clip is a failure.
    """

    model: str | None
    pairs: Mapping[str, str] | None = None
    lock: LockFeet | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    verify: bool = False
    name: ClassVar[str] = "animate"

    @cached_property
    def skeleton(self) -> Skeleton | None:
        """The skeleton of the model; None for a body made to measure."""
        return None if self.model is None else load_model(self.model)

    def settings(self) -> dict[str, Any]:
        """Return what decides about the output beside the input."""
        pairs = None if self.pairs is None else dict(self.pairs)
        lock = None if self.lock is None else self.lock.settings()
        model = None if self.model is None else model_settings(self.model)
        return {"points": pairs, "model": model, "lock": lock, **self.options}

    def prepare(self) -> None:
        """Load the model; the kernels come with the first file, because a fit loads them by what the points ask."""
        _ = self.skeleton

    def work(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the motion; return its figures."""
        from synovia.clips import fit_keypoints
        from synovia.clips.pointfile import read_points

        points = read_points(item.path).chosen(self.pairs, item.path)
        options: dict[str, Any] = {**self.options, "fps": self.options.get("fps") or points.fps or 30.0}
        fitted = fit_keypoints(
            points.positions, points.joints, body=self.skeleton, offsets=points.offsets, confidence=points.confidence,
            meters_per_unit=points.meters_per_unit, name=item.path.stem, threads=1, **options,
        )  # fmt: skip
        motion = fitted if self.lock is None else self.lock.locked(fitted).motion
        seen = judged_alone(motion, fitted=fitted)
        save_motion(motion, output, into=file_of(self.model), verify=self.verify)
        errors = point_errors(fitted)
        figures = {"frames": len(fitted), **errors, "worst": errors["p99_error"], **seen}
        return {**figures, "notes": joined([*points.notes, *fitted.notes])}

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output."""
        del source  # points
        return drawn(_last_clip(output) if self.skeleton is None else output_motion(self.skeleton, output))


@dataclass(frozen=True)
class RenderFile:
    """Draw a clip.

    Args:
        reader: How clips are read.
        options: Arguments of ``render``: titles, size, fps, view, theme, look, captions, angles.
    """

    reader: ClipReader = field(default_factory=ClipReader)
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    name: ClassVar[str] = "render"

    def settings(self) -> dict[str, Any]:
        """Return what decides about the output beside the input."""
        return {**self.reader.settings(), **self.options}

    def prepare(self) -> None:
        """Load the model and what draws."""
        from synovia.draw.raster import require_pillow

        require_pillow()
        self.reader.prepare()

    def work(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the film; return its figures."""
        from synovia.draw import render

        motion, notes = self.reader.read(item.path)
        render(motion, output, jobs=1, **self.options)
        return {"frames": len(motion), "seconds": float(motion.duration), "notes": joined(notes)}

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return the sheet itself; films are not shown."""
        del source
        return Picture(output.read_bytes()) if output.suffix.lower() == ".png" else None
