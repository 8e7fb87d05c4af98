"""Add masses to characters, whose files have none: those of an adult body, placed along the bones."""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, as_numbers

# By role: percentage of the total mass, position of the centre of mass along the bone (0 to 1), possible ends of the
# bone, and the part that gets the mass if the joint is missing. de Leva (1996), Table 4, males.
_TRUNK: Final[dict[str, tuple[float, float, tuple[str, ...], str]]] = {
    "hips": (11.17, 0.39, ("spine", "chest", "head"), "hips"),
    "spine": (16.33, 0.55, ("chest", "neck", "head"), "hips"),
    "chest": (15.96, 0.70, ("neck", "head"), "spine"),
    "head": (6.94, 0.50, (), "chest"),
}
_LIMBS: Final[dict[str, tuple[float, float, tuple[str, ...], str]]] = {
    "upper_arm": (2.71, 0.577, ("lower_arm",), "chest"),
    "lower_arm": (1.62, 0.457, ("hand",), "upper_arm"),
    "hand": (0.61, 0.79, (), "lower_arm"),
    "upper_leg": (14.16, 0.41, ("lower_leg",), "hips"),
    "lower_leg": (4.33, 0.446, ("foot",), "upper_leg"),
    "foot": (1.37, 0.44, ("toes",), "lower_leg"),
}


def with_body_masses(skeleton: Skeleton, mass: float = 75.0) -> Skeleton:
    """Return a human skeleton with the masses of an adult, for ``CenterOfMassGoal``.

    Each recognised part of the body (by roles, names or shape, as in ``retarget``) gets its share of the mass, at a
    point of its bone at rest. The mass of a missing part is added to its parent part. If the whole trunk is missing,
    its mass is in the middle of the joints below the hips without the legs. Existing masses are replaced.

    Args:
        skeleton: The skeleton.
        mass: Mass of the whole body, kilograms.

    Raises:
        InputError: If the mass is not positive, or the hips or legs are not found.

    Example:
        >>> import synovia as sy
        >>> heavy = sy.with_body_masses(sy.bundled("humanoid"), 90.0)
        >>> round(sum(joint.mass for joint in heavy.joints), 6)
        90.0

    References:
        de Leva (1996), *Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters*, Table 4, males.
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    whole = float(as_numbers(mass, (), "mass"))
    if whole <= 0.0:
        raise InputError("mass is not positive", value=mass, expected="kilograms above 0")
    found = skeleton.role_rows
    needed = ["hips", *(f"{side}_upper_leg" for side in SIDES)]
    if missing := [role for role in needed if role not in found]:
        raise InputError(
            "skeleton is not a human body",
            where=skeleton.name,
            expected=f"joints for {', '.join(missing)}",
            hint="skeleton.with_roles({'left_upper_leg': JOINT}) assigns them",
        )
    parts = dict(_TRUNK)
    for side in SIDES:
        for name, (share, along, ends, carrier) in _LIMBS.items():
            above = carrier if carrier in _TRUNK else f"{side}_{carrier}"
            parts[f"{side}_{name}"] = share, along, tuple(f"{side}_{end}" for end in ends), above
    bare = not {"spine", "chest", "head"} & found.keys()
    masses, moments = np.zeros(len(skeleton)), np.zeros((len(skeleton), 3))
    for role, (share, along, ends, carrier) in parts.items():
        holder = role
        while holder not in found:
            holder = carrier if holder == role else parts[holder][3]
        row = found[holder]
        if holder == "hips" and bare:
            row, place = _trunk(skeleton, row, [found[f"{side}_upper_leg"] for side in SIDES], lower=role == "hips")
        elif holder == role:
            place = along * _bone(skeleton, row, [found[end] for end in ends if end in found])
        else:
            place = np.zeros(3)
        masses[row] += share / 100.0 * whole
        moments[row] += share / 100.0 * whole * place
    joints = [
        dataclasses.replace(
            joint,
            mass=float(masses[row]),
            com=moments[row] / masses[row] if masses[row] > 0.0 else np.zeros(3),
        )
        for row, joint in enumerate(skeleton.joints)
    ]
    return skeleton.with_joints(joints)


def _trunk(skeleton: Skeleton, hips: int, legs: list[int], *, lower: bool) -> tuple[int, Array]:
    """Return where a part of a trunk without known joints is: the row that carries it, and its position in that frame.

    The lower part is between the upper legs. Other parts are in the middle of the largest branch below the hips that
    has no legs.

    Args:
        skeleton: The skeleton.
        hips: Row of the hips.
        legs: Rows of the upper legs.
        lower: Whether the part is the lower part of the trunk.
    """
    rest = skeleton.rest_pose()
    branches: list[list[int]] = []
    for child in skeleton.children[hips]:
        branch = [child]
        for row in branch:
            branch += skeleton.children[row]
        if not set(legs) & set(branch):
            branches.append(branch)
    held = max(branches, key=len, default=None)
    row, points = (hips, legs) if lower or held is None else (held[0], held)
    middle = np.mean([rest.position(point) for point in points], axis=0)
    return row, rest.matrix(row).T @ (middle - rest.position(row))


def _bone(skeleton: Skeleton, row: int, ends: list[int]) -> Array:
    """Return the vector from a joint to the first of ``ends``, or to its children's mean, in the joint's frame."""
    rest = skeleton.rest_pose()
    children = ends[:1] or skeleton.children[row]
    if not children:
        return np.zeros(3)
    middle = np.mean([rest.position(child) for child in children], axis=0)
    return rest.matrix(row).T @ (middle - rest.position(row))
