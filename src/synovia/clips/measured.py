"""Bodies made to measure: their bones have the lengths that landmarks show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from synovia.clips.landmarks import SIDES, Landmarks
from synovia.errors import InputError
from synovia.model import Joint, Skeleton
from synovia.model.anatomy.axes import body_axes
from synovia.model.anatomy.roles import meeting
from synovia.model.anatomy.up import Lines, find_up
from synovia.model.geometry import Array
from synovia.model.tree import ancestors

# bones as (first landmark, last landmark, first role, last role); left and right lengths are averaged
LIMBS: Final = (
    ("hip", "knee", "upper_leg", "lower_leg"), ("knee", "ankle", "lower_leg", "foot"), ("ankle", "toe", "foot", "toes"),
    ("shoulder", "elbow", "upper_arm", "lower_arm"), ("elbow", "wrist", "lower_arm", "hand"),
)  # fmt: skip
NEEDED: Final = tuple(f"{side}_{part}" for side in SIDES for part in ("upper_leg", "lower_leg", "upper_arm"))
WIDEST: Final = 2.5  # largest factor between the scale of a bone and the scale of the whole body
UPRIGHT: Final = 0.7  # a body stands at rest if the cosine between its trunk and the upward axis is at least this
EAR: Final = 0.22  # height of the ears above the joint of the head, as a fraction of the head's height (de Leva 1996)
DROP: Final = 0.02  # height of the tip of the nose below the ears, as a fraction of the body's height
TRUNK_HEAD: Final = 0.30  # height of head and neck, as a fraction of the trunk from hip to shoulder joints
SANE: Final = (0.05, 0.4)  # plausible range of distances in face and hands, as fractions of the trunk's length
FACE: Final = 0.5  # weight of points of face and hands; joints have weight 1


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A body whose bones have the lengths that landmarks show, with the points to fit.

    Args:
        skeleton: The body.
        ratio: Size of the measured body divided by that of the given body.
        rows: Row of the joint of each fitted point.
        offsets: Positions of the points in the frames of their joints, (K, 3).
        places: Observed positions of the points, (T, K, 3).
        weights: Confidence of the observations, (T, K).
    """

    skeleton: Skeleton
    ratio: float
    rows: list[int]
    offsets: Array
    places: Array
    weights: Array


def roles_of(skeleton: Skeleton) -> dict[str, int]:
    """Return the row of each role of a body.

    Raises:
        InputError: If no joint has a role that is needed to measure the body.
    """
    rows = dict(skeleton.role_rows)
    if missing := [role for role in NEEDED if role not in rows]:
        raise InputError(
            f"{skeleton.name} has no joint for {', '.join(missing)}",
            expected="a body with two legs and two arms",
            hint="give joints a role in a TOML copy of the model, or leave out the model to get a body made to measure",
        )
    return rows


def upward(skeleton: Skeleton) -> Array:
    """Return the upward direction (3,) of a body whose rest pose stands.

    Raises:
        InputError: If the body does not stand at rest: its trunk is not above its legs.
    """
    roles_of(skeleton)  # raises an error for bodies without trunk or limbs
    up, lines = find_up(skeleton).vector, Lines.of(skeleton)
    trunk = lines.trunk(np.array(skeleton.rest_pose().positions))
    if float(trunk @ up) < UPRIGHT * float(np.linalg.norm(trunk)):
        raise InputError(
            f"{skeleton.name} does not stand at rest",
            expected="a rest pose with the shoulders above the hips and the feet below",
            hint="leave out the model to get a body made to measure, then retarget its motion",
        )
    return up


