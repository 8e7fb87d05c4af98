"""The maps of a mirror: how the frame of each joint goes over into that of its counterpart on the other side.

A rest pose shows the maps. But in some files no body could rest so: each bone lies along one axis, and legs point the
way the trunk does. Then bones show their directions, but not how joints are turned about their own bones. A clip shows
that.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, unit
from synovia.model.pose import world_frames

_SAME: Final = 1e-3  # radians between bones that count as each other's mirror image: the rounding of files
_BENT: Final = 0.2  # radians between bones of the trunk above which its rest pose is bent to a side
_GUIDE: Final = 1e-6  # weight of the rest pose relative to that of bones, for turns that bones do not show
_NO_LENGTH: Final = 1e-6  # a shorter bone has no direction; share of the skeleton's size
_ALONG: Final = 0.5  # cosine between a thigh and the trunk at rest above which no body can rest so
_APART: Final = 0.2  # sine of an angle between two bones of a joint, which then show how it is turned
_BENDS: Final = 0.1  # mean sine of the angle by which a limb bends, above which it shows how its upper bone is turned
_UPPER: Final = {"upper_arm": ("lower_arm", "hand"), "upper_leg": ("lower_leg", "foot")}  # and the bone below
_TRUNK: Final = ("head", "neck", "chest", "spine")


def maps_at_rest(skeleton: Skeleton, left: Array, pairs: tuple[int, ...]) -> Array:
    """Return the map D of each joint by the rest pose, (n, 3, 3); see ``Mirror``.

    Args:
        skeleton: The skeleton.
        left: Unit vector to the left at rest, (3,).
        pairs: Row of each joint's counterpart; see ``Mirror``.
    """
    M = reflection(left)
    rest = world_frames(skeleton, _zero(skeleton)[None])[0, :, :9].reshape(-1, 3, 3)
    out = np.empty_like(rest)
    turned = np.broadcast_to(np.eye(3), rest.shape).copy()  # turns that make the rest pose of one side fit the other's
    for row, pair in enumerate(pairs):
        above = skeleton.parents[row]
        if pair == row:
            out[row] = _middle_map(skeleton, pairs, row, rest[row].T @ M @ rest[row])
        elif pair < 0:
            out[row] = rest[row].T @ M @ rest[row]
        elif pair > row:
            if above >= 0 and pairs[above] > above:
                turned[row] = turned[above]
            own, other = _bones(skeleton, pairs, row)
            here, there = own @ (turned[row] @ rest[row]).T, other @ rest[pair].T @ M
            own, other = _axes(skeleton, pairs, row)
            axes, images = own @ (turned[row] @ rest[row]).T, other @ rest[pair].T @ M
            images *= np.where((axes * images).sum(1) < 0.0, -1.0, 1.0)[:, None]  # files choose the signs
            here, there = np.concatenate([here, axes]), np.concatenate([there, images])
            if _apart(here, there) > _SAME:
                turned[row] = _nearest_turn(here, there) @ turned[row]
            out[row] = rest[pair].T @ M @ turned[row] @ rest[row]
            out[pair] = out[row].T
    return out


def maps_of_clip(skeleton: Skeleton, pairs: tuple[int, ...], maps: Array, q: Array) -> Array:
    """Return the maps D, (n, 3, 3), turned about bones as a clip shows it, if the rest pose does not.

    In the image of a clip, joints shall on average be turned as in the clip: with the means r and s of the local
    rotations of a joint and of its counterpart, of all D by quarter turns about the bone, take the one of the largest
    trace of rᵀEᵀsD, where E is the map of the parent. Arms and legs may do different things on both sides, so they take
    the D that maps the sides to which elbows and knees bend. The image of the clip has the same maps: at its D, traces
    of turns to one side are those of turns to the other side here.

    Args:
        skeleton: The skeleton.
        pairs: Row of each joint's counterpart; see ``Mirror``.
        maps: The maps by the rest pose.
        q: Joint values of the clip, (T, nq).
    """
    if not len(q) or _could_rest(skeleton):
        return maps
    frames = world_frames(skeleton, q)
    world = frames[..., :9].reshape(*frames.shape[:2], 3, 3)
    out, bends = maps.copy(), _bends(skeleton, frames)
    for row, pair in enumerate(pairs):
        above = skeleton.parents[row]
        if pair < row or above < 0 or pairs[above] != skeleton.parents[pair] or len(_axes(skeleton, pairs, row)[0]):
            continue
        bones = _bones(skeleton, pairs, row)
        if len(bones[0]) and np.linalg.norm(np.cross(bones[0], bones[0][0]), axis=1).max() > _APART:
            continue
        joints = skeleton.joints[row], skeleton.joints[pair]
        own, other = (
            given[0] if len(given) else unit(joint.rest[:3, :3].T @ joint.rest[:3, 3])
            for given, joint in zip(bones, joints, strict=True)
        )
        if not own.any() or not other.any():
            continue
        resting = joints[1].rest[:3, :3].T @ out[above] @ joints[0].rest[:3, :3]
        candidates = _middle_turns(resting, own) if pair == row else _quarter_turns(resting, own, other)
        if row in bends and pair in bends and min(np.linalg.norm(bends[k]) for k in (row, pair)) > _BENDS:
            scores = [bends[pair] @ D @ bends[row] for D in candidates]
        else:
            r, s = (np.einsum("tji,tjk->ik", world[:, skeleton.parents[k]], world[:, k]) for k in (row, pair))
            scores = [np.trace(r.T @ out[above].T @ s @ D) for D in candidates]
        out[row] = candidates[int(np.argmax(scores))]
        out[pair] = out[row].T
    return out


def _could_rest(skeleton: Skeleton) -> bool:
    """Return whether a body could rest as its file has it: its thighs do not point the way its trunk does."""
    roles = skeleton.role_rows
    top = next((role for role in _TRUNK if role in roles), None)
    if top is None or "hips" not in roles:
        return True
    places = world_frames(skeleton, _zero(skeleton)[None])[0, :, 9:]
    trunk = unit(places[roles[top]] - places[roles["hips"]])
    legs = [[f"{side}_{part}_leg" for part in ("upper", "lower")] for side in ("left", "right")]
    thighs = [unit(places[roles[b]] - places[roles[a]]) for a, b in legs if a in roles and b in roles]
    return all(thigh @ trunk < _ALONG for thigh in thighs)


def _bends(skeleton: Skeleton, frames: Array) -> dict[int, Array]:
    """Return the mean side to which the lower bone of each arm and leg points, (3,), in the frame of the upper one.

    Args:
        skeleton: The skeleton.
        frames: World frames of all joints, (T, n, 12).
    """
    roles, out = skeleton.role_rows, dict[int, Array]()
    for side in ("left", "right"):
        for upper, below in _UPPER.items():
            rows = [roles[role] for role in (f"{side}_{part}" for part in (upper, *below)) if role in roles]
            if len(rows) < 3:
                continue
            here, there, end = (frames[:, row, 9:] for row in rows)
            world = frames[:, rows[0], :9].reshape(-1, 3, 3)
            bones = np.einsum("tji,ktj->kti", world, [there - here, end - there])
            a, b = bones / np.maximum(np.linalg.norm(bones, axis=2, keepdims=True), _NO_LENGTH * skeleton.size)
            out[rows[0]] = (b - (a * b).sum(axis=1, keepdims=True) * a).mean(axis=0)
    return out


def _quarter_turns(resting: Array, own: Array, other: Array) -> list[Array]:
    """Return four maps that map a bone, (3,), to that of the counterpart, by quarter turns about the bone.

    Args:
        resting: Map by the rest pose and the map of the parent, (3, 3).
        own: The bone.
        other: The counterpart's.
    """
    image = resting @ own
    if image @ other < _SAME - 1.0:  # opposite: half a turn about any axis across
        across = _across(other)
        resting = (2.0 * np.outer(across, across) - np.eye(3)) @ resting
        image = resting @ own
    base = _nearest_turn(image[None], other[None]) @ resting
    x, y, z = other
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turn = np.outer(other, other) + cross  # a quarter
    return [np.linalg.matrix_power(turn, k) @ base for k in range(4)]


def _middle_turns(resting: Array, bone: Array) -> list[Array]:
    """Return two reflections that keep a bone, (3,).

    Args:
        resting: As in ``_quarter_turns``.
        bone: The bone.
    """
    normal = np.linalg.eigh(0.5 * (resting + resting.T))[1][:, 0]
    normal = normal - (normal @ bone) * bone
    normal = unit(normal) if np.linalg.norm(normal) > _APART else _across(bone)
    return [reflection(normal), reflection(np.cross(bone, normal))]


def _across(bone: Array) -> Array:
    """Return a unit vector across a bone (3,), in the plane of the bone and the axis that it is farthest from."""
    axis = np.eye(3)[int(np.argmin(np.abs(bone)))]
    return unit(axis - (axis @ bone) * bone)


def _zero(skeleton: Skeleton) -> Array:
    """Return the joint values (nq,) of no motion, whatever the limits."""
    q = np.zeros(skeleton.nq)
    for row, joint in enumerate(skeleton.joints):
        if joint.kind in (Kind.BALL, Kind.FREE):
            q[skeleton.q_slice(row).stop - 1] = 1.0
    return skeleton.follow(q)


def _bones(skeleton: Skeleton, pairs: tuple[int, ...], row: int) -> tuple[Array, Array]:
    """Return the directions (k, 3) of a joint's bones, and those of the counterparts' bones, each in its own frame."""
    pair = pairs[row]
    own: list[Array] = []
    other: list[Array] = []
    for child in skeleton.children[row]:
        if pairs[child] >= 0 and skeleton.parents[pairs[child]] == pair:
            bones = skeleton.joints[child].rest[:3, 3], skeleton.joints[pairs[child]].rest[:3, 3]
            if all(np.linalg.norm(bone) > _NO_LENGTH * skeleton.size for bone in bones):
                own.append(unit(bones[0]))
                other.append(unit(bones[1]))
    return np.array(own).reshape(-1, 3), np.array(other).reshape(-1, 3)


def _axes(skeleton: Skeleton, pairs: tuple[int, ...], row: int) -> tuple[Array, Array]:
    """Return the axes (k, 3) of a hinge and of hinges below a joint, and those of the counterparts, in their frames."""
    pair = pairs[row]
    own: list[Array] = []
    other: list[Array] = []
    if skeleton.joints[row].kind is Kind.HINGE and skeleton.joints[pair].kind is Kind.HINGE:
        own.append(skeleton.joints[row].axis)
        other.append(skeleton.joints[pair].axis)
    for child in skeleton.children[row]:
        image = pairs[child]
        if image >= 0 and skeleton.parents[image] == pair:
            joints = skeleton.joints[child], skeleton.joints[image]
            if all(joint.kind is Kind.HINGE for joint in joints):
                own.append(joints[0].rest[:3, :3] @ joints[0].axis)
                other.append(joints[1].rest[:3, :3] @ joints[1].axis)
    return np.array(own).reshape(-1, 3), np.array(other).reshape(-1, 3)


def _middle_map(skeleton: Skeleton, pairs: tuple[int, ...], row: int, resting: Array) -> Array:
    """Return the map D of a joint in the middle of the body: the reflection that fits its bones best.

    It maximises the trace of DᵀH, where H has the products of the bones; H is symmetric, and so is D. A joint with
    hinges keeps that of the rest pose, which maps their axes: robots have motors off the middle of their bodies.

    Args:
        skeleton: The skeleton.
        pairs: Row of each joint's counterpart.
        row: The joint.
        resting: The map by the rotation at rest, (3, 3).
    """
    own, other = _bones(skeleton, pairs, row)
    if len(_axes(skeleton, pairs, row)[0]) or _apart(own @ resting.T, other) <= _BENT:
        return resting
    H = other.T @ own
    values, vectors = np.linalg.eigh(0.5 * (H + H.T) + _GUIDE * resting)
    signs = np.where(values < 0.0, -1.0, 1.0)
    if np.prod(signs) > 0.0:
        signs[np.argmin(np.abs(values))] *= -1.0
    return (vectors * signs) @ vectors.T


def _apart(a: Array, b: Array) -> float:
    """Return the largest angle between directions (k, 3) and others, about; 0 without any."""
    return float(np.linalg.norm(a - b, axis=1).max(initial=0.0))


def _nearest_turn(a: Array, b: Array) -> Array:
    """Return the rotation (3, 3) that turns directions a (k, 3) to b best, the smallest one if several do.

    References:
        Kabsch (1976).
    """
    left, _, right = np.linalg.svd(b.T @ a + _GUIDE * np.eye(3))
    flip = np.array([1.0, 1.0, np.linalg.det(left @ right)])
    return (left * flip) @ right


def reflection(normal: Array) -> Array:
    """Return the reflection, (3, 3), in the plane with a unit normal."""
    return np.eye(3) - 2.0 * np.outer(normal, normal)
