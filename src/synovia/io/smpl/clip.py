"""Read AMASS clips: NumPy archives with the joint rotations of an SMPL body over time, z up.

poses                                 (T, 3 J) rotation vectors of the joints, 24, 52 or 55 of them
trans                                 (T, 3) metres, added to the position of the first joint
mocap_framerate or mocap_frame_rate   frames per second
betas                                 (K,) shape of the body

The user's model file provides the joints and their positions (``synovia.io.smpl.model``).
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from synovia.errors import FormatError
from synovia.io.base import Format, as_path, file_rate, resting_notes
from synovia.io.npz import numbers_of, read_arrays, unread_notes
from synovia.io.smpl.model import NAMES
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, quat_to_matrix, same_side, times_exp
from synovia.model.motion import Motion
from synovia.model.simulators import floating, free_slice
from synovia.text import listed

_RATES: Final = ("mocap_framerate", "mocap_frame_rate", "fps")
_EXPECTED: Final = "a clip of AMASS as .npz"
# Arrays that repeat or describe arrays that are read.
_DERIVED: Final = ("root_orient", "pose_body", "pose_hand", "pose_jaw", "pose_eye", "num_betas", "mocap_time_length",
                   "surface_model_type")  # fmt: skip


def read_amass(path: str | os.PathLike[str], skeleton: Skeleton) -> Motion:
    """Read an AMASS clip.

    Args:
        path: The file.
        skeleton: Skeleton of an SMPL model. ``load_motion(path, skeleton="SMPLH.npz")`` gives it the body shape of the
            clip. Joints that are missing in the clip, such as fingers or the face, stay at rest.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If arrays are missing or do not fit each other, or the skeleton is not an SMPL model.
    """
    where = as_path(path)
    arrays = read_arrays(where, ("poses", "trans", *_RATES), _EXPECTED)
    key = next((name for name in _RATES if name in arrays), _RATES[0])
    poses, trans, fps = (numbers_of(arrays, name, where, _EXPECTED) for name in ("poses", "trans", key))
    fps = fps.reshape(-1)
    names = NAMES.get(poses.shape[1] // 3) if poses.ndim == 2 and poses.shape[1] % 3 == 0 else None
    if names is None or trans.shape != (len(poses), 3) or len(fps) != 1:
        raise FormatError(
            "arrays do not fit each other",
            where=str(where),
            value=f"poses {poses.shape}, trans {trans.shape}, {key} {fps.shape}",
            expected=f"poses (T, 3 J) with J one of {', '.join(map(str, NAMES))}, trans (T, 3), {key} one number",
        )
    if not len(poses):
        raise FormatError("file has no frames", where=str(where))
    kinds = {joint.name: joint.kind for joint in skeleton.joints}
    if any(kinds.get(name) is not (Kind.BALL if at else Kind.FREE) for at, name in enumerate(names[:22])):
        raise FormatError(
            f"{skeleton.name} is not an SMPL model",
            where=str(where),
            hint="a clip of AMASS needs the model that it was made with; then retarget it to another body",
        )
    turns = times_exp(np.array([0.0, 0.0, 0.0, 1.0]), poses.reshape(len(poses), -1, 3))  # (T, J, 4)
    q = np.tile(skeleton.rest_q, (len(poses), 1))
    for at, name in enumerate(names):
        if at and name in kinds:
            q[:, skeleton.q_slice(name)] = turns[:, at]
    base = np.tile(np.eye(4), (len(poses), 1, 1))
    base[:, :3, :3] = quat_to_matrix(turns[:, 0])
    base[:, :3, 3] = trans + _first_joint(skeleton)
    free = floating(skeleton, 0, base)
    free[:, 3:] = same_side(free[:, 3:])
    q[:, free_slice(skeleton)] = free
    given = [column for name in names if name in kinds for column in np.r_[skeleton.q_slice(name)].tolist()]
    notes = resting_notes(skeleton, given, q)
    lost = [
        name for at, name in enumerate(names) if name not in kinds and np.abs(poses[:, 3 * at : 3 * at + 3]).max() > 0
    ]
    if lost:
        notes.append(f"Rotations of joints that the model lacks were not kept: {listed(lost)}.")
    notes += unread_notes(where, ("poses", "trans", "betas", *_RATES, *_DERIVED))
    rate = file_rate(float(fps[0]), where)
    return Motion(skeleton, q, rate.fps, name=where.stem, notes=[*notes, *rate.notes])


def _first_joint(skeleton: Skeleton) -> Array:
    """Return the position of the first joint (3,) in the model's file, y up."""
    rest = skeleton.joints[0].rest
    place: Array = rest[:3, :3].T @ rest[:3, 3]
    return place


def _looks_like(head: bytes) -> bool:
    """Return whether an archive has the arrays of a clip."""
    return head.startswith(b"PK") and b"poses.npy" in head and b"trans.npy" in head


FORMAT: Final = Format.without_skeleton(
    "AMASS", (), _looks_like, read_amass,
    what="a clip of AMASS",
    hint="name your SMPL model: --model SMPLH.npz, or load_motion(path, skeleton='SMPLH.npz') in Python",
    keeps="rotations, path, rate, shape of the body",
)  # fmt: skip
