"""Compilation of kernels: decorators, the cache of compiled code, and calls from kernels to Python and C.

Kernels run in one of four modes, which ``SYNOVIA_KERNELS`` may choose:

``prebuilt``  machine code that came with the package, for the processor's level; the name of a level selects that level
``jit``       compiled by numba at their first use
``python``    as plain Python, slowly; NUMBA_DISABLE_JIT=1 means the same
``none``      not run at all: kernels raise an error that says what to install

The default is the first of ``prebuilt``, ``jit`` and ``python`` that is possible; ``python`` warns at the first call.
``compiled`` chooses the first of ``prebuilt``, ``jit`` and ``none``. ``uncompiled`` chooses the first of ``prebuilt``
and ``python``, for one small solve, which takes less time than the compiler.

numba is imported only for ``jit``, and without SciPy. For functions that our kernels never call, numba would import
SciPy's BLAS, which takes longer than all other imports together. In other modes ``numba`` is None.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any

from synovia.kernels.compiler.prebuilt import FOLDER, Prebuilt, load


@contextlib.contextmanager
def _scipy_hidden() -> Generator[None]:
    """Hide SciPy, unless it is loaded already or another thread might be importing it."""
    if "scipy" in sys.modules or threading.active_count() > 1:
        yield
        return
    sys.modules["scipy"] = None  # type: ignore[assignment]  # this entry makes an import fail
    try:
        yield
    finally:
        del sys.modules["scipy"]


def _start_numba() -> tuple[Any, str]:
    """Import numba and its implementations of NumPy; return (numba, ""), or (None, why it cannot be used)."""
    if find_spec("numba") is None:
        return None, "numba is not installed"
    try:
        with _scipy_hidden():
            import numba
            from numba.core.registry import cpu_target

            started: Any = numba  # the type stubs of numba lack the names below
            target: Any = cpu_target
            target.target_context.refresh()
    except Exception as error:  # noqa: BLE001 - a numba that does not fit NumPy or llvmlite raises anything
        return None, f"numba cannot be imported ({type(error).__name__}: {error})"
    arrays: Any = sys.modules.get("numba.np.arraymath")
    if hasattr(arrays, "_HAVE_BLAS"):
        arrays._HAVE_BLAS = find_spec("scipy") is not None  # restored for kernels of users
    return started, ""


CHOICE = os.environ.get("SYNOVIA_KERNELS", "")


def _choose() -> tuple[str, Prebuilt, Any, str]:
    """Return the mode, the prebuilt kernels, numba or None, and advice for kernels that cannot run."""
    no_jit = os.environ.get("NUMBA_DISABLE_JIT", "0")
    if CHOICE == "python" or no_jit not in ("", "0"):
        chosen = "SYNOVIA_KERNELS=python" if CHOICE == "python" else f"NUMBA_DISABLE_JIT={no_jit}"
        return "python", Prebuilt("", {}, chosen), None, ""
    if CHOICE == "jit":
        found = Prebuilt("", {}, "SYNOVIA_KERNELS=jit")
    else:
        default = CHOICE in ("", "prebuilt", "uncompiled", "compiled")
        found = Prebuilt("", {}, "no kernels are wanted") if CHOICE == "none" else load("" if default else CHOICE)
        if found.level:
            return "prebuilt", found, None, ""
        if CHOICE == "uncompiled":
            return "python", found, None, ""
        if CHOICE not in ("", "compiled"):
            found = Prebuilt("", {}, f"SYNOVIA_KERNELS={CHOICE!r}: {found.reason}")
            return "none", found, None, "unset SYNOVIA_KERNELS"
    started, problem = _start_numba()
    if started is not None:
        return "jit", found, started, ""
    from synovia.errors import install_command

    commands = [install_command("jit")]
    if FOLDER.exists():  # if installed from a wheel with prebuilt kernels
        commands.insert(0, "pip install --force-reinstall synovia")
    advice = f"run {', or '.join(commands)}"
    if CHOICE:
        advice += "; SYNOVIA_KERNELS=python works without a compiler, but slowly"
    return "none" if CHOICE else "python", Prebuilt("", {}, f"{found.reason}, and {problem}"), None, advice


mode, prebuilt, numba, advice = _choose()
unasked = mode == "python" and bool(advice)  # plain Python, because nothing faster is possible
mistaken = mode == "none" and CHOICE not in ("", "compiled", "jit", "prebuilt", "none")  # CHOICE is no mode or level


def compiled() -> bool:
    """Return whether kernels run as machine code."""
    return mode in ("prebuilt", "jit")
