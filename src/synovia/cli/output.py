"""How commands end and what they write: exit codes, data, talk, units, and names that cannot disturb a terminal."""

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

REACHED: Final = 0  # exit codes of commands; main has those of errors
MISSED: Final = 1
_WIDEST: Final = 10_000  # columns; a terminal wraps by itself
_UNITS: Final = {1.0: "m", 0.01: "cm", 0.001: "mm", 0.0254: "in"}


def emit(text: str) -> None:
    """Write data to stdout; a closed pipe (``synovia ... | head``) is ignored.

    Raises:
        FileError: If it is closed or full.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # closed by the shell
        raise FileError("standard output is closed")
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError, ValueError):  # ValueError: stdout is no real file
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it ends
        if not isinstance(error, BrokenPipeError):
            raise FileError(f"standard output cannot be written ({error.strerror})") from error


def emit_json(content: Mapping[str, Any]) -> None:
    """Write one JSON object to stdout, in ASCII, so that no encoding can spoil it; NaN and infinity are refused."""
    emit(json.dumps(content, indent=2, allow_nan=False))


def emit_rich(*parts: RenderableType) -> None:
    """Write tables, trees and text to stdout, coloured on a terminal, without cutting wide lines."""
    from rich.console import Console

    drawn = StringIO()  # never stdout itself: rich would write to it whatever it cannot be written to
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
    """Write a message for people to stderr."""
    with suppress(BrokenPipeError):
        sys.stderr.write(text if text.endswith("\n") else text + "\n")
        sys.stderr.flush()


def printable(name: str) -> str:
    """Return a name from a file with control characters escaped."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in name)


def unit_name(meters_per_unit: float | None) -> str:
    """Return the name of a length unit, ``unit`` where the file does not say."""
    if meters_per_unit is None:
        return "unit"
    return _UNITS.get(meters_per_unit, f"{meters_per_unit:g} m")


def number(value: float) -> str:
    """Return a number with six digits; never ``-0``."""
    return f"{value + 0.0:.6g}"
