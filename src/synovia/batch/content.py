"""The content of files: hashes that identify inputs, and stamps that prove without reading that a file is unchanged.

The content of an input or a model includes its file and all files that it refers to. A stamp holds the metadata of a
file: device, inode, size, and the times of the last changes of its content (mtime) and of its metadata (ctime). No
program can set the ctime. So a file with the same stamp is unchanged; a file with another stamp is read again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from synovia.io.load import companions_of, is_bundled, load_model

_SECOND: Final = 10**9  # nanoseconds in a second
# nanoseconds from a file's change to its stamp: later changes then show even on disks that store whole seconds
_COARSE: Final = 2 * _SECOND
Stamp = tuple[int, int, int, int, int]
Stamps = Mapping[str, "Stamp | None"]
NO_STAMPS: Final[Stamps] = dict[str, "Stamp | None"]()


class Content(NamedTuple):
    """The content of an input or a model.

    Args:
        sha256: Hash of the file, or of the hashes of all its files if it refers to others; "" if the file cannot be
            read.
        stamps: Stamps by file, taken before reading; None for a missing file.
    """

    sha256: str = ""
    stamps: Stamps = NO_STAMPS


def stamp_of(path: str | os.PathLike[str]) -> Stamp | None:
    """Return the stamp of a file; None if the file does not exist."""
    try:
        found = os.stat(path)  # noqa: PTH116  a path would raise for some names
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def is_unchanged(stamps: Stamps, when: float) -> bool:
    """Return whether all files have their recorded stamps, and these stamps prove that the files are unchanged.

    Args:
        stamps: The recorded stamps by file.
        when: Time of the recording, seconds.
    """
    return bool(stamps) and all(stamp_of(path) == stamp and _proves(stamp, when) for path, stamp in stamps.items())


def _proves(stamp: Stamp | None, when: float) -> bool:
    """Return whether a later change of a file would show in its stamp."""
    if stamp is None:
        return True
    changed = stamp[4]
    if os.name == "nt" or changed <= 0:  # on Windows, ctime is the time of creation
        return False
    return bool(changed % _SECOND) or when * _SECOND - changed > _COARSE


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's content.

    Raises:
        OSError: If the file cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1)  # parts of the same table are hashed in succession
def _hashed(path: str, stamp: Stamp) -> str:
    """Return the hash of a file; the stamp is part of the cache key."""
    del stamp
    return file_hash(Path(path))


def content_of(path: Path) -> Content:
    """Return the content of an input or a model."""
    if not os.path.isfile(path):  # noqa: PTH113  a path would raise; a pipe would never end
        return Content()
    others = companions_of(path)
    stamps = {os.path.abspath(file): stamp_of(file) for file in (path, *others)}  # noqa: PTH100  a link may change
    try:
        own = stamp_of(path)
        sha256 = "" if own is None else _hashed(str(path), own)
    except OSError:
        return Content("", stamps)
    if not others:
        return Content(sha256, stamps)
    whole = hashlib.sha256(sha256.encode())
    for file in sorted(others, key=lambda other: _name(other, path)):
        whole.update(f"\n{_name(file, path)}\n{_hash_or_reason(file)}".encode(errors="surrogateescape"))
    return Content(whole.hexdigest(), stamps)


def _name(file: Path, root: Path) -> str:
    """Return the path of a referenced file relative to the folder of the file that refers to it."""
    try:
        return Path(os.path.relpath(file, root.resolve().parent)).as_posix()
    except ValueError:  # the file is on another drive
        return file.name


def _hash_or_reason(file: Path) -> str:
    """Return the hash of a file, or the word "missing" or "unreadable"."""
    try:
        return file_hash(file) if file.is_file() else "missing"
    except OSError:
        return "unreadable"


def contents_of(paths: Iterable[Path], threads: int) -> dict[Path, Content]:
    """Read the contents of files in several threads."""
    wanted = list(dict.fromkeys(paths))
    if len(wanted) < 2:
        return {path: content_of(path) for path in wanted}
    return dict(zip(wanted, _mapped(content_of, wanted, threads), strict=True))


def _mapped(function: Callable[[Path], Content], paths: Sequence[Path], threads: int) -> list[Content]:
    """Return a function's result for each path, from several threads; Ctrl-C cancels pending calls."""
    pool = ThreadPoolExecutor(threads)
    try:
        return list(pool.map(function, paths))
    finally:
        pool.shutdown(cancel_futures=True)


def model_settings(name: str) -> dict[str, str]:
    """Return the name of a model and the hash of its file.

    Raises:
        FileError: If the file does not exist.
    """
    if is_bundled(name):
        return {"name": name}
    load_model(name)
    return file_settings(name)


def file_settings(name: str) -> dict[str, str]:
    """Return the name of a file and the hash of its content, including the files that it refers to."""
    return {"name": Path(name).name, "sha256": content_of(Path(name)).sha256}
