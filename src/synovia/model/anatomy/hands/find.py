"""Find the hands of a skeleton."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import InputError, UnsupportedError
from synovia.model.anatomy.hands.chains import Chain, Chains
from synovia.model.anatomy.hands.hand import FINGERS, Finger, Hand, Key
from synovia.model.anatomy.hands.landmarks import palm_axes
from synovia.model.anatomy.names import LIMB_WORDS, SIDES, finger_of, read_name, split_name, words_of
from synovia.model.geometry import Array, cross, magnitude, unit
from synovia.model.joint import Kind
from synovia.model.limits.interval import Interval
from synovia.model.skeleton import Skeleton
from synovia.model.tree import ancestors
from synovia.text import listed

_SHORT: Final = {"th": "thumb", "ff": "index", "mf": "middle", "rf": "ring", "lf": "little", "pf": "little"}
_SHORT_NAME: Final = re.compile(  # matches THJ4, ffproximal and rh_LFtip, but not thigh
    r"(?:^|[_:/.])(th|ff|mf|rf|lf|pf)(?=j\d|knuckle|hub|base|meta|prox|mid|inter|dist|tip)", re.IGNORECASE
)
_OTHER_WORDS: Final = {"pinky": "little", "pinkie": "little", "medium": "middle"}
_LEGS: Final = frozenset({"thigh", "femur", "shin", "shank", "calf", "tibia", "foot"})
_CURLED: Final = 1.0  # radians: if fingers are bent more at rest, their directions do not determine the palm
_ALONG: Final = 0.7  # cosine between axes, above which they count as parallel
# fraction of a joint's range by which one side must exceed the other to show the side to which a finger bends
_LOPSIDED: Final = 0.2
_CLEAR: Final = (
    0.75  # the thumb is clear if the cost of the other fingers without it is below this factor of the next lowest cost
)
_LONGER: Final = 1.5  # a gripper's fingers differ in length by at most this factor
# finger lengths: if the wrist is nearer to the knuckles, it does not determine the direction of the palm
_PALM: Final = 0.4
_NEAR: Final = 0.8  # cosine between axes of a palm, above which they agree
_FLAT: Final = 0.1  # smallest component of a direction that determines a side


def hand_of(skeleton: Skeleton, side: str | None = None) -> Hand:
    """Return the hand of a skeleton: its palm, its side, and its fingers.

    A palm is a link at which two or more chains of joints begin. The thumb is the finger without which the other
    fingers are most alike in position and direction; these are then numbered from the thumb's side. Names of fingers
    have priority over shape; a note reports contradictions. Fingers bend to the side to which their joints rotate
    farther. The side of the hand follows from palm, thumb and fingers; for a character, from its roles.
    ``Skeleton.with_roles`` corrects the joints of a finger, for example with ``{"right_thumb_1": "joint_12"}``.

    Args:
        skeleton: A hand, an arm with a hand, or a body with two hands.
        side: ``"left"`` or ``"right"``; required for a body with two hands. For a hand with three or more fingers, it
            is the side if neither names nor shape show the side.

    Raises:
        UnsupportedError: If no hand is found, or several hands match; the message lists them.
        InputError: If an argument cannot be used.

    Example:
        >>> import synovia as sy
        >>> hand = sy.hand_of(sy.bundled("humanoid_hands"), "left")
        >>> [finger.name for finger in hand.fingers]
        ['thumb', 'index', 'middle', 'ring', 'little']
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    if side is not None and side not in SIDES:
        raise InputError("side", value=side, expected="'left', 'right' or None")
    found = hands_of(skeleton, side)
    chosen = [hand for hand in found if side is None or hand.side in (side, None)]
    exact = [hand for hand in chosen if hand.side == side] if side else chosen
    chosen = exact or chosen
    if len(chosen) == 1:
        return chosen[0]
    hands = [f"{hand.side or 'a hand'} at {hand.palm!r} ({len(hand.fingers)} fingers)" for hand in found]
    if not chosen:
        raise UnsupportedError(
            f"no {side + ' ' if side else ''}hand is found",
            where=skeleton.name,
            value=hands or "no link with two or more chains of joints",
            expected="a hand with fingers of joints",
            hint="skeleton.with_roles({'right_hand': ..., 'right_thumb_1': ...}) assigns its joints",
        )
    raise UnsupportedError(
        f"{len(chosen)} hands are found",
        where=skeleton.name,
        value=hands,
        expected="one",
        hint="pass side='left' or 'right'",
    )


