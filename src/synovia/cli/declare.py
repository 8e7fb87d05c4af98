"""Build commands from descriptions of jobs: options, arguments, and the job of a command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from synovia.cli import completion
from synovia.cli.command import Argument, Command
from synovia.cli.running import perform
from synovia.errors import InputError, SynoviaError, UnknownNameError
from synovia.jobs.base import UsageError
from synovia.jobs.job import Running, Verb, running_options
from synovia.jobs.options import File, Flag, Kind, Model, Option, Word, flag_of, options_of
from synovia.jobs.shared import JSON

# File access is checked later, when the format is known.
FILE: Final = click.Path(path_type=Path)
FILE_NAME: Final = click.Path()  # file name as text, which keeps a slash at its end
_K = TypeVar("_K")
SOURCES: Final = "sources"
AS_JSON: Final = "as_json"
_OF_RUNNING: Final = tuple(one.name for one in fields(Running))
_OFFERS: Final = {
    "models": completion.models, "joints": completion.joints, "targets": completion.targets,
    "solvers": completion.solvers, "roots": completion.roots,
}  # fmt: skip


def command_of(name: str, verb: Verb) -> click.Command:
    """Return a command built from a description.

    Args:
        name: Name of the command.
        verb: The description.
    """
    parameters: list[click.Parameter] = [_argument(SOURCES, verb.sources, several=verb.several)]
    parameters += [_argument(field, said) for field, said, _ in verb.options() if said.positional]
    parameters += _options(_ordered(verb))
    parameters.append(_json_option(prints_one=verb.prints_json))

    def invoke(**given: Any) -> int:
        return _invoke(verb, given)

    return Command(name, params=parameters, callback=invoke, help=verb.about)


def with_options(kind: type[_K]) -> Callable[[Callable[[_K], int | None]], click.Command]:
    """Return a decorator that makes a command of a function whose only argument holds all options.

    Args:
        kind: Class of the object; its fields describe the options.
    """

    def decorate(function: Callable[[_K], int | None]) -> click.Command:
        own = list(options_of(kind))
        parameters: list[click.Parameter] = [_argument(name, said) for name, said, _ in own if said.positional]
        parameters += _options([one for one in own if not one[1].positional])

        def invoke(**given: Any) -> int | None:
            try:
                return function(kind(**_without_none(given)))
            except UsageError as error:
                raise _usage(error, click.get_current_context()) from error

        return Command(function.__name__, params=parameters, callback=invoke, help=function.__doc__)

    return decorate


def _ordered(verb: Verb) -> list[tuple[str, Option, Any]]:
    """Return name, description and default of each option of a command, in the order of the help.

    Options that name inputs come before the output; options of the jobs come before most options of ``Running``.
    """
    own = [one for one in verb.options() if not one[1].positional]
    inputs = [(name, said, None) for name, said in verb.inputs.items()]
    running = list(running_options(verb.jobs[0]))
    first = [one for one in running if one[1].rank < 1]
    main = [one for one in own if one[1].rank < 0]
    rest = [one for one in own if one[1].rank >= 0]
    return [*main, *inputs, *first, *rest, *(one for one in running if one[1].rank > 0)]


def _options(described: Iterable[tuple[str, Option, Any]]) -> list[click.Parameter]:
    """Return click options built from descriptions."""
    return [_option(name, said, default) for name, said, default in described]


def _option(name: str, said: Option, default: Any) -> click.Option:
    """Return a click option built from a description.

    Args:
        name: Name of the parameter of the command's function.
        said: The description.
        default: The default value.
    """
    names = list(said.names) or [flag_of(name, said)]
    more: dict[str, Any] = {"help": said.help, "required": said.required}
    if isinstance(said.kind, Flag):
        if said.kind.both:
            names = [f"{names[0]}/--no-{names[0].removeprefix('--')}"]
            more["default"] = default  # None if neither the flag nor its ``--no-`` form is given
        else:
            more["is_flag"] = True
    else:
        more |= {"metavar": said.metavar, "type": typed(said.kind), "multiple": said.repeats}
    if said.completes:
        more["shell_complete"] = _OFFERS[said.completes]
    if said.shown:
        more["show_default"] = said.shown
    if default is not None and default != ():
        more["default"] = default
    return click.Option([*names, name], **more)


def _argument(name: str, said: Option, *, several: bool = False) -> click.Argument:
    """Return a click argument built from a description; with ``several``, it accepts any number of values."""
    more: dict[str, Any] = {"shell_complete": _OFFERS[said.completes]} if said.completes else {}
    count = -1 if several else 1
    shown = said.metavar if said.required or said.metavar is None else f"[{said.metavar}]"
    return Argument([name], help=said.help, metavar=shown, nargs=count, required=said.required, **more)


def _json_option(*, prints_one: bool) -> click.Option:
    """Return the option ``--json``; with ``prints_one``, the command can print an object for a single input."""
    said = JSON if prints_one else replace(JSON, help="For many inputs: print a line of JSON for each.")
    return _option(AS_JSON, said, False)


def _invoke(verb: Verb, given: dict[str, Any]) -> int:
    """Run the job of a command line, and return the exit code."""
    ctx = click.get_current_context()
    on_line = [name for name in given if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    sources, as_json = given.pop(SOURCES), given.pop(AS_JSON)
    sources = list(sources) if verb.several else [sources]
    running = {name: given.pop(name) for name in _OF_RUNNING}
    if verb.takes_output and running["output"] is None and len(sources) > 1:
        running["output"] = sources.pop()
    try:
        how = Running(**_without_none(running))
        job, sources = verb.made(_without_none(given), sources, on_line)
        _check_needs(verb, given, on_line)
        return perform(job, sources, how, as_json=as_json, prints_json=verb.prints_json)
    except UsageError as error:
        raise _usage(error, ctx) from error


def _check_needs(verb: Verb, given: Mapping[str, Any], on_line: Iterable[str]) -> None:
    """Refuse options given without the flag that they need.

    Raises:
        UsageError: If a flag is missing.
    """
    described = {name: said for name, said, _ in verb.options()}
    for name in on_line:
        said = described.get(name)
        if said is not None and said.needs and not given.get(said.needs):
            needed = flag_of(said.needs, described[said.needs])
            raise UsageError(f"expected {needed} with this option.", flag_of(name, said))


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def _usage(error: UsageError, ctx: click.Context) -> click.UsageError:
    """Convert a usage error to an error of click."""
    if not error.option:
        return click.UsageError(error.what, ctx)
    for parameter in ctx.command.params:
        if error.option.startswith("--") and error.option in parameter.opts:
            return click.BadParameter(error.what, ctx, parameter)
    return click.BadParameter(error.what, ctx, param_hint=f"'{error.option}'")


def typed(kind: Kind) -> Any:
    """Return the click type for a ``Kind`` of value; None for any text."""
    if isinstance(kind, File):
        return FILE_NAME if kind.as_text else FILE
    if isinstance(kind, Word):
        return _Word(kind)
    return None if type(kind) in (Kind, Model) else _Checked(kind)


class _Checked(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  # plain in click 8.2
    """A click type that converts and checks texts with a ``Kind``.

    Args:
        kind: The kind of value.
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
