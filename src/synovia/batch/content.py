"""The content of files: hashes that decide what is done, and stamps that show without reading that nothing changed.

The content of an input or a model is that of its file and of all files that it refers to. A stamp is what the system
knows about a file: device, number, size, and the times of the last changes of its content and of its entry. No program
can set the last of these. So a file with the same stamp is unchanged, and one with another stamp is read again.
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

_SECOND: Final = 10**9  # nanoseconds
_COARSE: Final = 2 * _SECOND  # smallest age at which a change is visible on a disk that stores whole seconds only
Stamp = tuple[int, int, int, int, int]
Stamps = Mapping[str, "Stamp | None"]
NO_STAMPS: Final[Stamps] = dict[str, "Stamp | None"]()


class Content(NamedTuple):
    """The content of an input or a model.

    Args:
        sha256: Its hash: of the file, if it stands alone, else of the hashes of all its files; "" if the file cannot be
            read.
        stamps: Stamps by file, taken before they were read; None for a file that is missing.
    """

    sha256: str = ""
    stamps: Stamps = NO_STAMPS


def stamp_of(path: str | os.PathLike[str]) -> Stamp | None:
    """Return the stamp of a file, None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116  a path would raise for some names
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def is_unchanged(stamps: Stamps, when: float) -> bool:
    """Return whether files have the stamps that they had at a time, and stamps can be relied upon.

    Args:
        stamps: The stamps.
        when: The time at which they were recorded, seconds.
    """
    return bool(stamps) and all(stamp_of(path) == stamp and _proves(stamp, when) for path, stamp in stamps.items())


def _proves(stamp: Stamp | None, when: float) -> bool:
    """Return whether a later change of a file would show in its stamp."""
    if stamp is None:
        return True
    changed = stamp[4]
    if os.name == "nt" or changed <= 0:  # Windows says when a file was made instead
        return False
    return bool(changed % _SECOND) or when * _SECOND - changed > _COARSE


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's content.

    Raises:
        OSError: If it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1)  # the parts of a table come one after the other
def _hashed(path: str, stamp: Stamp) -> str:
    """Return the hash of a file that has a stamp."""
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
    """Return the name of a file that another one refers to, the same wherever the two are."""
    try:
        return Path(os.path.relpath(file, root.resolve().parent)).as_posix()
    except ValueError:  # on another drive
        return file.name


def _hash_or_reason(file: Path) -> str:
    """Return the hash of a file, or a word that says why it has none."""
    try:
        return file_hash(file) if file.is_file() else "missing"
    except OSError:
        return "unreadable"


def contents_of(paths: Iterable[Path], threads: int) -> dict[Path, Content]:
    """Return the contents of files, which several threads read."""
    wanted = list(dict.fromkeys(paths))
    if len(wanted) < 2:
        return {path: content_of(path) for path in wanted}
    return dict(zip(wanted, _mapped(content_of, wanted, threads), strict=True))


def _mapped(function: Callable[[Path], Content], paths: Sequence[Path], threads: int) -> list[Content]:
    """Return the values of a function, which several threads compute; Ctrl-C ends them."""
    pool = ThreadPoolExecutor(threads)
    try:
        return list(pool.map(function, paths))
    finally:
        pool.shutdown(cancel_futures=True)


def model_settings(name: str) -> dict[str, str]:
    """Return the name of a model and the hash of its file.

    Raises:
        FileError: If there is no such file.
    """
    if is_bundled(name):
        return {"name": name}
    load_model(name)
    return file_settings(name)


def file_settings(name: str) -> dict[str, str]:
    """Return the name of a file and the hash of its content, with that of the files that it refers to."""
    return {"name": Path(name).name, "sha256": content_of(Path(name)).sha256}