def size_ratio(skeleton: Skeleton, marks: Landmarks) -> float:
    """Return the size of the person relative to a skeleton, from the lengths of trunk and legs."""
    rows = roles_of(skeleton)
    rest = np.array(skeleton.rest_pose().positions)
    seen, own = [_trunk(marks)], [_rest_trunk(rest, rows)]
    for first, last, top, end in LIMBS[:2]:
        length, bone = _seen_length(marks, first, last), _rest_length(rest, rows, top, end)
        if np.isfinite(length) and bone > 0.0:
            seen.append(length)
            own.append(bone)
    ratio = float(np.sum(seen) / np.sum(own))
    if not (np.isfinite(ratio) and ratio > 0.0):
        raise InputError("shoulders and hips are never seen together", expected="landmarks of a whole body")
    return ratio


def measured(skeleton: Skeleton, marks: Landmarks) -> Measured:
    """Return a body with the bone lengths of landmarks. Body and landmarks must have the same upward axis.

    Offsets of joints are scaled along their own directions, so that rest orientations and limits stay the same. Hips
    and shoulders have their own widths. A bone without landmarks has the scale of the bone above it.
    """
    rows = roles_of(skeleton)
    rest = np.array(skeleton.rest_pose().frames)
    places = rest[:, 9:]
    axes = body_axes({role: places[row] for role, row in rows.items()}, skeleton.size, skeleton.up, skeleton.name)
    ratio = size_ratio(skeleton, marks)
    along, across = _ratios(skeleton, rows, places, marks, axes, ratio)
    joints: list[Joint] = []
    for row, joint in enumerate(skeleton.joints):
        parent = skeleton.parents[row]
        left = axes[:, 0] if parent < 0 else rest[parent, :9].reshape(3, 3).T @ axes[:, 0]
        offset = joint.rest[:3, 3]
        transform = joint.rest.copy()
        transform[:3, 3] = along[row] * offset + (across[row] - along[row]) * np.dot(offset, left) * left
        shapes = tuple(shape.scaled(ratio) for shape in joint.shapes)
        joints.append(replace(joint, rest=transform, com=ratio * joint.com, shapes=shapes))
    body = skeleton.with_joints(joints)
    return Measured(body, ratio, *_points(body, rows, axes, marks))


def _ratios(
    skeleton: Skeleton, rows: Mapping[str, int], rest: Array, marks: Landmarks, axes: Array, ratio: float
) -> tuple[Array, Array]:
    """Return the factors that scale each joint's offset along the body and sideways, (n,) each."""
    own: dict[int, float] = {0: ratio}
    wide: dict[int, float] = {}
    legs, arms = (
        meeting(skeleton, [rows[f"{side}_{part}"] for side in SIDES]) or 0 for part in ("upper_leg", "upper_arm")
    )
    trunk = _bounded(_trunk(marks) / _rest_trunk(rest, rows), ratio)
    for base, part, landmark in ((legs, "upper_leg", "hip"), (arms, "upper_arm", "shoulder")):
        ends = [rows[f"{side}_{part}"] for side in SIDES]
        width = abs(float((rest[ends[0]] - rest[ends[1]]) @ axes[:, 0]))
        seen = marks.length(marks.middle(f"left_{landmark}"), marks.middle(f"right_{landmark}"))
        for end in ends:
            for row in _path(skeleton, base, end):
                own[row] = trunk
                wide[row] = _bounded(seen / width if width > 0.0 else ratio, ratio)
    for row in _path(skeleton, legs, arms):
        own[row] = trunk
    for first, last, top, end in LIMBS:
        length, bone = _seen_length(marks, first, last), _rest_length(rest, rows, top, end)
        for side in SIDES:
            if bone > 0.0 and np.isfinite(length) and f"{side}_{end}" in rows:
                for row in _path(skeleton, rows[f"{side}_{top}"], rows[f"{side}_{end}"]):
                    own[row] = _bounded(length / bone, ratio)
    along = np.full(len(skeleton), ratio)
    for row in range(len(skeleton)):
        along[row] = own.get(row, along[skeleton.parents[row]])
    across = along.copy()
    across[list(wide)] = list(wide.values())
    return along, across


