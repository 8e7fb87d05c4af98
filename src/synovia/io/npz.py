"""Read and write motions as NumPy archives, ``synovia.motion/1``, with their skeletons, exactly and without pickle.

q          (T, nq) joint values
fps        frames per second
name       name of the clip
skeleton   the skeleton as the text of a Synovia TOML file
stretch    (T, n, 3) animated scale, if the motion has any
notes      sentences about parts of the source that the motion lacks, if there are any
schema     "synovia.motion/1"
"""

from __future__ import annotations

import io
import math
import os
import sys
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError
from synovia.io.base import (
    OF_POINTS,
    Contents,
    Format,
    as_path,
    as_utf8,
    most_numbers,
    read_bytes,
    write_bytes,
)
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.rates import usual_rate
from synovia.text import first_few, listed

SCHEMA: Final = "synovia.motion/1"
_MARK: Final = b"PK\x03\x04"  # first bytes of a zip archive
_SURROGATES: Final = 0xD800, 0xDFFF  # first and last code point of surrogates, which are not characters
_NEEDED: Final = ("schema", "q", "fps", "name", "skeleton")
_SHOWN: Final = 16  # largest number of arrays of another program's archive that an error message lists
_OPTIONAL: Final = ("stretch", "notes")


def write_npz(motion: Motion, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a motion with its skeleton as a NumPy archive.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        InputError: If a name cannot be written as UTF-8.
    """
    from synovia.io.toml.write import skeleton_text

    where = as_path(path)
    as_utf8(motion.name, str(where))
    content: dict[str, Any] = {
        "schema": np.array(SCHEMA),
        "q": motion.q,
        "fps": np.array(motion.fps),
        "name": np.array(motion.name),
        "skeleton": np.frombuffer(as_utf8(skeleton_text(motion.skeleton), str(where)), np.uint8),
    }
    if motion.stretch is not None:
        content["stretch"] = motion.stretch
    if motion.notes:
        as_utf8("".join(motion.notes), str(where))
        content["notes"] = np.array(motion.notes, np.str_)
    write_archive(where, content, force=force)


def write_archive(path: Path, arrays: dict[str, Any], *, force: bool = False) -> None:
    """Write a compressed NumPy archive of some arrays.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
    """
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    write_bytes(path, data.getvalue(), force=force)


def _read(path: Path) -> Contents:
    """Read an archive with a motion.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is not an archive of a motion.
    """
    from synovia.io.toml.read import parse_skeleton

    content = read_arrays(path, (*_NEEDED, *_OPTIONAL), "a motion as .npz")
    missing = [key for key in _NEEDED if key not in content]
    schema = texts_of(content["schema"]) if "schema" in content else None
    if "schema" not in content:
        found = [f"{name} {shape}" for name, shape in shapes_of(path).items()]
        what, expected = "archive holds no motion", f"arrays schema, {', '.join(_NEEDED[1:])}"
        raise FormatError(what, where=str(path), value=first_few(found), expected=expected, hint=OF_POINTS)
    if missing or schema != [SCHEMA]:
        raise FormatError(
            "archive is not a motion of this version",
            where=str(path),
            value=schema,
            expected=f"schema {SCHEMA!r} and arrays {', '.join(_NEEDED[1:])}",
        )
    name = texts_of(content["name"])
    rate = content["fps"]
    if (
        content["skeleton"].dtype != np.uint8
        or rate.ndim
        or rate.dtype.kind not in "fiu"
        or name is None
        or len(name) != 1
    ):
        raise FormatError(
            "arrays have the wrong types", where=str(path), expected="skeleton uint8, fps a number, name a text"
        )
    skeleton = parse_skeleton(content["skeleton"].tobytes(), path)
    notes = [] if "notes" not in content else texts_of(content["notes"]) or []
    notes += unread_notes(path, (*_NEEDED, *_OPTIONAL))
    fps, said = usual_rate(float(rate))
    motion = Motion(
        skeleton, content["q"], fps, name=name[0], stretch=content.get("stretch"), notes=dict.fromkeys([*notes, *said])
    )
    return Contents(skeleton, lambda: [motion], shown=0)


def read_arrays(
    path: Path, wanted: Iterable[str], expected: str, room: tuple[int, int] | None = None
) -> dict[str, NDArray[Any]]:
    """Read some arrays of a NumPy archive by name, without unpacking others; missing arrays are left out.

    Args:
        path: The file.
        wanted: Names of the arrays.
        expected: Expected kind of file, for messages.
        room: Number of values that any archive may hold, and additional values for each of its bytes; None for the
            usual limits.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is damaged, an array holds pickled objects, or the unpacked arrays are too large for
            the size of the file.
    """
    data = read_bytes(path)
    left = most_numbers(len(data)) if room is None else room[0] + room[1] * len(data)
    content: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {entry.filename: entry for entry in archive.infolist()}
            for name in wanted:
                entry = entries.get(f"{name}.npy")
                if entry is None:
                    continue
                place = f"{path}: {entry.filename}"
                if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise FormatError(
                        "array has an unsupported compression", where=place, expected="stored or deflated"
                    )
                with archive.open(entry) as file:
                    content[name] = read_array(file, place, left)
                left -= _numbers_in(content[name].shape, content[name].dtype)
    except FormatError:
        raise
    except Exception as error:  # damaged archives raise a dozen exception types
        raise FormatError(f"is not a NumPy archive ({error})", where=str(path), expected=expected) from error
    return content


def shapes_of(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the first arrays of an archive by name, without unpacking; skip damaged arrays."""
    out: dict[str, tuple[int, ...]] = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist()[:_SHOWN]:
            try:
                with archive.open(name) as file:
                    version = np.lib.format.read_magic(file)
                    read = (
                        np.lib.format.read_array_header_1_0
                        if version == (1, 0)
                        else np.lib.format.read_array_header_2_0
                    )
                    out[name.removesuffix(".npy")] = read(file)[0]
            except Exception:  # noqa: BLE001, S112  damaged archives raise a dozen exception types
                continue
    return out


def unread_notes(path: Path, known: Iterable[str]) -> list[str]:
    """Return a note about the arrays of an archive that are not read.

    Args:
        path: The archive, read before without errors.
        known: Names of the arrays that are read, or that follow from these.
    """
    with zipfile.ZipFile(path) as archive:
        names = [entry.removesuffix(".npy") for entry in archive.namelist()]
    unread = [name for name in dict.fromkeys(names) if name not in set(known)]
    return [f"Arrays that were not read: {listed(unread)}."] if unread else []


def read_npy(path: Path) -> NDArray[Any]:
    """Read a file with one array.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is damaged, or holds pickled objects.
    """
    data = read_bytes(path)
    try:
        return read_array(io.BytesIO(data), str(path), len(data))
    except FormatError:
        raise
    except Exception as error:  # damaged headers raise a dozen exception types
        raise FormatError(f"is not a NumPy file ({error})", where=str(path), expected="an array as .npy") from error


def _numbers_in(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the size of an array after its conversion to float64, in values of 8 bytes."""
    return math.prod(shape) * max(1, dtype.itemsize // 8)


def read_array(file: IO[bytes], place: str, most: int) -> NDArray[Any]:
    """Read an array in NumPy's file format; the header is checked before memory is allocated.

    Args:
        file: The file.
        place: Name of the file, for messages.
        most: Largest size of the array, in values of 8 bytes; smaller types count as 8 bytes, as they are converted.

    Raises:
        FormatError: If the array holds pickled objects, is larger than ``most``, or is cut off.
        ValueError: If the header is malformed.
    """
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, by_column, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise FormatError(
            "array has an unsupported NPY version", where=place, value=version, expected="(1, 0) or (2, 0)"
        )
    if dtype.kind not in "biufUS":
        raise FormatError(
            "array holds neither numbers nor text", where=place, value=dtype.name, hint="pickled objects are never read"
        )
    size = math.prod(shape) * dtype.itemsize
    if not 0 <= _numbers_in(shape, dtype) <= most or min(shape, default=0) < 0 or max(shape, default=0) > most:
        raise FormatError("array is too large", where=place, value=shape, expected=f"at most {most} numbers")
    data = file.read(size)
    if len(data) < size:
        raise FormatError("array is cut off", where=place, value=len(data), expected=f"{size} bytes")
    return np.frombuffer(data, dtype, math.prod(shape)).reshape(shape, order="F" if by_column else "C")


def numbers_of(arrays: Mapping[str, NDArray[Any]], name: str, where: Path, expected: str) -> Array:
    """Return an array of a file as float64.

    Args:
        arrays: The arrays.
        name: Name of the array.
        where: The file, for messages.
        expected: Expected kind of file, for messages.

    Raises:
        FormatError: If the array is missing, is not numeric, or has a value that is not finite.
    """
    if name not in arrays or arrays[name].dtype.kind not in "fiu":
        raise FormatError(f"array {name!r} is missing or has no numbers", where=str(where), expected=expected)
    numbers = arrays[name].astype(np.float64)
    if not np.isfinite(numbers).all():
        raise FormatError(f"array {name!r} has numbers that are not finite", where=str(where))
    return numbers


def texts_of(array: NDArray[Any]) -> list[str] | None:
    """Return the texts of an array; None for an array of other values, or if a text cannot be written as UTF-8."""
    if array.dtype.kind != "U":
        return None
    codes = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    if np.any((codes > sys.maxunicode) | ((codes >= _SURROGATES[0]) & (codes <= _SURROGATES[1]))):
        return None
    return [str(text) for text in array.ravel().tolist()]


FORMAT: Final = Format(
    name="Synovia motion",
    extensions=(".npz",),
    looks_like=lambda head: head.startswith(_MARK) and b"schema.npy" in head,
    read=_read,
    write=write_npz,
    holds_motions=True,
    holds_loops=True,
    keeps="everything, without loss and without pickle",
)
