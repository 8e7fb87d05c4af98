"""Set human joint limits for characters, whose files have none: ranges of motion of adults, by role."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from synovia.arguments import check_kind
from synovia.bodies.support import up_of
from synovia.errors import InputError
from synovia.model import Kind, Pose, Skeleton
from synovia.model.anatomy.axes import body_axes
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, unit
from synovia.model.limits import Limit, SwingTwist
from synovia.model.tree import ancestors

_Pair = tuple[float, float]
_Range = tuple[_Pair, _Pair, _Pair]
# Degrees, from the American Academy of Orthopaedic Surgeons unless another source is named. Ranges of the trunk (from
# hips to chest) and the neck: (front, back), sides, twist. The trunk's twist is by the American Medical Association.
_BACK: Final[_Range] = (80.0, 25.0), (35.0, 35.0), (45.0, 45.0)
_NECK: Final[_Range] = (45.0, 45.0), (45.0, 45.0), (70.0, 70.0)  # twist: the middle of the textbook range, 60 to 80
# Ranges of legs and arms: (front, back), (outwards, inwards), twist. Knees and elbows bend to one side only, hands
# towards the palm and the back of the hand.
_HIP: Final[_Range] = (120.0, 30.0), (45.0, 30.0), (45.0, 45.0)
_KNEE: Final = 135.0
_ANKLE: Final = 20.0, 50.0  # degrees: toes up and down
_INVERSION, _EVERSION = 35.0, 25.0  # sole inwards and outwards, by the Merck Manual
_TOES_ASIDE: Final = 15.0  # chosen: a foot rotates little about its leg
_ELBOW: Final = 150.0
_FOREARM: Final = 80.0  # degrees of pronation, and of supination
_WRIST: Final = (80.0, 70.0), (20.0, 30.0)  # (towards palm, back of the hand), (towards thumb, little finger)
_SHOULDER: Final = (180.0, 60.0), (135.0, 45.0)  # (front, back): arm down; arm level (Kurz: 130, 45)
_RAISED, _CROSSED = 180.0, 45.0  # abduction; adduction, by Kurz
_LATERAL, _MEDIAL = 90.0, 70.0  # rotation of the upper arm
# (front, back), (up, down), twist; up by 30, as in Inman et al. (1944); the other values are rounded down
_COLLAR: Final[_Range] = (15.0, 15.0), (30.0, 10.0), (5.0, 5.0)
_KNEE_TWIST, _WRIST_TWIST = 10.0, 10.0  # chosen: play of soft tissue
_EYE: Final[_Range] = (30.0, 45.0), (45.0, 45.0), (10.0, 10.0)  # (up, down), sides, twist; chosen
_SIDEWAYS: Final = 2.0  # degrees of play of knees and elbows to each side; chosen
_DOWN: Final = 0.7  # smallest cosine between the downward direction and a leg of a body that stands


def with_human_limits(skeleton: Skeleton) -> Skeleton:
    """Return a copy of a human skeleton whose ball joints have the joint limits of an adult.

    Trunk, neck, eyes, collar bones, arms, hands, legs and feet get ranges by their roles, about the pose of the file:
    standing, with the arms anywhere from hanging to level at the sides. The ranges of trunk and neck are divided among
    their joints. If a knee or an elbow is bent at rest, its limit is the remaining range. Joints that have limits keep
    them; hinges, fingers and toes stay as they are.

    The ranges are normal for healthy adults; athletes may exceed them. The values of the American Academy of
    Orthopaedic Surgeons are, in degrees: trunk 80 to the front, 25 back, 35 aside; neck 45, 45, 45; shoulder 180, 60,
    180, and rotation by 90 outwards and 70 inwards; elbow 150; forearm 80 each way; wrist 80, 70, 20, 30; hip 120, 30,
    45, 30, and rotation by 45; knee 135; ankle 20, 50. The twist of the trunk (45) is from the American Medical
    Association, the tilt of the sole (35 inwards, 25 outwards) from the Merck Manual. In arms, Boone and Azen measured
    means that differ from these by up to 14 degrees.

    Some values are choices, because sources differ or give none: the twist of the neck (70), the eyes (30 up, 45 down
    and aside), the arm across the body and level (45; 135 and 45), the collar bone (30 up, else 5 to 15), the foot
    about its leg (15), the twist of knees and wrists (10), and 2 degrees to the sides of knees and elbows. Twists are
    measured from the pose of the file. Hands bend as if their thumbs pointed forward in that pose.

    Args:
        skeleton: The skeleton.

    Raises:
        InputError: If the skeleton has no hips and legs, or does not stand at rest.

    Example:
        >>> import dataclasses
        >>> import synovia as sy
        >>> person = sy.bundled("humanoid")
        >>> free = person.with_limits({"left_upper_leg": None})
        >>> sy.with_human_limits(free).joint("left_upper_leg").limit.describe()
        'swing x -120/+30, y -30/+45, twist -45 to 45 deg'

    References:
        American Academy of Orthopaedic Surgeons (1965), *Joint Motion: Method of Measuring and Recording*, as listed
        in Norkin & White, *Measurement of Joint Motion*, Appendix A, and Boone & Azen (1979), *Normal range of
        motion of joints in male subjects*; Inman, Saunders & Abbott (1944), *Observations on the function of the
        shoulder joint*; Kurz, *Stretching Scientifically*; *Merck Manual*, normal values for range of motion.
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    found = skeleton.role_rows
    needed = ["hips", *(f"{side}_{part}_leg" for side in SIDES for part in ("upper", "lower"))]
    if missing := [role for role in needed if role not in found]:
        raise InputError(
            "skeleton is not a human body", where=skeleton.name, expected=f"joints for {', '.join(missing)}",
            hint="skeleton.with_roles({'left_upper_leg': JOINT}) assigns them",
        )  # fmt: skip
    person = _Person(skeleton, found)
    limits: dict[str | int, Limit | tuple[float, float] | None] = {
        row: limit
        for row, limit in person.limits().items()
        if skeleton.joints[row].kind is Kind.BALL and skeleton.joints[row].limit is None
    }
    return skeleton.with_limits(limits) if limits else skeleton


