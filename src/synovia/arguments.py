"""Calls: misspelt and surplus arguments are refused, and objects are shown as the call that makes them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, Self, cast

import numpy as np

from synovia.errors import InputError, UnknownNameError, did_you_mean


class ChecksArguments:
    """Base of classes that refuse unknown arguments with an error of Synovia's own instead of a ``TypeError``.

    Raises:
        UnknownNameError: If an argument is given by a name that does not exist.
        InputError: If more arguments are given by position than it takes.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Keep ``__repr__``: a dataclass would replace the one that it inherits."""
        cls.__repr__ = cls.__repr__

    def __repr__(self) -> str:
        """Return the call that makes it, without defaults."""
        return as_call(self)

    def __new__(cls, *args: Any, **named: Any) -> Self:
        """Check names and number of the arguments before ``__init__`` sees them."""
        if args or named:
            known, places, open_ended = _arguments(cls)
            for name in named:
                if name not in known and not open_ended:
                    raise UnknownNameError(
                        f"{cls.__name__} has no argument {name!r}", hint=did_you_mean(name, sorted(known))
                    )
            if len(args) > places:
                expected = f"at most {places:g}" if places else "arguments by name"
                raise InputError(
                    f"{cls.__name__}: positional arguments",
                    value=len(args),
                    expected=expected,
                    hint="it takes " + ", ".join(f"{name}=" for name in known),
                )
        return object.__new__(cls)


@functools.cache
def _arguments(cls: type) -> tuple[dict[str, None], float, bool]:
    """Return the names that a class takes, how many of them by place, and whether it takes any others."""
    given = list(inspect.signature(cls.__init__).parameters.values())[1:]
    placed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    kinds = {parameter.kind for parameter in given}
    return (
        dict.fromkeys(parameter.name for parameter in given if parameter.kind not in variable),
        float("inf") if variable[0] in kinds else sum(parameter.kind in placed for parameter in given),
        variable[1] in kinds,
    )


_LONGEST: Final = 6  # numbers or items that are shown one by one


def as_call(thing: object, values: Mapping[str, Any] | None = None) -> str:
    """Return an object as the call that makes it, without the arguments that have their defaults.

    Args:
        thing: The object.
        values: Its arguments by name; None for its attributes of these names.
    """
    parts: list[str] = []
    for parameter in list(inspect.signature(type(thing).__init__).parameters.values())[1:]:
        name, default = parameter.name, parameter.default
        value = getattr(thing, name, default) if values is None else values.get(name, default)
        if value is default or (not isinstance(value, np.ndarray) and value == default):
            continue
        first = not parts and default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY
        parts.append(shown(value) if first else f"{name}={shown(value)}")
    return f"{type(thing).__name__}({', '.join(parts)})"


def shown(value: Any) -> str:
    """Return a value in a few words, as ``as_call`` shows it."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    shape: tuple[int, ...] = getattr(value, "shape", ())
    if len(shape) > 1 or shape > (_LONGEST,):
        return f"<array {shape}>"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if isinstance(value, tuple | list | np.ndarray):
        items = [shown(item) for item in cast("Sequence[Any]", value)]
        if len(items) > _LONGEST:
            return f"<{len(items)} items>"
        return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else repr(value)
