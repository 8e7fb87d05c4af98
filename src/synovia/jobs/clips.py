"""Shared options and functions of jobs with clips: read clips and models, write clips, draw pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from synovia.errors import FileError, InputError, UnsupportedError
from synovia.jobs.base import Host
from synovia.jobs.job import Job
from synovia.jobs.options import ALWAYS, NEVER, NUMBER, File, Number, Parsed, described, option
from synovia.jobs.shared import LOOPS, MODEL
from synovia.text import UNITS, counted

if TYPE_CHECKING:
    from synovia.batch.work import Picture
    from synovia.clips import Ends
    from synovia.io.verify import FileCheck
    from synovia.model import Skeleton
    from synovia.model.motion import Motion

INSTEAD: Final = "'synovia animate FILE --goals TRACK -o OUT' makes a clip of a model"
NO_FILE: Final = "no file was written; -o OUT.bvh (.glb, .fbx, .npz, .csv) saves the motion"
_PICTURE: Final = (144, 190)  # pixels of a body in a still on the summary page
_STILLS: Final = 4
_SEEN: Final = 1e-6  # radians or length units; smaller changes by closing loops are not reported
_WARM_FRAMES: Final = 8  # number of frames of the clip that loads the kernels


@described
class Looped:
    """Loops that a file adds to a model."""

    loops: Path | None = option(default=None, like=LOOPS)


@described
class ClipReader(Looped):
    """Options that choose the clip of a file, and how to read it."""

    clip: str | int | None = option(
        default=None, help="Name or number of the clip in the file.",
        metavar="NAME|N", shown="the last that Synovia wrote, else the first", recorded=ALWAYS,
    )  # fmt: skip
    model: str | None = option(
        default=None, like=MODEL, help="Model of the clip; a CSV needs it, because it holds only joint values.",
        recorded=ALWAYS,
    )  # fmt: skip
    trim: bool = option(
        default=False, help="Cut off frames in a T-pose, or in the file's rest pose, at both ends.",
        names=("--trim-tpose",), recorded=ALWAYS,
    )  # fmt: skip

    @cached_property
    def _own_body(self) -> Skeleton | str | None:
        """The skeleton of the model; the name of its file if the skeleton depends on the shape parameters of a clip."""
        from synovia.io.load import has_shapes, load_model

        if self.model is None or has_shapes(self.model):
            return self.model
        return load_model(self.model, loops=self._loops_of_clip)

    @property
    def _loops_of_clip(self) -> Path | None:
        """The file of loops of the clip's body; None if the file describes another body."""
        return self.loops

    @property
    def number(self) -> str | int | None:
        """The option ``clip`` as an integer if it is a number, else unchanged."""
        return int(self.clip) if isinstance(self.clip, str) and NUMBER.fullmatch(self.clip) else self.clip

    def open_model(self, host: Host) -> None:
        """Load the model, and report its notes."""
        from synovia.model import Skeleton

        if isinstance(self._own_body, Skeleton):
            host.note_model(self._own_body.notes)

    def read(self, path: str | Path, host: Host, instead: str = INSTEAD) -> tuple[Motion, Ends]:
        """Read the clip of a file, and find the calibration frames at its ends, which ``trim`` cuts off.

        Args:
            path: The file.
            host: Gets notes on ignored parts of the file and on the calibration frames.
            instead: Hint of the error message for a file without motion.

        Raises:
            SynoviaError: If the file cannot be read, has no motion, or has no clip of this name or number.
        """
        from synovia.clips import find_ends

        motion = self._read(path, host, instead)
        ends = find_ends(motion)
        for note in ends.notes:
            report_end(host, motion, note, cut=self.trim)
        return (ends.of(motion) if self.trim else motion), ends

    def read_pair(self, path: str | Path, other_path: str | Path, host: Host) -> tuple[Motion, Motion]:
        """Read the clip of a file and the clip to show next to it, both from the same frame on; see ``read``.

        If the other file has several clips, the clip with the same name is preferred.
        """
        from synovia.clips import find_shared_ends

        own = self._read(path, host, INSTEAD)
        other = ClipReader(model=self.model if needs_model(other_path) else None)
        pair = own, other._read(other_path, host, INSTEAD, like=own.name)
        first, second = find_shared_ends(*pair, trim=self.trim)
        for motion, own in zip(pair, (first, second), strict=True):
            cut = own.end - own.first < len(motion)
            for note in own.notes:
                report_end(host, motion, note, cut=cut)
            if cut and not own.notes:
                host.say(f"only frames {own.first} to {own.end - 1} are used, to match the other clip", motion.name)
        return first.of(pair[0]), second.of(pair[1])

    def _read(self, path: str | Path, host: Host, instead: str, like: str | None = None) -> Motion:
        """Read the clip of a file, with its calibration frames; prefer the clip named ``like`` if there is one."""
        from synovia.io.load import format_of, is_bundled, load_motion, load_motions
        from synovia.model import Skeleton

        name = str(path)
        if is_bundled(name):
            raise UnsupportedError("a bundled model has no motion", where=name, hint=instead)
        self.open_model(host)
        try:
            number = self.number
            if number is None and like is not None and not needs_model(path):
                number = next((motion.name for motion in load_motions(path) if motion.name == like), None)
            motion = load_motion(path, number, skeleton=self._own_body)
            if self._loops_of_clip is not None and not isinstance(self._own_body, Skeleton):
                motion = tied_clip(motion, self._loops_of_clip)
        except UnsupportedError as error:
            if format_of(Path(path)).holds_motions:
                raise
            raise UnsupportedError(error.what, where=error.where, expected=error.expected, hint=instead) from error
        if self.model is None:
            host.note(motion.skeleton.notes)
        else:
            host.note_model(motion.skeleton.notes)
        host.note(motion.notes, motion.name)
        return motion

    def copied(self, path: Path) -> Path | str:
        """Return the file to copy when a changed clip is written: the model's file, else the clip's file."""
        return file_of(self.model) or path


