"""Read the text of a BVH file, and its hierarchy as a list of nodes.

Any white space separates words, so braces may share a line. Only a joint name ends with its line, because it may
contain spaces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from synovia.errors import FormatError
from synovia.io.base import read_text
from synovia.model.skeleton import MAX_JOINTS
from synovia.text import counted

CHANNELS: Final = ("Xposition", "Yposition", "Zposition", "Xrotation", "Yrotation", "Zrotation")
_CHANNEL: Final = {name.lower(): name for name in CHANNELS}
LARGEST: Final = 1e15  # largest absolute value that a joint accepts

_WORD: Final = re.compile(r"[{}]|[^\s{}]+", re.ASCII)
_NAME: Final = re.compile(r"[^{}\r\n]*")
NUMBER: Final = re.compile(r"[+-]?(?:(?:\d++\.?\d*+|\.\d++)(?:e[+-]?\d++)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE)


@dataclass(slots=True)
class Node:
    """A ROOT, JOINT or End Site of the file.

    Args:
        name: Name of the node; empty for most end sites.
        parent: Index of its parent in the file, -1 for a root.
        end: Whether the node is an end site.
        at: Position in the text where the node begins.
        offset: OFFSET, length units; None until it is read.
        channels: Names of the channels in the order of the file; None until they are read.
    """

    name: str
    parent: int
    end: bool
    at: int
    offset: tuple[float, float, float] | None = None
    channels: tuple[str, ...] | None = None


class Source:
    """The text of a file and a reading position.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        """Read the text of the file."""
        self.path = path
        self.text = read_text(path)
        self.at = 0  # end of the last word
        self.begin = 0  # beginning of the last word

    def place(self, at: int) -> str:
        """Return file and line of a position in the text; lines end with LF, CR LF or CR."""
        text = self.text
        line = 1 + text.count("\n", 0, at) + text.count("\r", 0, at) - text.count("\r\n", 0, at)
        return f"{self.path}, line {line}"

    def fail(self, what: str, *, at: int | None = None, **details: Any) -> NoReturn:
        """Raise a FormatError at a position, or at the last word; ``details`` as in ``SynoviaError``."""
        raise FormatError(what, where=self.place(self.begin if at is None else at), **details)

    def word(self) -> str:
        """Read the next word or brace; empty at the end of the file."""
        match = _WORD.search(self.text, self.at)
        self.begin, self.at = match.span() if match else (len(self.text.rstrip()), len(self.text))
        return match.group() if match else ""

    def name(self) -> str:
        """Read the rest of the line up to a brace: a name, which may contain spaces."""
        match = _NAME.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match.group().strip()

    def number(self, what: str) -> float:
        """Read the next word as a finite number."""
        word = self.word()
        if not NUMBER.fullmatch(word):
            self.fail(f"{what} is not a number", value=word or "the end of the file", expected="a number")
        number = float(word)
        if not abs(number) <= LARGEST:
            self.fail(f"{what} is not finite or too large", value=word, expected=f"a number of at most {LARGEST:g}")
        return number


def read_hierarchy(source: Source) -> tuple[list[Node], bool]:
    """Read the nodes in the order of the file, parents first, and whether a MOTION part follows.

    Raises:
        FormatError: If the hierarchy is malformed, cut off, or has more joints than a skeleton can have.
    """
    first = source.word()
    if first.upper() != "HIERARCHY":
        source.fail("is not a BVH file", value=first[:40], expected="HIERARCHY as the first word")
    nodes: list[Node] = []
    stack: list[int] = []
    while True:
        word = source.word()
        key = word.upper()
        if not stack:
            if key == "ROOT":
                stack.append(_open(source, nodes, -1))
            elif key == "MOTION" or not word:
                break
            else:
                source.fail("unexpected word outside of a joint", value=word, expected="ROOT or MOTION")
            continue
        node = nodes[stack[-1]]
        if key == "OFFSET":
            if node.offset is not None:
                source.fail(f"{_called(node)} has two OFFSETs")
            x, y, z = (source.number(f"OFFSET of {_called(node)}") for _ in range(3))
            node.offset = (x, y, z)
        elif key == "CHANNELS":
            _read_channels(source, node)
        elif key in ("JOINT", "END"):
            if node.end:
                source.fail("an End Site cannot have children", value=word, expected="OFFSET or }")
            stack.append(_open(source, nodes, stack[-1], end=key == "END"))
        elif word == "}":
            if node.offset is None:
                source.fail(f"{_called(node)} has no OFFSET", expected="OFFSET and three numbers")
            stack.pop()
        elif not word or key == "MOTION":
            begun = source.place(node.at).rpartition(", ")[2]
            source.fail(
                f"{_called(node)}, begun on {begun}, is not closed", value=word or "the end of the file", expected="}"
            )
        else:
            source.fail(
                f"unexpected word in {_called(node)}", value=word, expected="OFFSET, CHANNELS, JOINT, End Site or }"
            )
    if not nodes:
        source.fail("hierarchy has no joint", value=word or "the end of the file", expected="ROOT")
    return nodes, bool(word)


def _open(source: Source, nodes: list[Node], parent: int, *, end: bool = False) -> int:
    """Read the name and the opening brace of a node after its keyword; return its index."""
    at = source.begin
    if end and (word := source.word()).upper() != "SITE":
        source.fail("End without Site", value=word or "the end of the file", expected="End Site")
    name = source.name()
    if not end and not name:
        source.fail("joint has no name", expected="a name on the same line")
    nodes.append(Node(name, parent, end, at))
    if len(nodes) > MAX_JOINTS:
        source.fail("too many joints", expected=f"at most {MAX_JOINTS}")
    word = source.word()
    if word != "{":
        source.fail(f"{_called(nodes[-1])} has no opening brace", value=word or "the end of the file", expected="{")
    return len(nodes) - 1


def _read_channels(source: Source, node: Node) -> None:
    """Read the number and the names of a node's channels."""
    at = source.begin
    if node.channels is not None:
        source.fail(f"{_called(node)} has two lists of CHANNELS")
    count = source.word()
    if not (count.isascii() and count.isdigit()) or len(count) > 1 or int(count) > len(CHANNELS):
        source.fail(f"number of CHANNELS of {_called(node)} cannot be used", value=count, expected="0 to 6")
    if node.end and count != "0":
        source.fail("an End Site cannot have channels", value=count, expected="none")
    names: list[str] = []
    resume = source.at
    while (name := _CHANNEL.get((word := source.word()).lower())) is not None:
        if name in names:
            source.fail(f"channel {name} of {_called(node)} is repeated", expected="each channel once")
        names.append(name)
        resume = source.at
    if word.lower().endswith(("position", "rotation")):
        source.fail(f"unknown channel of {_called(node)}", value=word, expected="one of " + ", ".join(CHANNELS))
    if len(names) != int(count):
        source.fail(
            f"CHANNELS of {_called(node)} has {counted(len(names), 'name')}, but announces {count}",
            at=at,
            value=names,
            expected=count,
        )
    source.at = resume
    node.channels = tuple(names)


def _called(node: Node) -> str:
    """Return the name of a node for messages."""
    return f"End Site {node.name}".rstrip() if node.end else f"joint {node.name!r}"
