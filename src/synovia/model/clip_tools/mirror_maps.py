"""The maps of a mirror: from the frame of each joint to the frame of its counterpart on the other side.

A rest pose usually determines the maps. But some files have an impossible rest pose: each bone lies along one axis, and
legs point in the direction of the trunk. Then bones show directions, but not rotations of joints about their own bones.
A clip shows these rotations.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, unit
from synovia.model.pose import world_frames

_SAME: Final = 1e-3  # radians: bones at a smaller angle are mirror images up to the rounding in files
# radians: if bones of the trunk differ by more from their mirror images, its rest pose is bent to a side
_BENT: Final = 0.2
_GUIDE: Final = 1e-6  # weight of the rest pose relative to bones; it determines rotations that bones do not show
_NO_LENGTH: Final = 1e-6  # fraction of the skeleton's size: shorter bones have no direction
_ALONG: Final = 0.5  # cosine between a thigh and the trunk; for larger values, the rest pose is impossible
# sine of the angle between two bones of a joint; for larger values, the bones show the joint's rotation
_APART: Final = 0.2
# mean sine of a limb's bend; for larger values, the bend shows the rotation of the limb's upper bone
_BENDS: Final = 0.1
# upper parts of limbs, each with the part below
_UPPER: Final = {"upper_arm": ("lower_arm", "hand"), "upper_leg": ("lower_leg", "foot")}
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
    # rotations that align the rest pose of one side with the other side
    turned = np.broadcast_to(np.eye(3), rest.shape).copy()
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
            # axes may have opposite signs in the two sides of a file
            images *= np.where((axes * images).sum(1) < 0.0, -1.0, 1.0)[:, None]
            here, there = np.concatenate([here, axes]), np.concatenate([there, images])
            if _apart(here, there) > _SAME:
                turned[row] = _nearest_turn(here, there) @ turned[row]
            out[row] = rest[pair].T @ M @ turned[row] @ rest[row]
            out[pair] = out[row].T
    return out


def maps_of_clip(skeleton: Skeleton, pairs: tuple[int, ...], maps: Array, q: Array) -> Array:
    """Return the maps D, (n, 3, 3), rotated about bones as a clip shows, if the rest pose is impossible.

    In the mirrored clip, joints should on average have the same rotations as in the clip. So with the means r and s of
    the local rotations of a joint and its counterpart, choose among all D by quarter turns about the bone the one with
    the largest trace of rᵀEᵀsD, where E is the map of the parent. Arms and legs may move differently on both sides, so
    they use the D that maps the bending sides of elbows and knees. The mirrored clip gives the same maps, because the
    traces for opposite quarter turns are exchanged.

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
    """Return whether the rest pose is possible, because the thighs do not point in the direction of the trunk."""
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
    """Return the mean side to which the lower bone of each arm and leg points, (3,), in the frame of the upper bone.

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
    """Return four maps from a bone, (3,), to the counterpart's bone; they differ by quarter turns about the bone.

    Args:
        resting: Product of the map by the rest pose and the map of the parent, (3, 3).
        own: Direction of the bone.
        other: Direction of the counterpart's bone.
    """
    image = resting @ own
    if image @ other < _SAME - 1.0:  # for opposite bones, use a half turn about any axis normal to the bone
        across = _across(other)
        resting = (2.0 * np.outer(across, across) - np.eye(3)) @ resting
        image = resting @ own
    base = _nearest_turn(image[None], other[None]) @ resting
    x, y, z = other
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turn = np.outer(other, other) + cross  # quarter turn about the bone
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
    """Return a unit vector normal to a bone (3,), in the plane of the bone and the axis that is farthest from it."""
    axis = np.eye(3)[int(np.argmin(np.abs(bone)))]
    return unit(axis - (axis @ bone) * bone)


def _zero(skeleton: Skeleton) -> Array:
    """Return the joint values (nq,) of zero motion, regardless of limits."""
    q = np.zeros(skeleton.nq)
    for row, joint in enumerate(skeleton.joints):
        if joint.kind in (Kind.BALL, Kind.FREE):
            q[skeleton.q_slice(row).stop - 1] = 1.0
    return skeleton.follow(q)


def _bones(skeleton: Skeleton, pairs: tuple[int, ...], row: int) -> tuple[Array, Array]:
    """Return the directions (k, 3) of a joint's bones and of the counterparts' bones, each in its own frame."""
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
    """Return the axes (k, 3) of hinges at and below a joint, and the counterparts' axes, each in its joint's frame."""
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

    It maximises the trace of DᵀH, where H is the sum of outer products of the bones; H is symmetric, and so is D. A
    joint with hinges keeps the map of the rest pose, which maps their axes, since robots may have motors off-centre.

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
    """Return approximately the largest angle between corresponding directions a and b, (k, 3); 0 without directions."""
    return float(np.linalg.norm(a - b, axis=1).max(initial=0.0))


def _nearest_turn(a: Array, b: Array) -> Array:
    """Return the least-squares rotation (3, 3) from directions a (k, 3) to b; if not unique, the smallest one.

    References:
        Kabsch (1976).
    """
    left, _, right = np.linalg.svd(b.T @ a + _GUIDE * np.eye(3))
    flip = np.array([1.0, 1.0, np.linalg.det(left @ right)])
    return (left * flip) @ right


def reflection(normal: Array) -> Array:
    """Return the reflection, (3, 3), in the plane with a unit normal."""
    return np.eye(3) - 2.0 * np.outer(normal, normal)
