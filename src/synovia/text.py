"""Parse JSON and TOML strictly; format TOML texts and keys, counts, unit names, printable names, and reports.

Content that the standards forbid or leave undefined is an error.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, Self, cast

from synovia.errors import FormatError

_FIRST_WORD: Final = re.compile(r"[^:|. _]*[:|. _](?=.)")  # first word of a name with several words
_SIDES: Final = frozenset({"left", "right", "l", "r"})
_SHARED: Final = 0.8  # short names leave out a first word that at least this fraction of the names share
_FEW: Final = 4  # smallest number of names that share such a first word
_MOST_PARTS: Final = 16  # largest number of parts of a dotted key; tomllib's time and memory are quadratic in it
_PART: Final = r"""(?>[A-Za-z0-9_-]+|"(?:[^"\\\n]++|\\.)*+"|'[^'\n]*+')"""
# Search only where a key may begin; a search from every position would take quadratic time.
_LONG_KEY: Final = re.compile(rf"(?<![^\s\[{{,]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_MOST_PARTS}}}")
# Tables of a file: lines with a name in brackets, and values in braces. tomllib needs a kilobyte for each.
_TABLE: Final = re.compile(r"^[ \t]*+\[{1,2}[^\[\]\n,]*+\]{1,2}[ \t]*+(?:#.*+)?\r?$|=[ \t]*+\{", re.MULTILINE)
_FREE_TABLES: Final = 24_000  # number of tables that a file of any size may have
_BYTES_A_TABLE: Final = 64  # bytes of a file that allow one table more
# A number with this many characters is refused, because tomllib needs 140 bytes for each character.
_LONG_VALUE: Final = re.compile(r"(?<![^\s=\[,])[+-]?[0-9][0-9A-Za-z_.+:-]{65536}")
_BITS: Final = 10_000  # largest size of an integer in bits; Python cannot print more than 4300 digits
_LONG_NUMBER: Final = re.compile(r"[0-9A-Fa-f_]{2500}")
_LISTED: Final = 4  # largest number of names in a note
DOUBT: Final = "Look at it: "  # prefix of notes with a doubt about a clip; its verdict is then never "good"
UNITS: Final = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254, "ft": 0.3048}  # metres
_METRE: Final = 0.9995  # metres; longer lengths are shown in metres, because they would round to 1000 mm
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def counted(count: int, noun: str, plural: str | None = None, verb: tuple[str, str] | None = None) -> str:
    """Return a count with its noun, and a verb if one is given.

    Args:
        count: The count.
        noun: The noun for one.
        plural: The noun for several; None to append s, or es after an x.
        verb: The verb for one and for several, ``("is", "are")``.

    Example:
        >>> counted(1, "row"), counted(2, "body", "bodies"), counted(1, "result", verb=("is", "are"))
        ('1 row', '2 bodies', '1 result is')
    """
    one = count == 1
    text = f"{count} {noun if one else plural or noun + ('es' if noun.endswith('x') else 's')}"
    return text if verb is None else f"{text} {verb[not one]}"


def unit_name(meters_per_unit: float | None) -> str:
    """Return the name of a length unit; ``unit`` if it is unknown."""
    if meters_per_unit is None:
        return "unit"
    return next((name for name, size in UNITS.items() if size == meters_per_unit), f"{meters_per_unit:g} m")


