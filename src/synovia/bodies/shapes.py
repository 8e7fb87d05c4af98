"""Shapes for bodies whose files have none: capsules along the bones, or those that a caller sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import InputError
from synovia.model import Joint, Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.shapes.solids import Capsule, Solid, Sphere, check_solids

# By role, without its side: radius as a part of the length of a leg from hip to ankle. An adult has 0.86 m there.
_RADII: Final = {
    "hips": 0.15, "spine": 0.15, "chest": 0.15, "upper_chest": 0.15, "neck": 0.07, "head": 0.115,
    "shoulder": 0.07, "upper_arm": 0.055, "lower_arm": 0.046, "hand": 0.035,
    "upper_leg": 0.09, "lower_leg": 0.062, "foot": 0.046, "toes": 0.035,
}  # fmt: skip
_SLENDER: Final = 0.15  # radius of another bone as a part of its length
_SHORT: Final = 1e-3  # part of the body's size below which a bone has no capsule


def with_shapes(skeleton: Skeleton, shapes: Mapping[str | int, Solid | Sequence[Solid]] | None = None) -> Skeleton:
    """Return the skeleton with shapes: those given, or capsules along its bones.

    Without ``shapes``, a skeleton that has shapes already stays as it is. Otherwise every bone becomes a capsule. Parts
    of a human body that are recognised have the thickness of those of an adult with legs of the same length; other
    bones have a radius of 15 % of their length. A head, hand, foot or body with a mass at the end of a limb becomes a
    sphere about its centre of mass. These shapes are estimates: no mesh is read.

    Args:
        skeleton: The skeleton.
        shapes: Shapes by joint or link, in the frame of that joint or link, in place of those that it has; an empty
            list for none. The others keep theirs. None for capsules along the bones.

    Raises:
        InputError: If a value is not a list of shapes, a name means a site, or two names mean one frame.
        UnknownNameError: If there is no such joint or link.

    Example:
        >>> import synovia as sy
        >>> body = sy.with_shapes(sy.bundled("humanoid"))
        >>> body.shapes["left_lower_arm"][0].radius < body.shapes["left_lower_leg"][0].radius
        True
        >>> bare = sy.with_shapes(body, {"left_hand": [], "right_hand": [sy.Sphere(radius=0.05)]})
        >>> "left_hand" in bare.shapes, len(bare.shapes["right_hand"])
        (False, 1)
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    if shapes is None:
        return skeleton if skeleton.shapes else skeleton.with_joints(_along_bones(skeleton))
    check_kind("shapes", shapes, Mapping, "such as {'left_hand': [Sphere(radius=0.05)]}")
    joints = list(skeleton.joints)
    named: dict[int, str | int] = {}
    for name, given in shapes.items():
        row = skeleton.index(name)
        if row in named:
            both = [named[row], name]
            raise InputError(f"shapes of {name!r}", where=skeleton.name, value=both, expected="each frame once")
        named[row] = name
        joints[row] = replace(joints[row], shapes=check_solids(given, f"shapes[{name!r}]"))
    return skeleton.with_joints(joints)


def _along_bones(skeleton: Skeleton) -> list[Joint]:
    """Return the joints with a capsule along each bone, and a sphere about each mass at the end of a limb."""
    roles = {row: role for role, row in skeleton.role_rows.items()}
    leg = _leg(skeleton)
    joints = list(skeleton.joints)
    for row, joint in enumerate(joints):
        role = roles.get(row, "")
        for side in SIDES:
            role = role.removeprefix(f"{side}_")
        own = _RADII[role] * leg if leg > 0.0 and role in _RADII else None
        found: list[Solid] = []
        for child in skeleton.children[row]:
            end = skeleton.joints[child].rest[:3, 3]
            length = float(np.linalg.norm(end))
            if length > _SHORT * skeleton.size:
                found.append(Capsule(a=np.zeros(3), b=end, radius=_SLENDER * length if own is None else own))
        if not found and own is not None and (joint.com.any() or role in ("head", "hand")):
            found.append(Sphere(center=joint.com, radius=own))
        joints[row] = replace(joint, shapes=tuple(found))
    return joints


def _leg(skeleton: Skeleton) -> float:
    """Return the mean length of the legs from hip to ankle at rest; 0 if no leg is recognised."""
    rows, lengths = skeleton.role_rows, list[float]()
    places = skeleton.rest_pose().positions
    for side in SIDES:
        parts = [f"{side}_{part}" for part in ("upper_leg", "lower_leg", "foot")]
        if all(part in rows for part in parts):
            hip, knee, ankle = (places[rows[part]] for part in parts)
            lengths.append(float(np.linalg.norm(knee - hip) + np.linalg.norm(ankle - knee)))
    return sum(lengths) / len(lengths) if lengths else 0.0
