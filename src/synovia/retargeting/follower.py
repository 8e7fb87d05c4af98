"""The pose of the target that follows the source, before feet and limits; and loops that are closed in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from synovia.model import Kind, Skeleton
from synovia.model.anatomy.contacts import LOW
from synovia.model.geometry import Array, matrix_to_quat, rotation_between
from synovia.model.loops.tables import moved_by
from synovia.model.pose import world_frames
from synovia.model.tree import ancestors
from synovia.retargeting.body import LEGS, Body
from synovia.retargeting.bones import steadied
from synovia.retargeting.feet import rise_of, soles_raised
from synovia.retargeting.limbs import Follower
from synovia.retargeting.pairing import Pairing, still_rows
from synovia.retargeting.transfer import Transfer, across

_FEW: Final = 300  # number of frames of a clip, about, that are enough to measure the depth of soles
_FASTER: Final = 1.0 + 1e-6  # a joint is too fast above this factor of its velocity limit


class PoseFollower:
    """Computes the pose that follows the source, in a clip or one pose at a time: orientations, path and height.

    The path of the hips, and their height above the ankles of a standing body, are scaled by the ratio of leg lengths.
    The target's floor is at height 0: if the source is at rest with its ankles at height ``floor``, the target's soles
    are at height 0.

    Args:
        pairing: The two bodies.
        relaxed: Whether hands whose source has no fingers are slightly bent.

    Attributes:
        floor: Height of the source's ankles while it stands, length units of the source.
        bends: Whether each limb that can bend to both sides bends to the narrower one, by role of its lower part.
    """

    def __init__(self, pairing: Pairing, *, relaxed: bool = False) -> None:
        """Prepare the transfer; ``learn`` or ``know`` sets the floor and the sides of bends."""
        self._pairing, target, parts = pairing, pairing.target, pairing.turns
        still = () if pairing.moves else still_rows(target, parts)
        self._transfer = Transfer(pairing.source, target, parts, still, relaxed=relaxed)
        moves, parents = pairing.moves, target.skeleton.parents
        self._carrier = target.carrier if moves else None
        self._hips = [[body.first_row(leg[0]) for leg in LEGS] for body in (pairing.source, target)] if moves else []
        self._carried = np.array([self._carrier in ancestors(parents, k) for k in range(len(parents))])
        self.know(0.0, {})

    def know(self, floor: float, bends: Mapping[str, bool]) -> None:
        """Set the floor, and the side to which each limb bends."""
        self.floor, self.bends, self._path = floor, bends, None
        self._transfer.set_bends(bends)
        self.reset()

    def learn(self, frames: Array) -> None:
        """Find the floor, and the side to which each limb bends, from world frames of the source, (T, n, 12)."""
        pairing = self._pairing
        floor = standing_height(pairing.source, frames) if pairing.moves else 0.0
        self.know(floor, self._transfer.bends_in(self._steadied(frames)))

    def rise(self, frames: Array, fps: float) -> float:
        """Return the height, length units, by which the target must rise so that its soles are rarely below the floor.

        Args:
            frames: World frames of the source, (T, n, 12).
            fps: Frames per second.
        """
        every, target, roles = max(1, len(frames) // _FEW), self._pairing.target, self._pairing.roles
        q, _ = self.follow(frames[::every])
        return rise_of(target, roles, soles_raised(target, roles, q, fps / every)[1])

    def reset(self) -> None:
        """Discard the previous poses, and start from the rest pose."""
        self._transfer.reset()

    def follow(self, frames: Array, clip: Follower | None = None) -> tuple[Array, Array]:
        """Return joint values (T, nq) and world frames (T, m, 12) of the target.

        Args:
            frames: World frames of the source in consecutive poses, (T, n, 12).
            clip: The argument of ``Transfer.follow``.
        """
        target = self._pairing.target
        q = self._transfer.follow(self._steadied(frames), clip)
        own = world_frames(target.skeleton, q)
        if (row := self._carrier) is not None:
            slope, shift = self._map()
            (a, b), (c, d) = self._hips
            way = 0.5 * ((frames[:, a, 9:] + frames[:, b, 9:]) @ slope.T - (own[:, c, 9:] + own[:, d, 9:])) + shift
            above, axes = target.skeleton.parents[row], target.skeleton.joints[row].rest[:3, :3]
            if above >= 0:
                axes = own[:, above, :9].reshape(-1, 3, 3) @ axes
            at = target.skeleton.q_slice(row).start
            q[:, at : at + 3] += (way[:, None] @ axes)[:, 0]
            own[:, self._carried, 9:] += way[:, None]
        return q, own

    def _steadied(self, frames: Array) -> Array:
        """Return the source's world frames; if the target's base is fixed, relative to the source's carrier joint."""
        pairing = self._pairing
        return frames if pairing.moves else steadied(frames, pairing.carrier, pairing.source.rest)

    def _map(self) -> tuple[Array, Array]:
        """Return the map from the midpoint of the source's hip joints to the target's: (3, 3) and a shift (3,)."""
        if self._path is None:
            pairing = self._pairing
            source, target, scale, rest = pairing.source, pairing.target, pairing.scale, pairing.source.rest[None]
            plain = Transfer(source, target, pairing.parts)
            own = world_frames(target.skeleton, plain.follow(rest))[0]
            up, target_up = source.basis[:, 1], target.basis[:, 1]
            legs = float(hip_middle(source, rest[0]) @ up) - standing_height(source, rest)
            height = float(hip_middle(target, own) @ target_up) - target.lowest(own)
            self._path = scale * across(source, target), (height - scale * (self.floor + legs)) * target_up
        return self._path


