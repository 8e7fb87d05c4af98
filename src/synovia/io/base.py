"""Helpers that all file formats share: safe reading, atomic writing, and the description of a format."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FileError, FormatError, InputError, MissingExtraError, install_command
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.rates import RATES, Rate, is_rate, rate_of_times, usual_rate
from synovia.text import DOUBT, first_few, listed

NO_SHAPES: Final = "Shapes were not kept"  # beginning of notes about shapes
OF_LOOPS: Final = ".loops.toml"  # ending of the file with the loops of a model
SAME: Final = 1e-6  # fraction of the body's size: positions that differ more from those in the file are reported
SAME_TIME: Final = 1e-6  # largest rounding error: of a rate (relative), and of a key time (in frames)
FLOAT_ROUNDING: Final = 2.0**-23  # relative rounding of float32, for files with such values
# Hint about commands for points over time, for messages about files that hold points and no motion:
OF_POINTS: Final = (
    "for points over time, use 'synovia retarget' (a hand: array 'joints' (T, 21, 3)) or 'synovia animate --points'"
    " (other points: array 'positions' (T, K, 3), tables, marker files)"
)
LARGEST_FILE: Final = 2**30  # largest size of a file, bytes; readers need several times as much memory
FREE_NUMBERS: Final = 2**23  # number of values that any file may describe, however small; 64 MiB as float64
_UNEVEN: Final = 0.2  # fraction of the mean time step; smaller deviations of a step count as rounding
_PER_FRAME: Final = 0.1  # frames per second: smaller values may be seconds per frame, given by mistake
NUMBERS_A_BYTE: Final = 4  # values that a file may describe for each of its bytes, in addition to ``FREE_NUMBERS``


class Contents(NamedTuple):
    """The contents of a file.

    Args:
        skeleton: The skeleton; the file is its ``source``.
        motions: Function that returns all motions; decoding them may take much longer than reading the skeleton.
        shown: Index of the main motion of the file, which is played by default; None if the file is mainly a model.
        fitted: Function that returns the skeleton with the body shape that a motion file describes; None for models of
            one shape.
    """

    skeleton: Skeleton
    motions: Callable[[], list[Motion]] = list[Motion]
    shown: int | None = None
    fitted: Callable[[Path], Skeleton] | None = None


def _nothing(motion: Motion) -> Sequence[str]:
    """Return no sentences, because files of the format hold all parts of a motion."""
    return ()


class Shown(NamedTuple):
    """Positions at which other programs show the joints of a motion when they play a file.

    Args:
        rows: Rows of the motion's skeleton whose joints are in the file.
        places: World positions of these joints, (T, rows, 3), length units.
        times: Time of each frame, (T,), seconds; None if the file has no rate.
        problems: Sentences about missing joints and other differences.
    """

    rows: list[int]
    places: Array
    times: Array | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: how to recognise, read and write its files.

    A new format is one module or package of ``synovia.io`` with a ``FORMAT``, and its name in ``synovia.io.load``.

    Args:
        name: Name for messages.
        extensions: Endings of file names, in lower case with the dot.
        looks_like: Returns whether the first few thousand bytes of a file are of this format. For an archive, its last
            few thousand bytes, which list its members, are appended.
        read: Reads a file.
        write: Writes a file: ``write(content, path, force=...)``, with ``into=`` if the format ``copies``. The content
            is a motion if the format ``holds_motions``, else a skeleton. It may return sentences about what it left out
            or assumed. None if the format cannot be written.
        holds_motions: Whether a file can hold motions.
        holds_loops: Whether a file of motions holds the loops of their skeleton.
        copies: Whether a motion is added to a copy of the file that its skeleton came from, ``into``.
        makes_new: Whether a motion can be written to a new file too. ``into`` is then None, and ``skin=`` is the skin
            of the body, or None.
        check: Checks, before any work, whether the file name suits the output: ``check(path, into)``; ``into`` is None
            for a new file. None if all names are allowed.
        read_skin: Reads the skin of a character, which formats with ``makes_new`` can write.
        read_onto: Reads the motion of a file that does not hold its skeleton: ``read_onto(path, skeleton)``. None if
            the files hold their skeletons.
        read_with: Reads a file together with a file that lists the links that may touch: ``read_with(path, pairs)``.
            None if the format has no such files.
        companions: Returns the paths of other files that a file refers to, such as included models, buffers, images and
            meshes; for a missing file, the first path that is tried. None if files refer to no others.
        stands: Whether the rest pose of a body has to stand upright.
        chooses: Whether a file may have only some joints of a motion: ``write(..., joints=rows)``, in this order.
        lacks: Returns sentences about parts of a motion that a file cannot hold.
        shown: Returns the positions at which a file shows the joints of the motion written to it: ``shown(path,
            motion)``. None if reading the file and matching joint names gives them.
        write_pose: Writes a pose: ``write_pose(pose, path, into=..., skin=..., force=...)``; like ``write``, it may
            return sentences. None if the format has no poses.
        read_pose: Reads a pose of a skeleton: ``read_pose(path, skeleton)``.
        keeps: Parts of a body and its motion that a file keeps, for the table of formats; Markdown.
        extra: The extra that the format needs; empty for none.
        shown_pose: Returns the skeleton rows that a file has, and their positions without a clip, (rows, 3):
            ``shown_pose(path, skeleton)``.
    """

    name: str
    extensions: tuple[str, ...]
    looks_like: Callable[[bytes], bool]
    read: Callable[[Path], Contents]
    write: Callable[..., Iterable[str] | None] | None = None
    holds_motions: bool = False
    holds_loops: bool = False
    copies: bool = False
    makes_new: bool = False
    check: Callable[[Path, Path | None], None] | None = None
    read_skin: Callable[[Path], Any] | None = None
    read_onto: Callable[[Path, Skeleton], Motion] | None = None
    read_with: Callable[[Path, Path], Contents] | None = None
    companions: Callable[[Path], Iterable[Path]] | None = None
    stands: bool = False
    chooses: bool = False
    lacks: Callable[[Motion], Sequence[str]] = _nothing
    shown: Callable[[Path, Motion], Shown] | None = None
    write_pose: Callable[..., Iterable[str] | None] | None = None
    read_pose: Callable[[Path, Skeleton], Pose] | None = None
    shown_pose: Callable[[Path, Skeleton], tuple[list[int], Array]] | None = None
    keeps: str = ""
    extra: str = ""

    @classmethod
    def without_skeleton(
        cls,
        name: str,
        extensions: tuple[str, ...],
        looks_like: Callable[[bytes], bool],
        read_onto: Callable[[Path, Skeleton], Motion],
        write: Callable[..., None] | None = None,
        *,
        what: str,
        hint: str,
        lacks: Callable[[Motion], Sequence[str]] | None = None,
        check: Callable[[Path], None] | None = None,
        keeps: str = "",
        chooses: bool = False,
    ) -> Format:
        """Return a format whose files hold a motion without its skeleton.

        Args:
            name: Name for messages.
            extensions: Endings of file names.
            looks_like: Returns whether bytes are of this format.
            read_onto: Reads the motion.
            write: Writes a motion.
            what: Name of such a file, with its article, for the error message if no skeleton is given.
            hint: How to give the skeleton, for this message.
            lacks: Returns sentences about parts of a motion that a file cannot hold, other than animated scale.
            check: Raises an error for a file that is not of the format; called when no skeleton is given.
            keeps: Parts of a motion that a file keeps, for the table of formats.
            chooses: Whether a file may have only some joints of a motion.
        """

        def read(path: Path) -> NoReturn:
            if check is not None:
                check(path)
            raise FormatError(f"{what} contains no skeleton", where=str(path), hint=hint)

        def all_lacks(motion: Motion) -> list[str]:
            scale = [] if motion.stretch is None else ["The file cannot hold animated scale."]
            return [*scale, *(() if lacks is None else lacks(motion))]

        return cls(
            name, extensions, looks_like, read, write, holds_motions=True, read_onto=read_onto, lacks=all_lacks,
            keeps=keeps, chooses=chooses,
        )  # fmt: skip

    @property
    def reads(self) -> str:
        """Contents that are read from a file, for the table of formats."""
        if self.read_onto is not None:
            return "motion, onto a model"
        return "skeleton, motion" if self.holds_motions else "skeleton"

    @property
    def writes(self) -> str:
        """Contents that are written to a file, for the table of formats; empty for none."""
        if self.write is None:
            return ""
        if not self.holds_motions:
            return "skeleton"
        if self.read_onto is not None:
            return "motion"
        into = "into a copy or a new file" if self.makes_new else "into a copy"
        return f"skeleton, motion ({into})" if self.copies else "skeleton, motion"

    def names(self, path: Path) -> bool:
        """Return whether the name of a file has an ending of this format."""
        return path.name.lower().endswith(self.extensions)


