"""Convert a clip to a skeleton that stands at rest, for files that need this."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import InputError
from synovia.model import Joint, Kind, Skeleton
from synovia.model.geometry import frames_to_transforms, matrix_to_quat, quat_to_matrix, same_side
from synovia.model.motion import Motion
from synovia.retargeting.body import Body
from synovia.retargeting.rest_pose import find_stance

_TURNED: Final = 1e-9  # smallest change of a rotation matrix that is more than rounding


def stand_at_rest(motion: Motion) -> Motion:
    """Return a clip on a skeleton that stands at rest; every joint keeps its position in every frame.

    In some BVH files, all bones lie along one axis at rest, so that only the clip shows how the body stands. The new
    rest pose is the one that ``retarget`` finds: a pose of the file, or a T-pose computed from the clip. Joint values
    become relative to the new rest pose. Limits of ball joints are left out, because they refer to the old one.

    Args:
        motion: The clip of a body with legs.

    Raises:
        InputError: If the body has no legs, or its rest pose cannot be changed because it has joints with one axis.

    Example:
        >>> import synovia as sy
        >>> walk = sy.load_motion("lafan1.bvh")  # doctest: +SKIP
        >>> sy.save_motion(sy.skeletons.stand_at_rest(walk), "walk.vrma")  # doctest: +SKIP
    """
    check_kind("motion", motion, Motion, "sy.load_motion(path) reads one")
    skeleton = motion.skeleton
    body = Body.of(skeleton)
    if not body.whole:
        what = "a rest pose that stands needs a body with hips and legs"
        raise InputError(what, where=skeleton.name, value=body.missing)
    stance = find_stance(motion, body)
    frames = frames_to_transforms(stance.rest.frames)
    joints: list[Joint] = []
    q = np.array(motion.q)
    for row, (joint, parent) in enumerate(zip(skeleton.joints, skeleton.parents, strict=True)):
        rest = frames[row].copy()
        if parent >= 0:
            rest[:3, :3] = frames[parent, :3, :3].T @ frames[row, :3, :3]
            rest[:3, 3] = joint.rest[:3, 3]
        u, _, vt = np.linalg.svd(rest[:3, :3])
        rest[:3, :3] = u @ vt
        at = skeleton.q_slice(row)
        if joint.kind in (Kind.BALL, Kind.FREE):
            turned = rest[:3, :3].T @ joint.rest[:3, :3] @ quat_to_matrix(q[:, at.stop - 4 : at.stop])
            q[:, at.stop - 4 : at.stop] = same_side(matrix_to_quat(turned))
        elif np.abs(rest[:3, :3] - joint.rest[:3, :3]).max() > _TURNED:
            what = f"joint {joint.name!r} cannot take another rest pose"
            raise InputError(what, where=skeleton.name, value=joint.kind.name, expected="a ball or a free joint")
        else:
            rest = joint.rest
        if joint.kind is Kind.FREE:
            place = joint.rest[:3, 3] + q[:, at.start : at.start + 3] @ joint.rest[:3, :3].T
            q[:, at.start : at.start + 3] = (place - rest[:3, 3]) @ rest[:3, :3]
        elif parent < 0:
            rest[:3, 3] = joint.rest[:3, 3]
        kept = joint if rest is joint.rest else replace(joint, rest=rest, limit=None, preferred=None, bind=None)
        joints.append(kept)
    up = skeleton.up or (stance.up.name if stance.up.name in ("x", "y", "z", "-x", "-y", "-z") else None)
    standing = Skeleton(
        joints, name=skeleton.name, meters_per_unit=skeleton.meters_per_unit, up=up, forward=stance.forward,
        notes=skeleton.notes, source=skeleton.source, loops=skeleton.loops,
    )  # fmt: skip
    return Motion(standing, q, motion.fps, name=motion.name, stretch=motion.stretch, notes=motion.notes)