@described
class ClipJob(ClipReader, Job):
    """A job that reads clips."""

    def open(self, host: Host) -> None:
        """Load the models, and report their notes."""
        self.open_model(host)

    def endings(self) -> Sequence[str]:
        """Return the endings of the files to read from folders."""
        return motion_endings(on_model=self.model is not None)

    def original(self, source: Path | None) -> Motion | None:
        """Read the clip that an output was made from, for its picture; None if the file no longer exists."""
        return None if source is None or not source.is_file() else self.read(source, Host())[0]


@described
class Roles(Looped):
    """Option for a file that names the parts of the body."""

    roles: Path | None = option(
        default=None, help='Parts of the body, TOML or JSON: lines such as left_hand = "Wrist.L".',
        kind=File(), metavar="FILE", shown="detected", single="input",
    )  # fmt: skip

    @cached_property
    def _bodies(self) -> dict[str, Skeleton]:
        """Cache of loaded models by name."""
        return {}

    def load_body(self, name: str, host: Host) -> Skeleton:
        """Return the skeleton of a file or of a bundled model with these roles and loops, and report its notes.

        Raises:
            SynoviaError: If a file cannot be read.
        """
        if name not in self._bodies:
            self._bodies[name] = body_of(name, host, self.roles, self.loops)
        host.note_model(self._bodies[name].notes)
        return self._bodies[name]


@described
class Verified:
    """Option to verify written files by reading them back."""

    verify: bool = option(
        default=False, help="Read the written file back, and exit with 1 if joints are elsewhere than in memory.",
        recorded=NEVER, rank=1,
    )  # fmt: skip

    def compare(
        self, check: Callable[[Any, Path], FileCheck], content: Any, path: Path, host: Host
    ) -> FileCheck | None:
        """Compare a written file with the content in memory, and report the result; None without ``verify``."""
        found = check(content, path) if self.verify else None
        if found is not None:
            host.compared(found)
        return found


def _unit(text: object) -> object:
    """Return the name of a length unit, or its length in metres."""
    if text in UNITS:
        return text
    try:
        return Number(0.0, above=True).of(text)
    except InputError as error:
        expected = f"{', '.join(UNITS)}, or a length in metres"
        raise InputError("", value=text, expected=expected) from error


@described
class Saved(Verified):
    """Options for jobs that write clips."""

    unit: str | float | None = option(
        default=None, help="Length unit of a skeleton whose file does not define it (BVH); GLB, FBX and VRMA need it.",
        kind=Parsed(_unit), metavar="m|cm|mm|in|ft|METRES", shown="one in which a humanoid is as tall as a person",
    )  # fmt: skip

    def save(self, motion: Motion, path: Path, into: str | Path | None, host: Host) -> FileCheck | None:
        """Write a clip, report losses of the format, and return the comparison with memory; None without ``verify``."""
        from synovia.io.save import motion_in, verify_motion, write_motion, writer_of

        try:
            notes = write_motion(motion_in(motion, self.unit), path, into=into, force=host.force)
        except InputError:
            if not writer_of(path)[0].stands:
                raise
            from synovia.retargeting import stand_at_rest

            motion = stand_at_rest(motion)
            notes = [
                "The body does not stand in its rest pose, so the file has the rest pose that 'synovia retarget' finds."
            ]
            notes += write_motion(motion_in(motion, self.unit), path, into=into, force=host.force)
        host.wrote(path, notes)
        return self.compare(verify_motion, motion, path, host)


def report_end(host: Host, motion: Motion, note: str, *, cut: bool) -> None:
    """Report the calibration frames of a clip, and whether they are cut off."""
    host.say(f"{note} ({'cut off' if cut else '--trim-tpose cuts this off'})", motion.name)


def body_of(name: str, host: Host, roles: Path | None = None, loops: Path | None = None) -> Skeleton:
    """Return the skeleton of a file or of a bundled model, and report its notes.

    Args:
        name: The file or the bundled model.
        host: Gets the notes on ignored parts of the file.
        roles: File of roles for the joints; None for the roles of the model's file.
        loops: File of additional loops; None for the file of loops next to the model's file, if there is one.

    Raises:
        SynoviaError: If a file cannot be read.
    """
    from synovia.io.load import load_model

    skeleton = load_model(name, loops=loops)
    host.note_model(skeleton.notes)
    return with_roles(skeleton, roles)


