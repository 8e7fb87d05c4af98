"""Text of reports: tables, numbers, times, and terminal styles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Final

_STYLES: Final = {"green": 32, "yellow": 33, "dim": 2, "bold": 1}
_STYLED: Final = re.compile(r"\x1b\[[\d;]*m")


def style(text: str, *names: str) -> str:
    """Return a text with terminal styles: "green", "yellow", "dim" or "bold"."""
    return "".join(f"\x1b[{_STYLES[name]}m" for name in names) + f"{text}\x1b[0m"


def unstyled(text: str) -> str:
    """Return a text without styles."""
    return _STYLED.sub("", text)


def table(
    rows: Iterable[Sequence[str]], head: Sequence[str] = (), *, gap: int = 3, to_right: bool = False
) -> list[str]:
    """Return the lines of a table without borders.

    Args:
        rows: Cells, which may have styles; a row may end early.
        head: Titles of the columns.
        gap: Spaces between columns.
        to_right: Whether to align all columns but the first to the right, as for numbers.
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
    plain = unstyled(text)
    if plain.isascii():
        return len(plain)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in plain)


def number(value: float) -> str:
    """Return a number with six digits; never ``-0``."""
    return f"{value + 0.0:.6g}"


def time_text(seconds: float) -> str:
    """Return a time with three digits in µs, ms or s."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"
