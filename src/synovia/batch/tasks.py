"""The tasks of the command line on one file each: retarget, convert, animate and render."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.batch.inputs import Item
from synovia.batch.work import Figure, file_hash
from synovia.errors import FileError, FormatError, InputError
from synovia.io.csvfile import read_csv
from synovia.io.load import format_of, formats, is_bundled, load_model, load_motion
from synovia.io.save import save_motion
from synovia.model import Skeleton
from synovia.model.motion import Motion

if TYPE_CHECKING:
    from synovia.clips import FootLocked

_PICTURE: Final = (320, 180)  # pixels of each still on the summary page
_WARM_FRAMES: Final = 8  # of the clip that loads the kernels


def motion_endings() -> list[str]:
    """Return the endings of files that hold a motion by themselves."""
    return [ending for fmt in formats() if fmt.holds_motions and fmt.name != "CSV" for ending in fmt.extensions]


POINT_ENDINGS: Final = (".csv", ".npz", ".npy", ".trc", ".c3d")


def written_endings() -> list[str]:
    """Return the endings of single files that a motion can be written to."""
    known = (fmt for fmt in formats() if fmt.holds_motions and fmt.write is not None)
    return [ending for fmt in known for ending in fmt.extensions if ending != ".gltf"]


def model_settings(name: str) -> dict[str, str]:
    """Return the name of a model and the hash of its file.

    Raises:
        FileError: If there is no such file.
    """
    if is_bundled(name):
        return {"name": name}
    load_model(name)
    return {"name": Path(name).name, "sha256": file_hash(Path(name))}


def load_clip(path: Path, clip: str | None) -> Motion:
    """Return a clip of a file by name or number; None for the one that Synovia wrote last, else the first."""
    return load_motion(path, int(clip) if clip and clip.isdigit() else clip)


def drawn(motion: Motion) -> bytes:
    """Return a sheet of stills of a motion as PNG.

    Raises:
        MissingExtraError: If Pillow is not installed.
    """
    from synovia.draw import render

    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sheet.png"
            render(motion, path, size=_PICTURE)
            return path.read_bytes()
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"no temporary file can be written ({error.strerror})") from error


def warm_clip() -> Motion:
    """Return a short clip of the bundled humanoid, for loading kernels."""
    body = load_model("humanoid").with_root("free")
    return Motion(body, np.tile(body.rest_pose().q, (_WARM_FRAMES, 1)), 30.0, name="rest")


def usual_ending(target: str) -> str:
    """Return the ending of retargeted files unless another is asked for: BVH files have y up, npz files any axis."""
    return ".bvh" if load_model(target).up in (None, "y") else ".npz"


@dataclass(frozen=True)
class RetargetFile:
    """Retarget a clip to another body.

    Args:
        target: The model: a file or the name of a bundled model.
        joint_map: (source joint, target joint) by role; None to match them automatically.
        feet: Whether to correct the feet.
        clip: Name or number of the clip in a file; None for the first.
        options: Further arguments of ``retarget``.
    """

    target: str
    joint_map: Mapping[str, tuple[str, str]] | None = None
    feet: bool = True
    clip: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    name = "retarget"

    @cached_property
    def skeleton(self) -> Skeleton:
        """The skeleton of the model."""
        return load_model(self.target)

    def settings(self) -> dict[str, Any]:
        """Return what decides about the output beside the input."""
        chosen = {"feet": self.feet, "clip": self.clip, **self.options}
        if isinstance(rest := chosen.get("rest"), str) and Path(rest).is_file():
            chosen["rest"] = {"name": Path(rest).name, "sha256": file_hash(Path(rest))}
        joints = None if self.joint_map is None else {role: list(pair) for role, pair in self.joint_map.items()}
        return {"target": model_settings(self.target), "joint_map": joints, **chosen}

    def prepare(self) -> None:
        """Load the model and the kernels."""
        from synovia.retargeting import retarget

        skeleton = self.skeleton
        try:
            retarget(warm_clip(), skeleton, feet=self.feet, threads=1)
        except InputError:
            if self.joint_map is None:
                raise  # the model has no legs: every clip would fail

    def run(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the motion; return its figures."""
        from synovia.retargeting import retarget

        motion = load_clip(item.path, self.clip)
        joint_map = None if self.joint_map is None else dict(self.joint_map)
        answer = retarget(motion, self.skeleton, joint_map, feet=self.feet, threads=1, **self.options)
        into = None if is_bundled(self.target) else self.target
        save_motion(answer.motion, output, into=into)
        return {
            "frames": len(answer.motion), "missed": len(answer.missed_frames), "worst": float(answer.worst),
            "scale": float(answer.scale), **judged(answer),
        }  # fmt: skip

    def picture(self, output: Path) -> bytes | None:
        """Return a picture of an output."""
        return drawn(_output_of(self.skeleton, output))


