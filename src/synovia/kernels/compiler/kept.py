"""The user's cache folder of compiled code: find it, write its files, and remove old ones.

    MODULE-HASH           code that numba compiled for this user's processors, a folder for each kernel file (``cache``)
    objects/MODULE-HASH   objects that ``packaging/kernels.py`` compiled ahead, a folder for each kernel file and level
    modules/LEVEL-HASH    extension modules that the script linked from these objects, with a description (``prebuilt``)

Each name ends in a hash of everything that determines the code, so that clones of the same sources share it. When a
folder is made, old folders of its kind are removed: those that no process has used for a month, and the least recently
used beyond a total size. The file ``locks`` prevents processes from compiling the same code at the same time.
"""

import functools
import hashlib
import os
import re
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

DAYS = 30  # days after which an unused folder is removed
SIZE = 500_000_000  # largest total size, bytes, of each kind of folder; kernels of one version take about 15 million
_OURS = re.compile(r"[a-z0-9_.]+-[0-9a-f]{16}")
_FILES = "*.nb[ci]*", "*.o", "*.so", "symbols.json", "made.json"  # names of files of compiled code
_DAY = 86400.0


def cache_root() -> Path:
    """Return the folder for compiled kernels: ``SYNOVIA_CACHE_DIR``, else the user's cache folder."""
    if chosen := os.environ.get("SYNOVIA_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "synovia" / "kernels"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "synovia" / "kernels"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "synovia" / "kernels"


def write_whole(file: Path, data: bytes) -> None:
    """Write a file atomically, and leave nothing behind if the disk is full."""
    part = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
    try:
        part.write_bytes(data)
        part.replace(file)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def note_use(folder: Path) -> None:
    """Record that a process uses a folder, by its modification time, at most once a day."""
    with suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)


def remove_old(new: Path) -> None:
    """Remove the folders next to ``new`` not used for ``DAYS``, and the least recently used beyond the total ``SIZE``.

    Only files of compiled code, and folders that are then empty, are removed. A process whose folder was removed
    compiles again.
    """
    with suppress(OSError):
        folders = [folder for folder in new.parent.iterdir() if _OURS.fullmatch(folder.name) and folder != new]
        left = SIZE - _size(new)
        oldest = time.time() - DAYS * _DAY
        for when, folder in sorted(((folder.stat().st_mtime, folder) for folder in folders), reverse=True):
            left -= _size(folder)
            if left < 0 or when < oldest:
                _remove(folder)


def _size(folder: Path) -> int:
    """Return the bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())


def _remove(folder: Path) -> None:
    """Remove the compiled code in a folder, and the folder."""
    with suppress(OSError):
        for pattern in _FILES:
            for file in folder.glob(pattern):
                file.unlink(missing_ok=True)
        folder.rmdir()


def lock(name: str) -> bool:
    """Try to get the lock of a name among all processes that share the cache; return False if another process has it.

    The system releases the locks of a process that ends. On systems without such locks, each process gets it.
    """
    with suppress(ImportError, OSError, RuntimeError):
        import fcntl

        file = _lock_file()
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(name))
        except (BlockingIOError, PermissionError):  # either may mean that another process has the lock
            return False
    return True


def unlock(name: str) -> None:
    """Release the lock of a name, if this process has it."""
    with suppress(ImportError, OSError, RuntimeError):
        import fcntl

        fcntl.lockf(_lock_file(), fcntl.LOCK_UN, 1, _place(name))


@functools.cache
def _lock_file() -> int:
    """Return the file of locks, one per byte. It stays open, because closing it would release all locks."""
    return os.open(cache_root() / "locks", os.O_RDWR | os.O_CREAT, 0o666)


def _place(name: str) -> int:
    """Return the index of the byte that locks a name; names that share a byte wait for each other."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") >> 1
