"""Entry points called as the functions of C behind them."""

from collections.abc import Callable
from typing import Any

from synovia.kernels.compiler.jit import make_ready


def ready(kernel: Callable[..., Any], *like: Any) -> Callable[..., Any]:
    """Load or compile an entry point by a call with nothing to do, and return it without the search for what fits.

    That search, for the compilation that fits the arguments, takes a third of a call. What comes back trusts them: they
    must be of the very types of ``like``, as arrays of the house's own are. An entry point that is not compiled for
    them, or a kernel that is no entry point, comes back itself.
    """
    make_ready(kernel, *like)
    compilations = getattr(kernel, "overloads", None)
    if not compilations:
        return kernel
    dispatcher: Any = kernel
    found = compilations.get(tuple(dispatcher.typeof_pyval(value) for value in like))
    return getattr(found, "entry_point", None) or kernel