def judged(answer: object) -> dict[str, Figure]:
    """Return the verdict of the judge of clips, its causes and its main figures, as far as the answer has them.

    Lengths are in lengths of a leg, angles in degrees.
    """
    found: dict[str, Figure] = {}
    verdict = getattr(answer, "verdict", None)
    if isinstance(verdict, str):
        found["verdict"] = verdict
    findings: Any = getattr(answer, "findings", ())
    causes = [f"{one.limb}: {one.cause}" for one in findings if getattr(one, "level", "look") != "note"]
    if causes:
        found["findings"] = "; ".join(dict.fromkeys(causes))
    figures: Any = getattr(getattr(answer, "judgement", None), "figures", None)
    for name, several, one, unit in (
        ("foot_slide", "feet", "slide", 1.0),
        ("foot_depth", "feet", "depth", 1.0),
        ("limb_deg", "limbs", "mean", math.degrees(1.0)),
    ):
        values = [
            float(value) for each in getattr(figures, several, ()) if (value := getattr(each, one, None)) is not None
        ]
        finite = [unit * value for value in values if math.isfinite(value)]
        if finite:
            found[name] = max(finite)
    return found


def _last_clip(path: Path) -> Motion:
    """Return the last clip of a file: to a copy of a model, one is added at the end."""
    from synovia.io.load import load_motions

    return load_motions(path)[-1]


def _output_of(skeleton: Skeleton, path: Path) -> Motion:
    """Return a motion of a skeleton that was written to a file; BVH files do not say which axis points up."""
    if path.suffix.lower() == ".csv":
        return read_csv(path, skeleton.with_root("free"))
    motion = _last_clip(path)
    body = motion.skeleton
    if body.up == skeleton.up:
        return motion
    upright = Skeleton(body.joints, name=body.name, meters_per_unit=body.meters_per_unit, up=skeleton.up)
    return Motion(upright, motion.q, motion.fps, name=motion.name)


