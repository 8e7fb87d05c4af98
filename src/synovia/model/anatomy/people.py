"""Find the people and the rigs of a scene: the joints of each body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.roles import Found
from synovia.model.geometry import Array
from synovia.model.tree import BodyTree, ancestors

_TWIN: Final = 0.3  # fraction of a thigh's length: hips of two people are at least this far apart
_LEGS: Final = tuple(f"{side}_{part}" for side in SIDES for part in ("upper_leg", "lower_leg"))
_UPPER: Final = ("head", "neck", "left_upper_arm", "right_upper_arm", "left_hand", "right_hand")


def of_one_rig(tree: BodyTree, found: Found) -> Mapping[str, int]:
    """Return one row for each role, of one rig.

    If a person has several rigs, such as control bones and skin bones, the rig with the most skin bones is used.
    """
    hips = _hips_of_rigs(tree, found)
    if len(hips) < 2:
        return {role: rows[0] for role, rows in found.items()}
    below = [{row for row in _below(tree, top) if not _nested(tree, row, top, hips)} for top in hips]
    best = max(below, key=lambda rows: sum(tree.joints[row].bind is not None for row in rows))
    every = {row for rows in below for row in rows}
    out: dict[str, int] = {}
    for role, rows in found.items():
        row = next((row for row in rows if row in best), None)
        row = next((row for row in rows if row not in every), None) if row is None else row
        if row is not None:
            out[role] = row
    return out


def several_people(tree: BodyTree, found: Found, rest: Array) -> list[int]:
    """Return the row of the first joint of each person in a scene; the list has at most one row without several people.

    A person has hips, two legs, and arms or a head. Two rigs belong to one person if one is inside the other, or if
    they are in one tree and coincide at rest; rigs whose names begin with different namespaces belong to two people.

    Args:
        tree: The joints.
        found: Rows of each role.
        rest: Positions of the joints at rest, (n, 3).
    """
    people: list[int] = []
    for row in _hips_of_rigs(tree, found):
        own = set(_below(tree, row))
        if not any(at in own for role in _UPPER for at in found.get(role, ())):
            continue  # such a rig is only a pair of legs
        if all(_are_apart(tree, rest, found, row, other) for other in people):
            people.append(row)
    return people


def _hips_of_rigs(tree: BodyTree, found: Found) -> list[int]:
    """Return the rows of hips that have both legs below them."""
    out: list[int] = []
    for row in found.get("hips", ()):
        own = set(_below(tree, row))
        if all(any(at in own for at in found.get(role, ())) for role in _LEGS):
            out.append(row)
    return out


def _nested(tree: BodyTree, row: int, top: int, hips: list[int]) -> bool:
    """Return whether a joint belongs to other hips, which are below the joint ``top``."""
    line = ancestors(tree.parents, row)
    return any(other in line[: line.index(top)] for other in hips)


def _are_apart(tree: BodyTree, rest: Array, found: Found, row: int, other: int) -> bool:
    """Return whether the hips at two rows belong to two people."""
    lines = [ancestors(tree.parents, at) for at in (row, other)]
    if row in lines[1] or other in lines[0]:
        return False
    if lines[0][-1] != lines[1][-1]:
        return True
    spaces = [tree.joints[at].name.rpartition(":")[0] for at in (row, other)]
    if all(spaces) and spaces[0] != spaces[1]:
        return True
    own = set(_below(tree, row))
    upper, lower = (next(at for at in found[role] if at in own) for role in _LEGS[:2])
    thigh = float(np.linalg.norm(rest[lower] - rest[upper]))
    return float(np.linalg.norm(rest[row] - rest[other])) > _TWIN * thigh


def _below(tree: BodyTree, row: int) -> list[int]:
    """Return the rows of a joint and of all joints below it."""
    out = [row]
    for at in out:
        out += tree.children[at]
    return out