_TEXTS: Final = {  # patterns of texts that are the content of a file, by format
    "XML": re.compile(r"\s*<[?!\w].*>\s*", re.DOTALL),
    "JSON": re.compile(r"\s*(\{\s*\}|\{\s*\".*\}|\[\s*[\[{\"].*\])\s*", re.DOTALL),
    "BVH": re.compile(r"\s*HIERARCHY\s+ROOT\s.*", re.DOTALL),
    "TOML": re.compile(r"(.*\n)?\s*(schema\s*=\s*[\"']|\[\[?\w+\]\]?\s*\n).*", re.DOTALL),
}


def _content_of(path: object) -> str | None:
    """Return the format of a text that is the content of a file instead of its path; None for a path."""
    text = path.decode(errors="replace") if isinstance(path, bytes) else path
    if not isinstance(text, str):
        return None
    kind = next((kind for kind, form in _TEXTS.items() if form.fullmatch(text)), None)
    if kind is None:
        return None
    try:
        exists = os.path.lexists(text)
    except (OSError, ValueError):
        exists = False
    return None if exists else kind


def as_path(path: str | os.PathLike[str]) -> Path:
    """Return the argument as a path.

    Raises:
        FileError: If the operating system allows no file of that name.
        InputError: If the argument is neither text nor a path, or is the content of a file.
    """
    if kind := _content_of(path):
        hint = f"this is the text of a file ({kind}); write it to a file, and pass the path of that"
        raise InputError("path", value=path, expected="the path of a file", hint=hint)
    try:
        if b"\0" in os.fsencode(path):
            raise FileError("no file can have this name", value=path, hint="it contains a null byte")
        return Path(path)
    except UnicodeEncodeError as error:
        raise FileError("no file can have this name", value=path, hint="it is not valid Unicode") from error
    except TypeError as error:
        raise InputError("path is not a path", value=path, expected="text or a pathlib.Path") from error


