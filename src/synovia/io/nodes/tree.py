"""Convert trees of nodes with translation, rotation and scale, as in character files, to rigid joints at rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from synovia.model.geometry import Array, quat_to_matrix

UNIFORM: Final = 1e-4  # relative spread of the components of a scale, up to which the scale counts as uniform
_SINGULAR: Final = 1e-6  # ratio of singular values below which a bind matrix has no orientation


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The nodes that become joints, parents first; arrays have one row per joint.

    Args:
        names: Node names; ``node12`` for a node without a name.
        row_of: Row by node number in the file.
        parents: Row of the parent, -1 for roots.
        moving: Whether the node is a ball even without animation, such as a joint of a skin.
        translation: (n, 3), in the parent node's frame.
        rotation: (n, 4), unit quaternions xyzw.
        scale: (n, 3).
        bind: Orientations relative to the parent in the bind pose of the skins, (n, 3, 3); NaN for nodes that are not
            joints of a skin, and if unknown.
        notes: Sentences about properties of nodes that were not kept, such as constraints.
        roles: Parts of the body that the file declares for nodes, by row.
        forward: Axis that the body faces, if the file declares it.
    """

    names: tuple[str, ...]
    row_of: dict[int, int]
    parents: tuple[int, ...]
    moving: tuple[bool, ...]
    translation: Array
    rotation: Array
    scale: Array
    bind: Array
    notes: tuple[str, ...] = ()
    roles: Mapping[int, str] = dataclasses.field(default_factory=dict[int, str])
    forward: str | None = None


def parents_first(kept: set[int], above: Sequence[int]) -> list[int]:
    """Return the nodes in depth-first order, siblings by number.

    Args:
        kept: The nodes, including all their parents.
        above: Parent of each node, -1 for none.
    """
    below: dict[int, list[int]] = {}
    for node in sorted(kept, reverse=True):
        below.setdefault(above[node], []).append(node)
    order: list[int] = []
    todo = list(below.get(-1, []))
    while todo:
        node = todo.pop()
        order.append(node)
        todo += below.get(node, [])
    return order


def relative_binds(inverses: Iterable[Mapping[int, Array]], parents: Sequence[int]) -> Array:
    """Return the orientations in the bind pose relative to the parents, (n, 3, 3); NaN if unknown.

    The inverse of an inverse bind matrix is the frame of the joint in the space of the mesh. This space cancels out in
    the frame relative to another joint.

    Args:
        inverses: For each skin, the linear parts (3, 3) of the matrices from the mesh to the joint frames, by row.
        parents: Row of each joint's parent, -1 for roots.
    """
    bind = np.full((len(parents), 3, 3), np.nan)
    for matrices in inverses:
        turns: dict[int, Array] = {}
        for row, matrix in matrices.items():
            if not np.isfinite(matrix).all():
                continue
            u, sizes, vt = np.linalg.svd(matrix)
            if sizes[2] > _SINGULAR * sizes[0] and np.linalg.det(u @ vt) > 0.0:
                turns[row] = (u @ vt).T
        for row, turn in turns.items():
            if parents[row] in turns:
                bind[row] = turns[parents[row]].T @ turn
    return bind


def node_places(scene: Scene, local: Mapping[tuple[int, str], Array], count: int) -> Array:
    """Return the world positions of the nodes over time, (T, n, 3), by the nodes' matrices, as players show them.

    Args:
        scene: The nodes.
        local: Translations (T, 3), rotations (T, 4) and scales (T, 3) by row and property; others are at rest.
        count: Number of frames T.
    """
    out = np.empty((count, len(scene.names), 3))
    below: dict[int, tuple[Array, Array]] = {-1: (np.eye(3)[None], np.zeros((1, 3)))}
    for row, parent in enumerate(scene.parents):
        linear, place = below[parent]
        place = place + (linear @ over_time(local, row, "translation", scene.translation)[..., None])[..., 0]
        out[:, row] = place
        turn = quat_to_matrix(over_time(local, row, "rotation", scene.rotation))
        below[row] = linear @ (turn * over_time(local, row, "scale", scene.scale)[:, None, :]), place
    return out


def over_time(local: Mapping[tuple[int, str], Array], row: int, path: str, rest: Array) -> Array:
    """Return a property of a node, (T, width); its value at rest, (1, width), if the property is not animated."""
    values = local.get((row, path))
    return rest[row : row + 1] if values is None else values


class Rest:
    """The scene at rest as rigid joints: the scale of the nodes is folded into the offsets.

    Let M be the world matrix of a node, and K the product of the signs and uniform parts of all scales down to the
    node. M K⁻¹ is rigid if all scales are uniform or reflections, because K commutes with rotations up to conjugation
    by its signs. Otherwise, rotations follow from the same formula, and positions are those of M.

    Args:
        scene: The nodes.
    """

    def __init__(self, scene: Scene) -> None:
        """Compute all arrays in one pass down the tree."""
        n = len(scene.names)
        self.scene = scene
        self.uneven = np.zeros(n, bool)  # whether the scale of the node is nonuniform
        self.uniform = np.ones(n)  # product of the uniform parts of all scales above
        self.signs = np.ones((n, 3))  # F: product of the signs of all scales above
        self.linear = np.empty((n, 3, 3))  # product of the rotations and scales of all nodes above
        self.sheared = np.zeros(
            n, bool
        )  # whether a scale above is nonuniform, so that the offset may depend on the pose
        self.frame = np.empty((n, 3, 3))  # rigid rotation of the parent
        self.offset = np.empty((n, 3))  # offset from the parent, in the parent's rigid frame
        rotations = quat_to_matrix(scene.rotation)
        below: dict[int, tuple[float, Array, Array, bool, Array]] = {-1: (1.0, np.ones(3), np.eye(3), False, np.eye(3))}
        for row, parent in enumerate(scene.parents):
            k, signs, linear, sheared, frame = below[parent]
            self.uniform[row], self.signs[row], self.linear[row] = k, signs, linear
            self.sheared[row], self.frame[row] = sheared, frame
            self.offset[row] = frame.T @ (linear @ scene.translation[row])
            size = np.abs(scene.scale[row])
            own = float(np.cbrt(size.prod()))
            even = bool(size.min() > 0.0 and size.max() / size.min() - 1.0 <= UNIFORM)
            self.uneven[row] = not even
            sign = np.where(scene.scale[row] < 0.0, -1.0, 1.0)
            below[row] = (
                k * own if even else k,
                signs * sign,
                linear @ (rotations[row] * scene.scale[row]),
                sheared or not even,
                frame @ (signs[:, None] * rotations[row] * signs),
            )

    def conjugated(self, row: int, quat: Array) -> Array:
        """Return rotations R of a node as rigid joint rotations F R F, (..., 4), with F as in ``signs``."""
        signs = self.signs[row]
        return quat * np.append(signs * signs.prod(), 1.0)

    @cached_property
    def size(self) -> float:
        """Return the longest sum of bone lengths from a root to a tip, length units."""
        lengths = np.linalg.norm(self.offset, axis=1)
        total = np.zeros(len(lengths))
        for row, parent in enumerate(self.scene.parents):
            total[row] = total[parent] + lengths[row] if parent >= 0 else 0.0
        return float(total.max())
