"""Recognise limbs by the shape of a skeleton: two pairs of mirror images, long legs and shorter arms."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np

from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, axis_vector, unit
from synovia.model.limits import Interval
from synovia.model.names import SIDES
from synovia.model.roles import Found, recognize
from synovia.model.tree import ancestors

_ALIKE = 0.15  # relative difference of bone lengths between the two sides of a body
_SHORT = 0.03  # difference of lengths that does not count, as a part of the limb
_LIMB = 0.4  # a shorter pair of branches, as a part of the longest, is no limb: eyes, ears, toes
_LONG = 0.6  # a bone of a limb has at least this part of the length of its longest
_WRIST = 0.45  # hinges of one wrist, ankle or elbow are nearer than this part of the bone before or after
_ACROSS = 0.8  # cosine of the angle between a hinge that bends a limb and its bones, at most
_NEAR_WRIST, _FAR_WRIST = 0.3, 1.4  # distance of a wrist from the elbow, as a part of the upper part's length
_POINT = 0.01  # joints that are nearer are at one point, as a part of the size
_TWIN = 0.3  # two people cannot have their hips nearer to each other than this part of a thigh
_LEGS = ("left_upper_leg", "left_lower_leg", "right_upper_leg", "right_lower_leg")
_UPPER = ("head", "neck", "left_upper_arm", "right_upper_arm", "left_hand", "right_hand")
_MOVES = (Kind.HINGE, Kind.BALL, Kind.FREE)


def find_roles(skeleton: Skeleton) -> dict[str, int]:
    """Return the row of each part by role: as ``Skeleton.roles``, or by shape if no name indicates legs.

    Where a person has several rigs, such as bones of control beside bones of the skin, the parts are those of the rig
    with most bones of the skin.
    """
    found = _named_parts(skeleton)
    if not all(f"{side}_upper_leg" in found for side in SIDES):
        found = recognize(skeleton, lambda: limbs_by_shape(skeleton))
    hips = _hips_of_rigs(skeleton, found)
    if len(hips) < 2:
        return {role: rows[0] for role, rows in found.items()}
    below = [{row for row in _below(skeleton, top) if not _nested(skeleton, row, top, hips)} for top in hips]
    best = max(below, key=lambda rows: sum(skeleton.joints[row].bind is not None for row in rows))
    every = {row for rows in below for row in rows}
    out: dict[str, int] = {}
    for role, rows in found.items():
        row = next((row for row in rows if row in best), None)
        row = next((row for row in rows if row not in every), None) if row is None else row
        if row is not None:
            out[role] = row
    return out


@lru_cache(maxsize=32)
def _named_parts(skeleton: Skeleton) -> Found:
    """Return the rows of the parts that names identify, by role; kept, because several questions begin with them."""
    return recognize(skeleton)


def several_people(skeleton: Skeleton) -> list[int]:
    """Return the joint at which each person of a scene begins; one or none if there are not several.

    People have hips, both legs, and arms or a head each. Two rigs are those of one person if one is inside the other,
    or if they are in one tree and lie upon each other at rest, unless their names begin with different namespaces.
    """
    found = _named_parts(skeleton)
    hips = _hips_of_rigs(skeleton, found)
    rest = np.array(skeleton.rest_pose().positions)
    people: list[int] = []
    for row in hips:
        own = set(_below(skeleton, row))
        if not any(at in own for role in _UPPER for at in found.get(role, ())):
            continue  # a pair of legs alone
        if all(_are_apart(skeleton, rest, found, row, other) for other in people):
            people.append(row)
    return people


def _hips_of_rigs(skeleton: Skeleton, found: Found) -> list[int]:
    """Return the hips that have legs of their own below them."""
    out: list[int] = []
    for row in found.get("hips", ()):
        own = set(_below(skeleton, row))
        if all(any(at in own for at in found.get(role, ())) for role in _LEGS):
            out.append(row)
    return out


def _nested(skeleton: Skeleton, row: int, top: int, hips: list[int]) -> bool:
    """Return whether a joint belongs to hips that are themselves below ``top``."""
    line = ancestors(skeleton.parents, row)
    return any(other in line[: line.index(top)] for other in hips)


def _are_apart(skeleton: Skeleton, rest: Array, found: Found, row: int, other: int) -> bool:
    """Return whether two hips are those of two people."""
    lines = [ancestors(skeleton.parents, at) for at in (row, other)]
    if row in lines[1] or other in lines[0]:
        return False
    if lines[0][-1] != lines[1][-1]:
        return True
    spaces = [skeleton.joint_names[at].rpartition(":")[0] for at in (row, other)]
    if all(spaces) and spaces[0] != spaces[1]:
        return True
    own = set(_below(skeleton, row))
    upper, lower = (next(at for at in found[role] if at in own) for role in _LEGS[:2])
    thigh = float(np.linalg.norm(rest[lower] - rest[upper]))
    return float(np.linalg.norm(rest[row] - rest[other])) > _TWIN * thigh


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
    up = unit(rest[hips] - feet)
    toes = [part[3] for part in parts[:2] if len(part) > 3]
    ahead = np.mean([rest[toe] for toe in toes], axis=0) - feet if toes else np.zeros(3)
    ahead = ahead - np.dot(ahead, up) * up
    ahead = ahead / max(float(np.linalg.norm(rest[hips] - feet)), 1e-300)
    if np.linalg.norm(ahead) < _SHORT:
        ahead = _knees_ahead(skeleton, parts[:2])
        ahead = ahead - np.dot(ahead, up) * up
    if np.linalg.norm(ahead) < _SHORT:
        ahead = _forward(skeleton, up)
    left = np.cross(up, unit(ahead - np.dot(ahead, up) * up))
    across = rest[legs[0]] - rest[legs[1]] + rest[parts[0][0]] - rest[parts[1][0]]
    if abs(np.dot(across, left)) < 0.5 * np.linalg.norm(across):  # the guess is along the line between the legs
        left = unit(across - np.dot(across, up) * up)
    leg, arm = ("upper_leg", "lower_leg", "foot", "toes"), ("upper_arm", "lower_arm", "hand")
    for lines, names in ((parts[:2], leg), (parts[2:], arm)):
        across = float(np.dot(rest[lines[0][0]] - rest[lines[1][0]], left))
        if abs(across) < _SHORT * skeleton.size:
            across = float(np.dot(rest[lines[0][2]] - rest[lines[1][2]], left))
        for part, side in zip(lines, ("left", "right") if across > 0.0 else ("right", "left"), strict=True):
            found.update({f"{side}_{name}": row for row, name in zip(part, names, strict=False)})
    for side in SIDES:
        found.update(_collar(skeleton, rest, chest, found[f"{side}_upper_arm"], side))
    found.update(_head(skeleton, chest, {*arms, *legs}))
    return found


def _collar(skeleton: Skeleton, rest: Array, chest: int, arm: int, side: str) -> dict[str, int]:
    """Return the collar bone of a body of balls: the joint between the chest and the upper arm, if it has a length."""
    if skeleton.joints[arm].kind is Kind.HINGE:
        return {}
    line = ancestors(skeleton.parents, arm)[1:]
    between = line[: line.index(chest)]
    apart = [row for row in between if np.linalg.norm(rest[row] - rest[arm]) > _POINT * skeleton.size]
    moving = [row for row in apart if skeleton.joints[row].kind in _MOVES]
    return {f"{side}_shoulder": moving[0]} if moving else {}


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
                out -= np.sign(bend) * unit(np.cross(axis, frames[foot, 9:] - frames[knee, 9:]))
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
    holds_limbs = {above for row in limbs for above in ancestors(skeleton.parents, row)}
    lines = [_longest_line(skeleton, row) for row in skeleton.children[chest] if row not in holds_limbs]
    lines = [[row for row in line if skeleton.joints[row].kind in _MOVES] for line in lines]
    lines = [line for line in lines if line]
    if not lines:
        return {}
    best = max(lines, key=lambda line: sum(float(skeleton.lengths[row]) for row in line))
    ends = _pairs_below(skeleton, best)
    head = ends if ends is not None else best[-1]
    return {"head": head} if head == best[0] else {"neck": best[0], "head": head}


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


def _longest_line(skeleton: Skeleton, row: int) -> list[int]:
    """Return the longest path outwards from a joint, by length."""
    line, far = [row], _longest_ways(skeleton)
    while children := skeleton.children[line[-1]]:
        line.append(max(children, key=far.__getitem__))
    return line


@lru_cache(maxsize=32)
def _longest_ways(skeleton: Skeleton) -> list[float]:
    """Return the length of the longest path from the parent of each joint through it, (n,)."""
    far: list[float] = skeleton.lengths.tolist()
    for row in reversed(range(len(far))):
        far[row] += max((far[child] for child in skeleton.children[row]), default=0.0)
    return far


def _pairs(skeleton: Skeleton) -> list[tuple[tuple[int, int], int]]:
    """Return the pairs of equal branches with the joint where they meet, the longest first; no pair is in another."""
    out: list[tuple[float, tuple[int, int], int]] = []
    limbs: set[int] = set()
    for row in range(len(skeleton)):
        if len(skeleton.children[row]) < 2 or not limbs.isdisjoint(ancestors(skeleton.parents, row)):
            continue
        sizes = {
            child: np.array([float(skeleton.lengths[i]) for i in _longest_line(skeleton, child)[1:]])
            for child in skeleton.children[row]
        }
        children = [child for child in sizes if np.count_nonzero(sizes[child]) >= 2]
        for a, b in combinations(children, 2):
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
    last one has the part, because it carries the bone; see ``_parts_of_hinges`` for limbs of hinges alone.
    """
    line = _longest_line(skeleton, top)
    hinged = _parts_of_hinges(skeleton, line)
    if hinged:
        return hinged
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
    while upper > 0 and skeleton.joints[line[upper]].kind not in _MOVES:  # a sensor in a bone
        upper -= 1
    while lower > upper + 1 and skeleton.joints[line[lower]].kind not in _MOVES:
        lower -= 1
    return [line[upper], line[lower], *line[end : end + 2]] if upper < lower else []


