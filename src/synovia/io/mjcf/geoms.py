"""Read the shapes of a compiled MuJoCo model: the geoms that collide, and the pairs of bodies that do not.

Two geoms collide if ``contype`` of one and ``conaffinity`` of the other have a bit in common, or if the file names them
as a pair. Geoms that collide with no other geom are left out, such as purely visual geoms. If a body has no colliding
geoms and its mesh files are missing, it counts as having shapes that could not be read. A mesh counts as its convex
hull, as in MuJoCo. Shapes of the world body belong to the skeleton's root. Planes, which no body can have, are only
obstacles of a world; height fields are left out, with notes.

References:
    https://mujoco.readthedocs.io/en/stable/computation/index.html#collision-detection
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import SynoviaError
from synovia.io.base import NO_SHAPES
from synovia.model.geometry import Array, quat_to_matrix, rigid
from synovia.text import listed

if TYPE_CHECKING:
    from synovia.model.shapes.solids import Solid

MOST_PAIRS: Final = 100_000  # largest number of pairs of bodies that do not collide
# Names of MuJoCo's mjtGeom values, and functions from geom sizes (radii and half lengths) to lengths of solids
WORDS: Final = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
_PLANE, _FIELD, _MESH = (WORDS.index(word) for word in ("plane", "hfield", "mesh"))
_HALVES: Final[dict[str, Callable[[Array], Array]]] = {
    "radius": lambda size: size[:1], "length": lambda size: 2.0 * size[1:2], "size": lambda size: 2.0 * size,
    "radii": lambda size: size,
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Points in memory, as a source for ``ConvexHull.later``.

    Args:
        name: The object that the points belong to.
        points: The points, (n, 3).
    """

    name: str
    points: Array

    def __call__(self) -> Array:
        """Return the points."""
        return self.points

    def __str__(self) -> str:
        """Return the name of the object."""
        return self.name


