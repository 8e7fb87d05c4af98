"""Transfer the orientations of a motion to another body, as joint values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array
from synovia.model.tree import ancestors
from synovia.model.turns import LimbTurns, PathTurns, Spread, SwingLimb
from synovia.retargeting.alignment import Part
from synovia.retargeting.body import LEGS, Body
from synovia.retargeting.fingers import Hands, LiveFingers
from synovia.retargeting.limbs import SURE, TRUNK, Follower, Plane, follow_arms, limbs_of, smooth_steps


def spread_of(source: Body, parts: Sequence[Part]) -> Spread:
    """Return the rotations of the source between two joints, of which some parts take a share."""
    shared = [part for part in parts if part.earlier >= 0]
    rest = source.rest[:, :9].reshape(-1, 3, 3)
    numbers = [
        (
            *(rest[part.earlier].T @ rest[part.source]).ravel(),
            part.share,
            *(np.zeros(3) if part.twist is None else part.twist),
        )
        for part in shared
    ]
    return Spread([part.earlier for part in shared] + [part.source for part in shared], np.array(numbers))


def across(source: Body, target: Body) -> Array:
    """Return the rotation B' Bᵀ (3, 3) from the world of the source to that of the target."""
    return target.basis @ source.basis.T


def own_rotations(source: Body, target: Body, parts: Sequence[Part]) -> Array:
    """Return the rotation of each part in the axes of the source's part, (parts, 3, 3): R₀ᵀ B A B'ᵀ R'₀."""
    B, C = source.basis, target.basis
    R0, R1 = (body.rest[:, :9].reshape(-1, 3, 3) for body in (source, target))
    return np.array([R0[part.source].T @ B @ part.turn @ C.T @ R1[part.target] for part in parts])


class Orienter(PathTurns):
    """Computes joint values that rotate the parts of a body to orientations, as closely as limits permit.

    Joints without a role stay at rest. A free joint that carries the hips takes their orientation, but not their
    position.

    Args:
        target: The body.
        parts: Parts of the body, with what they follow.
        still: Rows of joints above the parts that also stay at rest.

    Attributes:
        ends: For each path of joints, the index in ``parts`` of the part that gives it its orientation.
        onto: Rotation from that part to the last joint of the path, in z-form, (paths, 3, 3).
    """

    def __init__(self, target: Body, parts: Sequence[Part], still: Collection[int] = ()) -> None:
        """Find, for each part, the path of joints that rotates it."""
        skeleton = target.skeleton
        rest = target.rest[:, :9].reshape(-1, 3, 3)
        ends: dict[int, tuple[int, Array]] = {}
        for k, part in enumerate(parts):
            row, onto = part.target, np.eye(3)
            if part.role == "hips" and target.carrier is not None:
                row, onto = target.carrier, rest[part.target].T @ rest[target.carrier]
            ends[row] = k, onto @ skeleton.tables.unfold[row].reshape(3, 3).T  # to z-form
        covered: set[int] = set(still)
        paths: list[list[int]] = []
        for row in sorted(ends):
            paths.append([above for above in ancestors(skeleton.parents, row)[::-1] if above not in covered])
            covered.update(paths[-1])
        self.ends = np.array([ends[row][0] for row in sorted(ends)], np.int32)
        self.onto = np.array([ends[row][1] for row in sorted(ends)]).reshape(-1, 3, 3)
        super().__init__(skeleton, paths, rest)

    def solved(self, wanted: Array, before: Array | None = None) -> tuple[Array, Array]:
        """Return joint values (T, nq) that rotate the parts to orientations, as closely as the limits permit.

        Args:
            wanted: Orientations of the ends of the paths, in z-form, (T, paths, 9).
            before: Start of the hinges: the second result of the call for the previous poses; None to start at rest.

        Returns:
            The joint values; and those of the last pose, to pass as ``before``.
        """
        q = self.start(len(wanted))
        if before is not None:
            self.go_on(q[0], before)
        self.turn(wanted, q)
        return self.values(q), q[-1]


