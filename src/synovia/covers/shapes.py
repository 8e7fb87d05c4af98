"""Add shapes to bodies whose files have none: around their surface, along their bones, or given by the caller."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from synovia.arguments import check_kind
from synovia.covers.fit import OVERHANG, fit_capsules
from synovia.covers.points import distances_to
from synovia.covers.skin import skin_of
from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.anatomy.names import FINGERS, SIDES
from synovia.model.anatomy.stature import stature_of
from synovia.model.geometry import Array, frames_to_transforms, is_number
from synovia.model.loops.loop import Loop
from synovia.model.shapes.solids import Capsule, Solid, Sphere, check_solids
from synovia.surface import Surface, surface_of_skeleton
from synovia.text import counted, listed

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
_SLENDER: Final = 0.15  # radius of other bones as a fraction of their length
_SHORT: Final = 1e-3  # fraction of the body's size: shorter bones have no capsule
Given = Mapping[str | int, Solid | Sequence[Solid]] | Literal["surface", "bones"] | None
_KINDS: Final = ("surface", "bones")
_ESTIMATED: Final = "Shapes that could not be read are replaced by capsules, on links"


def with_shapes(skeleton: Skeleton, shapes: Given = None, *, overhang: float | None = None) -> Skeleton:
    """Return the skeleton with given shapes, or with capsules around its surface or along its bones.

    Without ``shapes``, a skeleton without shapes gets capsules around its surface, or along its bones if its file has
    no surface. If a skeleton has shapes, they are kept, and capsules are added only to links with missing shapes:
    shapes that the file has but that could not be read, for example because mesh files are missing
    (``Joint.shapes_lost``). Links without shapes in the file stay without: they are frames, or parts left out on
    purpose, and capsules there would forbid possible poses. ``notes`` lists the links that get capsules.

    The surface is the skin of a character or the meshes of a robot. Each triangle belongs to the joint with the largest
    sum of skin weights at its corners, and the capsules of a joint contain its triangles. So the capsules contain the
    whole surface in its bind pose. ``shape_fit`` measures how far they extend beyond the surface. If the surface covers
    less than half of the bones, bones outside of it get capsules as below.

    Bones lead to child joints and to the points where loops close. Recognised parts of a human body are as thick as
    those of an adult of the same height, by a survey of 6,068 soldiers. Other bones have a radius of 15 % of their
    length. A link whose joints are all at one point has such a capsule around its centre of mass. If the centre of
    mass is at this point, too, and shapes are missing, the link has a sphere around the point, as thick as the bone
    that leads to it. These shapes are estimates.

    Args:
        skeleton: The skeleton.
        shapes: Shapes by joint or link, in the frame of that joint or link, which replace its own; an empty list for
            none. Other joints keep their shapes. Or ``"surface"`` or ``"bones"``, which replaces all shapes; None as
            above.
        overhang: Length units by which a capsule may extend beyond the surface. A capsule that extends farther is
            divided, into at most four for a joint. None for 1.2 % of the diagonal of the box around the surface.

    Raises:
        InputError: If a value is not a list of shapes, a name means a site, two names mean one frame, or the body has
            no surface and ``shapes`` asks for it.
        UnknownNameError: If there is no such joint or link.

    Example:
        >>> import synovia as sy
        >>> body = sy.with_shapes(sy.bundled("humanoid"), "bones")
        >>> body.shapes["left_lower_arm"][0].radius < body.shapes["left_lower_leg"][0].radius
        True
        >>> bare = sy.with_shapes(body, {"left_hand": [], "right_hand": [sy.Sphere(radius=0.05)]})
        >>> "left_hand" in bare.shapes, len(bare.shapes["right_hand"])
        (False, 1)

    References:
        C. Gordon et al., *2012 Anthropometric Survey of U.S. Army Personnel*, Natick TR-15/007, 2014.
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    if overhang is not None and not (is_number(overhang) and overhang > 0.0):
        raise InputError("overhang", value=overhang, expected="a length above 0")
    if shapes is None or isinstance(shapes, str):
        if shapes is None and skeleton.shapes:
            return _completed(skeleton, overhang)
        found = _capsules(skeleton, shapes, overhang, _lost(skeleton))
        joints = [
            replace(joint, shapes=tuple(found.get(row, ())), shapes_lost=joint.shapes_lost and row not in found)
            for row, joint in enumerate(skeleton.joints)
        ]
        return skeleton.with_joints(joints)
    check_kind("shapes", shapes, Mapping, "such as {'left_hand': [Sphere(radius=0.05)]}")
    joints = list(skeleton.joints)
    named: dict[int, str | int] = {}
    for name, given in shapes.items():
        row = skeleton.index(name)
        if row in named:
            both = [named[row], name]
            raise InputError(f"shapes of {name!r}", where=skeleton.name, value=both, expected="each frame once")
        named[row] = name
        joints[row] = replace(joints[row], shapes=check_solids(given, f"shapes[{name!r}]"), shapes_lost=False)
    return skeleton.with_joints(joints)


