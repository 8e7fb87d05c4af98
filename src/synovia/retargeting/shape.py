"""Recognise limbs by the shape of a skeleton: two pairs of mirror images, long legs and shorter arms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, axis_vector
from synovia.model.limits import Interval
from synovia.model.roles import recognize
from synovia.model.tree import ancestors

_ALIKE = 0.15  # relative difference of bone lengths between the two sides of a body
_SHORT = 0.03  # difference of lengths that does not count, as a part of the limb
_LIMB = 0.4  # a shorter pair of branches, as a part of the longest, is no limb: eyes, ears, toes
_LONG = 0.6  # a bone of a limb has at least this part of the length of its longest
_WRIST = 0.45  # hinges of one wrist, ankle or elbow are nearer than this part of the bone before or after
_TWIN = 1e-3  # joints of two rigs of one person are this close at rest, as a part of the size
_MOVES = (Kind.HINGE, Kind.BALL, Kind.FREE)


def find_roles(skeleton: Skeleton) -> dict[str, int]:
    """Return the row of each part by role: as ``Skeleton.roles``, or by shape if no name indicates legs."""
    found = recognize(skeleton, lambda: limbs_by_shape(skeleton))
    return {role: rows[0] for role, rows in found.items()}


def several_people(skeleton: Skeleton) -> list[int]:
    """Return the joint at which each person of a scene begins; one or none if there are not several.

    People have hips and both legs each, and none of these is a joint of another person. Two rigs of one person, such as
    bones of control beside bones of the skin, lie upon each other at rest.
    """
    found = recognize(skeleton)
    needed = ("hips", "left_upper_leg", "right_upper_leg", "left_lower_leg", "right_lower_leg")
    count = min((len(found.get(role, ())) for role in needed), default=0)
    rest = np.array(skeleton.rest_pose().positions)
    apart: list[int] = []
    for k in range(count):
        rows = [found[role][k] for role in needed]
        shape = rest[rows] - rest[rows[0]]
        twins = [[found[role][j] for role in needed] for j in range(k)]
        same = any(
            np.allclose(shape, rest[other] - rest[other[0]], atol=_TWIN * skeleton.size)
            and np.allclose(rest[rows[0]], rest[other[0]], atol=_TWIN * skeleton.size)
            and _prefix(skeleton, rows[1]) != _prefix(skeleton, other[1])
            and ancestors(skeleton.parents, rows[0])[-1] == ancestors(skeleton.parents, other[0])[-1]
            for other in twins
        )
        if not same:
            apart.append(rows[0])
    return apart


def _prefix(skeleton: Skeleton, row: int) -> str:
    """Return the first letters of a joint's name, which tell the bones of two rigs apart."""
    return skeleton.joint_names[row][:3]


