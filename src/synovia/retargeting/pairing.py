"""Pair two bodies for retargeting: matched parts, rest poses, axes and scale.

Whole clips and live poses are retargeted with the same pairing. For bodies without legs, or parts that a joint map
names, the base of the target does not move. So parts of the source move relative to the joint that carries them: the
hips for a trunk, the chest for arms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.clips.resting import Rest
from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.geometry import Array, axis_vector
from synovia.model.motion import Motion
from synovia.model.tree import ancestors
from synovia.retargeting.alignment import Alike, Part, align, same_parts
from synovia.retargeting.body import ARMS, PART_MAP, Body
from synovia.retargeting.bones import carrier_of
from synovia.retargeting.chains import with_chains
from synovia.retargeting.joint_map import check_map
from synovia.retargeting.judging import sides_of_clip
from synovia.retargeting.judging.measure import Figures
from synovia.retargeting.limbs import Follower, largest_steps
from synovia.retargeting.rest_pose import CERTAIN, RestPose, Stance, find_stance, standing_target
from synovia.retargeting.root_motion import root_bone
from synovia.retargeting.transfer import Transfer, across

_TRIED: Final = 60  # largest number of frames on which rest poses are tried
_HOPELESS: Final = 1e-6  # rest poses with a lower certainty are not tried
_CLEARLY: Final = float(np.radians(1.0))  # radians: another rest pose is used if its mean angle is smaller by this
_UNSEEN: Final = 0.5 * np.pi  # radians: error of a limb for a rest pose that does not show the limb's direction


@dataclass(frozen=True, eq=False)
class Pairing:
    """Two bodies for retargeting: matched parts, rest poses, axes and scale.

    Args:
        source: The body whose motion is retargeted; its rest pose is upright in the world of its clip.
        target: The body that follows, with its rest pose; it has a free root if its base moves.
        parts: The matched parts that rotate, with the rotations between both rest poses.
        moves: Whether the base of the target may move.
        stance: The source's rest pose with its certainty, and its upward axis.
        target_rest: The target's rest pose with its certainty.
        carried: Roles of the retargeted parts, which both bodies have.
        alike: The two bodies as bodies that are built alike; None if they are not.
        same_legs: Whether the bodies are built alike, with equal leg lengths relative to their sizes. The target's feet
            then are where the source's feet are.
    """

    source: Body
    target: Body
    parts: tuple[Part, ...]
    moves: bool
    stance: Stance
    target_rest: RestPose
    carried: frozenset[str]
    alike: Alike | None = None
    same_legs: bool = False

    @property
    def roles(self) -> list[str]:
        """The roles of the matched parts."""
        return [part.role for part in self.parts]

    @cached_property
    def turns(self) -> list[Part]:
        """The parts, and the joints between and near them that follow the source; see ``with_chains``."""
        return with_chains(self.source, self.target, self.parts)

    def root_frames(self, mine: int, frames: Array, own: Array) -> Array | None:
        """Return world frames (T, 12) of the target's root bone on the floor that follow the source's, or None.

        Args:
            mine: Row of the target's bone.
            frames: World frames of the source, (T, n, 12).
            own: World frames of the target, (T, m, 12).
        """
        if self.alike is None or (bone := root_bone(self.source)) is None:
            return None
        turn, hips = across(self.source, self.target), (self.source.roles["hips"], self.target.roles["hips"])
        before, after = self.source.rest[bone, :9].reshape(3, 3), self.target.rest[mine, :9].reshape(3, 3)
        out = np.empty((len(frames), 12))
        rotations = turn @ frames[:, bone, :9].reshape(-1, 3, 3) @ before.T @ turn.T @ after
        out[:, :9] = rotations.reshape(-1, 9)
        out[:, 9:] = own[:, hips[1], 9:] + self.scale * (frames[:, bone, 9:] - frames[:, hips[0], 9:]) @ turn.T
        return out

    @property
    def scale(self) -> float:
        """Length of the target's legs divided by that of the source's legs; 1 for a base that does not move."""
        return self.target.leg / self.source.leg if self.moves else 1.0

    @property
    def carrier(self) -> int:
        """Row of the source's joint relative to which parts move if the base does not move; -1 for the world."""
        return carrier_of(self.source.skeleton, self.source.roles, self.roles)


