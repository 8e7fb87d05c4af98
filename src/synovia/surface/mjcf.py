"""Read the shapes of an MJCF model through MuJoCo.

Groups 0 to 2 are shown, as in MuJoCo's own viewer. Collision shapes are usually in group 3.

References:
    https://mujoco.readthedocs.io/en/stable/XMLreference.html#body-geom
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from synovia.io.mjcf.model import read_model
from synovia.model import Skeleton
from synovia.model.geometry import Array, frames_to_transforms, quat_to_matrix
from synovia.model.shapes.triangles import ball, box, capsule, cylinder
from synovia.surface.base import Colour, Faces, Part, Surface, colour_of, limited, rigid_part

_SHOWN: Final = 2  # the last group that is shown
_SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = range(2, 8)  # numbers of mjtGeom


def read_surface(path: Path, skeleton: Skeleton) -> Surface:
    """Return the shapes of a model.

    Raises:
        SynoviaError: If the file cannot be read.
    """
    model, rows = read_model(path)
    rest = frames_to_transforms(skeleton.rest_pose().frames)

    def parts() -> Iterator[Part]:
        for geom in range(model.ngeom):
            body = int(model.geom_bodyid[geom])
            if body == 0 or int(model.geom_group[geom]) > _SHOWN:
                continue  # shapes of the world body are scenery
            found = _shape(model, geom)
            if found is None:
                continue
            vertices, faces, flat = found
            turn = quat_to_matrix(np.roll(np.array(model.geom_quat[geom]), -1))
            vertices = vertices @ turn.T + np.array(model.geom_pos[geom])
            row = rows[body]
            yield rigid_part(vertices, faces, row, rest[row], _colour(model, geom), flat=flat)

    return Surface(limited(parts()))


def _shape(model: Any, geom: int) -> tuple[Array, Faces, bool] | None:
    """Return vertices, faces and flat shading of a geom, None for planes, height fields and signed distances."""
    size = np.array(model.geom_size[geom], np.float64)
    radius, length = float(size[0]), 2.0 * float(size[1])
    kind, mesh = int(model.geom_type[geom]), int(model.geom_dataid[geom])
    if kind in (_SPHERE, _ELLIPSOID):
        return *ball(np.full(3, radius) if kind == _SPHERE else size), False
    if kind == _CAPSULE:
        return *capsule(radius, length), False
    if kind == _CYLINDER:
        return *cylinder(radius, length), True
    if kind == _BOX:
        return *box(2.0 * size), True
    if kind != _MESH or mesh < 0:
        return None
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    start, faces = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    vertices = np.array(model.mesh_vert[first : first + count], np.float64)
    return vertices, np.array(model.mesh_face[start : start + faces], np.int64), True


def _colour(model: Any, geom: int) -> Colour:
    """Return the colour of a geom's material, else that of the geom."""
    material = int(model.geom_matid[geom])
    return colour_of((model.geom_rgba[geom] if material < 0 else model.mat_rgba[material]).tolist())
