"""Recognise limbs by the shape of a skeleton: pairs of branches are mirror images, with long legs and shorter arms.

Parts that the file or names identify are evidence. The shape adds the missing parts of their limbs and of the limbs on
the other side, and identifies all other limbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, pairwise
from typing import Final, NamedTuple

import numpy as np

from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, axis_vector, cross, unit
from synovia.model.joint import Kind
from synovia.model.limits import Interval
from synovia.model.tree import BodyTree, ancestors

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "leg": ("upper_leg", "lower_leg", "foot", "toes"), "arm": ("upper_arm", "lower_arm", "hand"),
}  # fmt: skip
_ALIKE: Final = 0.15  # bone lengths on both sides of a body differ by at most this, relatively
_SHORT: Final = 0.03  # fraction of the limb's length: smaller differences of lengths are ignored
_LIMB: Final = 0.4  # fraction of the longest pair of branches: shorter pairs, such as eyes, ears or toes, are not limbs
_STUMP: Final = 0.2  # as ``_LIMB``, for branches of one bone, such as arms that end at the elbow
_LONG: Final = 0.6  # fraction of a limb's longest bone: shorter bones are not upper or lower parts
_HAND: Final = 0.75  # fraction of the forearm: largest length of a hand up to the fingertips
_WRIST: Final = 0.45  # fraction of the adjacent bone: hinges of one wrist, ankle or elbow are at most this far apart
_ACROSS: Final = 0.8  # cosine between a hinge and its bones: a hinge that bends a limb has a smaller one
# fractions of the upper arm's length: range of the distance from elbow to wrist
_NEAR_WRIST, _FAR_WRIST = 0.3, 1.4
_POINT: Final = 0.01  # fraction of the body's size: joints that are nearer coincide
_APART: Final = 0.2  # fraction of a leg: arms and legs begin at least this far apart
# cosine between the line from legs to arms and the sideways direction; it is larger for fingers in a row
_ASKEW: Final = 0.5
_DOWN: Final = 0.7  # cosine between a limb and the vertical; it is larger for standing legs
# cosine between an arm and the direction from legs to shoulders; if smaller, arms hang, or all bones are in line
_HANGING: Final = -0.85
# fraction of a leg's length: ends of limbs on the ground differ in height by at most this
_GROUND: Final = 0.3
_MOST: Final = 60  # largest number of branches of a body at one joint; more branches are separate bodies of a scene
_MOVES: Final = (Kind.HINGE, Kind.BALL, Kind.FREE)


class Limb(NamedTuple):
    """One limb of a pair.

    Args:
        line: Rows of all joints of the limb, from base to tip.
        parts: Rows of the upper part, the lower part, the end, and the joint after the end, as far as these exist.
    """

    line: list[int]
    parts: list[int]


class Pair(NamedTuple):
    """Two limbs that are mirror images.

    Args:
        limbs: The limbs.
        meet: Row of the joint at which both limbs begin.
    """

    limbs: tuple[Limb, Limb]
    meet: int


class Shape:
    """The shape of a skeleton at rest.

    Args:
        tree: The joints of the skeleton.
        frames: World frames of the rest pose, (n, 12).
        forward: Forward axis in the file; None if unknown.
        up: Upward axis in the file; None if unknown.
    """

    def __init__(self, tree: BodyTree, frames: Array, forward: str | None, up: str | None = None) -> None:
        """Store the arguments."""
        self._tree = tree
        self._frames = frames
        self._forward = forward
        self._up = None if up is None else axis_vector(up)
        self._rest: Array = frames[:, 9:]

    def completed(self, known: Mapping[str, int], begins: Mapping[tuple[str, str], int]) -> dict[str, int]:
        """Return rows of limbs and head by role, as far as the shape determines them, together with the known rows.

        Among the pairs of equal branches without known parts, the two pairs with the longest bones are legs and arms.
        Legs point down, or else away from the arms; arms point sideways or hang along the trunk. If the rest pose does
        not show this, legs are the pair that begins higher up in the tree than the arms, or the longer pair. Up is the
        direction from the feet to the joint at which the legs meet. Forward is the first known of: the direction of the
        toes, the direction in which a bent knee points, the forward axis of the file, the usual axis: +z if y is up; if
        z is up, +x for robots and -y for characters.

        Args:
            known: Rows of the known parts.
            begins: Row of the first joint of limbs whose parts have no names, by side and ``"leg"`` or ``"arm"``.
        """
        out = dict(known)
        for side in SIDES:
            for limb in PARTS:
                self._complete(out, side, limb, begins.get((side, limb)))
        named = any(f"{side}_{parts[0]}" in out for side in SIDES for parts in PARTS.values())
        pairs = self._pairs
        votes = [[_vote(limb, out) for limb in pair.limbs] for pair in pairs]
        chosen: dict[str, Pair] = {}
        for pair, vote in zip(pairs, votes, strict=True):
            kinds = {one[1] for one in vote if one is not None}
            if len(kinds) == 1:
                chosen.setdefault(kinds.pop(), pair)
        left: list[Pair] = [pair for pair, vote in zip(pairs, votes, strict=True) if vote == [None, None]]
        left = [pair for pair in left if not self._is_next_to(pair, out) and not _has_other_parts(pair, out)]
        guessed: list[str] = []
        for limb in PARTS:
            whole = all(f"{side}_{PARTS[limb][0]}" in out for side in SIDES)
            if limb not in chosen and not whole and left:
                most = [pair for pair in left if limb == "arm" or min(len(one.parts) for one in pair.limbs) > 2]
                if most:
                    chosen[limb] = most[0]
                    used = _rows(most[0])
                    left = [pair for pair in left if used.isdisjoint(_rows(pair))]
                    guessed.append(limb)
        if len(guessed) == len(PARTS) and self._are_exchanged(*(chosen[limb] for limb in PARTS)):
            chosen = dict(zip(PARTS, (chosen["arm"], chosen["leg"]), strict=True))
        if not named and not self._is_body(chosen):
            return out
        four = None if named else self._up_on_four(chosen)
        if four is not None:  # a body on four legs has its legs behind its arms
            ahead = self._usual_forward(four)
            behind = sorted(chosen.values(), key=lambda pair: float(self._begin(pair) @ ahead))
            chosen = dict(zip(PARTS, behind, strict=True))
        across = self._leftward(out, chosen)
        for limb, pair in chosen.items():
            for side, one in self._sided(pair, out, across).items():
                parts = self._without_collar(one) if limb == "arm" else one.parts
                for k, (name, row) in enumerate(zip(PARTS[limb], parts, strict=False)):
                    ends = named and k > 1 and self._tree.joints[row].kind not in _MOVES
                    if row not in out.values() and not ends:
                        out.setdefault(f"{side}_{name}", row)
        arms = chosen.get("arm")
        if arms is not None:
            for side in SIDES:
                if f"{side}_upper_arm" in out and f"{side}_shoulder" not in out:
                    out |= self._collar(arms.meet, out[f"{side}_upper_arm"], side)
        if arms is not None and "head" not in out:
            firsts = [row for side in SIDES for parts in PARTS.values() if (row := out.get(f"{side}_{parts[0]}"))]
            out |= {role: row for role, row in self._head(arms.meet, {*firsts}).items() if role not in out}
        return out

    def _complete(self, out: dict[str, int], side: str, limb: str, begin: int | None) -> None:
        """Add the missing parts of a limb, some parts or the beginning of which are known, to ``out``."""
        names = [f"{side}_{part}" for part in PARTS[limb]]
        known = {k: out[name] for k, name in enumerate(names) if name in out}
        if (not known and begin is None) or all(k in known for k in range(3)):
            return
        parents = self._tree.parents
        last = known[max(known)] if known else begin
        path = ancestors(parents, 0 if last is None else last)[::-1] + self._longest_line(last or 0)[1:]
        if 0 in known:
            top = known[0]
        elif begin is not None and begin in path:
            top = begin
        else:
            others = {row for role, row in out.items() if role not in names and role != f"{side}_shoulder"}
            held = {above for row in others for above in ancestors(parents, row)}
            top = next((row for row in path if row not in held), path[-1])
        if top not in path:
            return
        line = path[path.index(top) :]
        place = {row: at for at, row in enumerate(line)}
        at = {k: place[row] for k, row in known.items() if row in place}
        found = dict(enumerate(self._parts(line)))
        if 1 not in known and {0, 2} <= known.keys() and not at[0] < place.get(found.get(1, -1), -1) < at[2]:
            found[1] = self._middle(line[at[0] : at[2] + 1])
        taken = set(out.values())
        for k, row in found.items():
            before = max((at[j] for j in at if j < k), default=-1)
            after = min((at[j] for j in at if j > k), default=len(line))
            # a fixed end is a point without a useful orientation
            ends = k > 1 and self._tree.joints[row].kind not in _MOVES
            if k not in at and k < len(names) and row not in taken and before < place[row] < after and not ends:
                out[names[k]], at[k] = row, place[row]

    def _middle(self, line: Sequence[int]) -> int:
        """Return the row of a line's joint with the largest distance to the nearer end of the line."""
        ends = self._rest[line[0]], self._rest[line[-1]]
        return max(line, key=lambda row: min(float(np.linalg.norm(self._rest[row] - end)) for end in ends))

    def _is_next_to(self, pair: Pair, known: Mapping[str, int]) -> bool:
        """Return whether a pair begins inside a known limb; it then consists of fingers, or of bones for cloth."""
        firsts = {known[f"{side}_{parts[0]}"] for side in SIDES for parts in PARTS.values()
                  if f"{side}_{parts[0]}" in known}  # fmt: skip
        return not firsts.isdisjoint(ancestors(self._tree.parents, pair.meet))

    def _begin(self, pair: Pair) -> Array:
        """Return the midpoint of the first joints of two limbs, (3,)."""
        return self._rest[[limb.parts[0] for limb in pair.limbs]].mean(0)

    def _end(self, pair: Pair) -> Array:
        """Return the midpoint of the ends of two limbs, (3,)."""
        return self._rest[[limb.parts[min(2, len(limb.parts) - 1)] for limb in pair.limbs]].mean(0)

    def _are_exchanged(self, legs: Pair, arms: Pair) -> bool:
        """Return whether the rest pose shows that the presumed legs are arms, and vice versa."""
        if min(len(limb.parts) for limb in arms.limbs) < 3:  # legs have feet, so limbs without an end are arms
            return False
        trunk = self._begin(arms) - self._begin(legs)
        far = float(np.linalg.norm(trunk))
        if far < _APART * min(self._bones(legs), self._bones(arms)):
            return False
        trunk = trunk / far
        leg, arm = ((self._end(pair) - self._begin(pair)) / self._bones(pair) for pair in (legs, arms))
        if self._up is not None and abs(height := float(trunk @ self._up)) > _DOWN:
            lower = leg if height > 0.0 else arm
            if float(lower @ self._up) < -_DOWN:
                return height < 0.0
        away = -float(leg @ trunk), float(arm @ trunk)  # cosines: how far each pair points away from the other one
        for k, (one, other) in enumerate((away, away[::-1])):
            if one > _DOWN and _HANGING < other < _DOWN:
                return k == 1
        if away[0] > _DOWN and away[1] < _DOWN:
            return False
        return arms.meet in ancestors(self._tree.parents, legs.meet)[1:]

    def _up_on_four(self, chosen: Mapping[str, Pair]) -> Array | None:
        """Return the upward direction, (3,), of a body whose arms reach down as far as its legs; None for others."""
        if len(chosen) < len(PARTS):
            return None
        legs, arms = ((self._begin(chosen[limb]), self._end(chosen[limb])) for limb in PARTS)
        return up_on_four(legs, arms)

    def _is_body(self, chosen: Mapping[str, Pair]) -> bool:
        """Return whether two pairs can be the legs and arms of one body.

        A body has a trunk between the joints at which its limbs meet. If all limbs begin at the pelvis, as in some
        robots, legs and arms must be on different sides of a plane; fingers in a row are not.
        """
        if len(chosen) < 2:
            return False
        legs, arms = (np.array([self._rest[one.parts[:2]] for one in chosen[limb].limbs]) for limb in PARTS)
        way = arms[:, 0].mean(0) - legs[:, 0].mean(0)
        across = legs[0].sum(0) - legs[1].sum(0)
        far, wide = float(np.linalg.norm(way)), float(np.linalg.norm(across))
        least = _APART * self._bones(chosen["leg"])
        if far > least and abs(float(way @ across)) < _ASKEW * far * wide:
            return True
        lines = [ancestors(self._tree.parents, chosen[limb].meet) for limb in PARTS]
        between = list(set(lines[0]) ^ set(lines[1]))
        return float(self._tree.lengths[between].sum()) > least

    def _leftward(self, known: Mapping[str, int], chosen: Mapping[str, Pair]) -> Array:
        """Return the direction to the left, (3,), from known parts, or else from the legs; 0 without both."""
        for limb in PARTS.values():
            both = [self._rest[known[f"left_{part}"]] - self._rest[known[f"right_{part}"]]
                    for part in limb if all(f"{side}_{part}" in known for side in SIDES)]  # fmt: skip
            if both and float(np.linalg.norm(across := np.sum(both, axis=0))) > _POINT * self._tree.size:
                return unit(across)
        if "leg" not in chosen:
            return np.zeros(3)
        hips, parts = chosen["leg"].meet, [limb.parts for limb in chosen["leg"].limbs]
        feet, four = self._end(chosen["leg"]), self._up_on_four(chosen)
        up = unit(self._rest[hips] - feet) if four is None else four
        toes = [part[3] for part in parts if len(part) > 3]
        ahead: Array = np.mean([self._rest[toe] for toe in toes], axis=0) - feet if toes else np.zeros(3)
        ahead = ahead - np.dot(ahead, up) * up
        ahead = ahead / max(float(np.linalg.norm(self._rest[hips] - feet)), 1e-300)
        if np.linalg.norm(ahead) < _SHORT:
            ahead = self._knees_ahead(parts)
            ahead = ahead - np.dot(ahead, up) * up
        if np.linalg.norm(ahead) < _SHORT or four is not None:  # on four legs, knees may point forward or back
            ahead = self._usual_forward(up)
        left: Array = np.cross(up, unit(ahead - np.dot(ahead, up) * up))
        across = self._rest[parts[0][:2]].sum(0) - self._rest[parts[1][:2]].sum(0)
        # use the line between the legs if it differs from the guessed direction
        if abs(np.dot(across, left)) < 0.5 * np.linalg.norm(across):
            left = unit(across - np.dot(across, up) * up)
        return left

    def _sided(self, pair: Pair, known: Mapping[str, int], left: Array) -> dict[str, Limb]:
        """Return the limbs of a pair by side, determined from known parts, or else from positions."""
        for k, limb in enumerate(pair.limbs):
            vote = _vote(limb, known)
            if vote is not None:
                other = SIDES[1 - SIDES.index(vote[0])]
                return {vote[0]: limb, other: pair.limbs[1 - k]}
        if not left.any():
            return {}
        a, b = (limb.parts for limb in pair.limbs)
        across = float(np.dot(self._rest[a[0]] - self._rest[b[0]], left))
        if abs(across) < _SHORT * self._tree.size:
            end = min(len(a), len(b), 3) - 1
            across = float(np.dot(self._rest[a[end]] - self._rest[b[end]], left))
        return dict(zip(SIDES if across > 0.0 else SIDES[::-1], pair.limbs, strict=True))

    def _without_collar(self, arm: Limb) -> list[int]:
        """Return the parts of an arm; of an arm that ends at the elbow, without a short first bone, a collar bone."""
        sizes = [float(self._tree.lengths[row]) for row in arm.parts[1:]]
        ends = arm.line[-1] == arm.parts[-1] and self._tree.joints[arm.parts[-1]].kind in _MOVES
        return arm.parts[1:] if ends and len(sizes) == 2 and sizes[0] < _LONG * sizes[1] else arm.parts

    def _collar(self, chest: int, arm: int, side: str) -> dict[str, int]:
        """Return the collar bone's row by role: in a body with balls, a moving joint between chest and upper arm."""
        joints = self._tree.joints
        line = ancestors(self._tree.parents, arm)[1:]
        if joints[arm].kind is Kind.HINGE or chest not in line:
            return {}
        least = _POINT * self._tree.size
        between = line[: line.index(chest)]
        apart = [row for row in between if np.linalg.norm(self._rest[row] - self._rest[arm]) > least]
        moving = [row for row in apart if joints[row].kind in _MOVES]
        return {f"{side}_shoulder": moving[0]} if moving else {}

    def _bones(self, pair: Pair) -> float:
        """Return the mean length of two limbs from the beginning of the upper part to the end."""
        ways = [self._rest[b] - self._rest[a] for limb in pair.limbs for a, b in pairwise(limb.parts[:3])]
        return float(np.sum(np.linalg.norm(ways, axis=1))) / 2.0

    def _knees_ahead(self, legs: list[list[int]]) -> Array:
        """Return the mean direction in which knees point when bent, (3,); 0 if joint limits do not show it."""
        out = np.zeros(3)
        for _, knee, foot, *_ in (leg for leg in legs if len(leg) > 2):
            joint = self._tree.joints[knee]
            if joint.kind is Kind.HINGE and isinstance(joint.limit, Interval):
                bend = joint.limit.lower + joint.limit.upper
                if np.isfinite(bend) and bend:
                    axis = self._frames[knee, :9].reshape(3, 3) @ joint.axis
                    out -= np.sign(bend) * unit(cross(axis, self._rest[foot] - self._rest[knee]))
        return out

    def _usual_forward(self, up: Array) -> Array:
        """Return the forward direction (3,) to assume for bodies whose feet do not show it."""
        if self._forward:
            return axis_vector(self._forward)
        if int(np.argmax(np.abs(up))) != 2:
            return axis_vector("z")
        return axis_vector("x" if any(joint.kind is Kind.HINGE for joint in self._tree.joints) else "-y")

    def _head(self, chest: int, limbs: Iterable[int]) -> dict[str, int]:
        """Return neck and head by role, from the longest line of moving joints between the arms."""
        tree = self._tree
        holds_limbs = {above for row in limbs for above in ancestors(tree.parents, row)}
        lines = [self._longest_line(row) for row in tree.children[chest] if row not in holds_limbs]
        lines = [[row for row in line if tree.joints[row].kind in _MOVES] for line in lines]
        lines = [line for line in lines if line]
        if not lines:
            return {}
        best = max(lines, key=lambda line: sum(float(tree.lengths[row]) for row in line))
        if len(best) > 2 and self._is_crown(best[-2], best[-1]):
            best = best[:-1]
        ends = (row for row in best if self._moving_below(row) > 1)
        head = next(ends, best[-1])  # the first joint that carries several moving ones, such as eyes
        return {"head": head} if head == best[0] else {"neck": best[0], "head": head}

    def _moving_below(self, row: int) -> int:
        """Return the number of moving joints directly below a joint, where fixed joints are skipped."""
        children = self._tree.children[row]
        return sum(1 if self._tree.joints[k].kind in _MOVES else self._moving_below(k) for k in children)

    def _is_crown(self, head: int, top: int) -> bool:
        """Return whether a joint is the top of a head: a leaf whose bone is longer than the neck."""
        tree = self._tree
        return (
            tree.joints[top].kind is not Kind.HINGE
            and tree.parents[top] == head
            and not tree.children[top]
            and float(tree.lengths[top]) > float(tree.lengths[head])
        )

    def _longest_line(self, row: int) -> list[int]:
        """Return the rows of the longest path from a joint down to a tip."""
        line = [row]
        while children := self._tree.children[line[-1]]:
            line.append(max(children, key=self._ways.__getitem__))
        return line

    @cached_property
    def _ways(self) -> list[float]:
        """For each joint, length of the longest path from its parent through the joint down to a tip, (n,)."""
        far: list[float] = self._tree.lengths.tolist()
        for row in reversed(range(len(far))):
            far[row] += max((far[child] for child in self._tree.children[row]), default=0.0)
        return far

    @cached_property
    def _pairs(self) -> list[Pair]:
        """Pairs of equal limbs, sorted by the lengths of their bones, longest first; no pair is inside another pair."""
        tree = self._tree
        found: list[tuple[float, int, Pair]] = []
        inside = [False] * len(tree.joints)  # whether each joint is inside a limb that was found
        for row, parent in enumerate(tree.parents):
            inside[row] = inside[row] or (parent >= 0 and inside[parent])
            if inside[row] or not 2 <= len(tree.children[row]) <= _MOST:
                continue
            lines = {child: self._longest_line(child) for child in tree.children[row]}
            sizes = {child: np.array([float(tree.lengths[i]) for i in line]) for child, line in lines.items()}
            children = [child for child in sizes if np.count_nonzero(sizes[child][1:])]
            for a, b in combinations(children, 2):
                if not _are_alike(sizes[a], sizes[b]):
                    continue
                limbs = tuple(Limb(lines[child], self._parts(lines[child])) for child in (a, b))
                least = min(len(limb.parts) for limb in limbs)
                if least > 1:
                    total = float(min(sizes[a][1:].sum(), sizes[b][1:].sum()))
                    found.append((total, least, Pair((limbs[0], limbs[1]), row)))
                    inside[a] = inside[b] = True
        longest = max((total for total, _, _ in found), default=0.0)
        kept = [one for one in found if one[0] >= (_LIMB if one[1] > 2 else _STUMP) * longest]
        kept.sort(key=lambda one: (-min(one[1], 3), -round(self._bones(one[2]) / tree.size, 3), self._skew(one[2])))
        return [pair for _, _, pair in kept]

    def _skew(self, pair: Pair) -> float:
        """Return the cosine between forward and the line across both limbs: 0 if the limbs are side by side."""
        if self._forward is None:
            return 0.0
        across = np.subtract(*self._rest[[limb.parts[0] for limb in pair.limbs]])
        return round(abs(float(across @ axis_vector(self._forward))) / max(float(np.linalg.norm(across)), 1e-300), 1)

    def _parts(self, line: list[int]) -> list[int]:
        """Return the rows of a limb: upper part, lower part, end and, if it exists, the joint after the end.

        The last two long bones are the upper and the lower part; a collar bone comes before them, and a long hand after
        them. In a group of hinges, the last hinge has the role, because it carries the bone; ``_parts_of_hinges``
        describes limbs of hinges. A limb with one bone has no end.
        """
        hinged = self._parts_of_hinges(line)
        if hinged:
            return hinged
        joints, sizes = self._tree.joints, self._tree.lengths
        bones = [row for row in line[1:] if joints[row].kind in _MOVES] if len(line) > 1 else []
        longest = max((float(sizes[row]) for row in bones), default=0.0)
        long = [row for row in bones if float(sizes[row]) >= _LONG * longest]
        hand = len(long) > 2 and not self._tree.children[long[-1]] and sizes[long[-1]] < _HAND * sizes[long[-2]]
        long = long[:-1] if hand else long
        if len(long) < 2:  # without two long bones, bones with fixed ends count too
            lengths = {row: float(sizes[row]) for row in line[1:] if sizes[row] > _POINT * self._tree.size}
            long = sorted(sorted(lengths, key=lambda row: -lengths[row])[:2], key=line.index)
        if len(long) < 2:
            return [line[line.index(long[0]) - 1], long[0]] if long else []
        upper, lower, end = line.index(long[-2]) - 1, line.index(long[-1]) - 1, line.index(long[-1])
        if joints[line[lower]].kind is Kind.HINGE:
            near = _WRIST * float(sizes[long[-1]])
            elbow = lower
            while elbow > 1 and float(sizes[line[elbow]]) < near:
                elbow -= 1
            upper = elbow - 1
            while end + 1 < len(line) and self._is_hinge_of_group(line, end, near):
                end += 1
        while upper > 0 and joints[line[upper]].kind not in _MOVES:  # skip fixed joints within a bone, such as sensors
            upper -= 1
        while lower > upper + 1 and joints[line[lower]].kind not in _MOVES:
            lower -= 1
        return [line[upper], line[lower], *line[end : end + 2]] if upper < lower else []

    @cached_property
    def _moving(self) -> set[int]:
        """Rows of joints that move, or that have moving joints below them."""
        moving = {row for row, joint in enumerate(self._tree.joints) if joint.kind in _MOVES}
        return moving | {above for row in moving for above in ancestors(self._tree.parents, row)}

    def _parts_of_hinges(self, line: list[int]) -> list[int]:
        """Return the parts of a robot's limb, see ``_parts``; empty if it has balls or slides, or no hinge bends it.

        Elbow or knee is the hinge across the limb that is farthest from the nearer end. The hinge above it carries the
        upper part. The end is the last hinge before the limb branches into fingers, or else the last joint.
        """
        size = self._tree.size
        joints = [self._tree.joints[row] for row in line]
        hinges = [k for k, joint in enumerate(joints) if joint.kind is Kind.HINGE and joint.mimic is None]
        if len(hinges) < 3 or any(joint.kind not in (Kind.HINGE, Kind.FIXED) for joint in joints):
            return []
        moving, children = self._moving, self._tree.children
        branch = next((k for k, row in enumerate(line) if len(moving & set(children[row])) > 1), len(line))
        hinges = [k for k in hinges if k <= branch]
        if not hinges:
            return []
        frames = self._frames[line]
        places, last = frames[:, 9:], hinges[-1]
        beyond = len(line) - 1 if branch == len(line) else branch + 1
        sizes: dict[int, float] = {}
        for k in hinges[1:]:
            ways = places - places[k]
            apart = np.flatnonzero(np.linalg.norm(ways, axis=1) > _POINT * size)
            bones = ways[hinges[0]], ways[last if last > k else beyond]
            # a hinge that is parallel to an adjacent bone only twists this bone
            around = *ways[apart[apart < k][-1:]], *ways[apart[apart > k][:1]]
            axis = frames[k, :9].reshape(3, 3) @ joints[k].axis
            if all(abs(axis @ way) < _ACROSS * np.linalg.norm(way) for way in (*bones, *around)):
                sizes[k] = float(min(np.linalg.norm(bone) for bone in bones))
        longest = max(sizes.values(), default=0.0)
        if longest <= _SHORT * size:
            return []
        elbow = next(k for k in sizes if sizes[k] > (1.0 - _SHORT) * longest)
        upper = float(np.linalg.norm(places[elbow] - places[hinges[0]]))
        far = [float(np.linalg.norm(place - places[elbow])) for place in places]
        ends = [k for k in hinges if k > elbow and _NEAR_WRIST * upper <= far[k] <= _FAR_WRIST * upper]
        end = ends[-1] if ends else beyond
        above = hinges[hinges.index(elbow) - 1]
        return [line[above], line[elbow], *line[end : end + 2]] if end > elbow else []

    def _is_hinge_of_group(self, line: list[int], at: int, near: float) -> bool:
        """Return whether a joint of a limb and the next joint are hinges of one wrist or ankle, without branches."""
        tree = self._tree
        hinges = all(tree.joints[row].kind is Kind.HINGE for row in line[at : at + 2])
        return hinges and float(tree.lengths[line[at + 1]]) < near and len(tree.children[line[at]]) == 1


