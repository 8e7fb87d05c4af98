"""Limbs whose shapes penetrate the body or each other, compared with those of the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from synovia.covers import with_shapes
from synovia.errors import SynoviaError
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.shapes.over_time import near_shapes
from synovia.model.shapes.pairs import self_pairs
from synovia.retargeting.judging.actor import Actor
from synovia.retargeting.judging.shaped import limb_pairs, part_of_rows

_LEAST: Final = 1e-3  # leg lengths: overlaps that are not deeper are ignored
_shaped: WeakKeyDictionary[Skeleton, Skeleton] = WeakKeyDictionary()


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