class Transfer:
    """Transfers orientations from one body to another, for a clip or one pose at a time.

    In the axes of its body, a part of the source has rotated by D = Bᵀ R(t) R₀ᵀ B since the rest pose; here R is its
    orientation, R₀ that at rest, and B the body's basis. The target's part rotates by the same D from its own rest pose
    R'₀, which is aligned by A (``Part.turn``): W = B' D A B'ᵀ R'₀. In chains with different numbers of joints, a part
    takes a share of the source's rotation between two joints. Then upper and lower parts of limbs rotate so that the
    hinge between them bends in the plane of both bones; see ``kernels.tree.swing``.

    Args:
        source: The body whose motion is retargeted.
        target: The body that follows.
        parts: The parts that both bodies have.
        still: Rows of joints above the parts that stay at rest, for a body whose base does not move.
        relaxed: Whether hands whose source has no fingers are slightly bent.
    """

    def __init__(
        self, source: Body, target: Body, parts: Sequence[Part], still: Collection[int] = (), *, relaxed: bool = False
    ) -> None:
        """Find the joints that rotate each part, and the planes of limbs."""
        self._source, self._target, self._parts = source, target, parts
        self._number = number = {part.role: k for k, part in enumerate(parts)}
        self._limbs = limbs_of(source, target, [part.role for part in parts])
        found = (Plane.of(limb, target, number) for limb in self._limbs)
        self._planes = [plane for plane in found if plane is not None]
        self._orienter = Orienter(target, parts, still)
        self._hands, self._relaxed = Hands.of(source, target, parts), relaxed
        self._live: tuple[LiveFingers | None, tuple[NDArray[np.intp], Array] | None] | None = None  # with idle ones
        self._before: Array | None = None
        self._narrow: frozenset[str] | None = None  # roles of the limbs that bend to the narrower side
        self.set_bends({})

    def set_bends(self, bends: Mapping[str, bool]) -> None:
        """Set whether each limb that can bend to both sides bends to the narrower one, by role of its lower part."""
        narrow = frozenset(role for role, on in bends.items() if on)
        if narrow == self._narrow:
            return
        self._narrow = narrow
        source, target, parts, orienter = self._source, self._target, self._parts, self._orienter
        own, turn = own_rotations(source, target, parts).reshape(-1, 9), across(source, target).reshape(1, 9)
        shared, rows = [k for k, part in enumerate(parts) if part.earlier >= 0], [part.source for part in parts]
        for n, k in enumerate(shared):
            rows[k] = len(source.skeleton) + n
        planes = [plane.turned() if plane.limb.roles[1] in narrow else plane for plane in self._planes]
        self._turns = LimbTurns(
            rows,
            orienter.ends,
            np.concatenate([own, turn, orienter.onto.reshape(-1, 9)]),
            [_as_limb(plane, self._number) for plane in planes],
            spread_of(source, parts) if shared else None,
        )

    def bends_in(self, frames: Array) -> dict[str, bool]:
        """Return whether each limb that can bend to both sides bends to the narrower one in a clip, by role.

        Args:
            frames: World frames of the source, (T, n, 12).
        """
        self.set_bends({})
        if not any(plane.both for plane in self._planes):
            return {}
        means = zip(self._planes, self._turns.bends(frames).tolist(), strict=True)
        return {plane.limb.roles[1]: mean < -plane.clear[0] for plane, mean in means if plane.both}

    def reset(self) -> None:
        """Discard the previous poses, and start from the rest pose."""
        self._turns.reset()
        self._before = None
        if self._live is not None and self._live[0] is not None:
            self._live[0].reset()

    def follow(self, frames: Array, clip: Follower | None = None) -> Array:
        """Return joint values (T, nq) of the target, without the path of its hips.

        Args:
            frames: World frames of the source in consecutive poses, (T, n, 12).
            clip: The target with its bounds, if the poses are a whole clip; limbs of hinges and fingers are then solved
                in all frames together. None to continue from the previous poses.
        """
        wanted, ends = self._turns.turn(frames)
        q, self._before = self._orienter.solved(ends, self._before)
        if clip is not None:
            turns = wanted.reshape(*wanted.shape[:2], 3, 3)
            smooth_steps(TRUNK, clip, turns, q)
            follow_arms(self._limbs, self._source, frames, clip, turns, q)
            smooth_steps(LEGS, clip, turns, q)
            self._hands.turn(self._target, frames, q, clip.fps)
            if self._relaxed:
                self._hands.relax(self._target, frames, q, clip.fps)
            return q
        if self._live is None:
            self._live = self._hands.live(self._target), self._hands.idle(self._target) if self._relaxed else None
        fingers, idle = self._live
        if fingers is not None:
            fingers.turn(frames, q)
        if idle is not None:
            q[:, idle[0]] = idle[1]
        return q


def _as_limb(plane: Plane, number: Mapping[str, int]) -> SwingLimb:
    """Return a limb with its swing plane in the kernel's form; ``number`` has the index of each part, by role."""
    roles = plane.limb.roles
    numbers = {
        "HINGE_AXIS": plane.axis, "UPPER_REST": plane.rests, "UPPER_BONE": plane.bones, "UPPER_FRAME": plane.frames,
        "STRAIGHT": np.array(plane.clear), "SURE": np.array(SURE),
    }  # fmt: skip
    if plane.foot is not None:
        numbers["FOOT_REST"] = plane.foot
    parts = roles[:2] if plane.foot is None else roles
    return SwingLimb(tuple(number[role] for role in parts), plane.limb.points, numbers)
