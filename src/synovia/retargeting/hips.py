"""The path of the hips: where those of the target go while those of the source move."""

from __future__ import annotations

import numpy as np

from synovia.model.geometry import Array
from synovia.model.pose import world_frames
from synovia.retargeting.body import LEGS, Body
from synovia.retargeting.limbs import limbs_of
from synovia.retargeting.pairing import Pairing
from synovia.retargeting.transfer import across, joint_values, orientations

LOW = 5.0  # percentile of the ankle heights that counts as standing; lower values are errors of the capture


def hip_centre(pairing: Pairing, frames: Array) -> Array:
    """Return the position for the midpoint of the target's hip joints, (T, 3), for world frames of the source.

    The path and the height above the ankles of the standing body are scaled by the lengths of the legs. The floor of
    the target is at height 0.
    """
    slope, shift = hip_map(pairing, standing_height(pairing.source, frames))
    return hip_middle(pairing.source, frames) @ slope.T + shift


def hip_map(pairing: Pairing, floor: float) -> tuple[Array, Array]:
    """Return what maps the midpoint of the source's hip joints to that of the target's: a matrix (3, 3), a shift (3,).

    While the source is at rest with its ankles at ``floor``, the soles of the target are at height 0. Its hips are as
    high then as its legs reach in the pose that it takes, which depends on where its joints are.

    Args:
        pairing: The two bodies.
        floor: Height of the source's ankles while it stands, see ``standing_height``.
    """
    source, target, scale = pairing.source, pairing.target, pairing.scale
    parts, rest = pairing.parts, source.rest[None]
    limbs = limbs_of(source, target, pairing.roles, rest)
    q = joint_values(target, parts, orientations(source, target, parts, limbs, rest))
    own = world_frames(target.skeleton, q)[0]
    up, target_up = source.basis[:, 1], target.basis[:, 1]
    legs = float(hip_middle(source, rest[0]) @ up) - standing_height(source, rest)
    height = float(hip_middle(target, own) @ target_up) - target.lowest(own)
    return scale * across(source, target), (height - scale * (floor + legs)) * target_up


def standing_height(body: Body, frames: Array) -> float:
    """Return the height of the ankles (of the knees if nothing is below) while the body stands, length units."""
    ankles = [row for leg in LEGS for row in body.end_rows(leg[1]) or (body.roles[leg[1]],)]
    return float(np.percentile(frames[:, ankles, 9:] @ body.basis[:, 1], LOW))


def hip_middle(body: Body, frames: Array) -> Array:
    """Return the midpoint (..., 3) of the hip joints for world frames (..., n, 12)."""
    return np.mean([frames[..., body.first_row(leg[0]), 9:] for leg in LEGS], axis=0)


def place_hips(target: Body, q: Array, centre: Array) -> None:
    """Move the free joint that carries the hips so that the midpoint of the hip joints is at ``centre``.

    Args:
        target: The body, with a free joint above its hips.
        q: (T, nq), changed in place.
        centre: (T, 3) position for the midpoint of the hip joints.
    """
    row = target.carrier
    if row is None:
        return
    frames = world_frames(target.skeleton, q)
    above = target.skeleton.parents[row]
    parent = frames[:, above, :9].reshape(-1, 3, 3) if above >= 0 else np.eye(3)[None]
    own = parent @ target.skeleton.joints[row].rest[:3, :3]
    at = target.skeleton.q_slice(row).start
    q[:, at : at + 3] += ((centre - hip_middle(target, frames))[:, None, :] @ own)[:, 0]
