"""Which pairs of links of a body can collide: neighbours, and links that touch anyway, are left out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import check_kind
from synovia.errors import InputError
from synovia.kernels import layout
from synovia.model.geometry import Array
from synovia.model.joint import Kind
from synovia.model.pose import random_values, world_frames
from synovia.model.shapes.body import BodyShapes, Ints, packed_shapes
from synovia.model.skeleton import Skeleton
from synovia.model.tree import ancestors

Key = str | int  # of a link, as in ``Skeleton.shapes``
LinkPair = tuple[Key, Key]

RIGID: Final = "no joint between them"
NEIGHBOURS: Final = "neighbours"
EXCLUDED: Final = "excluded by the file"
AT_REST: Final = "touch in the rest pose"
ALWAYS: Final = "touch nearly always"
REASONS: Final = (RIGID, NEIGHBOURS, EXCLUDED, AT_REST, ALWAYS)

SAMPLES: Final = 2000  # random poses; a share of 95 % is then known to 0.5 %
NEARLY: Final = 0.95  # share of the poses
MOST_LINKS: Final = 1000  # with shapes: half a million pairs
_WORK: Final = 200_000_000  # pairs times poses; above it, fewer poses are tried
_FEWEST: Final = 200
_AT_ONCE: Final = 50_000  # frames of joints that are in memory
_KEPT: Final = 32  # bodies whose pairs are kept after the skeleton is gone


@dataclass(frozen=True, slots=True)
class SelfPairs:
    """Which pairs of links of a body can collide. Links are named as in ``Skeleton.shapes``.

    Args:
        pairs: The pairs that count, in the order of the joints.
        left_out: The reason for each pair that does not count: ``"no joint between them"``, ``"neighbours"``,
            ``"excluded by the file"``, ``"touch in the rest pose"`` or ``"touch nearly always"``; the first that
            applies.
        touching: Share of random poses in which the links of each pair touch, from 0 to 1. Pairs without a joint
            between them have none.
        samples: How many random poses were tried.
        rows: Rows of the joints that carry both links of each pair that counts, (n, 2), read-only.

    Example:
        >>> import synovia as sy
        >>> found = sy.self_pairs(sy.bundled("arm7"))
        >>> isinstance(found, sy.SelfPairs), found.left_out[("base", "joint1")]
        (True, 'neighbours')
    """

    pairs: tuple[LinkPair, ...]
    left_out: Mapping[LinkPair, str]
    touching: Mapping[LinkPair, float]
    samples: int
    rows: Ints


class _Found(NamedTuple):
    """What was found for the pairs of a body; pairs are in the order of the links.

    Args:
        reasons: Number of the reason in ``REASONS`` for each pair, -1 for a pair that counts.
        counts: In how many poses the links touch, -1 without a joint between them.
        samples: How many poses were tried.
    """

    reasons: NDArray[np.int64]
    counts: NDArray[np.int64]
    samples: int


_known: WeakKeyDictionary[Skeleton, SelfPairs] = WeakKeyDictionary()
_found: OrderedDict[Hashable, _Found] = OrderedDict()  # by what decides; the last used ones come last


def self_pairs(skeleton: Skeleton) -> SelfPairs:
    """Return which pairs of links of a body can collide. They are found once for each body.

    A pair of links with shapes is left out, for the first of these reasons that applies:

    - there is no joint between the links that can move, so nothing moves them apart;
    - they are neighbours: only one link is above the joint and the other one below it. Links without shapes between
      them do not count, so several joints of one shoulder or hip count as one;
    - the file excludes the pair (``Skeleton.excluded_pairs``);
    - they touch in the rest pose;
    - they touch in at least 95 % of 2,000 random poses, which are uniform within the limits.

    Shapes that contain a body are a little larger than it. The shapes of close links, such as a shoulder and a chest,
    then touch at rest, and their pair is left out although the links themselves may be apart. Hands in the lap at rest
    are left out, too. ``touching`` tells how often each pair touches: a pair that touches at rest but in few random
    poses is worth a look.

    Args:
        skeleton: The body.

    Raises:
        InputError: If more than 1,000 links have shapes.
        SynoviaError: If the mesh of a shape cannot be read.

    Example:
        >>> import synovia as sy
        >>> found = sy.self_pairs(sy.bundled("humanoid"))
        >>> ("left_hand", "head") in found.pairs or ("head", "left_hand") in found.pairs
        True
    """
    check_kind("skeleton", skeleton, Skeleton, "such as sy.bundled('humanoid')")
    known = _known.get(skeleton)
    if known is None:
        known = _known[skeleton] = _self_pairs(skeleton)
    return known


def _self_pairs(skeleton: Skeleton) -> SelfPairs:
    """Find the pairs of a body."""
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
    counting = found.reasons < 0
    rows = np.array(links, np.int32)[pairs[counting]].reshape(-1, 2)
    rows.setflags(write=False)
    return SelfPairs(
        tuple(pair for pair, counts in zip(named, counting.tolist(), strict=True) if counts),
        MappingProxyType({p: REASONS[k] for p, k in zip(named, found.reasons.tolist(), strict=True) if k >= 0}),
        MappingProxyType({p: n / found.samples for p, n in zip(named, found.counts.tolist(), strict=True) if n >= 0}),
        found.samples,
        rows,
    )


def _find_once(skeleton: Skeleton, links: list[int], pairs: Ints) -> _Found:
    """Find the pairs, unless they are known from a skeleton that differs in what does not matter, such as its root."""
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
    """Return a joint that carries all links with shapes, so that neither it nor those above it matter; -1 for none.

    Mimic joints below it follow joints below it.
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
    """Return the joints below a joint; all joints for -1."""
    if base < 0:
        return {*range(len(skeleton))}
    inside: set[int] = set()
    for row in range(base + 1, len(skeleton)):
        if skeleton.parents[row] == base or skeleton.parents[row] in inside:
            inside.add(row)
    return inside


