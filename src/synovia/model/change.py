"""Changes of poses: joint-wise differences between poses, and interpolation between them.

A change has the form of joint values, (nq,): differences for scalars; for rotations, the quaternion c with second =
first · c. All functions accept leading axes, such as an axis of frames.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synovia.kernels.layout import BLOCK, BLOCK_Q, TURN
from synovia.model.geometry import Array, quat_product, rotation_between, times_exp
from synovia.model.pose import Posable


def turns(skeleton: Posable) -> NDArray[np.int64]:
    """Return the indices of the quaternions in joint values, (n, 4)."""
    variables = skeleton.tables.variables
    return variables[variables[:, BLOCK] == TURN, BLOCK_Q][:, None].astype(np.int64) + np.arange(4)


def no_change(skeleton: Posable) -> Array:
    """Return the change that leaves joint values unchanged, (nq,)."""
    out = np.zeros(skeleton.nq)
    out[turns(skeleton)] = (0.0, 0.0, 0.0, 1.0)
    return out


def change_between(skeleton: Posable, a: Array, b: Array) -> Array:
    """Return the change (..., nq) from joint values a to b."""
    out, at = b - a, turns(skeleton)
    out[..., at] = quat_product(a[..., at] * (-1.0, -1.0, -1.0, 1.0), b[..., at])
    return out


def changed(skeleton: Posable, q: Array, change: Array) -> Array:
    """Return joint values (..., nq) after a change; mimic joints follow their leaders."""
    out, at = q + change, turns(skeleton)
    out[..., at] = quat_product(q[..., at], change[..., at])
    return skeleton.follow(out)


def blend(skeleton: Posable, a: Array, b: Array, weight: float | Array, *, follow: bool = True) -> Array:
    """Interpolate joint values, or changes, between a (weight 0) and b (weight 1), with slerp for rotations.

    Args:
        skeleton: The skeleton.
        a: Joint values, (..., nq).
        b: Joint values, (..., nq).
        weight: Share of b, a scalar or (...).
        follow: Whether mimic joints follow their leaders.
    """
    if np.ndim(weight) == 0:
        if weight <= 0.0:
            return np.array(a)
        if weight >= 1.0:
            return np.array(b)
    share = np.asarray(weight, np.float64)[..., None]
    out = (1.0 - share) * a + share * b
    at = turns(skeleton)
    start = np.broadcast_to(a, out.shape)[..., at]
    out[..., at] = times_exp(start, share[..., None] * rotation_between(start, np.broadcast_to(b, out.shape)[..., at]))
    if np.ndim(weight):
        whole = share >= 1.0
        out = np.where(whole, b, np.where(share <= 0.0, a, out))
    return skeleton.follow(out) if follow else out


def smooth(part: float | Array) -> float | Array:
    """Return the smoothstep 3 p² - 2 p³ of a fraction p, whose slope is 0 at both ends."""
    return part * part * (3.0 - 2.0 * part)