def hands_of(skeleton: Skeleton, otherwise: str | None = None) -> list[Hand]:
    """Return all hands of a skeleton; for a body, these are the hands that have roles.

    Args:
        skeleton: The skeleton.
        otherwise: Side of hands whose side is unknown; None to leave it unknown.
    """
    chains = Chains(skeleton)
    roles = skeleton.role_rows
    hands: list[Hand] = []
    for side in SIDES:
        row = roles.get(f"{side}_hand")
        fingers = _of_roles(chains, side)
        inner = chains.palms(row)[:1] if row is not None else []
        if inner and chains.are_hinges(inner[0]) and len(chains.fingers(inner[0])) > len(fingers):
            hands.append(_found(chains, inner[0], side))  # roles name only some of the fingers
        elif len(fingers) > 1:
            palm = row if row is not None else _meeting(skeleton, [rows[0] for rows in fingers.values()])
            whole = {name: chains.whole(rows, palm, fingers.values()) for name, rows in fingers.items()}
            named = [(name, chains.of_rows(rows)) for name, rows in whole.items()]
            hands.append(_hand(chains, palm, (side, None), named, []))
        else:
            hands += [_found(chains, palm, side) for palm in inner]
    if hands:
        return hands
    palms = chains.palms()
    named = [palm for palm in palms if _has_named_fingers(chains, palm)]
    if named or _is_body(skeleton):
        return [_of_palm(chains, palm, otherwise) for palm in named]
    # without a clear thumb, four fingers look like the legs of an animal
    found = [palm for palm in palms if _are_alike(chains, palm)]
    if roles:
        found = [palm for palm in found if _thumb(chains.without_linkages(chains.below(palm))[0])[1]]
    return [_of_palm(chains, palm, otherwise) for palm in found]


def _of_palm(chains: Chains, palm: int, side: str | None) -> Hand:
    """Return the hand at a palm; its side is ``side`` if neither names nor shape determine it."""
    found = _found(chains, palm, None)
    known = found.side is not None or side is None or len(found.fingers) < 3
    return found if known else _found(chains, palm, None, side)


def _is_body(skeleton: Skeleton) -> bool:
    """Return whether a skeleton has a free joint, or joint names of body parts."""
    if any(joint.kind is Kind.FREE for joint in skeleton.joints):
        return True
    if any(_LEGS & words_of(name) for joint in skeleton.joints for name in (joint.name, joint.body or "")):
        return True
    words = LIMB_WORDS - {"hand", "wrist", "palm"}
    read = [read_name(skeleton.joint_names[row]) for row in skeleton.role_rows.values()]
    return any(name is not None and name.word in words for name in read)


def _has_named_fingers(chains: Chains, palm: int) -> bool:
    """Return whether joint names identify a thumb and at least two other fingers at a palm."""
    names = {_name_of(chains, chain) for chain in chains.below(palm)} - {None}
    return "thumb" in names and len(names) > 2


def _are_alike(chains: Chains, palm: int) -> bool:
    """Return whether the chains at a palm may be fingers: more than two chains, or two of similar length."""
    fingers, _ = chains.without_linkages(chains.below(palm))
    lengths = [magnitude(chain.end - chain.base) for chain in fingers]
    return len(fingers) > 2 or max(lengths) <= _LONGER * min(lengths)


def _of_roles(chains: Chains, side: str) -> dict[str, list[int]]:
    """Return the rows of the joints of each finger that has roles, thumb first."""
    roles, found = chains.skeleton.role_rows, dict[str, list[int]]()
    for finger in FINGERS:
        numbers = itertools.takewhile(lambda k, finger=finger: f"{side}_{finger}_{k}" in roles, itertools.count(1))
        rows = [roles[f"{side}_{finger}_{k}"] for k in numbers]
        if rows:
            found[finger] = [row for row in rows if chains.moves[row]] or rows
    return found


def _meeting(skeleton: Skeleton, rows: Sequence[int]) -> int:
    """Return the last common ancestor of rows that is above all of them."""
    lines = [ancestors(skeleton.parents, row)[1:] for row in rows]
    return next(row for row in lines[0] if all(row in line for line in lines))


