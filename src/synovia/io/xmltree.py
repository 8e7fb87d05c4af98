"""A safe XML reader that keeps the line of every element for error messages.

Document types and entities cause errors: no robot needs them, and with them a small file can fill the memory or read
other files. The reader opens no file. Like the XML readers of ROS and MuJoCo, it accepts a byte-order mark or empty
lines before the declaration, repeated elements, and text after the root element.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from xml.parsers import expat

from synovia.errors import FormatError
from synovia.text import counted

MAX_DEPTH: Final = 1000  # largest nesting depth of elements; no real file has more
MAX_ELEMENTS: Final = 200_000  # largest number of elements: parsing takes half a second and 100 MB; a humanoid has 2000
_LONGEST_CONTENT: Final = 1000  # largest number of stored characters of an element's text
HUGE: Final = 1e9  # metres, radians or kilograms; a larger value is a mistake, and makes results inaccurate
_QUOTED: Final = rb"""=\s*+(?>"[^"<]*+"|'[^'<]*+')"""
_TAG: Final = re.compile(rb"<[A-Za-z_:][\w:.-]*+(?>\s*+[A-Za-z_:][\w:.-]*+\s*+" + _QUOTED + rb")++")
_TIGHT: Final = re.compile(_QUOTED + rb"(?=[A-Za-z_:])")
_BEFORE_XML: Final = re.compile(rb"(?:\xef\xbb\xbf|\s)*")
_BEFORE_ROOT: Final = re.compile(r"[\s\ufeff]*(?:<\?.*?\?>\s*|<!--.*?-->\s*)*", re.DOTALL)


class UnexpandedError(FormatError):
    """Raised if a part of a file is written in a macro language."""


@dataclass(slots=True)
class Element:
    """One XML element.

    Args:
        tag: Name of the element, with the prefix if there is one.
        attributes: Attributes of the element.
        file: The file, for messages.
        line: Line of the file where the element begins.
        children: Direct children of the element.
        content: The first characters of the text directly inside the element, enough for a name.
        notes: Sentences about skipped parts of the file, in order; all elements of a file share this list.
    """

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    children: list[Element] = field(default_factory=list["Element"])
    content: str = ""
    notes: dict[str, None] = field(default_factory=dict[str, None])

    @property
    def place(self) -> str:
        """File and line, for example ``panda.urdf:123``."""
        return f"{self.file}:{self.line}"

    def error(self, what: str, **details: Any) -> FormatError:
        """Return an error that names the line of this element; ``details`` as in ``SynoviaError``."""
        return FormatError(what, where=self.place, **details)

    def only(self, tag: str, *, alike: bool = False) -> Element | None:
        """Return the first child with a name, or None; a note lists repeated children, which ROS ignores as well.

        Args:
            tag: The name.
            alike: Whether to raise an error for a repeated child that differs from the first.

        Raises:
            FormatError: If a repeated child differs and ``alike`` is set.
        """
        found: Element | None = None
        for child in self.children:
            if child.tag != tag:
                continue
            if found is None:
                found = child
                continue
            if alike and child.attributes != found.attributes:
                raise child.error(f"second <{tag}> in one <{self.tag}>", hint=f"the first is on line {found.line}")
            called = f"<{self.tag}> {self.attributes['name']!r}" if "name" in self.attributes else f"<{self.tag}>"
            again = (
                "repeats the first" if child.attributes == found.attributes else "differs from the first, which is used"
            )
            self.notes[f"The second <{tag}> of {called} (line {child.line}) was not kept: it {again}."] = None
        return found

    def text(self, name: str) -> str:
        """Return a required attribute.

        Raises:
            FormatError: If the attribute is missing, empty or an expression of the macro language.
        """
        value = self.attributes.get(name)
        if value is None or not value.strip():
            raise self.error(f"<{self.tag}> has no {name}", value=value, expected=f'{name}="..." with a value')
        if "${" in value or "$(" in value:
            raise UnexpandedError(
                f"{name} of <{self.tag}> holds an unexpanded expression", where=self.place, value=value,
                hint="this is a xacro source; run `xacro robot.urdf.xacro > robot.urdf` first",
            )  # fmt: skip
        return value

    def numbers(
        self, name: str, count: int, *, default: tuple[float, ...] | None = None, bounded: bool = True
    ) -> tuple[float, ...]:
        """Return the numbers of an attribute.

        Args:
            name: The attribute.
            count: Required number of values.
            default: Result for a missing attribute; None if the attribute is required.
            bounded: Whether to raise an error for infinity and values beyond ``HUGE``.

        Raises:
            FormatError: If there are more or fewer values, or a value cannot be used.
        """
        if default is not None and name not in self.attributes:
            return default
        text = self.text(name)
        what, wanted = f"{name} of <{self.tag}>", "one number" if count == 1 else f"{count} numbers separated by spaces"
        try:
            if "_" in text or not text.isascii():  # float() accepts 1_0 and Arabic digits, other programs do not
                raise ValueError
            numbers = tuple(float(word) for word in text.split())
        except ValueError:
            raise self.error(f"{what} is not numeric", value=text, expected=wanted) from None
        if len(numbers) != count:
            raise self.error(f"{what} has {counted(len(numbers), 'number')}", value=text, expected=wanted)
        if any(math.isnan(number) for number in numbers) or (bounded and max(map(abs, numbers)) > HUGE):
            raise self.error(f"{what} cannot be used", value=text, expected=f"finite numbers up to {HUGE:g}")
        return numbers


