"""Make capsules along the bones of a body without a known surface, as thick as an adult of the same height.

In other bodies, a link whose joints are all at one point has no bone, as in many robot wrists. Its capsule begins at
this point and has the centre of mass in its middle. If there is no centre of mass, a sphere is around the point.

The thickness is that of a circle with the mean circumference in the survey, as a fraction of the stature, averaged over
men and women.

References:
    C. Gordon et al., *2012 Anthropometric Survey of U.S. Army Personnel: Methods and Summary Statistics*, Natick
    TR-15/007, 2014: 4,082 men and 1,986 women.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.anatomy.names import FINGERS, SIDES
from synovia.model.anatomy.stature import stature_of
from synovia.model.geometry import Array
from synovia.model.shapes.solids import Capsule, Solid, Sphere

_RADII: Final = {  # fractions of the stature, by role without side; comments name the circumference
    "hips": 0.0961,  # buttock
    "spine": 0.0847,  # waist
    "chest": 0.0942,  # chest
    "upper_chest": 0.0942,
    "neck": 0.0341,  # neck
    "head": 0.0534,  # head
    "shoulder": 0.0312,  # biceps, as in the upper arm
    "upper_arm": 0.0312,  # biceps, flexed
    "lower_arm": 0.0270,  # forearm, flexed
    "hand": 0.0187,  # hand
    "upper_leg": 0.0584,  # thigh
    "lower_leg": 0.0360,  # calf
    "foot": 0.0226,  # ball of the foot
    "toes": 0.0226,
}
_FINGER: Final = 0.0061  # fraction of the stature: an eighth of the breadth of a hand
_LENGTHS: Final = {"head": 0.0746, "hand": 0.1106}  # fractions of the stature: tragion to top of head; hand
_SLENDER: Final = 0.15  # radius of a bone of another body as a fraction of its length
_SHORT: Final = 1e-3  # fraction of the body's size: shorter bones have no capsule


def bone_capsules(skeleton: Skeleton, needed: Collection[int] = ()) -> dict[int, list[Solid]]:
    """Return a capsule along each bone, and shapes at the ends of limbs, by joint row, in the frame of the joint.

    A link without a bone and without a role has a capsule around its centre of mass.

    Args:
        skeleton: The skeleton.
        needed: Joints that get a sphere if they have none of these shapes, as thick as the bone that leads to them.
    """
    roles = {row: role for role, row in skeleton.role_rows.items()}
    stature = stature_of(skeleton)
    found: dict[int, list[Solid]] = {}
    for row, joint in enumerate(skeleton.joints):
        part = _part(roles.get(row, ""))
        own = _radius(part) * stature
        shapes: list[Solid] = []
        for child in skeleton.children[row]:
            end = skeleton.joints[child].rest[:3, 3]
            length = float(np.linalg.norm(end))
            if length > _SHORT * skeleton.size:
                shapes.append(Capsule(a=np.zeros(3), b=end, radius=own if own > 0.0 else _SLENDER * length))
        if not shapes and own > 0.0 and joint.com.any():
            shapes.append(Sphere(center=joint.com, radius=own))
        elif not shapes and own > 0.0 and part in _LENGTHS:
            end = (_LENGTHS[part] * stature - own) * _onward(skeleton, row)
            shapes.append(Capsule(a=np.zeros(3), b=end, radius=own))
        length = 2.0 * float(np.linalg.norm(joint.com))
        if not shapes and own == 0.0 and length > _SHORT * skeleton.size:
            shapes.append(Capsule(a=np.zeros(3), b=2.0 * joint.com, radius=_SLENDER * length))
        if not shapes and row in needed and (length := _bone_to(skeleton, row)) > 0.0:
            shapes.append(Sphere(radius=_SLENDER * length))
        if shapes:
            found[row] = shapes
    return found


def _bone_to(skeleton: Skeleton, row: int) -> float:
    """Return the length of the bone that leads to a joint; the mean over all bones if there is none."""
    lengths = [float(np.linalg.norm(joint.rest[:3, 3])) for joint in skeleton.joints[1:]]
    long = [length for length in lengths if length > _SHORT * skeleton.size]
    own = lengths[row - 1] if row else 0.0
    return own if own in long else sum(long) / max(len(long), 1)


def _onward(skeleton: Skeleton, row: int) -> Array:
    """Return the direction from the parent of a joint to the joint at rest, in the frame of the joint."""
    bone = skeleton.joints[row].rest
    length = float(np.linalg.norm(bone[:3, 3]))
    return bone[:3, :3].T @ bone[:3, 3] / length if length > 0.0 else np.array((0.0, 0.0, 1.0))


def _part(role: str) -> str:
    """Return a role without its side."""
    for side in SIDES:
        role = role.removeprefix(f"{side}_")
    return role


def _radius(part: str) -> float:
    """Return the radius of a part as a fraction of the stature; 0 if it is unknown."""
    if part.partition("_")[0] in FINGERS.values():
        return _FINGER
    return _RADII.get(part, 0.0)