def fitted_text(skeleton: Skeleton, found: Skeleton) -> str | None:
    """Return a message about the shapes that ``with_shapes`` has added; None if it added none.

    Args:
        skeleton: The body before.
        found: The body with shapes.
    """
    if found is skeleton:
        return None
    if not skeleton.shapes:
        return "the body has no shapes; capsules that fit it are used"
    links = counted(len(_lost(skeleton)) - len(_lost(found)), "link")
    return f"shapes of the body are missing; capsules on {links} are used"


def _lost(skeleton: Skeleton) -> list[int]:
    """Return the rows of the joints whose links have shapes that could not be read."""
    return [row for row, joint in enumerate(skeleton.joints) if joint.shapes_lost]


def _completed(skeleton: Skeleton, overhang: float | None) -> Skeleton:
    """Return the skeleton with capsules for links with missing shapes, and with a note that lists these links."""
    lost = _lost(skeleton)
    found = _capsules(skeleton, None, overhang, lost) if lost else {}
    covered = [row for row in lost if row in found]
    if not covered:
        return skeleton
    joints = list(skeleton.joints)
    for row in covered:
        joints[row] = replace(joints[row], shapes=(*joints[row].shapes, *found[row]), shapes_lost=False)
    return skeleton.with_joints(joints, [f"{_ESTIMATED}: {listed([str(skeleton.link_key(row)) for row in covered])}."])


def _capsules(
    skeleton: Skeleton, what: str | None, overhang: float | None, needed: Sequence[int]
) -> dict[int, Sequence[Solid]]:
    """Return capsules around the surface of a skeleton or along its bones, by the row of the joint.

    Args:
        skeleton: The skeleton.
        what: ``"surface"`` or ``"bones"``; None for the surface if it has one.
        overhang: As in ``with_shapes``.
        needed: Joints that get capsules along their bones if they have no triangles of the surface.
    """
    if what is not None and what not in _KINDS:
        expected = "shapes by joint, 'surface', 'bones' or None"
        raise InputError("shapes", value=what, expected=expected)
    found: dict[int, Sequence[Solid]] = {}
    surface = Surface() if what == "bones" else surface_of_skeleton(skeleton)
    skin = skin_of(surface, skeleton)
    if skin is not None:
        found.update(fit_capsules(skin, OVERHANG * skin.extent if overhang is None else float(overhang)))
    elif what == "surface":
        hint = "with_shapes(skeleton, 'bones') needs none"
        raise InputError("skeleton", where=skeleton.name, expected="a body whose file has a surface", hint=hint)
    partial = what is None and (not found.keys() >= {*needed} or not surface.covers(_bone_lengths(skeleton)))
    if skin is None or partial:
        frames = frames_to_transforms(skeleton.rest_pose().frames) if skin is None else skin.frames
        around = [shape.moved(frames[row]) for row, shapes in found.items() for shape in shapes]
        for row, shapes in bone_capsules(skeleton, needed).items():
            moved = [shape.moved(frames[row]) for shape in shapes]
            covered = row not in needed and any(_is_inside(shape.place()[:3, 3], around) for shape in moved)
            if row not in found and not covered:
                found[row] = shapes
    return found


def _is_inside(point: Array, shapes: Sequence[Solid]) -> bool:
    """Return whether a point is inside any of several shapes."""
    return any(distances_to(shape, point[None])[0] < 0.0 for shape in shapes)


def _bone_lengths(skeleton: Skeleton) -> dict[int, float]:
    """Return the sum of the lengths of the bones that begin at each joint, by its row."""
    lengths = dict.fromkeys(range(len(skeleton)), 0.0)
    for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True):
        if parent >= 0:
            lengths[parent] += float(np.linalg.norm(joint.rest[:3, 3]))
    return lengths


def bone_capsules(skeleton: Skeleton, needed: Collection[int] = ()) -> dict[int, list[Solid]]:
    """Return a capsule along each bone, and shapes at the ends of limbs, by joint row, in the frame of the joint.

    Bones lead to child joints and to the points where loops close. A link without a bone and without a role has a
    capsule around its centre of mass.

    Args:
        skeleton: The skeleton.
        needed: Joints that get a sphere if they have none of these shapes, as thick as the bone that leads to them.
    """
    roles = {row: role for role, row in skeleton.role_rows.items()}
    stature = stature_of(skeleton)
    joints = skeleton.joints
    ends = {row: [joints[child].rest[:3, 3] for child in skeleton.children[row]] for row in range(len(skeleton))}
    for loop in skeleton.loops:
        for row, frame in loop.ends(skeleton) if isinstance(loop, Loop) else ():
            ends.get(row, []).append(frame[:3, 3])
    found: dict[int, list[Solid]] = {}
    for row, joint in enumerate(skeleton.joints):
        part = _part(roles.get(row, ""))
        own = _radius(part) * stature
        shapes: list[Solid] = []
        for end in ends[row]:
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
