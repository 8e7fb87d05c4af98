"""Compiled entry points kept by what they are made of, so that every installation of one version finds them.

numba names a folder by the path of the source file. Our folder's name is a hash of all that goes into the code (see
``_jit.cache_folder``), so the path is left out, and that name is also the stamp by which numba knows stale code. Which
processor and which types an entry is for stays in numba's index.
"""

from pathlib import Path
from typing import Any

keep: Any = None  # makes an entry point keep what is compiled in the folder that numba's settings name

try:
    import numba.core.config
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator

    settings: Any = numba.core.config

    class _ByContent(UserProvidedCacheLocator):
        """The folder itself, with nothing of a path."""

        def __init__(self, py_func, py_file):
            super().__init__(py_func, py_file)
            self._cache_path = settings.CACHE_DIR

        def get_source_stamp(self) -> Any:
            """Return the hash that the folder is named by."""
            return Path(self._cache_path).name

    class _Form(CompileResultCacheImpl):
        """What is kept, in numba's form."""

        _locator_classes = [_ByContent]  # noqa: RUF012 - numba's way

    class _Kept(FunctionCache):
        """Keeps what is compiled of one function."""

        _impl_class = _Form

    def _keep(dispatcher: Any) -> None:
        dispatcher._cache = _Kept(dispatcher.py_func)

    keep = _keep
except (ImportError, AttributeError):  # pragma: no cover - a numba that is built differently, or none
    pass
