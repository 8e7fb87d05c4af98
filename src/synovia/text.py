"""JSON and TOML: read strictly, where what the standards forbid or leave open is an error and never a guess.

And the words that writers of TOML need: texts and keys.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any, Final

from synovia.errors import FormatError

_MOST_DOTS: Final = 1000  # in a line; tomllib's time grows with the square of the parts of a dotted key


def parse_json(text: str, where: str) -> object:
    """Return the value of a JSON text.

    Args:
        text: The text.
        where: File that it comes from, for messages.

    Raises:
        FormatError: If it is malformed, a name stands twice in one object, a number is NaN or infinite, or it is nested
            too deeply.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise FormatError(f"field {twice!r} stands twice in one object", where=where)
        return out

    def no_number(word: str) -> float:
        raise FormatError(f"{word} is no number", where=where, expected="finite numbers")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=no_number)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"no JSON: {error.msg}", where=f"{where}: line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise FormatError("is nested too deeply", where=where) from error
    except FormatError:
        raise
    except ValueError as error:  # a whole number of thousands of digits
        raise FormatError("a number has too many digits", where=where) from error


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Return the content of a TOML text.

    Args:
        text: The text.
        where: File that it comes from, for messages.

    Raises:
        FormatError: If it is malformed, nested too deeply, or a key has too many parts.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MOST_DOTS:
            raise FormatError("line has too many dots", where=f"{where}, line {number}", expected="one key per line")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise FormatError("is nested too deeply", where=where) from error
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"is no TOML: {error}", where=where) from error
    except ValueError as error:  # a whole number of thousands of digits
        raise FormatError("a number has too many digits", where=where) from error


def toml_text(value: str) -> str:
    """Return a text as TOML writes it, in quotes."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # which JSON allows and TOML does not


def toml_key(name: str) -> str:
    """Return a key as TOML writes it: bare where that is allowed, else in quotes."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)
