"""Pair two bodies for retargeting: matched parts, rest poses, axes and scale.

Whole clips and live poses are retargeted with the same pairing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from synovia.clips.resting import Rest
from synovia.model import Skeleton
from synovia.model.geometry import Array, axis_vector
from synovia.model.motion import Motion
from synovia.retargeting.alignment import Part, align
from synovia.retargeting.alike import Alike
from synovia.retargeting.body import Body
from synovia.retargeting.bones import carrier_of
from synovia.retargeting.chains import with_chains
from synovia.retargeting.judging.measure import Figures
from synovia.retargeting.limbs import Follower, largest_steps
from synovia.retargeting.partial import match
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
