"""Measure a clip and its source: all figures of a judgement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.clips.hands.bones import HandBones, hands_of_roles
from synovia.clips.hands.carrying import angles_off
from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.roles import ORDER
from synovia.model.anatomy.up import find_up, given_up
from synovia.model.geometry import Array, axis_name, unit
from synovia.model.motion import Motion
from synovia.model.shapes.world import World
from synovia.model.tree import ancestors
from synovia.retargeting.body import NEEDED
from synovia.retargeting.bones import carrier_of
from synovia.retargeting.joint_map import check_map
from synovia.retargeting.judging.actor import (
    BONES,
    Actor,
    about_z,
    angles,
    best_rotation,
    best_turn,
    heading,
)
from synovia.retargeting.judging.ground import Foot, feet
from synovia.retargeting.judging.inside import Inside, links_inside
from synovia.retargeting.judging.overlap import Overlap, crossing, overlaps
from synovia.retargeting.judging.steps import (
    Rows,
    Steps,
    at_limits,
    hip_jumps,
    joint_steps,
    jumps,
    limbs_of_joints,
    part_steps,
)

Bools = NDArray[np.bool_]
Pairs = dict[str, tuple[Array, Array]]
PATH: Final = "path of the hips"  # stands for the path of the hips among the joints that jump
_CROSSED: Final = 0.03  # leg lengths: ankles are crossed if they overlap by at least this
_SPARE: Final = 0.5  # fraction of a limb's length: a longer branch without parts may be the limb of the opposite side
_TRUNK: Final = ("spine", "chest", "upper_chest")
# degrees: a mean angle above the first value should be checked, one above the second is wrong
MEAN: Final = {"": (16.0, 30.0), "trunk": (8.0, 30.0), "head": (40.0, 70.0), "foot": (30.0, 70.0)}
_SEEN: Final = ("hips", "spine", "chest", "neck", "head", "upper_arm", "lower_arm", "upper_leg", "lower_leg")


@dataclass(frozen=True, eq=False)
class Limb:
    """Angles between one bone's directions in source and result, after the best rotation about z.

    Args:
        limb: Name of the bone.
        angles: Angle in each frame, (T,), radians; NaN where a foot is too steep to show its heading, or the limb is
            not seen.
        numbers: Number of each frame, (T,), if frames are not counted from 0.
    """

    limb: str
    angles: Array
    numbers: Rows | None = None

    @property
    def mean(self) -> float:
        """Mean angle, radians."""
        return float(np.nanmean(self.angles)) if np.isfinite(self.angles).any() else 0.0

    @property
    def largest(self) -> float:
        """Largest angle, radians."""
        return float(np.nanmax(self.angles)) if np.isfinite(self.angles).any() else 0.0

    @property
    def frame(self) -> int:
        """The frame with the largest angle."""
        at = int(np.nanargmax(self.angles)) if np.isfinite(self.angles).any() else 0
        return at if self.numbers is None else int(self.numbers[at])

    @property
    def thresholds(self) -> tuple[float, float]:
        """Mean angles, radians: one above the first should be checked, one above the second is wrong."""
        low, high = MEAN.get(self.limb, MEAN["foot"] if self.limb.endswith("foot") else MEAN[""])
        return math.radians(low), math.radians(high)


@dataclass(frozen=True, eq=False)
class Jumps:
    """Frames to which jumps lead.

    Args:
        own: For each joint, frames of jumps that only the result has; ``PATH`` stands for the path of the hips.
        shared: For each part, frames of jumps of the source; ``"path"`` stands for the path of the hips.
    """

    own: Mapping[str, tuple[int, ...]]
    shared: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Live:
    """Frames of a live body that are judged as a clip.

    Args:
        breaks: Frames that do not continue the frame before them.
        numbers: Number of the tick of each frame, (T,).
        unseen: Masks of the frames in which limbs such as ``"left_leg"`` are not seen, (T,) each.
    """

    breaks: Sequence[int]
    numbers: Rows
    unseen: Mapping[str, Bools]


class Figures:
    """Everything that is measured about a clip. Each figure is computed when it is first used.

    Args:
        motion: The clip.
        source: The source of the clip; None without a source.
        joint_map: Rows of the matched joints, (source, result), by role.
        up: Axes that point up in the source and in the result, or these directions, (3,); None to find them.
        world: What the clip stands on; None for a level floor.
        live: What is particular to frames of a live body.

    Raises:
        InputError: If a clip has no frames, or the two differ in length.
    """

    def __init__(
        self,
        motion: Motion,
        source: Motion | None,
        joint_map: Mapping[str, tuple[Any, Any]] | None,
        up: tuple[str | Array | None, str | Array | None],
        world: World | None = None,
        live: Live | None = None,
    ) -> None:
        """Find the parts and upward axes of both bodies."""
        self.motion, self.source, self._world, self._live = motion, source, world, live
        breaks = () if live is None else live.breaks
        if source is not None and len(source) != len(motion):
            raise InputError(
                "the two clips differ in length", where=motion.name, value=len(motion),
                expected=f"{len(source)} frames, as {source.name} has",
            )  # fmt: skip
        if not len(motion):
            raise InputError("the motion has no frames", where=motion.name, expected="at least one")
        own = motion.skeleton.role_rows
        other: Mapping[str, int] = {} if source is None else source.skeleton.role_rows
        if joint_map is None:
            joint_map = {
                role: (other.get(role, row), row) for role, row in own.items() if source is None or role in other
            }
        elif source is not None:
            joint_map = check_map(joint_map, source.skeleton, motion.skeleton)
        else:
            joint_map = check_map(joint_map, motion.skeleton)
        self.mapped = set(joint_map)
        skeletons = [(source or motion).skeleton, motion.skeleton]
        rows = [
            {role: skeleton.index(pair[k]) for role, pair in joint_map.items() if source is not None or k == 1}
            for k, skeleton in enumerate(skeletons)
        ]
        theirs = _completed(skeletons[0], rows[0], other)
        mine = _completed(motion.skeleton, rows[1], own)
        whole = all(role in parts for parts in ((mine,) if source is None else (mine, theirs)) for role in NEEDED)
        self.origin = None
        names = zip(up, ("source_up", "up"), strict=True)
        ups = [one if one is None or isinstance(one, np.ndarray) else given_up(one, what).vector for one, what in names]
        if source is not None:
            self.origin = _actor(source, theirs, ups[0], whole, breaks)
        own_up = ups[1]
        if own_up is None and whole:
            shown = find_up(motion.skeleton, rows=mine)
            own_up = shown.vector if shown.certainty else None
            if own_up is None and self.origin is not None and source is not None and _alike(source, motion):
                own_up = self.origin.up  # the rest pose does not stand; the same body has the same axes as the source
        self.result = _actor(motion, mine, own_up, whole, breaks)
        if self.result is None:
            self.origin = None
        self.found = dict(own), dict(other)

    @property
    def whole(self) -> bool:
        """Whether whole bodies are compared; if not, parts are compared relative to the joint that carries them."""
        return self.result is not None and self.result.whole

    @cached_property
    def pairs(self) -> Pairs:
        """Directions of each bone in the source and in the result, (T, 3), with z up.

        For parts of bodies, the axes are those of the result's carrier.
        """
        pairs = self._pairs
        if self.whole or not pairs:
            return pairs
        turn = best_rotation([*self._lines, *pairs.values()])
        return {bone: (a @ turn.T, b) for bone, (a, b) in pairs.items()}

    @cached_property
    def _pairs(self) -> Pairs:
        """Directions of each bone in source and result, (T, 3), each in the axes of its own clip."""
        if self.origin is None or self.result is None:
            return {}
        out: Pairs = {}
        ends = [end for end in ("neck", "head") if all(end in body.rows for body in (self.origin, self.result))]
        shoulders = all(body.across("upper_arm") is not None for body in (self.origin, self.result))
        end = "upper_arm" if shoulders else next(iter(ends), "")
        for bone in BONES:
            if bone == "trunk" and not end:
                continue
            if not self.whole and self.mapped.isdisjoint(_TRUNK if bone == "trunk" else (bone,)):
                continue
            a, b = (body.bone(bone, end) for body in (self.origin, self.result))
            if a is not None and b is not None:
                out[bone] = a, b
        return out

    @property
    def lines(self) -> list[tuple[Array, Array]]:
        """Directions across hips and shoulders in source and result, (T, 3); empty for parts of bodies."""
        return self._lines if self.whole else []

    @cached_property
    def _lines(self) -> list[tuple[Array, Array]]:
        """Directions across hips and shoulders in source and result, (T, 3), each in the axes of its own clip."""
        if self.origin is None or self.result is None:
            return []
        lines = [(self.origin.across(part), self.result.across(part)) for part in ("upper_leg", "upper_arm")]
        return [(unit(a), unit(b)) for a, b in lines if a is not None and b is not None]

    @cached_property
    def turn(self) -> float:
        """Rotation about the vertical from the source to the result, radians."""
        limbs = [pair for bone, pair in self.pairs.items() if not bone.endswith("foot")]
        return best_turn([*limbs, *self.lines]) if limbs and self.whole else 0.0

    @cached_property
    def turned(self) -> Pairs:
        """The pairs of directions, with the source's rotated about z; feet have headings as directions."""
        out: Pairs = {}
        for bone, (a, b) in self.pairs.items():
            if bone.endswith("foot"):
                a, b = heading(a), heading(b)
            out[bone] = about_z(a, self.turn), b
        return out

    @cached_property
    def limbs(self) -> tuple[Limb, ...]:
        """Angles of trunk, head, limbs and feet relative to the source; empty without a source."""
        out, numbers = list[Limb](), None if self._live is None else self._live.numbers
        for bone, (a, b) in self.turned.items():
            off = angles(a, b)
            if bone.endswith("foot"):  # the heading of a foot that points down is arbitrary
                c, d = self.pairs[bone]
                off = np.minimum(off, angles(about_z(c, self.turn), d))
            if self._live is not None and (unseen := self._live.unseen.get(_limb_of(bone))) is not None:
                off = np.where(unseen, np.nan, off)
            out.append(Limb(bone, off, numbers))
        return tuple(out)

    def number(self, frame: int) -> int:
        """Return the number of a frame: that of its tick for a live body."""
        return frame if self._live is None else int(self._live.numbers[frame])

    @cached_property
    def bones(self) -> dict[str, list[int]]:
        """Bones of each limb in the result, as rows of the joints at their ends."""
        if self.result is None:
            return {}
        out, rows, parents = dict[str, list[int]](), self.result.rows, self.motion.skeleton.parents
        tops = [rows[role] for role in (*(f"{side}_upper_arm" for side in SIDES), "neck") if role in rows]
        for one in self.limbs:
            start = rows[{"trunk": "hips", "head": "neck"}.get(one.limb, one.limb)]
            ends = {"trunk": tops, "head": [rows.get("head")]}.get(one.limb) or [self.result.end_row(one.limb)]
            path = {row for end in ends if end is not None for row in ancestors(parents, end)}
            out[one.limb] = sorted(path - set(ancestors(parents, start)))
        return out

    @cached_property
    def hands(self) -> dict[str, tuple[HandBones, HandBones]]:
        """Pairs of hands, source and result, with fingers that both bodies have, by side."""
        if self.origin is None or self.result is None:
            return {}
        other, own = (hands_of_roles(body.motion.skeleton, body.rows) for body in (self.origin, self.result))
        return {side: (other[side], own[side]) for side in own if side in other}

    @cached_property
    def fingers(self) -> tuple[Limb, ...]:
        """Angles of each finger's segments relative to the source, each hand in the frame of its palm."""
        if self.origin is None or self.result is None:
            return ()
        frames, numbers = (self.origin.frames, self.result.frames), None if self._live is None else self._live.numbers
        return tuple(
            Limb(f"{side}_{finger}", off, numbers)
            for side, pair in self.hands.items()
            for finger, off in angles_off(*pair, frames).items()
        )

    @cached_property
    def feet(self) -> tuple[Foot, ...]:
        """Contacts, slide and heights of the feet."""
        if self.result is None or not self.whole:
            return ()
        world = None
        if self._world is not None:
            world = self._world.matched(self.motion.skeleton, up=axis_name(self.result.up))
        return tuple(feet(self.result, self.origin, self.turn, world))

    @cached_property
    def overlaps(self) -> tuple[Overlap, ...]:
        """Pairs of limbs that overlap, measured with capsules."""
        return () if self.result is None or not self.whole else tuple(overlaps(self.result, self.origin))

    @cached_property
    def inside(self) -> tuple[Inside, ...]:
        """Pairs of parts of different limbs whose shapes overlap, the deepest first; none for a body without shapes."""
        return () if self.result is None else tuple(links_inside(self.result, self.origin))

    @cached_property
    def crossed(self) -> Bools | None:
        """Mask of the frames with crossed legs in the result but not in the source, (T,); None without ankles."""
        own = None if self.result is None or not self.whole else crossing(self.result)
        if own is None:
            return None
        other = None if self.origin is None else crossing(self.origin)
        return (own < -_CROSSED) & (True if other is None else other > 0.0)

    @cached_property
    def source_steps(self) -> dict[str, tuple[Array, Array]]:
        """For each part of the source, by role, its rotations over one frame and over two, radians."""
        return {} if self.origin is None else part_steps(self.origin)

    @cached_property
    def steps(self) -> tuple[Steps, ...]:
        """Rotation steps of all joints that rotate, compared with the steps of the source."""
        limbs = {} if self.result is None else limbs_of_joints(self.motion.skeleton, dict(self.result.rows))
        breaks = () if self.result is None else self.result.breaks
        return tuple(joint_steps(self.motion, limbs, self.source_steps, breaks))

    @cached_property
    def jumps(self) -> Jumps:
        """Frames to which jumps lead: jumps of the result alone, and jumps of the source."""
        own: dict[str, tuple[int, ...]] = {}
        shared: dict[str, tuple[int, ...]] = {}
        for step in self.steps:
            found = jumps(step.angles, step.double, step.source)
            if len(found):
                own[step.joint] = tuple(found.tolist())
        for role, (one, two) in self.source_steps.items():
            if role.removeprefix("left_").removeprefix("right_") in _SEEN and len(found := jumps(one, two)):
                shared[role] = tuple(found.tolist())
        if self.result is not None and self.whole:
            other: list[int] = [] if self.origin is None else hip_jumps(self.origin).tolist()
            if here := [frame for frame in hip_jumps(self.result).tolist() if frame not in other]:
                own[PATH] = tuple(here)
            if other:
                shared["path"] = tuple(other)
        return Jumps(own, shared)

    @cached_property
    def at_limits(self) -> dict[str, Bools]:
        """For each joint with a range, by name, a mask of the frames in which it is at a limit, (T,)."""
        return {self.motion.skeleton.joint_names[row]: at for row, at in at_limits(self.motion).items()}

    @cached_property
    def unmapped(self) -> tuple[str, ...]:
        """Roles of either body that are not in the joint map."""
        own, other = self.found
        return () if self.source is None else tuple(role for role in {**other, **own} if role not in self.mapped)

    def have(self, role: str) -> bool:
        """Return whether both bodies seem to have a part's limb: the part itself, or a branch that may be the limb."""
        bodies = [(self.motion.skeleton, self.found[0])]
        if self.source is not None:
            bodies.append((self.source.skeleton, self.found[1]))
        return all(role in found or _has_spare_limb(skeleton, found, role) for skeleton, found in bodies)

    @cached_property
    def paths(self) -> tuple[float, float] | None:
        """Extents of the paths of the hips in source and result, leg lengths; None without two whole bodies."""
        if self.origin is None or self.result is None or not self.whole:
            return None
        a, b = (np.sqrt(np.var(body.hips, axis=0).sum()) / body.leg for body in (self.origin, self.result))
        return float(a), float(b)