def up_on_four(legs: tuple[Array, Array], arms: tuple[Array, Array], up: Array | None = None) -> Array | None:
    """Return the upward direction, (3,), of a body at rest whose arms reach down as far as its legs; None for others.

    Args:
        legs: Midpoint of the first joints of the legs, and midpoint of their ends, (3,).
        arms: The same midpoints for the arms.
        up: The upward direction, (3,), if it is known; None to derive it from the limbs.
    """
    ways = [begin - end for begin, end in (legs, arms)]
    upwards = unit(ways[0] + ways[1]) if up is None else up
    axis = int(np.argmax(np.abs(upwards)))
    if abs(upwards[axis]) > _DOWN:  # bent legs lean at rest, but bodies stand along an axis of the file
        upwards: Array = np.sign(upwards[axis]) * np.eye(3)[axis]
    trunk = arms[0] - legs[0]
    down = all(float(way @ upwards) > _DOWN * float(np.linalg.norm(way)) for way in ways)
    level = abs(float(trunk @ upwards)) < _DOWN * float(np.linalg.norm(trunk))
    ground = abs(float((arms[1] - legs[1]) @ upwards)) < _GROUND * float(np.linalg.norm(ways[0]))
    return upwards if down and level and ground else None


def _vote(limb: Limb, known: Mapping[str, int]) -> tuple[str, str] | None:
    """Return the side and kind of a limb, if known parts in its line identify them; else None."""
    inside = set(limb.line)
    for side in SIDES:
        for kind, parts in PARTS.items():
            collar = ("shoulder",) if kind == "arm" else ()
            if any(known.get(f"{side}_{part}") in inside for part in (*parts, *collar)):
                return side, kind
    return None


def _rows(pair: Pair) -> set[int]:
    """Return the rows of the joints of both limbs."""
    return {row for limb in pair.limbs for row in limb.line}


def _has_other_parts(pair: Pair, known: Mapping[str, int]) -> bool:
    """Return whether a pair contains parts with roles other than shoulders, so that it is not an unknown pair."""
    return not _rows(pair).isdisjoint(row for role, row in known.items() if not role.endswith("_shoulder"))


def _are_alike(a: Array, b: Array) -> bool:
    """Return whether two branches are mirror images: their bone lengths, from base to tip, are nearly equal.

    One branch may end earlier, such as an arm without a hand; then the first bones must be equal too.
    """
    if len(a) == len(b):
        a, b = a[1:], b[1:]
    else:
        a, b = a[a > 0.0], b[b > 0.0]
    count = min(len(a), len(b))
    total = float(max(a[:count].sum(), b[:count].sum()))
    rest = float(abs(a.sum() - b.sum()))
    whole = len(a) == len(b) or (count > 1 and rest < total)
    return whole and bool(np.allclose(a[:count], b[:count], rtol=_ALIKE, atol=_SHORT * total))
