"""Compute velocities and accelerations of a motion from finite differences of its frames."""

from __future__ import annotations

import numpy as np

from synovia.model.geometry import Array, rotation_between
from synovia.model.joint import Kind
from synovia.model.motion import Motion


def velocities(motion: Motion) -> Array:
    """Return the velocity of each degree of freedom in each frame, (T, nv), in the order of ``skeleton.dof_names``.

    Units are radians and length units per second; rotations are about the axes of the joint's own frame. The velocity
    in a frame is the mean of the differences before and after it, so it never exceeds both. The first and last frame
    have one-sided differences; a single frame has velocity 0.
    """
    steps = _steps(motion)
    if not len(steps):
        return np.zeros((len(motion), motion.skeleton.nv))
    return 0.5 * (np.concatenate([steps[:1], steps]) + np.concatenate([steps, steps[-1:]]))


def accelerations(motion: Motion) -> Array:
    """Return the acceleration of each degree of freedom in each frame, (T, nv), from second differences of the frames.

    The first and last frame have the values of their neighbours; clips of fewer than three frames have 0.
    """
    steps = _steps(motion)
    if len(steps) < 2:
        return np.zeros((len(motion), motion.skeleton.nv))
    inner = np.diff(steps, axis=0) * motion.fps
    return np.concatenate([inner[:1], inner, inner[-1:]])


def _steps(motion: Motion) -> Array:
    """Return the difference of each frame from the previous frame, per second, (T - 1, nv)."""
    parts: list[Array] = []
    for row, joint in enumerate(motion.skeleton.joints):
        values = motion.q[:, motion.skeleton.q_slice(row)]
        if joint.kind in (Kind.BALL, Kind.FREE):
            parts += [np.diff(values[:, :-4], axis=0), rotation_between(values[:-1, -4:], values[1:, -4:])]
        else:
            parts.append(np.diff(values, axis=0))
    return np.concatenate(parts, axis=1) * motion.fps