def _found(chains: Chains, palm: int, side: str | None, otherwise: str | None = None) -> Hand:
    """Return the hand at a palm, with its fingers in order.

    Args:
        chains: The chains.
        palm: Row of the palm.
        side: Side of the hand of a body; None if the hand is not part of a body.
        otherwise: Side of a hand whose side is unknown.
    """
    fingers, bars = chains.without_linkages(chains.below(palm))
    inside = {row for chain in fingers for row in chain.rows}
    notes = [
        f"{_key(chains, next((row for row in bar.rows if row not in inside), bar.rows[0]))!r} is assumed to be a bar of"
        " a linkage or a drive, not a finger"
        for bar in bars
    ]
    words = [_name_of(chains, chain) for chain in fingers]
    thumb, clear = _thumb(fingers)
    if len(fingers) == 2:
        named = words.index("thumb") if words.count("thumb") == 1 else 0
        ordered = [fingers[named], fingers[1 - named]]
        if words.count("thumb") != 1:
            notes.append("with two fingers, the first is used as the thumb")
    else:
        if "thumb" in words:
            named = words.index("thumb")
            if named != thumb and clear:
                shown = _key(chains, fingers[thumb].rows[0])
                notes.append(f"by shape, the finger at {shown!r} would be the thumb; the thumb is chosen by name")
            thumb = named
        elif not clear:
            shown = [_key(chains, chain.rows[0]) for chain in fingers]
            notes.append(f"the thumb is uncertain: {listed([str(key) for key in shown])} are alike")
        ordered = [fingers[thumb], *_in_order(fingers, thumb)]
    by_shape = [FINGERS[k] if k < len(FINGERS) else f"finger_{k + 1}" for k in range(len(ordered))]
    given = [_name_of(chains, chain) for chain in ordered]
    names = by_shape
    if all(given) and len(set(given)) == len(given) and given[0] == "thumb":
        names = [str(name) for name in given]
        ordered = [ordered[k] for k in sorted(range(len(names)), key=lambda k: FINGERS.index(names[k]))]
        names = sorted(names, key=FINGERS.index)
        if [str(name) for name in given] != names:
            notes.append(
                f"by position, the fingers would be {listed([str(n) for n in given])}; they are ordered by name"
            )
    return _hand(chains, palm, (side, otherwise), list(zip(names, ordered, strict=True)), notes)


def _name_of(chains: Chains, chain: Chain) -> str | None:
    """Return the finger that most names of a chain's joints and links mean; None if no name means a finger."""
    joints = [chains.skeleton.joints[row] for row in dict.fromkeys([chain.tip, *chain.rows])]
    meant = (_finger_in(name) for joint in joints for name in (joint.name, joint.body or ""))
    votes = [finger for finger in meant if finger is not None]
    return max(dict.fromkeys(votes), key=votes.count) if votes else None


@lru_cache(1024)
def _finger_in(name: str) -> str | None:
    """Return the finger that the name of a joint or link means; None for other names."""
    read = read_name(name)
    finger = finger_of(read.word) if read is not None else None
    for word in map(str.lower, split_name(name)):
        finger = finger or next((full for full in FINGERS if full in word), None)
        finger = finger or next((full for other, full in _OTHER_WORDS.items() if other in word), None)
    short = _SHORT_NAME.search(name)
    return finger or (_SHORT[short[1].lower()] if short else None)


def _thumb(chains: Sequence[Chain]) -> tuple[int, bool]:
    """Return the index of the chain that is the thumb by its shape, and whether this choice is clear."""
    if len(chains) < 3:
        return 0, False
    along, middles = np.array([chain.along for chain in chains]), np.array([chain.middle for chain in chains])
    lengths = np.array([magnitude(chain.end - chain.base) for chain in chains])
    others = [[k for k in range(len(chains)) if k != thumb] for thumb in range(len(chains))]
    costs = [_unlike(along[rest], middles[rest], lengths[rest]) for rest in others]
    order = np.argsort(costs, kind="stable")
    return int(order[0]), costs[int(order[0])] <= _CLEAR * costs[int(order[1])]


def _unlike(along: Array, middles: Array, lengths: Array) -> float:
    """Return a dimensionless measure of how far chains are from having one direction and being in one row.

    Args:
        along: Directions of the chains, (n, 3).
        middles: Midpoints between the bases and tips of the chains, (n, 3).
        lengths: Lengths of the chains, (n,).
    """
    mean = along.mean(axis=0)
    turns = np.arccos(np.clip(along @ unit(mean), -1.0, 1.0)) if magnitude(mean) > 0.0 else np.full(len(along), 1.5)
    offsets = middles - middles.mean(axis=0)
    aside = np.linalg.svd(offsets, compute_uv=False)[1:] if len(along) > 2 else np.zeros(1)
    return magnitude(turns) + float(np.linalg.norm(aside)) / max(float(lengths.mean()), 1e-12)


