"""Run one solve as plain Python if its kernels are not compiled; compiling takes up to half a minute.

Most solves take less than a second as plain Python. The limit is on the amount of work, not on time, so that a command
gives the same answer every time. If a solve exceeds the limit, the process removes its kernels, imports them again to
be compiled, and runs the command from the beginning.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import click

from synovia.cli.output import talk

if TYPE_CHECKING:
    from synovia.model.geometry import Array

# Modules that run a command and their imports; they hold no kernels, so they stay while all others are imported again.
KEPT: Final = frozenset(
    {"errors", "compiling", "text", "cli"}
    | {"cli.app", "cli.command", "cli.completion", "cli.output", "cli.progress", "cli.uncompiled"}
)
_CHOICE: Final = "SYNOVIA_KERNELS"
_WORK: Final = 500_000.0  # joint visits in about 20 s; only full-body comes close, and compiling for it takes a minute
_LITTLE: Final = 100_000.0  # joint visits; the limit if there is no compiler, so that the error comes early
_PATIENCE: Final = 3.0  # seconds of work before a notice


class NeedsCompilerError(Exception):
    """Exception for a solve that takes too much work for plain Python."""


_required: list[bool] = []  # not empty if this process, and not the user, has set the environment variable


def require_compiled() -> None:
    """Make commands fail if kernels cannot be compiled, because plain Python would take minutes."""
    if not os.environ.get(_CHOICE):
        os.environ[_CHOICE] = "compiled"
        _required.append(True)


def is_chosen() -> bool:
    """Return whether the user chose how kernels run."""
    return bool(os.environ.get(_CHOICE)) and not _required


def begin() -> bool:
    """Run kernels as plain Python, unless the user chose otherwise or prebuilt kernels exist.

    Call this before kernels are imported, in a process that runs a single command. The kernels then raise
    ``NeedsCompilerError`` after a limited amount of work.

    Returns:
        Whether the kernels run as plain Python.
    """
    alone = click.get_current_context().obj
    if not alone or is_chosen() or "synovia.kernels.compiler" in sys.modules:
        return False
    before, os.environ[_CHOICE] = os.environ.get(_CHOICE, ""), "uncompiled"
    try:
        from synovia.kernels import compiler
    finally:
        os.environ[_CHOICE] = before
    if compiler.mode != "python":
        return False
    from synovia.kernels.compiler import watch

    watch.is_over = _limited(watch.is_over)  # type: ignore[assignment]  # looked up at each call in plain Python
    return True


def _limited(is_over: Callable[[Array], bool]) -> Callable[[Array], bool]:
    """Return ``is_over`` with a limit on the work of the whole process, because explanations solve again in threads."""
    from synovia.kernels.compiler.watch import PORTION, WORK_LEFT

    left = _WORK if find_spec("numba") else _LITTLE
    shown, begun, lock = False, time.monotonic(), threading.Lock()

    def limited(numbers: Array) -> bool:
        nonlocal left, shown
        with lock:
            left -= PORTION - numbers[WORK_LEFT]
            late = not shown and time.monotonic() - begun > _PATIENCE
            shown = shown or late
        if late:
            talk("Solving uncompiled, which may take half a minute.")
        if left < 0.0:
            raise NeedsCompilerError
        return is_over(numbers)

    return limited


def forget_kernels() -> None:
    """Remove the kernels that run as plain Python, and all modules that may hold references to them.

    The next command imports these modules again, with compiled kernels. The remaining modules hold no kernels.
    """
    for name in [name for name in sys.modules if name.split(".")[0] == "synovia"]:
        if name.removeprefix("synovia.") not in KEPT:
            del sys.modules[name]
            package, _, module = name.rpartition(".")
            if package.removeprefix("synovia.") in KEPT:
                vars(sys.modules[package]).pop(module, None)
