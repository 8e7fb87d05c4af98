"""Options: class fields that define type, default, unit and help once for the command line, Python and the docs.

A field made by ``option`` or ``argument`` holds an ``Option``. The ``Option`` defines the option of the command, the
check of values from Python, the settings that a ledger compares, and the rows of tables in the docs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar, cast, dataclass_transform

from synovia.errors import InputError, did_you_mean
from synovia.options import Shared

NUMBER: Final = re.compile("[0-9]{1,9}")  # number of a clip, joint or frame; Python cannot convert thousands of digits
ALWAYS: Final = "always"
NEVER: Final = "never"
IF_CHANGED: Final = "if changed"
_KEY: Final = "option"  # key in the metadata of a field
_C = TypeVar("_C")


class Kind:
    """A kind of value; this base class accepts any value."""

    def of(self, value: Any) -> Any:
        """Convert a text to a value; check a value that is no text.

        Raises:
            InputError: If the value is not of this kind; the caller adds ``where``.
        """
        return value

    def setting(self, value: Any) -> Any:
        """Return a value as a JSON value; for a file, also the hash of its content."""
        return value


_ANY: Final = Kind()


class Flag(Kind):
    """A flag, True or False.

    Args:
        both: Whether the command line has a name for each value, such as ``--hold-feet`` and ``--no-hold-feet``.
    """

    def __init__(self, *, both: bool = False) -> None:
        """Store the argument."""
        self.both = both

    def of(self, value: Any) -> bool:
        """Check that a value is True or False, and return it."""
        if isinstance(value, bool):
            return value
        raise InputError("", value=value, expected="True or False")


class File(Kind):
    """A file; its access is checked later, when the format is known.

    Args:
        as_text: Whether to store the name as a text, which keeps a slash at its end.
    """

    def __init__(self, *, as_text: bool = False) -> None:
        """Store the argument."""
        self.as_text = as_text

    def of(self, value: Any) -> Any:
        """Convert a name to a path, or to a text with ``as_text``."""
        return str(value) if self.as_text else Path(value) if isinstance(value, str) else value

    def setting(self, value: Any) -> Any:
        """Return the name of the file and the hash of its content."""
        from synovia.batch.content import file_settings

        return file_settings(str(value))


class Model(Kind):
    """A model file, or the name of a bundled model."""

    def of(self, value: Any) -> Any:
        """Return the name as text."""
        return str(value)

    def setting(self, value: Any) -> Any:
        """Return the name of the model and the hash of its file."""
        from synovia.batch.content import model_settings

        return model_settings(value)


class Number(Kind):
    """A finite number within bounds.

    Args:
        least: Smallest value.
        most: Largest value.
        whole: Whether to accept only whole numbers.
        above: Whether the number must be greater than ``least``.
    """

    def __init__(
        self, least: float = -math.inf, most: float = math.inf, *, whole: bool = False, above: bool = False
    ) -> None:
        """Store the bounds, and describe the bounds for messages."""
        self._least, self._most, self._whole, self._above = least, most, whole, above
        self._text = "a whole number" if whole else "a number"
        if most < math.inf:
            self._text += f" from {least:g} to {most:.10g}"
        elif least > -math.inf:
            self._text += f" above {least:g}" if above else f" from {least:g}"

    def of(self, value: Any) -> float:
        """Convert a value to a number within the bounds."""
        try:
            number = int(value) if self._whole else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        inside = self._least <= number <= self._most and abs(number) != math.inf
        same = isinstance(value, str) or number == value
        if not (inside and same) or (self._above and number == self._least):
            raise InputError("", value=value, expected=self._text)
        return number


class Word(Kind):
    """One of several words.

    Args:
        words: The words.
    """

    def __init__(self, words: Sequence[str]) -> None:
        """Store the words."""
        self.words = tuple(words)

    def of(self, value: Any) -> str:
        """Check that a value is one of the words, and return it."""
        if value in self.words:
            return value
        hint = did_you_mean(str(value), self.words)
        near = hint if hint.startswith("Did") else None
        raise InputError("", value=value, expected=f"one of {', '.join(self.words)}", hint=near)


class Parsed(Kind):
    """A text that a function parses; other values stay unchanged.

    Args:
        parse: The function; it raises ``InputError`` or ``UnknownNameError``.
        setting: Returns the value as a JSON value; None for the value itself.
    """

    def __init__(self, parse: Callable[[str], Any], setting: Callable[[Any], Any] | None = None) -> None:
        """Store the functions."""
        self._parse, self._setting = parse, setting

    def of(self, value: Any) -> Any:
        """Parse a text; return any other value unchanged."""
        return self._parse(value) if isinstance(value, str) else value

    def setting(self, value: Any) -> Any:
        """Return the value as a JSON value."""
        return value if self._setting is None else self._setting(value)


@dataclass(frozen=True, slots=True)
class Option:
    """Description of an option.

    Args:
        help: Help text for the command and the docs.
        kind: Kind of its values.
        names: Names on the command line; empty for the field's name with two dashes.
        metavar: Placeholder of the value in the help.
        shown: Text for the default in the help; "" for the default of the field.
        unit: Unit of a number.
        repeats: Whether the option may be given several times; the value is then a tuple.
        required: Whether the option must be given.
        single: Word for the input ("clip") if the option only works with a single input; "" if it works with many.
        many: Whether the option only works with many inputs.
        completes: Kind of completions in a shell: "models", "joints", "targets", "solvers" or "roots".
        recorded: When a ledger compares the option: ``ALWAYS``, ``NEVER``, or ``IF_CHANGED`` for values other than the
            default. New options use ``IF_CHANGED``, so that older ledgers stay valid.
        positional: Whether the option is an argument, without a name on the command line.
        rank: Order in the help: options with a rank below 0 come first, above 0 last.
        needs: Field name of a flag that must be given, too; "" for none.
        hidden: Whether the command line lacks the option.
        of: The option of functions that this option sets, which has the default; None if there is none.
    """

    help: str
    kind: Kind = _ANY
    names: tuple[str, ...] = ()
    metavar: str | None = None
    shown: str = ""
    unit: str = ""
    repeats: bool = False
    required: bool = False
    single: str = ""
    many: bool = False
    completes: str = ""
    recorded: str = IF_CHANGED
    positional: bool = False
    rank: int = 0
    needs: str = ""
    hidden: bool = False
    of: Shared | None = None

    def checked(self, name: str, value: Any) -> Any:
        """Check and convert the value of a field.

        Raises:
            InputError: If the value cannot be used.
        """
        try:
            if self.repeats:
                every: Any = value
                if isinstance(value, str):
                    every = (value,)
                elif isinstance(value, Mapping):
                    every = cast("Mapping[Any, Any]", value).items()
                return tuple(self.kind.of(one) for one in every)
            return self.kind.of(value)
        except InputError as error:
            if error.where or error.what:
                raise
            raise InputError(name, value=error.value, expected=error.expected, hint=error.hint) from error

    def setting(self, value: Any) -> Any:
        """Return a value as a JSON value."""
        if value is None:
            return None
        return [self.kind.setting(one) for one in value] if self.repeats else self.kind.setting(value)


def shared(of: Shared, kind: Kind | None = None, **more: Any) -> Option:
    """Return the description of an option that functions have, too.

    Args:
        of: Its default, help and unit.
        kind: Kind of its values; None for a flag if the default is True or False, else for any value.
        **more: Other arguments of ``Option``.
    """
    said = Option(of.help, kind or _kind_of(of.default), unit=of.unit, shown=of.shown, of=of)
    return replace(said, **more)


def _kind_of(default: Any) -> Kind:
    """Return the kind of values that a default has: a flag, or any value."""
    return Flag(both=default) if isinstance(default, bool) else Kind()


def option(  # noqa: D417 - the others are those of Option
    *,
    default: Any = None,
    help: str = "",  # noqa: A002
    kind: Kind | None = None,
    kw_only: bool = True,
    like: Option | Shared | None = None,
    **more: Any,
) -> Any:
    """Return a field that is an option.

    Args:
        default: The default; True or False for a flag; ``...`` for that of ``like``.
        help: Help text.
        kind: Kind of its values; None for a flag if the default is True or False, else for any value.
        kw_only: Whether Python must pass the value by name.
        like: A shared description, instead of help and kind; or an option of functions, instead of help and default.
    """
    if isinstance(like, Shared):
        like = shared(like, kind)
    if help and like is not None:
        more["help"] = help
    said = Option(help, kind or _kind_of(default), **more) if like is None else replace(like, **more)
    if default is ... and said.of is not None:
        default = said.of.default
    return field(default=default, kw_only=kw_only, metadata={_KEY: said})


def argument(
    *,
    help: str = "",  # noqa: A002
    kind: Kind = _ANY,
    required: bool = True,
    like: Option | None = None,
    **more: Any,
) -> Any:
    """Return a field that is positional on the command line and in Python; see ``option``."""
    said = replace(like or Option(help, kind), required=required, positional=True, **more)
    return field(default=MISSING if required else None, metadata={_KEY: said})


def said_of(described: Any, name: str) -> Option:
    """Return the description of an option of a class."""
    return next(said for one, said, _ in options_of(described) if one == name)


def options_of(described: Any) -> Iterator[tuple[str, Option, Any]]:
    """Yield name, description and default of each option of a class or an object, in the order of the help."""
    found = [(one.name, one.metadata[_KEY], one.default) for one in fields(described) if _KEY in one.metadata]
    for name, said, default in sorted(found, key=lambda one: one[1].rank):
        yield name, said, None if default is MISSING else default


def flag_of(name: str, said: Option) -> str:
    """Return the longest name of an option on the command line."""
    return max(said.names, key=len) if said.names else f"--{name.replace('_', '-')}"


def checked(described: Any) -> None:
    """Check the options of an object, and replace texts by their parsed values.

    Raises:
        InputError: If a value cannot be used.
    """
    for name, said, default in options_of(described):
        value = getattr(described, name)
        if value is not None or default is not None:
            object.__setattr__(described, name, said.checked(name, value))


def settings_of(described: Any) -> dict[str, Any]:
    """Return the options that a ledger compares, as JSON values."""
    return {
        name: said.setting(getattr(described, name))
        for name, said, _ in options_of(described)
        if said.recorded == ALWAYS or (said.recorded == IF_CHANGED and is_changed(described, name))
    }


def is_changed(described: Any, name: str) -> bool:
    """Return whether the value of an option differs from its default."""
    said, default = next((said, default) for one, said, default in options_of(described) if one == name)
    return getattr(described, name) != (None if default is None else said.checked(name, default))


@dataclass_transform(frozen_default=True, field_specifiers=(option, argument))
def described(cls: type[_C]) -> type[_C]:
    """Make a class a frozen dataclass that checks its options, and add help texts of the options to its docstring."""
    if not hasattr(cls, "__post_init__"):
        setattr(cls, "__post_init__", checked)  # noqa: B010 - a type has no such attribute yet
    made = dataclass(frozen=True)(cls)
    lines = [
        f"    {name}: {said.help}" + (f" (default: {text})" if (text := shown_default(said, default)) else "")
        for name, said, default in options_of(made)
    ]
    made.__doc__ = "\n".join([(cls.__doc__ or "").rstrip(), "", "Args:", *lines])
    return made


def shown_default(said: Option, default: Any) -> str:
    """Return the default of an option in words; "" for no default and for flags, whose names imply it."""
    return said.shown or ("" if default is None or default == () or isinstance(said.kind, Flag) else str(default))


def names_of(text: str) -> list[str]:
    """Return the names of a list separated by commas.

    Raises:
        InputError: If a name is empty.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InputError("", value=text, expected="names separated by commas")
    return parts


