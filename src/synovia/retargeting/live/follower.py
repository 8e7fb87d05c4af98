"""The pose of the target that follows one pose of the source, before feet and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from synovia.model.geometry import Array
from synovia.model.pose import world_frames
from synovia.model.turns import LimbTurns, SwingLimb
from synovia.retargeting.above_floor import rise_of, soles_raised
from synovia.retargeting.body import LEGS
from synovia.retargeting.bones import steadied
from synovia.retargeting.fingers import Hands
from synovia.retargeting.hips import hip_map
from synovia.retargeting.limbs import SURE, Plane, limbs_of, planes_of
from synovia.retargeting.pairing import Pairing
from synovia.retargeting.partial import still_rows
from synovia.retargeting.transfer import Orienter, across, own_rotations, spread_of, world_rotations

_FEW: Final = 300  # frames of a clip, about, that show how deep soles are


def sides_of_bends(pairing: Pairing, frames: Array) -> dict[str, bool]:
    """Return whether each limb that can bend to both sides bends to the narrower one in some frames, by its lower part.

    Args:
        pairing: The two bodies.
        frames: World frames of the source, (T, n, 12).
    """
    source, target, parts = pairing.source, pairing.target, pairing.turns
    wanted = world_rotations(source, target, parts, frames)
    limbs = limbs_of(source, target, pairing.roles, frames)
    found: dict[str, bool] = {}
    for plane in planes_of(limbs, target, parts, wanted):
        usual = Plane.of(plane.limb, target, pairing.roles)
        if plane.both and usual is not None:
            found[plane.limb.roles[1]] = bool(plane.axis @ usual.axis < 0.0)
    return found


def rise_of_clip(pairing: Pairing, floor: float, bends: Mapping[str, bool], frames: Array, fps: float) -> float:
    """Return how far the target rises, length units, so that its soles are hardly ever below the floor in a clip.

    Args:
        pairing: The two bodies.
        floor: Height of the source's ankles while it stands.
        bends: See ``sides_of_bends``.
        frames: World frames of the source, (T, n, 12).
        fps: Frames per second.
    """
    follower, every, target = PoseFollower(pairing, floor, bends), max(1, len(frames) // _FEW), pairing.target
    q = np.array([follower.follow(pose) for pose in frames[::every]])
    return rise_of(target, pairing.roles, soles_raised(target, pairing.roles, q, fps / every)[1])


class PoseFollower:
    """Follows the source pose by pose, as ``retarget`` does: orientations, swing planes, path and height.

    Hinges and fingers continue from the previous pose. Fingers follow directions in the frames of the palms.

    Args:
        pairing: The two bodies.
        floor: Height of the source's ankles while it stands.
        bends: See ``sides_of_bends``.
        relaxed: Whether hands whose source has no fingers are a little bent.

    Attributes:
        frames: World frames (n, 12) of the target after the last pose.
    """

    def __init__(self, pairing: Pairing, floor: float, bends: Mapping[str, bool], *, relaxed: bool = False) -> None:
        """Prepare the tables of the kernels."""
        source, target, parts = pairing.source, pairing.target, pairing.turns
        self._pairing, self._target = pairing, target
        self._steady = None if pairing.moves else pairing.carrier
        still = () if pairing.moves else still_rows(target, parts)
        self._orienter = orienter = Orienter(target, parts, still)
        own = own_rotations(source, target, parts).reshape(-1, 9)
        turn = across(source, target).reshape(1, 9)
        number = {part.role: k for k, part in enumerate(parts)}
        planes: list[Plane] = []
        for limb in limbs_of(source, target, pairing.roles, source.rest[None]):
            plane = Plane.of(limb, target, number)
            if plane is not None:
                planes.append(plane.turned() if bends.get(limb.roles[1], False) else plane)
        shared = [k for k, part in enumerate(parts) if part.earlier >= 0]
        rows = [part.source for part in parts]
        for n, k in enumerate(shared):
            rows[k] = len(source.skeleton) + n
        self._turns = LimbTurns(
            rows,
            orienter.ends,
            np.concatenate([own, turn, orienter.onto.reshape(-1, 9)]),
            [_as_limb(plane, number) for plane in planes],
            len(source.skeleton),
            spread_of(source, parts) if shared else None,
        )
        hands = Hands.of(source, target, parts)
        self._fingers = hands.live(target)
        self._idle = hands.idle(target) if relaxed else None
        self._path = None
        if pairing.moves:
            slope, shift = hip_map(pairing, floor)
            rows = [[body.first_row(leg[0]) for leg in LEGS] for body in (source, target)]
            self._path = slope, shift, rows[0], rows[1]
        self.reset()

    def reset(self) -> None:
        """Discard the previous poses, and start from the rest pose."""
        self._turns.reset()
        self._q = self._orienter.start()
        self._start = self._q[0].copy()
        if self._fingers is not None:
            self._fingers.reset()

    def follow(self, frames: Array) -> Array:
        """Return joint values (nq,) of the target for world frames (n, 12) of the source.

        Args:
            frames: World frames of the source; not changed.
        """
        target = self._target
        if self._steady is not None:
            frames = steadied(frames[None], self._steady, self._pairing.source.rest)[0]
        before = self._q[0]
        q = self._start[None].copy()
        self._orienter.go_on(q[0], before)
        self._orienter.turn(self._turns.turn(frames), q)
        self._q = q
        out = self._orienter.values(q)
        if self._fingers is not None:
            self._fingers.turn(frames[None], out)
        if self._idle is not None:
            out[0, self._idle[0]] = self._idle[1]
        self.frames = found = world_frames(target.skeleton, out)[0]
        if self._path is not None and (row := target.carrier) is not None:
            slope, shift, rows, own_rows = self._path
            centre = slope @ (0.5 * (frames[rows[0], 9:] + frames[rows[1], 9:])) + shift
            way = centre - 0.5 * (found[own_rows[0], 9:] + found[own_rows[1], 9:])
            above = target.skeleton.parents[row]
            axes = target.skeleton.joints[row].rest[:3, :3]
            if above >= 0:
                axes = found[above, :9].reshape(3, 3) @ axes
            at = target.skeleton.q_slice(row).start
            out[0, at : at + 3] += way @ axes
            self.frames = found = world_frames(target.skeleton, out)[0]
        return out[0]


def _as_limb(plane: Plane, number: Mapping[str, int]) -> SwingLimb:
    """Return a limb with its swing plane for the kernel; ``number`` is the index of each part, by role."""
    roles = plane.limb.roles
    numbers = {
        "HINGE_AXIS": plane.axis, "UPPER_REST": plane.rests, "UPPER_BONE": plane.bones, "UPPER_FRAME": plane.frames,
        "STRAIGHT": np.array(plane.clear), "SURE": np.array(SURE),
    }  # fmt: skip
    if plane.foot is not None:
        numbers["FOOT_REST"] = plane.foot
    parts = roles[:2] if plane.foot is None else roles
    return SwingLimb(tuple(number[role] for role in parts), plane.limb.points, numbers)
