"""Misspelt and surplus arguments of settings and goals: refused, with the name that was probably meant."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Self

from synovia.errors import InputError, UnknownNameError, did_you_mean


class ChecksArguments:
    """Base of classes that refuse unknown arguments with an error of Synovia's own instead of a ``TypeError``.

    Raises:
        UnknownNameError: If an argument is given by a name that does not exist.
        InputError: If more arguments are given by position than it takes.
    """

    __slots__ = ()

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
                expected = f"{places:g} of them at most" if places else "each argument by its name"
                raise InputError(
                    f"{cls.__name__} is given {len(args)} without a name",
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
