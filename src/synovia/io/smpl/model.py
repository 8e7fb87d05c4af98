"""Read skeletons of SMPL, SMPL-H and SMPL-X from the user's own model file, a NumPy archive.

v_template     (V, 3) vertices of the mean shape, metres, y up
shapedirs      (V, 3, K) change of the vertices with each shape parameter
J_regressor    (J, V) weights of the vertices whose weighted mean is the position of a joint
kintree_table  (2, J) row of the parent of each joint, and of the joint

The models must not be redistributed, so Synovia includes none. Files with the ending .pkl are pickles, which can run
code when they are read; Synovia does not read them, and the guide ``datasets`` shows how to convert them.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Final

import numpy as np

from synovia.errors import FormatError
from synovia.io.base import Contents, Format
from synovia.io.npz import numbers_of, read_arrays
from synovia.model import Joint, Kind, Skeleton
from synovia.model.geometry import Array, rigid

BODY: Final = (
    *("pelvis", "left_hip", "right_hip", "spine1", "left_knee", "right_knee", "spine2", "left_ankle", "right_ankle"),
    *("spine3", "left_foot", "right_foot", "neck", "left_collar", "right_collar", "head", "left_shoulder"),
    *("right_shoulder", "left_elbow", "right_elbow", "left_wrist", "right_wrist"),
)
_FACE: Final = ("jaw", "left_eye", "right_eye")
_HANDS: Final = tuple(
    f"{side}_{finger}{part}"
    for side in ("left", "right")
    for finger in ("index", "middle", "pinky", "ring", "thumb")
    for part in (1, 2, 3)
)
# Joint names of each model, by the number of joints.
NAMES: Final = {
    len(names): names for names in ((*BODY, "left_hand", "right_hand"), (*BODY, *_HANDS), (*BODY, *_FACE, *_HANDS))
}
UPRIGHT: Final = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # rotation from y up (models) to z up
_KEYS: Final = ("v_template", "shapedirs", "J_regressor", "kintree_table")
_EXPECTED: Final = "an SMPL model as .npz"
_PICKLES: Final = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
_LIMIT: Final = 1e3  # metres; far larger than any body


def _read(path: Path) -> Contents:
    """Read the skeleton of a model in its mean shape, z up.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is a pickle, or not the archive of such a model.
    """
    with path.open("rb") as file:
        if file.read(2) in _PICKLES:
            raise FormatError(
                "file is a pickle, which can run code when it is read",
                where=str(path),
                expected=_EXPECTED,
                hint="the guide 'datasets', under 'AMASS', shows how to convert it once",
            )
    arrays = read_arrays(path, _KEYS, _EXPECTED)
    template, changes, regressor, tree = (numbers_of(arrays, name, path, _EXPECTED) for name in _KEYS)
    count, vertices = regressor.shape if regressor.ndim == 2 else (0, 0)
    if (
        count not in NAMES
        or template.shape != (vertices, 3)
        or changes.ndim != 3
        or changes.shape[:2] != (vertices, 3)
        or tree.shape != (2, count)
    ):
        shapes = ", ".join(f"{name} {arrays[name].shape}" for name in _KEYS)
        raise FormatError(
            "arrays are not those of SMPL, SMPL-H or SMPL-X",
            where=str(path),
            value=shapes,
            expected=f"v_template (V, 3), shapedirs (V, 3, K), J_regressor (J, V), kintree_table (2, J), "
            f"J one of {', '.join(map(str, NAMES))}",
        )
    parents = _parents(tree[0], path)
    means = regressor @ template
    changes = np.einsum("jv,vck->jck", regressor, changes)  # (J, 3, K)
    if not (np.abs(means).max() < _LIMIT and np.isfinite(changes).all()):
        raise FormatError("positions of joints are not finite", where=str(path))

    def fitted(clip: Path) -> Skeleton:
        betas = _shape_of(clip)[: changes.shape[2]]
        return _skeleton(means + changes[..., : len(betas)] @ betas, parents, path)

    return Contents(_skeleton(means, parents, path), fitted=fitted)


def _shape_of(clip: Path) -> Array:
    """Read the shape parameters (K,) of the body of an AMASS clip; empty if the file has none.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the parameters are not finite numbers.
    """
    arrays = read_arrays(clip, ("betas",), "a clip as .npz") if zipfile.is_zipfile(clip) else {}
    return numbers_of(arrays, "betas", clip, "a clip as .npz").reshape(-1) if "betas" in arrays else np.zeros(0)


def _parents(numbers: Array, path: Path) -> list[int]:
    """Return the parent row of each joint, -1 for the first joint, from the first row of ``kintree_table``.

    Raises:
        FormatError: If a parent is not before its joint.
    """
    parents: list[float] = numbers.tolist()
    for row, parent in enumerate(parents[1:], 1):
        if parent not in range(row):
            raise FormatError(
                f"parent of joint {row}", where=str(path), value=parent, expected=f"a joint before it, 0 to {row - 1}"
            )
    return [-1, *map(int, parents[1:])]


def _skeleton(places: Array, parents: list[int], path: Path) -> Skeleton:
    """Return the skeleton with joints at given positions (J, 3), y up, rotated so that the body stands with z up."""
    names = NAMES[len(places)]
    joints = [Joint(names[0], None, Kind.FREE, rigid(UPRIGHT @ places[0], UPRIGHT))]
    joints += [
        Joint(names[row], names[parent], Kind.BALL, rigid(places[row] - places[parent]))
        for row, parent in enumerate(parents)
        if row
    ]
    return Skeleton(joints, name=path.stem, meters_per_unit=1.0, up="z", forward="-y", source=path)


FORMAT: Final = Format(
    name="SMPL model",
    extensions=(),
    looks_like=lambda head: (
        head.startswith(_PICKLES)
        or (head.startswith(b"PK") and b"kintree_table.npy" in head and b"J_regressor" in head)
    ),
    read=_read,
    keeps="joints, in the shape of the body of a clip",
)
