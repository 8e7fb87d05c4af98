"""Convert Euler angles about moving axes, as in BVH and FBX, to quaternions, and back without jumps.

With half-angles A, B, C of the rotations about axes i, j, k, all different, and s = ±1 the sign of the permutation
(i, j, k), the product of the three quaternions gives

    (w + q_j, q_i + s q_k) = (cos B + sin B) (cos, sin)(A + s C)
    (w - q_j, q_i - s q_k) = (cos B - sin B) (cos, sin)(A - s C)

So the sum and the difference of the outer angles follow from one equation each. In gimbal lock only one of the two is
undetermined, and the rotation is still exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array

AXES: Final = "XYZ"
_LOCKED: Final = 1e-12  # norm of a pair, below which rounding (1e-16) changes the pair's direction by more than 1e-4


def sign(order: Sequence[int]) -> float:
    """Return 1 for an even permutation of (0, 1, 2), -1 for an odd permutation."""
    return 1.0 if (order[1] - order[0]) % 3 == 1 else -1.0


def to_quat(order: Sequence[int], angles: Array) -> Array:
    """Return quaternions (T, 4), xyzw, of rotations about three moving axes.

    Args:
        order: The axes, a permutation of (0, 1, 2), first rotation first.
        angles: (T, 3) radians, in the order of the axes.
    """
    s = sign(order)
    (ca, cb, cc), (sa, sb, sc) = np.cos(angles.T / 2.0), np.sin(angles.T / 2.0)
    quat = np.empty((len(angles), 4))
    quat[:, order[0]] = sa * cb * cc + s * ca * sb * sc
    quat[:, order[1]] = ca * sb * cc - s * sa * cb * sc
    quat[:, order[2]] = ca * cb * sc + s * sa * sb * cc
    quat[:, 3] = ca * cb * cc - s * sa * sb * sc
    return quat


def from_quat(orders: NDArray[np.intp], quats: Array) -> Array:
    """Return angles over time, radians (T, n, 3), of n rotations, each continuous from frame to frame.

    Two triples of angles give the same rotation, and full turns may be added to each angle. The first frame gets the
    triple nearest to zero; every other frame gets the triple nearest to the previous frame.

    Args:
        orders: (n, 3) the axes of each rotation, a permutation of (0, 1, 2).
        quats: (T, n, 4) unit quaternions, xyzw.
    """
    both = _triples(orders, quats)
    out = np.zeros((*quats.shape[:2], 3))
    before = np.zeros((len(orders), 3))
    which = np.arange(len(orders))
    for t in range(len(quats)):
        near = both[t] + 2.0 * np.pi * np.rint((before - both[t]) / (2.0 * np.pi))
        before = near[np.abs(near - before).sum(-1).argmin(0), which]
        out[t] = before
    return out


def from_quat_near(orders: NDArray[np.intp], quats: Array, near: Array) -> Array:
    """Return the angles of rotations, radians (T, n, 3), that are nearest to given angles.

    Args:
        orders: (n, 3) the axes of each rotation, a permutation of (0, 1, 2).
        quats: (T, n, 4) unit quaternions, xyzw.
        near: (T, n, 3) angles of almost the same rotations, radians, in the order of the axes.
    """
    both = _triples(orders, quats)
    both += 2.0 * np.pi * np.rint((near[:, None] - both) / (2.0 * np.pi))
    which = np.abs(both - near[:, None]).sum(-1).argmin(1)
    return np.take_along_axis(both, which[:, None, :, None], axis=1)[:, 0]


def _triples(orders: NDArray[np.intp], quats: Array) -> Array:
    """Return the two triples of angles of rotations, (T, 2, n, 3)."""
    s = np.array([sign(order) for order in orders.tolist()])
    i, j, k = (np.take_along_axis(quats, orders[None, :, [m]], axis=2)[..., 0] for m in range(3))
    w = quats[..., 3]
    plus = (w + j, i + s * k)
    minus = (w - j, i - s * k)
    high, low = np.hypot(*plus), np.hypot(*minus)
    total = _without_gaps(np.arctan2(plus[1], plus[0]), high > _LOCKED)
    apart = _without_gaps(np.arctan2(minus[1], minus[0]), low > _LOCKED)
    a, b, c = total + apart, 2.0 * np.arctan2(high, low) - np.pi / 2.0, s * (total - apart)
    return np.stack([np.stack([a, b, c], -1), np.stack([a + np.pi, np.pi - b, c + np.pi], -1)], axis=1)


def _without_gaps(angle: Array, known: NDArray[np.bool_]) -> Array:
    """Return angles (T, n) with unknown ones replaced by the last known angle before (else the first known, else 0)."""
    if not len(angle):
        return angle
    frame = np.where(known, np.arange(len(angle))[:, None], -1)
    last = np.maximum.accumulate(frame, axis=0)
    first = np.argmax(known, axis=0)
    held = np.take_along_axis(angle, np.where(last < 0, first, last), axis=0)
    return np.where(known.any(axis=0), held, 0.0)