def tied_clip(motion: Motion, loops: Path) -> Motion:
    """Add the loops of a file to the body of a clip and close them in each frame; a note reports the largest change."""
    import numpy as np

    from synovia.io.toml.loops import with_loops_of
    from synovia.model.motion import Motion
    from synovia.model.pose import clamped

    body, q, notes = with_loops_of(motion.skeleton, loops), np.array(motion.q), list(motion.notes)
    if body.mechanism is not None:
        shut = body.mechanism.shut_clip(clamped(body, q))
        far = np.abs(shut - q).max(axis=1)
        if (far > _SEEN).any():
            frames = counted(int((far > _SEEN).sum()), "frame")
            notes.append(
                f"The loops of {loops} were closed in {frames}; a joint value changed by up to {far.max():.3g}."
            )
        q = np.where((far > 0.0)[:, None], shut, q)
    return Motion(body, q, motion.fps, name=motion.name, stretch=motion.stretch, notes=notes)


def with_roles(skeleton: Skeleton, roles: Path | None) -> Skeleton:
    """Return a skeleton with the roles of a file; without a file, return the skeleton unchanged."""
    if roles is None:
        return skeleton
    from synovia.files.roles import with_roles_of

    return with_roles_of(skeleton, roles)


def needs_model(path: str | Path) -> bool:
    """Return whether a clip file holds no skeleton and so needs ``--model``."""
    from synovia.io.load import format_of

    return format_of(Path(path)).read_onto is not None


def file_of(model: str | None) -> str | None:
    """Return the file of a model, which the format of an output may copy; None for a bundled model."""
    from synovia.io.load import is_bundled

    return None if model is None or is_bundled(model) else model


def motion_endings(*, on_model: bool = False) -> list[str]:
    """Return the endings of files that hold a motion; with ``on_model``, also those that need a model."""
    from synovia.io.load import formats

    known = (fmt for fmt in formats() if fmt.holds_motions and (on_model or fmt.read_onto is None))
    return [ending for fmt in known for ending in fmt.extensions]


def written_endings() -> list[str]:
    """Return the endings of single files that a motion can be written to."""
    from synovia.io.load import formats

    known = (fmt for fmt in formats() if fmt.holds_motions and fmt.write is not None)
    return [ending for fmt in known for ending in fmt.extensions if ending != ".gltf"]


def usual_ending_of(target: str) -> str:
    """Return the default ending for clips of a body: .bvh if y is up, else .npz, which allows any up axis."""
    from synovia.io.load import load_model

    return ".bvh" if load_model(target).up in (None, "y") else ".npz"


def warm_clip() -> Motion:
    """Return a short clip of the bundled humanoid, for loading kernels."""
    import numpy as np

    from synovia.io.load import load_model
    from synovia.model.motion import Motion

    body = load_model("humanoid").with_root("free")
    return Motion(body, np.tile(body.rest_pose().q, (_WARM_FRAMES, 1)), 30.0, name="rest")


def written_clip(path: Path) -> Motion:
    """Read the clip that was written to a file; a copy of a model may hold other clips, too."""
    from synovia.io.load import load_clips

    clips = load_clips(path)
    return clips.motions[clips.shown or 0]


def output_motion(skeleton: Skeleton, path: Path) -> Motion:
    """Read a motion of a skeleton from an output; the up axis is the skeleton's, because BVH files have none."""
    from synovia.io.csvfile import read_csv
    from synovia.model import Skeleton
    from synovia.model.motion import Motion

    if path.suffix.lower() == ".csv":
        return read_csv(path, skeleton.with_root("free"))
    motion = written_clip(path)
    body = motion.skeleton
    if body.up == skeleton.up:
        return motion
    upright = Skeleton(body.joints, name=body.name, meters_per_unit=body.meters_per_unit, up=skeleton.up)
    return Motion(upright, motion.q, motion.fps, name=motion.name, stretch=motion.stretch, notes=motion.notes)


def drawn(motion: Motion, source: Motion | None = None) -> Picture:
    """Return a picture of a few stills of a motion, each to the right of the original's still if there is an original.

    Raises:
        MissingExtraError: If Pillow is not installed.
    """
    import tempfile

    from synovia.batch.work import Picture
    from synovia.draw import render
    from synovia.model.motion import Motion

    clips = [motion] if source is None else [motion, source]
    few = [Motion(each.skeleton, each.q[_stills(len(each))], 1.0, name=each.name) for each in clips]
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sheet.png"
            width, height = _PICTURE
            size = (width * len(few), height)
            titles = [""] * len(few)  # titles would be too small to read
            render(few[0], path, next_to=few[1] if few[1:] else None, titles=titles, size=size, captions=False)
            return Picture(path.read_bytes(), source is not None)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot write a temporary file ({error.strerror})") from error


def _stills(frames: int) -> list[int]:
    """Return the frames to show, in the middle of equal parts of the clip."""
    return [frames * (2 * k + 1) // (2 * _STILLS) for k in range(min(_STILLS, frames))]
