"""Output of commands: exit codes, data on stdout, messages on stderr, units, times, and safe names."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from typing import Any, Final

import click

from synovia.errors import FileError

REACHED: Final = 0  # exit codes; ``main`` has those of errors
MISSED: Final = 1


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


def emit_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout; styles (``click.style``) only show on a terminal."""
    text = "\n".join(line.rstrip() for line in lines)
    at_terminal = sys.stdout is not None and sys.stdout.isatty()  # pyright: ignore[reportUnnecessaryComparison]
    emit(text if at_terminal and not os.environ.get("NO_COLOR") else click.unstyle(text))


def table(
    rows: Iterable[Sequence[str]], head: Sequence[str] = (), *, gap: int = 3, to_right: bool = False
) -> list[str]:
    """Return the lines of a table without borders.

    Args:
        rows: Cells, which may have styles; a row may end early.
        head: Titles of the columns.
        gap: Spaces between columns.
        to_right: Whether all columns but the first end at the same place, as numbers do.
    """
    cells = [tuple(head), *map(tuple, rows)] if head else [tuple(row) for row in rows]
    widths = [max(map(_width, column)) for column in zip_longest(*cells, fillvalue="")]
    lines: list[str] = []
    for row in cells:
        padded: list[str] = []
        for k, (cell, width) in enumerate(zip(row, widths, strict=False)):
            space = " " * (width - _width(cell))
            padded.append(space + cell if to_right and k else cell + space)
        lines.append((" " * gap).join(padded))
    return lines


def _width(text: str) -> int:
    """Return the number of columns that a text takes on a terminal."""
    plain = click.unstyle(text)
    if plain.isascii():
        return len(plain)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in plain)


def talk(text: str) -> None:
    """Write a message to stderr, unless that is closed or full: the exit code stays that of the command."""
    with suppress(OSError, AttributeError):  # AttributeError: the shell closed it, so it is None
        sys.stderr.write(text if text.endswith("\n") else text + "\n")
        sys.stderr.flush()


@contextmanager
def warnings_told() -> Generator[None]:
    """Write the warnings about files that the work raises to stderr, as plain sentences and each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            told = dict.fromkeys(str(one.message) for one in caught if one.category is UserWarning)
            for text in told:
                talk(f"synovia: {printable(text)}")


def printable(name: str) -> str:
    """Return a name with control characters escaped, because a file can hold any name."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in name)


def number(value: float) -> str:
    """Return a number with six digits; never ``-0``."""
    return f"{value + 0.0:.6g}"


def time_text(seconds: float) -> str:
    """Return a time with three digits in µs, ms or s."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"
