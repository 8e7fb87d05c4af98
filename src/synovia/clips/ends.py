"""Calibration frames at the ends of a clip: a T-pose, or the pose of the file's zeros, before or after the motion.

Recordings often begin or end with such frames; between them and the motion, the body jumps from one frame to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.model import Kind, Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, unit
from synovia.model.motion import Motion

_JUMP: Final = 0.05  # fraction of the skeleton's size: a joint that moves at least this far between two frames jumps
_CLEAR: Final = 3.0  # a jump is at least this many times the largest step of the half second next to it
_STILL: Final = 0.3  # body sizes per second: largest speed of a joint while a pose is held
_HELD: Final = 0.5  # seconds: a T-pose that is held for this time is a calibration pose even without a jump
_NEAR: Final = 0.5  # seconds before or after a jump: the steps in this time are compared with the jump
# smallest cosine between arms and the shoulder line, and between legs and trunk, in a T-pose
_LIMB: Final = np.cos(np.radians(25.0))
_AT_REST: Final = 0.05  # radians: in the rest pose, joints deviate from their rest values by less than this
_SAME_RATE: Final = 1e-3  # relative difference up to which frame rates count as equal, because files round them
_T: Final = "the T-pose"
_ZERO: Final = "the rest pose of the file"
_APART: Final = "a pose apart from the motion"
_ARM: Final = ("upper_arm", "lower_arm", "hand")
_LEG: Final = ("upper_leg", "lower_leg", "foot")


@dataclass(frozen=True, slots=True)
class Ends:
    """The frames of a clip that remain when calibration frames at its ends are cut off.

    Args:
        first: First frame of the motion.
        end: The frame after the motion's last frame.
        notes: A sentence about each end that has calibration frames.
    """

    first: int
    end: int
    notes: tuple[str, ...] = ()

    def of(self, motion: Motion) -> Motion:
        """Return the part of a clip between the ends; the clip itself if nothing is cut off."""
        if self.end - self.first == len(motion):
            return motion
        return motion[self.first : self.end]


def find_ends(motion: Motion) -> Ends:
    """Find the calibration frames at the ends of a clip.

    A jump is a step of at least 5 % of the body's size, and at least three times the largest step in the half second
    next to it.
    If the pose is neither a T-pose nor the rest pose, the jump must be three times the largest other step of the clip.
    Frames before the first jump and after the last one are calibration frames if the body holds still in them.
    Frames at an end in which a T-pose is held for half a second are calibration frames too.

    Args:
        motion: The clip.
    """
    count, skeleton = len(motion), motion.skeleton
    if count < 4:
        return Ends(0, count)
    places = motion.positions()
    steps = np.linalg.norm(np.diff(places, axis=0), axis=2).max(axis=1) / (skeleton.size or 1.0)
    poses = [(_T, _t_poses(skeleton, places)), (_ZERO, _rest_poses(motion))]
    first, start = _calibration(steps, poses, motion.fps)
    after, stop = _calibration(steps[::-1], [(name, kept[::-1]) for name, kept in poses], motion.fps)
    notes: list[str] = []
    if first:
        notes.append(_note(motion, 0, first, start, steps[first - 1], first))
    if after:
        notes.append(_note(motion, count - after, count, stop, steps[count - after - 1], count - after - 1))
    return Ends(first, count - after, tuple(notes))


def find_shared_ends(motion: Motion, other: Motion, *, trim: bool) -> tuple[Ends, Ends]:
    """Find the frames to cut off two clips of one motion, such as a clip and its source, to align their frames.

    If only one clip still has its calibration frames, it loses them. Two clips of equal length lose the same frames:
    those that are calibration frames in either clip.

    Args:
        motion: A clip.
        other: The clip that is shown with it.
        trim: Whether to cut off calibration frames that both clips still have.
    """
    own, others = find_ends(motion), find_ends(other)
    whole = Ends(0, len(motion), own.notes), Ends(0, len(other), others.notes)
    same_rate = abs(motion.fps - other.fps) <= _SAME_RATE * motion.fps
    if same_rate and len(motion) == len(other):
        first, end = max(own.first, others.first), min(own.end, others.end)
        both = Ends(first, end, own.notes), Ends(first, end, others.notes)
        return both if trim and first < end else whole
    if same_rate and others.end - others.first == len(motion):
        return whole[0], others
    if same_rate and own.end - own.first == len(other):
        return own, whole[1]
    return (own, others) if trim else whole


def _note(motion: Motion, first: int, end: int, pose: str, step: float, following: int) -> str:
    """Return a sentence about calibration frames [first, end); ``following`` is the motion's frame next to them."""
    frames = f"frame {first} is" if end - first == 1 else f"frames {first} to {end - 1} are"
    if step < _JUMP:
        return f"{frames} {pose}"
    length, meters = step * motion.skeleton.size, motion.skeleton.meters_per_unit
    far = f"{length:.3g} units" if meters is None else f"{length * meters:.2f} m"
    return f"{frames} {pose}, {far} away from frame {following}"


