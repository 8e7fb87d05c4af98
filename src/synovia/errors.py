"""Every error that Synovia raises on purpose: one tree, one form of message.

A message says what is wrong, where, which value was found, what was expected and what to do about it:

    no joint named 'handl' in man.glb; did you mean 'hand.L', 'hand.R'?

Each class is also the built-in exception that fits, so that ``except ValueError`` works as people expect.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Final, TypeVar

_MANY: Final = 1000  # difflib takes up to 0.3 ms a pair; beyond this many names only prefixes are compared
_LONGEST_NAME: Final = 100  # letters of a name that others are compared with: difflib is quadratic
_LONGEST_VALUE: Final = 120
_LONGEST_PART: Final = 1000  # letters of a part of a message, which may hold a name or a path
_E = TypeVar("_E", bound="SynoviaError")


class SynoviaError(Exception):
    """Root of the tree.

    Args:
        what: One clause that says what is wrong.
        where: File, line, joint or argument that it concerns.
        value: The offending value; shortened when long.
        expected: What would have been accepted.
        hint: The nearest fix.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        value: object = None,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Store the parts and build the message from them."""
        self.what = _cut(what)
        self.where = where
        self.value = value
        self.expected = expected
        self.hint = hint
        super().__init__(self.what)

    def __str__(self) -> str:
        """Return the whole message on one line."""
        text = f"{_cut(self.where)}: {self.what}" if self.where else self.what
        if self.value is not None:
            text += f", got {_short(self.value)}"
        if self.expected:
            text += f"; expected {_cut(self.expected)}"
        if self.hint:
            text += f"; {_cut(self.hint)}"
        return text


class InputError(SynoviaError, ValueError):
    """An argument has a value that cannot be used (NaN, wrong shape, no rotation, out of range)."""


class UnknownNameError(SynoviaError, LookupError):
    """A joint, goal, model, solver or format of that name does not exist, or the name is ambiguous."""


class FileError(SynoviaError, OSError):
    """A file cannot be opened, read or written."""


class FormatError(SynoviaError, ValueError):
    """A file can be read, but what it says is malformed or contradicts itself."""


class UnsupportedError(SynoviaError, TypeError):
    """A request is well formed, but this solver, format or skeleton cannot honour it."""


class MissingExtraError(SynoviaError, ImportError):
    """An optional package is needed and not installed."""


class UnsolvedError(SynoviaError, RuntimeError):
    """Raised by ``Solution.raise_for_status`` when not every goal was reached."""


def _cut(text: str) -> str:
    """Return a text, without its middle where it is long: a damaged file may hold a name of megabytes."""
    return text if len(text) <= _LONGEST_PART else f"{text[: _LONGEST_PART // 2]} ... {text[-_LONGEST_PART // 4 :]}"


def _short(value: object) -> str:
    """Return ``repr(value)``, cut so that a message stays on one screen; numbers of NumPy print as plain ones."""
    plain: Any = value
    size = getattr(plain, "size", None)
    if isinstance(size, int) and size < _LONGEST_VALUE and hasattr(plain, "tolist"):
        plain = plain.tolist()
    if isinstance(plain, (str, bytes)):
        plain = plain[:_LONGEST_VALUE]
    try:
        text = " ".join(repr(plain).split())
    except ValueError:  # a whole number of thousands of digits
        text = f"a number of {plain.bit_length()} bits" if isinstance(plain, int) else type(plain).__name__
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def restated(error: SynoviaError, kind: type[_E], where: str) -> _E:
    """Return an error that says the same as another, as one of another class or about another place.

    Args:
        error: The error that was raised where less was known.
        kind: The class of the new one.
        where: File, line, joint or argument that it concerns.
    """
    return kind(error.what, where=where, value=error.value, expected=error.expected, hint=error.hint)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the names nearest to ``name``, or with a few that exist.

    Args:
        name: What was asked for.
        known: The names that exist.

    Returns:
        A clause for ``hint``, for example ``did you mean 'hand.L', 'hand.R'?``.
    """
    names = list(known)
    if not names:
        return "there are none"
    if len(names) <= _MANY and len(name) <= _LONGEST_NAME:
        folded = {other.lower(): other for other in names if len(other) <= _LONGEST_NAME}
        near = [folded[key] for key in difflib.get_close_matches(name.lower(), list(folded), n=3, cutoff=0.6)]
        near += [other for other in names if name and name.lower() in other.lower() and other not in near]
    else:
        near = [other for other in names if other.lower().startswith(name[:3].lower())]
    if near:
        return "did you mean " + ", ".join(repr(other) for other in near[:3]) + "?"
    shown = ", ".join(repr(other) for other in names[:6])
    return f"there are {shown}" + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def unknown_name(kind: str, name: object, known: Iterable[str], where: str | None = None) -> UnknownNameError:
    """Return the error for a name that does not exist, with the nearest ones that do.

    Args:
        kind: What the name should name, for example ``joint``.
        name: What was asked for.
        known: The names that exist.
        where: Container that was searched, for example a file.
    """
    place = f" in {where}" if where else ""
    return UnknownNameError(f"no {kind} named {name!r}{place}", hint=did_you_mean(str(name), known))
