"""The seam: the one place that decides how kernels are compiled, where they are cached and in which precision they run.

``inline``  small maths, inlined by LLVM wherever it is used; never called from Python
``device``  larger helper that only other kernels call; compiled into its callers' modules
``apart``   one that stays a function of its own there: for large kernels, which would take a minute as one piece
``entry``   called from Python; the only functions that are cached on disk
``algorithm``  names a device function so that it can be handed to another kernel

Without numba (no wheel for the platform) the same functions run as plain Python: slower, same results.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from synovia.kernels.compiler.sources import digest, name_of

F = np.float64  # the float type of this build of the kernels

# contract: FMA; nsz, arcp, afn: cheaper scalars. Never nnan or ninf: they delete checks for NaN and gain nothing.
SAFE = {"contract", "nsz", "arcp", "afn"}
DOT = SAFE | {"reassoc"}  # lets sums vectorise: 3 times faster dense products


@functools.cache
def source_hash(file: Path) -> str:
    """Return a hash of a kernel file, of all that it imports, and of the compiler; see ``sources``.

    The name of a cache folder is made from it. Files that a kernel does not import do not count, so that work on one
    algorithm leaves the others compiled.
    """
    return digest(file, (sys.version, *_versions()))


def _versions() -> list[str]:
    """Return the versions of what compiles."""
    names = ("numba", "llvmlite", "numpy")
    return [f"{name} {getattr(sys.modules.get(name), '__version__', None)}" for name in names]


def cache_root() -> Path:
    """Return the folder for compiled kernels: ``SYNOVIA_CACHE_DIR``, else the user's cache folder."""
    if chosen := os.environ.get("SYNOVIA_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "synovia" / "kernels"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "synovia" / "kernels"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "synovia" / "kernels"


def _cache() -> tuple[Path | None, bool]:
    """Return the cache folder, None where there is none and none can be made, and whether it can be written."""
    folder = None
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: no home folder
        folder = cache_root()
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
        return folder, True
    return folder, False


@contextlib.contextmanager
def _scipy_unseen() -> Generator[None]:
    """Hide SciPy while numba starts.

    numba imports its BLAS for functions that our kernels never call, which takes longer than everything else together.
    It is left visible where it is loaded already, or where another thread might be importing it.
    """
    if "scipy" in sys.modules or threading.active_count() > 1:
        yield
        return
    sys.modules["scipy"] = None  # type: ignore[assignment]  # the import system's way to say: not there
    try:
        yield
    finally:
        del sys.modules["scipy"]


def _start_numba() -> Any:
    """Import numba and load what it compiles with; None where it is not installed."""
    try:
        with _scipy_unseen():
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


CACHE, WRITABLE = _cache() if compiled() else (None, False)
if compiled():
    from synovia.kernels.compiler import announce, interrupts

    announce.listen()


def cache_folder(file: Path) -> Path | None:
    """Return where the entry points of a kernel file are kept, None without a folder for them."""
    return None if CACHE is None else CACHE / f"{name_of(file) or file.stem}-{source_hash(file)}"


def _keeper(file: Path) -> Any:
    """Return what makes an entry point be kept by content, None where the path of its file has to count too.

    A file from elsewhere may import what no hash of ours knows.
    """
    from synovia.kernels.compiler import cache

    return cache.keep if name_of(file) is not None else None


def _compiler(cached: bool = False, **options: Any) -> Callable[..., Any]:
    """Return a decorator with the house's compile options."""
    if numba is None:  # pragma: no cover
        return lambda function: function
    # _nrt: nothing is allocated, so no references are counted either
    options = {"error_model": "numpy", "nogil": True, "fastmath": SAFE, "_nrt": False, **options}

    def decorate(function: Callable[..., Any]) -> Any:
        file = function.__code__.co_filename
        if not cached or CACHE is None or not Path(file).is_file():  # a kernel typed at a prompt has no file to hash
            kernel = numba.njit(**options)(function)
            if cached and compiled():
                interrupts.defer(kernel)
            return kernel
        keep = _keeper(Path(file))
        if keep is None and not WRITABLE:
            return numba.njit(**options)(function)
        before = numba.config.CACHE_DIR
        # read when a function is decorated, so only ours land there
        numba.config.CACHE_DIR = str(cache_folder(Path(file)))
        try:
            kernel = numba.njit(cache=keep is None, **options)(function)
            interrupts.defer(kernel)
            if keep is not None:
                keep(kernel)
            return kernel
        finally:
            numba.config.CACHE_DIR = before

    return decorate


_HELPER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_APART: dict[str, Any] = {**_HELPER, "forceinline": False}  # said, or numba takes over what the caller has
_ENTRY: dict[str, Any] = {"no_cfunc_wrapper": True}
if compiled():
    from synovia.kernels.compiler.link import apart_pipeline, entry_pipeline, helper_pipeline

    if helper_pipeline is not None:
        _HELPER["pipeline_class"] = helper_pipeline
        _APART["pipeline_class"] = apart_pipeline
        _ENTRY["pipeline_class"] = entry_pipeline

inline = _compiler(forceinline=True, **_HELPER)
inline_exact = _compiler(forceinline=True, **_HELPER, fastmath=False)  # rounds as NumPy does
device = _compiler(**_HELPER)
device_dot = _compiler(**_HELPER, fastmath=DOT)
apart = _compiler(**_APART)
apart_dot = _compiler(**_APART, fastmath=DOT)
entry = _compiler(cached=True, **_ENTRY)


def make_ready(kernel: Callable[..., Any], *arguments: Any) -> None:
    """Load or compile an entry point by a call with nothing to do.

    The compiler makes many small objects that live to its end; Python's search for cycles among them takes a tenth of
    the time, so it pauses.
    """
    searches = gc.isenabled()
    gc.disable()
    try:
        kernel(*arguments)
    finally:
        if searches:
            gc.enable()


_ALGORITHMS: dict[type, Callable[..., Any]] = {}


def perform(name, problem, work, targets, q):
    """Run the algorithm of that name."""
    return _ALGORITHMS[type(name)](problem, work, targets, q)


def algorithm(function: Callable[..., Any]) -> Any:
    """Return a name for a kernel that can be handed to others, which call it as ``perform(name, ...)``.

    numba can pass a compiled function itself, but then stores its address, and nothing that holds it is ever cached. So
    the name is an empty named tuple: its type alone says, when the caller is compiled, what to call.
    """
    module = function.__module__.removeprefix("synovia.kernels.").replace(".", "__")
    kind = namedtuple(f"{module}__{function.__name__}", ())  # pyright: ignore[reportUntypedNamedTuple]  # empty
    kernel = device(function)
    _ALGORITHMS[kind] = kernel
    if compiled():
        from numba.extending import overload

        @overload(perform, jit_options=_HELPER)  # pyright: ignore[reportArgumentType]  # its type knows no pipeline_class
        def typed(name, problem, work, targets, q):
            if getattr(name, "instance_class", None) is not kind:
                return None
            return lambda name, problem, work, targets, q: kernel(problem, work, targets, q)

    return kind()
