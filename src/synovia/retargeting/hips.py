"""Retarget the path of the hips."""

from __future__ import annotations

import numpy as np

from synovia.model.anatomy.contacts import LOW
from synovia.model.geometry import Array
from synovia.model.pose import world_frames
from synovia.retargeting.body import LEGS, Body
from synovia.retargeting.limbs import limbs_of
from synovia.retargeting.pairing import Pairing
from synovia.retargeting.transfer import across, joint_values, orientations


def hip_centre(pairing: Pairing, frames: Array) -> Array:
    """Return the target position of the midpoint of the hip joints, (T, 3), for world frames of the source.

    The path, and the height above the ankles while the body stands, are scaled by the lengths of the legs. The floor of
    the target is at height 0.
    """
    slope, shift = hip_map(pairing, standing_height(pairing.source, frames))
    return hip_middle(pairing.source, frames) @ slope.T + shift


def hip_map(pairing: Pairing, floor: float) -> tuple[Array, Array]:
    """Return the map from the midpoint of the source's hip joints to the target's: a matrix (3, 3) and a shift (3,).

    When the source is at rest with its ankles at ``floor``, the soles of the target are at height 0. The height of its
    hips then follows from its own legs in the retargeted rest pose.

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
