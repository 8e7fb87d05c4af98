"""Recognise limbs by the shape of a skeleton: two pairs of mirror images, one near the root, one further up."""

from __future__ import annotations

import numpy as np

from synovia.model import Skeleton
from synovia.model.geometry import Array, axis_vector
from synovia.model.roles import recognize

_ALIKE = 0.05  # relative difference of bone lengths between the two sides of a body


def find_roles(skeleton: Skeleton) -> dict[str, int]:
    """Return the row of each part by role: as ``Skeleton.roles``, or by shape if no name indicates legs."""
    found = recognize(skeleton, lambda: limbs_by_shape(skeleton))
    return {role: rows[0] for role, rows in found.items()}


def limbs_by_shape(skeleton: Skeleton) -> dict[str, int]:
    """Return legs, arms and head of a body without meaningful names; empty if the tree has no such shape.

    The pair of equal branches nearest to the root is the legs; the next pair is the arms. The two longest neighbouring
    bones of a limb are its upper and its lower part. Up is the direction from the feet to the joint where the legs
    meet. Forward is the direction of the toes, else the forward axis of the file, else +z.
    """
    rest = np.array(skeleton.rest_pose().positions)
    pairs = _pairs(skeleton)
    if len(pairs) < 2:
        return {}
    found: dict[str, int] = {}
    (legs, hips), (arms, chest) = pairs[0], pairs[1]
    leg_lines = [_longest_line(skeleton, row) for row in legs]
    arm_lines = [_longest_line(skeleton, row) for row in arms]
    if min(len(line) for line in leg_lines + arm_lines) < 3:
        return {}
    parts = [_two_longest(skeleton, line) for line in leg_lines + arm_lines]
    feet = np.mean([rest[part[2]] for part in parts[:2]], axis=0)
    up = _unit(rest[hips] - feet)
    toes = [part[3] for part in parts[:2] if part[3] is not None]
    ahead = np.mean([rest[toe] for toe in toes], axis=0) - feet if toes else axis_vector(skeleton.forward or "z")
    left = np.cross(up, _unit(ahead - np.dot(ahead, up) * up))
    leg, arm = ("upper_leg", "lower_leg", "foot", "toes"), ("upper_arm", "lower_arm", "hand", "")
    for lines, names in ((parts[:2], leg), (parts[2:], arm)):
        first_is_left = float(np.dot(rest[lines[0][0]] - rest[lines[1][0]], left)) > 0.0
        for part, side in zip(lines, ("left", "right") if first_is_left else ("right", "left"), strict=True):
            for row, name in zip(part, names, strict=True):
                if row is not None and name:
                    found[f"{side}_{name}"] = row
    rest_of = [row for row in skeleton.children[chest] if row not in arms]
    if rest_of:
        top = max((_longest_line(skeleton, row)[-1] for row in rest_of), key=lambda row: float(np.dot(rest[row], up)))
        above = skeleton.parents[top]
        found["head"] = above if above != chest else top
    return found


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
    """Return the pairs of equal branches of the trunk with the joint where they meet, from the root outwards."""
    out: list[tuple[tuple[int, int], int]] = []
    limbs: set[int] = set()
    for row in range(len(skeleton)):
        above = row
        while above >= 0 and above not in limbs:
            above = skeleton.parents[above]
        if above >= 0:
            continue
        sizes = {
            child: [float(skeleton.lengths[i]) for i in _longest_line(skeleton, child)[1:]]
            for child in skeleton.children[row]
        }
        children = [child for child in sizes if len(sizes[child]) >= 2]
        for n, a in enumerate(children):
            for b in children[n + 1 :]:
                if len(sizes[a]) == len(sizes[b]) and np.allclose(sizes[a], sizes[b], rtol=_ALIKE, atol=1e-9):
                    out.append(((a, b), row))
                    limbs |= {a, b}
    return out


def _two_longest(skeleton: Skeleton, line: list[int]) -> tuple[int, int, int, int | None]:
    """Return the three joints of the two longest neighbouring bones of a limb, and the joint after them."""
    lengths = [float(skeleton.lengths[row]) for row in line]
    first = max(range(len(line) - 2), key=lambda i: lengths[i + 1] + lengths[i + 2])
    return line[first], line[first + 1], line[first + 2], line[first + 3] if first + 3 < len(line) else None
