"""Addresses: the meanings of a name, as a frame and as a joint.

A name can belong to a joint, to the link that a joint carries (URDF link, MJCF body) and to a site on a link. In many
files a joint and another joint's link share a name, so a name has two meanings with separate lookups:

- As a frame (goals, targets, ``pose.position``), it means the frame of a joint, a link or a site. If the name fits
  different frames, it is refused, and ``joint:NAME``, ``link:NAME`` or ``site:NAME`` must say which is meant.
- As a joint (values, limits), it means the joint of this name, else the joint that carries the link of this name.

``body:NAME`` is another form of ``link:NAME``. The skeleton adds roles and their aliases, with lower precedence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.model.geometry import Array, rigid
from synovia.model.joint import Joint, Kind

JOINT: Final = "joint"
LINK: Final = "link"
SITE: Final = "site"
_KINDS: Final = {JOINT: JOINT, LINK: LINK, "body": LINK, SITE: SITE}  # kind of a meaning, by the word before the colon


def kind_and_name(name: str) -> tuple[str | None, str]:
    """Split a name such as ``link:NAME`` into kind and bare name; the kind is None without such a prefix."""
    word, colon, rest = name.partition(":")
    return (_KINDS[word], rest) if colon and word in _KINDS else (None, name)


BETWEEN: Final = "/"  # separates body and joint in the names of a combined skeleton, as in dm_control


def body_of(name: str) -> str | None:
    """Return the body before the slash in the name of a joint of a combined skeleton; None without a slash."""
    body, between, _ = name.partition(BETWEEN)
    return body if between else None


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """One meaning of a name.

    Args:
        kind: ``"joint"``, ``"link"`` or ``"site"``.
        name: The name, without the word before the colon.
        row: Row of the joint, or of the joint that carries the link or site.
        rest: Frame of a site on its joint, (4, 4); None for a joint or link.
    """

    kind: str
    name: str
    row: int
    rest: Array | None = None

    @property
    def place(self) -> Array | None:
        """The frame on its joint, (4, 4); None for the joint's own frame."""
        return None if self.rest is None or np.array_equal(self.rest, np.eye(4)) else self.rest

    def is_at(self, row: int, place: Array) -> bool:
        """Return whether the meaning is the frame ``place``, (4, 4), on the joint of a row."""
        return self.row == row and np.array_equal(place, rigid() if self.rest is None else self.rest)

    @property
    def address(self) -> str:
        """The name with its kind as prefix."""
        return f"{self.kind}:{self.name}"


class AddressBook:
    """The joints, links and sites of a skeleton by name.

    Args:
        joints: The joints.
        parents: Index of each joint's parent, -1 for a root.
    """

    def __init__(self, joints: Sequence[Joint], parents: Sequence[int]) -> None:
        """Collect the names."""
        self._joints, self._parents = joints, parents
        self._book: dict[str, dict[str, list[Meaning]]] = {JOINT: {}, LINK: {}, SITE: {}}
        # For a body of several joints, its name means the last joint; two bodies with one name have two rows.
        inner = {above for row, above in enumerate(parents) if above >= 0 and joints[row].body == joints[above].body}
        for row, joint in enumerate(joints):
            self._add(Meaning(JOINT, joint.name, row))
            if joint.body and row not in inner:
                self._add(Meaning(LINK, joint.body, row))
            for site in joint.sites:
                self._add(Meaning(SITE, site.name, row, site.rest))

    def _add(self, meaning: Meaning) -> None:
        """Add a meaning."""
        self._book[meaning.kind].setdefault(meaning.name, []).append(meaning)

    @property
    def names(self) -> list[str]:
        """All names of joints, links and sites."""
        return list(dict.fromkeys(name for named in self._book.values() for name in named))

    @property
    def site_names(self) -> tuple[str, ...]:
        """The names of the sites."""
        return tuple(self._book[SITE])

    def frames(self, name: str) -> list[Meaning]:
        """Return the distinct frames that a name may mean, each with its first meaning; frames of joints come first."""
        found = [meaning for kind in self._book for meaning in self._named(name, kind)]
        if len(found) < 2:
            return found
        kept: list[tuple[Meaning, tuple[int, Array]]] = []
        for meaning in found:
            row, place = self._fixed_place(meaning)
            if all(row != other or not np.array_equal(place, known) for _, (other, known) in kept):
                kept.append((meaning, (row, place)))
        return [meaning for meaning, _ in kept]

    def joints(self, name: str) -> list[Meaning]:
        """Return the joints that a name means: the joints of this name, else joints that carry a link of this name."""
        found = self._named(name, JOINT) or self._named(name, LINK)
        return list({meaning.row: meaning for meaning in found}.values())

    def sites(self, name: str) -> list[Meaning]:
        """Return the sites of a name."""
        return self._named(name, SITE)

    def _named(self, name: str, kind: str) -> list[Meaning]:
        """Return the meanings of one kind: of the whole name, and of the part after ``kind:``."""
        found = self._book[kind].get(name, [])
        said, rest = kind_and_name(name)
        return found + self._book[kind].get(rest, []) if said == kind else found

    def _fixed_place(self, meaning: Meaning) -> tuple[int, Array]:
        """Return a frame relative to the nearest moving joint above, or to the root, so that frames can be compared."""
        row, place = meaning.row, rigid() if meaning.rest is None else meaning.rest
        while self._joints[row].kind is Kind.FIXED and self._parents[row] >= 0:
            row, place = self._parents[row], self._joints[row].rest @ place
        return row, place
