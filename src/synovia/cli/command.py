"""Commands that list their arguments in the help, and a function to refuse options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Command(click.Command):
    """A command whose help lists arguments before options, as in click from version 8.5 on."""

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing here; ``format_options`` writes both lists in every version of click."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write arguments and options."""
        for title, kind in (("Arguments", click.Argument), ("Options", click.Option)):
            records = [one.get_help_record(ctx) for one in self.get_params(ctx) if isinstance(one, kind)]
            if rows := [record for record in records if record is not None]:
                with formatter.section(title):
                    formatter.write_dl(rows)


class Argument(click.Argument):
    """An argument with a help text.

    Args:
        declarations: List with the name of the argument.
        help: The help text.
        settings: Settings of ``click.Argument``.
    """

    def __init__(self, declarations: Any, *, help: str, **settings: Any) -> None:  # noqa: A002 - the word of click
        """Store the help text."""
        super().__init__(declarations, **settings)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return the row of the argument in the help."""
        return self.make_metavar(ctx), self.help or ""


def refuse(message: str, *names: str) -> None:
    """Refuse options of the current command.

    Args:
        message: The message, which says what was expected.
        names: Names of the options as parameters of the command's function.

    Raises:
        click.BadParameter: If one of the options was given.
    """
    ctx = click.get_current_context()
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name in names and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.BadParameter(message, ctx, parameter)
