"""Compute velocities and accelerations of a motion from finite differences of its frames."""

from __future__ import annotations

import numpy as np

from synovia.model.geometry import Array, rotation_between
from synovia.model.joint import Kind
from synovia.model.motion import Motion


def velocities(motion: Motion) -> Array:
    """Return the velocity of each degree of freedom in each frame, (T, nv), in the order of ``skeleton.dof_names``.

    Units are radians and length units per second; rotations are about the axes of the joint's own frame. The velocity
    is that of the cubic polynomials through four frames (differences of fourth order), so that interpolation of
    positions, velocities and accelerations has about the jerk of their differences. It is clamped between the
    differences before and after the frame, so it never exceeds a limit that they keep. A single frame has velocity 0.
    """
    moves = steps(motion)
    if not len(moves):
        return np.zeros((len(motion), motion.skeleton.nv))
    before, after = np.concatenate([moves[:1], moves]), np.concatenate([moves, moves[-1:]])
    if len(moves) < 3:
        return 0.5 * (before + after)
    changes = np.diff(moves, axis=0)
    changes = np.concatenate([2.0 * changes[:1] - changes[1:2], changes, 2.0 * changes[-1:] - changes[-2:-1]])
    out = 0.5 * (before + after)
    out[1:-1] -= (changes[2:] - changes[:-2]) / 12.0
    out[0] -= changes[0] / 2.0 + (changes[1] - changes[0]) / 6.0
    out[-1] += changes[-1] / 2.0 - (changes[-1] - changes[-2]) / 6.0
    before[0] = after[-1] = 0.0  # at the ends, the only difference is the bound
    return np.clip(out, np.minimum(before, after), np.maximum(before, after))


def accelerations(motion: Motion) -> Array:
    """Return the acceleration of each degree of freedom in each frame, (T, nv), from second differences of the frames.

    The values of the first and last frame are extrapolated with constant jerk, or equal to those of their neighbours
    if these are smaller. Clips of fewer than three frames have 0.
    """
    moves = steps(motion)
    if len(moves) < 2:
        return np.zeros((len(motion), motion.skeleton.nv))
    inner = np.diff(moves, axis=0) * motion.fps
    if len(inner) < 2:
        return np.concatenate([inner[:1], inner, inner[-1:]])
    first = _smaller(2.0 * inner[0] - inner[1], inner[0])
    last = _smaller(2.0 * inner[-1] - inner[-2], inner[-1])
    return np.concatenate([first[None], inner, last[None]])


def _smaller(values: Array, others: Array) -> Array:
    """Return the value with the smaller absolute value of each pair."""
    return np.where(np.abs(values) < np.abs(others), values, others)


def steps(motion: Motion) -> Array:
    """Return the difference of each frame from the previous frame, per second, (T - 1, nv)."""
    parts: list[Array] = []
    for row, joint in enumerate(motion.skeleton.joints):
        values = motion.q[:, motion.skeleton.q_slice(row)]
        if joint.kind in (Kind.BALL, Kind.FREE):
            parts += [np.diff(values[:, :-4], axis=0), rotation_between(values[:-1, -4:], values[1:, -4:])]
        else:
            parts.append(np.diff(values, axis=0))
    return np.concatenate(parts, axis=1) * motion.fps
