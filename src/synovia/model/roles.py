"""Find the part of the body of each joint, from the file's roles and from names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from synovia.model.joint import Kind
from synovia.model.names import ALIASES, CENTRE, FINGERS, HIPS, LIMBS, SIDES, Word, read_name
from synovia.model.tree import JointTree, ancestors

ORDER = ("upper_leg", "lower_leg", "foot", "toes"), ("shoulder", "upper_arm", "lower_arm", "hand")
Found = dict[str, list[int]]  # rows by role, several if the file has several bodies


class Roles(Mapping[str, str]):
    """Names of joints by role in the body. Other names of a role (see ``ALIASES``) are found, but not listed."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """Store the names by role."""
        self._names = names

    def __getitem__(self, role: str) -> str:
        """Return the name of the joint that has a role."""
        return self._names[role if role in self._names else ALIASES.get(role, role)]

    def __iter__(self) -> Iterator[str]:
        """Yield the roles."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return the number of roles."""
        return len(self._names)

    def __repr__(self) -> str:
        """Return it as a dict."""
        return repr(dict(self._names))


def recognize(tree: JointTree, by_shape: Callable[[], Mapping[str, int]] = dict) -> Found:
    """Return the rows of the parts of the body, by role, from the root outwards.

    Roles of the file have precedence over names. In a group of hinges, as in robots, the last one has the role, because
    it carries the bone. Legs meet at the hips, and arms at the chest.

    Args:
        tree: The joints.
        by_shape: Returns rows by role if names identify no legs.
    """
    found: Found = {}
    for row, joint in enumerate(tree.joints):
        if joint.role:
            found.setdefault(joint.role, []).append(row)
    words = [_word(tree, row) for row in range(len(tree.joints))]
    for side in SIDES:
        used: set[str] = set()
        for part, aliases in LIMBS.items():
            if f"{side}_{part}" in found:
                continue
            for alias in aliases:
                rows = _named(tree, words, side, alias)
                if rows and alias not in used:
                    found[f"{side}_{part}"] = rows
                    used.add(alias)
                    break
    for part, aliases in CENTRE.items():
        _fill_center(tree, words, found, part, aliases)
    if not all(f"{side}_upper_leg" in found for side in SIDES):
        found = {role: [row] for role, row in by_shape().items()} | found
    _drop_disordered(tree, found)
    _fill_trunk(tree, found)
    _fill_center(tree, words, found, "hips", HIPS)
    _fill_fingers(tree, words, found)
    return dict(sorted(found.items(), key=lambda item: item[1][0]))


def _first(found: Found, role: str) -> int | None:
    """Return the row of a role, None without one."""
    return found[role][0] if role in found else None


def meeting(tree: JointTree, rows: Iterable[int]) -> int | None:
    """Return the lowest joint above all rows, None if there is none."""
    paths = [ancestors(tree.parents, row) for row in rows]
    if not paths:
        return None
    return next((row for row in paths[0] if all(row in path for path in paths[1:])), None)


def _word(tree: JointTree, row: int) -> Word | None:
    """Return the content of the name of a joint or its body; None for tips."""
    joint = tree.joints[row]
    if joint.tip and joint.kind is Kind.FIXED:
        return None
    return read_name(joint.name) or (read_name(joint.body) if joint.body else None)


def _named(tree: JointTree, words: list[Word | None], side: str, alias: str) -> list[int]:
    """Return the joints with a word on one side, several if the file has several bodies.

    Of joints in line, such as the hinges of a robot's hip, only the last is returned.
    """
    left = [row for row, word in enumerate(words) if word is not None and (word.side, word.word) == (side, alias)]
    out: list[int] = []
    while left:
        line = [row for row in left if left[0] in ancestors(tree.parents, row)]
        out.append(line[-1])
        left = [row for row in left if row not in line]
    return out


def _fill_center(tree: JointTree, words: list[Word | None], found: Found, part: str, aliases: Sequence[str]) -> None:
    """Add a central part by name: the uppermost joint of that name in each body."""
    rows = [row for row, word in enumerate(words) if word and not word.side and word.word in aliases]
    if rows and part not in found:
        found[part] = [row for row in rows if not set(rows) & set(ancestors(tree.parents, row)[1:])]


def _drop_disordered(tree: JointTree, found: Found) -> None:
    """Remove parts whose name contradicts the tree, such as a hand that is not below its lower arm."""
    for side in SIDES:
        for parts in ORDER:
            above: int | None = None
            for part in parts:
                row = _first(found, f"{side}_{part}")
                if row is None:
                    continue
                if above is not None and above not in ancestors(tree.parents, row)[1:]:
                    del found[f"{side}_{part}"]
                else:
                    above = row


def _fill_trunk(tree: JointTree, found: Found) -> None:
    """Add hips (where the legs meet), chest (where arms and head meet) and spine (between them)."""
    legs = [found[f"{side}_upper_leg"] for side in SIDES if f"{side}_upper_leg" in found]
    if "hips" not in found and len(legs) == 2:
        met = [row for pair in zip(*legs, strict=False) if (row := meeting(tree, pair)) is not None]
        if met:
            found["hips"] = met
    hips = _first(found, "hips")
    arms = [row for side in SIDES if (row := _first(found, f"{side}_{_arm(found, side)}")) is not None]
    if len(arms) == 2 and "head" in found:
        arms.append(found["head"][0])
    top = meeting(tree, [tree.parents[row] for row in arms if tree.parents[row] >= 0])
    if top is None or hips is None:
        return
    line = [row for row in ancestors(tree.parents, top) if hips in ancestors(tree.parents, row)[1:]]
    line = [row for row in line if tree.joints[row].kind is not Kind.FIXED]
    if line and not {"chest", "spine", "upper_chest"} & found.keys():
        found["chest"] = [line[0]]
        if len(line) > 1 and tree.joints[line[-1]].kind in (Kind.BALL, Kind.FREE):
            found["spine"] = [line[-1]]


def _arm(found: Found, side: str) -> str:
    """Return the first part of an arm."""
    return "shoulder" if f"{side}_shoulder" in found else "upper_arm"


def _fill_fingers(tree: JointTree, words: list[Word | None], found: Found) -> None:
    """Add the joints of fingers, numbered from the hand outwards."""
    for side in SIDES:
        hand = _first(found, f"{side}_hand")
        if hand is None:
            continue
        for row in range(hand + 1, len(tree.joints)):
            word = words[row]
            if word is None or hand not in ancestors(tree.parents, row):
                continue
            for ending, finger in FINGERS.items():
                if word.word.endswith(ending):
                    depth = sum(
                        1
                        for above in ancestors(tree.parents, row)
                        if (other := words[above]) is not None and other.word.endswith(ending)
                    )
                    found.setdefault(f"{side}_{finger}_{depth}", [row])