def paired(
    motion: Motion,
    target: Skeleton | Motion,
    joint_map: Mapping[str, tuple[Any, Any]] | None = None,
    *,
    rest: Rest | None = None,
    up: str | None = None,
    moves: bool = True,
) -> Pairing:
    """Pair the body of a clip with another body; ``retarget`` describes the arguments.

    Args:
        motion: The clip.
        target: The target body, or a clip of it, in which its rest pose can be found.
        joint_map: (source joint, target joint) by role; None to match joints automatically.
        rest: The source's standing pose; None to find it.
        up: Axis of the source that points up; None to find it.
        moves: Whether the base of the target may move.

    Raises:
        InputError: If the two have no part in common, the map has no pairs, there is no such rest pose, or the body of
            the clip is upside down in most frames.
        UnknownNameError: If the map names a part or a joint that does not exist.
    """
    clip, skeleton = (target, target.skeleton) if isinstance(target, Motion) else (None, target)
    found = match(motion, skeleton, joint_map, moves=moves)
    source = found.source
    stance = find_stance(motion, source, rest, up)
    carried = frozenset(role for role in found.roles if role in source.roles and role in found.target.roles)
    alike = Alike.of(source, found.target) if rest is None else None
    if alike is not None:
        return alike_pairing(alike, stance, carried, moves=found.moves)
    body, target_rest = standing_target(found.target, clip)
    roles = turning(body, found.roles)
    if rest is None and found.moves and stance.rest.certainty < CERTAIN:
        stance = _best_stance(motion, source, body, roles, stance)
    source = Body(source.skeleton, source.roles, stance.rest.frames, stance.up.vector)
    return Pairing(source, body, tuple(align(source, body, roles)), found.moves, stance, target_rest, carried)


def turning(body: Body, roles: Collection[str]) -> list[str]:
    """Return the roles of the parts of a body that can rotate."""
    return [role for role in body.roles if role in roles and body.can_turn(role)]


def alike_pairing(alike: Alike, stance: Stance, carried: frozenset[str], *, moves: bool) -> Pairing:
    """Return the pairing of two bodies that are built alike; the target takes the source's rest pose."""
    source = Body(alike.source.skeleton, alike.source.roles, stance.rest.frames, stance.up.vector)
    body, rest = alike.standing(
        source, stance.rest.name, axis_vector(stance.up.axis) if stance.up.axis else stance.up.vector
    )
    parts = [Part(role, source.roles[role], body.roles[role], np.eye(3)) for role in turning(body, carried)]
    return Pairing(source, body, tuple(parts), moves, stance, rest, carried, alike, moves and alike.has_same_legs())


def _best_stance(motion: Motion, source: Body, target: Body, roles: Sequence[str], stance: Stance) -> Stance:
    """Return the stance with the rest pose that brings the result closest to the source.

    Every considered rest pose is tried on some frames, without the feet. The most certain one is used unless another
    one gives a clearly closer result.
    """
    few = motion.q[np.unique(np.linspace(0, len(motion) - 1, min(len(motion), _TRIED)).round().astype(int))]
    clip = Motion(motion.skeleton, few, motion.fps * len(few) / len(motion), name=motion.name)
    frames = clip.frames()
    found: dict[str, dict[str, float]] = {}
    shared = {role: (source.roles[role], target.roles[role]) for role in roles}
    named = stance.up.name if stance.up.given else None
    for pose in stance.considered:
        if pose.certainty < _HOPELESS and pose is not stance.rest:
            continue
        body = Body(source.skeleton, source.roles, pose.frames, stance.up.vector)
        parts = align(body, target, roles)
        bounds = largest_steps(body, target, frames, clip.fps, np.full(len(target.skeleton), np.inf), strict=False)
        transfer = Transfer(body, target, parts)
        transfer.set_bends(transfer.bends_in(frames))
        q = transfer.follow(frames, Follower(target, parts, bounds, clip.fps))
        figures = Figures(Motion(target.skeleton, q, clip.fps), clip, shared, (named, None))
        found[pose.name] = {limb.limb: limb.mean for limb in figures.limbs}
    limbs = {limb for off in found.values() for limb in off}
    if len(found) < 2 or not limbs:
        return stance
    off = {name: sum(own.get(limb, _UNSEEN) for limb in limbs) / len(limbs) for name, own in found.items()}
    best = min(off, key=lambda name: off[name] - (_CLEARLY if name == stance.rest.name else 0.0))
    return stance.with_rest(source, next(pose for pose in stance.considered if pose.name == best), tuple(found))