class _Person:
    """A human body at rest, with its axes."""

    def __init__(self, skeleton: Skeleton, found: Mapping[str, int]) -> None:
        """Find the axes of the body.

        Raises:
            InputError: If a leg does not point down.
        """
        self._skeleton, self._found = skeleton, found
        self._rest: Pose = skeleton.rest_pose()
        places = {role: self._rest.position(row) for role, row in found.items()}
        self._axes = body_axes(places, skeleton.size, up_of(skeleton), skeleton.name)
        for side in SIDES:
            leg = unit(places[f"{side}_lower_leg"] - places[f"{side}_upper_leg"])
            if leg @ self._axes[:, 1] > -_DOWN:
                raise InputError(
                    "rest pose", where=skeleton.name,
                    expected=f"a body that stands, with a {side}_upper_leg that points down",
                )  # fmt: skip

    def limits(self) -> dict[int, SwingTwist]:
        """Return the limits of all recognised joints, by row."""
        left, up, ahead = self._axes.T
        out: dict[int, SwingTwist] = {}
        hips, neck = self._found["hips"], self._found.get("neck", self._found.get("head"))
        arms = [self._found[role] for side in SIDES if (role := f"{side}_upper_arm") in self._found]
        chest = self._found.get("upper_chest", self._found.get("chest"))
        tops = [row for row in (chest, self._found.get("spine")) if row is not None]
        trunk = self._between(hips, tops[0]) if tops else []
        self._share(out, trunk, _BACK)
        if neck is not None and not set(arms) & set(ancestors(self._skeleton.parents, neck)):
            self._share(out, self._between(neck, self._found.get("head", neck), first=True), _NECK)
        for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
            out |= self._leg(side, sign, left, ahead) | self._arm(side, sign, up, ahead)
            if (eye := self._found.get(f"{side}_eye")) is not None:
                up_down, aside, (one, two) = _EYE
                out[eye] = self._limit(eye, ahead, left, up_down, aside, (-one, two))
        return out

    def _between(self, top: int, end: int, *, first: bool = False) -> list[int]:
        """Return the ball joints between rows ``top`` and ``end``, ``end`` included; with ``first``, ``top`` too."""
        line = ancestors(self._skeleton.parents, end)
        rows = line[: line.index(top) + int(first)] if top in line else []
        return [row for row in rows if self._skeleton.joints[row].kind is Kind.BALL]

    def _share(self, out: dict[int, SwingTwist], rows: list[int], whole: _Range) -> None:
        """Divide a range evenly among joints, and add their limits to ``out``; bones point up, x axes to the left."""
        left, up, _ = self._axes.T
        (front, back), (aside, other), (one, two) = (
            ((a / len(rows), b / len(rows)) for a, b in whole) if rows else whole
        )
        for row in rows:
            out[row] = self._limit(row, up, left, (back, front), (aside, other), (-one, two))

    def _leg(self, side: str, sign: float, left: Array, ahead: Array) -> dict[int, SwingTwist]:
        """Return the limits of a leg."""
        out: dict[int, SwingTwist] = {}
        hip, knee = (self._found[f"{side}_{part}_leg"] for part in ("upper", "lower"))
        foot = self._found.get(f"{side}_foot")
        (front, back), (outer, inner), (one, two) = _HIP
        sides = (inner, outer) if sign > 0.0 else (outer, inner)
        thigh = self._way(hip, knee)
        out[hip] = self._limit(hip, thigh, left, (front, back), sides, (-one, two))
        if foot is None:
            return out
        shin = self._way(knee, foot)
        bent = self._bent(thigh, shin, left)
        bend = (bent, max(_KNEE - bent, 0.0))
        out[knee] = self._limit(knee, shin, left, bend, (_SIDEWAYS, _SIDEWAYS), (-_KNEE_TWIST, _KNEE_TWIST))
        tilt = (-_INVERSION, _EVERSION) if sign > 0.0 else (-_EVERSION, _INVERSION)
        out[foot] = self._limit(foot, ahead, left, _ANKLE, (_TOES_ASIDE, _TOES_ASIDE), tilt)
        return out

    def _arm(self, side: str, sign: float, up: Array, ahead: Array) -> dict[int, SwingTwist]:
        """Return the limits of a collar bone and an arm; their swing about x is in the plane of the body."""
        rows = [self._found.get(f"{side}_{part}") for part in ("shoulder", "upper_arm", "lower_arm", "hand")]
        collar, upper, lower, hand = rows
        out: dict[int, SwingTwist] = {}
        outwards = sign * self._axes[:, 0]
        turn = unit(np.cross(outwards, up))  # axis of the rotation that raises an arm
        if collar is not None:
            (front, back), (rise, fall), (one, two) = _COLLAR
            out[collar] = self._limit(collar, outwards, turn, (fall, rise), (front, back), (-one, two))
        if upper is None or lower is None:
            return out
        arm = self._way(upper, lower)
        height = math.degrees(math.acos(float(np.clip(-arm @ up, -1.0, 1.0))))  # 0: arm down, 90: level
        level = math.sin(math.radians(min(height, 90.0)))
        front, back = ((1.0 - level) * down + level * flat for down, flat in zip(*_SHOULDER, strict=True))
        raised = (max(height, _CROSSED), max(_RAISED - height, 0.0))
        twist = (-_LATERAL, _MEDIAL) if sign > 0.0 else (-_MEDIAL, _LATERAL)
        out[upper] = self._limit(upper, arm, turn, raised, _front_first(arm, turn, ahead, front, back), twist)
        if hand is None:
            return out
        forearm = self._way(lower, hand)
        bent = math.degrees(math.acos(float(np.clip(arm @ forearm, -1.0, 1.0))))
        bend = _front_first(forearm, turn, ahead, max(_ELBOW - bent, 0.0), bent)
        out[lower] = self._limit(lower, forearm, turn, (_SIDEWAYS, _SIDEWAYS), bend, (-_FOREARM, _FOREARM))
        flat, (thumb, little) = _WRIST
        aside = _front_first(forearm, turn, ahead, thumb, little)
        out[hand] = self._limit(hand, forearm, turn, flat, aside, (-_WRIST_TWIST, _WRIST_TWIST))
        return out

    def _limit(self, row: int, bone: Array, x_axis: Array, x: _Pair, y: _Pair, twist: _Pair) -> SwingTwist:
        """Return a limit from angles in degrees and world directions at rest."""
        inward = self._rest.matrix(row).T
        half_x, half_y, turn = (tuple(np.radians(pair).tolist()) for pair in (x, y, twist))
        return SwingTwist.about(inward @ bone, x=half_x, y=half_y, twist=turn, x_axis=inward @ x_axis)

    def _way(self, begin: int, end: int) -> Array:
        """Return the direction of a bone at rest, (3,)."""
        return unit(self._rest.position(end) - self._rest.position(begin))

    @staticmethod
    def _bent(thigh: Array, shin: Array, left: Array) -> float:
        """Return the bend of a knee at rest, degrees."""
        return max(math.degrees(math.atan2(float(np.cross(thigh, shin) @ left), float(thigh @ shin))), 0.0)


def _front_first(bone: Array, x_axis: Array, ahead: Array, front: float, back: float) -> _Pair:
    """Return the half-angles about -y and +y of a swing that moves a bone to the front and to the back."""
    y_axis = np.cross(bone, unit(x_axis - (x_axis @ bone) * bone))
    return (back, front) if np.cross(y_axis, bone) @ ahead > 0.0 else (front, back)
