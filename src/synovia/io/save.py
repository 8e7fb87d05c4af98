"""``save_motion``: the right writer for a file's extension."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from synovia.errors import FormatError, InputError
from synovia.io.base import as_path, check_writable
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
            else in it stays as it is.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        FormatError: If no format has this extension.
        InputError: If a glTF is wanted without ``into``, or the motion is not of its skeleton.
    """
    where = as_path(path)
    ending = where.suffix.lower()
    if ending in (".glb", ".gltf"):
        from synovia.io.gltf.write import write_gltf

        if into is None:
            raise InputError(
                "a glTF needs the file that the skeleton came from", where=str(where), hint="pass into=that file"
            )
        write_gltf(motion, where, into=into, force=force)
        return
    writer = _writer(ending)
    if writer is None:
        raise FormatError(
            "no motion can be written with this extension", where=str(where), value=ending or None,
            expected=", ".join(suffixes()),
        )  # fmt: skip
    writer(motion, where, force=force)


def _writer(ending: str) -> Callable[..., None] | None:
    """Return the writer of an extension."""
    if ending == ".bvh":
        from synovia.io.bvh import write_bvh

        return write_bvh
    if ending == ".npz":
        from synovia.io.npz import write_npz

        return write_npz
    if ending == ".csv":
        from synovia.io.csvfile import write_csv

        return write_csv
    return None


def suffixes() -> tuple[str, ...]:
    """Return the extensions that ``save_motion`` knows."""
    return ".bvh", ".glb", ".gltf", ".npz", ".csv"


def check_target(path: Path, *, force: bool) -> None:
    """Refuse a motion's file that could not be written in the end, before the work begins.

    Raises:
        FileError: As ``check_writable`` does.
        FormatError: If no format has its extension.
    """
    if path.suffix.lower() not in suffixes():
        raise FormatError(
            "no motion can be written with this extension", where=str(path), value=path.suffix or None,
            expected=", ".join(suffixes()),
        )  # fmt: skip
    check_writable(path, force=force)