def _parts_of_hinges(skeleton: Skeleton, line: list[int]) -> list[int]:
    """Return the joints of a robot's limb as ``_parts`` does; empty if other joints move it, or nothing bends it.

    Elbow or knee is the hinge across the limb that leaves the longest way on both its sides. The hinge above it carries
    the upper part. The end is the last hinge before the limb branches into fingers, or the last joint without hinges.
    """
    joints = [skeleton.joints[row] for row in line]
    hinges = [k for k, joint in enumerate(joints) if joint.kind is Kind.HINGE and joint.mimic is None]
    if len(hinges) < 3 or any(joint.kind not in (Kind.HINGE, Kind.FIXED) for joint in joints):
        return []
    moving = {row for row, joint in enumerate(skeleton.joints) if joint.kind in _MOVES}
    moving |= {above for row in moving for above in ancestors(skeleton.parents, row)}
    branch = next((k for k, row in enumerate(line) if len(moving & set(skeleton.children[row])) > 1), len(line))
    hinges = [k for k in hinges if k <= branch]
    frames = np.array(skeleton.rest_pose().frames)[line]
    places, last = frames[:, 9:], hinges[-1]
    beyond = len(line) - 1 if branch == len(line) else branch + 1
    sizes: dict[int, float] = {}
    for k in hinges[1:]:
        ways = places - places[k]
        apart = np.flatnonzero(np.linalg.norm(ways, axis=1) > _POINT * skeleton.size)
        bones = ways[hinges[0]], ways[last if last > k else beyond]
        beside = *ways[apart[apart < k][-1:]], *ways[apart[apart > k][:1]]  # a hinge along these twists its bone
        axis = frames[k, :9].reshape(3, 3) @ joints[k].axis
        if all(abs(axis @ way) < _ACROSS * np.linalg.norm(way) for way in (*bones, *beside)):
            sizes[k] = float(min(np.linalg.norm(bone) for bone in bones))
    longest = max(sizes.values(), default=0.0)
    if longest <= _SHORT * skeleton.size:
        return []
    elbow = next(k for k in sizes if sizes[k] > (1.0 - _SHORT) * longest)
    upper = float(np.linalg.norm(places[elbow] - places[hinges[0]]))
    far = [float(np.linalg.norm(place - places[elbow])) for place in places]
    ends = [k for k in hinges if k > elbow and _NEAR_WRIST * upper <= far[k] <= _FAR_WRIST * upper]
    end = ends[-1] if ends else beyond
    above = hinges[hinges.index(elbow) - 1]
    return [line[above], line[elbow], *line[end : end + 2]] if end > elbow else []


def _is_hinge_of_group(skeleton: Skeleton, line: list[int], at: int, near: float) -> bool:
    """Return whether a joint of a limb and the next one are hinges of one wrist or ankle: near, without branches."""
    hinges = all(skeleton.joints[row].kind is Kind.HINGE for row in line[at : at + 2])
    return hinges and float(skeleton.lengths[line[at + 1]]) < near and len(skeleton.children[line[at]]) == 1
