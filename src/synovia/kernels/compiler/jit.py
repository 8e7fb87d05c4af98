"""The decorators of kernels: the one place that decides how they are compiled, kept, and in which precision they run.

``inline``  small maths, inlined by LLVM wherever it is used; never called from Python
``device``  larger helper that only other kernels call; compiled into its callers' modules
``apart``   one that stays a function of its own there: for large kernels, which would take a minute as one piece
``entry``   called from Python; the only functions that are cached on disk
``algorithm``  names a device function so that it can be handed to another kernel

Where kernels came compiled, or run as plain Python, the decorators leave functions as they are, and ``entry`` returns
the compiled one.
"""

from __future__ import annotations

import gc
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from synovia.kernels.compiler import cache, mode, numba, prebuilt
from synovia.kernels.compiler.entries import ENTRIES
from synovia.kernels.compiler.sources import name_of

F = np.float64  # the float type of this build of the kernels

# contract: FMA; nsz, arcp, afn: cheaper scalars. Never nnan or ninf: they delete checks for NaN and gain nothing.
SAFE = {"contract", "nsz", "arcp", "afn"}
DOT = SAFE | {"reassoc"}  # lets sums vectorise: 3 times faster dense products

_HELPER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_APART: dict[str, Any] = {**_HELPER, "forceinline": False}  # said, or numba takes over what the caller has
_ENTRY: dict[str, Any] = {"no_cfunc_wrapper": True}
if numba is not None:
    from synovia.kernels.compiler import compile_events, link

    compile_events.listen()
    if link.helper_pipeline is not None:
        _HELPER["pipeline_class"] = link.helper_pipeline
        _APART["pipeline_class"] = link.separate_pipeline
        _ENTRY["pipeline_class"] = link.entry_pipeline


def _decorator(cached: bool = False, **options: Any) -> Callable[..., Any]:
    """Return a decorator with the house's compile options."""
    if numba is None:
        return _other_entry if cached else lambda function: function
    # _nrt: nothing is allocated, so no references are counted either
    options = {"error_model": "numpy", "nogil": True, "fastmath": SAFE, "_nrt": False, **options}

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        if cached:
            compile_events.guard(kernel)
            _keep(kernel, Path(function.__code__.co_filename))
        return kernel

    return decorate


def _other_entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an entry point where numba compiles nothing: the machine code that came with the package, if it did."""
    name = f"{function.__module__.removeprefix('synovia.kernels.')}.{function.__name__}"
    if mode == "none" and name in ENTRIES:

        def entry(*arguments: Any) -> Any:
            from synovia.errors import MissingExtraError

            raise MissingExtraError(f"kernels need a compiler: {prebuilt.reason}", hint='pip install "synovia[jit]"')

        return entry
    return prebuilt.entries.get(name, function)


def _keep(kernel: Any, file: Path) -> None:
    """Have an entry point kept on disk: by content, or by numba where the path of its file has to count too."""
    if cache.ROOT is None or not file.is_file():  # a kernel typed at a prompt has no file to hash
        return
    if name_of(file) is not None and cache.keep is not None:
        cache.keep(kernel)
    elif cache.WRITABLE:  # a file from elsewhere may import what no hash of ours knows
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(cache.cache_folder(file))
        try:
            kernel.enable_caching()
        finally:
            numba.config.CACHE_DIR = before


inline = _decorator(forceinline=True, **_HELPER)
inline_exact = _decorator(forceinline=True, **_HELPER, fastmath=False)  # rounds as NumPy does
device = _decorator(**_HELPER)
device_dot = _decorator(**_HELPER, fastmath=DOT)
apart = _decorator(**_APART)
apart_dot = _decorator(**_APART, fastmath=DOT)
entry = _decorator(cached=True, **_ENTRY)


def ready(kernel: Callable[..., Any], *like: Any) -> Callable[..., Any]:
    """Load or compile an entry point by a call with nothing to do, and return the function of C behind it.

    numba's search for the compilation that fits the arguments takes a third of a call. The function that comes back
    does without, so its arguments must have the very types of ``like``, as arrays of the house's own do. A kernel that
    is no compiled entry point comes back itself.
    """
    searches = gc.isenabled()
    gc.disable()  # the compiler makes many objects that live to its end: searching them takes a tenth of the time
    try:
        kernel(*like)
    finally:
        if searches:
            gc.enable()
    dispatcher: Any = kernel
    if not getattr(dispatcher, "overloads", None):
        return kernel
    found = dispatcher.overloads.get(tuple(dispatcher.typeof_pyval(value) for value in like))
    return getattr(found, "entry_point", None) or kernel


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
    if numba is not None:
        from numba.extending import overload

        @overload(perform, jit_options=_HELPER)  # pyright: ignore[reportArgumentType]  # its type knows no pipeline_class
        def typed(name, problem, work, targets, q):
            if getattr(name, "instance_class", None) is not kind:
                return None
            return lambda name, problem, work, targets, q: kernel(problem, work, targets, q)

    return kind()
