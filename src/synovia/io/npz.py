"""Motions as NumPy archives, ``synovia.motion/1``: every bit of a motion and its skeleton, read without pickle.

q          (T, nq) joint values
fps        frames per second
name       name of the clip
skeleton   the skeleton as the text of a Synovia TOML file
stretch    (T, n, 3) animated scale, where the motion has it
schema     "synovia.motion/1"
"""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from synovia.errors import FormatError, InputError, restated
from synovia.io.base import Format, as_path, read_bytes, write_bytes
from synovia.motion import Motion
from synovia.skeleton import Skeleton

SCHEMA: Final = "synovia.motion/1"
_MARK: Final = b"PK\x03\x04"  # a zip archive
_NEEDED: Final = ("schema", "q", "fps", "name", "skeleton")
_MOST: Final = 2**31  # bytes of an array in the archive, unpacked: small files can unpack to anything


def write_npz(motion: Motion, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a motion with its skeleton as a NumPy archive.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        InputError: If a name cannot be written as UTF-8.
    """
    from synovia.io.toml.write import skeleton_text

    content: dict[str, Any] = {
        "schema": np.array(SCHEMA),
        "q": motion.q,
        "fps": np.array(motion.fps),
        "name": np.array(motion.name),
        "skeleton": np.frombuffer(skeleton_text(motion.skeleton).encode(), np.uint8),
    }
    if motion.stretch is not None:
        content["stretch"] = motion.stretch
    data = io.BytesIO()
    np.savez_compressed(data, **content)
    write_bytes(as_path(path), data.getvalue(), force=force)


def read_skeleton(path: Path) -> Skeleton:
    """Return the skeleton of an archive."""
    return _read(path).skeleton


def read_motions(path: Path) -> list[Motion]:
    """Return the motion of an archive.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If it is no archive of a motion.
    """
    return [_read(path)]


def _read(path: Path) -> Motion:
    """Return the motion; every way in which an archive can be damaged is an error of the file."""
    from synovia.io.toml.read import parse_skeleton

    data = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                if entry.file_size > _MOST:
                    raise FormatError("array is too large", where=f"{path}: {entry.filename}", value=entry.file_size)
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            content = {key: arrays[key] for key in arrays.files}
    except FormatError:
        raise
    except Exception as error:  # damaged archives raise a dozen types
        raise FormatError(f"is no NumPy archive ({error})", where=str(path), expected="a motion as .npz") from error
    missing = [key for key in _NEEDED if key not in content]
    if missing or str(content["schema"]) != SCHEMA:
        raise FormatError(
            "archive is no motion of this version",
            where=str(path),
            value=str(content["schema"]) if "schema" in content else None,
            expected=f"schema {SCHEMA!r} and arrays {', '.join(_NEEDED[1:])}",
        )
    if content["skeleton"].dtype != np.uint8 or content["fps"].ndim or content["fps"].dtype.kind not in "fiu":
        raise FormatError("arrays have the wrong types", where=str(path), expected="skeleton uint8, fps a number")
    skeleton = parse_skeleton(content["skeleton"].tobytes(), path)
    try:
        return Motion(
            skeleton, content["q"], float(content["fps"]), name=str(content["name"]), stretch=content.get("stretch")
        )
    except InputError as error:
        raise restated(error, FormatError, str(path)) from error


FORMAT = Format("Synovia motion", (".npz",), lambda head: head.startswith(_MARK), read_skeleton, read_motions)
