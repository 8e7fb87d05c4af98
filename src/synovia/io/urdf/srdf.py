"""Read SRDF, MoveIt's semantic description of a robot: the pairs of links whose collisions are not checked.

``<disable_default_collisions>`` disables all pairs of a link, ``<disable_collisions>`` disables a pair, and
``<enable_collisions>`` enables one again. Groups, their states, end effectors and unknown elements are not used; notes
count them.

References:
    https://wiki.ros.org/srdf
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from synovia.errors import SynoviaError
from synovia.io.base import read_bytes
from synovia.io.xmltree import Element, parse
from synovia.text import counted, first_few

Pair = tuple[str, str]

_LARGEST: Final = 2**26  # largest size of a file, bytes
_MOST: Final = 200_000  # largest number of pairs; one line of the file may disable all pairs of a link
_PLURAL: Final = {"joint property": "joint properties"}
_USED: Final = ("disable_default_collisions", "disable_collisions", "enable_collisions")
_UNUSED: Final = {  # names of the elements that are not used
    "group": "group",
    "group_state": "group state",
    "end_effector": "end effector",
    "virtual_joint": "virtual joint",
    "passive_joint": "passive joint",
    "link_sphere_approximation": "sphere approximation",
    "joint_property": "joint property",
}


def default_srdf(robot: Path) -> Path:
    """Return the path of the default SRDF file of a robot: the same name in the same folder."""
    return robot.with_suffix(".srdf")


def read_pairs(robot: Path, given: Path | None, links: Iterable[str]) -> tuple[list[Pair], list[str]]:
    """Read the pairs of links that may touch, and notes about unused parts.

    Args:
        robot: The URDF file.
        given: The SRDF file; None for the default file next to the robot, if it exists. If the default file cannot be
            read, there is only a note.
        links: The links of the robot.

    Raises:
        SynoviaError: If the given file cannot be read.
    """
    if given is not None:
        return _read(given, [*links])
    path = default_srdf(robot)
    if not path.is_file():
        return [], []
    try:
        return _read(path, [*links])
    except SynoviaError as error:
        return [], [f"The SRDF file {path.name} was ignored, because it cannot be read: {error}"]


def _read(path: Path, links: list[str]) -> tuple[list[Pair], list[str]]:
    """Read the pairs of a file, each once, and notes."""
    root = parse(read_bytes(path, most=_LARGEST), str(path), root="robot", most={})
    known, unknown = set(links), dict[str, None]()
    pairs: dict[Pair, None] = {}
    for element in root.children:
        if element.tag == "disable_default_collisions":
            link = element.text("link")
            if link not in known:
                unknown[link] = None
                continue
            pairs.update(dict.fromkeys(_ordered(link, other) for other in links if other != link))
            if len(pairs) > _MOST:
                raise element.error("disables too many pairs of links", value=len(pairs), expected=f"at most {_MOST}")
    for tag in ("enable_collisions", "disable_collisions"):
        for first, second in _pairs(root, tag):
            missing = [link for link in (first, second) if link not in known]
            unknown.update(dict.fromkeys(missing))
            if missing or first == second:
                continue
            if tag == "disable_collisions":
                pairs[_ordered(first, second)] = None
            else:
                pairs.pop(_ordered(first, second), None)
    return [*pairs], [*_notes(root, path.name, unknown)]


def _pairs(root: Element, tag: str) -> Iterator[Pair]:
    """Yield the pairs of links of all elements with a tag."""
    for element in root.children:
        if element.tag == tag:
            yield element.text("link1"), element.text("link2")


def _ordered(first: str, second: str) -> Pair:
    """Return a pair with its names sorted."""
    return (first, second) if first <= second else (second, first)


def _notes(root: Element, name: str, unknown: Iterable[str]) -> Iterator[str]:
    """Yield notes about unused parts of a file."""
    counts: dict[str, int] = {}
    for element in root.children:
        if element.tag not in _USED:
            what = _UNUSED.get(element.tag, f"unknown <{element.tag}>")
            counts[what] = counts.get(what, 0) + 1
    if counts:
        parts = ", ".join(counted(count, what, _PLURAL.get(what)) for what, count in counts.items())
        yield f"Only the pairs of links in the SRDF file {name} are used; ignored: {parts}."
    if missing := [repr(link) for link in unknown]:
        links = first_few(missing)
        yield f"Pairs in the SRDF file {name} with links that the robot does not have were ignored: {links}."