def _alike(a: Motion, b: Motion) -> bool:
    """Return whether the second clip has all joints of the first one; it may also have an added root."""
    return set(a.skeleton.joint_names) <= set(b.skeleton.joint_names)


def _limb_of(bone: str) -> str:
    """Return the limb of a bone, such as ``"left_leg"``."""
    side, _, part = bone.partition("_")
    return f"{side}_{'leg' if part.endswith(('leg', 'foot')) else 'arm'}"


def _actor(motion: Motion, rows: dict[str, int], up: Array | None, whole: bool, breaks: Sequence[int]) -> Actor | None:
    """Return the body of a clip, or the part of a body that moves; None without frames or parts."""
    if not len(motion) or not rows:
        return None
    if not whole:
        parts = [role for role in rows if role != "hips"]
        carrier = carrier_of(motion.skeleton, rows, parts) if parts else -1
        return Actor(motion, rows, np.array([0.0, 0.0, 1.0]), carrier, breaks)
    actor = Actor(
        motion, rows, find_up(motion.skeleton, motion.q, rows=rows).vector if up is None else up, breaks=breaks
    )
    return actor if actor.leg > 0.0 else None


def _has_spare_limb(skeleton: Skeleton, found: Mapping[str, int], role: str) -> bool:
    """Return whether a branch without parts may be a missing limb, because it is long enough.

    Its length is compared with the limb of the opposite side.

    Args:
        skeleton: The skeleton.
        found: Rows of the parts that were found, by role.
        role: Role of the missing part.
    """
    side, _, part = role.partition("_")
    other = f"{SIDES[1 - SIDES.index(side)]}_{part}"
    if other not in found:
        return False
    limbs = {row for name, row in found.items() if name.startswith(SIDES) or name == "head"}
    holds = {above for row in found.values() for above in ancestors(skeleton.parents, row)}
    own, spare = 0.0, 0.0
    for row in range(len(skeleton)):
        line = ancestors(skeleton.parents, row)
        if found[other] in line:
            own = max(own, float(skeleton.lengths[line[: line.index(found[other])]].sum()))
        elif limbs.isdisjoint(line):
            free = [above for above in line if above not in holds]
            spare = max(spare, float(skeleton.lengths[free].sum()))
    return spare > _SPARE * own


def _completed(skeleton: Skeleton, rows: Mapping[str, int], found: Mapping[str, int]) -> dict[str, int]:
    """Return rows of parts by role: the given parts, and recognised parts that continue them along a limb.

    Args:
        skeleton: The skeleton.
        rows: Rows of the given parts, by role.
        found: Rows of the recognised parts, by role.
    """
    out = dict(rows)
    taken = set(rows.values())
    for role in ("neck", "head"):
        if role not in out and role in found and found[role] not in taken:
            out[role] = found[role]
    for side in SIDES:
        for parts in ORDER:
            above: int | None = None
            for part in parts:
                role = f"{side}_{part}"
                if role not in out and role in found and found[role] not in taken:
                    lines = ancestors(skeleton.parents, found[role])
                    if not rows or (above is not None and above in lines):
                        out[role] = found[role]
                above = out.get(role, above)
    return out