def optional_package(name: str, purpose: str, extra: str, where: str | None = None) -> Any:
    """Import and return a package that an extra installs.

    Args:
        name: The package.
        purpose: Reason why it is needed, for the message.
        extra: The extra that installs it, such as ``"data"``.
        where: The file, for the message.

    Raises:
        MissingExtraError: If the package is not installed, or cannot be imported.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == name.partition(".")[0]:
            raise MissingExtraError(purpose, where=where, hint=f"run {install_command(extra)}") from error
        reason: Exception = error
    except Exception as error:  # noqa: BLE001 - packages of other versions, or broken binaries, raise anything
        reason = error
    said = " ".join(f"{type(reason).__name__}: {reason}".split())
    what = f"{purpose}, which is installed but cannot be imported ({said})"
    command = install_command(extra).replace("pip install", "pip install --upgrade", 1)
    raise MissingExtraError(what, where=where, hint=f"install versions that fit each other: {command}") from reason


def immovable_note(values: Mapping[str, float]) -> str:
    """Return a note about hinges and slides that cannot move, given their only values (radians, lengths) by name."""
    joints = first_few([f"{name!r} (at {value:.4g})" for name, value in values.items()])
    return f"Joints that cannot move, because their limits leave one value: {joints}."


def resting_notes(skeleton: Skeleton, given: Sequence[int], q: Array) -> list[str]:
    """Return a note about joints that stay at rest, because a motion file has no values for them.

    Args:
        skeleton: The skeleton.
        given: Columns of q that the file gives.
        q: Joint values (T, nq) with the other columns at rest; values of mimic joints are set in place.
    """
    missing = np.ones(skeleton.nq, bool)
    missing[list(given)] = False
    if not missing.any():
        return []
    q[:, missing] = skeleton.follow(q.copy())[:, missing]
    joints = enumerate(zip(skeleton.joint_names, skeleton.joints, strict=True))
    still = [name for row, (name, joint) in joints if joint.mimic is None and missing[skeleton.q_slice(row)].any()]
    return [f"Joints without values in the file stay at rest: {listed(still)}."] if still else []


def read_bytes(path: Path, *, most: int = LARGEST_FILE) -> bytes:
    """Return the content of a file.

    Raises:
        FileError: If the file does not exist, is a folder, may not be read, is empty or is larger than ``most`` bytes.
    """
    with _os_errors(path, "read"):
        if path.is_dir():
            raise FileError("is a folder", where=str(path), expected="a file")
        if not path.is_file() and path.exists():
            raise FileError("is not an ordinary file", where=str(path), expected="a file")
        size = path.stat().st_size
        if size > most:
            raise FileError("file is too large", where=str(path), value=size, expected=f"at most {most} bytes")
        data = path.read_bytes()
    if not data:
        raise FileError("file is empty", where=str(path))
    return data


def read_text(path: Path, *, most: int = LARGEST_FILE) -> str:
    """Return the content of a text file, without a byte-order mark; text that is not UTF-8 is read as Latin-1.

    Raises:
        FileError: If ``read_bytes`` raises it.
    """
    data = read_bytes(path, most=most)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def check_writable(path: Path, *, force: bool) -> None:
    """Check that a file can be written, before any work for the file.

    Raises:
        FileError: If the path is a folder, the file exists and ``force`` is not set, or its folder does not exist.
    """
    with _os_errors(path, "written"):
        if path.is_dir():
            raise FileError("is a folder", where=str(path), expected="a file")
        if path.exists() and not force:
            raise FileError("file exists", where=str(path), hint="pass force=True (--force) to replace it")
        if not path.parent.is_dir():
            raise FileError("folder does not exist", where=str(path.parent), hint="create it first")


def most_numbers(size: int) -> int:
    """Return the largest number of values that a motion, or its targets, may have in a file of ``size`` bytes.

    A small file can describe a large motion: by compression, by sampling between keys, or by using the same bytes
    several times. This bound keeps such a file from using up the memory.
    """
    return FREE_NUMBERS + NUMBERS_A_BYTE * size


def file_rate(fps: float, where: Path) -> Rate:
    """Return the frame rate of a file; for a rounded usual rate, such as 30.00003, return the usual rate.

    Raises:
        FormatError: If no clip can have this rate.
    """
    if not is_rate(fps):
        raise FormatError("the frame rate cannot be used", where=str(where), value=fps, expected=RATES)
    step = usual_rate(1.0 / fps).fps
    if fps < _PER_FRAME and step == round(step):
        note = f"{DOUBT}the file says {fps:.4g} frames per second, which looks like the seconds per frame at {step:g}."
        return Rate(fps, (note,))
    return usual_rate(fps)


def frame_rate(times: Array, path: Path, frames: NDArray[np.intp] | None = None) -> tuple[float | None, list[str]]:
    """Return the frame rate of a series of times, and notes about times that are rounded or not evenly spaced.

    Args:
        times: Times of the rows, (T,), seconds.
        path: The file, for messages.
        frames: Frame number of each row, (T,); None for 0, 1, 2, ...

    Returns:
        The rate, None for a single time, and the notes.

    Raises:
        FormatError: If the times do not increase, or if a time is not finite.
    """
    length = float(times[-1]) - float(times[0]) if len(times) else 0.0
    if not (np.isfinite(length) and (times[1:] > times[:-1]).all()):
        raise FormatError("times do not increase", where=str(path), expected="seconds, one frame after the other")
    if len(times) < 2:
        return None, []
    found = rate_of_times(times, frames)
    steps = np.diff(times) if frames is None else np.diff(times) / np.diff(frames)
    if found.notes or np.abs(steps - steps.mean()).max() <= _UNEVEN * steps.mean():
        return found.fps, list(found.notes)
    uneven = f"Times are not evenly spaced ({steps.min():.3g} to {steps.max():.3g} s); the mean rate is used."
    return found.fps, [uneven]


def write_bytes(path: Path, data: bytes, *, force: bool = False) -> None:
    """Write a file atomically: at any moment it has either the old or the complete new content.

    Raises:
        FileError: If ``check_writable`` raises it, or the folder cannot be written.
    """
    handle = -1
    temporary = path.parent / f".synovia.{os.urandom(8).hex()}"  # named before it exists, so it is always removed
    try:
        check_writable(path, force=force)
        with _os_errors(path, "written"):
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
            left = memoryview(data)
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)
            os.close(handle)
            handle = -1
            if path.exists():
                temporary.chmod(path.stat().st_mode & 0o777)
            temporary.replace(path)
    finally:
        with suppress(OSError):  # Ctrl-C may come after the file is closed and before ``handle`` is reset
            if handle >= 0:
                os.close(handle)
        with suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str, *, force: bool = False) -> None:
    """Write a text file in UTF-8, atomically.

    Raises:
        FileError: If ``write_bytes`` raises it.
        InputError: If a name is not valid Unicode.
    """
    write_bytes(path, as_utf8(text, str(path)), force=force)


def as_utf8(text: str, where: str) -> bytes:
    """Return a text in UTF-8.

    Raises:
        InputError: If the text holds half of a surrogate pair, as a name can.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        near = error.object[max(error.start - 20, 0) : error.end]
        raise InputError("name cannot be written as UTF-8", where=where, value=near) from error


@contextmanager
def _os_errors(path: Path, done: str) -> Generator[None]:
    """Convert errors of the operating system to ``FileError``; ``done`` is "read" or "written"."""
    try:
        yield
    except FileError:
        raise
    except (OSError, ValueError) as error:  # ValueError: the path holds a null byte or half of a character
        if done == "read" and isinstance(error, FileNotFoundError):
            raise FileError("file does not exist", where=str(path), hint=similar_names(path)) from error
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"cannot be {done} ({reason})", where=str(path)) from error


def similar_names(path: Path) -> str | None:
    """Return a hint that lists files and folders next to a path with similar names; None if there are none."""
    import difflib

    with suppress(OSError):
        names = [entry.name for entry in path.parent.iterdir()][:2000]
        near = difflib.get_close_matches(path.name, names, n=3)
        if near:
            return "Did you mean " + ", ".join(repr(name) for name in near) + "?"
    return None
