"""Frame-to-frame rotations of joints, jumps, and joints at their limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array
from synovia.model.limits import Interval, SwingTwist
from synovia.model.motion import Motion
from synovia.model.tree import ancestors
from synovia.retargeting.judging.actor import Actor

Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]
_AROUND: Final = 4  # number of steps on each side with which a step is compared
_MORE: Final = 4.0  # a jump is at least this many times the median of the steps around it
_SUDDEN: Final = 2.5  # a jump is at least this many times each adjacent step
_LEAST: Final = np.radians(8.0)  # radians: a jump exceeds these multiples by at least this
_LEAST_WAY: Final = 0.04  # leg lengths: the same for the path of the hips
_ALIKE: Final = 1.5  # a step comes from the source if it is at most this many times the source's step
_AT: Final = 1e-6  # fraction of its range: a joint that is nearer to a limit is at the limit


@dataclass(frozen=True, eq=False)
class Steps:
    """Rotations of one joint from frame to frame.

    Args:
        joint: Name of the joint.
        row: Row of the joint.
        limb: Role of the part that the joint rotates; ``""`` if it rotates no part or several.
        angles: Rotation from each frame to the next, (T - 1,), radians.
        double: Rotation from each frame to the next but one, (T - 2,), radians.
        source: Rotations of the part in the source, relative to the part above it, (T - 1,), radians; None if there are
            none.
    """

    joint: str
    row: int
    limb: str
    angles: Array
    double: Array
    source: Array | None

    @property
    def largest(self) -> float:
        """Largest step, radians."""
        return float(self.angles.max(initial=0.0))

    @property
    def frame(self) -> int:
        """The frame to which the largest step leads."""
        return int(self.angles.argmax()) + 1 if len(self.angles) else 0


def joint_steps(
    motion: Motion, limbs: dict[int, str], source: dict[str, tuple[Array, Array]], breaks: Sequence[int] = ()
) -> list[Steps]:
    """Return frame-to-frame rotations of joints.

    Args:
        motion: The clip.
        limbs: Role of the part that each joint rotates, by row.
        source: Rotations of each part in the source, as ``part_steps`` returns them.
        breaks: Frames that do not continue the frame before them; steps to and over them count as 0.
    """
    out: list[Steps] = []
    skeleton = motion.skeleton
    for row, joint in enumerate(skeleton.joints):
        place = skeleton.q_slice(row)
        if joint.kind is Kind.HINGE:
            value = motion.q[:, place.start]
            one, two = (np.abs(value[k:] - value[:-k]) for k in (1, 2))
            if joint.limit is None:
                one, two = (np.abs((step + np.pi) % (2.0 * np.pi) - np.pi) for step in (one, two))
        elif joint.kind in (Kind.BALL, Kind.FREE):
            quats = motion.q[:, place.stop - 4 : place.stop]
            one, two = (_between(quats[:-k], quats[k:]) for k in (1, 2))
        else:
            continue
        _without_breaks(one, two, breaks)
        limb = limbs.get(row, "")
        out.append(Steps(joint.name, row, limb, one, two, source[limb][0] if limb in source else None))
    return out


def _between(a: Array, b: Array) -> Array:
    """Return the angles of the rotations between unit quaternions (T, 4), radians."""
    apart = np.minimum(np.linalg.norm(a - b, axis=1), np.linalg.norm(a + b, axis=1))
    return 4.0 * np.arcsin(np.minimum(0.5 * apart, 1.0))


def _without_breaks(one: Array, two: Array, breaks: Sequence[int]) -> None:
    """Set steps over one frame, (T - 1,), and over two frames, (T - 2,), to 0 where they lead over a break."""
    for frame in breaks:
        one[frame - 1] = two[max(frame - 2, 0) : frame] = 0.0


def limbs_of_joints(skeleton: Skeleton, rows: dict[str, int]) -> dict[int, str]:
    """Return the role of the part that each joint rotates, by row: the nearest at or below it; "" for several parts."""
    parts = {row: role for role, row in rows.items()}
    out: dict[int, str] = {}
    for row, role in parts.items():
        for above in ancestors(skeleton.parents, row):
            if above in parts and above != row:
                break
            if above in out and out[above] != role:  # several parts begin here
                out[above] = ""
            else:
                out[above] = role
    return out


def part_steps(actor: Actor) -> dict[str, tuple[Array, Array]]:
    """Return, by role, the rotations of each part relative to the part above it.

    Each value is a pair: rotations over one frame, (T - 1,), and over two frames, (T - 2,), radians.
    """
    parts = {row: role for role, row in actor.rows.items()}
    parents = actor.motion.skeleton.parents
    out: dict[str, tuple[Array, Array]] = {}
    for row, role in parts.items():
        above = next((one for one in ancestors(parents, row)[1:] if one in parts), None)
        R = actor.turns(row) if above is None else np.swapaxes(actor.turns(above), 1, 2) @ actor.turns(row)
        out[role] = rotation_steps(R, 1), rotation_steps(R, 2)
        _without_breaks(*out[role], actor.breaks)
    return out


def rotation_steps(R: Array, ahead: int) -> Array:
    """Return the angles of the rotations between matrices (T, 3, 3) that are ``ahead`` frames apart, radians."""
    off = np.linalg.norm((R[ahead:] - R[:-ahead]).reshape(max(len(R) - ahead, 0), 9), axis=1)
    return 2.0 * np.arcsin(np.minimum(off / np.sqrt(8.0), 1.0))


def jumps(steps: Array, double: Array, source: Array | None = None, least: float = _LEAST) -> Rows:
    """Return the frames to which jumps lead.

    A jump is a step that is far larger than the steps around it. Fast motion has large steps too, but begins and ends
    over several frames. So a jump is one step that is far larger than both neighbours (the pose switches), or a pair of
    adjacent steps that are far larger than their neighbours and cancel each other (an outlier of one frame).

    Args:
        steps: Size of each step, (T - 1,).
        double: Size of the step over two frames, (T - 2,).
        source: Steps of the source; steps that are about as large there are left out.
        least: Smallest excess of a jump over the multiples of the steps around it.
    """
    count = len(steps)
    if not count:
        return np.zeros(0, np.int64)
    padded = np.pad(steps, 2, mode="reflect" if count > 2 else "edge")
    before, after = padded[1:-3], padded[3:-1]
    switch = steps > _SUDDEN * np.maximum(before, after) + least
    if count > 1:
        pair = np.minimum(steps[:-1], steps[1:])
        apart = (pair > _SUDDEN * np.maximum(padded[1:-4], padded[4:-1]) + least) & (double < pair)
        switch[:-1] |= apart
        switch[1:] |= apart
    large = np.flatnonzero(switch)
    around = np.pad(steps, _AROUND, constant_values=np.nan)
    if len(large) and count > 3:
        windows = sliding_window_view(around, 2 * _AROUND + 1)[large].copy()
        windows[:, _AROUND] = np.nan
        large = large[steps[large] > _MORE * np.nanmedian(windows, axis=1) + least]
    if source is not None and len(large):
        near = np.max([source[np.clip(large + k, 0, len(source) - 1)] for k in (-1, 0, 1)], axis=0)
        large = large[steps[large] > _ALIKE * near + least]
    return large + 1


def hip_jumps(actor: Actor) -> Rows:
    """Return the frames to which jumps of the hips lead, relative to the median displacement around them."""
    way = np.diff(actor.hips, axis=0) / actor.leg
    if len(way) < 3:
        return np.zeros(0, np.int64)
    for frame in actor.breaks:
        way[frame - 1] = way[frame - 2 if frame > 1 else 1]
    padded = np.pad(way, ((_AROUND, _AROUND), (0, 0)), mode="reflect" if len(way) > _AROUND else "edge")
    way = way - np.median(sliding_window_view(padded, 2 * _AROUND + 1, axis=0), axis=-1)
    return jumps(np.linalg.norm(way, axis=1), np.linalg.norm(way[1:] + way[:-1], axis=1), least=_LEAST_WAY)


def at_limits(motion: Motion) -> dict[int, Bools]:
    """Return, by row, masks of the frames in which joints with a range are at a limit, (T,)."""
    out: dict[int, Bools] = {}
    for row, joint in enumerate(motion.skeleton.joints):
        q = motion.q[:, motion.skeleton.q_slice(row)]
        if isinstance(joint.limit, Interval) and joint.kind in (Kind.HINGE, Kind.SLIDE):
            low, high = motion.skeleton.value_range(row)
            slack = _AT * (high - low) if np.isfinite(high - low) else _AT
            if high - low > slack:
                out[row] = (q[:, 0] <= low + slack) | (q[:, 0] >= high - slack)
        elif isinstance(joint.limit, SwingTwist) and joint.kind is Kind.BALL:
            out[row] = _at_swing_twist(joint.limit, q)
    return out


def _at_swing_twist(limit: SwingTwist, quats: Array) -> Bools:
    """Return a mask of the frames in which a ball joint, (T, 4), is at its swing or twist limit."""
    _, twist = limit.components(quats)
    low, high = limit.twist
    bounded = high - low < 2.0 * np.pi - _AT
    return (swing_used(limit, quats) >= 1.0 - 1e-4) | (bounded & ((twist <= low + 1e-5) | (twist >= high - 1e-5)))


def swing_used(limit: SwingTwist, quats: Array) -> Array:
    """Return the quadratic form of the swing limit's ellipse for rotations (n, 4), (n,): 1 at the limit."""
    swing, _ = limit.components(quats)
    half = [np.where(swing[:, k] >= 0.0, pair[1], pair[0]) for k, pair in enumerate((limit.x, limit.y))]
    return np.asarray(np.sum([(swing[:, k] / np.maximum(half[k], 1e-9)) ** 2 for k in (0, 1)], axis=0), np.float64)
