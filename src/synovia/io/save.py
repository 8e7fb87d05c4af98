"""``save_motion``: find the writer for the extension of a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from synovia.arguments import check_kind
from synovia.errors import FormatError, InputError
from synovia.io.base import Format, as_path, check_writable
from synovia.io.load import endings, formats
from synovia.io.verify import FileCheck, check_motion
from synovia.model import Skeleton
from synovia.model.motion import Motion
from synovia.text import listed


def save_motion(
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    into: str | os.PathLike[str] | None = None,
    force: bool = False,
    verify: bool = False,
) -> None:
    """Write a motion as BVH, glTF/GLB, NumPy archive or comma-separated text, by the file's extension.

    A ``UserWarning`` lists what the file cannot hold. If the motion or its skeleton has notes or animated scale, or if
    the motion goes into another file than its own, the file is read back and compared with the motion. The warning
    then states the largest difference.

    Args:
        motion: The motion.
        path: The file: ``.bvh``, ``.glb``, ``.gltf``, ``.npz`` (everything, without pickle) or ``.csv`` (joint values).
        into: For glTF: the file that the skeleton came from. A copy of it gets the motion as one more clip; everything
            else in it stays as it is. None for ``motion.skeleton.source``, and for the body of a bundled model. If the
            skeleton came from no glTF, the file is a new one with the skeleton, the clip and the shapes of the body.
        force: Whether an existing file may be replaced.
        verify: Whether to read the file back in any case, and raise an error if it does not show what is in memory.
            ``sy.verify_file`` returns the figures.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        FormatError: If no format has this extension; with ``verify``, also if the file was written and differs.
        InputError: If the motion belongs to another skeleton than ``into``.

    Example:
        >>> import synovia as sy
        >>> walk = sy.load_motion("walk.bvh")  # doctest: +SKIP
        >>> carried = sy.retarget(walk, sy.load_skeleton("character.glb"))  # doctest: +SKIP
        >>> sy.save_motion(carried.motion, "walking.glb", into="character.glb")  # doctest: +SKIP
    """
    notes = write_motion(motion, path, into=into, force=force, verify=verify)
    if notes:
        warnings.warn(f"{path}: {' '.join(notes)}", UserWarning, stacklevel=2)


def write_motion(
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    into: str | os.PathLike[str] | None = None,
    force: bool = False,
    verify: bool = False,
) -> list[str]:
    """Write a motion and return sentences about what the file does not show; see ``save_motion``."""
    check_kind("motion", motion, Motion, "sy.write_skeleton(skeleton, path) writes a skeleton")
    where = as_path(path)
    fmt, write = _writer(where)
    if fmt.copies:
        said = write(motion, where, into=source_of(motion.skeleton, into, fmt, where), force=force)
    else:
        said = write(motion, where, force=force)
    notes = [*(said or ()), *fmt.lacks(motion), *lost_loops(motion.skeleton, fmt)]
    elsewhere = fmt.copies and into is not None and as_path(into) != motion.skeleton.source
    if not (verify or notes or elsewhere or motion.notes or motion.skeleton.notes or motion.stretch is not None):
        return []
    check = check_motion(motion, where, fmt)
    if check.holds:
        return notes
    if verify:
        raise FormatError("file was written, but differs", where=str(where), hint=" ".join([*notes, check.report()]))
    return [*notes, check.report()]


def lost_loops(skeleton: Skeleton, fmt: Format) -> list[str]:
    """Return a sentence about loops that a file with its own skeleton cannot hold; none if nothing is lost."""
    if not skeleton.loops or fmt.holds_loops or fmt.read_onto is not None:
        return []
    named = listed([tie.label for tie in skeleton.loops])
    return [f"The file cannot hold loops, so whoever reads it may open them: {named}."]


def verify_motion(motion: Motion, path: str | os.PathLike[str]) -> FileCheck:
    """Compare a motion with a file that it was written to."""
    return check_motion(motion, path, _writer(as_path(path))[0])


def source_of(
    skeleton: Skeleton, into: str | os.PathLike[str] | None, fmt: Format, where: Path
) -> str | os.PathLike[str] | None:
    """Return the file to copy: ``into``, or the one that holds the body of a skeleton.

    None if there is none, and the format can be written anew.

    Raises:
        InputError: If there is none, and the format needs one.
    """
    source = _body_of(skeleton, fmt) if into is None else into
    if source is None and not fmt.anew:
        what = f"a {fmt.name} needs the file that the skeleton came from"
        raise InputError(what, where=str(where), hint="pass into=that file")
    return source


def _body_of(skeleton: Skeleton, fmt: Format) -> Path | None:
    """Return the file of a format that holds the body of a skeleton: its own, or one of the same name beside it."""
    source = skeleton.source
    if source is None or source.suffix.lower() in fmt.extensions:
        return source
    beside = [source.with_suffix(ending) for ending in fmt.extensions]
    return next((path for path in beside if source.suffix.lower() == ".toml" and path.is_file()), None)


def _writer(path: Path) -> tuple[Format, Callable[..., Iterable[str] | None]]:
    """Return the format of a motion file by its extension, and its writer.

    Raises:
        FormatError: If no format has this extension.
    """
    known = [(fmt, fmt.write) for fmt in formats() if fmt.holds_motions and fmt.write is not None]
    for fmt, write in known:
        if fmt.names(path):
            return fmt, write
    raise FormatError(
        "no motion can be written with this extension",
        where=str(path),
        value=path.suffix or None,
        expected=f"one of {endings(fmt for fmt, _ in known)}",
    )


def check_target(path: Path, *, force: bool) -> None:
    """Check that a motion file can be written, before the work begins.

    Raises:
        FileError: As ``check_writable`` does.
        FormatError: If no format has its extension.
    """
    _writer(path)
    check_writable(path, force=force)
