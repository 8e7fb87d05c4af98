"""Output of commands: exit codes, data on stdout, messages on stderr, units, times, and safe names."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

from synovia.errors import FileError

if TYPE_CHECKING:
    from rich.console import RenderableType

REACHED: Final = 0  # exit codes; ``main`` has those of errors
MISSED: Final = 1
_WIDEST: Final = 10_000  # columns; the terminal wraps long lines
_UNITS: Final = {1.0: "m", 0.01: "cm", 0.001: "mm", 0.0254: "in"}


def emit(text: str) -> None:
    """Write data to stdout; ignore a closed pipe (``synovia ... | head``).

    Raises:
        FileError: If stdout is closed or its disk is full.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # closed by the shell
        raise FileError("standard output is closed")
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError, ValueError):  # ValueError: stdout is not a real file
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes again at exit
        if not isinstance(error, BrokenPipeError):
            raise FileError(f"standard output cannot be written ({error.strerror})") from error


def emit_json(content: Mapping[str, Any]) -> None:
    """Write a JSON object to stdout, in ASCII for any encoding.

    Raises:
        ValueError: If a number is NaN or infinite.
    """
    emit(json.dumps(content, indent=2, allow_nan=False))


def emit_rich(*parts: RenderableType) -> None:
    """Write tables, trees and text to stdout, with colours on a terminal and without cutting long lines."""
    from rich.console import Console

    drawn = StringIO()  # rich would not handle the errors of stdout as ``emit`` does
    console = Console(
        file=drawn,
        force_terminal=sys.stdout is not None and sys.stdout.isatty(),  # pyright: ignore[reportUnnecessaryComparison]
        markup=False,
        emoji=False,
        highlight=False,
        width=_WIDEST,
        soft_wrap=True,
    )
    for part in parts:
        console.print(part)
    emit("\n".join(line.rstrip() for line in drawn.getvalue().splitlines()))


def talk(text: str) -> None:
    """Write a message to stderr."""
    with suppress(BrokenPipeError):
        sys.stderr.write(text if text.endswith("\n") else text + "\n")
        sys.stderr.flush()


def printable(name: str) -> str:
    """Return a name with control characters escaped, because a file can hold any name."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in name)


def unit_name(meters_per_unit: float | None) -> str:
    """Return the name of a length unit, ``unit`` if it is unknown."""
    if meters_per_unit is None:
        return "unit"
    return _UNITS.get(meters_per_unit, f"{meters_per_unit:g} m")


def number(value: float) -> str:
    """Return a number with six digits; never ``-0``."""
    return f"{value + 0.0:.6g}"


def time_text(seconds: float) -> str:
    """Return a time with three digits in µs, ms or s."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"