def root_is(tag: str, head: bytes) -> bool:
    """Return whether the first bytes of a file are XML with a root element of this name."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = head.decode("utf-16", errors="replace")
    else:
        text = head.decode("utf-8-sig", errors="replace")
    start = _BEFORE_ROOT.match(text)
    rest = text[start.end() :] if start else text
    return re.match(rf"<{re.escape(tag)}[\s/>]", rest) is not None


def parse(data: bytes, where: str, *, root: str | None, most: Mapping[str, int]) -> Element:
    """Return the root element of an XML file.

    Args:
        data: The file's content.
        where: The file, for messages.
        root: Name that the root element must have, None for any.
        most: Largest number of elements, by name.

    Raises:
        FormatError: If it is not XML, has another root or a document type, or is too large or nested too deeply. The
            message names the line.
    """
    return _Builder(where, root, most).build(data)


def _spaced(data: bytes) -> bytes | None:
    """Add missing spaces between attributes, which ROS and MuJoCo do not need; return None if none are missing."""
    found = _TAG.sub(lambda tag: _TIGHT.sub(rb"\g<0> ", tag[0]), data)
    return found if len(found) > len(data) else None


class _Builder:
    """Builds the tree of elements from the events of the parser."""

    def __init__(self, where: str, root: str | None, most: Mapping[str, int]) -> None:
        self.where = where
        self.root = root
        self.most = most
        self.counts: Counter[str] = Counter()
        self.count = 0
        self.before = 0  # empty lines before the declaration
        self.notes: dict[str, None] = {}
        self.stack: list[Element] = []
        self.top: Element | None = None
        self.parser = expat.ParserCreate()

    def build(self, data: bytes) -> Element:
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.CharacterDataHandler = self.text
        begin = start.end() if (start := _BEFORE_XML.match(data)) else 0
        self.before = data.count(b"\n", 0, begin)
        try:
            self.parser.Parse(data[begin:] if begin else data, True)
        except expat.ExpatError as error:
            spaced = _spaced(data)
            if spaced is not None:
                line = error.lineno + self.before
                again = _Builder(self.where, self.root, self.most)
                again.notes[f"Attributes without a space between them (line {line}) were accepted."] = None
                return again.build(spaced)
            if self.top is not None and not self.stack:
                self.pass_over(data[begin + self.parser.ErrorByteIndex :])
                return self.top
            reason = expat.ErrorString(error.code)
            raise FormatError(
                f"is not well-formed XML: {reason}",
                where=f"{self.where}:{error.lineno + self.before}",
                hint=f"look near column {error.offset + 1}; the file may be cut off or not UTF-8",
            ) from error
        except FormatError:
            raise
        except (ValueError, LookupError) as error:  # raised for an unknown encoding
            raise FormatError(f"is not readable XML ({error})", where=self.where, hint="save it as UTF-8") from error
        if self.top is None:
            raise FormatError("has no element", where=self.where, expected=f"<{self.root}>")
        return self.top

    def pass_over(self, rest: bytes) -> None:
        """Add a note about text after the root element, unless it is padding with zeros."""
        if self.top is not None and rest.strip(b"\0 \t\r\n"):
            self.notes[f"Content after </{self.top.tag}> (line {self.line}) was ignored."] = None

    @property
    def line(self) -> int:
        return self.parser.CurrentLineNumber + self.before

    def here(self) -> str:
        return f"{self.where}:{self.line}"

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self.top is None and self.root not in (None, tag):
            raise FormatError(
                f"is XML of another kind (<{tag}>)",
                where=self.here(),
                expected=f"<{self.root}> as the outermost element",
            )
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise FormatError("too many elements", where=self.here(), expected=f"at most {MAX_ELEMENTS}")
        if len(self.stack) >= MAX_DEPTH:
            raise FormatError(
                "elements are nested too deeply", where=self.here(), expected=f"at most {MAX_DEPTH} levels"
            )
        self.counts[tag] += 1
        if self.counts[tag] > (most := self.most.get(tag, MAX_ELEMENTS)):
            raise FormatError(f"too many <{tag}>", where=self.here(), expected=f"at most {most}")
        element = Element(tag, attributes, self.where, self.line, notes=self.notes)
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.top = element
        self.stack.append(element)

    def text(self, letters: str) -> None:
        if self.stack and len(self.stack[-1].content) < _LONGEST_CONTENT and not letters.isspace():
            self.stack[-1].content += letters[:_LONGEST_CONTENT]

    def end(self, tag: str) -> None:
        del tag
        self.stack.pop()

    def doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        del system, public, internal
        raise FormatError(
            f"declares a document type ({name})",
            where=self.here(),
            expected="plain XML",
            hint="remove <!DOCTYPE ...> and its entities; they can exhaust memory or read other files",
        )
