"""The parts of a body in one clip: their positions with z up, and the directions of their bones."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from synovia.clips.guess import nearest_rotations
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.axes import of_joint
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.up import Lines
from synovia.model.geometry import Array, align_z, axis_vector, between, unit
from synovia.model.motion import Motion
from synovia.model.tree import ancestors
from synovia.retargeting.body import above_zero
from synovia.retargeting.bones import steadied

SIDED: Final = ("upper_arm", "lower_arm", "upper_leg", "lower_leg", "foot")
BONES: Final = ("trunk", "head", *(f"{side}_{part}" for part in SIDED for side in SIDES))
_END: Final = {"upper_arm": "lower_arm", "lower_arm": "hand", "upper_leg": "lower_leg", "lower_leg": "foot",
               "foot": "toes"}  # fmt: skip
_FOREARM: Final = 0.5  # fraction of the bone above: a joint must be at least this far away to be the end of a limb
_TOGETHER: Final = 0.01  # fraction of the skeleton's size: hinges that are closer coincide
_TWISTS: Final = 0.95  # cosine between a hinge's axis and the direction to the part, above which the hinge only twists
_LEVEL: Final = 0.5  # a bone is nearly level below this vertical component
_SOLE: Final = 0.87  # a direction from the ankle points to the sole above this vertical component
_STEEP: Final = 0.5  # a foot has no heading if the horizontal part of its direction is shorter


@dataclass(frozen=True, eq=False)
class Actor:
    """A clip of a body.

    Args:
        motion: The clip.
        rows: Row of each part, by role.
        up: Direction away from the ground, (3,), in the axes of the clip.
        carrier: For parts of a body: row of the joint in whose frame everything is expressed, -1 for the world. None
            for a body with hips and legs, which is expressed in the world.
        breaks: Frames that do not continue the frame before them.
    """

    motion: Motion
    rows: Mapping[str, int]
    up: Array
    carrier: int | None = None
    breaks: Sequence[int] = ()

    @cached_property
    def frames(self) -> Array:
        """World frames of all joints, (T, n, 12), in the axes of the clip or of the carrier."""
        frames = self.motion.frames()
        eye = np.tile(np.append(np.eye(3).ravel(), np.zeros(3)), (frames.shape[1], 1))
        return frames if self.carrier is None else steadied(frames, self.carrier, eye)

    @cached_property
    def at_rest(self) -> Actor | None:
        """The body in its file's rest pose; None if this pose does not stand, or the body has no legs."""
        if not self.whole:
            return None
        skeleton = self.motion.skeleton
        axis = Lines.of(skeleton, self.rows).axis_at(np.array(skeleton.rest_pose().positions))
        rest = Motion(skeleton, skeleton.rest_q[None], self.motion.fps)
        return None if axis is None else Actor(rest, self.rows, axis_vector(axis))

    @property
    def whole(self) -> bool:
        """Whether the body has hips and legs, so that path, feet and posture can be judged."""
        return self.carrier is None

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """Pieces of consecutive frames, each as (first frame, end)."""
        return list(itertools.pairwise((0, *self.breaks, len(self.motion))))

    @cached_property
    def upright(self) -> Array:
        """Rotation (3, 3) from the axes of the clip to axes with z up."""
        return align_z(self.up).T

    @cached_property
    def places(self) -> Array:
        """Positions of all joints, (T, n, 3), in axes with z up."""
        return self.frames[..., 9:] @ self.upright.T

    def turns(self, row: int) -> Array:
        """Return the orientations of a joint, (T, 3, 3), in axes with z up."""
        return self.upright @ self.frames[:, row, :9].reshape(-1, 3, 3)

    def at(self, role: str) -> Array:
        """Return the start of a part, (T, 3): the positions of the first joint that rotates it."""
        return self.places[:, self._first[role]]

    @cached_property
    def _first(self) -> dict[str, int]:
        """Row of the first joint that rotates each part, by role."""
        return {role: first_row(self.motion.skeleton, self.rows, role) for role in self.rows}

    def middle(self, part: str) -> Array:
        """Return the midpoint of a part's left and right joints, (T, 3)."""
        return 0.5 * (self.at(f"left_{part}") + self.at(f"right_{part}"))

    def across(self, part: str) -> Array | None:
        """Return the vectors from the right to the left joint of a part, (T, 3); None if one is missing."""
        if not all(f"{side}_{part}" in self.rows for side in SIDES):
            return None
        return self.at(f"left_{part}") - self.at(f"right_{part}")

    @cached_property
    def leg(self) -> float:
        """Mean length of the legs: thigh plus shin (only the thigh if nothing is below the knee), length units.

        For bodies without two legs, the size of the skeleton.

        Raises:
            InputError: If it is 0.
        """
        if not self.whole:
            return above_zero(self.motion.skeleton.size, self.motion.skeleton)
        total = 0.0
        for side in SIDES:
            places = [self.at(f"{side}_{part}")[0] for part in ("upper_leg", "lower_leg")]
            end = self.end_row(f"{side}_lower_leg")
            places += [] if end is None else [self.places[0, end]]
            total += sum(float(np.linalg.norm(b - a)) for a, b in itertools.pairwise(places))
        return above_zero(total / 2.0, self.motion.skeleton)

    @cached_property
    def hips(self) -> Array:
        """Positions of the midpoint of the hip joints, (T, 3); zeros for parts of a body."""
        if not self.whole:
            return np.zeros((len(self.motion), 3))
        return self.middle("upper_leg")

    def length(self, bone: str) -> float:
        """Return the length of a limb's bone in the first frame, length units; NaN if the body lacks it."""
        end = self.end_row(bone) if bone in self.rows else None
        return float("nan") if end is None else float(np.linalg.norm(self.places[0, end] - self.at(bone)[0]))

    def below(self, role: str) -> list[int]:
        """Return the rows of a part and of all its descendants."""
        top, parents = self.rows[role], self.motion.skeleton.parents
        return [row for row in range(top, len(parents)) if top in ancestors(parents, row)]

    def end_row(self, bone: str) -> int | None:
        """Return the row at the end of a limb's bone: the next part, else a descendant that is far enough away."""
        side, part = bone.split("_", 1)
        end = f"{side}_{_END[part]}"
        if end in self.rows:
            return self._first[end]
        if part in ("upper_arm", "upper_leg") or bone not in self.rows:
            return None
        start = self.at(bone)[0]
        rows = self.below(bone)[1:]
        far = [float(np.linalg.norm(self.places[0, row] - start)) for row in rows]
        if part == "foot":
            return rows[int(np.argmax(far))] if rows and max(far) > 0.05 * self.leg else None
        above = f"{side}_{'upper_arm' if part == 'lower_arm' else 'upper_leg'}"
        least = _FOREARM * float(np.linalg.norm(start - self.at(above)[0])) if above in self.rows else 0.0
        return next((row for row, way in zip(rows, far, strict=True) if way > max(least, 1e-9)), None)

    def _joins_leg(self, side: str) -> bool:
        """Return whether a level thigh only joins a leg of one bone to the hips: nothing is below its shin."""
        thigh, shin = f"{side}_upper_leg", f"{side}_lower_leg"
        if shin not in self.rows or self.end_row(shin) is not None:
            return False
        return abs(float(unit(self.at(shin) - self.at(thigh))[:, 2].mean())) < _LEVEL

    def ends_at_knee(self, shin: str) -> bool:
        """Return whether nothing is below a knee; False if the thigh only joins a leg of one bone to the hips."""
        return shin in self.rows and self.end_row(shin) is None and not self._joins_leg(shin.partition("_")[0])

    def bone(self, bone: str, trunk_end: str = "upper_arm") -> Array | None:
        """Return the unit directions of a bone, (T, 3); None if the body does not have it.

        Args:
            bone: A name of ``BONES``.
            trunk_end: Where the trunk ends: ``"upper_arm"`` (between the shoulders), ``"neck"`` or ``"head"``.
        """
        if bone == "trunk":
            if trunk_end == "upper_arm":
                end = self.middle(trunk_end) if self.across(trunk_end) is not None else None
            else:
                end = self.at(trunk_end) if trunk_end in self.rows else None
            return None if end is None else unit(end - self.hips)
        if bone == "head":
            return unit(self.at("head") - self.at("neck")) if {"head", "neck"} <= self.rows.keys() else None
        end = self.end_row(bone) if bone in self.rows else None
        if end is None or (bone.endswith("upper_leg") and self._joins_leg(bone.split("_", 1)[0])):
            return None
        way = self.places[:, end] - self.at(bone)
        if float(np.linalg.norm(way[0])) <= 1e-6 * self.leg:
            return None
        way = unit(way)
        sole = bone.endswith("foot") and float(np.median(np.abs(way[:, 2]))) > _SOLE
        return None if sole else way