def _calibration(steps: Array, poses: list[tuple[str, NDArray[np.bool_]]], fps: float) -> tuple[int, str]:
    """Return the number of calibration frames at the beginning, and the name of the pose in them; 0 if there are none.

    Args:
        steps: Largest displacement of a joint from each frame to the next, (T - 1,), fractions of the skeleton's size.
        poses: Names of known poses, each with the mask of the frames in which the body has this pose.
        fps: Frames per second.
    """
    most = len(steps) // 2
    moves = np.flatnonzero(steps > _STILL / fps)
    # number of frames at the beginning in which the body holds still
    cut = int(moves[0]) if len(moves) else len(steps)
    near = steps[cut + 1 : cut + 1 + max(round(_NEAR * fps), 2)]
    if cut < most and steps[cut] > max(_JUMP, _CLEAR * float(near.max(initial=0.0))):
        for name, kept in poses:
            if kept[: cut + 1].all():
                return cut + 1, name
        if steps[cut] > _CLEAR * float(np.delete(steps, cut).max()):
            return cut + 1, _APART
        return 0, ""
    name, kept = poses[0]
    held = int(np.argmin(np.append(kept[: cut + 1], False)))
    return (held, name) if _HELD * fps <= held <= most else (0, "")


def _t_poses(skeleton: Skeleton, places: Array) -> NDArray[np.bool_]:
    """Return a mask of the frames in which the body is in a T-pose, (T,); all False if it has no arms and legs."""
    row = skeleton.role_rows
    if any(f"{side}_{part}" not in row for side in SIDES for part in (*_ARM, *_LEG)):
        return np.zeros(len(places), bool)

    def way(a: str, b: str) -> Array:
        return unit(places[:, row[b]] - places[:, row[a]])

    across = way("right_upper_arm", "left_upper_arm")
    hips = (places[:, row["left_upper_leg"]] + places[:, row["right_upper_leg"]]) / 2.0
    neck = (places[:, row["left_upper_arm"]] + places[:, row["right_upper_arm"]]) / 2.0
    trunk = unit(neck - hips)
    least = np.ones(len(places))
    for side in SIDES:
        for parts, along in ((_ARM, across if side == "left" else -across), (_LEG, -trunk)):
            for a, b in pairwise(parts):
                least = np.minimum(least, np.sum(way(f"{side}_{a}", f"{side}_{b}") * along, axis=1))
    return least > _LIMB


def _rest_poses(motion: Motion) -> NDArray[np.bool_]:
    """Return a mask of the frames in which every joint except the root is at rest, (T,)."""
    skeleton, q = motion.skeleton, motion.q
    inner = [r for r, joint in enumerate(skeleton.joints) if joint.kind.q_size and skeleton.parents[r] >= 0]
    at_rest = np.full(len(q), len(inner) > 0)
    for row in inner:
        kind, at = skeleton.joints[row].kind, skeleton.q_slice(row)
        rest = skeleton.rest_q[at]
        if kind in (Kind.BALL, Kind.FREE):
            cosine = np.abs(q[:, at.stop - 4 : at.stop] @ rest[-4:])
            at_rest &= 2.0 * np.arccos(np.minimum(cosine, 1.0)) < _AT_REST
        elif kind is Kind.HINGE:
            at_rest &= np.abs(q[:, at.start] - rest[0]) < _AT_REST
    return at_rest
