"""Shared by all file formats: safe reading, atomic writing, and the description of a format."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from synovia.errors import FileError, InputError
from synovia.model import Skeleton
from synovia.model.motion import Motion

LARGEST_FILE: Final = 2**30  # bytes; above, a reader would need several times as much memory
_LISTED: Final = 4  # names in one note
FREE_NUMBERS: Final = 2**23  # that any file may describe, however small: 64 MiB
NUMBERS_A_BYTE: Final = 4  # that it may describe beyond that, for each of its bytes
_REPLACE: Final = "pass force=True (--force) to replace it"


@dataclass(frozen=True, slots=True)
class Format:
    """One file format: what it can read and write.

    A new format is one module or package of ``synovia.io`` with a ``FORMAT``, and its name in ``synovia.io.load``.

    Args:
        name: What people call it.
        extensions: Endings that it uses, lower case with the dot.
        looks_like: Whether the first few thousand bytes of a file are of this format.
        read_skeleton: Read the skeleton of a file.
        read_motions: Read all motions of a file.
        write_skeleton: Write a skeleton: ``write_skeleton(skeleton, path, force=...)``.
        write_motion: Write a motion: ``write_motion(motion, path, force=...)``, with ``into=`` if it ``copies``.
        copies: Whether a motion goes into a copy of the file that its skeleton came from, ``into``.
    """

    name: str
    extensions: tuple[str, ...]
    looks_like: Callable[[bytes], bool]
    read_skeleton: Callable[[Path], Skeleton]
    read_motions: Callable[[Path], list[Motion]] | None = None
    write_skeleton: Callable[..., None] | None = None
    write_motion: Callable[..., None] | None = None
    copies: bool = False


def as_path(path: str | os.PathLike[str]) -> Path:
    """Return the argument as a path.

    Raises:
        FileError: If no file can have that name.
        InputError: If it is neither text nor a path.
    """
    try:
        if b"\0" in os.fsencode(path):
            raise FileError("no file can have this name", value=path, hint="it holds a null byte")
        return Path(path)
    except UnicodeEncodeError as error:
        raise FileError("no file can have this name", value=path, hint="it holds half of a character") from error
    except TypeError as error:
        raise InputError("path is not a path", value=path, expected="text or a pathlib.Path") from error


def listed(names: Sequence[str]) -> str:
    """Return the first few names in quotes and how many more there are, for a note."""
    more = len(names) - _LISTED
    return ", ".join(repr(name) for name in names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def read_bytes(path: Path, *, most: int = LARGEST_FILE) -> bytes:
    """Return a file's content.

    Raises:
        FileError: If it does not exist, is a folder, may not be read, is empty or is larger than ``most`` bytes.
    """
    try:
        if path.is_dir():
            raise FileError("is a folder", where=str(path), expected="a file")
        if not path.is_file() and path.exists():
            raise FileError("is not an ordinary file", where=str(path), expected="a file")
        size = path.stat().st_size
        if size > most:
            raise FileError("file is too large", where=str(path), value=size, expected=f"at most {most} bytes")
        data = path.read_bytes()
    except FileNotFoundError as error:
        near = _neighbours(path)
        raise FileError("file does not exist", where=str(path), hint=near) from error
    except FileError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise FileError(f"cannot be read ({getattr(error, 'strerror', None) or error})", where=str(path)) from error
    if not data:
        raise FileError("file is empty", where=str(path))
    return data


def read_text(path: Path, *, most: int = LARGEST_FILE) -> str:
    """Return a text file's content, without a byte-order mark; bytes that are not UTF-8 are read as Latin-1.

    Raises:
        FileError: As ``read_bytes`` does.
    """
    data = read_bytes(path, most=most)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def check_writable(path: Path, *, force: bool) -> None:
    """Refuse a file that could not be written in the end, before any work is done for it.

    Raises:
        FileError: If it is a folder, exists and ``force`` is not set, or its folder does not exist.
    """
    try:
        if path.is_dir():
            raise FileError("is a folder", where=str(path), expected="a file")
        if path.exists() and not force:
            raise FileError("file exists", where=str(path), hint=_REPLACE)
        if not path.parent.is_dir():
            raise FileError("folder does not exist", where=str(path.parent))
    except FileError:
        raise
    except (OSError, ValueError) as error:  # no permission to look, or a name that cannot be
        raise FileError(f"cannot be written ({getattr(error, 'strerror', None) or error})", where=str(path)) from error


def most_numbers(size: int) -> int:
    """Return how many numbers of a motion, or of its targets, a file of ``size`` bytes may describe.

    Files can describe more than they hold, by packing, by sampling between keys, or by naming the same bytes often.
    """
    return FREE_NUMBERS + NUMBERS_A_BYTE * size


def write_bytes(path: Path, data: bytes, *, force: bool = False) -> None:
    """Write a file so that at any moment either the old or the whole new content is there.

    Raises:
        FileError: If it exists and ``force`` is not set, or the folder cannot be written.
    """
    with suppress(ValueError):  # told below
        if path.exists() and not force:
            raise FileError("file exists", where=str(path), hint=_REPLACE)
    handle = -1
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}"  # known before it exists: none is left behind
    try:
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
    except (OSError, ValueError) as error:  # ValueError: a null byte or half of a character in the path
        raise FileError(f"cannot be written ({getattr(error, 'strerror', None) or error})", where=str(path)) from error
    finally:
        with suppress(OSError):  # an interruption may have come between closing it and knowing so
            if handle >= 0:
                os.close(handle)
        with suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str, *, force: bool = False) -> None:
    """Write a text file in UTF-8, as ``write_bytes`` does.

    Raises:
        FileError: As ``write_bytes`` does.
        InputError: If a name holds half of a character.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        near = error.object[max(error.start - 20, 0) : error.end]
        raise InputError("name cannot be written as UTF-8", where=str(path), value=near) from error
    write_bytes(path, data, force=force)


def _neighbours(path: Path) -> str | None:
    """Return a hint with files of the same folder that have a similar name."""
    import difflib

    with suppress(OSError):
        names = [entry.name for entry in path.parent.iterdir()][:2000]
        near = difflib.get_close_matches(path.name, names, n=3)
        if near:
            return "Did you mean " + ", ".join(repr(name) for name in near) + "?"
    return None
