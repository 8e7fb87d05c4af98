"""Which joint is which part of the body: by the file's own roles, by names, and by the shape of the tree."""

from __future__ import annotations

from collections.abc import Iterable

from synovia.model import Kind, Skeleton
from synovia.model.tree import ancestors
from synovia.retargeting.names import CENTRE, FINGERS, LIMBS, SIDES, Word, read_name
from synovia.retargeting.shape import limbs_by_shape

ORDER = ("upper_leg", "lower_leg", "foot", "toes"), ("shoulder", "upper_arm", "lower_arm", "hand")


def find_roles(skeleton: Skeleton) -> dict[str, int]:
    """Return the row of each part of the body that is found, by role.

    Roles that the file gives come first, then names, then (for limbs that no name tells) the shape of the tree at rest.
    A group of hinges, as in robots, is addressed by its last one, which carries the bone. Hips and chest are where legs
    and arms meet.
    """
    found = {role: skeleton.index(name) for role, name in skeleton.roles.items()}
    words = [_word(skeleton, row) for row in range(len(skeleton))]
    for side in SIDES:
        used: set[str] = set()
        for part, aliases in LIMBS.items():
            if f"{side}_{part}" in found:
                continue
            for alias in aliases:
                row = _last_in_line(skeleton, words, side, alias)
                if row is not None and alias not in used:
                    found[f"{side}_{part}"] = row
                    used.add(alias)
                    break
    for part, aliases in CENTRE.items():
        rows = [row for row, word in enumerate(words) if word and not word.side and word.word in aliases]
        if rows and part not in found:
            found[part] = rows[0]
    if not all(f"{side}_upper_leg" in found for side in SIDES):
        found = limbs_by_shape(skeleton) | found
    _drop_disordered(skeleton, found)
    _fill_trunk(skeleton, found)
    _fill_fingers(skeleton, words, found)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def meeting(skeleton: Skeleton, rows: Iterable[int]) -> int | None:
    """Return the lowest joint above all rows, None if there is none."""
    paths = [ancestors(skeleton.parents, row) for row in rows]
    if not paths:
        return None
    return next((row for row in paths[0] if all(row in path for path in paths[1:])), None)


def _word(skeleton: Skeleton, row: int) -> Word | None:
    """Return what the name of a joint, or of the body that it carries, says; tips say nothing."""
    joint = skeleton.joints[row]
    if joint.tip and joint.kind is Kind.FIXED:
        return None
    return read_name(joint.name) or (read_name(joint.body) if joint.body else None)


def _last_in_line(skeleton: Skeleton, words: list[Word | None], side: str, alias: str) -> int | None:
    """Return the joint that a word means on one side: of several in line (the hinges of a robot's hip), the last."""
    rows = [row for row, word in enumerate(words) if word is not None and (word.side, word.word) == (side, alias)]
    line = [row for row in rows if rows[0] in ancestors(skeleton.parents, row)]
    return line[-1] if line else None


def _drop_disordered(skeleton: Skeleton, found: dict[str, int]) -> None:
    """Forget what a name claims against the tree: a hand that hangs on no lower arm."""
    for side in SIDES:
        for parts in ORDER:
            above: int | None = None
            for part in parts:
                row = found.get(f"{side}_{part}")
                if row is None:
                    continue
                if above is not None and above not in ancestors(skeleton.parents, row)[1:]:
                    del found[f"{side}_{part}"]
                else:
                    above = row


def _fill_trunk(skeleton: Skeleton, found: dict[str, int]) -> None:
    """Add hips, spine and chest: where the legs meet, where the arms (or the head) hang, and what is between."""
    legs = [found[f"{side}_upper_leg"] for side in SIDES if f"{side}_upper_leg" in found]
    if "hips" not in found and len(legs) == 2 and (hips := meeting(skeleton, legs)) is not None:
        found["hips"] = hips
    arms = [row for side in SIDES if (row := found.get(f"{side}_shoulder", found.get(f"{side}_upper_arm"))) is not None]
    if len(arms) == 2 and "head" in found:
        arms.append(found["head"])
    top = meeting(skeleton, [skeleton.parents[row] for row in arms if skeleton.parents[row] >= 0])
    if top is None or "hips" not in found:
        return
    line = [row for row in ancestors(skeleton.parents, top) if found["hips"] in ancestors(skeleton.parents, row)[1:]]
    line = [row for row in line if skeleton.joints[row].kind is not Kind.FIXED]
    if not line:
        return
    if not {"chest", "spine", "upper_chest"} & found.keys():
        found["chest"] = line[0]
        if len(line) > 1 and skeleton.joints[line[-1]].kind in (Kind.BALL, Kind.FREE):
            found["spine"] = line[-1]


def _fill_fingers(skeleton: Skeleton, words: list[Word | None], found: dict[str, int]) -> None:
    """Add the joints of fingers, numbered from the hand outwards."""
    for side in SIDES:
        hand = found.get(f"{side}_hand")
        if hand is None:
            continue
        for row in range(hand + 1, len(skeleton)):
            word = words[row]
            if word is None or hand not in ancestors(skeleton.parents, row):
                continue
            for ending, finger in FINGERS.items():
                if word.word.endswith(ending):
                    depth = sum(
                        1
                        for above in ancestors(skeleton.parents, row)
                        if (other := words[above]) is not None and other.word.endswith(ending)
                    )
                    found.setdefault(f"{side}_{finger}_{depth}", row)
