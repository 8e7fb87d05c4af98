"""The tasks of the command line on one file each: retarget, convert, animate and render."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from synovia.batch.clips import judged_alone, point_errors
from synovia.batch.content import model_settings
from synovia.batch.inputs import Item
from synovia.batch.work import Figure, Picture, joined
from synovia.errors import FileError
from synovia.io.csvfile import read_csv
from synovia.io.load import formats, has_shapes, is_bundled, load_model, load_motion
from synovia.io.save import save_motion
from synovia.model import Skeleton
from synovia.model.motion import Motion

if TYPE_CHECKING:
    from synovia.clips import FootLocked

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
