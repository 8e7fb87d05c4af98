"""Find the role (body part) of each joint, from roles in the file, from names, and from the shape of the body."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from synovia.model.anatomy.limbs import PARTS, Shape
from synovia.model.anatomy.names import (
    ALIASES,
    CENTRE,
    EYE,
    HIPS,
    LIMBS,
    NUMBERED,
    SIDES,
    Word,
    common_prefix,
    finger_of,
    read_name,
)
from synovia.model.joint import Kind
from synovia.model.tree import BodyTree, JointTree, ancestors

_RIGGING = ("ORG-", "MCH-")  # control bones of a Rigify rig; bones that deform the skin begin with "DEF-"
_NUMBER = re.compile(r"[._ ]?\d+")
_SEVERAL = 5  # least number of joints with one name in a line that form a whole limb
_CORE = tuple(f"{side}_{part}" for side in ("left", "right") for parts in PARTS.values() for part in parts[:3])
ORDER = ("upper_leg", "lower_leg", "foot", "toes"), ("shoulder", "upper_arm", "lower_arm", "hand")
Found = dict[str, list[int]]  # rows of the joints of each role; several if the file has several bodies


class Roles(Mapping[str, str]):
    """Names of joints by role. ``ALIASES`` of roles can be looked up too, but are not listed."""

    def __init__(self, names: Sequence[str], rows: Mapping[str, int]) -> None:
        """Store the names of all joints, and the rows by role."""
        self._names = names
        self._rows: Mapping[str, int] = rows

    def __getitem__(self, role: str) -> str:
        """Return the name of the joint with a role."""
        return self._names[self._rows[role if role in self._rows else ALIASES.get(role, role)]]

    def __iter__(self) -> Iterator[str]:
        """Yield the roles."""
        return iter(self._rows)

    def __len__(self) -> int:
        """Return the number of roles."""
        return len(self._rows)

    def __repr__(self) -> str:
        """Return the roles in the text form of a dict."""
        return repr(dict(self))


def recognize(tree: BodyTree, shape: Callable[[], Shape]) -> Found:
    """Return the rows of the joints with each role, by role; roles are ordered from the root to the tips.

    Roles in the file have priority over names. Parts of limbs that both lack follow from the shape of the body. In a
    group of hinges, as in robots, the last hinge has the role, because it carries the bone. The legs meet at the hips,
    and the arms at the chest.

    Args:
        tree: The joints.
        shape: A function that returns the shape of the body; it is called only if a part of a limb is missing.
    """
    found: Found = {}
    for row, joint in enumerate(tree.joints):
        if joint.role:
            found.setdefault(joint.role, []).append(row)
    declared = frozenset(found)
    words = _words(tree)
    begins: dict[tuple[str, str], int] = {}
    doubtful: Found = {}
    for side in SIDES:
        used = _fill_numbered(tree, words, found, side)
        used |= _begins(tree, words, found, begins, side)
        for part, aliases in LIMBS.items():
            if f"{side}_{part}" in found:
                continue
            for alias in aliases:
                rows = _named(tree, words, side, alias)
                if part == "upper_arm" and alias in LIMBS["shoulder"] and not _has_lower_arm(words, side):
                    doubtful[f"{side}_{part}"] = rows  # the shape decides between upper arm and collar bone
                elif rows and alias not in used and not (part == "upper_leg" and _is_lower_leg(words, side, alias)):
                    found[f"{side}_{part}"] = rows
                    used.add(alias)
                    break
    for part, aliases in CENTRE.items():
        _fill_center(tree, words, found, part, aliases)
    _fill_carried_head(tree, found)
    _drop_disordered(tree, found, declared)
    if not all(role in found for role in _CORE):
        known = {role: rows[0] for role, rows in found.items()}
        shaped = shape().completed(known, begins)
        if meeting(tree, shaped.values()) is not None:  # limbs of several trees do not belong to one body
            found |= {role: [row] for role, row in shaped.items() if role not in found}
        for role, rows in doubtful.items():
            if rows and role not in found:
                found[role] = rows
                found.pop(role.replace("upper_arm", "shoulder"), None)
        _drop_disordered(tree, found, declared)
    _drop_hinged_collars(tree, found, declared)
    _fill_trunk(tree, words, found)
    _lower_to_last_hinges(tree, words, found, declared)
    _fill_fingers(tree, words, found)
    _fill_eyes(tree, words, found)
    return dict(sorted(found.items(), key=lambda item: item[1][0]))


def _first(found: Found, role: str) -> int | None:
    """Return the row of a role, in the first body; None without the role."""
    return found[role][0] if role in found else None


def meeting(tree: JointTree, rows: Iterable[int]) -> int | None:
    """Return the last common ancestor of rows, which may be one of them; None if there is none."""
    paths = [ancestors(tree.parents, row) for row in rows]
    if not paths:
        return None
    return next((row for row in paths[0] if all(row in path for path in paths[1:])), None)


def _words(tree: JointTree) -> list[Word | None]:
    """Return the parsed name of each joint, or else of its link; None for tips and control bones."""
    names = [joint.name for joint in tree.joints]
    prefix = common_prefix([name for name, joint in zip(names, tree.joints, strict=True) if not joint.tip])
    deforming = any(name.startswith("DEF-") for name in names)
    out: list[Word | None] = []
    for name, joint in zip(names, tree.joints, strict=True):
        skipped = (joint.tip and joint.kind is Kind.FIXED) or (deforming and name.startswith(_RIGGING))
        word = None if skipped else read_name(name, prefix)
        out.append(word or (read_name(joint.body) if joint.body and not skipped else None))
    return out


def _fill_numbered(tree: JointTree, words: list[Word | None], found: Found, side: str) -> set[str]:
    """Add limbs whose joints only have numbers, by the lengths of their bones; return the words in their names.

    The two longest bones belong to the upper and the lower part. The first joint's bone is in the trunk and does not
    count.
    """
    used: set[str] = set()
    for parts, aliases in NUMBERED.items():
        for alias in aliases:
            rows = [row for row, word in enumerate(words) if word and (word.side, word.word) == (side, alias)]
            line = ancestors(tree.parents, rows[-1])[::-1] if rows else []
            if len(rows) < _SEVERAL or not set(rows) <= set(line):
                continue
            line = line[line.index(rows[0]) :]
            lengths = {row: float(np.linalg.norm(tree.joints[row].rest[:3, 3])) for row in line[1:]}
            first, second = sorted(sorted(lengths, key=lambda row: -lengths[row])[:2])
            above = [line[line.index(first) - 1], line[line.index(second) - 1], rows[-1]]
            if len(set(above)) == len(parts):
                found.update({f"{side}_{part}": [row] for part, row in zip(parts, above, strict=True)})
                used.add(alias)
    return used


def _begins(
    tree: JointTree, words: list[Word | None], found: Found, begins: dict[tuple[str, str], int], side: str
) -> set[str]:
    """Add first joints of limbs with numbered joints, such as leg_L_1 and leg_L_2; return the words in their names.

    Such names identify a limb, but not its parts.
    """
    used: set[str] = set()
    for limb, parts in PARTS.items():
        others = {alias for part in parts[:2] for alias in LIMBS[part]} - {limb}
        named = {word.word for word in words if word and word.side == side}
        rows = [row for row, word in enumerate(words) if word and (word.side, word.word) == (side, limb)]
        line = ancestors(tree.parents, rows[-1]) if rows else []
        bare = {_NUMBER.sub("", tree.joints[row].name) for row in rows}
        known = any(f"{side}_{part}" in found for part in parts[:2])
        if len(rows) > 1 and set(rows) <= set(line) and len(bare) == 1 and not named & others and not known:
            begins[side, limb] = rows[0]
            used.add(limb)
    return used


def _is_lower_leg(words: list[Word | None], side: str, alias: str) -> bool:
    """Return whether "leg" means the lower leg, as in "upleg, leg", and not the upper leg, as in "leg, knee"."""
    lower = {*LIMBS["lower_leg"]} - {alias}
    return alias in LIMBS["lower_leg"] and not any(word and word.side == side and word.word in lower for word in words)


def _has_lower_arm(words: list[Word | None], side: str) -> bool:
    """Return whether some joint name of a side means the lower arm."""
    return any(word and word.side == side and word.word in LIMBS["lower_arm"] for word in words)


def _named(tree: JointTree, words: list[Word | None], side: str, alias: str) -> list[int]:
    """Return the rows of joints whose names have a word and a side; several if the file has several bodies.

    Of joints in one line, return one. Of hinges, such as those of a robot's hip, it is the last, because it carries the
    bone. Of other joints, it is the first whose name equals the last one's but for the number: such joints are pieces
    of one bone.
    """
    left = [row for row, word in enumerate(words) if word is not None and (word.side, word.word) == (side, alias)]
    out: list[int] = []
    while left:
        line = [row for row in left if left[0] in ancestors(tree.parents, row)]
        bare = [_NUMBER.sub("", tree.joints[row].name) for row in line]
        hinges = tree.joints[line[-1]].kind in (Kind.HINGE, Kind.SLIDE)
        out.append(line[-1] if hinges else line[bare.index(bare[-1])])
        left = [row for row in left if row not in line]
    return out


def _fill_center(tree: JointTree, words: list[Word | None], found: Found, part: str, aliases: Sequence[str]) -> None:
    """Add a central part by name: the topmost joint with such a name in each body."""
    rows = [row for row, word in enumerate(words) if word and not word.side and word.word in aliases]
    if rows and part not in found:
        found[part] = [row for row in rows if not set(rows) & set(ancestors(tree.parents, row)[1:])]


def _fill_carried_head(tree: JointTree, found: Found) -> None:
    """Add the head of a robot whose joints do not name it: the last moving joint above the link "head"."""
    if "head" in found:
        return
    limbs = [row for role, rows in found.items() if role.startswith(SIDES) for row in rows]
    for row, joint in enumerate(tree.joints):
        word = read_name(joint.body) if joint.body else None
        if word is None or word.side or word.word not in CENTRE["head"]:
            continue
        above = next((k for k in ancestors(tree.parents, row) if tree.joints[k].kind is not Kind.FIXED), None)
        if above is not None and not any(above in ancestors(tree.parents, limb) for limb in limbs):
            found["head"] = [above]
            return


def _lower_to_last_hinges(tree: JointTree, words: list[Word | None], found: Found, declared: Collection[str]) -> None:
    """Give neck and head to the last of their hinges, unless the file declares their roles."""
    for part, aliases in CENTRE.items():
        if part in declared:
            continue
        others = {row for role, rows in found.items() if role != part for row in rows}
        rows = [row for row, word in enumerate(words) if word and not word.side and word.word in aliases]
        if part in found:
            found[part] = [_last_hinge(tree, row, [k for k in rows if k not in others]) for row in found[part]]


def _last_hinge(tree: JointTree, row: int, rows: list[int]) -> int:
    """Return the last hinge of an unbranched chain of hinges in ``rows`` that starts at a row."""
    while tree.joints[row].kind is Kind.HINGE:
        below = [k for k in rows if tree.parents[k] == row and tree.joints[k].kind is Kind.HINGE]
        if len(below) != 1:
            break
        row = below[0]
    return row


def _drop_disordered(tree: JointTree, found: Found, declared: Collection[str]) -> None:
    """Remove parts whose names contradict the tree, such as a hand that is not below its lower arm.

    Parts whose roles are in the file are kept.
    """
    for side in SIDES:
        for parts in ORDER:
            above: int | None = None
            for part in parts:
                row = _first(found, f"{side}_{part}")
                if row is None:
                    continue
                disordered = above is not None and above not in ancestors(tree.parents, row)[1:]
                if disordered and f"{side}_{part}" not in declared:
                    del found[f"{side}_{part}"]
                else:
                    above = row


def _drop_hinged_collars(tree: JointTree, found: Found, declared: Collection[str]) -> None:
    """Remove shoulders that only hinges connect to the upper arm; these rotate the arm and are not collar bones."""
    for side in SIDES:
        if f"{side}_shoulder" in declared:
            continue
        shoulder, arm = (_first(found, f"{side}_{part}") for part in ("shoulder", "upper_arm"))
        if shoulder is None or arm is None:
            continue
        line = ancestors(tree.parents, arm)
        if all(tree.joints[row].kind is Kind.HINGE for row in line[: line.index(shoulder) + 1]):
            del found[f"{side}_shoulder"]


def _fill_trunk(tree: JointTree, words: list[Word | None], found: Found) -> None:
    """Add hips (where legs meet, else by name), chest (where arms and head meet), and spine (between both)."""
    legs = [found[f"{side}_upper_leg"] for side in SIDES if f"{side}_upper_leg" in found]
    if "hips" not in found and len(legs) == 2:
        met = [row for pair in zip(*legs, strict=False) if (row := meeting(tree, pair)) is not None]
        if met:
            found["hips"] = met
    _fill_center(tree, words, found, "hips", HIPS)
    hips = _first(found, "hips")
    arms = [row for side in SIDES if (row := _first(found, f"{side}_{_arm(found, side)}")) is not None]
    if len(arms) == 2 and "head" in found:
        arms.append(found["head"][0])
    top = meeting(tree, [tree.parents[row] for row in arms if tree.parents[row] >= 0])
    whole_arms = all(f"{side}_lower_arm" in found for side in SIDES)
    if top is None or (hips is None and not (len(arms) > 1 and whole_arms)):
        return
    if "head" not in found and len(arms) == 2:
        _fill_head(tree, found, top)
    line = ancestors(tree.parents, top)
    held = [] if hips is None else ancestors(tree.parents, hips)
    if held and set(held).isdisjoint(line):
        return
    line = [row for row in line if row not in held]  # the hips may be on a branch off the spine
    line = [row for row in line if tree.joints[row].kind is not Kind.FIXED]
    neck = ancestors(tree.parents, found["head"][0])[1:] if "head" in found and "neck" not in found else []
    neck = neck[: neck.index(top)] if top in neck else []
    if neck and all(tree.joints[row].kind in (Kind.BALL, Kind.FREE) for row in neck):
        found["neck"] = [neck[-1]]
    if line and not {"chest", "spine", "upper_chest"} & found.keys():
        found["chest"] = [line[0]]
        if len(line) > 1 and tree.joints[line[-1]].kind in (Kind.BALL, Kind.FREE):
            found["spine"] = [line[-1]]


def _fill_head(tree: JointTree, found: Found, top: int) -> None:
    """Add neck and head by the tree: they are on the longest central line of joints from where the arms meet."""
    held = {row for role, rows in found.items() if role.startswith(SIDES) for row in rows}
    best: list[int] = []
    for row, joint in enumerate(tree.joints):
        line = ancestors(tree.parents, row)
        if joint.kind is Kind.FIXED or top not in line:
            continue
        line = line[: line.index(top)][::-1]
        sides = [word for above in line if (word := read_name(tree.joints[above].name)) and word.side]
        if len(line) > len(best) and not sides and not held & set(line):
            best = line
    if best and not any(best[0] in ancestors(tree.parents, row) for row in held):
        found["head"] = [best[-1]]
        if len(best) > 1 and "neck" not in found:
            found["neck"] = [best[0]]


def _arm(found: Found, side: str) -> str:
    """Return the role of the first known part of an arm."""
    return "shoulder" if f"{side}_shoulder" in found else "upper_arm"


def _fill_eyes(tree: JointTree, words: list[Word | None], found: Found) -> None:
    """Add the eye of each side: the first moving joint below the head whose name means an eye."""
    head = _first(found, "head")
    for row, word in enumerate(words):
        if head is None or word is None or not word.side or tree.joints[row].kind is Kind.FIXED:
            continue
        if EYE.fullmatch(word.word) and head in ancestors(tree.parents, row)[1:]:
            found.setdefault(f"{word.side}_eye", [row])


def _fill_fingers(tree: JointTree, words: list[Word | None], found: Found) -> None:
    """Add the roles of finger joints, numbered from the hand on."""
    for side in SIDES:
        hand = _first(found, f"{side}_hand")
        if hand is None:
            continue
        for row in range(hand + 1, len(tree.joints)):
            word = words[row]
            if word is None or hand not in ancestors(tree.parents, row):
                continue
            finger = finger_of(word.word)
            if finger is not None:
                line = [words[above] for above in ancestors(tree.parents, row)]
                depth = sum(1 for other in line if other is not None and finger_of(other.word) == finger)
                found.setdefault(f"{side}_{finger}_{depth}", [row])