def first_row(skeleton: Skeleton, rows: Mapping[str, int], role: str) -> int:
    """Return the row of the first joint that rotates a part: its own joint, or the first of a group of hinges.

    A hinge that only twists a limb, as in the forearm, is not part of the group; the part's own joint lies on its axis.
    """
    row = rows[role]
    if skeleton.joints[row].kind is not Kind.HINGE:
        return row
    others, group = set(rows.values()) - {row}, [row]
    for above in ancestors(skeleton.parents, row)[1:]:
        if above in others or skeleton.joints[above].kind is not Kind.HINGE:
            break
        group.append(above)
    if len(group) == 1:
        return row
    frames = np.array(skeleton.rest_pose().frames)
    axes = np.array([skeleton.joints[k].axis for k in group[::-1]])
    group = group[: len(group) - of_joint(frames[group[::-1]], axes, skeleton.size)]
    end = frames[row, 9:]
    for at in group[:0:-1]:
        way = end - frames[at, 9:]
        along = float(way @ frames[at, :9].reshape(3, 3) @ skeleton.joints[at].axis)
        far = float(np.linalg.norm(way))
        if far < _TOGETHER * skeleton.size or abs(along) < _TWISTS * far:
            return at
    return row


def angles(a: Array, b: Array) -> Array:
    """Return the angles between directions (..., 3), radians."""
    return np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), cosines(a, b))


