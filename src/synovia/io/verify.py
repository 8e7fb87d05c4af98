"""Read a written file back and compare its joint positions with those in memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synovia.errors import InputError, MissingExtraError, SynoviaError
from synovia.io.base import FLOAT_ROUNDING, SAME, SAME_TIME, Format, Shown, as_path
from synovia.io.load import clip_number, load_clips, load_model
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.rates import usual_rate
from synovia.model.root import root_of
from synovia.text import Report, counted, listed, plain


@dataclass(frozen=True, slots=True)
class FileCheck:
    """Differences between a file and the content from which it was written.

    Args:
        path: The file.
        difference: Largest distance between a joint's position in the file and in memory, length units.
        allowed: Largest difference that counts as rounding: 1e-6 of the body's size, and 2⁻²³ of the largest
            coordinate.
        joint: The joint with the largest difference; empty if no joint could be compared.
        frame: Frame of the largest difference.
        problems: Sentences about other differences: frames, rate, joints.

    Example:
        >>> import synovia as sy
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "clip.bvh"
        >>> body = sy.bundled("humanoid")
        >>> clip = sy.Motion(body, [body.random_pose(seed).q for seed in range(3)], 30.0)
        >>> sy.save_motion(clip, path)
        >>> check = sy.formats.verify_file(clip, path)
        >>> check.holds, check.difference < 1e-9
        (True, True)
    """

    path: Path
    difference: float
    allowed: float
    joint: str = ""
    frame: int = 0
    problems: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the file agrees with the content in memory."""
        return not self.problems and self.difference <= self.allowed  # False for NaN

    def report(self) -> Report:
        """Return whether the file matches the data in memory, and how it differs."""
        text = " ".join(self.problems)
        if self.joint and self.holds:
            text = f"The file matches the data in memory: joints differ by at most {self.difference:.2g}."
        elif self.joint and not self.difference <= self.allowed:
            far = f"joint {self.joint!r} is {self.difference:.3g} from its position in memory in frame {self.frame}"
            text = " ".join([*self.problems, f"The file differs: {far}."])
        return Report(
            [text], {"path": str(self.path), **plain(self, "holds", "difference", "joint", "frame", "problems")}
        )


def check_motion(motion: Motion, path: str | os.PathLike[str], fmt: Format) -> FileCheck:
    """Read a motion back from the file to which it was written, and compare the motion with the original.

    If the format has a function ``shown``, this function gives the positions. Then the reader only gives frames and
    rate to compare, if its package is installed.

    Args:
        motion: The motion.
        path: The file.
        fmt: Format of the file.
    """
    where = as_path(path)
    try:
        if fmt.shown is None:
            shown, read = _by_name(motion, where, fmt), None
        else:
            shown, read = fmt.shown(where, motion), _read_back(where)
    except SynoviaError as error:
        return FileCheck(where, np.inf, 0.0, problems=(f"The file cannot be read back: {error}.",))
    problems = [*shown.problems, *_timing(motion, len(shown.places), shown.times)]
    if read is not None and not problems:
        problems = _timing(motion, len(read), read.times)
    frames = min(len(shown.places), len(motion))
    own = motion.positions()[:frames, shown.rows]
    return _compared(where, own, shown.places[:frames], motion.skeleton, shown.rows, problems)


def check_skeleton(skeleton: Skeleton, path: str | os.PathLike[str]) -> FileCheck:
    """Read a skeleton back from the file to which it was written, and compare rest pose, joints and limits."""
    where = as_path(path)
    try:
        back = load_model(where)
    except SynoviaError as error:
        return FileCheck(where, np.inf, 0.0, problems=(f"The file cannot be read back: {error}.",))
    problems: list[str] = []
    if [(j.name, j.kind) for j in back.joints] != [(j.name, j.kind) for j in skeleton.joints]:
        problems.append("The joints of the file have other names or kinds.")
    elif back.parents != skeleton.parents:
        problems.append("The joints of the file have other parents.")
    if problems:
        return FileCheck(where, np.inf, 0.0, problems=tuple(problems))
    for low, own in zip(back.limits, skeleton.limits, strict=True):
        if not np.array_equal(low, own):
            problems.append("The limits in the file differ.")
            break
    rows = list(range(len(skeleton)))
    own, shown = skeleton.rest_pose().positions[None], back.rest_pose().positions[None]
    return _compared(where, own, shown, skeleton, rows, problems)


def check_places(path: Path, skeleton: Skeleton, own: Array, shown: Array, rows: list[int]) -> FileCheck:
    """Compare the positions of some joints in one pose, (rows, 3), with those in a file; return the differences."""
    return _compared(path, own[None], shown[None], skeleton, rows, [])


def _compared(
    where: Path, own: Array, back: Array, skeleton: Skeleton, rows: list[int], problems: list[str]
) -> FileCheck:
    """Return a ``FileCheck`` with the largest difference of positions (T, rows, 3)."""
    allowed = SAME * (skeleton.size or 1.0) + FLOAT_ROUNDING * float(np.abs(own).max(initial=0.0))
    if not own.size:
        return FileCheck(where, 0.0, allowed, problems=tuple(problems or ["No joint could be compared."]))
    off = np.linalg.norm(own - back, axis=-1)
    frame, at = np.unravel_index(int(np.argmax(off)), off.shape)  # NaN counts as the largest
    joint = skeleton.joint_names[rows[int(at)]]
    return FileCheck(where, float(off.max()), allowed, joint, int(frame), tuple(problems))


def _timing(motion: Motion, count: int, times: Array | None) -> list[str]:
    """Return a sentence if the number or the times of frames differ from a motion; ``times`` is None if unknown."""
    if count != len(motion):
        return [f"The file has {counted(count, 'frame')} instead of {len(motion)}."]
    if times is None or count < 2:
        return []
    slack = SAME_TIME * len(motion) + FLOAT_ROUNDING * motion.fps * float(np.abs(times).max())
    for fps in (motion.fps, usual_rate(motion.fps).fps):  # readers replace a rounded rate by the usual rate
        if np.abs((times - times[0]) * fps - np.arange(count)).max() <= slack:
            return []
    rate = (len(motion) - 1) / max(float(times[-1] - times[0]), 1e-300)
    return [f"The file plays at {rate:.6g} frames per second instead of {motion.fps:.6g}."]


def _clip_of(path: Path, onto: Skeleton | None) -> Motion:
    """Return the main motion of a file."""
    clips = load_clips(path, onto)
    if not clips.motions:
        raise InputError("file has no motion", where=str(path))
    return clips.motions[clip_number(clips.motions, clips.shown or 0, str(path))]


def _read_back(path: Path) -> Motion | None:
    """Return the motion that the file's reader returns; None if the reader's package is not installed."""
    try:
        return _clip_of(path, None)
    except MissingExtraError:
        return None


def _by_name(motion: Motion, path: Path, fmt: Format) -> Shown:
    """Return the positions that the file's reader returns, for joints with the same names.

    A file without a skeleton is read with the motion's skeleton. Joints of a moving root may be additional or missing.
    """
    back = _clip_of(path, None if fmt.read_onto is None else motion.skeleton)
    number = {name: row for row, name in enumerate(back.skeleton.joint_names)}
    names = motion.skeleton.joint_names
    rows = [row for row, name in enumerate(names) if name in number]
    lacking = [name for name in names if name not in number]
    problems = [f"The file lacks joints {listed(lacking)}."] if lacking and root_of(lacking) is None else []
    places = back.positions()[:, [number[names[row]] for row in rows]]
    return Shown(rows, places, back.times, tuple(problems))