def limbs_by_shape(skeleton: Skeleton) -> dict[str, int]:
    """Return legs, arms and head of a body without meaningful names; empty if the tree has no such shape.

    Of the pairs of equal branches, that with the longest bones is the legs, and the next is the arms. Up is the
    direction from the feet to the joint where the legs meet. Forward is the direction of the toes, else that in which a
    knee points when it bends, else the forward axis of the file, else that of its kind: +z if y is up; if z is up, +x
    for robots and -y for characters.
    """
    rest = np.array(skeleton.rest_pose().positions)
    limbs = [([_parts(skeleton, row) for row in pair], pair, meet) for pair, meet in _pairs(skeleton)]
    limbs = [limb for limb in limbs if all(limb[0])]
    if len(limbs) < 2:
        return {}
    limbs.sort(key=lambda limb: -_bones(rest, limb[0]))
    found: dict[str, int] = {}
    (leg_parts, legs, hips), (arm_parts, arms, chest) = limbs[:2]
    parts = [*leg_parts, *arm_parts]
    feet = np.mean([rest[part[2]] for part in parts[:2]], axis=0)
    up = _unit(rest[hips] - feet)
    toes = [part[3] for part in parts[:2] if len(part) > 3]
    ahead = np.mean([rest[toe] for toe in toes], axis=0) - feet if toes else np.zeros(3)
    ahead = ahead - np.dot(ahead, up) * up
    ahead = ahead / max(float(np.linalg.norm(rest[hips] - feet)), 1e-300)
    if np.linalg.norm(ahead) < _SHORT:
        ahead = _knees_ahead(skeleton, parts[:2])
        ahead = ahead - np.dot(ahead, up) * up
    if np.linalg.norm(ahead) < _SHORT:
        ahead = _forward(skeleton, up)
    left = np.cross(up, _unit(ahead - np.dot(ahead, up) * up))
    leg, arm = ("upper_leg", "lower_leg", "foot", "toes"), ("upper_arm", "lower_arm", "hand")
    for lines, names in ((parts[:2], leg), (parts[2:], arm)):
        across = float(np.dot(rest[lines[0][0]] - rest[lines[1][0]], left))
        if abs(across) < _SHORT * skeleton.size:
            across = float(np.dot(rest[lines[0][2]] - rest[lines[1][2]], left))
        for part, side in zip(lines, ("left", "right") if across > 0.0 else ("right", "left"), strict=True):
            found.update({f"{side}_{name}": row for row, name in zip(part, names, strict=False)})
    found.update(_head(skeleton, chest, {*arms, *legs}))
    return found


def _bones(rest: Array, parts: list[list[int]]) -> float:
    """Return the mean length of the limbs of a pair, from the beginning of the upper part to the end."""
    return float(np.mean([np.linalg.norm(rest[b] - rest[a]) for part in parts for a, b in pairwise(part[:3])]))


def _knees_ahead(skeleton: Skeleton, legs: list[list[int]]) -> Array:
    """Return the mean direction in which knees point when they bend, (3,); 0 if no limit tells how they bend."""
    frames = np.array(skeleton.rest_pose().frames)
    out = np.zeros(3)
    for _, knee, foot, *_ in legs:
        joint = skeleton.joints[knee]
        if joint.kind is Kind.HINGE and isinstance(joint.limit, Interval):
            bend = joint.limit.lower + joint.limit.upper
            if np.isfinite(bend) and bend:
                axis = frames[knee, :9].reshape(3, 3) @ joint.axis
                out -= np.sign(bend) * _unit(np.cross(axis, frames[foot, 9:] - frames[knee, 9:]))
    return out


def _forward(skeleton: Skeleton, up: Array) -> Array:
    """Return the forward direction (3,) of a body whose feet do not tell."""
    if skeleton.forward:
        return axis_vector(skeleton.forward)
    if int(np.argmax(np.abs(up))) != 2:
        return axis_vector("z")
    return axis_vector("x" if any(joint.kind is Kind.HINGE for joint in skeleton.joints) else "-y")


def _head(skeleton: Skeleton, chest: int, limbs: set[int]) -> dict[str, int]:
    """Return the head: on the longest line between the arms, the last joint that moves, without eyes."""
    holds_limbs = {row for row in range(len(skeleton)) if limbs & set(_below(skeleton, row))}
    lines = [_longest_line(skeleton, row) for row in skeleton.children[chest] if row not in holds_limbs]
    lines = [[row for row in line if skeleton.joints[row].kind in _MOVES] for line in lines]
    lines = [line for line in lines if line]
    if not lines:
        return {}
    best = max(lines, key=lambda line: sum(float(skeleton.lengths[row]) for row in line))
    ends = _pairs_below(skeleton, best)
    return {"head": ends if ends is not None else best[-1]}


def _below(skeleton: Skeleton, row: int) -> list[int]:
    """Return a joint and all joints below it."""
    out = [row]
    for at in out:
        out += skeleton.children[at]
    return out


