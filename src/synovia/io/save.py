"""``save_motion``: find the writer for the extension of a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from synovia.arguments import check_kind
from synovia.errors import FormatError, InputError
from synovia.io.base import Format, as_path, check_writable
from synovia.io.load import endings, formats
from synovia.model import Skeleton
from synovia.model.motion import Motion


def save_motion(
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    into: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> None:
    """Write a motion as BVH, glTF/GLB, NumPy archive or comma-separated text, by the file's extension.

    Args:
        motion: The motion.
        path: The file: ``.bvh``, ``.glb``, ``.gltf``, ``.npz`` (everything, without pickle) or ``.csv`` (joint values).
        into: For glTF: the file that the skeleton came from. A copy of it gets the motion as one more clip; everything
            else in it stays as it is. None for ``motion.skeleton.source``, and for the body of a bundled model.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        FormatError: If no format has this extension.
        InputError: If ``into`` is missing for a glTF, or the motion belongs to another skeleton.

    Example:
        >>> import synovia as sy
        >>> walk = sy.load_motion("walk.bvh")  # doctest: +SKIP
        >>> carried = sy.retarget(walk, sy.load_skeleton("character.glb"))  # doctest: +SKIP
        >>> sy.save_motion(carried.motion, "walking.glb", into="character.glb")  # doctest: +SKIP
    """
    check_kind("motion", motion, Motion, "sy.write_skeleton(skeleton, path) writes a skeleton")
    where = as_path(path)
    fmt, write = _writer(where)
    if not fmt.copies:
        write(motion, where, force=force)
        return
    source = _body_of(motion.skeleton, fmt) if into is None else into
    if source is None:
        what = f"a {fmt.name} needs the file that the skeleton came from"
        raise InputError(what, where=str(where), hint="pass into=that file")
    write(motion, where, into=source, force=force)


def _body_of(skeleton: Skeleton, fmt: Format) -> Path | None:
    """Return the file of a format that holds the body of a skeleton: its own, or one of the same name beside it."""
    source = skeleton.source
    if source is None or source.suffix.lower() in fmt.extensions:
        return source
    beside = [source.with_suffix(ending) for ending in fmt.extensions]
    return next((path for path in beside if source.suffix.lower() == ".toml" and path.is_file()), None)


def _writer(path: Path) -> tuple[Format, Callable[..., None]]:
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
