"""Decorators of kernels; only this file sets the compile options, the caching and the float type.

``inline``     small functions, inlined by LLVM into all callers; never called from Python
``device``     larger helpers that only kernels call; most are inlined too
``apart``      helpers that are never inlined, because large kernels would take a minute to compile as one function
``entry``      functions that Python calls; only these are cached on disk
``algorithm``  functions that can be passed to other kernels as arguments; not inlined
``step``       as ``algorithm``, for a step that a loop repeats; inlined

With prebuilt kernels or in plain Python, the decorators return functions unchanged; ``entry`` returns the prebuilt
function if there is one.
"""

from __future__ import annotations

import functools
import gc
import warnings
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from synovia.kernels.compiler import advice, cache, mistaken, mode, numba, prebuilt, unasked
from synovia.kernels.compiler.entries import ENTRIES, name_of_entry
from synovia.kernels.compiler.sources import name_of

F = np.float64  # the float type of all kernels: F(0) is a zero of this type

# LLVM's flags for floats. contract allows FMA; nsz, arcp and afn allow cheaper scalars. nnan and ninf are never used,
# because they delete checks for NaN and gain nothing.
SAFE = {"contract", "nsz", "arcp", "afn"}
DOT = SAFE | {"reassoc"}  # reassoc allows vectorised sums: dense products take a third of the time

_HELPER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_APART: dict[str, Any] = {**_HELPER, "forceinline": False}  # if not given, numba uses the option of the caller
_ENTRY: dict[str, Any] = {"no_cfunc_wrapper": True}
if mode == "jit":
    from synovia.kernels.compiler import compile_events, link

    compile_events.listen()
    if link.helper_pipeline is not None:
        _HELPER["pipeline_class"] = link.helper_pipeline
        _APART["pipeline_class"] = link.separate_pipeline
        _ENTRY["pipeline_class"] = link.entry_pipeline


def _decorator(cached: bool = False, **options: Any) -> Callable[..., Any]:
    """Return a decorator with our compile options."""
    if mode != "jit":
        return _other_entry if cached else lambda function: function
    # without _nrt, code has no reference counts: kernels allocate nothing
    options = {"error_model": "numpy", "nogil": True, "fastmath": SAFE, "_nrt": False, **options}

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        if cached:
            compile_events.guard(kernel)
            _keep(kernel, Path(function.__code__.co_filename))
        else:
            _take_integers_alike(kernel)
        return kernel

    return decorate


def _other_entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an entry point for modes without numba: machine code, plain Python, or a function that raises."""
    name = name_of_entry(function)
    if mode == "none" and name in ENTRIES:

        def entry(*arguments: Any) -> Any:
            from synovia.errors import InputError, MissingExtraError

            kind = InputError if mistaken else MissingExtraError
            raise kind(f"the solvers cannot run: {prebuilt.reason}", hint=advice)

        return entry
    if unasked and name in ENTRIES:
        return _with_warning(function)
    return prebuilt.entries.get(name, function)


_warned: list[bool] = []


def _with_warning(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an entry point in plain Python that warns once per process that it is not compiled."""

    @functools.wraps(function)
    def entry(*arguments: Any) -> Any:
        if not _warned:
            _warned.append(True)
            what = f"solving uncompiled, a hundred times more slowly: {prebuilt.reason}. To compile, {advice}."
            warnings.warn(f"synovia: {what}", UserWarning, stacklevel=2)
        return function(*arguments)

    return entry


def _take_integers_alike(kernel: Any) -> None:
    """Compile a helper once for all integers; numba would compile it for int32, int64 and each integer literal."""
    from numba.core.types import int32, int64, unliteral

    def widened(kind: Any) -> Any:
        return int64 if kind == int32 else unliteral(kind)

    if find := getattr(kernel, "get_call_template", None):  # a private part of numba, which may disappear
        kernel.get_call_template = lambda args, kws: find(tuple(map(widened, args)), kws)


def _keep(kernel: Any, file: Path) -> None:
    """Cache an entry point on disk: in our cache, or in numba's cache for a file outside the package."""
    if cache.ROOT is None or not file.is_file():  # a kernel typed at a prompt has no file to hash
        return
    if name_of(file) is not None and cache.keep is not None:
        cache.keep(kernel)
    elif cache.WRITABLE:  # our hash does not cover the imports of a file from outside the package
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
    """Load or compile an entry point by a call without work, and return its C function.

    The C function skips numba's dispatch on argument types, which takes a third of the time of a call. So its arguments
    must have exactly the types of ``like``. Return ``kernel`` itself if it is not a compiled entry point.
    """
    searches = gc.isenabled()
    gc.disable()  # scanning the many long-lived objects of the compiler takes a tenth of the time
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


def algorithm(function: Callable[..., Any]) -> Any:
    """Return a handle of a kernel that can be passed to other kernels, which call it as ``perform(handle, ...)``.

    numba can pass a compiled function directly, but it stores the address, so callers could not be cached. The handle
    is an empty named tuple; its type selects the function when the caller is compiled.

    The kernel is compiled once, although several parts of the search call it.
    """
    return _handle(function, apart)


def step(function: Callable[..., Any]) -> Any:
    """Return a handle, like that of ``algorithm``, of a short kernel that is inlined into the loop that repeats it."""
    return _handle(function, device)


def _handle(function: Callable[..., Any], decorator: Callable[..., Any]) -> Any:
    module = function.__module__.removeprefix("synovia.kernels.").replace(".", "__")
    kind = namedtuple(f"{module}__{function.__name__}", ())  # pyright: ignore[reportUntypedNamedTuple]  # empty
    _ALGORITHMS[kind] = decorator(function)
    return kind()


if mode == "jit":
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic
    def perform(typingctx, name, problem, work, targets, q):  # pyright: ignore[reportRedeclaration]  # defined twice
        """Run an algorithm, given as the value that ``algorithm`` returned."""
        kernel = types.Dispatcher(_ALGORITHMS[name.instance_class])

        def call_type():
            return kernel.get_call_type(typingctx, (problem, work, targets, q), {})

        def codegen(context, builder, _, args):
            return context.get_function(kernel, call_type())(builder, args[1:])

        return call_type().return_type(name, problem, work, targets, q), codegen

else:

    def perform(name, problem, work, targets, q):
        """Run an algorithm, given as the value that ``algorithm`` returned."""
        return _ALGORITHMS[type(name)](problem, work, targets, q)
