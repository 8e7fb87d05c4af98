"""Convert the kinds of options to parameter types of click; a wrong value becomes a usage error."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from synovia.errors import InputError, SynoviaError, UnknownNameError
from synovia.jobs.options import File, Kind, Model, Word

# File access is checked later, when the format is known.
FILE: Final = click.Path(path_type=Path)
FILE_NAME: Final = click.Path()  # file name as text, which keeps a slash at its end


def typed(kind: Kind) -> Any:
    """Return the parameter type of a kind; None for any text."""
    if isinstance(kind, File):
        return FILE_NAME if kind.as_text else FILE
    if isinstance(kind, Word):
        return _Word(kind)
    return None if type(kind) in (Kind, Model) else _Checked(kind)


class _Checked(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  # plain in click 8.2
    """A parameter type that converts texts by a kind.

    Args:
        kind: The kind.
    """

    name = "text"

    def __init__(self, kind: Kind) -> None:
        """Store the kind."""
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a value by the kind."""
        return _converted(self._kind, value, param, ctx)


class _Word(click.Choice[str]):
    """A parameter type for one of several words; shells offer the words as completions.

    Args:
        kind: The words.
    """

    def __init__(self, kind: Word) -> None:
        """Store the words."""
        super().__init__(kind.words)
        self._kind = kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the words, for the help."""
        return "|".join(self.choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value if it is one of the words."""
        return _converted(self._kind, value, param, ctx)


def _converted(kind: Kind, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
    """Convert a text by a kind.

    Raises:
        click.BadParameter: If the text is not of this kind.
    """
    try:
        return kind.of(value)
    except (InputError, UnknownNameError) as error:
        what = error.what if error.expected is None or isinstance(error, UnknownNameError) else ""
        text = str(SynoviaError(what, value=error.value, expected=error.expected, hint=error.hint))
        raise click.BadParameter(text if text.endswith(("?", ".")) else f"{text}.", ctx, param) from error
