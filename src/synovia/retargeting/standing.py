"""Analyse how a body stands in a clip, and compute a rest pose from the clip.

If the rest pose of a file is meaningless, the motion shows what is needed: bones have lengths and directions in the
frames of their joints, knees bend backwards and elbows forwards, feet are level on the floor, and the trunk is upright
in the frames in which the body stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from synovia.clips.guess import nearest_rotations
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.roles import meeting
from synovia.model.geometry import Array, between, cross, unit
from synovia.retargeting.body import Body
from synovia.retargeting.bones import angle, bone, leftward, smallest_rotation, triad, trunk

_SPREAD: Final = 5.0  # degrees: a frame whose posture is this much worse than the best one has weight 0.6
_BENT: Final = 0.12  # if the mean sine of the bend of a knee or elbow is larger, its axis is known
_SIDEWAYS: Final = np.cos(np.radians(30.0))  # cosine: an axis of a trunk joint with a larger one is sideways
_FLAT: Final = 0.04  # leg lengths: scale of heights above the lowest, for the weights of frames with a flat foot
_FEW: Final = 30  # approximate number of frames for computing bone offsets
_RIGID: Final = 2.0  # degrees: a direction that varies less in a joint's frame is rigidly attached to the joint
_DOWN: Final = np.array([0.0, -1.0, 0.0])
_AHEAD: Final = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Standing:
    """A body in the frames of a clip.

    Args:
        body: The body; its rest pose may be meaningless.
        frames: World frames, (T, n, 12).
        up: Upward direction, (3,).
    """

    body: Body
    frames: Array
    up: Array

    @cached_property
    def _places(self) -> Array:
        """Positions of all joints, (T, n, 3)."""
        return self.frames[..., 9:]

    @cached_property
    def _rotations(self) -> Array:
        """Orientations of all joints, (T, n, 3, 3)."""
        return self.frames[..., :9].reshape(*self.frames.shape[:2], 3, 3)

    def _bone(self, role: str) -> Array | None:
        """Return the directions of a bone, (T, 3); None if the body lacks the part or the bone has no length."""
        return bone(self.body, role, self.frames) if role in self.body.roles else None

    @cached_property
    def heading(self) -> Array:
        """Axes of the body in each frame, (T, 3, 3); columns are left, up and ahead."""
        left = leftward(self.body, self.frames, self.up, ("upper_leg",))
        if float(np.linalg.norm(left, axis=-1).max()) < 1e-3 * self.body.skeleton.size:  # all legs begin at one point
            left = leftward(self.body, self.frames, self.up, ("lower_leg", "upper_arm", "shoulder"))
        left = unit(left)
        up = np.broadcast_to(self.up, left.shape)
        return np.stack([left, up, cross(left, up)], axis=-1)

    @cached_property
    def posture(self) -> Array:
        """Root mean square of two angles from vertical, (T,), degrees: the trunk's and the straighter leg's."""
        squares: list[Array] = []
        for side in SIDES:
            lines = [self._bone(f"{side}_{part}") for part in ("upper_leg", "lower_leg")]
            angles = [angle(line, -self.up) ** 2 for line in lines if line is not None]
            squares.append(np.mean(angles, axis=0) if angles else np.zeros(len(self.frames)))
        legs = np.minimum(*squares)
        back = trunk(self.body, self.frames)
        return np.sqrt(legs if back is None else 0.5 * (legs + angle(back, self.up) ** 2))

    @cached_property
    def weights(self) -> Array:
        """Weight of each frame, (T,); the frame that is nearest to standing has weight 1."""
        return np.exp(-0.5 * ((self.posture - self.posture.min()) / _SPREAD) ** 2)

    @cached_property
    def mean(self) -> Array:
        """Mean orientations of the joints while the body stands, (n, 3, 3), in the axes of the body."""
        return mean_rotations(np.swapaxes(self.heading, 1, 2)[:, None] @ self._rotations, self.weights)

    def bends(self, role: str, other: str) -> tuple[Array, float]:
        """Return the mean direction of another bone of a limb, normal to a part's bone, in the part's frame.

        Args:
            role: Role of the part, for example an upper leg.
            other: Role of the part above or below it.

        Returns:
            Unit vector, (3,), and the mean sine of the angle between the bones; 0 if the limb never bends.
        """
        line, across = self._bone(role), self._bone(other)
        if line is None or across is None:
            return np.zeros(3), 0.0
        across = across - np.sum(line * across, axis=-1, keepdims=True) * line
        local = np.einsum("tji,tj->i", self._rotations[:, self.body.roles[role]], across) / len(across)
        size = float(np.linalg.norm(local))
        return (local / size, size) if size > 1e-9 else (np.zeros(3), 0.0)

    def checks(self, frames: Array, axes: Array) -> Mapping[str, float]:
        """Return the angles between a pose and the clip, degrees, by check.

        Args:
            frames: World frames of the pose, (n, 12).
            axes: Axes of the body in the pose, (3, 3); columns are left, up and ahead.
        """
        R = frames[:, :9].reshape(-1, 3, 3)
        out: dict[str, float] = {}
        for side in SIDES:
            pole, size = self.bends(f"{side}_upper_leg", f"{side}_lower_leg")
            if size > _BENT:
                way = R[self.body.roles[f"{side}_upper_leg"]] @ pole
                way = way - (way @ axes[:, 1]) * axes[:, 1]
                out["knees"] = max(out.get("knees", 0.0), between(unit(way), -axes[:, 2]))
        row = self.body.roles["hips"]
        turn = (axes.T @ R[row]).T @ self.mean[row]
        off = float(np.degrees(np.arccos(np.clip((np.trace(turn) - 1.0) / 2.0, -1.0, 1.0))))
        out["clip"] = off / (1.0 + (float(self.posture.min()) / 20.0) ** 2)  # a clip that never stands shows little
        return out

    def own_checks(self) -> Mapping[str, float]:
        """Return deviations of the clip from the assumptions of the T-pose, degrees, by check.

        The assumptions are: the body stands in some frames, knees bend backwards, and toes point ahead. Left and right
        limbs determine which way is ahead.
        """
        out = {"posture": float(self.posture.min())}
        for side in SIDES:
            thigh, shin, foot = (self._bone(f"{side}_{part}") for part in ("upper_leg", "lower_leg", "foot"))
            if (
                shin is not None
                and thigh is not None
                and self.bends(f"{side}_upper_leg", f"{side}_lower_leg")[1] > _BENT
            ):
                bend = shin - np.sum(shin * thigh, axis=-1, keepdims=True) * thigh
                way = np.einsum("tji,tj->i", self.heading, bend)
                out["knees"] = max(out.get("knees", 0.0), between(unit(way * (1.0, 0.0, 1.0)), -_AHEAD))
            if shin is not None and foot is not None:
                below = np.maximum(-shin @ self.up, 0.0) ** 4  # a lifted foot may point anywhere
                way = np.einsum("tji,tj,t->i", self.heading, foot, below) * (1.0, 0.0, 1.0)
                if np.linalg.norm(way) > 0.2 * below.sum():
                    out["toes"] = max(out.get("toes", 0.0), between(unit(way), _AHEAD))
        return out

    def built(self, forward: Array) -> Array:
        """Return the T-pose that is computed from the clip, as world frames of all joints, (n, 12).

        Args:
            forward: Direction that the body faces in the T-pose, (3,), normal to ``up``.
        """
        turns = self._limb_turns()
        skeleton, mean = self.body.skeleton, self.mean
        fixed = {self.body.roles[role]: turn for role, turn in turns.items()}
        hands = {self.body.roles[role] for side in SIDES if (role := f"{side}_hand") in self.body.roles}
        heads = {self.body.roles[role] for role in ("neck", "head") if role in self.body.roles}
        stored = self.body.rest[:, :9].reshape(-1, 3, 3)
        sideways = self._sideways()
        parents = skeleton.parents
        of_hands, of_limbs, of_heads = (_with_below(rows, parents) for rows in (hands, set(fixed), heads))
        R = np.empty((len(skeleton), 3, 3))
        for row, parent in enumerate(parents):
            if row in fixed:
                R[row] = fixed[row]
            elif parent in of_hands:  # fingers as in the file: clips seldom move them
                R[row] = R[parent] @ stored[parent].T @ stored[row]
            elif row in of_limbs:
                R[row] = R[parent] @ mean[parent].T @ mean[row]
            else:
                R[row] = _sagittal(mean[row], sideways.get(row))
        back = trunk(self.body, self._assembled(R))
        if back is not None:
            upright = smallest_rotation(back, -_DOWN)
            own = [row for row in range(len(skeleton)) if row not in of_limbs and row not in of_heads]
            R[own] = upright @ R[own]
        return self._assembled(np.array([cross(self.up, forward), self.up, forward]).T @ R)

    def _sideways(self) -> dict[int, Array]:
        """Return, by row, the direction to the left in the frame of each joint that carries both arms or both legs."""
        out: dict[int, Array] = {}
        for part in ("upper_arm", "shoulder", "upper_leg"):
            pair = [f"{side}_{part}" for side in SIDES]
            if not all(role in self.body.roles for role in pair):
                continue
            row = meeting(self.body.skeleton, [self.body.roles[role] for role in pair])
            if row is None:
                continue
            left, right = (self.body.position(role, self.frames) for role in pair)
            local = np.einsum("tji,tj->ti", self._rotations[:, row], left - right)
            mean = local.mean(0)
            if np.linalg.norm(mean) > 0.01 * self.body.skeleton.size and _is_rigid(local, mean):
                out[row] = unit(mean)
        return out

    def _assembled(self, R: Array) -> Array:
        """Return world frames (n, 12) of joints with orientations R (n, 3, 3); offsets are those of the clip."""
        out = np.zeros((len(R), 12))
        out[:, :9] = R.reshape(-1, 9)
        parents = self.body.skeleton.parents
        shift = (R[list(parents)] @ self._offsets[:, :, None])[:, :, 0]
        for row, parent in enumerate(parents):
            if parent >= 0:
                out[row, 9:] = out[parent, 9:] + shift[row]
        return out

    @cached_property
    def _offsets(self) -> Array:
        """Median position of each joint in the frame of its parent, (n, 3); meaningless for a root."""
        few, parents = slice(None, None, max(1, len(self.frames) // _FEW)), list(self.body.skeleton.parents)
        apart = self._places[few] - self._places[few, parents]
        offsets: Array = np.einsum("tnji,tnj->tni", self._rotations[few, parents], apart)
        return np.asarray(np.median(offsets, axis=0), np.float64)

    def _limb_turns(self) -> dict[str, Array]:
        """Return the orientations of arms and legs in the T-pose, in the axes of the body, (3, 3), by role."""
        out: dict[str, Array] = {}
        for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
            for upper, lower, way, pole in (
                ("upper_leg", "lower_leg", _DOWN, -_AHEAD),
                ("upper_arm", "lower_arm", np.array([sign, 0.0, 0.0]), _AHEAD),
            ):
                one, two = f"{side}_{upper}", f"{side}_{lower}"
                for role, bend, where in (
                    (one, self.bends(one, two), pole),
                    (two, self.bends(two, one), -pole),
                ):
                    if role in self.body.roles:
                        out[role] = self._turn(role, way, where, bend)
            self._add_foot(side, out)
            hand, above = f"{side}_hand", f"{side}_lower_arm"
            if hand in self.body.roles and above in out:
                out[hand] = self._after(hand, above, out[above], np.array([sign, 0.0, 0.0]))
        return out

    def _turn(self, role: str, way: Array, pole: Array, bend: tuple[Array, float]) -> Array:
        """Return the orientation that points a bone along ``way``, and the bend of the limb towards ``pole``."""
        row = self.body.roles[role]
        line = self._bone(role)
        if line is None:
            return self.mean[row]
        local = unit(np.einsum("tji,tj->i", self._rotations[:, row], line))
        across, size = bend
        if size < _BENT:
            return smallest_rotation(self.mean[row] @ local, way) @ self.mean[row]
        across = unit(across - (across @ local) * local)
        return triad(way, pole) @ triad(local, across).T

    def _add_foot(self, side: str, out: dict[str, Array]) -> None:
        """Add the orientations of a foot, level as in the frames in which it is lowest, and of its toes to ``out``."""
        foot, toes = f"{side}_foot", f"{side}_toes"
        if foot not in self.body.roles:
            return
        row = self.body.roles[foot]
        rows = [self.body.roles[foot], *self.body.end_rows(foot)]
        heights = (self._places[:, rows] @ self.up).sum(1)
        above = (heights - np.quantile(heights, 0.05)) / (_FLAT * self.body.leg)
        weights = np.exp(-0.5 * np.maximum(above, 0.0) ** 2)
        level = unit(np.einsum("t,tji,j->i", weights, self._rotations[:, row], self.up))
        line = self._bone(foot)
        shin = f"{side}_lower_leg"
        if line is not None:
            local = unit(np.einsum("tji,tj->i", self._rotations[:, row], line))
            ahead = local - (local @ level) * level
        else:
            ahead = np.zeros(3)
        if np.linalg.norm(ahead) < 0.2:  # without toes, use the shin's direction
            below = self._relative(shin, foot, weights)
            ahead = (out[shin] @ below).T @ _AHEAD if shin in out else self.mean[row].T @ _AHEAD
            ahead = ahead - (ahead @ level) * level
        out[foot] = triad(-_DOWN, _AHEAD) @ triad(level, unit(ahead)).T
        if toes in self.body.roles:
            out[toes] = out[foot] @ self._relative(foot, toes, weights)

    def _after(self, role: str, above: str, turn: Array, way: Array) -> Array:
        """Return the orientation of a hand, (3, 3), that continues the bone above it as on average in the clip."""
        R = turn @ self._relative(above, role, np.ones(len(self.frames)))
        line = self._bone(role)
        if line is None:
            return R
        local = unit(np.einsum("tji,tj->i", self._rotations[:, self.body.roles[role]], line))
        return smallest_rotation(R @ local, way) @ R

    def _relative(self, above: str, role: str, weights: Array) -> Array:
        """Return the mean rotation of a part in the frame of another part above it, (3, 3)."""
        a, b = (self._rotations[:, self.body.roles[name]] for name in (above, role))
        return mean_rotations(np.swapaxes(a, 1, 2) @ b, weights)


def _with_below(rows: set[int], parents: Sequence[int]) -> set[int]:
    """Return given rows and the rows of all joints below them."""
    out = set(rows)
    for row, parent in enumerate(parents):
        if parent in out:
            out.add(row)
    return out


def mean_rotations(R: Array, weights: Array) -> Array:
    """Return the rotation matrices (..., 3, 3) closest to the weighted mean of R (T, ..., 3, 3)."""
    return nearest_rotations(np.tensordot(weights, R, axes=1))


def _is_rigid(ways: Array, mean: Array) -> bool:
    """Return whether vectors (T, 3) keep almost the same direction over time."""
    return float(np.quantile(angle(unit(ways), unit(mean)), 0.9)) < _RIGID


def _sagittal(turn: Array, sideways: Array | None) -> Array:
    """Return an orientation of the trunk, (3, 3), after removing rotations to the side.

    Args:
        turn: The orientation, (3, 3), in the axes of the body.
        sideways: The direction to the left in the frame of the joint; None for the axis that is nearly sideways.
    """
    if sideways is None:
        axis = int(np.argmax(np.abs(turn[0])))
        if abs(turn[0, axis]) < _SIDEWAYS:
            return turn
        here = np.sign(turn[0, axis]) * turn[:, axis]
    else:
        here = turn @ sideways
    return smallest_rotation(here, np.array([1.0, 0.0, 0.0])) @ turn
