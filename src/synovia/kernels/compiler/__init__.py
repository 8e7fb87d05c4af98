"""How kernels are compiled: the decorators, the cache of compiled code, and what kernels ask of their process.

Importing this package starts numba, without SciPy: numba imports its BLAS for functions that our kernels never call,
which takes longer than everything else together. ``numba`` is None where it is not installed.
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
    sys.modules["scipy"] = None  # type: ignore[assignment]  # the import system's way to say: not there
    try:
        yield
    finally:
        del sys.modules["scipy"]


def _start_numba() -> Any:
    """Import numba and load what it compiles with."""
    try:
        with _scipy_hidden():
            import numba
            from numba.core.registry import cpu_target

            started: Any = numba  # its types leave out what follows
            target: Any = cpu_target
            if not started.config.DISABLE_JIT:
                target.target_context.refresh()  # loads its implementations of NumPy
    except ImportError:  # pragma: no cover - numba is a dependency; some platforms have no wheel
        return None
    arrays: Any = sys.modules.get("numba.np.arraymath")
    if hasattr(arrays, "_HAVE_BLAS"):
        arrays._HAVE_BLAS = find_spec("scipy") is not None  # so that users' own kernels find it
    return started


numba = _start_numba()


def compiled() -> bool:
    """Return whether kernels are compiled; without numba, or with NUMBA_DISABLE_JIT=1, they run as plain Python."""
    return numba is not None and not numba.config.DISABLE_JIT