@dataclass(frozen=True)
class ConvertFile:
    """Write a clip in another format.

    Args:
        clip: Name or number of the clip in a file; None for the first.
        into: The glTF whose copy gets the clip; None for the input itself.
    """

    clip: str | None = None
    into: str | None = None
    name = "convert"

    def settings(self) -> dict[str, Any]:
        """Return what decides about the output beside the input."""
        return {"clip": self.clip, "into": None if self.into is None else model_settings(self.into)}

    def prepare(self) -> None:
        """Load the kernels: positions need forward kinematics."""
        warm_clip().positions()

    def run(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the clip; return its figures."""
        motion = load_clip(item.path, self.clip)
        if output.suffix.lower() == ".glb" and self.into is None and format_of(item.path).copies is False:
            what = "a clip in glTF needs a file of this format to copy"
            raise FormatError(what, where=str(item.path), expected="--into with a .glb file")
        save_motion(motion, output, into=self.into or item.path)
        return {"frames": len(motion), "fps": float(motion.fps), "seconds": float(motion.duration)}

    def picture(self, output: Path) -> bytes | None:
        """Return None: a converted clip is as good as the original."""
        del output
        return None


@dataclass(frozen=True)
class LockFeet:
    """Hold the standing feet of a clip.

    Args:
        clip: Name or number of the clip in a file; None for the first.
        feet: The ankles; None to find them by role or name.
        up: Axis that points up; None for that of the clip.
        blend: Seconds over which a correction fades in and out.
    """

    clip: str | None = None
    feet: Sequence[str] | None = None
    up: str | None = None
    blend: float = 0.06
    name = "animate"

    def settings(self) -> dict[str, Any]:
        """Return what decides about the output beside the input."""
        feet = None if self.feet is None else list(self.feet)
        return {"foot_lock": True, "clip": self.clip, "feet": feet, "up": self.up, "blend": self.blend}

    def prepare(self) -> None:
        """Load the kernels."""
        from synovia.clips import foot_lock

        foot_lock(warm_clip(), up="z", threads=1)

    def locked(self, motion: Motion) -> FootLocked:
        """Return a clip with locked feet."""
        from synovia.clips import foot_lock

        return foot_lock(motion, feet=self.feet, up=self.up, blend=self.blend, threads=1)

    def run(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the clip; return its figures."""
        motion = load_clip(item.path, self.clip)
        locked = self.locked(motion)
        save_motion(locked.motion, output, into=item.path)
        names = ("slide_before", "slide", "depth_before", "depth")
        figures = {name: float(getattr(locked, name)) for name in names}
        return {"frames": len(motion), "worst": figures["slide"], **figures}

    def picture(self, output: Path) -> bytes | None:
        """Return a picture of an output that holds its skeleton."""
        return None if output.suffix.lower() == ".csv" else drawn(_last_clip(output))


@dataclass(frozen=True)
class FitPoints:
    """Fit a body to a file of points over time.

    Args:
        model: The model: a file or the name of a bundled model; None for a body made to measure.
        pairs: Name of the point, by joint; None for all points.
        lock: How the standing feet are held afterwards; None to leave them.
        options: Further arguments of ``fit_keypoints``.
    """

    model: str | None
    pairs: Mapping[str, str] | None = None
    lock: LockFeet | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    name = "animate"

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

    def run(self, item: Item, output: Path) -> Mapping[str, Figure]:
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
        save_motion(motion, output, into=None if self.model is None or is_bundled(self.model) else self.model)
        seen = fitted.errors[np.isfinite(fitted.errors)]
        far = float(np.quantile(seen, 0.99))
        return {"frames": len(fitted), "median_error": float(np.median(seen)), "p99_error": far, "worst": far}

    def picture(self, output: Path) -> bytes | None:
        """Return a picture of an output."""
        return drawn(_last_clip(output) if self.skeleton is None else _output_of(self.skeleton, output))


@dataclass(frozen=True)
class RenderFile:
    """Draw a clip.

    Args:
        clip: Name or number of the clip in a file; None for the first.
        options: Arguments of ``render``: titles, size, fps, view, theme.
    """

    clip: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    name = "render"

    def settings(self) -> dict[str, Any]:
        """Return what decides about the output beside the input."""
        return {"clip": self.clip, **self.options}

    def prepare(self) -> None:
        """Load what draws."""
        from synovia.draw.raster import require_pillow

        require_pillow()

    def run(self, item: Item, output: Path) -> Mapping[str, Figure]:
        """Write the film; return its figures."""
        from synovia.draw import render

        motion = load_clip(item.path, self.clip)
        render(motion, output, jobs=1, **self.options)
        return {"frames": len(motion), "seconds": float(motion.duration)}

    def picture(self, output: Path) -> bytes | None:
        """Return the sheet itself; films are not shown."""
        return output.read_bytes() if output.suffix.lower() == ".png" else None
