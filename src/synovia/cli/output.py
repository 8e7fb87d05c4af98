"""Output of commands: exit codes, data on stdout, messages on stderr."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import click

from synovia.errors import FileError
from synovia.text import Report, printable

REACHED: Final = 0  # exit code; jobs return 1 for missed targets, and ``main`` returns the codes of errors


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
        with suppress(OSError, ValueError):  # ValueError: stdout has no file descriptor
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes again at exit
        if not isinstance(error, BrokenPipeError):
            raise FileError(f"standard output cannot be written ({error.strerror})") from error


def emit_json(content: Mapping[str, Any]) -> None:
    """Write a JSON object to stdout, in ASCII for any encoding.

    Raises:
        ValueError: If a number is NaN or infinite.
    """
    emit(json.dumps(content, indent=2, allow_nan=False))


def emit_report(report: Report, *, as_json: bool) -> None:
    """Write a report to stdout: its facts as a JSON object, or its text, see ``emit_text``."""
    if as_json:
        emit_json(report.to_object())
    else:
        emit_text("\n".join(line.rstrip() for line in report.split("\n")))


def emit_text(text: str) -> None:
    """Write a text to stdout; styles (``click.style``) only show on a terminal."""
    at_terminal = sys.stdout is not None and sys.stdout.isatty()  # pyright: ignore[reportUnnecessaryComparison]
    emit(text if at_terminal and not os.environ.get("NO_COLOR") else click.unstyle(text))


def talk(text: str) -> None:
    """Write a message to stderr; ignore a closed or full stderr, so that the exit code does not change."""
    with suppress(OSError, AttributeError):  # AttributeError: stderr is None because the shell closed it
        sys.stderr.write(text if text.endswith("\n") else text + "\n")
        sys.stderr.flush()


@contextmanager
def reported_warnings() -> Generator[None]:
    """Collect user warnings raised in the block, and write each once to stderr as a plain sentence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            texts = dict.fromkeys(str(one.message) for one in caught if one.category is UserWarning)
            for text in texts:
                talk(f"synovia: {printable(text)}")