def _points(
    body: Skeleton, rows: Mapping[str, int], axes: Array, marks: Landmarks
) -> tuple[list[int], Array, Array, Array]:
    """Return the points to fit: joint rows, offsets (K, 3), observed positions (T, K, 3) and confidence (T, K)."""
    frames = np.array(body.rest_pose().frames)
    found: list[tuple[int, Array, Array, Array]] = []

    def add(row: int, world: Array, seen: Array, weight: Array) -> None:
        local = frames[row, :9].reshape(3, 3).T @ (world - frames[row, 9:])
        found.append((row, local, seen, weight))

    for side in SIDES:
        for landmark, role in (
            ("hip", "upper_leg"), ("knee", "lower_leg"), ("ankle", "foot"), ("toe", "toes"), ("shoulder", "upper_arm"),
            ("elbow", "lower_arm"), ("wrist", "hand"),
        ):  # fmt: skip
            name, part = f"{side}_{landmark}", f"{side}_{role}"
            if name in marks.places and part in rows:
                add(rows[part], frames[rows[part], 9:], marks.places[name], marks.weights[name])
        if f"{side}_hand" in rows:
            for world, seen, weight in _hand(body, rows, frames[:, 9:], axes, marks, side):
                add(rows[f"{side}_hand"], world, seen, weight)
    if "head" in rows:
        for world, seen, weight in _head(body, rows, frames[:, 9:], axes, marks):
            add(rows["head"], world, seen, weight)
    return (
        [row for row, *_ in found], np.array([one[1] for one in found]),
        np.stack([one[2] for one in found], axis=1), np.stack([one[3] for one in found], axis=1),
    )  # fmt: skip


def _head(
    body: Skeleton, rows: Mapping[str, int], rest: Array, axes: Array, marks: Landmarks
) -> list[tuple[Array, Array, Array]]:
    """Return points of the head: rest position in the world (3,), observed positions (T, 3) and weights (T,) each."""
    shoulders = 0.5 * (rest[rows["left_upper_arm"]] + rest[rows["right_upper_arm"]])
    trunk = _rest_trunk(rest, rows)
    head = rest[rows["head"]]
    tips = [row for row in range(len(body)) if body.joints[row].tip and body.parents[row] == rows["head"]]
    height = max([float((rest[row] - head) @ axes[:, 1]) for row in tips], default=TRUNK_HEAD * trunk)
    neck, ears = marks.places["neck"], marks.middle("left_ear", "right_ear")

    def stretched(world: Array, seen: Array) -> Array:
        """Return the point in the direction of ``world`` from the shoulders, at the observed distance of ``seen``."""
        way = world - shoulders
        return shoulders + way * (marks.length(neck, seen) / float(np.linalg.norm(way)))

    low, high = (bound * trunk for bound in SANE)
    between = marks.length(marks.middle("left_ear"), marks.middle("right_ear"))
    ahead = marks.length(marks.middle("nose"), ears)
    middle = head + EAR * height * axes[:, 1]
    weights = marks.weights
    if low < between < high:
        middle = stretched(middle, ears)
        points = [
            (middle + sign * 0.5 * between * axes[:, 0], marks.places[ear], FACE * weights[ear])
            for sign, ear in ((1.0, "left_ear"), (-1.0, "right_ear"))
        ]
        if low < ahead < high:
            drop = min(DROP * 3.0 * trunk, 0.5 * ahead)
            nose = middle + np.sqrt(ahead**2 - drop**2) * axes[:, 2] - drop * axes[:, 1]
            points.append((nose, marks.places["nose"], FACE * weights["nose"]))
        return points
    for name, world in (("head", head), ("head_top", head + height * axes[:, 1]), ("nose", middle)):
        if name in marks.places and np.isfinite(marks.length(neck, marks.places[name])):
            return [(stretched(world, marks.places[name]), marks.places[name], FACE * weights[name])]
    return []


