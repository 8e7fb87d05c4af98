"""Check the arguments of constructors, and show objects as constructor calls."""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from types import SimpleNamespace
from typing import Any, Final, Self, TypeVar, cast

import numpy as np

from synovia import options
from synovia.errors import InputError, UnknownNameError, did_you_mean

Progress = Callable[[int, int], object]  # called with the work done and the total
_F = TypeVar("_F", bound=Callable[..., Any])


@functools.cache
def options_in(group: type) -> dict[str, tuple[str, Any]]:
    """Return the type (as source text) and the default, or the ``Shared`` object, of each option of a group."""
    out: dict[str, tuple[str, Any]] = {}
    for name, written in group.__annotations__.items():
        tree: Any = ast.parse(getattr(written, "__forward_arg__", written), mode="eval")
        kind, usual = tree.body.slice.elts  # elements of Annotated[kind, default]
        shared = isinstance(usual, ast.Name)
        out[name] = ast.unparse(kind), getattr(options, usual.id) if shared else ast.literal_eval(usual)
    return out


def _defaults(group: type) -> dict[str, tuple[str, Any]]:
    """Return the type (as source text) and the default of each option of a group."""
    found = options_in(group).items()
    return {
        name: (kind, usual.default if isinstance(usual, options.Shared) else usual) for name, (kind, usual) in found
    }


def takes(group: type) -> Callable[[_F], _F]:
    """Return a decorator that shows a group of options in the signature of a function with ``**options``.

    Args:
        group: A ``TypedDict``, which several functions may use. Its annotations have the type of each option, and its
            default or its name in ``synovia.options``, such as ``Annotated[bool, HOLD_FEET]``. Its module imports
            ``annotations`` from ``__future__``.
    """

    def decorate(function: _F) -> _F:
        signature, kind = inspect.signature(function), inspect.Parameter
        shown = [one for one in signature.parameters.values() if one.kind is not kind.VAR_KEYWORD]
        for name, (written, default) in _defaults(group).items():
            shown.append(kind(name, kind.KEYWORD_ONLY, default=default, annotation=written))
        cast("Any", function).__signature__ = signature.replace(parameters=shown)
        return function

    return decorate


def completed(group: type, given: Mapping[str, Any], function: str) -> Any:
    """Return an object whose attributes are the options of a group; options that are not given have their defaults.

    Raises:
        UnknownNameError: If an option is not in the group.
    """
    known = _defaults(group)
    for name in given.keys() - known.keys():
        raise UnknownNameError(f"{function} has no argument {name!r}", hint=did_you_mean(name, sorted(known)))
    return SimpleNamespace(**{name: given.get(name, default) for name, (_, default) in known.items()})


class ChecksArguments:
    """Base class that raises a ``SynoviaError`` for unknown arguments, instead of a ``TypeError``.

    Raises:
        UnknownNameError: If a keyword argument does not exist.
        InputError: If there are too many positional arguments.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Keep the inherited ``__repr__``, which a dataclass would replace."""
        cls.__repr__ = cls.__repr__

    def __repr__(self) -> str:
        """Return the constructor call without default values."""
        return as_call(self)

    def __new__(cls, *args: Any, **named: Any) -> Self:
        """Check the names and the number of the arguments before ``__init__``."""
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


def check_kind(name: str, value: object, kind: type | tuple[type, ...], hint: str) -> None:
    """Check that an argument is an object of a class of this package.

    Args:
        name: The argument.
        value: Value of the argument.
        kind: The class, or several classes.
        hint: How to create such an object.

    Raises:
        InputError: If the value has another type. If an attribute has the type, such as the pose of a solution, the
            message suggests the attribute.
    """
    if isinstance(value, kind):
        return
    kinds = kind if isinstance(kind, tuple) else (kind,)
    parts = [each.__name__.lower() for each in kinds if isinstance(getattr(value, each.__name__.lower(), None), each)]
    expected = " or ".join(f"a {each.__name__}" for each in kinds)
    raise InputError(name, value=type(value), expected=expected, hint=f"pass its .{parts[0]}" if parts else hint)


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """Check that a value is a whole number in a range, and return it.

    Raises:
        InputError: If the value is not a whole number in the range.
    """
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        raise InputError(name, value=value, expected=f"a whole number from {least:,} to {most:,}")
    return number


def warn(text: str) -> None:
    """Warn the user; the warning shows the user's line that calls this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)


@functools.cache
def _arguments(cls: type) -> tuple[dict[str, None], float, bool]:
    """Return the argument names of a class, the number of positional arguments, and whether it accepts any keyword."""
    given = list(inspect.signature(cls.__init__).parameters.values())[1:]
    placed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    kinds = {parameter.kind for parameter in given}
    return (
        dict.fromkeys(parameter.name for parameter in given if parameter.kind not in variable),
        float("inf") if variable[0] in kinds else sum(parameter.kind in placed for parameter in given),
        variable[1] in kinds,
    )


_PACKAGE: Final = "synovia."
_LONGEST: Final = 6  # items: longer lists are shortened in texts


def as_call(thing: object, values: Mapping[str, Any] | None = None) -> str:
    """Return an object as a constructor call, without arguments equal to their defaults.

    Args:
        thing: The object.
        values: Arguments of the call by name; None to read them from the object's attributes.
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
    """Return a short text of a value for ``as_call``."""
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


def checked_joints(moving: Any) -> tuple[str | int, ...]:
    """Check the argument ``moving``, and return the joints that may move.

    Raises:
        InputError: If the value is not a list of names or rows of joints.
    """
    hint = f"moving=[{moving!r}]" if isinstance(moving, str) else "moving=['left_upper_arm', 'left_lower_arm']"
    if isinstance(moving, str) or not isinstance(moving, Iterable):
        raise InputError("moving", value=moving, expected="the joints that may move", hint=hint)
    found: tuple[Any, ...] = tuple(cast("Iterable[Any]", moving))
    for i, one in enumerate(found):
        if isinstance(one, bool) or not isinstance(one, str | int | np.integer):
            raise InputError(f"moving[{i}]", value=one, expected="the name or row of a joint", hint=hint)
    if not found:
        raise InputError("moving", value=[], expected="at least one joint, or None for all", hint=hint)
    return found
