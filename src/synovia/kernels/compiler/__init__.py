"""Compilation of kernels: decorators, the cache of compiled code, and calls from kernels to Python and C.

Importing this package imports numba, but hides SciPy from it. numba would import SciPy's BLAS for functions that our
kernels never call, which takes longer than all the rest. ``numba`` is None where it is not installed.
"""

import contextlib
import sys
import threading
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any


@contextlib.contextmanager
def _scipy_hidden() -> Generator[None]:
    """Hide SciPy, unless it is loaded already or another thread might be importing it."""
    if "scipy" in sys.modules or threading.active_count() > 1:
        yield
        return
    sys.modules["scipy"] = None  # type: ignore[assignment]  # makes an import fail
    try:
        yield
    finally:
        del sys.modules["scipy"]


def _start_numba() -> Any:
    """Import numba and load its implementations of NumPy."""
    try:
        with _scipy_hidden():
            import numba
            from numba.core.registry import cpu_target

            started: Any = numba  # its type stubs lack what follows
            target: Any = cpu_target
            if not started.config.DISABLE_JIT:
                target.target_context.refresh()
    except ImportError:  # pragma: no cover - numba is a dependency; some platforms have no wheel
        return None
    arrays: Any = sys.modules.get("numba.np.arraymath")
    if hasattr(arrays, "_HAVE_BLAS"):
        arrays._HAVE_BLAS = find_spec("scipy") is not None  # for kernels of users
    return started


numba = _start_numba()


def compiled() -> bool:
    """Return whether kernels are compiled; without numba, or with NUMBA_DISABLE_JIT=1, they run as plain Python."""
    return numba is not None and not numba.config.DISABLE_JIT
