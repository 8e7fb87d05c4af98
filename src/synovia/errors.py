"""Exceptions that Synovia raises: one class hierarchy, one form of message.

A message contains the place of the error, the expected value, the value found, and how to correct it:

    goal on 'hand': weight: expected a finite number above 0, got -1.0
    no joint named 'handl' in man.glb. Did you mean 'hand.L', 'hand.R'?

Each class also derives from a matching built-in exception, so ``except ValueError`` works as usual.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

__all__ = [
    "FileError",
    "FormatError",
    "InputError",
    "MissingExtraError",
    "SynoviaError",
    "UnknownNameError",
    "UnsolvedError",
    "UnsupportedError",
]

_MANY: Final = 1000  # names: of more, only prefixes are compared, because difflib takes up to 0.3 ms per pair
_LONGEST_NAME: Final = 100  # characters: difflib compares no longer names, because its time is quadratic
_LONGEST_VALUE: Final = 120
_LONGEST_PART: Final = 1000  # characters of a part of a message, which may contain a name or a path
# first word of a sentence, to capitalise; does not match code such as ``sy.solve`` or ``root=``
_LOWER_WORD: Final = re.compile(r"^[a-z]+(?=[ ,]|$)")
# Matches the value in the repr of a NumPy scalar
_NUMPY: Final = re.compile(r"""\bnp\.(?:str_|bytes_|bool|u?int\d+|float\d+)\(("[^"]*"|'[^']*'|[^()'"]*)\)""")
_E = TypeVar("_E", bound="SynoviaError")


class SynoviaError(Exception):
    """Base class of all exceptions.

    The message is ``<where>: <what>: expected <expected>, got <value>. <Hint>.``

    Args:
        what: The invalid argument, empty if ``where`` names it; without ``expected``, a description of the problem.
        where: File, line, joint or goal with the problem.
        value: The value that was found; shortened if it is long.
        expected: Which values are accepted.
        hint: How to correct it, one clause.

    Example:
        >>> import synovia as sy
        >>> try:
        ...     sy.bundled("arm9")
        ... except sy.SynoviaError as error:
        ...     print(error)
        no bundled model named 'arm9'. Did you mean 'arm7'?
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
        """Store the arguments, and build the message from them."""
        self.what = _cut(what)
        self.where = where
        self.value = value
        self.expected = expected
        self.hint = hint
        super().__init__(self.what)

    def __str__(self) -> str:
        """Return the complete message on one line."""
        expected = f"expected {_cut(self.expected)}" if self.expected else ""
        text = ": ".join(part for part in (_cut(self.where or ""), self.what, expected) if part)
        if self.value is not None:
            text += f", got {_short(self.value)}"
        if self.hint:
            hint = _LOWER_WORD.sub(lambda word: word[0].capitalize(), _cut(self.hint), count=1)
            text += f". {hint}" if hint.endswith((".", "?")) else f". {hint}."
        return _NUMPY.sub(r"\1", text)


class InputError(SynoviaError, ValueError):
    """An argument has an invalid value: NaN, a wrong shape, a matrix that is not a rotation, a number out of range.

    Example:
        >>> import synovia as sy
        >>> sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1)))
        Traceback (most recent call last):
        synovia.errors.InputError: ...
    """


class UnknownNameError(SynoviaError, LookupError):
    """A name of a joint, goal, model, solver or format is unknown or ambiguous.

    Example:
        >>> import synovia as sy
        >>> sy.bundled("arm7").index("tol")
        Traceback (most recent call last):
        synovia.errors.UnknownNameError: ...
    """


class FileError(SynoviaError, OSError):
    """A file cannot be opened, read or written.

    Example:
        >>> import synovia as sy
        >>> sy.load_motion("missing.bvh")
        Traceback (most recent call last):
        synovia.errors.FileError: missing.bvh: file does not exist...
    """


class FormatError(SynoviaError, ValueError):
    """The content of a file is malformed or contradicts itself.

    Example:
        >>> import synovia as sy
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "broken.bvh"
        >>> _ = path.write_text("HIERARCHY", encoding="utf-8")
        >>> sy.load_motion(path)
        Traceback (most recent call last):
        synovia.errors.FormatError: ...broken.bvh...
    """


class UnsupportedError(SynoviaError, TypeError):
    """A valid request that this solver, format or skeleton does not support.

    Example:
        >>> import synovia as sy
        >>> sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool", priority=1), "ccd")
        Traceback (most recent call last):
        synovia.errors.UnsupportedError: ...
    """


