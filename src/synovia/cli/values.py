"""Types of option values: numbers, words, files, and texts that the library checks. A wrong value is wrong usage."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from synovia.errors import InputError, SynoviaError, UnknownNameError, did_you_mean

# Whether a file can be read or written is checked when its format is known.
FILE: Final = click.Path(path_type=Path)
FILE_NAME: Final = click.Path()  # a text, which keeps a slash at its end
NUMBER: Final = re.compile("[0-9]{1,9}")  # of a clip, joint or frame; Python refuses to read thousands of digits


class Number(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  # plain in click 8.2
    """A finite number within bounds.

    Args:
        least: Smallest value.
        most: Largest value.
        whole: Whether it is a whole number.
        above: Whether the smallest value itself is out of range.
    """

    name = "number"

    def __init__(
        self, least: float = -math.inf, most: float = math.inf, *, whole: bool = False, above: bool = False
    ) -> None:
        """Store the bounds and describe them."""
        self._least, self._most, self._whole, self._above = least, most, whole, above
        text = "a whole number" if whole else "a number"
        if most < math.inf:
            text += f" from {least:g} to {most:.10g}"
        elif least > -math.inf:
            text += f" above {least:g}" if above else f" from {least:g}"
        self._text = text

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        try:
            number = int(value) if self._whole else float(value)
        except ValueError:
            number = math.nan
        inside = self._least <= number <= self._most and abs(number) != math.inf
        if not inside or (self._above and number == self._least):
            self.fail(f"expected {self._text}, got {value!r}.", param, ctx)
        return number


class Word(click.Choice[str]):
    """One of several words."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the words."""
        return "|".join(self.choices)

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the message for another word, with the nearest ones."""
        hint = did_you_mean(str(value), self.choices)
        near = f". {hint}" if hint.startswith("Did") else "."
        return f"expected one of {', '.join(self.choices)}, got {value!r}{near}"


class Checked(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """A text that a function turns into a value.

    Args:
        parse: The function; its ``InputError`` or ``UnknownNameError`` becomes an error of usage.
    """

    name = "text"

    def __init__(self, parse: Callable[[str], Any]) -> None:
        """Store the function."""
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except (InputError, UnknownNameError) as error:
            what = error.what if error.expected is None or isinstance(error, UnknownNameError) else ""
            text = str(SynoviaError(what, value=error.value, expected=error.expected, hint=error.hint))
            self.fail(text if text.endswith(("?", ".")) else f"{text}.", param, ctx)


def ending_type(known: Callable[[], Sequence[str]]) -> Checked:
    """Return the type of an ending of file names, with or without its dot; its value has the dot.

    Args:
        known: Returns the endings that can be written, each with its dot.
    """

    def parse(text: str) -> str:
        found = "." + text.lower().removeprefix(".")
        if found not in known():
            raise InputError("", value=text, expected=f"one of {', '.join(one[1:] for one in known())}")
        return found

    return Checked(parse)


def numbers(text: str, least: int, most: int, whole: str | None = None) -> tuple[float, ...]:
    """Return the finite numbers of a list with commas.

    Args:
        text: The list.
        least: Least count of numbers.
        most: Largest count of numbers.
        whole: The whole value of the option, for the message; None for the list.

    Raises:
        InputError: If the text is not a list of finite numbers, or their count is wrong.
    """
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not least <= len(values) <= most or not all(map(math.isfinite, values)):
        count = str(least) if least == most else f"{least} to {most}"
        raise InputError("", value=whole or text, expected=f"{count} finite numbers separated by commas")
    return values


def names(text: str) -> list[str]:
    """Return the names of a list with commas.

    Raises:
        InputError: If one is empty.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InputError("", value=text, expected="names separated by commas")
    return parts
