"""Disk cache of compiled entry points, keyed by content, so that all installations of a version share it.

The cache has one folder for each kernel file. The name of the folder ends in a hash of everything that determines the
code (see ``sources``); numba would hash the path. Files in the folder are named by argument types and processor.
(numba numbers its files and keeps an index next to them, which fails when two processors share a home folder.)

Each file starts with a checksum. If a file is cut short, damaged or does not match, its code is compiled again and the
file replaced. If the folder cannot be written, cached code is still read, and new code lasts for its process only.

Only one process at a time compiles an entry point. Another process that needs the entry point waits, then loads the
stored code.
"""

import functools
import hashlib
import logging
import os
import pickle
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from synovia.kernels.compiler import numba
from synovia.kernels.compiler.kept import cache_root, note_use, remove_old, write_whole
from synovia.kernels.compiler.sources import digest, name_of

keep: Any = None  # function that gives an entry point this cache; None if numba does not support it
logger = logging.getLogger("synovia.kernels")
_warned: list[bool] = []  # whether the warning about an unusable cache was given


def _usable() -> tuple[Path | None, bool]:
    """Return the cache folder (None if it cannot exist), and whether it can be written."""
    folder = None
    with suppress(OSError, RuntimeError):  # RuntimeError: no home folder
        folder = cache_root()
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
        return folder, True
    return folder, False


ROOT, WRITABLE = _usable() if numba is not None else (None, False)


@functools.cache
def source_hash(file: Path) -> str:
    """Return a hash of a kernel file, of all files of the package that it imports, and of the compiler."""
    versions = [f"{name} {getattr(sys.modules.get(name), '__version__', None)}" for name in _COMPILER]
    return digest(file, (sys.version, *versions))


_COMPILER = ("numba", "llvmlite", "numpy")


def cache_folder(file: Path) -> Path | None:
    """Return the cache folder of the entry points of a kernel file, None without a cache."""
    return None if ROOT is None else ROOT / f"{name_of(file) or file.stem}-{source_hash(file)}"


try:
    if numba is None:
        raise ImportError("nothing is compiled here")
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.serialize import dumps

    class _Locator(UserProvidedCacheLocator):
        """Name the folder by content, independent of paths."""

        def __init__(self, py_func, py_file):
            super().__init__(py_func, py_file)
            self._cache_path = str(cache_folder(Path(py_file)))

        @classmethod
        def from_function(cls, py_func, py_file):
            """Return the locator of the folder, even if the folder cannot be written."""
            return cls(py_func, py_file)

        def get_source_stamp(self) -> Any:
            """Return the hash in the name of the folder."""
            return Path(self._cache_path).name

    class _Form(CompileResultCacheImpl):
        """Compiled code in numba's serialised form."""

        _locator_classes = [_Locator]  # noqa: RUF012 - numba's way

    class _Kept(FunctionCache):
        """The compiled code of one function on disk."""

        _impl_class = _Form

        def load_overload(self, sig, target_context):
            """Return the code for these types and this processor, None if no cached code matches."""
            target_context.refresh()
            key = self._index_key(sig, target_context.codegen())
            file = self._file(key)
            try:
                found = unsealed(file.read_bytes())
                if found is not None and found[0] == key:
                    out = self._impl.rebuild(target_context, found[1])
                    note_use(file.parent)
                    return out
            except OSError:
                pass
            except Exception:  # damaged or foreign code may raise anything
                logger.info("cached code of %s cannot be used", self._name, exc_info=True)
            return None

        def save_overload(self, sig, data):
            """Write the code for these types and this processor, if possible."""
            if not self._impl.check_cachable(data):
                return
            key = self._index_key(sig, data.codegen)
            file = self._file(key)
            try:
                fresh = not file.parent.exists()
                file.parent.mkdir(parents=True, exist_ok=True)
                write_whole(file, sealed((key, self._impl.reduce(data)), dumps))
                if fresh:
                    remove_old(file.parent)
            except Exception as error:  # noqa: BLE001 - a full disk, or a numba that is built differently
                _warn(file.parent.parent, error)

        def lacks(self, sig, target_context) -> str:
            """Return the file name for the code of these types and this processor if the file is missing, else ""."""
            with global_compiler_lock:  # needed if threads first call kernels at the same time
                target_context.refresh()
            file = self._file(self._index_key(sig, target_context.codegen()))
            return "" if file.exists() else f"{file.parent.name}/{file.name}"

        def _file(self, key: Any) -> Path:
            """Return the file with the code for these types and this processor."""
            number = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
            return Path(self._cache_path) / f"{self._impl.filename_base}.{number}.nbc"

    def _keep(dispatcher: Any) -> None:
        try:
            dispatcher._cache = _Kept(dispatcher.py_func)
        except Exception as error:  # noqa: BLE001 - a numba that is built differently
            _warn(cache_root(), error)

    keep = _keep
except Exception:  # noqa: BLE001, S110 # pragma: no cover - a numba that is built differently, or none
    pass


def sealed(value: Any, dump: Any = pickle.dumps) -> bytes:
    """Return a value as bytes, preceded by their checksum."""
    data = dump(value)
    return hashlib.sha256(data).digest() + data


def unsealed(data: bytes) -> Any:
    """Return the value of sealed bytes, None if their checksum does not match."""
    seal, data = data[:32], data[32:]
    return pickle.loads(data) if hashlib.sha256(data).digest() == seal else None  # noqa: S301 - the user's own files


def _warn(folder: Path, error: Exception) -> None:
    """Warn once that every process will compile again, and say what to do."""
    if not _warned:
        _warned.append(True)
        logger.warning(
            "cannot cache compiled kernels in %s (%s), so every process compiles them again: set SYNOVIA_CACHE_DIR to "
            "a writable folder",
            folder,
            getattr(error, "strerror", None) or error,
        )
