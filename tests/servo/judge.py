"""An outside judge of commands: divided differences of joint values alone, with slack for rounding."""

import numpy as np
from scipy.spatial.transform import Rotation

SLACK = 1e-9


def differences(values, times):
    """Velocity, acceleration and jerk as divided differences; ``times`` are those of the ticks."""
    v = np.diff(values, axis=0) / times[:, None]
    a = 2.0 * np.diff(v, axis=0) / (times[1:] + times[:-1])[:, None]
    j = 3.0 * np.diff(a, axis=0) / (times[2:] + times[1:-1] + times[:-2])[:, None]
    return v, a, j


def turn_differences(quats, times):
    """The same for rotations, (T, 4), in the joint's own frame."""
    R = Rotation.from_quat(quats)
    v = (R[:-1].inv() * R[1:]).as_rotvec() / times[:, None]
    a = 2.0 * np.diff(v, axis=0) / (times[1:] + times[:-1])[:, None]
    j = 3.0 * np.diff(a, axis=0) / (times[2:] + times[1:-1] + times[:-2])[:, None]
    return v, a, j


def excesses(found, limits, ulp, h):
    """How far the largest of each difference is beyond its limit and the slack, as a part of the limit."""
    rounding = (4.0 * ulp / h, 4.0 * ulp / h**2, 8.0 * ulp / h**3)
    out = []
    for values, limit, slack in zip(found, limits, rounding, strict=True):
        if limit is None:
            continue
        out.append(np.max(np.abs(values) - limit * (1.0 + SLACK) - slack, initial=-np.inf))
    return max(out)