def _hand(
    body: Skeleton, rows: Mapping[str, int], rest: Array, axes: Array, marks: Landmarks, side: str
) -> list[tuple[Array, Array, Array]]:
    """Return points of a hand in the form of ``_head``: the index and little knuckles, or the middle of the hand.

    The index finger is assumed to be in front at rest. This holds for arms that are stretched to the sides with palms
    down, and for arms that hang with palms to the body.
    """
    hand = rows[f"{side}_hand"]
    wrist = marks.middle(f"{side}_wrist")
    below = [row for row in range(len(body)) if hand in ancestors(body.parents, row)[1:]]
    far = max(below, key=lambda row: float(np.linalg.norm(rest[row] - rest[hand])), default=None)
    way = rest[hand] - rest[rows[f"{side}_lower_arm"]] if far is None else rest[far] - rest[hand]
    if f"{side}_middle_1" in rows:
        way = rest[rows[f"{side}_middle_1"]] - rest[hand]
    way = way / max(float(np.linalg.norm(way)), 1e-300)
    ahead = axes[:, 2] - float(axes[:, 2] @ way) * way
    low, high = (bound * _rest_trunk(rest, rows) for bound in SANE)
    index, pinky = f"{side}_index", f"{side}_pinky"
    knuckles = marks.middle(index, pinky)
    length, between = marks.length(wrist, knuckles), marks.length(marks.middle(index), marks.middle(pinky))
    if low < length < high:
        if low < between < high and np.linalg.norm(ahead) > 0.5:
            ahead = 0.5 * between * ahead / np.linalg.norm(ahead)
            return [
                (rest[hand] + length * way + sign * ahead, marks.places[name], FACE * marks.weights[name])
                for sign, name in ((1.0, index), (-1.0, pinky))
            ]
        both = np.minimum(marks.weights[index], marks.weights[pinky])
        return [(rest[hand] + length * way, knuckles, FACE * both)]
    name = f"{side}_hand"
    length = marks.length(wrist, marks.middle(name))
    if low < length < high:
        return [(rest[hand] + length * way, marks.places[name], FACE * marks.weights[name])]
    return []


def _bounded(value: float, ratio: float) -> float:
    """Return the scale of a bone, clamped to a range around that of the whole body; NaN becomes the latter."""
    return float(np.clip(value, ratio / WIDEST, ratio * WIDEST)) if np.isfinite(value) else ratio


def _seen_length(marks: Landmarks, first: str, last: str) -> float:
    """Return the distance between two landmarks, the mean of both sides; NaN if they were never seen together."""
    sides = [marks.length(marks.middle(f"{side}_{first}"), marks.middle(f"{side}_{last}")) for side in SIDES]
    seen = [length for length in sides if np.isfinite(length)]
    return float(np.mean(seen)) if seen else float("nan")


def _rest_length(rest: Array, rows: Mapping[str, int], first: str, last: str) -> float:
    """Return the distance between two roles at rest, the mean of both sides; 0 if the body lacks them."""
    sides = [
        float(np.linalg.norm(rest[rows[f"{side}_{first}"]] - rest[rows[f"{side}_{last}"]]))
        for side in SIDES
        if f"{side}_{first}" in rows and f"{side}_{last}" in rows
    ]
    return float(np.mean(sides)) if sides else 0.0


def _trunk(marks: Landmarks) -> float:
    """Return the distance from the middle of the hips to the middle of the shoulders."""
    return marks.length(marks.places["hips"], marks.places["neck"])


def _rest_trunk(rest: Array, rows: Mapping[str, int]) -> float:
    """Return the length of the trunk at rest, at least a tiny positive number."""
    low, high = (np.mean([rest[rows[f"{side}_{part}"]] for side in SIDES], 0) for part in ("upper_leg", "upper_arm"))
    return max(float(np.linalg.norm(high - low)), 1e-9)


def _path(skeleton: Skeleton, above: int, row: int) -> list[int]:
    """Return the rows on the path from ``above`` (excluded) down to ``row``; empty if it is not below ``above``."""
    line = ancestors(skeleton.parents, row)
    return line[: line.index(above)] if above in line else []
