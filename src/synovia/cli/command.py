"""Commands: loaded when they are named, with their arguments in the help, and with options in bundles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, Final

import click
from click.core import ParameterSource

from synovia.errors import did_you_mean

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

# Names that other programs have for a command
_ALIKE: Final = {"info": "inspect", "show": "view", "play": "view", "picture": "render", "draw": "render"} | {
    "save": "convert",
    "export": "convert",
    "track": "animate",
    "follow": "animate",
}


class Commands(click.Group):
    """A group whose commands are imported when they are named.

    Args:
        homes: Module of each command, which has the command under its own name.
        settings: Settings of ``click.Group``.
    """

    def __init__(self, homes: Mapping[str, str], **settings: Any) -> None:
        """Store the modules."""
        super().__init__(**settings)
        self._homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self._homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, None for an unknown name."""
        home = self._homes.get(cmd_name)
        return None if home is None else getattr(import_module(home), cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return name, command and its arguments.

        Raises:
            click.UsageError: If there is no such command; the message has the nearest ones.
        """
        if args[0] not in self._homes and not ctx.resilient_parsing:
            meant = _ALIKE.get(args[0])
            hint = f"Did you mean {meant!r}?" if meant in self._homes else did_you_mean(args[0], self._homes)
            raise click.UsageError(f"expected a command, got {args[0]!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)


class Command(click.Command):
    """A command whose help lists arguments before options, as that of click does from version 8.5 on."""

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
        declarations: Its name.
        help: The help text.
        settings: Settings of ``click.Argument``.
    """

    def __init__(self, declarations: Any, *, help: str, **settings: Any) -> None:  # noqa: A002 - the word of click
        """Store the help text."""
        super().__init__(declarations, **settings)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return its row in the help."""
        return self.make_metavar(ctx), self.help or ""


def bundle(name: str, kind: Any, *options: Decorator) -> Decorator:
    """Return a decorator that adds options to a command, which gets their values as one named tuple.

    Args:
        name: Name of the tuple among the arguments of the command.
        kind: Its class, a ``NamedTuple``. A field keeps its default if the command has no such option.
        options: The options.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(**given: Any) -> Any:
            values = {field: given.pop(field) for field in kind._fields if field in given}
            return function(**{name: kind(**values)}, **given)

        decorated: Callable[..., Any] = run
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def wrong(option: str, message: str) -> click.BadParameter:
    """Return the error of usage for an option.

    Args:
        option: The option, for example ``-o``.
        message: What was expected.
    """
    return click.BadParameter(message, param_hint=f"'{option}'")


def refuse(message: str, *names: str) -> None:
    """Refuse options of the present command.

    Args:
        message: What was expected.
        names: Names of the options in the function of the command.

    Raises:
        click.BadParameter: If one of them was given.
    """
    ctx = click.get_current_context()
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name in names and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.BadParameter(message, ctx, parameter)
