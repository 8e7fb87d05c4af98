"""Find the pairs of links of a body that can collide. Neighbours and links that nearly always touch are left out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import check_kind
from synovia.errors import InputError
from synovia.model.address import body_of
from synovia.model.geometry import Array
from synovia.model.joint import Kind
from synovia.model.pose import random_values, world_frames
from synovia.model.shapes.body import BodyShapes, Ints, packed_shapes
from synovia.model.shapes.over_time import touches
from synovia.model.skeleton import Skeleton
from synovia.model.tree import ancestors
from synovia.text import Report, counted, first_few

Key = str | int  # key of a link, as in ``Skeleton.shapes``
LinkPair = tuple[Key, Key]

RIGID: Final = "no joint between them"
NEIGHBOURS: Final = "neighbours"
EXCLUDED: Final = "excluded by the file"
AT_REST: Final = "touch in the rest pose"
ALWAYS: Final = "touch nearly always"
REASONS: Final = (RIGID, NEIGHBOURS, EXCLUDED, AT_REST, ALWAYS)

SAMPLES: Final = 2000  # number of random poses; it determines a share of 95 % to within 0.5 %
NEARLY: Final = 0.95  # share of the random poses: links that touch in at least this share touch "nearly always"
MOST_LINKS: Final = 1000  # largest number of links with shapes; they have half a million pairs
RARE: Final = 0.1  # share of the random poses: pairs that touch at rest, but in fewer random poses, are reported
FAR_APART: Final = 0.25  # fraction of the longest chain: two links are distant if the bones between them are longer
# largest number of distant pairs that touch in a possible rest pose; with more, the rest pose is impossible
MOST_ODD: Final = 5
_WORK: Final = 200_000_000  # largest number of pairs times poses; bounds the number of poses
_FEWEST: Final = 200
_AT_ONCE: Final = 50_000  # largest number of joint frames that are in memory at once
_KEPT: Final = 32  # number of bodies whose pairs stay cached when the skeleton is deleted


@dataclass(frozen=True, slots=True)
class SelfPairs:
    """The pairs of links of a body that can collide. Links are named as in ``Skeleton.shapes``.

    Args:
        pairs: The pairs that can collide, in the order of the joints.
        left_out: The reason for each excluded pair: ``"no joint between them"``, ``"neighbours"``,
            ``"excluded by the file"``, ``"touch in the rest pose"`` or ``"touch nearly always"``; the first that
            applies.
        touching: Share of random poses in which the links of each pair touch, from 0 to 1. Pairs without a joint
            between them have none.
        samples: Number of random poses.
        rows: Joint rows of both links of each pair in ``pairs``, (n, 2), read-only.
        notes: Sentences about pairs that are excluded although they rarely touch.

    Example:
        >>> import synovia as sy
        >>> found = sy.shapes.self_pairs(sy.bundled("arm7"))
        >>> isinstance(found, sy.shapes.SelfPairs), found.left_out[("base", "joint1")]
        (True, 'neighbours')
    """

    pairs: tuple[LinkPair, ...]
    left_out: Mapping[LinkPair, str]
    touching: Mapping[LinkPair, float]
    samples: int
    rows: Ints
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Make the tables read-only."""
        object.__setattr__(self, "left_out", MappingProxyType(dict(self.left_out)))
        object.__setattr__(self, "touching", MappingProxyType(dict(self.touching)))
        self.rows.setflags(write=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that rebuilds a copy from the values."""
        return SelfPairs, (self.pairs, dict(self.left_out), dict(self.touching), self.samples, self.rows, self.notes)

    def report(self) -> Report:
        """Return a table of the number of pairs of each link, and the excluded pairs by reason."""
        several = counted(len(self.pairs) + len(self.left_out), "pair")
        lines = [
            f"{len(self.pairs)} of {several} of links are checked; % of {self.samples} random poses in which they touch"
        ]
        rows = {
            key: row
            for pair, both in zip(self.pairs, self.rows, strict=True)
            for key, row in zip(pair, both, strict=True)
        }
        most: dict[Key, list[LinkPair]] = {key: [] for key in sorted(rows, key=lambda key: rows[key])}
        for pair in self.pairs:
            for key in pair:
                most[key].append(pair)
        width = max((len(str(key)) for key in most), default=4)
        if most:
            lines.append(f"{'link':{width}}  pairs  most often with")
        for key, own in most.items():
            often = max(own, key=lambda pair: self.touching[pair])
            other = often[0] if often[1] == key else often[1]
            nearest = f"{other}, {_percent(self.touching[often])}" if self.touching[often] else "none"
            lines.append(f"{key!s:{width}}  {len(own):5d}  {nearest}")
        for reason in REASONS:
            pairs = [pair for pair, why in self.left_out.items() if why == reason]
            lines += [f"left out, {reason}: {len(pairs)}"] if pairs else []
            for pair in pairs:
                share = self.touching.get(pair)
                lines.append(f"  {pair[0]} and {pair[1]}" + ("" if share is None else f", {_percent(share)}"))
        return Report([*lines, *self.notes], {
            "samples": self.samples,
            "pairs": [{"links": list(pair), "touching": self.touching[pair]} for pair in self.pairs],
            "left_out": [
                {"links": list(pair), "reason": reason, "touching": self.touching.get(pair)}
                for pair, reason in self.left_out.items()
            ],
            "notes": list(self.notes),
        })  # fmt: skip


def _percent(share: float) -> str:
    """Return a share as text."""
    return f"{100.0 * share:.3g} %"


class _Found(NamedTuple):
    """The result for all pairs of links of a body, in the order of the links.

    Args:
        reasons: Index into ``REASONS`` for each pair; -1 for a pair that can collide.
        counts: Number of poses in which the links touch, -1 without a joint between them.
        samples: Number of random poses.
        odd: Number of pairs that touch at rest, but are included because the rest pose is impossible.
    """

    reasons: NDArray[np.int64]
    counts: NDArray[np.int64]
    samples: int
    odd: int


_known: WeakKeyDictionary[Skeleton, SelfPairs] = WeakKeyDictionary()
# cache of results by ``_key``; the entry that was used last comes last
_found: OrderedDict[Hashable, _Found] = OrderedDict()


def self_pairs(skeleton: Skeleton) -> SelfPairs:
    """Return the pairs of links of a body that can collide, cached for each body.

    A pair of links with shapes is excluded for the first of these reasons that applies:

    - no moving joint is between the links, so they cannot move apart;
    - they are neighbours: a joint connects them, or several joints that are close together, as in a hip or a wrist;
    - the file excludes the pair (``Skeleton.excluded_pairs``);
    - they touch in the rest pose, unless they belong to two bodies of ``sy.combine``;
    - they touch in at least 95 % of 2,000 random poses, which are uniform within the limits.

    Shapes are a little larger than the body inside, so close links such as thighs may touch at rest, as do the fingers
    of a closed gripper, or hands in the lap. These pairs are excluded and may pass through each other; ``notes`` lists
    those that touch in less than 10 % of the random poses.

    Some files have an impossible rest pose, such as all bones in one line. If more than five pairs of distant links
    touch at rest, but in less than 10 % of the random poses, these pairs are included.

    Args:
        skeleton: The body.

    Raises:
        InputError: If more than 1,000 links have shapes.
        SynoviaError: If the mesh of a shape cannot be read.

    Example:
        >>> import synovia as sy
        >>> found = sy.shapes.self_pairs(sy.bundled("arm7"))
        >>> ("base", "hand") in found.pairs
        True
    """
    check_kind("skeleton", skeleton, Skeleton, "such as sy.bundled('humanoid')")
    known = _known.get(skeleton)
    if known is None:
        known = _known[skeleton] = _self_pairs(skeleton)
    return known


def _self_pairs(skeleton: Skeleton) -> SelfPairs:
    """Find the pairs of links of a body that can collide; see ``self_pairs``."""
    links = [row for row, joint in enumerate(skeleton.joints) if joint.shapes]
    if len(links) > MOST_LINKS:
        hint = "remove shapes with sy.with_shapes(skeleton, {link: []})"
        raise InputError(
            "links with shapes", where=skeleton.name, value=len(links), expected=f"at most {MOST_LINKS}", hint=hint
        )
    pairs = np.array([*combinations(range(len(links)), 2)], np.int32).reshape(-1, 2)
    found = _find_once(skeleton, links, pairs)
    keys = [skeleton.link_key(row) for row in links]
    named = [(keys[a], keys[b]) for a, b in pairs.tolist()]
    reasons: list[int] = found.reasons.tolist()
    shares: list[float] = (found.counts / found.samples).tolist()
    return SelfPairs(
        tuple(pair for pair, why in zip(named, reasons, strict=True) if why < 0),
        {pair: REASONS[why] for pair, why in zip(named, reasons, strict=True) if why >= 0},
        {pair: share for pair, share in zip(named, shares, strict=True) if share >= 0.0},
        found.samples,
        np.array(links, np.int32)[pairs[found.reasons < 0]].reshape(-1, 2),
        _notes(named, found),
    )


def _notes(named: list[LinkPair], found: _Found) -> tuple[str, ...]:
    """Return the notes about pairs that may be excluded wrongly."""
    notes: list[str] = []
    rare = [
        f"{a} and {b}"
        for (a, b), reason, count in zip(named, found.reasons.tolist(), found.counts.tolist(), strict=True)
        if reason == REASONS.index(AT_REST) and count < RARE * found.samples
    ]
    if rare:
        notes.append(
            f"{counted(len(rare), 'pair')} left out because of the rest pose: {first_few(rare)}. They touch "
            f"in less than {100 * RARE:.0f} % of random poses."
        )
    if found.odd:
        pairs = counted(found.odd, "pair")
        notes.append(f"The rest pose is ignored for {pairs} of distant links, because too many of them touch in it.")
    return tuple(notes)


def _find_once(skeleton: Skeleton, links: list[int], pairs: Ints) -> _Found:
    """Find the pairs, or return those of a cached skeleton that differs only in irrelevant parts, such as the root."""
    base = _base(skeleton, links)
    key = _key(skeleton, links, base)
    found = _found.pop(key, None)
    if found is None:
        found = _find(skeleton, links, pairs, base)
    _found[key] = found
    while len(_found) > _KEPT:
        _found.popitem(last=False)
    return found


def _base(skeleton: Skeleton, links: list[int]) -> int:
    """Return the row of the last joint that is above all links with shapes; -1 without such a joint.

    The motion of this joint moves all links together. A mimic joint and its leader are both below it, or neither is.
    """
    if not links:
        return -1
    common = set(ancestors(skeleton.parents, links[0]))
    for row in links[1:]:
        common &= set(ancestors(skeleton.parents, row))
    leaders = [
        (row, skeleton.value_index(joint.mimic.leader)) for row, joint in enumerate(skeleton.joints) if joint.mimic
    ]
    base = max(common, default=-1)
    while base >= 0:
        inside = _below(skeleton, base)
        if not any((row in inside) != (leader in inside) for row, leader in leaders):
            break
        base = skeleton.parents[base]
    return base


def _below(skeleton: Skeleton, base: int) -> set[int]:
    """Return the rows of the joints below a joint; all rows for -1."""
    if base < 0:
        return {*range(len(skeleton))}
    inside: set[int] = set()
    for row in range(base + 1, len(skeleton)):
        if skeleton.parents[row] == base or skeleton.parents[row] in inside:
            inside.add(row)
    return inside


def _key(skeleton: Skeleton, links: list[int], base: int) -> Hashable:
    """Return a cache key of everything that determines the pairs."""
    inside = sorted(_below(skeleton, base))
    place = {base: -1, **{row: k for k, row in enumerate(inside)}}
    t = skeleton.tables
    joints = tuple(
        (
            place[skeleton.parents[row]],
            joint.kind,
            joint.rest.tobytes(),
            joint.axis.tobytes(),
            None if joint.mimic is None else (place[skeleton.value_index(joint.mimic.leader)], joint.mimic),
        )
        for row, joint in ((row, skeleton.joints[row]) for row in inside)
    )
    limits = t.limits[np.isin(t.owner, inside)].tobytes()
    shapes = tuple((place[row], body_of(skeleton.joint_names[row]), skeleton.joints[row].shapes) for row in links)
    excluded = tuple((place.get(a), place.get(b)) for a, b in sorted(_excluded(skeleton)))
    return joints, limits, shapes, excluded


def _excluded(skeleton: Skeleton) -> set[tuple[int, int]]:
    """Return the rows of the pairs that the file excludes, the smaller row first."""
    rows = ((skeleton.index(a), skeleton.index(b)) for a, b in skeleton.excluded_pairs)
    return {(min(pair), max(pair)) for pair in rows}


def _find(skeleton: Skeleton, links: list[int], pairs: Ints, base: int) -> _Found:
    """Find the reason for which each pair of links is excluded, if any, and in how many poses its links touch."""
    excluded = _excluded(skeleton)
    tree = _Tree(skeleton, base)
    body = packed_shapes(skeleton)
    sizes = dict(zip(links, body.covers[:, 3].tolist(), strict=True))
    ends = [(links[int(a)], links[int(b)]) for a, b in pairs]
    reasons = np.full(len(pairs), -1)
    for k, (first, second) in enumerate(ends):
        if tree.part[first] == tree.part[second]:
            reasons[k] = REASONS.index(RIGID)
        elif tree.above[second] == first and tree.spread[second] <= min(sizes[first], sizes[second]):
            reasons[k] = REASONS.index(NEIGHBOURS)
        elif (first, second) in excluded:
            reasons[k] = REASONS.index(EXCLUDED)
    counts = np.full(len(pairs), -1)
    moving = np.flatnonzero(reasons != REASONS.index(RIGID))
    samples = min(max(_WORK // max(len(moving), 1), _FEWEST), SAMPLES)
    if not len(moving):
        return _Found(reasons, counts, samples, 0)
    rest = np.zeros(len(pairs), np.bool_)
    rest[moving] = _touches(skeleton, body, pairs[moving], skeleton.rest_q[None]) > 0
    q = random_values(skeleton, samples, 0, rows=_below(skeleton, base))
    counts[moving] = _touches(skeleton, body, pairs[moving], q)
    rest &= (reasons < 0) & ~np.array([_of_two_bodies(skeleton, first, second) for first, second in ends])
    always = (reasons < 0) & ~rest & (counts >= NEARLY * samples)
    rare = np.flatnonzero(rest & (counts < RARE * samples))
    odd = [int(k) for k in rare if tree.distance(*ends[int(k)]) > FAR_APART * tree.size]
    if len(odd) > MOST_ODD:
        rest[odd] = False
    else:
        odd = []
    reasons[rest] = REASONS.index(AT_REST)
    reasons[always] = REASONS.index(ALWAYS)
    return _Found(reasons, counts, samples, len(odd))


def _of_two_bodies(skeleton: Skeleton, first: int, second: int) -> bool:
    """Return whether two joints belong to different bodies of a combined skeleton."""
    bodies = {body_of(skeleton.joint_names[row]) for row in (first, second)}
    return len(bodies) > 1 and None not in bodies


class _Tree:
    """Relations between the joints of a body.

    Args:
        skeleton: The body.
        base: The joint that is treated as fixed, with all joints above; -1 for none.

    Attributes:
        part: For each joint, the first joint of its rigid part; -1 for joints that cannot move.
        above: For each joint, its nearest ancestor with shapes; -1 for none.
        spread: For each joint, length of the bones between the first and the last moving joint below ``above``.
        size: Length of the longest chain below the base.
    """

    def __init__(self, skeleton: Skeleton, base: int) -> None:
        """Compute the attributes, from the root to the tips."""
        self._parents = skeleton.parents
        self.part: list[int] = []
        self.above: list[int] = []
        self.spread: list[float] = []
        self._depths: list[float] = []  # length of the bones from the root to each joint
        firsts: list[float] = []  # depth of the first moving joint below the nearest ancestor with shapes, by row
        lasts: list[float] = []  # depth of the last moving joint below this ancestor, by row
        for row, (joint, parent) in enumerate(zip(skeleton.joints, skeleton.parents, strict=True)):
            moves = joint.kind is not Kind.FIXED and row > base
            if moves and joint.kind in (Kind.HINGE, Kind.SLIDE):
                low, high = skeleton.value_range(row)
                moves = low < high
            depth = 0.0 if parent < 0 else self._depths[parent] + float(skeleton.lengths[row])
            carried = parent >= 0 and bool(skeleton.joints[parent].shapes)
            first, last = (np.inf, np.inf) if parent < 0 or carried else (firsts[parent], lasts[parent])
            if moves:
                first, last = min(first, depth), depth
            self.part.append(row if moves else self.part[parent] if parent >= 0 else -1)
            self.above.append(parent if carried else -1 if parent < 0 else self.above[parent])
            self.spread.append(last - first if first < np.inf else 0.0)
            self._depths.append(depth)
            firsts.append(first)
            lasts.append(last)
        self.size = max(self._depths) - (self._depths[base] if base >= 0 else 0.0)

    def distance(self, a: int, b: int) -> float:
        """Return the length of the bones between two joints; infinite between two trees."""
        over = set(ancestors(self._parents, a)) & set(ancestors(self._parents, b))
        if not over:
            return np.inf
        return self._depths[a] + self._depths[b] - 2.0 * self._depths[max(over)]


def _touches(skeleton: Skeleton, body: BodyShapes, pairs: Ints, q: Array) -> NDArray[np.int64]:
    """Return the number of poses in q in which the links of each pair touch."""
    step = max(_AT_ONCE // len(skeleton), 1)
    parts = (world_frames(skeleton, q[at : at + step]) for at in range(0, len(q), step))
    return sum((touches(body, pairs, part)[0].astype(np.int64) for part in parts), np.zeros(len(pairs), np.int64))