def _pairs_below(skeleton: Skeleton, line: list[int]) -> int | None:
    """Return the first joint of a line with several children that move, such as eyes; None if there is none."""
    for row in line:
        if sum(skeleton.joints[child].kind in _MOVES for child in skeleton.children[row]) > 1:
            return row
    return None


def _unit(v: Array) -> Array:
    """Return v / |v|, or v if it is 0."""
    length = float(np.linalg.norm(v))
    return v / length if length > 0.0 else v


def _longest_line(skeleton: Skeleton, row: int) -> list[int]:
    """Return the longest path outwards from a joint, by length."""
    best: list[int] = [row]
    longest = -1.0
    for child in skeleton.children[row]:
        line = _longest_line(skeleton, child)
        total = float(sum(skeleton.lengths[i] for i in line))
        if total > longest:
            best, longest = [row, *line], total
    return best


def _pairs(skeleton: Skeleton) -> list[tuple[tuple[int, int], int]]:
    """Return the pairs of equal branches with the joint where they meet, the longest first; no pair is in another."""
    out: list[tuple[float, tuple[int, int], int]] = []
    limbs: set[int] = set()
    for row in range(len(skeleton)):
        above = row
        while above >= 0 and above not in limbs:
            above = skeleton.parents[above]
        if above >= 0:
            continue
        sizes = {
            child: np.array([float(skeleton.lengths[i]) for i in _longest_line(skeleton, child)[1:]])
            for child in skeleton.children[row]
        }
        children = [child for child in sizes if np.count_nonzero(sizes[child]) >= 2]
        for n, a in enumerate(children):
            for b in children[n + 1 :]:
                total = float(sizes[a].sum())
                same = len(sizes[a]) == len(sizes[b])
                if same and np.allclose(sizes[a], sizes[b], rtol=_ALIKE, atol=_SHORT * total):
                    out.append((total, (a, b), row))
                    limbs |= {a, b}
    longest = max((total for total, _, _ in out), default=0.0)
    out = [pair for pair in out if pair[0] >= _LIMB * longest]
    return [(pair, row) for _, pair, row in sorted(out, key=lambda item: -item[0])]


def _parts(skeleton: Skeleton, top: int) -> list[int]:
    """Return the joints of a limb: upper part, lower part, end and, if there is one, the joint after it.

    The last two long bones are the upper and the lower part: a collar bone is before them. In a group of hinges, the
    last one has the part, because it carries the bone.
    """
    line = _longest_line(skeleton, top)
    bones = [row for row in line[1:] if skeleton.joints[row].kind in _MOVES] if len(line) > 1 else []
    longest = max((float(skeleton.lengths[row]) for row in bones), default=0.0)
    long = [row for row in bones if float(skeleton.lengths[row]) >= _LONG * longest]
    if len(long) < 2:  # an end that does not move
        lengths = {row: float(skeleton.lengths[row]) for row in line[1:]}
        long = sorted(sorted(lengths, key=lambda row: -lengths[row])[:2], key=line.index)
    if len(long) < 2:
        return []
    upper, lower, end = line.index(long[-2]) - 1, line.index(long[-1]) - 1, line.index(long[-1])
    if skeleton.joints[line[lower]].kind is Kind.HINGE:
        near = _WRIST * float(skeleton.lengths[long[-1]])
        elbow = lower
        while elbow > 1 and float(skeleton.lengths[line[elbow]]) < near:
            elbow -= 1
        upper = elbow - 1
        while end + 1 < len(line) and _is_hinge_of_group(skeleton, line, end, near):
            end += 1
    return [line[upper], line[lower], *line[end : end + 2]] if upper < lower else []


def _is_hinge_of_group(skeleton: Skeleton, line: list[int], at: int, near: float) -> bool:
    """Return whether a joint of a limb and the next one are hinges of one wrist or ankle: near, without branches."""
    hinges = all(skeleton.joints[row].kind is Kind.HINGE for row in line[at : at + 2])
    return hinges and float(skeleton.lengths[line[at + 1]]) < near and len(skeleton.children[line[at]]) == 1