def standing_height(body: Body, frames: Array) -> float:
    """Return the height of the ankles (knees for legs without shins) while the body stands, length units."""
    ankles = [row for leg in LEGS for row in body.end_rows(leg[1]) or (body.roles[leg[1]],)]
    return float(np.percentile(frames[:, ankles, 9:] @ body.basis[:, 1], LOW))


def hip_middle(body: Body, frames: Array) -> Array:
    """Return the midpoint (..., 3) of the hip joints for world frames (..., n, 12)."""
    left, right = (body.first_row(leg[0]) for leg in LEGS)
    return 0.5 * (frames[..., left, 9:] + frames[..., right, 9:])


class Closer:
    """Closes the loops of a body; joints without a role, such as rods, follow the retargeted parts.

    These joints start from their values in the previous frame. If they cannot close a loop, joints of the parts change.

    Args:
        target: The body.
        roles: Roles of the retargeted parts.
    """

    def __init__(self, target: Body, roles: Iterable[str]) -> None:
        """Find the joints that move the retargeted parts."""
        self._skeleton, self._mechanism = target.skeleton, target.skeleton.mechanism
        self._ends = [target.roles[role] for role in roles]
        self._rows = {above for row in self._ends for above in ancestors(target.skeleton.parents, row)}

    def closed(self, q: Array, before: Array | None = None) -> tuple[Array, Array]:
        """Return joint values (T, nq) with closed loops, and how far closing them rotates parts, (T,), radians.

        Args:
            q: Joint values of consecutive frames, (T, nq).
            before: The closed pose of the previous frame, (nq,), for a single frame; None to start at the rest pose.
        """
        if self._mechanism is None:
            return q, np.zeros(len(q))
        out = self._mechanism.shut_clip(q, self._rows, anchors=None if before is None else before[None])
        turns = (
            matrix_to_quat(world_frames(self._skeleton, values)[:, self._ends, :9].reshape(len(q), -1, 3, 3))
            for values in (q, out)
        )
        return out, np.linalg.norm(rotation_between(*turns), axis=-1).max(axis=1, initial=0.0)


def looped_rows(skeleton: Skeleton) -> list[int]:
    """Return the rows of the hinges and slides that loops move."""
    rows = sorted({row for tie in skeleton.loops for row in moved_by(skeleton, tie)})
    return [row for row in rows if skeleton.joints[row].kind in (Kind.HINGE, Kind.SLIDE)]


def hurried(skeleton: Skeleton, q: Array, largest: Array) -> dict[str, Array]:
    """Return joints in loops whose steps exceed the allowed ones: the ratio of both in each frame, (T,), by name.

    Args:
        skeleton: The body.
        q: Joint values, (T, nq).
        largest: Largest step of each joint, (T - 1, n) or (n,); infinite for joints without one.
    """
    out: dict[str, Array] = {}
    for row in looped_rows(skeleton):
        most = largest[..., row]
        if np.isfinite(most).any():
            step = np.abs(np.diff(q[:, skeleton.q_slice(row).start]))
            ratio = np.concatenate([[0.0], step / most])
            if ratio.max() > _FASTER:
                out[skeleton.joint_names[row]] = np.where(ratio > _FASTER, ratio, np.minimum(ratio, 1.0))
    return out