def printable(name: str) -> str:
    """Return a name with control characters escaped, because a file can hold any name."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in name)


def listed(names: Sequence[str]) -> str:
    """Return the first few names in quotes and the number of further names, for a note."""
    return first_few([repr(name) for name in names])


def short_names(names: Sequence[str]) -> list[str]:
    """Return names without the first word that nearly all of them share, such as ``mixamorig:``.

    Args:
        names: The names. Their first words end with a colon, bar, blank, point or underscore. A side, such as
            ``left_``, stays.
    """
    words = Counter(found[0] for name in names if (found := _FIRST_WORD.match(name)) is not None)
    if not words:
        return list(names)
    word, count = words.most_common(1)[0]
    if count < _SHARED * len(names) or count < _FEW or word[:-1].lower() in _SIDES:
        return list(names)
    short = [name.removeprefix(word) or name for name in names]
    return short if len(set(short)) == len(set(names)) else list(names)


def first_few(texts: Sequence[str]) -> str:
    """Return the first few texts and the number of further texts, for a note."""
    more = len(texts) - _LISTED
    return ", ".join(texts[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def parse_json(text: str, where: str, *, finite: bool = True) -> object:
    """Parse a JSON text.

    Args:
        text: The text.
        where: File of the text, for messages.
        finite: Whether to refuse NaN and infinite numbers, which are not JSON.

    Raises:
        FormatError: If the text is malformed or nested too deeply, an object repeats a name, a number is refused or has
            too many digits, or a text contains half of a surrogate pair.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) < len(pairs):
            repeated = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise FormatError(f"field {repeated!r}", where=where, expected="each name once in an object")
        return out

    def refuse(word: str) -> float:
        raise FormatError("number", where=where, value=word, expected="a finite number")

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=refuse if finite else None)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise FormatError(
            f"is not JSON: {error.msg}", where=f"{where}: line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise FormatError("the content is nested too deeply", where=where) from error
    except FormatError:
        raise
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise FormatError(
            "text", where=where, value=half, expected="Unicode", hint="it contains half of a surrogate pair"
        ) from error
    except ValueError as error:  # an integer with thousands of digits
        raise FormatError("a number has too many digits", where=where) from error
    return value


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Parse a TOML text.

    Args:
        text: The text.
        where: File of the text, for messages.

    Raises:
        FormatError: If the text is malformed or nested too deeply, has too many tables, or has a key with too many
            parts or a number with too many digits.
    """
    if long := _LONG_KEY.search(text):
        line = text.count("\n", 0, long.start()) + 1
        raise FormatError("dotted key", where=f"{where}, line {line}", expected=f"at most {_MOST_PARTS} parts")
    if long := _LONG_VALUE.search(text):
        line = text.count("\n", 0, long.start()) + 1
        raise FormatError("a number has too many digits", where=f"{where}, line {line}")
    tables, most = sum(1 for _ in _TABLE.finditer(text)), _FREE_TABLES + len(text) // _BYTES_A_TABLE
    if tables > most:
        raise FormatError(
            "too many tables", where=where, value=tables, expected=f"at most {most} in a file of this size"
        )
    try:
        content = tomllib.loads(text)
    except RecursionError as error:
        raise FormatError("the content is nested too deeply", where=where) from error
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"is not TOML: {error}", where=where) from error
    except ValueError as error:  # an integer with thousands of digits
        raise FormatError("a number has too many digits", where=where) from error
    if (long := _LONG_NUMBER.search(text)) and _holds_long_number(content):
        line = text.count("\n", 0, long.start()) + 1  # or a later line, if this match is inside a string
        raise FormatError("a number has too many digits", where=f"{where}, line {line}")
    return content


def _holds_long_number(content: dict[str, Any]) -> bool:
    """Return whether the content of a TOML file contains an integer too long to print."""
    waiting: list[Any] = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += cast("dict[str, Any]", value).values()
        elif isinstance(value, list):
            waiting += cast("list[Any]", value)
        elif isinstance(value, int) and value.bit_length() > _BITS:
            return True
    return False


def toml_text(value: str) -> str:
    """Return a text in TOML syntax, in quotes."""
    # DEL is allowed in JSON texts, but not in TOML
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(name: str) -> str:
    """Return a key in TOML syntax: bare if allowed, else in quotes."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def length_text(length: float, meters_per_unit: float | None) -> str:
    """Return a length as text: in mm or m if the length unit is known, else in units of the file."""
    if meters_per_unit is None:
        return f"{length:.4g} {'unit' if length == 1.0 else 'units'}"
    meters = length * meters_per_unit
    return f"{1000 * meters:.3g} mm" if meters < _METRE else f"{meters:.3g} m"


class Report(str):
    """A report on a result: a text for people, and the same facts as plain values, which are attributes, too.

    Args:
        lines: Lines of the text.
        facts: The facts by name, as in ``--json``: numbers, texts, lists and dictionaries.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> report = sy.judge(sy.Motion(body, [body.rest_q] * 20, 30.0)).report()
        >>> print(report.splitlines()[0])
        verdict: good
        >>> report.verdict, report.to_object()["verdict"]
        ('good', 'good')
    """

    __slots__ = ("facts",)

    facts: Mapping[str, Any]

    def __new__(cls, lines: Iterable[str], facts: Mapping[str, Any]) -> Self:
        """Join the lines."""
        out = super().__new__(cls, "\n".join(lines))
        out.facts = dict(facts)
        return out

    def __getattr__(self, name: str) -> Any:
        """Return a fact.

        Raises:
            AttributeError: If the report has no such fact.
        """
        if name.startswith("_") or name == "facts" or name not in self.facts:
            known = "" if name.startswith("_") or name == "facts" else f"; it has {', '.join(self.facts)}"
            raise AttributeError(f"the report has no fact {name!r}{known}", name=name, obj=self)
        return self.facts[name]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that rebuilds a copy from text and facts."""
        return type(self), ([str(self)], self.facts)

    def to_object(self) -> dict[str, Any]:
        """Return the facts as in ``--json``."""
        return dict(self.facts)


def plain(value: Any, *names: str) -> Any:
    """Return a value as JSON values: arrays and tuples as lists, objects as the dictionary of their fields.

    Args:
        value: The value.
        names: Attributes of an object to take; none for all its fields.
    """
    if names:
        return {name: plain(getattr(value, name)) for name in names}
    if hasattr(value, "to_object"):
        return value.to_object()
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if hasattr(value, "tolist"):  # an array or a number of NumPy
        return cast("Any", value).tolist()
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(one) for one in cast("Sequence[Any]", value)]
    return value