def _in_order(chains: Sequence[Chain], thumb: int) -> list[Chain]:
    """Return the chains without the thumb, in order from the thumb's side."""
    others = [chain for k, chain in enumerate(chains) if k != thumb]
    middles = np.array([chain.middle for chain in others])
    along = unit(np.mean([chain.along for chain in others], axis=0))
    offsets = middles - middles.mean(axis=0)
    across = np.linalg.svd(offsets - np.outer(offsets @ along, along))[2][0]
    towards = chains[thumb].middle - middles.mean(axis=0)
    if across @ towards < 0.0:
        across = -across
    return sorted(others, key=lambda chain: -float(chain.middle @ across))


def _hand(
    chains: Chains,
    palm: int,
    sides: tuple[str | None, str | None],
    named: Sequence[tuple[str, Chain]],
    notes: list[str],
) -> Hand:
    """Return the hand with given fingers, thumb first.

    Args:
        chains: The chains.
        palm: Row of the palm.
        sides: Side of the hand if it is part of a body; and its side if nothing else shows it.
        named: Name and chain of each finger.
        notes: Sentences about doubts; more are appended.
    """
    side, otherwise = sides
    skeleton = chains.skeleton
    fingers = [chain for _, chain in named]
    # if the first finger is a thumb, two fingers are a mitten
    gripper = len(fingers) == 2 and _name_of(chains, fingers[0]) != "thumb"
    if len(fingers) == 2 and not gripper:
        notes.append(f"a mitten: next to the thumb is one finger, at {_key(chains, fingers[1].rows[0])!r}")
    knuckles = fingers if gripper else fingers[1:]
    along = unit(np.mean([chain.along for chain in knuckles], axis=0))
    origin = np.mean([chain.base for chain in knuckles], axis=0)
    towards = fingers[0].middle - np.mean([chain.middle for chain in knuckles], axis=0)
    if gripper:
        towards = fingers[0].base - origin
    thumb_side = towards - along * (towards @ along)
    out = sum((_bends_to(chains, chain) for chain in knuckles), np.zeros(3))
    out -= along * (out @ along)
    known_side = side or otherwise or _named_side(skeleton, palm)
    bends = magnitude(out) > _FLAT * len(knuckles)
    if not bends and known_side is not None:
        out = cross(thumb_side, along) * (1.0 if known_side == "right" else -1.0)
    elif not bends:
        out = _normal(fingers, along, thumb_side)
        if len(fingers) > 2:
            notes.append("how the fingers bend is uncertain: their joints turn as far to both sides; side= sets it")
    out = unit(out) if magnitude(out) > 0.0 else _any_across(along)
    if side is not None:
        along, out = _of_wrist(chains, palm, side, knuckles, (along, out))
    across = cross(thumb_side, along) @ out
    sure = bends and len(fingers) > 2 and abs(across) > _FLAT * max(magnitude(thumb_side), 1e-12)
    curled = float(np.mean([_curl(chains, chain) for chain in knuckles])) > _CURLED
    by_shape = ("right" if across > 0.0 else "left") if sure else None
    if known_side is not None and by_shape is not None and known_side != by_shape and not curled:
        notes.append(f"by shape, this would be a {by_shape} hand; the side is chosen by name")
    frame = np.eye(4)
    frame[:3, 0], frame[:3, 1], frame[:3, 2], frame[:3, 3] = cross(along, out), along, out, origin
    at = chains.frames[palm]
    world = np.eye(4)
    world[:3, :3], world[:3, 3] = at[:3, :3], at[:3, 3]
    out_fingers = tuple(_finger(chains, name, chain) for name, chain in named)
    notes += [
        f"the tip of the {finger.name} is an estimate: no frame marks it" for finger in out_fingers if finger.estimated
    ]
    return Hand(
        known_side or by_shape,
        _key(chains, palm),
        np.linalg.inv(world) @ frame,
        out_fingers,
        _coupled(chains, fingers),
        tuple(notes),
    )


def _of_wrist(
    chains: Chains, palm: int, side: str, knuckles: Sequence[Chain], found: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return the directions along and out of the palm of a body's hand, from its wrist and knuckles.

    In a file, fingers of characters may be bent at rest, and thumbs hardly show the plane of the palm. Hinges show how
    fingers bend; if they contradict the result, it is rejected.

    Args:
        chains: The chains.
        palm: Row of the hand.
        side: Side of the hand.
        knuckles: Chains of the fingers without the thumb, from the index finger on.
        found: The directions along and out of the palm that the fingers show, to return if the result is rejected.
    """
    wrist, bases = chains.frames[palm, :3, 3], np.array([chain.base for chain in knuckles])
    length = float(np.mean([magnitude(chain.end - chain.base) for chain in knuckles]))
    if len(bases) < 2 or magnitude(bases.mean(0) - wrist) < _PALM * length:
        return found
    along, out = palm_axes(wrist, bases)
    out = out if side == "right" else -out
    hinged = any(chains.axis(row) is not None for chain in knuckles for row in chain.rows)
    # for fists at rest, wrist and knuckles determine the palm
    hinged &= float(np.mean([_curl(chains, chain) for chain in knuckles])) <= _CURLED
    if not np.isfinite(out).all() or (hinged and min(along @ found[0], out @ found[1]) < _NEAR):
        return found
    return along, out


def _bends_to(chains: Chains, chain: Chain) -> Array:
    """Return the direction in which a fingertip moves if its joints rotate to their larger ranges, (3,)."""
    total, places = np.zeros(3), chains.frames[:, :3, 3]
    flexion = set(_flexion(chains, chain))
    for row in chain.rows:
        joint, axis = chains.skeleton.joints[row], chains.axis(row)
        limit = joint.limit
        if row not in flexion or axis is None or not isinstance(limit, Interval) or joint.kind is not Kind.HINGE:
            continue
        lower, upper = max(limit.lower, -math.pi), min(limit.upper, math.pi)
        if abs(upper + lower) <= _LOPSIDED * (upper - lower):
            continue
        arm = chain.end - places[row]
        if magnitude(arm) > 0.0:
            total += np.sign(upper + lower) * cross(axis, unit(arm))
    return total / max(len(chain.rows), 1)


def _curl(chains: Chains, chain: Chain) -> float:
    """Return the bend of a finger at rest about the axis of its last hinge, radians."""
    axis = next((axis for row in reversed(chain.rows) if (axis := chains.axis(row)) is not None), None)
    if axis is None:
        return 0.0
    points = [chains.frames[row, :3, 3] for row in chain.rows] + [chain.end]
    ways = [way - axis * (axis @ way) for way in np.diff(points, axis=0) if magnitude(way) > 0.0]
    turns = (math.atan2(float(axis @ cross(a, b)), float(a @ b)) for a, b in itertools.pairwise(ways))
    return abs(sum(turns))


def _flexion(chains: Chains, chain: Chain) -> list[int]:
    """Return the joints that bend a finger: balls, and hinges with axes parallel to that of the last hinge."""
    last = next((axis for row in reversed(chain.rows) if (axis := chains.axis(row)) is not None), None)
    out: list[int] = []
    for row in chain.rows:
        axis = chains.axis(row)
        if axis is None or (last is not None and abs(float(axis @ last)) > _ALONG):
            out.append(row)
    return out


def _finger(chains: Chains, name: str, chain: Chain) -> Finger:
    """Return the finger that consists of a chain and has a name."""
    flexion = _flexion(chains, chain)
    others = [row for row in chain.rows if row not in flexion or chains.axis(row) is None]
    keys = [[_key(chains, row) for row in rows] for rows in (chain.rows, flexion, others)]
    offset = chain.offset.copy()
    offset.setflags(write=False)
    return Finger(
        name, tuple(keys[0]), tuple(keys[1]), tuple(keys[2]), _key(chains, chain.tip), offset, chain.estimated
    )


def _coupled(chains: Chains, fingers: Sequence[Chain]) -> dict[Key, Key]:
    """Return the leader of each mimic joint of the fingers, by joint."""
    leaders = chains.skeleton.leader_rows
    rows = dict.fromkeys(row for chain in fingers for row in chain.rows)
    return {_key(chains, row): _key(chains, leaders[row]) for row in rows if row in leaders}


def _named_side(skeleton: Skeleton, palm: int) -> str | None:
    """Return the side that names of palm, joints above it or the model show; None if none does."""
    for row in ancestors(skeleton.parents, palm):
        joint = skeleton.joints[row]
        for name in (joint.name, joint.body or ""):
            read = read_name(name) if name else None
            if read is not None and read.side:
                return read.side
    sides = words_of(skeleton.name) & set(SIDES)
    return next(iter(sides)) if len(sides) == 1 else None


def _normal(fingers: Sequence[Chain], along: Array, thumb_side: Array) -> Array:
    """Return the normal of the plane of the knuckles, on the side to which the thumb points."""
    out = cross(thumb_side, along)
    tip = fingers[0].end - fingers[0].base
    return -out if out @ tip < 0.0 else out


def _any_across(along: Array) -> Array:
    """Return some unit vector that is perpendicular to ``along``."""
    x, y, z = np.abs(along)
    other = np.eye(3)[0 if x <= min(y, z) else 1 if y <= z else 2]
    return unit(cross(along, other))


def _key(chains: Chains, row: int) -> Key:
    """Return the key (name or row) of a joint."""
    return chains.skeleton.joint_keys[row]