class Match(NamedTuple):
    """Two bodies and the parts that are retargeted.

    Args:
        source: The body whose motion is retargeted.
        target: The body that follows; it has a free root if its base moves.
        roles: Roles of the retargeted parts.
        moves: Whether the base of the target moves with the base of the source.
    """

    source: Body
    target: Body
    roles: tuple[str, ...]
    moves: bool


def match(
    motion: Motion, skeleton: Skeleton, joint_map: Mapping[str, tuple[Any, Any]] | None, *, moves: bool = True
) -> Match:
    """Match the parts of two bodies, by a joint map or automatically.

    The base moves if both bodies have hips and two legs, and the hips are retargeted. If a map names fewer parts, the
    other parts are recognised automatically.

    Args:
        motion: The clip of the body that moves.
        skeleton: The body that follows.
        joint_map: (source joint, target joint) by role; None to match joints automatically.
        moves: Whether the base may move.

    Raises:
        InputError: If the two have no part in common, there are several people, or the map has no pairs.
        UnknownNameError: If the map names a part or a joint that does not exist.
    """
    source_skeleton, moving = motion.skeleton, skeleton.with_root("free")
    if joint_map is None:
        parts = same_parts(source_skeleton, moving)
        source, target = (
            Body.of(one, None if own == one.role_rows else own)
            for one, own in zip((source_skeleton, moving), parts, strict=True)
        )
        source = Body(source_skeleton, sides_of_clip(motion, source.roles))
        roles = tuple(role for role in target.roles if role in source.roles)
    else:
        given = check_map(joint_map, source_skeleton, skeleton)
        added = len(moving) - len(skeleton)
        rows = [
            {role: source_skeleton.index(pair[0]) for role, pair in given.items()},
            {role: _row(pair[1], skeleton, moving, added) for role, pair in given.items()},
        ]
        source, target = (Body.of(body, own) for body, own in zip((source_skeleton, moving), rows, strict=True))
        if not (source.whole and target.whole):
            source, target = _completed(source), _completed(target)
        roles = tuple(given)
    moves = moves and source.whole and target.whole and "hips" in roles
    if not moves:
        added = len(moving) - len(skeleton)
        target = Body(skeleton, {role: row - added for role, row in target.roles.items() if row >= added})
        roles = tuple(role for role in roles if role != "hips" and role in target.roles)
    if not any(target.can_turn(role) for role in roles):
        if joint_map is None:
            source.recognised()
            target.recognised()
        else:
            what = f"the map has only {', '.join(joint_map)}" if joint_map else "the map has no parts"
            hint = f"Add a limb of two joints, such as {ARMS[0]} and {ARMS[1]}"
            raise InputError(what, where="joint_map", expected="a part of both bodies that turns", hint=hint)
        names = source_skeleton.name, skeleton.name
        what = f"{names[0]} and {names[1]} have no part in common that turns"
        raise InputError(what, expected="a joint map of both", hint=PART_MAP)
    return Match(source, target, roles, moves)


def _row(joint: Any, given: Skeleton, moving: Skeleton, added: int) -> int:
    """Return the row of a map's joint in the body with a free root; rows in the map are those of the given body."""
    return moving.index(joint) if isinstance(joint, str) else given.index(joint) + added


def _completed(body: Body) -> Body:
    """Return a body with given parts, to which recognised parts are added."""
    taken = set(body.roles.values())
    found = {role: row for role, row in body.skeleton.role_rows.items() if role not in body.roles and row not in taken}
    return Body(body.skeleton, body.roles | found)


def still_rows(body: Body, parts: Collection[Part]) -> set[int]:
    """Return the rows of joints above given parts that rotate none of them, and so stay at rest."""
    turning = {part.target for part in parts}
    above: set[int] = set()
    for role in (part.role for part in parts if part.role):
        first = body.first_row(role)
        line = ancestors(body.skeleton.parents, body.roles[role])
        turning.update(line[: line.index(first) + 1])
        above.update(line[line.index(first) + 1 :])
    return above - turning