def numbers_of(text: str, least: int, most: int, whole: str | None = None) -> tuple[float, ...]:
    """Parse finite numbers separated by commas.

    Args:
        text: The list.
        least: Least count of numbers.
        most: Largest count of numbers.
        whole: The complete text of the option, for the message; None if the list is the complete text.

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


def ending_of(text: str, known: Sequence[str]) -> str:
    """Return a file ending in lower case with a leading dot, which the text may omit.

    Raises:
        InputError: If the ending is unknown.
    """
    found = "." + text.lower().removeprefix(".")
    if found not in known:
        raise InputError("", value=text, expected=f"one of {', '.join(one[1:] for one in known)}")
    return found


def table_of(options: Iterable[tuple[str, Option, Any]]) -> list[str]:
    """Return the lines of a Markdown table of options: names on the command line and in Python, default, help."""
    lines = ["| option | in Python | default | what it does |", "|---|---|---|---|"]
    for name, said, default in options:
        flags = [] if said.hidden or said.positional else said.names or [flag_of(name, said)]
        written = " ".join(filter(None, [", ".join(flags), said.metavar or ""]))
        unit = f" ({said.unit})" if said.unit else ""
        cells = [f"`{written}`" if written else "", f"`{name}`", shown_default(said, default), said.help + unit]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines
