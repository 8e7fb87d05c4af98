"""Overlaps of limbs with each other and with the trunk, of capsules along the bones or of shapes; and crossed legs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from synovia.covers import with_shapes
from synovia.errors import SynoviaError
from synovia.model import Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, unit
from synovia.model.motion import Motion
from synovia.model.shapes.over_time import near_shapes
from synovia.model.shapes.pairs import self_pairs
from synovia.retargeting.judging.actor import Actor
from synovia.retargeting.judging.shaped import limb_pairs, part_of_rows

# leg lengths: radii of slim limbs, so that deeper overlaps cannot be cloth and flesh
_RADII: Final = {
    "trunk": 0.10, "upper_arm": 0.035, "lower_arm": 0.03, "hand": 0.03, "upper_leg": 0.06, "lower_leg": 0.045,
}  # fmt: skip
_PAIRS: Final = (
    ("left_upper_leg", "right_upper_leg"),
    ("left_upper_leg", "right_lower_leg"),
    ("left_lower_leg", "right_upper_leg"),
    ("left_lower_leg", "right_lower_leg"),
    ("left_lower_arm", "right_lower_arm"),
    *((f"{side}_{part}", "trunk") for part in ("lower_arm", "hand") for side in SIDES),
    *((f"{side}_lower_arm", f"{other}_upper_leg") for side in SIDES for other in SIDES),
)
_PALM: Final = 0.1  # leg lengths: length of a hand without fingers
_ENDS: Final = 0.15  # fraction of the trunk's length: distance of its capsule from hips and shoulders
_LEAST: Final = 1e-3  # leg lengths: overlaps that are not deeper are ignored
_shaped: WeakKeyDictionary[Skeleton, Skeleton] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Overlap:
    """Two limbs that overlap in at least one frame.

    Args:
        limbs: Names of the two limbs.
        depth: Depth of the overlap in each frame of the result, (T,), leg lengths; 0 without overlap.
        source: The same in the source; zeros without a source.
    """

    limbs: tuple[str, str]
    depth: Array
    source: Array


def overlaps(result: Actor, source: Actor | None) -> list[Overlap]:
    """Return the pairs of limbs that overlap in some frame of the result."""
    own = _depths(result)
    other = {} if source is None else _depths(source)
    zeros = np.zeros(len(result.motion))
    return [Overlap(pair, depth, other.get(pair, zeros)) for pair, depth in own.items() if depth.any()]


def crossing(actor: Actor) -> Array | None:
    """Return how far the left ankle is to the left of the right one, (T,), leg lengths; negative if they are crossed.

    Left is the direction from the right to the left hip joint. None if a body has no ankles.
    """
    hips, ankles = actor.across("upper_leg"), actor.across("foot")
    if hips is None or ankles is None:
        return None
    return np.sum(unit(hips) * ankles, axis=-1) / actor.leg


def _depths(actor: Actor) -> dict[tuple[str, str], Array]:
    """Return, for each pair of limbs that the body has, the depth of their overlap, (T,), leg lengths."""
    names = dict.fromkeys(itertools.chain.from_iterable(_PAIRS))
    segments = {name: segment for name in names if (segment := _segment(actor, name)) is not None}
    pairs = [pair for pair in _PAIRS if all(name in segments for name in pair)]
    if not pairs:
        return {}
    sides = [np.stack([segments[pair[k]] for pair in pairs], axis=1) for k in (0, 1)]  # (T, pairs, 2, 3)
    apart = segment_distance(sides[0], sides[1]) / actor.leg
    radii = np.array([_radius(actor, a) + _radius(actor, b) for a, b in pairs])
    depth = np.maximum(radii - apart, 0.0)
    return {pair: depth[:, k] for k, pair in enumerate(pairs)}


def _radius(actor: Actor, name: str) -> float:
    """Return the radius of a limb, leg lengths; for legs, at most half the distance between the hip joints.

    Otherwise, legs with close hip joints would overlap at rest.
    """
    radius = _RADII[name.removeprefix("left_").removeprefix("right_")]
    hips = actor.across("upper_leg")
    if name.endswith("leg") and hips is not None:
        radius = min(radius, 0.5 * float(np.linalg.norm(hips[0])) / actor.leg)
    return radius


def _segment(actor: Actor, name: str) -> Array | None:
    """Return both ends of a limb's centre line, (T, 2, 3); None if the body lacks the limb."""
    if name == "trunk":
        if actor.across("upper_arm") is None:
            return None
        a, b = actor.hips, actor.middle("upper_arm")
        return np.stack([a + _ENDS * (b - a), b - _ENDS * (b - a)], axis=1)
    if name.endswith("hand"):
        arm = actor.bone(f"{name.partition('_')[0]}_lower_arm")
        if name not in actor.rows or arm is None:
            return None
        start = actor.at(name)
        below = [actor.places[:, row] - start for row in actor.below(name)[1:]]
        far = max(below, key=lambda way: float(np.linalg.norm(way[0])), default=arm)
        way = unit(far) if float(np.linalg.norm(far[0])) > 0.5 * _PALM * actor.leg else arm
        return np.stack([start, start + _PALM * actor.leg * way], axis=1)
    end = actor.end_row(name) if name in actor.rows else None
    return None if end is None else np.stack([actor.at(name), actor.places[:, end]], axis=1)


def segment_distance(a: Array, b: Array) -> Array:
    """Return the distances between segments ``a`` and ``b``, given by their ends, (..., 2, 3).

    The nearest points of two segments are found from the nearest points of their lines, which are clamped: first to one
    segment, then to the other, then to the first again.

    References:
        Ericson (2005), *Real-Time Collision Detection*, section 5.1.9.
    """
    p, q = a[..., 0, :], b[..., 0, :]
    u, v, w = a[..., 1, :] - p, b[..., 1, :] - q, p - q
    uu, uv, vv = np.sum(u * u, -1), np.sum(u * v, -1), np.sum(v * v, -1)
    uw, vw = np.sum(u * w, -1), np.sum(v * w, -1)
    flat = uu * vv - uv * uv
    parallel = flat <= 1e-12 * uu * vv
    s = np.where(parallel, 0.0, np.clip((uv * vw - vv * uw) / np.where(parallel, 1.0, flat), 0.0, 1.0))
    t = np.clip((uv * s + vw) / np.where(vv > 0.0, vv, 1.0), 0.0, 1.0)
    s = np.clip((uv * t - uw) / np.where(uu > 0.0, uu, 1.0), 0.0, 1.0)
    return np.linalg.norm(w + s[..., None] * u - t[..., None] * v, axis=-1)


@dataclass(frozen=True, eq=False)
class Inside:
    """Two parts of different limbs whose shapes overlap in at least one frame.

    Args:
        parts: Names of the two parts: arms before legs, legs before the trunk; a link without a part has its own name.
        links: The two links with the deepest overlap, named as in ``Skeleton.shapes``.
        depth: Depth of the overlap in each frame, (T,), length units of the result; 0 without overlap.
        source: The same in the source, in length units of the result; zeros without a source.
    """

    parts: tuple[str, str]
    links: tuple[str | int, str | int]
    depth: Array
    source: Array

    @property
    def frames(self) -> tuple[int, ...]:
        """The frames in which the two parts overlap."""
        return tuple(np.flatnonzero(self.depth).tolist())


def links_inside(result: Actor, source: Actor | None) -> list[Inside]:
    """Return the parts of different limbs whose shapes overlap in some frame of the result, the deepest first.

    The source has the shapes of its file, or capsules that are fitted to its bones. Links that touch in nearly every
    pose, such as neighbours, are not compared.
    """
    skeleton = result.motion.skeleton
    pairs = limb_pairs(skeleton, result.rows) if skeleton.shapes else np.zeros((0, 2), np.int32)
    if not len(pairs):
        return []
    depths = near_shapes(skeleton, result.motion.frames(), pairs).depths(len(result.motion), len(pairs))
    shared = result.rows if source is None else {role: k for role, k in result.rows.items() if role in source.rows}
    part_of = part_of_rows(skeleton, shared)
    groups: dict[tuple[str, str], list[int]] = {}
    for k in np.flatnonzero(depths.max(axis=0) > _LEAST * result.leg).tolist():
        rows: list[int] = pairs[k].tolist()
        a, b = (part_of[row] or str(skeleton.link_key(row)) for row in rows)
        groups.setdefault((a, b) if _order(a) <= _order(b) else (b, a), []).append(k)
    out: list[Inside] = []
    for parts, own in groups.items():
        depth = depths[:, own].max(axis=1)
        depth[depth <= _LEAST * result.leg] = 0.0
        a, b = pairs[own[int(np.argmax(depths[:, own].max(axis=0)))]].tolist()
        links = skeleton.link_key(a), skeleton.link_key(b)
        out.append(Inside(parts, links, depth, _depth_in_source(parts, depth, result, source)))
    return sorted(out, key=lambda one: -float(one.depth.max()))


def _order(part: str) -> int:
    """Return the sort key of a part in a pair: arms come first, then legs, then the trunk."""
    return 0 if part.endswith(("_arm", "_hand")) else 1 if part.endswith(("_leg", "_foot")) else 2


def _depth_in_source(parts: tuple[str, str], depth: Array, result: Actor, source: Actor | None) -> Array:
    """Return the depth of the overlap of two parts in the source, (T,), length units of the result.

    It is computed only for frames with an overlap in the result; other frames have depth 0.
    """
    out = np.zeros(len(depth))
    skeleton = None if source is None else _with_shapes(source.motion.skeleton)
    if source is None or skeleton is None:
        return out
    part_of = part_of_rows(skeleton, {role: row for role, row in source.rows.items() if role in result.rows})
    wanted = [pair for pair in self_pairs(skeleton).rows.tolist() if {part_of[row] for row in pair} == set(parts)]
    frames = np.flatnonzero(depth)
    if wanted:
        posed = Motion(source.motion.skeleton, source.motion.q[frames], source.motion.fps).frames()
        near = near_shapes(skeleton, posed, np.array(wanted, np.int32))
        out[frames] = near.depths(len(frames), len(wanted)).max(axis=1) * result.leg / source.leg
    return out


def _with_shapes(skeleton: Skeleton) -> Skeleton | None:
    """Return a body with its own shapes, or with capsules fitted to its bones; None if none can be fitted."""
    if skeleton.shapes:
        return skeleton
    if skeleton not in _shaped:
        try:
            _shaped[skeleton] = with_shapes(skeleton)
        except SynoviaError:
            return None
    return _shaped[skeleton]
