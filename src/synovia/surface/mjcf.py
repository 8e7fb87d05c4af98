"""Read the shapes of an MJCF model with MuJoCo.

Groups 0 to 2 are shown, as in MuJoCo's own viewer. Collision shapes are usually in group 3.

References:
    https://mujoco.readthedocs.io/en/stable/XMLreference.html#body-geom
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from synovia.io.mjcf.geoms import WORDS, place_of_geom, plain_solid
from synovia.io.mjcf.model import read_model
from synovia.model import Skeleton
from synovia.model.geometry import frames_to_transforms
from synovia.model.shapes import triangles
from synovia.surface.base import Colour, Part, Surface, colour_of, limited, rigid_part

_SHOWN: Final = 2  # the last geom group that is shown


def read_surface(path: Path, skeleton: Skeleton) -> Surface:
    """Read the surface of a model from its shapes.

    Raises:
        SynoviaError: If the file cannot be read.
    """
    model, rows = read_model(path)
    rest = frames_to_transforms(skeleton.rest_pose().frames)

    def parts() -> Iterator[Part]:
        for geom in range(model.ngeom):
            body = int(model.geom_bodyid[geom])
            if body == 0 or int(model.geom_group[geom]) > _SHOWN:
                continue  # shapes of the world body belong to the scenery
            row = rows[body]
            for vertices, faces, flat in _shape(model, geom):
                yield rigid_part(vertices, faces, row, rest[row], _colour(model, geom), flat=flat)

    return Surface(limited(parts()))


def _shape(model: Any, geom: int) -> Iterator[triangles.Part]:
    """Yield the triangles of a geom in the frame of its body; nothing for planes, height fields and distance fields."""
    solid = plain_solid(model, geom)
    if solid is not None:
        yield from solid.triangles()
        return
    word, mesh = dict(enumerate(WORDS)).get(int(model.geom_type[geom])), int(model.geom_dataid[geom])
    if word == "mesh" and mesh >= 0:
        first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
        start, number = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
        vertices = np.array(model.mesh_vert[first : first + count], np.float64)
        place = place_of_geom(model, geom)
        vertices = vertices @ place[:3, :3].T + place[:3, 3]
        yield vertices, np.array(model.mesh_face[start : start + number], np.int64), True


def _colour(model: Any, geom: int) -> Colour:
    """Return the colour of a geom's material, or else of the geom."""
    material = int(model.geom_matid[geom])
    return colour_of((model.geom_rgba[geom] if material < 0 else model.mat_rgba[material]).tolist())
