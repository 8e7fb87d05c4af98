"""Find causes of differences between the directions of a clip's limbs and those of its source."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.model import Kind
from synovia.model.anatomy.names import SIDES, read_name
from synovia.model.anatomy.roles import ORDER
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import Array, matrix_to_quat, quat_product, unit
from synovia.model.limits import SwingTwist
from synovia.model.motion import Motion
from synovia.model.tree import ancestors
from synovia.retargeting.body import NEEDED
from synovia.retargeting.judging.actor import Actor, about_z, angles, best_rotation, best_turn, cosines
from synovia.retargeting.judging.steps import limbs_of_joints, swing_used

Bools = NDArray[np.bool_]
Pairs = dict[str, tuple[Array, Array]]  # for each bone, its directions in the source and in the result, (T, 3)
_HALF: Final = 0.5  # a cause explains an angle if at most this fraction remains without the cause
_REST: Final = 0.4  # the same for exchanged limbs, whose angles may be small
_CLEAR: Final = np.radians(5.0)  # radians: mean angles below this do not show exchanged limbs
_CLOSE: Final = np.radians(20.0)  # radians: a cause explains an angle only if less than this remains without the cause
_TILT: Final = np.radians(25.0)  # radians: a tilt of the body above this shows a wrong upward axis
_STEADY: Final = np.radians(12.0)  # a direction with a smaller mean spread in its joint's frame is a constant offset
_FACES: Final = 0.3  # mean cosine above which left and right are known
_CERTAIN: Final = 0.5  # mean cosine above which left and right are known although the names of joints contradict
_OFF_MIDDLE: Final = 0.02  # leg lengths: shoulders that are nearer to the middle of the body show no side
_AT_LIMIT: Final = 0.01  # fraction of its range: a hinge that is nearer to its limit is at the limit
_LOCKED: Final = 1e-5  # radians: smallest slack at limits, for hinges with a tiny range
_BENT: Final = 0.05  # leg lengths: a knee that is nearer to the line from hip to ankle shows no direction


@dataclass(frozen=True, slots=True)
class Sides:
    """What a body's shape shows about the sides of its parts.

    Args:
        swapped: By limb (``"arm"``, ``"leg"``), roles whose joints lie on the opposite side of the body.
        misnamed: By limb, roles whose joint names contradict the side that the shape shows.
        shown: Whether toes and knees show where left is.
    """

    swapped: dict[str, list[str]]
    misnamed: dict[str, list[str]]
    shown: bool


def sides_of(actor: Actor, *, moved: bool) -> Sides:
    """Find the sides of a body's parts from its shape, or from the names of its joints if the shape does not show them.

    Toes and bent knees show which way is forward, and so which side is left; the arms are compared with this side. A
    part is on the opposite side if it descends from the previous part of that side and not from that of its own. If
    neither shape nor names show sides, arms are compared with legs.

    Args:
        actor: The body.
        moved: Whether the clip was made with these roles; its rest pose then is better evidence than its motion.
    """
    shape, facing = _shape(actor, moved=moved)
    swapped: dict[str, list[str]] = {}
    misnamed: dict[str, list[str]] = {}
    for limb, parts in (("leg", ORDER[0]), ("arm", ORDER[1])):
        roles = [role for side in SIDES for part in parts if (role := f"{side}_{part}") in actor.rows]
        joints = {role: actor.motion.skeleton.joint_names[actor.rows[role]] for role in roles}
        named = {role: side for role in roles if (side := _named_side(joints[role]))}
        crossed = _crossed_tree(actor, roles)
        certain = facing if limb == "leg" else _arms_agree(shape, facing)
        by_shape = roles if certain < -_FACES else crossed
        against = [role for role, side in named.items() if role.startswith(side) == (role in by_shape)]
        if abs(certain) > (_CERTAIN if against else _FACES):
            wrong = by_shape
            if against:
                misnamed[limb] = against
        elif named:
            wrong = [role for role, side in named.items() if not role.startswith(side)]
        elif limb == "leg":
            wrong = crossed
        else:
            arms, legs = actor.across("upper_arm"), actor.across("upper_leg")
            wrong = crossed
            if arms is not None and legs is not None and not wrong:
                same = float(cosines(unit(arms), unit(legs)).mean()) > 0.0
                whole = _is_whole(swapped.get("leg", ()))  # arms are as the legs if both lines have one direction
                wrong = roles if same == whole else []
        if wrong:
            swapped[limb] = wrong
    return Sides(swapped, misnamed, abs(facing) > _FACES)


def _shape(actor: Actor, *, moved: bool) -> tuple[Actor, float]:
    """Return the body whose shape shows its forward direction, and its ``_facing``.

    The body in the clip is tried before the body at rest, or after it if ``moved``, see ``sides_of``. If neither shows
    the direction, return the body in the clip and 0.
    """
    rest = actor.at_rest
    bodies = [body for body in ((rest, actor) if moved else (actor, rest)) if body is not None]
    for body in bodies:
        if abs(facing := _facing(body)) > _FACES:
            return body, facing
    return actor, 0.0


def _arms_agree(actor: Actor, facing: float) -> float:
    """Return the certainty, -1 to 1, that the arms are on their own sides; negative for opposite sides."""
    legs = actor.across("upper_leg")
    if legs is None or not facing:
        return 0.0
    ways = [
        (1.0, -1.0)[k] * (actor.at(role) - actor.hips)
        for k, side in enumerate(SIDES)
        if (role := f"{side}_upper_arm") in actor.rows
    ]
    if not ways:
        return 0.0
    left = np.sign(facing) * unit(legs)
    off = float(np.mean([cosines(way, left).mean() for way in ways])) / actor.leg
    return float(np.sign(off)) * abs(facing) if abs(off) > _OFF_MIDDLE else 0.0


def turned_round(actor: Actor) -> str:
    """Return ``"trunk"`` or ``"head"`` if its front points away from the toes in a clip; "" if neither does.

    At rest, the front of each part points where the toes point.
    """
    rest = actor.at_rest
    if rest is None:
        return ""
    feet = [f"{side}_foot" for side in SIDES]
    ways = [(rest.bone(foot), actor.bone(foot)) for foot in feet]
    seen = [(a, b) for a, b in ways if a is not None and b is not None]
    if len(seen) < len(feet):
        return ""
    ahead, toes = (unit(flat.sum(0)) for flat in (np.array(side) * (1.0, 1.0, 0.0) for side in zip(*seen, strict=True)))
    for part, roles in (("trunk", ("upper_chest", "chest", "spine")), ("head", ("head", "neck"))):
        row = next((actor.rows[role] for role in roles if role in actor.rows), None)
        if row is not None:
            front = actor.turns(row) @ (rest.turns(row)[0].T @ ahead[0])
            if float(cosines(front, toes).mean()) < -_CERTAIN:
                return part
    return ""


def sides_of_clip(motion: Motion, rows: Mapping[str, int]) -> dict[str, int]:
    """Return the rows of parts by role; if no joint name has a side, the clip shows left and right.

    This is for rest poses with all bones along one axis, in which left and right limbs look alike.
    """
    if not all(role in rows for role in NEEDED):
        return dict(rows)
    names = motion.skeleton.joint_names
    if any(role.startswith(SIDES) and _named_side(names[row]) for role, row in rows.items()):
        return dict(rows)
    actor = Actor(motion, rows, find_up(motion.skeleton, motion.q, rows=rows).vector)
    swapped = sides_of(actor, moved=False).swapped
    turned = {role for limb in whole_limbs(swapped) for role in swapped[limb]}
    return {_other(role) if role in turned else role: row for role, row in rows.items()}


def _named_side(joint: str) -> str:
    """Return the side in the name of a joint; "" if the name has none."""
    word = read_name(joint)
    return "" if word is None else word.side


def _is_whole(roles: Collection[str]) -> bool:
    """Return whether roles contain the upper and lower parts of both arms or of both legs."""
    return any(
        all(f"{side}_{part}_{limb}" in roles for side in SIDES for part in ("upper", "lower"))
        for limb in ("arm", "leg")
    )


def whole_limbs(swapped: Mapping[str, Collection[str]]) -> list[str]:
    """Return the limbs whose upper and lower parts have exchanged sides."""
    return sorted(limb for limb, roles in swapped.items() if _is_whole(roles))


def _crossed_tree(actor: Actor, roles: Sequence[str]) -> list[str]:
    """Return the roles whose joints descend from the previous part of the opposite side and not from that of their own.

    If these are most of the roles, return the other roles.
    """
    parents, rows = actor.motion.skeleton.parents, actor.rows
    out: list[str] = []
    before: dict[str, str] = {}
    for role in roles:
        side, other = role.split("_", 1)[0], _other(before.get(role.split("_", 1)[0], ""))
        above = before.get(side)
        if above is not None and other in rows:
            line = ancestors(parents, rows[role])
            if rows[above] not in line and rows[other] in line:
                out.append(role)
                continue
        before[side] = role
    return out if 2 * len(out) <= len(roles) else [role for role in roles if role not in out]


def _facing(actor: Actor) -> float:
    """Return the mean cosine between the forward direction of the roles and the directions of toes and bent knees.

    It is 0 for a body without two whole legs.
    """
    hips = actor.across("upper_leg")
    if hips is None or any(f"{side}_lower_leg" not in actor.rows for side in SIDES):
        return 0.0
    left = unit(hips)
    feet = [actor.rows.get(f"{side}_foot", actor.rows[f"{side}_lower_leg"]) for side in SIDES]
    forward = unit(np.cross(left, unit(actor.hips - actor.places[:, feet].mean(1))))
    seen: list[float] = []
    for side in SIDES:
        toes = actor.bone(f"{side}_foot")
        if toes is not None:
            seen.append(float(cosines(toes, forward).mean()))
        end = actor.end_row(f"{side}_lower_leg")
        if end is not None:
            hip, knee, ankle = actor.at(f"{side}_upper_leg"), actor.at(f"{side}_lower_leg"), actor.places[:, end]
            line = unit(ankle - hip)
            off = (knee - hip) - np.sum((knee - hip) * line, axis=-1, keepdims=True) * line
            bent = np.linalg.norm(off, axis=-1) > _BENT * actor.leg
            if bent.any():
                seen.append(float(cosines(unit(off[bent]), forward[bent]).mean()))
    return float(np.mean(seen)) if seen else 0.0


def whole_body(pairs: Pairs, lines: Sequence[tuple[Array, Array]], off: float) -> tuple[str, float] | None:
    """Return the cause that explains the directions of all limbs at once, and an angle, radians; None if there is none.

    Args:
        pairs: Directions of the bones in source and result.
        lines: Directions across the body in source and result.
        off: Mean angle between the directions of source and result, radians.
    """
    every = [*pairs.values(), *lines]
    R = best_rotation(every)
    tilt = float(np.arccos(np.clip(R[2, 2], -1.0, 1.0)))
    if tilt > _TILT and _explains(_mean_angle([(a @ R.T, b) for a, b in every]), off):
        return "up axis", tilt
    crossed = [(pairs[_other(bone)][0], b) for bone, (_, b) in pairs.items() if _other(bone) in pairs]
    crossed_lines = [(-a, b) for a, b in lines]
    if _explains(_turned_angle([*crossed, *crossed_lines]), off):
        return "sides swapped", np.pi
    mirror = np.array([-1.0, 1.0, 1.0])
    if _explains(_turned_angle([(mirror * a, b) for a, b in [*crossed, *crossed_lines]]), off):
        return "mirrored", np.pi
    return None


def exchanged_limbs(pairs: Pairs, lines: Sequence[tuple[Array, Array]], turn: float) -> dict[str, tuple[float, float]]:
    """Return the limbs (``"arm"``, ``"leg"``) that move like the source's opposite limbs, or as their mirror images.

    The values are mean angles between source and result, radians: as they are, and with left and right exchanged.

    Args:
        pairs: Directions of the bones; those of the source are already rotated about z.
        lines: Directions across hips and shoulders in the source and in the result, (T, 3).
        turn: Rotation of the source's directions about z, radians.
    """
    found: dict[str, tuple[float, float]] = {}
    for limb, line in (("leg", lines[:1]), ("arm", lines[-1:])):
        bones = [bone for part in ("upper", "lower") for side in SIDES if (bone := f"{side}_{part}_{limb}") in pairs]
        crossed = [(pairs[_other(bone)][0], pairs[bone][1]) for bone in bones if _other(bone) in bones]
        if not crossed:
            continue
        off = _mean_angle([pairs[bone] for bone in bones if _other(bone) in bones])
        ways = [_mean_angle(crossed)]
        ways += [_mean_angle([(_mirrored(a, about_z(c, turn), d), b) for a, b in crossed]) for c, d in line]
        if off > _CLEAR and min(ways) < min(_REST * off, _CLOSE):
            found[limb] = off, min(ways)
    return found


def _mirrored(a: Array, across: Array, own: Array) -> Array:
    """Return vectors (T, 3) mirrored along a line across the body, then rotated about z from it to another line."""
    image = a - 2.0 * np.sum(a * across, axis=1, keepdims=True) * across
    angle = np.arctan2(own[:, 1], own[:, 0]) - np.arctan2(across[:, 1], across[:, 0])
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * image[:, 0] - s * image[:, 1], s * image[:, 0] + c * image[:, 1], image[:, 2]], axis=1)


def limb_cause(bone: str, pairs: Pairs, result: Actor) -> tuple[str, float] | None:
    """Return the cause of the angle between a bone and its source, and a rotation in radians; None without a cause.

    Args:
        bone: The bone.
        pairs: Directions of the bones; those of the source are already rotated about z.
        result: The clip.
    """
    a, b = pairs[bone]
    off = float(np.mean(angles(a, b)))
    other = _other(bone)
    if other != bone and other in pairs:
        c, d = pairs[other]
        if _explains(float(np.mean(np.concatenate([angles(c, b), angles(a, d)]))), off):
            return "sides swapped", np.pi
    across = result.across("upper_arm" if bone.endswith("arm") else "upper_leg")
    if bone.split("_", maxsplit=1)[0] in SIDES and across is not None:
        left = unit(across)
        trunk = result.bone("trunk")
        ahead = unit(np.cross(left, trunk if trunk is not None else np.array([0.0, 0.0, 1.0])))
        for normal in (left, ahead):
            image = b - 2.0 * np.sum(b * normal, axis=-1, keepdims=True) * normal
            if _explains(float(np.mean(angles(a, image))), off):
                return "mirrored", np.pi
    if bone in result.rows:
        R = result.turns(result.rows[bone])
        seen, own = (np.einsum("tji,tj->ti", R, v) for v in (a, b))
        middle = unit(seen.mean(0))
        if float(np.mean(angles(seen, middle))) < min(_STEADY, _HALF * off):
            return "rest pose", float(angles(middle, unit(own.mean(0))))
    return None


def held_by_limit(bone: str, pairs: Pairs, result: Actor, off: Bools) -> str | None:
    """Return the joint whose limit keeps a bone from the source's direction; None if there is none.

    In most of the frames, the joint is at a limit or locked, and the source's direction lies beyond that limit.

    Args:
        bone: The bone.
        pairs: Directions of the bones; those of the source are already rotated about z.
        result: The clip.
        off: Mask of the frames in which the bone differs from the source, (T,).
    """
    if bone not in result.rows or not off.any():
        return None
    skeleton = result.motion.skeleton
    wanted, own = (v[off] for v in pairs[bone])
    for row, part in limbs_of_joints(skeleton, dict(result.rows)).items():
        joint = skeleton.joints[row]
        if part != bone or joint.kind not in (Kind.HINGE, Kind.BALL):
            continue
        turns, values = result.turns(row)[off], result.motion.q[off, skeleton.q_slice(row)]
        if joint.kind is Kind.HINGE:
            held = _hinge_holds(turns @ joint.axis, values[:, 0], skeleton.value_range(row), own, wanted)
        elif isinstance(joint.limit, SwingTwist):
            there = np.stack([_carried(turns[:, :, k], own, wanted) for k in range(3)], axis=2)
            more = matrix_to_quat(np.swapaxes(turns, 1, 2) @ there)
            held = swing_used(joint.limit, values) >= 1.0 - _AT_LIMIT
            held &= swing_used(joint.limit, quat_product(values, more)) > 1.0 + _AT_LIMIT
        else:
            continue
        if float(held.mean()) > _HALF:
            return skeleton.joint_names[row]
    return None


def _hinge_holds(axis: Array, value: Array, limits: tuple[float, float], own: Array, wanted: Array) -> Bools:
    """Return a mask of the frames in which a limit keeps a hinge from rotating a bone to its wanted direction, (T,).

    Args:
        axis: World directions of the hinge's axis, (T, 3).
        value: Angles of the hinge, (T,), radians.
        limits: Lower and upper limit of the hinge.
        own: Directions of the bone, (T, 3).
        wanted: Wanted directions of the bone, (T, 3).
    """
    low, high = limits
    along = np.sum(own * axis, axis=1, keepdims=True) * axis
    flat = own - along, wanted - np.sum(wanted * axis, axis=1, keepdims=True) * axis
    turn = np.arctan2(np.sum(np.cross(*flat) * axis, axis=1), np.sum(flat[0] * flat[1], axis=1))
    slack = max(_AT_LIMIT * (high - low), _LOCKED) if np.isfinite(high - low) else _LOCKED
    held: Bools = np.where(turn > 0.0, value > high - slack, value < low + slack)
    turned = along + np.cos(turn)[:, None] * flat[0] + np.sin(turn)[:, None] * np.cross(axis, own)
    return held & (angles(wanted, turned) < _HALF * angles(wanted, own))


def inherited(bone: str, pairs: Pairs) -> bool:
    """Return whether a bone differs from the source mainly because the bone above it differs."""
    above = bone.replace("lower_", "upper_") if "lower_" in bone else None
    if above is None or above not in pairs:
        return False
    a, b = pairs[bone]
    return float(np.mean(angles(_carried(a, *pairs[above]), b))) < 0.6 * float(np.mean(angles(a, b)))


def _carried(v: Array, a: Array, b: Array) -> Array:
    """Rotate vectors (T, 3) by the smallest rotations from directions a to directions b."""
    axis, cosine = np.cross(a, b), np.sum(a * b, axis=-1, keepdims=True)
    return v + np.cross(axis, v) + np.cross(axis, np.cross(axis, v)) / np.maximum(1.0 + cosine, 1e-6)


def _turned_angle(pairs: Sequence[tuple[Array, Array]]) -> float:
    """Return the mean angle between directions after the best rotation about z, radians; pi without directions."""
    if not pairs:
        return np.pi
    turn = best_turn(pairs)
    return _mean_angle([(about_z(a, turn), b) for a, b in pairs])


def _mean_angle(pairs: Sequence[tuple[Array, Array]]) -> float:
    """Return the mean angle between directions, radians."""
    return float(np.mean([np.mean(angles(a, b)) for a, b in pairs]))


def _explains(left: float, off: float) -> bool:
    """Return whether a cause explains an angle ``off``: without the cause, the angle ``left`` is small enough."""
    return left < min(_HALF * off, _CLOSE)


def _other(bone: str) -> str:
    """Return the bone of the other side; a bone without a side is returned unchanged."""
    side, _, rest = bone.partition("_")
    return f"{SIDES[1 - SIDES.index(side)]}_{rest}" if side in SIDES else bone