def _key(skeleton: Skeleton, links: list[int], base: int) -> Hashable:
    """Return all that decides which pairs count."""
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
    shapes = tuple((place[row], skeleton.joints[row].shapes) for row in links)
    excluded = tuple((place.get(a), place.get(b)) for a, b in sorted(_excluded(skeleton)))
    return joints, limits, shapes, excluded


def _excluded(skeleton: Skeleton) -> set[tuple[int, int]]:
    """Return the rows of the pairs that the file excludes, the first one first."""
    rows = ((skeleton.index(a), skeleton.index(b)) for a, b in skeleton.excluded_pairs)
    return {(min(pair), max(pair)) for pair in rows}


def _find(skeleton: Skeleton, links: list[int], pairs: Ints, base: int) -> _Found:
    """Find for each pair of links why it is left out, if it is, and how often the links touch."""
    group, above = _relations(skeleton, base)
    excluded = _excluded(skeleton)
    reasons = np.full(len(pairs), -1)
    for k, (a, b) in enumerate(pairs.tolist()):
        first, second = links[a], links[b]
        if group[first] == group[second]:
            reasons[k] = REASONS.index(RIGID)
        elif above[second] == first:
            reasons[k] = REASONS.index(NEIGHBOURS)
        elif (first, second) in excluded:
            reasons[k] = REASONS.index(EXCLUDED)
    counts = np.full(len(pairs), -1)
    moving = np.flatnonzero(reasons != REASONS.index(RIGID))
    samples = min(max(_WORK // max(len(moving), 1), _FEWEST), SAMPLES)
    if not len(moving):
        return _Found(reasons, counts, samples)
    body = packed_shapes(skeleton)
    rest = _touches(skeleton, body, pairs[moving], skeleton.rest_q[None])
    q = random_values(skeleton, samples, 0, rows=_below(skeleton, base))
    counts[moving] = _touches(skeleton, body, pairs[moving], q)
    open_ = reasons[moving] < 0
    reasons[moving[open_ & (rest > 0)]] = REASONS.index(AT_REST)
    reasons[moving[open_ & (rest == 0) & (counts[moving] >= NEARLY * samples)]] = REASONS.index(ALWAYS)
    return _Found(reasons, counts, samples)


def _relations(skeleton: Skeleton, base: int) -> tuple[list[int], list[int]]:
    """Return the rigid part of each joint, and the next link with shapes above it, -1 for none.

    All joints that cannot move against the base are one part, -1.
    """
    group: list[int] = []
    above: list[int] = []
    for row, (joint, parent) in enumerate(zip(skeleton.joints, skeleton.parents, strict=True)):
        moves = joint.kind is not Kind.FIXED and row > base
        if moves and joint.kind in (Kind.HINGE, Kind.SLIDE):
            low, high = skeleton.value_range(row)
            moves = low < high
        group.append(row if moves else group[parent] if parent >= 0 else -1)
        if parent < 0:
            above.append(-1)
        else:
            above.append(parent if skeleton.joints[parent].shapes else above[parent])
    return group, above


def _touches(skeleton: Skeleton, body: BodyShapes, pairs: Ints, q: Array) -> NDArray[np.int64]:
    """Return in how many poses the links of each pair touch."""
    from synovia.kernels.collision.touching import touching

    tables = [table.copy() for table in (*body.packed, body.links, body.covers)]
    counts = np.zeros(len(pairs), np.int64)
    scratch = (
        body.packed.shapes.copy(),
        np.empty((len(body.owners), 3)),
        np.empty((len(body.links), 3)),
        np.empty((layout.MOST_CORNERS, layout.CORNER_WIDTH)),
    )
    step = max(_AT_ONCE // len(skeleton), 1)
    for at in range(0, len(q), step):
        frames = world_frames(skeleton, q[at : at + step])
        touching(*tables, frames, np.ascontiguousarray(pairs), counts, *scratch)
    return counts