def heading(d: Array) -> Array:
    """Return directions (T, 3) projected on the ground; NaN where a direction is too steep."""
    flat = d * (1.0, 1.0, 0.0)
    return np.where(np.linalg.norm(flat, axis=-1, keepdims=True) > _STEEP, unit(flat), np.nan)


def best_turn(pairs: Sequence[tuple[Array, Array]]) -> float:
    """Return the angle about z, radians, that best rotates the first vectors of all pairs to the second vectors."""
    sine = sum(float(np.sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])) for a, b in pairs)
    cosine = sum(float(np.sum(a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1])) for a, b in pairs)
    return float(np.arctan2(sine, cosine))


def best_rotation(pairs: Sequence[tuple[Array, Array]]) -> Array:
    """Return the rotation (3, 3) that best rotates the first directions to the second ones (Kabsch)."""
    return nearest_rotations(sum((b.T @ a for a, b in pairs), np.zeros((3, 3))))


def about_z(v: Array, angle: float) -> Array:
    """Rotate vectors (..., 3) about z."""
    c, s = np.cos(angle), np.sin(angle)
    return v @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])


def cosines(a: Array, b: Array) -> Array:
    """Return the dot products of vectors (..., 3); for unit vectors, these are cosines of angles."""
    return np.einsum("...i,...i->...", a, b)


def lean(actor: Actor) -> float:
    """Return the angle, degrees, by which a straight body leans in all frames; 0 if it does not lean."""
    up = np.array([0.0, 0.0, 1.0])
    found = Lines.of(actor.motion.skeleton, actor.rows).tilted(actor.places, up)
    return 0.0 if found is None else between(found, up)
