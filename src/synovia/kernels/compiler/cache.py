"""Compiled entry points kept by what they are made of, so that every installation of one version finds them.

numba names a folder by the path of the source file. Our folder's name is a hash of all that goes into the code (see
``jit.cache_folder``), so the path is left out. In it each file is named by the types and the processor that it is for:
numba's numbered files with an index beside them mix up when two processors share a home folder and compile at once.

A file holds its own checksum. One that is cut short, damaged or not for us is compiled anew and written over; where
nothing can be written, the folder is read all the same, and what is compiled serves its process.
"""

import hashlib
import logging
import pickle
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

keep: Any = None  # makes an entry point keep what is compiled in the folder that numba's settings name
logger = logging.getLogger("synovia.kernels")
_told: list[bool] = []  # that nothing can be kept is said once

try:
    import numba.core.config
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
    from numba.core.serialize import dumps

    settings: Any = numba.core.config

    class _ByContent(UserProvidedCacheLocator):
        """The folder itself, with nothing of a path."""

        def __init__(self, py_func, py_file):
            super().__init__(py_func, py_file)
            self._cache_path = settings.CACHE_DIR

        @classmethod
        def from_function(cls, py_func, py_file):
            """Return the folder, whether it can be written or not."""
            return cls(py_func, py_file)

        def get_source_stamp(self) -> Any:
            """Return the hash that the folder is named by."""
            return Path(self._cache_path).name

    class _Form(CompileResultCacheImpl):
        """What is kept, in numba's form."""

        _locator_classes = [_ByContent]  # noqa: RUF012 - numba's way

    class _Kept(FunctionCache):
        """Keeps what is compiled of one function."""

        _impl_class = _Form

        def load_overload(self, sig, target_context):
            """Return what is kept for these types and this processor, None where nothing of use is."""
            target_context.refresh()
            key = self._index_key(sig, target_context.codegen())
            try:
                found = unsealed(self._file(key).read_bytes())
                if found is not None and found[0] == key:
                    return self._impl.rebuild(target_context, found[1])
            except OSError:
                pass
            except Exception:  # code of another make may raise anything
                logger.info("kept code of %s is of no use", self._name, exc_info=True)
            return None

        def save_overload(self, sig, data):
            """Keep what is compiled for these types and this processor, where that can be."""
            if not self._impl.check_cachable(data):
                return
            key = self._index_key(sig, data.codegen)
            file = self._file(key)
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                write_whole(file, sealed((key, self._impl.reduce(data)), dumps))
            except OSError as error:
                _tell(file.parent.parent, error)

        def _file(self, key: Any) -> Path:
            """Return the file of these types and this processor."""
            number = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
            return Path(self._cache_path) / f"{self._impl.filename_base}.{number}.nbc"

    def _keep(dispatcher: Any) -> None:
        dispatcher._cache = _Kept(dispatcher.py_func)

    keep = _keep
except (ImportError, AttributeError):  # pragma: no cover - a numba that is built differently, or none
    pass


def sealed(value: Any, dump: Any = pickle.dumps) -> bytes:
    """Return a value as bytes with their checksum before them."""
    data = dump(value)
    return hashlib.sha256(data).digest() + data


def unsealed(data: bytes) -> Any:
    """Return the value of sealed bytes, None where they are not what was sealed."""
    seal, data = data[:32], data[32:]
    return pickle.loads(data) if hashlib.sha256(data).digest() == seal else None  # noqa: S301 - the user's own files


def write_whole(file: Path, data: bytes) -> None:
    """Write a file so that no other process sees a part of it; on a full disk nothing is left behind."""
    part = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
    try:
        part.write_bytes(data)
        part.replace(file)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def _tell(folder: Path, error: OSError) -> None:
    """Say once that every process compiles anew, and what to do."""
    if not _told:
        _told.append(True)
        logger.warning(
            "compiled kernels cannot be kept in %s (%s), so every process compiles anew: set SYNOVIA_CACHE_DIR to a "
            "folder that can be written, or have one filled there by 'synovia doctor --warm'",
            folder,
            error.strerror or error,
        )