class Geoms:
    """The geoms of a model that collide.

    Args:
        mujoco: The package.
        model: The compiled model.
        stood_in: (geoms,) whether each geom replaces a missing mesh.
    """

    def __init__(self, mujoco: Any, model: Any, stood_in: NDArray[np.bool_]) -> None:
        """Read the shapes of all bodies."""
        self._mujoco, self._model = mujoco, model
        self._bodies = np.array(model.geom_bodyid, np.int64)
        self._types = np.array(model.geom_contype, np.int64) & 0xFFFFFFFF
        self._others = np.array(model.geom_conaffinity, np.int64) & 0xFFFFFFFF
        self._lost: dict[str, list[int]] = {}  # bodies with shapes that are left out, by reason
        self.planes: dict[int, Solid] = {}  # planes by geom, each in the frame of its body, like ``solids``
        self.solids: dict[int, Solid] = {}
        seen = stood_in & ~np.isin(self._bodies, self._bodies[self._collides])  # stand-ins on bodies without collisions
        for geom in np.flatnonzero(self._collides | seen).tolist():
            body = int(self._bodies[geom])
            if stood_in[geom]:
                self._lost.setdefault("mesh files are missing", []).append(body)
                continue
            try:
                shape = self._shape(geom)
            except SynoviaError as error:
                self._lost.setdefault(error.what, []).append(body)
                continue
            if shape is not None:
                (self.planes if model.geom_type[geom] == _PLANE else self.solids)[geom] = shape

    @cached_property
    def shapes(self) -> dict[int, list[Solid]]:
        """Solids by body."""
        found: dict[int, list[Solid]] = {}
        for geom, shape in self.solids.items():
            found.setdefault(int(self._bodies[geom]), []).append(shape)
        return found

    @cached_property
    def incomplete(self) -> set[int]:
        """Bodies, except the world body, with shapes that could not be read."""
        return {body for bodies in self._lost.values() for body in bodies} - {0}

    def notes(self, bodies: list[str], *, planes: bool = False) -> list[str]:
        """Return notes about shapes that differ from the file.

        Args:
            bodies: Names of the bodies.
            planes: Whether planes are kept.
        """
        lost = self._lost if planes or not self.planes else {**self._lost, "planes": self._planar}
        notes = [
            f"{NO_SHAPES} ({why}) of bodies {listed([bodies[body] for body in dict.fromkeys(rows)])}."
            for why, rows in lost.items()
        ]
        if len(self._excluded) > MOST_PAIRS:
            notes.append(
                f"Excluded pairs of bodies were not kept, as there are more than {MOST_PAIRS}: all are checked."
            )
        return notes

    @property
    def _planar(self) -> list[int]:
        """Bodies that have a plane."""
        return [int(self._bodies[geom]) for geom in self.planes]

    @property
    def excluded(self) -> list[tuple[int, int]]:
        """Pairs of bodies that the file excludes, or whose geoms collide with others but not with each other."""
        return self._excluded if len(self._excluded) <= MOST_PAIRS else []

    @cached_property
    def _excluded(self) -> list[tuple[int, int]]:
        """Pairs of ``excluded``, before the check of their number."""
        signature = np.array(self._model.exclude_signature, np.int64)
        named = zip((signature >> 16).tolist(), (signature & 0xFFFF).tolist(), strict=True)
        pairs = {(min(pair), max(pair)) for pair in named if pair[0] != pair[1]}
        masks: dict[frozenset[tuple[int, int]], list[int]] = {}  # bodies by the masks of their geoms
        for body in self.shapes:
            own = (self._bodies == body) & self._collides
            masks.setdefault(
                frozenset(zip(self._types[own].tolist(), self._others[own].tolist(), strict=True)), []
            ).append(body)
        groups = [*masks.items()]
        for i, (mask, some) in enumerate(groups):
            for other, more in groups[i:]:
                if len(pairs) > MOST_PAIRS:
                    return [*pairs]
                if not any(a & d or c & b for a, b in mask for c, d in other):
                    pairs |= {(min(a, b), max(a, b)) for a in some for b in more if a != b}
        return sorted(pairs - {(min(pair), max(pair)) for pair in self._bodies[self._pairs].tolist()})

    @cached_property
    def _collides(self) -> NDArray[np.bool_]:
        """Whether each geom may collide with any other geom."""
        types, others = self._types, self._others
        masks = {*zip(types.tolist(), others.tolist(), strict=True)}
        meets = {(a, b): any(a & d or c & b for c, d in masks) for a, b in masks}
        found = np.array([meets[pair] for pair in zip(types.tolist(), others.tolist(), strict=True)], np.bool_)
        found[self._pairs.ravel()] = True
        return found

    @property
    def _pairs(self) -> NDArray[np.int64]:
        """Pairs of geoms that the file names, (n, 2); neither masks nor exclusions apply to them."""
        return np.stack([np.array(self._model.pair_geom1), np.array(self._model.pair_geom2)], 1).astype(np.int64)

    def _shape(self, geom: int) -> Solid | None:
        """Return the shape of a geom in the frame of its body; None, after noting why, for types that are not kept."""
        from synovia.model.shapes.solids import ConvexHull, HalfSpace

        m = self._model
        kind, body = int(m.geom_type[geom]), int(self._bodies[geom])
        if (shape := plain_solid(m, geom)) is not None:
            return shape
        place = place_of_geom(m, geom)
        if kind == _MESH and int(m.geom_dataid[geom]) >= 0:
            return ConvexHull.later(self._mesh(int(m.geom_dataid[geom])), place)
        if kind == _PLANE:
            return HalfSpace(point=place[:3, 3], normal=place[:3, 2])
        self._lost.setdefault("height fields" if kind == _FIELD else "kinds without a hull", []).append(body)
        return None

    def _mesh(self, mesh: int) -> Points:
        """Return the corners of MuJoCo's hull of a mesh; all its vertices if there is no hull."""
        m = self._model
        first, count = int(m.mesh_vertadr[mesh]), int(m.mesh_vertnum[mesh])
        vertices = np.array(m.mesh_vert[first : first + count], np.float64)
        graph = int(m.mesh_graphadr[mesh])
        if graph >= 0:  # counts of corners and faces, then first edge and vertex index of each corner
            corners = int(m.mesh_graph[graph])
            vertices = vertices[np.array(m.mesh_graph[graph + 2 + corners : graph + 2 + 2 * corners])]
        name = self._mujoco.mj_id2name(m, self._mujoco.mjtObj.mjOBJ_MESH, mesh)
        return Points(f"mesh {name}", vertices)


def place_of_geom(model: Any, geom: int) -> Array:
    """Return the frame of a geom in the frame of its body, (4, 4)."""
    quat = np.roll(np.array(model.geom_quat[geom], np.float64), -1)  # MuJoCo stores wxyz
    return rigid(np.array(model.geom_pos[geom], np.float64), quat_to_matrix(quat))


def plain_solid(model: Any, geom: int) -> Solid | None:
    """Return a geom in the frame of its body; None for types that lengths do not define, such as meshes."""
    from synovia.model.shapes.solids import OF_BODIES

    kind = OF_BODIES.get(dict(enumerate(WORDS)).get(int(model.geom_type[geom]), ""))
    if kind is None:
        return None
    size = np.array(model.geom_size[geom], np.float64)
    return kind.at(
        place_of_geom(model, geom), np.concatenate([_HALVES[name](size) for name in kind.lengths()]).tolist()
    )
