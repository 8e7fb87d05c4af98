"""Compilation of kernels: decorators, the cache of compiled code, and calls from kernels to Python and C.

Kernels run in one of four ways, which ``SYNOVIA_KERNELS`` may choose:

``prebuilt``  the machine code that came with the package, for the processor's level or a level that is named
``jit``       compiled by numba at their first use
``python``    as plain Python, slowly; NUMBA_DISABLE_JIT=1 means the same
``none``      not at all: they raise an error that tells what to install

By default the first of ``prebuilt``, ``jit`` and ``none`` that is possible is taken. ``uncompiled`` chooses
the first of ``prebuilt`` and ``python``, for one small solve, which takes less time than the compiler does.

numba is imported for ``jit`` alone, and without SciPy: numba imports its BLAS for functions that our kernels never
call, which takes longer than everything else together. Otherwise ``numba`` is None.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any

from synovia.kernels.compiler.prebuilt import Prebuilt, load


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
            target.target_context.refresh()
    except ImportError:
        return None
    arrays: Any = sys.modules.get("numba.np.arraymath")
    if hasattr(arrays, "_HAVE_BLAS"):
        arrays._HAVE_BLAS = find_spec("scipy") is not None  # for kernels of users
    return started


CHOICE = os.environ.get("SYNOVIA_KERNELS", "")


def _choose() -> tuple[str, Prebuilt, Any]:
    """Return how kernels run, those that came compiled, and numba."""
    if CHOICE == "python" or os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "python", Prebuilt("", {}, "kernels run as plain Python by choice"), None
    if CHOICE != "jit":
        found = load("" if CHOICE in ("prebuilt", "uncompiled") else CHOICE)
        if found.level:
            return "prebuilt", found, None
        if CHOICE == "uncompiled":
            return "python", found, None
        if CHOICE:
            return "none", found, None
    else:
        found = Prebuilt("", {}, "SYNOVIA_KERNELS=jit")
    started = _start_numba()
    return ("none" if started is None else "jit"), found, started


mode, prebuilt, numba = _choose()


def compiled() -> bool:
    """Return whether kernels run as machine code."""
    return mode in ("prebuilt", "jit")
