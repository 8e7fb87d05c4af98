"""Read skeletons and motions: find the format of a file, and resolve names of bundled models."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import (
    FileError,
    FormatError,
    InputError,
    SynoviaError,
    UnsupportedError,
    did_you_mean,
    restated,
)
from synovia.io.base import OF_LOOPS, OF_POINTS, Contents, Format, as_path, read_bytes
from synovia.io.bundled import bundled, bundled_names
from synovia.model import Skeleton
from synovia.model.motion import Motion
from synovia.model.root import Root

# Modules that each define a FORMAT, in the order in which contents and endings are tried; imported on demand.
_MODULES: Final = (
    "bvh",
    "gltf.vrma",
    "gltf",
    "fbx",
    "urdf",
    "mjcf",
    "toml",
    "tracker",
    "smpl.clip",
    "smpl.model",
    "npz",
    "unitree",
    "trajectory",
    "csvfile",
)
_SNIFF: Final = 4096  # bytes at the start of a file that identify its format
_ARCHIVE: Final = b"PK\x03\x04"
_BY_BLENDER: Final = "convert it to GLB with Blender: import it, then File > Export > glTF 2.0"
_ELSEWHERE: Final = {  # formats that cannot be read, by extension: the format's name, and a hint
    ".dae": ("COLLADA", _BY_BLENDER),
    ".usd": ("USD", _BY_BLENDER),
    ".usda": ("USD", _BY_BLENDER),
    ".usdc": ("USD", _BY_BLENDER),
    ".usdz": ("USD", _BY_BLENDER),
    ".blend": ("Blender", "open it with Blender, then File > Export > glTF 2.0"),
    ".sdf": ("SDF", "convert it to URDF, or export it as MJCF"),
}
_POINTS: Final = (".npy", ".trc", ".c3d", ".tsv")  # endings of files that hold only points
NO_MOTION: Final = "file has no motion"
_SHOWN: Final = 6  # largest number of notes in a warning
_T = TypeVar("_T")


def formats() -> list[Format]:
    """Return all formats."""
    return [import_module(f"synovia.io.{module}").FORMAT for module in _MODULES]


def format_of(path: Path, known: Sequence[Format] | None = None) -> Format:
    """Return the format of a file by its content, or else by its extension.

    Args:
        path: The file.
        known: The possible formats; None for all formats of skeletons and motions.

    Raises:
        FormatError: If neither the content nor the extension is known.
    """
    known = formats() if known is None else known
    head = b""
    with suppress(OSError):
        if path.is_file():  # not for a pipe, as reading it might never end
            with path.open("rb") as file:
                head = file.read(_SNIFF)
                if head.startswith(_ARCHIVE):
                    file.seek(-min(_SNIFF, file.seek(0, os.SEEK_END)), os.SEEK_END)
                    head += file.read(_SNIFF)
    named = [fmt for fmt in known if fmt.names(path)]
    for fmt in (*named, *known):
        if head and fmt.looks_like(head):
            return fmt
    if named:
        return named[0]  # the reader's error names the faulty line
    if not head:
        read_bytes(path)  # raises an error that says what is wrong
    elsewhere = _ELSEWHERE.get(path.suffix.lower())
    if elsewhere is not None:
        raise FormatError(f"{elsewhere[0]} files cannot be read", where=str(path), hint=elsewhere[1])
    raise FormatError(
        "no known format", where=str(path), value=path.suffix or None, expected=f"one of {endings(known)}",
        hint=OF_POINTS if path.suffix.lower() in _POINTS else None,
    )  # fmt: skip


def companions_of(path: Path) -> tuple[Path, ...]:
    """Return all other files on which the content of a file depends, each once; none for an unreadable file.

    These are the files that the file refers to, directly or through others. Some may not exist yet; the content changes
    when the missing files appear.

    Args:
        path: The file.
    """
    found: dict[Path, None] = {path: None}
    waiting = [path]
    with suppress(SynoviaError, OSError):
        found.update(dict.fromkeys(_loops_next_to(path)))
    while waiting:
        file = waiting.pop()
        with suppress(SynoviaError, OSError, MemoryError, RecursionError):
            fmt = format_of(file)
            for other in () if fmt.companions is None else fmt.companions(file):
                if other not in found:
                    found[other] = None
                    waiting.append(other)
    return tuple(found)[1:]


def endings(some: Iterable[Format]) -> str:
    """Return the extensions of formats as text, for a message."""
    return ", ".join(ending for fmt in some for ending in fmt.extensions)


def load_skeleton(
    path: str | os.PathLike[str],
    *,
    root: Root | None = None,
    srdf: str | os.PathLike[str] | None = None,
    loops: str | os.PathLike[str] | None = None,
) -> Skeleton:
    """Read the skeleton of a URDF, MJCF, glTF/GLB, FBX, BVH, Synovia TOML or npz file.

    A ``UserWarning`` lists the parts of the file that were not kept, such as limits of tendons or missing meshes.
    ``skeleton.notes`` has the same sentences.

    Args:
        path: The file. Its content decides the format, or else its extension.
        root: How the root may move, see ``Skeleton.with_root``; None for the root of the file.
        srdf: SRDF file of a URDF with the pairs of links that may touch (``Skeleton.excluded_pairs``). None for the
            file of the same name that ends in ``.srdf``, if there is one.
        loops: File of loops of the model in addition to those of its own file (``Skeleton.loops``), TOML. None for the
            file of the same name that ends in ``.loops.toml``, if there is one.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the content is malformed (the message names the line or the element), or if a loop in the file
            of loops cannot be closed.
        UnsupportedError: If an SRDF file is given for a file that is not URDF.
        MissingExtraError: If the format needs a package that is not installed (MJCF, FBX).

    Example:
        >>> import synovia as sy
        >>> arm = sy.load_skeleton("panda.urdf")  # doctest: +SKIP
        >>> arm.joint_names, arm.notes  # doctest: +SKIP
    """
    where = as_path(path)
    skeleton = _contents(where, srdf, loops).skeleton
    if skeleton.notes:
        warnings.warn(f"{where}: {first_notes(skeleton.notes, 'skeleton.notes')}", UserWarning, stacklevel=2)
    return skeleton if root is None else skeleton.with_root(root)


def first_notes(notes: Sequence[str], source: str) -> str:
    """Return the first notes as one text that says where to find the other notes."""
    more = len(notes) - _SHOWN
    return " ".join([*notes[:_SHOWN], *([f"And {more} more, see {source}."] if more > 0 else [])])


def _contents(
    where: Path, srdf: str | os.PathLike[str] | None = None, loops: str | os.PathLike[str] | None = None
) -> Contents:
    """Read a file, with an SRDF file if one is given, and a file of loops: the given one, or the one next to it."""
    found = _without_loops(where, srdf)
    if loops is None:
        given = next((path for path in _loops_next_to(where) if path.is_file()), None)
    else:
        given = as_path(loops)
    if given is None:
        return found
    file = given
    from synovia.io.toml.loops import with_loops_of

    return found._replace(skeleton=guarded(file, lambda: with_loops_of(found.skeleton, file)))


def _loops_next_to(path: Path) -> list[Path]:
    """Return the path of the file of loops next to a model; none for formats that hold motions."""
    return [] if format_of(path).holds_motions else [path.with_suffix(OF_LOOPS)]


def _without_loops(where: Path, srdf: str | os.PathLike[str] | None = None) -> Contents:
    """Read a file, with an SRDF file if one is given, but without the loops of a file of loops."""
    if srdf is None:
        return guarded(where, lambda: format_of(where).read(where))
    pairs, fmt = as_path(srdf), format_of(where)
    read_with = fmt.read_with
    if read_with is None:
        raise UnsupportedError(f"{fmt.name} files have no SRDF file", where=str(where), expected="a URDF file")
    return guarded(where, lambda: read_with(where, pairs))


def is_bundled(name: str) -> bool:
    """Return whether a name is the name of a bundled model; a file of the same name takes precedence."""
    return name in bundled_names() and not Path(name).exists()


def load_model(
    name: str | os.PathLike[str],
    clip: str | os.PathLike[str] | None = None,
    *,
    srdf: str | os.PathLike[str] | None = None,
    loops: str | os.PathLike[str] | None = None,
) -> Skeleton:
    """Read the skeleton of a file, or of a bundled model if there is no such file, without warnings.

    Args:
        name: The file or the bundled model.
        clip: Motion file that sets the body shape of a model with many shapes (SMPL); None for the model's default
            shape.
        srdf: As in ``load_skeleton``.
        loops: As in ``load_skeleton``; a bundled model may have a file of loops too.

    Raises:
        FileError: If there is neither a file nor a model of this name, or the file cannot be read.
        FormatError: If the file's content is malformed.
        InputError: If ``name`` is neither text nor a path.
    """
    where = as_path(name)
    if srdf is None and is_bundled(os.fspath(name)):
        body = bundled(os.fspath(name))
        if loops is None:
            return body
        from synovia.io.toml.loops import with_loops_of

        file = as_path(loops)
        return guarded(file, lambda: with_loops_of(body, file))
    try:
        contents = _contents(where, srdf, loops)
    except FileError as error:
        if error.hint is not None or not isinstance(error.__cause__, FileNotFoundError):
            raise
        known = ", ".join(bundled_names())
        raise FileError(error.what, where=error.where, hint=f"bundled models are {known}") from error
    fitted = contents.fitted
    if clip is None or fitted is None:
        return contents.skeleton
    shaped = as_path(clip)
    return guarded(shaped, lambda: fitted(shaped))


def has_shapes(name: str) -> bool:
    """Return whether the body shape of a model depends on the clip, as in SMPL."""
    return not is_bundled(name) and _contents(as_path(name)).fitted is not None


def load_motion(
    path: str | os.PathLike[str],
    clip: str | int | None = None,
    *,
    skeleton: Skeleton | str | os.PathLike[str] | None = None,
) -> Motion:
    """Read one motion of a BVH, glTF/GLB, FBX, npz or CSV file, of an archive for trackers, or of AMASS.

    Args:
        path: The file.
        clip: Name or number of the clip, if the file has several. None for the clip that Synovia wrote last into the
            file, or else the first one.
        skeleton: Skeleton of the motion, or the file of its model. It is required for a CSV, which has only joint
            values, for an archive for trackers and for a clip of AMASS. Motions of other files are put on it, see
            ``Motion.on``. If the root of the motion moves, the skeleton gets a moving root. The file of an SMPL model
            gets the body shape of the clip.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If its content is malformed or it has no motion.
        UnsupportedError: If files of this format never hold a motion.
        InputError: If there is no such clip, or the clip belongs to another skeleton.

    Example:
        >>> import synovia as sy
        >>> walk = sy.load_motion("walk.bvh")  # doctest: +SKIP
        >>> walk.skeleton.joint_names, walk.fps, walk.q.shape  # doctest: +SKIP
    """
    if skeleton is not None and not isinstance(skeleton, str | os.PathLike):
        check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one; its path may be given too")
    where = as_path(path)
    fmt = format_of(where)
    if not fmt.holds_motions:
        others = endings(fmt for fmt in formats() if fmt.holds_motions)
        raise UnsupportedError(f"{fmt.name} files hold no motion", where=str(where), expected=f"one of {others}")
    clips = load_clips(where, skeleton)
    if not clips.motions:
        raise FormatError(NO_MOTION, where=str(where), hint="it holds only a skeleton, which load_skeleton reads")
    return clips.motions[clip_number(clips.motions, (clips.shown or 0) if clip is None else clip, str(where))]


def clip_number(motions: Sequence[Motion], clip: str | int, where: str) -> int:
    """Return the index of a clip.

    Args:
        motions: The clips.
        clip: Name or number of the clip.
        where: File or model of the clips, for the message.

    Raises:
        InputError: If no clip has this name or number.
    """
    names = [motion.name for motion in motions]
    if isinstance(clip, int | np.integer):
        if not 0 <= clip < len(names):
            raise InputError(f"no clip {clip}", where=where, expected=f"0 to {len(names) - 1}")
        return int(clip)
    if not isinstance(clip, str):
        raise InputError("clip", where=where, value=clip, expected="the name or the number of a clip")
    if clip not in names:
        raise InputError(f"no clip named {clip!r}", where=where, hint=did_you_mean(clip, names))
    return names.index(clip)


class Clips(NamedTuple):
    """The motions of a file.

    Args:
        motions: All motions.
        shown: Index of the main motion: the only motion of a BVH, npz or CSV, or the one that Synovia wrote last into a
            glTF. None for a file that is mainly a model.
    """

    motions: list[Motion]
    shown: int | None = None


def load_clips(path: str | os.PathLike[str], skeleton: Skeleton | str | os.PathLike[str] | None = None) -> Clips:
    """Read all motions of a file; none if the file or its format has none.

    Args:
        path: The file.
        skeleton: As in ``load_motion``.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If its content is malformed.
        InputError: If the motions belong to another skeleton.
    """
    where = as_path(path)
    fmt = format_of(where)
    if not fmt.holds_motions:
        return Clips([])
    read_onto = fmt.read_onto
    body = skeleton if skeleton is None or isinstance(skeleton, Skeleton) else load_model(skeleton, where)
    if body is not None and read_onto is not None:
        return Clips([guarded(where, lambda: read_onto(where, body))], 0)
    contents = _contents(where)
    motions = guarded(where, contents.motions)
    return Clips(motions if body is None else [motion.on(body) for motion in motions], contents.shown)


def load_motions(path: str | os.PathLike[str]) -> list[Motion]:
    """Read all motions of a file; none if the file or its format has none.

    Args:
        path: The file.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If its content is malformed.
    """
    return load_clips(path).motions


def guarded(path: Path, read: Callable[[], _T]) -> _T:
    """Return the result of a reader; errors name the file, and memory and recursion errors become FormatError.

    NumPy's warnings about NaN and infinity are off, because readers check these values.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return read()
    except (FileError, FormatError):
        raise
    except InputError as error:
        raise restated(error, FormatError, f"{path}: {error.where}" if error.where else str(path)) from error
    except (MemoryError, RecursionError) as error:
        raise FormatError("file describes more than fits in memory", where=str(path)) from error