class MissingExtraError(SynoviaError, ImportError):
    """An optional package is required but not installed.

    Example:
        >>> import synovia as sy
        >>> try:
        ...     page = sy.view("humanoid")  # doctest: +SKIP
        ... except sy.errors.MissingExtraError as error:
        ...     print(error)  # the command that installs what is missing
    """


def install_command(extra: str) -> str:
    """Return the command that installs an extra, from the same source as the package itself (PEP 610).

    Args:
        extra: Name of the extra, such as ``"data"``.

    Example:
        >>> from synovia.errors import install_command
        >>> install_command("data").startswith("pip install ")
        True
    """
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        source: Any = json.loads(distribution("synovia").read_text("direct_url.json") or "{}")
        url = str(source.get("url", ""))
    except (PackageNotFoundError, ValueError, OSError, AttributeError):
        source, url = {}, ""
    if not url:  # if installed from an index, or not installed
        return f'pip install "synovia[{extra}]"'
    if "dir_info" in source:  # a clone
        folder = url2pathname(urlsplit(url).path)
        return f'pip install {"-e " if source["dir_info"].get("editable") else ""}"{folder}[{extra}]"'
    version = source.get("vcs_info")
    if version:
        url = f"{version.get('vcs', 'git')}+{url}@{version.get('commit_id', '')}".rstrip("@")
    return f'pip install "synovia[{extra}] @ {url}"'


class UnsolvedError(SynoviaError, RuntimeError):
    """A goal was not reached; raised by ``Solution.raise_for_status``.

    Example:
        >>> import synovia as sy
        >>> answer = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (3.0, 0.0, 0.0)))
        >>> answer.raise_for_status()
        Traceback (most recent call last):
        synovia.errors.UnsolvedError: ...
    """


def _cut(text: str) -> str:
    """Remove the middle of a long text: a damaged file may contain a name of megabytes."""
    return text if len(text) <= _LONGEST_PART else f"{text[: _LONGEST_PART // 2]} ... {text[-_LONGEST_PART // 4 :]}"


def _short(value: object) -> str:
    """Return ``repr(value)``, shortened to fit a message; NumPy numbers print as plain numbers."""
    plain: Any = value
    if isinstance(value, type):
        return value.__name__
    size = getattr(plain, "size", None)
    if isinstance(size, int) and size < _LONGEST_VALUE and hasattr(plain, "tolist"):
        plain = plain.tolist()
    if isinstance(plain, (str, bytes)):
        plain = plain[:_LONGEST_VALUE]
    try:
        text = " ".join(repr(plain).split())
    except ValueError:  # an integer with thousands of digits
        text = f"a number of {plain.bit_length()} bits" if isinstance(plain, int) else type(plain).__name__
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def restated(error: SynoviaError, kind: type[_E], where: str) -> _E:
    """Return a copy of an error with another class and another place.

    Args:
        error: The error.
        kind: Class of the copy.
        where: File, line, joint or argument with the problem.
    """
    return kind(error.what, where=where, value=error.value, expected=error.expected, hint=error.hint)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the names nearest to ``name``, or with the first known names.

    Args:
        name: The unknown name.
        known: The names that exist.

    Returns:
        A clause for ``hint``, for example ``Did you mean 'hand.L', 'hand.R'?``.
    """
    names = list(known)
    if not names:
        return "There are none"
    if len(names) <= _MANY and len(name) <= _LONGEST_NAME:
        import difflib  # imported only when an error is raised

        folded = {other.lower(): other for other in names if len(other) <= _LONGEST_NAME}
        near = [folded[key] for key in difflib.get_close_matches(name.lower(), list(folded), n=3, cutoff=0.6)]
        near += [other for other in names if name and name.lower() in other.lower() and other not in near]
    else:
        near = [other for other in names if other.lower().startswith(name[:3].lower())]
    if near:
        return "Did you mean " + ", ".join(repr(other) for other in near[:3]) + "?"
    shown = ", ".join(repr(other) for other in names[:6])
    return f"There are {shown}" + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def unknown_name(kind: str, name: object, known: Iterable[str], where: str | None = None) -> UnknownNameError:
    """Return the error for an unknown name, with a hint of the nearest known names.

    Args:
        kind: Kind of object that was searched, for example ``joint``.
        name: The unknown name.
        known: The names that exist.
        where: Container that was searched, for example a file.
    """
    place = f" in {where}" if where else ""
    return UnknownNameError(f"no {kind} named {name!r}{place}", hint=did_you_mean(str(name), known))
